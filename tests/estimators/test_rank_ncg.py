import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from forerank import PairwiseRanker, QuadraticFeatures, RankBoost, RankNCG, RankNet, metrics
from forerank.losses import ErfcLogistic
from forerank.metrics.rank_bounds import log_sigmoid_bound
from forerank.models import Model, load_model, save_model
from tables import graded_rows

SUMS = ("erfc", "exact", "direct")
LOSSES = ("exponential", "hinge", "logistic", "squared", "squared_hinge")

data = partial(graded_rows, classes=3, noise=4)


def expected_failures(ranker):
    """Of a repeated row and a row of weight two, other samples are drawn."""
    if ranker.n_components is None:
        return {}
    check = "check_sample_weight_equivalence_on_{}_data"
    return dict.fromkeys((check.format("dense"), check.format("sparse")), "a sample of the rows")


@parametrize_with_checks(
    [
        RankNCG(),
        RankNCG("exact"),
        RankNCG("direct"),
        RankNCG("exact", kernel="rbf"),
        RankNCG("exact", kernel="poly", degree=2, n_components=10, random_state=0),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class TestRankNCG:
    @pytest.mark.parametrize("sums", SUMS)
    @pytest.mark.parametrize("graph", ["order", "chain", "one-against-rest", [(2, 0), (1, 0)]])
    def test_same_ranking_as_the_exact_newton_fit(self, sums, graph):
        X, y = data()
        qid = np.arange(300) % 4
        exact = PairwiseRanker("logistic", graph=graph, tol=1e-8, alpha=1e-3).fit(X, y, qid=qid)
        fitted = RankNCG(sums, graph=graph, tol=1e-8, alpha=1e-3, eps=1e-9).fit(X, y, qid=qid)
        assert fitted.optimality_ <= 1e-8
        if sums == "erfc":
            cosine = (
                fitted.coef_[0]
                @ exact.coef_[0]
                / np.linalg.norm(fitted.coef_)
                / np.linalg.norm(exact.coef_)
            )
            assert cosine > 0.999
        else:
            assert_allclose(fitted.coef_, exact.coef_, rtol=1e-5, atol=1e-7)
            assert_allclose(fitted.objective_, exact.objective_, rtol=1e-10)
        there = [
            metrics.wmw(y, r.decision_function(X), graph=graph, qid=qid) for r in (fitted, exact)
        ]
        assert abs(there[0] - there[1]) < 0.005

    def test_erfc_solves_its_own_problem(self):
        # Exactly summed, the erfc loss is a convex objective of its own; the fast sums end at its
        # minimum.
        X, y = data(n=3000)
        fitted = RankNCG(graph="order", eps=1e-10, tol=1e-8, alpha=1e-3).fit(X, y)
        s = X @ fitted.coef_[0]
        upper = y[:, None] > y
        pull = ErfcLogistic().slope(s[:, None] - s) * upper / upper.sum()
        gradient = X.T @ (pull.sum(axis=1) - pull.sum(axis=0)) + 1e-3 * fitted.coef_[0]
        assert np.linalg.norm(gradient) < 1e-8

    @pytest.mark.parametrize("eps", [1e-1, 1e-2, 1e-4])
    def test_coarse_sums_end_near_by(self, eps):
        X, y = data(n=2000)
        fine = RankNCG(graph="order").fit(X, y)
        coarse = RankNCG(graph="order", eps=eps).fit(X, y)
        scores = [r.decision_function(X) for r in (fine, coarse)]
        assert abs(metrics.wmw(y, scores[0]) - metrics.wmw(y, scores[1])) < 1e-3

    def test_storage_does_not_matter(self):
        X, y = data()
        X[np.abs(X) < 0.5] = 0.0
        X = X.astype(np.float32).astype(float)
        ranker = RankNCG(graph="order", tol=1e-9, eps=1e-13)
        reference = clone(ranker).fit(X, y).coef_
        for other in (np.asfortranarray(X), sp.csr_array(X), X.astype(np.float32)):
            assert_allclose(clone(ranker).fit(other, y).coef_, reference, rtol=1e-5)

    def test_warm_start_goes_on(self):
        X, y = data()
        ranker = RankNCG(graph="order", warm_start=True, tol=1e-6).fit(X, y)
        assert ranker.n_iter_ > 3
        assert ranker.fit(X, y).n_iter_ == 0

    @pytest.mark.parametrize("sums", SUMS)
    def test_rows_that_are_all_alike_have_nothing_to_learn(self, sums):
        with pytest.warns(UserWarning, match="RankNCG: the optimum gives all rows the same score"):
            fitted = RankNCG(sums).fit(np.full((300, 2), 0.3), np.arange(300) % 2)
        assert fitted.n_iter_ == 0
        assert fitted.optimality_ == 0.0

    @pytest.mark.parametrize(
        "ranker", [RankNCG(), RankNCG("exact"), PairwiseRanker("logistic")], ids=repr
    )
    def test_a_warm_start_from_another_scale_begins_anew(self, ranker):
        X, y = data(n=4000, classes=2)
        warm = clone(ranker).set_params(warm_start=True, alpha=0.0).fit(1e-12 * X, y)
        warm.fit(1e12 * X, y)
        assert_allclose(
            warm.objective_, clone(ranker).set_params(alpha=0.0).fit(X, y).objective_, rtol=1e-3
        )

    def test_unconverged_fits_say_so(self):
        X, y = data()
        with pytest.warns(
            ConvergenceWarning, match=r"RankNCG stopped after 2 iterations \(max_iter=2\)"
        ):
            RankNCG(graph="order", max_iter=2).fit(X, y)

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"sums": "fast"}, "sums must be one of 'direct', 'erfc', 'exact'; got 'fast'"),
            ({"eps": 0.0}, "eps must lie between 1e-13 and 1; got 0.0"),
            ({"eps": 1.0}, "eps must lie between"),
            ({"alpha": -1.0}, "alpha must be a number >= 0"),
            ({"tol": 0.0}, "tol must be a number > 0"),
            ({"max_iter": 0}, "max_iter must be an integer >= 1"),
            ({"graph": [(0, 7)]}, r"Edge \(0, 7\) .* names class 7"),
            ({"graph": [(0, 1), (1, 0)]}, r"cycle through the edges \(0, 1\), \(1, 0\)"),
            ({"graph": None}, 'set graph="order"'),
            ({"kernel": "sigmoid"}, "kernel must be one of .*; got 'sigmoid'"),
            ({"kernel": "rbf", "gamma": 0.0}, "gamma must be a number > 0"),
            ({"kernel": "poly", "degree": 1.5}, "degree must be an integer >= 1"),
            ({"kernel": "poly", "coef0": -1.0}, "coef0 must be a number >= 0"),
            ({"kernel": "rbf", "n_components": 0}, "n_components must be an integer >= 1"),
        ],
    )
    def test_refusals(self, parameters, message):
        X, y = data(n=30)
        with pytest.raises(ValueError, match=message):
            RankNCG(**{"graph": "order", **parameters}).fit(X, y)


