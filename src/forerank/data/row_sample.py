"""Samples of rows that are kept while rows are read once, for classes of any size."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from forerank._typing import Mask, Vector
from forerank.objectives.parts import Rows

__all__ = ["RowSample"]


@dataclass
class _Kept:
    """Rows with a random number each; those below `share` are kept."""

    share: float = 1.0
    n_rows: int = 0
    pieces: list[tuple[Any, Vector, NDArray, NDArray, Vector]] = field(default_factory=list)

    def has_rows_below(self, share: float) -> bool:
        """Whether rows would be left with this share."""
        return any((u < share).any() for _, u, *_ in self.pieces)

    def thin(self) -> None:
        """Keep half of the rows."""
        self.share *= 0.5
        pieces = []
        for X, u, codes, group, weight in self.pieces:
            kept = np.flatnonzero(u < self.share)
            pieces.append((X[kept], u[kept], codes[kept], group[kept], weight[kept]))
        self.pieces = [piece for piece in pieces if piece[1].size]
        self.n_rows = sum(piece[1].size for piece in self.pieces)


class RowSample:
    """A sample of at most `size` rows; of each class up to half of them, or, with groups, complete
    groups.

    Whether a row is in the sample depends on its own random number and on the number of rows of its
    class so far, not on their values.
    """

    def __init__(self, size: int, *, grouped: bool, seed: int = 0) -> None:
        self._size, self._grouped = max(size, 16), grouped
        self._rng = np.random.default_rng(seed)
        self._by_class: dict[int, _Kept] = {}
        self._last_group, self._last_number = -1, 0.0

    def add(self, X: Any, codes: NDArray, weight: Vector | None, group: NDArray | None) -> None:
        """Offer rows to the sample."""
        u = self._rng.uniform(size=codes.size)
        weight = np.ones(codes.size) if weight is None else weight
        if group is None:
            group = np.zeros(codes.size, dtype=np.int64)
        if self._grouped:
            u = self._numbers_of_groups(u, group)
            self._keep(0, np.ones(codes.size, dtype=bool), X, u, codes, group, weight)
            return
        for code in np.unique(codes).tolist():
            self._keep(code, codes == code, X, u, codes, group, weight)

    def _numbers_of_groups(self, u: Vector, group: NDArray) -> Vector:
        """One random number per group; groups are in one piece, which may begin earlier."""
        first = np.flatnonzero(np.diff(group, prepend=-1) != 0)
        numbers = u[first]
        if group.size and group[0] == self._last_group:
            numbers[0] = self._last_number
        if group.size:
            self._last_group, self._last_number = int(group[-1]), float(numbers[-1])
        return np.repeat(numbers, np.diff(np.append(first, group.size)))

    def _keep(self, key: int, mask: Mask, X: Any, u: Vector, *rows: Any) -> None:
        kept = self._by_class.setdefault(key, _Kept())
        chosen = np.flatnonzero(mask & (u < kept.share))
        if not chosen.size:
            return
        codes, group, weight = (each[chosen] for each in rows)
        kept.pieces.append((X[chosen], u[chosen], codes, group, weight))
        kept.n_rows += chosen.size
        most = self._size if self._grouped else self._size // 2
        # The last group stays, however large it is.
        while kept.n_rows > most and kept.has_rows_below(0.5 * kept.share):
            kept.thin()

    def rows(self, order: NDArray, class_weight: Vector, weight_unit: float = 1.0) -> Rows:
        """The sample, with class numbers order[code] and, without groups, weights such that every
        class has its share of the weight of all rows. Weights of rows are divided by `weight_unit`.
        """
        pieces = [piece for kept in self._by_class.values() for piece in kept.pieces]
        parts = [piece[0] for piece in pieces]
        X = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
        codes, group, weight = (np.concatenate([p[k] for p in pieces]) for k in (2, 3, 4))
        codes, weight = order[codes], weight / weight_unit
        if self._grouped:
            return Rows(X, codes, weight, np.unique(group, return_inverse=True)[1])
        sampled = np.bincount(codes, weights=weight, minlength=class_weight.size)
        ratio = np.divide(class_weight, sampled, out=np.ones(sampled.size), where=sampled > 0.0)
        factor = weight * ratio[codes]
        return Rows(X, codes, factor / factor.mean() if factor.any() else factor)
