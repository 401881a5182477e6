"""Sums over all pairs without visiting the pairs.

`PairBlocks` says which pairs count; `SortedPairs` (hinge, squared hinge), `GriddedPairs` (logistic), `ExponentialPairs`
and `SquaredPairs` sum over them at given scores. `margin_moments` and `LogisticSources` are the same sums in pieces
that add up over chunks of rows.
"""

from forerank.pairsums.blocks import PairBlocks, check_edges
from forerank.pairsums.factored import ExponentialPairs, SquaredPairs
from forerank.pairsums.grid import LogisticSources
from forerank.pairsums.gridded import GriddedPairs
from forerank.pairsums.sorted import SmoothedHingePairs, SortedPairs, margin_moments

__all__ = [
    "ExponentialPairs",
    "GriddedPairs",
    "LogisticSources",
    "PairBlocks",
    "SmoothedHingePairs",
    "SortedPairs",
    "SquaredPairs",
    "check_edges",
    "margin_moments",
]
