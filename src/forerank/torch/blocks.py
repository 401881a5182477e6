"""Which pairs count, on the device of the labels: the tensors of `forerank.pairsums.PairBlocks`.

An *entry* is a row in a block; every upper entry of a block should be ranked above every lower one.
Two classes without groups are one block of all rows, in their order, so that nothing is moved and
no size is read by the host. Groups and grades have several blocks, sorted by block and then by side
(lower before upper), with the same rule for grades as on the host: one level of blocks per bit of
the grade's number.

What the host reads: the range of the labels (one transfer of three numbers), and with several
blocks their sizes.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["TensorPairs", "check_rows", "make_pairs", "two_class_pairs"]


@dataclass(frozen=True)
class TensorPairs:
    """Pairs as tensors over entries.

    Attributes
    ----------
    upper : boolean tensor of shape (n_entries,)
    weight : float64 tensor of shape (n_entries,)
    n_rows : int
    rows : tensor, optional
        The row of each entry; None where entries are the rows in their order.
    block : tensor, optional
        The block of each entry; None for a single block.
    start, split : integer arrays, optional
        On the host: block b has the entries start[b] .. start[b + 1] - 1, upper ones from split[b].
    """

    upper: Tensor
    weight: Tensor
    n_rows: int
    rows: Tensor | None = None
    block: Tensor | None = None
    start: NDArray[np.int64] | None = None
    split: NDArray[np.int64] | None = None

    @property
    def n_blocks(self) -> int:
        return 1 if self.start is None else self.start.size - 1

    @property
    def sign(self) -> Tensor:
        """1 for upper entries, -1 for lower ones."""
        return 2.0 * self.upper.to(torch.float64) - 1.0

    def entries(self, by_row: Tensor) -> Tensor:
        """The number of each entry's row."""
        return by_row if self.rows is None else by_row[self.rows]

    def add_to_rows(self, by_entry: Tensor) -> Tensor:
        """The sum of the entries of each row."""
        if self.rows is None:
            return by_entry
        out = by_entry.new_zeros(self.n_rows)
        return out.index_add(0, self.rows, by_entry)

    def half_sums(self, by_entry: Tensor) -> tuple[Tensor, Tensor]:
        """Sums over the lower and over the upper half of each block, of shape (n_blocks,)."""
        zero = by_entry.new_zeros(())
        lower = torch.where(self.upper, zero, by_entry)
        upper = torch.where(self.upper, by_entry, zero)
        if self.block is None:
            return lower.sum().reshape(1), upper.sum().reshape(1)
        out = by_entry.new_zeros(self.n_blocks)
        return out.index_add(0, self.block, lower), out.index_add(0, self.block, upper)

    def other_half(self, lower: Tensor, upper: Tensor) -> Tensor:
        """For each entry, the number of the other half of its block."""
        if self.block is not None:
            return torch.where(self.upper, lower[self.block], upper[self.block])
        return torch.where(self.upper, lower[0], upper[0])

    def total_weight(self) -> Tensor:
        """The sum of w_i w_j over all pairs."""
        lower, upper = self.half_sums(self.weight)
        return (lower * upper).sum()


def check_rows(scores: Tensor, y: Any, weight: Any, group: Any) -> tuple[Tensor, ...]:
    """Scores in double precision, labels, weights and groups (or None), each of shape (n,).

    Scores of shape (n, 1), as a last layer gives them, are read as (n,). They are NaN where labels
    or weights are invalid.
    """
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        kind = getattr(scores, "dtype", type(scores).__name__)
        raise TypeError(f"scores must be a tensor of floating point numbers; got {kind}.")
    flat = scores.squeeze(-1) if scores.ndim == 2 else scores
    if flat.ndim != 1:
        raise ValueError(
            f"scores must have one number per row, shape (n,) or (n, 1); got {tuple(scores.shape)}."
        )
    given: list[Any] = []
    for name, values in (("y", y), ("weight", weight), ("group", group)):
        if values is not None:
            values = torch.as_tensor(values, device=flat.device)
            values = values.squeeze(-1) if values.ndim == 2 else values
            if values.shape != flat.shape:
                raise ValueError(
                    f"{name} must have one number per row, {flat.numel()}; got the shape "
                    f"{tuple(values.shape)}."
                )
        given.append(values)
    labels, weights, groups = given
    weights = None if weights is None else weights.to(torch.float64)
    return _nan_if_invalid(flat.to(torch.float64), labels, weights), labels, weights, groups


