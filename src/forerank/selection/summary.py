"""Explanation of a selection: the reason in a sentence, the table of all results, and the learning
curve.
"""

import warnings
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import rankdata

from forerank._text import counted
from forerank._typing import Vector
from forerank.metrics.significance import corrected_margin
from forerank.selection.candidates import Candidate, best_positions
from forerank.selection.fits import fresh_scores
from forerank.selection.search import Search
from forerank.selection.training_rows import Split, stratified_order

__all__ = ["learning_curve", "reason", "results_table"]

# Shares of the training rows of a fold at which the learning curve is measured.
_SHARES = (0.25, 0.5, 1.0)
# Gain of the measure from twice the rows, as a share of its value, below which it is negligible.
_NEGLIGIBLE_GAIN = 0.01
# Fewest folds of a method that was dropped early for the spread of differences to it: what it was
# dropped by are blocks of the test rows, which show more.
_FEWEST_FOLDS_OF_DROPPED = 3
# Fewest folds, and fewest rows of the smaller class, for a learning curve. Only linear models have
# more folds and a quarter of the rows, since fits of trees take most of the time of a search.
_MIN_FOLDS = 3
_MIN_CLASS_ROWS = 30


def reason(search: Search, selected: Candidate, position: int) -> str:
    """Why this candidate and the value at this position were selected."""
    text = f"Selected: {selected.name}{_value(search, selected, position)}"
    notes = f" Note that {'; '.join(search.notes)}." if search.notes else ""
    means = selected.means
    if not np.isfinite(means[position]):
        return (
            f"{text}, without a comparison: no fold has both classes in training and test.{notes}"
        )
    n_folds = len(selected.measured)
    text += f", mean {search.measure.phrase} {means[position]:.4f} in {counted(n_folds, 'fold')}"
    others = [c for c in search.candidates if c is not selected]
    needed = min(n_folds, search.n_folds)
    complete = [c for c in others if c.dropped is None and len(c.measured) >= needed]
    same = [c for c in complete if c.family == selected.family]
    if same or (complete and selected.family == "linear"):
        text += f"; {_runner_up(search, selected, position, same or complete)}"
    text += "."
    if selected.family != "linear":
        text += _gain_over_linear(search, selected, position)
    elif same and len(complete) > len(same):
        beyond = [c for c in complete if c not in same]
        text += f" Beyond linear models, {_runner_up(search, selected, position, beyond)}."
    dropped = [c.name for c in others if c.dropped is not None]
    if dropped:
        text += f" Dropped early: {', '.join(dropped)}."
    if search.is_late():
        text += " The time budget ended the search."
    ties = best_positions(search.curve(selected))
    if ties.size > 1 and position == ties[0]:
        what = "penalties reach" if selected.parameter == "alpha" else "numbers of rounds reach"
        which = "largest" if selected.parameter == "alpha" else "smallest"
        text += f" {ties.size} {what} the same mean; the {which} one was selected."
    elif search.rises_beyond(selected, position):
        end = "largest" if position == 0 else "smallest"
        text += f" The {end} alpha was selected; one beyond it may be better."
    return text + notes


def _value(search: Search, selected: Candidate, position: int) -> str:
    """The value of the parameter that is tuned, of each part of an average, in parentheses."""
    values = [
        f"alpha {c.grid[k]:.3g}" if c.parameter == "alpha" else counted(int(c.grid[k]), "round")
        for c, k in search.parts_of(selected, position)
    ]
    return f" ({', '.join(values)})"


