"""The libraries that grow trees, and which of them is used."""

from collections.abc import Callable
from typing import Literal, TypeAlias

from forerank.trees.growth import Grower, GrowthSettings, TrainingRows
from forerank.trees.histogram import HistogramGrower
from forerank.trees.lightgbm import LightGBMGrower, import_error

__all__ = ["BACKENDS", "Backend", "choose_backend", "has_lightgbm", "make_grower"]

Backend: TypeAlias = Literal["lightgbm", "histogram"]
BACKENDS: tuple[Backend, ...] = ("lightgbm", "histogram")
_GROWERS: dict[str, Callable[[TrainingRows, GrowthSettings], Grower]] = {
    "lightgbm": LightGBMGrower,
    "histogram": HistogramGrower,
}
_INSTALL = "install it with pip install 'forerank[trees]'"


def has_lightgbm() -> bool:
    """Whether LightGBM can be imported."""
    return import_error() is None


def choose_backend(backend: str = "auto", *, logistic: bool = True, loss: str = "") -> Backend:
    """The library to use: LightGBM, or scikit-learn where LightGBM cannot be imported.

    `logistic` tells whether the objective is the logistic loss on rows, the only one that
    scikit-learn has; `loss` is its name, for errors.
    """
    if backend not in ("auto", *BACKENDS):
        allowed = ", ".join(map(repr, ("auto", *BACKENDS)))
        raise ValueError(f"backend must be one of {allowed}; got {backend!r}.")
    missing = import_error() if backend != "histogram" else None
    if backend != "histogram" and missing is None:
        return "lightgbm"
    if backend == "lightgbm":
        raise ImportError(f"LightGBM cannot be imported ({missing}); {_INSTALL}.")
    if not logistic:
        why = "" if missing is None else f", which cannot be imported ({missing})"
        raise ValueError(
            f"loss={loss!r} needs LightGBM{why}; {_INSTALL}, or choose loss='logistic', which "
            "scikit-learn's histogram trees can fit."
        )
    return "histogram"


def make_grower(backend: Backend, rows: TrainingRows, settings: GrowthSettings) -> Grower:
    """A library that is ready to grow trees on these rows."""
    return _GROWERS[backend](rows, settings)
