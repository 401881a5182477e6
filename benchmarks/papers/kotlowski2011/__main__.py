"""Section 5 of kotlowski2011: scripts/paper kotlowski2011 [--quick] [--models N] [--out DIR].

Writes DIR/kotlowski2011.md with Table 1 and Figure 1, regrets against the bounds of Theorem 4.1,
and the study for docs/do-i-need-pairs.md. A second run with more models adds to the first. The full
run takes a quarter of an hour of processor time, --quick a minute.
"""

from collections.abc import Iterator
from typing import Any

from .. import common
from . import page, protocol, published


def _options(parser: Any) -> None:
    data = list(published.TABLE_1)
    parser.add_argument("--data", nargs="*", choices=data, default=data, help="sets of Table 1")
    models = f"random models in each panel; {protocol.MODELS} by default"
    parser.add_argument("--models", type=int, help=models)


def _stages(results: common.Results, args: Any) -> Iterator[common.Stage]:
    quick = args.quick
    seeds = 2 if quick else protocol.REGRET_SEEDS
    tasks = [
        *_models(args.models or (2 if quick else protocol.MODELS), quick=quick),
        *_sets(args.data, quick=quick),
        *_study(quick=quick),
        *[
            (f"regrets {kind} {rows}", protocol.regrets, kind, rows, seeds)
            for kind in protocol.REGRET_MODELS
            for rows in protocol.REGRET_ROWS[: 3 if quick else None]
        ],
        *[(f"queries {fold}", protocol.queries, fold) for fold in range(1 if quick else 5)],
        *[
            (f"top {name} {k}", protocol.top, name, k)
            for name in protocol.TOP_SETS[: 1 if quick else None]
            for k in range(1 if quick else 10)
        ],
    ]
    yield tasks


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
    common.main(
        "kotlowski2011",
        __doc__,
        "two models, two training sets, few folds and rows",
        stages=_stages,
        page=page.make,
        settings=lambda args: {"protocol": protocol.constants()},
        options=_options,
    )
