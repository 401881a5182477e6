"""All-pairs sums that factor: the exponential and the squared loss, and any loss at equal scores.
Cost: N, no sort and no grid.

    exponential   sum_ij w_i w_j exp(-(s_i - s_j)) = (sum_i w_i exp(-s_i)) (sum_j w_j exp(s_j))
    squared       sum_ij w_i w_j (1 - s_i + s_j)^2, from weights, means and variances of either side
    equal scores  all pairs have the same loss, slope and curvature

Exponentials are relative to the largest of their half of a block, so only the product of the two
factors can overflow; then the value is infinity, and a line search shortens its step.
"""

import numpy as np

from forerank._typing import Vector
from forerank.design import Design
from forerank.losses import Loss
from forerank.pairsums.blocks import PairBlocks

__all__ = ["EqualScorePairs", "ExponentialPairs", "SquaredPairs"]


class _FactoredPairs:
    """Base of these losses: sums over the two halves of every block."""

    def __init__(self, blocks: PairBlocks) -> None:
        self._blocks = blocks
        self._scale = 1.0 / blocks.total_weight
        self._half_start, self._half_size = blocks.half_start, blocks.half_size

    def _half_sums(self, by_entry: Vector) -> Vector:
        """Row b: sums over the lower and the upper half of block b."""
        return np.add.reduceat(by_entry, self._half_start).reshape(-1, 2)

    def _sums_of_halves(self, design: Design, by_entry: Vector) -> Vector:
        """Sums of the rows of X, times a number by entry, over the lower and the upper half of a
        single block.
        """
        blocks = self._blocks
        half, weight = np.zeros(blocks.n_rows, np.intp), np.zeros(blocks.n_rows)
        half[blocks.rows[blocks.split[0] :]] = 1
        weight[blocks.rows] = by_entry
        return design.bin_sums(weight, half, 2)

    def curvature_matrix(self, U: Vector) -> Vector:
        """F''(s) U for the columns of U."""
        return np.column_stack([self.curvature_product(u) for u in U.T])

    def curvature_product(self, u: Vector) -> Vector:
        """F''(s) u."""
        raise NotImplementedError

    def _to_entries(self, lower: Vector, upper: Vector) -> Vector:
        """For each entry, the number of its half of the block."""
        return np.repeat(np.column_stack([lower, upper]).ravel(), self._half_size)


class ExponentialPairs(_FactoredPairs):
    """The mean exponential loss over all pairs of `blocks`, at scores `s`."""

    def __init__(self, blocks: PairBlocks, s: Vector) -> None:
        super().__init__(blocks)
        self._t = s[blocks.rows]
        top = np.maximum.reduceat(self._signed(), self._half_start).reshape(-1, 2)
        # The share of each entry in the factor of its half.
        relative = blocks.weight * np.exp(self._signed() - self._to_entries(top[:, 0], top[:, 1]))
        factor = self._half_sums(relative)
        self._share = relative / self._to_entries(factor[:, 0], factor[:, 1])
        with np.errstate(over="ignore"):
            self._block_value = self._scale * np.exp((top + np.log(factor)).sum(axis=1))
        self.value = float(self._block_value.sum())
        self.gradient = blocks.add_to_rows(
            self._share * self._to_entries(self._block_value, -self._block_value)
        )

    def _signed(self) -> Vector:
        """The exponents: s_j of the lower rows, -s_i of the upper rows."""
        return -self._blocks.sign * self._t

    def curvature_product(self, u: Vector) -> Vector:
        """F''(s) u."""
        entry_u = u[self._blocks.rows]
        mean = self._half_sums(self._share * entry_u)
        # A pair adds value_b share_i share_j (u_i - u_j): only the mean of the other half counts.
        other = self._to_entries(mean[:, 1], mean[:, 0])
        value = self._to_entries(self._block_value, self._block_value)
        return self._blocks.add_to_rows(value * self._share * (entry_u - other))

    def hessian(self, design: Design) -> Vector:
        """X^T F''(s) X for a single block. Cost: a product with X, and `design.weighted_gram`."""
        mean = self._sums_of_halves(design, self._share)
        cross = self._block_value[0] * np.outer(mean[0], mean[1])
        return design.weighted_gram(self.curvature_diagonal()) - cross - cross.T

    def curvature_diagonal(self) -> Vector:
        """The diagonal of F''(s)."""
        value = self._to_entries(self._block_value, self._block_value)
        return self._blocks.add_to_rows(self._share * value)


