"""Rows with missing values and categories, for the tests of trees."""

from itertools import combinations
from math import comb

import numpy as np


def mixed_rows(n, seed=0, n_codes=12, missing=0.1):
    """Three numbers, the first and the last with missing values, a column of codes, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 3] = rng.integers(0, n_codes, n)
    X[rng.random(n) < missing, 0] = np.nan
    X[rng.random(n) < missing, 3] = np.nan
    useful = np.nan_to_num(X[:, 0]) + X[:, 1] * X[:, 2] + 1.5 * (X[:, 3] % 3 == 0)
    return X, (useful + rng.normal(size=n) > 0.7).astype(int)


def new_rows(n, seed=1, n_codes=20):
    """Rows with missing values in every column, and codes that `mixed_rows` does not have."""
    rng = np.random.default_rng(seed)
    X = 1.5 * rng.normal(size=(n, 4))
    X[:, 3] = rng.integers(0, n_codes, n)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[: n // 4, :3] = np.round(X[: n // 4, :3])  # zeros
    return X


def goes_left(tree, node, x):
    """The rule of a node in plain Python."""
    if tree.bits[node] < 0:
        return tree.missing_left[node] if np.isnan(x) else x <= tree.threshold[node]
    words = tree.words[tree.first_word[tree.bits[node]] : tree.first_word[tree.bits[node] + 1]]
    codes = [32 * k + b for k, word in enumerate(words) for b in range(32) if int(word) >> b & 1]
    return (x in codes) != tree.missing_left[node]


def expected_value(tree, x, known, root=0, node=0):
    """The mean value of a tree where only some columns of the row are known: unknown ones follow
    the shares of the training rows.
    """
    at = root + node
    k = tree.feature[at]
    if k < 0:
        return tree.value[at]
    children = tree.left[at], tree.right[at]
    if k in known:
        return expected_value(tree, x, known, root, children[not goes_left(tree, at, x[k])])
    shares = [tree.cover[root + child] / tree.cover[at] for child in children]
    parts = [expected_value(tree, x, known, root, child) for child in children]
    return float(np.dot(shares, parts))


def shapley_values(ensemble, x):
    """The definition, over all coalitions of columns; the last entry is the mean."""
    d, roots = ensemble.n_features, ensemble.first_node[:-1]

    def game(known):
        return sum(expected_value(ensemble, x, known, root) for root in roots)

    values = np.zeros(d + 1)
    values[d] = ensemble.constant + game(())
    for k in range(d):
        others = [j for j in range(d) if j != k]
        for size in range(d):
            for known in combinations(others, size):
                gain = game((*known, k)) - game(known)
                values[k] += gain / (d * comb(d - 1, size))
    return values
