"""The methods that `Ranker` tries for each measure, families of them, and feature maps, by their
names.
"""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils.extmath import row_norms

from forerank._validation import stacklevel_outside
from forerank.estimators.additive_features import AdditiveFeatures
from forerank.estimators.average_precision import MAPRanker
from forerank.estimators.boosted import BoostedRanker
from forerank.estimators.pairwise import PairwiseRanker
from forerank.estimators.partial_auc import PartialAUCRanker
from forerank.estimators.pointwise import PointwiseRanker
from forerank.estimators.quadratic_features import QuadraticFeatures
from forerank.estimators.top_push import TopPush, TopRanker
from forerank.metrics.registry import measure_named

__all__ = [
    "FAMILIES",
    "FEATURE_MAPS",
    "METHODS",
    "OLD_METHOD_NAMES",
    "ROUNDS",
    "check_families",
    "fitted_scaler",
    "method_names",
    "method_title",
    "named_feature_maps",
    "needed_forms",
    "resolve_method",
    "with_loose_tolerance",
]


# Families of models, the simplest first: linear in the columns; linear in additive maps of them;
# boosted trees; the average of the scores of the best of the former two and of trees.
FAMILIES = ("linear", "additive", "trees", "average")
# Numbers of rounds at which boosted trees are compared: steps of a fifth to a half.
ROUNDS = (10, 20, 30, 40, 60, 80, 110, 150, 200, 270, 350, 450, 600, 800, 1000)


@dataclass(frozen=True)
class Method:
    """A ranker with one free parameter, alpha or the number of rounds; `make` takes the parameter
    of the measure, such as a false positive rate.
    """

    title: str
    make: Callable[[float | None], Any]
    measures: tuple[str, ...] = ()  # kinds of measures for which "auto" tries it
    trees: bool = False


def _pairwise(loss: str, title: str, measures: tuple[str, ...] = ()) -> Method:
    return Method(f"{title} loss over pairs", lambda parameter: PairwiseRanker(loss), measures)


def _pointwise(loss: str, title: str, measures: tuple[str, ...] = ()) -> Method:
    return Method(f"{title} loss over rows", lambda parameter: PointwiseRanker(loss), measures)


def _top(percent: int, measures: tuple[str, ...] = ()) -> Method:
    title = f"squared hinge loss against the top {percent} % of the negatives"
    return Method(title, lambda parameter: TopRanker(at=percent / 100), measures)


def _trees(leaves: int, learning_rate: float) -> Method:
    def make(parameter: float | None) -> BoostedRanker:
        return BoostedRanker(max_leaf_nodes=leaves, learning_rate=learning_rate)

    return Method(f"boosted trees of {leaves} leaves", make, _ALL, trees=True)


# Tolerances of fits within the folds, by stopping criterion: measures do not change below them.
_LOOSE_TOL = {"gradient": 1e-2, "gap": 1e-3}
_ALL = ("auc", "ap", "pos_at_top", "wmw", "ndcg", "pauc", "recall")
_TWO_CLASSES = ("auc", "ap", "pos_at_top", "pauc", "recall")

# In the order in which they are tried: the first one is the baseline of the others.
METHODS = {
    "pointwise-logistic": _pointwise("logistic", "logistic", _ALL),
    "pairwise-logistic": _pairwise("logistic", "logistic", _ALL),
    "pairwise-squared-hinge": _pairwise("squared_hinge", "squared hinge", ("wmw", "ndcg")),
    "pointwise-squared-hinge": _pointwise("squared_hinge", "squared hinge", _TWO_CLASSES),
    "pointwise-exponential": _pointwise("exponential", "exponential", ("pos_at_top",)),
    "top-1-percent": _top(1, ("pos_at_top",)),
    "top-push": Method(
        "squared hinge loss against the highest-scoring negative",
        lambda parameter: TopPush(),
        ("pos_at_top",),
    ),
    "top-share": Method(
        "squared hinge loss against the negatives up to the false positive rate of the measure",
        lambda parameter: TopRanker(at=parameter or 0.05),
        ("pauc",),
    ),
    "top-20-percent": _top(20),
    "top-5-percent": _top(5),
    "pairwise-exponential": _pairwise("exponential", "exponential"),
    "pairwise-hinge": _pairwise("hinge", "hinge"),
    "partial-auc-hinge": Method(
        "hinge bound of the partial AUC",
        lambda parameter: PartialAUCRanker(fpr_range=(0.0, parameter or 0.1)),
    ),
    "average-precision-hinge": Method(
        "hinge bound of average precision", lambda parameter: MAPRanker()
    ),
    # Large and small trees: those of 15 leaves beside them gained nothing on 40 data sets.
    "trees-40-leaves": _trees(40, 0.08),
    "trees-5-leaves": _trees(5, 0.08),
}
# Names up to version 0.1, still accepted.
OLD_METHOD_NAMES = {
    "rows, logistic": "pointwise-logistic",
    "pairs, logistic": "pairwise-logistic",
    "pairs, squared hinge": "pairwise-squared-hinge",
    "rows, squared hinge": "pointwise-squared-hinge",
    "rows, exponential": "pointwise-exponential",
    "top 1 %, squared hinge": "top-1-percent",
    "top, squared hinge": "top-push",
    "top share, squared hinge": "top-share",
    "top 20 %, squared hinge": "top-20-percent",
    "top 5 %, squared hinge": "top-5-percent",
    "pairs, exponential": "pairwise-exponential",
    "pairs, hinge": "pairwise-hinge",
    "partial AUC, hinge": "partial-auc-hinge",
    "average precision, hinge": "average-precision-hinge",
}
FEATURE_MAPS: dict[str, Callable[[int], Any]] = {
    "nystroem": lambda seed: Nystroem(n_components=300, random_state=seed),
    "fourier": lambda seed: RBFSampler(n_components=500, gamma="scale", random_state=seed),
    "quadratic": lambda seed: QuadraticFeatures(),
    "additive": lambda seed: AdditiveFeatures(),
    "components": lambda seed: TruncatedSVD(n_components=40, random_state=seed),
}


