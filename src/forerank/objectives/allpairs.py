"""The mean loss over all pairs that should be ordered.

    F(s) = sum_{(i, j)} w_i w_j l(s_i - s_j) / sum_{(i, j)} w_i w_j

over every pair in which row i should be ranked above row j: a positive and a negative row, two rows
of different grade, or two rows joined by an edge of a preference graph over the classes; with
groups, both rows of the same group. With the hinge this is RankSVM, with the logistic loss the
objective of RankNCG in its exact form (raykar2007, section 3, there a sum and not a mean). The
pairs are never enumerated: see `forerank.pairsums`.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank import losses, pairsums
from forerank._typing import Index, Random, Vector
from forerank.design import Design
from forerank.losses import Loss, SmoothedHinge, Squared, get_loss
from forerank.objectives.base import Linearization
from forerank.pairsums import PairBlocks
from forerank.pairsums.binned import binned_hessian
from forerank.pairsums.factored import EqualScorePairs, ExponentialPairs

__all__ = ["AllPairs"]

_PAIR_SUMS: dict[type[Loss], Callable[[PairBlocks, Vector, Any], Linearization]] = {
    losses.Hinge: lambda blocks, s, _: pairsums.HingePairs(blocks, s, degree=1),
    losses.SquaredHinge: lambda blocks, s, _: pairsums.HingePairs(blocks, s, degree=2),
    SmoothedHinge: lambda blocks, s, loss: pairsums.SmoothedHingePairs(blocks, s, loss.width),
    losses.Logistic: lambda blocks, s, _: pairsums.LogisticPairs(blocks, s),
    losses.DirectLogistic: lambda blocks, s, _: pairsums.LogisticPairs(blocks, s, np.inf),
    losses.ErfcLogistic: lambda blocks, s, loss: pairsums.ErfcPairs(blocks, s, loss.eps),
    losses.Exponential: lambda blocks, s, _: pairsums.ExponentialPairs(blocks, s),
    Squared: lambda blocks, s, _: pairsums.SquaredPairs(blocks, s),
}

# Losses whose sums at equal scores are exact for any of them.
_EXACT = (losses.SquaredHinge, losses.Logistic, losses.Exponential, Squared)
# Blocks up to which bins are made for each.
_FEW_BLOCKS = 16


class AllPairs:
    """The mean of a loss over all pairs, as a function of the scores.

    A constant added to all scores does not change it.

    Parameters
    ----------
    grade : integer array
        0 .. K-1 per row, higher is better.
    loss : str or Loss
        On the score difference s_i - s_j.
    weight : array, optional
        Per row, non-negative; a pair weighs w_i w_j.
    group : integer array, optional
        Pairs are formed within a group only.
    edges : iterable of (upper grade, lower grade), optional
        A preference graph over the grades; by default all pairs of different grades count.
    """

    shift_invariant = True

    def __init__(
        self,
        grade: NDArray[np.integer],
        loss: str | Loss = "squared_hinge",
        *,
        weight: Vector | None = None,
        group: NDArray[np.integer] | None = None,
        edges: Iterable[tuple[int, int]] | None = None,
    ) -> None:
        self._set(get_loss(loss), PairBlocks.build(grade, weight=weight, group=group, edges=edges))

    def _set(self, loss: Loss, blocks: PairBlocks) -> "AllPairs":
        if type(loss) not in _PAIR_SUMS:
            known = ", ".join(sorted(kind.name for kind in _PAIR_SUMS))
            raise ValueError(f"AllPairs cannot sum {loss!r} over all pairs; choose one of {known}.")
        self.loss, self.blocks = loss, blocks
        self.smooth, self.n_rows = loss.smooth, blocks.n_rows
        self.has_curvature = not isinstance(loss, losses.ErfcLogistic)
        return self

    def _like(self, loss: Loss, blocks: PairBlocks) -> "AllPairs":
        return AllPairs.__new__(AllPairs)._set(loss, blocks)

    def __repr__(self) -> str:
        return f"AllPairs({self.loss!r})"

    def at(self, s: Vector) -> Linearization:
        """Value, gradient and curvature at the scores s. Cost: N log N (hinges) or N (others)."""
        s = np.asarray(s, dtype=float)
        if self._is_equal(s):
            return EqualScorePairs(self.blocks, self.loss)
        return _PAIR_SUMS[type(self.loss)](self.blocks, s, self.loss)

    def hessian(self, s: Vector, design: Design) -> Vector:
        """X^T F''(s) X, approximately. Cost: N d + N d^2 / 2 for few groups."""
        if self._is_equal(s):
            return EqualScorePairs(self.blocks, self.loss).hessian(design)
        if isinstance(self.loss, losses.Exponential) and self.blocks.n_blocks == 1:
            return ExponentialPairs(self.blocks, s).hessian(design)
        if isinstance(self.loss, losses.Exponential) or self.blocks.n_blocks > _FEW_BLOCKS:
            here: Any = self.at(s)
            X = design.columns(0, design.n_columns)
            return X.T @ here.curvature_matrix(X)
        return binned_hessian(self.blocks, s, self.loss.slope, design)

    def _is_equal(self, s: Vector) -> bool:
        """Whether the scores are equal, as at the start of a fit, under a loss that allows it."""
        if type(self.loss) not in _EXACT or not s.size or not abs(s[0]) < np.inf:
            return False
        return s[0] == s[-1] and bool((s == s[0]).all())

    def gradient_at_zero(self) -> Vector:
        """The gradient at s = 0, where all pairs have the same slope."""
        slope = float(self.loss.slope(0.0)) / self.blocks.total_weight
        return slope * self.blocks.opposite_weights(-1.0)

    def sample(self, size: int, rng: Random) -> "tuple[Index, AllPairs] | None":
        """Rows with an unbiased version of the objective on them; see `PairBlocks.sample`."""
        drawn = self.blocks.sample(size, rng)
        return None if drawn is None else (drawn[0], self._like(self.loss, drawn[1]))

    def smoothed(self, width: float) -> "AllPairs":
        """The same pairs under the smoothed hinge, for an objective with the hinge."""
        return self._like(SmoothedHinge(width), self.blocks)

    def with_loss(self, loss: str | Loss) -> "AllPairs":
        """The same pairs under another loss."""
        return self._like(get_loss(loss), self.blocks)

    def squared(self) -> "AllPairs":
        """The same pairs under the squared loss."""
        return self._like(Squared(), self.blocks)
