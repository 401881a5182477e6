from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from forerank.objectives import AllPairs
from forerank.solvers.network import Network
from tables import graded_rows

data = partial(graded_rows, classes=3, noise=4)


class TestBackPropagation:
    @pytest.mark.parametrize("hidden_units", [0, 1, 4])
    @pytest.mark.parametrize("sparse", [False, True])
    def test_gradient_is_the_derivative(self, hidden_units, sparse):
        X, y = data(n=60)
        rows = sp.csr_array(X) if sparse else X
        network, objective = Network(5, hidden_units), AllPairs(y, "logistic")
        w = network.draw(np.random.RandomState(0)) + 0.1

        def value(w):
            return objective.at(network.scores(rows, w)).value

        gradient = network.back_propagate(
            rows, network.hidden(rows, w), w, objective.at(network.scores(rows, w)).gradient
        )
        difference = [(value(w + e) - value(w - e)) / 2e-5 for e in 1e-5 * np.eye(w.size)]
        assert_allclose(gradient, difference, atol=1e-8)

    def test_rows_in_chunks_add_up(self):
        X, _ = data(n=30_000, d=40)
        network = Network(40, 5)
        w = network.draw(np.random.RandomState(0))
        g = np.random.default_rng(0).standard_normal(30_000)
        (first, second), (bias,) = network.layers(w)
        hidden = np.tanh(X @ first + bias)
        pull = (1 - hidden**2) * np.outer(g, second)
        expected = np.concatenate([(X.T @ pull).ravel(), hidden.T @ g, pull.sum(axis=0)])
        assert_allclose(
            network.back_propagate(X, network.hidden(X, w), w, g), expected, rtol=1e-9, atol=1e-9
        )
