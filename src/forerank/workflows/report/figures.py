"""The pictures of a report, each with the words that stand for it where it cannot be seen.

They are SVG, so that they are sharp on a phone, on a screen and on paper, and their letters stay
letters. They are put into the page as images: nothing that a column may be called can become part
of the page.
"""

import base64
import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from forerank._text import figure_label
from forerank._typing import Vector
from forerank.plots.curves import draw_precision_recall, draw_roc, mean_precision_recall, mean_roc
from forerank.plots.displays import (
    COLOURS,
    GREY,
    STYLE,
    AlphaPathDisplay,
    CriticalDifferenceDisplay,
    HitsDisplay,
    ScoreDistributionDisplay,
    TopStabilityDisplay,
)
from forerank.workflows.report.sentences import figure, percent

__all__ = ["Picture"]

# Inches. Drawn about as large as a phone shows them, letters are large enough there and everywhere
# else.
_SIZE = (4.9, 3.7)
_LONGEST_NAME = 26
# Classes of which the caption has each median.
_MOST_MEDIANS = 6


@dataclass(frozen=True)
class Picture:
    """An image as a data address, the words that stand for it, and what is written below it."""

    uri: str
    alt: str
    caption: str


def _drawn(
    draw: Callable[[Any], None], alt: str, caption: str, size: tuple[float, float] = _SIZE
) -> Picture:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        # The reader's machine has the letters that this one's fonts lack.
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing from font", category=UserWarning
        )
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.subplots())
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return Picture(
        "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode("ascii"),
        alt,
        caption,
    )


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _wrapped(label: str) -> str:
    """A label of an axis, its parentheses on a line of their own."""
    return label.replace(" (", "\n(") if len(label) > _LONGEST_NAME else label


def _legend_below(ax: Any, columns: int) -> None:
    """Below the picture where lines may use all of it."""
    handles, names = ax.get_legend_handles_labels()
    ax.get_legend().remove()
    ax.figure.legend(handles, names, loc="outside lower center", ncols=columns, columnspacing=1.2)


def roc(y: NDArray, scores: Vector, fold: NDArray, auc: float, tpr_at_01: float) -> Picture:
    """The mean of the folds' ROC curves; its area is the mean of their AUCs."""
    fpr, tpr = mean_roc(y, scores, fold)
    low, high = percent(tpr_at_01), percent(float(np.interp(0.1, fpr, tpr)))
    seen = (
        f"With 1 % of the negative rows come {low} of the positive ones, with 10 % of them {high}."
    )
    return _drawn(
        lambda ax: draw_roc(ax, fpr, tpr, auc),
        f"ROC curve, area {figure(auc)}. {seen}",
        f"ROC curve, the mean of the folds. {seen}",
    )


def precision_recall(y: NDArray, scores: Vector, fold: NDArray, ap: float) -> Picture:
    """The mean of the folds' precisions at each recall; the area below it is the mean of their
    average precisions.
    """
    recall, precision = mean_precision_recall(y, scores, fold)
    half = float(precision[np.searchsorted(recall, 0.5)])
    seen = (
        f"Where half of the positive rows are found, {percent(half)} of the rows read are positive."
    )
    return _drawn(
        lambda ax: draw_precision_recall(ax, recall, precision, ap, float(y.mean())),
        f"Precision against recall, average precision {figure(ap)}. {seen}",
        f"Precision and recall, the mean of the folds. {seen}",
    )


def hits(y: NDArray, scores: Vector) -> Picture:
    """The share of hits among the first k rows."""

    def draw(ax: Any) -> None:
        HitsDisplay.from_predictions(y, scores, share=True, log_x=True, ax=ax)
        _legend_below(ax, 3)

    return _drawn(
        draw,
        "Share of hits among the first k rows, against the best possible and a random order; the table has figures.",
        "The share of hits among the rows read from the top, rows of all folds by their places in their folds.",
    )


