"""Programmes by block pivoting, against scipy's least squares."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import nnls

from forerank.solvers.quadratic_program import Gram, pivoting


def problem(n, seed, noise):
    """Rows that are nearly dependent where there is little noise, and a target."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, max(n // 4, 1))) @ rng.standard_normal((max(n // 4, 1), n + 2))
    return A + noise * rng.standard_normal(A.shape), rng.standard_normal(n + 2)


def minimum(A, b, guess):
    constant = 0.5 * float(b @ b)
    return pivoting(Gram(A @ A.T), -A @ b, guess, total=1.0, constant=constant, atol=1e-11)


def assert_is_minimum(A, b, found):
    assert found is not None
    x, active = found
    assert x.min() >= 0.0
    assert not x[~active].any()
    expected, residual = nnls(A.T, b)
    assert_allclose(float(np.linalg.norm(A.T @ x - b)), residual, rtol=1e-2)
    assert_allclose(x @ A, expected @ A, atol=0.2 * float(np.linalg.norm(b)))


@settings(max_examples=60)
@given(n=st.integers(1, 60), seed=st.integers(0, 10**6), everything=st.booleans())
def test_what_is_found_is_the_minimum_of_least_squares(n, seed, everything):
    A, b = problem(n, seed, 0.3)
    guess = np.ones(n, bool) if everything else np.random.default_rng(seed).random(n) < 0.5
    found = minimum(A, b, guess)
    if found is not None:
        assert_is_minimum(A, b, found)


@pytest.mark.parametrize("noise", [0.03, 0.1, 0.3])
def test_exchanges_do_not_repeat(noise):
    for seed in range(12):
        A, b = problem(200, seed, noise)
        assert_is_minimum(A, b, minimum(A, b, np.ones(200, bool)))


def test_a_wrong_guess_is_corrected():
    A, b = np.eye(4), np.array([1.0, 2.0, -1.0, 0.5])
    x, active = minimum(A, b, np.array([False, False, True, False]))
    assert_allclose(x, [1.0, 2.0, 0.0, 0.5], rtol=1e-6)
    assert active.tolist() == [True, True, False, True]
