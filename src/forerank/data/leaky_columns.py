"""Leaky columns: columns that alone rank the labels (nearly) perfectly, and so probably hold what
became known with the label.

A column is read in three ways: its values, its categories (each row judged by the other rows of its
category, so that a category of one row proves nothing), and whether a value is missing.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata

from forerank._text import counted
from forerank._typing import Index, Mask, Vector
from forerank.data.frames import distinct
from forerank.data.transformers import column_floats
from forerank.metrics import wmw

__all__ = ["Columns", "balanced_sample", "leaky_columns", "named_columns", "pair_auc"]

# AUC from which a column is reported.
_LEAKY_AUC = 0.999
# Rows of the smaller class from which a leak is certain; with fewer, a column may well separate the
# classes by itself.
_SURE_FROM = 100
# Largest probability, over all columns together, with which columns of noise would be reported.
_CHANCE = 0.01
# Rows of a first sample, and the AUC on it below which a column is not examined further.
SAMPLE_ROWS = 4000
_SAMPLE_AUC = 0.98
# Distinct numbers up to which a column of numbers is also read as categories.
_FEW_VALUES = 50
# Least number of known values of a column that is known for positive rows only.
_FEWEST_KNOWN = 30


@dataclass(frozen=True)
class Columns:
    """Columns of a frame, an array or a CSC matrix, and their names."""

    data: Any
    names: list[str]

    def __len__(self) -> int:
        return len(self.names)

    def candidates(self, positive: Mask | None) -> Iterator[int]:
        """The columns that could have the AUC of a leak.

        In a column of a sparse matrix the zeros are tied; a column with many tied pairs of rows
        has a low AUC regardless of the other values.
        """
        if not sp.issparse(self.data) or positive is None:
            yield from range(len(self))
            return
        ones = (self.data.data != 0).astype(np.float64)
        stored = sp.csc_matrix((ones, self.data.indices, self.data.indptr), shape=self.data.shape)
        shares = [stored.T @ rows.astype(np.float64) / rows.sum() for rows in (positive, ~positive)]
        tied = (1 - shares[0]) * (1 - shares[1])
        yield from np.flatnonzero(tied <= 2 * (1 - _LEAKY_AUC)).tolist()

    def column(self, k: int, rows: Index) -> tuple[Vector, bool]:
        """Numbers and False, or codes of categories and True; NaN where a value is missing."""
        if sp.issparse(self.data):
            return self.data[:, [k]].toarray().ravel()[rows].astype(np.float64), False
        if isinstance(self.data, np.ndarray):
            return self.data[rows, k].astype(np.float64), False
        return _frame_column(self.data.iloc[rows, k])


def named_columns(data: Any, names: Sequence[str] | None) -> Columns:
    """Columns with their names: those of a frame, or `names`, or "column 0", "column 1" ..."""
    if hasattr(data, "columns"):
        return Columns(data, [str(name) for name in data.columns])
    n_columns = data.shape[1]
    given = [f"column {k}" for k in range(n_columns)] if names is None else [*map(str, names)]
    if len(given) != n_columns:
        raise ValueError(
            f"names has {len(given)} entries and data {n_columns} columns; give one per column."
        )
    return Columns(data.tocsc() if sp.issparse(data) else data, given)


def _frame_column(column: Any) -> tuple[Vector, bool]:
    from pandas.api import types

    if types.is_datetime64_any_dtype(column.dtype):
        return column_floats(column, dates=True), False
    if types.is_numeric_dtype(column.dtype):
        return column_floats(column), False
    try:
        codes = distinct(column)[0].astype(np.float64)
    except TypeError:  # unhashable values: only whether they are missing counts
        codes = np.where(column.isna(), np.nan, 0.0)
    return np.where(codes < 0, np.nan, codes), True


def leaky_columns(
    columns: Columns, y: Index, max_rows: int, rng: np.random.Generator
) -> Iterator[tuple[str, str, str]]:
    """Kind of warning, name and sentence for each leaky column; y are class numbers from 0.

    Cost: one sort per column of at most `max_rows` rows, and for most columns of a few thousand.
    """
    rows = balanced_sample(y, max_rows, rng)
    sample = rows[balanced_sample(y[rows], SAMPLE_ROWS, rng)]
    remark = "" if rows.size == y.size else f" (seen on a sample of {rows.size:,} rows)"
    for k in columns.candidates(y == 1 if y.max() == 1 else None):
        values, is_category = columns.column(k, sample)
        if max(auc for auc, _ in _aucs(values, is_category, y[sample])) < _SAMPLE_AUC:
            continue
        if sample.size < rows.size:
            values, is_category = columns.column(k, rows)
        auc, how = max(_aucs(values, is_category, y[rows]))
        if auc >= _LEAKY_AUC and not _may_be_noise(len(columns), how, auc, values, y[rows]):
            yield _warning(columns.names[k], how, auc, values, y[rows], remark)


def balanced_sample(y: Index, size: int, rng: np.random.Generator) -> Index:
    """Rows of each class, equally many or all there are: the AUC does not depend on the shares."""
    if y.size <= size:
        return np.arange(y.size)
    selected: list[Index] = []
    room = size
    order = np.argsort(np.bincount(y), kind="stable")
    for position, label in enumerate(order):  # the larger classes take what a small one leaves
        rows = np.flatnonzero(y == label)
        share = max(1, room // (order.size - position))
        selected.append(rows if rows.size <= share else rng.choice(rows, share, replace=False))
        room -= selected[-1].size
    return np.sort(np.concatenate(selected))


def _aucs(values: Vector, is_category: bool, y: Index) -> list[tuple[float, str]]:
    """The AUC of a column in each way of reading it."""
    known = np.isfinite(values)
    found = [(0.5, "values")]
    if not known.all():
        auc = pair_auc(known.astype(np.float64), y)
        found.append((max(auc, 1 - auc), "gaps"))
        enough = known.sum() >= max(_FEWEST_KNOWN, (y == 1).sum() / 2)
        if y.max() == 1 and not (known & (y == 0)).any() and enough:
            found.append((_LEAKY_AUC, "known for positives"))
        values, y = values[known], y[known]
    if np.unique(y).size < 2:
        return found
    if not is_category:
        auc = pair_auc(values, y)
        found.append((max(auc, 1 - auc), "values"))
    codes = np.unique(values, return_inverse=True)[1]
    if is_category or codes.max() < _FEW_VALUES:
        found.append((pair_auc(_rates_of_others(codes, y), y), "categories"))
    return found


def pair_auc(values: Vector, y: Index) -> float:
    """Share of pairs in order, ties counting one half: by ranks for two classes, else `wmw`."""
    if y.max() > 1:
        return float(wmw(y, values))
    n_positive = int(y.sum())
    n_negative = y.size - n_positive
    if not n_positive or not n_negative:
        return 0.5
    ranks = rankdata(values)[y == 1].sum() - n_positive * (n_positive + 1) / 2
    return float(ranks / (n_positive * n_negative))


def _rates_of_others(codes: Index, y: Index) -> Vector:
    """Mean label of the other rows of the same category; of all rows where there is no other."""
    counts = np.bincount(codes)[codes]
    sums = np.bincount(codes, weights=y)[codes]
    return np.where(counts > 1, (sums - y) / np.maximum(counts - 1, 1), y.mean())


def _smaller_class(how: str, values: Vector, y: Index) -> tuple[int, int]:
    """Number of rows of the smallest class among those that were judged, and of all of them."""
    all_rows = how in ("gaps", "known for positives")
    judged = y if all_rows else y[np.isfinite(values)]
    counts = np.bincount(judged)
    return int(counts[counts > 0].min()), judged.size


def _may_be_noise(n_columns: int, how: str, auc: float, values: Vector, y: Index) -> bool:
    """Whether one of this many columns of noise could well have this AUC, or one minus it."""
    few, n = _smaller_class(how, values, y)
    perfect = math.lgamma(few + 1) + math.lgamma(n - few + 1) - math.lgamma(n + 1)
    wrong = few * (1 - auc)
    near = few * math.log(wrong) - math.lgamma(few + 1) if wrong > 0 else -math.inf
    return 2 * math.exp(min(0.0, max(perfect, near))) * n_columns > _CHANCE


def _warning(
    name: str, how: str, auc: float, values: Vector, y: Index, remark: str
) -> tuple[str, str, str]:
    few, _ = _smaller_class(how, values, y)
    if how == "gaps":
        what = f"Whether {name!r} is missing tells the label (AUC {auc:.4f})"
    elif how == "known for positives":
        share = np.isfinite(values[y == 1]).mean()
        what = f"{name!r} is known for {share:.0%} of the positive rows and for no other row"
    elif how == "categories":
        what = f"The value of {name!r} alone tells the label (AUC {auc:.4f}, each row judged by "
        what += "others)"
    else:
        nearly = "" if auc == 1 else "nearly "
        what = f"The column {name!r} alone ranks the labels {nearly}perfectly (AUC {auc:.4f})"
    if few < _SURE_FROM or how == "known for positives":
        why = f", the smaller class having {counted(few, 'row')} only" if few < _SURE_FROM else ""
        advice = f"That may be legitimate{why}; make sure that it is known at the time when rows "
        return "perhaps leaky column", name, f"{what}{remark}. {advice}are ranked, else drop it."
    advice = "Such a column mostly holds what became known with the label or after it. Drop it, "
    advice += "unless it is known at the time when rows are ranked."
    return "leaky column", name, f"{what}{remark}. {advice}"
