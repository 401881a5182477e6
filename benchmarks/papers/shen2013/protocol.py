"""The experiments of section 4: data, folds, methods with the paper's settings, and tasks."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures

from forerank import (
    ActiveSamplingRanker,
    CombinedSGDRanker,
    PairwiseRanker,
    PointwiseRanker,
    metrics,
)
from forerank.data import datasets

from .published import DATA

# Section 4.2: C for a pair, pairs in all, pairs per round.
C, BUDGET, STEP = 0.1, 8000, 100
# Our objectives are means: a total weight of C * B against ||w||^2 / 2 is a penalty of
ALPHA = 1.0 / (C * BUDGET)
# Columns scaled as in the LIBSVM edition that the paper names, or as that collection does where it
# has no edition; the others are zeros and ones, or pixels from 0 to 1.
SCALE = {"letter": (-1, 1), "bank": (-1, 1), "shuttle": (-1, 1), "covtype_binary": (0, 1)}
WITH_TEST_SET = ("a9a", "mnist_0")
N_FOLDS = 5
GAMMAS = ("uniform", *(round(0.1 * k, 1) for k in range(1, 11)))
CURVE_EVERY = 4  # rounds between two points of Figure 1
TIMINGS = 3

STRATEGIES = {
    "Random": "random",
    "Soft-Close": "soft-close",
    "Soft-Correct": "soft-correct",
    "Hard-Close": "hard-close",
    "Hard-Correct": "hard-correct",
}
# Ours, not in the paper: soft-correct with weights that are unbiased and not divided by their sum.
UNBIASED = "Soft-Correct, unbiased"
BASELINES = ("WSVM", "ERankSVM", "CRR")
COLUMNS = (*BASELINES, "Random", "Soft-Close", "Soft-Correct")


def constants() -> dict[str, Any]:
    """Settings that the records depend on, as JSON."""
    scale = {name: list(bounds) for name, bounds in SCALE.items()}
    return {
        "C": C,
        "budget": BUDGET,
        "step": STEP,
        "n_folds": N_FOLDS,
        "scale": scale,
        "curve_every": CURVE_EVERY,
    }


def method(name: str, seed: int = 0, gamma: float | str = 1.0) -> Any:
    """A method with the paper's settings."""
    if name == "WSVM":
        # C_+ = B C / (2 N_+), C_- = B C / (2 N_-): both classes weigh the same. The constant is a
        # column of ones.
        svm = PointwiseRanker("hinge", alpha=ALPHA, class_weight="balanced", fit_intercept=False)
        return make_pipeline(PolynomialFeatures(1), svm)
    if name == "ERankSVM":
        return PairwiseRanker("hinge", alpha=ALPHA)  # C_perf = B C / 100, with its loss in per cent
    if name == "CRR":
        return CombinedSGDRanker(
            alpha=ALPHA, random_state=seed
        )  # lambda = 1 / (B C), 100,000 steps
    ranker = ActiveSamplingRanker(
        gamma=gamma, alpha=ALPHA, step=STEP, budget=BUDGET, random_state=seed
    )
    if name == UNBIASED:
        return ranker
    # Z: the weights of the chosen pairs sum to |L*| C.
    return ranker.set_params(strategy=STRATEGIES[name], bias_correction="normalized")


@dataclass(frozen=True)
class Fold:
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def n_folds(name: str) -> int:
    return 1 if name in WITH_TEST_SET else N_FOLDS


def load_fold(name: str, fold: int) -> Fold:
    """Train and test rows, the columns scaled by the training rows."""
    data = datasets.load(name)
    counts = int(np.sum(data.y > 0)), int(np.sum(data.y <= 0)), data.X.shape[1]
    if counts != DATA[name][1:4]:
        raise SystemExit(
            f"{name} has {counts} positives, negatives and columns; the paper has "
            f"{DATA[name][1:4]}."
        )
    X, y = data.X, data.y > 0
    if name in WITH_TEST_SET:
        test = datasets.load(f"{name}_test")
        return Fold(X, y, test.X, test.y > 0)
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(np.zeros(y.size), y)
    train, test_rows = list(folds)[fold]
    X_train, X_test = X[train], X[test_rows]
    if name in SCALE:
        scaler = MinMaxScaler(SCALE[name]).fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    return Fold(X_train, y[train], X_test, y[test_rows])


