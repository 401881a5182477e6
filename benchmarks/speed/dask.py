"""Fits on Dask collections: bits for any number of workers, killed workers, bytes sent, peers.

    scripts/bench dask [--rows N] [--kills K] [--only bits|kills|bytes] [--large] [--loss LOSS]
                       [--tol T ...] [--peers] [--json FILE]

One JSON line per figure, all with LocalCluster and processes of one thread:

- bits: coefficients and intercept for 1, 2 and 4 workers and for 7 to 100 partitions, some empty;
- kills: fits in which a worker gets SIGKILL at a random moment, and how many have the same bits;
- bytes: what tasks return in one evaluation, what goes to a worker, and what workers send each
  other, at 1e6 rows, and with --large at 1e7; for one loss and some tolerances;
- peers: time to equal AUC beside dask-ml's LogisticRegression, and xgboost.dask with killed
  workers, where they are installed (--peers).
"""

import argparse
import importlib.util
import json
import os
import pickle
import signal
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter

# This file is called dask.py: without its folder, `import dask` finds the library.
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != HERE]

import dask  # noqa: E402
import dask.array as da  # noqa: E402
import numpy as np  # noqa: E402
from distributed import Client, LocalCluster, get_client, wait  # noqa: E402

from forerank import PairwiseRanker, metrics  # noqa: E402
from forerank.dask.partitions import Partitions  # noqa: E402

COLUMNS = 50
ALPHA = 1e-4
# Seconds after which a fit with a killed worker counts as not finished.
PATIENCE = 60


def block_of(number, size):
    """Rows and labels of a partition, the same wherever they are made."""
    rng = np.random.default_rng(number)
    X = rng.standard_normal((size, COLUMNS), dtype=np.float32)
    w = np.linspace(1.0, -1.0, COLUMNS)
    return X, (X @ w + 6.0 * rng.standard_normal(size) > 9.0).astype(np.int8)


def collections(n_rows, n_partitions, empty=True):
    """X and y made on the workers, every tenth partition empty."""
    filled = [k for k in range(n_partitions) if not (empty and k % 10 == 3)]
    sizes = np.zeros(n_partitions, dtype=int)
    sizes[filled] = n_rows // len(filled)
    blocks = [dask.delayed(block_of)(k, int(sizes[k])) for k in range(n_partitions)]
    X = [
        da.from_delayed(b[0], (int(m), COLUMNS), np.float32)
        for b, m in zip(blocks, sizes, strict=True)
    ]
    y = [da.from_delayed(b[1], (int(m),), np.int8) for b, m in zip(blocks, sizes, strict=True)]
    return da.concatenate(X), da.concatenate(y)


def cluster_of(n_workers):
    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0"
    )


def fitted(X, y, **options):
    return PairwiseRanker(alpha=ALPHA, **options).fit(X, y)


def bits(ranker):
    return [*ranker.coef_[0].tolist(), *ranker.intercept_.tolist(), ranker.objective_]


def same_bits(n_rows):
    """Whether 1, 2 and 4 workers and the local scheduler give the same bits."""
    found, seconds = {}, {}
    partitions = (7, 30, 100)
    for n_partitions in partitions:
        with dask.config.set(scheduler="threads"):
            found[n_partitions] = [bits(fitted(*collections(n_rows, n_partitions)))]
    for n_workers in (1, 2, 4):
        with cluster_of(n_workers) as cluster, Client(cluster):
            for n_partitions in partitions:
                X, y = dask.persist(*collections(n_rows, n_partitions))
                wait([X, y])
                clock = perf_counter()
                found[n_partitions].append(bits(fitted(X, y)))
                seconds[f"{n_workers} workers, {n_partitions} partitions"] = perf_counter() - clock
    same = all(each == rows[0] for rows in found.values() for each in rows)
    yield {"figure": "bits", "rows": n_rows, "same": same, "seconds": seconds}


