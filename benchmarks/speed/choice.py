"""Ranker(metric=...) against every single method and LogisticRegressionCV, by nested
cross-validation.

    scripts/bench choice [--data letter,a9a] [--out bench-output/choice.jsonl]

Outer folds are the same for all. `Ranker` sees the training rows of an outer fold and nothing else.
A single method is tuned on the same grid of penalties by inner folds of the same kind, and
refitted; LogisticRegressionCV has ten strengths, the same number of folds and as many jobs.
Differences are tested by the corrected resampled t-test. A single method that needs more than LIMIT
times as long as the slowest of the three choices of Ranker on an outer fold is given up, and named.
Each line of the record is one data set, measure and outer fold; recorded ones are not repeated.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from forerank import Ranker
from forerank.data import datasets
from forerank.design import make_design
from forerank.metrics.registry import metric_function
from forerank.metrics.significance import corrected_t_test
from forerank.selection.methods import METHODS, method_names, with_loose_tolerance
from forerank.solvers.path import check_alphas

SETS = [
    "diabetes",
    "spambase",
    "letter",
    "shuttle",
    "bank",
    "a9a",
    "w8a_train",
    "connect4",
    "nslkdd",
]
SETS += ["news20_bydate_forsale"]
METRICS = ["auc", "ap", "pos_at_top"]
LIMIT, PATIENCE = 1.5, 2.0
FOLDS = 5


def scaled(X_train, X_test):
    scaler = MaxAbsScaler() if sp.issparse(X_train) else StandardScaler()
    return scaler.fit_transform(X_train), scaler.transform(X_test)


def tuned_alone(name, X, y, X_test, deadline):
    """Scores of the test rows by one method, tuned for each measure; None after the deadline."""
    alphas = check_alphas(10)
    ranker = METHODS[name].make(None)
    results = np.full((len(METRICS), FOLDS, alphas.size), np.nan)
    for k, (train, test) in enumerate(
        StratifiedKFold(FOLDS, shuffle=True, random_state=1).split(X, y)
    ):
        A, B = scaled(X[train], X[test])
        for place, fitted in enumerate(with_loose_tolerance(ranker).iter_path(A, y[train], alphas)):
            scores = make_design(B).scores(fitted.coef_[0])
            results[:, k, place] = [metric_function(metric)(y[test], scores) for metric in METRICS]
            if time.perf_counter() > deadline:
                return None
    A, B = scaled(X, X_test)
    found, fits = {}, {}
    for metric, values in zip(METRICS, results.mean(axis=1), strict=True):
        alpha = float(alphas[np.argmax(values)])
        if alpha not in fits:
            fits[alpha] = make_design(B).scores(ranker.set_params(alpha=alpha).fit(A, y).coef_[0])
        found[metric] = fits[alpha]
    return found


def one_fold(data, name, fold, train, test, given_up, options):
    X, y = data.X, data.y > 0
    if not sp.issparse(X):
        X = np.nan_to_num(X)
    values = {metric: {} for metric in METRICS}
    seconds, chosen = {}, {}
    measured = {metric: metric_function(metric) for metric in METRICS}
    for metric in METRICS:
        clock = time.perf_counter()
        ranker = Ranker(metric, families="linear", random_state=0, n_jobs=options.jobs)
        ranker.fit(X[train], y[train])
        seconds[metric] = time.perf_counter() - clock
        values[metric]["Ranker"] = float(
            measured[metric](y[test], ranker.decision_function(X[test]))
        )
        chosen[metric] = [ranker.best_method_, ranker.best_alpha_]
    clock = time.perf_counter()
    scaler = MaxAbsScaler() if sp.issparse(X) else StandardScaler()
    peer = make_pipeline(
        scaler,
        LogisticRegressionCV(
            Cs=10,
            cv=StratifiedKFold(FOLDS, shuffle=True, random_state=0),
            scoring="roc_auc",
            n_jobs=options.jobs,
            max_iter=1000,
            l1_ratios=(0,),
            use_legacy_attributes=False,
        ),
    ).fit(X[train], y[train])
    seconds["LogisticRegressionCV"] = time.perf_counter() - clock
    scores = peer.decision_function(X[test])
    for metric in METRICS:
        values[metric]["LogisticRegressionCV"] = float(measured[metric](y[test], scores))
    allowed = min(LIMIT * max(seconds[metric] for metric in METRICS) + PATIENCE, options.cap)
    for method in method_names():
        if method in given_up:
            continue
        found = tuned_alone(method, X[train], y[train], X[test], time.perf_counter() + allowed)
        if found is None:
            given_up.add(method)
            continue
        for metric, scores in found.items():
            values[metric][method] = float(measured[metric](y[test], scores))
    record = {"data": name, "fold": fold, "n_train": int(train.size), "n_test": int(test.size)}
    record |= {"values": values, "seconds": seconds, "chosen": chosen}
    return record | {"given_up": sorted(given_up)}


def summary(records):
    by_set = {}
    for record in records:
        by_set.setdefault(record["data"], []).append(record)
    for metric in METRICS:
        print(f"\n{metric}")
        tied = 0
        ratios, peers = [], []
        for name, folds in by_set.items():
            folds = [fold for fold in folds if metric in fold["values"]]
            if not folds:
                continue
            own = np.array([f["values"][metric]["Ranker"] for f in folds])
            beaten_by, best = [], ("", -1.0)
            methods = set.intersection(*(set(f["values"][metric]) for f in folds)) - {"Ranker"}
            for method in sorted(methods):
                theirs = np.array([f["values"][metric][method] for f in folds])
                test = corrected_t_test(theirs - own, folds[0]["n_test"] / folds[0]["n_train"])
                mean, p = test["difference"], test["p_single"]
                if method != "LogisticRegressionCV" and mean > 0.0 and p < 0.05:
                    beaten_by.append(f"{method} (+{mean:.4f}, p {p:.3f})")
                if method != "LogisticRegressionCV" and theirs.mean() > best[1]:
                    best = (method, float(theirs.mean()))
            tied += not beaten_by
            peers.append(
                own.mean() - np.mean([f["values"][metric]["LogisticRegressionCV"] for f in folds])
            )
            peer = np.mean([f["values"][metric]["LogisticRegressionCV"] for f in folds])
            ratio = np.exp(
                np.mean(
                    [
                        np.log(f["seconds"][metric] / f["seconds"]["LogisticRegressionCV"])
                        for f in folds
                    ]
                )
            )
            ratios.append(ratio)
            print(
                f"  {name:22s} Ranker {own.mean():.4f}  best single {best[1]:.4f} ({best[0]})  "
                f"LogisticRegressionCV {peer:.4f}  time ratio {ratio:.2f}  beaten by: "
                f"{', '.join(beaten_by) or '-'}"
            )
        overall = np.exp(np.mean(np.log(ratios)))
        print(f"  at worst {min(peers):+.4f} against LogisticRegressionCV")
        print(
            f"  best or tied on {tied} of {len(ratios)}; time ratio, geometric mean: {overall:.2f}"
        )
    given_up = {
        name: folds[-1]["given_up"] for name, folds in by_set.items() if folds[-1]["given_up"]
    }
    print("\ngiven up as too slow:", given_up)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=",".join(SETS))
    parser.add_argument("--out", type=Path, default=Path("bench-output/choice.jsonl"))
    parser.add_argument(
        "--jobs", type=int, default=2, help="threads of Ranker, processes of LogisticRegressionCV"
    )
    parser.add_argument(
        "--no-singles",
        action="store_true",
        help="Ranker and LogisticRegressionCV only, for their times",
    )
    parser.add_argument(
        "--cap", type=float, default=np.inf, help="most seconds of a single method on an outer fold"
    )
    parser.add_argument("--metrics", default=",".join(METRICS))
    parser.add_argument("--summary", action="store_true", help="only print what is in the record")
    options = parser.parse_args()
    METRICS[:] = options.metrics.split(",")
    warnings.simplefilter("ignore")
    records = (
        [json.loads(line) for line in options.out.read_text().splitlines()]
        if options.out.exists()
        else []
    )
    done = {(record["data"], record["fold"]) for record in records}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for name in [] if options.summary else options.data.split(","):
        data = datasets.load(name)
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(data.X, data.y)
        given_up: set[str] = set(method_names()) if options.no_singles else set()
        for fold, (train, test) in enumerate(folds):
            if (name, fold) in done:
                continue
            given_up |= {m for r in records if r["data"] == name for m in r["given_up"]}
            record = one_fold(data, name, fold, train, test, given_up, options)
            records.append(record)
            with options.out.open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(
                name,
                fold,
                {m: round(s, 2) for m, s in record["seconds"].items()},
                record["chosen"],
                flush=True,
            )
    summary(records)


if __name__ == "__main__":
    main()
