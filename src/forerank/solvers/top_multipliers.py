"""Method of multipliers for the top objective: many columns, many positives, or many groups.

    min  sum_i p_i l(x_i w - T_q(i)) + alpha/2 ||w||^2
    subject to  T_q >= <beta, X_neg w>  for all feasible weights beta of the negatives of group q

The constraints are replaced by an augmented Lagrangian (`forerank.solvers.top_augmented`), a smooth
function of the scores, which Newton's method minimises; then its centre moves to the dual variables
found, and sigma grows. That is a proximal iteration in the dual, exact in the limit at a moderate
sigma. The Newton equation is solved by conjugate gradients, products with X only, with one of two
preconditioners:

- few columns: the Hessian itself;
- many columns: the part of the negatives between their bounds, exactly, through the inner products
  of their rows (the Woodbury identity), and one number for the positives. That part alone grows
  with sigma; the rest is as well conditioned as a fit of single rows.

Certificate: the gradient of the augmented Lagrangian is a point of the dual (li2014, eq. 6), which
bounds the minimum from below at every step; the gap is reported relative to the objective. The
hinge is replaced by a quadratic around its latest slopes in the same way (maths/top.md, eq. 7).
"""

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array

from forerank._sorting import largest
from forerank._typing import Index, Vector
from forerank.design import Design
from forerank.losses import Loss
from forerank.objectives.top import TopWithinGroups
from forerank.solvers.base import THRESHOLDS, solver
from forerank.solvers.newton import Preconditioner, newton_direction
from forerank.solvers.result import Progress, SolverResult, relative_gap
from forerank.solvers.top_augmented import AugmentedTop, AugmentedTopLinearization, ProximalHinge
from forerank.solvers.top_planes import with_cutting_planes

__all__ = ["method_of_multipliers"]

# Sigma at first, in units of alpha over the mean squared distance of the negatives from their mean:
# there the quadratic term of the dual and the penalty have the same curvature.
_FIRST_SIGMA = 1.0
# Least sigma at first, in units of the mean dual variable of a negative at zero weights, which is
# reached within ten margins then.
_LEAST_SIGMA = 0.1
# Factor of sigma, and divisor of the width of the hinge, from one centre to the next: with larger
# ones many rows change sides, and a centre takes more steps.
_SIGMA_FACTOR = 1.5
# The factor of sigma where the preconditioner leaves out free negatives: conjugate gradients take
# more iterations the larger it is.
_SLOW_FACTOR = 1.2
# Width, in units of the margin, over which the hinge is rounded at first, and the least one.
_FIRST_WIDTH = 0.3
_LEAST_WIDTH = 1e-9
# The centre moves when the gap of its own problem is at most this share of the gap.
_CENTRE_SHARE = 0.2
# Factor by which conjugate gradients reduce the residual of the Newton equation.
_CG_ACCURACY = 0.3
# Most columns for which the Hessian is the preconditioner: 8 MB.
_MOST_COLUMNS = 1000
# Most rows in the other preconditioner, whose matrix has the square of that: 18 MB.
_MOST_ROWS = 1500
# Largest ratio of terms in that matrix, against rounding errors.
_LARGEST_COUPLING = 1e6
# Numbers (8 bytes each) in a dense copy of rows.
_CHUNK_ENTRIES = 2**21
# The line search ends where the slope is at most this share of the first.
_SLOPE_LEFT = 0.1
_MOST_TRIALS = 40


@solver("top_multipliers", THRESHOLDS)
def method_of_multipliers(
    top: TopWithinGroups,
    design: Design,
    alpha: float,
    *,
    start: Vector | None = None,
    start_dual: Vector | None = None,
    tol: float = 1e-4,
    max_iter: int = 500,
    progress: Progress | None = None,
) -> SolverResult:
    """Minimise the top objective, within groups or over all rows, plus alpha/2 ||w||^2.

    `start` and `start_dual` are the weights and the dual of a similar problem. `tol` is the
    relative duality gap, `max_iter` the most Newton steps. Cost of a step: two products with X for
    each iteration of conjugate gradients, and the preconditioner: n d^2 for few columns, else k^3
    for k rows with a curvature, at most 1,500. Memory: the square of d or of k. Where rounding
    errors end it short of the tolerance, cutting planes follow.
    """
    if not alpha > 0.0:
        raise ValueError(f"top_multipliers needs alpha > 0 for its dual; got alpha={alpha!r}.")
    progress = progress or Progress()

    def solve() -> SolverResult:
        return _Multipliers(top, design, alpha, start, start_dual).run(tol, max_iter, progress)

    limits: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "progress": progress}
    return with_cutting_planes(solve, top, design, alpha, start=start, **limits)


