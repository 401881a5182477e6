"""Columns of a table for trees: numbers as they are, categories as codes, texts as a few columns.

Trees need neither scales nor one column per category, and treat missing values (NaN) themselves.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.validation import check_is_fitted

from forerank._typing import Vector
from forerank.data.date_parts import date_part, varying_parts
from forerank.data.frames import holds_dates
from forerank.data.transformers import category_codes, column_floats, column_texts

__all__ = ["CategoryCodes", "RawColumns", "TextComponents"]

# Words of a text column that components are made of: the most frequent ones.
_MOST_WORDS = 20_000


class RawColumns(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Numbers, and dates as days since 1970 with hour, weekday and month where they vary.

    Missing and infinite values are NaN.

    Attributes
    ----------
    dates_ : list of bool
        Whether the column holds dates.
    parts_ : list of list of str
        For each column, the parts of dates that have a column.
    widths_ : list of int
        Number of output columns of each column.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the parts of dates that vary."""
        self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.n_features_in_ = X.shape[1]
        self.dates_ = [holds_dates(X[name]) for name in self.feature_names_in_]
        self.parts_ = [
            [part for part, _ in varying_parts(column_floats(X[name], dates=True))] if date else []
            for name, date in zip(self.feature_names_in_, self.dates_, strict=True)
        ]
        self.widths_ = [1 + len(parts) for parts in self.parts_]
        return self

    def transform(self, X: Any) -> NDArray:
        """The numbers, days and parts of dates, as an array."""
        check_is_fitted(self, "parts_")
        columns = list[Vector]()
        for name, is_date, parts in zip(
            self.feature_names_in_, self.dates_, self.parts_, strict=True
        ):
            values = column_floats(X[name], dates=is_date)
            columns.append(np.where(np.isfinite(values), values, np.nan))
            columns += [date_part(values, part) for part in parts]
        return np.column_stack(columns)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Names such as "age", "date", "date weekday"."""
        check_is_fitted(self, "parts_")
        names = [
            f"{name} {part}".strip()
            for name, parts in zip(self.feature_names_in_, self.parts_, strict=True)
            for part in ("", *parts)
        ]
        return np.array(names, dtype=object)


class CategoryCodes(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Codes of categories from 0, the most frequent first; missing and unknown ones are NaN.

    Parameters
    ----------
    max_codes : int, default=255
        Number of codes of a column; the values beyond the most frequent ones share the last.

    Attributes
    ----------
    values_ : list of arrays of str
        The values of each column, the most frequent first.
    """

    is_categorical = True

    def __init__(self, max_codes: int = 255) -> None:
        self.max_codes = max_codes

    def fit(self, X: Any, y: Any = None) -> Self:
        """Count the values."""
        self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.n_features_in_ = X.shape[1]
        self.values_ = [_by_frequency(X[name]) for name in self.feature_names_in_]
        return self

    def transform(self, X: Any) -> NDArray:
        """A column of codes for each column."""
        check_is_fitted(self, "values_")
        out = np.empty((len(X), self.n_features_in_))
        for k, name in enumerate(self.feature_names_in_):
            codes, values = category_codes(X[name])
            number = {value: min(j, self.max_codes - 1) for j, value in enumerate(self.values_[k])}
            found = np.array([number.get(value, np.nan) for value in values], dtype=np.float64)
            out[:, k] = found[codes]
        return out

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """The names of the columns."""
        check_is_fitted(self, "values_")
        return self.feature_names_in_


def _by_frequency(column: Any) -> NDArray:
    """The distinct values as strings, the most frequent first, equally frequent ones in order."""
    codes, values = category_codes(column)
    counts = np.bincount(codes, minlength=len(values))
    seen = [j for j in range(len(values)) if counts[j] and values[j] != ""]
    return values[sorted(seen, key=lambda j: (-counts[j], values[j]))]


class TextComponents(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """A few columns of one column of texts: the truncated SVD of the tf-idf of its words.

    Parameters
    ----------
    n_components : int, default=20
    max_rows : int, default=20_000
        Number of rows, equally spaced, that words and components are found on.
    random_state : int, default=0

    Attributes
    ----------
    tfidf_ : TfidfVectorizer
    svd_ : TruncatedSVD or None
        None where the texts have a single word, whose column is then the only one.
    """

    def __init__(
        self, n_components: int = 20, max_rows: int = 20_000, random_state: int = 0
    ) -> None:
        self.n_components = n_components
        self.max_rows = max_rows
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the words and the components."""
        self.n_features_in_ = 1
        texts = column_texts(X.iloc[:: max(1, -(-len(X) // self.max_rows))])
        self.tfidf_ = TfidfVectorizer(sublinear_tf=True, max_features=_MOST_WORDS, dtype=np.float64)
        try:
            matrix = self.tfidf_.fit_transform(texts)
        except ValueError as error:
            name = str(X.columns[0])
            raise ValueError(f"The column {name!r} has no words ({error}); drop it.") from None
        # A model file holds each number of NumPy as an array.
        words = self.tfidf_.vocabulary_.items()
        self.tfidf_.vocabulary_ = {word: int(column) for word, column in words}
        n_components = min(self.n_components, matrix.shape[1] - 1)
        self.svd_ = None
        if n_components > 0:
            svd = TruncatedSVD(n_components, random_state=self.random_state)
            self.svd_ = svd.fit(matrix)
        return self

    def transform(self, X: Any) -> NDArray:
        """The components, as an array; zeros for a text without known words."""
        check_is_fitted(self, "tfidf_")
        matrix = self.tfidf_.transform(column_texts(X))
        return matrix.toarray() if self.svd_ is None else self.svd_.transform(matrix)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Names such as "review component 1"."""
        prefix = "" if input_features is None else f"{input_features[0]} "
        width = 1 if self.svd_ is None else self.svd_.components_.shape[0]
        return np.array([f"{prefix}component {j + 1}" for j in range(width)], dtype=object)
