"""Probabilities of a ranker: a rising function of its scores, right about rows it has not seen."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import forerank
from forerank import PairwiseRanker, PointwiseRanker, Ranker, TopPush
from forerank.data.datasets import BipartiteModel
from forerank.selection.calibration import fitted_sigmoid, sigmoid

OPTIONS = {"families": "linear", "alphas": 3, "cv": 3, "random_state": 0}


def data(n=1000, seed=0, offset=-1.0):
    """Rows, labels and the probabilities that these were drawn with."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4)) * np.array([1.0, 10.0, 0.1, 3.0])
    p = expit(1.5 * X[:, 0] - 0.1 * X[:, 1] + offset)
    return X, rng.uniform(size=n) < p, p


# Rows that are repeated fall into other folds than rows with weights.
EQUIVALENCE = {
    f"check_sample_weight_equivalence_on_{kind}_data": "folds of repeated rows are other folds"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [Ranker(families="linear", alphas=2, cv=2, calibrate=True, random_state=0)],
    expected_failed_checks=lambda estimator: EQUIVALENCE,
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)


class TestProbabilities:
    X, y, p = data()
    ranker = Ranker(calibrate=True, **OPTIONS).fit(X, y)

    def test_they_are_probabilities_and_rise_with_the_score(self):
        probability = self.ranker.predict_proba(self.X)
        assert probability.shape == (self.y.size, 2)
        assert probability.min() >= 0.0
        assert probability.max() <= 1.0
        assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-15)
        order = np.argsort(self.ranker.decision_function(self.X))
        assert (np.diff(probability[order, 1]) >= 0.0).all()
        assert (
            np.unique(probability[:, 1]).size
            == np.unique(self.ranker.decision_function(self.X)).size
        )

    def test_the_ranking_is_that_without_them(self):
        plain = Ranker(**OPTIONS).fit(self.X, self.y)
        assert_array_equal(plain.rank(self.X), self.ranker.rank(self.X))
        assert_array_equal(plain.coef_, self.ranker.coef_)

    def test_classes_are_the_more_probable_ones(self):
        probability = self.ranker.predict_proba(self.X)
        expected = self.ranker.classes_[probability.argmax(axis=1)]
        assert_array_equal(self.ranker.predict(self.X), expected)
        assert_array_equal(self.ranker.decision_function(self.X) > 0.0, probability[:, 1] > 0.5)

    def test_they_are_near_the_truth(self):
        X, y, p = data(20_000, seed=1)
        assert np.abs(self.ranker.predict_proba(X)[:, 1] - p).mean() < 0.02
        assert log_loss(y, self.ranker.predict_proba(X)[:, 1]) < log_loss(y, p) + 0.005

    def test_they_are_those_of_scikit_learn_on_the_same_folds(self):
        folds = StratifiedKFold(3, shuffle=True, random_state=5)
        ranker = Ranker(methods=["pairwise-logistic"], alphas=[0.01], cv=folds, calibrate=True).fit(
            self.X, self.y
        )
        alone = make_pipeline(StandardScaler(), PairwiseRanker("logistic", alpha=0.01))
        peer = CalibratedClassifierCV(alone, ensemble=False, cv=folds).fit(self.X, self.y)
        assert_allclose(ranker.predict_proba(self.X), peer.predict_proba(self.X), atol=1e-4)

    def test_copies_and_files(self):
        again = pickle.loads(pickle.dumps(self.ranker))
        assert_array_equal(again.predict_proba(self.X), self.ranker.predict_proba(self.X))
        assert clone(self.ranker).calibrate
        with pytest.raises(NotFittedError):
            clone(self.ranker).predict_proba(self.X)

    def test_probabilities_follow_a_refit(self):
        X, y, _ = data(2000, seed=3, offset=1.0)
        ranker = clone(self.ranker).fit(self.X, self.y).refit(X, y)
        alone = (
            clone(self.ranker)
            .set_params(methods=[ranker.best_method_], alphas=[ranker.best_alpha_])
            .fit(X, y)
        )
        assert_allclose(ranker.predict_proba(X), alone.predict_proba(X), atol=1e-6)
        assert abs(ranker.predict_proba(X)[:, 1].mean() - y.mean()) < 0.01

    def test_the_same_seed_gives_the_same_bytes(self):
        again = clone(self.ranker).set_params(n_jobs=2).fit(self.X, self.y)
        assert_array_equal(again.calibration_, self.ranker.calibration_)

    def test_many_rows_are_calibrated_on_some(self):
        ranker = clone(self.ranker).set_params(search_rows=400).fit(self.X, self.y)
        assert np.abs(ranker.predict_proba(self.X)[:, 1] - self.p).mean() < 0.05

    @pytest.mark.parametrize("kind", ["sparse", "map", "average precision"])
    def test_other_rows_and_methods(self, kind):
        X, y, p, options = self.X, self.y, self.p, {}
        if kind == "map":
            p = expit((X[:, :2] ** 2 / [1.0, 100.0]).sum(axis=1) - 2.0)
            X, y, options = (
                X[:, :2],
                np.random.default_rng(0).uniform(size=y.size) < p,
                {"maps": ["quadratic"]},
            )
        elif kind == "sparse":
            X = sp.csr_matrix(X)
        else:
            options = {"methods": ["average-precision-hinge"], "alphas": [1e-3]}
        ranker = clone(self.ranker).set_params(**options).fit(X, y)
        probability = ranker.predict_proba(X)[:, 1]
        assert hasattr(ranker, "coef_") == (kind != "map")
        assert np.abs(probability - p).mean() < 0.1
        assert_array_equal(ranker.predict(X), probability > 0.5)
        assert_allclose(
            ranker.best_estimator_.decision_function(X), ranker.decision_function(X), atol=1e-9
        )

    def test_labels_as_words(self):
        ranker = clone(self.ranker).fit(self.X, np.where(self.y, "yes", "no"))
        assert_array_equal(ranker.predict_proba(self.X), self.ranker.predict_proba(self.X))


