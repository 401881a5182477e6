"""Section 4 of li2014: scripts/paper li2014 [--quick] [--data NAME ...] [--trials N] [--out DIR].

Writes DIR/li2014.md with Tables 1 and 2, Figure 1 and Theorem 2. Results are recorded as they come:
an interrupted run resumes where it stopped, and a second run with more trials adds to the first.
Thirty trials on all data take hours of processor time, --quick a few minutes.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from .. import common
from . import page, protocol, published


def _options(parser: Any) -> None:
    data = list(published.DATA)
    parser.add_argument("--data", nargs="+", choices=data, default=data, help="all by default")
    parser.add_argument("--trials", type=int, help=f"random splits; {protocol.TRIALS} by default")


def _stages(results: common.Results, args: Any) -> Iterator[common.Stage]:
    trials = args.trials or (2 if args.quick else protocol.TRIALS)
    folds = 2 if args.quick else protocol.N_FOLDS
    fast, late = (
        [
            (f"trial {name} {k} {method}", protocol.trial, name, k, method, alphas, folds)
            for k in range(trials)
            for name in args.data
            for method in protocol.methods(name)
            if method != protocol.SAME[1] and ((name, method) in protocol.LATE) == slow
            for alphas in [protocol.QUICK_ALPHAS if args.quick else protocol.alphas(name, method)]
        ]
        for slow in (False, True)
    )
    yield fast
    yield _growths(quick=args.quick)
    yield ([] if args.quick else _timings(results, args.data))
    yield late
    yield ([] if args.quick else _timings(results, args.data))


def _timings(results: common.Results, names: list[str]) -> list[common.Task]:
    """Every method with a trial on all rows, with the alpha that was selected most often."""
    tasks: list[common.Task] = []
    for name in names:
        for method in (*protocol.methods(name), protocol.ALGORITHM_1):
            who = "TopPush" if method == protocol.ALGORITHM_1 else method
            records = results.select(kind="trial", data=name, method=who)
            if not records:
                continue
            counts = Counter(record["alpha"] for record in records)
            alpha = max(counts, key=lambda a: (counts[a], a))
            task = f"timing {name} {method} {alpha:g}"
            tasks.append((task, protocol.timing, name, method, alpha))
    return tasks


def _growths(*, quick: bool) -> list[common.Task]:
    """Figure 1, Table 1 (on one set, other methods), and Theorem 2."""
    alpha, both = protocol.GROWTH_ALPHA, ("TopPush", protocol.ALGORITHM_1)
    fractions = protocol.QUICK_FRACTIONS if quick else protocol.FRACTIONS
    patience = protocol.QUICK_PATIENCE if quick else protocol.PATIENCE
    cases = [
        (name, method, each, axis)
        for name in protocol.FIGURE_DATA[: 2 if quick else None]
        for method in both
        for each in ((alpha,) if quick else protocol.FIGURE_ALPHAS)
        for axis in (("rows", "columns") if each == alpha and not quick else ("rows",))
    ]
    others = [method for method in published.COMPLEXITY if method not in both]
    cases += [(protocol.TABLE_1_DATA, method, alpha, "rows") for method in others]
    fast, slow = (
        [
            (f"growth {' '.join(map(str, case))} {part:g}", protocol.growth, *case, part, patience)
            for part in fractions
            for case in cases
            if (case[1] == protocol.ALGORITHM_1) == last
        ]
        for last in (False, True)
    )
    steps = [
        (f"steps {name}", protocol.steps, name, alpha, patience)
        for name in protocol.STEPS_DATA[: 1 if quick else None]
    ]
    return [*fast, *steps, *slow]


if __name__ == "__main__":
    common.main(
        "li2014",
        __doc__,
        "two trials, two folds and two alphas; small parts for the times",
        stages=_stages,
        page=page.make,
        settings=lambda args: {"protocol": protocol.constants()},
        options=_options,
    )
