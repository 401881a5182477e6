"""Active sampling of pairs and points: which few of very many candidates to train on next
(shen2013).

The candidates are the pairs of a positive with a negative row and, for the combined ranking and
classification of section 3.4, the rows themselves as pseudo-pairs with the origin. With d the score
difference of a candidate under the current weights (the score of a positive row, minus the score of
a negative one), a strategy is

    random          every candidate alike soft-close      with probability proportional to  2 / (1 +
    exp |d|) soft-correct    with probability proportional to  1 - 2 / (1 + exp [1 - d]_+)  =
    tanh([1 - d]_+ / 2) hard-close      the smallest |d| first hard-correct    the smallest d first,
    which are the largest [1 - d]_+

times gamma / (number of pairs) for pairs and (1 - gamma) / (number of points) for points. A
candidate is drawn at most once; what has been drawn is stored, what has not been is not.

How soft draws avoid waiting. Give every candidate a clock that rings at an exponential time, at a
rate proportional to its probability: those that ring first are a sample without replacement, in the
order of drawing. The clocks need not be made one by one. Where many candidates share a bound on
their rate, proposals arrive from all of them together, at the sum of the bounds, and one is kept
with probability rate / bound. If most candidates are likely enough, one bound serves for all of
them, and only rows that are proposed need a score. If not, all rows are scored and sorted; the
candidates with d in an interval are then counted, and drawn evenly, by one walk over the sorted
scores, and a few intervals, on each of which the rate is within a factor of about two of its bound,
leave little to reject (maths/sampling.md).
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count as count_from
from math import inf
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from forerank._kernels import compiled
from forerank._sorting import argsort
from forerank._typing import Index, Vector
from forerank.design import Design

__all__ = ["STRATEGIES", "Drawn", "PairSampler"]

Keys = NDArray[np.int64]
Interval = tuple[float, float]

STRATEGIES = ("random", "soft-close", "soft-correct", "hard-close", "hard-correct")

# Candidates of an interval are listed, and not proposed at random, once this many times the ones
# drawn from it (and to be drawn) exceed them: few proposals would be new.
_LISTED = 4
# Intervals are cut finer until the rest has at most this share of the bounds so far.
_REST = 0.1
# Beyond this, probabilities are zero in double precision.
_DEEPEST = 1024
# Cells wider than this part of the scores' span hold too many rows to be worth a look.
_WIDE = 1e-3
# Values looked at to guess where the lowest ones end.
_GLANCE = 4096
# Proposals at a time.
_SMALLEST_BLOCK, _LARGEST_BLOCK = 64, 2**18


class _Soft(Protocol):
    """How likely a candidate is, given its score difference, and a cover of the line by intervals
    of similar rates.
    """

    def acceptance(self, d: Vector) -> Vector: ...

    def intervals(self, depth: int) -> list[Interval]:
        """The intervals [low, high) at this depth; rates fall with the depth."""

    def beyond(self, depth: int) -> list[Interval]:
        """What the intervals of all smaller depths leave, without those of rate zero."""


class _Close:
    def acceptance(self, d: Vector) -> Vector:
        with np.errstate(over="ignore"):
            return 2.0 / (1.0 + np.exp(np.abs(d)))

    def intervals(self, depth: int) -> list[Interval]:
        return [(float(depth), depth + 1.0), (-depth - 1.0, -float(depth))]

    def beyond(self, depth: int) -> list[Interval]:
        return [(float(depth), inf), (-inf, -float(depth))]


class _Correct:
    def acceptance(self, d: Vector) -> Vector:
        return np.tanh(0.5 * np.maximum(1.0 - d, 0.0))

    def intervals(self, depth: int) -> list[Interval]:
        # 1 - d from above 4, then halved: 4 to 2, 2 to 1, ...
        return [(1.0 - 2.0 ** (3 - depth) if depth else -inf, 1.0 - 2.0 ** (2 - depth))]

    def beyond(self, depth: int) -> list[Interval]:
        return [(self.intervals(depth)[0][0], 1.0)]


class _Even:
    def acceptance(self, d: Vector) -> Vector:
        return np.ones(d.shape)

    def intervals(self, depth: int) -> list[Interval]:
        return [(-inf, inf)]

    def beyond(self, depth: int) -> list[Interval]:
        return [] if depth else [(-inf, inf)]


_SOFT: dict[str, _Soft] = {"random": _Even(), "soft-close": _Close(), "soft-correct": _Correct()}


@compiled
def _count_below(p, q, edge):  # type: ignore[no-untyped-def]
    """Pairs with p_i - q_j < edge; both ascending."""
    total, j = 0, 0
    for i in range(p.size):
        while j < q.size and p[i] - q[j] >= edge:
            j += 1
        total += q.size - j
    return total


@compiled
def _pairs_at(p, q, low, high, ranks):  # type: ignore[no-untyped-def]
    """The pairs with low <= p_i - q_j < high that stand at these places (ascending) among all such
    pairs.
    """
    i_of, j_of = np.empty(ranks.size, dtype=np.intp), np.empty(ranks.size, dtype=np.intp)
    begin = end = passed = k = 0
    for i in range(p.size):
        while begin < q.size and p[i] - q[begin] >= high:
            begin += 1
        while end < q.size and p[i] - q[end] >= low:
            end += 1
        while k < ranks.size and ranks[k] < passed + (end - begin):
            i_of[k] = i
            j_of[k] = begin + (ranks[k] - passed)
            k += 1
        if k == ranks.size:
            break
        passed += end - begin
    return i_of, j_of


@compiled
def _is_drawn(key, drawn):  # type: ignore[no-untyped-def]
    place = np.searchsorted(drawn, key)
    return place < drawn.size and drawn[place] == key


@compiled
def _smallest_differences(p, q, p_rows, q_rows, n_q, n_wanted, drawn):  # type: ignore[no-untyped-def]
    """The pairs of smallest p_i - q_j that have not been drawn; p ascending, q descending.

    A pair's successors are never smaller, so the smallest is always on the heap.
    """
    keys = np.empty(n_wanted, dtype=np.int64)
    heap = [(p[0] - q[0], 0, 0)]
    found = 0
    while found < n_wanted and len(heap) > 0:
        _, i, j = heapq.heappop(heap)
        if j + 1 < q.size:
            heapq.heappush(heap, (p[i] - q[j + 1], i, j + 1))
        if j == 0 and i + 1 < p.size:
            heapq.heappush(heap, (p[i + 1] - q[0], i + 1, 0))
        key = np.int64(p_rows[i]) * n_q + q_rows[j]
        if not _is_drawn(key, drawn):
            keys[found] = key
            found += 1
    return keys[:found]


@compiled
def _mark(s, low, per_unit, bits):  # type: ignore[no-untyped-def]
    """Mark the cells that hold some s_i in a bitmap, modulo its size."""
    mask = np.int64(bits.size * 64 - 1)
    bits[:] = 0
    for i in range(s.size):
        cell = np.int64((s[i] - low) * per_unit) & mask
        bits[cell >> 6] |= np.uint64(1) << np.uint64(cell & 63)


@compiled
def _with_neighbour(s, low, per_unit, bits):  # type: ignore[no-untyped-def]
    """Indices of the s_i whose cell, or one beside it, is marked: none is missed, and few are there
    by chance.
    """
    mask = np.int64(bits.size * 64 - 1)
    out = np.empty(s.size, dtype=np.intp)
    n = 0
    for i in range(s.size):
        cell = np.int64((s[i] - low) * per_unit) & mask
        bit = cell & 63
        if 0 < bit < 63:
            found = (bits[cell >> 6] >> np.uint64(bit - 1)) & np.uint64(7)
        else:
            found = np.uint64(0)
            for neighbour in range(cell - 1, cell + 2):
                place = neighbour & mask
                found |= (bits[place >> 6] >> np.uint64(place & 63)) & np.uint64(1)
        out[n] = i
        n += found != 0
    return out[:n]


@compiled
def _nearest(p, q):  # type: ignore[no-untyped-def]
    """For each p_i, how many q_j lie below it, and the distance to the nearest; both ascending."""
    below, distance = np.empty(p.size, dtype=np.intp), np.empty(p.size)
    j = 0
    for i in range(p.size):
        while j < q.size and q[j] <= p[i]:
            j += 1
        below[i] = j
        left = p[i] - q[j - 1] if j > 0 else np.inf
        right = q[j] - p[i] if j < q.size else np.inf
        distance[i] = min(left, right)
    return below, distance


@compiled
def _closest_differences(p, below, q, p_rows, q_rows, n_q, n_wanted, drawn):  # type: ignore[no-untyped-def]
    """The pairs of smallest |p_i - q_j| that have not been drawn, and the largest such distance.

    q is ascending; each p_i opens outwards from its place among them.
    """
    keys = np.empty(n_wanted, dtype=np.int64)
    left, right = below - 1, below.copy()
    heap = [(0.0, 0, True)][:0]
    for i in range(p.size):
        if left[i] >= 0:
            heap.append((p[i] - q[left[i]], i, True))
        if right[i] < q.size:
            heap.append((q[right[i]] - p[i], i, False))
    heapq.heapify(heap)
    found, distance = 0, 0.0
    while found < n_wanted and len(heap) > 0:
        distance, i, leftwards = heapq.heappop(heap)
        if leftwards:
            j = left[i]
            left[i] -= 1
            if left[i] >= 0:
                heapq.heappush(heap, (p[i] - q[left[i]], i, True))
        else:
            j = right[i]
            right[i] += 1
            if right[i] < q.size:
                heapq.heappush(heap, (q[right[i]] - p[i], i, False))
        key = np.int64(p_rows[i]) * n_q + q_rows[j]
        if not _is_drawn(key, drawn):
            keys[found] = key
            found += 1
    return keys[:found], distance


@dataclass(frozen=True)
class Drawn:
    """Candidates in the order in which they were drawn.

    Attributes
    ----------
    plus, minus : arrays of int
        The row that should stand ahead and the row that should stand behind; -1 for the origin of a
        pseudo-pair.
    n_rejected : int
        Proposals that were not kept.
    acceptance : float
        The mean probability of keeping a proposal drawn from all candidates, those drawn before
        never being kept; its inverse is the number of proposals that plain rejection would take for
        each one. NaN for hard strategies.
    """

    plus: Index
    minus: Index
    n_rejected: int
    acceptance: float


class _Proposals(Protocol):
    """Candidates that arrive at random at a known total rate, and a list of others with a rate
    each.
    """

    rate: float
    listed: Keys
    listed_rate: Vector

    def propose(self, n: int) -> tuple[Keys, Vector, Vector]:
        """Keys of n proposals, the probability of keeping each, and its rate."""


class PairSampler:
    """Draws pairs and points without replacement, by a strategy, from all those a data set has.

    Parameters
    ----------
    design : Design
        The rows of X.
    positive : array of bool
        Which rows should stand ahead.
    strategy : str
        One of `STRATEGIES`.
    gamma : float or "uniform"
        The share of pairs among the proposals; the rest are points. "uniform" makes all candidates
        alike.
    random_state : numpy.random.Generator
    eligible : array of bool, optional
        Rows that may be drawn; all by default.

    Attributes
    ----------
    gamma : float
    n_pairs, n_points : int
        Candidates of either kind that can be drawn: none where gamma gives them no chance.
    n_drawn : int

    Notes
    -----
    Cost of drawing b: for random and soft strategies the scores of about 2 b / (mean
    acceptance) rows, or, where that is more than there are rows, the scores of all rows and N log
    N; for hard strategies the latter, and a heap of the candidates drawn so far.
    """

    def __init__(
        self,
        design: Design,
        positive: NDArray[np.bool_],
        *,
        strategy: str,
        gamma: float | Literal["uniform"],
        random_state: np.random.Generator,
        eligible: NDArray[np.bool_] | None = None,
    ) -> None:
        rows = np.arange(positive.size) if eligible is None else np.flatnonzero(eligible)
        ahead = positive[rows]
        self._design = design
        self._positive, self._negative = rows[ahead], rows[~ahead]
        self._strategy = strategy
        self._random = random_state
        n_pairs, n_points = self._positive.size * self._negative.size, rows.size
        self.gamma = n_pairs / (n_pairs + n_points) if gamma == "uniform" else float(gamma)
        self.n_pairs = n_pairs if self.gamma > 0.0 else 0
        self.n_points = n_points if self.gamma < 1.0 else 0
        self._drawn = np.empty(0, dtype=np.int64)  # keys in ascending order
        self._is_point = np.empty(0, dtype=bool)  # in the order of drawing, as the next
        self._inverse = np.empty(0)
        # The mean acceptance is close to one until something has been learnt.
        self._acceptance = 1.0
        # How far apart the closest pairs of the last round were.
        self._closest = 0.0

    @property
    def n_candidates(self) -> int:
        """All candidates, drawn or not."""
        return self.n_pairs + self.n_points

    @property
    def n_drawn(self) -> int:
        """Candidates drawn so far."""
        return self._drawn.size

    def draw(self, n: int, w: Vector | None = None) -> Drawn:
        """Draw n candidates that were not drawn before; without weights w, all are alike.

        Raises ValueError where fewer than n are left.
        """
        left = self.n_candidates - self.n_drawn
        if n > left:
            raise ValueError(
                f"{n} candidates were asked for and {left} are left of {self.n_candidates}."
            )
        strategy = "random" if w is None else self._strategy
        if w is not None and strategy.startswith("hard"):
            keys, n_rejected, acceptance = self._hardest(n, w, strategy), 0, float("nan")
            self._note(keys, np.ones(n))
        else:
            keys, n_rejected, acceptance = self._by_arrival(n, w, _SOFT[strategy])
            if keys.size < n:
                # All that are left have probability zero. They are as good as each other.
                more, more_rejected, _ = self._by_arrival(n - keys.size, None, _SOFT["random"])
                keys, n_rejected = np.concatenate([keys, more]), n_rejected + more_rejected
        return Drawn(*self._rows_of(keys), n_rejected, acceptance)

    def importance(self) -> Vector:
        """What each drawn candidate stands for, in the order of drawing, so that sums over them are
        unbiased.

        With M of N candidates drawn, the m-th with probability q_m among those then left, and t_m
        its share of the objective, gamma / n_pairs or (1 - gamma) / n_points,

            u_m = N t_m (1 + (N - M) / (N - m) (1 / ((N - m + 1) q_m) - 1))
            (maths/sampling.md, eqs. 2, 3)

        and the mean of u_m f_m over the sample has the expectation gamma mean(f over pairs) + (1 -
        gamma) mean(f over points). With M much smaller than N this is t_m / q_m, the inverse
        probability of shen2013, section 3.3; with all candidates drawn it is the objective itself.
        Hard strategies have no probabilities, and their estimate is biased: all drawn pairs count
        alike, and all drawn points, gamma and 1 - gamma together.
        """
        N, M = self.n_candidates, self.n_drawn
        if self._strategy.startswith("hard"):
            n_points = int(np.count_nonzero(self._is_point))
            return np.where(
                self._is_point,
                M * (1.0 - self.gamma) / max(n_points, 1),
                M * self.gamma / max(M - n_points, 1),
            )
        m = np.arange(1, M + 1)
        left = np.maximum(N - m, 1)
        share = np.full(M, self.gamma / max(self.n_pairs, 1))
        share[self._is_point] = (1.0 - self.gamma) / max(self.n_points, 1)
        return N * share * (1.0 + (N - M) / left * (self._inverse - 1.0))

    def _note(self, keys: Keys, inverse: Vector) -> None:
        self._drawn = np.sort(np.concatenate([self._drawn, keys]))
        self._is_point = np.concatenate([self._is_point, keys >= self._n_all_pairs])
        self._inverse = np.concatenate([self._inverse, inverse])

    # Candidates are numbered: pair (i, j) of the lists of positive and negative rows is i *
    # len(negative) + j, and the points follow the pairs, positive ones first.

    @property
    def _n_all_pairs(self) -> int:
        return self._positive.size * self._negative.size

    def _rows_of(self, keys: Keys) -> tuple[Index, Index]:
        """The preferred row and the other one of each candidate, -1 for the origin."""
        plus, minus = np.full(keys.size, -1, dtype=np.intp), np.full(keys.size, -1, dtype=np.intp)
        pair = keys < self._n_all_pairs
        plus[pair] = self._positive[keys[pair] // self._negative.size]
        minus[pair] = self._negative[keys[pair] % self._negative.size]
        point = keys - self._n_all_pairs
        ahead = ~pair & (point < self._positive.size)
        behind = ~pair & ~ahead
        plus[ahead] = self._positive[point[ahead]]
        minus[behind] = self._negative[point[behind] - self._positive.size]
        return plus, minus

    def _unseen(self, keys: Keys) -> NDArray[np.bool_]:
        place = np.searchsorted(self._drawn, keys)
        seen = place < self._drawn.size
        seen[seen] = self._drawn[place[seen]] == keys[seen]
        return ~seen

    def _by_arrival(self, n: int, w: Vector | None, soft: _Soft) -> tuple[Keys, int, float]:
        """The n candidates whose clocks ring first, how many proposals were not kept, and the mean
        acceptance.

        Fewer than n where all others have rate zero.
        """
        n_points_drawn = int(np.count_nonzero(self._is_point))
        crowded = _LISTED * (self.n_drawn - n_points_drawn + n) > self.n_pairs > 0
        crowded |= _LISTED * (n_points_drawn + n) > self.n_points > 0
        if not crowded and 2 * n <= self._acceptance * self._design.n_rows:
            arrived = self._first_arrivals(_Anywhere(self, w, soft), n, most=self._design.n_rows)
            if arrived is not None:
                return arrived
        arrived = self._first_arrivals(_InIntervals(self, w, soft, n), n)
        assert arrived is not None
        return arrived

    def _first_arrivals(
        self, proposals: _Proposals, n: int, most: int | None = None
    ) -> tuple[Keys, int, float] | None:
        """Run the clocks until n have rung; None if that takes more than `most` proposals."""
        random = self._random
        ringing = proposals.listed_rate > 0.0
        keys, rates = proposals.listed[ringing], proposals.listed_rate[ringing]
        times = random.exponential(size=keys.size) / rates
        listed_total = float(rates.sum())
        now, n_proposed, n_kept, probable = 0.0, 0, 0, 0.0
        guess = self._acceptance if most else 0.5
        while proposals.rate > 0.0:
            n_missing = n - np.count_nonzero(times <= now)
            if n_missing <= 0:
                break
            if most and n_proposed > most:
                return None
            block = int(
                np.clip(1.1 * n_missing / max(guess, 1e-9) + 8, _SMALLEST_BLOCK, _LARGEST_BLOCK)
            )
            new, probability, rate = proposals.propose(block)
            probability = np.where(self._unseen(new), probability, 0.0)
            kept = np.flatnonzero(random.random(block) < probability)
            arrival = now + np.cumsum(random.exponential(size=block)) / proposals.rate
            keys, first = np.unique(np.concatenate([keys, new[kept]]), return_index=True)
            times = np.concatenate([times, arrival[kept]])[
                first
            ]  # a pair proposed again has arrived before
            rates = np.concatenate([rates, rate[kept]])[first]
            now = arrival[-1]
            n_proposed += block
            n_kept += kept.size
            probable += probability.sum()
            guess = max(probable, 1.0) / n_proposed
        total = listed_total + (
            float(proposals.rate * probable) / n_proposed if n_proposed else 0.0
        )
        order = np.argsort(times)[:n]
        self._note(keys[order], self._inverse_probability(rates[order], total))
        if total > 0.0:
            self._acceptance = total
        return keys[order], n_proposed - n_kept, total

    def _inverse_probability(self, rates: Vector, total: float) -> Vector:
        """1 / ((N - m + 1) q_m) for candidates drawn one after the other, where `total` was the sum
        of all rates.
        """
        # What is left shrinks by what was drawn just before. Where the total was estimated, it may
        # fall short.
        left = np.maximum(total - np.cumsum(rates) + rates, rates)
        m = self.n_drawn + np.arange(1, rates.size + 1)
        return left / (rates * (self.n_candidates - m + 1))

    def _hardest(self, n: int, w: Vector, strategy: str) -> Keys:
        points_drawn = self._drawn[self._drawn >= self._n_all_pairs]
        pairs_left = self.n_pairs - (self.n_drawn - points_drawn.size)
        points_left = self.n_points - points_drawn.size
        n_from_pairs = int(self._random.binomial(n, self.gamma))
        n_from_pairs = min(max(n_from_pairs, n - points_left), pairs_left)
        s = self._design.scores(w)
        p, q = s[self._positive], s[self._negative]
        keys = []
        if n_from_pairs:
            find = self._closest_pairs if strategy == "hard-close" else self._least_correct_pairs
            keys.append(find(p, q, n_from_pairs))
        if n > n_from_pairs:
            d = np.concatenate([p, -q])
            hardness = np.abs(d) if strategy == "hard-close" else d
            hardness[points_drawn - self._n_all_pairs] = inf
            keys.append(self._n_all_pairs + _lowest(hardness, n - n_from_pairs))
        return np.concatenate(keys).astype(np.int64)

    def _least_correct_pairs(self, p: Vector, q: Vector, n: int) -> Keys:
        # A pair with k better ones is among the k + 1 lowest positives and the k + 1 highest
        # negatives.
        reach = self.n_drawn + n
        i, j = _lowest(p, reach), _lowest(-q, reach)
        return _smallest_differences(p[i], q[j], i, j, self._negative.size, n, self._drawn)

    def _closest_pairs(self, p: Vector, q: Vector, n: int) -> Keys:
        # Sorting all rows is the dear part, and most have no partner nearly as close as the pairs
        # wanted. Guess how close these are, keep the rows that have a partner in that reach, and
        # try a wider guess where too few pairs were found.
        low, span = min(p.min(), q.min()), max(p.max(), q.max()) - min(p.min(), q.min())
        width = self._closest or span * (self.n_drawn + n) / (p.size * q.size)
        width = max(width, span * 2.0**-50)
        bits = np.empty(2 ** max(int(p.size + q.size).bit_length() - 2, 0), dtype=np.uint64)
        while 0.0 < width < _WIDE * span:
            _mark(p, low, 1.0 / width, bits)
            j = _with_neighbour(q, low, 1.0 / width, bits)
            _mark(q[j], low, 1.0 / width, bits)
            i = _with_neighbour(p, low, 1.0 / width, bits)
            keys, distance = self._closest_among(p, q, i, j, n)
            if keys.size == n and distance <= width:
                self._closest = 2.0 * distance
                return keys
            width *= 4.0
        keys, distance = self._closest_among(p, q, np.arange(p.size), np.arange(q.size), n)
        self._closest = 2.0 * distance
        return keys

    def _closest_among(
        self, p: Vector, q: Vector, i: Index, j: Index, n: int
    ) -> tuple[Keys, float]:
        """The n closest pairs between rows i and j that have not been drawn, and the largest
        distance among them.
        """
        i, j = i[argsort(p[i])], j[argsort(q[j])]
        below, distance = _nearest(p[i], q[j])
        # A positive whose nearest negative is further than that of k others has none of the k
        # closest pairs.
        near = _lowest(distance, self.n_drawn + n)
        i, below = i[near], below[near]
        return _closest_differences(p[i], below, q[j], i, j, self._negative.size, n, self._drawn)


class _Anywhere:
    """Proposals among all candidates alike; only their own rows are scored."""

    def __init__(self, sampler: PairSampler, w: Vector | None, soft: _Soft) -> None:
        self._sampler, self._w, self._soft = sampler, w, soft
        self.rate = 1.0
        self.listed, self.listed_rate = np.empty(0, dtype=np.int64), np.empty(0)

    def propose(self, n: int) -> tuple[Keys, Vector, Vector]:
        sampler, random = self._sampler, self._sampler._random
        point = random.random(n) >= sampler.gamma
        n_points = int(np.count_nonzero(point))
        keys = np.empty(n, dtype=np.int64)
        keys[point] = sampler._n_all_pairs + random.integers(
            max(sampler.n_points, 1), size=n_points
        )
        keys[~point] = random.integers(max(sampler.n_pairs, 1), size=n - n_points)
        probability = np.ones(n)
        if self._w is not None and not isinstance(self._soft, _Even):
            probability = self._soft.acceptance(self._differences(keys))
        share = np.where(
            point,
            (1.0 - sampler.gamma) / max(sampler.n_points, 1),
            sampler.gamma / max(sampler.n_pairs, 1),
        )
        return keys, probability, share * probability

    def _differences(self, keys: Keys) -> Vector:
        assert self._w is not None
        plus, minus = self._sampler._rows_of(keys)
        rows = self._sampler._design.rows
        if self._sampler.gamma == 1.0:
            return rows(plus).scores(self._w) - rows(minus).scores(self._w)
        d = np.zeros(keys.size)
        d[plus >= 0] += rows(plus[plus >= 0]).scores(self._w)
        d[minus >= 0] -= rows(minus[minus >= 0]).scores(self._w)
        return d


class _InIntervals:
    """Proposals from intervals of the score difference, each with its own bound; crowded intervals
    are listed.
    """

    def __init__(self, sampler: PairSampler, w: Vector | None, soft: _Soft, n: int) -> None:
        self._sampler, self._soft = sampler, soft
        s = np.zeros(sampler._design.n_rows) if w is None else sampler._design.scores(w)
        p, q = s[sampler._positive], s[sampler._negative]
        plus, minus = sampler._rows_of(sampler._drawn)
        with_origin = np.append(s, 0.0)  # row -1
        d_drawn = with_origin[plus] - with_origin[minus]
        points_drawn = sampler._drawn >= sampler._n_all_pairs
        kinds: list[_Kind] = []
        if sampler.n_pairs:
            kinds.append(_Pairs(p, q, sampler.gamma / sampler.n_pairs, d_drawn[~points_drawn]))
        if sampler.n_points:
            share = (1.0 - sampler.gamma) / sampler.n_points
            kinds.append(
                _Points(np.concatenate([p, -q]), share, sampler._n_all_pairs, d_drawn[points_drawn])
            )
        self._open: list[tuple[_Kind, Interval, int]] = []
        bounds = []
        listed, listed_rate = [np.empty(0, dtype=np.int64)], [np.empty(0)]
        for kind, interval, bound in self._cover(kinds):
            size = kind.count(*interval)
            if size <= _LISTED * (kind.n_drawn_in(*interval) + n):
                keys, d = kind.at(*interval, np.arange(size))
                new = sampler._unseen(keys)
                listed.append(keys[new])
                listed_rate.append(kind.share * soft.acceptance(d[new]))
            else:
                self._open.append((kind, interval, size))
                bounds.append(bound)
        self.listed, self.listed_rate = np.concatenate(listed), np.concatenate(listed_rate)
        self._bounds = np.array(bounds)
        self._rates = np.array([kind.share * size for kind, _, size in self._open]) * self._bounds
        self.rate = float(self._rates.sum())

    def _cover(self, kinds: list["_Kind"]) -> Iterator[tuple["_Kind", Interval, float]]:
        """Intervals that hold every candidate with a positive rate, and the highest probability in
        each.
        """
        so_far = 0.0
        for depth in count_from(self._first_depth(kinds)):
            beyond = [
                (kind, interval, self._bound(interval))
                for kind in kinds
                for interval in self._soft.beyond(depth)
            ]
            rest = sum(
                kind.share * kind.count(*interval) * bound for kind, interval, bound in beyond
            )
            if rest <= _REST * so_far:
                yield from (part for part in beyond if rest > 0.0 and part[0].count(*part[1]))
                return
            for kind in kinds:
                for interval in self._soft.intervals(depth):
                    bound = self._bound(interval)
                    if kind.count(*interval):
                        so_far += kind.share * kind.count(*interval) * bound
                        yield kind, interval, bound

    def _first_depth(self, kinds: list["_Kind"]) -> int:
        """The last depth that nothing comes before: scores may be so wide that the first hundreds
        are empty.
        """

        def none_before(depth: int) -> bool:
            return (
                sum(
                    kind.count(*interval) for kind in kinds for interval in self._soft.beyond(depth)
                )
                == everything
            )

        everything = sum(
            kind.count(*interval) for kind in kinds for interval in self._soft.beyond(0)
        )
        low, high = 0, 1
        while none_before(high) and high < _DEEPEST:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if none_before(middle) else (low, middle)
        return low

    def _bound(self, interval: Interval) -> float:
        return float(self._soft.acceptance(np.array(interval)).max())

    def propose(self, n: int) -> tuple[Keys, Vector, Vector]:
        random = self._sampler._random
        per_interval = random.multinomial(n, self._rates / self.rate)
        keys, probability, rate = [], [], []
        for (kind, interval, size), bound, m in zip(
            self._open, self._bounds, per_interval, strict=True
        ):
            if m:
                new, d = kind.at(*interval, np.sort(random.integers(size, size=m)))
                accepted = self._soft.acceptance(d)
                keys.append(new)
                probability.append(accepted / bound)
                rate.append(kind.share * accepted)
        # The intervals' proposals arrive in any order.
        order = random.permutation(n)
        return (
            np.concatenate(keys)[order],
            np.concatenate(probability)[order],
            np.concatenate(rate)[order],
        )


class _Kind(Protocol):
    """Pairs or points by their score difference."""

    share: float

    def count(self, low: float, high: float) -> int: ...

    def n_drawn_in(self, low: float, high: float) -> int: ...

    def at(self, low: float, high: float, ranks: NDArray[np.integer]) -> tuple[Keys, Vector]:
        """Keys and score differences of the candidates at these places, ascending, among those in
        the interval.
        """


class _Pairs:
    def __init__(self, p: Vector, q: Vector, share: float, d_drawn: Vector) -> None:
        self.share = share
        self._i, self._j = argsort(p), argsort(q)
        self._p, self._q = p[self._i], q[self._j]
        self._d_drawn = d_drawn
        self._below: dict[float, int] = {-inf: 0, inf: p.size * q.size}

    def count(self, low: float, high: float) -> int:
        for edge in (low, high):
            if edge not in self._below:
                self._below[edge] = _count_below(self._p, self._q, edge)
        return self._below[high] - self._below[low]

    def n_drawn_in(self, low: float, high: float) -> int:
        return int(np.count_nonzero((self._d_drawn >= low) & (self._d_drawn < high)))

    def at(self, low: float, high: float, ranks: NDArray[np.integer]) -> tuple[Keys, Vector]:
        i, j = _pairs_at(self._p, self._q, low, high, ranks)
        return self._i[i].astype(np.int64) * self._q.size + self._j[j], self._p[i] - self._q[j]


class _Points:
    def __init__(self, d: Vector, share: float, first_key: int, d_drawn: Vector) -> None:
        self.share = share
        self._order = argsort(d)
        self._d = d[self._order]
        self._first_key = first_key
        self._d_drawn = d_drawn

    def count(self, low: float, high: float) -> int:
        return int(np.searchsorted(self._d, high) - np.searchsorted(self._d, low))

    def n_drawn_in(self, low: float, high: float) -> int:
        return int(np.count_nonzero((self._d_drawn >= low) & (self._d_drawn < high)))

    def at(self, low: float, high: float, ranks: NDArray[np.integer]) -> tuple[Keys, Vector]:
        place = np.searchsorted(self._d, low) + ranks
        return self._first_key + self._order[place].astype(np.int64), self._d[place]


def _lowest(values: Vector, n: int) -> Index:
    """Indices of the n lowest values (all, if there are fewer), in ascending order."""
    index = None
    if 8 * n < values.size and values.size > 2 * _GLANCE:
        # A few values tell roughly where to cut; if that leaves too few, the others join in again.
        some = values[:: values.size // _GLANCE]
        rank = min(int(1.5 * n / values.size * some.size) + 16, some.size - 1)
        index = np.flatnonzero(values <= np.partition(some, rank)[rank])
    if index is None or index.size < n:
        index = np.arange(values.size)
    if n < index.size:
        index = index[np.argpartition(values[index], n - 1)[:n]]
    return index[np.argsort(values[index], kind="stable")]
