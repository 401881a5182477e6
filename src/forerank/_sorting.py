"""Sorting scores, and cutting rows into the blocks whose pairs count.

`argsort` is numpy's argsort at about the price of numpy's sort. The scores are mapped to integers
on a uniform scale, each integer is packed with its row number into one 64-bit word, the words are
sorted (numpy has vector code for that, not for the indirect sort at large n), and rows that share
an integer are put right by insertion.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forerank._kernels import compiled
from forerank._typing import Index

# Below this many rows the packing costs more than it saves.
_PACKING_PAYS_FROM = 4096
# A run of rows with the same packed key longer than this is left to numpy: insertion would turn
# quadratic.
_LONGEST_RUN = 64


@compiled
def _pack(s, low, scale, bits):  # type: ignore[no-untyped-def]
    words = np.empty(s.size, dtype=np.uint64)
    for i in range(s.size):
        words[i] = (np.uint64((s[i] - low) * scale) << bits) | np.uint64(i)
    return words


@compiled
def _unpack(words, s, bits, longest_run):  # type: ignore[no-untyped-def]
    """Row numbers in order of score; an empty array where a run of equal keys is too long to repair
    here.
    """
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


def argsort(s: NDArray[np.float64], *, stable: bool = False) -> Index:
    """Row numbers by ascending score; ties in any order, or by row number. Cost: N log N, about
    ``np.sort(s)``.
    """
    n = s.size
    kind: Literal["stable"] | None = "stable" if stable else None
    if n < _PACKING_PAYS_FROM:
        return np.argsort(s, kind=kind)
    low, high = s.min(), s.max()
    bits = int(n - 1).bit_length()
    with np.errstate(all="ignore"):
        # Infinite for infinite scores and for spans too small or too large to divide by: numpy
        # sorts those.
        scale = (2.0 ** (64 - bits) - 2.0 ** (64 - bits - 20)) / (high - low)
    if not (np.isfinite(scale) and scale > 0.0):
        return np.argsort(s, kind=kind)
    words = _pack(s, low, scale, np.uint64(bits))
    words.sort()
    order = _unpack(words, s, np.uint64(bits), _LONGEST_RUN)
    # Words are sorted by row number where keys are equal, and the repair moves no row past an equal
    # one.
    return order if order.size else np.argsort(s, kind=kind)
