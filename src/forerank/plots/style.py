"""Colours, line styles and axes that all figures share. Matplotlib is imported when drawing."""

from typing import Any

__all__ = [
    "CHANCE",
    "COLOURS",
    "GREY",
    "PERFECT",
    "STYLE",
    "axes_for",
    "format_counts",
    "require_matplotlib",
]

# The palette of Okabe and Ito, which is distinguishable with colour vision deficiencies. The
# ranking that a figure is about has the first colour in every figure.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#595959"
# Lines of a random order, and of the best possible one.
CHANCE = {"color": GREY, "linestyle": ":"}
PERFECT = {"color": GREY, "linestyle": "--"}
# Settings for `matplotlib.rc_context`, of reports and of `draw_curves`.
STYLE = {
    "font.size": 11.0,
    "legend.fontsize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "lines.linewidth": 1.8,
    "legend.frameon": True,
    "legend.framealpha": 0.85,
    "legend.edgecolor": "none",
    "svg.fonttype": "none",
    "svg.hashsalt": "forerank",
}


def require_matplotlib(caller: str) -> None:
    """ImportError with the command that installs matplotlib, where it is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{caller} needs matplotlib: pip install 'forerank[plots]'.") from error


def axes_for(ax: Any, caller: str) -> tuple[Any, Any]:
    """The axes, or those of a new figure for None, and their figure."""
    require_matplotlib(caller)
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots()
    return ax, ax.figure


def format_counts(axis: Any) -> None:
    """Write the numbers of an axis with thousands separators instead of powers of ten."""
    axis.set_major_formatter(lambda value, position: f"{value:,.0f}")
