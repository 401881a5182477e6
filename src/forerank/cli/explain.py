"""`forerank explain`: weights of a model, and contributions of columns to the scores of rows."""

from pathlib import Path
from typing import Annotated, Any

from rich.table import Table
from typer import Argument, Option

from forerank._text import counted, listed
from forerank.cli import options, output
from forerank.cli.terminal import escape

EPILOG = options.examples(
    "forerank explain bank.forerank",
    "forerank explain bank.forerank new.csv --row 1 --row 17",
    "forerank explain bank.forerank --curves curves.png",
)
_CURVES = "Draw what each value of a column adds to the score, for up to 12 columns, into this PNG."
# Characters of a value that a table shows.
_VALUE_WIDTH = 40


@options.reads(labelled=False)
def explain(
    model: options.ModelFile,
    file: Annotated[
        str | None, Argument(metavar="[FILE]", help="Rows to explain. '-' is standard input.")
    ] = None,
    *,
    row: Annotated[
        list[int] | None,
        Option(min=1, help="A row, counted from 1; may be repeated. Default: the best 5."),
    ] = None,
    weights: Annotated[int, Option(min=0, help="Weights to show, largest first.")] = 20,
    curves: Annotated[Path | None, Option(help=_CURVES)] = None,
    read: Any,
    allow_missing: options.AllowMissing = False,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Explain scores: the largest weights, and the contribution of each column to the score of a
    row.

    The contributions shown for a row add up to its score: the columns with the largest ones, the
    others together, and the constant.
    """
    from forerank.models import load_model
    from forerank.models.explain import explain as explain_model

    if curves is not None:
        options.check_picture(curves, force=force)
    loaded = load_model(model)
    with options.input_file(file or "", read) as path:
        rows = path if file else None
        result = explain_model(loaded, rows, rows=row, allow_missing=allow_missing, **read)
    drawn = None if curves is None else _draw(loaded, curves, force=force)
    largest = result.weights[:weights]
    if as_json:
        shown = [vars(each) for each in largest]
        found = {"weights": shown, "rows": result.contributions, "intercept": result.intercept}
        found |= {"kind": result.kind} | ({} if drawn is None else {"curves": drawn})
        found |= {"importance": result.importance} if result.importance else {}
        if result.without_importance:
            found["without_importance"] = result.without_importance
        output.print_json(found)
        return
    if weights and not (quiet and result.contributions):
        for table in _weight_tables(result, weights):
            output.console().print(table)
    for contributions in result.contributions:
        output.console().print(_row_table(contributions, weights))
    if drawn is not None and not quiet:
        output.print_lines(f"saved {curves}")


def _weight_tables(result: Any, n_shown: int) -> list[Table]:
    """Table of the largest weights or, for an additive model, of the most important columns, with
    another of the words where the importance of a text is not known.
    """
    if not result.importance:
        part = " in the trees of the average" if result.is_average else ""
        title = f"The largest of {counted(len(result.weights), result.kind)}{part}"
        return [_weight_table(title, "column", result.weights[:n_shown], result.kind)]
    texts = result.without_importance
    title = f"The most important of {counted(len(result.importance), 'column')}"
    title += f", without the {'text' if len(texts) == 1 else 'texts'} {listed(texts)}" * bool(texts)
    table = output.titled_table(title, "column", "standard deviation of what it adds")
    for name, spread in list(result.importance.items())[:n_shown]:
        table.add_row(escape(name), f"{spread:.4f}")
    if not texts:
        return [table]
    words = [each for each in result.weights if each.column in texts]
    title = f"The largest of {counted(len(words), 'weight')} of words in {listed(texts)}"
    return [table, _weight_table(title, "word", words[:n_shown], result.kind)]


def _weight_table(title: str, of: str, weights: list[Any], kind: str) -> Table:
    table = output.titled_table(title, of, kind)
    sign = "+" if kind == "weight" else ""
    for each in weights:
        table.add_row(escape(each.name), f"{each.weight:{sign}.4f}")
    return table


def _draw(model: Any, path: Path, *, force: bool) -> list[dict[str, Any]]:
    """Draw the curves of a model; returns them as JSON holds them."""
    from forerank.data.files import opened_atomically
    from forerank.models.curves import column_curves
    from forerank.plots.column_curves import draw_column_curves

    with opened_atomically(path, force=force) as image:
        draw_column_curves(model, image)
    return [vars(curve) for curve in column_curves(model)]


def _row_table(row: dict[str, Any], n_columns: int) -> Table:
    """Table of the terms that sum to a row's score; a text column has a line per word shown."""
    table = Table(title=f"Row {row['row']}: score {row['score']:.4f}", title_justify="left")
    table.add_column("column")
    table.add_column("value")
    table.add_column("adds", justify="right")
    terms = list(row["columns"].items())
    shown = terms[: n_columns or None]
    for name, term in shown:
        value = "(missing)" if term["value"] is None else str(term["value"])[:_VALUE_WIDTH]
        parts = [(f"{name}: {word}", adds) for word, adds in term.get("words", {}).items()]
        if others := term.get("other_words", {}).get("count"):
            parts.append((f"{name}: {counted(others, 'other word')}", term["other_words"]["adds"]))
        for number, (part, adds) in enumerate(parts or [(name, term["adds"])]):
            table.add_row(escape(part), "" if number else escape(value), f"{adds:+.4f}")
    if rest := terms[len(shown) :]:
        total = sum(term["adds"] for _, term in rest)
        table.add_row(counted(len(rest), "other column"), "", f"{total:+.4f}")
    table.add_row("constant", "", f"{row['constant']:+.4f}")
    table.add_section()
    table.add_row("score", "", f"{row['score']:+.4f}")
    return table
