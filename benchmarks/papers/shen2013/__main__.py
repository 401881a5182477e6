"""Section 4 of shen2013: scripts/paper shen2013 [--quick] [--data NAME ...] [--out DIR].

Writes DIR/shen2013.md with Tables 2 to 5 and Figures 1 to 3. Results are recorded in
DIR/results.jsonl as they come: an interrupted run resumes where it stopped. The full run takes half
an hour on two cores, --quick two minutes and a half.
"""

from .. import common
from . import page, protocol, published


def main() -> None:
    quick = "two pools, one fold, three values of gamma"
    parser = common.parser("shen2013", __doc__, quick)
    data = list(published.DATA)
    parser.add_argument("--data", nargs="+", choices=data, help="data sets; all by default")
    parser.add_argument("--pools", type=int, help="initial pools; 10 by default")
    args = common.parse(parser)
    names = args.data or data
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
    tasks: list[common.Task] = []
    for name in names:
        for fold in range(settings["folds"] or protocol.n_folds(name)):
            fold = min(fold, protocol.n_folds(name) - 1)
            tasks.append((f"accuracy {name} {fold}", protocol.accuracy, name, fold, pools))
            tasks.append((f"gamma {name} {fold}", protocol.trade_off, name, fold, pools, gammas))
    results.run(tasks, args.jobs)
    print(f"Wrote {page.write(results, names, args.out, settings)}")


if __name__ == "__main__":
    main()