@pytest.mark.parametrize("prior", [0.5, 0.1])
def test_a_problem_with_known_probabilities(prior):
    model = BipartiteModel.draw(prior=prior, bayes_risk=0.2, n_features=10, random_state=0)
    X, y, _ = model.sample(3000, 1)
    new, truth, p = model.sample(20_000, 2)
    ranker = Ranker(calibrate=True, **OPTIONS).fit(X, y)
    found = ranker.predict_proba(new)[:, 1]
    # The same model in every fold: those of other methods have scores of other scales.
    same = Ranker(**OPTIONS).set_params(methods=[ranker.best_method_], alphas=[ranker.best_alpha_])
    peer = CalibratedClassifierCV(same, ensemble=False, cv=3).fit(X, y).predict_proba(new)[:, 1]
    # The truth is a step, of which the sigmoid of a linear score rounds off the corners, here and
    # there alike.
    assert log_loss(truth, found) < log_loss(truth, peer) + 1e-3
    assert log_loss(truth, found) < log_loss(truth, p) + 0.08
    assert abs(found.mean() - p.mean()) < 0.02
    assert worst_bin(found, p) < worst_bin(peer, p) + 0.01


def worst_bin(found, p, bins=10):
    """The largest difference of mean probability and truth among rows of about the same
    probability.
    """
    parts = np.array_split(np.argsort(found), bins)
    return max(abs(found[rows].mean() - p[rows].mean()) for rows in parts)


class TestWeights:
    def test_weights_count(self):
        X, y, _ = data(4000)
        weight = np.where(y, 3.0, 1.0)
        ranker = Ranker(calibrate=True, **OPTIONS).fit(X, y, sample_weight=weight)
        share = np.average(y, weights=weight)
        assert abs(np.average(ranker.predict_proba(X)[:, 1], weights=weight) - share) < 0.01
        assert abs(share - y.mean()) > 0.1

    def test_their_unit_does_not_count(self):
        X, y, _ = data(500)
        weight = np.random.default_rng(0).uniform(0.5, 2.0, y.size)
        fits = [
            Ranker(calibrate=True, **OPTIONS).fit(X, y, sample_weight=unit * weight)
            for unit in (1.0, 1024.0)
        ]
        assert_allclose(fits[0].predict_proba(X), fits[1].predict_proba(X), atol=1e-6)

    def test_rows_of_no_weight_do_not_count(self):
        X, y, _ = data(500)
        more, labels = np.vstack([X, X[:50]]), np.concatenate([y, ~y[:50]])
        weight = np.concatenate([np.ones(500), np.zeros(50)])
        options = OPTIONS | {"methods": ["pointwise-logistic"], "alphas": [0.01], "calibrate": True}
        alone, other = (
            Ranker(**options).fit(X, y),
            Ranker(**options).fit(more, labels, sample_weight=weight),
        )
        assert_allclose(alone.predict_proba(X), other.predict_proba(X), atol=1e-5)

    def test_the_sigmoid_takes_weights_as_repetitions(self):
        rng = np.random.default_rng(0)
        scores, times = rng.standard_normal(300), rng.integers(1, 4, 300)
        positive = rng.uniform(size=300) < expit(2 * scores)
        weighted = sigmoid(scores, fitted_sigmoid(scores, positive, times.astype(float)))
        repeated = np.repeat(np.arange(300), times)
        spelled_out = sigmoid(scores, fitted_sigmoid(scores[repeated], positive[repeated], None))
        assert_allclose(weighted, spelled_out, atol=5e-3)  # targets know how many rows there are


