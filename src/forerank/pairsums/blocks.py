"""Blocks of pairs: which pairs count, for labels, groups, grades and preference graphs.

A *block* is a set of lower rows and a set of upper rows; each upper row should be ranked above each
lower row of its block. An *entry* is a row in a block. All rules become lists of blocks, so that
the sums over pairs are written once:

- two classes: one block; with groups (``qid``): one block per group;
- graded labels, every pair of different grades: number the grades 0 .. K-1 in binary. Two different
  numbers have exactly one highest differing bit, so for bit l the rows that agree above bit l form
  a block, and bit l decides between lower and upper. Each pair occurs once, each row at most
  log2(K) times: the cost is N log K, not N K;
- a preference graph over classes: classes with the same set of lower classes share a block.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Index, Mask, Random, Vector

__all__ = ["LARGEST_SCORE", "PairBlocks", "out_of_range"]

# Largest |score| with exact cells of a grid or a series; beyond it the value is infinite, and a
# line search shortens its step.
LARGEST_SCORE = 2.0**55
# Number of blocks above which a sample of rows consists of complete blocks.
_MANY_BLOCKS = 256


@dataclass(frozen=True)
class PairBlocks:
    """Blocks stored one after another, lower rows before upper rows.

    Block b has the entries ``start[b]:start[b + 1]`` of `rows` and `weight`; those before
    ``split[b]`` are lower rows, the others upper rows. `total_weight` is the sum of w_i w_j over
    all pairs. `n_rows` counts all rows, `n_unpaired` those in no block, so in no pair. `unweighted`
    means that every weight is one.
    """

    rows: NDArray[np.signedinteger]
    weight: Vector
    start: NDArray[np.int64]
    split: NDArray[np.int64]
    total_weight: float
    n_rows: int
    n_unpaired: int
    unweighted: bool

    @property
    def n_blocks(self) -> int:
        return self.split.size

    @cached_property
    def half_start(self) -> NDArray[np.int64]:
        """The first entry of each half of each block, lower halves first."""
        return np.column_stack([self.start[:-1], self.split]).ravel()

    @cached_property
    def half_size(self) -> NDArray[np.int64]:
        return np.diff(np.append(self.half_start, self.start[-1]))

    @cached_property
    def n_pairs(self) -> NDArray[np.int64]:
        """The number of pairs of each block."""
        return (self.split - self.start[:-1]) * (self.start[1:] - self.split)

    @cached_property
    def sign(self) -> Vector:
        """-1 for lower entries, 1 for upper ones."""
        return np.repeat(np.tile([-1.0, 1.0], self.n_blocks), self.half_size)

    @cached_property
    def is_upper(self) -> Mask:
        """Whether an entry is an upper row."""
        return np.repeat(np.tile([False, True], self.n_blocks), self.half_size)

    @cached_property
    def half_weight(self) -> Vector:
        """Row b: the weight of the lower and of the upper half of block b."""
        return np.add.reduceat(self.weight, self.half_start).reshape(-1, 2)

    def opposite_weights(self, sign: float) -> Vector:
        """For each row, the sum of the weights of its pairs, times `sign` where it is the lower."""
        lower, upper = self.half_weight.T
        if self.n_blocks == 1:
            out, split = np.zeros(self.n_rows), self.split[0]
            out[self.rows[:split]] = sign * upper * self.weight[:split]
            out[self.rows[split:]] = lower * self.weight[split:]
            return out
        opposite = np.repeat(np.column_stack([sign * upper, lower]).ravel(), self.half_size)
        return self.add_to_rows(self.weight * opposite)

    def add_to_rows(self, by_entry: Vector) -> Vector:
        """The sum of the entries of each row."""
        if self.n_blocks == 1:
            out = np.zeros(self.n_rows)
            out[self.rows] = by_entry
            return out
        sums = np.bincount(self.rows, weights=by_entry, minlength=self.n_rows)
        return sums.astype(float, copy=False)

    def sample(self, size: int, rng: Random) -> "tuple[Index, PairBlocks] | None":
        """About `size` rows, and their blocks, numbered within the sample; None if that saves
        little.

        A single block has up to half of `size` from either side: the mean over pairs is unbiased
        for all sizes of the two sides, so the rarer side may be sampled more densely. Of many
        blocks (groups) complete ones are drawn; of few (grades), the entries of random rows.
        """
        if size > 0.5 * self.n_rows:
            return None
        rng = np.random.default_rng(rng)
        if self.n_blocks == 1:
            return self._sample_of_one_block(size, rng)
        if self.n_blocks > _MANY_BLOCKS:
            sizes = np.diff(self.start)
            order = rng.permutation(self.n_blocks)
            drawn = np.zeros(self.n_blocks, dtype=bool)
            drawn[order[: 1 + int(np.searchsorted(np.cumsum(sizes[order]), size))]] = True
            entries = np.repeat(drawn, sizes)
        else:
            rows = np.zeros(self.n_rows, dtype=bool)
            rows[_draw(0, self.n_rows, size, rng)] = True
            entries = rows[self.rows]
        return self._restricted_to(entries)

    def _sample_of_one_block(
        self, size: int, rng: np.random.Generator
    ) -> "tuple[Index, PairBlocks]":
        """Rows of the only block, up to half of `size` from either side if both have as many."""
        split, end = int(self.split[0]), int(self.start[1])
        lower = _draw(0, split, max(size // 2, size - (end - split)), rng)
        upper = _draw(split, end, max(size // 2, size - split), rng)
        drawn = np.concatenate([lower, upper])
        n, weight = drawn.size, self.weight[drawn]
        start, sides = np.array([0, n]), np.array([lower.size])
        total = _total_weight(weight, start, sides)
        number = np.arange(n, dtype=self.rows.dtype)
        blocks = PairBlocks(number, weight, start, sides, total, n, 0, self.unweighted)
        return self.rows[drawn].astype(np.intp), blocks

    def _restricted_to(self, chosen: Mask) -> "tuple[Index, PairBlocks] | None":
        """The blocks of the chosen entries, without those that lose a side."""
        sizes = np.add.reduceat(chosen.astype(np.int64), self.half_start).reshape(-1, 2)
        paired = (sizes > 0).all(axis=1)
        if not paired.any():
            return None
        entries = np.flatnonzero(chosen & np.repeat(paired, np.diff(self.start)))
        sizes = sizes[paired]
        start = np.concatenate([[0], np.cumsum(sizes.sum(axis=1))])
        split = start[:-1] + sizes[:, 0]
        rows, number = np.unique(self.rows[entries], return_inverse=True)
        number, weight = number.astype(self.rows.dtype), self.weight[entries]
        total = _total_weight(weight, start, split)
        blocks = PairBlocks(
            number, weight, start, split, total, rows.size, n_unpaired=0, unweighted=self.unweighted
        )
        return rows.astype(np.intp), blocks

    @classmethod
    def build(
        cls,
        grade: NDArray[np.integer],
        *,
        weight: Vector | None = None,
        group: NDArray[np.integer] | None = None,
        edges: Iterable[tuple[int, int]] | None = None,
    ) -> "PairBlocks":
        """Blocks for grades 0 .. K-1 (higher is better), or for `edges` (upper, lower) over them.

        `group` restricts pairs to rows of equal group number. Rows of weight zero are in no pair.
        Cost: N log K for grades; for a graph one sort, and then the rows of each set of classes
        with equal successors and of these successors.
        """
        n = grade.size
        present = None if weight is None else np.flatnonzero(weight)
        if present is not None:
            grade = grade[present]
            group = None if group is None else group[present]
        levels = _order_levels(grade) if edges is None else _graph_levels(grade, edges)
        pieces = [_blocks_of_level(*level, group) for level in levels] or [_NO_BLOCKS]
        entries, sizes, lower_sizes = map(np.concatenate, zip(*pieces, strict=True))
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        split = start[:-1] + lower_sizes
        rows = entries if present is None else present[entries]
        rows = rows.astype(np.int32 if n < 2**31 else np.int64)
        unweighted = weight is None
        weight = np.ones(rows.size) if weight is None else weight[rows]
        total = _total_weight(weight, start, split)
        # The rows of a single block are different ones.
        n_paired = rows.size if split.size == 1 else np.count_nonzero(np.bincount(rows))
        n_unpaired = n - int(n_paired)
        return cls(rows, weight, start, split, total, n, n_unpaired, unweighted)


def _draw(begin: int, end: int, size: int, rng: np.random.Generator) -> Index:
    """`size` different numbers from begin .. end - 1, or all of them, in ascending order."""
    if end - begin <= size:
        return np.arange(begin, end)
    return begin + np.sort(rng.choice(end - begin, size, replace=False, shuffle=False))


def _total_weight(weight: Vector, start: NDArray[np.int64], split: NDArray[np.int64]) -> float:
    if split.size == 0:
        return 0.0
    halves = np.add.reduceat(weight, np.column_stack([start[:-1], split]).ravel())
    return float(halves[0::2] @ halves[1::2])


# Rows (None: all), their side (0 lower, 1 upper), and a key that rows of a block have in common.
Level = tuple[Index | None, NDArray[np.int8], NDArray[np.integer] | None]

_NO_BLOCKS = (np.empty(0, np.intp), np.empty(0, np.int64), np.empty(0, np.int64))


def _order_levels(grade: NDArray[np.integer]) -> list[Level]:
    """One level per bit of the grade."""
    n_bits = int(grade.max(initial=0)).bit_length()
    if n_bits <= 1:
        return [(None, grade.astype(np.int8), None)]
    return [
        (None, ((grade >> bit) & 1).astype(np.int8), grade >> (bit + 1)) for bit in range(n_bits)
    ]


def _graph_levels(grade: NDArray[np.integer], edges: Iterable[tuple[int, int]]) -> list[Level]:
    """One level per set of lower grades, with the rows of these grades and their upper ones."""
    lower_of: dict[int, set[int]] = {}
    for upper, lower in edges:
        lower_of.setdefault(upper, set()).add(lower)
    uppers_with: dict[frozenset[int], list[int]] = {}
    for upper, lowers in lower_of.items():
        uppers_with.setdefault(frozenset(lowers), []).append(upper)
    by_grade = np.argsort(grade, kind="stable")
    bounds = np.searchsorted(grade, np.arange(int(grade.max(initial=0)) + 2), sorter=by_grade)

    def rows_of(grades: Iterable[int]) -> Index:
        # `grade` has no rows of weight zero, so the highest grades of `edges` may be missing.
        present = [g for g in sorted(grades) if g + 1 < bounds.size]
        return np.concatenate(
            [by_grade[:0], *(by_grade[bounds[g] : bounds[g + 1]] for g in present)]
        )

    levels: list[Level] = []
    for lowers_set, uppers in uppers_with.items():
        lower_rows, upper_rows = rows_of(lowers_set), rows_of(uppers)
        side = np.repeat(np.array([0, 1], dtype=np.int8), [lower_rows.size, upper_rows.size])
        levels.append((np.concatenate([lower_rows, upper_rows]), side, None))
    return levels


def _blocks_of_level(
    rows: Index | None,
    side: NDArray[np.int8],
    key: NDArray[np.integer] | None,
    group: NDArray[np.integer] | None,
) -> tuple[Index, NDArray[np.int64], NDArray[np.int64]]:
    """Rows sorted by (key, group, side) in blocks with both sides, the sizes of these blocks, and
    those of their lower halves.
    """
    if rows is not None:
        group = None if group is None else group[rows]
        order, sizes, lower_sizes = _blocks_of_level(None, side, key, group)
        return rows[order], sizes, lower_sizes
    if key is None and group is None:
        lower, upper = np.flatnonzero(side == 0), np.flatnonzero(side == 1)
        if lower.size == 0 or upper.size == 0:
            return _NO_BLOCKS
        return np.concatenate([lower, upper]), np.array([side.size]), np.array([lower.size])
    keys: Sequence[NDArray[np.integer]] = [side, *[k for k in (group, key) if k is not None]]
    order = np.lexsort(keys)
    if order.size == 0:
        return _NO_BLOCKS
    changes = np.zeros(order.size, dtype=bool)
    changes[0] = True
    for k in keys[1:]:
        changes[1:] |= k[order[1:]] != k[order[:-1]]
    first = np.flatnonzero(changes)
    sizes = np.diff(np.append(first, order.size))
    lower_sizes = np.add.reduceat((side[order] == 0).astype(np.int64), first)
    both = (lower_sizes > 0) & (lower_sizes < sizes)
    return order[np.repeat(both, sizes)], sizes[both], lower_sizes[both]


def out_of_range(t: Vector) -> bool:
    """Whether scores are too large, or not numbers; sums over them have an infinite value."""
    return not (t.size == 0 or max(t.max(), -t.min()) < LARGEST_SCORE)
