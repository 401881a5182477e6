"""Checked labels and scores for the displays, and the points at which a curve over k is drawn."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from forerank._typing import Vector
from forerank._validation import refuse_invalid_weights
from forerank.estimators.scores import score_rows

__all__ = [
    "MOST_POINTS",
    "check_labels_and_scores",
    "depths_to_draw",
    "estimator_scores",
    "positive_label",
]

# Most points of a curve: more change nothing visible and make files larger.
MOST_POINTS = 400


def estimator_scores(estimator: Any, X: Any, method: str, pos_label: Any) -> Vector:
    """Scores of a fitted estimator by the response method "auto", "decision_function" or
    "predict_proba", higher for the positive class.
    """
    known = ("decision_function", "predict_proba")
    if method not in ("auto", *known):
        raise ValueError(f"response_method={method!r}: give 'auto', {known[0]!r} or {known[1]!r}.")
    usable = tuple(name for name in known if method in ("auto", name) and hasattr(estimator, name))
    if not usable:
        wanted = " or ".join(known) if method == "auto" else method
        raise ValueError(f"{type(estimator).__name__} has no {wanted}; give an estimator with one.")
    check_is_fitted(estimator)
    return score_rows(estimator, X, methods=usable, pos_label=pos_label)


def check_labels_and_scores(
    y_true: ArrayLike, y_score: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[NDArray, Vector, Vector]:
    """Labels of at least two classes, finite scores, and weights (ones by default)."""
    y = column_or_1d(y_true)
    scores = check_array(y_score, ensure_2d=False, dtype=np.float64, input_name="y_score")
    scores = column_or_1d(scores)
    weight = np.ones(y.size)
    if sample_weight is not None:
        weight = np.asarray(sample_weight, dtype=np.float64)
    check_consistent_length(y, scores, weight)
    if np.unique(y).size < 2:
        raise ValueError("y_true has one class only; expected rows of two classes.")
    refuse_invalid_weights(weight)
    return y, scores, weight


def positive_label(labels: ArrayLike, pos_label: Any) -> Any:
    """The label of the positive class, by default the largest."""
    known = np.unique(np.asarray(labels))
    if pos_label is None:
        return known[-1]
    if pos_label not in known.tolist():
        given = f"pos_label={pos_label!r} is not a valid label"
        raise ValueError(f"{given}: give one of {known.tolist()}.")
    return pos_label


def depths_to_draw(k: NDArray, fine: bool) -> Vector:
    """Values of k at which a curve is drawn.

    Some of `k`, or for `fine` curves (on a log scale, or divided by k, where the line between two
    points is not straight) integers in geometric progression.
    """
    last = float(k[-1])
    if not fine:
        index = np.unique(np.linspace(0, k.size - 1, min(k.size, MOST_POINTS)).astype(np.intp))
        return k[index].astype(np.float64)
    if last <= 1.0:
        return np.array([last])
    return np.unique(np.round(np.geomspace(1.0, last, MOST_POINTS)).clip(max=last))
