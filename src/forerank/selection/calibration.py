"""Probabilities from scores: a sigmoid fitted to held-out scores.

P(y = 1 | s) = 1 / (1 + exp(-(slope s + offset))) with slope >= 0, so that rows keep the order of
their scores. Slope and offset minimise the log loss against Platt's targets (Platt 1999),
(n+ + 1) / (n+ + 2) for the positive rows and 1 / (n- + 2) for the others, which keeps them finite
if the scores separate the classes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from forerank._typing import Index, Vector
from forerank.selection.average import estimator_scores
from forerank.selection.training_rows import (
    Split,
    TrainingRows,
    lists_rows,
    make_splits,
    stratified_sample,
)

__all__ = [
    "calibration_rows",
    "calibration_splits",
    "fitted_sigmoid",
    "out_of_fold_scores",
    "refuse_uncalibrated",
    "sigmoid",
]

# Number of folds if `cv` lists row numbers, which may not be those of the rows to calibrate on.
_FOLDS = 5


def refuse_uncalibrated(classes: NDArray, data: TrainingRows) -> None:
    """An error where scores have no probabilities: with grades, or with groups."""
    if classes.size > 2:
        raise ValueError(
            f"calibrate=True needs two classes, and y has {classes.size}. Make y binary "
            "(y == label), or set calibrate=False."
        )
    if data.group is not None:
        raise ValueError(
            "calibrate=True: scores that rank within groups (qid) are not comparable between "
            "groups, so they have no probabilities. Omit qid, or set calibrate=False."
        )


def sigmoid(scores: Vector, calibration: Vector) -> Vector:
    """Probabilities from scores and (slope, offset)."""
    slope, offset = calibration
    return expit(slope * np.asarray(scores, dtype=np.float64) + offset)


def fitted_sigmoid(scores: Vector, positive: NDArray[np.bool_], weight: Vector | None) -> Vector:
    """(slope, offset); if the slope would be negative, zero and the logit of the positive share."""
    w = np.ones(scores.size) if weight is None else weight / weight.mean()
    totals = w[positive].sum(), w[~positive].sum()
    target = np.where(positive, (totals[0] + 1.0) / (totals[0] + 2.0), 1.0 / (totals[1] + 2.0))
    mean = float(np.average(scores, weights=w))
    spread = float(np.sqrt(np.average((scores - mean) ** 2, weights=w)))
    if spread > 0.0 and np.isfinite(spread):
        # A soft target t is a positive row of weight t and a negative one of weight 1 - t.
        standard = ((scores - mean) / spread)[:, None]
        model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-8)
        model.fit(
            np.vstack([standard, standard]),
            np.repeat([True, False], scores.size),
            sample_weight=np.concatenate([w * target, w * (1.0 - target)]),
        )
        slope = float(model.coef_[0, 0]) / spread
        if slope > 0.0:
            return np.array([slope, float(model.intercept_[0]) - slope * mean])
    return np.array([0.0, logit(np.average(target, weights=w))])


def calibration_rows(data: TrainingRows, most: int | None, seed: int) -> TrainingRows:
    """The rows with a weight, or a sample of `most` of them."""
    data = data.weighted()
    if most is None or data.y.size <= most:
        return data
    return data.take(stratified_sample(data.y, None, most, seed))


def calibration_splits(cv: Any, data: TrainingRows, seed: int) -> list[Split]:
    """Folds of `cv`, or five if it lists row numbers, whose training rows have both classes."""
    return make_splits(_FOLDS if lists_rows(cv) else cv, data, lambda: seed)[0]


def out_of_fold_scores(
    fitted: Callable[[TrainingRows], Any],
    data: TrainingRows,
    splits: list[Split],
    n_jobs: int | None,
    form: str,
) -> tuple[Vector, Index]:
    """Scores of the test rows of all folds by models fitted on the training rows, and their row
    numbers. `form` is that of the columns that a single model takes; an average knows its own.
    """

    def scores(split: Split) -> Vector:
        model = fitted(data.take(split.train))
        return estimator_scores(model, form, data.X[split.test])

    parts = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(scores)(split) for split in splits)
    return np.concatenate(parts), np.concatenate([split.test for split in splits])
