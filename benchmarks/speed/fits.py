"""All-pairs fits against pointwise peers: same arrays, same process, equal quality.

    scripts/bench fits [--data NAME ...] [--repeats 3] [--out DIR]

Every method is fitted at several strengths of regularisation and several tolerances. The goal for a
data set is the best test AUC among our settings of one loss, less 5e-4; each side then shows the
fastest of its settings that reaches it. Where no peer reaches the goal, the fastest peer setting
within 2e-3 of the best peer AUC stands in, marked with *. Times are whole calls of fit, validation
included, best of several; kernels are compiled before the clock starts.
"""

import argparse
import json
import platform
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import scipy.sparse as sp
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

DATA = (
    *("letter", "a9a", "bank", "shuttle", "w8a_train", "nslkdd", "mnist_0", "covtype_binary"),
    "news20_bydate_forsale",
)
WITH_TEST_SET = ("a9a", "mnist_0")
TEXT = ("news20_bydate_forsale",)
LOSSES = ("squared_hinge", "logistic")
CLOSE = 5e-4
# A first run longer than this many seconds is not repeated; a method that takes longer than that,
# and ten times the fastest run on the data set, is not tried further.
LONG = 1.5


@dataclass
class Run:
    method: str
    setting: str
    seconds: float
    auc: float
    ap: float
    pos_at_top: float


def split(name: str) -> tuple:
    """Train and test arrays in double precision, scaled as a user would: dense columns
    standardised, sparse ones divided by their largest value, word counts turned into tf-idf.
    """
    data = datasets.load(name)
    if name in WITH_TEST_SET:
        test = datasets.load(f"{name}_test")
        X, X_test, y, y_test = data.X, test.X, data.y, test.y
    else:
        X, X_test, y, y_test = train_test_split(
            data.X, data.y, test_size=1 / 3, random_state=0, stratify=data.y
        )
    if name in TEXT:
        scaler = TfidfTransformer(sublinear_tf=True)
    else:
        scaler = MaxAbsScaler() if sp.issparse(X) else StandardScaler()
    X, X_test = X.astype(np.float64), X_test.astype(np.float64)
    return scaler.fit_transform(X), scaler.transform(X_test), y, y_test


def ours(loss: str) -> Iterator[tuple[str, str, Callable]]:
    for alpha in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
        for tol in (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4):
            yield (
                f"pairs {loss}",
                f"alpha={alpha:g} tol={tol:g}",
                lambda a=alpha, t=tol: PairwiseRanker(loss, alpha=a, tol=t),
            )


def peers(n_rows: int, n_columns: int) -> Iterator[tuple[str, str, Callable]]:
    grids = {
        "LR lbfgs": (1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4),
        "LR liblinear": (1e-1, 1e-2, 1e-4),
        "LR newton-cholesky": (1e-1, 3e-2, 1e-2, 1e-3, 1e-4),
        "LinearSVC dual": (1.0, 1e-1, 1e-2),
        "LinearSVC primal": (1e-1, 1e-2, 1e-3),
    }
    if n_columns > 5000:
        del grids["LR newton-cholesky"]  # it holds a dense n_columns x n_columns matrix
    for alpha in (1e-3, 1e-4, 1e-5, 1e-6):
        C = 1.0 / (alpha * n_rows)
        for method, tols in grids.items():
            for tol in tols:
                yield method, f"C={C:.3g} tol={tol:g}", lambda m=method, c=C, t=tol: _peer(m, c, t)


def _peer(method: str, C: float, tol: float) -> LogisticRegression | LinearSVC:
    if method.startswith("LR"):
        return LogisticRegression(solver=method.split()[1], C=C, tol=tol, max_iter=1000)
    return LinearSVC(C=C, tol=tol, dual=method.endswith("dual"))


def measure(make: Callable, X, y, X_test, y_test, repeats: int) -> tuple[float, np.ndarray]:
    seconds = []
    for _ in range(repeats):
        model = make()
        clock = perf_counter()
        model.fit(X, y)
        seconds.append(perf_counter() - clock)
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
        seconds, scores = measure(make, X, y, X_test, y_test, repeats)
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


def compare(mine: list[Run], others: list[Run]) -> tuple[Run, Run, bool]:
    goal = max(r.auc for r in mine) - CLOSE
    own, peer = fastest(mine, goal), fastest(others, goal)
    reached = peer is not None
    if peer is None:
        peer = fastest(others, max(r.auc for r in others) - 4 * CLOSE)
    return own, peer, reached


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=DATA)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("bench-output"))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(width=150)
    table = Table(title="Fits at equal quality")
    for column in (
        "data",
        "method",
        "setting",
        "seconds",
        "peer seconds",
        "ratio",
        "AUC",
        "AP",
        "pos@top",
    ):
        table.add_column(
            column, justify="left" if column in ("data", "method", "setting") else "right"
        )
    ratios: list[float] = []
    met: list[bool] = []
    record: dict = {"machine": platform.processor() or platform.machine(), "data": {}}
    for name in args.data:
        arrays = split(name)
        warm_up(arrays)
        others = run_all(peers(*arrays[0].shape), arrays, args.repeats, f"{name}: peers")
        record["data"][name] = {"peers": [asdict(r) for r in others]}
        for loss in LOSSES:
            mine = run_all(ours(loss), arrays, args.repeats, f"{name}: {loss}")
            record["data"][name][loss] = [asdict(r) for r in mine]
            own, peer, reached = compare(mine, others)
            ratios.append(own.seconds / peer.seconds)
            met.append(reached)
            for r, ratio in ((own, f"{ratios[-1]:.2f}"), (peer, "")):
                table.add_row(
                    name if r is own else "", r.method, r.setting,
                    f"{r.seconds:.4f}" if r is own else "",
                    "" if r is own else f"{r.seconds:.4f}{'' if reached else '*'}",
                    ratio, f"{r.auc:.5f}", f"{r.ap:.4f}", f"{r.pos_at_top:.4f}",
                )  # fmt: skip
            console.print(
                f"{name:24s} {loss:14s} ratio {ratios[-1]:.2f}  (ours {own.seconds:.4f} s, "
                f"{peer.method} {peer.seconds:.4f} s{'' if reached else ', below our AUC'})"
            )
    console.print(table)
    logs = np.log(ratios)
    console.print(
        f"geometric mean of the ratio {np.exp(logs.mean()):.3f}, largest {max(ratios):.2f}; where "
        f"a peer reaches our AUC ({sum(met)} of {len(met)}) {np.exp(logs[met].mean()):.3f}"
    )
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "fits.json").write_text(json.dumps(record, indent=1))


def warm_up(arrays: tuple) -> None:
    """Compile every kernel for these array types, outside of the timings."""
    X, _, y, _ = arrays
    rows = np.concatenate([np.flatnonzero(y == label)[:1500] for label in np.unique(y)])
    for loss in LOSSES:
        PairwiseRanker(loss, tol=0.1).fit(X[rows], y[rows])
        PairwiseRanker(loss, tol=0.5).fit(X, y)


if __name__ == "__main__":
    main()
