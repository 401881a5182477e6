"""ROC curves and curves of precision and recall, as reports and `evaluate` draw them.

Rows that were held out in folds have scores of different models, which are not compared: the curve
of each fold is taken, and at each place their mean is drawn. The area below it is the mean of the
areas, so that a picture and the measure beside it agree.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import precision_recall_curve, roc_curve

from forerank import metrics
from forerank._typing import Vector
from forerank.metrics.estimates import format_value
from forerank.plots.displays import COLOURS, GREY, STYLE, HitsDisplay

__all__ = ["draw_curves", "draw_precision_recall", "draw_roc", "mean_precision_recall", "mean_roc"]

# Points of a curve beyond which a picture only grows in bytes.
_MOST_POINTS = 400


def draw_curves(y_true: ArrayLike, y_score: ArrayLike, path: Any) -> None:
    """Save three panels as a PNG: the ROC curve, precision against recall, and hits among the first
    k rows.

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
        raise ValueError(f"Curves are drawn for two classes; the labels have {classes.size}.")
    y, scores = y == classes[1], np.asarray(y_score)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(14.0, 4.2), layout="constrained")
        roc, precision, hits = figure.subplots(1, 3)
        draw_roc(roc, *mean_roc(y, scores), metrics.roc_auc(y, scores))
        roc.set_title("ROC curve")
        average = metrics.average_precision(y, scores)
        draw_precision_recall(
            precision, *mean_precision_recall(y, scores), average, float(y.mean())
        )
        precision.set_title("Precision and recall")
        HitsDisplay.from_predictions(y, scores, log_x=True, ax=hits)
        hits.set_title(f"Hits: {int(y.sum()):,} in {y.size:,} rows")
        figure.savefig(path, dpi=110, format="png")


def draw_roc(ax: Any, fpr: Vector, tpr: Vector, auc: float) -> None:
    """A ROC curve, its area in the legend, and that of a random order."""
    ax.plot(*_thin(fpr, tpr), color=COLOURS[0], label=f"this ranking, AUC {format_value(auc)}")
    ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", label="a random order, 0.5")
    ax.set(
        xlabel="false positive rate",
        ylabel="true positive rate",
        xlim=(-0.01, 1.01),
        ylim=(-0.01, 1.02),
    )
    ax.legend(loc="lower right")


def draw_precision_recall(
    ax: Any, recall: Vector, precision: Vector, average: float, share: float
) -> None:
    """Precision against recall, the average in the legend, and the share of positive rows: that of
    a random order.
    """
    ax.plot(
        *_thin(recall, precision),
        color=COLOURS[0],
        label=f"this ranking, average {format_value(average)}",
    )
    ax.axhline(
        share, color=GREY, linestyle=":", label=f"share of positive rows, {format_value(share)}"
    )
    ax.set(xlabel="recall", ylabel="precision", xlim=(-0.01, 1.01), ylim=(0.0, 1.04))
    ax.legend(loc="best")


def mean_roc(y: NDArray, scores: NDArray, fold: NDArray | None = None) -> tuple[Vector, Vector]:
    """The mean of the folds' ROC curves at each false positive rate, as corners of a line.

    A curve rises straight up where positive rows follow each other, so each rate has a lower and an
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
    """The mean over the folds of the precision at the first place with a recall, as corners of a
    line of steps.
    """
    curves = []
    for rows in _folds(y, fold):
        precision, recall, _ = precision_recall_curve(y[rows], scores[rows])
        found = recall[:-1] > 0.0  # the last point, precision 1 at recall 0, belongs to no score
        curves.append((recall[:-1][found][::-1], precision[:-1][found][::-1]))
    levels = np.unique(np.concatenate([recall for recall, _ in curves]))
    # Of places with the same recall the first has the highest precision.
    heights = np.mean([p[np.searchsorted(r, levels, side="left")] for r, p in curves], axis=0)
    return np.append(0.0, np.repeat(levels, 2)[:-1]), np.repeat(heights, 2)


def _folds(y: NDArray, fold: NDArray | None) -> list[NDArray[np.intp]]:
    """The rows of each fold that has both classes."""
    parts = (
        [np.arange(y.size)]
        if fold is None
        else [np.flatnonzero(fold == each) for each in np.unique(fold)]
    )
    return [rows for rows in parts if np.unique(y[rows]).size == 2]


def _thin(*arrays: NDArray) -> list[NDArray]:
    """Some points of a curve, evenly along it, the ends among them."""
    n = arrays[0].size
    if n <= _MOST_POINTS:
        return list(arrays)
    length = np.append(0.0, np.cumsum(np.hypot(*(np.diff(each) for each in arrays))))
    some = np.unique(
        np.searchsorted(length, np.linspace(0.0, length[-1], _MOST_POINTS)).clip(max=n - 1)
    )
    some = np.unique(np.concatenate([[0], some, [n - 1]]))
    return [each[some] for each in arrays]
