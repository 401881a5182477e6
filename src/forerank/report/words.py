"""The measure a report is about, figures as text, and the sentences it opens with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank import metrics
from forerank.estimators.menu import FOR_GRADES, metric_function
from forerank.evaluation import Measure

__all__ = ["Headline", "figure", "headline_of", "interval", "judged", "percent"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Headline:
    """The measure that was asked for.

    Attributes
    ----------
    name : str
        As `forerank.evaluation.measure` calls it, where it has it.
    value_of : callable
        ``value_of(y_true, y_score, qid=...)``, higher is better.
    meaning : str
        The value in words, with a gap for it.
    place : int or None
        The number of rows that it looks at.
    chance : float or None
        Its value for an order drawn at random, where there is a formula for it.
    """

    name: str
    value_of: Callable[..., float]
    meaning: str
    place: int | None = None
    chance: float | None = None

    @property
    def spoken(self) -> str:
        """The name as it stands in a sentence."""
        return f"the share of {self.name}" if self.name in ("pairs in order", "positives at the top") else self.name


def headline_of(metric: str, *, graded: bool) -> Headline:
    """The measure by its name: auc, ap, pos_at_top, ndcg@k, pauc@fpr or recall@k."""
    value_of = metric_function(metric)
    kind, _, given = metric.partition("@")
    place = int(given) if kind in ("ndcg", "recall") else None
    if graded and kind not in FOR_GRADES:
        raise ValueError(
            f"metric={metric!r} is for two classes, and the labels are grades. Choose wmw (the share of pairs in "
            "order) or ndcg@k, or name the positive label."
        )
    if kind == "ndcg":
        meaning = "the order is worth {} of the best possible one"
        return Headline(f"NDCG at {place}", _shifted(value_of), meaning, place)
    if kind == "recall":
        return Headline(
            f"recall at {place}", value_of, f"the first {place:,} rows hold {{}} of all positive ones", place
        )
    if kind == "pauc":
        top = float(given)
        meaning = f"up to a false positive rate of {top:g}, {{}} of the positive rows are found on average"
        return Headline(f"partial AUC (FPR to {top:g})", value_of, meaning, chance=top / 2)
    if kind == "ap":
        meaning = "where a positive row stands, {} of the rows down to it are positive on average"
        return Headline("average precision", value_of, meaning)
    if kind == "pos_at_top":
        meaning = "{} of the positive rows stand ahead of the first that is not"
        return Headline("positives at the top", value_of, meaning)
    if graded:
        meaning = "a row of a higher grade stands ahead of one of a lower in {} of all such pairs"
        return Headline("pairs in order", metrics.wmw, meaning)
    meaning = "a row that is positive stands ahead of one that is not in {} of all such pairs"
    return Headline("AUC", value_of, meaning)


def _shifted(value_of: Callable[..., float]) -> Callable[..., float]:
    """Gains are not negative."""
    return lambda y, s, **extra: value_of(np.asarray(y, dtype=np.float64) - min(0.0, np.min(y)), s, **extra)


def figure(value: float) -> str:
    """A measure with three digits, more where it is small or next to one."""
    if not np.isfinite(value):
        return "–"
    if 0.0 < abs(value) < 0.01:
        return f"{value:.2g}"
    return f"{value:.4f}" if 0.9985 <= value < 1.0 else f"{value:.3f}"


def percent(value: float) -> str:
    """A share in percent; all and none only where it is all or none."""
    digits = 0
    while 0.0 < value < 1.0 and digits < 6 and float(f"{100 * value:.{digits}f}") in (0.0, 100.0):
        digits += 1
    return f"{100 * value:.{digits}f} %"


def count(value: float) -> str:
    """A number of rows that may be a mean."""
    if value >= 10.0 or abs(value - round(value)) < 1e-9:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 0.1 else f"{value:.1g}"


def interval(measure: Measure, shown: Callable[[float], str] = figure) -> str:
    """From low to high; nothing where there is none."""
    if not np.isfinite([measure.low, measure.high]).all():
        return "–"
    return f"{shown(measure.low)} to {shown(measure.high)}"


def judged(measure: Measure, chance: float) -> str:
    """Whether a measure is told apart from an order drawn at random."""
    if not np.isfinite([measure.low, measure.high]).all():
        return "too few rows to say whether that differs from chance"
    if measure.low > chance:
        return "better than chance"
    if measure.high < chance:
        return "worse than chance"
    return "not told apart from chance"


def resampled(headline: Headline, y: NDArray, scores: Floats, qid: Any, seed: int) -> Measure:
    """A measure that `forerank.evaluation` lacks, with percentiles over resamples of groups, or rows within classes."""
    rng = np.random.default_rng(seed)
    n_resamples = int(np.clip(10_000_000 // y.size, 100, 500))
    if qid is not None:
        own = []
        for group in np.unique(qid):
            rows = np.flatnonzero(qid == group)
            if np.unique(y[rows]).size > 1 and (headline.place is None or headline.place <= rows.size):
                own.append(headline.value_of(y[rows], scores[rows]))
        if not own:
            raise ValueError(f"no group has rows of two classes and enough of them for {headline.name}")
        each = np.array(own)
        values = [each[rng.integers(0, each.size, each.size)].mean() for _ in range(n_resamples)]
        return _with_interval(headline.name, float(each.mean()), values, each.size)
    classes, counts = np.unique(y, return_counts=True)
    rows_of = [np.flatnonzero(y == each) for each in classes]
    values = []
    for _ in range(n_resamples):
        drawn = np.concatenate([rng.choice(rows, rows.size) for rows in rows_of])
        values.append(headline.value_of(y[drawn], scores[drawn]))
    return _with_interval(headline.name, headline.value_of(y, scores), values, int(counts.min()))


def _with_interval(name: str, value: float, values: list[Any], n: int) -> Measure:
    if n < 2:
        return Measure(name, value, np.nan, np.nan)
    low, high = np.quantile(values, [0.025, 0.975])
    return Measure(name, value, float(low), float(high))