def method_names(metric: str | None = None, *, trees: bool = False) -> list[str]:
    """Names of the linear methods that `Ranker` tries for a measure, or of trees; of all methods
    without a measure.

    Examples
    --------
    >>> method_names("auc")
    ['pointwise-logistic', 'pairwise-logistic', 'pointwise-squared-hinge']
    """
    if metric is None:
        return list(METHODS)
    kind = measure_named(metric).kind
    tried = (name for name, method in METHODS.items() if kind in method.measures)
    return [name for name in tried if METHODS[name].trees == trees]


def check_families(families: Any) -> tuple[str, ...]:
    """Names of families, the simplest first; all for "auto"."""
    if isinstance(families, str):
        names = [name.strip() for name in families.split(",")]
        families = FAMILIES if families == "auto" else names
    if not isinstance(families, Iterable):
        raise ValueError(
            f'families={families!r}: give "auto", or names among {", ".join(FAMILIES)}.'
        )
    given = list(families)
    unknown = [name for name in given if name not in FAMILIES]
    if unknown or not given:
        what = f"There is no family {unknown[0]!r}" if unknown else "families is empty"
        raise ValueError(f'{what}; choose among {", ".join(FAMILIES)}, or "auto" for all of them.')
    if "average" in given and not ("trees" in given and len(given) > 2):
        raise ValueError(
            'The family "average" needs "trees" and one of "linear" and "additive" beside it.'
        )
    return tuple(name for name in FAMILIES if name in given)


def method_title(name: str) -> str:
    """Description of a method for people, such as "logistic loss over pairs"."""
    return METHODS[resolve_method(name)].title


def resolve_method(name: str) -> str:
    """The current name of a method; a FutureWarning for an old one."""
    if name in METHODS:
        return name
    if name not in OLD_METHOD_NAMES:
        known = "; ".join(f"{each} ({method.title})" for each, method in METHODS.items())
        raise ValueError(f"There is no method {name!r}. Choose among {known}.")
    current = OLD_METHOD_NAMES[name]
    text = f"The method {name!r} is now {current!r}; the old name will be removed in version 0.3."
    warnings.warn(text, FutureWarning, stacklevel=stacklevel_outside())
    return current


def fitted_scaler(scale: bool, X: Any, weight: Any) -> Any:
    """A fitted scaler to unit variance, of sparse columns to a largest absolute value of 1; None
    without `scale`, and for sparse rows of length one. Rows of weight zero are ignored.
    """
    if not scale or (sp.issparse(X) and _have_length_one(X)):
        return None
    if sp.issparse(X):
        return MaxAbsScaler().fit(X if weight is None else X[weight > 0.0])
    return StandardScaler().fit(X, sample_weight=weight)


def _have_length_one(X: Any) -> bool:
    """Whether sparse rows have the length one, as those of TfidfVectorizer, or are empty: someone
    has weighted the columns, and a scaler would undo it.
    """
    lengths = row_norms(X, squared=True)
    return bool(lengths.any()) and bool(np.all((np.abs(lengths - 1.0) < 1e-4) | (lengths == 0.0)))


def named_feature_maps(maps: Any, seed: int) -> dict[str, Any]:
    """Feature maps to be tried, each under a unique name."""
    named: dict[str, Any] = {}
    for item in [maps] if isinstance(maps, str) or hasattr(maps, "fit") else maps or ():
        if isinstance(item, str) and item not in FEATURE_MAPS:
            raise ValueError(
                f"There is no feature map {item!r}; choose one of {', '.join(FEATURE_MAPS)}, or "
                "give a transformer."
            )
        kind = item if isinstance(item, str) else type(item).__name__
        same = sum(name.partition(" ")[0] == kind for name in named)
        transformer = FEATURE_MAPS[item](seed) if isinstance(item, str) else clone(item)
        named[f"{kind} {same + 1}" if same else kind] = transformer
    return named


def needed_forms(families: Any, methods: Any, with_maps: bool) -> tuple[str, ...]:
    """The forms of columns that a search of these families, or methods, compares."""
    if methods == "auto":
        forms = {"linear": ("plain", "tf-idf"), "additive": ("additive",), "trees": ("trees",)}
        needed = [form for name in check_families(families) for form in forms.get(name, ())]
        return tuple(["plain", *needed] if with_maps and "plain" not in needed else needed)
    names = [methods] if isinstance(methods, str) else methods
    has_trees = any(METHODS[resolve_method(name)].trees for name in names)
    return ("plain", "trees") if has_trees else ("plain",)


def with_loose_tolerance(ranker: Any) -> Any:
    """A copy of a linear ranker that stops as soon as measures would no longer change."""
    smooth = getattr(ranker, "loss", "hinge") != "hinge" and not hasattr(ranker, "solver")
    return clone(ranker).set_params(tol=_LOOSE_TOL["gradient" if smooth else "gap"])
