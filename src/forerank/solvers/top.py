"""The choice among the solvers of the top objective."""

from typing import Any

from forerank._typing import Vector
from forerank.design import Design
from forerank.objectives.top import Top
from forerank.solvers.bundle import bundle
from forerank.solvers.result import SolverResult
from forerank.solvers.top_dual import DUAL_LOSSES, accelerated_dual
from forerank.solvers.top_newton import working_set_newton

__all__ = ["TOP_SOLVERS", "choose_top_solver", "newton_is_affordable", "solve_top"]

# Solvers, with the most iterations that are allowed by default.
TOP_SOLVERS = {"newton": 200, "nesterov": 100_000, "bundle": 1000}
# Most rows and columns of the matrix that Newton's method factors: about 300 MB.
_LARGEST_MATRIX = 6000


def newton_is_affordable(design: Design, n_positives: int) -> bool:
    """Whether the matrix of Newton's method, over the columns or the positives, is small enough."""
    return min(design.n_columns, n_positives) <= _LARGEST_MATRIX


def choose_top_solver(top: Top, design: Design, solver: str = "newton") -> str:
    """The solver itself, or one without a matrix where "newton" would need too large a one."""
    if solver == "newton" and not newton_is_affordable(design, top.positives.size):
        return "nesterov" if top.loss.name in DUAL_LOSSES else "bundle"
    return solver


def solve_top(
    solver: str,
    top: Top,
    design: Design,
    alpha: float,
    *,
    start: Vector | None = None,
    start_dual: Vector | None = None,
    **limits: Any,
) -> SolverResult:
    """Minimise the top objective plus alpha/2 ||w||^2 by one of `TOP_SOLVERS`.

    `start` is used by "newton" and "bundle", `start_dual` by "newton"; `limits` are tol, max_iter
    and progress.
    """
    if solver == "nesterov":
        return accelerated_dual(top, design, alpha, **limits)
    if solver == "bundle":
        return bundle(top, design, alpha, start=start, **limits)
    return working_set_newton(top, design, alpha, start=start, start_dual=start_dual, **limits)
