"""Quadratic programmes by an active set: certificates, and scipy's least squares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import nnls

from forerank.solvers.active_set import active_set


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
    found = active_set(A @ A.T, -A @ b, None, start, total=1.0, constant=constant, **goal)
    return None if found is None else found[0]


def half_square(r):
    return 0.5 * float(r @ r)


@settings(max_examples=80)
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


def capped_problem(n, d, seed, integers):
    """A programme whose last column bounds the sum, as the curvature of the threshold does; caps of
    sum above one, equal ones for every second seed.
    """
    rng = np.random.default_rng(seed)
    A = rng.integers(0, 2, (n, d)) if integers else rng.standard_normal((n, d))
    A = np.column_stack([A, -np.ones(n)]).astype(float)
    b = np.append(0.1 * rng.standard_normal(d), -2.0)
    equal = np.full(n, 1.0 / rng.integers(1, n + 1))
    shares = equal if seed % 2 else np.minimum(rng.random(n) + 1.0 / n, 1.0)
    return A @ A.T, -A @ b, shares, 0.5 * float(b @ b), rng


@settings(max_examples=150)
@given(
    n=st.integers(1, 60),
    d=st.integers(0, 30),
    seed=st.integers(0, 10**6),
    integers=st.booleans(),
    warm=st.booleans(),
)
def test_caps(n, d, seed, integers, warm):
    Q, h, shares, constant, rng = capped_problem(n, d, seed, integers)
    start = rng.random(n) * (rng.random(n) < 0.5) * warm
    goal = {"total": 1.0, "constant": constant, "atol": 1e-8}
    found = active_set(Q, h, shares, start, rtol=0.0, **goal)
    if found is None:
        assert n <= d  # x = 0 can be the solution; the caps of one variable then need the others
        return
    x, free = found
    assert x.min() >= 0.0
    assert np.all(x <= shares * x.sum() * (1.0 + 1e-9))
    between = (x > 0.0) & (x < shares * x.sum() * (1.0 - 1e-9))
    assert np.all(free[between])
    # The feasible points are the multiples of weights beta with sum one, at most the shares: x is
    # the minimiser if the slope is zero along x, and not negative along any beta.
    slope = Q @ x + h
    order = np.argsort(slope)
    lowest = np.diff(np.minimum(np.cumsum(shares[order]), 1.0), prepend=0.0)
    assert abs(slope @ x) <= 1e-7
    assert lowest @ slope[order] >= -1e-7
