"""Bundle (cutting-plane) method for F(X w) + alpha/2 ||w||^2 with an F that is not smooth.

F is convex, so its linearisation at any scores c, with gradient g, bounds it from below by a plane
in w:

    F(X w) >= <a, w> + b,    a = X^T g,    b = F(c) - <g, c>            (maths/solvers.md, eq. 5)

The maximum of the planes is a model of F. Its minimum with the penalty is a lower bound on that of
the objective (`forerank.solvers.cutting_planes`): the certificate is the gap between the best
objective and that bound, relative to the former. The best point moves by a line search towards the
minimiser of the model (Franc and Sonnenburg, 2008), and the next plane is taken a little beyond it.

Cutting planes alone are many when alpha is small. Where the objective has a smoothed version (the
hinge), Newton's method on that comes first (`forerank.solvers.smoothing`), and usually closes the
gap without further planes.
"""

import numpy as np

from forerank._typing import Vector
from forerank.design import Design
from forerank.objectives.base import Linearization, Objective, Smoothable
from forerank.solvers.base import EVERY_COLUMN_PENALISED, SUBGRADIENT, solver
from forerank.solvers.cutting_planes import CuttingPlanes
from forerank.solvers.result import Progress, SolverResult
from forerank.solvers.smoothing import BestPoint, smoothed_newton

__all__ = ["bundle"]

# Position of the next plane between the best point (0) and the minimiser of the model (1).
_PLANE_POSITION = 0.1
# Of the line search: accuracy relative to the step, step from which it is not doubled, and most
# evaluations between two steps.
_STEP_ACCURACY, _LONGEST_STEP, _MOST_TRIALS = 0.1, 1e3, 20


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
    planes = CuttingPlanes(alpha, design.n_columns)
    if isinstance(objective, Smoothable):
        best = smoothed_newton(
            objective, design, alpha, planes,
            start=start, tol=tol, max_iter=max_iter, progress=progress,
        )  # fmt: skip
    else:
        w = np.zeros(design.n_columns) if start is None else start
        s = design.scores(w)
        best = BestPoint(w, s, objective.at(s).value + 0.5 * alpha * float(w @ w))
    progress.record(best.w, design.n_rows, best.value, best.gap)
    if best.gap > tol and best.n_iter < max_iter:
        _cutting_planes(objective, design, alpha, planes, best, tol, max_iter, progress)
    converged = best.gap <= tol
    return SolverResult(
        best.w, best.s, best.value, best.gap, best.n_iter, converged, progress.history
    )


def _cutting_planes(
    objective: Objective,
    design: Design,
    alpha: float,
    planes: CuttingPlanes,
    best: BestPoint,
    tol: float,
    max_iter: int,
    progress: Progress,
) -> None:
    """Improve the best point by cutting planes until its gap is at most `tol`."""
    here, step = objective.at(best.s), 1.0
    planes.add(*_plane(here, best.s, design))
    while True:
        best.n_iter += 1
        target, lower = planes.minimum(0.1 * tol * best.value)
        best.bound = max(best.bound, lower)
        progress.record(best.w, design.n_rows, best.value, best.gap)
        if best.gap <= tol or best.n_iter >= max_iter:
            return
        w, s = best.w, best.s
        p, q = target - w, design.scores(target) - s
        step, here = _line_search(objective, here, s, q, w, p, alpha, step or 1.0)
        best.w, best.s = w, s = w + step * p, s + step * q
        best.value = here.value + 0.5 * alpha * float(w @ w)
        beyond = s + _PLANE_POSITION * (1.0 - step) * q
        planes.add(*_plane(objective.at(beyond), beyond, design))


def _plane(there: Linearization, c: Vector, design: Design) -> tuple[Vector, float]:
    return design.adjoint(there.gradient), there.value - float(there.gradient @ c)


def _line_search(
    objective: Objective,
    here: Linearization,
    s: Vector,
    q: Vector,
    w: Vector,
    p: Vector,
    alpha: float,
    guess: float,
) -> tuple[float, Linearization]:
    """A minimiser over step >= 0 of the objective along q, to within a tenth, and the objective
    there; on scores alone. `guess` is the step that is tried first.
    """
    linear, quadratic = alpha * float(w @ p), alpha * float(p @ p)

    def at(step: float) -> tuple[float, Linearization, float]:
        there = objective.at(s + step * q)
        return step, there, float(there.gradient @ q) + linear + step * quadratic

    low = (0.0, here, float(here.gradient @ q) + linear)
    if low[2] >= 0.0:
        return low[:2]
    high = at(guess)
    while high[2] < 0.0 and high[0] < _LONGEST_STEP:
        low, high = high, at(2.0 * high[0])
    for _ in range(_MOST_TRIALS):
        width = high[0] - low[0]
        if width <= _STEP_ACCURACY * high[0]:
            break
        # Regula falsi, at least a tenth from either end so that the bracket shrinks.
        root = low[0] - low[2] * width / (high[2] - low[2])
        middle = at(min(max(root, low[0] + 0.1 * width), high[0] - 0.1 * width))
        if middle[2] < 0.0:
            low = middle
        else:
            high = middle

    def value(end: tuple[float, Linearization, float]) -> float:
        return end[1].value + end[0] * (linear + 0.5 * end[0] * quadratic)

    return min(low, high, key=value)[:2]
