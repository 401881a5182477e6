"""The ranked list: every row of a file with its score and rank, best first, in a memory that does
not grow with it.

Rows are scored block by block and sorted; sorted runs that no longer fit into memory go to a
temporary directory, from which they are merged while the list is written. The rows of a CSV file
are carried as the text they came as, so that they are written unchanged.
"""

import csv as python_csv
import io
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from forerank._sorting import argsort
from forerank._typing import Vector
from forerank.data.csv import Block, CsvFile, CsvOptions
from forerank.data.encodings import file_errors, usual_encoding
from forerank.data.files import first_line, opened_atomically
from forerank.data.formats import check_readable, file_kind
from forerank.data.frames import as_frame, column_name, to_frame
from forerank.data.prefetch import parallel_map, prefetched
from forerank.data.readers import iter_batches, open_csv, read_matrix
from forerank.data.svmlight import iter_svmlight
from forerank.exceptions import DataFileError
from forerank.models import Model
from forerank.models.scoring import (
    LinearScorer,
    column_types,
    matrix_scores,
    missing_columns,
    missing_words,
    model_frame,
    probability_function,
    table_scores,
)

__all__ = ["RankedList", "Sorter", "rank_file", "rank_frame"]

Integers = NDArray[np.int64]
Progress = Callable[[float], None]
Scores = Callable[[Any], Vector]
Added = Callable[["Sorted"], list[NDArray]]

# Bytes of rows that are sorted in memory: few, since rows are gathered from anywhere among them,
# which is four times faster within the caches. Runs grow as they become many.
_MEMORY = 32 << 20
_RUNS_OF_A_SIZE = 256
# Rows of a run that are read at a time, and of all runs together that are merged at a time; rows
# that are written at a time, and of which so many are held before the first ones are picked.
_ROWS_OF_A_RUN = 1 << 11
_ROWS_TO_MERGE = 1 << 18
_ROWS_AT_A_TIME = 1 << 15
_SCORE, _PROBABILITY, _RANK = "score", "probability", "rank"
_KINDS_OF_LISTS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
}


@dataclass
class RankedList:
    """What became of a file.

    Attributes
    ----------
    rows : int
        In the file.
    written : int
        Of them in the list.
    missing : list of str
        Columns of the model that the file does not have; taken as empty.
    unused : list of str
        Columns that the model does not read.
    strangers : list of str
        Columns of words of which the model knows none.
    names : tuple of str
        Of the columns that hold score, probability where it was asked for, and rank.
    """

    rows: int = 0
    written: int = 0
    missing: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    names: tuple[str, ...] = (_SCORE, _RANK)


