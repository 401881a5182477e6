"""The experiments of section 5: models, data, methods, and tasks."""

import warnings
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.impute import SimpleImputer
from sklearn.model_selection import RepeatedStratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from forerank import PairwiseRanker, PointwiseRanker, TopPush, TopRanker, metrics
from forerank.data import datasets
from forerank.data.datasets import BipartiteModel
from forerank.metrics.bounds import expected_rank_loss, report

from ..common import processor_seconds, timed_fit
from .published import COVTYPE_TRAINING_ROWS, METHODS

OURS = ("all-pairs logistic", "all-pairs squared hinge")
ALL = (*METHODS, *OURS)
LAMBDAS = (1000.0, 100.0, 10.0, 1.0, 0.1, 0.01)
PANELS = {
    "linear, p = 0.5": ("linear", 0.5),
    "linear, p = 0.9": ("linear", 0.9),
    "nonlinear, p = 0.5": ("rules", 0.5),
    "nonlinear, p = 0.9": ("rules", 0.9),
}
MODELS = 30
TRAINING_SETS = 30
TRAINING_ROWS = 1000
TEST_ROWS = 10_000
BAYES_RISK = 0.1
N_FOLDS = 10
N_REPEATS = 10


def constants() -> dict[str, Any]:
    """Settings that the records depend on, as JSON."""
    return {
        "lambdas": list(LAMBDAS),
        "training_rows": TRAINING_ROWS,
        "test_rows": TEST_ROWS,
        "bayes_risk": BAYES_RISK,
    }


def method(name: str, penalty: float, n_rows: int) -> Any:
    """A method with the paper's lambda, a penalty on the sum over rows: alpha is lambda per row,
    for pairs as well.
    """
    alpha = penalty / n_rows
    return {
        "exponential": lambda: PointwiseRanker("exponential", alpha=alpha),
        "logistic": lambda: PointwiseRanker("logistic", alpha=alpha),
        "SVM-OR": lambda: PairwiseRanker("hinge", alpha=alpha),
        "all-pairs logistic": lambda: PairwiseRanker("logistic", alpha=alpha),
        "all-pairs squared hinge": lambda: PairwiseRanker("squared_hinge", alpha=alpha),
    }[name]()


def model(panel: str, number: int, training_sets: int, names: tuple[str, ...]) -> list[dict]:
    """One random model: rank risk and regret of every method and lambda, averaged over the training
    sets.

    The risk on the test rows is the expectation over their labels, so that its noise is that of the
    rows alone.
    """
    kind, prior = PANELS[panel]
    drawn = BipartiteModel.draw(kind, prior=prior, bayes_risk=BAYES_RISK, random_state=number)
    X_test, _, chance = drawn.sample(TEST_ROWS, 10_000 + number)
    best = expected_rank_loss(chance, chance)
    losses = {(who, penalty): [] for who in names for penalty in LAMBDAS}
    seconds, unsettled = dict.fromkeys(losses, 0.0), dict.fromkeys(losses, 0)
    for k in range(training_sets):
        X, y, _ = drawn.sample(TRAINING_ROWS, 20_000 + 1_000 * number + k)
        for who, penalty in losses:
            ranker = method(who, penalty, TRAINING_ROWS)
            begin = processor_seconds()
            settled, _ = timed_fit(ranker, X, y)
            losses[who, penalty].append(
                expected_rank_loss(ranker.decision_function(X_test), chance)
            )
            seconds[who, penalty] += processor_seconds() - begin
            unsettled[who, penalty] += not settled
    return [
        {"kind": "model", "panel": panel, "model": number, "method": who, "lambda": penalty,
         "loss": float(np.mean(values)), "bayes": best, "sets": training_sets,
         "seconds": seconds[who, penalty], "unsettled": unsettled[who, penalty]}
        for (who, penalty), values in losses.items()
    ]  # fmt: skip


def _read(name: str) -> tuple[np.ndarray, np.ndarray]:
    data = datasets.load(name)
    return data.X.astype(float), data.y > 0


def small_set(name: str, who: str, repeats: int, folds: int) -> list[dict]:
    """Repeated cross-validation on one of the small sets, for all lambdas."""
    X, y = _read(name)
    splits = RepeatedStratifiedKFold(n_splits=folds, n_repeats=repeats, random_state=0)
    found = {penalty: [] for penalty in LAMBDAS}
    unsettled = 0
    for train, test in splits.split(X, y):
        prepare = make_pipeline(SimpleImputer(), StandardScaler()).fit(X[train])
        X_train, X_test = prepare.transform(X[train]), prepare.transform(X[test])
        for penalty in LAMBDAS:
            ranker = method(who, penalty, train.size)
            unsettled += not timed_fit(ranker, X_train, y[train])[0]
            found[penalty].append(metrics.rank_loss(y[test], ranker.decision_function(X_test)))
    records = []
    for penalty, values in found.items():
        deviation = float(np.std(np.reshape(values, (repeats, folds)).mean(axis=1)))
        record = {"kind": "set", "data": name, "method": who, "lambda": penalty}
        record |= {"loss": float(np.mean(values)), "deviation": deviation}
        record |= {"repeats": repeats, "folds": folds}
        records.append(record | {"unsettled": unsettled})
    return records


