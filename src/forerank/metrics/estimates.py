"""Estimates of measures, each with a confidence interval.

Rows are sorted once; a resample repeats some of the sorted rows and stays sorted, so that it costs
one pass. With groups, groups are resampled, and a measure is computed once in each. Rows held out
in folds are scored by different models, whose scores are not compared: the value is the mean over
the folds of the measure in each.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from forerank._typing import Index, Mask, Vector
from forerank.metrics.intervals import auc_interval, check_confidence
from forerank.metrics.pair_counts import aucs_by_group
from forerank.metrics.ranking import Curve, Ranking, curve_of, rank_binary
from forerank.metrics.registry import Measure, describe_depth, get_measure, scaled_depth
from forerank.metrics.thresholds import (
    areas_by_group,
    average_precisions_by_group,
    shares_accepted_by_group,
)
from forerank.metrics.top_k import precisions_by_group, recalls_by_group
from forerank.metrics.validation import number_groups

__all__ = ["Estimate", "estimate_measure", "estimate_measures", "format_value"]

ByGroup = Callable[[Ranking, Mask, Curve], Vector]
Interval = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    """A measured value and its confidence interval ``[low, high]``.

    `low` and `high` are NaN with too few rows or groups to resample. `depth` describes the first k
    rows of a measure at k, such as "of 171 rows (first 29.2 %)".
    """

    key: str
    value: float
    low: float
    high: float
    depth: str = ""

    @property
    def measure(self) -> Measure:
        return get_measure(self.key)

    @property
    def name(self) -> str:
        """Title of the measure."""
        return self.measure.title

    @property
    def title(self) -> str:
        """Title of the measure, with the depth if it has one."""
        return f"{self.name} {self.depth}".rstrip()

    def to_dict(self) -> dict[str, Any]:
        """Name, value, low, high and depth, for JSON."""
        values = {"value": self.value, "low": self.low, "high": self.high}
        return {"name": self.name, **values, "depth": self.depth}


def format_value(value: float) -> str:
    """A value with three digits, more if it is small or just below one."""
    if not np.isfinite(value):
        return "–"
    if 0.0 < abs(value) < 0.01:
        return f"{value:.2g}"
    return f"{value:.4f}" if 0.9985 <= value < 1.0 else f"{value:.3f}"


def estimate_measures(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Any = None,
    fold: ArrayLike | None = None,
    list_rows: int | None = None,
    k: Sequence[int] = (10, 100),
    confidence: float = 0.95,
    n_resamples: int | None = None,
    random_state: Any = None,
) -> list[Estimate]:
    """Estimates of the usual measures of a ranking.

    For two classes AUC, average precision, positives at the top, partial AUC up to a false positive
    rate of 0.1, the true positive rate at a false positive rate of 0.01, precision and recall at
    each k; for more classes, which are grades, the share of pairs in order, NDCG, and NDCG at each
    k. Intervals are percentiles over resampled groups, or without groups over rows resampled within
    their folds; that of the AUC is DeLong's if there are neither groups nor folds.

    Parameters
    ----------
    y_true, y_score
        As in the functions of `forerank.metrics`.
    qid : sequence, optional
        Groups; measures are means over groups.
    fold : array-like of int, optional
        The fold in which each row was held out. A measure is the mean over the folds that have rows
        of two classes; scores of different folds are not compared.
    list_rows : int, optional
        Number of rows of the list whose first k rows count, by default that of y_true. If y_true,
        or a fold, is a sample of the list, the same share of it counts. With groups, k counts rows
        of a group.
    k : sequence of int
        Numbers of rows from the top; those above the number of rows are omitted.
    confidence : float, default=0.95
    n_resamples : int, optional
        By default 500, and fewer (at least 100) beyond 40,000 rows, whose intervals are narrow.
    random_state : int, RandomState or None

    Examples
    --------
    >>> y, scores = [0, 0, 1, 0, 1, 1], [1, 2, 4, 3, 5, 6]
    >>> for estimate in estimate_measures(y, scores, k=[3], random_state=0)[:3]:
    ...     print(f"{estimate.name}: {estimate.value:.3f}")
    AUC: 1.000
    average precision: 1.000
    positives at the top: 1.000
    """
    lists = _Lists.of(y_true, y_score, qid, fold, list_rows)
    n, y = lists.y.size if lists.grouped else lists.list_rows, lists.y
    depths = sorted({int(each) for each in k if each <= n})
    resampling = _Resampling(confidence, n_resamples, random_state, y.size)
    if np.unique(y).size > 2:
        keys = ["wmw", "ndcg", *(f"ndcg@{each}" for each in depths)]
        return _estimate_any([get_measure(key) for key in keys], lists, resampling)
    return _estimate_binary(lists, depths, resampling)


def estimate_measure(
    measure: Measure,
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Any = None,
    fold: ArrayLike | None = None,
    list_rows: int | None = None,
    confidence: float = 0.95,
    n_resamples: int | None = None,
    random_state: Any = None,
) -> Estimate:
    """Estimate of one measure; parameters as in `estimate_measures`, which is faster for the
    measures that it covers.
    """
    lists = _Lists.of(y_true, y_score, qid, fold, list_rows)
    resampling = _Resampling(confidence, n_resamples, random_state, lists.y.size)
    return _estimate_any([measure], lists, resampling)[0]


@dataclass(frozen=True)
class _Lists:
    """Rows in lists that are ranked separately: folds, or groups within folds."""

    y: NDArray
    scores: NDArray
    fold: Index  # number of the fold of each row
    number: Index | None  # number of the list of each row; None if all rows are one list
    grouped: bool
    list_rows: int  # number of rows of a complete list

    @staticmethod
    def of(y_true: Any, y_score: Any, qid: Any, fold: Any, list_rows: int | None) -> "_Lists":
        y, scores = np.asarray(y_true), np.asarray(y_score)
        n = y.size
        folds = np.zeros(n, dtype=np.intp) if fold is None else number_groups(np.asarray(fold), n)
        number = None if fold is None else folds
        if qid is not None:
            group = number_groups(qid, n)
            pair = folds * (int(group.max()) + 1) + group
            number = np.unique(pair, return_inverse=True)[1]
        rows = n if list_rows is None else int(list_rows)
        return _Lists(y, scores, folds, number, qid is not None, rows)

    def depth(self, k: int | None) -> str:
        """Description of the first k rows."""
        return "" if k is None else describe_depth(k, None if self.grouped else self.list_rows)


class _Resampling:
    """Number of resamples, their random generator, and the percentile intervals."""

    def __init__(
        self, confidence: float, n_resamples: int | None, random_state: Any, n_rows: int
    ) -> None:
        check_confidence(confidence)
        self.confidence = confidence
        automatic = int(np.clip(20_000_000 // max(1, n_rows), 100, 500))
        self.number = automatic if n_resamples is None else n_resamples
        self._seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self._seed)

    def interval(self, values: ArrayLike) -> Interval:
        tails = [0.5 - self.confidence / 2, 0.5 + self.confidence / 2]
        low, high = np.quantile(np.asarray(values, dtype=np.float64), tails)
        return float(low), float(high)

    def over_groups(self, values: Vector, fold: Index) -> Interval:
        """The interval of the mean over folds of means over groups, resampled within folds."""
        if values.size < 2:
            return np.nan, np.nan
        rng, parts = self.rng(), [values[fold == number] for number in np.unique(fold)]

        def resample(part: Vector) -> Vector:
            return part[rng.integers(0, part.size, part.size)]

        means = [np.mean([resample(part).mean() for part in parts]) for _ in range(self.number)]
        return self.interval(means)


def _mean_over_folds(values: Vector, fold: Index) -> float:
    """Mean over the folds of the mean value of each fold's lists (see `_Lists`)."""
    return float(np.mean([values[fold == number].mean() for number in np.unique(fold)]))


