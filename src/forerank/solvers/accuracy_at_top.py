"""Accuracy at the top (AATP, Boyd et al. 2012): a search for the row that sets the threshold.

For a given threshold row, the anchor, the problem is convex (`AnchoredHinge`). The anchor should be
the row that leaves the fraction tau of all rows above it, which depends on the weights; its choice
is not convex and has no certificate.
"""

from dataclasses import dataclass

import numpy as np

from forerank._typing import Mask, Vector
from forerank.design import Design
from forerank.objectives.structured import AnchoredHinge
from forerank.solvers.bundle import bundle
from forerank.solvers.result import Progress, SolverResult

__all__ = ["AnchoredResult", "accuracy_at_top"]

# Most anchors that the search for a fixed point tries; it repeats one after a few.
_MOST_ANCHORS = 20


@dataclass
class AnchoredResult(SolverResult):
    """A result with the row that sets its threshold."""

    anchor: int = -1


def accuracy_at_top(
    positive: Mask,
    design: Design,
    alpha: float,
    fraction: float,
    *,
    all_anchors: bool = False,
    start: Vector | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    progress: Progress | None = None,
) -> AnchoredResult:
    """The result of lowest hinge loss around its own quantile.

    With `all_anchors` every row is tried (N fits). Otherwise the anchor is the row at the fraction
    under the current weights, until one is repeated. `tol` and `max_iter` are those of each fit.
    """
    progress = progress or Progress()
    n = positive.size
    means = np.where(positive, 1.0 / positive.sum(), -1.0 / (~positive).sum())
    scores = design.scores(design.adjoint(means) if start is None else start)
    best, best_loss, best_anchor = None, np.inf, -1
    tried: set[int] = set()
    for k in range(n if all_anchors else _MOST_ANCHORS):
        anchor = k if all_anchors else _row_at_fraction(scores, fraction)
        if anchor in tried:
            break
        tried.add(anchor)
        hinge, inner = AnchoredHinge(positive, anchor), Progress(verbose=progress.verbose)
        result = bundle(
            hinge, design, alpha, start=start, tol=tol, max_iter=max_iter, progress=inner
        )
        scores = result.scores
        at_own_quantile = AnchoredHinge(positive, _row_at_fraction(scores, fraction)).at(scores)
        loss = at_own_quantile.value + 0.5 * alpha * float(result.w @ result.w)
        if loss < best_loss:
            best, best_loss, best_anchor = result, loss, anchor
            progress.w, progress.history[:] = result.w, inner.history
    assert best is not None
    return AnchoredResult(**vars(best), anchor=best_anchor)


def _row_at_fraction(scores: Vector, fraction: float) -> int:
    rank = min(max(int(np.ceil(fraction * scores.size)), 1), scores.size) - 1
    return int(np.argsort(-scores, kind="stable")[rank])
