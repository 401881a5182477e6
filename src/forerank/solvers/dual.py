"""Dual coordinate descent for the weighted hinge over a list of pairs.

    min  1/2 ||w||^2 + sum_m c_m [1 - <z_m, w>]_+

Each z_m is a difference of two rows of X, or plus or minus one row: a pseudo-pair with the origin,
which is how single points take part (shen2013, section 3.4). The dual has one variable per pair,
between 0 and its box c_m:

    max  sum_m a_m - 1/2 ||sum_m a_m z_m||^2,    0 <= a_m <= c_m,    w = sum_m a_m z_m
    (maths/solvers.md, eq. 8)

Single rows may have an intercept b that is not penalised, <z_m, w> + y_m b with y_m = -1 or 1, and
0 for pairs of two rows; the dual then has the constraint sum_m y_m a_m = 0, which single steps
cannot keep. Proximal steps replace
it: rho/2 (b - b_0)^2 is added, so that b = b_0 + sum_m y_m a_m / rho is one more weight, and b_0
follows b until the two agree (eq. 9).

A step maximises over one a_m in closed form and costs two products with z_m. Pairs whose variable
is at a bound, with a slope that will keep it there, are skipped until the others have converged
(shrinking, after Hsieh et al., 2008). The sweeps end on the gap between the two objectives,
relative to the primal one.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize_scalar

from forerank._kernels import compiled
from forerank._typing import Vector
from forerank.design.row_pairs import Differences, add, dot
from forerank.solvers.result import Progress

__all__ = ["DualResult", "balanced", "dual_descent"]


# Range of the slopes, in units of the margin, at which sweeps count as converged; multiplied by the
# factor until the gap is reached.
_FIRST_SLACK = 0.3
_SLACK_FACTOR = 0.3
# Work between two Newton steps on all free variables: passes, and least number of multiplications;
# a sweep counts for its multiplications and those that a call costs.
_PASSES_TO_NEWTON = 30
_WORK_TO_NEWTON = 200_000
_WORK_OF_CALL = 2000
# Most Newton steps in a row, most multiplications of each, and increase of the diagonal relative
# to its largest entry.
_NEWTON_STEPS = 20
_NEWTON_WORK = 10**7
_RIDGE = 1e-10
# rho relative to the sum of the boxes, which is about the curvature of the objective in b.
_PROXIMAL = 0.003
# Relative gap below which rounding errors prevail, and rounding error of a slope relative to the
# largest score.
_EXACT_GAP = 1e-14
_ROUNDING = 1e-14


@compiled
def _sweep(rows, squared_norm, box, sign, dual, w, shift, active, n_active, lower, upper, random):  # type: ignore[no-untyped-def]
    """One step for every active pair, in random order; returns how many stay active, and the
    extreme slopes.

    A pair at a bound becomes inactive when its slope exceeds those of all free pairs in the last
    sweep (lower, upper). `shift` holds the intercept and 1 / rho.
    """
    highest, lowest = -np.inf, np.inf
    k = 0
    while k < n_active:
        # The next pair is a random one of those not yet visited (64-bit xorshift generator).
        random[0] ^= random[0] << np.uint64(13)
        random[0] ^= random[0] >> np.uint64(7)
        random[0] ^= random[0] << np.uint64(17)
        other = k + np.intp(random[0] % np.uint64(n_active - k))
        m = active[other]
        active[other] = active[k]
        active[k] = m
        slope = dot(rows, m, w) + sign[m] * shift[0] - 1.0
        old = dual[m]
        if (old <= 0.0 and slope > upper) or (old >= box[m] and slope < lower):
            n_active -= 1
            active[k] = active[n_active]
            active[n_active] = m
            continue
        projected = slope
        if old <= 0.0:
            projected = min(slope, 0.0)
        elif old >= box[m]:
            projected = max(slope, 0.0)
        highest = max(highest, projected)
        lowest = min(lowest, projected)
        if projected != 0.0:
            new = min(max(old - slope / squared_norm[m], 0.0), box[m])
            if new != old:
                dual[m] = new
                add(rows, m, new - old, w)
                shift[0] += sign[m] * (new - old) * shift[1]
        k += 1
    return n_active, lowest, highest


def _free_direction(missing: Vector, Z: NDArray[np.float64]) -> Vector:
    """The step a with Z Z^T a = missing.

    With more rows than columns some directions do not change w. The ridge makes the step long in
    those that increase the dual; the boxes bound it.
    """
    ridge = _RIDGE * np.einsum("ij,ij->i", Z, Z).max()
    if Z.shape[0] <= Z.shape[1]:
        gram = Z @ Z.T
        gram[np.diag_indices_from(gram)] += ridge
        return cho_solve(cho_factor(gram, check_finite=False), missing)
    gram = Z.T @ Z
    gram[np.diag_indices_from(gram)] += ridge
    return (missing - Z @ cho_solve(cho_factor(gram, check_finite=False), Z.T @ missing)) / ridge


def _newton_steps(
    pairs: Differences, box: Vector, sign: Vector, dual: Vector, w: Vector, shift: Vector
) -> None:
    """Newton steps on all free variables at once; dual, w and shift change in place.

    The dual is maximal over the free variables where all their margins are 1: a Newton step of a
    concave quadratic. The best of several points along it, clipped to the boxes, is taken.
    Variables that reach a bound are fixed, and the step is repeated for the others.
    """
    free = np.flatnonzero((dual > 0.0) & (dual < box))
    if (
        free.size == 0
        or free.size * min(free.size, pairs.n_columns) * pairs.n_columns > _NEWTON_WORK
    ):
        return
    root = np.sqrt(shift[1])
    Z = np.column_stack([pairs.dense(free), root * sign[free]])  # the intercept as one more column
    for _ in range(_NEWTON_STEPS):
        old, room = dual[free], box[free]
        missing = 1.0 - Z[:, :-1] @ w - sign[free] * shift[0]
        step = _free_direction(missing, Z)
        with np.errstate(divide="ignore", invalid="ignore"):
            to_bound = np.where(step > 0.0, room - old, -old) / step
        first = float(np.nanmin(to_bound))
        length, best, gained = min(max(first, _RIDGE), 1.0), old, 0.0
        while True:
            new = np.clip(old + length * step, 0.0, room)
            move = (new - old) @ Z
            gain = (new - old) @ missing - 0.5 * (move @ move)
            if gain <= gained:
                break
            best, gained = new, gain
            if length == 1.0:
                break
            length = min(4.0 * length, 1.0)
        dual[free] = best
        move = (best - old) @ Z
        w += move[:-1]
        shift[0] += root * move[-1]
        inside = (best > 0.0) & (best < room)
        if gained <= 0.0 or inside.all() or not inside.any():
            return
        free, Z = free[inside], Z[inside]


@dataclass
class DualResult:
    """A solution with its certificate: weights, intercept (zero for pairs), dual variables a_m.

    `objective` is the primal one at w, times `scale`, and `optimality` the gap relative to it.
    Without convergence w is a multiple of sum_m a_m z_m. `n_iter` counts passes over all pairs.
    """

    w: Vector
    intercept: float
    dual: Vector
    objective: float
    optimality: float
    n_iter: int
    converged: bool


def dual_descent(
    pairs: Differences,
    box: Vector,
    *,
    intercept: Callable[[Vector], float] | None = None,
    start: Vector | None = None,
    start_intercept: float = 0.0,
    tol: float = 1e-3,
    max_iter: int = 1000,
    at_least: float = 0.0,
    seed: int = 0,
    scale: float = 1.0,
    progress: Progress | None = None,
) -> DualResult:
    """Minimise 1/2 ||w||^2 + sum_m box_m [1 - <z_m, w>]_+ over the pairs z_m.

    `intercept`, where single rows have one, gives the best intercept for the scores of all single
    rows (the margins without it, times the sign of the label). `start` has the first dual
    variables, clipped to the boxes and zero for pairs beyond its end, `start_intercept` their
    intercept.

    Stops at a relative duality gap of `tol`, or after `max_iter` passes over all pairs. The first
    `at_least` multiplications are spent even if the gap is reached, unless it is exact: small
    problems are solved to the last digit in negligible time. `seed` is that of the order of visits,
    `scale` a factor of the reported objective. Cost: two products with each active pair per sweep.
    """
    n, rows = pairs.n_rows, pairs.rows
    dual = np.zeros(n)
    if start is not None:
        dual[: start.size] = np.minimum(start, box[: start.size])
    w = pairs.combination(dual)
    sign = np.zeros(n)
    shift = np.zeros(2)  # b and 1 / rho
    if intercept is not None:
        sign = pairs.signs
        shift[:] = start_intercept, 1.0 / (_PROXIMAL * box[sign != 0.0].sum())
    squared_norm = _with_shift(pairs, sign, shift)
    random = np.array([seed * 2 + 1], dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    active = np.flatnonzero(box > 0.0)  # the others stay at zero
    n_active = n_live = active.size
    lower, upper, slack = -np.inf, np.inf, _FIRST_SLACK
    state = _Certificate(pairs, box, sign, intercept)
    n_steps, most, unbalanced, least_slack = 0, max_iter * n, np.inf, 0.0
    work, enough = 0.0, max(_PASSES_TO_NEWTON * n * pairs.n_columns, _WORK_TO_NEWTON)
    if progress is not None:
        progress.w = w  # changes in place, for an interrupted fit
    while n_steps < most:
        if work >= enough:
            _newton_steps(pairs, box, sign, dual, w, shift)
            work, n_active, lower, upper = 0.0, n_live, -np.inf, np.inf
        work += n_active * pairs.n_columns + _WORK_OF_CALL
        n_steps += n_active
        n_active, lowest, highest = _sweep(
            rows, squared_norm, box, sign, dual, w, shift, active, n_active, lower, upper, random
        )
        if highest - lowest > max(slack, least_slack) and n_active and n_steps < most:
            upper = highest if highest > 0.0 else np.inf
            lower = lowest if lowest < 0.0 else -np.inf
            continue
        # Converged on the active pairs, or out of steps: the gap is over all pairs.
        state.evaluate(w, dual)
        if progress is not None:
            progress.record(w, n, scale * state.objective, state.gap)
        # Scores, the intercept, and its changes by those of a dual variable.
        largest = np.sqrt(float(w @ w) * squared_norm.max()) + abs(shift[0])
        least_slack = _ROUNDING * (1.0 + largest + shift[1] * dual.max())
        exact = state.gap <= _EXACT_GAP or slack < least_slack
        if state.gap <= tol and (exact or n_steps * pairs.n_columns >= at_least):
            break
        # The centre of the proximal term, and b with it, moves until sum_m y_m a_m is zero; rho is
        # lowered if that converges slowly.
        before, unbalanced = unbalanced, float(sign @ dual)
        if abs(unbalanced) > 0.3 * abs(before):
            shift[1] *= 4.0
            squared_norm = _with_shift(pairs, sign, shift)
        shift[0] += unbalanced * shift[1]
        if abs(unbalanced) <= 0.1 * state.gap * dual.sum():
            slack *= _SLACK_FACTOR
        n_active, lower, upper = n_live, -np.inf, np.inf
    if state.gap > tol:
        w = state.shortened(w)
    converged = bool(state.gap <= tol)
    n_iter, objective = -(-n_steps // n), scale * state.objective
    return DualResult(w, state.intercept, dual, objective, state.gap, n_iter, converged)


def _with_shift(pairs: Differences, sign: Vector, shift: Vector) -> Vector:
    """||z_m||^2 with the intercept as one more column, positive for equal rows too, whose variable
    goes to its box.
    """
    return np.maximum(pairs.squared_norms + sign**2 * shift[1], np.finfo(float).tiny)


def balanced(dual: Vector, sign: Vector) -> Vector:
    """Dual variables of which those of the class of single rows with the larger sum are scaled
    down, so that sum_m y_m a_m is zero.
    """
    positive, negative = sign > 0.0, sign < 0.0
    sums = float(dual[positive].sum()), float(dual[negative].sum())
    factors = [min(sums) / side if side > 0.0 else 0.0 for side in sums]
    return dual * np.where(positive, factors[0], np.where(negative, factors[1], 1.0))


class _Certificate:
    """Primal and dual objective over all pairs, and their gap."""

    def __init__(
        self,
        pairs: Differences,
        box: Vector,
        sign: Vector,
        best_intercept: Callable[[Vector], float] | None,
    ) -> None:
        self._pairs, self._box, self._sign, self._best_intercept = pairs, box, sign, best_intercept
        self.objective = self.gap = self._bound = np.inf
        self.intercept = 0.0

    def evaluate(self, w: Vector, dual: Vector) -> None:
        """Set objective, gap and intercept."""
        if self._best_intercept is None:
            square = float(w @ w)
        else:
            dual = balanced(dual, self._sign)
            square = float(np.sum(self._pairs.combination(dual) ** 2))
        self._bound = float(dual.sum()) - 0.5 * square
        self._primal(w, self._pairs.margins(w))

    def _primal(self, w: Vector, margins: Vector) -> None:
        if self._best_intercept is not None:
            single = self._sign != 0.0
            self.intercept = self._best_intercept((self._sign * margins)[single])
            margins = margins + self._sign * self.intercept
        self.objective = 0.5 * float(w @ w) + float(self._box @ np.maximum(1.0 - margins, 0.0))
        self.gap = 0.0
        if self.objective > 0.0:
            self.gap = max((self.objective - self._bound) / self.objective, 0.0)

    def shortened(self, w: Vector) -> Vector:
        """The best multiple of w between zero and one: without convergence w may be worse than
        zero.
        """
        margins, square = self._pairs.margins(w), float(w @ w)
        b = self._sign * self.intercept

        def at_length(t: float) -> float:
            losses = np.maximum(1.0 - t * (margins + b), 0.0)
            return 0.5 * t * t * square + float(self._box @ losses)

        length = float(minimize_scalar(at_length, bounds=(0.0, 1.0), method="bounded").x)
        length = min(length, 0.0, key=at_length)
        if at_length(length) < self.objective:
            w = length * w
            self._primal(w, length * margins)
        return w