def rank_frame(
    model: Model,
    frame: Any,
    *,
    top: int | None = None,
    probability: bool = False,
    allow_missing: bool = False,
) -> Any:
    """The rows of a frame with their score and rank, best first (within groups where the model has
    groups).

    Tied rows share a rank: one more than the number of rows ahead of them. With `probability` there
    is a column of that, too, of a model that was calibrated.
    """
    import pyarrow as pa

    wanted, added = _added(model, probability)
    given = as_frame(frame)
    prepared = model_frame(model, given, "the table", allow_missing=allow_missing)
    scores = table_scores(model)(prepared) if len(prepared) else np.empty(0)
    sorter = Sorter(top)
    groups = (
        None
        if model.group is None
        else _Numbering().of(_group_column(given, model.group, "the table"))
    )
    sorter.add(pa.table({"row": np.arange(len(given))}), scores, groups)
    parts = list(sorter.sorted())
    rows = np.concatenate(
        [np.empty(0, dtype=np.intp), *(part.table["row"].to_numpy() for part in parts)]
    )
    ranked = (frame.to_pandas() if hasattr(frame, "to_pandas") else frame).iloc[rows]
    names = free_names([column_name(name) for name in ranked.columns], wanted)
    parts.append(
        Sorted(None, np.empty(0), np.empty(0, dtype=np.int64))
    )  # of no rows, a list has its columns all the same
    columns = [np.concatenate(each) for each in zip(*map(added, parts), strict=True)]
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
    memory: int = _MEMORY,
    progress: Progress = lambda share: None,
) -> RankedList:
    """Write the ranked list of a file; one without rows gives a list without rows.

    Parameters
    ----------
    model : Model
    path : path
        Any kind of file that `forerank.data.readers` reads.
    out : path or binary file
        CSV, TSV, Parquet or Feather by the suffix; CSV into an open file. Appears whole or not at
        all.
    top : int, optional
        Only so many rows (of each group, where the model has groups).
    probability : bool
        Write a column `probability` beside `score`: of the positive label, by a model that was
        calibrated.
    delimiter : str, optional
        Of a CSV file.
    encoding : str, optional
        Of a CSV file; by default UTF-8, or where it is not that, the one that the training file of
        the model had. The list is in UTF-8.
    format : str, optional
        What the file is, where its suffix does not say so; see `forerank.data.readers.file_kind`.
    allow_missing : bool
        Take columns of the model that are not there for empty ones.
    force : bool
        Overwrite `out`.
    digits : int, optional
        Significant digits of scores and probabilities in the list, for people who read it; by
        default all.
    memory : int
        Bytes of rows that are kept in memory; the rest waits in a temporary directory.
    progress : callable, optional
        Is told which share of the work is done.
    """
    if top is not None and top < 1:
        raise ValueError(f"top={top!r}: give the number of rows to keep, at least 1.")
    result = RankedList()
    result.names, added = _added(model, probability, digits)
    check_readable(path)
    kind = file_kind(path, format)
    is_csv = kind in ("csv", "tsv")
    if bool(model.columns) != (kind not in ("svmlight", "npz")):
        expected = (
            "a table with columns by name" if model.columns else "a matrix (svmlight or .npz)"
        )
        raise DataFileError(path, f"the model was fitted on {expected}")
    is_stream = hasattr(out, "write") or (
        Path(out).exists() and not Path(out).is_file()
    )  # a pipe has no suffix
    out_kind = "csv" if is_stream else _KINDS_OF_LISTS.get(_suffix(out))
    if out_kind is None:
        raise DataFileError(
            out, f"a list goes into a file that ends in {', '.join(_KINDS_OF_LISTS)} (.gz, .bz2)"
        )
    if encoding is not None and not is_csv:
        raise DataFileError(path, "an encoding is one of CSV files; leave it out")
    encoding = encoding or (usual_encoding(path, model.summary.get("encoding")) if is_csv else None)
    csv = open_csv(path, delimiter, encoding=encoding, format=format) if is_csv else None
    keeps_mark = csv is not None and (kind == "csv" or is_stream)
    mark = "\t" if out_kind == "tsv" else csv.delimiter if csv is not None and keeps_mark else ","
    verbatim = csv is not None and out_kind in ("csv", "tsv") and csv.delimiter == mark
    score = table_scores(model)
    reading = 1.0 if top is not None else 0.6  # of the whole work, roughly

    def read_share(share: float) -> None:
        progress(reading * share)

    if csv is not None:
        batches = _csv_rows(model, score, path, csv, verbatim, allow_missing, result, read_share)
    elif model.columns:
        batches = _table_rows(model, score, path, kind, allow_missing, result, read_share)
    else:
        batches = _matrix_rows(model, path, kind, result, read_share)
    with (
        tempfile.TemporaryDirectory(prefix="forerank-") as runs,
        opened_atomically(out, force=force) as file,
        closing(Sorter(top, memory=memory, directory=Path(runs))) as sorter,
    ):
        schema = None
        for rows, scores, groups in batches:
            schema = rows.schema if schema is None else schema
            result.rows += len(scores)
            if len(scores):
                sorter.add(rows, scores, groups)
        result.strangers = score.strangers() if isinstance(score, LinearScorer) else []
        if verbatim and csv is not None:
            writer: Any = _LineWriter(file, csv, result.names, added)
        else:
            writer = _TableWriter(file, out_kind, mark, result.names, added)
        if not result.rows and schema is not None:
            writer.write(
                writer.made(Sorted(schema.empty_table(), np.empty(0), np.empty(0, dtype=np.int64)))
            )
        # Three threads: rows are merged, made into text and written at the same time.
        for n_rows, piece in prefetched(
            (len(part.score), writer.made(part)) for part in prefetched(sorter.sorted())
        ):
            result.written += n_rows
            writer.write(piece)
            progress(max(reading, result.written / result.rows))
        writer.close()
    return result


# --- Rows with their scores ---


