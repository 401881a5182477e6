"""Fits of candidates on the training rows of a fold: rows in the form that a family takes, and
test scores along the values of the parameter that is tuned.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from forerank._typing import Vector
from forerank.data.forms import in_form
from forerank.data.memory import release_memory
from forerank.design import make_design
from forerank.losses import get_loss
from forerank.selection.candidates import Candidate, Key
from forerank.selection.methods import fitted_scaler
from forerank.selection.training_rows import Split, TrainingRows

__all__ = ["RowForms", "fresh_scores", "parts_in_memory", "path_scores", "tree_quality"]


class RowForms:
    """Training and test rows of a split in the form that a candidate takes.

    Parameters
    ----------
    data : TrainingRows
    maps : dict
        Feature maps by name, not fitted.
    scale : bool
        Whether the columns of linear models are scaled.
    """

    def __init__(self, data: TrainingRows, maps: dict[str, Any], scale: bool) -> None:
        self._data, self._maps, self._scale = data, maps, scale

    def of(self, candidate: Candidate, split: Split) -> tuple[TrainingRows, TrainingRows]:
        """Rows, scaled and mapped by transformers fitted on the training rows."""
        X = in_form(self._data.X, candidate.form)
        train, test = (
            replace(self._data.labels(rows), X=X[rows]) for rows in (split.train, split.test)
        )
        is_scaled = self._scale and candidate.family != "trees"
        scaler = fitted_scaler(is_scaled, train.X, train.weight)
        if scaler is not None:
            train, test = (replace(part, X=scaler.transform(part.X)) for part in (train, test))
        if candidate.map is not None:
            mapped = clone(self._maps[candidate.map]).fit(train.X)
            train, test = (replace(part, X=mapped.transform(part.X)) for part in (train, test))
        return train, test


def parts_in_memory(
    candidates: list[Candidate], splits: dict[int, Split], n_jobs: int | None
) -> list[tuple[list[Candidate], dict[int, Split]]]:
    """Candidates and splits whose rows are prepared at the same time, where rows are many: those
    of one split and, on one thread, of one form of the columns.
    """
    together: dict[Key | None, list[Candidate]] = {}
    for candidate in candidates:
        together.setdefault(candidate.key if n_jobs in (None, 1) else None, []).append(candidate)
    release_memory()
    by_split = [{number: split} for number, split in splits.items()]
    return [(some, split) for split in by_split for some in together.values()]


def path_scores(
    candidate: Candidate, train: TrainingRows, test: TrainingRows
) -> Iterator[tuple[int, Vector]]:
    """Positions of the values that are tried, each with the test scores of its fit."""
    positions = candidate.positions
    given = train.fit_arguments(candidate.ranker)
    if candidate.family == "trees":
        values = candidate.grid[: positions.stop].astype(int)
        scores = candidate.ranker.iter_scores(train.X, train.y, test.X, values, **given)
        yield from ((k, s.copy()) for k, s in enumerate(scores) if k in positions)
        return
    design, alphas = make_design(test.X), candidate.grid[candidate.tried]
    path = candidate.loose_ranker.iter_path(train.X, train.y, alphas, **given)
    for position, fitted in zip(positions, path, strict=True):
        yield position, design.scores(fitted.coef_[0])


def fresh_scores(
    candidate: Candidate, position: int, train: TrainingRows, test: TrainingRows
) -> Vector:
    """Test scores of one fit, at the value at this position."""
    value = candidate.grid[position]
    if candidate.family == "trees":
        fitted = clone(candidate.ranker).set_params(rounds=int(value))
        fitted.fit(train.X, train.y, **train.fit_arguments(fitted))
        return np.asarray(fitted.decision_function(test.X))
    fitted = clone(candidate.loose_ranker).set_params(alpha=float(value))
    fitted.fit(train.X, train.y, **train.fit_arguments(fitted))
    return make_design(test.X).scores(fitted.coef_[0])


def tree_quality(candidate: Candidate, test: TrainingRows, scores: Vector, value: float) -> float:
    """The negative logistic loss of trees that minimise it on rows, which has less noise than a
    measure; else the value of the measure.
    """
    if candidate.ranker.loss != "logistic":
        return value
    losses = get_loss("logistic").value(np.where(test.y > 0, scores, -scores))
    return -float(np.average(losses, weights=test.weight))
