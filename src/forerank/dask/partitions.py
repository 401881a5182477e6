"""Partitions of Dask collections that belong together, and sums over them in a fixed order.

Computations run on the client that Dask has at the time, otherwise on its local scheduler. A task
depends on its partition and on the function alone, no task has a given worker, and results are
added in a tree whose shape depends on the number of partitions alone: so results have the same bits
for any number of workers, and a task that is lost with its worker is computed again elsewhere.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial, reduce
from operator import add
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from forerank._kernels import serial_blas, serial_kernels
from forerank._typing import Matrix
from forerank._validation import is_dask

__all__ = ["Partitions", "column_names", "column_of", "column_problem", "delayed_blocks"]
__all__ += ["matrix_of"]
__all__ += ["n_columns_of", "numbers_of", "refuse_problems", "refuse_split_groups"]
__all__ += ["refuse_strings_among_others", "single_blocks"]

A = TypeVar("A")

# Results that are added by one task of the tree; more wait for the slowest of them, fewer have more
# levels.
_FAN_IN = 8
# Group labels named in an error message.
_SHOWN = 3


class Partitions:
    """Partitions of X and of columns with one value per row: labels, weights, groups, scores.

    Parameters
    ----------
    X : Dask array, DataFrame or Series
        Its partitions are those of all.
    name : str
        Name of X in error messages.
    **columns : Dask array or Series, array-like, or None
        As many partitions as X. An array-like is divided like X where the sizes of the partitions
        of X are known.
    """

    def __init__(self, X: Any, *, name: str = "X", **columns: Any) -> None:
        for label, column in {name: X, **columns}.items():
            refuse_other_collections(column, label)
        self.sizes, self.name = _known_sizes(X), name
        blocks = [_blocks(X, name)]
        for label, column in columns.items():
            found = _blocks(self._divided(column, label), label, len(blocks[0]))
            if len(found) != len(blocks[0]):
                raise ValueError(
                    f"{label} has {len(found)} partitions and {name} has {len(blocks[0])}. Make "
                    "both from the same collection, or repartition one of them."
                )
            blocks.append(found)
            if self.sizes is None:
                _refuse_other_order(name, blocks[0], label, found)
        self._blocks = list(zip(*blocks, strict=True))

    def without_rows(self) -> "Partitions":
        """The partitions with None in place of X, of which no task then computes anything."""
        other = copy(self)
        other._blocks = [(None, *columns) for _, *columns in self._blocks]
        return other

    def __len__(self) -> int:
        return len(self._blocks)

    def _divided(self, column: Any, name: str) -> Any:
        """The column as a collection with the partitions of X, where their sizes are known."""
        if column is None or (is_dask(column) and self.sizes is None):
            return column
        if is_dask(column):
            known = _known_sizes(column)
            if known is None or known == self.sizes:
                return column
            if sum(known) == sum(self.sizes or ()):
                return column.rechunk((self.sizes,))
            self._refuse_length(name, sum(known))
        if self.sizes is None:
            raise ValueError(
                f"{name} is in memory, but the partitions of {self.name} have unknown sizes. Give "
                f"{name} as a Dask collection with the same partitions."
            )
        import dask.array

        values = np.asarray(column)
        if values.ndim != 1 or values.size != sum(self.sizes):
            self._refuse_length(name, len(values))
        return dask.array.from_array(values, chunks=(self.sizes,))

    def _refuse_length(self, name: str, n_values: int) -> None:
        raise ValueError(
            f"{name} has {n_values:,} values for {sum(self.sizes or ()):,} rows; give one per row."
        )

    def map(self, function: Callable[..., A], *by_partition: Sequence[Any]) -> list[A]:
        """`function` of the blocks of each partition, in order; further arguments by partition."""
        import dask

        tasks = self.tasks(function, *by_partition)
        return list(dask.compute(*tasks))

    def sum(self, function: Callable[..., A]) -> A:
        """The sum over all partitions of `function` of their blocks, added in their order."""
        import dask

        added = dask.delayed(_added, pure=False)
        parts = self.tasks(partial(_sized_result, function=function))
        while len(parts) > 1:
            parts = [added(parts[k : k + _FAN_IN]) for k in range(0, len(parts), _FAN_IN)]
        return dask.compute(parts[0])[0].value

    def tasks(self, function: Callable, *by_partition: Sequence[Any]) -> list[Any]:
        """The same, delayed."""
        import dask

        # One node of the graph: it reaches each worker once, and is part of the graph, not data
        # that is lost with a worker.
        shared = dask.delayed(_Sized(function), pure=False, traverse=False)
        task = dask.delayed(_applied, pure=False, traverse=False)
        further = zip(*by_partition, strict=True) if by_partition else [()] * len(self)
        return [
            task(shared, *blocks, *own) for blocks, own in zip(self._blocks, further, strict=True)
        ]


class _Sized:
    """A value of which Dask knows the size, so that it moves the smaller of two things."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __sizeof__(self) -> int:
        return array_bytes(self.value)


