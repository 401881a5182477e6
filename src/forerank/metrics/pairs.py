"""Measures of pairs: AUC, rank loss, and the share of pairs of a preference graph in order."""

from collections.abc import Hashable, Iterable
from typing import Any

from numpy.typing import ArrayLike

from forerank._typing import Queries, Weights
from forerank.graphs import numbered_edges
from forerank.metrics.pair_counts import aucs_by_group, count_edges, count_pairs, share_in_order
from forerank.metrics.partitioned import ScoredPartitions, on_dask
from forerank.metrics.ranking import mean_over_groups, rank_binary, rank_rows
from forerank.metrics.thresholds import dask_area
from forerank.metrics.validation import check_column, sorted_labels

__all__ = ["rank_loss", "roc_auc", "wmw"]

Edges = Iterable[tuple[Hashable, Hashable]]


def roc_auc(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: Weights = None,
    qid: Queries = None,
    pos_label: Any = None,
) -> float:
    """Area under the ROC curve: the share of (positive, negative) pairs in order, ties counting one
    half.

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
        Nonnegative and finite; an integer weight w is equivalent to w copies of the row.
    qid : sequence of hashable, of length n_samples, optional
        The group of each row, in any order; the result is then the mean over groups.
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
    if on_dask(y_true, y_score):
        rows = ScoredPartitions(y_true, y_score, sample_weight, qid)
        return dask_area(rows, pos_label, 0.0, 1.0)
    ranking, positive = rank_binary(y_true, y_score, sample_weight, qid, pos_label)
    return float(aucs_by_group(ranking, positive).mean())


def rank_loss(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: Weights = None,
    qid: Queries = None,
    pos_label: Any = None,
) -> float:
    """The share of (positive, negative) pairs out of order, ties counting one half:
    ``1 - roc_auc``.

    The empirical rank loss of kotlowski2011. Parameters as in `roc_auc`. Cost: O(n log n).

    Examples
    --------
    >>> rank_loss([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.25
    """
    if on_dask(y_true, y_score):
        rows = ScoredPartitions(y_true, y_score, sample_weight, qid)
        return 1.0 - dask_area(rows, pos_label, 0.0, 1.0)
    ranking, positive = rank_binary(y_true, y_score, sample_weight, qid, pos_label)
    return 1.0 - float(aucs_by_group(ranking, positive).mean())


def wmw(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    graph: str | Edges = "order",
    ties: float = 0.5,
    sample_weight: Weights = None,
    qid: Queries = None,
) -> float:
    """Generalized Wilcoxon-Mann-Whitney statistic: the share of pairs of a preference graph in
    order.

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
        The count of a pair of equal scores. 1.0 is eq. (1) as printed, by which constant scores
        are perfect.

    Examples
    --------
    >>> wmw([0, 1, 2, 3], [0.1, 0.4, 0.3, 0.8])  # one of six pairs is wrong
    0.8333333333333334
    >>> wmw(["spam", "ham", "star"], [1.0, 1.0, 3.0], graph=[("star", "spam"), ("ham", "spam")])
    0.75
    """
    if not 0.0 <= ties <= 1.0:
        raise ValueError(
            f"ties={ties!r}: give the count of a tied pair, between 0 and 1; 0.5 is usual."
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
        n_bits = (classes.size - 1).bit_length()
        counts = count_pairs(ranking.starts, ranking.tie, grade, ranking.weight, n_bits)
    else:
        counts = sum(count_edges(ranking, grade, *edge) for edge in lower_of.items())
    need = "two rows with a preference between their classes"
    return mean_over_groups(ranking, share_in_order(counts, ties), counts.sum(axis=1) > 0, need)
