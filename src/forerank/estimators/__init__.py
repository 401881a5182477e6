"""Estimators with scikit-learn's interface."""

from forerank.estimators.linear import PairwiseRanker, PointwiseRanker
from forerank.estimators.sampled import ActiveSamplingRanker, CombinedSGDRanker

__all__ = ["ActiveSamplingRanker", "CombinedSGDRanker", "PairwiseRanker", "PointwiseRanker"]
