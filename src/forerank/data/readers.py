"""Readers of data files: the format follows from the suffix; pyarrow and scikit-learn do the
reading.

Tables (CSV, TSV, Parquet, Feather) become pandas frames, complete or in chunks, as do files of
records that are read whole (RIS, BibTeX, XLSX, JSON lines); svmlight files and NumPy archives
become matrices with labels and groups. A file that cannot be used raises `DataFileError`: one line
that names the file and, where there is one, the line.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from forerank._text import listed
from forerank.data.archives import Matrix, read_npz
from forerank.data.bibliography import TEXT_KINDS, entries_table, is_entries, read_entries
from forerank.data.csv import DELIMITERS, CsvFile, CsvOptions
from forerank.data.encodings import checked_encoding, file_errors, open_bytes
from forerank.data.files import first_line
from forerank.data.formats import check_readable, file_kind
from forerank.data.frames import filled_names, to_frame
from forerank.data.notations import Reading
from forerank.data.svmlight import read_svmlight
from forerank.exceptions import DataFileError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "NOTES",
    "Matrix",
    "check_columns",
    "csv_types",
    "file_kind",
    "iter_batches",
    "iter_table",
    "open_csv",
    "read_matrix",
    "read_strings",
    "read_table",
    "refuse_equal_names",
    "sliced_batches",
    "table_schema",
]

# Bytes and rows of a batch of a Parquet or Feather file: 65,536 rows of up to 128 doubles.
_BATCH_BYTES, _FEWEST_ROWS, _MOST_ROWS = 2**26, 2**8, 2**16
# Most bytes of the buffer through which a column of a Parquet file is read.
_BUFFER = 2**20
# Key of `DataFrame.attrs` with notes on what was skipped in a file, a list of strings.
NOTES = "forerank_notes"


def read_table(
    path: Any,
    *,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    types: Mapping[str, Any] | None = None,
    categories: int = 0,
    encoding: str | None = None,
    format: str | None = None,
    readings: Mapping[str, Reading] | None = None,
) -> "pd.DataFrame":
    """A complete table as a frame; entries of a file that were skipped are noted in
    `frame.attrs[NOTES]`.

    Parameters
    ----------
    path : path
        CSV, TSV, Parquet, Feather, RIS, BibTeX, XLSX (its first sheet) or JSON lines, by the
        suffix. Columns of RIS are its tags, those of BibTeX its fields.
    columns : list of str, optional
        The columns to read.
    delimiter : str, optional
        Of a CSV file; by default the most frequent one of its header.
    types : mapping from names to pyarrow types, optional
        Of columns of a CSV file; others follow from the values of all rows.
    categories : int, default=0
        Columns of a CSV file with at most this many different strings become categoricals, which
        take far less memory.
    encoding : str, optional
        Of a text file, such as "cp1252"; by default UTF-8, or UTF-16 where the file begins with its
        byte order mark.
    format : str, optional
        The format of a file with another suffix; see `file_kind`.
    readings : mapping from names to Reading, optional
        Columns of a CSV file that are read as strings, and how numbers or dates are read in them.
    """
    import pyarrow as pa

    kind = _table_kind(path, format, encoding)
    if kind in ("csv", "tsv"):
        csv = _csv_file(path, kind, delimiter, encoding)
        options = CsvOptions(columns, types or {}, readings or {}, categories)
        with file_errors(path):
            frame = to_frame(csv.table(_checked_options(path, csv, options)))
    elif is_entries(kind):
        table, notes = _entries(path, kind, columns, encoding)
        frame = to_frame(table)
        frame.attrs[NOTES] = notes
    else:
        frame = to_frame(pa.Table.from_batches(list(_columnar(path, kind, columns))))
    _refuse_empty(path, len(frame))
    pa.default_memory_pool().release_unused()  # by the parser: twice the size of the frame
    return frame


def iter_table(
    path: Any,
    *,
    rows: int = 65536,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    types: Mapping[str, Any] | None = None,
    encoding: str | None = None,
    format: str | None = None,
    readings: Mapping[str, Reading] | None = None,
    allow_empty: bool = False,
) -> "Iterator[pd.DataFrame]":
    """A table as frames of at most `rows` rows; memory does not grow with the file, except for
    RIS, BibTeX, XLSX and JSON lines, which are read whole.

    Parameters
    ----------
    path, columns, delimiter, encoding, format, readings
        As in `read_table`.
    rows : int, default=65536
    types : mapping from names to pyarrow types, optional
        Of the columns of a CSV file. By default they are those of its first block (4 MB), and a
        later value of another type is an error; whole numbers become doubles in blocks that have
        fractions.
    allow_empty : bool, default=False
        Whether a file without rows has no frames; by default it is an error.
    """
    import pyarrow as pa

    kind = _table_kind(path, format, encoding)
    n_rows = 0
    if kind in ("csv", "tsv"):
        csv = _csv_file(path, kind, delimiter, encoding)
        batches = _csv_batches(path, csv, CsvOptions(columns, types or {}, readings or {}))
    else:
        batches = _batches(path, kind, columns, encoding)
    for batch in batches:
        n_rows += batch.num_rows
        for begin in range(0, batch.num_rows, rows):
            yield to_frame(pa.Table.from_batches([batch.slice(begin, rows)]))
    if not allow_empty:
        _refuse_empty(path, n_rows)


def csv_types(
    path: Any,
    *,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    format: str | None = None,
) -> dict[str, Any]:
    """The pyarrow types of the columns of a CSV file by its first block, without those of columns
    that are empty there.
    """
    csv = open_csv(path, delimiter, encoding=encoding, format=format)
    with file_errors(path):
        return _first_types(csv, _checked_options(path, csv, CsvOptions(columns)))


def read_strings(
    path: Any,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    format: str | None = None,
) -> Any:
    """A complete CSV file as a pyarrow table of strings, each as it is written in the file."""
    import pyarrow as pa

    kind = _table_kind(path, format, encoding)
    csv = _csv_file(path, kind, delimiter, encoding)
    types = dict.fromkeys(csv.names, pa.string())
    with file_errors(path):
        table = csv.table(CsvOptions(types=types, missing_strings=False))
    _refuse_empty(path, table.num_rows)
    return table


def read_matrix(path: Any, *, zero_based: bool | None = None, format: str | None = None) -> Matrix:
    """A complete svmlight file (with or without qid, compressed or not) or NumPy archive (X or the
    parts of a CSR matrix, y, qid).

    Columns of svmlight are counted from 0 where `zero_based`; by default if the file has a column
    0. The `format` is that of `file_kind`.
    """
    kind = file_kind(path, format)
    check_readable(path)
    if kind == "npz":
        return read_npz(path)
    if kind == "svmlight":
        return read_svmlight(path, zero_based)
    expected = "svmlight (.svm, .svmlight, .libsvm) or .npz is expected"
    raise DataFileError(path, f"this is a table, not a matrix; {expected}")


def check_columns(path: Any, names: Sequence[str], *wanted: str | None) -> None:
    """An error for a name that is not among the columns, with the nearest one that is."""
    for name in wanted:
        if name is None or name in names:
            continue
        by_small = {each.lower(): each for each in names}
        near = get_close_matches(name.lower(), by_small, n=1, cutoff=0.5)
        hint = f"; did you mean {by_small[near[0]]!r}?" if near else "."
        if len(names) == 1 and any(mark in names[0] for mark in DELIMITERS):
            hint = "; is the delimiter another one?"
        shown = listed(map(repr, names))
        raise DataFileError(path, f"there is no column {name!r}{hint} The columns are {shown}")


def refuse_equal_names(path: Any, names: Sequence[str]) -> None:
    """An error where several columns have the same name."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataFileError(path, f"more than one column is called {twice[0]!r}; rename one")


