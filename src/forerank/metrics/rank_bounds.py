"""Lower bounds on the AUC and on the share of pairs in order, from losses on ranks and on pairs.

Hinge rank loss (donmez2009, section 2.1, after Steck 2007). Rows have ranks r from 1 (lowest score)
to n, of which the first m are up to the decision threshold, theta = m + 1/2. Let e rows be on the
wrong side of it, n_- be the number of negatives and k = |m - n_-|, of which at least as many errors
follow. Then the number of pairs out of order is exactly

    L - (k^2 + e) / 2 <= L - k (k + 1) / 2,

L the hinge rank loss: a positive at rank r <= m contributes m + 1 - r, the negatives between it and
the threshold and the positives there; the latter are what (k^2 + e) / 2 takes off. Rows with equal
scores share their mean rank and a tied pair counts one half; the identity remains, because all
rows of equal scores are on one side of the threshold, where the loss is linear.

Log-sigmoid bound (raykar2007, section 3). 1 + log(sigmoid(z)) / log 2 is at most one for z > 0 and
at most zero otherwise, so its mean over the pairs is at most the share of pairs in order, even if
ties do not count.
"""

from math import log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from forerank._validation import check_number, is_number
from forerank.metrics.validation import check_column, check_numbers, positive_rows

__all__ = ["hinge_rank_bound", "hinge_rank_loss", "log_sigmoid_bound"]


def hinge_rank_loss(
    y_true: ArrayLike, y_score: ArrayLike, *, threshold: float = 0.0, pos_label: Any = None
) -> float:
    """Hinge loss on ranks: ``sum_i [1/2 - y_i (r_i - theta)]_+`` (donmez2009, eq. 1).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels with two distinct values; y_i is +1 for the positive one and -1 for the other.
    y_score : array-like of shape (n_samples,)
        Scores, higher for rows that should be ranked higher; ranks r_i count from 1 for the lowest,
        equal scores share their mean rank.
    threshold : float, default=0.0
        The decision threshold on the scores; theta is 1/2 more than the number of scores up to it.
    pos_label : label, optional
        The positive label; by default the larger one.

    Notes
    -----
    Cost: O(n log n).

    Examples
    --------
    >>> hinge_rank_loss([0, 1, 0, 1], [-2.0, -1.0, 1.0, 2.0])  # both middle rows are wrong by one
    2.0
    """
    y = check_column(y_true, "y_true")
    positive = positive_rows(y, pos_label)
    scores = check_numbers(y_score, "y_score", y.size)
    if not is_number(threshold) or np.isnan(threshold):
        raise ValueError(f"threshold must be a number; got {threshold!r}.")
    theta = np.count_nonzero(scores <= threshold) + 0.5
    return float(
        np.maximum(0.5 - np.where(positive, 1, -1) * (rankdata(scores) - theta), 0.0).sum()
    )


def hinge_rank_bound(loss: float, n_positive: int, n_negative: int, n_below: int) -> float:
    """Lower bound on the AUC from the hinge rank loss (donmez2009, eq. 3).

    ``1 - (loss - C) / (n_positive n_negative)`` with C = k (k + 1) / 2, k the difference of
    `n_below` and `n_negative`. C is the largest constant with which the bound holds for every order
    of the rows: it is attained if no more rows are on the wrong side of the threshold than the
    numbers imply.

    Parameters
    ----------
    loss : float
        See `hinge_rank_loss`.
    n_positive, n_negative : int
    n_below : int
        Number of rows with scores up to the threshold.

    Examples
    --------
    >>> hinge_rank_bound(2.0, n_positive=2, n_negative=2, n_below=2)  # the AUC is 0.75
    0.5
    """
    check_number("loss", loss, low=0.0)
    for name, count in (("n_positive", n_positive), ("n_negative", n_negative)):
        check_number(name, count, low=1, integer=True)
    check_number("n_below", n_below, low=0, integer=True)
    if n_below > n_positive + n_negative:
        raise ValueError(
            f"n_below={n_below} rows are more than the {n_positive + n_negative} there are."
        )
    k = abs(n_below - n_negative)
    return 1.0 - (loss - 0.5 * k * (k + 1)) / (n_positive * n_negative)


def log_sigmoid_bound(log_likelihood: float, n_pairs: float) -> float:
    """Lower bound on the share of pairs in order (WMW) from their log-likelihood (raykar2007).

    ``1 + log_likelihood / (n_pairs log 2)``, where the log-likelihood is the sum of the logarithms
    of sigmoid(s_i - s_j) over the pairs in which row i should be ranked above row j. A bound of
    zero or less says nothing. Rankers fitted on all pairs give it for their training rows as
    `wmw_bound_`.

    Parameters
    ----------
    log_likelihood : float
        At most zero.
    n_pairs : float
        Number of pairs, or their weight.

    Examples
    --------
    >>> log_sigmoid_bound(-100 * 0.1 * log(2), 100)
    0.9
    """
    check_number("n_pairs", n_pairs, low=0.0, strict=True)
    if not is_number(log_likelihood) or not log_likelihood <= 0.0:
        raise ValueError(f"log_likelihood must be at most 0; got {log_likelihood!r}.")
    return 1.0 + log_likelihood / (n_pairs * log(2.0))
