"""Objectives: functions of the scores alone."""

from forerank.objectives.allpairs import AllPairs
from forerank.objectives.base import Curved, Linearization, Objective, Smoothable, SmoothObjective
from forerank.objectives.boosting import for_lightgbm, for_xgboost
from forerank.objectives.combined import Combined
from forerank.objectives.pointwise import Pointwise, Profiled
from forerank.objectives.smooth_top import SmoothTop

__all__ = [
    "AllPairs",
    "Combined",
    "Curved",
    "Linearization",
    "Objective",
    "Pointwise",
    "Profiled",
    "SmoothObjective",
    "SmoothTop",
    "Smoothable",
    "for_lightgbm",
    "for_xgboost",
]
