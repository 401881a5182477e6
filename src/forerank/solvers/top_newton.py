"""Newton's method for the top objective, with a working set of negatives.

    min  sum_i p_i l(x_i w - T) + alpha/2 ||w||^2 + l1 ||w||_1
    subject to  T >= <beta, X_neg w>  for all feasible weights beta of the negatives

The losses are smooth in (w, T), and at most as many constraints matter as there are columns. Each
iteration minimises the quadratic model of the losses under the constraints exactly: a quadratic
programme with one variable per negative in the working set (maths/top.md, eq. 4), solved by an
active-set method, or with an L1 penalty by an interior-point method. Negatives above the threshold
of its solution join the working set, until none exceeds it by much. A few iterations are enough.

Certificate: slopes of the losses and weights of the negatives are a point of the dual (li2014, eq.
6), which bounds the minimum from below; the gap is reported relative to the objective.

The hinge has no curvature. It is replaced by a quadratic around the latest slopes, whose width is
reduced as they converge (eq. 7): a proximal iteration in the dual, exact in the limit.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from forerank._typing import Vector
from forerank.design import Design
from forerank.objectives.top import Top
from forerank.solvers.base import THRESHOLD, solver
from forerank.solvers.result import Progress, SolverResult, relative_gap
from forerank.solvers.top_augmented import ProximalHinge
from forerank.solvers.top_model import THRESHOLD_ERROR, ColumnModel, Point, RowModel
from forerank.solvers.top_planes import with_cutting_planes
from forerank.solvers.working_set import WorkingSet

__all__ = ["working_set_newton"]

# Most rows and columns of the matrix that is factored, over columns or positives: about 300 MB.
_LARGEST_MATRIX = 6000
# The same where at most so many negatives leave the method of multipliers with a preconditioner of
# all of them: there it takes fewer operations from about this size on. Not for the hinge.
_LARGEST_BESIDE_FEW = 3000
_FEW_NEGATIVES = 1500
# Most extensions of the working set in an iteration, and those in which it may be reduced too.
_MOST_EXTENSIONS = 60
_EXTENSIONS_WITH_REDUCTION = 15
# An L1 penalty leaves directions without curvature. Steps are damped by a multiple of the mean
# square of each column: its lowest, first and highest value; it falls after full steps and rises
# after shortened ones, by a factor of ten.
_DAMPING = (1e-5, 1e-2, 1e3)
# Width, in units of the margin, over which the hinge is rounded at first; the factor by which each
# proximal iteration divides it; the width below which it is given up.
_FIRST_WIDTH = 0.3
_WIDTH_FACTOR = 3.0
_LEAST_WIDTH = 1e-9
# A proximal iteration ends when its own gap is at most this share of the gap of the problem.
_PROXIMAL_SHARE = 0.2
# Most halvings of a step.
_MOST_HALVINGS = 40
# Iterations in which the gap has to fall to this share of what it was, and the share of iterations
# that is left to cutting planes in any case, one in so many. With columns of large numbers even the
# lowest damping may be far above the penalty, and steps back to small weights are short.
_CHECKED_EVERY, _LEAST_PROGRESS = 40, 0.5
_LEFT_TO_PLANES = 10


def _is_affordable(top: Top, design: Design) -> bool:
    size = min(design.n_columns, top.positives.size)
    few = top.negatives.size <= _FEW_NEGATIVES and top.loss.smooth
    return size <= (min(_LARGEST_BESIDE_FEW, _LARGEST_MATRIX) if few else _LARGEST_MATRIX)


@solver("top_newton", THRESHOLD, is_affordable=_is_affordable)
def working_set_newton(
    top: Top,
    design: Design,
    alpha: float,
    *,
    l1: float = 0.0,
    start: Vector | None = None,
    start_dual: Vector | None = None,
    tol: float = 1e-4,
    max_iter: int = 200,
    progress: Progress | None = None,
) -> SolverResult:
    """Minimise the top objective plus alpha/2 ||w||^2 + l1 ||w||_1; alpha or l1 is positive.

    `start` and `start_dual` are the weights and the dual of a similar problem, such as one with
    another alpha. `tol` is the relative duality gap. Cost of an iteration: the curvature of the
    positives, m d^2 or m^3, whichever is less (only of those whose curvature changed), and a few
    products of X with a vector. Memory: the square of d or of m. Where rounding errors end it short
    of the tolerance, cutting planes follow.
    """
    progress = progress or Progress()

    def solve(n: int = max_iter - max_iter // _LEFT_TO_PLANES) -> SolverResult:
        solver = _WorkingSetNewton(top, design, alpha, l1, tol)
        return solver.run(start, start_dual, n, progress)

    if l1 > 0.0:
        return solve(max_iter)
    limits: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "progress": progress}
    return with_cutting_planes(solve, top, design, alpha, start=start, **limits)


class _WorkingSetNewton:
    def __init__(self, top: Top, design: Design, alpha: float, l1: float, tol: float) -> None:
        self.top, self.design, self.alpha, self.l1, self.tol = top, design, alpha, l1, tol
        self.loss = top.loss
        if not top.loss.smooth:
            self.loss = ProximalHinge(_FIRST_WIDTH, np.ones(top.positives.size))
        by_rows = design.n_columns > top.positives.size and l1 == 0.0
        self.model: ColumnModel | RowModel = (
            RowModel(top, design, alpha) if by_rows else ColumnModel(top, design, alpha, l1)
        )
        self.damping = _DAMPING[1]
        self.bound = 0.0
        self.dual = np.zeros(top.n_rows)
        self.beta = np.zeros(top.negatives.size)

    def run(
        self,
        start: Vector | None,
        start_dual: Vector | None,
        max_iter: int,
        progress: Progress,
    ) -> SolverResult:
        top, design = self.top, self.design
        w = np.zeros(design.n_columns) if start is None else start.copy()
        scores = design.scores(w)
        working = WorkingSet.first(top, design, w, scores)
        if start_dual is not None:
            self.start_from_dual(start_dual, working)
        point = self.point(w, scores)
        best, best_value, last_left = point, np.inf, np.inf
        for iteration in range(max_iter + 1):
            value = top.value_at(point.s) + self.penalty(point.w)
            if value < best_value:
                best, best_value = point, value
            gap = relative_gap(best_value, self.bound)
            progress.record(best.w, design.n_rows, best_value, gap)
            if gap <= self.tol or iteration == max_iter:
                break
            if iteration % _CHECKED_EVERY == 0 and self.l1 == 0.0:
                left = best_value - self.bound
                if left > _LEAST_PROGRESS * last_left:  # cutting planes take over
                    break
                last_left = left
            new = self.step(point, working)
            loss = self.loss
            if new is None and not (isinstance(loss, ProximalHinge) and loss.width >= _LEAST_WIDTH):
                gap = relative_gap(best_value, self.bound)
                progress.record(best.w, design.n_rows, best_value, gap)
                break
            point = new or point
            if isinstance(loss, ProximalHinge):
                point = self.recentred(point, best_value - self.bound, converged=new is None)
        converged, history = gap <= self.tol, progress.history
        return SolverResult(
            best.w, best.s, best_value, gap, iteration, converged, history, self.dual
        )

    def penalty(self, w: Vector) -> float:
        l1_part = self.l1 * float(np.abs(w).sum()) if self.l1 else 0.0
        return 0.5 * self.alpha * float(w @ w) + l1_part

    def point(self, w: Vector, s: Vector) -> Point:
        top, loss = self.top, self.loss
        T, _ = top.threshold(s[top.negatives])
        margin = s[top.positives] - T
        value = float(top.share @ loss.value(margin)) + self.penalty(w)
        return Point(
            w, s, T, value, -top.share * loss.slope(margin), top.share * loss.curvature(margin)
        )

    def start_from_dual(self, dual: Vector, working: WorkingSet) -> None:
        """Start with the weights of the negatives of another solution, and their lower bound."""
        on_negatives = dual[self.top.negatives]
        total = float(on_negatives.sum())
        if total > 0.0:
            self.beta = on_negatives / total
            self.model.dual_of_negatives = on_negatives.copy()
            slope = -dual[self.top.positives]
            self.raise_bound(slope)
            working.add(np.flatnonzero(on_negatives))
            if isinstance(self.loss, ProximalHinge):
                centre = np.clip(slope / self.top.share, 0.0, 1.0)
                self.loss = ProximalHinge(self.loss.width, centre)

    def step(self, point: Point, working: WorkingSet) -> Point | None:
        """The point after an iteration; None where it does not decrease the objective."""
        top, model = self.top, self.model
        model.prepare(point, self.damping)
        on_negatives = point.s[top.negatives]
        total_slope = float(point.slope.sum())
        # Except in degenerate cases, no more constraints bind than there are unknowns.
        most = min(self.design.n_columns, 200)
        for extension in range(_MOST_EXTENSIONS):
            solution = model.solve(point, working, atol=0.02 * self.tol * point.value)
            q = self.design.scores(solution.p)
            predicted = on_negatives + q[top.negatives]
            T, _ = top.threshold(predicted)
            excess = T - (point.T + solution.dT)
            solved = replace(working)  # that of this solution
            if excess * total_slope <= THRESHOLD_ERROR * max(solution.gain, self.tol * point.value):
                break
            reduce = extension < _EXTENSIONS_WITH_REDUCTION
            x, active = solution.x, solution.active
            if not working.extend(predicted, x, active, most, reduce=reduce):
                break
        if working.rows is solved.rows and working.is_large(solution.active):
            working.reduce(predicted, solution.x, solution.active)
        positive_sum = float(solution.x.sum()) > 0.0
        self.beta = solved.weights(solution.x) if positive_sum else top.threshold(predicted)[1]
        length = 1.0
        for _ in range(_MOST_HALVINGS):
            new = self.point(point.w + length * solution.p, point.s + length * q)
            if new.value <= point.value - 1e-4 * length * solution.gain:
                break
            length *= 0.5
        else:
            self.raise_bound(point.slope)
            return None
        damping = self.damping * (0.1 if length == 1.0 else 10.0)
        self.damping = min(max(damping, _DAMPING[0]), _DAMPING[2])
        # The slopes of the quadratic model at its solution match the weights of the negatives more
        # closely than those after the step.
        change = q[top.positives] - solution.dT
        modelled = np.clip(point.slope - point.curvature * change, 0.0, top.largest_slope)
        self.raise_bound(new.slope, modelled)
        return new if new.value < point.value else None

    def raise_bound(self, *slopes: Vector) -> None:
        """Raise the lower bound to the dual at the weights of the negatives and each vector of
        slopes, if that is higher.
        """
        top = self.top
        values = []
        G = np.zeros((len(slopes), top.n_rows))
        for row, slope in zip(G, slopes, strict=True):
            row[top.positives] = -slope
            row[top.negatives] = slope.sum() * self.beta
        for slope, row, r in zip(slopes, G, self.design.adjoints(G), strict=True):
            if self.alpha == 0.0:
                steepest = float(np.abs(r).max())
                shrink = 1.0 if steepest <= self.l1 else self.l1 / steepest
                value = -top.conjugate(shrink * slope)
            else:
                excess = np.maximum(np.abs(r) - self.l1, 0.0) if self.l1 else r
                value = -top.conjugate(slope) - float(excess @ excess) / (2.0 * self.alpha)
            values.append(value)
            if value > self.bound:
                self.bound, self.dual = value, row
        self.last_dual_value = values[0]

    def recentred(self, point: Point, gap: float, *, converged: bool) -> Point:
        """The point after a proximal iteration of the hinge, whose centre moves once its own
        problem is solved well enough.
        """
        loss, top = self.loss, self.top
        assert isinstance(loss, ProximalHinge)
        centre = point.slope / top.share
        cost = 0.5 * loss.width * float(top.share @ (centre - loss.centre) ** 2)
        own_gap = point.value - (self.last_dual_value - cost)
        if converged or own_gap <= _PROXIMAL_SHARE * gap:
            self.loss = ProximalHinge(loss.width / _WIDTH_FACTOR, centre)
            return self.point(point.w, point.s)
        return point
