"""Tables of the scores of a class that add up over parts of the rows, and what they say.

Every loss has a table of one class's scores, `table_of(loss, s, w)`; tables of two parts of the
rows add up with ``+``. From the tables of all rows, `sums_of(loss, own, lower, upper)` is a
function of the score of a row: the loss over the pairs in which the row is the upper one, and the
slope over all of its pairs. So value and gradient of the mean over all pairs need two passes over
the rows and no exchange of scores between parts.

=================  =============================  ===========================================
loss               table of a class               error
=================  =============================  ===========================================
hinge              moments of cells               bounded (`forerank.pairsums.cells`)
squared hinge      moments of cells               bounded
logistic           powers on a grid, step 1/16    1e-12 (maths/pairsums.md, 4)
exponential        two sums                       rounding
squared            three moments                  rounding
=================  =============================  ===========================================
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from forerank._kernels import compiled
from forerank._typing import Vector
from forerank.pairsums.cell_tables import HingeTable
from forerank.pairsums.cells import HingeSums
from forerank.pairsums.logistic_grid import (
    LOSS,
    POLYNOMIALS,
    SLOPE,
    STENCIL,
    STEPS_PER_UNIT,
    TABLES,
    add_powers,
    evaluate,
    nodes_to_polynomials,
    powers_to_nodes,
)

__all__ = ["ExponentialTable", "LogisticTable", "MomentTable", "sums_of", "table_of"]

# Largest span of the scores of a logistic table, in units of score (16 MB of powers).
_LARGEST_SPAN = 2**14
# Distance, in nodes, beyond which the logistic loss equals max(-t, 0) to 1e-55: 128 units.
_NEAR = 2048
# Of the logistic loss: 1 / (6 sqrt 3).
_LARGEST_THIRD_DERIVATIVE = 0.0962251


class _NoError:
    """Sums without an error to speak of."""

    overflows = False

    def error(self) -> tuple[float, float]:
        """Bounds on the error of the slopes; see `HingeSums.error`."""
        return 0.0, 0.0


# --- logistic ---


@compiled
def _add_to_intervals(s, w, first, powers):  # type: ignore[no-untyped-def]
    for i in range(s.size):
        x = s[i] * STEPS_PER_UNIT
        k = np.int64(np.floor(x))
        add_powers(powers[k - first], w[i] if w.size else 1.0, x - k - 0.5)


@dataclass(frozen=True)
class LogisticTable:
    """The powers of the scores in intervals of length 1/16, the first of which has number `first`.

    `overflows` is set where scores span more than 16,384 units or are not finite.
    """

    first: int
    powers: Vector
    overflows: bool = False

    @classmethod
    def of(cls, s: Vector, w: Vector | None) -> "LogisticTable":
        """The table of some scores and their weights. Cost: N."""
        if s.size == 0:
            return cls(0, np.zeros((0, STENCIL)))
        low, high = float(s.min()), float(s.max())
        if not (high - low < _LARGEST_SPAN and max(high, -low) < 2.0**40):
            return cls(0, np.zeros((0, STENCIL)), overflows=True)
        first, last = (int(np.floor(end * STEPS_PER_UNIT)) for end in (low, high))
        powers = np.zeros((last - first + 1, STENCIL))
        _add_to_intervals(s, np.empty(0) if w is None else w, first, powers)
        return cls(first, powers)

    @property
    def weight(self) -> float:
        return float(self.powers[:, 0].sum())

    def __add__(self, other: "LogisticTable") -> "LogisticTable":
        if self.overflows or other.overflows:
            return LogisticTable(0, np.zeros((0, STENCIL)), overflows=True)
        if not len(self.powers) or not len(other.powers):
            return self if len(self.powers) else other
        first = min(self.first, other.first)
        end = max(self.first + len(self.powers), other.first + len(other.powers))
        if end - first > _LARGEST_SPAN * STEPS_PER_UNIT:
            return LogisticTable(0, np.zeros((0, STENCIL)), overflows=True)
        powers = np.zeros((end - first, STENCIL))
        for table in (self, other):
            begin = table.first - first
            powers[begin : begin + len(table.powers)] += table.powers
        return LogisticTable(first, powers)

    def covering(self, low: float, high: float) -> "LogisticTable":
        """The same intervals, and empty ones for all scores from low to high."""
        first, last = (int(np.floor(end * STEPS_PER_UNIT)) for end in (low, high))
        return self + LogisticTable(first, np.zeros((last - first + 1, STENCIL)))

    def charges(self) -> Vector:
        """The sources spread on nodes; the first has number first - 3."""
        charge = np.zeros(len(self.powers) + STENCIL - 1)
        powers_to_nodes(self.powers, 0, len(self.powers), POLYNOMIALS, charge)
        return charge


@compiled
def _near_sums(charge, offset, sign, table, out):  # type: ignore[no-untyped-def]
    """Add the kernel sums of charges to the nodes `out`; charge 0 is at node `offset` of `out`."""
    middle = (table.size - 1) // 2
    for b in range(charge.size):
        q = charge[b]
        if q != 0.0:
            here = offset + b
            for a in range(max(here - _NEAR, 0), min(here + _NEAR + 1, out.size)):
                out[a] += q * table[middle + sign * (a - here)]


@compiled
def _far_sums(charge, offset, sign, loss, slope):  # type: ignore[no-untyped-def]
    """Add the limits of the kernels over charges beyond the near ones."""
    n, total, moment = loss.size, 0.0, 0.0  # moment: of the distances, in nodes, to node a
    b = charge.size - 1 if sign > 0 else 0
    for step in range(n):
        a = n - 1 - step if sign > 0 else step
        moment += total
        while 0 <= b < charge.size and sign * (offset + b - a) > _NEAR:
            total += charge[b]
            moment += charge[b] * (sign * (offset + b - a))
            b -= sign
        loss[a] += moment / STEPS_PER_UNIT
        slope[a] -= total


def _node_sums(own: LogisticTable, sources: LogisticTable, sign: int) -> Vector:
    """Loss and slope at the nodes of the targets' intervals, over the sources."""
    out = np.zeros((2, len(own.powers) + STENCIL - 1))
    charge, offset = sources.charges(), sources.first - own.first
    if len(sources.powers):
        _near_sums(charge, offset, sign, TABLES[LOSS], out[0])
        _near_sums(charge, offset, sign, TABLES[SLOPE], out[1])
        _far_sums(charge, offset, sign, out[0], out[1])
    return out


