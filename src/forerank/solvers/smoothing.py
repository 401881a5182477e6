"""Newton's method on a smoothed objective, whose smoothing is reduced in stages.

The hinge is replaced by one whose kink is a parabola of some width. Its slopes a_m at any scores,
between 0 and 1 for each pair (or row) m, give a plane below the hinge itself,

    sum_m p_m a_m (1 - t_m),    t_m the margins                                (maths/solvers.md, 7)

so that a lower bound on the minimum comes with every stage. The error of a stage has two parts: the
pairs within the width of the margin, whose number falls with the width, and the gradient that is
left. A stage ends when the second is a small part of the gap; the next has a width that is chosen
by the gap. The best weights are searched for along the ray of a stage's weights, and along their
extrapolation from two stages to a width of zero.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, qr

from forerank._typing import Vector
from forerank.design import Design
from forerank.objectives.base import Curved
from forerank.solvers.cutting_planes import CuttingPlanes
from forerank.solvers.hessian import Preconditioner, hessian_is_small
from forerank.solvers.newton import _line_search, _start_from_sample, newton_iterations
from forerank.solvers.problem import Problem
from forerank.solvers.result import Progress, relative_gap
from forerank.solvers.units import column_units

__all__ = ["BestPoint", "smoothed_newton"]

# Width of the first stage, in units of the margin: at zero weights all pairs are well within it.
# With a warm start, most pairs keep their place, and a smaller width is enough.
_FIRST_WIDTH = 4.0
_WARM_WIDTH = 1.0
# Bounds on the factor of the width from stage to stage, and the width below which differences of
# scores are rounding error.
_WIDTH_FACTORS = (0.1, 0.5)
_LEAST_WIDTH = 1e-9
# Error from the gradient at the end of a stage, as a share of the gap before it and of the
# tolerance, whichever is larger.
_SHARE_OF_GAP = 0.02
_SHARE_OF_TOL = 0.25
# Most evaluations of the objective in the search for the best multiple of the weights.
_MOST_TRIALS = 30
# Newton iterations by conjugate gradients with one preconditioner; afterwards the equations are
# solved directly if that takes at most so many multiplications and a copy of so many numbers, and
# the preconditioner is renewed otherwise.
_CG_ITERATIONS = 5
_DIRECT_WORK = 4 * 10**9
_DIRECT_COPY = 10**7


@dataclass
class BestPoint:
    """Weights with their scores and objective, a lower bound on the minimum, and iterations."""

    w: Vector
    s: Vector
    value: float
    bound: float = 0.0
    n_iter: int = 0

    @property
    def gap(self) -> float:
        """The relative duality gap."""
        return relative_gap(self.value, self.bound)


def smoothed_newton(
    objective: Any,
    design: Design,
    alpha: float,
    planes: CuttingPlanes,
    *,
    start: Vector | None,
    tol: float,
    max_iter: int,
    progress: Progress,
) -> BestPoint:
    """A point near the minimum of F(X w) + alpha/2 ||w||^2, by Newton's method on smoothed F.

    The planes of the stages are added to `planes`. Stops at a relative duality gap of `tol`, after
    `max_iter` Newton iterations, or where the smoothed objective decreases no more. Cost of an
    iteration: as in `newton`.
    """
    newton = _StageSolver(objective, design, alpha, progress)
    w = newton.start_from_sample(_WARM_WIDTH, max_iter) if start is None else start
    width = _WARM_WIDTH if w.any() else _FIRST_WIDTH
    s = design.scores(w)
    best = BestPoint(w, s, objective.at(s).value + 0.5 * alpha * float(w @ w))
    del s
    before: _Stage | None = None
    while True:
        error = max(_SHARE_OF_GAP * best.gap, _SHARE_OF_TOL * tol) * best.value
        w, n_iter = newton.solve(width, w, np.sqrt(2.0 * alpha * error), max_iter - best.n_iter)
        best.n_iter += n_iter
        stage = _Stage(width, w, design.scores(w))
        error = _bound(objective, design, alpha, planes, best, stage, tol)
        multiple = _improve(objective, alpha, best, stage, before, 0.05 * tol)
        if best.gap <= tol or best.n_iter >= max_iter:
            return best
        if error > 0.5 * best.gap * best.value:
            if n_iter == 0:  # rounding error
                return best
            continue  # the gradient is most of the gap: the same stage again, more accurately
        least, most = _WIDTH_FACTORS
        width *= min(max(float(np.sqrt(0.5 * tol / best.gap)), least), most)
        if width < _LEAST_WIDTH:
            return best
        w, before = multiple * w, stage


@dataclass(frozen=True)
class _Stage:
    """The result of a stage."""

    width: float
    w: Vector
    s: Vector


def _bound(
    objective: Any,
    design: Design,
    alpha: float,
    planes: CuttingPlanes,
    best: BestPoint,
    stage: _Stage,
    tol: float,
) -> float:
    """Add the plane of a stage and raise the lower bound; the part of the gap from the gradient."""
    there = objective.smoothed(stage.width).at(stage.s)
    gradient = design.adjoint(there.gradient)
    planes.add(gradient, there.total_slope())
    best.bound = max(best.bound, planes.minimum(0.1 * tol * best.value)[1])
    residual = gradient + alpha * stage.w
    return float(residual @ residual) / (2.0 * alpha)


def _improve(
    objective: Any,
    alpha: float,
    best: BestPoint,
    stage: _Stage,
    before: _Stage | None,
    accuracy: float,
) -> float:
    """Improve the best point by two searches from the result of a stage; the best multiple of that.

    Where the classes are separated, smoothing moves all margins beyond one by the same factor: a
    multiple of the weights has the right margins. Elsewhere the distance of a support pair from its
    margin is about proportional to the width: the results of two stages are extrapolated to zero.
    """
    step, value = _search(objective, stage, (-stage.w, -stage.s), 1.0, alpha, accuracy)
    multiple = 1.0 - step
    if value < best.value:
        best.w, best.s, best.value = multiple * stage.w, multiple * stage.s, value
    if before is not None:
        p, q = stage.w - before.w, stage.s - before.s
        longest = 2.0 * stage.width / (before.width - stage.width)
        step, value = _search(objective, stage, (p, q), longest, alpha, accuracy)
        if value < best.value:
            best.w, best.s, best.value = stage.w + step * p, stage.s + step * q, value
    return multiple


def _search(
    objective: Any,
    stage: _Stage,
    direction: tuple[Vector, Vector],
    longest: float,
    alpha: float,
    accuracy: float,
) -> tuple[float, float]:
    """The step up to `longest` along a direction, of weights and scores, with the least objective,
    and that, to a relative accuracy.
    """
    w, s, (p, q) = stage.w, stage.s, direction
    constant, linear, quadratic = (alpha * float(a @ b) for a, b in ((w, w), (w, p), (p, p)))

    def at(t: float) -> tuple[float, float]:
        there = objective.at(s + t * q)
        value = there.value + 0.5 * constant + t * (linear + 0.5 * t * quadratic)
        return value, float(there.gradient @ q) + linear + t * quadratic

    best, (value, slope) = 0.0, at(0.0)
    low, slope_low, high, slope_high = 0.0, slope, longest, np.inf
    for _ in range(_MOST_TRIALS):
        # The objective is convex: it lies above its tangents.
        if min(-slope_low, slope_high) * (high - low) <= accuracy * value:
            break
        t = 0.5 * (low + high)
        if np.isfinite(slope_high):
            t = low - slope_low * (high - low) / (slope_high - slope_low)
            t = min(max(t, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        new_value, slope = at(t)
        if new_value < value:
            best, value = t, new_value
        if slope < 0.0:
            low, slope_low = t, slope
        else:
            high, slope_high = t, slope
    return best, value


class _StageSolver:
    """Newton's method for one width after the other.

    By conjugate gradients; where these take many iterations, and the matrix is of moderate size,
    the equations are solved directly.
    """

    def __init__(self, objective: Any, design: Design, alpha: float, progress: Progress) -> None:
        self._objective, self._design = objective, design
        self._alpha, self._progress = alpha, progress
        self._units = column_units(objective, design)
        self._precondition: Preconditioner | None = None
        self._width = np.inf
        self._reference: float | None = None
        self._may_be_direct = _is_affordable(design)
        self._direct: _DirectNewton | None = None

    def _problem(self, width: float, max_iter: int) -> Problem:
        problem = Problem.of(self._objective.smoothed(width), self._units, max_iter)
        return problem.penalised(self._alpha, self._progress)

    def start_from_sample(self, width: float, max_iter: int) -> Vector:
        """The minimiser over a sample of the rows, or zero for few rows."""
        problem = self._problem(width, max_iter)
        w, _ = _start_from_sample(problem, 0.0)
        return self._units.weights_of_columns(w)

    def solve(self, width: float, w: Vector, goal: float, max_iter: int) -> tuple[Vector, int]:
        """The minimiser at a width, to a gradient norm of `goal`, and the number of iterations."""
        smooth = self._objective.smoothed(width)
        if self._direct is not None:
            return self._direct.solve(smooth, w, goal, max_iter)
        if width != self._width:
            self._width, self._precondition = width, None
        n_iter = 0
        while True:
            problem = self._problem(width, min(_CG_ITERATIONS, max_iter - n_iter))
            if self._reference is None:
                self._reference = problem.reference_norm()
            result, self._precondition = newton_iterations(
                problem,
                self._units.to_standardised(w),
                0.0,
                self._precondition,
                goal,
                reference=self._reference,
            )
            w, n_iter = self._units.weights_of_columns(result.w), n_iter + result.n_iter
            if result.converged or result.n_iter < problem.max_iter or n_iter >= max_iter:
                return w, n_iter
            self._precondition = None  # that of weights too far away
            if self._may_be_direct:
                break
        self._direct = _DirectNewton(
            self._design, self._alpha, self._objective.shift_invariant, self._progress
        )
        w, n_direct = self._direct.solve(smooth, w, goal, max_iter - n_iter)
        return w, n_iter + n_direct


def _is_affordable(design: Design) -> bool:
    n, d = design.n_rows, design.n_columns
    work = n * min(n, d) ** 2
    return work <= _DIRECT_WORK and n * d <= _DIRECT_COPY and not hessian_is_small(design)


class _DirectNewton:
    """Newton's method with a Cholesky factor of the Hessian.

    Where there are fewer rows than columns, the weights are combinations of the rows, and the
    problem is that of the square matrix R^T with X = R^T Q^T.
    """

    def __init__(
        self, design: Design, alpha: float, shift_invariant: bool, progress: Progress
    ) -> None:
        X = design.columns(0, design.n_columns)
        if shift_invariant:
            X = X - X.mean(axis=0)
        self._basis: Vector | None = None
        if design.n_columns > design.n_rows:
            self._basis, R = qr(X.T, mode="economic", check_finite=False)
            X = np.ascontiguousarray(R.T)
        self._X, self._alpha, self._progress = X, alpha, progress

    def solve(self, smooth: Any, w: Vector, goal: float, max_iter: int) -> tuple[Vector, int]:
        """The minimiser to a gradient norm of `goal`, and the number of iterations."""
        X, alpha, basis = self._X, self._alpha, self._basis
        v = w if basis is None else basis.T @ w
        penalty = np.full(v.size, alpha)
        s = X @ v
        here = smooth.at(s)
        for iteration in range(max_iter + 1):
            gradient = X.T @ here.gradient + alpha * v
            value = here.value + 0.5 * alpha * float(v @ v)
            w = v if basis is None else basis @ v
            norm = float(np.linalg.norm(gradient))
            self._progress.record(w, X.shape[0], value, norm)
            if norm <= goal or iteration == max_iter:
                break
            p = self._direction(here, gradient)
            q = X @ p
            step, here = _line_search(smooth, s, q, v, p, penalty, value, float(gradient @ p))
            if step == 0.0:
                break
            v, s = v + step * p, s + step * q
        return w, iteration

    def _direction(self, here: Curved, gradient: Vector) -> Vector:
        hessian = self._X.T @ here.curvature_matrix(self._X)
        diagonal = np.diag_indices_from(hessian)
        hessian[diagonal] += self._alpha
        try:
            factor = cho_factor(hessian, check_finite=False)
        except LinAlgError:  # curvature beyond the precision of its sums
            hessian[diagonal] += 1e-12 * hessian[diagonal].max()
            factor = cho_factor(hessian, check_finite=False)
        return -cho_solve(factor, gradient, check_finite=False)
