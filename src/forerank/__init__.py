"""forerank: learning to rank with every pair counted exactly, at the cost of a pointwise fit."""

from forerank import metrics
from forerank.estimators import PairwiseRanker, PointwiseRanker

__version__ = "0.1.0.dev0"

__all__ = ["PairwiseRanker", "PointwiseRanker", "metrics"]
