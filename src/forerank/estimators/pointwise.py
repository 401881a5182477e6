"""Linear rankers fitted row by row: PointwiseRanker."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.class_weight import compute_class_weight

from forerank._typing import Vector
from forerank._validation import is_dask, is_tensor
from forerank.design import make_design
from forerank.estimators.dask_fits import prepare_dask_points
from forerank.estimators.linear import CHECKPOINT_PARAMETER, LINEAR_ATTRIBUTES, LINEAR_PARAMETERS
from forerank.estimators.part_fits import check_checkpoint
from forerank.estimators.streams import is_stream, prepare_stream_points
from forerank.estimators.tensors import prepare_points
from forerank.estimators.two_class import TwoClassRanker
from forerank.objectives import Pointwise, Profiled
from forerank.solvers import SolverResult
from forerank.solvers.path import Solve

__all__ = ["PointwiseRanker", "class_weights"]


class PointwiseRanker(TwoClassRanker):
    __doc__ = f"""Ranks by a linear score fitted row by row.

    Minimises  sum_i w_i l(y_i (x_i w + b)) / sum_i w_i + alpha/2 ||w||^2  with y_i in {{-1, +1}}.
    With the logistic loss this is logistic regression (alpha = 1 / (n C)), with the hinges and
    class weights the WSVM and cs-SVM of shen2013 and li2014, with the exponential loss the
    univariate ranker of kotlowski2011.

    Parameters
    ----------
    loss : {{"logistic", "hinge", "squared_hinge", "exponential", "squared"}}, default="logistic"
        The loss on the margin y_i s_i.
    alpha : float, default=1e-4
        Strength of the penalty; the intercept is not penalised.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, times the sample weights. "balanced" gives both classes the same
        total weight.
    fit_intercept : bool, default=True
        Whether to add a constant to the scores. A constant does not change a ranking, but it
        changes the fitted weights.
    tol : float, default=1e-3
        The certificate to reach: the gradient norm relative to that without columns, every column
        in its own unit; for the hinge, the relative duality gap. Smooth losses also go on while the
        objective is expected to decrease by more than 3 tol of its value, so that a small alpha has
        the same weights from any start.
    max_iter : int, default=200
        Most iterations over all rows; five passes of coordinate descent (hinge) count as one.
    {LINEAR_PARAMETERS}
    {CHECKPOINT_PARAMETER}

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
    classes_ : array of shape (2,)
        The second is the positive class.
    {LINEAR_ATTRIBUTES}

    Notes
    -----
    Cost: a few dozen products with X. Hinge: dual coordinate descent, and a bundle method if that
    is slow; all other losses: Newton's method. A warm start of the hinge needs as many rows as
    before.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = make_pipeline(StandardScaler(), PointwiseRanker(class_weight="balanced")).fit(X, y)
    >>> round(float(ranker.score(X, y)), 2)
    0.99
    """

    _fits_streams = True

    def __init__(
        self,
        loss: str = "logistic",
        *,
        alpha: float = 1e-4,
        class_weight: Mapping | str | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 200,
        warm_start: bool = False,
        verbose: bool = False,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose
        self.checkpoint = checkpoint

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Or rows of `forerank.open_rows`, without further arguments.
        y : array-like of shape (n_samples,)
            Two classes with any labels; the one that sorts last is the positive class.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights of the rows.

        Returns
        -------
        self
        """
        self._prepare(X, y, sample_weight=sample_weight)()
        return self

    def _prepare(self, X: Any, y: Any, sample_weight: Any = None) -> Solve:
        self._check_parameters()
        check_checkpoint(self, in_parts=is_dask(X) or is_stream(X))
        if is_tensor(X):
            return prepare_points(self, X, y, sample_weight)
        if is_dask(X):
            return prepare_dask_points(self, X, y, sample_weight)
        if is_stream(X):
            return prepare_stream_points(self, X, y, sample_weight)
        X, codes, positive, weight = self._read_two_classes(X, y, sample_weight, merge=True)
        if self.class_weight is not None:
            per_class = class_weights(self.class_weight, self.classes_, codes, weight)
            weight = per_class[codes] if weight is None else weight * per_class[codes]
        objective = Pointwise(positive, self.loss, weight=weight)
        intercept = bool(self.fit_intercept)
        # Without a column for the intercept, the best intercept is part of the objective: the
        # dual bounds of the hinge need a penalty on every weight, and the exponential loss would
        # overflow far from the best intercept.
        if not (intercept and self.loss in ("hinge", "exponential")):
            design = make_design(X, intercept=intercept)
            return lambda previous=(): self._solve(objective, design, previous)
        profiled, design = Profiled(objective), make_design(X)

        def solve(previous: Sequence[Vector] = ()) -> SolverResult:
            try:
                return self._solve(profiled, design, previous)
            finally:  # also after an interruption, which leaves the latest weights
                if hasattr(self, "coef_"):
                    self.intercept_ = np.array([profiled.best_shift(design.scores(self.coef_[0]))])

        return solve


def class_weights(
    class_weight: Mapping | str, classes: NDArray, codes: NDArray[np.integer], weight: Vector | None
) -> Vector:
    """The weight of each class; "balanced" takes the sample weights into account."""
    if class_weight == "balanced":
        totals = np.bincount(codes, weights=weight, minlength=classes.size)
        return totals.sum() / (classes.size * totals)
    if not isinstance(class_weight, Mapping):
        raise ValueError(f'class_weight must be a dict, "balanced" or None; got {class_weight!r}.')
    weights = compute_class_weight(dict(class_weight), classes=classes, y=classes)
    for label, value in zip(classes.tolist(), weights.tolist(), strict=True):
        if not (0.0 < value < np.inf):
            raise ValueError(
                f"class_weight must be positive and finite; class {label!r} has {value!r}."
            )
    return weights
