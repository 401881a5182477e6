"""The weighted average of the scores of two rankers, with weights from held-out scores.

With scores s_1 and s_2 of held-out rows, each divided by its spread, the weights v minimise

    mean loss of v_1 s_1 + v_2 s_2  +  p (v_1 - v_2)^2,    v >= 0,

where the loss is logistic, on rows, or over the pairs of a fold if there are groups or grades. It
has less noise than a measure of ranking, which would have to be compared at many weights. The small
penalty p draws the weights together where the rows do not decide.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from forerank._typing import Index, Vector
from forerank.data.forms import in_form
from forerank.estimators.pairwise import PairwiseRanker
from forerank.estimators.pointwise import PointwiseRanker
from forerank.losses import get_loss
from forerank.selection.training_rows import Split, TrainingRows

__all__ = [
    "HeldOutRows",
    "ScoreAverage",
    "average_weights",
    "estimator_scores",
    "held_out_rows",
    "loss_excess",
]

# Penalty on the squared difference of the weights of scores of unit spread.
_PENALTY = 5e-4
# The sum of the weights is penalised less than their difference by the square of this factor.
_FREE = 100.0
# Mean difference of two losses, relative to the loss, that counts as rounding error.
_ROUNDING = 1e-10


class ScoreAverage(BaseEstimator):
    """A weighted sum of the scores of fitted rankers.

    A sum of scores, unlike a mean of ranks, does not depend on the other rows, and what columns add
    to the scores adds up.

    Parameters
    ----------
    estimators : list of estimator
        Fitted, with a `decision_function`.
    forms : list of str
        The form of the columns that each takes; see `forerank.data.forms`.
    weights : array of shape (n_estimators,)
        Of the scores of each.
    intercept : float
        Added to the sum.
    """

    def __init__(
        self, estimators: list[Any], forms: list[str], weights: Vector, intercept: float = 0.0
    ) -> None:
        self.estimators = estimators
        self.forms = forms
        self.weights = weights
        self.intercept = intercept

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: Any) -> Vector:
        """Scores of the rows of a matrix, or of `ColumnForms`."""
        parts = zip(self.estimators, self.forms, self.weights, strict=True)
        terms = [w * each.decision_function(in_form(X, form)) for each, form, w in parts]
        return np.sum(terms, axis=0) + self.intercept


def estimator_scores(estimator: Any, form: str, X: Any) -> Vector:
    """Scores of an average, which knows the forms of its parts, or of one estimator that takes the
    columns in this form.
    """
    X = X if isinstance(estimator, ScoreAverage) else in_form(X, form)
    return np.asarray(estimator.decision_function(X), dtype=np.float64)


@dataclass(frozen=True)
class HeldOutRows:
    """Labels, weights and groups of the test rows of all folds, and the number of the fold of each.

    Attributes
    ----------
    data : TrainingRows
        Without X.
    fold : array
    n_rows : int
        Number of different rows; folds may be repeated.
    """

    data: TrainingRows
    fold: Index
    n_rows: int

    @property
    def paired(self) -> bool:
        """Whether a loss is over pairs, not rows: with groups, or grades."""
        return self.data.group is not None or np.unique(self.data.y).size > 2

    def groups(self) -> Index:
        """The groups within which pairs are formed: those of the rows in each fold."""
        if self.data.group is None:
            return self.fold
        both = np.column_stack([self.fold, self.data.group])
        return np.unique(both, axis=0, return_inverse=True)[1]


def held_out_rows(data: TrainingRows, splits: dict[int, Split]) -> HeldOutRows:
    """The test rows of splits, one after another, with the numbers of these."""
    tests = [split.test for split in splits.values()]
    fold = np.repeat(list(splits), [rows.size for rows in tests])
    rows = np.concatenate(tests)
    return HeldOutRows(data.labels(rows), fold, np.unique(rows).size)


def average_weights(held: HeldOutRows, scores: Vector) -> Vector:
    """Weights of two rankers, from their scores of held-out rows, a column each."""
    folds = [held.fold == k for k in np.unique(held.fold)]
    spread = np.mean([scores[rows].std(axis=0) for rows in folds], axis=0)
    spread[~(spread > 0.0)] = 1.0
    first, second = (scores / spread).T
    columns = np.column_stack([_FREE * (first + second), first - second])
    half, difference = _coefficients(held, columns, 8.0 * _PENALTY) * [_FREE, 1.0]
    weights = np.maximum([half + difference, half - difference], 0.0)
    return (weights if weights.any() else np.full(2, 0.5)) / spread


def _coefficients(held: HeldOutRows, columns: Vector, alpha: float) -> Vector:
    """Coefficients that minimise a logistic loss on rows, or on pairs within folds and groups."""
    data = held.data
    if held.paired:
        pairs = PairwiseRanker("logistic", alpha=alpha, graph="order")
        return pairs.fit(columns, data.y, sample_weight=data.weight, qid=held.groups()).coef_[0]
    rows = PointwiseRanker("logistic", alpha=alpha)
    return rows.fit(columns, data.y, sample_weight=data.weight).coef_[0]


def loss_excess(held: HeldOutRows, alone: Vector, average: Vector) -> float:
    """How much larger the mean logistic loss of some scores is than that of an average, in standard
    errors; zero where losses are over pairs, or the average is a multiple of the scores.
    """
    if held.paired:
        return 0.0
    losses = _losses(held, alone)
    excess = losses - _losses(held, average)
    weight = np.ones(excess.size) if held.data.weight is None else held.data.weight
    mean = float(np.average(excess, weights=weight))
    if abs(mean) <= _ROUNDING * float(np.average(losses, weights=weight)):
        return 0.0
    error = float(np.sqrt(np.average((excess - mean) ** 2, weights=weight) / held.n_rows))
    return mean / error if error > 0.0 else 0.0


def _losses(held: HeldOutRows, scores: Vector) -> Vector:
    """The logistic loss of each row, with the slope and the constant that suit the scores best."""
    columns = (scores / (float(scores.std()) or 1.0))[:, None]
    ranker = PointwiseRanker("logistic", alpha=1e-6)
    ranker.fit(columns, held.data.y, sample_weight=held.data.weight)
    sign = np.where(held.data.y > 0, 1.0, -1.0)
    return get_loss("logistic").value(sign * ranker.decision_function(columns))
