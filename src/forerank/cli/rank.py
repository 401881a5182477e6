"""`forerank rank`: the rows of a file, ranked by a model."""

import sys
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from forerank._text import counted, listed
from forerank.cli import options, output
from forerank.cli.terminal import PrintableSink, escape

EPILOG = (
    options.examples(
        "forerank rank bank.forerank new.csv -o ranked.csv",
        "forerank rank bank.forerank new.csv --top 50  # the best fifty, on standard output",
        "forerank rank bank.forerank new.csv --probability  "
        "# of a model from 'forerank fit --calibrate'",
        "zcat huge.csv.gz | forerank rank bank.forerank - -o ranked.parquet",
    )
    + "The file may be larger than memory: sorted parts of it are kept in the temporary directory "
    "(TMPDIR)."
)
_OUT = "CSV, TSV, Parquet or Feather by its suffix; '-' is standard output (CSV)."
# Significant digits of scores in a terminal; files and pipes have all of them.
_DIGITS_IN_TERMINAL = 6


@options.reads(labelled=False)
def rank(
    model: options.ModelFile,
    file: options.DataFile,
    *,
    out: Annotated[str, Option("--out", "-o", help=_OUT)] = "-",
    top: Annotated[
        int | None, Option(min=1, help="Write only this many rows (of each group).")
    ] = None,
    probability: Annotated[
        bool, Option("--probability", help="Add the probability of the positive label.")
    ] = False,
    read: Any,
    allow_missing: options.AllowMissing = False,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Write the ranked list of a file: its rows unchanged, with score and rank, best first.

    Rows with the same score share a rank. A model with groups ranks within each of them. Columns
    that the model does not know are kept and not used; columns that it needs must exist, unless
    --allow-missing is given. The file is read as the training file was; the list is in UTF-8. A
    file without rows gives a list without rows.
    """
    out = "-" if out == "/dev/stdout" else out  # which may be a file, to append to
    if as_json and out == "-":
        raise ValueError(
            "--json prints a summary to standard output; write the list to a file: -o FILE"
        )
    options.refuse_overwriting(out, model, file)
    from forerank.models import load_model
    from forerank.models.ranked_list import rank_file
    from forerank.models.scoring import probability_function

    loaded = load_model(model)
    if probability and probability_function(loaded) is None:
        raise ValueError(
            f"{model}: the model has no probabilities; fit it with 'forerank fit ... --calibrate'"
        )
    arguments = read | {"top": top, "probability": probability, "allow_missing": allow_missing}
    sink: Any = Path(out)
    if out == "-":  # bytes unchanged, except in a terminal
        sink = sys.stdout.buffer
        if sys.stdout.isatty():
            sink = PrintableSink(sink)
            arguments["digits"] = _DIGITS_IN_TERMINAL
    with options.input_file(file, read) as path, output.progress_bar("Ranking", quiet) as progress:
        ranked = rank_file(loaded, path, sink, force=force, progress=progress, **arguments)
    if as_json:
        # "strangers" is the name of "unknown_values" in version 0.1.
        output.print_json({"out": out, **vars(ranked), "strangers": ranked.unknown_values})
    elif not quiet:
        _print_summary(ranked, out)


def _print_summary(ranked: Any, out: str) -> None:
    file = "" if out == "-" else f" to {out}"
    lines = [
        ("missing, treated as empty: ", ranked.missing),
        ("without any value known to the model: ", ranked.unknown_values),
        ("kept, not used by the model: ", ranked.unused),
    ]
    shown = [text + listed(names) for text, names in lines if names]
    if ranked.taken:
        added = f"those that are added are called {listed(ranked.names)}"
        noun = "a column" if len(ranked.taken) == 1 else "columns"
        shown.append(f"the file has {noun} called {' and '.join(ranked.taken)}: {added}")
    for line in [*shown, f"{ranked.written:,} of {counted(ranked.rows, 'row')} written{file}"]:
        output.console(stderr=True).print(escape(line), highlight=False)
