"""The search behind Ranker: candidates that are dropped, samples of rows, smoothing of means."""

import numpy as np
from numpy.testing import assert_allclose

from forerank import Ranker
from forerank.selection import search as module
from forerank.selection.search import smoothed
from forerank.selection.training_rows import TrainingRows, stratified_order


def test_a_method_that_is_clearly_worse_is_dropped(data):
    rng = np.random.default_rng(0)
    X, y = data(3000)
    X = np.hstack([X, rng.standard_normal((3000, 1))])
    ranker = Ranker(
        "auc", methods=["pointwise-logistic", "top-push"], alphas=[1e-1, 1e-2], random_state=0
    ).fit(X, y)  # fmt: skip
    left_out = dict(zip(ranker.cv_results_["method"], ranker.cv_results_["left_out"], strict=True))
    assert left_out["pointwise-logistic"] == ""
    assert left_out["top-push"].startswith("behind pointwise-logistic")
    assert "Dropped early: top-push" in ranker.reason_
    assert np.isnan(ranker.cv_results_["split4_test_score"][-1])


def test_a_trial_on_a_sample_is_not_called_a_fold(data, monkeypatch, capsys):
    monkeypatch.setattr(module, "_MANY_ROWS", 1000)
    monkeypatch.setattr(module, "_TRIAL_ROWS", 900)
    X, y = data(3000)
    methods = ["pointwise-logistic", "top-push"]
    ranker = Ranker("auc", methods=methods, alphas=[1e-1, 1e-2], random_state=0, verbose=True)
    ranker.fit(X, y)
    results = ranker.cv_results_
    reason = dict(zip(results["method"], results["left_out"], strict=True))["top-push"]
    assert reason.startswith("behind pointwise-logistic by")
    assert reason.endswith("on a sample of the rows")
    printed = capsys.readouterr().out
    assert "a sample of the rows, pointwise-logistic" in printed
    assert "fold 5, pointwise-logistic" in printed
    assert "fold 6" not in printed


def test_means_are_smoothed_over_neighbours():
    assert_allclose(smoothed(np.array([1.0, 0.0, 4.0])), [2 / 3, 1.25, 8 / 3])
    assert_allclose(smoothed(np.array([np.nan, 2.0, 4.0])), [np.nan, 8 / 3, 10 / 3])


def test_the_first_rows_of_an_order_have_the_shares_of_the_classes():
    y = np.arange(1000) < 100
    order = stratified_order(
        TrainingRows(np.zeros((1000, 1)), y, None, None), np.random.default_rng(0)
    )
    assert sorted(order) == list(range(1000))
    for n in (20, 100, 500):
        assert abs(y[order[:n]].sum() - n / 10) <= 1