# --- Two classes: one sort, and one pass for each resample ---


def _estimate_binary(lists: _Lists, depths: list[int], resampling: _Resampling) -> list[Estimate]:
    with warnings.catch_warnings():
        excluded = ".*groups excluded from the mean"
        warnings.filterwarnings("ignore", message=excluded, category=UserWarning)
        ranking, positive = rank_binary(lists.y, lists.scores, None, lists.number, None)
    functions = _binary_functions(lists, depths, np.diff(ranking.starts))
    curve = curve_of(ranking, positive)
    values = {key: function(ranking, positive, curve) for key, function in functions.items()}
    fold = lists.fold[ranking.rows[ranking.starts[:-1]]]
    intervals: dict[str, Interval] = dict.fromkeys(functions, (np.nan, np.nan))
    if lists.grouped:
        intervals = {key: resampling.over_groups(each, fold) for key, each in values.items()}
    elif min(positive.sum(), (~positive).sum()) > 1:  # one row shows no variation
        resampled = _resampled_values(ranking, positive, functions, resampling)
        intervals = {key: resampling.interval(each) for key, each in resampled.items()}
        if lists.number is None:
            with warnings.catch_warnings():
                # The interval of a perfect ranking is a single point.
                warnings.simplefilter("ignore", UserWarning)
                auc = auc_interval(lists.y, lists.scores, confidence=resampling.confidence)
            intervals["auc"] = auc.low, auc.high
    return [
        Estimate(
            key, _mean_over_folds(each, fold), *intervals[key], lists.depth(get_measure(key).k)
        )
        for key, each in values.items()
    ]


