"""All-pairs fits against pointwise peers: same arrays, same process, equal quality.

    scripts/bench fits [--data NAME ...] [--repeats 3] [--quick] [--out DIR]

Every method is fitted at several strengths of regularisation and several tolerances. The goal for a
data set is the best test AUC among our settings of one loss, less 5e-4; each side then shows the
fastest of its settings that reaches it. Where no peer reaches the goal, the fastest peer setting
within 2e-3 of the best peer AUC is shown instead, marked with *, and the ratio is counted apart.
Where the best peer AUC is more than 5e-4 above our best, so that our time buys less, the ratio is
marked with <. Both sides try the same strengths of regularisation. Times are processor seconds of
whole calls of fit, validation included, best of several; kernels are compiled before the clock
starts. On a busy machine run it on one core with one thread (OMP_NUM_THREADS=1). Products are those
with X in our fit, over all rows and columns; those of a peer are not known. `--quick` has a third
of the settings and two repeats.
"""

import argparse
import json
import platform
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
import scipy.sparse as sp
from _products import counted_products
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import LinearSVC

from forerank import PairwiseRanker, metrics
from forerank.data import datasets
from forerank.data.problem import read_problem

# Numbers and categories, 2,500 to 26,000 rows, chosen by their sizes before any was run.
TABLES = (
    *("chile", "headinjury", "doctorvisits", "monica", "healthins", "smokeban", "happiness"),
    *("mplsstops", "nasscds"),
)
DATA = (
    *("letter", "a9a", "bank", "shuttle", "w8a_train", "nslkdd", "mnist_0", "covtype_binary"),
    *("news20_bydate_forsale", "spambase", *TABLES),
)
WITH_TEST_SET = ("a9a", "mnist_0")
TEXT = ("news20_bydate_forsale",)
LOSSES = ("squared_hinge", "logistic")
CLOSE = 5e-4
# A first run longer than this many seconds is not repeated; a method that takes longer than that,
# and ten times the fastest run on the data set, is not tried further.
LONG = 1.5
# Short runs are repeated, more often than asked for, for this many seconds.
SHORT = 0.1


@dataclass
class Run:
    method: str
    setting: str
    seconds: float
    auc: float
    ap: float
    pos_at_top: float
    products: float | None = None


@dataclass
class Comparison:
    """The fastest of our runs and of the peers' at equal AUC, if a peer has `reached` it, and
    whether the best AUC of the peers is `above` all of ours.
    """

    data: str
    own: Run
    peer: Run
    reached: bool
    above: bool

    @property
    def ratio(self) -> float:
        return self.own.seconds / self.peer.seconds


def split(name: str) -> tuple:
    """Train and test arrays in double precision, scaled as a user would: dense columns
    standardised, sparse ones divided by their largest value, word counts turned into tf-idf.
    """
    if name in TABLES:
        X, X_test, y, y_test = split_table(name)
    elif name in WITH_TEST_SET:
        data, test = datasets.load(name), datasets.load(f"{name}_test")
        X, X_test, y, y_test = data.X, test.X, data.y, test.y
    else:
        data = datasets.load(name)
        X, X_test, y, y_test = train_test_split(
            data.X, data.y, test_size=1 / 3, random_state=0, stratify=data.y
        )
    if name in TEXT:
        scaler = TfidfTransformer(sublinear_tf=True)
    else:
        scaler = MaxAbsScaler() if sp.issparse(X) else StandardScaler()
    X, X_test = X.astype(np.float64), X_test.astype(np.float64)
    return scaler.fit_transform(X), scaler.transform(X_test), y, y_test


def split_table(name: str) -> tuple:
    """Train and test rows of a table, its columns encoded as `forerank fit` does."""
    folder = datasets.data_directory() / "tables"
    row = pd.read_csv(folder / "MANIFEST.csv", index_col="name", dtype=str).loc[name]
    problem = read_problem(folder / f"{name}.csv.gz", row["target"], positive=row["positive"])
    train, test = train_test_split(
        np.arange(problem.y.size), test_size=1 / 3, random_state=0, stratify=problem.y
    )
    _, X = problem.prepare(np.concatenate([train, test]), train.size)
    return X[: train.size], X[train.size :], problem.y[train], problem.y[test]


