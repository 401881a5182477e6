"""Checks of what is given to a labelling loop: rows, labels, batches, seeds."""

import re
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from forerank._validation import is_integer, is_number
from forerank.active.stopping import StoppingRule
from forerank.active.strategies import Strategy

__all__ = [
    "NOTHING_STORED",
    "as_rows",
    "check_batch",
    "check_label",
    "check_relevant_from",
    "check_row",
    "check_stopping",
    "describe",
    "rows_and_labels",
    "seed_number",
]

NOTHING_STORED = "No label of this call was stored."


def check_stopping(stopping: Any, strategy: Strategy) -> None:
    """TypeError unless `stopping` is a rule or None; a warning where its guarantee is void."""
    if stopping is None:
        return
    if not isinstance(stopping, StoppingRule):
        raise TypeError(f"stopping must be a stopping rule such as Budget(100); got {stopping!r}.")
    if stopping.guarantees_recall and not strategy.relevant_first:
        warnings.warn(
            f"RecallBound assumes a strategy that selects relevant rows first, and {strategy!r} "
            "does not, so its guarantee does not hold. Use Greedy, or another stopping rule.",
            UserWarning,
            stacklevel=4,
        )


def rows_and_labels(rows: Any, labels: Any) -> tuple[list[Any], list[Any]]:
    """Lists of rows and labels, of equal length; a single row and label are lists of one."""
    rows = _scalar(rows)
    if not isinstance(rows, Iterable) or isinstance(rows, str):
        rows, labels = [rows], [_scalar(labels)]
    elif not isinstance(labels, Iterable) or isinstance(labels, str):
        raise ValueError(f"Several rows have the one label {labels!r}; give one label per row.")
    rows, labels = list(rows), list(labels)
    if len(rows) != len(labels):
        raise ValueError(f"{len(rows)} rows have {len(labels)} labels; give one label per row.")
    return rows, labels


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value


def check_row(row: Any, n_rows: int) -> int:
    """The number of a row; ValueError where there is no such row."""
    if not is_integer(row):
        raise ValueError(f"Rows are integers from 0 to {n_rows - 1}; got {row!r}.")
    if not 0 <= row < n_rows:
        raise ValueError(f"There is no row {row}: rows are numbered from 0 to {n_rows - 1}.")
    return int(row)


def check_label(label: Any, row: int, n_grades: int) -> int:
    """The label as an integer; ValueError where it is none of the grades."""
    known = is_number(label) or isinstance(label, bool | np.bool_)
    if known and 0 <= label < n_grades and int(label) == label:
        return int(label)
    expected = "1 (relevant) or 0 (irrelevant)"
    if n_grades > 2:
        expected = f"a grade from 0 to {n_grades - 1}"
    raise ValueError(f"The label of row {row} is {label!r}; expected {expected}. {NOTHING_STORED}")


def check_relevant_from(grade: Any, n_grades: int) -> int:
    """The smallest relevant grade; ValueError unless it is one of the grades above the lowest."""
    if not is_integer(grade) or not 1 <= grade < n_grades:
        raise ValueError(f"relevant_from must be a grade from 1 to {n_grades - 1}; got {grade!r}.")
    return int(grade)


def check_batch(batch: Any) -> int | float:
    """The number of rows of a batch, or the share that it is of the rows labelled so far."""
    if is_integer(batch) and batch >= 1:
        return int(batch)
    if isinstance(batch, float | np.floating) and 0.0 < batch < 1.0:
        return float(batch)
    raise ValueError(f"batch must be an integer >= 1, or a share between 0 and 1; got {batch!r}.")


def as_rows(X: Any) -> Any:
    """X so that rows can be taken by number: CSR, a data frame, or an array (of objects where X is
    a list of texts).
    """
    if sp.issparse(X):
        return X.tocsr()
    if hasattr(X, "columns") and hasattr(X, "shape"):
        return X
    array = np.asarray(X)
    return np.asarray(X, dtype=object) if array.dtype.kind in "US" else array


def describe(ranker: Any) -> str:
    """Class and parameters of the ranker, the same text in every process."""
    with config_context(print_changed_only=True):
        untruncated = {"N_CHAR_MAX": 100_000} if isinstance(ranker, BaseEstimator) else {}
        text = ranker.__repr__(**untruncated)
    return re.sub(r" at 0x[0-9a-f]+", "", " ".join(text.split()))


def seed_number(random_state: Any) -> int:
    """A seed for generators; drawn where `random_state` is not an integer."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if not is_integer(random_state):
        return int(check_random_state(random_state).randint(2**31))
    if random_state < 0:
        raise ValueError(f"random_state must not be negative; got {random_state!r}.")
    return int(random_state)
