"""The mean logistic loss over all pairs, from sums on a grid (`forerank.pairsums.logistic_grid`).

    F(s) = sum_ij w_i w_j log(1 + exp(s_j - s_i)) / sum_ij w_i w_j

Value, gradient and curvature are kernel sums: at each entry of a block, a sum over the other half
of a function of the score difference, with weights called charges. Scores that span up to 128 have
one grid; wider ones are split into cells (`LogisticSources`); blocks with few pairs are summed pair
by pair. Cost: N, with no sort.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import toeplitz

from forerank._kernels import compiled, in_parallel
from forerank._typing import Vector
from forerank.losses import logistic_kernel
from forerank.pairsums.binned import add_to_bins
from forerank.pairsums.blocks import PairBlocks, out_of_range
from forerank.pairsums.logistic_grid import (
    CURVATURE,
    LOSS,
    NARROW,
    POLYNOMIALS,
    REVERSED_TABLES,
    SLOPE,
    STEPS_PER_UNIT,
    TABLES,
    dot,
    narrow_sums,
)
from forerank.pairsums.logistic_sources import LogisticSources, locate

__all__ = ["LogisticPairs"]


# Pairs of a block that cost as much as a grid of few nodes: 20 microseconds.
_FEW_PAIRS = 5_000
# Pairs that cost as much as one multiplication of a convolution (one for each pair of nodes).
_PAIRS_PER_PRODUCT = 1 / 20
# Most pairs whose curvatures are kept, and the sums before they are: many follow as a rule then.
_MOST_KEPT = 500_000
_SUMS_BEFORE = 3


@compiled
def _halves(b, start, split):  # type: ignore[no-untyped-def]
    """The shorter and the longer half of a block, from an entry to another one, and the sign of the
    margins t_i - t_j with i in the shorter half.
    """
    lower, upper = split[b] - start[b], start[b + 1] - split[b]
    if upper <= lower:
        return (split[b], start[b + 1]), (start[b], split[b]), 1.0
    return (start[b], split[b]), (split[b], start[b + 1]), -1.0


@compiled
def _longest_half(start, split, small):  # type: ignore[no-untyped-def]
    longest = 0
    for b in range(split.size):
        if small[b]:
            longest = max(longest, split[b] - start[b], start[b + 1] - split[b])
    return longest


@compiled(error_model="numpy", fastmath={"contract"})
def _small_values_slopes(t, w, start, split, small, sums):  # type: ignore[no-untyped-def]
    """The loss over all pairs of the small blocks; adds each entry's sum of slopes to `sums`."""
    losses, slopes = np.empty((2, _longest_half(start, split, small)))
    value = 0.0
    for b in range(split.size):
        if small[b]:
            outer, (first, end), sign = _halves(b, start, split)
            n = end - first
            t_in, w_in, sums_in = t[first:end], w[first:end], sums[first:end]
            for i in range(outer[0], outer[1]):
                t_i, w_i = t[i], w[i]
                for j in range(n):
                    losses[j], slopes[j], _ = logistic_kernel(sign * (t_i - t_in[j]))
                for j in range(n):
                    sums_in[j] += w_i * slopes[j]
                value += w_i * dot(w_in, losses)
                sums[i] += dot(w_in, slopes)
    return value


@compiled(error_model="numpy", fastmath={"contract"})
def _small_curvatures(t, q, start, split, small, sums):  # type: ignore[no-untyped-def]
    """Add each entry's sum of charges times curvatures in the small blocks to `sums`."""
    curvatures = np.empty(_longest_half(start, split, small))
    for b in range(split.size):
        if small[b]:
            outer, (first, end), _ = _halves(b, start, split)
            n = end - first
            t_in, q_in, sums_in = t[first:end], q[first:end], sums[first:end]
            for i in range(outer[0], outer[1]):
                t_i, q_i = t[i], q[i]
                for j in range(n):
                    curvatures[j] = logistic_kernel(t_i - t_in[j])[2]
                for j in range(n):
                    sums_in[j] += q_i * curvatures[j]
                sums[i] += dot(q_in, curvatures)


@compiled(error_model="numpy", fastmath={"contract"})
def _pair_curvatures(t, start, split):  # type: ignore[no-untyped-def]
    """The curvature of every pair, by block and within it by entry of the shorter half."""
    n_pairs = 0
    for b in range(split.size):
        n_pairs += (split[b] - start[b]) * (start[b + 1] - split[b])
    curvatures, pair = np.empty(n_pairs), 0
    for b in range(split.size):
        outer, (first, end), _ = _halves(b, start, split)
        for i in range(outer[0], outer[1]):
            t_i, own = t[i], curvatures[pair : pair + end - first]
            for j in range(end - first):
                own[j] = logistic_kernel(t_i - t[first + j])[2]
            pair += end - first
    return curvatures


