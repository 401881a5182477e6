"""The columns of categories of a matrix or a frame."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from forerank._text import listed
from forerank._typing import Matrix, Vector
from forerank._validation import is_integer
from forerank.estimators.checked_rows import has_words

__all__ = [
    "category_columns",
    "category_values",
    "check_codes",
    "is_constant",
    "remedy_of_words",
    "with_codes",
]

# Largest code of a category: bit sets have as many bits.
_MAX_CODE = 1 << 24


def category_columns(given: Any, X: Any) -> tuple[int, ...]:
    """The numbers of the columns of categories.

    `given` is None, "from_dtype", a mask, or numbers or names of columns.
    """
    if given is None:
        return ()
    names = [str(name) for name in getattr(X, "columns", ())]
    if isinstance(given, str):
        if given != "from_dtype":
            raise ValueError(
                'categorical_features must be None, "from_dtype", or a list or mask of columns; '
                f"got {given!r}."
            )
        return (
            tuple(k for k, name in enumerate(X.columns) if _is_category(X[name])) if names else ()
        )
    n_columns = X.shape[1] if hasattr(X, "shape") else np.asarray(X).shape[1]
    entries = list(given) if isinstance(given, Iterable) else [given]
    if entries and all(isinstance(entry, bool | np.bool_) for entry in entries):
        if len(entries) != n_columns:
            raise ValueError(
                f"categorical_features is a mask of {len(entries)} columns; X has {n_columns}."
            )
        return tuple(np.flatnonzero(entries).tolist())
    return tuple(sorted({_number(entry, names, n_columns) for entry in entries}))


def _number(entry: Any, names: list[str], n_columns: int) -> int:
    if isinstance(entry, str) and entry in names:
        return names.index(entry)
    if is_integer(entry) and -n_columns <= entry < n_columns:
        return int(entry) % n_columns
    known = f"its columns are {listed(names)}" if names else f"it has {n_columns} columns"
    raise ValueError(f"categorical_features: X has no column {entry!r}; {known}.")


def _is_category(column: Any) -> bool:
    """Whether a column of a pandas or polars frame has a type of categories."""
    return str(column.dtype).partition("(")[0] in ("category", "Categorical", "Enum")


def category_values(X: Any, columns: tuple[int, ...]) -> list[list[Any] | None]:
    """The values of each column of words or with a type of categories; None for one of codes."""
    if not hasattr(X, "columns"):
        return [None] * len(columns)
    given = [X[X.columns[k]] for k in columns]
    return [
        _values(column) if _is_category(column) or has_words(column) else None for column in given
    ]


def _values(column: Any) -> list[Any]:
    if hasattr(column.dtype, "categories"):  # pandas, and Enum of polars
        values = list(column.dtype.categories)
    else:  # words, and Categorical of polars, which has no list of its own
        known = {value for value in column.to_list() if not _is_missing(value)}
        values = sorted(known, key=lambda value: (str(value), type(value).__name__))
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or the missing value of pandas, which equals nothing."""
    return value is None or type(value).__name__ == "NAType" or value != value


def remedy_of_words(column: Any) -> str:
    """What to do about a column of words, by its name in a frame or its number in an array."""
    if not isinstance(column, str):
        return "Encode it with OrdinalEncoder, and list it in categorical_features."
    return (
        f"If these are categories, name {column!r} in the list categorical_features, or give the "
        'column the type of categories, X[column].astype("category") in pandas, and set '
        'categorical_features="from_dtype". Texts need forerank.workflows.fit.fit.'
    )


def with_codes(X: Any, columns: tuple[int, ...], values: list[list[Any] | None]) -> Any:
    """A frame with codes in place of known values, and NaN for all others."""
    codes: dict[Any, Vector] = {}
    for k, known in zip(columns, values, strict=True):
        if known is not None and hasattr(X, "columns"):
            number = {value: float(code) for code, value in enumerate(known)}
            column = X[X.columns[k]]
            found = [number.get(value, np.nan) for value in column.to_list()]
            codes[X.columns[k]] = np.array(found, dtype=np.float64)
    if not codes:
        return X
    if hasattr(X, "with_columns"):
        import polars

        return X.with_columns([polars.Series(name, column) for name, column in codes.items()])
    X = X.copy(deep=False)
    for name, column in codes.items():
        X[name] = column
    return X


def check_codes(X: Matrix, columns: tuple[int, ...]) -> None:
    """ValueError where a category is not a code 0, 1, 2, ... or NaN."""
    for k in columns:
        values = _column(X, k)
        values = values[~np.isnan(values)]
        wrong = (values < 0.0) | (values > _MAX_CODE) | (values != np.floor(values))
        if wrong.any():
            raise ValueError(
                f"Column {k} is categorical, and its values must be codes 0, 1, 2, ... up to "
                f"{_MAX_CODE:,} or NaN; found {values[wrong][0]:g}. Encode it with OrdinalEncoder."
            )


def is_constant(X: Matrix) -> bool:
    """Whether every column has one value only; missing values count as one."""
    for k in range(X.shape[1]):
        values = _column(X, k)
        first = values[0]
        differs = ~np.isnan(values) if np.isnan(first) else values != first
        if differs.any():
            return False
    return True


def _column(X: Matrix, k: int) -> Vector:
    return X[:, [k]].toarray()[:, 0] if sp.issparse(X) else X[:, k]
