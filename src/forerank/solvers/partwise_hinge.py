"""Minimisation of the plain hinge over rows in parts: smoothed hinges, and planes as certificate.

As in memory (`forerank.solvers.smoothing`) the kink of the hinge is replaced by a parabola of some
width, which is reduced in stages. Over many rows the smoothed objective is smooth at the scale of
any width, so that the quasi-Newton steps of `forerank.solvers.partwise` need few evaluations. Every
evaluation over all rows has the hinge itself at its point and a plane below it
(`forerank.objectives.part_planes`): the best point and the bound of all planes give the relative
duality gap, which is the certificate (maths/solvers.md, 6 and 7).
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from forerank._typing import Vector
from forerank.objectives.part_planes import HingeEvaluation, evaluate_hinge, part_line
from forerank.objectives.parts import PairParts
from forerank.solvers.checkpoints import Checkpoint, CheckpointState
from forerank.solvers.cutting_planes import CuttingPlanes
from forerank.solvers.metric import Metric
from forerank.solvers.newton import newton
from forerank.solvers.partwise import (
    AfterEvaluation,
    PartIterations,
    PartwiseProblem,
    sample_tolerance,
)
from forerank.solvers.result import Progress, SolverResult, gap_bound
from forerank.solvers.smoothing import BestPoint

__all__ = ["minimise_hinge_parts"]

# Width of the first fit of the sample, in units of the margin: at zero weights all pairs are on the
# parabola. The smallest one for single rows and groups, whose sums are not limited by cells: below,
# differences of scores are rounding error. Powers of 2.
_FIRST_WIDTH, _LEAST_WIDTH = 4.0, 2.0**-30
# Gap that smoothing may leave over the sample, and the gradient of a stage over all rows, as shares
# of the tolerance and of the gap.
_SHARE_OF_TOL, _SHARE_OF_GAP = 0.25, 0.25
# Bounds on the factor of the width from stage to stage.
_WIDTH_FACTORS = (0.125, 0.5)
# Width of the first stage over all rows, in errors of the scores of a fit on m rows,
# which are sqrt(d / m) of their deviation.
_ERRORS = 1.0
# Length of the first step of a line search, relative to that of the weights or to one margin: with
# no row on the parabola and a tiny penalty, directions are a million times as long.
_LONGEST_STEP = 8.0
# Steps of a line search, relative to the first, for which one pass has the objective.
_STEPS = 2.0 ** -np.arange(1.0, 21.0)
# Accuracy of the quadratic programme of the bound, relative to the tolerance.
_BOUND_ACCURACY = 0.02


def minimise_hinge_parts(
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
    """Minimise the mean hinge over all parts plus alpha/2 ||w||^2, to a relative duality gap of
    `tol`; arguments as for `minimise_parts`, but `after_evaluation` is called at the best point so
    far.
    """
    return _HingeIterations(
        problem, alpha, tol, progress or Progress(), after_evaluation, checkpoint
    ).run(start, max_iter)


class _HingeIterations(PartIterations):
    """A run: the stage, the best point, and the planes of all evaluations."""

    def __init__(
        self,
        problem: PartwiseProblem,
        alpha: float,
        tol: float,
        progress: Progress,
        after_evaluation: AfterEvaluation,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        super().__init__(problem, alpha, tol, progress, after_evaluation, checkpoint)
        self._noise = 0.01 * tol
        self._width, d = _FIRST_WIDTH, self._unit.size - problem.intercept
        self._width_of_pass = self._width
        self._planes = CuttingPlanes(alpha, d)
        nothing = np.zeros(self._unit.size)
        self._best = BestPoint(nothing, np.empty(0), np.inf)

    def _reference_norm(self) -> float:
        """Zero where the columns say nothing; the certificate is the duality gap."""
        parts = self._problem.parts
        grouped = isinstance(parts, PairParts) and parts.grouped
        return 1.0 if grouped else super()._reference_norm()

    def _sample_objective(self) -> Any:
        objective = self._problem.sample_objective()
        return None if objective is None else objective.smoothed(self._width)

    def _evaluate(self, w: Vector) -> HingeEvaluation:
        """The smoothed objective at the width of the stage; notes what it says about the hinge."""
        here = self._evaluate_at(w, self._width)
        self._note(w, here)
        return here

    def _evaluate_at(self, w: Vector, width: float) -> HingeEvaluation:
        problem = self._problem
        self._width_of_pass = width
        return evaluate_hinge(
            problem.parts, self._point(w), problem.over_parts, width, one_pass=problem.one_pass
        )

    def _note(self, w: Vector, here: HingeEvaluation) -> None:
        """Take the plane of an evaluation, and its point where it is the best so far."""
        best = self._best
        value = here.hinge + 0.5 * float(self._penalty @ w**2)
        if value < best.value:
            best.w, best.value = w, value
            known = replace(here, narrower=None)  # which holds sums of rows
            self._after_evaluation(self._to_columns(w), None, self._point(w), known)
        if here.plane is not None:
            d = self._unit.size - self._problem.intercept
            self._planes.add(self._unit[:d] * here.plane[:d], here.offset)
            accuracy = _BOUND_ACCURACY * self._tol * best.value
            best.bound = max(best.bound, self._planes.minimum(accuracy)[1])

    def _begin(self, start: Vector | None) -> tuple[Vector, Any, Metric]:
        if start is not None:
            self._set_width(self._to_standardised(start))
        return super()._begin(start)

    def _set_width(self, w: Vector) -> bool:
        """Reduce the width to one whose effect on the sample at w is small; whether it changed."""
        objective = self._problem.sample_objective()
        if objective is None:
            return False
        s, before = self._point(w).design(self._problem.sample).scores(w), self._width
        width = max(self._sample_width(objective, s, w), self._score_error(s, w.size))
        self._width = min(width, before)
        return self._width < before

    def _start(self) -> Vector:
        """The minimiser over the sample, at a width whose effect there is below the tolerance."""
        objective, w = self._problem.sample_objective(), np.zeros(self._unit.size)
        if objective is None or not self._reference > 0.0:
            return w
        design = self._point(w).design(self._problem.sample)
        tol = sample_tolerance(self._problem, self._unit.size, self._tol)
        w = newton(objective.smoothed(self._width), design, self._penalty, tol=tol).w
        while self._set_width(w):
            smoothed = objective.smoothed(self._width)
            w = newton(smoothed, design, self._penalty, start=w, tol=tol).w
        return w

    def _score_error(self, s: Vector, d: int) -> float:
        """A power of 2 that is large beside the error of the scores s of the sample from a fit on
        it: steps at smaller widths would be far from the solution.
        """
        if s.size >= self._problem.moments.n_rows:
            return _LEAST_WIDTH
        error = _ERRORS * float(s.std()) * np.sqrt(d / s.size)
        return float(2.0 ** np.ceil(np.log2(max(error, _LEAST_WIDTH))))

    def _sample_width(self, objective: Any, s: Vector, w: Vector) -> float:
        """The largest width, up to the present one, with a small effect on the sample."""
        hinge, width = objective.at(s).value, self._width
        allowed = _SHARE_OF_TOL * self._tol * (hinge + 0.5 * float(self._penalty @ w**2))
        while width > _LEAST_WIDTH:
            there = objective.smoothed(width).at(s)
            if hinge - there.total_slope() - float(there.gradient @ s) <= allowed:
                break
            width *= 0.5
        return width

    def _first(self, w: Vector) -> tuple[HingeEvaluation, Metric]:
        here = self._evaluate(w)
        return here, self._metric_at(w, here)

    def _metric_at(self, w: Vector, here: HingeEvaluation) -> Metric:
        """The Hessian over all rows where the evaluation has it, else that over the sample."""
        if here.hessian is None:
            return self._metric(w)
        least = np.zeros(w.size)
        if self._problem.intercept:
            # Beyond the margin of all rows of a class there is a slope and no curvature: a step of
            # one margin then, in place of one as long as the gradient.
            least[-1] = abs(here.gradient[-1])
        return Metric(here.hessian.copy(), least, self._penalty)

    def _state(self) -> dict[str, Any]:
        """The stage, the best point and the planes, for a checkpoint."""
        best, planes = self._best, self._planes.state()
        numbers = self._width, self._width_of_pass, best.value, best.bound
        return {"numbers": np.array(numbers), "best": best.w, **planes}

    def _continue(self, saved: CheckpointState) -> tuple[Vector, HingeEvaluation, Metric]:
        stage, best = saved.stage, self._best
        self._width, width_of_pass, best.value, best.bound = stage["numbers"].tolist()
        best.w = stage["best"]
        self._planes.restore(stage)
        metric = self._metric_of(saved)
        here = self._evaluate_at(saved.w, width_of_pass)
        if width_of_pass > self._width:
            # None where the pass did not sum the rows on nodes, as on Dask collections.
            found = None if here.narrower is None else here.narrower(self._width)
            here = self._evaluate_at(saved.w, self._width) if found is None else found
        known = here if np.array_equal(best.w, saved.w) else HingeEvaluation(np.inf, best.w)
        self._after_evaluation(self._to_columns(best.w), None, self._point(best.w), known)
        return saved.w, here, metric

    def run(self, start: Vector | None, max_iter: int) -> SolverResult:
        """Iterations from the start until the gap is within the tolerance."""
        saved, best = self._saved, self._best
        w, here, metric = self._begin(start) if saved is None else self._continue(saved)
        first = w if saved is None else saved.metric_point
        n_before = 0 if saved is None else min(saved.iteration, max_iter)
        for iteration in range(n_before, max_iter + 1):
            best.n_iter = iteration
            columns = self._to_columns(best.w)
            self._progress.record(columns, self._problem.moments.n_rows, best.value, best.gap)
            self._save(
                CheckpointState(w, metric.state(), first, self._reference, iteration, self._state())
            )
            if best.gap <= self._tol or iteration == max_iter:
                break
            gradient = here.gradient + self._penalty * w
            found = None
            if not self._is_small(gradient):
                p = -metric(gradient)
                found = self._line_search(w, p, self._value(w, here), float(gradient @ p))
            if found is not None:
                step, there = found
                w = w + step * p
                if there.hessian is None:
                    metric.update(step * p, there.gradient + self._penalty * w - gradient)
                else:
                    metric, first = self._metric_at(w, there), w
                here = there
                continue
            if not self._reduce_width(here):
                break
            here = self._narrower(w, here)
            metric, first = self._metric_at(w, here), w
        return SolverResult(
            self._to_columns(best.w), np.empty(0), best.value, best.gap, best.n_iter,
            best.gap <= self._tol, self._progress.history,
        )  # fmt: skip

    def _line_search(
        self, w: Vector, p: Vector, value: float, slope: float
    ) -> tuple[float, HingeEvaluation] | None:
        """A step with a smaller smoothed objective, and the evaluation there. For single rows and
        groups one more pass has the objective at many steps; pairs over all rows are tried one step
        after the other.
        """
        problem, parts = self._problem, self._problem.parts
        if isinstance(parts, PairParts) and not parts.grouped:
            return super()._line_search(w, p, value, slope)  # type: ignore[return-value]
        length = _LONGEST_STEP * max(float(np.linalg.norm(w)), 1.0)
        first = min(1.0, length / float(np.linalg.norm(p)))
        there = self._evaluate(w + first * p)
        if self._value(w + first * p, there) <= value + 1e-4 * first * slope:
            return first, there
        steps = first * _STEPS
        task = partial(
            part_line, point=self._point(w), parts=parts, width=self._width, p=p, steps=steps
        )
        values = problem.over_parts(task) / there.total
        values += 0.5 * np.array([self._penalty @ (w + step * p) ** 2 for step in steps])
        step = float(steps[np.argmin(values)])
        if not values.min() < value:
            return None
        return step, self._evaluate(w + step * p)

    def _is_small(self, gradient: Vector) -> bool:
        """Whether the gradient is a small part of the gap; along the intercept, which has no
        penalty, for a step of one margin.
        """
        d = self._unit.size - self._problem.intercept
        left = gap_bound(gradient[:d], self._penalty[:d], np.inf)
        left = max(left, float(np.abs(gradient[d:]).sum()))
        return left <= _SHARE_OF_GAP * self._best.gap * self._best.value

    def _reduce_width(self, here: HingeEvaluation) -> bool:
        """Begin the next stage; False where the width is the smallest, or the last evaluations have
        reduced the gap to the tolerance.
        """
        if self._best.gap <= self._tol:
            return False
        least, most = _WIDTH_FACTORS
        factor = np.clip(np.sqrt(0.5 * self._tol / self._best.gap), least, most)
        width = self._width * 2.0 ** np.floor(np.log2(factor))
        width = max(width, here.least_width, _LEAST_WIDTH)
        if width >= self._width:
            return False
        self._width = float(width)
        return True

    def _narrower(self, w: Vector, here: HingeEvaluation) -> HingeEvaluation:
        """The evaluation at the same point and the new width."""
        found = None if here.narrower is None else here.narrower(self._width)
        if found is None:
            return self._evaluate(w)
        self._note(w, found)
        return found
