"""Figures of a report, each with a text alternative and a caption.

They are SVG images in data URIs: sharp at any size, with text kept as text, and nothing that a
column may be called can become part of the page.
"""

import base64
import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from forerank._text import counted, figure_label
from forerank._typing import Vector
from forerank.metrics.estimates import format_value
from forerank.metrics.probability_bounds import probability_bounds
from forerank.plots import (
    AlphaPathDisplay,
    CriticalDifferenceDisplay,
    HitsDisplay,
    RoundsDisplay,
    ScoreDistributionDisplay,
    TopStabilityDisplay,
)
from forerank.plots.curves import draw_precision_recall, draw_roc, mean_precision_recall, mean_roc
from forerank.plots.style import CHANCE, COLOURS, STYLE, format_counts
from forerank.workflows.report.formatting import percent

__all__ = ["ReportFigure"]

# Width and height in inches: about the size on a phone, where letters must be large enough.
_SIZE = (4.9, 3.7)
# Longest name in a figure, in characters; longer ones are truncated.
_LONGEST_NAME = 26
# Most classes for which the caption gives each median.
_MOST_MEDIANS = 6
# Fewest rows of each class for a calibration curve; with fewer its shares are mostly noise.
_FEWEST_TO_CALIBRATE = 10


@dataclass(frozen=True)
class ReportFigure:
    """Image as a data URI, its text alternative, and its caption."""

    uri: str
    alt: str
    caption: str


def _drawn(
    draw: Callable[[Any], None], alt: str, caption: str, size: tuple[float, float] = _SIZE
) -> ReportFigure:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        # The reader's machine may have glyphs that the fonts of this one lack.
        missing = "Glyph .* missing from font"
        warnings.filterwarnings("ignore", message=missing, category=UserWarning)
        page = Figure(figsize=size, layout="constrained")
        draw(page.subplots())
        file = io.BytesIO()
        page.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    data = base64.b64encode(file.getvalue()).decode("ascii")
    return ReportFigure(f"data:image/svg+xml;base64,{data}", alt, caption)


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _wrapped(label: str) -> str:
    """Axis label with the text in parentheses on a second line, if it is long."""
    return label.replace(" (", "\n(") if len(label) > _LONGEST_NAME else label


def _legend_below(ax: Any, columns: int) -> None:
    """Move the legend below the axes, for figures whose lines may be anywhere."""
    handles, names = ax.get_legend_handles_labels()
    ax.get_legend().remove()
    ax.figure.legend(handles, names, loc="outside lower center", ncols=columns, columnspacing=1.2)


def roc(y: NDArray, scores: Vector, fold: NDArray, auc: float, tpr_at_01: float) -> ReportFigure:
    """Mean of the folds' ROC curves; its area is the mean of their AUCs."""
    fpr, tpr = mean_roc(y, scores, fold)
    low, high = percent(tpr_at_01), percent(float(np.interp(0.1, fpr, tpr)))
    text = f"{low} of the positive rows are found at a false positive rate of 1 %, {high} at 10 %."
    return _drawn(
        lambda ax: draw_roc(ax, {f"this ranking, AUC {format_value(auc)}": (fpr, tpr)}),
        f"ROC curve, area {format_value(auc)}. {text}",
        f"ROC curve, the mean of the folds. {text}",
    )


def precision_recall(y: NDArray, scores: Vector, fold: NDArray, ap: float) -> ReportFigure:
    """Mean of the folds' precisions at each recall; the area under it is the mean of their average
    precisions.
    """
    recall, precision = mean_precision_recall(y, scores, fold)
    half = percent(float(precision[np.searchsorted(recall, 0.5)]))
    text = f"At a recall of one half, {half} of the rows down to there are positive."
    curve = {f"this ranking, average {format_value(ap)}": (recall, precision)}
    return _drawn(
        lambda ax: draw_precision_recall(ax, curve, float(y.mean())),
        f"Precision against recall, average precision {format_value(ap)}. {text}",
        f"Precision and recall, the mean of the folds. {text}",
    )


def hits(y: NDArray, scores: Vector) -> ReportFigure:
    """Share of positive rows among the first k."""

    def draw(ax: Any) -> None:
        HitsDisplay.from_predictions(y, scores, share=True, log_x=True, ax=ax)
        _legend_below(ax, 3)

    text = "Share of positive rows among the first k"
    return _drawn(
        draw,
        f"{text}, against the best possible and a random order; the table has the numbers.",
        f"{text}; the rows of all folds are ordered by their relative ranks within the folds.",
    )