@compiled
def _read_intervals(t, first, coefficients, out):  # type: ignore[no-untyped-def]
    for i in range(t.size):
        x = t[i] * STEPS_PER_UNIT
        k = np.int64(np.floor(x))
        for o in range(out.shape[0]):
            out[o, i] = evaluate(coefficients[o, k - first], x - k - 0.5)


class LogisticSums(_NoError):
    """Value and slope of the logistic loss, summed over the sources, at targets of one class."""

    def __init__(self, own: LogisticTable, lower: LogisticTable, upper: LogisticTable) -> None:
        self.overflows = own.overflows or lower.overflows or upper.overflows
        if self.overflows:
            return
        self._first, self._powers = own.first, own.powers
        self._sources = lower.weight + upper.weight
        below, above = _node_sums(own, lower, 1), _node_sums(own, upper, -1)
        self._coefficients = np.empty((2, len(own.powers), STENCIL))
        for nodes, out in zip((below[0], below[1] - above[1]), self._coefficients, strict=True):
            nodes_to_polynomials(nodes, 0, len(own.powers), POLYNOMIALS, out)

    def value(self) -> float:
        """The loss over all targets and the lower sources, from the tables alone."""
        return float((self._coefficients[0] * self._powers).sum())

    def interpolation_errors(self, first: int, n: int, bits: int) -> Vector:
        """Bounds on the error of a linear interpolation of the slope; see `HingeSums`."""
        return np.full(n, _LARGEST_THIRD_DERIVATIVE / 8.0 * 4.0**-bits * self._sources)

    def at(self, t: Vector) -> tuple[Vector, Vector]:
        """Sums of the loss over the lower sources at each target, and slopes over all sources."""
        out = np.empty((2, t.size))
        _read_intervals(t, self._first, self._coefficients, out)
        return out[0], out[1]


# --- exponential and squared ---


@dataclass(frozen=True)
class ExponentialTable:
    """Logarithms of the sums of w exp(s) and of w exp(-s) over the rows of a class."""

    rising: float = -np.inf
    falling: float = -np.inf
    weight: float = 0.0
    overflows: bool = False

    @classmethod
    def of(cls, s: Vector, w: Vector | None) -> "ExponentialTable":
        """The table of some scores and their weights. Cost: N."""
        if w is not None and not w.all():
            s, w = s[w > 0.0], w[w > 0.0]
        if s.size == 0:
            return cls()
        if not np.isfinite(s).all():
            return cls(overflows=True)
        v = np.ones(s.size) if w is None else w
        low, high = float(s.min()), float(s.max())
        rising = high + np.log(float(v @ np.exp(s - high)))
        falling = -low + np.log(float(v @ np.exp(low - s)))
        return cls(float(rising), float(falling), float(v.sum()))

    def covering(self, low: float, high: float) -> "ExponentialTable":
        """The same table, which holds for all scores."""
        return self

    def __add__(self, other: "ExponentialTable") -> "ExponentialTable":
        return ExponentialTable(
            float(np.logaddexp(self.rising, other.rising)),
            float(np.logaddexp(self.falling, other.falling)),
            self.weight + other.weight,
            self.overflows or other.overflows,
        )


