"""What a library needs to grow trees: the settings, the training rows, and its interface."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from forerank._typing import Mask, Matrix, Vector
from forerank.trees.ensemble import TreeEnsemble

__all__ = ["Gradient", "Grower", "GrowthSettings", "TrainingRows"]

# From scores to the gradient and the diagonal of the curvature of the objective at them.
Gradient = Callable[[Vector], tuple[Vector, Vector]]


@dataclass(frozen=True)
class GrowthSettings:
    """Size, penalty and randomness of the trees.

    Attributes
    ----------
    learning_rate : float
        Factor on the values of all leaves.
    max_leaf_nodes : int
        Most leaves of a tree.
    min_samples_leaf : int
        Fewest training rows of a leaf.
    l2 : float
        Added to the curvature of a leaf: its value is -gradient / (curvature + l2).
    max_features : float
        Share of the columns that are drawn for each tree (each node, with scikit-learn).
    n_threads : int
    seed : int
    n_models : int
        Number of sums of trees, each with other draws of columns, whose mean is the score.
    """

    learning_rate: float = 0.05
    max_leaf_nodes: int = 15
    min_samples_leaf: int = 20
    l2: float = 1.0
    max_features: float = 0.8
    n_threads: int = 1
    seed: int = 0
    n_models: int = 1


@dataclass(frozen=True)
class TrainingRows:
    """The rows that trees are grown on.

    Attributes
    ----------
    X : array (NaN is missing) or CSR matrix
    positive : boolean array
        Which rows are positive, for the logistic loss on rows.
    weight : array, optional
        Per row, for the logistic loss on rows.
    categories : sequence of int
        Columns of codes.
    start : float or array
        The scores before the first tree.
    gradient : callable, optional
        The objective; by default the logistic loss on rows.
    """

    X: Matrix
    positive: Mask
    weight: Vector | None = None
    categories: Sequence[int] = ()
    start: float | Vector = 0.0
    gradient: Gradient | None = None


class Grower(Protocol):
    """A library in the middle of boosting; a round has a tree of each model."""

    @property
    def least_rounds(self) -> int:
        """Number of rounds that are worth a call of `grow`."""

    def grow(self, n_rounds: int) -> TreeEnsemble:
        """The trees of the next rounds, without a constant; fewer where no split is left."""
