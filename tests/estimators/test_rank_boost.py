from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import oracles
from forerank import PairwiseRanker, PointwiseRanker, RankBoost, metrics
from forerank.solvers import boosting


def data(n=120, d=4, classes=2, seed=0, values=6):
    """Columns of few different values, and labels that no sum of steps explains."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, values, (n, d)).astype(float)
    score = X @ np.arange(1, d + 1) / 4 + 3 * rng.standard_normal(n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))


def every_stump(X):
    """(column, threshold) midway between all neighbouring values."""
    return [(k, 0.5 * (a + b)) for k in range(X.shape[1]) for a, b in pairwise(np.unique(X[:, k]))]


def rankboost_by_definition(X, pairs, w, rounds):
    """Freund et al. 2003 with the distribution over pairs written out; returns rounds of (column,
    threshold, step).
    """
    D = {(i, j): w[i] * w[j] for i, j in pairs}
    found = []
    for _ in range(rounds):
        total = sum(D.values())
        D = {pair: v / total for pair, v in D.items()}
        best = None
        for k, threshold in every_stump(X):
            h = X[:, k] > threshold
            right = sum(v for (i, j), v in D.items() if h[i] and not h[j])
            wrong = sum(v for (i, j), v in D.items() if h[j] and not h[i])
            if best is None or abs(right - wrong) > abs(best[2] - best[3]) + 1e-12:
                best = k, threshold, right, wrong
        k, threshold, right, wrong = best
        step = 0.5 * np.log((right + 1e-8) / (wrong + 1e-8))
        found.append((k, threshold, step))
        h = X[:, k] > threshold
        D = {(i, j): v * np.exp(step * (float(h[j]) - float(h[i]))) for (i, j), v in D.items()}
    return found


@parametrize_with_checks([RankBoost()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class TestRounds:
    @pytest.mark.parametrize("classes", [2, 4])
    @pytest.mark.parametrize("grouped", [False, True])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_rounds_are_those_of_the_definition(self, classes, grouped, weighted):
        X, y = data(n=40, classes=classes)
        rng = np.random.default_rng(1)
        group = rng.integers(0, 3, 40) if grouped else None
        w = rng.choice([0.5, 1.0, 2.0], 40) if weighted else np.ones(40)
        expected = rankboost_by_definition(X, oracles.pairs_of(y, group, lambda a, b: a > b), w, 8)
        graph = "order" if classes > 2 else None
        fitted = RankBoost(8, graph=graph).fit(
            X, y, sample_weight=w if weighted else None, qid=group
        )
        assert [(s.column, s.threshold) for s in fitted.stumps_] == [(k, t) for k, t, _ in expected]
        # A step s is a logarithm of sums that cancel to exp(-2 s) of themselves: 1e-8 for the
        # largest here.
        assert_allclose(
            [s.step for s in fitted.stumps_], [step for *_, step in expected], rtol=1e-7
        )

    def test_a_step_minimises_the_loss_along_its_column(self):
        X, y = data()
        s = RankBoost(7).fit(X, y)
        before = RankBoost(6).fit(X, y).decision_function(X)
        h = X[:, s.stumps_[-1].column] > s.stumps_[-1].threshold

        def loss(step):
            t = before + step * h
            return np.exp(t[y == 0][:, None] - t[y == 1]).mean()

        assert_allclose(
            s.stumps_[-1].step, minimize_scalar(loss, bounds=(-3, 3), method="bounded").x, atol=1e-4
        )
        assert_allclose(s.objective_, loss(s.stumps_[-1].step), rtol=1e-10)

    def test_the_loss_falls_every_round_and_is_recorded(self):
        X, y = data(classes=3)
        fitted = RankBoost(60, graph="order").fit(X, y)
        values = [step.objective for step in fitted.history_]
        assert len(values) == 61
        assert_allclose(values[0], 1.0)
        assert np.all(np.diff(values) < 0.0)
        assert fitted.objective_ == values[-1]

    @pytest.mark.parametrize("classes", [2, 3])
    def test_many_rounds_reach_the_optimum_over_all_sums_of_steps(self, classes):
        X, y = data(n=400, d=3, classes=classes)
        indicators = np.column_stack(
            [X[:, k] > threshold for k, threshold in every_stump(X)]
        ).astype(float)
        graph = "order" if classes > 2 else None
        optimum = PairwiseRanker("exponential", graph=graph, alpha=0.0, tol=1e-8).fit(indicators, y)
        fitted = RankBoost(3000, graph=graph).fit(X, y)
        assert fitted.optimality_ < 1e-7
        assert_allclose(fitted.objective_, optimum.objective_, rtol=1e-10)

    def test_the_optimum_is_that_of_the_univariate_exponential_loss(self):
        # kotlowski2011: minimising sum exp(-y (s + b)) over b leaves 2 sqrt(m n P), with P the mean
        # over pairs.
        X, y = data(n=400, d=3)
        indicators = np.column_stack(
            [X[:, k] > threshold for k, threshold in every_stump(X)]
        ).astype(float)
        single = PointwiseRanker("exponential", alpha=0.0, tol=1e-8).fit(indicators, y)
        m, n = np.sum(y == 1), np.sum(y == 0)
        fitted = RankBoost(3000).fit(X, y)
        assert_allclose(
            2 * np.sqrt(m * n * fitted.objective_) / y.size, single.objective_, rtol=1e-8
        )
        assert_allclose(
            metrics.roc_auc(y, fitted.decision_function(X)),
            metrics.roc_auc(y, single.decision_function(indicators)),
            atol=1e-3,
        )

    def test_rounds_end_where_nothing_is_left(self):
        X, y = data(n=400, d=2)
        fitted = RankBoost(10_000, tol=1e-3).fit(X, y)
        assert fitted.n_iter_ == len(fitted.stumps_) < 10_000
        assert fitted.optimality_ <= 1e-3

    def test_classes_that_a_column_tells_apart_keep_steps_finite(self):
        X = np.arange(20.0)[:, None]
        fitted = RankBoost(5).fit(X, X[:, 0] > 9)
        assert np.isfinite([s.step for s in fitted.stumps_]).all()
        assert fitted.score(X, X[:, 0] > 9) == 1.0


class TestUse:
    def test_storage_does_not_matter(self):
        X, y = data(n=600, values=1000)
        reference = RankBoost(30).fit(X, y)
        for other in (np.asfortranarray(X), sp.csr_array(X), sp.csc_array(X), X.astype(np.float32)):
            fitted = RankBoost(30).fit(other, y)
            assert fitted.stumps_ == reference.stumps_
            assert_allclose(
                fitted.decision_function(other), reference.decision_function(X), rtol=1e-12
            )

    def test_stages_lead_to_the_scores(self):
        X, y = data(classes=3)
        fitted = RankBoost(25, graph="order").fit(X, y)
        stages = list(fitted.staged_decision_function(X))
        assert len(stages) == 25
        assert_allclose(stages[-1], fitted.decision_function(X), rtol=1e-12, atol=1e-12)

    def test_warm_start_adds_rounds(self):
        X, y = data()
        whole = RankBoost(20).fit(X, y)
        parts = RankBoost(8, warm_start=True).fit(X, y).set_params(n_estimators=20).fit(X, y)
        assert [s.column for s in parts.stumps_] == [s.column for s in whole.stumps_]
        assert_allclose([s.step for s in parts.stumps_], [s.step for s in whole.stumps_], rtol=1e-9)
        with pytest.raises(
            ValueError, match="keeps the 20 rounds of the last fit, more than n_estimators=10"
        ):
            parts.set_params(n_estimators=10).fit(X, y)

    def test_a_refused_warm_start_leaves_the_ranker_as_it_was(self):
        X, y = data()
        ranker = RankBoost(5, warm_start=True).fit(X, y)
        before = ranker.decision_function(X)
        with pytest.raises(
            ValueError, match="warm_start=True continues from 4 columns, but X has 3"
        ):
            ranker.fit(X[:, :3], y)
        assert_array_equal(ranker.decision_function(X), before)

    def test_an_interruption_keeps_the_rounds_so_far(self, monkeypatch):
        X, y = data()
        find, calls = boosting._best_stump, []

        def interrupted(*arguments):
            calls.append(1)
            if len(calls) == 6:
                raise KeyboardInterrupt
            return find(*arguments)

        monkeypatch.setattr(boosting, "_best_stump", interrupted)
        ranker = RankBoost(50)
        with pytest.raises(KeyboardInterrupt):
            ranker.fit(X, y)
        monkeypatch.undo()
        assert ranker.n_iter_ == 5
        assert 0.0 < ranker.objective_ < 1.0
        assert_allclose(ranker.decision_function(X), RankBoost(5).fit(X, y).decision_function(X))

    def test_importances_are_shares(self):
        X, y = data()
        importances = RankBoost(40).fit(X, y).feature_importances_
        assert_allclose(importances.sum(), 1.0)
        assert importances.argmin() == 0  # the column with the smallest part in the labels

    def test_verbose_prints_each_round(self, capsys):
        X, y = data()
        RankBoost(3, verbose=True).fit(X, y)
        assert capsys.readouterr().out.count("[forerank]") == 4

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"n_estimators": 0}, "n_estimators must be an integer >= 1"),
            ({"max_bins": 1}, "max_bins must be an integer >= 2"),
            ({"max_bins": 300}, "max_bins must be at most 256"),
            ({"tol": -1.0}, "tol must be a number >= 0"),
            ({"graph": [(1, 5)]}, "names class 5"),
        ],
    )
    def test_refusals(self, parameters, message):
        X, y = data()
        with pytest.raises(ValueError, match=message):
            RankBoost(**parameters).fit(X, y)

    def test_three_classes_need_a_graph(self):
        X, y = data(classes=3)
        with pytest.raises(ValueError, match='set graph="order"'):
            clone(RankBoost()).fit(X, y)


def test_equal_scores_are_said_with_remedies_that_there_are():
    X, y = data()
    for params, rows in (({}, np.ones_like(X)), ({"tol": 2.0}, X)):
        with pytest.warns(UserWarning, match=r"same score\..*Add columns, or lower tol\.$"):
            fitted = RankBoost(**params).fit(rows, y)
        assert fitted.stumps_ == []
