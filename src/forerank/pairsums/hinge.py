"""All-pairs sums of the hinge and the squared hinge, by one sort of the scores.

For an upper row i the pairs with a loss are those with lower rows j of score s_j > s_i - 1, and
m_ij = 1 - (s_i - s_j) > 0. Everything follows from three sums over these active rows,

    M0_i = sum_j w_j,   M1_i = sum_j w_j m_ij,   M2_i = sum_j w_j m_ij^2   (maths/pairsums.md, 1)

With z = s_i for upper rows and z = s_j + 1 for lower ones, m_ij = z_j - z_i: the active rows are
those with a larger z. In one pass over all rows in descending order of z the active set only grows,
and every m_ij grows by the same step, so the sums are updated by adding non-negative terms, without
cancellation for scores of any size. A pass in ascending order has those of the lower rows. Adding 1
to s_j rounds it by no more than scores of its size are rounded by themselves.

    hinge            sum_ij w_i w_j m_ij    = sum_i w_i M1_i    slope at i: -w_i M0_i
    squared hinge    sum_ij w_i w_j m_ij^2  = sum_i w_i M2_i    slope at i: -2 w_i M1_i
                                                                curvature:   2 w_i M0_i

A pair exactly on the margin (m_ij = 0) is not active: of rows with equal z, the lower ones come
first. Cost: N log N for the sort, then N for value and slopes together and N for each curvature
product.

The sums at a target add up over sources: `margin_moments` against chunks of sources, chunk by
chunk, has the same totals as against all of them, as out-of-core and distributed data need.
"""

from collections.abc import Callable
from copy import copy
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from forerank._kernels import compiled, in_parallel
from forerank._sorting import argsort, sort_by_group
from forerank._typing import Index, Vector
from forerank.pairsums.blocks import PairBlocks

__all__ = ["HingePairs", "SmoothedHingePairs", "margin_moments"]


@compiled
def _moments(t, s, w, sign, margin, m0, m1, m2, n_active):  # type: ignore[no-untyped-def]
    """Fill M0, M1, M2 at the targets t from the sources s (both ascending).

    sign = +1: targets are upper rows, in descending order; -1: lower rows, in ascending order. A
    source is active where the score difference of the pair is less than `margin`. n_active[i] is
    the number of active sources of target i, counted from the end at which the pass begins.
    """
    step = -1 if sign > 0 else 1
    i = t.size - 1 if sign > 0 else 0
    j = s.size - 1 if sign > 0 else 0
    a0 = a1 = a2 = 0.0
    active = 0
    previous = sign * t[i]
    for _ in range(t.size):
        here = sign * t[i]
        change = previous - here
        a2 += change * (2.0 * a1 + a0 * change)
        a1 += a0 * change
        previous = here
        while active < s.size:
            m = margin - (here - sign * s[j])
            if not m > 0.0:
                break
            wm = w[j] * m
            a0 += w[j]
            a1 += wm
            a2 += wm * m
            active += 1
            j += step
        m0[i], m1[i], m2[i], n_active[i] = a0, a1, a2, active
        i += step


def margin_moments(
    targets: ArrayLike,
    sources: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    targets_are: Literal["upper", "lower"],
) -> tuple[Vector, Vector, Vector]:
    """M0, M1, M2 at each target: the sums over active sources of w, w m and w m^2.

    m = 1 - (upper - lower) over the pair of target and source; a source is active where m > 0. The
    sums add up over chunks of sources. Cost: N log N in the number of targets and sources.

    Examples
    --------
    >>> margin_moments([0.0, 3.0], [0.5, 2.5], targets_are="upper")
    (array([2., 1.]), array([5. , 0.5]), array([14.5 ,  0.25]))
    """
    if targets_are not in ("upper", "lower"):
        raise ValueError(f"targets_are must be 'upper' or 'lower', got {targets_are!r}.")
    t, s = np.asarray(targets, dtype=float), np.asarray(sources, dtype=float)
    w = np.ones(s.size) if weights is None else np.asarray(weights, dtype=float)
    if w.shape != s.shape:
        raise ValueError(f"sources and weights must have one length; got {s.size} and {w.size}.")
    moments = np.zeros((3, t.size))
    if t.size and s.size:
        by_target, by_source = argsort(t), argsort(s)
        ascending, n_active = np.empty((3, t.size)), np.empty(t.size, dtype=np.int64)
        sign = 1.0 if targets_are == "upper" else -1.0
        _moments(t[by_target], s[by_source], w[by_source], sign, 1.0, *ascending, n_active)
        moments[:, by_target] = ascending
    return moments[0], moments[1], moments[2]


