import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

from forerank import losses
from forerank.solvers.sgd import LOSSES, CombinedDescent, _value_and_slope


def points(n=400, d=8, seed=0):
    """Rows with labels of -1 and 1 as pseudo-pairs."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(X @ np.arange(1, d + 1) + 4.0 * rng.standard_normal(n) > 0, 1, -1)
    row = np.arange(n)
    return X, y, np.where(y > 0, row, -1), np.where(y > 0, -1, row)


class TestCombinedDescent:
    @pytest.mark.parametrize("name", LOSSES)
    def test_losses_are_those_of_the_library(self, name):
        loss = losses.get_loss(name)
        for t in (-800.0, -3.0, -0.1, 0.0, 0.5, 1.0, 1.5, 30.0, 800.0):
            value, slope = _value_and_slope(LOSSES.index(name), t)
            assert value == pytest.approx(float(loss.value(t)), rel=1e-12, abs=1e-300)
            assert slope == pytest.approx(float(loss.slope(t)), rel=1e-12, abs=1e-300)

    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "CSR"])
    @pytest.mark.parametrize("intercept", [False, True])
    def test_steps_and_average_against_a_plain_loop(self, form, intercept):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((20, 4))
        plus, minus = rng.integers(-1, 20, 101), rng.integers(0, 20, 101)
        minus[::3] = -1
        plus[::3] = np.abs(plus[::3])
        size, alpha = rng.random(101) * 10.0, 0.05
        descent = CombinedDescent(
            4,
            101,
            pair_loss="logistic",
            point_loss="squared",
            alpha=alpha,
            typical_size=4.0,
            intercept=intercept,
        )
        matrix = (
            (X,)
            if form is np.asarray
            else (sp.csr_array(X).data, sp.csr_array(X).indices, sp.csr_array(X).indptr)
        )
        for part in (slice(0, 40), slice(40, 101)):
            descent.run(matrix, plus[part], minus[part], size[part])

        padded = np.vstack([np.column_stack([X, np.full(20, float(intercept))]), np.zeros(5)])
        w, iterates, t0 = np.zeros(5), [], 1.0 + 4.0 / alpha
        for t in range(101):
            z = padded[plus[t]] - padded[minus[t]]
            point = plus[t] < 0 or minus[t] < 0
            loss, curvature = (losses.Squared(), 2.0) if point else (losses.Logistic(), 0.25)
            eta = 1.0 / (alpha * (t + 1 + t0))
            slope = float(loss.slope(z @ w)) / (1.0 + eta * curvature * size[t])
            w = (1.0 - eta * alpha) * w - eta * slope * z
            iterates.append(w)
        assert_allclose(descent.weights, w, rtol=1e-10, atol=1e-12)
        assert_allclose(descent.average, np.mean(iterates[50:], axis=0), rtol=1e-9, atol=1e-12)

    def test_ridge_regression(self):
        X, y, plus, minus = points(n=300)
        alpha, n_steps = 0.1, 200_000
        rng = np.random.default_rng(3)
        k = rng.integers(300, size=n_steps)
        descent = CombinedDescent(
            8,
            n_steps,
            pair_loss="squared",
            point_loss="squared",
            alpha=alpha,
            typical_size=8.0,
            intercept=False,
        )
        size = np.sum(X**2, axis=1)
        descent.run((X,), plus[k], minus[k], size[k])
        # (1 - y s)^2 = (y - s)^2 for labels of -1 and 1; Ridge sums where we take the mean, and
        # halves nothing.
        exact = Ridge(alpha=alpha * 300 / 2, fit_intercept=False).fit(X, y).coef_
        assert_allclose(descent.average[:-1], exact, atol=0.01)
        assert_array_equal(descent.average[-1:], 0.0)

    def test_one_long_row_does_no_harm(self):
        X, _, plus, minus = points(n=300)
        X[7] *= 1e3
        rng = np.random.default_rng(0)
        k = rng.integers(300, size=50_000)
        size = np.sum(X**2, axis=1)
        descent = CombinedDescent(
            8,
            50_000,
            pair_loss="squared",
            point_loss="squared",
            alpha=1e-2,
            typical_size=8.0,
            intercept=False,
        )
        descent.run((X,), plus[k], minus[k], size[k])
        assert np.linalg.norm(descent.average) < 10.0
