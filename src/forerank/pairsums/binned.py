"""Hessians X^T F'' X of sums over pairs, from scores rounded to bins; for preconditioners.

With scores that are rounded to the mean of their bin, the curvature K(s_i - s_j) of a pair depends
on two bins only. The diagonal of F'' then needs the weight of each bin, and the rest of X^T F'' X
the weighted sum of the rows of each bin: no pass over X for each column. Half of the bins hold
about equally many rows, so that a few extreme scores do not take up most of them; the others are
equally wide, since rare columns occur in rows with extreme scores.
"""

from collections.abc import Callable

import numpy as np

from forerank._kernels import compiled
from forerank._typing import Vector
from forerank.design import Design
from forerank.pairsums.blocks import PairBlocks

__all__ = ["add_to_bins", "binned_hessian"]

# Bins of a block with equally many scores, and as many of equal width for the extreme scores; with
# fewer entries of X, the root of their number divided by this, so that the curvatures of all pairs
# of bins cost no more than a product; the scores from which the former are estimated, per bin.
_N_BINS, _FEWEST_BINS = 64, 32
_ROOTS_PER_BIN = 3
_SCORES_PER_BIN = 16
# Least width of a bin, in units of scores, so that differences of slopes are not rounding error.
_LEAST_WIDTH = 1e-4


def binned_hessian(
    blocks: PairBlocks, s: Vector, slope: Callable[[Vector], Vector], design: Design
) -> Vector:
    """X^T F'' X for the mean over pairs of a loss with this slope; scores are rounded to bins.

    The curvature of two bins is the mean over their widths, so it may have jumps. Cost: a product
    with X, and `design.weighted_gram`.
    """
    weight, cross = np.zeros(blocks.n_rows), np.zeros((design.n_columns, design.n_columns))
    n_bins = int(np.sqrt(design.n_entries)) // _ROOTS_PER_BIN
    n_bins = min(max(n_bins, _FEWEST_BINS), _N_BINS)
    for k in range(blocks.n_blocks):
        block = _BinnedBlock(blocks, k, s, slope, n_bins)
        weight[block.rows] += block.curvature
        cross += block.cross(design)
    return (design.weighted_gram(weight) - cross - cross.T) / blocks.total_weight


class _BinnedBlock:
    """A block of pairs with its scores in bins, separate ones for the lower and the upper half.

    `curvature` is the diagonal of F'' for the `rows` of the block.
    """

    def __init__(
        self,
        blocks: PairBlocks,
        k: int,
        s: Vector,
        slope: Callable[[Vector], Vector],
        n_bins: int,
    ) -> None:
        entries = slice(blocks.start[k], blocks.start[k + 1])
        split = blocks.split[k] - blocks.start[k]
        self.rows, self._weight = blocks.rows[entries], blocks.weight[entries]
        w, t = self._weight, s[self.rows]
        lowest, highest = float(t.min()), float(t.max())
        limits = _limits(t, lowest, highest, n_bins)
        width = np.maximum(np.diff(limits, prepend=lowest, append=highest), _LEAST_WIDTH)
        bins, totals = np.empty(t.size, np.intp), np.zeros((2, 2 * width.size))
        _find_bins(t, w, split, limits, lowest, highest, bins, totals)
        centres, totals = totals[1] / np.where(totals[0] > 0.0, totals[0], 1.0), totals[0]
        lower, upper = slice(0, width.size), slice(width.size, None)
        difference = np.subtract.outer(centres[upper], centres[lower])
        spread = np.add.outer(width, width)
        ends = difference - 0.5 * spread, difference + 0.5 * spread
        self._bins, self._kernel = bins, (slope(ends[1]) - slope(ends[0])) / spread
        of_bin = np.concatenate([self._kernel.T @ totals[upper], self._kernel @ totals[lower]])
        self.curvature = w * of_bin[bins]

    def cross(self, design: Design) -> Vector:
        """The sum of w_i w_j curvature x_i x_j^T over the pairs."""
        weight, bins = np.zeros(design.n_rows), np.zeros(design.n_rows, np.intp)
        weight[self.rows], bins[self.rows] = self._weight, self._bins
        n_bins = self._kernel.shape[0]
        sums = design.bin_sums(weight, bins, 2 * n_bins)
        return sums[n_bins:].T @ (self._kernel @ sums[:n_bins])


@compiled
def _find_bins(t, w, split, limits, lowest, highest, bins, totals):  # type: ignore[no-untyped-def]
    """Fill the bin of each score, of the lower or (from `split`) of the upper half, and for each
    bin its weight and its weighted sum of scores.

    A table has the first bin of each of 1024 intervals of equal width.
    """
    scale = 1023.0 / (highest - lowest) if highest > lowest else 0.0
    first, b = np.empty(1024, np.intp), 0
    for k in range(1024):
        while b < limits.size and (limits[b] - lowest) * scale < k - 1e-6:
            b += 1
        first[k] = b
    for e in range(t.size):
        x = (t[e] - lowest) * scale
        b = first[np.intp(x)] if 0.0 <= x <= 1023.0 else 0  # not a number, or an infinite scale
        while b < limits.size and limits[b] < t[e]:
            b += 1
        if e >= split:
            b += limits.size + 1
        bins[e] = b
        totals[0, b] += w[e]
        totals[1, b] += w[e] * t[e]


def _limits(t: Vector, lowest: float, highest: float, n_bins: int) -> Vector:
    """The scores between bins."""
    some = np.sort(t[:: max(1, t.size // (_SCORES_PER_BIN * n_bins))])
    share = np.arange(1, n_bins) / n_bins
    equal = lowest + share * (highest - lowest)
    limits = np.sort(np.concatenate([some[(share * some.size).astype(int)], equal]))
    return limits[np.diff(limits, append=np.inf) > 0.0]


@compiled
def add_to_bins(X, rows, w, bins, sums):  # type: ignore[no-untyped-def]
    """Add the weighted rows of X to their bins; the last column is the weight."""
    d = X.shape[1]
    for e in range(rows.size):
        x, c = X[rows[e]], sums[bins[e]]
        for k in range(d):
            c[k] += w[e] * x[k]
        c[d] += w[e]
