"""What the log loss of predicted probabilities says about an AUC (kotlowski2011, section 4).

Let L be the balanced logistic risk of scores c, each class weighing one half, and L* the smallest
one that any function of the columns has. Then

    1 - AUC <= 2 L / log 2                 (eq. 11),
    best AUC - AUC <= 2 sqrt(L - L*)       (eq. 13).

Scores with the odds of the probabilities, c = logit(p) - logit(share of positives), have L. L* is
not known, so eq. 13 is a statement on what is possible: if no probabilities have a balanced log
loss below L - d, the AUC is within 2 sqrt(d) of the best possible one; and if some ranking has an
AUC higher by g, there are probabilities with a loss lower by g^2 / 4 at least. Probabilities that
are right given the columns have L* and the best AUC, and both can be computed from them. That they
are right cannot be seen from labels alone: the share of positives, for every row, is calibrated.
"""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, logit

from forerank._typing import Vector
from forerank.metrics.bounds import expected_rank_loss, logistic_regret_bound, margin_bound
from forerank.metrics.pairs import roc_auc
from forerank.metrics.validation import check_column, check_numbers, positive_rows

__all__ = ["ProbabilityBounds", "probability_bounds"]

# Distance of probabilities from 0 and 1 below which they count as this: log losses stay finite.
_LEAST_PROBABILITY = 1e-12


@dataclass(frozen=True)
class ProbabilityBounds:
    """Bounds on an AUC from the balanced log loss of predicted probabilities.

    Attributes
    ----------
    auc : float
        Of the probabilities.
    risk : float
        L: their balanced logistic risk on the rows, natural logarithms.
    risk_error : float
        Standard error of `risk`.
    expected_auc, expected_risk : float
        The best AUC and the smallest risk, L*, if the probabilities are right.
    """

    auc: float
    risk: float
    risk_error: float
    expected_auc: float
    expected_risk: float

    @property
    def least_auc(self) -> float:
        """Lower bound on the AUC from `risk` alone (eq. 11); zero if it says nothing."""
        return max(1.0 - margin_bound(self.risk / log(2.0)), 0.0)

    def regret_bound(self, smallest_risk: float) -> float:
        """Upper bound on the best AUC minus the AUC, if `smallest_risk` is the smallest balanced
        log loss of any probabilities (eq. 13); at most 1 - AUC.
        """
        if not 0.0 <= smallest_risk <= self.risk:
            raise ValueError(
                f"smallest_risk={smallest_risk!r}: a loss between 0 and {self.risk:.4f}, that of "
                "the probabilities, is expected."
            )
        return min(logistic_regret_bound(self.risk - smallest_risk), 1.0 - self.auc)

    def loss_for_gain(self, gain: float) -> float:
        """The least amount by which some probabilities have a lower balanced log loss, if there is
        a ranking with an AUC higher by `gain`.
        """
        if not 0.0 <= gain <= 1.0:
            raise ValueError(f"gain={gain!r}: a difference of AUC between 0 and 1 is expected.")
        return gain**2 / 4.0

    @property
    def sentence(self) -> str:
        """The bounds in words, for a gain of half of what the AUC lacks of 1."""
        gain, below = self._half_of_the_rest()
        return (
            f"The balanced log loss of the probabilities is {self.risk:.4f}. If no "
            f"probabilities have a smaller loss than {below:.4f}, the AUC of {self.auc:.4f} is "
            f"within {gain:.4f} of the best possible (kotlowski2011, eq. 13). If these "
            "probabilities are right, which their calibration alone does not show, the best "
            f"possible AUC is {self.expected_auc:.4f}."
        )

    @property
    def sentence_on_pairs(self) -> str:
        """The same bound without a value of the AUC, beside one that was measured otherwise."""
        gain, below = self._half_of_the_rest()
        return (
            f"The balanced log loss of the probabilities is {self.risk:.4f}. If no "
            f"probabilities have a smaller loss than {below:.4f}, no ranking has more than another "
            f"{100.0 * gain:.1f} % of all pairs of a positive and a negative row in order "
            "(kotlowski2011, eq. 13)."
        )

    def _half_of_the_rest(self) -> tuple[float, float]:
        """Half of what the AUC lacks of 1, and the loss down to which it bounds the regret."""
        gain = (1.0 - self.auc) / 2.0
        return gain, max(self.risk - self.loss_for_gain(gain), 0.0)

    def to_dict(self) -> dict[str, float]:
        """All values, for JSON."""
        names = ("auc", "risk", "risk_error", "expected_auc", "expected_risk")
        values = {name: float(getattr(self, name)) for name in names}
        return values | {"least_auc": self.least_auc}


def probability_bounds(y_true: ArrayLike, probability: ArrayLike) -> ProbabilityBounds:
    """Bounds on the AUC of predicted probabilities from their log loss.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two labels, on rows that the model was not fitted on; the larger one is positive.
    probability : array-like of shape (n_samples,)
        Predicted probability of the positive label.

    Returns
    -------
    ProbabilityBounds

    Notes
    -----
    Cost: two sorts.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=2000)
    >>> found = probability_bounds(rng.uniform(size=2000) < p, p)
    >>> round(found.auc, 2), round(found.expected_auc, 2)
    (0.84, 0.84)
    >>> round(found.regret_bound(found.risk - 0.001), 3)
    0.063
    """
    y = check_column(y_true, "y_true")
    positive = positive_rows(y, None)
    p = check_numbers(probability, "probability", y.size).astype(np.float64)
    if not np.all((p >= 0.0) & (p <= 1.0)):
        raise ValueError("probability has values outside 0 to 1; give predicted probabilities.")
    p = np.clip(p, _LEAST_PROBABILITY, 1.0 - _LEAST_PROBABILITY)
    scores = logit(p) - logit(positive.mean())
    losses = np.logaddexp(0.0, np.where(positive, -scores, scores))
    parts = losses[positive], losses[~positive]
    variance = sum(part.var() / part.size for part in parts) / 4.0
    return ProbabilityBounds(
        auc=roc_auc(positive, p),
        risk=float(sum(part.mean() for part in parts)) / 2.0,
        risk_error=sqrt(variance),
        expected_auc=1.0 - expected_rank_loss(p, p),
        expected_risk=_smallest_risk(p),
    )


def _smallest_risk(p: Vector) -> float:
    """The smallest balanced logistic risk where row i is positive with probability p_i."""
    up, down = p / (2.0 * p.sum()), (1.0 - p) / (2.0 * (1.0 - p).sum())
    return float((entr(up) + entr(down) - entr(up + down)).sum())
