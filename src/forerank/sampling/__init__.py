"""Active sampling of pairs and points for training."""

from forerank.sampling.probabilities import STRATEGIES
from forerank.sampling.sampler import Drawn, PairSampler

__all__ = ["STRATEGIES", "Drawn", "PairSampler"]
