"""Cross-validated measure against the parameter that is tuned, one line per method: the penalty, or
the number of rounds of boosted trees.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from forerank._text import figure_label
from forerank.metrics.registry import measure_phrase
from forerank.plots.style import COLOURS, axes_for, require_matplotlib

__all__ = ["AlphaPathDisplay", "RoundsDisplay"]

_MARKERS = "os^Dvp*"


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
                "marker": _MARKERS[number % len(_MARKERS)],
                "markersize": 4,
                "linestyle": "-" if number < len(COLOURS) else "--",
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
        self.ax_.set(xscale="log", xlabel=self._axis)
        title = f"{measure_phrase(self.metric or 'measure')}, mean of the folds"
        self.ax_.set_ylabel(figure_label(title))
        self.ax_.legend()
        return self

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
            "method", the parameter, "mean_test_score" and optionally "std_test_score", of equal
            length. Trials without a positive parameter or a finite mean are not drawn.
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
        paths = {}
        for method in dict.fromkeys(methods.tolist()):
            index = np.flatnonzero((methods == method) & np.isfinite(means) & (alphas > 0.0))
            index = index[np.argsort(alphas[index], kind="stable")]
            if index.size:
                paths[str(method)] = alphas[index], means[index], deviations[index]
        if not paths:
            raise ValueError(
                f"cv_results has no method with positive {cls._parameter} and a finite mean; "
                "nothing can be drawn."
            )
        return cls(paths=paths, best=best, metric=metric).plot(ax=ax, **kwargs)


@dataclass(kw_only=True, eq=False, repr=False)
class RoundsDisplay(AlphaPathDisplay):
    """Cross-validated measure against the number of rounds of boosted trees, one line per size of
    the trees. Parameters and attributes are those of `AlphaPathDisplay`, with rounds for alphas.
    """

    _parameter: ClassVar[str] = "rounds"
    _axis: ClassVar[str] = "rounds (number of trees)"
