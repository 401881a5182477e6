"""All-pairs sums of the logistic loss by spreading scores on a uniform grid; no sort.

The kernels are the logistic loss and its derivatives, analytic functions of the score difference. Each source is
spread on the 8 nearest nodes of a grid with step 1/16 by its Lagrange weights, the node charges are convolved with the
kernel, and the result is interpolated at the targets with the same weights (maths/pairsums.md, eq. 4). The nearest
singularity of the kernels lies at distance pi from the real line, so the interpolation error is about 1e-12 of the
kernel's own local size. The Lagrange weights are polynomials of degree 7 in the position between two nodes; a source
therefore only adds the first 8 powers of its position to its interval, and a target only evaluates one polynomial: the
change to and from nodes is made once per interval, not once per row.

Wide scores. The line is cut into cells of length 64. Beyond the neighbouring cell a kernel equals its limit to 1e-28
(loss: -t or 0; slope: -1 or 0; curvature: 0), and the limits are summed over whole cells from charges and first
moments. Only cells that hold rows exist, and a cell with few rows keeps them as points instead of nodes, so the cost
stays linear in N whether the scores span 1e-3 or 1e6. Nodes are binary fractions anchored at zero, so the cells of
separate chunks of rows add up node by node.

Cost: about 10 N multiplications for the spread and as many for each interpolation; the convolution does not depend
on N.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from forerank.pairsums.blocks import PairBlocks

__all__ = ["GriddedPairs", "LogisticSources"]

Vector = NDArray[np.float64]

STEPS_PER_UNIT = 16
CELL_LENGTH = 64
STENCIL = 8
INTERVALS = CELL_LENGTH * STEPS_PER_UNIT
# A cell's nodes reach 3 to the left and 4 to the right of it, so that every stencil stays inside its own cell.
NODES = INTERVALS + STENCIL - 1
# A cell with fewer sources than this keeps them as points: summing them one by one is cheaper than a convolution.
FEW_SOURCES = 256
# A cell with more targets than this gets nodes even where all sources near it are points.
MANY_TARGETS = 512
# Blocks with fewer pairs than this are summed directly.
FEW_PAIRS = 10_000
LOSS, SLOPE, CURVATURE = 0, 1, 2


@njit(cache=True, nogil=True)
def logistic_kernel(t):  # type: ignore[no-untyped-def]
    """log(1 + exp(-t)), its slope and its curvature, without overflow."""
    e = np.exp(-abs(t))
    p = e / (1.0 + e) if t >= 0.0 else 1.0 / (1.0 + e)
    return max(-t, 0.0) + np.log1p(e), -p, e / ((1.0 + e) * (1.0 + e))


def _kernel_tables() -> NDArray[np.float64]:
    """Loss, slope and curvature at every difference of nodes of adjoining cells; column 2 * NODES is difference 0."""
    t = np.arange(-2 * NODES, 2 * NODES + 1) / STEPS_PER_UNIT
    e = np.exp(-np.abs(t))
    return np.stack([np.maximum(-t, 0.0) + np.log1p(e), -np.where(t >= 0, e, 1.0) / (1.0 + e), e / (1.0 + e) ** 2])


def _stencil_polynomials() -> NDArray[np.float64]:
    """Row m: coefficients, lowest power first, of the Lagrange weight of node m at x in [-1/2, 1/2) about the middle
    of the fourth and the fifth of 8 equidistant nodes."""
    positions = np.arange(STENCIL) - (STENCIL - 1) / 2
    rows = []
    for m, own in enumerate(positions):
        others = np.delete(positions, m)
        rows.append(np.poly(others)[::-1] / np.prod(own - others))
    return np.array(rows)


_TABLES = _kernel_tables()
_POLYNOMIALS = _stencil_polynomials()


class _Cells(NamedTuple):
    """The occupied cells of a set of scores: cell number, row count, lowest and highest score; and each row's cell."""

    number: NDArray[np.int64]
    count: NDArray[np.int64]
    low: Vector
    high: Vector
    index: NDArray[np.int32]


