"""Logistic sums over all pairs on a grid against a compiled double loop; growth in time.

scripts/bench sums [--rows 51200] [--largest 10_000_000]
"""

import argparse
from time import perf_counter

import numpy as np
from _timing import best
from numba import njit
from rich.console import Console
from rich.table import Table

from forerank.losses import logistic_kernel
from forerank.pairsums import HingePairs, LogisticPairs, PairBlocks


@njit(cache=True, nogil=True)
def double_loop(upper, lower):
    """The mean loss and its slopes at all rows, pair by pair."""
    g_upper, g_lower = np.zeros(upper.size), np.zeros(lower.size)
    value = 0.0
    for i in range(upper.size):
        for j in range(lower.size):
            loss, slope, _ = logistic_kernel(upper[i] - lower[j])
            value += loss
            g_upper[i] += slope
            g_lower[j] -= slope
    pairs = upper.size * lower.size
    return value / pairs, np.concatenate((g_lower, g_upper)) / pairs


def problem(n_per_side: int) -> tuple[np.ndarray, PairBlocks]:
    rng = np.random.default_rng(0)
    positive = np.repeat([0, 1], n_per_side)
    return rng.standard_normal(2 * n_per_side) + positive, PairBlocks.build(positive)


def timings(n: int) -> tuple[float, float, float]:
    """Seconds of the logistic value and gradient, of its curvature product, and of the value and
    gradient of the squared hinge.
    """
    s, blocks = problem(n // 2)
    u = np.cos(np.arange(s.size))
    sums = LogisticPairs(blocks, s)
    sums.curvature_product(u)
    return (
        best(lambda: LogisticPairs(blocks, s), 5),
        best(lambda: sums.curvature_product(u), 5),
        best(lambda: HingePairs(blocks, s, 2), 5),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=51_200, help="rows on either side")
    parser.add_argument(
        "--largest", type=int, default=10_000_000, help="rows in all, for the growth"
    )
    args = parser.parse_args()
    console = Console(width=110)
    s, blocks = problem(args.rows)
    double_loop(s[:10], s[-10:])
    LogisticPairs(blocks, s)
    clock = perf_counter()
    value, gradient = double_loop(s[args.rows :], s[: args.rows])
    loop = perf_counter() - clock
    grid = best(lambda: LogisticPairs(blocks, s), 15)
    sums = LogisticPairs(blocks, s)
    console.print(
        f"{args.rows:,} x {args.rows:,} logistic terms, value and all slopes: double loop "
        f"{loop:.3f} s, grid {1000 * grid:.3f} ms, {loop / grid:,.0f} times faster"
    )
    slope_error = np.abs(sums.gradient - gradient).max() / np.abs(gradient).max()
    value_error = abs(sums.value - value) / value
    console.print(f"relative error: value {value_error:.1e}, slopes {slope_error:.1e}")
    table = Table(title="Growth (value and gradient; curvature product)")
    for column in (
        "rows",
        "grid ms",
        "for 4x rows",
        "product ms",
        "for 4x rows",
        "sorted ms",
        "for 4x rows",
    ):
        table.add_column(column, justify="right")
    before: tuple[float, ...] = ()
    sizes = [args.largest // 4**k for k in range(5, -1, -1)]
    for n in sizes:
        now = timings(n)
        growth = [f"{b / a:.2f}" for a, b in zip(before, now, strict=True)] if before else [""] * 3
        cells = [cell for t, g in zip(now, growth, strict=True) for cell in (f"{1000 * t:.2f}", g)]
        table.add_row(f"{n:,}", *cells)
        before = now
    console.print(table)


if __name__ == "__main__":
    main()
