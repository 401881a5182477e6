"""Items compare/*: methods compared by cross-validation."""

import json
from typing import Any

import forerank
from recording.data import dense
from recording.fields import by_name
from recording.items import item

PAIRWISE = "PairwiseRanker(alpha=0.01)"
METHODS = [PAIRWISE, "sklearn.linear_model.LogisticRegression(C=0.1)", "TopPush"]
GRADED_METHODS = [PAIRWISE, "RankNCG(alpha=0.01)", "sklearn.linear_model.Ridge"]


def compared(y: str, methods: list[str], given: tuple[str, ...] = (), **options: Any) -> dict:
    """Comparison of methods on the labels `y` with the columns `given`."""
    data = dense()
    arguments = {**data.arguments(*given), **options}
    found = forerank.compare(data.X, getattr(data, y), methods, cv=3, **arguments)
    values = [found.values(name) for name in (None, *found.records[0]["measures"])]
    return {
        "values": [[list(each.values()) for each in value.values()] for value in values],
        "table": found.table(),
        "differences": found.differences(),
        "ranks": by_name(found.ranks()),
        "friedman": found.friedman(),
        "cd": found.cd,
        "sentence": found.sentence(),
        "title": found.title,
        "notes": [*found.notes],
        "as dict": json.dumps(found.to_dict(), indent=1, default=str),
    }


item("compare/binary", "y", METHODS, seeds=2)(compared)
item("compare/weighted-ap", "y", METHODS[:2], ("weight",), metric="ap")(compared)
item("compare/grouped-recall", "y", METHODS[:2], ("qid",), metric="recall@5")(compared)
BY_NAME = ["Ranker", "logistic-regression-cv", "pairwise-logistic"]
item("compare/default", "y", BY_NAME, metric="recall@20")(compared)
item("compare/graded", "grade", GRADED_METHODS, seeds=2)(compared)
CLASSIFIER = [PAIRWISE, "sklearn.linear_model.LogisticRegression"]
item("compare/graded-classifier", "grade", CLASSIFIER)(compared)
item("compare/graded-ndcg-grouped", "grade", GRADED_METHODS, ("qid",), metric="ndcg@5")(compared)
