"""TopPush with an L1 penalty, by a working set of columns (L1SVIP, Rakotomamonjy 2012).

    min  F(X w) + alpha ||w||_1,    F the top objective

is solved over a few columns (`forerank.solvers.top_newton`). Columns whose gradient exceeds alpha
join them, the largest first, until there are none; the gap is over all columns.
"""

import numpy as np

from forerank._typing import Matrix, Vector
from forerank.design import Design, make_design
from forerank.objectives.top import Top
from forerank.solvers.result import Progress, SolverResult
from forerank.solvers.top_newton import working_set_newton

__all__ = ["sparse_top_push"]

# Columns that may join at a time: this many, or as many as the working set has.
_FEWEST_JOINING = 50


def sparse_top_push(
    top: Top,
    X: Matrix,
    alpha: float,
    *,
    start: Vector | None = None,
    tol: float = 1e-4,
    max_iter: int = 200,
    progress: Progress | None = None,
) -> SolverResult:
    """Minimise the top objective plus alpha ||w||_1, to a relative duality gap of `tol`.

    Cost of an iteration: as in `working_set_newton`, with the columns of the working set for d.
    """
    progress = progress or Progress()
    design = make_design(X)
    d = design.n_columns
    w = np.zeros(d) if start is None else start
    slope = np.abs(design.adjoint(top.at(design.scores(w)).gradient))
    columns = np.flatnonzero(w)
    n_iter, gap = 0, 1.0
    while True:
        outside = np.setdiff1d(np.flatnonzero(slope > alpha), columns)
        room = max(_FEWEST_JOINING, columns.size)
        joining = outside[np.argsort(-slope[outside], kind="stable")[:room]]
        columns = np.sort(np.concatenate([columns, joining]))
        if columns.size == 0:
            columns = np.array([int(np.argmax(slope))])
        # A rough solution is enough while columns still join.
        still_joining = joining.size > 0 and columns.size < d
        inner_tol = max(0.5 * tol, 0.1 * gap) if still_joining else 0.5 * tol
        part = np.ascontiguousarray(X[:, columns]) if isinstance(X, np.ndarray) else X[:, columns]
        inner = Progress(verbose=progress.verbose)
        try:
            result = working_set_newton(
                top, make_design(part), 0.0, l1=alpha, start=w[columns], tol=inner_tol,
                max_iter=max(max_iter - n_iter, 1), progress=inner,
            )  # fmt: skip
        finally:
            if inner.w is not None:
                w = np.zeros(d)
                w[columns] = inner.w
                progress.w = w  # for an interrupted fit
        n_iter += result.n_iter
        assert result.dual is not None
        slope = np.abs(design.adjoint(result.dual))
        gap = _gap(top, result, alpha, float(slope.max()))
        progress.history.extend(inner.history)
        finished = not result.converged or result.optimality <= 0.5 * tol
        complete = not np.setdiff1d(np.flatnonzero(slope > alpha), columns).size
        if gap <= tol or n_iter >= max_iter or (finished and complete):
            break
    ceiling = result.objective * (1.0 + 0.5 * max(tol - gap, 0.0))
    w, scores, value = _pruned(top, design, alpha, w, result, ceiling)
    gap = max(0.0, 1.0 - (1.0 - gap) * result.objective / value) if value > 0.0 else 0.0
    return SolverResult(w, scores, value, gap, n_iter, gap <= tol, progress.history, result.dual)


def _gap(top: Top, result: SolverResult, alpha: float, steepest: float) -> float:
    """Relative gap over all columns: the dual point is scaled until no column exceeds alpha."""
    assert result.dual is not None
    if not result.objective > 0.0:
        return 0.0
    shrink = min(1.0, alpha / steepest) if steepest > 0.0 else 1.0
    bound = max(0.0, -top.conjugate(-shrink * result.dual[top.positives]))
    return max(0.0, (result.objective - bound) / result.objective)


def _pruned(
    top: Top, design: Design, alpha: float, w: Vector, result: SolverResult, ceiling: float
) -> tuple[Vector, Vector, float]:
    """Weights, scores and objective after the smallest weights, which an interior-point method does
    not make zero exactly, are set to zero: as many as keep the objective below `ceiling`.
    """
    value, scores, kept = result.objective, result.scores, w
    share = np.zeros(design.n_rows)
    share[top.positives] = top.share
    order = np.argsort(np.abs(w) * np.sqrt(design.moments(share)[1]), kind="stable")
    order = order[w[order] != 0.0]
    low, high = 0, order.size
    while low < high:
        count = (low + high + 1) // 2
        trial = w.copy()
        trial[order[:count]] = 0.0
        trial_scores = design.scores(trial)
        trial_value = top.value_at(trial_scores) + alpha * float(np.abs(trial).sum())
        if trial_value <= ceiling:
            low, value, scores, kept = count, trial_value, trial_scores, trial
        else:
            high = count - 1
    return kept, scores, value
