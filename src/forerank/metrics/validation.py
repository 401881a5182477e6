"""Checks of labels, scores, weights and groups; group numbers."""

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Index, Mask, Vector, Weights
from forerank._validation import refuse_dask, refuse_invalid_weights

__all__ = ["check_column", "check_numbers", "check_weight", "number_groups", "positive_rows"]
__all__ += ["sorted_labels"]


def check_column(values: Any, name: str, n: int | None = None) -> NDArray:
    """A one-dimensional array that is not empty, of n values if n is given."""
    refuse_dask(values, "This measure", f"Call {name}.compute() first.")
    column = np.asarray(values)
    if column.ndim != 1:
        table = name == "y_score" and column.ndim == 2
        hint = " Pass one column, such as predict_proba(X)[:, 1]." if table else ""
        raise ValueError(
            f"{name} has shape {column.shape}; a one-dimensional array is expected, one value per "
            f"row.{hint}"
        )
    if column.size == 0:
        raise ValueError(f"{name} is empty; at least one row of each class is needed.")
    if n is not None and column.size != n:
        raise ValueError(
            f"{name} has {column.size} values but y_true has {n}; both need one value per row."
        )
    return np.ascontiguousarray(column)


def check_numbers(values: Any, name: str, n: int) -> NDArray:
    """A column of n real numbers without NaN, in its own dtype if that is numeric."""
    column = check_column(values, name, n)
    if column.dtype.kind not in "biuf":
        casting: Any = "unsafe" if column.dtype.kind == "O" else "safe"
        try:
            column = column.astype(np.float64, casting=casting)
        except (TypeError, ValueError):
            message = f"{name} has dtype {column.dtype}; real numbers are expected."
            raise ValueError(message) from None
    if column.dtype.kind == "f" and (missing := np.flatnonzero(np.isnan(column))).size:
        raise ValueError(
            f"{name} is NaN in {missing.size} of {n} rows (first in row {missing[0]}); remove "
            "these rows or give them a value."
        )
    return column


def check_weight(sample_weight: Weights, n: int) -> Vector:
    if sample_weight is None:
        return np.ones(n)
    weight = check_numbers(sample_weight, "sample_weight", n).astype(np.float64)
    refuse_invalid_weights(weight)
    return weight


def number_groups(qid: Any, n: int) -> Index:
    """The group of each row, numbered 0, 1, ...; in sorted order of the labels of an array, else in
    order of appearance (labels may be tuples, or of different types).
    """
    labels = np.asarray(qid) if hasattr(qid, "__array__") else qid
    if isinstance(labels, np.ndarray) and labels.dtype != object:
        check = check_numbers if labels.dtype.kind == "f" else check_column
        labels = check(labels, "qid", n)
        if labels.dtype.kind in "iu":
            return _integer_group_numbers(labels)
        return np.unique(labels, return_inverse=True)[1]
    labels = list(labels)
    if len(labels) != n:
        raise ValueError(
            f"qid has {len(labels)} values for {n} rows; give the group of each row, not the sizes "
            "of the groups."
        )
    number: dict[Hashable, int] = {}
    numbers = (number.setdefault(label, len(number)) for label in labels)
    column = np.fromiter(numbers, dtype=np.intp, count=n)
    if any(label is None or label != label for label in number):
        raise ValueError(
            "qid has missing values (None or NaN); give every row a group or remove the row."
        )
    return column


def _integer_group_numbers(labels: NDArray[np.integer]) -> Index:
    """Group numbers in sorted order of the labels; by a table, without a sort, if their range is
    small.
    """
    low, high = int(labels.min()), int(labels.max())
    if high - low > 4 * labels.size:
        return np.unique(labels, return_inverse=True)[1]
    if high <= np.iinfo(np.intp).max:
        offset = labels.astype(np.intp) - low
    else:
        offset = (labels - labels.min()).astype(np.intp)
    present = np.zeros(high - low + 1, dtype=bool)
    present[offset] = True
    return (np.cumsum(present) - 1)[offset]


def sorted_labels(y: NDArray) -> tuple[NDArray, NDArray[np.int64]]:
    """The distinct labels in sorted order, and the number of the label of each row."""
    try:
        labels, number = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = ", ".join(sorted({type(label).__name__ for label in y}))
        message = f"y_true mixes labels of types {kinds}, which have no order; use one type."
        raise ValueError(message) from None
    if y.dtype.kind == "f" and np.isnan(labels[-1]):
        raise ValueError("y_true holds NaN; give every row a label or remove the row.")
    return labels, number.astype(np.int64, copy=False)


def positive_rows(y: NDArray, pos_label: Any) -> Mask:
    """Which rows are positive. Two numeric labels are the extremes of y and need no sort."""
    labels = None
    if y.dtype.kind in "biuf":
        low, high = y.min(), y.max()
        is_positive = y == high
        # NaN, the extreme of a column that holds it, is equal to nothing.
        if low < high and np.all(is_positive | (y == low)):
            if pos_label is None:
                return is_positive
            labels = np.array([low, high])
    if labels is None:
        labels, _ = sorted_labels(y)
    if labels.size != 2:
        shown = ", ".join(map(repr, labels[:5].tolist())) + ", ..." * (labels.size > 5)
        count = "one class only" if labels.size == 1 else f"{labels.size} labels"
        remedy = "; wmw and ndcg take grades, or make y_true binary (y_true == label)"
        raise ValueError(
            f"y_true holds {count} ({shown}); two are expected, one positive and one negative"
            f"{remedy * (labels.size > 1)}."
        )
    if pos_label is None:
        return y == labels[1]
    if pos_label not in labels.tolist():
        raise ValueError(
            f"pos_label={pos_label!r} is not a label of y_true, which holds {labels.tolist()}."
        )
    return y == pos_label
