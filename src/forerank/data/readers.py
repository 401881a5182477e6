"""Reading data files: the reader is chosen by the suffix, and pyarrow and scikit-learn do the
reading.

Tables (CSV, TSV, Parquet, Feather) become pandas frames, whole or in chunks; svmlight files and
NumPy archives become matrices with labels and groups. A file that cannot be used raises
`DataFileError`: one line that names the file and, where there is one, the line.
"""

import bz2
import codecs
import gzip
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.util import find_spec
from io import BufferedReader, BytesIO, RawIOBase, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from forerank._text import listed
from forerank.data.csv import DELIMITERS, CsvFile, named
from forerank.data.files import first_line
from forerank.exceptions import CsvProblem, DataFileError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Matrix",
    "file_kind",
    "iter_table",
    "pick_columns",
    "read_matrix",
    "read_table",
]

_KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".npz": "npz",
}
_FORMATS = {
    "csv": "csv",
    "tsv": "tsv",
    "parquet": "parquet",
    "feather": "feather",
    "svm": "svmlight",
    "npz": "npz",
}
_PACKED = {".gz": gzip.open, ".bz2": bz2.open}
# What texts in UTF-16 and UTF-32 begin with; the longer marks first, since they begin like the
# shorter ones.
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Whole numbers beyond this are not told apart by doubles.
LARGEST_EXACT = 2**53
# Lines of svmlight that are read at a time in search of a bad one.
_LINES_AT_A_TIME = 4096
# A group, and not in a comment.
_QID = re.compile(rb"(?m)^[^#\n]*\sqid:")


@dataclass(frozen=True)
class Matrix:
    """Rows, labels and groups of an svmlight file or a NumPy archive.

    Attributes
    ----------
    X : CSR matrix or array
    y : array
    qid : array or None
        The group of each row, where the file has groups.
    zero_based : bool
        Whether the columns of an svmlight file are counted from 0.
    """

    X: Any
    y: NDArray
    qid: NDArray | None
    zero_based: bool = True


def check_readable(path: Any) -> None:
    """Refuse a file that is not there, a directory, an empty file."""
    target = Path(path)
    if not target.exists():
        raise DataFileError(path, "there is no such file")
    if target.is_dir():
        raise DataFileError(path, "this is a directory")
    if target.is_file() and target.stat().st_size == 0:
        raise DataFileError(path, "the file is empty")


def file_kind(path: Any, format: str | None = None) -> str:
    """One of "csv", "tsv", "parquet", "feather", "svmlight" and "npz", by the suffix; .gz and .bz2
    may follow it.

    A `format` ("csv", "tsv", "parquet", "feather", "svm" or "npz") goes before the suffix.

    Examples
    --------
    >>> file_kind("leads.csv.gz"), file_kind("a9a.svm")
    ('csv', 'svmlight')
    """
    if format is not None:
        kind = _FORMATS.get(
            format.lower().lstrip("."), _KINDS.get("." + format.lower().lstrip("."))
        )
        if kind is None:
            raise DataFileError(
                path, f"there is no format {format!r}; choose one of {', '.join(_FORMATS)}"
            )
        return kind
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    kind = _KINDS.get(suffixes[-1]) if suffixes else None
    if kind is None:
        known = ", ".join(sorted(_KINDS))
        raise DataFileError(
            path,
            f"the suffix says nothing about what is in it; known are {known}, also with .gz or .bz2; name its format",
            arguments={"format": "csv"},
        )
    return kind


def read_table(
    path: Any,
    *,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    types: Any = None,
    categories: int = 0,
    encoding: str | None = None,
    format: str | None = None,
    missing: Mapping[str, Sequence[str]] | None = None,
) -> "pd.DataFrame":
    """A whole table as a frame.

    Parameters
    ----------
    path : path
        CSV, TSV, Parquet or Feather, by the suffix.
    columns : list of str, optional
        Only these.
    delimiter : str, optional
        Of a CSV file; guessed from its header.
    types : mapping from names to pyarrow types, optional
        Of columns of a CSV file; others are guessed from all rows.
    categories : int, default=0
        Columns of a CSV file with at most so many different strings become categoricals, which take
        far less memory.
    encoding : str, optional
        Of a CSV file, such as "cp1252"; by default UTF-8, or UTF-16 where the file begins with its
        byte order mark.
    format : str, optional
        What the file is, where its suffix does not say so; see `file_kind`.
    missing : mapping from names to words, optional
        Columns of numbers of a CSV file, and the words in them that stand for a missing one.
    """
    import pyarrow as pa

    kind = file_kind(path, format)
    reader = _CsvReader(delimiter, encoding, types, categories, missing or {})
    parts = list(_batches(path, kind, columns, reader, whole=True))
    # Of a CSV file there is one part, a table: no other name may hold it while its columns are
    # handed over.
    frame = to_frame(
        parts.pop() if isinstance(parts[0], pa.Table) else pa.Table.from_batches(parts)
    )
    pa.default_memory_pool().release_unused()  # what parsing took, twice the size of the frame
    return frame


