"""Sheets of XLSX files, read with openpyxl: the first sheet, its first row as the header.

Formulas are not computed: a cell has the value that was saved with it, and is empty without one.
Cells with an error (#N/A, #DIV/0!) are empty.
"""

import datetime
import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from io import BytesIO
from typing import Any
from zipfile import BadZipFile, ZipFile

from forerank._text import counted
from forerank.data.encodings import file_errors, open_bytes
from forerank.data.entries import Entries
from forerank.data.files import first_line
from forerank.data.frames import filled_names
from forerank.data.json_lines import clean_text
from forerank.exceptions import DataFileError

__all__ = ["check_openpyxl", "read_sheet"]

# Bytes of a file after decompression: a sheet of some million rows; a small file can be made to
# decompress to any size.
_MOST_BYTES = 1 << 31
# The code of a character in a string of a sheet, such as _x000D_ for a carriage return.
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")


def check_openpyxl() -> None:
    """ImportError where the package that reads and writes XLSX is not installed."""
    if not find_spec("openpyxl"):
        raise ImportError(
            "XLSX files are read and written with openpyxl: pip install 'forerank[label]'"
        )


def read_sheet(path: Any) -> Entries:
    """The rows of the first sheet of a file; a note names the other sheets."""
    check_openpyxl()
    with file_errors(path), open_bytes(path) as file:
        data = file.read()
    try:
        names, rows, others = _first_sheet(path, data)
    except DataFileError:
        raise
    except Exception as error:  # openpyxl raises errors of many kinds on a file that is broken
        problem = f"cannot be read as XLSX ({first_line(error)})"
        raise DataFileError(path, f"{problem}; save it again, or as CSV") from None
    _check_names(path, names)
    entries = Entries([dict(zip(names, row, strict=True)) for row in rows])
    if others:
        note = f"only the first sheet is read; {counted(len(others), 'other sheet')} skipped: "
        note += f"{', '.join(map(repr, others))}; to read one, save it as a file of its own"
        entries.notes.append(note)
    return entries


def _first_sheet(path: Any, data: bytes) -> tuple[list[str], list[list[Any]], list[str]]:
    """Header, rows of as many values, and the names of other sheets."""
    import openpyxl

    try:
        with ZipFile(BytesIO(data)) as archive:
            size = sum(part.file_size for part in archive.infolist())
    except BadZipFile:
        problem = "this is not an XLSX file; check its format, or save it as CSV"
        raise DataFileError(path, problem) from None
    if size > _MOST_BYTES:
        raise DataFileError(path, f"{size:,} bytes after decompression are too many; split it")
    book = openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=True)
    try:
        if not book.worksheets:
            raise DataFileError(path, "there is no sheet with cells in the file")
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # the file may declare any number of columns
        cells = [row for row in _rows(sheet) if any(value is not None for value in row)]
        others = [each.title for each in book.worksheets[1:]]
    finally:
        book.close()
    if not cells:
        raise DataFileError(path, f"the sheet {sheet.title!r} is empty; put the records first")
    width = max(map(len, cells))
    header, *rows = [[*row, *[None] * (width - len(row))] for row in cells]
    used = [k for k in range(width) if any(row[k] is not None for row in (header, *rows))]
    names = ["" if header[k] is None else str(header[k]).strip() for k in used]
    return filled_names(names), [[row[k] for k in used] for row in rows], others


def _rows(sheet: Any) -> Iterator[list[Any]]:
    for row in sheet.iter_rows():
        values = [None if cell.data_type == "e" else _value(cell.value) for cell in row]
        while values and values[-1] is None:
            values.pop()
        yield values


def _value(value: Any) -> Any:
    """A cell as a string, number, boolean or date; times of day and durations as text."""
    if isinstance(value, str):
        return clean_text(_ESCAPE.sub(lambda code: chr(int(code[1], 16)), value)) or None
    if isinstance(value, datetime.time | datetime.timedelta):
        return str(value)
    return value


def _check_names(path: Any, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataFileError(path, f"more than one column is called {name!r}; rename one", 1)
        seen.add(name)
