"""Every measure of a ranking at once, each with a confidence interval.

Rows are sorted once. A resample of the rows is a list of repeats of the sorted rows, which is sorted, too, so that each
costs one pass. With groups, the groups are what is resampled, and a measure is computed once in each of them.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from forerank import metrics
from forerank._ranking import Curve, Ranking, curve_of, query_numbers, rank_binary

__all__ = ["Measure", "measure"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
ByQuery = Callable[[Ranking, Mask, Curve], Floats]


@dataclass(frozen=True)
class Measure:
    """A measure of a ranking and its confidence interval ``[low, high]``.

    `low` and `high` are NaN where there is too little to resample.
    """

    name: str
    value: float
    low: float
    high: float


def measure(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: Any = None,
    k: Sequence[int] = (10, 100),
    confidence: float = 0.95,
    n_resamples: int | None = None,
    random_state: Any = None,
) -> list[Measure]:
    """The measures of a ranking.

    Two classes: AUC (with DeLong's interval), average precision, positives at the top, partial AUC up to a false
    positive rate of 0.1, the true positive rate at a false positive rate of 0.01, precision and recall at each k.
    More classes are grades: the share of pairs in order, NDCG, and NDCG at each k.
    Intervals other than DeLong's are percentiles over resampled rows, or over resampled groups where there are any.

    Parameters
    ----------
    y_true, y_score
        As in the functions of `forerank.metrics`.
    qid : sequence, optional
        Groups; measures are means over groups.
    k : sequence of int
        Places counted from the top; those beyond the number of rows are left out.
    confidence : float, default=0.95
    n_resamples : int, optional
        By default 500, and fewer (at least 100) beyond 40,000 rows, whose intervals are narrow.
    random_state : int, RandomState or None

    Examples
    --------
    >>> for found in measure([0, 0, 1, 0, 1, 1], [1, 2, 4, 3, 5, 6], k=[3], random_state=0)[:3]:
    ...     print(f"{found.name}: {found.value:.3f}")
    AUC: 1.000
    average precision: 1.000
    positives at the top: 1.000
    """
    y = np.asarray(y_true)
    scores = np.asarray(y_score)
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence={confidence!r}: give a probability strictly between 0 and 1, such as 0.95.")
    if n_resamples is None:
        n_resamples = int(np.clip(20_000_000 // max(1, y.size), 100, 500))
    places = sorted({int(place) for place in k if place <= y.size})
    tails = [0.5 - confidence / 2, 0.5 + confidence / 2]
    rng = np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    if np.unique(y).size > 2:
        return _graded(y.astype(np.float64), scores, qid, places, tails, n_resamples, rng)
    with warnings.catch_warnings():
        if qid is not None:
            warnings.filterwarnings("ignore", message=".*queries left out of the mean", category=UserWarning)
        ranking, positive = rank_binary(y, scores, None, qid, None)
    recipes = _binary_recipes(places)
    estimates = {name: by_query(ranking, positive, curve_of(ranking, positive)) for name, by_query in recipes.items()}
    if qid is not None:
        return [_over_groups(name, values, tails, n_resamples, rng) for name, values in estimates.items()]
    if min(positive.sum(), (~positive).sum()) < 2:  # one row shows no variation
        return [Measure(name, float(values[0]), np.nan, np.nan) for name, values in estimates.items()]
    auc = recipes.pop("AUC")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a perfect ranking has an interval of one point
        interval = metrics.auc_interval(y, scores, confidence=confidence)
    found = [Measure("AUC", float(auc(ranking, positive, curve_of(ranking, positive))[0]), interval.low, interval.high)]
    resampled = _resampled_rows(ranking, positive, recipes, n_resamples, rng)
    for name, values in resampled.items():
        found.append(Measure(name, float(estimates[name][0]), *map(float, np.quantile(values, tails))))
    return found


def _binary_recipes(places: list[int]) -> dict[str, ByQuery]:
    recipes: dict[str, ByQuery] = {
        "AUC": lambda ranking, positive, curve: metrics.aucs_by_query(ranking, positive),
        "average precision": lambda ranking, positive, curve: metrics.average_precisions_by_query(ranking, curve),
        "positives at the top": lambda ranking, positive, curve: metrics.shares_caught_by_query(
            ranking, curve, curve.fp == 0
        ),
        "partial AUC (FPR to 0.1)": lambda ranking, positive, curve: (
            metrics.areas_by_query(ranking, curve, 0.0, 0.1) / 0.1
        ),
        "TPR at FPR 0.01": lambda ranking, positive, curve: metrics.shares_caught_by_query(
            ranking, curve, curve.fp <= 0.01 * curve.all_negative
        ),
    }
    recipes |= {f"precision at {k}": _at(k, metrics.precisions_by_query) for k in places}
    recipes |= {f"recall at {k}": _at(k, metrics.recalls_by_query) for k in places}
    return recipes


def _at(k: int, by_query: Callable[[Ranking, Curve, int], Floats]) -> ByQuery:
    return lambda ranking, positive, curve: by_query(ranking, curve, k)


def _resampled_rows(
    ranking: Ranking, positive: Mask, recipes: dict[str, ByQuery], n_resamples: int, rng: np.random.Generator
) -> dict[str, Floats]:
    """Each measure on each resample; classes keep their sizes, so that both are in every resample."""
    found = {name: np.empty(n_resamples) for name in recipes}
    classes = [np.flatnonzero(positive), np.flatnonzero(~positive)]
    ones, starts = np.ones(positive.size), np.array([0, positive.size])
    for r in range(n_resamples):
        counts = np.zeros(positive.size, dtype=np.intp)
        for rows in classes:
            counts[rows] = np.bincount(rng.integers(0, rows.size, rows.size), minlength=rows.size)
        drawn = np.repeat(np.arange(positive.size), counts)
        tie = ranking.tie[drawn]
        opens = np.concatenate([[True], tie[1:] != tie[:-1]])
        sample, sample_positive = Ranking(drawn, ones, opens, starts, False), positive[drawn]
        curve = curve_of(sample, sample_positive)
        for name, by_query in recipes.items():
            found[name][r] = by_query(sample, sample_positive, curve)[0]
    return found


def _over_groups(name: str, values: Floats, tails: list[float], n_resamples: int, rng: np.random.Generator) -> Measure:
    mean = float(values.mean())
    if values.size < 2:
        return Measure(name, mean, np.nan, np.nan)
    means = [values[rng.integers(0, values.size, values.size)].mean() for _ in range(n_resamples)]
    return Measure(name, mean, *map(float, np.quantile(means, tails)))


def _graded(
    y: Floats,
    scores: NDArray,
    qid: Any,
    places: list[int],
    tails: list[float],
    n_resamples: int,
    rng: np.random.Generator,
) -> list[Measure]:
    grades = y - min(0.0, y.min())  # gains are not negative
    recipes: dict[str, Callable[..., float]] = {"pairs in order": metrics.wmw, "NDCG": metrics.ndcg}
    recipes |= {f"NDCG at {k}": partial(metrics.ndcg, k=k) for k in places}
    if qid is None:
        # As with two classes, each grade keeps its size.
        rows_of = [np.flatnonzero(grades == grade) for grade in np.unique(grades)]
        values = {name: np.empty(n_resamples) for name in recipes}
        for r in range(n_resamples):
            drawn = np.concatenate([rng.choice(rows, rows.size) for rows in rows_of])
            for name, recipe in recipes.items():
                values[name][r] = recipe(grades[drawn], scores[drawn])
        return [
            Measure(name, recipe(grades, scores), *map(float, np.quantile(values[name], tails)))
            for name, recipe in recipes.items()
        ]
    number = query_numbers(qid, y.size)
    order = np.argsort(number, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
    found = []
    for name, recipe in recipes.items():
        # A group of one grade has no pair, and one without a gain no NDCG.
        valued = [g for g in groups if np.ptp(grades[g]) > 0.0 or (name != "pairs in order" and grades[g].max() > 0.0)]
        if not valued:
            raise ValueError("No group has rows of two grades; check that the groups belong to the rows.")
        per_group = np.array([recipe(grades[group], scores[group]) for group in valued])
        found.append(_over_groups(name, per_group, tails, n_resamples, rng))
    return found
