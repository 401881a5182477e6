"""Critical difference diagram: mean ranks of methods on one axis."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from forerank._text import figure_label
from forerank._typing import Vector
from forerank.metrics.significance import critical_difference_groups
from forerank.plots.style import COLOURS, GREY, axes_for, require_matplotlib

__all__ = ["CriticalDifferenceDisplay"]


@dataclass(kw_only=True, eq=False, repr=False)
class CriticalDifferenceDisplay:
    """Mean ranks of methods; a bar joins those that are not significantly different (Demšar 2006,
    figure 1).

    Parameters
    ----------
    ranks : dict
        Method to mean rank, 1 the best.
    cd : float or None
        The critical difference of mean ranks; None draws the ranks only.

    Attributes
    ----------
    groups_ : list of lists of str
        The methods under each bar.
    ax_, figure_ : matplotlib Axes and Figure
    """

    ranks: Mapping[str, float]
    cd: float | None = None

    def plot(self, ax: Any = None, *, fontsize: float | None = None, **kwargs: Any) -> Self:
        """Draw the diagram; `**kwargs` are for the lines from the axis to the names."""
        self.ax_, self.figure_ = axes_for(ax, "CriticalDifferenceDisplay.plot")
        names = sorted(self.ranks, key=self.ranks.__getitem__)
        ranks = np.array([self.ranks[name] for name in names], dtype=np.float64)
        bars = [] if self.cd is None else critical_difference_groups(ranks, self.cd)
        self.groups_ = [names[begin : end + 1] for begin, end in bars]
        low, high = float(np.floor(ranks.min())), float(np.ceil(ranks.max()))
        high = low + 1.0 if high == low else high
        self._draw_methods(names, ranks, (low + high) / 2, fontsize, kwargs)
        ax, m = self.ax_, len(names)
        for number, (begin, end) in enumerate(bars):
            y, style = m - 0.2 + 0.45 * number, {"color": COLOURS[1], "linewidth": 4}
            ax.plot(ranks[[begin, end]], [y, y], solid_capstyle="round", zorder=2, **style)
        if self.cd is not None:
            ends, style = [low, low + self.cd], {"color": "black", "linewidth": 2}
            ax.plot(ends, [-1.7, -1.7], marker="|", markersize=8, **style)
            label = f"critical difference {self.cd:.2f}"
            ax.text(low, -1.95, label, ha="left", va="bottom", fontsize=fontsize)
            high = max(high, low + self.cd)
        margin = 0.04 * (high - low)
        ax.set_xlim(low - margin, high + margin)
        ax.set_ylim(m + 0.45 * len(bars), -2.7 if self.cd is not None else -1.0)
        ax.set_yticks([])
        ax.set_xlabel("mean rank, the best on the left")
        ax.spines[["left", "right", "top"]].set_visible(False)
        return self

    def _draw_methods(
        self, names: list[str], ranks: Vector, middle: float, fontsize: float | None, lines: Any
    ) -> None:
        """Draw one line per method: names next to each other would overlap on a narrow page."""
        style = {"color": GREY, "linewidth": 1.0} | lines
        for line, (name, rank) in enumerate(zip(names, ranks, strict=True)):
            self.ax_.plot([rank, rank], [-1.0, line], zorder=1, **style)
            self.ax_.plot([rank], [line], "o", color=COLOURS[0], zorder=3)
            on_right = rank <= middle
            self.ax_.annotate(
                f"{figure_label(name)}  {rank:.2f}",
                (rank, line),
                xytext=(8 if on_right else -8, 0),
                textcoords="offset points",
                ha="left" if on_right else "right",
                va="center",
                fontsize=fontsize,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
                zorder=4,
            )

    @classmethod
    def from_ranks(
        cls, ranks: Mapping[str, float], cd: float | None = None, *, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw mean ranks by method; `**kwargs` are for `plot`."""
        require_matplotlib(f"{cls.__name__}.from_ranks")
        if len(ranks) < 2:
            raise ValueError(f"ranks has {len(ranks)} method; expected at least two.")
        if not np.isfinite(list(ranks.values())).all():
            raise ValueError(
                f"ranks={ranks!r} has ranks that are not finite; remove these methods."
            )
        if cd is not None and not cd >= 0.0:
            raise ValueError(f"cd={cd!r}: give a number of at least 0, or None.")
        return cls(ranks=dict(ranks), cd=cd).plot(ax=ax, **kwargs)
