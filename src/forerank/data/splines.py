r"""Splines of a single column: a line, and curves that add what a line cannot represent.

The values x of a column become z, centred and scaled (after a logarithm where they are skewed
amounts). The curves are combinations of the cubic B-splines b(z) of a few knots,

    c(z) = D^T b(z) - E^T (1, z),

where E removes the constant and the line by least squares on the rows of the fit, and D makes the
curves uncorrelated on these rows and orders them from smooth to rough (the basis of Demmler and
Reinsch): curve j has the variance 1 / (1 + ROUGHNESS * r_j), r_j being the integral of its squared
second derivative divided by its variance. One ridge penalty for all weights is then that of a
smoothing spline: the line is treated like a plain column, and smooth curves are cheaper than rough
ones. Beyond the range of the knots the curves continue as lines.
"""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline

from forerank._typing import Mask, Vector

__all__ = ["MOST_CURVES", "ColumnSpline", "curves_per_column", "first_values"]

# Degree of the B-splines.
_DEGREE = 3
# Inner knots, at quantiles; see docs/decisions.md for the trial.
_KNOTS = 6
# Most curves of a column: with more than four, tables of a few thousand rows gained nothing.
MOST_CURVES = 6
# Rows for each curve of each column; with fewer, curves fit noise.
_ROWS_PER_CURVE = 10
# Weight of the roughness in the variance of a curve.
_ROUGHNESS = 0.03
# Shares of rows beyond the first and the last knot, where a column has many distinct values.
_OUTSIDE = 0.005
# Distinct values from which the ends of the range are quantiles, and amounts may be skewed.
_MANY_VALUES = 20
# Distinct values on which curves are made uncorrelated; of more, some stand for their neighbours.
_MOST_VALUES = 20_000
# Skewness of the positive values from which a column of amounts is taken on a logarithmic scale.
_SKEWNESS = 2.0
# Variance of a curve, relative to the largest, below which it is rounding error.
_RANK_TOLERANCE = 1e-6
# Fewest rows without a value, and with one, that have a flag of their own.
_FLAG_ROWS = 5


def curves_per_column(n_rows: int, n_columns: int) -> int:
    """Number of curves for each of these columns (those of more than two values), by the number of
    rows to fit them on.

    Examples
    --------
    >>> curves_per_column(100_000, 12), curves_per_column(333, 130), curves_per_column(1000, 25)
    (6, 0, 4)
    """
    return int(min(MOST_CURVES, n_rows / (_ROWS_PER_CURVE * max(n_columns, 1))))


def first_values(values: NDArray) -> NDArray:
    """The distinct finite values where there are at most two, else three of them, ascending."""
    known = values[np.isfinite(values)]
    low, high = known.min(initial=np.inf), known.max(initial=-np.inf)
    between = known[(known > low) & (known < high)][:1]
    return np.unique(np.concatenate([known[known == low][:1], between, known[known == high][:1]]))


def _signed_log(values: Vector, unit: float) -> Vector:
    """sign(x) log(1 + |x| / unit)."""
    return np.sign(values) * np.log1p(np.abs(values) / unit)


def _log_unit(known: Vector) -> float:
    """The unit of the logarithm of skewed amounts, their median; 0 where the scale stays linear."""
    positive = known[known > 0]
    if positive.size < _MANY_VALUES or np.unique(positive).size < _MANY_VALUES:
        return 0.0
    deviations = positive / positive.max() - np.mean(positive / positive.max())
    spread = deviations.std()
    is_skewed = spread > 0 and np.mean((deviations / spread) ** 3) > _SKEWNESS
    unit = float(np.median(positive))
    return unit if is_skewed and np.isfinite(known / unit).all() else 0.0


