"""Units of columns: what a solver does, and what it certifies, must not depend on the units of the
data.

Solvers for smooth objectives work on X' = (X - 1 c^T) / u with weights w' = u * w. The scores are
the same up to a constant, which the objective does not see or the intercept takes up. A column that
is multiplied by a number, or to which one is added, has the same X', so the gradient with respect
to w' has no unit: its norm, relative to that of the model without columns, is the certificate.

The unit u_k of a column is the root mean square of what the objective sees of it: of the
differences x_ik - x_jk over its pairs, or of x_ik about its mean over the rows, or about zero where
there is no intercept. That is a quadratic form in the curvature of the squared loss, u_k^2 = x_k^T
C x_k / 2. In a sparse matrix it is that of the stored entries: a rare word is not a small number.
There, columns of much the same size, such as words, share one unit, so that conjugate gradients see
the weighting that the user gave them.

A sample of the rows is enough, since only the order of magnitude matters; a column that does not
vary there is looked at in all rows.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Vector
from forerank.design import Design, standardise
from forerank.objectives.pointwise import Pointwise, Profiled
from forerank.solvers.result import SolverResult

__all__ = ["Units", "column_units"]


# Rows of a sample that say enough about the size of a column.
_SAMPLE_ROWS = 1_000
# Numbers in a copy of columns: as many as X has rows, or so many where X is small.
_SMALL_COPY = 160_000
# A dense copy may have this many numbers for each stored entry of the rows.
_DENSE_COST = 4
# Units of the columns of a sparse matrix are rounded to the median unit times a power of this.
_SPARSE_STEP = 10.0
# Variation below this share of a column's mean is rounding.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class Units:
    """A design in the units of its columns, and how weights are translated.

    Attributes
    ----------
    design : Design
        (X - 1 mean^T) / unit; an intercept stays a column of ones.
    mean, unit : arrays of shape (n_columns,)
        0 and 1 for the intercept.
    """

    design: Design
    mean: Vector
    unit: Vector

    def inwards(self, w: Vector) -> Vector:
        """The weights of the standardised columns that give the scores of w."""
        out = self.unit * w
        if self.design.has_intercept:
            out[-1] += self.mean @ w
        return out

    def outwards(self, w: Vector) -> Vector:
        """The weights of the columns as they are that give the scores of w."""
        out = w / self.unit
        if self.design.has_intercept:
            out[-1] -= self.mean @ out
        return out

    def translated(self, result: SolverResult) -> SolverResult:
        """A result for the columns as they are."""
        w = self.outwards(result.w)
        shift = 0.0 if self.design.has_intercept else float(self.mean @ w)
        return replace(result, w=w, scores=result.scores + shift)

    def penalty(self, penalty: Vector) -> Vector:
        """The penalty on the weights of the standardised columns."""
        with np.errstate(over="ignore", under="ignore"):
            return np.minimum(penalty / self.unit / self.unit, np.finfo(float).max)

    def reference_norm(self, objective: Any, design: Design) -> float:
        """The norm of the gradient without columns, by which others are measured; zero where all of
        it is rounding.

        `objective` and `design` are those of all rows or of a sample; the intercept is at its best.
        """
        pull = _centred(objective, design).gradient_at_zero()
        gradient = design.adjoint(pull)
        # Terms of the size of a column's mean cancel down to their rounding.
        size = (np.abs(self.mean) / self.unit + 1.0) * np.abs(pull).sum()
        if np.all(np.abs(gradient) <= 10.0 * _ROUNDING * size):
            return 0.0
        return float(np.linalg.norm(gradient))


def column_units(objective: Any, design: Design) -> Units:
    """The units of the columns of a design for an objective.

    Cost: a pass over a small sample of the rows, and one over all rows where that does not do.
    """
    centred = design.has_intercept or objective.shift_invariant
    squared = _centred(objective.squared(), design)
    found, looked_at_all = _of_sample(squared, design, centred)
    unseen = ~_varies(*found[:2])
    unseen[unseen.size - design.has_intercept :] = False
    if unseen.any() and not looked_at_all:
        of_all = _of_all_rows(squared, design, centred)
        found = of_all if unseen.all() else np.where(unseen, of_all, found)
    mean, unit, stored = found
    constant = np.flatnonzero(~_varies(mean, unit))
    unit[constant] = np.where(mean[constant] != 0.0, np.abs(mean[constant]), 1.0)
    sparse = stored < 1.0 - 1e-9
    if sparse.any():
        sparse[constant] = False
        unit[sparse] = _rounded(unit[sparse])
        mean[stored < 1.0 - 1e-9] = 0.0  # an entry that is not stored stays zero
    if design.has_intercept:
        mean[-1], unit[-1] = 0.0, 1.0
    if not centred:
        mean[:] = 0.0
    return Units(standardise(design, mean, unit), mean, unit)


def _rounded(unit: Vector) -> Vector:
    """The median unit times powers of `_SPARSE_STEP`."""
    if not unit.size:
        return unit
    typical = np.median(unit)
    steps = np.rint(np.log10(unit / typical) / np.log10(_SPARSE_STEP))
    out, others = np.full(unit.size, typical), np.flatnonzero(steps)
    out[others] *= _SPARSE_STEP ** steps[others]
    return out


def _is_sparse(design: Design) -> bool:
    """Whether a dense copy of rows would cost far more than the rows as they are stored."""
    return design.n_rows * design.n_columns > _DENSE_COST * design.n_entries


def _varies(mean: Vector, unit: Vector) -> NDArray[np.bool_]:
    """Columns whose unit is not zero, rounding or out of reach."""
    return (unit > _ROUNDING * np.abs(mean)) & np.isfinite(unit)


def _centred(objective: Any, design: Design) -> Any:
    """The objective as a function of the columns alone: with the best intercept, where there is
    one.
    """
    return (
        Profiled(objective)
        if design.has_intercept and isinstance(objective, Pointwise)
        else objective
    )


def _row_shares(squared: Any, design: Design) -> Vector:
    """The share of each row in the objective."""
    rows = squared.pointwise if isinstance(squared, Profiled) else squared
    weight = rows.at(np.zeros(design.n_rows)).curvature_diagonal()
    return weight / weight.sum()


def _of_sample(squared: Any, design: Design, centred: bool) -> tuple[Vector, bool]:
    """Means, units and stored shares of the columns (zeros: not known), and whether these are those
    of all rows.

    Few columns are copied at a time. Where that would cost more than a pass over X, or X is sparse,
    nothing is.
    """
    n, d = design.n_rows, design.n_columns
    room = max(n, _SMALL_COPY)
    size = n if n <= 2 * _SAMPLE_ROWS else _SAMPLE_ROWS
    width = max(1, room // size)
    if -(-d // width) * size > 2 * room or _is_sparse(design):
        return np.zeros((3, d)), False
    if size < n:
        sample = squared.sample(size, np.random.default_rng(2))
        if sample is None:
            return np.zeros((3, d)), False
        squared, design = sample[1], design.rows(sample[0])
    here, share = squared.at(np.zeros(design.n_rows)), _row_shares(squared, design)
    mean, square = np.empty(d), np.empty(d)
    for begin in range(0, d, width):
        some = slice(begin, min(begin + width, d))
        X = design.columns(some.start, some.stop)
        mean[some] = share @ X
        if centred:
            X = X - mean[some]
        with np.errstate(over="ignore", invalid="ignore"):
            square[some] = 0.5 * here.quadratic_form(X)
    return _with_units(mean, square, design.moments(share)[2]), size == n


def _of_all_rows(squared: Any, design: Design, centred: bool) -> Vector:
    """Means, units and stored shares from sums over all rows, which see their spread and not that
    within groups.
    """
    share = _row_shares(squared, design)
    near = None
    if centred and not _is_sparse(
        design
    ):  # squares of a column far from zero lose its variation to rounding
        some = np.flatnonzero(share)
        some = some[:: max(1, some.size // 64)]
        near = design.rows(some).adjoint(np.full(some.size, 1.0 / some.size))
    with np.errstate(over="ignore", invalid="ignore"):
        first, second, stored = design.moments(share, near)
        square = second - first**2 if centred else second
    return _with_units(first if near is None else near + first, square, stored)


def _with_units(mean: Vector, square: Vector, stored: Vector) -> Vector:
    """Rows: mean, unit, stored share. A column that is stored nowhere counts as stored."""
    stored = np.where(stored > 0.0, stored, 1.0)
    return np.stack([mean, np.sqrt(np.maximum(square, 0.0) / stored), stored])
