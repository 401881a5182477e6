"""External merge sort: rows by descending score, in a memory that does not grow with their number.

Rows are sorted in memory up to a number of bytes; sorted runs beyond it go to a temporary directory
and are merged while the result is read.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._sorting import argsort
from forerank._typing import Index, Vector

__all__ = ["MEMORY_BYTES", "ExternalSorter", "Integers", "SortedRows"]

Integers = NDArray[np.int64]

# Bytes of rows that are sorted in memory. Few, since rows are gathered in random order, which is
# four times as fast within the caches; runs become longer (at most 8 times) as their number grows,
# twice as long after each `_RUNS_PER_LENGTH` runs.
MEMORY_BYTES = 32 << 20
_RUNS_PER_LENGTH = 256
# Rows of one run that are read at a time, and rows of all runs together that are merged at a time.
_ROWS_PER_READ = 1 << 11
_ROWS_PER_MERGE = 1 << 18
# Rows of a part of the result. With `top`, four times as many are held before the first ones are
# selected.
_ROWS_PER_PART = 1 << 15


@dataclass(frozen=True)
class SortedRows:
    """Some rows in their final order, with scores and ranks."""

    table: Any
    score: Vector
    rank: Integers


def _keys(table: Any) -> tuple[Vector, Integers]:
    """Scores and groups: the last two columns, since the others may have any names."""
    return table.columns[-2].to_numpy(), table.columns[-1].to_numpy()


def _group_starts(group: Integers) -> Index:
    """For each row, the position of the first row of its group; groups are contiguous."""
    opens = np.concatenate([[True], group[1:] != group[:-1]])
    return np.maximum.accumulate(np.where(opens, np.arange(group.size), 0))


class ExternalSorter:
    """Sorts rows by group number, then by descending score; ties keep the order of arrival.

    Parameters
    ----------
    top : int, optional
        Only this many rows (of each group).
    memory : int
        Bytes of rows that are held before a sorted run is written.
    directory : path, optional
        Directory of the runs; by default all rows stay in memory.
    batch : int
        Rows of a run that are read at a time.
    """

    def __init__(
        self,
        top: int | None = None,
        *,
        memory: int = MEMORY_BYTES,
        directory: Path | None = None,
        batch: int = _ROWS_PER_READ,
    ) -> None:
        self._top, self._memory, self._directory, self._batch = top, memory, directory, batch
        self._held: list[Any] = []
        self._held_bytes = self._held_rows = 0
        self._selected_rows = 0
        self._runs: list[Path] = []
        self._writer = ThreadPoolExecutor(1)
        self._writing: Future | None = None
        self._grouped = False

    def add(self, rows: Any, score: Vector, group: Integers | None = None) -> None:
        """Add the rows of a pyarrow table."""
        import pyarrow as pa

        self._grouped = self._grouped or group is not None
        number = np.zeros(len(score), dtype=np.int64) if group is None else group
        table = rows.append_column("score", pa.array(score))
        table = table.append_column("group", pa.array(number))
        self._held.append(table)
        self._held_bytes += table.nbytes
        self._held_rows += table.num_rows
        most = 4 * max(self._selected_rows, _ROWS_PER_PART)
        if self._top is not None and self._held_rows > most:
            self._hold([self._in_order(self._held)])
            self._selected_rows = self._held_rows
        longer = 2 ** min(3, len(self._runs) // _RUNS_PER_LENGTH)
        if self._directory is not None and self._held_bytes > self._memory * longer:
            self._start_run()

    def close(self) -> None:
        """Wait for the run that is being written; its directory can be removed after that."""
        self._writer.shutdown()

    def sorted(self) -> Iterator[SortedRows]:
        """The rows in order, in parts."""
        if not self._runs and not self._held:
            return
        tables = self._merged() if self._runs else self._parts(self._in_order(self._held))
        position = group_start = 0
        rank, last_score, last_group = 1, np.nan, -1
        for table in tables:
            if not table.num_rows:
                continue
            score, group = _keys(table)
            positions = position + np.arange(score.size)
            opens = group != np.concatenate([[last_group], group[:-1]])
            starts = np.maximum.accumulate(np.where(opens, positions, group_start))
            differs = opens | (score != np.concatenate([[last_score], score[:-1]]))
            first = np.maximum.accumulate(np.where(differs, positions, group_start + rank - 1))
            ranks = first - starts + 1
            position += score.size
            group_start, rank = int(starts[-1]), int(ranks[-1])
            last_score, last_group = score[-1], int(group[-1])
            rows = table.select(range(table.num_columns - 2))
            yield from self._first_rows(SortedRows(rows, score, ranks), positions - starts)

    def _first_rows(self, part: SortedRows, position_in_group: Integers) -> Iterator[SortedRows]:
        """The rows among the first `top` of their group, if there are any."""
        if self._top is not None and (position_in_group >= self._top).any():
            first = np.flatnonzero(position_in_group < self._top)
            part = SortedRows(part.table.take(first), part.score[first], part.rank[first])
        if len(part.score):
            yield part

    def _hold(self, tables: list[Any]) -> None:
        self._held = tables
        self._held_bytes = sum(table.nbytes for table in tables)
        self._held_rows = sum(table.num_rows for table in tables)

    def _in_order(self, tables: list[Any]) -> Any:
        """The rows of all tables in order, the first `top` of each group; empties the list."""
        import pyarrow as pa

        table = pa.concat_tables(tables).combine_chunks()
        tables.clear()
        score, group = _keys(table)
        order = self._order(score, group)
        if self._top is not None:
            order = order[np.arange(order.size) - _group_starts(group[order]) < self._top]
        return table.take(order)

    def _order(self, score: Vector, group: Integers) -> Index:
        if self._grouped:
            return np.lexsort((-score, group))
        return argsort(-score, stable=True)

    def _parts(self, table: Any) -> Iterator[Any]:
        for begin in range(0, table.num_rows, _ROWS_PER_PART):
            yield table.slice(begin, _ROWS_PER_PART)

    def _start_run(self) -> None:
        """Sort and write the held rows in a background thread, one run at a time."""
        self._finish_run()
        assert self._directory is not None
        self._runs.append(self._directory / f"{len(self._runs)}.arrow")
        self._writing = self._writer.submit(self._write_run, self._held, self._runs[-1])
        self._hold([])

    def _finish_run(self) -> None:
        if self._writing is not None:
            self._writing.result()
            self._writing = None

    def _write_run(self, tables: list[Any], path: Path) -> None:
        import pyarrow as pa

        table = self._in_order(tables)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=self._batch)

    def _merged(self) -> Iterator[Any]:
        """Tables in merged order.

        Rows up to the smallest last row that was read of the unfinished runs are final.
        """
        import pyarrow as pa

        if self._held:
            self._start_run()
        self._finish_run()
        runs = [_Run(path, self._grouped) for path in self._runs]
        rows = max(self._batch, _ROWS_PER_MERGE // len(runs))
        while runs:
            for run in runs:
                run.fill(rows)
            unfinished = [(run.last, k) for k, run in enumerate(runs) if run.has_more]
            bound = min(unfinished) if unfinished else None
            final = [run.take_until(bound, k) for k, run in enumerate(runs)]
            runs = [run for run in runs if run.has_more or run.table.num_rows]
            table = pa.concat_tables(final).combine_chunks()
            yield from self._parts(table.take(self._order(*_keys(table))))


class _Run:
    """A sorted run on disk, of which the next rows are in memory.

    Attributes
    ----------
    table : pyarrow table
        The rows that were read and not yet taken.
    has_more : bool
        Whether some rows were not read yet.
    """

    def __init__(self, path: Path, grouped: bool) -> None:
        import pyarrow as pa

        self._file, self._grouped = pa.ipc.open_file(pa.OSFile(str(path), "rb")), grouped
        self._next_batch = 0
        self.table = self._file.schema.empty_table()
        self._group, self._negative_score = np.empty(0, dtype=np.int64), np.empty(0)

    @property
    def has_more(self) -> bool:
        return self._next_batch < self._file.num_record_batches

    @property
    def last(self) -> tuple[int, float]:
        """Group and negative score of the last row that was read."""
        return int(self._group[-1]), float(self._negative_score[-1])

    def fill(self, n_rows: int) -> None:
        """Read until `n_rows` rows, or all, are in memory."""
        import pyarrow as pa

        parts = [self.table]
        while sum(part.num_rows for part in parts) < n_rows and self.has_more:
            parts.append(pa.Table.from_batches([self._file.get_batch(self._next_batch)]))
            self._next_batch += 1
        if len(parts) > 1:
            self.table = pa.concat_tables(parts)
            score, self._group = _keys(self.table)
            self._negative_score = -score

    def take_until(self, bound: tuple[tuple[int, float], int] | None, number: int) -> Any:
        """Take the rows up to a bound (a row and the number of its run); ties go by run number."""
        end = self.table.num_rows
        if bound is not None:
            (group, negative_score), bound_run = bound
            low, high = 0, end
            if self._grouped:
                low, high = np.searchsorted(self._group, [group, group + 1]).tolist()
            side: Any = "right" if number <= bound_run else "left"
            end = low + int(self._negative_score[low:high].searchsorted(negative_score, side))
        part, self.table = self.table.slice(0, end), self.table.slice(end)
        self._group, self._negative_score = self._group[end:], self._negative_score[end:]
        return part