def _csv_rows(
    model: Model,
    score: Scores,
    path: Any,
    csv: CsvFile,
    verbatim: bool,
    allow_missing: bool,
    result: RankedList,
    progress: Progress,
) -> Iterator[tuple[Any, Vector, Integers | None]]:
    import pyarrow as pa

    result.missing = missing_columns(model, csv.names, path, allow_missing)
    result.unused = [
        name for name in csv.names if name not in model.columns and name != model.group
    ]
    result.names = free_names(csv.names, result.names)
    types = {name: kind for name, kind in column_types(model).items() if name in csv.names}
    # A file may have none of the columns of the model; rows are counted by one of its own then.
    read = list(types) or csv.names[:1]
    words = {name: each for name, each in missing_words(model).items() if name in csv.names}

    def parsed(block: Block) -> tuple[Block, Any, Any]:
        table = csv.parse(block, CsvOptions(read, types, words))
        if verbatim:
            return block, table, pa.table({"line": csv.lines(block, table.num_rows)})
        # In another form, values are still the text that they are in the file.
        return (
            block,
            table,
            csv.parse(block, CsvOptions(types=dict.fromkeys(csv.names, pa.string()))),
        )

    scored, groups = _arrow_scores(model, score, path, result.missing), _Numbering()
    size, done = Path(path).stat().st_size, 0
    packed = Path(path).suffix.lower() in (".gz", ".bz2")
    with file_errors(path):
        empty = dict.fromkeys(["line"] if verbatim else csv.names, pa.array([], pa.string()))
        yield pa.table(empty), np.empty(0), None
        for block, table, rows in parallel_map(parsed, csv.blocks()):
            number = (
                None if model.group is None else groups.of(_group_column(table, model.group, path))
            )
            yield rows, scored(table), number
            done += len(block.text)
            progress(min(1.0, done / size) if not packed else 0.0)


def _arrow_scores(model: Model, score: Scores, path: Any, missing: list[str]) -> Scores:
    """A function from pyarrow tables to scores: straight from their columns where the model is
    linear.
    """
    import pyarrow as pa

    types = column_types(model)

    def linear(table: Any) -> Vector:
        for name in missing:
            table = table.append_column(name, pa.nulls(table.num_rows, types[name]))
        return score(table)

    def other(table: Any) -> Vector:
        return score(
            model_frame(model, as_frame(to_frame(table)), path, allow_missing=bool(missing))
        )

    return linear if isinstance(score, LinearScorer) else other


def _table_rows(
    model: Model,
    score: Scores,
    path: Any,
    kind: str,
    allow_missing: bool,
    result: RankedList,
    progress: Progress,
) -> Iterator[tuple[Any, Vector, Integers | None]]:
    import pyarrow as pa

    groups = _Numbering()
    size, done = Path(path).stat().st_size, 0
    for batch in iter_batches(path, format=kind):
        table = pa.Table.from_batches([batch])
        if not result.rows:
            result.missing = missing_columns(model, table.column_names, path, allow_missing)
            result.unused = [
                name
                for name in table.column_names
                if name not in model.columns and name != model.group
            ]
            result.names = free_names(table.column_names, result.names)
        used = [name for name in (*model.columns, model.group) if name in table.column_names]
        frame = as_frame(to_frame(table.select(used)))
        number = None if model.group is None else groups.of(_group_column(frame, model.group, path))
        prepared = model_frame(
            model, frame, path, allow_missing=allow_missing, rows_before=result.rows
        )
        yield table, score(prepared) if len(prepared) else np.empty(0), number
        done += table.nbytes
        progress(min(1.0, done / (3 * size)))  # packed to about a third


def _matrix_rows(
    model: Model, path: Any, kind: str, result: RankedList, progress: Progress
) -> Iterator[tuple[Any, Vector, Integers | None]]:
    import pyarrow as pa

    if kind == "npz":
        blocks = iter([read_matrix(path, format=kind)])
    else:
        blocks = iter_svmlight(path, zero_based=model.summary.get("zero_based", False))
    grouped = model.summary.get("groups") is not None
    groups, before = _Numbering(), 0
    for block in blocks:
        n_rows = block.X.shape[0]
        rows = {"row": np.arange(before + 1, before + n_rows + 1), "label": block.y}
        if block.qid is not None:
            rows["qid"] = block.qid
        elif grouped:
            raise DataFileError(path, "the model ranks within groups, and there is no qid")
        scores = matrix_scores(model, block.X, path) if n_rows else np.empty(0)
        yield pa.table(rows), scores, groups.of(block.qid) if grouped else None
        before += n_rows
        progress(0.0)


