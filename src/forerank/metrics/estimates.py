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
from forerank.metrics import measures as metrics
from forerank.metrics.ranking import Curve, Ranking, curve_of, query_numbers, rank_binary
from forerank.metrics.registry import Measure, describe_depth, get_measure, scaled_depth

__all__ = ["Estimate", "estimate_measure", "estimate_measures", "format_value"]

ByQuery = Callable[[Ranking, Mask, Curve], Vector]


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

    Two classes: AUC (with DeLong's interval), average precision, positives at the top, partial AUC
    up to a false positive rate of 0.1, the true positive rate at a false positive rate of 0.01,
    precision and recall at each k. More classes are grades: the share of pairs in order, NDCG, and
    NDCG at each k. Intervals other than DeLong's are percentiles over resampled rows, or over
    resampled groups where there are any. With folds, all are: rows are resampled within their
    folds.

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
        Rows of the list that k speaks of, by default those given. Where these are a part of it, or
        of a fold, as large a share of them is looked at. With groups, k counts rows of a group.
    k : sequence of int
        Places counted from the top; those beyond the number of rows are left out.
    confidence : float, default=0.95
    n_resamples : int, optional
        By default 500, and fewer (at least 100) beyond 40,000 rows, whose intervals are narrow.
    random_state : int, RandomState or None

    Examples
    --------
    >>> for found in estimate_measures([0, 0, 1, 0, 1, 1], [1, 2, 4, 3, 5, 6], k=[3], random_state=0)[:3]:
    ...     print(f"{found.name}: {found.value:.3f}")
    AUC: 1.000
    average precision: 1.000
    positives at the top: 1.000
    """
    y, scores = np.asarray(y_true), np.asarray(y_score)
    n_all = y.size if list_rows is None else int(list_rows)
    places = sorted({int(place) for place in k if place <= (n_all if qid is None else y.size)})
    draws = _Draws(confidence, n_resamples, random_state, y.size)
    if np.unique(y).size > 2:
        known = [
            get_measure(key) for key in ("wmw", "ndcg", *(f"ndcg@{place}" for place in places))
        ]
        return _Lists(y, scores, qid, fold, n_all).estimated(known, draws)
    return _binary(y, scores, qid, fold, n_all, places, draws)


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
    """Estimate of one measure; parameters as in `estimate_measures`, which is faster for the measures
    that it covers.
    """
    y, scores = np.asarray(y_true), np.asarray(y_score)
    lists = _Lists(y, scores, qid, fold, y.size if list_rows is None else int(list_rows))
    return lists.estimated([measure], _Draws(confidence, n_resamples, random_state, y.size))[0]


class _Draws:
    """How resamples are drawn, and what becomes of them."""

    def __init__(
        self, confidence: float, n_resamples: int | None, random_state: Any, n_rows: int
    ) -> None:
        if not 0.0 < confidence < 1.0:
            raise ValueError(
                f"confidence={confidence!r}: give a probability strictly between 0 and 1, such as 0.95."
            )
        self.confidence = confidence
        self.number = (
            int(np.clip(20_000_000 // max(1, n_rows), 100, 500))
            if n_resamples is None
            else n_resamples
        )
        self._seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)

    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self._seed)

    def interval(self, values: ArrayLike) -> tuple[float, float]:
        tails = [0.5 - self.confidence / 2, 0.5 + self.confidence / 2]
        low, high = np.quantile(np.asarray(values, dtype=np.float64), tails)
        return float(low), float(high)

    def over_lists(self, values: Vector, fold: Index) -> tuple[float, float]:
        """The interval of the mean over folds of means over lists, the lists of a fold being
        resampled.
        """
        if values.size < 2:
            return np.nan, np.nan
        rng, parts = self.rng(), [values[fold == each] for each in np.unique(fold)]

        def resampled() -> float:
            return float(
                np.mean([part[rng.integers(0, part.size, part.size)].mean() for part in parts])
            )

        return self.interval([resampled() for _ in range(self.number)])


def _over_folds(values: Vector, fold: Index) -> float:
    """The mean over folds of the means over their lists."""
    return float(np.mean([values[fold == each].mean() for each in np.unique(fold)]))


# --- Two classes: one sort, and a pass for each resample ---


def _binary(
    y: NDArray, scores: NDArray, qid: Any, fold: Any, n_all: int, places: list[int], draws: _Draws
) -> list[Estimate]:
    folds = (
        np.zeros(y.size, dtype=np.intp) if fold is None else query_numbers(np.asarray(fold), y.size)
    )
    one_list = qid is None and fold is None
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=".*queries left out of the mean", category=UserWarning
        )
        ranking, positive = rank_binary(
            y, scores, None, None if one_list else _list_numbers(qid, folds), None
        )
    recipes = _binary_recipes(places, ranking, None if qid is not None else n_all)
    estimates = {
        name: by_query(ranking, positive, curve_of(ranking, positive))
        for name, by_query in recipes.items()
    }
    own = folds[ranking.rows[ranking.starts[:-1]]]  # the fold of each list
    intervals: dict[str, tuple[float, float]] = dict.fromkeys(recipes, (np.nan, np.nan))
    if qid is not None:
        intervals = {name: draws.over_lists(values, own) for name, values in estimates.items()}
    elif min(positive.sum(), (~positive).sum()) > 1:  # one row shows no variation
        resampled = _resampled_rows(ranking, positive, recipes, draws)
        intervals = {name: draws.interval(values) for name, values in resampled.items()}
        if one_list:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore", UserWarning
                )  # a perfect ranking has an interval of one point
                found = metrics.auc_interval(y, scores, confidence=draws.confidence)
            intervals["auc"] = found.low, found.high
    depths = _depths(places, None if qid is not None else n_all)
    return [
        Estimate(key, _over_folds(values, own), *intervals[key], depths.get(key, ""))
        for key, values in estimates.items()
    ]


def _depths(places: list[int], n_all: int | None) -> dict[str, str]:
    """Description of the first k rows, by the key of the measure."""
    return {
        f"{kind}@{k}": describe_depth(k, n_all) for kind in ("precision", "recall") for k in places
    }


def _list_numbers(qid: Any, folds: Index) -> Index:
    """A list is a fold, or a group within it."""
    if qid is None:
        return folds
    group = query_numbers(qid, folds.size)
    return np.unique(folds * (int(group.max()) + 1) + group, return_inverse=True)[1]


def _binary_recipes(places: list[int], lists: Ranking, n_all: int | None) -> dict[str, ByQuery]:
    recipes: dict[str, ByQuery] = {
        "auc": lambda ranking, positive, curve: metrics.aucs_by_query(ranking, positive),
        "ap": lambda ranking, positive, curve: metrics.average_precisions_by_query(ranking, curve),
        "pos_at_top": lambda ranking, positive, curve: metrics.shares_caught_by_query(
            ranking, curve, curve.fp == 0
        ),
        "pauc@0.1": lambda ranking, positive, curve: (
            metrics.areas_by_query(ranking, curve, 0.0, 0.1) / 0.1
        ),
        "tpr@0.01": lambda ranking, positive, curve: metrics.shares_caught_by_query(
            ranking, curve, curve.fp <= 0.01 * curve.all_negative
        ),
    }
    sizes = np.diff(lists.starts)
    for kind, by_query in (
        ("precision", metrics.precisions_by_query),
        ("recall", metrics.recalls_by_query),
    ):
        for k in places:
            depth = [
                float(k) if n_all is None else scaled_depth(k, int(size), n_all) for size in sizes
            ]
            recipes[f"{kind}@{k}"] = _at(np.array(depth), by_query)
    return recipes


def _at(depth: Vector, by_query: Callable[[Ranking, Curve, Vector], Vector]) -> ByQuery:
    return lambda ranking, positive, curve: by_query(ranking, curve, depth)


def _resampled_rows(
    ranking: Ranking, positive: Mask, recipes: dict[str, ByQuery], draws: _Draws
) -> dict[str, Vector]:
    """Each measure on each resample; the classes of a fold keep their sizes, so that both are in
    every resample.
    """
    found, rng = {name: np.empty(draws.number) for name in recipes}, draws.rng()
    classes = [
        low + np.flatnonzero(positive[low:high] == label)
        for low, high in zip(ranking.starts[:-1], ranking.starts[1:], strict=True)
        for label in (True, False)
    ]
    ones = np.ones(positive.size)
    for r in range(draws.number):
        counts = np.zeros(positive.size, dtype=np.intp)
        for rows in classes:
            counts[rows] = np.bincount(rng.integers(0, rows.size, rows.size), minlength=rows.size)
        drawn = np.repeat(np.arange(positive.size), counts)
        tie = ranking.tie[drawn]
        opens = np.concatenate([[True], tie[1:] != tie[:-1]])  # two folds have no tie in common
        sample, sample_positive = (
            Ranking(drawn, ones, opens, ranking.starts, False),
            positive[drawn],
        )
        curve = curve_of(sample, sample_positive)
        for name, by_query in recipes.items():
            found[name][r] = by_query(sample, sample_positive, curve).mean()
    return found


# --- Any measure, list by list ---


class _Lists:
    """Rows in lists that are ranked each for itself: folds, groups within them, or all rows."""

    def __init__(self, y: NDArray, scores: NDArray, qid: Any, fold: Any, n_all: int) -> None:
        numbers = y.astype(np.float64)
        self._y = numbers - min(0.0, numbers.min())  # gains are not negative
        self._scores, self._n_all, self._grouped = scores, n_all, qid is not None
        folds = (
            np.zeros(y.size, dtype=np.intp)
            if fold is None
            else query_numbers(np.asarray(fold), y.size)
        )
        number = _list_numbers(qid, folds)
        order = np.argsort(number, kind="stable")
        self._rows = np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
        self._fold = np.array([folds[rows[0]] for rows in self._rows])

    def estimated(self, measures: list[Measure], draws: _Draws) -> list[Estimate]:
        """Means over folds of means over their lists, with intervals over resamples."""
        valued = [self._valued(each) for each in measures]
        intervals = [] if self._grouped else self._over_rows(measures, valued, draws)
        found = []
        for place, (measure, lists) in enumerate(zip(measures, valued, strict=True)):
            values = np.array([self._value(measure, self._rows[k]) for k in lists])
            fold, depth = self._fold[lists], ""
            if measure.k is not None:
                depth = describe_depth(measure.k, None if self._grouped else self._n_all)
            low, high = draws.over_lists(values, fold) if self._grouped else intervals[place]
            found.append(Estimate(measure.key, _over_folds(values, fold), low, high, depth))
        return found

    def _valued(self, measure: Measure) -> Index:
        """The lists that have a value: one of one grade has no pair, and one without a gain no
        NDCG.
        """
        grades = [self._y[rows] for rows in self._rows]
        gain = measure.kind == "ndcg"
        found = np.flatnonzero([np.ptp(y) > 0.0 or (gain and y.max() > 0.0) for y in grades])
        if not found.size:
            what = "group" if self._grouped else "fold"
            raise ValueError(
                f"No {what} has rows of two grades; check that the {what}s belong to the rows."
            )
        return found

    def _value(self, measure: Measure, rows: Index) -> float:
        on_part = measure if self._grouped else measure.for_rows(rows.size, self._n_all)
        return on_part.function(self._y[rows], self._scores[rows])

    def _over_rows(
        self, measures: list[Measure], valued: list[Index], draws: _Draws
    ) -> list[tuple[float, float]]:
        """Rows are resampled within their list and grade, so that each grade keeps its size."""
        grades, counts = np.unique(self._y, return_counts=True)
        if grades.size == 2 and counts.min() < 2:  # one row shows no variation
            return [(np.nan, np.nan)] * len(measures)
        rng, values = draws.rng(), np.empty((len(measures), draws.number))
        parts = [
            [rows[self._y[rows] == grade] for grade in np.unique(self._y[rows])]
            for rows in self._rows
        ]
        for r in range(draws.number):
            drawn = [
                np.concatenate([p[rng.integers(0, p.size, p.size)] for p in each]) for each in parts
            ]
            for place, (measure, lists) in enumerate(zip(measures, valued, strict=True)):
                values[place, r] = np.mean([self._value(measure, drawn[k]) for k in lists])
        return [draws.interval(each) for each in values]
