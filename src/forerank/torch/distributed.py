"""`AcrossProcesses`: the loss of the rows of all processes of a data-parallel training.

Every process gathers scores, labels, weights and groups of all (a few bytes per row) and computes
the same loss; gradients flow to its own rows. The sum of the gradients of all processes is that of
one process with all rows.
"""

from typing import Any

import torch
from torch import Tensor, distributed, nn

from forerank.torch.blocks import check_rows

__all__ = ["AcrossProcesses", "gather_rows"]


def gather_rows(values: Tensor, process_group: Any = None) -> Tensor:
    """The rows of all processes, in the order of their ranks; own rows keep their gradient.

    Processes may have different numbers of rows.
    """
    n_ranks, rank = distributed.get_world_size(process_group), distributed.get_rank(process_group)
    size = torch.tensor([values.shape[0]], device=values.device)
    sizes = [torch.zeros_like(size) for _ in range(n_ranks)]
    distributed.all_gather(sizes, size, group=process_group)
    counts = [int(each) for each in sizes]
    # All processes send as many rows; what is beyond their own is cut off.
    sent = values.new_zeros((max(counts), *values.shape[1:]))
    sent[: values.shape[0]] = values.detach()
    received = [torch.zeros_like(sent) for _ in range(n_ranks)]
    distributed.all_gather(received, sent, group=process_group)
    parts = [part[:count] for part, count in zip(received, counts, strict=True)]
    parts[rank] = values
    return torch.cat(parts)


class AcrossProcesses(nn.Module):
    """A loss over the rows of all processes, the same value on each.

    Parameters
    ----------
    loss : module
        `PairwiseLoss`, `TopLoss` or `CombinedLoss`, or any module of (scores, y, weight, group).
    averaged : bool, default=True
        Whether gradients of the processes are averaged afterwards, as DistributedDataParallel
        does. Then the gradient is multiplied by the number of processes, so that the average is
        the gradient of one process with all rows.
    process_group : optional
        As in torch.distributed.
    """

    def __init__(
        self, loss: nn.Module, *, averaged: bool = True, process_group: Any = None
    ) -> None:
        super().__init__()
        self.loss, self.averaged, self.process_group = loss, averaged, process_group

    @torch.compiler.disable
    def forward(self, scores: Tensor, y: Any, weight: Any = None, group: Any = None) -> Tensor:
        """The loss of all rows; every process must call it, with or without `weight` and `group`
        alike.
        """
        s, y, weight, group = check_rows(scores, y, weight, group)
        y = y.to(torch.int8) if y.dtype == torch.bool else y
        columns = [
            None if each is None else gather_rows(each, self.process_group)
            for each in (s, y, weight, group)
        ]
        value = self.loss(*columns)
        if self.averaged:
            n_ranks = distributed.get_world_size(self.process_group)
            value = value.detach() + n_ranks * (value - value.detach())
        return value if scores.dtype == torch.float64 else value.to(torch.float32)
