"""Rows of many kinds, and sums over parts of them."""

import itertools
import pickle

import numpy as np

from forerank.objectives.parts import Point, Rows


def made_rows(kind="normal", n=900, d=4, n_classes=2, weighted=False, grouped=False, seed=0):
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    if kind == "lattice":
        X, w = np.round(X * 4) / 4, np.round(w * 2) / 2
    if kind == "tied":
        X[:] = X[rng.integers(0, 9, n)]
    if kind == "wide":
        w *= 500.0
    codes = rng.integers(0, n_classes, n)
    if kind == "rare":
        codes = (np.arange(n) % 300 == 7).astype(int)
    weight = rng.uniform(0.0, 2.0, n) * (rng.uniform(size=n) > 0.1) if weighted else None
    group = np.sort(rng.integers(0, n // 12, n)) if grouped else None
    return Rows(X, codes, weight, group), w


def in_parts(rows):
    """Parts of different sizes: an empty one, one of a single row, groups in one piece."""
    cuts = [0, 0, 1, rows.n_rows // 3, rows.n_rows - 5, rows.n_rows]
    if rows.group is not None:
        cuts = [int(np.searchsorted(rows.group, rows.group[min(c, rows.n_rows - 1)])) for c in cuts]
        cuts[-1] = rows.n_rows
    for a, b in itertools.pairwise(cuts):
        yield Rows(
            rows.X[a:b],
            rows.codes[a:b],
            None if rows.weight is None else rows.weight[a:b],
            None if rows.group is None else rows.group[a:b],
        )


def over(rows):
    def over_parts(function):
        function = pickle.loads(pickle.dumps(function))
        results = [pickle.loads(pickle.dumps(function(part))) for part in in_parts(rows)]
        return sum(results[1:], start=results[0])

    return over_parts


def raw_point(w):
    return Point(w, np.zeros(w.size), np.ones(w.size))