@compiled(fastmath={"contract"})
def _sums_of_curvatures(curvatures, q, start, split, sums):  # type: ignore[no-untyped-def]
    """Add each entry's sum of charges times the curvatures of its pairs to `sums`."""
    pair = 0
    for b in range(split.size):
        outer, (first, end), _ = _halves(b, start, split)
        q_in, sums_in = q[first:end], sums[first:end]
        for i in range(outer[0], outer[1]):
            q_i, own = q[i], curvatures[pair : pair + end - first]
            for j in range(end - first):
                sums_in[j] += q_i * own[j]
            sums[i] += dot(q_in, own)
            pair += end - first


class LogisticPairs:
    """The mean logistic loss over all pairs of `blocks`, at scores `s`.

    `value` and `gradient` (by row) are computed at once; `curvature_product` costs about as much.
    Blocks of up to `few_pairs` pairs are summed pair by pair.
    """

    def __init__(self, blocks: PairBlocks, s: Vector, few_pairs: float = _FEW_PAIRS) -> None:
        self._blocks = blocks
        self._scale = 1.0 / blocks.total_weight
        self._t = s[blocks.rows]
        self._small = blocks.n_pairs <= few_pairs + _cheap_pairs(self._t, blocks)
        self._total_curvature: Vector | None = None
        # Curvatures of all pairs, and the number of their sums so far.
        self._curvatures: Vector | None = None
        self._n_sums = 0
        if not self._small.all() and out_of_range(self._t):
            self._large, self._total_curvature = [], np.zeros(self._t.size)
            self._small[:] = False
            self.value, self.gradient = np.inf, np.zeros(blocks.n_rows)
            return
        self._large = [_Block(blocks, k, self._t) for k in np.flatnonzero(~self._small)]
        self.value, slopes = self._value_and_slopes()
        self.gradient = self._by_row(np.multiply(slopes, blocks.sign, out=slopes))

    def _value_and_slopes(self) -> tuple[float, Vector]:
        b, w = self._blocks, self._blocks.weight
        slopes = np.zeros(self._t.size)
        value = 0.0
        if self._small.any():
            value += _small_values_slopes(self._t, w, b.start, b.split, self._small, slopes)
        for block in self._large:
            at_upper, at_lower = block.sums(w, (LOSS, SLOPE), (SLOPE,))
            slopes[block.upper], slopes[block.lower] = at_upper[1], at_lower[0]
            value += float(w[block.upper] @ at_upper[0])
        return self._scale * value, slopes

    def _curvature_sums(self, q: Vector) -> Vector:
        """sum_j q_j K''(t_i - t_j) over the other half of each entry's block."""
        b = self._blocks
        out = np.zeros(self._t.size)
        self._n_sums += 1
        if self._curvatures is None and self._n_sums > _SUMS_BEFORE and self._are_wide_and_few():
            self._curvatures = _pair_curvatures(self._t, b.start, b.split)
        if self._curvatures is not None:
            _sums_of_curvatures(self._curvatures, q, b.start, b.split, out)
            return out
        if self._small.any():
            _small_curvatures(self._t, q, b.start, b.split, self._small, out)
        for block in self._large:
            (out[block.upper],), (out[block.lower],) = block.sums(q, (CURVATURE,), (CURVATURE,))
        return out

    def _are_wide_and_few(self) -> bool:
        """Whether the pairs are few enough to keep their curvatures, and no grid is cheaper."""
        narrow = any(block.is_narrow for block in self._large)
        return not narrow and int(self._blocks.n_pairs.sum()) <= _MOST_KEPT

    def _by_row(self, sums: Vector) -> Vector:
        """The sums times weight and scale of their entry, added up by row."""
        b = self._blocks
        sums *= self._scale
        if not b.unweighted:
            sums *= b.weight
        return b.add_to_rows(sums)

    def _entry_curvature(self) -> Vector:
        if self._total_curvature is None:
            self._total_curvature = self._curvature_sums(self._blocks.weight)
        return self._total_curvature

    def curvature_product(self, u: Vector) -> Vector:
        """F''(s) u."""
        b, u_entry = self._blocks, u[self._blocks.rows]
        sums = self._curvature_sums(u_entry if b.unweighted else b.weight * u_entry)
        u_entry *= self._entry_curvature()
        u_entry -= sums
        return self._by_row(u_entry)

    def curvature_matrix(self, U: Vector) -> Vector:
        """F''(s) U for the columns of U, approximately: scores are rounded to at most 512 bins,
        which is enough for a preconditioner. Cost: that of reading U.
        """
        b, w = self._blocks, self._blocks.weight
        out = np.zeros(U.shape)
        for k in range(b.n_blocks):
            lower, upper = slice(b.start[k], b.split[k]), slice(b.split[k], b.start[k + 1])
            bins, n_bins, width = _bins(self._t, b.start[k], b.start[k + 1])
            e = np.exp(-width * np.arange(n_bins))
            kernel = toeplitz(e / (1.0 + e) ** 2)
            for own, other in ((lower, upper), (upper, lower)):
                charges = np.zeros((n_bins, U.shape[1] + 1))
                add_to_bins(U, b.rows[other], w[other], bins[other], charges)
                _add_from_bins(U, b.rows[own], w[own], bins[own], kernel @ charges, out)
        out *= self._scale
        return out

    def curvature_diagonal(self) -> Vector:
        """The diagonal of F''(s)."""
        return self._by_row(self._entry_curvature().copy())


