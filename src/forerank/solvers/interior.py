"""A primal-dual interior-point method for the small quadratic programmes inside the working-set solver.

    min  1/2 ||sum_j x_j a_j||^2_{H^-1} + <h, x>    over  0 <= x_j <= upper_j  and  x_j <= share_j sum_{k < n_shared} x_k

with rows a_j in the columns of A, and H positive definite: the dual of a quadratic model of H under linear constraints,
one variable per constraint (maths/top.md, eq. 4). Predictor and corrector steps after Mehrotra (1992). Every step solves
(A H^-1 A^T + diag) x = r, either as it is or through H + A^T diag^-1 A, whichever is smaller.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

__all__ = ["Gram", "Metric", "interior_point", "pivoting"]

Vector = NDArray[np.float64]
Solve = Callable[[Vector], Vector]

_MAX_STEPS = 80
# The share of the way to the boundary that a step goes.
_SHORT_OF_BOUNDARY = 0.99
# Block pivoting gives up after so many exchanges that do not bring the number of wrong signs down.
_PATIENCE = 3
_RIDGE = 1e-9


class Gram:
    """A H^-1 A^T as a matrix, for few rows."""

    def __init__(self, matrix: Vector) -> None:
        self._matrix = matrix

    def product(self, x: Vector) -> Vector:
        return self._matrix @ x

    def among(self, index: NDArray[np.intp]) -> Vector:
        """The matrix for some of the rows."""
        return self._matrix[np.ix_(index, index)]

    def plus_diagonal(self, theta: Vector) -> Solve:
        """The inverse of this matrix with theta added to its diagonal."""
        shifted = self._matrix.copy()
        shifted[np.diag_indices(theta.size)] += theta
        return _factored(shifted)


class Metric:
    """A H^-1 A^T through H and A, for more rows than columns."""

    def __init__(self, H: Vector, rows: Vector) -> None:
        self._H, self._rows = H, rows
        self._solve = _factored(H.copy())

    def product(self, x: Vector) -> Vector:
        return self._rows @ self._solve(self._rows.T @ x)

    def among(self, index: NDArray[np.intp]) -> Vector:
        """The matrix for some of the rows."""
        rows = self._rows[index]
        return rows @ self._solve(rows.T)

    def plus_diagonal(self, theta: Vector) -> Solve:
        """The inverse of the sum by the Woodbury identity."""
        A = self._rows
        scaled = A / np.sqrt(theta)[:, None]
        inner = _factored(self._H + scaled.T @ scaled)

        def once(r: Vector) -> Vector:
            weighted = (r.T / theta).T
            return ((r - A @ inner(A.T @ weighted)).T / theta).T

        def solve(r: Vector) -> Vector:
            # The difference loses digits where theta is small, at the active constraints; a second pass restores them.
            x = once(r)
            return x + once(r - self.product(x) - (x.T * theta).T)

        return solve


def _factored(matrix: Vector) -> Solve:
    """Cholesky's factors; a matrix that is singular to working precision gets a little more on its diagonal."""
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


