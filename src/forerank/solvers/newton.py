"""Newton's method for smooth objectives: F(X w) + 1/2 sum_k penalty_k w_k^2.

Where the Hessian costs little (`hessian`), it is computed over all rows or a sample of them at the
start, and improved by every step (`Metric`, BFGS). An iteration is then a product with X and one
with X^T, the fewest that a new gradient takes; a Hessian that costs as much as a few of them is
computed anew every four. Otherwise, and for smoothed hinges, whose curvature changes from
step to step, conjugate gradients solve the Newton equation roughly, with the Hessian or a diagonal
as preconditioner. Two more things keep the passes over X few:

- the line search knows the scores X p of the direction p, so it needs no product with X;
- the start is the solution on a sample of the rows, which itself starts from a smaller sample; few
  rows start from zero, where sums over pairs and the Hessian are closed forms. With too many
  columns for a Hessian it is the solution for a larger penalty, which itself starts from a larger
  one, as on a path of penalties: from other starts, the same tolerance gives another model.

Stopping: two rules, over all rows. ||gradient(w)|| <= tol ||gradient(0)||, with every column in its
own unit (`forerank.solvers.units`); that ratio is the certificate. Multiplying a dense column by a
number, or adding one to it, changes neither the iterations nor the certificate. And the decrease
that the quadratic model predicts is at most 3 tol times the objective. With a small penalty on
separable classes both gradient and objective go to zero, and a warm start from a larger penalty
satisfies the first rule at once; the second has the same meaning from any start.
"""

from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np

from forerank._typing import Index, Random, Vector
from forerank.design import Design
from forerank.objectives.base import Curved, SmoothObjective
from forerank.solvers.base import CONTINUOUS_GRADIENT, CURVATURE, solver
from forerank.solvers.hessian import (
    Preconditioner,
    hessian_is_small,
    hessian_metric,
    make_preconditioner,
    mean_curvature,
)
from forerank.solvers.metric import Metric
from forerank.solvers.problem import Point, Problem
from forerank.solvers.result import GRADIENT_NORM, Progress, SolverResult, gap_bound
from forerank.solvers.units import Units, column_units, small_hessian_cost, starts_at_zero

__all__ = ["newton", "newton_direction"]

# Relative gradient norm to which samples are solved; below it their sampling error dominates. Also
# that of fits for larger penalties.
_SAMPLE_TOL = 0.03
# Decrease that may still be predicted at the end, relative to tol times the objective:
# with the tolerance of 3e-3 of a search it is 1 % of the objective, where measures hardly change.
_DECREASE = 3.0
# Ratio of the penalties from which a fit with a diagonal starts, about that of a path of ten.
_PENALTY_RATIO = 10.0
# Steps after which the Hessian is computed anew; in a fit of its own, conjugate gradients take over
# then. On a path it also serves the next penalties, so that its age matters more.
_MOST_STEPS = 8
_MOST_STEPS_ON_PATH = 6
# Steps after which a Hessian over all rows is computed anew.
_MOST_STEPS_OF_ALL_ROWS = 4
# Slope at the end of a step, relative to that at its begin, above which the step is lengthened. An
# evaluation of the objective costs as much as two products with X of about this many entries per
# row; with fewer, only steps that hardly change the slope are lengthened.
_STEEP, _NEARLY_AS_STEEP = 0.3, 0.6
_ENTRIES_PER_EVALUATION = 25
# Ratio of its curvature to the true one above which it is not used to predict a decrease, and the
# tolerance from which the error of a quadratic model is larger than that of its curvature.
_OUTDATED = 2.0
_LOOSE_TOL = 0.03
_BELIEVED = (np.inf, np.inf)
# Steps of the metric, no new one, and the slope, for smoothed hinges.
_RULES_OF_CG = (_MOST_STEPS, False, _STEEP)
# Factor by which conjugate gradients reduce the residual of the Newton equation; most iterations.
_CG_ACCURACY = 0.3
_MAX_CG = 250
# The same on a path of penalties, where each fit starts near its solution and an accurate direction
# is worth its cost.
_PATH_CG_ACCURACY = 0.1
# Share of the rows with a curvature up to which conjugate gradients work on a copy of these rows:
# it takes as much time as a product with X, and this share of its memory.
_FEW_CURVED = 0.25


