"""`Ranker` across families against scikit-learn and LightGBM, on mixed tables and arrays.

    scripts/bench tables [--out bench-output/tables.jsonl] [--sets tuned|aside|all] [--splits 1]
    scripts/bench tables --summary bench-output/tables.jsonl

Tables are written as CSV files and go through the functions behind `forerank fit` and
`forerank rank`; arrays go through `Ranker`. Peers have the same training rows, with columns
prepared by the plan of this package: LogisticRegressionCV (ten strengths, five folds), LightGBM
tuned by five folds (7 or 31 leaves, the number of rounds), and HistGradientBoosting as it comes.
`linear` is `Ranker(families="linear")`. Values are those of the test rows, seconds are processor
time of one thread. A line of the record is a set and a split; recorded ones are not repeated.
Which sets are kept aside is in _table_sets.py.
"""

import argparse
import csv
import json
import os
import tempfile
import warnings
from pathlib import Path
from time import process_time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import lightgbm
import numpy as np
import pandas as pd
import scipy.sparse as sp
from _table_sets import (
    KEPT_ASIDE,
    REVIEWS,
    SETS,
    SPLITS,
    TABLES,
    TEST_ROWS,
    TRAIN_ROWS,
)
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold

from forerank import Ranker
from forerank.data import datasets
from forerank.data.problem import read_problem
from forerank.metrics.registry import metric_function
from forerank.models import load_model, save_model
from forerank.models.scoring import table_scores
from forerank.models.tables import model_frame, model_source, model_table
from forerank.workflows.fit import fit

PEERS = ("logistic", "lightgbm", "histogram")
# LightGBM on more columns than these takes minutes for a split, and is left out.
MOST_COLUMNS = 2_000


def split_rows(y, seed):
    """Row numbers: two thirds of each class, or a smaller share of many rows, and the others."""
    rng, share = np.random.default_rng(seed), min(2 / 3, TRAIN_ROWS / y.size)
    train, test = [], []
    for label in (False, True):
        rows = rng.permutation(np.flatnonzero(y == label))
        n = max(round(share * rows.size), 2)
        train.append(rows[:n])
        test.append(rows[n : n + round(TEST_ROWS * rows.size / y.size) + 1])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


def measures(y):
    """recall@k counts as many of the test rows as there are positives."""
    return ("auc", "ap", f"recall@{int(y.sum())}")


def values(y, scores):
    return {name.partition("@")[0]: float(metric_function(name)(y, scores)) for name in measures(y)}


def timed(function, *arguments):
    begin = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = function(*arguments)
    return found, process_time() - begin


# --- Peers ---


def logistic(X, y, X_test, categorical):
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    model = LogisticRegressionCV(
        Cs=10, cv=folds, scoring="roc_auc", max_iter=1000, l1_ratios=(0,),
        use_legacy_attributes=False,
    )  # fmt: skip
    return model.fit(X, y).decision_function(X_test)


def boosted(X, y, X_test, categorical):
    rows = lightgbm.Dataset(X, y.astype(float), categorical_feature=categorical or "auto",
                            free_raw_data=False, params={"verbosity": -1})  # fmt: skip
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(np.zeros(y.size), y))
    best = None
    for leaves in (7, 31):
        params = {
            "objective": "binary",
            "metric": "auc",
            "learning_rate": 0.05,
            "num_leaves": leaves,
        }
        params |= {"lambda_l2": 1.0, "feature_fraction": 0.8, "verbosity": -1, "num_threads": 1}
        stop = lightgbm.early_stopping(50, verbose=False)
        found = lightgbm.cv(params | {"seed": 0}, rows, 1000, folds=folds, callbacks=[stop])
        curve = found["valid auc-mean"]
        if best is None or curve[-1] > best[0]:
            best = curve[-1], params, len(curve)
    return lightgbm.train(best[1] | {"seed": 0}, rows, best[2]).predict(X_test, raw_score=True)


def histogram(X, y, X_test, categorical):
    if sp.issparse(X):
        X, X_test = X.toarray(), X_test.toarray()
    model = HistGradientBoostingClassifier(categorical_features=categorical or None, random_state=0)
    return model.fit(X, y).decision_function(X_test)


