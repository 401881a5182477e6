"""Turning what users pass to fit into what objectives take; every refusal says what came and what
to do.
"""

import sys
from collections.abc import Iterable
from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets

__all__ = ["check_choice", "check_number", "check_weights", "encode_classes", "stacklevel_outside"]


# Weights within these bounds can be multiplied and summed without care.
_SAFE = (1e-100, 1e100)


def encode_classes(y: NDArray) -> tuple[NDArray, NDArray[np.integer]]:
    """The sorted classes of y, and each row's class number. Two numeric classes take no sort."""
    if y.dtype.kind in "biuf":
        low, high = y.min(), y.max()
        upper = y == high
        if low < high and np.all(upper | (y == low)):
            return np.array([low, high]), upper.astype(np.int8)
    check_classification_targets(y)
    return np.unique(y, return_inverse=True)


def check_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64] | None:
    """Sample weights as doubles; None for "all equal", also where equal weights were spelled out."""
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
            f"sample_weight has {weight.size} entries for {n_rows} rows of X; give one weight per row."
        )
    lowest = weight.min()
    if lowest < 0.0:
        row = int(np.argmin(weight))
        raise ValueError(
            f"sample_weight must not be negative; row {row} has {lowest}. Use zero to leave a row out."
        )
    if weight.max() == 0.0:
        raise ValueError(
            "sample_weight is zero for every row; at least two rows need a positive weight."
        )
    highest = weight.max()
    if not _SAFE[0] < highest < _SAFE[1]:
        weight = (
            weight / highest
        )  # only ratios matter, and products of weights must not overflow or vanish
    return None if lowest == highest else weight


def stacklevel_outside() -> int:
    """The stack level, for a warning raised by the caller, of the first frame outside this package."""
    level, frame = 0, sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("forerank."):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    return level + 1


def check_number(
    name: str, value: Any, *, low: float, strict: bool = False, integer: bool = False
) -> None:
    """Refuse what is not a number above the bound."""
    kind = Integral if integer else Real
    fits = isinstance(value, kind) and not isinstance(value, bool) and isfinite(value)
    if not fits or value < low or (strict and value == low):
        what, bound = "an integer" if integer else "a number", ">" if strict else ">="
        raise ValueError(f"{name} must be {what} {bound} {low:g}; got {value!r}.")


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse what is not among the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, sorted(choices)))}; got {value!r}."
        )
