"""Scores and predicted classes of the rows of Dask collections, as collections not computed."""

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from forerank._typing import Vector
from forerank.dask.partitions import (
    column_names,
    delayed_blocks,
    matrix_of,
    n_columns_of,
    single_blocks,
)
from forerank.design import make_design

__all__ = ["lazy_classes", "lazy_scores"]


def lazy_scores(ranker: Any, X: Any) -> Any:
    """Scores of the rows of a Dask collection: a Dask array with its partitions, not computed."""
    check_is_fitted(ranker)
    n_columns, names = n_columns_of(X), column_names(X)
    known = getattr(ranker, "feature_names_in_", None)
    if names is not None and known is not None and names != known.tolist():
        different = [n for n in known.tolist() if n not in names] or names
        raise ValueError(
            f"X has other columns than in fit, or in another order (the first: {different[0]!r}). "
            "Select them with X[ranker.feature_names_in_.tolist()]."
        )
    if n_columns != ranker.n_features_in_:
        raise ValueError(
            f"X has {n_columns} features, but {type(ranker).__name__} is expecting "
            f"{ranker.n_features_in_} features as input."
        )
    from dask import delayed

    score = partial(_block_scores, w=ranker.coef_[0], intercept=float(ranker.intercept_[0]))
    if names is not None:
        return _from_blocks([delayed(score, pure=True)(block) for block in delayed_blocks(X)])
    meta = np.empty(0)
    return single_blocks(X).map_blocks(score, dtype=np.float64, drop_axis=1, meta=meta)


def lazy_classes(ranker: Any, scores: Any) -> Any:
    """The class of each score of a Dask array, by the thresholds of the ranker, or by its sign."""
    thresholds = getattr(ranker, "thresholds_", np.zeros(1))
    order = getattr(ranker, "_ascending", np.arange(ranker.classes_.size))
    label = partial(_block_classes, thresholds=thresholds, labels=ranker.classes_[order])
    return scores.map_blocks(label, dtype=ranker.classes_.dtype)


def _block_scores(block: Any, w: Vector, intercept: float) -> Vector:
    X = matrix_of(block)
    if not np.isfinite(X.data if sp.issparse(X) else X).all():
        raise ValueError("X has NaN or infinite values. Fill in missing values first.")
    return make_design(X).scores(w) + intercept


def _from_blocks(blocks: list[Any]) -> Any:
    """A Dask array of blocks of unknown sizes."""
    import dask.array

    parts = [dask.array.from_delayed(block, (np.nan,), np.float64) for block in blocks]
    return dask.array.concatenate(parts, allow_unknown_chunksizes=True)


def _block_classes(scores: Vector, thresholds: Vector, labels: NDArray) -> NDArray:
    return labels[np.searchsorted(thresholds, scores, side="left")]
