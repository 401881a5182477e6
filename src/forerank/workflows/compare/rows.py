"""Rows to compare methods on, from whatever was given, and the folds they are put into."""

import hashlib
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import check_array

from forerank._typing import Index, Vector
from forerank._validation import is_integer
from forerank.data.checks import DataWarning, data_warnings
from forerank.data.columns import as_frame, column_name
from forerank.data.readers import Matrix
from forerank.metrics.ranking import query_numbers
from forerank.workflows import fit as workflow

__all__ = ["Folds", "RowsToCompare", "digest_of", "read_rows"]


# Rows that stand for a table where its identity is asked for.
_HASHED_ROWS = 1000


@dataclass
class RowsToCompare:
    """Rows with labels, weights and groups, from whatever was given."""

    table: Any  # of workflow
    y: NDArray
    weights: Vector | None
    classes: dict[str, int]
    notes: list[str]

    @property
    def graded(self) -> bool:
        return bool(np.unique(self.y).size > 2)

    @property
    def qid(self) -> Index | None:
        return self.table.groups

    @property
    def X(self) -> Any:
        return self.table.X if isinstance(self.table, workflow._Rows) else self.table._frame

    def warnings(self) -> list[DataWarning]:
        return data_warnings(self.X, self.y, qid=self.qid)

    @cached_property
    def header(self) -> dict[str, Any]:
        """What is the same for the same rows: all labels, weights and groups, and some of the rows."""
        n, d = self.X.shape
        some = np.unique(np.linspace(0, n - 1, min(n, _HASHED_ROWS)).astype(np.intp))
        parts: list[Any] = [np.asarray(self.y, dtype=np.float64)]
        parts += [part for part in (self.weights, self.qid) if part is not None]
        if hasattr(self.X, "iloc"):
            import pandas as pd

            parts += [
                " ".join(self.X.columns).encode(),
                pd.util.hash_pandas_object(self.X.iloc[some], index=False),
            ]
        elif sp.issparse(self.X):
            part = self.X[some]
            parts += [np.asarray(each) for each in (part.data, part.indices, part.indptr)]
        else:
            parts.append(self.X[some])
        return {"rows": int(n), "columns": int(d), "data": digest_of(*parts)}

    def inputs(self, train: Index, test: Index, form: str) -> tuple[Any, Any]:
        """What an estimator is given to fit and to score: "prepared", with "gaps", or the "rows" as
        they are.
        """
        X = self.X
        if form == "rows" and hasattr(X, "iloc"):
            return X.iloc[train], X.iloc[test]
        if form == "rows" or (form == "gaps" and not hasattr(X, "iloc")):
            return X[train], X[test]
        order = np.concatenate([train, test])
        steps, matrix = self.table.prepared(clone(self.table.steps()), order, train.size)
        if form == "gaps" and not sp.issparse(matrix):
            _reopen_gaps(matrix, steps, X, order)
        return workflow._first_rows(matrix, train.size), matrix[train.size :]


def _reopen_gaps(matrix: Vector, steps: Any, frame: Any, order: Index) -> None:
    """NaN again where a number was missing and had been filled."""
    for name, _, columns in steps.transformers_:
        if name in ("numbers", "dates"):
            first = steps.output_indices_[name].start
            for k, column in enumerate(columns):
                matrix[frame[column].isna().to_numpy()[order], first + k] = np.nan


