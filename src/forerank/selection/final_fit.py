"""The fit of what was selected on all rows: a pipeline, or the average of two.

A matrix of many rows may take ten times the memory of the table that it is made of. Where it would
take much, a linear model is fitted on blocks of rows (`forerank.data.row_stream`), which are kept
on disk; its weights agree with those of a fit in memory up to the tolerance of both.
"""

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from forerank._typing import Vector
from forerank.data.forms import in_form
from forerank.data.table_rows import TableRows
from forerank.estimators.boosted import BoostedRanker
from forerank.estimators.pairwise import PairwiseRanker
from forerank.estimators.pointwise import PointwiseRanker
from forerank.selection.average import ScoreAverage
from forerank.selection.methods import fitted_scaler
from forerank.selection.training_rows import TrainingRows

__all__ = ["Piece", "fit_pieces", "shift_scores"]


# Bytes of a matrix beyond which a linear model is fitted on blocks of rows: below, the matrix is
# a small part of what a fit takes.
_LARGEST_MATRIX = 2**28
# Models of boosted trees whose mean is the score, and the rows up to which there are so many: the
# more rows, the less the draws of columns matter, and the longer fits and scores take.
_N_MODELS, _MOST_ROWS_OF_MODELS = 4, 20_000


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
    if isinstance(Z, TableRows):
        if Z.n_bytes > _LARGEST_MATRIX and not is_scaled and _fits_blocks(piece, data):
            with Z.stream(data.y) as rows:
                return Pipeline([("rank", ranker.fit(rows))])
        Z = Z.matrix()
    scaler = fitted_scaler(is_scaled, Z, data.weight)
    steps: list[tuple[str, Any]] = [] if scaler is None else [("scale", scaler)]
    Z = Z if scaler is None else scaler.transform(Z)
    if piece.feature_map is not None:
        steps.append(("map", piece.feature_map.fit(Z)))
        Z = piece.feature_map.transform(Z)
    if isinstance(ranker, BoostedRanker):
        ranker.set_params(n_models=_N_MODELS if data.y.size <= _MOST_ROWS_OF_MODELS else 1)
    ranker.fit(Z, data.y, **data.fit_arguments(ranker))
    return Pipeline([*steps, ("rank", ranker)])


def _fits_blocks(piece: Piece, data: TrainingRows) -> bool:
    """Whether a piece can be fitted on blocks of rows."""
    ranker = piece.ranker
    is_linear = isinstance(ranker, PairwiseRanker | PointwiseRanker) and ranker.loss != "hinge"
    return is_linear and piece.feature_map is None and data.weight is None and data.group is None


def shift_scores(estimator: Any, offset: float) -> None:
    """Add a constant to the scores of a fitted pipeline or average."""
    if isinstance(estimator, ScoreAverage):
        estimator.intercept += offset
    else:
        estimator[-1].intercept_ = estimator[-1].intercept_ + offset
