"""Number of positive rows among the first k of a ranked list."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forerank._text import figure_label
from forerank._typing import Vector
from forerank.plots.inputs import (
    check_labels_and_scores,
    depths_to_draw,
    estimator_scores,
    positive_label,
)
from forerank.plots.style import (
    CHANCE,
    COLOURS,
    PERFECT,
    axes_for,
    format_counts,
    require_matplotlib,
)

__all__ = ["HitsDisplay"]


@dataclass(kw_only=True, eq=False, repr=False)
class HitsDisplay:
    """Positive rows among the first k, against a random order and the best possible one.

    Parameters
    ----------
    k : ndarray
        Numbers of rows from the top, 0 first and all last: the ends of runs of equal scores. A sum
        of weights where rows have them.
    hits : ndarray
        Positive rows among them. Between two points the line is the expectation over random orders
        of the tied rows.
    name : str, optional
        For the legend.
    pos_label : label, optional
        Shown at the axis.

    Attributes
    ----------
    line_ : matplotlib Artist
        This ranking.
    chance_level_, perfect_ : matplotlib Artist or None
        A random order, and the best one.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> display = HitsDisplay(k=np.array([0, 1, 3]), hits=np.array([0, 1, 2]))
    >>> display.hits_at([1, 2])
    array([1. , 1.5])
    """

    k: NDArray
    hits: NDArray
    name: str | None = None
    pos_label: Any = None

    def hits_at(self, k: ArrayLike) -> Vector:
        """Expected number of positive rows among the first k, tied rows in random order."""
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
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default those of a new figure.
        name : str, optional
            For the legend; by default that of the display.
        share : bool, default=False
            The precision at k instead of the number of positive rows.
        log_x : bool, default=False
            A logarithmic axis of k, which shows the top of a long list.
        plot_chance_level, plot_perfect : bool, default=True
        chance_level_kw, perfect_kw, **kwargs
            For matplotlib's `plot`.
        """
        self.ax_, self.figure_ = axes_for(ax, "HitsDisplay.plot")
        n, positives = float(self.k[-1]), float(self.hits[-1])
        k = depths_to_draw(self.k, log_x or share)
        per = k if share else np.ones_like(k)
        label = figure_label((self.name if name is None else name) or "this ranking")
        style = {"color": COLOURS[0], "label": label} | kwargs
        (self.line_,) = self.ax_.plot(k, self.hits_at(k) / per, **style)
        self.perfect_ = self.chance_level_ = None
        if plot_perfect:
            style = PERFECT | {"label": "the best possible"} | dict(perfect_kw or {})
            (self.perfect_,) = self.ax_.plot(k, np.minimum(k, positives) / per, **style)
        if plot_chance_level:
            style = CHANCE | {"label": "a random order"} | dict(chance_level_kw or {})
            (self.chance_level_,) = self.ax_.plot(k, k * (positives / n) / per, **style)
        label = "share of positives among them" if share else "positives among them"
        if self.pos_label is not None:
            label += figure_label(f" (positive label: {self.pos_label})")
        scale = "log" if log_x else "linear"
        self.ax_.set(xlabel="rows from the top, k", ylabel=label, xscale=scale)
        format_counts(self.ax_.xaxis)
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
        response_method: str = "auto",
        pos_label: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of a fitted estimator or pipeline.

        Parameters
        ----------
        estimator : fitted estimator
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        response_method : {"auto", "decision_function", "predict_proba"}
            "auto" prefers `decision_function`, since probabilities close to 1 round to ties.
        pos_label : label, optional
            By default the larger one.
        name : str, optional
            By default that of the estimator's class.
        **kwargs
            For `from_predictions`.
        """
        scores = estimator_scores(estimator, X, response_method, pos_label)
        kwargs["name"] = type(estimator).__name__ if name is None else name
        kwargs["pos_label"] = positive_label(getattr(estimator, "classes_", y), pos_label)
        return cls.from_predictions(y, scores, **kwargs)

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
        """Draw the curve of scores. Cost: one sort.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Two classes.
        y_score : array-like of shape (n_samples,)
            Rows are ranked by descending score.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight w counts as w rows.
        pos_label : label, optional
            By default the larger one.
        name, ax, **kwargs
            As in `plot`.
        """
        require_matplotlib(f"{cls.__name__}.from_predictions")
        y, scores, weight = check_labels_and_scores(y_true, y_score, sample_weight)
        if (n_classes := np.unique(y).size) != 2:
            raise ValueError(f"The target y is not binary: it has {n_classes} classes; expected 2.")
        positive = y == positive_label(y, pos_label)
        order = np.argsort(-scores, kind="stable")
        ends = np.append(np.flatnonzero(np.diff(scores[order])), y.size - 1)
        k = np.append(0.0, np.cumsum(weight[order])[ends])
        hits = np.append(0.0, np.cumsum((weight * positive)[order])[ends])
        return cls(k=k, hits=hits, name=name, pos_label=pos_label).plot(ax=ax, **kwargs)
