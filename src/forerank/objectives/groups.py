"""An objective of positives and negatives within groups: a weighted mean of that of each group.

    F(s) = sum_q v_q F_q(s of the rows of q) / sum_q v_q

with v_q the weight of the positives of the group: a mean over positives, as F_q is. Groups without
a positive or a negative row are excluded.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Mask, Vector
from forerank.objectives.base import Linearization, Objective

__all__ = ["GroupedLinearization", "WithinGroups"]


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
