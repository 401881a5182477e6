"""Rows and results for the tests of comparisons."""

import numpy as np

from forerank.workflows.compare import Comparison

DUMMY = "sklearn.dummy.DummyClassifier"
PAIRS = "PairwiseRanker(alpha=0.01)"


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    return X, (X[:, 0] + X[:, 1] + rng.standard_normal(n) > 1).astype(int)


def made(values, n_train=80, n_test=20):
    """A comparison with these values of each method, five folds to a seed."""
    records = [
        {
            "method": name,
            "seed": k // 5,
            "fold": k % 5,
            "value": v,
            "measures": {"auc": v, "ap": v / 2},
        }
        | {"n_train": n_train, "n_test": n_test, "fit_seconds": 1.0 + k, "score_seconds": 0.1}
        if v is not None
        else {
            "method": name,
            "seed": k // 5,
            "fold": k % 5,
            "n_train": n_train,
            "n_test": n_test,
            "error": "no",
        }
        for name, own in values.items()
        for k, v in enumerate(own)
    ]
    n = len(next(iter(values.values())))
    return Comparison(records, "auc", list(values), 5, list(range(-(-n // 5))))
