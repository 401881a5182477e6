"""The hard strategies of active sampling: the candidates of smallest d or |d| that have not been
drawn yet (maths/sampling.md, "The hardest candidates").
"""

import heapq
from math import isqrt

import numpy as np

from forerank._kernels import compiled
from forerank._sorting import argsort
from forerank._typing import Index, Vector
from forerank.sampling.candidates import Candidates, Keys

__all__ = ["ClosestPairs", "least_correct_pairs", "lowest"]

# Widest cell, relative to the range of the scores, with which rows without a near row of the other
# class are excluded: wider cells exclude too few rows to be worth the two passes.
_WIDEST_CELL = 1e-3
# Size of the sample of values from which a bound on the lowest ones is estimated.
_SAMPLE_SIZE = 4096


@compiled
def _is_drawn(key, drawn):  # type: ignore[no-untyped-def]
    index = np.searchsorted(drawn, key)
    return index < drawn.size and drawn[index] == key


@compiled
def _smallest_differences(p, q, begin, end, base, q_rows, n_wanted, drawn):  # type: ignore[no-untyped-def]
    """Keys of the pairs of smallest p_i - q_j that have not been drawn.

    In each group p is ascending and q descending; p_i is paired with q from begin_i to end_i. The
    successors of a pair are never smaller, so the smallest is always on the heap.
    """
    keys = np.empty(n_wanted, dtype=np.int64)
    heap = [(0.0, 0, 0)][:0]
    for i in range(p.size):
        # A group without negatives begins where the next one does, but ends there too.
        if begin[i] < end[i] and (i == 0 or end[i] != end[i - 1]):
            heap.append((p[i] - q[begin[i]], i, begin[i]))
    heapq.heapify(heap)
    found = 0
    while found < n_wanted and len(heap) > 0:
        _, i, j = heapq.heappop(heap)
        if j + 1 < end[i]:
            heapq.heappush(heap, (p[i] - q[j + 1], i, j + 1))
        if j == begin[i] and i + 1 < p.size and end[i + 1] == end[i] and begin[i + 1] == j:
            heapq.heappush(heap, (p[i + 1] - q[j], i + 1, j))
        key = base[i] + q_rows[j]
        if not _is_drawn(key, drawn):
            keys[found] = key
            found += 1
    return keys[:found]


@compiled
def _mark_cells(s, low, per_unit, bits):  # type: ignore[no-untyped-def]
    """Mark the cells that hold some s_i in a bitmap, modulo its size."""
    mask = np.int64(bits.size * 64 - 1)
    bits[:] = 0
    for i in range(s.size):
        cell = np.int64((s[i] - low) * per_unit) & mask
        bits[cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)


@compiled
def _near_marked_cell(s, low, per_unit, bits):  # type: ignore[no-untyped-def]
    """Indices of the s_i whose cell, or one beside it, is marked, modulo the size of the bitmap."""
    mask = np.int64(bits.size * 64 - 1)
    out = np.empty(s.size, dtype=np.intp)
    n = 0
    for i in range(s.size):
        cell = np.int64((s[i] - low) * per_unit) & mask
        bit = cell & 63
        if 0 < bit < 63:
            marked = (bits[cell >> 6] >> np.uint64(bit - 1)) & np.uint64(7)
        else:
            marked = np.uint64(0)
            for neighbour in range(cell - 1, cell + 2):
                index = neighbour & mask
                marked |= (bits[index >> 6] >> np.uint64(index & 63)) & np.uint64(1)
        out[n] = i
        n += marked != 0
    return out[:n]


@compiled
def _nearest(p, q, begin, end):  # type: ignore[no-untyped-def]
    """For each p_i, the position of the first larger q_j, and the distance to the nearest.

    p and q are ascending in each group; p_i is compared with q from begin_i to end_i.
    """
    above, distance = np.empty(p.size, dtype=np.intp), np.empty(p.size)
    j = 0
    for i in range(p.size):
        j = max(j, begin[i])
        while j < end[i] and q[j] <= p[i]:
            j += 1
        above[i] = j
        left = p[i] - q[j - 1] if j > begin[i] else np.inf
        right = q[j] - p[i] if j < end[i] else np.inf
        distance[i] = min(left, right)
    return above, distance


@compiled
def _closest_differences(p, above, q, begin, end, base, q_rows, n_wanted, drawn):  # type: ignore[no-untyped-def]
    """Keys of the closest pairs that have not been drawn, and the largest of their distances.

    q is ascending in each group; each p_i takes its neighbours in q, from the nearest outwards, on
    both sides, within begin_i and end_i.
    """
    keys = np.empty(n_wanted, dtype=np.int64)
    left, right = above - 1, above.copy()
    heap = [(0.0, 0, True)][:0]
    for i in range(p.size):
        if left[i] >= begin[i]:
            heap.append((p[i] - q[left[i]], i, True))
        if right[i] < end[i]:
            heap.append((q[right[i]] - p[i], i, False))
    heapq.heapify(heap)
    found, distance = 0, 0.0
    while found < n_wanted and len(heap) > 0:
        distance, i, on_left = heapq.heappop(heap)
        if on_left:
            j = left[i]
            left[i] -= 1
            if left[i] >= begin[i]:
                heapq.heappush(heap, (p[i] - q[left[i]], i, True))
        else:
            j = right[i]
            right[i] += 1
            if right[i] < end[i]:
                heapq.heappush(heap, (q[right[i]] - p[i], i, False))
        key = base[i] + q_rows[j]
        if not _is_drawn(key, drawn):
            keys[found] = key
            found += 1
    return keys[:found], distance