def _cheap_pairs(t: Vector, blocks: PairBlocks) -> Vector:
    """For each block, the number of pairs that costs as much as the convolution of its grid."""
    longest = NARROW * STEPS_PER_UNIT
    cheap = np.zeros(blocks.n_blocks)
    if blocks.n_pairs.min(initial=longest**2) <= longest**2 * _PAIRS_PER_PRODUCT:
        span = np.maximum.reduceat(t, blocks.start[:-1]) - np.minimum.reduceat(t, blocks.start[:-1])
        cheap = np.minimum(span * STEPS_PER_UNIT, longest) ** 2 * _PAIRS_PER_PRODUCT
    return cheap


def _bins(t: Vector, begin: int, end: int) -> tuple[NDArray[np.int64], int, float]:
    """The bins of the scores of entries begin .. end - 1, their number and width (1/4 or more)."""
    low, high = t[begin:end].min(), t[begin:end].max()
    width = max(0.25, (high - low) / 511)
    return ((t - low) / width).astype(np.int64), int((high - low) / width) + 1, width


@compiled
def _add_from_bins(U, rows, w, bins, sums, out):  # type: ignore[no-untyped-def]
    """Add w_i (total_i u_i - sum_i) to each row, with the sums and totals of its bin."""
    d = U.shape[1]
    for e in range(rows.size):
        u, c, o = U[rows[e]], sums[bins[e]], out[rows[e]]
        for k in range(d):
            o[k] += w[e] * (c[d] * u[k] - c[k])


class _Block:
    """Kernel sums of one large block, at either half from charges on the other."""

    def __init__(self, blocks: PairBlocks, k: np.intp, t: Vector) -> None:
        self.lower = slice(blocks.start[k], blocks.split[k])
        self.upper = slice(blocks.split[k], blocks.start[k + 1])
        self._t_lower, self._t_upper = t[self.lower], t[self.upper]
        low = np.floor(min(self._t_lower.min(), self._t_upper.min()))
        high = max(self._t_lower.max(), self._t_upper.max())
        self._left = low
        self._n_intervals = int((high - low) * STEPS_PER_UNIT) + 1 if high - low < NARROW else 0
        if not self._n_intervals:
            self._cells_lower, self._cells_upper = locate(self._t_lower), locate(self._t_upper)

    @property
    def is_narrow(self) -> bool:
        """Whether all scores have one grid."""
        return self._n_intervals > 0

    def sums(
        self, q: Vector, at_upper: tuple[int, ...], at_lower: tuple[int, ...]
    ) -> tuple[Vector, Vector]:
        """Sums of the kernels `at_upper` at the upper rows, and of `at_lower` at the lower rows.

        Kernels are successive numbers of LOSS, SLOPE and CURVATURE.
        """
        q_lower, q_upper = q[self.lower], q[self.upper]
        if self.is_narrow:
            upper_tables = TABLES[at_upper[0] : at_upper[-1] + 1]
            lower_tables = REVERSED_TABLES[at_lower[0] : at_lower[-1] + 1]
            t_lower, t_upper, grid = self._t_lower, self._t_upper, (self._left, self._n_intervals)
            return in_parallel(
                lambda: narrow_sums(t_upper, t_lower, q_lower, *grid, upper_tables, POLYNOMIALS),
                lambda: narrow_sums(t_lower, t_upper, q_upper, *grid, lower_tables, POLYNOMIALS),
                work=q.size,
            )
        lower = LogisticSources(self._t_lower, q_lower, _cells=self._cells_lower)
        upper = LogisticSources(self._t_upper, q_upper, _cells=self._cells_upper)
        return (
            lower._sums(self._t_upper, self._cells_upper, at_upper, 1.0),
            upper._sums(self._t_lower, self._cells_lower, at_lower, -1.0),
        )
