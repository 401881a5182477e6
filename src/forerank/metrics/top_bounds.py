"""How many positives rank below a share of the negatives, and bounds on that (li2014, section 3.4).

h(x) is the probability that a negative is scored as high as x or higher, and P_b(delta) the
probability that a positive has h >= delta: it ranks below a share delta of the negatives.

Theorem 3 of li2014 bounds P_b for the minimiser of TopPush by its loss L on the training rows, up
to constants that are not stated: with a probability of at least 1 - 2 exp(-t),

    P_b(delta) <= L + O(sqrt((t + log m) / m)),    delta = O(sqrt(log m / n))

for m positives and n negatives. `top_bound` is a version with all constants. Let T be the highest
score of the n negatives.

1. Let q be the largest score of which negatives have at least the share delta above or at it. T < q
   means that none of n draws fell into a set of probability delta or more: at most (1 - delta)^n <=
   exp(-n delta). Otherwise h(x) >= delta implies that the score of x is at most T.
2. The share of positives scored at most T is within sqrt(t / (2 m)) of that in the sample with a
   probability of 1 - exp(-t) (Hoeffding), since T does not depend on the positives.
3. In the sample, that share is one minus Pos@Top, and at most L, since the loss is at least one
   where s_i <= T.

With delta = t / n the two together fail with a probability of at most 2 exp(-t). That holds for
weights that were fixed before the rows were drawn, as on test rows. For weights that were fitted on
these rows, the same is asked of all weights of d columns at once: half-spaces have the dimension
D = d + 1 of Vapnik and Chervonenkis, and at most (2 e k / D)^D patterns on 2 k rows, so that

    delta = 2 / (n log 2) (log 2 + D log(2 e n / D) + t)              (Blumer et al., 1989)
    deviation = sqrt(8 / m (log 4 + D log(2 e m / D) + t))            (Vapnik, 1998)

are enough. These need many more rows than columns to say anything.
"""

from dataclasses import dataclass
from math import e, exp, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from forerank._validation import check_choice, check_number, check_weights, is_number
from forerank.losses import get_loss
from forerank.metrics.validation import check_column, check_numbers, positive_rows

__all__ = ["TopBound", "share_below", "theorem_3_rates", "top_bound"]

# Losses of `top_bound`, with their values at margin zero, by which they are divided.
_AT_ZERO = {"squared_hinge": 1.0, "hinge": 1.0, "exponential": 1.0, "logistic": log(2.0)}


