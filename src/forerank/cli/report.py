"""`forerank report`: an HTML page on the quality of a ranking."""

import shlex
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from forerank.cli import options, output

EPILOG = (
    options.examples(
        "forerank report bank.csv --target y -o bank.html",
        "forerank report bank.csv -t y --metric recall@100 --against TopPush --against lightgbm "
        "-o bank.html",
        "forerank report bank.csv -t y --ranker PairwiseRanker --against none -o bank.html",
    )
    + "The page is one file without links to others: it can be mailed, opened and printed."
)
_AGAINST = (
    "A method to compare with, as in 'forerank compare'; may be repeated. Default: "
    "logistic-regression-cv (grades: ridge-regression-cv); 'none' for no comparison."
)
_BUDGET = "Seconds for the comparison; the page names fits that were not made in time."


@options.reads(labelled=True)
def report(
    file: options.DataFile,
    out: Annotated[Path, Option("--out", "-o", help="The HTML file to write.")],
    *,
    target: options.Target = None,
    ranker: options.RankerName = "Ranker",
    metric: options.Metric = None,
    against: Annotated[
        list[str] | None, Option(help=_AGAINST, autocompletion=options.complete_method)
    ] = None,
    budget: Annotated[float, Option("--time-budget", min=1, help=_BUDGET)] = 600,
    folds: options.Folds = 5,
    read: Any,
    force: options.Force = False,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a page on a ranking: its quality on held-out rows, in sentences and plots, and
    problems of the data.
    """
    from forerank.data.files import refuse_existing

    refuse_existing(out, force=force)
    options.refuse_overwriting(out, file)
    for module in ("jinja2", "matplotlib"):
        import_module(module)  # a missing package is reported before the fits, not after them
    from forerank.workflows.compare import compare
    from forerank.workflows.report import make_report

    methods = [] if against == ["none"] else against or ["baseline"]
    arguments = read | {"metric": metric or "auc", "seed": seed}
    command = shlex.join(["forerank", *sys.argv[1:]])
    with options.input_file(file, read) as path, output.status(quiet) as say:
        with output.recorded_warnings() as caught:
            result = None
            if methods:
                say("comparing")
                limits: dict[str, Any] = {"cv": folds, "time_budget": budget}
                limits["progress"] = lambda share: say(f"comparing, {share:.0%}")
                result = compare(path, target, [ranker, *methods], **limits, **arguments)
            arguments |= {"ranker": ranker, "comparison": result, "folds": folds}
            page = make_report(path, target, command=command, say=say, **arguments)
        say(f"saving {out}")
        page.save(out, force=force)
    if as_json:
        measures = [each.to_dict() for each in page.measures]
        shown = {"report": str(out), "sentences": page.sentences, "measures": measures}
        output.print_json(shown | {"warnings": page.warnings + caught})
        return
    output.print_lines(*page.sentences)
    output.print_notes(page.warnings + caught, quiet)
    if not quiet:
        output.print_lines(f"saved {out}")