class TestKernels:
    def test_the_quadratic_kernel_is_a_linear_ranker_on_products(self):
        X, y = data()
        explicit = QuadraticFeatures(offset=1.0).fit_transform(X)
        expected = RankNCG("exact", graph="order", alpha=1e-2, tol=1e-8).fit(explicit, y)
        kernel = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0}
        # The kernel has fewer dimensions than rows are sampled: the approximation is exact.
        for n_components in (None, 200):
            options = {"n_components": n_components, "random_state": 0, **kernel}
            ranker = RankNCG("exact", graph="order", alpha=1e-2, tol=1e-8, **options).fit(X, y)
            assert ranker.optimality_ <= 1e-8
            assert ranker.objective_ == pytest.approx(expected.objective_, rel=1e-9)
            assert ranker.components_.shape[0] == (n_components or 300)
            assert_allclose(
                ranker.decision_function(X),
                expected.decision_function(explicit),
                rtol=1e-4,
                atol=1e-4,
            )

    @pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cosine"])
    def test_the_gradient_in_the_space_of_the_kernel_is_zero(self, kernel):
        X, y = data()
        weight = np.random.default_rng(0).integers(0, 3, y.size).astype(float)
        qid = np.arange(y.size) % 3
        ranker = RankNCG("exact", graph="order", alpha=1e-3, tol=1e-7, kernel=kernel)
        ranker.fit(X, y, sample_weight=weight, qid=qid)
        K = pairwise_kernels(X, metric=kernel)
        b = ranker.dual_coef_[0]
        s = K @ b
        upper = (y[:, None] > y) * (qid[:, None] == qid) * weight[:, None] * weight
        pull = -expit(-(s[:, None] - s)) * upper / upper.sum()
        loss = float((np.logaddexp(0.0, -(s[:, None] - s)) * upper).sum() / upper.sum())
        gradient = pull.sum(axis=1) - pull.sum(axis=0) + 1e-3 * b
        assert gradient @ K @ gradient < 1e-12
        assert ranker.objective_ == pytest.approx(loss + 0.5e-3 * b @ s, rel=1e-9)
        assert ranker.gap_ < 1e-9

    def test_more_rows_approximate_better(self):
        X, y = data()
        options = {"kernel": "rbf", "graph": "order", "alpha": 1e-3, "random_state": 0}
        objective = [
            RankNCG("exact", n_components=n, **options).fit(X, y).objective_ for n in (10, 60, 300)
        ]
        assert objective[0] > objective[1] > objective[2]

    def test_storage_does_not_matter(self):
        X, y = data()
        X[np.abs(X) < 0.5] = 0.0
        X = X.astype(np.float32).astype(float)
        for options in ({}, {"n_components": 50, "random_state": 0}):
            ranker = RankNCG("exact", kernel="rbf", graph="order", tol=1e-6, **options)
            fitted = clone(ranker).fit(X, y)
            reference = fitted.decision_function(X)
            for other in (sp.csr_array(X), X.astype(np.float32)):
                again = clone(ranker).fit(other, y)
                assert_allclose(again.decision_function(X), reference, atol=2e-3)
                assert_allclose(fitted.decision_function(other), reference, atol=1e-4)

    def test_a_fitted_ranker_does_not_change_with_rows_and_parameters(self):
        X, y = data()
        ranker = RankNCG(kernel="rbf", graph="order").fit(X, y)
        new = X[:20].copy()
        before = ranker.decision_function(new)
        ranker.set_params(kernel="poly", gamma=3.0)
        X[:] = 0.0
        assert_allclose(ranker.decision_function(new), before)

    @pytest.mark.parametrize("n_components", [None, 50])
    def test_warm_start_goes_on(self, n_components):
        X, y = data()
        options = {"n_components": n_components, "random_state": 0, "tol": 1e-5}
        ranker = RankNCG("exact", graph="order", kernel="rbf", warm_start=True, **options)
        assert ranker.fit(X, y).n_iter_ > 3
        assert ranker.fit(X, y).n_iter_ <= 1
        assert ranker.fit(X[:200], y[:200]).n_iter_ > 3

    def test_another_kernel_leaves_nothing_of_the_last(self):
        X, y = data()
        ranker = RankNCG(graph="order").fit(X, y)
        linear = ranker.decision_function(X)
        ranker.set_params(kernel="rbf").fit(X, y)
        assert not hasattr(ranker, "coef_")
        ranker.set_params(kernel="linear").fit(X, y)
        assert not hasattr(ranker, "dual_coef_")
        assert_allclose(ranker.decision_function(X), linear)

    def test_rows_that_are_all_alike_have_nothing_to_learn(self):
        ranker = RankNCG(kernel="rbf")
        with pytest.warns(UserWarning, match="RankNCG: the optimum gives all rows the same score"):
            ranker.fit(np.full((300, 2), 0.3), np.arange(300) % 2)

    def test_pickles_and_model_files(self, tmp_path):
        X, y = data()
        frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(X.shape[1])])
        for options in ({}, {"n_components": 50, "random_state": 0}):
            ranker = RankNCG(kernel="rbf", graph="order", **options)
            pipeline = make_pipeline(StandardScaler(), ranker).fit(frame, y)
            scores = pipeline.decision_function(frame)
            assert_allclose(pickle.loads(pickle.dumps(pipeline)).decision_function(frame), scores)
            path = tmp_path / f"{len(options)}.forerank"
            save_model(Model(pipeline, columns=dict.fromkeys(frame, "number")), path)
            assert_allclose(load_model(path).estimator.decision_function(frame), scores)

    def test_there_is_no_path_of_weights(self):
        X, y = data()
        with pytest.raises(ValueError, match="alpha_path returns weights of columns"):
            RankNCG(kernel="rbf", graph="order").alpha_path(X, y)


