"""What is odd about labelled rows, said before anything is learnt from them.

A column that gives the label away, the same row in both classes, copies, a class of a few rows:
each makes figures that look good, or bad, for a reason that is not the method. Nothing here is an
error; each sentence says what was seen and what to do.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from forerank._text import counted
from forerank._typing import Vector
from forerank.metrics import wmw
from forerank.metrics.ranking import query_numbers

__all__ = ["DataWarning", "data_warnings"]

Hashes = NDArray[np.uint64]

# A column that alone has this AUC is looked at twice.
_LEAKY_AUC = 0.999
# With fewer rows than this in the smaller class, a column that parts the classes may well be
# honest.
_SURE_FROM = 100
# Leaky columns that chance would show more often than this are not worth a word.
_CHANCE = 0.01
# Rows for a first look at a column: one that ranks these badly does not rank all of them perfectly.
_FIRST_LOOK = 4000
_LOOK_TWICE_AUC = 0.98
# Numbers of up to this many values are also read as categories.
_FEW_VALUES = 50
# Below this many rows in the smaller class, intervals are wide.
_TINY_CLASS = 30
_EXTREME_SHARE = 0.001
_COPIES_SHARE = 0.05
_GROUPS_SHARE = 0.1
# A hit list with more than this share of its rows tied at one score is hardly a ranking.
_TIED_SHARE = 0.5


@dataclass(frozen=True)
class DataWarning:
    """Something odd about the data.

    Attributes
    ----------
    kind : str
        "leaky column", "perhaps leaky column", "same row in both classes", "copies", "one class",
        "tiny class", "extreme imbalance", "groups of one class", "constant score" or "tied scores".
    column : str or None
        Where it is about one column.
    sentence : str
        What was seen and what to do.
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
    """Look for what makes figures too good, or uncertain.

    Columns are looked at one by one: the AUC of its values, of its categories (each row judged by
    the other rows of its category, so that a category of one row proves nothing) and of its gaps.
    Rows are compared by a hash. Cost: about one sort per column of at most `max_rows` rows, and for
    most columns a sort of a few thousand; one pass over the whole of X and one sort of all rows for
    copies.

    Parameters
    ----------
    data : frame, array, sparse matrix or None
        The columns without the target; None looks at labels, groups and scores only.
    y : array-like of shape (n_samples,)
        Two classes, the larger label ahead, or grades.
    qid : sequence, optional
        The group of each row.
    scores : array-like of shape (n_samples,), optional
        Scores of the rows.
    names : sequence of str, optional
        The names of the columns of a matrix, by default "column 0", "column 1" and so on.
    max_rows : int, default=200_000
        Rows beyond this are sampled for the look at columns, and the sentence says so.
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
    y = np.asarray(y)
    if y.ndim != 1 or not y.size:
        raise ValueError(f"y has shape {y.shape}; one label for each row is expected.")
    data = _checked(data, y.size)
    values, y_code = np.unique(y, return_inverse=True)
    found: list[DataWarning] = []
    if values.size > 1 and data is not None:
        columns = _named_columns(data, names)
        found += _leaky_columns(columns, y_code, max_rows, np.random.default_rng(random_state))
        found += _same_rows(data, columns, y_code)
    found += _classes(y_code)
    if qid is not None and values.size > 1:
        found += _groups(query_numbers(qid, y.size), y_code)
    if scores is not None:
        found += _scores(np.asarray(scores), y.size)
    return found


def _checked(data: Any, n: int) -> Any:
    """A frame, an array of floats or a CSR matrix with as many rows as there are labels."""
    if data is None:
        return None
    if hasattr(data, "columns") or hasattr(data, "to_pandas"):
        from forerank.data.frames import as_frame

        data = as_frame(data)
    elif sp.issparse(data):
        data = sp.csr_matrix(data)
    else:
        data = np.asarray(data)
        if data.ndim != 2 or data.dtype.kind not in "fiub":
            raise ValueError(
                f"data is an array of shape {data.shape} and type {data.dtype}; give rows and columns of numbers, "
                "or a frame where there are words."
            )
    if data.shape[0] != n:
        raise ValueError(f"data has {data.shape[0]} rows and y {n}; they must belong together.")
    return data


# --- Columns ---


@dataclass(frozen=True)
class _Columns:
    """Columns by number, as floats or codes of categories, some rows at a time."""

    data: Any
    names: list[str]

    def __len__(self) -> int:
        return len(self.names)

    def candidates(self, positive: NDArray[np.bool_] | None) -> Iterator[int]:
        """The columns that could rank everything.

        In a column of a sparse matrix the zeros are tied; where many pairs are, the order of the
        others is no matter.
        """
        if not sp.issparse(self.data) or positive is None:
            yield from range(len(self))
            return
        ones = (self.data.data != 0).astype(np.float64)
        stored = sp.csc_matrix((ones, self.data.indices, self.data.indptr), shape=self.data.shape)
        ahead, behind = (
            stored.T @ rows.astype(np.float64) / rows.sum() for rows in (positive, ~positive)
        )
        yield from np.flatnonzero((1 - ahead) * (1 - behind) <= 2 * (1 - _LEAKY_AUC)).tolist()

    def column(self, k: int, rows: NDArray[np.intp]) -> tuple[Vector, bool]:
        """Numbers, or the codes of categories and True; NaN where a value is missing."""
        if sp.issparse(self.data):
            return self.data[:, [k]].toarray().ravel()[rows].astype(np.float64), False
        if isinstance(self.data, np.ndarray):
            return self.data[rows, k].astype(np.float64), False
        return _frame_column(self.data.iloc[rows, k])


def _named_columns(data: Any, names: Sequence[str] | None) -> _Columns:
    if hasattr(data, "columns"):
        return _Columns(data, [str(name) for name in data.columns])
    named = (
        [f"column {k}" for k in range(data.shape[1])]
        if names is None
        else [str(name) for name in names]
    )
    if len(named) != data.shape[1]:
        raise ValueError(f"There are {len(named)} names for {data.shape[1]} columns.")
    return _Columns(data.tocsc() if sp.issparse(data) else data, named)


def _frame_column(column: Any) -> tuple[Vector, bool]:
    from pandas.api import types

    from forerank.data.frames import distinct
    from forerank.data.transformers import column_floats

    if types.is_datetime64_any_dtype(column.dtype):
        return column_floats(column, dates=True), False
    if types.is_numeric_dtype(column.dtype):
        return column_floats(column), False
    try:
        codes = distinct(column)[0].astype(np.float64)
    except TypeError:  # lists and the like: seen only whether they are there
        codes = np.where(column.isna(), np.nan, 0.0)
    return np.where(codes < 0, np.nan, codes), True


def _leaky_columns(
    columns: _Columns, y: NDArray[np.intp], max_rows: int, rng: np.random.Generator
) -> Iterator[DataWarning]:
    binary = y.max() == 1
    rows = _sampled(y, max_rows, rng)
    look = rows[_sampled(y[rows], _FIRST_LOOK, rng)]
    seen = "" if rows.size == y.size else f" (seen on a sample of {rows.size:,} rows)"
    for k in columns.candidates(y == 1 if binary else None):
        values, is_category = columns.column(k, look)
        if max(auc for auc, _ in _looks(values, is_category, y[look])) < _LOOK_TWICE_AUC:
            continue
        if look.size < rows.size:
            values, is_category = columns.column(k, rows)
        auc, how = max(_looks(values, is_category, y[rows]))
        if auc >= _LEAKY_AUC:
            warning = _leak(columns, k, how, auc, values, y[rows], seen)
            if warning is not None:
                yield warning


def _sampled(y: NDArray[np.intp], size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows of each class, the same number of each or all there are: the AUC does not depend on the
    mixture.
    """
    if y.size <= size:
        return np.arange(y.size)
    chosen: list[NDArray[np.intp]] = []
    room = size
    counts = np.bincount(y)
    order = np.argsort(counts, kind="stable")
    for place, label in enumerate(order):  # what a small class leaves is for the larger ones
        rows = np.flatnonzero(y == label)
        share = max(1, room // (order.size - place))
        chosen.append(rows if rows.size <= share else rng.choice(rows, share, replace=False))
        room -= chosen[-1].size
    return np.sort(np.concatenate(chosen))


def _looks(values: Vector, is_category: bool, y: NDArray[np.intp]) -> list[tuple[float, str]]:
    """The AUC of a column in each way of reading it; 0.5 where there is nothing to see."""
    known = np.isfinite(values)
    found = [(0.5, "values")]
    if not known.all():
        auc = _auc(known.astype(np.float64), y)
        found.append((max(auc, 1 - auc), "gaps"))
        only_ahead = known & (y == 0)
        if (
            y.max() == 1
            and not only_ahead.any()
            and known.sum() >= max(_TINY_CLASS, (y == 1).sum() / 2)
        ):
            found.append((_LEAKY_AUC, "known for positives"))
        values, y = values[known], y[known]
    if np.unique(y).size < 2:
        return found
    if not is_category:
        auc = _auc(values, y)
        found.append((max(auc, 1 - auc), "values"))
    codes = np.unique(values, return_inverse=True)[1]
    if is_category or codes.max() < _FEW_VALUES:
        found.append((_auc(_rates_of_others(codes, y), y), "categories"))
    return found


def _auc(values: Vector, y: NDArray[np.intp]) -> float:
    """The share of pairs in order, ties counting one half: by ranks for two classes, else `wmw`."""
    if y.max() > 1:
        return float(wmw(y, values))
    n_ahead = int(y.sum())
    n_behind = y.size - n_ahead
    if not n_ahead or not n_behind:
        return 0.5
    ranks = rankdata(values)
    return float((ranks[y == 1].sum() - n_ahead * (n_ahead + 1) / 2) / (n_ahead * n_behind))


def _rates_of_others(codes: NDArray[np.intp], y: NDArray[np.intp]) -> Vector:
    """The mean label of the other rows of the same category, and of all rows where there is no
    other.
    """
    counts = np.bincount(codes)[codes]
    sums = np.bincount(codes, weights=y)[codes]
    return np.where(counts > 1, (sums - y) / np.maximum(counts - 1, 1), y.mean())


def _leak(
    columns: _Columns, k: int, how: str, auc: float, values: Vector, y: NDArray[np.intp], seen: str
) -> DataWarning | None:
    """A word on a column that ranks the labels, unless chance does as much among so many columns."""
    known = (
        np.ones(y.size, dtype=bool)
        if how in ("gaps", "known for positives")
        else np.isfinite(values)
    )
    counts = np.bincount(y[known])
    few, n_known = int(counts[counts > 0].min()), int(known.sum())
    if _chance(auc, few, n_known) * len(columns) > _CHANCE:
        return None
    name = columns.names[k]
    if how == "gaps":
        what = f"Whether {name!r} is missing tells the label (AUC {auc:.4f}){seen}"
    elif how == "known for positives":
        what = f"{name!r} is known for {_known_share(values, y):.0%} of the positive rows and for no other row{seen}"
    elif how == "categories":
        what = f"The value of {name!r} alone tells the label (AUC {auc:.4f}, each row judged by others){seen}"
    else:
        what = f"The column {name!r} alone ranks the labels {'perfectly' if auc == 1 else 'nearly perfectly'} "
        what += f"(AUC {auc:.4f}){seen}"
    if few < _SURE_FROM or how == "known for positives":
        advice = "That may be honest"
        advice += (
            f", the smaller class having {counted(few, 'row')} only" if few < _SURE_FROM else ""
        )
        advice += (
            "; make sure that it is known at the time when rows are ranked, else leave it out."
        )
        return DataWarning("perhaps leaky column", name, f"{what}. {advice}")
    advice = "Such a column mostly holds what became known with the label or after it. Leave it out, unless it is known"
    return DataWarning("leaky column", name, f"{what}. {advice} at the time when rows are ranked.")


def _known_share(values: Vector, y: NDArray[np.intp]) -> float:
    """The share of positive rows that have a value."""
    return float(np.isfinite(values[y == 1]).mean())


def _chance(auc: float, few: int, n: int) -> float:
    """About the probability that a column of noise has this AUC, or one minus it."""
    perfect = -_log_choose(n, few)
    wrong = few * (1 - auc)
    near = few * math.log(wrong) - math.lgamma(few + 1) if wrong > 0 else -math.inf
    return 2 * math.exp(min(0.0, max(perfect, near)))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


# --- Rows ---


def _same_rows(data: Any, columns: _Columns, y: NDArray[np.intp]) -> Iterator[DataWarning]:
    hashes = _row_hashes(data)
    if hashes is None:
        return
    group, counts = np.unique(hashes, return_inverse=True, return_counts=True)[1:]
    low, high = np.full(counts.size, y.max()), np.zeros(counts.size, dtype=y.dtype)
    np.minimum.at(low, group, y)
    np.maximum.at(high, group, y)
    in_both = int(counts[low < high].sum())
    if in_both >= max(2, 0.01 * np.bincount(y).min()):
        best = _auc(np.bincount(group, weights=y)[group] / counts[group], y)
        yield DataWarning(
            "same row in both classes",
            None,
            f"{in_both:,} of {y.size:,} rows have the same values as a row with another label. No ranker can tell them "
            f"apart, and none gets beyond an AUC of {best:.4f} here. Look for wrong labels, or add a column that "
            "differs.",
        )
    copies = y.size - np.unique(group * (int(y.max()) + 1) + y).size
    if copies >= max(2, _COPIES_SHARE * y.size) and not _repeats_are_natural(columns, y.size):
        yield DataWarning(
            "copies",
            None,
            f"{copies:,} of {y.size:,} rows are exact copies of other rows. Where one case is entered twice, a copy "
            "that is kept aside has been learnt already, and figures are too good: take copies out, or give the rows "
            "of a case a group. Different cases that look alike are no harm.",
        )


def _repeats_are_natural(columns: _Columns, n: int) -> bool:
    """Whether the columns have so few values that rows must repeat."""
    if sp.issparse(columns.data):
        return False
    rows, combinations = np.arange(0, n, max(1, n // _FIRST_LOOK)), 1
    for k in range(len(columns)):
        values = columns.column(k, rows)[0]
        combinations *= np.unique(np.nan_to_num(values, nan=-1.5)).size
        if combinations > 10 * n:
            return False
    return True


def _row_hashes(data: Any) -> Hashes | None:
    """One number of 64 bits for each row; equal rows have equal ones."""
    if not data.shape[1]:
        return None
    if hasattr(data, "columns"):
        import pandas as pd

        try:
            return pd.util.hash_pandas_object(data, index=False).to_numpy()
        except TypeError:  # lists and the like
            return None
    if sp.issparse(data):
        # The order in which the entries of a row are stored does not matter to a sum, and zeros add
        # nothing.
        mixed = np.where(
            data.data != 0, _mixed(data.data, data.indices.astype(np.uint64)), np.uint64(0)
        )
        total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
        return total[data.indptr[1:]] - total[data.indptr[:-1]]
    hashes = np.zeros(data.shape[0], dtype=np.uint64)
    for k in range(data.shape[1]):
        hashes += _mixed(data[:, k], np.uint64(k))
    return hashes


def _mixed(values: NDArray, place: Any) -> Hashes:
    """Numbers and their columns, well mixed (the finalizer of splitmix64)."""
    floats = values.astype(np.float64) + 0.0  # one zero, not two
    floats[np.isnan(floats)] = np.nan
    with np.errstate(over="ignore"):
        z = floats.view(np.uint64) + (place + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


# --- Classes, groups, scores ---


def _classes(y: NDArray[np.intp]) -> Iterator[DataWarning]:
    counts = np.bincount(y)
    if counts.size == 1:
        yield DataWarning(
            "one class", None, f"All {y.size:,} rows have the same label: there is nothing to rank."
        )
        return
    if counts.size > 2:  # a rare grade is nothing unusual
        return
    few, many = int(counts.min()), int(counts.max())
    which = "positive" if counts[1] <= counts[0] else "negative"
    if few < _TINY_CLASS:
        yield DataWarning(
            "tiny class",
            None,
            f"{few:,} of {y.size:,} rows {'is' if few == 1 else 'are'} {which}: an AUC near 0.8 is known to about "
            f"±{_half_width(few, many):.2f} from them, and smaller differences between methods are not significant. "
            f"Label more {which} rows before believing a figure.",
        )
    elif few < _EXTREME_SHARE * y.size:
        yield DataWarning(
            "extreme imbalance",
            None,
            f"One row in {round(y.size / few):,} is {which}. With an AUC of 0.99 there can still be a hundred wrong "
            "rows ahead of each right one: measure the top of the list (ap, pos_at_top, recall@k).",
        )


def _half_width(few: int, many: int, auc: float = 0.8) -> float:
    """Half of a 95 % interval of an AUC, after Hanley and McNeil (1982)."""
    q1, q2 = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    variance = auc * (1 - auc) + (few - 1) * (q1 - auc**2) + (many - 1) * (q2 - auc**2)
    return min(0.5, 1.96 * math.sqrt(variance / (few * many)))


def _groups(group: NDArray[np.intp], y: NDArray[np.intp]) -> Iterator[DataWarning]:
    n_groups = int(group.max()) + 1
    low, high = np.full(n_groups, y.max()), np.zeros(n_groups, dtype=y.dtype)
    np.minimum.at(low, group, y)
    np.maximum.at(high, group, y)
    idle = int((low == high).sum())
    if idle >= max(1, _GROUPS_SHARE * n_groups):
        rows = int((low == high)[group].sum())
        end = (
            "check that the groups belong to the rows."
            if idle == n_groups
            else "they count in no measure."
        )
        yield DataWarning(
            "groups of one class",
            None,
            f"{idle:,} of {counted(n_groups, 'group')} ({counted(rows, 'row')}) {'has' if idle == 1 else 'have'} rows "
            f"of one label only. {'It holds' if idle == 1 else 'They hold'} no pair to learn "
            f"from; {end}",
        )


def _scores(scores: NDArray, n: int) -> Iterator[DataWarning]:
    if scores.shape != (n,):
        raise ValueError(
            f"scores has shape {scores.shape}; one score for each of the {n} rows is expected."
        )
    values, counts = np.unique(scores, return_counts=True)
    if values.size == 1 and n > 1:
        yield DataWarning(
            "constant score",
            None,
            f"All {n:,} rows have the score {values[0]:g}: this is no ranking. Penalise less (a smaller alpha), or "
            "check that the columns hold anything.",
        )
    elif counts.max() > _TIED_SHARE * n and values.size > 1:
        most = counts.argmax()
        yield DataWarning(
            "tied scores",
            None,
            f"{counts[most]:,} of {n:,} rows share the score {values[most]:g}: their order is arbitrary, and measures "
            "at the top depend on how ties are counted.",
        )
