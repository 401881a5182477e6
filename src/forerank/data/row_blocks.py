"""Blocks of rows: made from batches of a source, written to a spool, and read from it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from forerank._text import counted
from forerank._typing import Vector
from forerank.data.group_labels import group_hashes
from forerank.data.row_sources import ArraySource, Batch
from forerank.exceptions import DataFileError
from forerank.objectives.parts import Rows

__all__ = ["BlockMaker", "BlockReader", "BlockStorage", "BlockWriter", "Labels"]

# Classes of y beyond which the target is taken for a number or an id.
_MOST_CLASSES = 256
# Share of entries that are not zero above which rows are stored as dense ones.
_DENSE_SHARE = 0.2
# Buffers of a reader: one is used, one is ready, one is being filled.
_BUFFERS = 3


class Labels:
    """Class numbers of labels, and group numbers, in the order in which they first appear.

    With `known`, labels have the numbers that they have there.
    """

    def __init__(self, known: "Labels | None" = None) -> None:
        self.values: dict[Any, int] = {} if known is None else known.values
        self._is_complete = known is not None
        self._n_groups, self._last = 0, None
        self._hashes: list[NDArray[np.uint64]] = []

    def codes(self, labels: NDArray, name: Any) -> NDArray[np.int16]:
        """The class number of each label."""
        found, inverse = np.unique(labels, return_inverse=True)
        values = found.tolist()
        if self._is_complete and not self.values.keys() >= set(values):
            new = next(value for value in values if value not in self.values)
            raise DataFileError(
                name,
                f"the label {new!r} was not there at the first read; a source has the same rows "
                "each time it is read",
            )
        numbers = [self.values.setdefault(value, len(self.values)) for value in values]
        if len(self.values) > _MOST_CLASSES:
            raise DataFileError(
                name,
                f"the target has more than {_MOST_CLASSES} different values; give a column of "
                "classes or grades",
            )
        return np.array(numbers, dtype=np.int16)[inverse]

    def groups(self, group: NDArray, name: Any) -> NDArray[np.int64]:
        """The number of the group of each row: of runs of equal labels."""
        last = group[0] if self._last is None else self._last
        if isinstance(group[0], str) != isinstance(last, str):
            raise DataFileError(
                name,
                f"groups are strings in some rows and numbers in others, such as {str(last)!r} and "
                f"then {str(group[0])!r}; write them in the same way",
            )
        changes = np.ones(group.size, dtype=bool)
        changes[1:] = group[1:] != group[:-1]
        changes[:1] = self._last is None or group[0] != self._last
        numbers = self._n_groups - 1 + np.cumsum(changes)
        self._n_groups, self._last = int(numbers[-1]) + 1, group[-1]
        self._hashes.append(group_hashes(group[changes]))
        return numbers

    def refuse_split_groups(self, name: Any) -> None:
        """An error where rows of a group are not next to each other."""
        if not self._hashes:
            return
        hashes = np.sort(np.concatenate(self._hashes))
        split = int(np.unique(hashes[1:][hashes[1:] == hashes[:-1]]).size)
        if split:
            raise DataFileError(
                name,
                f"the rows of {counted(split, 'group')} are not next to each other; sort the files "
                "by the group column",
            )

    def sorted(self, name: Any) -> tuple[NDArray, NDArray[np.int64]]:
        """The classes, sorted, and for each class number its place among them."""
        values = list(self.values)
        words = [value for value in values if isinstance(value, str)]
        if words and len(words) < len(values):
            number = next(value for value in values if not isinstance(value, str))
            raise DataFileError(
                name,
                f"labels are strings in some rows, such as {words[0]!r}, and numbers in others, "
                f"such as {number!r}; write them in the same way",
            )
        classes, order = np.unique(np.array(values), return_inverse=True)
        return classes, order.astype(np.int64)


class BlockStorage:
    """The storage of matrices, dense or CSR, that all blocks have: it is chosen for the first."""

    def __init__(self) -> None:
        self._dense: bool | None = None

    def __call__(self, X: Any) -> Any:
        """The matrix in the storage of all blocks."""
        if self._dense is None:
            share = X.nnz / max(X.shape[0] * X.shape[1], 1) if sp.issparse(X) else 1.0
            self._dense = share > _DENSE_SHARE
        if sp.issparse(X):
            return X.toarray() if self._dense else sp.csr_matrix(X)
        return np.ascontiguousarray(X) if self._dense else sp.csr_matrix(X)


class BlockMaker:
    """Blocks of about `n_bytes` with complete groups, from batches of any size.

    Checks that all numbers are finite and weights not negative. Whether the columns
    `can_be_prepared` by `open_rows` decides on the remedy in an error.
    """

    def __init__(
        self,
        labels: Labels,
        n_bytes: int,
        name: Any,
        columns: list[str],
        grouped: bool,
        can_be_prepared: bool = False,
    ) -> None:
        self._labels, self._bytes, self._name = labels, n_bytes, name
        self._columns, self._grouped = columns, grouped
        self._can_be_prepared = can_be_prepared
        self._waiting: list[Rows] = []
        self._n_rows = 0

    def add(self, batch: Batch) -> Iterator[Rows]:
        """The blocks that this batch completes."""
        n = batch.labels.size
        if not n:
            return
        self._check(batch)
        codes = self._labels.codes(batch.labels, self._name)
        group = None if batch.group is None else self._labels.groups(batch.group, self._name)
        self._waiting.append(Rows(batch.X, codes, batch.weight, group))
        self._n_rows += n
        size = sum(_size(rows.X) for rows in self._waiting)
        # Batches of one group that goes on are not joined again and again.
        is_one_group = group is not None and self._waiting[0].group[0] == group[-1]  # type: ignore[index]
        if size >= self._bytes and not is_one_group:
            yield from self._cut(size)

    def _cut(self, size: int) -> Iterator[Rows]:
        whole = _joined(self._waiting)
        self._waiting = []
        end = whole.n_rows
        if whole.group is not None:  # the last group may go on in the next batch
            end = int(np.searchsorted(whole.group, whole.group[-1]))
        step = max(1, int(whole.n_rows * self._bytes / size))
        begin = 0
        while begin < end:
            stop = min(begin + step, end)
            if whole.group is not None and stop < end:
                stop = int(np.searchsorted(whole.group, whole.group[stop - 1], side="right"))
            yield _slice(whole, begin, stop)
            begin = stop
        if end < whole.n_rows:
            self._waiting = [_slice(whole, end, whole.n_rows)]

    def rest(self) -> Iterator[Rows]:
        """The last block."""
        if self._waiting:
            yield _joined(self._waiting)
            self._waiting = []

    def _check(self, batch: Batch) -> None:
        entries = batch.X.data if sp.issparse(batch.X) else batch.X
        with np.errstate(over="ignore", invalid="ignore"):
            is_suspect = not np.isfinite(entries.sum())
        if is_suspect and not np.isfinite(entries).all():
            row, column = _first_not_finite(batch.X)
            named = self._columns[column] if column < len(self._columns) else column
            remedy = "fill or remove it"
            if self._can_be_prepared:
                remedy += ", or have such values filled by open_rows(prepare=True)"
            raise DataFileError(
                self._name,
                f"row {self._n_rows + row + 1:,} has a missing or infinite value in column "
                f"{named!r}; {remedy}",
            )
        if batch.weight is None:
            return
        usable = np.isfinite(batch.weight) & (batch.weight >= 0)
        if not usable.all():
            k = int(np.argmin(usable))
            raise DataFileError(
                self._name,
                f"row {self._n_rows + k + 1:,} has the weight {batch.weight[k]:g}; weights must be "
                "finite and not negative (zero leaves a row out)",
            )


def _first_not_finite(X: Any) -> tuple[int, int]:
    """Row and column of the first value that is missing or infinite."""
    if not sp.issparse(X):
        row, column = np.argwhere(~np.isfinite(X))[0]
        return int(row), int(column)
    k = int(np.argmin(np.isfinite(X.data)))
    return int(np.searchsorted(X.indptr, k, side="right")) - 1, int(X.indices[k])


def _size(X: Any) -> int:
    return int(X.data.nbytes + X.indices.nbytes) if sp.issparse(X) else int(X.nbytes)


def _joined(blocks: list[Rows]) -> Rows:
    if len(blocks) == 1:
        return blocks[0]
    parts = [rows.X for rows in blocks]
    X = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
    weight, group = (
        None if getattr(blocks[0], name) is None
        else np.concatenate([getattr(rows, name) for rows in blocks])
        for name in ("weight", "group")
    )  # fmt: skip
    return Rows(X, np.concatenate([rows.codes for rows in blocks]), weight, group)


def _slice(rows: Rows, begin: int, end: int) -> Rows:
    part = slice(begin, end)
    return Rows(
        rows.X[part],
        rows.codes[part],
        None if rows.weight is None else rows.weight[part],
        None if rows.group is None else rows.group[part],
    )


class BlockWriter:
    """Writes blocks to files of a directory; the columns of a .npy file are not copied."""

    def __init__(self, directory: Path, in_place: ArraySource | None) -> None:
        self._directory, self._in_place = directory, in_place
        self._rows: BinaryIO | None = None
        self._others = (directory / "others").open("wb")
        if in_place is None:
            self._rows = (directory / "rows").open("wb")
        self._shapes: list[tuple[int, bool, bool]] = []
        self._kind: tuple[Any, int] | None = None

    def write(self, rows: Rows) -> None:
        """Append a block."""
        if self._rows is not None:
            if sp.issparse(rows.X):
                for each in (rows.X.data, rows.X.indices, rows.X.indptr):
                    # As `np.save` does, whose error for a full disk has no number.
                    header = np.lib.format.header_data_from_array_1_0(each)
                    np.lib.format.write_array_header_1_0(self._rows, header)
                    self._rows.write(each.data)
            else:
                self._rows.write(np.ascontiguousarray(rows.X).data)
        self._kind = (None if sp.issparse(rows.X) else rows.X.dtype), rows.X.shape[1]
        self._others.write(rows.codes.data)
        for each in (rows.weight, rows.group):
            if each is not None:
                self._others.write(np.ascontiguousarray(each).data)
        self._shapes.append((rows.n_rows, rows.weight is not None, rows.group is not None))

    def close(self) -> None:
        """Close the files."""
        for file in (self._rows, self._others):
            if file is not None:
                try:
                    file.close()
                except OSError:  # what is left to write does not fit either
                    continue

    def reader(self) -> "BlockReader":
        """The reader of what was written."""
        for file in (self._rows, self._others):
            if file is not None:
                file.close()
        assert self._kind is not None
        return BlockReader(self._directory, self._in_place, self._shapes, *self._kind)


class BlockReader:
    """Iterates over the blocks of a spool; buffers are reused after two further blocks."""

    def __init__(
        self,
        directory: Path,
        in_place: ArraySource | None,
        shapes: list[tuple[int, bool, bool]],
        dtype: Any,
        n_columns: int,
    ) -> None:
        self._directory, self._in_place, self._shapes = directory, in_place, shapes
        self._dtype, self._n_columns = dtype, n_columns
        self.is_in_place = in_place is not None
        path = directory / "rows" if in_place is None else in_place.name
        self._path = path
        width = n_columns if in_place is None else in_place.n_file_columns
        self._width = width
        self._largest = max(n for n, _, _ in shapes) * width

    def __iter__(self) -> Iterator[Rows]:
        buffers = []
        if self._dtype is not None:
            buffers = [np.empty(self._largest, self._dtype) for _ in range(_BUFFERS)]
        with (
            self._path.open("rb", buffering=0 if buffers else -1) as rows_file,
            (self._directory / "others").open("rb") as others,
        ):
            if self._in_place is not None:
                rows_file.seek(self._in_place.offset)
            for k, (n, weighted, grouped) in enumerate(self._shapes):
                X = self._sparse(rows_file, n) if self._dtype is None else self._dense(
                    rows_file, n, buffers[k % _BUFFERS])  # fmt: skip
                codes = np.fromfile(others, np.int16, n)
                weight: Vector | None = np.fromfile(others, float, n) if weighted else None
                group = np.fromfile(others, np.int64, n) if grouped else None
                yield Rows(X, codes, weight, group)

    def _sparse(self, file: BinaryIO, n: int) -> Any:
        data, indices, indptr = (np.load(file) for _ in range(3))
        return sp.csr_matrix((data, indices, indptr), shape=(n, self._n_columns))

    def _dense(self, file: BinaryIO, n: int, buffer: NDArray) -> NDArray:
        block = buffer[: n * self._width]
        view, done = block.view(np.uint8).data, 0
        while done < len(view):
            read = file.readinto(view[done:])  # type: ignore[attr-defined]
            if not read:
                raise DataFileError(self._path, "became shorter between two reads; fit again")
            done += read
        block = block.reshape(n, self._width)
        if self._in_place is not None and len(self._in_place.kept) < self._width:
            return block[:, self._in_place.kept]
        return block
