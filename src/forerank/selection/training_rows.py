"""Rows with labels, weights and groups; their splits into folds, and stratified samples of them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Index, Vector
from forerank._validation import check_number
from forerank.data.folds import TooFewRowsError, make_folds
from forerank.metrics.registry import Measure

__all__ = [
    "Split",
    "TrainingRows",
    "assign_blocks",
    "lists_rows",
    "make_splits",
    "numbered_groups",
    "stratified_order",
    "stratified_sample",
]

# Fewest rows of the rarest class in a stratified sample; all of them if there are fewer.
_MIN_CLASS_ROWS = 200


@dataclass(frozen=True)
class TrainingRows:
    """Rows of X with labels, and with weights and groups if there are any."""

    X: Any
    y: NDArray
    weight: Vector | None
    group: NDArray[np.integer] | None

    def take(self, rows: Index) -> "TrainingRows":
        return replace(self.labels(rows), X=self.X[rows])

    def labels(self, rows: Index) -> "TrainingRows":
        """Labels, weights and groups of some rows, without X."""
        weight = None if self.weight is None else self.weight[rows]
        return TrainingRows(
            None, self.y[rows], weight, None if self.group is None else self.group[rows]
        )

    def weighted(self) -> "TrainingRows":
        """The rows with a weight, unless a class would be lost; the others count for nothing."""
        if self.weight is None or self.weight.all():
            return self
        rows = np.flatnonzero(self.weight)
        lost = np.unique(self.y[rows]).size < np.unique(self.y).size
        return self if lost else self.take(rows)

    def fit_arguments(self, ranker: Any) -> dict[str, Any]:
        """Weights and groups, as far as the `fit` of a ranker takes them."""
        given = {"sample_weight": self.weight, "qid": self.group}
        given = {name: value for name, value in given.items() if value is not None}
        taken = signature(ranker.fit).parameters if given else ()
        return {name: value for name, value in given.items() if name in taken}

    def evaluate(self, measure: Measure, scores: Vector, list_rows: int) -> float:
        """The measure of a list of `list_rows` rows on these; NaN if they are of one class."""
        grouped = self.group is not None
        function = measure.for_rows(scores.size, list_rows, grouped=grouped).function
        try:
            return float(function(self.y, scores, sample_weight=self.weight, qid=self.group))
        except ValueError:  # one class only
            return np.nan


def lists_rows(cv: Any) -> bool:
    """Whether `cv` lists the row numbers of folds, so that rows have to keep their numbers."""
    return not isinstance(cv, int | np.integer) and not hasattr(cv, "split")


@dataclass(frozen=True)
class Split:
    """Row numbers to train on and to test on; the label names them in messages."""

    train: Index
    test: Index
    label: str


def make_splits(
    cv: Any, data: TrainingRows, seed: Callable[[], int], *, repeats: int = 1
) -> tuple[list[Split], list[str]]:
    """Folds whose training rows have two classes, and notes for the user; no folds if there are too
    few rows. A number of folds may be repeated, with other seeds.
    """
    if isinstance(cv, int | np.integer):
        check_number("cv", int(cv), low=2, integer=True)
    group = None if data.group is None else data.group.astype(np.intp)
    pairs, notes = [], []
    for _ in range(repeats):
        try:
            folds = make_folds(cv, data.y, group, seed())
        except TooFewRowsError as error:
            text = str(error).rstrip(".")
            return [], [text[0].lower() + text[1:]]
        pairs += folds.splits
        notes = folds.notes
    pairs = [(train, test) for train, test in pairs if np.unique(data.y[train]).size > 1]
    return [Split(*pair, f"fold {number}") for number, pair in enumerate(pairs, 1)], notes


def assign_blocks(data: TrainingRows, n_blocks: int, rng: np.random.Generator) -> Index:
    """The block of each row: complete groups, or each class spread evenly over the blocks."""
    if data.group is not None:
        _, group = np.unique(data.group, return_inverse=True)
        return rng.permutation(int(group.max()) + 1)[group] % n_blocks
    block = np.empty(data.y.size, dtype=np.intp)
    for label in np.unique(data.y):
        rows = rng.permutation(np.flatnonzero(data.y == label))
        block[rows] = np.arange(rows.size) % n_blocks
    return block


def stratified_order(data: TrainingRows, rng: np.random.Generator) -> Index:
    """A random order of the rows whose first n, for every n, have the shares of the classes, or are
    complete groups.
    """
    if data.group is not None:
        _, group = np.unique(data.group, return_inverse=True)
        return np.argsort(rng.permutation(int(group.max()) + 1)[group], kind="stable")
    position = np.empty(data.y.size)
    for label in np.unique(data.y):
        rows = np.flatnonzero(data.y == label)
        position[rows] = rng.permutation(rows.size) / rows.size
    return np.argsort(position, kind="stable")


def stratified_sample(y: NDArray, group: NDArray | None, n_rows: int, seed: int) -> Index:
    """Row numbers, ascending, of a random sample with the shares of the classes; more than `n_rows`
    if a class is rare.
    """
    rarest = int(np.unique(y, return_counts=True)[1].min())
    size = max(n_rows, int(np.ceil(y.size * min(1.0, _MIN_CLASS_ROWS / rarest))))
    if size >= y.size:
        return np.arange(y.size)
    order = stratified_order(TrainingRows(None, y, None, group), np.random.default_rng(seed))
    return np.sort(order[:size])


def numbered_groups(group: NDArray[np.integer]) -> NDArray[np.intp]:
    """Groups numbered in the order of their first rows."""
    _, first, number = np.unique(group, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number]