class _Multipliers:
    """Present point, its augmented Lagrangian, and the best point with its bound."""

    def __init__(
        self,
        top: TopWithinGroups,
        design: Design,
        alpha: float,
        start: Vector | None,
        start_dual: Vector | None,
    ) -> None:
        self.top, self.design, self.alpha = top, design, alpha
        self.w = np.zeros(design.n_columns) if start is None else start.copy()
        self.s = design.scores(self.w)
        dual = np.zeros(top.n_rows) if start_dual is None else start_dual
        loss: Loss = top.loss
        if not loss.smooth:
            centre = np.ones(top.share.size)
            if start_dual is not None:
                centre = np.clip(-dual[top.positives] / top.share, 0.0, 1.0)
            loss = ProximalHinge(_FIRST_WIDTH, centre)
        self.penalty = np.full(design.n_columns, alpha)
        self.precondition = (
            _ColumnPreconditioner(top, design, alpha)
            if design.n_columns <= _MOST_COLUMNS
            else _RowPreconditioner(top, design, alpha)
        )
        slopes = -top.share * top.loss.slope(np.zeros(top.share.size))
        sigma = max(
            _FIRST_SIGMA * alpha / _mean_square(design, top.negatives),
            _LEAST_SIGMA * float(slopes.sum()) / top.negatives.size,
        )
        self.objective = AugmentedTop(top, loss, np.maximum(dual[top.negatives], 0.0), sigma)
        self.best_w, self.best_s, self.best_value = self.w, self.s, np.inf
        self.bound, self.dual = 0.0, dual
        self.evaluate(self.objective.at(self.s))

    def evaluate(self, here: AugmentedTopLinearization) -> None:
        """Take the linearisation at the present point; raise the bound by its dual variables."""
        self.here, r = here, self.design.adjoint(here.gradient)
        self.gradient = r + self.alpha * self.w
        squares = 0.5 * self.alpha * float(self.w @ self.w)
        self.value = here.value + squares
        self.own_gap = float(self.gradient @ self.gradient) / (2.0 * self.alpha)
        bound = -self.top.conjugate(here.slope) - float(r @ r) / (2.0 * self.alpha)
        if bound > self.bound:
            self.bound, self.dual = bound, here.gradient
        value = self.top.value_at(self.s) + squares
        if value < self.best_value:
            self.best_w, self.best_s, self.best_value = self.w, self.s, value

    def run(self, tol: float, max_iter: int, progress: Progress) -> SolverResult:
        """Newton steps and moves of the centre until the gap is at most `tol`."""
        failed = 0  # steps without a decrease, each at a new centre
        for iteration in range(max_iter + 1):
            gap = relative_gap(self.best_value, self.bound)
            progress.record(self.best_w, self.design.n_rows, self.best_value, gap)
            if gap <= tol or iteration == max_iter or failed > 2:
                break
            if failed or self.own_gap <= _CENTRE_SHARE * (self.best_value - self.bound):
                self.move_centre()
            failed = 0 if self.step() else failed + 1
        return SolverResult(
            self.best_w, self.best_s, self.best_value, gap, iteration, gap <= tol,
            progress.history, self.dual,
        )  # fmt: skip

    def move_centre(self) -> None:
        """The augmented Lagrangian around the present dual variables, with a larger sigma."""
        old, here, loss = self.objective, self.here, self.objective.loss
        if isinstance(loss, ProximalHinge):
            centre = np.clip(here.slope / self.top.share, 0.0, 1.0)
            loss = ProximalHinge(max(loss.width / _SIGMA_FACTOR, _LEAST_WIDTH), centre)
        factor = _SIGMA_FACTOR if self.precondition.covers(here) else _SLOW_FACTOR
        sigma = factor * old.sigma
        self.objective = AugmentedTop(self.top, loss, here.b, sigma, here.T)
        self.evaluate(self.objective.at(self.s))

    def step(self) -> bool:
        """A Newton step; whether it decreased the augmented Lagrangian."""
        precondition = self.precondition.at(self.here)
        here: Any = self.here
        p, q = newton_direction(
            here, self.design, self.penalty, self.gradient, precondition, _CG_ACCURACY
        )
        slope = float(self.gradient @ p)
        if not slope < 0.0:
            return False
        length, there = self._search(p, q, slope)
        if there is None:
            return False
        self.w, self.s = self.w + length * p, self.s + length * q
        self.evaluate(there)
        return True

    def _search(
        self, p: Vector, q: Vector, slope: float
    ) -> tuple[float, AugmentedTopLinearization | None]:
        """The length at which the slope along p has nearly vanished; on scores alone."""
        linear, quadratic = self.alpha * float(self.w @ p), self.alpha * float(p @ p)
        low, slope_low, high, slope_high, length = 0.0, slope, np.inf, np.nan, 1.0
        found: tuple[float, AugmentedTopLinearization | None] = 0.0, None
        for _ in range(_MOST_TRIALS):
            there = self.objective.at(self.s + length * q)
            slope_there = float(there.gradient @ q) + linear + length * quadratic
            value = there.value + 0.5 * self.alpha * float(self.w @ self.w)
            value += length * (linear + 0.5 * length * quadratic)
            if value < self.value:
                found = length, there
                if abs(slope_there) <= _SLOPE_LEFT * abs(slope):
                    break
            if slope_there < 0.0:
                low, slope_low = length, slope_there
            else:  # also where a loss overflows
                high, slope_high = length, slope_there
            if not np.isfinite(high):
                length *= 2.0
                continue
            length = low - slope_low * (high - low) / (slope_high - slope_low)
            margin = 0.1 * (high - low)
            inside = np.isfinite(length) and low + margin < length < high - margin
            length = length if inside else float(np.clip(length, low + margin, high - margin))
            if not np.isfinite(length):
                length = 0.5 * (low + high)
        return found


