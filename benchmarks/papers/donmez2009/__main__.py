"""donmez2009, section 3, by one command: forerank reproduce donmez2009 [--quick] [--jobs N] [--out
DIR].

Writes DIR/donmez2009.md with Tables 1 and 2 and Figure 3. Results are kept in DIR/results.jsonl as
they come: an interrupted run goes on where it stopped. All of it takes about twenty minutes on two
cores, --quick half a minute.
"""

import argparse
from pathlib import Path

import joblib
from rich.progress import Progress

from ..common import Results
from . import page, protocol


def _run(task: tuple) -> tuple[str, list[dict]]:
    name, work, *arguments = task
    return name, getattr(protocol, work)(*arguments)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="forerank reproduce donmez2009", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--quick", action="store_true", help="MQ2008, two splits, one seeding, three rounds"
    )
    parser.add_argument(
        "--out", type=Path, help="default: bench-output/donmez2009, or donmez2009-quick"
    )
    args = parser.parse_args()
    out = args.out or Path("bench-output") / ("donmez2009-quick" if args.quick else "donmez2009")
    names = list(protocol.SETTINGS)[: 1 if args.quick else None]
    results = Results(
        out / "results.jsonl", {"quick": args.quick, "protocol": protocol.constants()}
    )
    tasks = []
    for name in names:
        settings = protocol.SETTINGS[name]
        rounds = 3 if args.quick else settings["rounds"]
        n_splits = 2 if args.quick else protocol.N_SPLITS[name]
        tasks += [
            (f"{name} {split} {seeding} {method}", "run", name, split, seeding, method, rounds)
            for seeding in range(1 if args.quick else settings["seedings"])
            for split in range(n_splits)
            for method in protocol.STRATEGIES
        ]
        tasks += [
            (f"overlap {name} {split}", "overlap", name, split, rounds) for split in range(n_splits)
        ]
    with Progress() as progress:
        left = [task for task in tasks if task[0] not in results]
        bar = progress.add_task("donmez2009", total=len(tasks), completed=len(tasks) - len(left))
        parallel = joblib.Parallel(args.jobs, return_as="generator_unordered")
        for name, records in parallel(joblib.delayed(_run)(task) for task in left):
            results.add(name, records)
            progress.update(bar, description=name, advance=1)
    print(f"Wrote {page.write(results, names, out, quick=args.quick)}")


if __name__ == "__main__":
    main()
