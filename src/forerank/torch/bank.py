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
    """The loss over pairs of a batch, with rows of earlier batches as further partners.

    A small batch has few pairs, and one class may be missing in it. The bank holds the scores of
    the last `size` rows of each class, detached. Every positive of the batch is compared with all
    negatives of batch and bank, every negative with all positives:

        1/2 [ sum_i w_i mean_j l(s_i - s_j) / W+  +  sum_j w_j mean_i l(s_i - s_j) / W- ]

    over positives i of the batch with negatives j of both in the first sum, and negatives j of the
    batch with positives i of both in the second. W+ and W- divide the weight of the batch as the
    rows seen so far are divided, so that batches without a positive do not shift the balance of the
    classes. The gradient is an estimate of that over all rows from the rows of the batch: each row
    against the distribution of the other class, which counts as fixed. Partners are scored by
    slightly older weights of the network; for these scores the sums are exact. With an empty bank,
    value and gradient are those of `PairwiseLoss`.

    In training, a batch is compared with the bank and then added to it; in evaluation the bank is
    not changed. Its contents are buffers: they move with the module and are saved with it. For two
    classes; groups are not kept. Scores that are not finite give a loss of NaN and are not kept.

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
            # The weight of all rows of the class so far.
            self.register_buffer(f"{name}_total", torch.zeros((), dtype=torch.float64))

    def extra_repr(self) -> str:
        """The parameters."""
        return f"{self.loss!r}, size={self.size}"

    def reset(self) -> None:
        """Empty the bank."""
        for name, values in list(self.named_buffers()):
            setattr(self, name, torch.zeros_like(values) if values.ndim == 0 else values[:0])

    @torch.compiler.disable
    def forward(self, scores: Tensor, y: Any, weight: Any = None) -> Tensor:
        """The loss of the batch against batch and bank; labels above zero are positive.

        Zero, with a zero gradient, where no row of the batch has a partner.
        """
        s, y, weight, _ = check_rows(scores, y, weight, None)
        w = (torch.ones_like(s) if weight is None else weight).detach()
        sides = y <= 0, y > 0
        old_s, old_w, before = (
            [getattr(self, f"{name}_{kind}").to(s.device) for name in _SIDES]
            for kind in ("scores", "weights", "total")
        )
        totals = [old + (w * side).sum() for old, side in zip(before, sides, strict=True)]
        shares = [w.sum() * total / (totals[0] + totals[1]) for total in totals]
        partners = [
            (torch.cat([s.detach()[side], a]), torch.cat([w[side], b]))
            for side, a, b in zip(sides, old_s, old_w, strict=True)
        ]
        value = _sum_over_pairs(self.loss, s, w, sides, shares, partners)
        if self.training:
            self._keep(s.detach(), w, sides)
        value = value - 0.5 * value.detach()  # half of the sum, with its whole gradient
        return value if scores.dtype == torch.float64 else value.to(torch.float32)

    def _keep(self, s: Tensor, w: Tensor, sides: tuple[Tensor, Tensor]) -> None:
        for name, of_class in zip(_SIDES, sides, strict=True):
            side = of_class & torch.isfinite(s)
            total = getattr(self, f"{name}_total").to(s.device)
            setattr(self, f"{name}_total", total + w[side].sum())
            for kind, values in (("scores", s), ("weights", w)):
                before = getattr(self, f"{name}_{kind}").to(s.device)
                setattr(self, f"{name}_{kind}", torch.cat([before, values[side]])[-self.size :])

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        """Buffers get the sizes of those that are loaded, which PyTorch compares first."""
        for name, values in list(self.named_buffers()):
            if f"{prefix}{name}" in state_dict:
                setattr(self, name, values.new_zeros(state_dict[f"{prefix}{name}"].shape))
        super()._load_from_state_dict(state_dict, prefix, *args)


def _sum_over_pairs(
    loss: str,
    s: Tensor,
    w: Tensor,
    sides: tuple[Tensor, Tensor],
    shares: list[Tensor],
    partners: list[tuple[Tensor, Tensor]],
) -> Tensor:
    """Both sums, as two blocks: negative partners below positives of the batch, and negatives of
    the batch below positive partners; `partners` have scores and weights of each class.
    """
    own = [
        (s[side], w[side] / torch.where(share > 0.0, share, 1.0))
        for side, share in zip(sides, shares, strict=True)
    ]
    means = []
    for scores, weights in partners:
        total = weights.sum()
        means.append((scores, weights / torch.where(total > 0.0, total, 1.0)))
    halves = [means[0], own[1], own[0], means[1]]  # lower and upper half of each block
    sizes = [scores.numel() for scores, _ in halves]
    t, weight = (torch.cat([half[k] for half in halves]) for k in (0, 1))
    start = np.array([0, sizes[0] + sizes[1], sum(sizes)])
    split = start[:-1] + np.array([sizes[0], sizes[2]])
    half = torch.repeat_interleave(
        torch.arange(4, device=s.device), torch.tensor(sizes, device=s.device)
    )
    # Entries are the rows that are given.
    rows = torch.arange(t.numel(), device=s.device)
    pairs = TensorPairs(half % 2 == 1, weight, t.numel(), rows, half // 2, start, split)
    return loss_of_pairs(t, pairs, loss, "sum")
