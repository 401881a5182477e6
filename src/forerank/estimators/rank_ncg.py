"""RankNCG: the all-pairs logistic objective by nonlinear conjugate gradients (raykar2007)."""

from collections.abc import Iterable
from typing import Self

from numpy.typing import ArrayLike

from forerank._validation import check_choice, check_number
from forerank.design import make_design
from forerank.estimators.base import GraphRanker
from forerank.estimators.linear import LINEAR_ATTRIBUTES, LINEAR_PARAMETERS, LinearRanker
from forerank.losses import DirectLogistic, ErfcLogistic, Logistic, Loss
from forerank.pairsums.erfc import check_eps

__all__ = ["RankNCG"]


class RankNCG(GraphRanker, LinearRanker):
    __doc__ = f"""Ranks by a linear score fitted on all pairs by nonlinear conjugate gradients
    (raykar2007).

    Minimises  sum_{{(i, j)}} w_i w_j l(x_i w - x_j w) / sum_{{(i, j)}} w_i w_j + alpha/2 ||w||^2
    with the logistic loss, over every pair in which row i should be ranked above row j. It is the
    method of the paper, for comparison: `PairwiseRanker(loss="logistic")` minimises the same
    objective with exact sums, and is faster.

    Parameters
    ----------
    sums : {{"erfc", "exact", "direct"}}, default="erfc"
        How the pairs are summed. "erfc": the paper's fast method, in which erfc replaces the
        sigmoid and is summed to a precision of `eps`. "exact": the sigmoid itself, on a grid.
        "direct": the sigmoid itself, pair by pair; its cost is the number of pairs.
    alpha : float, default=1e-4
        Strength of the penalty. The paper's lambda is alpha times the weight of all pairs.
    graph : None, str or iterable of (preferred, other) labels, default=None
        Which classes are ranked above which; as in `PairwiseRanker`.
    eps : float, default=1e-6
        Precision of the sums of erfc, between 1e-13 and 1; see `forerank.pairsums.erfc_sum`.
    tol : float, default=1e-3
        The certificate to reach: the gradient norm relative to the gradient at zero, every column
        in its own unit.
    max_iter : int, default=1000
        Most iterations.
    {LINEAR_PARAMETERS}

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
    classes_ : array
    thresholds_ : array of shape (n_classes - 1,)
        As in `PairwiseRanker`.
    {LINEAR_ATTRIBUTES}

    Notes
    -----
    With sums="erfc", `objective_` is that of the loss whose slope is the erfc
    (`forerank.losses.ErfcLogistic`). Cost of an iteration: two products with X, and two or three
    sums over the scores at p N (erfc, p = 10 terms at eps = 1e-6), N (exact) or all pairs (direct).
    There is no preconditioner: scale the columns of X.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from forerank.metrics import wmw
    >>> X, y = load_wine(return_X_y=True)
    >>> ranker = make_pipeline(StandardScaler(), RankNCG(graph="order")).fit(X, y)
    >>> round(wmw(y, ranker.decision_function(X)), 2)
    1.0
    """

    def __init__(
        self,
        sums: str = "erfc",
        *,
        alpha: float = 1e-4,
        graph: str | Iterable[tuple] | None = None,
        eps: float = 1e-6,
        tol: float = 1e-3,
        max_iter: int = 1000,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.sums = sums
        self.alpha = alpha
        self.graph = graph
        self.eps = eps
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_choice("sums", self.sums, ("erfc", "exact", "direct"))
        check_number("alpha", self.alpha, low=0.0)
        check_eps(self.eps)
        check_number("tol", self.tol, low=0.0, strict=True)
        check_number("max_iter", self.max_iter, low=1, integer=True)

    def _fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, qid: ArrayLike | None
    ) -> Self:
        self._check_parameters()
        X, codes = self._read(X, y)
        losses: dict[str, Loss] = {
            "erfc": ErfcLogistic(self.eps),
            "exact": Logistic(),
            "direct": DirectLogistic(),
        }
        loss = losses[self.sums]
        X, codes, objective, weight = self._merged_pairs(X, codes, loss, sample_weight, qid)
        result = self._solve(objective, make_design(X), solver="ncg")
        self._set_thresholds(result.scores, codes, weight)
        return self
