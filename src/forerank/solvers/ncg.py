"""Nonlinear conjugate gradients for F(X w) + alpha/2 ||w||^2, F smooth (raykar2007, section 4).

Polak-Ribiere directions, restarted from the gradient where successive gradients are far from
orthogonal or the formula is negative. The line search finds a small slope along the direction, for
a convex objective the root of an increasing function. It works on scores: a trial step costs an
evaluation of F and no product with X.

Columns are in their own units (`forerank.solvers.units`); there is no other preconditioner, as in
the paper. `newton` is faster for objectives with a curvature. Stopping: ||gradient(w)|| <= tol
||gradient(0)|| in these units, the certificate of `newton`.
"""

import numpy as np

from forerank._typing import Vector
from forerank.design import Design
from forerank.objectives.base import Differentiable, Linearization
from forerank.solvers.base import CONTINUOUS_GRADIENT, solver
from forerank.solvers.result import GRADIENT_NORM, Progress, SolverResult, gap_bound
from forerank.solvers.units import column_units

__all__ = ["RESTART", "line_search", "ncg"]


# The line search ends at this fraction of the first slope, or after this many trial steps.
_SLOPE_FRACTION = 0.1
_MAX_TRIALS = 20
# Directions restart where |<gradient, previous gradient>| exceeds this times ||gradient||^2.
RESTART = 0.2


@solver("ncg", CONTINUOUS_GRADIENT)
def ncg(
    objective: Differentiable,
    design: Design,
    alpha: float,
    *,
    start: Vector | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    progress: Progress | None = None,
) -> SolverResult:
    """Minimise F(X w) + alpha/2 ||w||^2 for a smooth convex F.

    Cost of an iteration: one product with X, one with X^T, two or three evaluations of F.
    """
    progress = progress or Progress()
    units = column_units(objective, design)
    design, penalty = units.design, units.penalty(np.full(design.n_columns, float(alpha)))
    w = np.zeros(design.n_columns) if start is None else units.to_standardised(start)
    s = design.scores(w)
    here = objective.at(s)
    if not np.isfinite(here.value) and w.any():  # a warm start from data of another scale
        w, s = np.zeros(w.size), np.zeros(s.size)
        here = objective.at(s)
    gradient = design.adjoint(here.gradient) + penalty * w
    reference = units.reference_norm(objective, design)
    p, step, slope = -gradient, 0.0, 0.0
    for iteration in range(max_iter + 1):
        norm = float(np.linalg.norm(gradient))
        value = here.value + 0.5 * float(penalty @ w**2)
        optimality = norm / reference if reference > 0.0 else 0.0
        progress.record(units.weights_of_columns(w), design.n_rows, value, optimality)
        if optimality <= tol or iteration == max_iter:
            break
        slope_before, slope = slope, float(gradient @ p)
        if slope >= 0.0:
            p, slope = -gradient, -(norm**2)
        q = design.scores(p)
        # The first trial step has the predicted decrease of the iteration before.
        trial = step * slope_before / slope if step > 0.0 else 1.0 / max(np.abs(q).max(), 1e-300)
        of_penalty = float(penalty @ (w * p)), float(penalty @ p**2)
        step, here = line_search(objective, s, q, *of_penalty, slope, trial)
        if step == 0.0:
            break
        w = w + step * p
        s = s + step * q
        gradient, before = design.adjoint(here.gradient) + penalty * w, gradient
        beta = max(float(gradient @ (gradient - before)) / norm**2, 0.0)
        if abs(float(gradient @ before)) >= RESTART * float(gradient @ gradient):
            beta = 0.0
        p = beta * p - gradient
    gap, converged = gap_bound(gradient, penalty, value), optimality <= tol
    result = SolverResult(
        w, s, value, optimality, iteration, converged, progress.history, None, gap, GRADIENT_NORM
    )
    return units.to_columns(result)


def line_search(
    objective: Differentiable,
    s: Vector,
    q: Vector,
    linear: float,
    quadratic: float,
    slope: float,
    trial: float,
) -> tuple[float, Linearization]:
    """A step whose slope along q is at most `_SLOPE_FRACTION` of the first one, and F there.

    The slope increases along q. The bracket [low, high] of its root shrinks by the secant method
    with the Illinois rule: where secants move the same end twice (`moved`: -1 high, 1 low), the
    slope at the other end is halved. Before there is a bracket, steps grow up to tenfold.
    `linear` and `quadratic` are the coefficients of the penalty's slope.
    """
    low, slope_low = 0.0, slope
    high, slope_high = np.inf, np.inf
    step, moved = trial, 0
    best, best_there, flattest = 0.0, None, np.inf
    for _ in range(_MAX_TRIALS):
        there = objective.at(s + step * q)
        slope_there = float(there.gradient @ q) + linear + step * quadratic
        if not np.isfinite(there.value) or not np.isfinite(slope_there):
            high, slope_high, step = step, np.inf, low + 0.1 * (step - low)
            continue
        if abs(slope_there) < flattest:
            best, best_there, flattest = step, there, abs(slope_there)
        if abs(slope_there) <= _SLOPE_FRACTION * abs(slope):
            break
        if slope_there < 0.0:
            if moved == 1:
                slope_high *= 0.5
            low, slope_low, moved = step, slope_there, 1
        else:
            if moved == -1:
                slope_low *= 0.5
            high, slope_high, moved = step, slope_there, -1
        if np.isfinite(slope_high):
            step = low - slope_low * (high - low) / (slope_high - slope_low)
        elif np.isfinite(high):
            step = 0.5 * (low + high)
        else:
            # No bracket yet: the root at the present rate of change, at most ten times as far.
            rise = slope_there - slope
            step = min(step * slope / -rise if rise > 0.0 else np.inf, 10.0 * step)
        if not low < step < high:
            break
    return (best, best_there) if best_there is not None else (0.0, objective.at(s))
