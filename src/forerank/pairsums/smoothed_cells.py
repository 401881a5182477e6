"""The smoothed hinge over all pairs, from the weights of scores on the nodes of a grid.

Nodes are the ends of the cells of `HingeTable`. A score between two nodes is split between them in
proportion to its nearness, so that a pair is split between up to four pairs of nodes. The slope of
the smoothed hinge at the pairs of nodes, averaged with these shares, is a number between 0 and 1
for every pair of rows: with them a plane lies below the hinge over all pairs, whatever the width of
the cells (maths/solvers.md, 8b). The plane needs the slope at a row's score alone, which is
interpolated linearly between nodes; and so the rows may be summed on nodes, too
(`forerank.pairsums.nodes`).

The width of the smoothed hinge is an even number of cells. Sums over sources are suffix sums over
nodes of non-negative terms. Cost: the number of cells.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Vector
from forerank.pairsums.cell_tables import FIRST, HIGHEST, LOWEST, SECOND, WEIGHT, HingeTable

__all__ = ["LEAST_CELLS", "NodeSlopes", "SmoothedCells"]

# Least width of the smoothed hinge, in cells: interpolation widens it by two cells.
LEAST_CELLS = 4


class _Sources:
    """The weights of a table on nodes, and their suffix sums of order 2 and 3."""

    def __init__(self, table: HingeTable) -> None:
        weight = node_weights(table)
        self._first, self._n = table.first, weight.size
        sums = [weight]
        for _ in range(3):
            sums.append(np.cumsum(sums[-1][::-1])[::-1])
        self._total = float(weight.sum())
        # Two orders, with a zero beyond the last node.
        self._second, self._third = (np.append(each, 0.0) for each in sums[2:])

    def _inside(self, m: NDArray[np.int64]) -> tuple[NDArray[np.int64], Vector]:
        """Positions of nodes in the sums, and how far nodes are below the first."""
        position = m - self._first
        return np.clip(position, 0, self._n), np.maximum(-position, 0).astype(float)

    def second(self, m: NDArray[np.int64]) -> Vector:
        """Sums of weight (l - m + 1) over the nodes l >= m."""
        inside, below = self._inside(m)
        return self._second[inside] + below * self._total

    def squares(self, m: NDArray[np.int64]) -> Vector:
        """Sums of weight (l - m + 1)^2 over the nodes l >= m."""
        inside, below = self._inside(m)
        third = self._third[inside] + below * self._second[inside]
        third += 0.5 * below * (below + 1.0) * self._total
        return 2.0 * third - self.second(m)


def node_weights(table: HingeTable) -> Vector:
    """The weights of the scores on the nodes table.first, table.first + 1, ..."""
    cells, out = table.cells, np.zeros(len(table.cells) + 1)
    upper = cells[:, FIRST] * 2.0**table.bits + 0.5 * cells[:, WEIGHT]
    upper = np.clip(upper, 0.0, cells[:, WEIGHT])
    out[:-1] = cells[:, WEIGHT] - upper
    out[1:] += upper
    return out


@dataclass(frozen=True)
class NodeSlopes:
    """Slopes of the targets of a class on nodes at multiples of 2^-bits from number `first` on."""

    bits: int
    first: int
    slopes: Vector

    def at(self, t: Vector) -> tuple[Vector, Vector]:
        """Zeros, and the slope at each score, interpolated linearly."""
        position = t * 2.0**self.bits
        number = np.floor(position)
        share = position - number
        k = number.astype(np.int64) - self.first
        return np.zeros(t.size), (1.0 - share) * self.slopes[k] + share * self.slopes[k + 1]


class SmoothedCells:
    """The smoothed hinge over the pairs of the targets of one class with their sources.

    Parameters
    ----------
    own : HingeTable
        Scores of the targets.
    lower, upper : HingeTable
        Scores of the sources that the class is ranked above, and of those that are above it; as
        many bits as `own`.
    """

    def __init__(self, own: HingeTable, lower: HingeTable, upper: HingeTable) -> None:
        self._own, self._lower, self._bits = own, lower, own.bits
        self._below, self._above = _Sources(lower), _Sources(upper.mirrored())
        self._weights = node_weights(own)
        self._numbers = own.first + np.arange(self._weights.size)

    def _half(self, width: float) -> int:
        """Half of a width, as a number of cells."""
        return max(round(0.5 * width * 2.0**self._bits), LEAST_CELLS // 2)

    def _active(self, sources: _Sources, k: NDArray[np.int64], half: int) -> Vector:
        """The sums of the slopes, without their sign, over the sources above nodes k - margin."""
        first = k - 2**self._bits + 1
        return (sources.second(first - half) - sources.second(first + half)) / (2.0 * half)

    def slopes(self, first: int, n: int, width: float) -> Vector:
        """The slope of a target at n nodes from number `first` on, over all its sources."""
        k, half = first + np.arange(n), self._half(width)
        return self._active(self._above, -k, half) - self._active(self._below, k, half)

    def node_slopes(self, width: float) -> NodeSlopes:
        """The slopes at the nodes of the targets."""
        first, n = self._own.first, self._numbers.size
        return NodeSlopes(self._bits, first, self.slopes(first, n, width))

    def total_slope(self, width: float) -> float:
        """The sum of |slope| over the pairs of all targets with their lower sources."""
        return float(self._weights @ self._active(self._below, self._numbers, self._half(width)))

    def smooth_value(self, width: float) -> float:
        """The smoothed hinge over all targets and the lower sources, interpolated."""
        half, first = self._half(width), self._numbers - 2**self._bits + 1
        squares = self._below.squares(first - half) - self._below.squares(first + half)
        return float(self._weights @ squares) / (4.0 * half * 2.0**self._bits)

    def value_bound(self) -> float:
        """An upper bound on the hinge over all targets and the lower sources.

        Only where targets and sources are in cells at a distance of one margin is it not exact:
        there the moments bound it, and a cell with one distinct score is exact, too
        (maths/solvers.md, "Rows in parts").
        """
        value = float(self._weights @ self._below.second(self._numbers - 2**self._bits + 1))
        return value * 2.0**-self._bits - self._excess()

    def _excess(self) -> float:
        """The interpolated hinge less its bound, over pairs of cells that have the kink."""
        own, lower, margin = self._own, self._lower, 2**self._bits
        first = max(own.first, lower.first + margin)
        end = min(own.first + len(own.cells), lower.first + margin + len(lower.cells))
        if end <= first:
            return 0.0
        a = own.cells[first - own.first : end - own.first]
        b = lower.cells[first - margin - lower.first : end - margin - lower.first]
        both = (a[:, WEIGHT] > 0.0) & (b[:, WEIGHT] > 0.0)
        a, b = a[both], b[both]
        weight = a[:, WEIGHT] * b[:, WEIGHT]
        mean = a[:, WEIGHT] * b[:, FIRST] - a[:, FIRST] * b[:, WEIGHT]
        square = a[:, WEIGHT] * b[:, SECOND] - 2.0 * a[:, FIRST] * b[:, FIRST]
        square += a[:, SECOND] * b[:, WEIGHT]
        bound = 0.5 * (mean + np.sqrt(np.maximum(weight * square, mean**2)))
        bound = np.where(b[:, LOWEST] >= a[:, HIGHEST], mean, bound)
        bound = np.where(b[:, HIGHEST] <= a[:, LOWEST], 0.0, bound)
        half = 0.5 * 2.0**-self._bits  # of a cell
        interpolated = (b[:, FIRST] + half * b[:, WEIGHT]) * (half * a[:, WEIGHT] - a[:, FIRST])
        interpolated *= 2.0**self._bits
        return float(np.maximum(interpolated - bound, 0.0).sum())
