"""Ranker for average precision: MAPRanker."""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forerank._typing import Mask, Matrix, Vector
from forerank.design import make_design
from forerank.estimators.top_base import STRUCTURED_PARAMETERS, TopEstimator
from forerank.estimators.two_class import EXAMPLE_DATA
from forerank.objectives.structured import AveragePrecision, MeanAveragePrecision
from forerank.solvers import SolverResult, bundle

__all__ = ["MAPRanker"]


class MAPRanker(TopEstimator):
    __doc__ = f"""Maximises average precision (SVM-MAP, Yue et al. 2007).

    Minimises  max over rankings of (1 - AP) - (1 / (m n)) sum over swapped pairs of (s_i - s_j),
    plus alpha/2 ||w||^2. The worst ranking is found in (m + n) log n steps. With `qid` it is the
    mean over the groups.

    Parameters
    ----------
    {STRUCTURED_PARAMETERS}

    Examples
    --------
    {EXAMPLE_DATA}
    >>> MAPRanker().fit(X, y).optimality_ <= 1e-3
    True
    """

    def __init__(
        self,
        *,
        alpha: float = 1e-4,
        tol: float = 1e-3,
        max_iter: int = 1000,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        super().__init__(alpha, tol, max_iter, warm_start, verbose)

    def fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes with any labels; the one that sorts last is the positive class.
        qid : array-like of shape (n_samples,), optional
            The group (query) of each row, any labels in any order. Rankings are those within a
            group, and the objective is the plain mean over the groups, as in mean average
            precision.

        Returns
        -------
        self
        """
        return self._fit(X, y, None, qid)

    def _fit_rows(self, X: Matrix, positive: Mask, weight: Vector | None) -> SolverResult:
        return self._run(bundle, AveragePrecision(positive), make_design(X), self.alpha)

    def _fit_groups(
        self, X: Matrix, positive: Mask, weight: Vector | None, group: NDArray[np.integer]
    ) -> SolverResult:
        objective = MeanAveragePrecision(positive, group)
        return self._run(bundle, objective, make_design(X), self.alpha)
