"""Sums over pairs of the logistic loss: sum_j q_j K(s_i - s_j) at every row i of the other class.

The loss is an analytic function of the score difference. Scores are assigned to cells of length
1/256; a source adds the first four powers of its position in the cell, times its charge, to the
cell; the cells are convolved with the derivatives of the loss by Fourier transforms; and a target
evaluates a polynomial of its own position (maths/pairsums.md). No sort; cost N, plus the transforms
of as many numbers as there are cells. The error is about 1e-13 of the sum of all charges, so small
sums have a larger relative error than large ones.

Three cases use other sums, all exact. Few rows and small blocks (groups) are summed pair by pair.
Gaps between scores beyond which the loss is a straight line are shortened first; where the scores
are too wide even so, near pairs are summed one by one and far ones as straight lines. Scores that
are not finite give NaN, where there are more than a few rows.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from forerank.torch.blocks import TensorPairs
from forerank.torch.logistic_table import (
    CELLS_PER_UNIT,
    POWERS,
    logistic_derivative,
    transformed_kernels,
)

__all__ = ["LogisticSums"]

# Rows of a block up to which all pairs are summed one by one: a transform costs more.
_FEW_ROWS = 256
# Pairs of a block among several up to which they are summed one by one.
_FEW_PAIRS = 20_000
# Pairs that cost as much as a cell and its part of the transforms.
_PAIRS_PER_CELL = 128
# Pairs in memory at once (8 bytes each, a few arrays of them).
_PAIRS_AT_ONCE = 2**21
# Places of all copies of the table of cells on a GPU, and rows per place from which there are
# several: additions to one place wait for each other, so that equal or few different scores would
# be summed one by one. They fit into the cache of the memory (4 MB).
_PLACES = 2**17
_ROWS_PER_PLACE = 4
# Longest span of scores with one grid, in units of score: 2 million places of a transform.
_LONGEST_SPAN = 4096.0
# Difference of scores beyond which the loss is 0 or -t to 1e-26.
_STRAIGHT = 60.0


class LogisticSums:
    """Sums of the derivatives of log(1 + exp(-t)) over the other half of each entry's block.

    The host reads the lowest and the highest score (one transfer).
    """

    def __init__(self, pairs: TensorPairs, t: Tensor) -> None:
        self._n = t.numel()
        self._upper = pairs.upper
        self._parts: list[tuple[slice, Any]] = []
        self._small: _PairList | None = None
        if pairs.start is None or pairs.split is None:
            self._parts = [(slice(None), _block_sums(t, pairs.upper, t.numel() ** 2 // 4))]
            return
        start, split = pairs.start, pairs.split
        n_pairs = (split - start[:-1]) * (start[1:] - split)
        few = n_pairs <= _FEW_PAIRS
        if few.any():
            self._small = _small_blocks(t, start, split, np.flatnonzero(few))
        for b in np.flatnonzero(~few):
            entries = slice(int(start[b]), int(start[b + 1]))
            sums = _block_sums(t[entries], pairs.upper[entries], int(n_pairs[b]))
            self._parts.append((entries, sums))

    def kernel(self, order: int, q: Tensor) -> Tensor:
        """sum_o q_o K^(order)(s_upper - s_lower) over the other half, for each entry."""
        if self._n == 0:
            return torch.zeros_like(q)
        if self._small is None and len(self._parts) == 1 and self._parts[0][0] == slice(None):
            return self._parts[0][1].kernel(order, q)
        out = torch.zeros_like(q)
        if self._small is not None:
            self._small.add(order, q, out)
        for entries, part in self._parts:
            out[entries] = part.kernel(order, q[entries])
        return out

    def value_and_slopes(self, w: Tensor) -> tuple[Tensor, Tensor]:
        """The sum of w_i w_j K over all pairs, and the slope sums of `kernel(1, w)`."""
        slopes = torch.zeros_like(w)
        value = w.new_zeros(())
        if self._n == 0:
            return value, slopes
        if self._small is not None:
            losses = torch.zeros_like(w)
            self._small.add(0, w, losses)
            self._small.add(1, w, slopes)
            value = value + torch.where(self._upper, w * losses, 0.0).sum()
        for entries, part in self._parts:
            of_part, slopes[entries] = part.value_and_slopes(w[entries])
            value = value + of_part
        return value, slopes


def _block_sums(t: Tensor, upper: Tensor, n_pairs: int) -> Any:
    """Sums for the entries of one block with at most so many pairs: on a grid, or pair by pair."""
    if t.numel() <= _FEW_ROWS:
        return _Direct(t, upper)
    low, high = torch.stack(torch.aminmax(t)).tolist()
    if not high - low < np.inf:
        return _NotFinite()
    near, excess = t, None
    if high - low > _LONGEST_SPAN:
        near, excess = _shortened(t)
        low, high = torch.stack(torch.aminmax(near)).tolist()
    if high - low > _LONGEST_SPAN:
        return _Wide(t, upper)
    if n_pairs <= _PAIRS_PER_CELL * CELLS_PER_UNIT * (high - low):
        return _Direct(t, upper)
    return _OneBlock(near, upper, low, high, excess)


def _tables(t: Tensor, n_cells: int) -> int:
    """Copies of the table of cells."""
    if t.device.type == "cpu":
        return 1
    return max(1, min(_PLACES, t.numel() // _ROWS_PER_PLACE) // (2 * n_cells))


def _shortened(t: Tensor) -> tuple[Tensor, Tensor]:
    """Scores whose gaps are at most `_STRAIGHT`, and what each score lost; slopes and curvatures
    across a longer gap are those of a straight line already.
    """
    ascending, order = torch.sort(t)
    gaps = torch.diff(ascending)
    lost = torch.zeros_like(t)
    lost[order[1:]] = torch.cumsum(torch.relu(gaps - _STRAIGHT), 0)
    return t - lost, lost


class _OneBlock:
    """Sums on one grid. `excess` is what scores lost where gaps between them were shortened."""

    def __init__(
        self, t: Tensor, upper: Tensor, low: float, high: float, excess: Tensor | None = None
    ) -> None:
        self._upper, self._t, self._excess = upper, t, excess
        self._n_cells = int((high - low) * CELLS_PER_UNIT) + 1
        # A power of two, so that a few lengths serve all calls and their kernels are kept.
        self._length = 1 << (2 * self._n_cells - 1).bit_length()
        x = (t - low) * CELLS_PER_UNIT
        cell = x.to(torch.int64).clamp_(0, self._n_cells - 1)
        x = x - cell - 0.5
        # Differences grow with the upper score and shrink with the lower one.
        self._position = torch.where(upper, x, -x)
        self._cell = cell + self._n_cells * upper
        self._n_tables = _tables(t, self._n_cells)
        self._place = self._cell
        if self._n_tables > 1:
            table = torch.arange(t.numel(), device=t.device) % self._n_tables
            self._place = self._cell + 2 * self._n_cells * table
        self._kernels = transformed_kernels(self._length, t.device)

    def _spread(self, q: Tensor) -> Tensor:
        """Sums of q x^m / m! over each cell: shape (2, POWERS, n_cells), lower entries first."""
        table = q.new_zeros((POWERS, self._n_tables * 2 * self._n_cells))
        for m in range(POWERS):
            table[m].index_add_(0, self._place, q)
            if m + 1 < POWERS:
                q = q * self._position / (m + 1)
        table = table.reshape(POWERS, self._n_tables, 2, self._n_cells)
        return table.sum(1).transpose(0, 1)

    def _convolved(self, order: int, *transforms: Tensor) -> Tensor:
        """Coefficients of the polynomials of the cells, from the transforms of the sums over cells:
        of the lower entries, for upper targets, and if given of the upper ones, for lower targets.
        Shape (1 or 2 times POWERS, n_cells).
        """
        # At (m, p, place): the derivative of order + m + p.
        derivatives = self._kernels[order : order + 2 * POWERS - 1].unfold(0, POWERS, 1)
        derivatives = derivatives.transpose(1, 2)
        products = [(derivatives * transforms[0]).sum(1)]
        if len(transforms) > 1:
            products.append((derivatives.conj() * transforms[1]).sum(1))
        out = torch.fft.irfft(torch.cat(products), n=self._length)[:, : self._n_cells]
        return out * float(CELLS_PER_UNIT) ** order  # derivatives by score, not by cell

    def _transforms(self, table: Tensor) -> tuple[Tensor, Tensor]:
        both = torch.fft.rfft(table, n=self._length)
        return both[0], both[1]

    def _evaluated(self, at_both: Tensor) -> Tensor:
        """The polynomial of each entry's cell at its position."""
        coefficients = torch.cat([at_both[POWERS:], at_both[:POWERS]], dim=1)
        out = coefficients[POWERS - 1][self._cell]
        for m in range(POWERS - 2, -1, -1):
            out = out * (self._position / (m + 1)) + coefficients[m][self._cell]
        return out

    def kernel(self, order: int, q: Tensor) -> Tensor:
        table = self._spread(q)
        sums = self._evaluated(self._convolved(order, *self._transforms(table)))
        if order == 0 and self._excess is not None:
            sums = sums + self._straight_losses(q)
        return sums

    def value_and_slopes(self, w: Tensor) -> tuple[Tensor, Tensor]:
        table = self._spread(w)
        transforms = self._transforms(table)
        value = (table[1] * self._convolved(0, transforms[0])).sum()
        if self._excess is not None:
            losses = self._straight_losses(w)
            value = value + torch.where(self._upper, w * losses, 0.0).sum()
        return value, self._evaluated(self._convolved(1, *transforms))

    def _straight_losses(self, q: Tensor) -> Tensor:
        """sum_o q_o max(0, excess_lower - excess_upper) over the other half: the part of the loss
        that shortened gaps lost. Sorted by excess, it is a difference of cumulated sums.
        """
        assert self._excess is not None
        order = torch.argsort(self._excess)
        e, q, upper = self._excess[order], q[order], self._upper[order]
        lower_q, upper_q = torch.where(upper, 0.0, q), torch.where(upper, q, 0.0)
        cumulated, weighted = torch.cumsum(upper_q, 0), torch.cumsum(upper_q * e, 0)
        behind = torch.flip(torch.cumsum(torch.flip(lower_q, [0]), 0), [0])
        behind_e = torch.flip(torch.cumsum(torch.flip(lower_q * e, [0]), 0), [0])
        sums = torch.where(upper, behind_e - e * behind, e * cumulated - weighted)
        out = torch.empty_like(sums)
        out[order] = sums
        return out


