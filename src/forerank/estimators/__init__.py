"""Estimators with scikit-learn's interface."""

from forerank.estimators.accuracy_at_top import AATPRanker
from forerank.estimators.active_sampling import ActiveSamplingRanker
from forerank.estimators.additive_features import AdditiveFeatures
from forerank.estimators.average_precision import MAPRanker
from forerank.estimators.boosted import BoostedRanker
from forerank.estimators.combined import CombinedRanker
from forerank.estimators.combined_sgd import CombinedSGDRanker
from forerank.estimators.owpc import OWPCRanker
from forerank.estimators.p_norm_push import PNormPush
from forerank.estimators.pairwise import PairwiseRanker
from forerank.estimators.partial_auc import PartialAUCRanker
from forerank.estimators.pointwise import PointwiseRanker
from forerank.estimators.pool import PoolRanker
from forerank.estimators.quadratic_features import QuadraticFeatures
from forerank.estimators.rank_boost import RankBoost
from forerank.estimators.rank_ncg import RankNCG
from forerank.estimators.rank_net import RankNet
from forerank.estimators.sparse_top_push import SparseTopPush
from forerank.estimators.top_push import TopPush, TopRanker

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
    "SparseTopPush",
    "TopPush",
    "TopRanker",
]
