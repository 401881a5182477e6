"""Boosted trees: the arrays of a fitted ensemble, and the libraries that grow the trees."""

from forerank.trees.averaged import AveragedGrower, model_of_mean
from forerank.trees.backends import BACKENDS, Backend, choose_backend, has_lightgbm, make_grower
from forerank.trees.ensemble import TreeEnsemble
from forerank.trees.growth import Gradient, Grower, GrowthSettings, TrainingRows

__all__ = [
    "BACKENDS",
    "AveragedGrower",
    "Backend",
    "Gradient",
    "Grower",
    "GrowthSettings",
    "TrainingRows",
    "TreeEnsemble",
    "choose_backend",
    "has_lightgbm",
    "make_grower",
    "model_of_mean",
]
