"""Measures of thresholds: points of the ROC and precision-recall curves at the ends of the blocks
of tied rows.
"""

from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from forerank._typing import Mask, Queries, Vector, Weights
from forerank.metrics.partitioned import Piece, ScoredPartitions, on_dask
from forerank.metrics.ranking import Curve, Ranking, binary_curve

__all__ = ["areas_by_group", "average_precision", "average_precisions_by_group", "dask_area"]
__all__ += ["partial_auc"]
__all__ += ["pos_at_top", "shares_accepted_by_group", "tpr_at_fpr", "work_saved"]


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
    """Area under the ROC curve between two false positive rates, by linear interpolation at both.

    ``A = integral of TPR over fpr from low to high``; the curve is a straight line across a block
    of tied rows, so that a tie counts one half. Cost: O(n log n).

    Parameters
    ----------
    y_true, y_score, sample_weight, qid, pos_label
        As in `roc_auc`.
    standardize : {False, "mcclish", "range"}
        No default, since the three scales differ by a factor of ten. False gives the area A;
        "range" gives ``A / (high - low)``, 1 when perfect; "mcclish" gives
        ``(1 + (A - a) / (high - low - a)) / 2`` with ``a = (high^2 - low^2) / 2``, 0.5 on the
        diagonal and 1 when perfect: ``roc_auc_score(..., max_fpr=high)`` of scikit-learn for
        low = 0.
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
        raise ValueError(f"standardize={standardize!r}: choose False, 'mcclish' or 'range'.")
    low, high = fpr_range
    if not 0.0 <= low < high <= 1.0:
        raise ValueError(
            f"fpr_range={fpr_range!r}: give two rates (low, high) with 0 <= low < high <= 1."
        )
    if on_dask(y_true, y_score):
        rows = ScoredPartitions(y_true, y_score, sample_weight, qid)
        area = dask_area(rows, pos_label, low, high)
    else:
        ranking, curve = binary_curve(y_true, y_score, sample_weight, qid, pos_label)
        area = float(areas_by_group(ranking, curve, low, high).mean())
    if standardize == "range":
        return area / (high - low)
    if standardize == "mcclish":
        diagonal = (high**2 - low**2) / 2
        return 0.5 * (1.0 + (area - diagonal) / (high - low - diagonal))
    return area


def areas_by_group(ranking: Ranking, curve: Curve, low: float, high: float) -> Vector:
    left, right = (curve.fp - curve.negative) / curve.all_negative, curve.fp / curve.all_negative
    start, stop = np.clip(left, low, high), np.clip(right, low, high)
    width = stop - start
    # Position, within its block, of the middle of the clipped piece: the height there is the mean
    # height of the piece.
    middle, zeros = (start + stop) / 2, np.zeros_like(width)
    along = np.divide(middle - left, right - left, out=zeros, where=width > 0)
    height = (curve.tp - curve.positive * (1.0 - along)) / curve.all_positive
    return ranking.sum_by_group(width * height)


def dask_area(rows: ScoredPartitions, pos_label: Any, low: float, high: float) -> float:
    """The area between two false positive rates, of Dask collections; its mean over groups."""
    return rows.binary_mean(
        pos_label,
        partial(areas_by_group, low=low, high=high),
        partial(_piece_area, low=low, high=high),
    )


def _piece_area(piece: Piece, low: float, high: float) -> Vector:
    return areas_by_group(piece.ranking, piece.curve, low, high)


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
    if on_dask(y_true, y_score):
        rows = ScoredPartitions(y_true, y_score, sample_weight, qid)
        return rows.binary_mean(pos_label, average_precisions_by_group, _piece_precision)
    ranking, curve = binary_curve(y_true, y_score, sample_weight, qid, pos_label)
    return float(average_precisions_by_group(ranking, curve).mean())


def _piece_precision(piece: Piece) -> list[float]:
    curve = piece.curve
    return [float(curve.positive @ (curve.tp / (curve.tp + curve.fp))) / curve.all_positive[0]]


def average_precisions_by_group(ranking: Ranking, curve: Curve) -> Vector:
    precision = curve.tp / (curve.tp + curve.fp)
    return ranking.sum_by_group(curve.positive * precision) / ranking.sum_by_group(curve.positive)


def pos_at_top(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: Weights = None,
    qid: Queries = None,
    pos_label: Any = None,
) -> float:
    """The share of positives scored strictly above every negative.

    ``sum_i w_i 1[s_i > max_j s_j] / sum_i w_i`` over positives i and negatives j (Pos@Top of
    li2014). A positive tied with the best negative does not count. Parameters as in `roc_auc`.
    Cost: O(n log n).

    Examples
    --------
    >>> pos_at_top([0, 1, 1, 1], [0.5, 0.9, 0.5, 0.2])
    0.3333333333333333
    """
    if on_dask(y_true, y_score):
        return _dask_share(ScoredPartitions(y_true, y_score, sample_weight, qid), pos_label, 0.0)
    ranking, curve = binary_curve(y_true, y_score, sample_weight, qid, pos_label)
    return float(_shares_at_fpr(ranking, curve, 0.0).mean())


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

    ``max {TPR(t) : FPR(t) <= fpr}`` over thresholds t, which accept tied rows together; without
    interpolation, so that some threshold attains the value. ``fpr=0`` is `pos_at_top`. Other
    parameters as in `roc_auc`. Cost: O(n log n).

    Examples
    --------
    >>> tpr_at_fpr([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], fpr=0.4)
    0.5
    """
    if not 0.0 <= fpr <= 1.0:
        raise ValueError(f"fpr={fpr!r}: give a false positive rate between 0 and 1, such as 0.01.")
    if on_dask(y_true, y_score):
        return _dask_share(ScoredPartitions(y_true, y_score, sample_weight, qid), pos_label, fpr)
    ranking, curve = binary_curve(y_true, y_score, sample_weight, qid, pos_label)
    return float(_shares_at_fpr(ranking, curve, fpr).mean())


