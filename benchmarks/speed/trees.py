"""Losses of `BoostedRanker` against each other and against LightGBM's own.

    scripts/bench trees [--quick]

Queries: on MQ2008 (five folds: three parts to train on, one to choose the number of rounds, one to
test) and MSLR (5,000 rows of a fold to train on and to test), exact losses over
all pairs of a query beside LightGBM's lambdarank with the same trees: NDCG@10 and MAP.

Pairs or rows: on the tables and archives of _table_sets.py that are not kept aside, three splits,
the number of rounds by cross-validation: AUC of the logistic loss on rows and over all pairs, wins,
ties and losses of the latter (by 0.002), and a paired t-test over the sets.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import warnings

import lightgbm
import numpy as np
from _table_sets import ARCHIVES, KEPT_ASIDE, SPLITS, TABLES
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.stats import ttest_1samp

from forerank import BoostedRanker, metrics
from forerank.data import datasets
from tables import arrays, table

ROUNDS = (20, 40, 60, 80, 110, 150, 200, 270, 350)
LEAVES, RATE = 15, 0.08
PAIR_LOSSES = ("pairwise-logistic", "pairwise-squared-hinge", "pairwise-exponential")
# Differences of AUC below this are ties.
TIE = 0.002


def query_measures(y, scores, qid):
    """NDCG@10 and mean average precision; grades above 0 are relevant."""
    ndcg = metrics.ndcg(y, scores, k=10, qid=qid)
    return float(ndcg), float(metrics.average_precision(y > 0, scores, qid=qid))


def lambdarank_scores(train, X_test):
    """Scores of other rows after each number of rounds."""
    X, y, qid = train
    order = np.argsort(qid, kind="stable")
    sizes = np.unique(qid[order], return_counts=True)[1]
    rows = lightgbm.Dataset(X[order], y[order], group=sizes)
    params = {"objective": "lambdarank", "num_leaves": LEAVES, "learning_rate": RATE}
    params |= {"lambda_l2": 1.0, "feature_fraction": 0.8, "verbosity": -1, "seed": 0}
    booster = lightgbm.train(params | {"num_threads": 1}, rows, ROUNDS[-1])
    for rounds in ROUNDS:
        yield booster.predict(X_test, num_iteration=rounds)


def loss_scores(loss, train, X_test):
    X, y, qid = train
    ranker = BoostedRanker(loss, max_leaf_nodes=LEAVES, learning_rate=RATE, graph="order",
                           n_jobs=1, random_state=0)  # fmt: skip
    return ranker.iter_scores(X, y, X_test, ROUNDS, qid=qid)


def query_folds(quick):
    data = datasets.load("letor_mq2008")
    parts = np.load(datasets.data_directory() / "letor_mq2008.npz")["part"]
    names = sorted(set(parts.tolist()))
    for fold in range(1 if quick else 5):
        turn = names[fold:] + names[:fold]
        rows = [np.isin(parts, turn[:3]), parts == turn[3], parts == turn[4]]
        yield "MQ2008", [(data.X[r], data.y[r], data.qid[r]) for r in rows]
    if not quick:
        train, test = (datasets.load(f"ltr_mslr10k_fold1_{part}5k") for part in ("train", "test"))
        inner = np.unique(train.qid, return_inverse=True)[1] % 5 == 0
        yield (
            "MSLR",
            [
                *((train.X[r], train.y[r], train.qid[r]) for r in (~inner, inner)),
                (test.X, test.y, test.qid),
            ],
        )


def queries(quick):
    found = {}
    for name, (train, validate, test) in track(list(query_folds(quick)), "queries"):
        both = np.concatenate([validate[0], test[0]])
        n = validate[1].size
        for loss in ("lambdarank", *PAIR_LOSSES):
            make = lambdarank_scores if loss == "lambdarank" else loss_scores
            arguments = (train, both) if loss == "lambdarank" else (loss, train, both)
            best = max(
                (
                    query_measures(validate[1], s[:n], validate[2])[0],
                    query_measures(test[1], s[n:], test[2]),
                )
                for s in (scores.copy() for scores in make(*arguments))
            )
            found.setdefault((name, loss), []).append(best[1])
    shown = Table("data", "loss", "folds", "NDCG@10", "MAP", title="Within queries")
    for (name, loss), each in found.items():
        ndcg, ap = np.mean(each, axis=0)
        shown.add_row(name, loss, str(len(each)), f"{ndcg:.4f}", f"{ap:.4f}")
    return shown


def pairs_or_rows(quick):
    names = [name for name in (*TABLES, *ARCHIVES) if name not in KEPT_ASIDE]
    differences = {}
    tasks = [(name, split) for name in names[: 3 if quick else None] for split in SPLITS]
    for name, split in track(tasks, "pairs or rows"):
        forms, y, y_test, categorical, _ = (table if name in TABLES else arrays)(name, split)
        X, X_test = forms["trees"]
        if X.shape[1] > 400:
            continue
        aucs = []
        for loss in ("logistic", "pairwise-logistic"):
            ranker = BoostedRanker(loss, learning_rate=RATE, n_jobs=1, random_state=split)
            ranker.set_params(categorical_features=categorical or None)
            aucs.append(metrics.roc_auc(y_test, ranker.fit(X, y).decision_function(X_test)))
        differences.setdefault(name, []).append(aucs[1] - aucs[0])
    means = np.array([np.mean(each) for each in differences.values()])
    wins, losses = int(np.sum(means > TIE)), int(np.sum(means < -TIE))
    return (
        f"AUC over pairs less that on rows, {means.size} sets: {wins} wins, "
        f"{means.size - wins - losses} ties, {losses} losses, mean {means.mean():+.4f}, "
        f"p = {ttest_1samp(means, 0.0).pvalue:.2f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one fold of MQ2008 and three tables")
    args = parser.parse_args()
    console = Console(width=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # queries without pairs
        console.print(queries(args.quick))
        console.print(pairs_or_rows(args.quick))


if __name__ == "__main__":
    main()
