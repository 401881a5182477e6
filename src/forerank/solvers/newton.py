"""Newton's method for smooth objectives: F(X w) + 1/2 sum_k penalty_k w_k^2.

Where the Hessian is small, it is computed once, over a sample of the rows at the start, and
improved by every step (`Metric`, BFGS). An iteration is then a product with X and one with X^T, the
fewest that a new gradient takes. Otherwise, and for smoothed hinges, whose curvature changes from
step to step, conjugate gradients solve the Newton equation roughly, with the Hessian or a diagonal
as preconditioner. Two more things keep the passes over X few:

- the line search knows the scores X p of the direction p, so it needs no product with X;
- the start is the solution on a sample of the rows, which itself starts from a smaller sample. With
  too many columns for a Hessian it is the solution for a larger penalty, which itself starts from a
  larger one, as on a path of penalties: from other starts, the same tolerance gives another model.

Stopping: two rules, over all rows. ||gradient(w)|| <= tol ||gradient(0)||, with every column in its
own unit (`forerank.solvers.units`); that ratio is the certificate. Multiplying a dense column by a
number, or adding one to it, changes neither the iterations nor the certificate. And the decrease
that the quadratic model predicts is at most 3 tol times the objective. With a small penalty on
separable classes both gradient and objective go to zero, and a warm start from a larger penalty
satisfies the first rule at once; the second has the same meaning from any start.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from forerank._typing import Vector
from forerank.design import Design
from forerank.objectives.base import Curved, SmoothObjective
from forerank.solvers.base import CONTINUOUS_GRADIENT, CURVATURE, solver
from forerank.solvers.metric import Metric
from forerank.solvers.result import GRADIENT_NORM, Progress, SolverResult, gap_bound
from forerank.solvers.units import Units, column_units

__all__ = ["newton"]

Preconditioner = Callable[[Vector], Vector]

# Rows of each sample as a fraction of the rows of the next one, and the fewest rows of a sample.
SAMPLE_FRACTION = 1 / 8
SMALLEST_SAMPLE = 800
# Relative gradient norm to which samples are solved; below it their sampling error dominates. Also
# that of fits for larger penalties.
_SAMPLE_TOL = 0.03
# The sampled Hessian is used if its d x d entries are at most this many per row of X, or this many
# in all.
_HESSIAN_ENTRIES_PER_ROW = 3
_SMALL_HESSIAN = 40_000
# Decrease that may still be predicted at the end, relative to tol times the objective:
# with the tolerance of 3e-3 of a search it is 1 % of the objective, where measures hardly change.
_DECREASE = 3.0
# Ratio of the penalties from which a fit with a diagonal starts, about that of a path of ten.
_PENALTY_RATIO = 10.0
# Entries of X up to which the Hessian is taken over all rows. Above, the rows of the sample for it:
# so many numbers in their copy per row of X, but at least and at most so many rows per column.
_SMALL_DATA = 150_000
_COPY_PER_ROW = 12
_FEWEST_PER_COLUMN = 4
_MOST_PER_COLUMN = 64
# Steps after which the Hessian is computed anew; in a fit of its own, conjugate gradients take over
# then. On a path it also serves the next penalties, so that its age matters more.
_MOST_STEPS = 8
_MOST_STEPS_ON_PATH = 6
# Ratio of its curvature to the true one above which it is not used to predict a decrease.
_OUTDATED = 2.0
# Factor by which conjugate gradients reduce the residual of the Newton equation; most iterations.
_CG_ACCURACY = 0.3
_MAX_CG = 250
# The same on a path of penalties, where each fit starts near its solution and an accurate direction
# is worth its cost.
_PATH_CG_ACCURACY = 0.1


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
    reference, scores, n_iter = problem.reference_norm(), None, 0
    if start is None and _hessian_is_small(units.design):
        w = _start_from_sample(problem, tol, np.random.default_rng(0))
    elif start is None:
        w, scores, n_iter = _start_from_larger_penalties(problem, tol, reference)
    else:
        w = units.to_standardised(start)
    result, _ = newton_iterations(
        problem, w, tol, None, gradient_norm, scores=scores, reference=reference
    )
    return units.to_columns(replace(result, n_iter=n_iter + result.n_iter))


@dataclass(frozen=True)
class Problem:
    """Objective and penalty on all rows or a sample of them, with columns in their own units."""

    objective: SmoothObjective
    design: Design
    penalty: Vector
    max_iter: int
    progress: Progress
    units: Units

    @classmethod
    def of(cls, objective: SmoothObjective, units: Units, max_iter: int) -> "Problem":
        """The problem without a penalty."""
        design = units.design
        return cls(objective, design, np.zeros(design.n_columns), max_iter, Progress(), units)

    def penalised(self, alpha: float | Vector, progress: Progress) -> "Problem":
        """The problem with a penalty on the weights of the original columns."""
        penalty = np.broadcast_to(alpha, (self.design.n_columns,)).astype(float)
        if np.ndim(alpha) == 0 and self.design.has_intercept:
            penalty[-1] = 0.0
        return replace(self, penalty=self.units.penalty(penalty), progress=progress)

    def reference_norm(self) -> float:
        """The gradient norm at zero weights."""
        return self.units.reference_norm(self.objective, self.design)

    def sample(self, size: int, rng: np.random.Generator) -> "Problem | None":
        """The problem on about `size` rows, or None where a sample would save little."""
        drawn = self.objective.sample(size, rng)
        if drawn is None:
            return None
        rows, objective = drawn
        return replace(self, objective=objective, design=self.design.rows(rows))

    def next_sample(self, rng: np.random.Generator) -> "Problem | None":
        """The sample from which these rows start, or None where there are too few rows for it."""
        size = int(self.design.n_rows * SAMPLE_FRACTION)
        return self.sample(size, rng) if size >= SMALLEST_SAMPLE else None


def _start_from_sample(problem: Problem, tol: float, rng: np.random.Generator) -> Vector:
    """The minimiser over a sample of the rows, or zero for few rows."""
    sample = problem.next_sample(rng)
    if sample is None:
        return np.zeros(problem.design.n_columns)
    start = _start_from_sample(sample, tol, rng)
    return newton_iterations(sample, start, max(tol, _SAMPLE_TOL), None)[0].w


def _start_from_larger_penalties(
    problem: Problem, tol: float, reference: float
) -> tuple[Vector, Vector, int]:
    """The minimiser for a penalty `_PENALTY_RATIO` times as large, its scores, and the iterations.

    It starts from the minimiser for a penalty that is larger again by this factor, and so on, up to
    the curvature at zero. Zero weights where the penalty is zero, or that large already.
    """
    w, scores, n_iter = np.zeros(problem.design.n_columns), np.zeros(problem.design.n_rows), 0
    some = problem.penalty[problem.penalty > 0.0]
    if some.size:
        largest = _mean_curvature(problem, w) / float(np.median(some))
        n_penalties = int(np.log(max(largest, 1.0)) / np.log(_PENALTY_RATIO))
        for k in range(n_penalties, 0, -1):
            larger = replace(problem, penalty=_PENALTY_RATIO**k * problem.penalty)
            result, _ = newton_iterations(
                larger, w, max(tol, _SAMPLE_TOL), None, scores=scores, reference=reference
            )
            w, scores, n_iter = result.w, result.scores, n_iter + result.n_iter
    return w, scores, n_iter


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
    objective, design, penalty = problem.objective, problem.design, problem.penalty
    s = design.scores(w) if scores is None else scores
    here = objective.at(s)
    if not np.isfinite(here.value) and w.any():  # a warm start from data of another scale
        w, s = np.zeros(w.size), np.zeros(s.size)
        here = objective.at(s)
    reference = problem.reference_norm() if reference is None else reference
    gradient = design.adjoint(here.gradient) + penalty * w
    by_metric = gradient_norm == 0.0
    if isinstance(precondition, Metric):
        precondition.change_penalty(penalty)
    for iteration in range(problem.max_iter + 1):
        norm = float(np.linalg.norm(gradient))
        value = here.value + 0.5 * float(penalty @ w**2)
        optimality = norm / reference if reference > 0.0 else 0.0
        weights = problem.units.weights_of_columns(w)
        problem.progress.record(weights, design.n_rows, value, optimality)
        in_data_units = np.inf
        if gradient_norm > 0.0:
            in_data_units = float(np.linalg.norm(problem.units.unit * gradient))
        converged = optimality <= tol or in_data_units <= gradient_norm
        # Without a penalty the minimum may be zero, at infinity.
        small_decrease = _DECREASE * tol * value if tol > 0.0 and penalty.any() else np.inf
        reached = converged and gap_bound(gradient, penalty, value) <= small_decrease
        if reached or iteration == problem.max_iter:
            break
        is_new = precondition is None
        if precondition is None:
            precondition = _preconditioner(problem, w, here)
        if isinstance(precondition, Metric) and by_metric:
            check = converged and not is_new
            p, q, precondition = _metric_direction(problem, w, here, gradient, precondition, check)
        else:
            left = 0.0 if converged else max(tol / optimality, gradient_norm / in_data_units)
            accuracy = max(_PATH_CG_ACCURACY if on_path else _CG_ACCURACY, 0.5 * left)
            p, q = _newton_direction(here, design, penalty, gradient, precondition, accuracy)
        if converged and -0.5 * float(gradient @ p) <= small_decrease:
            break
        del here
        step, here = _line_search(objective, s, q, w, p, penalty, value, float(gradient @ p))
        if step == 0.0:
            break
        w = w + step * p
        s += step * q
        before, gradient = gradient, design.adjoint(here.gradient) + penalty * w
        if isinstance(precondition, Metric):
            precondition.update(step * p, gradient - before)
            if precondition.n_steps >= (_MOST_STEPS_ON_PATH if on_path else _MOST_STEPS):
                precondition, by_metric = None, by_metric and on_path
    gap, history = gap_bound(gradient, penalty, value), problem.progress.history
    result = SolverResult(
        w, s, value, optimality, iteration, converged, history, None, gap, GRADIENT_NORM
    )
    return result, precondition


def _metric_direction(
    problem: Problem, w: Vector, here: Curved, gradient: Vector, metric: Metric, check: bool
) -> tuple[Vector, Vector, Metric]:
    """The direction p with metric p = -gradient, its scores X p, and the metric.

    With `check`, a metric from other weights is replaced if it overestimates the curvature along p
    by a factor of more than `_OUTDATED`: it would underestimate the decrease.
    """
    p = -metric(gradient)
    q = problem.design.scores(p)
    if check:
        curvature = float(q @ here.curvature_product(q)) + float(problem.penalty @ p**2)
        if -float(gradient @ p) > _OUTDATED * curvature:
            metric = _hessian_metric(problem, w, here)
            return _metric_direction(problem, w, here, gradient, metric, False)
    return p, q, metric


def _newton_direction(
    here: Curved,
    design: Design,
    penalty: Vector,
    gradient: Vector,
    precondition: Preconditioner,
    accuracy: float,
) -> tuple[Vector, Vector]:
    """The direction p with H p = -gradient up to a residual of accuracy ||gradient||, and its
    scores X p, by conjugate gradients.
    """
    p, scores = np.zeros(gradient.size), np.zeros(design.n_rows)
    residual = -gradient
    z = precondition(residual)
    direction = z.copy()
    rz = float(residual @ z)
    goal = accuracy * float(np.linalg.norm(gradient))
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
        if np.linalg.norm(residual) <= goal:
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
) -> tuple[float, Curved]:
    """Step length by backtracking until the decrease is sufficient (Armijo), then lengthened while
    the slope along the direction stays steep, as for the logistic loss on separable classes.

    Works on scores alone: an evaluation costs less than a product with X.
    """
    if not np.isfinite(q @ q):
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
        if slope_there >= 0.3 * slope:
            break
        # The root of the slope, extrapolated at its present rate of change.
        longer = step * slope / min(slope - slope_there, 0.25 * slope)
        beyond = objective.at(s + longer * q)
        beyond_value = beyond.value + base + longer * (linear + longer * quadratic)
        if not beyond_value < there_value:
            break
        step, there, there_value = longer, beyond, beyond_value
    return step, there


def _hessian_is_small(design: Design) -> bool:
    return design.n_columns**2 <= max(_HESSIAN_ENTRIES_PER_ROW * design.n_rows, _SMALL_HESSIAN)


def _is_small_data(design: Design) -> bool:
    return design.n_rows * design.n_columns <= _SMALL_DATA


def _preconditioner(problem: Problem, w: Vector, here: Curved) -> Preconditioner:
    """The inverse of a sampled Hessian where that is small, else of an estimated diagonal."""
    if _hessian_is_small(problem.design):
        return _hessian_metric(problem, w, here)
    # One number for all columns, which are in their own units: a rare column has a small curvature
    # because most of its entries are zero, not because its values are small.
    scale = _mean_curvature(problem, w) + problem.penalty
    return lambda r: r / scale


def _mean_curvature(problem: Problem, w: Vector) -> float:
    """The mean of the diagonal of X^T F'' X at w, from a sample of the rows."""
    problem = problem.sample(SMALLEST_SAMPLE, np.random.default_rng(1)) or problem
    here = problem.objective.at(problem.design.scores(w))
    return float(_hessian_diagonal(problem.design, here).mean())


def _hessian_diagonal(design: Design, here: Curved) -> Vector:
    """An estimate of the diagonal of X^T F'' X from the diagonal of F''."""
    weight = here.curvature_diagonal()
    total = weight.sum()
    first, diagonal, _ = design.moments(weight)
    if total > 0.0:
        # Pairs depend on differences of rows, so the mean does not count. At least a hundredth is
        # kept: this is the mean of all rows, not that of each row's active pairs.
        diagonal = np.maximum(diagonal - first**2 / total, 0.01 * diagonal)
    # A column that is zero in these rows may not be in others: it gets the median curvature.
    unseen = diagonal <= 1e-12 * diagonal.max(initial=0.0)
    if unseen.all():
        return np.ones(diagonal.size)
    diagonal[unseen] = np.median(diagonal[~unseen])
    return diagonal


def _hessian_metric(problem: Problem, w: Vector, here: Curved) -> Metric:
    """The Hessian over a sample, its diagonal raised to that over all rows."""
    design, least = problem.design, np.zeros(problem.design.n_columns)
    n, d = design.n_rows, design.n_columns
    size = max(_FEWEST_PER_COLUMN * d, min(_COPY_PER_ROW * n // d, _MOST_PER_COLUMN * d), 256)
    sample = problem.sample(n if _is_small_data(design) else size, np.random.default_rng(1))
    if sample is not None:
        # A column that varies little in the sample has too small a curvature there.
        least = _hessian_diagonal(design, here)
        problem, design = sample, sample.design
    hessian = problem.objective.hessian(design.scores(w), design.columns(0, d))
    return Metric(hessian, least, problem.penalty)
