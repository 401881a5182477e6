"""All-pairs sums of the hinge and the squared hinge, by one sort of the scores.

For an upper row i the pairs with a loss are those with lower rows j of score s_j > s_i - 1, and
m_ij = 1 - (s_i - s_j) > 0. Everything follows from three sums over these active rows,

    M0_i = sum_j w_j,   M1_i = sum_j w_j m_ij,   M2_i = sum_j w_j m_ij^2   (maths/pairsums.md, 1)

In one pass over the upper scores in descending order the active set only grows, and every m_ij
grows by the same step, so the sums are updated by adding non-negative terms, without cancellation
for scores of any size. The lower rows are the same pass over the negated scores.

    hinge            sum_ij w_i w_j m_ij    = sum_i w_i M1_i    slope at i: -w_i M0_i
    squared hinge    sum_ij w_i w_j m_ij^2  = sum_i w_i M2_i    slope at i: -2 w_i M1_i
                                                                curvature:   2 w_i M0_i

A pair exactly on the margin (m_ij = 0) is not active. Cost: N log N for the sort, then N for value
and slopes together and N for each curvature product.

The sums at a target add up over sources: `margin_moments` against chunks of sources, chunk by
chunk, has the same totals as against all of them, as out-of-core and distributed data need.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forerank._kernels import compiled, in_parallel
from forerank._sorting import argsort, sort_by_group
from forerank._typing import Index, Mask, Vector
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
def _sum_half(t, s, rows, w_t, w_s, sign, degree, margin, scale, gradient, m0, n_active):  # type: ignore[no-untyped-def]
    """Add the slopes at one half of a block to `gradient`; returns the value of the block."""
    m1 = np.empty(t.size)
    m2 = np.empty(t.size)
    _moments(t, s, w_s, sign, margin, m0, m1, m2, n_active)
    value = 0.0
    for e in range(t.size):
        slope = m0[e] if degree == 1 else 2.0 * m1[e]
        gradient[rows[e]] -= sign * scale * w_t[e] * slope
        value += w_t[e] * (m1[e] if degree == 1 else m2[e])
    return scale * value


@compiled
def _sum_blocks(t, rows, w, start, split, degree, margin, scale, gradient, m0, n_active):  # type: ignore[no-untyped-def]
    value = 0.0
    for b in range(split.size):
        lower, upper = slice(start[b], split[b]), slice(split[b], start[b + 1])
        value += _sum_half(
            t[upper], t[lower], rows[upper], w[upper], w[lower], 1.0,
            degree, margin, scale, gradient, m0[upper], n_active[upper],
        )  # fmt: skip
        _sum_half(
            t[lower], t[upper], rows[lower], w[lower], w[upper], -1.0,
            degree, margin, scale, gradient, m0[lower], n_active[lower],
        )  # fmt: skip
    return value


@compiled
def _add_half_curvature(u, rows_t, rows_s, w_t, w_s, sign, m0, n_active, scale, out):  # type: ignore[no-untyped-def]
    """Add scale * w_i sum_{active j} w_j (u_i - u_j) to out[row i], for the targets i of a half."""
    step = -1 if sign > 0 else 1
    e = rows_t.size - 1 if sign > 0 else 0
    j = rows_s.size - 1 if sign > 0 else 0
    active = 0
    total = 0.0
    for _ in range(rows_t.size):
        while active < n_active[e]:
            total += w_s[j] * u[rows_s[j]]
            active += 1
            j += step
        out[rows_t[e]] += scale * w_t[e] * (u[rows_t[e]] * m0[e] - total)
        e += step


@compiled
def _add_half_curvatures(U, rows_t, rows_s, w_t, w_s, sign, m0, n_active, scale, out):  # type: ignore[no-untyped-def]
    """`_add_half_curvature` for all columns of U in one pass."""
    step = -1 if sign > 0 else 1
    e = rows_t.size - 1 if sign > 0 else 0
    j = rows_s.size - 1 if sign > 0 else 0
    active = 0
    total = np.zeros(U.shape[1])
    # Loops, not array expressions, which take numba two seconds longer to compile.
    for _ in range(rows_t.size):
        while active < n_active[e]:
            for k in range(total.size):
                total[k] += w_s[j] * U[rows_s[j], k]
            active += 1
            j += step
        for k in range(total.size):
            out[rows_t[e], k] += (scale * w_t[e]) * (U[rows_t[e], k] * m0[e] - total[k])
        e += step


@compiled
def _add_curvature(u, rows, w, start, split, m0, n_active, scale, out):  # type: ignore[no-untyped-def]
    for b in range(split.size):
        for sign in (1.0, -1.0):
            lower, upper = slice(start[b], split[b]), slice(split[b], start[b + 1])
            own, other = (upper, lower) if sign > 0 else (lower, upper)
            own_m0, own_active = m0[own], n_active[own]
            _add_half_curvature(
                u, rows[own], rows[other], w[own], w[other], sign, own_m0, own_active, scale, out
            )  # fmt: skip


@compiled
def _add_curvatures(U, rows, w, start, split, m0, n_active, scale, out):  # type: ignore[no-untyped-def]
    for b in range(split.size):
        for sign in (1.0, -1.0):
            lower, upper = slice(start[b], split[b]), slice(split[b], start[b + 1])
            own, other = (upper, lower) if sign > 0 else (lower, upper)
            own_m0, own_active = m0[own], n_active[own]
            _add_half_curvatures(
                U, rows[own], rows[other], w[own], w[other], sign, own_m0, own_active, scale, out
            )  # fmt: skip


class HingePairs:
    """The mean of max(0, margin - t)^degree over all pairs of `blocks`, at scores `s`.

    `value` and `gradient` (by row) are computed at once; `curvature_product`, for degree 2, costs
    N.
    """

    def __init__(
        self, blocks: PairBlocks, s: Vector, degree: Literal[1, 2], margin: float = 1.0
    ) -> None:
        order = _sorted_entries(blocks, s)
        rows = blocks.rows[order]
        weight = blocks.weight if blocks.unweighted else blocks.weight[order]
        del order
        self._fill(blocks, s, degree, margin, rows, weight)

    def _fill(
        self,
        blocks: PairBlocks,
        s: Vector,
        degree: Literal[1, 2],
        margin: float,
        rows: NDArray,
        weight: Vector,
    ) -> None:
        self._blocks, self._rows, self._weight = blocks, rows, weight
        self._scale = 1.0 / blocks.total_weight
        self._m0 = np.empty(self._rows.size)
        self._n_active = np.empty(self._rows.size, dtype=blocks.rows.dtype)
        self.gradient = np.zeros(blocks.n_rows)
        self.value: float = self._sum(s[self._rows], degree, margin)

    def _like(self, degree: Literal[1, 2], s: Vector, margin: float) -> "HingePairs":
        """Another loss at the same scores, without a sort."""
        other = HingePairs.__new__(HingePairs)
        other._fill(self._blocks, s, degree, margin, self._rows, self._weight)
        return other

    def _sum(self, t: Vector, degree: int, margin: float) -> float:
        """The value; fills gradient, M0 and numbers of active sources."""
        b, rows, w, m0, n_active = self._blocks, self._rows, self._weight, self._m0, self._n_active
        options = degree, margin, self._scale, self.gradient
        if b.n_blocks > 1:
            return _sum_blocks(t, rows, w, b.start, b.split, *options, m0, n_active)

        def half(own: slice, other: slice, sign: float) -> float:
            arrays = t[own], t[other], rows[own], w[own], w[other]
            return _sum_half(*arrays, sign, *options, m0[own], n_active[own])

        return self._both_halves(half)[0]

    def _both_halves(self, half: Callable[[slice, slice, float], float]) -> tuple[float, float]:
        """half(own, other, sign) for the upper and the lower half of a single block, which have
        different rows, so that two threads may work on them.
        """
        split, end = self._blocks.split[0], self._rows.size
        lower, upper = slice(0, split), slice(split, end)
        return in_parallel(
            lambda: half(upper, lower, 1.0), lambda: half(lower, upper, -1.0), work=end
        )

    def curvature_product(self, u: Vector) -> Vector:
        """F''(s) u, for the squared hinge."""
        return self._curvature(u, _add_curvature, _add_half_curvature)

    def curvature_matrix(self, U: Vector) -> Vector:
        """F''(s) U for the columns of U, for the squared hinge."""
        return self._curvature(U, _add_curvatures, _add_half_curvatures)

    def _curvature(self, u: Vector, of_blocks: Callable, of_half: Callable) -> Vector:
        out = np.zeros(u.shape)
        b, rows, w, m0, n_active = self._blocks, self._rows, self._weight, self._m0, self._n_active
        scale = 2.0 * self._scale
        if b.n_blocks > 1:
            of_blocks(u, rows, w, b.start, b.split, m0, n_active, scale, out)
            return out

        def half(own: slice, other: slice, sign: float) -> float:
            arrays = rows[own], rows[other], w[own], w[other]
            of_half(u, *arrays, sign, m0[own], n_active[own], scale, out)
            return 0.0

        self._both_halves(half)
        return out

    def curved_rows(self) -> Index:
        """The rows with a curvature, for the squared hinge."""
        return self._rows_of(self._m0 > 0.0)

    def _rows_of(self, chosen: Mask) -> Index:
        """The rows of the chosen entries, ascending."""
        rows = self._rows[chosen].astype(np.intp)
        return np.sort(rows) if self._blocks.n_blocks == 1 else np.unique(rows)

    def curvature_diagonal(self) -> Vector:
        """The diagonal of F''(s), for the squared hinge."""
        by_entry = 2.0 * self._scale * self._weight * self._m0
        if self._blocks.n_blocks == 1:
            out = np.zeros(self._blocks.n_rows)
            out[self._rows] = by_entry
            return out
        sums = np.bincount(self._rows, by_entry, self._blocks.n_rows)
        return sums.astype(float, copy=False)


class SmoothedHingePairs:
    """The mean smoothed hinge of the given width over all pairs of `blocks`, at scores `s`.

    The smoothed hinge is a difference of two squared hinges, ((1 + width/2 - t)_+^2 - (1 - width/2
    - t)_+^2) / (2 width), and takes one sort and two passes. Its relative rounding error grows with
    the ratio of the span of the scores to the width, which is moderate near the solutions of the
    hinge.
    """

    def __init__(self, blocks: PairBlocks, s: Vector, width: float) -> None:
        self._scores, self._width = s, width
        self._outer = HingePairs(blocks, s, 2, 1.0 + 0.5 * width)
        self._inner = self._outer._like(2, s, 1.0 - 0.5 * width)
        self._factor = 0.5 / width
        self.value = self._factor * (self._outer.value - self._inner.value)
        self.gradient = self._difference(self._outer.gradient, self._inner.gradient)
        del self._outer.gradient, self._inner.gradient

    def total_slope(self) -> float:
        """The mean of |slope| over all pairs. Cost: two passes, without a sort."""
        margins = 1.0 + 0.5 * self._width, 1.0 - 0.5 * self._width
        outer, inner = (self._outer._like(1, self._scores, margin).value for margin in margins)
        return (outer - inner) / self._width

    def _difference(self, outer: Vector, inner: Vector) -> Vector:
        outer -= inner
        outer *= self._factor
        return outer

    def curved_rows(self) -> Index:
        """The rows with a curvature."""
        return self._outer._rows_of(self._outer._n_active != self._inner._n_active)

    def curvature_product(self, u: Vector) -> Vector:
        """F''(s) u."""
        return self._difference(self._outer.curvature_product(u), self._inner.curvature_product(u))

    def curvature_matrix(self, U: Vector) -> Vector:
        """F''(s) U for the columns of U."""
        return self._difference(self._outer.curvature_matrix(U), self._inner.curvature_matrix(U))

    def curvature_diagonal(self) -> Vector:
        """The diagonal of F''(s)."""
        return self._difference(self._outer.curvature_diagonal(), self._inner.curvature_diagonal())


def _sorted_entries(blocks: PairBlocks, s: Vector) -> Index:
    """Entries sorted by half of a block, then by score."""
    if blocks.n_blocks == 1:
        split = blocks.split[0]
        lower, upper = in_parallel(
            lambda: argsort(s[blocks.rows[:split]]),
            lambda: argsort(s[blocks.rows[split:]]),
            work=s.size,
        )
        upper += split
        return np.concatenate([lower, upper])
    half = np.repeat(np.arange(blocks.half_start.size, dtype=np.int32), blocks.half_size)
    return sort_by_group(argsort(s[blocks.rows]), half, blocks.half_start)
