"""The weighted mean loss over single rows.

    F(s) = sum_i w_i l(y_i s_i) / sum_i w_i,    y_i in {-1, +1}

Logistic regression, the linear SVM with class weights (WSVM in shen2013, cs-SVM in li2014) and the
exponential and logistic univariate losses of kotlowski2011 differ in the loss and in the class
weights.
"""

import numpy as np
from scipy.special import logsumexp

from forerank._typing import Index, Mask, Random, Vector
from forerank.design import Design
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
    has_curvature = True

    def __init__(
        self, positive: Mask, loss: str | Loss = "logistic", *, weight: Vector | None = None
    ) -> None:
        self.loss = get_loss(loss)
        self.smooth = self.loss.smooth
        self.n_rows = positive.size
        self.positive = positive
        self._weight = weight
        self._total = float(positive.size if weight is None else weight.sum())

    def __repr__(self) -> str:
        return f"Pointwise({self.loss!r})"

    def smoothed(self, width: float) -> "Pointwise":
        """The same rows under the smoothed hinge, for an objective with the hinge."""
        return Pointwise(self.positive, SmoothedHinge(width), weight=self._weight)

    def squared(self) -> "Pointwise":
        """The same rows under the squared loss."""
        return Pointwise(self.positive, "squared", weight=self._weight)

    def profiled(self) -> "Profiled":
        """The same, minimised over a constant that is added to the scores."""
        return Profiled(self)

    @property
    def row_objective(self) -> "Pointwise":
        """The objective on single rows: this one."""
        return self

    @property
    def share(self) -> Vector:
        """The weight of each row's loss in the mean."""
        return np.full(self.n_rows, 1.0) * self.mean_weight

    @property
    def total_weight(self) -> float:
        """The sum of the weights."""
        return self._total

    @property
    def mean_weight(self) -> Vector | float:
        """The weights as shares of their sum; one number where all are equal."""
        return 1.0 / self._total if self._weight is None else self._weight / self._total

    def at(self, s: Vector) -> "PointwiseLinearization":
        """Value, gradient and curvature at the scores s. Cost: N."""
        return PointwiseLinearization(self.loss, s, self.positive, self.mean_weight)

    def hessian(self, s: Vector, design: Design) -> Vector:
        """X^T F''(s) X. Cost: N d^2 / 2."""
        return design.weighted_gram(self.at(s).curvature_diagonal())

    def gradient_at_zero(self) -> Vector:
        """The gradient at s = 0."""
        return self.at(np.zeros(self.n_rows)).gradient

    def sample(self, size: int, rng: Random) -> "tuple[Index, Pointwise] | None":
        """Rows, up to half of them from either class, weighted so that the mean is unbiased."""
        if size > 0.75 * self.n_rows:
            return None
        rng, drawn = np.random.default_rng(rng), []
        for side in (self.positive, ~self.positive):
            rows = np.flatnonzero(side)
            most = max(size // 2, size - (self.n_rows - rows.size))
            if rows.size > most:
                rows = rng.choice(rows, most, replace=False, shuffle=False)
            drawn.append(rows)
        rows = np.sort(np.concatenate(drawn))
        return rows, self.of_rows(rows)

    def of_rows(self, rows: Index) -> "Pointwise":
        """The objective on some rows, whose weights are raised to those of all rows of a class."""
        weight = np.ones(self.n_rows) if self._weight is None else self._weight
        corrected, positive = weight[rows], self.positive[rows]
        for side, drawn in ((self.positive, positive), (~self.positive, ~positive)):
            total = corrected[drawn].sum()
            corrected[drawn] *= weight[side].sum() / total if total > 0.0 else 1.0
        return Pointwise(positive, self.loss, weight=corrected)


class PointwiseLinearization:
    """A pointwise objective at given scores."""

    def __init__(self, loss: Loss, s: Vector, positive: Mask, weight: Vector | float) -> None:
        self._loss, self._s, self._positive, self._weight = loss, s.copy(), positive, weight
        self._curvature: Vector | None = None
        losses, self.gradient = loss.of_labels(s, positive)
        losses *= weight
        self.value = float(losses.sum())
        self.gradient *= weight

    def total_slope(self) -> float:
        """The mean of |slope| over the rows."""
        return float(np.abs(self.gradient).sum())

    def curvature_diagonal(self) -> Vector:
        """The diagonal of F''(s), a diagonal matrix."""
        if self._curvature is None:
            margin = np.where(self._positive, self._s, -self._s)
            self._curvature = self._weight * self._loss.curvature(margin)
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
    """A pointwise objective minimised over a constant added to the scores: min_b F(s + b).

    It is convex in s, and its gradient is that of F at the best shift, whose entries sum to zero.
    With it an intercept without penalty needs no column, and the bundle method has a dual bound.

    Cost: N log N for the hinge, where the best shift is a weighted quantile; N for the exponential
    loss, where it is half the difference of two log-sums; otherwise N for each evaluation of F in
    the search for the shift.
    """

    shift_invariant = True
    has_curvature = True

    def __init__(self, pointwise: Pointwise) -> None:
        #: The objective on single rows, without the shift.
        self.row_objective = pointwise
        self.smooth, self.n_rows = pointwise.smooth, pointwise.n_rows

    def __repr__(self) -> str:
        return f"Profiled({self.row_objective!r})"

    def best_shift(self, s: Vector) -> float:
        """The constant b that minimises F(s + b)."""
        if isinstance(self.row_objective.loss, Exponential):
            return _exponential_shift(self.row_objective, s)
        if self.smooth:
            return _smooth_shift(self.row_objective, s)
        return _hinge_shift(self.row_objective, s)[0]

    def at(self, s: Vector) -> "ProfiledLinearization":
        """Value, gradient and curvature at the scores s."""
        if self.smooth:
            return ProfiledLinearization(self.row_objective.at(s + self.best_shift(s)))
        shift, gradient = _hinge_shift(self.row_objective, s)
        there = ProfiledLinearization(self.row_objective.at(s + shift))
        there.gradient = gradient
        return there

    def hessian(self, s: Vector, design: Design) -> Vector:
        """X^T F''(s) X."""
        X = design.columns(0, design.n_columns)
        return X.T @ self.at(s).curvature_matrix(X)

    def gradient_at_zero(self) -> Vector:
        """The gradient at s = 0."""
        return self.at(np.zeros(self.n_rows)).gradient

    def sample(self, size: int, rng: Random) -> "tuple[Index, Profiled] | None":
        """Rows with an unbiased version of the objective on them."""
        drawn = self.row_objective.sample(size, rng)
        return None if drawn is None else (drawn[0], Profiled(drawn[1]))

    def of_rows(self, rows: Index) -> "Profiled":
        """The objective on some rows; see `Pointwise.of_rows`."""
        return Profiled(self.row_objective.of_rows(rows))

    def smoothed(self, width: float) -> "Profiled":
        """The same rows under the smoothed hinge, for an objective with the hinge."""
        return Profiled(self.row_objective.smoothed(width))

    def squared(self) -> "Profiled":
        """The same rows under the squared loss."""
        return Profiled(self.row_objective.squared())


class ProfiledLinearization:
    """A profiled objective at given scores."""

    def __init__(self, shifted: PointwiseLinearization) -> None:
        self._shifted = shifted
        self.value, self.gradient = shifted.value, shifted.gradient

    def total_slope(self) -> float:
        """The mean of |slope| over the rows."""
        return self._shifted.total_slope()

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

    Row i is on its margin at the shift y_i - s_i. There the slope in the shift increases by w_i,
    from minus the weight of the positive rows at -infinity. Rows that are on their margin at the
    best shift get the same fraction of their weight in the subgradient.
    """
    positive = pointwise.positive
    weight = np.broadcast_to(pointwise.mean_weight, s.shape)
    reached = np.where(positive, 1.0, -1.0) - s
    order = np.argsort(reached)
    goal = weight[positive].sum()
    cumulated = np.cumsum(weight[order])
    shift = reached[order[min(int(np.searchsorted(cumulated, goal * (1.0 - 1e-15))), s.size - 1)]]
    before, on = reached < shift, reached == shift
    fraction = (goal - weight[before].sum()) / weight[on].sum()
    share = np.where(before, 1.0, np.where(on, min(max(fraction, 0.0), 1.0), 0.0))
    return float(shift), np.where(positive, -weight * (1.0 - share), weight * share)


def _exponential_shift(pointwise: Pointwise, s: Vector) -> float:
    """The shift with equal loss in both classes (kotlowski2011, section 4.2)."""
    positive = pointwise.positive
    weight = None if isinstance(pointwise.mean_weight, float) else pointwise.share
    upper = logsumexp(-s[positive], b=None if weight is None else weight[positive])
    lower = logsumexp(s[~positive], b=None if weight is None else weight[~positive])
    return 0.5 * float(upper - lower)


def _smooth_shift(pointwise: Pointwise, s: Vector) -> float:
    """The root in b of the sum of slopes of F(s + b), by Newton's method within a bracket."""
    loss, sign = pointwise.loss, np.where(pointwise.positive, 1.0, -1.0)
    weight = pointwise.mean_weight
    if s.size > 2 and s.min() == s.max():
        # Equal scores, as at the start of a fit, are one row of each class.
        share = pointwise.share
        of_positive = float(share[pointwise.positive].sum())
        weight, sign = np.array([of_positive, share.sum() - of_positive]), np.array([1.0, -1.0])
        s = s[:2]

    def slope(b: float) -> tuple[float, float]:
        margin = sign * (s + b)
        total = float(np.sum(weight * sign * loss.slope(margin)))
        return total, float(np.sum(weight * loss.curvature(margin)))

    # Bracket of the root: outside it, one class has no hinge loss left. For other losses the loops
    # widen it.
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
