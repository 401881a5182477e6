"""The mean loss of the positives against a threshold set by the highest negatives.

    F(s) = sum_i p_i l(s_i - T(s)),    T(s) = max { <beta, s> : 0 <= beta_j <= cap_j, sum_j beta_j =
    1 }

over positive rows i with shares p_i that sum to one, and negative rows j. The caps decide what the
threshold is:

- cap 1: the largest negative score. With l the truncated quadratic this is TopPush (li2014, eq. 5),
  and, since l falls,
  the same function as InfinitePush (eq. 4);
- cap 1/k: the mean of the k largest negative scores;
- cap 1/(tau n): the mean of the upper tau share of the negative scores, the convex stand-in for
  their (1 - tau)
  quantile, which bounds the false positive rate (tau-FPL).

A row of weight w counts as w rows: its cap is w times as large. T is convex and l falls, so F is
convex.

Ties: at equal scores the rows that come first carry the weight; any choice is a subgradient.
"""

from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Vector
from forerank.losses import Loss, get_loss

__all__ = ["Top", "TopLinearization"]


class Top:
    """Positives against the top of the negatives, as a function of the scores.

    Parameters
    ----------
    positive : boolean array
        Which rows are positive.
    loss : str or Loss
        On the margin s_i - T: "squared_hinge" (the truncated quadratic), "logistic", "exponential"
        or "hinge".
    at : "max", int or float
        The threshold: the largest negative score, the mean of the `at` largest, or the mean of the
        upper share `at`.
    weight : array, optional
        Per row, non-negative. Rows without weight are left out.
    """

    smooth = False

    def __init__(
        self,
        positive: NDArray[np.bool_],
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
                f"A threshold needs rows on both sides; got {self.positives.size} positive and {self.negatives.size} "
                "negative rows with a positive weight."
            )
        weight = np.ones(positive.size) if weight is None else weight
        self.share = weight[self.positives] / weight[self.positives].sum()
        #: The steepest slope that the loss can have, per positive.
        self.most_pull = (
            self.share
            if self.loss.name in ("hinge", "logistic")
            else np.full(self.share.size, np.inf)
        )
        self.caps = _caps(at, weight[self.negatives])
        self._at = at

    def __repr__(self) -> str:
        return f"Top({self.loss!r}, at={self._at!r})"

    def threshold(self, negative_scores: Vector) -> tuple[float, Vector]:
        """T, and the weights beta of the negatives that attain it. Cost: n, or n log n with uneven
        caps.
        """
        beta = np.zeros(negative_scores.size)
        first = int(np.argmax(negative_scores))
        if self.caps[first] >= 1.0:
            beta[first] = 1.0
            return float(negative_scores[first]), beta
        count = min(int(np.ceil(1.0 / self.caps.min())), beta.size)
        highest = (
            np.arange(beta.size)
            if count == beta.size
            else np.argpartition(-negative_scores, count - 1)[:count]
        )
        highest = highest[np.lexsort((highest, -negative_scores[highest]))]
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

    def conjugate(self, pull: Vector) -> float:
        """The part of the dual that belongs to the losses: sum_i p_i l*(-a_i / p_i) for the pulls
        a_i = -p_i l'.
        """
        return float(self.share @ self.loss.conjugate(-pull / self.share))


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
    """The largest weight that each negative may carry in the threshold."""
    total = float(weight.sum())
    if isinstance(at, str) and at == "max":
        return np.ones(weight.size)
    if isinstance(at, Integral) and not isinstance(at, bool):
        if at < 1:
            raise ValueError(
                f"at={at!r}: the number of negatives that set the threshold must be 1 or more."
            )
        if at > total * (1.0 + 1e-12):
            raise ValueError(
                f"at={at!r} asks for the mean of the {at} largest negative scores, but there are negatives of a total "
                f"weight of {total:g} only. Use a smaller number, or a share between 0 and 1."
            )
        return np.minimum(weight / int(at), 1.0)
    if isinstance(at, Real) and not isinstance(at, bool) and 0.0 < at < 1.0:
        return np.minimum(weight / max(float(at) * total, np.finfo(float).tiny), 1.0)
    raise ValueError(
        f"at must be 'max', a number of negatives (an integer) or a share of them strictly between 0 and 1; got {at!r}."
    )
