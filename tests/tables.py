"""Tables that several tests read and fit."""

import bz2
import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import scipy.sparse as sp

FRAME = pd.DataFrame(
    {
        "age": [31, 45, 28],
        "job": ["clerk", "cook", None],
        "when": pd.to_datetime(["2020-01-03", "2021-05-06", None]),
    }
)


def dense(X):
    """An array, also of a sparse matrix."""
    return X.toarray() if sp.issparse(X) else X


def table(n=300, seed=0):
    """Rows with an id, a number, two categories, a date, a text, gaps, and the label y."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": [f"{k:05d}" for k in rng.permutation(n)],
            "age": rng.integers(18, 80, n).astype(float),
            "job": rng.choice(["clerk", "cook", "pilot, first"], n),
            "seen": pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d"),
            "note": [
                " ".join(rng.choice(["late", "paid", 'call "me"', "again\nand"], 5))
                for _ in range(n)
            ],
            "city": rng.choice(["rome", "oslo"], n),
        }
    )
    frame.loc[rng.uniform(size=n) < 0.1, ["age", "job"]] = None
    frame["y"] = np.where(
        frame["age"].fillna(40) / 20 + (frame["job"] == "cook") + rng.normal(size=n) > 3,
        "yes",
        "no",
    )
    return frame


def mixed_table(n=60):
    """Rows with a column of each kind, and of each kind that is not used."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "income": np.where(rng.uniform(size=n) < 0.2, np.nan, rng.normal(size=n)),
            "owner": rng.uniform(size=n) < 0.5,
            "job": rng.choice(["clerk", "cook", None], n),
            "note": [
                " ".join(rng.choice(["late", "paid", "call", "again", "never"], 6))
                for _ in range(n)
            ],
            "seen": pd.date_range("2020-01-01", periods=n, freq="D"),
            "row": np.arange(1000, 1000 + n),
            "key": [f"k{k:05d}" for k in rng.permutation(n)],
            "country": "fr",
            "nothing": [None] * n,
            "sometimes": np.where(rng.uniform(size=n) < 0.5, "yes", None),
        }
    )


def typed_table(n=300, seed=0):
    """The same rows, with dates in place of their strings."""
    return table(n, seed).assign(seen=lambda frame: pd.to_datetime(frame["seen"]))


def written(directory, suffix, frame=FRAME):
    """The path of a frame written as CSV, TSV, Parquet or Feather, by the suffix."""
    path = directory / f"table{suffix}"
    if suffix.startswith(".parquet"):
        pa.parquet.write_table(pa.Table.from_pandas(frame), path)
    elif suffix.startswith(".feather"):
        pa.feather.write_feather(pa.Table.from_pandas(frame), path, compression="zstd")
    else:
        text = frame.to_csv(index=False, sep="\t" if suffix.startswith(".tsv") else ",").encode()
        packed = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)
        path.write_bytes(packed(text))
    return path


def noisy_rows(n=300, d=5, seed=0):
    """A matrix, and labels of a noisy linear score: two of five rows are positive."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    score = X @ np.arange(1, d + 1) + 2 * rng.standard_normal(n)
    return X, (score > np.quantile(score, 0.6)).astype(int)


def graded_rows(n=300, d=5, seed=0, classes=2, noise=2):
    """A matrix, and grades 0 to classes - 1 of a noisy linear score, about equally many of each."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    score = X @ np.arange(1, d + 1) + noise * rng.standard_normal(n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
