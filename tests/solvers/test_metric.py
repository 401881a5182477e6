"""The approximation of a Hessian by its value at some weights and by steps."""

import numpy as np
from numpy.testing import assert_allclose

from forerank.solvers.metric import Metric


def matrix(d=5, seed=0):
    half = np.random.default_rng(seed).standard_normal((3 * d, d))
    return half.T @ half


def test_without_steps_it_is_the_hessian_plus_the_penalty():
    H, penalty, r = matrix(), np.arange(5.0), np.arange(1.0, 6.0)
    metric = Metric(H.copy(), np.zeros(5), penalty)
    assert_allclose(metric(r), np.linalg.solve(H + np.diag(penalty), r), rtol=1e-6)


def test_least_values_of_the_diagonal():
    H = np.diag([1.0, 0.0, 3.0])
    metric = Metric(H, np.array([0.5, 2.0, 4.0]), np.full(3, 1.0))
    assert_allclose(metric(np.ones(3)), [1 / 2, 1 / 3, 1 / 5], rtol=1e-6)


def test_steps_make_it_exact_along_them():
    true, wrong, penalty = matrix(seed=1), np.eye(5), np.full(5, 0.1)
    metric = Metric(wrong, np.zeros(5), penalty)
    rng = np.random.default_rng(2)
    for _ in range(3):
        step = rng.standard_normal(5)
        change = true @ step + penalty * step
        metric.update(step, change)
        assert_allclose(metric(change), step, rtol=1e-8)  # the secant equation
    assert metric.n_steps == 3
    smaller = np.full(5, 0.01)
    metric.change_penalty(smaller)
    assert_allclose(metric(true @ step + smaller * step), step, rtol=1e-8)


def test_a_step_without_curvature_is_left_out():
    metric = Metric(np.eye(2), np.zeros(2), np.zeros(2))
    metric.update(np.ones(2), -np.ones(2))
    assert metric.n_steps == 0


def test_a_matrix_that_is_not_positive_definite_is_replaced_by_its_diagonal():
    metric = Metric(np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros(2), np.zeros(2))
    assert_allclose(metric(np.array([1.0, 2.0])), [1.0, 2.0], rtol=1e-6)


def test_without_curvature_it_is_the_identity():
    """Where the squared hinge is zero, an intercept has neither curvature nor penalty."""
    metric = Metric(np.zeros((2, 2)), np.zeros(2), np.array([4.0, 0.0]))
    np.testing.assert_allclose(metric(np.array([2.0, 3.0])), [0.5, 3.0], rtol=1e-7)


def test_a_smaller_curvature_along_the_first_step_reduces_all_of_it():
    metric = Metric(np.diag([4.0, 4.0]), np.zeros(2), np.zeros(2))
    metric.update(np.array([1.0, 0.0]), np.array([1.0, 0.0]))  # the curvature is 1, not 4
    assert_allclose(metric(np.array([0.0, 2.0])), [0.0, 2.0], rtol=1e-7)
    metric.update(np.array([0.0, 1.0]), np.array([0.0, 0.5]))  # later steps do not
    assert_allclose(metric(np.ones(2)), [1.0, 2.0], rtol=1e-7)
    larger = Metric(np.diag([4.0, 4.0]), np.zeros(2), np.zeros(2))
    larger.update(np.array([1.0, 0.0]), np.array([9.0, 0.0]))
    assert_allclose(larger(np.array([0.0, 4.0])), [0.0, 1.0], rtol=1e-7)
