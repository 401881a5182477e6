"""Moments of the scores of one class in cells of equal width, which add up over parts of the rows.

Cells of width 2^-k are anchored at 0, so that the margin, 1, is a whole number of cells. A cell has
its weight, the first two moments about its centre, and a lowest and a highest score: exactly for a
cell with one distinct score, otherwise rounded outwards to 2^-15 of its width. So a cell of several
rows without weights takes 21 to 25 bytes when it is pickled, and an empty one a bit.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._kernels import compiled
from forerank._typing import Vector

__all__ = ["BITS", "FIRST", "HIGHEST", "LOWEST", "SECOND", "WEIGHT", "HingeTable", "no_cells"]

# Cells per unit of score are 2^BITS where nothing else is asked for, and fewer where scores span
# more than _SPAN units (2.6 MB); up to the second number of units, cells have width 1.
BITS = 12
_SPAN = 2**4
_LARGEST_TABLE = 2**22
# Lowest and highest scores are multiples of 2^-_END_BITS of the width of a cell, from -1/2 to 1/2
# of it: two bytes for each.
_END_BITS = 15
# Columns of a table.
WEIGHT, FIRST, SECOND, LOWEST, HIGHEST = range(5)


@compiled
def _add_scores(s, w, scale, first, cells):  # type: ignore[no-untyped-def]
    for i in range(s.size):
        b = np.int64(np.floor(s[i] * scale))
        x = s[i] - (b + 0.5) / scale
        v = w[i] if w.size else 1.0
        c = cells[b - first]
        c[0] += v
        c[1] += v * x
        c[2] += v * x * x
        c[3] = min(c[3], x)
        c[4] = max(c[4], x)


@compiled
def _add_cells(cells, out):  # type: ignore[no-untyped-def]
    for k in range(cells.shape[0]):
        c, o = cells[k], out[k]
        o[0] += c[0]
        o[1] += c[1]
        o[2] += c[2]
        o[3] = min(o[3], c[3])
        o[4] = max(o[4], c[4])


@compiled
def _coarser(cells, first, width, out, out_first):  # type: ignore[no-untyped-def]
    """Add cells of the given width to cells of twice the width."""
    for k in range(cells.shape[0]):
        c = cells[k]
        if c[0] > 0.0:
            b = first + k
            move = -0.5 * width if b % 2 == 0 else 0.5 * width
            o = out[b // 2 - out_first]
            o[0] += c[0]
            o[1] += c[1] + move * c[0]
            o[2] += c[2] + move * (2.0 * c[1] + move * c[0])
            o[3] = min(o[3], c[3] + move)
            o[4] = max(o[4], c[4] + move)


@compiled
def _round_ends(cells, width):  # type: ignore[no-untyped-def]
    """Round lowest and highest score outwards, except in cells with one distinct score."""
    unit = width * 2.0**-_END_BITS
    for k in range(cells.shape[0]):
        c = cells[k]
        if c[3] < c[4]:
            c[3] = np.floor(c[3] / unit) * unit
            c[4] = np.ceil(c[4] / unit) * unit


def no_cells(n: int) -> Vector:
    return np.tile([0.0, 0.0, 0.0, np.inf, -np.inf], (n, 1))


def _most_cells(finest: int) -> int:
    """The most cells of a table of which 2^finest per unit of score were asked for."""
    return int(_SPAN * 2 ** max(finest, BITS))


def _suitable_bits(n_cells: int, bits: int, finest: int) -> int:
    """The number of bits at which that many cells, counted at `bits`, are few enough."""
    while bits > 0 and n_cells > _most_cells(finest):
        n_cells, bits = (n_cells + 1) // 2 + 1, bits - 1
    return bits


def _as_integers(weight: Vector) -> NDArray:
    """Weights as unsigned integers of few bytes, where they are whole numbers."""
    largest = weight.max(initial=0.0)
    if largest < 2.0**32 and (weight == np.floor(weight)).all():
        return weight.astype(np.min_scalar_type(int(largest)))
    return weight.copy()


@dataclass(frozen=True)
class HingeTable:
    """Scores of one class in cells of width 2^-bits, the first of which has number `first`.

    `cells` has a row per cell: weight, first and second moment about the centre of the cell, lowest
    and highest score relative to it. Rows of weight zero are not counted. `overflows` is set where
    the scores span more than 4 million units or are not finite. 2^finest cells per unit were asked
    for.
    """

    bits: int
    first: int
    cells: Vector
    overflows: bool = False
    finest: int = BITS

    @classmethod
    def of(cls, s: Vector, w: Vector | None, bits: int = BITS) -> "HingeTable":
        """The table of some scores and their weights, cells of 2^-bits or wider. Cost: N."""
        if w is not None and not w.all():
            s, w = s[w > 0.0], w[w > 0.0]
        if s.size == 0:
            return cls(bits, 0, no_cells(0), finest=bits)
        low, high = float(s.min()), float(s.max())
        if not (high - low < _LARGEST_TABLE and max(high, -low) < 2.0**40):
            return cls(0, 0, no_cells(0), overflows=True)
        finest, bits = bits, _suitable_bits(int((high - low) * 2**bits) + 2, bits, bits)
        first, last = (int(np.floor(end * 2.0**bits)) for end in (low, high))
        cells = no_cells(last - first + 1)
        _add_scores(s, np.empty(0) if w is None else w, 2.0**bits, first, cells)
        _round_ends(cells, 2.0**-bits)
        return cls(bits, first, cells, finest=finest)

    def __getstate__(self) -> tuple:
        """The occupied cells, with weights and ends in as few bytes as have the same numbers."""
        occupied = self.cells[:, WEIGHT] > 0.0
        cells = self.cells[occupied]
        single = cells[:, LOWEST] == cells[:, HIGHEST]
        ends = cells[~single, LOWEST:] * 2.0 ** (self.bits + _END_BITS)
        return (
            (self.bits, self.first, len(self.cells), self.overflows, self.finest),
            np.packbits(occupied),
            _as_integers(cells[:, WEIGHT]),
            cells[:, FIRST:LOWEST].copy(),
            np.packbits(single),
            cells[single, LOWEST],
            ends.astype(np.int16),
        )

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        (bits, first, n, overflows, finest), occupied, weight, moments, single, scores, ends = state
        cells = np.empty((weight.size, 5))
        cells[:, WEIGHT], cells[:, FIRST:LOWEST] = weight, moments
        alone = np.unpackbits(single, count=weight.size).astype(bool)
        cells[alone, LOWEST:] = scores[:, None]
        cells[~alone, LOWEST:] = ends * 2.0 ** -(bits + _END_BITS)
        table = no_cells(n)
        table[np.unpackbits(occupied, count=n).astype(bool)] = cells
        known = {"bits": bits, "first": first, "cells": table}
        for name, value in {**known, "overflows": overflows, "finest": finest}.items():
            object.__setattr__(self, name, value)

    @property
    def weight(self) -> float:
        return float(self.cells[:, WEIGHT].sum())

    def at_bits(self, bits: int) -> "HingeTable":
        """The same scores in cells of at least this width."""
        table = self
        while table.bits > bits:
            n, first = table.cells.shape[0], table.first // 2
            last = (table.first + n - 1) // 2
            cells = no_cells(last - first + 1 if n else 0)
            _coarser(table.cells, table.first, 2.0**-table.bits, cells, first)
            _round_ends(cells, 2.0 ** -(table.bits - 1))
            table = replace(table, bits=table.bits - 1, first=first if n else 0, cells=cells)
        return table

    def within(self, first: int, end: int) -> "HingeTable":
        """The same cells among those numbered first .. end - 1."""
        cells = no_cells(end - first)
        cells[self.first - first : self.first - first + len(self.cells)] = self.cells
        return replace(self, first=first, cells=cells)

    def __add__(self, other: "HingeTable") -> "HingeTable":
        if self.overflows or other.overflows:
            return HingeTable(0, 0, no_cells(0), overflows=True)
        if not len(other.cells) or not len(self.cells):
            return self if len(self.cells) else other
        bits = min(self.bits, other.bits)
        a, b = self.at_bits(bits), other.at_bits(bits)
        first = min(a.first, b.first)
        end = max(a.first + len(a.cells), b.first + len(b.cells))
        finest = max(a.finest, b.finest)
        if end - first > _most_cells(finest) and bits > 0:
            coarse = _suitable_bits(end - first, bits, finest)
            return a.at_bits(coarse) + b.at_bits(coarse)
        if end - first > _LARGEST_TABLE:
            return HingeTable(0, 0, no_cells(0), overflows=True)
        cells = a.within(first, end).cells
        _add_cells(b.cells, cells[b.first - first :])
        _round_ends(cells, 2.0**-bits)
        return HingeTable(bits, first, cells, finest=finest)

    def covering(self, low: float, high: float) -> "HingeTable":
        """The same cells, and empty ones for all scores from low to high."""
        first, last = (int(np.floor(end * 2.0**self.bits)) for end in (low, high))
        if not len(self.cells):
            return replace(self, first=first, cells=no_cells(last - first + 1))
        end = max(last + 1, self.first + len(self.cells))
        return self.within(min(first, self.first), end)

    def weights(self, first: int, n: int) -> Vector:
        """The weights of the cells numbered first .. first + n - 1."""
        out = np.zeros(n)
        begin, end = max(first, self.first), min(first + n, self.first + len(self.cells))
        if begin < end:
            inside = slice(begin - self.first, end - self.first)
            out[begin - first : end - first] = self.cells[inside, WEIGHT]
        return out

    def mirrored(self) -> "HingeTable":
        """The table of the negated scores."""
        cells = self.cells[::-1].copy()
        cells[:, FIRST] *= -1.0
        cells[:, LOWEST], cells[:, HIGHEST] = -cells[:, HIGHEST], -cells[:, LOWEST].copy()
        return replace(self, first=-(self.first + len(cells)), cells=cells)
