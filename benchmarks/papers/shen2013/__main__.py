"""Section 4 of shen2013: scripts/paper shen2013 [--quick] [--data NAME ...] [--out DIR].

Writes DIR/shen2013.md with Tables 2 to 5, Figures 1 to 3, and time against rows. The full run takes
three quarters of an hour of processor time, --quick a few minutes; that leaves out news20, where a
fit over all pairs takes a minute.
"""

from collections.abc import Iterator
from typing import Any

from .. import common
from . import page, protocol, published

DATA = (*published.DATA, *protocol.STAND_INS)


def _options(parser: Any) -> None:
    parser.add_argument("--data", nargs="+", choices=DATA, help="data sets; all by default")
    parser.add_argument("--pools", type=int, help="initial pools; 10 by default")


def _settings(args: Any) -> dict[str, Any]:
    return {
        "pools": args.pools or (2 if args.quick else 10),
        "folds": 1 if args.quick else None,
        "gammas": ["uniform", 0.5, 1.0] if args.quick else list(protocol.GAMMAS),
        "protocol": protocol.constants(),
    }


def _stages(results: common.Results, args: Any) -> Iterator[common.Stage]:
    quick_data = [name for name in DATA if name not in protocol.WITHOUT_GAMMAS]
    names = args.data or (quick_data if args.quick else DATA)
    repeats = 1 if args.quick else protocol.TIMINGS
    yield [(f"timing {name}", protocol.timing, name, repeats) for name in names]
    growth = protocol.GROWTH_ROWS[:2] if args.quick else protocol.GROWTH_ROWS
    yield [(f"growth {rows}", protocol.growth, rows, repeats) for rows in growth]
    tasks: list[common.Task] = [(f"full budget {n}", protocol.full_budget, n) for n in names]
    tasks += [(f"excess {n}", protocol.excess, n) for n in names]
    pools, gammas = results.settings["pools"], tuple(results.settings["gammas"])
    for name in names:
        n_pools = min(pools, protocol.STAND_IN_POOLS) if name in protocol.STAND_INS else pools
        for fold in range(results.settings["folds"] or protocol.n_folds(name)):
            tasks.append((f"accuracy {name} {fold}", protocol.accuracy, name, fold, n_pools))
            if name not in protocol.WITHOUT_GAMMAS:
                chosen = name, fold, n_pools, gammas
                tasks.append((f"gamma {name} {fold}", protocol.trade_off, *chosen))
    yield tasks


if __name__ == "__main__":
    common.main(
        "shen2013",
        __doc__,
        "two pools, one fold, three values of gamma",
        stages=_stages,
        page=page.make,
        settings=_settings,
        options=_options,
    )
