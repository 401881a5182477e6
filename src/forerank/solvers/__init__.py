"""Solvers: they combine an objective with a design."""

from forerank.solvers.bundle import bundle
from forerank.solvers.ncg import ncg
from forerank.solvers.newton import newton
from forerank.solvers.result import Iteration, Progress, SolverResult

__all__ = ["Iteration", "Progress", "SolverResult", "bundle", "ncg", "newton"]
