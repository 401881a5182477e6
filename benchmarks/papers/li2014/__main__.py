"""Section 4 of li2014: scripts/paper li2014 [--quick] [--data NAME ...] [--trials N] [--out DIR].

Writes DIR/li2014.md with Tables 1 and 2 and Figure 1. Results are recorded in DIR/results.jsonl as
they come: an interrupted run resumes where it stopped, and a second run with more trials adds to
the first. Thirty trials on all data take three to four hours on two cores, --quick a few minutes.
"""

from collections import Counter

from .. import common
from . import page, protocol, published


def main() -> None:
    quick = "two trials, two folds, two alphas, small parts"
    parser = common.parser("li2014", __doc__, quick)
    data = list(published.DATA)
    parser.add_argument("--data", nargs="+", choices=data, help="data sets; all by default")
    parser.add_argument("--trials", type=int, help=f"random splits; {protocol.TRIALS} by default")
    args = common.parse(parser)
    names = args.data or data
    trials = args.trials or (2 if args.quick else protocol.TRIALS)
    folds = 2 if args.quick else protocol.N_FOLDS
    alphas = protocol.QUICK_ALPHAS if args.quick else protocol.ALPHAS
    settings = {"quick": args.quick, "protocol": protocol.constants()}
    results = common.Results(args.out, settings)
    splits = [
        (f"trial {name} {k} {method}", protocol.trial, name, k, method, alphas, folds)
        for k in range(trials)
        for name in names
        for method in protocol.methods(name)
    ]
    results.run(splits, args.jobs)
    timings = [] if args.quick else _timings(results, names)
    results.run([*timings, *_growths(quick=args.quick)])
    print(f"Wrote {page.write(results, names, args.out, quick=args.quick)}")


def _timings(results: common.Results, names: list[str]) -> list[common.Task]:
    """Every method on all rows, with the alpha that was selected most often."""
    tasks: list[common.Task] = []
    for name in names:
        for method in protocol.methods(name):
            records = results.select(kind="trial", data=name, method=method)
            counts = Counter(record["alpha"] for record in records)
            alpha = max(counts, key=lambda a: (counts[a], a))
            task = f"timing {name} {method} {alpha:g}"
            tasks.append((task, protocol.timing, name, method, alpha, 1))
    return tasks


def _growths(*, quick: bool) -> list[common.Task]:
    figure = protocol.FRACTIONS[:3] if quick else protocol.FRACTIONS
    alphas = protocol.FIGURE_ALPHAS[1::2] if quick else protocol.FIGURE_ALPHAS
    table = protocol.GROWTH_FRACTIONS[:2] if quick else protocol.GROWTH_FRACTIONS
    others = [method for method in published.COMPLEXITY if method != "TopPush"]
    alpha, growth = (protocol.GROWTH_ALPHA,), protocol.growth
    return [
        ("figure 1", growth, "TopPush", alphas, figure, 1 if quick else 3),
        *[(f"growth {method}", growth, method, alpha, table, 1) for method in others],
    ]


if __name__ == "__main__":
    main()
