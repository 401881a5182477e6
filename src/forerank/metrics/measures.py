"""Ranking metrics: one sort of the scores, then counts.

Conventions on ties
-------------------
Rows with equal scores have no order among themselves, and no metric depends on
the order in which they came:

- `roc_auc`, `rank_loss`, `wmw`, `partial_auc`, `auc_interval`: a tied pair counts one half (`wmw`
  lets you choose);
- `pos_at_top`: a positive tied with the best negative is not above it, so a tie is never a success;
- `average_precision`, `tpr_at_fpr`, `work_saved`: a threshold takes a whole block of tied rows or
  none of it;
- `precision_at_k`, `recall_at_k`, `ndcg`: the expected value over a random order of the tied rows.

Rows, weights, queries
----------------------
The larger of two labels in sorted order is the positive one, unless
`pos_label` says otherwise. Scores may be infinite (they still order the rows) but not NaN. A pair
weighs w_i * w_j, and a row of weight zero is as good as absent. With `qid`, rows are compared
within their query only and the metric is the plain mean over queries. Queries on which it is
undefined (for most metrics: those without both classes) are left out, and one `UserWarning` gives
their number.

Rows are sorted once, best score first within each query; after that a query is a contiguous run of
rows, and a tied block a contiguous run within a query. Every cost below is for n rows and adds one
sort at most: O(n log n).
"""

import inspect
import warnings
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, ndtri
from sklearn.metrics import make_scorer
from sklearn.utils import check_random_state

from forerank._typing import Mask, Queries, Vector, Weights
from forerank._validation import is_integer
from forerank.graphs import numbered_edges
from forerank.metrics.ranking import (
    Curve,
    Ranking,
    best_first,
    binary_curve,
    check_column,
    count_edges,
    count_pairs,
    curve_of,
    mean_over_queries,
    rank_binary,
    rank_rows,
    share_in_order,
    sorted_labels,
)

__all__ = [
    "SCORERS",
    "AucInterval",
    "auc_interval",
    "average_precision",
    "get_scorer",
    "ndcg",
    "partial_auc",
    "pos_at_top",
    "precision_at_k",
    "rank_loss",
    "recall_at_k",
    "roc_auc",
    "tpr_at_fpr",
    "wmw",
    "work_saved",
]

Edges = Iterable[tuple[Hashable, Hashable]]


# --- Pairs ---


def roc_auc(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: Weights = None,
    qid: Queries = None,
    pos_label: Any = None,
) -> float:
    """Area under the ROC curve: the share of (positive, negative) pairs in the right order, ties
    counting one half.

    ``sum_ij w_i w_j (1[s_i > s_j] + 1[s_i = s_j] / 2) / sum_ij w_i w_j`` over positives i and
    negatives j. Cost: O(n log n), nearly all of it the sort. Equal to
    ``sklearn.metrics.roc_auc_score`` for two classes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels with two distinct values.
    y_score : array-like of shape (n_samples,)
        Scores; higher means more relevant. Sorted in their own dtype, so float32 and int64 keep
        their order.
    sample_weight : array-like of shape (n_samples,), optional
        Nonnegative and finite; a whole number w stands for the row given w times.
    qid : sequence of hashable, of length n_samples, optional
        The query of each row, in any order; the result is then the mean over queries.
    pos_label : label, optional
        The positive label; by default the larger one.

    Returns
    -------
    float
        1 for a perfect ranking, 0.5 for constant scores.

    Examples
    --------
    >>> roc_auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    >>> roc_auc([0, 1, 1, 0, 1], [3, 2, 1, 0, 0], qid=["a", "a", "b", "b", "b"])
    0.375
    """
    ranking, positive = rank_binary(y_true, y_score, sample_weight, qid, pos_label)
    return _auc(ranking, positive)


def rank_loss(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: Weights = None,
    qid: Queries = None,
    pos_label: Any = None,
) -> float:
    """The share of (positive, negative) pairs in the wrong order, ties counting one half: ``1 -
    roc_auc``.

    The empirical rank loss of kotlowski2011. Parameters as in `roc_auc`. Cost: O(n log n).

    Examples
    --------
    >>> rank_loss([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.25
    """
    ranking, positive = rank_binary(y_true, y_score, sample_weight, qid, pos_label)
    return 1.0 - _auc(ranking, positive)


