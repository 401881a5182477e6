"""Objectives that look at the whole order: convex upper bounds of ranking measures, for the bundle
solver.

Each is the largest, over rankings pi of the rows, of a loss of pi plus the mean score difference of
the pairs that pi puts the wrong way round:

    F(s) = max_pi  loss(pi) - (1 / (m n)) sum over swapped (i, j) of (s_i - s_j)
    (1)

so that F is at least the loss of the ranking by s. The maximum never takes more than a sort and a
few passes.

==================  =============================================
==================================================== class               measure
method it is
==================  =============================================
==================================================== `RankWeightedHinge` pairs, weighted by the rank
of the negative    OWPC (Usunier et al., 2009); partial AUC over a range
                                                                   of false positive rates (tight
                                                                   SVM-pAUC, Narasimhan and Agarwal,
                                                                   2013); RankSVM with even weights
`AveragePrecision`  average precision                              SVM-MAP (Yue et al., 2007)
`AnchoredHinge`     errors on both sides of one row's score        AATP (Boyd et al., 2012), for one
threshold row
==================  =============================================
====================================================

TopPush with an L1 penalty (L1SVIP) has the objective `objectives.top.Top`; its solver is
solvers/workingset.

Ties. Rows of equal score are taken in the order given; a pair on its margin exactly counts as
satisfied.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from forerank._kernels import compiled
from forerank._sorting import largest
from forerank._typing import Vector
from forerank.objectives.pointwise import Pointwise, PointwiseLinearization

__all__ = [
    "AnchoredHinge",
    "AveragePrecision",
    "RankWeightedHinge",
    "harmonic",
    "partial_auc",
    "uniform",
]

#: From the total weight of negatives above a place, and of all, to two shares: that of the place's pull on the scores,
#: and that of its margin, both summed up to there.
RankWeights = Callable[[Vector, float], tuple[Vector, Vector]]


def uniform(above: Vector, total: float) -> tuple[Vector, Vector]:
    """Every negative counts the same: RankSVM."""
    return above / total, above / total


def harmonic(above: Vector, total: float) -> tuple[Vector, Vector]:
    """The negative in place r counts 1/r: errors at the top cost most. Fractions of a place
    interpolate (digamma).
    """
    if total < 1e-6:  # digamma is straight there, and its differences have no digits left
        return uniform(above, total)
    share = (digamma(above + 1.0) - digamma(1.0)) / (digamma(total + 1.0) - digamma(1.0))
    return share, share


def partial_auc(low: float, high: float) -> RankWeights:
    """False positive rates from `low` to `high`.

    Negatives above the range are ranked ahead of a positive at the cost of their score differences
    only, without a margin; those below it do not count.
    """

    def weights(above: Vector, total: float) -> tuple[Vector, Vector]:
        place, span = above / total, high - low
        return np.minimum(place, high) / span, np.clip(place - low, 0.0, span) / span

    return weights


class _Linearization:
    """Value and subgradient at given scores."""

    def __init__(self, value: float, gradient: Vector) -> None:
        self.value, self.gradient = value, gradient


class RankWeightedHinge:
    """Positives against negatives that count by their place, as a function of the scores.

        F(s) = sum_i p_i  max_r  sum_{places k <= r} ( b_k - a_k (s_i - s_(k)) ),    s_(1) >= s_(2)
        >= ... negatives

    With a = b this is sum_i p_i sum_k a_k max(0, 1 - (s_i - s_(k))). It is convex where a_k falls
    and b_k <= a_k, and where b_k rises from zero to a_k (a partial range): the maximum over subsets
    of negatives of linear functions.

    Parameters
    ----------
    positive : boolean array
    weights : callable
        `uniform`, `harmonic`, the result of `partial_auc`, or any function like them.
    weight : array, optional
        Per row; a negative of weight w takes up w places.
    """

    smooth = False

    def __init__(
        self, positive: NDArray[np.bool_], weights: RankWeights, *, weight: Vector | None = None
    ) -> None:
        present = np.ones(positive.size, dtype=bool) if weight is None else weight > 0.0
        self._positives = np.flatnonzero(positive & present)
        self._negatives = np.flatnonzero(~positive & present)
        weight = np.ones(positive.size) if weight is None else weight
        self._share = weight[self._positives] / weight[self._positives].sum()
        self._weight = weight[self._negatives]
        self._even = bool(np.ptp(self._weight) == 0.0)
        self._total = float(self._weight.sum())
        self._weights = weights
        self.n_rows = positive.size
        # With even weights the shares of the places never change, and places without a share are
        # never sorted.
        places = np.cumsum(self._weight)
        self._places = np.concatenate([[0.0], places])
        self._shares = self._weights(self._places, self._total)
        self._needed = (
            int(np.searchsorted(self._shares[0], self._shares[0][-1] * (1.0 - 1e-15)))
            if self._even
            else 0
        )

    def at(self, s: Vector) -> _Linearization:
        """Value and subgradient at the scores s. Cost: a sort of the negatives that count, a search
        per positive.
        """
        negative = s[self._negatives]
        if self._even:
            order = _descending(negative, self._needed)
            pulls, margins = self._shares[0][: order.size + 1], self._shares[1][: order.size + 1]
        else:
            order = largest(negative, negative.size)
            above = np.concatenate([[0.0], np.cumsum(self._weight[order])])
            pulls, margins = self._weights(above, self._total)
        falling = negative[order]
        pull = np.diff(pulls)
        scored = np.concatenate([[0.0], np.cumsum(pull * falling)])
        positive = s[self._positives]
        # Places before the first with a margin are worth taking while their score is higher; from
        # there on up to 1.
        first = int(np.count_nonzero(margins == 0.0)) - 1
        before = _count_above(falling[:first], positive)
        after = np.maximum(_count_above(falling, positive - 1.0), first)
        value_before = scored[before] - pulls[before] * positive
        value_after = scored[after] + margins[after] - pulls[after] * positive
        taken = np.where(value_after > value_before, after, before)
        value = float(self._share @ np.maximum(value_before, value_after))
        gradient = np.zeros(self.n_rows)
        gradient[self._positives] = -self._share * pulls[taken]
        # A place is taken by every positive that takes as many places or more.
        takers = np.bincount(taken, weights=self._share, minlength=order.size + 1)
        gradient[self._negatives[order]] = pull * np.cumsum(takers[::-1])[::-1][1:]
        return _Linearization(value, gradient)


def _descending(values: Vector, count: int) -> NDArray[np.intp]:
    """Positions of the `count` largest values, in descending order; of ties at the boundary any.

    Not `largest`: fits start from equal scores, and another choice among ties gives another path.
    """
    if count >= values.size:
        return largest(values, count)
    some = np.argpartition(-values, count - 1)[:count]
    return some[np.argsort(-values[some], kind="stable")]


def _count_above(falling: Vector, bound: Vector) -> NDArray[np.intp]:
    """How many of the falling values exceed each bound."""
    return falling.size - np.searchsorted(falling[::-1], bound, side="right")


@compiled
def _best_places(falling_positive, prefix, falling_negative, harmonic_sums):  # type: ignore[no-untyped-def]
    """For each negative j, in falling order, the first positive that the worst ranking puts behind
    it.

    Putting negative j ahead of the positives k, ..., m gains

        (1/m) sum_{i >= k} ( j/(i + j) - (j - 1)/(i + j - 1) )  -  (1/(m n)) sum_{i >= k} (s_i -
        s_j)

    The gain of each further positive falls with j, so the best k does not fall: halves of the
    negatives are searched between the places of their neighbours (divide and conquer), which takes
    (m + n) log n. Harmonic numbers and prefix sums of the scores make a gain a matter of six
    numbers.
    """
    m, n = falling_positive.size, falling_negative.size
    place = np.empty(n, np.int64)
    gains = np.empty(n)
    # Intervals of negatives [a, b) with the range [low, high] of their places, on a stack.
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
        for k in range(low, high + 1):  # the positives k + 1, ..., m are behind
            precision = j * (harmonic_sums[m + j] - harmonic_sums[k + j]) - (j - 1) * (
                harmonic_sums[m + j - 1] - harmonic_sums[k + j - 1]
            )
            scores = prefix[m] - prefix[k] - (m - k) * falling_negative[middle]
            gain = (precision - scores / n) / m
            if gain > best:
                best, best_k = gain, k
        place[middle], gains[middle] = best_k, best
        stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3] = a, middle, low, best_k
        stack[depth + 1, 0], stack[depth + 1, 1] = middle + 1, b
        stack[depth + 1, 2], stack[depth + 1, 3] = best_k, high
        depth += 2
    return place, gains


class AveragePrecision:
    """One minus average precision, bounded as in (1): SVM-MAP, as a function of the scores.

    Cost: two sorts and (m + n) log n for the worst ranking, in place of m n in the method's own
    search.
    """

    smooth = False

    def __init__(self, positive: NDArray[np.bool_]) -> None:
        self._positives, self._negatives = np.flatnonzero(positive), np.flatnonzero(~positive)
        self.n_rows = positive.size
        # Gains are differences of harmonic numbers times ranks: summed in the longest type at hand.
        sums = np.cumsum(1.0 / np.arange(1, positive.size + 1, dtype=np.longdouble))
        self._harmonic = np.concatenate([[0.0], sums.astype(np.float64)])

    def at(self, s: Vector) -> _Linearization:
        """Value and subgradient at the scores s."""
        positive, negative = s[self._positives], s[self._negatives]
        up, down = largest(positive, positive.size), largest(negative, negative.size)
        prefix = np.concatenate([[0.0], np.cumsum(positive[up])])
        place, gains = _best_places(positive[up], prefix, negative[down], self._harmonic)
        m, n = positive.size, negative.size
        gradient = np.zeros(self.n_rows)
        ahead = np.searchsorted(
            place, np.arange(m), side="right"
        )  # negatives ahead of each positive
        gradient[self._positives[up]] = -ahead / (m * n)
        gradient[self._negatives[down]] = (m - place) / (m * n)
        return _Linearization(float(gains.sum()), gradient)


class AnchoredHinge:
    """The mean hinge on both sides of one row's score: positives should lie above it by one,
    negatives below.

        F(s) = ( sum_{i positive} [1 - (s_i - s_a)]_+ + sum_{j negative} [1 + (s_j - s_a)]_+ ) / N

    The convex problem of AATP for the threshold row a.
    """

    shift_invariant = True

    def __init__(
        self, positive: NDArray[np.bool_], anchor: int, loss: "Pointwise | None" = None
    ) -> None:
        self._rows = loss or Pointwise(positive, "hinge")
        self._anchor = anchor
        self.smooth, self.n_rows = self._rows.smooth, positive.size

    def at(self, s: Vector) -> "_AnchoredLinearization":
        """Value and subgradient (and curvature, where smoothed) at the scores s."""
        return _AnchoredLinearization(self._rows.at(s - s[self._anchor]), self._anchor)

    def gradient_at_zero(self) -> Vector:
        """The gradient where all scores are zero."""
        return self.at(np.zeros(self.n_rows)).gradient

    def sample(self, size: int, rng: np.random.Generator) -> None:
        """No samples: the anchor stands for all rows."""
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