def iter_table(
    path: Any,
    *,
    rows: int = 65536,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    types: Any = None,
    encoding: str | None = None,
    format: str | None = None,
) -> "Iterator[pd.DataFrame]":
    """A table as frames of at most so many rows, in a memory that does not grow with the file.

    Parameters
    ----------
    path, columns, delimiter, encoding, format
        As in `read_table`.
    rows : int, default=65536
    types : mapping from names to pyarrow types, optional
        Of the columns of a CSV file. Without it they are those of its first block (4 MB), and a
        later value that is something else is an error.
    """
    import pyarrow as pa

    reader = _CsvReader(delimiter, encoding, types)
    for batch in _batches(path, file_kind(path, format), columns, reader, whole=False):
        for begin in range(0, batch.num_rows, rows):
            yield to_frame(pa.Table.from_batches([batch.slice(begin, rows)]))


def read_matrix(path: Any, *, zero_based: bool | None = None, format: str | None = None) -> Matrix:
    """A whole svmlight file (with or without qid, packed or not) or NumPy archive (X or the parts
    of a CSR, y, qid).

    Columns of svmlight are counted from 0 where `zero_based`; by default where the file has a
    column 0. The `format` is that of `file_kind`.
    """
    kind = file_kind(path, format)
    check_readable(path)
    if kind == "npz":
        return _read_npz(path)
    if kind != "svmlight":
        raise DataFileError(
            path,
            "this is a table, not a matrix; svmlight (.svm, .svmlight, .libsvm) or .npz is expected",
        )
    return _stacked(path, list(iter_matrix(path, zero_based=zero_based is not False)), zero_based)


def pick_columns(path: Any, names: Sequence[str], *wanted: str | None) -> None:
    """Refuse a name that is not among the columns, with the nearest one that is."""
    for name in wanted:
        if name is None or name in names:
            continue
        alike = {each.lower(): each for each in names}
        near = [alike[word] for word in get_close_matches(name.lower(), alike, n=1, cutoff=0.5)]
        shown = listed(map(repr, names))
        hint = f"; did you mean {near[0]!r}?" if near else "."
        if len(names) == 1 and any(mark in names[0] for mark in DELIMITERS):
            hint = "; is the delimiter another one?"
        raise DataFileError(path, f"there is no column {name!r}{hint} The columns are {shown}")


# --- Tables ---


@dataclass(frozen=True)
class _CsvReader:
    """How a CSV file is read; the parameters are those of `read_table`."""

    delimiter: str | None = None
    encoding: str | None = None
    types: Mapping[str, Any] | None = None
    categories: int = 0
    missing: Mapping[str, Sequence[str]] = field(default_factory=dict)


def open_csv(
    path: Any,
    delimiter: str | None = None,
    *,
    encoding: str | None = None,
    format: str | None = None,
) -> CsvFile:
    """A CSV file that can be read block by block."""
    check_readable(path)
    if delimiter is not None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
        if len(delimiter.encode()) != 1 or delimiter in '"\r\n':
            raise DataFileError(
                path, f"the delimiter is one character such as ',' or ';', not {delimiter!r}"
            )
    with own_errors(path):
        encoding = _checked_encoding(path, encoding)
        return CsvFile(
            lambda: _unpacked(path, encoding),
            "\t" if file_kind(path, format) == "tsv" else delimiter,
        )


