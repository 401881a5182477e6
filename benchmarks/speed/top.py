"""scripts/bench top: TopPush by the solver chosen for the data against the published dual method,
and projections.

The solver is Newton's method with a working set, or the method of multipliers where there are many
columns and many positives: news20_bydate_forsale with the classes exchanged (18,846 x 68,251 with
17,871 positives), in the list as news20_bydate_forsale:swapped.

Both stop at a relative duality gap of 1e-4, which each of them certifies itself, on the same arrays
in the same process. The dual method is given up after --patience times the time of the other; its
time then counts as that much, and the ratio is a lower bound. Columns are scaled to [0, 1] (sparse
ones by their largest value).

--equal gives only the seconds of the rankers on data with many equal rows: a made one-hot table of
6,548 x 565 with 6 % positives, and w8a; single fits, and paths of ten penalties from 10 to 1e-7 at
the tolerance of `Ranker` in its folds.
"""

import argparse
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

from forerank import TopPush, TopRanker
from forerank._kernels import serial_blas
from forerank.data import datasets
from forerank.design import make_design
from forerank.objectives.top import Top
from forerank.solvers import Progress, choose_solver, minimise
from forerank.solvers.top_dual import accelerated_dual, project_balanced

DATA = (
    "spambase",
    "nslkdd",
    "w8a_train",
    "mnist_0",
    "covtype_binary",
    "w8a_train:swapped",
    "news20_bydate_forsale",
    "news20_bydate_forsale:swapped",
)
ALPHAS = (1.0, 1e-2, 1e-4)
SPARSE_ALPHAS = (1e-1, 1e-2, 1e-3, 1e-4)
TOL = 1e-4
LOSSES = ("squared_hinge", "logistic", "exponential", "hinge")
# Levels of the columns of the one-hot table; the frequencies fall with this power.
LEVELS = (2, 2, 3, 4, 5, 8, 12, 20, 40, 469)
POWER = 2.9


class _OutOfPatience(Exception):
    pass