def distributions(y: NDArray, scores: Vector, labels: Mapping[Any, str]) -> ReportFigure:
    """Relative ranks within the folds by class."""
    classes, counts = np.unique(y, return_counts=True)
    named = classes[::-1] if classes.size <= _MOST_MEDIANS else classes[[-1, 0]]
    medians = {labels[each.item()]: np.median(scores[y == each]) for each in named}
    listed = ", ".join(f"{percent(float(median))} for {name}" for name, median in medians.items())
    text = f"Share of the rows ranked below the median row of a class: {listed}."
    bins = int(np.clip(2 * np.sqrt(counts.min()), 12, 40))

    def draw(ax: Any) -> None:
        short = {label: _short(name) for label, name in labels.items()}
        ScoreDistributionDisplay.from_predictions(y, scores, labels=short, bins=bins, ax=ax)
        ax.set_xlabel("share of the fold's rows ranked below")

    return _drawn(
        draw,
        f"Histograms of the relative ranks of held-out rows by class. {text}",
        f"Relative ranks of the rows within their folds; each class has area one. {text}",
    )


def stability(by_model: Vector, seed: int, k: int) -> ReportFigure:
    """Overlap of the first rows between the models of the folds; the caption gives it at k."""
    at_k: list[str] = []

    def draw(ax: Any) -> None:
        display = TopStabilityDisplay.from_scores(by_model, random_state=seed, ax=ax)
        _legend_below(ax, 2)
        lines = display.mean, display.low
        at_k.extend(percent(float(np.interp(k, display.k, line))) for line in lines)

    uri = _drawn(draw, "", "").uri
    text = f"Two models have on average {at_k[0]} of their first {k:,} rows in common, "
    text += f"at least {at_k[1]}."
    return ReportFigure(
        uri, f"Overlap of the first k rows between models of the folds. {text}", text
    )


