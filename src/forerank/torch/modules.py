"""Ranking losses as modules, with the arguments of PyTorch's own losses."""

from typing import Any

from torch import Tensor, nn

from forerank.torch.functional import (
    check_at,
    check_gamma,
    check_loss,
    check_reduction,
    combined_loss,
    pairwise_loss,
    top_loss,
)

__all__ = ["CombinedLoss", "PairwiseLoss", "TopLoss"]


class PairwiseLoss(nn.Module):
    """The loss over all pairs of a batch, exact, without the matrix of pairs.

    ``PairwiseLoss("logistic")(scores, y)`` is a smooth bound on 1 - AUC of the batch; see
    `pairwise_loss` for the formula, labels, weights, groups and precision.

    Parameters
    ----------
    loss : {"logistic", "squared_hinge", "hinge", "exponential", "squared"}
        The loss of a score difference.
    reduction : {"mean", "sum", "none"}

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([2.0, 0.5, 1.0, -1.0], requires_grad=True)
    >>> PairwiseLoss("squared_hinge")(scores, torch.tensor([1, 1, 0, 0])).backward()
    >>> scores.grad[1:3]
    tensor([-0.7500,  0.7500])
    """

    def __init__(self, loss: str = "logistic", *, reduction: str = "mean") -> None:
        super().__init__()
        self.loss, self.reduction = check_loss(loss), check_reduction(reduction)

    def extra_repr(self) -> str:
        """The parameters."""
        return f"{self.loss!r}, reduction={self.reduction!r}"

    def forward(self, scores: Tensor, y: Any, weight: Any = None, group: Any = None) -> Tensor:
        """The loss; see `pairwise_loss`."""
        return pairwise_loss(scores, y, weight, group, loss=self.loss, reduction=self.reduction)


class TopLoss(nn.Module):
    """The loss of the positives against the highest negatives of a batch: for the top of the list.

    See `top_loss` for the formula.

    Parameters
    ----------
    loss : {"squared_hinge", "logistic", "hinge", "exponential", "squared"}
    at : "max", int or float
        The negatives that count: the highest, the `at` highest, or the upper share `at`.
    reduction : {"mean", "sum", "none"}
    """

    def __init__(
        self,
        loss: str = "squared_hinge",
        *,
        at: str | int | float = "max",
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.loss, self.at = check_loss(loss), check_at(at)
        self.reduction = check_reduction(reduction)

    def extra_repr(self) -> str:
        """The parameters."""
        return f"{self.loss!r}, at={self.at!r}, reduction={self.reduction!r}"

    def forward(self, scores: Tensor, y: Any, weight: Any = None, group: Any = None) -> Tensor:
        """The loss; see `top_loss`."""
        return top_loss(
            scores, y, weight, group, loss=self.loss, at=self.at, reduction=self.reduction
        )


class CombinedLoss(nn.Module):
    """Pairs and points of a batch together; see `combined_loss`.

    Parameters
    ----------
    gamma : float from 0 to 1
        The share of the pairs.
    loss : {"logistic", "squared_hinge", "hinge", "exponential", "squared"}
        Of score differences and of margins.
    reduction : {"mean", "sum", "none"}
    """

    def __init__(
        self, gamma: float = 0.5, loss: str = "logistic", *, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.gamma, self.loss = check_gamma(gamma), check_loss(loss)
        self.reduction = check_reduction(reduction)

    def extra_repr(self) -> str:
        """The parameters."""
        return f"gamma={self.gamma!r}, loss={self.loss!r}, reduction={self.reduction!r}"

    def forward(self, scores: Tensor, y: Any, weight: Any = None, group: Any = None) -> Tensor:
        """The loss; see `combined_loss`."""
        return combined_loss(
            scores, y, weight, group, gamma=self.gamma, loss=self.loss, reduction=self.reduction
        )