def _gain_over_linear(search: Search, selected: Candidate, position: int) -> str:
    """What the selected candidate gains over the best linear one, so that users can decide whether
    that is worth the weights and the certificate.
    """
    linear = [c for c in search.candidates if c.family == "linear"]
    measured = [c for c in linear if len(c.measured)]
    if not measured:
        is_behind = linear and all(c.dropped for c in linear)
        return " Linear methods were dropped on a sample of the rows." if is_behind else ""
    known = [c for c in measured if c.dropped is None] or measured
    best = max(known, key=lambda c: float(np.nanmax(c.measured.mean(axis=0))))
    k = int(np.nanargmax(best.measured.mean(axis=0)))
    differences = selected.results[:, position] - best.results[:, k]
    differences = differences[np.isfinite(differences)]
    gain = float(differences.mean())
    fewest = 2 if best.dropped is None else _FEWEST_FOLDS_OF_DROPPED
    spread = ""
    if differences.size >= fewest:
        margin = _margin(search, differences)
        spread = f" ± {margin:.4f}" + (" (not significant)" if abs(gain) <= margin else "")
    if gain >= 0.0:
        what = f"It gains {gain:.4f}{spread} over the best linear method ({best.name})"
    else:
        what = f"It is {-gain:.4f}{spread} behind the best linear method ({best.name})"
    averaged, why = selected.family == "average", ""
    if best.dropped is not None:
        what += f", which was dropped after {counted(len(best.measured), 'fold')}"
    elif averaged and search.is_few():
        rows = counted(search.n_rarest, "row")
        why = f" With {rows} of the rarest class, families are averaged and not compared."
    elif averaged and gain < 0.0 and _is_choice(search, best, k):
        what += ", but has the smaller logistic loss on held-out rows"
    return f" {what}.{why} Linear methods have a weight for each column and a certificate."


def _is_choice(search: Search, candidate: Candidate, position: int) -> bool:
    """Whether it is the fit of its family whose loss was compared with that of the average."""
    found = search.best_of(candidate.family)
    return found is not None and found[0] is candidate and found[1] == position


def _runner_up(search: Search, selected: Candidate, position: int, others: list[Candidate]) -> str:
    """The best of the others, and whether it differs significantly, by the folds of both.

    Its best mean may be higher than that of the selected one, since means are compared after
    averaging with those of neighbouring values, and simpler families are preferred.
    """
    second = max(others, key=lambda c: float(np.nanmax(search.curve(c))))
    k = int(np.nanargmax(search.curve(second)))
    values = selected.results[:, position]
    folds = np.isfinite(values) & np.isfinite(second.results).any(axis=1)
    values, results = values[folds], second.results[folds]
    means, mean = results.mean(axis=0), float(values.mean())
    higher = bool(means[k] > mean)
    if higher:
        k = int(np.nanargmax(means))
    differences, n = values - results[:, k], values.size
    if n > 1 and not differences.any():
        where = "every fold" if n == len(selected.measured) else f"{n} of them"
        return f"{second.name} reached the same in {where}"
    text = f"{second.name} reached {means[k]:.4f}"
    alone = second.family == selected.family and second.parameter == "alpha"
    text += " at its best single penalty" if higher and alone else ""
    if n < len(selected.measured):
        text += f" against {mean:.4f} in {n} of them"
    if n < 2:
        return f"{text}, and one fold does not show whether the difference is significant"
    if abs(float(differences.mean())) <= _margin(search, differences):
        return f"{text}, not significantly different"
    return f"{text}, but less at the neighbouring penalties" if higher and alone else text


def _margin(search: Search, differences: Vector) -> float:
    split = search.splits[0]
    return corrected_margin(differences, split.test.size / split.train.size)


