"""Figures 1 to 3 and that of time against rows, from the records."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..common import Results
from ..pages import figure
from . import protocol
from .records import curve_of, grown, per_pool

COLOURS = {"Random": "#888888", "Soft-Close": "#1f77b4", "Soft-Correct": "#d62728"}
LINES = {"WSVM": ":", "ERankSVM": "--", "CRR": "-."}
# Ratio of the ends of a logarithmic axis from which only powers of ten are labelled.
MANY_TIMES = 1e4


def _panels(
    names: Sequence[str], out: Path, draw: Callable[[Any, str], None], x: str, y: str
) -> None:
    n_panels = len(names) + 1  # one for the legend
    down = -(-n_panels // 5)
    across = -(-n_panels // down)
    size = (3.6 * across, 2.9 * down)
    with figure(out, down, across, size=size, squeeze=False) as (drawn, axes):
        panels = list(axes.flat)
        for axis, name in zip(panels, names, strict=False):
            draw(axis, name)
            axis.set_title(name, fontsize=10)
            axis.tick_params(labelsize=8)
        for axis in panels[len(names) :]:
            axis.axis("off")
        panels[len(names)].legend(
            *panels[0].get_legend_handles_labels(), loc="center", fontsize=9, frameon=False
        )
        drawn.supxlabel(x, fontsize=10)
        drawn.supylabel(y, fontsize=10)


def figure_1(results: Results, names: Sequence[str], out: Path) -> None:
    def draw(axis: Any, name: str) -> None:
        levels = []
        for who, colour in COLOURS.items():
            curve = curve_of(results, name, who)
            axis.plot(curve[:, 0], curve[:, 1], color=colour, label=who, lw=1.5)
            levels += curve[len(curve) // 8 :, 1].tolist()
        for who, style in LINES.items():
            levels.append(per_pool(results, name, who).mean())
            axis.axhline(levels[-1], color="black", ls=style, lw=1, label=who)
        # The first rounds are far below and would flatten the rest.
        low, high = min(levels), max(levels)
        axis.set_ylim(low - 0.15 * (high - low), high + 0.1 * (high - low))

    _panels(names, out, draw, "pairs in the pool", "AUC")


def figure_2(results: Results, names: Sequence[str], out: Path) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    def draw(axis: Any, name: str) -> None:
        for who in ("Soft-Close", "Soft-Correct"):
            curve = curve_of(results, name, who)[1:]
            plain, ours = curve[:, 2], curve[:, 3] / protocol.STEP
            axis.plot(curve[:, 0], plain, color=COLOURS[who], label=f"{who}, plain rejection")
            axis.plot(curve[:, 0], ours, color=COLOURS[who], ls=":", label=f"{who}, ours")
        axis.set_yscale("log")
        low, high = axis.get_ylim()
        subs = (1.0, 2.0, 5.0) if high < MANY_TIMES * low else (1.0,)
        axis.yaxis.set_major_locator(LogLocator(subs=subs))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter(NullFormatter())

    _panels(names, out, draw, "pairs in the pool", "rejected for each one kept")


def figure_3(results: Results, names: Sequence[str], out: Path) -> None:
    def draw(axis: Any, name: str) -> None:
        gammas = sorted({r["gamma"] for r in results.select(kind="gamma", data=name)} - {"uniform"})
        for who in ("Soft-Close", "Soft-Correct"):
            runs = [per_pool(results, name, who, gamma=gamma) for gamma in gammas]
            mean, spread = [auc.mean() for auc in runs], [auc.std(ddof=1) for auc in runs]
            axis.errorbar(gammas, mean, spread, color=COLOURS[who], label=who, capsize=2)
            uniform = per_pool(results, name, who, gamma="uniform").mean()
            axis.plot([1.08], [uniform], "o", color=COLOURS[who], label=f"{who}, uniform")
        exact = [per_pool(results, name, protocol.EXACT, gamma=gamma).mean() for gamma in gammas]
        axis.plot(gammas, exact, color="black", lw=1.2, label=protocol.EXACT)
        for who in ("WSVM", "ERankSVM"):
            axis.axhline(
                per_pool(results, name, who).mean(), color="black", ls=LINES[who], lw=1, label=who
            )

    _panels(names, out, draw, "gamma, the share of pairs", "AUC")


def figure_of_growth(results: Results, methods: Sequence[str], out: Path) -> None:
    """Seconds against rows at the same budget."""
    with figure(out, size=(6, 4)) as (_, axis):
        for who in methods:
            colour = COLOURS.get(who, "black")
            style = {"ls": LINES.get(who, "-"), "marker": "o", "ms": 4, "color": colour}
            axis.loglog(*grown(results, who), **style, label=who)
        axis.set(xlabel="rows", ylabel="processor seconds")
        axis.legend(fontsize=8)
