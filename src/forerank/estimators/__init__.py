"""Estimators with scikit-learn's interface."""

from typing import TYPE_CHECKING, Any

from forerank.estimators.boosted import RankBoost
from forerank.estimators.conjugate import RankNCG
from forerank.estimators.linear import PairwiseRanker, PointwiseRanker
from forerank.estimators.network import RankNet
from forerank.estimators.quadratic import QuadraticFeatures
from forerank.estimators.sampled import ActiveSamplingRanker, CombinedSGDRanker
from forerank.estimators.top import (
    AATPRanker,
    MAPRanker,
    OWPCRanker,
    PartialAUCRanker,
    SparseTopPush,
    TopPush,
    TopRanker,
)

if TYPE_CHECKING:
    from forerank.estimators.chosen import Ranker

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
]


def __getattr__(name: str) -> Any:
    """Load `Ranker` when it is first used: scikit-learn's preprocessing, which it needs, is slow to import."""
    if name != "Ranker":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from forerank.estimators.chosen import Ranker

    return Ranker