@njit(cache=True, nogil=True)
def _index_cells(s, first, n_cells):  # type: ignore[no-untyped-def]
    index = np.empty(s.size, dtype=np.int32)
    count = np.zeros(n_cells, dtype=np.int64)
    low = np.full(n_cells, np.inf)
    high = np.full(n_cells, -np.inf)
    for i in range(s.size):
        c = np.int64(np.floor(s[i] / CELL_LENGTH)) - first
        index[i] = c
        count[c] += 1
        low[c] = min(low[c], s[i])
        high[c] = max(high[c], s[i])
    return index, count, low, high


def _locate(s: Vector) -> _Cells:
    if s.size == 0:
        none = np.empty(0, dtype=np.int64)
        return _Cells(none, none, np.empty(0), np.empty(0), np.empty(0, dtype=np.int32))
    first, last = np.floor(s.min() / CELL_LENGTH), np.floor(s.max() / CELL_LENGTH)
    if last - first < 64 + s.size // 8:
        index, count, low, high = _index_cells(s, np.int64(first), int(last - first) + 1)
        occupied = count > 0
        number = np.int64(first) + np.flatnonzero(occupied)
        if number.size < occupied.size:
            index = (np.cumsum(occupied, dtype=np.int32) - np.int32(1))[index]
        return _Cells(number, count[occupied], low[occupied], high[occupied], index)
    number, index, count = np.unique(
        np.floor(s / CELL_LENGTH).astype(np.int64), return_inverse=True, return_counts=True
    )
    low, high = np.full(number.size, np.inf), np.full(number.size, -np.inf)
    np.minimum.at(low, index, s)
    np.maximum.at(high, index, s)
    return _Cells(number, count, low, high, index.astype(np.int32))


def _node_range(cells: _Cells) -> NDArray[np.int64]:
    """First node, and one past the last node, that the rows of each cell touch."""
    left = cells.number * CELL_LENGTH
    first = ((cells.low - left) * STEPS_PER_UNIT).astype(np.int64)
    last = ((cells.high - left) * STEPS_PER_UNIT).astype(np.int64)
    return np.column_stack([first, last + STENCIL])


@njit(cache=True, nogil=True)
def _spread(s, q, number, index, slot, powers):  # type: ignore[no-untyped-def]
    """Add q x^0 .. q x^7 to each source's interval, x its position about the interval's middle."""
    for i in range(s.size):
        c = index[i]
        if slot[c] < 0:
            continue
        x = (s[i] - number[c] * CELL_LENGTH) * STEPS_PER_UNIT
        k = np.int64(x)
        x -= k + 0.5
        x2 = x * x
        x4 = x2 * x2
        a, b = q[i], q[i] * x
        p = powers[slot[c], k]
        p[0] += a
        p[1] += b
        p[2] += a * x2
        p[3] += b * x2
        a *= x4
        b *= x4
        p[4] += a
        p[5] += b
        p[6] += a * x2
        p[7] += b * x2


@njit(cache=True, nogil=True)
def _powers_to_nodes(powers, node_range, polynomials):  # type: ignore[no-untyped-def]
    nodes = np.zeros((powers.shape[0], NODES))
    for c in range(powers.shape[0]):
        for k in range(node_range[c, 0], node_range[c, 1] - STENCIL + 1):
            for m in range(STENCIL):
                total = 0.0
                for r in range(STENCIL):
                    total += polynomials[m, r] * powers[c, k, r]
                nodes[c, k + m] += total
    return nodes


@njit(cache=True, nogil=True)
def _nodes_to_polynomials(nodes, node_range, polynomials):  # type: ignore[no-untyped-def]
    """For each cell, kernel and interval the coefficients of the interpolating polynomial, lowest power first."""
    out = np.zeros((nodes.shape[0], nodes.shape[1], INTERVALS, STENCIL))
    for c in range(nodes.shape[0]):
        for o in range(nodes.shape[1]):
            for k in range(node_range[c, 0], node_range[c, 1] - STENCIL + 1):
                for m in range(STENCIL):
                    for r in range(STENCIL):
                        out[c, o, k, r] += polynomials[m, r] * nodes[c, o, k + m]
    return out


