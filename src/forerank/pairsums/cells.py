"""The hinges summed over all pairs without a sort, from tables that add up over parts of the rows.

Scores are counted in cells of width 2^-k (`forerank.pairsums.cell_tables`). For a target in cell b
the kink of the loss lies in cell b - 2^k of the sources, at the same distance from the centre;
every other cell is active as a whole or not at all, and enters exactly by its moments. Within the
kink's own cell the scores are replaced by two half masses at mean +- deviation, which have the same
three moments (maths/pairsums.md, 12 to 14). A cell with one distinct score is exact, and so is a
target that is not between the lowest and the highest.

The error that remains is bounded by the tables (`HingeSums.error`). Where the bound is too large,
the scores of the offending cells alone are collected in one more pass, and then it is zero there.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forerank._kernels import compiled, in_row_chunks
from forerank._typing import Mask, Vector
from forerank.pairsums.cell_tables import (
    FIRST,
    HIGHEST,
    LOWEST,
    SECOND,
    WEIGHT,
    HingeTable,
    no_cells,
)

__all__ = ["CellRequest", "HingeSums"]

# Relative rounding error of a cell's second moment that is allowed for in its deviation.
_ROUNDING = 1e-12
# Time of a target, in multiplications of a product with X.
_MULTIPLICATIONS = 25


@dataclass(frozen=True)
class CellRequest:
    """Cells of width 2^-bits whose scores are to be collected."""

    bits: int
    numbers: NDArray[np.int64]

    def contains(self, s: Vector) -> Mask:
        """Which scores are in these cells."""
        if not self.numbers.size:
            return np.zeros(s.size, dtype=bool)
        number = np.floor(s * 2.0**self.bits).astype(np.int64) - self.numbers[0]
        inside = (number >= 0) & (number <= self.numbers[-1] - self.numbers[0])
        chosen = np.zeros(int(self.numbers[-1] - self.numbers[0]) + 1, dtype=bool)
        chosen[self.numbers - self.numbers[0]] = True
        inside[inside] = chosen[number[inside]]
        return inside


@compiled
def _far_sums(cells, width):  # type: ignore[no-untyped-def]
    """For each cell, weight and first two moments about its centre of all cells above it."""
    far = np.empty((cells.shape[0], 3))
    a0 = a1 = a2 = 0.0
    for k in range(cells.shape[0] - 1, -1, -1):
        far[k, 0], far[k, 1], far[k, 2] = a0, a1, a2
        c = cells[k]
        a2 = (a2 + c[2]) + width * (2.0 * (a1 + c[1]) + width * (a0 + c[0]))
        a1 = (a1 + c[1]) + width * (a0 + c[0])
        a0 += c[0]
    return far


@compiled
def _active_sums(  # type: ignore[no-untyped-def]
    t, sign, scale, first, cells, far, slot, start, point_s, point_sums, out
):
    """Fill `out` with M0, M1, M2 at each target, from the table of the sources.

    sign = 1: targets are upper rows; -1: lower ones, and the table is that of negated scores.
    """
    margin = np.int64(scale)
    for i in range(t.size):
        b = np.int64(np.floor(t[i] * scale))
        x = t[i] - (b + 0.5) / scale
        if sign < 0.0:
            b, x = -b - 1, -x
        k = b - margin - first
        a = far[k]
        m0 = a[0]
        m1 = a[1] - a[0] * x
        m2 = a[2] - x * (2.0 * a[1] - a[0] * x)
        c = cells[k]
        w = c[0]
        if w > 0.0 and c[4] > x:
            if c[3] > x:
                m0 += w
                m1 += c[1] - w * x
                m2 += c[2] - x * (2.0 * c[1] - w * x)
            elif slot[k] >= 0:
                low, high = start[slot[k]], start[slot[k] + 1]
                end = high
                while low < high:  # the first active source
                    middle = (low + high) // 2
                    if 1.0 - (sign * t[i] - point_s[middle]) > 0.0:
                        high = middle
                    else:
                        low = middle + 1
                if low < end:
                    p = point_sums[low]
                    m0 += p[0]
                    m1 += p[1] - p[0] * x
                    m2 += p[2] - x * (2.0 * p[1] - p[0] * x)
            else:
                mean = c[1] / w
                deviation = np.sqrt(max(c[2] / w - mean * mean, 0.0))
                for d in (mean - deviation - x, mean + deviation - x):
                    if d > 0.0:
                        m0 += 0.5 * w
                        m1 += 0.5 * w * d
                        m2 += 0.5 * w * d * d
        out[0, i] = m0
        out[1, i] = m1
        out[2, i] = m2


class _Side:
    """Sums over the sources on one side, at the targets of one class.

    `own` is the table of the targets, `sources` that of the sources, at the same bits, both of
    negated scores where the sources are the upper rows.
    """

    def __init__(self, own: HingeTable, sources: HingeTable, sign: float) -> None:
        margin = 2**own.bits
        n = len(own.cells)
        first, end = own.first - margin, own.first - margin + n
        if len(sources.cells):
            first, end = min(first, sources.first), max(end, sources.first + len(sources.cells))
        self._sign, self._scale = sign, 2.0**own.bits
        self._is_empty = not len(sources.cells)
        self._table = (
            sources.within(first, end)
            if len(sources.cells)
            else (HingeTable(own.bits, first, no_cells(end - first)))
        )
        self._far = _far_sums(self._table.cells, 2.0**-own.bits)
        # Of each kink cell, the targets' weight and their lowest and highest score.
        begin = own.first - margin - first
        self._kinks, self._own = slice(begin, begin + n), own.cells
        self._slot = np.full(end - first, -1, dtype=np.int64)
        self._start = np.zeros(1, dtype=np.int64)
        self._points, self._point_sums = np.empty(0), np.empty((0, 3))

    def deviations(self) -> tuple[Vector, Vector]:
        """For each kink cell that is not exact, W sigma and W (0 for others)."""
        c = self._table.cells[self._kinks]
        weight = np.where(c[:, WEIGHT] > 0.0, c[:, WEIGHT], 1.0)
        mean, second = c[:, FIRST] / weight, c[:, SECOND] / weight
        variance = np.maximum(second - mean**2, 0.0) + _ROUNDING * (second + mean**2)
        between = (self._own[:, WEIGHT] > 0.0) & (c[:, WEIGHT] > 0.0)
        between &= c[:, HIGHEST] > c[:, LOWEST]
        between &= self._own[:, HIGHEST] >= c[:, LOWEST]
        between &= self._own[:, LOWEST] < c[:, HIGHEST]
        between &= self._slot[self._kinks] < 0
        inexact = np.where(between, c[:, WEIGHT], 0.0)
        return inexact * np.sqrt(variance), inexact

    @property
    def target_weight(self) -> Vector:
        return self._own[:, WEIGHT]

    def numbers(self, chosen: Mask) -> NDArray[np.int64]:
        """Numbers of the chosen kink cells, as those of scores that are not negated."""
        number = self._table.first + self._kinks.start + np.flatnonzero(chosen)
        return number if self._sign > 0.0 else -number - 1

    def collect(self, request: CellRequest, s: Vector, w: Vector) -> None:
        """Take the exact scores of the requested cells."""
        number = np.floor(s * self._scale).astype(np.int64)
        x = s - (number + 0.5) / self._scale
        cells = request.numbers
        if self._sign < 0.0:
            s, x, number, cells = -s, -x, -number - 1, -cells - 1
        # Sources with an equal score are in the order of their collection.
        order = np.lexsort((s, number))
        s, x, number, w = s[order], x[order], number[order], w[order]
        cells = np.sort(cells)
        inside = cells[(cells >= self._table.first)]
        inside = inside[inside < self._table.first + len(self._table.cells)]
        self._start = np.append(np.searchsorted(number, inside), 0)
        ends = np.searchsorted(number, inside, side="right")
        sums = np.column_stack([w, w * x, w * x * x])
        pieces, points, position = [], [], 0
        for k, (a, b) in enumerate(zip(self._start[:-1].tolist(), ends.tolist(), strict=True)):
            pieces.append(np.cumsum(sums[a:b][::-1], axis=0)[::-1])
            points.append(s[a:b])
            self._start[k] = position
            position += b - a
        self._start[-1] = position
        self._slot[inside - self._table.first] = np.arange(inside.size)
        if pieces:
            self._points = np.concatenate(points)
            self._point_sums = np.ascontiguousarray(np.concatenate(pieces))

    def total(self) -> float:
        """The sum of M2 over all targets, from their table. Where kink and targets share a cell,
        both are replaced by two half masses.
        """
        own, c, far = self._own, self._table.cells[self._kinks], self._far[self._kinks]
        total = _squares(own, far)
        both = (own[:, WEIGHT] > 0.0) & (c[:, WEIGHT] > 0.0)
        own, c = own[both], c[both]
        active = c[:, LOWEST] >= own[:, HIGHEST]
        total += _squares(own[active], c[active])
        between = ~active & (c[:, HIGHEST] > own[:, LOWEST])
        own, c = own[between], c[between]
        for x in _half_masses(own):
            for d in _half_masses(c):
                squares = np.maximum(d - x, 0.0) ** 2
                total += 0.25 * float((own[:, WEIGHT] * c[:, WEIGHT]) @ squares)
        return total

    def sums(self, t: Vector) -> Vector:
        """M0, M1 and M2 at each target."""
        out = np.zeros((3, t.size))
        if self._is_empty:
            return out
        table = self._scale, self._table.first, self._table.cells, self._far
        points = self._slot, self._start, self._points, self._point_sums

        def some(begin: int, end: int) -> None:
            _active_sums(t[begin:end], self._sign, *table, *points, out[:, begin:end])

        in_row_chunks(some, t.size, _MULTIPLICATIONS * t.size)
        return out


def _squares(own: Vector, sources: Vector) -> float:
    """The sum of w v (d - x)^2 over targets x and sources d, both from their moments by cell."""
    a, b = own, sources
    square = a[:, WEIGHT] * b[:, SECOND] - 2.0 * a[:, FIRST] * b[:, FIRST]
    return float((square + a[:, SECOND] * b[:, WEIGHT]).sum())


def _half_masses(cells: Vector) -> tuple[Vector, Vector]:
    """Mean less and plus deviation of the scores of each cell."""
    mean = cells[:, FIRST] / cells[:, WEIGHT]
    deviation = np.sqrt(np.maximum(cells[:, SECOND] / cells[:, WEIGHT] - mean**2, 0.0))
    return mean - deviation, mean + deviation


class HingeSums:
    """Value and slope of max(0, 1 - t)^degree, summed over the sources, at targets of one class.

    Parameters
    ----------
    own : HingeTable
        Scores of the targets.
    lower, upper : HingeTable
        Scores of the sources that the class is ranked above, and of those that are above it.
    degree : {1, 2}
    """

    def __init__(
        self, own: HingeTable, lower: HingeTable, upper: HingeTable, degree: Literal[1, 2]
    ) -> None:
        self.overflows = own.overflows or lower.overflows or upper.overflows
        bits = min(table.bits for table in (own, lower, upper))
        own, lower, upper = (table.at_bits(bits) for table in (own, lower, upper))
        self._bits, self._degree = bits, degree
        self._arguments = own, lower, upper, degree
        self._collected: tuple | None = None
        if not self.overflows:
            self._below = _Side(own, lower, 1.0)
            self._above = _Side(own.mirrored(), upper.mirrored(), -1.0)

    def __getstate__(self) -> tuple:
        """The tables, which the functions of several classes share: a sixth of all arrays."""
        return self._arguments, self._collected

    def __setstate__(self, state: tuple) -> None:
        arguments, collected = state
        self.__init__(*arguments)  # type: ignore[misc]
        if collected is not None:
            self.collect(*collected)

    def _slope_errors(self, side: _Side) -> Vector:
        deviation, weight = side.deviations()
        return weight if self._degree == 1 else deviation

    def error(self) -> tuple[float, float]:
        """Bounds on the error e_i of the slope, per unit of weight, over the targets: the sum of
        w_i e_i, and the root of the sum of w_i times that of w_i e_i^2.
        """
        if self.overflows:
            return 0.0, 0.0
        first, second = 0.0, 0.0
        for side in (self._below, self._above):
            weight, e = side.target_weight, self._slope_errors(side)
            first += float(weight @ e)
            second += float(np.sqrt(weight.sum() * (weight @ e**2)))
        return first, second

    def requests(self, allowed: float) -> tuple[CellRequest, CellRequest]:
        """Cells of the lower and of the upper sources to collect, so that the second bound of
        `error` is at most `allowed`.
        """
        found = []
        for side in (self._below, self._above) if not self.overflows else ():
            weight = side.target_weight
            share = weight.sum() * weight * self._slope_errors(side) ** 2
            order = np.argsort(share)
            # The cells of least share that may stay as they are.
            stay = int(np.searchsorted(np.cumsum(share[order]), (0.5 * allowed) ** 2, "right"))
            chosen = np.zeros(share.size, dtype=bool)
            chosen[order[stay:]] = True
            found.append(CellRequest(self._bits, np.sort(side.numbers(chosen & (share > 0.0)))))
        none = CellRequest(self._bits, np.empty(0, dtype=np.int64))
        return (found[0], found[1]) if found else (none, none)

    def collect(
        self,
        requests: tuple[CellRequest, CellRequest],
        lower: tuple[Vector, Vector],
        upper: tuple[Vector, Vector],
    ) -> None:
        """Take scores and weights of the sources in the requested cells; they are exact then."""
        self._collected = requests, lower, upper
        if not self.overflows:
            self._below.collect(requests[0], *lower)
            self._above.collect(requests[1], *upper)

    def value(self) -> float:
        """The squared hinge over all targets and the lower sources, from the tables alone."""
        return self._below.total()

    def interpolation_errors(self, first: int, n: int, bits: int) -> Vector:
        """For n intervals of width 2^-bits, the first of which has number `first`, bounds on the
        difference between the slope of the squared hinge and its linear interpolation.

        The slope over the lower sources is concave, that over the upper ones convex, and the
        derivative of each changes by twice the weight of the sources at distance 1.
        """
        _, lower, upper, _ = self._arguments
        below = lower.at_bits(bits).weights(first - 2**bits, n)
        above = upper.at_bits(bits).weights(first + 2**bits, n)
        return np.maximum(below, above) * (0.5 * 2.0**-bits)

    def at(self, t: Vector) -> tuple[Vector, Vector]:
        """Sums of the loss over the lower sources at each target, and slopes over all sources."""
        below, above = self._below.sums(t), self._above.sums(t)
        if self._degree == 1:
            return below[1], above[0] - below[0]
        return below[2], 2.0 * (above[1] - below[1])
