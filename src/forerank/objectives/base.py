"""What a solver may ask of an objective: a function of the scores alone."""

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Vector

__all__ = [
    "Curved",
    "Differentiable",
    "Linearization",
    "Objective",
    "SmoothObjective",
    "Smoothable",
]


class Linearization(Protocol):
    """An objective at given scores: its value and its gradient (a subgradient at a kink) with
    respect to the scores.
    """

    value: float
    gradient: Vector


@runtime_checkable
class Curved(Protocol):
    """A linearization that also knows the curvature F''(s) there."""

    value: float
    gradient: Vector

    def curvature_product(self, u: Vector) -> Vector:
        """F''(s) u."""

    def curvature_matrix(self, U: Vector) -> Vector:
        """F''(s) U for the columns of U; meant for few rows."""

    def curvature_diagonal(self) -> Vector:
        """The diagonal of F''(s)."""


class SmoothObjective(Protocol):
    """An objective without kinks."""

    n_rows: int
    smooth: bool
    shift_invariant: bool

    def at(self, s: Vector) -> Curved:
        """Value, gradient and curvature at the scores s."""

    def gradient_at_zero(self) -> Vector:
        """The gradient where all scores are zero, the yardstick of a relative gradient norm."""

    def squared(self) -> Any:
        """The same rows or pairs under the squared loss, a smooth objective: its curvature gives
        columns units.
        """

    def sample(
        self, size: int, rng: np.random.Generator
    ) -> "tuple[NDArray[np.intp], SmoothObjective] | None":
        """About `size` rows and an unbiased version of the objective on them; None where there is
        nothing to save.
        """


class Objective(Protocol):
    """A convex function F of n scores, a mean over rows or pairs."""

    n_rows: int
    smooth: bool

    def at(self, s: Vector) -> Linearization:
        """Value, gradient and, for smooth objectives, curvature at the scores s."""


class Differentiable(Objective, Protocol):
    """An objective without kinks that may lack a curvature."""

    shift_invariant: bool

    def gradient_at_zero(self) -> Vector:
        """The gradient where all scores are zero, the yardstick of a relative gradient norm."""

    def squared(self) -> Any:
        """The same rows or pairs under the squared loss, a smooth objective."""


@runtime_checkable
class Smoothable(Objective, Protocol):
    """An objective with kinks that has smooth lower bounds as close to it as one likes."""

    def smoothed(self, width: float) -> Any:
        """A smooth objective that is nowhere above this one, and nowhere more than width/2 below
        it.
        """
