"""Moments of the columns of parts, by class; units and reference gradients that follow from them.

With them the columns have the units of `forerank.solvers.units` over all rows, and the gradient at
zero weights, to which certificates are relative, needs no further pass.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Vector
from forerank.design import make_design
from forerank.objectives.allpairs import AllPairs
from forerank.objectives.parts import PairParts, PointParts, Rows
from forerank.objectives.pointwise import Pointwise

__all__ = ["ColumnMoments", "part_moments"]

# Variation of a column, relative to its mean, that counts as rounding error, and entries of a
# gradient, relative to the sum of the absolute terms.
_ROUNDING = 1e-13
# Units below this have squares that are not normal doubles.
_LEAST_UNIT = float(np.sqrt(np.finfo(float).tiny))


@dataclass(frozen=True)
class ColumnMoments:
    """Moments of the columns about `about`, by class (rows) and column; they add up.

    Attributes
    ----------
    weight : array of shape (n_classes,)
    first, second, stored : arrays of shape (n_classes, d)
        Sums of w (x - about), of w (x - about)^2, and of w over stored entries.
    n_rows : int
    """

    about: Vector
    weight: Vector
    first: Vector
    second: Vector
    stored: Vector
    n_rows: int

    def __add__(self, other: "ColumnMoments") -> "ColumnMoments":
        return ColumnMoments(
            self.about,
            self.weight + other.weight,
            self.first + other.first,
            self.second + other.second,
            self.stored + other.stored,
            self.n_rows + other.n_rows,
        )

    def scaled(self, factor: Vector) -> "ColumnMoments":
        """The moments with the weights of each class multiplied by a number."""
        f = factor[:, None]
        return ColumnMoments(
            self.about,
            self.weight * factor,
            self.first * f,
            self.second * f,
            self.stored * f,
            self.n_rows,
        )

    def with_classes(self, n_classes: int) -> "ColumnMoments":
        """The moments with zeros for classes that came later."""
        more = n_classes - self.weight.size
        if not more:
            return self
        first, second, stored = (
            np.pad(each, ((0, more), (0, 0))) for each in (self.first, self.second, self.stored)
        )
        weight = np.pad(self.weight, (0, more))
        return ColumnMoments(self.about, weight, first, second, stored, self.n_rows)

    def in_order(self, classes: NDArray[np.integer]) -> "ColumnMoments":
        """The moments of the classes in this order."""
        first, second, stored = (each[classes] for each in (self.first, self.second, self.stored))
        return ColumnMoments(self.about, self.weight[classes], first, second, stored, self.n_rows)

    @property
    def is_sparse(self) -> bool:
        """Whether some entries are not stored."""
        return bool((self.stored.sum(axis=0) < (1.0 - 1e-9) * self.weight.sum()).any())

    def moved(self, about: Vector) -> "ColumnMoments":
        """The moments about another point."""
        d = self.about - about
        weight = self.weight[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            second = self.second + 2.0 * d * self.first + weight * d**2
        return ColumnMoments(
            about, self.weight, self.first + weight * d, second, self.stored, self.n_rows
        )

    def _class_means(self) -> tuple[Vector, Vector]:
        """Means of x - about and of its square, by class."""
        weight = np.where(self.weight > 0.0, self.weight, 1.0)[:, None]
        return self.first / weight, self.second / weight

    def units(self, parts: PairParts | PointParts, intercept: bool) -> tuple[Vector, Vector]:
        """Mean and unit of every column, as in `forerank.solvers.units`; the last are those of
        the intercept, where there is one.
        """
        total = self.weight.sum()
        centred = isinstance(parts, PairParts) or intercept
        mean = self.first.sum(axis=0) / total
        if isinstance(parts, PairParts):
            square = self._pair_squares(parts)
        else:
            square = self.second.sum(axis=0) / total
            square = square - mean**2 if centred else square + 2.0 * mean * self.about
            square = square if centred else square + self.about**2
        mean = mean + self.about
        stored = self.stored.sum(axis=0) / total
        unit = np.sqrt(np.maximum(square, 0.0) / np.where(stored > 0.0, stored, 1.0))
        constant = ~((unit > _ROUNDING * np.abs(mean)) & np.isfinite(unit))
        size = np.abs(mean[constant])
        unit[constant] = np.where(size > _LEAST_UNIT, size, 1.0)
        if not centred or self.is_sparse:  # entries that are not stored stay zero
            mean = np.zeros(mean.size)
        if intercept:
            mean, unit = np.append(mean, 0.0), np.append(unit, 1.0)
        return mean, unit

    def _pair_squares(self, parts: PairParts) -> Vector:
        """The mean over pairs of (x_i - x_j)^2, regardless of groups."""
        mean, second = self._class_means()
        square, total = np.zeros(mean.shape[1]), 0.0
        for u, v in parts.all_edges():
            weight = self.weight[u] * self.weight[v]
            square += weight * (second[u] + second[v] - 2.0 * mean[u] * mean[v])
            total += weight
        return square / total if total > 0.0 else square

    def second_moment(self, mean: Vector, unit: Vector) -> float:
        """The largest weighted mean over the rows of a class of ||(x - mean) / unit||^2."""
        d = self.about.size
        first, second = self._class_means()
        shift = self.about - mean[:d]
        squares = second + 2.0 * shift * first + shift**2
        return float((np.maximum(squares, 0.0) / unit[:d] ** 2).sum(axis=1).max())

    def zero_gradient(self, parts: PairParts | PointParts, mean: Vector, unit: Vector) -> Vector:
        """The gradient at zero weights and the best intercept, for pairs regardless of groups;
        zero where it is rounding error.
        """
        d, classes = self.about.size, np.arange(self.weight.size)
        intercept = mean.size > d
        objective: AllPairs | Pointwise
        if isinstance(parts, PairParts):
            objective = AllPairs(classes, parts.loss, weight=self.weight, edges=parts.edges)
            g = objective.gradient_at_zero()
        else:
            objective = Pointwise(classes == 1, parts.loss, weight=self.weight)
            g = (objective.profiled() if intercept else objective).gradient_at_zero()
        at_class = (self._class_means()[0] + self.about - mean[:d]) / unit[:d]
        gradient = g @ at_class
        size = (np.abs(self.about) / unit[:d] + 1.0) * float(np.abs(g).sum())
        if np.all(np.abs(gradient) <= 10.0 * _ROUNDING * size):
            gradient = np.zeros(d)
        return np.append(gradient, 0.0) if intercept else gradient


def part_moments(rows: Rows, about: Vector, n_classes: int) -> ColumnMoments:
    """Moments of the columns of a part, by class. Cost: a product with X per class."""
    design = make_design(rows.X)
    weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight
    found = [design.moments(weight * (rows.codes == k), about) for k in range(n_classes)]
    first, second, stored = (np.array(each) for each in zip(*found, strict=True))
    by_class = np.bincount(rows.codes, weights=weight, minlength=n_classes).astype(float)
    return ColumnMoments(about, by_class, first, second, stored, rows.n_rows)