# --- Data ---


def table(name, split):
    """Forms of the rows for peers, labels, and what fits a Ranker through files."""
    folder = datasets.data_directory() / "tables"
    with (folder / "MANIFEST.csv").open() as file:
        facts = next(row for row in csv.DictReader(file) if row["name"] == name)
    target, positive = facts["target"], facts["positive"]
    problem = read_problem(folder / f"{name}.csv.gz", target, positive=positive)
    train, test = split_rows(problem.y, split)
    order = np.concatenate([train, test])
    plain = problem.prepare(order, train.size)[1]
    steps, trees = problem.prepare(order, train.size, "trees")
    frame = pd.read_csv(folder / f"{name}.csv.gz", dtype=str, keep_default_na=False)

    def scores(metric, families):
        with tempfile.TemporaryDirectory() as scratch:
            files = [Path(scratch) / f"{part}.csv" for part in ("train", "test")]
            for file, rows in zip(files, (train, test), strict=True):
                frame.iloc[rows].to_csv(file, index=False)
            params = {"families": families, "n_jobs": 1, "list_rows": test.size}
            begin = process_time()
            fitted = fit(files[0], target, positive=positive, metric=metric, params=params, check=0)
            seconds = process_time() - begin
            save_model(fitted, Path(scratch) / "model.forerank")
            model = load_model(Path(scratch) / "model.forerank")
            source = model_source(model, files[1], None)
            columns = model_frame(model, model_table(model, source), source.path)
            return table_scores(model)(columns), seconds, fitted.summary["choice"]["family"]

    n = train.size
    forms = {"plain": (plain[:n], plain[n:]), "trees": (trees[:n], trees[n:])}
    return forms, problem.y[train], problem.y[test], list(steps.categorical_), scores


def arrays(name, split):
    if name in REVIEWS:
        frame = pd.read_csv(datasets.data_directory() / "reviews" / f"{name}.csv.gz")
        texts = (frame["title"].fillna("") + " " + frame["abstract"].fillna("")).to_numpy()
        y = frame["label"].to_numpy() > 0
        train, test = split_rows(y, split)
        vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2).fit(texts[train])
        X, X_test = vectorizer.transform(texts[train]), vectorizer.transform(texts[test])
    else:
        data = datasets.load(name)
        y = np.asarray(data.y) > 0
        train, test = split_rows(y, split)
        X, X_test = data.X[train].astype(np.float64), data.X[test].astype(np.float64)
    plain = X, X_test
    if not sp.issparse(X):
        median = np.nanmedian(X, axis=0)
        X, X_test = (np.where(np.isfinite(Z), Z, median) for Z in (X, X_test))
        mean, scale = X.mean(axis=0), X.std(axis=0)
        plain = tuple((Z - mean) / np.where(scale > 0, scale, 1.0) for Z in (X, X_test))

    def scores(metric, families):
        begin = process_time()
        ranker = Ranker(metric, families=families, list_rows=test.size, random_state=0)
        ranker.fit(X, y[train])
        return ranker.decision_function(X_test), process_time() - begin, ranker.best_family_

    return {"plain": plain, "trees": (X, X_test)}, y[train], y[test], [], scores


def one_split(name, split):
    """Values and seconds of the rankers and of their peers."""
    forms, y, y_test, categorical, ranker = (table if name in TABLES else arrays)(name, split)
    found = {"set": name, "split": split, "rows": int(y.size), "positives": int(y.sum())}
    peers = {"logistic": (logistic, "plain")}
    if forms["trees"][0].shape[1] <= MOST_COLUMNS:
        peers |= {"lightgbm": (boosted, "trees"), "histogram": (histogram, "trees")}
    for peer, (function, form) in peers.items():
        X, X_test = forms[form]
        scores, seconds = timed(function, X, y, X_test, categorical)
        found[peer] = {**values(y_test, scores), "seconds": seconds}
    for families in ("auto", "linear"):
        result, chosen = {}, {}
        for metric in measures(y_test):
            (scores, seconds, family), _ = timed(ranker, metric, families)
            short = metric.partition("@")[0]
            result[short], chosen[short] = values(y_test, scores)[short], family
            result.setdefault("seconds", seconds)  # of the fit for the AUC
        found[families] = {**result, "family": chosen}
    return found