@compiled
def _sum_half(z, is_upper, rows, w, begin, end, sign, degree, scale, gradient, m0):  # type: ignore[no-untyped-def]
    """Fill M0 and add the slopes at the upper (sign = 1) or the lower rows (-1) of a block to
    `gradient`; returns the value of the block.
    """
    own, step = sign > 0, -1 if sign > 0 else 1
    e = end - 1 if sign > 0 else begin
    a0 = a1 = a2 = value = 0.0
    previous = z[e]
    for _ in range(begin, end):
        change = abs(previous - z[e])
        a2 += change * (2.0 * a1 + a0 * change)
        a1 += a0 * change
        previous = z[e]
        if is_upper[e] == own:
            m0[e] = a0
            slope = a0 if degree == 1 else 2.0 * a1
            gradient[rows[e]] -= sign * scale * w[e] * slope
            value += w[e] * (a1 if degree == 1 else a2)
        else:
            a0 += w[e]
        e += step
    return scale * value


@compiled
def _sum_blocks(z, is_upper, rows, w, start, degree, scale, gradient, m0):  # type: ignore[no-untyped-def]
    value = 0.0
    for b in range(start.size - 1):
        for sign in (1.0, -1.0):
            of_half = _sum_half(
                z, is_upper, rows, w, start[b], start[b + 1], sign, degree, scale, gradient, m0
            )
            value += of_half if sign > 0 else 0.0
    return value


@compiled
def _add_half_curvature(u, is_upper, rows, w, begin, end, sign, m0, scale, out):  # type: ignore[no-untyped-def]
    """Add scale * w_i sum_{active j} w_j (u_i - u_j) to out[row i], for the rows i of a half."""
    own, step = sign > 0, -1 if sign > 0 else 1
    e, total = end - 1 if sign > 0 else begin, 0.0
    for _ in range(begin, end):
        x = u[rows[e]]
        if is_upper[e] == own:
            out[rows[e]] += scale * w[e] * (x * m0[e] - total)
        else:
            total += w[e] * x
        e += step


@compiled
def _add_half_curvatures(U, is_upper, rows, w, begin, end, sign, m0, scale, out):  # type: ignore[no-untyped-def]
    """`_add_half_curvature` for all columns of U in one pass."""
    own, step = sign > 0, -1 if sign > 0 else 1
    e, total = end - 1 if sign > 0 else begin, np.zeros(U.shape[1])
    # Loops, not array expressions, which take numba two seconds longer to compile.
    for _ in range(begin, end):
        x, y = U[rows[e]], out[rows[e]]
        if is_upper[e] == own:
            for k in range(total.size):
                y[k] += (scale * w[e]) * (x[k] * m0[e] - total[k])
        else:
            for k in range(total.size):
                total[k] += w[e] * x[k]
        e += step


@compiled
def _add_curvature(u, is_upper, rows, w, start, m0, scale, out):  # type: ignore[no-untyped-def]
    for b in range(start.size - 1):
        for sign in (1.0, -1.0):
            _add_half_curvature(
                u, is_upper, rows, w, start[b], start[b + 1], sign, m0, scale, out
            )  # fmt: skip


@compiled
def _add_curvatures(U, is_upper, rows, w, start, m0, scale, out):  # type: ignore[no-untyped-def]
    for b in range(start.size - 1):
        for sign in (1.0, -1.0):
            _add_half_curvatures(
                U, is_upper, rows, w, start[b], start[b + 1], sign, m0, scale, out
            )  # fmt: skip


