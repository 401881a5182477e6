"""Entries: records that name their own fields (RIS, BibTeX, JSON lines) or come as cells of mixed
types (XLSX), as columns of one table.
"""

import codecs
import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from forerank._text import counted
from forerank.data.encodings import (
    binary_problem,
    checked_encoding,
    encoding_problem,
    file_errors,
    open_bytes,
)
from forerank.data.labels import label_text
from forerank.exceptions import DataFileError

__all__ = ["Entries", "arrow_column", "check_size", "named_lines", "read_text", "value_text"]

# Most values of a table of entries, empty ones counted: 1,000,000 records of 100 fields. Records
# that each bring new names would fill the memory otherwise.
_MOST_VALUES = 100_000_000
# Line numbers that a note names.
_MOST_LINES = 5


@dataclass
class Entries:
    """Records of a file that was read whole.

    Attributes
    ----------
    rows : list of dict
        Values by name; a name that a record lacks is missing there.
    notes : list of str
        What was skipped or changed, with line numbers.
    """

    rows: list[dict[str, Any]]
    notes: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Names in the order of their first appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row))


def read_text(path: Any, encoding: str | None = None) -> str:
    """The text of a file with newlines as line ends; decompressed by its suffix.

    UTF-8 by default, or what the byte order mark says; other text is a `DataFileError` that names
    the line and the encoding to try.
    """
    with file_errors(path):
        with open_bytes(path, checked_encoding(path, encoding)) as file:
            data = file.read().removeprefix(codecs.BOM_UTF8)
        if b"\x00" in data:
            raise binary_problem(data)
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise encoding_problem(data, 1) from None


def check_size(path: Any, names: Sequence[Any], n_rows: int) -> None:
    """An error for a table with more values than memory is likely to hold."""
    if len(names) * n_rows > _MOST_VALUES:
        size = f"{counted(n_rows, 'record')} with {len(names):,} different fields"
        raise DataFileError(path, f"{size} are too many for one table; split the file")


def arrow_column(values: Sequence[Any]) -> Any:
    """Values as a pyarrow array: numbers, dates or strings; strings where types are mixed."""
    import pyarrow as pa

    try:
        array = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        texts = [None if value is None else value_text(value) for value in values]
        return pa.array(texts, pa.string())
    return array.cast(pa.string()) if pa.types.is_null(array.type) else array


def value_text(value: Any) -> str:
    """A value as text: integers without a decimal point, dates without a time at midnight.

    Examples
    --------
    >>> value_text(2005.0), value_text(datetime.datetime(2020, 1, 3)), value_text(True)
    ('2005', '2020-01-03', 'true')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    return label_text(value)


def named_lines(lines: Iterable[int]) -> str:
    """Line numbers in a sentence: "line 7", "lines 7, 9 and 3 more".

    Examples
    --------
    >>> named_lines([7]), named_lines(range(1, 9))
    ('line 7', 'lines 1, 2, 3, 4, 5 and 3 more')
    """
    numbers = list(lines)
    shown = ", ".join(f"{number:,}" for number in numbers[:_MOST_LINES])
    more = f" and {len(numbers) - _MOST_LINES:,} more" if len(numbers) > _MOST_LINES else ""
    return f"line{'' if len(numbers) == 1 else 's'} {shown}{more}"