@solver("newton", CONTINUOUS_GRADIENT, CURVATURE)
def newton(
    objective: SmoothObjective,
    design: Design,
    alpha: float | Vector,
    *,
    start: Vector | None = None,
    tol: float = 1e-4,
    gradient_norm: float = 0.0,
    max_iter: int = 100,
    progress: Progress | None = None,
    units: Units | None = None,
) -> SolverResult:
    """Minimise F(X w) + 1/2 sum_k penalty_k w_k^2 for a smooth F.

    The penalty is `alpha` for every column but an intercept, or an array with one number per
    column. `start` is a warm start; without it the rows are sampled for one. Stops at a gradient
    norm of tol relative to the gradient at zero, columns in their own units, once the predicted
    decrease is at most 3 tol times the objective too; or, with tol = 0, at a gradient norm of
    `gradient_norm` in the units of the data. `units` are those of the columns, if known already.
    Cost: per iteration, of Newton or of conjugate gradients, one product with X, one with X^T and
    one pass over the scores.
    """
    units = units or column_units(objective, design)
    problem = Problem.of(objective, units, max_iter).penalised(alpha, progress or Progress())
    zero = units.reference_gradient(objective, units.design)
    reference = float(np.linalg.norm(zero))
    point: Point | None = None
    n_iter, metric = 0, None
    if start is not None:
        w = units.to_standardised(start)
    elif hessian_is_small(units.design):
        w, metric = _start_from_sample(problem, tol)
        if not (w.any() or design.has_intercept):
            point = problem.zero_point(zero)
    else:
        point = None if design.has_intercept else problem.zero_point(zero)
        w, point, n_iter = _start_from_larger_penalties(problem, tol, reference, point)
    result, _, _ = _iterations(
        problem, w, tol, None, gradient_norm, point=point, reference=reference, of_sample=metric
    )
    return units.to_columns(replace(result, n_iter=n_iter + result.n_iter))


def _start_from_sample(
    problem: Problem, tol: float, rng: Random = 0
) -> tuple[Vector, Metric | None]:
    """The minimiser over a sample of the rows and the latest metric there, or zero for few rows."""
    sample = None
    if not starts_at_zero(problem.design):
        rng = np.random.default_rng(rng)
        sample = problem.next_sample(rng)
    if sample is None:
        return np.zeros(problem.design.n_columns), None
    start, metric = _start_from_sample(sample, tol, rng)
    result, latest, _ = _iterations(sample, start, max(tol, _SAMPLE_TOL), None, of_sample=metric)
    return result.w, latest if isinstance(latest, Metric) else None


def _start_from_larger_penalties(
    problem: Problem, tol: float, reference: float, point: Point | None
) -> tuple[Vector, Point | None, int]:
    """The minimiser for a penalty `_PENALTY_RATIO` times as large, what is known there, and the
    iterations; from the `point` of zero weights.

    It starts from the minimiser for a penalty that is larger again by this factor, and so on, up to
    the curvature at zero. Zero weights where the penalty is zero, or that large already.
    """
    w, n_iter = np.zeros(problem.design.n_columns), 0
    some = problem.penalty[problem.penalty > 0.0]
    if some.size:
        largest = mean_curvature(problem, w) / float(np.median(some))
        n_penalties = int(np.log(max(largest, 1.0)) / np.log(_PENALTY_RATIO))
        for k in range(n_penalties, 0, -1):
            larger = replace(problem, penalty=_PENALTY_RATIO**k * problem.penalty)
            result, _, point = _iterations(
                larger, w, max(tol, _SAMPLE_TOL), None, point=point, reference=reference
            )
            w, n_iter = result.w, n_iter + result.n_iter
    return w, point, n_iter