class _Direct:
    """Sums pair by pair, in parts that fit into memory."""

    def __init__(self, t: Tensor, upper: Tensor) -> None:
        self._t = t
        self._uppers, self._lowers = torch.nonzero(upper)[:, 0], torch.nonzero(~upper)[:, 0]

    def kernel(self, order: int, q: Tensor) -> Tensor:
        out, lowers = torch.zeros_like(q), self._lowers
        if not lowers.numel() or not self._uppers.numel():
            return out
        t_lower, q_lower = self._t[lowers], q[lowers]
        at_lower = torch.zeros_like(q_lower)
        for rows in torch.split(self._uppers, max(1, _PAIRS_AT_ONCE // lowers.numel())):
            pairs = logistic_derivative(self._t[rows][:, None] - t_lower, order)
            out[rows] = pairs @ q_lower
            at_lower += q[rows] @ pairs
        out[lowers] = at_lower
        return out

    def value_and_slopes(self, w: Tensor) -> tuple[Tensor, Tensor]:
        losses = self.kernel(0, w)
        return (w[self._uppers] * losses[self._uppers]).sum(), self.kernel(1, w)


class _NotFinite:
    """Sums at scores that are not finite numbers: NaN."""

    def kernel(self, order: int, q: Tensor) -> Tensor:
        return torch.full_like(q, torch.nan)

    def value_and_slopes(self, w: Tensor) -> tuple[Tensor, Tensor]:
        return w.new_tensor(torch.nan), self.kernel(1, w)


class _Wide:
    """Sums at scores of a wide range: near pairs one by one, far ones as straight lines.

    Cost: a sort, and the number of pairs whose scores differ by less than `_STRAIGHT`.
    """

    def __init__(self, t: Tensor, upper: Tensor) -> None:
        self._upper, self._order = upper, torch.argsort(t)
        of_upper = upper[self._order]
        # Lower entries in ascending order of their scores, then the upper ones.
        self._order = torch.cat([self._order[~of_upper], self._order[of_upper]])
        self._t, self._n_lower = t[self._order], int((~upper).sum())
        lower, high = self._t[: self._n_lower], self._t[self._n_lower :]
        first = torch.searchsorted(lower, high - _STRAIGHT)
        # The lower entries from here on are far above, and count as straight lines; the upper
        # entries up to here are far below a lower one.
        self._far = torch.searchsorted(lower, high + _STRAIGHT, right=True)
        place = torch.arange(self._n_lower, device=t.device)
        self._far_below = torch.searchsorted(self._far, place, right=True)
        entries = self._n_lower + torch.arange(high.numel(), device=t.device)
        self._near = _PairList(self._t, entries, first, self._far - first)

    def kernel(self, order: int, q: Tensor) -> Tensor:
        q = q[self._order]
        sums = torch.zeros_like(q)
        self._near.add(order, q, sums)
        if order < 2:
            n, t = self._n_lower, self._t
            charges, moments = _cumulated(q[:n]), _cumulated(q[:n] * t[:n])
            above = (charges[-1] - charges[self._far], moments[-1] - moments[self._far])
            below = [_cumulated(each)[self._far_below] for each in (q[n:], q[n:] * t[n:])]
            if order == 0:
                sums[n:] += above[1] - t[n:] * above[0]
                sums[:n] += t[:n] * below[0] - below[1]
            else:
                sums[n:] -= above[0]
                sums[:n] -= below[0]
        out = torch.empty_like(sums)
        out[self._order] = sums
        return out

    def value_and_slopes(self, w: Tensor) -> tuple[Tensor, Tensor]:
        return torch.where(self._upper, w * self.kernel(0, w), 0.0).sum(), self.kernel(1, w)


def _cumulated(q: Tensor) -> Tensor:
    """Sums of the first 0, 1, .. n numbers."""
    return torch.cat([q.new_zeros(1), torch.cumsum(q, 0)])


class _PairList:
    """Pairs of entries with a range of others each, visited one by one in parts."""

    def __init__(self, t: Tensor, entry: Tensor, first: Tensor, count: Tensor) -> None:
        self._t = t
        columns = torch.stack([entry, first, count])
        last = torch.cumsum(count, 0).cpu().numpy()
        total = int(last[-1]) if last.size else 0
        limits = np.searchsorted(last, np.arange(_PAIRS_AT_ONCE, total, _PAIRS_AT_ONCE))
        bounds = np.unique(np.concatenate([[0], limits + 1, [last.size]])).tolist()
        self._parts = [columns[:, a:b] for a, b in pairwise(bounds)]

    def add(self, order: int, q: Tensor, out: Tensor) -> None:
        """Add the kernel sums to `out`."""
        for entry, first, count in self._parts:
            i = torch.repeat_interleave(entry, count)
            begin = torch.repeat_interleave(torch.cumsum(count, 0) - count - first, count)
            j = torch.arange(i.numel(), device=i.device) - begin
            pairs = logistic_derivative(self._t[i] - self._t[j], order)
            out.index_add_(0, i, pairs * q[j])
            out.index_add_(0, j, pairs * q[i])


def _small_blocks(
    t: Tensor, start: NDArray[np.int64], split: NDArray[np.int64], blocks: NDArray[np.intp]
) -> _PairList:
    """The pairs of small blocks among several: each upper entry with all lower ones."""
    n_lower, n_upper = (split - start[:-1])[blocks], (start[1:] - split)[blocks]
    offset = np.arange(n_upper.sum()) - np.repeat(np.cumsum(n_upper) - n_upper, n_upper)
    upper = np.repeat(split[blocks], n_upper) + offset
    first, count = np.repeat(start[:-1][blocks], n_upper), np.repeat(n_lower, n_upper)
    return _PairList(t, *(torch.as_tensor(each, device=t.device) for each in (upper, first, count)))
