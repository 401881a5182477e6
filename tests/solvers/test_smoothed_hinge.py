"""Newton's method on the smoothed hinge: its bound, its gap, and agreement with the descent."""

import numpy as np
import pytest
import scipy.sparse as sp

from forerank.design.row_pairs import Differences
from forerank.solvers.dual import dual_descent
from forerank.solvers.smoothed_hinge import smoothed_hinge


def pool(n=400, d=6, seed=0, wrong=False, scale=1.0):
    """Pairs of rows, ranked right by the first column, mostly; or mostly wrong."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((100, d)) * scale
    plus, minus = rng.integers(100, size=(2, n))
    right = X[plus, 0] - X[minus, 0] + rng.standard_normal(n) * scale > 0.0
    swapped = right == wrong
    plus, minus = np.where(swapped, minus, plus), np.where(swapped, plus, minus)
    minus[::7] = -1
    return X, plus, minus


def differences(X, plus, minus):
    pairs = Differences(X, plus.size)
    pairs.extend(plus, minus)
    return pairs


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-4])
@pytest.mark.parametrize("wrong", [False, True])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, np.float32])
def test_gap_and_bound_are_those_of_the_hinge(tol, wrong, storage):
    X, plus, minus = pool(wrong=wrong)
    pairs = differences(storage(X), plus, minus)
    box = np.random.default_rng(1).random(plus.size)
    found = smoothed_hinge(pairs, box, np.zeros(6), tol=tol, max_iter=200, scale=0.5)
    assert found.converged
    Z = X[plus] - np.where(minus[:, None] >= 0, X[minus], 0.0)
    primal = 0.5 * found.w @ found.w + box @ np.maximum(1.0 - Z @ found.w, 0.0)
    v = Z.T @ found.dual
    assert np.all((found.dual >= 0.0) & (found.dual <= box))
    assert found.objective == pytest.approx(0.5 * primal, rel=1e-6)
    gap = (primal - found.dual.sum() + 0.5 * v @ v) / primal
    assert found.optimality == pytest.approx(gap, rel=1e-2, abs=1e-6)
    assert found.optimality <= tol
    exact = dual_descent(pairs, box, tol=1e-8, max_iter=100_000, scale=0.5)
    assert exact.objective * (1 - 1e-7) <= found.objective <= exact.objective / (1 - tol)


def test_any_start_leads_to_the_minimum():
    X, plus, minus = pool()
    pairs, box = differences(X, plus, minus), np.ones(plus.size)
    exact = dual_descent(pairs, box, tol=1e-8, max_iter=100_000)
    for length in (0.0, 1.0, 100.0):
        start = length * np.random.default_rng(0).standard_normal(6)
        before = start.copy()
        found = smoothed_hinge(pairs, box, start, tol=1e-3, max_iter=500)
        assert found.objective == pytest.approx(exact.objective, rel=1e-3)
        assert np.array_equal(start, before)


@pytest.mark.parametrize("scale", [1e-8, 1e8, 1e200])
def test_extreme_columns_end_without_an_exception(scale):
    X, plus, minus = pool(scale=scale)
    pairs, box = differences(X, plus, minus), np.ones(plus.size)
    with np.errstate(all="ignore"):
        found = smoothed_hinge(pairs, box, np.zeros(6), tol=1e-2, max_iter=50)
    assert found.converged == (found.optimality <= 1e-2)


def test_too_few_steps_are_reported():
    X, plus, minus = pool()
    pairs = differences(X, plus, minus)
    found = smoothed_hinge(pairs, np.ones(plus.size), np.zeros(6), tol=1e-9, max_iter=2)
    assert found.n_iter == 2
    assert not found.converged
