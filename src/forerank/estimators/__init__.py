"""Estimators with scikit-learn's interface."""

from forerank.estimators.active_sampling import ActiveSamplingRanker, CombinedSGDRanker
from forerank.estimators.linear import PairwiseRanker, PointwiseRanker
from forerank.estimators.pool import PoolRanker
from forerank.estimators.quadratic_features import QuadraticFeatures
from forerank.estimators.rank_boost import RankBoost
from forerank.estimators.rank_ncg import RankNCG
from forerank.estimators.rank_net import RankNet
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
    "PoolRanker",
    "QuadraticFeatures",
    "RankBoost",
    "RankNCG",
    "RankNet",
    "SparseTopPush",
    "TopPush",
    "TopRanker",
]
