"""Data and objective values for the tests of solvers."""

import numpy as np


def problem(n=400, d=6, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.logspace(0, spread, d)
    y = X @ (rng.standard_normal(d) / np.logspace(0, spread, d)) + rng.standard_normal(n) > 0.5
    return X, y


def total(objective, design, alpha, w):
    return objective.at(design.scores(w)).value + 0.5 * alpha * w @ w
