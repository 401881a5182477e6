"""The registry of measures: key, function, title, phrase, meaning and chance level of each.

A key is a kind and, after "@", its parameter: "ap", "recall@50", "pauc@0.05". `get_measure` knows
all of them, `measure_named` those that a ranker can be selected by.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from forerank.metrics.pairs import roc_auc, wmw
from forerank.metrics.thresholds import average_precision, partial_auc, pos_at_top, tpr_at_fpr
from forerank.metrics.top_k import Depth, ndcg, precision_at_k, recall_at_k

__all__ = [
    "KINDS",
    "Measure",
    "describe_depth",
    "get_measure",
    "measure_for_labels",
    "measure_named",
    "measure_phrase",
    "metric_function",
    "scaled_depth",
    "takes_grades",
]


@dataclass(frozen=True)
class Measure:
    """The definition of a measure; higher is better.

    `chance(n_rows, n_positive)` is the expected value of a random order of that many rows; None if
    there is no formula.
    """

    key: str  # such as "recall@50"
    # function(y_true, y_score, *, sample_weight=None, qid=None)
    function: Callable[..., float] = field(compare=False)
    title: str  # for heads and tables, such as "recall at 50"
    phrase: str  # for sentences: "mean {phrase}", "the highest {phrase}"
    meaning: str  # a clause with a gap for the value in percent
    chance: Callable[[int, int], float] | None = field(compare=False)
    k: int | None  # number of rows from the top that count; None for a measure of all rows
    parameter: float | None  # k, or a false positive rate
    graded: bool  # whether it takes more than two classes

    @property
    def kind(self) -> str:
        return self.key.partition("@")[0]

    def for_rows(self, n_rows: int, list_rows: int, *, grouped: bool = False) -> "Measure":
        """The measure of a list of `list_rows` rows, estimated on `n_rows` of them, such as a fold.

        The first k of the list are the share k / list_rows of it, and the same share of the rows
        counts: k n_rows / list_rows of them, the last one in part. Within groups, k counts rows of
        a group. Title and phrase name the depth.
        """
        if self.k is None:
            return self
        depth = describe_depth(self.k, None if grouped else list_rows)
        named = replace(self, title=f"{self.title} {depth}", phrase=f"{self.phrase} {depth}")
        if grouped:
            return named
        rows = Depth(scaled_depth(self.k, n_rows, list_rows))
        return replace(named, function=partial(self.function, k=rows))


def scaled_depth(k: float, n_rows: int, list_rows: int) -> float:
    """Number of the `n_rows` rows that is the same share of them as k is of `list_rows`."""
    return n_rows * min(1.0, k / list_rows)


def describe_depth(k: int, list_rows: int | None) -> str:
    """Description of the first k rows of a list, such as "of 171 rows (first 29.2 %)"; of a group
    where `list_rows` is None.
    """
    if list_rows is None:
        return "of a group"
    rows = f"of {list_rows:,} row{'s' * (list_rows != 1)}"
    return f"{rows} (first {100 * k / list_rows:.3g} %)" if k < list_rows else f"{rows} (all)"


# --- Expected values of a random order of n rows, p of them positive ---


def _chance_half(parameter: None, n: int, p: int) -> float:
    return 0.5


def _chance_average_precision(parameter: None, n: int, p: int) -> float:
    """The mean over ranks i of the expected precision at a positive row of rank i: of the i - 1
    rows above it, (i - 1) (p - 1) / (n - 1) are expected to be positive.
    """
    others = (p - 1) / (n - 1)
    return float(np.mean((1 + np.arange(n) * others) / (1 + np.arange(n))))


def _chance_partial_auc(fpr: float, n: int, p: int) -> float:
    return fpr / 2


def _chance_tpr(fpr: float | None, n: int, p: int) -> float:
    """With m of N negatives accepted, a positive is accepted with probability (m + 1) / (N + 1)."""
    return (int((fpr or 0.0) * (n - p)) + 1) / (n - p + 1)


def _chance_precision(k: int, n: int, p: int) -> float:
    return p / n


def _chance_recall(k: int, n: int, p: int) -> float:
    return min(1.0, k / n)


# --- The measures ---


@dataclass(frozen=True)
class _Kind:
    """Measures that differ by a parameter only: "k" or "fpr", whose value replaces {p} in texts.

    `chance` takes the parameter, the number of rows and that of positive rows. `selects` tells
    whether a ranker can be selected by the measure (`metric=` of `Ranker` and the workflows).
    """

    function: Callable[..., float]
    title: str
    chance: Callable[..., float] | None = None
    parameter: str | None = None
    phrase: str = ""
    graded: bool = False
    selects: bool = True

    def measure(self, key: str, value: Any = None) -> Measure:
        function, k = self.function, value if self.parameter == "k" else None
        if function is partial_auc:
            function = partial(function, standardize="range", fpr_range=(0.0, value))
        elif value is not None:
            function = partial(function, **{str(self.parameter): value})
        title = self.title.replace("{p}", f"{value}" if k else f"{value or 0.0:g}")
        meaning = _MEANINGS[key.partition("@")[0]]
        meaning = meaning.replace("{p}", f"{k:,}" if k else f"{value or 0.0:g}")
        chance = None if self.chance is None else partial(self.chance, value)
        texts = title, self.phrase or title, meaning
        return Measure(key, function, *texts, chance, k, value, self.graded)


_SHARE_AT_TOP, _SHARE_IN_ORDER = "share of positives at the top", "share of pairs in order"
KINDS: dict[str, _Kind] = {
    "auc": _Kind(roc_auc, "AUC", _chance_half),
    "ap": _Kind(average_precision, "average precision", _chance_average_precision),
    "pos_at_top": _Kind(pos_at_top, "positives at the top", _chance_tpr, phrase=_SHARE_AT_TOP),
    "wmw": _Kind(wmw, "pairs in order", _chance_half, phrase=_SHARE_IN_ORDER, graded=True),
    "ndcg": _Kind(ndcg, "NDCG at {p}", None, "k", graded=True),
    "pauc": _Kind(partial_auc, "partial AUC (FPR to {p})", _chance_partial_auc, "fpr"),
    "recall": _Kind(recall_at_k, "recall at {p}", _chance_recall, "k"),
    "precision": _Kind(precision_at_k, "precision at {p}", _chance_precision, "k", selects=False),
    "tpr": _Kind(tpr_at_fpr, "TPR at FPR {p}", _chance_tpr, "fpr", selects=False),
}
_FULL_NDCG = _Kind(ndcg, "NDCG", graded=True)
_MEANINGS = {
    "auc": "a positive row is ranked above a negative one in {} of all such pairs",
    "ap": "of the rows ranked down to a positive one, {} are positive on average",
    "pos_at_top": "{} of the positive rows are ranked above every negative one",
    "wmw": "a row of a higher grade is ranked above one of a lower grade in {} of all such pairs",
    "ndcg": "the order is worth {} of the best possible one",
    "pauc": "up to a false positive rate of {p}, {} of the positive rows are found on average",
    "recall": "the first {p} rows hold {} of all positive ones",
    "precision": "{} of the first {p} rows are positive",
    "tpr": "at a false positive rate of {p}, {} of the positive rows are found",
}
# Other keys by which a measure is known: mean average precision is the mean over groups.
_ALIASES = {"map": "ap"}


def get_measure(key: str) -> Measure:
    """The measure with this key: one of `measure_named`, "precision@k", "tpr@fpr" or "ndcg".

    Examples
    --------
    >>> get_measure("precision@10").title
    'precision at 10'
    """
    key = _ALIASES.get(key, key)
    return _FULL_NDCG.measure(key) if key == "ndcg" else _made(key, [*KINDS])


def measure_named(metric: Any) -> Measure:
    """The measure with this key, one that a ranker can be selected by.

    Examples
    --------
    >>> measure_named("recall@50").title
    'recall at 50'
    """
    return _made(metric, [kind for kind, entry in KINDS.items() if entry.selects])


def _made(metric: Any, kinds: list[str]) -> Measure:
    parameters = {kind: KINDS[kind].parameter for kind in kinds}
    keys = [f'"{kind}@{name}"' if name else f'"{kind}"' for kind, name in parameters.items()]
    shown = f'one of {", ".join(keys)}, such as "recall@50"'
    if not isinstance(metric, str) or metric.partition("@")[0] not in kinds:
        raise ValueError(f"metric must be {shown}; got {metric!r}.")
    kind, _, given = metric.partition("@")
    entry, parameter = KINDS[kind], KINDS[kind].parameter
    if parameter is None:
        if given:
            raise ValueError(f"metric={metric!r}: {kind} does not take a parameter.")
        return entry.measure(metric)
    try:
        value = float(given) if parameter == "fpr" else int(given)
    except ValueError:
        raise ValueError(f"metric={metric!r}: give {kind}@{parameter}, {shown}.") from None
    if parameter == "fpr" and not 0.0 < value < 1.0:
        raise ValueError(
            f"metric={metric!r}: give a false positive rate between 0 and 1; up to 1 it is the AUC."
        )
    if parameter == "k" and value < 1:
        raise ValueError(f"metric={metric!r}: k is a number of rows, at least 1.")
    return entry.measure(metric, value)


def takes_grades(metric: Any) -> bool:
    """Whether a measure takes more than two classes; False for an unknown key."""
    kind = str(metric).partition("@")[0]
    return kind in KINDS and KINDS[kind].graded


def measure_for_labels(metric: str, *, graded: bool) -> Measure:
    """The measure with this key for classes or grades; "auc" of grades is "wmw", the same measure.

    ValueError where a measure of two classes is requested for grades.
    """
    measure = measure_named("wmw" if graded and metric == "auc" else metric)
    if graded and not measure.graded:
        raise ValueError(
            f"metric={metric!r} is for two classes, and the labels are grades. Choose wmw (the "
            "share of pairs in order) or ndcg@k, or pass the positive label."
        )
    return measure


def measure_phrase(metric: str) -> str:
    """The phrase of a measure for sentences, such as "AUC" for "auc"; other texts unchanged."""
    try:
        return get_measure(metric).phrase
    except ValueError:
        return metric


def metric_function(metric: str) -> Callable[..., float]:
    """The function f(y_true, y_score, *, sample_weight=None, qid=None) of a measure; higher is
    better.

    Examples
    --------
    >>> metric_function("recall@2")([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0])
    0.5
    """
    return measure_named(metric).function
