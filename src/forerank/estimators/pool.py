"""A ranker for a pool that is mostly unread: relevant rows ahead of the irrelevant ones and of what
is unread.

At the start of a screening a handful of rows is labelled, and what the irrelevant look like is
known from one or two of them. The unread rows are nearly all irrelevant and say so for free. All of
them at once are stood in for by their mean row, which is one more irrelevant row in the fit, of a
large weight: with the strong penalty that few labels need, nearly every pair has its margin to
learn, and there the pull of a set of rows on the weights is that of its mean. (Spelling out the
pool, row by row, was tried: it cost several times as much and found no more.)
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
from sklearn.utils.validation import check_is_fitted, validate_data

from forerank._kernels import serial_blas
from forerank._typing import Vector
from forerank._validation import check_choice, check_number
from forerank.design import CSRDesign, Design, ExtraRowDesign, make_design, standardise
from forerank.estimators.base import (
    BaseRanker,
    prevalence_thresholds,
    refuse_more_than_two,
    warn_unconverged,
)
from forerank.objectives import AllPairs
from forerank.solvers import newton
from forerank.solvers.units import Units, column_units

__all__ = ["UNLABELLED", "PoolRanker"]

# scikit-learn's mark of a row without a label.
UNLABELLED = -1

_LOSSES = ("exponential", "logistic", "squared", "squared_hinge")


class PoolRanker(BaseRanker):
    """Ranks a pool of which some rows are labelled: all pairs of those, and the mean of the others
    as irrelevant.

    Minimises  sum_{(i, j)} v_j l(x_i w - x_j w) / sum_{(i, j)} v_j + alpha/2 ||w||^2  over relevant rows i and, for j,
    the irrelevant rows (v = 1) and the mean of the rows without a label (v = `unread_weight` times the number of
    irrelevant rows, divided by the number of relevant ones), with alpha = 1 / (C n) for n labelled rows: more labels,
    less penalty.

    Parameters
    ----------
    C : float, default=0.1
        The inverse of the penalty, per labelled row.
    unread_weight : float, default=100.0
        What the unread rows weigh together, against all labelled irrelevant rows, while one
        relevant row is known; with n of them known, an n-th of that. The more relevant rows there
        are, the less the unread are nearly all irrelevant, and the less there is to learn from
        them. With 0 they are left out.
    loss : {"squared_hinge", "logistic", "squared", "exponential"}, default="squared_hinge"
    tol : float, default=1e-3
        The gradient norm asked for, relative to the gradient at zero.
    max_iter : int, default=200
    warm_start : bool, default=False
        Whether a second call of fit begins at the weights of the first. The sum of the rows is kept
        for it too, so the values of an X must not be changed in place between fits.

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
        So that, among the labelled rows and the mean, as much weight is scored above zero as the
        relevant rows have.
    classes_ : array of shape (2,)
    n_iter_ : int
    objective_ : float
    optimality_ : float
        The certificate reached; see `tol`.
    n_features_in_ : int

    Notes
    -----
    Cost: one pass over X for the mean, then a fit on the labelled rows, in the columns that
    these have: the weights of all other columns are a multiple of the mean row there, so these
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
            Two classes, of which the one that sorts last is relevant, and -1 for rows without a
            label. Where -1 is one of the only two values, it is a class, and no row is without a
            label.

        Returns
        -------
        self
        """
        check_number("C", self.C, low=0.0, strict=True)
        check_number("unread_weight", self.unread_weight, low=0.0)
        check_choice("loss", self.loss, _LOSSES)
        check_number("tol", self.tol, low=0.0, strict=True)
        check_number("max_iter", self.max_iter, low=1, integer=True)
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            accept_large_sparse=True,
        )
        values = _distinct(y)
        marked = values.size > 2 and y.dtype.kind in "if"
        unread = (y == UNLABELLED) if marked else np.zeros(y.size, dtype=bool)
        self.classes_ = values[values != UNLABELLED] if unread.any() else values
        refuse_more_than_two(self.classes_)
        if self.classes_.size < 2:
            raise ValueError(
                f"y has one class only, {self.classes_.tolist()[0]!r}; ranking needs rows of at least two classes."
            )
        rows = np.flatnonzero(~unread)
        self._fit_labelled(X, rows, y[rows] == self.classes_[1], unread)
        return self

    def _fit_labelled(
        self, X: Any, rows: NDArray[np.intp], relevant: NDArray[np.bool_], unread: NDArray
    ) -> None:
        mean = weight = None
        if unread.any() and self.unread_weight > 0.0:
            mean = self._mean_of_the_others(X, rows)
            n_relevant = np.count_nonzero(relevant)
            unread_share = self.unread_weight * (rows.size - n_relevant) / n_relevant
            weight = np.append(np.ones(rows.size), unread_share)
            relevant = np.append(relevant, False)
        alpha = 1.0 / (self.C * rows.size)
        objective: Any = AllPairs(relevant.astype(np.int8), self.loss, weight=weight)
        with serial_blas():  # threads cost more than they save on products of this size
            problem = _reduced(X, rows, mean)
            start = problem.inwards(self.coef_[0]) if self._goes_on(X.shape[1]) else None
            result = newton(
                objective,
                problem.design,
                np.full(problem.design.n_columns, alpha),
                start=start,
                tol=self.tol,
                max_iter=self.max_iter,
                units=self._units(objective, problem, X, rows.size),
            )
        self.coef_ = problem.outwards(result.w)[None, :]
        self.intercept_ = -prevalence_thresholds(result.scores, relevant.astype(np.int8), weight, 2)
        self.n_iter_, self.objective_, self.optimality_ = (
            result.n_iter,
            result.objective,
            result.optimality,
        )
        if not result.converged:
            warn_unconverged(self, "relative gradient norm")

    def _units(self, objective: AllPairs, problem: "_Problem", X: Any, n_labelled: int) -> Units:
        """The units of the columns; on the same X, a few labels later, they are those of the fit
        before.
        """
        values = X.data if sp.issparse(X) else X
        known, n_before, mean, unit = getattr(
            self, "_known_units", (lambda: None, 0, np.zeros(0), np.zeros(0))
        )
        if (
            self.warm_start
            and problem.is_whole
            and known() is values
            and n_before <= n_labelled <= 1.25 * n_before
        ):
            return Units(standardise(problem.design, mean, unit), mean, unit)
        units = column_units(objective, problem.design)
        if self.warm_start and problem.is_whole:
            self._known_units = weakref.ref(values), n_labelled, units.mean, units.unit
        return units

    def _goes_on(self, n_columns: int) -> bool:
        return bool(self.warm_start) and hasattr(self, "coef_") and self.coef_.shape[1] == n_columns

    def _mean_of_the_others(self, X: Any, rows: NDArray[np.intp]) -> Vector:
        """The mean of the rows of X that are not among these.

        The sum of all rows is kept for the next warm-started fit on the same X, which then reads
        the labelled rows only; a new array of values, not a change within it, tells that X is
        another.
        """
        design, values = make_design(X), X.data if sp.issparse(X) else X
        known, total, entries = getattr(self, "_total", (lambda: None, np.zeros(0), np.zeros(0)))
        if not self.warm_start or known() is not values:
            total, _, entries = design.moments(np.ones(design.n_rows))
            self._total = weakref.ref(values), total, entries
        labelled, _, labelled_entries = design.rows(rows).moments(np.ones(rows.size))
        rest = total - labelled
        rest[labelled_entries == entries] = (
            0.0  # columns of the labelled rows alone: what is left is rounding
        )
        # A labelled outlier may drown a column; these few are summed again.
        drowned = np.flatnonzero(
            (np.abs(rest) <= 1e-9 * np.abs(total)) & (labelled_entries < entries)
        )
        if drowned.size:
            others = np.ones(design.n_rows)
            others[rows] = 0.0
            rest[drowned] = design.adjoint(others)[drowned]
        return rest / (design.n_rows - rows.size)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {
            name: value for name, value in state.items() if name not in ("_total", "_known_units")
        }

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy on the rows that have a label."""
        check_is_fitted(self)
        labels = np.asarray(y)
        if UNLABELLED not in self.classes_.tolist() and labels.dtype.kind in "if":
            kept = np.flatnonzero(labels != UNLABELLED)
            X, y = _safe_indexing(X, kept), labels[kept]
            sample_weight = None if sample_weight is None else np.asarray(sample_weight)[kept]
        return float(super().score(X, y, sample_weight))

    def decision_function(self, X: ArrayLike) -> Vector:
        """Scores: the higher, the further ahead. Cost: one product with X."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return make_design(X).scores(self.coef_[0]) + self.intercept_[0]


@dataclass(frozen=True)
class _Problem:
    """What is solved, and how its weights are those of the columns of X."""

    design: Design
    inwards: Callable[[Vector], Vector]
    outwards: Callable[[Vector], Vector]
    is_whole: bool = False  # whether its columns are those of X


def _reduced(X: Any, rows: NDArray[np.intp], mean: Vector | None) -> _Problem:
    """The labelled rows and the mean row as a design.

    Penalised weights lie in the span of the rows. Where X is sparse and few rows are labelled, most
    columns are zero in all of these: there the weights are a multiple of the mean row, so one
    column along its direction stands for all.
    """
    design = make_design(X).rows(rows)
    if not sp.issparse(X) or (X.indptr[rows + 1] - X.indptr[rows]).sum() >= X.shape[1]:
        return _Problem(
            design if mean is None else ExtraRowDesign(design, mean), np.copy, np.copy, True
        )
    labelled = X[rows]
    used = np.zeros(X.shape[1], dtype=bool)
    used[labelled.indices] = True
    inside = np.flatnonzero(used)
    columns = (np.cumsum(used) - 1)[labelled.indices]
    n_columns = inside.size + (mean is not None)
    design = CSRDesign(labelled.data, columns, labelled.indptr, n_columns)
    if mean is None:
        return _Problem(design, lambda w: w[inside], lambda w: _filled(X.shape[1], inside, w))
    outside = np.where(used, 0.0, mean)
    length = float(np.sqrt(outside @ outside))
    unit = length if length > 0.0 else 1.0

    def outwards(w: Vector) -> Vector:
        out = outside * (w[-1] / unit)
        out[inside] = w[:-1]
        return out

    row = np.append(mean[inside], length)
    return _Problem(
        ExtraRowDesign(design, row), lambda w: np.append(w[inside], (outside @ w) / unit), outwards
    )


def _filled(n_columns: int, inside: NDArray[np.intp], w: Vector) -> Vector:
    out = np.zeros(n_columns)
    out[inside] = w
    return out


def _distinct(y: NDArray) -> NDArray:
    """The sorted values of y, which must be classes; integers close together take no sort."""
    if y.dtype.kind == "i" and int(y.max()) - int(y.min()) < y.size:
        low = int(y.min())
        return (np.flatnonzero(np.bincount(y.astype(np.intp) - low)) + low).astype(y.dtype)
    check_classification_targets(y)
    return np.unique(y)
