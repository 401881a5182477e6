"""Pairs and points together: combined ranking and classification (shen2013, eq. 5).

    F(s) = gamma P(s) + (1 - gamma) Q(s)

P is the mean loss over all pairs (`AllPairs`), Q the weighted mean loss over single rows
(`Pointwise`). A constant added to all scores does not change P: an intercept acts on the points
alone. With `Profiled` points it is minimised out, and F does not depend on it either.
"""

from collections.abc import Callable
from typing import Any

from forerank._typing import Index, Random, Vector
from forerank.design import Design
from forerank.objectives.allpairs import AllPairs
from forerank.objectives.pointwise import Pointwise, Profiled

__all__ = ["Combined"]


class Combined:
    """The weighted sum of a mean over pairs and a mean over points, as a function of the scores.

    Parameters
    ----------
    pairs : AllPairs
    points : Pointwise or Profiled
        On the same rows.
    gamma : float
        The share of the pairs, strictly between 0 and 1.
    """

    def __init__(self, pairs: AllPairs, points: Pointwise | Profiled, gamma: float) -> None:
        self.pairs, self.points, self.gamma = pairs, points, gamma
        self.n_rows = pairs.n_rows
        self.smooth = pairs.smooth and points.smooth
        self.has_curvature = pairs.has_curvature and points.has_curvature
        self.shift_invariant = points.shift_invariant

    def __repr__(self) -> str:
        return f"Combined({self.pairs!r}, {self.points!r}, gamma={self.gamma!r})"

    def _of_parts(self, of_part: Callable[[Any], Any]) -> "Combined":
        return Combined(of_part(self.pairs), of_part(self.points), self.gamma)

    def at(self, s: Vector) -> "CombinedLinearization":
        """Value, gradient and curvature at the scores s. Cost: those of pairs and points."""
        return CombinedLinearization(self.pairs.at(s), self.points.at(s), self.gamma)

    def hessian(self, s: Vector, design: Design) -> Vector:
        """X^T F''(s) X, approximately."""
        of_points = (1.0 - self.gamma) * self.points.hessian(s, design)
        return self.gamma * self.pairs.hessian(s, design) + of_points

    def gradient_at_zero(self) -> Vector:
        """The gradient at s = 0."""
        of_points = (1.0 - self.gamma) * self.points.gradient_at_zero()
        return self.gamma * self.pairs.gradient_at_zero() + of_points

    def sample(self, size: int, rng: Random) -> "tuple[Index, Combined] | None":
        """Rows in pairs, drawn as by `AllPairs.sample`; as points they stand for their class."""
        drawn = self.pairs.sample(size, rng)
        if drawn is None:
            return None
        rows, pairs = drawn
        return rows, Combined(pairs, self.points.of_rows(rows), self.gamma)

    def profiled(self) -> "Combined":
        """The same, minimised over a constant that is added to the scores."""
        points = self.points
        points = points if isinstance(points, Profiled) else points.profiled()
        return Combined(self.pairs, points, self.gamma)

    def smoothed(self, width: float) -> "Combined":
        """The same with the smoothed hinge, for an objective with the hinge."""
        return self._of_parts(lambda part: part.smoothed(width))

    def squared(self) -> "Combined":
        """The same with the squared loss."""
        return self._of_parts(lambda part: part.squared())


class CombinedLinearization:
    """A combined objective at given scores."""

    def __init__(self, pairs: Any, points: Any, gamma: float) -> None:
        self._parts = (gamma, pairs), (1.0 - gamma, points)
        self.value: float = self._sum(lambda part: part.value)
        self.gradient: Vector = self._sum(lambda part: part.gradient)

    def _sum(self, of_part: Callable[[Any], Any]) -> Any:
        (share, pairs), (rest, points) = self._parts
        return share * of_part(pairs) + rest * of_part(points)

    def total_slope(self) -> float:
        """The mean of |slope| over pairs and points."""
        return self._sum(lambda part: part.total_slope())

    def curvature_product(self, u: Vector) -> Vector:
        """F''(s) u."""
        return self._sum(lambda part: part.curvature_product(u))

    def curvature_matrix(self, U: Vector) -> Vector:
        """F''(s) U for the columns of U."""
        return self._sum(lambda part: part.curvature_matrix(U))

    def curvature_diagonal(self) -> Vector:
        """The diagonal of F''(s)."""
        return self._sum(lambda part: part.curvature_diagonal())

    def quadratic_form(self, U: Vector) -> Vector:
        """u^T F''(s) u for each column u of U."""
        return self._sum(lambda part: part.quadratic_form(U))
