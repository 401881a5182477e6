"""Working set of the negatives that set the threshold of a top objective."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from forerank._sorting import largest
from forerank._typing import Index, Mask, Vector
from forerank.design import Design
from forerank.objectives.top import Top

__all__ = ["WorkingSet"]

# Negatives that may join at a time: this many, or as many as are active already.
_FEWEST_JOINING = 20
# Sum of weights that counts as zero.
_ROUNDING = 1e-12
# The working set is reduced to the active negatives where it is this many times larger.
_LARGEST_RATIO = 2.0


@dataclass
class WorkingSet:
    """Negatives by number: those with a variable weight in the threshold (`rows`), and those whose
    weight is fixed at its cap (`full`); `caps` are those of all negatives.
    """

    rows: Index
    full: Index
    caps: Vector

    @classmethod
    def first(cls, top: Top, design: Design, w: Vector, scores: Vector) -> Self:
        """The negatives around the threshold, by their scores, or by the difference of the class
        means where w = 0.
        """
        if not w.any():
            means = np.zeros(top.n_rows)
            means[top.positives] = top.share
            means[top.negatives] = -1.0 / top.negatives.size
            scores = design.scores(design.adjoint(means))
        scores = scores[top.negatives]
        _, beta = top.threshold(scores)
        last = int(np.count_nonzero(beta)) - 1
        order = largest(scores, last + _FEWEST_JOINING)
        full = order[: max(last - _FEWEST_JOINING, 0)]
        return cls(order[full.size : last + _FEWEST_JOINING], full, top.caps)

    def add(self, negatives: Index) -> None:
        """Add negatives that are not in the working set yet."""
        new = np.setdiff1d(negatives, np.concatenate([self.rows, self.full]))
        self.rows = np.concatenate([self.rows, new])

    def is_large(self, active: Mask, margin: int = 0) -> bool:
        """Whether many of the rows are not active."""
        return self.rows.size > _LARGEST_RATIO * int(np.count_nonzero(active)) + margin

    def weights(self, x: Vector) -> Vector:
        """Weights of all negatives from the solution x of a programme: at most the caps, and of sum
        one.
        """
        rows, full, caps = self.rows, self.full, self.caps
        beta = np.zeros(caps.size)
        beta[full] = caps[full]
        beta[rows] = np.minimum(x / float(x.sum()) * (1.0 - float(caps[full].sum())), caps[rows])
        missing, room = 1.0 - float(beta.sum()), caps[rows] - beta[rows]
        if missing <= _ROUNDING:
            return beta / float(beta.sum())
        # An interior-point solution may exceed a cap by a little; the excess is given to the
        # others, in proportion to the distances from their caps.
        beta[rows] += room * (missing / max(float(room.sum()), missing, 1e-300))
        return beta

    def extend(self, scores: Vector, x: Vector, active: Mask, most: int, *, reduce: bool) -> bool:
        """Add negatives on the wrong side of the threshold, at most about `most`; whether there
        were any.
        """
        rows, level = self.rows, self._level(scores, active)
        kind = np.zeros(scores.size, dtype=np.int8)
        kind[rows] = 1
        kind[self.full] = 2
        wrong = np.flatnonzero(((kind == 0) & (scores > level)) | ((kind == 2) & (scores < level)))
        if wrong.size == 0:
            return False
        if reduce and self.is_large(active, margin=30):
            self.reduce(scores, x, active)
        n_active = int(np.count_nonzero(active))
        room = max(_FEWEST_JOINING, min(n_active, max(most, n_active // 2)))
        if self.full.size:
            room = max(room, most)
        if wrong.size > room:
            wrong = wrong[largest(np.abs(scores[wrong] - level), room)]
        # As many negatives at their caps can give up their weights to those that join.
        others = np.setdiff1d(self.full, wrong, assume_unique=True)
        wrong = np.concatenate([wrong, others[largest(-scores[others], wrong.size)]])
        self.full = np.setdiff1d(self.full, wrong, assume_unique=True)
        self.rows = np.concatenate([self.rows, wrong])
        return True

    def reduce(self, scores: Vector, x: Vector, active: Mask) -> None:
        """Remove the negatives whose weight is at one of its bounds, except those next to the
        threshold.
        """
        caps = self.caps
        share = x / max(float(x.sum()), 1e-300) * (1.0 - float(caps[self.full].sum()))
        kept = active.copy()
        if self.full.size:
            far = np.abs(scores[self.rows] - self._level(scores, active))
            far[active] = np.inf
            kept[largest(-far, max(_FEWEST_JOINING, int(np.count_nonzero(active))))] = True
        at_cap = ~kept & (share > 0.5 * caps[self.rows])
        # The weights of the remaining rows must be able to complete the sum of one.
        left = 1.0 - float(caps[self.full].sum() + caps[self.rows[at_cap]].sum())
        if 1e-9 < left < 0.999 * float(caps[self.rows[kept]].sum()):
            self.full = np.concatenate([self.full, self.rows[at_cap]])
            self.rows = self.rows[kept]

    def _level(self, scores: Vector, active: Mask) -> float:
        """The score of the threshold: that of the negatives whose weight is between its bounds."""
        among = scores[self.rows]
        return float(among[active].mean() if active.any() else among.min())
