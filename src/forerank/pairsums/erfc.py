"""Weighted sums of erfc functions with a guaranteed error bound, in linear time (raykar2007).

    E(y_i) = sum_j q_j erfc(y_i - z_j),   |computed - E(y_i)| <= eps sum_j |q_j|   for every i

The line is split into cells. Between cells further apart than erfc^-1(eps), erfc is 0 or 2; between
nearer ones it is the Fourier series of Beaulieu, truncated after p terms, in which targets and
sources separate (maths/pairsums.md, eqs. 7 to 10). The paper adds up the series of every near cell
at every target. Here they are first translated to the centre of the target's cell, which is exact
for a Fourier series: a target costs p terms for any number of near cells.

Cost: p (N + M) multiplications, and one sine and cosine per point; p is 3 at eps = 1e-2, 10 at 1e-6
and 21 at 1e-12. Memory: a copy of the points, sorted by cell, and the series of the near cells.

`ErfcPairs` is the mean over all pairs of the loss with slope -erfc(a t)/2, which raykar2007 uses
for the logistic loss: the two slopes differ by at most 0.023.
"""

from dataclasses import dataclass
from functools import cache
from math import erfc, pi, sqrt
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfc as erfc_of
from scipy.special import erfcinv

from forerank._kernels import compiled, in_row_chunks
from forerank._sorting import sort_by_group
from forerank._typing import Index, Vector
from forerank.losses import ERFC_SCALE
from forerank.pairsums.blocks import PairBlocks, out_of_range

__all__ = [
    "ErfcPairs",
    "ErfcSeries",
    "check_eps",
    "erfc_series",
    "erfc_series_bound",
    "erfc_sum",
    "erfc_sum_direct",
]


# Smallest eps: below it, the rounding error of the sums exceeds the bound.
_SMALLEST_EPS = 1e-13
# Largest |point| for which the centres of cells are exact.
_LARGEST_POINT = 2.0**48
# Pairs of a block up to which a sum pair by pair is cheaper than a series.
_FEW_PAIRS = 1_000
# Points whose series are evaluated together, for vector instructions.
_LANES = 64


@dataclass(frozen=True)
class ErfcSeries:
    """Cells and truncated Fourier series for a precision (raykar2007, section 5).

    Attributes
    ----------
    width : float
        Of a cell; a multiple of 1/32, so that the centres of cells are exact in binary.
    reach : int
        Points in cells whose numbers differ by more are further apart than erfc^-1(eps).
    h : float
        pi / h is the period of the series.
    coefficients : array of shape (p,)
        exp(-n^2 h^2) / n for n = 1, 3, ..., 2p - 1.
    """

    width: float
    reach: int
    h: float
    coefficients: Vector

    @staticmethod
    @cache
    def for_precision(eps: float) -> "ErfcSeries":
        """The cheapest series whose error bound (eq. 6 of the paper) is eps."""
        eps = 0.99 * eps  # the rest is for rounding errors
        near = float(erfcinv(eps))
        width = max(np.floor(32 * 0.2 * near) / 32, 1 / 32)
        reach = int(np.ceil(near / width)) + 1
        furthest = (reach + 1) * width  # the largest |y - z| between near cells
        h = pi / (2.0 * (furthest + float(erfcinv(0.5 * eps))))
        p = 1
        while erfc((2 * p - 1) * h) / (sqrt(pi) * h * (2 * p + 1)) > 0.5 * eps:
            p += 1
        n = np.arange(1, 2 * p, 2)
        return ErfcSeries(width, reach, h, np.exp(-((n * h) ** 2)) / n)


def erfc_sum(
    targets: ArrayLike, sources: ArrayLike, weights: ArrayLike | None = None, eps: float = 1e-6
) -> Vector:
    """sum_j weights_j erfc(targets_i - sources_j) for every i, within eps sum_j |weights_j|.

    Parameters
    ----------
    targets : array-like of shape (M,)
    sources : array-like of shape (N,)
    weights : array-like of shape (N,), optional
        Of either sign; ones by default.
    eps : float, default=1e-6
        The largest error of a sum relative to the sum of the absolute weights, from 1e-13 to 1.

    Returns
    -------
    array of shape (M,)

    Examples
    --------
    >>> erfc_sum([0.0, 30.0], [0.0, 100.0], eps=1e-12)
    array([3., 2.])
    """
    y, z, q = _check_points(targets, sources, weights)
    check_eps(eps)
    return _sums(y, z, q, float(eps), with_integral=False)[0]