def wmw(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    graph: str | Edges = "order",
    ties: float = 0.5,
    sample_weight: Weights = None,
    qid: Queries = None,
) -> float:
    """Generalized Wilcoxon-Mann-Whitney statistic: the share of pairs of a preference graph in the
    right order.

    ``sum w_i w_j (1[s_i > s_j] + ties 1[s_i = s_j]) / sum w_i w_j`` over the pairs of rows (i, j)
    whose classes are joined by an edge (class of i preferred to class of j): raykar2007, eq. (1).
    With two classes it is `roc_auc`.

    Cost: O(n log n + n log K) for the order of K grades (see `count_pairs`); for a graph O(n log n)
    plus O(n) for each distinct preferred class.

    Parameters
    ----------
    y_true, y_score, sample_weight, qid
        As in `roc_auc`, with any number of classes.
    graph : str or iterable of (preferred, other) class labels
        "order" takes all pairs of different grades, the larger label preferred; "chain",
        "bipartite" and "one-against-rest" as in `forerank.graphs`. Edges are taken as given: (a, b)
        and (b, c) do not add (a, c). Classes that `y_true` lacks and cycles are refused.
    ties : float between 0 and 1
        What a pair of equal scores counts. 1.0 is the letter of eq. (1), under which constant
        scores are perfect.

    Examples
    --------
    >>> wmw([0, 1, 2, 3], [0.1, 0.4, 0.3, 0.8])  # one of six pairs is wrong
    0.8333333333333334
    >>> wmw(["spam", "ham", "star"], [1.0, 1.0, 3.0], graph=[("star", "spam"), ("ham", "spam")])
    0.75
    """
    if not 0.0 <= ties <= 1.0:
        raise ValueError(
            f"ties={ties!r}: what a tied pair counts must lie between 0 and 1; 0.5 is the usual choice."
        )
    y = check_column(y_true, "y_true")
    classes, grade = sorted_labels(y)
    edges = numbered_edges(graph, classes)
    lower_of: dict[int, list[int]] = {}
    for preferred, other in edges or ():
        lower_of.setdefault(preferred, []).append(other)
    ranking = rank_rows(y.size, y_score, sample_weight, qid)
    grade = grade[ranking.rows]
    if edges is None:
        counts = count_pairs(
            ranking.starts, ranking.tie, grade, ranking.weight, (classes.size - 1).bit_length()
        )
    else:
        counts = sum(
            count_edges(ranking, grade, upper, lowers) for upper, lowers in lower_of.items()
        )
    value = share_in_order(counts, ties)
    return mean_over_queries(
        ranking, value, counts.sum(axis=1) > 0, "two rows with a preference between their classes"
    )


def _auc(ranking: "Ranking", positive: Mask) -> float:
    return float(aucs_by_query(ranking, positive).mean())


def aucs_by_query(ranking: "Ranking", positive: Mask) -> Vector:
    counts = count_pairs(ranking.starts, ranking.tie, positive.astype(np.int64), ranking.weight, 1)
    return share_in_order(counts, 0.5)


# --- Curves: the ROC and precision-recall points at the ends of the tied blocks ---


