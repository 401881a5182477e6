"""The registry of measures: each by its key, such as "ap" or "recall@50", with its function and its
title.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from forerank.metrics import measures as metrics

__all__ = [
    "FOR_GRADES",
    "Measure",
    "depth_on_part",
    "depth_words",
    "measure_named",
    "measure_title",
    "metric_function",
]


@dataclass(frozen=True)
class Measure:
    """A measure by its name: ``function(y_true, y_score, *, sample_weight=None, qid=None)``, higher
    is better.
    """

    name: str
    function: Callable[..., float]
    title: str
    parameter: float | None = None

    @property
    def kind(self) -> str:
        return self.name.partition("@")[0]

    @property
    def place(self) -> int | None:
        """k, where the measure looks at the first k rows of a list."""
        return (
            int(self.parameter)
            if self.kind in ("recall", "ndcg") and self.parameter is not None
            else None
        )

    def on_part(self, n_part: int, n_all: int, *, grouped: bool = False) -> "Measure":
        """The measure of a list of `n_all` rows, estimated on `n_part` of them: a fold, or rows
        kept aside.

        The first k rows of the list are the share k / n_all of it, and the same share of the part
        is looked at: k n_part / n_all rows, the last of which may count in part. Within groups each
        group is a list of its own, and k counts its rows. The title says the depth.
        """
        if self.place is None:
            return self
        function, title = (
            getattr(metrics, _MEASURES[self.kind][0]),
            f"{_MEASURES[self.kind][2]} at {self.place}",
        )
        if grouped:
            return replace(self, title=f"{title} of a group")
        depth = metrics.Depth(depth_on_part(self.place, n_part, n_all))
        return replace(
            self,
            function=partial(function, k=depth),
            title=f"{title} {depth_words(self.place, n_all)}",
        )


def depth_on_part(k: float, n_part: int, n_all: int) -> float:
    """How many of `n_part` rows stand for the first k of `n_all`: as large a share, at most all."""
    return n_part * min(1.0, k / n_all)


def depth_words(k: int, n_all: int) -> str:
    """What the first k rows of a list are, such as "of 171 rows (first 29.2 %)"."""
    rows = f"of {n_all:,} row{'s' * (n_all != 1)}"
    return f"{rows} (first {100 * k / n_all:.3g} %)" if k < n_all else f"{rows} (all)"


_MEASURES: dict[str, tuple[str, str | None, str]] = {
    "auc": ("roc_auc", None, "AUC"),
    "ap": ("average_precision", None, "average precision"),
    "pos_at_top": ("pos_at_top", None, "share of positives at the top"),
    "wmw": ("wmw", None, "share of pairs in order"),
    "ndcg": ("ndcg", "k", "NDCG"),
    "pauc": ("partial_auc", "fpr", "partial AUC"),
    "recall": ("recall_at_k", "k", "recall"),
}


FOR_GRADES = ("wmw", "ndcg")


def measure_named(metric: Any) -> Measure:
    """A measure by its name, such as "ap" or "recall@50"."""
    shown = 'one of "auc", "ap", "pos_at_top", "wmw", "ndcg@k", "pauc@fpr", "recall@k", such as "recall@50"'
    if not isinstance(metric, str) or metric.partition("@")[0] not in _MEASURES:
        raise ValueError(f"metric must be {shown}; got {metric!r}.")
    kind, _, given = metric.partition("@")
    name, parameter, title = _MEASURES[kind]
    function: Callable[..., float] = getattr(metrics, name)
    if parameter is None:
        if given:
            raise ValueError(f"metric={metric!r}: {kind} takes no parameter.")
        return Measure(metric, function, title)
    try:
        value = float(given) if parameter == "fpr" else int(given)
    except ValueError:
        raise ValueError(f"metric={metric!r}: give {kind}@{parameter}, {shown}.") from None
    if parameter == "fpr":
        if not 0.0 < value < 1.0:
            raise ValueError(
                f"metric={metric!r}: give a false positive rate between 0 and 1; up to 1 it is the AUC."
            )
        return Measure(
            metric,
            partial(function, standardize="range", fpr_range=(0.0, value)),
            f"{title} (FPR to {value:g})",
            value,
        )
    if value < 1:
        raise ValueError(f"metric={metric!r}: k is a number of rows, at least 1.")
    return Measure(metric, partial(function, k=int(value)), f"{title} at {value}", value)


def measure_title(metric: str) -> str:
    """The name of a measure for people, such as AUC for "auc"; one that is not known keeps its
    name.
    """
    try:
        return measure_named(metric).title
    except ValueError:
        return metric


def metric_function(metric: str) -> Callable[..., float]:
    """The function f(y_true, y_score, *, sample_weight=None, qid=None) behind a name; higher is
    better.

    Examples
    --------
    >>> metric_function("recall@2")([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0])
    0.5
    """
    return measure_named(metric).function
