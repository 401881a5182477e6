"""li2014, section 4, by one command: forerank reproduce li2014 [--quick] [--data NAME ...]
[--trials N] [--out DIR].

Writes DIR/li2014.md with Tables 1 and 2 and Figure 1. Results are kept in DIR/results.jsonl as they
come: an interrupted run goes on where it stopped, and a second run with more trials adds to the
first. Thirty trials on all data take three to four hours on two cores, --quick a few minutes.
"""

import argparse
from collections import Counter
from pathlib import Path

import joblib
from rich.progress import Progress

from ..common import Results
from . import page, protocol, published


def _run(task: tuple) -> tuple[str, list[dict]]:
    name, work, *arguments = task
    return name, getattr(protocol, work)(*arguments)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="forerank reproduce li2014", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--data", nargs="+", choices=list(published.DATA), help="data sets; all by default"
    )
    parser.add_argument("--trials", type=int, help=f"random splits; {protocol.TRIALS} by default")
    parser.add_argument("--jobs", type=int, default=2, help="processes for all but the timings")
    parser.add_argument(
        "--quick", action="store_true", help="two trials, two folds, two alphas, small parts"
    )
    parser.add_argument("--out", type=Path, help="default: bench-output/li2014, or li2014-quick")
    args = parser.parse_args()
    out = args.out or Path("bench-output") / ("li2014-quick" if args.quick else "li2014")
    names = args.data or list(published.DATA)
    trials = args.trials or (2 if args.quick else protocol.TRIALS)
    folds = 2 if args.quick else protocol.N_FOLDS
    alphas = protocol.QUICK_ALPHAS if args.quick else protocol.ALPHAS
    results = Results(
        out / "results.jsonl", {"quick": args.quick, "protocol": protocol.constants()}
    )
    splits = [
        (f"trial {name} {number} {who}", "trial", name, number, who, alphas, folds)
        for number in range(trials)
        for name in names
        for who in protocol.methods(name)
    ]
    growths = _growths(quick=args.quick)
    with Progress() as progress:
        bar = progress.add_task("li2014", total=len(splits) + len(growths))
        left = [task for task in splits if task[0] not in results]
        progress.advance(bar, len(splits) - len(left))
        parallel = joblib.Parallel(args.jobs, return_as="generator_unordered")
        for name, records in parallel(joblib.delayed(_run)(task) for task in left):
            results.add(name, records)
            progress.update(bar, description=name, advance=1)
        # Alone on the machine.
        timings = [] if args.quick else _timings(results, names)
        progress.update(bar, total=len(splits) + len(growths) + len(timings))
        for task in [*timings, *growths]:
            if task[0] not in results:
                progress.update(bar, description=task[0])
                results.add(*_run(task))
            progress.advance(bar)
    print(f"Wrote {page.write(results, names, out, quick=args.quick)}")


def _timings(results: Results, names: list[str]) -> list[tuple]:
    """Every method on all rows, with the parameter that was selected most often."""
    tasks = []
    for name in names:
        for who in protocol.methods(name):
            chosen = Counter(
                record["alpha"] for record in results.select(kind="trial", data=name, method=who)
            )
            alpha = max(chosen, key=lambda a: (chosen[a], a))
            tasks.append((f"timing {name} {who} {alpha:g}", "timing", name, who, alpha, 1))
    return tasks


def _growths(*, quick: bool) -> list[tuple]:
    figure = protocol.FRACTIONS[:3] if quick else protocol.FRACTIONS
    figure_alphas = protocol.FIGURE_ALPHAS[1::2] if quick else protocol.FIGURE_ALPHAS
    table = protocol.GROWTH_FRACTIONS[:2] if quick else protocol.GROWTH_FRACTIONS
    tasks = [("figure 1", "growth", "TopPush", figure_alphas, figure, 1 if quick else 3)]
    others = [who for who in published.COMPLEXITY if who != "TopPush"]
    return tasks + [
        (f"growth {who}", "growth", who, (protocol.GROWTH_ALPHA,), table, 1) for who in others
    ]


if __name__ == "__main__":
    main()