class TestSigmoid:
    def test_nothing_improves_on_it(self):
        rng = np.random.default_rng(0)
        scores = 1e6 + 1e3 * rng.standard_normal(400)
        positive = rng.uniform(size=400) < expit((scores - 1e6) / 500)
        best = fitted_sigmoid(scores, positive, None)
        n = positive.sum(), (~positive).sum()
        target = np.where(positive, (n[0] + 1) / (n[0] + 2), 1 / (n[1] + 2))

        def loss(slope, offset):
            p = sigmoid(scores, (slope, offset))
            return -np.mean(target * np.log(p) + (1 - target) * np.log(1 - p))

        for step in (0.99, 1.01):
            assert loss(*best) < loss(best[0] * step, best[1] + best[0] * 1e6 * (1 - step))
            assert loss(*best) < loss(best[0], best[1] + 0.01 * (step - 1))

    def test_separated_classes_have_finite_slopes(self):
        scores = np.concatenate([np.full(10, -1.0), np.full(40, 1.0)])
        slope, offset = fitted_sigmoid(scores, scores > 0, None)
        assert_allclose(
            sigmoid(np.array([-1.0, 1.0]), (slope, offset)), [1 / 12, 41 / 42], atol=1e-6
        )

    @pytest.mark.parametrize("scores", [np.zeros(50), -np.arange(50.0)])
    def test_scores_that_say_nothing_give_the_share(self, scores):
        positive = np.arange(50) >= 40
        slope, offset = fitted_sigmoid(scores, positive, None)
        assert slope == 0.0
        assert abs(expit(offset) - 0.2) < 0.03

    def test_a_ranker_that_says_nothing_warns(self):
        X = np.zeros((60, 2))
        y = np.arange(60) % 3 == 0
        with (
            pytest.warns(UserWarning, match="do not separate the classes"),
            pytest.warns(UserWarning, match="the same score|no better weights"),
        ):
            ranker = Ranker(calibrate=True, **OPTIONS).fit(X, y)
        assert_allclose(ranker.predict_proba(X)[:, 1], y.mean(), atol=0.03)


class TestWithout:
    @pytest.mark.parametrize(
        "name",
        [
            name
            for name in forerank.estimators.__all__
            if hasattr(getattr(forerank.estimators, name), "rank") and name != "BoostedRanker"
        ],
    )
    def test_the_remedy_is_in_the_error(self, name):
        ranker = getattr(forerank.estimators, name)()
        assert not hasattr(ranker, "predict_proba")
        with pytest.raises(AttributeError, match="calibrate=True"):
            ranker.predict_proba([[0.0]])

    def test_the_remedy_works(self):
        X, y, p = data()
        with pytest.raises(
            AttributeError,
            match=r"CalibratedClassifierCV\(PointwiseRanker\(...\), ensemble=False\)",
        ):
            PointwiseRanker().fit(X, y).predict_proba(X)
        calibrated = CalibratedClassifierCV(PointwiseRanker(), ensemble=False).fit(X, y)
        assert np.abs(calibrated.predict_proba(X)[:, 1] - p).mean() < 0.03
        alone = PointwiseRanker().fit(X, y)
        order = np.argsort(alone.decision_function(X))
        assert (np.diff(calibrated.predict_proba(X)[order, 1]) >= 0.0).all()

    def test_it_works_inside_the_tools_of_scikit_learn(self):
        X, y, _ = data(300)
        ranker = make_pipeline(StandardScaler(), Ranker(calibrate=True, **OPTIONS))
        assert hasattr(ranker, "predict_proba")
        assert not hasattr(make_pipeline(StandardScaler(), TopPush()), "predict_proba")
        assert cross_val_predict(ranker, X, y, method="predict_proba", cv=2).shape == (300, 2)

    @pytest.mark.parametrize(
        ("options", "rows", "message"),
        [
            ({}, {"qid": np.arange(60) % 5}, "not comparable between groups"),
            ({"metric": "wmw"}, {"y": np.arange(60) % 3}, "needs two classes, and y has 3"),
            ({}, {"y": np.arange(60) == 7}, "at least two rows of each class"),
        ],
    )
    def test_what_cannot_be_calibrated_is_said(self, options, rows, message):
        X, y, _ = data(60)
        with pytest.raises(ValueError, match=message):
            Ranker(calibrate=True, **OPTIONS | options).fit(X, **{"y": y} | rows)
