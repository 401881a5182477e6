"""Stakes of the recall bounds: how large a number of relevant records is still possible.

Equations are those of docs/maths/stopping.md. With k relevant records found and d missing, a run of
irrelevant records from R to r unread ones has at most the probability

    q_d = C(r, d) / C(R, d),                                                            (1)

and the number k + d is rejected when q_d is at most its stake. Stakes of one number, over all k,
sum to at most delta. They are the larger of x_k^d, for the d that break the target (8), and of a
small part of delta that is spread over all d (6).
"""

from collections.abc import Callable
from functools import lru_cache
from math import ceil, floor, lgamma, log

import numpy as np

from forerank._kernels import compiled
from forerank._typing import Vector

__all__ = ["ROUNDING", "fewest_breaking", "largest_unread", "most_missing", "ratios"]

# Absolute tolerance for products such as 0.95 * 20, which are integers up to rounding error.
ROUNDING = 1e-9
# Share of delta that is spread over all numbers missing. It makes the bound rise before the target
# is reached; the ratios x_k become smaller by less than one per cent.
SPREAD = 0.05
# Number missing about which that share is spread: half of it lies on d <= SPREAD_CENTRE.
SPREAD_CENTRE = 20
# Ratios are computed one by one while fewer than so many missing records break the target; beyond,
# rounding of target * K hardly matters, and (4) gives them directly.
N_EXACT = 64
# Share of delta left to terms of the sum (3) beyond the window of the recursion.
BEYOND_WINDOW = 1e-5
# Halvings of an interval in (0, 1), to the precision of double numbers.
N_HALVINGS = 60


def fewest_breaking(found: int, target: float) -> int:
    """The smallest number of missing records with which found / (found + missing) < target."""
    return floor(found / target + ROUNDING) + 1 - found


def ratios(target: float, delta: float, n: int) -> Vector:
    """x_0 ... x_(n-1) of (8): the rule stops at r unread records where q_m <= x_k^m, or earlier.

    The first values do not depend on n. Cost: a few microseconds for each, once per process.
    """
    size = 64
    while size < n:
        size *= 2
    return _cached_ratios(float(target), float(delta), size)[:n]


@lru_cache(maxsize=256)
def _cached_ratios(target: float, delta: float, n: int) -> Vector:
    budget = delta * (1.0 - SPREAD) * (1.0 - BEYOND_WINDOW)
    last = geometric_ratio(np.array([N_EXACT]), budget)[0]
    window = ceil(log(BEYOND_WINDOW) / log(last))
    k = np.arange(n + 2 * window)
    breaking = np.floor(k / target + ROUNDING).astype(np.int64) + 1 - k
    geometric = geometric_ratio(np.arange(1, breaking[n - 1] + 1), budget)
    limit = geometric[breaking[:n] - 1]
    n_exact = int(np.searchsorted(breaking[:n], N_EXACT))
    old = _polynomial_ratios(breaking, delta, n_exact + window, window)
    made = _recursion(breaking, old, limit[:n_exact], last, budget, window)
    return np.concatenate([made, limit[n_exact:]])


def geometric_ratio(breaking: np.ndarray, budget: float) -> Vector:
    """The solutions x of x^m / (1 - x) = budget, equation (4), one for each m."""
    low, high = np.zeros(breaking.size), np.ones(breaking.size)
    for _ in range(N_HALVINGS):
        middle = 0.5 * (low + high)
        enough = breaking * np.log(middle) - np.log1p(-middle) <= log(budget)
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return low


@compiled
def _polynomial_ratios(breaking, delta, n, window):  # type: ignore[no-untyped-def]
    """Ratios at which stakes delta / ((j+1)(j+2)) stop, equation (7): the rule may not read more
    than that.
    """
    made = np.empty(n)
    for k in range(n):
        least = 0.0
        for j in range(window):
            least = min(least, np.log(delta / ((j + 1) * (j + 2))) / (breaking[k + j] + j))
        made[k] = np.exp(least)
    return made


@compiled
def _recursion(breaking, old, limit, last, budget, window):  # type: ignore[no-untyped-def]
    """Each x_k as large as `limit` and the sums (3) permit, with `old` for those after it."""
    n = limit.size
    made = np.empty(n)
    total = np.zeros(n + window)
    for top in range(n + window):
        for k in range(max(0, top - window), top + 1):
            total[top] += old[k] ** (breaking[top] + top - k)
    for k in range(n):
        most = min(max(limit[k], old[k]), last)
        for top in range(k, k + window):
            d = breaking[top] + top - k
            room = budget - total[top] + old[k] ** d
            most = min(most, max(room, 0.0) ** (1.0 / d))
        made[k] = most
        for top in range(k, k + window):
            d = breaking[top] + top - k
            total[top] += most**d - old[k] ** d
    return made


def most_missing(found: int, at_last_find: int, unread: int, *, target: float, delta: float) -> int:
    """The largest number of missing relevant records that is not rejected.

    Parameters
    ----------
    found : int
        Relevant records so far, with those known before reading began.
    at_last_find, unread : int
        Unread records right after the last find (or at the start), and now.
    target, delta : float
        The recall that the stakes are made for, and their sum.

    Notes
    -----
    q_d has a concave logarithm in d, so that the numbers that each of the two kinds of stake
    leaves possible are an interval: bisection takes O(log unread) steps.
    """
    if not unread:
        return 0
    constant = lgamma(unread + 1.0) - lgamma(at_last_find + 1.0)

    def log_run(d: int) -> float:
        return constant - lgamma(unread - d + 1.0) + lgamma(at_last_find - d + 1.0)

    def spread_allows(d: int) -> bool:
        above = (d + SPREAD_CENTRE - 1.0) * (d + SPREAD_CENTRE)
        return d == 0 or log_run(d) > log(delta * SPREAD * SPREAD_CENTRE / above)

    most = _last_true(spread_allows, 0, unread)
    breaking = fewest_breaking(found, target)
    if breaking > most:
        return most
    log_ratio = log(ratios(target, delta, found + 1)[found])
    if log_run(breaking) <= breaking * log_ratio:
        return breaking - 1
    return min(most, _last_true(lambda d: log_run(d) > d * log_ratio, breaking, unread))


def largest_unread(stops: Callable[[int], bool], unread: int) -> int:
    """The largest number of unread records at which a rule stops if nothing more is found."""
    return unread if stops(unread) else _last_true(stops, 0, unread)


def _last_true(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The last number in low .. high up to which `holds`, which is true at `low`."""
    if holds(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
