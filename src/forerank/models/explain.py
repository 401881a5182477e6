"""Explanations of scores: the weights of a linear model or the importances of trees, and the
contribution of each column.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forerank._typing import Index
from forerank.data.source import DataSource, ReadOptions
from forerank.data.transformers import TableColumns
from forerank.models.file import Model
from forerank.models.importance import column_importance
from forerank.models.scoring import part_scorer, score_parts, sum_scorer
from forerank.models.tables import model_frame, model_source, model_table, n_matrix_columns

__all__ = ["Explanation", "Weight", "explain"]

# Number of words of a text column that an explanation lists.
_WORDS_SHOWN = 5
# Number of rows that are explained by default.
_ROWS_SHOWN = 5


@dataclass(frozen=True)
class Weight:
    """The weight (of trees: the importance) of one column of the matrix, and the table column
    that it comes from.
    """

    name: str
    column: str
    weight: float


@dataclass(frozen=True)
class Explanation:
    """Weights of a model and contributions to the scores of some rows.

    Attributes
    ----------
    weights : list of Weight
        The largest first, by absolute value.
    contributions : list of dict
        For each row: `row`, `score`, `constant` and `columns`, a dict from each column to its
        `value` and what it `adds` to the score. The constant and the contributions sum to the
        score. A text also has the `words` that add most, each with its contribution, and the
        number and sum of the `other_words`.
    intercept : float
        The constant, the same for all rows; of trees, the mean score of the training rows.
    kind : "weight" or "importance"
        What the weights are. Trees have no weights, but the share of each column in the decrease of
        the loss; an average has those of its trees.
    importance : dict
        For an additive model, whose weights belong to parts of curves: each column to the standard
        deviation of what it adds, the largest first. Empty for other models.
    is_average : bool
        Whether the scores are an average, of which the importances are of the trees alone.
    without_importance : list of str
        The texts of an additive model of which it is not known, as in files of early versions.
    """

    weights: list[Weight]
    contributions: list[dict[str, Any]]
    intercept: float
    kind: str = "weight"
    importance: dict[str, float] = field(default_factory=dict)
    is_average: bool = False
    without_importance: list[str] = field(default_factory=list)


def explain(
    model: Model,
    data: Any = None,
    *,
    rows: Iterable[int] | None = None,
    delimiter: str | None = None,
    allow_missing: bool = False,
    encoding: str | None = None,
    format: str | None = None,
    words: int = _WORDS_SHOWN,
) -> Explanation:
    """The weights of a linear model, or the importances of the columns of boosted trees, and the
    contribution of each column to the score of some rows.

    The contributions of trees are Shapley values (`forerank.trees.TreeEnsemble.contributions`).

    Parameters
    ----------
    model : Model
    data : path or frame, optional
        Rows to explain.
    rows : iterable of int, optional
        Their numbers, counted from 1; by default the five with the highest scores.
    delimiter, allow_missing, encoding, format
        As in `forerank.workflows.evaluate.evaluate`.
    words : int, default=5
        Number of words of a text that are listed.

    Returns
    -------
    Explanation
        The contributions of a row and the intercept sum to its score, and those of words to that of
        their text.
    """
    weights, intercept, kind = _weights_of(model)
    importance, unknown = column_importance(model)
    is_average = len(score_parts(model)[0]) > 1
    found = Explanation(weights, [], intercept, kind, importance, is_average, unknown)
    if data is None:
        return found
    source = model_source(model, data, ReadOptions(delimiter, encoding, format))
    if not source.is_table:
        raise source.error("rows of a matrix cannot be explained; give a table with named columns")
    frame = model_frame(model, model_table(model, source), source.path, allow_missing=allow_missing)
    scorer = sum_scorer(model)
    scores = scorer(frame)
    if rows is None:
        selected = np.argsort(-scores, kind="stable")[:_ROWS_SHOWN]
    else:
        selected = _row_indices(rows, len(frame), source)
    some = frame.iloc[selected]
    parts = scorer.contributions(some)
    texts = {name: word_terms(some[name]) for name, word_terms in scorer.words.items()}
    for j, row in enumerate(selected.tolist()):
        terms = {
            name: {"value": _plain_value(some[name].iloc[j]), "adds": float(values[j])}
            for name, values in sorted(parts.items(), key=lambda item: -abs(item[1][j]))
        }
        for name, by_row in texts.items():
            terms[name] |= _largest_words(by_row[j], words)
        shown = {"row": row + 1, "score": float(scores[row]), "constant": intercept}
        found.contributions.append({**shown, "columns": terms})
    return found


def _weights_of(model: Model) -> tuple[list[Weight], float, str]:
    """The weight of each column of the matrix, the constant, and what the weights are; for an
    average the importances of its trees.
    """
    parts, intercept = score_parts(model)
    for part in parts:
        if model.columns and not isinstance(part.columns, TableColumns):
            raise ValueError(
                f"the columns of the model are prepared by a {type(part.columns).__name__}, as in "
                "the first format of model files, which does not hold the column of each weight; "
                "fit the model again to explain its scores"
            )
    last = parts[-1]
    values = last.coef if last.ensemble is None else last.ensemble.importances()
    kind = "weight" if last.ensemble is None else "importance"
    scorers = [(part.weight, part_scorer(part)) for part in parts]
    constant = intercept + sum(weight * scorer.intercept for weight, scorer in scorers)
    return _weights(model, last.columns, values), constant, kind


def _weights(model: Model, steps: Any, coef: Any) -> list[Weight]:
    if model.columns:
        names, columns = list(map(str, steps.get_feature_names_out())), steps.origins()
    else:
        first = 0 if model.summary.get("zero_based", True) else 1
        names = columns = [f"column {k + first}" for k in range(n_matrix_columns(model))]
    order = np.argsort(-np.abs(coef), kind="stable")
    return [Weight(names[k], columns[k], float(coef[k])) for k in order]


def _row_indices(rows: Iterable[int], n_rows: int, source: DataSource) -> Index:
    selected = np.array([row - 1 for row in rows], dtype=np.intp)
    if selected.size and (selected.min() < 0 or selected.max() >= n_rows):
        raise source.error(f"rows are counted from 1 to {n_rows}, got {(selected + 1).tolist()}")
    return selected


def _largest_words(adds: Mapping[str, float], n_named: int) -> dict[str, Any]:
    """The largest contributions of words, and the number and sum of the others."""
    largest = sorted(adds, key=lambda word: (-abs(adds[word]), word))
    others = largest[n_named:]
    rest = {"count": len(others), "adds": float(sum(adds[word] for word in others))}
    return {"words": {word: adds[word] for word in largest[:n_named]}, "other_words": rest}


def _plain_value(value: Any) -> Any:
    """A value of a table as JSON can hold it."""
    import pandas as pd

    if pd.isna(value):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        return int(value)  # files hold integers as doubles
    return value if isinstance(value, int | float | str) else str(value)
