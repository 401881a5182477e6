"""The ranked list: the rows of a file with score and rank, best first.

Rows are scored block by block and sorted in bounded memory (`forerank.models.external_sort`). The
rows of a CSV file are kept as text, so that they are written unchanged.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Vector
from forerank.data.csv import Block, CsvFile, CsvOptions
from forerank.data.encodings import file_errors
from forerank.data.files import opened_atomically
from forerank.data.formats import file_kind, is_compressed
from forerank.data.frames import as_frame, column_name, to_frame
from forerank.data.prefetch import parallel_map, prefetched
from forerank.data.readers import iter_batches, open_csv, read_matrix
from forerank.data.source import ReadOptions
from forerank.data.svmlight import iter_svmlight
from forerank.exceptions import DataFileError
from forerank.models.external_sort import MEMORY_BYTES, ExternalSorter, Integers, SortedRows
from forerank.models.file import Model
from forerank.models.list_writers import AddedColumns, LineWriter, TableWriter, list_format
from forerank.models.scoring import (
    LinearScorer,
    SumScorer,
    matrix_scores,
    probability_function,
    table_scores,
)
from forerank.models.tables import (
    column_types,
    missing_columns,
    model_frame,
    model_readings,
    model_source,
)

__all__ = ["RankedList", "rank_file", "rank_frame", "unused_names"]

Progress = Callable[[float], None]
# Rows of a pyarrow table, their scores, and the numbers of their groups.
Batch = tuple[Any, Vector, Integers | None]

_SCORE, _PROBABILITY, _RANK = "score", "probability", "rank"
# Rough share of the work that is reading and scoring; sorting and writing a complete list is the
# rest.
_READING_SHARE = 0.6
# Rough ratio of the size of a table in memory to that of its Parquet or Feather file.
_COMPRESSION = 3


@dataclass
class RankedList:
    """Description of a ranked list that was written.

    Attributes
    ----------
    rows : int
        Number of rows of the file.
    written : int
        Number of rows of the list.
    missing : list of str
        Columns of the model that the file lacks; their values are taken as missing.
    unused : list of str
        Columns that the model does not read.
    unknown_values : list of str
        Category columns that have no value in common with the training rows.
    names : tuple of str
        Names of the columns with score, probability (if requested) and rank.
    taken : list of str
        Those of their usual names that columns of the file have already.
    """

    rows: int = 0
    written: int = 0
    missing: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    unknown_values: list[str] = field(default_factory=list)
    names: tuple[str, ...] = (_SCORE, _RANK)
    taken: list[str] = field(default_factory=list)


def rank_frame(
    model: Model,
    frame: Any,
    *,
    top: int | None = None,
    probability: bool = False,
    allow_missing: bool = False,
) -> Any:
    """The rows of a frame with score and rank, best first (within groups if the model has groups).

    Tied rows share a rank: one plus the number of rows with a higher score. `probability` adds a
    column with that of the positive label, for a calibrated model.
    """
    import pyarrow as pa

    names, added = _added_columns(model, probability)
    given = as_frame(frame)
    prepared = model_frame(model, given, "the table", allow_missing=allow_missing)
    scores = table_scores(model)(prepared) if len(prepared) else np.empty(0)
    sorter = ExternalSorter(top)
    groups = _GroupNumbers(model, "the table").of_table(given)
    sorter.add(pa.table({"row": np.arange(len(given))}), scores, groups)
    parts = [*sorter.sorted(), _no_rows(pa.table({"row": np.empty(0, dtype=np.intp)}))]
    rows = np.concatenate([part.table["row"].to_numpy() for part in parts])
    ranked = (frame.to_pandas() if hasattr(frame, "to_pandas") else frame).iloc[rows]
    names = unused_names([column_name(name) for name in ranked.columns], names)
    columns = [np.concatenate(values) for values in zip(*map(added, parts), strict=True)]
    if ranked.columns.nlevels == 1:
        return ranked.assign(**dict(zip(names, columns, strict=True)))
    ranked, levels = ranked.copy(), ranked.columns.nlevels
    for name, values in zip(names, columns, strict=True):
        ranked[(name, *[""] * (levels - 1))] = values
    return ranked


def rank_file(
    model: Model,
    path: Any,
    out: Any,
    *,
    top: int | None = None,
    probability: bool = False,
    delimiter: str | None = None,
    encoding: str | None = None,
    format: str | None = None,
    allow_missing: bool = False,
    force: bool = False,
    digits: int | None = None,
    memory: int = MEMORY_BYTES,
    progress: Progress = lambda share: None,
) -> RankedList:
    """Write the ranked list of a file; a file without rows gives a list without rows.

    Parameters
    ----------
    model : Model
    path : path
        Any kind of file that `forerank.data.readers` reads.
    out : path or binary file
        CSV, TSV, Parquet or Feather by the suffix, written atomically; CSV if it is an open file.
    top : int, optional
        Only this many rows (of each group, if the model has groups).
    probability : bool
        Add a column `probability`: that of the positive label, by a calibrated model.
    delimiter : str, optional
        Delimiter of a CSV file.
    encoding : str, optional
        Encoding of a text file; by default UTF-8 or, if it is not valid UTF-8, the encoding of the
        model's training file. The list is in UTF-8.
    format : str, optional
        Format of the file, if not given by its suffix; see `forerank.data.formats.file_kind`.
    allow_missing : bool
        Take columns of the model that the file lacks as missing values.
    force : bool
        Overwrite `out`.
    digits : int, optional
        Significant digits of scores and probabilities in the list; by default all.
    memory : int
        Bytes of rows that are held in memory; the rest goes to a temporary directory.
    progress : callable, optional
        Called with the share of the work that is done.
    """
    if top is not None and top < 1:
        raise ValueError(f"top={top!r}: give the number of rows to keep, at least 1.")
    names, added = _added_columns(model, probability, digits)
    result = RankedList(names=names)
    source = model_source(model, path, ReadOptions(delimiter, encoding, format))
    if bool(model.columns) != source.is_table:
        table, matrix = "a table with named columns", "a matrix (svmlight or .npz)"
        expected, found = (table, matrix) if model.columns else (matrix, table)
        raise source.error(
            f"the model was fitted on {expected}, and this file is {found}; "
            "give a file of the same kind"
        )
    is_pipe = hasattr(out, "write") or (Path(out).exists() and not Path(out).is_file())
    out_format = "csv" if is_pipe else list_format(out)
    kind, csv = file_kind(path, format), None
    if kind in ("csv", "tsv"):
        csv = open_csv(path, delimiter, encoding=source.encoding, format=format)
    mark = "\t" if out_format == "tsv" else ","
    if csv is not None and out_format != "tsv" and (kind == "csv" or is_pipe):
        mark = csv.delimiter
    verbatim = csv is not None and out_format in ("csv", "tsv") and csv.delimiter == mark
    reading = _READING_SHARE if top is None else 1.0
    options = (kind, source.encoding, allow_missing)
    rows = _FileRows(model, path, *options, result, lambda s: progress(reading * s))
    with (
        tempfile.TemporaryDirectory(prefix="forerank-") as runs,
        opened_atomically(out, force=force) as file,
        closing(ExternalSorter(top, memory=memory, directory=Path(runs))) as sorter,
    ):
        schema = rows.add_to(sorter, csv, verbatim)
        if csv is not None and verbatim:
            writer: Any = LineWriter(file, csv, result.names, added)
        else:
            writer = TableWriter(file, out_format, mark, result.names, added)
        if not result.rows and schema is not None:
            writer.write(writer.prepare(_no_rows(schema.empty_table())))
        # Three threads: rows are merged, prepared and written at the same time.
        parts = ((len(part.score), writer.prepare(part)) for part in prefetched(sorter.sorted()))
        for n_rows, content in prefetched(parts):
            result.written += n_rows
            writer.write(content)
            progress(max(reading, result.written / result.rows))
        writer.close()
    return result


def unused_names(names: list[Any], wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The wanted names of added columns, with a prefix if a column has one of them already."""
    while any(name in names for name in wanted):
        wanted = tuple(f"forerank_{name}" for name in wanted)
    return wanted


