"""Items on losses, sums over pairs, generated data, measures, bounds and figures."""

from collections.abc import Callable
from functools import partial
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import forerank
from forerank import losses, metrics, objectives, pairsums, plots
from forerank.data import datasets
from forerank.metrics import bounds
from recording.data import dense
from recording.fields import by_name
from recording.fits import PAIR_LOSSES
from recording.items import item, value_or_error

LOSSES = [*map(losses.get_loss, PAIR_LOSSES), losses.SmoothedHinge(0.3)]


@item("losses")
def loss_values() -> dict:
    margins, found = np.linspace(-3.0, 3.0, 25), {}
    for loss in (*LOSSES, losses.DirectLogistic(), losses.ErfcLogistic(1e-8)):
        own = found[repr(loss)] = {}
        for name in ("value", "slope", "derivative", "curvature", "second_derivative", "conjugate"):
            if hasattr(loss, name):
                with np.errstate(all="ignore"):
                    own[name] = value_or_error(partial(getattr(loss, name), margins))
    return found


@item("objectives/all-pairs")
def all_pairs() -> dict:
    data, found = dense(), {}
    scores = np.round(data.X @ np.ones(data.X.shape[1]), 1)
    for loss in (*LOSSES, losses.ErfcLogistic(1e-8)):
        for name, group in (("all", None), ("grouped", data.qid)):
            objective = objectives.AllPairs(data.grade, loss, weight=data.weight, group=group)
            point = objective.at(scores)
            own = found[f"{loss!r} {name}"] = {"value": point.value, "gradient": point.gradient}
            if hasattr(point, "curvature_product"):
                own["curvature"] = value_or_error(partial(point.curvature_product, np.cos(scores)))
    return found


@item("pairsums/erfc")
def erfc_sums() -> dict:
    rng = np.random.default_rng(3)
    given = (rng.standard_normal(200), rng.standard_normal(300), rng.uniform(size=300))
    return {
        "fast": {str(eps): pairsums.erfc_sum(*given, eps) for eps in (1e-4, 1e-6, 1e-12)},
        "direct": pairsums.erfc_sum_direct(*given),
    }


@item("datasets")
def generated_data() -> dict:
    bipartite = partial(datasets.make_bipartite, 50, prior=0.3, n_features=6, random_state=0)
    return {
        "randnet": datasets.make_randnet(50, 5, 4, random_state=0),
        "randpoly": datasets.make_randpoly(50, 5, 4, random_state=0),
        **{
            f"bipartite {kind}": value_or_error(partial(bipartite, kind))
            for kind in ("linear", "rules", "none such")
        },
        "grades": datasets.cut_into_grades(np.sin(np.arange(30.0)), 4),
    }


# --- Measures ---

MEASURES: dict[str, Callable[..., float]] = {
    "roc_auc": metrics.roc_auc,
    "average_precision": metrics.average_precision,
    "pos_at_top": metrics.pos_at_top,
    "rank_loss": metrics.rank_loss,
    "wmw": metrics.wmw,
    "wmw, ties 0": partial(metrics.wmw, ties=0.0),
    "ndcg": metrics.ndcg,
    "ndcg at 10": partial(metrics.ndcg, k=10),
    "ndcg, exponential": partial(metrics.ndcg, gain="exponential"),
    "partial_auc False": partial(metrics.partial_auc, standardize=False),
    "partial_auc mcclish": partial(metrics.partial_auc, standardize="mcclish"),
    "partial_auc range": partial(metrics.partial_auc, standardize="range"),
    "partial_auc, middle": partial(metrics.partial_auc, standardize="range", fpr_range=(0.2, 0.5)),
    "precision at 10": metrics.precision_at_k,
    "recall at 33": partial(metrics.recall_at_k, k=33),
    "tpr at 0.05": partial(metrics.tpr_at_fpr, fpr=0.05),
    "work_saved": metrics.work_saved,
}
GRADED_MEASURES = ("wmw", "wmw, ties 0", "ndcg", "ndcg at 10", "ndcg, exponential", "roc_auc")


