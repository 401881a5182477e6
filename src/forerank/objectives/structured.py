"""Objectives of the whole ranking: convex upper bounds of ranking measures, for the bundle solver.

Each is the maximum, over rankings pi of the rows, of the loss of pi plus the mean score difference
of the pairs that pi orders wrongly:

    F(s) = max_pi  loss(pi) - (1 / (m n)) sum over wrong pairs (i, j) of (s_i - s_j)          (1)

so F is at least the loss of the ranking by s. The maximum costs a sort and a few passes.

- `RankWeightedHinge`: pairs, weighted by the rank of the negative. OWPC (Usunier et al., 2009);
  partial AUC over a range of false positive rates (tight SVM-pAUC, Narasimhan and Agarwal, 2013);
  RankSVM with equal weights.
- `AveragePrecision`: SVM-MAP (Yue et al., 2007).
- `AnchoredHinge`: errors on both sides of one row's score. AATP (Boyd et al., 2012) for one
  threshold row.

Ties. Rows of equal score are taken in the order given; a pair exactly on its margin has no loss.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from forerank._kernels import compiled
from forerank._sorting import argsort, largest
from forerank._typing import Mask, Random, Vector
from forerank.design import Design
from forerank.objectives.pointwise import Pointwise, PointwiseLinearization

__all__ = [
    "AnchoredHinge",
    "AveragePrecision",
    "MeanAveragePrecision",
    "RankWeightedHinge",
    "harmonic",
    "partial_auc",
    "uniform",
]

#: From the total weight of the negatives up to each rank, and of all, to two cumulated shares: of
#: the slope a and of the margin b of the ranks (see `RankWeightedHinge`).
RankWeights = Callable[[Vector, Any], tuple[Vector, Vector]]

# Total weight of the negatives below which harmonic weights are taken as uniform.
_TINY_TOTAL = 1e-6
# Shares of all sums of integer weights are kept where there are at most so many for each row.
_MOST_SUMS = 16


def uniform(above: Vector, total: float) -> tuple[Vector, Vector]:
    """Equal weights for all ranks: RankSVM."""
    return above / total, above / total


def harmonic(above: Vector, total: float) -> tuple[Vector, Vector]:
    """Weight 1/r for rank r, so that errors at the top cost most; digamma between integers."""
    if total < _TINY_TOTAL:  # digamma is linear here, and its differences would cancel
        return uniform(above, total)
    share = (digamma(above + 1.0) - digamma(1.0)) / (digamma(total + 1.0) - digamma(1.0))
    return share, share


def partial_auc(low: float, high: float) -> RankWeights:
    """Weights of the ranks for false positive rates from `low` to `high`.

    Negatives above the range count with their score difference and no margin; those below it do
    not count.
    """

    def weights(above: Vector, total: float | Vector) -> tuple[Vector, Vector]:
        rate, span = above / total, high - low
        return np.minimum(rate, high) / span, np.clip(rate - low, 0.0, span) / span

    return weights


class _Linearization:
    """Value and subgradient at given scores."""

    def __init__(self, value: float, gradient: Vector) -> None:
        self.value, self.gradient = value, gradient


class RankWeightedHinge:
    """Positives against negatives weighted by their rank, as a function of the scores.

        F(s) = sum_i p_i  max_r  sum_{k <= r} ( b_k - a_k (s_i - s_(k)) ),   s_(1) >= s_(2) >= ...

    over the ranks k of the negatives. With a = b this is sum_i p_i sum_k a_k max(0, 1 - (s_i -
    s_(k))). It is convex if a_k decreases and b_k <= a_k, and if b_k increases from zero to a_k (a
    partial range): the maximum over subsets of negatives of linear functions.

    Parameters
    ----------
    positive : boolean array
    weights : callable
        `uniform`, `harmonic`, the result of `partial_auc`, or a function of the same kind.
    weight : array, optional
        Per row; a negative of weight w takes up w ranks.
    """

    smooth = False

    def __init__(
        self, positive: Mask, weights: RankWeights, *, weight: Vector | None = None
    ) -> None:
        present = np.ones(positive.size, dtype=bool) if weight is None else weight > 0.0
        self._positives = np.flatnonzero(positive & present)
        self._negatives = np.flatnonzero(~positive & present)
        weight = np.ones(positive.size) if weight is None else weight
        self._share = weight[self._positives] / weight[self._positives].sum()
        self._weight = weight[self._negatives]
        self._equal = bool(np.ptp(self._weight) == 0.0)
        self._total = float(self._weight.sum())
        self._weights = weights
        self.n_rows = positive.size
        # With equal weights the shares of the ranks are constant, and only the ranks with a share
        # are sorted.
        self._shares = self._weights(np.append(0.0, np.cumsum(self._weight)), self._total)
        slopes = self._shares[0]
        self._n_ranks = int(np.searchsorted(slopes, slopes[-1] * (1.0 - 1e-15)))
        # With weights that are integers, such as numbers of equal rows, those of all sums.
        self._shares_of_sums: tuple[Vector, Vector] | None = None
        whole = self._total <= _MOST_SUMS * self._weight.size and not np.any(self._weight % 1.0)
        if whole and not self._equal:
            self._shares_of_sums = self._weights(np.arange(self._total + 1.0), self._total)

    def at(self, s: Vector) -> _Linearization:
        """Value and subgradient at the scores s. Cost: a sort of the negatives with a weight, one
        of the positives, and a pass over both.
        """
        negative = s[self._negatives]
        if self._equal:
            order = largest(negative, self._n_ranks, stable=False)
            slopes, margins = self._shares[0][: order.size + 1], self._shares[1][: order.size + 1]
        else:
            order = largest(negative, negative.size)
            above = np.concatenate([[0.0], np.cumsum(self._weight[order])])
            slopes, margins = self._shares_of(above)
        positive = s[self._positives]
        by_positive = argsort(-positive)
        # The ranks without a margin.
        first = int(np.count_nonzero(margins == 0.0)) - 1
        gradient = np.zeros(self.n_rows)
        value = _sum_ranks(
            positive, by_positive, self._share, negative[order], slopes, margins, first,
            self._positives, self._negatives[order], gradient,
        )  # fmt: skip
        return _Linearization(value, gradient)

    def _shares_of(self, above: Vector) -> tuple[Vector, Vector]:
        """The cumulated shares at total weights of the negatives."""
        if self._shares_of_sums is None:
            return self._weights(above, self._total)
        sums = above.astype(np.intp)
        slopes, margins = self._shares_of_sums
        return slopes[sums], margins[sums]


@compiled
def _sum_ranks(  # type: ignore[no-untyped-def]
    positive, by_positive, share, descending, slopes, margins, first, rows, negative_rows, gradient
):
    """The value of `RankWeightedHinge`; fills its gradient.

    The maximum over r is at the last rank without margin whose score is higher than that of the
    positive, or at the last rank whose score is higher by less than 1. Both fall with the score of
    the positive, so that one pass in the order `by_positive`, descending, finds them for all.
    """
    n = descending.size
    counts = np.zeros(n + 1)
    value, before, after = 0.0, 0, 0
    sum_before, sum_after = 0.0, 0.0
    for i in by_positive:
        while before < first and descending[before] > positive[i]:
            sum_before += (slopes[before + 1] - slopes[before]) * descending[before]
            before += 1
        while after < n and (after < first or descending[after] > positive[i] - 1.0):
            sum_after += (slopes[after + 1] - slopes[after]) * descending[after]
            after += 1
        value_before = sum_before - slopes[before] * positive[i]
        value_after = sum_after + margins[after] - slopes[after] * positive[i]
        n_ranks = after if value_after > value_before else before
        value += share[i] * max(value_before, value_after)
        gradient[rows[i]] = -share[i] * slopes[n_ranks]
        counts[n_ranks] += share[i]
    # Rank k has a slope from every positive with n_ranks >= k.
    total = 0.0
    for k in range(n - 1, -1, -1):
        total += counts[k + 1]
        gradient[negative_rows[k]] = (slopes[k + 1] - slopes[k]) * total
    return value


@compiled
def _worst_positions(prefix, negative, harmonic_sums):  # type: ignore[no-untyped-def]
    """For each negative j, by descending score, the number of positives that the worst ranking puts
    above it, and its gain.

    Ranking negative j above the positives k, ..., m gains

        (1/m) sum_{i >= k} ( j/(i + j) - (j - 1)/(i + j - 1) )
            - (1/(m n)) sum_{i >= k} (s_i - s_j)

    The gain of each further positive decreases in j, so the best k does not decrease: the middle
    negative is searched, then each half within the bounds of its neighbours (divide and conquer),
    at a cost of (m + n) log n. A gain takes a few operations, from harmonic numbers and the prefix
    sums of the positive scores.
    """
    m, n = prefix.size - 1, negative.size
    position = np.empty(n, np.int64)
    gains = np.empty(n)
    # A stack of intervals [a, b) of negatives, with the range [low, high] of their positions.
    stack = np.empty((64, 4), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, n, 0, m
    depth = 1
    while depth > 0:
        depth -= 1
        a, b, low, high = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        if a >= b:
            continue
        middle = (a + b) // 2
        j = middle + 1
        best, best_k = -np.inf, low
        for k in range(low, high + 1):  # the positives k + 1, ..., m are below
            precision = j * (harmonic_sums[m + j] - harmonic_sums[k + j]) - (j - 1) * (
                harmonic_sums[m + j - 1] - harmonic_sums[k + j - 1]
            )
            scores = prefix[m] - prefix[k] - (m - k) * negative[middle]
            gain = (precision - scores / n) / m
            if gain > best:
                best, best_k = gain, k
        position[middle], gains[middle] = best_k, best
        stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = a, middle, low, best_k
        stack[depth + 1, 0], stack[depth + 1, 1] = middle + 1, b
        stack[depth + 1, 2], stack[depth + 1, 3] = best_k, high
        depth += 2
    return position, gains


class AveragePrecision:
    """One minus average precision, bounded as in (1): SVM-MAP, as a function of the scores.

    Cost: two sorts and (m + n) log n for the worst ranking; the published search costs m n.
    """

    smooth = False

    def __init__(self, positive: Mask) -> None:
        self._positives, self._negatives = np.flatnonzero(positive), np.flatnonzero(~positive)
        self.n_rows = positive.size
        # Gains are differences of harmonic numbers times ranks: summed in extended precision.
        sums = np.cumsum(1.0 / np.arange(1, positive.size + 1, dtype=np.longdouble))
        self._harmonic = np.concatenate([[0.0], sums.astype(np.float64)])

    def at(self, s: Vector) -> _Linearization:
        """Value and subgradient at the scores s."""
        positive, negative = s[self._positives], s[self._negatives]
        m, n = positive.size, negative.size
        by_positive, by_negative = largest(positive, m), largest(negative, n)
        prefix = np.concatenate([[0.0], np.cumsum(positive[by_positive])])
        position, gains = _worst_positions(prefix, negative[by_negative], self._harmonic)
        gradient = np.zeros(self.n_rows)
        negatives_above = np.searchsorted(position, np.arange(m), side="right")
        gradient[self._positives[by_positive]] = -negatives_above / (m * n)
        gradient[self._negatives[by_negative]] = (m - position) / (m * n)
        return _Linearization(float(gains.sum()), gradient)


@compiled
def _by_group(positive, negative, starts, harmonic_sums, slope_positive, slope_negative):  # type: ignore[no-untyped-def]
    """The mean over groups of the bound, with its subgradient.

    Scores are sorted by group and descending; `starts` has the first positive and the first
    negative of each group, and the ends.
    """
    total, n_groups = 0.0, starts.shape[0] - 1
    for q in range(n_groups):
        a, b = starts[q, 0], starts[q + 1, 0]
        c, d = starts[q, 1], starts[q + 1, 1]
        m, n = b - a, d - c
        prefix = np.zeros(m + 1)
        for i in range(m):
            prefix[i + 1] = prefix[i] + positive[a + i]
        position, gains = _worst_positions(prefix, negative[c:d], harmonic_sums)
        total += gains.sum()
        size = n_groups * m * n
        above = 0  # negatives above the positive i
        for i in range(m):
            while above < n and position[above] <= i:
                above += 1
            slope_positive[a + i] = -above / size
        for j in range(n):
            slope_negative[c + j] = (m - position[j]) / size
    return total / n_groups


class MeanAveragePrecision:
    """The mean of `AveragePrecision` over groups, as a function of the scores.

    Groups without a positive or a negative row are excluded. Cost: one sort, and (m + n) log n for
    each group.
    """

    smooth = False

    def __init__(self, positive: Mask, group: NDArray[np.integer]) -> None:
        self.n_rows = positive.size
        n_groups = int(group.max(initial=-1)) + 1
        sides = [np.bincount(group[side], minlength=n_groups) for side in (positive, ~positive)]
        paired = (sides[0] > 0) & (sides[1] > 0)
        self._rows = [np.flatnonzero(side & paired[group]) for side in (positive, ~positive)]
        self._groups = [group[rows] for rows in self._rows]
        sizes = np.column_stack(sides)[paired]
        self._starts = np.concatenate([np.zeros((1, 2), np.intp), np.cumsum(sizes, axis=0)])
        largest_group = int(sizes.sum(axis=1).max(initial=0))
        sums = np.cumsum(1.0 / np.arange(1, largest_group + 1, dtype=np.longdouble))
        self._harmonic = np.concatenate([[0.0], sums.astype(np.float64)])

    def at(self, s: Vector) -> _Linearization:
        """Value and subgradient at the scores s."""
        order = [
            rows[np.lexsort((-s[rows], group))]
            for rows, group in zip(self._rows, self._groups, strict=True)
        ]
        slopes = [np.empty(rows.size) for rows in order]
        value = _by_group(s[order[0]], s[order[1]], self._starts, self._harmonic, *slopes)
        gradient = np.zeros(self.n_rows)
        for rows, slope in zip(order, slopes, strict=True):
            gradient[rows] = slope
        return _Linearization(float(value), gradient)


class AnchoredHinge:
    """The mean hinge on both sides of one row's score, the anchor a.

        F(s) = ( sum_{i positive} [1 - (s_i - s_a)]_+ + sum_{j negative} [1 + (s_j - s_a)]_+ ) / N

    The convex problem of AATP for the threshold row a.
    """

    shift_invariant = True
    has_curvature = True

    def __init__(self, positive: Mask, anchor: int, loss: Pointwise | None = None) -> None:
        self._rows = loss or Pointwise(positive, "hinge")
        self._anchor = anchor
        self.smooth, self.n_rows = self._rows.smooth, positive.size

    def at(self, s: Vector) -> "_AnchoredLinearization":
        """Value and subgradient (and curvature, where smoothed) at the scores s."""
        return _AnchoredLinearization(self._rows.at(s - s[self._anchor]), self._anchor)

    def hessian(self, s: Vector, design: Design) -> Vector:
        """X^T F''(s) X."""
        X = design.columns(0, design.n_columns)
        return X.T @ self.at(s).curvature_matrix(X)

    def gradient_at_zero(self) -> Vector:
        """The gradient at s = 0."""
        return self.at(np.zeros(self.n_rows)).gradient

    def sample(self, size: int, rng: Random) -> None:
        """None: every term depends on the anchor, so there are no samples."""
        return

    def smoothed(self, width: float) -> "AnchoredHinge":
        """The same with the smoothed hinge."""
        return AnchoredHinge(self._rows.positive, self._anchor, self._rows.smoothed(width))

    def squared(self) -> "AnchoredHinge":
        """The same with the squared loss."""
        return AnchoredHinge(self._rows.positive, self._anchor, self._rows.squared())


class _AnchoredLinearization:
    def __init__(self, rows: PointwiseLinearization, anchor: int) -> None:
        self._rows, self._anchor = rows, anchor
        self.value = rows.value
        self.gradient = rows.gradient.copy()
        self.gradient[anchor] -= rows.gradient.sum()

    def total_slope(self) -> float:
        """The mean of |slope| over the rows."""
        return self._rows.total_slope()

    def curvature_product(self, u: Vector) -> Vector:
        """F''(s) u."""
        out = self._rows.curvature_product(u - u[self._anchor])
        out[self._anchor] -= out.sum()
        return out

    def curvature_matrix(self, U: Vector) -> Vector:
        """F''(s) U for the columns of U."""
        return np.column_stack([self.curvature_product(u) for u in U.T])

    def quadratic_form(self, U: Vector) -> Vector:
        """u^T F''(s) u for each column u of U."""
        return self._rows.quadratic_form(U - U[self._anchor])

    def curvature_diagonal(self) -> Vector:
        """The diagonal of F''(s)."""
        diagonal = self._rows.curvature_diagonal().copy()
        total = diagonal.sum()
        diagonal[self._anchor] = total - diagonal[self._anchor]
        return diagonal
