"""`forerank evaluate`: measures of a model on labelled rows, with confidence intervals."""

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from forerank._text import counted
from forerank.cli import options, output
from forerank.cli.terminal import escape

EPILOG = options.examples(
    "forerank evaluate bank.forerank labelled.csv",
    "forerank evaluate bank.forerank labelled.csv --target y --by job --k 50",
    "forerank evaluate bank.forerank labelled.csv --curves curves.png --json",
)
_K = (
    "Rows from the top of this file; may be repeated. Default: 10, 100 and the k of the model's "
    "metric."
)
_CURVES = "Draw ROC, precision-recall and positives by rank into this PNG file."
# Measures of the table by group of rows: more do not fit into a line of a terminal.
_MEASURES_BY_PART = 3


@options.reads(labelled=False)
def evaluate(
    model: options.ModelFile,
    file: options.DataFile,
    *,
    target: Annotated[
        str | None, Option("--target", "-t", help="The column of labels. Default: the model's.")
    ] = None,
    by: Annotated[
        str | None, Option(help="A column; measures are also given for each of its values.")
    ] = None,
    k: Annotated[list[int] | None, Option(min=1, help=_K)] = None,
    confidence: Annotated[float, Option(help="Confidence level of the intervals.")] = 0.95,
    curves: Annotated[Path | None, Option(help=_CURVES)] = None,
    read: Any,
    skip_unlabelled: options.SkipUnlabelled = False,
    allow_missing: options.AllowMissing = False,
    force: options.Force = False,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure a model on labelled rows: every measure with its confidence interval."""
    from forerank.data.files import opened_atomically
    from forerank.models import load_model
    from forerank.workflows.evaluate import evaluate as evaluate_model

    if curves is not None:
        options.check_picture(curves, force=force)
    loaded = load_model(model)
    arguments = read | {"by": by, "k": k or None, "confidence": confidence, "seed": seed}
    arguments |= {"allow_missing": allow_missing, "skip_unlabelled": skip_unlabelled or None}
    with options.input_file(file, read) as path, output.status(quiet) as say:
        say("measuring")
        with output.recorded_warnings() as caught:
            result = evaluate_model(loaded, path, target, **arguments)
        if curves is not None:
            from forerank.plots.curves import draw_curves

            with opened_atomically(curves, force=force) as image:
                draw_curves(result.y, result.scores, image)
    measures = [each.to_dict() for each in result.measures]
    if as_json:
        parts = {part: [each.to_dict() for each in found] for part, found in result.parts.items()}
        shown = {"rows": result.rows, "classes": result.classes, "confidence": confidence}
        shown |= {"measures": measures, "by": parts, "notes": result.notes, "warnings": caught}
        shown["bounds"] = None if result.bounds is None else result.bounds.to_dict()
        output.print_json(shown)
        return
    short = [f"the file has fewer than {counted(n, 'row')}" for n in k or () if n > result.rows]
    output.print_notes(result.notes + caught + short, quiet)
    counts = ", ".join(f"{name}: {count:,}" for name, count in result.classes.items())
    title = f"{counted(result.rows, 'row')}: {counts}"
    output.console().print(output.measure_table(title, measures, confidence))
    if result.parts:
        output.console().print(_table_by_part(by or "", result.parts))
    if result.bounds is not None:
        output.print_lines(result.bounds.sentence)
    if curves is not None and not quiet:
        output.print_lines(f"saved {curves}")


def _table_by_part(by: str, parts: dict[str, Any]) -> Any:
    """The first measures for each value of the column `by`."""
    names = next(([each.name for each in found] for found in parts.values() if found), ["AUC"])
    names = names[:_MEASURES_BY_PART]
    table = output.titled_table(f"By {by}", by, *names)
    for part, measures in parts.items():
        cells = {
            each.name: "  ".join(output.value_and_interval(each.to_dict())) for each in measures
        }
        shown = (cells.get(name, "one class only").rstrip() for name in names)
        table.add_row(escape(part), *map(escape, shown))
    return table
