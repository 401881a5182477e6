"""Overlap of the first k rows of several models."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from forerank._text import figure_label
from forerank.plots.inputs import depths_to_draw, estimator_scores
from forerank.plots.style import CHANCE, COLOURS, axes_for, format_counts, require_matplotlib

__all__ = ["TopStabilityDisplay"]


@dataclass(kw_only=True, eq=False, repr=False)
class TopStabilityDisplay:
    """Overlap of the first k rows of several models, over all pairs of models.

    The overlap of two models at k is ``|A_k and B_k| / k`` with A_k, B_k their first k rows.

    Parameters
    ----------
    k : ndarray of int
    mean, low, high : ndarray
        The mean, the smallest and the largest overlap of two models.
    n_rows : int
        The overlap of two random orders is ``k / n_rows``.
    name : str, optional

    Attributes
    ----------
    line_, band_, chance_level_ : matplotlib Artist
        The mean; from the smallest to the largest; random orders (None where not drawn).
    ax_, figure_ : matplotlib Axes and Figure
    """

    k: NDArray
    mean: NDArray
    low: NDArray
    high: NDArray
    n_rows: int
    name: str | None = None

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
        """Draw the overlaps; `**kwargs` are for matplotlib's `plot`, other parameters as in
        `HitsDisplay.plot`.
        """
        self.ax_, self.figure_ = axes_for(ax, "TopStabilityDisplay.plot")
        label = (self.name if name is None else name) or "mean over pairs of models"
        style = {"color": COLOURS[0], "label": figure_label(label)} | kwargs
        (self.line_,) = self.ax_.plot(self.k, self.mean, **style)
        style = {"color": self.line_.get_color(), "label": "smallest to largest", "linewidth": 0}
        self.band_ = self.ax_.fill_between(self.k, self.low, self.high, alpha=0.2, **style)
        self.chance_level_ = None
        if plot_chance_level:
            style = CHANCE | {"label": "a random order"} | dict(chance_level_kw or {})
            (self.chance_level_,) = self.ax_.plot(self.k, self.k / self.n_rows, **style)
        self.ax_.set(xlabel="rows from the top, k", ylabel="share of the first k in common")
        self.ax_.set(xscale="log" if log_x else "linear", ylim=(0.0, 1.04))
        format_counts(self.ax_.xaxis)
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
            Tied rows are put in a random order for each model, so that ties are not counted as
            agreement.
        name, ax, **kwargs
            As in `plot`.
        """
        require_matplotlib(f"{cls.__name__}.from_scores")
        table = check_array(scores, dtype=np.float64, input_name="scores")
        m, n = table.shape
        if m < 2:
            raise ValueError(
                f"scores has {m} row; expected the scores of at least two models, one row each."
            )
        if max_k is not None and not 1 <= max_k <= n:
            raise ValueError(f"max_k={max_k!r}: give a number of rows from 1 to {n}.")
        rng = check_random_state(random_state)
        ranks = np.empty((m, n), dtype=np.intp)
        for model, rank in zip(table, ranks, strict=True):
            rank[np.lexsort((rng.uniform(size=n), -model))] = np.arange(n)
        k = depths_to_draw(np.array([0.0, max_k or n]), fine=True).astype(np.intp)
        overlaps = np.empty((m * (m - 1) // 2, k.size))
        for overlap, (a, b) in zip(overlaps, combinations(ranks, 2), strict=True):
            # A row is among the first k of both models if the larger of its two ranks is below k.
            overlap[:] = np.cumsum(np.bincount(np.maximum(a, b), minlength=n))[k - 1] / k
        mean, low, high = overlaps.mean(axis=0), overlaps.min(axis=0), overlaps.max(axis=0)
        return cls(k=k, mean=mean, low=low, high=high, n_rows=n, name=name).plot(ax=ax, **kwargs)

    @classmethod
    def from_estimators(
        cls, estimators: Iterable[Any], X: Any, *, response_method: str = "auto", **kwargs: Any
    ) -> Self:
        """Draw the overlap of fitted estimators on the rows of X; `**kwargs` are for
        `from_scores`.
        """
        scores = [estimator_scores(each, X, response_method, None) for each in estimators]
        return cls.from_scores(scores, **kwargs)
