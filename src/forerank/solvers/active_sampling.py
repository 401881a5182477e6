"""RankSVM on a pool of actively sampled pairs and points (shen2013, Algorithm 1).

In each round candidates are drawn under the current weights, and the hinge is minimised over all
candidates drawn so far, from the last solution, by dual coordinate descent.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from forerank._typing import Index, Mask, Matrix, Vector
from forerank.design.row_pairs import Differences
from forerank.sampling import Drawn, PairSampler
from forerank.solvers.dual import DualResult, dual_descent

__all__ = ["Pool", "RowWeights", "active_sampling"]

# While the pool grows, its solution only directs the next draw: this relative duality gap, or this
# many passes, are enough.
_ROUGH_TOL = 1e-2
_ROUGH_PASSES = 100
# Multiplications that the last fit may spend beyond its tolerance: a few milliseconds.
_EXTRA_WORK = 3e6


@dataclass(frozen=True)
class RowWeights:
    """Weights of rows in pairs and as points, with mean one over the rows that can be drawn."""

    pair: Vector
    point: Vector

    @classmethod
    def of(cls, positive: Mask, weight: Vector, point_weight: Vector) -> Self:
        """Scaled weights; in pairs the mean is one for each class."""
        eligible = weight > 0.0
        means = (weight[positive & eligible].mean(), weight[~positive & eligible].mean())
        pair = np.where(positive, weight / means[0], weight / means[1])
        return cls(pair, point_weight / point_weight[eligible].mean())

    def of_candidates(self, plus: Index, minus: Index) -> Vector:
        """Weights of pairs (products) and points; -1 is the origin."""
        pair = (plus >= 0) & (minus >= 0)
        of_point = self.point[np.where(plus >= 0, plus, minus)]
        return np.where(pair, self.pair[plus] * self.pair[minus], of_point)


@dataclass(frozen=True)
class Pool:
    """Pairs and points drawn so far, their weights in the objective, and its solution."""

    pairs: Differences
    weight: Vector
    solution: DualResult
    last_drawn: Drawn


def active_sampling(
    sampler: PairSampler,
    X: Matrix,
    alpha: float,
    budget: int,
    *,
    step: int,
    weigh: Callable[[Differences], Vector],
    tol: float,
    max_iter: int,
) -> Iterator[Pool]:
    """The pool after each round of `step` draws, until it has `budget` candidates.

    `weigh` gives the weight of each candidate of the pool. `tol`, the relative duality gap, and
    `max_iter`, in passes, apply to the complete pool.
    """
    pairs, solution = Differences(X, budget), None
    while pairs.n_rows < budget:
        n = min(step, budget - pairs.n_rows)
        drawn = sampler.draw(n, None if solution is None else solution.w)
        pairs.extend(drawn.plus, drawn.minus)
        weight = weigh(pairs)
        strength = pairs.n_rows / (alpha * budget)
        complete = pairs.n_rows == budget
        solution = dual_descent(
            pairs,
            weight * strength,
            start=None if solution is None else solution.dual,
            tol=tol if complete else max(tol, _ROUGH_TOL),
            max_iter=max_iter if complete else min(max_iter, _ROUGH_PASSES),
            at_least=_EXTRA_WORK if complete else 0.0,
            seed=pairs.n_rows,
            scale=1.0 / strength,
        )
        yield Pool(pairs, weight, solution, drawn)
