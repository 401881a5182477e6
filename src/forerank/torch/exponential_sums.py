"""Sums over pairs of the exponential loss, which factor: exp(-s_i) sum_j q_j exp(s_j).

Exponentials are relative to the largest of their half of a block, so only the product of the two
factors can overflow, to infinity.
"""

import torch
from torch import Tensor

from forerank.torch.blocks import TensorPairs

__all__ = ["ExponentialSums"]


class ExponentialSums:
    """Sums of the derivatives of exp(-t) over the other half of each entry's block."""

    def __init__(self, pairs: TensorPairs, t: Tensor) -> None:
        self._pairs = pairs
        # The exponent of an entry: s_j of lower entries, -s_i of upper ones.
        self._exponent = torch.where(pairs.upper, -t, t)
        lower, upper = self._largest()
        own = pairs.other_half(upper, lower)
        self._relative = torch.exp(self._exponent - own)
        self._scale = torch.exp(self._exponent + pairs.other_half(lower, upper))

    def _largest(self) -> tuple[Tensor, Tensor]:
        """The largest exponent of the lower and of the upper half of each block; 0 for none."""
        pairs, none = self._pairs, -torch.inf
        out = self._exponent.new_full((pairs.n_blocks,), none)
        halves = []
        for of_half in (~pairs.upper, pairs.upper):
            exponents = torch.where(of_half, self._exponent, none)
            if pairs.block is None:
                top = torch.cat([exponents, out]).amax(0, keepdim=True)
            else:
                top = out.scatter_reduce(0, pairs.block, exponents, "amax")
            halves.append(torch.where(top > none, top, 0.0))
        return halves[0], halves[1]

    def kernel(self, order: int, q: Tensor) -> Tensor:
        """sum_o q_o K^(order)(s_upper - s_lower) over the other half, for each entry."""
        sums = self._pairs.half_sums(q * self._relative)
        other = self._pairs.other_half(*sums)
        # Infinity times zero: no charges on the other half.
        product = torch.where(other == 0.0, 0.0, self._scale * other)
        return -product if order % 2 else product

    def value_and_slopes(self, w: Tensor) -> tuple[Tensor, Tensor]:
        """The sum of w_i w_j K over all pairs, and the slope sums of `kernel(1, w)`."""
        losses = self.kernel(0, w)
        return torch.where(self._pairs.upper, w * losses, 0.0).sum(), -losses
