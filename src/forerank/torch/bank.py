"""`MemoryBank`: a loss over the pairs of a batch with rows of earlier batches as partners."""

from typing import Any

import torch
from torch import Tensor, nn

from forerank.torch.blocks import check_rows, two_class_pairs
from forerank.torch.functional import check_loss, loss_of_pairs

__all__ = ["MemoryBankLoss"]


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
        for name in ("negative", "positive"):
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
        old_s = [getattr(self, f"{name}_scores").to(s.device) for name in ("negative", "positive")]
        old_w = [getattr(self, f"{name}_weights").to(s.device) for name in ("negative", "positive")]
        upper = torch.cat([positive, torch.zeros_like(old_s[0], dtype=torch.bool),
                           torch.ones_like(old_s[1], dtype=torch.bool)])  # fmt: skip
        everything = two_class_pairs(upper, torch.cat([w, *old_w]))
        total = loss_of_pairs(torch.cat([s, *old_s]), everything, self.loss, "sum")
        pairs_weight = everything.total_weight()
        # Pairs of two old rows have no gradient; they are taken out of the mean.
        old = two_class_pairs(upper[s.numel() :], torch.cat(old_w))
        with torch.no_grad():
            old_total = loss_of_pairs(torch.cat(old_s), old, self.loss, "sum")
            pairs_weight = pairs_weight - old.total_weight()
        value = (total - old_total) / torch.where(pairs_weight > 0.0, pairs_weight, 1.0)
        if self.training:
            self._keep(s.detach(), w.detach(), positive)
        return value if scores.dtype == torch.float64 else value.to(torch.float32)

    def _keep(self, s: Tensor, w: Tensor, positive: Tensor) -> None:
        for name, side in (("negative", ~positive), ("positive", positive)):
            for kind, values in (("scores", s), ("weights", w)):
                before = getattr(self, f"{name}_{kind}").to(s.device)
                setattr(self, f"{name}_{kind}", torch.cat([before, values[side]])[-self.size :])
