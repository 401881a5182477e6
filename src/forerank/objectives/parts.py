"""Objectives over rows that are in parts: pure functions from a part to sums that add up.

A part is a block of rows, wherever it is. Value and gradient over all parts are sums of what each
part returns, so that neither X nor scores ever leave it:

- pointwise losses, and pairs within groups (a group is complete within its part): `part_sums`, one
  pass;
- pairs over all rows: `part_tables`, a table of scores per class, added up over the parts; from the
  sum of these tables, `slope_functions`; then `part_sums` with these functions, a second pass.
  Where ties leave too large an error, `part_scores` collects the scores of a few cells between the
  two. `part_tables_and_nodes` has in the first pass sums of rows as well, from which the gradient
  follows with a bounded error; where that is enough, there is no second pass.

All functions and their arguments can be pickled. Nothing here reads files or knows a scheduler;
`evaluate` takes a function that applies one of these to each part and adds up the results.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from forerank._typing import Vector
from forerank.objectives.part_rows import PairParts, Parts, Point, PointParts, Rows
from forerank.pairsums.cells import CellRequest
from forerank.pairsums.nodes import NodeSums
from forerank.pairsums.tables import sums_of, table_of

__all__ = [
    "Both",
    "ClassTables",
    "Evaluation",
    "PairParts",
    "PartSums",
    "Point",
    "PointParts",
    "Rows",
    "class_tables",
    "evaluate",
    "part_scores",
    "part_sums",
    "part_tables",
    "part_tables_and_nodes",
    "slope_functions",
    "with_equal_cells",
]

# Nodes per unit of score on which rows are summed, as powers of 2.
_LEAST_NODE_BITS, _MOST_NODE_BITS = 4, 10


@dataclass(frozen=True)
class PartSums:
    """Sums over the rows of a part; they add up.

    Attributes
    ----------
    value : float
        Of the loss, times its weight.
    gradient : array
        Its gradient with respect to the weights of the columns.
    total : float
        The weight of the terms of `value`, where it is not known from tables.
    """

    value: float
    gradient: Vector
    total: float = 0.0

    def __add__(self, other: "PartSums") -> "PartSums":
        return PartSums(
            self.value + other.value, self.gradient + other.gradient, self.total + other.total
        )


@dataclass(frozen=True)
class Both:
    """Two results that add up."""

    first: Any
    second: Any

    def __add__(self, other: "Both") -> "Both":
        return Both(self.first + other.first, self.second + other.second)


class Tables(tuple):
    """A table per class; they add up class by class."""

    def __add__(self, other: Any) -> "Tables":
        return Tables(a + b for a, b in zip(self, other, strict=True))


class Scores(tuple):
    """Scores and weights of each class; they add up by concatenation."""

    def __add__(self, other: Any) -> "Scores":
        return Scores(
            (np.concatenate([a[0], b[0]]), np.concatenate([a[1], b[1]]))
            for a, b in zip(self, other, strict=True)
        )


def part_tables(rows: Rows, point: Point, parts: PairParts) -> Tables:
    """A table of the scores of each class. Cost: a product with X, and N."""
    rows = rows.weighted()
    return _tables_of(rows, point.design(rows).scores(point.w), parts)


def part_tables_and_nodes(rows: Rows, point: Point, parts: PairParts, bits: int) -> Both:
    """`part_tables`, and the rows of each class summed on at most 2^bits nodes per unit of score.

    Cost: a product with X and one with X^T.
    """
    rows = rows.weighted()
    s = point.design(rows).scores(point.w)
    X = np.ascontiguousarray(rows.X)
    nodes = NodeSums.of(X, rows.codes, rows.weight, s, parts.n_classes, bits)
    return Both(_tables_of(rows, s, parts), nodes)


def _tables_of(rows: Rows, s: Vector, parts: PairParts) -> Tables:
    tables = []
    for k in range(parts.n_classes):
        of_class = rows.codes == k
        weight = None if rows.weight is None else rows.weight[of_class]
        tables.append(table_of(parts.loss, s[of_class], weight, parts.bits))
    return Tables(tables)


def part_scores(rows: Rows, point: Point, requests: tuple[CellRequest, ...]) -> Scores:
    """Scores and weights in the requested cells of each class."""
    rows = rows.weighted()
    s = point.design(rows).scores(point.w)
    weight = np.ones(s.size) if rows.weight is None else rows.weight
    found = []
    for k, request in enumerate(requests):
        of_class = np.flatnonzero(rows.codes == k)
        of_class = of_class[request.contains(s[of_class])]
        found.append((s[of_class], weight[of_class]))
    return Scores(found)


def part_sums(
    rows: Rows, point: Point, parts: Parts, functions: tuple[Any, ...] | None = None
) -> PartSums:
    """Value and gradient over a part; `functions` are those of `slope_functions`, for pairs
    over all rows. Cost: a product with X, one with X^T, and N between them.
    """
    rows = rows.weighted()
    design = point.design(rows)
    if functions is None:
        objective: Any = parts.objective(rows)
        if objective is None:
            return PartSums(0.0, np.zeros(point.w.size))
        here, total = objective.at(design.scores(point.w)), parts.total(objective)
        return PartSums(total * here.value, total * design.adjoint(here.gradient), total)
    s, value = design.scores(point.w), 0.0
    slopes = np.zeros(rows.n_rows)
    for k, function in enumerate(functions):
        of_class = np.flatnonzero(rows.codes == k)
        if of_class.size:
            losses, slope = function.at(s[of_class])
            if rows.weight is not None:
                losses *= rows.weight[of_class]
                slope *= rows.weight[of_class]
            value += float(losses.sum())
            slopes[of_class] = slope
    return PartSums(value, design.adjoint(slopes))


class SlopeFunctions(NamedTuple):
    """From the tables of all parts: for each class, the loss and the slope as functions of a row's
    score; the weight of all pairs; whether scores are too far apart, and the tables as well as the
    classes below and above each class.
    """

    by_class: tuple[Any, ...]
    total: float
    overflows: bool
    lower: tuple[tuple[int, ...], ...]
    upper: tuple[tuple[int, ...], ...]

    def errors(self, second_moment: float) -> tuple[float, float]:
        """Bounds on the error of the slopes: on the sum of their absolute values, and on the norm
        of X^T times it, where `second_moment` is an upper bound on the weighted mean of ||x||^2
        over the rows of any class.
        """
        errors = [function.error() for function in self.by_class]
        first, second = (sum(each) / self.total for each in zip(*errors, strict=True))
        return first, second * float(np.sqrt(second_moment))

    def requests(self, allowed: float, second_moment: float) -> tuple[CellRequest, ...] | None:
        """For each class, the cells of which the scores are needed for an error of the gradient
        of at most `allowed`; None where none are.
        """
        if self.overflows or self.errors(second_moment)[1] <= allowed:
            return None
        return tuple(_united(self._by_source(self._wanted(allowed, second_moment))))

    def _wanted(self, allowed: float, second_moment: float) -> list[tuple]:
        share = allowed * self.total / np.sqrt(second_moment) / len(self.by_class)
        return [function.requests(share) for function in self.by_class]

    def _by_source(self, wanted: list[tuple]) -> list[list[CellRequest]]:
        of_class: list[list[CellRequest]] = [[] for _ in self.by_class]
        for k, (below, above) in enumerate(wanted):
            for sources, request in ((self.lower[k], below), (self.upper[k], above)):
                for source in sources:
                    of_class[source].append(request)
        return of_class

    def collect(self, scores: Scores, allowed: float, second_moment: float) -> None:
        """Take the exact scores of the cells of `requests`."""
        for k, (function, wanted) in enumerate(
            zip(self.by_class, self._wanted(allowed, second_moment), strict=True)
        ):
            below, above = (
                _joined([scores[j] for j in sources], request)
                for sources, request in zip((self.lower[k], self.upper[k]), wanted, strict=True)
            )
            function.collect(wanted, below, above)

    def at_nodes(self, nodes: NodeSums, point: Point) -> tuple[float, Vector, float]:
        """Mean loss and its gradient from the sums of rows on nodes, which the tables cover, and a
        bound on the error of the gradient per root of `second_moment` of `errors`.
        """
        value, error, sums = 0.0, 0.0, np.zeros(point.w.size)
        for k, function in enumerate(self.by_class):
            weight = nodes.weight[k]
            slope = function.at(nodes.scores)[1]
            slope[weight == 0.0] = 0.0  # beyond the scores of the class
            sums += slope @ nodes.sums[k] - float(slope @ weight) * point.mean
            value += function.value()
            between = function.interpolation_errors(nodes.first, nodes.n_nodes - 1, nodes.bits)
            largest = np.maximum(np.append(between, 0.0), np.append(0.0, between))
            largest[weight == 0.0] = 0.0
            error += float(np.sqrt(weight.sum() * (weight @ largest**2)))
        return value / self.total, sums / point.unit / self.total, error / self.total


def _united(by_class: list[list[CellRequest]]) -> list[CellRequest]:
    """One request per class, for all cells of its requests."""
    bits = min((request.bits for each in by_class for request in each), default=0)
    return [
        CellRequest(
            bits, np.unique(np.concatenate([np.empty(0, np.int64), *(r.numbers for r in each)]))
        )
        for each in by_class
    ]


def _joined(scores: list[tuple[Vector, Vector]], request: CellRequest) -> tuple[Vector, Vector]:
    """Scores and weights of several classes in the requested cells."""
    s = np.concatenate([np.empty(0), *(each[0] for each in scores)])
    w = np.concatenate([np.empty(0), *(each[1] for each in scores)])
    inside = request.contains(s)
    return s[inside], w[inside]


class ClassTables(NamedTuple):
    """The tables of the classes, with equally wide cells; for each class the sums of those of the
    classes below and above it, and the numbers of these; the weight of all pairs.
    """

    own: "Tables"
    lower: tuple[Any, ...]
    upper: tuple[Any, ...]
    below: tuple[tuple[int, ...], ...]
    above: tuple[tuple[int, ...], ...]
    total: float


def class_tables(parts: PairParts, tables: Tables) -> ClassTables:
    """The tables of all rows as targets and as sources."""
    edges, tables = parts.all_edges(), with_equal_cells(tables)
    below = tuple(tuple(v for u, v in edges if u == k) for k in range(parts.n_classes))
    above = tuple(tuple(u for u, v in edges if v == k) for k in range(parts.n_classes))
    nothing = table_of(parts.loss, np.empty(0), None, parts.bits)

    def united(sources: tuple[int, ...]) -> Any:
        return sum((tables[j] for j in sources), start=nothing)

    total = sum(tables[u].weight * tables[v].weight for u, v in edges)
    lower, upper = (tuple(united(each) for each in side) for side in (below, above))
    return ClassTables(tables, lower, upper, below, above, total)


def slope_functions(
    parts: PairParts, tables: Tables, scores: tuple[float, float] | None = None
) -> SlopeFunctions:
    """Loss and slope as functions of a row's score, from the tables of all rows; they may be called
    for scores of the class, and for those between the two `scores`.
    """
    found = class_tables(parts, tables)
    own = found.own if scores is None else [table.covering(*scores) for table in found.own]
    by_class = tuple(
        sums_of(parts.loss, *each) for each in zip(own, found.lower, found.upper, strict=True)
    )
    overflows = any(function.overflows for function in by_class)
    return SlopeFunctions(by_class, found.total, overflows, found.below, found.above)


def with_equal_cells(tables: Tables) -> Tables:
    """Tables whose cells, where they have cells, are equally wide in all classes."""
    if not hasattr(tables[0], "at_bits"):
        return tables
    whole = sum(tables[1:], start=tables[0])
    return Tables(table.at_bits(whole.bits) for table in tables)


def _node_bits(accuracy: float) -> int:
    """Nodes per unit of score, as a power of 2, for an error of slopes of about `accuracy`, where
    the sources within a width h have a weight of about h: h^2 / 2.
    """
    wanted = -0.5 * np.log2(2.0 * max(accuracy, 1e-300))
    return int(np.clip(np.ceil(wanted), _LEAST_NODE_BITS, _MOST_NODE_BITS))


@dataclass(frozen=True)
class Evaluation:
    """Mean loss and its gradient over all rows; `error` bounds the error of the gradient's norm,
    `tables` are those of the classes at this point, for pairs over all rows.
    """

    value: float
    gradient: Vector
    error: float = 0.0
    n_passes: int = 1
    tables: Tables | None = None


# A function that applies another to each part and adds up the results.
OverParts = Callable[[Callable[[Rows], Any]], Any]


def evaluate(
    parts: Parts,
    point: Point,
    over_parts: OverParts,
    *,
    accuracy: float = 0.0,
    second_moment: float = 1.0,
    enough: Callable[[Vector], float] | None = None,
) -> Evaluation:
    """The mean loss and its gradient at `point` over all parts.

    Parameters
    ----------
    parts : PairParts or PointParts
    point : Point
    over_parts : callable
        ``over_parts(function)`` is the sum of ``function(rows)`` over all parts.
    accuracy : float
        Allowed error of the norm of the gradient; 0 for exact sums.
    second_moment : float
        Upper bound on the weighted mean of ||x||^2 over the rows of any class, with columns as in
        `point`.
    enough : callable, optional
        ``enough(gradient)`` is the error up to which a gradient will do. With it, pairs over all
        rows need one pass where the rows, summed on nodes, give the gradient so accurately. The
        error is at most `accuracy` otherwise, and so it is without `enough`.
    """
    if isinstance(parts, PointParts) or parts.one_pass:
        sums = over_parts(partial(part_sums, point=point, parts=parts))
        return Evaluation(sums.value / sums.total, sums.gradient / sums.total)
    nodes = None
    if enough is None or parts.loss == "hinge":
        tables = over_parts(partial(part_tables, point=point, parts=parts))
    else:
        # Columns that are all constant have no second moment.
        bits = _node_bits(accuracy / np.sqrt(second_moment) if second_moment > 0.0 else np.inf)
        both = over_parts(partial(part_tables_and_nodes, point=point, parts=parts, bits=bits))
        tables, nodes = with_equal_cells(both.first), both.second
        nodes = None if nodes.overflows else nodes.at_bits(getattr(tables[0], "bits", nodes.bits))
    ends = None if nodes is None else (nodes.scores[0], nodes.scores[-1])
    functions = slope_functions(parts, tables, ends)
    if functions.overflows:
        return Evaluation(np.inf, np.zeros(point.w.size))
    if nodes is not None and enough is not None:
        value, gradient, error = functions.at_nodes(nodes, point)
        error *= float(np.sqrt(second_moment))
        if error <= enough(gradient):
            return Evaluation(value, gradient, error, 1, tables)
    passes = 2
    requests = functions.requests(accuracy, second_moment)
    if requests is not None:
        scores = over_parts(partial(part_scores, point=point, requests=requests))
        functions.collect(scores, accuracy, second_moment)
        passes = 3
    task = partial(part_sums, point=point, parts=parts, functions=functions.by_class)
    sums = over_parts(task)
    error = functions.errors(second_moment)[1]
    total = functions.total
    return Evaluation(sums.value / total, sums.gradient / total, error, passes, tables)
