"""Nonlinear conjugate gradients for smooth objectives: F(X w) + alpha/2 ||w||^2 (raykar2007, section 4).

Directions by Polak and Ribiere, begun afresh from the gradient where successive gradients are far
from orthogonal or the formula turns negative. Only gradients are used. The line search looks for a
small slope along the direction, which for a convex objective is a search for the root of a rising
function: it works on scores, so a trial step costs a sum over pairs and no product with X.

There is no preconditioner beyond columns in their own units (`forerank.solvers.units`): the paper
has none, and scales its data. `newton` is faster where the objective has a curvature; this solver
is for those that have a gradient only.

Stopping: ||gradient(w)|| <= tol ||gradient(0)|| in these units, the certificate of `newton`.
"""

import numpy as np

from forerank._typing import Vector
from forerank.design import Design
from forerank.objectives.base import Differentiable, Linearization
from forerank.solvers.result import Progress, SolverResult, gap_bound
from forerank.solvers.units import column_units

__all__ = ["ncg"]


# The line search ends at this fraction of the slope at its start, or after so many trials.
_SLOPE_LEFT = 0.1
_MAX_TRIALS = 20
# Successive gradients with a larger cosine (relative to the new one) restart the directions.
_PARALLEL = 0.2


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
    """Minimise F(X w) + alpha/2 ||w||^2 for a smooth convex F with a gradient.

    Cost: per step one product with X, one with X^T and two or three evaluations of F on scores.
    """
    if not objective.smooth:
        raise ValueError(
            f"ncg needs a smooth objective, and {objective!r} has kinks. Use the bundle solver for it, or a smooth "
            "loss such as 'squared_hinge' or 'logistic'."
        )
    progress = progress or Progress()
    units = column_units(objective, design)
    design, penalty = units.design, units.penalty(np.full(design.n_columns, float(alpha)))
    w = np.zeros(design.n_columns) if start is None else units.inwards(start)
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
        progress.record(units.outwards(w), design.n_rows, value, optimality)
        if optimality <= tol or iteration == max_iter:
            break
        slope_before, slope = slope, float(gradient @ p)
        if slope >= 0.0:
            p, slope = -gradient, -(norm**2)
        q = design.scores(p)
        # The first trial promises the decrease of the step before.
        trial = (
            step * slope_before / slope if step > 0.0 else 1.0 / max(float(np.abs(q).max()), 1e-300)
        )
        step, there = _flat_point(
            objective, s, q, float(penalty @ (w * p)), float(penalty @ p**2), slope, trial
        )
        if step == 0.0:
            break
        w = w + step * p
        s = s + step * q
        here = there
        gradient, before = design.adjoint(here.gradient) + penalty * w, gradient
        fresh = float(gradient @ gradient)
        beta = max(float(gradient @ (gradient - before)) / norm**2, 0.0)
        if abs(float(gradient @ before)) >= _PARALLEL * fresh:
            beta = 0.0
        p = beta * p - gradient
    gap = gap_bound(gradient, penalty, value)
    result = SolverResult(
        w, s, value, optimality, iteration, optimality <= tol, progress.history, gap=gap
    )
    return units.translated(result)


def _flat_point(
    objective: Differentiable,
    s: Vector,
    q: Vector,
    linear: float,
    quadratic: float,
    slope: float,
    trial: float,
) -> tuple[float, Linearization]:
    """A step at which the slope along q is a tenth of that at the start or less, and the objective
    there.

    The slope rises along the way. The bracket [low, high] of its root shrinks by secants; before
    there is one, steps grow up to tenfold. Where secants move the same end twice (`moved`: -1 high,
    1 low), the ordinate of the other end is halved, so that the next secant falls on its side (the
    Illinois rule).
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
        if abs(slope_there) <= _SLOPE_LEFT * abs(slope):
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
            # No bracket yet: where the slope would vanish at its present rate of change, or ten
            # times as far.
            rise = slope_there - slope
            step = min(step * slope / -rise if rise > 0.0 else np.inf, 10.0 * step)
        if not low < step < high:
            break
    return (best, best_there) if best_there is not None else (0.0, objective.at(s))
