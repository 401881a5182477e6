"""The mean loss over all pairs that should be ordered.

    F(s) = sum_{(i, j)} w_i w_j l(s_i - s_j) / sum_{(i, j)} w_i w_j

over every pair in which row i should stand ahead of row j: a positive and a negative row, two rows
of different grade, or two rows joined by an edge of a preference graph over the classes; with
groups, both rows of the same group. With the hinge this is RankSVM, with the logistic loss the
objective of RankNCG in its exact form (raykar2007, section 3, there a sum and not a mean). The
pairs are never visited: see `forerank.pairsums`.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Vector
from forerank.losses import (
    DirectLogistic,
    ErfcLogistic,
    Exponential,
    Hinge,
    Logistic,
    Loss,
    SmoothedHinge,
    Squared,
    SquaredHinge,
    get_loss,
)
from forerank.objectives.base import Linearization
from forerank.pairsums import (
    ErfcPairs,
    ExponentialPairs,
    HingePairs,
    LogisticPairs,
    PairBlocks,
    SmoothedHingePairs,
    SquaredPairs,
)

__all__ = ["AllPairs"]


_PAIR_SUMS: dict[type[Loss], Callable[[PairBlocks, Vector, Any], Linearization]] = {
    Hinge: lambda blocks, s, _: HingePairs(blocks, s, degree=1),
    SquaredHinge: lambda blocks, s, _: HingePairs(blocks, s, degree=2),
    SmoothedHinge: lambda blocks, s, loss: SmoothedHingePairs(blocks, s, loss.width),
    Logistic: lambda blocks, s, _: LogisticPairs(blocks, s),
    DirectLogistic: lambda blocks, s, _: LogisticPairs(blocks, s, few_pairs=np.inf),
    ErfcLogistic: lambda blocks, s, loss: ErfcPairs(blocks, s, loss.eps),
    Exponential: lambda blocks, s, _: ExponentialPairs(blocks, s),
    Squared: lambda blocks, s, _: SquaredPairs(blocks, s),
}


class AllPairs:
    """The mean of a loss over all pairs, as a function of the scores. A constant added to all
    scores changes nothing.

    Parameters
    ----------
    grade : integer array
        0 .. K-1 per row, higher is better.
    loss : str or Loss
        On the score difference s_i - s_j.
    weight : array, optional
        Per row, non-negative; a pair weighs w_i w_j.
    group : integer array, optional
        Pairs are formed inside a group only.
    edges : iterable of (upper grade, lower grade), optional
        A preference graph over the grades; without it all pairs of different grades count.
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
            raise ValueError(f"AllPairs cannot sum {loss!r} over all pairs; it can sum {known}.")
        self.loss, self.blocks = loss, blocks
        self.smooth, self.n_rows = loss.smooth, blocks.n_rows
        return self

    def __repr__(self) -> str:
        return f"AllPairs({self.loss!r})"

    def at(self, s: Vector) -> Linearization:
        """Value, gradient and curvature at the scores s. Cost: N log N (hinges) or N (other
        losses).
        """
        return _PAIR_SUMS[type(self.loss)](self.blocks, s, self.loss)

    def gradient_at_zero(self) -> Vector:
        """The gradient where all scores are zero: every pair pulls alike."""
        pull = (
            self.blocks.weight
            * self.blocks.opposite_weight()
            * (self.loss.slope(0.0) / self.blocks.total_weight)
        )
        return self.blocks.add_to_rows(pull)

    def sample(
        self, size: int, rng: np.random.Generator
    ) -> "tuple[NDArray[np.intp], AllPairs] | None":
        """Rows with an unbiased version of the objective on them; see `PairBlocks.sample`."""
        parts = self.blocks.sample(size, rng)
        return (
            None
            if parts is None
            else (parts[0], AllPairs.__new__(AllPairs)._set(self.loss, parts[1]))
        )

    def smoothed(self, width: float) -> "AllPairs":
        """The same pairs under the smoothed hinge, for an objective with the plain hinge."""
        return AllPairs.__new__(AllPairs)._set(SmoothedHinge(width), self.blocks)

    def squared(self) -> "AllPairs":
        """The same pairs under the squared loss."""
        return AllPairs.__new__(AllPairs)._set(Squared(), self.blocks)
