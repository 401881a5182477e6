"""PoolRanker: a ranker for pools of which few rows are labelled.

Unlabelled rows are nearly all irrelevant; the fit treats them as one additional irrelevant row,
their mean, with a large weight. With a strong penalty nearly every pair is inside its margin, and
there the gradient of a set of rows equals that of its mean. (Using all unlabelled rows one by one
cost several times as much and was no better.)
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from forerank._kernels import serial_blas
from forerank._typing import Index, Mask, Matrix, Vector
from forerank._validation import check_choice, check_number
from forerank.design import CSRDesign, Design, ExtraRowDesign, make_design, standardise
from forerank.estimators.base import (
    BaseRanker,
    prevalence_thresholds,
    refuse_more_than_two,
    refuse_one_class,
    warn_unconverged,
)
from forerank.objectives import AllPairs
from forerank.solvers import newton
from forerank.solvers.units import Units, column_units

__all__ = ["UNLABELLED", "PoolRanker"]

# scikit-learn's label of rows without a label.
UNLABELLED = -1

_LOSSES = ("exponential", "logistic", "squared", "squared_hinge")
# Largest ratio of the labelled rows of two fits on the same X for which units are reused.
_SAME_UNITS = 1.25
# Remainder of a column's sum, relative to the sum, below which cancellation is corrected.
_CANCELLED = 1e-9


class PoolRanker(BaseRanker):
    """Ranks a pool of which some rows are labelled: all pairs of those, and the mean of the
    unlabelled rows as irrelevant.

    Minimises  sum_{(i, j)} v_j l(x_i w - x_j w) / sum_{(i, j)} v_j + alpha/2 ||w||^2  over relevant
    rows i and, for j, the irrelevant rows (v = 1) and the mean of the unlabelled rows (v =
    `unread_weight` times the number of irrelevant rows, divided by the number of relevant ones),
    with alpha = 1 / (C n) for n labelled rows: more labels, less penalty.

    Parameters
    ----------
    C : float, default=0.1
        The inverse of the penalty, per labelled row.
    unread_weight : float, default=100.0
        Total weight of the unlabelled rows, relative to the labelled irrelevant rows, with one
        relevant row; with n relevant rows it is divided by n, because then fewer of the unlabelled
        rows can be assumed irrelevant. With 0 they are excluded.
    loss : {"squared_hinge", "logistic", "squared", "exponential"}, default="squared_hinge"
    tol : float, default=1e-3
        The gradient norm to reach, relative to the gradient at zero.
    max_iter : int, default=200
    warm_start : bool, default=False
        Whether a second call of fit starts from the weights of the first. It also uses the sum of
        the rows of the first, so the values of X must not be changed in place between fits.

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
        As much weight of the labelled rows and the mean is scored above zero as the relevant rows
        have.
    classes_ : array of shape (2,)
    n_iter_ : int
    objective_ : float
    optimality_ : float
        The certificate reached; see `tol`.
    n_features_in_ : int

    Notes
    -----
    Cost: one pass over X for the mean, then a fit on the labelled rows, in the columns in which
    these have entries: the weights of all other columns are a multiple of the mean row, so these
    columns are fitted as one.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.9, 0.1], [0.1, 0.9], [0.2, 0.7]])
    >>> PoolRanker().fit(X, [0, 1, -1, -1, -1]).rank(X)
    array([1, 2, 4, 3, 0])
    """

    learns_from_unlabelled = True
    coef_: NDArray[np.float64]

    def __init__(
        self,
        C: float = 0.1,
        *,
        unread_weight: float = 100.0,
        loss: str = "squared_hinge",
        tol: float = 1e-3,
        max_iter: int = 200,
        warm_start: bool = False,
    ) -> None:
        self.C = C
        self.unread_weight = unread_weight
        self.loss = loss
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes, of which the one that sorts last is relevant, and -1 for unlabelled rows.
            Where y has only two values, -1 is a class.

        Returns
        -------
        self
        """
        check_number("C", self.C, low=0.0, strict=True)
        check_number("unread_weight", self.unread_weight, low=0.0)
        check_choice("loss", self.loss, _LOSSES)
        check_number("tol", self.tol, low=0.0, strict=True)
        check_number("max_iter", self.max_iter, low=1, integer=True)
        X, y = self._validated(X, y, reset=True)
        values = _distinct(y)
        has_unlabelled = values.size > 2 and y.dtype.kind in "if"
        unlabelled = (y == UNLABELLED) if has_unlabelled else np.zeros(y.size, dtype=bool)
        self.classes_ = values[values != UNLABELLED] if unlabelled.any() else values
        refuse_more_than_two(self.classes_)
        refuse_one_class(self.classes_)
        rows = np.flatnonzero(~unlabelled)
        self._fit_labelled(X, rows, y[rows] == self.classes_[1])
        return self

    def _fit_labelled(self, X: Matrix, rows: Index, relevant: Mask) -> None:
        mean = weight = None
        if rows.size < X.shape[0] and self.unread_weight > 0.0:
            mean = self._mean_of_unlabelled(X, rows)
            n_relevant = np.count_nonzero(relevant)
            mean_weight = self.unread_weight * (rows.size - n_relevant) / n_relevant
            weight = np.append(np.ones(rows.size), mean_weight)
            relevant = np.append(relevant, False)
        alpha = 1.0 / (self.C * rows.size)
        objective: Any = AllPairs(relevant.astype(np.int8), self.loss, weight=weight)
        warm = self.warm_start and hasattr(self, "coef_") and self.coef_.shape[1] == X.shape[1]
        with serial_blas():  # threads cost more than they save on products of this size
            problem = _reduced(X, rows, mean)
            result = newton(
                objective,
                problem.design,
                alpha,
                start=problem.reduce(self.coef_[0]) if warm else None,
                tol=self.tol,
                max_iter=self.max_iter,
                units=self._units(objective, problem, X, rows.size),
            )
        self.coef_ = problem.restore(result.w)[None, :]
        self.intercept_ = -prevalence_thresholds(result.scores, relevant.astype(np.int8), weight, 2)
        self.n_iter_, self.objective_ = result.n_iter, result.objective
        self.optimality_ = result.optimality
        if not result.converged:
            warn_unconverged(self, result.certificate)

    def _units(self, objective: AllPairs, problem: "_Problem", X: Matrix, n_rows: int) -> Units:
        """The units of the columns; those of the last fit if X is the same and has few new labels.

        X is the same if its array of values is the same object.
        """
        if not (self.warm_start and problem.has_all_columns):
            return column_units(objective, problem.design)
        values = X.data if sp.issparse(X) else X
        unknown: Any = (lambda: None, 0, None, None)
        known, n_before, mean, unit = getattr(self, "_known_units", unknown)
        if known() is values and n_before <= n_rows <= _SAME_UNITS * n_before:
            return Units(standardise(problem.design, mean, unit), mean, unit)
        units = column_units(objective, problem.design)
        self._known_units = weakref.ref(values), n_rows, units.mean, units.unit
        return units

    def _mean_of_unlabelled(self, X: Matrix, rows: Index) -> Vector:
        """The mean of the rows of X other than the labelled `rows`.

        The sum of all rows is stored for the next warm-started fit on the same X (the same array of
        values), which then reads the labelled rows only.
        """
        design, values = make_design(X), X.data if sp.issparse(X) else X
        known, total, entries = getattr(self, "_total", (lambda: None, np.zeros(0), np.zeros(0)))
        if not self.warm_start or known() is not values:
            total, _, entries = design.moments(np.ones(design.n_rows))
            self._total = weakref.ref(values), total, entries
        labelled, _, labelled_entries = design.rows(rows).moments(np.ones(rows.size))
        rest = total - labelled
        # Columns of labelled rows only: the difference is rounding error.
        rest[labelled_entries == entries] = 0.0
        # Columns dominated by a labelled outlier are summed again.
        cancelled = np.abs(rest) <= _CANCELLED * np.abs(total)
        again = np.flatnonzero(cancelled & (labelled_entries < entries))
        if again.size:
            others = np.ones(design.n_rows)
            others[rows] = 0.0
            rest[again] = design.adjoint(others)[again]
        return rest / (design.n_rows - rows.size)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: state[name] for name in state if name not in ("_total", "_known_units")}

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy on the labelled rows."""
        check_is_fitted(self)
        labels = np.asarray(y)
        if UNLABELLED not in self.classes_.tolist() and labels.dtype.kind in "if":
            kept = np.flatnonzero(labels != UNLABELLED)
            X, y = _safe_indexing(X, kept), labels[kept]
            sample_weight = None if sample_weight is None else np.asarray(sample_weight)[kept]
        return float(super().score(X, y, sample_weight))

    def decision_function(self, X: ArrayLike) -> Vector:
        """Scores; rows with higher scores are ranked above others. Cost: one product with X."""
        check_is_fitted(self)
        return make_design(self._validated(X)).scores(self.coef_[0]) + self.intercept_[0]


@dataclass(frozen=True)
class _Problem:
    """A design of few columns, and the conversion of weights from and to the columns of X."""

    design: Design
    reduce: Callable[[Vector], Vector]
    restore: Callable[[Vector], Vector]
    has_all_columns: bool = False


def _reduced(X: Matrix, rows: Index, mean: Vector | None) -> _Problem:
    """The labelled rows and the mean row as a design.

    Penalised weights lie in the span of the rows. Where X is sparse and few rows are labelled, most
    columns are zero in all of these: there the weights are a multiple of the mean row, so one
    column along its direction replaces them.
    """
    design = make_design(X).rows(rows)
    if not sp.issparse(X) or (X.indptr[rows + 1] - X.indptr[rows]).sum() >= X.shape[1]:
        design = design if mean is None else ExtraRowDesign(design, mean)
        return _Problem(design, np.copy, np.copy, has_all_columns=True)
    labelled = X[rows]
    used = np.zeros(X.shape[1], dtype=bool)
    used[labelled.indices] = True
    inside = np.flatnonzero(used)
    columns = (np.cumsum(used) - 1)[labelled.indices]
    n_columns = inside.size + (mean is not None)
    design = CSRDesign(labelled.data, columns, labelled.indptr, n_columns)
    outside = np.zeros(X.shape[1]) if mean is None else np.where(used, 0.0, mean)
    length = float(np.sqrt(outside @ outside))
    unit = length if length > 0.0 else 1.0

    def reduce(w: Vector) -> Vector:
        return w[inside] if mean is None else np.append(w[inside], (outside @ w) / unit)

    def restore(w: Vector) -> Vector:
        out = outside * (w[-1] / unit)
        out[inside] = w[: inside.size]
        return out

    if mean is None:
        return _Problem(design, reduce, restore)
    row = np.append(mean[inside], length)
    return _Problem(ExtraRowDesign(design, row), reduce, restore)


def _distinct(y: NDArray) -> NDArray:
    """The sorted values of y, which must be classes; for integers of a small range, no sort."""
    if y.dtype.kind == "i" and int(y.max()) - int(y.min()) < y.size:
        low = int(y.min())
        return (np.flatnonzero(np.bincount(y.astype(np.intp) - low)) + low).astype(y.dtype)
    check_classification_targets(y)
    return np.unique(y)