def array_bytes(value: Any, counted: dict[int, Any] | None = None) -> int:
    """Bytes of the arrays that a value holds when it is pickled, each counted once."""
    counted = {} if counted is None else counted
    if isinstance(value, (str, bytes, int, float, type)) or id(value) in counted:
        return 0
    counted[id(value)] = value  # held, so that no other value gets its number
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, partial):
        value = [value.args, value.keywords]
    elif not isinstance(value, (dict, list, tuple)):
        value = value.__getstate__()
    held = value.values() if isinstance(value, dict) else value
    return sum(array_bytes(each, counted) for each in held or ())


def _sized_result(*blocks: Any, function: Callable) -> _Sized:
    return _Sized(function(*blocks))


def _applied(function: _Sized, *blocks: Any) -> Any:
    """A function of blocks on one thread; other threads of the worker have other partitions."""
    with serial_blas(), serial_kernels():
        return function.value(*blocks)


def _added(values: Sequence[_Sized]) -> _Sized:
    return _Sized(reduce(add, [each.value for each in values]))


def _blocks(collection: Any, name: str, n_blocks: int = 0) -> list[Any]:
    """A delayed object for each partition; None for each where there is no collection."""
    if collection is None:
        return [None] * n_blocks
    return delayed_blocks(collection)


def delayed_blocks(collection: Any) -> list[Any]:
    """A delayed object for each partition of a collection."""
    if hasattr(collection, "chunks"):
        array = single_blocks(collection)
        # Of a DataFrame, where sizes are unknown; see `_has_rows_in_order`.
        is_own = _known_sizes(array) is not None
        return np.ravel(array.to_delayed(optimize_graph=is_own)).tolist()
    # Full optimisation would read several small files as one partition, for a column of labels but
    # not for X; simplification reads only the columns that are used.
    if _has_rows_in_order(collection):
        return collection.simplify().to_delayed(optimize_graph=False)
    with _shared_shuffles():
        return collection.to_delayed(optimize_graph=False)


@contextmanager
def _shared_shuffles() -> Iterator[None]:
    """Shuffles of one DataFrame are the same tasks in all graphs made here: shuffles through files,
    the default without a client, would not be.
    """
    import dask
    from dask.utils import get_default_shuffle_method

    method = {"dataframe.shuffle.method": "tasks"} if get_default_shuffle_method() == "disk" else {}
    with dask.config.set(method):
        yield


def _has_rows_in_order(collection: Any) -> bool:
    """Whether a DataFrame is read and changed partition by partition alone.

    A shuffle or a merge has its rows in another order each time. Unsimplified, the columns of one
    DataFrame have it in common; simplified, X and its labels would have one each, for the columns
    that either uses, and labels would be those of other rows.
    """
    from dask.dataframe.dask_expr._expr import Blockwise
    from dask.dataframe.dask_expr.io import IO

    return all(isinstance(node, (Blockwise, IO)) for node in collection.expr.walk())


def _refuse_other_order(name: str, blocks: list[Any], label: str, column: list[Any]) -> None:
    """ValueError where one of two collections is shuffled or merged without the other, or apart
    from it: the rows of their partitions are then in different orders.
    """
    if column and column[0] is not None and _shuffles(blocks) != _shuffles(column):
        raise ValueError(
            f"{name} and {label} come from a shuffle, sort or merge that Dask makes for each of "
            "them, with the rows in another order each time. Make both from one persisted "
            "DataFrame, df = df.persist(), or give columns of one DataFrame, not their values."
        )


def _shuffles(blocks: list[Any]) -> set[str]:
    """The keys of the tasks that exchange rows between partitions, and wait for all of them."""
    keys = {key[0] if isinstance(key, tuple) else key for key in blocks[0].dask}
    return {key for key in keys if "shuffle" in str(key) or "barrier-" in str(key)}


def refuse_other_collections(collection: Any, name: str) -> None:
    """TypeError where a Dask collection is neither array, nor DataFrame, nor Series."""
    kind = type(collection).__name__
    if is_dask(collection) and kind not in ("Array", "DataFrame", "Series"):
        raise TypeError(f"{name} is a Dask {kind}; a Dask array, DataFrame or Series is expected.")


def single_blocks(collection: Any) -> Any:
    """The collection with all columns of a row in one block."""
    if hasattr(collection, "chunks") and collection.ndim == 2 and collection.numblocks[1] > 1:
        return collection.rechunk({1: -1})
    return collection


