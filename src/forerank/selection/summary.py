"""Explanation of a selection: the reason in a sentence, and the learning curve."""

from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from forerank._text import counted
from forerank._typing import Vector
from forerank.design import make_design
from forerank.metrics.significance import corrected_margin
from forerank.selection.candidates import Candidate, best_positions
from forerank.selection.search import Search
from forerank.selection.training_rows import stratified_order

__all__ = ["learning_curve", "reason"]

# Shares of the training rows of a fold at which the learning curve is measured.
_SHARES = (0.25, 0.5, 1.0)
# Gain of the measure from twice the rows, as a share of its value, below which it is negligible.
_NEGLIGIBLE_GAIN = 0.01
# Fewest folds, and fewest rows of the smaller class, for a learning curve.
_MIN_FOLDS = 3
_MIN_CLASS_ROWS = 30


def reason(search: Search, selected: Candidate, position: int) -> str:
    """Why this candidate and the penalty at this position were selected."""
    text = f"Selected: {selected.name} (alpha {search.alphas[position]:.3g})"
    notes = f" Note that {'; '.join(search.notes)}." if search.notes else ""
    means = selected.means
    if not np.isfinite(means[position]):
        return (
            f"{text}, without a comparison: no fold has both classes in training and test.{notes}"
        )
    n_folds = len(selected.measured)
    text += f", mean {search.measure.phrase} {means[position]:.4f} in {counted(n_folds, 'fold')}"
    others = [c for c in search.candidates if c is not selected]
    complete = [c for c in others if c.dropped is None and len(c.measured) == n_folds]
    if complete:
        text += f"; {_runner_up(search, selected, position, complete)}"
    text += "."
    dropped = [c.name for c in others if c.dropped is not None]
    if dropped:
        text += f" Dropped early: {', '.join(dropped)}."
    if search.is_late():
        text += " The time budget ended the search."
    ties = best_positions(search.curve(selected))
    if ties.size > 1:
        text += f" {ties.size} penalties reach the same mean; the largest one was selected."
    elif search.rises_beyond(selected, position):
        end = "largest" if position == 0 else "smallest"
        text += f" The {end} alpha was selected; one beyond it may be better."
    return text + notes


def _runner_up(search: Search, selected: Candidate, position: int, others: list[Candidate]) -> str:
    """The best of the others, and whether it differs significantly.

    Its best mean may be higher than that of the selected one, since means are compared after
    averaging with those of neighbouring penalties.
    """
    second = max(others, key=lambda c: float(np.nanmax(search.curve(c))))
    k = int(np.nanargmax(search.curve(second)))
    higher = second.means[k] > selected.means[position]
    if higher:
        k = int(np.nanargmax(second.means))
    differences = selected.results[:, position] - second.results[:, k]
    differences = differences[np.isfinite(differences)]
    text = f"{second.name} reached {second.means[k]:.4f}"
    text += " at its best single penalty" if higher else ""
    if differences.size < 2:
        return f"{text}, and one fold does not show whether the difference is significant"
    if not differences.any():
        return f"{second.name} reached the same in every fold"
    if abs(float(differences.mean())) <= _margin(search, differences):
        return f"{text}, not significantly different"
    return f"{text}, but less at the neighbouring penalties" if higher else text


def _margin(search: Search, differences: Vector) -> float:
    split = search.splits[0]
    return corrected_margin(differences, split.test.size / split.train.size)


def learning_curve(search: Search, selected: Candidate, alpha: float) -> dict[str, Any]:
    """The measure with a quarter, a half and all of the training rows of a fold, and whether more
    data would help.
    """
    none = {"rows": [], "scores": [], "std": [], "more_data_helps": False}
    folds = [k for k in range(search.n_folds) if np.isfinite(selected.results[k]).any()]
    smallest = np.unique(search.data.y, return_counts=True)[1].min()
    if search.is_late():
        return none | {"sentence": "The time budget left no time for a learning curve."}
    few = none | {"sentence": "There are too few rows to tell whether more data would help."}
    if len(folds) < _MIN_FOLDS or smallest < _MIN_CLASS_ROWS:
        return few
    points = Parallel(n_jobs=search.ranker.n_jobs, prefer="threads")(
        delayed(_curve_of_fold)(search, selected, alpha, number) for number in folds
    )
    sizes, values = (np.array(part) for part in zip(*points, strict=True))
    sizes, values = sizes.mean(axis=0), values[np.isfinite(values).all(axis=1)]
    if len(values) < _MIN_FOLDS:
        return few
    means, gains = values.mean(axis=0), values[:, 2] - values[:, 1]
    gain, margin = float(gains.mean()), _margin(search, gains)
    negligible = _NEGLIGIBLE_GAIN * abs(float(means[2]))
    helps = gain > margin and gain > negligible / 10
    verdict = "more data would help" if helps else "more data would hardly help"
    if not helps and gain + margin > negligible:
        verdict = "these folds do not show whether more data would help"
    sentence = (
        f"From {int(sizes[1]):,} to {int(sizes[2]):,} rows, {search.measure.phrase} goes from "
        f"{means[1]:.4f} to {means[2]:.4f} ({gain:+.4f} ± {margin:.4f}): {verdict}."
    )
    return {
        "rows": [int(size) for size in sizes],
        "scores": means.tolist(),
        "std": values.std(axis=0, ddof=1).tolist(),
        "more_data_helps": bool(helps),
        "sentence": sentence,
    }


def _curve_of_fold(
    search: Search, selected: Candidate, alpha: float, number: int
) -> tuple[list[float], list[float]]:
    """Numbers of training rows and values of the measure; NaN where a fit is not possible."""
    train, test = search.prepare(search.splits[number], selected.map)
    order = stratified_order(train, np.random.default_rng(number))
    sizes, values = [], []
    for share in _SHARES[:-1]:
        part = train.take(order[: max(2, int(share * order.size))])
        sizes.append(float(part.y.size))
        values.append(np.nan)
        if np.unique(part.y).size < 2:
            continue
        fitted = clone(selected.loose_ranker).set_params(alpha=alpha)
        try:
            fitted.fit(part.X, part.y, **part.fit_arguments(fitted))
        except ValueError:  # every group has one class
            continue
        scores = make_design(test.X).scores(fitted.coef_[0])
        values[-1] = test.evaluate(search.measure, scores, search.list_rows)
    position = int(np.argmin(np.abs(search.alphas - alpha)))
    complete = float(selected.results[number, position])
    return [*sizes, float(train.y.size)], [*values, complete]
