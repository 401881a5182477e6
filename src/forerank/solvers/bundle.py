"""A bundle (cutting-plane) method with line search, for objectives with kinks: F(X w) + alpha/2 ||w||^2.

F is convex, so its linearisation at any scores c, with gradient g, bounds it from below by a plane
in w:

    F(X w) >= <a, w> + b,    a = X^T g,    b = F(c) - <g, c>
    (maths/solvers.md, eq. 5)

The maximum of the planes collected so far is a model of F. Its minimiser with the penalty is found
from the dual, a small quadratic programme over the weights of the planes, whose value is a lower
bound on the minimum: the certificate is the gap between the best objective seen and that bound,
relative to the former. The best point moves by a line search towards the model's minimiser (after
Franc and Sonnenburg, 2008), which keeps the objective falling, and the next plane is cut a little
beyond it.

A cutting-plane method alone needs many planes when alpha is small. Where the objective has a
smoothed version (the hinge), Newton's method on that, with the smoothing taken back in a few
strides, comes first. It ends close to the solution, and the gradient of the smoothed objective
there, a convex combination of subgradients over very many pairs, is one plane that often closes the
gap by itself (maths/solvers.md, eq. 7).
"""

from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular

from forerank._typing import Vector
from forerank.design import Design
from forerank.objectives.base import Linearization, Objective, Smoothable
from forerank.solvers.newton import newton
from forerank.solvers.result import Progress, SolverResult, relative_gap
from forerank.solvers.units import column_units

__all__ = ["bundle"]


# The smoothing begins at this width and is taken back by this factor at a time; each width is
# solved to this relative gradient norm, and none with more than this many steps: what is missing
# then is left to the cutting planes.
_FIRST_WIDTH = 0.1
_STRIDE = 0.1
_ROUGH = 1e-2
_SMOOTH_STEPS = 50
# The next plane is cut this far from the best point towards the model's minimiser.
_CUT_BEYOND = 0.1
# A plane that has had no weight for this many steps is dropped.
_IDLE_STEPS = 20
# Exchanges of planes in the quadratic programme at most; it needs about as many as there are planes
# with a weight.
_MAX_EXCHANGES = 1000
# A plane whose share outside of the others is smaller than this lies in what they span.
_ROUNDING = 1e-14


def _simplex_program(planes: Vector, offsets: Vector, beta: Vector, tol: float) -> None:
    """Maximise <offsets, beta> - 1/2 ||beta planes||^2 over the simplex, in place and to within tol.

    An active-set method: the maximum over the planes with a weight, then the plane of the steepest
    slope joins them. Least squares on the planes themselves, not on their products: where a column
    is a million times as large as the others, products of planes hold nothing else. A ridge below
    the tolerance makes the maximum unique.
    """
    ridge = float(np.sqrt(0.5 * tol))
    support = np.flatnonzero(beta > 0.0).tolist()
    joined = -1
    for _ in range(_MAX_EXCHANGES):
        here, best = beta[support], _best_on_plane(planes[support], offsets[support], ridge)
        if best.min() < 0.0:
            # Towards the maximum until the first weight vanishes; its plane leaves.
            falling = np.flatnonzero(best < 0.0)
            shares = here[falling] / (here[falling] - best[falling])
            leaves = int(falling[np.argmin(shares)])
            if support[leaves] == joined:  # rounding: no plane is left that would gain anything
                break
            here = np.maximum(here + shares.min() * (best - here), 0.0)
            here[leaves] = 0.0
            beta[support] = here / here.sum()
            support.pop(leaves)
            continue
        beta[support] = best / best.sum()
        slope = offsets - planes @ (beta @ planes) - ridge**2 * beta
        joined = int(np.argmax(slope))
        if slope[joined] - slope @ beta <= 0.5 * tol or joined in support:
            break
        support.append(joined)


