"""Counts of concordant, tied and discordant pairs, without visiting the pairs."""

import numpy as np
from numpy.typing import NDArray

from forerank._kernels import compiled
from forerank._typing import Mask, Vector
from forerank.metrics.ranking import Ranking

__all__ = ["aucs_by_group", "count_edges", "count_pairs", "share_in_order"]


def share_in_order(counts: Vector, ties: float) -> Vector:
    """The share of concordant pairs by group, a tied pair counting `ties`; NaN without pairs."""
    concordant, tied, discordant = counts.T
    total = concordant + tied + discordant
    value = np.full_like(total, np.nan)
    return np.divide(concordant + ties * tied, total, out=value, where=total > 0)


def aucs_by_group(ranking: Ranking, positive: Mask) -> Vector:
    counts = count_pairs(ranking.starts, ranking.tie, positive.astype(np.int64), ranking.weight, 1)
    return share_in_order(counts, 0.5)


def count_edges(
    ranking: Ranking, grade: NDArray[np.int64], upper: int, lowers: list[int]
) -> Vector:
    """Counts of the pairs of one preferred class and all classes it is preferred to, by group."""
    rows = np.flatnonzero(np.isin(grade, [upper, *lowers]))
    side = (grade[rows] == upper).astype(np.int64)
    starts = np.searchsorted(rows, ranking.starts)
    return count_pairs(starts, ranking.tie[rows], side, ranking.weight[rows], 1)


@compiled
def _count_segment(tie, code, weight, bit, lo, hi):  # type: ignore[no-untyped-def]
    """Weight of concordant, tied and discordant pairs among the rows lo:hi, highest score first;
    `bit` of the code tells upper from lower.
    """
    concordant = tied = discordant = 0.0
    upper_above = lower_above = 0.0
    i = lo
    while i < hi:
        upper = lower = 0.0
        block = tie[i]
        while i < hi and tie[i] == block:
            if (code[i] >> bit) & 1:
                upper += weight[i]
            else:
                lower += weight[i]
            i += 1
        concordant += upper_above * lower
        tied += upper * lower
        discordant += lower_above * upper
        upper_above += upper
        lower_above += lower
    return concordant, tied, discordant


@compiled
def count_pairs(starts, tie, code, weight, n_bits):  # type: ignore[no-untyped-def]
    """Weight of concordant, tied and discordant pairs of different code, one row per group.

    Two different codes have exactly one highest differing bit. So for each bit, from the highest
    down, the rows that agree above it form a segment, the bit tells upper from lower, and every
    pair is counted once. Splitting each segment stably by the bit prepares the next one and keeps
    the order by score: O(n) for each bit.
    """
    n_groups = starts.size - 1
    counts = np.zeros((n_groups, 3))
    # Two sets of buffers are used in turn; with a single bit nothing is split, so the arguments are
    # not overwritten.
    from_tie, from_code, from_weight = tie, code, weight
    if n_bits > 1:
        from_tie, from_code, from_weight = tie.copy(), code.copy(), weight.copy()
    to_tie, to_code, to_weight = np.empty_like(tie), np.empty_like(code), np.empty_like(weight)
    for bit in range(n_bits - 1, -1, -1):
        for g in range(n_groups):
            lo = starts[g]
            while lo < starts[g + 1]:
                hi = lo
                key = from_code[lo] >> (bit + 1)
                n_lower = 0
                while hi < starts[g + 1] and from_code[hi] >> (bit + 1) == key:
                    n_lower += 1 - ((from_code[hi] >> bit) & 1)
                    hi += 1
                concordant, tied, discordant = _count_segment(
                    from_tie, from_code, from_weight, bit, lo, hi
                )
                counts[g, 0] += concordant
                counts[g, 1] += tied
                counts[g, 2] += discordant
                upper, lower = lo + n_lower, lo
                for i in range(lo, hi if bit > 0 else lo):
                    if (from_code[i] >> bit) & 1:
                        at = upper
                        upper += 1
                    else:
                        at = lower
                        lower += 1
                    to_tie[at] = from_tie[i]
                    to_code[at] = from_code[i]
                    to_weight[at] = from_weight[i]
                lo = hi
        from_tie, to_tie = to_tie, from_tie
        from_code, to_code = to_code, from_code
        from_weight, to_weight = to_weight, from_weight
    return counts
