"""Curves of a model: what each value of a column adds to the score.

For linear models on plain columns these are lines, for additive models (`AdditiveColumns`) curves;
for categories, and for hours, weekdays and months of dates, one number for each value.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from forerank._typing import Vector
from forerank.data.additive_columns import AdditiveColumns
from forerank.data.date_parts import part_name
from forerank.data.splines import ColumnSpline
from forerank.data.transformers import CategoryColumns, NumberColumns, TableColumns
from forerank.models.file import Model
from forerank.models.scoring import linear_steps

__all__ = ["Curve", "column_curves", "is_additive"]

# Values at which a curve of numbers is evaluated.
_POINTS = 101
# Range of a plain number: so many standard deviations from the mean, as far as there are values.
_PLAIN_RANGE = 2.0


@dataclass(frozen=True)
class Curve:
    """What the values of a column add to the score.

    Attributes
    ----------
    name : str
        The column, or a part of its dates such as "seen weekday".
    column : str
        The column of the table.
    kind : str
        "number", "date" or "category".
    values : list
        Ascending numbers, dates as days since 1970, or names of categories.
    adds : list of float
        What each value adds.
    missing : float or None
        What a missing value adds; None for categories, and where it is what the median adds.
    is_log : bool
        Whether the numbers are equally spaced on a logarithmic scale.
    importance : float
        The standard deviation of what the column adds: over the training rows, without missing
        ones, or over the categories.
    """

    name: str
    column: str
    kind: str
    values: list[Any]
    adds: list[float]
    missing: float | None
    is_log: bool
    importance: float


def is_additive(pipeline: Any) -> bool:
    """Whether a pipeline of columns and a ranker has splines of its numbers."""
    steps = getattr(pipeline[0], "transformers_", [])
    return any(isinstance(step, AdditiveColumns) for _, step, _ in steps)


def column_curves(model: Model) -> list[Curve]:
    """The curves of all columns but texts, the most important first.

    ValueError for a model that is not linear on the columns of a table.
    """
    steps, _, coef, _ = linear_steps(model)
    if not isinstance(steps, TableColumns):
        raise ValueError(
            f"the rows of the model are prepared by a {type(steps).__name__}; only models of "
            "tables have a curve for each column"
        )
    curves: list[Curve] = []
    for name, step, columns in steps.transformers_:
        if not isinstance(step, NumberColumns | CategoryColumns | AdditiveColumns):
            continue
        ends = np.cumsum(getattr(step, "widths_", [1] * len(columns)))[:-1]
        parts = np.split(coef[steps.output_indices_[name]], ends)
        for k, weights in enumerate(parts):
            curves += _curves(step, k, str(columns[k]), weights)
    return sorted(curves, key=lambda curve: -curve.importance)


def _curves(step: Any, k: int, column: str, weights: Vector) -> Iterator[Curve]:
    if isinstance(step, CategoryColumns):
        encoder = step.encoders_[k]
        values = [value.removeprefix("x_") for value in encoder.get_feature_names_out(["x"])]
        named = {"": "(missing)", "infrequent_sklearn": "(rare)"}
        yield _bars(column, column, [named.get(value, value) for value in values], weights)
        return
    kind = "date" if step.dates_[k] else "number"
    if isinstance(step, NumberColumns):
        plain = {"median": step.median_[k], "mean": step.mean_[k], "scale": step.scale_[k]}
        ends = step.mean_[k] + _PLAIN_RANGE * step.scale_[k] * np.array([-1.0, 1.0])
        if step.low_ is not None and step.high_ is not None:
            ends = np.clip(ends, step.low_[k], step.high_[k])
        yield _line(column, kind, ColumnSpline(low=ends[0], high=ends[1], **plain), weights)
        return
    spline, first = step.splines_[k], step.splines_[k].width
    yield _line(column, kind, spline, weights[:first])
    for part, known in step.parts_[k].items():
        names = [part_name(part, value) for value in known]
        yield _bars(f"{column} {part}", column, names, weights[first : first + known.size])
        first += known.size


def _line(column: str, kind: str, spline: ColumnSpline, weights: Vector) -> Curve:
    adds = partial(spline.term, weights=weights)
    grid = spline.grid(_POINTS)
    missing = float(adds(np.array([np.nan]))[0]) if spline.has_flag else None
    spread = spline.spread(weights)
    values = grid.tolist()
    return Curve(
        column, column, kind, values, adds(grid).tolist(), missing, spline.unit > 0, spread
    )


def _bars(name: str, column: str, values: list[str], weights: Vector) -> Curve:
    spread = float(weights.std()) if weights.size else 0.0
    return Curve(name, column, "category", values, weights.tolist(), None, False, spread)
