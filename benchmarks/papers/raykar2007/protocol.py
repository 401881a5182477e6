"""The experiments: data, folds, methods, selection of parameters, and tasks."""

from functools import cache
from typing import Any

import numpy as np
from scipy.special import erfc
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from forerank import PairwiseRanker, QuadraticFeatures, RankBoost, RankNCG, RankNet, metrics
from forerank.data import datasets
from forerank.pairsums import (
    LogisticPairs,
    PairBlocks,
    erfc_series,
    erfc_series_bound,
    erfc_sum,
    erfc_sum_direct,
)

from ..common import processor_seconds, timed_fit
from .published import METHODS, TABLE_1

OURS = "Newton, exact"
KERNEL = "RankNCG, rbf kernel"
ALL = (*METHODS, OURS, KERNEL)
# Real sets by their file; the others are generated.
FILES = {
    "pyrimidines": "reg_pyrim",
    "triazines": "reg_triazines",
    "wisconsin": "reg_wisconsin",
    "machine-cpu": "reg_machine_cpu",
    "auto-mpg": "reg_auto_mpg",
    "boston housing": "reg_boston_housing",
    "stock": "reg_stock",
    "abalone": "reg_abalone",
    "california housing": "reg_cal_housing",
}
# The generator with the values of the paper; `randpoly_forms` compares it with the cited one.
RANDPOLY = {"form": "quadratic", "bins": "width"}
CITED_RANDPOLY = {"form": "cubic", "bins": "size"}
ALPHAS = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5)
QUICK_ALPHAS = (0.1, 1e-3)
QUICK_DATA = ("pyrimidines", "machine-cpu", "auto-mpg", "randpoly 1000")
# Inner products of quadratic columns are squares of those of plain ones: stronger penalties.
QUADRATIC_ALPHAS = (10.0, 1.0, 0.1, 1e-2)
KERNEL_ALPHAS = (1e-2, 1e-3, 1e-4, 1e-5)
ROUNDS = (50, 100)  # of boosting
N_FOLDS = 5
HIDDEN_UNITS = 10
# Fits that take less than this many seconds are timed five times, and the median kept.
REPEATED_BELOW = 0.5
# Pairs from which the direct method runs on two folds only.
MANY_PAIRS = 50_000_000

USERS = 100
FEWEST_RATINGS = 100
COLUMNS = (50, 100, 200, 400, 800, 1600)
USER_ALPHAS = (100.0, 10.0, 1.0, 0.1, 1e-2)
USER_METHODS = ("RankNCG fast", "RankBoost", OURS)

SUM_SIZES = tuple(100 * 2**k for k in range(10))
SUM_EPS = 1e-10
DIRECT_TARGETS = 100
EPSILONS = tuple(10.0**-k for k in range(1, 13))
# Figure 1 (d): truncation numbers, and the interval of z.
TRUNCATIONS = range(1, 21)
SERIES_REACH = 4.0
FIGURE_3_DATA = "randpoly 1000"
FIGURE_3_EPSILONS = (0.3, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10)


def constants() -> dict[str, Any]:
    """Settings that the records depend on, as JSON."""
    return {
        "alphas": list(ALPHAS),
        "quadratic_alphas": list(QUADRATIC_ALPHAS),
        "kernel_alphas": list(KERNEL_ALPHAS),
        "rounds": list(ROUNDS),
        "n_folds": N_FOLDS,
        "hidden_units": HIDDEN_UNITS,
        "user_alphas": list(USER_ALPHAS),
        "fewest_ratings": FEWEST_RATINGS,
        "randpoly": RANDPOLY,
    }


def method(name: str, value: float) -> Any:
    """A method with its parameter: alpha, or the rounds of boosting. Columns come standardised."""
    shared = {"graph": "order", "alpha": value}
    makers = {
        "RankNCG direct": lambda: RankNCG("direct", **shared),
        "RankNCG fast": lambda: RankNCG("erfc", **shared),
        "RankNet linear": lambda: RankNet(0, **shared),
        "RankNet two layer": lambda: RankNet(HIDDEN_UNITS, random_state=0, **shared),
        "RankSVM linear": lambda: PairwiseRanker("hinge", **shared),
        "RankSVM quadratic": lambda: make_pipeline(
            QuadraticFeatures(), PairwiseRanker("hinge", **shared)
        ),
        "RankBoost": lambda: RankBoost(int(value), graph="order"),
        OURS: lambda: PairwiseRanker("logistic", **shared),
        KERNEL: lambda: RankNCG("exact", kernel="rbf", random_state=0, **shared),
    }
    return makers[name]()