def results_table(search: Search) -> dict[str, Any]:
    """`cv_results_` of the ranker: an entry per candidate and value of its parameter."""
    candidates = search.candidates
    sizes = [c.grid.size for c in candidates]
    results = np.concatenate([c.results.T for c in candidates])
    means = np.concatenate([c.means for c in candidates])

    def column(parameter: str) -> Vector:
        parts = [c.grid if c.parameter == parameter else c.grid * np.nan for c in candidates]
        return np.concatenate(parts)

    def repeated(values: list[Any]) -> list[Any]:
        return [v for v, size in zip(values, sizes, strict=True) for _ in range(size)]

    table: dict[str, Any] = {
        "family": repeated([c.family for c in candidates]),
        "method": repeated([c.name for c in candidates]),
        "alpha": column("alpha"),
        "rounds": column("rounds"),
    }
    table |= {f"split{k}_test_score": results[:, k] for k in range(len(search.splits))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no value in any fold
        deviations = np.nanstd(results, axis=1)
    table["mean_test_score"] = means
    table["std_test_score"] = np.where(np.isfinite(means), deviations, np.nan)
    # Means of dropped candidates are over fewer folds: they rank after the others.
    dropped = np.repeat([c.dropped is not None for c in candidates], sizes)
    key = np.where(np.isfinite(means), -means + 10.0 * dropped, 100.0)
    table["rank_test_score"] = rankdata(key, method="min").astype(int)
    seconds = [c.seconds / max(c.fits, 1) for c in candidates]
    table["mean_fit_time"] = np.repeat(seconds, sizes)
    table["left_out"] = repeated([c.dropped or "" for c in candidates])
    return table


def learning_curve(search: Search, selected: Candidate, position: int) -> dict[str, Any]:
    """The measure with a quarter, a half and all of the training rows of a fold, and whether more
    data would help.
    """
    none = {"rows": [], "scores": [], "std": [], "more_data_helps": False}
    folds = [k for k in range(search.n_folds) if np.isfinite(selected.results[k, position])]
    if search.is_late():
        return none | {"sentence": "The time budget left no time for a learning curve."}
    few = none | {"sentence": "There are too few rows to tell whether more data would help."}
    if len(folds) < _MIN_FOLDS or search.n_rarest < _MIN_CLASS_ROWS:
        return few
    shares: tuple[float, ...] = _SHARES
    if selected.family in ("trees", "average"):
        folds, shares = folds[:_MIN_FOLDS], _SHARES[1:]
    points = Parallel(n_jobs=search.ranker.n_jobs, prefer="threads")(
        delayed(_curve_of_fold)(search, selected, position, number, shares) for number in folds
    )
    sizes, values = (np.array(part) for part in zip(*points, strict=True))
    sizes, values = sizes.mean(axis=0), values[np.isfinite(values).all(axis=1)]
    if len(values) < _MIN_FOLDS:
        return few
    means, gains = values.mean(axis=0), values[:, -1] - values[:, -2]
    gain, margin = float(gains.mean()), _margin(search, gains)
    negligible = _NEGLIGIBLE_GAIN * abs(float(means[-1]))
    helps = gain > margin and gain > negligible / 10
    verdict = "more data would help" if helps else "more data would hardly help"
    if not helps and gain + margin > negligible:
        verdict = "these folds do not show whether more data would help"
    sentence = (
        f"From {int(sizes[-2]):,} to {int(sizes[-1]):,} rows, {search.measure.phrase} in "
        f"{counted(len(values), 'fold')} goes from {means[-2]:.4f} to {means[-1]:.4f} "
        f"({gain:+.4f} ± {margin:.4f}): {verdict}."
    )
    return {
        "rows": [int(size) for size in sizes],
        "scores": means.tolist(),
        "std": values.std(axis=0, ddof=1).tolist(),
        "more_data_helps": bool(helps),
        "sentence": sentence,
    }


def _curve_of_fold(
    search: Search, selected: Candidate, position: int, number: int, shares: tuple[float, ...]
) -> tuple[list[float], list[float]]:
    """Numbers of training rows and values of the measure; NaN where a fit is not possible."""
    split = search.splits[number]
    order = stratified_order(search.data.labels(split.train), np.random.default_rng(number))
    test = search.data.labels(split.test)
    sizes, values = [], []
    for share in shares[:-1]:
        rows = split.train[order[: max(2, int(share * order.size))]]
        sizes.append(float(rows.size))
        values.append(np.nan)
        if np.unique(search.data.y[rows]).size < 2:
            continue
        try:
            scores = _scores(search, selected, position, Split(rows, split.test, ""))
        except ValueError:  # every group has one class
            continue
        values[-1] = test.evaluate(search.measure, scores, search.list_rows)
    complete = float(selected.results[number, position])
    return [*sizes, float(split.train.size)], [*values, complete]


def _scores(search: Search, selected: Candidate, position: int, split: Split) -> Vector:
    """Test scores of a fit on the training rows of a split."""
    parts = search.parts_of(selected, position)
    scores = [fresh_scores(c, place, *search.rows.of(c, split)) for c, place in parts]
    return np.column_stack(scores) @ search.weights if len(scores) > 1 else scores[0]