@contextmanager
def own_errors(path: Any) -> Iterator[None]:
    """What goes wrong with a CSV file is said of this path."""
    try:
        yield
    except CsvProblem as problem:
        raise DataFileError(path, problem.problem, problem.line, problem.arguments) from None
    except UnicodeError as error:
        raise DataFileError(
            path, f"not text in the encoding that was named ({first_line(error)})"
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataFileError(path, f"cannot be read ({first_line(error)})") from None


def iter_batches(path: Any, *, format: str | None = None) -> Iterator:
    """A Parquet or Feather file as pyarrow batches; at least one, which may be empty."""
    kind = file_kind(path, format)
    check_readable(path)
    yield from _columnar(path, kind, None)


def _batches(
    path: Any, kind: str, columns: Sequence[str] | None, reader: _CsvReader, *, whole: bool
) -> Iterator:
    check_readable(path)
    if not all(find_spec(name) for name in ("pandas", "pyarrow")):
        raise ImportError("Tables are read with pandas and pyarrow: pip install 'forerank[files]'")
    if kind in ("svmlight", "npz"):
        raise DataFileError(
            path,
            "this is a matrix without column names; a table (CSV, TSV, Parquet, Feather) is expected",
        )
    empty = True
    if kind in ("csv", "tsv"):
        batches = _csv(path, kind, columns, reader, whole)
    elif reader.encoding is not None:
        raise DataFileError(
            path, f"an encoding is one of text files; {kind.capitalize()} has its own"
        )
    else:
        batches = _columnar(path, kind, columns)
    for batch in batches:
        empty = empty and batch.num_rows == 0
        yield batch
    if empty:
        raise DataFileError(path, "there are column names but no rows")


def _csv(path: Any, kind: str, columns: Any, reader: _CsvReader, whole: bool) -> Iterator:
    import pyarrow as pa

    file = open_csv(path, reader.delimiter, encoding=reader.encoding, format=kind)
    pick_columns(path, file.names, *(columns or []))
    types, missing = (
        reader.types,
        {name: reader.missing[name] for name in reader.missing if name in file.names},
    )
    if types is not None:
        types = {name: kind for name, kind in types.items() if name in file.names}
    with own_errors(path):
        if whole:
            yield file.whole(
                columns=columns, types=types, categories=reader.categories, missing=missing
            )
            return
        if types is None:
            first = next(file.blocks(), None)
            fields = [] if first is None else file.parse(first, columns=columns).schema
            types = {field.name: field.type for field in fields if not pa.types.is_null(field.type)}
        for table in file.tables(
            columns=columns, types=types, categories=reader.categories, missing=missing
        ):
            yield from table.combine_chunks().to_batches()


def _columnar(path: Any, kind: str, columns: Any) -> Iterator:
    """The batches of a Parquet or Feather file; one that is empty where there are no rows."""
    import pyarrow as pa

    for batch in {"parquet": _parquet, "feather": _feather}[kind](path, columns):
        names = named(batch.schema.names)
        yield (
            batch
            if names == batch.schema.names
            else pa.RecordBatch.from_arrays(batch.columns, names)
        )


def _parquet(path: Any, columns: Any) -> Iterator:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            _refuse_twins(path, file.schema_arrow.names)
            pick_columns(path, file.schema_arrow.names, *(columns or []))
            yield from file.iter_batches(columns=None if columns is None else list(columns))
            if file.metadata.num_rows == 0:
                schema = file.schema_arrow
                yield pa.RecordBatch.from_pylist(
                    [], schema=schema if columns is None else _picked(schema, columns)
                )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise DataFileError(path, f"cannot be read as Parquet ({first_line(error)})") from None


def _feather(path: Any, columns: Any) -> Iterator:
    import pyarrow as pa

    try:
        with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as file:
            _refuse_twins(path, file.schema.names)
            pick_columns(path, file.schema.names, *(columns or []))
            for k in range(file.num_record_batches):
                batch = file.get_batch(k)
                yield batch if columns is None else batch.select(list(columns))
            if file.num_record_batches == 0:
                schema = file.schema if columns is None else _picked(file.schema, columns)
                yield pa.RecordBatch.from_pylist([], schema=schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise DataFileError(path, f"cannot be read as Feather ({first_line(error)})") from None


def _picked(schema: Any, columns: Sequence[str]) -> Any:
    import pyarrow as pa

    return pa.schema([schema.field(name) for name in columns])


def _refuse_twins(path: Any, names: Sequence[str]) -> None:
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise DataFileError(path, f"more than one column is called {twice[0]!r}")


def to_frame(table: Any) -> "pd.DataFrame":
    """A pyarrow table as a pandas frame: dates as such, decimals as doubles, booleans as "true" and
    "false".

    Whole numbers with gaps among them become doubles; where these would not tell them apart,
    strings.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for k, kind in enumerate(table.schema.types):
        name = table.schema.names[k]
        column = table.column(k)
        if pa.types.is_boolean(kind):
            table = table.set_column(k, name, column.cast(pa.string()))
        elif pa.types.is_decimal(kind):
            table = table.set_column(k, name, column.cast(pa.float64()))
        elif pa.types.is_time(kind):
            table = table.set_column(k, name, column.cast(pa.string()))
        elif pa.types.is_date(kind):
            table = table.set_column(k, name, column.cast(pa.timestamp("s")))
        elif (
            pa.types.is_integer(kind)
            and kind.bit_width == 64
            and 0 < column.null_count < len(column)
        ):
            bounds = pc.min_max(column).as_py()
            if max(bounds["max"], -bounds["min"]) > LARGEST_EXACT:
                table = table.set_column(k, name, column.cast(pa.string()))
    return table.to_pandas(date_as_object=False, split_blocks=True, self_destruct=True)


# --- Matrices ---


def iter_matrix(
    path: Any, *, zero_based: bool = False, block_bytes: int = 1 << 22
) -> Iterator[Matrix]:
    """An svmlight file in blocks, in a memory that does not grow with the file.

    Parameters
    ----------
    path : path
    zero_based : bool, default=False
        Whether columns are counted from 0; the format counts from 1, and some writers do not.
    block_bytes : int
        About so many bytes of text at a time.
    """
    check_readable(path)
    rest, line, empty = b"", 1, True
    with own_errors(path), _unpacked(path) as file:
        while True:
            data = file.read(block_bytes)
            text = rest + data
            cut = text.rfind(b"\n") + 1 if data else len(text)
            text, rest = text[:cut], text[cut:]
            if text.strip():
                empty = False
                yield _parse_svmlight(path, text, line, zero_based)
            line += text.count(b"\n")
            if not data:
                break
    if empty:
        raise DataFileError(path, "the file is empty")


def _parse_svmlight(path: Any, text: bytes, line: int, zero_based: bool) -> Matrix:
    try:
        X, y, qid = load_svmlight_file(BytesIO(text), query_id=True, zero_based=zero_based)
    except (ValueError, OverflowError, IndexError) as error:
        number, shown = _first_bad_line(text, zero_based)
        shown = shown if len(shown) <= 40 else shown[:40] + "..."
        problem = f"not a line of svmlight ({first_line(error)}): {shown!r}. Expected: LABEL [qid:GROUP] COLUMN:VALUE ..."
        raise DataFileError(path, problem, line + number) from None
    return Matrix(X, y, qid if _QID.search(text) else None, zero_based)


def _stacked(path: Any, parts: list[Matrix], zero_based: bool | None) -> Matrix:
    """One matrix; its parts are let go one by one. Columns are counted from 1 where there is no
    column 0.
    """
    if len({part.qid is None for part in parts}) > 1 or any(
        p.qid is not None and p.qid.size != p.y.size for p in parts
    ):
        raise DataFileError(path, "some lines have a qid and some have none")
    y = np.concatenate([part.y for part in parts])
    qid = None if parts[0].qid is None else np.concatenate([part.qid for part in parts])
    lengths = np.concatenate([np.diff(part.X.indptr) for part in parts])
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    indices, data = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1])
    n_columns, end = max(part.X.shape[1] for part in parts), int(indptr[-1])
    while parts:
        part = parts.pop().X
        indices[end - part.nnz : end], data[end - part.nnz : end] = part.indices, part.data
        end -= part.nnz
    if not y.size:
        raise DataFileError(path, "there are comments but no rows")
    if zero_based is None:
        zero_based = bool(indices.size and indices.min() == 0)
        if not zero_based:  # they were read as if they were
            indices -= 1
            n_columns = max(n_columns - 1, 0)
    return Matrix(
        sp.csr_matrix((data, indices, indptr), shape=(y.size, n_columns)), y, qid, zero_based
    )


def _first_bad_line(data: bytes, zero_based: bool) -> tuple[int, str]:
    """How many lines come before the first that cannot be parsed on its own, and its text."""
    lines = data.splitlines(keepends=True)
    for begin in range(0, len(lines), _LINES_AT_A_TIME):
        if not _parses(b"".join(lines[begin : begin + _LINES_AT_A_TIME]), zero_based):
            for number, line in enumerate(lines[begin : begin + _LINES_AT_A_TIME], start=begin):
                if not _parses(line, zero_based):
                    return number, line.decode("utf-8", "replace").strip()
    return 0, lines[0].decode("utf-8", "replace").strip()


def _parses(part: bytes, zero_based: bool) -> bool:
    try:
        load_svmlight_file(BytesIO(part), query_id=True, zero_based=zero_based)
    except (ValueError, OverflowError, IndexError):
        return False
    return True


def _read_npz(path: Any) -> Matrix:
    if not zipfile.is_zipfile(path):
        # NumPy would take it for a pickle, and speak of allowing those.
        with Path(path).open("rb") as file:
            is_text = b"\x00" not in file.read(1 << 16)
        advice = "; if it is a text file, name its format" if is_text else ""
        raise DataFileError(
            path,
            f"cannot be read as a NumPy archive: it is none, whatever its name says{advice}",
            arguments={"format": "csv"} if is_text else None,
        )
    try:
        with Path(path).open("rb") as source, np.load(source, allow_pickle=False) as file:
            parts = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        problem = "it holds Python objects" if "allow_pickle" in str(error) else first_line(error)
        raise DataFileError(path, f"cannot be read as a NumPy archive ({problem})") from None
    if "y" not in parts or not ("X" in parts or "X_data" in parts):
        raise DataFileError(
            path,
            f"X and y are expected, and the archive has {', '.join(sorted(parts)) or 'nothing'}",
        )
    if "X" in parts:
        X: Any = parts["X"]
    else:
        try:
            csr = (parts["X_data"], parts["X_indices"], parts["X_indptr"])
            X = sp.csr_matrix(csr, shape=tuple(int(n) for n in parts["X_shape"]))
            X.check_format(full_check=True)
        except (KeyError, ValueError, TypeError) as error:
            raise DataFileError(
                path, f"the parts of X do not make a CSR matrix ({first_line(error)})"
            ) from None
    if X.ndim != 2 or parts["y"].shape != (X.shape[0],):
        raise DataFileError(
            path,
            f"X has the shape {X.shape} and y {parts['y'].shape}; one label per row is expected",
        )
    return Matrix(X, parts["y"], parts.get("qid"))


# --- Files ---


def _unpacked(path: Any, encoding: str | None = None) -> BinaryIO:
    """The bytes of a file, of which those of a text in another encoding are made UTF-8."""
    opener: Any = _PACKED.get(Path(path).suffix.lower(), open)
    file = opener(path, "rb")
    return file if encoding is None else BufferedReader(_Recoded(file, encoding), 1 << 20)


class _Recoded(RawIOBase):
    """Text in some encoding, as bytes in UTF-8."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        super().__init__()
        self._text, self._rest = TextIOWrapper(file, encoding=encoding, newline=""), b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = self._text.read(max(1, len(buffer) // 4)).encode()
        part, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        if not self.closed:
            self._text.close()
        super().close()


def _checked_encoding(path: Any, encoding: str | None) -> str | None:
    """The name of an encoding, None for UTF-8; without one that of a byte order mark."""
    if encoding is None:
        with _unpacked(path) as file:
            begin = file.read(4)
        return next(
            (name for mark, name in _BYTE_ORDER_MARKS.items() if begin.startswith(mark)), None
        )
    try:
        name = codecs.lookup(encoding).name
        TextIOWrapper(BytesIO(), encoding=name)  # refuses what encodes no text
    except (LookupError, ValueError):
        raise DataFileError(
            path,
            f"there is no encoding {encoding!r}; known are utf-8, cp1252, latin-1, utf-16 and others of Python",
        ) from None
    return None if name in ("utf-8", "utf-8-sig", "ascii") else name


def usual_encoding(path: Any, encoding: str | None) -> str | None:
    """The encoding to read a file with where others like it had this one: UTF-8 where it is that.

    A text in UTF-8 is also one in most encodings of single bytes, with other characters; the
    reverse hardly happens.
    """
    if encoding is None or _checked_encoding(path, None) is not None:
        return None
    decoder = codecs.getincrementaldecoder("utf-8")()
    with own_errors(path), _unpacked(path) as file:
        try:
            while part := file.read(1 << 20):
                if "\x00" in decoder.decode(part):
                    return encoding
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return encoding
    return None
