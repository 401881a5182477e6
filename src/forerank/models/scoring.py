"""Scores of the rows of a table, column by column.

The score of a linear ranker after `forerank.data.transformers` is a sum with one term for each
column of the table. Computed that way it needs no matrix: a number takes one product, a category
one look-up. The terms also explain a score.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from forerank._text import counted
from forerank._typing import Vector
from forerank.data.additive_columns import AdditiveColumns
from forerank.data.forms import FormColumns
from forerank.data.transformers import (
    CategoryColumns,
    NumberColumns,
    TableColumns,
    TextColumn,
    category_codes,
    one_hot_columns,
)
from forerank.exceptions import DataFileError
from forerank.models.file import Model
from forerank.models.tables import n_matrix_columns
from forerank.selection.average import ScoreAverage
from forerank.selection.calibration import sigmoid
from forerank.trees import TreeEnsemble

__all__ = [
    "LinearScorer",
    "ScorePart",
    "SumScorer",
    "TreeScorer",
    "last_step",
    "linear_scorer",
    "linear_steps",
    "matrix_scores",
    "part_scorer",
    "probability_function",
    "score_parts",
    "sum_scorer",
    "table_scores",
]

Term = Callable[[Any], Vector]
WordTerms = Callable[[Any], list[dict[str, float]]]
# Largest number of values of a category column whose weights are cached; a full cache is emptied.
_MAX_CACHED_VALUES = 100_000


@dataclass(frozen=True)
class LinearScorer:
    """A score as a sum over columns.

    Attributes
    ----------
    terms : dict
        For each column of a table, the function from its values to their terms of the scores.
    intercept : float
    has_known_values : dict
        For each category column that was scored, whether any value was known to the model.
    words : dict
        For each text column, the function from texts to the terms of their words.
    """

    terms: dict[str, Term]
    intercept: float
    has_known_values: dict[str, bool] = field(default_factory=dict)
    words: dict[str, WordTerms] = field(default_factory=dict)

    def unknown_values(self) -> list[str]:
        """Category columns of which all values so far were unknown to the model."""
        return [name for name, has_known in self.has_known_values.items() if not has_known]

    def __call__(self, frame: Any) -> Vector:
        """Scores of the rows of a frame, or of a pyarrow table with dictionaries as categories."""
        scores = np.full(len(frame), self.intercept)
        for name, term in self.terms.items():
            scores += term(frame[name])
        return scores

    def contributions(self, frame: Any) -> dict[str, Vector]:
        """The term of each column in the score of each row."""
        return {name: term(frame[name]) for name, term in self.terms.items()}


@dataclass(frozen=True)
class TreeScorer:
    """A score as a sum of trees over the columns of a table.

    Attributes
    ----------
    columns : TableColumns
        From a frame to the rows of the trees.
    ensemble : TreeEnsemble
    has_known_values : dict
        As in `LinearScorer`.
    """

    columns: Any
    ensemble: TreeEnsemble
    has_known_values: dict[str, bool] = field(default_factory=dict)

    def __call__(self, frame: Any) -> Vector:
        """Scores of the rows of a frame."""
        X, known = self.columns.transform(frame), self.has_known_values
        origins = self.columns.origins()
        for k in self.columns.categorical_:
            if frame[origins[k]].notna().any():
                found = bool(np.isfinite(X[:, k]).any())
                known[origins[k]] = known.get(origins[k], False) or found
        return self.ensemble.scores(X)

    def unknown_values(self) -> list[str]:
        """Category columns of which all values so far were unknown to the model."""
        return [name for name, has_known in self.has_known_values.items() if not has_known]

    @property
    def intercept(self) -> float:
        """The mean score of the training rows, to which the contributions are added."""
        row = np.zeros((1, self.ensemble.n_features))
        return float(self.ensemble.contributions(row)[0, -1])

    def contributions(self, frame: Any) -> dict[str, Vector]:
        """What each column of the table adds to the score of each row: its Shapley values."""
        values = self.ensemble.contributions(self.columns.transform(frame))
        added: dict[str, Vector] = {}
        for k, name in enumerate(self.columns.origins()):
            added[name] = added.get(name, 0.0) + values[:, k]
        return added

    @property
    def words(self) -> dict[str, WordTerms]:
        """Empty: components of a text are not words."""
        return {}


@dataclass(frozen=True)
class SumScorer:
    """A weighted sum of scores.

    Attributes
    ----------
    parts : list of (float, LinearScorer or TreeScorer)
        Weights and scorers.
    constant : float
    """

    parts: list[tuple[float, LinearScorer | TreeScorer]]
    constant: float = 0.0

    def __call__(self, frame: Any) -> Vector:
        """Scores of the rows of a frame."""
        return np.sum([w * scorer(frame) for w, scorer in self.parts], axis=0) + self.constant

    def unknown_values(self) -> list[str]:
        """Category columns of which all values so far were unknown to the model."""
        return self.parts[-1][1].unknown_values()

    @property
    def intercept(self) -> float:
        """The constant to which the contributions are added."""
        return self.constant + sum(w * scorer.intercept for w, scorer in self.parts)

    def contributions(self, frame: Any) -> dict[str, Vector]:
        """What each column of the table adds to the score of each row."""
        added: dict[str, Vector] = {}
        for weight, scorer in self.parts:
            for name, values in scorer.contributions(frame).items():
                added[name] = added.get(name, 0.0) + weight * values
        return added

    @property
    def words(self) -> dict[str, WordTerms]:
        """Terms of words, where the score has one part: an average adds components of texts."""
        return self.parts[0][1].words if len(self.parts) == 1 else {}


@dataclass(frozen=True)
class ScorePart:
    """A part of a score: a linear ranker or trees on columns in one form.

    Attributes
    ----------
    columns : transformer
    coef : array or None
        Weights of a linear ranker.
    intercept : float
        Of a linear ranker.
    ensemble : TreeEnsemble or None
    weight : float
        Of the part in the sum.
    """

    columns: Any
    coef: Vector | None
    intercept: float
    ensemble: TreeEnsemble | None
    weight: float = 1.0


def score_parts(model: Model) -> tuple[list[ScorePart], float]:
    """The parts of the score of a model that forerank fitted, and a constant.

    ValueError for any other model.
    """
    if not isinstance(model.estimator, Pipeline) or len(model.estimator) != 2:
        raise ValueError(
            f"the model is a {type(model.estimator).__name__} that forerank did not fit; "
            "only models fitted by forerank can be explained or exported"
        )
    columns, ranker = model.estimator[0], model.estimator[-1]
    best = getattr(ranker, "best_estimator_", None)
    if isinstance(best, ScoreAverage):
        steps = columns.steps if isinstance(columns, FormColumns) else {}
        parts = [
            _part(steps.get(form, columns), _alone(each), float(weight))
            for form, each, weight in zip(best.forms, best.estimators, best.weights, strict=True)
        ]
        return parts, float(best.intercept)
    if getattr(ranker, "coef_", None) is None and isinstance(best, Pipeline):
        ranker = _alone(best, type(ranker).__name__)
    return [_part(columns, ranker)], 0.0


def _alone(pipeline: Pipeline, name: str = "Ranker") -> Any:
    """The ranker of a pipeline without other steps."""
    if len(pipeline) > 1:
        raise ValueError(
            f"the model is a {name} on a feature map; only linear rankers and boosted trees on "
            "columns can be explained or exported"
        )
    return pipeline[-1]


def _part(columns: Any, ranker: Any, weight: float = 1.0) -> ScorePart:
    ensemble = getattr(ranker, "ensemble_", None)
    if isinstance(ensemble, TreeEnsemble):
        return ScorePart(columns, None, 0.0, ensemble, weight)
    if getattr(ranker, "coef_", None) is None:
        raise ValueError(
            f"{type(ranker).__name__} has no weights by column; "
            "only linear rankers and boosted trees can be explained or exported"
        )
    coef = np.asarray(ranker.coef_, dtype=np.float64).ravel()
    return ScorePart(columns, coef, float(np.ravel(ranker.intercept_)[0]), None, weight)


def part_scorer(part: ScorePart) -> LinearScorer | TreeScorer:
    """The scorer of the rows of a table."""
    if part.ensemble is not None:
        return TreeScorer(part.columns, part.ensemble)
    assert part.coef is not None
    scorer = _linear_scorer(part.columns, part.coef, part.intercept)
    return LinearScorer({}, part.intercept) if scorer is None else scorer


def sum_scorer(model: Model) -> SumScorer:
    """The scorer of a model of a table; ValueError for models that forerank did not fit."""
    parts, constant = score_parts(model)
    return SumScorer([(part.weight, part_scorer(part)) for part in parts], constant)


def last_step(model: Model) -> Any:
    """The estimator of a model that gives the scores."""
    return model.estimator[-1] if isinstance(model.estimator, Pipeline) else model.estimator


def linear_steps(model: Model) -> tuple[Any, Any, Vector, float]:
    """Transformer, ranker, weights and intercept of a linear model that forerank fitted.

    ValueError for any other model.
    """
    parts, _ = score_parts(model)
    if len(parts) > 1 or parts[0].coef is None:
        what = "an average of rankers" if len(parts) > 1 else "boosted trees"
        raise ValueError(
            f"the model is {what}, without a weight or a curve for each column; choose the "
            "families linear, or additive, to have them"
        )
    return parts[0].columns, model.estimator[-1], parts[0].coef, parts[0].intercept


def linear_scorer(pipeline: Any) -> LinearScorer | None:
    """The scorer of a fitted pipeline of columns and a linear ranker; None for any other one."""
    if not isinstance(pipeline, Pipeline) or len(pipeline) != 2:
        return None
    steps, ranker = pipeline[0], pipeline[-1]
    if getattr(ranker, "coef_", None) is None:
        return None
    coef = np.asarray(ranker.coef_, dtype=np.float64).ravel()
    return _linear_scorer(steps, coef, float(np.ravel(ranker.intercept_)[0]))


def _linear_scorer(steps: Any, coef: Vector, intercept: float) -> LinearScorer | None:
    if not isinstance(steps, TableColumns):
        return None
    scorer = LinearScorer({}, intercept)
    for name, step, columns in steps.transformers_:
        weights = coef[steps.output_indices_[name]]
        if isinstance(step, TextColumn):
            scorer.terms[columns[0]] = partial(_text_term, step, weights)
            scorer.words[columns[0]] = partial(_word_terms, step, weights)
            continue
        if not isinstance(step, NumberColumns | CategoryColumns | AdditiveColumns):
            return None
        ends = np.cumsum(getattr(step, "widths_", [1] * len(columns)))[:-1]
        for k, part in enumerate(np.split(weights, ends)):
            scorer.terms[str(columns[k])] = _column_term(str(columns[k]), step, k, part, scorer)
    return scorer


def _column_term(name: str, step: Any, k: int, weights: Vector, scorer: LinearScorer) -> Term:
    """The term of column k of a step."""
    if isinstance(step, CategoryColumns):
        lookup = np.append(weights, 0.0)
        return _category_term(name, step.encoders_[k], lookup, scorer.has_known_values)
    if isinstance(step, AdditiveColumns):
        return partial(step.term, k=k, weights=weights)
    return partial(_number_term, step, k, float(weights[0]))


def _number_term(step: NumberColumns, k: int, weight: float, column: Any) -> Vector:
    return weight * step.transform_column(column, k)


def _category_term(name: str, encoder: Any, lookup: Vector, has_known: dict[str, bool]) -> Term:
    """The term of a category column; the last weight is that of values without a column."""
    cached: dict[str, float] = {}

    def term(column: Any) -> Vector:
        codes, values = category_codes(column)
        new = np.array([value for value in values if value not in cached], dtype=object)
        if new.size:
            strings = set(new.tolist()) - {""}
            if strings:
                any_known = not strings.isdisjoint(encoder.categories_[0].tolist())
                has_known[name] = has_known.get(name, False) or any_known
            if len(cached) > _MAX_CACHED_VALUES:
                cached.clear()
                new = values
            weights = lookup[one_hot_columns(encoder, new)]
            cached.update(zip(new.tolist(), weights.tolist(), strict=True))
        return np.array([cached[value] for value in values])[codes]

    return term


def _text_term(step: TextColumn, weights: Vector, column: Any) -> Vector:
    texts = column.to_pandas() if hasattr(column, "combine_chunks") else column
    return step.transform(texts.to_frame()) @ weights


def _word_terms(step: TextColumn, weights: Vector, column: Any) -> list[dict[str, float]]:
    matrix = sp.csr_matrix(step.transform(column.to_frame()))
    words = step.tfidf_.get_feature_names_out()[matrix.indices]
    values = (matrix.data * weights[matrix.indices]).tolist()
    rows = itertools.pairwise(matrix.indptr)
    return [dict(zip(words[begin:end], values[begin:end], strict=True)) for begin, end in rows]


def table_scores(model: Model) -> Callable[[Any], Vector]:
    """A function from frames with the model's columns to scores."""
    if (linear := linear_scorer(model.estimator)) is not None:
        return linear
    try:
        parts, _ = score_parts(model)
    except ValueError:  # neither linear rankers nor trees on columns
        parts = []
    if parts and all(isinstance(part.columns, TableColumns) for part in parts):
        return sum_scorer(model)
    return model.estimator.decision_function


def probability_function(model: Model) -> Callable[[Vector], Vector] | None:
    """A function from scores to probabilities of the positive label; None if not calibrated."""
    calibration = getattr(last_step(model), "calibration_", None)
    return None if calibration is None else partial(sigmoid, calibration=calibration)


def matrix_scores(model: Model, X: Any, path: Any) -> Vector:
    """Scores of the rows of a matrix.

    Columns beyond those of the model are ignored; missing columns of a sparse matrix are zero.
    """
    if model.columns:
        raise DataFileError(
            path, "the model was fitted on a table with named columns; give a table"
        )
    n_columns = n_matrix_columns(model)
    if X.shape[1] > n_columns:
        X = X[:, :n_columns]
    elif X.shape[1] < n_columns:
        if not sp.issparse(X):
            n_found = X.shape[1]
            raise DataFileError(
                path, f"the model reads {counted(n_columns, 'column')}, the matrix has {n_found:,}"
            )
        X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_columns))
    return model.estimator.decision_function(X)
