"""Active sampling of pairs and points: which few of very many candidates to train on next
(shen2013).

The candidates are the pairs of a positive with a negative row and, for the combined ranking and
classification of section 3.4, the rows themselves as pseudo-pairs with the origin. A strategy
(`forerank.sampling.probabilities`) gives each a probability by its score difference under the
current weights, times gamma / (number of pairs) for pairs and (1 - gamma) / (number of points) for
points. A candidate is drawn at most once; only those that have been drawn are stored.

Soft draws. Give every candidate an exponential arrival time, at a rate proportional to its
probability: the first to arrive are a sample without replacement, in the order of drawing. The
times are not generated one by one: candidates that share a bound on their rate are proposed
together, and a proposal is accepted with probability rate / bound (`forerank.sampling.proposals`).
If most candidates are probable enough, one bound serves for all of them, and only rows that are
proposed are scored. Otherwise all rows are scored and sorted, and a few intervals of the score
difference, each with its own bound, leave little to reject (maths/sampling.md).
"""

from dataclasses import dataclass
from math import inf
from typing import Literal

import numpy as np

from forerank._typing import Index, Mask, Vector
from forerank.design import Design
from forerank.sampling.candidates import Candidates, Keys
from forerank.sampling.hardest import ClosestPairs, least_correct_pairs, lowest
from forerank.sampling.probabilities import PROBABILITIES, Probability
from forerank.sampling.proposals import MOST_DRAWN, IntervalProposals, UniformProposals

__all__ = ["Drawn", "PairSampler"]

# Least and most proposals generated at a time.
_SMALLEST_BLOCK, _LARGEST_BLOCK = 64, 2**18


@dataclass(frozen=True)
class Drawn:
    """Candidates in the order of drawing: the row to be ranked above (`plus`) and the other one
    (`minus`), -1 for the origin of a pseudo-pair.

    `n_rejected` proposals were not accepted. `acceptance` is the mean probability of accepting a
    proposal drawn from all candidates, zero for those drawn before; its inverse is the number of
    proposals that plain rejection would take for each candidate. NaN for hard strategies.
    """

    plus: Index
    minus: Index
    n_rejected: int
    acceptance: float


