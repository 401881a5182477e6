"""Ranking losses and measures for PyTorch: `PairwiseLoss`, `TopLoss`, `CombinedLoss`.

Exact sums over all pairs of a batch on the device of the scores, in N log N or N, with gradients.
Importing this package imports torch (``pip install "forerank[torch]"``); the rest of forerank does
not. `PairwiseRanker` and `PointwiseRanker` use it for tensors.
"""

from forerank.torch.bank import MemoryBankLoss
from forerank.torch.distributed import AcrossProcesses, gather_rows
from forerank.torch.functional import combined_loss, pairwise_loss, top_loss
from forerank.torch.metrics import RankingMetrics
from forerank.torch.modules import CombinedLoss, PairwiseLoss, TopLoss
from forerank.torch.rows import to_arrays

__all__ = [
    "AcrossProcesses",
    "CombinedLoss",
    "MemoryBankLoss",
    "PairwiseLoss",
    "RankingMetrics",
    "TopLoss",
    "combined_loss",
    "gather_rows",
    "pairwise_loss",
    "to_arrays",
    "top_loss",
]
