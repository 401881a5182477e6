"""A fit on workers in processes of their own, one of which is killed."""

import os
import signal
import threading

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from forerank import PairwiseRanker, metrics
from forerank.dask.partitions import Partitions
from forerank.estimators import dask_fits

SIZES = (700, 0, 300, 1_000, 5, 995)


def bits(ranker):
    return [*ranker.coef_[0].tolist(), *ranker.intercept_.tolist(), ranker.objective_]


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
    assert len(passes) > 3
    assert bits(ranker) == bits(expected)
    assert abs(found - metrics.roc_auc(y, ranker.decision_function(X))) < 1e-14
