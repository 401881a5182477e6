"""A ranker for a pool that is mostly unread: relevant rows ahead of the irrelevant ones and of what is unread.

At the start of a screening a handful of rows is labelled, and what the irrelevant look like is known from one or two of
them. The unread rows are nearly all irrelevant and say so for free. All of them at once are stood in for by their mean
row, which is one more irrelevant row in the fit, of a large weight: with the strong penalty that few labels need,
nearly every pair has its margin to learn, and there the pull of a set of rows on the weights is that of its mean.
(Spelling out the pool, row by row, was tried: it cost several times as much and found no more.)
"""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from forerank.design import make_design
from forerank.estimators._base import Ranker, Vector, refuse_more_than_two
from forerank.estimators._validation import check_number
from forerank.estimators.linear import PairwiseRanker

__all__ = ["UNLABELLED", "PoolRanker"]

# scikit-learn's mark of a row without a label.
UNLABELLED = -1


class PoolRanker(Ranker):
    """Ranks a pool of which some rows are labelled: all pairs of those, and the mean of the others as irrelevant.

    Minimises  sum_{(i, j)} v_j l(x_i w - x_j w) / sum_{(i, j)} v_j + alpha/2 ||w||^2  over relevant rows i and, for j,
    the irrelevant rows (v = 1) and the mean of the rows without a label (v = `unread_weight` times the number of
    irrelevant rows), with alpha = 1 / (C n) for n labelled rows: more labels, less penalty.

    Parameters
    ----------
    C : float, default=0.1
        The inverse of the penalty, per labelled row.
    unread_weight : float, default=10.0
        What the unread rows weigh together, against all labelled irrelevant rows. With 0 they are left out.
    loss : {"squared_hinge", "logistic", "squared", "exponential"}, default="squared_hinge"
    tol : float, default=1e-3
        The gradient norm asked for, relative to the gradient at zero.
    max_iter : int, default=200
    warm_start : bool, default=False
        Whether a second call of fit begins at the weights of the first.

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
        So that, among the labelled rows and the mean, as much weight is scored above zero as the relevant rows have.
    classes_ : array of shape (2,)
    n_iter_ : int
    objective_ : float
    optimality_ : float
        The certificate reached; see `tol`.
    n_features_in_ : int

    Notes
    -----
    Cost: one pass over X for the mean, then a fit on the labelled rows, in the columns that these have: the weights of
    all other columns are a multiple of the mean row there, so these columns are fitted as one.

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
        unread_weight: float = 10.0,
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
            Two classes, of which the one that sorts last is relevant, and -1 for rows without a label. Where -1 is one
            of the only two values, it is a class, and no row is without a label.

        Returns
        -------
        self
        """
        check_number("C", self.C, low=0.0, strict=True)
        check_number("unread_weight", self.unread_weight, low=0.0)
        if self.loss == "hinge":
            raise ValueError("PoolRanker needs a smooth loss: 'squared_hinge', 'logistic', 'squared', 'exponential'.")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], accept_large_sparse=True)
        check_classification_targets(y)
        values = np.unique(y)
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

    def _fit_labelled(self, X: Any, rows: NDArray[np.intp], relevant: NDArray[np.bool_], unread: NDArray) -> None:
        weight = None
        mean = None
        labelled = X[rows]
        if unread.any() and self.unread_weight > 0.0:
            mean = make_design(X).adjoint(unread / np.count_nonzero(unread))
            weight = np.append(np.ones(rows.size), self.unread_weight * np.count_nonzero(~relevant))
            relevant = np.append(relevant, False)
        reduced = _Reduced(labelled, mean)
        ranker = PairwiseRanker(
            self.loss, alpha=1.0 / (self.C * rows.size), tol=self.tol, max_iter=self.max_iter, warm_start=True
        )
        if self.warm_start and hasattr(self, "coef_") and self.coef_.shape[1] == X.shape[1]:
            ranker.coef_ = reduced.inwards(self.coef_[0])[None, :]
            ranker.intercept_ = np.zeros(1)
        ranker.fit(reduced.X, relevant, sample_weight=weight)
        self.coef_ = reduced.outwards(ranker.coef_[0])[None, :]
        self.intercept_ = ranker.intercept_
        self.n_iter_, self.objective_, self.optimality_ = ranker.n_iter_, ranker.objective_, ranker.optimality_

    def decision_function(self, X: ArrayLike) -> Vector:
        """Scores: the higher, the further ahead. Cost: one product with X."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return make_design(X).scores(self.coef_[0]) + self.intercept_[0]


class _Reduced:
    """The same problem in the columns that labelled rows have, and one more for the mean row outside them.

    Penalised weights lie in the span of the rows. Outside the columns of the labelled rows that is the span of the
    mean, so one column along its direction there stands for all of these.
    """

    def __init__(self, labelled: Any, mean: Vector | None) -> None:
        self._n_columns = labelled.shape[1]
        self._inside: NDArray[np.intp] | None = None
        if not sp.issparse(labelled):
            self.X = labelled if mean is None else np.vstack([labelled, mean.astype(labelled.dtype)])
            return
        count = np.bincount(labelled.indices, minlength=self._n_columns)
        self._inside = np.flatnonzero(count)
        number = np.cumsum(count > 0) - 1
        columns = number[labelled.indices]
        indptr, data, width = labelled.indptr, labelled.data, self._inside.size
        self._outside = np.zeros(0)
        self._length = 0.0
        if mean is not None:
            self._outside = np.where(count > 0, 0.0, mean)
            self._length = float(np.linalg.norm(self._outside))
            row = np.append(mean[self._inside], self._length)
            columns = np.concatenate([columns, np.arange(width + 1)])
            data = np.concatenate([data, row.astype(data.dtype)])
            indptr = np.append(indptr, indptr[-1] + width + 1)
            width += 1
        self.X = sp.csr_array((data, columns, indptr), shape=(indptr.size - 1, width))

    def inwards(self, w: Vector) -> Vector:
        if self._inside is None:
            return w.copy()
        inside = w[self._inside]
        if not self._outside.size:
            return inside
        along = float(self._outside @ w) / self._length if self._length > 0.0 else 0.0
        return np.append(inside, along)

    def outwards(self, w: Vector) -> Vector:
        if self._inside is None:
            return w.copy()
        out = np.zeros(self._n_columns)
        if self._outside.size and self._length > 0.0:
            out = self._outside * (w[-1] / self._length)
        out[self._inside] = w[: self._inside.size]
        return out