def measured(y: str, *given: str) -> dict:
    """Measures of scores without and with ties, on the labels `y` with the columns `given`."""
    data = dense()
    exact = data.X @ np.linspace(1.0, 0.0, data.X.shape[1])
    labels, arguments = getattr(data, y), data.arguments(*given)
    return {
        name: {
            kind: value_or_error(partial(MEASURES[name], labels, scores, **arguments))
            for kind, scores in (("exact", exact), ("ties", np.round(exact)))
        }
        for name in (GRADED_MEASURES if y == "grade" else MEASURES)
    }


item("metrics/plain", "y")(measured)
item("metrics/weighted", "y", "weight")(measured)
item("metrics/grouped", "y", "qid")(measured)
item("metrics/grouped-weighted", "y", "qid", "weight")(measured)
item("metrics/graded", "grade")(measured)
item("metrics/graded-grouped", "grade", "qid")(measured)


@item("metrics/intervals-and-scorers")
def intervals_and_scorers() -> dict:
    data = dense()
    interval = partial(metrics.auc_interval, data.y, np.round(data.X[:, 0], 1))
    bootstrap = partial(interval, method="bootstrap", n_resamples=200, random_state=0)
    ranker = forerank.PairwiseRanker().fit(data.X, data.y)
    return {
        "delong": interval(),
        "90 %": interval(confidence=0.9),
        "bootstrap": bootstrap(),
        "weighted": bootstrap(sample_weight=data.weight),
        "scorers": {
            name: metrics.get_scorer(name)(ranker, data.X, data.y) for name in metrics.SCORERS
        },
    }


@item("bounds")
def bound_values() -> dict:
    data = dense()
    probability = 1.0 / (1.0 + np.exp(-data.X[:, 0]))
    ranker = forerank.PointwiseRanker(alpha=0.01).fit(data.X, data.y)
    report = partial(bounds.report, ranker, data.X, data.y)
    reports = {
        "plain": report(),
        "probability": report(probability=probability),
        "weighted": report(sample_weight=data.weight),
    }
    return {
        "reports": reports,
        "printed": {name: str(each) for name, each in reports.items()},
        "expected": bounds.expected_rank_loss(data.X[:, 1], probability, sample_weight=data.weight),
        "balanced_error": bounds.balanced_error_bound(0.2),
        "error": bounds.error_bound(0.1, 0.3),
        "error_rates": bounds.error_rates_bound(0.1, 0.2, 0.3),
        "exponential": bounds.exponential_regret_bound(0.05),
        "logistic": bounds.logistic_regret_bound(0.05),
        "margin": bounds.margin_bound(0.3),
        "deviation": bounds.weight_deviation_bound(0.3, 1000, 0.05),
    }


# --- Figures ---


def attributes(display: Any) -> dict:
    """Attributes of a display that are results; curves of methods by their order."""
    found = {
        name: value
        for name, value in vars(display).items()
        if not name.endswith("_") and name != "name"
    }
    return found | ({"paths": by_name(found["paths"])} if "paths" in found else {})


@item("displays")
def displays() -> dict:
    data = dense()
    X, y, scores = data.X, data.y, data.X[:, 0] + 0.5 * data.X[:, 1]
    ranker = forerank.Ranker("auc", cv=3, alphas=4, random_state=0).fit(X, y)
    models = [forerank.PairwiseRanker(alpha=alpha).fit(X, y) for alpha in (0.01, 1.0, 10.0)]
    ranks, weight = {"a": 1.2, "b": 1.9, "c": 2.9}, data.weight
    shown = {
        "hits": plots.HitsDisplay.from_predictions(y, scores),
        "hits of a ranker": plots.HitsDisplay.from_estimator(ranker, X, y, sample_weight=weight),
        "scores": plots.ScoreDistributionDisplay.from_predictions(y, scores, bins=12),
        "stability": plots.TopStabilityDisplay.from_estimators(models, X, max_k=50),
        "ranks": plots.CriticalDifferenceDisplay.from_ranks(ranks, 0.8),
        "path": plots.AlphaPathDisplay.from_estimator(ranker),
    }
    plt.close("all")
    return {name: attributes(display) for name, display in shown.items()}
