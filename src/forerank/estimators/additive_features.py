"""Additive features: splines of each column, for linear rankers that are sums of curves."""

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from forerank._validation import check_number, refuse_dask
from forerank.data.splines import ColumnSpline, curves_per_column, first_values

__all__ = ["AdditiveFeatures"]


class AdditiveFeatures(TransformerMixin, BaseEstimator):
    """Each column as a line and a few curves, so that a linear ranker is a sum of smooth functions.

    A column of a dense array becomes a line (centred and scaled), up to six curves that are
    uncorrelated with it and ordered from smooth to rough, and a flag where values are missing. The
    ridge penalty of a linear ranker is then that of smoothing splines (`forerank.data.splines`).
    Skewed amounts are taken on a logarithmic scale. A column of two values has a line only, and one
    of zeros and ones is not scaled. A sparse matrix is returned as it is.

    Parameters
    ----------
    n_curves : int, optional
        Most curves of a column; by default up to six, and fewer where there are less than 60 rows
        for each column of more than two values.

    Attributes
    ----------
    splines_ : list of forerank.data.splines.ColumnSpline
        One for each column; empty where X was sparse.
    n_features_in_ : int
    feature_names_in_ : array
        Only where X has column names.

    Notes
    -----
    The cost of a column is a sort for its fit, and about 10 operations for each value and curve.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from forerank import PointwiseRanker
    >>> x = np.linspace(-2, 2, 400)[:, None]
    >>> y = np.abs(x[:, 0]) < 1  # a line cannot rank these
    >>> model = make_pipeline(AdditiveFeatures(), PointwiseRanker(alpha=1e-3)).fit(x, y)
    >>> float(np.mean(model.predict(x) == y)) > 0.95
    True
    """

    def __init__(self, n_curves: int | None = None) -> None:
        self.n_curves = n_curves

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Find scales, knots and curves of each column."""
        if self.n_curves is not None:
            check_number("n_curves", self.n_curves, low=0, integer=True)
        rows = self._checked(X, reset=True)
        self.sparse_input_, self.splines_ = sp.issparse(rows), list[ColumnSpline]()
        if self.sparse_input_:
            return self
        few = [first_values(column) for column in rows.T]
        n_curves = self.n_curves
        if n_curves is None:
            n_curves = curves_per_column(rows.shape[0], sum(each.size > 2 for each in few))
        for values, column in zip(few, rows.T, strict=True):
            spline = ColumnSpline.fitted(np.asarray(column, dtype=np.float64), n_curves)
            if np.array_equal(values, [0.0, 1.0]):
                spline.mean, spline.scale = 0.0, 1.0
            self.splines_.append(spline)
        return self

    def transform(self, X: ArrayLike) -> Any:
        """The lines, curves and flags in the precision of X; a sparse matrix as it is."""
        check_is_fitted(self)
        rows = self._checked(X, reset=False)
        if self.sparse_input_:
            return rows if sp.issparse(rows) else sp.csr_matrix(rows)
        rows = rows.toarray() if sp.issparse(rows) else rows
        out = np.empty((rows.shape[0], sum(each.width for each in self.splines_)), rows.dtype)
        first = 0
        for k, spline in enumerate(self.splines_):
            column = np.asarray(rows[:, k], dtype=np.float64)
            out[:, first : first + spline.width] = spline.transform(column)
            first += spline.width
        return out

    def _checked(self, X: ArrayLike, *, reset: bool) -> Any:
        remedy = "Transform by partition: X.map_partitions or X.map_blocks."
        refuse_dask(X, "AdditiveFeatures", remedy)
        types = [np.float64, np.float32]
        finite: Any = "allow-nan"
        checked = {"accept_sparse": "csr", "dtype": types, "ensure_all_finite": finite}
        return validate_data(self, X, reset=reset, **checked)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Names such as "a", "a spline 1" and "a missing"."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        if self.sparse_input_:
            return names
        pairs = zip(self.splines_, names, strict=True)
        return np.array([each for spline, name in pairs for each in spline.names(name)], object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
