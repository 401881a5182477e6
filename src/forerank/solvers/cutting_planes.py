"""Cutting planes: the model of a convex objective as the maximum of planes below it.

The minimiser of the model plus the penalty comes from the dual, a small quadratic programme over
the weights of the planes, whose value is a lower bound on the minimum of the objective
(maths/solvers.md, eq. 6).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular

from forerank._typing import Vector

__all__ = ["CuttingPlanes"]

# Iterations without a weight after which a plane is dropped.
_UNUSED_ITERATIONS = 20
# Most exchanges of planes in the quadratic programme, which needs about one per plane in use.
_MAX_EXCHANGES = 1000
# Relative length of a plane outside the span of the others that counts as rounding error.
_ROUNDING = 1e-14
# The same length from which the rounding error of a projection, 1e-16 over this, does no harm.
_LARGE_PART = 0.1
# Rows of memory for the basis at first; their number doubles.
_FIRST_ROWS = 16


def _simplex_program(planes: Vector, offsets: Vector, beta: Vector, tol: float) -> Vector:
    """Maximise <offsets, beta> - 1/2 ||beta planes||^2 over the simplex, in place, to within tol.

    Returns the minimiser x of max_k (offsets_k + <planes_k, x>) + 1/2 ||x||^2, which is -beta
    planes. An active-set method: the maximum over the planes with a weight, then the plane of the
    steepest slope joins them. A ridge below the tolerance makes the maximum unique.
    """
    ridge = float(np.sqrt(0.5 * tol))
    support = np.flatnonzero(beta > 0.0).tolist()
    joined = -1
    x = -(beta @ planes)
    for _ in range(_MAX_EXCHANGES):
        here = beta[support]
        best, there = _best_on_plane(planes[support], offsets[support], ridge)
        if best.min() < 0.0:
            # Towards the maximum until the first weight is zero; its plane leaves.
            negative = np.flatnonzero(best < 0.0)
            steps = here[negative] / (here[negative] - best[negative])
            leaving = int(negative[np.argmin(steps)])
            if support[leaving] == joined:  # rounding error: no plane improves the maximum
                break
            here = np.maximum(here + steps.min() * (best - here), 0.0)
            here[leaving] = 0.0
            beta[support] = here / here.sum()
            support.pop(leaving)
            continue
        beta[support], x = best / best.sum(), there
        slope = offsets + planes @ x - ridge**2 * beta
        joined = int(np.argmax(slope))
        if slope[joined] - slope @ beta <= 0.5 * tol or joined in support:
            break
        support.append(joined)
    return x


def _best_on_plane(planes: Vector, offsets: Vector, ridge: float) -> tuple[Vector, Vector]:
    """Weights b of any sign, with sum one, that maximise
    <offsets, b> - 1/2 ||b planes||^2 - 1/2 ridge^2 ||b||^2, and x = -b planes.

    By the factor of the differences of the planes, not by their inner products, which a column a
    million times as large as the others would dominate. x comes from the equations
    offsets_k + <planes_k, x> = constant: with a small penalty the terms of b planes are far larger
    than their sum.
    """
    n, d = planes.shape
    if n == 1:
        return np.ones(1), -planes[0]
    extended = np.column_stack([planes, ridge * np.eye(n)])
    first, differences = extended[0], (extended[1:] - extended[0]).T
    Q, R = qr(differences, mode="economic", check_finite=False)
    inside = solve_triangular(R, offsets[0] - offsets[1:], trans="T", check_finite=False)
    along = first @ Q
    others = solve_triangular(R, -inside - along, check_finite=False)
    outside = first - Q @ along
    outside -= Q @ (outside @ Q)  # removes the rounding error of the first projection
    if float(np.linalg.norm(outside)) <= _ROUNDING * float(np.linalg.norm(first)):
        outside[:] = 0.0
    return np.concatenate([[1.0 - others.sum()], others]), (Q @ inside - outside)[:d]


class CuttingPlanes:
    """Planes below an objective, and the minimum of their maximum plus the penalty.

    Planes are stored as coordinates in an orthonormal basis of their span, divided by sqrt(alpha).
    """

    def __init__(self, alpha: float, n_columns: int) -> None:
        self._scale = float(np.sqrt(alpha))
        # Rows of the basis, and memory for more.
        self._memory = np.empty((_FIRST_ROWS, n_columns))
        self._basis = self._memory[:0]
        # The plane of zeros is valid, since F is not negative.
        self._coordinates = np.empty((1, 0))
        self._offsets = np.zeros(1)
        self._beta = np.ones(1)
        self._unused = np.zeros(1, dtype=np.int64)

    def state(self) -> dict[str, Any]:
        """Arrays that `restore` takes."""
        return {
            "basis": self._basis,
            "coordinates": self._coordinates,
            "offsets": self._offsets,
            "beta": self._beta,
            "unused": self._unused,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take the planes of another model of the same penalty and columns."""
        self._memory, self._coordinates = state["basis"], state["coordinates"]
        self._basis = self._memory[:]
        self._offsets, self._beta, self._unused = state["offsets"], state["beta"], state["unused"]

    def add(self, plane: Vector, offset: float) -> None:
        rest = plane / self._scale
        size = float(np.linalg.norm(rest))
        coordinates = np.zeros(self._basis.shape[0])
        left = 0.0
        for _ in range(2):
            along = self._basis @ rest
            rest = rest - along @ self._basis
            coordinates += along
            left = float(np.linalg.norm(rest))
            if left > _LARGE_PART * size:
                break  # else a second pass removes the rounding error of the first
        if left > _ROUNDING * size:
            self._append(rest / left)
            self._coordinates = np.column_stack([self._coordinates, np.zeros(self._offsets.size)])
            coordinates = np.append(coordinates, left)
        self._coordinates = np.vstack([self._coordinates, coordinates])
        self._offsets = np.append(self._offsets, offset)
        self._beta = np.append(self._beta, 0.0)
        self._unused = np.append(self._unused, 0)

    def _append(self, direction: Vector) -> None:
        n = self._basis.shape[0]
        if n == self._memory.shape[0]:
            self._memory = np.empty((max(2 * n, _FIRST_ROWS), direction.size))
            self._memory[:n] = self._basis
        self._memory[n] = direction
        self._basis = self._memory[: n + 1]

    def minimum(self, tol: float) -> tuple[Vector, float]:
        """The minimiser w of the model, and a lower bound on the minimum of the objective."""
        x = _simplex_program(self._coordinates, self._offsets, self._beta, tol)
        mean = self._beta @ self._coordinates
        bound = float(self._offsets @ self._beta) - 0.5 * float(mean @ mean)
        w = (x @ self._basis) / self._scale
        self._drop_unused()
        return w, bound

    def _drop_unused(self) -> None:
        self._unused = np.where(self._beta > 0.0, 0, self._unused + 1)
        keep = self._unused <= _UNUSED_ITERATIONS
        keep[0] = True
        if keep.all():
            return
        self._offsets, self._beta = self._offsets[keep], self._beta[keep]
        self._unused, self._coordinates = self._unused[keep], self._coordinates[keep]
        if self._basis.shape[0] > 2 * self._offsets.size:  # most of it is for dropped planes
            Q, R = qr(self._coordinates.T, mode="economic", check_finite=False)
            self._memory = self._basis = Q.T @ self._basis
            self._coordinates = R.T
