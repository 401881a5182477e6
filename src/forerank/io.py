"""Reading data files: the reader is chosen by the suffix, and pyarrow and scikit-learn do the reading.

Tables (CSV, TSV, Parquet, Feather) become pandas frames, whole or in chunks; svmlight files and NumPy archives become
matrices with labels and groups. A file that cannot be used raises `DataFileError`: one line that names the file and,
where there is one, the line.
"""

import bz2
import gzip
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DataFileError", "Matrix", "file_kind", "iter_table", "pick_columns", "read_matrix", "read_table"]

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
_PACKED = {".gz": gzip.open, ".bz2": bz2.open}
_DELIMITERS = (",", ";", "\t", "|")
# Bytes that a delimiter is guessed from, and lines of svmlight that are read at a time in search of a bad one.
_HEAD_BYTES = 65536
_LINES_AT_A_TIME = 4096


class DataFileError(ValueError):
    """A file that cannot be used, in one line: the file, the line where there is one, and what to do."""

    def __init__(self, path: Any, problem: str, line: int | None = None) -> None:
        self.path, self.line = path, line
        super().__init__(f"{path}{'' if line is None else f', line {line}'}: {problem}")


@dataclass(frozen=True)
class Matrix:
    """Rows, labels and groups of an svmlight file or a NumPy archive.

    Attributes
    ----------
    X : CSR matrix or array
    y : array
    qid : array or None
        The group of each row, where the file has groups.
    """

    X: Any
    y: NDArray
    qid: NDArray | None


