"""scikit-learn scorers of the measures."""

from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from forerank import metrics
from metric_cases import same


@pytest.fixture(scope="module")
def classified() -> tuple[np.ndarray, np.ndarray]:
    return make_classification(n_samples=240, n_informative=3, flip_y=0.1, random_state=0)


@pytest.mark.parametrize("name", sorted(metrics.SCORERS))
@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB()])
def test_scorers_score_the_held_out_rows(name: str, estimator: Any, classified: tuple) -> None:
    X, y = classified
    folds = KFold(3)
    scores = cross_val_score(
        estimator, X, y, cv=folds, scoring=metrics.SCORERS[name], error_score="raise"
    )
    metric = getattr(metrics, name)
    params = {"standardize": "mcclish"} if name == "partial_auc" else {}
    sign = -1 if name == "rank_loss" else 1
    for score, (train, test) in zip(scores, folds.split(X), strict=True):
        fitted = estimator.fit(X[train], y[train])
        s = (
            fitted.decision_function(X[test])
            if hasattr(fitted, "decision_function")
            else fitted.predict_proba(X[test])[:, 1]
        )
        same(score, sign * metric(y[test], s, **params))


def test_scorers_select_a_model(classified: tuple) -> None:
    X, y = classified
    scoring = {"top": metrics.SCORERS["pos_at_top"], "loss": metrics.SCORERS["rank_loss"]}
    search = GridSearchCV(
        LogisticRegression(), {"C": [1e-3, 1.0]}, scoring=scoring, refit="loss", cv=3
    ).fit(X, y)
    assert (search.cv_results_["mean_test_loss"] <= 0).all()
    assert search.best_score_ == search.cv_results_["mean_test_loss"].max()


def test_graded_scorers_accept_a_regressor(classified: tuple) -> None:
    X, _ = classified
    y = np.digitize(X[:, 0] + X[:, 1], [-1, 0, 1])
    for name in ("wmw", "ndcg"):
        assert (
            cross_val_score(
                Ridge(), X, y, cv=3, scoring=metrics.SCORERS[name], error_score="raise"
            ).min()
            > 0.9
        )


def test_pos_label_reaches_metric_and_estimator(classified: tuple) -> None:
    X, y = classified
    fitted = LogisticRegression().fit(X, y)
    scorer = metrics.get_scorer("tpr_at_fpr", fpr=0.1, pos_label=0)
    same(scorer(fitted, X, y), metrics.tpr_at_fpr(1 - y, -fitted.decision_function(X), fpr=0.1))


def test_scorers_are_routed_weights_and_queries(classified: tuple) -> None:
    X, y = classified
    rng = np.random.default_rng(0)
    qid, weight = rng.integers(0, 4, y.size), rng.uniform(0.5, 2.0, y.size)
    folds = KFold(2)
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            LogisticRegression().set_fit_request(sample_weight=True),
        )
        scorer = metrics.get_scorer("wmw").set_score_request(sample_weight=True, qid=True)
        params = {"sample_weight": weight, "qid": qid}
        scores = cross_val_score(
            model, X, y, cv=folds, scoring=scorer, params=params, error_score="raise"
        )
        search = GridSearchCV(model, {"logisticregression__C": [1.0]}, scoring=scorer, cv=folds)
        same(search.fit(X, y, **params).best_score_, scores.mean())
        for score, (train, test) in zip(scores, folds.split(X), strict=True):
            s = model.fit(X[train], y[train], sample_weight=weight[train]).decision_function(
                X[test]
            )
            same(score, metrics.roc_auc(y[test], s, sample_weight=weight[test], qid=qid[test]))
    assert not hasattr(metrics.SCORERS["wmw"], "_metadata_request"), (
        "a scorer of one's own leaves the shared one alone"
    )


def test_unknown_scorers_and_parameters_are_named() -> None:
    with pytest.raises(ValueError, match=r"'auc'; choose one of average_precision, ndcg, .*wmw"):
        metrics.get_scorer("auc")
    with pytest.raises(ValueError, match="does not take depth; it takes k, pos_label"):
        metrics.get_scorer("recall_at_k", depth=3)
