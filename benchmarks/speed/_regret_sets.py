"""Data sets and seeds on which the choice of `Ranker` is judged, listed before any rule was tuned.

Every third set is kept aside: rules are compared on the others, and the result on the sets kept
aside is looked at once, at the end. Splits have the seeds 0 to 4. At most TRAIN_ROWS rows are
trained on; the others, at most TEST_ROWS, are test rows. Made tables have new test rows.
"""

import csv
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer

from forerank.data import datasets
from forerank.data.problem import read_problem

ARCHIVES = (
    "a9a", "bank", "breast_cancer", "breast_w", "colic", "connect4", "covtype_binary", "diabetes",
    "haberman", "heart_h", "hepatitis", "ionosphere", "letter", "mnist_0",
    "news20_bydate_forsale", "nslkdd", "shuttle", "spambase", "vote", "w8a_train",
)  # fmt: skip
TABLES = (
    "ad_data", "aer_creditcard", "births14", "chile", "covid_first", "doctorvisits",
    "food_reviews", "happiness", "headinjury", "healthins", "hhs_noleak", "indo_rct", "loanapp",
    "mn_police_first", "monica", "mplsstops", "nasscds", "nhefs", "psid1976", "rats_sex",
    "reddit_finance", "resume_call", "rotterdam", "smokeban", "smoking_uk", "taxi",
    "titanic_names", "tv16", "wells",
)  # fmt: skip
REVIEWS = (
    "Cohen_2006_ACEInhibitors", "Cohen_2006_ADHD", "Cohen_2006_Antihistamines",
    "Cohen_2006_Estrogens", "Cohen_2006_NSAIDS", "Cohen_2006_Opioids", "Cohen_2006_Triptans",
    "Nagtegaal_2019",
)  # fmt: skip
MADE = tuple(f"made{number:02d}" for number in range(42))

SETS = (*ARCHIVES, *TABLES, *REVIEWS, *MADE)
KEPT_ASIDE = SETS[2::3]
SPLITS = range(5)
TRAIN_ROWS, TEST_ROWS = 4_000, 20_000

Arrays = tuple[Any, Any, Any, Any]


def load(name: str, split: int) -> Arrays:
    """X, y of the training rows; X, y of the test rows."""
    rng = np.random.default_rng(split)
    if name in MADE:
        return _made(int(name.removeprefix("made")), rng)
    if name in TABLES:
        return _table(name, rng)
    if name in REVIEWS:
        return _review(name, rng)
    data = datasets.load(name)
    X = data.X.astype(np.float64) if sp.issparse(data.X) else np.nan_to_num(data.X.astype(float))
    y = np.asarray(data.y) > 0
    train, test = _split(y, rng)
    return X[train], y[train], X[test], y[test]


def _split(y: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Row numbers: two thirds of each class, or a smaller share of many rows, and the others."""
    share = min(2 / 3, TRAIN_ROWS / y.size)
    parts: tuple[list, list] = ([], [])
    for label in (False, True):
        rows = rng.permutation(np.flatnonzero(y == label))
        n = max(round(share * rows.size), 2)
        parts[0].append(rows[:n])
        parts[1].append(rows[n : n + round(TEST_ROWS * rows.size / y.size) + 1])
    train, test = (np.sort(np.concatenate(part)) for part in parts)
    return train, test


def _table(name: str, rng: np.random.Generator) -> Arrays:
    folder = datasets.data_directory() / "tables"
    with (folder / "MANIFEST.csv").open() as file:
        row = next(row for row in csv.DictReader(file) if row["name"] == name)
    problem = read_problem(folder / f"{name}.csv.gz", row["target"], positive=row["positive"])
    train, test = _split(problem.y, rng)
    _, X = problem.prepare(np.concatenate([train, test]), train.size)
    return X[: train.size], problem.y[train], X[train.size :], problem.y[test]


def _review(name: str, rng: np.random.Generator) -> Arrays:
    frame = pd.read_csv(datasets.data_directory() / "reviews" / f"{name}.csv.gz")
    texts = (frame["title"].fillna("") + " " + frame["abstract"].fillna("")).to_numpy()
    y = frame["label"].to_numpy() > 0
    train, test = _split(y, rng)
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2)
    X = vectorizer.fit_transform(texts[train])
    return X, y[train], vectorizer.transform(texts[test]), y[test]


def _made(number: int, rng: np.random.Generator) -> Arrays:
    """A random table: its size, columns, imbalance and noise depend on the number alone, its rows
    on the split.
    """
    draw = np.random.default_rng(1000 + number)
    kind = ("normal", "correlated", "one-hot", "skewed", "words", "curved")[number // 7]
    n = int(draw.choice([200, 300, 500, 1000, 2500, 4000]))
    d = int(draw.choice([5, 15, 40, 120, 400]))
    share = max(float(draw.choice([0.03, 0.08, 0.2, 0.5])), 12 / n)
    noise = float(draw.choice([0.5, 1.5, 4.0]))
    weights = draw.standard_normal(d) * (draw.random(d) < draw.choice([0.1, 0.5, 1.0]))
    weights[0] += 1.0
    factors = draw.standard_normal((max(1, d // 4), d))
    levels = draw.integers(2, 12, size=d)
    effects = [draw.standard_normal(k) for k in levels]
    rates = np.minimum(0.5, 2.0 / np.arange(1, d + 1))

    def rows(m: int) -> tuple[Any, Any]:
        if kind == "one-hot":
            codes = [rng.integers(0, k, size=m) for k in levels]
            s = sum(w * e[c] for w, e, c in zip(weights, effects, codes, strict=True))
            X = np.concatenate([np.eye(k)[c] for k, c in zip(levels, codes, strict=True)], axis=1)
        elif kind == "words":
            X = (rng.random((m, d)) < rates).astype(float)
            s = X @ (weights / np.sqrt(rates))
        else:
            X = rng.standard_normal((m, d))
            if kind == "correlated":
                X = rng.standard_normal((m, len(factors))) @ factors + 0.1 * X
            if kind == "skewed":
                X = np.exp(1.5 * X)
            Z = np.log(X) if kind == "skewed" else X
            s = Z @ weights + (2.0 * Z[:, 0] * Z[:, -1] if kind == "curved" else 0.0)
        return X, s

    def labelled(m: int, threshold: float | None) -> tuple[Any, Any, float]:
        X, s = rows(m)
        s = s + noise * np.linalg.norm(weights) * rng.standard_normal(m)
        threshold = float(np.quantile(s, 1 - share)) if threshold is None else threshold
        return X, s > threshold, threshold

    X, y, threshold = labelled(n, None)
    X_test, y_test, _ = labelled(TEST_ROWS // 2, threshold)
    if kind in ("one-hot", "words"):
        X, X_test = sp.csr_matrix(X), sp.csr_matrix(X_test)
    return X, y, X_test, y_test


def each(names: Any, splits: Any = SPLITS) -> Iterator[tuple[str, int]]:
    """Sets and splits, all sets of one split first."""
    return ((name, split) for split in splits for name in names)
