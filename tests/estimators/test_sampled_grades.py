"""Sampled rankers on grades and preference graphs: pairs between different classes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from forerank import ActiveSamplingRanker, CombinedSGDRanker, PairwiseRanker, metrics
from forerank.sampling import STRATEGIES
from tables import graded_rows

EDGES = [(3, 1), (2, 0), (2, 1)]


def rows(n=60):
    X, y = graded_rows(n=n, classes=4)
    rng = np.random.default_rng(5)
    weight = rng.random(n)
    weight[:3] = 0.0
    return X, y, {"sample_weight": weight, "qid": rng.integers(3, size=n)}


class TestActiveSampling:
    @pytest.mark.parametrize("given", [False, True])
    @pytest.mark.parametrize("graph", ["order", EDGES], ids=["order", "edges"])
    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_all_pairs_give_the_pairwise_solution(self, strategy, graph, given):
        X, y, more = rows()
        more = more if given else {}
        same = {"alpha": 1e-2, "graph": graph, "tol": 1e-7}
        exact = PairwiseRanker("hinge", max_iter=5000, **same).fit(X, y, **more)
        sampled = ActiveSamplingRanker(
            strategy, step=211, max_iter=100_000, random_state=0, **same
        ).fit(X, y, **more)
        assert sampled.objective_ == pytest.approx(exact.objective_, rel=1e-6)
        assert_allclose(sampled.coef_, exact.coef_, atol=2e-3)
        edges = EDGES if graph is EDGES else [(a, b) for a in range(4) for b in range(a)]
        pairs = {(i, j) for i in range(60) for j in range(60) if (y[i], y[j]) in edges}
        if given:
            weight, qid = more["sample_weight"], more["qid"]
            pairs = {(i, j) for i, j in pairs if qid[i] == qid[j] and weight[i] * weight[j] > 0}
        assert pairs == set(map(tuple, sampled.pool_.tolist()))
        assert len(pairs) == len(sampled.pool_)

    @pytest.mark.parametrize("strategy", ["random", "soft-close", "soft-correct"])
    def test_a_part_of_the_pairs_stands_for_all(self, strategy):
        X, y = graded_rows(n=1000, classes=4)
        exact = PairwiseRanker("hinge", alpha=1e-2, graph="order").fit(X, y)
        sampled = ActiveSamplingRanker(
            strategy, alpha=1e-2, budget=4000, graph="order", random_state=0
        ).fit(X, y)
        assert sampled.objective_ == pytest.approx(exact.objective_, rel=0.1)
        assert_allclose(sampled.coef_, exact.coef_, rtol=0.25)

    def test_two_grades_are_two_classes(self):
        X, y = graded_rows(n=100)
        plain = ActiveSamplingRanker(budget=600, random_state=0).fit(X, y)
        graph = ActiveSamplingRanker(budget=600, graph="order", random_state=0).fit(X, y)
        assert_array_equal(graph.pool_, plain.pool_)
        assert_array_equal(graph.predict(X), plain.predict(X))


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("graph", ["order", EDGES], ids=["order", "edges"])
def test_descent_comes_close_to_the_minimum(graph, given):
    X, y, more = rows(n=200)
    more = more if given else {}
    same = {"alpha": 1e-2, "graph": graph}
    exact = PairwiseRanker("logistic", **same).fit(X, y, **more)
    descent = CombinedSGDRanker(pair_loss="logistic", gamma=1.0, random_state=0, **same)
    descent.fit(X, y, **more)
    assert exact.objective_ <= descent.objective_ * (1 + 1e-3)
    assert descent.objective_ < 1.01 * exact.objective_


@pytest.mark.parametrize(
    "ranker",
    [
        ActiveSamplingRanker(budget=900, graph="order", random_state=0),
        CombinedSGDRanker(gamma=1.0, graph="order", average=False, random_state=0),
    ],
    ids=["active", "descent"],
)
class TestBoth:
    def test_classes_and_evaluation(self, ranker):
        X, y = graded_rows(n=400, classes=3, noise=1)
        names = np.array(["a", "b", "c"])[y]
        fitted = clone(ranker).fit(X[:200], names[:200], eval_set=(X[200:], names[200:]))
        scores = fitted.decision_function(X[200:])
        assert fitted.history_[-1].auc == pytest.approx(metrics.wmw(names[200:], scores))
        # As many training rows of each class as there are.
        found = np.unique(fitted.predict(X[:200]), return_counts=True)
        expected = np.unique(names[:200], return_counts=True)
        assert_array_equal(found[0], expected[0])
        assert_array_equal(found[1], expected[1])
        assert np.mean(fitted.predict(X[200:]) == names[200:]) > 0.6

    def test_refused(self, ranker):
        X, y = graded_rows(n=60, classes=3)
        with pytest.raises(ValueError, match="adds points, which have two classes"):
            clone(ranker).set_params(gamma=0.5).fit(X, y)
        with pytest.raises(ValueError, match=r"Only binary classification.*set graph="):
            clone(ranker).set_params(graph=None).fit(X, y)
        with pytest.raises(ValueError, match="no two rows of the same group"):
            clone(ranker).fit(X, y, qid=y)
