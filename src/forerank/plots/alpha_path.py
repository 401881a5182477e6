"""Cross-validated measure against the parameter that is tuned, one line per method: the penalty, or
the number of rounds of boosted trees.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from forerank._text import figure_label
from forerank._typing import Index, Mask, Vector
from forerank.metrics.registry import measure_phrase
from forerank.plots.style import COLOURS, GREY, axes_for, require_matplotlib

__all__ = ["AlphaPathDisplay", "RoundsDisplay"]

_MARKERS = "os^Dvp*"
# In the legend, what a dashed line means.
DROPPED = "dropped early: first folds only"
# Values of one fold in a table of results.
_FOLD = re.compile(r"split\d+_test_score")
# Ratio of the largest to the smallest value from which the powers of ten are ticks enough.
_DECADES = 300.0
# Smallest distance of two ticks that are no powers of ten, as a share of the axis.
_TICK_GAP = 0.14


@dataclass(kw_only=True, eq=False, repr=False)
class AlphaPathDisplay:
    """Cross-validated measure against alpha, one line per method.

    Parameters
    ----------
    paths : dict
        Method to three arrays: alphas, means, and standard deviations over the folds.
    best : (str, float), optional
        The selected method and alpha.
    metric : str, optional
        The name of the measure, at the axis.
    dropped : collection of str
        Methods that were dropped early: their means are over the first folds only, and their lines
        dashed.

    Attributes
    ----------
    lines_ : dict
        For each method, the matplotlib Artist.
    best_ : matplotlib Artist or None
        The ring around the selected point.
    ax_, figure_ : matplotlib Axes and Figure
    """

    paths: Mapping[str, tuple[NDArray, NDArray, NDArray]]
    best: tuple[str, float] | None = None
    metric: str | None = None
    dropped: Collection[str] = ()

    _parameter: ClassVar[str] = "alpha"
    _axis: ClassVar[str] = "alpha (penalty; larger values to the right)"

    def plot(self, ax: Any = None, *, bands: bool = False, **kwargs: Any) -> Self:
        """Draw the paths.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        bands : bool, default=False
            One standard deviation over the folds on either side of the mean.
        **kwargs
            For matplotlib's `plot`.
        """
        self.ax_, self.figure_ = axes_for(ax, f"{type(self).__name__}.plot")
        self.lines_, self.best_ = {}, None
        for number, (method, (alphas, means, deviations)) in enumerate(self.paths.items()):
            style = {
                "color": COLOURS[number % len(COLOURS)],
                "marker": _MARKERS[(number + number // len(COLOURS)) % len(_MARKERS)],
                "markersize": 4,
                "linestyle": "--" if method in self.dropped else "-",
                "label": figure_label(method),
            }
            (self.lines_[method],) = self.ax_.plot(alphas, means, **style | kwargs)
            if bands:
                low, high = means - deviations, means + deviations
                colour = style["color"]
                self.ax_.fill_between(alphas, low, high, color=colour, alpha=0.12, linewidth=0)
        if self.best is not None and self.best[0] in self.paths:
            alphas, means, _ = self.paths[self.best[0]]
            at = int(np.argmin(np.abs(np.log(alphas) - np.log(self.best[1]))))
            ring = {"mfc": "none", "mec": "black", "ms": 13, "mew": 1.5, "label": "selected"}
            (self.best_,) = self.ax_.plot([alphas[at]], [means[at]], "o", **ring)
        if not set(self.dropped).isdisjoint(self.paths):
            self.ax_.plot([], [], color=GREY, linestyle="--", label=DROPPED)
        self.ax_.set(xscale="log", xlabel=self._axis)
        self._set_ticks()
        title = f"{measure_phrase(self.metric or 'measure')}, mean of the folds"
        self.ax_.set_ylabel(figure_label(title))
        self.ax_.legend()
        return self

    def _set_ticks(self) -> None:
        """Ticks at values that were tried, where powers of ten are too few."""
        from matplotlib.ticker import FixedLocator, NullLocator

        values = np.unique(np.concatenate([path[0] for path in self.paths.values()]))
        if values[-1] >= _DECADES * values[0]:
            return
        self.ax_.xaxis.set_major_locator(FixedLocator(_spaced(values).tolist()))
        self.ax_.xaxis.set_major_formatter(lambda value, position: _plain_number(value))
        self.ax_.xaxis.set_minor_locator(NullLocator())

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, metric: str | None = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the `cv_results_` of a fitted estimator, such as `Ranker`.

        `metric` is by default the estimator's parameter of that name; `**kwargs` are for `plot`.
        """
        check_is_fitted(estimator)
        results = getattr(estimator, "cv_results_", None)
        if results is None:
            kind = type(estimator).__name__
            raise ValueError(f"{kind} has no cv_results_; give a fitted Ranker.")
        best, value = (
            getattr(estimator, f"best_{name}_", None) for name in ("method", cls._parameter)
        )
        selected = None if best is None or value is None else (str(best), float(value))
        metric = getattr(estimator, "metric", None) if metric is None else metric
        return cls.from_cv_results(results, best=selected, metric=metric, ax=ax, **kwargs)

    @classmethod
    def from_cv_results(
        cls,
        cv_results: Mapping[str, Any],
        *,
        best: tuple[str, float] | None = None,
        metric: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a table of results.

        Parameters
        ----------
        cv_results : dict
            "method", the parameter, "mean_test_score" and optionally "std_test_score" and
            "split0_test_score", ..., of equal length. Trials without a positive parameter or a
            finite mean are not drawn. Lines of methods with fewer folds than others are dashed.
        best, metric, ax, **kwargs
            As in the class and in `plot`.
        """
        require_matplotlib(f"{cls.__name__}.from_cv_results")
        required = ("method", cls._parameter, "mean_test_score")
        missing = ", ".join(name for name in required if name not in cv_results)
        if missing:
            raise ValueError(
                f"cv_results lacks {missing}; give the cv_results_ of a fitted Ranker."
            )
        methods = np.asarray(cv_results["method"], dtype=object)
        alphas, means = (np.array(cv_results[name], dtype=np.float64) for name in required[1:])
        deviations = np.asarray(cv_results.get("std_test_score", np.zeros(means.size)), np.float64)
        n_folds, most = _folds_measured(cv_results, np.isfinite(means))
        paths, dropped = {}, []
        for method in dict.fromkeys(methods.tolist()):
            index = np.flatnonzero((methods == method) & np.isfinite(means) & (alphas > 0.0))
            index = index[np.argsort(alphas[index], kind="stable")]
            if index.size:
                paths[str(method)] = alphas[index], means[index], deviations[index]
                dropped += [str(method)] if n_folds[index].max() < most else []
        if not paths:
            raise ValueError(
                f"cv_results has no method with positive {cls._parameter} and a finite mean; "
                "nothing can be drawn."
            )
        display = cls(paths=paths, best=best, metric=metric, dropped=tuple(dropped))
        return display.plot(ax=ax, **kwargs)


def _folds_measured(cv_results: Mapping[str, Any], is_known: Mask) -> tuple[Index, int]:
    """The number of folds of each trial, and the most of those with a mean; zeros where the table
    has no values of single folds.
    """
    columns = [name for name in cv_results if _FOLD.fullmatch(name)]
    values = [np.asarray(cv_results[name], dtype=np.float64) for name in columns]
    counts = np.isfinite(values).sum(axis=0) if values else np.zeros(is_known.size, dtype=np.intp)
    return counts, int(counts[is_known].max(initial=0))


def _spaced(values: Vector) -> Vector:
    """Values of which neighbours are at least a part of the range apart, on the logarithmic scale;
    the smallest and the largest are among them.
    """
    gap = _TICK_GAP * np.log(values[-1] / values[0])
    kept = [values[0]]
    for value in values[1:-1]:
        if min(np.log(value / kept[-1]), np.log(values[-1] / value)) >= gap:
            kept.append(value)
    return np.array(kept if values.size == 1 else [*kept, values[-1]])


def _plain_number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.2g}"


@dataclass(kw_only=True, eq=False, repr=False)
class RoundsDisplay(AlphaPathDisplay):
    """Cross-validated measure against the number of rounds of boosted trees, one line per size of
    the trees. Parameters and attributes are those of `AlphaPathDisplay`, with rounds for alphas.
    """

    _parameter: ClassVar[str] = "rounds"
    _axis: ClassVar[str] = "rounds (number of trees)"
