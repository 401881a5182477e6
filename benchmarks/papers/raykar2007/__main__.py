"""raykar2007, sections 5 to 7, by one command: forerank reproduce raykar2007 [--quick] [--data NAME
...] [--out DIR].

Writes DIR/raykar2007.md with Tables 1 to 4 and Figures 2 and 3. Results are kept in
DIR/results.jsonl as they come: an interrupted run goes on where it stopped. All of it takes about
an hour on two cores, --quick a minute.
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
        prog="forerank reproduce raykar2007", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--data", nargs="+", choices=list(published.TABLE_1), help="data sets; all by default"
    )
    parser.add_argument(
        "--jobs", type=int, default=2, help="processes for the selection of parameters"
    )
    parser.add_argument("--users", type=int, help=f"users for Table 2; {protocol.USERS} by default")
    parser.add_argument(
        "--quick", action="store_true", help="two folds, two alphas, two users, small sums"
    )
    parser.add_argument(
        "--out", type=Path, help="default: bench-output/raykar2007, or raykar2007-quick"
    )
    args = parser.parse_args()
    out = args.out or Path("bench-output") / ("raykar2007-quick" if args.quick else "raykar2007")
    names = args.data or list(published.TABLE_1)
    results = Results(
        out / "results.jsonl", {"quick": args.quick, "protocol": protocol.constants()}
    )
    with Progress() as progress:
        bar = progress.add_task("raykar2007", total=None)
        _carry_out(_selections(names, quick=args.quick), results, progress, bar, args.jobs)
        # Alone on the machine: these are timed.
        _carry_out(_measurements(results, names, quick=args.quick), results, progress, bar, 1)
        _carry_out(_recommendations(args.users, quick=args.quick), results, progress, bar, 1)
        _carry_out(_figures(quick=args.quick), results, progress, bar, 1)
    print(f"Wrote {page.write(results, names, out, quick=args.quick)}")


def _carry_out(
    tasks: list[tuple], results: Results, progress: Progress, bar: int, jobs: int
) -> None:  # type: ignore[type-arg]
    left = [task for task in tasks if task[0] not in results]
    progress.update(bar, total=len(tasks), completed=len(tasks) - len(left))
    if jobs == 1:
        for task in left:
            progress.update(bar, description=task[0])
            results.add(*_run(task))
            progress.advance(bar)
        return
    parallel = joblib.Parallel(jobs, return_as="generator_unordered")
    for name, records in parallel(joblib.delayed(_run)(task) for task in left):
        results.add(name, records)
        progress.update(bar, description=name, advance=1)


def _fold_numbers(*, quick: bool) -> range:
    return range(2 if quick else protocol.N_FOLDS)


def _selections(names: list[str], *, quick: bool) -> list[tuple]:
    return [
        (
            f"select {name} {variant} {who} {fold}",
            "select",
            name,
            variant,
            who,
            fold,
            protocol.grid(who, quick=quick),
        )
        for name in names
        for variant in protocol.variants(name)
        for who in protocol.ALL
        if who != "RankNCG direct"
        for fold in _fold_numbers(quick=quick)
    ]


def _measurements(results: Results, names: list[str], *, quick: bool) -> list[tuple]:
    tasks = []
    for name in names:
        for variant in protocol.variants(name):
            for who in protocol.ALL:
                numbers = _fold_numbers(quick=quick)
                if who == "RankNCG direct" and published.TABLE_1[name][4] > protocol.MANY_PAIRS:
                    numbers = range(1 if quick or variant != "columns" else 2)
                for fold in numbers:
                    # Direct is too slow to be cross-validated, and takes over the alpha of fast.
                    chosen_by = "RankNCG fast" if who == "RankNCG direct" else who
                    record = results.select(
                        kind="chosen", data=name, variant=variant, method=chosen_by, fold=fold
                    )[-1]
                    task = f"fold {name} {variant} {who} {fold} {record['value']:g}"
                    tasks.append((task, "measure", name, variant, who, fold, record["value"]))
    return tasks


def _recommendations(count: int | None, *, quick: bool) -> list[tuple]:
    columns = protocol.COLUMNS[:2] if quick else protocol.COLUMNS
    chosen = protocol.users(count or (2 if quick else protocol.USERS))
    return [(f"user {user} {d}", "recommend", user, d, quick) for d in columns for user in chosen]


def _figures(*, quick: bool) -> list[tuple]:
    sizes = protocol.SUM_SIZES[:4] if quick else protocol.SUM_SIZES
    precisions = protocol.EPSILONS[1::4] if quick else protocol.EPSILONS
    fits = protocol.FIGURE_3_EPSILONS[1::3] if quick else protocol.FIGURE_3_EPSILONS
    tasks: list[tuple] = [(f"sums {n}", "sums_by_size", n) for n in sizes]
    tasks += [(f"precision {eps:g}", "sums_by_precision", eps) for eps in precisions]
    return tasks + [(f"eps {eps}", "fits_by_precision", eps) for eps in (*fits, None)]


if __name__ == "__main__":
    main()