class HingePairs:
    """The mean of max(0, margin - t)^degree over all pairs of `blocks`, at scores `s`.

    `value` and `gradient` (by row) are computed at once; `curvature_product`, for degree 2, costs
    N.
    """

    def __init__(
        self, blocks: PairBlocks, s: Vector, degree: Literal[1, 2], margin: float = 1.0
    ) -> None:
        s = np.asarray(s, dtype=float)
        z = s[blocks.rows]
        z += np.where(blocks.is_upper, 0.0, margin)
        order = _sorted_entries(blocks, z)
        self._rows, self._is_upper = blocks.rows[order], blocks.is_upper[order]
        self._weight = blocks.weight if blocks.unweighted else blocks.weight[order]
        self._scores, self._margin = s, margin
        del z, order
        self._fill(blocks, degree)

    def _fill(self, blocks: PairBlocks, degree: Literal[1, 2]) -> None:
        """The value; fills gradient and M0."""
        self._blocks, self._scale = blocks, 1.0 / blocks.total_weight
        self._m0, self.gradient = np.empty(self._rows.size), np.zeros(blocks.n_rows)
        z = self._scores[self._rows]
        z += np.where(self._is_upper, 0.0, self._margin)
        entries = z, self._is_upper, self._rows, self._weight
        options = degree, self._scale, self.gradient, self._m0
        if blocks.n_blocks > 1:
            self.value: float = _sum_blocks(*entries, blocks.start, *options)
            return
        self.value = self._both_halves(
            lambda sign: _sum_half(*entries, 0, self._rows.size, sign, *options)
        )

    def _like(self, degree: Literal[1, 2]) -> "HingePairs":
        """Another degree at the same scores, without a sort."""
        other = copy(self)
        other._fill(self._blocks, degree)
        return other

    def _both_halves(self, half: Callable[[float], float]) -> float:
        """half(1.0) of two calls, half(sign) for the upper (1) and the lower rows (-1) of a single
        block, which are different rows, so that two threads may work on them.
        """
        return in_parallel(lambda: half(1.0), lambda: half(-1.0), work=self._rows.size)[0]

    def curvature_product(self, u: Vector) -> Vector:
        """F''(s) u, for the squared hinge."""
        return self._curvature(u, _add_curvature, _add_half_curvature)

    def curvature_matrix(self, U: Vector) -> Vector:
        """F''(s) U for the columns of U, for the squared hinge."""
        return self._curvature(U, _add_curvatures, _add_half_curvatures)

    def _curvature(self, u: Vector, of_blocks: Callable, of_half: Callable) -> Vector:
        out, scale = np.zeros(u.shape), 2.0 * self._scale
        entries = self._is_upper, self._rows, self._weight
        if self._blocks.n_blocks > 1:
            of_blocks(u, *entries, self._blocks.start, self._m0, scale, out)
            return out

        def half(sign: float) -> float:
            of_half(u, *entries, 0, self._rows.size, sign, self._m0, scale, out)
            return 0.0

        self._both_halves(half)
        return out

    def curved_rows(self) -> Index:
        """The rows with a curvature, for the squared hinge."""
        return np.flatnonzero(self.active_weight())

    def active_weight(self) -> Vector:
        """M0 by row."""
        return self._by_row(self._m0)

    def curvature_diagonal(self) -> Vector:
        """The diagonal of F''(s), for the squared hinge."""
        return self._by_row(2.0 * self._scale * self._weight * self._m0)

    def _by_row(self, by_entry: Vector) -> Vector:
        """Sums over the entries of each row."""
        if self._blocks.n_blocks == 1:
            out = np.zeros(self._blocks.n_rows)
            out[self._rows] = by_entry
            return out
        sums = np.bincount(self._rows, by_entry, self._blocks.n_rows)
        return sums.astype(float, copy=False)


class SmoothedHingePairs:
    """The mean smoothed hinge of the given width over all pairs of `blocks`, at scores `s`.

    The smoothed hinge is a difference of two squared hinges, ((1 + width/2 - t)_+^2 - (1 - width/2
    - t)_+^2) / (2 width), and takes two sorts. Its relative rounding error grows with
    the ratio of the span of the scores to the width, which is moderate near the solutions of the
    hinge.
    """

    def __init__(self, blocks: PairBlocks, s: Vector, width: float) -> None:
        self._width = width
        self._outer = HingePairs(blocks, s, 2, 1.0 + 0.5 * width)
        self._inner = HingePairs(blocks, s, 2, 1.0 - 0.5 * width)
        self._factor = 0.5 / width
        self.value = self._factor * (self._outer.value - self._inner.value)
        self.gradient = self._difference(self._outer.gradient, self._inner.gradient)
        del self._outer.gradient, self._inner.gradient

    def total_slope(self) -> float:
        """The mean of |slope| over all pairs. Cost: two passes, without a sort."""
        return (self._outer._like(1).value - self._inner._like(1).value) / self._width

    def _difference(self, outer: Vector, inner: Vector) -> Vector:
        outer -= inner
        outer *= self._factor
        return outer

    def curved_rows(self) -> Index:
        """The rows with a curvature."""
        return np.flatnonzero(self._outer.active_weight() != self._inner.active_weight())

    def curvature_product(self, u: Vector) -> Vector:
        """F''(s) u."""
        return self._difference(self._outer.curvature_product(u), self._inner.curvature_product(u))

    def curvature_matrix(self, U: Vector) -> Vector:
        """F''(s) U for the columns of U."""
        return self._difference(self._outer.curvature_matrix(U), self._inner.curvature_matrix(U))

    def curvature_diagonal(self) -> Vector:
        """The diagonal of F''(s)."""
        return self._difference(self._outer.curvature_diagonal(), self._inner.curvature_diagonal())


def _sorted_entries(blocks: PairBlocks, z: Vector) -> Index:
    """Entries sorted by block, then by z; of equal ones the lower rows first."""
    order = argsort(z, stable=True)
    if blocks.n_blocks == 1:
        return order
    block = np.repeat(np.arange(blocks.n_blocks, dtype=np.int32), np.diff(blocks.start))
    return sort_by_group(order, block, blocks.start[:-1])
