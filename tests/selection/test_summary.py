"""The sentence on the selection, and the learning curve."""

import numpy as np
from numpy.testing import assert_allclose

from forerank import Ranker
from forerank.metrics.registry import measure_named
from forerank.selection.search import Search
from forerank.selection.summary import reason
from forerank.selection.training_rows import TrainingRows


class TestReason:
    """The sentence on the choice, from results made up for it."""

    @staticmethod
    def reason(data, selected, other, *, folds=5):
        X, y = data(100)
        search = Search(
            Ranker(methods=["pairwise-logistic", "pointwise-logistic"], cv=folds, random_state=0),
            measure_named("auc"), np.array([1.0, 0.1, 0.01]), TrainingRows(X, y, None, None), False,
        )  # fmt: skip
        noise = 0.01 * np.random.default_rng(0).standard_normal((folds, 1))
        for candidate, means in zip(search.candidates, (selected, other), strict=True):
            wiggle = 0.0 if candidate is search.candidates[0] else 0.2 * np.roll(noise, 1)
            candidate.results = np.asarray(means) + noise - noise.mean() + wiggle - np.mean(wiggle)
        best, place = search.best()
        assert best is search.candidates[0]
        return reason(search, best, place)

    def test_a_runner_up_with_a_higher_single_mean_is_not_called_next(self, data):
        # The second one is averaged with its neighbours, which its folds do not show to differ.
        wiggle = np.array([[0.0, 0.02, -0.02]]) * np.array([[1], [-1], [2], [-1], [-1]])
        text = self.reason(data, [0.9, 0.996, 0.9], np.array([0.984, 0.997, 0.986]) + wiggle)
        assert text == (
            "Selected: pairwise-logistic (alpha 0.1), mean AUC 0.9960 in 5 folds; "
            "pointwise-logistic reached 0.9970 at its best single penalty, not significantly "
            "different."
        )
        # A paired difference that is significant, beside neighbours whose values are noise.
        wiggle = np.array([[1.0, 0.0, 1.0]]) * np.array([[1], [-1], [1], [-1], [0]])
        text = self.reason(data, [0.9, 0.9, 0.9], np.array([0.5, 0.93, 0.5]) + wiggle)
        assert (
            "pointwise-logistic reached 0.9300 at its best single penalty, but less at the "
            "neighbouring penalties." in text
        )

    def test_a_runner_up_behind(self, data):
        assert "; pointwise-logistic reached 0.9940, not significantly different." in self.reason(
            data, [0.9, 0.995, 0.9], [0.9, 0.994, 0.9]
        )
        assert "; pointwise-logistic reached 0.8000." in self.reason(
            data, [0.9, 0.995, 0.9], [0.7, 0.8, 0.7]
        )

    def test_singular(self, data):
        X, y = data(100)
        folds = [(np.arange(50), np.arange(50, 100))]
        text = (
            Ranker(methods=["pairwise-logistic", "pointwise-logistic"], alphas=2, cv=folds)
            .fit(X, y)
            .reason_
        )
        assert "in 1 fold;" in text
        assert "one fold does not show whether the difference is significant." in text


class TestMoreRows:
    def test_more_rows_help_where_there_are_few(self, data):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((400, 60))
        y = X @ rng.standard_normal(60) + 0.5 * rng.standard_normal(400) > 0
        curve = Ranker(methods=["pointwise-logistic"], random_state=0).fit(X, y).learning_curve_
        assert curve["more_data_helps"]
        assert "more data would help" in curve["sentence"]
        assert curve["rows"] == [80, 160, 320]
        assert curve["scores"] == sorted(curve["scores"])
        assert len(curve["std"]) == 3
        assert min(curve["std"]) > 0.0

    def test_the_spread_is_that_of_the_folds(self, data):
        X, y = data(300)
        ranker = Ranker(methods=["pointwise-logistic"], alphas=[0.1], random_state=0).fit(X, y)
        folds = [ranker.cv_results_[f"split{k}_test_score"][0] for k in range(5)]
        assert_allclose(ranker.learning_curve_["std"][-1], np.std(folds, ddof=1))
        assert_allclose(ranker.learning_curve_["scores"][-1], np.mean(folds))

    def test_more_rows_do_not_help_where_there_are_enough(self, data):
        X, y = data(20_000, 2)
        curve = (
            Ranker(methods=["pointwise-logistic"], alphas=3, random_state=0)
            .fit(X, y)
            .learning_curve_
        )
        assert not curve["more_data_helps"]


def test_of_equal_penalties_the_largest_is_selected():
    """If every penalty reaches the highest possible value, none beyond the largest is tried."""
    X = np.arange(100.0)[:, None]
    ranker = Ranker(
        methods=["pointwise-logistic", "pairwise-logistic"], alphas=5, random_state=0
    ).fit(X, X[:, 0] >= 60)
    assert ranker.best_score_ == 1.0
    assert ranker.best_alpha_ == ranker.cv_results_["alpha"].max() == 10.0
    left_out = dict(zip(ranker.cv_results_["method"], ranker.cv_results_["left_out"], strict=True))
    assert left_out["pairwise-logistic"] == "not better than pointwise-logistic on fold 1"
    assert "beyond" not in ranker.reason_
