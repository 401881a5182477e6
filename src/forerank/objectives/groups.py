"""An objective of positives and negatives within groups: a weighted mean of that of each group.

    F(s) = sum_q v_q F_q(s of the rows of q) / sum_q v_q

with v_q the weight of the positives of the group: a mean over positives, as F_q is. Groups without
a positive or a negative row are excluded.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from forerank._kernels import compiled
from forerank._typing import Mask, Vector
from forerank.objectives.base import Linearization, Objective
from forerank.objectives.structured import partial_auc

__all__ = ["GroupedLinearization", "GroupedPartialAUC", "WithinGroups"]


class GroupedLinearization:
    """Value and subgradient at given scores."""

    def __init__(self, value: float, gradient: Vector) -> None:
        self.value, self.gradient = value, gradient


class WithinGroups:
    """The mean of an objective over groups, as a function of the scores.

    Parameters
    ----------
    positive : boolean array
        Which rows are positive.
    group : integer array
        The group of each row, 0 .. Q-1.
    make : callable
        From `positive` and `weight` of the rows of a group to its objective.
    weight : array, optional
        Per row, non-negative. Rows of weight zero are excluded.
    """

    smooth = False

    def __init__(
        self,
        positive: Mask,
        group: NDArray[np.integer],
        make: Callable[[Mask, Vector | None], Objective],
        *,
        weight: Vector | None = None,
    ) -> None:
        self.n_rows = positive.size
        order = np.argsort(group, kind="stable")
        if weight is not None:
            order = order[weight[order] > 0.0]
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        self._parts, shares = [], []
        for rows in np.split(order, starts[1:]):
            own = positive[rows]
            if own.any() and not own.all():
                given = None if weight is None else weight[rows]
                self._parts.append((rows, make(own, given)))
                shares.append(float(np.count_nonzero(own) if given is None else given[own].sum()))
        self._shares = np.array(shares) / sum(shares)

    def at(self, s: Vector) -> Linearization:
        """Value and subgradient at the scores s. Cost: that of every group."""
        value, gradient = 0.0, np.zeros(self.n_rows)
        for share, (rows, objective) in zip(self._shares, self._parts, strict=True):
            here = objective.at(s[rows])
            value += share * here.value
            gradient[rows] = share * here.gradient
        return GroupedLinearization(float(value), gradient)


@compiled
def _first_at_most(descending, bound):  # type: ignore[no-untyped-def]
    """The number of descending values that exceed a bound."""
    low, high = 0, descending.size
    while low < high:
        middle = (low + high) // 2
        if descending[middle] > bound:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _rank_weighted(positive, share, negative, slopes, margins, starts, on_positive, on_negative):  # type: ignore[no-untyped-def]
    """Value and subgradient of `RankWeightedHinge` in each group, summed.

    `negative` is sorted by group and descending; `slopes` and `margins` have one entry more for
    each group, the first of which is zero. `starts` has the first positive and the first negative
    of each group, and the ends.
    """
    total = 0.0
    for q in range(starts.shape[0] - 1):
        a, b = starts[q, 0], starts[q + 1, 0]
        c, d = starts[q, 1], starts[q + 1, 1]
        n = d - c
        descending, slope, margin = negative[c:d], slopes[c + q : d + q + 1], margins[c + q :]
        cumulated = np.zeros(n + 1)
        for j in range(n):
            cumulated[j + 1] = cumulated[j] + (slope[j + 1] - slope[j]) * descending[j]
        first = 0
        while first < n and margin[first + 1] == 0.0:
            first += 1
        counts = np.zeros(n + 1)
        for i in range(a, b):
            before = _first_at_most(descending[:first], positive[i])
            after = max(_first_at_most(descending, positive[i] - 1.0), first)
            value_before = cumulated[before] - slope[before] * positive[i]
            value_after = cumulated[after] + margin[after] - slope[after] * positive[i]
            r = after if value_after > value_before else before
            total += share[i] * max(value_before, value_after)
            on_positive[i] = -share[i] * slope[r]
            counts[r] += share[i]
        above = 0.0
        for j in range(n - 1, -1, -1):
            above += counts[j + 1]
            on_negative[c + j] = (slope[j + 1] - slope[j]) * above
    return total


class GroupedPartialAUC:
    """`WithinGroups` of `RankWeightedHinge` for a range of false positive rates, for many groups.

    Cost: one sort of the negatives, and a search per positive.
    """

    smooth = False

    def __init__(
        self,
        positive: Mask,
        group: NDArray[np.integer],
        low: float,
        high: float,
        *,
        weight: Vector | None = None,
    ) -> None:
        self.n_rows = positive.size
        self._range = partial_auc(low, high)
        weight = np.ones(positive.size) if weight is None else weight
        present, n_groups = weight > 0.0, int(group.max(initial=-1)) + 1
        sides = [
            np.bincount(group[side & present], minlength=n_groups) for side in (positive, ~positive)
        ]
        paired = (sides[0] > 0) & (sides[1] > 0)
        order = np.argsort(group, kind="stable")
        order = order[(present & paired[group])[order]]
        self._positives, self._negatives = order[positive[order]], order[~positive[order]]
        sizes = np.column_stack(sides)[paired]
        self._starts = np.concatenate([np.zeros((1, 2), np.intp), np.cumsum(sizes, axis=0)])
        self._share = weight[self._positives] / weight[self._positives].sum()
        self._weight = weight[self._negatives]
        self._group = np.repeat(np.arange(sizes.shape[0]), sizes[:, 1])
        # Of every rank, and of the zero before the first of each group.
        totals = np.bincount(self._group, weights=self._weight)
        self._totals = np.repeat(totals, sizes[:, 1] + 1)
        self._places = np.arange(self._negatives.size) + self._group + 1

    def at(self, s: Vector) -> GroupedLinearization:
        """Value and subgradient at the scores s."""
        order = np.lexsort((-s[self._negatives], self._group))
        rows, weight = self._negatives[order], self._weight[order]
        cumulated = np.cumsum(weight)
        before = (cumulated - weight)[self._starts[:-1, 1]]
        above = np.zeros(self._totals.size)
        above[self._places] = np.minimum(
            cumulated - before[self._group], self._totals[self._places]
        )
        slopes, margins = self._range(above, self._totals)
        on_positives, on_negatives = np.empty(self._positives.size), np.empty(rows.size)
        value = _rank_weighted(
            s[self._positives], self._share, s[rows], slopes, margins, self._starts,
            on_positives, on_negatives,
        )  # fmt: skip
        gradient = np.zeros(self.n_rows)
        gradient[self._positives], gradient[rows] = on_positives, on_negatives
        return GroupedLinearization(float(value), gradient)
