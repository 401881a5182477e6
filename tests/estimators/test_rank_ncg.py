from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from forerank import PairwiseRanker, RankNCG, metrics
from forerank.losses import ErfcLogistic
from tables import graded_rows

SUMS = ("erfc", "exact", "direct")

data = partial(graded_rows, classes=3, noise=4)


@parametrize_with_checks([RankNCG(), RankNCG("exact"), RankNCG("direct")])
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
        ],
    )
    def test_refusals(self, parameters, message):
        X, y = data(n=30)
        with pytest.raises(ValueError, match=message):
            RankNCG(**{"graph": "order", **parameters}).fit(X, y)
