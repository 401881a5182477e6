"""A source of rows: a file, or data in memory, with how to read it and how to name it in errors."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Index
from forerank.data.bibliography import TEXT_KINDS
from forerank.data.column_kinds import COLUMN_TYPES, arrow_types
from forerank.data.encodings import usual_encoding
from forerank.data.formats import check_readable, file_kind
from forerank.data.frames import TIME_ZONE, as_frame, column_name
from forerank.data.labels import is_unlabelled
from forerank.data.notations import Reading
from forerank.data.readers import Matrix, iter_table, open_csv, read_matrix, read_table
from forerank.data.readings import declared_reading
from forerank.exceptions import DataFileError

__all__ = ["DataSource", "ReadOptions", "is_frame"]

# Most different strings of a column of a CSV file that is held as codes, which take less memory.
_MOST_CATEGORIES = 4096


@dataclass(frozen=True)
class ReadOptions:
    """How data are read; see `forerank.workflows.fit.fit` for the meaning of each.

    `types` and `drop` name columns of a table; `delimiter` is that of a CSV file, `encoding`
    that of a text file; `format` replaces the suffix of a file name; `skip_unlabelled` excludes
    rows without a label.
    """

    delimiter: str | None = None
    encoding: str | None = None
    format: str | None = None
    types: Mapping[str, str] | None = None
    drop: Iterable[str] = ()
    skip_unlabelled: bool = False

    def __post_init__(self) -> None:
        types = {column_name(name): kind for name, kind in (self.types or {}).items()}
        for name, kind in types.items():
            if kind not in COLUMN_TYPES:
                known = ", ".join(COLUMN_TYPES)
                raise ValueError(f"The type of {name!r} is {kind!r}; choose one of {known}.")
        object.__setattr__(self, "types", types)
        object.__setattr__(self, "drop", [column_name(name) for name in self.drop])


def is_frame(data: Any) -> bool:
    """Whether data is a pandas, polars or Arrow table."""
    return hasattr(data, "columns") or hasattr(data, "to_pandas")


class DataSource:
    """A file or data in memory.

    Parameters
    ----------
    data : path, pandas or polars frame, or Matrix
    options : ReadOptions
    usual : str, optional
        Encoding of similar files, used unless this file is UTF-8.

    Attributes
    ----------
    name : str or None
        File name; None for data in memory.
    path : Any
        The path, or words for data in memory, to begin an error message with.
    is_table : bool
        Whether columns have names; False for svmlight files, NumPy archives and `Matrix`.
    encoding : str or None
        Of a text file; None for UTF-8.
    selected : array or None
        Numbers of the rows that are used; None for all. Errors count all rows.
    """

    def __init__(
        self, data: Any, options: ReadOptions | None = None, *, usual: str | None = None
    ) -> None:
        options = options or ReadOptions()
        self._data, self.options = data, options
        in_memory = isinstance(data, Matrix) or is_frame(data)
        kind = None if in_memory else _kind(data, options.format)
        self.is_table = not isinstance(data, Matrix) and kind not in ("svmlight", "npz")
        self.path: Any = data
        if in_memory:
            self.path = "the table" if self.is_table else "the matrix"
        self.name = None if in_memory else Path(data).name
        self._is_csv = kind in ("csv", "tsv")
        self.encoding, is_text = options.encoding, kind in TEXT_KINDS
        if self.encoding is not None and not is_text:
            raise self.error("encoding applies to text files only; omit it")
        if self.encoding is None and is_text:
            self.encoding = usual_encoding(data, usual)
        self.selected: Index | None = None

    def frame(
        self, columns: Mapping[str, str], readings: Mapping[str, Reading] | None = None
    ) -> Any:
        """The table; `columns` of a CSV file are read as these kinds, regardless of their values.

        `readings` are those of columns of strings that hold numbers or dates.
        """
        if self.name is None:
            return as_frame(self._data)
        options = {**self._csv_options, "types": arrow_types(columns), "readings": readings}
        return as_frame(read_table(self.path, categories=_MOST_CATEGORIES, **options))

    def matrix(self, zero_based: bool | None = None) -> Matrix:
        """Rows, labels and groups of a source that is not a table."""
        if self.name is None:
            return self._data
        return read_matrix(self.path, zero_based=zero_based, format=self.options.format)

    def kinds_to_read(self, columns: Mapping[str, str]) -> Mapping[str, str]:
        """Kinds in which declared columns of a CSV file are read, by the first rows.

        Dates have a zone if the first value has one; numbers and dates in another notation are read
        as text (see `forerank.data.readings`).
        """
        import pyarrow as pa

        parsed = [name for name, kind in columns.items() if kind in ("number", "date")]
        if not parsed or not self._is_csv:
            return columns
        texts = dict.fromkeys(parsed, pa.string())
        head = next(iter_table(self.path, columns=parsed, types=texts, **self._csv_options))
        first = head.bfill().iloc[0].astype(str)
        zoned = first.index[first.str.contains(TIME_ZONE)]
        zones = {name: "date with zone" for name in zoned if columns[name] == "date"}
        written = [name for name in parsed if declared_reading(head[name], columns[name])]
        return {**columns, **zones, **dict.fromkeys(written, "text")}

    def select_labelled(self, column: Any, target: str) -> list[str]:
        """Select the rows that have a label; a note where some have none."""
        unlabelled = is_unlabelled(column)
        if not unlabelled.any():
            return []
        if unlabelled.all():
            raise self.error(f"no row has a label in {target!r}; check the target")
        self.selected = np.flatnonzero(~unlabelled)
        counts = f"{unlabelled.sum():,} of {unlabelled.size:,} rows"
        return [f"{counts} without a label are excluded"]

    def group_names(self, frame: Any, column: str) -> NDArray:
        """A column of groups as strings."""
        if frame[column].isna().any():
            row = int(np.argmax(frame[column].isna()))
            raise self.error(f"the group column {column!r} is empty here; give each row one", row)
        return frame[column].astype(str).to_numpy()

    def position(self, row: int) -> str:
        """The line of a row of a CSV file, or the number of the row, as text."""
        line = self._line(row)
        return f"row {self._number(row) + 1:,}" if line is None else f"line {line:,}"

    def error(
        self, problem: str, row: int | None = None, arguments: Mapping[str, Any] | None = None
    ) -> DataFileError:
        """An error about a row (counted from 0), with arguments that may help."""
        if row is not None and not self._is_csv:
            problem, row = f"{self.position(row)}: {problem}", None
        line = None if row is None else self._line(row)
        return DataFileError(self.path, problem, line, arguments)

    @property
    def _csv_options(self) -> dict[str, Any]:
        delimiter, format = self.options.delimiter, self.options.format
        return {"delimiter": delimiter, "encoding": self.encoding, "format": format}

    def _number(self, row: int) -> int:
        return row if self.selected is None else int(self.selected[row])

    def _line(self, row: int) -> int | None:
        """The line of a row of a CSV file; the file is read again up to it."""
        if not self._is_csv:
            return None
        return open_csv(self.path, **self._csv_options).line_of_row(self._number(row))


def _kind(path: Any, format: str | None) -> str:
    """The format of a file; that it does not exist is reported before an unknown suffix."""
    try:
        return file_kind(path, format)
    except DataFileError:
        check_readable(path)
        raise