def _added_columns(
    model: Model, probability: bool, digits: int | None = None
) -> tuple[tuple[str, ...], AddedColumns]:
    """Names of the columns added to a ranked list (score, probability, rank), and the function from
    sorted rows to their values.

    Numbers are rounded to `digits` significant digits.
    """
    function = probability_function(model) if probability else None
    if probability and function is None:
        raise ValueError(
            "the model predicts no probabilities, because it was fitted without calibration; "
            "fit it again with calibrate=True"
        )

    def values(part: SortedRows) -> list[NDArray]:
        columns = [part.score] if function is None else [part.score, function(part.score)]
        if digits is not None:
            columns = [np.array([float(f"{x:.{digits}g}") for x in column]) for column in columns]
        return [*columns, part.rank]

    return (_SCORE, _PROBABILITY, _RANK) if probability else (_SCORE, _RANK), values


def _no_rows(table: Any) -> SortedRows:
    return SortedRows(table, np.empty(0), np.empty(0, dtype=np.int64))


class _GroupNumbers:
    """Numbers of groups in the order in which they first appear, over all batches of a file."""

    def __init__(self, model: Model, path: Any) -> None:
        self._model, self._path = model, path
        self._number: dict[Any, int] = {}

    def of(self, groups: Any) -> Integers:
        import pandas as pd

        codes, values = pd.factorize(np.asarray(groups))
        numbers = [self._number.setdefault(value, len(self._number)) for value in values.tolist()]
        return np.array(numbers, dtype=np.int64)[codes]

    def of_table(self, table: Any) -> Integers | None:
        """Group numbers of the rows of a frame or pyarrow table; None for a model without."""
        name = self._model.group
        if name is None:
            return None
        is_arrow = hasattr(table, "column_names")
        if name not in (table.column_names if is_arrow else table.columns):
            raise DataFileError(
                self._path, f"the model ranks within groups, and their column {name!r} is missing"
            )
        column = table[name].to_pandas() if is_arrow else table[name]
        if column.isna().any():
            raise DataFileError(
                self._path, f"the group column {name!r} is empty in some rows; remove these rows"
            )
        return self.of(column.astype(str))


