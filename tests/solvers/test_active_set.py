"""Quadratic programmes with non-negative variables against scipy's least squares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import nnls

from forerank.solvers.active_set import non_negative_minimiser


def least_squares(n, d, seed, copies):
    """Rows of small integers, some of them equal and all of them dependent for n > d."""
    rng = np.random.default_rng(seed)
    A = rng.integers(-1, 3, (n, d)).astype(float)
    A = A[rng.integers(0, n, n)] if copies else A
    return A, rng.standard_normal(d) + 0.5


def minimum(A, b, start=None, **goal):
    goal = {"atol": 1e-10, "rtol": 0.0, **goal}
    start = np.zeros(len(A)) if start is None else start
    constant = 0.5 * float(b @ b)
    return non_negative_minimiser(A @ A.T, -A @ b, start, total=1.0, constant=constant, **goal)


def half_square(r):
    return 0.5 * float(r @ r)


@settings(max_examples=80, deadline=None)
@given(
    n=st.integers(1, 60),
    d=st.integers(1, 30),
    seed=st.integers(0, 10**6),
    copies=st.booleans(),
    warm=st.booleans(),
)
def test_the_minimum_is_that_of_least_squares(n, d, seed, copies, warm):
    A, b = least_squares(n, d, seed, copies)
    A = A[np.any(A != 0.0, axis=1)]
    if len(A) == 0:
        return
    rng = np.random.default_rng(seed)
    start = rng.random(len(A)) * (rng.random(len(A)) < 0.5) if warm else None
    x = minimum(A, b, start)
    assert x is not None
    assert x.min() >= 0.0
    assert np.count_nonzero(x) <= np.linalg.matrix_rank(A)
    expected = 0.5 * nnls(A.T, b)[1] ** 2
    assert_allclose(half_square(A.T @ x - b), expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("n", [50, 400])
def test_equal_constraints_share_one_variable(n):
    A = np.tile(np.eye(3), (n, 1))
    x = minimum(A, np.array([1.0, 2.0, -1.0]))
    assert np.count_nonzero(x) == 2
    assert_allclose(A.T @ x, [1.0, 2.0, 0.0], atol=1e-12)


def test_the_error_is_at_most_the_goal():
    A, b = least_squares(200, 60, 0, False)
    exact = half_square(A.T @ minimum(A, b) - b)
    for atol, rtol in ((0.5, 0.0), (0.0, 0.1)):
        rough = half_square(A.T @ minimum(A, b, atol=atol, rtol=rtol) - b)
        assert exact <= rough <= exact + max(atol, rtol * rough) * 60


def test_the_start_is_not_changed():
    A, b = least_squares(20, 10, 1, False)
    start = np.ones(20)
    minimum(A, b, start)
    assert_allclose(start, 1.0)
