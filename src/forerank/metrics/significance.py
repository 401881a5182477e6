"""Tests of differences between methods: t-tests, Holm's correction, Friedman's test and Nemenyi's
critical difference.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import nctdtrinc

from forerank._typing import Vector

__all__ = [
    "PairedT",
    "corrected_margin",
    "corrected_t_test",
    "critical_difference",
    "critical_difference_groups",
    "friedman_test",
    "holm",
    "paired_t",
]


def corrected_t_test(
    differences: ArrayLike, ratio: float, *, confidence: float = 0.95
) -> dict[str, Any]:
    """The corrected resampled t-test (Nadeau and Bengio 2003) of paired differences over folds.

    ``t = mean(d) / sqrt((1/J + ratio) var(d))`` with J - 1 degrees of freedom. The uncorrected test
    has 1/J alone, as if the folds were independent; they share training rows, and `ratio` accounts
    for that. With repeated cross-validation J counts all folds of all repetitions (Bouckaert and
    Frank 2004).

    Parameters
    ----------
    differences : array-like of shape (J,)
    ratio : float
        Test rows over training rows, 1/(k - 1) for k folds.
    confidence : float, default=0.95

    Returns
    -------
    dict
        difference (the mean), low, high, t, p_single, effect (mean over standard deviation),
        effect_low, effect_high, n; None for all but the mean with fewer than two differences.

    Examples
    --------
    >>> found = corrected_t_test([0.02, 0.01, 0.03, 0.02, 0.02], 1 / 4)
    >>> round(found["t"], 3), round(found["p_single"], 3)
    (4.216, 0.014)
    """
    d = np.asarray(differences, dtype=np.float64)
    n, mean = d.size, float(d.mean())
    names = ("low", "high", "t", "p_single", "effect", "effect_low", "effect_high")
    result: dict[str, Any] = {"difference": mean, **dict.fromkeys(names), "n": n}
    if n < 2:
        return result
    spread = float(d.std(ddof=1))
    if spread <= 1e-14 * max(1.0, abs(mean)):  # all differences are equal up to rounding
        p = 1.0 if abs(mean) < 1e-14 else 0.0
        return result | {"low": mean, "high": mean, "p_single": p}
    scale = np.sqrt(1 / n + ratio)
    t, half = mean / (scale * spread), corrected_margin(d, ratio, confidence=confidence)
    tails = 0.5 + confidence / 2, 0.5 - confidence / 2
    effect_low, effect_high = (float(nctdtrinc(n - 1, tail, t) * scale) for tail in tails)
    return result | {
        "low": float(mean - half),
        "high": float(mean + half),
        "t": float(t),
        "p_single": float(2 * stats.t.sf(abs(t), n - 1)),
        "effect": mean / spread,
        "effect_low": effect_low,
        "effect_high": effect_high,
    }


def corrected_margin(differences: Vector, ratio: float, *, confidence: float = 0.95) -> float:
    """Half the width of the confidence interval of `corrected_t_test`: a mean nearer to zero than
    this is not significantly different from it.
    """
    n = differences.size
    error = np.sqrt(1 / n + ratio) * float(differences.std(ddof=1))
    return float(stats.t.ppf(0.5 + confidence / 2, n - 1) * error)


def holm(p_values: Iterable[float]) -> list[float]:
    """p-values corrected for their number after Holm (1979), in the order given.

    The i-th smallest of m is multiplied by m - i + 1, and raised to the one before it if it is
    smaller; none exceeds 1.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(list(p_values), dtype=np.float64)
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    steps = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    corrected[order] = np.minimum(1.0, steps)
    return corrected.tolist()


@dataclass(frozen=True)
class PairedT:
    """A two-sided paired t-test: mean difference, its 95 % confidence interval, p, and the number
    of pairs.
    """

    difference: float
    low: float
    high: float
    p: float
    n: int


def paired_t(a: ArrayLike, b: ArrayLike) -> PairedT:
    """The paired t-test of a - b, for independent pairs such as runs from different seeds; folds of
    one data set need `corrected_t_test`.

    Examples
    --------
    >>> found = paired_t([0.9, 0.8, 0.85], [0.7, 0.65, 0.6])
    >>> round(found.difference, 3), found.p < 0.05
    (0.2, True)
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape or first.ndim != 1 or not first.size:
        raise ValueError(
            f"a and b have shapes {first.shape} and {second.shape}; give two arrays of one "
            "dimension and equal length, at least one value each."
        )
    d = first - second
    n, mean = d.size, float(d.mean())
    if n < 2:
        return PairedT(mean, -np.inf, np.inf, 1.0, n)
    error = float(d.std(ddof=1)) / np.sqrt(n)
    half = float(stats.t.ppf(0.975, n - 1)) * error
    p = float(2.0 * stats.t.sf(abs(mean) / error, n - 1)) if error > 0.0 else float(mean == 0.0)
    return PairedT(mean, mean - half, mean + half, p, n)


# --- Ranks of several methods ---


def friedman_test(values: Vector) -> dict[str, float] | None:
    """Friedman's test that all methods rank alike: chi2 and p, from a row per fold and a column per
    method; None with fewer than three methods or two folds.
    """
    if values.shape[1] < 3 or values.shape[0] < 2:
        return None
    if np.all(values == values[:, :1]):  # all tied
        return {"chi2": 0.0, "p": 1.0}
    test = stats.friedmanchisquare(*values.T)
    return {"chi2": float(test.statistic), "p": float(test.pvalue)}


def critical_difference(n_methods: int, n_folds: int, level: float = 0.05) -> float:
    """Nemenyi's critical difference of mean ranks: ``q sqrt(k (k + 1) / (6 N))``.

    k methods, N folds; q is the quantile of the studentized range with infinitely many degrees of
    freedom, over sqrt(2) (Demšar 2006). NaN with fewer than two methods, or without folds.
    """
    k = n_methods
    if k < 2 or n_folds < 1:
        return float("nan")
    q = stats.studentized_range.ppf(1 - level, k, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(k * (k + 1) / (6 * n_folds)))


def critical_difference_groups(ranks: Iterable[float], cd: float) -> list[tuple[int, int]]:
    """First and last position of each largest group without significant differences.

    `ranks` ascend. Two methods differ significantly if their mean ranks differ by at least `cd`
    (Demšar 2006, section 3.2.2), so within a group they differ by less.

    Examples
    --------
    >>> critical_difference_groups([1.0, 1.5, 2.0, 4.0], cd=1.0)
    [(0, 1), (1, 2)]
    """
    values = np.asarray(list(ranks), dtype=np.float64)
    groups: list[tuple[int, int]] = []
    for first in range(values.size):
        last = int(np.flatnonzero(values[first:] - values[first] < cd).max(initial=0)) + first
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups
