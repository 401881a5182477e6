"""Cutting planes where a solver of the top objective ends short of its tolerance.

With a tiny penalty, or columns of very different sizes, the matrices of Newton's method are beyond
double precision. Cutting planes need none, and few of them are left to find near a minimum.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from forerank._typing import Vector
from forerank.design import Design
from forerank.objectives.top import TopWithinGroups
from forerank.solvers.bundle import bundle
from forerank.solvers.result import Progress, SolverResult, relative_gap

__all__ = ["with_cutting_planes"]


def with_cutting_planes(
    solve: Callable[[], SolverResult],
    top: TopWithinGroups,
    design: Design,
    alpha: float,
    *,
    start: Vector | None,
    tol: float,
    max_iter: int,
    progress: Progress,
) -> SolverResult:
    """The result of `solve`; where that fails, or ends before `max_iter` iterations without its
    tolerance, the result of as many cutting planes as iterations are left.
    """
    limits: dict[str, Any] = {"tol": tol, "progress": progress}
    try:
        with np.errstate(all="ignore"):
            result = solve()
    except (np.linalg.LinAlgError, ArithmeticError):
        return bundle(top, design, alpha, start=start, max_iter=max_iter, **limits)
    left = max_iter - result.n_iter
    if result.converged or left <= 0:
        return result
    planes = bundle(top, design, alpha, start=result.w, max_iter=left, **limits)
    bound = max(each.objective * (1.0 - each.optimality) for each in (result, planes))
    best = planes if planes.objective <= result.objective else result
    gap = relative_gap(best.objective, bound)
    n_iter = result.n_iter + planes.n_iter
    return replace(best, optimality=gap, n_iter=n_iter, converged=gap <= tol, dual=result.dual)
