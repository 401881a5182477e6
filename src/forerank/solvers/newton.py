"""Truncated Newton for smooth objectives: F(X w) + 1/2 sum_k penalty_k w_k^2.

Each step solves the Newton equation by preconditioned conjugate gradients, to an accuracy that follows the gradient,
and searches along the direction. Three things keep the passes over X few:

- the scores X p of the direction come out of the conjugate gradients for free, so the line search never touches X;
- the preconditioner is the Hessian on a small sample of the rows, factored by Cholesky, where that matrix is small, and
  a diagonal otherwise; with it conjugate gradients need a handful of products, also for badly scaled columns;
- the start comes from the same problem on a sample of the rows, itself started from a smaller one. The sample only
  decides where the iteration on all rows begins: the stopping rule is the gradient over all rows.

Stopping: ||gradient(w)|| <= tol ||gradient(0)||, both over all rows; that ratio is the certificate returned. For
penalty alpha > 0 on every weight, the objective is then within ||gradient(w)||^2 / (2 alpha) of its minimum.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from forerank.design import Design
from forerank.objectives.base import Curved, SmoothObjective
from forerank.solvers.result import Progress, SolverResult

__all__ = ["newton"]

Vector = NDArray[np.float64]
Preconditioner = Callable[[Vector], Vector]

# Each sample on the way to all rows holds this fraction of the next one, and not fewer rows than this.
_SAMPLE_FRACTION = 1 / 8
_SMALLEST_SAMPLE = 1000
# Samples are solved no further than their own noise makes sensible.
_SAMPLE_TOL = 0.03
# The sampled Hessian, d x d, is used where it is no larger than this many numbers per row.
_HESSIAN_ENTRIES_PER_ROW = 2
# Rows per column that it is built from, as long as a copy of them takes no more than so many numbers per row of X.
_HESSIAN_ROWS = 16
_COPY_PER_ROW = 3
_MAX_CG = 250


def newton(
    objective: SmoothObjective,
    design: Design,
    penalty: Vector,
    *,
    start: Vector | None = None,
    tol: float = 1e-4,
    gradient_norm: float = 0.0,
    max_iter: int = 100,
    progress: Progress | None = None,
) -> SolverResult:
    """Minimise F(X w) + 1/2 sum_k penalty_k w_k^2 for a smooth F.

    `start` is a warm start; without it the rows are sampled for one. Stops at a gradient norm of tol relative to the
    gradient at zero, or of `gradient_norm` outright, whichever is reached first. Cost: per step and per conjugate
    gradient iteration one product with X, one with X^T and one pass over the scores.
    """
    if not objective.smooth:
        raise ValueError(
            f"newton needs a smooth objective, and {objective!r} has kinks. Use the bundle solver for it, or a smooth "
            "loss such as 'squared_hinge' or 'logistic'."
        )
    progress = progress or Progress()
    room = _COPY_PER_ROW * design.n_rows
    if start is None:
        start = _start_from_sample(objective, design, penalty, tol, max_iter, progress, np.random.default_rng(0), room)
    return _newton_on_rows(objective, design, penalty, start, tol, max_iter, progress, gradient_norm, room=room)


def _start_from_sample(
    objective: SmoothObjective,
    design: Design,
    penalty: Vector,
    tol: float,
    max_iter: int,
    progress: Progress,
    rng: np.random.Generator,
    room: int,
) -> Vector:
    """The minimiser over a sample of the rows, or zero where there are too few rows for that to pay."""
    size = int(design.n_rows * _SAMPLE_FRACTION)
    sample = objective.sample(size, rng) if size >= _SMALLEST_SAMPLE else None
    if sample is None:
        return np.zeros(design.n_columns)
    rows, sampled = sample
    part = design.rows(rows)
    start = _start_from_sample(sampled, part, penalty, tol, max_iter, progress, rng, room)
    return _newton_on_rows(sampled, part, penalty, start, max(tol, _SAMPLE_TOL), max_iter, progress, room=room).w


def _newton_on_rows(
    objective: SmoothObjective,
    design: Design,
    penalty: Vector,
    w: Vector,
    tol: float,
    max_iter: int,
    progress: Progress,
    gradient_norm: float = 0.0,
    *,
    room: int,
) -> SolverResult:
    """Newton's method on the rows of a design; `room` is how many numbers a sample of them may take up in a copy."""
    both = np.empty((2, design.n_rows))
    both[1] = objective.at(np.zeros(design.n_rows)).gradient
    s = design.scores(w)
    here = objective.at(s)
    both[0] = here.gradient
    gradient, gradient_at_zero = design.adjoints(both)
    del both
    gradient += penalty * w
    reference = float(np.linalg.norm(gradient_at_zero))
    if reference > 0.0:
        tol = max(tol, gradient_norm / reference)
    precondition: Preconditioner | None = None
    for iteration in range(max_iter + 1):
        norm = float(np.linalg.norm(gradient))
        value = here.value + 0.5 * float(penalty @ w**2)
        optimality = norm / reference if reference > 0.0 else 0.0
        progress.record(w, design.n_rows, value, optimality)
        if optimality <= tol or iteration == max_iter:
            break
        if precondition is None:
            precondition = _preconditioner(objective, design, penalty, w, here, room)
        # Superlinear far from the goal, and no further than the goal.
        accuracy = max(min(0.1, optimality**0.5), 0.5 * tol / optimality)
        p, q = _newton_direction(here, design, penalty, gradient, precondition, accuracy)
        del here
        step, here = _line_search(objective, s, q, w, p, penalty, value, float(gradient @ p))
        if step == 0.0:
            break
        w = w + step * p
        s += step * q
        gradient = design.adjoint(here.gradient) + penalty * w
    return SolverResult(w, s, value, optimality, iteration, optimality <= tol, progress.history)


