"""Rows in parts, the columns at a point, and the two kinds of objectives over parts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Matrix, Vector
from forerank.design import Design, make_design, standardise
from forerank.objectives.allpairs import AllPairs
from forerank.objectives.pointwise import Pointwise

__all__ = ["PairParts", "Parts", "Point", "PointParts", "Rows", "part_group_counts"]


@dataclass(frozen=True)
class Rows:
    """A part: rows of X, their class numbers, weights (None: all one) and groups (None: without).

    Group numbers need only differ within the part.
    """

    X: Matrix
    codes: NDArray[np.integer]
    weight: Vector | None = None
    group: NDArray[np.integer] | None = None

    @property
    def n_rows(self) -> int:
        return self.X.shape[0]

    def weighted(self) -> "Rows":
        """The rows without those of weight zero, which are in no sum."""
        if self.weight is None or self.weight.all():
            return self
        kept = np.flatnonzero(self.weight)
        group = None if self.group is None else self.group[kept]
        return Rows(self.X[kept], self.codes[kept], self.weight[kept], group)


@dataclass(frozen=True)
class Point:
    """Weights w of the columns (X - 1 mean^T) / unit, the last of ones where `intercept`."""

    w: Vector
    mean: Vector
    unit: Vector
    intercept: bool = False

    def design(self, rows: Rows) -> Design:
        """The columns of a part."""
        return standardise(make_design(rows.X, intercept=self.intercept), self.mean, self.unit)


@dataclass(frozen=True)
class PairParts:
    """A loss over all pairs of classes 0 .. n_classes - 1, within groups where `grouped`.

    `edges` are pairs (upper class, lower class); None: every higher class above every lower one.
    Tables of cells have 2^bits cells per unit of score; None: as many as tables have by default.
    """

    loss: str
    n_classes: int = 2
    edges: tuple[tuple[int, int], ...] | None = None
    grouped: bool = False
    bits: int | None = None

    @property
    def one_pass(self) -> bool:
        """Whether `part_sums` needs no tables."""
        return self.grouped

    def all_edges(self) -> list[tuple[int, int]]:
        """The pairs of classes, upper first."""
        if self.edges is not None:
            return sorted(set(self.edges))
        return [(u, v) for u in range(self.n_classes) for v in range(u)]

    def weight_of(self, rows: Rows) -> Vector | None:
        return rows.weight

    def objective(self, rows: Rows) -> AllPairs | None:
        """The objective within the groups of a part; None where no pair has a weight, as where
        products of weights are too small for doubles.
        """
        found = AllPairs(
            rows.codes, self.loss, weight=rows.weight, group=rows.group, edges=self.edges
        )
        return found if found.blocks.n_blocks and found.blocks.total_weight > 0.0 else None

    def total(self, objective: AllPairs) -> float:
        return float(objective.blocks.total_weight)


@dataclass(frozen=True)
class PointParts:
    """A loss over single rows; class 1 is positive. `class_weight` multiplies the weights."""

    loss: str
    class_weight: tuple[float, float] | None = None
    n_classes: int = 2

    one_pass = True

    def weight_of(self, rows: Rows) -> Vector | None:
        if self.class_weight is None:
            return rows.weight
        by_row = np.asarray(self.class_weight)[rows.codes]
        return by_row if rows.weight is None else by_row * rows.weight

    def objective(self, rows: Rows) -> Pointwise | None:
        """The objective on the rows of a part; None where there are none."""
        if rows.n_rows == 0:
            return None
        return Pointwise(rows.codes == 1, self.loss, weight=self.weight_of(rows))

    def total(self, objective: Pointwise) -> float:
        return objective.total_weight


Parts = PairParts | PointParts


def part_group_counts(rows: Rows, parts: PairParts) -> NDArray[np.int64]:
    """Numbers of groups of a part, of those without a pair, and of the rows of the latter."""
    if rows.group is None or rows.n_rows == 0:
        return np.zeros(3, dtype=np.int64)
    group = np.unique(rows.group, return_inverse=True)[1]
    paired = np.zeros(int(group.max()) + 1, dtype=bool)
    weighted = Rows(rows.X, rows.codes, rows.weight, group).weighted()
    objective = parts.objective(weighted) if weighted.n_rows else None
    if objective is not None and weighted.group is not None:
        paired[weighted.group[objective.blocks.rows]] = True
    return np.array([paired.size, np.count_nonzero(~paired), np.count_nonzero(~paired[group])])