def open_csv(
    path: Any,
    delimiter: str | None = None,
    *,
    encoding: str | None = None,
    format: str | None = None,
) -> CsvFile:
    """A CSV file that can be read block by block."""
    check_readable(path)
    return _csv_file(path, file_kind(path, format), delimiter, encoding)


def iter_batches(
    path: Any,
    *,
    columns: Sequence[str] | None = None,
    encoding: str | None = None,
    format: str | None = None,
) -> Iterator:
    """A table that is not CSV as pyarrow batches; at least one, which may be empty."""
    kind = file_kind(path, format)
    check_readable(path)
    yield from _batches(path, kind, columns, encoding)


def table_schema(path: Any, format: str | None = None) -> Any:
    """The pyarrow schema of a Parquet or Feather file."""
    kind = file_kind(path, format)
    check_readable(path)
    with (_parquet if kind == "parquet" else _feather)(path) as (schema, _):
        return schema


def _table_kind(path: Any, format: str | None, encoding: str | None) -> str:
    """The format of a table; an error for a matrix."""
    kind = file_kind(path, format)
    check_readable(path)
    if not all(find_spec(name) for name in ("pandas", "pyarrow")):
        raise ImportError("Tables are read with pandas and pyarrow: pip install 'forerank[files]'")
    if kind in ("svmlight", "npz"):
        expected = "a table (CSV, TSV, Parquet, Feather, RIS, BibTeX, XLSX, JSON lines) is expected"
        raise DataFileError(path, f"this is a matrix without column names; {expected}")
    if kind not in TEXT_KINDS and encoding is not None:
        raise DataFileError(path, f"encoding applies to text files only; omit it for {kind}")
    return kind


def _refuse_empty(path: Any, n_rows: int) -> None:
    if not n_rows:
        raise DataFileError(path, "there are column names but no rows")


# --- CSV ---


def _csv_file(path: Any, kind: str, delimiter: str | None, encoding: str | None) -> CsvFile:
    if delimiter is not None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
        if len(delimiter.encode()) != 1 or delimiter in '"\r\n':
            problem = f"the delimiter is one character such as ',' or ';', not {delimiter!r}"
            raise DataFileError(path, problem)
    with file_errors(path):
        encoding = checked_encoding(path, encoding)
        return CsvFile(lambda: open_bytes(path, encoding), "\t" if kind == "tsv" else delimiter)


