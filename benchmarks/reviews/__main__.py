"""Simulated screening of systematic reviews: scripts/reviews [--quick] [--out DIR].

Writes DIR/reviews.md. Every ranker with the strategy "greedy" and every strategy with the default
ranker are run from ten seeds; all other pairs of strategy and ranker from --others of them. The
default model of the package asreview is included if that is installed. The full run takes about an
hour and a half on two cores, --quick a minute.
"""

from collections.abc import Iterator
from typing import Any

from benchmarks.papers import common

from . import page, protocol


def _options(parser: Any) -> None:
    others = "seedings of the other pairs of strategy and ranker"
    parser.add_argument("--others", type=int, default=1, help=others)
    slow = "seedings of asreview and of diverse"
    parser.add_argument("--slow", type=int, default=protocol.N_SEEDINGS, help=slow)


def _stages(results: common.Results, args: Any) -> Iterator[common.Stage]:
    reviews = protocol.names()
    if args.quick:
        reviews = sorted(reviews, key=lambda name: len(protocol.read(name)))[:1]
    first, second, others = protocol.methods()
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
    yield tasks


if __name__ == "__main__":
    common.main(
        "reviews",
        __doc__,
        "the smallest review, one seeding, few rounds",
        stages=_stages,
        page=page.make,
        settings=lambda args: {"protocol": protocol.constants()},
        options=_options,
        script="scripts/",
    )
