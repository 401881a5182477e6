"""Base of the linear rankers for two classes whose scores have no intercept of their own."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Mask, Matrix, Vector
from forerank._validation import check_weights
from forerank.design import merge_equal_rows
from forerank.estimators.base import (
    prevalence_thresholds,
    refuse_more_than_two,
    refuse_weightless_class,
)
from forerank.estimators.linear import LinearRanker

__all__ = ["EXAMPLE_DATA", "TwoClassRanker"]

EXAMPLE_DATA = """>>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)"""


class TwoClassRanker(LinearRanker):
    """Reads rows of two classes, and sets the intercept from the prevalence."""

    def _read_two_classes(
        self, X: Any, y: Any, sample_weight: Any, *, ranks: bool = False, merge: bool = False
    ) -> tuple[Matrix, NDArray[np.integer], Mask, Vector | None]:
        """X, class numbers, which rows are positive, and the weights: None where all are equal.

        `ranks` keeps equal weights, for objectives in which a row of weight two takes up two ranks.
        `merge` merges equal rows of a class, for objectives with weights.
        """
        X, codes = self._read(X, y)
        refuse_more_than_two(self.classes_)
        weight = check_weights(sample_weight, codes.size)
        if weight is None and sample_weight is not None and ranks:
            weight = np.full(codes.size, float(np.ravel(np.asarray(sample_weight))[0]))
        if merge:
            X, codes, weight, _ = merge_equal_rows(X, codes, weight)
        positive = codes == 1
        refuse_weightless_class(weight, positive, self.classes_)
        return X, codes, positive, weight

    def _set_intercept(
        self, scores: Vector, codes: NDArray[np.integer], weight: Vector | None
    ) -> None:
        """The intercept with which as much weight of the training rows is scored above zero as the
        positive class has; the objective does not depend on it.
        """
        self.intercept_ = -prevalence_thresholds(scores, codes, weight, 2)