def erfc_sum_direct(
    targets: ArrayLike, sources: ArrayLike, weights: ArrayLike | None = None
) -> Vector:
    """The sums of `erfc_sum` by the double loop, as a reference. Cost: M N.

    Examples
    --------
    >>> erfc_sum_direct([0.0, 30.0], [0.0, 100.0])
    array([3., 2.])
    """
    y, z, q = _check_points(targets, sources, weights)
    out = np.empty(y.size)
    _direct(y, z, q, out)
    return out


def erfc_series(z: ArrayLike, h: float, p: int) -> Vector:
    """Beaulieu's Fourier series of erfc, truncated after p terms (raykar2007, eq. 5).

    1 - 4/pi sum_{n = 1, 3, .., 2p - 1} exp(-n^2 h^2) / n sin(2 n h z). `erfc_sum` chooses h and p.

    Examples
    --------
    >>> erfc_series([0.0, 4.0], h=0.19, p=12).round(6) + 0.0
    array([1., 0.])
    """
    n = np.arange(1, 2 * p, 2)
    terms = np.sin(2.0 * h * np.multiply.outer(np.asarray(z, dtype=float), n))
    return 1.0 - 4.0 / pi * (terms @ (np.exp(-((n * h) ** 2)) / n))


def erfc_series_bound(z: ArrayLike, h: float, p: int) -> Vector:
    """Bound on the error of `erfc_series` (raykar2007, eq. 6).

    2 / (sqrt(pi) h) erfc((2p + 1) h) + erfc(pi / (2h) - abs(z)). It is for the small h that the
    method needs: its first term bounds the terms left out for h up to 0.6, and not from
    h = 1 / sqrt(2) on, where their number is few. `ErfcSeries.for_precision` has
    erfc((2p - 1) h) / (sqrt(pi) h (2p + 1)) in its place, which holds for every h.

    Examples
    --------
    >>> bool(erfc_series_bound(4.0, h=0.19, p=12) < 1e-8)
    True
    """
    left_out = 2.0 / (sqrt(pi) * h) * erfc((2 * p + 1) * h)
    return left_out + erfc_of(pi / (2.0 * h) - np.abs(np.asarray(z, dtype=float)))


def check_eps(eps: float) -> None:
    """ValueError unless eps is a precision that can be guaranteed."""
    if not (isinstance(eps, Real) and _SMALLEST_EPS <= eps < 1.0):
        raise ValueError(f"eps must lie between {_SMALLEST_EPS:g} and 1; got {eps!r}.")


def _check_points(
    targets: ArrayLike, sources: ArrayLike, weights: ArrayLike | None
) -> tuple[Vector, Vector, Vector]:
    y, z = np.asarray(targets, dtype=float), np.asarray(sources, dtype=float)
    q = np.ones(z.shape) if weights is None else np.asarray(weights, dtype=float)
    for name, points in (("targets", y), ("sources", z), ("weights", q)):
        if points.ndim != 1:
            raise ValueError(f"{name} has shape {points.shape}; expected one dimension.")
        if not np.isfinite(points).all():
            entry = int(np.argmin(np.isfinite(points)))
            raise ValueError(f"{name} must be finite; entry {entry} is {points[entry]}.")
        if name != "weights" and np.abs(points).max(initial=0.0) > _LARGEST_POINT:
            raise ValueError(
                f"{name} must not exceed 2^48 = {_LARGEST_POINT:g} in size; subtract a constant "
                "from all points."
            )
    if q.size != z.size:
        raise ValueError(
            f"weights has {q.size} entries for {z.size} sources; give one weight per source."
        )
    return y, z, q


