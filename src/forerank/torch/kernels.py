"""Products of a tall matrix with a vector on a GPU, in Triton: one pass over X, sums in double.

PyTorch's own products of float32 data sum in float32, and one product for every part of the rows
leaves most of the bandwidth unused. Each kernel has a plain twin in `forerank.torch.design`, which
is used on other devices, without Triton, and for wide matrices.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["MOST_COLUMNS", "adjoint", "scores"]

# Columns up to which a row is read at once.
MOST_COLUMNS = 128
# Entries of X that a program reads at once, and the number of times it does so for an adjoint:
# partial sums are then a thousandth of the entries.
_ENTRIES, _STEPS = 4096, 16


# The number of columns D is a constant of the compiled kernel, so that numbers are read four at a
# time. Triton reads annotations, which is why other arguments have none.
@triton.jit
def _scores_kernel(X, w, out, n, D: tl.constexpr, R: tl.constexpr, C: tl.constexpr):  # type: ignore[no-untyped-def]
    rows = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    columns = tl.arange(0, C)
    inside, known = rows < n, columns < D
    both = inside[:, None] & known[None, :]
    x = tl.load(X + rows[:, None] * D + columns[None, :], mask=both, other=0.0)
    weights = tl.load(w + columns, mask=known, other=0.0)
    total = tl.sum(x.to(tl.float64) * weights[None, :], axis=1)
    tl.store(out + rows, total + tl.load(w + D), mask=inside)


@triton.jit
def _adjoint_kernel(  # type: ignore[no-untyped-def]
    X, g, out, n, D: tl.constexpr, R: tl.constexpr, C: tl.constexpr, S: tl.constexpr
):
    part = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, C)
    known = columns < D
    total = tl.zeros((R, C), tl.float64)
    of_g = tl.zeros((R,), tl.float64)
    for step in range(S):
        rows = (part * S + step) * R + tl.arange(0, R)
        inside = rows < n
        both = inside[:, None] & known[None, :]
        x = tl.load(X + rows[:, None] * D + columns[None, :], mask=both, other=0.0)
        by_row = tl.load(g + rows, mask=inside, other=0.0)
        total += x.to(tl.float64) * by_row[:, None]
        of_g += by_row
    tl.store(out + part * (C + 1) + columns, tl.sum(total, axis=0))
    tl.store(out + part * (C + 1) + C, tl.sum(of_g, axis=0))


def _tile(X: Tensor) -> tuple[int, int]:
    """Rows and columns (a power of two) of what a program reads at once."""
    columns = max(8, 1 << (X.shape[1] - 1).bit_length())
    return _ENTRIES // columns, columns


def scores(X: Tensor, w: Tensor) -> Tensor:
    """X w in double precision; w is a float64 tensor, its last number a constant to be added."""
    (n, d), (rows, columns) = X.shape, _tile(X)
    out = torch.empty(n, dtype=torch.float64, device=X.device)
    with torch.cuda.device(X.device):
        _scores_kernel[(triton.cdiv(n, rows),)](X, w, out, n, D=d, R=rows, C=columns)
    return out


def adjoint(X: Tensor, g: Tensor) -> Tensor:
    """X^T g, and behind it the sum of g, in double precision; g is a float64 tensor."""
    (n, d), (rows, columns) = X.shape, _tile(X)
    n_programs = triton.cdiv(n, rows * _STEPS)
    parts = torch.empty((n_programs, columns + 1), dtype=torch.float64, device=X.device)
    with torch.cuda.device(X.device):
        _adjoint_kernel[(n_programs,)](X, g, parts, n, D=d, R=rows, C=columns, S=_STEPS)
    total = parts.sum(0)
    return torch.cat([total[:d], total[columns:]])
