"""Regret of the choice of `Ranker`: the test value of the best candidate in hindsight, less that of
the chosen one, over repeated splits of about a hundred data sets.

    scripts/bench regret [--out bench-output/regret.jsonl] [--sets tuned|aside|all]
    scripts/bench regret --summary bench-output/regret.jsonl [--before earlier.jsonl]
    scripts/bench regret --refits

For each data set and split, every candidate method is fitted along the penalties on each fold, as
`Ranker` does, and once afresh at each penalty on all training rows, whose test value counts. The
choice is that of `Ranker` itself. LogisticRegressionCV has the same rows. A line of the record is a
data set and a split; recorded ones are not repeated. `--sets tuned` are the sets that rules may be
compared on, `aside` those kept until the end (see _regret_sets.py). `--refits` compares, on 20
data sets, the score of the selected candidate in the table of `Ranker`, whose fits follow a path
with a loose tolerance, with that of fits afresh at the selected penalty.
"""

import argparse
import json
import warnings
from pathlib import Path
from time import process_time

import numpy as np
import scipy.sparse as sp
from _regret_sets import KEPT_ASIDE, SETS, SPLITS, each, load
from rich.progress import track
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from forerank import Ranker
from forerank.design import make_design
from forerank.metrics.registry import metric_function
from forerank.selection.methods import METHODS, fitted_scaler, method_names

METRICS = ("auc", "ap")
# Text, one-hot columns, more columns than rows, few rows or few positives, and ordinary tables.
REFITTED = (
    "news20_bydate_forsale", "Cohen_2006_ACEInhibitors", "Cohen_2006_ADHD", "Cohen_2006_Opioids",
    "Nagtegaal_2019", "food_reviews", "hhs_noleak", "w8a_train", "mnist_0", "ad_data", "hepatitis",
    "haberman", "colic", "letter", "bank", "nslkdd", "shuttle", "covid_first", "made13", "made32",
)  # fmt: skip


def logistic_regression_scores(X, y, X_test):
    """Scores of LogisticRegressionCV with ten strengths and as many folds as `Ranker`."""
    peer = make_pipeline(
        MaxAbsScaler() if sp.issparse(X) else StandardScaler(),
        LogisticRegressionCV(
            Cs=10,
            cv=StratifiedKFold(5, shuffle=True, random_state=0),
            scoring="roc_auc",
            max_iter=1000,
            l1_ratios=(0,),
            use_legacy_attributes=False,
        ),
    )
    return peer.fit(X, y).decision_function(X_test)


def scaled(X_train, X_test):
    """Both parts scaled as `Ranker` does: rows of length one stay as they are."""
    scaler = fitted_scaler(True, X_train, None)
    return (X_train, X_test) if scaler is None else map(scaler.transform, (X_train, X_test))


def fresh_values(methods, alphas, X, y, X_test, y_test):
    """Test values by measure of each method at each alpha, fitted on its own."""
    A, A_test = scaled(X, X_test)
    design = make_design(A_test)
    values = {metric: {} for metric in METRICS}
    for name in methods:
        ranker = METHODS[name].make(None)
        scores = [
            design.scores(ranker.set_params(alpha=float(alpha)).fit(A, y).coef_[0])
            for alpha in alphas
        ]
        for metric in METRICS:
            function = metric_function(metric)
            values[metric][name] = [float(function(y_test, s)) for s in scores]
    return values


def one_split(name, split):
    X, y, X_test, y_test = load(name, split)
    record = {"data": name, "split": split, "n_train": int(y.size), "n_test": int(y_test.size)}
    record["positives"] = int(y.sum())
    clock = process_time()
    peer = logistic_regression_scores(X, y, X_test)
    record["peer"] = {m: float(metric_function(m)(y_test, peer)) for m in METRICS}
    record["peer_seconds"] = process_time() - clock
    record["chosen"], record["folds"], record["seconds"] = {}, {}, {}
    for metric in METRICS:
        clock = process_time()
        ranker = Ranker(metric, families="linear", random_state=split).fit(X, y)
        record["seconds"][metric] = process_time() - clock
        chosen = {"method": ranker.best_method_, "alpha": ranker.best_alpha_}
        chosen["cv"] = ranker.best_score_
        scores = ranker.decision_function(X_test)
        chosen["test"] = float(metric_function(metric)(y_test, scores))
        record["chosen"][metric] = chosen
        table = ranker.cv_results_
        folds = sorted(key for key in table if key.startswith("split"))
        record["folds"][metric] = {"method": list(table["method"]), "alpha": list(table["alpha"])}
        record["folds"][metric]["scores"] = [list(map(float, table[key])) for key in folds]
    methods = sorted({m for metric in METRICS for m in method_names(metric)})
    alphas = sorted({a for t in record["folds"].values() for a in t["alpha"]}, reverse=True)
    record["alphas"] = alphas
    record["test"] = fresh_values(methods, alphas, X, y, X_test, y_test)
    return record


