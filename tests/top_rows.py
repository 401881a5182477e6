"""Rows for the tests of the rankers for the top: a noisy linear score, few positives."""

import numpy as np


def data(n=300, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = (X @ np.arange(1, d + 1) + rng.standard_normal(n) > 4.0).astype(int)
    return X, y
