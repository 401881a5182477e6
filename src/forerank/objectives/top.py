"""The mean loss of the positives against a threshold set by the highest negatives.

    F(s) = sum_i p_i l(s_i - T(s)),
    T(s) = max { <beta, s> : 0 <= beta_j <= cap_j, sum_j beta_j = 1 }

over positive rows i with shares p_i that sum to one, and negative rows j. The caps define the
threshold:

- cap 1: the largest negative score. With l the squared hinge this is TopPush (li2014, eq. 5), and,
  since l decreases, the same function as InfinitePush (eq. 4);
- cap 1/k: the mean of the k largest negative scores;
- cap 1/(tau n): the mean of the upper tau share of the negative scores, a convex bound on their
  (1 - tau) quantile, which bounds the false positive rate (tau-FPL).

A row of weight w counts as w rows: its cap is w times as large. T is convex and l decreases, so F
is convex. Ties: among equal scores the first rows carry the weight; any choice is a subgradient.
"""

import numpy as np

from forerank._sorting import largest
from forerank._typing import Mask, Vector
from forerank._validation import is_integer, is_number
from forerank.losses import Loss, get_loss

__all__ = ["Top", "TopLinearization"]


class Top:
    """Positives against the top of the negatives, as a function of the scores.

    Parameters
    ----------
    positive : boolean array
        Which rows are positive.
    loss : str or Loss
        On the margin s_i - T: "squared_hinge", "logistic", "exponential" or "hinge".
    at : "max", int or float
        The threshold: the largest negative score, the mean of the `at` largest, or the mean of the
        upper share `at`.
    weight : array, optional
        Per row, non-negative. Rows of weight zero are excluded.
    """

    smooth = False

    def __init__(
        self,
        positive: Mask,
        loss: str | Loss = "squared_hinge",
        *,
        at: str | int | float = "max",
        weight: Vector | None = None,
    ) -> None:
        self.loss = get_loss(loss)
        self.n_rows = positive.size
        present = np.ones(positive.size, dtype=bool) if weight is None else weight > 0.0
        self.positives = np.flatnonzero(positive & present)
        self.negatives = np.flatnonzero(~positive & present)
        if self.positives.size == 0 or self.negatives.size == 0:
            raise ValueError(
                f"{self.positives.size} positive and {self.negatives.size} negative rows have a "
                "weight above zero; at least one of each is needed."
            )
        weight = np.ones(positive.size) if weight is None else weight
        self.share = weight[self.positives] / weight[self.positives].sum()
        #: The largest |slope| of the loss of each positive.
        bounded = self.loss.name in ("hinge", "logistic")
        self.largest_slope = self.share if bounded else np.full(self.share.size, np.inf)
        self.caps = _caps(at, weight[self.negatives])
        self._at = at

    def __repr__(self) -> str:
        return f"Top({self.loss!r}, at={self._at!r})"

    def threshold(self, negative_scores: Vector) -> tuple[float, Vector]:
        """T, and the weights beta of the negatives. Cost: n, or n log n for unequal caps."""
        beta = np.zeros(negative_scores.size)
        first = int(np.argmax(negative_scores))
        if self.caps[first] >= 1.0:
            beta[first] = 1.0
            return float(negative_scores[first]), beta
        count = min(int(np.ceil(1.0 / self.caps.min())), beta.size)
        highest = largest(negative_scores, count)
        filled = np.minimum(np.cumsum(self.caps[highest]), 1.0)
        beta[highest] = np.diff(filled, prepend=0.0)
        return float(beta[highest] @ negative_scores[highest]), beta

    def at(self, s: Vector) -> "TopLinearization":
        """Value and a subgradient at the scores s."""
        return TopLinearization(self, s)

    def value_at(self, s: Vector) -> float:
        """F(s)."""
        T, _ = self.threshold(s[self.negatives])
        return float(self.share @ self.loss.value(s[self.positives] - T))

    def conjugate(self, a: Vector) -> float:
        """sum_i p_i l*(-a_i / p_i), the losses' part of the dual, for a_i = -p_i l'(margin_i)."""
        return float(self.share @ self.loss.conjugate(-a / self.share))


class TopLinearization:
    """A top objective at given scores: value and subgradient."""

    def __init__(self, top: Top, s: Vector) -> None:
        T, beta = top.threshold(s[top.negatives])
        margin = s[top.positives] - T
        self.value = float(top.share @ top.loss.value(margin))
        slope = top.share * top.loss.slope(margin)
        self.gradient = np.zeros(top.n_rows)
        self.gradient[top.positives] = slope
        self.gradient[top.negatives] = -slope.sum() * beta


def _caps(at: str | int | float, weight: Vector) -> Vector:
    """The largest weight of each negative in the threshold."""
    total = float(weight.sum())
    if isinstance(at, str) and at == "max":
        return np.ones(weight.size)
    if is_integer(at):
        if at < 1:
            raise ValueError(f"at={at!r}: the number of negatives must be at least 1.")
        if at > total * (1.0 + 1e-12):
            raise ValueError(
                f"at={at!r}: the mean of the {at} largest negative scores needs as many negatives, "
                f"but their total weight is {total:g}. Use a smaller number, or a share below 1."
            )
        return np.minimum(weight / int(at), 1.0)
    if is_number(at) and 0.0 < at < 1.0:
        return np.minimum(weight / max(float(at) * total, np.finfo(float).tiny), 1.0)
    raise ValueError(
        f"at must be 'max', a number of negatives (an integer) or a share of them strictly between "
        f"0 and 1; got {at!r}."
    )
