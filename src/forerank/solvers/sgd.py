"""Stochastic gradient descent on single pairs and points, with an average of the later weights.

Minimises  E[l(<z, w>)] + alpha/2 ||w||^2,  where z is a random difference of two rows, or plus or
minus a random row; pairs and points may have different losses. Steps of 1 / (alpha (t + t0)) give
the weights

    w_t = v_t / (t + t0 - 1),    v_{t+1} = v_t - l'(<z_t, w_t>) z_t / alpha
    (maths/solvers.md, eq. 10)

so that a step changes only the stored entries of z. So does the average over the second half of
the steps: the change of v at step t is part of all later terms, with a factor known in advance.
Where the loss is curved, a step is divided by 1 + (step size) (curvature) ||z||^2, which for the
squared loss is the implicit step: a single long row does not make the weights diverge.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from forerank._kernels import compiled
from forerank._typing import Index, Mask, Matrix, Vector
from forerank.design.row_pairs import add, dot
from forerank.losses import logistic_kernel

__all__ = ["LOSSES", "CombinedDescent", "combined_descent"]


LOSSES = ("hinge", "logistic", "squared")
# The largest second derivative of each.
_CURVATURE = np.array([0.0, 0.25, 2.0])


@compiled
def _value_and_slope(loss, t):  # type: ignore[no-untyped-def]
    """Value and slope of a loss of forerank.losses, by its position in LOSSES."""
    if loss == 0:
        return max(0.0, 1.0 - t), -1.0 if t < 1.0 else 0.0
    if loss == 1:
        return logistic_kernel(t)[:2]
    return (1.0 - t) ** 2, -2.0 * (1.0 - t)


@compiled
def _steps(  # type: ignore[no-untyped-def]
    rows, sign, size, losses, curvatures, alpha, offset, done, first_averaged, tail, v, averaged,
    constant,
):  # fmt: skip
    """Steps on the pairs in `rows`, points where sign is not 0; returns the sum of the losses
    before each step, and the tail.

    `size` bounds ||z||^2. The last entry of v and `averaged` is the intercept, a column that is
    `constant` for points and zero for pairs.
    """
    total = 0.0
    last = v.size - 1
    for m in range(sign.size):
        t = done + m
        kind = 0 if sign[m] == 0.0 else 1
        margin = (dot(rows, m, v[:last]) + sign[m] * constant * v[last]) / (t + offset)
        value, slope = _value_and_slope(losses[kind], margin)
        total += value
        if slope != 0.0:
            step = -slope / (alpha + curvatures[kind] * size[m] / (t + 1 + offset))
            add(rows, m, step, v[:last])
            v[last] += step * sign[m] * constant
            add(rows, m, step * tail, averaged[:last])
            averaged[last] += step * tail * sign[m] * constant
        if t >= first_averaged:
            tail -= 1.0 / (t + 1 + offset)
    return total, tail


class CombinedDescent:
    """State of a run of `n_steps` steps: the weights after any number of them, and the average
    over the second half.

    The losses are two of `LOSSES`. `typical_size`, a typical ||z||^2, sets the size of the first
    steps, 1 / typical_size. With `intercept`, points have a constant, which is penalised like the
    weights. `start` has the first weights, the intercept last.
    """

    def __init__(
        self,
        n_columns: int,
        n_steps: int,
        *,
        pair_loss: str,
        point_loss: str,
        alpha: float,
        typical_size: float,
        intercept: bool,
        start: Vector | None = None,
    ) -> None:
        self._losses = np.array([LOSSES.index(pair_loss), LOSSES.index(point_loss)])
        self._alpha = alpha
        self._offset = 1.0 + typical_size / alpha
        self._constant = float(intercept)
        self._n_steps, self._first_averaged = n_steps, n_steps // 2
        self.n_done = 0
        self._v, self._averaged = np.zeros(n_columns + 1), np.zeros(n_columns + 1)
        t = np.arange(self._first_averaged, n_steps)
        self._tail = float(np.sum(1.0 / (t + 1 + self._offset)))
        if start is not None:
            self._v[:] = self._offset * start
            self._v[-1] *= self._constant
            self._averaged[:] = self._tail * self._v

    def run(self, matrix: tuple, plus: Index, minus: Index, size: Vector) -> float:
        """Take a step for each pair or point, in order; returns the mean loss before each step.

        `matrix` is (X,) or the three arrays of a CSR matrix; `size` has an upper bound of ||z||^2
        for each pair or point.
        """
        sign = np.where(minus < 0, 1.0, np.where(plus < 0, -1.0, 0.0))
        rows, losses = (*matrix, plus, minus), self._losses
        total, self._tail = _steps(
            rows, sign, size, losses, _CURVATURE[losses], self._alpha, self._offset, self.n_done,
            self._first_averaged, self._tail, self._v, self._averaged, self._constant,
        )  # fmt: skip
        self.n_done += sign.size
        return total / max(sign.size, 1)

    @property
    def weights(self) -> Vector:
        """The latest weights, the intercept last."""
        return self._v / (self.n_done + self._offset)

    @property
    def average(self) -> Vector:
        """The average weights, the intercept last; valid after all steps."""
        return self._averaged / (self._n_steps - self._first_averaged)


def combined_descent(
    X: Matrix,
    positive: Mask,
    weight: Vector | None,
    group: Index | None = None,
    rows_of_entries: Index | None = None,
    *,
    n_steps: int,
    n_parts: int,
    gamma: float,
    random: np.random.Generator,
    **settings: Any,
) -> Iterator[tuple[CombinedDescent, float]]:
    """The state of a run and the mean loss of the part, after each of `n_parts` parts.

    Each step takes a random pair with probability `gamma`, otherwise a random row; rows are drawn
    in proportion to their weights, pairs within groups in proportion to the product of two. With
    grades, `positive`, `weight` and `group` have an entry for each place of a row in a block of
    pairs, and `rows_of_entries` its row; there are no points then. `settings` are those of
    `CombinedDescent`.
    """
    draw = _RowDraws(positive, weight, group, random)
    size = _squared_row_norms(X)
    of_entries = size if rows_of_entries is None else size[rows_of_entries]
    typical = float(np.average(of_entries, weights=weight))
    descent = CombinedDescent(X.shape[1], n_steps, typical_size=typical, **settings)
    arrays = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    ends = np.linspace(0, n_steps, min(n_parts, n_steps) + 1).astype(int)
    for n in np.diff(ends):
        plus, minus = draw.pairs_and_points(int(n), gamma)
        if rows_of_entries is not None:
            plus, minus = (rows_of_entries[side].astype(np.intp) for side in (plus, minus))
        yield descent, descent.run(arrays, plus, minus, _difference_bounds(size, plus, minus))


class _RowDraws:
    """Random rows, in proportion to their weights, and random pairs, to the product of two."""

    def __init__(
        self,
        positive: Mask,
        weight: Vector | None,
        group: Index | None,
        random: np.random.Generator,
    ) -> None:
        self._positive, self._random, self._weight = positive, random, weight
        self._in_groups = None
        if group is not None:
            weights = np.ones(positive.size) if weight is None else weight
            self._in_groups = _PairsInGroups(positive, weights, group, random)
        every = np.arange(positive.size)
        self._rows = {"positive": every[positive], "negative": every[~positive], "any": every}
        if weight is not None:
            self._sums = {side: np.cumsum(weight[rows]) for side, rows in self._rows.items()}

    def _draw(self, side: str, n: int) -> Index:
        rows = self._rows[side]
        if self._weight is None:
            return rows[self._random.integers(rows.size, size=n)]
        sums = self._sums[side]
        return rows[np.searchsorted(sums, self._random.random(n) * sums[-1], side="right")]

    def pairs_and_points(self, n: int, gamma: float) -> tuple[Index, Index]:
        pair = self._random.random(n) < gamma
        n_pairs = int(np.count_nonzero(pair))
        plus, minus = np.full(n, -1, dtype=np.intp), np.full(n, -1, dtype=np.intp)
        if self._in_groups is not None:
            plus[pair], minus[pair] = self._in_groups.draw(n_pairs)
        else:
            plus[pair] = self._draw("positive", n_pairs)
            minus[pair] = self._draw("negative", n_pairs)
        point = self._draw("any", n - n_pairs)
        positive = self._positive[point]
        plus[~pair] = np.where(positive, point, -1)
        minus[~pair] = np.where(positive, -1, point)
        return plus, minus


class _PairsInGroups:
    """Random pairs within groups, in proportion to the product of the weights of the two rows.

    The positive row is drawn in proportion to its weight times that of the negative rows of its
    group, then one of these in proportion to its weight.
    """

    def __init__(
        self, positive: Mask, weight: Vector, group: Index, random: np.random.Generator
    ) -> None:
        self._random = random
        rows = np.flatnonzero(weight > 0.0)
        rows = rows[np.argsort(group[rows], kind="stable")]
        negatives = rows[~positive[rows]]
        edges = np.searchsorted(group[negatives], np.arange(int(group.max()) + 2))
        of_group = np.add.reduceat(np.append(weight[negatives], 0.0), edges[:-1])
        of_group[edges[1:] == edges[:-1]] = 0.0
        has_pair = positive[rows] & (of_group[group[rows]] > 0.0)
        self._positives, self._negatives = rows[has_pair], negatives
        of_positive = group[self._positives]
        self._begin, self._end = edges[of_positive], edges[of_positive + 1]
        self._sums = np.cumsum(weight[self._positives] * of_group[of_positive])
        self._negative_sums = np.append(0.0, np.cumsum(weight[negatives]))

    def draw(self, n: int) -> tuple[Index, Index]:
        """The positive and the negative rows of n pairs."""
        uniform = self._random.random((2, n))
        i = np.searchsorted(self._sums, uniform[0] * self._sums[-1], side="right")
        i = np.minimum(i, self._sums.size - 1)
        begin, end, sums = self._begin[i], self._end[i], self._negative_sums
        goal = sums[begin] + uniform[1] * (sums[end] - sums[begin])
        j = np.searchsorted(sums, goal, side="right") - 1
        return self._positives[i], self._negatives[np.clip(j, begin, end - 1)]


def _squared_row_norms(X: Matrix) -> Vector:
    if sp.issparse(X):
        squares = sp.csr_array((np.square(X.data, dtype=float), X.indices, X.indptr), shape=X.shape)
        return np.asarray(squares.sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=float)


def _difference_bounds(size: Vector, plus: Index, minus: Index) -> Vector:
    """Upper bounds on ||x_i - x_j||^2, from the squared norms of the rows; a point has the constant
    as one more entry.
    """
    size = np.append(size, 0.0)  # row -1 is the origin
    pair = (plus >= 0) & (minus >= 0)
    return np.where(pair, 2.0, 1.0) * (size[plus] + size[minus]) + ~pair