def partial_auc(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    standardize: Literal[False, "mcclish", "range"],
    fpr_range: tuple[float, float] = (0.0, 0.1),
    sample_weight: Weights = None,
    qid: Queries = None,
    pos_label: Any = None,
) -> float:
    """Area under the ROC curve between two false positive rates, the curve interpolated linearly at
    both.

    ``A = integral of TPR over fpr from low to high``; the straight line across a tied block is what
    makes a tie count one half. Cost: O(n log n).

    Parameters
    ----------
    y_true, y_score, sample_weight, qid, pos_label
        As in `roc_auc`.
    standardize : {False, "mcclish", "range"}
        No default, since the three scales differ tenfold and more. False gives the area A; "range"
        gives ``A / (high - low)``, 1 when perfect; "mcclish" gives ``(1 + (A - a) / (high - low -
        a)) / 2`` with ``a = (high^2 - low^2) / 2``, 0.5 on the diagonal and 1 when perfect, which
        is ``roc_auc_score(..., max_fpr=high)`` of scikit-learn for low = 0.
    fpr_range : (low, high)
        With 0 <= low < high <= 1.

    Examples
    --------
    >>> y, s = [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]
    >>> partial_auc(y, s, fpr_range=(0.0, 0.5), standardize=False)
    0.25
    >>> partial_auc(y, s, fpr_range=(0.0, 0.5), standardize="range")
    0.5
    """
    if standardize is not False and standardize not in ("mcclish", "range"):
        raise ValueError(
            f"standardize={standardize!r}: choose False (the area), 'mcclish' or 'range'."
        )
    low, high = fpr_range
    if not 0.0 <= low < high <= 1.0:
        raise ValueError(
            f"fpr_range={fpr_range!r}: give two rates (low, high) with 0 <= low < high <= 1."
        )
    ranking, curve = binary_curve(y_true, y_score, sample_weight, qid, pos_label)
    area = float(areas_by_query(ranking, curve, low, high).mean())
    if standardize == "range":
        return area / (high - low)
    if standardize == "mcclish":
        diagonal = (high**2 - low**2) / 2
        return 0.5 * (1.0 + (area - diagonal) / (high - low - diagonal))
    return area


def areas_by_query(ranking: "Ranking", curve: "Curve", low: float, high: float) -> Vector:
    left, right = (curve.fp - curve.negative) / curve.all_negative, curve.fp / curve.all_negative
    start, stop = np.clip(left, low, high), np.clip(right, low, high)
    width = stop - start
    # How far along its block the middle of the clipped piece lies: the height there is the piece's
    # mean height.
    along = np.divide(
        (start + stop) / 2 - left, right - left, out=np.zeros_like(width), where=width > 0
    )
    height = (curve.tp - curve.positive * (1.0 - along)) / curve.all_positive
    return ranking.per_query(width * height)


def average_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: Weights = None,
    qid: Queries = None,
    pos_label: Any = None,
) -> float:
    """Average precision: ``sum_t (R_t - R_{t-1}) P_t`` over the distinct scores t, without
    interpolation.

    P_t and R_t are precision and recall of the rows scored t or more, so tied rows enter together.
    Parameters as in `roc_auc`; equal to ``sklearn.metrics.average_precision_score``. Cost: O(n log
    n).

    Examples
    --------
    >>> average_precision([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.8333333333333333
    """
    ranking, curve = binary_curve(y_true, y_score, sample_weight, qid, pos_label)
    return float(average_precisions_by_query(ranking, curve).mean())


def average_precisions_by_query(ranking: "Ranking", curve: "Curve") -> Vector:
    precision = curve.tp / (curve.tp + curve.fp)
    return ranking.per_query(curve.positive * precision) / ranking.per_query(curve.positive)


def pos_at_top(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: Weights = None,
    qid: Queries = None,
    pos_label: Any = None,
) -> float:
    """The share of positives scored strictly above every negative: hits before the first false
    alarm.

    ``sum_i w_i 1[s_i > max_j s_j] / sum_i w_i`` over positives i and negatives j (Pos@Top of
    li2014). A positive tied with the best negative does not count. Parameters as in `roc_auc`.
    Cost: O(n log n).

    Examples
    --------
    >>> pos_at_top([0, 1, 1, 1], [0.5, 0.9, 0.5, 0.2])
    0.3333333333333333
    """
    ranking, curve = binary_curve(y_true, y_score, sample_weight, qid, pos_label)
    return _caught(ranking, curve, curve.fp == 0)


def tpr_at_fpr(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    fpr: float = 0.01,
    sample_weight: Weights = None,
    qid: Queries = None,
    pos_label: Any = None,
) -> float:
    """The largest true positive rate of a threshold whose false positive rate is at most `fpr`.

    ``max {TPR(t) : FPR(t) <= fpr}`` over thresholds t, which take tied rows together; nothing is
    interpolated, so the value can be had from an actual threshold. ``fpr=0`` is `pos_at_top`. Other
    parameters as in `roc_auc`. Cost: O(n log n).

    Examples
    --------
    >>> tpr_at_fpr([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], fpr=0.4)
    0.5
    """
    if not 0.0 <= fpr <= 1.0:
        raise ValueError(
            f"fpr={fpr!r}: a false positive rate lies between 0 and 1, such as 0.01 for one percent."
        )
    ranking, curve = binary_curve(y_true, y_score, sample_weight, qid, pos_label)
    # The allowance covers the rounding of weight sums, so that rescaled weights pick the same
    # threshold.
    return _caught(ranking, curve, curve.fp / curve.all_negative <= fpr * (1.0 + 1e-12))


