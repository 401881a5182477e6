"""The mean loss of the positives against a threshold set by the highest negatives.

    F(s) = sum_i p_i l(s_i - T(s)),
    T(s) = max { <beta, s> : 0 <= beta_j <= cap_j, sum_j beta_j = 1 }

over positive rows i with shares p_i that sum to one, and negative rows j. The caps define the
threshold:

- cap 1: the largest negative score. With l the squared hinge this is TopPush (li2014, eq. 5), and,
  since l decreases, the same function as InfinitePush (eq. 4);
- cap 1/k: the mean of the k largest negative scores;
- cap 1/(tau n): the mean of the upper tau share of the negative scores, a convex bound on their
  (1 - tau) quantile, which bounds the false positive rate (tau-FPL).

A row of weight w counts as w rows: its cap is w times as large. T is convex and l decreases, so F
is convex. Ties: among equal scores the first rows carry the weight; any choice is a subgradient.

With groups (queries), a positive is compared with the threshold of the negatives of its own group.
The shares p_i are those among the positives of all groups, so that F is a mean over positives, and
a group counts by the weight of its positives.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._sorting import largest
from forerank._typing import Index, Mask, Vector
from forerank._validation import is_integer, is_number
from forerank.losses import Loss, get_loss

__all__ = ["Top", "TopLinearization", "TopWithinGroups"]


class TopWithinGroups:
    """Positives against the top of the negatives of their group, as a function of the scores.

    Groups without a positive or without a negative are excluded. In a group with fewer than `at`
    negatives, an integer, the threshold is the mean of all of them.

    Parameters
    ----------
    positive : boolean array
        Which rows are positive.
    loss : str or Loss
        On the margin s_i - T: "squared_hinge", "logistic", "exponential" or "hinge".
    group : integer array
        The group of each row, 0 .. Q-1.
    at : "max", int or float
        The threshold: the largest negative score, the mean of the `at` largest, or the mean of the
        upper share `at`.
    weight : array, optional
        Per row, non-negative. Rows of weight zero are excluded.
    """

    smooth = False

    def __init__(
        self,
        positive: Mask,
        loss: str | Loss = "squared_hinge",
        *,
        group: NDArray[np.integer],
        at: str | int | float = "max",
        weight: Vector | None = None,
    ) -> None:
        present = np.ones(positive.size, dtype=bool) if weight is None else weight > 0.0
        n_groups = int(group.max(initial=-1)) + 1
        counts = [
            np.bincount(group[side & present], minlength=n_groups) for side in (positive, ~positive)
        ]
        #: Which groups have a positive and a negative.
        self.paired = (counts[0] > 0) & (counts[1] > 0)
        present &= self.paired[group]
        order = np.argsort(group, kind="stable")
        order = order[present[order]]
        self._set(positive, loss, at, weight, order)
        sizes = [each[self.paired] for each in counts]
        self._set_groups(*sizes)
        starts = zip(self.negative_starts, sizes[1], strict=True)
        own = np.ones(positive.size) if weight is None else weight
        own = own[self.negatives]
        self.caps = np.concatenate([_caps(at, own[a : a + size], fewer=True) for a, size in starts])

    def _set(
        self, positive: Mask, loss: str | Loss, at: Any, weight: Vector | None, order: Index
    ) -> None:
        """Attributes that do not depend on groups; `order` has the rows that count."""
        self.loss = get_loss(loss)
        self.n_rows = positive.size
        self.positives, self.negatives = order[positive[order]], order[~positive[order]]
        if self.positives.size == 0 or self.negatives.size == 0:
            raise ValueError(
                f"{self.positives.size} positive and {self.negatives.size} negative rows have a "
                "weight above zero; at least one of each is needed."
            )
        own = np.ones(self.positives.size) if weight is None else weight[self.positives]
        self.share = own / own.sum()
        #: The largest |slope| of the loss of each positive.
        bounded = self.loss.name in ("hinge", "logistic")
        self.largest_slope = self.share if bounded else np.full(self.share.size, np.inf)
        self._at = at

    def _set_groups(self, n_positives: Index, n_negatives: Index) -> None:
        """Groups from the numbers of their rows: positives and negatives are sorted by group."""
        self.n_groups = n_positives.size
        self.positive_starts = np.cumsum(n_positives) - n_positives
        self.negative_starts = np.cumsum(n_negatives) - n_negatives
        self.group_of_positives = np.repeat(np.arange(self.n_groups), n_positives)
        self.group_of_negatives = np.repeat(np.arange(self.n_groups), n_negatives)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.loss!r}, at={self._at!r})"

    def thresholds(self, negative_scores: Vector) -> tuple[Vector, Vector]:
        """T of each group, and the weights beta of the negatives. Cost: n log n."""
        group, starts = self.group_of_negatives, self.negative_starts
        order = np.lexsort((-negative_scores, group))
        cumulated = np.cumsum(self.caps[order])
        before = (cumulated - self.caps[order])[starts]
        filled = np.minimum(cumulated - before[group], 1.0)
        weights = np.diff(filled, prepend=0.0)
        weights[starts] = filled[starts]
        beta = np.zeros(negative_scores.size)
        beta[order] = weights
        return np.add.reduceat(beta * negative_scores, starts), beta

    def margins(self, s: Vector) -> Vector:
        """s_i - T of each positive."""
        T, _ = self.thresholds(s[self.negatives])
        return s[self.positives] - T[self.group_of_positives]

    def at(self, s: Vector) -> "TopLinearization":
        """Value and a subgradient at the scores s."""
        return TopLinearization(self, s)

    def value_at(self, s: Vector) -> float:
        """F(s)."""
        return float(self.share @ self.loss.value(self.margins(s)))

    def conjugate(self, a: Vector) -> float:
        """sum_i p_i l*(-a_i / p_i), the losses' part of the dual, for a_i = -p_i l'(margin_i)."""
        return float(self.share @ self.loss.conjugate(-a / self.share))


class Top(TopWithinGroups):
    """Positives against the top of all negatives, as a function of the scores.

    Parameters
    ----------
    positive : boolean array
        Which rows are positive.
    loss : str or Loss
        On the margin s_i - T: "squared_hinge", "logistic", "exponential" or "hinge".
    at : "max", int or float
        The threshold: the largest negative score, the mean of the `at` largest, or the mean of the
        upper share `at`.
    weight : array, optional
        Per row, non-negative. Rows of weight zero are excluded.
    """

    def __init__(
        self,
        positive: Mask,
        loss: str | Loss = "squared_hinge",
        *,
        at: str | int | float = "max",
        weight: Vector | None = None,
    ) -> None:
        order = np.arange(positive.size) if weight is None else np.flatnonzero(weight > 0.0)
        self._set(positive, loss, at, weight, order)
        self._set_groups(np.array([self.positives.size]), np.array([self.negatives.size]))
        own = np.ones(self.negatives.size) if weight is None else weight[self.negatives]
        self.caps = _caps(at, own)

    def threshold(self, negative_scores: Vector) -> tuple[float, Vector]:
        """T, and the weights beta of the negatives. Cost: n, or n log n for unequal caps."""
        beta = np.zeros(negative_scores.size)
        first = int(np.argmax(negative_scores))
        if self.caps[first] >= 1.0:
            beta[first] = 1.0
            return float(negative_scores[first]), beta
        count = min(int(np.ceil(1.0 / self.caps.min())), beta.size)
        highest = largest(negative_scores, count)
        filled = np.minimum(np.cumsum(self.caps[highest]), 1.0)
        beta[highest] = np.diff(filled, prepend=0.0)
        return float(beta[highest] @ negative_scores[highest]), beta

    def thresholds(self, negative_scores: Vector) -> tuple[Vector, Vector]:
        """T as an array of one number, and the weights beta of the negatives."""
        T, beta = self.threshold(negative_scores)
        return np.array([T]), beta

    def margins(self, s: Vector) -> Vector:
        """s_i - T of each positive."""
        return s[self.positives] - self.threshold(s[self.negatives])[0]


class TopLinearization:
    """A top objective at given scores: value and subgradient."""

    def __init__(self, top: TopWithinGroups, s: Vector) -> None:
        T, beta = top.thresholds(s[top.negatives])
        margin = s[top.positives] - T[top.group_of_positives]
        self.value = float(top.share @ top.loss.value(margin))
        slope = top.share * top.loss.slope(margin)
        total = np.add.reduceat(slope, top.positive_starts)
        self.gradient = np.zeros(top.n_rows)
        self.gradient[top.positives] = slope
        self.gradient[top.negatives] = -total[top.group_of_negatives] * beta


def _caps(at: str | int | float, weight: Vector, *, fewer: bool = False) -> Vector:
    """The largest weight of each negative in the threshold.

    `fewer` allows a total weight below an integer `at`.
    """
    total = float(weight.sum())
    if isinstance(at, str) and at == "max":
        return np.ones(weight.size)
    if is_integer(at):
        if at < 1:
            raise ValueError(f"at={at!r}: the number of negatives must be at least 1.")
        if at > total * (1.0 + 1e-12):
            if fewer:
                return weight / total
            raise ValueError(
                f"at={at!r}: the mean of the {at} largest negative scores needs as many negatives, "
                f"but their total weight is {total:g}. Use a smaller number, or a share below 1."
            )
        return np.minimum(weight / int(at), 1.0)
    if is_number(at) and 0.0 < at < 1.0:
        return np.minimum(weight / max(float(at) * total, np.finfo(float).tiny), 1.0)
    raise ValueError(
        f"at must be 'max', a number of negatives (an integer) or a share of them strictly between "
        f"0 and 1; got {at!r}."
    )
