"""Checks of arguments, shared by the whole package: numbers, choices, weights, classes."""

import sys
from collections.abc import Iterable
from math import isfinite
from numbers import Integral, Real
from typing import Any, TypeGuard

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets

from forerank._typing import Matrix, Vector

__all__ = [
    "SAFE_WEIGHTS",
    "check_choice",
    "check_number",
    "check_weights",
    "encode_classes",
    "is_dask",
    "is_integer",
    "is_number",
    "is_tensor",
    "is_valid_array",
    "is_valid_labels",
    "refuse_dask",
    "refuse_invalid_weights",
    "refuse_one_class",
    "stacklevel_outside",
]

# Largest weights between these bounds are not rescaled: products and sums of weights then neither
# overflow nor underflow.
SAFE_WEIGHTS = (1e-100, 1e100)


def is_integer(value: Any) -> TypeGuard[int]:
    """Whether `value` is an integer of Python or NumPy; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> TypeGuard[float]:
    """Whether `value` is a real number of Python or NumPy; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_number(
    name: str, value: Any, *, low: float, strict: bool = False, integer: bool = False
) -> None:
    """ValueError unless `value` is a finite number >= `low` (> `low` if `strict`)."""
    valid = is_integer(value) if integer else is_number(value) and isfinite(value)
    if not valid or value < low or (strict and value == low):
        kind, bound = "an integer" if integer else "a number", ">" if strict else ">="
        raise ValueError(f"{name} must be {kind} {bound} {low:g}; got {value!r}.")


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """ValueError unless `value` is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        allowed = ", ".join(map(repr, sorted(choices)))
        raise ValueError(f"{name} must be one of {allowed}; got {value!r}.")


def refuse_invalid_weights(weight: Vector) -> None:
    """ValueError where a weight is negative or not finite, or where all are zero."""
    invalid = np.flatnonzero(~((weight >= 0.0) & (weight < np.inf)))
    if invalid.size:
        row = int(invalid[0])
        raise ValueError(
            f"sample_weight must be finite and not negative; row {row} has {weight[row]}. "
            "Use zero to exclude a row."
        )
    if not weight.any():
        raise ValueError("sample_weight is zero for every row; rows of each class need a weight.")


def check_weights(sample_weight: ArrayLike | None, n_rows: int) -> Vector | None:
    """Sample weights as doubles; None if all weights are equal."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_rows, sample_weight)
    weight = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weight.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar; got an array of shape {weight.shape}."
        )
    if weight.size != n_rows:
        raise ValueError(
            f"sample_weight has {weight.size} entries for {n_rows} rows of X; give one per row."
        )
    refuse_invalid_weights(weight)
    lowest, highest = weight.min(), weight.max()
    if not SAFE_WEIGHTS[0] < highest < SAFE_WEIGHTS[1]:
        weight = weight / highest  # only ratios of weights matter
    return None if lowest == highest else weight


def encode_classes(y: NDArray) -> tuple[NDArray, NDArray[np.integer]]:
    """The sorted classes of y, and each row's class number. Cost: N for two numeric classes."""
    if y.dtype.kind in "biuf":
        low, high = y.min(), y.max()
        upper = y == high
        if low < high and np.all(upper | (y == low)):
            return np.array([low, high]), upper.astype(np.int8)
    check_classification_targets(y)
    return np.unique(y, return_inverse=True)


def refuse_one_class(classes: NDArray) -> None:
    """ValueError where y has one class."""
    if classes.size < 2:
        raise ValueError(
            f"y has one class only, {classes.tolist()[0]!r}; ranking needs rows of at least two "
            "classes."
        )


def is_tensor(value: Any) -> bool:
    """Whether `value` is a tensor of PyTorch, which is not imported to find out."""
    return type(value).__module__.partition(".")[0] == "torch"


def is_dask(value: Any) -> bool:
    """Whether `value` is a collection of Dask, which is not imported to find out."""
    return type(value).__module__.partition(".")[0] == "dask" and hasattr(value, "__dask_graph__")


def refuse_dask(value: Any, what: str, remedy: str) -> None:
    """TypeError where `value` is a collection of Dask, which would become one array silently."""
    if is_dask(value):
        raise TypeError(f"{what} does not take Dask collections ({type(value).__name__}). {remedy}")


def is_valid_array(X: Any) -> TypeGuard[Matrix]:
    """Whether X is a NumPy array or CSR matrix of rows and columns in single or double precision
    without NaN or infinity: then scikit-learn's checks, which take longer than some fits, change
    nothing.

    False also where the sum of all numbers overflows.
    """
    if type(X) not in (np.ndarray, sp.csr_matrix, sp.csr_array) or X.ndim != 2:
        return False
    if 0 in X.shape or (X.dtype != np.float64 and X.dtype != np.float32):
        return False
    values = X if isinstance(X, np.ndarray) else X.data
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))


def is_valid_labels(y: Any, n_rows: int) -> bool:
    """Whether y is a NumPy array with n_rows numbers, none of them NaN or infinite."""
    if type(y) is not np.ndarray or y.shape != (n_rows,) or y.dtype.kind not in "biuf":
        return False
    return y.dtype.kind != "f" or bool(np.isfinite(y).all())


def stacklevel_outside() -> int:
    """Stack level, for a warning of the caller, of the first frame outside this package."""
    level, frame = 0, sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("forerank."):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    return level + 1