def ours(loss: str, quick: bool) -> Iterator[tuple[str, str, Callable]]:
    alphas = (1e-2, 1e-4, 1e-6) if quick else (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
    tols = (1e-1, 1e-2, 1e-3) if quick else (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4)
    for alpha in alphas:
        for tol in tols:
            yield (
                f"pairs {loss}",
                f"alpha={alpha:g} tol={tol:g}",
                lambda a=alpha, t=tol: PairwiseRanker(loss, alpha=a, tol=t),
            )


def peers(n_rows: int, n_columns: int, quick: bool) -> Iterator[tuple[str, str, Callable]]:
    grids = {
        "LR lbfgs": (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4),
        "LR liblinear": (1e-1, 1e-2, 1e-4),
        "LR newton-cholesky": (1e-1, 3e-2, 1e-2, 1e-3, 1e-4),
        "LinearSVC dual": (1.0, 1e-1, 1e-2),
        "LinearSVC primal": (1e-1, 1e-2, 1e-3),
    }
    if n_columns > 5000:
        del grids["LR newton-cholesky"]  # it holds a dense n_columns x n_columns matrix
    if quick:
        grids = {method: tols[::2] for method, tols in grids.items()}
    for alpha in (1e-2, 1e-4, 1e-6) if quick else (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        C = 1.0 / (alpha * n_rows)
        for method, tols in grids.items():
            for tol in tols:
                yield method, f"C={C:.3g} tol={tol:g}", lambda m=method, c=C, t=tol: _peer(m, c, t)


def _peer(method: str, C: float, tol: float) -> LogisticRegression | LinearSVC:
    if method.startswith("LR"):
        return LogisticRegression(solver=method.split()[1], C=C, tol=tol, max_iter=1000)
    return LinearSVC(C=C, tol=tol, dual=method.endswith("dual"))


def measure(make: Callable, X, y, X_test, repeats: int) -> tuple[float, np.ndarray]:
    seconds: list[float] = []
    while len(seconds) < repeats or sum(seconds) < SHORT:
        model = make()
        clock = process_time()
        model.fit(X, y)
        seconds.append(process_time() - clock)
        if seconds[0] > LONG:
            break
    return min(seconds), model.decision_function(X_test)


def run_all(
    settings: Iterator[tuple[str, str, Callable]], arrays: tuple, repeats: int, label: str
) -> list[Run]:
    X, X_test, y, y_test = arrays
    runs: list[Run] = []
    too_long: set[str] = set()
    for method, setting, make in track(list(settings), description=label, transient=True):
        if method in too_long:
            continue
        seconds, scores = measure(make, X, y, X_test, repeats)
        if seconds > max(LONG, 10 * min([r.seconds for r in runs], default=seconds)):
            too_long.add(method)
        runs.append(
            Run(
                method, setting, seconds,
                metrics.roc_auc(y_test, scores), metrics.average_precision(y_test, scores),
                metrics.pos_at_top(y_test, scores),
            )
        )  # fmt: skip
    return runs


def fastest(runs: list[Run], goal: float) -> Run | None:
    return min((r for r in runs if r.auc >= goal), key=lambda r: r.seconds, default=None)


def compare(name: str, mine: list[Run], others: list[Run]) -> Comparison:
    goal = max(r.auc for r in mine) - CLOSE
    own, peer = fastest(mine, goal), fastest(others, goal)
    reached = peer is not None
    if peer is None:
        peer = fastest(others, max(r.auc for r in others) - 4 * CLOSE)
    above = max(r.auc for r in others) > goal + 2 * CLOSE
    return Comparison(name, own, peer, reached, above)


def products(run: Run, settings: Iterator[tuple[str, str, Callable]], arrays: tuple) -> float:
    """Products with X in a fit with the setting of the run."""
    X, _, y, _ = arrays
    make = next(make for _, setting, make in settings if setting == run.setting)
    with counted_products(X.nnz if sp.issparse(X) else X.size) as count:
        make().fit(X, y)
    return round(count.total, 1)


def compare_all(names: list[str], repeats: int, quick: bool, record: dict) -> Iterator[Comparison]:
    """Comparisons of each data set and loss; all runs are added to the record."""
    for name in names:
        try:
            arrays = split(name)
        except FileNotFoundError as error:
            print(f"{name}: skipped, {error}")
            continue
        warm_up(arrays)
        others = run_all(peers(*arrays[0].shape, quick), arrays, repeats, f"{name}: peers")
        record[name] = {"shape": arrays[0].shape, "peers": [asdict(r) for r in others]}
        for loss in LOSSES:
            mine = run_all(ours(loss, quick), arrays, repeats, f"{name}: {loss}")
            comparison = compare(name, mine, others)
            own = comparison.own
            own.products = products(own, ours(loss, quick), arrays)
            record[name][loss] = [asdict(r) for r in mine]
            yield comparison


def table_of(comparisons: list[Comparison]) -> Table:
    table = Table(title="Fits at equal quality; *: no peer reaches our AUC, <: a peer's is better")
    for column in ("data", "method", "setting"):
        table.add_column(column)
    for column in ("seconds", "products", "peer seconds", "ratio", "AUC", "AP", "pos@top"):
        table.add_column(column, justify="right")
    for c in comparisons:
        star, above = "" if c.reached else "*", "<" if c.above else ""
        table.add_row(
            c.data, c.own.method, c.own.setting, f"{c.own.seconds:.4f}", f"{c.own.products:g}", "",
            f"{c.ratio:.2f}{star}{above}", *quality(c.own),
        )  # fmt: skip
        table.add_row(
            "", c.peer.method, c.peer.setting, "", "", f"{c.peer.seconds:.4f}{star}", "",
            *quality(c.peer),
        )  # fmt: skip
    return table


def quality(run: Run) -> tuple[str, str, str]:
    return f"{run.auc:.5f}", f"{run.ap:.4f}", f"{run.pos_at_top:.4f}"


def summary(comparisons: list[Comparison]) -> Iterator[str]:
    """Geometric mean and largest of the ratios: all, with equal AUC, and without."""
    groups = {
        "all": comparisons,
        "a peer reaches our AUC": [c for c in comparisons if c.reached],
        "no peer reaches our AUC": [c for c in comparisons if not c.reached],
        "a peer's best AUC is above ours": [c for c in comparisons if c.above],
    }
    for title, group in groups.items():
        if not group:
            yield f"{title}: none"
            continue
        ratios = np.array([c.ratio for c in group])
        yield (
            f"{title}: {len(group)} comparisons on {len({c.data for c in group})} data sets, "
            f"geometric mean of the ratio {np.exp(np.log(ratios).mean()):.3f}, largest "
            f"{ratios.max():.2f}, {np.count_nonzero(ratios > 1.0)} above 1"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument("--repeats", type=int, help="3 unless given, or 2 with --quick")
    parser.add_argument("--quick", action="store_true", help="fewer settings and repeats")
    parser.add_argument("--out", type=Path, default=Path("bench-output"))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(width=150)
    repeats = args.repeats or (2 if args.quick else 3)
    record: dict = {"machine": platform.processor() or platform.machine(), "quick": args.quick}
    record["data"] = {}
    args.out.mkdir(parents=True, exist_ok=True)
    comparisons: list[Comparison] = []
    for c in compare_all(args.data, repeats, args.quick, record["data"]):
        comparisons.append(c)
        own, peer = c.own, c.peer
        console.print(
            f"{c.data:24s} {own.method:20s} ratio {c.ratio:.2f}  (ours {own.seconds:.4f} s, "
            f"{own.products:g} products; {peer.method} {peer.seconds:.4f} s"
            f"{'' if c.reached else ', below our AUC'})"
        )
        (args.out / "fits.json").write_text(json.dumps(record, indent=1))
    console.print(table_of(comparisons))
    for line in summary(comparisons):
        console.print(line)


def warm_up(arrays: tuple) -> None:
    """Compile every kernel for these array types, outside of the timings."""
    X, _, y, _ = arrays
    rows = np.concatenate([np.flatnonzero(y == label)[:1500] for label in np.unique(y)])
    for loss in LOSSES:
        PairwiseRanker(loss, alpha=1e-6).fit(X[rows], y[rows])
        # Scores that are spread widely, as with a small penalty, use kernels of their own.
        for alpha in (1e-2, 1e-6):
            PairwiseRanker(loss, alpha=alpha).fit(X, y)


if __name__ == "__main__":
    main()
