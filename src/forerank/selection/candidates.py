"""Candidates of a search, and the selection among them."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Index, Vector
from forerank.design import make_design
from forerank.selection.methods import with_loose_tolerance

__all__ = [
    "Candidate",
    "Key",
    "best_positions",
    "corrected_error",
    "penalty_curve",
    "select",
    "select_family",
    "typical_penalty",
]

# Weight of the preference for typical penalties, in standard errors per decade.
_PREFERENCE = 0.05
# A simpler family than the average is selected when its mean is lower by at most this many standard
# errors, and its logistic loss larger by at most so many.
_ERRORS_OF_FAMILIES = 0.2
_ERRORS_OF_LOSSES = 0.5

# Family, form of the columns and feature map of a candidate.
Key: TypeAlias = tuple[str, str, str | None]


@dataclass
class Candidate:
    """A method on the columns or on a feature map, and its results: a row per fold, a column per
    value of its parameter.

    Attributes
    ----------
    family : str
        One of `forerank.selection.methods.FAMILIES`.
    method : str
    form : str
        The form of the columns; see `forerank.data.forms`.
    map : str or None
    ranker : estimator
    grid : array
        Values of the parameter that is tuned, those of the simplest fits first: penalties from the
        largest to the smallest, or numbers of rounds in ascending order.
    results : array of shape (n_folds, n_values)
        NaN where nothing was measured.
    """

    family: str
    method: str
    form: str
    map: str | None
    ranker: Any
    grid: Vector
    results: Vector
    seconds: float = 0.0
    fits: int = 0
    dropped: str | None = None  # reason why it is no longer tried
    # Positions of the values that are still tried.
    tried: slice = field(default_factory=lambda: slice(None))
    # Test scores by number of the fold and position of the value, until candidates are compared.
    test_scores: dict[int, dict[int, Vector]] = field(default_factory=dict)

    @cached_property
    def loose_ranker(self) -> Any:
        """The ranker with the tolerance of fits within the folds."""
        return with_loose_tolerance(self.ranker)

    @property
    def positions(self) -> range:
        """Positions of the values that are still tried."""
        return range(self.grid.size)[self.tried]

    def lacks(self, position: int | None) -> bool:
        """Whether a position is one before the grid, or one after it."""
        return position in (-1, self.grid.size)

    def extend(self, at_begin: bool) -> int:
        """Insert a penalty beyond an end, in the ratio of the last two but at most a decade away,
        without results; returns its position. Those that are tried stay the same.
        """
        left = self.positions
        self.tried = slice(left.start + at_begin, left.stop + at_begin)
        end, inner, position = (0, 1, 0) if at_begin else (-1, -2, self.grid.size)
        ratio = min(max(self.grid[end] / self.grid[inner], 0.1), 10.0)
        self.grid = np.insert(self.grid, position, self.grid[end] * ratio)
        self.results = np.insert(self.results, position, np.nan, axis=1)
        for number, kept in self.test_scores.items():
            self.test_scores[number] = {k + (k >= position): s for k, s in kept.items()}
        return position

    @property
    def name(self) -> str:
        prefix = self.map or (self.form if self.form in ("additive", "tf-idf") else None)
        return self.method if prefix is None else f"{prefix}: {self.method}"

    @property
    def key(self) -> Key:
        """What the rows it takes depend on."""
        return self.family, self.form, self.map

    @property
    def parameter(self) -> str:
        """Name of the parameter that is tuned."""
        return "rounds" if self.family == "trees" else "alpha"

    @property
    def measured(self) -> Vector:
        """Results of the folds that have any."""
        return self.results[np.isfinite(self.results).any(axis=1)]

    @property
    def means(self) -> Vector:
        """Means over the folds, by value; NaN for values that lack a fold the candidate has."""
        values = self.measured
        return values.mean(axis=0) if values.size else np.full(self.results.shape[1], np.nan)


def penalty_curve(results: Vector, ratio: float) -> Vector:
    """Means over the folds along the penalties, each averaged with its two neighbours as far as
    the folds do not show that they differ.

    A neighbour counts half, times 1 - t^2 for |t| < 1: t is the mean of the paired differences
    over the folds in units of their corrected standard error (Nadeau and Bengio 2003). So noise is
    averaged, a steep decline beside the best penalty does not count against it, and a penalty at
    the end of the path has no advantage from having one neighbour only.

    Parameters
    ----------
    results : array of shape (n_folds, n_alphas)
        NaN where nothing was measured.
    ratio : float
        Test rows over training rows of a fold.

    Examples
    --------
    >>> folds = np.array([[0.71, 0.74, 0.60], [0.72, 0.73, 0.61], [0.70, 0.75, 0.59]])
    >>> penalty_curve(folds, 0.5).round(3)
    array([0.71, 0.74, 0.6 ])
    """
    means = results.mean(axis=0)
    total, weight = means.copy(), np.ones(means.size)
    differences = results[:, 1:] - results[:, :-1]
    step = differences.mean(axis=0)
    error = corrected_error(differences, ratio)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = 0.5 * np.maximum(0.0, 1.0 - np.square(step / error))
    share[~np.isfinite(share)] = 0.0
    known = share > 0.0
    for here, there in ((slice(1, None), slice(None, -1)), (slice(None, -1), slice(1, None))):
        total[here][known] += (share * means[there])[known]
        weight[here][known] += share[known]
    return total / weight


def select(results: list[Vector], decades: list[Vector], ratio: float) -> tuple[int, int]:
    """The candidate and the position of the penalty to select.

    It is the one with the highest curve, less a preference for typical penalties where the folds do
    not decide: each decade that a penalty is farther from the typical one counts as a small share
    of the standard error of its paired differences to the highest. Of equal ones the largest
    penalty is selected.

    Parameters
    ----------
    results : list of arrays of shape (n_folds, n_values)
        The results of each candidate; NaN where nothing was measured.
    decades : list of arrays of shape (n_values,)
        The distance of each penalty from the typical one, in decades; zeros for other parameters.
    ratio : float
        Test rows over training rows of a fold.
    """
    curves = [penalty_curve(each, ratio) for each in results]
    first = int(np.argmax([np.nanmax(curve) for curve in curves]))
    highest = int(best_positions(curves[first])[0])
    reference = results[first][:, [highest]]
    values = [
        curve
        - _PREFERENCE
        * corrected_error(each - reference, ratio)
        * (distance - decades[first][highest])
        for curve, each, distance in zip(curves, results, decades, strict=True)
    ]
    winner = int(np.argmax([np.nanmax(value) for value in values]))
    return winner, int(best_positions(values[winner])[0])


def select_family(
    results: dict[str, Vector], excess: dict[str, float], ratio: float, *, few: bool = False
) -> str:
    """The name of the family to select.

    It is the simplest one, families being sorted by simplicity, that the average, or the family
    with the highest mean where there is no average, does not surpass by more than noise: neither in
    the measure, by more than a fifth of the standard error of the paired differences over the
    folds, nor in the logistic loss on held-out rows, by more than half a standard error. Larger
    margins would give away what averages gain, which is less than a standard error on most data; a
    family with a higher measure than the average has it by chance more often than not. With few
    rows of a class, a measure is all noise: the average is selected, unless it is one of its parts
    alone.

    Parameters
    ----------
    results : dict of arrays of shape (n_folds,)
        The results of the best fit of each family, the simplest family first.
    excess : dict of float
        By how many standard errors the loss of each exceeds that of the average.
    ratio : float
        Test rows over training rows of a fold.
    few : bool, default=False
        Whether the rarer class has too few rows to compare families.

    Examples
    --------
    >>> lines = np.array([0.801, 0.789, 0.812, 0.797])
    >>> trees = np.array([0.800, 0.790, 0.811, 0.798])
    >>> select_family({"linear": lines, "trees": trees}, {}, 0.25)
    'linear'
    >>> select_family({"linear": lines, "trees": trees, "average": trees + 0.02}, {}, 0.25)
    'average'
    """
    highest = max(results, key=lambda name: float(results[name].mean()))
    reference = results.get("average", results[highest])
    for name, values in results.items():
        behind = reference - values
        margin = _ERRORS_OF_FAMILIES * float(corrected_error(behind, ratio)) + 1e-12
        close = behind.mean() <= margin and excess.get(name, 0.0) <= _ERRORS_OF_LOSSES
        if few and "average" in results:
            close = bool(np.all(np.abs(behind) <= 1e-12))
        if close:
            return name
    return "average" if "average" in results else highest


def corrected_error(differences: Vector, ratio: float) -> Vector:
    """Standard error of a mean over folds (Nadeau and Bengio 2003); zero for a single fold."""
    n = len(differences)
    if n < 2:
        return np.zeros(differences.shape[1:])
    return np.std(differences, axis=0, ddof=1) * np.sqrt(1.0 / n + ratio)


def best_positions(values: Vector) -> Index:
    """Positions of the highest value, up to rounding errors."""
    return np.flatnonzero(values >= np.nanmax(values) - 1e-12)


def typical_penalty(X: Any, y: NDArray) -> float:
    """The total variance of the columns over the number of rows outside of the largest class.

    With as many weights as columns, each with the same prior variance, and scores of unit variance,
    it is the penalty of the most probable weights when the rows of the rarer classes carry the
    information.
    """
    design = make_design(X)
    with np.errstate(over="ignore", invalid="ignore"):
        first, second, _ = design.moments(np.full(design.n_rows, 1.0 / design.n_rows))
        variance = float(np.maximum(second - first**2, 0.0).sum())
    rarer = y.size - int(np.unique(y, return_counts=True)[1].max())
    return variance / max(rarer, 1) if 0.0 < variance < np.inf else 1.0
