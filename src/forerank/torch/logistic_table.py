"""Derivatives of the logistic loss on a grid, as Fourier transforms, for sums by convolution."""

from functools import lru_cache

import numpy as np
import torch
from numpy.polynomial import polynomial
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["CELLS_PER_UNIT", "POWERS", "logistic_derivative", "transformed_kernels"]

# Cells per unit of score, and powers of the position within a cell that are summed. The first
# term that is left out is (1/512)^4 / 24 of a fourth derivative, below 1e-13.
CELLS_PER_UNIT = 256
POWERS = 4
# Highest derivative: that of the curvature's slope, with all powers at source and target.
_HIGHEST = 3 + 2 * (POWERS - 1)
# Longest transform whose kernels are kept for the next call (10 numbers per place, 21 MB).
_LONGEST_KEPT = 2**18


@lru_cache(maxsize=1)
def _polynomials() -> tuple[NDArray[np.float64], ...]:
    """Coefficients, in p = 1 / (1 + exp(t)), of the derivatives 1, 2, .. of log(1 + exp(-t))."""
    out = [np.array([0.0, -1.0])]
    slope = np.array([0.0, -1.0, 1.0])  # dp/dt = -p (1 - p)
    while len(out) < _HIGHEST:
        out.append(polynomial.polymul(polynomial.polyder(out[-1]), slope))
    return tuple(out)


def logistic_derivative(t: Tensor, order: int) -> Tensor:
    """The derivative of log(1 + exp(-t)) of this order."""
    if order == 0:
        return torch.nn.functional.softplus(-t, threshold=1e9)
    if order == 1:
        return -torch.sigmoid(-t)
    # Derivatives from the second on are even or odd; at |t| the powers of p do not cancel.
    p = torch.sigmoid(-t.abs())
    out = torch.zeros_like(t)
    for coefficient in _polynomials()[order - 1][::-1]:
        out = out * p + float(coefficient)
    return torch.where(t < 0.0, -out, out) if order % 2 else out


def _kernels(length: int, device: torch.device) -> Tensor:
    t = torch.fft.fftfreq(length, 1.0 / length, dtype=torch.float64, device=device)
    t = t / CELLS_PER_UNIT
    scale = 1.0 / CELLS_PER_UNIT
    rows = [logistic_derivative(t, order) * scale**order for order in range(_HIGHEST + 1)]
    return torch.fft.rfft(torch.stack(rows))


@lru_cache(maxsize=16)
def _kept_kernels(length: int, device: torch.device) -> Tensor:
    return _kernels(length, device)


def transformed_kernels(length: int, device: torch.device) -> Tensor:
    """Row r: the transform of the r-th derivative at multiples of a cell, times the cell's length
    to the power r; places count around the end of the array.
    """
    return (_kept_kernels if length <= _LONGEST_KEPT else _kernels)(length, device)