def newton_iterations(
    problem: Problem,
    w: Vector,
    tol: float,
    precondition: Preconditioner | None,
    gradient_norm: float = 0.0,
    *,
    scores: Vector | None = None,
    reference: float | None = None,
    on_path: bool = False,
) -> tuple[SolverResult, Preconditioner | None]:
    """The minimiser from the start w, and the latest preconditioner.

    `scores` (X w) and `reference` (gradient norm at zero) may be passed if known.
    """
    point = None if scores is None else Point(scores)
    return _iterations(
        problem, w, tol, precondition, gradient_norm,
        point=point, reference=reference, on_path=on_path,
    )[:2]  # fmt: skip


def _iterations(
    problem: Problem,
    w: Vector,
    tol: float,
    precondition: Preconditioner | None,
    gradient_norm: float = 0.0,
    *,
    point: Point | None = None,
    reference: float | None = None,
    of_sample: Metric | None = None,
    on_path: bool = False,
) -> tuple[SolverResult, Preconditioner | None, Point]:
    """`newton_iterations`, and what is known at the minimiser.

    `point` is what is known at the start. `of_sample` is a metric over a sample of the rows, which
    is used to predict the decrease from w alone.
    """
    objective, design, penalty = problem.objective, problem.design, problem.penalty
    w, s, here, adjoint = _first(problem, w, point)
    del point
    reference = problem.reference_norm() if reference is None else reference
    gradient = adjoint + penalty * w
    by_metric = gradient_norm == 0.0
    most_steps, is_renewed, steep = _rules(design, on_path) if by_metric else _RULES_OF_CG
    if isinstance(precondition, Metric):
        precondition.change_penalty(penalty)
    for iteration in range(problem.max_iter + 1):
        norm = sqrt(gradient @ gradient)
        value = here.value + 0.5 * float(penalty @ w**2)
        optimality = norm / reference if reference > 0.0 else 0.0
        problem.record(w, value, optimality)
        in_data_units = problem.units.norm(gradient) if gradient_norm > 0.0 else np.inf
        converged = optimality <= tol or in_data_units <= gradient_norm
        # Without a penalty the minimum may be zero, at infinity.
        small_decrease = _DECREASE * tol * value if tol > 0.0 and penalty.any() else np.inf
        reached = converged and gap_bound(gradient, penalty, value) <= small_decrease
        if converged and iteration == 0 and of_sample is not None and tol >= _LOOSE_TOL:
            sampled = _metric_direction(problem, (w, s, here), gradient, of_sample, _BELIEVED)
            reached = reached or sampled[2] <= small_decrease
        if reached or iteration == problem.max_iter:
            break
        is_old = precondition is not None and converged
        if precondition is None:
            precondition = make_preconditioner(problem, w, s, here)
        if isinstance(precondition, Metric) and by_metric:
            doubt = _doubt(design, tol, small_decrease, on_path) if is_old else None
            p, q, decrease, precondition = _metric_direction(
                problem, (w, s, here), gradient, precondition, doubt
            )
        else:
            left = 0.0 if converged else max(tol / optimality, gradient_norm / in_data_units)
            accuracy = max(_PATH_CG_ACCURACY if on_path else _CG_ACCURACY, 0.5 * left)
            p, q = newton_direction(here, design, penalty, gradient, precondition, accuracy)
            decrease = -0.5 * float(gradient @ p)
        if converged and decrease <= small_decrease:
            break
        del here
        slope = float(gradient @ p)
        step, here = _line_search(objective, s, q, w, p, penalty, value, slope, steep)
        if step == 0.0:
            break
        w = w + step * p
        s += step * q
        before, adjoint = gradient, design.adjoint(here.gradient)
        gradient = adjoint + penalty * w
        if isinstance(precondition, Metric):
            precondition.update(step * p, gradient - before, reduce=not on_path)
            # At the present rate of decrease, the next step is the last.
            is_last = not on_path and float(gradient @ gradient) <= tol * reference * norm
            if precondition.n_steps >= most_steps and not is_last:
                precondition, by_metric = None, by_metric and is_renewed
    gap, history = gap_bound(gradient, penalty, value), problem.progress.history
    result = SolverResult(
        w, s, value, optimality, iteration, converged, history, None, gap, GRADIENT_NORM
    )
    return result, precondition, Point(s, here, adjoint)