@compiled
def _direct(y, z, q, out):  # type: ignore[no-untyped-def]
    for i in range(y.size):
        total = 0.0
        for j in range(z.size):
            total += q[j] * erfc(y[i] - z[j])
        out[i] = total


@dataclass(frozen=True)
class _Cells:
    """Points sorted by cell, with their offsets from the centre of the cell.

    `number` are the ascending numbers of cells with points; cell c has the points
    order[start[c]:start[c + 1]].
    """

    order: Index
    offset: Vector
    number: NDArray[np.int64]
    start: NDArray[np.int64]

    @classmethod
    def of(cls, points: Vector, width: float) -> "_Cells":
        cell = np.floor(points * (1.0 / width)).astype(np.int64)
        first = int(cell.min())
        span = int(cell.max()) - first + 1
        if span <= 1024 + points.size:
            group = cell - first
            start = np.concatenate([[0], np.cumsum(np.bincount(group))])
            order = sort_by_group(np.arange(points.size), group, start[:-1])
            number = np.flatnonzero(np.diff(start))
            start = np.append(start[number], points.size)
            number += first
        else:
            order = np.argsort(cell, kind="stable")
            number, begins = np.unique(cell[order], return_index=True)
            start = np.append(begins, points.size)
        return cls(order, _offsets(points, cell, order, width), number, start)


@compiled
def _offsets(points, cell, order, width):  # type: ignore[no-untyped-def]
    out = np.empty(points.size)
    for k in range(order.size):
        i = order[k]
        # Exact: both are multiples of the last bit of the point.
        out[k] = points[i] - (cell[i] + 0.5) * width
    return out


@compiled(fastmath={"contract", "reassoc"})
def _add_series(offset, q, h, cosines, sines):  # type: ignore[no-untyped-def]
    """Add sum_j q_j cos(2 n h x_j) and sum_j q_j sin(2 n h x_j), n = 1, 3, ..., of a cell."""
    re, im = np.empty(_LANES), np.empty(_LANES)
    turn_re, turn_im = np.empty(_LANES), np.empty(_LANES)
    for begin in range(0, offset.size, _LANES):
        size = min(_LANES, offset.size - begin)
        for i in range(size):
            angle = 2.0 * h * offset[begin + i]
            c, s = np.cos(angle), np.sin(angle)
            re[i], im[i] = q[begin + i] * c, q[begin + i] * s
            turn_re[i], turn_im[i] = (c - s) * (c + s), 2.0 * c * s
        for k in range(cosines.size):
            cosine = sine = 0.0
            for i in range(size):
                cosine += re[i]
                sine += im[i]
                re[i], im[i] = (
                    re[i] * turn_re[i] - im[i] * turn_im[i],
                    re[i] * turn_im[i] + im[i] * turn_re[i],
                )
            cosines[k] += cosine
            sines[k] += sine


@compiled(fastmath={"contract", "reassoc"})
def _read_series(offset, order, h, cosines, sines, height, base, out, integral):  # type: ignore[no-untyped-def]
    """At the targets x of a cell: height - (4 / pi) sum_n (A_n sin - B_n cos), and, unless
    `integral` is empty, minus its integral: base - height x - (4 / pi) sum_n (A_n cos + B_n sin) /
    (2 n h).
    """
    with_integral = integral.size > 0
    re, im = np.empty(_LANES), np.empty(_LANES)
    turn_re, turn_im = np.empty(_LANES), np.empty(_LANES)
    total, area = np.empty(_LANES), np.empty(_LANES)
    for begin in range(0, offset.size, _LANES):
        size = min(_LANES, offset.size - begin)
        for i in range(size):
            angle = 2.0 * h * offset[begin + i]
            c, s = np.cos(angle), np.sin(angle)
            re[i], im[i] = c, s
            turn_re[i], turn_im[i] = (c - s) * (c + s), 2.0 * c * s
            total[i] = area[i] = 0.0
        for k in range(cosines.size):
            a, b = cosines[k], sines[k]
            f = 1.0 / (2.0 * h * (2 * k + 1))
            if with_integral:
                for i in range(size):
                    area[i] += f * (a * re[i] + b * im[i])
            for i in range(size):
                total[i] += a * im[i] - b * re[i]
                re[i], im[i] = (
                    re[i] * turn_re[i] - im[i] * turn_im[i],
                    re[i] * turn_im[i] + im[i] * turn_re[i],
                )
        for i in range(size):
            k = order[begin + i]
            out[k] = height - (4.0 / np.pi) * total[i]
            if with_integral:
                integral[k] = base - height * offset[begin + i] - (4.0 / np.pi) * area[i]


