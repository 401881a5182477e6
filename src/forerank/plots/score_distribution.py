"""Histograms of the scores of each class."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forerank._text import figure_label
from forerank.plots.inputs import check_labels_and_scores, estimator_scores
from forerank.plots.style import COLOURS, axes_for, require_matplotlib

__all__ = ["ScoreDistributionDisplay"]

# Most classes in the legend; of more it names the lowest and the highest, so as not to cover the
# plot.
_MOST_IN_LEGEND = 8


@dataclass(kw_only=True, eq=False, repr=False)
class ScoreDistributionDisplay:
    """Histogram of the scores of each class, each of area one.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
    densities : dict
        For each class, the share of its rows in a bin divided by the width of the bin.
    name : str, optional
        The title.

    Attributes
    ----------
    patches_ : dict
        For each class, the matplotlib Artist.
    ax_, figure_ : matplotlib Axes and Figure
    """

    edges: NDArray
    densities: Mapping[Any, NDArray]
    name: str | None = None

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the histograms.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        name : str, optional
            The title; by default that of the display.
        **kwargs
            For matplotlib's `stairs`.
        """
        self.ax_, self.figure_ = axes_for(ax, "ScoreDistributionDisplay.plot")
        self.patches_ = {}
        # Two classes have the same colours in every figure; grades go from dark to light.
        colours = [COLOURS[1], COLOURS[0]]
        if len(self.densities) > 2:
            from matplotlib import colormaps

            colours = [colormaps["cividis"](t) for t in np.linspace(0.0, 0.9, len(self.densities))]
        first, *_, last = self.densities
        for (label, heights), colour in zip(self.densities.items(), colours, strict=True):
            in_legend = len(self.densities) <= _MOST_IN_LEGEND or label in (first, last)
            style = {"fill": True, "alpha": 0.35, "color": colour}
            style["label"] = figure_label(label) if in_legend else "_"  # "_": not in the legend
            self.patches_[label] = self.ax_.stairs(heights, self.edges, **style | kwargs)
            self.ax_.stairs(heights, self.edges, color=colour, linewidth=1.5)
        self.ax_.set(xlabel="score", ylabel="density within the class")
        self.ax_.set_ylim(bottom=0.0)
        self.ax_.legend()
        name = self.name if name is None else name
        if name is not None:
            self.ax_.set_title(figure_label(name))
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        response_method: str = "auto",
        pos_label: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the scores of a fitted estimator.

        The first parameters are those of `HitsDisplay.from_estimator`; `**kwargs` are for
        `from_predictions`.
        """
        scores = estimator_scores(estimator, X, response_method, pos_label)
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, scores, name=name, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        bins: int = 50,
        labels: Mapping[Any, str] | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw scores by class.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Two classes or more.
        y_score : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        bins : int, default=50
            Scores outside the quantiles 0.001 and 0.999 are counted in the first and last bin.
        labels : dict, optional
            Names of the classes for the legend.
        name, ax, **kwargs
            As in `plot`.
        """
        require_matplotlib(f"{cls.__name__}.from_predictions")
        y, scores, weight = check_labels_and_scores(y_true, y_score, sample_weight)
        low, high = np.quantile(scores, [0.001, 0.999])
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges = np.linspace(low, high, bins + 1)
        inside = np.clip(scores, low, high)
        densities = {}
        for label in np.unique(y):
            rows = y == label
            counts, _ = np.histogram(inside[rows], edges, weights=weight[rows])
            key = label.item() if isinstance(label, np.generic) else label
            densities[(labels or {}).get(key, key)] = counts / counts.sum() / np.diff(edges)
        return cls(edges=edges, densities=densities, name=name).plot(ax=ax, **kwargs)
