"""ROC and precision-recall curves, as reports, `evaluate` and the demonstration draw them.

Held-out rows of different folds have scores of different models, which are not comparable. So the
curve of each fold is computed, and their mean is drawn. The area under the mean curve is the mean
of the areas, so that a figure agrees with the measure next to it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import precision_recall_curve, roc_curve

from forerank import metrics
from forerank._text import figure_label
from forerank._typing import Index, Vector
from forerank.metrics.estimates import format_value
from forerank.plots.hits import HitsDisplay
from forerank.plots.inputs import MOST_POINTS
from forerank.plots.style import CHANCE, COLOURS, STYLE

__all__ = ["draw_curves", "draw_precision_recall", "draw_roc", "mean_precision_recall", "mean_roc"]

Curves = Mapping[str, tuple[Vector, Vector]]


def draw_curves(y_true: ArrayLike, y_score: ArrayLike, path: Any) -> None:
    """Save three panels as a PNG: ROC curve, precision-recall curve, positives among the first k.

    Parameters
    ----------
    y_true : array-like of two classes
    y_score : array-like
    path : path or binary file
    """
    import matplotlib
    from matplotlib.figure import Figure

    y = np.asarray(y_true)
    classes = np.unique(y)
    if classes.size != 2:
        raise ValueError(f"y_true has {classes.size} classes; curves are drawn for two.")
    y, scores = y == classes[1], np.asarray(y_score)
    auc, average = metrics.roc_auc(y, scores), metrics.average_precision(y, scores)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(14.0, 4.2), layout="constrained")
        roc, precision, hits = figure.subplots(1, 3)
        draw_roc(roc, {f"this ranking, AUC {format_value(auc)}": mean_roc(y, scores)})
        roc.set_title("ROC curve")
        curve = {f"this ranking, average {format_value(average)}": mean_precision_recall(y, scores)}
        draw_precision_recall(precision, curve, float(y.mean()))
        precision.set_title("Precision and recall")
        HitsDisplay.from_predictions(y, scores, log_x=True, ax=hits)
        hits.set_title(f"Positives: {int(y.sum()):,} in {y.size:,} rows")
        figure.savefig(path, dpi=110, format="png")


def draw_roc(ax: Any, curves: Curves) -> None:
    """Draw ROC curves by their labels, and the diagonal of a random order."""
    _draw(ax, curves)
    ax.plot([0, 1], [0, 1], **CHANCE, label="a random order, 0.5")
    ax.set(xlabel="false positive rate", ylabel="true positive rate")
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.02))
    ax.legend(loc="lower right")


def draw_precision_recall(ax: Any, curves: Curves, share: float) -> None:
    """Draw precision-recall curves by their labels, and the precision of a random order: the share
    of positive rows.
    """
    _draw(ax, curves)
    ax.axhline(share, **CHANCE, label=f"share of positive rows, {format_value(share)}")
    ax.set(xlabel="recall", ylabel="precision", xlim=(-0.01, 1.01), ylim=(0.0, 1.04))
    ax.legend(loc="best")


def _draw(ax: Any, curves: Curves) -> None:
    for colour, (label, (x, y)) in zip(COLOURS, curves.items(), strict=False):
        ax.plot(*_thin(x, y), color=colour, label=figure_label(label))


def mean_roc(y: NDArray, scores: NDArray, fold: NDArray | None = None) -> tuple[Vector, Vector]:
    """Mean of the folds' ROC curves at each false positive rate, as corners of a polyline.

    A curve is vertical where positive rows follow each other, so each rate has a lower and an
    upper end.
    """
    curves = [roc_curve(y[rows], scores[rows])[:2] for rows in _folds(y, fold)]
    rates = np.unique(np.concatenate([fpr for fpr, _ in curves]))
    upper = np.mean([np.interp(rates, fpr, tpr) for fpr, tpr in curves], axis=0)
    lower = np.mean([np.interp(-rates, -fpr[::-1], tpr[::-1]) for fpr, tpr in curves], axis=0)
    return np.repeat(rates, 2), np.column_stack([lower, upper]).ravel()


def mean_precision_recall(
    y: NDArray, scores: NDArray, fold: NDArray | None = None
) -> tuple[Vector, Vector]:
    """Mean over the folds of the precision at the first rank with a recall, as corners of a step
    function.
    """
    curves = []
    for rows in _folds(y, fold):
        precision, recall, _ = precision_recall_curve(y[rows], scores[rows])
        reached = recall[:-1] > 0.0  # the last point, precision 1 at recall 0, is not a threshold
        curves.append((recall[:-1][reached][::-1], precision[:-1][reached][::-1]))
    levels = np.unique(np.concatenate([recall for recall, _ in curves]))
    # Of ranks with the same recall the first has the highest precision.
    heights = np.mean([p[np.searchsorted(r, levels, side="left")] for r, p in curves], axis=0)
    return np.append(0.0, np.repeat(levels, 2)[:-1]), np.repeat(heights, 2)


def _folds(y: NDArray, fold: NDArray | None) -> list[Index]:
    """The rows of each fold that has both classes."""
    parts = [np.arange(y.size)]
    if fold is not None:
        parts = [np.flatnonzero(fold == number) for number in np.unique(fold)]
    return [rows for rows in parts if np.unique(y[rows]).size == 2]


def _thin(x: Vector, y: Vector) -> tuple[Vector, Vector]:
    """Some points of a curve, evenly spaced along its length, both ends included."""
    if x.size <= MOST_POINTS:
        return x, y
    length = np.append(0.0, np.cumsum(np.hypot(np.diff(x), np.diff(y))))
    index = np.searchsorted(length, np.linspace(0.0, length[-1], MOST_POINTS))
    index = np.unique(np.concatenate([[0], index.clip(max=x.size - 1), [x.size - 1]]))
    return x[index], y[index]