class _ConstantCurvature(_FactoredPairs):
    """Sums in which every pair has the same curvature."""

    def __init__(self, blocks: PairBlocks, curvature: float) -> None:
        super().__init__(blocks)
        self._curvature = curvature * self._scale
        self._half_weight = blocks.half_weight

    @property
    def has_one_block(self) -> bool:
        """Whether all pairs are of one block."""
        return self._blocks.n_blocks == 1

    def half_shares(self) -> Vector:
        """The shares of all rows in the weight of the lower, and of the upper half of the only
        block.
        """
        b = self._blocks
        out, split = np.zeros((2, b.n_rows)), b.split[0]
        lower, upper = b.half_weight[0]
        out[0, b.rows[:split]] = b.weight[:split] / lower
        out[1, b.rows[split:]] = b.weight[split:] / upper
        return out

    def _other_weight(self) -> Vector:
        return self._to_entries(self._half_weight[:, 1], self._half_weight[:, 0])

    def curvature_product(self, u: Vector) -> Vector:
        """F''(s) u."""
        w = self._blocks.weight
        entry_u = u[self._blocks.rows]
        mean = self._half_sums(w * entry_u) / self._half_weight
        other = self._to_entries(mean[:, 1], mean[:, 0])
        weight = self._curvature * w * self._other_weight()
        return self._blocks.add_to_rows(weight * (entry_u - other))

    def quadratic_form(self, U: Vector) -> Vector:
        """u^T F''(s) u, the mean of curvature times (u_i - u_j)^2 over the pairs, for each column u
        of U.
        """
        lower, upper = self._half_weight.T
        if self.has_one_block:
            share = self.half_shares()
            U = U - share.mean(axis=0) @ U  # a constant does not count, and its square would cancel
            mean, square = share @ U, share @ (U * U)
            pairs = lower * upper * (square.sum(axis=0) - 2.0 * mean[0] * mean[1])
            return self._curvature * np.maximum(pairs, 0.0)
        entry, w, start = U[self._blocks.rows], self._blocks.weight[:, None], self._blocks.start
        # A constant within a block does not count, and its square would cancel.
        means = np.add.reduceat(w * entry, start[:-1], axis=0) / (lower + upper)[:, None]
        entry -= np.repeat(means, np.diff(start), axis=0)
        weighted = w * entry
        sums = np.add.reduceat(weighted, self._half_start, axis=0)
        squares = np.add.reduceat(weighted * entry, self._half_start, axis=0)
        products = np.einsum("bk,bk->k", sums[::2], sums[1::2])
        pairs = lower @ squares[1::2] + upper @ squares[::2] - 2.0 * products
        return self._curvature * np.maximum(pairs, 0.0)

    def curvature_diagonal(self) -> Vector:
        """The diagonal of F''(s)."""
        return self._curvature * self._blocks.opposite_weights(1.0)


class SquaredPairs(_ConstantCurvature):
    """The mean squared loss over all pairs of `blocks`, at scores `s`."""

    def __init__(self, blocks: PairBlocks, s: Vector) -> None:
        super().__init__(blocks, 2.0)
        w, t = blocks.weight, s[blocks.rows]
        mean = self._half_sums(w * t) / self._half_weight
        centred = t - self._to_entries(mean[:, 0], mean[:, 1])
        spread = self._half_sums(w * centred**2)
        short = 1.0 - (mean[:, 1] - mean[:, 0])
        within = (spread * self._half_weight[:, ::-1]).sum(axis=1)
        block_value = self._half_weight.prod(axis=1) * short**2 + within
        self.value = float(self._scale * block_value.sum())
        # sum_j w_j (1 - t_i + t_j) is W (short - centred_i) at an upper entry, W (short +
        # centred_j) at a lower one.
        slope = self._to_entries(short, -short) + centred
        self.gradient = blocks.add_to_rows(2.0 * self._scale * w * self._other_weight() * slope)


class EqualScorePairs(_ConstantCurvature):
    """The mean of a loss over all pairs of `blocks` where all scores are equal."""

    def __init__(self, blocks: PairBlocks, loss: Loss) -> None:
        super().__init__(blocks, float(loss.curvature(0.0)))
        self.value = float(loss.value(0.0))
        self.gradient = float(loss.slope(0.0)) * self._scale * blocks.opposite_weights(-1.0)

    def hessian(self, design: Design) -> Vector:
        """X^T F''(s) X. Cost: a product with X, and `design.weighted_gram`."""
        blocks = self._blocks
        if blocks.n_blocks == 1:
            sums = self._sums_of_halves(design, blocks.weight)
        else:
            entries = blocks.weight[:, None] * design.columns(0, design.n_columns)[blocks.rows]
            sums = np.add.reduceat(entries, self._half_start)
        cross = self._curvature * (sums[::2].T @ sums[1::2])
        return design.weighted_gram(self.curvature_diagonal()) - cross - cross.T
