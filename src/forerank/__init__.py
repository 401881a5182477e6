"""forerank: learning to rank with every pair counted exactly, at the cost of a pointwise fit."""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forerank import active, data, estimators, graphs, losses, metrics, models
    from forerank.data.row_stream import open_rows
    from forerank.estimators import (
        AATPRanker,
        ActiveSamplingRanker,
        AdditiveFeatures,
        BoostedRanker,
        CombinedRanker,
        CombinedSGDRanker,
        MAPRanker,
        OWPCRanker,
        PairwiseRanker,
        PartialAUCRanker,
        PNormPush,
        PointwiseRanker,
        PoolRanker,
        QuadraticFeatures,
        RankBoost,
        RankNCG,
        RankNet,
        SparseTopPush,
        TopPush,
        TopRanker,
    )
    from forerank.selection import Ranker
    from forerank.workflows.compare import compare

__version__ = "0.1.0.dev0"

__all__ = [
    "AATPRanker",
    "ActiveSamplingRanker",
    "AdditiveFeatures",
    "BoostedRanker",
    "CombinedRanker",
    "CombinedSGDRanker",
    "MAPRanker",
    "OWPCRanker",
    "PNormPush",
    "PairwiseRanker",
    "PartialAUCRanker",
    "PointwiseRanker",
    "PoolRanker",
    "QuadraticFeatures",
    "RankBoost",
    "RankNCG",
    "RankNet",
    "Ranker",
    "SparseTopPush",
    "TopPush",
    "TopRanker",
    "active",
    "compare",
    "data",
    "estimators",
    "graphs",
    "losses",
    "metrics",
    "models",
    "open_rows",
]

_HOME = {name: "forerank.estimators" for name in __all__ if name[0].isupper()}
_HOME |= {"Ranker": "forerank.selection", "compare": "forerank.workflows.compare"}
_HOME |= {"open_rows": "forerank.data.row_stream"}
# Names of modules in version 0.1 that have moved, and their present names.
_MOVED = {
    "bounds": "forerank.metrics.bounds",
    "datasets": "forerank.data.datasets",
    "io": "forerank.data.readers",
}


def __getattr__(name: str) -> Any:
    """A public name, imported when first used: scikit-learn and numba take a second or two."""
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in __all__:
        value = import_module(f"forerank.{name}")
    elif name in _MOVED:
        text = f"forerank.{name} is now {_MOVED[name]}; the old name goes in version 0.3."
        warnings.warn(text, FutureWarning, stacklevel=2)
        return import_module(_MOVED[name])
    else:
        raise AttributeError(f"module 'forerank' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
