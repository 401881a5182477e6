"""The plain hinge over rows in parts: its value, and planes below it from smoothed slopes.

The slopes of the smoothed hinge, between 0 and 1 for every pair or row, give a plane below the
hinge itself (maths/solvers.md, 7), and the gradient of the smoothed mean is that of the plane:

- single rows, and pairs within groups: one pass, exactly;
- pairs over all rows: tables of scores in one pass; the plane in the same pass where the rows are
  summed on nodes that are near enough to each other, in a second one otherwise. The plane is valid
  for cells of any width (`forerank.pairsums.smoothed_cells`); coarse cells only smooth more.

With an intercept the slopes of the two classes have to have the same sum: the larger ones are
reduced, which leaves them between 0 and 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from forerank._typing import Vector
from forerank.objectives.parts import (
    ClassTables,
    Evaluation,
    NodeSums,
    OverParts,
    PairParts,
    Parts,
    Point,
    PointParts,
    Rows,
    class_tables,
    part_sums,
    part_tables,
    part_tables_and_nodes,
    with_equal_cells,
)
from forerank.pairsums.smoothed_cells import LEAST_CELLS, SmoothedCells

__all__ = ["HingeEvaluation", "evaluate_hinge", "part_line", "part_planes"]

# Cells in the width of the smoothed hinge for which rows are summed on nodes.
_CELLS = 2 * LEAST_CELLS
# Columns up to which the Hessian over single rows is computed (720 kB).
_FEW_COLUMNS = 300


@dataclass(frozen=True)
class HingeEvaluation(Evaluation):
    """Mean smoothed hinge and its gradient over all rows, and what they say about the hinge itself.

    Attributes
    ----------
    hinge : float
        The mean hinge; for pairs over all rows an upper bound on it.
    plane, offset : array and float
        <plane, w> + offset is at most the mean hinge, for all weights w of the columns.
    least_width : float
        The smallest width of the smoothed hinge at this point.
    hessian : array, optional
        That of the mean smoothed hinge over all rows, for single rows with few columns.
    total : float
        The weight of all pairs or rows.
    narrower : callable, optional
        ``narrower(width)`` is the evaluation at a smaller width without a pass, or None.
    """

    hinge: float = np.inf
    plane: Vector | None = None
    offset: float = 0.0
    least_width: float = 0.0
    hessian: Vector | None = None
    total: float = 0.0
    narrower: "Callable[[float], HingeEvaluation | None] | None" = None


@dataclass(frozen=True)
class PlaneSums:
    """Sums over a part: hinge, smoothed hinge, the slopes and their sums times the columns for
    each side (rows of `gradient`), the Hessian of the smoothed hinge, without entries where it is
    not wanted, and the weight of all terms. They add up.
    """

    hinge: float
    smooth: float
    slopes: Vector
    gradient: Vector
    hessian: Vector
    total: float

    def __add__(self, other: "PlaneSums") -> "PlaneSums":
        return PlaneSums(
            self.hinge + other.hinge,
            self.smooth + other.smooth,
            self.slopes + other.slopes,
            self.gradient + other.gradient,
            self.hessian + other.hessian,
            self.total + other.total,
        )

    def evaluation(self) -> HingeEvaluation:
        """The means, with the same sum of slopes on all sides."""
        sums = np.where(self.slopes > 0.0, self.slopes, 1.0)
        share = self.slopes.min() / sums
        return HingeEvaluation(
            self.smooth / self.total,
            self.gradient.sum(axis=0) / self.total,
            hinge=self.hinge / self.total,
            plane=share @ self.gradient / self.total,
            offset=float(share @ self.slopes) / self.total,
            hessian=self.hessian / self.total if self.hessian.size else None,
            total=self.total,
        )


def part_planes(rows: Rows, point: Point, parts: Parts, width: float) -> PlaneSums:
    """The sums of a part for single rows, or for pairs within groups; with an intercept, the two
    classes are two sides. Cost: a product with X, one with X^T per side, and N or N log N; for
    single rows of few columns d^2 / 2 for each one on the parabola of the smoothed hinge.
    """
    rows, d = rows.weighted(), point.w.size
    objective: Any = parts.objective(rows)
    n_sides = 1 + point.intercept
    wanted = isinstance(parts, PointParts) and d <= _FEW_COLUMNS
    nothing = np.zeros((d, d) if wanted else 0)
    if objective is None:
        return PlaneSums(0.0, 0.0, np.zeros(n_sides), np.zeros((n_sides, d)), nothing, 0.0)
    design, total = point.design(rows), parts.total(objective)
    s = design.scores(point.w)
    smooth = objective.smoothed(width).at(s)
    if point.intercept:
        sides = [np.where(objective.positive == side, smooth.gradient, 0.0) for side in (1, 0)]
        slopes = np.array([np.abs(side).sum() for side in sides])
    else:
        sides, slopes = [smooth.gradient], np.array([smooth.total_slope()])
    return PlaneSums(
        total * objective.at(s).value,
        total * smooth.value,
        total * slopes,
        total * np.array([design.adjoint(side) for side in sides]),
        total * _gram(rows, point, smooth.curvature_diagonal()) if wanted else nothing,
        total,
    )


def _gram(rows: Rows, point: Point, weight: Vector) -> Vector:
    """X^T diag(weight) X, from the rows with a weight."""
    some = np.flatnonzero(weight)
    if not some.size:
        return np.zeros((point.w.size, point.w.size))
    return point.design(Rows(rows.X[some], rows.codes[some])).weighted_gram(weight[some])


def part_line(
    rows: Rows, point: Point, parts: Parts, width: float, p: Vector, steps: Vector
) -> Vector:
    """The sums of the smoothed hinge over a part at the weights w + step * p, for single rows or
    for pairs within groups. Cost: two products with X, and N or N log N per step.
    """
    rows = rows.weighted()
    objective: Any = parts.objective(rows)
    if objective is None:
        return np.zeros(steps.size)
    design, smoothed = point.design(rows), objective.smoothed(width)
    s, q = design.scores(point.w), design.scores(p)
    total = parts.total(objective)
    return np.array([total * smoothed.at(s + step * q).value for step in steps.tolist()])


class _PairPlanes:
    """Evaluations from the tables of all rows at a point, for any width."""

    def __init__(
        self, parts: PairParts, point: Point, over_parts: OverParts, tables: Any, nodes: Any
    ) -> None:
        self._parts, self._point, self._over_parts = parts, point, over_parts
        self._found = class_tables(parts, tables)
        self._nodes: NodeSums | None = nodes
        self._cells = _cells(self._found)
        self.bits = self._found.own[0].bits

    def at(self, width: float) -> HingeEvaluation:
        """The evaluation, with a second pass where the nodes are too far apart."""
        found = self.at_nodes(width)
        if found is not None:
            return found
        functions = tuple(each.node_slopes(width) for each in self._cells)
        task = partial(part_sums, point=self._point, parts=self._parts, functions=functions)
        slope = sum(each.total_slope(width) for each in self._cells)
        return self._evaluation(width, self._over_parts(task).gradient, slope, 2)

    def at_nodes(self, width: float) -> HingeEvaluation | None:
        """The evaluation from the rows on nodes, or None where these are too far apart."""
        nodes = self._nodes
        if nodes is None or width * 2.0**nodes.bits < LEAST_CELLS:
            return None
        cells = self._cells
        if nodes.bits != self.bits:
            cells = _cells(_at_bits(self._found, nodes.bits))
        gradient = np.zeros(self._point.w.size)
        for k, each in enumerate(cells):
            slopes = np.where(
                nodes.weight[k] > 0.0, each.slopes(nodes.first, nodes.n_nodes, width), 0.0
            )
            gradient += slopes @ nodes.sums[k] - float(slopes @ nodes.weight[k]) * self._point.mean
        slope = sum(each.total_slope(width) for each in cells)
        return self._evaluation(width, gradient / self._point.unit, slope, 1)

    def _evaluation(
        self, width: float, gradient: Vector, slope: float, n_passes: int
    ) -> HingeEvaluation:
        total = self._found.total
        return HingeEvaluation(
            sum(each.smooth_value(width) for each in self._cells) / total,
            gradient / total,
            n_passes=n_passes,
            tables=self._found.own,
            hinge=sum(each.value_bound() for each in self._cells) / total,
            plane=gradient / total,
            offset=slope / total,
            least_width=LEAST_CELLS * 2.0**-self.bits,
            total=total,
            narrower=self.at_nodes,
        )


def _at_bits(found: ClassTables, bits: int) -> ClassTables:
    own, lower, upper = (
        tuple(table.at_bits(bits) for table in side)
        for side in (found.own, found.lower, found.upper)
    )
    return found._replace(own=own, lower=lower, upper=upper)  # type: ignore[arg-type]


def _cells(found: ClassTables) -> list[SmoothedCells]:
    bits = found.own[0].bits
    return [
        SmoothedCells(own, lower.at_bits(bits), upper.at_bits(bits))
        for own, lower, upper in zip(found.own, found.lower, found.upper, strict=True)
    ]


def evaluate_hinge(
    parts: Parts, point: Point, over_parts: OverParts, width: float, *, one_pass: bool = False
) -> HingeEvaluation:
    """The smoothed hinge of a width, a power of 2, at `point` over all parts, and a plane below the
    hinge. Where scores are too far apart, the value is infinite, and there is no plane.

    Parameters
    ----------
    parts : PairParts or PointParts
        With the loss "hinge".
    point : Point
    over_parts : callable
        ``over_parts(function)`` is the sum of ``function(rows)`` over all parts.
    width : float
        At least `least_width` of the result is taken.
    one_pass : bool
        Whether pairs over all rows may be summed on nodes, in the same pass as their scores.
    """
    if isinstance(parts, PointParts) or parts.one_pass:
        task = partial(part_planes, point=point, parts=parts, width=width)
        return over_parts(task).evaluation()
    nodes = None
    if one_pass:
        bits = int(np.ceil(np.log2(_CELLS / width)))
        both = over_parts(partial(part_tables_and_nodes, point=point, parts=parts, bits=bits))
        tables, nodes = with_equal_cells(both.first), both.second
        nodes = None if nodes.overflows else nodes.at_bits(tables[0].bits)
    else:
        tables = with_equal_cells(over_parts(partial(part_tables, point=point, parts=parts)))
    if any(table.overflows for table in tables):
        return HingeEvaluation(np.inf, np.zeros(point.w.size))
    planes = _PairPlanes(parts, point, over_parts, tables, nodes)
    return planes.at(max(width, LEAST_CELLS * 2.0**-planes.bits))