def work_saved(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    recall: float = 0.95,
    sample_weight: Weights = None,
    qid: Queries = None,
    pos_label: Any = None,
) -> float:
    """Work saved over sampling: the share of rows left unread at a recall, less what a random order
    would leave.

    ``1 - N(t) / N - (1 - recall)``, with N(t) the weight of the rows scored t or more, for the
    highest threshold t at which that share of the positives is found (WSS@95 of the screening
    literature for 0.95). Tied rows are read together. Other parameters as in `roc_auc`. Cost: O(n
    log n).

    Examples
    --------
    >>> round(work_saved([0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.8, 0.9]), 2)
    0.55
    """
    if not 0.0 < recall <= 1.0:
        raise ValueError(f"recall={recall!r}: a recall lies between 0 and 1, such as 0.95.")
    ranking, curve = binary_curve(y_true, y_score, sample_weight, qid, pos_label)
    total = curve.all_positive + curve.all_negative
    # The allowance covers the rounding of weight sums.
    reached = curve.tp >= recall * curve.all_positive * (1.0 - 1e-12)
    left = np.where(reached, 1.0 - (curve.tp + curve.fp) / total, -np.inf)
    return float((np.maximum.reduceat(left, ranking.first[:-1]) - (1.0 - recall)).mean())


def _caught(ranking: "Ranking", curve: "Curve", accepted: Mask) -> float:
    return float(shares_caught_by_query(ranking, curve, accepted).mean())


def shares_caught_by_query(ranking: "Ranking", curve: "Curve", accepted: Mask) -> Vector:
    """The weight share of positives in the accepted blocks; numerator and denominator are summed in
    the same order.
    """
    caught = ranking.per_query(np.where(accepted, curve.positive, 0.0))
    return caught / ranking.per_query(curve.positive)


# --- The first k rows ---


def precision_at_k(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: int = 10,
    sample_weight: Weights = None,
    qid: Queries = None,
    pos_label: Any = None,
) -> float:
    """The share of positives among the k best rows, ``sum_{i in top k} w_i 1[i positive] / sum_{i
    in top k} w_i``.

    k counts rows, whatever they weigh. Of the rows tied at the boundary each is equally likely to
    be in; both sums are replaced by their expected values, which without weights is the expected
    precision. A query with fewer than k rows is judged on the rows it has. Other parameters as in
    `roc_auc`. Cost: O(n log n).

    Examples
    --------
    >>> precision_at_k([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], k=2)
    0.5
    """
    ranking, curve = binary_curve(y_true, y_score, sample_weight, qid, pos_label)
    return float(precisions_by_query(ranking, curve, k).mean())


def precisions_by_query(ranking: "Ranking", curve: "Curve", k: int | Vector) -> Vector:
    share = _share_in_top(ranking, k)
    taken = ranking.per_query(share * (curve.positive + curve.negative))
    return ranking.per_query(share * curve.positive) / taken


def recall_at_k(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: int = 10,
    sample_weight: Weights = None,
    qid: Queries = None,
    pos_label: Any = None,
) -> float:
    """The share of all positives found among the k best rows, ``sum_{i in top k} w_i 1[i positive]
    / sum_{i pos} w_i``.

    k counts rows, whatever they weigh; rows tied at the boundary enter with their probability of
    being in, which gives the expected recall. Other parameters as in `roc_auc`. Cost: O(n log n).

    Examples
    --------
    >>> recall_at_k([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], k=3)
    1.0
    """
    ranking, curve = binary_curve(y_true, y_score, sample_weight, qid, pos_label)
    return float(recalls_by_query(ranking, curve, k).mean())


