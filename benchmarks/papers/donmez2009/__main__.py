"""Section 3 of donmez2009: scripts/paper donmez2009 [--quick] [--jobs N] [--out DIR].

Writes DIR/donmez2009.md with Tables 1 and 2 and Figure 3, and the forms of LossMin. The full run
takes about ten minutes of processor time, --quick twenty seconds.
"""

from collections.abc import Iterator
from typing import Any

from .. import common
from . import page, protocol


def _stages(results: common.Results, args: Any) -> Iterator[common.Stage]:
    names = [name for name in protocol.SETTINGS if name.startswith("MQ2008") or not args.quick]
    yield [("compiling", protocol.compiling, names[0])]
    for name in names:
        settings = protocol.SETTINGS[name]
        rounds = 3 if args.quick else settings["rounds"]
        splits = range(2 if args.quick else protocol.N_SPLITS[name])
        tasks: list[common.Task] = [
            (f"{name} {k} {seeding} {method}", protocol.run, name, k, seeding, method, rounds)
            for seeding in range(1 if args.quick else settings["seedings"])
            for k in splits
            for method in protocol.methods(name)
        ]
        if name in protocol.BINARY:
            tasks += [(f"overlap {name} {k}", protocol.overlap, name, k, rounds) for k in splits]
        yield tasks
    timed = (3, 1) if args.quick else (protocol.TIMED_ROUNDS, protocol.TIMED_RUNS)
    tasks = [
        (f"time {name} {method}", protocol.timing, name, method, *timed)
        for name in names
        if name in protocol.BINARY
        for method in protocol.methods(name)
    ]
    yield tasks


if __name__ == "__main__":
    common.main(
        "donmez2009",
        __doc__,
        "MQ2008, two splits, one seeding, three rounds",
        stages=_stages,
        page=page.make,
        settings=lambda args: {"protocol": protocol.constants()},
    )
