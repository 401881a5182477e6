"""Ranker for average precision: MAPRanker."""

from typing import Self

from numpy.typing import ArrayLike

from forerank._typing import Mask, Matrix, Vector
from forerank.design import make_design
from forerank.estimators.top_base import STRUCTURED_PARAMETERS, TopEstimator
from forerank.estimators.two_class import EXAMPLE_DATA
from forerank.objectives.structured import AveragePrecision
from forerank.solvers import SolverResult, bundle

__all__ = ["MAPRanker"]


class MAPRanker(TopEstimator):
    __doc__ = f"""Maximises average precision (SVM-MAP, Yue et al. 2007).

    Minimises  max over rankings of (1 - AP) - (1 / (m n)) sum over swapped pairs of (s_i - s_j),
    plus alpha/2 ||w||^2. The worst ranking is found in (m + n) log n steps.

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

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the weights; parameters as in `TopPush.fit`, without sample weights."""
        return self._fit(X, y)

    def _fit_rows(self, X: Matrix, positive: Mask, weight: Vector | None) -> SolverResult:
        return self._run(bundle, AveragePrecision(positive), make_design(X), self.alpha)
