"""`forerank fit`: a ranker fitted on a file, saved as a model file."""

import tomllib
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from forerank._text import counted
from forerank.cli import options, output

EPILOG = (
    options.examples(
        "forerank fit bank.csv --target y -o bank.forerank",
        "forerank fit leads.csv -t bought --metric recall@100 -o leads.forerank",
        "forerank fit leads.csv -t bought --calibrate -o leads.forerank  "
        "# for 'forerank rank --probability'",
        "forerank fit leads.parquet -t bought --ranker TopPush --alpha 0.01 -o leads.forerank",
        "forerank fit queries.svm --ranker RankNCG -o queries.forerank  # graded labels, with qid",
        "forerank fit 'clicks/*.parquet' -t clicked -o clicks.forerank  # read block by block",
        "zcat leads.csv.gz | forerank fit - -t bought --params ranker.toml -o leads.forerank",
    )
    + "By default linear models, additive ones, boosted trees and their average are compared for "
    "the measure by cross-validation (Ranker). "
    "Options that are not listed are parameters of the ranker: --alpha 0.01, --loss logistic, "
    "--max-iter 500, --time-budget 60, and for Ranker --families linear (or additive, trees, "
    "linear,trees). A TOML file holds the same: alpha = 0.01, "
    'loss = "logistic", and ranker = "PairwiseRanker".'
)
# Unknown options are parameters of the ranker.
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}


@options.reads(labelled=True)
def fit(
    context: typer.Context,
    file: options.DataFile,
    out: Annotated[Path, Option("--out", "-o", help="The model file to write.")],
    *,
    target: options.Target = None,
    ranker: options.RankerName = None,
    metric: options.Metric = None,
    params: Annotated[Path | None, Option("--params", help="A TOML file of parameters.")] = None,
    read: Any,
    check: Annotated[
        float, Option(help="The share of rows held out to measure; 0 for none.")
    ] = 0.2,
    calibrate: Annotated[
        bool, Option("--calibrate", help="Also fit probabilities, for 'forerank rank'.")
    ] = False,
    memory: Annotated[
        str | None,
        Option(
            help="Memory for the fit, such as 4GB; larger files are read block by block. "
            "Default: half of the machine's."
        ),
    ] = None,
    force: options.Force = False,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit a ranker on a file and save it.

    Columns are prepared by their type: numbers are imputed and scaled, categories one-hot encoded,
    texts turned into tf-idf weights of their words, dates into days; ids, constant and empty
    columns are not used, and are named. A share of the rows is held out to measure the ranking; the
    saved model is fitted on all rows.

    Files that do not fit into memory, and several files of one format given as a quoted pattern,
    are read block by block: columns and method are chosen on a sample of the rows.
    """
    if file.startswith("--"):
        raise ValueError(
            f"FILE comes first, then parameters of the ranker: forerank fit FILE ... {file} VALUE"
        )
    if str(out) == "-":
        raise ValueError("a model cannot be written to standard output; give a file: -o MODEL")
    options.refuse_overwriting(out, file, params)
    parameters = _parameters(params, context.args)
    name = parameters.pop("ranker", "Ranker")
    if calibrate:
        parameters["calibrate"] = True
    with output.status(quiet):  # a line appears before the numerical libraries are loaded
        from forerank import models
        from forerank.data.files import refuse_existing
        from forerank.workflows.fit import fit as fit_model

        refuse_existing(out, force=force)
        import_module("skops")  # a missing package is reported before the fit, not after it

    arguments = read | {"params": parameters, "metric": metric, "check": check, "seed": seed}
    arguments["memory"] = memory
    with options.input_file(file, read) as path, output.status(quiet) as say:
        with output.recorded_warnings() as caught:
            model = fit_model(path, target, ranker=ranker or name, say=say, **arguments)
        if file == "-":
            model.summary["source"] = "standard input"
        say(f"saving {out}")
        digest = models.save_model(model, out, force=force)
    warned = model.summary["warnings"] + caught
    if as_json:
        result = {"model": str(out), "sha256": digest, **model.summary, "notes": model.notes}
        output.print_json(result | {"warnings": warned})
        return
    output.print_notes(warned, quiet)
    _print_model(model, quiet)
    if not quiet:
        output.print_lines(f"saved {out}")


def _print_model(model: Any, quiet: bool) -> None:
    summary = model.summary
    if not quiet:
        rows = f"{counted(summary['rows'], 'row')} of {summary['source']}"
        output.print_lines(f"{rows}: {output.class_counts(summary)}")
    output.print_data_notes(model.notes, quiet)
    if "choice" in summary:
        output.print_lines(summary["choice"]["reason"])
        if not quiet:
            output.print_lines(summary["choice"]["more_data"])
    output.print_lines(
        f"{summary['ranker']}({_shown_parameters(model)}), {summary['seconds']:.1f} s"
    )
    if summary["measures"]:
        sampled = "sample_rows" in summary  # of a file larger than memory
        held_out = counted(summary["kept_aside"], "held-out row")
        if sampled:
            held_out += " of the sample"
        title = f"On {held_out}, before the fit on all rows"
        output.console().print(output.measure_table(title, summary["measures"], 0.95))
        if not quiet and any("(first" in each.get("depth", "") for each in summary["measures"]):
            rows = "the sample" if sampled else "all rows"
            output.print_lines(f"The first k of {rows} are the same share of the held-out rows.")


def _shown_parameters(model: Any) -> str:
    """The parameters that differ from their defaults, and always alpha, loss and metric."""
    ranker = model.estimator[-1]
    defaults, hidden = type(ranker)().get_params(), ("random_state", "n_jobs", "scale")
    return ", ".join(
        f"{name}={value!r}"
        for name, value in ranker.get_params().items()
        if name not in hidden and (value != defaults[name] or name in ("alpha", "loss", "metric"))
    )


def _parameters(path: Path | None, arguments: list[str]) -> dict[str, Any]:
    """Parameters of a TOML file, then those among the command's arguments."""
    parameters: dict[str, Any] = {}
    if path is not None:
        try:
            parameters = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: not TOML ({error})") from None
    remaining = list(arguments)
    while remaining:
        option = remaining.pop(0)
        name, equals, value = option.removeprefix("--").partition("=")
        if not option.startswith("--") or not name:
            raise ValueError(
                f"{option!r} is not an option; give one FILE, then options and parameters of the "
                "ranker"
            )
        if not equals:
            if not remaining:
                raise ValueError(f"the parameter {option} needs a value: {option} VALUE")
            value = remaining.pop(0)
        parameters[name.replace("-", "_")] = _value(value)
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in parameters.items()
    }


def _value(text: str) -> Any:
    """None, a truth value, any other TOML value, a number, or else the text itself."""
    if text.lower() in ("none", "true", "false"):
        return {"none": None, "true": True, "false": False}[text.lower()]
    for parse in (lambda: tomllib.loads(f"value = {text}")["value"], lambda: float(text)):
        with suppress(ValueError):
            return parse()
    return text