def distributions(y: NDArray, scores: Vector, labels: Mapping[Any, str]) -> Picture:
    """Places in the lists of the folds by class."""
    classes, counts = np.unique(y, return_counts=True)
    named = classes[::-1] if classes.size <= _MOST_MEDIANS else classes[[-1, 0]]
    medians = [
        f"{percent(float(np.median(scores[y == each])))} for {labels[each.item()]}"
        for each in named
    ]
    middle = f"Rows behind the median row of a class: {', '.join(medians)}."
    bins = int(np.clip(2 * np.sqrt(counts.min()), 12, 40))

    def draw(ax: Any) -> None:
        short = {label: _short(name) for label, name in labels.items()}
        ScoreDistributionDisplay.from_predictions(y, scores, labels=short, bins=bins, ax=ax)
        ax.set_xlabel("share of the rows of the fold behind a row")

    return _drawn(
        draw,
        f"Histograms of the places of held-out rows by class. {middle}",
        f"Places of the rows in the lists of their folds; each class has area one. {middle}",
    )


def stability(by_model: Vector, seed: int, place: int) -> Picture:
    """The overlap of the first k rows between the models of the folds."""
    at: list[float] = []

    def draw(ax: Any) -> None:
        display = TopStabilityDisplay.from_scores(by_model, random_state=seed, ax=ax)
        _legend_below(ax, 2)
        at.extend(float(np.interp(place, display.k, line)) for line in (display.mean, display.low))

    drawn = _drawn(draw, "", "")
    mean, least = percent(at[0]), percent(at[1])
    seen = f"Two models have on average {mean} of their first {place:,} rows in common, at least {least}."
    return Picture(
        drawn.uri,
        f"Overlap of the first k rows between models of different folds. {seen}",
        seen,
    )


