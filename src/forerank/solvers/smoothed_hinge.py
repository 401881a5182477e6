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
"""

import numpy as np
from scipy.linalg.lapack import dposv

from forerank._typing import Vector
from forerank.design.row_pairs import Differences
from forerank.solvers.dual import DualResult

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
    pairs: Differences, box: Vector, start: Vector, *, tol: float, max_iter: int, scale: float = 1.0
) -> DualResult:
    """Weights with a relative duality gap of at most `tol`, if `max_iter` Newton steps suffice.

    `scale` is a factor of the reported objective; `n_iter` counts steps. Cost of a step: a few
    products with the pairs, n_columns^2 for each pair on the parabola, and n_columns^3.
    """
    w, width, n_steps = start.copy(), _FIRST_WIDTH, 0
    t = 1.0 - pairs.margins(w)
    while True:
        dual = box * np.clip(t / width, 0.0, 1.0)
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
            step = -_newton_direction(pairs, on_parabola, box[on_parabola] / width, gradient)
            along = pairs.margins(step)
            length = _step_length(w, step, t, along, box, width)
            w += length * step
            t -= length * along
        n_steps += 1
    return DualResult(w, 0.0, dual, scale * objective, gap, n_steps, bool(gap <= tol))


def _newton_direction(
    pairs: Differences, index: np.ndarray, curvature: Vector, gradient: Vector
) -> Vector:
    """H^-1 gradient with H = 1 + sum over some pairs of curvature_m z_m z_m^T."""
    Z = pairs.dense(index)
    hessian = (Z.T * curvature) @ Z
    diagonal = hessian.reshape(-1)[:: gradient.size + 1]
    diagonal += 1.0
    diagonal += _RIDGE * diagonal.max()
    # scipy.linalg.cho_solve checks its arguments for longer than a small system takes.
    _, direction, failed = dposv(hessian, gradient)
    return gradient if failed else direction


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
