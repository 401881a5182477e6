"""Pairs and points at once, exactly: the minimum, its ends, its path, and the sampled fits."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from forerank import (
    ActiveSamplingRanker,
    CombinedRanker,
    CombinedSGDRanker,
    PairwiseRanker,
    PointwiseRanker,
)
from forerank.losses import get_loss
from linear_rankers import LOSSES
from tables import noisy_rows


def more_pairs(estimator):
    if estimator.gamma != "uniform":
        return {}
    reason = "two rows have more pairs than one of weight two, and with them a larger gamma"
    kinds = "dense", "sparse"
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in kinds}


@parametrize_with_checks(
    [CombinedRanker("hinge"), CombinedRanker(), CombinedRanker(gamma="uniform")],
    expected_failed_checks=more_pairs,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def grouped_rows(n=200):
    X, y = noisy_rows(n=n)
    rng = np.random.default_rng(3)
    weight = rng.random(n)
    weight[:4] = 0.0
    return X + 0.5, y, weight, rng.integers(4, size=n)


def definition(X, y, weight, qid, loss, gamma, alpha, of_class):
    """The objective as a function of weights and constant, pair by pair."""
    loss = get_loss(loss)
    i, j = np.nonzero((y[:, None] > y) & (qid[:, None] == qid))
    sign, point = np.where(y == 1, 1.0, -1.0), weight * np.where(y == 1, *of_class)

    def value(v):
        s = X @ v[:-1]
        pairs = np.average(loss.value(s[i] - s[j]), weights=weight[i] * weight[j])
        points = np.average(loss.value(sign * (s + v[-1])), weights=point)
        return gamma * pairs + (1 - gamma) * points + 0.5 * alpha * v[:-1] @ v[:-1]

    return value


class TestMinimum:
    @pytest.mark.parametrize("fit_intercept", [False, True])
    @pytest.mark.parametrize("gamma", [0.2, "uniform"])
    @pytest.mark.parametrize("loss", LOSSES)
    def test_definition_with_weights_and_groups(self, loss, gamma, fit_intercept):
        X, y, weight, qid = grouped_rows()
        ranker = CombinedRanker(
            loss,
            gamma=gamma,
            alpha=1e-2,
            class_weight={0: 1.0, 1: 3.0},
            fit_intercept=fit_intercept,
            tol=1e-6,
            max_iter=2000,
        ).fit(X, y, sample_weight=weight, qid=qid)
        assert ranker.optimality_ <= 1e-6
        used = weight > 0
        pair = (y[:, None] > y) & (qid[:, None] == qid) & used[:, None] & used
        share = pair.sum() / (pair.sum() + used.sum()) if gamma == "uniform" else gamma
        assert ranker.gamma_ == pytest.approx(share)
        value = definition(X, y, weight, qid, loss, share, 1e-2, (3.0, 1.0))
        here = np.append(ranker.coef_[0], ranker.intercept_)
        assert fit_intercept or ranker.intercept_[0] == 0.0
        assert value(here) == pytest.approx(ranker.objective_, rel=1e-10)
        # The minimum of the definition from elsewhere, which for the hinge is only an upper bound.
        fixed = {} if fit_intercept else {"bounds": [(None, None)] * 5 + [(0.0, 0.0)]}
        other = minimize(value, 0.9 * here, method="L-BFGS-B", **fixed).fun
        assert ranker.objective_ <= other * (1 + 2e-6)
        assert loss == "hinge" or other == pytest.approx(ranker.objective_, rel=1e-5)

    @pytest.mark.parametrize("loss", LOSSES)
    def test_gamma_one_is_the_pairwise_ranker(self, loss):
        X, y, weight, qid = grouped_rows()
        given = {"sample_weight": weight, "qid": qid}
        combined = CombinedRanker(loss, gamma=1.0).fit(X, y, **given)
        pairwise = PairwiseRanker(loss).fit(X, y, **given)
        assert_array_equal(combined.coef_, pairwise.coef_)
        assert_array_equal(combined.intercept_, pairwise.intercept_)
        assert combined.objective_ == pairwise.objective_

    @pytest.mark.parametrize("fit_intercept", [False, True])
    @pytest.mark.parametrize("loss", LOSSES)
    def test_gamma_zero_is_the_pointwise_ranker(self, loss, fit_intercept):
        X, y, weight, _ = grouped_rows()
        same = {"class_weight": "balanced", "fit_intercept": fit_intercept}
        combined = CombinedRanker(loss, gamma=0.0, **same).fit(X, y, sample_weight=weight)
        pointwise = PointwiseRanker(loss, **same).fit(X, y, sample_weight=weight)
        assert_array_equal(combined.coef_, pointwise.coef_)
        assert_array_equal(combined.intercept_, pointwise.intercept_)
        assert combined.objective_ == pointwise.objective_

    def test_equal_rows_are_merged(self):
        X, y, _, qid = grouped_rows()
        many = np.repeat(np.arange(200), 3)
        for gamma in (0.4, "uniform"):
            ranker = CombinedRanker("logistic", gamma=gamma, tol=1e-9)
            repeated = clone(ranker).fit(X[many], y[many], qid=qid[many])
            once = ranker.set_params(gamma=repeated.gamma_).fit(X, y, qid=qid)
            assert_allclose(repeated.coef_, once.coef_, rtol=1e-6)
        pairs = np.bincount(qid[y == 1]) @ np.bincount(qid[y == 0])
        assert repeated.gamma_ == pytest.approx(9 * pairs / (9 * pairs + 600))

    def test_too_few_iterations_are_reported(self):
        X, y = noisy_rows()
        with pytest.warns(ConvergenceWarning, match="max_iter=1"):
            ranker = CombinedRanker("hinge", max_iter=1, tol=1e-9).fit(X, y)
        exact = CombinedRanker("hinge", tol=1e-6, max_iter=2000).fit(X, y)
        assert ranker.objective_ - ranker.gap_ <= exact.objective_ <= ranker.objective_


class TestPaths:
    @pytest.mark.parametrize("fit_intercept", [False, True])
    @pytest.mark.parametrize("loss", LOSSES)
    def test_gammas(self, loss, fit_intercept):
        X, y, weight, qid = grouped_rows()
        ranker = CombinedRanker(loss, alpha=1e-2, tol=1e-5, fit_intercept=fit_intercept)
        path = ranker.gamma_path(X, y, [1.0, 0.3, 0.0], sample_weight=weight, qid=qid)
        assert_array_equal(path.gammas, [0.0, 0.3, 1.0])
        assert not hasattr(ranker, "coef_")
        assert ranker.gamma == 0.5
        for k, gamma in enumerate(path.gammas):
            groups = {"qid": qid} if gamma > 0 else {}
            alone = clone(ranker).set_params(gamma=float(gamma))
            alone.fit(X, y, sample_weight=weight, **groups)
            assert path.objective[k] == pytest.approx(alone.objective_, rel=1e-4)
            assert_allclose(path.coef[k], alone.coef_[0], rtol=0.05, atol=0.05)
        assert np.all(path.optimality <= 1e-5)
        scores = path.decision_function(X)
        assert_allclose(scores[:, -1], X @ path.coef[-1] + path.intercept[-1])

    def test_number_of_gammas(self):
        X, y = noisy_rows()
        path = CombinedRanker("logistic").gamma_path(X, y, 5)
        assert_allclose(path.gammas, [0.0, 0.25, 0.5, 0.75, 1.0])
        # Each fit starts from the last.
        assert path.n_iter[1:].sum() <= 4 * path.n_iter[0]

    @pytest.mark.parametrize("gammas", [1, [], [0.5, 2.0], ["uniform"]])
    def test_refused(self, gammas):
        X, y = noisy_rows()
        with pytest.raises(ValueError, match="gamma"):
            CombinedRanker().gamma_path(X, y, gammas)

    @pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge"])
    def test_alphas(self, loss):
        X, y = noisy_rows()
        ranker = CombinedRanker(loss, gamma=0.3, tol=1e-5)
        path = ranker.alpha_path(X, y, [1e-1, 1e-3])
        for k, alpha in enumerate(path.alphas):
            alone = clone(ranker).set_params(alpha=float(alpha)).fit(X, y)
            assert path.objective[k] == pytest.approx(alone.objective_, rel=1e-4)


class TestSampledFits:
    """Samples of all candidates have the same minimum."""

    @pytest.mark.parametrize("fit_intercept", [False, True])
    @pytest.mark.parametrize("grouped", [False, True])
    @pytest.mark.parametrize("gamma", [0.1, 0.5, 0.9, "uniform"])
    def test_active_sampling_of_all_candidates(self, gamma, grouped, fit_intercept):
        X, y, weight, qid = grouped_rows(n=90)
        given = {"sample_weight": weight, "qid": qid} if grouped else {}
        same = {"gamma": gamma, "alpha": 1e-2, "class_weight": "balanced"}
        same["fit_intercept"] = fit_intercept
        exact = CombinedRanker("hinge", tol=1e-7, max_iter=2000, **same).fit(X, y, **given)
        sampled = ActiveSamplingRanker(
            step=500, tol=1e-8, max_iter=100_000, random_state=0, **same
        ).fit(X, y, **given)
        assert sampled.gamma_ == pytest.approx(exact.gamma_)
        assert sampled.objective_ == pytest.approx(exact.objective_, rel=1e-6)
        assert_allclose(sampled.coef_, exact.coef_, atol=1e-3)

    @pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
    def test_descent_comes_close(self, loss):
        X, y, weight, qid = grouped_rows()
        given = {"sample_weight": weight, "qid": qid}
        exact = CombinedRanker(loss, alpha=1e-2, fit_intercept=False, tol=1e-5)
        exact.fit(X, y, **given)
        descent = CombinedSGDRanker(
            loss, pair_loss=loss, alpha=1e-2, fit_intercept=False, random_state=0
        ).fit(X, y, **given)
        assert exact.objective_ <= descent.objective_ * (1 + 1e-5)
        assert descent.objective_ < 1.01 * exact.objective_


class TestRefusals:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"gamma": 1.5}, "gamma must be a number from 0 .points only. to 1 .pairs only"),
            ({"gamma": "half"}, "got 'half'"),
            ({"loss": "erfc"}, "loss must be one of"),
            ({"loss": "hinge", "alpha": 0.0}, "alpha must be a number > 0"),
            ({"class_weight": "even"}, "class_weight must be a dict"),
        ],
    )
    def test_parameters(self, parameters, message):
        X, y = noisy_rows()
        with pytest.raises(ValueError, match=message):
            CombinedRanker(**parameters).fit(X, y)

    def test_data(self):
        X, y = noisy_rows()
        with pytest.raises(ValueError, match="gamma=0 uses no pairs"):
            CombinedRanker(gamma=0.0).fit(X, y, qid=np.zeros(300))
        with pytest.raises(ValueError, match="no group of qid has rows of both classes"):
            CombinedRanker().fit(X, y, qid=y)
        with pytest.raises(ValueError, match="Only binary classification"):
            CombinedRanker().fit(X, np.arange(300) % 3)
        with pytest.warns(UserWarning, match="in no pair, only points"):
            CombinedRanker().fit(X, y, qid=np.where((y == 1) & (np.arange(300) < 20), "a", "b"))

    def test_metadata_routing(self):
        X, y, weight, qid = grouped_rows()
        direct = CombinedRanker().fit(X, y, sample_weight=weight, qid=qid)
        with sklearn.config_context(enable_metadata_routing=True):
            ranker = CombinedRanker().set_fit_request(sample_weight=True, qid=True)
            pipe = make_pipeline(FunctionTransformer(), ranker)
            pipe.fit(X, y, sample_weight=weight, qid=qid)
        assert_array_equal(pipe[-1].coef_, direct.coef_)
