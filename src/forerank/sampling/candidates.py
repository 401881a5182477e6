"""Candidates of active sampling, pairs and points, each with a number: its key."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Index, Mask

__all__ = ["Candidates", "Keys"]

Keys = NDArray[np.int64]


class Candidates:
    """All pairs of a positive with a negative row, and all rows as points (pseudo-pairs with the
    origin).

    The pair of the i-th positive and the j-th negative row has the key i * len(negative) + j; the
    points follow the pairs, positive rows first. `first_point` is the smallest key of a point.
    `n_pairs` and `n_points` count the candidates of each kind, zero for a kind that has no share of
    the objective (the pairs have gamma). `drawn` has the keys drawn so far, ascending.
    """

    def __init__(
        self, positive: Mask, gamma: float | Literal["uniform"], eligible: Mask | None
    ) -> None:
        rows = np.arange(positive.size) if eligible is None else np.flatnonzero(eligible)
        in_positive_class = positive[rows]
        self.positive, self.negative = rows[in_positive_class], rows[~in_positive_class]
        self.first_point = self.positive.size * self.negative.size
        n_pairs, n_points = self.first_point, rows.size
        self.gamma = n_pairs / (n_pairs + n_points) if gamma == "uniform" else float(gamma)
        self.n_pairs = n_pairs if self.gamma > 0.0 else 0
        self.n_points = n_points if self.gamma < 1.0 else 0
        self.pair_share = self.gamma / max(self.n_pairs, 1)
        self.point_share = (1.0 - self.gamma) / max(self.n_points, 1)
        self.drawn: Keys = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return self.n_pairs + self.n_points

    def rows_of(self, keys: Keys) -> tuple[Index, Index]:
        """The preferred row and the other row of each candidate; -1 is the origin."""
        plus, minus = np.full(keys.size, -1, dtype=np.intp), np.full(keys.size, -1, dtype=np.intp)
        pair = keys < self.first_point
        plus[pair] = self.positive[keys[pair] // self.negative.size]
        minus[pair] = self.negative[keys[pair] % self.negative.size]
        point = keys - self.first_point
        positive = ~pair & (point < self.positive.size)
        negative = ~pair & ~positive
        plus[positive] = self.positive[point[positive]]
        minus[negative] = self.negative[point[negative] - self.positive.size]
        return plus, minus

    def is_new(self, keys: Keys) -> Mask:
        """Whether each candidate has not been drawn yet."""
        index = np.searchsorted(self.drawn, keys)
        found = index < self.drawn.size
        found[found] = self.drawn[index[found]] == keys[found]
        return ~found

    def mark_drawn(self, keys: Keys) -> None:
        """Add to the candidates drawn so far."""
        self.drawn = np.sort(np.concatenate([self.drawn, keys]))
