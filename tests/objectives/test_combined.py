"""Pairs and points together: the sum of the two objectives, and its approximations."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

import oracles
from forerank.design import make_design
from forerank.losses import SmoothedHinge, get_loss
from forerank.objectives import AllPairs, Combined, Pointwise

LOSSES = [
    *map(get_loss, ("exponential", "hinge", "logistic", "squared", "squared_hinge")),
    SmoothedHinge(0.3),
]
GAMMA = 0.3


def rows(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(n), rng.random(n) < 0.3, rng.random(n), rng.standard_normal(n)


def combined(positive, loss, w, group=None):
    codes = positive.astype(int)
    pairs = AllPairs(codes, loss, weight=w, group=group)
    return Combined(pairs, Pointwise(positive, loss, weight=w), GAMMA)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
class TestDefinition:
    def test_value_gradient_and_curvature(self, loss):
        s, positive, w, u = rows()
        y = np.where(positive, 1.0, -1.0)
        value, gradient, product = oracles.bipartite(loss, s, w, positive, u)
        there = combined(positive, loss, w).at(s)
        share = (1 - GAMMA) * w / w.sum()
        assert_allclose(there.value, GAMMA * value + share @ loss.value(y * s))
        assert_allclose(
            there.gradient, GAMMA * gradient + share * y * loss.slope(y * s), rtol=1e-9, atol=1e-14
        )
        if loss.smooth:
            expected = GAMMA * product + share * loss.curvature(y * s) * u
            assert_allclose(there.curvature_product(u), expected, rtol=1e-9, atol=1e-14)
            # The curvature of the logistic pairs is a rough one in a matrix, for preconditioning.
            close = 0.02 * np.abs(expected).max() if loss.name == "logistic" else 1e-13
            matrix = there.curvature_matrix(np.eye(60))
            assert_allclose(matrix @ u, expected, rtol=1e-8, atol=close)
            assert_allclose(there.curvature_diagonal(), np.diag(matrix), rtol=1e-6, atol=close)

    def test_profiled_is_the_minimum_over_a_constant(self, loss):
        s, positive, w, _ = rows()
        objective = combined(positive, loss, w)
        best = minimize_scalar(lambda b: objective.at(s + b).value, tol=1e-12)
        there = objective.profiled().at(s)
        assert_allclose(there.value, best.fun, rtol=1e-9)
        assert abs(there.gradient.sum()) <= 1e-13
        assert objective.profiled().shift_invariant
        assert not objective.shift_invariant

    def test_gradient_at_zero(self, loss):
        _, positive, w, _ = rows()
        objective = combined(positive, loss, w)
        assert_allclose(
            objective.gradient_at_zero(), objective.at(np.zeros(60)).gradient, atol=1e-15
        )


class TestApproximations:
    @pytest.mark.parametrize("grouped", [False, True])
    def test_samples_are_unbiased(self, grouped):
        s, positive, w, _ = rows(n=300)
        group = np.arange(300) % 3 if grouped else None
        objective = combined(positive, "logistic", w, group)
        values = []
        for seed in range(300):
            drawn, sampled = objective.sample(100, np.random.default_rng(seed))
            values.append(sampled.at(s[drawn]).value)
        assert abs(np.mean(values) - objective.at(s).value) < 5 * np.std(values) / np.sqrt(300)

    def test_no_sample_of_few_rows(self):
        _, positive, w, _ = rows()
        assert combined(positive, "logistic", w).sample(50, np.random.default_rng(0)) is None

    @pytest.mark.parametrize("width", [2.0, 0.1])
    def test_smoothed_hinge_and_its_plane(self, width):
        s, positive, w, u = rows()
        hinge = combined(positive, "hinge", w)
        for objective in (hinge, hinge.profiled()):
            there = objective.smoothed(width).at(s)
            assert objective.at(s).value <= there.value <= objective.at(s).value + width / 8
            # The plane of the slopes lies below the hinge everywhere.
            for other in (s, u, 0 * s, 3 * u - s):
                plane = there.total_slope() + there.gradient @ other
                assert plane <= objective.at(other).value + 1e-12

    def test_hessian(self):
        s, positive, w, _ = rows(n=300)
        X = np.random.default_rng(1).standard_normal((300, 4))
        objective = combined(positive, "logistic", w)
        exact = X.T @ objective.at(s).curvature_matrix(X)
        assert_allclose(
            objective.hessian(s, make_design(X)), exact, rtol=0.05, atol=0.02 * np.abs(exact).max()
        )
