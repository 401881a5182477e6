"""Folds of cross-validation: the same for every method, and for comparison and report."""

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, StratifiedKFold

from forerank._typing import Index
from forerank._validation import is_integer

__all__ = ["Folds", "TooFewRowsError", "make_folds", "with_seed"]


class TooFewRowsError(ValueError):
    """Too few rows, or groups, for two folds."""


@dataclass(frozen=True)
class Folds:
    """Row numbers to train on and to test on, for each fold, and notes for the user."""

    splits: list[tuple[Index, Index]]
    notes: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.splits)


def make_folds(cv: Any, y: NDArray, groups: Index | None = None, seed: int = 0) -> Folds:
    """Folds of rows with these labels and groups.

    Parameters
    ----------
    cv : int, splitter of scikit-learn or list of (train, test)
        An integer is the number of stratified folds, shuffled by the seed. There are never more
        than rows of the smaller class (of the largest grade, where there are more than two). A
        group is in one fold, and there are never more folds than groups.
    y : array
    groups : array, optional
    seed : int, default=0

    Raises
    ------
    TooFewRowsError
        Where an integer was given and there are not enough rows for two folds.
    """
    if not is_integer(cv) or cv < 2:
        return Folds(_given_splits(cv, y, groups))
    counts = np.unique(y, return_counts=True)[1]
    most, what = int(counts.min()), "rows of the smaller class"
    if counts.size > 2:
        most, what = int(counts.max()), "rows of the largest grade"
    if groups is not None:
        most, what = int(np.unique(groups).size), "groups"
    if most < 2:
        raise TooFewRowsError(f"Cross-validation needs at least 2 {what}; the data have {most}.")
    n_folds, notes = min(int(cv), most), []
    if n_folds < cv:
        notes.append(f"there are {n_folds} folds instead of {cv}, for {most} {what}")
    if groups is None:
        splitter: Any = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        return Folds(_split(splitter, y, groups), notes)
    if counts.max() >= n_folds:
        splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
        splits = _split(splitter, y, groups)
        if all(test.size for _, test in splits):
            return Folds(splits, notes)
    return Folds(_split(GroupKFold(n_folds, shuffle=True, random_state=seed), y, groups), notes)


def with_seed(splitter: Any, seed: int) -> Any:
    """A copy of a splitter with this random state; unchanged where it has none."""
    splitter = clone(splitter, safe=False)
    if hasattr(splitter, "random_state"):
        splitter.random_state = seed
    return splitter


def _given_splits(cv: Any, y: NDArray, groups: Index | None) -> list[tuple[Index, Index]]:
    if isinstance(cv, bool | str) or not (hasattr(cv, "split") or hasattr(cv, "__iter__")):
        raise ValueError(
            f"{cv!r} is not a number of folds: give at least 2, a splitter of scikit-learn, or a "
            "list of pairs (train, test)."
        )
    pairs = _split(cv, y, groups) if hasattr(cv, "split") else cv
    splits = [(np.asarray(a, dtype=np.intp), np.asarray(b, dtype=np.intp)) for a, b in pairs]
    if any(np.intersect1d(train, test).size for train, test in splits):
        raise ValueError("A fold has the same rows in train and test; give disjoint sets of rows.")
    return splits


def _split(splitter: Any, y: NDArray, groups: Index | None) -> list[tuple[Index, Index]]:
    codes = np.unique(y, return_inverse=True)[1]
    with warnings.catch_warnings():
        # A grade of few rows is missing in some folds, which is reported for the fold itself.
        warnings.simplefilter("ignore", UserWarning)
        return list(splitter.split(np.zeros((y.size, 1)), codes, groups))