def _mean_square(design: Design, rows: Index) -> float:
    """Mean squared distance of some rows from their mean; one where they are all equal."""
    share = np.zeros(design.n_rows)
    share[rows] = 1.0 / rows.size
    first, second, _ = design.moments(share)
    total = float(np.maximum(second - first**2, 0.0).sum())
    return total if total > 1e-12 * float(second.sum()) else 1.0


class _RowPreconditioner:
    """Inverse of  level + X_R^T K X_R  over some rows R, for many columns.

    R has the negatives between their bounds, and the positives with a curvature where these are few
    enough too, as for the hinge. K is the curvature of F_sigma in the scores of R, with those of
    other rows fixed: K^-1 = 1/c + t_q 1 1^T in the block of group q, where c has the curvature of
    each row (maths/top.md, eq. 13). `level` is the penalty plus the mean curvature of a column over
    the other rows.
    """

    def __init__(self, top: TopWithinGroups, design: Design, alpha: float) -> None:
        self._top, self._design, self._alpha = top, design, alpha
        self._mean_square = _mean_square(design, top.positives) / design.n_columns
        # Rows whose inner products are known, and these.
        self._known = np.empty(0, dtype=np.intp)
        self._gram = np.empty((0, 0))

    def covers(self, here: AugmentedTopLinearization) -> bool:
        """Whether all free negatives are among its rows."""
        return bool(here.n_free.sum() <= _MOST_ROWS)

    def at(self, here: AugmentedTopLinearization) -> Preconditioner:
        """The preconditioner at a point."""
        top, sigma = self._top, here.sigma
        bent, free = np.flatnonzero(here.curvature), np.flatnonzero(here.free)
        if free.size > _MOST_ROWS:
            free = np.sort(free[largest(here.b[free], _MOST_ROWS)])
        level = self._alpha
        if bent.size + free.size > _MOST_ROWS:
            bent = bent[:0]
            level += self._mean_square * float(here.total_curvature.sum())
        rows = np.concatenate([top.positives[bent], top.negatives[free]])
        if rows.size == 0:
            return lambda r: r / level
        group = np.concatenate([top.group_of_positives[bent], top.group_of_negatives[free]])
        own = np.concatenate([here.curvature[bent], np.full(free.size, sigma)])
        t = self._coupling(here, all_rows=bent.size > 0)
        matrix = self._products(rows) + level * np.where(group[:, None] == group, t[group], 0.0)
        matrix[np.diag_indices(rows.size)] += level / own
        try:
            factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:  # rounding errors
            return lambda r: r / level
        part = self._design.rows(rows)

        def precondition(r: Vector) -> Vector:
            inner = cho_solve(factor, part.scores(r), check_finite=False)
            return (r - part.adjoint(inner)) / level

        return precondition

    def _coupling(self, here: AugmentedTopLinearization, *, all_rows: bool) -> Vector:
        """T of each group: infinity, up to rounding errors, if all rows with a curvature are in R,
        since then a constant added to their scores changes nothing.
        """
        most = _LARGEST_COUPLING / here.sigma
        if all_rows:
            return np.full(self._top.n_groups, most)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = 1.0 / (here.coupling() * here.share_of_free**2)
            t -= 1.0 / (here.sigma * np.maximum(here.n_free, 1.0))
        return np.clip(np.nan_to_num(t, nan=np.inf), 0.0, most)

    def _products(self, rows: Index) -> Vector:
        """Inner products of some rows; those known are not computed again."""
        new = np.setdiff1d(rows, self._known)
        if new.size:
            if self._known.size + new.size > 2 * _MOST_ROWS:
                kept = np.isin(self._known, rows)
                self._known, self._gram = self._known[kept], self._gram[np.ix_(kept, kept)]
            between = self._design.gram(self._known, new)
            within = self._design.gram(new, new)
            self._gram = np.block([[self._gram, between], [between.T, within]])
            self._known = np.concatenate([self._known, new])
        order = np.argsort(self._known)
        where = order[np.searchsorted(self._known, rows, sorter=order)]
        return self._gram[np.ix_(where, where)]