def _group_column(table: Any, group: str, path: Any) -> Any:
    names = table.column_names if hasattr(table, "column_names") else table.columns
    if group not in names:
        raise DataFileError(
            path, f"the model ranks within groups, and their column {group!r} is not there"
        )
    column = table[group].to_pandas() if hasattr(table, "column_names") else table[group]
    if column.isna().any():
        raise DataFileError(path, f"the column of groups, {group!r}, is empty in some rows")
    return column.astype(str)


def _suffix(path: Any) -> str:
    """The last suffix, or the one before .gz and .bz2."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in (".gz", ".bz2"):
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def free_names(names: list[Any], wanted: tuple[str, ...] = (_SCORE, _RANK)) -> tuple[str, ...]:
    """Names for columns that are added, such as a file does not use."""
    while any(name in names for name in wanted):
        wanted = tuple(f"forerank_{name}" for name in wanted)
    return wanted


def _added(
    model: Model, probability: bool, digits: int | None = None
) -> tuple[tuple[str, ...], Added]:
    """Names of the columns that a list has beside those of its file, and their values."""
    function = probability_function(model) if probability else None
    if probability and function is None:
        raise ValueError(
            "the model has no probabilities: it was fitted without calibration (calibrate=True)"
        )

    def values(part: "Sorted") -> list[NDArray]:
        found = [part.score] if function is None else [part.score, function(part.score)]
        if digits is not None:
            found = [np.array([float(f"{value:.{digits}g}") for value in each]) for each in found]
        return [*found, part.rank]

    return (_SCORE, _PROBABILITY, _RANK) if probability else (_SCORE, _RANK), values


class _Numbering:
    """Groups numbered in the order in which they come."""

    def __init__(self) -> None:
        self._number: dict[Any, int] = {}

    def of(self, column: Any) -> Integers:
        import pandas as pd

        codes, values = pd.factorize(np.asarray(column))
        numbers = [self._number.setdefault(value, len(self._number)) for value in values.tolist()]
        return np.array(numbers, dtype=np.int64)[codes]


# --- Sorting ---


@dataclass(frozen=True)
class Sorted:
    """Rows in their final order, with scores and ranks."""

    table: Any
    score: Vector
    rank: Integers


def _keys(table: Any) -> tuple[Vector, Integers]:
    """Scores and groups of rows that are being sorted: the last two columns, whatever the others
    are called.
    """
    return table.columns[-2].to_numpy(), table.columns[-1].to_numpy()


class Sorter:
    """Sorts rows by falling score, within groups by their number; equal scores keep the order in
    which rows came.

    Parameters
    ----------
    top : int, optional
        Only so many rows (of each group).
    memory : int
        Bytes of rows that are kept before a sorted run is written.
    directory : path, optional
        For the runs. Without it all rows are kept.
    batch : int
        Rows of a run that are read at a time.
    """

    def __init__(
        self,
        top: int | None = None,
        *,
        memory: int = _MEMORY,
        directory: Path | None = None,
        batch: int = _ROWS_OF_A_RUN,
    ) -> None:
        self._top, self._memory, self._directory, self._batch = top, memory, directory, batch
        self._held: list[Any] = []
        self._held_bytes = self._held_rows = 0
        self._kept_rows = 0
        self._runs: list[Path] = []
        self._writer = ThreadPoolExecutor(1)
        self._writing: Future | None = None
        self._grouped = False

    def add(self, rows: Any, score: Vector, group: Integers | None = None) -> None:
        """Take a pyarrow table of rows."""
        import pyarrow as pa

        self._grouped = self._grouped or group is not None
        number = np.zeros(len(score), dtype=np.int64) if group is None else group
        table = rows.append_column("score", pa.array(score)).append_column(
            "group", pa.array(number)
        )
        self._held.append(table)
        self._held_bytes += table.nbytes
        self._held_rows += table.num_rows
        if self._top is not None and self._held_rows > 4 * max(self._kept_rows, _ROWS_AT_A_TIME):
            self._hold(self._in_order(self._held))
            self._kept_rows = self._held_rows
        larger = 2 ** min(3, len(self._runs) // _RUNS_OF_A_SIZE)
        if self._directory is not None and self._held_bytes > self._memory * larger:
            self._start_run()

    def close(self) -> None:
        """Wait for the run that is being written, if any: its directory may go after that."""
        self._writer.shutdown()

    def sorted(self) -> Iterator[Sorted]:
        """The rows in order, some at a time."""
        if not self._runs and not self._held:
            return
        tables = self._slices(self._in_order(self._held)) if not self._runs else self._merged()
        position = group_start = 0
        rank, last_score, last_group = 1, np.nan, -1
        for table in tables:
            if not table.num_rows:
                continue
            score, group = _keys(table)
            place = position + np.arange(score.size)
            before_score = np.concatenate([[last_score], score[:-1]])
            before_group = np.concatenate([[last_group], group[:-1]])
            opens = group != before_group
            starts = np.maximum.accumulate(np.where(opens, place, group_start))
            fresh = opens | (score != before_score)
            first = np.maximum.accumulate(np.where(fresh, place, group_start + rank - 1))
            ranks = first - starts + 1
            position += score.size
            group_start, rank, last_score, last_group = (
                int(starts[-1]),
                int(ranks[-1]),
                score[-1],
                int(group[-1]),
            )
            yield from self._cut(
                Sorted(table.select(range(table.num_columns - 2)), score, ranks), place - starts
            )

    def _cut(self, part: Sorted, place_in_group: Integers) -> Iterator[Sorted]:
        """The rows among the first ones of their group; all where no number of them was asked for."""
        if self._top is not None and (place_in_group >= self._top).any():
            kept = np.flatnonzero(place_in_group < self._top)
            part = Sorted(part.table.take(kept), part.score[kept], part.rank[kept])
        if len(part.score):
            yield part

    def _hold(self, table: Any) -> None:
        self._held = [table]
        self._held_bytes, self._held_rows = table.nbytes, table.num_rows

    def _in_order(self, held: list[Any]) -> Any:
        """Rows in order; of those beyond the first ones none."""
        import pyarrow as pa

        table = pa.concat_tables(held).combine_chunks()
        held.clear()
        score, group = _keys(table)
        order = self._order(score, group)
        if self._top is not None:
            group = group[order]
            opens = np.concatenate([[True], group[1:] != group[:-1]])
            place = np.arange(order.size)
            order = order[place - np.maximum.accumulate(np.where(opens, place, 0)) < self._top]
        return table.take(order)

    def _order(self, score: Vector, group: Integers) -> NDArray[np.intp]:
        if self._grouped:
            return np.lexsort((-score, group))
        return argsort(-score, stable=True)

    def _slices(self, table: Any) -> Iterator[Any]:
        for begin in range(0, table.num_rows, _ROWS_AT_A_TIME):
            yield table.slice(begin, _ROWS_AT_A_TIME)

    def _start_run(self) -> None:
        """Sort and write what is held, in another thread; one run at a time."""
        self._finish_run()
        assert self._directory is not None
        self._runs.append(self._directory / f"{len(self._runs)}.arrow")
        held, self._held, self._held_bytes, self._held_rows = self._held, [], 0, 0
        self._writing = self._writer.submit(self._write_run, held, self._runs[-1])

    def _finish_run(self) -> None:
        if self._writing is not None:
            self._writing.result()
            self._writing = None

    def _write_run(self, held: list[Any], path: Path) -> None:
        import pyarrow as pa

        table = self._in_order(held)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=self._batch)

    def _merged(self) -> Iterator[Any]:
        """Merge the runs: what comes before the last row that has been read of every unfinished run
        is final.
        """
        import pyarrow as pa

        if self._held:
            self._start_run()
        self._finish_run()
        runs = [_Run(path, self._grouped) for path in self._runs]
        rows = max(self._batch, _ROWS_TO_MERGE // len(runs))
        while runs:
            for run in runs:
                run.fill(rows)
            unfinished = [(run.last, k) for k, run in enumerate(runs) if run.has_more]
            bound = min(unfinished) if unfinished else None
            table = pa.concat_tables(
                [run.until(bound, k) for k, run in enumerate(runs)]
            ).combine_chunks()
            runs = [run for run in runs if run.has_more or run.table.num_rows]
            yield from self._slices(table.take(self._order(*_keys(table))))


class _Run:
    """A sorted run on disk, the next rows of which are in memory.

    Attributes
    ----------
    table : pyarrow table
        The rows that have been read and not yet taken.
    has_more : bool
        Whether there are rows that have not been read.
    """

    def __init__(self, path: Path, grouped: bool) -> None:
        import pyarrow as pa

        self._file, self._grouped = pa.ipc.open_file(pa.OSFile(str(path), "rb")), grouped
        self._next = 0
        self.table = self._file.schema.empty_table()
        self._group, self._behind = np.empty(0, dtype=np.int64), np.empty(0)

    @property
    def has_more(self) -> bool:
        return self._next < self._file.num_record_batches

    @property
    def last(self) -> tuple[int, float]:
        """Group and negative score of the last row that has been read."""
        return int(self._group[-1]), float(self._behind[-1])

    def fill(self, rows: int) -> None:
        """Read on until there are so many rows, or all."""
        import pyarrow as pa

        parts = [self.table]
        while sum(part.num_rows for part in parts) < rows and self.has_more:
            parts.append(pa.Table.from_batches([self._file.get_batch(self._next)]))
            self._next += 1
        if len(parts) > 1:
            self.table = pa.concat_tables(parts)
            score, self._group = _keys(self.table)
            self._behind = -score

    def until(self, bound: tuple[tuple[int, float], int] | None, number: int) -> Any:
        """Take the rows up to a bound: a row, and the number of its run. Among equals earlier runs
        go first.
        """
        end = self.table.num_rows
        if bound is not None:
            (group, behind), bound_run = bound
            low, high = 0, end
            if self._grouped:
                low, high = (
                    int(self._group.searchsorted(group, side)) for side in ("left", "right")
                )
            end = low + int(
                self._behind[low:high].searchsorted(
                    behind, "right" if number <= bound_run else "left"
                )
            )
        part, self.table = self.table.slice(0, end), self.table.slice(end)
        self._group, self._behind = self._group[end:], self._behind[end:]
        return part


# --- Writing ---


class _LineWriter:
    """Lines of the input, with score and rank at their ends."""

    def __init__(self, file: BinaryIO, csv: CsvFile, names: tuple[str, ...], added: Added) -> None:
        self._file, self._mark, self._added = file, csv.delimiter, added
        header = csv.header.rstrip(b"\r\n")
        self._end = "\r\n" if csv.header.endswith(b"\r\n") else "\n"
        self._file.write(header + self._mark.join(["", *names]).encode() + self._end.encode())

    def made(self, part: Sorted) -> Any:
        """The text of rows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        *columns, last = (pc.cast(pa.array(values), pa.string()) for values in self._added(part))
        lines = part.table["line"].combine_chunks()
        ends = pc.binary_join_element_wise(last, "", self._end)
        text = pc.binary_join_element_wise(lines, *columns, ends, self._mark)
        _, offsets, data = text.buffers()
        span = np.frombuffer(offsets, dtype=np.int32)[[text.offset, text.offset + len(text)]]
        return memoryview(data)[span[0] : span[1]]

    def write(self, piece: Any) -> None:
        self._file.write(piece)

    def close(self) -> None:
        pass


