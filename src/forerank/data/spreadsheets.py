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
from forerank.data.entries import Entries, check_size
from forerank.data.files import first_line
from forerank.data.frames import filled_names
from forerank.data.json_lines import clean_text
from forerank.exceptions import DataFileError

__all__ = ["check_openpyxl", "read_sheet"]

# Bytes of a file after decompression: a sheet of some million rows; a small file can be made to
# decompress to any size.
_MOST_BYTES = 1 << 31
# Bytes after decompression for each byte of the file, beyond _SMALL_BYTES: text in XML has 5 to 50,
# and a file that was made to fill the memory up to 1,000.
_MOST_EXPANSION, _SMALL_BYTES = 200, 1 << 26
# Rows of a sheet, as Excel has them; a row may claim any number, and those before it count.
_MOST_ROWS = 1 << 20
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
    if size > max(_SMALL_BYTES, min(_MOST_BYTES, _MOST_EXPANSION * len(data))):
        raise DataFileError(path, f"{size:,} bytes after decompression are too many; split it")
    book = openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=True)
    try:
        if not book.worksheets:
            raise DataFileError(path, "there is no sheet with cells in the file")
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # the file may declare any number of columns
        cells = [row for row in _rows(path, sheet) if row]
        others = [each.title for each in book.worksheets[1:]]
    finally:
        book.close()
    if not cells:
        raise DataFileError(path, f"the sheet {sheet.title!r} is empty; put the records first")
    used = sorted({k for row in cells for k, value in enumerate(row) if value is not None})
    check_size(path, used, len(cells))
    header, *rows = [[row[k] if k < len(row) else None for k in used] for row in cells]
    names = ["" if name is None else str(name).strip() for name in header]
    return filled_names(names), rows, others


def _rows(path: Any, sheet: Any) -> Iterator[list[Any]]:
    """The values of each row up to its last one; none for an empty row."""
    for number, row in enumerate(sheet.iter_rows(), 1):
        if number > _MOST_ROWS:
            problem = f"the sheet {sheet.title!r} has more than {_MOST_ROWS:,} rows"
            raise DataFileError(path, f"{problem}; save it as CSV")
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
