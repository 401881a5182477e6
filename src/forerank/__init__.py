"""forerank: learning to rank with every pair counted exactly, at the cost of a pointwise fit."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forerank import active, bounds, datasets, graphs, io, metrics
    from forerank.comparison import compare
    from forerank.estimators import (
        AATPRanker,
        ActiveSamplingRanker,
        CombinedSGDRanker,
        MAPRanker,
        OWPCRanker,
        PairwiseRanker,
        PartialAUCRanker,
        PointwiseRanker,
        QuadraticFeatures,
        RankBoost,
        Ranker,
        RankNCG,
        RankNet,
        SparseTopPush,
        TopPush,
        TopRanker,
    )

__version__ = "0.1.0.dev0"

__all__ = [
    "AATPRanker",
    "ActiveSamplingRanker",
    "CombinedSGDRanker",
    "MAPRanker",
    "OWPCRanker",
    "PairwiseRanker",
    "PartialAUCRanker",
    "PointwiseRanker",
    "QuadraticFeatures",
    "RankBoost",
    "RankNCG",
    "RankNet",
    "Ranker",
    "SparseTopPush",
    "TopPush",
    "TopRanker",
    "active",
    "bounds",
    "compare",
    "datasets",
    "graphs",
    "io",
    "metrics",
]

_HOME = {name: "forerank.estimators" for name in __all__ if name[0].isupper()} | {"compare": "forerank.comparison"}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: scikit-learn and numba take a second or two to import."""
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in __all__:
        value = import_module(f"forerank.{name}")
    else:
        raise AttributeError(f"module 'forerank' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
