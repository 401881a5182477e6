"""kotlowski2011, section 5, by one command: forerank reproduce kotlowski2011 [--quick] [--models N]
[--out DIR].

Writes DIR/kotlowski2011.md with Table 1 and Figure 1, and the study behind docs/do-i-need-pairs.md.
Results are kept in DIR/results.jsonl as they come: an interrupted run goes on where it stopped, and
a second run with more models adds to the first. All of it takes about three quarters of an hour on
two cores, --quick a minute.
"""

import argparse
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
        prog="forerank reproduce kotlowski2011", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--data", nargs="*", choices=list(published.TABLE_1), help="sets of Table 1; all by default"
    )
    parser.add_argument(
        "--models", type=int, help=f"random models in each panel; {protocol.MODELS} by default"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--quick", action="store_true", help="two models, two training sets, few folds and rows"
    )
    parser.add_argument(
        "--out", type=Path, help="default: bench-output/kotlowski2011, or kotlowski2011-quick"
    )
    args = parser.parse_args()
    out = args.out or Path("bench-output") / (
        "kotlowski2011-quick" if args.quick else "kotlowski2011"
    )
    names = list(published.TABLE_1) if args.data is None else args.data
    results = Results(
        out / "results.jsonl", {"quick": args.quick, "protocol": protocol.constants()}
    )
    tasks = [
        *_models(args.models or (2 if args.quick else protocol.MODELS), quick=args.quick),
        *_sets(names, quick=args.quick),
        *_study(quick=args.quick),
        *[(f"queries {fold}", "queries", fold) for fold in range(1 if args.quick else 5)],
        *[
            (f"top {name} {k}", "top", name, k)
            for name in protocol.TOP_SETS[: 1 if args.quick else None]
            for k in range(1 if args.quick else 10)
        ],
    ]
    with Progress() as progress:
        left = [task for task in tasks if task[0] not in results]
        bar = progress.add_task("kotlowski2011", total=len(tasks), completed=len(tasks) - len(left))
        parallel = joblib.Parallel(args.jobs, return_as="generator_unordered")
        for name, records in parallel(joblib.delayed(_run)(task) for task in left):
            results.add(name, records)
            progress.update(bar, description=name, advance=1)
    print(f"Wrote {page.write(results, names, out, quick=args.quick)}")


def _models(count: int, *, quick: bool) -> list[tuple]:
    """The three losses of the paper and our two apart, so that the former can be timed."""
    sets = 2 if quick else protocol.TRAINING_SETS
    return [
        (f"model {panel} {number} {' '.join(names)}", "model", panel, number, sets, names)
        for number in range(count)
        for panel in protocol.PANELS
        for names in (published.METHODS, protocol.OURS)
    ]


def _sets(names: list[str], *, quick: bool) -> list[tuple]:
    repeats, folds = (1, 3) if quick else (protocol.N_REPEATS, protocol.N_FOLDS)
    tasks: list[tuple] = []
    for name in names:
        for who in protocol.ALL:
            if name == "covtype":
                tasks.append((f"covtype {who}", "covtype", who, 20_000 if quick else None))
            else:
                tasks.append((f"set {name} {who}", "small_set", name, who, repeats, folds))
    return tasks


def _study(*, quick: bool) -> list[tuple]:
    shares = protocol.STUDY_SHARES[:2] if quick else protocol.STUDY_SHARES
    sizes = protocol.STUDY_ROWS[:2] if quick else protocol.STUDY_ROWS
    seeds = 2 if quick else protocol.STUDY_SEEDS
    return [
        (f"study {kind} {share} {rows}", "study", kind, share, rows, seeds)
        for kind in ("linear", "rules")
        for share in shares
        for rows in sizes
    ]


if __name__ == "__main__":
    main()