def _first(
    problem: Problem, w: Vector, point: Point | None
) -> tuple[Vector, Vector, Curved, Vector]:
    """The weights of the start, and there the scores, the objective, and X^T times its gradient."""
    objective, design = problem.objective, problem.design
    point = point or Point(design.scores(w))
    here = point.here or objective.at(point.scores)
    if not np.isfinite(here.value) and w.any():  # a warm start from data of another scale
        w, point = np.zeros(w.size), Point(design.zero_scores())
        here = objective.at(point.scores)
    adjoint = design.adjoint(here.gradient) if point.adjoint is None else point.adjoint
    return w, point.scores, here, adjoint


def _rules(design: Design, on_path: bool) -> tuple[int, bool, float]:
    """Steps after which the metric ends, whether a new one follows, and the slope from which a step
    is lengthened.
    """
    cheap_products = design.n_entries < _ENTRIES_PER_EVALUATION * design.n_rows
    steep = _NEARLY_AS_STEEP if cheap_products else _STEEP
    if on_path:
        return _MOST_STEPS_ON_PATH, True, steep
    if small_hessian_cost(design):
        return _MOST_STEPS_OF_ALL_ROWS, True, steep
    return _MOST_STEPS, False, steep


def _metric_direction(
    problem: Problem,
    state: tuple[Vector, Vector, Curved],
    gradient: Vector,
    metric: Metric,
    doubt: tuple[float, float] | None,
) -> tuple[Vector, Vector, float, Metric]:
    """The direction p with metric p = -gradient, its scores X p, the decrease that is predicted,
    and the metric; `state` has weights, scores and objective.

    Where the metric overestimates the curvature along p, it underestimates the decrease by this
    factor. With `doubt`, a factor and a decrease beyond which the metric is not believed, it is
    replaced by a Hessian at these weights.
    """
    w, s, here = state
    p = -metric(gradient)
    q, decrease = problem.design.scores(p), -0.5 * float(gradient @ p)
    if doubt is not None:
        curvature = float(q @ here.curvature_product(q)) + float(problem.penalty @ p**2)
        factor = 2.0 * decrease / curvature if curvature > 0.0 else np.inf
        decrease *= max(factor, 1.0)
        if factor > doubt[0] or decrease > doubt[1]:
            metric = hessian_metric(problem, w, s, here)
            return _metric_direction(problem, state, gradient, metric, None)
    return p, q, decrease, metric


def _doubt(design: Design, tol: float, small_decrease: float, on_path: bool) -> tuple[float, float]:
    """Overestimate of a curvature, and predicted decrease, from which a metric that is not of these
    weights is not believed where it would end the iterations.

    With a loose tolerance the quadratic model has a larger error of its own. Where a Hessian costs
    little, a tenth of the decrease that is allowed is enough for doubt.
    """
    if tol >= _LOOSE_TOL and not on_path:
        return np.inf, small_decrease
    is_cheap = small_hessian_cost(design) and not on_path
    return _OUTDATED, 0.1 * small_decrease if is_cheap else np.inf


def newton_direction(
    here: Curved,
    design: Design,
    penalty: Vector,
    gradient: Vector,
    precondition: Preconditioner,
    accuracy: float,
) -> tuple[Vector, Vector]:
    """The direction p with H p = -gradient up to a residual of accuracy ||gradient||, and its
    scores X p, by conjugate gradients.

    Rows without a curvature do not count: where they are most rows, the products are with the
    others alone, and those with X are one.
    """
    curved_rows = getattr(here, "curved_rows", None)
    rows = None if curved_rows is None else curved_rows()
    if rows is not None and rows.size <= _FEW_CURVED * design.n_rows:
        curved = _OnRows(here, rows, design.n_rows)
        p = _conjugate_gradients(
            curved, design.rows(rows), penalty, gradient, precondition, accuracy
        )[0]
        return p, design.scores(p)
    return _conjugate_gradients(here, design, penalty, gradient, precondition, accuracy)


