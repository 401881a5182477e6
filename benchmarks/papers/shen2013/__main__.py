"""shen2013, section 4, by one command: forerank reproduce shen2013 [--quick] [--data NAME ...]
[--pools N] [--out DIR].

Writes DIR/shen2013.md with Tables 2 to 5 and Figures 1 to 3. Results are kept in DIR/results.jsonl
as they come: an interrupted run goes on where it stopped. The whole takes half an hour on two
cores, --quick two minutes and a half.
"""

import argparse
import warnings
from pathlib import Path

import joblib
from rich.progress import Progress
from sklearn.exceptions import ConvergenceWarning

from ..common import Results
from . import page, protocol, published


def _run(task: tuple) -> tuple[str, list[dict]]:
    warnings.simplefilter("ignore", ConvergenceWarning)  # noted in the records where it matters
    name, work, *arguments = task
    return name, getattr(protocol, work)(*arguments)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="forerank reproduce shen2013", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--data", nargs="+", choices=list(published.DATA), help="data sets; all by default"
    )
    parser.add_argument("--pools", type=int, help="initial pools; 10 by default")
    parser.add_argument("--jobs", type=int, default=2, help="processes for all but the timings")
    parser.add_argument(
        "--quick", action="store_true", help="two pools, one fold, three values of gamma"
    )
    parser.add_argument(
        "--out", type=Path, help="default: bench-output/shen2013, or shen2013-quick"
    )
    args = parser.parse_args()
    out = args.out or Path("bench-output") / ("shen2013-quick" if args.quick else "shen2013")
    names = args.data or list(published.DATA)
    pools = args.pools or (2 if args.quick else 10)
    settings = {
        "quick": args.quick,
        "pools": pools,
        "folds": 1 if args.quick else None,
        "gammas": ["uniform", 0.5, 1.0] if args.quick else list(protocol.GAMMAS),
        "protocol": protocol.constants(),
    }
    results = Results(out / "results.jsonl", settings)
    timings, others = [], []
    for name in names:
        timings.append((f"timing {name}", "timing", name, 1 if args.quick else protocol.TIMINGS))
        for fold in range(settings["folds"] or protocol.n_folds(name)):
            fold = min(fold, protocol.n_folds(name) - 1)
            others.append((f"accuracy {name} {fold}", "accuracy", name, fold, pools))
            gammas = tuple(settings["gammas"])
            others.append((f"gamma {name} {fold}", "trade_off", name, fold, pools, gammas))
    with Progress() as progress:
        bar = progress.add_task("shen2013", total=len(timings) + len(others))
        for task in timings:  # alone on the machine
            if task[0] not in results:
                progress.update(bar, description=task[0])
                results.add(*_run(task))
            progress.advance(bar)
        left = [task for task in others if task[0] not in results]
        progress.advance(bar, len(others) - len(left))
        parallel = joblib.Parallel(args.jobs, return_as="generator_unordered")
        for name, records in parallel(joblib.delayed(_run)(task) for task in left):
            results.add(name, records)
            progress.update(bar, description=name, advance=1)
    print(f"Wrote {page.write(results, names, out, settings)}")


if __name__ == "__main__":
    main()
