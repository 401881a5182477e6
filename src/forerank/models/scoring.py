"""Scores of the rows of a table, column by column.

The score of a linear ranker behind the steps of `forerank.data.transformers` is a sum with one term for
each column of the table. Computed that way it needs no matrix: a number is one product, a category
one look-up. The terms are also what explains a score.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from forerank._text import counted, listed
from forerank._typing import Vector
from forerank.data.column_kinds import arrow_types
from forerank.data.frames import with_types
from forerank.data.transformers import (
    CategoryColumns,
    NumberColumns,
    TableColumns,
    TextColumn,
    category_codes,
    one_hot_columns,
)
from forerank.exceptions import DataFileError
from forerank.models import Model
from forerank.selection.calibration import sigmoid

__all__ = [
    "LinearScorer",
    "column_types",
    "last_step",
    "matrix_scores",
    "missing_columns",
    "missing_words",
    "model_frame",
    "n_matrix_columns",
    "probability_function",
    "scorer_of",
    "table_scores",
    "two_steps",
]

Term = Callable[[Any], Vector]
WordTerms = Callable[[Any], list[dict[str, float]]]
# Values of a column whose weights are looked up only once.
_VALUES_REMEMBERED = 100_000


@dataclass(frozen=True)
class LinearScorer:
    """A score as a sum over columns.

    Attributes
    ----------
    terms : dict
        For each column of the table, what it adds to the scores of a frame.
    intercept : float
    met : dict
        For each column of words that was scored, whether the model knew any of them.
    words : dict
        For each column of texts, what each word of a text adds to its score.
    """

    terms: dict[str, Term]
    intercept: float
    met: dict[str, bool] = field(default_factory=dict)
    words: dict[str, WordTerms] = field(default_factory=dict)

    def strangers(self) -> list[str]:
        """Columns of words of which none so far was among those of the training rows."""
        return [name for name, known in self.met.items() if not known]

    def __call__(self, frame: Any) -> Vector:
        """Scores of the rows of a frame, or of a pyarrow table whose categories are dictionaries."""
        scores = np.full(len(frame), self.intercept)
        for name, term in self.terms.items():
            scores += term(frame[name])
        return scores

    def contributions(self, frame: Any) -> dict[str, Vector]:
        """What each column adds to the score of each row."""
        return {name: term(frame[name]) for name, term in self.terms.items()}


def last_step(model: Model) -> Any:
    """The estimator of a model that gives the scores."""
    return model.estimator[-1] if isinstance(model.estimator, Pipeline) else model.estimator


def two_steps(model: Model) -> tuple[Any, Any]:
    """The columns and the ranker of a model, as `forerank.workflows.fit.fit` makes it; an error
    where it is another one.
    """
    if not isinstance(model.estimator, Pipeline) or len(model.estimator) != 2:
        raise ValueError(
            f"the model is a {type(model.estimator).__name__} that was not made by forerank fit: it gives scores, and "
            "what they are made of is not known"
        )
    return model.estimator[0], model.estimator[-1]


def scorer_of(pipeline: Pipeline) -> LinearScorer | None:
    """The scorer of a fitted pipeline of columns and a linear ranker; None where the ranker is not
    linear.
    """
    if not isinstance(pipeline, Pipeline) or len(pipeline) != 2:
        return None
    steps, ranker = pipeline[0], pipeline[-1]
    if not isinstance(steps, TableColumns) or getattr(ranker, "coef_", None) is None:
        return None
    weights = np.asarray(ranker.coef_, dtype=np.float64).ravel()
    terms: dict[str, Term] = {}
    met: dict[str, bool] = {}
    words: dict[str, WordTerms] = {}
    for name, step, columns in steps.transformers_:
        part = weights[steps.output_indices_[name]]
        if isinstance(step, CategoryColumns):
            terms |= _category_terms(step, part, met)
        elif isinstance(step, TextColumn):
            terms[columns[0]] = _text_term(step, part)
            words[columns[0]] = _word_terms(step, part)
        else:
            terms |= _number_terms(step, part)
    return LinearScorer(terms, float(np.ravel(ranker.intercept_)[0]), met, words)


def _number_terms(step: NumberColumns, weights: Vector) -> dict[str, Term]:
    def term(k: int, weight: float) -> Term:
        return lambda column: weight * step.transform_column(column, k)

    return {str(name): term(k, float(weights[k])) for k, name in enumerate(step.feature_names_in_)}


def _category_terms(
    step: CategoryColumns, weights: Vector, met: dict[str, bool]
) -> dict[str, Term]:
    def term(name: str, encoder: Any, part: Vector) -> Term:
        lookup = np.append(part, 0.0)  # the last for values without a column
        known: dict[str, float] = {}

        def add(column: Any) -> Vector:
            codes, values = category_codes(column)
            new = np.array([value for value in values if value not in known], dtype=object)
            if new.size:
                words = set(new.tolist()) - {""}
                if words:
                    met[name] = met.get(name, False) or not words.isdisjoint(
                        encoder.categories_[0].tolist()
                    )
                if len(known) > _VALUES_REMEMBERED:
                    known.clear()
                    new = values
                known.update(
                    zip(new.tolist(), lookup[one_hot_columns(encoder, new)].tolist(), strict=True)
                )
            return np.array([known[value] for value in values])[codes]

        return add

    terms, first = {}, 0
    for name, encoder, width in zip(
        step.feature_names_in_, step.encoders_, step.widths_, strict=True
    ):
        terms[str(name)] = term(str(name), encoder, weights[first : first + width])
        first += width
    return terms


def _text_term(step: TextColumn, weights: Vector) -> Term:
    def add(column: Any) -> Vector:
        texts = column.to_pandas() if hasattr(column, "combine_chunks") else column
        return step.transform(texts.to_frame()) @ weights

    return add


def _word_terms(step: TextColumn, weights: Vector) -> WordTerms:
    def add(column: Any) -> list[dict[str, float]]:
        matrix, names = (
            sp.csr_matrix(step.transform(column.to_frame())),
            step.tfidf_.get_feature_names_out(),
        )
        rows = (slice(begin, end) for begin, end in itertools.pairwise(matrix.indptr))
        values = matrix.data * weights[matrix.indices]
        return [
            dict(zip(names[matrix.indices[row]], values[row].tolist(), strict=True)) for row in rows
        ]

    return add


# --- Rows as a model expects them ---


def column_types(model: Model) -> dict[str, Any]:
    """The pyarrow types of the columns of a model and its groups; groups are names."""
    return arrow_types({**model.columns, **({} if model.group is None else {model.group: "text"})})


def missing_words(model: Model) -> dict[str, list[str]]:
    """The words that stood for a missing one in columns of numbers when the model was fitted."""
    return {
        name: [str(word) for word in words]
        for name, words in model.summary.get("missing_words", {}).items()
        if model.columns.get(name) == "number" and isinstance(words, list)
    }


def table_scores(model: Model) -> Callable[[Any], Vector]:
    """A function from frames with the model's columns to scores."""
    scorer = scorer_of(model.estimator)
    return scorer if scorer is not None else model.estimator.decision_function