def reliability(y: NDArray, scores: Vector, fold: NDArray) -> Picture | None:
    """How well scores can be read as probabilities, learnt on the other folds; None where nothing
    can be learnt.

    For each fold, a sigmoid and a step function from scores to probabilities are fitted on the
    held-out rows of the other folds, whose places in their lists stand for scores: as quantiles of
    the normal distribution, which a sigmoid suits better than equal steps. Rows are then put into
    ten bins of about equal size by their probability.
    """
    if np.ptp(scores) == 0.0:
        return None
    scores = ndtri(scores)
    probabilities = {"sigmoid": np.full(y.size, np.nan), "isotonic": np.full(y.size, np.nan)}
    for number in np.unique(fold):
        test = fold == number
        s, t = scores[~test], y[~test]
        if np.unique(t).size < 2 or min(t.sum(), (~t).sum()) < 10:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ConvergenceWarning
            )  # classes that scores part have no end of slope
            sigmoid = LogisticRegression(C=1e4).fit(s[:, None], t)
        isotonic = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(s, t)
        probabilities["sigmoid"][test] = sigmoid.predict_proba(scores[test, None])[:, 1]
        probabilities["isotonic"][test] = isotonic.predict(scores[test])
    brier = {name: float(np.mean((p - y) ** 2)) for name, p in probabilities.items()}
    none = float(np.var(y))

    def draw(ax: Any) -> None:
        top = 0.0
        for (name, p), colour, marker in zip(probabilities.items(), COLOURS, "os", strict=False):
            # Rows of the same probability stay together.
            edges = np.unique(np.quantile(p, np.linspace(0.0, 1.0, min(10, y.size // 5) + 1)[1:-1]))
            place = np.searchsorted(edges, p, side="left")
            bins = [np.flatnonzero(place == each) for each in np.unique(place)]
            said, seen = (np.array([each[rows].mean() for rows in bins]) for each in (p, y))
            error = 1.96 * np.sqrt(
                np.maximum(seen * (1 - seen), 1e-12) / [rows.size for rows in bins]
            )
            ax.errorbar(
                said,
                seen,
                np.minimum(error, [seen, 1 - seen]),
                color=colour,
                marker=marker,
                ms=5,
                label=name,
                lw=1.2,
            )
            top = max(top, said.max(), seen.max())
        top = min(1.0, 1.08 * top)
        ax.plot([0, top], [0, top], color=GREY, linestyle=":", label="perfect calibration")
        ax.set(xlabel="predicted probability", ylabel="share of positive rows")
        ax.legend(loc="upper left")

    seen = (
        f"Mean squared error of the probabilities: sigmoid {brier['sigmoid']:.4f}, isotonic {brier['isotonic']:.4f}; "
        f"the share of positive rows for every row gives {none:.4f}."
    )
    return _drawn(draw, f"Reliability of calibrated scores in ten bins. {seen}", seen)


def weights(
    names: Sequence[str], values: Vector, low: Vector | None, high: Vector | None
) -> Picture:
    """Bars of the weights, with their range over the folds."""

    def draw(ax: Any) -> None:
        at = np.arange(len(names))
        colours = [COLOURS[0] if value >= 0 else COLOURS[1] for value in values]
        ax.barh(at, values, color=colours, height=0.72)
        if low is not None and high is not None:
            ax.hlines(at, low, high, color="black", linewidth=1.3)
        ax.set_yticks(at, [figure_label(_short(name)) for name in names], fontsize=10)
        ax.invert_yaxis()
        ax.axvline(0.0, color="black", linewidth=0.8)
        ax.grid(visible=False, axis="y")
        ax.set_xlabel("weight (above 0: ahead)")

    first = ", ".join(
        f"{name} {value:+.3g}" for name, value in zip(names[:3], values[:3], strict=True)
    )
    return _drawn(
        draw,
        f"Bar chart of the largest weights; the first are {first}. The table has all of them.",
        "The largest weights"
        + (
            ", with their range over the models of the folds (black lines)."
            if low is not None
            else "."
        ),
        (_SIZE[0], 1.0 + 0.27 * len(names)),
    )


def alpha_path(ranker: Any, metric: str) -> Picture | None:
    """What a ranker that chooses has tried; None where nothing can be drawn along alpha."""

    def draw(ax: Any) -> None:
        display = AlphaPathDisplay.from_estimator(ranker, metric=metric, ax=ax)
        ax.set_ylabel(_wrapped(metric))
        _legend_below(ax, 2)
        drawn.extend(display.lines_)

    drawn: list[str] = []
    try:
        n_methods = len(set(ranker.cv_results_["method"]))
        size = (_SIZE[0], _SIZE[1] + 0.1 + 0.2 * ((n_methods + 2) // 2))
        return _drawn(
            draw,
            f"Cross-validated measure against alpha for {n_methods} methods; the choice has a ring.",
            "Regularisation path: the mean of the folds for each method and alpha that was tried.",
            size,
        )
    except ValueError:
        return None


def learning_curve(
    rows: Sequence[float],
    scores: Sequence[float],
    std: Sequence[float] | None,
    metric: str,
    sentence: str,
) -> Picture:
    """The measure against the number of rows learnt from, with its standard deviation over the
    folds.
    """

    def draw(ax: Any) -> None:
        ax.errorbar(
            rows, scores, std or None, color=COLOURS[0], marker="o", capsize=4, elinewidth=1.2
        )
        ax.set(xlabel="rows learnt from", ylabel=_wrapped(metric))
        ax.xaxis.set_major_formatter(lambda value, position: f"{value:,.0f}")
        ax.locator_params(axis="x", nbins=5)

    bars = " Bars: one standard deviation over the folds." if std else ""
    return _drawn(draw, f"Learning curve. {sentence}", f"Learning curve. {sentence}{bars}")


def critical_difference(ranks: Mapping[str, float], cd: float | None) -> Picture:
    """Mean ranks of the methods that were compared."""

    def draw(ax: Any) -> None:
        ax.grid(visible=False)
        CriticalDifferenceDisplay.from_ranks(
            {_short(name): rank for name, rank in ranks.items()}, cd, ax=ax
        )

    listed = ", ".join(
        f"{name} {rank:.2f}" for name, rank in sorted(ranks.items(), key=lambda item: item[1])
    )
    return _drawn(
        draw,
        f"Mean ranks of the methods: {listed}.",
        "Mean ranks over folds and seeds. Methods under one bar are not significantly different. Folds of one data "
        "set are not independent; the p-values in the table allow for that, this picture does not.",
        (_SIZE[0], 1.7 + 0.34 * len(ranks)),
    )
