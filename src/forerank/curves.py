"""A picture of a ranking: ROC, precision and recall, and hits among the first k rows."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import precision_recall_curve, roc_curve

from forerank import metrics

__all__ = ["draw_curves"]


def draw_curves(y_true: ArrayLike, y_score: ArrayLike, path: Any) -> None:
    """Save three panels as a PNG: the ROC curve, precision against recall, and the share of positives in the first k.

    Parameters
    ----------
    y_true : array-like of two classes
    y_score : array-like
    path : path or binary file
    """
    from matplotlib.figure import Figure

    y = np.asarray(y_true)
    classes = np.unique(y)
    if classes.size != 2:
        raise ValueError(f"Curves are drawn for two classes; the labels have {classes.size}.")
    y, scores = y == classes[1], np.asarray(y_score)
    figure = Figure(figsize=(12.0, 4.0), layout="constrained")
    roc, precision, hits = figure.subplots(1, 3)

    fpr, tpr, _ = roc_curve(y, scores)
    roc.plot(fpr, tpr, color="C0")
    roc.plot([0, 1], [0, 1], color="0.7", linestyle=":")
    roc.set(xlabel="false positive rate", ylabel="true positive rate")
    roc.set_title(f"ROC: AUC {metrics.roc_auc(y, scores):.4f}", fontsize=11)

    precisions, recalls, _ = precision_recall_curve(y, scores)
    precision.step(recalls, precisions, where="post", color="C1")
    precision.axhline(y.mean(), color="0.7", linestyle=":")
    precision.set(xlabel="recall", ylabel="precision", ylim=(0, 1.02))
    precision.set_title(f"Average precision {metrics.average_precision(y, scores):.4f}", fontsize=11)

    k = np.arange(1, y.size + 1)
    found = np.cumsum(y[np.argsort(-scores, kind="stable")])
    hits.plot(k, found, color="C2", label="this ranking")
    hits.plot(k, np.minimum(k, y.sum()), color="0.4", linestyle="--", label="the best possible")
    hits.plot(k, k * y.mean(), color="0.7", linestyle=":", label="any order")
    hits.set(xlabel="rows read from the top", ylabel="positives found", xscale="log")
    hits.set_title(f"Hits: {int(y.sum()):,} positives in {y.size:,} rows", fontsize=11)
    hits.legend(fontsize=9)
    for plot in (roc, precision, hits):
        plot.grid(alpha=0.3)
    figure.savefig(path, dpi=110, format="png")
