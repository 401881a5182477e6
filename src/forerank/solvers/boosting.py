"""RankBoost: coordinate descent on the all-pairs exponential loss over thresholded columns (Freund
et al. 2003).

A weak ranker h(x) = [x_k > threshold] is one coordinate of a linear model over all such indicators,
and the pair weights of boosting are the terms of the exponential loss. A round is

    g = dF/ds at the present scores, one number per row
    r = -g . h for every weak ranker, from one histogram of g per column
    the weak ranker with the largest |r|, and the step that minimises F along it:
    step = log(W+ / W-) / 2,    W+ - W- = -g . h,    W+ + W- = h F'' h

where W+ and W- are the loss in the pairs that h orders correctly and wrongly. Grades, graphs,
groups and weights are those of the objective. Columns are split into at most 256 bins once. Cost of
a round: one pass over a matrix of N x d bytes, and N for the scores.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._kernels import compiled, in_row_chunks
from forerank._typing import Mask, Vector
from forerank.objectives import AllPairs
from forerank.solvers.result import Progress

__all__ = ["Binned", "Stump", "boost"]


# Added to W+ and W-, relative to the loss: the step of a weak ranker without errors stays finite.
_SMOOTHING = 1e-8
# Relative difference of |r| below which weak rankers count as equal and the first is used, so that
# rounding errors do not decide.
_EQUAL = 1e-9
# Loss at which boosting ends, before it underflows: the classes are separated.
_SMALLEST_LOSS = 1e-250


@dataclass(frozen=True)
class Stump:
    """A weak ranker with its weight: adds `step` to rows above the threshold in the column."""

    column: int
    threshold: float
    step: float


@dataclass(frozen=True)
class Binned:
    """Columns in bins: `codes[k, i]` is the bin of row i in column k, `edges[k]` separate them."""

    codes: NDArray[np.uint8]
    edges: list[Vector]

    @classmethod
    def of(
        cls, columns: Callable[[int], Vector], n_columns: int, weighted: Mask, max_bins: int
    ) -> "Binned":
        """Bins with about the same number of `weighted` rows (of positive weight) in each.

        A column with at most `max_bins` different values gets one bin for each.
        """
        codes = np.empty((n_columns, weighted.size), dtype=np.uint8)
        edges = []
        for k in range(n_columns):
            values = columns(k)
            edges.append(_bin_edges(values[weighted], max_bins))
            codes[k] = np.searchsorted(edges[k], values, side="left")
        return cls(codes, edges)


def _bin_edges(values: Vector, max_bins: int) -> Vector:
    """Midpoints between neighbouring bins; between neighbouring floats, the lower one."""
    different = np.unique(values)
    if different.size > max_bins:
        lower = np.quantile(values, np.arange(1, max_bins) / max_bins, method="lower")
        at = np.unique(np.searchsorted(different, lower))
        at = at[at < different.size - 1]
    else:
        at = np.arange(different.size - 1)
    # Halves first: the sum of two large values may overflow.
    middle = 0.5 * different[at] + 0.5 * different[at + 1]
    return np.where(middle < different[at + 1], middle, different[at])


def boost(
    objective: AllPairs,
    binned: Binned,
    n_rounds: int,
    stumps: list[Stump],
    scores: Vector,
    tol: float,
    progress: Progress,
) -> None:
    """Append up to `n_rounds` weak rankers to `stumps` and add them to `scores`.

    Both are updated round by round, so an interruption keeps all rounds so far. `progress` records,
    before each round and at the end, the loss and the largest |r| relative to it: the largest
    derivative of log F along a weak ranker, zero at the minimum. Stops early where that is at most
    `tol`.
    """
    n_bins = 1 + max((edges.size for edges in binned.edges), default=0)
    while True:
        here: Any = objective.at(scores)
        column, edge, r = _best_stump(binned, here.gradient, n_bins)
        optimality = abs(r) / here.value if here.value > 0.0 else 0.0
        progress.record(None, objective.n_rows, here.value, optimality)
        if n_rounds == 0 or column < 0 or not optimality > tol or here.value < _SMALLEST_LOSS:
            return
        h = (binned.codes[column] > edge).astype(float)
        both = float(h @ here.curvature_product(h))
        extra = _SMOOTHING * here.value
        correct, wrong = max(0.5 * (both + r), 0.0) + extra, max(0.5 * (both - r), 0.0) + extra
        step = 0.5 * float(np.log(correct / wrong))
        stumps.append(Stump(column, float(binned.edges[column][edge]), step))
        scores += step * h
        n_rounds -= 1


def _best_stump(binned: Binned, gradient: Vector, n_bins: int) -> tuple[int, int, float]:
    """Column, number of the bin edge and r = -g . h of the weak ranker with the largest |r|."""
    n_columns, n_rows = binned.codes.shape
    lengths = np.array([edges.size for edges in binned.edges])
    best = np.zeros(n_columns)
    at = np.zeros(n_columns, dtype=np.int64)

    def some_columns(begin: int, end: int) -> None:
        _scan_columns(binned.codes, gradient, lengths, n_bins, begin, end, best, at)

    in_row_chunks(some_columns, n_columns, n_columns * n_rows)
    largest = np.abs(best).max(initial=0.0)
    if largest == 0.0:
        return -1, 0, 0.0
    column = int(np.argmax(np.abs(best) >= largest * (1.0 - _EQUAL)))
    return column, int(at[column]), float(best[column])


@compiled
def _scan_columns(codes, gradient, lengths, n_bins, begin, end, best, at):  # type: ignore[no-untyped-def]
    # Four histograms in turn: successive rows of one bin do not wait for each other's additions.
    sums = np.empty((4, n_bins))
    n = gradient.size
    for k in range(begin, end):
        sums[:] = 0.0
        row = codes[k]
        for i in range(0, n - 3, 4):
            sums[0, row[i]] += gradient[i]
            sums[1, row[i + 1]] += gradient[i + 1]
            sums[2, row[i + 2]] += gradient[i + 2]
            sums[3, row[i + 3]] += gradient[i + 3]
        for i in range(n - n % 4, n):
            sums[0, row[i]] += gradient[i]
        above = 0.0
        for b in range(lengths[k], 0, -1):
            above += sums[0, b] + sums[1, b] + sums[2, b] + sums[3, b]
            if abs(above) > abs(best[k]) * (1.0 + _EQUAL):
                best[k], at[k] = -above, b - 1
