"""Sorting: `argsort` of scores, a counting sort by group, and the largest values.

`argsort` maps the scores to 32-bit integers on a uniform scale and sorts these by their digits (a
radix sort: three passes, no comparisons); rows with equal integers are put in order by insertion.
Where a few extreme scores leave too many rows with equal integers, wider integers are packed with
their row numbers into 64-bit words, which NumPy sorts.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forerank._kernels import compiled
from forerank._typing import Index, Vector

__all__ = ["argsort", "largest", "sort_by_group"]

# Rows from which sorting by digits saves more time than it costs, and from which packing into
# words does. Row numbers have 32 bits in a sort by digits.
_DIGITS_FROM = 512
_PACKED_FROM = 4096
_DIGITS_TO = 2**32
# Bits of a digit; digits of a score.
_DIGIT = 11
_N_DIGITS = 3
# Most places by which insertion moves a row, on average.
_MOST_MOVES = 8
# Longest run of rows with equal integers that insertion sorts; NumPy sorts longer ones, because
# the cost of insertion is quadratic.
_LONGEST_RUN = 64


@compiled
def _sort_by_digits(s, low, scale, most_moves):  # type: ignore[no-untyped-def]
    """Row numbers by score; an empty array if insertion takes more than `most_moves`."""
    n, n_values = s.size, 1 << _DIGIT
    bits, mask = np.uint64(_DIGIT), np.uint64(n_values - 1)
    half = np.uint64(32)
    # Words: the integer of a row in the upper half, its number in the lower one.
    words, sorted_words = np.empty(n, np.uint64), np.empty(n, np.uint64)
    count = np.zeros((_N_DIGITS, n_values), np.int64)
    for i in range(n):
        key = np.uint64((s[i] - low) * scale)
        words[i] = (key << half) | np.uint64(i)
        for k in range(_N_DIGITS):
            count[k, key & mask] += 1
            key >>= bits
    for k in range(_N_DIGITS):
        position = count[k]
        position[1:] = np.cumsum(position[:-1])
        position[0] = 0
        shift = half + np.uint64(k) * bits
        for i in range(n):
            digit = (words[i] >> shift) & mask
            sorted_words[position[digit]] = words[i]
            position[digit] += 1
        words, sorted_words = sorted_words, words
    order, before = np.empty(n, np.intp), np.uint64(0)
    for k in range(n):
        key, row = words[k] >> half, np.intp(words[k] & np.uint64(0xFFFFFFFF))
        j = k
        if key == before:
            while j > 0 and s[order[j - 1]] > s[row]:
                order[j] = order[j - 1]
                j -= 1
            most_moves -= k - j
            if most_moves < 0:
                return order[:0]
        order[j] = row
        before = key
    return order


@compiled
def _sort_on_scale(s, most_moves):  # type: ignore[no-untyped-def]
    """`_sort_by_digits` on the scale of these scores; an empty array where they have none."""
    low = high = s[0]
    for i in range(s.size):
        low, high = min(low, s[i]), max(high, s[i])
        if s[i] != s[i]:
            return np.empty(0, np.intp)
    span = high - low
    scale = (2.0**32 - 2.0**12) / span if span > 0.0 else 0.0
    if not 0.0 < scale < np.inf:
        return np.empty(0, np.intp)
    return _sort_by_digits(s, low, scale, most_moves)


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
    """Row numbers by ascending score; ties by row number if `stable`. Cost: a few passes over s, or
    that of ``np.sort`` if some scores are extreme.
    """
    n = s.size
    kind: Literal["stable"] | None = "stable" if stable else None
    if n < _DIGITS_FROM:
        return np.argsort(s, kind=kind)
    # Integers and insertion keep rows with equal scores in their order: both sorts are stable.
    order = np.empty(0, np.intp)
    if n < _DIGITS_TO:
        order = _sort_on_scale(s, _MOST_MOVES * n)
    if not order.size and n >= _PACKED_FROM:
        order = _argsort_of_words(s)
    return order if order.size else np.argsort(s, kind=kind)


def _argsort_of_words(s: Vector) -> Index:
    """Row numbers by score, sorted as words; an empty array where that does not work."""
    bits = int(s.size - 1).bit_length()
    low = s.min()
    with np.errstate(all="ignore"):  # infinite scores, and spans that overflow or are near zero
        span = s.max() - low
        scale = float((2.0 ** (64 - bits) - 2.0 ** (44 - bits)) / span)
    if not 0.0 < scale < np.inf:
        return np.empty(0, np.intp)
    words = _pack(s, low, scale, np.uint64(bits))
    words.sort()
    return _unpack(words, s, np.uint64(bits), _LONGEST_RUN)


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
        return argsort(-values, stable=True)
    some = np.argpartition(-values, count - 1)[:count]
    if stable:
        some.sort()
    return some[argsort(-values[some], stable=True)]
