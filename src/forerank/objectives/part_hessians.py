"""Hessians over rows in parts, in the passes of an evaluation; for preconditioners.

For single rows, and pairs within groups, X^T F'' X adds up over parts. For pairs over all rows it
is approximated as in `forerank.pairsums.binned`: scores are rounded to bins; the first pass has the
weight and the mean score of each class and bin, the second X^T diag(c) X with the curvature c of a
row's bin, and the sums of the rows of each bin.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from forerank._typing import Index, Vector
from forerank.losses import get_loss
from forerank.objectives.parts import (
    Both,
    Evaluation,
    OverParts,
    PairParts,
    Parts,
    Point,
    Rows,
    evaluate,
    part_sums,
    part_tables,
    part_tables_and_nodes,
)

__all__ = ["evaluate_with_hessian"]

# Bins with equally many scores of the sample, and as many of equal width; the least width of a bin,
# in units of scores, so that differences of slopes are not rounding error.
_N_BINS = 64
_LEAST_WIDTH = 1e-4


def _part_both(rows: Rows, first: Any, second: Any) -> Both:
    return Both(first(rows), second(rows))


@dataclass(frozen=True)
class _Bins:
    """Scores between bins, and for each class and bin the curvature of a row of weight one."""

    limits: Vector
    curvature: Vector | None = None

    def of(self, s: Vector) -> Index:
        return np.searchsorted(self.limits, s)

    @property
    def n_bins(self) -> int:
        return self.limits.size + 1


@dataclass(frozen=True)
class _HessianSums:
    """X^T diag(c) X, and the weighted sums of the rows of each class and bin."""

    gram: Vector
    sums: Vector

    def __add__(self, other: "_HessianSums") -> "_HessianSums":
        return _HessianSums(self.gram + other.gram, self.sums + other.sums)


def _weights(rows: Rows) -> Vector:
    return np.ones(rows.n_rows) if rows.weight is None else rows.weight


def part_bins(rows: Rows, point: Point, n_classes: int, bins: _Bins) -> Vector:
    """The weight, and the weighted sum of scores, of each class and bin."""
    s, w = point.design(rows).scores(point.w), _weights(rows)
    cell, size = rows.codes * bins.n_bins + bins.of(s), n_classes * bins.n_bins
    totals = np.stack([np.bincount(cell, w, size), np.bincount(cell, w * s, size)]).astype(float)
    return totals.reshape(2, n_classes, bins.n_bins)


def part_hessian(rows: Rows, point: Point, parts: Parts, bins: _Bins | None) -> _HessianSums:
    """The sums of a part for the Hessian. Cost: N d^2 / 2."""
    rows, d = rows.weighted(), point.w.size
    design = point.design(rows)
    if bins is None or bins.curvature is None:
        objective: Any = parts.objective(rows)
        if objective is None:
            return _HessianSums(np.zeros((d, d)), np.zeros((0, d)))
        hessian = objective.hessian(design.scores(point.w), design)
        return _HessianSums(parts.total(objective) * hessian, np.zeros((0, d)))
    w, bin_of = _weights(rows), bins.of(design.scores(point.w))
    gram = design.weighted_gram(w * bins.curvature[rows.codes, bin_of])
    n_bins = parts.n_classes * bins.n_bins
    return _HessianSums(gram, design.bin_sums(w, rows.codes * bins.n_bins + bin_of, n_bins))


class _PairBins:
    """Curvatures between the bins of every two classes that form pairs."""

    def __init__(self, parts: PairParts, limits: Vector, totals: Vector) -> None:
        slope = get_loss(parts.loss).slope
        weight, sums = totals
        centres = sums / np.where(weight > 0.0, weight, 1.0)
        # One limit where all scores of the sample are equal.
        inner = np.diff(limits) if limits.size > 1 else np.zeros(1)
        width = np.maximum(np.concatenate([inner[:1], inner, inner[-1:]]), _LEAST_WIDTH)
        width = width[: limits.size + 1]
        spread = np.add.outer(width, width)
        self.kernels, curvature, self.total = {}, np.zeros(weight.shape), 0.0
        for u, v in parts.all_edges():
            difference = np.subtract.outer(centres[u], centres[v])
            ends = slope(difference + 0.5 * spread) - slope(difference - 0.5 * spread)
            self.kernels[u, v] = kernel = ends / spread
            curvature[u] += kernel @ weight[v]
            curvature[v] += kernel.T @ weight[u]
            self.total += float(weight[u].sum() * weight[v].sum())
        self.bins = _Bins(limits, curvature)

    def hessian(self, found: _HessianSums) -> Vector:
        """X^T F'' X."""
        sums = found.sums.reshape(-1, self.bins.n_bins, found.sums.shape[1])
        hessian = found.gram
        for (u, v), kernel in self.kernels.items():
            cross = sums[u].T @ (kernel @ sums[v])
            hessian = hessian - cross - cross.T
        return hessian / self.total


def bin_limits(s: Vector) -> Vector:
    """The scores between bins, from those of a sample."""
    some, share = np.sort(s), np.linspace(0.0, 1.0, _N_BINS + 1)[1:-1]
    equal = some[0] + share * (some[-1] - some[0])
    return np.unique(np.concatenate([some[(share * some.size).astype(int)], equal]))


def evaluate_with_hessian(
    parts: Parts,
    point: Point,
    over_parts: OverParts,
    sample: Rows,
    *,
    weight: Vector | None = None,
    **accuracy: Any,
) -> tuple[Evaluation, Vector | None]:
    """`evaluate`, and the Hessian of the mean loss in the same passes; None where scores are too
    far apart. `sample` are some of the rows, and `weight` those of the classes over all rows. An
    evaluation in one pass uses the curvatures over the sample.
    """
    limits = bin_limits(point.design(sample).scores(point.w))
    state: dict[str, Any] = {"pairs": None, "found": None}

    def with_hessian(function: Any) -> Any:
        if function.func is part_tables:
            bins = partial(part_bins, point=point, n_classes=parts.n_classes, bins=_Bins(limits))
            both = over_parts(partial(_part_both, first=function, second=bins))
            state["pairs"] = _PairBins(parts, limits, both.second)  # type: ignore[arg-type]
            return both.first
        one_pass = function.func is part_tables_and_nodes
        if one_pass:
            totals = part_bins(sample, point, parts.n_classes, _Bins(limits))
            totals *= (weight / totals[0].sum(axis=1))[:, None]  # type: ignore[operator]
            state["pairs"] = _PairBins(parts, limits, totals)  # type: ignore[arg-type]
        if not one_pass and (function.func is not part_sums or state["found"] is not None):
            return over_parts(function)
        pairs = state["pairs"]
        known = None if pairs is None else pairs.bins
        more = partial(part_hessian, point=point, parts=parts, bins=known)
        both = over_parts(partial(_part_both, first=function, second=more))
        state["found"] = both.second
        if pairs is None:
            state["total"] = both.first.total
        return both.first

    if weight is None or not np.bincount(sample.codes, sample.weight, parts.n_classes).all():
        accuracy["enough"] = None
    here = evaluate(parts, point, with_hessian, **accuracy)
    found, pairs = state["found"], state["pairs"]
    if found is None or not np.isfinite(here.value):
        return here, None
    return here, found.gram / state["total"] if pairs is None else pairs.hessian(found)