@compiled
def _translations(width, reach, h, p):  # type: ignore[no-untyped-def]
    """Cosines and sines that translate a series between the centres of two cells, by the difference
    of their numbers plus reach.
    """
    cosine, sine = np.empty((2 * reach + 1, p)), np.empty((2 * reach + 1, p))
    for m in range(2 * reach + 1):
        for k in range(p):
            angle = 2.0 * h * (2 * k + 1) * (m - reach) * width
            cosine[m, k], sine[m, k] = np.cos(angle), np.sin(angle)
    return cosine, sine


@compiled
def _sum_cells(begin, end, targets, sources, series, out, integral):  # type: ignore[no-untyped-def]
    """The sums at the targets of the cells begin .. end - 1, in one pass over the source cells."""
    y_offset, y_order, y_number, y_start = targets
    z_offset, z_number, z_start, q, above_q, above_m = sources
    width, reach, h, coefficients = series
    p = coefficients.size
    turn_re, turn_im = _translations(width, reach, h, p)
    # ierfc(t), the integral of erfc from t to infinity, is
    # at_zero - t - (4 / pi) sum_n cos(2 n h t) exp(-n^2 h^2) / (2 h n^2).
    at_zero = 1.0 / np.sqrt(np.pi)
    for k in range(p):
        at_zero += (4.0 / np.pi) * coefficients[k] / (2.0 * h * (2 * k + 1))
    # Series of the near source cells, in a ring buffer.
    slots = 2 * reach + 2
    ring_cos, ring_sin = np.zeros((slots, p)), np.zeros((slots, p))
    ring_q, ring_m = np.zeros(slots), np.zeros(slots)
    cosines, sines = np.empty(p), np.empty(p)
    low = high = np.searchsorted(z_number, y_number[begin] - reach) if end > begin else 0
    for c in range(begin, end):
        while low < z_number.size and z_number[low] < y_number[c] - reach:
            low += 1
        high = max(high, low)
        while high < z_number.size and z_number[high] <= y_number[c] + reach:
            slot = high % slots
            ring_cos[slot] = 0.0
            ring_sin[slot] = 0.0
            part = slice(z_start[high], z_start[high + 1])
            _add_series(z_offset[part], q[part], h, ring_cos[slot], ring_sin[slot])
            charge = moment = 0.0
            for j in range(z_start[high], z_start[high + 1]):
                charge += q[j]
                moment += q[j] * z_offset[j]
            ring_q[slot], ring_m[slot] = charge, moment
            high += 1
        cosines[:] = 0.0
        sines[:] = 0.0
        # Far sources above add 2 q, and 2 q (z - y) to the integral; moments are about the centre
        # of this cell.
        height = 2.0 * above_q[high]
        base = 2.0 * (above_m[high] - above_q[high] * width * (y_number[c] - y_number[0]))
        for b in range(low, high):
            slot = b % slots
            m = z_number[b] - y_number[c] + reach
            for k in range(p):
                cosines[k] += ring_cos[slot, k] * turn_re[m, k] - ring_sin[slot, k] * turn_im[m, k]
                sines[k] += ring_cos[slot, k] * turn_im[m, k] + ring_sin[slot, k] * turn_re[m, k]
            height += ring_q[slot]
            base += ring_m[slot] + ring_q[slot] * (at_zero + width * (z_number[b] - y_number[c]))
        for k in range(p):
            cosines[k] *= coefficients[k]
            sines[k] *= coefficients[k]
        part = slice(y_start[c], y_start[c + 1])
        _read_series(y_offset[part], y_order[part], h, cosines, sines, height, base, out, integral)


