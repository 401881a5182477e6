"""Confidence intervals of the AUC."""

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, ndtri
from sklearn.utils import check_random_state

from forerank._typing import Mask, Vector, Weights
from forerank._validation import is_integer
from forerank.metrics.pair_counts import aucs_by_group
from forerank.metrics.ranking import Ranking, curve_of, rank_binary

__all__ = ["AucInterval", "auc_interval", "check_confidence"]


@dataclass(frozen=True)
class AucInterval:
    """An AUC with its confidence interval ``[low, high]``."""

    estimate: float
    low: float
    high: float
    confidence: float
    method: str


def check_confidence(confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise ValueError(
            f"confidence={confidence!r}: give a probability strictly between 0 and 1, such as 0.95."
        )


def auc_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    confidence: float = 0.95,
    method: Literal["delong", "bootstrap"] = "delong",
    n_resamples: int = 2000,
    sample_weight: Weights = None,
    pos_label: Any = None,
    random_state: Any = None,
) -> AucInterval:
    """Confidence interval for `roc_auc`.

    "delong": with V_i the share of negatives ranked below positive i and V_j the share of positives
    ranked above negative j (ties one half), the variance of the AUC is estimated by
    ``var(V_i) / n_pos + var(V_j) / n_neg`` (DeLong, DeLong and Clarke-Pearson, 1988). The interval
    is symmetric for logit(AUC), ``logit(A) +- z se / (A (1 - A))``, so it stays within (0, 1).
    Cost: O(n log n).

    "bootstrap": percentiles of the AUC over resamples of each class with replacement. The rows are
    sorted once and a resample is a vector of counts. Cost: O(n log n + n_resamples n).

    A perfect ranking, or a perfectly reversed one, shows no variation: the interval is then one
    point, with a warning.

    Parameters
    ----------
    y_true, y_score, pos_label
        As in `roc_auc`.
    confidence : float
        Strictly between 0 and 1.
    method : {"delong", "bootstrap"}
        See above.
    n_resamples : int
        For the bootstrap only.
    sample_weight : array-like of shape (n_samples,), optional
        For the bootstrap only, which draws rows with equal probability and keeps their weights.
        DeLong's variance depends on whether a weight is a count or an importance.
    random_state : int, RandomState, Generator or None
        For the bootstrap only; the same seed gives the same interval.

    Examples
    --------
    >>> interval = auc_interval([0, 0, 0, 1, 1, 1], [1, 2, 4, 3, 5, 6])
    >>> print(f"{interval.estimate:.3f} in [{interval.low:.3f}, {interval.high:.3f}]")
    0.889 in [0.261, 0.995]
    """
    check_confidence(confidence)
    if method not in ("delong", "bootstrap"):
        raise ValueError(f"method={method!r}: choose 'delong' or 'bootstrap'.")
    if method == "delong" and sample_weight is not None:
        raise ValueError(
            "method='delong' does not accept sample_weight; use method='bootstrap' for weights."
        )
    ranking, positive = rank_binary(y_true, y_score, sample_weight, None, pos_label)
    n_pos, n_neg = int(positive.sum()), int((~positive).sum())
    if min(n_pos, n_neg) < 2:
        raise ValueError(
            f"y_true has {n_pos} positive and {n_neg} negative rows; an interval needs at least "
            "two of each, since one row shows no variation."
        )
    estimate = float(aucs_by_group(ranking, positive).mean())
    if estimate in (0.0, 1.0):
        text = (
            f"The AUC is {estimate:.0f}, so its interval is a single point and does not show the "
        )
        text += "uncertainty. More rows are needed."
        warnings.warn(text, UserWarning, stacklevel=2)
        low = high = estimate
    elif method == "delong":
        error = _delong_error(ranking, positive)
        half_width = ndtri(0.5 + confidence / 2) * error / (estimate * (1.0 - estimate))
        low, high = expit(logit(estimate) + half_width * np.array([-1.0, 1.0]))
    else:
        if not is_integer(n_resamples) or n_resamples < 1:
            raise ValueError(
                f"n_resamples={n_resamples!r}: give a whole number of at least 1; 2000 is usual."
            )
        aucs = _bootstrap_aucs(ranking, positive, int(n_resamples), random_state)
        low, high = np.quantile(aucs, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return AucInterval(estimate, float(low), float(high), float(confidence), method)


def _delong_error(ranking: Ranking, positive: Mask) -> float:
    """Standard error; rows of one block and class have the same component, so that the variances
    are sums over blocks.
    """
    curve = curve_of(ranking, positive)
    n_pos, n_neg = curve.all_positive[0], curve.all_negative[0]
    below = (n_neg - curve.fp + curve.negative / 2) / n_neg
    above = (curve.tp - curve.positive / 2) / n_pos
    auc = curve.positive @ below / n_pos
    var_pos = curve.positive @ (below - auc) ** 2 / (n_pos - 1)
    var_neg = curve.negative @ (above - auc) ** 2 / (n_neg - 1)
    return float(np.sqrt(var_pos / n_pos + var_neg / n_neg))


def _bootstrap_aucs(
    ranking: Ranking, positive: Mask, n_resamples: int, random_state: Any
) -> Vector:
    if not isinstance(random_state, np.random.Generator):
        random_state = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    rng = np.random.default_rng(random_state)
    w_pos, w_neg = ranking.weight[positive], ranking.weight[~positive]
    # Numbers of negatives above each positive, without and with those tied to it: the same for
    # every resample.
    tie_pos, tie_neg = ranking.tie[positive], ranking.tie[~positive]
    above, above_or_tied = (np.searchsorted(tie_neg, tie_pos, side) for side in ("left", "right"))
    aucs = np.empty(n_resamples)
    for r in range(n_resamples):
        draw_pos, draw_neg = (
            w * np.bincount(rng.integers(0, w.size, w.size), minlength=w.size)
            for w in (w_pos, w_neg)
        )
        passed = np.concatenate([[0.0], np.cumsum(draw_neg)])
        lost = draw_pos @ (passed[above] + passed[above_or_tied]) / 2
        aucs[r] = 1.0 - lost / (draw_pos.sum() * passed[-1])
    return aucs