def recalls_by_query(ranking: "Ranking", curve: "Curve", k: int | Vector) -> Vector:
    found = ranking.per_query(_share_in_top(ranking, k) * curve.positive)
    return found / ranking.per_query(curve.positive)


def ndcg(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: int | None = None,
    gain: Literal["linear", "exponential"] = "linear",
    sample_weight: Weights = None,
    qid: Queries = None,
) -> float:
    """Normalized discounted cumulative gain, ``DCG / (DCG of the best order)``.

    ``DCG = sum_r w_r gain(y_r) / log2(r + 1)`` over the ranks r = 1 .. k; tied rows share the mean
    gain of their block. Equal to ``sklearn.metrics.ndcg_score`` on each query for linear gain.
    Queries without a positive gain are left out. Cost: O(n log n), here two sorts: one by score,
    one by gain for the best order.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Relevance grades, nonnegative and finite.
    y_score, qid
        As in `roc_auc`.
    k : int, optional
        Ranks beyond k count nothing; by default all count.
    gain : {"linear", "exponential"}
        The grade y itself, or 2^y - 1.
    sample_weight : array-like of shape (n_samples,), optional
        Multiplies the gain of the row; a row takes one rank whatever it weighs.

    Examples
    --------
    >>> round(ndcg([3, 2, 0, 1], [0.9, 0.8, 0.7, 0.1]), 6)
    0.985442
    """
    if gain not in ("linear", "exponential"):
        raise ValueError(f"gain={gain!r}: choose 'linear' or 'exponential'.")
    gains = _gains(check_column(y_true, "y_true"), gain)
    ranking = rank_rows(gains.size, y_score, sample_weight, qid)
    worth = gains[ranking.rows] * ranking.weight
    sizes = np.diff(ranking.starts)
    rank = np.arange(worth.size) - np.repeat(ranking.starts[:-1], sizes)
    discount = np.clip(_check_k(k, worth.size) - rank, 0.0, 1.0) / np.log2(rank + 2.0)
    block_worth, block_discount = (np.add.reduceat(v, ranking.blocks) for v in (worth, discount))
    dcg = ranking.per_query(block_worth * block_discount / ranking.block_sizes)
    ideal, _ = best_first(
        worth, np.repeat(np.arange(sizes.size), sizes) if ranking.grouped else None
    )
    best = np.add.reduceat(worth[ideal] * discount, ranking.starts[:-1])
    value = np.divide(dcg, best, out=np.full_like(dcg, np.nan), where=best > 0).clip(max=1.0)
    return mean_over_queries(ranking, value, best > 0, "a row of positive gain")


def _share_in_top(ranking: "Ranking", k: int | Vector) -> Vector:
    """For each tied block, the probability that one of its rows is among the k best of its query.

    k may be an array, a depth for each query.
    """
    n_blocks = np.diff(ranking.first)
    depth = np.repeat(k, n_blocks) if isinstance(k, np.ndarray) else _check_k(k, ranking.rows.size)
    first_rank = ranking.blocks - np.repeat(ranking.starts[:-1], n_blocks)
    return np.clip(depth - first_rank, 0, ranking.block_sizes) / ranking.block_sizes


class Depth(float):
    """A depth in a list that need not be a whole number of rows: the row at the cut counts in part.

    Accepted for k where a part of a list stands for the whole. Users give whole numbers, so that a
    share given by mistake is an error.
    """


def _check_k(k: int | None, n: int) -> float:
    if k is None:
        return n
    if isinstance(k, Depth) and k > 0.0:
        return float(k)
    if not is_integer(k) or k < 1:
        raise ValueError(
            f"k={k!r}: k counts rows from the top and must be a whole number of at least 1."
        )
    return int(k)


def _gains(y: NDArray, gain: str) -> Vector:
    try:
        grades = y.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"y_true has dtype {y.dtype}; ndcg needs numeric grades such as 0, 1, 2."
        ) from None
    with np.errstate(over="ignore"):
        gains = grades if gain == "linear" else np.exp2(grades) - 1.0
    bad = ~(grades >= 0) | ~np.isfinite(gains)
    if bad.any():
        raise ValueError(
            f"y_true holds {grades[bad][0]} in row {np.flatnonzero(bad)[0]}; ndcg needs grades of 0 or more whose "
            f"{gain} gain is finite. Shift or rescale the grades."
        )
    return gains