def interior_point(
    matrix: Gram | Metric,
    h: Vector,
    *,
    shares: Vector | None,
    upper: Vector | None,
    n_shared: int,
    total: float,
    constant: float,
    atol: float,
    rtol: float = 0.03,
) -> tuple[Vector, Vector]:
    """The minimiser, and the multipliers of x >= 0.

    The first `n_shared` variables are those of the shares; `upper` bounds the others. `total` is about what the shared
    ones will sum to. Stops when what is missing is at most atol, or rtol of the minimum plus `constant`.
    """
    n = h.size
    x = np.empty(n)
    x[:n_shared] = total / max(n_shared, 1)
    if upper is not None:
        x[n_shared:] = 0.5 * upper
    size = max(float(np.abs(matrix.product(x) + h).max()), 1e-300)
    z = np.full(n, size)
    has_shares, has_upper = shares is not None, upper is not None
    # Slacks and multipliers of the upper bounds, those of the shares first.
    n_bounds = (n_shared if has_shares else 0) + (n - n_shared if has_upper else 0)

    def bound(v: Vector, constant: float) -> Vector:
        parts = []
        if shares is not None:
            parts.append(shares * v[:n_shared].sum() - v[:n_shared])
        if upper is not None:
            parts.append(constant * upper - v[n_shared:])
        return np.concatenate(parts) if parts else np.empty(0)

    def bound_adjoint(y: Vector) -> Vector:
        out = np.zeros(n)
        k = 0
        if shares is not None:
            out[:n_shared] = float(shares @ y[:n_shared]) - y[:n_shared]
            k = n_shared
        if upper is not None:
            out[n_shared:] = -y[k:]
        return out

    u = np.maximum(bound(x, 1.0), 0.1 * float(x[:n_shared].mean()) if n_shared else 1.0)
    if has_upper:
        u[n_bounds - (n - n_shared) :] = np.maximum(bound(x, 1.0)[n_bounds - (n - n_shared) :], 0.1 * x[n_shared:])
    y = np.full(n_bounds, 0.1 * size)
    for _ in range(_MAX_STEPS):
        product = matrix.product(x)
        residual = product + h - z - bound_adjoint(y)
        short = bound(x, 1.0) - u
        complementarity = float(x @ z + u @ y)
        goal = max(atol, rtol * (constant + 0.5 * float(x @ product) + float(h @ x)))
        reach = max(total, float(x.sum()))
        if (
            complementarity <= goal
            and float(np.abs(residual).max()) * reach <= goal
            and float(np.abs(short) @ y) <= goal
        ):
            break
        theta = z / x
        ratio = y / u
        k = n_shared if has_shares else 0
        if has_shares:
            theta[:n_shared] += ratio[:k]
        if has_upper:
            theta[n_shared:] += ratio[k:]
        solve = matrix.plus_diagonal(theta)
        if shares is not None:
            solve = _with_shares(solve, shares, ratio[:k], n)

        def step(target_x: Vector, target_u: Vector) -> tuple[Vector, Vector, Vector, Vector]:
            right = -residual + target_x / x + bound_adjoint((target_u - y * short) / u)
            dx = solve(right)
            du = bound(dx, 0.0) + short
            return dx, (target_x - z * dx) / x, du, (target_u - y * du) / u

        dx, dz, du, dy = step(-x * z, -u * y)
        length = min(_longest(x, dx), _longest(z, dz), _longest(u, du), _longest(y, dy))
        predicted = float((x + length * dx) @ (z + length * dz) + (u + length * du) @ (y + length * dy))
        centre = (predicted / complementarity) ** 3 * complementarity / (n + n_bounds)
        dx, dz, du, dy = step(centre - x * z - dx * dz, centre - u * y - du * dy)
        length = min(_longest(x, dx), _longest(z, dz), _longest(u, du), _longest(y, dy))
        length = 1.0 if length == 1.0 else _SHORT_OF_BOUNDARY * length
        if not length > 1e-12:
            break
        x, z, u, y = x + length * dx, z + length * dz, u + length * du, y + length * dy
    return x, z


def pivoting(
    matrix: Gram | Metric,
    h: Vector,
    guess: NDArray[np.bool_],
    *,
    total: float,
    constant: float,
    atol: float,
    rtol: float = 0.03,
) -> tuple[Vector, NDArray[np.bool_]] | None:
    """The same minimiser without upper bounds or shares, from a good guess at the variables that are not zero.

    Block pivoting: solve for the guess, then exchange all variables of the wrong sign. A few factorisations of the
    matrix among the active ones, or None where that does not settle.
    """
    active = guess.copy()
    fewest, patience = h.size + 1, _PATIENCE
    while True:
        index = np.flatnonzero(active)
        among = matrix.among(index)
        # Rows may be there twice; a little on the diagonal lets them share.
        among[np.diag_indices(index.size)] *= 1.0 + _RIDGE
        try:
            factor = cho_factor(among, lower=True, check_finite=False)
        except LinAlgError:
            return None
        x = np.zeros(h.size)
        x[index] = cho_solve(factor, -h[index], check_finite=False)
        lowest = float(x.min())
        if not np.isfinite(lowest):
            return None
        x_feasible = np.maximum(x, 0.0)
        product = matrix.product(x_feasible)
        slope = product + h
        goal = max(atol, rtol * (constant + 0.5 * float(x_feasible @ product) + float(h @ x_feasible)))
        missing = -max(total, float(x_feasible.sum())) * min(float(slope.min()), 0.0)
        if missing <= goal and abs(float(x_feasible @ slope)) <= goal:
            return x_feasible, active
        wrong = (active & (x < 0.0)) | (~active & (slope < 0.0))
        count = int(np.count_nonzero(wrong))
        patience = _PATIENCE if count < fewest else patience - 1
        if count == 0 or patience == 0:
            return None
        fewest = min(fewest, count)
        active ^= wrong


def _longest(v: Vector, dv: Vector) -> float:
    """The longest step up to one that keeps v + step dv non-negative."""
    if v.size == 0:
        return 1.0
    steepest = float((dv / v).min())
    return 1.0 if steepest >= -1.0 else -1.0 / steepest


def _with_shares(solve: Solve, shares: Vector, ratio: Vector, n: int) -> Solve:
    """Add the part of the shares' bounds that is off the diagonal: of rank two, by the Woodbury identity."""
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
