"""Dual coordinate descent for the weighted hinge over a list of pairs: 1/2 ||w||^2 + sum_m c_m [1 - <z_m, w>]_+.

Each z_m is a difference of two rows of X, or plus or minus one row: a pseudo-pair with the origin,
which is how single points take part (shen2013, section 3.4). The dual has one variable per pair,
between 0 and its box c_m:

    max  sum_m a_m - 1/2 ||sum_m a_m z_m||^2,    0 <= a_m <= c_m,    w = sum_m a_m z_m   (maths/solvers.md, eq. 8)

Rows may have an intercept b that is not penalised, <z_m, w> + y_m b with y_m = -1 or 1; the dual
then has the constraint sum_m y_m a_m = 0, which single steps cannot keep. It is dealt with by
proximal steps: rho/2 (b - b_0)^2 is added, so that b = b_0 + sum_m y_m a_m / rho takes part like
one more weight, and b_0 follows b until the two agree (eq. 9).

One step maximises over one a_m in closed form and costs two products with z_m. Pairs whose variable
sits at a bound, and whose slope says that it will stay there, are left out of the sweeps until the
rest has settled (shrinking, after Hsieh et al., 2008). The sweeps end on the gap between the two
objectives, relative to the primal one.
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

__all__ = ["DualResult", "dual_descent"]


# A first measure of "settled", in units of the margin; tightened by this factor until the gap is
# met.
_FIRST_SLACK = 0.3
_TIGHTEN = 0.3
# Free variables are moved together after every so many passes, if these are worth this many
# multiplications, to which a sweep adds the price of a call; in so many steps, each of no more than
# this many multiplications; with this much added to the diagonal, relative to its largest entry.
_PASSES_TO_LEAP = 30
_WORK_TO_LEAP = 200_000
_CALL = 2000
_LEAP_STEPS = 20
_LEAP_WORK = 10**7
_RIDGE = 1e-10
# rho relative to the sum of the boxes, which has the size of the objective's curvature in b.
_PROXIMAL = 0.003
# A gap of rounding errors.
_EXACT = 1e-14


@compiled
def _sweep(rows, squared_norm, box, sign, dual, w, shift, active, n_active, lower, upper, random):  # type: ignore[no-untyped-def]
    """One step for every active pair, in random order; returns how many stay active, and the
    extreme slopes.

    A pair at a bound is left out when its slope is beyond what any free pair had in the sweep
    before (lower, upper). `shift` holds the intercept and 1 / rho.
    """
    highest, lowest = -np.inf, np.inf
    k = 0
    while k < n_active:
        # A shuffle on the way: the next pair is any of those not yet seen. The generator is a
        # 64-bit xorshift.
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


def _towards(missing: Vector, Z: NDArray[np.float64]) -> Vector:
    """The step a with Z Z^T a = missing.

    More rows than columns leave directions that do not change w. A little on the diagonal sends the
    step far along those that gain, up to a bound.
    """
    ridge = _RIDGE * np.einsum("ij,ij->i", Z, Z).max()
    if Z.shape[0] <= Z.shape[1]:
        gram = Z @ Z.T
        gram[np.diag_indices_from(gram)] += ridge
        return cho_solve(cho_factor(gram, check_finite=False), missing)
    gram = Z.T @ Z
    gram[np.diag_indices_from(gram)] += ridge
    return (missing - Z @ cho_solve(cho_factor(gram, check_finite=False), Z.T @ missing)) / ridge


def _leap(
    pairs: Differences, box: Vector, sign: Vector, dual: Vector, w: Vector, shift: Vector
) -> None:
    """Move all free variables at once towards where their slopes vanish; dual, w and shift change
    in place.

    With a margin of 1 for all free m, the dual is maximal over them. The step there is a Newton
    step of a concave quadratic; of the points on its way, cut off at the boxes, the best is taken.
    What has met its bound then stays, and the others go on.
    """
    free = np.flatnonzero((dual > 0.0) & (dual < box))
    if free.size == 0 or free.size * min(free.size, pairs.n_columns) * pairs.n_columns > _LEAP_WORK:
        return
    root = np.sqrt(shift[1])
    Z = np.column_stack([pairs.dense(free), root * sign[free]])  # the intercept as one more column
    for _ in range(_LEAP_STEPS):
        old, room = dual[free], box[free]
        missing = 1.0 - Z[:, :-1] @ w - sign[free] * shift[0]
        step = _towards(missing, Z)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(step > 0.0, room - old, -old) / step
        first = float(np.nanmin(reach))
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
    """A solution with its certificate.

    Attributes
    ----------
    w : array
        The weights, sum_m a_m z_m; a part of that where the gap was not met.
    intercept : float
        Zero where there is none.
    dual : array
        The variables a_m.
    objective : float
        The primal objective at w, times `scale`.
    optimality : float
        (primal - dual) / primal.
    n_iter : int
        Steps taken, in passes over all pairs: sweeps over few active pairs count little.
    converged : bool
        Whether `optimality` met the tolerance.
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

    Cost: two products with each pair still active per sweep.

    Parameters
    ----------
    pairs : Differences
    box : array
        The weight of each pair's loss.
    intercept : callable, optional
        For single rows with an intercept: the best one, given the scores of all rows (the margins
        without it, with the sign of the label taken off).
    start : array, optional
        Dual variables to begin with; they are clipped to the boxes, and pairs beyond its end begin
        at zero.
    start_intercept : float
        The intercept that goes with them.
    tol : float
        The relative duality gap asked for.
    max_iter : int
        The most steps, in passes over all pairs.
    at_least : float
        Multiplications to spend where they help, even if the gap is met: small problems are solved
        to the last digit at no cost that anyone would notice.
    seed : int
        Of the order in which pairs are visited.
    scale : float
        What the objective is multiplied with where it is reported.
    progress : Progress, optional
        Told of the weights, objective and gap whenever these are computed.
    """
    n, rows = pairs.n_rows, pairs.rows
    dual = np.zeros(n)
    if start is not None:
        dual[: start.size] = np.minimum(start, box[: start.size])
    w = pairs.combination(dual)
    sign = np.zeros(n)
    shift = np.zeros(2)  # b and 1 / rho
    if intercept is not None:
        sign = np.where(pairs.minus < 0, 1.0, -1.0)
        shift[:] = start_intercept, 1.0 / (_PROXIMAL * box.sum())
    squared_norm = _with_shift(pairs, sign, shift)
    random = np.array([seed * 2 + 1], dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    active = np.flatnonzero(box > 0.0)  # the others cannot move, and would never look settled
    n_active = n_live = active.size
    lower, upper, slack = -np.inf, np.inf, _FIRST_SLACK
    state = _Certificate(pairs, box, sign, intercept)
    n_steps, most, unbalanced = 0, max_iter * n, np.inf
    work, enough = 0.0, max(_PASSES_TO_LEAP * n * pairs.n_columns, _WORK_TO_LEAP)
    if progress is not None:
        progress.w = w  # changes in place: an interruption leaves the latest
    while n_steps < most:
        if work >= enough:
            _leap(pairs, box, sign, dual, w, shift)
            work, n_active, lower, upper = 0.0, n_live, -np.inf, np.inf
        work += n_active * pairs.n_columns + _CALL
        n_steps += n_active
        n_active, lowest, highest = _sweep(
            rows, squared_norm, box, sign, dual, w, shift, active, n_active, lower, upper, random
        )
        if highest - lowest > slack and n_active and n_steps < most:
            upper = highest if highest > 0.0 else np.inf
            lower = lowest if lowest < 0.0 else -np.inf
            continue
        # Settled, or out of steps: look at every pair, those left out included.
        state.evaluate(w, dual)
        if progress is not None:
            progress.record(w, n, scale * state.objective, state.gap)
        if state.gap <= tol and (state.gap <= _EXACT or n_steps * pairs.n_columns >= at_least):
            break
        # What is left of sum_m y_m a_m moves the centre of the proximal term, and b with it, until
        # nothing is; the term is weakened where that takes too long.
        before, unbalanced = unbalanced, float(sign @ dual)
        if abs(unbalanced) > 0.3 * abs(before):
            shift[1] *= 4.0
            squared_norm = _with_shift(pairs, sign, shift)
        shift[0] += unbalanced * shift[1]
        if abs(unbalanced) <= 0.1 * state.gap * dual.sum():
            slack *= _TIGHTEN
        n_active, lower, upper = n_live, -np.inf, np.inf
    if state.gap > tol:
        w = state.shortened(w)
    converged = bool(state.gap <= tol)
    return DualResult(
        w, state.intercept, dual, scale * state.objective, state.gap, -(-n_steps // n), converged
    )


def _with_shift(pairs: Differences, sign: Vector, shift: Vector) -> Vector:
    """||z_m||^2 with the intercept as one more column.

    Equal rows have no difference: their variable goes to its box, whatever the others do.
    """
    return np.maximum(pairs.squared_norms + sign**2 * shift[1], np.finfo(float).tiny)


class _Certificate:
    """The two objectives at given weights and dual variables, over all pairs."""

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
            # The constraint is kept by taking the surplus off the side that has it, in proportion.
            ahead = self._sign > 0.0
            sums = float(dual[ahead].sum()), float(dual[~ahead].sum())
            dual = dual * np.where(
                ahead, *(min(sums) / side if side > 0.0 else 0.0 for side in sums)
            )
            square = float(np.sum(self._pairs.combination(dual) ** 2))
        self._bound = float(dual.sum()) - 0.5 * square
        self._primal(w, self._pairs.margins(w))

    def _primal(self, w: Vector, margins: Vector) -> None:
        if self._best_intercept is not None:
            self.intercept = self._best_intercept(self._sign * margins)
            margins = margins + self._sign * self.intercept
        self.objective = 0.5 * float(w @ w) + float(self._box @ np.maximum(1.0 - margins, 0.0))
        self.gap = (
            max((self.objective - self._bound) / self.objective, 0.0)
            if self.objective > 0.0
            else 0.0
        )

    def shortened(self, w: Vector) -> Vector:
        """The best weights on the way from zero to w: what has not settled may be far too long, and
        worse than none.
        """
        margins, square = self._pairs.margins(w), float(w @ w)
        b = self._sign * self.intercept

        def at_length(t: float) -> float:
            return 0.5 * t * t * square + float(
                self._box @ np.maximum(1.0 - t * (margins + b), 0.0)
            )

        length = float(minimize_scalar(at_length, bounds=(0.0, 1.0), method="bounded").x)
        length = min(length, 0.0, key=at_length)
        if at_length(length) < self.objective:
            w = length * w
            self._primal(w, length * margins)
        return w
