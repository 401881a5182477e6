"""Matrices that methods are fitted on and score, and the digests that identify data and folds."""

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from forerank._typing import Index, Vector
from forerank.data.problem import RankingProblem, first_rows

__all__ = ["data_settings", "digest_of", "fold_inputs", "with_integer_labels"]

# Most rows that are hashed to identify a table; labels, weights and groups are all hashed.
_HASHED_ROWS = 1000


def with_integer_labels(problem: RankingProblem) -> RankingProblem:
    """The problem with labels 0 and 1, or grades of at least 0, since gains are not negative."""
    y = problem.y
    return replace(problem, y=y.astype(np.int64) if y.dtype == bool else y - min(0.0, y.min()))


def fold_inputs(problem: RankingProblem, train: Index, test: Index, form: str) -> tuple[Any, Any]:
    """Training and test rows in a form.

    "prepared": columns transformed, fitted on the training rows; "missing": the same with missing
    numbers as NaN, and a matrix unchanged; "raw": rows unchanged, for a pipeline; or names of forms
    of `RankingProblem.forms`, joined by "+".
    """
    rows, is_table = problem.rows, problem.plan is not None
    if form not in ("prepared", "missing", "raw"):
        _, X = problem.prepare(np.concatenate([train, test]), train.size, form.split("+"))
        return first_rows(X, train.size), X[train.size :]
    if form == "raw" and is_table:
        return rows.iloc[train], rows.iloc[test]
    if form == "raw" or (form == "missing" and not is_table):
        return rows[train], rows[test]
    order = np.concatenate([train, test])
    steps, matrix = problem.prepare(order, train.size)
    if form == "missing" and not sp.issparse(matrix):
        _restore_missing(matrix, steps, rows, order)
    return first_rows(matrix, train.size), matrix[train.size :]


def _restore_missing(matrix: Vector, steps: Any, frame: Any, order: Index) -> None:
    """Set the entries to NaN whose number is missing in the frame."""
    for name, _, columns in steps.transformers_:
        if name in ("numbers", "dates"):
            first = steps.output_indices_[name].start
            for k, column in enumerate(columns):
                matrix[frame[column].isna().to_numpy()[order], first + k] = np.nan


def data_settings(problem: RankingProblem) -> dict[str, Any]:
    """Numbers of rows and columns, and a digest of labels, weights, groups and some rows."""
    rows = problem.rows
    n, d = rows.shape
    some = np.unique(np.linspace(0, n - 1, min(n, _HASHED_ROWS)).astype(np.intp))
    parts: list[Any] = [np.asarray(problem.y, dtype=np.float64)]
    parts += [part for part in (problem.weights, problem.groups) if part is not None]
    if problem.plan is not None:
        import pandas as pd

        values = pd.util.hash_pandas_object(rows.iloc[some], index=False)
        parts += [" ".join(rows.columns).encode(), values]
    elif sp.issparse(rows):
        part = rows[some]
        parts += [np.asarray(each) for each in (part.data, part.indices, part.indptr)]
    else:
        parts.append(rows[some])
    return {"rows": int(n), "columns": int(d), "data": digest_of(*parts)}


def digest_of(*parts: Any) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of arrays and bytes."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part if isinstance(part, bytes) else np.ascontiguousarray(part).tobytes())
        digest.update(b"|")
    return digest.hexdigest()[:16]