RANKERS = [
    *(PairwiseRanker(loss, graph="order", alpha=1e-3) for loss in LOSSES),
    *(RankNCG(sums, graph="order") for sums in SUMS),
    RankNCG(kernel="rbf", graph="order"),
    RankNet(graph="order", random_state=0),
    RankBoost(50, graph="order"),
]


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
def test_the_bound_on_the_share_of_pairs_in_order(ranker):
    X, y = data()
    weight = np.random.default_rng(0).integers(0, 3, y.size).astype(float)
    qid = np.arange(y.size) % 3
    fitted = clone(ranker).fit(X, y, sample_weight=weight, qid=qid)
    s = fitted.decision_function(X)
    upper = (y[:, None] > y) * (qid[:, None] == qid) * weight[:, None] * weight
    difference = s[:, None] - s
    share = float((upper * (difference > 0)).sum() / upper.sum())
    assert 0.0 <= fitted.wmw_bound_ <= share
    if getattr(ranker, "loss", "") == "logistic" or isinstance(ranker, RankNCG | RankNet):
        likelihood = -float((upper * np.logaddexp(0.0, -difference)).sum())
        bound = log_sigmoid_bound(likelihood, float(upper.sum()))
        assert bound > 0.0
        assert fitted.wmw_bound_ == pytest.approx(bound, abs=1e-6)
