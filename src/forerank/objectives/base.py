"""Interfaces of objectives: functions of the scores alone, as solvers use them."""

from typing import Any, Protocol, runtime_checkable

from forerank._typing import Index, Random, Vector
from forerank.design import Design

__all__ = [
    "Curved",
    "Differentiable",
    "Linearization",
    "Objective",
    "SmoothObjective",
    "Smoothable",
]


class Linearization(Protocol):
    """Value and gradient (or a subgradient) of an objective at given scores."""

    value: float
    gradient: Vector


class Curved(Linearization, Protocol):
    """A linearization with the curvature F''(s).

    One of a piecewise quadratic objective may also have `curved_rows()`: the rows with a curvature,
    ascending, where these may be few.
    """

    def curvature_product(self, u: Vector) -> Vector:
        """F''(s) u."""

    def curvature_matrix(self, U: Vector) -> Vector:
        """F''(s) U for the columns of U; for few rows."""

    def curvature_diagonal(self) -> Vector:
        """The diagonal of F''(s)."""


class Objective(Protocol):
    """A convex function F of n scores, a mean over rows or pairs."""

    n_rows: int
    smooth: bool

    def at(self, s: Vector) -> Linearization:
        """Value and gradient, and curvature where `has_curvature`, at the scores s."""


class Differentiable(Objective, Protocol):
    """An objective with a continuous gradient."""

    shift_invariant: bool

    def gradient_at_zero(self) -> Vector:
        """The gradient at s = 0, the reference of relative gradient norms."""

    def squared(self) -> Any:
        """The same rows or pairs under the squared loss, whose curvature gives columns units."""


class SmoothObjective(Differentiable, Protocol):
    """An objective with a curvature."""

    def at(self, s: Vector) -> Curved:
        """Value, gradient and curvature at the scores s."""

    def hessian(self, s: Vector, design: Design) -> Vector:
        """X^T F''(s) X, approximately."""

    def sample(self, size: int, rng: Random) -> "tuple[Index, SmoothObjective] | None":
        """About `size` rows and an unbiased version of F on them; None if that saves little."""


@runtime_checkable
class Smoothable(Objective, Protocol):
    """An objective that is not smooth and has smooth approximations."""

    def smoothed(self, width: float) -> Any:
        """A smooth objective between this one and this one plus width/8.

        Its linearizations have a method `total_slope`: the mean of the slopes a of all pairs or
        rows, between 0 and 1 for each, so that the mean of a (1 - margin), the plane with the same
        gradient, lies below this objective.
        """
