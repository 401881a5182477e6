"""The methods that `Ranker` tries for each measure, and maps of columns, by their names."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import scipy.sparse as sp
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from forerank.estimators.average_precision import MAPRanker
from forerank.estimators.linear import PairwiseRanker, PointwiseRanker
from forerank.estimators.partial_auc import PartialAUCRanker
from forerank.estimators.quadratic_features import QuadraticFeatures
from forerank.estimators.top_push import TopPush, TopRanker
from forerank.metrics.registry import measure_named

__all__ = [
    "MAPS",
    "METHODS",
    "fitted_scaler",
    "method_names",
    "named_maps",
]

# --- Methods ---


@dataclass(frozen=True)
class Method:
    """A family of rankers with one open parameter, alpha; `make` is given the parameter of the
    measure.
    """

    make: Callable[[float | None], Any]
    menus: tuple[str, ...]  # the measures for which it is tried


def _pairs(loss: str) -> Callable[[float | None], Any]:
    return lambda parameter: PairwiseRanker(loss)


def _rows(loss: str) -> Callable[[float | None], Any]:
    return lambda parameter: PointwiseRanker(loss)


def _top(share: float) -> Callable[[float | None], Any]:
    return lambda parameter: TopRanker(at=share)


# In the order in which they are tried: the first one is what the others have to beat.
METHODS = {
    "rows, logistic": Method(
        _rows("logistic"), ("auc", "ap", "pos_at_top", "wmw", "ndcg", "pauc", "recall")
    ),
    "pairs, logistic": Method(
        _pairs("logistic"), ("auc", "ap", "pos_at_top", "wmw", "ndcg", "pauc", "recall")
    ),
    "pairs, squared hinge": Method(_pairs("squared_hinge"), ("auc", "wmw", "ndcg")),
    "rows, squared hinge": Method(
        _rows("squared_hinge"), ("auc", "ap", "pos_at_top", "pauc", "recall")
    ),
    "rows, exponential": Method(_rows("exponential"), ("pos_at_top",)),
    "top 1 %, squared hinge": Method(_top(0.01), ("pos_at_top",)),
    "top, squared hinge": Method(lambda parameter: TopPush(), ("pos_at_top",)),
    "top share, squared hinge": Method(
        lambda parameter: TopRanker(at=parameter or 0.05), ("pauc",)
    ),
    "top 20 %, squared hinge": Method(_top(0.2), ()),
    "top 5 %, squared hinge": Method(_top(0.05), ()),
    "pairs, exponential": Method(_pairs("exponential"), ()),
    "pairs, hinge": Method(_pairs("hinge"), ()),
    "partial AUC, hinge": Method(
        lambda parameter: PartialAUCRanker(fpr_range=(0.0, parameter or 0.1)), ()
    ),
    "average precision, hinge": Method(lambda parameter: MAPRanker(), ()),
}
MAPS: dict[str, Callable[[int], Any]] = {
    "nystroem": lambda seed: Nystroem(n_components=300, random_state=seed),
    "fourier": lambda seed: RBFSampler(n_components=500, gamma="scale", random_state=seed),
    "quadratic": lambda seed: QuadraticFeatures(),
}


def method_names(metric: str | None = None) -> list[str]:
    """The methods that `Ranker` tries for a measure, or all that it knows.

    Examples
    --------
    >>> method_names("auc")
    ['rows, logistic', 'pairs, logistic', 'pairs, squared hinge', 'rows, squared hinge']
    """
    if metric is None:
        return list(METHODS)
    kind = measure_named(metric).kind
    return [name for name, method in METHODS.items() if kind in method.menus]


def fitted_scaler(scale: bool, X: Any, weight: Any) -> Any:
    """To unit variance, or sparse columns to a largest size of 1; None where nothing is to be
    scaled.

    Rows of no weight have no say.
    """
    if not scale:
        return None
    if sp.issparse(X):
        return MaxAbsScaler().fit(X if weight is None else X[weight > 0.0])
    return StandardScaler().fit(X, sample_weight=weight)


def named_maps(maps: Any, seed: int) -> dict[str, Any]:
    """The maps that are to be tried, each under a name of its own."""
    found: dict[str, Any] = {}
    for each in [maps] if isinstance(maps, str) or hasattr(maps, "fit") else maps or ():
        if isinstance(each, str) and each not in MAPS:
            raise ValueError(
                f"There is no map {each!r}; choose among {', '.join(MAPS)}, or give a transformer."
            )
        kind = each if isinstance(each, str) else type(each).__name__
        same = sum(name.partition(" ")[0] == kind for name in found)
        found[f"{kind} {same + 1}" if same else kind] = (
            MAPS[each](seed) if isinstance(each, str) else clone(each)
        )
    return found
