"""Fits along a path of penalties: what they give, and where the next one begins."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forerank._typing import Vector
from forerank._validation import is_integer
from forerank.solvers import SolverResult

__all__ = ["AlphaPath", "PathPoint", "Solve", "check_alphas"]

# Fits at the present alpha of a ranker, from a start or from where it stands.
Solve = Callable[..., SolverResult | None]

_LARGEST, _SMALLEST = 10.0, 1e-7


@dataclass(frozen=True)
class PathPoint:
    """One fit of a path."""

    coef: Vector
    intercept: float
    objective: float
    optimality: float
    n_iter: int

    @classmethod
    def of(cls, ranker: Any) -> Self:
        """What a fitted ranker holds."""
        return cls(
            ranker.coef_[0].copy(),
            float(ranker.intercept_[0]),
            float(
                getattr(ranker, "objective_", np.nan)
            ),  # a fit of so many random steps has no certificate
            float(getattr(ranker, "optimality_", np.nan)),
            int(getattr(ranker, "n_iter_", 0)),
        )


@dataclass(frozen=True)
class AlphaPath:
    """Linear rankers along falling penalties.

    Attributes
    ----------
    alphas : array of shape (n_alphas,)
        From the largest to the smallest.
    coef : array of shape (n_alphas, n_features)
    intercept : array of shape (n_alphas,)
    objective, optimality : arrays of shape (n_alphas,)
        The minimum reached and its certificate, as `objective_` and `optimality_` of a fit.
    n_iter : array of shape (n_alphas,)
        Steps on all rows.
    """

    alphas: Vector
    coef: Vector
    intercept: Vector
    objective: Vector
    optimality: Vector
    n_iter: NDArray[np.intp]

    @classmethod
    def of(cls, alphas: Vector, points: list[PathPoint]) -> Self:
        """The path through these points."""
        return cls(
            alphas,
            np.array([point.coef for point in points]),
            np.array([point.intercept for point in points]),
            np.array([point.objective for point in points]),
            np.array([point.optimality for point in points]),
            np.array([point.n_iter for point in points]),
        )

    def decision_function(self, X: Any) -> Vector:
        """Scores of the rows, one column for each alpha."""
        return X @ self.coef.T + self.intercept


def check_alphas(alphas: int | ArrayLike) -> Vector:
    """The penalties, from the largest to the smallest."""
    if is_integer(alphas):
        if alphas < 1:
            raise ValueError(
                f"alphas={alphas!r}: give how many penalties to try, at least 1, or a list of them."
            )
        return np.geomspace(_LARGEST, _SMALLEST, int(alphas))
    try:
        given = np.asarray(alphas, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.ndim != 1 or given.size == 0 or not np.isfinite(given).all() or given.min() <= 0.0:
        raise ValueError(
            f"alphas must be a number of penalties or a list of positive numbers; got {alphas!r}."
        )
    return np.unique(given)[::-1]