def grid(name: str, *, quick: bool) -> tuple[float, ...]:
    if name == "RankBoost":
        return ROUNDS[:1] if quick else ROUNDS
    if name == "RankSVM quadratic":
        return QUADRATIC_ALPHAS[:1] if quick else QUADRATIC_ALPHAS
    if name == KERNEL and not quick:
        return KERNEL_ALPHAS
    return QUICK_ALPHAS if quick else ALPHAS


def variants(data: str) -> tuple[str, ...]:
    """Columns alone, and for real sets also with the target among them, as d in Table 1 has it."""
    return ("columns", "with target") if data in FILES else ("columns",)


@cache
def load(data: str, variant: str) -> tuple[np.ndarray, np.ndarray]:
    """Columns and grades."""
    _, n, d, n_grades, _ = TABLE_1[data]
    if data not in FILES:
        if data.startswith("randnet"):
            return datasets.make_randnet(n, d, n_grades, random_state=0)
        return datasets.make_randpoly(n, d, n_grades, random_state=0, **RANDPOLY)
    read = datasets.load(FILES[data])
    whole = ~np.isnan(read.X).any(axis=1)
    X, target = read.X[whole].astype(float), read.y[whole].astype(float)
    if X.shape[0] != n:
        raise SystemExit(f"{data} has {X.shape[0]} complete rows; the paper has {n}.")
    if variant == "with target":
        X = np.column_stack([X, target])
    return X, datasets.cut_into_grades(target, n_grades)


def folds(data: str) -> list[tuple[np.ndarray, np.ndarray]]:
    n = TABLE_1[data][1]
    return list(KFold(N_FOLDS, shuffle=True, random_state=0).split(np.zeros(n)))


