"""Pictures of rankings that scikit-learn lacks, in its manner: `from_...` computes and draws,
`plot` draws again.

The colours are those of Okabe and Ito, which people who see colours differently can tell apart; the
same thing has the same colour in every picture. Matplotlib is imported when something is drawn.
"""

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from forerank._text import figure_label
from forerank._typing import Vector
from forerank._validation import refuse_invalid_weights
from forerank.estimators.scores import score_rows

__all__ = [
    "COLOURS",
    "AlphaPathDisplay",
    "CriticalDifferenceDisplay",
    "HitsDisplay",
    "ScoreDistributionDisplay",
    "TopStabilityDisplay",
]

# The ranking itself comes first; the others follow where there are more.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#595959"
# What the pictures of reports and of `evaluate` have in common: matplotlib's settings, for
# `rc_context`.
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
_CHANCE = {"color": GREY, "linestyle": ":"}
_PERFECT = {"color": GREY, "linestyle": "--"}
_MARKERS = "os^Dvp*"
# Points of a curve beyond which no eye tells a difference.
_MOST_POINTS = 400
# Classes beyond which a legend names the lowest and the highest alone: a longer one covers the
# picture.
_MOST_IN_A_LEGEND = 8


class HitsDisplay:
    """Hits among the first k rows, against an order drawn at random and the best possible one.

    Parameters
    ----------
    k : ndarray
        Rows read from the top, 0 first and all last; the ends of blocks of equal scores. A sum of
        weights where rows have them.
    hits : ndarray
        Positive rows among them. Between two points the line is what is expected of tied rows in
        any order.
    name : str, optional
        For the legend.
    pos_label : label, optional
        Shown at the axis.

    Attributes
    ----------
    line_ : matplotlib Artist
        This ranking.
    chance_level_, perfect_ : matplotlib Artist or None
        An order drawn at random, and the best one.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> display = HitsDisplay(k=np.array([0, 1, 3]), hits=np.array([0, 1, 2]))
    >>> display.hits_at([1, 2])
    array([1. , 1.5])
    """

    def __init__(
        self, *, k: NDArray, hits: NDArray, name: str | None = None, pos_label: Any = None
    ) -> None:
        self.k = k
        self.hits = hits
        self.name = name
        self.pos_label = pos_label

    def hits_at(self, k: ArrayLike) -> Vector:
        """The hits expected among the first k rows, tied rows in any order."""
        return np.interp(np.asarray(k, dtype=np.float64), self.k, self.hits)

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        share: bool = False,
        log_x: bool = False,
        plot_chance_level: bool = True,
        plot_perfect: bool = True,
        chance_level_kw: Mapping[str, Any] | None = None,
        perfect_kw: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default a new figure has them.
        name : str, optional
            For the legend; by default that of the display.
        share : bool, default=False
            The share of hits among the first k instead of their number: the precision at k.
        log_x : bool, default=False
            A logarithmic axis of k, which shows the top of a long list.
        plot_chance_level, plot_perfect : bool, default=True
        chance_level_kw, perfect_kw, **kwargs
            For matplotlib's `plot`.

        Returns
        -------
        display : HitsDisplay
        """
        self.ax_, self.figure_ = _axes(ax, "HitsDisplay.plot")
        n, positives = float(self.k[-1]), float(self.hits[-1])
        name = self.name if name is None else name
        k = _places(self.k, log_x or share)
        per = k if share else np.ones_like(k)
        (self.line_,) = self.ax_.plot(
            k,
            self.hits_at(k) / per,
            **{"color": COLOURS[0], "label": _plain(name or "this ranking")} | kwargs,
        )
        self.perfect_ = self.chance_level_ = None
        if plot_perfect:
            style = _PERFECT | {"label": "the best possible"} | dict(perfect_kw or {})
            (self.perfect_,) = self.ax_.plot(k, np.minimum(k, positives) / per, **style)
        if plot_chance_level:
            style = _CHANCE | {"label": "a random order"} | dict(chance_level_kw or {})
            (self.chance_level_,) = self.ax_.plot(k, k * (positives / n) / per, **style)
        label = "" if self.pos_label is None else _plain(f" (positive label: {self.pos_label})")
        self.ax_.set(
            xlabel="rows read from the top",
            ylabel=("share of hits among them" if share else "hits among them") + label,
            xscale="log" if log_x else "linear",
        )
        _plain_counts(self.ax_)
        self.ax_.set_ylim(bottom=0.0, top=1.04 if share else None)
        self.ax_.legend()
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        response_method: str = "auto",
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the hits of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            With `decision_function` or `predict_proba`; a pipeline, too.
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight, pos_label, ax, **kwargs
            As in `from_predictions`.
        response_method : {"auto", "decision_function", "predict_proba"}
            "auto" takes `decision_function` where there is one: probabilities next to 1 round to
            ties.
        name : str, optional
            By default that of the estimator's class.
        """
        scores = _response(estimator, X, response_method, pos_label)
        name = type(estimator).__name__ if name is None else name
        pos_label = _positive_label(y, pos_label, getattr(estimator, "classes_", None))
        return cls.from_predictions(
            y, scores, sample_weight=sample_weight, pos_label=pos_label, name=name, ax=ax, **kwargs
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the hits of scores. Cost: one sort.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Two classes.
        y_score : array-like of shape (n_samples,)
            Higher ones come first.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts as w rows.
        pos_label : label, optional
            By default the larger one.
        name : str, optional
        ax : matplotlib Axes, optional
        **kwargs
            For `plot`.
        """
        _require_matplotlib(f"{cls.__name__}.from_predictions")
        y, scores, weight = _checked(y_true, y_score, sample_weight)
        _two_classes(y)
        hit = y == _positive_label(y, pos_label)
        order = np.argsort(-scores, kind="stable")
        ends = np.append(np.flatnonzero(np.diff(scores[order])), y.size - 1)
        k = np.append(0.0, np.cumsum(weight[order])[ends])
        hits = np.append(0.0, np.cumsum((weight * hit)[order])[ends])
        return cls(k=k, hits=hits, name=name, pos_label=pos_label).plot(ax=ax, **kwargs)


class ScoreDistributionDisplay:
    """How the scores of each class are spread: one histogram per class, each of area one.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
    densities : dict
        For each class, the share of its rows in a bin over the width of the bin.
    name : str, optional
        The title.

    Attributes
    ----------
    patches_ : dict
        For each class, the matplotlib Artist.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(
        self, *, edges: NDArray, densities: Mapping[Any, NDArray], name: str | None = None
    ) -> None:
        self.edges = edges
        self.densities = densities
        self.name = name

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        name : str, optional
            The title; by default that of the display.
        **kwargs
            For matplotlib's `stairs`.
        """
        self.ax_, self.figure_ = _axes(ax, "ScoreDistributionDisplay.plot")
        self.patches_ = {}
        # Two classes have the same colours everywhere; grades go from dark to light.
        colours = [COLOURS[1], COLOURS[0]]
        if len(self.densities) > 2:
            from matplotlib import colormaps

            colours = [colormaps["cividis"](t) for t in np.linspace(0.0, 0.9, len(self.densities))]
        first, *_, last = self.densities
        for (label, heights), colour in zip(self.densities.items(), colours, strict=True):
            style = {"fill": True, "alpha": 0.35, "color": colour, "label": _plain(label)} | kwargs
            if len(self.densities) > _MOST_IN_A_LEGEND and label not in (first, last):
                style["label"] = "_"  # matplotlib leaves it out
            self.patches_[label] = self.ax_.stairs(heights, self.edges, **style)
            self.ax_.stairs(heights, self.edges, color=colour, linewidth=1.5)
        self.ax_.set(xlabel="score", ylabel="density within the class")
        self.ax_.set_ylim(bottom=0.0)
        self.ax_.legend()
        name = self.name if name is None else name
        if name is not None:
            self.ax_.set_title(_plain(name))
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        bins: int = 50,
        response_method: str = "auto",
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the scores of a fitted estimator; parameters as in `HitsDisplay.from_estimator`."""
        scores = _response(estimator, X, response_method, pos_label)
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(
            y, scores, sample_weight=sample_weight, bins=bins, name=name, ax=ax, **kwargs
        )

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
            The scores beyond the outer thousandths are put into the first and the last of them.
        labels : dict, optional
            Names of the classes for the legend.
        name : str, optional
        ax : matplotlib Axes, optional
        **kwargs
            For `plot`.
        """
        _require_matplotlib(f"{cls.__name__}.from_predictions")
        y, scores, weight = _checked(y_true, y_score, sample_weight)
        low, high = np.quantile(scores, [0.001, 0.999])
        if low == high:
            low, high = low - 0.5, high + 0.5
        edges = np.linspace(low, high, bins + 1)
        inside = np.clip(scores, low, high)
        densities = {}
        for label in np.unique(y):
            rows = y == label
            counts, _ = np.histogram(inside[rows], edges, weights=weight[rows])
            shown = label.item() if isinstance(label, np.generic) else label
            densities[(labels or {}).get(shown, shown)] = counts / counts.sum() / np.diff(edges)
        return cls(edges=edges, densities=densities, name=name).plot(ax=ax, **kwargs)


class TopStabilityDisplay:
    """How much the first k rows of several models have in common.

    The overlap of two models at k is ``|A_k and B_k| / k`` with A_k, B_k their first k rows; over all pairs of models.

    Parameters
    ----------
    k : ndarray of int
    mean, low, high : ndarray
        The mean, the least and the greatest overlap of two models.
    n_rows : int
        The overlap of two orders drawn at random is ``k / n_rows``.
    name : str, optional

    Attributes
    ----------
    line_, band_, chance_level_ : matplotlib Artist
        The mean; from the least to the greatest; orders drawn at random (None where not drawn).
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(
        self,
        *,
        k: NDArray,
        mean: NDArray,
        low: NDArray,
        high: NDArray,
        n_rows: int,
        name: str | None = None,
    ) -> None:
        self.k = k
        self.mean = mean
        self.low = low
        self.high = high
        self.n_rows = n_rows
        self.name = name

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        log_x: bool = True,
        plot_chance_level: bool = True,
        chance_level_kw: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw it; `**kwargs` are for matplotlib's `plot`, the others as in `HitsDisplay.plot`."""
        self.ax_, self.figure_ = _axes(ax, "TopStabilityDisplay.plot")
        name = self.name if name is None else name
        style = {"color": COLOURS[0], "label": _plain(name or "mean over pairs of models")} | kwargs
        (self.line_,) = self.ax_.plot(self.k, self.mean, **style)
        self.band_ = self.ax_.fill_between(
            self.k,
            self.low,
            self.high,
            color=self.line_.get_color(),
            alpha=0.2,
            linewidth=0,
            label="least to greatest",
        )
        self.chance_level_ = None
        if plot_chance_level:
            style = _CHANCE | {"label": "a random order"} | dict(chance_level_kw or {})
            (self.chance_level_,) = self.ax_.plot(self.k, self.k / self.n_rows, **style)
        self.ax_.set(
            xlabel="rows read from the top, k",
            ylabel="share of the first k in common",
            xscale="log" if log_x else "linear",
            ylim=(0.0, 1.04),
        )
        _plain_counts(self.ax_)
        self.ax_.legend()
        return self

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        *,
        max_k: int | None = None,
        random_state: Any = 0,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the overlap of models that scored the same rows.

        Cost: m sorts for m models, and one pass for each pair of them.

        Parameters
        ----------
        scores : array-like of shape (n_models, n_rows)
        max_k : int, optional
            The largest k; by default all rows.
        random_state : int, RandomState or None
            Tied rows are put in an order drawn for each model, so that ties are not taken for
            agreement.
        name : str, optional
        ax : matplotlib Axes, optional
        **kwargs
            For `plot`.
        """
        _require_matplotlib(f"{cls.__name__}.from_scores")
        table = check_array(scores, dtype=np.float64, input_name="scores")
        m, n = table.shape
        if m < 2:
            raise ValueError(
                f"scores has {m} row; an overlap needs the scores of at least two models, one row each."
            )
        if max_k is not None and not 1 <= max_k <= n:
            raise ValueError(f"max_k={max_k!r}: give a number of rows from 1 to {n}.")
        rng = check_random_state(random_state)
        places = np.empty((m, n), dtype=np.intp)
        for model, place in zip(table, places, strict=True):
            place[np.lexsort((rng.uniform(size=n), -model))] = np.arange(n)
        k = _places(np.array([0.0, max_k or n]), fine=True).astype(np.intp)
        # A row is among the first k of both where the worse of its two places is.
        overlaps = np.array(
            [
                np.cumsum(np.bincount(np.maximum(places[a], places[b]), minlength=n))[k - 1] / k
                for a, b in combinations(range(m), 2)
            ]
        )
        found = cls(
            k=k,
            mean=overlaps.mean(axis=0),
            low=overlaps.min(axis=0),
            high=overlaps.max(axis=0),
            n_rows=n,
            name=name,
        )
        return found.plot(ax=ax, **kwargs)

    @classmethod
    def from_estimators(
        cls, estimators: Iterable[Any], X: Any, *, response_method: str = "auto", **kwargs: Any
    ) -> Self:
        """Draw the overlap of fitted estimators on the rows of X; `**kwargs` as in `from_scores`."""
        return cls.from_scores(
            [_response(estimator, X, response_method, None) for estimator in estimators], **kwargs
        )


class CriticalDifferenceDisplay:
    """Mean ranks of methods on one axis; a bar joins those without a significant difference (Demsar
    2006, figure 1).

    Parameters
    ----------
    ranks : dict
        Method to mean rank, 1 the best.
    cd : float or None
        The critical difference. Methods nearer to each other than that are joined; None draws the
        ranks alone.

    Attributes
    ----------
    groups_ : list of lists of str
        The methods under each bar.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, *, ranks: Mapping[str, float], cd: float | None = None) -> None:
        self.ranks = ranks
        self.cd = cd

    def plot(self, ax: Any = None, *, fontsize: float | None = None, **kwargs: Any) -> Self:
        """Draw it; `**kwargs` are for the lines from the axis to the names."""
        self.ax_, self.figure_ = _axes(ax, "CriticalDifferenceDisplay.plot")
        best_first = sorted(self.ranks.items(), key=lambda item: item[1])
        names = [name for name, _ in best_first]
        values = np.array([rank for _, rank in best_first], dtype=np.float64)
        bars = _within(values, self.cd)
        self.groups_ = [names[begin : end + 1] for begin, end in bars]
        # One row per method: names beside each other would run into each other on a narrow page.
        ax, m = self.ax_, len(names)
        style = {"color": "#595959", "linewidth": 1.0} | kwargs
        low, high = float(np.floor(values.min())), float(np.ceil(values.max()))
        if high == low:
            high = low + 1.0
        for row, (name, value) in enumerate(zip(names, values, strict=True)):
            ax.plot([value, value], [-1.0, row], zorder=1, **style)
            ax.plot([value], [row], "o", color=COLOURS[0], zorder=3)
            ax.annotate(
                f"{_plain(name)}  {value:.2f}",
                (value, row),
                xytext=(8 if value <= (low + high) / 2 else -8, 0),
                textcoords="offset points",
                ha="left" if value <= (low + high) / 2 else "right",
                va="center",
                fontsize=fontsize,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
                zorder=4,
            )
        for number, (begin, end) in enumerate(bars):
            y = m - 0.2 + 0.45 * number
            ax.plot(
                values[[begin, end]],
                [y, y],
                color=COLOURS[1],
                linewidth=4,
                solid_capstyle="round",
                zorder=2,
            )
        if self.cd is not None:
            y = -1.7
            ax.plot(
                [low, low + self.cd], [y, y], color="black", linewidth=2, marker="|", markersize=8
            )
            ax.text(
                low,
                y - 0.25,
                f"critical difference {self.cd:.2f}",
                ha="left",
                va="bottom",
                fontsize=fontsize,
            )
            high = max(high, low + self.cd)
        margin = 0.04 * (high - low)
        ax.set_xlim(low - margin, high + margin)
        ax.set_ylim(m + 0.45 * len(bars), -2.7 if self.cd is not None else -1.0)
        ax.set_yticks([])
        ax.set_xlabel("mean rank, the best on the left")
        for side in ("left", "right", "top"):
            ax.spines[side].set_visible(False)
        return self

    @classmethod
    def from_ranks(
        cls, ranks: Mapping[str, float], cd: float | None = None, *, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw mean ranks.

        Parameters
        ----------
        ranks : dict
            Method to mean rank.
        cd : float, optional
            The critical difference.
        ax : matplotlib Axes, optional
        **kwargs
            For `plot`.
        """
        _require_matplotlib(f"{cls.__name__}.from_ranks")
        if len(ranks) < 2:
            raise ValueError(f"ranks has {len(ranks)} method; a comparison needs at least two.")
        if not np.isfinite(list(ranks.values())).all():
            raise ValueError(
                "ranks holds numbers that are not finite; leave out the methods without a rank."
            )
        if cd is not None and not cd >= 0.0:
            raise ValueError(f"cd={cd!r}: give a number that is not negative, or None.")
        return cls(ranks=dict(ranks), cd=cd).plot(ax=ax, **kwargs)


class AlphaPathDisplay:
    """The cross-validated measure against alpha, one line per method.

    Parameters
    ----------
    paths : dict
        Method to three arrays: alphas, means, and standard deviations over the folds.
    best : (str, float), optional
        The method and the alpha that were chosen.
    metric : str, optional
        The name of the measure, at the axis.

    Attributes
    ----------
    lines_ : dict
        For each method, the matplotlib Artist.
    best_ : matplotlib Artist or None
        The ring around the choice.
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(
        self,
        *,
        paths: Mapping[str, tuple[NDArray, NDArray, NDArray]],
        best: tuple[str, float] | None = None,
        metric: str | None = None,
    ) -> None:
        self.paths = paths
        self.best = best
        self.metric = metric

    def plot(self, ax: Any = None, *, bands: bool = False, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        bands : bool, default=False
            One standard deviation over the folds on either side of the mean.
        **kwargs
            For matplotlib's `plot`.
        """
        self.ax_, self.figure_ = _axes(ax, "AlphaPathDisplay.plot")
        self.lines_, self.best_ = {}, None
        for number, (method, (alphas, means, deviations)) in enumerate(self.paths.items()):
            style = {
                "color": COLOURS[number % len(COLOURS)],
                "marker": _MARKERS[number % len(_MARKERS)],
                "markersize": 4,
                "linestyle": "-" if number < len(COLOURS) else "--",
                "label": _plain(method),
            }
            (self.lines_[method],) = self.ax_.plot(alphas, means, **style | kwargs)
            if bands:
                self.ax_.fill_between(
                    alphas,
                    means - deviations,
                    means + deviations,
                    color=style["color"],
                    alpha=0.12,
                    linewidth=0,
                )
        if self.best is not None and self.best[0] in self.paths:
            alphas, means, _ = self.paths[self.best[0]]
            at = int(np.argmin(np.abs(np.log(alphas) - np.log(self.best[1]))))
            (self.best_,) = self.ax_.plot(
                [alphas[at]],
                [means[at]],
                "o",
                ms=13,
                mfc="none",
                mec="black",
                mew=1.5,
                label="chosen",
            )
        self.ax_.set(xscale="log", xlabel="alpha: less to the left, more smoothing to the right")
        from forerank.metrics.registry import measure_phrase

        self.ax_.set_ylabel(
            _plain(f"{measure_phrase(self.metric or 'measure')}, mean of the folds")
        )
        self.ax_.legend()
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, metric: str | None = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw what a fitted `Ranker` tried.

        Parameters
        ----------
        estimator : fitted estimator
            With `cv_results_`, as in `from_cv_results`.
        metric : str, optional
            By default the estimator's parameter of that name.
        ax : matplotlib Axes, optional
        **kwargs
            For `plot`.
        """
        check_is_fitted(estimator)
        results = getattr(estimator, "cv_results_", None)
        if results is None:
            raise ValueError(
                f"{type(estimator).__name__} has no cv_results_: it chose nothing by cross-validation."
            )
        best = None
        if getattr(estimator, "best_alpha_", None) is not None and hasattr(
            estimator, "best_method_"
        ):
            best = str(estimator.best_method_), float(estimator.best_alpha_)
        metric = getattr(estimator, "metric", None) if metric is None else metric
        return cls.from_cv_results(results, best=best, metric=metric, ax=ax, **kwargs)

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
            "method", "alpha", "mean_test_score" and, where there is one, "std_test_score", of equal
            length. Trials without a finite mean are left out.
        best, metric
            As in the class.
        ax : matplotlib Axes, optional
        **kwargs
            For `plot`.
        """
        _require_matplotlib(f"{cls.__name__}.from_cv_results")
        missing = [
            name for name in ("method", "alpha", "mean_test_score") if name not in cv_results
        ]
        if missing:
            raise ValueError(
                f"cv_results lacks {', '.join(missing)}; give the cv_results_ of a fitted Ranker."
            )
        methods = np.asarray(cv_results["method"], dtype=object)
        # A method without alpha has nothing to draw along this axis.
        alphas, means = (
            np.array(
                [np.nan if value is None else value for value in cv_results[name]], dtype=np.float64
            )
            for name in ("alpha", "mean_test_score")
        )
        deviations = np.asarray(
            cv_results.get("std_test_score", np.zeros(means.size)), dtype=np.float64
        )
        paths = {}
        for method in dict.fromkeys(methods.tolist()):
            rows = np.flatnonzero((methods == method) & np.isfinite(means) & (alphas > 0.0))
            rows = rows[np.argsort(alphas[rows], kind="stable")]
            if rows.size:
                paths[str(method)] = alphas[rows], means[rows], deviations[rows]
        if not paths:
            raise ValueError(
                "cv_results has no method with a positive alpha and a finite mean; nothing can be drawn."
            )
        return cls(paths=paths, best=best, metric=metric).plot(ax=ax, **kwargs)


# --- What the displays share ---


def _require_matplotlib(caller: str) -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{caller} needs matplotlib: pip install 'forerank[plots]'.") from error


def _axes(ax: Any, caller: str) -> tuple[Any, Any]:
    """Axes to draw on, new ones where none are given, and their figure."""
    _require_matplotlib(caller)
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots()
    return ax, ax.figure


def _plain(text: Any) -> str:
    """A label as it is: matplotlib takes what is between two dollars for a formula, and fonts lack
    what is unseen.
    """
    return figure_label(text)


def _plain_counts(ax: Any) -> None:
    """Numbers of rows as people write them, not as powers of ten."""
    ax.xaxis.set_major_formatter(lambda value, position: f"{value:,.0f}")


def _response(estimator: Any, X: Any, method: str, pos_label: Any) -> Vector:
    """Scores of a fitted estimator, higher for the positive class."""
    known = ("decision_function", "predict_proba")
    if method not in ("auto", *known):
        raise ValueError(
            f"response_method={method!r}: choose 'auto', 'decision_function' or 'predict_proba'."
        )
    usable = [
        name for name in (known if method == "auto" else (method,)) if hasattr(estimator, name)
    ]
    if not usable:
        wanted = "decision_function or predict_proba" if method == "auto" else method
        raise ValueError(
            f"{type(estimator).__name__} has no {wanted}, so it gives no scores to draw."
        )
    check_is_fitted(estimator)
    return score_rows(estimator, X, methods=tuple(usable), pos_label=pos_label)


def _checked(
    y_true: ArrayLike, y_score: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[NDArray, Vector, Vector]:
    y = column_or_1d(y_true)
    scores = check_array(y_score, ensure_2d=False, dtype=np.float64, input_name="y_score")
    scores = column_or_1d(scores)
    weight = (
        np.ones(y.size) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    )
    check_consistent_length(y, scores, weight)
    if np.unique(y).size < 2:
        raise ValueError("y_true has one class only; a ranking is drawn for rows of two classes.")
    refuse_invalid_weights(weight)
    return y, scores, weight


def _two_classes(y: NDArray) -> None:
    found = np.unique(y).size
    if found != 2:
        raise ValueError(
            f"The target y is not binary: it has {found} classes. Hits are counted for two."
        )


def _positive_label(y: ArrayLike, pos_label: Any, classes: Any = None) -> Any:
    """The label that counts as a hit, by default the larger one."""
    labels = np.unique(np.asarray(y)) if classes is None else np.asarray(classes)
    if pos_label is None:
        return labels[-1]
    if pos_label not in labels.tolist():
        raise ValueError(
            f"pos_label={pos_label!r} is not a valid label: it should be one of {labels.tolist()}."
        )
    return pos_label


def _places(k: NDArray, fine: bool) -> Vector:
    """Where a curve over k is drawn: on a log scale, or divided by k, a line between two points is
    not straight.
    """
    last = float(k[-1])
    if not fine:
        chosen = np.unique(np.linspace(0, k.size - 1, min(k.size, _MOST_POINTS)).astype(np.intp))
        return k[chosen].astype(np.float64)
    if last <= 1.0:
        return np.array([last])
    return np.unique(np.round(np.geomspace(1.0, last, _MOST_POINTS)).clip(max=last))


def _within(ranks: Vector, cd: float | None) -> list[tuple[int, int]]:
    """The first and the last of each largest set of methods, sorted by rank, within the critical
    difference.
    """
    found: list[tuple[int, int]] = []
    if cd is None:
        return found
    for begin in range(ranks.size):
        end = int(np.searchsorted(ranks, ranks[begin] + cd, side="right")) - 1
        if end > begin and (not found or end > found[-1][1]):
            found.append((begin, end))
    return found
