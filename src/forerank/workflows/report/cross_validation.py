"""Scores of rows by models that have not seen them, and of all rows by each of these models."""

import warnings
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline

from forerank._text import counted
from forerank._typing import Vector
from forerank.data.files import first_line
from forerank.estimators.scores import score_rows
from forerank.models import Model
from forerank.workflows.fit import _first_rows, explain

__all__ = ["HeldOut", "cross_validate", "fit_all", "named_weights"]

# Names and weights of more columns than this are not kept for every fold.
_MOST_WEIGHTS = 100_000


@dataclass
class HeldOut:
    """What cross-validation leaves behind.

    Attributes
    ----------
    scores : ndarray of shape (n_rows,)
        The place of each row in the list of its fold, by the model that has not seen it: the share
        of the fold's rows that stand behind it, tied ones and itself by half. NaN where there is
        none.
    fold : ndarray of shape (n_rows,)
        The fold of each row; -1 where it was scored by none.
    by_model : ndarray of shape (n_models, n_rows)
        Scores of all rows by the model of each fold.
    weights : list of dict
        For each fold, weights by name of the method and penalty that were chosen on all rows,
        fitted on the rows of the fold's model; empty where it is not linear, or the columns are
        very many.
    choices : list of (str, float or None)
        The method and the alpha that each model chose, where the ranker chooses.
    problems : list of str
        Folds that could not be fitted or measured, and why.
    cautions : list of str
        What the fits warned of.
    """

    scores: Vector
    fold: NDArray[np.intp]
    by_model: Vector
    weights: list[dict[str, float]] = field(default_factory=list)
    choices: list[tuple[str, float | None]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)

    @property
    def rows(self) -> NDArray[np.intp]:
        """The rows that have a score."""
        return np.flatnonzero(self.fold >= 0)

    @property
    def n_folds(self) -> int:
        """Folds whose model could be fitted."""
        return len(self.by_model)


def cross_validate(
    table: Any,
    y: NDArray,
    model: Any,
    *,
    kinds: dict[str, str],
    folds: Any,
    seed: int,
    say: Any,
    chosen: Any = None,
) -> HeldOut:
    """Fit the columns' steps and the ranker on all folds but one, for each of them, and score all
    rows.

    Scores of two models are not on the same scale, least of all where their penalties differ. So
    measures are taken in each fold; where rows of all folds are shown together, it is by their
    places in the lists of their folds.

    `chosen` is a fitted ranker that has chosen a method and a penalty. Its weights are those that
    are compared between folds: of models with other penalties they would differ in size, whatever
    the rows.
    """
    splits, problems = _splits(y, table.groups, folds, seed)
    found = HeldOut(
        np.full(y.size, np.nan),
        np.full(y.size, -1, dtype=np.intp),
        np.empty((0, y.size)),
        [],
        [],
        problems,
    )
    by_model: list[Vector] = []
    one_class: list[str] = []
    for number, (train, test) in enumerate(splits):
        say(f"fold {number + 1} of {len(splits)}")
        if np.unique(y[train]).size < 2:
            found.problems.append(
                f"Fold {number + 1} was left out: the rows to learn from are of one class once it is taken away."
            )
            continue
        order = np.concatenate([train, np.setdiff1d(np.arange(y.size), train)])
        try:
            pipeline, inner, alike = _fitted(
                table, y, model, order, train.size, found.cautions, chosen=chosen
            )
        except ValueError as error:
            found.problems.append(f"Fold {number + 1} was left out: {first_line(error)}.")
            continue
        scores = np.empty(y.size)
        scores[order] = inner
        if np.unique(y[test]).size < 2:
            one_class.append(str(number + 1))
        found.scores[test], found.fold[test] = (rankdata(scores[test]) - 0.5) / test.size, number
        by_model.append(scores)
        few = _width(pipeline, table.extra) <= _MOST_WEIGHTS
        found.weights.append(named_weights(alike, kinds, table.extra) if few else {})
        if hasattr(pipeline[-1], "best_method_"):
            found.choices.append(
                (str(pipeline[-1].best_method_), getattr(pipeline[-1], "best_alpha_", None))
            )
    if one_class:
        found.problems.append(
            f"Rows of one class only in fold {', '.join(one_class)} of {len(splits)}: there is no measure within "
            "such a fold, and measures are means over the others."
        )
    if by_model:
        found.by_model = np.array(by_model)
    return found


def fit_all(table: Any, y: NDArray, model: Any, cautions: list[str]) -> Pipeline:
    """The pipeline fitted on all rows."""
    return _fitted(table, y, model, np.arange(y.size), y.size, cautions, score=False)[0]


