"""`LogisticSources`: kernel sums of the logistic loss for scores of any span.

Scores are split into cells of length 64. Beyond the neighbouring cell a kernel equals its limit to
1e-28 (loss: -t or 0; slope: -1 or 0; curvature: 0), and the limits are summed over cells from
charges and first moments. Within neighbouring cells the sums are those of the grid
(`forerank.pairsums.logistic_grid`). Only cells with rows exist, and a cell with few rows stores
them as points instead of nodes, so the cost is linear in N for scores that span 1e-3 or 1e6. Nodes
are binary fractions that include zero, so the cells of separate chunks of rows add up node by node.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forerank._kernels import compiled
from forerank._typing import Vector
from forerank.losses import logistic_rows
from forerank.pairsums.logistic_grid import (
    CELL_LENGTH,
    CURVATURE,
    INTERVALS,
    LOSS,
    NODES,
    POLYNOMIALS,
    REVERSED_TABLES,
    SLOPE,
    STENCIL,
    STEPS_PER_UNIT,
    TABLES,
    add_powers,
    convolve,
    dot,
    evaluate,
    nodes_to_polynomials,
    powers_to_nodes,
    spread_on_nodes,
)

__all__ = ["LogisticSources"]

# Sources of a cell below which they are stored as points: single sums are cheaper than a
# convolution.
_FEW_SOURCES = 256
# Points that are added to nodes one by one; more are spread on nodes first.
_FEW_POINTS = 8
# Targets of a cell above which it gets nodes even if all sources near it are points.
_MANY_TARGETS = 512


class _Cells(NamedTuple):
    """Cells with scores: number of the cell, rows, lowest and highest score; each row's cell."""

    number: NDArray[np.int64]
    size: NDArray[np.int64]
    low: Vector
    high: Vector
    of_row: NDArray[np.int32]


@compiled
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


def locate(s: Vector) -> _Cells:
    """The cells of the scores s."""
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
    """The first node, and one past the last node, of the stencils of each cell's rows."""
    left = cells.number * CELL_LENGTH
    first = ((cells.low - left) * STEPS_PER_UNIT).astype(np.int64)
    last = ((cells.high - left) * STEPS_PER_UNIT).astype(np.int64)
    return np.column_stack([first, last + STENCIL])


@compiled
def _spread_in_cells(s, q, number, index, slot, powers):  # type: ignore[no-untyped-def]
    """Add the powers of each source to its interval, in the cells with nodes (slot >= 0)."""
    for i in range(s.size):
        c = index[i]
        if slot[c] >= 0:
            x = (s[i] - number[c] * CELL_LENGTH) * STEPS_PER_UNIT
            k = np.int64(x)
            add_powers(powers[slot[c], k], q[i], x - k - 0.5)


