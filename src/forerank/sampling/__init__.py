"""Active sampling of pairs and points for training."""

from forerank.sampling.sampler import STRATEGIES, Drawn, PairSampler

__all__ = ["STRATEGIES", "Drawn", "PairSampler"]
