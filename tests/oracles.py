"""Plain definitions, one pair or one order at a time, against which the fast code is checked."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, permutations
from math import log2

import numpy as np

from forerank.losses import get_loss

# --- Metrics ---
#
# `positive` is a list of booleans, `s` the scores, `w` the weights (all positive); one query at a
# time.


def pair_credit(better: float, worse: float, ties: float = 0.5) -> float:
    return 1.0 if better > worse else ties if better == worse else 0.0


def wmw(
    y: Sequence,
    s: Sequence,
    w: Sequence,
    prefers: Callable[[object, object], bool],
    ties: float = 0.5,
) -> float:
    """Share of the pairs with ``prefers(y_i, y_j)`` that are in order; NaN without such a pair."""
    pairs = [(i, j) for i in range(len(y)) for j in range(len(y)) if prefers(y[i], y[j])]
    total = sum(w[i] * w[j] for i, j in pairs)
    return (
        sum(w[i] * w[j] * pair_credit(s[i], s[j], ties) for i, j in pairs) / total
        if pairs
        else np.nan
    )


def roc_auc(positive: Sequence, s: Sequence, w: Sequence) -> float:
    return wmw(positive, s, w, lambda a, b: a and not b)


def weight_of(w: Sequence, chosen: Sequence) -> float:
    return sum(wi for wi, c in zip(w, chosen, strict=True) if c)


def operating_points(positive: Sequence, s: Sequence, w: Sequence) -> Iterator[tuple[float, float]]:
    """Weights of (false, true) positives for each threshold, from none accepted to all."""
    yield 0.0, 0.0
    for t in sorted(set(s), reverse=True):
        accepted = [si >= t for si in s]
        yield (
            weight_of(w, [a and not p for a, p in zip(accepted, positive, strict=True)]),
            weight_of(w, [a and p for a, p in zip(accepted, positive, strict=True)]),
        )


def partial_auc(positive: Sequence, s: Sequence, w: Sequence, low: float, high: float) -> float:
    """The ROC curve is linear between its corners, so between two of them the midpoint rule is
    exact.
    """
    fp, tp = zip(*operating_points(positive, s, w), strict=True)
    fpr, tpr = [f / fp[-1] for f in fp], [t / tp[-1] for t in tp]
    corners = sorted({low, high, *[f for f in fpr if low < f < high]})
    area = 0.0
    for a, b in pairwise(corners):
        middle = (a + b) / 2
        for x0, x1, y0, y1 in zip(fpr, fpr[1:], tpr, tpr[1:], strict=False):
            if x0 < middle < x1:
                area += (b - a) * (y0 + (y1 - y0) * (middle - x0) / (x1 - x0))
    return area


def average_precision(positive: Sequence, s: Sequence, w: Sequence) -> float:
    points = list(operating_points(positive, s, w))
    return sum(
        (tp - before) / points[-1][1] * tp / (tp + fp) for (_, before), (fp, tp) in pairwise(points)
    )


def tpr_at_fpr(positive: Sequence, s: Sequence, w: Sequence, fpr: float) -> float:
    points = list(operating_points(positive, s, w))
    return max(tp / points[-1][1] for fp, tp in points if fp / points[-1][0] <= fpr)


def work_saved(positive: Sequence, s: Sequence, w: Sequence, recall: float) -> float:
    points = list(operating_points(positive, s, w))
    total = sum(points[-1])
    read = min(fp + tp for fp, tp in points if tp >= recall * points[-1][1] - 1e-12)
    return 1.0 - read / total - (1.0 - recall)


def pos_at_top(positive: Sequence, s: Sequence, w: Sequence) -> float:
    best_negative = max(si for si, p in zip(s, positive, strict=True) if not p)
    above = [p and si > best_negative for si, p in zip(s, positive, strict=True)]
    return weight_of(w, above) / weight_of(w, positive)


def orders(s: Sequence) -> list[tuple[int, ...]]:
    """Every order of the rows that the scores allow; each is equally likely under random
    tie-breaking.
    """
    return [p for p in permutations(range(len(s))) if all(s[a] >= s[b] for a, b in pairwise(p))]


def precision_at_k(positive: Sequence, s: Sequence, w: Sequence, k: int) -> float:
    found = taken = 0.0
    for order in orders(s):
        found += sum(w[i] for i in order[:k] if positive[i])
        taken += sum(w[i] for i in order[:k])
    return found / taken


def recall_at_k(positive: Sequence, s: Sequence, w: Sequence, k: int) -> float:
    allowed = orders(s)
    found = sum(w[i] for order in allowed for i in order[:k] if positive[i])
    return found / len(allowed) / weight_of(w, positive)


def ndcg(worth: Sequence, s: Sequence, k: int | None) -> float:
    """`worth` is the weighted gain of each row; NaN where no row has any."""

    def dcg(order: Sequence[int]) -> float:
        return sum(worth[i] / log2(rank + 2) for rank, i in enumerate(order[:k]))

    best = max(dcg(order) for order in permutations(range(len(s))))
    return float(np.mean([dcg(order) for order in orders(s)]) / best) if best > 0 else np.nan


def delong_variance(positive: Sequence, s: Sequence) -> float:
    """Variance of the AUC from the structural components of DeLong et al. (1988), over the matrix
    of all pairs.
    """
    s_pos = [si for si, p in zip(s, positive, strict=True) if p]
    s_neg = [si for si, p in zip(s, positive, strict=True) if not p]
    credit = np.array([[pair_credit(a, b) for b in s_neg] for a in s_pos])
    return credit.mean(axis=1).var(ddof=1) / len(s_pos) + credit.mean(axis=0).var(ddof=1) / len(
        s_neg
    )


# --- Sums over pairs ---
#
# Every ordered pair is visited; `prefers(a, b)` says whether grade a should stand ahead of grade b.


def pairs_of(grade: Sequence, group: Sequence | None, prefers: Callable) -> list[tuple[int, int]]:
    n = len(grade)
    return [
        (i, j)
        for i in range(n)
        for j in range(n)
        if prefers(grade[i], grade[j]) and (group is None or group[i] == group[j])
    ]


def all_pairs(loss, s: np.ndarray, w: np.ndarray, pairs: list[tuple[int, int]], u: np.ndarray):
    """Mean loss over the pairs, its gradient, and its curvature times u."""
    total = sum(w[i] * w[j] for i, j in pairs)
    value, gradient, product = 0.0, np.zeros(len(s)), np.zeros(len(s))
    for i, j in pairs:
        weight, t = w[i] * w[j] / total, s[i] - s[j]
        value += weight * loss.value(t)
        slope, curvature = weight * loss.slope(t), weight * loss.curvature(t) * (u[i] - u[j])
        gradient[i] += slope
        gradient[j] -= slope
        product[i] += curvature
        product[j] -= curvature
    return value, gradient, product


def bipartite(loss, s: np.ndarray, w: np.ndarray, positive: np.ndarray, u: np.ndarray):
    """`all_pairs` for two classes with the pairs laid out as a matrix, for sizes where Python loops
    take too long.
    """
    t = s[positive][:, None] - s[~positive]
    weight = np.outer(w[positive], w[~positive])
    weight /= weight.sum()
    slope, curvature = (
        weight * loss.slope(t),
        weight * loss.curvature(t) * (u[positive][:, None] - u[~positive]),
    )
    gradient, product = np.zeros(s.size), np.zeros(s.size)
    gradient[positive], gradient[~positive] = slope.sum(axis=1), -slope.sum(axis=0)
    product[positive], product[~positive] = curvature.sum(axis=1), -curvature.sum(axis=0)
    return float(np.sum(weight * loss.value(t))), gradient, product


# --- Certificates ---


def pair_units(X: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """The root mean square of each column's differences over all pairs of a positive and a negative
    row.
    """
    return np.sqrt(
        np.mean([((row - X[~positive]) ** 2).mean(axis=0) for row in X[positive]], axis=0)
    )


def top_threshold(scores, at, weight=None):
    """The mean of the highest negatives, one unit of weight after the other."""
    weight = np.ones(scores.size) if weight is None else weight
    room = {"max": 0.0}.get(
        at, at if isinstance(at, int) else at * weight.sum() if at != "max" else 0.0
    )
    if at == "max":
        return scores.max()
    left, total = room, 0.0
    for j in np.argsort(-scores):
        taken = min(weight[j], left)
        total, left = total + taken * scores[j], left - taken
    return total / room


def top_objective(s, positive, loss, at, weight=None):
    """The mean loss of the positives against the mean of the highest negatives."""
    weight = np.ones(s.size) if weight is None else weight
    T = top_threshold(s[~positive], at, weight[~positive])
    return np.average(get_loss(loss).value(s[positive] - T), weights=weight[positive])