class _ColumnPreconditioner:
    """Inverse of the Hessian for few columns (maths/top.md, eq. 12)."""

    def __init__(self, top: TopWithinGroups, design: Design, alpha: float) -> None:
        self._top, self._design, self._alpha = top, design, alpha
        share = np.full(design.n_rows, 1.0 / design.n_rows)
        # Rows are taken relative to this mean, against cancellation in columns far from zero.
        self._origin = design.adjoint(share)

    def covers(self, here: AugmentedTopLinearization) -> bool:
        """Whether all free negatives are among its rows: it has all rows."""
        return True

    def at(self, here: AugmentedTopLinearization) -> Preconditioner:
        """The preconditioner at a point."""
        top, d = self._top, self._design.n_columns
        n_groups = top.n_groups
        free = np.where(here.free, here.sigma, 0.0)
        rows = np.concatenate([top.positives, top.negatives])
        weight = np.concatenate([here.curvature, free])
        group = np.concatenate([top.group_of_positives, n_groups + top.group_of_negatives])
        H, sums = self._moments(rows, weight, group, 2 * n_groups)
        total = np.bincount(group, weights=weight, minlength=2 * n_groups)
        means = sums / np.maximum(total, 1e-300)[:, None]
        H -= (means * total[:, None]).T @ means
        centre = here.share_of_free[:, None] * means[n_groups:]
        if here.capped.any():
            of = top.group_of_negatives
            centre += self._moments(top.negatives, here.capped, of, n_groups)[1]
        difference = centre - means[:n_groups]
        H += (difference * here.coupling()[:, None]).T @ difference
        diagonal = np.diag_indices(d)
        H[diagonal] += self._alpha
        try:
            factor = cho_factor(H, lower=True, check_finite=False)
        except LinAlgError:  # columns of very different sizes: only their own curvatures
            own = np.maximum(H[diagonal], self._alpha)
            return lambda r: r / own
        return lambda r: cho_solve(factor, r, check_finite=False)

    def _moments(
        self, rows: Index, weight: Vector, group: Index, n_groups: int
    ) -> tuple[Vector, Vector]:
        """Sum of weight x x^T over some rows, and of weight x over those of each group."""
        d = self._design.n_columns
        second, first = np.zeros((d, d)), np.zeros((n_groups, d))
        some = np.flatnonzero(weight)
        size = max(_CHUNK_ENTRIES // d, 1)
        for k in range(0, some.size, size):
            chunk = some[k : k + size]
            X = self._design.rows(rows[chunk]).columns(0, d) - self._origin
            entries = weight[chunk], (group[chunk], np.arange(chunk.size))
            first += csr_array(entries, shape=(n_groups, chunk.size)) @ X
            second += (X.T * weight[chunk]) @ X
        return second, first
