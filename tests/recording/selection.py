"""Items choose/*: the selection of a method and of alpha by cross-validation."""

from typing import Any

from sklearn.model_selection import GridSearchCV, StratifiedKFold

import forerank
from recording.data import NEW_X, dense, sparse
from recording.fits import fitted
from recording.items import item


def selected(metric: str, y: str = "y", given: tuple[str, ...] = (), **options: Any) -> dict:
    """Fit of a `Ranker` with the labels `y` and the columns `given`, and its results."""
    data = dense()
    ranker = forerank.Ranker(metric, cv=3, alphas=5, random_state=0, **options)
    found = fitted(ranker, data.X, getattr(data, y), NEW_X, **data.arguments(*given))
    found["results"] = ranker.cv_results_
    found["best_method_"] = ranker.best_method_
    if hasattr(ranker, "calibration_"):
        found["probabilities"] = ranker.predict_proba(data.X)
    return found


for metric in ("auc", "ap", "pos_at_top", "wmw", "ndcg@5", "pauc@0.2", "recall@20"):
    item(f"choose/{metric}", metric)(selected)
item("choose/graded-wmw", "wmw", "grade")(selected)
item("choose/graded-ndcg-grouped", "ndcg@5", "grade", given=("qid",))(selected)
item("choose/grouped", "auc", given=("qid",))(selected)
item("choose/weighted", "auc", given=("weight",))(selected)
item("choose/calibrated", "ap", calibrate=True)(selected)
item("choose/maps", "auc", maps=["quadratic", "nystroem", "fourier"], methods="auto")(selected)
item("choose/unscaled-list-rows", "recall@50", scale=False, list_rows=1000)(selected)
item("choose/searched-on-part", "auc", search_rows=100)(selected)


@item("choose/csr")
def selected_csr() -> dict:
    ranker = forerank.Ranker("ap", cv=3, alphas=4, random_state=0)
    return {**fitted(ranker, sparse().X, sparse().y), "results": ranker.cv_results_}


@item("choose/grid-search")
def grid_search() -> dict:
    grid = {"loss": ["logistic", "squared_hinge"], "alpha": [0.001, 0.1]}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(forerank.PairwiseRanker(), grid, scoring="roc_auc", cv=folds)
    results = search.fit(dense().X, dense().y).cv_results_
    return {
        "results": {name: value for name, value in results.items() if name.endswith("test_score")},
        "best": search.best_params_,
        "scores": search.decision_function(NEW_X),
    }