@dataclass
class ColumnSpline:
    """The line and the curves of a column of numbers; see the formulas above.

    Attributes
    ----------
    median, mean, scale : float
        Of the values on their scale; missing ones are filled with the median.
    unit : float
        The unit of the logarithm; 0 for a linear scale.
    degree : int
        Of the B-splines: 3, or 2 for a column of three values.
    knots : array
        Of the B-splines, the ends of the range repeated; empty for a line alone.
    directions : array of shape (n_b_splines, n_curves)
        D of the formula.
    line : array of shape (2, n_curves)
        E of the formula.
    variances : array of shape (n_curves,)
        Of the curves, on the rows of the fit.
    low, high : float
        The range of the knots, or of all values, in the units of the column.
    has_flag : bool
        Whether a column of ones and zeros says where values are missing.
    """

    median: float = 0.0
    mean: float = 0.0
    scale: float = 1.0
    unit: float = 0.0
    low: float = 0.0
    high: float = 0.0
    has_flag: bool = False
    degree: int = _DEGREE
    knots: NDArray = field(default_factory=lambda: np.empty(0))
    directions: NDArray = field(default_factory=lambda: np.empty((0, 0)))
    line: NDArray = field(default_factory=lambda: np.empty((2, 0)))
    variances: NDArray = field(default_factory=lambda: np.empty(0))

    @property
    def n_curves(self) -> int:
        """Number of curves beside the line."""
        return int(self.line.shape[1])

    @property
    def width(self) -> int:
        """Number of output columns: the line, the curves, and the flag."""
        return 1 + self.n_curves + self.has_flag

    def names(self, name: str) -> list[str]:
        """Names of the output columns of a column of this name."""
        curves = [f"{name} spline {j + 1}" for j in range(self.n_curves)]
        return [name, *curves, *([f"{name} missing"] if self.has_flag else [])]

    @classmethod
    def fitted(cls, values: Vector, n_curves: int = MOST_CURVES) -> Self:
        """The spline of a column; values that are not finite are missing."""
        is_known = np.isfinite(values)
        n_known = int(is_known.sum())
        spline = cls()
        if not n_known:
            return spline
        spline.has_flag = min(n_known, values.size - n_known) >= _FLAG_ROWS
        known = values if n_known == values.size else values[is_known]
        spline.unit = _log_unit(known)
        spline.low, spline.high = float(known.min()), float(known.max())
        spline._fit_line(known, values.size - n_known)
        z = spline._scaled(known)
        distinct, counts = np.unique(z, return_counts=True)
        if min(n_curves, distinct.size - 2) > 0:
            # The median stands for the missing values, as in the line.
            median = (spline.median - spline.mean) / spline.scale
            counts[np.abs(distinct - median).argmin()] += values.size - n_known
            spline._fit_curves(z, distinct, counts / values.size, n_curves)
        return spline

    def _fit_line(self, known: Vector, n_missing: int) -> None:
        on_scale = _signed_log(known, self.unit) if self.unit else known
        self.median = float(np.median(on_scale))
        largest = max(float(np.abs(on_scale).max()), np.finfo(np.float64).tiny)
        parts = on_scale / largest  # squares of large numbers overflow
        n, filled = on_scale.size + n_missing, self.median / largest
        mean = (parts.sum() + n_missing * filled) / n
        square = (((parts - mean) ** 2).sum() + n_missing * (filled - mean) ** 2) / n
        self.mean, spread = largest * float(mean), largest * float(np.sqrt(square))
        # The spread of equal values is rounding error, by which nothing should be scaled.
        self.scale = spread if spread > 1e-14 * abs(self.mean) else 1.0

    def _fit_curves(self, z: Vector, distinct: Vector, share: Vector, n_curves: int) -> None:
        self.degree = min(_DEGREE, distinct.size - 1)
        self.knots = _knots(z, distinct, self.degree)
        n_splines = self.knots.size - self.degree - 1
        if distinct.size > _MOST_VALUES:  # neighbours share one value
            first = np.arange(0, distinct.size, distinct.size // _MOST_VALUES)
            distinct, share = distinct[first], np.add.reduceat(share, first)
        basis, line = (
            self._b_splines(distinct, np.eye(n_splines)),
            np.column_stack([np.ones(distinct.size), distinct]),
        )
        weighted = line * share[:, None]
        removed = np.linalg.lstsq(weighted.T @ line, weighted.T @ basis, rcond=None)[0]
        rest = basis - line @ removed
        variances, axes = np.linalg.eigh(rest.T @ (rest * share[:, None]))
        kept = variances > _RANK_TOLERANCE * max(variances.max(), _RANK_TOLERANCE)
        whitened = axes[:, kept] / np.sqrt(variances[kept])
        rough, turned = np.linalg.eigh(whitened.T @ self._roughness() @ whitened)
        rough, turned = np.maximum(rough[:n_curves], 0.0), turned[:, :n_curves]
        self.variances = 1.0 / (1.0 + _ROUGHNESS * rough)
        directions = whitened @ turned * np.sqrt(self.variances)
        # The sign of an eigenvector is arbitrary: the largest entry is made positive.
        largest = directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])]
        self.directions = directions * np.sign(largest)
        self.line = removed @ self.directions
        self.low, self.high = self._unscaled(self.knots[[0, -1]]).tolist()

    def _roughness(self) -> NDArray:
        """Integrals of products of second derivatives of the B-splines."""
        breaks = np.unique(self.knots)
        centres, halves = (breaks[1:] + breaks[:-1]) / 2, np.diff(breaks) / 2
        # Two points in each interval integrate squares of lines exactly (Gauss).
        points = np.concatenate([centres - halves / np.sqrt(3), centres + halves / np.sqrt(3)])
        every = np.eye(self.knots.size - self.degree - 1)
        second = BSpline(self.knots, every, self.degree).derivative(2)(points)
        return second.T @ (second * np.tile(halves, 2)[:, None])

    def _b_splines(self, z: Vector, coefficients: NDArray) -> NDArray:
        """The B-splines times their coefficients, continued as lines beyond the range."""
        curve = BSpline(self.knots, coefficients, self.degree)
        low, high = self.knots[0], self.knots[-1]
        values, slope = curve(np.clip(z, low, high)), curve.derivative()
        for end, rows in ((low, np.flatnonzero(z < low)), (high, np.flatnonzero(z > high))):
            values[rows] += np.multiply.outer(z[rows] - end, slope(end))
        return values

    def _scaled(self, values: Vector) -> Vector:
        on_scale = _signed_log(values, self.unit) if self.unit else values
        return (on_scale - self.mean) / self.scale

    def _unscaled(self, z: Vector) -> Vector:
        on_scale = self.mean + self.scale * z
        if not self.unit:
            return on_scale
        return np.sign(on_scale) * self.unit * np.expm1(np.abs(on_scale))

    def grid(self, n_points: int) -> Vector:
        """Values over the range, equally spaced on the scale of the column."""
        low, high = self._scaled(np.array([self.low, self.high]))
        return self._unscaled(np.linspace(low, high, n_points))

    def spread(self, weights: Vector) -> float:
        """The standard deviation of line and curves with these weights, on the rows of the fit."""
        curves = weights[1 : 1 + self.n_curves]
        return float(np.sqrt(weights[0] ** 2 + self.variances @ curves**2))

    def _filled(self, values: Vector) -> tuple[Vector, Mask]:
        """The values z of all rows, and which of them were missing."""
        is_known = np.isfinite(values)
        if is_known.all():
            return self._scaled(values), ~is_known
        z = np.full(values.size, (self.median - self.mean) / self.scale)
        z[is_known] = self._scaled(values[is_known])
        return z, ~is_known

    def transform(self, values: Vector) -> NDArray:
        """The output columns: the line, the curves, and the flag."""
        z, is_missing = self._filled(values)
        out = np.empty((values.size, self.width))
        out[:, 0] = z
        if self.n_curves:
            curves = out[:, 1 : 1 + self.n_curves]
            curves[:] = self._b_splines(z, self.directions)
            curves -= self.line[0] + z[:, None] * self.line[1]
        if self.has_flag:
            out[:, -1] = is_missing
        return out

    def term(self, values: Vector, weights: Vector) -> Vector:
        """`transform(values) @ weights`, without the matrix."""
        z, is_missing = self._filled(values)
        curves = weights[1 : 1 + self.n_curves]
        scores = (weights[0] - self.line[1] @ curves) * z
        if self.n_curves:
            scores += self._b_splines(z, self.directions @ curves) - self.line[0] @ curves
        if self.has_flag:
            scores += weights[-1] * is_missing
        return scores


def _knots(z: Vector, distinct: Vector, degree: int) -> Vector:
    """The knots of the B-splines: quantiles or, for few values, as many B-splines as values."""
    low, high = distinct[0], distinct[-1]
    if distinct.size <= _KNOTS + degree + 1:
        # Means of neighbours, with which B-splines interpolate any values (Schoenberg, Whitney).
        n_inner = distinct.size - degree - 1
        inner = np.array([distinct[j + 1 : j + 1 + degree].mean() for j in range(n_inner)])
    else:
        inner = np.unique(np.quantile(z, np.arange(1, _KNOTS + 1) / (_KNOTS + 1)))
    if distinct.size > _MANY_VALUES:
        ends = np.quantile(z, [_OUTSIDE, 1.0 - _OUTSIDE])
        low, high = ends if ends[0] < ends[1] else (low, high)
    inner = inner[(inner > low) & (inner < high)]
    return np.concatenate([np.repeat(low, degree + 1), inner, np.repeat(high, degree + 1)])
