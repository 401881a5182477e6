"""Sums over all pairs without enumerating the pairs.

`PairBlocks` holds which pairs count; `HingePairs` (hinge, squared hinge), `LogisticPairs`,
`ExponentialPairs` and `SquaredPairs` sum over them at given scores, `ErfcPairs` to a chosen
precision (raykar2007), as does `erfc_sum` for single sums. `margin_moments` and `LogisticSources`
are sums that add up over chunks of rows.
"""

from forerank.pairsums.blocks import PairBlocks
from forerank.pairsums.erfc import (
    ErfcPairs,
    erfc_series,
    erfc_series_bound,
    erfc_sum,
    erfc_sum_direct,
)
from forerank.pairsums.factored import ExponentialPairs, SquaredPairs
from forerank.pairsums.hinge import HingePairs, SmoothedHingePairs, margin_moments
from forerank.pairsums.logistic import LogisticPairs
from forerank.pairsums.logistic_sources import LogisticSources

__all__ = [
    "ErfcPairs",
    "ExponentialPairs",
    "HingePairs",
    "LogisticPairs",
    "LogisticSources",
    "PairBlocks",
    "SmoothedHingePairs",
    "SquaredPairs",
    "erfc_series",
    "erfc_series_bound",
    "erfc_sum",
    "erfc_sum_direct",
    "margin_moments",
]
