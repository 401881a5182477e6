"""Items fit/*: each estimator, on several kinds of data."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import forerank
from forerank import active, graphs
from recording.data import NEW_X, TEST, dense, sparse
from recording.items import described, error_of, item

PAIR_LOSSES = ("exponential", "hinge", "logistic", "squared", "squared_hinge")
# X, labels and further arguments of `fit`.
KINDS: dict[str, Callable[[], tuple[Any, Any, dict]]] = {
    "dense": lambda: (dense().X, dense().y, {}),
    "csr": lambda: (sparse().X, sparse().y, {}),
    "float32": lambda: (dense().X.astype(np.float32), dense().y, {}),
    "columns-first": lambda: (np.asfortranarray(dense().X), dense().y, {}),
    "easy": lambda: (dense(noise=0.1).X, dense(noise=0.1).y, {}),
    "easy-weighted": lambda: (
        *(dense(noise=0.1).X, dense(noise=0.1).y),
        dense(noise=0.1).arguments("weight"),
    ),
    "grouped": lambda: (dense().X, dense().y, dense().arguments("qid")),
    "graded": lambda: (dense().X, dense().grade, {}),
    "weighted": lambda: (dense().X, dense().y, dense().arguments("weight")),
    "csr-graded-grouped-weighted": lambda: (
        *(sparse().X, sparse().grade),
        sparse().arguments("qid", "weight"),
    ),
}


def fitted(estimator: Any, X: Any, y: Any, new: Any = None, **given: Any) -> dict:
    """Attributes of an estimator after its fit, and its scores."""
    estimator.fit(X, y, **given)
    found = {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_") and name != "cv_results_"
    }
    found["scores"] = estimator.decision_function(X)
    found["rank"] = estimator.rank(X) if hasattr(estimator, "rank") else None
    if new is not None:
        found["scores of new rows"] = estimator.decision_function(new)
    return found


def of_dense(make: Callable[[], Any]) -> dict:
    """Fit to dense data without further arguments."""
    return fitted(make(), dense().X, dense().y, NEW_X)


def of_kinds(make: Callable[[], Any], *kinds: str) -> dict:
    """Fit to each kind of data, or its exception."""
    found = {}
    for kind in kinds:
        X, y, given = KINDS[kind]()
        ranker = make()
        if "graded" in kind:
            ranker.set_params(graph="order")
        try:
            found[kind] = fitted(ranker, X, y, **given)
        except (ValueError, TypeError) as error:
            found[kind] = {"exception": described(error)}
    return found


# --- Pairs and rows ---

for loss in PAIR_LOSSES:
    pairwise = partial(forerank.PairwiseRanker, loss, alpha=0.01)
    item(f"fit/pairwise/{loss}", pairwise, *KINDS)(of_kinds)
    pointwise = partial(forerank.PointwiseRanker, loss, alpha=0.01)
    item(f"fit/pointwise/{loss}", pointwise, "dense", "csr", "float32", "weighted")(of_kinds)


@item("fit/pairwise/graphs")
def pairwise_graphs() -> dict:
    given = {"chain": "chain", "one-against-rest": "one-against-rest", "edges": [(3, 0), (2, 1)]}
    edges = {
        "order": graphs.order([0, 1, 2]),
        "chain": graphs.chain([0, 1, 2]),
        "two": graphs.bipartite([1], [0]),
    }
    make = partial(forerank.PairwiseRanker, "logistic", alpha=0.1)
    fits = {
        name: fitted(make(graph=graph), dense().X, dense().grade) for name, graph in given.items()
    }
    return {**fits, "written out": {name: np.array(each) for name, each in edges.items()}}


@item("fit/pairwise/warm-start")
def warm_start() -> dict:
    data = dense()
    ranker = forerank.PairwiseRanker("logistic", alpha=0.1, warm_start=True)
    first = fitted(ranker, data.X, data.y)
    return {"first": first, "second": fitted(ranker.set_params(alpha=0.01), data.X, data.y)}


@item("fit/pointwise/class-weight")
def class_weight() -> dict:
    make = partial(forerank.PointwiseRanker, alpha=0.01)
    return {
        "balanced": of_dense(partial(make, class_weight="balanced")),
        "given": of_dense(partial(make, "hinge", class_weight={0: 1.0, 1: 3.0})),
        "no intercept": of_dense(partial(make, "squared_hinge", fit_intercept=False)),
    }


# --- The top of the list ---

for loss in ("exponential", "hinge", "logistic", "squared_hinge"):
    kinds = ("dense", "easy", "csr", "float32", "weighted", "easy-weighted")
    top_push = partial(forerank.TopPush, loss, alpha=0.01)
    item(f"fit/top-push/{loss}", top_push, *kinds)(of_kinds)
    sparse_top_push = partial(forerank.SparseTopPush, loss, alpha=0.01)
    item(f"fit/sparse-top-push/{loss}", sparse_top_push, *kinds)(of_kinds)


@item("fit/top-push/nesterov")
def nesterov() -> dict:
    make = partial(forerank.TopPush, alpha=0.01, solver="nesterov")
    return {
        loss: of_kinds(partial(make, loss), "dense", "easy", "csr", "weighted")
        for loss in ("hinge", "squared_hinge", "logistic")
    }


@item("fit/top-ranker")
def top_ranker() -> dict:
    make = partial(forerank.TopRanker, alpha=0.01)
    return {
        f"{at} {loss}": of_kinds(partial(make, loss, at=at), "easy", "csr", "easy-weighted")
        for at in ("max", 5, 0.1)
        for loss in ("hinge", "squared_hinge", "logistic")
    }


@item("fit/aatp")
def aatp() -> dict:
    make = partial(forerank.AATPRanker, 0.2, alpha=0.01)
    return {name: of_kinds(partial(make, anchors=name), "easy", "csr") for name in ("auto", "all")}


map_ranker = partial(forerank.MAPRanker, alpha=0.01)
item("fit/map", map_ranker, "dense", "csr", "float32")(of_kinds)
partial_auc = partial(forerank.PartialAUCRanker, (0.0, 0.2), alpha=0.01)
item("fit/partial-auc", partial_auc, "dense", "csr", "weighted")(of_kinds)
middle = partial(forerank.PartialAUCRanker, (0.1, 0.4), alpha=0.01)
item("fit/partial-auc/middle", middle)(of_dense)


@item("fit/owpc")
def owpc() -> dict:
    make = partial(forerank.OWPCRanker, alpha=0.01)
    return {
        "harmonic": of_kinds(make, "dense", "csr", "weighted"),
        "uniform": of_dense(partial(make, "uniform")),
        "given": of_dense(partial(make, [1.0, 0.5, 0.25])),
    }


# --- Trees, networks, samples of pairs ---

PAIR_KINDS = ("dense", "csr", "grouped", "graded", "weighted")


@item("fit/rankboost")
def rankboost() -> dict:
    ranker = forerank.RankBoost(15, max_bins=8).fit(dense().X, dense().y)
    return {
        **of_kinds(partial(forerank.RankBoost, 20), *PAIR_KINDS),
        "staged": np.array(list(ranker.staged_decision_function(dense().X))),
        "importances": ranker.feature_importances_,
    }


for sums in ("erfc", "exact", "direct"):
    rank_ncg = partial(forerank.RankNCG, sums, alpha=0.01)
    item(f"fit/rank-ncg/{sums}", rank_ncg, *PAIR_KINDS)(of_kinds)
rank_net = partial(forerank.RankNet, 4, alpha=0.01, max_iter=40, random_state=0)
item("fit/ranknet", rank_net, *PAIR_KINDS)(of_kinds)


def active_sampling(**options: Any) -> dict:
    """Fit to pairs that are sampled with the given options."""
    given = {"alpha": 0.01, "step": 20, "budget": 120, "random_state": 0, **options}
    ranker = forerank.ActiveSamplingRanker(**given)
    return fitted(ranker, dense().X, dense().y, NEW_X, eval_set=TEST)


for strategy in ("random", "soft-close", "soft-correct", "hard-close", "hard-correct"):
    item(f"fit/active-sampling/{strategy}", strategy=strategy)(active_sampling)


@item("fit/active-sampling/options")
def active_sampling_options() -> dict:
    ranker = partial(forerank.ActiveSamplingRanker, alpha=0.01, step=30, budget=90, random_state=1)
    return {
        "points": active_sampling(gamma=0.3, class_weight="balanced"),
        "uniform": active_sampling(gamma="uniform", bias_correction=False),
        "normalized": active_sampling(bias_correction="normalized"),
        "rows": of_kinds(ranker, "csr", "weighted"),
    }


@item("fit/combined-sgd")
def combined_sgd() -> dict:
    ranker = partial(forerank.CombinedSGDRanker, n_steps=4000, alpha=0.01, random_state=0)
    names = ("hinge", "logistic", "squared")
    return {
        **{name: of_dense(partial(ranker, name, pair_loss=name)) for name in names},
        "last": of_dense(partial(ranker, gamma=0.9, average=False, fit_intercept=False)),
        "rows": of_kinds(ranker, "csr", "weighted"),
    }


# --- Features, pools, paths, errors ---


@item("fit/quadratic-features")
def quadratic_features() -> dict:
    data = dense()
    features = forerank.QuadraticFeatures(0.5).fit(data.X)
    ranker = forerank.PairwiseRanker(alpha=0.01)
    pipeline = make_pipeline(StandardScaler(), forerank.QuadraticFeatures(), ranker)
    return {
        "features": features.transform(data.X[:20]),
        "csr": error_of(lambda: forerank.QuadraticFeatures().fit_transform(sparse().X[:10])),
        "names": list(features.get_feature_names_out()),
        "scores": pipeline.fit(data.X, data.y).decision_function(NEW_X),
    }


@item("fit/pool-ranker")
def pool_ranker() -> dict:
    found = {}
    for name, data in (("dense", dense()), ("csr", sparse())):
        y = np.where(np.arange(data.y.size) % 4 == 0, data.y, -1)
        for loss in ("squared_hinge", "logistic", "squared", "exponential"):
            found[f"{name} {loss}"] = fitted(active.PoolRanker(loss=loss), data.X, y)
        found[f"{name} labelled"] = fitted(active.PoolRanker(C=1.0, unread_weight=0.0), data.X, y)
    return found


@item("fit/alpha-paths")
def alpha_paths() -> dict:
    data = dense(noise=0.1)
    rankers = {
        **{f"pairwise {loss}": forerank.PairwiseRanker(loss) for loss in PAIR_LOSSES},
        **{f"pointwise {loss}": forerank.PointwiseRanker(loss) for loss in PAIR_LOSSES},
        "top-push": forerank.TopPush(),
        "sparse-top-push": forerank.SparseTopPush(),
        "top-ranker": forerank.TopRanker(at=0.1),
        "aatp": forerank.AATPRanker(0.2),
        "map": forerank.MAPRanker(),
        "partial-auc": forerank.PartialAUCRanker(),
        "owpc": forerank.OWPCRanker(),
        "rank-ncg": forerank.RankNCG(),
    }
    found = {
        name: vars(ranker.alpha_path(data.X, data.y, [1.0, 0.1, 0.01]))
        for name, ranker in rankers.items()
    }
    ranker, given = forerank.PairwiseRanker("logistic", graph="order"), ("weight", "qid")
    path = ranker.alpha_path(data.X, data.grade, 5, **data.arguments(*given))
    return {**found, "graded": vars(path)}


@item("fit/errors")
def fit_errors() -> dict:
    """Messages about data and parameters that are not usable."""
    data, pairwise = dense(), forerank.PairwiseRanker
    X, y, nan = data.X, data.y, data.X.copy()
    nan[3, 2] = np.nan
    calls: dict[str, Callable[[], Any]] = {
        "one class": lambda: pairwise().fit(X, np.ones(y.size)),
        "NaN": lambda: pairwise().fit(nan, y),
        "lengths": lambda: pairwise().fit(X, y[:-1]),
        "weights": lambda: pairwise().fit(X, y, sample_weight=-data.weight),
        "qid": lambda: pairwise().fit(X, y, qid=np.arange(y.size)),
        "loss": lambda: pairwise("hinged").fit(X, y),
        "alpha": lambda: pairwise(alpha=-1.0).fit(X, y),
        "graph": lambda: pairwise(graph=[(0, 1), (1, 0)]).fit(X, y),
        "grades": lambda: forerank.TopPush().fit(X, data.grade),
        "solver": lambda: forerank.TopPush("logistic", solver="nesterov").fit(X, y),
        "budget": lambda: forerank.ActiveSamplingRanker(budget=10**9).fit(X, y),
        "metric": lambda: forerank.Ranker("aucc").fit(X, y),
        "metric of grades": lambda: forerank.Ranker("ap").fit(X, data.grade),
        "method": lambda: forerank.Ranker(methods=["none such"]).fit(X, y),
        "not fitted": lambda: pairwise().decision_function(X),
        "steps": lambda: pairwise("logistic", max_iter=1, alpha=1e-6).fit(X, y),
    }
    return {name: error_of(call) for name, call in calls.items()}
