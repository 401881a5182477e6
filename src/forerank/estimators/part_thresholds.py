"""Thresholds of scores over rows in parts: exact quantiles, from two passes over the rows.

The first pass adds up the weight of the rows in cells between quantiles of a sample's scores, the
second collects the scores of the few cells in which thresholds are. The result is that of
`forerank.estimators.base.prevalence_thresholds` on all scores.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from forerank._typing import Index, Vector
from forerank.design import make_design
from forerank.estimators.base import SCORE_ROUNDING
from forerank.objectives.parts import OverParts, Rows

__all__ = ["thresholds_over_parts"]

# Cells of the first pass: 256 kB of weights per part, and of 1e8 rows some 3,000 in each cell.
_MOST_CELLS = 2**15


@dataclass(frozen=True)
class _CellWeights:
    """Weight of the rows in each cell, and the largest absolute score; they add up."""

    weight: Vector
    largest: float

    def __add__(self, other: "_CellWeights") -> "_CellWeights":
        return _CellWeights(self.weight + other.weight, max(self.largest, other.largest))


@dataclass(frozen=True)
class _CellScores:
    """Distinct scores in some cells, ascending, and their weights; they add up."""

    scores: Vector
    weight: Vector

    def __add__(self, other: "_CellScores") -> "_CellScores":
        return _distinct(
            np.concatenate([self.scores, other.scores]), np.concatenate([self.weight, other.weight])
        )


def _distinct(scores: Vector, weight: Vector) -> _CellScores:
    values, number = np.unique(scores, return_inverse=True)
    return _CellScores(values, np.bincount(number, weight, values.size).astype(np.float64))


def _scores_and_weights(rows: Rows, w: Vector) -> tuple[Vector, Vector]:
    rows = rows.weighted()
    scores = make_design(rows.X).scores(w)
    return scores, np.ones(scores.size) if rows.weight is None else rows.weight


def _cell_weights(rows: Rows, w: Vector, edges: Vector) -> _CellWeights:
    scores, weight = _scores_and_weights(rows, w)
    cell = np.searchsorted(edges, scores)
    in_cells = np.bincount(cell, weight, edges.size + 1).astype(np.float64)
    return _CellWeights(in_cells, float(np.abs(scores).max(initial=0.0)))


def _cell_scores(rows: Rows, w: Vector, edges: Vector, cells: Index) -> _CellScores:
    scores, weight = _scores_and_weights(rows, w)
    inside = np.isin(np.searchsorted(edges, scores), cells)
    return _distinct(scores[inside], weight[inside])


def thresholds_over_parts(over_parts: OverParts, w: Vector, sample: Rows, goals: Vector) -> Vector:
    """Thresholds of the scores X w below which all rows have the weights `goals`, ascending."""
    scores = np.sort(_scores_and_weights(sample, w)[0])
    step = max(1, scores.size // _MOST_CELLS)
    edges = np.unique(scores[step - 1 :: step])
    table = over_parts(partial(_cell_weights, w=w, edges=edges))
    rounding = SCORE_ROUNDING * table.largest
    # The row with the last unit of weight below the threshold, as if rows were repeated.
    goals = goals - 1e-9 * goals[-1]
    filled = np.flatnonzero(table.weight)
    before = np.concatenate([[0.0], np.cumsum(table.weight[filled])])
    # Positions among the filled cells; the next one may have the score above the threshold.
    at = np.minimum(np.searchsorted(before[1:], goals), filled.size - 1)
    last = np.minimum(at + 1, filled.size - 1)
    while True:
        cells = np.unique(
            np.concatenate([filled[a : b + 1] for a, b in zip(at, last, strict=True)])
        )
        found = over_parts(partial(_cell_scores, w=w, edges=edges, cells=cells))
        of_cell = np.searchsorted(filled, np.searchsorted(edges, found.scores))
        pairs = [
            _around(found, (of_cell >= a) & (of_cell <= b), goal - before[a], rounding)
            for a, b, goal in zip(at, last, goals, strict=True)
        ]
        # Scores that tie up to rounding errors may fill several cells.
        missing = np.array([np.isinf(above) for _, above in pairs]) & (last < filled.size - 1)
        if not missing.any():
            break
        last = np.where(missing, np.minimum(2 * last - at + 1, filled.size - 1), last)
    return np.array([low if np.isinf(high) else 0.5 * (low + high) for low, high in pairs])


def _around(found: _CellScores, inside: Vector, goal: float, rounding: float) -> tuple:
    """The score that reaches the goal, and the next one above it by more than rounding errors;
    infinity where there is none.
    """
    scores, weight = found.scores[inside], found.weight[inside]
    below = scores[min(int(np.searchsorted(np.cumsum(weight), goal)), scores.size - 1)]
    above = scores[scores > below + rounding]
    return float(below), float(above[0]) if above.size else np.inf
