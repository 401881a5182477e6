"""Fits of `PairwiseRanker` and `PointwiseRanker` on rows in parts, wherever the parts are.

Objective and certificate are those of rows in memory (`forerank.objectives.parts`); the solver
counts passes over the rows (`forerank.solvers.partwise`). Streams and Dask collections differ in
how they scan rows and in how they add up over parts.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Vector
from forerank.graphs import lowest_first
from forerank.objectives.part_columns import ColumnMoments
from forerank.objectives.part_thresholds import ClassScores
from forerank.objectives.parts import Evaluation, OverParts, PairParts, Point, PointParts, Rows
from forerank.pairsums.cell_tables import BITS
from forerank.solvers import Progress, SolverResult
from forerank.solvers.checkpoints import Checkpoint, check_checkpoint_file
from forerank.solvers.partwise import PartwiseProblem, minimise_parts
from forerank.solvers.partwise_hinge import minimise_hinge_parts
from forerank.solvers.path import Solve

__all__ = [
    "PartScan",
    "check_checkpoint",
    "prepare_part_pairs",
    "prepare_part_points",
    "refuse_other_columns",
    "table_bits",
]

# Error of a gradient by tables, relative to the tolerance: a third of what the solver allows.
_TABLE_ERROR = 0.1
# Most cells per unit of score, as a power of 2.
_MOST_BITS = 16


@dataclass(frozen=True)
class PartScan:
    """What a scan of rows in parts found.

    Attributes
    ----------
    classes : array
        The labels, sorted; class numbers of the parts refer to them.
    moments : ColumnMoments
        Of the columns over all rows, by class.
    sample : Rows
        Rows in memory, with weights such that every class has its share of all rows.
    n_groups, n_unpaired_groups, n_unpaired_rows : int
        Number of groups, of those without a pair, and of the rows of the latter.
    """

    classes: NDArray
    moments: ColumnMoments
    sample: Rows
    n_groups: int = 0
    n_unpaired_groups: int = 0
    n_unpaired_rows: int = 0


def refuse_other_columns(ranker: Any, n_columns: int) -> None:
    """ValueError where a warm start has other columns than the fit before."""
    n_before = vars(ranker).get("n_features_in_", n_columns)
    if ranker.warm_start and hasattr(ranker, "coef_") and n_columns != n_before:
        raise ValueError(
            f"warm_start=True continues from {n_before} columns, but the rows have {n_columns}. "
            "Fit a new estimator, or set warm_start=False."
        )


def refuse_large_values(moments: ColumnMoments) -> None:
    """ValueError where sums of squares of a column are not finite."""
    squares = moments.moved(np.zeros(moments.about.size)).second.sum(axis=0)
    large = np.flatnonzero(~np.isfinite(squares))
    if large.size:
        raise ValueError(
            f"Column {large[0]} of X has values whose squares are larger than any double. Divide "
            "it by its largest absolute value."
        )


def check_checkpoint(ranker: Any, *, in_parts: bool) -> None:
    """ValueError where the checkpoint of a ranker cannot be used, before any row is read."""
    path = ranker.checkpoint
    if path is None:
        return
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise ValueError(f"checkpoint must be the path of a file or None; got {path!r}.")
    if not in_parts:
        raise ValueError(
            f"checkpoint={str(path)!r} is for fits on rows of forerank.open_rows and on Dask "
            "collections, but X is in memory. Set checkpoint=None, or open the rows of a file with "
            "open_rows."
        )
    if ranker._on_path:
        raise ValueError(
            f"checkpoint={str(path)!r} is for one fit, not for a path of alphas. Set "
            "checkpoint=None, or fit one alpha after the other with warm_start=True."
        )
    check_checkpoint_file(path)


def _checkpoint(ranker: Any, scan: Any, **further: Any) -> Checkpoint | None:
    """The checkpoint of a fit; `further` is what its weights depend on beside loss and alpha."""
    if ranker.checkpoint is None:
        return None
    problem = {
        "ranker": type(ranker).__name__,
        "loss": ranker.loss,
        "alpha": float(ranker.alpha),
        "number of rows": int(scan.moments.n_rows),
        "number of columns": int(scan.moments.about.size),
        "classes": [str(label) for label in scan.classes.tolist()],
        **further,
    }
    return Checkpoint(ranker.checkpoint, problem, scan.moments)


def table_bits(loss: str, tol: float) -> int:
    """Cells per unit of score, as a power of 2, for a fit to `tol`: the bound on the error of a
    gradient of the squared hinge is about 1e-5 of its reference at 8 bits, and 4 times smaller at
    each further one. The plain hinge gains less, and its planes have cells of the default width.
    """
    most = BITS if loss == "hinge" else _MOST_BITS
    return int(np.clip(np.ceil(8.0 + 0.5 * np.log2(1e-5 / (_TABLE_ERROR * tol))), 8, most))


def prepare_part_pairs(
    ranker: Any,
    scan: Any,
    over_parts: OverParts,
    *,
    grouped: bool,
    bits: int,
    one_pass: bool = False,
) -> Solve:
    """A function that fits a ranker on all pairs of rows in parts at its present alpha.

    `scan` has the attributes of `PartScan`; ``over_parts(function)`` is the sum of
    ``function(rows)`` over all parts. With groups, each is complete within its part. `bits` is
    that of `PairParts`; `one_pass` is that of `PartwiseProblem`.
    """
    from forerank.estimators.base import refuse_one_class, warn_unpaired

    refuse_one_class(scan.classes)
    refuse_large_values(scan.moments)
    edges = ranker._edges()
    weight, n_classes = scan.moments.weight, scan.classes.size
    edges = None if edges is None else tuple(edges)
    parts = PairParts(ranker.loss, n_classes, edges, grouped, bits)
    has_pairs = any(weight[u] > 0.0 and weight[v] > 0.0 for u, v in parts.all_edges())
    if not has_pairs or (grouped and scan.n_unpaired_groups == scan.n_groups):
        ranker._refuse_no_pairs(np.arange(n_classes), weight, grouped=grouped)
    if grouped:
        warn_unpaired(scan.n_unpaired_groups, scan.n_groups, scan.n_unpaired_rows)
    problem = PartwiseProblem(parts, over_parts, scan.moments, scan.sample, one_pass=one_pass)
    checkpoint = _checkpoint(ranker, scan, edges=parts.all_edges(), groups=int(scan.n_groups))

    def solve(previous: Sequence[Vector] = ()) -> SolverResult:
        latest: list[Any] = []
        solver = _solver(ranker, problem, ranker._start(previous), latest, checkpoint)
        result = ranker._run_solver(solver)
        _set_thresholds(ranker, over_parts, scan, *latest)
        penalty = 0.5 * ranker.alpha * float(result.w @ result.w)
        ranker._set_wmw_bound(max(result.objective - penalty, 0.0), ranker.loss)
        if checkpoint is not None:
            checkpoint.remove()
        return result

    return solve


def prepare_part_points(ranker: Any, scan: Any, over_parts: OverParts) -> Solve:
    """A function that fits a ranker row by row on rows in parts at its present alpha."""
    from forerank.estimators.base import (
        refuse_more_than_two,
        refuse_one_class,
        refuse_weightless_class,
    )
    from forerank.estimators.pointwise import class_weights

    refuse_one_class(scan.classes)
    refuse_more_than_two(scan.classes)
    refuse_large_values(scan.moments)
    moments, per_class = scan.moments, None
    refuse_weightless_class(moments.weight, np.array([False, True]), scan.classes)
    if ranker.class_weight is not None:
        # Two rows, one of each class, have the totals of all rows.
        found = class_weights(ranker.class_weight, scan.classes, np.array([0, 1]), moments.weight)
        per_class = float(found[0]), float(found[1])
        moments = moments.scaled(found)
    parts, intercept = PointParts(ranker.loss, per_class), bool(ranker.fit_intercept)
    problem = PartwiseProblem(parts, over_parts, moments, scan.sample, intercept)
    checkpoint = _checkpoint(ranker, scan, class_weight=per_class, fit_intercept=intercept)

    def solve(previous: Sequence[Vector] = ()) -> SolverResult:
        start = ranker._start(previous, intercept=intercept)
        solver = _solver(ranker, problem, start, [], checkpoint)
        result = ranker._run_solver(solver, intercept=intercept)
        if checkpoint is not None:
            checkpoint.remove()
        return result

    return solve


def _solver(
    ranker: Any,
    problem: PartwiseProblem,
    start: Vector | None,
    latest: list[Any],
    checkpoint: Checkpoint | None,
) -> Callable[[Progress], SolverResult]:
    """The solver; `latest` gets the point of the result and the evaluation there."""
    minimise = minimise_hinge_parts if ranker.loss == "hinge" else minimise_parts

    def keep(w: Vector, metric: Any, point: Point, here: Any) -> None:
        latest[:] = point, here

    def run(progress: Progress) -> SolverResult:
        return minimise(
            problem,
            ranker.alpha,
            start=start,
            tol=ranker.tol,
            max_iter=ranker.max_iter,
            progress=progress,
            after_evaluation=keep,
            checkpoint=checkpoint,
        )

    return run


def _set_thresholds(
    ranker: Any, over_parts: OverParts, scan: Any, point: Point, here: Evaluation
) -> None:
    """Set intercept and thresholds as for rows in memory; from the sample where scores are too far
    apart for tables.
    """
    n_classes, shift = scan.classes.size, float(point.mean @ ranker.coef_[0])
    scores = ClassScores(point, n_classes, over_parts, here.tables)
    if scores.overflows:
        sample = scan.sample
        s = point.design(sample).scores(point.w) + shift
        ranker._set_thresholds(s, sample.codes, sample.weight)
        return
    ascending = np.arange(n_classes)
    if ranker.graph not in (None, "order", "chain", "bipartite"):
        ascending = lowest_first(ranker._edges() or [], scores.means())
    thresholds = scores.thresholds(ascending) + shift
    ranker._ascending, ranker.intercept_, ranker.thresholds_ = ascending, np.zeros(1), thresholds
    if n_classes == 2:
        ranker.intercept_, ranker.thresholds_ = -thresholds, np.zeros(1)