@dataclass
class _FileRows:
    """The rows of a file in batches, with scores and group numbers.

    Columns that are missing, unused, or have unknown values are noted in `result`.
    """

    model: Model
    path: Any
    kind: str
    encoding: str | None
    allow_missing: bool
    result: RankedList
    progress: Progress

    def __post_init__(self) -> None:
        self._score = table_scores(self.model)
        self._groups = _GroupNumbers(self.model, self.path)
        self._size = Path(self.path).stat().st_size

    def add_to(self, sorter: ExternalSorter, csv: CsvFile | None, verbatim: bool) -> Any:
        """Add all rows to a sorter; returns the schema of the tables, or None without any."""
        if csv is not None:
            batches = self._csv_batches(csv, verbatim)
        else:
            batches = self._table_batches() if self.model.columns else self._matrix_batches()
        schema = None
        for rows, scores, groups in batches:
            schema = rows.schema if schema is None else schema
            self.result.rows += len(scores)
            if len(scores):
                sorter.add(rows, scores, groups)
        if isinstance(self._score, LinearScorer | SumScorer):
            self.result.unknown_values = self._score.unknown_values()
        return schema

    def _note_columns(self, names: list[str]) -> None:
        model, result = self.model, self.result
        result.missing = missing_columns(model, names, self.path, self.allow_missing)
        used = {*model.columns, model.group}
        result.unused = [name for name in names if name not in used]
        result.taken = [name for name in result.names if name in names]
        result.names = unused_names(names, result.names)

    def _csv_batches(self, csv: CsvFile, verbatim: bool) -> Iterator[Batch]:
        import pyarrow as pa

        self._note_columns(csv.names)
        types = {name: t for name, t in column_types(self.model).items() if name in csv.names}
        # If the file has no column of the model, its first one is read to count rows.
        columns = list(types) or csv.names[:1]
        readings = {n: r for n, r in model_readings(self.model).items() if n in csv.names}

        def parsed(block: Block) -> tuple[Block, Any, Any]:
            table = csv.parse(block, CsvOptions(columns, types, readings))
            if verbatim:
                return block, table, pa.table({"line": csv.lines(block, table.num_rows)})
            # In other formats too, values keep the text that they have in the file.
            strings = CsvOptions(types=dict.fromkeys(csv.names, pa.string()))
            return block, table, csv.parse(block, strings)

        n_bytes = 0
        with file_errors(self.path):
            empty = dict.fromkeys(["line"] if verbatim else csv.names, pa.array([], pa.string()))
            yield pa.table(empty), np.empty(0), None
            for block, table, rows in parallel_map(parsed, csv.blocks()):
                groups = self._groups.of_table(table)
                yield rows, self._arrow_scores(table), groups
                n_bytes += len(block.text)
                self.progress(0.0 if is_compressed(self.path) else min(1.0, n_bytes / self._size))

    def _arrow_scores(self, table: Any) -> Vector:
        """Scores of a pyarrow table, directly from its columns if the model is linear."""
        import pyarrow as pa

        if not isinstance(self._score, LinearScorer):
            return self._score(self._prepared(as_frame(to_frame(table)), 0))
        types = column_types(self.model)
        for name in self.result.missing:
            table = table.append_column(name, pa.nulls(table.num_rows, types[name]))
        return self._score(table)

    def _prepared(self, frame: Any, rows_before: int) -> Any:
        options: dict[str, Any] = {"allow_missing": self.allow_missing, "rows_before": rows_before}
        return model_frame(self.model, frame, self.path, **options)

    def _table_batches(self) -> Iterator[Batch]:
        import pyarrow as pa

        n_bytes = 0
        for batch in iter_batches(self.path, encoding=self.encoding, format=self.kind):
            table = pa.Table.from_batches([batch])
            names = table.column_names
            if not self.result.rows:
                self._note_columns(names)
            used = [name for name in (*self.model.columns, self.model.group) if name in names]
            frame = as_frame(to_frame(table.select(used)))
            groups = self._groups.of_table(frame)
            prepared = self._prepared(frame, self.result.rows)
            yield table, self._score(prepared) if len(prepared) else np.empty(0), groups
            n_bytes += table.nbytes
            self.progress(min(1.0, n_bytes / (_COMPRESSION * self._size)))

    def _matrix_batches(self) -> Iterator[Batch]:
        import pyarrow as pa

        if self.kind == "npz":
            blocks = iter([read_matrix(self.path, format=self.kind)])
        else:
            zero_based = self.model.summary.get("zero_based", False)
            blocks = iter_svmlight(self.path, zero_based=zero_based)
        grouped = self.model.summary.get("groups") is not None
        for block in blocks:
            n_rows, first = block.X.shape[0], self.result.rows + 1
            rows = {"row": np.arange(first, first + n_rows), "label": block.y}
            if block.qid is not None:
                rows["qid"] = block.qid
            elif grouped:
                raise DataFileError(
                    self.path, "the model ranks within groups; give every line a qid"
                )
            scores = matrix_scores(self.model, block.X, self.path) if n_rows else np.empty(0)
            yield pa.table(rows), scores, self._groups.of(block.qid) if grouped else None
            self.progress(0.0)
