"""Small quadratic programmes of the working-set solver, by a primal-dual interior-point method.

    min  1/2 ||sum_j x_j a_j||^2_{H^-1} + <h, x>
    over  0 <= x_j,  x_j <= upper_j  or  x_j <= share_j sum_k x_k

with rows a_j of A, and H positive definite: the dual of a quadratic model of H under linear
constraints, one variable per constraint (maths/top.md, eq. 4). Predictor and corrector steps after
Mehrotra (1992). Every step solves (A H^-1 A^T + diag) x = r, directly or through H + A^T diag^-1 A,
whichever is smaller.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from forerank._typing import Index, Mask, Vector

__all__ = ["RELATIVE_ERROR", "Bounds", "Gram", "Metric", "interior_point", "pivoting"]

Solve = Callable[[Vector], Vector]

_MAX_STEPS = 80
# Length of a step relative to the distance from the boundary.
_BOUNDARY_SHARE = 0.99
# Block pivoting ends after this many exchanges without fewer wrong signs.
_PATIENCE = 3
# Increase of the diagonal, relative to it, so that equal rows do not make the matrix singular.
_RIDGE = 1e-9
# Relative accuracy of the minimum at which a programme counts as solved.
RELATIVE_ERROR = 0.03


class Gram:
    """A H^-1 A^T as a matrix, for few rows."""

    def __init__(self, matrix: Vector) -> None:
        self.matrix = matrix

    def product(self, x: Vector) -> Vector:
        return self.matrix @ x

    def among(self, index: Index) -> Vector:
        """The matrix of some of the rows."""
        return self.matrix[np.ix_(index, index)]

    def plus_diagonal(self, theta: Vector) -> Solve:
        """The inverse of this matrix with theta added to its diagonal."""
        shifted = self.matrix.copy()
        shifted[np.diag_indices(theta.size)] += theta
        return _factored(shifted)


class Metric:
    """A H^-1 A^T through H and A, for more rows than columns.

    The last `n_units` rows are unit vectors of the first columns, which are not stored.
    """

    def __init__(self, H: Vector, rows: Vector, n_units: int = 0) -> None:
        self._H, self._rows, self._n_units = H, rows, n_units
        self._solve = _factored(H.copy())

    def _times(self, v: Vector) -> Vector:
        """A v."""
        return np.concatenate([self._rows @ v, v[: self._n_units]])

    def _adjoint(self, x: Vector) -> Vector:
        """A^T x."""
        n = self._rows.shape[0]
        out = self._rows.T @ x[:n]
        out[: self._n_units] += x[n:]
        return out

    def product(self, x: Vector) -> Vector:
        return self._times(self._solve(self._adjoint(x)))

    def along(self, g: Vector) -> Vector:
        """A H^-1 g."""
        return self._times(self._solve(g))

    def step(self, g: Vector, x: Vector) -> Vector:
        """-H^-1 (g + A^T x)."""
        return -self._solve(g + self._adjoint(x))

    def plus_diagonal(self, theta: Vector) -> Solve:
        """The inverse of the sum by the Woodbury identity."""
        n = self._rows.shape[0]
        scaled = self._rows / np.sqrt(theta[:n])[:, None]
        matrix = self._H + scaled.T @ scaled
        units = np.arange(self._n_units)
        matrix[units, units] += 1.0 / theta[n:]
        inner = _factored(matrix)

        def once(r: Vector) -> Vector:
            weighted = (r.T / theta).T
            return ((r - self._times(inner(self._adjoint(weighted)))).T / theta).T

        def solve(r: Vector) -> Vector:
            # The difference cancels where theta is small, at the active constraints: one step of
            # iterative refinement.
            x = once(r)
            return x + once(r - self.product(x) - (x.T * theta).T)

        return solve


def _factored(matrix: Vector) -> Solve:
    """Solution by a Cholesky factor, of a matrix with an increased diagonal if it is singular to
    working precision.
    """
    ridge = 0.0
    scale = float(np.abs(np.diagonal(matrix)).max())
    for _ in range(8):
        try:
            shifted = matrix if ridge == 0.0 else matrix + ridge * np.eye(matrix.shape[0])
            factor = cho_factor(shifted, lower=True, check_finite=False)
        except LinAlgError:
            ridge = max(100.0 * ridge, 1e-15 * scale)
        else:
            return lambda r: cho_solve(factor, r, check_finite=False)
    raise LinAlgError("the matrix of an interior-point step is not positive definite")


@dataclass(frozen=True)
class Bounds:
    """Upper bounds: shares of their sum for the first variables, numbers for the others; None
    where there are none.
    """

    n_first: int
    shares: Vector | None = None
    upper: Vector | None = None

    def slack(self, x: Vector, constant: float = 1.0) -> Vector:
        """Distance of x from its bounds; its linear part with constant = 0."""
        first, others = x[: self.n_first], x[self.n_first :]
        parts = [] if self.shares is None else [self.shares * first.sum() - first]
        parts += [] if self.upper is None else [constant * self.upper - others]
        return np.concatenate(parts) if parts else np.empty(0)

    def adjoint(self, y: Vector, n: int) -> Vector:
        """The transpose of the linear part of `slack`."""
        out = np.zeros(n)
        on_first, on_others = self.split(y)
        if self.shares is not None:
            out[: self.n_first] = float(self.shares @ on_first) - on_first
        if self.upper is not None:
            out[self.n_first :] = -on_others
        return out

    def split(self, y: Vector) -> tuple[Vector, Vector]:
        n_first = self.n_first if self.shares is not None else 0
        return y[:n_first], y[n_first:]


@dataclass
class _Interior:
    """Point inside: x, multipliers z of x >= 0, slacks u of the bounds and their multipliers y."""

    x: Vector
    z: Vector
    u: Vector
    y: Vector

    def along(self, step: "_Interior", length: float) -> "_Interior":
        pairs = zip(vars(self).values(), vars(step).values(), strict=True)
        return _Interior(*(value + length * change for value, change in pairs))

    def complementarity(self) -> float:
        return float(self.x @ self.z + self.u @ self.y)

    def longest(self, step: "_Interior") -> float:
        """Length of the longest step, at most one, that stays inside."""
        pairs = zip(vars(self).values(), vars(step).values(), strict=True)
        steepest = min(float((dv / v).min()) for v, dv in pairs if v.size)
        return 1.0 if steepest >= -1.0 else -1.0 / steepest


def interior_point(
    matrix: Gram | Metric, h: Vector, bounds: Bounds, *, total: float, constant: float, atol: float
) -> tuple[Vector, Vector]:
    """The minimiser, and the multipliers of x >= 0.

    `total` estimates the sum of the first variables. Stops at an error of `atol`, or of 3 % of the
    minimum plus `constant`.
    """
    point = _first_point(matrix, h, bounds, total)
    for _ in range(_MAX_STEPS):
        product = matrix.product(point.x)
        residual = product + h - point.z - bounds.adjoint(point.y, h.size)
        slack_error = bounds.slack(point.x) - point.u
        complementarity = point.complementarity()
        goal = max(
            atol, RELATIVE_ERROR * (constant + 0.5 * float(point.x @ product) + float(h @ point.x))
        )
        size = max(total, float(point.x.sum()))
        error = max(float(np.abs(residual).max()) * size, float(np.abs(slack_error) @ point.y))
        if complementarity <= goal and error <= goal:
            break
        step = _Newton(matrix, bounds, point, (residual, slack_error))
        predictor = step.towards(-point.x * point.z, -point.u * point.y)
        predicted = point.along(predictor, point.longest(predictor)).complementarity()
        centre = (predicted / complementarity) ** 3 * complementarity / (h.size + point.u.size)
        corrector = step.towards(
            centre - point.x * point.z - predictor.x * predictor.z,
            centre - point.u * point.y - predictor.u * predictor.y,
        )
        length = point.longest(corrector)
        length = 1.0 if length == 1.0 else _BOUNDARY_SHARE * length
        if not length > 1e-12:
            break
        point = point.along(corrector, length)
    return point.x, point.z


def _first_point(matrix: Gram | Metric, h: Vector, bounds: Bounds, total: float) -> _Interior:
    x = np.full(h.size, total / bounds.n_first)
    if bounds.upper is not None:
        x[bounds.n_first :] = 0.5 * bounds.upper
    size = max(float(np.abs(matrix.product(x) + h).max()), 1e-300)
    u = bounds.slack(x)
    on_first, on_others = bounds.split(u)
    floor = np.concatenate([np.full(on_first.size, 0.1 * total / bounds.n_first), 0.1 * on_others])
    return _Interior(x, np.full(h.size, size), np.maximum(u, floor), np.full(u.size, 0.1 * size))


class _Newton:
    """The Newton equations at a point, factored."""

    def __init__(
        self, matrix: Gram | Metric, bounds: Bounds, point: _Interior, errors: tuple[Vector, Vector]
    ) -> None:
        self._bounds, self._point, self._errors = bounds, point, errors
        theta = point.z / point.x
        on_first, on_others = bounds.split(point.y / point.u)
        theta[: on_first.size] += on_first
        if bounds.upper is not None:
            theta[bounds.n_first :] += on_others
        self._solve = matrix.plus_diagonal(theta)
        if bounds.shares is not None:
            self._solve = _with_shares(self._solve, bounds.shares, on_first, theta.size)

    def towards(self, target_x: Vector, target_u: Vector) -> _Interior:
        """The step that changes x z and u y by the targets, to first order."""
        point, (residual, slack_error) = self._point, self._errors
        on_bounds = (target_u - point.y * slack_error) / point.u
        from_bounds = self._bounds.adjoint(on_bounds, point.x.size)
        dx = self._solve(-residual + target_x / point.x + from_bounds)
        du = self._bounds.slack(dx, 0.0) + slack_error
        dz, dy = (target_x - point.z * dx) / point.x, (target_u - point.y * du) / point.u
        return _Interior(dx, dz, du, dy)


def pivoting(
    matrix: Gram, h: Vector, guess: Mask, *, total: float, constant: float, atol: float
) -> tuple[Vector, Mask] | None:
    """The minimiser without upper bounds, from a good guess at the variables that are not zero, and
    which these are; None where the method does not converge.

    Block pivoting: solve for the guess, then exchange all variables of the wrong sign. Cost: a few
    factorisations of the matrix of the non-zero variables.
    """
    active = guess.copy()
    fewest, patience = h.size + 1, _PATIENCE
    while True:
        index = np.flatnonzero(active)
        among = matrix.among(index)
        among[np.diag_indices(index.size)] *= 1.0 + _RIDGE
        try:
            factor = cho_factor(among, lower=True, check_finite=False)
        except LinAlgError:
            return None
        x = np.zeros(h.size)
        x[index] = cho_solve(factor, -h[index], check_finite=False)
        if not np.isfinite(float(x.min())):
            return None
        feasible = np.maximum(x, 0.0)
        product = matrix.product(feasible)
        slope = product + h
        goal = max(
            atol,
            RELATIVE_ERROR * (constant + 0.5 * float(feasible @ product) + float(h @ feasible)),
        )
        error = -max(total, float(feasible.sum())) * min(float(slope.min()), 0.0)
        if error <= goal and abs(float(feasible @ slope)) <= goal:
            return feasible, active
        # The signs are those of this solution: at `feasible`, the exchanges may repeat for ever.
        wrong = (active & (x < 0.0)) | (~active & (matrix.product(x) + h < 0.0))
        count = int(np.count_nonzero(wrong))
        patience = _PATIENCE if count < fewest else patience - 1
        if count == 0 or patience == 0:
            return None
        fewest = min(fewest, count)
        active ^= wrong


def _with_shares(solve: Solve, shares: Vector, ratio: Vector, n: int) -> Solve:
    """Solution with the off-diagonal part of the bounds by shares added: of rank two, by the
    Woodbury identity.
    """
    weighted = shares * ratio
    U = np.zeros((n, 2))
    U[: shares.size, 0] = 1.0
    U[: shares.size, 1] = weighted
    inside = np.linalg.inv(np.array([[float(shares @ weighted), -1.0], [-1.0, 0.0]]))
    solved = solve(U)
    small = inside + U.T @ solved

    def corrected(r: Vector) -> Vector:
        first = solve(r)
        return first - solved @ np.linalg.solve(small, U.T @ first)

    return corrected
