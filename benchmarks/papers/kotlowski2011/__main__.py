"""Section 5 of kotlowski2011: scripts/paper kotlowski2011 [--quick] [--models N] [--out DIR].

Writes DIR/kotlowski2011.md with Table 1 and Figure 1, regrets against the bounds of Theorem 4.1,
and the study for docs/do-i-need-pairs.md. Results are recorded in DIR/results.jsonl as they come:
an interrupted run resumes where it stopped, and a second run with more models adds to the first.
The full run takes about three quarters of an hour on two cores, --quick a minute.
"""

from .. import common
from . import page, protocol, published


def main() -> None:
    quick = page.QUICK_RUN
    parser = common.parser("kotlowski2011", __doc__, quick)
    data = list(published.TABLE_1)
    parser.add_argument("--data", nargs="*", choices=data, help="sets of Table 1; all by default")
    models = f"random models in each panel; {protocol.MODELS} by default"
    parser.add_argument("--models", type=int, help=models)
    args = common.parse(parser)
    names = data if args.data is None else args.data
    settings = {"quick": args.quick, "protocol": protocol.constants()}
    results = common.Results(args.out, settings)
    seeds = 2 if args.quick else protocol.REGRET_SEEDS
    tasks = [
        *_models(args.models or (2 if args.quick else protocol.MODELS), quick=args.quick),
        *_sets(names, quick=args.quick),
        *_study(quick=args.quick),
        *[
            (f"regrets {kind} {rows}", protocol.regrets, kind, rows, seeds)
            for kind in protocol.REGRET_MODELS
            for rows in protocol.REGRET_ROWS[: 3 if args.quick else None]
        ],
        *[(f"queries {fold}", protocol.queries, fold) for fold in range(1 if args.quick else 5)],
        *[
            (f"top {name} {k}", protocol.top, name, k)
            for name in protocol.TOP_SETS[: 1 if args.quick else None]
            for k in range(1 if args.quick else 10)
        ],
    ]
    results.run(tasks, args.jobs)
    print(f"Wrote {page.write(results, names, args.out, quick=args.quick)}")


def _models(count: int, *, quick: bool) -> list[common.Task]:
    """The three losses of the paper and our two in tasks of their own: the former are timed."""
    sets = 2 if quick else protocol.TRAINING_SETS
    return [
        (f"model {panel} {k} {' '.join(names)}", protocol.model, panel, k, sets, names)
        for k in range(count)
        for panel in protocol.PANELS
        for names in (published.METHODS, protocol.OURS)
    ]


def _sets(names: list[str], *, quick: bool) -> list[common.Task]:
    repeats, folds = (1, 3) if quick else (protocol.N_REPEATS, protocol.N_FOLDS)
    tasks: list[common.Task] = []
    for name in names:
        for method in protocol.ALL:
            if name == "covtype":
                rows = 20_000 if quick else None
                tasks.append((f"covtype {method}", protocol.covtype, method, rows))
            else:
                task = f"set {name} {method}"
                tasks.append((task, protocol.small_set, name, method, repeats, folds))
    return tasks


def _study(*, quick: bool) -> list[common.Task]:
    shares = protocol.STUDY_SHARES[:2] if quick else protocol.STUDY_SHARES
    sizes = protocol.STUDY_ROWS[:2] if quick else protocol.STUDY_ROWS
    seeds = 2 if quick else protocol.STUDY_SEEDS
    return [
        (f"study {kind} {share} {rows}", protocol.study, kind, share, rows, seeds)
        for kind in ("linear", "rules")
        for share in shares
        for rows in sizes
    ]


if __name__ == "__main__":
    main()
