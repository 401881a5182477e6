"""Fits of the linear rankers on rows that are read block by block (`forerank.open_rows`)."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from forerank._text import counted
from forerank._typing import Vector
from forerank._validation import stacklevel_outside
from forerank.graphs import lowest_first
from forerank.objectives.part_thresholds import ClassScores
from forerank.objectives.parts import Evaluation, PairParts, Point, PointParts
from forerank.solvers import Progress, SolverResult
from forerank.solvers.partwise import PartwiseProblem, minimise_parts
from forerank.solvers.path import Solve

__all__ = ["is_stream", "prepare_stream_pairs", "prepare_stream_points", "refuse_stream"]


def is_stream(X: Any) -> bool:
    """Whether X are rows of `forerank.open_rows`."""
    return getattr(X, "is_row_stream", False)


def refuse_stream(ranker: Any) -> None:
    """ValueError that a ranker needs its rows in memory."""
    raise ValueError(
        f"{type(ranker).__name__} needs its rows in memory; fit PairwiseRanker or PointwiseRanker "
        "on streamed rows, or fit this one on a sample: X, y, weight, qid = rows.sample()."
    )


def _read(ranker: Any, rows: Any, *given: Any) -> Any:
    """The scan of the rows; sets the classes and the columns."""
    if any(each is not None for each in given):
        raise ValueError(
            "Streamed rows have their own labels, weights and groups; name their columns in "
            "open_rows, and pass the rows alone to fit."
        )
    if ranker.loss == "hinge":
        raise ValueError(
            "loss='hinge' cannot be fitted on streamed rows: its solver reads the rows too often. "
            "Use 'squared_hinge' or 'logistic', or fit a sample: X, y, weight, qid = rows.sample()."
        )
    scan = rows.scan
    d = scan.moments.about.size
    n_before = vars(ranker).get("n_features_in_", d)
    if ranker.warm_start and hasattr(ranker, "coef_") and d != n_before:
        raise ValueError(
            f"warm_start=True continues from {n_before} columns, but the rows have {d}. Fit a new "
            "estimator, or set warm_start=False."
        )
    ranker.n_features_in_ = d
    ranker.__dict__.pop("feature_names_in_", None)
    if len(rows.columns) == d and rows.has_names:
        ranker.feature_names_in_ = np.array(rows.columns, dtype=object)
    ranker.classes_ = scan.classes
    return scan


def _solver(
    ranker: Any, problem: PartwiseProblem, start: Vector | None, latest: list[Any]
) -> Callable[[Progress], SolverResult]:
    """The solver; `latest` gets the last point and the evaluation there."""

    def keep(w: Vector, metric: Any, point: Point, here: Any) -> None:
        latest[:] = point, here

    def run(progress: Progress) -> SolverResult:
        return minimise_parts(
            problem,
            ranker.alpha,
            start=start,
            tol=ranker.tol,
            max_iter=ranker.max_iter,
            progress=progress,
            after_evaluation=keep,
        )

    return run


def prepare_stream_pairs(ranker: Any, rows: Any, *given: Any) -> Solve:
    """A function that fits a ranker on all pairs of streamed rows at its present alpha."""
    from forerank.estimators.base import refuse_one_class, refuse_weightless_class

    scan = _read(ranker, rows, *given)
    refuse_one_class(scan.classes)
    edges = ranker._edges()
    weight, n_classes = scan.moments.weight, scan.classes.size
    if n_classes == 2:
        refuse_weightless_class(weight, np.array([False, True]), scan.classes)
    parts = PairParts(
        ranker.loss, n_classes, None if edges is None else tuple(edges), grouped=rows.grouped
    )
    if not any(weight[u] * weight[v] > 0.0 for u, v in parts.all_edges()) or (
        rows.grouped and scan.n_unpaired_groups == scan.n_groups
    ):
        raise ValueError(
            "There are no pairs: no two rows of the same group belong to classes that should be "
            "ordered. Check target, group and weight."
        )
    if rows.grouped:
        _warn_unpaired(scan)
    problem = PartwiseProblem(parts, rows.over_parts, scan.moments, scan.sample)

    def solve(previous: Sequence[Vector] = ()) -> SolverResult:
        latest: list[Any] = []
        run = _solver(ranker, problem, ranker._start(previous), latest)
        result = ranker._run_solver(run)
        _set_thresholds(ranker, rows, scan, *latest)
        penalty = 0.5 * ranker.alpha * float(result.w @ result.w)
        ranker._set_wmw_bound(max(result.objective - penalty, 0.0), ranker.loss)
        return result

    return solve


def _warn_unpaired(scan: Any) -> None:
    """UserWarning with the number of groups of one class."""
    if scan.n_unpaired_groups:
        warnings.warn(
            f"{scan.n_unpaired_groups:,} of {counted(scan.n_groups, 'group')} have no pair of "
            f"different classes; their {counted(scan.n_unpaired_rows, 'row')} are excluded from "
            "the fit.",
            UserWarning,
            stacklevel=stacklevel_outside(),
        )


def _set_thresholds(ranker: Any, rows: Any, scan: Any, point: Point, here: Evaluation) -> None:
    """Set intercept and thresholds as for rows in memory; from the sample where scores are too far
    apart for tables.
    """
    n_classes, shift = scan.classes.size, float(point.mean @ ranker.coef_[0])
    scores = ClassScores(point, n_classes, rows.over_parts, here.tables)
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


def prepare_stream_points(ranker: Any, rows: Any, *given: Any) -> Solve:
    """A function that fits a ranker row by row on streamed rows at its present alpha."""
    from forerank.estimators.base import (
        refuse_more_than_two,
        refuse_one_class,
        refuse_weightless_class,
    )
    from forerank.estimators.pointwise import class_weights

    scan = _read(ranker, rows, *given)
    refuse_one_class(scan.classes)
    refuse_more_than_two(scan.classes)
    moments, per_class = scan.moments, None
    refuse_weightless_class(moments.weight, np.array([False, True]), scan.classes)
    if ranker.class_weight is not None:
        # Two rows, one of each class, have the totals of all rows.
        found = class_weights(ranker.class_weight, scan.classes, np.array([0, 1]), moments.weight)
        per_class = float(found[0]), float(found[1])
        moments = moments.scaled(found)
    parts, intercept = PointParts(ranker.loss, per_class), bool(ranker.fit_intercept)
    problem = PartwiseProblem(parts, rows.over_parts, moments, scan.sample, intercept)

    def solve(previous: Sequence[Vector] = ()) -> SolverResult:
        start = ranker._start(previous, intercept=intercept)
        return ranker._run_solver(_solver(ranker, problem, start, []), intercept=intercept)

    return solve
