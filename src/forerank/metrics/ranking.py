"""The ranking that every measure starts from: checked rows, sorted once by group and descending
score.

A group is a contiguous run of the sorted rows, and rows with tied scores are a contiguous block
within a group. Curves and pair counts are sums over these runs.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forerank._kernels import compiled
from forerank._sorting import argsort, sort_by_group
from forerank._typing import Index, Mask, Queries, Vector, Weights
from forerank.metrics.validation import (
    check_column,
    check_numbers,
    check_weight,
    number_groups,
    positive_rows,
)

__all__ = ["Curve", "Ranking", "binary_curve", "curve_of", "mean_over_groups", "rank_binary"]
__all__ += ["excluded_text", "rank_rows", "sort_descending"]


@dataclass(frozen=True)
class Ranking:
    """The rows of positive weight, group by group, highest score first."""

    rows: Index  # row numbers in the input
    weight: Vector
    opens: Mask  # whether the row is the first of a block of tied scores
    starts: Index  # rows of group g are starts[g]:starts[g + 1], at least one
    grouped: bool

    @cached_property
    def tie(self) -> Index:
        """Number of the block of each row; ascending."""
        return np.cumsum(self.opens)

    @cached_property
    def blocks(self) -> Index:
        """First row of each block."""
        return np.flatnonzero(self.opens)

    @cached_property
    def block_sizes(self) -> Index:
        return np.diff(self.blocks, append=self.rows.size)

    @cached_property
    def first(self) -> Index:
        """Blocks of group g are first[g]:first[g + 1]."""
        return np.searchsorted(self.blocks, self.starts)

    def sum_by_group(self, block_values: Vector) -> Vector:
        return np.add.reduceat(block_values, self.first[:-1])

    def only(self, kept: Mask) -> "Ranking":
        """The ranking of the kept groups."""
        sizes = np.diff(self.starts)
        rows = np.repeat(kept, sizes)
        starts = np.concatenate([[0], np.cumsum(sizes[kept])])
        return Ranking(self.rows[rows], self.weight[rows], self.opens[rows], starts, self.grouped)


def rank_rows(n: int, y_score: ArrayLike, sample_weight: Weights, qid: Queries) -> Ranking:
    """The ranking of n rows, after checks of scores, weights and groups."""
    s, w = check_numbers(y_score, "y_score", n), check_weight(sample_weight, n)
    group = None if qid is None else number_groups(qid, n)
    kept = None
    if sample_weight is not None and not w.all():
        kept = np.flatnonzero(w)
        s, w = s[kept], w[kept]
        group = None if group is None else group[kept]
    order, starts = sort_descending(s, group)
    s = s[order]
    opens = np.ones(s.size, dtype=bool)
    opens[1:] = s[1:] != s[:-1]
    opens[starts[:-1]] = True
    if sample_weight is not None:
        # Dividing the weights of a group by a power of two is exact, and keeps their products from
        # overflow and underflow.
        w = w[order]
        exponent = np.frexp(np.maximum.reduceat(w, starts[:-1]))[1]
        w = np.ldexp(w, -np.repeat(exponent, np.diff(starts)))
    rows = order if kept is None else kept[order]
    return Ranking(rows, w, opens, starts, group is not None)


def sort_descending(values: NDArray, group: Index | None) -> tuple[Index, Index]:
    """Row numbers by group and descending value, and the bounds of the groups that have rows."""
    ascending = argsort(values) if values.dtype == np.float64 else np.argsort(values)
    order = np.ascontiguousarray(ascending[::-1])
    if group is None:
        return order, np.array([0, values.size])
    sizes = np.bincount(group)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    starts = np.append(bounds[:-1][sizes > 0], values.size)
    return sort_by_group(order, group, bounds[:-1]), starts


def rank_binary(
    y_true: ArrayLike,
    y_score: ArrayLike,
    sample_weight: Weights,
    qid: Queries,
    pos_label: Any,
    stacklevel: int = 3,
) -> tuple[Ranking, Mask]:
    """The ranking of the groups with both classes, and which of its rows are positive."""
    y = check_column(y_true, "y_true")
    is_positive = positive_rows(y, pos_label)
    ranking = rank_rows(y.size, y_score, sample_weight, qid)
    positive = is_positive[ranking.rows]
    if not ranking.grouped and 0 < np.count_nonzero(positive) < positive.size:
        return ranking, positive
    n_positive = np.add.reduceat(positive, ranking.starts[:-1], dtype=np.intp)
    both = (n_positive > 0) & (n_positive < np.diff(ranking.starts))
    if not both.all():
        _exclude(ranking, both, "rows of both classes with positive weight", stacklevel)
        positive = positive[np.repeat(both, np.diff(ranking.starts))]
        ranking = ranking.only(both)
    return ranking, positive


def mean_over_groups(ranking: Ranking, value: Vector, defined: Mask, need: str) -> float:
    if not defined.all():
        _exclude(ranking, defined, need, stacklevel=3)
    return float(value[defined].mean())


def _exclude(ranking: Ranking, kept: Mask, need: str, stacklevel: int) -> None:
    """A warning about the excluded groups, or an error if none is left; `stacklevel` counts from
    the caller of this function.
    """
    n_excluded = int(kept.size - np.count_nonzero(kept))
    if not ranking.grouped:
        raise ValueError(
            f"The measure is undefined here: it needs {need}. Check y_true and sample_weight."
        )
    text = excluded_text(n_excluded, kept.size, need)
    warnings.warn(text, UserWarning, stacklevel=stacklevel + 1)


def excluded_text(n_excluded: int, n_groups: int, need: str) -> str:
    """The text of a warning about excluded groups; ValueError if none is left."""
    if n_excluded == n_groups:
        raise ValueError(
            f"None of the {n_groups} groups has {need}; check that qid and y_true belong together."
        )
    return f"{n_excluded} of {n_groups} groups excluded from the mean: they lack {need}."


# --- Points of the ROC and precision-recall curves ---


class Curve(NamedTuple):
    """Weights of positives and negatives, one entry per block of tied rows."""

    positive: Vector  # in the block
    negative: Vector
    tp: Vector  # in the block and above it, within the group
    fp: Vector
    all_positive: Vector  # in the group
    all_negative: Vector


def binary_curve(
    y_true: ArrayLike, y_score: ArrayLike, sample_weight: Weights, qid: Queries, pos_label: Any
) -> tuple[Ranking, Curve]:
    ranking, positive = rank_binary(y_true, y_score, sample_weight, qid, pos_label, stacklevel=4)
    return ranking, curve_of(ranking, positive)


def curve_of(ranking: Ranking, positive: Mask) -> Curve:
    return Curve(*_curve(positive, ranking.weight, ranking.blocks, ranking.first))


@compiled
def _curve(positive, weight, blocks, first):  # type: ignore[no-untyped-def]
    """The columns of `Curve`. Sums begin anew in each group: differences of one global sum would
    carry its rounding errors into small groups.
    """
    columns = np.zeros((6, blocks.size))
    for g in range(first.size - 1):
        tp = fp = 0.0
        for b in range(first[g], first[g + 1]):
            end = blocks[b + 1] if b + 1 < blocks.size else positive.size
            for i in range(blocks[b], end):
                columns[0 if positive[i] else 1, b] += weight[i]
            tp += columns[0, b]
            fp += columns[1, b]
            columns[2, b], columns[3, b] = tp, fp
        columns[4, first[g] : first[g + 1]] = tp
        columns[5, first[g] : first[g + 1]] = fp
    return columns
