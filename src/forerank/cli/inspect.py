"""`forerank inspect`: the description in a model file."""

from typing import Any

from rich.table import Table

from forerank._text import counted
from forerank.cli import options, output
from forerank.cli.terminal import escape

EPILOG = options.examples("forerank inspect bank.forerank")


def inspect(model: options.ModelFile, *, as_json: options.AsJson = False) -> None:
    """Describe a model file without loading the model: safe for untrusted files."""
    from forerank.models import read_card

    card = read_card(model)
    if as_json:
        output.print_json(card)
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _lines(card):
        table.add_row(escape(name), escape(value))
    output.console().print(table, highlight=False)


def _lines(card: dict[str, Any]) -> list[tuple[str, str]]:
    """Names and values of the description, in the order of the table."""
    summary = card["summary"]
    params = ", ".join(f"{name}={value!r}" for name, value in summary.get("params", {}).items())
    rows = f"{counted(summary.get('rows', 0), 'row')} of {summary.get('source')}"
    loadable = "none" if card["problems"] else "none: it can be loaded"
    return [
        ("ranker", f"{summary.get('ranker')}({params})"),
        *_titled("choice", [summary["choice"]["reason"]] if "choice" in summary else []),
        ("trained on", f"{rows}: {output.class_counts(summary)}"),
        ("target", str(card["target"])),
        ("group", str(card["group"])),
        *_titled("columns", card["notes"]),
        *[
            (output.measure_title(each), "  ".join(output.value_and_interval(each)).rstrip())
            for each in summary.get("measures", [])
        ],
        ("versions", ", ".join(f"{name} {version}" for name, version in card["versions"].items())),
        ("format", str(card["format"])),
        ("sha256", card["sha256"]),
        ("foreign types", ", ".join(card["foreign_types"]) or loadable),
        *_titled("refused for", card["problems"]),
    ]


def _titled(title: str, texts: list[str]) -> list[tuple[str, str]]:
    """Lines of a table, the first with a title."""
    return [("" if number else title, text) for number, text in enumerate(texts)]
