"""The linear rankers, with each of their losses."""

from forerank import CombinedRanker, PairwiseRanker, PointwiseRanker

LOSSES = ("exponential", "hinge", "logistic", "squared", "squared_hinge")
KINDS = (PairwiseRanker, PointwiseRanker, CombinedRanker)
RANKERS = [kind(loss) for kind in KINDS for loss in LOSSES]
