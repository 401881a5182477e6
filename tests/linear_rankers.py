"""The linear rankers, with each of their losses."""

from forerank import PairwiseRanker, PointwiseRanker

LOSSES = ("exponential", "hinge", "logistic", "squared", "squared_hinge")
RANKERS = [cls(loss) for cls in (PairwiseRanker, PointwiseRanker) for loss in LOSSES]