def least_correct_pairs(candidates: Candidates, p: Vector, q: Vector, n: int) -> Keys:
    """Keys of the n pairs of smallest p_i - q_j that have not been drawn.

    Groups are sorted. Without groups, few rows are.
    """
    if candidates.grouped:
        i, j = candidates.ascending(p, -q)
        begin, end = candidates.negatives_of_positives()
    else:
        i, j = _rows_of_smallest(p, q, min(candidates.drawn.size + n, p.size * q.size))
        begin, end = _one_group(i, j)
    base = candidates.base[i]
    return _smallest_differences(p[i], q[j], begin, end, base, j, n, candidates.drawn)


def _rows_of_smallest(p: Vector, q: Vector, k: int) -> tuple[Index, Index]:
    """Positives, ascending, and negatives, descending, among which are the k pairs of smallest
    p_i - q_j.

    The pairs of the lowest positives with the highest negatives, k pairs at least, give a bound on
    the k-th difference. A row belongs to a pair within it only if its difference to the extreme
    row of the other class is.
    """
    n_lowest = min(isqrt(k - 1) + 1, p.size)
    n_highest = min(-(-k // n_lowest), q.size)
    n_lowest = -(-k // n_highest)
    low, high = p[lowest(p, n_lowest)], q[lowest(-q, n_highest)]
    bound = low[-1] - high[-1]
    i, j = np.flatnonzero(p - high[0] <= bound), np.flatnonzero(low[0] - q <= bound)
    return i[np.argsort(p[i], kind="stable")], j[np.argsort(-q[j], kind="stable")]


def _one_group(i: Index, j: Index) -> tuple[Index, Index]:
    """Begin and end of the negatives of each positive where all are in one group."""
    return np.zeros(i.size, dtype=np.intp), np.full(i.size, j.size, dtype=np.intp)


class ClosestPairs:
    """Search for the pairs of smallest |p_i - q_j|, which keeps the distance of its last result.

    Sorting all rows is the expensive step, and most rows are in none of the closest pairs. With an
    estimate of the distance, only rows with a row of the other class within it are sorted; a wider
    estimate (times 4) is tried if too few pairs are found. Groups are sorted completely.
    """

    def __init__(self) -> None:
        self._expected_distance = 0.0

    def find(self, candidates: Candidates, p: Vector, q: Vector, n: int) -> Keys:
        """Keys of the n closest pairs that have not been drawn."""
        if candidates.grouped:
            i, j = candidates.ascending(p, q)
            limits = candidates.negatives_of_positives()
            return _closest_among(candidates, p, q, i, j, limits, n)[0]
        low, span = min(p.min(), q.min()), max(p.max(), q.max()) - min(p.min(), q.min())
        n_drawn = candidates.drawn.size
        width = self._expected_distance or span * (n_drawn + n) / (p.size * q.size)
        width = max(width, span * 2.0**-50)
        bits = np.empty(2 ** max(int(p.size + q.size).bit_length() - 2, 0), dtype=np.uint64)
        while 0.0 < width < _WIDEST_CELL * span:
            _mark_cells(p, low, 1.0 / width, bits)
            j = _near_marked_cell(q, low, 1.0 / width, bits)
            _mark_cells(q[j], low, 1.0 / width, bits)
            i = _near_marked_cell(p, low, 1.0 / width, bits)
            keys, distance = _closest_in_one_group(candidates, p, q, i, j, n)
            if keys.size == n and distance <= width:
                break
            width *= 4.0
        else:
            i, j = np.arange(p.size), np.arange(q.size)
            keys, distance = _closest_in_one_group(candidates, p, q, i, j, n)
        self._expected_distance = 2.0 * distance
        return keys


def _closest_in_one_group(
    candidates: Candidates, p: Vector, q: Vector, i: Index, j: Index, n: int
) -> tuple[Keys, float]:
    """Keys of the n closest new pairs between rows i and j, and the largest of their distances."""
    i, j = i[argsort(p[i])], j[argsort(q[j])]
    return _closest_among(candidates, p, q, i, j, _one_group(i, j), n)


def _closest_among(
    candidates: Candidates,
    p: Vector,
    q: Vector,
    i: Index,
    j: Index,
    limits: tuple[Index, Index],
    n: int,
) -> tuple[Keys, float]:
    """The same for rows sorted by group and score; `limits` are begin and end of the negatives of
    each positive.
    """
    above, distance = _nearest(p[i], q[j], *limits)
    # A positive whose nearest negative is further than that of k others has none of the k closest
    # pairs.
    near = lowest(distance, candidates.drawn.size + n)
    i, begin, end = i[near], limits[0][near], limits[1][near]
    base, drawn = candidates.base[i], candidates.drawn
    return _closest_differences(p[i], above[near], q[j], begin, end, base, j, n, drawn)


def lowest(values: Vector, n: int) -> Index:
    """Indices of the n lowest values (all, if there are fewer), in ascending order of value."""
    index = None
    if 8 * n < values.size and values.size > 2 * _SAMPLE_SIZE:
        # A sample gives a bound that about 1.5 n values are below; if fewer than n are, all are
        # examined.
        sample = values[:: values.size // _SAMPLE_SIZE]
        rank = min(int(1.5 * n / values.size * sample.size) + 16, sample.size - 1)
        index = np.flatnonzero(values <= np.partition(sample, rank)[rank])
    if index is None or index.size < n:
        index = np.arange(values.size)
    if n < index.size:
        index = index[np.argpartition(values[index], n - 1)[:n]]
    return index[np.argsort(values[index], kind="stable")]
