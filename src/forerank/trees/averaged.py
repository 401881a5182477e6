"""The mean of several models that are boosted beside each other, as one ensemble of trees."""

from collections.abc import Sequence

import numpy as np

from forerank.trees.ensemble import TreeEnsemble
from forerank.trees.growth import Grower

__all__ = ["AveragedGrower", "model_of_mean"]


class AveragedGrower:
    """Boosting of several models; the trees of a round are next to each other, one of each model,
    with their values divided by the number of models.

    A model in which no split is left has trees of one leaf while others go on.
    """

    def __init__(self, growers: Sequence[Grower]) -> None:
        self._growers = growers

    @property
    def least_rounds(self) -> int:
        """Number of rounds that are worth a call of `grow`."""
        return max(grower.least_rounds for grower in self._growers)

    def grow(self, n_rounds: int) -> TreeEnsemble:
        """The trees of the next rounds; fewer where no model has a split left."""
        parts = [grower.grow(n_rounds) for grower in self._growers]
        n_grown = max(part.n_trees for part in parts)
        filled = TreeEnsemble.joined([_filled(part, n_grown) for part in parts])
        by_round = np.arange(len(parts) * n_grown).reshape(len(parts), n_grown).T
        return filled.chosen(by_round.ravel(), 1.0 / len(parts))


def model_of_mean(ensemble: TreeEnsemble, number: int, n_models: int) -> TreeEnsemble:
    """One of the models whose mean is an ensemble."""
    model = ensemble.chosen(np.arange(number, ensemble.n_trees, n_models), float(n_models))
    model.constant = ensemble.constant
    return model


def _filled(part: TreeEnsemble, n_trees: int) -> TreeEnsemble:
    """The trees, and as many trees of one leaf as are missing."""
    missing = np.arange(n_trees - part.n_trees + 1)
    return TreeEnsemble.joined([part, TreeEnsemble.constant_trees(part.n_features, missing)])
