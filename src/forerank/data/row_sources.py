"""Sources of rows that are read block by block, as often as needed: files, and Arrow streams.

A source yields `Batch`es: a block of columns as an array in C order, and labels, weights and group
labels of its rows. Memory does not grow with the number of rows.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._text import listed
from forerank._validation import is_integer
from forerank.data.formats import check_readable, file_kind
from forerank.data.frames import to_frame
from forerank.data.group_labels import group_values
from forerank.data.readers import (
    check_columns,
    csv_types,
    iter_batches,
    iter_table,
    refuse_equal_names,
    sliced_batches,
    table_schema,
)
from forerank.exceptions import DataFileError

__all__ = ["ArraySource", "Batch", "TableSource", "find_files", "known_rows", "name_of_files"]
__all__ += ["open_source"]

# Formats that are read in blocks.
_STREAMED = ("csv", "tsv", "parquet", "feather")
# Types of columns of frames and of files whose values float32 has exactly.
_SINGLE = {"float16", "float32", "halffloat", "float", "int8", "int16", "uint8", "uint16", "bool"}
_SINGLE |= {"boolean"}
# Options of `open_source` that say how the files of a format are read.
_READING = {"csv": ("delimiter", "encoding", "format"), "tsv": ("encoding", "format")}


@dataclass
class Batch:
    """Columns, labels, weights (or None) and group labels (or None) of some rows."""

    X: Any
    labels: NDArray
    weight: NDArray | None = None
    group: NDArray | None = None


def find_files(paths: Any) -> list[Path]:
    """The files of a path, a pattern such as "data/*.parquet", or a list of either, sorted."""
    given = [paths] if isinstance(paths, str | Path) else paths
    if not isinstance(given, list | tuple) or not all(isinstance(p, str | Path) for p in given):
        raise TypeError(
            f"Rows are given as {type(paths).__name__}; a path, a pattern such as 'data/*.csv', a "
            "list of paths, an object with __arrow_c_stream__ or a function that returns one is "
            "expected. Arrays are fitted in memory, or saved as a .npy file."
        )
    found: list[Path] = []
    for path in given:
        matches = sorted(glob(str(path))) if not Path(path).exists() else [str(path)]
        if not matches:
            raise DataFileError(path, "there is no such file, and no file matches it as a pattern")
        if Path(path).is_dir():
            pattern = str(Path(path) / "*.parquet")
            raise DataFileError(path, f"this is a directory; give a pattern such as {pattern!r}")
        found += map(Path, matches)
    if not found:
        raise ValueError("The list of files is empty; give at least one path.")
    times = Counter(path.resolve() for path in found)
    twice = [path for path in found if times[path.resolve()] > 1]
    if twice:
        raise DataFileError(
            twice[0], "the file is given twice, and its rows would count twice; give it once"
        )
    return found


def known_rows(files: Sequence[Path], format: str | None = None) -> int | None:
    """The number of rows of Parquet files, by their metadata; None for others, which have to be
    read for it, and for damaged ones, of which the reader says more.
    """
    if not files or any(file_kind(path, format) != "parquet" for path in files):
        return None
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return sum(pq.read_metadata(path).num_rows for path in files)
    except (OSError, pa.ArrowException):
        return None


class TableSource:
    """Tables with named columns: files of one format, or an object with `__arrow_c_stream__`.

    Parameters
    ----------
    data : list of paths, or an object with `__arrow_c_stream__`, or a function that returns one
    target, group, weight : str
        Names of the columns with labels, and, optionally, groups and weights.
    columns : list of str, optional
        The columns of X; by default all others.
    drop : list of str
        Columns that are not used.

    Attributes
    ----------
    words, gaps : lists of str
        Columns of X that are not numbers, and those with missing values among the first rows.
    """

    transformer = None

    def __init__(
        self,
        data: Any,
        target: str,
        group: str | None = None,
        weight: str | None = None,
        columns: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        **reading: Any,
    ) -> None:
        self._data, self._reading = data, reading
        self.files: list[Path] = data if isinstance(data, list) else []
        self.name: Any = name_of_files(self.files) if self.files else "the stream"
        self._special = target, group, weight
        _refuse_other_names(self.name, columns, drop, target=target, group=group, weight=weight)
        self._has_rows = False
        head = self._head()
        self._has_rows = len(head) > 0
        names = list(head.columns)
        check_columns(self.name, names, target, group, weight, *(columns or ()), *drop)
        used = {name for name in (target, group, weight, *drop) if name is not None}
        self.columns = [name for name in names if name not in used]
        if columns is not None:
            self.columns = list(columns)
        if not self.columns:
            raise DataFileError(self.name, "no column is left for X; add columns")
        self.n_columns_read = len(self.columns)
        self._first_types = head[self.columns].dtypes
        self.words = _words(head[self.columns])
        self.gaps = [name for name in self.columns if head[name].isna().any()]

    @property
    def n_rows(self) -> int | None:
        """Number of rows, where it is known before they are read."""
        return known_rows(self.files, self._reading.get("format"))

    def _head(self) -> Any:
        """The first rows; those of an empty file where there are no others."""
        empty = None
        for frame in self.frames(None):
            if len(frame):
                return frame
            empty = frame if empty is None else empty
        if empty is None:
            raise DataFileError(self.name, "there are no rows")
        return empty

    def frames(
        self, columns: Sequence[str] | None, csv_options: Mapping[str, Any] | None = None
    ) -> Iterator[Any]:
        """All rows as frames, file by file.

        `csv_options` are `types` and `readings` of columns of CSV files; the types of other columns
        are those of the first block of a file.
        """
        if not self.files:
            n_rows = 0
            for frame in _arrow_frames(self._data, columns):
                n_rows += len(frame)
                yield frame
            if self._has_rows and not n_rows:
                raise DataFileError(
                    self.name, "it had rows at the first read and has none now; give a table, or a "
                    "function that opens the stream"
                )  # fmt: skip
            return
        for path in self.files:
            if file_kind(path, self._reading.get("format")) in ("csv", "tsv"):
                yield from self._csv_frames(path, columns, csv_options)
            else:
                for batch in iter_batches(path, columns=columns, **self._reading):
                    yield _frame_of(batch)

    def _csv_frames(
        self, path: Path, columns: Sequence[str] | None, given: Mapping[str, Any] | None
    ) -> Iterator[Any]:
        options: dict[str, Any] = {**self._reading, "columns": columns}
        if given is not None:
            options |= {**given, "types": {**csv_types(path, **options), **given["types"]}}
        yield from iter_table(path, allow_empty=len(self.files) > 1, **options)

    def with_special(self, columns: Sequence[str]) -> list[str]:
        """These columns and those of labels, groups and weights."""
        special = [name for name in self._special if name is not None]
        return list(dict.fromkeys([*columns, *special]))

    def _matrix_type(self) -> type:
        """float32 where it has the values of all columns of all files exactly, else float64."""
        if any(str(kind).lower() not in _SINGLE for kind in self._first_types):
            return np.float64
        for path in self.files[1:]:
            schema = table_schema(path, self._reading.get("format"))
            for name in self.columns:
                if name in schema.names and str(schema.field(name).type) not in _SINGLE:
                    return np.float64
        return np.float32

    def batches(self) -> Iterator[Batch]:
        """All rows, block by block."""
        begin, dtype = 0, self._matrix_type()
        for frame in self.frames(self.with_special(self.columns)):
            X: NDArray = np.empty((len(frame), len(self.columns)), dtype=dtype)
            for k, name in enumerate(self.columns):
                X[:, k] = self._numbers(frame[name], dtype)
            yield self.batch(X, frame, begin)
            begin += len(frame)

    def batch(self, X: Any, frame: Any, begin: int) -> Batch:
        """X with labels, weights and groups of a frame, whose first row is row `begin` of all."""
        target, group, weight = self._special
        return Batch(
            X,
            self._known(frame[target], "label", begin),
            None if weight is None else self._numbers(frame[weight], np.float64),
            None if group is None else self._known(frame[group], "group", begin),
        )

    def _numbers(self, column: Any, dtype: type) -> NDArray:
        try:
            return column.to_numpy(dtype=dtype, na_value=np.nan)
        except (TypeError, ValueError):
            remedy = "leave it out with drop, or let open_rows prepare it (prepare=True)"
            if column.name == self._special[2]:
                remedy = "give weights as numbers"
            raise DataFileError(
                self.name, f"the column {column.name!r} has values that are not numbers; {remedy}"
            ) from None

    def _known(self, column: Any, what: str, begin: int) -> NDArray:
        missing = column.isna().to_numpy()
        if missing.any():
            row = begin + int(np.argmax(missing)) + 1
            raise DataFileError(
                self.name, f"the {what} column {column.name!r} is empty in row {row:,}; remove it"
            )
        if what == "group":
            return group_values(column)
        values = column.to_numpy()
        return values if values.dtype.kind in "biuf" else values.astype(str)


def _arrow_frames(data: Any, columns: Sequence[str] | None) -> Iterator[Any]:
    import pyarrow as pa

    stream = data() if callable(data) else data
    if not hasattr(stream, "__arrow_c_stream__"):
        raise TypeError(
            f"The function returned {type(stream).__name__}; an object with __arrow_c_stream__ is "
            "expected, such as an Arrow table or a polars frame."
        )
    reader = pa.RecordBatchReader.from_stream(stream)
    refuse_equal_names("the stream", reader.schema.names)
    for batch in reader:
        for some in sliced_batches(batch if columns is None else batch.select(list(columns))):
            yield _frame_of(some)


def _frame_of(batch: Any) -> Any:
    """A batch as a frame; true and false stay truth values, which are numbers here."""
    import pyarrow as pa

    frame = to_frame(pa.Table.from_batches([batch]))
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if pa.types.is_boolean(field.type):
            frame[field.name] = column.to_pandas()
    return frame


def _words(frame: Any) -> list[str]:
    """Columns that are not numbers."""
    from pandas.api import types

    return [name for name in frame.columns if not types.is_numeric_dtype(frame[name].dtype)]


def name_of_files(files: list[Path]) -> Any:
    """What an error calls files; rows are counted over all of them."""
    return files[0] if len(files) == 1 else f"{files[0]} to {files[-1].name} ({len(files)} files)"


def _refuse_other_names(
    source: Any, columns: Sequence[str] | None, drop: Sequence[str], **special: Any
) -> None:
    """An error where names of columns are not strings, or a column has two uses."""
    for argument, given in {"columns": columns, "drop": drop}.items():
        if isinstance(given, str):
            raise TypeError(f"{argument}={given!r} is a string; give a list of names: [{given!r}].")
    for argument, name in special.items():
        if name is not None and not isinstance(name, str):
            raise TypeError(
                f"{argument} is of type {type(name).__name__}; the {argument} of a table is the "
                "name of one of its columns (numbers and arrays are for .npy files)."
            )
    for name in columns or ():
        if name == special["target"] or name in drop:
            use = "in drop" if name in drop else "the target"
            raise DataFileError(source, f"the column {name!r} is in columns and {use}; choose one")


class ArraySource:
    """A .npy file with a matrix in C order, which is read in place, and its labels.

    `target` is a column number, an array, or another .npy file; so are `group` and `weight`.
    """

    words: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    transformer = None

    def __init__(self, path: Path, target: Any, group: Any = None, weight: Any = None) -> None:
        check_readable(path)
        self.files, self.name = [path], path  # files of labels are added
        shape, self.file_type, self.offset = _npy_header(path)
        if len(shape) != 2 or self.file_type not in (np.float32, np.float64):
            raise DataFileError(
                path,
                f"expected a matrix of float32 or float64 in C order, found shape {shape} of "
                f"{self.file_type}; save it as np.ascontiguousarray(X, dtype=np.float32)",
            )
        self.n_rows, self.n_file_columns = shape
        expected = self.offset + self.n_rows * self.n_file_columns * self.file_type.itemsize
        if path.stat().st_size < expected:
            raise DataFileError(
                path, f"the file is truncated: {path.stat().st_size:,} of {expected:,} bytes"
            )
        self._special = [self._special_column(each) for each in (target, group, weight)]
        numbers = {each for each in self._special if isinstance(each, int)}
        self.kept = [k for k in range(self.n_file_columns) if k not in numbers]
        self.columns = [f"x{k}" for k in self.kept]
        self.n_columns_read = len(self.columns)

    def _special_column(self, given: Any) -> Any:
        if given is None:
            return None
        if is_integer(given):
            if not 0 <= given < self.n_file_columns:
                expected = f"a number from 0 to {self.n_file_columns - 1} is expected"
                raise DataFileError(self.name, f"there is no column {given}; {expected}")
            return int(given)
        if isinstance(given, str | Path):
            self.files.append(Path(given))
            given = _mapped(Path(given))
        values = np.asarray(given)
        if values.shape != (self.n_rows,):
            raise DataFileError(
                self.name,
                f"{self.n_rows:,} rows, but labels, groups or weights of shape {values.shape}; "
                "give one value per row",
            )
        return values

    def batches(self) -> Iterator[Batch]:
        """All rows, block by block."""
        size = max(1, 2**22 // (self.n_file_columns * self.file_type.itemsize))
        with self.name.open("rb") as file:
            file.seek(self.offset)
            for begin in range(0, self.n_rows, size):
                n = min(size, self.n_rows - begin)
                whole = np.fromfile(file, self.file_type, n * self.n_file_columns)
                if whole.size < n * self.n_file_columns:
                    raise DataFileError(self.name, "the file became shorter while it was read")
                yield self.batch(whole.reshape(n, -1), begin)

    def batch(self, block: NDArray, begin: int) -> Batch:
        """Rows of a block of the file, of which the first is row `begin`."""
        labels, group, weight = (
            None if each is None else block[:, each] if isinstance(each, int)
            else each[begin : begin + len(block)]
            for each in self._special
        )  # fmt: skip
        X = block if len(self.kept) == block.shape[1] else block[:, self.kept]
        assert labels is not None
        for what, values in (("label", labels), ("group", group)):
            self._refuse_missing(values, what, begin)
            self._refuse_mixed(values, what)
        return Batch(X, np.asarray(labels), self._numbers(weight), group)

    def _numbers(self, weight: NDArray | None) -> NDArray | None:
        try:
            return None if weight is None else np.asarray(weight, dtype=float)
        except (TypeError, ValueError):
            raise DataFileError(self.name, "weights are not numbers; give each row one") from None

    def _refuse_missing(self, values: Any, what: str, begin: int) -> None:
        from pandas import isna

        if values is not None and (missing := isna(values)).any():
            row = begin + int(np.argmax(missing)) + 1
            raise DataFileError(self.name, f"the {what} of row {row:,} is missing; remove the row")

    def _refuse_mixed(self, values: Any, what: str) -> None:
        if values is None or values.dtype != object:
            return
        words = np.array([isinstance(value, str) for value in values.tolist()])
        if words.any() and not words.all():
            word, other = values[np.argmax(words)], values[np.argmin(words)]
            raise DataFileError(
                self.name,
                f"{what}s are strings in some rows, such as {word!r}, and not in others, such as "
                f"{other!r}; write them in the same way",
            )


def _mapped(path: Path) -> NDArray:
    """The array of a .npy file, mapped into memory."""
    check_readable(path)
    try:
        return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except ValueError as error:
        raise DataFileError(path, f"not a .npy file of numbers or strings ({error})") from None


def _npy_header(path: Path) -> tuple[tuple[int, ...], np.dtype, int]:
    """Shape, type and offset of the entries; Fortran order counts as another type."""
    with path.open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            shape, fortran, dtype = read(file)
        except (ValueError, KeyError) as error:
            raise DataFileError(path, f"not a .npy file ({error})") from None
        return shape, np.dtype(object) if fortran and len(shape) > 1 else dtype, file.tell()


def open_source(
    data: Any,
    target: Any,
    group: Any = None,
    weight: Any = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    **reading: Any,
) -> TableSource | ArraySource:
    """The source of rows of files, or of an object with `__arrow_c_stream__`."""
    if hasattr(data, "__arrow_c_stream__") or callable(data):
        _refuse_options("the stream", reading, (), "an Arrow stream")
        _refuse_reader(data)
        return TableSource(data, target, group, weight, columns, drop)
    files = find_files(data)
    if any(path.suffix == ".npy" for path in files):
        if len(files) > 1:
            raise DataFileError(files[0], "one .npy file is expected; use Parquet for several")
        given = {"columns": columns, "drop": drop or None}
        given = {name: value for name, value in given.items() if value is not None}
        _refuse_options(files[0], reading | given, (), "a .npy file")
        return ArraySource(files[0], target, group, weight)
    kinds = {file_kind(path, reading.get("format")) for path in files}
    if len(kinds) > 1 or not kinds <= set(_STREAMED):
        raise DataFileError(
            files[0],
            f"files of format {listed(sorted(kinds))} cannot be read block by block together; "
            f"convert them to one of {', '.join(_STREAMED)} or npy",
        )
    (kind,) = kinds
    _refuse_options(files[0], reading, _READING.get(kind, ("format",)), f"a {kind} file")
    return TableSource(files, target, group, weight, columns, drop, **reading)


def _refuse_options(
    source: Any, given: Mapping[str, Any], allowed: Sequence[str], kind: str
) -> None:
    """An error for an option that rows of this kind do not have."""
    for name in given:
        if name not in allowed:
            raise DataFileError(source, f"{name} does not apply to {kind}; omit it")


def _refuse_reader(data: Any) -> None:
    """An error for a stream that is empty after it was read once."""
    import pyarrow as pa

    if isinstance(data, pa.RecordBatchReader):
        raise DataFileError(
            "the stream",
            "a RecordBatchReader can be read only once; give its table, or a function that opens "
            "the stream",
        )