def _auc(fold: Fold, ranker: Any) -> float:
    return float(metrics.roc_auc(fold.y_test, ranker.decision_function(fold.X_test)))


def accuracy(name: str, fold_number: int, n_pools: int) -> list[dict]:
    """Tables 2 and 3, Figures 1 and 2: every method on one fold, with curves where sampled."""
    fold = load_fold(name, fold_number)
    records = []
    for who in (*BASELINES, *STRATEGIES, UNBIASED):
        for seed in range(1 if who in ("WSVM", "ERankSVM") else n_pools):
            record: dict[str, Any] = {
                "kind": "auc",
                "data": name,
                "fold": fold_number,
                "method": who,
                "seed": seed,
            }
            ranker = method(who, seed)
            if who not in BASELINES:
                curve: list[list[float]] = []
                ranker.set_params(callback=_curve_into(curve, fold))
                record["curve"] = curve
            record["settled"] = _settles(ranker, fold)
            records.append({**record, "auc": _auc(fold, ranker)})
    return records


def _settles(ranker: Any, fold: Fold) -> bool:
    """Fit; whether without a warning that the tolerance was not reached."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        ranker.fit(fold.X, fold.y)
    return not any(issubclass(w.category, ConvergenceWarning) for w in caught)


def _curve_into(curve: list[list[float]], fold: Fold) -> Callable:
    def note(ranker: Any, round: Any) -> None:
        if (ranker.n_iter_ - 1) % CURVE_EVERY == 0 or round.pool == BUDGET:
            curve.append([round.pool, _auc(fold, ranker), round.acceptance, round.rejected])

    return note


def trade_off(name: str, fold_number: int, n_pools: int, gammas: tuple) -> list[dict]:
    """Table 5 and Figure 3: soft strategies at several shares of pairs."""
    fold = load_fold(name, fold_number)
    records = []
    for who in ("Soft-Close", "Soft-Correct"):
        for gamma in gammas:
            for seed in range(n_pools):
                ranker = method(who, seed, gamma)
                record = {
                    "kind": "gamma",
                    "data": name,
                    "fold": fold_number,
                    "method": who,
                    "gamma": gamma,
                }
                settled = _settles(ranker, fold)
                records.append(
                    {**record, "seed": seed, "settled": settled, "auc": _auc(fold, ranker)}
                )
    return records


def timing(name: str, repeats: int) -> list[dict]:
    """Table 4: seconds of fit on the first fold; the median of several, after one to compile."""
    fold = load_fold(name, 0)
    peers = {"lbfgs": LogisticRegression(C=C * BUDGET / fold.y.size, max_iter=1000)}
    records = []
    for who in (*STRATEGIES, *BASELINES, "lbfgs"):
        runs = []
        for seed in range(repeats + 1):
            ranker = clone(peers[who]) if who in peers else method(who, seed)
            X = fold.X
            begin = perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                ranker.fit(X, fold.y)
            runs.append(perf_counter() - begin)
        records.append(
            {"kind": "time", "data": name, "method": who, "seconds": float(np.median(runs[1:]))}
        )
    return records


def describe(name: str) -> str:
    data = datasets.load(name)
    storage = "sparse" if sp.issparse(data.X) else "dense"
    scale = f", columns scaled to {list(SCALE[name])}" if name in SCALE else ""
    where = "published test set" if name in WITH_TEST_SET else f"{N_FOLDS}-fold cross-validation"
    return f"{storage}{scale}; {where}"
