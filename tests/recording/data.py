"""Synthetic data with fixed seeds."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp


@dataclass(frozen=True)
class Data:
    X: Any
    y: Any
    grade: Any
    weight: Any
    qid: Any

    def arguments(self, *names: str) -> dict[str, Any]:
        """Arguments of `fit` for the columns `weight` and `qid`."""
        keys = {"weight": "sample_weight", "qid": "qid"}
        return {keys[name]: getattr(self, name) for name in names}


@cache
def dense(n: int = 240, d: int = 6, seed: int = 0, noise: float = 0.8) -> Data:
    """Dense X, 30 % positive labels, four grades, weights (some zero), groups of about 15 rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, -1] = np.round(X[:, -1])
    return labelled(X, X @ np.linspace(1.0, -0.6, d) + noise * rng.standard_normal(n), rng)


@cache
def sparse(n: int = 240, d: int = 30, seed: int = 1) -> Data:
    """Sparse X of which 20 % of the values are not zero; labels and others as of `dense`."""
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.2)
    latent = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    return labelled(sp.csr_array(X), latent, rng)


def labelled(X: Any, latent: np.ndarray, rng: np.random.Generator) -> Data:
    """Data with labels and grades by quantiles of `latent`, random weights and groups."""
    n = latent.size
    y = (latent > np.quantile(latent, 0.7)).astype(int)
    grade = np.digitize(latent, np.quantile(latent, [0.4, 0.7, 0.9]))
    return Data(X, y, grade, rng.integers(0, 5, n) / 2.0, rng.integers(0, n // 15, n))


# Rows that no fit uses.
NEW_X = dense(60, seed=9).X
TEST = (NEW_X, dense(60, seed=9).y)


def table(n: int, seed: int = 0) -> pd.DataFrame:
    """Table with missing numbers, categories, texts, dates, an id, groups, grades, and labels y."""
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal(n)
    phrases = np.array(
        ["late payment", "new customer", "call again", "no interest", "asked for an offer"]
    )
    probability = np.clip((latent + 2.0) / 4.0, 0.0, 1.0)
    notes = [
        " ".join(rng.choice(phrases, 4)) + (" offer" if rng.uniform() < p else " bill")
        for p in probability
    ]
    # The order of the draws is part of the data.
    age = np.round(40 + 10 * (0.6 * latent + rng.standard_normal(n))).astype(int)
    missing = rng.uniform(size=n) < 0.1
    income = np.where(missing, np.nan, np.round(latent + rng.standard_normal(n), 3))
    city = rng.choice(["Rome", "Oslo", "Zürich", "Lyon"], n)
    days = pd.to_timedelta(rng.integers(0, 900, n), "D")
    query = rng.integers(0, n // 10, n)
    grade = np.digitize(latent + 0.5 * rng.standard_normal(n), [-0.5, 0.5, 1.3])
    y = np.where(latent + 0.5 * rng.standard_normal(n) > 0.6, "yes", "no")
    return pd.DataFrame(
        {
            "id": [f"row-{seed}-{k:04d}" for k in range(n)],
            "age": age,
            "income": income,
            "city": city,
            "note": notes,
            "since": (pd.Timestamp("2020-01-01") + days).strftime("%Y-%m-%d"),
            "query": query,
            "grade": grade,
            "y": y,
        }
    )
