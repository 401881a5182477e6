"""Rows that are read block by block: `open_rows`, for fits on data larger than memory.

The first scan reads every source once: it finds the classes, moments of the columns and a sample of
the rows, and writes the rows to a spool below TMPDIR in the form in which they are read again: C
order, float32, or float64 where a column needs it. A .npy file is its own spool. Where there is no
room for a spool, the sources are read again at every pass.
"""

import errno
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from forerank._text import counted
from forerank._typing import Vector
from forerank._validation import SAFE_WEIGHTS, stacklevel_outside
from forerank.data.prefetch import prefetched
from forerank.data.prepared_source import prepared
from forerank.data.row_blocks import BlockMaker, BlockReader, BlockWriter, Labels
from forerank.data.row_sample import RowSample
from forerank.data.row_sources import ArraySource, Batch, TableSource, open_source
from forerank.data.spool import SpoolDirectory
from forerank.exceptions import DataFileError
from forerank.objectives.part_columns import ColumnMoments, part_moments
from forerank.objectives.parts import Rows

__all__ = ["RowStream", "Scan", "open_rows", "parse_bytes"]

# Bytes of a block of rows, and of the sample, as shares of the memory; at most so many bytes and
# rows: larger blocks are not faster, and a larger sample costs more than the passes it saves.
_BLOCK_SHARE, _LARGEST_BLOCK = 1 / 64, 2**24
_SAMPLE_SHARE, _LARGEST_SAMPLE = 1 / 16, 2**18
# Rows per column for which the sample may take a larger share: from fewer, its curvature is noise.
_ROWS_PER_COLUMN, _MOST_OF_SAMPLE = 20, 1 / 4
# Seconds between two lines on the progress of a pass.
_SECONDS_PER_LINE = 0.5
# What is wrong with a file that another program has written to.
_CHANGED = "changed between two reads; start again, in Python with a new open_rows"
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}

Say = Callable[[str], None]


