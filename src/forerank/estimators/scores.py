"""From a fitted estimator to one ranking score per row."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from forerank._typing import Vector

__all__ = ["SCORING_METHODS", "check_scores", "score_rows"]

# In order of preference: probabilities close to 1 round to ties, decision values do not.
SCORING_METHODS = ("decision_function", "predict_proba", "predict")


def score_rows(
    scorer: Any, X: Any, *, methods: tuple[str, ...] = SCORING_METHODS, pos_label: Any = None
) -> Vector:
    """Ranking scores of the rows of X by a fitted estimator, higher for rows ranked above others.

    The first of `methods` that the estimator has is used. Of `predict_proba`, two classes give the
    predicted probability of the positive one, and more give the expected grade, the sum over the
    classes of ``P(class) * class``. A `decision_function` with a column per class does not order
    rows and is passed over.

    Parameters
    ----------
    scorer : fitted estimator
    X : rows, as the estimator takes them
    methods : tuple of str
        Methods that may be used.
    pos_label : label, optional
        The positive of two classes; by default the last of `classes_`.

    Returns
    -------
    ndarray of shape (n_samples,)
    """
    available = [name for name in methods if hasattr(scorer, name)]
    if not available:
        raise TypeError(
            f"{type(scorer).__name__} cannot score rows: it has none of {', '.join(methods)}."
        )
    classes = getattr(scorer, "classes_", None)
    known = None if classes is None else np.asarray(classes).tolist()
    negated = False
    if pos_label is not None and known is not None:
        if pos_label not in known:
            raise ValueError(f"pos_label={pos_label!r} is not a valid label: give one of {known}.")
        negated = len(known) == 2 and pos_label == known[0]
    for name in available:
        scores = np.asarray(getattr(scorer, name)(X))
        if scores.ndim == 2 and name == "predict_proba":
            return check_scores(_from_probabilities(scores, known, first=negated))
        if scores.ndim == 1 or name == available[-1]:
            break
    return check_scores(-scores if negated else scores)


def _from_probabilities(probabilities: Vector, classes: list[Any] | None, *, first: bool) -> Vector:
    if probabilities.shape[1] <= 2:
        return probabilities[:, 0 if first else -1]
    try:
        return probabilities.astype(np.float64) @ np.asarray(classes, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"predict_proba has {probabilities.shape[1]} columns and the classes are {classes}; "
            "more than two classes need grades, that is numbers in classes_."
        ) from None


def check_scores(scores: ArrayLike) -> Vector:
    """Scores as doubles; ValueError naming the first row whose score is not finite."""
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("scores must be real numbers, one per row.") from None
    if values.ndim != 1:
        raise ValueError(f"scores has shape {values.shape}; expected one score per row.")
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ValueError(f"The score of row {row} is {values[row]}; scores must be finite.")
    return values
