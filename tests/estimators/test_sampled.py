"""Rankers that sample: exact solutions on few rows, and the correction of the bias of sampling."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.svm import LinearSVC

from forerank import (
    ActiveSamplingRanker,
    CombinedSGDRanker,
    PairwiseRanker,
    PointwiseRanker,
)
from forerank.sampling import STRATEGIES
from tables import noisy_rows


class TestExactSolutions:
    @pytest.mark.parametrize("strategy", STRATEGIES)
    @pytest.mark.parametrize("weighted", [False, True])
    def test_all_pairs_give_the_pairwise_solution(self, strategy, weighted):
        X, y = noisy_rows(n=80)
        weight = np.random.default_rng(1).random(80) if weighted else None
        exact = PairwiseRanker("hinge", alpha=1e-2, tol=1e-7, max_iter=5000).fit(
            X, y, sample_weight=weight
        )
        n_pairs = int(np.sum(y == 1) * np.sum(y == 0))
        sampled = ActiveSamplingRanker(
            strategy,
            alpha=1e-2,
            step=97,
            budget=n_pairs,
            tol=1e-7,
            max_iter=100_000,
            random_state=0,
        ).fit(X, y, sample_weight=weight)
        assert_allclose(sampled.coef_, exact.coef_, atol=1e-3)
        assert sampled.objective_ == pytest.approx(exact.objective_, rel=1e-6)
        assert_allclose(sampled.intercept_, exact.intercept_, atol=2e-3)
        assert len({*map(tuple, sampled.pool_.tolist())}) == n_pairs

    @pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 5.0}])
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("strategy", ["random", "soft-correct", "hard-close"])
    def test_gamma_zero_is_the_weighted_support_vector_machine(
        self, class_weight, weighted, strategy
    ):
        X, y = noisy_rows(n=200)
        weight = np.random.default_rng(1).random(200) if weighted else np.ones(200)
        weight[:5] = 1.0 - weighted  # some rows of weight zero
        fitted = ActiveSamplingRanker(
            strategy,
            gamma=0.0,
            alpha=1e-2,
            class_weight=class_weight,
            tol=1e-9,
            max_iter=100_000,
            random_state=0,
        ).fit(X, y, sample_weight=weight)
        wsvm = PointwiseRanker(
            "hinge",
            alpha=1e-2,
            class_weight=class_weight,
            fit_intercept=False,
            tol=1e-7,
            max_iter=5000,
        ).fit(X, y, sample_weight=weight)
        assert fitted.objective_ == pytest.approx(wsvm.objective_, rel=1e-6)
        assert_allclose(fitted.coef_, wsvm.coef_, atol=1e-3)
        # The peer: C_i = w_i / (alpha sum of weights).
        per_class = {None: [1.0, 1.0], "balanced": 1.0 / np.bincount(y, weights=weight)}.get(
            class_weight if class_weight is None or isinstance(class_weight, str) else "given",
            [1.0, 5.0],
        )
        total = weight * np.asarray(per_class)[y]
        peer = LinearSVC(
            loss="hinge", C=1.0, fit_intercept=False, tol=1e-9, max_iter=1_000_000, random_state=0
        )
        peer.fit(X, y, sample_weight=total / (1e-2 * total.sum()))
        assert_allclose(fitted.coef_, peer.coef_, atol=1e-3)

    @pytest.mark.parametrize("gamma", [0.2, "uniform"])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_pairs_and_points_together(self, gamma, weighted):
        # Equation (5) with all candidates, by its definition.
        X, y = noisy_rows(n=60)
        weight = np.random.default_rng(1).random(60) if weighted else np.ones(60)
        fitted = ActiveSamplingRanker(
            "soft-close",
            gamma=gamma,
            alpha=1e-2,
            class_weight={0: 2.0, 1: 1.0},
            tol=1e-9,
            max_iter=10_000,
            random_state=0,
        ).fit(X, y, sample_weight=weight)
        s = X @ fitted.coef_[0]
        p, q = np.flatnonzero(y), np.flatnonzero(1 - y)
        pairs = np.average(
            np.maximum(1 - (s[p][:, None] - s[q]), 0), weights=np.outer(weight[p], weight[q])
        )
        points = np.average(
            np.maximum(1 - np.where(y, s, -s), 0), weights=weight * np.where(y, 1.0, 2.0)
        )
        g = p.size * q.size / (p.size * q.size + 60) if gamma == "uniform" else gamma
        assert fitted.gamma_ == pytest.approx(g)
        objective = g * pairs + (1 - g) * points + 0.005 * np.sum(fitted.coef_**2)
        assert fitted.objective_ == pytest.approx(objective, rel=1e-6)
        assert fitted.optimality_ <= 1e-9

    def test_descent_comes_close_to_the_minimum(self):
        X, y = noisy_rows()
        for loss in ("hinge", "logistic", "squared"):
            exact = PairwiseRanker(loss, alpha=1e-2).fit(X, y)
            sgd = CombinedSGDRanker(pair_loss=loss, gamma=1.0, alpha=1e-2, random_state=0).fit(X, y)
            assert exact.objective_ <= sgd.objective_ * (1 + 1e-3)
            assert sgd.objective_ < exact.objective_ * 1.01
            points = PointwiseRanker(loss, alpha=1e-2, fit_intercept=False).fit(X, y)
            sgd = CombinedSGDRanker(
                loss, gamma=0.0, alpha=1e-2, fit_intercept=False, random_state=0
            ).fit(X, y)
            assert points.objective_ <= sgd.objective_ * (1 + 1e-3)
            assert sgd.objective_ < points.objective_ * 1.01


class TestBiasCorrection:
    """With a part of the pairs, the sample stands for all of them."""

    @staticmethod
    def fits(bias_correction):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((2000, 8))
        y = X[:, 0] + 0.3 * rng.standard_normal(2000) > 1
        exact = PairwiseRanker("hinge", alpha=1e-2, tol=1e-5).fit(X, y)
        sampled = [
            ActiveSamplingRanker(
                strategy, alpha=1e-2, budget=4000, bias_correction=bias_correction, random_state=0
            ).fit(X, y)
            for strategy in ("random", "soft-close", "soft-correct")
        ]
        return X, y, exact, sampled

    def test_on(self):
        X, y, exact, sampled = self.fits(True)
        for ranker in sampled:
            s = ranker.decision_function(X)
            loss = np.maximum(1 - (s[y][:, None] - s[~y]), 0).mean() + 0.005 * np.sum(
                ranker.coef_**2
            )
            assert exact.objective_ <= loss * (1 + 1e-4)
            assert loss < 1.02 * exact.objective_
            assert ranker.objective_ == pytest.approx(exact.objective_, rel=0.1)
            assert np.linalg.norm(ranker.coef_) == pytest.approx(
                np.linalg.norm(exact.coef_), rel=0.1
            )

    def test_normalized_soft_correct_sees_wrong_pairs_only(self):
        _, _, exact, (random, close, correct) = self.fits("normalized")
        for ranker in (random, close, correct):
            assert ranker.pool_weight_.sum() == pytest.approx(1.0)
        assert close.objective_ == pytest.approx(exact.objective_, rel=0.15)
        assert correct.objective_ > 3.0 * exact.objective_
        assert np.linalg.norm(correct.coef_) > 1.3 * np.linalg.norm(exact.coef_)

    def test_a_numpy_bool_is_a_bool(self):
        X, y = noisy_rows()
        ranker = ActiveSamplingRanker(budget=300, random_state=0)
        numpy_true = clone(ranker).set_params(bias_correction=np.True_).fit(X, y)
        assert_array_equal(numpy_true.pool_weight_, ranker.fit(X, y).pool_weight_)

    def test_off(self):
        _, _, exact, (_, close, correct) = self.fits(False)
        assert_allclose(correct.pool_weight_, 1 / 4000)
        assert close.objective_ > 1.5 * exact.objective_
        assert correct.objective_ > 3.0 * exact.objective_

    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_the_kinds_keep_their_shares_when_all_are_drawn(self, strategy):
        X, y = noisy_rows(n=60)
        for gamma in (0.2, 0.7):
            ranker = ActiveSamplingRanker(strategy, gamma=gamma, random_state=0).fit(X, y)
            pair = (ranker.pool_ >= 0).all(axis=1)
            assert ranker.pool_weight_[pair].sum() == pytest.approx(gamma)
            assert ranker.pool_weight_[~pair].sum() == pytest.approx(1 - gamma)
