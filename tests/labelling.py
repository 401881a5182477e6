"""A small pool of rows and a labelling loop on it, for the tests of active learning."""

import numpy as np

from forerank.active import LabellingLoop


def small_pool(n=120, n_columns=8, seed=0):
    """Rows of which the minority is relevant, by a linear rule with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns))
    y = (X @ rng.normal(size=n_columns) + rng.normal(size=n) > 2.0).astype(int)
    return X, y


def start(X, y, **options):
    """A loop with one relevant and one irrelevant seed."""
    loop = LabellingLoop(X, random_state=0, **options)
    seeds = [int(np.argmax(y == 1)), int(np.argmax(y == 0))]
    loop.tell(seeds, y[seeds], seed=True)
    return loop
