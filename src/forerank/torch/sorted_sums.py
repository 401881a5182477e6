"""Sums over pairs of piecewise polynomial losses, by one sort: (1 - t)^degree, t = s_i - s_j.

For the hinges only pairs with t < 1 count; for the squared loss all do. At sorted scores the active
lower entries of an upper one are a suffix, and the active upper entries of a lower one a prefix;
sums of charges, of charges times scores and times their squares over them are differences of
cumulated sums. The position at which a suffix begins decides about both sides, so that a pair
counts for both rows or for none. A pair exactly on the margin is not active, as in
`forerank.pairsums.hinge`.

Cost: N log N for the sort, then N for every kernel. Cumulated sums are in double precision and
relative to a whole number near the mean score, so that errors are about 1e-16 of the squared span
of the scores.
"""

from math import factorial

import torch
from torch import Tensor

from forerank.torch.blocks import TensorPairs

__all__ = ["SortedSums"]


class SortedSums:
    """Sums of the derivatives of max(0, 1 - t)^degree (or, with `everywhere`, of (1 - t)^degree)
    over the other half of each entry's block, at scores t of the entries.
    """

    def __init__(
        self, pairs: TensorPairs, t: Tensor, degree: int, *, everywhere: bool = False
    ) -> None:
        self._degree, self._everywhere = degree, everywhere
        ascending, order = _sorted_entries(pairs, t)
        self._order, self._upper = order, pairs.upper[order]
        n = t.numel()
        begin = torch.zeros(n, dtype=torch.int64, device=t.device)
        end = torch.full_like(begin, n)
        if pairs.block is not None and pairs.start is not None:
            start = torch.as_tensor(pairs.start, device=t.device)
            block = pairs.block[order]
            begin, end = start[block], start[block + 1]
        self._begin, self._end = begin, end
        if everywhere:
            self._suffix, self._prefix = begin, end
        else:
            # The slope of the hinge jumps on the margin, so that its last digit decides.
            limit = _margin_limit(ascending) if degree == 1 else ascending - 1.0
            self._suffix = _first_above(ascending, limit, begin, end, pairs)
            # The entries whose suffix begins at k or before are those for which entry k counts.
            place = torch.arange(n, device=t.device)
            self._prefix = torch.searchsorted(self._suffix, place, right=True)
        centre = torch.round(ascending.mean()) if n else ascending.new_zeros(())
        self._s = ascending - centre

    def kernel(self, order: int, q: Tensor) -> Tensor:
        """sum_o q_o K^(order)(s_upper - s_lower) over the other half, for each entry."""
        power = self._degree - order
        if power < 0 or q.numel() == 0:
            return torch.zeros_like(q)
        q = q[self._order]
        sums = torch.where(
            self._upper,
            self._sum_at_uppers(self._lower_sums(q, power), power),
            self._sum_at_lowers(self._upper_sums(q, power), power),
        )
        return self._unsorted(self._factor(order) * sums)

    def value_and_slopes(self, w: Tensor) -> tuple[Tensor, Tensor]:
        """The sum of w_i w_j K over all pairs, and the slope sums of `kernel(1, w)`."""
        if w.numel() == 0:
            return w.sum(), torch.zeros_like(w)
        w, power = w[self._order], self._degree
        lower = self._lower_sums(w, power)
        losses = self._sum_at_uppers(lower, power)
        value = torch.where(self._upper, w * losses, 0.0).sum()
        slopes = torch.where(
            self._upper,
            self._sum_at_uppers(lower, power - 1),
            self._sum_at_lowers(self._upper_sums(w, power - 1), power - 1),
        )
        return value, self._unsorted(self._factor(1) * slopes)

    def _factor(self, order: int) -> float:
        sign = -1.0 if order % 2 else 1.0
        return sign * factorial(self._degree) / factorial(self._degree - order)

    def _unsorted(self, by_place: Tensor) -> Tensor:
        out = torch.empty_like(by_place)
        out[self._order] = by_place
        return out

    def _lower_sums(self, q: Tensor, power: int) -> list[Tensor]:
        """Moments 0 .. power of the active lower entries of each entry."""
        q = torch.where(self._upper, 0.0, q)
        out = []
        for _ in range(power + 1):
            cumulated = _cumulated(q)
            out.append(cumulated[self._end] - cumulated[self._suffix])
            q = q * self._s
        return out

    def _upper_sums(self, q: Tensor, power: int) -> list[Tensor]:
        """Moments 0 .. power of the active upper entries of each entry."""
        q = torch.where(self._upper, q, 0.0)
        out = []
        for _ in range(power + 1):
            cumulated = _cumulated(q)
            out.append(cumulated[self._prefix] - cumulated[self._begin])
            q = q * self._s
        return out

    def _sum_at_uppers(self, moments: list[Tensor], power: int) -> Tensor:
        """sum_j q_j (1 - s_i + s_j)^power from moments of the lower entries j."""
        a = 1.0 - self._s
        if power == 0:
            return moments[0]
        if power == 1:
            return a * moments[0] + moments[1]
        return a * (a * moments[0] + 2.0 * moments[1]) + moments[2]

    def _sum_at_lowers(self, moments: list[Tensor], power: int) -> Tensor:
        """sum_i q_i (1 - s_i + s_j)^power from moments of the upper entries i."""
        b = 1.0 + self._s
        if power == 0:
            return moments[0]
        if power == 1:
            return b * moments[0] - moments[1]
        return b * (b * moments[0] - 2.0 * moments[1]) + moments[2]


def _cumulated(q: Tensor) -> Tensor:
    """Sums of the first 0, 1, .. n numbers."""
    out = q.new_zeros(q.numel() + 1)
    torch.cumsum(q, 0, out=out[1:])
    return out


def _sorted_entries(pairs: TensorPairs, t: Tensor) -> tuple[Tensor, Tensor]:
    """Scores and entries sorted by block, then by score."""
    ascending, order = torch.sort(t)
    if pairs.block is None:
        return ascending, order
    order = order[torch.argsort(pairs.block[order], stable=True)]
    return t[order], order


def _margin_limit(s: Tensor) -> Tensor:
    """For each s, the largest number v for which s - v, as it is rounded, is at least one."""
    high = s - 1.0
    back = high + 1.0
    low = (s - back) - (1.0 - (back - high))  # the rounding error of s - 1
    limit = high + (low + 2.0**-54)  # one minus a quarter of its last digit is rounded to one
    above = torch.nextafter(limit, torch.full_like(limit, torch.inf))
    below = torch.nextafter(limit, torch.full_like(limit, -torch.inf))
    limit = torch.where(s - limit >= 1.0, limit, below)
    return torch.where(s - above >= 1.0, above, limit)


def _first_above(
    ascending: Tensor, limit: Tensor, begin: Tensor, end: Tensor, pairs: TensorPairs
) -> Tensor:
    """The first place of the own block with a score above the limit, or its end."""
    if pairs.block is None:
        return torch.searchsorted(ascending, limit, right=True)
    low, high = begin, end
    for _ in range(ascending.numel().bit_length()):
        middle = (low + high) // 2
        is_above = ascending[middle.clamp(max=ascending.numel() - 1)] > limit
        open_ = low < high
        low, high = (
            torch.where(open_ & ~is_above, middle + 1, low),
            torch.where(open_ & is_above, middle, high),
        )
    return low
