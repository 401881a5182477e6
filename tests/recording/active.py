"""Items simulate/* and loop/*: active learning."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import forerank
from forerank import active
from recording.data import TEST, Data, dense, sparse
from recording.items import error_of, item, value_or_error

STRATEGIES = {
    "lossmin": "lossmin",
    "entropy": "entropy",
    "uncertain": "uncertain",
    "diverse": active.Diverse(3),
    "random": "random",
    "greedy": "greedy",
}


def simulated(strategy: Any, data: Data | None = None, **options: Any) -> dict:
    """Simulation of a strategy, its recall, and the records read until a recall is reached."""
    data = data or dense(150, seed=4)
    given = {"strategy": strategy, "random_state": 0, "batch": 8, **options}
    found = active.simulate(data.X, data.y, **given)
    reached = {
        str(recall): value_or_error(partial(found.records_to_recall, recall))
        for recall in (0.2, 0.5)
    }
    return {"simulation": found, "recall": found.recall, "reached": reached}


for name, strategy in STRATEGIES.items():
    item(f"simulate/{name}", strategy, test=TEST, rounds=8)(simulated)


@item("simulate/grouped")
def simulated_groups() -> dict:
    data = dense(150, seed=4)
    given = {"qid": data.qid, "batch": 1, "rounds": 5, "seeds": (1, 2)}
    return {name: simulated(strategy, data, **given) for name, strategy in STRATEGIES.items()}


@item("simulate/rankers")
def simulated_rankers() -> dict:
    pairwise = forerank.PairwiseRanker("logistic", alpha=0.1)
    return {
        "pairwise": simulated("greedy", ranker=pairwise, rounds=6),
        "pointwise": simulated("greedy", ranker=forerank.PointwiseRanker(), rounds=6),
        "csr": simulated("greedy", sparse(), until_recall=0.8, batch=0.2),
    }


@item("simulate/stopping")
def stopping() -> dict:
    rules = {
        "budget": active.Budget(40),
        "irrelevant": active.IrrelevantInARow(15),
        "recall": active.RecallBound(0.8, 0.8),
        "stable": active.RankingStable(0.97, 2),
        "either": active.Budget(60) | active.IrrelevantInARow(12),
        "both": active.Budget(30) & active.IrrelevantInARow(5),
    }
    return {
        name: {"rule": repr(rule), **simulated("greedy", stopping=rule)}
        for name, rule in rules.items()
    }


@item("simulate/compare")
def compared_strategies() -> dict:
    """Comparison of two strategies in three runs, the first of which is read from its file."""
    data, names = dense(120, seed=5), ["greedy", "random"]
    with TemporaryDirectory() as directory:
        given = {"batch": 10, "test": TEST, "results": Path(directory) / "runs.jsonl"}
        run = partial(active.compare_strategies, data.X, data.y, strategies=names, **given)
        run(n_runs=1, progress=False)
        found = run(n_runs=3, progress=False)
    return {
        "runs": found.runs,
        "table": found.table(),
        "tests": {name: found.test(name, *names) for name in ("auc", "map", "ndcg@10")},
        "band": found.band("auc", "greedy"),
        "ordering": found.ordering("auc"),
        "paired": active.paired_t([1.0, 2.0, 4.0], [0.5, 2.5, 3.0]),
    }


@item("loop/resumed")
def resumed_loop() -> dict:
    """Labels of four rounds, and of four more by a loop that continues from the record."""
    data, asked = dense(100, seed=6), []
    with TemporaryDirectory() as directory:
        path = Path(directory) / "loop.jsonl"
        given = {"strategy": "lossmin", "batch": 4, "stopping": active.RankingStable(0.999)}
        open_loop = partial(active.LabellingLoop, data.X, record=path, **given)
        first = open_loop(random_state=3)
        seeds = [int(np.flatnonzero(data.y == label)[0]) for label in (1, 0)]
        first.tell(seeds, [1, 0], seed=True)
        label_rounds(first, data.y, asked)
        second = open_loop()
        label_rounds(second, data.y, asked)
        record = path.read_text()
    names = ("rows", "labels", "agreement")
    return {
        "asked": asked,
        "order": second.order,
        "labels": second.labels,
        "steps": [{name: getattr(step, name) for name in names} for step in second.steps],
        "scores": second.scores(),
        "record": record,
        "stopped": second.stopped,
        "refused": error_of(lambda: second.tell(0, 7)),
    }


def label_rounds(loop: active.LabellingLoop, y: np.ndarray, asked: list, n_rounds: int = 4) -> None:
    """Labels of `y` for what the loop asks, which is added to `asked`."""
    for _ in range(n_rounds):
        asked.append(loop.ask())
        loop.tell(asked[-1], y[asked[-1]])


@item("loop/posterior")
def posterior() -> dict:
    data = dense()
    scores = np.round(data.X[:, 0], 2)
    return {
        "threshold": active.rank_threshold(scores),
        "grouped threshold": active.rank_threshold(scores, groups=data.qid),
        "posterior": active.relevance_posterior(scores),
        "grouped": active.relevance_posterior(scores, groups=data.qid),
    }
