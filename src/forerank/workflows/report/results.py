"""Measures of the held-out rows, and the sentences, warnings and tables made of them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from forerank._text import counted
from forerank._typing import Vector
from forerank.data.checks import data_warnings
from forerank.data.problem import RankingProblem
from forerank.metrics.estimates import (
    Estimate,
    estimate_measure,
    estimate_measures,
    format_value,
)
from forerank.metrics.registry import Measure, get_measure, measure_for_labels
from forerank.workflows.report.cross_validation import HeldOut
from forerank.workflows.report.formatting import (
    as_sentence,
    capitalised,
    count,
    interval,
    percent,
    verdict,
)

__all__ = ["HeldOutResults", "requested_measure"]

# Numbers of first rows in the tables; with groups, of the first rows of a group.
_DEPTHS = (10, 50, 100, 500, 1000, 5000)
_GROUP_DEPTHS = (1, 3, 5, 10, 20, 50, 100)
# Rows of the smaller class below which intervals are not shown: resamples of fewer rows vary less
# than new rows would.
_FEWEST_FOR_INTERVALS = 10
# An AUC from here on is more often due to a column that holds the answer than to a good model.
_SUSPICIOUS_AUC = 0.999
# Random orders that are measured if there is no formula for the value of a random order.
_RANDOM_ORDERS = 10


def requested_measure(metric: str, *, graded: bool) -> Measure:
    """The measure by its key; for two classes, the share of pairs in order is called AUC."""
    measure = measure_for_labels(metric, graded=graded)
    return get_measure("auc") if measure.key == "wmw" and not graded else measure


class HeldOutResults:
    """Measures of held-out rows.

    Attributes
    ----------
    estimates : list of Estimate
        Means over the folds, the requested measure first; empty if nothing could be measured.
    by_key : dict
        The same, such as ``by_key["precision@10"]``.
    chance : dict
        Value of a random order, by key.
    y, scores, fold, groups : ndarray
        Of the rows that have a score.
    """

    def __init__(self, problem: RankingProblem, measure: Measure, held: HeldOut, seed: int) -> None:
        self.problem, self.measure, self.held, self.seed = problem, measure, held, seed
        rows = held.rows
        self.y, self.scores, self.fold = problem.y[rows], held.scores[rows], held.fold[rows]
        self.groups = None if problem.groups is None else problem.groups[rows]
        self._depths = self._depths_shown()
        # Arguments of all estimates.
        self._lists = {"qid": self.groups, "fold": self.fold, "list_rows": problem.y.size}
        self.estimates: list[Estimate] = []
        self.chance: dict[str, float] = {}
        self._not_measured = ""
        if np.unique(self.y).size > 1:
            try:
                self.estimates = self._estimated()
                self.chance = self._chance_levels()
            except ValueError as error:
                self._not_measured = str(error)
        self.by_key = {estimate.key: estimate for estimate in self.estimates}

    @property
    def two_classes(self) -> bool:
        """Whether all rows are one list of two classes, for which curves can be drawn."""
        return bool(self.estimates) and not self.problem.graded and self.groups is None

    def _depths_shown(self) -> list[int]:
        """Numbers of first rows in the tables; with groups, those that most groups have."""
        longest, depths = self.y.size, list(_DEPTHS)
        if self.groups is not None and self.y.size:
            longest = int(np.median(np.unique(self.groups, return_counts=True)[1]))
            depths = list(_GROUP_DEPTHS)
        shown = {depth for depth in depths if depth <= longest}
        if self.measure.k is not None and self.measure.k <= self.y.size:
            shown.add(self.measure.k)
        return sorted(shown or ({1} if longest else set()))

    def _few(self) -> bool:
        """Whether the rows of a class are too few for intervals."""
        if self.problem.graded or self.groups is not None:
            return False
        return min(self.y.sum(), (~self.y).sum()) < _FEWEST_FOR_INTERVALS

    def _estimated(self) -> list[Estimate]:
        estimates = self._estimates_of(self.scores, random_state=self.seed)
        estimates.sort(key=lambda estimate: not self._is_requested(estimate))  # others keep order
        if self._few():
            return [replace(estimate, low=np.nan, high=np.nan) for estimate in estimates]
        return estimates

    def _estimates_of(self, scores: Vector, **settings: Any) -> list[Estimate]:
        """Estimates of the usual measures and the requested one, for these scores."""
        settings |= self._lists
        estimates = estimate_measures(self.y, scores, k=self._depths, **settings)
        if not any(map(self._is_requested, estimates)):
            estimates.append(estimate_measure(self.measure, self.y, scores, **settings))
        return estimates

    def _is_requested(self, estimate: Estimate) -> bool:
        return estimate.name == self.measure.title  # keys may differ: pauc@0.1, pauc@0.10

    def _chance_levels(self) -> dict[str, float]:
        """Value of a random order: by formula, or from random orders with groups or grades."""
        simple = self.groups is None and not self.problem.graded
        known = {}
        for estimate in self.estimates:
            measure = estimate.measure
            constant = measure.kind in ("auc", "wmw")
            constant |= measure.kind == "pauc" and self._is_requested(estimate)
            if measure.chance is not None and (simple or constant):
                known[estimate.key] = self._expected(measure)
        if len(known) == len(self.estimates):
            return known
        values: dict[str, list[float]] = {}
        rng = np.random.default_rng(self.seed)
        for order in rng.uniform(size=(_RANDOM_ORDERS, self.y.size)):
            for estimate in self._estimates_of(order, n_resamples=1):
                values.setdefault(estimate.key, []).append(estimate.value)
        return {key: float(np.mean(drawn)) for key, drawn in values.items()} | known

    def _expected(self, measure: Measure) -> float:
        """Expected value of a random order by formula: of all rows for the first k, otherwise the
        mean over the folds.
        """
        assert measure.chance is not None
        if measure.kind == "recall":
            return measure.chance(self.problem.y.size, 1)
        if measure.kind in ("precision", "auc", "wmw", "pauc"):
            return measure.chance(self.y.size, int(self.y.sum()))
        labels = [self.y[self.fold == number] for number in np.unique(self.fold)]
        both = [(y.size, int(y.sum())) for y in labels if 0 < y.sum() < y.size]
        return float(np.mean([measure.chance(*counts) for counts in both]))

    # --- Sentences ---

    def title(self) -> str:
        """Title of the requested measure with its depth."""
        return self.estimates[0].title if self.estimates else self.measure.title

    def phrase(self, depth: str = "") -> str:
        """The requested measure within a sentence."""
        phrase = self.measure.phrase
        return f"{'the ' * phrase.startswith('share')}{phrase} {depth}".rstrip()

    def sentences(self, ranker: Any) -> list[str]:
        """The result: the rows, the measure, the first rows, and the selection of a method."""
        problem, n = self.problem, self.problem.y.size
        name, labels = problem.source.name or "a table in memory", problem.labels
        what = f"{n:,} rows of {name} in {len(labels.classes)} grades of {problem.target}"
        if labels.positive is not None:
            positives = labels.classes[labels.positive]
            have = "has" if positives == 1 else "have"
            what = f"{n:,} rows of {name}, of which {positives:,} ({percent(positives / n)}) "
            what += f"{have} {problem.target} = {labels.positive},"
        within = "" if problem.n_groups is None else f" within {problem.n_groups:,} groups"
        if not self.estimates:
            first = f"{what} were ranked{within}; how well could not be measured."
            reason = [as_sentence(self._not_measured)] if self._not_measured else []
            return [capitalised(first), *reason]
        ranked = f"{what} were ranked{within} in {self.held.n_folds} folds, each row by a model "
        return [
            capitalised(f"{ranked}that was fitted without it."),
            self._main_sentence(),
            *self._first_rows_sentence(),
            *self._selection_sentences(ranker),
        ]

    def _main_sentence(self) -> str:
        main = self.estimates[0]
        chance = self.chance[main.key]
        span = "" if interval(main) == "–" else f" (95 % interval {interval(main)})"
        mean, meaning = "the mean of the folds", self.measure.meaning
        if self.groups is not None:
            mean = "the mean over folds of means over groups"
            meaning = meaning.replace(" rows hold", " rows of a group hold")
        value = (
            f"{capitalised(self.phrase(main.depth))} is {format_value(main.value)}{span}, {mean}"
        )
        return (
            f"{value}: {verdict(main, chance)} ({format_value(chance)}). That is, "
            f"{meaning.format(percent(main.value))}."
        )

    def depth_discussed(self) -> int:
        """Number of first rows that sentences are about."""
        usual = 100 if self.y.size >= 500 and self.groups is None else 10
        usual = usual if self.measure.k is None else self.measure.k
        return max([depth for depth in self._depths if depth <= usual], default=1)

    def _first_rows_sentence(self) -> list[str]:
        k = self.depth_discussed()
        precision = self.by_key.get(f"precision@{k}")
        if precision is None:
            return []
        span = interval(precision, lambda value: count(k * value))
        span = "" if span == "–" else f" (95 % interval {span})"
        number = count(k * precision.value)
        texts = {"0": "none is positive", "1": "about 1 is positive"}
        result = texts.get(number, f"about {number} are positive")
        result = "all are positive" if precision.value == 1.0 else result
        first = "the first row" if k == 1 else f"the first {k:,} rows"
        first += "" if self.groups is None else " of a group"
        chance = count(k * self.chance[precision.key])
        return [f"Of {first} {result}{span}; a random order would have about {chance}."]

    def _selection_sentences(self, ranker: Any) -> list[str]:
        """Which method was selected, whether more data would help, and which rows the values of the
        selection were measured on.
        """
        lines = [as_sentence(str(ranker.reason_))] if hasattr(ranker, "reason_") else []
        curve = getattr(ranker, "learning_curve_", None)
        if isinstance(curve, Mapping) and curve.get("sentence"):
            lines.append(as_sentence(str(curve["sentence"])))
        if lines and getattr(ranker, "best_score_", None) is not None:
            lines.append(
                f"The {self.phrase().removeprefix('the ')} of the selection, just above, is "
                "measured on rows that were used for the selection; "
                f"{format_value(self.estimates[0].value)} is measured on rows that were not."
            )
        if not self.held.choices or not hasattr(ranker, "best_method_"):
            return lines
        selected = str(ranker.best_method_)
        counts = Counter(method for method, _ in self.held.choices)
        if set(counts) == {selected}:
            return [*lines, f"Each fold selected its method separately; all selected {selected}."]
        listed = ", ".join(f"{method} in {number}" for method, number in counts.most_common())
        return [
            *lines,
            f"Each fold selected its method separately: {listed} of {len(self.held.choices)}. The "
            "measures are those of this procedure; the model that is described below and was "
            f"fitted on all rows is {selected}.",
        ]

    def warnings(self, largest_weight: str | None) -> list[str]:
        """Reasons to doubt the values, in addition to the problems of the data."""
        lines, n = list(self.held.problems), self.problem.y.size
        if 0 < self.y.size < n:
            missing = counted(n - self.y.size, "row")
            were, them = ("was", "it") if n - self.y.size == 1 else ("were", "them")
            lines.append(
                f"{missing} {were} in no fold that could be scored; no value includes {them}."
            )
        lines += self._tie_warnings()
        if self.estimates and self._few():
            smaller = min(int(self.y.sum()), int((~self.y).sum()))
            lines.append(
                f"The smaller class has {smaller} of the measured rows: too few for intervals, and "
                "other rows could give very different values."
            )
        if (
            not self.problem.graded
            and self.estimates
            and self.by_key["auc"].value >= _SUSPICIOUS_AUC
        ):
            which = ", first of all" if largest_weight is not None else ""
            which += f" {largest_weight}, which has the largest weight" if which else ""
            lines.append(
                "The ranking is (nearly) perfect, which is rare: check whether a column holds the "
                f"answer or was filled in after it was known{which}."
            )
        if self.estimates and self.estimates[0].low == self.estimates[0].high:
            lines.append(
                f"The interval of {self.phrase()} is a single point: resampled rows do not vary "
                "here, which is not certainty."
            )
        return lines + [f"While fitting: {line}" for line in self.held.fit_warnings]

    def _tie_warnings(self) -> list[str]:
        """Warnings on equal scores of many rows, for the first fold that has them."""
        lines: dict[str, str] = {}
        for number, scores in zip(np.unique(self.fold), self.held.by_model, strict=False):
            rows = self.held.fold == number
            for warning in data_warnings(None, self.problem.y[rows], scores=scores[rows]):
                if warning.kind in ("constant score", "tied scores"):
                    lines.setdefault(warning.kind, f"In fold {number + 1}: {warning.sentence}")
        return list(lines.values())

    # --- Tables ---

    def measure_table(self) -> list[dict[str, Any]]:
        """The measures, without those of the table of first rows."""
        return [
            {
                "name": estimate.title,
                "value": format_value(estimate.value),
                "interval": interval(estimate),
                "chance": format_value(self.chance[estimate.key]),
                "main": estimate is self.estimates[0],
            }
            for estimate in self.estimates
            if estimate is self.estimates[0] or estimate.measure.kind not in ("precision", "recall")
        ]

    def measure_note(self) -> str:
        """How the values were computed, and their range over the folds."""
        if not self.estimates:
            return "Nothing was measured: no row could be held out."
        each = "each" if self.groups is None else "each, and there over groups"
        note = f"Each value is the mean over the {self.held.n_folds} folds, measured in {each}: "
        note += "scores of different models are not comparable."
        if self.measure.k is not None and self.groups is None:
            note += f" The first {self.measure.k:,} of {self.problem.y.size:,} rows are the same "
            note += "share of the rows of a fold, the last of which counts in part."
        values = self._values_by_fold()
        if len(values) > 1:
            low, high = format_value(min(values)), format_value(max(values))
            note += f" In single folds, {self.measure.title} is between {low} and {high}."
        if not np.isfinite(self.estimates[0].low):
            return f"{note} There are no intervals, because there are too few rows."
        over = "rows" if self.groups is None else "groups"
        return (
            f"{note} Intervals are at 95 %, from resampled {over}, for these models; they do not "
            "include the variation due to the training rows. A dash: resampled rows do not vary, "
            "or are too few, which is not certainty."
        )

    def _values_by_fold(self) -> list[float]:
        """The requested measure in each fold that has rows of two classes."""
        values = []
        y = self.y - min(0.0, self.problem.y.min())  # grades count from the lowest of all rows
        for number in np.unique(self.fold):
            rows = self.fold == number
            settings: dict[str, Any] = {"list_rows": self.problem.y.size, "n_resamples": 1}
            settings["qid"] = None if self.groups is None else self.groups[rows]
            try:
                estimate = estimate_measure(self.measure, y[rows], self.scores[rows], **settings)
            except ValueError:  # rows of one class, or no group of two
                continue
            values.append(estimate.value)
        return values

    def first_rows_table(self) -> list[dict[str, str]]:
        """Positive rows among the first k, for some k."""
        table = []
        for k in self._depths:
            precision, recall = (self.by_key.get(f"{kind}@{k}") for kind in ("precision", "recall"))
            if precision is None or recall is None:
                continue
            row = {"k": f"{k:,}", "positives": count(k * precision.value)}
            row["interval"] = interval(precision, lambda value, k=k: count(k * value))  # type: ignore[misc]
            row["chance"] = count(k * self.chance[precision.key])
            table.append(row | {"share": percent(recall.value)})
        return table

    def data_table(self) -> list[tuple[str, str]]:
        """Rows, classes, groups and columns."""
        problem, n = self.problem, self.problem.y.size
        classes = problem.labels.classes.items()
        listed = "; ".join(f"{name}: {size:,} ({percent(size / n)})" for name, size in classes)
        table = [("Rows", f"{n:,}"), (f"Classes of {problem.target}", listed)]
        if problem.n_groups is not None:
            table.append(("Groups", f"{problem.n_groups:,}"))
        if problem.column_kinds:
            table.append(("Columns used", f"{len(problem.column_kinds):,}"))
        return table
