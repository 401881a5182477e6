"""Newton's method on a smoothed hinge: a rough minimum over many pairs in few columns.

    min  1/2 ||w||^2 + sum_m c_m [1 - <z_m, w>]_+

The kink of the hinge is replaced by a parabola of width mu below the margin 1. With t_m = 1 -
<z_m, w>, the smooth problem has the dual variables a_m = c_m min([t_m]_+ / mu, 1). These are within
the boxes of the dual of the hinge (`forerank.solvers.dual`), so that they bound its minimum from
below, for every w. At the smooth minimum, where w = sum_m a_m z_m, the duality gap is

    sum_m c_m t_m (1 - t_m / mu)    over the pairs with 0 < t_m < mu
    (maths/solvers.md, eq. 8a)

and of the order of mu^2: a rough gap allows a wide parabola, on which Newton's method needs few
steps. Coordinate descent in the dual needs many passes where most pairs are wrong by a large margin
and nearly cancel, as those of the hard strategies of active sampling do.

An intercept of the single rows is set to its best value before every step; the dual variables then
satisfy its constraint.
"""

import numpy as np
from scipy.linalg.lapack import dposv
from scipy.optimize import brentq

from forerank._typing import Vector
from forerank.design.row_pairs import Differences
from forerank.solvers.dual import DualResult, balanced

__all__ = ["smoothed_hinge"]

# Width of the parabola at the beginning, in units of the margin, and its factor where the solution
# is as exact as the width allows.
_FIRST_WIDTH = 0.25
_WIDTH_FACTOR = 0.5
# Increase of the diagonal of the Hessian relative to its largest entry, against rounding errors.
_RIDGE = 1e-12
# A step is short enough if the slope at its end is at most this part of the slope at its beginning.
_SLOPE_LEFT = 0.1
# Largest and smallest factor by which a step is shortened at once.
_SHORTENED = 0.1, 0.9


def smoothed_hinge(
    pairs: Differences,
    box: Vector,
    start: Vector,
    *,
    tol: float,
    max_iter: int,
    scale: float = 1.0,
    intercept: bool = False,
) -> DualResult:
    """Weights with a relative duality gap of at most `tol`, if `max_iter` Newton steps suffice.

    `scale` is a factor of the reported objective; `n_iter` counts steps. With `intercept`, single
    rows have a constant that is not penalised. Cost of a step: a few products with the pairs,
    n_columns^2 for each pair on the parabola, and n_columns^3.
    """
    sign = pairs.signs if intercept else np.zeros(pairs.n_rows)
    w, b, width, n_steps = start.copy(), 0.0, _FIRST_WIDTH, 0
    t = 1.0 - pairs.margins(w)
    while True:
        if intercept:
            change = _best_change(t, sign, box, width)
            b, t = b + change, t - sign * change
        dual = box * np.clip(t / width, 0.0, 1.0)
        if intercept:
            dual = balanced(dual, sign)  # exactly, for the bound
        v = pairs.combination(dual)
        gradient = w - v
        objective = 0.5 * float(w @ w) + float(box @ np.maximum(t, 0.0))
        missing = objective - float(dual.sum()) + 0.5 * float(v @ v)
        gap = max(missing / objective, 0.0) if objective > 0.0 else 0.0
        if gap <= tol or n_steps == max_iter or not np.isfinite(gap):
            break
        # Half the square of the gradient is what w is away from the smooth minimum, at most.
        if float(gradient @ gradient) <= 0.5 * missing:
            width *= _WIDTH_FACTOR
        else:
            on_parabola = np.flatnonzero((t > 0.0) & (t < width))
            curvature = box[on_parabola] / width
            step, shift = _newton_direction(pairs, on_parabola, curvature, -gradient, sign)
            along = pairs.margins(step) + sign * shift
            length = _step_length(w, step, t, along, box, width)
            w += length * step
            b += length * shift
            t -= length * along
        n_steps += 1
    return DualResult(w, b, dual, scale * objective, gap, n_steps, bool(gap <= tol))


def _best_change(t: Vector, sign: Vector, box: Vector, width: float) -> float:
    """The change of the intercept that minimises the smooth objective: the sums of the dual
    variables of the two classes of single rows are equal there, the constraint of the dual.
    """
    single = np.flatnonzero(sign)
    if single.size == 0:
        return 0.0
    t, sign, box = t[single], sign[single], box[single]

    def slope(change: float) -> float:
        return float((sign * box) @ np.clip((t - sign * change) / width, 0.0, 1.0))

    # Outside these bounds one class has no loss left, and the other all of its slopes.
    edges = np.concatenate([sign * t, sign * (t - width)])
    low, high = float(edges.min()), float(edges.max())
    if not slope(low) > 0.0:  # negative rows only, or numbers out of range
        return low
    if not slope(high) < 0.0:
        return high
    return float(brentq(slope, low, high, xtol=1e-300, rtol=1e-15, disp=False))


def _newton_direction(
    pairs: Differences, index: np.ndarray, curvature: Vector, target: Vector, sign: Vector
) -> tuple[Vector, float]:
    """H^-1 target with H = 1 + sum over some pairs of curvature_m z_m z_m^T, and the change of the
    intercept that goes with it.

    At the best intercept its own slope is zero, which leaves the Schur complement of its curvature.
    """
    Z, y = pairs.dense(index), sign[index]
    weighted = Z.T * curvature
    hessian = weighted @ Z
    of_intercept, coupling = float(curvature @ y**2), weighted @ y
    if of_intercept > 0.0:
        hessian -= np.outer(coupling, coupling / of_intercept)
    diagonal = hessian.reshape(-1)[:: target.size + 1]
    diagonal += 1.0
    diagonal += _RIDGE * diagonal.max()
    # scipy.linalg.cho_solve checks its arguments for longer than a small system takes.
    _, direction, failed = dposv(hessian, target)
    direction = target if failed else direction
    return direction, -float(coupling @ direction) / of_intercept if of_intercept > 0.0 else 0.0


def _step_length(
    w: Vector, step: Vector, t: Vector, along: Vector, box: Vector, width: float
) -> float:
    """Length, at most one, at which the slope of the smooth objective along the step is negative or
    small.
    """
    linear, square = float(w @ step), float(step @ step)

    def slope(length: float) -> float:
        dual = box * np.clip((t - length * along) / width, 0.0, 1.0)
        return linear + length * square - float(dual @ along)

    first, length = slope(0.0), 1.0
    while (last := slope(length)) > -_SLOPE_LEFT * first > 0.0:
        length *= min(max(first / (first - last), _SHORTENED[0]), _SHORTENED[1])
    return length
