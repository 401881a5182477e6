"""Minimisation over rows in parts, which counts passes over them: quasi-Newton steps from a sample.

A pass over rows that do not fit into memory costs more than anything that is done with a sample of
them in memory. So the start is the minimiser over a sample, the metric is the Hessian there, of the
sample or of all rows in the passes of the first evaluation, and every evaluation over all rows
improves it (BFGS, `Metric`). An evaluation is one pass; for pairs over all rows it is two, or one
with an error that is small beside the gradient (`forerank.objectives.parts`). The certificate is
that of Newton's method: the gradient norm over all rows, columns in their units, relative to that
at zero weights.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from forerank._typing import Vector
from forerank.design import Design
from forerank.objectives.allpairs import AllPairs
from forerank.objectives.part_columns import ColumnMoments
from forerank.objectives.part_hessians import evaluate_with_hessian
from forerank.objectives.parts import (
    Evaluation,
    OverParts,
    PairParts,
    Point,
    PointParts,
    Rows,
    evaluate,
)
from forerank.objectives.pointwise import Pointwise
from forerank.solvers.checkpoints import Checkpoint, CheckpointState
from forerank.solvers.metric import Metric
from forerank.solvers.newton import newton
from forerank.solvers.result import GRADIENT_NORM, Progress, SolverResult, gap_bound

__all__ = [
    "AfterEvaluation",
    "PartIterations",
    "PartwiseProblem",
    "minimise_parts",
    "sample_tolerance",
]

# Columns up to which a Hessian over the sample is computed (8 MB); beyond, conjugate gradients
# solve with it to this residual in at most so many products with the sample, which are in memory.
_MOST_COLUMNS = 1000
_CG_ACCURACY, _MOST_PRODUCTS = 1e-3, 200
# Columns up to which the Hessian may be computed over all rows, and the rows of the sample per
# column, counted by their share in the variation of the column, below which it is.
_FEW_COLUMNS, _ROWS_PER_COLUMN = 300, 20
# Rows of the sample for that count.
_COUNTED_ROWS = 2**13
# Tolerance of the fit on the sample, relative to its sampling error, and the least one.
_SAMPLE_TOL, _LEAST_SAMPLE_TOL = 0.1, 1e-7
# Decrease that may still be predicted at the end, as in Newton's method, relative to tol times the
# objective.
_DECREASE = 3.0
# Allowed error of the gradient of an evaluation, relative to the tolerance.
_ACCURACY = 0.3
# The same relative to the gradient, where less accurate evaluations need fewer passes.
_SHARE_OF_GRADIENT = 0.1
# Error of a value from tables, relative to it.
_NOISE = 1e-9
# Ratio of a column's variation in the sample to that over all rows below which the sample's
# curvature of the column is not used.
_SEEN = 0.25
# Most evaluations of a line search.
_MOST_TRIALS = 12

AfterEvaluation = Callable[[Vector, Metric | None, Point, Evaluation], None]


@dataclass(frozen=True)
class PartwiseProblem:
    """An objective over rows in parts.

    Attributes
    ----------
    parts : PairParts or PointParts
        The objective.
    over_parts : callable
        ``over_parts(function)`` is the sum of ``function(rows)`` over all parts.
    moments : ColumnMoments
        Of all rows, class weights included.
    sample : Rows
        Rows in memory, with weights such that every class has its share of all rows.
    intercept : bool
        Whether there is a last column of ones, without a penalty.
    one_pass : bool
        Whether an evaluation may sum the rows on nodes, so that pairs over all rows need one pass
        and not two where that is accurate enough. The sums have megabytes.
    """

    parts: PairParts | PointParts
    over_parts: OverParts
    moments: ColumnMoments
    sample: Rows
    intercept: bool = False
    one_pass: bool = False

    def sample_objective(self) -> Any:
        """The objective on the sample."""
        rows, parts = self.sample, self.parts
        if isinstance(parts, PairParts):
            group = rows.group if parts.grouped else None
            found = AllPairs(
                rows.codes, parts.loss, weight=rows.weight, group=group, edges=parts.edges
            )
            return found if found.blocks.n_blocks else None
        if np.unique(rows.codes).size != 2:
            return None
        return Pointwise(rows.codes == 1, parts.loss, weight=parts.weight_of(rows))


def minimise_parts(
    problem: PartwiseProblem,
    alpha: float,
    *,
    start: Vector | None = None,
    tol: float = 1e-3,
    max_iter: int = 200,
    progress: Progress | None = None,
    after_evaluation: AfterEvaluation = lambda w, metric, point, here: None,
    checkpoint: Checkpoint | None = None,
) -> SolverResult:
    """Minimise the mean loss over all parts plus alpha/2 ||w||^2.

    `start` has weights of the original columns; without it, the minimiser over the sample is the
    start. `scores` of the result is empty. `after_evaluation` is called at every accepted point
    with the weights of the original columns, the metric, the point and the evaluation there. With
    a `checkpoint`, the run continues from its file where there is one, whatever the start, and
    writes it at every accepted point; the caller removes it.
    """
    return PartIterations(
        problem, alpha, tol, progress or Progress(), after_evaluation, checkpoint
    ).run(start, max_iter)


def sample_tolerance(problem: PartwiseProblem, n_columns: int, tol: float) -> float:
    """Tolerance of a fit on the sample for one over all rows to `tol`."""
    n_rows = problem.sample.n_rows
    if n_rows < problem.moments.n_rows:
        tol = _SAMPLE_TOL * np.sqrt(n_columns / max(n_rows, 1))
    return float(np.clip(tol, _LEAST_SAMPLE_TOL, 1e-2))


class _SampleMetric(Metric):
    """The Hessian over a sample as products, with a preconditioner on its diagonal."""

    def __init__(
        self, here: Any, design: Design, diagonal: Vector, least: Vector, penalty: Vector
    ) -> None:
        self._own_diagonal = diagonal.copy()
        super().__init__(diagonal, least, penalty)
        self._here, self._design = here, design

    def state(self) -> dict[str, Vector]:
        """Without the Hessian, which is a product with the sample."""
        return {name: value for name, value in super().state().items() if name != "hessian"}

    def _inverse(self, r: Vector) -> Vector:
        """By conjugate gradients."""
        p, residual = np.zeros(r.size), r.copy()
        z = residual / self._diagonal
        direction, rz = z.copy(), float(residual @ z)
        goal = _CG_ACCURACY * float(np.linalg.norm(r))
        # Where the sample has no curvature, the diagonal keeps the matrix definite.
        missing = np.maximum(self._hessian - self._own_diagonal, 0.0)
        for _ in range(_MOST_PRODUCTS):
            scores = self._design.scores(direction)
            product = self._design.adjoint(self._here.curvature_product(scores))
            product += (self._penalty + missing) * direction
            curvature = float(direction @ product)
            if not curvature > 0.0:
                break
            p += (rz / curvature) * direction
            residual -= (rz / curvature) * product
            if np.linalg.norm(residual) <= goal:
                break
            z = residual / self._diagonal
            rz, previous = float(residual @ z), rz
            direction = z + (rz / previous) * direction
        return p if p.any() else r / self._diagonal


class PartIterations:
    """A run: units, reference and metric, and the evaluations so far."""

    # Error of a value, relative to it.
    _noise = _NOISE

    def __init__(
        self,
        problem: PartwiseProblem,
        alpha: float,
        tol: float,
        progress: Progress,
        after_evaluation: AfterEvaluation,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._problem, self._alpha, self._tol = problem, alpha, tol
        self._progress, self._after_evaluation = progress, after_evaluation
        self._checkpoint = checkpoint
        self._saved = None if checkpoint is None else checkpoint.load()
        moments = problem.moments
        self._mean, self._unit = moments.units(problem.parts, problem.intercept)
        self._second_moment = moments.second_moment(self._mean, self._unit)
        d = self._unit.size
        penalty = np.full(d, alpha)
        if problem.intercept:
            penalty[-1] = 0.0
        with np.errstate(over="ignore"):
            self._penalty = np.minimum(penalty / self._unit / self._unit, np.finfo(float).max)
        self._reference = self._saved.reference if self._saved else self._reference_norm()

    def _point(self, w: Vector) -> Point:
        return Point(w, self._mean, self._unit, self._problem.intercept)

    def _accuracy(self, w: Vector) -> dict[str, Any]:
        allowed = _ACCURACY * self._tol * self._reference

        def enough(gradient: Vector) -> float:
            norm = float(np.linalg.norm(gradient + self._penalty * w))
            return max(allowed, _SHARE_OF_GRADIENT * norm)

        return {
            "accuracy": allowed,
            "second_moment": self._second_moment,
            "enough": enough if self._problem.one_pass else None,
        }

    def _evaluate(self, w: Vector) -> Evaluation:
        problem = self._problem
        return evaluate(problem.parts, self._point(w), problem.over_parts, **self._accuracy(w))

    def _first(self, w: Vector) -> tuple[Evaluation, Metric]:
        """The evaluation at the start and the metric there: the Hessian over all rows, in the same
        passes, where that of the sample is not accurate.
        """
        problem, d = self._problem, self._unit.size
        rows, point = problem.sample, self._point(w)
        if rows.n_rows and d <= _FEW_COLUMNS and self._is_rough(point.design(rows)):
            here, hessian = evaluate_with_hessian(
                problem.parts,
                point,
                problem.over_parts,
                rows,
                weight=problem.moments.weight,
                **self._accuracy(w),
            )
            if hessian is not None and np.isfinite(hessian).all():
                return here, Metric(hessian, np.zeros(d), self._penalty)
        else:
            here = self._evaluate(w)
        return here, self._metric(w)

    def _is_rough(self, design: Design) -> bool:
        """Whether few rows of the sample have most of the variation of some column."""
        if design.n_rows >= self._problem.moments.n_rows:
            return False
        step = -(-design.n_rows // _COUNTED_ROWS)
        X = design.rows(np.arange(0, design.n_rows, step)).columns(0, design.n_columns)
        square, fourth = (X**2).sum(axis=0), (X**4).sum(axis=0)
        effective = np.divide(square**2, fourth, out=np.zeros(square.size), where=fourth > 0.0)
        return bool(step * effective.min() < _ROWS_PER_COLUMN * design.n_columns)

    def _sample_objective(self) -> Any:
        """The objective on the sample that the metric is for."""
        return self._problem.sample_objective()

    def _reference_norm(self) -> float:
        parts = self._problem.parts
        if isinstance(parts, PairParts) and parts.grouped:
            self._reference = 0.0
            return float(np.linalg.norm(self._evaluate(np.zeros(self._unit.size)).gradient))
        gradient = self._problem.moments.zero_gradient(parts, self._mean, self._unit)
        return float(np.linalg.norm(gradient))

    def _to_columns(self, w: Vector) -> Vector:
        """The weights of the original columns."""
        out = w / self._unit
        if self._problem.intercept:
            out[-1] -= self._mean @ out
        return out

    def _to_standardised(self, w: Vector) -> Vector:
        out = self._unit * w
        if self._problem.intercept:
            out[-1] += self._mean @ w
        return out

    def _start(self) -> Vector:
        """The minimiser over the sample."""
        objective = self._problem.sample_objective()
        if objective is None or not self._reference > 0.0:
            return np.zeros(self._unit.size)
        tol = sample_tolerance(self._problem, self._unit.size, self._tol)
        design = self._point(np.zeros(self._unit.size)).design(self._problem.sample)
        return newton(objective, design, self._penalty, tol=tol).w

    def _metric(self, w: Vector) -> Metric:
        """The Hessian over the sample at w."""
        rows, objective = self._problem.sample, self._sample_objective()
        d = self._unit.size
        if objective is None:
            return Metric(np.full(d, 1.0), np.zeros(d), self._penalty)
        design = self._point(w).design(rows)
        s = design.scores(w)
        here = objective.at(s)
        if d <= _MOST_COLUMNS:
            hessian = objective.hessian(s, design)
            diagonal = np.diagonal(hessian)
        else:
            weight = here.curvature_diagonal()
            first, diagonal, _ = design.moments(weight)
            mean = first / max(float(weight.sum()), 1e-300)
            diagonal = np.maximum(diagonal - first * mean, 0.01 * diagonal)
        # A column that varies less in the sample than over all rows gets a typical curvature.
        count = np.full(rows.n_rows, 1.0 / max(rows.n_rows, 1))
        first, second, stored = design.moments(count)
        seen = (second - first**2) / np.where(stored > 0.0, stored, 1.0) >= 0.5 * _SEEN
        if self._problem.intercept:
            seen[-1] = True
        typical = float(np.median(diagonal[seen])) if seen.any() else 1.0
        least = np.where(seen, 0.0, typical)
        if d <= _MOST_COLUMNS:
            return Metric(hessian, least, self._penalty)
        return _SampleMetric(here, design, diagonal, least, self._penalty)

    def _value(self, w: Vector, here: Evaluation) -> float:
        return here.value + 0.5 * float(self._penalty @ w**2)

    def _begin(self, start: Vector | None) -> tuple[Vector, Evaluation, Metric]:
        """The first point, and evaluation and metric there."""
        w = self._start() if start is None else self._to_standardised(start)
        here, metric = self._first(w)
        if not np.isfinite(here.value) and w.any():
            w = np.zeros(w.size)
            here, metric = self._first(w)
        return w, here, metric

    def _save(self, state: CheckpointState) -> None:
        if self._checkpoint is not None:
            self._checkpoint.save(state)

    def _continue(self, saved: CheckpointState) -> tuple[Vector, Evaluation, Metric]:
        """The point of a checkpoint, the evaluation there and the metric of the checkpoint."""
        metric = self._metric_of(saved)
        return saved.w, self._evaluate(saved.w), metric

    def _metric_of(self, saved: CheckpointState) -> Metric:
        """The metric of a checkpoint."""
        if "hessian" in saved.metric:
            metric = Metric(saved.metric["hessian"], np.zeros(saved.w.size), self._penalty)
        else:
            metric = self._metric(saved.metric_point)
        metric.restore(saved.metric)
        return metric

    def run(self, start: Vector | None, max_iter: int) -> SolverResult:
        """Iterations from the start, until both stopping rules of Newton's method hold."""
        w, here, metric = self._begin(start) if self._saved is None else self._continue(self._saved)
        first = w if self._saved is None else self._saved.metric_point
        n_before = 0 if self._saved is None else min(self._saved.iteration, max_iter)
        reference, tol = self._reference, self._tol
        for iteration in range(n_before, max_iter + 1):
            value = self._value(w, here)
            gradient = here.gradient + self._penalty * w
            norm = float(np.linalg.norm(gradient)) + here.error
            optimality = norm / reference if reference > 0.0 else 0.0
            columns = self._to_columns(w)
            self._progress.record(columns, self._problem.moments.n_rows, value, optimality)
            self._after_evaluation(columns, metric, self._point(w), here)
            self._save(CheckpointState(w, metric.state(), first, reference, iteration))
            p = -metric(gradient)
            converged = optimality <= tol
            small = _DECREASE * tol * value if self._penalty.any() else np.inf
            decrease = min(gap_bound(gradient, self._penalty, value), -0.5 * float(gradient @ p))
            if (converged and decrease <= small) or iteration == max_iter:
                break
            found = self._line_search(w, p, value, float(gradient @ p))
            if found is None:
                break
            step, there = found
            w = w + step * p
            metric.update(step * p, there.gradient + self._penalty * w - gradient)
            here = there
        gap = gap_bound(gradient, self._penalty, value)
        return SolverResult(
            self._to_columns(w), np.empty(0), value, optimality, iteration, converged,
            self._progress.history, None, gap, GRADIENT_NORM,
        )  # fmt: skip

    def _line_search(
        self, w: Vector, p: Vector, value: float, slope: float
    ) -> tuple[float, Evaluation] | None:
        """A step that decreases the objective sufficiently (Armijo), and the evaluation there;
        where values differ by rounding errors only, one after which the slope is smaller.
        """
        step, noise = 1.0, 1e-12 * abs(value)
        for _ in range(_MOST_TRIALS):
            there = self._evaluate(w + step * p)
            there_value = self._value(w + step * p, there)
            if there_value <= value + 1e-4 * step * slope + noise:
                return step, there
            there_slope = float((there.gradient + self._penalty * (w + step * p)) @ p)
            if there_value <= value + self._noise * abs(value) and there_slope <= -0.9998 * slope:
                return step, there
            excess = there_value - value - step * slope
            known = np.isfinite(excess) and excess > 0.0
            fitted = -0.5 * slope * step**2 / excess if known else 0.0
            step = min(max(fitted, 0.1 * step), 0.5 * step)
        return None
