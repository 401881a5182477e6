"""Curves of additive models as nodes of an ONNX graph.

A spline is written in truncated powers, sum_p a_p (z - low)^p + sum_j c_j max(z - t_j, 0)^degree,
which a graph evaluates by subtractions, powers and one product.
"""

from typing import Any

import numpy as np
from scipy.interpolate import BSpline, PPoly

from forerank._typing import Vector
from forerank.data.additive_columns import AdditiveColumns
from forerank.data.date_parts import HOUR_ROUNDING
from forerank.data.splines import ColumnSpline

__all__ = ["curve_terms"]


def curve_terms(build: Any, step: AdditiveColumns, k: int, column: str, weights: Vector) -> list:
    """Terms of the score of column k: its spline and, for a date, its parts.

    `build` is the graph, to which the input of this name has been added.
    """
    spline, first = step.splines_[k], step.splines_[k].width
    terms = _spline_terms(build, spline, column, weights[:first])
    for part, known in step.parts_[k].items():
        found = _PARTS[part](build, column)
        is_equal = build.add("Equal", [found, build.constant(known[None, :])])
        adds = build.constant(weights[first : first + known.size, None])
        terms.append(build.add("MatMul", [build.cast(is_equal), adds]))
        first += known.size
    return terms


def _spline_terms(build: Any, spline: ColumnSpline, column: str, weights: Vector) -> list[str]:
    is_missing = build.add("IsNaN", [build.add("Sub", [column, column])])  # also where infinite
    z = build.add("Where", [is_missing, build.constant([[0.0]]), column])
    if spline.unit:
        ratio = build.add("Div", [build.add("Abs", [z]), build.constant([[spline.unit]])])
        logarithm = build.add("Log", [build.add("Add", [ratio, build.constant([[1.0]])])])
        z = build.add("Mul", [build.add("Sign", [z]), logarithm])
    z = build.add("Sub", [z, build.constant([[spline.mean]])])
    z = build.add("Div", [z, build.constant([[spline.scale]])])
    median = build.constant([[(spline.median - spline.mean) / spline.scale]])
    z = build.add("Where", [is_missing, median, z])
    curves = weights[1 : 1 + spline.n_curves]
    slope = float(weights[0] - spline.line[1] @ curves)
    terms = [build.add("Mul", [z, build.constant([[slope]])])]
    if spline.n_curves:
        terms += _b_spline_terms(build, spline, z, curves)
    if spline.has_flag:
        flag = build.cast(is_missing)
        terms.append(build.add("Mul", [flag, build.constant([[weights[-1]]])]))
    return terms


def _b_spline_terms(build: Any, spline: ColumnSpline, z: str, curves: Vector) -> list[str]:
    combined = BSpline(spline.knots, spline.directions @ curves, spline.degree)
    low, high = float(spline.knots[0]), float(spline.knots[-1])
    ends = {end: build.constant([[end]]) for end in (low, high)}
    zero = build.constant([[0.0]])
    inside = build.add("Max", [build.add("Min", [z, ends[high]]), ends[low]])
    powers, shifts, coefficients = _truncated_powers(combined)
    distance = build.add("Sub", [inside, build.constant(shifts[None, :])])
    distance = build.add("Max", [distance, zero])
    raised = build.add("Pow", [distance, build.constant(powers[None, :])])
    terms = [build.add("MatMul", [raised, build.constant(coefficients[:, None])])]
    slope = combined.derivative()
    for end, kind in ((low, "Min"), (high, "Max")):
        beyond = build.add(kind, [build.add("Sub", [z, ends[end]]), zero])
        terms.append(build.add("Mul", [beyond, build.constant([[float(slope(end))]])]))
    constant = float(combined(low) - spline.line[0] @ curves)
    return [*terms, build.constant([[constant]])]


def _truncated_powers(spline: BSpline) -> tuple[Vector, Vector, Vector]:
    """Powers, shifts and coefficients of a spline with simple inner knots, less its first value."""
    pieces = PPoly.from_spline(spline)
    real = np.flatnonzero(np.diff(pieces.x) > 0)  # repeated knots at the ends make empty pieces
    breaks, coefficients = pieces.x[real], pieces.c[:, real]
    degree = spline.k
    powers = np.concatenate([np.arange(degree, 0, -1.0), np.full(breaks.size - 1, float(degree))])
    shifts = np.concatenate([np.full(degree, breaks[0]), breaks[1:]])
    return powers, shifts, np.concatenate([coefficients[:-1, 0], np.diff(coefficients[0])])


def _whole(build: Any, value: str, divisor: float = 1.0) -> str:
    """The largest integer that is not above value / divisor."""
    if divisor != 1.0:
        value = build.add("Div", [value, build.constant([[divisor]])])
    return build.add("Floor", [value])


def _times(build: Any, value: str, factor: float) -> str:
    return build.add("Mul", [value, build.constant([[factor]])])


def _plus(build: Any, value: str, shift: float) -> str:
    return build.add("Add", [value, build.constant([[shift]])])


def _remainder(build: Any, value: str, divisor: float) -> str:
    multiple = _times(build, _whole(build, value, divisor), divisor)
    return build.add("Sub", [value, multiple])


def _hour(build: Any, days: str) -> str:
    fraction = build.add("Sub", [days, _whole(build, days)])
    hour = _whole(build, _plus(build, _times(build, fraction, 24.0), HOUR_ROUNDING))
    return build.add("Min", [hour, build.constant([[23.0]])])


def _weekday(build: Any, days: str) -> str:
    return _remainder(build, _plus(build, _whole(build, days), 3.0), 7.0)


def _month(build: Any, days: str) -> str:
    """The month from 0, by the days since 1 March of the year 0 in cycles of 400 years."""
    day = _remainder(build, _plus(build, _whole(build, days), 719_468.0), 146_097.0)
    leaps = build.add("Sub", [day, _whole(build, day, 1460.0)])
    leaps = build.add("Add", [leaps, _whole(build, day, 36_524.0)])
    leaps = build.add("Sub", [leaps, _whole(build, day, 146_096.0)])
    year = _whole(build, leaps, 365.0)
    before = build.add("Add", [_times(build, year, 365.0), _whole(build, year, 4.0)])
    before = build.add("Sub", [before, _whole(build, year, 100.0)])
    of_year = build.add("Sub", [day, before])
    since_march = _whole(build, _plus(build, _times(build, of_year, 5.0), 2.0), 153.0)
    return _remainder(build, _plus(build, since_march, 2.0), 12.0)


_PARTS = {"hour": _hour, "weekday": _weekday, "month": _month}
