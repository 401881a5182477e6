"""Sums of rows on the nodes of a grid of scores, from which X^T g is had for any smooth g(score).

A row whose score lies between two nodes is split between them in proportion to its nearness. So the
sum over the nodes of g(node) times the rows there is X^T g with g interpolated linearly between
nodes: exact at nodes and for linear g, with an error of (width)^2 / 8 times the second derivative
otherwise. The sums need the scores alone, not g, and add up over parts of the rows: tables of
scores, from which g follows, are filled in the same pass (maths/pairsums.md, 15).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from forerank._kernels import compiled
from forerank._typing import Vector

__all__ = ["NodeSums"]

# Bytes of the sums of a part: beyond, the nodes are farther apart.
_LARGEST_SUMS = 2**22


@compiled(fastmath={"contract"})
def _split_rows(X, codes, weight, s, scale, first, weights, sums):  # type: ignore[no-untyped-def]
    """Add the rows and their weights to the two nodes next to their scores."""
    for i in range(s.size):
        position = s[i] * scale
        k = np.int64(np.floor(position))
        w = weight[i] if weight.size else 1.0
        upper = w * (position - k)
        lower = w - upper
        x = X[i]
        weights[codes[i], k - first] += lower
        weights[codes[i], k - first + 1] += upper
        below = sums[codes[i], k - first]
        above = sums[codes[i], k - first + 1]
        for c in range(x.size):
            below[c] += lower * x[c]
            above[c] += upper * x[c]


@dataclass(frozen=True)
class NodeSums:
    """Weights and weighted sums of the rows of each class on nodes at multiples of 2^-bits.

    The first node has number `first`. `overflows` is set where scores are too far apart or not
    finite.
    """

    bits: int
    first: int
    weight: Vector
    sums: Vector
    overflows: bool = False

    @classmethod
    def of(
        cls,
        X: NDArray,
        codes: NDArray[np.integer],
        weight: Vector | None,
        s: Vector,
        n_classes: int,
        bits: int,
    ) -> "NodeSums":
        """The sums of the rows of X with scores s; at most 2^bits nodes per unit. Cost: N d."""
        d = X.shape[1]
        if s.size == 0:
            return cls(bits, 0, np.zeros((n_classes, 0)), np.zeros((n_classes, 0, d)))
        low, high = float(s.min()), float(s.max())
        most = _LARGEST_SUMS // (8 * n_classes * max(d, 1))
        while bits >= 0 and not (high - low) * 2.0**bits + 3.0 <= most:
            bits -= 1
        if bits < 0 or not max(high, -low) < 2.0**40:
            return cls._overflow(n_classes, d)
        scale = 2.0**bits
        first = int(np.floor(low * scale))
        n = int(np.floor(high * scale)) - first + 2
        weights, sums = np.zeros((n_classes, n)), np.zeros((n_classes, n, d))
        w = np.empty(0) if weight is None else weight
        # On one thread: the next part is read meanwhile, and several would share the sums.
        _split_rows(X, codes, w, s, scale, first, weights, sums)
        return cls(bits, first, weights, sums)

    @classmethod
    def _overflow(cls, n_classes: int, d: int) -> "NodeSums":
        return cls(0, 0, np.zeros((n_classes, 0)), np.zeros((n_classes, 0, d)), overflows=True)

    @property
    def n_nodes(self) -> int:
        return self.weight.shape[1]

    @property
    def scores(self) -> Vector:
        """The scores of the nodes."""
        return np.asarray((self.first + np.arange(self.n_nodes)) * 2.0**-self.bits)

    def at_bits(self, bits: int) -> "NodeSums":
        """The same rows on nodes that are at least 2^-bits apart."""
        out = self
        while out.bits > bits:
            first = out.first // 2
            n = (out.first + out.n_nodes) // 2 - first + 1 if out.n_nodes else 0
            out = NodeSums(
                out.bits - 1,
                first if n else 0,
                _coarser(out.weight, out.first % 2, n),
                _coarser(out.sums, out.first % 2, n),
                out.overflows,
            )
        return out

    def __add__(self, other: "NodeSums") -> "NodeSums":
        if self.overflows or other.overflows:
            return self._overflow(self.weight.shape[0], self.sums.shape[2])
        if not self.n_nodes or not other.n_nodes:
            return self if self.n_nodes else other
        bits = min(self.bits, other.bits)
        a, b = self.at_bits(bits), other.at_bits(bits)
        first = min(a.first, b.first)
        n = max(a.first + a.n_nodes, b.first + b.n_nodes) - first
        if n * a.sums[:, :1].nbytes > _LARGEST_SUMS and bits > 0:
            return a.at_bits(bits - 1) + b.at_bits(bits - 1)
        if n * a.sums[:, :1].nbytes > 2 * _LARGEST_SUMS:
            return self._overflow(self.weight.shape[0], self.sums.shape[2])
        weight, sums = (
            np.zeros((each.shape[0], n, *each.shape[2:])) for each in (a.weight, a.sums)
        )
        for part in (a, b):
            inside = slice(part.first - first, part.first - first + part.n_nodes)
            weight[:, inside] += part.weight
            sums[:, inside] += part.sums
        return NodeSums(bits, first, weight, sums)


def _coarser(values: Vector, odd: int, n: int) -> Vector:
    """Values on every second node; the others are split between their neighbours."""
    fine = np.zeros((values.shape[0], 2 * n + 2, *values.shape[2:]))
    fine[:, 1 + odd : 1 + odd + values.shape[1]] = values
    out = fine[:, 1:-1:2] + 0.5 * fine[:, 2::2]
    out[:, :] += 0.5 * fine[:, 0:-2:2]
    return out[:, :n]
