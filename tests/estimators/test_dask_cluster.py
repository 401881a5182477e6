"""A fit on workers in processes of their own, one of which is killed."""

import os
import signal
import threading

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from forerank import PairwiseRanker, metrics
from forerank.dask.partitions import Partitions
from forerank.estimators import dask_fits

SIZES = (700, 0, 300, 1_000, 5, 995)


def bits(ranker):
    return [*ranker.coef_[0].tolist(), *ranker.intercept_.tolist(), ranker.objective_]


def fit_of_shuffled_rows(X, y):
    """Workers send each other the rows of a shuffle, which then are in another order each time."""
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, qid=np.arange(len(y)) % 70)
    parts = dd.from_pandas(frame, npartitions=5).shuffle(on="qid")
    ranker = PairwiseRanker(tol=1e-9).fit(parts[list("abcd")], parts["y"], qid=parts["qid"])
    scores = ranker.decision_function(parts[list("abcd")])
    return ranker, metrics.roc_auc(parts["y"], scores, qid=parts["qid"])


def assert_is_fit_in_memory(ranker, auc, X, y):
    qid = np.arange(len(y)) % 70
    expected = PairwiseRanker(tol=1e-9).fit(X, y, qid=qid)
    np.testing.assert_allclose(ranker.coef_, expected.coef_, atol=1e-7)
    assert abs(auc - metrics.roc_auc(y, X @ expected.coef_[0], qid=qid)) < 1e-9


def test_same_bits_after_a_worker_is_killed(monkeypatch):
    monkeypatch.setattr(dask_fits, "_MOST_ROWS", 300)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((sum(SIZES), 4))
    y = (X[:, 0] + rng.standard_normal(len(X)) > 1.0).astype(int)
    X_parts = da.from_array(X, chunks=(SIZES, 4))
    y_parts = da.from_array(y, chunks=(SIZES,))
    with dask.config.set(scheduler="synchronous"):
        expected = PairwiseRanker("logistic", tol=1e-8).fit(X_parts, y_parts)
    passes, plain = [], Partitions.sum

    def counting(self, function):
        passes.append(function)
        if len(passes) == 3:  # while the tasks of the third pass run
            threading.Timer(0.02, os.kill, (victim, signal.SIGKILL)).start()
        return plain(self, function)

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(processes=True, **options) as cluster, Client(cluster) as client:
        victim = next(iter(client.run(os.getpid).values()))
        monkeypatch.setattr(Partitions, "sum", counting)
        ranker = PairwiseRanker("logistic", tol=1e-8).fit(X_parts.persist(), y_parts.persist())
        found = metrics.roc_auc(y_parts, ranker.decision_function(X_parts))
        assert victim not in client.run(os.getpid).values()
        shuffled = fit_of_shuffled_rows(X, y)
    assert len(passes) > 3
    assert bits(ranker) == bits(expected)
    assert_is_fit_in_memory(*shuffled, X, y)
    assert abs(found - metrics.roc_auc(y, ranker.decision_function(X))) < 1e-14
