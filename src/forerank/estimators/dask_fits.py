"""Fits on Dask collections.

A scan of labels, weights and groups finds the classes; a scan of X takes moments of the columns and
a sample. From there on a fit is one on rows in parts (`forerank.estimators.part_fits`), of which
every pass is a graph of tasks. No pass keeps X: a collection that fits into the memory of the
workers should be persisted, any other is read anew in each pass.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from forerank._typing import Vector
from forerank._validation import SAFE_WEIGHTS, encode_classes
from forerank.dask.partitions import (
    Partitions,
    column_names,
    column_of,
    column_problem,
    matrix_of,
    n_columns_of,
    numbers_of,
    refuse_problems,
    refuse_split_groups,
    refuse_strings_among_others,
)
from forerank.estimators.base import refuse_more_than_two, refuse_one_class
from forerank.estimators.part_fits import (
    PartScan,
    prepare_part_pairs,
    prepare_part_points,
    refuse_other_columns,
    table_bits,
)
from forerank.metrics.validation import number_groups
from forerank.objectives.part_columns import ColumnMoments, part_moments
from forerank.objectives.part_rows import part_group_counts
from forerank.objectives.parts import PairParts, Rows
from forerank.solvers.path import Solve

__all__ = ["prepare_dask_pairs", "prepare_dask_points"]

# Most rows and bytes of the sample, which the client has in memory.
_MOST_ROWS, _MOST_BYTES = 2**18, 2**26


def prepare_dask_pairs(ranker: Any, X: Any, y: Any, sample_weight: Any, qid: Any) -> Solve:
    """A function that fits a ranker on all pairs of a Dask collection at its present alpha."""
    rows = _read(ranker, X, y, sample_weight, qid)
    edges = ranker._edges()
    parts = PairParts(
        ranker.loss, ranker.classes_.size, None if edges is None else tuple(edges), rows.grouped
    )
    return prepare_part_pairs(
        ranker,
        rows.scan(parts),
        rows.over_parts,
        grouped=rows.grouped,
        bits=table_bits(ranker.loss, ranker.tol),
    )


def prepare_dask_points(ranker: Any, X: Any, y: Any, sample_weight: Any) -> Solve:
    """A function that fits a ranker row by row on a Dask collection at its present alpha."""
    rows = _read(ranker, X, y, sample_weight, None)
    refuse_more_than_two(ranker.classes_)
    return prepare_part_points(ranker, rows.scan(), rows.over_parts)


def _read(ranker: Any, X: Any, y: Any, sample_weight: Any, qid: Any) -> "_DaskRows":
    """The rows of a collection after the first scan; sets classes and columns of the ranker."""
    if y is None:
        raise ValueError("y is None; labels are needed, one for each row.")
    n_columns, names = n_columns_of(X), column_names(X)
    refuse_other_columns(ranker, n_columns)
    partitions = Partitions(X, y=y, sample_weight=sample_weight, qid=qid)
    reader, counts = _scan_labels(partitions.without_rows(), grouped=qid is not None)
    refuse_one_class(reader.classes)
    ranker.classes_, ranker.n_features_in_ = reader.classes, n_columns
    ranker.__dict__.pop("feature_names_in_", None)
    if names is not None and all(isinstance(name, str) for name in names):
        ranker.feature_names_in_ = np.asarray(names, dtype=object)
    return _DaskRows(partitions, reader, counts, n_columns, qid is not None)


@dataclass(frozen=True)
class _DaskRows:
    """Partitions of rows after the first scan; `counts` are numbers of rows by class."""

    partitions: Partitions
    reader: "_Reader"
    counts: Vector
    n_columns: int
    grouped: bool

    def over_parts(self, function: Callable[[Rows], Any]) -> Any:
        """The sum of a function over all partitions."""
        return self.partitions.sum(partial(_on_rows, function=function, reader=self.reader))

    def scan(self, parts: PairParts | None = None) -> PartScan:
        """What the second scan finds; `parts` tells which groups have pairs."""
        share = _sample_shares(self.counts, self.n_columns, grouped=self.grouped)
        task = partial(
            _scan_part,
            reader=self.reader,
            n_columns=self.n_columns,
            share=share,
            parts=parts if self.grouped else None,
        )
        found = self.partitions.map(task, range(len(self.partitions)))
        refuse_problems([each.problem for each in found])
        moments = _added_moments([each.moments for each in found if each.moments is not None])
        sample = _joined([each.sample for each in found if each.sample is not None], moments)
        groups = np.sum([each.groups for each in found], axis=0).tolist()
        return PartScan(self.reader.classes, moments, sample, *groups)


# --- First scan: labels, weights, groups ---


class _LabelCounts(NamedTuple):
    """Labels of a partition with their numbers of rows, its largest weight, and its groups."""

    labels: NDArray
    counts: NDArray
    largest_weight: float
    groups: NDArray
    problem: str = ""


def _count_labels(_: None, y: Any, weight: Any, qid: Any) -> _LabelCounts:
    """What the first scan finds in a partition."""
    values, nothing = column_of(y), np.empty(0)
    if problem := column_problem(values, "y") or _size_problem(values, weight, qid):
        return _LabelCounts(nothing, nothing, 0.0, nothing, problem)
    labels, counts = np.unique(values, return_counts=True)
    largest = 1.0
    if weight is not None:
        largest, problem = _largest_weight(weight)
    groups = nothing
    if qid is not None:
        problem = problem or column_problem(column_of(qid), "qid")
        groups = nothing if problem else np.unique(column_of(qid))
    return _LabelCounts(labels, counts, largest, groups, problem)


def _largest_weight(weight: Any) -> tuple[float, str]:
    """The largest weight of a partition, and why its weights are not usable."""
    try:
        w = numbers_of(weight)
    except (TypeError, ValueError):
        return 0.0, "sample_weight has values that are not numbers"
    if not np.all((w >= 0.0) & (w < np.inf)):
        return 0.0, "sample_weight must be finite and not negative. Use zero to exclude a row"
    return float(w.max(initial=0.0)), ""


def _size_problem(values: NDArray, weight: Any, qid: Any) -> str:
    for name, column in (("sample_weight", weight), ("qid", qid)):
        if column is not None and len(column) != values.size:
            return _different_sizes(name, len(column), "y", values.size)
    return ""


def _different_sizes(name: str, n: int, other: str, n_other: int) -> str:
    return (
        f"{name} has {n:,} rows and {other} has {n_other:,}. Make both from the same "
        "collection, so that their partitions have the same rows"
    )


def _scan_labels(partitions: Partitions, *, grouped: bool) -> tuple["_Reader", Vector]:
    """The reader of partitions, and the number of rows of each class."""
    found = partitions.map(_count_labels)
    refuse_problems([each.problem for each in found])
    refuse_strings_among_others([each.labels for each in found], "y")
    refuse_strings_among_others([each.groups for each in found], "qid")
    filled = [each for each in found if each.labels.size]
    if not filled:
        raise ValueError("X has no rows; rows of at least two classes are needed.")
    classes, codes = encode_classes(np.concatenate([each.labels for each in filled]))
    counts = np.bincount(codes, weights=np.concatenate([each.counts for each in filled]))
    if grouped:
        refuse_split_groups([each.groups for each in filled])
    largest = max(each.largest_weight for each in found)
    if largest == 0.0:
        raise ValueError("sample_weight is zero for every row; rows of each class need a weight.")
    safe = SAFE_WEIGHTS[0] < largest < SAFE_WEIGHTS[1]
    return _Reader(classes, 1.0 if safe else largest), counts.astype(np.float64)


# --- Partitions as rows ---


@dataclass(frozen=True)
class _Reader:
    """From the blocks of a partition to its rows."""

    classes: NDArray
    weight_unit: float

    def rows(self, X: Any, y: Any, weight: Any, qid: Any) -> Rows:
        matrix, labels = matrix_of(X), column_of(y)
        codes = np.searchsorted(self.classes, labels).astype(np.int64)
        w = None if weight is None else numbers_of(weight) / self.weight_unit
        group = None
        if qid is not None:
            n = labels.size
            group = number_groups(column_of(qid), n) if n else np.empty(0, dtype=np.int64)
        return Rows(matrix, codes, w, group)


def _on_rows(X: Any, y: Any, weight: Any, qid: Any, *, function: Any, reader: _Reader) -> Any:
    return function(reader.rows(X, y, weight, qid))


# --- Second scan: columns and a sample ---


class _Part(NamedTuple):
    """Moments of the columns of a partition, rows of it for the sample, and numbers of groups, of
    those without a pair, and of the rows of the latter.
    """

    moments: ColumnMoments | None
    sample: Rows | None
    groups: Any = (0, 0, 0)
    problem: str = ""


def _scan_part(
    X: Any,
    y: Any,
    weight: Any,
    qid: Any,
    number: int,
    *,
    reader: "_Reader",
    n_columns: int,
    share: Vector,
    parts: PairParts | None,
) -> _Part:
    """What the second scan finds in a partition; `share` is that of each class in the sample."""
    n_labels = len(column_of(y))
    if n_labels != X.shape[0]:
        problem = _different_sizes("X", X.shape[0], "y", n_labels)
        return _Part(None, None, problem=problem)
    rows = reader.rows(X, y, weight, qid)
    if problem := _matrix_problem(rows.X, n_columns):
        return _Part(None, None, problem=problem)
    moments = part_moments(rows, _column_means(rows.X), reader.classes.size)
    groups = (0, 0, 0) if parts is None else part_group_counts(rows, parts)
    return _Part(moments, _drawn(rows, share, number), groups)


def _matrix_problem(X: Any, n_columns: int) -> str:
    """Why a block of X is not usable; empty where it is."""
    if X.shape[1] != n_columns:
        return f"X has {X.shape[1]} columns; {n_columns} were expected"
    if not np.isfinite(X.data if sp.issparse(X) else X).all():
        return "X has NaN or infinite values; fill in missing values, or drop these rows"
    return ""


def _drawn(rows: Rows, share: Vector, number: int) -> Rows:
    """Rows of a partition for the sample: each with the share of its class, or complete groups."""
    u = np.random.default_rng([0, number]).uniform(size=rows.n_rows)
    u = u if rows.group is None else u[rows.group]
    kept = np.flatnonzero(u < share[rows.codes])
    return Rows(
        rows.X[kept],
        rows.codes[kept],
        None if rows.weight is None else rows.weight[kept],
        None if rows.group is None else rows.group[kept],
    )


def _column_means(X: Any) -> Vector:
    n_rows, n_columns = X.shape
    if n_rows == 0 or sp.issparse(X):  # means of sparse columns are near zero
        return np.zeros(n_columns)
    return X.mean(axis=0, dtype=np.float64)


def _sample_shares(counts: Vector, n_columns: int, *, grouped: bool) -> Vector:
    """The share of the rows of each class in the sample: all of a rare class, or, with groups, the
    same of all.
    """
    size = max(min(_MOST_ROWS, _MOST_BYTES // (8 * max(n_columns, 1))), 16)
    if counts.sum() <= size:
        return np.ones(counts.size)
    if grouped:
        return np.full(counts.size, size / counts.sum())
    return 0.5 * size / counts


def _added_moments(parts: list[ColumnMoments]) -> ColumnMoments:
    """The sum of moments, each about its own point, about the mean of all rows."""
    weight = sum(part.weight.sum() for part in parts)
    shifted = [part.weight.sum() * part.about + part.first.sum(axis=0) for part in parts]
    mean = sum(shifted[1:], start=shifted[0]) / weight
    moved = [part.moved(mean) for part in parts]
    return sum(moved[1:], start=moved[0])


def _joined(samples: list[Rows], moments: ColumnMoments) -> Rows:
    """The sample of all partitions; without groups, with weights such that every class has its
    share of all rows.
    """
    blocks = [each.X for each in samples]
    X = sp.vstack(blocks, format="csr") if sp.issparse(blocks[0]) else np.concatenate(blocks)
    codes = np.concatenate([each.codes for each in samples])
    weight = np.concatenate(
        [np.ones(each.n_rows) if each.weight is None else each.weight for each in samples]
    )
    if samples[0].group is not None:
        return Rows(X, codes, weight, _united_groups([each.group for each in samples]))
    sampled = np.bincount(codes, weights=weight, minlength=moments.weight.size)
    ratio = np.divide(moments.weight, sampled, out=np.ones(sampled.size), where=sampled > 0.0)
    weight = weight * ratio[codes]
    return Rows(X, codes, weight / weight.mean() if weight.any() else weight)


def _united_groups(parts: list[Any]) -> NDArray[np.integer]:
    """Group numbers of all partitions from those of each."""
    sizes = [int(group.max(initial=-1)) + 1 for group in parts]
    starts = np.cumsum([0, *sizes[:-1]])
    numbers = [start + group for start, group in zip(starts, parts, strict=True)]
    return np.unique(np.concatenate(numbers), return_inverse=True)[1]
