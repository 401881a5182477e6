"""Estimators with scikit-learn's interface."""

from forerank.estimators.boosted import RankBoost
from forerank.estimators.chosen import Ranker
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
