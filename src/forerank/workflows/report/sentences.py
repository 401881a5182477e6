"""The measure a report is about, figures as text, and the sentences it opens with."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from forerank.metrics.evaluation import Measure
from forerank.metrics.evaluation import shown as figure
from forerank.metrics.registry import FOR_GRADES, measure_named
from forerank.metrics.registry import Measure as Definition

__all__ = [
    "Headline",
    "count",
    "figure",
    "headline_of",
    "interval",
    "judged",
    "percent",
    "unbroken",
]

_NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Headline:
    """The measure that was asked for.

    Attributes
    ----------
    name : str
        As `forerank.metrics.evaluation.measure` calls it, where it has it.
    definition : forerank.metrics.registry.Measure
    words : str
        The value in words, with a gap for it.
    chance : float or None
        Its value for an order drawn at random, where there is a formula for it.
    """

    name: str
    definition: Definition
    words: str
    chance: float | None = None

    @property
    def place(self) -> int | None:
        """The number of rows that it looks at."""
        return self.definition.place

    def meaning(self, *, grouped: bool) -> str:
        """The value in words, with a gap for it; of a group, where rows are ranked within groups."""
        return self.words.replace(" rows hold", " rows of a group hold") if grouped else self.words

    def spoken(self, depth: str = "") -> str:
        """The name as it stands in a sentence, with the depth that it looks to."""
        what = (
            f"the share of {self.name}"
            if self.name in ("pairs in order", "positives at the top")
            else self.name
        )
        return f"{what} {depth}".rstrip()


def headline_of(metric: str, *, graded: bool) -> Headline:
    """The measure by its name: auc, ap, pos_at_top, ndcg@k, pauc@fpr or recall@k."""
    definition = measure_named(metric)
    kind, place = definition.kind, definition.place
    if graded and kind not in FOR_GRADES:
        raise ValueError(
            f"metric={metric!r} is for two classes, and the labels are grades. Choose wmw (the share of pairs in "
            "order) or ndcg@k, or name the positive label."
        )
    if kind == "ndcg":
        meaning = "the order is worth {} of the best possible one"
        return Headline(f"NDCG at {place}", definition, meaning)
    if kind == "recall":
        return Headline(
            f"recall at {place}",
            definition,
            f"the first {place:,} rows hold {{}} of all positive ones",
        )
    if kind == "pauc":
        top = float(definition.parameter or 0.0)
        meaning = f"up to a false positive rate of {top:g}, {{}} of the positive rows are found on average"
        return Headline(f"partial AUC (FPR to {top:g})", definition, meaning, chance=top / 2)
    if kind == "ap":
        meaning = "where a positive row stands, {} of the rows down to it are positive on average"
        return Headline("average precision", definition, meaning)
    if kind == "pos_at_top":
        meaning = "{} of the positive rows stand ahead of the first that is not"
        return Headline("positives at the top", definition, meaning)
    if graded:
        meaning = "a row of a higher grade stands ahead of one of a lower in {} of all such pairs"
        return Headline("pairs in order", definition, meaning)
    meaning = "a row that is positive stands ahead of one that is not in {} of all such pairs"
    return Headline("AUC", definition, meaning)


def percent(value: float) -> str:
    """A share in percent; all and none only where it is all or none."""
    digits = 0
    while 0.0 < value < 1.0 and digits < 6 and float(f"{100 * value:.{digits}f}") in (0.0, 100.0):
        digits += 1
    return f"{100 * value:.{digits}f} %"


def count(value: float) -> str:
    """A number of rows that may be a mean."""
    if value >= 10.0 or abs(value - round(value)) < 1e-9:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 0.1 else f"{value:.1g}"


def interval(measure: Measure, shown: Callable[[float], str] = figure) -> str:
    """From low to high; a dash where there is none, or where its ends read the same, which is not
    certainty.
    """
    if not np.isfinite([measure.low, measure.high]).all() or shown(measure.low) == shown(
        measure.high
    ):
        return "–"
    return f"{shown(measure.low)} to {shown(measure.high)}"


def judged(measure: Measure, chance: float) -> str:
    """Whether a measure differs from that of an order drawn at random."""
    if not np.isfinite([measure.low, measure.high]).all():
        return "too few rows to say whether that differs from a random order"
    if measure.low > chance:
        return "better than a random order"
    if measure.high < chance:
        return "worse than a random order"
    return "not significantly different from a random order"


def unbroken(text: str) -> str:
    """No line ends between a number and what belongs to it: its unit, its sign, or the word before
    it.
    """
    text = re.sub(r"(?<=\d) (?=%|(?:rows?|folds?|groups?|grades?|seconds?|s)\b)", _NO_BREAK, text)
    text = re.sub(r" ([±=<]) (?=[-+.\d])", rf"{_NO_BREAK}\1{_NO_BREAK}", text)
    return re.sub(r"\b(at|first|about|to) (?=[-+]?\d)", rf"\1{_NO_BREAK}", text)
