"""Figures of rankings, drawn with matplotlib, which is imported when something is drawn.

The displays work as those of scikit-learn: `from_...` computes and draws, `plot` draws again.
"""

from forerank.plots.alpha_path import AlphaPathDisplay, RoundsDisplay
from forerank.plots.column_curves import ColumnCurvesDisplay
from forerank.plots.critical_difference import CriticalDifferenceDisplay
from forerank.plots.curves import draw_curves
from forerank.plots.hits import HitsDisplay
from forerank.plots.score_distribution import ScoreDistributionDisplay
from forerank.plots.top_stability import TopStabilityDisplay

__all__ = [
    "AlphaPathDisplay",
    "ColumnCurvesDisplay",
    "CriticalDifferenceDisplay",
    "HitsDisplay",
    "RoundsDisplay",
    "ScoreDistributionDisplay",
    "TopStabilityDisplay",
    "draw_curves",
]
