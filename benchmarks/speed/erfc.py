"""Sums of erfc to a given precision against a compiled double loop; growth in time and memory.

scripts/bench erfc [--points 51200] [--largest 10_000_000] [--all-targets]
"""

import argparse
import tracemalloc
from time import perf_counter

import numpy as np
from _timing import best
from rich.console import Console
from rich.table import Table

from forerank.pairsums import erfc_sum, erfc_sum_direct


def points(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal(n), rng.standard_normal(n)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=51_200, help="sources, and as many targets")
    parser.add_argument("--eps", type=float, default=1e-10)
    parser.add_argument(
        "--largest", type=int, default=10_000_000, help="points on either side, for the growth"
    )
    parser.add_argument(
        "--all-targets", action="store_true", help="the loop over all targets, not a tenth"
    )
    args = parser.parse_args()
    console = Console(width=110)
    y, z = points(args.points)
    erfc_sum(y[:10], z[:10], eps=args.eps)
    erfc_sum_direct(y[:10], z[:10])
    some = y if args.all_targets else y[: args.points // 10]
    clock = perf_counter()
    exact = erfc_sum_direct(some, z)
    loop = (perf_counter() - clock) * y.size / some.size
    fast = best(lambda: erfc_sum(y, z, eps=args.eps), 15)
    error = np.abs(erfc_sum(some, z, eps=args.eps) - exact).max() / z.size
    how = "" if args.all_targets else f", from {some.size:,} targets"
    console.print(
        f"{args.points:,} x {args.points:,} terms at eps = {args.eps:g}: double loop {loop:.1f} "
        f"s{how};"
    )
    console.print(
        f"series {1000 * fast:.2f} ms, {loop / fast:,.0f} times faster; error {error:.1e}"
    )
    table = Table(title=f"Growth at eps = {args.eps:g}")
    for column in (
        "points on either side",
        "ms",
        "for 4x points",
        "ns per point",
        "peak memory / points",
    ):
        table.add_column(column, justify="right")
    before = 0.0
    for n in [args.largest // 4**k for k in range(5, -1, -1)]:
        y, z = points(n)
        now = best(lambda y=y, z=z: erfc_sum(y, z, eps=args.eps), 3)
        tracemalloc.start()
        erfc_sum(y, z, eps=args.eps)
        peak = tracemalloc.get_traced_memory()[1] / (y.nbytes + z.nbytes)
        tracemalloc.stop()
        growth = f"{now / before:.2f}" if before else ""
        table.add_row(
            f"{n:,}", f"{1000 * now:.2f}", growth, f"{1e9 * now / (2 * n):.1f}", f"{peak:.1f}"
        )
        before = now
    console.print(table)


if __name__ == "__main__":
    main()
