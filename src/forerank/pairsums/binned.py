"""Hessians X^T F'' X of sums over pairs, from scores rounded to bins; for preconditioners.

With scores that are rounded to the mean of their bin, the curvature K(s_i - s_j) of a pair depends
on two bins only. The diagonal of F'' then needs the weight of each bin, and the rest of X^T F'' X
the weighted sum of the rows of each bin: no pass over X for each column. Half of the bins hold
about equally many rows, so that a few extreme scores do not take up most of them; the others are
equally wide, since rare columns occur in rows with extreme scores.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk

from forerank._kernels import compiled
from forerank._typing import Index, Vector
from forerank.pairsums.blocks import PairBlocks

__all__ = ["add_to_bins", "binned_hessian", "weighted_gram"]

# Bins of a block with equally many scores, and as many of equal width for the extreme scores; the
# scores from which the former are estimated.
_N_BINS = 64
_SCORES_FOR_LIMITS = 4096
# Least width of a bin, in units of scores, so that differences of slopes are not rounding error.
_LEAST_WIDTH = 1e-4


def weighted_gram(X: Vector, weight: Vector) -> Vector:
    """X^T diag(weight) X for weights that are not negative."""
    scaled = X * np.sqrt(weight)[:, None]
    upper = dsyrk(1.0, scaled.T)
    return upper + np.triu(upper, 1).T


def binned_hessian(
    blocks: PairBlocks, s: Vector, slope: Callable[[Vector], Vector], X: Vector
) -> Vector:
    """X^T F'' X for the mean over pairs of a loss with this slope; scores are rounded to bins.

    X has a row for each score. The curvature of two bins is the mean over their widths, so it may
    have jumps. Cost: N d + N d^2 / 2.
    """
    d = X.shape[1]
    weight, cross = np.zeros(blocks.n_rows), np.zeros((d, d))
    for k in range(blocks.n_blocks):
        entries = slice(blocks.start[k], blocks.start[k + 1])
        split = blocks.split[k] - blocks.start[k]
        rows, w = blocks.rows[entries], blocks.weight[entries]
        t = s[rows]
        limits = _limits(t)
        bins = np.searchsorted(limits, t)
        width = np.maximum(np.diff(limits, prepend=t.min(), append=t.max()), _LEAST_WIDTH)
        halves = slice(0, split), slice(split, None)
        sums, centres = zip(
            *(
                _bin_sums(X, rows[half], w[half], bins[half], t[half], width.size)
                for half in halves
            ),
            strict=True,
        )
        difference = np.subtract.outer(centres[1], centres[0])
        spread = np.add.outer(width, width)
        ends = difference - 0.5 * spread, difference + 0.5 * spread
        curvature = (slope(ends[1]) - slope(ends[0])) / spread
        cross += sums[1][:, :d].T @ (curvature @ sums[0][:, :d])
        of_bin = curvature.T @ sums[1][:, d], curvature @ sums[0][:, d]
        for half, total in zip(halves, of_bin, strict=True):
            weight += np.bincount(rows[half], w[half] * total[bins[half]], weight.size)
    return (weighted_gram(X, weight) - cross - cross.T) / blocks.total_weight


def _limits(t: Vector) -> Vector:
    """The scores between bins."""
    some = np.sort(t[:: max(1, t.size // _SCORES_FOR_LIMITS)])
    share = np.linspace(0.0, 1.0, _N_BINS + 1)[1:-1]
    lowest, highest = t.min(), t.max()
    equal = lowest + share * (highest - lowest)
    return np.unique(np.concatenate([some[(share * some.size).astype(int)], equal]))


def _bin_sums(
    X: Vector, rows: NDArray, w: Vector, bins: Index, t: Vector, n_bins: int
) -> tuple[Vector, Vector]:
    """Weighted sums of the rows of X in each bin, with their weight as the last column, and the
    mean score of each bin.
    """
    sums = np.zeros((n_bins, X.shape[1] + 1))
    add_to_bins(X, rows, w, bins, sums)
    total = np.bincount(bins, w * t, n_bins)
    return sums, total / np.where(sums[:, -1] > 0.0, sums[:, -1], 1.0)


@compiled
def add_to_bins(X, rows, w, bins, sums):  # type: ignore[no-untyped-def]
    """Add the weighted rows of X to their bins; the last column is the weight."""
    d = X.shape[1]
    for e in range(rows.size):
        x, c = X[rows[e]], sums[bins[e]]
        for k in range(d):
            c[k] += w[e] * x[k]
        c[d] += w[e]
