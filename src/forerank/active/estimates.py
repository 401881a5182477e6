"""An estimate of the relevant rows among the unread, from the scores of a ranker.

It rests on a model and is no guarantee: `forerank.active.stopping` has rules that are.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import nbinom
from sklearn.linear_model import LogisticRegression

from forerank._typing import Vector

__all__ = ["MissingEstimate", "count_interval", "estimate_missing"]

# Standard deviation of the Gaussian prior of the slope, in logits per standard deviation of the
# unread scores: a ranker seldom separates the unread more sharply.
SLOPE_DEVIATION = 3.0
# Dispersion of the count: a variance of mean + mean^2 / DISPERSION. The error of the model exceeds
# that of counting; one gives an interval from a twentieth to three times the estimate, which had
# the truth in it in about nine of ten simulated reviews (docs/active.md).
DISPERSION = 1.0


@dataclass(frozen=True)
class MissingEstimate:
    """An estimate of the number of relevant unread rows. Not a guarantee.

    Attributes
    ----------
    expected : float
    low, high : int
        Of a negative binomial distribution about `expected`, which allows for the model's error.
    """

    expected: float
    low: int
    high: int


def estimate_missing(scores: Any, labels: Any, *, confidence: float = 0.9) -> MissingEstimate:
    """The expected number of relevant rows among the unread, by a logistic fit of labels on scores.

    The ranker has been trained on the labelled rows, so it separates these better than others;
    with its own scores of them the estimate is far too small. Pass scores of these by rankers that
    did not see their labels (cross-validation). The estimates are then too large more often than
    too small; docs/active.md has the figures.

    Parameters
    ----------
    scores : array-like of shape (n_rows,)
        The higher, the more likely relevant.
    labels : array-like of shape (n_rows,)
        1 for relevant, 0 for irrelevant, -1 for unread rows.
    confidence : float, default=0.9
        Of the interval, if the model were right.

    Returns
    -------
    MissingEstimate
        With only one class among the labels, the estimate comes from the prior of one relevant and
        one irrelevant row.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1; got {confidence!r}.")
    scores, labels = np.asarray(scores, dtype=float), np.asarray(labels)
    if scores.shape != labels.shape or scores.ndim != 1:
        raise ValueError(
            f"scores have shape {scores.shape} and labels {labels.shape}; give one score and one "
            "label (1, 0, or -1 for unread) per row."
        )
    read = labels >= 0
    if not np.any(~read):
        return MissingEstimate(0.0, 0, 0)
    expected = float(np.sum(_probabilities(scores, labels, read)))
    low, high = count_interval(expected, confidence)
    return MissingEstimate(expected, low, min(high, int(np.count_nonzero(~read))))


def count_interval(expected: float, confidence: float) -> tuple[int, int]:
    """The central interval of a negative binomial count with this mean and `DISPERSION`."""
    tail = 0.5 * (1.0 - confidence)
    share = DISPERSION / (DISPERSION + expected)
    low, high = nbinom.ppf([tail, 1.0 - tail], DISPERSION, share)
    return int(low), int(high)


def _probabilities(scores: Vector, labels: Any, read: Any) -> Vector:
    """Probabilities of relevance of the unread rows."""
    relevant = labels[read] > 0
    if not relevant.size or relevant.all() or not relevant.any():
        share = (np.count_nonzero(relevant) + 1.0) / (relevant.size + 2.0)
        return np.full(int(np.count_nonzero(~read)), share)
    spread = float(np.std(scores[~read])) or 1.0
    column = (scores / spread)[:, None]
    fit = LogisticRegression(C=SLOPE_DEVIATION**2).fit(column[read], relevant)
    return fit.predict_proba(column[~read])[:, 1]
