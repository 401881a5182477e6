"""The weighted mean loss over single rows.

    F(s) = sum_i w_i l(y_i s_i) / sum_i w_i,    y_i in {-1, +1}

Logistic regression, the linear SVM with class weights (WSVM in shen2013, cs-SVM in li2014) and the
exponential and logistic univariate losses of kotlowski2011 differ in the loss and in the class
weights.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from forerank._typing import Vector
from forerank.losses import Exponential, Loss, SmoothedHinge, get_loss

__all__ = ["Pointwise", "Profiled"]


class Pointwise:
    """The weighted mean of a loss over rows, as a function of the scores.

    Parameters
    ----------
    positive : boolean array
        Which rows are positive (y = +1).
    loss : str or Loss
        On the margin y s.
    weight : array, optional
        Per row, non-negative; sample and class weights multiplied together.
    """

    shift_invariant = False

    def __init__(
        self,
        positive: NDArray[np.bool_],
        loss: str | Loss = "logistic",
        *,
        weight: Vector | None = None,
    ) -> None:
        self.loss = get_loss(loss)
        self.smooth = self.loss.smooth
        self.n_rows = positive.size
        self._positive = positive
        self._weight = weight
        self._total = float(positive.size if weight is None else weight.sum())

    def __repr__(self) -> str:
        return f"Pointwise({self.loss!r})"

    def smoothed(self, width: float) -> "Pointwise":
        """The same rows under the smoothed hinge, for an objective with the plain hinge."""
        return Pointwise(self._positive, SmoothedHinge(width), weight=self._weight)

    def squared(self) -> "Pointwise":
        """The same rows under the squared loss."""
        return Pointwise(self._positive, "squared", weight=self._weight)

    @property
    def positive(self) -> NDArray[np.bool_]:
        """Which rows are positive."""
        return self._positive

    @property
    def uniform(self) -> bool:
        """Whether all rows weigh the same."""
        return self._weight is None

    @property
    def share(self) -> Vector:
        """The weight of each row's loss in the mean."""
        return np.full(self.n_rows, 1.0) * self._mean_weight()

    def _mean_weight(self) -> Vector | float:
        return 1.0 / self._total if self._weight is None else self._weight / self._total

    def at(self, s: Vector) -> "PointwiseLinearization":
        """Value, gradient and curvature at the scores s. Cost: N."""
        return PointwiseLinearization(
            self.loss, np.where(self._positive, s, -s), self._positive, self._mean_weight()
        )

    def gradient_at_zero(self) -> Vector:
        """The gradient where all scores are zero."""
        return self.at(np.zeros(self.n_rows)).gradient

    def sample(
        self, size: int, rng: np.random.Generator
    ) -> "tuple[NDArray[np.intp], Pointwise] | None":
        """Up to half of the rows from either class, weighted so that the mean stays unbiased."""
        if size > 0.75 * self.n_rows:
            return None
        weight = np.ones(self.n_rows) if self._weight is None else self._weight
        picked = []
        for side in (self._positive, ~self._positive):
            rows = np.flatnonzero(side)
            share = max(size // 2, size - (self.n_rows - rows.size))
            picked.append(
                rows
                if rows.size <= share
                else rng.choice(rows, share, replace=False, shuffle=False)
            )
        rows = np.sort(np.concatenate(picked))
        corrected = weight[rows].copy()
        for side, part in zip((self._positive, ~self._positive), picked, strict=True):
            if part.size:
                drawn = weight[part].sum()
                corrected[side[rows]] *= weight[side].sum() / drawn if drawn > 0.0 else 1.0
        return rows, Pointwise(self._positive[rows], self.loss, weight=corrected)


class PointwiseLinearization:
    """A pointwise objective at given margins."""

    def __init__(
        self, loss: Loss, margin: Vector, positive: NDArray[np.bool_], weight: Vector | float
    ) -> None:
        self._loss, self._margin, self._weight = loss, margin, weight
        self._curvature: Vector | None = None
        self.value = float(np.sum(weight * loss.value(margin)))
        slope = weight * loss.slope(margin)
        self.gradient = np.where(positive, slope, -slope)

    def curvature_diagonal(self) -> Vector:
        """The diagonal of F''(s), which is all there is of it."""
        if self._curvature is None:
            self._curvature = self._weight * self._loss.curvature(self._margin)
        return self._curvature

    def curvature_product(self, u: Vector) -> Vector:
        """F''(s) u."""
        return self.curvature_diagonal() * u

    def curvature_matrix(self, U: Vector) -> Vector:
        """F''(s) U for the columns of U."""
        return self.curvature_diagonal()[:, None] * U

    def quadratic_form(self, U: Vector) -> Vector:
        """u^T F''(s) u for each column u of U."""
        return self.curvature_diagonal() @ U**2


class Profiled:
    """A pointwise objective with the best constant already added to the scores: min_b F(s + b).

    The minimum over a shift of a convex function is convex in s, and its gradient is that of F at
    the best shift (which sums to zero there). So an intercept without penalty needs no column of
    its own, and a bundle method keeps its dual bound. The curvature is that of F less what the
    shift takes up.

    Cost: N log N for the hinge, where the best shift is a weighted quantile; N for the exponential
    loss, where it is half the difference of two log-sums; N for each evaluation of F in a search
    for the shift otherwise.
    """

    shift_invariant = True

    def __init__(self, pointwise: Pointwise) -> None:
        self.pointwise = pointwise
        self.smooth, self.n_rows = pointwise.smooth, pointwise.n_rows

    def __repr__(self) -> str:
        return f"Profiled({self.pointwise!r})"

    def best_shift(self, s: Vector) -> float:
        """The constant b that minimises F(s + b)."""
        if isinstance(self.pointwise.loss, Exponential):
            return _exponential_shift(self.pointwise, s)
        return (
            _smooth_shift(self.pointwise, s) if self.smooth else _hinge_shift(self.pointwise, s)[0]
        )

    def at(self, s: Vector) -> "ProfiledLinearization":
        """Value, gradient and curvature at the scores s."""
        if self.smooth:
            return ProfiledLinearization(self.pointwise.at(s + self.best_shift(s)))
        shift, gradient = _hinge_shift(self.pointwise, s)
        there = ProfiledLinearization(self.pointwise.at(s + shift))
        there.gradient = gradient
        return there

    def gradient_at_zero(self) -> Vector:
        """The gradient where all scores are zero."""
        return self.at(np.zeros(self.n_rows)).gradient

    def sample(
        self, size: int, rng: np.random.Generator
    ) -> "tuple[NDArray[np.intp], Profiled] | None":
        """Rows with an unbiased version of the objective on them."""
        drawn = self.pointwise.sample(size, rng)
        return None if drawn is None else (drawn[0], Profiled(drawn[1]))

    def smoothed(self, width: float) -> "Profiled":
        """The same rows under the smoothed hinge, for an objective with the plain hinge."""
        return Profiled(self.pointwise.smoothed(width))

    def squared(self) -> "Profiled":
        """The same rows under the squared loss."""
        return Profiled(self.pointwise.squared())


class ProfiledLinearization:
    """A profiled objective at given scores."""

    def __init__(self, shifted: PointwiseLinearization) -> None:
        self._shifted = shifted
        self.value, self.gradient = shifted.value, shifted.gradient

    def curvature_product(self, u: Vector) -> Vector:
        """F''(s) u."""
        weight = self._shifted.curvature_diagonal()
        total = weight.sum()
        return weight * (u - (weight @ u) / total) if total > 0.0 else np.zeros(u.size)

    def curvature_matrix(self, U: Vector) -> Vector:
        """F''(s) U for the columns of U."""
        weight = self._shifted.curvature_diagonal()
        total = weight.sum()
        return weight[:, None] * (U - (weight @ U) / total) if total > 0.0 else np.zeros(U.shape)

    def quadratic_form(self, U: Vector) -> Vector:
        """u^T F''(s) u for each column u of U."""
        return np.einsum("ij,ij->j", U, self.curvature_matrix(U))

    def curvature_diagonal(self) -> Vector:
        """The diagonal of F''(s)."""
        weight = self._shifted.curvature_diagonal()
        total = weight.sum()
        return weight - weight**2 / total if total > 0.0 else weight


def _hinge_shift(pointwise: Pointwise, s: Vector) -> tuple[float, Vector]:
    """The best shift under the hinge, and the subgradient there whose entries sum to zero.

    Row i reaches its margin at the shift y_i - s_i. Passing it, a positive row stops pulling up or
    a negative row starts pulling down: either way the slope in the shift rises by w_i, from minus
    the weight of the positive rows. Rows that reach their margin exactly at the best shift pull
    with the same fraction of their weight.
    """
    positive = pointwise._positive
    weight = np.broadcast_to(pointwise._mean_weight(), s.shape)
    reached = np.where(positive, 1.0, -1.0) - s
    order = np.argsort(reached)
    goal = weight[positive].sum()
    cumulated = np.cumsum(weight[order])
    shift = reached[order[min(int(np.searchsorted(cumulated, goal * (1.0 - 1e-15))), s.size - 1)]]
    before, on = reached < shift, reached == shift
    passed = (goal - weight[before].sum()) / weight[on].sum()
    pull = np.where(before, 1.0, np.where(on, min(max(passed, 0.0), 1.0), 0.0))
    return float(shift), np.where(positive, -weight * (1.0 - pull), weight * pull)


def _exponential_shift(pointwise: Pointwise, s: Vector) -> float:
    """Where both classes have the same loss: half the log of the ratio of their sums
    (kotlowski2011, section 4.2).
    """
    positive = pointwise.positive
    weight = None if pointwise.uniform else pointwise.share
    upper = logsumexp(-s[positive], b=None if weight is None else weight[positive])
    lower = logsumexp(s[~positive], b=None if weight is None else weight[~positive])
    return 0.5 * float(upper - lower)


def _smooth_shift(pointwise: Pointwise, s: Vector) -> float:
    """The root in b of the sum of slopes of F(s + b): Newton's steps inside a bracket that shrinks."""

    def slope(b: float) -> tuple[float, float]:
        there = pointwise.at(s + b)
        return float(there.gradient.sum()), float(there.curvature_diagonal().sum())

    # Every margin is past its hinge on one side of this range; other losses widen it as needed.
    low, high = -1.0 - float(s.max()), 1.0 - float(s.min())
    while slope(low)[0] > 0.0:
        low -= 2.0 * (high - low)
    while slope(high)[0] < 0.0:
        high += 2.0 * (high - low)
    b = 0.0 if low < 0.0 < high else 0.5 * (low + high)
    for _ in range(100):
        value, curvature = slope(b)
        low, high = (b, high) if value < 0.0 else (low, b)
        step = b - value / curvature if curvature > 0.0 else low
        step = step if low < step < high else 0.5 * (low + high)
        if abs(step - b) <= 1e-15 * max(1.0, abs(b)) or value == 0.0:
            break
        b = step
    return b