def reliability(y: NDArray, scores: Vector, fold: NDArray) -> ReportFigure | None:
    """Reliability diagram of probabilities that are calibrated on the other folds; None where there
    are too few rows or the scores are constant.

    For each fold, a sigmoid and an isotonic function from scores to probabilities are fitted on the
    held-out rows of the other folds. Scores are relative ranks as quantiles of the normal
    distribution, which a sigmoid fits better than a uniform distribution. Rows are then divided
    into ten bins of about equal size by their probability.
    """
    probabilities = _calibrated(y, scores, fold)
    if probabilities is None:
        return None

    def draw(ax: Any) -> None:
        largest = 0.0
        for (name, p), colour, marker in zip(probabilities.items(), COLOURS, "os", strict=False):
            # Rows of the same probability are in the same bin.
            edges = np.unique(np.quantile(p, np.linspace(0.0, 1.0, min(10, y.size // 5) + 1)[1:-1]))
            number = np.searchsorted(edges, p, side="left")
            bins = [np.flatnonzero(number == each) for each in np.unique(number)]
            predicted, observed = (np.array([v[rows].mean() for rows in bins]) for v in (p, y))
            variance = np.maximum(observed * (1 - observed), 1e-12) / [rows.size for rows in bins]
            error = np.minimum(1.96 * np.sqrt(variance), [observed, 1 - observed])
            style = {"color": colour, "marker": marker, "ms": 5, "lw": 1.2}
            ax.errorbar(predicted, observed, error, label=name, **style)
            largest = max(largest, predicted.max(), observed.max())
        largest = min(1.0, 1.08 * largest)
        ax.plot([0, largest], [0, largest], **CHANCE, label="perfect calibration")
        ax.set(xlabel="predicted probability", ylabel="share of positive rows")
        ax.legend(loc="upper left")

    errors = [f"{name} {np.mean((p - y) ** 2):.4f}" for name, p in probabilities.items()]
    text = f"Brier score (mean squared error of the probabilities): {', '.join(errors)}; "
    text += f"predicting the share of positive rows for every row gives {float(np.var(y)):.4f}."
    bounds = probability_bounds(y, probabilities["sigmoid"]).sentence_on_pairs
    caption = f"{text} For the sigmoid, rows of all folds together. {bounds}"
    return _drawn(draw, f"Reliability of calibrated scores in ten bins. {text}", caption)


def _calibrated(y: NDArray, scores: Vector, fold: NDArray) -> dict[str, Vector] | None:
    """Probabilities of the rows of each fold by functions fitted on the rows of the others."""
    if np.ptp(scores) == 0.0:
        return None
    scores = ndtri(scores)
    probabilities = {"sigmoid": np.full(y.size, np.nan), "isotonic": np.full(y.size, np.nan)}
    for number in np.unique(fold):
        test = fold == number
        s, t = scores[~test], y[~test]
        if min(t.sum(), (~t).sum()) < _FEWEST_TO_CALIBRATE:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # separable classes
            sigmoid = LogisticRegression(C=1e4).fit(s[:, None], t)
        isotonic = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(s, t)
        probabilities["sigmoid"][test] = sigmoid.predict_proba(scores[test, None])[:, 1]
        probabilities["isotonic"][test] = isotonic.predict(scores[test])
    return probabilities


def weights(
    names: Sequence[str], values: Vector, low: Vector | None, high: Vector | None
) -> ReportFigure:
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
        ax.set_xlabel("weight (positive: raises the score)")

    first = ", ".join(f"{name} {v:+.3g}" for name, v in zip(names[:3], values[:3], strict=True))
    ranges = "" if low is None else ", with their range over the models of the folds (black lines)"
    return _drawn(
        draw,
        f"Bar chart of the largest weights; the first are {first}. The table has all of them.",
        f"The largest weights{ranges}.",
        (_SIZE[0], 1.0 + 0.27 * len(names)),
    )


def alpha_path(ranker: Any, title: str) -> ReportFigure | None:
    """Cross-validated measure against alpha; None where no method that was tried has an alpha."""
    caption = "Regularisation path: the mean of the folds for each method and alpha that was tried."
    if not np.isfinite(_values(ranker, "alpha")).all():
        caption += " Trees and averages, which have none, are not shown."
    return _path(AlphaPathDisplay, "alpha", ranker, title, caption)


def rounds_path(ranker: Any, title: str) -> ReportFigure | None:
    """The same against the number of rounds of boosted trees."""
    caption = "Boosted trees: the mean of the folds for each number of rounds that was tried."
    return _path(RoundsDisplay, "rounds", ranker, title, caption)


def _values(ranker: Any, parameter: str) -> Vector:
    """The parameter of each trial; NaN where it has none."""
    results = ranker.cv_results_
    return np.asarray(results.get(parameter, [np.nan] * len(results["method"])), dtype=np.float64)


def _path(
    display: type[AlphaPathDisplay], parameter: str, ranker: Any, title: str, caption: str
) -> ReportFigure | None:
    """Cross-validated measure against a parameter; None where no method that was tried has it."""
    known = np.isfinite(_values(ranker, parameter))
    methods = set(np.asarray(ranker.cv_results_["method"], dtype=object)[known])
    if not methods:
        return None

    dropped = set[str]()

    def draw(ax: Any) -> None:
        dropped.update(display.from_estimator(ranker, metric=title, ax=ax).dropped)
        ax.set_ylabel(_wrapped(title))
        _legend_below(ax, 2)

    is_shown = getattr(ranker, "best_method_", None) in methods
    ring = "; a ring marks the selected one" if is_shown else ""
    against = f"Cross-validated measure against {parameter}, {counted(len(methods), 'method')}"
    size = _SIZE[0], _SIZE[1] + 0.1 + 0.2 * ((len(methods) + 2) // 2)
    try:
        drawn = _drawn(draw, f"{against}{ring}.", caption, size)
    except ValueError:  # no trial was measured
        return None
    if not dropped:
        return drawn
    what = "Dashed lines: methods dropped early, whose means are over their first folds only; their"
    what += " heights do not compare with those of the others."
    return replace(drawn, alt=f"{drawn.alt} {what}", caption=f"{caption} {what}")


def learning_curve(curve: Mapping[str, Any], title: str, sentence: str) -> ReportFigure:
    """Measure against the number of training rows, with its standard deviation over the folds."""
    std = curve.get("std")

    def draw(ax: Any) -> None:
        style = {"color": COLOURS[0], "marker": "o", "capsize": 4, "elinewidth": 1.2}
        ax.errorbar(curve["rows"], curve["scores"], std or None, **style)
        ax.set(xlabel="training rows", ylabel=_wrapped(title))
        format_counts(ax.xaxis)
        ax.locator_params(axis="x", nbins=5)

    bars = " Bars: one standard deviation over the folds." if std else ""
    return _drawn(draw, f"Learning curve. {sentence}", f"Learning curve. {sentence}{bars}")


def critical_difference(ranks: Mapping[str, float], cd: float | None) -> ReportFigure:
    """Mean ranks of the compared methods."""

    def draw(ax: Any) -> None:
        ax.grid(visible=False)
        short = {_short(name): rank for name, rank in ranks.items()}
        CriticalDifferenceDisplay.from_ranks(short, cd, ax=ax)

    best_first = sorted(ranks.items(), key=lambda item: item[1])
    return _drawn(
        draw,
        f"Mean ranks of the methods: {', '.join(f'{name} {r:.2f}' for name, r in best_first)}.",
        "Mean ranks over folds and seeds. Methods under one bar are not significantly different. "
        "Folds of one data set are not independent; the p-values in the table allow for that, "
        "this figure does not.",
        (_SIZE[0], 1.7 + 0.34 * len(ranks)),
    )
