"""Sums over all pairs as functions of the scores that PyTorch differentiates.

    V(s) = sum_ij w_i w_j K(s_i - s_j)                          value of all pairs
    S_e(s, q) = sum_o q_o K^(r)(s_upper - s_lower)              kernel sum of order r at an entry e

over pairs of upper entries i and lower entries j, or over the other half o of the block of e. The
derivatives of either are kernel sums of the next order, with other charges:

    dV/ds_e = sign_e w_e S_e(s, w)          with r = 1, sign 1 for upper and -1 for lower entries
    sum_e g_e dS_e/ds_f = sign_f (g_f S_f(s, q) + q_f S_f(s, g))     with r + 1

so that first and second derivatives cost as much as the sums themselves, without pairs.
"""

from typing import Any, Protocol

import torch
from torch import Tensor

from forerank.torch.blocks import TensorPairs
from forerank.torch.exponential_sums import ExponentialSums
from forerank.torch.logistic_sums import LogisticSums
from forerank.torch.sorted_sums import SortedSums

__all__ = ["LOSSES", "KernelSums", "kernel_sums", "make_sums", "total"]


class KernelSums(Protocol):
    """Sums over the other half of each entry's block, at fixed scores."""

    def kernel(self, order: int, q: Tensor) -> Tensor:
        """The kernel sum of this order with charges q."""

    def value_and_slopes(self, w: Tensor) -> tuple[Tensor, Tensor]:
        """The value of all pairs with weights w, and the kernel sum of order one."""


_SUMS: dict[str, Any] = {
    "exponential": ExponentialSums,
    "hinge": lambda pairs, t: SortedSums(pairs, t, 1),
    "logistic": LogisticSums,
    "squared": lambda pairs, t: SortedSums(pairs, t, 2, everywhere=True),
    "squared_hinge": lambda pairs, t: SortedSums(pairs, t, 2),
}
#: Names of the losses whose sums over all pairs are known.
LOSSES = tuple(sorted(_SUMS))


def make_sums(loss: str, pairs: TensorPairs, t: Tensor) -> KernelSums:
    """The sums of a loss at scores t of the entries."""
    return _SUMS[loss](pairs, t)


class _Total(torch.autograd.Function):
    """V(s), with slopes that are kept for the gradient."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, w: Tensor, pairs: TensorPairs, sums: KernelSums) -> Tensor:
        value, slopes = sums.value_and_slopes(w)
        ctx.pairs, ctx.sums = pairs, sums
        ctx.save_for_backward(t, w, slopes)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        t, w, slopes = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted
            slopes = kernel_sums(t, w, ctx.pairs, ctx.sums, 1)
        of_scores = of_weights = None
        if ctx.needs_input_grad[0]:
            of_scores = grad * ctx.pairs.sign * w * slopes
        if ctx.needs_input_grad[1]:
            of_weights = grad * kernel_sums(t, w, ctx.pairs, ctx.sums, 0)
        return of_scores, of_weights, None, None


class _KernelSum(torch.autograd.Function):
    """S(s, q) of an order, differentiable in s and q any number of times."""

    @staticmethod
    def forward(
        ctx: Any, t: Tensor, q: Tensor, pairs: TensorPairs, sums: KernelSums, order: int
    ) -> Tensor:
        ctx.pairs, ctx.sums, ctx.order = pairs, sums, order
        ctx.save_for_backward(t, q)
        return sums.kernel(order, q)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        t, q = ctx.saved_tensors
        of_scores = of_charges = None
        if ctx.needs_input_grad[0]:
            own, other = (
                kernel_sums(t, charges, ctx.pairs, ctx.sums, ctx.order + 1) for charges in (q, grad)
            )
            of_scores = ctx.pairs.sign * (grad * own + q * other)
        if ctx.needs_input_grad[1]:
            of_charges = kernel_sums(t, grad, ctx.pairs, ctx.sums, ctx.order)
        return of_scores, of_charges, None, None, None


def total(t: Tensor, w: Tensor, pairs: TensorPairs, sums: KernelSums) -> Tensor:
    """The value of all pairs, V(s), at scores t and weights w of the entries."""
    return _Total.apply(t, w, pairs, sums)


def kernel_sums(t: Tensor, q: Tensor, pairs: TensorPairs, sums: KernelSums, order: int) -> Tensor:
    """The kernel sum of an order at every entry, with charges q."""
    return _KernelSum.apply(t, q, pairs, sums, order)
