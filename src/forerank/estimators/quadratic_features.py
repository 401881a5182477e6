"""Quadratic features: the explicit feature map of the polynomial kernel (x . z + c)^2."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from forerank._validation import check_number, refuse_dask

__all__ = ["QuadraticFeatures"]


class QuadraticFeatures(TransformerMixin, BaseEstimator):
    """Products of two columns, scaled so that inner products are the kernel (x . z + offset)^2.

    A linear ranker on these columns is that ranker with the quadratic kernel, in its primal form:
    RankSVM quadratic of raykar2007 is ``make_pipeline(StandardScaler(), QuadraticFeatures(),
    PairwiseRanker("hinge"))``. The columns are sqrt(2 offset) x_k, x_k^2 and sqrt(2) x_k x_l for
    k < l; the constant of the kernel is omitted, because it does not change a ranking.
    scikit-learn's `PolynomialFeatures` scales the columns differently, which changes the penalty.

    Parameters
    ----------
    offset : float, default=1.0
        The constant added to the inner product; 0 omits the linear columns.

    Attributes
    ----------
    offset_ : float
        The constant at the time of the fit.
    n_features_in_ : int
    feature_names_in_ : array
        Only where X has column names.

    Notes
    -----
    d columns become d (d + 3) / 2. For more than a few hundred take
    `sklearn.kernel_approximation.Nystroem` with kernel="poly", degree=2 instead.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> Z = QuadraticFeatures().fit_transform(X)
    >>> round(float(Z[0] @ Z[1]) + 1.0, 6)  # (1 * 3 + 2 * 4 + 1)^2
    144.0
    """

    def __init__(self, offset: float = 1.0) -> None:
        self.offset = offset

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Check the parameters and set the number of columns."""
        check_number("offset", self.offset, low=0.0)
        self._checked(X, reset=True)
        self.offset_ = float(self.offset)
        return self

    def _checked(self, X: ArrayLike, *, reset: bool) -> NDArray:
        remedy = "Transform by partition: X.map_partitions or X.map_blocks."
        refuse_dask(X, "QuadraticFeatures", remedy)
        return np.asarray(validate_data(self, X, dtype=[np.float64, np.float32], reset=reset))

    def transform(self, X: ArrayLike) -> NDArray:
        """The products, as an array in the precision of X."""
        check_is_fitted(self)
        rows = self._checked(X, reset=False)
        left, right = np.triu_indices(self.n_features_in_)
        plain = self.n_features_in_ if self.offset_ > 0.0 else 0
        out = np.empty((rows.shape[0], plain + left.size), dtype=rows.dtype)
        out[:, :plain] = np.sqrt(2.0 * self.offset_) * rows[:, :plain]
        np.multiply(rows[:, left], rows[:, right], out=out[:, plain:])
        out[:, plain:] *= np.where(left == right, 1.0, np.sqrt(2.0)).astype(rows.dtype)
        return out

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Names such as "a", "a^2" and "a b", without the scales."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        left, right = np.triu_indices(self.n_features_in_)
        products = [
            f"{names[k]}^2" if k == m else f"{names[k]} {names[m]}"
            for k, m in zip(left, right, strict=True)
        ]
        return np.array([*(names if self.offset_ > 0.0 else []), *products], dtype=object)
