"""The measure a report is about, figures as text, and the sentences it opens with."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from forerank.metrics.estimates import Estimate
from forerank.metrics.estimates import format_value as figure
from forerank.metrics.registry import Measure, get_measure, measure_named

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
    """The measure that a report is about."""

    definition: Measure

    @property
    def name(self) -> str:
        return self.definition.title

    @property
    def place(self) -> int | None:
        """The number of rows that it looks at."""
        return self.definition.k

    def meaning(self, *, grouped: bool) -> str:
        """The value in words, with a gap for it; of a group, where rows are ranked within groups."""
        text = self.definition.meaning
        return text.replace(" rows hold", " rows of a group hold") if grouped else text

    def spoken(self, depth: str = "") -> str:
        """The name as it stands in a sentence, with the depth that it looks to."""
        phrase = self.definition.phrase
        return f"{'the ' * phrase.startswith('share')}{phrase} {depth}".rstrip()


def headline_of(metric: str, *, graded: bool) -> Headline:
    """The measure by its key; AUC and the share of pairs in order are one, and named by the labels."""
    definition = measure_named(metric)
    if graded and not definition.graded:
        raise ValueError(
            f"metric={metric!r} is for two classes, and the labels are grades. Choose wmw (the share of pairs in "
            "order) or ndcg@k, or name the positive label."
        )
    return Headline(get_measure("auc") if metric == "wmw" and not graded else definition)


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


def interval(measure: Estimate, shown: Callable[[float], str] = figure) -> str:
    """From low to high; a dash where there is none, or where its ends read the same, which is not
    certainty.
    """
    if not np.isfinite([measure.low, measure.high]).all() or shown(measure.low) == shown(
        measure.high
    ):
        return "–"
    return f"{shown(measure.low)} to {shown(measure.high)}"


def judged(measure: Estimate, chance: float) -> str:
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
