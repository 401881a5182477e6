"""Importance of the columns of an additive model: the standard deviation of what each adds to the
score.

That of numbers, dates and categories follows from the transformers and the weights. What a text
adds depends on which words occur together, which a model does not hold: `text_spreads` computes it
from rows of the fit, and the summary of the model keeps it.
"""

from typing import Any

import numpy as np

from forerank._typing import Vector
from forerank.data.forms import in_form
from forerank.data.table_rows import TableRows
from forerank.data.transformers import TableColumns, TextColumn
from forerank.models.curves import column_curves, is_additive
from forerank.models.file import Model

__all__ = ["column_importance", "text_spreads"]

# Rows, equally spaced, from which the spread of a text is computed: its error is then half a
# percent.
_MOST_ROWS = 20_000


def text_spreads(columns: Any, ranker: Any, X: Any) -> dict[str, float]:
    """The standard deviation of what each text adds to the score of an additive model; empty for
    other models.

    Parameters
    ----------
    columns : fitted transformer
    ranker : fitted estimator
    X : matrix, TableRows or ColumnForms
        The training rows.
    """
    coef = getattr(ranker, "coef_", None)
    if coef is None or not isinstance(columns, TableColumns) or not is_additive([columns]):
        return {}
    steps = [each for each in columns.transformers_ if isinstance(each[1], TextColumn)]
    if not steps:
        return {}
    rows, weights = _some(in_form(X, "additive")), np.ravel(coef)
    parts = [(names[0], columns.output_indices_[step]) for step, _, names in steps]
    return {name: float(_adds(rows, weights, part).std()) for name, part in parts}


def _adds(rows: Any, weights: Vector, part: slice) -> Vector:
    return np.asarray(rows[:, part] @ weights[part], dtype=np.float64).ravel()


def _some(X: Any) -> Any:
    if isinstance(X, TableRows):
        return X.some(_MOST_ROWS)
    return X[:: max(1, -(-X.shape[0] // _MOST_ROWS))]


def column_importance(model: Model) -> tuple[dict[str, float], list[str]]:
    """The importance of each column of an additive model, the largest first, and the texts of which
    it is not known, as in files of early versions; both empty for other models.

    That of a date is the largest of its parts.
    """
    if not model.columns or not is_additive(model.estimator):
        return {}, []
    found: dict[str, float] = {}
    for curve in column_curves(model):
        found.setdefault(curve.column, curve.importance)
    spreads = model.summary.get("text_spread", {})
    texts = [name for name, kind in model.columns.items() if kind == "text"]
    found |= {name: float(spreads[name]) for name in texts if name in spreads}
    ordered = sorted(found.items(), key=lambda item: -item[1])
    return dict(ordered), [name for name in texts if name not in spreads]
