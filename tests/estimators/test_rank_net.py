from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from forerank import PairwiseRanker, RankBoost, RankNCG, RankNet, metrics
from forerank.data.datasets import make_randnet
from forerank.design import make_design
from forerank.objectives import AllPairs
from forerank.solvers.network import Network
from forerank.solvers.units import column_units
from tables import graded_rows

data = partial(graded_rows, classes=3, noise=4)


@parametrize_with_checks([RankNet(0), RankNet(3, random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class TestFit:
    def test_without_hidden_units_it_is_the_linear_ranker(self):
        X, y = data()
        linear = PairwiseRanker("logistic", graph="order", alpha=1e-3, tol=1e-9).fit(X, y)
        fitted = RankNet(0, graph="order", alpha=1e-3, tol=1e-8).fit(X, y)
        assert_allclose(fitted.coefs_[0].T, linear.coef_, rtol=1e-5)
        assert_allclose(fitted.objective_, linear.objective_, rtol=1e-10)
        assert_allclose(fitted.decision_function(X), linear.decision_function(X), atol=1e-5)

    def test_the_certificate_is_the_gradient_at_the_weights(self):
        X, y = make_randnet(400, 10, 3, random_state=0)
        fitted = RankNet(4, graph="order", alpha=1e-3, random_state=0).fit(X, y)
        assert fitted.optimality_ <= 1e-3
        network, objective = Network(10, 4), AllPairs(y, "logistic")
        units = column_units(objective, make_design(X))

        def gradient_norm(w, alpha):
            g = objective.at(network.scores(X, w)).gradient
            gradient = (
                network.back_propagate(X, network.hidden(X, w), w, g)
                + alpha * network.penalised() * w
            )
            weights, (bias,) = network.layers(gradient)
            weights[0][:] = (weights[0] - np.outer(units.mean, bias)) / units.unit[:, None]
            return np.linalg.norm(gradient)

        w = np.concatenate([part.ravel() for part in (*fitted.coefs_, *fitted.intercepts_)])
        start = network.to_columns(network.draw(np.random.RandomState(0)), units)
        assert_allclose(
            gradient_norm(w, 1e-3) / gradient_norm(start, 0.0), fitted.optimality_, rtol=1e-6
        )

    def test_fits_a_network_better_than_anything_linear(self):
        X, y = make_randnet(2400, 20, 6, random_state=3)
        train = np.arange(2400) % 3 > 0
        shared = {"graph": "order", "alpha": 1e-4}
        network = RankNet(random_state=0, **shared).fit(X[train], y[train])
        at_test = metrics.wmw(y[~train], network.decision_function(X[~train]))
        for other in (
            PairwiseRanker("logistic", **shared),
            PairwiseRanker(**shared),
            PairwiseRanker("hinge", **shared),
            RankNCG(**shared),
            RankNet(0, **shared),
            RankBoost(graph="order"),
        ):
            other.fit(X[train], y[train])
            assert at_test > metrics.wmw(y[~train], other.decision_function(X[~train])) + 0.02

    def test_groups_restrict_the_pairs(self):
        X, y = data()
        qid = np.arange(300) % 5
        shifted = X + 100.0 * (qid % 2)[:, None] * np.ones(
            5
        )  # groups of different level: only pairs inside matter
        linear = PairwiseRanker("logistic", graph="order", tol=1e-9).fit(shifted, y, qid=qid)
        fitted = RankNet(0, graph="order", tol=1e-7).fit(shifted, y, qid=qid)
        assert_allclose(fitted.coefs_[0].T, linear.coef_, rtol=1e-3)

    def test_same_seed_same_weights(self):
        X, y = data()
        ranker = RankNet(graph="order", random_state=7)
        first, second = clone(ranker).fit(X, y), clone(ranker).fit(X, y)
        assert_array_equal(first.coefs_[0], second.coefs_[0])
        other = RankNet(graph="order", random_state=8).fit(X, y)
        assert np.abs(other.coefs_[0] - first.coefs_[0]).max() > 1e-3

    @pytest.mark.parametrize("hidden_units", [0, 3])
    def test_storage_does_not_matter(self, hidden_units):
        X, y = data()
        X[np.abs(X) < 0.5] = 0.0
        ranker = RankNet(hidden_units, graph="order", random_state=0, alpha=1e-2, tol=1e-5)
        reference = clone(ranker).fit(X, y).decision_function(X)
        for other in (np.asfortranarray(X), sp.csr_array(X)):
            assert_allclose(
                clone(ranker).fit(other, y).decision_function(other), reference, atol=1e-3
            )
        single = (
            clone(ranker)
            .set_params(tol=1e-3)
            .fit(X.astype(np.float32), y)
            .decision_function(X.astype(np.float32))
        )
        assert np.corrcoef(single, reference)[0, 1] > 0.999

    def test_warm_start_goes_on(self):
        X, y = data()
        ranker = RankNet(graph="order", random_state=0, warm_start=True).fit(X, y)
        assert ranker.n_iter_ > 3
        assert ranker.fit(X, y).n_iter_ == 0
        with pytest.raises(
            ValueError, match=r"continues from a network of shapes \[\(5, 10\), \(10, 1\)\]"
        ):
            ranker.set_params(hidden_units=4).fit(X, y)

    def test_a_warm_start_is_measured_on_the_new_data(self):
        X, y = data(classes=2)
        ranker = RankNet(0, warm_start=True).fit(1e4 * X, y)
        assert_allclose(ranker.fit(X, y).objective_, RankNet(0).fit(X, y).objective_, rtol=1e-4)
        assert ranker.n_iter_ > 0

    @pytest.mark.parametrize("hidden_units", [0, 3])
    def test_rows_that_are_all_alike_have_nothing_to_learn(self, hidden_units):
        with pytest.warns(UserWarning, match="RankNet: the optimum gives all rows the same score"):
            fitted = RankNet(hidden_units, random_state=0).fit(np.ones((40, 2)), np.arange(40) % 2)
        assert fitted.optimality_ == 0.0
        assert fitted.n_iter_ == 0

    def test_a_fit_that_runs_out_of_digits_says_so(self):
        X, y = data()
        with pytest.warns(
            ConvergenceWarning, match="no step improves the objective in the precision of X"
        ):
            RankNet(0, graph="order", tol=1e-12).fit(X.astype(np.float32), y)

    def test_an_interruption_keeps_the_latest_weights(self, monkeypatch):
        X, y = data()
        calls = []
        at = AllPairs.at

        def interrupted(self, s):
            calls.append(1)
            if len(calls) == 12:
                raise KeyboardInterrupt
            return at(self, s)

        monkeypatch.setattr(AllPairs, "at", interrupted)
        ranker = RankNet(graph="order", random_state=0, alpha=1e-5)
        with pytest.raises(KeyboardInterrupt):
            ranker.fit(X, y)
        assert ranker.n_iter_ >= 3
        assert metrics.wmw(y, ranker.decision_function(X)) > 0.7

    def test_unconverged_fits_say_so(self):
        X, y = data()
        with pytest.warns(
            ConvergenceWarning, match=r"RankNet stopped after 2 iterations \(max_iter=2\)"
        ):
            RankNet(graph="order", random_state=0, max_iter=2).fit(X, y)

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"hidden_units": -1}, "hidden_units must be an integer >= 0"),
            ({"alpha": -1.0}, "alpha must be a number >= 0"),
            ({"tol": 0.0}, "tol must be a number > 0"),
            ({"max_iter": 0}, "max_iter must be an integer >= 1"),
            ({"graph": "ladder"}, "graph must be one of"),
        ],
    )
    def test_refusals(self, parameters, message):
        X, y = data()
        with pytest.raises(ValueError, match=message):
            RankNet(**{"graph": "order", **parameters}).fit(X, y)
