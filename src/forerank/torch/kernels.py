"""Products of a tall matrix with a vector on a GPU, in Triton: one pass over X, sums in double.

PyTorch's own products of float32 data sum in float32, and one product for every part of the rows
leaves most of the bandwidth unused. Each kernel has a plain twin in `forerank.torch.design`, which
is used on other devices and without Triton.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["adjoint", "scores"]

# Entries of X that a program reads at once, most columns of them (a power of two), and the number
# of times it reads for an adjoint, so that its partial sums are few.
_ENTRIES, _MOST_COLUMNS, _STEPS = 4096, 64, 16


@triton.jit
def _scores_kernel(
    X: Any, w: Any, out: Any, n: Any, d: Any, R: tl.constexpr, C: tl.constexpr
) -> None:
    rows = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    inside = rows < n
    total = tl.zeros((R,), tl.float64) + tl.load(w + d)
    for first in range(0, d, C):
        columns = first + tl.arange(0, C)
        known = columns < d
        both = inside[:, None] & known[None, :]
        x = tl.load(X + rows[:, None] * d + columns[None, :], mask=both, other=0.0)
        weights = tl.load(w + columns, mask=known, other=0.0)
        total += tl.sum(x.to(tl.float64) * weights[None, :], axis=1)
    tl.store(out + rows, total, mask=inside)


@triton.jit
def _adjoint_kernel(
    X: Any, g: Any, out: Any, n: Any, d: Any, R: tl.constexpr, C: tl.constexpr, S: tl.constexpr
) -> None:
    part, width = tl.program_id(0).to(tl.int64), tl.num_programs(1) * C + 1
    columns = tl.program_id(1) * C + tl.arange(0, C)
    known = columns < d
    total = tl.zeros((C,), tl.float64)
    of_g = tl.zeros((R,), tl.float64)
    for step in range(S):
        rows = (part * S + step) * R + tl.arange(0, R)
        inside = rows < n
        both = inside[:, None] & known[None, :]
        x = tl.load(X + rows[:, None] * d + columns[None, :], mask=both, other=0.0)
        by_row = tl.load(g + rows, mask=inside, other=0.0)
        total += tl.sum(x.to(tl.float64) * by_row[:, None], axis=0)
        of_g += by_row
    tl.store(out + part * width + columns, total)
    if tl.program_id(1) == 0:
        tl.store(out + part * width + width - 1, tl.sum(of_g, axis=0))


def _tile(X: Tensor) -> tuple[int, int]:
    """Rows and columns of what a program reads at once."""
    columns = min(max(8, 1 << (X.shape[1] - 1).bit_length()), _MOST_COLUMNS)
    return _ENTRIES // columns, columns


def scores(X: Tensor, w: Tensor) -> Tensor:
    """X w in double precision; w is a float64 tensor, its last number a constant to be added."""
    (n, d), (rows, columns) = X.shape, _tile(X)
    out = torch.empty(n, dtype=torch.float64, device=X.device)
    with torch.cuda.device(X.device):
        _scores_kernel[(triton.cdiv(n, rows),)](X, w, out, n, d, R=rows, C=columns)
    return out


def adjoint(X: Tensor, g: Tensor) -> Tensor:
    """X^T g, and behind it the sum of g, in double precision; g is a float64 tensor."""
    (n, d), (rows, columns) = X.shape, _tile(X)
    grid = triton.cdiv(n, rows * _STEPS), triton.cdiv(d, columns)
    parts = torch.empty((grid[0], grid[1] * columns + 1), dtype=torch.float64, device=X.device)
    with torch.cuda.device(X.device):
        _adjoint_kernel[grid](X, g, parts, n, d, R=rows, C=columns, S=_STEPS)
    total = parts.sum(0)
    return torch.cat([total[:d], total[-1:]])