def compile_kernels():
    """Compile everything, so that no fit that is timed does."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 4))
    y = X[:, 0] + (X[:, 1] > 0) + rng.standard_normal(300) > 1
    frame = pd.DataFrame(X, columns=list("abcd")).assign(e=rng.choice(["u", "v", "w"], 300), y=y)
    for metric in ("auc", "ap", "recall@50"):
        for families in (["linear", "additive", "trees", "average"], "linear"):
            for rows in (X, sp.csr_matrix(X)):
                timed(Ranker(metric, families=families, random_state=0).fit, rows, y)
            timed(lambda p=families, m=metric: fit(frame, "y", metric=m, params={"families": p}))


# --- Summary ---


def summarise(path):
    records = [json.loads(line) for line in path.read_text().splitlines()]
    console = Console(width=140)
    for which, names in (("tuned", set(SETS) - set(KEPT_ASIDE)), ("kept aside", set(KEPT_ASIDE))):
        kept = [record for record in records if record["set"] in names]
        if kept:
            console.print(summary_table(which, kept))
            console.print(time_line(kept))


def gaps(records, measure, ours):
    """Mean over the splits of a set of our value, less that of the peer with the highest mean."""
    by_set = {}
    for record in records:
        by_set.setdefault(record["set"], []).append(record)
    found = {}
    for name, each in by_set.items():
        peers = [peer for peer in PEERS if peer in each[0]]
        best = max(np.mean([record[peer][measure] for record in each]) for peer in peers)
        found[name] = float(np.mean([record[ours][measure] for record in each]) - best)
    return found


def summary_table(which, records):
    n_sets = len({record["set"] for record in records})
    title = f"{which}: {n_sets} sets, {len(records)} splits; value less that of the best peer"
    shown = Table("measure", "families", "mean", "within .005", "within .02", "lowest", title=title)
    for measure in ("auc", "ap", "recall"):
        for ours in ("auto", "linear"):
            found = gaps(records, measure, ours)
            each = np.array(list(found.values()))
            lowest = sorted(found, key=found.get)[:3]
            shown.add_row(
                measure, ours, f"{each.mean():+.4f}", f"{np.mean(each >= -0.005):.0%}",
                f"{np.mean(each >= -0.02):.0%}",
                ", ".join(f"{name} {found[name]:+.4f}" for name in lowest),
            )  # fmt: skip
    return shown


def time_line(records):
    with_trees = [record for record in records if "lightgbm" in record]
    # Two sizes of trees were tuned; one of them is half of that.
    ratio = np.array(
        [
            record["auto"]["seconds"]
            / (record["logistic"]["seconds"] + record["lightgbm"]["seconds"] / 2)
            for record in with_trees
        ]
    )
    mean = float(np.exp(np.log(ratio).mean()))
    return (
        "Seconds of a fit over those of LogisticRegressionCV and one LightGBM with five folds: "
        f"geometric mean {mean:.2f}, at most 2 on {np.mean(ratio <= 2):.0%}, "
        f"largest {ratio.max():.1f}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("bench-output/tables.jsonl"))
    parser.add_argument("--sets", choices=("tuned", "aside", "all"), default="all")
    parser.add_argument("--splits", type=int, default=len(SPLITS))
    parser.add_argument("--summary", type=Path, help="print the summary of a record")
    args = parser.parse_args()
    if args.summary:
        return summarise(args.summary)
    args.out.parent.mkdir(exist_ok=True)
    lines = args.out.read_text().splitlines() if args.out.exists() else []
    done = {(record["set"], record["split"]) for record in map(json.loads, lines)}
    wanted = {"tuned": set(SETS) - set(KEPT_ASIDE), "aside": set(KEPT_ASIDE), "all": set(SETS)}
    tasks = [
        (name, split)
        for split in range(args.splits)
        for name in SETS
        if name in wanted[args.sets] and (name, split) not in done
    ]
    compile_kernels()
    for name, split in track(tasks, "data sets"):
        with args.out.open("a") as file:
            file.write(json.dumps(one_split(name, split)) + "\n")
    return summarise(args.out)


if __name__ == "__main__":
    main()
