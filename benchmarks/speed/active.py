"""Choosing what to label next, and retraining after a label, against scikit-learn's LinearSVC in
the same run.

scripts/bench active
"""

import argparse
from collections.abc import Callable
from time import perf_counter

import numpy as np
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from forerank.active import Diverse, LabellingLoop, make_strategy
from forerank.active.strategies import STRATEGIES


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    """Median seconds of calls after a first one, which compiles."""
    work()
    taken = []
    for _ in range(repeats):
        clock = perf_counter()
        work()
        taken.append(perf_counter() - clock)
    return float(np.median(taken))


def choosing(n_rows: int, rows_per_query: int, repeats: int) -> None:
    rng = np.random.default_rng(0)
    scores, labelled = rng.normal(size=n_rows), rng.uniform(size=n_rows) < 0.1
    groups = rng.permutation(np.repeat(np.arange(n_rows // rows_per_query), rows_per_query))
    print(
        f"Choosing 5 per query, {n_rows:,} rows; seconds, and as a multiple of numpy's stable "
        "argsort of the scores"
    )
    sort = median_seconds(lambda: np.argsort(scores, kind="stable"), repeats)
    print(f"{'argsort':12s} {sort:8.3f}")
    for name in STRATEGIES:
        strategy = make_strategy(name)
        given = (
            np.array([scores, *rng.normal(size=(5, n_rows))])
            if isinstance(strategy, Diverse)
            else scores
        )
        for what, of in (("one pool", None), (f"{n_rows // rows_per_query:,} queries", groups)):
            taken = median_seconds(
                lambda s=strategy, g=given, o=of: s.choose(g, labelled, groups=o, n=5), repeats
            )
            print(f"{name:12s} {taken:8.3f} {taken / sort:6.1f}x  {what}")


def documents(
    n_rows: int, n_words: int, length: int, rng: np.random.Generator
) -> tuple[sp.csr_array, np.ndarray]:
    """Documents as unit rows of words with frequencies after Zipf, and a topic that the relevant
    ones are about.
    """
    share = 1.0 / np.arange(1, n_words + 1)
    words = rng.choice(n_words, size=(n_rows, length), p=share / share.sum())
    relevant = rng.uniform(size=n_rows) < 0.05
    topic = rng.integers(100, 1000, size=20)
    words[relevant, :4] = rng.choice(topic, size=(relevant.sum(), 4))
    idf = np.log(1.0 / share)[words] + 1.0
    X = sp.csr_array(
        (idf.ravel(), words.ravel(), np.arange(0, words.size + 1, length)), shape=(n_rows, n_words)
    )
    X.sum_duplicates()
    X.data /= np.sqrt(np.repeat(np.add.reduceat(X.data**2, X.indptr[:-1]), np.diff(X.indptr)))
    X.indices, X.indptr = (
        X.indices.astype(np.int32),
        X.indptr.astype(np.int32),
    )  # as text vectorizers give them
    return X, relevant.astype(int)


def retraining(n_rows: int, n_words: int, length: int, labels: list[int], repeats: int) -> None:
    rng = np.random.default_rng(0)
    X, y = documents(n_rows, n_words, length, rng)
    order = rng.permutation(n_rows)
    print(
        f"\nRetraining after a label and choosing the next, {n_rows:,} documents, "
        f"{X.nnz / n_rows:.0f} of {n_words:,}"
    )
    print(
        "words each; medians of seconds. LinearSVC: its fit on the same labels, alone and with "
        "scoring all documents."
    )
    print(
        f"{'labels':>8s} {'fit':>7s} {'score':>7s} {'choose':>7s} {'total':>7s} {'LinearSVC':>10s} "
        f"{'ratio':>6s} {'and scores':>10s} {'ratio':>6s}"
    )
    for n in labels:
        loop = LabellingLoop(X, random_state=0)
        loop.tell(order[:n], y[order[:n]], seed=True)
        rows = loop.ask()
        steps = []
        for _ in range(repeats):
            loop.tell(rows, y[rows])
            clock = perf_counter()
            rows = loop.ask()
            steps.append([*loop.last_seconds.values(), perf_counter() - clock])
        fit, score, choose, total = np.median(steps, axis=0)
        known = np.flatnonzero(loop.labels != -1)
        part, labels_known = X[known], y[known]
        peer = median_seconds(lambda a=part, b=labels_known: LinearSVC().fit(a, b), repeats)
        scored = median_seconds(
            lambda a=part, b=labels_known: LinearSVC().fit(a, b).decision_function(X).argmax(),
            repeats,
        )
        print(
            f"{n:8,d} {fit:7.3f} {score:7.3f} {choose:7.3f} {total:7.3f} {peer:10.3f} "
            f"{total / peer:6.2f} {scored:10.3f} {total / scored:6.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    quick = parser.parse_args().quick
    choosing(20_000 if quick else 1_000_000, 100, 2 if quick else 5)
    sizes = [300, 1_000] if quick else [1_000, 5_000, 20_000, 90_000]
    retraining(
        5_000 if quick else 100_000, 20_000 if quick else 500_000, 100, sizes, 3 if quick else 7
    )


if __name__ == "__main__":
    main()
