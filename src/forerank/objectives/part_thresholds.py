"""Scores that split rows in parts into classes of their true sizes, exactly, in two passes.

The first pass makes tables of scores; the second collects the scores of the cells in which the
thresholds lie and of the next ones. It is left out where these cells have one distinct score.
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Vector
from forerank.objectives.parts import (
    OverParts,
    PairParts,
    Point,
    Tables,
    part_scores,
    part_tables,
)
from forerank.pairsums.cell_tables import HingeTable
from forerank.pairsums.cells import CellRequest

__all__ = ["ClassScores"]

# Largest difference of equal scores, relative to the largest score, as for rows in memory.
_ROUNDING = 1e-12


class ClassScores:
    """Tables of the scores of every class at a point; `tables` are used where they have cells.

    `overflows` is set where scores are too far apart for tables.
    """

    def __init__(
        self, point: Point, n_classes: int, over_parts: OverParts, tables: Tables | None = None
    ) -> None:
        self._point, self._over_parts = point, over_parts
        parts = PairParts("squared_hinge", n_classes)
        if tables is None or not isinstance(tables[0], HingeTable):
            tables = over_parts(partial(part_tables, point=point, parts=parts))
        self._whole: HingeTable = sum(tables[1:], start=tables[0])
        self.overflows = self._whole.overflows
        self._tables = [table.at_bits(self._whole.bits) for table in tables]
        self.weight = np.array([table.weight for table in self._tables])

    def means(self) -> Vector:
        """The mean score of each class; 0 for one without weight."""
        out = np.zeros(len(self._tables))
        for k, table in enumerate(self._tables):
            if table.weight > 0.0:
                total = table.cells[:, 0] @ self._centres(table) + table.cells[:, 1].sum()
                out[k] = total / table.weight
        return out

    @staticmethod
    def _centres(table: HingeTable) -> Vector:
        return np.asarray(
            (table.first + np.arange(len(table.cells)) + 0.5) * 2.0**-table.bits, float
        )

    def thresholds(self, ascending: NDArray[np.integer]) -> Vector:
        """Scores between classes, from the lowest to the highest of `ascending`, midway between
        scores that differ by more than rounding errors.
        """
        goals = np.cumsum(self.weight[ascending])[:-1]
        table = self._whole
        cells, centres = table.cells, self._centres(table)
        cumulated = np.cumsum(cells[:, 0])
        slack = 1e-9 * goals[-1]
        inside = np.searchsorted(cumulated, goals - slack)
        inside = np.minimum(inside, len(cells) - 1)
        occupied = cells[:, 0] > 0.0
        filled = np.flatnonzero(occupied)
        after = np.searchsorted(filled, inside, side="right")
        following = filled[np.minimum(after, filled.size - 1)]
        scores, weights = self._scores_of(np.unique([inside, following]))
        numbers = np.floor(scores * 2.0**table.bits).astype(np.int64) - table.first
        lowest = np.where(occupied, centres + np.where(occupied, cells[:, 3], 0.0), np.inf)
        ends = filled[[0, -1]]
        largest = np.abs(np.array([lowest[ends[0]], centres[ends[1]] + cells[ends[1], 4]])).max()
        out = []
        for goal, cell, next_cell in zip(goals, inside, following, strict=True):
            own = (numbers == cell) | (numbers == next_cell)
            order = np.argsort(scores[own], kind="stable")
            ascending_scores = scores[own][order]
            before = cumulated[cell] - cells[cell, 0]
            reached = before + np.cumsum(weights[own][order])
            last = min(int(np.searchsorted(reached, goal - slack)), ascending_scores.size - 1)
            below = ascending_scores[last]
            tied = below + _ROUNDING * largest
            later = ascending_scores[ascending_scores > tied]
            above = (
                float(later[0])
                if later.size
                else float(np.min(lowest[cell + 1 :][lowest[cell + 1 :] > tied], initial=np.inf))
            )
            out.append(below if np.isinf(above) else 0.5 * (below + above))
        return np.array(out)

    def _scores_of(self, numbers: NDArray[np.integer]) -> tuple[Vector, Vector]:
        """Scores and weights in these cells of the whole table; one per cell where they tie."""
        table = self._whole
        cells = table.cells[numbers]
        if (cells[:, 3] == cells[:, 4]).all():
            return self._centres(table)[numbers] + cells[:, 3], cells[:, 0]
        request = CellRequest(table.bits, table.first + numbers.astype(np.int64))
        requests = (request,) * len(self._tables)
        found = self._over_parts(partial(part_scores, point=self._point, requests=requests))
        return np.concatenate([s for s, _ in found]), np.concatenate([w for _, w in found])
