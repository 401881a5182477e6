"""RankSVM bounded by the weighted SVM on single rows (shen2013, Theorem 1).

With C_ij = C/2 for a pair in either order, C_+ = 2 N_- C and C_- = 2 N_+ C, the objective (1) of
RankSVM at the weights w/2 is at most a quarter of the objective (2) of the SVM at w: the hinge is
convex, so that

    [1 - (s_i - s_j) / 2]_+ <= 1/2 [1 - s_i]_+ + 1/2 [1 + s_j]_+

for the scores s = X w of a positive row i and a negative row j, and ||w/2||^2 = ||w||^2 / 4.
Divided by C N_+ N_-, with alpha = 1 / (C N_+ N_-), both are means with a penalty, as everywhere
here:

    mean over pairs [1 - (s_i - s_j) / 2]_+ + alpha/8 ||w||^2
        <= 1/2 mean over positives [1 - s_i]_+ + 1/2 mean over negatives [1 + s_j]_+
           + alpha/8 ||w||^2                                                                     (1)

A constant in the scores cancels on the left: (1) holds for every intercept. Minimised over w, it
says that the minimum of PairwiseRanker("hinge", alpha=alpha) is at most that of
PointwiseRanker("hinge", alpha=alpha / 4, class_weight="balanced"), with or without an intercept.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forerank._validation import check_number, check_weights
from forerank.metrics.validation import check_column, check_numbers, positive_rows
from forerank.objectives import AllPairs, Pointwise

__all__ = ["SvmBound", "weighted_svm_bound"]


class SvmBound(NamedTuple):
    """Both sides of (1)."""

    rank_svm: float
    bound: float


def weighted_svm_bound(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    alpha: float = 0.0,
    squared_norm: float = 0.0,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> SvmBound:
    """The objective of RankSVM at half of the weights, and its bound by that of the weighted SVM
    (shen2013, Theorem 1).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels with two distinct values.
    y_score : array-like of shape (n_samples,)
        Scores of the SVM on single rows, its intercept included.
    alpha : float, default=0.0
        Strength of the penalty of RankSVM.
    squared_norm : float, default=0.0
        ||w||^2 of the weights of the SVM.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the rows; a pair weighs the product of its two.
    pos_label : label, optional
        The positive label; by default the larger one.

    Returns
    -------
    SvmBound
        `rank_svm`, the left side of (1), and `bound`, the right side.

    Notes
    -----
    Cost: O(n log n).

    Examples
    --------
    >>> weighted_svm_bound([0, 0, 1, 1], [-1.0, 0.0, 0.0, 2.0])
    SvmBound(rank_svm=0.375, bound=0.5)
    """
    y = check_column(y_true, "y_true")
    positive = positive_rows(y, pos_label)
    scores = check_numbers(y_score, "y_score", y.size)
    check_number("alpha", alpha, low=0.0)
    check_number("squared_norm", squared_norm, low=0.0)
    weight = check_weights(sample_weight, y.size)
    weight = np.ones(y.size) if weight is None else weight
    totals = np.bincount(positive, weights=weight, minlength=2)
    if not totals.all():
        raise ValueError("All rows of one class have weight zero; a pair needs rows of both.")
    penalty = 0.125 * alpha * squared_norm
    pairs = AllPairs(positive.astype(np.intp), "hinge", weight=weight).at(0.5 * scores)
    points = Pointwise(positive, "hinge", weight=weight / totals[positive.astype(np.intp)])
    return SvmBound(pairs.value + penalty, points.at(scores).value + penalty)
