"""`RankingMetrics`: AUC, average precision, pos@top and recall at k over many batches, exact.

Scores and labels are kept on their device and sorted once by `compute`: measures of a ranking are
not means of their values on batches. Ties, weights and definitions are those of
`forerank.metrics`.
"""

from typing import Any

import torch
from torch import Tensor, nn

from forerank.torch.blocks import check_rows
from forerank.torch.distributed import gather_rows

__all__ = ["RankingMetrics"]


class RankingMetrics(nn.Module):
    """Measures of the ranking of all rows that `update` has seen.

    Parameters
    ----------
    k : int, default=100
        The rows of recall at k.
    across_processes : bool, default=False
        Whether `compute` gathers the rows of all processes.

    Examples
    --------
    >>> import torch
    >>> metrics = RankingMetrics(k=2)
    >>> metrics.update(torch.tensor([0.1, 0.4]), torch.tensor([0, 0]))
    >>> metrics.update(torch.tensor([0.35, 0.8]), torch.tensor([1, 1]))
    >>> {name: round(float(value), 4) for name, value in metrics.compute().items()}
    {'auc': 0.75, 'ap': 0.8333, 'pos_at_top': 0.5, 'recall_at_k': 0.5}
    """

    def __init__(self, *, k: int = 100, across_processes: bool = False) -> None:
        super().__init__()
        if not isinstance(k, int) or k < 1:
            raise ValueError(f"k must be a number of rows from 1 on; got {k!r}.")
        self.k, self.across_processes = k, across_processes
        self.reset()

    def reset(self) -> None:
        """Forget all rows."""
        self._rows: list[tuple[Tensor, Tensor, Tensor]] = []

    def update(self, scores: Tensor, y: Any, weight: Any = None) -> None:
        """Add rows; labels above zero are positive."""
        s, y, weight, _ = check_rows(scores.detach(), y, weight, None)
        self._rows.append((s, y > 0, torch.ones_like(s) if weight is None else weight))

    def forward(self, scores: Tensor, y: Any, weight: Any = None) -> None:
        """Add rows, as `update`."""
        self.update(scores, y, weight)

    def compute(self) -> dict[str, Tensor]:
        """The measures, as tensors on the device of the scores.

        NaN without rows of two classes, and where a score is NaN.
        """
        if not self._rows:
            raise ValueError("There are no rows: call update(scores, y) before compute().")
        s, positive, w = (torch.cat(column) for column in zip(*self._rows, strict=True))
        if self.across_processes:
            s, w = gather_rows(s), gather_rows(w)
            positive = gather_rows(positive.to(torch.int8)) > 0
        return _measures(s, positive, w, self.k)


def _measures(s: Tensor, positive: Tensor, w: Tensor, k: int) -> dict[str, Tensor]:
    """All measures from one sort; tied rows are one block."""
    kept = w > 0.0  # rows without weight do not count among the first k
    s, positive, w = s[kept], positive[kept], w[kept]
    order = torch.argsort(s, descending=True)
    s, positive, w = s[order], positive[order], w[order]
    _, block, size = torch.unique_consecutive(s, return_inverse=True, return_counts=True)
    size = size.to(torch.float64)
    zeros = torch.zeros_like(size)
    p = zeros.index_add(0, block, torch.where(positive, w, 0.0))
    n = zeros.index_add(0, block, torch.where(positive, 0.0, w))
    tp, fp = torch.cumsum(p, 0), torch.cumsum(n, 0)
    all_p, all_n = p.sum(), n.sum()
    auc = ((tp - 0.5 * p) * n).sum() / (all_p * all_n)
    precision = tp / torch.where(tp + fp > 0.0, tp + fp, 1.0)
    # Rows tied at the end of the first k are taken with equal probability.
    rows_before = torch.cumsum(size, 0) - size
    taken = ((k - rows_before) / size).clamp(0.0, 1.0)
    measures = {
        "auc": auc,
        "ap": (p * precision).sum() / all_p,
        "pos_at_top": torch.where(fp == 0.0, p, 0.0).sum() / all_p,
        "recall_at_k": (taken * p).sum() / all_p,
    }
    defined = (all_p > 0.0) & (all_n > 0.0) & ~torch.isnan(s).any()
    return {name: torch.where(defined, value, torch.nan) for name, value in measures.items()}