@njit(cache=True, nogil=True, fastmath={"contract"})
def _convolve(charge, source_range, shift, table, out, target_range):  # type: ignore[no-untyped-def]
    """Add the kernel sum of one cell's node charges to the nodes of the cell `shift` cells to the right of it."""
    base = 2 * NODES + shift * INTERVALS
    for b in range(source_range[0], source_range[1]):
        q = charge[b]
        offset = base - b
        for a in range(target_range[0], target_range[1]):
            out[a] += q * table[offset + a]


@njit(cache=True, nogil=True)
def _points_to_nodes(s, q, cell, sign, orders, out, target_range):  # type: ignore[no-untyped-def]
    """Add the kernel sums of single sources to the nodes of a cell."""
    for a in range(target_range[0], target_range[1]):
        node = cell * CELL_LENGTH + (a - (STENCIL // 2 - 1)) / STEPS_PER_UNIT
        for j in range(s.size):
            kernels = logistic_kernel(sign * (node - s[j]))
            for o in range(orders.size):
                out[o, a] += q[j] * kernels[orders[o]]


@njit(cache=True, nogil=True)
def _fill_nodes(number, target_range, source, sign, orders, tables):  # type: ignore[no-untyped-def]
    """Kernel sums at the nodes of target cells, from all sources in the same and the adjoining cells."""
    source_number, slot, nodes, source_range, point_s, point_q, point_start = source
    out = np.zeros((number.size, orders.size, NODES))
    for c in range(number.size):
        d = np.searchsorted(source_number, number[c] - 1)
        while d < source_number.size and source_number[d] <= number[c] + 1:
            r = slot[d]
            if r >= 0:
                for o in range(orders.size):
                    shift = number[c] - source_number[d]
                    _convolve(nodes[r], source_range[r], shift, tables[o], out[c, o], target_range[c])
            lo, hi = point_start[d], point_start[d + 1]
            _points_to_nodes(point_s[lo:hi], point_q[lo:hi], number[c], sign, orders, out[c], target_range[c])
            d += 1
    return out


@njit(cache=True, nogil=True)
def _far_sums(number, source_number, weight, moment, sign):  # type: ignore[no-untyped-def]
    """Charge and first moment, about each target cell's left end, of the sources at least two cells away on the side
    where the kernel does not vanish: above for upper targets (sign = 1), below for lower ones (sign = -1)."""
    far = np.zeros((number.size, 2))
    step = -1 if sign > 0 else 1
    c = number.size - 1 if sign > 0 else 0
    d = source_number.size - 1 if sign > 0 else 0
    total = first = 0.0
    here = number[c]
    for _ in range(number.size):
        first += total * CELL_LENGTH * (here - number[c])
        here = number[c]
        while 0 <= d < source_number.size and (source_number[d] - here) * sign >= 2:
            total += weight[d]
            first += moment[d] + weight[d] * (CELL_LENGTH * (source_number[d] - here))
            d += step
        far[c, 0] = total
        far[c, 1] = first
        c += step
    return far


@njit(cache=True, nogil=True)
def _read_polynomials(t, number, index, slot, polynomials, out):  # type: ignore[no-untyped-def]
    """Add the interpolated kernel sums at the targets in cells that have nodes."""
    for i in range(t.size):
        c = index[i]
        if slot[c] < 0:
            continue
        x = (t[i] - number[c] * CELL_LENGTH) * STEPS_PER_UNIT
        k = np.int64(x)
        x -= k + 0.5
        x2 = x * x
        for o in range(out.shape[0]):
            p = polynomials[slot[c], o, k]
            low = (p[0] + p[1] * x) + x2 * (p[2] + p[3] * x)
            high = (p[4] + p[5] * x) + x2 * (p[6] + p[7] * x)
            out[o, i] += low + x2 * x2 * high


@njit(cache=True, nogil=True)
def _read_points(t, number, index, slot, source, sign, orders, out):  # type: ignore[no-untyped-def]
    """Add the kernel sums of single sources at the targets in cells that have no nodes."""
    source_number, _, _, _, point_s, point_q, point_start = source
    for i in range(t.size):
        c = index[i]
        if slot[c] >= 0:
            continue
        d = np.searchsorted(source_number, number[c] - 1)
        while d < source_number.size and source_number[d] <= number[c] + 1:
            for j in range(point_start[d], point_start[d + 1]):
                kernels = logistic_kernel(sign * (t[i] - point_s[j]))
                for o in range(orders.size):
                    out[o, i] += point_q[j] * kernels[orders[o]]
            d += 1


@njit(cache=True, nogil=True)
def _read_far(t, number, index, far, sign, orders, out):  # type: ignore[no-untyped-def]
    """Add the limits of the kernels over sources at least two cells away."""
    for i in range(t.size):
        c = index[i]
        for o in range(orders.size):
            if orders[o] == LOSS:
                out[o, i] += sign * (far[c, 1] - far[c, 0] * (t[i] - number[c] * CELL_LENGTH))
            elif orders[o] == SLOPE:
                out[o, i] -= far[c, 0]


class LogisticSources:
    """Charges on a line, kept so that logistic kernel sums at any targets are cheap.

    Parameters
    ----------
    scores, charges : arrays of one length
        Where the sources sit and what each weighs.

    Sources of separate chunks of rows add up: ``LogisticSources(s1, q1) + LogisticSources(s2, q2)`` gives the same
    sums as the two chunks together, and exchanging it costs a few thousand floats however many rows it stands for.

    Examples
    --------
    >>> sources = LogisticSources([0.0, 1.0], [1.0, 2.0])
    >>> sources.sums([0.5], "slope", targets_are="upper").round(6)
    array([-1.62246])
    """

    def __init__(self, scores: ArrayLike, charges: ArrayLike, *, _cells: _Cells | None = None) -> None:
        s, q = np.ascontiguousarray(scores, dtype=float), np.ascontiguousarray(charges, dtype=float)
        if s.shape != q.shape or s.ndim != 1:
            raise ValueError(f"scores and charges must be vectors of one length; got shapes {s.shape} and {q.shape}.")
        if _cells is None and not np.isfinite(s).all():
            raise ValueError("scores must be finite; found NaN or infinity.")
        self._fill(s, q, _locate(s) if _cells is None else _cells)

    def _fill(self, s: Vector, q: Vector, cells: _Cells, also_nodes: NDArray[np.int64] | None = None) -> None:
        """Nodes for cells with many sources and for those numbered in also_nodes; points for the others."""
        few = cells.count < FEW_SOURCES
        if also_nodes is not None:
            few &= ~np.isin(cells.number, also_nodes)
        self._number = cells.number
        self._slot = np.where(few, -1, np.cumsum(~few) - 1)
        self._range = _node_range(cells)[~few]
        powers = np.zeros((self._range.shape[0], INTERVALS, STENCIL))
        if powers.size:
            _spread(s, q, cells.number, cells.index, self._slot, powers)
        self._nodes = _powers_to_nodes(powers, self._range, _POLYNOMIALS)
        points = np.flatnonzero(few[cells.index]) if few.any() else np.empty(0, dtype=np.intp)
        points = points[np.argsort(cells.index[points], kind="stable")]
        self._point_s, self._point_q = s[points], q[points]
        per_cell = np.bincount(cells.index[points], minlength=cells.number.size)
        self._point_start = np.concatenate([[0], np.cumsum(per_cell)])

    def _numbers_with_nodes(self) -> NDArray[np.int64]:
        return self._number[self._slot >= 0]

    def __add__(self, other: "LogisticSources") -> "LogisticSources":
        if not isinstance(other, LogisticSources):
            return NotImplemented
        s = np.concatenate([self._point_s, other._point_s])
        points = _locate(s)
        with_nodes = np.union1d(
            np.union1d(self._numbers_with_nodes(), other._numbers_with_nodes()),
            points.number[points.count >= FEW_SOURCES],
        )
        merged = LogisticSources.__new__(LogisticSources)
        merged._fill(s, np.concatenate([self._point_q, other._point_q]), points, also_nodes=with_nodes)
        parts = [
            (np.searchsorted(with_nodes, part._numbers_with_nodes()), part._nodes, part._range)
            for part in (self, other, merged)
        ]
        number = np.union1d(merged._number, with_nodes)
        merged._nodes = np.zeros((with_nodes.size, NODES))
        merged._range = np.tile(np.array([NODES, 0]), (with_nodes.size, 1))
        for rows, nodes, node_range in parts:
            merged._nodes[rows] += nodes
            merged._range[rows, 0] = np.minimum(merged._range[rows, 0], node_range[:, 0])
            merged._range[rows, 1] = np.maximum(merged._range[rows, 1], node_range[:, 1])
        per_cell = np.zeros(number.size, dtype=np.int64)
        per_cell[np.searchsorted(number, merged._number)] = np.diff(merged._point_start)
        merged._point_start = np.concatenate([[0], np.cumsum(per_cell)])
        merged._slot = np.where(np.isin(number, with_nodes), np.searchsorted(with_nodes, number), -1)
        merged._number = number
        return merged

    def sums(
        self,
        targets: ArrayLike,
        kernel: Literal["loss", "slope", "curvature"],
        *,
        targets_are: Literal["upper", "lower"],
    ) -> Vector:
        """Sum_j q_j K(t - s_j) at upper targets t, or sum_j q_j K(s_j - t) at lower ones."""
        t = np.ascontiguousarray(targets, dtype=float)
        if not np.isfinite(t).all():
            raise ValueError("targets must be finite; found NaN or infinity.")
        order = {"loss": LOSS, "slope": SLOPE, "curvature": CURVATURE}[kernel]
        sign = {"upper": 1.0, "lower": -1.0}[targets_are]
        return self._sums(t, _locate(t), (order,), sign)[0]

    def _sums(self, t: Vector, cells: _Cells, orders: tuple[int, ...], sign: float) -> Vector:
        """One row per kernel, one column per target."""
        out = np.zeros((len(orders), t.size))
        if t.size == 0 or self._number.size == 0:
            return out
        order_array = np.array(orders)
        tables = np.stack([_TABLES[o] if sign > 0 else _TABLES[o, ::-1] for o in orders])
        source = (
            self._number, self._slot, self._nodes, self._range, self._point_s, self._point_q, self._point_start
        )  # fmt: skip
        slot, with_nodes = self._target_slots(cells)
        if with_nodes.any():
            node_range = _node_range(cells)[with_nodes]
            nodes = _fill_nodes(cells.number[with_nodes], node_range, source, sign, order_array, tables)
            polynomials = _nodes_to_polynomials(nodes, node_range, _POLYNOMIALS)
            _read_polynomials(t, cells.number, cells.index, slot, polynomials, out)
        if not with_nodes.all():
            _read_points(t, cells.number, cells.index, slot, source, sign, order_array, out)
        if (self._number[-1] - cells.number[0]) * sign >= 2 or (self._number[0] - cells.number[-1]) * sign >= 2:
            far = _far_sums(cells.number, self._number, *self._cell_totals(), sign)
            _read_far(t, cells.number, cells.index, far, sign, order_array, out)
        return out

    def _target_slots(self, cells: _Cells) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Which target cells get nodes, and a running number for them (-1 for the others)."""
        dense = self._numbers_with_nodes()
        beside = np.searchsorted(dense, cells.number + 1, side="right") > np.searchsorted(dense, cells.number - 1)
        with_nodes = beside | (cells.count > MANY_TARGETS)
        return np.where(with_nodes, np.cumsum(with_nodes) - 1, -1), with_nodes

    def _cell_totals(self) -> tuple[Vector, Vector]:
        """Charge and first moment about the left end of each cell. Lagrange weights keep both exactly."""
        cell_of_point = np.repeat(np.arange(self._number.size), np.diff(self._point_start))
        x = self._point_s - CELL_LENGTH * self._number[cell_of_point]
        weight = np.bincount(cell_of_point, weights=self._point_q, minlength=self._number.size)
        moment = np.bincount(cell_of_point, weights=self._point_q * x, minlength=self._number.size)
        position = (np.arange(NODES) - (STENCIL // 2 - 1)) / STEPS_PER_UNIT
        with_nodes = self._slot >= 0
        weight[with_nodes] += self._nodes.sum(axis=1)
        moment[with_nodes] += self._nodes @ position
        return weight, moment


@njit(cache=True, nogil=True)
def _direct_value_slopes(upper, lower, w_upper, w_lower, g_upper, g_lower):  # type: ignore[no-untyped-def]
    value = 0.0
    for i in range(upper.size):
        for j in range(lower.size):
            loss, slope, _ = logistic_kernel(upper[i] - lower[j])
            value += w_upper[i] * w_lower[j] * loss
            g_upper[i] += w_lower[j] * slope
            g_lower[j] += w_upper[i] * slope
    return value


@njit(cache=True, nogil=True)
def _direct_curvature(upper, lower, q_upper, q_lower, out_upper, out_lower):  # type: ignore[no-untyped-def]
    for i in range(upper.size):
        for j in range(lower.size):
            curvature = logistic_kernel(upper[i] - lower[j])[2]
            out_upper[i] += q_lower[j] * curvature
            out_lower[j] += q_upper[i] * curvature


@njit(cache=True, nogil=True)
def _small_values_slopes(t, w, start, split, small, potential):  # type: ignore[no-untyped-def]
    value = 0.0
    for b in range(split.size):
        if small[b]:
            lo, mid, hi = start[b], split[b], start[b + 1]
            value += _direct_value_slopes(
                t[mid:hi], t[lo:mid], w[mid:hi], w[lo:mid], potential[mid:hi], potential[lo:mid]
            )
    return value


@njit(cache=True, nogil=True)
def _small_curvatures(t, q, start, split, small, potential):  # type: ignore[no-untyped-def]
    for b in range(split.size):
        if small[b]:
            lo, mid, hi = start[b], split[b], start[b + 1]
            _direct_curvature(t[mid:hi], t[lo:mid], q[mid:hi], q[lo:mid], potential[mid:hi], potential[lo:mid])


class GriddedPairs:
    """The mean logistic loss over all pairs of `blocks`, at scores `s`.

    `value` and `gradient` (by row) are computed at once; `curvature_product` costs about as much again.
    """

    def __init__(self, blocks: PairBlocks, s: Vector) -> None:
        self._blocks = blocks
        self._scale = 1.0 / blocks.total_weight
        self._t = s[blocks.rows]
        pairs_per_block = (blocks.split - blocks.start[:-1]) * (blocks.start[1:] - blocks.split)
        self._small = pairs_per_block <= FEW_PAIRS
        self._halves = [
            _Half(slice(begin, end), _locate(self._t[begin:end]))
            for k in np.flatnonzero(~self._small)
            for begin, end in ((blocks.start[k], blocks.split[k]), (blocks.split[k], blocks.start[k + 1]))
        ]
        self._total_curvature: Vector | None = None
        self.value, slopes = self._value_and_slopes()
        self.gradient = self._by_row(_flip_lower(slopes, blocks))

    def _large_blocks(self) -> Iterator[tuple["_Half", "_Half"]]:
        return zip(self._halves[0::2], self._halves[1::2], strict=True)

    def _kernel_sums(self, q: Vector, targets: "_Half", sources: "_Half", orders: tuple[int, ...], sign: float) -> Vector:
        charges = LogisticSources(self._t[sources.entries], q[sources.entries], _cells=sources.cells)
        return charges._sums(self._t[targets.entries], targets.cells, orders, sign)

    def _value_and_slopes(self) -> tuple[float, Vector]:
        b, w = self._blocks, self._blocks.weight
        slopes = np.zeros(self._t.size)
        value = _small_values_slopes(self._t, w, b.start, b.split, self._small, slopes)
        for lower, upper in self._large_blocks():
            loss, slopes[upper.entries] = self._kernel_sums(w, upper, lower, (LOSS, SLOPE), 1.0)
            slopes[lower.entries] = self._kernel_sums(w, lower, upper, (SLOPE,), -1.0)[0]
            value += w[upper.entries] @ loss
        return self._scale * value, slopes

    def _curvature_sums(self, q: Vector) -> Vector:
        """sum_j q_j K''(t_i - t_j) over the other half of each entry's block."""
        b = self._blocks
        out = np.zeros(self._t.size)
        _small_curvatures(self._t, q, b.start, b.split, self._small, out)
        for lower, upper in self._large_blocks():
            out[upper.entries] = self._kernel_sums(q, upper, lower, (CURVATURE,), 1.0)[0]
            out[lower.entries] = self._kernel_sums(q, lower, upper, (CURVATURE,), -1.0)[0]
        return out

    def _by_row(self, sums: Vector) -> Vector:
        """Weigh each entry's sum by its own weight and the scale, and add up the entries of each row."""
        b = self._blocks
        sums *= self._scale
        if not b.unweighted:
            sums *= b.weight
        return b.add_to_rows(sums)

    def _entry_curvature(self) -> Vector:
        if self._total_curvature is None:
            self._total_curvature = self._curvature_sums(self._blocks.weight)
        return self._total_curvature

    def curvature_product(self, u: Vector) -> Vector:
        """F''(s) u."""
        u_entry = u[self._blocks.rows]
        sums = self._curvature_sums(u_entry if self._blocks.unweighted else self._blocks.weight * u_entry)
        u_entry *= self._entry_curvature()
        u_entry -= sums
        return self._by_row(u_entry)

    def curvature_matrix(self, U: Vector) -> Vector:
        """F''(s) U for the columns of U: block by block with all kernels of a block at once, meant for few rows."""
        b, w = self._blocks, self._blocks.weight
        out = np.zeros(U.shape)
        for k in range(b.n_blocks):
            lower, upper = slice(b.start[k], b.split[k]), slice(b.split[k], b.start[k + 1])
            e = np.exp(-np.abs(self._t[upper, None] - self._t[lower]))
            kernel = self._scale * w[upper, None] * w[lower] * e / (1.0 + e) ** 2
            i, j = b.rows[upper], b.rows[lower]
            out[i] += kernel.sum(axis=1)[:, None] * U[i] - kernel @ U[j]
            out[j] += kernel.sum(axis=0)[:, None] * U[j] - kernel.T @ U[i]
        return out

    def curvature_diagonal(self) -> Vector:
        """The diagonal of F''(s)."""
        return self._by_row(self._entry_curvature().copy())


class _Half(NamedTuple):
    """One side of a large block: its entries and the cells they lie in."""

    entries: slice
    cells: _Cells


def _flip_lower(by_entry: Vector, blocks: PairBlocks) -> Vector:
    """Change the sign of the lower entries, in place: a slope in s_i - s_j pulls them the other way."""
    half_start = np.column_stack([blocks.start[:-1], blocks.split]).ravel()
    sizes = np.diff(np.append(half_start, blocks.start[-1]))
    if blocks.n_blocks == 1:
        np.negative(by_entry[: blocks.split[0]], out=by_entry[: blocks.split[0]])
    else:
        by_entry[np.repeat(np.arange(half_start.size) % 2 == 0, sizes)] *= -1.0
    return by_entry