def _newton_direction(
    here: Curved, design: Design, penalty: Vector, gradient: Vector, precondition: Preconditioner, accuracy: float
) -> tuple[Vector, Vector]:
    """P with H p = -gradient up to a residual of accuracy ||gradient||, and its scores X p."""
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
    if not p.any():
        # No curvature along the gradient: a step of unit length in the preconditioned metric.
        return z, design.scores(z)
    return p, scores


def _line_search(
    objective: SmoothObjective, s: Vector, q: Vector, w: Vector, p: Vector, penalty: Vector, value: float, slope: float
) -> tuple[float, Curved]:
    """The first of 1, then shrinking steps, that gives the decrease the slope promises; works on scores alone."""
    linear, quadratic = float(penalty @ (w * p)), 0.5 * float(penalty @ p**2)
    base = 0.5 * float(penalty @ w**2)
    # Differences of objective values below this are rounding.
    noise = 1e-13 * abs(value)
    step = 1.0
    for _ in range(40):
        there = objective.at(s + step * q)
        there_value = there.value + base + step * (linear + step * quadratic)
        if there_value <= value + 1e-4 * step * slope + noise:
            return step, there
        # The minimum of the parabola through value, slope and the new value, kept within a fraction of the step.
        excess = there_value - value - step * slope
        fitted = -0.5 * slope * step**2 / excess if np.isfinite(excess) and excess > 0.0 else 0.0
        step = min(max(fitted, 0.1 * step), 0.5 * step)
    return 0.0, objective.at(s)


def _preconditioner(
    objective: SmoothObjective, design: Design, penalty: Vector, w: Vector, here: Curved, room: int
) -> Preconditioner:
    """The inverse of a sampled Hessian where that matrix is small against the data, else of an estimated diagonal."""
    diagonal = _hessian_diagonal(design, penalty, here)
    if design.n_columns**2 <= _HESSIAN_ENTRIES_PER_ROW * design.n_rows:
        return _sampled_hessian(objective, design, penalty, w, here, diagonal, room)
    return lambda r: r / diagonal


def _hessian_diagonal(design: Design, penalty: Vector, here: Curved) -> Vector:
    """An estimate of the diagonal of X^T F'' X + penalty from the diagonal of F'' alone."""
    weight = here.curvature_diagonal()
    total = weight.sum()
    first, diagonal = design.moments(weight)
    if total > 0.0:
        # Pairs see differences of rows: what is common to all rows does not count. At least a hundredth is kept,
        # because the rows are centred on one mean here, and not on the mean of each row's own active pairs.
        diagonal = np.maximum(diagonal - first**2 / total, 0.01 * diagonal)
    diagonal += penalty
    lowest = 1e-8 * diagonal.max(initial=0.0)
    return np.maximum(diagonal, lowest if lowest > 0.0 else 1.0)


def _sampled_hessian(
    objective: SmoothObjective, design: Design, penalty: Vector, w: Vector, here: Curved, diagonal: Vector, room: int
) -> Preconditioner:
    d, n = design.n_columns, design.n_rows
    # Many rows make a better preconditioner, and cost little next to a pass over X as long as their copy is small.
    size = max(_HESSIAN_ROWS * d, min(3 * n // d, 4 * _HESSIAN_ROWS * d))
    sample = objective.sample(max(256, min(size, room // d)), np.random.default_rng(1))
    if sample is not None:
        rows, objective = sample
        design = design.rows(rows)
        here = objective.at(design.scores(w))
    X = design.toarray()
    hessian = np.empty((d, d))
    for k in range(0, d, 16):
        hessian[:, k : k + 16] = X.T @ here.curvature_matrix(np.ascontiguousarray(X[:, k : k + 16]))
    hessian += hessian.T
    hessian *= 0.5
    on_diagonal = np.diag_indices(d)
    hessian[on_diagonal] += penalty
    # A column that hardly varies in the sample looks flat there; the diagonal over all rows says what it really has.
    hessian[on_diagonal] = np.maximum(hessian[on_diagonal], diagonal) * (1.0 + 1e-10)
    inverse = cho_solve(cho_factor(hessian, lower=True, overwrite_a=True), np.eye(d))
    return lambda r: inverse @ r