def _known_sizes(collection: Any) -> tuple[int, ...] | None:
    """Numbers of rows of the partitions of an array, where they are known."""
    sizes: Any = collection.chunks[0] if hasattr(collection, "chunks") else (np.nan,)
    return None if np.isnan(sizes).any() else sizes


# --- Blocks ---


def n_columns_of(X: Any) -> int:
    """Number of columns of a Dask array or DataFrame; refuses other shapes and words."""
    refuse_other_collections(X, "X")
    if X.ndim != 2:
        raise ValueError(
            f"X is a Dask {type(X).__name__} of {X.ndim} dimensions; rows and columns are expected."
        )
    if hasattr(X, "dtypes"):
        from pandas.api.types import is_numeric_dtype

        words = [repr(name) for name, kind in X.dtypes.items() if not is_numeric_dtype(kind)]
        if words:
            raise ValueError(
                f"Column {words[0]} of X is not numeric ({len(words)} of {len(X.columns)} "
                "columns are not). Encode or drop such columns first."
            )
    elif X.dtype.kind not in "biuf":
        raise ValueError(f"X has dtype {X.dtype}; numbers are expected.")
    if np.isnan(X.shape[1]):
        raise ValueError("X has an unknown number of columns; give its chunks along columns.")
    return int(X.shape[1])


def column_names(X: Any) -> list[Any] | None:
    """Names of the columns of a DataFrame; None for an array."""
    return list(X.columns) if hasattr(X, "columns") else None


def matrix_of(block: Any) -> Matrix:
    """A block of X as an array of float32 or float64, or CSR.

    Its order in memory is the same before and after a transfer between workers, which makes blocks
    contiguous: sums over rows depend on it in the last bits.
    """
    if sp.issparse(block):
        return block.tocsr()
    by_column = hasattr(block, "to_numpy")
    if hasattr(block, "to_numpy"):
        plain = all(isinstance(kind, np.dtype) for kind in block.dtypes)
        block = block.to_numpy() if plain else block.to_numpy(dtype=np.float64, na_value=np.nan)
    values = np.asarray(block)
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    if by_column:
        return np.asfortranarray(values)
    return values if values.flags.f_contiguous else np.ascontiguousarray(values)


def column_of(block: Any) -> Any:
    """A block of labels, weights, groups or scores as an array of one dimension."""
    values = block.to_numpy() if hasattr(block, "to_numpy") else np.asarray(block)
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


# --- Problems, which tasks return and the client raises ---


def column_problem(values: NDArray, name: str) -> str:
    """Why a block of a column is not usable; empty where it is."""
    if values.ndim != 1:
        return f"{name} has {values.ndim} dimensions; one value per row is expected"
    is_missing = _are_missing(values) if values.dtype == object else values != values
    if np.any(is_missing):
        return f"{name} has missing values; remove these rows or give them a value"
    if values.dtype == object and len({isinstance(v, str) for v in values.tolist()}) > 1:
        return f"{name} has strings and other values; write them in the same way"
    return ""


def _are_missing(values: NDArray) -> list[bool]:
    """Which objects are None, NaN, or the missing value of pandas, of which nothing is true."""
    return [v is None or type(v).__name__ == "NAType" or v != v for v in values.ravel()]


def numbers_of(block: Any) -> NDArray[np.float64]:
    """A block of weights as numbers; NaN where they are missing."""
    values = column_of(block)
    if values.dtype == object:
        values = np.where(_are_missing(values), np.nan, values)
    return values.astype(np.float64)


def refuse_strings_among_others(parts: list[NDArray], name: str) -> None:
    """ValueError where values are strings in some partitions and not in others."""
    filled = [(number, part) for number, part in enumerate(parts) if part.size]
    first = {isinstance(part[0], str): number for number, part in reversed(filled)}
    if len(first) > 1:
        raise ValueError(
            f"{name} has strings in partition {first[True]} and other values in partition "
            f"{first[False]}; write them in the same way."
        )


def refuse_problems(problems: list[str]) -> None:
    """ValueError with the first problem of a partition."""
    for number, problem in enumerate(problems):
        if problem:
            raise ValueError(f"In partition {number} of {len(problems)}: {problem}.")


def refuse_split_groups(groups: list[NDArray]) -> None:
    """ValueError where a group has rows in several partitions."""
    labels, n_partitions = np.unique(np.concatenate(groups), return_counts=True)
    split = labels[n_partitions > 1].tolist()
    if split:
        shown = ", ".join(map(repr, split[:_SHOWN])) + ", ..." * (len(split) > _SHOWN)
        raise ValueError(
            f"{len(split):,} of {labels.size:,} groups of qid have rows in several partitions "
            f"({shown}); each group must be in one. For a DataFrame: df.shuffle(on=column of qid); "
            "for an array: X.rechunk to chunks that end where a group ends."
        )
