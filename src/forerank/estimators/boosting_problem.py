"""The rows, loss and settings of a boosted fit, and its scores after numbers of rounds."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Index, Matrix, Vector
from forerank.objectives.boosting import ROW_LOSSES, gradient_of
from forerank.trees import (
    AveragedGrower,
    Backend,
    Grower,
    GrowthSettings,
    TrainingRows,
    TreeEnsemble,
    make_grower,
    model_of_mean,
)

__all__ = ["BoostingProblem", "n_threads_for"]

# Values of X (rows times columns) for which a further thread is worth its cost in every round, also
# where other processes use the cores: threads wait for each other several times in a round.
_VALUES_PER_THREAD = 500_000


@dataclass(frozen=True)
class BoostingProblem:
    """What trees are grown on and how.

    Attributes
    ----------
    X : array or CSR matrix
    codes : integer array
        The class number of each row.
    weight : array or None
        Weights of the rows; only their ratios count.
    group : integer array or None
        The group of each row.
    edges : list of (upper, lower) or None
        The preference graph over the classes.
    loss : str
        One of `forerank.objectives.boosting.BOOSTING_LOSSES`.
    categories : tuple of int
        Columns of codes.
    backend : str
    settings : GrowthSettings
    """

    X: Matrix
    codes: NDArray[np.integer]
    weight: Vector | None
    group: Index | None
    edges: list[tuple[int, int]] | None
    loss: str
    categories: tuple[int, ...]
    backend: Backend
    settings: GrowthSettings

    def of_rows(self, rows: Index) -> "BoostingProblem":
        """The same on some of the rows."""
        some: dict[str, Any] = {
            name: None if (values := getattr(self, name)) is None else values[rows]
            for name in ("X", "codes", "weight", "group")
        }
        return replace(self, **some)

    def start(self) -> TreeEnsemble:
        """An ensemble without trees: the constant with the lowest loss on rows; zero over pairs.

        ValueError for a loss on rows where only one class has a weight.
        """
        constant = 0.0
        if self.loss in ROW_LOSSES:
            negative, positive = np.bincount(self.codes, weights=self.weight, minlength=2)
            if not negative or not positive:
                raise ValueError("The rows have one class only; boosting needs rows of two.")
            constant = float(np.log(positive / negative))
            constant *= 0.5 if self.loss == "exponential" else 1.0
        return TreeEnsemble.empty(self.X.shape[1], constant)

    def models(self) -> list["BoostingProblem"]:
        """The problem with each of the seeds of the models that are averaged."""
        settings = self.settings
        others = np.random.RandomState(settings.seed).randint((1 << 31) - 1, size=settings.n_models)
        seeds = [settings.seed, *others[1:].tolist()]
        return [replace(self, settings=replace(settings, seed=s, n_models=1)) for s in seeds]

    def grower(self, start: TreeEnsemble) -> Grower:
        """The library, ready to add trees to those of an ensemble."""
        n_models = self.settings.n_models
        if n_models > 1:
            return AveragedGrower(
                [
                    model.grower(model_of_mean(start, k, n_models))
                    for k, model in enumerate(self.models())
                ]
            )
        if self.weight is not None and not self.weight.all():  # a leaf has rows with a weight
            return self.of_rows(np.flatnonzero(self.weight)).grower(start)
        weight, gradient = self.weight, None
        if self.loss == "logistic":
            weight = None if weight is None else weight / weight.mean()
        else:
            gradient = gradient_of(self.loss, self.codes, weight, self.group, self.edges)
        scores = start.scores(self.X) if start.n_trees else start.constant
        rows = TrainingRows(self.X, self.codes == 1, weight, self.categories, scores, gradient)
        settings = self.settings
        if start.n_trees:  # a library draws the columns of its first trees by the seed
            settings = replace(settings, seed=_seed_after(settings.seed, start.n_trees))
        return make_grower(self.backend, rows, settings)

    def iter_scores(self, X_test: Matrix, rounds: Iterable[int]) -> Iterator[Vector]:
        """Scores of other rows after ascending numbers of rounds; each tree is scored once.

        Rounds are grown when they are asked for. Where no split is left, the scores stay.
        """
        start, in_round = self.start(), self.settings.n_models
        grower = self.grower(start)
        scores, n_grown, n_scored = start.scores(X_test), 0, 0
        # Of the rounds grown by the last call, `done` are scored.
        latest, done = start, 0
        for wanted in rounds:
            if wanted < n_scored:
                raise ValueError(f"rounds must ascend; {wanted} follows {n_scored}.")
            while n_scored < wanted:
                if done == latest.n_trees // in_round:
                    latest, done = grower.grow(max(wanted - n_grown, grower.least_rounds)), 0
                    n_grown += latest.n_trees // in_round
                    if latest.n_trees == 0:
                        break
                end = min(latest.n_trees // in_round, done + wanted - n_scored)
                latest.add_scores(X_test, scores, done * in_round, end * in_round)
                n_scored, done = n_scored + end - done, end
            n_scored = max(n_scored, wanted)
            yield scores.copy()


def _seed_after(seed: int, n_trees: int) -> int:
    """The seed of the draws for trees that are added to others."""
    return int(np.random.SeedSequence([seed, n_trees]).generate_state(1)[0] >> 1)


def n_threads_for(X: Matrix, allowed: int) -> int:
    """Number of threads that X is worth, up to those allowed."""
    size: Any = X.size if isinstance(X, np.ndarray) else X.nnz
    return max(1, min(allowed, int(size) // _VALUES_PER_THREAD))