class Passes:
    """Sizes in bytes of what each pass sends to a worker, has back from a task, and adds up to."""

    def __enter__(self):
        self.plain, self.sent, self.returned, self.total = Partitions.sum, [], [], []

        def counting(partitions, function):
            self.sent.append(size(function))
            self.returned += partitions.map(partial(size_of_result, function=function))
            total = self.plain(partitions, function)
            self.total.append(size(total))
            return total

        Partitions.sum = counting
        return self

    def __exit__(self, *error):
        Partitions.sum = self.plain


def size(value):
    return len(pickle.dumps(value, protocol=5))


def size_of_result(*blocks, function):
    return size(function(*blocks))


def sent_by_workers(client):
    """Bytes that workers have sent, and those of them that are blocks of X and y, which move where
    Dask gives a task to an idle worker.
    """

    def of_worker(dask_worker):
        sent = [each["keys"].items() for each in dask_worker.transfer_outgoing_log]
        blocks = sum(size for keys in sent for key, size in keys if "concatenate" in str(key))
        return dask_worker.transfer_outgoing_bytes_total, blocks

    return np.sum(list(client.run(of_worker).values()), axis=0)


def bytes_sent(n_rows, n_partitions, options, n_workers=2):
    """Bytes of an evaluation: functions to a worker, results of tasks, and between workers."""
    with cluster_of(n_workers) as cluster, Client(cluster) as client:
        client.wait_for_workers(n_workers, timeout=60)
        X, y = dask.persist(*collections(n_rows, n_partitions, empty=False))
        wait([X, y])
        partitions_held = [
            sum("concatenate" in str(key) for key in keys) for keys in client.has_what().values()
        ]
        before, clock = sent_by_workers(client), perf_counter()
        ranker = fitted(X, y, **options)
        seconds = perf_counter() - clock
        between, blocks = (sent_by_workers(client) - before) / n_workers
        with Passes() as passes:
            fitted(X, y, **options)
    evaluations = ranker.n_iter_ + 1
    yield {
        "figure": "bytes",
        "rows": n_rows,
        **options,
        "partitions held": partitions_held,
        "seconds": seconds,
        "evaluations": evaluations,
        "passes": len(passes.sent),
        "function to a worker": max(passes.sent),
        "result of a task": max(passes.returned),
        "sum at the client": max(passes.total),
        "between workers, scans and sample included": between,
        "of these, blocks of X and y": blocks,
        "per worker and evaluation": (sum(passes.sent) + between) / evaluations,
        "without blocks": (sum(passes.sent) + between - blocks) / evaluations,
    }


def killed_at_random(fit, kills, span, seed=0):
    """Results of fits in which a worker is killed at a random moment of `span` seconds."""
    rng, results = np.random.default_rng(seed), []
    for _ in range(kills):
        # A new cluster each time: restarted workers may take a minute to arrive.
        with cluster_of(2) as cluster, Client(cluster) as client:
            pids = list(client.run(os.getpid).values())
            victim = pids[int(rng.integers(len(pids)))]
            timer = threading.Timer(float(rng.uniform(0.0, span)), kill, (victim,))
            timer.start()
            pool = ThreadPoolExecutor(1)
            try:
                results.append(pool.submit(fit).result(PATIENCE))
            except TimeoutError:
                results.append(f"no result in {PATIENCE} s")
            except Exception as error:
                results.append(f"{type(error).__name__}: {error}"[:200])
            timer.join()
            pool.shutdown(wait=False)
    return results


def kill(pid):
    os.kill(pid, signal.SIGKILL)


def kills_survived(n_rows, n_partitions, kills):
    def fit():
        return bits(fitted(*dask.persist(*collections(n_rows, n_partitions))))

    with cluster_of(2) as cluster, Client(cluster):
        fit()
        clock = perf_counter()
        expected = fit()
        span = perf_counter() - clock
    results = killed_at_random(fit, kills, span)
    finished = [each for each in results if not isinstance(each, str)]
    yield {
        "figure": "kills",
        "rows": n_rows,
        "kills": kills,
        "span": span,
        "finished": len(finished),
        "same bits": sum(each == expected for each in finished),
        "errors": [each for each in results if isinstance(each, str)],
    }


