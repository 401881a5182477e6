"""Measures of the first k rows: precision, recall and NDCG."""

from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forerank._typing import Queries, Vector, Weights
from forerank._validation import is_integer
from forerank.metrics.partitioned import Piece, ScoredPartitions, on_dask
from forerank.metrics.ranking import (
    Curve,
    Ranking,
    binary_curve,
    mean_over_groups,
    rank_rows,
    sort_descending,
)
from forerank.metrics.validation import check_column

__all__ = ["Depth", "ndcg", "precision_at_k", "precisions_by_group", "recall_at_k"]
__all__ += ["recalls_by_group"]

_POSITIVE_GAIN = "a row of positive gain"


def precision_at_k(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: int = 10,
    sample_weight: Weights = None,
    qid: Queries = None,
    pos_label: Any = None,
) -> float:
    """The share of positives among the first k rows.

    ``sum_{i in top k} w_i 1[i positive] / sum_{i in top k} w_i``; k counts rows regardless of their
    weights. Rows tied at the boundary are included with equal probability, and both sums are
    replaced by their expected values, which without weights is the expected precision. A group of
    fewer than k rows counts with all its rows. Other parameters as in `roc_auc`. Cost: O(n log n).

    Examples
    --------
    >>> precision_at_k([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], k=2)
    0.5
    """
    if on_dask(y_true, y_score):
        rows = ScoredPartitions(y_true, y_score, sample_weight, qid)
        return rows.binary_mean(
            pos_label,
            partial(precisions_by_group, k=k),
            partial(_piece_top, k=_check_k(k, 0)),
            lambda sums: float(sums[0] / sums[1]),
        )
    ranking, curve = binary_curve(y_true, y_score, sample_weight, qid, pos_label)
    return float(precisions_by_group(ranking, curve, k).mean())


def _piece_top(piece: Piece, k: float) -> list[float]:
    """Weight of the positives among the first k rows, of these rows, and the share of the former
    in all positives.
    """
    curve = piece.curve
    share = _share_in_top(piece.ranking, np.array([k - piece.rows_above]))
    found = float(share @ curve.positive)
    return [found, float(share @ (curve.positive + curve.negative)), found / curve.all_positive[0]]


def precisions_by_group(ranking: Ranking, curve: Curve, k: int | Vector) -> Vector:
    share = _share_in_top(ranking, k)
    taken = ranking.sum_by_group(share * (curve.positive + curve.negative))
    return ranking.sum_by_group(share * curve.positive) / taken


def recall_at_k(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: int = 10,
    sample_weight: Weights = None,
    qid: Queries = None,
    pos_label: Any = None,
) -> float:
    """The share of all positives that are among the first k rows.

    ``sum_{i in top k} w_i 1[i positive] / sum_{i pos} w_i``; k counts rows regardless of their
    weights. Rows tied at the boundary count with their probability of being included, which gives
    the expected recall. Other parameters as in `roc_auc`. Cost: O(n log n).

    Examples
    --------
    >>> recall_at_k([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], k=3)
    1.0
    """
    if on_dask(y_true, y_score):
        rows = ScoredPartitions(y_true, y_score, sample_weight, qid)
        return rows.binary_mean(
            pos_label,
            partial(recalls_by_group, k=k),
            partial(_piece_top, k=_check_k(k, 0)),
            lambda sums: float(sums[2]),
        )
    ranking, curve = binary_curve(y_true, y_score, sample_weight, qid, pos_label)
    return float(recalls_by_group(ranking, curve, k).mean())


