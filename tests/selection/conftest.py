"""Rows for the tests of this folder."""

import numpy as np
import pytest


def make_rows(n=400, d=5, seed=0, noise=1.0, threshold=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.array([1.0, 10.0, 0.1, 1.0, 3.0])[:d] + np.arange(d)
    y = X[:, 0] + (X[:, 1] - 1) / 10 + noise * rng.standard_normal(n) > threshold
    return X, y


@pytest.fixture
def data():
    """A function that makes X and y: columns of different scales, two of them informative."""
    return make_rows
