"""Sections 5 to 7 of raykar2007: scripts/paper raykar2007 [--quick] [--data NAME ...] [--out DIR].

Writes DIR/raykar2007.md with Tables 1 to 4 and Figures 1 to 3. The full run takes half an hour of
processor time, --quick a minute.
"""

from collections.abc import Iterator
from typing import Any

from .. import common
from . import page, protocol, published

DIRECT, FAST = "RankNCG direct", "RankNCG fast"


def _options(parser: Any) -> None:
    names = "data sets; all by default, four of them with --quick"
    parser.add_argument("--data", nargs="+", choices=list(published.TABLE_1), help=names)
    parser.add_argument("--users", type=int, help=f"users for Table 2; {protocol.USERS} by default")


def _stages(results: common.Results, args: Any) -> Iterator[common.Stage]:
    names = args.data or list(protocol.QUICK_DATA if args.quick else published.TABLE_1)
    yield _selections(names, quick=args.quick)
    yield _measurements(results, names, quick=args.quick)
    yield _recommendations(args.users, quick=args.quick)
    yield _figures(quick=args.quick)


def _folds(*, quick: bool) -> range:
    return range(2 if quick else protocol.N_FOLDS)


def _selections(names: list[str], *, quick: bool) -> list[common.Task]:
    tasks: list[common.Task] = []
    for name in names:
        for variant in protocol.variants(name):
            for method in protocol.ALL:
                grid = protocol.grid(method, quick=quick)
                for fold in [] if method == DIRECT else _folds(quick=quick):
                    task = f"select {name} {variant} {method} {fold}"
                    tasks.append((task, protocol.select, name, variant, method, fold, grid))
    return tasks


def _measurements(results: common.Results, names: list[str], *, quick: bool) -> list[common.Task]:
    tasks: list[common.Task] = []
    for name in names:
        for variant in protocol.variants(name):
            for method in protocol.ALL:
                folds = _folds(quick=quick)
                if method == DIRECT and published.TABLE_1[name][4] > protocol.MANY_PAIRS:
                    folds = range(1 if quick or variant != "columns" else 2)
                # The direct method is too slow for cross-validation; it takes the alpha of fast.
                tuned = FAST if method == DIRECT else method
                wanted = {"kind": "chosen", "data": name, "variant": variant, "method": tuned}
                for fold in folds:
                    alpha = results.select(**wanted, fold=fold)[-1]["value"]
                    task = f"fold {name} {variant} {method} {fold} {alpha:g}"
                    tasks.append((task, protocol.measure, name, variant, method, fold, alpha))
    return tasks


def _recommendations(count: int | None, *, quick: bool) -> list[common.Task]:
    columns = protocol.COLUMNS[:2] if quick else protocol.COLUMNS
    users = protocol.users(count or (2 if quick else protocol.USERS))
    recommend = protocol.recommend
    return [(f"user {user} {d}", recommend, user, d, quick) for d in columns for user in users]


def _figures(*, quick: bool) -> list[common.Task]:
    sizes = protocol.SUM_SIZES[:4] if quick else protocol.SUM_SIZES
    precisions = protocol.EPSILONS[1::4] if quick else protocol.EPSILONS
    fits = protocol.FIGURE_3_EPSILONS[1::3] if quick else protocol.FIGURE_3_EPSILONS
    forms = [("cubic", 1000), ("quadratic", 1000), ("cubic", 5000), ("quadratic", 5000)]
    draws = 1 if quick else protocol.RANDPOLY_DRAWS
    return [
        *[(f"series {p}", protocol.series_error, p) for p in protocol.TRUNCATIONS],
        *[
            (f"randpoly {form} {rows}", protocol.randpoly_forms, form, rows, draws)
            for form, rows in forms[: 2 if quick else None]
        ],
        *[(f"sums {n}", protocol.sums_by_size, n) for n in sizes],
        *[(f"precision {eps:g}", protocol.sums_by_precision, eps) for eps in precisions],
        *[(f"eps {eps}", protocol.fits_by_precision, eps) for eps in (*fits, None)],
    ]


if __name__ == "__main__":
    common.main(
        "raykar2007",
        __doc__,
        "two folds, two alphas, two users, one draw of RandPoly, small sums",
        stages=_stages,
        page=page.make,
        settings=lambda args: {"protocol": protocol.constants()},
        options=_options,
    )
