"""The plain hinge over all pairs to a certified gap, against the squared hinge on the same data.

scripts/bench hinge [--data NAME ...] [--gap 1e-3]
"""

import argparse
import warnings
from time import perf_counter

import numpy as np
from fits import split
from rich.console import Console
from rich.table import Table

from forerank import PairwiseRanker


def best_fit(make, X, y, repeats: int) -> tuple[float, PairwiseRanker]:
    make().fit(X, y)  # compile
    runs = []
    for _ in range(repeats):
        ranker = make()
        clock = perf_counter()
        ranker.fit(X, y)
        runs.append((perf_counter() - clock, ranker))
    return min(runs, key=lambda run: run[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=("a9a",))
    parser.add_argument("--gap", type=float, default=1e-3)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    table = Table(
        title=f"Hinge to a relative gap of {args.gap:g}, squared hinge to a gradient of 1e-3"
    )
    for column in ("data", "alpha", "squared hinge s", "hinge s", "ratio", "gap reached", "planes"):
        table.add_column(column, justify="right")
    ratios = []
    for name in args.data:
        X, _, y, _ = split(name)
        for alpha in (1e-2, 1e-3, 1e-4, 1e-5):
            squared, _ = best_fit(
                lambda a=alpha: PairwiseRanker("squared_hinge", alpha=a), X, y, args.repeats
            )
            seconds, ranker = best_fit(
                lambda a=alpha: PairwiseRanker("hinge", alpha=a, tol=args.gap), X, y, args.repeats
            )
            ratios.append(seconds / squared)
            table.add_row(
                name, f"{alpha:g}", f"{squared:.4f}", f"{seconds:.4f}", f"{ratios[-1]:.1f}",
                f"{ranker.optimality_:.1e}", str(ranker.n_iter_),
            )  # fmt: skip
    Console(width=120).print(table)
    print(
        f"geometric mean of the ratio {np.exp(np.mean(np.log(ratios))):.2f}, largest "
        f"{max(ratios):.2f}"
    )


if __name__ == "__main__":
    main()
