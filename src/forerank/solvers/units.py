"""Units of columns: iterations and certificates that do not depend on the units of the data.

Solvers for smooth objectives work on X' = (X - 1 c^T) / u with weights w' = u * w. The scores are
the same up to a constant, which does not change the objective or is added to the intercept.
Multiplying a column by a number, or adding one to it, does not change X', so the gradient with
respect to w' has no unit: its norm, relative to that of the model without columns, is the
certificate.

The unit u_k of a column is the root mean square of the differences x_ik - x_jk over the pairs of
the objective, or of x_ik about its mean over the rows, or about zero without an intercept. That is
a quadratic form in the curvature of the squared loss, u_k^2 = x_k^T C x_k / 2. In a sparse matrix
it is taken over the stored entries, and columns of a similar size, such as words, share a unit, so
that the weighting of the columns by the user keeps its effect.

Units are estimated on a sample of the rows, since only the order of magnitude matters; all rows are
read for columns that do not vary in the sample.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Vector
from forerank.design import Design, standardise
from forerank.losses import Squared
from forerank.objectives.allpairs import AllPairs
from forerank.pairsums.factored import EqualScorePairs
from forerank.solvers.result import SolverResult

__all__ = ["Units", "column_units", "small_hessian_cost", "starts_at_zero"]


# Rows of the sample; their sampling error is far below the order of magnitude.
_SAMPLE_ROWS = 1_000
# Numbers in a copy of columns: the number of rows of X, but at least this (1.3 MB).
_SMALL_COPY = 160_000
# Rows per column of a sample whose curvature is close to that of all rows: the relative error is
# about the square root of columns per row, 6 %.
_ROWS_PER_COLUMN = 256
# Ratio of rows times columns to stored entries above which a matrix counts as sparse.
_DENSE_COST = 4
# Units of sparse columns are the median unit times a power of this.
_SPARSE_RATIO = 10.0
# Mean of a column, in its unit, up to which its squares may be summed without subtracting it first:
# twelve digits are left.
_LARGEST_MEAN = 100.0
# Variation of a column, relative to its mean, that counts as rounding error.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class Units:
    """A design in the units of its columns, and the conversion of weights.

    Attributes
    ----------
    design : Design
        (X - 1 mean^T) / unit; an intercept stays a column of ones.
    mean, unit : arrays of shape (n_columns,)
        The intercept has mean 0 and unit 1.
    curvature : array of shape (n_columns, n_columns), optional
        The mean of (x_i - x_j)(x_i - x_j)^T over the pairs of the objective, for rows of the
        design, where it was computed to find the units.
    difference : array of shape (n_columns,), optional
        The mean of x_i - x_j over the pairs, for rows of the design, where it is known.
    """

    design: Design
    mean: Vector
    unit: Vector
    curvature: Vector | None = None
    difference: Vector | None = None

    def to_standardised(self, w: Vector) -> Vector:
        """The weights of the standardised columns with the scores of w."""
        out = self.unit * w
        if self.design.has_intercept:
            out[-1] += self.mean @ w
        return out

    def weights_of_columns(self, w: Vector) -> Vector:
        """The weights of the original columns with the scores of w."""
        out = w / self.unit
        if self.design.has_intercept:
            out[-1] -= self.mean @ out
        return out

    def to_columns(self, result: SolverResult) -> SolverResult:
        """The result for the original columns."""
        w = self.weights_of_columns(result.w)
        shift = 0.0 if self.design.has_intercept else float(self.mean @ w)
        return replace(result, w=w, scores=result.scores + shift)

    def penalty(self, penalty: Vector) -> Vector:
        """The penalty on the weights of the standardised columns."""
        with np.errstate(over="ignore", under="ignore"):
            return np.minimum(penalty / self.unit / self.unit, np.finfo(float).max)

    def norm(self, gradient: Vector) -> float:
        """The norm of a gradient in the units of the data."""
        return float(np.linalg.norm(self.unit * gradient))

    def reference_gradient(self, objective: Any, design: Design) -> Vector:
        """The gradient at w = 0 and the best intercept; zero if it is rounding error.

        `objective` and `design` are those of all rows or of a sample.
        """
        difference = self.difference if design is self.design else None
        if difference is not None and isinstance(objective, AllPairs):
            slope = float(objective.loss.slope(0.0))
            gradient, total = slope * difference, 2.0 * abs(slope)
        else:
            g = _without_intercept(objective, design).gradient_at_zero()
            gradient, total = design.adjoint(g), float(abs(g).sum())
        # Terms of the size of a column's mean cancel to rounding error.
        size = (np.abs(self.mean) / self.unit + 1.0) * total
        if np.all(np.abs(gradient) <= 10.0 * _ROUNDING * size):
            return np.zeros(gradient.size)
        return gradient

    def reference_norm(self, objective: Any, design: Design) -> float:
        """The norm of `reference_gradient`."""
        return float(np.linalg.norm(self.reference_gradient(objective, design)))


def column_units(objective: Any, design: Design) -> Units:
    """The units of the columns of a design for an objective.

    Cost: a pass over a small sample of the rows, and one over all rows where that is not enough.
    For pairs of few rows, the curvature over all rows.
    """
    centred = design.has_intercept or objective.shift_invariant
    squared, curvature, difference = None, None, None
    if not design.is_on_device:
        squared = _without_intercept(objective.squared(), design)
    if design.is_on_device:
        found, of_all_rows = objective.column_moments(design, centred, _SAMPLE_ROWS)
    elif isinstance(objective, AllPairs) and starts_at_zero(design):
        found, curvature, difference, of_all_rows = _of_curvature(objective, design)
    else:
        found, of_all_rows = _of_sample(squared, design, centred)
    unseen = ~_varies(*found[:2])
    unseen[unseen.size - design.has_intercept :] = False
    if unseen.any() and not of_all_rows:
        if design.is_on_device:
            exact = objective.column_moments(design, centred)[0]
        else:
            exact = _of_all_rows(squared, design, centred)
        found = exact if unseen.all() else np.where(unseen, exact, found)
    mean, unit, stored = found
    constant = np.flatnonzero(~_varies(mean, unit))
    unit[constant] = np.where(mean[constant] != 0.0, np.abs(mean[constant]), 1.0)
    sparse = stored < 1.0 - 1e-9
    if sparse.any():
        sparse[constant] = False
        unit[sparse] = _rounded(unit[sparse])
        mean[stored < 1.0 - 1e-9] = 0.0  # entries that are not stored stay zero
    if design.has_intercept:
        mean[-1], unit[-1] = 0.0, 1.0
    if not centred:
        mean[:] = 0.0
    if curvature is not None:
        curvature[unseen, unseen] = (stored * unit**2)[unseen]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            curvature = curvature / unit / unit[:, None]
        curvature = curvature if np.isfinite(curvature).all() else None
    if difference is not None:
        difference = difference / unit if of_all_rows else None
    return Units(standardise(design, mean, unit), mean, unit, curvature, difference)


def _rounded(unit: Vector) -> Vector:
    """The median unit times powers of `_SPARSE_RATIO`."""
    if not unit.size:
        return unit
    typical = np.median(unit)
    steps = np.rint(np.log10(unit / typical) / np.log10(_SPARSE_RATIO))
    out, others = np.full(unit.size, typical), np.flatnonzero(steps)
    out[others] *= _SPARSE_RATIO ** steps[others]
    return out


def _is_sparse(design: Design) -> bool:
    """Whether a dense copy of rows would be far larger than the stored entries."""
    return design.n_rows * design.n_columns > _DENSE_COST * design.n_entries


def _varies(mean: Vector, unit: Vector) -> NDArray[np.bool_]:
    """Columns whose unit is finite and above rounding error."""
    return (unit > _ROUNDING * np.abs(mean)) & np.isfinite(unit)


def _without_intercept(objective: Any, design: Design) -> Any:
    """The objective with the best intercept in place of an intercept column."""
    profiled = design.has_intercept and hasattr(objective, "profiled")
    return objective.profiled() if profiled else objective


def small_hessian_cost(design: Design) -> bool:
    """Whether a Hessian over all rows costs about as much as four iterations or less."""
    return design.gram_cost <= 4.0 * _iteration_cost(design)


def starts_at_zero(design: Design) -> bool:
    """Whether a few iterations over all rows cost less than the start on a sample of them."""
    few = design.n_rows * _iteration_cost(design) <= design.small_cost
    return few and small_hessian_cost(design)


def _iteration_cost(design: Design) -> float:
    """Time per row of two products with X and of a sum over pairs, which costs about as much as a
    product with 50 entries per row; in the unit of `Design.gram_cost`.
    """
    return 50.0 + 2.0 * design.n_entries / max(design.n_rows, 1)


def _of_curvature(
    objective: AllPairs, design: Design
) -> tuple[Vector, Vector, Vector | None, bool]:
    """Means, units and stored shares of the columns, the mean of the products of differences over
    the pairs and, for one block, that of the differences, and whether all rows were used.
    """
    sample = objective.sample(_ROWS_PER_COLUMN * design.n_columns, 1)
    if sample is not None:
        objective, design = sample[1], design.rows(sample[0])
    here, difference = EqualScorePairs(objective.blocks, Squared()), None
    with np.errstate(over="ignore", invalid="ignore"):
        if here.has_one_block:
            halves = here.half_shares()
            of_halves = design.adjoints(halves)
            mean, difference = of_halves.mean(axis=0), of_halves[1] - of_halves[0]
            share = 0.5 * (halves[0] + halves[1])
            curvature = 2.0 * _covariance(design, share, mean)
            curvature += 0.5 * np.outer(difference, difference)
        else:
            share = here.curvature_diagonal()
            share /= share.sum()
            mean = design.adjoint(share)
            # Means do not count, and large ones would cancel.
            curvature = 0.5 * here.hessian(standardise(design, mean, np.ones(mean.size)))
        square = np.maximum(np.diagonal(curvature), 0.0)
        found = _with_units(mean, square, design.stored(share))
    return found, curvature, difference, sample is None


def _covariance(design: Design, share: Vector, mean: Vector) -> Vector:
    """The mean of (x - mean)(x - mean)^T over the rows with these shares, whose mean is known."""
    covariance = design.weighted_gram(share) - np.outer(mean, mean)
    # Also where a square overflows, and the difference of two is not a number.
    if not np.all(mean**2 <= _LARGEST_MEAN**2 * np.diagonal(covariance)):
        return standardise(design, mean, np.ones(mean.size)).gram_of_blocks(share)
    return covariance


def _row_shares(squared: Any, design: Design) -> Vector:
    """The share of each row in the objective."""
    rows = getattr(squared, "row_objective", squared)
    weight = rows.at(np.zeros(design.n_rows)).curvature_diagonal()
    return weight / weight.sum()


def _of_sample(squared: Any, design: Design, centred: bool) -> tuple[Vector, bool]:
    """Means, units and stored shares of the columns, and whether all rows were used.

    Zeros (unknown) where X is sparse, or where copies of columns, a few at a time, would cost more
    than a pass over X.
    """
    n, d = design.n_rows, design.n_columns
    copy_size = max(n, _SMALL_COPY)
    size = n if n <= 2 * _SAMPLE_ROWS else _SAMPLE_ROWS
    width = max(1, copy_size // size)
    if -(-d // width) * size > 2 * copy_size or _is_sparse(design):
        return np.zeros((3, d)), False
    if size < n:
        sample = squared.sample(size, 2)
        if sample is None:
            return np.zeros((3, d)), False
        squared, design = sample[1], design.rows(sample[0])
    here, share = squared.at(np.zeros(design.n_rows)), _row_shares(squared, design)
    if isinstance(here, EqualScorePairs) and here.has_one_block:
        return _of_halves(here, share, design), size == n
    mean, square = np.empty(d), np.empty(d)
    for begin in range(0, d, width):
        some = slice(begin, min(begin + width, d))
        X = design.columns(some.start, some.stop)
        mean[some] = share @ X
        if centred:
            X = X - mean[some]
        with np.errstate(over="ignore", invalid="ignore"):
            square[some] = 0.5 * here.quadratic_form(X)
    return _with_units(mean, square, design.stored(share)), size == n


def _of_halves(here: EqualScorePairs, share: Vector, design: Design) -> Vector:
    """Means, units and stored shares of the columns, from moments of either half of the pairs."""
    mean = design.adjoint(share)
    with np.errstate(over="ignore", invalid="ignore"):
        lower, upper = (design.moments(half, mean) for half in here.half_shares())
        return _with_units(
            mean, lower[1] + upper[1] - 2.0 * lower[0] * upper[0], 0.5 * (lower[2] + upper[2])
        )


def _of_all_rows(squared: Any, design: Design, centred: bool) -> Vector:
    """Means, units and stored shares from moments over all rows, regardless of groups."""
    share = _row_shares(squared, design)
    near = None
    if centred and not _is_sparse(design):  # squares of a column with a large mean would cancel
        some = np.flatnonzero(share)
        some = some[:: max(1, some.size // 64)]
        near = design.rows(some).adjoint(np.full(some.size, 1.0 / some.size))
    with np.errstate(over="ignore", invalid="ignore"):
        first, second, stored = design.moments(share, near)
        square = second - first**2 if centred else second
    return _with_units(first if near is None else near + first, square, stored)


def _with_units(mean: Vector, square: Vector, stored: Vector) -> Vector:
    """Rows: mean, unit, stored share. A column without stored entries counts as stored."""
    stored = np.where(stored > 0.0, stored, 1.0)
    return np.stack([mean, np.sqrt(np.maximum(square, 0.0) / stored), stored])