def _binary_functions(lists: _Lists, depths: list[int], sizes: Index) -> dict[str, ByGroup]:
    """Functions of sorted rows, by the keys of their measures; `sizes` are rows of the lists."""
    functions: dict[str, ByGroup] = {
        "auc": lambda ranking, positive, curve: aucs_by_group(ranking, positive),
        "ap": lambda ranking, positive, curve: average_precisions_by_group(ranking, curve),
        "pos_at_top": lambda ranking, positive, curve: shares_accepted_by_group(
            ranking, curve, curve.fp == 0
        ),
        "pauc@0.1": lambda ranking, positive, curve: areas_by_group(ranking, curve, 0.0, 0.1) / 0.1,
        "tpr@0.01": lambda ranking, positive, curve: shares_accepted_by_group(
            ranking, curve, curve.fp <= 0.01 * curve.all_negative
        ),
    }

    def at(depth: Vector, by_group: Callable[[Ranking, Curve, Vector], Vector]) -> ByGroup:
        return lambda ranking, positive, curve: by_group(ranking, curve, depth)

    for kind, by_group in (("precision", precisions_by_group), ("recall", recalls_by_group)):
        for k in depths:
            rows = [scaled_depth(k, int(size), lists.list_rows) for size in sizes]
            depth = np.full(sizes.size, float(k)) if lists.grouped else np.array(rows)
            functions[f"{kind}@{k}"] = at(depth, by_group)
    return functions


def _resampled_values(
    ranking: Ranking, positive: Mask, functions: dict[str, ByGroup], resampling: _Resampling
) -> dict[str, Vector]:
    """The values of each measure on the resamples; the classes of a fold keep their sizes, so that
    each resample has both.
    """
    values, rng = {key: np.empty(resampling.number) for key in functions}, resampling.rng()
    classes = [
        low + np.flatnonzero(positive[low:high] == label)
        for low, high in zip(ranking.starts[:-1], ranking.starts[1:], strict=True)
        for label in (True, False)
    ]
    ones = np.ones(positive.size)
    for r in range(resampling.number):
        counts = np.zeros(positive.size, dtype=np.intp)
        for rows in classes:
            counts[rows] = np.bincount(rng.integers(0, rows.size, rows.size), minlength=rows.size)
        rows = np.repeat(np.arange(positive.size), counts)
        tie = ranking.tie[rows]
        opens = np.concatenate([[True], tie[1:] != tie[:-1]])  # blocks do not span folds
        sample, labels = Ranking(rows, ones, opens, ranking.starts, False), positive[rows]
        curve = curve_of(sample, labels)
        for key, function in functions.items():
            values[key][r] = function(sample, labels, curve).mean()
    return values


# --- Any measure, list by list ---


def _estimate_any(
    measures: list[Measure], lists: _Lists, resampling: _Resampling
) -> list[Estimate]:
    """Means over folds of means over their lists, with intervals over resamples."""
    grades = lists.y.astype(np.float64)
    grades = grades - min(0.0, grades.min())  # gains are not negative
    number = lists.fold if lists.number is None else lists.number
    order = np.argsort(number, kind="stable")
    rows_of = np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
    defined = [_defined_lists(measure, grades, rows_of, lists.grouped) for measure in measures]

    def value(measure: Measure, rows: Index) -> float:
        scaled = measure if lists.grouped else measure.for_rows(rows.size, lists.list_rows)
        return scaled.function(grades[rows], lists.scores[rows])

    def means(samples: list[Index]) -> list[float]:
        pairs = zip(measures, defined, strict=True)
        return [float(np.mean([value(m, samples[i]) for i in numbers])) for m, numbers in pairs]

    intervals = [(np.nan, np.nan)] * len(measures)
    if not lists.grouped:
        intervals = _row_intervals(grades, rows_of, means, resampling) or intervals
    fold_of, estimates = np.array([lists.fold[rows[0]] for rows in rows_of]), []
    for measure, numbers, interval in zip(measures, defined, intervals, strict=True):
        values, fold = np.array([value(measure, rows_of[i]) for i in numbers]), fold_of[numbers]
        low, high = resampling.over_groups(values, fold) if lists.grouped else interval
        mean, depth = _mean_over_folds(values, fold), lists.depth(measure.k)
        estimates.append(Estimate(measure.key, mean, low, high, depth))
    return estimates


def _defined_lists(measure: Measure, grades: Vector, rows_of: list[Index], grouped: bool) -> Index:
    """Numbers of the lists that have a value: two grades, or for NDCG a positive gain."""
    gain = measure.kind == "ndcg"
    labels = [grades[rows] for rows in rows_of]
    numbers = np.flatnonzero([bool(np.ptp(y) > 0.0 or (gain and y.max() > 0.0)) for y in labels])
    if not numbers.size:
        name = "group" if grouped else "fold"
        raise ValueError(
            f"No {name} has rows of two grades; check that the {name}s belong to the rows."
        )
    return numbers


def _row_intervals(
    grades: Vector,
    rows_of: list[Index],
    means: Callable[[list[Index]], list[float]],
    resampling: _Resampling,
) -> list[Interval]:
    """Intervals over rows resampled within list and grade, so that each grade keeps its size; none
    if one of two classes has a single row, which shows no variation.
    """
    labels, counts = np.unique(grades, return_counts=True)
    if labels.size == 2 and counts.min() < 2:
        return []
    rng = resampling.rng()
    strata = [
        [rows[grades[rows] == grade] for grade in np.unique(grades[rows])] for rows in rows_of
    ]

    def resample(parts: list[Index]) -> Index:
        return np.concatenate([part[rng.integers(0, part.size, part.size)] for part in parts])

    values = [means([resample(parts) for parts in strata]) for _ in range(resampling.number)]
    return [resampling.interval(each) for each in np.array(values).T]