def named_weights(
    pipeline: Pipeline, kinds: dict[str, str], extra: dict[str, Any]
) -> dict[str, float]:
    """The weights of a fitted pipeline by name, the largest first; none where it is not linear."""
    coef = getattr(pipeline[-1], "coef_", None)
    if coef is None or np.size(coef) != _width(pipeline, extra):
        return {}
    explanation = explain(Model(pipeline, columns=kinds, summary=extra))
    return {each.name: each.weight for each in explanation.weights}


def _width(pipeline: Pipeline, extra: dict[str, Any]) -> int:
    """Columns of the matrix that the ranker was given."""
    if "n_columns" in extra:
        return int(extra["n_columns"])
    return len(pipeline[0].get_feature_names_out())


def _fitted(
    table: Any,
    y: NDArray,
    model: Any,
    order: NDArray,
    n_train: int,
    cautions: list[str],
    *,
    score: bool = True,
    chosen: Any = None,
) -> tuple[Pipeline, Vector, Pipeline]:
    """Steps and ranker fitted on the first rows of an order, and the scores of all of them, in that
    order.

    The last is the pipeline with the method and penalty of `chosen` fitted on these rows, or the
    same where it is None.
    """
    extra = {} if table.groups is None else {"qid": table.groups[order[:n_train]]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        steps, X = table.prepared(clone(table.steps()), order, n_train)
        rows = _first_rows(X, n_train), y[order[:n_train]]
        ranker = clone(model).fit(*rows, **extra)
        alike = ranker if chosen is None else copy(chosen).refit(*rows, **extra)
        scores = score_rows(ranker, X) if score else np.empty(0)
    for each in caught:
        if issubclass(each.category, UserWarning):
            line = first_line(
                each.message if isinstance(each.message, Warning) else Warning(each.message)
            )
            if f"{line}." not in cautions:
                cautions.append(f"{line}.")
    return (
        Pipeline([("columns", steps), ("ranker", ranker)]),
        scores,
        Pipeline([("columns", steps), ("ranker", alike)]),
    )


def _splits(
    y: NDArray, groups: NDArray | None, folds: Any, seed: int
) -> tuple[list[tuple[NDArray[np.intp], NDArray[np.intp]]], list[str]]:
    """Rows to learn from and rows to score, for each fold; and what had to be done otherwise than
    asked.
    """
    if not isinstance(folds, int | np.integer):
        pairs = folds.split(np.zeros(y.size), y, groups) if hasattr(folds, "split") else folds
        splits = [
            (np.asarray(train, dtype=np.intp), np.asarray(test, dtype=np.intp))
            for train, test in pairs
        ]
        if any(np.intersect1d(train, test).size for train, test in splits):
            raise ValueError(
                "folds has rows that are both learnt from and scored; the two must be apart."
            )
        return splits, []
    if folds < 2:
        raise ValueError(f"folds={folds!r}: cross-validation needs at least 2.")
    problems: list[str] = []
    classes, counts = np.unique(y, return_counts=True)
    rarest = int(counts.min())
    if groups is not None:
        n_groups = np.unique(groups).size
        n_folds = min(int(folds), n_groups)
        if n_folds < 2:
            return [], [
                "There is one group only; nothing was held out, and nothing could be measured."
            ]
        if n_folds < folds:
            problems.append(
                f"There are {n_groups} groups: {n_folds} folds were made instead of {folds}."
            )
        if counts.max() >= n_folds:
            splits = _split_by(
                StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed), y, groups
            )
            if all(test.size for _, test in splits):
                return splits, problems
        return _split_by(GroupKFold(n_folds, shuffle=True, random_state=seed), y, groups), problems
    if classes.size > 2:  # a grade of few rows need not be in every fold
        n_folds = min(int(folds), int(counts.max()))
        if n_folds < 2:
            return [], [
                "No grade has two rows; nothing could be held out, and nothing was measured."
            ]
        return _split_by(
            StratifiedKFold(n_folds, shuffle=True, random_state=seed), y, None
        ), problems
    n_folds = min(int(folds), rarest)
    if n_folds < 2:
        return [], [
            "One class has a single row; nothing could be held out, and nothing was measured."
        ]
    if n_folds < folds:
        problems.append(
            f"The smaller class has {counted(rarest, 'row')}: {n_folds} folds were made instead of {folds}, one such "
            "row in each."
        )
    return _split_by(StratifiedKFold(n_folds, shuffle=True, random_state=seed), y, None), problems


def _split_by(
    splitter: Any, y: NDArray, groups: NDArray | None
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """The folds of a splitter, which are those of `forerank.workflows.compare.compare` with the
    same seed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a grade of few rows is not in every fold
        return list(
            splitter.split(np.zeros((y.size, 1)), np.unique(y, return_inverse=True)[1], groups)
        )
