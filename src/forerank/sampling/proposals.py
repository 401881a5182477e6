"""Proposals for soft draws: random candidates that arrive at a known total rate, and the
probability of accepting each.

The rate of a candidate is its share of the objective times the probability of the strategy. A set
of candidates with a common bound on their rates is proposed uniformly, at the sum of the bounds,
and a proposal is accepted with probability rate / bound (maths/sampling.md, "Drawing without
replacement").

Both classes have `rate`, the total rate at which proposals arrive; `enumerated` and
`enumerated_rate`, candidates that are given one by one instead, each with its rate; and
`propose(n)`: keys of n proposals, the probability of accepting each, and its rate.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import count as count_from
from math import inf

import numpy as np

from forerank._kernels import compiled
from forerank._sorting import argsort
from forerank._typing import Index, Vector
from forerank.design import Design
from forerank.sampling.candidates import Candidates, Keys
from forerank.sampling.probabilities import PROBABILITIES, Interval, Probability

__all__ = ["MOST_DRAWN", "IntervalProposals", "UniformProposals"]

# Candidates of an interval are enumerated, not proposed at random, if there are at most this many
# times those drawn from it before and to be drawn now: few proposals would be new.
MOST_DRAWN = 4
# Intervals of further depths are added until the rest of the line has at most this share of the
# sum of the bounds so far.
_LARGEST_REST = 0.1
# Depth from which on all probabilities are zero in double precision.
_DEEPEST = 1024


class UniformProposals:
    """Proposals from all candidates, with one bound; only proposed rows are scored."""

    rate = 1.0

    def __init__(
        self,
        candidates: Candidates,
        design: Design,
        w: Vector | None,
        constant: float,
        probability: Probability,
        random: np.random.Generator,
    ) -> None:
        self._candidates, self._design = candidates, design
        self._w, self._constant = w, constant
        self._probability, self._random = probability, random
        self.enumerated, self.enumerated_rate = np.empty(0, dtype=np.int64), np.empty(0)

    def propose(self, n: int) -> tuple[Keys, Vector, Vector]:
        candidates, random = self._candidates, self._random
        point = random.random(n) >= candidates.gamma
        n_points = int(np.count_nonzero(point))
        keys = np.empty(n, dtype=np.int64)
        points = random.integers(max(candidates.n_points, 1), size=n_points)
        keys[point] = candidates.first_point + points
        keys[~point] = random.integers(max(candidates.n_pairs, 1), size=n - n_points)
        accepted = np.ones(n)
        if self._w is not None and self._probability is not PROBABILITIES["random"]:
            accepted = self._probability.acceptance(self._differences(keys, self._w))
        return keys, accepted, candidates.share(point) * accepted

    def _differences(self, keys: Keys, w: Vector) -> Vector:
        plus, minus = self._candidates.rows_of(keys)
        rows = self._design.rows
        if self._candidates.gamma == 1.0:
            return rows(plus).scores(w) - rows(minus).scores(w)
        # The origin has the score that makes up for the constant of the points.
        above, below = np.full(keys.size, -self._constant), np.full(keys.size, -self._constant)
        above[plus >= 0] = rows(plus[plus >= 0]).scores(w)
        below[minus >= 0] = rows(minus[minus >= 0]).scores(w)
        return above - below


class IntervalProposals:
    """Proposals from intervals of the score difference, each with a bound of its own.

    All rows are scored and sorted. The candidates of an interval are then counted, and drawn
    uniformly, in one pass over the sorted scores.
    """

    def __init__(
        self,
        candidates: Candidates,
        scores: Vector,
        constant: float,
        probability: Probability,
        random: np.random.Generator,
        n: int,
    ) -> None:
        self._probability, self._random = probability, random
        self._open: list[tuple[_CandidateKind, Interval, int]] = []
        bounds, enumerated, rates = [], [np.empty(0, dtype=np.int64)], [np.empty(0)]
        for kind, interval, bound in self._cover(_kinds(candidates, scores, constant)):
            size = kind.count(*interval)
            if size <= MOST_DRAWN * (kind.n_drawn_in(*interval) + n):
                keys, d = kind.at(*interval, np.arange(size))
                new = candidates.is_new(keys)
                enumerated.append(keys[new])
                rates.append(kind.share * probability.acceptance(d[new]))
            else:
                self._open.append((kind, interval, size))
                bounds.append(bound)
        self.enumerated, self.enumerated_rate = np.concatenate(enumerated), np.concatenate(rates)
        self._bounds = np.array(bounds)
        self._rates = np.array([kind.share * size for kind, _, size in self._open]) * self._bounds
        self.rate = float(self._rates.sum())

    def propose(self, n: int) -> tuple[Keys, Vector, Vector]:
        per_interval = self._random.multinomial(n, self._rates / self.rate)
        keys, probability, rate = [], [], []
        intervals = zip(self._open, self._bounds, per_interval, strict=True)
        for (kind, interval, size), bound, m in intervals:
            if m:
                ranks = np.sort(self._random.integers(size, size=m))
                new, d = kind.at(*interval, ranks)
                accepted = self._probability.acceptance(d)
                keys.append(new)
                probability.append(accepted / bound)
                rate.append(kind.share * accepted)
        # Proposals of different intervals arrive in random order.
        order = self._random.permutation(n)
        return tuple(np.concatenate(parts)[order] for parts in (keys, probability, rate))  # type: ignore[return-value]

    def _cover(
        self, kinds: list["_CandidateKind"]
    ) -> Iterator[tuple["_CandidateKind", Interval, float]]:
        """Intervals that hold every candidate of positive probability, with the highest
        probability in each.
        """
        so_far = 0.0
        for depth in count_from(self._first_depth(kinds)):
            beyond = self._with_bounds(kinds, self._probability.beyond(depth))
            rest = sum(kind.share * kind.count(*part) * bound for kind, part, bound in beyond)
            if rest <= _LARGEST_REST * so_far:
                yield from (part for part in beyond if rest > 0.0 and part[0].count(*part[1]))
                return
            for part in self._with_bounds(kinds, self._probability.intervals(depth)):
                kind, interval, bound = part
                if kind.count(*interval):
                    so_far += kind.share * kind.count(*interval) * bound
                    yield part

    def _with_bounds(
        self, kinds: list["_CandidateKind"], intervals: list[Interval]
    ) -> list[tuple["_CandidateKind", Interval, float]]:
        highest = [float(self._probability.acceptance(np.array(part)).max()) for part in intervals]
        bounded = list(zip(intervals, highest, strict=True))
        return [(kind, interval, bound) for kind in kinds for interval, bound in bounded]

    def _first_depth(self, kinds: list["_CandidateKind"]) -> int:
        """The largest depth before which no interval holds a candidate: with widely spread scores
        the first hundreds are empty.
        """

        def n_beyond(depth: int) -> int:
            intervals = self._probability.beyond(depth)
            return sum(kind.count(*interval) for kind in kinds for interval in intervals)

        n_all = n_beyond(0)
        low, high = 0, 1
        while n_beyond(high) == n_all and high < _DEEPEST:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if n_beyond(middle) == n_all else (low, middle)
        return low


@compiled
def _count_below(p, p_starts, q, q_starts, edge):  # type: ignore[no-untyped-def]
    """Number of pairs with p_i - q_j < edge; both ascending within groups."""
    total = 0
    for g in range(p_starts.size - 1):
        j, last = q_starts[g], q_starts[g + 1]
        for i in range(p_starts[g], p_starts[g + 1]):
            while j < last and p[i] - q[j] >= edge:
                j += 1
            total += last - j
    return total


@compiled
def _pairs_at(p, p_starts, q, q_starts, low, high, ranks):  # type: ignore[no-untyped-def]
    """The pairs with low <= p_i - q_j < high that have these ranks (ascending) among all such
    pairs.
    """
    i_of, j_of = np.empty(ranks.size, dtype=np.intp), np.empty(ranks.size, dtype=np.intp)
    passed = k = 0
    for g in range(p_starts.size - 1):
        begin = end = q_starts[g]
        last = q_starts[g + 1]
        for i in range(p_starts[g], p_starts[g + 1]):
            while begin < last and p[i] - q[begin] >= high:
                begin += 1
            while end < last and p[i] - q[end] >= low:
                end += 1
            while k < ranks.size and ranks[k] < passed + (end - begin):
                i_of[k] = i
                j_of[k] = begin + (ranks[k] - passed)
                k += 1
            passed += end - begin
        if k == ranks.size:
            break
    return i_of, j_of


class _CandidateKind(ABC):
    """The pairs, or the points, by their score difference; intervals are [low, high)."""

    def __init__(self, share: float, d_drawn: Vector) -> None:
        self.share, self._d_drawn = share, d_drawn

    @abstractmethod
    def count(self, low: float, high: float) -> int:
        """Number of candidates in the interval."""

    @abstractmethod
    def at(self, low: float, high: float, ranks: Index) -> tuple[Keys, Vector]:
        """Keys and score differences of the candidates with these ranks in the interval."""

    def n_drawn_in(self, low: float, high: float) -> int:
        return int(np.count_nonzero((self._d_drawn >= low) & (self._d_drawn < high)))


class _Pairs(_CandidateKind):
    def __init__(self, candidates: Candidates, p: Vector, q: Vector, d_drawn: Vector) -> None:
        super().__init__(candidates.pair_share, d_drawn)
        self._i, self._j = candidates.ascending(p, q)
        self._p, self._q = p[self._i], q[self._j]
        self._base = candidates.base
        starts = candidates.positive_starts, candidates.negative_starts
        self._sorted = self._p, starts[0], self._q, starts[1]
        self._below: dict[float, int] = {-inf: 0, inf: candidates.n_pairs}

    def count(self, low: float, high: float) -> int:
        for edge in (low, high):
            if edge not in self._below:
                self._below[edge] = _count_below(*self._sorted, edge)
        return self._below[high] - self._below[low]

    def at(self, low: float, high: float, ranks: Index) -> tuple[Keys, Vector]:
        i, j = _pairs_at(*self._sorted, low, high, ranks)
        return self._base[self._i[i]] + self._j[j], self._p[i] - self._q[j]


class _Points(_CandidateKind):
    def __init__(self, d: Vector, share: float, first_key: int, d_drawn: Vector) -> None:
        super().__init__(share, d_drawn)
        self._order = argsort(d)
        self._d = d[self._order]
        self._first_key = first_key

    def count(self, low: float, high: float) -> int:
        return int(np.searchsorted(self._d, high) - np.searchsorted(self._d, low))

    def at(self, low: float, high: float, ranks: Index) -> tuple[Keys, Vector]:
        index = np.searchsorted(self._d, low) + ranks
        return self._first_key + self._order[index].astype(np.int64), self._d[index]


def _kinds(candidates: Candidates, scores: Vector, constant: float) -> list[_CandidateKind]:
    p, q = scores[candidates.positive], scores[candidates.negative]
    plus, minus = candidates.rows_of(candidates.drawn)
    # Row number -1 is the origin, whose score makes up for the constant of the points.
    with_origin = np.append(scores, -constant)
    d_drawn = with_origin[plus] - with_origin[minus]
    point = candidates.drawn >= candidates.first_point
    kinds: list[_CandidateKind] = []
    if candidates.n_pairs:
        kinds.append(_Pairs(candidates, p, q, d_drawn[~point]))
    if candidates.n_points:
        d = np.concatenate([p + constant, -constant - q])
        share, first = candidates.point_share, candidates.first_point
        kinds.append(_Points(d, share, first, d_drawn[point]))
    return kinds
