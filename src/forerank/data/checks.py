"""Checks of labelled rows before anything is fitted: leaky columns, rows that occur more than once,
small classes, groups of one class, tied scores.

Each makes results too good, or uncertain, for a reason that is not the method. None of them is an
error; each warning states what was found and what to do.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from forerank._text import counted
from forerank._typing import Index
from forerank.data.frames import as_frame
from forerank.data.leaky_columns import (
    SAMPLE_ROWS,
    Columns,
    leaky_columns,
    named_columns,
    pair_auc,
)
from forerank.metrics.validation import number_groups

__all__ = ["DataWarning", "data_warnings"]

Hashes = NDArray[np.uint64]

# Rows of the smaller class below which intervals are wide.
_TINY_CLASS = 30
# Share of rows in the smaller class below which measures of the first rows matter.
_EXTREME_SHARE = 0.001
# Shares from which copies of rows, and groups of one class, are reported.
_COPIES_SHARE = 0.05
_GROUPS_SHARE = 0.1
# Rows with the same values and different labels are reported from this share of the smaller class.
_CONTRADICTIONS_SHARE = 0.01
# AUC above which the limit that these rows set is not worth mentioning: it is shown as 1.0000.
_PERFECT_AUC = 0.99995
# Share of rows with the same score from which the order of a list is mostly arbitrary.
_TIED_SHARE = 0.5


@dataclass(frozen=True)
class DataWarning:
    """A possible problem of the data.

    Attributes
    ----------
    kind : str
        "leaky column", "perhaps leaky column", "same row in both classes", "copies", "one class",
        "tiny class", "extreme imbalance", "groups of one class", "constant score" or "tied scores".
    column : str or None
        Name of the column, if the problem concerns a single column.
    sentence : str
        Description of the problem, and advice.
    """

    kind: str
    column: str | None
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def data_warnings(
    data: Any,
    y: ArrayLike,
    *,
    qid: Any = None,
    scores: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    max_rows: int = 200_000,
    random_state: int = 0,
) -> list[DataWarning]:
    """Problems of the data that make results too good, or uncertain.

    Columns are examined one by one (see `forerank.data.leaky_columns`), rows are compared by a
    hash. Cost: about one sort per column of at most `max_rows` rows, and for most columns a sort of
    a few thousand; one pass over X and one sort of all rows for copies.

    Parameters
    ----------
    data : frame, array, sparse matrix or None
        The columns without the target; None checks labels, groups and scores only.
    y : array-like of shape (n_samples,)
        Two classes, the larger label being positive, or grades.
    qid : sequence, optional
        The group of each row.
    scores : array-like of shape (n_samples,), optional
        Scores of the rows.
    names : sequence of str, optional
        The names of the columns of a matrix, by default "column 0", "column 1" and so on.
    max_rows : int, default=200_000
        Number of rows above which columns are examined on a sample, as the sentence then states.
    random_state : int, default=0
        Of the sample.

    Returns
    -------
    list of DataWarning
        The most serious first: leaky columns, rows, classes, groups, scores.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.arange(400) % 4 == 0
    >>> X = np.column_stack([np.arange(400) % 7, 2.0 * y])
    >>> for found in data_warnings(X, y, names=["age", "paid back"]):
    ...     print(found.kind, "-", found.column)
    leaky column - paid back
    """
    if hasattr(data, "columns") or hasattr(data, "to_pandas"):
        data = as_frame(data)
    elif data is not None:
        data = _checked_matrix(data)
    seed = random_state
    y = np.asarray(y)
    return check_rows(data, y, qid, scores=scores, names=names, max_rows=max_rows, seed=seed)


def check_rows(
    data: Any,
    y: NDArray,
    qid: Any = None,
    *,
    scores: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    max_rows: int = 200_000,
    seed: int = 0,
) -> list[DataWarning]:
    """`data_warnings` of a frame as from `as_frame`, an array of numbers or a sparse matrix."""
    data = sp.csr_matrix(data) if sp.issparse(data) else data
    if y.ndim != 1 or not y.size:
        raise ValueError(f"y has shape {y.shape}; one label for each row is expected.")
    if data is not None and data.shape[0] != y.size:
        raise ValueError(f"data has {data.shape[0]} rows and y {y.size}; give one label per row.")
    classes, codes = np.unique(y, return_inverse=True)
    found: list[DataWarning] = []
    if classes.size > 1 and data is not None:
        columns = named_columns(data, names)
        leaks = leaky_columns(columns, codes, max_rows, np.random.default_rng(seed))
        found += [DataWarning(*leak) for leak in leaks]
        found += _repeated_rows(data, columns, codes)
    found += _class_sizes(codes)
    if qid is not None and classes.size > 1:
        found += _groups_of_one_class(number_groups(qid, y.size), codes)
    if scores is not None:
        found += _tied_scores(np.asarray(scores), y.size)
    return found


def _checked_matrix(data: Any) -> Any:
    """A sparse matrix, or an array of numbers."""
    data = data if sp.issparse(data) else np.asarray(data)
    if data.ndim != 2 or data.dtype.kind not in "fiub":
        raise ValueError(
            f"data has shape {data.shape} and dtype {data.dtype}; expected a two-dimensional "
            "numeric array, or a data frame if some columns are not numeric."
        )
    return data


# --- Rows ---


def _repeated_rows(data: Any, columns: Columns, y: Index) -> Iterator[DataWarning]:
    hashes = _row_hashes(data)
    if hashes is None:
        return
    group, counts = np.unique(hashes, return_inverse=True, return_counts=True)[1:]
    low, high = _label_ranges(group, counts.size, y)
    in_both = int(counts[low < high].sum())
    if in_both >= max(2, _CONTRADICTIONS_SHARE * np.bincount(y).min()):
        best = pair_auc(np.bincount(group, weights=y)[group] / counts[group], y)
        limit = f", and none gets beyond an AUC of {best:.4f} here" if best < _PERFECT_AUC else ""
        yield DataWarning(
            "same row in both classes",
            None,
            f"{in_both:,} of {y.size:,} rows have the same values as a row with another label. No "
            f"ranker can tell them apart{limit}. Look for wrong labels, or add a column that "
            "differs.",
        )
    copies = y.size - np.unique(group * (int(y.max()) + 1) + y).size
    if copies >= max(2, _COPIES_SHARE * y.size) and not _must_repeat(columns, y.size):
        yield DataWarning(
            "copies",
            None,
            f"{copies:,} of {y.size:,} rows are exact copies of other rows. If one case was "
            "entered twice, its copy among the held-out rows was also trained on, and results are "
            "too good: remove copies, or give the rows of a case a group. Different cases with the "
            "same values are harmless.",
        )


def _label_ranges(group: Index, n_groups: int, y: Index) -> tuple[Index, Index]:
    """The lowest and the highest label of each group."""
    low, high = np.full(n_groups, y.max()), np.zeros(n_groups, dtype=y.dtype)
    np.minimum.at(low, group, y)
    np.maximum.at(high, group, y)
    return low, high


def _must_repeat(columns: Columns, n: int) -> bool:
    """Whether the columns have so few values that rows must repeat."""
    if sp.issparse(columns.data):
        return False
    rows, combinations = np.arange(0, n, max(1, n // SAMPLE_ROWS)), 1
    for k in range(len(columns)):
        values = columns.column(k, rows)[0]
        combinations *= np.unique(np.nan_to_num(values, nan=-1.5)).size
        if combinations > 10 * n:
            return False
    return True


def _row_hashes(data: Any) -> Hashes | None:
    """A 64-bit hash of each row; None for rows without columns, or with unhashable values."""
    if not data.shape[1]:
        return None
    if hasattr(data, "columns"):
        import pandas as pd

        try:
            return pd.util.hash_pandas_object(data, index=False).to_numpy()
        except TypeError:  # lists and other unhashable values
            return None
    if sp.issparse(data):
        # A sum does not depend on the order in which entries are stored, and zeros add nothing.
        hashes = _entry_hashes(data.data, data.indices.astype(np.uint64))
        hashes = np.where(data.data != 0, hashes, np.uint64(0))
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
        return total[data.indptr[1:]] - total[data.indptr[:-1]]
    hashes = np.zeros(data.shape[0], dtype=np.uint64)
    for k in range(data.shape[1]):
        hashes += _entry_hashes(data[:, k], np.uint64(k))
    return hashes


def _entry_hashes(values: NDArray, column: Any) -> Hashes:
    """Hashes of numbers and their columns (the finalizer of splitmix64)."""
    floats = values.astype(np.float64) + 0.0  # one zero, not two
    floats[np.isnan(floats)] = np.nan
    with np.errstate(over="ignore"):
        z = floats.view(np.uint64) + (column + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


# --- Classes, groups, scores ---


def _class_sizes(y: Index) -> Iterator[DataWarning]:
    counts = np.bincount(y)
    if counts.size == 1:
        sentence = f"All {y.size:,} rows have the same label: there is nothing to rank."
        yield DataWarning("one class", None, sentence)
    if counts.size != 2:  # a rare grade is nothing unusual
        return
    few, many = int(counts.min()), int(counts.max())
    which = "positive" if counts[1] <= counts[0] else "negative"
    if few < _TINY_CLASS:
        yield DataWarning(
            "tiny class",
            None,
            f"{few:,} of {y.size:,} rows {'is' if few == 1 else 'are'} {which}: an AUC near 0.8 is "
            f"known to about ±{_half_width(few, many):.2f} from them, and smaller differences "
            f"between methods are not significant. Label more {which} rows before relying on a "
            "result.",
        )
    elif few < _EXTREME_SHARE * y.size:
        yield DataWarning(
            "extreme imbalance",
            None,
            f"One row in {round(y.size / few):,} is {which}. With an AUC of 0.99 there can still "
            f"be a hundred other rows above each {which} one: measure the top of the list (ap, "
            "pos_at_top, recall@k).",
        )


def _half_width(few: int, many: int, auc: float = 0.8) -> float:
    """Half of a 95 % interval of an AUC, after Hanley and McNeil (1982)."""
    q1, q2 = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    variance = auc * (1 - auc) + (few - 1) * (q1 - auc**2) + (many - 1) * (q2 - auc**2)
    return min(0.5, 1.96 * math.sqrt(variance / (few * many)))


def _groups_of_one_class(group: Index, y: Index) -> Iterator[DataWarning]:
    n_groups = int(group.max()) + 1
    low, high = _label_ranges(group, n_groups, y)
    n_found = int((low == high).sum())
    if n_found < max(1, _GROUPS_SHARE * n_groups):
        return
    shown = f"{n_found:,} of {counted(n_groups, 'group')} "
    shown += f"({counted(int((low == high)[group].sum()), 'row')})"
    has, hold = ("has", "It holds") if n_found == 1 else ("have", "They hold")
    end = "they count in no measure."
    if n_found == n_groups:
        end = "check that the groups belong to the rows."
    sentence = f"{shown} {has} rows of one label only. {hold} no pair of different labels; {end}"
    yield DataWarning("groups of one class", None, sentence)


def _tied_scores(scores: NDArray, n: int) -> Iterator[DataWarning]:
    if scores.shape != (n,):
        expected = f"one score for each of the {n} rows is expected"
        raise ValueError(f"scores has shape {scores.shape}; {expected}.")
    values, counts = np.unique(scores, return_counts=True)
    most = counts.argmax()
    if values.size == 1 and n > 1:
        yield DataWarning(
            "constant score",
            None,
            f"All {n:,} rows have the score {values[0]:g}: they are not ranked. Penalise less (a "
            "smaller alpha), or check that the columns are not empty.",
        )
    elif counts[most] > _TIED_SHARE * n and values.size > 1:
        yield DataWarning(
            "tied scores",
            None,
            f"{counts[most]:,} of {n:,} rows share the score {values[most]:g}: their order is "
            "arbitrary, and measures at the top depend on how ties are counted.",
        )