def probability_function(model: Model) -> Callable[[Vector], Vector] | None:
    """A function from scores to probabilities of the positive label; None where the model was not
    calibrated.
    """
    calibration = getattr(last_step(model), "calibration_", None)
    return None if calibration is None else partial(sigmoid, calibration=calibration)


def model_frame(
    model: Model, frame: Any, path: Any, *, allow_missing: bool = False, rows_before: int = 0
) -> Any:
    """The columns of the model, as it expects them; a column that is not there is an error, or
    taken as empty.

    Errors count rows from those before this frame.
    """
    import pandas as pd

    changed: dict[str, Any] = {}
    for name in missing_columns(model, list(frame.columns), path, allow_missing):
        empty: Any = np.float64 if model.columns[name] == "number" else object
        changed[name] = pd.Series(np.full(len(frame), np.nan), index=frame.index, dtype=empty)
    kinds = {name: kind for name, kind in model.columns.items() if name not in changed}

    def refuse(problem: str, row: int) -> DataFileError:
        return DataFileError(path, f"row {rows_before + row + 1:,}: {problem}")

    frame = with_types(frame, kinds, refuse, missing=missing_words(model))
    return frame.assign(**changed) if changed else frame


def n_matrix_columns(model: Model) -> int:
    """Of a model that reads a matrix."""
    return int(model.summary.get("n_columns", model.estimator.n_features_in_))


def matrix_scores(model: Model, X: Any, path: Any) -> Vector:
    """Scores of the rows of a matrix; columns beyond those of the model are ignored, missing ones
    are empty.
    """
    if model.columns:
        raise DataFileError(path, "the model was fitted on a table with columns by name")
    n_columns = n_matrix_columns(model)
    if X.shape[1] > n_columns:
        X = X[:, :n_columns]
    elif X.shape[1] < n_columns:
        if not sp.issparse(X):
            raise DataFileError(
                path,
                f"the model reads {counted(n_columns, 'column')}, and the matrix has {X.shape[1]:,}",
            )
        X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_columns))
    return model.estimator.decision_function(X)


def missing_columns(model: Model, names: list[Any], path: Any, allowed: bool) -> list[str]:
    """The columns of the model that are not among these names; an error where that is not allowed."""
    missing = [name for name in model.columns if name not in names]
    if missing and not allowed:
        shown = listed(map(repr, missing))
        raise DataFileError(
            path,
            f"columns of the model that are not there: {shown} ({len(missing)} of {len(model.columns)}); "
            "allow missing ones to take them for empty",
            arguments={"allow_missing": True},
        )
    return missing
