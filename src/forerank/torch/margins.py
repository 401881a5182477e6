"""Margin losses of tensors, elementwise: those of `forerank.losses` that pair sums know.

Kinks take the derivative from the right, as on the host: zero slope exactly on the margin.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from forerank.torch.logistic_table import logistic_derivative

__all__ = ["MARGIN_LOSSES", "margin_curvature", "margin_slope"]

#: The loss of each margin, by name.
MARGIN_LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "exponential": lambda t: torch.exp(-t),
    "hinge": lambda t: torch.relu(1.0 - t),
    "logistic": lambda t: functional.softplus(-t, threshold=1e9),
    "squared": lambda t: (1.0 - t).square(),
    "squared_hinge": lambda t: torch.relu(1.0 - t).square(),
}


_SLOPES: dict[str, Callable[[Tensor], Tensor]] = {
    "exponential": lambda t: -torch.exp(-t),
    "hinge": lambda t: -(t < 1.0).to(t.dtype),
    "logistic": lambda t: logistic_derivative(t, 1),
    "squared": lambda t: 2.0 * t - 2.0,
    "squared_hinge": lambda t: -2.0 * torch.relu(1.0 - t),
}
_CURVATURES: dict[str, Callable[[Tensor], Tensor]] = {
    "exponential": lambda t: torch.exp(-t),
    "hinge": torch.zeros_like,
    "logistic": lambda t: logistic_derivative(t, 2),
    "squared": lambda t: torch.full_like(t, 2.0),
    "squared_hinge": lambda t: 2.0 * (t < 1.0).to(t.dtype),
}


def margin_slope(loss: str, t: Tensor) -> Tensor:
    """The slope of a loss at margins t."""
    return _SLOPES[loss](t)


def margin_curvature(loss: str, t: Tensor) -> Tensor:
    """The curvature of a loss at margins t."""
    return _CURVATURES[loss](t)
