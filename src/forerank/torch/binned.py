"""Hessians of sums over pairs on tensors, from scores rounded to bins; for preconditioners.

The same approximation as `forerank.pairsums.binned`: the curvature of a pair depends on the bins of
its two scores alone, so that sums of rows by bin replace a pass over X for each column.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from forerank._typing import Vector
from forerank.torch.blocks import TensorPairs
from forerank.torch.design import TensorDesign

__all__ = ["binned_hessian"]

# Bins with equally many scores, and as many of equal width; scores from which the former are
# estimated; least width of a bin, in units of scores. As on the host.
_N_BINS = 64
_SCORES_FOR_LIMITS = 1024
_LEAST_WIDTH = 1e-4


def binned_hessian(
    pairs: TensorPairs, t: Tensor, slope: Callable[[Vector], Vector], design: TensorDesign
) -> tuple[Vector, Tensor]:
    """The sum of w_i w_j K'' x_i x_j^T over the pairs of a single block, and the sum of w_i w_j K''
    over the pairs of each row; `slope` is that of the loss K.
    """
    limits = _limits(t)
    n_bins = limits.numel() + 1
    bins = torch.searchsorted(limits, t) + n_bins * pairs.upper
    totals = t.new_zeros((2, 2 * n_bins))
    totals[0].index_add_(0, bins, pairs.weight)
    totals[1].index_add_(0, bins, pairs.weight * t)
    weight, sums = totals.cpu().numpy()
    centres = sums / np.where(weight > 0.0, weight, 1.0)
    lowest, highest = (float(bound) for bound in torch.aminmax(t))
    ends = limits.cpu().numpy()
    width = np.maximum(np.diff(ends, prepend=lowest, append=highest), _LEAST_WIDTH)
    difference = np.subtract.outer(centres[n_bins:], centres[:n_bins])
    spread = np.add.outer(width, width)
    kernel = (slope(difference + 0.5 * spread) - slope(difference - 0.5 * spread)) / spread
    of_bin = np.concatenate([kernel.T @ weight[n_bins:], kernel @ weight[:n_bins]])
    curvature = pairs.weight * torch.as_tensor(of_bin, device=t.device)[bins]
    rows = design.bin_sums(pairs.weight, bins, 2 * n_bins)
    return rows[n_bins:].T @ (kernel @ rows[:n_bins]), curvature


def _limits(t: Tensor) -> Tensor:
    """The scores between bins."""
    some = torch.sort(t[:: max(1, t.numel() // _SCORES_FOR_LIMITS)]).values
    share = torch.linspace(0.0, 1.0, _N_BINS + 1, dtype=t.dtype, device=t.device)[1:-1]
    low, high = torch.aminmax(t)
    quantiles = some[(share * some.numel()).to(torch.int64)]
    return torch.sort(torch.cat([quantiles, low + share * (high - low)])).values
