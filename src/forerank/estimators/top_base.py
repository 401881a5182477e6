"""Bases of the rankers for the top of the list: parameters, docstrings and fitting."""

from collections.abc import Callable
from typing import Any, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forerank._typing import Mask, Matrix, Vector
from forerank._validation import check_number
from forerank.estimators.linear import LINEAR_PARAMETERS
from forerank.estimators.two_class import TwoClassRanker
from forerank.solvers import Progress, SolverResult

__all__ = [
    "COMMON_PARAMETERS",
    "STRUCTURED_PARAMETERS",
    "GroupedTopEstimator",
    "TopEstimator",
    "WeightedTopEstimator",
]

R = TypeVar("R", bound=SolverResult)

COMMON_PARAMETERS = f"""{LINEAR_PARAMETERS}

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
        Set for `predict`: as much weight of the training rows is scored above zero as the positive
        class has.
    classes_ : array of shape (2,)
        The second is the positive class.
    n_iter_ : int
    objective_ : float
        The minimum reached.
    optimality_ : float
        The relative duality gap reached.
    history_ : list of forerank.solvers.Iteration
    n_features_in_ : int
    feature_names_in_ : array
        Only where X has column names."""

STRUCTURED_PARAMETERS = f"""alpha : float, default=1e-4
        Strength of the penalty alpha/2 ||w||^2.
    tol : float, default=1e-3
        The relative duality gap to reach.
    max_iter : int, default=1000
        Most cutting planes.
    {COMMON_PARAMETERS}"""


class TopEstimator(TwoClassRanker):
    """Base of the rankers for the top of the list."""

    _auto_max_iter = False
    # Whether the objective takes sample weights.
    _has_weights = False

    def __init__(
        self, alpha: float, tol: float, max_iter: Any, warm_start: bool, verbose: bool
    ) -> None:
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_number("alpha", self.alpha, low=0.0, strict=True)
        check_number("tol", self.tol, low=0.0, strict=True)
        if not (self._auto_max_iter and self.max_iter == "auto"):
            check_number("max_iter", self.max_iter, low=1, integer=True)

    def _fit(self, X: Any, y: Any, sample_weight: Any = None, qid: Any = None) -> Self:
        self._check_parameters()
        X, codes, positive, weight, group = self._read_groups(
            X, y, sample_weight, qid, ranks=True, merge=self._has_weights
        )
        if group is None:
            result = self._fit_rows(X, positive, weight)
        else:
            result = self._fit_groups(X, positive, weight, group)
        self._set_intercept(result.scores, codes, weight)
        return self

    def _fit_rows(self, X: Matrix, positive: Mask, weight: Vector | None) -> SolverResult:
        raise NotImplementedError

    def _fit_groups(
        self, X: Matrix, positive: Mask, weight: Vector | None, group: NDArray[np.integer]
    ) -> SolverResult:
        raise NotImplementedError

    def _run(self, solve: Callable[..., R], *arguments: Any, **options: Any) -> R:
        """The result of a solver, whose weights are kept."""
        limits = {"tol": self.tol, "max_iter": self.max_iter}
        options = {"start": self._start(), **limits, **options}

        def run(progress: Progress) -> R:
            return solve(*arguments, progress=progress, **options)

        return cast(R, self._run_solver(run, max_iter=options["max_iter"]))

    def _run_from_dual(self, solve: Callable[..., R], *arguments: Any) -> R:
        """`_run` for a solver that on a path of penalties, where the rows stay the same, also
        starts from the dual variables of the last fit.
        """
        result = self._run(solve, *arguments, start_dual=self._dual)
        self._dual = result.dual if self._on_path else None
        return result


class WeightedTopEstimator(TopEstimator):
    """Base of the rankers for the top that take sample weights."""

    _has_weights = True

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes with any labels; the one that sorts last is the positive class.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights of the rows. A row of weight two counts as two rows.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)


class GroupedTopEstimator(WeightedTopEstimator):
    """Base of the rankers for the top that take sample weights and groups."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        qid: ArrayLike | None = None,
    ) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes with any labels; the one that sorts last is the positive class.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights of the rows. A row of weight two counts as two rows.
        qid : array-like of shape (n_samples,), optional
            The group of each row, any labels in any order. A positive is compared with the
            negatives of its group; the objective is the mean over the positives of all groups, so
            that a group counts by the weight of its positives.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, qid)