def covtype(who: str, rows: int | None) -> list[dict]:
    """Class 1 of covtype, one split into training and test rows."""
    with np.load(datasets.data_directory() / "covtype_binary.npz") as archive:
        X, y = archive["X"].astype(float), archive["y_class"] == 1
    train, test = train_test_split(
        np.arange(y.size), train_size=COVTYPE_TRAINING_ROWS, random_state=0
    )
    train = train[:rows]
    scaler = StandardScaler().fit(X[train])
    X_train, X_test = scaler.transform(X[train]), scaler.transform(X[test])
    records = []
    for penalty in LAMBDAS:
        ranker = method(who, penalty, train.size)
        settled, seconds = timed_fit(ranker, X_train, y[train])
        loss = float(metrics.rank_loss(y[test], ranker.decision_function(X_test)))
        record = {"kind": "set", "data": "covtype", "method": who, "lambda": penalty}
        record |= {"loss": loss, "deviation": 0.0, "seconds": seconds}
        records.append(record | {"unsettled": int(not settled)})
    return records


# --- Theorem 4.1: regret against its bound as the training rows grow ---

REGRET_ROWS = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)
REGRET_SEEDS = 10
# A model with P(y = 1 | x) = sigmoid(a linear function), which linear scores can represent, and the
# two of Figure 1, whose probabilities have two values, which they cannot.
REGRET_MODELS = ("logistic", "linear", "rules")
REGRET_LOSSES = {"exponential": 12, "logistic": 13}
_COLUMNS = 50


