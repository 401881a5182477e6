"""RankSVM on a pool of actively sampled pairs and points (shen2013, Algorithm 1).

In each round candidates are drawn under the current weights, and the hinge is minimised over all
candidates drawn so far, from the last solution: by Newton's method on a smoothed hinge where X has
few columns, else by dual coordinate descent, and by the latter over the complete pool.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Self

import numpy as np

from forerank._typing import Index, Mask, Matrix, Vector
from forerank.design.row_pairs import Differences
from forerank.objectives import Pointwise
from forerank.pairsums import PairBlocks
from forerank.sampling import Drawn, PairSampler
from forerank.solvers.dual import DualResult, dual_descent
from forerank.solvers.smoothed_hinge import smoothed_hinge

__all__ = ["Pool", "RowWeights", "active_sampling"]

# While the pool grows, its solution only directs the next draw: this relative duality gap, or this
# many passes, are enough.
_ROUGH_TOL = 1e-2
_ROUGH_PASSES = 100
# Newton's method on the smoothed hinge: passes of the descent after which it is used (it takes the
# time of about ten to twenty), most columns (a step costs their square for some of the pairs), and
# most steps, of which most fits take less than half.
_NEWTON_AFTER = 25
_NEWTON_COLUMNS = 128
_NEWTON_STEPS = 100
# Multiplications that the last fit may spend beyond its tolerance: a few milliseconds.
_EXTRA_WORK = 3e6


@dataclass(frozen=True)
class RowWeights:
    """Weights of rows in pairs and as points, with mean one over the candidates."""

    pair: Vector
    point: Vector

    @classmethod
    def of(
        cls, positive: Mask, weight: Vector, point_weight: Vector, group: Index | None = None
    ) -> Self:
        """Scaled weights: the mean over the points is one, and that over the pairs of a group."""
        eligible = weight > 0.0
        sides = positive & eligible, ~positive & eligible
        if group is None:
            means = [float(weight[side].mean()) for side in sides]
        else:
            totals = [np.bincount(group[side], weight[side], group.max() + 1) for side in sides]
            counts = [np.bincount(group[side], minlength=group.max() + 1) for side in sides]
            means = [float(totals[0] @ totals[1]) / float(counts[0] @ counts[1]), 1.0]
        pair = np.where(positive, weight / means[0], weight / means[1])
        return cls(pair, point_weight / point_weight[eligible].mean())

    @classmethod
    def of_grades(cls, blocks: PairBlocks, weight: Vector) -> Self:
        """Scaled weights: the mean over the pairs of the blocks is one; there are no points."""
        mean = blocks.total_weight / float(blocks.n_pairs.sum())
        return cls(weight / np.sqrt(mean), np.zeros(weight.size))

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
    intercept: bool = False,
    start: Vector | None = None,
    start_intercept: float = 0.0,
) -> Iterator[Pool]:
    """The pool after each round of `step` draws, until it has `budget` candidates.

    `weigh` gives the weight of each candidate of the pool. `tol`, the relative duality gap, and
    `max_iter`, in passes, apply to the complete pool. With `intercept`, points have a constant,
    which is not penalised and acts on them alone. The first draw is made under the weights `start`
    and the constant `start_intercept`; without weights it is uniform.
    """
    pairs, w, b = Differences(X, budget), start, start_intercept
    fits = _PoolFits(pairs, intercept)
    while pairs.n_rows < budget:
        drawn = sampler.draw(min(step, budget - pairs.n_rows), w, b)
        pairs.extend(drawn.plus, drawn.minus)
        weight = weigh(pairs)
        strength = pairs.n_rows / (alpha * budget)
        if pairs.n_rows < budget:
            solution = fits.rough(weight, strength, tol, max_iter)
        else:
            solution = fits.last(weight, strength, tol, max_iter)
        w, b = solution.w, solution.intercept
        yield Pool(pairs, weight, solution, drawn)


class _PoolFits:
    """Minima of 1/2 ||w||^2 + strength sum_m weight_m [1 - <z_m, w>]_+ over a growing pool, each
    from the one before; with `intercept`, the margins of single rows have y_m b added.

    The descent comes first. Once it has taken many passes from a solution, Newton's method on the
    smoothed hinge is used, if there are few columns; after a failure, not before the pool has
    doubled. An intercept in units far from those of the columns is slow in the descent: for the
    complete pool, Newton's method is then used in any case.
    """

    def __init__(self, pairs: Differences, intercept: bool) -> None:
        self._pairs, self._has_intercept = pairs, intercept
        self._w, self._dual, self._intercept = np.zeros(pairs.n_columns), np.zeros(0), 0.0
        self._use_newton = False
        self._newton_from: float = 0 if pairs.n_columns <= _NEWTON_COLUMNS else inf

    def rough(self, weight: Vector, strength: float, tol: float, max_iter: int) -> DualResult:
        """The minimum over a part of the pool."""
        problem = weight * strength, 1.0 / strength
        limits = max(tol, _ROUGH_TOL), min(max_iter, _ROUGH_PASSES)
        if smoothed := self._smoothed(*problem, *limits):
            return smoothed
        is_first = self._dual.size == 0
        found = self._descent(*problem, *limits)
        slow = found.n_iter > _NEWTON_AFTER and not is_first
        self._use_newton = slow and self._pairs.n_rows >= self._newton_from
        return found

    def last(self, weight: Vector, strength: float, tol: float, max_iter: int) -> DualResult:
        """The minimum over the complete pool."""
        problem = weight * strength, 1.0 / strength
        smoothed = self._smoothed(*problem, tol, max_iter)  # the descent starts from it
        found = self._descent(*problem, tol, max_iter, at_least=_EXTRA_WORK)
        if found.converged:
            return found
        if smoothed is None and self._has_intercept:
            self._use_newton = self._newton_from < inf
            smoothed = self._smoothed(*problem, tol, max_iter)
        return smoothed or found

    def _smoothed(self, box: Vector, scale: float, tol: float, max_iter: int) -> DualResult | None:
        """The result of Newton's method; None if it is not used, or has failed."""
        if not self._use_newton:
            return None
        found = smoothed_hinge(
            self._pairs,
            box,
            self._w,
            tol=tol,
            max_iter=min(max_iter, _NEWTON_STEPS),
            scale=scale,
            intercept=self._best_intercept(box) is not None,
        )
        if found.converged:
            return self._keep(found)
        self._use_newton, self._newton_from = False, 2 * self._pairs.n_rows
        return None

    def _descent(
        self, box: Vector, scale: float, tol: float, max_iter: int, at_least: float = 0.0
    ) -> DualResult:
        found = dual_descent(
            self._pairs,
            box,
            intercept=self._best_intercept(box),
            start=self._dual,
            start_intercept=self._intercept,
            tol=tol,
            max_iter=max_iter,
            at_least=at_least,
            seed=self._pairs.n_rows,
            scale=scale,
        )
        return self._keep(found)

    def _keep(self, found: DualResult) -> DualResult:
        self._w, self._dual, self._intercept = found.w, found.dual, found.intercept
        return found

    def _best_intercept(self, box: Vector) -> Callable[[Vector], float] | None:
        """The best constant for scores of the single rows of the pool; None without any."""
        pairs = self._pairs
        single = (pairs.plus < 0) | (pairs.minus < 0)
        if not (self._has_intercept and single.any()):
            return None
        points = Pointwise(pairs.minus[single] < 0, "hinge", weight=box[single])
        return points.profiled().best_shift