def read_rows(
    data: Any,
    target: Any,
    sample_weight: ArrayLike | None,
    qid: Any,
    group: str | None,
    positive: Any,
    drop: Iterable[str],
    delimiter: str | None,
    types: Mapping[str, str] | None = None,
    encoding: str | None = None,
    format: str | None = None,
    skip_unlabelled: bool = False,
) -> RowsToCompare:
    drop = [column_name(name) for name in drop]
    is_frame = hasattr(data, "columns") or hasattr(data, "to_pandas")
    if isinstance(target, tuple) and is_frame and getattr(data.columns, "nlevels", 1) > 1:
        target = column_name(target)  # one of several levels
    if target is None or isinstance(target, str):
        if not is_frame and not isinstance(data, Matrix | str | os.PathLike):
            raise ValueError(
                f"data is {type(data).__name__}: give its labels, one for each row, as the second argument."
            )
    elif is_frame:
        data, target = _with_labels(as_frame(data), target)
    elif isinstance(data, Matrix | str | os.PathLike):
        raise ValueError("A file has its labels in a column: give the name of it, not an array.")
    else:
        data, target = Matrix(*_checked_matrix(data, target), None), None
    source = workflow._Source(data, delimiter, encoding, format)
    if drop and not source.is_table:
        raise source.error(f"the columns of a matrix have no names; {drop[0]!r} cannot be dropped")
    table = workflow._labelled_rows(source, target, group, drop, types, skip_unlabelled)
    y, labels = workflow._labels(source, table.label_column, table.target, positive)
    if source.kept is not None:
        qid, sample_weight = (
            None if v is None else np.asarray(v)[source.kept] for v in (qid, sample_weight)
        )
    if qid is not None:
        if table.groups is not None:
            raise ValueError("Groups were given twice, by a column and as qid; give them once.")
        table.groups = query_numbers(qid, y.size)
    weights = None if sample_weight is None else _checked_weights(sample_weight, y.size)
    notes = table.notes() + labels["notes"]
    if y.dtype == bool:
        y = y.astype(np.int64)
    elif y.min() < 0:
        y = y - y.min()  # gains are not negative
    return RowsToCompare(table, y, weights, labels["classes"], notes)


def _with_labels(frame: Any, y: Any) -> tuple[Any, str]:
    """A frame with a column for labels that were given apart."""
    labels = np.asarray(y)
    if labels.shape != (len(frame),):
        raise ValueError(
            f"The labels have shape {labels.shape} and the table {len(frame)} rows; give one for each row."
        )
    name = "label"
    while name in frame.columns:
        name = f"_{name}"
    return frame.assign(**{name: labels}), name


def _checked_matrix(X: Any, y: Any) -> tuple[Any, NDArray]:
    X = check_array(X, accept_sparse="csr", ensure_all_finite="allow-nan", input_name="X")
    labels = np.asarray(y)
    if labels.shape != (X.shape[0],):
        raise ValueError(
            f"The labels have shape {labels.shape} and X {X.shape[0]} rows; give one label for each row."
        )
    return X, labels


def _checked_weights(sample_weight: ArrayLike, n: int) -> Vector:
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,) or not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(
            f"sample_weight has shape {weights.shape}; {n} finite weights of at least 0 are expected."
        )
    return weights


def digest_of(*parts: Any) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part if isinstance(part, bytes) else np.ascontiguousarray(part).tobytes())
        found.update(b"|")
    return found.hexdigest()[:16]


# --- Folds ---


class Folds:
    """The same folds for all methods, shuffled by a seed."""

    def __init__(self, cv: Any, rows: RowsToCompare) -> None:
        self._rows, self.notes = rows, []
        self._own = cv if hasattr(cv, "split") else None
        if self._own is not None:
            self.n_folds = int(cv.get_n_splits(rows.y, rows.y, rows.qid))
            return
        if not is_integer(cv) or cv < 2:
            raise ValueError(
                f"cv={cv!r}: give a number of folds, at least 2, or a splitter of scikit-learn."
            )
        counts = np.unique(rows.y, return_counts=True)[1]
        what, most = "rows of the smaller class", int(counts.min())
        if rows.graded:
            what, most = "rows of the largest grade", int(counts.max())
        if rows.qid is not None:
            what, most = "groups", int(np.unique(rows.qid).size)
        if most < 2:
            raise ValueError(
                f"There are {most} {what}: at least 2 are needed, to learn from and to measure on."
            )
        self.n_folds = min(int(cv), most)
        if self.n_folds < cv:
            self.notes.append(f"{self.n_folds} folds in place of {cv}: there are {most} {what}")

    def splits(self, seed: int, seeds: int = 1) -> list[tuple[Index, Index]]:
        y, qid = self._rows.y, self._rows.qid
        if self._own is not None:
            splitter = clone(self._own, safe=False)
            if hasattr(splitter, "random_state"):
                splitter.random_state = seed
            elif seeds > 1:
                raise ValueError(
                    f"{type(splitter).__name__} has no random_state: its folds are the same for all seeds."
                )
        elif qid is not None:
            splitter = StratifiedGroupKFold(self.n_folds, shuffle=True, random_state=seed)
        else:
            splitter = StratifiedKFold(self.n_folds, shuffle=True, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # a rare grade is in few folds: said of the fold itself
            return list(
                splitter.split(np.zeros((y.size, 1)), np.unique(y, return_inverse=True)[1], qid)
            )

    def digest(self) -> str:
        return digest_of(*(test for _, test in self.splits(0)))