def recalls_by_group(ranking: Ranking, curve: Curve, k: int | Vector) -> Vector:
    found = ranking.sum_by_group(_share_in_top(ranking, k) * curve.positive)
    return found / ranking.sum_by_group(curve.positive)


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
    gain of their block. Equal to ``sklearn.metrics.ndcg_score`` on each group for linear gain.
    Groups without a positive gain are excluded. Cost: O(n log n), two sorts: by score, and by gain
    for the best order.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Relevance grades, nonnegative and finite.
    y_score, qid
        As in `roc_auc`.
    k : int, optional
        Number of ranks that count; by default all.
    gain : {"linear", "exponential"}
        The grade y itself, or 2^y - 1.
    sample_weight : array-like of shape (n_samples,), optional
        Multiplies the gain of the row; a row takes one rank regardless of its weight.

    Examples
    --------
    >>> round(ndcg([3, 2, 0, 1], [0.9, 0.8, 0.7, 0.1]), 6)
    0.985442
    """
    if gain not in ("linear", "exponential"):
        raise ValueError(f"gain={gain!r}: choose 'linear' or 'exponential'.")
    if on_dask(y_true, y_score):
        if qid is None:
            raise ValueError(
                "ndcg of Dask collections needs groups: give qid, or call compute() on labels and "
                "scores."
            )
        rows = ScoredPartitions(y_true, y_score, sample_weight, qid)
        return rows.mean(partial(_ndcgs_of_labels, k=k, gain=gain), _POSITIVE_GAIN)
    gains = _gains(check_column(y_true, "y_true"), gain)
    ranking = rank_rows(gains.size, y_score, sample_weight, qid)
    value = _ndcgs_by_group(ranking, gains, k)
    return mean_over_groups(ranking, value, ~np.isnan(value), _POSITIVE_GAIN)


def _ndcgs_of_labels(y: NDArray, ranking: Ranking, *, k: int | None, gain: str) -> Vector:
    return _ndcgs_by_group(ranking, _gains(y, gain), k)


def _ndcgs_by_group(ranking: Ranking, gains: Vector, k: int | None) -> Vector:
    """NDCG by group; NaN without a positive gain. `gains` are in the order of the input."""
    weighted_gain = gains[ranking.rows] * ranking.weight
    sizes = np.diff(ranking.starts)
    rank = np.arange(weighted_gain.size) - np.repeat(ranking.starts[:-1], sizes)
    discount = np.clip(_check_k(k, weighted_gain.size) - rank, 0.0, 1.0) / np.log2(rank + 2.0)
    block_gain, block_discount = (
        np.add.reduceat(v, ranking.blocks) for v in (weighted_gain, discount)
    )
    dcg = ranking.sum_by_group(block_gain * block_discount / ranking.block_sizes)
    group = np.repeat(np.arange(sizes.size), sizes) if ranking.grouped else None
    ideal, _ = sort_descending(weighted_gain, group)
    best = np.add.reduceat(weighted_gain[ideal] * discount, ranking.starts[:-1])
    return np.divide(dcg, best, out=np.full_like(dcg, np.nan), where=best > 0).clip(max=1.0)


def _share_in_top(ranking: Ranking, k: int | Vector) -> Vector:
    """For each block of tied rows, the probability that a row of it is among the first k of its
    group; k may be an array, one depth per group.
    """
    n_blocks = np.diff(ranking.first)
    depth = np.repeat(k, n_blocks) if isinstance(k, np.ndarray) else _check_k(k, ranking.rows.size)
    first_rank = ranking.blocks - np.repeat(ranking.starts[:-1], n_blocks)
    return np.clip(depth - first_rank, 0, ranking.block_sizes) / ranking.block_sizes


class Depth(float):
    """A number of rows that need not be an integer: the last row counts in part.

    Accepted for k where a sample represents a list. A plain float is refused, since it may be a
    share given by mistake.
    """


def _check_k(k: int | None, n: int) -> float:
    if k is None:
        return n
    if isinstance(k, Depth) and k > 0.0:
        return float(k)
    if not is_integer(k) or k < 1:
        raise ValueError(f"k={k!r}: give a number of rows from the top, an integer of at least 1.")
    return int(k)


def _gains(y: NDArray, gain: str) -> Vector:
    try:
        grades = y.astype(np.float64)
    except (TypeError, ValueError):
        message = f"y_true has dtype {y.dtype}; ndcg needs numeric grades such as 0, 1, 2."
        raise ValueError(message) from None
    with np.errstate(over="ignore"):
        gains = grades if gain == "linear" else np.exp2(grades) - 1.0
    bad = ~(grades >= 0) | ~np.isfinite(gains)
    if bad.any():
        raise ValueError(
            f"y_true holds {grades[bad][0]} in row {np.flatnonzero(bad)[0]}; ndcg needs grades of "
            f"0 or more whose {gain} gain is finite. Shift or rescale the grades."
        )
    return gains