def _accepted(curve: Curve, fpr: float) -> Mask:
    """Blocks above the threshold. The tolerance exceeds the rounding errors of sums of weights, so
    that rescaled weights select the same threshold.
    """
    return curve.fp / curve.all_negative <= fpr * (1.0 + 1e-12)


def _shares_at_fpr(ranking: Ranking, curve: Curve, fpr: float) -> Vector:
    return shares_accepted_by_group(ranking, curve, _accepted(curve, fpr))


def _dask_share(rows: ScoredPartitions, pos_label: Any, fpr: float) -> float:
    return rows.binary_mean(
        pos_label, partial(_shares_at_fpr, fpr=fpr), partial(_piece_share, fpr=fpr)
    )


def _piece_share(piece: Piece, fpr: float) -> list[float]:
    curve = piece.curve
    return [float(curve.positive[_accepted(curve, fpr)].sum()) / curve.all_positive[0]]


def work_saved(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    recall: float = 0.95,
    sample_weight: Weights = None,
    qid: Queries = None,
    pos_label: Any = None,
) -> float:
    """Work saved over sampling: the share of rows below the threshold of a recall, less that of a
    random order.

    ``1 - N(t) / N - (1 - recall)``, with N(t) the weight of the rows scored t or more, for the
    highest threshold t that finds this share of the positives (WSS@95 of the screening literature
    for 0.95). Tied rows are accepted together. Other parameters as in `roc_auc`. Cost: O(n
    log n).

    Examples
    --------
    >>> round(work_saved([0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.8, 0.9]), 2)
    0.55
    """
    if not 0.0 < recall <= 1.0:
        raise ValueError(f"recall={recall!r}: give a recall above 0 and up to 1, such as 0.95.")
    ranking, curve = binary_curve(y_true, y_score, sample_weight, qid, pos_label)
    total = curve.all_positive + curve.all_negative
    # The tolerance exceeds the rounding errors of sums of weights.
    reached = curve.tp >= recall * curve.all_positive * (1.0 - 1e-12)
    left = np.where(reached, 1.0 - (curve.tp + curve.fp) / total, -np.inf)
    return float((np.maximum.reduceat(left, ranking.first[:-1]) - (1.0 - recall)).mean())


def shares_accepted_by_group(ranking: Ranking, curve: Curve, accepted: Mask) -> Vector:
    """The share of positives in the accepted blocks; both sums are in the same order, so that the
    share of all is exactly 1.
    """
    found = ranking.sum_by_group(np.where(accepted, curve.positive, 0.0))
    return found / ranking.sum_by_group(curve.positive)