def file_kind(path: Any) -> str:
    """One of "csv", "tsv", "parquet", "feather", "svmlight" and "npz", by the suffix; .gz and .bz2 may follow it.

    Examples
    --------
    >>> file_kind("leads.csv.gz"), file_kind("a9a.svm")
    ('csv', 'svmlight')
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    kind = _KINDS.get(suffixes[-1]) if suffixes else None
    if kind is None:
        known = ", ".join(sorted(_KINDS))
        raise DataFileError(
            path, f"the suffix says nothing about what is in it; known are {known}, also with .gz or .bz2"
        )
    return kind


def read_table(path: Any, *, columns: Sequence[str] | None = None, delimiter: str | None = None) -> "pd.DataFrame":
    """A whole table as a frame.

    Parameters
    ----------
    path : path
        CSV, TSV, Parquet or Feather, by the suffix.
    columns : list of str, optional
        Only these.
    delimiter : str, optional
        Of a CSV file; guessed from its first lines.
    """
    import pyarrow as pa

    batches = list(_batches(path, columns, delimiter, None, whole=True))
    return _frame(pa.Table.from_batches(batches, schema=batches[0].schema))


def iter_table(
    path: Any,
    *,
    rows: int = 65536,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    types: Any = None,
) -> "Iterator[pd.DataFrame]":
    """A table as frames of at most so many rows, in a memory that does not grow with the file.

    Parameters
    ----------
    path, columns, delimiter
        As in `read_table`.
    rows : int, default=65536
    types : mapping from names to pyarrow types, optional
        Of the columns of a CSV file. Without it they are those of its first megabyte, and a later value that is
        something else is an error.
    """
    for batch in _batches(path, columns, delimiter, types, whole=False):
        for begin in range(0, batch.num_rows, rows):
            yield _frame(batch.slice(begin, rows))


def read_matrix(path: Any) -> Matrix:
    """A whole svmlight file (with or without qid, packed or not) or NumPy archive (X or the parts of a CSR, y, qid)."""
    kind = file_kind(path)
    _check_readable(path)
    if kind == "npz":
        return _read_npz(path)
    if kind != "svmlight":
        raise DataFileError(
            path, "this is a table, not a matrix; svmlight (.svm, .svmlight, .libsvm) or .npz is expected"
        )
    with _unpacked(path) as file:
        try:
            data = file.read()
        except (OSError, EOFError) as error:
            raise DataFileError(path, f"cannot be unpacked ({error})") from None
    if not data.strip():
        raise DataFileError(path, "the file is empty")
    try:
        X, y, qid = load_svmlight_file(BytesIO(data), query_id=True)
    except (ValueError, OverflowError, IndexError) as error:
        line, text = _first_bad_line(data)
        shown = text if len(text) <= 40 else text[:40] + "..."
        problem = f"not a line of svmlight ({error}): {shown!r}. Expected: LABEL [qid:GROUP] COLUMN:VALUE ..."
        raise DataFileError(path, problem, line) from None
    has_qid = b"qid:" in data
    return Matrix(X, y, qid if has_qid else None)


def pick_columns(path: Any, names: Sequence[str], *wanted: str | None) -> None:
    """Refuse a name that is not among the columns, with the nearest one that is."""
    for name in wanted:
        if name is None or name in names:
            continue
        near = get_close_matches(name, names, n=1, cutoff=0.5)
        shown = ", ".join(map(repr, list(names)[:8])) + (", ..." if len(names) > 8 else "")
        hint = f"; did you mean {near[0]!r}?" if near else ""
        if len(names) == 1 and any(mark in names[0] for mark in _DELIMITERS):
            hint = "; is the delimiter another one?"
        raise DataFileError(path, f"there is no column {name!r}{hint} The columns are {shown}")


# --- Tables ---


def _batches(path: Any, columns: Sequence[str] | None, delimiter: str | None, types: Any, *, whole: bool) -> Iterator:
    kind = file_kind(path)
    _check_readable(path)
    if not all(find_spec(name) for name in ("pandas", "pyarrow")):
        raise ImportError("Tables are read with pandas and pyarrow: pip install 'forerank[files]'")
    if kind in ("svmlight", "npz"):
        raise DataFileError(
            path, "this is a matrix without column names; a table (CSV, TSV, Parquet, Feather) is expected"
        )
    empty = True
    for batch in {"parquet": _parquet, "feather": _feather}.get(kind, _csv)(path, columns, delimiter, types, whole):
        empty = empty and batch.num_rows == 0
        yield batch
    if empty:
        raise DataFileError(path, "there are column names but no rows")


def _parquet(path: Any, columns: Any, delimiter: Any, types: Any, whole: bool) -> Iterator:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            pick_columns(path, file.schema_arrow.names, *(columns or []))
            yield from file.iter_batches(columns=None if columns is None else list(columns))
            if file.metadata.num_rows == 0:
                raise DataFileError(path, "there are column names but no rows")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise DataFileError(path, f"cannot be read as Parquet ({_first_line(error)})") from None


def _feather(path: Any, columns: Any, delimiter: Any, types: Any, whole: bool) -> Iterator:
    import pyarrow as pa

    try:
        with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as file:
            pick_columns(path, file.schema.names, *(columns or []))
            for k in range(file.num_record_batches):
                batch = file.get_batch(k)
                yield batch if columns is None else batch.select(list(columns))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise DataFileError(path, f"cannot be read as Feather ({_first_line(error)})") from None


def _csv(path: Any, columns: Any, delimiter: Any, types: Any, whole: bool) -> Iterator:
    import pyarrow as pa
    from pyarrow import csv

    head = _head(path)
    mark = delimiter or ("\t" if file_kind(path) == "tsv" else _guessed_delimiter(head))
    names = _names(path, head, mark)
    pick_columns(path, names, *(columns or []))

    def options(*, threads: bool) -> dict[str, Any]:
        return {
            "read_options": csv.ReadOptions(use_threads=threads),
            "parse_options": csv.ParseOptions(delimiter=mark),
            "convert_options": csv.ConvertOptions(
                include_columns=None if columns is None else list(columns), column_types=types, strings_can_be_null=True
            ),
        }

    try:
        with _unpacked(path) as file:
            if whole:
                yield from csv.read_csv(file, **options(threads=True)).combine_chunks().to_batches()
            else:
                yield from csv.open_csv(file, **options(threads=True))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError) as error:
        raise _csv_error(path, mark, error, options(threads=False)) from None
    except (OSError, EOFError) as error:
        raise DataFileError(path, f"cannot be unpacked ({_first_line(error)})") from None


def _csv_error(path: Any, mark: str, error: Exception, options: dict[str, Any]) -> DataFileError:
    """The line that was wrong: read again without threads, which do not count lines."""
    from pyarrow import csv

    try:
        with _unpacked(path) as file:
            for _ in csv.open_csv(file, **options):
                pass
    except Exception as again:
        error = again
    ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error))
    if ragged:
        line, expected, got = map(int, ragged.groups())
        problem = f"a row of {got} values, and the header has {expected} names (delimiter {mark!r})"
        return DataFileError(path, problem, line)
    return DataFileError(path, f"cannot be read as CSV ({_first_line(error)})")


def _names(path: Any, head: bytes, mark: str) -> list[str]:
    import pyarrow as pa
    from pyarrow import csv

    if not head.strip():
        raise DataFileError(path, "the file is empty")
    if b"\x00" in head:
        raise DataFileError(path, "this is not a text file")
    first = head.lstrip(b"\r\n").splitlines(keepends=True)[0]
    try:
        first.decode("utf-8-sig")
        names = csv.read_csv(BytesIO(first), parse_options=csv.ParseOptions(delimiter=mark)).column_names
    except (pa.ArrowInvalid, UnicodeDecodeError):
        raise DataFileError(path, "the header is not text in UTF-8", 1) from None
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataFileError(path, f"the header names the column {twice[0]!r} more than once", 1)
    return names


def _guessed_delimiter(head: bytes) -> str:
    """The mark that parts the header into most names; a comma where none does."""
    first = head.lstrip(b"\r\n").splitlines()[0] if head.strip() else b""
    return max(_DELIMITERS, key=lambda mark: first.count(mark.encode()))


def _frame(batch: Any) -> "pd.DataFrame":
    import pyarrow as pa

    for name, kind in zip(batch.schema.names, batch.schema.types, strict=True):
        if pa.types.is_binary(kind):
            raise DataFileError("table", f"the column {name!r} is not text in UTF-8")
    return batch.to_pandas()


# --- Matrices ---


def _first_bad_line(data: bytes) -> tuple[int, str]:
    """The number and the text of the first line that cannot be parsed on its own."""
    lines = data.splitlines(keepends=True)
    for begin in range(0, len(lines), _LINES_AT_A_TIME):
        if not _parses(b"".join(lines[begin : begin + _LINES_AT_A_TIME])):
            for number, line in enumerate(lines[begin : begin + _LINES_AT_A_TIME], start=begin + 1):
                if not _parses(line):
                    return number, line.decode("utf-8", "replace").strip()
    return 1, lines[0].decode("utf-8", "replace").strip()


def _parses(part: bytes) -> bool:
    try:
        load_svmlight_file(BytesIO(part), query_id=True)
    except (ValueError, OverflowError, IndexError):
        return False
    return True


def _read_npz(path: Any) -> Matrix:
    try:
        with Path(path).open("rb") as source, np.load(source, allow_pickle=False) as file:
            parts = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataFileError(path, f"cannot be read as a NumPy archive ({_first_line(error)})") from None
    if "y" not in parts or not ("X" in parts or "X_data" in parts):
        raise DataFileError(path, f"X and y are expected, and the archive has {', '.join(sorted(parts)) or 'nothing'}")
    if "X" in parts:
        X: Any = parts["X"]
    else:
        try:
            csr = (parts["X_data"], parts["X_indices"], parts["X_indptr"])
            X = sp.csr_matrix(csr, shape=tuple(int(n) for n in parts["X_shape"]))
            X.check_format(full_check=True)
        except (KeyError, ValueError, TypeError) as error:
            raise DataFileError(path, f"the parts of X do not make a CSR matrix ({_first_line(error)})") from None
    if X.ndim != 2 or parts["y"].shape != (X.shape[0],):
        raise DataFileError(path, f"X has the shape {X.shape} and y {parts['y'].shape}; one label per row is expected")
    return Matrix(X, parts["y"], parts.get("qid"))


# --- Files ---


def _check_readable(path: Any) -> None:
    target = Path(path)
    if not target.exists():
        raise DataFileError(path, "there is no such file")
    if target.is_dir():
        raise DataFileError(path, "this is a directory")
    if target.stat().st_size == 0:
        raise DataFileError(path, "the file is empty")


def _unpacked(path: Any) -> BinaryIO:
    opener: Any = _PACKED.get(Path(path).suffix.lower(), open)
    return opener(path, "rb")


def _head(path: Any) -> bytes:
    try:
        with _unpacked(path) as file:
            return file.read(_HEAD_BYTES)
    except (OSError, EOFError) as error:
        raise DataFileError(path, f"cannot be read ({_first_line(error)})") from None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
