"""Truncated Newton for smooth objectives: F(X w) + 1/2 sum_k penalty_k w_k^2.

Each step solves the Newton equation roughly, by preconditioned conjugate gradients,
and searches along the direction. Three things keep the passes over X few:

- the scores X p of the direction come out of the conjugate gradients for free, so the line search
  never touches X;
- the preconditioner is the Hessian on a small sample of the rows, factored by Cholesky, where that
  matrix is small, and
  a diagonal otherwise; with it conjugate gradients need a handful of products, also for badly
  scaled columns;
- the start comes from the same problem on a sample of the rows, itself started from a smaller one.
  The sample only
  decides where the iteration on all rows begins: the stopping rule is the gradient over all rows.

Stopping: ||gradient(w)|| <= tol ||gradient(0)||, both over all rows and with every column in its own unit
(`forerank.solvers.units`); that ratio is the certificate returned. Multiplying a dense column by a number, or adding
one to it, changes neither the steps nor the certificate.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.blas import dsymv
from scipy.linalg.lapack import dpotrf, dpotri

from forerank._typing import Vector
from forerank.design import Design
from forerank.objectives.base import Curved, SmoothObjective
from forerank.solvers.result import Progress, SolverResult, gap_bound
from forerank.solvers.units import Units, column_units

__all__ = ["NewtonPath", "extrapolate", "newton"]

Preconditioner = Callable[[Vector], Vector]

# Each sample on the way to all rows holds this fraction of the next one, and not fewer rows than
# this.
_SAMPLE_FRACTION = 1 / 8
_SMALLEST_SAMPLE = 800
# Samples are solved no further than their own noise makes sensible.
_SAMPLE_TOL = 0.03
# The sampled Hessian, d x d, is used where it is no larger than this many numbers per row of X, or
# than this in all.
_HESSIAN_ENTRIES_PER_ROW = 3
_SMALL_HESSIAN = 40_000
# An X of no more numbers than this is not sampled for it, and the Hessian is taken anew where
# conjugate gradients needed more iterations than this: on small data that costs less than the
# iterations.
_SMALL_DATA = 150_000
_MANY_CG = 3
# It is built from so many rows that a copy of them takes this many numbers per row of X, within
# these bounds.
_COPY_PER_ROW = 3
_FEWEST_PER_COLUMN = 4
_MOST_PER_COLUMN = 64
# Conjugate gradients reduce the residual of the Newton equation by this factor.
_CG_ACCURACY = 0.3
_MAX_CG = 250
# On a path of penalties each solution begins near its end, where a fine direction pays. How far the
# guide on a sample is solved, and the iterations that the preconditioner of an earlier penalty may
# cost before it is made anew.
_PATH_CG_ACCURACY = 0.1
_GUIDE_TOL = 3e-3
_MANY_CG_ON_A_PATH = 5


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
    curvature_from: SmoothObjective | None = None,
    units: Units | None = None,
) -> SolverResult:
    """Minimise F(X w) + 1/2 sum_k penalty_k w_k^2 for a smooth F.

    `start` is a warm start; without it the rows are sampled for one. Stops at a gradient norm of
    tol relative to the gradient at zero, columns in their own units, or at one of `gradient_norm`
    outright in the units of the data, whichever is reached first. Cost: per step and per conjugate
    gradient iteration one product with X, one with X^T and one pass over the scores.
    `curvature_from` is a like objective with a smoother curvature for the preconditioner, where a
    sample of rows would see too little of F''. `units` are those of the columns, where they are
    known already.
    """
    if not objective.smooth:
        raise ValueError(
            f"newton needs a smooth objective, and {objective!r} has kinks. Use the bundle solver for it, or a smooth "
            "loss such as 'squared_hinge' or 'logistic'."
        )
    units = units or column_units(objective, design)
    problem = _Problem.of(objective, units, max_iter).penalised(penalty, progress or Progress())
    precondition = None
    if start is None:
        w, precondition = _start_from_sample(problem, tol, np.random.default_rng(0))
    else:
        w = units.inwards(start)
        if curvature_from is not None:
            smoother = replace(problem, objective=curvature_from)
            precondition = _preconditioner(smoother, w, curvature_from.at(problem.design.scores(w)))
    return units.translated(_newton_on_rows(problem, w, tol, precondition, gradient_norm)[0])


class NewtonPath:
    """Minimises for one penalty after the other, at a fraction of what each would cost alone.

    Where the next solution lies is foretold in two ways: by the last solutions (`extrapolate`), and by
    the same path on a sample of the rows, which moves much like that over all rows while the
    penalty is large. Whichever was nearer the last time is believed; the sample is given up for
    good once it falls behind.
    """

    def __init__(
        self,
        objective: SmoothObjective,
        design: Design,
        max_iter: int = 100,
        units: Units | None = None,
    ) -> None:
        units = units or column_units(objective, design)
        self._problem = _Problem.of(objective, units, max_iter)
        self._reference = self._problem.reference_norm()
        # The latest solutions and their scores, in the units of the columns.
        self._trail: list[Vector] = []
        self._scores: list[Vector] = []
        self._precondition: Preconditioner | None = None
        self._guide: NewtonPath | None = None
        size = int(design.n_rows * _SAMPLE_FRACTION)
        sample = (
            self._problem.sample(size, np.random.default_rng(0))
            if size >= _SMALLEST_SAMPLE
            else None
        )
        if sample is not None:
            self._guide = NewtonPath(
                sample.objective, design, max_iter, replace(units, design=sample.design)
            )

    def step(self, penalty: Vector, *, tol: float, progress: Progress) -> SolverResult:
        """The minimum for the next penalty; parameters as in `newton`."""
        by_trail, scores = np.zeros(penalty.size), np.zeros(self._problem.design.n_rows)
        if self._trail:
            by_trail, scores = extrapolate(self._trail), extrapolate(self._trail, self._scores)
        start = by_trail
        if self._guide is not None:
            before = self._guide._trail[-1:]
            self._guide.step(penalty, tol=max(tol, _GUIDE_TOL), progress=progress)
            ahead = self._guide._trail[-1]
            by_guide = self._trail[-1] + (ahead - before[0]) if before else ahead
            start, scores = by_guide, self._problem.design.scores(by_guide)
        problem = self._problem.penalised(penalty, progress)
        result, self._precondition = _newton_on_rows(
            problem,
            start,
            tol,
            self._precondition,
            scores=scores,
            reference=self._reference,
            on_a_path=True,
        )
        if self._guide is not None and len(self._trail) > 1:
            missed = [float(np.linalg.norm(result.w - guess)) for guess in (by_guide, by_trail)]
            if missed[0] > missed[1]:
                self._guide = None
        self._trail = [*self._trail[-2:], result.w]
        self._scores = [*self._scores[-2:], result.scores]
        return problem.units.translated(result)


def extrapolate(trail: list[Vector], along: list[Vector] | None = None) -> Vector:
    """Where a path of solutions leads next, or what goes along with them, such as their scores.

    In equal ratios of alpha the steps from one solution to the next grow at first and fade away
    later. So the next step is taken to be the last one, or as much shorter as that was than the one
    before.
    """
    values = trail if along is None else along
    if len(trail) < 2:
        return values[-1].copy()
    length = 1.0
    if len(trail) > 2:
        before = float(np.linalg.norm(trail[-2] - trail[-3]))
        length = (
            min(1.0, float(np.linalg.norm(trail[-1] - trail[-2])) / before) if before > 0.0 else 0.0
        )
    return values[-1] + length * (values[-1] - values[-2])


@dataclass(frozen=True)
class _Problem:
    """What to minimise, on all rows or a sample of them, with columns in their own units.

    `room` is how many numbers a copy of rows may take up.
    """

    objective: SmoothObjective
    design: Design
    penalty: Vector
    max_iter: int
    progress: Progress
    room: int
    units: Units

    @classmethod
    def of(cls, objective: SmoothObjective, units: Units, max_iter: int) -> "_Problem":
        """The problem without a penalty."""
        design = units.design
        room = max(_COPY_PER_ROW * design.n_rows, _SMALL_DATA)
        return cls(objective, design, np.zeros(design.n_columns), max_iter, Progress(), room, units)

    def penalised(self, penalty: Vector, progress: Progress) -> "_Problem":
        """With a penalty on the weights of the columns as they are."""
        return replace(self, penalty=self.units.penalty(penalty), progress=progress)

    def reference_norm(self) -> float:
        """The gradient norm without columns, by which others are measured."""
        return self.units.reference_norm(self.objective, self.design)

    def sample(self, size: int, rng: np.random.Generator) -> "_Problem | None":
        drawn = self.objective.sample(size, rng)
        if drawn is None:
            return None
        rows, objective = drawn
        return replace(self, objective=objective, design=self.design.rows(rows))


def _start_from_sample(
    problem: _Problem, tol: float, rng: np.random.Generator
) -> tuple[Vector, Preconditioner | None]:
    """The minimiser over a sample of the rows, or zero where there are too few rows for that to
    pay.

    The preconditioner there serves for all rows; a Hessian is taken anew at the minimiser.
    """
    size = int(problem.design.n_rows * _SAMPLE_FRACTION)
    sample = problem.sample(size, rng) if size >= _SMALLEST_SAMPLE else None
    if sample is None:
        return np.zeros(problem.design.n_columns), None
    start, precondition = _start_from_sample(sample, tol, rng)
    result, precondition = _newton_on_rows(sample, start, max(tol, _SAMPLE_TOL), precondition)
    if _hessian_is_small(problem.design):
        precondition = _sampled_hessian(sample, result.w, sample.objective.at(result.scores))
    return result.w, precondition


def _newton_on_rows(
    problem: _Problem,
    w: Vector,
    tol: float,
    precondition: Preconditioner | None,
    gradient_norm: float = 0.0,
    *,
    scores: Vector | None = None,
    reference: float | None = None,
    on_a_path: bool = False,
) -> tuple[SolverResult, Preconditioner | None]:
    objective, design, penalty, progress = (
        problem.objective,
        problem.design,
        problem.penalty,
        problem.progress,
    )
    s = design.scores(w) if scores is None else scores
    here = objective.at(s)
    if not isinstance(here, Curved):
        raise ValueError(
            f"newton needs the curvature of the objective, which {objective!r} does not have. Use conjugate gradients "
            "(forerank.solvers.ncg) for it, or the loss 'logistic'."
        )
    if not np.isfinite(here.value) and w.any():  # a warm start from data of another scale
        w, s = np.zeros(w.size), np.zeros(s.size)
        here = objective.at(s)
    if reference is None:
        reference = problem.reference_norm()
    gradient = design.adjoint(here.gradient) + penalty * w
    for iteration in range(problem.max_iter + 1):
        norm = float(np.linalg.norm(gradient))
        value = here.value + 0.5 * float(penalty @ w**2)
        optimality = norm / reference if reference > 0.0 else 0.0
        progress.record(problem.units.outwards(w), design.n_rows, value, optimality)
        in_data_units = (
            float(np.linalg.norm(problem.units.unit * gradient)) if gradient_norm > 0.0 else np.inf
        )
        converged = optimality <= tol or in_data_units <= gradient_norm
        if converged or iteration == problem.max_iter:
            break
        if precondition is None:
            precondition = _preconditioner(problem, w, here)
        # A rough direction from the present scores serves as well as a fine one: the scores move
        # on. No further than the goal in the last step.
        left = max(tol / optimality, gradient_norm / in_data_units)
        accuracy = max(_PATH_CG_ACCURACY if on_a_path else _CG_ACCURACY, 0.5 * left)
        p, q, n_cg = _newton_direction(here, design, penalty, gradient, precondition, accuracy)
        small = _is_small_data(design) and _hessian_is_small(design)
        if (small and n_cg > _MANY_CG) or (on_a_path and n_cg > _MANY_CG_ON_A_PATH):
            precondition = None
        del here
        step, here = _line_search(objective, s, q, w, p, penalty, value, float(gradient @ p))
        if step == 0.0:
            break
        w = w + step * p
        s += step * q
        gradient = design.adjoint(here.gradient) + penalty * w
    gap = gap_bound(gradient, penalty, value)
    result = SolverResult(w, s, value, optimality, iteration, converged, progress.history, gap=gap)
    return result, precondition


def _newton_direction(
    here: Curved,
    design: Design,
    penalty: Vector,
    gradient: Vector,
    precondition: Preconditioner,
    accuracy: float,
) -> tuple[Vector, Vector, int]:
    """The direction p with H p = -gradient, up to a residual of accuracy ||gradient||, its scores X p, and the
    iterations that took.
    """
    p, scores = np.zeros(gradient.size), np.zeros(design.n_rows)
    residual = -gradient
    z = precondition(residual)
    direction = z.copy()
    rz = float(residual @ z)
    goal = accuracy * float(np.linalg.norm(gradient))
    n_cg = 0
    while n_cg < min(_MAX_CG, 2 * gradient.size + 10):
        n_cg += 1
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
        return z, design.scores(z), n_cg
    return p, scores, n_cg


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
    """A step that gives the decrease the slope promises, and is not much too short; works on scores
    alone.

    The first of 1, then shrinking steps, that falls enough. From there it is lengthened while the
    slope stays steep, as it does for the logistic loss on classes that can be told apart: an
    evaluation costs less than a product with X.
    """
    if not np.isfinite(q @ q):
        return 0.0, objective.at(s)
    linear, quadratic = float(penalty @ (w * p)), 0.5 * float(penalty @ p**2)
    base = 0.5 * float(penalty @ w**2)
    # Differences of objective values below this are rounding.
    noise = 1e-13 * abs(value)
    step = 1.0
    for _ in range(40):
        there = objective.at(s + step * q)
        there_value = there.value + base + step * (linear + step * quadratic)
        if there_value <= value + 1e-4 * step * slope + noise:
            break
        # The minimum of the parabola through value, slope and the new value, kept within a fraction
        # of the step.
        excess = there_value - value - step * slope
        fitted = -0.5 * slope * step**2 / excess if np.isfinite(excess) and excess > 0.0 else 0.0
        step = min(max(fitted, 0.1 * step), 0.5 * step)
    else:
        return 0.0, objective.at(s)
    for _ in range(5):
        slope_there = float(there.gradient @ q) + linear + 2.0 * step * quadratic
        if slope_there >= 0.3 * slope:
            break
        # Where the slope would vanish if it went on changing at the same rate.
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


def _preconditioner(problem: _Problem, w: Vector, here: Curved) -> Preconditioner:
    """The inverse of a sampled Hessian where that matrix is small against the data, else of an
    estimated diagonal.
    """
    if _hessian_is_small(problem.design):
        return _sampled_hessian(problem, w, here)
    # Columns are in one unit, so one number serves for all: a rare column has little curvature
    # because it is mostly zero, not because its values are small.
    scale = _hessian_diagonal(problem.design, here).mean() + problem.penalty
    return lambda r: r / scale


def _hessian_diagonal(design: Design, here: Curved) -> Vector:
    """An estimate of the diagonal of X^T F'' X from the diagonal of F'' alone."""
    weight = here.curvature_diagonal()
    total = weight.sum()
    first, diagonal, _ = design.moments(weight)
    if total > 0.0:
        # Pairs see differences of rows: what is common to all rows does not count. At least a
        # hundredth is kept, because the rows are centred on one mean here, and not on the mean of
        # each row's own active pairs.
        diagonal = np.maximum(diagonal - first**2 / total, 0.01 * diagonal)
    # A column that is zero in all these rows may not be so in others: it is taken for an average
    # one, since too high a curvature makes short steps and too low a curvature wild ones.
    unseen = diagonal <= 1e-12 * diagonal.max(initial=0.0)
    if unseen.all():
        return np.ones(diagonal.size)
    diagonal[unseen] = np.median(diagonal[~unseen])
    return diagonal


def _sampled_hessian(problem: _Problem, w: Vector, here: Curved) -> Preconditioner:
    """The inverse of the Hessian over some of the rows, its diagonal raised to that over all of
    them.
    """
    design = problem.design
    d, n = design.n_columns, design.n_rows
    diagonal = _hessian_diagonal(design, here) + problem.penalty
    # Many rows make a better preconditioner, and cost little next to a pass over X as long as their
    # copy is small.
    size = max(_FEWEST_PER_COLUMN * d, min(_COPY_PER_ROW * n // d, _MOST_PER_COLUMN * d), 256)
    if _is_small_data(design):
        size = n
    sample = problem.sample(min(size, design.rows_in_copy(problem.room)), np.random.default_rng(1))
    if sample is not None:
        design = sample.design
        here = sample.objective.at(design.scores(w))
    hessian = design.congruence(here.curvature_matrix)
    on_diagonal = np.diag_indices(d)
    # A column that hardly varies in the sample looks flat there.
    hessian[on_diagonal] = np.maximum(hessian[on_diagonal] + problem.penalty, diagonal) * (
        1.0 + 1e-8
    )
    # LAPACK leaves the inverse in the triangle of the factor, so that there is never a second
    # matrix.
    factor, failed = dpotrf(hessian, lower=1, overwrite_a=1)
    if failed:
        return lambda r: r / diagonal
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    return lambda r: dsymv(1.0, inverse, r, lower=1)
