"""Solvers: each minimises an objective of the scores of a design, plus a penalty."""

from forerank.solvers.base import choose_solver, minimise
from forerank.solvers.bundle import bundle
from forerank.solvers.ncg import ncg
from forerank.solvers.newton import newton
from forerank.solvers.pointwise_dual import pointwise_dual
from forerank.solvers.result import Iteration, Progress, SolverResult
from forerank.solvers.top_dual import accelerated_dual
from forerank.solvers.top_multipliers import method_of_multipliers
from forerank.solvers.top_newton import working_set_newton

__all__ = [
    "Iteration",
    "Progress",
    "SolverResult",
    "accelerated_dual",
    "bundle",
    "choose_solver",
    "method_of_multipliers",
    "minimise",
    "ncg",
    "newton",
    "pointwise_dual",
    "working_set_newton",
]