class _Watch(Progress):
    """Stops a solver when its time is up."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._end = perf_counter() + seconds

    def record(self, w: np.ndarray, n_rows: int, objective: float, optimality: float) -> None:
        super().record(w, n_rows, objective, optimality)
        if optimality > TOL and perf_counter() > self._end:
            raise _OutOfPatience


def load(name: str) -> tuple[Any, np.ndarray]:
    """X with scaled columns and which rows are positive, of a data set or `name:swapped`."""
    name, _, swapped = name.partition(":")
    data = datasets.load(name)
    X = (MaxAbsScaler() if sp.issparse(data.X) else MinMaxScaler()).fit_transform(data.X)
    return X, (data.y <= 0 if swapped else data.y > 0)


def compare(name: str, alpha: float, patience: float) -> tuple[str, float, float, bool, float]:
    X, positive = load(name)
    top, design = Top(positive), make_design(X)
    solver = choose_solver(top, design)
    with serial_blas():
        minimise(top, design, 10.0, solver=solver, tol=0.5, max_iter=2)  # compiles
        accelerated_dual(top, design, 10.0, tol=0.5, max_iter=2)
        begin = perf_counter()
        result = minimise(top, design, alpha, solver=solver, tol=TOL, max_iter=500)
        ours = perf_counter() - begin
        assert result.converged, (name, alpha, result.optimality)
        fine = minimise(top, design, alpha, solver=solver, tol=1e-6, max_iter=500).optimality
        begin = perf_counter()
        try:
            reached = accelerated_dual(
                top, design, alpha, tol=TOL, max_iter=10**9, progress=_Watch(patience * ours)
            )
            assert reached.objective <= result.objective * (1.0 + 2.0 * TOL)
            finished = True
        except _OutOfPatience:
            finished = False
        return solver, ours, perf_counter() - begin, finished, fine


def one_hot(n: int = 6548, share: float = 0.06) -> tuple[np.ndarray, np.ndarray]:
    """A table of categories in one-hot columns: about 5,000 rows equal another one."""
    rng = np.random.default_rng(0)
    parts, score = [], 0.3 * rng.logistic(size=n)
    for levels in LEVELS:
        frequency = np.arange(1.0, levels + 1.0) ** -POWER
        codes = rng.choice(levels, n, p=frequency / frequency.sum())
        parts.append(np.eye(levels)[codes])
        score += 0.5 * rng.standard_normal(levels)[codes]
    return np.hstack(parts), score > np.quantile(score, 1.0 - share)


def equal_rows() -> None:
    """Seconds of fits and paths on data with many equal rows."""
    w8a = datasets.load("w8a_train")
    for name, X, y in (("one-hot", *one_hot()), ("w8a_train", w8a.X, w8a.y > 0)):
        rankers = [TopPush(loss) for loss in LOSSES] + [TopRanker(at=0.01), TopRanker(at=0.2)]
        for ranker in rankers:
            ranker.set_params(alpha=10.0, tol=0.1).fit(X, y)  # compiles
            cells = []
            for alpha in (1e-1, 1e-2, 1e-3, 1e-4):
                begin = perf_counter()
                ranker.set_params(alpha=alpha, tol=TOL).fit(X, y)
                cells.append(f"{perf_counter() - begin:6.3f} ({ranker.optimality_:.0e})")
            begin = perf_counter()
            ranker.set_params(tol=1e-3).alpha_path(X, y)
            cells.append(f"path {perf_counter() - begin:6.3f}")
            at = getattr(ranker, "at", "max")
            print(f"{name:>10} {ranker.loss:>13} {at!s:>5} {'  '.join(cells)}", flush=True)


def projections() -> None:
    print("\nProjection (li2014, Proposition 1)")
    print(f"{'variables':>12} {'seconds':>9} {'KKT residual':>13}")
    rng = np.random.default_rng(0)
    project_balanced(rng.standard_normal(10), rng.standard_normal(10))
    seconds = {}
    for size in (10**5, 10**6, 10**7):
        a, b = rng.standard_normal(size // 2), rng.standard_normal(size - size // 2)
        runs = []
        for _ in range(3):
            begin = perf_counter()
            x, y = project_balanced(a, b)
            runs.append(perf_counter() - begin)
        seconds[size] = float(np.median(runs))
        shifts = np.concatenate([(a - x)[x > 0], (y - b)[y > 0]])
        gamma = float(np.median(shifts))
        wrong = max((a - gamma)[x == 0].max(initial=0.0), (b + gamma)[y == 0].max(initial=0.0))
        residual = max(float(np.abs(shifts - gamma).max()), wrong, abs(x.sum() - y.sum()) / x.sum())
        print(f"{size:>12,} {seconds[size]:>9.4f} {residual:>13.1e}")
    print(f"Ten million against one million: {seconds[10**7] / seconds[10**6]:.1f} times the time.")


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench top", description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=list(DATA))
    parser.add_argument(
        "--patience", type=float, default=30.0, help="give the dual method up after so many times"
    )
    parser.add_argument("--equal", action="store_true", help="only data with many equal rows")
    args = parser.parse_args()
    if args.equal:
        print("Seconds (relative gap) at alpha 1e-1, 1e-2, 1e-3, 1e-4; seconds of a path")
        equal_rows()
        return
    print(
        f"{'data':>30} {'alpha':>7} {'solver':>16} {'seconds':>8} {'nesterov s':>11} {'ratio':>9} "
        f"{'gap at tol 1e-6':>16}"
    )
    ratios = []
    for name in args.data:
        for alpha in SPARSE_ALPHAS if name.startswith("news20") or ":" in name else ALPHAS:
            solver, ours, nesterov, finished, fine = compare(name, alpha, args.patience)
            ratios.append(nesterov / ours)
            sign = " " if finished else ">"
            print(
                f"{name:>30} {alpha:>7g} {solver:>16} {ours:>8.3f} {sign}{nesterov:>10.2f} "
                f"{sign}{ratios[-1]:>8.1f} {fine:>16.1e}",
                flush=True,
            )
    print(f"Geometric mean of the ratios, at least: {np.exp(np.mean(np.log(ratios))):.1f}")
    projections()


if __name__ == "__main__":
    main()
