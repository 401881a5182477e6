"""What the log loss of predicted probabilities says about an AUC (kotlowski2011, section 4).

Let L be the balanced logistic risk of scores c, each class weighing one half, and L* the smallest
one that any function of the columns has. Then

    1 - AUC <= 2 L / log 2                 (eq. 11),
    best AUC - AUC <= 2 sqrt(L - L*)       (eq. 13).

Scores with the odds of the probabilities, c = logit(p) - logit(share of positives), have L. L* is
not known. Two readings of eq. 13 remain:

- if the predicted probabilities are right, L* is the risk that they expect of themselves;
- if some ranking has an AUC higher by g, then L* <= L - g^2 / 4: there are probabilities of which
  the balanced log loss is lower by g^2 / 4 at least.
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
# Quantile of the normal distribution for a one-sided limit with confidence 95 %.
_NORMAL_QUANTILE = 1.6449
# Gain of AUC in the sentence.
_GAIN = 0.01


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
        The AUC and the smallest risk, L*, of these rows if the probabilities are right.
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

    @property
    def regret(self) -> float:
        """Upper bound on the best AUC minus the AUC (eq. 13) if the probabilities are right; with
        the upper 95 % limit of `risk`, and at most 1 - AUC.
        """
        excess = self.risk + _NORMAL_QUANTILE * self.risk_error - self.expected_risk
        return min(logistic_regret_bound(max(excess, 0.0)), 1.0 - self.auc)

    def loss_for_gain(self, gain: float) -> float:
        """The least amount by which some probabilities have a lower balanced log loss, if there is
        a ranking with an AUC higher by `gain`.
        """
        if not 0.0 <= gain <= 1.0:
            raise ValueError(f"gain={gain!r}: a difference of AUC between 0 and 1 is expected.")
        return gain**2 / 4.0

    @property
    def sentence(self) -> str:
        """The bounds in words."""
        text = (
            f"The balanced log loss of the probabilities is {self.risk:.4f}; if they are right, "
            f"{self.expected_risk:.4f} is the smallest possible, and an AUC of {self.auc:.4f} is "
            f"within {self.regret:.3f} of the best possible one"
        )
        if self.regret >= 1.0 - self.auc:
            text += ", which is no more than it lacks of 1"
        return (
            f"{text} (kotlowski2011, eq. 13). Right or not, an AUC higher by {_GAIN:g} exists only "
            "if there are probabilities with a balanced log loss lower by "
            f"{self.loss_for_gain(_GAIN):.1e} at least."
        )

    def to_dict(self) -> dict[str, float]:
        """All values, for JSON."""
        names = ("auc", "risk", "risk_error", "expected_auc", "expected_risk")
        values = {name: float(getattr(self, name)) for name in names}
        return values | {"least_auc": self.least_auc, "regret": self.regret}


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
    >>> found.regret < 0.17
    True
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