def share_below(
    y_true: ArrayLike,
    y_score: ArrayLike,
    delta: float,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """P_b(delta) of a sample: the share of positives that rank below a share delta of the negatives
    (li2014, section 3.4).

    ``sum_i w_i 1[h_i >= delta] / sum_i w_i`` with ``h_i = sum_j w_j 1[s_i <= s_j] / sum_j w_j``,
    over positives i and negatives j; ties count as below. For the smallest delta above zero it is
    one minus `pos_at_top`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels with two distinct values.
    y_score : array-like of shape (n_samples,)
        Scores, higher for rows that should be ranked higher.
    delta : float
        Share of the negatives, above 0 and up to 1.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the rows.
    pos_label : label, optional
        The positive label; by default the larger one.

    Notes
    -----
    Cost: O(n log n).

    Examples
    --------
    >>> y, s = [0, 0, 0, 0, 1, 1, 1], [4.0, 2.0, 1.0, 0.0, 5.0, 3.0, 0.5]
    >>> [round(share_below(y, s, delta), 2) for delta in (0.25, 0.5, 1.0)]
    [0.67, 0.33, 0.0]
    """
    if not (is_number(delta) and 0.0 < delta <= 1.0):
        raise ValueError(f"delta={delta!r}: give a share of the negatives above 0 and up to 1.")
    positive, s = _rows(y_true, y_score, pos_label)
    weight = check_weights(sample_weight, s.size)
    weight = np.ones(s.size) if weight is None else weight
    of_positives, of_negatives = weight[positive], weight[~positive]
    if not (of_positives.any() and of_negatives.any()):
        raise ValueError("All rows of a class have sample_weight zero; P_b needs both classes.")
    order = np.argsort(s[~positive])
    below = np.concatenate([[0.0], np.cumsum(of_negatives[order])])
    lower = np.searchsorted(s[~positive][order], s[positive], side="left")
    h = 1.0 - below[lower] / below[-1]
    # The tolerance exceeds the rounding errors of sums of weights.
    return float(of_positives @ (h >= delta - 1e-12) / of_positives.sum())


@dataclass(frozen=True)
class TopBound:
    """A bound on P_b(delta): with a probability of at least `confidence`, at most the share `bound`
    of all positives rank below a share `delta` of all negatives.

    Attributes
    ----------
    delta, bound, confidence : float
    from_loss : float
        The looser bound in the form of Theorem 3, with the loss for the share of the sample.
    share : float
        The share of the positives of the sample that are not above every negative.
    loss : float
        The mean loss of the positives against the highest negative.
    deviation : float
        What is added to the share, or to the loss.
    """

    delta: float
    bound: float
    confidence: float
    from_loss: float
    share: float
    loss: float
    deviation: float

    def __str__(self) -> str:
        return (
            f"With a confidence of {self.confidence:.1%}, at most {self.bound:.1%} of the positives"
            f" rank below {self.delta:.2%} of the negatives."
        )


def top_bound(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    t: float = 4.0,
    loss: str = "squared_hinge",
    n_columns: int | None = None,
    pos_label: Any = None,
) -> TopBound:
    """The bound of Theorem 3 of li2014 on P_b, with constants; see `forerank.metrics.top_bounds`.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels with two distinct values, of rows drawn independently.
    y_score : array-like of shape (n_samples,)
        Linear scores.
    t : float, default=4.0
        The bound holds with a probability of at least 1 - 2 exp(-t): 96 % for 4.
    loss : {"squared_hinge", "hinge", "logistic", "exponential"}, default="squared_hinge"
        The loss of `from_loss`; the logistic one is divided by log 2.
    n_columns : int, optional
        The number of columns, where the weights were fitted on these rows. None: the weights do not
        depend on these rows, as on test rows.
    pos_label : label, optional
        The positive label; by default the larger one.

    Notes
    -----
    Cost: O(n). A bound of one or more is vacuous.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], [2000, 1000])
    >>> print(top_bound(y, rng.standard_normal(3000) + 5.0 * y))
    With a confidence of 96.3%, at most 6.9% of the positives rank below 0.20% of the negatives.
    """
    check_number("t", t, low=log(2.0), strict=True)
    check_choice("loss", loss, tuple(_AT_ZERO))
    positive, s = _rows(y_true, y_score, pos_label)
    m, n = int(np.count_nonzero(positive)), int(np.count_nonzero(~positive))
    margin = s[positive] - s[~positive].max()
    with np.errstate(over="ignore"):
        mean = float(np.mean(get_loss(loss).value(margin))) / _AT_ZERO[loss]
    if n_columns is None:
        delta, deviation = t / n, sqrt(t / (2.0 * m))
    else:
        check_number("n_columns", n_columns, low=1, integer=True)
        delta = 2.0 / (n * log(2.0)) * (log(2.0) + _log_patterns(n, n_columns + 1) + t)
        deviation = sqrt(8.0 / m * (log(4.0) + _log_patterns(m, n_columns + 1) + t))
    share = float(np.mean(margin <= 0.0))
    return TopBound(
        min(delta, 1.0), min(share + deviation, 1.0), 1.0 - 2.0 * exp(-t),
        mean + deviation, share, mean, deviation,
    )  # fmt: skip


def theorem_3_rates(n_positive: int, n_negative: int, t: float) -> tuple[float, float]:
    """The two rates of Theorem 3 of li2014, sqrt((t + log m) / m) and sqrt(log m / n), whose
    constants are not published.

    >>> [round(rate, 3) for rate in theorem_3_rates(1000, 100_000, 4.0)]
    [0.104, 0.008]
    """
    check_number("n_positive", n_positive, low=12, integer=True)
    check_number("n_negative", n_negative, low=1, integer=True)
    check_number("t", t, low=0.0, strict=True)
    of_positives = log(n_positive)
    return sqrt((t + of_positives) / n_positive), sqrt(of_positives / n_negative)


def _log_patterns(k: int, dimension: int) -> float:
    """Upper bound on the logarithm of the patterns of a class of sets on 2 k rows."""
    if 2 * k <= dimension:
        return 2 * k * log(2.0)
    return min(dimension * log(2.0 * e * k / dimension), 2 * k * log(2.0))


def _rows(y_true: Any, y_score: Any, pos_label: Any) -> tuple[Any, Any]:
    y = check_column(y_true, "y_true")
    positive = positive_rows(y, pos_label)
    s = check_numbers(y_score, "y_score", y.size)
    if not (positive.any() and (~positive).any()):
        raise ValueError("y_true has one class only; P_b needs positives and negatives.")
    return positive, s
