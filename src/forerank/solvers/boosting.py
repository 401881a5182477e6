"""RankBoost: coordinate descent on the all-pairs exponential loss over thresholded columns (Freund
et al. 2003).

A weak ranker h(x) = [x_k > threshold] is one coordinate of a linear model over all such indicators,
and the pair weights that boosting keeps are the terms of the exponential loss. So a round is

    g = dF/ds at the present scores, one number per row: the pairs are never visited r = -g . h for
    every weak ranker, from one histogram of g per column the weak ranker with the largest |r|, and
    the step that minimises F along it, which has a closed form: with W+ and W- the loss in the
    pairs that h orders rightly and wrongly,  W+ - W- = -g . h,  W+ + W- = h F'' h, step = log(W+ /
    W-) / 2.

Any objective with exponential pairs does, so grades, graphs, groups and weights come for free.
Columns are cut into at most 256 bins once. Cost of a round: one pass over a matrix of N x d bytes,
and N for the scores.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._kernels import compiled, in_row_chunks
from forerank._typing import Vector
from forerank.objectives import AllPairs
from forerank.solvers.result import Progress

__all__ = ["Binned", "Stump", "boost"]


# Added to W+ and W-, relative to the loss: keeps the step finite where a weak ranker makes no
# mistake.
_ROOM = 1e-8
# Weak rankers whose |r| differ by less, relatively, are equally good, and the first is taken:
# rounding decides nothing.
_AS_GOOD = 1e-9
# Classes that can be told apart: rounds end before the loss underflows.
_NOTHING_LEFT = 1e-250


@dataclass(frozen=True)
class Stump:
    """A weak ranker with its weight: `step` for rows above the threshold in the column, nothing for
    the others.
    """

    column: int
    threshold: float
    step: float


@dataclass(frozen=True)
class Binned:
    """Columns cut into bins: `codes[k, i]` is the bin of row i in column k, and `cuts[k]` lie
    between the bins.
    """

    codes: NDArray[np.uint8]
    cuts: list[Vector]

    @classmethod
    def of(
        cls,
        columns: Callable[[int], Vector],
        n_columns: int,
        present: NDArray[np.bool_],
        max_bins: int,
    ) -> "Binned":
        """Bins with about as many of the rows that are `present` (have a weight) in each.

        A column with no more than `max_bins` different values gets one bin for each.
        """
        n_rows = present.size
        codes = np.empty((n_columns, n_rows), dtype=np.uint8)
        cuts = []
        for k in range(n_columns):
            values = columns(k)
            cuts.append(_cuts(values[present], max_bins))
            codes[k] = np.searchsorted(cuts[k], values, side="left")
        return cls(codes, cuts)


def _cuts(values: Vector, max_bins: int) -> Vector:
    """Midpoints between neighbouring bins; of two neighbouring floats the lower one, since rows
    above a cut are split off.
    """
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
    *,
    stumps: list[Stump],
    scores: Vector,
    tol: float = 0.0,
    progress: Progress | None = None,
) -> None:
    """Append up to `n_rounds` weak rankers to `stumps` and add them to `scores`, round by round.

    Both are right after every round, so an interruption loses nothing. `progress` notes, before
    each round and at the end, the loss and the largest |r| relative to it: the largest derivative
    of log F along any weak ranker, zero at the minimum over all combinations. Stops early where
    that is no more than `tol`.
    """
    progress = progress or Progress()
    n_bins = 1 + max((c.size for c in binned.cuts), default=0)
    while True:
        here: Any = objective.at(scores)
        column, cut, r = _best_cut(binned, here.gradient, n_bins)
        optimality = abs(r) / here.value if here.value > 0.0 else 0.0
        progress.record(None, objective.n_rows, here.value, optimality)
        if n_rounds == 0 or column < 0 or not optimality > tol or here.value < _NOTHING_LEFT:
            return
        h = (binned.codes[column] > cut).astype(float)
        touched = float(h @ here.curvature_product(h))
        room = _ROOM * here.value
        right, wrong = max(0.5 * (touched + r), 0.0) + room, max(0.5 * (touched - r), 0.0) + room
        step = 0.5 * float(np.log(right / wrong))
        stumps.append(Stump(column, float(binned.cuts[column][cut]), step))
        scores += step * h
        n_rounds -= 1


def _best_cut(binned: Binned, gradient: Vector, n_bins: int) -> tuple[int, int, float]:
    """The column, the number of the cut and r = -g . h of the weak ranker with the largest |r|."""
    n_columns, n_rows = binned.codes.shape
    lengths = np.array([c.size for c in binned.cuts])
    best = np.zeros(n_columns)
    at = np.zeros(n_columns, dtype=np.int64)
    in_row_chunks(
        lambda begin, end: _scan_columns(
            binned.codes, gradient, lengths, n_bins, begin, end, best, at
        ),
        n_columns,
        n_columns * n_rows,
    )
    largest = np.abs(best).max(initial=0.0)
    if largest == 0.0:
        return -1, 0, 0.0
    column = int(np.argmax(np.abs(best) >= largest * (1.0 - _AS_GOOD)))
    return column, int(at[column]), float(best[column])


@compiled
def _scan_columns(codes, gradient, lengths, n_bins, begin, end, best, at):  # type: ignore[no-untyped-def]
    # Four histograms take turns, so that rows of one bin in succession do not wait for each other.
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
            if abs(above) > abs(best[k]) * (1.0 + _AS_GOOD):
                best[k], at[k] = -above, b - 1
