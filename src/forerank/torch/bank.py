"""`MemoryBank`: a loss over the pairs of a batch with rows of earlier batches as partners."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from forerank.torch.blocks import TensorPairs, check_rows
from forerank.torch.functional import check_loss, loss_of_pairs

__all__ = ["MemoryBankLoss"]

_SIDES = ("negative", "positive")


class MemoryBankLoss(nn.Module):
    """The loss over pairs in which at least one row is of the batch; the other may be older.

    A small batch has few pairs, and one class may be missing in it. The bank holds the scores of
    the last `size` rows of each class, detached, as further partners, so that the gradient is close
    to that over all rows. Partners are scored by slightly older weights of the network: the value
    and the gradient are exact for these scores, not for those that the network would give now. For
    two classes; groups are not kept.

    In training, a batch is compared with the bank and then added to it; in evaluation the bank is
    not changed. Its contents are buffers: they move with the module and are saved with it.

    Parameters
    ----------
    loss : {"logistic", "squared_hinge", "hinge", "exponential", "squared"}
    size : int
        Scores that are kept for each class.

    Examples
    --------
    >>> import torch
    >>> bank = MemoryBankLoss("squared_hinge", size=100)
    >>> _ = bank(torch.tensor([0.5, 1.0]), torch.tensor([0, 0]))  # no pair yet
    >>> bank(torch.tensor([2.0]), torch.tensor([1]))
    tensor(0.)
    >>> bank(torch.tensor([0.0]), torch.tensor([1]))  # one positive, two negatives of the bank
    tensor(3.1250)
    """

    def __init__(self, loss: str = "logistic", *, size: int = 4096) -> None:
        super().__init__()
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"size must be a number of scores from 1 on; got {size!r}.")
        self.loss, self.size = check_loss(loss), size
        for name in _SIDES:
            self.register_buffer(f"{name}_scores", torch.zeros(0, dtype=torch.float64))
            self.register_buffer(f"{name}_weights", torch.zeros(0, dtype=torch.float64))

    def extra_repr(self) -> str:
        """The parameters."""
        return f"{self.loss!r}, size={self.size}"

    def reset(self) -> None:
        """Empty the bank."""
        for name, values in list(self.named_buffers()):
            setattr(self, name, values[:0])

    @torch.compiler.disable
    def forward(self, scores: Tensor, y: Any, weight: Any = None) -> Tensor:
        """The weighted mean over all pairs of a row of the batch with one of batch or bank.

        Labels above zero are positive. Zero, with a zero gradient, without a pair.
        """
        s, y, weight, _ = check_rows(scores, y, weight, None)
        w = torch.ones_like(s) if weight is None else weight
        positive = y > 0
        old_s = [getattr(self, f"{name}_scores").to(s.device) for name in _SIDES]
        old_w = [getattr(self, f"{name}_weights").to(s.device) for name in _SIDES]
        pairs = _bank_pairs(positive, torch.cat([w, *old_w]), *(old.numel() for old in old_s))
        value = loss_of_pairs(torch.cat([s, *old_s]), pairs, self.loss)
        if self.training:
            self._keep(s.detach(), w.detach(), positive)
        return value if scores.dtype == torch.float64 else value.to(torch.float32)

    def _keep(self, s: Tensor, w: Tensor, positive: Tensor) -> None:
        for name, side in zip(_SIDES, (~positive, positive), strict=True):
            for kind, values in (("scores", s), ("weights", w)):
                before = getattr(self, f"{name}_{kind}").to(s.device)
                setattr(self, f"{name}_{kind}", torch.cat([before, values[side]])[-self.size :])

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        """Buffers get the sizes of those that are loaded, which PyTorch compares first."""
        for name, values in list(self.named_buffers()):
            if f"{prefix}{name}" in state_dict:
                setattr(self, name, values.new_zeros(state_dict[f"{prefix}{name}"].shape))
        super()._load_from_state_dict(state_dict, prefix, *args)


def _bank_pairs(
    positive: Tensor, weight: Tensor, n_old_negatives: int, n_old_positives: int
) -> TensorPairs:
    """Pairs with at least one row of the batch; rows are batch, old negatives, old positives.

    Two blocks: positives of the batch against all negatives, and old positives against the
    negatives of the batch.
    """
    n, device = positive.numel(), positive.device
    lower, upper = torch.nonzero(~positive)[:, 0], torch.nonzero(positive)[:, 0]
    old = n + torch.arange(n_old_negatives + n_old_positives, device=device)
    halves = [
        (torch.cat([lower, old[:n_old_negatives]]), upper),
        (lower, old[n_old_negatives:]),
    ]
    rows = torch.cat([half for block in halves for half in block])
    sizes = [[half.numel() for half in block] for block in halves]
    start = np.concatenate([[0], np.cumsum([sum(block) for block in sizes])])
    split = start[:-1] + [block[0] for block in sizes]
    place = torch.arange(rows.numel(), device=device)
    is_second = place >= int(start[1])
    is_upper = torch.where(is_second, place >= int(split[1]), place >= int(split[0]))
    return TensorPairs(
        is_upper, weight[rows], weight.numel(), rows, is_second.to(torch.int64), start, split
    )
