"""Export of labelled records to XLSX, written with openpyxl.

Every text is a string cell, never a formula, a link or an error value.
"""

import re
from collections.abc import Sequence
from typing import Any, BinaryIO

from forerank._text import counted
from forerank.data.spreadsheets import check_openpyxl
from forerank.label.cells import EXPORTED_NAMES, guarded
from forerank.label.rows import ExportRow, export_table

__all__ = ["write_xlsx"]

# Most characters of a cell (in UTF-16), columns and rows of a sheet, as Excel has them.
_LONGEST_CELL = 32_767
_MOST_COLUMNS, _MOST_ROWS = 16_384, 1_048_576
# Characters that XML does not have: control characters, surrogates, and two that are no characters.
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# What Excel reads as the code of a character.
_ESCAPE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")


def write_xlsx(rows: Sequence[ExportRow], file: BinaryIO) -> None:
    """Write rows as a sheet "records", with a header.

    Texts of more than 32,767 characters are cut, and the last column says which and how long they
    were. Characters that XML does not have are replaced.
    """
    check_openpyxl()
    import openpyxl

    names, values = export_table(rows)
    names = [*names, EXPORTED_NAMES[-1]]
    if len(names) > _MOST_COLUMNS or len(rows) >= _MOST_ROWS:
        size = f"{counted(len(rows), 'row')} of {counted(len(names), 'column')}"
        limit = f"a sheet has at most {_MOST_ROWS:,} rows and {_MOST_COLUMNS:,} columns"
        raise ValueError(f"{size} do not fit: {limit}; export as CSV.")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("records")
    sheet.freeze_panes = "A2"
    sheet.append([_cell(sheet, name) for name in names])
    for row in values:
        sheet.append([_cell(sheet, value) for value in [*row, _cut_note(names, row)]])
    book.save(file)


def _cut_note(names: Sequence[str], row: Sequence[Any]) -> str:
    """Which texts of a row are too long for a cell, and how long they are."""
    long = [
        f"{name}: cut from {len(value):,} characters"
        for name, value in zip(names, row, strict=False)
        if isinstance(value, str) and _is_too_long(_xml_text(value))
    ]
    return "; ".join(long)


def _cell(sheet: Any, value: Any) -> Any:
    """A cell; texts are string cells whatever they look like."""
    from openpyxl.cell import WriteOnlyCell

    if not isinstance(value, str):
        return value
    if not value:
        return None
    cell = WriteOnlyCell(sheet, value="")
    cell.value = _cut(_xml_text(value))
    cell.data_type = "s"
    return cell


def _is_too_long(text: str) -> bool:
    if len(text) <= _LONGEST_CELL // 2:
        return False
    return len(text.encode("utf-16-le")) > 2 * _LONGEST_CELL


def _cut(text: str) -> str:
    """As much of a text as a cell holds, without half a character."""
    if not _is_too_long(text):
        return text
    return text.encode("utf-16-le")[: 2 * _LONGEST_CELL].decode("utf-16-le", "ignore")


def _xml_text(text: str) -> str:
    """A text that XML and Excel represent, guarded against formulas."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)
    return _ESCAPE.sub("_x005F_", guarded(text))
