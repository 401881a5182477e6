"""The fit of what was selected on all rows: a pipeline, or the average of two."""

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from forerank._typing import Vector
from forerank.data.forms import in_form
from forerank.selection.average import ScoreAverage
from forerank.selection.methods import fitted_scaler
from forerank.selection.training_rows import TrainingRows

__all__ = ["Piece", "fit_pieces", "shift_scores"]


@dataclass
class Piece:
    """An estimator to be fitted: the form of the columns, a feature map if any, and the ranker."""

    form: str
    feature_map: Any
    ranker: Any

    def copy(self) -> "Piece":
        """The same, not fitted."""
        feature_map = None if self.feature_map is None else clone(self.feature_map)
        return Piece(self.form, feature_map, clone(self.ranker))


def fit_pieces(pieces: list[Piece], weights: Vector, data: TrainingRows, scale: bool) -> Any:
    """The fitted pipeline of one piece, or the average of those of several.

    `weights` are those of the scores of several pieces; `scale` says whether the columns of
    linear models are scaled.
    """
    pipelines = [_pipeline(piece, data, scale) for piece in pieces]
    if len(pipelines) == 1:
        return pipelines[0]
    return ScoreAverage(pipelines, [piece.form for piece in pieces], weights)


def _pipeline(piece: Piece, data: TrainingRows, scale: bool) -> Pipeline:
    """Scaler, feature map and ranker, each fitted on these rows."""
    Z, ranker = in_form(data.X, piece.form), piece.ranker
    is_scaled = scale and piece.form != "trees"
    scaler = fitted_scaler(is_scaled, Z, data.weight)
    steps: list[tuple[str, Any]] = [] if scaler is None else [("scale", scaler)]
    Z = Z if scaler is None else scaler.transform(Z)
    if piece.feature_map is not None:
        steps.append(("map", piece.feature_map.fit(Z)))
        Z = piece.feature_map.transform(Z)
    ranker.fit(Z, data.y, **data.fit_arguments(ranker))
    return Pipeline([*steps, ("rank", ranker)])


def shift_scores(estimator: Any, offset: float) -> None:
    """Add a constant to the scores of a fitted pipeline or average."""
    if isinstance(estimator, ScoreAverage):
        estimator.intercept += offset
    else:
        estimator[-1].intercept_ = estimator[-1].intercept_ + offset
