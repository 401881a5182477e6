"""Simulated screening of systematic reviews: scripts/reviews [--quick] [--out DIR].

Writes DIR/reviews.md. Every ranker with the strategy "greedy" and every strategy with the default
ranker are run from ten seeds; all other pairs of strategy and ranker from --others of them. Results
are recorded in DIR/results.jsonl as they come: an interrupted run resumes where it stopped. The
default model of the package asreview is included if that is installed. The full run takes about an
hour and a half on two cores, --quick a minute.
"""

from benchmarks.papers import common

from . import page, protocol


def main() -> None:
    quick = "the smallest review, one seeding, few rounds"
    parser = common.parser("reviews", __doc__, quick, script="scripts/")
    others = "seedings of the other pairs of strategy and ranker"
    parser.add_argument("--others", type=int, default=1, help=others)
    slow = "seedings of asreview and of diverse"
    parser.add_argument("--slow", type=int, default=protocol.N_SEEDINGS, help=slow)
    args = common.parse(parser)
    reviews = protocol.names()
    if args.quick:
        reviews = sorted(reviews, key=lambda name: len(protocol.read(name)))[:1]
    rankers, strategies = list(protocol.RANKERS), protocol.STRATEGIES
    greedy = [f"{ranker}, greedy" for ranker in rankers]
    first = [*greedy, *([protocol.ASREVIEW] if protocol.has_asreview() else []), "random"]
    second = [f"{rankers[0]}, {strategy}" for strategy in strategies[1:]]
    every = [f"{ranker}, {strategy}" for strategy in strategies for ranker in rankers]
    others = [method for method in every if method not in first + second]
    batch = 0.5 if args.quick else protocol.BATCH
    # Seeding by seeding, so that an interrupted run has compared all methods on equal terms.
    tasks = [
        (f"{name} {seeding} {method}", protocol.run, name, seeding, method, batch)
        for seeding in range(1 if args.quick else protocol.N_SEEDINGS)
        for methods in (first, second, others if seeding < args.others else [])
        for name in reviews
        for method in methods
        if seeding < args.slow or not (method == protocol.ASREVIEW or method.endswith("diverse"))
    ]
    settings = {"quick": args.quick, "protocol": protocol.constants()}
    results = common.Results(args.out, settings)
    results.run(tasks, args.jobs)
    methods = [*first, *second, *others]
    print(f"Wrote {page.write(results, reviews, methods, args.out, quick=args.quick)}")


if __name__ == "__main__":
    main()
