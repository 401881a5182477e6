"""Transformers of scikit-learn that turn the columns of a table into the columns of a matrix.

Numbers and dates are imputed and scaled, categories become one-hot columns (rare ones together),
texts tf-idf. `TableColumns` joins them, a block of rows at a time.
"""

import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from forerank._typing import Index, Vector
from forerank.data.frames import distinct, holds_dates

__all__ = [
    "CategoryColumns",
    "NumberColumns",
    "TableColumns",
    "TextColumn",
    "category_codes",
    "column_floats",
    "column_texts",
    "one_hot_columns",
]

# Number of rows that are transformed at a time.
_BLOCK_ROWS = 1 << 14
# First rows that decide whether a matrix is sparse.
_FIRST_ROWS = 1 << 16
# Share of rows below which a category is rare.
_RARE_SHARE = 0.001
# Share of nonzero entries from which the matrix is dense.
_DENSE_SHARE = 0.6
# Booleans as Python and R write them, and as strings of this package.
_BOOLEANS = {"True": "true", "TRUE": "true", "False": "false", "FALSE": "false"}
_MICROSECONDS_PER_DAY = 86_400_000_000
# Words of a text column that have a column of the matrix: the most frequent ones.
_MOST_WORDS = 100_000


class TableColumns(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Transformers for groups of columns, their outputs concatenated horizontally.

    Like ColumnTransformer, which makes each part complete and then stacks them and so needs the
    memory of the matrix more than twice, also while it is fitted. This one fills the matrix in
    blocks of rows and needs its memory once.

    Parameters
    ----------
    steps : list of (name, transformer, columns)
        The transformers take pandas frames.

    Attributes
    ----------
    transformers_ : list of (name, fitted transformer, columns)
    output_indices_ : dict
        For each step, the slice of its columns in the matrix.
    categorical_ : list of int
        Columns of the matrix that are codes of categories, for trees.
    """

    def __init__(self, steps: list[tuple[str, Any, list[str]]]) -> None:
        self.steps = steps

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit each step on its columns."""
        self.transformers_ = [
            (name, clone(step).fit(X[columns]), columns) for name, step, columns in self.steps
        ]
        names = [name for *_, columns in self.steps for name in columns]
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = self.feature_names_in_.size
        first, self.output_indices_ = 0, dict[str, slice]()
        self.categorical_ = list[int]()
        for name, step, columns in self.transformers_:
            width = len(step.get_feature_names_out(columns))
            self.output_indices_[name] = slice(first, first + width)
            if getattr(step, "is_categorical", False):
                self.categorical_ += range(first, first + width)
            first += width
        self.sparse_output_ = self._is_sparse(X.iloc[:_FIRST_ROWS])
        return self

    def _is_sparse(self, X: Any) -> bool:
        """Whether the matrix of these rows has few entries that are not zero."""
        n_stored = n_entries = 0
        for begin in range(0, max(len(X), 1), _BLOCK_ROWS):
            some = self._stacked(X.iloc[begin : begin + _BLOCK_ROWS])
            if not sp.issparse(some):
                return False
            n_stored, n_entries = n_stored + some.nnz, n_entries + int(np.prod(some.shape))
        return n_stored < _DENSE_SHARE * n_entries

    def transform(self, X: Any) -> Any:
        """The matrix: sparse where most of it is zero, else dense."""
        return self.transform_rows(X, np.arange(len(X)))

    def transform_rows(
        self, X: Any, rows: NDArray[np.integer], dtype: type[np.floating] = np.float64
    ) -> Any:
        """The matrix of these rows, in this order, of numbers of this type."""
        check_is_fitted(self, "transformers_")
        missing = [name for name in self.feature_names_in_ if name not in X.columns]
        if missing:
            raise ValueError(
                f"The columns {missing} are missing; the transformer was fitted on them."
            )
        begins = range(0, len(rows), _BLOCK_ROWS)
        blocks = (self._stacked(X.iloc[rows[begin : begin + _BLOCK_ROWS]]) for begin in begins)
        shape = (len(rows), max(part.stop for part in self.output_indices_.values()))
        return (_filled_sparse if self.sparse_output_ else _filled_dense)(blocks, shape, dtype)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """The names of the columns of the matrix."""
        check_is_fitted(self, "transformers_")
        names = [step.get_feature_names_out(columns) for _, step, columns in self.transformers_]
        return np.concatenate(names)

    def origins(self) -> list[str]:
        """For each column of the matrix, the column of the table that it comes from."""
        origins: list[str] = []
        for name, step, columns in self.transformers_:
            part = self.output_indices_[name]
            width = (part.stop - part.start) // len(columns)
            widths = getattr(step, "widths_", [width] * len(columns))
            for column, n_columns in zip(columns, widths, strict=True):
                origins += [column] * n_columns
        return origins

    def _stacked(self, X: Any) -> Any:
        parts = [step.transform(X[columns]) for _, step, columns in self.transformers_]
        if not any(sp.issparse(part) for part in parts):
            return np.hstack([np.asarray(part) for part in parts])
        matrices = [sp.csr_matrix(part) for part in parts]
        for matrix in matrices:
            # An untrusted model file may hold indices of columns that do not exist.
            matrix.check_format(full_check=True)
        return sp.hstack(matrices, format="csr")


def _filled_dense(
    blocks: Iterator[Any], shape: tuple[int, int], dtype: type[np.floating]
) -> NDArray:
    out, begin = np.empty(shape, dtype), 0
    for block in blocks:
        out[begin : begin + block.shape[0]] = block.toarray() if sp.issparse(block) else block
        begin += block.shape[0]
    return out


def _filled_sparse(
    blocks: Iterator[sp.csr_matrix], shape: tuple[int, int], dtype: type[np.floating]
) -> sp.csr_matrix:
    """Blocks stacked in arrays that are resized in place, so that no entry is in memory twice."""
    data, indices = np.empty(0, dtype), np.empty(0, dtype=np.int32)
    indptr, row = np.zeros(shape[0] + 1, dtype=np.int64), 0
    for block in blocks:
        used, n_rows = int(indptr[row]), block.shape[0]
        end = used + block.nnz
        if end > data.size:
            share = (row + n_rows) / shape[0]
            size = int(end / share * 1.02) + 1024
            data.resize(size, refcheck=False)
            indices.resize(size, refcheck=False)
        data[used:end], indices[used:end] = block.data, block.indices
        indptr[row + 1 : row + 1 + n_rows] = used + block.indptr[1:]
        row += n_rows
    used = int(indptr[-1])
    data.resize(used, refcheck=False)
    indices.resize(used, refcheck=False)
    indptr = indptr.astype(np.int32) if used < 2**31 else indptr
    return sp.csr_matrix((data, indices, indptr), shape=shape)


class CategoryColumns(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """One-hot columns, one per value; rare values share one, and so do unknown values.

    Like scikit-learn's OneHotEncoder, but on the distinct values of a column instead of its rows:
    the cost for a million rows of a dozen values is that of their codes. A missing value is a value
    like others.

    Parameters
    ----------
    min_frequency : float or int, default=0.001
        Values in a smaller share of the rows are rare; an integer is a number of rows, and values
        in less than 0.001 of the rows are rare, too.
    max_categories : int, default=200
        Values beyond the most frequent ones are rare, too.

    Attributes
    ----------
    encoders_ : list of OneHotEncoder
        One for each column, of the values as strings; a missing one is the empty string.
    widths_ : list of int
        Number of output columns of each.
    """

    def __init__(self, min_frequency: float = _RARE_SHARE, max_categories: int = 200) -> None:
        self.min_frequency = min_frequency
        self.max_categories = max_categories

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the values and which of them are rare."""
        self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.n_features_in_ = X.shape[1]
        self.encoders_ = [self._encoder(X[name]) for name in self.feature_names_in_]
        self.widths_ = [len(encoder.get_feature_names_out()) for encoder in self.encoders_]
        return self

    def _encoder(self, column: Any) -> OneHotEncoder:
        codes, values = category_codes(column)
        counts = np.bincount(codes, minlength=len(values))
        values, counts = values[counts > 0], counts[counts > 0]
        fewest = self.min_frequency * codes.size
        if isinstance(self.min_frequency, int):
            fewest = max(self.min_frequency, _RARE_SHARE * codes.size)
        frequent = counts >= fewest
        if frequent.sum() + (not frequent.all()) > self.max_categories:
            frequent[np.argsort(-counts, kind="stable")[self.max_categories - 1 :]] = False
        # Frequent values twice and rare ones once: the encoder need not see the rows themselves.
        sample = np.concatenate([values[frequent], values])
        encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=2)
        return encoder.fit(sample[:, None])

    def transform(self, X: Any) -> sp.csr_matrix:
        """A sparse matrix; an unknown value has only zeros where the column has no rare values."""
        check_is_fitted(self, "encoders_")
        columns = np.empty((len(X), self.n_features_in_), dtype=np.int32)
        first = 0
        for k, encoder in enumerate(self.encoders_):
            codes, values = category_codes(X[self.feature_names_in_[k]])
            columns[:, k] = one_hot_columns(encoder, values)[codes]
            columns[columns[:, k] >= 0, k] += first
            first += self.widths_[k]
        known = columns >= 0
        indptr = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
        return sp.csr_matrix((np.ones(indptr[-1]), columns[known], indptr), shape=(len(X), first))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """COLUMN=VALUE, and COLUMN=(rare) for the rare values together."""
        check_is_fitted(self, "encoders_")
        names = []
        for column, encoder in zip(self.feature_names_in_, self.encoders_, strict=True):
            for name in encoder.get_feature_names_out(["x"]):
                value = name.removeprefix("x_")
                value = {"": "(missing)", "infrequent_sklearn": "(rare)"}.get(value, value)
                names.append(f"{column}={value}")
        return np.array(names, dtype=object)


def one_hot_columns(encoder: OneHotEncoder, values: NDArray) -> Index:
    """The output column of each value; -1 for a value that has none."""
    if not len(values):
        return np.empty(0, dtype=np.intp)
    with warnings.catch_warnings(), sklearn.config_context(transform_output="default"):
        warnings.simplefilter("ignore", UserWarning)  # on unknown values, which are expected
        rows = encoder.transform(values[:, None])
    columns = np.full(len(values), -1, dtype=np.intp)
    columns[np.diff(rows.indptr) == 1] = rows.indices
    return columns


def category_codes(column: Any) -> tuple[NDArray[np.integer], NDArray]:
    """The number of each row's value, and the values as strings; a missing one is the empty string.

    The column is one of pandas, or a dictionary column of pyarrow.
    """
    import pandas as pd

    if _is_arrow(column):
        column = column.unify_dictionaries().combine_chunks()
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        values = column.dictionary.to_pylist()
    elif isinstance(column.dtype, pd.CategoricalDtype):
        codes, values = column.cat.codes.to_numpy(), column.cat.categories.tolist()
    else:
        codes, values = distinct(column)
    texts = np.array([_BOOLEANS.get(str(value), str(value)) for value in values], dtype=object)
    if codes.size and codes.min() < 0:
        codes = np.where(codes < 0, len(texts), codes)
        texts = np.append(texts, "")
    return codes, texts


def _is_arrow(column: Any) -> bool:
    return hasattr(column, "combine_chunks")


class NumberColumns(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Numbers, and dates as days since 1970: missing ones filled with the median, then centred and
    scaled.

    The result of SimpleImputer followed by StandardScaler, computed one column at a time and so
    without copies of all of them. Infinite numbers are missing.

    Attributes
    ----------
    median_, mean_, scale_ : arrays
        Of each column; mean and standard deviation after missing values are filled.
    low_, high_ : arrays
        The smallest and the largest value of each column; in model files of early versions, None.
    dates_ : list of bool
        Whether the column holds dates.
    """

    low_: Vector | None = None
    high_: Vector | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute median, mean, scale and range."""
        self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.n_features_in_ = X.shape[1]
        self.median_, self.mean_, self.scale_, low, high = np.zeros((5, self.n_features_in_))
        self.dates_ = [holds_dates(X[name]) for name in self.feature_names_in_]
        for k, name in enumerate(self.feature_names_in_):
            values = column_floats(X[name], dates=self.dates_[k])
            known = np.isfinite(values)
            if known.any():
                self.median_[k] = np.median(values if known.all() else values[known])
            values = np.where(known, values, self.median_[k])
            low[k], high[k] = values.min(initial=np.inf), values.max(initial=-np.inf)
            largest = max(np.abs(values).max(initial=0.0), np.finfo(np.float64).tiny)
            values /= largest  # squares of large numbers overflow
            self.mean_[k], spread = largest * values.mean(), largest * values.std()
            # The spread of equal values is rounding error, by which nothing should be scaled.
            self.scale_[k] = spread if spread > 1e-14 * abs(self.mean_[k]) else 1.0
        self.low_, self.high_ = low, high
        return self

    def transform(self, X: Any) -> Vector:
        """One column of scaled numbers for each column."""
        check_is_fitted(self, "median_")
        names = self.feature_names_in_
        return np.column_stack([self.transform_column(X[name], k) for k, name in enumerate(names)])

    def transform_column(self, column: Any, k: int) -> Vector:
        """The scaled numbers of column k."""
        values = column_floats(column, dates=self.dates_[k])
        values = np.where(np.isfinite(values), values, self.median_[k])
        values -= self.mean_[k]
        values /= self.scale_[k]
        return values


def column_floats(column: Any, *, dates: bool = False) -> Vector:
    """Numbers as doubles, dates as days since 1970, missing ones as NaN; of pandas or pyarrow."""
    import pandas as pd

    if _is_arrow(column):
        from pyarrow import types

        if types.is_floating(column.type) or types.is_integer(column.type):
            return column.to_numpy().astype(np.float64, copy=False)
        column = column.to_pandas()
    numeric = pd.api.types.is_numeric_dtype(column.dtype)
    if numeric or not dates:
        if not numeric:  # strings and decimals that are numbers
            column = pd.to_numeric(column.astype(object)).astype(np.float64)
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    # Microseconds: nanoseconds end in the year 2262, and an unlimited date is often 9999-12-31.
    times = column.to_numpy(dtype="datetime64[us]")
    return np.where(np.isnat(times), np.nan, times.astype(np.int64) / _MICROSECONDS_PER_DAY)


class TextColumn(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """tf-idf of the words of one column; a missing text has no words."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the words and their frequencies."""
        self.n_features_in_ = 1
        self.tfidf_ = TfidfVectorizer(sublinear_tf=True, max_features=_MOST_WORDS, dtype=np.float64)
        try:
            self.tfidf_.fit(column_texts(X))
        except ValueError as error:
            name = str(X.columns[0])
            raise ValueError(f"The column {name!r} has no words ({error}); drop it.") from None
        # A model file holds each number of NumPy as an array, and 100,000 arrays take minutes to
        # write.
        words = self.tfidf_.vocabulary_.items()
        self.tfidf_.vocabulary_ = {word: int(column) for word, column in words}
        return self

    def transform(self, X: Any) -> Any:
        """A sparse matrix with a column per word."""
        check_is_fitted(self, "tfidf_")
        return self.tfidf_.transform(column_texts(X))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """The words, after the name of the column."""
        prefix = "" if input_features is None else f"{input_features[0]}: "
        words = self.tfidf_.get_feature_names_out()
        return np.array([f"{prefix}{word}" for word in words], dtype=object)


def column_texts(X: Any) -> Any:
    """The first column of a frame as strings, a missing text as the empty one."""
    column = X.iloc[:, 0].astype(object)
    return column.where(column.notna(), "").astype(str)