@compiled
def _points_to_nodes(s, q, cell, sign, orders, out, target_range):  # type: ignore[no-untyped-def]
    """Add the kernel sums of single sources to the nodes of a cell."""
    first, last = target_range
    t, sums = np.empty(last - first), np.empty(last - first)
    for j in range(s.size):
        for a in range(first, last):
            node = cell * CELL_LENGTH + (a - (STENCIL // 2 - 1)) / STEPS_PER_UNIT
            t[a - first] = sign * (node - s[j])
        for o in range(orders.size):
            logistic_rows(t, orders[o], sums)
            for a in range(first, last):
                out[o, a] += q[j] * sums[a - first]


@compiled
def _fill_nodes(  # type: ignore[no-untyped-def]
    number, target_range, source, sign, orders, tables, polynomials
):
    """Kernel sums at the nodes of target cells, from the sources in the same and neighbouring
    cells.
    """
    source_number, slot, nodes, source_range, point_s, point_q, point_start = source
    out = np.zeros((number.size, orders.size, NODES))
    for c in range(number.size):
        a0, a1 = target_range[c]
        d = np.searchsorted(source_number, number[c] - 1)
        while d < source_number.size and source_number[d] <= number[c] + 1:
            shift = (number[c] - source_number[d]) * INTERVALS + a0
            if slot[d] >= 0:
                b0, b1 = source_range[slot[d]]
                for o in range(orders.size):
                    convolve(nodes[slot[d], b0:b1], shift - b0, tables[o], out[c, o, a0:a1])
            lo, hi = point_start[d], point_start[d + 1]
            if hi - lo > _FEW_POINTS:
                left = source_number[d] * CELL_LENGTH
                charge = spread_on_nodes(
                    point_s[lo:hi], point_q[lo:hi], left, INTERVALS, polynomials
                )
                for o in range(orders.size):
                    convolve(charge, shift, tables[o], out[c, o, a0:a1])
            else:
                _points_to_nodes(
                    point_s[lo:hi], point_q[lo:hi], number[c], sign, orders, out[c], target_range[c]
                )
            d += 1
    return out


@compiled
def _far_sums(number, source_number, weight, moment, sign):  # type: ignore[no-untyped-def]
    """Charge and first moment, about the left end of each target cell, of the sources at least two
    cells away on the side where the kernel is not zero: above for upper targets (sign = 1), below
    for lower ones (sign = -1).
    """
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


@compiled
def _read_polynomials(t, number, index, slot, coefficients, out):  # type: ignore[no-untyped-def]
    """Add the interpolated kernel sums at the targets in cells with nodes."""
    for i in range(t.size):
        c = index[i]
        if slot[c] >= 0:
            x = (t[i] - number[c] * CELL_LENGTH) * STEPS_PER_UNIT
            k = np.int64(x)
            for o in range(out.shape[0]):
                out[o, i] += evaluate(coefficients[slot[c], o, k], x - k - 0.5)


@compiled
def _read_points(t, number, index, slot, source, sign, orders, out):  # type: ignore[no-untyped-def]
    """Add the kernel sums of single sources at the targets in cells without nodes."""
    source_number, _, _, _, point_s, point_q, point_start = source
    margins, kernels = np.empty((2, point_s.size))
    for i in range(t.size):
        c = index[i]
        if slot[c] >= 0:
            continue
        near = np.searchsorted(source_number, number[c] - 1)
        end = np.searchsorted(source_number, number[c] + 2)
        first, n = point_start[near], point_start[end] - point_start[near]
        for j in range(n):
            margins[j] = sign * (t[i] - point_s[first + j])
        for o in range(orders.size):
            logistic_rows(margins[:n], orders[o], kernels[:n])
            out[o, i] += dot(kernels[:n], point_q[first : first + n])


@compiled
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
    """Sources with charges, stored on a grid for logistic kernel sums at any targets.

    Parameters
    ----------
    scores, charges : arrays of one length
        Positions and weights of the sources.

    Sources of separate chunks of rows add up: ``LogisticSources(s1, q1) + LogisticSources(s2, q2)``
    has the same sums as both chunks together. Its size is a few thousand floats for any number of
    rows.

    Examples
    --------
    >>> sources = LogisticSources([0.0, 1.0], [1.0, 2.0])
    >>> sources.sums([0.5], "slope", targets_are="upper").round(5)
    array([-1.62246])
    """

    def __init__(
        self, scores: ArrayLike, charges: ArrayLike, *, _cells: _Cells | None = None
    ) -> None:
        s, q = np.ascontiguousarray(scores, dtype=float), np.ascontiguousarray(charges, dtype=float)
        if s.shape != q.shape or s.ndim != 1:
            raise ValueError(
                f"scores and charges must be vectors of one length; got {s.shape} and {q.shape}."
            )
        if _cells is None and not np.isfinite(s).all():
            raise ValueError("scores must be finite; found NaN or infinity.")
        self._fill(s, q, locate(s) if _cells is None else _cells)

    def _fill(
        self, s: Vector, q: Vector, cells: _Cells, also_nodes: NDArray[np.int64] | None = None
    ) -> None:
        """Set nodes for cells with many sources and for those in also_nodes; points for others."""
        few = cells.size < _FEW_SOURCES
        if also_nodes is not None:
            few &= ~np.isin(cells.number, also_nodes)
        self._number = cells.number
        self._slot = np.where(few, -1, np.cumsum(~few) - 1)
        self._range = _node_range(cells)[~few]
        powers = np.zeros((self._range.shape[0], INTERVALS, STENCIL))
        if powers.size:
            _spread_in_cells(s, q, cells.number, cells.of_row, self._slot, powers)
        self._nodes = np.zeros((powers.shape[0], NODES))
        for cell_powers, (first, last), nodes in zip(powers, self._range, self._nodes, strict=True):
            powers_to_nodes(cell_powers, first, last - STENCIL + 1, POLYNOMIALS, nodes)
        points = np.flatnonzero(few[cells.of_row]) if few.any() else np.empty(0, dtype=np.intp)
        points = points[np.argsort(cells.of_row[points], kind="stable")]
        self._point_s, self._point_q = s[points], q[points]
        per_cell = np.bincount(cells.of_row[points], minlength=cells.number.size)
        self._point_start = np.concatenate([[0], np.cumsum(per_cell)])

    def _numbers_with_nodes(self) -> NDArray[np.int64]:
        return self._number[self._slot >= 0]

    def __add__(self, other: "LogisticSources") -> "LogisticSources":
        if not isinstance(other, LogisticSources):
            return NotImplemented
        s = np.concatenate([self._point_s, other._point_s])
        q = np.concatenate([self._point_q, other._point_q])
        points = locate(s)
        before = np.union1d(self._numbers_with_nodes(), other._numbers_with_nodes())
        with_nodes = np.union1d(before, points.number[points.size >= _FEW_SOURCES])
        merged = LogisticSources.__new__(LogisticSources)
        merged._fill(s, q, points, also_nodes=with_nodes)
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
        slot = np.searchsorted(with_nodes, number)
        merged._slot = np.where(np.isin(number, with_nodes), slot, -1)
        merged._number = number
        return merged

    def sums(
        self,
        targets: ArrayLike,
        kernel: Literal["loss", "slope", "curvature"],
        *,
        targets_are: Literal["upper", "lower"],
    ) -> Vector:
        """sum_j q_j K(t - s_j) at upper targets t, or sum_j q_j K(s_j - t) at lower ones."""
        t = np.ascontiguousarray(targets, dtype=float)
        if not np.isfinite(t).all():
            raise ValueError("targets must be finite; found NaN or infinity.")
        order = {"loss": LOSS, "slope": SLOPE, "curvature": CURVATURE}[kernel]
        sign = {"upper": 1.0, "lower": -1.0}[targets_are]
        return self._sums(t, locate(t), (order,), sign)[0]

    def _sums(self, t: Vector, cells: _Cells, orders: tuple[int, ...], sign: float) -> Vector:
        """One row per kernel, one column per target."""
        out = np.zeros((len(orders), t.size))
        if t.size == 0 or self._number.size == 0:
            return out
        order_array = np.array(orders)
        tables = (TABLES if sign > 0 else REVERSED_TABLES)[order_array]
        points = self._point_s, self._point_q, self._point_start
        source = (self._number, self._slot, self._nodes, self._range, *points)
        slot, with_nodes = self._target_slots(cells)
        if with_nodes.any():
            number, node_range = cells.number[with_nodes], _node_range(cells)[with_nodes]
            nodes = _fill_nodes(number, node_range, source, sign, order_array, tables, POLYNOMIALS)
            coefficients = np.zeros((*nodes.shape[:2], INTERVALS, STENCIL))
            for c, (first, last) in enumerate(node_range):
                end = last - STENCIL + 1
                for at_nodes, out_c in zip(nodes[c], coefficients[c], strict=True):
                    nodes_to_polynomials(at_nodes, first, end, POLYNOMIALS, out_c)
            _read_polynomials(t, cells.number, cells.of_row, slot, coefficients, out)
        if not with_nodes.all():
            _read_points(t, cells.number, cells.of_row, slot, source, sign, order_array, out)
        distances = self._number[-1] - cells.number[0], self._number[0] - cells.number[-1]
        if max(distance * sign for distance in distances) >= 2:
            far = _far_sums(cells.number, self._number, *self._cell_totals(), sign)
            _read_far(t, cells.number, cells.of_row, far, sign, order_array, out)
        return out

    def _target_slots(self, cells: _Cells) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """A running number for target cells that get nodes (-1 for others), and which these are."""
        dense = self._numbers_with_nodes()
        end = np.searchsorted(dense, cells.number + 1, side="right")
        near_nodes = end > np.searchsorted(dense, cells.number - 1)
        with_nodes = near_nodes | (cells.size > _MANY_TARGETS)
        return np.where(with_nodes, np.cumsum(with_nodes) - 1, -1), with_nodes

    def _cell_totals(self) -> tuple[Vector, Vector]:
        """Charge and first moment about the left end of each cell; nodes represent them exactly."""
        cell_of_point = np.repeat(np.arange(self._number.size), np.diff(self._point_start))
        x = self._point_s - CELL_LENGTH * self._number[cell_of_point]
        weight, moment = np.zeros(self._number.size), np.zeros(self._number.size)
        np.add.at(weight, cell_of_point, self._point_q)
        np.add.at(moment, cell_of_point, self._point_q * x)
        position = (np.arange(NODES) - (STENCIL // 2 - 1)) / STEPS_PER_UNIT
        with_nodes = self._slot >= 0
        weight[with_nodes] += self._nodes.sum(axis=1)
        moment[with_nodes] += self._nodes @ position
        return weight, moment