class _OnRows:
    """Products with the curvature in the scores of some rows, which have all of it."""

    def __init__(self, here: Curved, rows: Index, n_rows: int) -> None:
        self._here, self._rows, self._u = here, rows, np.zeros(n_rows)

    def curvature_product(self, u: Vector) -> Vector:
        """F''(s) u on the rows."""
        self._u[self._rows] = u
        return self._here.curvature_product(self._u)[self._rows]


def _conjugate_gradients(
    here: Any,
    design: Design,
    penalty: Vector,
    gradient: Vector,
    precondition: Preconditioner,
    accuracy: float,
) -> tuple[Vector, Vector]:
    """The direction of `newton_direction` and its scores, by products with a design."""
    p, scores = np.zeros(gradient.size), design.zero_scores()
    residual = -gradient
    z = precondition(residual)
    direction = z.copy()
    rz = float(residual @ z)
    goal = accuracy * sqrt(gradient @ gradient)
    for _ in range(min(_MAX_CG, 2 * gradient.size + 10)):
        direction_scores = design.scores(direction)
        product = design.adjoint(here.curvature_product(direction_scores)) + penalty * direction
        curvature = float(direction @ product)
        if not curvature > 0.0:
            break
        length = rz / curvature
        p += length * direction
        direction_scores *= length
        scores += direction_scores
        residual -= length * product
        if sqrt(residual @ residual) <= goal:
            break
        z = precondition(residual)
        rz, previous = float(residual @ z), rz
        direction *= rz / previous
        direction += z
    if not p.any():  # no curvature along the gradient: the preconditioned gradient
        return z, design.scores(z)
    return p, scores


def _line_search(
    objective: SmoothObjective,
    s: Vector,
    q: Vector,
    w: Vector,
    p: Vector,
    penalty: Vector,
    value: float,
    slope: float,
    steep: float = _STEEP,
) -> tuple[float, Curved]:
    """Step length by backtracking until the decrease is sufficient (Armijo), then lengthened while
    the slope along the direction stays `steep`, as for the logistic loss on separable classes.

    Works on scores alone: an evaluation costs less than a product with X.
    """
    if not np.isfinite(float(q @ q)):
        return 0.0, objective.at(s)
    linear, quadratic = float(penalty @ (w * p)), 0.5 * float(penalty @ p**2)
    base = 0.5 * float(penalty @ w**2)
    noise = 1e-13 * abs(value)  # rounding error of the objective
    step = 1.0
    for _ in range(40):
        there = objective.at(s + step * q)
        there_value = there.value + base + step * (linear + step * quadratic)
        if there_value <= value + 1e-4 * step * slope + noise:
            break
        # The minimum of the parabola through value, slope and new value, within bounds.
        excess = there_value - value - step * slope
        fitted = -0.5 * slope * step**2 / excess if np.isfinite(excess) and excess > 0.0 else 0.0
        step = min(max(fitted, 0.1 * step), 0.5 * step)
    else:
        return 0.0, objective.at(s)
    for _ in range(5):
        slope_there = float(there.gradient @ q) + linear + 2.0 * step * quadratic
        if slope_there >= steep * slope:
            break
        # The root of the slope, extrapolated at its present rate of change.
        longer = step * slope / min(slope - slope_there, 0.25 * slope)
        beyond = objective.at(s + longer * q)
        beyond_value = beyond.value + base + longer * (linear + longer * quadratic)
        if not beyond_value < there_value:
            break
        step, there, there_value = longer, beyond, beyond_value
    return step, there