def _draw(kind: str, seed: int) -> Any:
    """A function from a number of rows and a seed to rows, labels and probabilities."""
    if kind != "logistic":
        drawn = BipartiteModel.draw(kind, prior=0.5, bayes_risk=BAYES_RISK, random_state=seed)
        return drawn.sample
    weights = np.random.default_rng(seed).standard_normal(_COLUMNS)
    weights *= np.sqrt(12.0) / np.linalg.norm(weights)  # scores of variance one
    rows = np.random.default_rng(seed).uniform(size=(TEST_ROWS, _COLUMNS)) - 0.5

    def excess(scale: float) -> float:
        chance = expit(scale * (rows @ weights))
        return expected_rank_loss(chance, chance) - BAYES_RISK

    scale = brentq(excess, 0.1, 100.0)

    def sample(n: int, random_state: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(random_state)
        X = rng.uniform(size=(n, _COLUMNS))
        chance = expit(scale * ((X - 0.5) @ weights))
        return X, np.where(rng.uniform(size=n) < chance, 1, -1), chance

    return sample


def regrets(kind: str, rows: int, seeds: int) -> list[dict]:
    """Rank regret of fits with the balanced losses of Theorem 4.1, and its bound from their own
    regret, as expectations over the labels of test rows.
    """
    records = []
    for seed in range(seeds):
        sample = _draw(kind, seed)
        X, y, _ = sample(rows, 20_000 + seed)
        X_test, y_test, chance = sample(TEST_ROWS, 10_000 + seed)
        for loss, equation in REGRET_LOSSES.items():
            ranker = PointwiseRanker(loss, alpha=1.0 / rows, class_weight="balanced")
            timed_fit(ranker, X, y)
            found = report(ranker, X_test, y_test, probability=chance)
            bound = next(b for b in found.bounds if b.equation == equation)
            record = {"kind": "regret", "model": kind, "rows": rows, "seed": seed, "method": loss}
            records.append(record | {"regret": found.rank_regret, "bound": bound.bound})
    return records


# --- When do pairs pay? The settings of the page "Do I need pairs?" ---

STUDY_SHARES = (0.5, 0.1, 0.02)
STUDY_ROWS = (100, 300, 1000, 3000, 10_000)
STUDY_METHODS = (
    "logistic",
    "balanced logistic",
    "exponential",
    "all-pairs logistic",
    "SVM-OR",
    "top 5 %",
)
STUDY_SEEDS = 20
TOP_SHARE = 0.01  # of the test rows, for the precision at the top


def _study_method(name: str, penalty: float, n_rows: int) -> Any:
    if name == "balanced logistic":
        return PointwiseRanker("logistic", alpha=penalty / n_rows, class_weight="balanced")
    if name == "top 5 %":
        return TopRanker(at=0.05, alpha=penalty / n_rows)
    return method(name, penalty, n_rows)


def study(kind: str, share: float, rows: int, seeds: int) -> list[dict]:
    """Regret of every method and lambda, and the precision at the top, by the share of positives
    and the rows.

    Draws without both classes are left out.
    """
    found = {(who, penalty): [] for who in STUDY_METHODS for penalty in LAMBDAS}
    for seed in range(seeds):
        drawn = BipartiteModel.draw(kind, prior=share, bayes_risk=BAYES_RISK, random_state=seed)
        X_test, _, chance = drawn.sample(TEST_ROWS, 10_000 + seed)
        X, y, _ = drawn.sample(rows, 20_000 + seed)
        if np.unique(y).size < 2:
            continue
        best = expected_rank_loss(chance, chance)
        for who, penalty in found:
            ranker = _study_method(who, penalty, rows)
            timed_fit(ranker, X, y)
            scores = ranker.decision_function(X_test)
            top = np.argsort(-scores, kind="stable")[: int(TOP_SHARE * TEST_ROWS)]
            found[who, penalty].append(
                (expected_rank_loss(scores, chance) - best, chance[top].mean())
            )
    records = []
    for (who, penalty), pairs in found.items():
        if pairs:
            regret, precision = np.array(pairs).T
            record = {
                "kind": "study",
                "model": kind,
                "share": share,
                "rows": rows,
                "method": who,
                "lambda": penalty,
            }
            records.append(
                {
                    **record,
                    "draws": regret.size,
                    "regret": regret.tolist(),
                    "top": precision.tolist(),
                }
            )
    return records


# Real data for the same page: documents within queries, and the top of a list.
QUERY_METHODS = ("single rows", "pairs", "pairs within queries")
QUERY_ALPHAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
TOP_METHODS = ("logistic", "all-pairs logistic", "top 5 %", "first negative")
TOP_SETS = ("spambase", "letter")
TOP_ALPHAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


def queries(fold: int) -> list[dict]:
    """MQ2008: train on three parts, choose alpha on one by NDCG@10, measure on the last; grades 0,
    1 and 2.

    Single rows: logistic regression of "at all relevant". Pairs: all pairs of different grade, of
    all queries together or within a query.
    """
    with np.load(datasets.data_directory() / "letor_mq2008.npz") as archive:
        X, y, qid, part = (archive[key] for key in ("X", "y", "qid", "part"))
    order = [(fold + k) % 5 + 1 for k in range(5)]
    train, validate, test = np.isin(part, order[:3]), part == order[3], part == order[4]
    X = StandardScaler().fit(X[train].astype(float)).transform(X.astype(float))
    records = []
    for who in QUERY_METHODS:
        found = []
        for alpha in QUERY_ALPHAS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # queries without a pair are left out
                if who == "single rows":
                    ranker: Any = PointwiseRanker("logistic", alpha=alpha).fit(
                        X[train], y[train] > 0
                    )
                else:
                    ranker = PairwiseRanker("logistic", graph="order", alpha=alpha)
                    ranker.fit(
                        X[train],
                        y[train],
                        qid=qid[train] if who == "pairs within queries" else None,
                    )
                scores = ranker.decision_function(X)
                found.append(
                    [_per_query(y[rows], scores[rows], qid[rows]) for rows in (validate, test)]
                )
        best = int(np.argmax([validated["ndcg"] for validated, _ in found]))
        records.append(
            {
                "kind": "queries",
                "fold": fold,
                "method": who,
                "alpha": QUERY_ALPHAS[best],
                **found[best][1],
            }
        )
    return records


def _per_query(y: np.ndarray, scores: np.ndarray, qid: np.ndarray) -> dict[str, float]:
    return {
        "ndcg": float(metrics.ndcg(y, scores, k=10, qid=qid)),
        "wmw": float(metrics.wmw(y, scores, qid=qid)),
    }


def top(name: str, trial: int) -> list[dict]:
    """One random split into halves: every method and alpha, by AUC, average precision and positives
    at the top.
    """
    X, y = _read(name)
    train, test = train_test_split(
        np.arange(y.size), train_size=0.5, random_state=trial, stratify=y
    )
    scaler = MinMaxScaler().fit(X[train])
    X_train, X_test = scaler.transform(X[train]), scaler.transform(X[test])
    records = []
    for who in TOP_METHODS:
        for alpha in TOP_ALPHAS:
            ranker = {
                "logistic": PointwiseRanker("logistic", alpha=alpha),
                "all-pairs logistic": PairwiseRanker("logistic", alpha=alpha),
                "top 5 %": TopRanker(at=0.05, alpha=alpha),
                "first negative": TopPush(alpha=alpha),
            }[who]
            timed_fit(ranker, X_train, y[train])
            scores = ranker.decision_function(X_test)
            record = {"kind": "top", "data": name, "trial": trial, "method": who, "alpha": alpha}
            record["auc"] = float(metrics.roc_auc(y[test], scores))
            record["ap"] = float(metrics.average_precision(y[test], scores))
            record["pos"] = float(metrics.pos_at_top(y[test], scores))
            records.append(record)
    return records