def n_pairs(grade: np.ndarray) -> int:
    sizes = np.bincount(grade)
    return int((sizes.sum() ** 2 - (sizes**2).sum()) // 2)


def _scaled(X: np.ndarray, train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), scaler.transform(X[test])


def _choose(
    who: str, X: np.ndarray, y: np.ndarray, values: tuple[float, ...], seed: int
) -> tuple[float, int]:
    """The value with the best mean WMW over inner folds, of equal ones the first; and fits that did
    not settle.
    """
    found, unsettled = np.zeros(len(values)), 0
    for inner, held_out in KFold(N_FOLDS, shuffle=True, random_state=seed).split(y):
        X_inner, X_held_out = _scaled(X, inner, held_out)
        for k, value in enumerate(values):
            ranker = method(who, value)
            unsettled += not timed_fit(ranker, X_inner, y[inner])[0]
            found[k] += metrics.wmw(y[held_out], ranker.decision_function(X_held_out)) / N_FOLDS
    return values[int(np.argmax(found))], unsettled


def select(data: str, variant: str, who: str, fold: int, values: tuple[float, ...]) -> list[dict]:
    """One outer fold: choose the parameter by cross-validation on the training part."""
    X, y = load(data, variant)
    train, _ = folds(data)[fold]
    value, unsettled = (
        _choose(who, X[train], y[train], values, fold) if len(values) > 1 else (values[0], 0)
    )
    record = {"kind": "chosen", "data": data, "variant": variant, "method": who, "fold": fold}
    return [
        {**record, "value": value, "unsettled": unsettled, "fits": N_FOLDS * len(values)}
        | {"values": len(values)}
    ]


def measure(data: str, variant: str, who: str, fold: int, value: float) -> list[dict]:
    """One outer fold with its parameter: training time, and WMW on the test part."""
    X, y = load(data, variant)
    train, test = folds(data)[fold]
    X_train, X_test = _scaled(X, train, test)
    timed_fit(method(who, value), X_train[:200], y[train][:200])  # compiles
    ranker = method(who, value)
    settled, seconds = timed_fit(ranker, X_train, y[train])
    if seconds < REPEATED_BELOW:
        seconds = float(
            np.median(
                [seconds, *(timed_fit(method(who, value), X_train, y[train])[1] for _ in range(4))]
            )
        )
    wmw = float(metrics.wmw(y[test], ranker.decision_function(X_test)))
    record = {"kind": "fold", "data": data, "variant": variant, "method": who, "fold": fold}
    last = ranker[-1] if hasattr(ranker, "steps") else ranker
    record |= {"value": value, "seconds": seconds, "wmw": wmw, "settled": settled}
    record |= {"steps": int(last.n_iter_), "optimality": float(last.optimality_)}
    training = float(metrics.wmw(y[train], ranker.decision_function(X_train)))
    record |= {"bound": last.wmw_bound_, "training": training}
    return [record | {"pairs": n_pairs(y[train]), "columns": X.shape[1]}]


# --- Collaborative filtering ---


@cache
def _ratings() -> np.ndarray:
    """Users by movies, zero where there is no rating; the first row and column are empty."""
    with np.load(datasets.data_directory() / "movielens_1m.npz") as archive:
        user, item, rating = (archive[key].astype(int) for key in ("user", "item", "rating"))
    table = np.zeros((user.max() + 1, item.max() + 1), dtype=np.int8)
    table[user, item] = rating
    return table


def users(count: int) -> list[int]:
    """Users drawn from those with enough ratings."""
    enough = np.flatnonzero((_ratings() > 0).sum(axis=1) >= FEWEST_RATINGS)
    return np.random.default_rng(0).choice(enough, count, replace=False).tolist()


def movies_of(user: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """One user's movies: the ratings by the other users who rate most, gaps filled at random, and
    the user's own.

    A gap is drawn from the normal distribution with mean and variance of the movie's ratings by
    these users, or of all their ratings where the movie has fewer than two.
    """
    ratings = _ratings()
    by_activity = np.argsort(-(ratings > 0).sum(axis=1), kind="stable")
    others = by_activity[by_activity != user][:n_columns]
    movies = np.flatnonzero(ratings[user])
    X = ratings[others][:, movies].T.astype(float)
    known = X > 0
    count = known.sum(axis=1)
    mean = np.where(count >= 2, X.sum(axis=1) / np.maximum(count, 1), X[known].mean())
    squares = np.where(known, (X - mean[:, None]) ** 2, 0.0).sum(axis=1)
    variance = np.where(count >= 2, squares / np.maximum(count - 1, 1), X[known].var())
    noise = np.random.default_rng([user, n_columns]).standard_normal(X.shape)
    return np.where(known, X, mean[:, None] + np.sqrt(variance)[:, None] * noise), ratings[
        user, movies
    ].astype(int)


def recommend(user: int, n_columns: int, quick: bool) -> list[dict]:
    """One user: 70 % of the movies for training, with the parameter by cross-validation there; WMW
    on the others.
    """
    X, y = movies_of(user, n_columns)
    order = np.random.default_rng(user).permutation(y.size)
    train, test = order[: int(0.7 * y.size)], order[int(0.7 * y.size) :]
    X_train, X_test = _scaled(X, train, test)
    records = []
    for who in USER_METHODS:
        values = ROUNDS[-1:] if who == "RankBoost" else USER_ALPHAS[1:3] if quick else USER_ALPHAS
        value, _ = (
            _choose(who, X[train], y[train], values, user) if len(values) > 1 else (values[0], 0)
        )
        timed_fit(method(who, value), X_train[:60], y[train][:60])  # compiles
        ranker = method(who, value)
        settled, seconds = timed_fit(ranker, X_train, y[train])
        wmw = float(metrics.wmw(y[test], ranker.decision_function(X_test)))
        record = {"kind": "user", "user": user, "columns": n_columns, "method": who, "value": value}
        records.append(
            {**record, "seconds": seconds, "wmw": wmw, "settled": settled, "movies": int(y.size)}
        )
    return records


# --- RandPoly ---

RANDPOLY_DRAWS = 5


def randpoly_forms(form: str, rows: int, draws: int) -> list[dict]:
    """WMW of linear and quadratic columns, and pairs, on draws of a generator of RandPoly: five
    folds, the best of a few penalties.
    """
    options = RANDPOLY if form == "quadratic" else CITED_RANDPOLY
    records = []
    for seed in range(draws):
        X, y = datasets.make_randpoly(rows, 50, 6, random_state=seed, **options)
        linear, quadratic, pairs = [], [], []
        for train, test in KFold(N_FOLDS, shuffle=True, random_state=0).split(y):
            X_train, X_test = _scaled(X, train, test)
            pairs.append(n_pairs(y[train]))
            linear.append(_best_wmw(X_train, y[train], X_test, y[test], (0.1, 1e-2, 1e-3)))
            if rows <= 1000 and seed == 0:
                products = QuadraticFeatures().fit(X_train)
                parts = products.transform(X_train), y[train], products.transform(X_test), y[test]
                quadratic.append(_best_wmw(*parts, (10.0, 1.0)))
        record = {"kind": "randpoly", "form": form, "rows": rows, "seed": seed}
        record |= {"linear": float(np.mean(linear)), "pairs": float(np.mean(pairs))}
        records.append(record | {"quadratic": float(np.mean(quadratic)) if quadratic else None})
    return records


def _best_wmw(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, alphas: tuple[float, ...]
) -> float:
    fits = [PairwiseRanker(graph="order", alpha=alpha).fit(X, y) for alpha in alphas]
    return max(metrics.wmw(y_test, fitted.decision_function(X_test)) for fitted in fits)


# --- Figures 1 to 3 ---


def series_error(p: int) -> list[dict]:
    """Figure 1 (d): the largest error of p terms for |z| <= 4 and its bound (eq. 6), with the h for
    which the bound is smallest.
    """
    steps = np.linspace(0.1, 0.4, 3001)
    bounds = np.array([float(erfc_series_bound(SERIES_REACH, h, p)) for h in steps])
    h = float(steps[np.argmin(bounds)])
    z = np.linspace(-SERIES_REACH, SERIES_REACH, 4001)
    error = float(np.abs(erfc_series(z, h, p) - erfc(z)).max())
    return [{"kind": "series", "p": p, "h": h, "error": error, "bound": float(bounds.min())}]


def _best(call: Any, repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        begin = processor_seconds()
        call()
        times.append(processor_seconds() - begin)
    return min(times)


def sums_by_size(n: int) -> list[dict]:
    """Figure 2 (a, b): N = M normal points, weights one; the direct sum at 100 targets where N is
    above 3,200.
    """
    rng = np.random.default_rng(0)
    y, z = rng.standard_normal(n), rng.standard_normal(n)
    erfc_sum(y[:10], z[:10], eps=SUM_EPS)
    erfc_sum_direct(y[:10], z[:10])
    some = n if n <= 3200 else DIRECT_TARGETS
    exact = erfc_sum_direct(y[:some], z)
    direct = _best(lambda: erfc_sum_direct(y[:some], z), 1 if some == n else 3) * n / some
    error = float(np.abs(erfc_sum(y, z, eps=SUM_EPS)[:some] - exact).max() / n)
    blocks = PairBlocks.build(np.repeat([0, 1], n))
    s = np.concatenate([z, y])
    LogisticPairs(blocks, s)
    fast, grid_sums = (
        _best(lambda: erfc_sum(y, z, eps=SUM_EPS)),
        _best(lambda: LogisticPairs(blocks, s)),
    )
    record = {"kind": "sum", "n": n, "direct": direct, "extrapolated": some < n, "error": error}
    return [{**record, "fast": fast, "grid": grid_sums}]


def sums_by_precision(eps: float, n: int = 3000) -> list[dict]:
    """Figure 2 (c, d)."""
    rng = np.random.default_rng(0)
    y, z = rng.standard_normal(n), rng.standard_normal(n)
    erfc_sum(y[:10], z[:10], eps=eps)
    exact = erfc_sum_direct(y, z)
    direct = _best(lambda: erfc_sum_direct(y, z), 2)
    fast = _best(lambda: erfc_sum(y, z, eps=eps), 20)
    error = float(np.abs(erfc_sum(y, z, eps=eps) - exact).max() / n)
    return [{"kind": "precision", "eps": eps, "direct": direct, "fast": fast, "error": error}]


def fits_by_precision(eps: float | None) -> list[dict]:
    """Figure 3: one fold of RandPoly; None stands for the direct method."""
    X, y = load(FIGURE_3_DATA, "columns")
    train, test = folds(FIGURE_3_DATA)[0]
    X_train, X_test = _scaled(X, train, test)
    maker = (
        RankNCG("direct", graph="order", alpha=1e-3)
        if eps is None
        else RankNCG(graph="order", alpha=1e-3, eps=eps)
    )
    timed_fit(clone(maker), X_train[:200], y[train][:200])
    runs = [timed_fit(ranker := clone(maker), X_train, y[train]) for _ in range(3 if eps else 1)]
    wmw = float(metrics.wmw(y[test], ranker.decision_function(X_test)))
    record = {"kind": "eps", "eps": eps, "seconds": float(np.median([t for _, t in runs]))}
    return [record | {"wmw": wmw, "settled": runs[-1][0], "steps": int(ranker.n_iter_)}]