def parse_bytes(size: int | str) -> int:
    """A number of bytes: an integer, or text such as "4GB" or "512 MiB".

    Examples
    --------
    >>> parse_bytes("4GB"), parse_bytes("1.5 MiB")
    (4000000000, 1572864)
    """
    text = str(size).strip().upper()
    digits = text.rstrip("BIKMGT ")
    unit = text[len(digits) :].strip()
    try:
        n_bytes = int(float(digits) * _UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        raise ValueError(f"{size!r} is not a size in bytes; give one such as '4GB'.") from None
    if n_bytes < 10**6:
        raise ValueError(f"{size!r} is too little memory; give at least 1MB.")
    return n_bytes


@dataclass(frozen=True)
class Scan:
    """What the first scan found.

    Attributes
    ----------
    classes : array
        The labels, sorted.
    order : array
        From class numbers of blocks to those of `classes`.
    moments : ColumnMoments
        Of the columns, by class.
    sample : Rows
    n_groups, n_unpaired_groups, n_unpaired_rows : int
        Number of groups, of those without rows of two classes that have a weight, and of the rows
        of the latter.
    weight_unit : float
        By which all weights were divided: very large or small ones, whose products would overflow.
    """

    classes: NDArray
    order: NDArray
    moments: ColumnMoments
    sample: Rows
    n_groups: int
    n_unpaired_groups: int
    n_unpaired_rows: int
    weight_unit: float = 1.0

    @property
    def n_rows(self) -> int:
        return self.moments.n_rows


class RowSource(Protocol):
    """What is read: files, a name for errors, and batches of rows."""

    files: list[Path]
    name: Any
    n_columns_read: int

    @property
    def columns(self) -> list[str]:
        """Names of the columns of X."""

    @property
    def transformer(self) -> Any:
        """The transformer that makes X of the columns that are read; None where these are X."""

    @property
    def n_rows(self) -> int | None:
        """Number of rows, where it is known before they are read."""

    def batches(self) -> Iterator[Batch]:
        """All rows, block by block."""


class RowStream:
    """Rows of files that are read block by block; see `open_rows`.

    Attributes
    ----------
    grouped : bool
    bytes_read : int
        Bytes of all passes since the scan.
    n_passes : int
        Passes since the scan.
    """

    is_row_stream = True

    def __init__(
        self,
        source: RowSource,
        *,
        grouped: bool,
        memory: int,
        say: Say = lambda line: None,
    ) -> None:
        self._source, self._memory, self._say = source, memory, say
        self.grouped = grouped
        # A transformer makes matrices without names, and so will it of new rows.
        self.has_names = isinstance(source, TableSource)
        self.bytes_read = self.n_passes = 0
        self._spool: SpoolDirectory | None = None
        self._writer: BlockWriter | None = None
        self._reader: BlockReader | None = None
        self._signature = self._signatures()

    def __repr__(self) -> str:
        return f"<rows of {self._source.name}, {counted(self._source.n_columns_read, 'column')}>"

    def __enter__(self) -> "RowStream":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the spool; the next fit scans again."""
        if self._writer is not None:
            self._writer.close()
        if self._spool is not None:
            self._spool.close()
        self._spool, self._writer, self._reader = None, None, None
        self.__dict__.pop("scan", None)

    @property
    def columns(self) -> list[str]:
        """Names of the columns of X; of those that `transformer` makes, where there is one."""
        return list(self._source.columns)

    @property
    def transformer(self) -> Any:
        """The fitted transformer from a frame to the columns of X; None where they are as read.

        It is fitted on a sample of the rows when it, the columns or the rows are first used.
        `make_pipeline(rows.transformer, ranker)` scores new frames.
        """
        return self._source.transformer

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.scan.n_rows

    @property
    def classes(self) -> NDArray:
        """The labels, sorted."""
        return self.scan.classes

    def sample(self) -> tuple[Any, NDArray, Vector | None, NDArray | None]:
        """X, labels, weights and groups of a sample, for estimators that need rows in memory.

        Without groups every class has up to half of the rows, and the weights give it its share.
        """
        rows = self.scan.sample
        return rows.X, self.classes[rows.codes], rows.weight, rows.group

    def _signatures(self) -> list[tuple[Path, int, int]]:
        stats = [(path, path.stat()) for path in self._source.files]
        return [(path, stat.st_size, stat.st_mtime_ns) for path, stat in stats]

    def check_unchanged(self) -> None:
        """DataFileError where a file is not as it was when it was opened. Fits ask at their start,
        since rows of an earlier scan would be used otherwise.
        """
        try:
            now = self._signatures()
        except FileNotFoundError as error:
            raise DataFileError(error.filename, "was removed between two reads") from None
        for before, after in zip(self._signature, now, strict=True):
            if before != after:
                raise DataFileError(before[0], _CHANGED)

    @cached_property
    def scan(self) -> Scan:
        """The first scan; cached."""
        self.check_unchanged()
        try:
            return self._scanned()
        except BaseException:
            self.close()
            raise

    def _blocks(self, labels: Labels) -> Iterator[Rows]:
        """Blocks of rows with the class numbers of `labels`; groups are complete within a block."""
        share = min(int(self._memory * _BLOCK_SHARE), _LARGEST_BLOCK)
        name, columns = self._source.name, self.columns
        maker = BlockMaker(labels, share, name, columns, self.grouped, self.has_names)
        for batch in prefetched(self._source.batches(), depth=1):
            yield from maker.add(batch)
        yield from maker.rest()

    def _scanned(self) -> Scan:
        labels, self._writer = Labels(), self._new_writer()
        moments: ColumnMoments | None = None
        sample: RowSample | None = None
        n_groups = n_unpaired = n_unpaired_rows = 0
        largest, unit = 0.0, 1.0
        progress = _Progress(self._say, "scan", self._source.n_rows)
        for rows in self._blocks(labels):
            if sample is None:
                sample = self._new_sample(rows.X)
            largest = max(largest, 1.0 if rows.weight is None else float(rows.weight.max()))
            before, unit = unit, _weight_unit(largest)
            if moments is not None and unit > before:
                moments = moments.scaled(np.full(moments.weight.size, before / unit))
            moments = self._with_moments(moments, _in_units(rows, unit), len(labels.values))
            sample.add(rows.X, rows.codes, rows.weight, rows.group)
            if rows.group is not None:
                counts = _unpaired_groups(rows)
                n_groups += counts[0]
                n_unpaired += counts[1]
                n_unpaired_rows += counts[2]
            self._write(rows)
            progress.add(rows)
        if moments is None or sample is None:
            raise DataFileError(self._source.name, "there are no rows")
        labels.refuse_split_groups(self._source.name)
        self._write(None)
        classes, order = labels.sorted(self._source.name)
        moments = moments.in_order(np.argsort(order))
        drawn, self._labels = sample.rows(order, moments.weight, unit), labels
        self.check_unchanged()
        return Scan(classes, order, moments, drawn, n_groups, n_unpaired, n_unpaired_rows, unit)

    def _new_sample(self, X: Any) -> RowSample:
        per_row = max(X.shape[1], 1) * X.dtype.itemsize
        most = int(self._memory * _MOST_OF_SAMPLE) // per_row
        size = max(int(self._memory * _SAMPLE_SHARE) // per_row, _ROWS_PER_COLUMN * X.shape[1])
        return RowSample(min(size, most, _LARGEST_SAMPLE), grouped=self.grouped)

    def _with_moments(
        self, moments: ColumnMoments | None, rows: Rows, n_classes: int
    ) -> ColumnMoments:
        if moments is None:
            about = np.zeros(rows.X.shape[1])
            if not sp.issparse(rows.X):
                about = rows.X.mean(axis=0, dtype=float)
            moments = part_moments(rows, about, n_classes)
            return moments
        new = part_moments(rows, moments.about, n_classes)
        return moments.with_classes(n_classes) + new

    def _new_writer(self) -> BlockWriter | None:
        """The writer of a spool; None where there is no room for one."""
        self._spool = SpoolDirectory()
        source = self._source
        in_place = source if isinstance(source, ArraySource) else None
        known = sum(size for _, size, _ in self._signature)
        if in_place is None and known > self._spool.free_bytes():
            self._without_spool()
            return None
        return BlockWriter(self._spool.path, in_place)

    def _without_spool(self) -> None:
        """Give the spool up."""
        assert self._spool is not None
        line = (
            f"no room for a copy of the rows in {self._spool.path.parent}: the files are read "
            "again at every pass; set TMPDIR to a larger disk to avoid that"
        )
        self._say(line)
        warnings.warn(line, UserWarning, stacklevel=stacklevel_outside())
        self._spool.close()
        self._spool = None

    def _write(self, rows: Rows | None) -> None:
        """Write a block to the spool, or finish it; where the disk is full, give it up."""
        writer = self._writer
        if writer is None:
            return
        try:
            if rows is None:
                self._reader, self._writer = writer.reader(), None
            else:
                writer.write(rows)
        except OSError as error:
            writer.close()
            self._writer = None
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            self._without_spool()

    def blocks(self) -> Iterator[Rows]:
        """One pass over all rows, with class numbers of `classes`; a block is valid until the next
        one is taken.
        """
        scan = self.scan
        self.n_passes += 1
        reads_files = self._reader is None or self._reader.is_in_place
        if reads_files:
            self.check_unchanged()
        n_rows = 0
        progress = _Progress(self._say, f"pass {self.n_passes}", scan.moments.n_rows)
        source = self._blocks(Labels(self._labels)) if self._reader is None else iter(self._reader)
        for rows in prefetched(source, depth=1):
            n_rows += rows.n_rows
            self.bytes_read += _n_bytes(rows.X)
            progress.add(rows)
            yield replace(_in_units(rows, scan.weight_unit), codes=scan.order[rows.codes])
        if n_rows != scan.n_rows:
            raise DataFileError(self._source.name, _CHANGED)
        if reads_files:
            self.check_unchanged()

    def over_parts(self, function: Callable[[Rows], Any]) -> Any:
        """The sum of function(rows) over all blocks, in order."""
        total = None
        for rows in self.blocks():
            found = function(rows)
            total = found if total is None else total + found
        return total


class _Progress:
    """Lines on how much of a pass is done, and the time that is left where `n_rows` is known."""

    def __init__(self, say: Say, title: str, n_rows: int | None) -> None:
        self._say, self._title, self._n_rows = say, title, n_rows
        self._done = self._bytes = 0
        self._begin = self._last = perf_counter()

    def add(self, rows: Rows) -> None:
        """Count rows that were read."""
        self._done += rows.n_rows
        self._bytes += _n_bytes(rows.X)
        now = perf_counter()
        if now - self._last < _SECONDS_PER_LINE:
            return
        self._last = now
        if self._n_rows is None:
            self._say(f"{self._title}: {self._done:,} rows, {self._bytes / 1e9:.2f} GB")
        else:
            per_row = 1.0 / max(self._done, 1)
            left = (now - self._begin) * max(self._n_rows * per_row - 1.0, 0.0)
            total = self._bytes * max(self._n_rows * per_row, 1.0)
            sizes = f"{self._bytes / 1e9:.2f} of {total / 1e9:.2f} GB"
            self._say(f"{self._title}: {sizes}, about {left:.0f} s to go")


def _weight_unit(largest: float) -> float:
    """By which weights are divided, the largest of which is given."""
    return 1.0 if largest == 0.0 or SAFE_WEIGHTS[0] < largest < SAFE_WEIGHTS[1] else largest


def _in_units(rows: Rows, unit: float) -> Rows:
    """The rows with their weights divided by a number."""
    if rows.weight is not None and unit != 1.0:
        rows = replace(rows, weight=rows.weight / unit)
    return rows


def _n_bytes(X: Any) -> int:
    return int(X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes)


def _unpaired_groups(rows: Rows) -> tuple[int, int, int]:
    """Number of groups of a block, of those without rows of two classes that have a weight, and of
    the rows of the latter.
    """
    assert rows.group is not None
    first = np.flatnonzero(np.diff(rows.group, prepend=rows.group[0] - 1) != 0)
    lowest = highest = rows.codes
    if rows.weight is not None:
        lowest = np.where(rows.weight > 0.0, rows.codes, np.iinfo(rows.codes.dtype).max)
        highest = np.where(rows.weight > 0.0, rows.codes, -1)
    alone = np.minimum.reduceat(lowest, first) >= np.maximum.reduceat(highest, first)
    sizes = np.diff(np.append(first, rows.n_rows))
    return first.size, int(alone.sum()), int(sizes[alone].sum())


def open_rows(
    data: Any,
    target: Any,
    *,
    group: Any = None,
    weight: Any = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    memory: int | str = "4GB",
    delimiter: str | None = None,
    encoding: str | None = None,
    format: str | None = None,
    prepare: bool | None = None,
    say: Say = lambda line: None,
) -> RowStream:
    """Rows for fits on data larger than memory: `PairwiseRanker().fit(rows)`.

    Parameters
    ----------
    data : path, pattern, list of paths, or an object with `__arrow_c_stream__`
        Parquet, Feather, CSV (also .gz) or one .npy file, or "data/*.parquet" for several files of
        one format; or an Arrow stream that can be read more than once, such as a polars frame, or
        a function that opens one, such as ``lambda: connection.sql(query).arrow()``.
    target : str, int or array-like
        The column of labels; for a .npy file its number, an array, or another .npy file.
    group : str, int or array-like, optional
        The column of groups: pairs are formed within a group. The rows of a group must be next to
        each other, in the same order as in a sorted file.
    weight : str, int or array-like, optional
        The column of sample weights.
    columns : list of str, optional
        The columns of X; by default all others.
    drop : list of str
        Columns that are not used.
    memory : int or str, default="4GB"
        Bytes that blocks and samples may take up, beside the libraries and d^2 numbers.
    delimiter, encoding, format
        Of the files, as in `forerank.data.readers.read_table`.
    prepare : bool, optional
        Whether the columns are prepared as by `forerank fit`: missing values filled, numbers and
        dates scaled, categories one-hot, texts tf-idf, columns that cannot help left out. This is
        `rows.transformer`, a `forerank.data.planned_columns.PlannedColumns` that is fitted on a
        random sample of up to 200,000 rows, for which all sources are read once more. By default
        columns are prepared where one of them is not numeric, or has missing values among the first
        rows (those of the first block that is read, up to 65,536 of Parquet). False refuses such
        columns; True also fills missing values that only later rows have.
    say : callable, optional
        Called with a line on the progress of each pass.

    Returns
    -------
    RowStream
        Its `columns` are the names of the columns of X, its `transformer` makes them of a frame (it
        is None for numbers that are used as they are).

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sklearn.pipeline import make_pipeline
    >>> from forerank import PairwiseRanker, open_rows
    >>> job = ["clerk", "cook", "clerk", "cook"]
    >>> table = pa.table({"age": [31, None, 28, 50], "job": job, "hit": [0, 1, 0, 1]})
    >>> with open_rows(table, target="hit") as rows:
    ...     ranker = PairwiseRanker().fit(rows)
    >>> rows.columns
    ['age', 'job=clerk', 'job=cook']
    >>> make_pipeline(rows.transformer, ranker).predict(table.to_pandas()).tolist()
    [0, 1, 0, 1]
    """
    options = {"delimiter": delimiter, "encoding": encoding, "format": format}
    reading = {name: value for name, value in options.items() if value is not None}
    source = open_source(data, target, group, weight, columns, drop, **reading)
    n_bytes = parse_bytes(memory)
    rows = prepared(source, prepare, n_bytes, say)
    return RowStream(rows, grouped=group is not None, memory=n_bytes, say=say)
