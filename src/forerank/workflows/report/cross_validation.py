"""Scores of held-out rows by models that were fitted without them."""

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from forerank._typing import Index, Vector
from forerank.data.files import first_line
from forerank.data.folds import TooFewRowsError, make_folds
from forerank.data.problem import RankingProblem, first_rows
from forerank.estimators.scores import score_rows
from forerank.models import Model
from forerank.models.explain import explain
from forerank.models.importance import text_spreads
from forerank.workflows.rankers import available_forms, columns_used, with_categories
from forerank.workflows.report.formatting import as_sentence

__all__ = ["HeldOut", "cross_validate", "fit_all", "named_weights"]

# Most columns of a matrix for which the weights of every fold are kept.
_MOST_WEIGHTS = 100_000


@dataclass
class HeldOut:
    """Result of a cross-validation.

    Attributes
    ----------
    scores : ndarray of shape (n_rows,)
        Relative rank of each row within its fold, by the model fitted without it: the share of the
        fold's rows ranked below it, tied rows and itself counted by half. NaN where there is none.
    fold : ndarray of shape (n_rows,)
        The fold of each row; -1 if it has no score.
    by_model : ndarray of shape (n_models, n_rows)
        Scores of all rows by the model of each fold.
    weights : list of dict
        For each fold, weights by name of the method and penalty that were selected on all rows,
        fitted on the training rows of the fold; empty if it is not linear or has very many columns.
    choices : list of (str, float or None)
        The method and the alpha that each model selected, if the ranker selects them.
    problems : list of str
        Folds that could not be fitted or measured, with the reason.
    fit_warnings : list of str
        Warnings of the fits.
    """

    scores: Vector
    fold: Index
    by_model: Vector
    weights: list[dict[str, float]] = field(default_factory=list)
    choices: list[tuple[str, float | None]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    fit_warnings: list[str] = field(default_factory=list)

    @property
    def rows(self) -> Index:
        """The rows that have a score."""
        return np.flatnonzero(self.fold >= 0)

    @property
    def n_folds(self) -> int:
        """Number of folds whose model could be fitted."""
        return len(self.by_model)

    def add_warnings(self, lines: list[str]) -> None:
        self.fit_warnings = list(dict.fromkeys([*self.fit_warnings, *lines]))


def cross_validate(
    problem: RankingProblem,
    estimator: Any,
    folds: Any,
    seed: int,
    say: Callable[[str], None],
    selected: Any = None,
) -> HeldOut:
    """Fit the columns' transformer and the ranker on the training rows of each fold, and score all
    rows.

    Scores of two models are not on the same scale, least of all if their penalties differ. So
    measures are taken in each fold; rows of all folds are shown together by their relative ranks.

    `selected` is a fitted ranker with a selected method and penalty; its weights are compared
    between folds. Weights of models with other penalties would differ in size in any case.
    """
    y, n = problem.y, problem.y.size
    held = HeldOut(np.full(n, np.nan), np.full(n, -1, dtype=np.intp), np.empty((0, n)))
    try:
        made = make_folds(folds, y, problem.groups, seed)
        splits, held.problems = made.splits, [as_sentence(note) for note in made.notes]
    except TooFewRowsError as error:
        splits, held.problems = [], [f"{error} No row could be held out; nothing was measured."]
    by_model: list[Vector] = []
    one_class: list[str] = []
    for number, (train, test) in enumerate(splits):
        say(f"fold {number + 1} of {len(splits)}")
        order = np.concatenate([train, np.setdiff1d(np.arange(n), train)])
        try:
            if np.unique(y[train]).size < 2:
                raise ValueError("the other folds have rows of one class only")
            fit = _fit(problem, estimator, order, train.size, selected)
            scores = np.empty(n)
            scores[order] = score_rows(fit.pipeline[-1], fit.X)
        except ValueError as error:
            held.problems.append(f"Fold {number + 1} was excluded: {first_line(error)}.")
            continue
        if np.unique(y[test]).size < 2:
            one_class.append(str(number + 1))
        by_model.append(scores)
        held.scores[test], held.fold[test] = (rankdata(scores[test]) - 0.5) / test.size, number
        held.add_warnings(fit.warnings)
        held.weights.append(named_weights(problem, fit.refitted, most=_MOST_WEIGHTS))
        ranker = fit.pipeline[-1]
        if hasattr(ranker, "best_method_"):
            choice = str(ranker.best_method_), getattr(ranker, "best_alpha_", None)
            held.choices.append(choice)
    if one_class:
        held.problems.append(
            f"Rows of one class only in fold {', '.join(one_class)} of {len(splits)}: there is no "
            "measure in such a fold, and measures are means over the others."
        )
    held.by_model = np.array(by_model) if by_model else held.by_model
    return held


def fit_all(problem: RankingProblem, estimator: Any) -> tuple[Pipeline, dict[str, Any], list[str]]:
    """The pipeline fitted on all rows, entries of the summary of its model, and the warnings of the
    fit.
    """
    n = problem.y.size
    fit = _fit(problem, estimator, np.arange(n), n)
    spread = text_spreads(fit.pipeline[0], fit.pipeline[-1], fit.X)
    return fit.pipeline, ({"text_spread": spread} if spread else {}), fit.warnings


def named_weights(
    problem: RankingProblem, pipeline: Pipeline, *, most: int | None = None
) -> dict[str, float]:
    """Weights of a fitted pipeline by name, the largest first; empty if it is not linear, or has
    more than `most` columns.
    """
    coef = getattr(pipeline[-1], "coef_", None)
    if coef is None or (most is not None and np.size(coef) > most):
        return {}
    if np.size(coef) != _n_columns(problem, pipeline):
        return {}
    model = Model(pipeline, columns=problem.column_kinds, summary=problem.read_settings)
    return {weight.name: weight.weight for weight in explain(model).weights}


def _n_columns(problem: RankingProblem, pipeline: Pipeline) -> int:
    """Number of columns of the matrix that a linear ranker was fitted on."""
    if "n_columns" in problem.read_settings:
        return int(problem.read_settings["n_columns"])
    return len(pipeline[0].get_feature_names_out())


@dataclass(frozen=True)
class _Fit:
    """`refitted` is the pipeline with the selected method and penalty, or `pipeline`; `X` is the
    matrix of all rows in the given order.
    """

    pipeline: Pipeline
    refitted: Pipeline
    X: Any
    warnings: list[str]


def _fit(
    problem: RankingProblem, estimator: Any, order: Index, n_train: int, selected: Any = None
) -> _Fit:
    """Transformer and ranker fitted on the first `n_train` rows of an order."""
    train = order[:n_train]
    groups = {} if problem.groups is None else {"qid": problem.groups[train]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        steps, X = problem.prepare(order, n_train, available_forms(estimator, problem))
        rows = first_rows(X, n_train), problem.y[train]
        ranker = with_categories(clone(estimator), steps).fit(*rows, **groups)
        refitted = ranker if selected is None else copy(selected).refit(*rows, **groups)
    shown = [each.message for each in caught if issubclass(each.category, UserWarning)]
    lines = [f"{first_line(m if isinstance(m, Warning) else Warning(m))}." for m in shown]
    pipeline, other = (
        Pipeline([("columns", columns_used(steps, r)), ("ranker", r)]) for r in (ranker, refitted)
    )
    return _Fit(pipeline, other, X, lines)