class PairSampler:
    """Draws pairs and points of a data set without replacement, by a strategy.

    `strategy` is one of `STRATEGIES`, `gamma` the share of pairs among the candidates drawn; the
    rest are points. "uniform" gives all candidates the same probability. Rows that are not
    `eligible` are not drawn. With `group`, the number of the group of each row, pairs are formed
    within groups only. For grades see `Candidates`.

    Cost of drawing b candidates: for random and soft strategies the scores of about 2 b / (mean
    acceptance) rows, or, where that is more than the number of rows, the scores of all rows and
    N log N; for hard strategies the latter, and a heap of the candidates drawn so far.
    """

    def __init__(
        self,
        design: Design,
        positive: Mask,
        *,
        strategy: str,
        gamma: float | Literal["uniform"],
        random_state: np.random.Generator,
        eligible: Mask | None = None,
        group: Index | None = None,
        rows_of_entries: Index | None = None,
    ) -> None:
        self._design, self._strategy, self._random = design, strategy, random_state
        self._candidates = Candidates(positive, gamma, eligible, group, rows_of_entries)
        self.gamma, self.n_candidates = self._candidates.gamma, len(self._candidates)
        # In the order of drawing: whether a candidate is a point, 1 / ((N - m + 1) q_m), and the
        # probability of accepting it when it was drawn.
        self._is_point = np.empty(0, dtype=bool)
        self._inverse = np.empty(0)
        self._accepted = np.empty(0)
        # Mean acceptance of the last draw; close to one for the weights of the start.
        self._acceptance = 1.0
        self._closest = ClosestPairs()

    @property
    def n_drawn(self) -> int:
        """Number of candidates drawn so far."""
        return self._candidates.drawn.size

    def draw(self, n: int, w: Vector | None = None, constant: float = 0.0) -> Drawn:
        """Sample of n candidates that were not drawn before; uniform without weights w.

        `constant` is added to the scores of points. Raises ValueError where fewer than n are left.
        """
        left = self.n_candidates - self.n_drawn
        if n > left:
            raise ValueError(
                f"n={n} candidates were requested, but only {left} of {self.n_candidates} are left;"
                " draw fewer."
            )
        strategy = "random" if w is None else self._strategy
        if w is not None and strategy.startswith("hard"):
            keys = self._hardest(n, w, constant, strategy)
            n_rejected, acceptance = 0, float("nan")
            self._record(keys, np.ones(n), np.ones(n))
        else:
            soft = PROBABILITIES[strategy]
            keys, n_rejected, acceptance = self._by_arrival(n, w, constant, soft)
            if keys.size < n:
                # All that are left have probability zero: they are drawn uniformly.
                random = PROBABILITIES["random"]
                more, more_rejected, _ = self._by_arrival(n - keys.size, None, 0.0, random)
                keys, n_rejected = np.concatenate([keys, more]), n_rejected + more_rejected
        return Drawn(*self._candidates.rows_of(keys), n_rejected, acceptance)

    def importance(self) -> Vector:
        """Weight of each drawn candidate, in the order of drawing, with which means over the sample
        are unbiased.

        With M of N candidates drawn, the m-th with probability q_m among those then left, and t_m
        its share of the objective, gamma / n_pairs or (1 - gamma) / n_points,

            u_m = N t_m (1 + (N - M) / (N - m) (1 / ((N - m + 1) q_m) - 1))
            (maths/sampling.md, eqs. 2, 3)

        and the mean of u_m f_m over the sample has the expectation gamma mean(f over pairs) + (1 -
        gamma) mean(f over points). With M much smaller than N this is t_m / q_m, the inverse
        probability of shen2013, section 3.3; with all candidates drawn it is the objective itself.
        Hard strategies have no probabilities, and their estimate is biased: all drawn pairs have
        the same weight, and all drawn points, gamma and 1 - gamma in total.
        """
        N, M = self.n_candidates, self.n_drawn
        candidates = self._candidates
        if self._strategy.startswith("hard"):
            n_points = int(np.count_nonzero(self._is_point))
            of_pair = M * self.gamma / max(M - n_points, 1)
            return np.where(self._is_point, M * (1.0 - self.gamma) / max(n_points, 1), of_pair)
        m = np.arange(1, M + 1)
        left = np.maximum(N - m, 1)
        share = candidates.share(self._is_point)
        return N * share * (1.0 + (N - M) / left * (self._inverse - 1.0))

    def inverse_acceptance(self) -> Vector:
        """Weight of each drawn candidate, in the order of drawing, as shen2013 prints it: 1 / p_m,
        with p_m the probability of accepting it under the weights of its round.

        Candidates of different rounds are not comparable: a round with a low mean acceptance
        proposes more candidates for each that it accepts, which `importance` takes into account.
        Hard strategies have no probabilities: as in `importance`.
        """
        return self.importance() if self._strategy.startswith("hard") else 1.0 / self._accepted

    def _record(self, keys: Keys, inverse: Vector, accepted: Vector) -> None:
        self._candidates.mark_drawn(keys)
        self._is_point = np.concatenate([self._is_point, keys >= self._candidates.first_point])
        self._inverse = np.concatenate([self._inverse, inverse])
        self._accepted = np.concatenate([self._accepted, accepted])

    def _by_arrival(
        self, n: int, w: Vector | None, constant: float, probability: Probability
    ) -> tuple[Keys, int, float]:
        """Keys of the n candidates with the earliest arrival times, the number of rejected
        proposals, and the mean acceptance.

        Fewer than n where all others have rate zero.
        """
        candidates, n_rows = self._candidates, self._design.n_rows
        n_points_drawn = int(np.count_nonzero(self._is_point))
        n_pairs_drawn = self.n_drawn - n_points_drawn
        few_left = MOST_DRAWN * (n_pairs_drawn + n) > candidates.n_pairs > 0
        few_left |= MOST_DRAWN * (n_points_drawn + n) > candidates.n_points > 0
        if not few_left and 2 * n <= self._acceptance * n_rows:
            uniform = UniformProposals(
                candidates, self._design, w, constant, probability, self._random
            )
            arrived = self._first_arrivals(uniform, n, most=n_rows)
            if arrived is not None:
                return arrived
        scores = np.zeros(n_rows) if w is None else self._design.scores(w)
        intervals = IntervalProposals(candidates, scores, constant, probability, self._random, n)
        arrived = self._first_arrivals(intervals, n)
        assert arrived is not None
        return arrived

    def _first_arrivals(
        self, proposals: UniformProposals | IntervalProposals, n: int, most: int | None = None
    ) -> tuple[Keys, int, float] | None:
        """The result of `_by_arrival`, or None if that takes more than `most` proposals."""
        random = self._random
        possible = proposals.enumerated_rate > 0.0
        keys, rates = proposals.enumerated[possible], proposals.enumerated_rate[possible]
        times = random.exponential(size=keys.size) / rates
        total = float(rates.sum())
        now, n_proposed, n_accepted, expected = 0.0, 0, 0, 0.0
        acceptance = self._acceptance if most else 0.5
        while proposals.rate > 0.0:
            n_missing = n - np.count_nonzero(times <= now)
            if n_missing <= 0:
                break
            if most and n_proposed > most:
                return None
            wanted = 1.1 * n_missing / max(acceptance, 1e-9) + 8
            block = int(np.clip(wanted, _SMALLEST_BLOCK, _LARGEST_BLOCK))
            new, probability, rate = proposals.propose(block)
            probability = np.where(self._candidates.is_new(new), probability, 0.0)
            accepted = np.flatnonzero(random.random(block) < probability)
            arrival = now + np.cumsum(random.exponential(size=block)) / proposals.rate
            # Of a candidate that is proposed repeatedly, the first arrival counts.
            keys, first = np.unique(np.concatenate([keys, new[accepted]]), return_index=True)
            times = np.concatenate([times, arrival[accepted]])[first]
            rates = np.concatenate([rates, rate[accepted]])[first]
            now = arrival[-1]
            n_proposed += block
            n_accepted += accepted.size
            expected += probability.sum()
            acceptance = max(expected, 1.0) / n_proposed
        total += float(proposals.rate * expected) / n_proposed if n_proposed else 0.0
        order = np.argsort(times)[:n]
        keys, rates = keys[order], rates[order]
        share = self._candidates.share(keys >= self._candidates.first_point)
        self._record(keys, self._inverse_probability(rates, total), rates / share)
        if total > 0.0:
            self._acceptance = total
        return keys, n_proposed - n_accepted, total

    def _inverse_probability(self, rates: Vector, total: float) -> Vector:
        """1 / ((N - m + 1) q_m) for candidates drawn one after the other, where `total` was the sum
        of all rates.
        """
        # Each draw takes its rate off the sum; an estimated sum may become too small.
        left = np.maximum(total - np.cumsum(rates) + rates, rates)
        m = self.n_drawn + np.arange(1, rates.size + 1)
        return left / (rates * (self.n_candidates - m + 1))

    def _hardest(self, n: int, w: Vector, constant: float, strategy: str) -> Keys:
        candidates, drawn = self._candidates, self._candidates.drawn
        points_drawn = drawn[drawn >= candidates.first_point] - candidates.first_point
        pairs_left = candidates.n_pairs - (self.n_drawn - points_drawn.size)
        points_left = candidates.n_points - points_drawn.size
        n_pairs = int(self._random.binomial(n, self.gamma))
        n_pairs = min(max(n_pairs, n - points_left), pairs_left)
        s = self._design.scores(w)
        p, q = s[candidates.positive], s[candidates.negative]
        close = strategy == "hard-close"
        keys = []
        if n_pairs:
            find = self._closest.find if close else least_correct_pairs
            keys.append(find(candidates, p, q, n_pairs))
        if n > n_pairs:
            d = np.concatenate([p + constant, -constant - q])
            hardness = np.abs(d) if close else d
            hardness[points_drawn] = inf
            keys.append(candidates.first_point + lowest(hardness, n - n_pairs))
        return np.concatenate(keys).astype(np.int64)