class ExponentialSums(_NoError):
    """Value and slope of exp(-t), summed over the sources, at targets of one class."""

    def __init__(
        self, own: ExponentialTable, lower: ExponentialTable, upper: ExponentialTable
    ) -> None:
        self._own, self._below, self._above = own, lower.rising, upper.falling
        # Beyond this the value is infinite, and a line search shortens its step.
        largest = max(own.falling + lower.rising, own.rising + upper.falling)
        self.overflows = own.overflows or lower.overflows or upper.overflows or largest > 700.0

    def value(self) -> float:
        """The loss over all targets and the lower sources, from the tables alone."""
        return float(np.exp(self._own.falling + self._below))

    def interpolation_errors(self, first: int, n: int, bits: int) -> Vector:
        """Bounds on the error of a linear interpolation of the slope; see `HingeSums`."""
        t = (first + np.arange(n + 1)) * 2.0**-bits
        with np.errstate(over="ignore"):
            changes = np.diff(np.exp(self._below - t)), np.diff(np.exp(self._above + t))
        return np.maximum(*np.abs(changes)) * (0.25 * 2.0**-bits)

    def at(self, t: Vector) -> tuple[Vector, Vector]:
        """Sums of the loss over the lower sources at each target, and slopes over all sources."""
        below, above = np.exp(self._below - t), np.exp(self._above + t)
        return below, above - below


@dataclass(frozen=True)
class MomentTable:
    """Weight, first and second moment of the scores of a class."""

    weight: float = 0.0
    first: float = 0.0
    second: float = 0.0
    overflows: bool = False

    @classmethod
    def of(cls, s: Vector, w: Vector | None) -> "MomentTable":
        """The table of some scores and their weights. Cost: N."""
        if not s.size:
            return cls()
        v = np.ones(s.size) if w is None else w
        with np.errstate(over="ignore", invalid="ignore"):
            moments = float(v.sum()), float(v @ s), float(v @ (s * s))
        return cls(*moments, overflows=not np.isfinite(moments).all())

    def covering(self, low: float, high: float) -> "MomentTable":
        """The same table, which holds for all scores."""
        return self

    def __add__(self, other: "MomentTable") -> "MomentTable":
        return MomentTable(
            self.weight + other.weight,
            self.first + other.first,
            self.second + other.second,
            self.overflows or other.overflows,
        )


class SquaredSums(_NoError):
    """Value and slope of (1 - t)^2, summed over the sources, at targets of one class."""

    def __init__(self, own: MomentTable, lower: MomentTable, upper: MomentTable) -> None:
        self.overflows = own.overflows or lower.overflows or upper.overflows
        self._own, self._below, self._above = own, lower, upper

    def value(self) -> float:
        """The loss over all targets and the lower sources, from the tables alone."""
        own, below = self._own, self._below
        second = own.weight - 2.0 * own.first + own.second  # of 1 - t
        first = own.weight - own.first
        value = second * below.weight + 2.0 * first * below.first
        return value + own.weight * below.second

    def interpolation_errors(self, first: int, n: int, bits: int) -> Vector:
        """Zeros: the slope is linear."""
        return np.zeros(n)

    def at(self, t: Vector) -> tuple[Vector, Vector]:
        """Sums of the loss over the lower sources at each target, and slopes over all sources."""
        below, above, m = self._below, self._above, 1.0 - t
        value = m * (m * below.weight + 2.0 * below.first) + below.second
        down = m * below.weight + below.first
        up = (1.0 + t) * above.weight - above.first
        return value, 2.0 * (up - down)


# Of each loss: its table of a class, and its sums at targets of a class.
_TABLES: dict[str, tuple[Any, Callable[[Any, Any, Any], Any]]] = {
    "hinge": (HingeTable, partial(HingeSums, degree=1)),
    "squared_hinge": (HingeTable, partial(HingeSums, degree=2)),
    "logistic": (LogisticTable, LogisticSums),
    "exponential": (ExponentialTable, ExponentialSums),
    "squared": (MomentTable, SquaredSums),
}


def table_of(loss: str, s: Vector, w: Vector | None, bits: int | None = None) -> Any:
    """The table of the scores s, with weights w, of one class, for the loss of that name; with
    2^bits cells per unit of score where it has cells.
    """
    table = _TABLES[loss][0]
    return table.of(s, w) if bits is None or table is not HingeTable else table.of(s, w, bits)


def sums_of(loss: str, own: Any, lower: Any, upper: Any) -> Any:
    """Sums at targets of a class, from its own table and those of the classes below and above it.

    ``at(t)`` has the loss over the lower sources and the slope over all sources, by target;
    ``overflows`` says that the scores are too far apart; ``error()`` bounds the error of slopes.
    """
    return _TABLES[loss][1](own, lower, upper)
