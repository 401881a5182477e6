"""Bundle (cutting-plane) method for F(X w) + alpha/2 ||w||^2 with an F that is not smooth.

F is convex, so its linearisation at any scores c, with gradient g, bounds it from below by a plane
in w:

    F(X w) >= <a, w> + b,    a = X^T g,    b = F(c) - <g, c>            (maths/solvers.md, eq. 5)

The maximum of the planes is a model of F. Its minimiser with the penalty comes from the dual, a
small quadratic programme over the weights of the planes, whose value is a lower bound on the
minimum: the certificate is the gap between the best objective and that bound, relative to the
former. The best point moves by a line search towards the minimiser of the model (Franc and
Sonnenburg, 2008), and the next plane is taken a little beyond it.

Cutting planes alone are many when alpha is small. Where the objective has a smoothed version (the
hinge), Newton's method on that comes first, with the smoothing reduced in a few stages. The
gradient of the smoothed objective at its solution, a convex combination of subgradients over many
pairs, is a plane that often closes the gap (maths/solvers.md, eq. 7).
"""

from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular

from forerank._typing import Vector
from forerank.design import Design
from forerank.objectives.base import Linearization, Objective, Smoothable
from forerank.solvers.base import EVERY_COLUMN_PENALISED, SUBGRADIENT, solver
from forerank.solvers.newton import newton
from forerank.solvers.result import Progress, SolverResult, relative_gap
from forerank.solvers.units import column_units

__all__ = ["bundle"]

# Width of the smoothed hinge at first, in units of the margin, and its factor from stage to stage.
_FIRST_WIDTH = 0.1
_WIDTH_FACTOR = 0.1
# Relative gradient norm to which each stage is solved, and most Newton iterations of a stage; the
# cutting planes correct the rest.
_SMOOTHED_TOL = 1e-2
_SMOOTHED_ITERATIONS = 50
# Position of the next plane between the best point (0) and the minimiser of the model (1).
_PLANE_POSITION = 0.1
# Iterations without a weight after which a plane is dropped.
_UNUSED_ITERATIONS = 20
# Most exchanges of planes in the quadratic programme, which needs about one per plane in use.
_MAX_EXCHANGES = 1000
# Relative length of a plane outside the span of the others that counts as rounding error.
_ROUNDING = 1e-14


def _simplex_program(planes: Vector, offsets: Vector, beta: Vector, tol: float) -> None:
    """Maximise <offsets, beta> - 1/2 ||beta planes||^2 over the simplex, in place, to within tol.

    An active-set method: the maximum over the planes with a weight, then the plane of the steepest
    slope joins them. Least squares on the planes, not on their inner products, which a column a
    million times as large as the others would dominate. A ridge below the tolerance makes the
    maximum unique.
    """
    ridge = float(np.sqrt(0.5 * tol))
    support = np.flatnonzero(beta > 0.0).tolist()
    joined = -1
    for _ in range(_MAX_EXCHANGES):
        here, best = beta[support], _best_on_plane(planes[support], offsets[support], ridge)
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
        beta[support] = best / best.sum()
        slope = offsets - planes @ (beta @ planes) - ridge**2 * beta
        joined = int(np.argmax(slope))
        if slope[joined] - slope @ beta <= 0.5 * tol or joined in support:
            break
        support.append(joined)


def _best_on_plane(planes: Vector, offsets: Vector, ridge: float) -> Vector:
    """Weights x of any sign, with sum one, that maximise
    <offsets, x> - 1/2 ||x planes||^2 - 1/2 ridge^2 ||x||^2.
    """
    n = offsets.size
    if n == 1:
        return np.ones(1)
    extended = np.column_stack([planes, ridge * np.eye(n)])
    first, differences = extended[0], (extended[1:] - extended[0]).T
    Q, R = qr(differences, mode="economic", check_finite=False)
    slope = solve_triangular(R, offsets[1:] - offsets[0], trans="T", check_finite=False)
    others = solve_triangular(R, slope - first @ Q, check_finite=False)
    return np.concatenate([[1.0 - others.sum()], others])


class _Model:
    """The planes, and the minimum of their maximum plus the penalty.

    Planes are stored as coordinates in an orthonormal basis of their span, divided by sqrt(alpha).
    """

    def __init__(self, alpha: float, n_columns: int) -> None:
        self._scale = float(np.sqrt(alpha))
        self._basis = np.empty((0, n_columns))
        # The plane of zeros is valid, since F is not negative.
        self._coordinates = np.empty((1, 0))
        self._offsets = np.zeros(1)
        self._beta = np.ones(1)
        self._unused = np.zeros(1, dtype=np.int64)

    def add(self, plane: Vector, offset: float) -> None:
        rest = plane / self._scale
        size = float(np.linalg.norm(rest))
        coordinates = np.zeros(self._basis.shape[0])
        for _ in range(2):  # the second pass removes the rounding error of the first
            along = self._basis @ rest
            rest = rest - along @ self._basis
            coordinates += along
        left = float(np.linalg.norm(rest))
        if left > _ROUNDING * size:
            self._basis = np.vstack([self._basis, rest / left])
            self._coordinates = np.column_stack([self._coordinates, np.zeros(self._offsets.size)])
            coordinates = np.append(coordinates, left)
        self._coordinates = np.vstack([self._coordinates, coordinates])
        self._offsets = np.append(self._offsets, offset)
        self._beta = np.append(self._beta, 0.0)
        self._unused = np.append(self._unused, 0)

    def minimum(self, tol: float) -> tuple[Vector, float]:
        """The minimiser w of the model, and a lower bound on the minimum of the objective."""
        _simplex_program(self._coordinates, self._offsets, self._beta, tol)
        mean = self._beta @ self._coordinates
        bound = float(self._offsets @ self._beta) - 0.5 * float(mean @ mean)
        w = -(mean @ self._basis) / self._scale
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
            self._basis, self._coordinates = Q.T @ self._basis, R.T