class _TableWriter:
    """A table with the columns of the input, score and rank."""

    def __init__(
        self, file: BinaryIO, kind: str, mark: str, names: tuple[str, ...], added: Added
    ) -> None:
        self._file, self._kind, self._mark, self._names, self._added = (
            file,
            kind,
            mark,
            names,
            added,
        )
        self._writer: Any = None

    def made(self, part: Sorted) -> Any:
        """The rows as a table."""
        import pyarrow as pa

        table = part.table
        for name, values in zip(self._names, self._added(part), strict=True):
            table = table.append_column(name, pa.array(values))
        return table

    def write(self, piece: Any) -> None:
        import pyarrow as pa

        try:
            if self._writer is None:
                self._writer = self._opened(piece.schema)
            self._writer.write_table(piece)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataFileError(
                "the list", f"cannot be written ({first_line(error)}); try Parquet or Feather"
            ) from None

    def _opened(self, schema: Any) -> Any:
        import pyarrow as pa
        from pyarrow import csv, parquet

        if self._kind == "parquet":
            return parquet.ParquetWriter(self._file, schema)
        if self._kind == "feather":
            return pa.ipc.new_file(self._file, schema)
        # Quoted where it must be; pyarrow would quote every name.
        header = io.StringIO()
        python_csv.writer(header, delimiter=self._mark, lineterminator="\n").writerow(schema.names)
        self._file.write(header.getvalue().encode())
        options = csv.WriteOptions(
            delimiter=self._mark, quoting_style="needed", include_header=False
        )
        return csv.CSVWriter(self._file, schema, write_options=options)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