def peers(n_rows, n_partitions, kills):
    """dask-ml's logistic regression to equal AUC, and xgboost.dask with killed workers."""
    for name in ("dask_ml", "xgboost"):
        if importlib.util.find_spec(name) is None:
            yield {"figure": "peers", "peer": name, "skipped": "not installed"}
    if importlib.util.find_spec("dask_ml") is not None:
        yield dask_ml_fit(n_rows, n_partitions)
    if importlib.util.find_spec("xgboost") is not None:
        yield xgboost_kills(n_rows, n_partitions, kills)


def dask_ml_fit(n_rows, n_partitions):
    from dask_ml.linear_model import LogisticRegression

    figure = {"figure": "peers", "peer": "dask_ml.LogisticRegression", "rows": n_rows}
    with cluster_of(2) as cluster, Client(cluster):
        X, y = dask.persist(*collections(n_rows, n_partitions, empty=False))
        wait([X, y])
        clock = perf_counter()
        ranker = fitted(X, y)
        ours = perf_counter() - clock
        auc = metrics.roc_auc(y, ranker.decision_function(X))
        try:
            clock = perf_counter()
            peer = LogisticRegression(solver="lbfgs", C=1.0 / (n_rows * ALPHA)).fit(X, y)
            theirs = perf_counter() - clock
            peer_auc = metrics.roc_auc(y, X @ np.asarray(peer.coef_).ravel())
        except Exception as error:
            return {**figure, "error": f"{type(error).__name__}: {error}"[:300], "ours": ours}
    ratio = theirs / ours
    return {**figure, "ours": ours, "theirs": theirs, "ratio": ratio, "auc": [auc, peer_auc]}


def xgboost_kills(n_rows, n_partitions, kills):
    from xgboost import dask as xgb

    def fit():
        client = get_client()
        X, y = dask.persist(*collections(n_rows, n_partitions, empty=False))
        rows = xgb.DaskDMatrix(client, X, y)
        settings = {"tree_method": "hist", "objective": "binary:logistic", "nthread": 1}
        return xgb.train(client, settings, rows, num_boost_round=20)["booster"].save_raw().hex()

    with cluster_of(2) as cluster, Client(cluster):
        fit()
        clock = perf_counter()
        expected = fit()
        span = perf_counter() - clock
    results = killed_at_random(fit, kills, span)
    finished = [each for each in results if len(each) == len(expected) or each[:6] == expected[:6]]
    errors = sorted({each[:120] for each in results if each not in finished})
    same = sum(each == expected for each in finished)
    return {
        "figure": "peers", "peer": "xgboost.dask", "kills": kills, "finished": len(finished),
        "same bits": same, "errors": errors,
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--large", action="store_true", help="bytes at 1e7 rows, too (2 GB)")
    parser.add_argument("--loss", default="squared_hinge", help="of the bytes")
    parser.add_argument("--tol", type=float, nargs="+", default=[1e-4], help="of the bytes")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--only", choices=["bits", "kills", "bytes"])
    parser.add_argument("--json")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="Sending large graph")
    figures = []
    if options.only in (None, "bits"):
        figures.append(lambda: same_bits(options.rows))
    if options.only in (None, "kills"):
        figures.append(lambda: kills_survived(options.rows, 30, options.kills))
    if options.only in (None, "bytes"):
        for tol in options.tol:
            fit = {"loss": options.loss, "tol": tol}
            figures += [partial(bytes_sent, 10**6, 20, fit)]
            figures += [partial(bytes_sent, 10**7, 20, fit)] * options.large
    if options.peers:
        figures.append(lambda: peers(10**6, 20, options.kills))
    lines = []
    for figure in figures:
        for line in figure():
            lines.append(json.dumps(line))
            print(lines[-1], flush=True)
    if options.json:
        with open(options.json, "w") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
