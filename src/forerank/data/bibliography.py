"""Bibliographies, sheets and JSON lines: files of records that are read whole.

`read_entries` reads RIS (`forerank.data.ris`), BibTeX (`forerank.data.bibtex`), the first sheet of
an XLSX file (`forerank.data.spreadsheets`) and JSON lines (`forerank.data.json_lines`);
`entries_table` makes a pyarrow table of them, whose columns are their fields in the order of their
first appearance.
"""

from collections.abc import Callable
from typing import Any

from forerank.data.bibtex import parse_bibtex
from forerank.data.encodings import file_errors
from forerank.data.entries import Entries, arrow_column, check_size, read_text
from forerank.data.json_lines import parse_json_lines
from forerank.data.ris import parse_ris
from forerank.data.spreadsheets import read_sheet

__all__ = ["TEXT_KINDS", "entries_table", "is_entries", "read_entries"]

_PARSERS: dict[str, Callable[[str], Entries]] = {
    "ris": parse_ris,
    "bibtex": parse_bibtex,
    "jsonl": parse_json_lines,
}
# Kinds of files that have an encoding.
TEXT_KINDS = ("csv", "tsv", *_PARSERS)


def is_entries(kind: str) -> bool:
    """Whether files of a kind are read by `read_entries`."""
    return kind == "xlsx" or kind in _PARSERS


def read_entries(path: Any, kind: str, encoding: str | None = None) -> Entries:
    """The records of a file, and notes on what was skipped in it.

    Parameters
    ----------
    path : path
    kind : {"ris", "bibtex", "jsonl", "xlsx"}
        As `forerank.data.formats.file_kind` names it.
    encoding : str, optional
        Of text; by default UTF-8, or what its byte order mark says.
    """
    if kind == "xlsx":
        return read_sheet(path)
    text = read_text(path, encoding)
    with file_errors(path):
        return _PARSERS[kind](text)


def entries_table(path: Any, entries: Entries) -> Any:
    """Records as a pyarrow table; the path is for errors."""
    import pyarrow as pa

    names = entries.names
    check_size(path, names, len(entries.rows))
    columns = {name: arrow_column([row.get(name) for row in entries.rows]) for name in names}
    return pa.table(columns)
