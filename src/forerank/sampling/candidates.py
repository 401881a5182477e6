"""Candidates of active sampling, pairs and points, each with a number: its key."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forerank._sorting import argsort, sort_by_group
from forerank._typing import Index, Mask, Vector

__all__ = ["Candidates", "Keys"]

Keys = NDArray[np.int64]


class Candidates:
    """All pairs of a positive with a negative row of the same group, and all rows as points
    (pseudo-pairs with the origin). Without groups, all rows are one group.

    `positive` and `negative` hold row numbers, sorted by group; group g has the positions
    `positive_starts[g]` to `positive_starts[g + 1]` in the first, and likewise in the second. The
    pair of the i-th positive and the j-th negative row has the key `base[i] + j`: keys number the
    pairs of the first positive row, then those of the second, and so on. The points follow the
    pairs, positive rows first. `first_point` is the smallest key of a point. `n_pairs` and
    `n_points` count the candidates of each kind, zero for a kind that has no share of the objective
    (the pairs have gamma). `drawn` has the keys drawn so far, ascending.

    With grades, a row is in several sets of pairs, in some as the upper and in some as the lower
    one. `positive` and `group` then have an entry for each of these places, and `rows_of_entries`
    the row of each entry; there are no points.
    """

    def __init__(
        self,
        positive: Mask,
        gamma: float | Literal["uniform"],
        eligible: Mask | None,
        group: Index | None = None,
        rows_of_entries: Index | None = None,
    ) -> None:
        if rows_of_entries is not None and gamma != 1.0:
            raise ValueError("Points have two classes: with grades gamma must be 1.")
        rows = np.arange(positive.size) if eligible is None else np.flatnonzero(eligible)
        if group is not None:
            rows = rows[np.argsort(group[rows], kind="stable")]
        in_positive_class = positive[rows]
        self.positive, self.negative = rows[in_positive_class], rows[~in_positive_class]
        self._number_pairs(group)
        n_pairs, n_points = self.first_point, rows.size
        self.gamma = n_pairs / (n_pairs + n_points) if gamma == "uniform" else float(gamma)
        self.n_pairs = n_pairs if self.gamma > 0.0 else 0
        self.n_points = n_points if self.gamma < 1.0 else 0
        self.pair_share = self.gamma / max(self.n_pairs, 1)
        self.point_share = (1.0 - self.gamma) / max(self.n_points, 1)
        self.drawn: Keys = np.empty(0, dtype=np.int64)
        if rows_of_entries is not None:
            self.positive = rows_of_entries[self.positive].astype(np.intp)
            self.negative = rows_of_entries[self.negative].astype(np.intp)

    def _number_pairs(self, group: Index | None) -> None:
        if group is None:
            self.positive_starts = np.array([0, self.positive.size])
            self.negative_starts = np.array([0, self.negative.size])
        else:
            edges = np.arange(int(group.max()) + 2)
            self.positive_starts = np.searchsorted(group[self.positive], edges)
            self.negative_starts = np.searchsorted(group[self.negative], edges)
        begin, end = self.negatives_of_positives()
        last = np.cumsum(end - begin, dtype=np.int64)
        self._first_key = last - (end - begin)
        self.base: Keys = self._first_key - begin
        self.first_point = int(last[-1]) if last.size else 0

    @property
    def grouped(self) -> bool:
        """Whether there is more than one group."""
        return self.positive_starts.size > 2

    def negatives_of_positives(self) -> tuple[Index, Index]:
        """For each positive row, the positions at which the negative rows of its group begin and
        end.
        """
        sizes = np.diff(self.positive_starts)
        starts = self.negative_starts
        return np.repeat(starts[:-1], sizes), np.repeat(starts[1:], sizes)

    def ascending(self, p: Vector, q: Vector) -> tuple[Index, Index]:
        """Positions of the positive and the negative rows by group, and by the scores p and q in a
        group.
        """
        if not self.grouped:
            return argsort(p), argsort(q)
        numbers = np.arange(self.positive_starts.size - 1)
        starts = self.positive_starts, self.negative_starts
        i, j = (
            sort_by_group(argsort(s), np.repeat(numbers, np.diff(first)), first[:-1])
            for s, first in zip((p, q), starts, strict=True)
        )
        return i, j

    def share(self, is_point: Mask) -> Vector:
        """The share of the objective that pairs or points have."""
        return np.where(is_point, self.point_share, self.pair_share)

    def __len__(self) -> int:
        return self.n_pairs + self.n_points

    def rows_of(self, keys: Keys) -> tuple[Index, Index]:
        """The preferred row and the other row of each candidate; -1 is the origin."""
        plus, minus = np.full(keys.size, -1, dtype=np.intp), np.full(keys.size, -1, dtype=np.intp)
        pair = keys < self.first_point
        i = self._positive_of(keys[pair])
        plus[pair] = self.positive[i]
        minus[pair] = self.negative[keys[pair] - self.base[i]]
        point = keys - self.first_point
        positive = ~pair & (point < self.positive.size)
        negative = ~pair & ~positive
        plus[positive] = self.positive[point[positive]]
        minus[negative] = self.negative[point[negative] - self.positive.size]
        return plus, minus

    def _positive_of(self, pair_keys: Keys) -> Index:
        """Positions of the positive rows of some pairs."""
        if not self.grouped:
            return pair_keys // max(self.negative.size, 1)
        return np.searchsorted(self._first_key, pair_keys, side="right") - 1

    def is_new(self, keys: Keys) -> Mask:
        """Whether each candidate has not been drawn yet."""
        index = np.searchsorted(self.drawn, keys)
        found = index < self.drawn.size
        found[found] = self.drawn[index[found]] == keys[found]
        return ~found

    def mark_drawn(self, keys: Keys) -> None:
        """Add to the candidates drawn so far."""
        self.drawn = np.sort(np.concatenate([self.drawn, keys]))
