"""The hinge on single rows: dual coordinate descent, then cutting planes if that is slow."""

from dataclasses import replace

import numpy as np

from forerank._typing import Vector
from forerank.design import Design
from forerank.design.row_pairs import Differences
from forerank.objectives import Pointwise, Profiled
from forerank.solvers.base import EVERY_COLUMN_PENALISED, POINTWISE_HINGE, SINGLE_ROWS, solver
from forerank.solvers.bundle import bundle
from forerank.solvers.dual import dual_descent
from forerank.solvers.result import Progress, SolverResult

__all__ = ["pointwise_dual"]

# Passes of descent that count as one iteration: about the cost of one cutting plane.
_PASSES_PER_ITERATION = 5


@solver("pointwise_dual", POINTWISE_HINGE, SINGLE_ROWS, EVERY_COLUMN_PENALISED)
def pointwise_dual(
    objective: Pointwise | Profiled,
    design: Design,
    alpha: float,
    *,
    start_dual: Vector | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    progress: Progress | None = None,
) -> SolverResult:
    """Minimise the mean hinge over rows plus alpha/2 ||w||^2, with or without an intercept.

    Descent reads one row at a time, in random order. `start_dual` is the `dual` of an earlier
    result on as many rows: a variable for each row, then the intercept. Cost of a pass: two
    products with each row whose variable is between its bounds.
    """
    progress = progress or Progress()
    rows, n = objective.row_objective, design.n_rows
    number = np.arange(n)
    points = Differences(design.row_matrix(), n, in_place=True)
    points.extend(np.where(rows.positive, number, -1), np.where(rows.positive, -1, number))
    if start_dual is not None and start_dual.size != n + 1:
        start_dual = None
    found = dual_descent(
        points,
        rows.share / alpha,
        intercept=objective.best_shift if isinstance(objective, Profiled) else None,
        start=None if start_dual is None else start_dual[:-1],
        start_intercept=0.0 if start_dual is None else float(start_dual[-1]),
        tol=tol,
        max_iter=_PASSES_PER_ITERATION * max_iter,
        scale=alpha,
        progress=progress,
    )
    dual = np.append(found.dual, found.intercept)
    if not found.converged:
        w = found.w
        result = bundle(
            objective, design, alpha, start=w, tol=tol, max_iter=max_iter, progress=progress
        )
        return replace(result, dual=dual)
    n_iter = -(-found.n_iter // _PASSES_PER_ITERATION)
    scores = design.scores(found.w)
    return SolverResult(
        found.w, scores, found.objective, found.optimality, n_iter, True, progress.history, dual
    )