def _best_on_plane(planes: Vector, offsets: Vector, ridge: float) -> Vector:
    """Weights of any sign that sum to one and maximise <offsets, x> - 1/2 ||x planes||^2 - 1/2
    ridge^2 ||x||^2.
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
    """The planes collected so far, and the minimum of their maximum plus the penalty.

    Planes are kept as `coordinates` in an orthonormal `basis` of what they span, divided by
    sqrt(alpha).
    """

    def __init__(self, alpha: float, n_columns: int) -> None:
        self._scale = float(np.sqrt(alpha))
        self._basis = np.empty((0, n_columns))
        # F is non-negative: the plane of zeros is valid from the beginning.
        self._coordinates = np.empty((1, 0))
        self._offsets = np.zeros(1)
        self._beta = np.ones(1)
        self._idle = np.zeros(1, dtype=np.int64)

    def add(self, plane: Vector, offset: float) -> None:
        rest = plane / self._scale
        size = float(np.linalg.norm(rest))
        coordinates = np.zeros(self._basis.shape[0])
        for _ in range(2):  # the second pass removes what the rounding of the first has left
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
        self._idle = np.append(self._idle, 0)

    def minimum(self, tol: float) -> tuple[Vector, float]:
        """The minimiser w of the model, and a lower bound on the minimum of the objective."""
        _simplex_program(self._coordinates, self._offsets, self._beta, tol)
        mean = self._beta @ self._coordinates
        bound = float(self._offsets @ self._beta) - 0.5 * float(mean @ mean)
        w = -(mean @ self._basis) / self._scale
        self._drop_idle()
        return w, bound

    def _drop_idle(self) -> None:
        self._idle = np.where(self._beta > 0.0, 0, self._idle + 1)
        keep = self._idle <= _IDLE_STEPS
        keep[0] = True
        if keep.all():
            return
        self._offsets, self._beta, self._idle = (
            self._offsets[keep],
            self._beta[keep],
            self._idle[keep],
        )
        self._coordinates = self._coordinates[keep]
        if (
            self._basis.shape[0] > 2 * self._offsets.size
        ):  # most of the basis belongs to planes that are gone
            Q, R = qr(self._coordinates.T, mode="economic", check_finite=False)
            self._basis, self._coordinates = Q.T @ self._basis, R.T


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
    """Minimise F(X w) + alpha/2 ||w||^2 for a convex, non-negative F that may have kinks.

    `start` is a warm start. `tol` is the relative duality gap. Cost of a step: one product with X,
    one with X^T, a few evaluations of F, and a quadratic programme in the planes. Where the
    objective has a method `smoothed`, Newton's method on the smoothed objective provides the start
    and a first plane.
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
        cut = s + _CUT_BEYOND * (1.0 - step) * q
        model.add(*_plane(objective.at(cut), cut, design))
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
    penalty = np.full(design.n_columns, alpha)
    width, last_width = _FIRST_WIDTH, 0.5 * tol
    # Few pairs of a sample lie within a narrow width of the margin; a wide one shows the same
    # curvature, less noisily.
    common: dict[str, Any] = {
        "max_iter": min(max_iter, _SMOOTH_STEPS),
        "progress": progress,
        "curvature_from": objective.smoothed(_FIRST_WIDTH),
        "units": column_units(objective, design),
    }
    while width > 2.0 * last_width:
        w = newton(objective.smoothed(width), design, penalty, start=w, tol=_ROUGH, **common).w
        width *= _STRIDE
    # The last width costs at most half of it in the gap, the last gradient its square over 2 alpha:
    # a quarter of the tolerance each, as far as the level of the objective can be told beforehand.
    narrow = objective.smoothed(last_width)
    w = np.zeros(design.n_columns) if w is None else w
    level = objective.at(design.scores(w)).value + 0.5 * alpha * float(w @ w)
    goal = float(np.sqrt(0.5 * alpha * tol * level))
    result = newton(narrow, design, penalty, start=w, tol=0.0, gradient_norm=goal, **common)
    s = design.scores(result.w)
    return result.w, _plane(narrow.at(s), s, design)


def _plane(there: Linearization, c: Vector, design: Design) -> tuple[Vector, float]:
    return design.adjoint(there.gradient), there.value - float(there.gradient @ c)


def _line_search(
    objective: Objective, s: Vector, q: Vector, w: Vector, p: Vector, alpha: float
) -> float:
    """A minimiser over step >= 0 of the objective along the line, to a tenth of the way; on scores
    alone.
    """
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
        # Regula falsi, kept off the ends so that the bracket shrinks.
        guess = low - slope_low * (high - low) / (slope_high - slope_low)
        guess = min(max(guess, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        slope_guess = slope(guess)
        if slope_guess < 0.0:
            low, slope_low = guess, slope_guess
        else:
            high, slope_high = guess, slope_guess
    return low if low > 0.0 else high
