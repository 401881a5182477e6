"""The sentence on the selection, and the learning curve."""

import copy
import gc
import pickle
import re
import weakref

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from forerank import Ranker
from forerank.metrics.registry import measure_named
from forerank.selection.search import Search
from forerank.selection.summary import reason
from forerank.selection.training_rows import TrainingRows


class TestReason:
    """The sentence on the choice, from results made up for it."""

    @staticmethod
    def reason(data, selected, other, *, folds=5, repeats=1):
        X, y = data(100)
        search = Search(
            Ranker(methods=["pairwise-logistic", "pointwise-logistic"], cv=folds, random_state=0),
            measure_named("auc"), np.array([1.0, 0.1, 0.01]), TrainingRows(X, y, None, None), False,
        )  # fmt: skip
        noise = 0.01 * np.random.default_rng(0).standard_normal((folds * repeats, 1))
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

    def test_a_runner_up_of_fewer_folds_is_compared_on_these(self, data):
        # Lower in all five folds of a search that repeats them, but not than the mean of all.
        of_penalties = np.array([-0.2, 0.0, -0.2])
        first = np.repeat([0.95, 0.9], 5)[:, None] + of_penalties
        second = np.repeat([0.93, np.nan], 5)[:, None] + of_penalties
        text = self.reason(data, first, second, repeats=2)
        assert "mean AUC 0.9250 in 10 folds" in text
        found = re.search(r"logistic reached (0\.\d+) against (0\.\d+) in 5 of them\.", text)
        assert [float(each) for each in found.groups()] == pytest.approx([0.93, 0.95], abs=0.01)

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

    @staticmethod
    def small(**options):
        """A fitted ranker, and a weak reference to its rows."""
        rng = np.random.default_rng(0)
        X = rng.standard_normal((300, 4))
        y = X[:, 0] + rng.standard_normal(300) > 0.0
        options = {"methods": ["pointwise-logistic"], "alphas": 3, "random_state": 0} | options
        return Ranker(**options).fit(X, y), weakref.ref(X)

    def test_a_copy_and_a_file_have_the_curve_instead_of_the_rows(self):
        expected = self.small()[0].learning_curve_
        for copied in (copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))):
            ranker, rows = self.small()
            assert rows() is not None
            assert copied(ranker).learning_curve_ == expected
            assert ranker.learning_curve_ == expected
            assert rows() is None
        assert not hasattr(clone(ranker), "learning_curve_")

    def test_rows_are_kept_as_long_as_the_ranker_at_most(self):
        gc.disable()
        try:
            ranker, rows = self.small()
            del ranker
            assert rows() is None
        finally:
            gc.enable()

    def test_it_is_that_of_the_parameters_of_the_fit(self):
        changed = self.small()[0].set_params(time_budget=1e-9, metric="ap", n_jobs=2, scale=False)
        assert changed.learning_curve_ == self.small()[0].learning_curve_

    def test_of_a_second_fit(self, data):
        ranker = self.small()[0]
        first = ranker.learning_curve_
        second = ranker.fit(*data(400)).learning_curve_
        assert second["rows"] == [80, 160, 320] != first["rows"]

    def test_a_ranker_that_is_not_fitted_has_none(self):
        with pytest.raises(AttributeError, match="not fitted; call fit first"):
            Ranker().learning_curve_  # noqa: B018

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
