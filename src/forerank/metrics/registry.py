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
    "measure_named",
    "measure_phrase",
    "metric_function",
    "scaled_depth",
    "takes_grades",
]


@dataclass(frozen=True)
class Measure:
    """The definition of a measure; higher is better.

    Attributes
    ----------
    key : str
        Such as "recall@50".
    function : callable
        ``function(y_true, y_score, *, sample_weight=None, qid=None)``.
    title : str
        For heads and tables, such as "recall at 50".
    phrase : str
        For sentences: "mean {phrase}", "the highest {phrase}". By default the title.
    meaning : str
        A clause with a gap for the value in percent.
    chance : callable or None
        ``chance(n_rows, n_positive)``, the expected value of a random order of that many rows;
        None if there is no formula.
    parameter : float or None
        k, a number of rows, or a false positive rate.
    graded : bool
        Whether it takes more than two classes.
    """

    key: str
    function: Callable[..., float] = field(compare=False)
    title: str
    phrase: str = ""
    meaning: str = ""
    chance: Callable[[int, int], float] | None = field(default=None, compare=False)
    parameter: float | None = None
    graded: bool = False

    def __post_init__(self) -> None:
        if not self.phrase:
            object.__setattr__(self, "phrase", self.title)

    @property
    def kind(self) -> str:
        return self.key.partition("@")[0]

    @property
    def k(self) -> int | None:
        """Number of rows from the top that count; None for a measure of all rows."""
        counts_rows = self.kind in KINDS and KINDS[self.kind].parameter == "k"
        return int(self.parameter) if counts_rows and self.parameter is not None else None

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


def _chance_constant(n: int, p: int, *, value: float) -> float:
    return value


def _chance_average_precision(n: int, p: int) -> float:
    """The mean over ranks i of the expected precision at a positive row of rank i: of the i - 1
    rows above it, (i - 1) (p - 1) / (n - 1) are expected to be positive.
    """
    others = (p - 1) / (n - 1)
    return float(np.mean((1 + np.arange(n) * others) / (1 + np.arange(n))))


def _chance_tpr(n: int, p: int, *, fpr: float = 0.0) -> float:
    """With m of N negatives accepted, a positive is accepted with probability (m + 1) / (N + 1)."""
    return (int(fpr * (n - p)) + 1) / (n - p + 1)


def _chance_precision(n: int, p: int) -> float:
    return p / n


def _chance_recall(n: int, p: int, *, k: int) -> float:
    return min(1.0, k / n)


# --- The measures ---


def _ndcg(key: str, k: float | None) -> Measure:
    meaning = "the order is worth {} of the best possible one"
    if k is None:
        return Measure(key, ndcg, "NDCG", meaning=meaning, graded=True)
    function = partial(ndcg, k=int(k))
    return Measure(key, function, f"NDCG at {k}", "", meaning, None, k, graded=True)


def _pauc(key: str, fpr: float) -> Measure:
    function = partial(partial_auc, standardize="range", fpr_range=(0.0, fpr))
    meaning = (
        f"up to a false positive rate of {fpr:g}, {{}} of the positive rows are found on average"
    )
    chance = partial(_chance_constant, value=fpr / 2)
    return Measure(key, function, f"partial AUC (FPR to {fpr:g})", "", meaning, chance, fpr)


def _tpr(key: str, fpr: float) -> Measure:
    function = partial(tpr_at_fpr, fpr=fpr)
    meaning = f"at a false positive rate of {fpr:g}, {{}} of the positive rows are found"
    chance = partial(_chance_tpr, fpr=fpr)
    return Measure(key, function, f"TPR at FPR {fpr:g}", "", meaning, chance, fpr)


def _precision(key: str, k: float) -> Measure:
    function = partial(precision_at_k, k=int(k))
    meaning = f"{{}} of the first {k:,} rows are positive"
    return Measure(key, function, f"precision at {k}", "", meaning, _chance_precision, k)


def _recall(key: str, k: float) -> Measure:
    function = partial(recall_at_k, k=int(k))
    meaning = f"the first {k:,} rows hold {{}} of all positive ones"
    chance = partial(_chance_recall, k=int(k))
    return Measure(key, function, f"recall at {k}", "", meaning, chance, k)


_HALF = partial(_chance_constant, value=0.5)
_AUC = Measure(
    "auc",
    roc_auc,
    "AUC",
    meaning="a positive row is ranked above a negative one in {} of all such pairs",
    chance=_HALF,
)
_AP = Measure(
    "ap",
    average_precision,
    "average precision",
    meaning="of the rows ranked down to a positive one, {} are positive on average",
    chance=_chance_average_precision,
)
_POS_AT_TOP = Measure(
    "pos_at_top",
    pos_at_top,
    "positives at the top",
    "share of positives at the top",
    "{} of the positive rows are ranked above every negative one",
    _chance_tpr,
)
_WMW = Measure(
    "wmw",
    wmw,
    "pairs in order",
    "share of pairs in order",
    "a row of a higher grade is ranked above one of a lower grade in {} of all such pairs",
    _HALF,
    graded=True,
)


@dataclass(frozen=True)
class _Kind:
    """`measure` is a Measure or, with a parameter, a function of key and parameter that makes one.

    `selects` says whether a ranker can be selected by it (`metric=` of `Ranker` and the workflows).
    """

    measure: Any
    parameter: str | None = None
    graded: bool = False
    selects: bool = True


KINDS: dict[str, _Kind] = {
    "auc": _Kind(_AUC),
    "ap": _Kind(_AP),
    "pos_at_top": _Kind(_POS_AT_TOP),
    "wmw": _Kind(_WMW, graded=True),
    "ndcg": _Kind(_ndcg, "k", graded=True),
    "pauc": _Kind(_pauc, "fpr"),
    "recall": _Kind(_recall, "k"),
    "precision": _Kind(_precision, "k", selects=False),
    "tpr": _Kind(_tpr, "fpr", selects=False),
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
    return _ndcg(key, None) if key == "ndcg" else _made(key, [*KINDS])


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
    entry = KINDS[kind]
    if entry.parameter is None:
        if given:
            raise ValueError(f"metric={metric!r}: {kind} takes no parameter.")
        return entry.measure
    try:
        value = float(given) if entry.parameter == "fpr" else int(given)
    except ValueError:
        raise ValueError(f"metric={metric!r}: give {kind}@{entry.parameter}, {shown}.") from None
    if entry.parameter == "fpr" and not 0.0 < value < 1.0:
        raise ValueError(
            f"metric={metric!r}: give a false positive rate between 0 and 1; up to 1 it is the AUC."
        )
    if entry.parameter == "k" and value < 1:
        raise ValueError(f"metric={metric!r}: k is a number of rows, at least 1.")
    return entry.measure(metric, value)


def takes_grades(metric: Any) -> bool:
    """Whether a measure takes more than two classes; False for what is not a measure."""
    kind = str(metric).partition("@")[0]
    return kind in KINDS and KINDS[kind].graded


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
