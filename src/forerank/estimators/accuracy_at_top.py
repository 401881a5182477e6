"""Ranker for accuracy at the top: AATPRanker."""

from numbers import Real
from typing import Self

from numpy.typing import ArrayLike

from forerank._typing import Mask, Matrix, Vector
from forerank._validation import check_choice
from forerank.design import make_design
from forerank.estimators.top_base import STRUCTURED_PARAMETERS, TopEstimator
from forerank.estimators.two_class import EXAMPLE_DATA
from forerank.solvers import SolverResult
from forerank.solvers.accuracy_at_top import accuracy_at_top

__all__ = ["AATPRanker"]


class AATPRanker(TopEstimator):
    __doc__ = f"""Accuracy at the top (AATP, Boyd et al. 2012): a threshold with a fraction of all
    rows above it.

    For a threshold row a, the anchor, minimises the mean hinge of the positives above s_a and of
    the negatives below it, plus alpha/2 ||w||^2, which is convex. The anchor should be the row with
    the fraction tau of all rows above it; which one that is depends on w.

    Parameters
    ----------
    fraction : float, default=0.1
        tau, strictly between 0 and 1.
    anchors : {{"auto", "all"}}, default="auto"
        "all" solves the problem for every row, as published: N fits. "auto" takes the row at the
        fraction under the current weights, solves, and repeats until the row does not change; a few
        fits.
    {STRUCTURED_PARAMETERS}
    anchor_ : int
        The row that sets the threshold.

    Notes
    -----
    Of all fits, the one with the lowest hinge loss around its own quantile is kept; `objective_`
    and `optimality_` are those of the convex problem for its row. The choice of the row is not
    convex and has no certificate.

    Examples
    --------
    {EXAMPLE_DATA}
    >>> AATPRanker(fraction=0.5, alpha=1e-2).fit(X, y).optimality_ <= 1e-3
    True
    """

    def __init__(
        self,
        fraction: float = 0.1,
        *,
        anchors: str = "auto",
        alpha: float = 1e-4,
        tol: float = 1e-3,
        max_iter: int = 1000,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        super().__init__(alpha, tol, max_iter, warm_start, verbose)
        self.fraction = fraction
        self.anchors = anchors

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("anchors", self.anchors, ("auto", "all"))
        if not (isinstance(self.fraction, Real) and 0.0 < self.fraction < 1.0):
            raise ValueError(
                f"fraction must be a number strictly between 0 and 1; got {self.fraction!r}."
            )

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the weights; parameters as in `TopPush.fit`, without sample weights."""
        return self._fit(X, y)

    def _fit_rows(self, X: Matrix, positive: Mask, weight: Vector | None) -> SolverResult:
        problem, every = (positive, make_design(X), self.alpha), self.anchors == "all"
        result = self._run(accuracy_at_top, *problem, self.fraction, all_anchors=every)
        self.anchor_ = result.anchor
        return result
