"""Features of records: words by tf-idf, and the other columns of a table as for `forerank fit`."""

import json
import sqlite3
from typing import Any

import numpy as np
import scipy.sparse as sp

from forerank._typing import Vector

__all__ = ["Features", "record_features"]

# Largest number of records for which pairs of words are features too. Beyond, their number makes a
# fit slow, and single words suffice: there are more labels.
_MOST_FOR_PAIRS = 20_000
# Most words that have a column, the most frequent ones.
_MOST_WORDS = 200_000


class Features:
    """A matrix of all records, and the names of its columns.

    Attributes
    ----------
    X : CSR matrix
    words : array of str
        Words, or pairs of words, of the first columns.
    """

    def __init__(self, X: Any, words: Any) -> None:
        self.X, self.words = X, words

    def telling_words(self, weights: Vector, n: int) -> list[tuple[str, float]]:
        """The n words with the largest and the n with the smallest weights, in a record where they
        occur.
        """
        weights = weights[: self.words.size]
        order = np.argsort(weights)
        chosen = np.unique(np.concatenate([order[:n], order[-n:]])) if order.size else order
        return [(str(self.words[k]), round(float(weights[k]), 6)) for k in chosen if weights[k]]


def record_features(db: sqlite3.Connection) -> Features:
    """Features of all records of a project, in their order."""
    rows = db.execute("SELECT title, abstract, fields FROM record ORDER BY id").fetchall()
    (columns,) = db.execute("SELECT value FROM setting WHERE name = 'columns'").fetchone()
    columns = json.loads(columns)
    texts = [f"{title} {abstract}" for title, abstract, _ in rows]
    parts, words = [], np.empty(0, dtype=object)
    if columns["is_text"]:
        matrix, words = _words(texts)
        parts.append(matrix)
    if columns["others"]:
        parts += _other_columns([json.loads(fields) for _, _, fields in rows], columns["others"])
    if not parts:
        parts = [sp.csr_matrix((len(rows), 1))]
    return Features(sp.hstack(parts, format="csr", dtype=np.float64), words)


def _words(texts: list[str]) -> tuple[Any, Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    pairs = len(texts) <= _MOST_FOR_PAIRS
    vectorizer = TfidfVectorizer(
        ngram_range=(1, 2) if pairs else (1, 1),
        sublinear_tf=True,
        max_df=0.95 if len(texts) > 20 else 1.0,
        max_features=None if pairs else _MOST_WORDS,
    )
    try:
        matrix = vectorizer.fit_transform(texts)
    except ValueError:  # no text has a word
        return sp.csr_matrix((len(texts), 1)), np.empty(0, dtype=object)
    return matrix, vectorizer.get_feature_names_out()


def _other_columns(fields: list[dict[str, str]], names: list[str]) -> list[Any]:
    """Columns without a role, prepared by their kinds; none if none of them is of use."""
    import pandas as pd

    from forerank.data.column_plan import plan_columns

    frame = pd.DataFrame({name: [row.get(name, "") for row in fields] for name in names})
    for name in names:
        column = frame[name].replace("", None)
        numbers = pd.to_numeric(column, errors="coerce")
        frame[name] = numbers if numbers.notna().sum() == column.notna().sum() else column
    plan = plan_columns(frame)
    if not plan.used:
        return []
    return [sp.csr_matrix(plan.transformer("plain").fit_transform(frame))]
