"""Designs around another design: an intercept, standardised columns, an extra row."""

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Index, Vector
from forerank.design.base import Design

__all__ = ["ExtraRowDesign", "InterceptDesign", "StandardisedDesign", "standardise"]


# Mean of a column, in its unit, up to which it may be subtracted from sums of products: twelve
# digits are left.
_LARGEST_MEAN = 100.0


class StandardisedDesign(Design):
    """(X - 1 mean^T) / unit for a design X, at the cost of the products with X."""

    def __init__(self, design: Design, mean: Vector, unit: Vector) -> None:
        self._design, self._mean, self._unit = design, mean, unit
        self._divides, self._shifts = bool((unit != 1.0).any()), bool(mean.any())
        self.n_rows, self.n_columns = design.n_rows, design.n_columns

    @property
    def n_entries(self) -> int:
        return self._design.n_entries

    def scores(self, w: Vector) -> Vector:
        w = w / self._unit if self._divides else w
        out = self._design.scores(w)
        if self._shifts:
            out -= self._mean @ w
        return out

    def adjoints(self, G: Vector) -> Vector:
        out = self._design.adjoints(G)
        if self._shifts:
            out -= G.sum(axis=1)[:, None] * self._mean
        if self._divides:
            out /= self._unit
        return out

    def moments(self, g: Vector, about: Vector | None = None) -> tuple[Vector, Vector, Vector]:
        about = self._mean if about is None else self._mean + self._unit * about
        first, second, presence = self._design.moments(g, about)
        return first / self._unit, second / self._unit**2, presence

    def rows(self, index: Index) -> Design:
        return StandardisedDesign(self._design.rows(index), self._mean, self._unit)

    def columns(self, begin: int, end: int) -> NDArray[np.float64]:
        return (self._design.columns(begin, end) - self._mean[begin:end]) / self._unit[begin:end]

    def row_block(self, begin: int, end: int) -> NDArray[np.float64]:
        out = self._design.row_block(begin, end) - self._mean
        if self._divides:
            out /= self._unit
        return out

    @property
    def gram_cost(self) -> float:
        return self._design.gram_cost

    def weighted_gram(self, weight: Vector) -> NDArray[np.float64]:
        mean, unit = self._mean, self._unit
        if np.any(np.abs(mean) > _LARGEST_MEAN * unit):
            return self.gram_of_blocks(weight)
        gram = self._design.weighted_gram(weight)
        if self._shifts:
            product = np.outer(mean, self._design.adjoint(weight) - (0.5 * weight.sum()) * mean)
            gram -= product + product.T
        return gram / unit / unit[:, None]

    def bin_sums(self, weight: Vector, bins: Index, n_bins: int) -> NDArray[np.float64]:
        sums = self._design.bin_sums(weight, bins, n_bins)
        if self._shifts:
            sums -= np.outer(np.bincount(bins, weight, n_bins), self._mean)
        return sums / self._unit


class InterceptDesign(Design):
    """A design with a last column of ones, which is not stored."""

    has_intercept = True

    def __init__(self, design: Design) -> None:
        self.design = design
        self.n_rows, self.n_columns = design.n_rows, design.n_columns + 1

    @property
    def n_entries(self) -> int:
        return self.design.n_entries + self.n_rows

    def scores(self, w: Vector) -> Vector:
        out = self.design.scores(w[:-1])
        out += w[-1]
        return out

    def adjoints(self, G: Vector) -> Vector:
        out = np.empty((G.shape[0], self.n_columns))
        out[:, :-1] = self.design.adjoints(G)
        out[:, -1] = G.sum(axis=1)
        return out

    def moments(self, g: Vector, about: Vector | None = None) -> tuple[Vector, Vector, Vector]:
        first, second, presence = self.design.moments(g, None if about is None else about[:-1])
        total, one = g.sum(), 1.0 if about is None else 1.0 - about[-1]
        return (
            np.append(first, one * total),
            np.append(second, one**2 * total),
            np.append(presence, total),
        )

    def rows(self, index: Index) -> Design:
        return InterceptDesign(self.design.rows(index))

    def columns(self, begin: int, end: int) -> NDArray[np.float64]:
        inner = self.design.columns(begin, min(end, self.n_columns - 1))
        return np.column_stack([inner, np.ones(self.n_rows)]) if end == self.n_columns else inner

    def row_block(self, begin: int, end: int) -> NDArray[np.float64]:
        return np.column_stack([self.design.row_block(begin, end), np.ones(end - begin)])

    @property
    def gram_cost(self) -> float:
        return self.design.gram_cost + self.n_columns

    def weighted_gram(self, weight: Vector) -> NDArray[np.float64]:
        with_ones = np.append(self.design.adjoint(weight), weight.sum())
        inner = self.design.weighted_gram(weight)
        return np.column_stack([np.vstack([inner, with_ones[:-1]]), with_ones])


class ExtraRowDesign(Design):
    """A design with one more row, dense, inserted at a position; by default the last."""

    def __init__(self, design: Design, row: Vector, position: int | None = None) -> None:
        self._design, self._row = design, row
        self._position = design.n_rows if position is None else position
        self.n_rows, self.n_columns = design.n_rows + 1, design.n_columns

    @property
    def n_entries(self) -> int:
        return self._design.n_entries + self.n_columns

    def scores(self, w: Vector) -> Vector:
        return np.insert(self._design.scores(w), self._position, self._row @ w)

    def adjoints(self, G: Vector) -> Vector:
        inner = np.ascontiguousarray(np.delete(G, self._position, axis=1))
        return self._design.adjoints(inner) + np.outer(G[:, self._position], self._row)

    def moments(self, g: Vector, about: Vector | None = None) -> tuple[Vector, Vector, Vector]:
        first, second, presence = self._design.moments(np.delete(g, self._position), about)
        row = self._row if about is None else self._row - about
        of_row = g[self._position] * row
        return (
            first + of_row,
            second + of_row * row,
            presence + g[self._position] * (self._row != 0.0),
        )

    def rows(self, index: Index) -> Design:
        here = np.flatnonzero(index == self._position)
        design = self._design.rows(np.delete(index - (index > self._position), here))
        for position in here.tolist():
            design = ExtraRowDesign(design, self._row, position)
        return design

    def columns(self, begin: int, end: int) -> NDArray[np.float64]:
        inner = self._design.columns(begin, end)
        return np.insert(inner, self._position, self._row[begin:end], axis=0)


def standardise(design: Design, mean: Vector, unit: Vector) -> Design:
    """(X - 1 mean^T) / unit, without a copy of X. An intercept stays a column of ones."""
    if hasattr(design, "standardised"):
        return design.standardised(mean, unit)
    if isinstance(design, InterceptDesign):
        return InterceptDesign(StandardisedDesign(design.design, mean[:-1], unit[:-1]))
    return StandardisedDesign(design, mean, unit)
