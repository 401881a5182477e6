"""TopPush with an L1 penalty: SparseTopPush."""

from forerank._typing import Mask, Matrix, Vector
from forerank.estimators.top_base import COMMON_PARAMETERS
from forerank.estimators.top_push import TopObjectiveRanker
from forerank.estimators.two_class import EXAMPLE_DATA
from forerank.objectives.top import Top
from forerank.solvers import SolverResult
from forerank.solvers.sparse_top_push import sparse_top_push

__all__ = ["SparseTopPush"]


class SparseTopPush(TopObjectiveRanker):
    __doc__ = f"""TopPush with few columns: an L1 penalty (L1SVIP, Rakotomamonjy 2012).

    Minimises  sum_i w_i l(x_i w - max_j x_j w) / sum_i w_i + alpha ||w||_1. Most weights are
    exactly zero.

    Parameters
    ----------
    loss : {{"squared_hinge", "logistic", "exponential", "hinge"}}, default="squared_hinge"
        The loss on the margin of a positive over the highest negative; L1SVIP has the hinge.
    alpha : float, default=1e-2
        Strength of the penalty. Above some value all weights are zero, and a warning is given.
    tol : float, default=1e-4
        The relative duality gap to reach.
    max_iter : int, default=200
        Most iterations.
    {COMMON_PARAMETERS}

    Notes
    -----
    Columns join a working set when their gradient exceeds alpha; cost per iteration as in
    `TopPush`, with the columns of the working set for d.

    Examples
    --------
    {EXAMPLE_DATA}
    >>> int((SparseTopPush(alpha=0.1).fit(X, y).coef_ != 0).sum()) < 15
    True
    """

    def __init__(
        self,
        loss: str = "squared_hinge",
        *,
        alpha: float = 1e-2,
        tol: float = 1e-4,
        max_iter: int = 200,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        super().__init__(alpha, tol, max_iter, warm_start, verbose)
        self.loss = loss

    def _fit_rows(self, X: Matrix, positive: Mask, weight: Vector | None) -> SolverResult:
        top = Top(positive, self.loss, weight=weight)
        result = self._run(sparse_top_push, top, X, self.alpha)
        self._warn_if_zero(result, top)
        return result
