"""X as scikit-learn checks it, with errors that say what to do about words and missing values."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.validation import validate_data

from forerank.data.frames import parses_as_number

__all__ = ["checked_rows", "has_words"]

# How NumPy begins its errors on words, and on missing values of pandas among them.
_NO_NUMBERS = ("could not convert string to float", "float() argument must be")
# From the name or number of a column of words to what to do about it.
Remedy: TypeAlias = Callable[[Any], str]


def checked_rows(
    ranker: Any, *data: Any, remedy: Remedy | None = None, reset: bool = False, **checks: Any
) -> Any:
    """X (and y) as `sklearn.utils.validation.validate_data` returns them.

    Parameters
    ----------
    ranker : estimator
    *data : X, and y where it is fitted
    remedy : callable, optional
        What to do about a column of words in a fit, a function of its name or number.
    reset : bool, default=False
        Whether this is a fit.
    **checks
        Those of `validate_data`.
    """
    try:
        return validate_data(ranker, *data, reset=reset, **checks)
    except (TypeError, ValueError) as error:
        name, text = type(ranker).__name__, str(error)
        if text.startswith("Input X contains NaN"):
            raise ValueError(_missing_values(name)) from None
        found = _first_word(data[0]) if text.startswith(_NO_NUMBERS) else None
        if found is None:
            raise
        raise ValueError(_words(name, *found, remedy or _encode, fitting=reset)) from None


def _missing_values(name: str) -> str:
    return (
        f"Input X contains NaN, and {name} takes no missing values. Use BoostedRanker, which does, "
        f"or fill them: make_pipeline(SimpleImputer(), {name}()). For a table, "
        "forerank.workflows.fit.fit fills them."
    )


def _words(name: str, column: Any, word: str, remedy: Remedy, *, fitting: bool) -> str:
    advice = remedy(column) if fitting else "Give the columns of the fit, in a frame if it had one."
    return f"Column {column!r} of X holds words, such as {word!r}; {name} takes numbers. {advice}"


def _encode(column: Any) -> str:
    return (
        "Encode it with OneHotEncoder in a pipeline, or fit the table with "
        "forerank.workflows.fit.fit, which prepares words, dates and missing values."
    )


def has_words(column: Any) -> bool:
    """Whether a column of a pandas or polars frame has strings among its values."""
    return any(isinstance(value, str) for value in _values(column))


def _first_word(X: Any) -> tuple[Any, str] | None:
    """The first column with a string that is no number, by name or number, and that string."""
    for name, values in _columns(X):
        for value in values:
            if isinstance(value, str) and not parses_as_number(value):
                return name, str(value)
    return None


def _columns(X: Any) -> Iterator[tuple[Any, Any]]:
    if hasattr(X, "columns"):
        yield from ((name, _values(X[name])) for name in X.columns)
    else:
        rows = np.asarray(X)
        yield from enumerate(rows.T if rows.ndim == 2 and rows.dtype.kind in "OU" else ())


def _values(column: Any) -> list[Any]:
    """The values of a column of a frame; none of one of numbers or dates."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "biufcmM" or (hasattr(column.dtype, "is_numeric") and column.dtype.is_numeric()):
        return []
    return column.to_list()
