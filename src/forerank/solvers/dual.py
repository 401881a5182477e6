"""Dual coordinate descent for the weighted hinge over a list of pairs: 1/2 ||w||^2 + sum_m c_m [1 - <z_m, w>]_+.

Each z_m is a difference of two rows of X, or plus or minus one row: a pseudo-pair with the origin, which is how single
points take part (shen2013, section 3.4). The dual has one variable per pair, between 0 and its box c_m:

    max  sum_m a_m - 1/2 ||sum_m a_m z_m||^2,    0 <= a_m <= c_m,    w = sum_m a_m z_m   (maths/solvers.md, eq. 8)

One step maximises over one a_m in closed form and costs two products with z_m. Pairs whose variable sits at a bound,
and whose slope says that it will stay there, are left out of the sweeps until the rest has settled (shrinking, after
Hsieh et al., 2008). The sweeps end on the gap between the two objectives, relative to the primal one.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize_scalar

from forerank.differences import Differences, add, dot
from forerank.solvers.result import Progress

__all__ = ["DualResult", "dual_descent"]

Vector = NDArray[np.float64]

# A first measure of "settled", in units of the margin; tightened by this factor until the gap is met.
_FIRST_SLACK = 0.3
_TIGHTEN = 0.3
# Free variables are moved together after this many passes that have not settled, if these are worth this many
# multiplications, to which a sweep adds the price of a call; in so many steps, each of no more than this many
# multiplications; with this much added to the diagonal, relative to its largest entry.
_PASSES_TO_LEAP = 30
_WORK_TO_LEAP = 200_000
_CALL = 2000
_LEAP_STEPS = 20
_LEAP_WORK = 10**7
_RIDGE = 1e-10
# A gap of rounding errors.
_EXACT = 1e-14


@njit(cache=True, nogil=True)
def _sweep(rows, squared_norm, box, dual, w, active, n_active, lower, upper, random):  # type: ignore[no-untyped-def]
    """One step for every active pair, in random order; returns how many stay active, and the extreme slopes.

    A pair at a bound is left out when its slope is beyond what any free pair had in the sweep before (lower, upper).
    """
    highest, lowest = -np.inf, np.inf
    k = 0
    while k < n_active:
        # A shuffle on the way: the next pair is any of those not yet seen. The generator is a 64-bit xorshift.
        random[0] ^= random[0] << np.uint64(13)
        random[0] ^= random[0] >> np.uint64(7)
        random[0] ^= random[0] << np.uint64(17)
        other = k + np.intp(random[0] % np.uint64(n_active - k))
        m = active[other]
        active[other] = active[k]
        active[k] = m
        slope = dot(rows, m, w) - 1.0
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
        k += 1
    return n_active, lowest, highest


def _towards_margin(Z: NDArray[np.float64], w: Vector) -> Vector:
    """The step a with Z Z^T a = 1 - Z w.

    More rows than columns leave directions that do not change w. A little on the diagonal sends the step far along
    those that gain, up to a bound.
    """
    missing = 1.0 - Z @ w
    ridge = _RIDGE * np.einsum("ij,ij->i", Z, Z).max()
    if Z.shape[0] <= Z.shape[1]:
        gram = Z @ Z.T
        gram[np.diag_indices_from(gram)] += ridge
        return cho_solve(cho_factor(gram, check_finite=False), missing)
    gram = Z.T @ Z
    gram[np.diag_indices_from(gram)] += ridge
    return (missing - Z @ cho_solve(cho_factor(gram, check_finite=False), Z.T @ missing)) / ridge


def _leap(pairs: Differences, box: Vector, dual: Vector, w: Vector) -> None:
    """Move all free variables at once towards where their slopes vanish; dual and w change in place.

    With <z_m, w> = 1 for all free m, the dual is maximal over them. The step there is a Newton step of a concave
    quadratic; of the points on its way, cut off at the boxes, the best is taken. What has met its bound then stays, and
    the others go on.
    """
    free = np.flatnonzero((dual > 0.0) & (dual < box))
    if free.size == 0 or free.size * min(free.size, pairs.n_columns) * pairs.n_columns > _LEAP_WORK:
        return
    Z = pairs.dense(free)
    for _ in range(_LEAP_STEPS):
        old, room = dual[free], box[free]
        step = _towards_margin(Z, w)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(step > 0.0, room - old, -old) / step
        first = float(np.nanmin(reach))
        length, best, gained = min(max(first, _RIDGE), 1.0), old, 0.0
        while True:
            new = np.clip(old + length * step, 0.0, room)
            move = (new - old) @ Z
            gain = (new - old).sum() - move @ (w + 0.5 * move)
            if gain <= gained:
                break
            best, gained = new, gain
            if length == 1.0:
                break
            length = min(4.0 * length, 1.0)
        dual[free] = best
        w += (best - old) @ Z
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
    dual: Vector
    objective: float
    optimality: float
    n_iter: int
    converged: bool


def dual_descent(
    pairs: Differences,
    box: Vector,
    *,
    start: Vector | None = None,
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
    start : array, optional
        Dual variables to begin with; they are clipped to the boxes, and pairs beyond its end begin at zero.
    tol : float
        The relative duality gap asked for.
    max_iter : int
        The most steps, in passes over all pairs.
    at_least : float
        Multiplications to spend where they help, even if the gap is met: small problems are solved to the last digit
        at no cost that anyone would notice.
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
    # Equal rows have no difference: their variable goes to its box, whatever the others do.
    squared_norm = np.maximum(pairs.squared_norms, np.finfo(float).tiny)
    random = np.array([seed * 2 + 1], dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    active, n_active = np.arange(n), n
    lower, upper, slack = -np.inf, np.inf, _FIRST_SLACK
    objective, gap, n_steps, most = np.inf, np.inf, 0, max_iter * n
    work, enough = 0.0, max(_PASSES_TO_LEAP * n * pairs.n_columns, _WORK_TO_LEAP)
    if progress is not None:
        progress.w = w  # changes in place: an interruption leaves the latest
    while n_steps < most:
        if work >= enough:
            _leap(pairs, box, dual, w)
            work, n_active, lower, upper = 0.0, n, -np.inf, np.inf
        work += n_active * pairs.n_columns + _CALL
        n_steps += n_active
        n_active, lowest, highest = _sweep(
            rows, squared_norm, box, dual, w, active, n_active, lower, upper, random
        )  # fmt: skip
        if highest - lowest > slack and n_active and n_steps < most:
            upper = highest if highest > 0.0 else np.inf
            lower = lowest if lowest < 0.0 else -np.inf
            continue
        # Settled, or out of steps: look at every pair, those left out included.
        penalty = 0.5 * float(w @ w)
        objective = penalty + float(box @ np.maximum(1.0 - pairs.margins(w), 0.0))
        gap = (objective - (float(dual.sum()) - penalty)) / objective if objective > 0.0 else 0.0
        if progress is not None:
            progress.record(w, n, scale * objective, gap)
        if gap <= tol and (gap <= _EXACT or n_steps * pairs.n_columns >= at_least):
            break
        slack *= _TIGHTEN
        n_active, lower, upper = n, -np.inf, np.inf
    if gap > tol:
        # Weights that have not settled may be far too long, and worse than none: take the best on their way from zero.
        margins, square = pairs.margins(w), float(w @ w)
        lower_bound = float(dual.sum()) - 0.5 * square

        def at_length(t: float) -> float:
            return 0.5 * t * t * square + float(box @ np.maximum(1.0 - t * margins, 0.0))

        length = float(minimize_scalar(at_length, bounds=(0.0, 1.0), method="bounded").x)
        length = min(length, 0.0, key=at_length)
        if at_length(length) < objective:
            w, objective = length * w, at_length(length)
            gap = (objective - lower_bound) / objective
    return DualResult(w, dual, scale * objective, gap, -(-n_steps // n), bool(gap <= tol))
