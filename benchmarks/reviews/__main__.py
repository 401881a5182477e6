"""Screening of systematic reviews, simulated, by one command: scripts/reviews [--quick] [--out
DIR].

Writes DIR/reviews.md. Every ranker with the strategy "greedy" and every strategy with the default
ranker are run from ten seeds; all other pairs of strategy and ranker from --others of them. Results
are kept in DIR/results.jsonl as they come: an interrupted run goes on where it stopped. Where the
package asreview is installed, its default model joins in. All of it takes about an hour and a half
on two cores, --quick a minute.
"""

import argparse
from pathlib import Path

import joblib
from benchmarks.papers.common import Results
from rich.progress import Progress

from . import page, protocol


def _run(task: tuple) -> tuple[str, list[dict]]:
    name, *arguments = task
    return name, protocol.run(*arguments)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/reviews", description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--others", type=int, default=1, help="seedings of the other pairs of strategy and ranker"
    )
    parser.add_argument(
        "--slow", type=int, default=protocol.N_SEEDINGS, help="seedings of asreview and of diverse"
    )
    parser.add_argument(
        "--quick", action="store_true", help="the smallest review, one seeding, few rounds"
    )
    parser.add_argument("--out", type=Path, help="default: bench-output/reviews, or reviews-quick")
    args = parser.parse_args()
    out = args.out or Path("bench-output") / ("reviews-quick" if args.quick else "reviews")
    reviews = protocol.names()
    if args.quick:
        reviews = sorted(reviews, key=lambda name: len(protocol.read(name)))[:1]
    greedy = [f"{ranker}, greedy" for ranker in protocol.RANKERS]
    first = [*greedy, *([protocol.ASREVIEW] if protocol.has_asreview() else []), "random"]
    second = [f"{next(iter(protocol.RANKERS))}, {strategy}" for strategy in protocol.STRATEGIES[1:]]
    every = [
        f"{ranker}, {strategy}" for strategy in protocol.STRATEGIES for ranker in protocol.RANKERS
    ]
    others = [method for method in every if method not in first + second]
    seedings = 1 if args.quick else protocol.N_SEEDINGS
    # Seeding by seeding, so that a run that is broken off has compared all methods as far as it
    # came.
    tasks = [
        (f"{name} {seeding} {method}", name, seeding, method, 0.5 if args.quick else protocol.BATCH)
        for seeding in range(seedings)
        for methods in (first, second, others if seeding < args.others else [])
        for name in reviews
        for method in methods
        if seeding < args.slow or not (method == protocol.ASREVIEW or method.endswith("diverse"))
    ]
    results = Results(
        out / "results.jsonl", {"quick": args.quick, "protocol": protocol.constants()}
    )
    with Progress() as progress:
        left = [task for task in tasks if task[0] not in results]
        bar = progress.add_task("reviews", total=len(tasks), completed=len(tasks) - len(left))
        parallel = joblib.Parallel(args.jobs, return_as="generator_unordered", batch_size=1)
        for name, records in parallel(joblib.delayed(_run)(task) for task in left):
            results.add(name, records)
            progress.update(bar, description=name[:60], advance=1)
    print(
        f"Wrote {page.write(results, reviews, [*first, *second, *others], out, quick=args.quick)}"
    )


if __name__ == "__main__":
    main()
