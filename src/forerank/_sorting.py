"""Sorting: `argsort` of scores, a counting sort by group, and the largest values.

`argsort` costs about as much as ``np.sort``. The scores are mapped to integers on a uniform scale,
each integer is packed with its row number into a 64-bit word, the words are sorted (NumPy has
vector code for that, not for the indirect sort at large n), and rows with equal integers are put
in order by insertion.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forerank._kernels import compiled
from forerank._typing import Index, Vector

__all__ = ["argsort", "largest", "sort_by_group"]

# Rows from which packing into words saves more time than it costs.
_PACKED_FROM = 4096
# Longest run of rows with equal integers that insertion sorts; NumPy sorts longer ones, because
# the cost of insertion is quadratic.
_LONGEST_RUN = 64


@compiled
def _pack(s, low, scale, bits):  # type: ignore[no-untyped-def]
    words = np.empty(s.size, dtype=np.uint64)
    for i in range(s.size):
        words[i] = (np.uint64((s[i] - low) * scale) << bits) | np.uint64(i)
    return words


@compiled
def _unpack(words, s, bits, longest_run):  # type: ignore[no-untyped-def]
    """Row numbers by score; an empty array if a run of equal integers exceeds `longest_run`."""
    order = np.empty(words.size, dtype=np.intp)
    mask = (np.uint64(1) << bits) - np.uint64(1)
    run_start = 0
    for k in range(words.size):
        i = np.intp(words[k] & mask)
        if words[k] >> bits != words[run_start] >> bits:
            run_start = k
        j = k
        while j > run_start and s[order[j - 1]] > s[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
        if k - run_start >= longest_run and s[order[k]] != s[order[run_start]]:
            return order[:0]
    return order


def argsort(s: Vector, *, stable: bool = False) -> Index:
    """Row numbers by ascending score; ties by row number if `stable`. Cost: that of ``np.sort``."""
    n = s.size
    kind: Literal["stable"] | None = "stable" if stable else None
    if n < _PACKED_FROM:
        return np.argsort(s, kind=kind)
    low, high = s.min(), s.max()
    bits = int(n - 1).bit_length()
    with np.errstate(all="ignore"):  # infinite scores, and spans that overflow or underflow
        scale = (2.0 ** (64 - bits) - 2.0 ** (64 - bits - 20)) / (high - low)
    if not (np.isfinite(scale) and scale > 0.0):
        return np.argsort(s, kind=kind)
    words = _pack(s, low, scale, np.uint64(bits))
    words.sort()
    # Words with equal integers are sorted by row number, and insertion moves no row past an equal
    # one: the order is stable.
    order = _unpack(words, s, np.uint64(bits), _LONGEST_RUN)
    return order if order.size else np.argsort(s, kind=kind)


@compiled
def sort_by_group(order, group, first):  # type: ignore[no-untyped-def]
    """The row numbers `order` sorted by group, in their given order within a group (counting sort).

    `first` holds the position of the first row of each group. Cost: N.
    """
    position = first.copy()
    out = np.empty_like(order)
    for row in order:
        out[position[group[row]]] = row
        position[group[row]] += 1
    return out


def largest(values: NDArray, count: int, *, stable: bool = True) -> Index:
    """Positions of the `count` largest values, in descending order; ties by position if `stable`.

    Of values equal to the last one, any are taken.
    """
    if count >= values.size:
        return np.argsort(-values, kind="stable")
    some = np.argpartition(-values, count - 1)[:count]
    if stable:
        some.sort()
    return some[np.argsort(-values[some], kind="stable")]