@compiled
def _above(z_offset, z_number, z_start, q, width, origin):  # type: ignore[no-untyped-def]
    """Charge of each cell and all above it, and first moment about the centre of cell `origin`."""
    above_q, above_m = np.zeros(z_number.size + 1), np.zeros(z_number.size + 1)
    for b in range(z_number.size - 1, -1, -1):
        charge = moment = 0.0
        for j in range(z_start[b], z_start[b + 1]):
            charge += q[j]
            moment += q[j] * z_offset[j]
        above_q[b] = above_q[b + 1] + charge
        above_m[b] = above_m[b + 1] + moment + charge * width * (z_number[b] - origin)
    return above_q, above_m


def _sums(
    y: Vector, z: Vector, q: Vector, eps: float, *, with_integral: bool
) -> tuple[Vector, Vector]:
    """The sums of erfc, and of its integral from y - z to infinity if `with_integral`."""
    out, integral = np.zeros(y.size), np.zeros(y.size if with_integral else 0)
    if y.size == 0 or z.size == 0:
        return out, integral
    series = ErfcSeries.for_precision(eps)
    at, of = _Cells.of(y, series.width), _Cells.of(z, series.width)
    targets = at.offset, at.order, at.number, at.start
    of_cells = of.offset, of.number, of.start, q[of.order]
    sources = (*of_cells, *_above(*of_cells, series.width, at.number[0]))
    parameters = series.width, series.reach, series.h, series.coefficients
    in_row_chunks(
        lambda begin, end: _sum_cells(begin, end, targets, sources, parameters, out, integral),
        at.number.size,
        series.coefficients.size * y.size,
    )
    return out, integral


@compiled
def _small_blocks(z, w, start, split, small, slopes):  # type: ignore[no-untyped-def]
    """Sum of w_i w_j ierfc(z_i - z_j) over the small blocks, pair by pair; adds the sums of
    w_j erfc(z_i - z_j) at each entry to `slopes`.
    """
    value = 0.0
    for b in range(split.size):
        if small[b]:
            for i in range(split[b], start[b + 1]):
                for j in range(start[b], split[b]):
                    t = z[i] - z[j]
                    slope = erfc(t)
                    slopes[i] += w[j] * slope
                    slopes[j] += w[i] * slope
                    value += w[i] * w[j] * (np.exp(-t * t) / np.sqrt(np.pi) - t * slope)
    return value


class ErfcPairs:
    """The mean of the loss with slope -erfc(a t) / 2 over all pairs of `blocks`, at scores `s`
    (raykar2007, eq. 3).

    The error of the slope at a row is at most eps / 2 times the weight of its partners; that of
    `value` is larger by the width of the near cells. There is no curvature.
    """

    def __init__(self, blocks: PairBlocks, s: Vector, eps: float) -> None:
        scale = 1.0 / blocks.total_weight
        w, z = blocks.weight, ERFC_SCALE * s[blocks.rows]
        small = blocks.n_pairs <= _FEW_PAIRS
        slopes = np.zeros(z.size)
        if not small.all() and out_of_range(z):
            self.value, self.gradient = np.inf, np.zeros(blocks.n_rows)
            return
        value, start, split = 0.0, blocks.start, blocks.split
        if small.any():
            value = _small_blocks(z, w, start, split, small, slopes)
        for k in np.flatnonzero(~small):
            lower, upper = slice(start[k], split[k]), slice(split[k], start[k + 1])
            slopes[upper], integral = _sums(z[upper], z[lower], w[lower], eps, with_integral=True)
            slopes[lower], _ = _sums(-z[lower], -z[upper], w[upper], eps, with_integral=False)
            value += float(w[upper] @ integral)
        self.value = 0.5 * scale / ERFC_SCALE * value
        self.gradient = blocks.add_to_rows(slopes * blocks.sign * (-0.5 * scale * w))