@solver("bundle", SUBGRADIENT, EVERY_COLUMN_PENALISED)
def bundle(
    objective: Objective,
    design: Design,
    alpha: float,
    *,
    start: Vector | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    progress: Progress | None = None,
) -> SolverResult:
    """Minimise F(X w) + alpha/2 ||w||^2 for a convex, non-negative F, smooth or not.

    `start` is a warm start. `tol` is the relative duality gap. Cost of an iteration: one product
    with X, one with X^T, a few evaluations of F, and a quadratic programme in the planes. Where the
    objective has a method `smoothed`, Newton's method on the smoothed objective gives the start and
    a first plane.
    """
    if not alpha > 0.0:
        raise ValueError(f"bundle needs alpha > 0 for its dual bound; got alpha={alpha!r}.")
    progress = progress or Progress()
    model = _Model(alpha, design.n_columns)
    if isinstance(objective, Smoothable):
        w, plane = _smoothed_start(objective, design, alpha, start, tol, max_iter, progress)
        model.add(*plane)
    else:
        w = np.zeros(design.n_columns) if start is None else start
    s = design.scores(w)
    here = objective.at(s)
    value = here.value + 0.5 * alpha * float(w @ w)
    model.add(*_plane(here, s, design))
    bound = 0.0
    n_iter = 0
    while True:
        n_iter += 1
        target, lower = model.minimum(0.1 * tol * value)
        bound = max(bound, lower)
        gap = relative_gap(value, bound)
        progress.record(w, design.n_rows, value, gap)
        if gap <= tol or n_iter == max_iter:
            break
        p, q = target - w, design.scores(target) - s
        step = _line_search(objective, s, q, w, p, alpha)
        w, s = w + step * p, s + step * q
        here = objective.at(s)
        value = here.value + 0.5 * alpha * float(w @ w)
        beyond = s + _PLANE_POSITION * (1.0 - step) * q
        model.add(*_plane(objective.at(beyond), beyond, design))
    return SolverResult(w, s, value, gap, n_iter, gap <= tol, progress.history)


def _smoothed_start(
    objective: Smoothable,
    design: Design,
    alpha: float,
    w: Vector | None,
    tol: float,
    max_iter: int,
    progress: Progress,
) -> tuple[Vector, tuple[Vector, float]]:
    """Weights near the solution, and the plane that the smoothed objective has there."""
    width, last_width = _FIRST_WIDTH, 0.5 * tol
    # Few pairs of a sample are within a narrow width of the margin; a wide one estimates the same
    # curvature with less noise.
    common: dict[str, Any] = {
        "max_iter": min(max_iter, _SMOOTHED_ITERATIONS),
        "progress": progress,
        "curvature_from": objective.smoothed(_FIRST_WIDTH),
        "units": column_units(objective, design),
    }
    while width > 2.0 * last_width:
        w = newton(objective.smoothed(width), design, alpha, start=w, tol=_SMOOTHED_TOL, **common).w
        width *= _WIDTH_FACTOR
    # The gap is at most half the last width, plus the squared gradient norm over 2 alpha: a quarter
    # of the tolerance each, at the present level of the objective.
    narrow = objective.smoothed(last_width)
    w = np.zeros(design.n_columns) if w is None else w
    level = objective.at(design.scores(w)).value + 0.5 * alpha * float(w @ w)
    goal = float(np.sqrt(0.5 * alpha * tol * level))
    result = newton(narrow, design, alpha, start=w, tol=0.0, gradient_norm=goal, **common)
    s = design.scores(result.w)
    return result.w, _plane(narrow.at(s), s, design)


def _plane(there: Linearization, c: Vector, design: Design) -> tuple[Vector, float]:
    return design.adjoint(there.gradient), there.value - float(there.gradient @ c)


def _line_search(
    objective: Objective, s: Vector, q: Vector, w: Vector, p: Vector, alpha: float
) -> float:
    """A minimiser over step >= 0 of the objective along q, to within a tenth; on scores alone."""
    linear, quadratic = alpha * float(w @ p), alpha * float(p @ p)

    def slope(step: float) -> float:
        return float(objective.at(s + step * q).gradient @ q) + linear + step * quadratic

    low, high = 0.0, 1.0
    slope_low = slope(low)
    if slope_low >= 0.0:
        return 0.0
    slope_high = slope(high)
    while slope_high < 0.0 and high < 1e3:
        low, slope_low, high = high, slope_high, 2.0 * high
        slope_high = slope(high)
    for _ in range(20):
        if high - low <= 0.1 * high:
            break
        # Regula falsi, at least a tenth from either end so that the bracket shrinks.
        guess = low - slope_low * (high - low) / (slope_high - slope_low)
        guess = min(max(guess, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        slope_guess = slope(guess)
        if slope_guess < 0.0:
            low, slope_low = guess, slope_guess
        else:
            high, slope_high = guess, slope_guess
    return low if low > 0.0 else high
