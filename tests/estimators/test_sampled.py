"""Rankers that sample: exact solutions on few rows, and the correction of the bias of sampling."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from forerank import (
    ActiveSamplingRanker,
    CombinedRanker,
    CombinedSGDRanker,
    PairwiseRanker,
    PointwiseRanker,
    metrics,
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

    @pytest.mark.parametrize("strategy", ["random", "soft-correct", "hard-close"])
    def test_gamma_zero_is_the_support_vector_machine_with_a_constant(self, strategy):
        X, y = noisy_rows(n=200)
        X += 1.0
        weight = np.random.default_rng(1).random(200)
        same = {"alpha": 1e-2, "class_weight": "balanced"}
        settings = {"tol": 1e-9, "max_iter": 100_000, "random_state": 0}
        fitted = ActiveSamplingRanker(strategy, gamma=0.0, **settings, **same)
        fitted.fit(X, y, sample_weight=weight)
        wsvm = PointwiseRanker("hinge", tol=1e-7, max_iter=5000, **same)
        wsvm.fit(X, y, sample_weight=weight)
        assert fitted.objective_ == pytest.approx(wsvm.objective_, rel=1e-6)
        assert_allclose(fitted.coef_, wsvm.coef_, atol=1e-3)
        assert_allclose(fitted.intercept_, wsvm.intercept_, atol=1e-2)

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
            fit_intercept=False,
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
    @pytest.mark.parametrize("intercept", [False, True])
    def test_pairs_and_points_together(self, gamma, weighted, intercept):
        # Equation (5) with all candidates, by its definition.
        X, y = noisy_rows(n=60)
        weight = np.random.default_rng(1).random(60) if weighted else np.ones(60)
        fitted = ActiveSamplingRanker(
            "soft-close",
            gamma=gamma,
            alpha=1e-2,
            class_weight={0: 2.0, 1: 1.0},
            fit_intercept=intercept,
            tol=1e-9,
            max_iter=10_000,
            random_state=0,
        ).fit(X, y, sample_weight=weight)
        s = X @ fitted.coef_[0]
        p, q = np.flatnonzero(y), np.flatnonzero(1 - y)
        pairs = np.average(
            np.maximum(1 - (s[p][:, None] - s[q]), 0), weights=np.outer(weight[p], weight[q])
        )
        shifted = s + intercept * fitted.intercept_[0]
        points = np.average(
            np.maximum(1 - np.where(y, shifted, -shifted), 0),
            weights=weight * np.where(y, 1.0, 2.0),
        )
        g = p.size * q.size / (p.size * q.size + 60) if gamma == "uniform" else gamma
        assert fitted.gamma_ == pytest.approx(g)
        objective = g * pairs + (1 - g) * points + 0.005 * np.sum(fitted.coef_**2)
        assert fitted.objective_ == pytest.approx(objective, rel=1e-6)
        assert fitted.optimality_ <= 1e-9

    @pytest.mark.parametrize("strategy", ["soft-correct", "hard-close"])
    def test_units_of_the_columns_do_not_prevent_the_certificate(self, strategy):
        # Columns of sizes and means that are far from those of the constant.
        X, y = noisy_rows()
        X = 100.0 + X * [1.0, 0.1, 10.0, 100.0, 1.0]
        same = {"gamma": 0.5, "alpha": 1e-3}
        sampled = ActiveSamplingRanker(strategy, step=2000, budget=21_900, random_state=0, **same)
        sampled.fit(X, y)
        assert sampled.optimality_ <= sampled.tol
        exact = CombinedRanker("hinge", max_iter=2000, **same).fit(X, y)
        assert sampled.objective_ == pytest.approx(exact.objective_, rel=2e-3)

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

    def test_acceptance_gives_late_rounds_more_weight(self):
        # The weights that the paper prints: 1 / p divided by their sum.
        _, _, _, (random, *soft) = self.fits("acceptance")
        assert_allclose(random.pool_weight_, 1 / 4000)
        _, _, _, (_, *normalized) = self.fits("normalized")
        for printed, other in zip(soft, normalized, strict=True):
            assert printed.pool_weight_.sum() == pytest.approx(1.0)
            assert printed.pool_weight_[:1000].sum() < other.pool_weight_[:1000].sum()

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


class TestGroups:
    """Pairs within groups only."""

    @staticmethod
    def rows(n=90, n_groups=6):
        X, y = noisy_rows(n=n)
        rng = np.random.default_rng(2)
        weight = rng.random(n)
        weight[:4] = 0.0
        return X, y, rng.integers(n_groups, size=n), weight

    @pytest.mark.parametrize("strategy", STRATEGIES)
    @pytest.mark.parametrize("weighted", [False, True])
    def test_all_pairs_give_the_pairwise_solution(self, strategy, weighted):
        X, y, qid, weight = self.rows()
        given = {"qid": qid, "sample_weight": weight if weighted else None}
        exact = PairwiseRanker("hinge", alpha=1e-2, tol=1e-7, max_iter=5000).fit(X, y, **given)
        sampled = ActiveSamplingRanker(
            strategy, alpha=1e-2, step=29, tol=1e-7, max_iter=100_000, random_state=0
        ).fit(X, y, **given)
        assert_allclose(sampled.coef_, exact.coef_, atol=1e-3)
        assert sampled.objective_ == pytest.approx(exact.objective_, rel=1e-6)
        assert_array_equal(qid[sampled.pool_[:, 0]], qid[sampled.pool_[:, 1]])

    @pytest.mark.parametrize("gamma", [0.2, "uniform"])
    def test_pairs_and_points_together(self, gamma):
        X, y, qid, weight = self.rows()
        fitted = ActiveSamplingRanker(
            gamma=gamma, alpha=1e-2, tol=1e-9, max_iter=100_000, random_state=0
        ).fit(X, y, qid=qid, sample_weight=weight)
        s = X @ fitted.coef_[0]
        i, j = np.nonzero((y[:, None] > y) & (qid[:, None] == qid) & (weight[:, None] * weight > 0))
        pairs = np.average(np.maximum(1 - (s[i] - s[j]), 0), weights=weight[i] * weight[j])
        s += fitted.intercept_[0]
        points = np.average(np.maximum(1 - np.where(y, s, -s), 0), weights=weight)
        g = i.size / (i.size + 86) if gamma == "uniform" else gamma
        objective = g * pairs + (1 - g) * points + 0.005 * np.sum(fitted.coef_**2)
        assert fitted.gamma_ == pytest.approx(g)
        assert fitted.objective_ == pytest.approx(objective, rel=1e-6)

    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
    def test_descent_comes_close_to_the_minimum(self, loss, weighted):
        X, y, qid, weight = self.rows()
        given = {"qid": qid, "sample_weight": weight if weighted else None}
        exact = PairwiseRanker(loss, alpha=1e-2).fit(X, y, **given)
        sgd = CombinedSGDRanker(pair_loss=loss, gamma=1.0, alpha=1e-2, random_state=0)
        sgd.fit(X, y, **given)
        assert exact.objective_ <= sgd.objective_ * (1 + 1e-3)
        assert sgd.objective_ < exact.objective_ * 1.01

    def test_one_group_is_no_group(self):
        X, y, _, _ = self.rows()
        one = {"qid": np.full(90, "a")}
        for ranker in (ActiveSamplingRanker(s, budget=400, random_state=0) for s in STRATEGIES):
            plain = clone(ranker).fit(X, y)
            assert_array_equal(ranker.fit(X, y, **one).pool_, plain.pool_)

    @pytest.mark.parametrize("ranker", [ActiveSamplingRanker(), CombinedSGDRanker()], ids=repr)
    def test_refused(self, ranker):
        X, y, qid, _ = self.rows()
        with pytest.raises(ValueError, match="gamma=0 uses no pairs"):
            clone(ranker).set_params(gamma=0.0).fit(X, y, qid=qid)
        with pytest.raises(ValueError, match="no group of qid has rows of both classes"):
            ranker.fit(X, y, qid=y)
        with pytest.raises(ValueError, match="qid has 3 values"):
            ranker.fit(X, y, qid=[1, 2, 3])

    def test_groups_without_pairs(self):
        X, y, qid, _ = self.rows()
        qid = np.where(y == 1, qid, np.minimum(qid, 4))
        rows = int(np.sum(qid == 5))
        text = f"1 of 6 qid groups has no pair of different classes; its {rows} rows are "
        with pytest.warns(UserWarning, match=text + "excluded from the fit"):
            ActiveSamplingRanker(budget=200, random_state=0).fit(X, y, qid=qid)
        with pytest.warns(UserWarning, match=text + "in no pair, only points"):
            CombinedSGDRanker(n_steps=200, random_state=0).fit(X, y, qid=qid)

    def test_evaluation_within_groups(self):
        X, y, qid, _ = self.rows()
        ranker = ActiveSamplingRanker(budget=200, random_state=0)
        ranker.fit(X, y, qid=qid, eval_set=(X, y, qid))
        expected = metrics.roc_auc(y, ranker.decision_function(X), qid=qid)
        assert ranker.history_[-1].auc == pytest.approx(expected)
        with pytest.raises(ValueError, match="eval_set must be a tuple"):
            ranker.fit(X, y, eval_set=(X, y, qid, qid))

    @pytest.mark.parametrize(
        "ranker", [ActiveSamplingRanker(budget=300), CombinedSGDRanker(n_steps=3000)], ids=repr
    )
    def test_metadata_routing(self, ranker):
        X, y, qid, _ = self.rows()
        direct = clone(ranker).set_params(random_state=0).fit(X, y, qid=qid)
        with sklearn.config_context(enable_metadata_routing=True):
            last = clone(ranker).set_params(random_state=0).set_fit_request(qid=True)
            routed = make_pipeline(StandardScaler(with_mean=False, with_std=False), last)
            routed.fit(X, y, qid=qid)
        assert_array_equal(routed[-1].coef_, direct.coef_)


class TestWarmStart:
    @pytest.mark.parametrize("average", [False, True])
    def test_descent_goes_on_from_the_weights(self, average):
        # Steps without a loss only shrink the weights, by (t0 + t) / (t0 + t + 1).
        X, y = np.array([[1.0, 0.0], [0.0, 1.0]]), [1, 0]
        ranker = CombinedSGDRanker(
            gamma=1.0, n_steps=1, alpha=0.5, average=average, warm_start=True, random_state=0
        ).fit(X, y)
        ranker.coef_ = np.array([[30.0, -20.0]])
        ranker.fit(X, y)
        # t0 = 1 + typical size / alpha = 3
        assert_allclose(ranker.coef_, [[22.5, -15.0]])

    def test_descent_in_parts_comes_close_to_the_minimum(self):
        X, y = noisy_rows()
        exact = PairwiseRanker("logistic", alpha=1e-2).fit(X, y)
        ranker = CombinedSGDRanker(
            pair_loss="logistic", gamma=1.0, alpha=1e-2, n_steps=5000, warm_start=True
        )
        values = [ranker.set_params(random_state=seed).fit(X, y).objective_ for seed in range(10)]
        assert exact.objective_ <= values[-1] * (1 + 1e-3)
        assert values[-1] < exact.objective_ * 1.01

    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_first_candidates_are_drawn_under_the_weights(self, strategy):
        X, y = noisy_rows()
        ranker = ActiveSamplingRanker(strategy, step=20, budget=20, warm_start=True, random_state=0)
        first = clone(ranker).set_params(warm_start=False).fit(X, y)
        ranker.fit(X, y)
        assert_array_equal(ranker.pool_, first.pool_)
        w = ranker.coef_[0]
        ranker.fit(X, y)
        d = X[ranker.pool_[:, 0]] @ w - X[ranker.pool_[:, 1]] @ w
        every = (X[y == 1] @ w)[:, None] - X[y == 0] @ w
        if strategy == "soft-correct":
            assert np.all(d < 1.0)
        elif strategy == "hard-correct":
            assert_allclose(np.sort(d), np.sort(every, axis=None)[:20])
        elif strategy == "hard-close":
            assert_allclose(np.sort(np.abs(d)), np.sort(np.abs(every), axis=None)[:20])
        else:
            assert (strategy == "random") == np.array_equal(ranker.pool_, first.pool_)

    @pytest.mark.parametrize("ranker", [ActiveSamplingRanker(), CombinedSGDRanker()], ids=repr)
    def test_other_columns_are_refused(self, ranker):
        X, y = noisy_rows(n=60)
        fitted = clone(ranker).set_params(warm_start=True, random_state=0).fit(X, y)
        with pytest.raises(ValueError, match="warm_start=True continues from"):
            fitted.fit(X[:, :-1], y)
