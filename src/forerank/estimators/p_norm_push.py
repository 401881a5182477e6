"""Ranker between all pairs and the top of the list: PNormPush."""

from collections.abc import Sequence
from typing import Any, Self

from numpy.typing import ArrayLike

from forerank._typing import Vector
from forerank._validation import check_number
from forerank.design import make_design
from forerank.estimators.linear import LINEAR_ATTRIBUTES, LINEAR_PARAMETERS
from forerank.estimators.two_class import EXAMPLE_DATA, TwoClassRanker
from forerank.objectives.p_norm import PNorm
from forerank.solvers import SolverResult
from forerank.solvers.path import Solve

__all__ = ["PNormPush"]


class PNormPush(TwoClassRanker):
    __doc__ = f"""Pushes the higher negatives down more than the lower ones (p-norm push, Rudin
    2009).

    Minimises  (mean over negatives j of (mean over positives i of exp(-(x_i w - x_j w)))^p)^(1/p)
    + alpha/2 ||w||^2. With p = 1 this is `PairwiseRanker("exponential")`, and with p towards
    infinity `TopPush("exponential")`: between the AUC and the top of the list. Rudin has no root;
    it matters only where there is a penalty, and gives alpha the same meaning for every p.

    Parameters
    ----------
    p : float, default=4.0
        The power of the loss of a negative, at least 1.
    alpha : float, default=1e-3
        Strength of the penalty.
    tol : float, default=1e-3
        The gradient norm to reach, relative to that at zero weights, every column in its own unit.
    max_iter : int, default=200
        Most iterations over all rows.
    {LINEAR_PARAMETERS}

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
        Set for `predict`: as much weight of the training rows is scored above zero as the positive
        class has.
    classes_ : array of shape (2,)
        The second is the positive class.
    {LINEAR_ATTRIBUTES}

    Notes
    -----
    Cost: a few dozen products with X, and a pass over the scores between them: Newton's method.

    Examples
    --------
    {EXAMPLE_DATA}
    >>> from forerank.metrics import pos_at_top
    >>> round(float(pos_at_top(y, PNormPush().fit(X, y).decision_function(X))), 2)
    0.97
    """

    def __init__(
        self,
        p: float = 4.0,
        *,
        alpha: float = 1e-3,
        tol: float = 1e-3,
        max_iter: int = 200,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.p = p
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_number("p", self.p, low=1.0)
        check_number("alpha", self.alpha, low=0.0)
        check_number("tol", self.tol, low=0.0, strict=True)
        check_number("max_iter", self.max_iter, low=1, integer=True)

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
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
        X, codes, positive, weight = self._read_two_classes(X, y, sample_weight, merge=True)
        objective, design = PNorm(positive, self.p, weight=weight), make_design(X)

        def solve(previous: Sequence[Vector] = ()) -> SolverResult:
            result = self._solve(objective, design, previous)
            self._set_intercept(result.scores, codes, weight)
            return result

        return solve
