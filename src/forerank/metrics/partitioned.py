"""Measures of Dask collections: exact, with one exchange of rows between partitions.

Without groups, rows are exchanged so that each task has all rows of a range of scores; from the
weights of the ranges above it a range has its part of the ROC or precision-recall curve, and
measures are sums over ranges. With groups, each complete within its partition, a partition returns
the sum of the measure over its groups. Labels and scores are never in one place.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Mask, Vector
from forerank._validation import is_dask, stacklevel_outside
from forerank.dask.partitions import (
    Partitions,
    column_of,
    column_problem,
    refuse_problems,
    refuse_split_groups,
    refuse_strings_among_others,
)
from forerank.metrics.ranking import Curve, Ranking, curve_of, excluded_text, rank_rows
from forerank.metrics.validation import positive_rows

__all__ = ["Piece", "ScoredPartitions", "on_dask"]

# Rows of a range of scores, at 17 bytes each: a task has some 100 MB, and few tasks exchange rows.
_ROWS_OF_RANGE = 4_000_000
# Quantiles of the scores of a partition from which the ranges are made.
_QUANTILES = 256

_BOTH_CLASSES = "rows of both classes with positive weight"


def on_dask(y_true: Any, y_score: Any) -> bool:
    """Whether labels or scores are a Dask collection."""
    return is_dask(y_true) or is_dask(y_score)


class Piece(NamedTuple):
    """The rows of a range of scores; sums of `curve` include the ranges above it."""

    ranking: Ranking
    curve: Curve
    rows_above: float


class _Totals(NamedTuple):
    """Numbers of rows of a range, and weights of its classes."""

    rows: float
    positive: float
    negative: float


class _Column(NamedTuple):
    """What a scan finds in a partition: labels, groups, quantiles of the scores, largest weight."""

    labels: NDArray
    groups: NDArray
    quantiles: NDArray
    n_rows: int
    largest_weight: float
    problem: str = ""


@dataclass
class ScoredPartitions:
    """Partitions of labels, scores, weights and groups."""

    y_true: Any
    y_score: Any
    sample_weight: Any
    qid: Any

    def __post_init__(self) -> None:
        first = self.y_score if is_dask(self.y_score) else self.y_true
        self._partitions = Partitions(
            first,
            name="y_score" if is_dask(self.y_score) else "y_true",
            y_true=self.y_true,
            y_score=self.y_score,
            sample_weight=self.sample_weight,
            qid=self.qid,
        ).without_rows()
        self._found = self._partitions.map(_scan)
        refuse_problems([each.problem for each in self._found])
        refuse_strings_among_others([each.labels for each in self._found], "y_true")
        refuse_strings_among_others([each.groups for each in self._found], "qid")
        self._filled = [each for each in self._found if each.n_rows]
        if not self._filled:
            raise ValueError("y_true is empty; at least one row of each class is needed.")
        if max(each.largest_weight for each in self._filled) == 0.0:
            raise ValueError("sample_weight is zero for every row; rows need a weight.")
        if self.qid is not None:
            refuse_split_groups([each.groups for each in self._filled])

    @property
    def grouped(self) -> bool:
        return self.qid is not None

    def positive_label(self, pos_label: Any) -> Any:
        """The positive one of two labels."""
        labels = np.unique(np.concatenate([each.labels for each in self._filled]))
        return labels[positive_rows(labels, pos_label)][0]

    def binary_mean(
        self,
        pos_label: Any,
        by_group: Callable[[Ranking, Curve], Vector],
        in_range: Callable[[Piece], Sequence[float] | Vector],
        finish: Callable[[Vector], float] = lambda sums: float(sums[0]),
    ) -> float:
        """The mean over groups of `by_group`; without groups, `finish` of the sums of `in_range`
        over all ranges of scores.
        """
        positive = self.positive_label(pos_label)
        if self.grouped:
            values = partial(_binary_values, positive=positive, by_group=by_group)
            return self.mean(values, _BOTH_CLASSES)
        return finish(self._sum_over_ranges(positive, in_range))

    def mean(self, values: Callable[..., Vector], need: str) -> float:
        """The mean over groups of `values` (y_true, ranking), NaN where it is undefined."""
        found = self._partitions.map(partial(_group_sum, values=values))
        total, defined, groups = np.sum(found, axis=0)
        if defined < groups:
            text = excluded_text(int(groups - defined), int(groups), need)
            warnings.warn(text, UserWarning, stacklevel=stacklevel_outside())
        return float(total / defined)

    def _edges(self) -> Vector:
        """Scores between ranges of about equal numbers of rows, ascending."""
        n_rows = sum(each.n_rows for each in self._filled)
        n_ranges = -(-n_rows // _ROWS_OF_RANGE)
        points = np.concatenate([each.quantiles for each in self._filled])
        weight = np.concatenate(
            [
                np.full(each.quantiles.size, each.n_rows / each.quantiles.size)
                for each in self._filled
            ]
        )
        order = np.argsort(points, kind="stable")
        cumulated = np.cumsum(weight[order])
        goals = n_rows * np.arange(1, n_ranges) / n_ranges
        return np.unique(points[order][np.searchsorted(cumulated, goals)])

    def _sum_over_ranges(
        self, positive: Any, in_range: Callable[[Piece], Sequence[float] | Vector]
    ) -> Vector:
        import dask

        edges = self._edges()
        unit = 2.0 ** np.frexp(max(each.largest_weight for each in self._filled))[1]
        split = partial(_split, positive=positive, edges=edges, unit=unit)
        pieces = self._partitions.tasks(split)
        join, count, value = (
            dask.delayed(function, pure=False) for function in (_joined, _counted, _value)
        )
        # The last range has the highest scores, and is the first of the ranking.
        numbers = range(edges.size, -1, -1)
        ranges = [join([piece[number] for piece in pieces]) for number in numbers]
        totals = [count(rows) for rows in ranges]
        tasks = [value(rows, totals, k, in_range) for k, rows in enumerate(ranges)]
        found, sums = dask.compute(totals, tasks)
        if not (sum(t.positive for t in found) > 0.0 and sum(t.negative for t in found) > 0.0):
            raise ValueError(
                f"The measure is undefined here: it needs {_BOTH_CLASSES}. Check y_true and "
                "sample_weight."
            )
        return np.sum([each for each in sums if each is not None], axis=0)


def _scan(_: None, y: Any, score: Any, weight: Any, qid: Any) -> _Column:
    """What a partition has."""
    labels, s, nothing = column_of(y), column_of(score), np.empty(0)
    groups = nothing if qid is None else column_of(qid)
    w = np.ones(labels.size) if weight is None else column_of(weight).astype(np.float64)
    problem = column_problem(labels, "y_true") or column_problem(s, "y_score")
    problem = problem or (column_problem(groups, "qid") if qid is not None else "")
    for name, size in (("y_score", s.size), ("sample_weight", w.size), ("qid", groups.size)):
        if size != labels.size and not (name == "qid" and qid is None):
            problem = problem or f"{name} has {size:,} values and y_true {labels.size:,}"
    if s.dtype.kind not in "biuf":
        problem = problem or f"y_score has dtype {s.dtype}; real numbers are expected"
    if not np.all((w >= 0.0) & (w < np.inf)):
        problem = problem or "sample_weight must be finite and not negative"
    if problem:
        return _Column(nothing, nothing, nothing, 0, 0.0, problem)
    quantiles = np.sort(s)[np.linspace(0, s.size - 1, min(s.size, _QUANTILES)).astype(int)]
    return _Column(
        np.unique(labels), np.unique(groups), quantiles, s.size, float(w.max(initial=0.0))
    )


# --- Groups within partitions ---


def _group_sum(
    _: None, y: Any, score: Any, weight: Any, qid: Any, *, values: Callable[..., Vector]
) -> tuple[float, int, int]:
    """Sum of the values of the groups where they are defined, their number, and that of all."""
    labels = column_of(y)
    w = None if weight is None else column_of(weight)
    if labels.size == 0 or (w is not None and not w.any()):
        return 0.0, 0, 0
    ranking = rank_rows(labels.size, column_of(score), w, column_of(qid))
    found = values(labels, ranking)
    defined = ~np.isnan(found)
    return float(found[defined].sum()), int(np.count_nonzero(defined)), found.size


def _binary_values(
    y: NDArray, ranking: Ranking, *, positive: Any, by_group: Callable[[Ranking, Curve], Vector]
) -> Vector:
    """A measure of two classes by group; NaN where a group has one class."""
    is_positive: Mask = (y == positive)[ranking.rows]
    n_positive = np.add.reduceat(is_positive, ranking.starts[:-1], dtype=np.intp)
    both = (n_positive > 0) & (n_positive < np.diff(ranking.starts))
    values = np.full(both.size, np.nan)
    if both.any():
        kept = ranking.only(both)
        rows = is_positive[np.repeat(both, np.diff(ranking.starts))]
        values[both] = by_group(kept, curve_of(kept, rows))
    return values


# --- Ranges of scores ---


def _split(
    _: None, y: Any, score: Any, weight: Any, qid: Any, *, positive: Any, edges: Vector, unit: float
) -> list[tuple[NDArray, Mask, Vector]]:
    """Scores, whether rows are positive, and weights, for each range of scores."""
    s, is_positive = column_of(score), column_of(y) == positive
    w = np.ones(s.size) if weight is None else column_of(weight).astype(np.float64) / unit
    number = np.where(w > 0.0, np.searchsorted(edges, s), -1)
    ranges = [np.flatnonzero(number == k) for k in range(edges.size + 1)]
    return [(s[rows], is_positive[rows], w[rows]) for rows in ranges]


def _joined(pieces: list[tuple[NDArray, Mask, Vector]]) -> tuple[NDArray, Mask, Vector]:
    s, is_positive, w = (np.concatenate(each) for each in zip(*pieces, strict=True))
    return s, is_positive, w


def _counted(rows: tuple[NDArray, Mask, Vector]) -> _Totals:
    s, is_positive, w = rows
    return _Totals(s.size, float(w[is_positive].sum()), float(w[~is_positive].sum()))


def _value(
    rows: tuple[NDArray, Mask, Vector],
    totals: list[_Totals],
    number: int,
    in_range: Callable[[Piece], Sequence[float] | Vector],
) -> Vector | None:
    """The sums of a range, None without rows; `number` counts from the highest scores."""
    s, is_positive, w = rows
    above = np.sum(totals[:number], axis=0) if number else np.zeros(3)
    _, all_positive, all_negative = np.sum(totals, axis=0)
    if s.size == 0 or not all_positive * all_negative > 0.0:
        return None
    ranking = rank_rows(s.size, s, None, None)
    ranking = replace(ranking, weight=w[ranking.rows])
    curve = curve_of(ranking, is_positive[ranking.rows])
    curve = curve._replace(
        tp=curve.tp + above[1],
        fp=curve.fp + above[2],
        all_positive=np.full(curve.tp.size, all_positive),
        all_negative=np.full(curve.tp.size, all_negative),
    )
    return np.asarray(in_range(Piece(ranking, curve, above[0])), dtype=np.float64)
