"""Section 4 of shen2013: scripts/paper shen2013 [--quick] [--data NAME ...] [--out DIR].

Writes DIR/shen2013.md with Tables 2 to 5, Figures 1 to 3, and time against rows. Results are
recorded in DIR/results.jsonl as they come: an interrupted run resumes where it stopped. The full
run takes one to two hours on two cores, --quick a few minutes; that leaves out news20, where a fit
over all pairs takes a minute.
"""

from .. import common
from . import page, protocol, published


def main() -> None:
    quick = "two pools, one fold, three values of gamma"
    parser = common.parser("shen2013", __doc__, quick)
    data = [*published.DATA, *protocol.STAND_INS]
    parser.add_argument("--data", nargs="+", choices=data, help="data sets; all by default")
    parser.add_argument("--pools", type=int, help="initial pools; 10 by default")
    args = common.parse(parser)
    quick_data = [name for name in data if name not in protocol.WITHOUT_GAMMAS]
    names = args.data or (quick_data if args.quick else data)
    pools = args.pools or (2 if args.quick else 10)
    settings = {
        "quick": args.quick,
        "pools": pools,
        "folds": 1 if args.quick else None,
        "gammas": ["uniform", 0.5, 1.0] if args.quick else list(protocol.GAMMAS),
        "protocol": protocol.constants(),
    }
    gammas = tuple(settings["gammas"])
    results = common.Results(args.out, settings)
    repeats = 1 if args.quick else protocol.TIMINGS
    results.run([(f"timing {name}", protocol.timing, name, repeats) for name in names])
    growth = protocol.GROWTH_ROWS[:2] if args.quick else protocol.GROWTH_ROWS
    results.run([(f"growth {rows}", protocol.growth, rows, repeats) for rows in growth])
    tasks: list[common.Task] = [(f"full budget {n}", protocol.full_budget, n) for n in names]
    tasks += [(f"excess {n}", protocol.excess, n) for n in names]
    for name in names:
        n_pools = min(pools, protocol.STAND_IN_POOLS) if name in protocol.STAND_INS else pools
        for fold in range(settings["folds"] or protocol.n_folds(name)):
            fold = min(fold, protocol.n_folds(name) - 1)
            tasks.append((f"accuracy {name} {fold}", protocol.accuracy, name, fold, n_pools))
            if name not in protocol.WITHOUT_GAMMAS:
                chosen = name, fold, n_pools, gammas
                tasks.append((f"gamma {name} {fold}", protocol.trade_off, *chosen))
    results.run(tasks, args.jobs)
    print(f"Wrote {page.write(results, names, args.out, settings)}")


if __name__ == "__main__":
    main()
