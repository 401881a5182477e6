"""Simulated screening of systematic reviews: records read by each method, and when to stop."""

import importlib.util
import warnings
from functools import cache
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from benchmarks.papers.common import processor_seconds
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from forerank import PairwiseRanker, PointwiseRanker, TopPush
from forerank.active import PoolRanker, Reading, RecallBound, Simulation, simulate
from forerank.data import datasets

# Seeds: one relevant and one irrelevant record. Batches: the larger of one record and this share
# of the records read.
SEEDS = (1, 1)
BATCH = 0.05
N_SEEDINGS = 10
STRATEGIES = ("greedy", "lossmin", "entropy", "uncertain", "diverse")
REFERENCE = "weighted SVM, greedy"
ASREVIEW = "asreview, its default"


def constants() -> dict[str, Any]:
    return {"seeds": list(SEEDS), "batch": BATCH}


class WeightedSVM(BaseEstimator):
    """The reference: squared-hinge SVM, C = 0.11, relevant records weighing 9.8 times all
    irrelevant ones together.

    Weights have the mean one; C multiplies a sum over the records.
    """

    def __init__(self, C: float = 0.11, ratio: float = 9.8) -> None:
        self.C = C
        self.ratio = ratio

    def fit(self, X: Any, y: NDArray) -> Self:
        n_relevant = np.count_nonzero(y == 1)
        weight = np.where(y == 1, 1.0, n_relevant / (self.ratio * (y.size - n_relevant)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # liblinear's limit of iterations
            self.svm_ = LinearSVC(C=self.C).fit(
                X, y, sample_weight=weight * (y.size / weight.sum())
            )
        return self

    def decision_function(self, X: Any) -> NDArray:
        return self.svm_.decision_function(X)


class PerLabel(BaseEstimator):
    """A ranker with alpha = 1 / (C n) for n labelled records, which is the C of an SVM."""

    def __init__(self, ranker: Any, C: float = 1.0) -> None:
        self.ranker = ranker
        self.C = C

    def fit(self, X: Any, y: NDArray) -> Self:
        if not hasattr(self, "ranker_"):
            self.ranker_ = type(self.ranker)(**{**self.ranker.get_params(), "warm_start": True})
        self.ranker_.set_params(alpha=1.0 / (self.C * y.size)).fit(X, y)
        return self

    def decision_function(self, X: Any) -> NDArray:
        return self.ranker_.decision_function(X)


RANKERS: dict[str, Any] = {
    "all pairs and the unread": PoolRanker(),
    "weighted SVM": WeightedSVM(),
    "all pairs": PerLabel(PairwiseRanker("squared_hinge")),
    "logistic": PerLabel(PointwiseRanker("logistic", class_weight="balanced")),
    "TopPush": PerLabel(TopPush()),
}


def has_asreview() -> bool:
    return importlib.util.find_spec("asreview") is not None


def methods() -> tuple[list[str], list[str], list[str]]:
    """Every ranker with "greedy" and the peers, the first ranker with every strategy, the rest."""
    rankers = list(RANKERS)
    greedy = [f"{ranker}, greedy" for ranker in rankers]
    first = [*greedy, *([ASREVIEW] if has_asreview() else []), "random"]
    second = [f"{rankers[0]}, {strategy}" for strategy in STRATEGIES[1:]]
    every = [f"{ranker}, {strategy}" for strategy in STRATEGIES for ranker in rankers]
    return first, second, [method for method in every if method not in first + second]


def names() -> list[str]:
    """Names of the available reviews."""
    return sorted(
        path.name.removesuffix(".csv.gz")
        for path in (datasets.data_directory() / "reviews").glob("*.csv.gz")
    )


def read(name: str) -> pd.DataFrame:
    return pd.read_csv(datasets.data_directory() / "reviews" / f"{name}.csv.gz").fillna(
        {"title": "", "abstract": ""}
    )


@cache
def features(name: str) -> tuple[sp.csr_matrix, NDArray]:
    """tf-idf of the words and pairs of words of title and abstract."""
    frame = read(name)
    tfidf = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_df=0.95)
    return tfidf.fit_transform(frame["title"] + " " + frame["abstract"]).tocsr(), frame[
        "label"
    ].to_numpy()


def run(name: str, seeding: int, method: str, batch: float = BATCH) -> list[dict]:
    """One review read by one method until the last relevant record is found."""
    X, y = features(name)
    begin = processor_seconds()
    if method == ASREVIEW:
        found = _by_asreview(name, seeding, batch)
    elif method == "random":
        found = simulate(
            X,
            y,
            strategy="random",
            seeds=SEEDS,
            batch=batch,
            until_recall=1.0,
            random_state=seeding,
        )
    else:
        ranker, strategy = method.rsplit(", ", 1)
        found = simulate(
            X,
            y,
            strategy=strategy,
            ranker=RANKERS[ranker],
            seeds=SEEDS,
            batch=batch,
            until_recall=1.0,
            random_state=seeding,
        )
    seconds = processor_seconds() - begin
    record = {"kind": "run", "review": name, "seeding": seeding, "method": method}
    return [{**record, "seconds": seconds, **_figures(found)}]


def _figures(found: Simulation) -> dict[str, Any]:
    """Values for the page, and the ranks of the relevant records, which determine all others."""
    return {
        "n_records": found.n_records,
        "n_relevant": found.n_relevant,
        "found_at": (np.flatnonzero(found.relevant) + 1).tolist(),
        "to": {str(recall): found.records_to_recall(recall) for recall in (0.5, 0.8, 0.95, 1.0)},
        "wss": found.work_saved(0.95),
        "rounds": len(found.read) - 1,
        "seeds": found.seeds,
    }


def _by_asreview(name: str, seeding: int, batch: float) -> Simulation:
    """The default model of asreview with its own features, from the same seeds and batches."""
    from asreview import ActiveLearningCycle
    from asreview.models.models import get_ai_config
    from asreview.simulation.simulate import Simulate

    X, y = features(name)
    begun = simulate(X, y, seeds=SEEDS, rounds=0, random_state=seeding)
    cycle = ActiveLearningCycle.from_meta(get_ai_config()["value"])
    cycle.n_query = lambda results: max(1, int(batch * (len(results) - len(begun.seeds))))
    simulation = Simulate(
        _asreview_features(name, cycle), y, cycle, skip_transform=True, print_progress=False
    )
    simulation.label(begun.seeds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        simulation.review()
    order = simulation._results["record_id"].to_numpy()[len(begun.seeds) :]
    return Simulation(
        order.tolist(),
        y[order].tolist(),
        begun.n_records,
        begun.n_relevant,
        begun.seeds,
        [0, order.size],
    )


_made: dict[str, Any] = {}


def _asreview_features(name: str, cycle: Any) -> Any:
    if name not in _made:
        _made[name] = cycle.transform(read(name))
    return _made[name]


def relevant_of(record: dict) -> NDArray[np.bool_]:
    """Whether each record is relevant, in reading order; none is after the last one found."""
    relevant = np.zeros(record["n_records"], dtype=bool)
    relevant[np.array(record["found_at"]) - 1] = True
    return relevant


def stopped_at(record: dict, rule: RecallBound) -> tuple[int, float]:
    """Number of records after which the rule stops a run, and the recall then."""
    relevant = relevant_of(record)
    finds = np.flatnonzero(relevant)
    bounds = [0, *(finds + 1).tolist(), relevant.size]
    # Between two relevant records the bound only rises: bisection replaces a test at each.
    for low, high in pairwise(bounds):
        if _reached(rule, relevant, low):
            return low, float(relevant[:low].sum() / relevant.sum())
        last = high - 1 if high < relevant.size or relevant[-1] else high
        if last > low and _reached(rule, relevant, last):
            a, b = low, last
            while b - a > 1:
                middle = (a + b) // 2
                a, b = (a, middle) if _reached(rule, relevant, middle) else (middle, b)
            return b, float(relevant[:b].sum() / relevant.sum())
    return relevant.size, 1.0


def _reached(rule: RecallBound, relevant: NDArray[np.bool_], read: int) -> bool:
    return rule.reason(Reading(relevant.size, relevant[:read])) is not None
