"""A smooth version of the loss at the top: the threshold is a soft maximum of the negatives.

    F(s) = sum_i p_i l(s_i - T(s)),    T(s) = log( sum_j q_j exp(sharpness s_j) ) / sharpness

over positives i with shares p_i and negatives j with shares q_j that sum to one (within a group:
the negatives of the group of i, and the shares q_j in it). T lies between the mean (sharpness
towards zero) and the largest of the negative scores (sharpness towards infinity, `Top`); it is
convex, and l decreases, so that F is convex. With the exponential loss this is the p-norm push
(`PNorm`, p = sharpness); with the logistic loss single positives at the bottom count less.

With the weights beta_j = q_j exp(sharpness s_j) / sum, the slopes a_i = -p_i l'(s_i - T) and the
curvatures b_i = p_i l''(s_i - T), the gradient is -a_i and beta_j sum_i a_i, and the diagonal of
the curvature is b_i and beta_j^2 sum_i b_i + sharpness beta_j (1 - beta_j) sum_i a_i.
"""

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Mask, Vector
from forerank.losses import Loss
from forerank.objectives.top import TopWithinGroups

__all__ = ["SmoothTop"]


class SmoothTop(TopWithinGroups):
    """Positives against a soft maximum of the negatives of their group.

    Groups without a positive or without a negative are excluded.

    Parameters
    ----------
    positive : boolean array
    loss : str or Loss
        On the margin s_i - T: "logistic", "squared_hinge" or "exponential".
    sharpness : float
        Positive; the larger, the more the highest negatives count.
    group : integer array, optional
        The group of each row, 0 .. Q-1.
    weight : array, optional
        Per row, non-negative. Rows of weight zero are excluded.
    """

    smooth = True
    shift_invariant = True
    has_curvature = True

    def __init__(
        self,
        positive: Mask,
        loss: str | Loss = "logistic",
        *,
        sharpness: float = 4.0,
        group: NDArray[np.integer] | None = None,
        weight: Vector | None = None,
    ) -> None:
        group = np.zeros(positive.size, dtype=np.intp) if group is None else group
        super().__init__(positive, loss, group=group, weight=weight)
        self.sharpness = float(sharpness)
        own = np.ones(self.negatives.size) if weight is None else weight[self.negatives]
        total = np.add.reduceat(own, self.negative_starts)
        self._log_share = np.log(own / total[self.group_of_negatives])

    def thresholds(self, negative_scores: Vector) -> tuple[Vector, Vector]:
        """T of each group, and the weights beta of the negatives. Cost: n."""
        starts, group = self.negative_starts, self.group_of_negatives
        exponent = self.sharpness * negative_scores + self._log_share
        highest = np.maximum.reduceat(exponent, starts)
        terms = np.exp(exponent - highest[group])
        total = np.add.reduceat(terms, starts)
        return (highest + np.log(total)) / self.sharpness, terms / total[group]

    def at(self, s: Vector) -> "SmoothTopLinearization":  # type: ignore[override]
        """Value, gradient and the diagonal of the curvature at the scores s."""
        return SmoothTopLinearization(self, s)


class SmoothTopLinearization:
    """A smooth top objective at given scores."""

    def __init__(self, top: SmoothTop, s: Vector) -> None:
        self._top = top
        T, self._beta = top.thresholds(s[top.negatives])
        self._margin = s[top.positives] - T[top.group_of_positives]
        self.value = float(top.share @ top.loss.value(self._margin))
        slope = top.share * top.loss.slope(self._margin)
        self._slopes = -np.add.reduceat(slope, top.positive_starts)[top.group_of_negatives]
        self.gradient = np.zeros(top.n_rows)
        self.gradient[top.positives] = slope
        self.gradient[top.negatives] = self._slopes * self._beta

    def curvature_diagonal(self) -> Vector:
        """The diagonal of F''(s)."""
        top, beta = self._top, self._beta
        curvature = top.share * top.loss.curvature(self._margin)
        total = np.add.reduceat(curvature, top.positive_starts)[top.group_of_negatives]
        diagonal = np.zeros(top.n_rows)
        diagonal[top.positives] = curvature
        bend = top.sharpness * beta * (1.0 - beta) * self._slopes
        diagonal[top.negatives] = total * beta**2 + bend
        return diagonal
