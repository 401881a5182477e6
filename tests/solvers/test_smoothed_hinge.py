"""Newton's method on the smoothed hinge: its bound, its gap, and agreement with the descent."""

import numpy as np
import pytest
import scipy.sparse as sp

from forerank.design.row_pairs import Differences
from forerank.objectives import Pointwise
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


@pytest.mark.parametrize("shift", [0.0, 3.0, 100.0])
@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_intercept_of_single_rows(tol, shift):
    X, plus, minus = pool()
    plus[3::7], minus[3::7] = -1, np.arange(plus[3::7].size)  # points of the other class
    X = X + shift
    pairs = differences(X, plus, minus)
    box = np.random.default_rng(1).random(plus.size)
    found = smoothed_hinge(pairs, box, np.zeros(6), tol=tol, max_iter=200, intercept=True)
    assert found.converged
    with_origin = np.vstack([X, np.zeros(6)])
    sign = (minus < 0).astype(float) - (plus < 0)
    assert np.array_equal(sign, pairs.signs)
    Z = with_origin[plus] - with_origin[minus]
    losses = np.maximum(1.0 - Z @ found.w - sign * found.intercept, 0.0)
    primal = 0.5 * found.w @ found.w + box @ losses
    v = Z.T @ found.dual
    assert found.objective == pytest.approx(primal)
    assert abs(sign @ found.dual) <= 1e-12 * found.dual.sum()
    gap = (primal - found.dual.sum() + 0.5 * v @ v) / primal
    assert found.optimality == pytest.approx(gap, rel=1e-2, abs=1e-8)
    # A constant in all columns is taken up by the intercept.
    plain = smoothed_hinge(
        differences(X - shift, plus, minus), box, np.zeros(6), tol=tol, max_iter=200, intercept=True
    )
    assert found.objective == pytest.approx(plain.objective, rel=2 * tol)
    single = np.flatnonzero(sign)
    points = Pointwise(sign[single] > 0, "hinge", weight=box[single]).profiled()
    exact = dual_descent(
        differences(X - shift, plus, minus),
        box,
        intercept=points.best_shift,
        tol=1e-8,
        max_iter=100_000,
    )
    assert exact.objective * (1 - 1e-7) <= found.objective <= exact.objective / (1 - tol)


def test_points_of_one_class_have_no_loss():
    X, plus, minus = pool()
    minus[::2] = -1
    pairs = differences(X, plus, minus)
    found = smoothed_hinge(
        pairs, np.ones(plus.size), np.zeros(6), tol=1e-3, max_iter=200, intercept=True
    )
    assert found.converged
    assert np.all(found.dual[minus < 0] == 0.0)


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
        for intercept in (False, True):
            found = smoothed_hinge(
                pairs, box, np.zeros(6), tol=1e-2, max_iter=50, intercept=intercept
            )
    assert found.converged == (found.optimality <= 1e-2)


def test_too_few_steps_are_reported():
    X, plus, minus = pool()
    pairs = differences(X, plus, minus)
    found = smoothed_hinge(pairs, np.ones(plus.size), np.zeros(6), tol=1e-9, max_iter=2)
    assert found.n_iter == 2
    assert not found.converged