def _nan_if_invalid(s: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
    """The scores, or NaN where a label is NaN or a weight is negative or NaN: the loss is then NaN,
    and the host, which would have to wait for the device, need not look.
    """
    if labels.is_floating_point():
        s = s + torch.where(torch.isnan(labels).any(), torch.nan, 0.0)
    if weights is not None:
        s = s + torch.where((weights >= 0.0).all(), 0.0, torch.nan)
    return s


def two_class_pairs(upper: Tensor, weight: Tensor | None) -> TensorPairs:
    """All pairs of an upper and a lower row."""
    if weight is None:
        weight = torch.ones(upper.shape, dtype=torch.float64, device=upper.device)
    return TensorPairs(upper, weight, upper.numel())


def make_pairs(y: Tensor, weight: Tensor | None, group: Tensor | None) -> TensorPairs:
    """All pairs of rows with different labels, the higher one upper, within groups."""
    if y.numel() == 0:
        return two_class_pairs(y.to(torch.bool), weight)
    number = y.to(torch.int8) if y.dtype == torch.bool else y
    low, high = torch.aminmax(number)
    between = ((number != low) & (number != high)).any()
    # The one transfer to the host: whether there are more than two labels.
    if group is None and not bool(between):
        return two_class_pairs((number == high) & (high > low), weight)
    grade = torch.unique(number, return_inverse=True)[1]
    groups = None if group is None else torch.unique(group, return_inverse=True)[1]
    return _graded_pairs(grade, weight, groups)


def _graded_pairs(grade: Tensor, weight: Tensor | None, group: Tensor | None) -> TensorPairs:
    n_bits = max(int(grade.max()).bit_length(), 1)
    levels = [_blocks_of_bit(grade, group, bit, n_bits) for bit in range(n_bits)]
    rows, upper = (torch.cat([level[k] for level in levels]) for k in (0, 1))
    sizes = np.concatenate([level[2] for level in levels])
    lower_sizes = np.concatenate([level[3] for level in levels])
    start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    number = torch.arange(sizes.size, device=grade.device)
    block = torch.repeat_interleave(number, torch.as_tensor(sizes, device=grade.device))
    if weight is None:
        weight = torch.ones(grade.shape, dtype=torch.float64, device=grade.device)
    return TensorPairs(
        upper, weight[rows], grade.numel(), rows, block, start, start[:-1] + lower_sizes
    )


def _blocks_of_bit(
    grade: Tensor, group: Tensor | None, bit: int, n_bits: int
) -> tuple[Tensor, Tensor, NDArray[np.int64], NDArray[np.int64]]:
    """Rows and sides of the blocks of a bit that have both sides, with their sizes and those of
    their lower halves; rows are sorted by block, then by side.
    """
    side, key = (grade >> bit) & 1, grade >> (bit + 1)
    if group is not None:
        key = key + (group << n_bits)
    order = torch.argsort(2 * key + side, stable=True)
    _, inverse, sizes = torch.unique_consecutive(
        key[order], return_inverse=True, return_counts=True
    )
    upper_sizes = torch.zeros_like(sizes).index_add(0, inverse, side[order])
    both = (upper_sizes > 0) & (upper_sizes < sizes)
    order = order[both[inverse]]
    kept = torch.stack([sizes[both], (sizes - upper_sizes)[both]]).cpu().numpy()
    return order, side[order] == 1, kept[0], kept[1]
