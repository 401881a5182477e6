"""Estimators with scikit-learn's interface."""

from forerank.estimators.linear import PairwiseRanker, PointwiseRanker

__all__ = ["PairwiseRanker", "PointwiseRanker"]
