"""Preconditioners of Newton's method: a Hessian over all rows or a sample of them, or one number.

Where the Hessian costs little, it is computed; the measured costs are in the unit of
`Design.gram_cost`.
"""

from collections.abc import Callable

import numpy as np

from forerank._typing import Vector
from forerank.design import Design
from forerank.objectives.allpairs import AllPairs
from forerank.objectives.base import Curved
from forerank.solvers.metric import Metric
from forerank.solvers.problem import SMALLEST_SAMPLE, Problem
from forerank.solvers.units import small_hessian_cost

__all__ = [
    "Preconditioner",
    "hessian_is_small",
    "hessian_metric",
    "make_preconditioner",
    "mean_curvature",
]

Preconditioner = Callable[[Vector], Vector]

# Entries up to which a Hessian is always used (200 columns), and beyond which never (32 MB).
# Between them it is used if, over the smallest sample of the rows, it costs as much as this many
# products with X; the time of a Cholesky factor is this number times d^3, in the unit of
# `Design.gram_cost`.
_SMALL_HESSIAN = 40_000
_LARGEST_HESSIAN = 4_000_000
_PRODUCTS_PER_HESSIAN = 12
_FACTOR_COST = 0.03
# Rows of the sample for a Hessian that costs too much over all rows: so many numbers in their copy
# per row of X, but at least and at most so many rows per column.
_COPY_PER_ROW = 12
_FEWEST_PER_COLUMN = 4
_MOST_PER_COLUMN = 64


def hessian_is_small(design: Design) -> bool:
    """Whether a Hessian over few rows, with its Cholesky factor, costs as much as a few products
    with X, or one over all rows as much as a few iterations.
    """
    d = design.n_columns
    if d**2 <= _SMALL_HESSIAN or d**2 > _LARGEST_HESSIAN:
        return d**2 <= _SMALL_HESSIAN
    cost = _FEWEST_PER_COLUMN * d * design.gram_cost + _FACTOR_COST * d**3
    return cost <= _PRODUCTS_PER_HESSIAN * design.n_entries or small_hessian_cost(design)


def make_preconditioner(problem: Problem, w: Vector, s: Vector, here: Curved) -> Preconditioner:
    """The inverse of a sampled Hessian where that is small, else of an estimated diagonal."""
    if hessian_is_small(problem.design):
        return hessian_metric(problem, w, s, here)
    # One number for all columns, which are in their own units: a rare column has a small curvature
    # because most of its entries are zero, not because its values are small.
    scale = mean_curvature(problem, w) + problem.penalty
    return lambda r: r / scale


def mean_curvature(problem: Problem, w: Vector) -> float:
    """The mean of the diagonal of X^T F'' X at w, from a sample of the rows."""
    problem = problem.sample(SMALLEST_SAMPLE, 1) or problem
    here = problem.objective.at(problem.design.scores(w))
    return float(_hessian_diagonal(problem.design, here).mean())


def _hessian_diagonal(design: Design, here: Curved) -> Vector:
    """An estimate of the diagonal of X^T F'' X from the diagonal of F''."""
    weight = here.curvature_diagonal()
    total = float(weight.sum())
    first, diagonal, _ = design.moments(weight)
    if total > 0.0:
        # Pairs depend on differences of rows, so the mean does not count. At least a hundredth is
        # kept: this is the mean of all rows, not that of each row's active pairs.
        diagonal = np.maximum(diagonal - first**2 / total, 0.01 * diagonal)
    # A column that is zero in these rows may not be in others: it gets the median curvature.
    unseen = diagonal <= 1e-12 * diagonal.max(initial=0.0)
    if unseen.all():
        return np.ones(diagonal.size)
    diagonal[unseen] = np.median(diagonal[~unseen])
    return diagonal


def _is_start(problem: Problem, s: Vector) -> bool:
    """Whether these are zero scores of all rows, where `Units.curvature` holds."""
    return problem.design is problem.units.design and not s.any()


def hessian_metric(problem: Problem, w: Vector, s: Vector, here: Curved) -> Metric:
    """The Hessian over all rows or a sample, its diagonal then raised to that over all rows."""
    design, least = problem.design, np.zeros(problem.design.n_columns)
    known, objective = problem.units.curvature, problem.objective
    if known is not None and isinstance(objective, AllPairs) and _is_start(problem, s):
        hessian = float(objective.loss.curvature(0.0)) * known
        return Metric(hessian, least, problem.penalty)
    n, d = design.n_rows, design.n_columns
    size = max(_FEWEST_PER_COLUMN * d, min(_COPY_PER_ROW * n // d, _MOST_PER_COLUMN * d), 256)
    if small_hessian_cost(design):
        size = max(_MOST_PER_COLUMN * d, int(design.small_cost / design.gram_cost))
    sample = problem.sample(size, 1)
    if sample is not None:
        # A column that varies little in the sample has too small a curvature there.
        least = _hessian_diagonal(design, here)
        problem, design = sample, sample.design
        s = design.scores(w)
    hessian = problem.objective.hessian(s, design)
    return Metric(hessian, least, problem.penalty)