def _checked_options(path: Any, csv: CsvFile, options: CsvOptions) -> CsvOptions:
    """Options without the columns that a file does not have; such a column to read is an error."""
    check_columns(path, csv.names, *(options.columns or []))
    types = {name: kind for name, kind in options.types.items() if name in csv.names}
    readings = {name: each for name, each in options.readings.items() if name in csv.names}
    return replace(options, types=types, readings=readings)


def _csv_batches(path: Any, csv: CsvFile, options: CsvOptions) -> Iterator:
    options = _checked_options(path, csv, options)
    with file_errors(path):
        if not options.types:
            options = replace(options, types=_first_types(csv, options))
        for table in csv.tables(options):
            yield from table.combine_chunks().to_batches()


def _first_types(csv: CsvFile, options: CsvOptions) -> dict[str, Any]:
    import pyarrow as pa

    first = next(csv.blocks(), None)
    fields = [] if first is None else csv.parse(first, options).schema
    return {field.name: field.type for field in fields if not pa.types.is_null(field.type)}


# --- Tables that are not CSV ---


def _batches(path: Any, kind: str, columns: Sequence[str] | None, encoding: str | None) -> Iterator:
    if not is_entries(kind):
        yield from _columnar(path, kind, columns)
        return
    table, _ = _entries(path, kind, columns, encoding)
    yield from table.combine_chunks().to_batches()


def _entries(
    path: Any, kind: str, columns: Sequence[str] | None, encoding: str | None
) -> tuple[Any, list[str]]:
    """A file of records as a pyarrow table, and notes on what was skipped."""
    entries = read_entries(path, kind, encoding)
    _refuse_empty(path, len(entries.rows))
    table = entries_table(path, entries)
    check_columns(path, table.column_names, *(columns or []))
    return (table if columns is None else table.select(list(columns))), entries.notes


def _columnar(path: Any, kind: str, columns: Sequence[str] | None) -> Iterator:
    """The batches of a Parquet or Feather file; an empty one where there are no rows."""
    import pyarrow as pa

    with (_parquet if kind == "parquet" else _feather)(path) as (schema, batches):
        refuse_equal_names(path, schema.names)
        names = dict(zip(filled_names(schema.names), schema.names, strict=True))
        check_columns(path, list(names), *(columns or []))
        wanted = None
        if columns is not None:
            wanted = [names[name] for name in columns]
            schema = pa.schema([schema.field(name) for name in wanted])
        empty = True
        for batch in batches(wanted):
            empty = False
            yield from sliced_batches(_with_names(batch, names))
        if empty:
            yield _with_names(pa.RecordBatch.from_pylist([], schema=schema), names)


def sliced_batches(batch: Any) -> Iterator[Any]:
    """The rows of a batch in batches of limited size, which share its memory."""
    rows = _rows_of_batch(batch.nbytes / max(batch.num_rows, 1))
    for begin in range(0, max(batch.num_rows, 1), rows):
        yield batch.slice(begin, rows)


def _rows_of_batch(bytes_per_row: float) -> int:
    return int(min(max(_BATCH_BYTES / max(bytes_per_row, 1.0), _FEWEST_ROWS), _MOST_ROWS))


def _with_names(batch: Any, names: Mapping[str, str]) -> Any:
    """A batch whose columns all have names; `names` are those in the file, by the filled ones."""
    import pyarrow as pa

    filled = {in_file: name for name, in_file in names.items()}
    found = [filled[name] for name in batch.schema.names]
    same = found == batch.schema.names
    return batch if same else pa.RecordBatch.from_arrays(batch.columns, found)


@contextmanager
def _arrow_errors(path: Any, name: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise DataFileError(path, f"cannot be read as {name} ({first_line(error)})") from None


@contextmanager
def _parquet(path: Any) -> Iterator[tuple[Any, Any]]:
    """The schema of a Parquet file, and a function from names of columns to its batches."""
    import pyarrow.parquet as pq

    with _arrow_errors(path, "Parquet"):
        about = pq.read_metadata(path)
        groups = (about.row_group(k).total_byte_size for k in range(about.num_row_groups))
        rows = _rows_of_batch(max(sum(groups) / max(about.num_rows, 1), 8.0 * about.num_columns))
        # Without a buffer of its own, the reader holds all pages that it has read until the end.
        buffer = min(_BUFFER, _BATCH_BYTES // max(about.num_columns, 1))
        with pq.ParquetFile(path, metadata=about, buffer_size=buffer, pre_buffer=False) as file:

            def batches(columns: Sequence[str] | None) -> Iterator:
                return file.iter_batches(rows, columns=columns and [*columns])

            yield file.schema_arrow, batches


@contextmanager
def _feather(path: Any) -> Iterator[tuple[Any, Any]]:
    """The schema of a Feather file, and a function from names of columns to its batches."""
    import pyarrow as pa

    def batches(columns: Sequence[str] | None) -> Iterator:
        for k in range(file.num_record_batches):
            batch = file.get_batch(k)
            yield batch if columns is None else batch.select(list(columns))

    errors = _arrow_errors(path, "Feather")
    with errors, pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as file:
        yield file.schema, batches
