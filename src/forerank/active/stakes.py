"""Stakes of the recall bounds: how many relevant records may still be missing.

Equations are those of docs/maths/stopping.md. With k relevant records found, d missing, and R
records unread at the last find, a run of irrelevant records until r are unread has at most the
probability

    q_d(r, R) = C(r, d) / C(R, d).                                                      (1)

The number K = k + d is rejected when q_d is at most its stake, the larger of

    rho_m^d                    if d >= m, where m is the fewest that break the target,  (4)
    spread delta w_d           for all d, where the w_d sum to one.                     (5)

The stakes of one K, over all k, sum to at most delta.
"""

from collections.abc import Callable
from functools import lru_cache
from math import floor, lgamma, log, log1p

__all__ = ["ROUNDING", "fewest_breaking", "geometric_ratio", "largest_unread", "most_missing"]

# Absolute tolerance for products such as 0.95 * 20, which are integers up to rounding error.
ROUNDING = 1e-9
# Share of delta that is spread over all numbers missing. It makes the bound rise before the target
# is reached, and costs about 0.1 % of the records (docs/decisions.md).
SPREAD = 0.02
# Number missing about which that share is spread: half of it lies on d <= SPREAD_CENTRE.
SPREAD_CENTRE = 20
# Halvings of the interval (0, 1), to the precision of double numbers.
N_HALVINGS = 60


def fewest_breaking(found: int, target: float) -> int:
    """The smallest number of missing records with which found / (found + missing) < target (2)."""
    return floor(found / target + ROUNDING) + 1 - found


@lru_cache(maxsize=4096)
def geometric_ratio(breaking: int, delta: float) -> float:
    """The solution rho of rho^m / (1 - rho) = delta for m = `breaking` (3), rounded down."""
    low, high = 0.0, 1.0
    for _ in range(N_HALVINGS):
        rho = 0.5 * (low + high)
        if rho < 1.0 and breaking * log(rho) - log1p(-rho) <= log(delta):
            low = rho
        else:
            high = rho
    return low


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
    The numbers that each of the two kinds of stake leaves possible are an interval (docs/maths/
    stopping.md): bisection takes O(log unread) steps.
    """
    constant = lgamma(unread + 1.0) - lgamma(at_last_find + 1.0)

    def log_run(d: int) -> float:
        return constant - lgamma(unread - d + 1.0) + lgamma(at_last_find - d + 1.0)

    def spread_allows(d: int) -> bool:
        weight = SPREAD_CENTRE / ((d + SPREAD_CENTRE - 1.0) * (d + SPREAD_CENTRE))
        return log_run(d) > log(SPREAD * delta * weight)

    most = _last_true(spread_allows, 0, unread)
    breaking = fewest_breaking(found, target)
    if breaking > most:
        return most
    log_ratio = log(geometric_ratio(breaking, (1.0 - SPREAD) * delta))
    if log_run(breaking) <= breaking * log_ratio:
        return breaking - 1
    return _last_true(lambda d: log_run(d) > d * log_ratio, breaking, most)


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