# --- An interval for the AUC ---


@dataclass(frozen=True)
class AucInterval:
    """An AUC with its confidence interval ``[low, high]``."""

    estimate: float
    low: float
    high: float
    confidence: float
    method: str


def auc_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    confidence: float = 0.95,
    method: Literal["delong", "bootstrap"] = "delong",
    n_resamples: int = 2000,
    sample_weight: Weights = None,
    pos_label: Any = None,
    random_state: Any = None,
) -> AucInterval:
    """Confidence interval for `roc_auc`.

    "delong": with V_i the share of negatives that positive i beats and V_j the share of positives
    that beat negative j (ties one half), the variance of the AUC is estimated by ``var(V_i) / n_pos
    + var(V_j) / n_neg`` (DeLong, DeLong and Clarke-Pearson, 1988). The interval is symmetric for
    logit(AUC), ``logit(A) +- z se / (A (1 - A))``, so it stays within (0, 1). Cost: O(n log n).

    "bootstrap": percentiles of the AUC over resamples of each class with replacement. The rows are
    sorted once and a resample is a vector of counts. Cost: O(n log n + n_resamples n).

    Both see no variation in a perfect (or perfectly wrong) ranking: the interval is then one point,
    with a warning.

    Parameters
    ----------
    y_true, y_score, pos_label
        As in `roc_auc`.
    confidence : float
        Strictly between 0 and 1.
    method : {"delong", "bootstrap"}
        See above.
    n_resamples : int
        For the bootstrap alone.
    sample_weight : array-like of shape (n_samples,), optional
        For the bootstrap alone, which draws rows with equal probability and lets each bring its
        weight. DeLong's variance depends on whether a weight is a count or an importance, so
        weights are refused there.
    random_state : int, RandomState, Generator or None
        For the bootstrap alone; the same seed gives the same interval.

    Examples
    --------
    >>> interval = auc_interval([0, 0, 0, 1, 1, 1], [1, 2, 4, 3, 5, 6])
    >>> print(f"{interval.estimate:.3f} in [{interval.low:.3f}, {interval.high:.3f}]")
    0.889 in [0.261, 0.995]
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(
            f"confidence={confidence!r}: give a probability strictly between 0 and 1, such as 0.95."
        )
    if method not in ("delong", "bootstrap"):
        raise ValueError(f"method={method!r}: choose 'delong' or 'bootstrap'.")
    if method == "delong" and sample_weight is not None:
        raise ValueError(
            "method='delong' takes no sample_weight; use method='bootstrap' for weighted rows."
        )
    ranking, positive = rank_binary(y_true, y_score, sample_weight, None, pos_label)
    n_pos, n_neg = int(positive.sum()), int((~positive).sum())
    if min(n_pos, n_neg) < 2:
        raise ValueError(
            f"y_true has {n_pos} positive and {n_neg} negative rows; an interval needs at least two of each, "
            "since one row shows no variation."
        )
    estimate = _auc(ranking, positive)
    if estimate in (0.0, 1.0):
        warnings.warn(
            f"The AUC is {estimate:.0f}: no pair disagrees, so the interval is a single point and says nothing about "
            "the uncertainty. More rows would be needed.",
            UserWarning,
            stacklevel=2,
        )
        low = high = estimate
    elif method == "delong":
        half_width = (
            ndtri(0.5 + confidence / 2)
            * _delong_se(ranking, positive)
            / (estimate * (1.0 - estimate))
        )
        low, high = expit(logit(estimate) + half_width * np.array([-1.0, 1.0]))
    else:
        if not is_integer(n_resamples) or n_resamples < 1:
            raise ValueError(
                f"n_resamples={n_resamples!r}: give a whole number of at least 1; 2000 is usual."
            )
        aucs = _bootstrap_aucs(ranking, positive, int(n_resamples), random_state)
        low, high = np.quantile(aucs, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return AucInterval(estimate, float(low), float(high), float(confidence), method)


def _delong_se(ranking: "Ranking", positive: Mask) -> float:
    """Rows of one tied block and class share their component, so the variances are sums over
    blocks.
    """
    curve = curve_of(ranking, positive)
    n_pos, n_neg = curve.all_positive[0], curve.all_negative[0]
    beaten = (n_neg - curve.fp + curve.negative / 2) / n_neg
    beaten_by = (curve.tp - curve.positive / 2) / n_pos
    auc = curve.positive @ beaten / n_pos
    var_pos = curve.positive @ (beaten - auc) ** 2 / (n_pos - 1)
    var_neg = curve.negative @ (beaten_by - auc) ** 2 / (n_neg - 1)
    return float(np.sqrt(var_pos / n_pos + var_neg / n_neg))


def _bootstrap_aucs(
    ranking: "Ranking", positive: Mask, n_resamples: int, random_state: Any
) -> Vector:
    if not isinstance(random_state, np.random.Generator):
        random_state = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    rng = np.random.default_rng(random_state)
    w_pos, w_neg = ranking.weight[positive], ranking.weight[~positive]
    # Negatives ahead of each positive, without and with those tied to it: the same for every
    # resample.
    tie_pos, tie_neg = ranking.tie[positive], ranking.tie[~positive]
    ahead, ahead_or_tied = (np.searchsorted(tie_neg, tie_pos, side) for side in ("left", "right"))
    aucs = np.empty(n_resamples)
    for r in range(n_resamples):
        draw_pos, draw_neg = (
            w * np.bincount(rng.integers(0, w.size, w.size), minlength=w.size)
            for w in (w_pos, w_neg)
        )
        passed = np.concatenate([[0.0], np.cumsum(draw_neg)])
        lost = draw_pos @ (passed[ahead] + passed[ahead_or_tied]) / 2
        aucs[r] = 1.0 - lost / (draw_pos.sum() * passed[-1])
    return aucs


# --- Scorers ---


_BY_SCORE = ("decision_function", "predict_proba")

# The metric of each scorer and what `make_scorer` needs to know beyond the metric's defaults.
_RECIPES: dict[str, tuple[Callable[..., float], dict[str, Any]]] = {
    "ndcg": (ndcg, {"response_method": (*_BY_SCORE, "predict")}),
    "partial_auc": (partial_auc, {"standardize": "mcclish"}),
    "pos_at_top": (pos_at_top, {}),
    "precision_at_k": (precision_at_k, {}),
    "rank_loss": (rank_loss, {"greater_is_better": False}),
    "recall_at_k": (recall_at_k, {}),
    "tpr_at_fpr": (tpr_at_fpr, {}),
    "wmw": (wmw, {"response_method": (*_BY_SCORE, "predict")}),
    "work_saved": (work_saved, {}),
}


def get_scorer(name: str, **params: Any) -> Any:
    """A new scikit-learn scorer for the metric `name`, one of `SCORERS`, with the metric's own
    parameters.

    It ranks by ``decision_function``, else ``predict_proba``; the graded metrics (ndcg, wmw) also
    accept a regressor's ``predict``. `rank_loss` is negated, as scikit-learn does for losses. For
    weights or queries enable metadata routing and say what to route:
    ``get_scorer("wmw").set_score_request(qid=True, sample_weight=True)``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = make_classification(random_state=0)
    >>> cross_val_score(LogisticRegression(), X, y, cv=2, scoring=get_scorer("recall_at_k", k=25)).round(2)
    array([0.84, 0.84])
    """
    if name not in _RECIPES:
        raise ValueError(
            f"No scorer is called {name!r}; choose one of {', '.join(sorted(_RECIPES))}."
        )
    metric, settings = _RECIPES[name]
    known = set(inspect.signature(metric).parameters) - {
        "y_true",
        "y_score",
        "sample_weight",
        "qid",
    }
    if unknown := sorted(set(params) - known):
        raise ValueError(
            f"The scorer {name!r} does not take {', '.join(unknown)}; it takes {', '.join(sorted(known))}."
        )
    return make_scorer(metric, **{"response_method": _BY_SCORE, **settings, **params})


SCORERS: dict[str, Any] = {name: get_scorer(name) for name in _RECIPES}
"""Scorers with default parameters; `get_scorer` makes new ones, to set parameters or metadata requests."""
