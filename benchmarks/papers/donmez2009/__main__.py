"""Section 3 of donmez2009: scripts/paper donmez2009 [--quick] [--jobs N] [--out DIR].

Writes DIR/donmez2009.md with Tables 1 and 2 and Figure 3, and the forms of LossMin. Results are
recorded in DIR/results.jsonl as they come: an interrupted run resumes where it stopped. The full
run takes about ten minutes on two cores, --quick twenty seconds.
"""

from .. import common
from . import page, protocol


def main() -> None:
    quick = page.QUICK_RUN
    args = common.parse(common.parser("donmez2009", __doc__, quick))
    names = list(protocol.SETTINGS)
    if args.quick:
        names = [name for name in names if name.startswith("MQ2008")]
    settings = {"quick": args.quick, "protocol": protocol.constants()}
    results = common.Results(args.out, settings)
    results.run([("compiling", protocol.compiling, names[0])])
    for name in names:
        settings = protocol.SETTINGS[name]
        rounds = 3 if args.quick else settings["rounds"]
        splits = range(2 if args.quick else protocol.N_SPLITS[name])
        tasks = [
            (f"{name} {k} {seeding} {method}", protocol.run, name, k, seeding, method, rounds)
            for seeding in range(1 if args.quick else settings["seedings"])
            for k in splits
            for method in protocol.methods(name)
        ]
        if name in protocol.BINARY:
            tasks += [(f"overlap {name} {k}", protocol.overlap, name, k, rounds) for k in splits]
        results.run(tasks, args.jobs)
    timed = (3, 1) if args.quick else (protocol.TIMED_ROUNDS, protocol.TIMED_RUNS)
    results.run(
        [
            (f"time {name} {method}", protocol.timing, name, method, *timed)
            for name in names
            if name in protocol.BINARY
            for method in protocol.methods(name)
        ]
    )
    print(f"Wrote {page.write(results, names, args.out, quick=args.quick)}")


if __name__ == "__main__":
    main()
