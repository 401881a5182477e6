"""Curves of the columns of a model: what each value adds to the score."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from forerank._text import figure_label
from forerank.models.curves import Curve, column_curves
from forerank.models.file import Model
from forerank.plots.style import COLOURS, GREY, STYLE, require_matplotlib

__all__ = ["ColumnCurvesDisplay", "draw_column_curves"]

# Panels of a figure, and of a row of it.
MOST_PANELS = 12
_PANELS_IN_A_ROW = 3
# Inches of a panel.
_WIDTH, _HEIGHT = 4.4, 3.0
# Categories of a panel: those that add most and least.
_MOST_BARS = 10
# Characters of a category, and of a title.
_MOST_CHARACTERS = 24
_MOST_TITLE = 40


@dataclass(kw_only=True, eq=False, repr=False)
class ColumnCurvesDisplay:
    """A panel for each of the most important columns: what its values add to the score.

    All panels have the same scale, so that their heights can be compared. A dot at the left is what
    a missing value adds.

    Parameters
    ----------
    curves : list of forerank.models.curves.Curve

    Attributes
    ----------
    axes_ : list of matplotlib Axes
    figure_ : matplotlib Figure
    """

    curves: Sequence[Curve]

    def plot(self, figure: Any = None) -> Self:
        """Draw the panels into a new figure, or into the given one."""
        require_matplotlib("ColumnCurvesDisplay.plot")
        n = len(self.curves)
        n_rows, n_columns = -(-n // _PANELS_IN_A_ROW), min(n, _PANELS_IN_A_ROW)
        if figure is None:
            import matplotlib.pyplot as plt

            figure = plt.figure(figsize=figure_size(n), layout="constrained")
        grid = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        self.figure_, self.axes_ = figure, list(grid[:n])
        for ax in grid[n:]:
            ax.remove()
        every = [value for curve in self.curves for value in (*curve.adds, curve.missing or 0.0)]
        low, high = min([0.0, *every]), max([0.0, *every])
        margin = 0.05 * (high - low) or 1.0
        for ax, curve in zip(self.axes_, self.curves, strict=True):
            draw = _draw_bars if curve.kind == "category" else _draw_line
            draw(ax, curve, (low - margin, high + margin))
            ax.set_title(figure_label(_shortened(curve.name, _MOST_TITLE)))
        with_gaps = [curve.missing is not None for curve in self.curves]
        if any(with_gaps):
            self.axes_[with_gaps.index(True)].legend()
        return self

    @classmethod
    def from_model(cls, model: Model, *, panels: int = MOST_PANELS, figure: Any = None) -> Self:
        """Draw the most important columns of a linear or additive model of a table.

        Parameters
        ----------
        model : forerank.models.Model
        panels : int, default=12
            Most columns that are drawn.
        figure : matplotlib Figure, optional
        """
        require_matplotlib(f"{cls.__name__}.from_model")
        curves = column_curves(model)[:panels]
        if not curves:
            raise ValueError("the model has no columns of numbers, dates or categories to draw")
        return cls(curves=curves).plot(figure)


def draw_column_curves(model: Model, path: Any) -> int:
    """Save the curves of the most important columns as a PNG; returns the number of panels."""
    import matplotlib
    from matplotlib.figure import Figure

    n_panels = min(MOST_PANELS, len(column_curves(model)))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=figure_size(max(n_panels, 1)), layout="constrained")
        ColumnCurvesDisplay.from_model(model, figure=figure)
        figure.savefig(path, dpi=110, format="png")
    return n_panels


def figure_size(n_panels: int) -> tuple[float, float]:
    """Width and height in inches."""
    n_rows = -(-n_panels // _PANELS_IN_A_ROW)
    return _WIDTH * min(n_panels, _PANELS_IN_A_ROW), _HEIGHT * n_rows


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _draw_line(ax: Any, curve: Curve, limits: tuple[float, float]) -> None:
    values = np.array(curve.values)
    if curve.kind == "date":
        values = (values * 86_400e6).round().astype("int64").view("datetime64[us]")
    ax.axhline(0.0, color=GREY, linewidth=0.8)
    ax.plot(values, curve.adds, color=COLOURS[0])
    if curve.missing is not None:
        ax.plot(values[:1], [curve.missing], "o", color=COLOURS[1], label="missing")
    if curve.is_log:
        _log_scale(ax, values)
    elif curve.kind == "date":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        # With a wider gap between the two numbers, some ranges have no interval, and a warning.
        locator = AutoDateLocator(minticks=3, maxticks=7)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    else:
        ax.locator_params(axis="x", nbins=5)
    ax.set_ylim(limits)
    ax.set_ylabel("adds to the score")


def _log_scale(ax: Any, values: Any) -> None:
    """A logarithmic axis, linear around zero where there are values of at most zero."""
    if values.min() > 0:
        ax.set_xscale("log")
    else:
        largest = float(np.abs(values).max())
        ax.set_xscale("symlog", linthresh=largest / 1e2 or 1.0)


def _draw_bars(ax: Any, curve: Curve, limits: tuple[float, float]) -> None:
    order = np.argsort(curve.adds, kind="stable")
    if curve.name != curve.column:  # a part of dates, in its own order
        order = np.arange(len(curve.adds))[::-1]
    elif order.size > _MOST_BARS:
        half = _MOST_BARS // 2
        order = np.concatenate([order[:half], order[-half:]])
    names = [figure_label(_shortened(str(curve.values[j]), _MOST_CHARACTERS)) for j in order]
    adds = [curve.adds[j] for j in order]
    places = np.arange(len(names))
    ax.barh(places, adds, color=COLOURS[0], height=0.7)
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    step = 1 if len(names) <= _MOST_BARS + 2 else 3
    ax.set_yticks(places[::step], names[::step])
    ax.tick_params(axis="y", labelsize=8.5)
    ax.set_xlim(limits)
    ax.set_xlabel("adds to the score")
