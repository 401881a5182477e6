"""Base of the linear rankers for two classes whose scores have no intercept of their own."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Index, Mask, Matrix, Vector
from forerank._validation import check_weights
from forerank.design import merge_equal_rows
from forerank.estimators.base import (
    prevalence_thresholds,
    refuse_more_than_two,
    refuse_weightless_class,
    warn_groups_without_pairs,
)
from forerank.estimators.linear import LinearRanker
from forerank.metrics.validation import number_groups

__all__ = ["EXAMPLE_DATA", "TwoClassRanker", "check_gamma", "read_pair_groups"]

EXAMPLE_DATA = """>>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)"""


class TwoClassRanker(LinearRanker):
    """Reads rows of two classes, and sets the intercept from the prevalence."""

    _more_classes_remedy = "Merge classes into relevant and irrelevant."

    def _read_two_classes(
        self, X: Any, y: Any, sample_weight: Any, *, ranks: bool = False, merge: bool = False
    ) -> tuple[Matrix, NDArray[np.integer], Mask, Vector | None]:
        """X, class numbers, which rows are positive, and the weights: None where all are equal.

        `ranks` keeps equal weights, for objectives in which a row of weight two takes up two ranks.
        `merge` merges equal rows of a class, for objectives with weights.
        """
        return self._read_groups(X, y, sample_weight, None, ranks=ranks, merge=merge)[:4]

    def _read_groups(
        self, X: Any, y: Any, sample_weight: Any, qid: Any, *, ranks: bool, merge: bool
    ) -> tuple[Matrix, NDArray[np.integer], Mask, Vector | None, NDArray[np.integer] | None]:
        """The same, and the number of the group of each row, or None without `qid`.

        Warns of groups of one class, and refuses data that have no others.
        """
        X, codes = self._read(X, y)
        refuse_more_than_two(self.classes_, self._more_classes_remedy)
        weight = check_weights(sample_weight, codes.size)
        if weight is None and sample_weight is not None and ranks:
            weight = np.full(codes.size, float(np.ravel(np.asarray(sample_weight))[0]))
        group = None if qid is None else number_groups(qid, codes.size)
        if group is not None:
            present = np.ones(codes.size, dtype=bool) if weight is None else weight > 0.0
            refuse_weightless_class(weight, codes == 1, self.classes_)
            n_groups = int(group.max()) + 1
            sides = [
                np.bincount(group[present & (codes == code)], minlength=n_groups) for code in (0, 1)
            ]
            paired = (sides[0] > 0) & (sides[1] > 0)
            if not paired.any():
                raise ValueError(
                    "There are no pairs: no group of qid has rows of both classes with a positive "
                    "weight. Check qid, or omit it to rank all rows together."
                )
            warn_groups_without_pairs(group, paired)
        if merge:
            X, codes, weight, merged = merge_equal_rows(X, codes, weight, group)
        positive = codes == 1
        refuse_weightless_class(weight, positive, self.classes_)
        return X, codes, positive, weight, merged if merge else group

    def _set_intercept(
        self, scores: Vector, codes: NDArray[np.integer], weight: Vector | None
    ) -> None:
        """The intercept with which as much weight of the training rows is scored above zero as the
        positive class has; the objective does not depend on it.
        """
        self.intercept_ = -prevalence_thresholds(scores, codes, weight, 2)


def check_gamma(gamma: Any, *, or_uniform: bool) -> None:
    """Raise ValueError where gamma is not a number from 0 to 1 or, if allowed, "uniform"."""
    if or_uniform and isinstance(gamma, str) and gamma == "uniform":
        return
    number = isinstance(gamma, (int, float, np.number)) and not isinstance(gamma, bool)
    if not number or not 0.0 <= gamma <= 1.0:
        allowed = "a number from 0 (points only) to 1 (pairs only)"
        allowed += ', or "uniform"' if or_uniform else ""
        raise ValueError(f"gamma must be {allowed}; got {gamma!r}.")


def read_pair_groups(qid: Any, positive: Mask, weight: Vector | None, gamma: Any) -> Index | None:
    """The number of each row's group, for the share gamma of pairs; a warning where groups have no
    pairs.
    """
    if qid is None:
        return None
    group = number_groups(qid, positive.size)
    if gamma == 0.0:
        raise ValueError(
            "qid restricts pairs to groups, but gamma=0 uses no pairs. Omit qid, or raise gamma."
        )
    counted = np.ones(positive.size, dtype=bool) if weight is None else weight > 0.0
    n_groups = int(group.max()) + 1
    has_both = np.bincount(group[counted & positive], minlength=n_groups) > 0
    has_both &= np.bincount(group[counted & ~positive], minlength=n_groups) > 0
    if not has_both.any():
        raise ValueError(
            "There are no pairs: no group of qid has rows of both classes. Check qid, or omit it to"
            " use all pairs."
        )
    consequence = "excluded from the fit" if gamma == 1.0 else "in no pair, only points"
    warn_groups_without_pairs(group, has_both, consequence)
    return group
