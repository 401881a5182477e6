"""Numbers and sentences of a report as text."""

import re
from collections.abc import Callable

import numpy as np

from forerank.metrics.estimates import Estimate, format_value

__all__ = ["as_sentence", "capitalised", "count", "interval", "percent", "unbroken", "verdict"]

_NO_BREAK = "\N{NO-BREAK SPACE}"


def percent(value: float) -> str:
    """A share in percent, with digits enough that only 0 and 1 become 0 % and 100 %."""
    digits = 0
    while 0.0 < value < 1.0 and digits < 6 and float(f"{100 * value:.{digits}f}") in (0.0, 100.0):
        digits += 1
    return f"{100 * value:.{digits}f} %"


def count(value: float) -> str:
    """A number of rows that may be a mean."""
    if value >= 10.0 or abs(value - round(value)) < 1e-9:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 0.1 else f"{value:.1g}"


def interval(estimate: Estimate, text: Callable[[float], str] = format_value) -> str:
    """Confidence interval as "low to high"; a dash if there is none, or if it has no width."""
    if not np.isfinite([estimate.low, estimate.high]).all():
        return "–"
    low, high = text(estimate.low), text(estimate.high)
    return f"{low} to {high}" if low != high else "–"


def verdict(estimate: Estimate, chance: float) -> str:
    """Whether a value differs significantly from that of a random order."""
    if not np.isfinite([estimate.low, estimate.high]).all():
        return "too few rows for a comparison with a random order"
    if estimate.low > chance:
        return "better than a random order"
    if estimate.high < chance:
        return "worse than a random order"
    return "not significantly different from a random order"


def unbroken(text: str) -> str:
    """Text without line breaks between a number and its unit, sign or preceding word."""
    text = re.sub(r"(?<=\d) (?=%|(?:rows?|folds?|groups?|grades?|seconds?|s)\b)", _NO_BREAK, text)
    text = re.sub(r" ([±=<]) (?=[-+.\d])", rf"{_NO_BREAK}\1{_NO_BREAK}", text)
    return re.sub(r"\b(at|first|about|to) (?=[-+]?\d)", rf"\1{_NO_BREAK}", text)


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def as_sentence(text: str) -> str:
    """Text with a capital letter and a full stop."""
    text = capitalised(text.strip())
    return text if not text or text.endswith((".", "!", "?")) else text + "."