def compare_refits():
    """Print table score and fresh score of the selected candidate, over the same folds."""
    above, lowest = 0, 0.0
    for name in REFITTED:
        X, y, _, _ = load(name, 0)
        folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
        ranker = Ranker("auc", families="linear", cv=folds, random_state=0).fit(X, y)
        method, alpha = ranker.best_method_, ranker.best_alpha_
        table, fresh = [], []
        place = list(zip(ranker.cv_results_["method"], ranker.cv_results_["alpha"], strict=True))
        position = place.index((method, alpha))
        for k, (train, test) in enumerate(folds):
            table.append(ranker.cv_results_[f"split{k}_test_score"][position])
            A, A_test = scaled(X[train], X[test])
            alone = METHODS[method].make(None).set_params(alpha=alpha)
            scores = alone.fit(A, y[train]).decision_function(A_test)
            fresh.append(metric_function("auc")(y[test], scores))
        error = np.std(table, ddof=1) / np.sqrt(len(folds))
        difference = np.mean(fresh) - np.mean(table)
        above += abs(difference) > error
        lowest = min(lowest, difference)
        print(
            f"{name:26s} {method:24s} alpha {alpha:8.2g}  table {np.mean(table):.5f}  fresh "
            f"{np.mean(fresh):.5f}  difference {difference:+.5f}  standard error {error:.5f}",
            flush=True,
        )
    print(f"more than one standard error apart: {above} of {len(REFITTED)}; lowest {lowest:+.5f}")


def candidates(record, metric):
    """Test values of all candidates of the choice for a measure, at all penalties."""
    return [v for m in set(record["folds"][metric]["method"]) for v in record["test"][metric][m]]


def regrets(records, metric, best):
    """Mean regret, loss against LogisticRegressionCV and training rows of each data set."""
    by_set = {}
    for record in records:
        chosen = record["chosen"][metric]["test"]
        key = record["data"], record["split"]
        line = (best[key] - chosen, record["peer"][metric] - chosen, record["n_train"])
        by_set.setdefault(record["data"], []).append(line)
    return {name: np.mean(lines, axis=0) for name, lines in by_set.items()}


def best_in_hindsight(records, metric):
    """The highest test value of any candidate, of both versions where two are compared."""
    best = {}
    for record in records:
        key = record["data"], record["split"]
        best[key] = max([best.get(key, -np.inf), *candidates(record, metric)])
    return best


def summary(records, before):
    for metric in METRICS:
        done = {(r["data"], r["split"]) for r in records}
        before = [r for r in before if (r["data"], r["split"]) in done]
        best = best_in_hindsight([*records, *before], metric)
        now, earlier = regrets(records, metric, best), regrets(before, metric, best)
        for title, names in (("tuned", set(SETS) - set(KEPT_ASIDE)), ("kept aside", KEPT_ASIDE)):
            known = [name for name in SETS if name in names and name in now]
            if not known:
                continue
            mine = np.array([now[name] for name in known])
            many = [k for k, name in enumerate(known) if mine[k, 2] * 1.5 > 2000]
            print(f"{metric}, {title}: {len(known)} sets, mean regret {mine[:, 0].mean():.5f}")
            if many:
                worst = max(many, key=lambda k: mine[k, 1])
                print(
                    f"  largest loss against LogisticRegressionCV above 2,000 rows: "
                    f"{mine[worst, 1]:+.5f} ({known[worst]}); above 0.002 on "
                    f"{sum(mine[k, 1] > 0.002 for k in many)} of {len(many)}"
                )
            both = [name for name in known if name in earlier]
            if both:
                old = np.array([earlier[name][0] for name in both])
                new = np.array([now[name][0] for name in both])
                change = new - old
                print(
                    f"  regret before {old.mean():.5f}, now {new.mean():.5f} on {len(both)} sets: "
                    f"{(change < -5e-4).sum()} better by more than 5e-4, "
                    f"{(change > 5e-4).sum()} worse, {(np.abs(change) <= 5e-4).sum()} the same"
                )


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=Path("bench-output/regret.jsonl"))
    parser.add_argument("--sets", choices=("tuned", "aside", "all"), default="all")
    parser.add_argument("--splits", type=int, default=len(SPLITS))
    parser.add_argument("--summary", type=Path, help="only print what is in this record")
    parser.add_argument("--refits", action="store_true", help="table scores and fresh fits")
    parser.add_argument("--before", type=Path, help="a record of an earlier version")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.refits:
        return compare_refits()
    if options.summary:
        return summary(read(options.summary), read(options.before) if options.before else [])
    names = {
        "all": SETS,
        "aside": KEPT_ASIDE,
        "tuned": [name for name in SETS if name not in KEPT_ASIDE],
    }[options.sets]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    records = read(options.out) if options.out.exists() else []
    done = {(record["data"], record["split"]) for record in records}
    todo = [task for task in each(names, range(options.splits)) if task not in done]
    for name, split in track(todo, description="regret"):
        record = one_split(name, split)
        records.append(record)
        with options.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
    return summary(records, read(options.before) if options.before else [])


if __name__ == "__main__":
    main()
