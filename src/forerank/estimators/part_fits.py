"""Fits of `PairwiseRanker` and `PointwiseRanker` on rows in parts, wherever the parts are.

Objective and certificate are those of rows in memory (`forerank.objectives.parts`), the solver
counts passes over the rows (`forerank.solvers.partwise`). Thresholds are exact, too: two passes
after the fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Vector
from forerank.estimators.base import warn_unpaired
from forerank.estimators.part_thresholds import thresholds_over_parts
from forerank.graphs import lowest_first
from forerank.objectives.part_columns import ColumnMoments
from forerank.objectives.parts import OverParts, PairParts, PointParts, Rows
from forerank.solvers import Progress, SolverResult
from forerank.solvers.partwise import PartwiseProblem, minimise_parts
from forerank.solvers.path import Solve

__all__ = ["PartedRows", "prepare_pairs", "prepare_points", "refuse_hinge"]


@dataclass(frozen=True)
class PartedRows:
    """Rows in parts, and what a scan of them found.

    Attributes
    ----------
    over_parts : callable
        ``over_parts(function)`` is the sum of ``function(rows)`` over all parts.
    classes : array
        The labels, sorted; class numbers of the parts refer to them.
    moments : ColumnMoments
        Of all rows.
    sample : Rows
        Rows in memory, with weights such that every class has its share of all rows.
    grouped : bool
        Whether pairs are formed within groups only; a group is complete within its part.
    """

    over_parts: OverParts
    classes: NDArray
    moments: ColumnMoments
    sample: Rows
    grouped: bool = False


def refuse_hinge(ranker: Any, where: str) -> None:
    """ValueError where the loss is the plain hinge, whose solvers need all rows in memory."""
    if ranker.loss == "hinge":
        raise ValueError(
            f"loss='hinge' cannot be fitted on {where}: its solver needs all rows in memory. Use "
            "'squared_hinge' or 'logistic', or give X as an array."
        )


def prepare_pairs(ranker: Any, rows: PartedRows) -> Solve:
    """A function that fits a ranker on all pairs at its present alpha."""
    edges = ranker._edges()
    parts = PairParts(
        ranker.loss, rows.classes.size, None if edges is None else tuple(edges), rows.grouped
    )
    if not _has_pairs(parts, rows):
        weight = rows.moments.weight
        ranker._refuse_no_pairs(np.arange(weight.size), weight, grouped=rows.grouped)
    problem = PartwiseProblem(parts, rows.over_parts, rows.moments, rows.sample)

    def solve(previous: Sequence[Vector] = ()) -> SolverResult:
        result = _minimise(ranker, problem, previous)
        _set_thresholds(ranker, rows, result.w)
        penalty = 0.5 * ranker.alpha * float(result.w @ result.w)
        ranker._set_wmw_bound(max(result.objective - penalty, 0.0), ranker.loss)
        return result

    return solve


def prepare_points(ranker: Any, rows: PartedRows, class_weight: Vector | None) -> Solve:
    """A function that fits a ranker row by row at its present alpha."""
    moments, intercept = rows.moments, bool(ranker.fit_intercept)
    by_class = None
    if class_weight is not None:
        by_class = (float(class_weight[0]), float(class_weight[1]))
        moments = moments.scaled(class_weight)
    parts = PointParts(ranker.loss, by_class)
    problem = PartwiseProblem(parts, rows.over_parts, moments, rows.sample, intercept)
    return lambda previous=(): _minimise(ranker, problem, previous)


def _minimise(ranker: Any, problem: PartwiseProblem, previous: Sequence[Vector]) -> SolverResult:
    def run(progress: Progress) -> SolverResult:
        return minimise_parts(
            problem,
            ranker.alpha,
            start=ranker._start(previous, intercept=problem.intercept),
            tol=ranker.tol,
            max_iter=ranker.max_iter,
            progress=progress,
        )

    return ranker._run_solver(run, intercept=problem.intercept)


@dataclass(frozen=True)
class _GroupCounts:
    """Numbers of groups, of those without a pair, and of their rows; they add up."""

    groups: int
    unpaired: int
    rows: int

    def __add__(self, other: "_GroupCounts") -> "_GroupCounts":
        return _GroupCounts(
            self.groups + other.groups, self.unpaired + other.unpaired, self.rows + other.rows
        )


def _group_counts(rows: Rows, parts: PairParts) -> _GroupCounts:
    """The counts of a part."""
    assert rows.group is not None
    if rows.n_rows == 0:
        return _GroupCounts(0, 0, 0)
    paired = np.zeros(int(rows.group.max()) + 1, dtype=bool)
    weighted = rows.weighted()
    objective = parts.objective(weighted) if weighted.n_rows else None
    if objective is not None and weighted.group is not None:
        paired[weighted.group[objective.blocks.rows]] = True
    unpaired_rows = int(np.count_nonzero(~paired[rows.group]))
    return _GroupCounts(paired.size, int(np.count_nonzero(~paired)), unpaired_rows)


def _has_pairs(parts: PairParts, rows: PartedRows) -> bool:
    """Whether some rows form a pair; a warning where some groups have none."""
    if not rows.grouped:
        weight = rows.moments.weight
        return any(weight[u] > 0.0 and weight[v] > 0.0 for u, v in parts.all_edges())
    counts = rows.over_parts(partial(_group_counts, parts=parts))
    if counts.unpaired < counts.groups:
        warn_unpaired(counts.unpaired, counts.groups, counts.rows)
    return counts.unpaired < counts.groups


def _set_thresholds(ranker: Any, rows: PartedRows, w: Vector) -> None:
    """Intercept and thresholds as `GraphRanker` sets them, each class with its weight."""
    moments, n_classes = rows.moments, rows.classes.size
    ranker._ascending = np.arange(n_classes)
    if ranker.graph not in (None, "order", "chain", "bipartite"):
        ranker._ascending = lowest_first(ranker._edges() or [], moments.class_means() @ w)
    weight = moments.weight[ranker._ascending]
    found = thresholds_over_parts(rows.over_parts, w, rows.sample, np.cumsum(weight)[:-1])
    ranker.intercept_, ranker.thresholds_ = np.zeros(1), found
    if n_classes == 2:
        ranker.intercept_, ranker.thresholds_ = -found, np.zeros(1)
