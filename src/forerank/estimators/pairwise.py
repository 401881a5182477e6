"""Linear rankers fitted on all pairs: PairwiseRanker."""

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, Self

from numpy.typing import ArrayLike

from forerank._typing import Vector
from forerank._validation import is_dask, is_tensor
from forerank.design import make_design
from forerank.estimators.base import GraphRanker
from forerank.estimators.dask_fits import prepare_dask_pairs
from forerank.estimators.linear import (
    CHECKPOINT_PARAMETER,
    LINEAR_ATTRIBUTES,
    LINEAR_PARAMETERS,
    LinearRanker,
)
from forerank.estimators.part_fits import check_checkpoint
from forerank.estimators.streams import is_stream, prepare_stream_pairs
from forerank.estimators.tensors import prepare_pairs
from forerank.solvers import SolverResult
from forerank.solvers.path import Solve

__all__ = ["PairwiseRanker"]


class PairwiseRanker(GraphRanker, LinearRanker):
    __doc__ = f"""Ranks by a linear score fitted on all pairs, at the cost of fitting single rows.

    Minimises  sum_{{(i, j)}} w_i w_j l(x_i w - x_j w) / sum_{{(i, j)}} w_i w_j + alpha/2 ||w||^2
    over every pair in which row i should be ranked above row j. With the hinge this is RankSVM,
    with the logistic loss the objective of RankNCG (raykar2007), with graded labels support vector
    ordinal regression over pairs. All pairs count; none are sampled.

    Parameters
    ----------
    loss : str, default="squared_hinge"
        The loss on the score difference s_i - s_j: "squared_hinge", "logistic", "hinge",
        "exponential" or "squared".
    alpha : float, default=1e-4
        Strength of the penalty.
    graph : None, str or iterable of (preferred, other) labels, default=None
        Which classes are ranked above which. None: two classes, the one that sorts last above the
        other. "order": any number of grades, higher above lower. "chain", "bipartite",
        "one-against-rest": see `forerank.graphs`. Edges over the class labels: exactly those
        preferences, without cycles. A graph that ranks the lower of two labels above the other
        reverses the scores, which scorers such as "roc_auc" do not take into account: use
        `forerank.metrics.wmw`.
    tol : float, default=1e-3
        The certificate to reach: the gradient norm relative to that without columns, every column
        in its own unit; for the hinge, the relative duality gap. Smooth losses also go on while the
        objective is expected to decrease by more than 3 tol of its value, so that a small alpha has
        the same weights from any start.
    max_iter : int, default=200
        Most iterations over all rows.
    {LINEAR_PARAMETERS}
    {CHECKPOINT_PARAMETER}

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
        A constant does not change the objective. With two classes it is set so that, in the
        training rows, as much weight is scored above zero as the higher class has; with more it is
        zero.
    classes_ : array
    thresholds_ : array of shape (n_classes - 1,)
        Scores that split the training rows into classes of their true sizes, from the lowest class
        of the graph to the highest; classes without an order are sorted by their mean scores. Used
        by `predict`.
    wmw_bound_ : float
        Lower bound on the share (the weight) of training pairs in order: 1 minus their mean loss
        divided by the loss at zero. For the logistic loss it is the log-sigmoid bound of
        raykar2007. Zero where the loss is too large to say something.
    {LINEAR_ATTRIBUTES}

    Notes
    -----
    Cost: a few dozen products with X; between them N log N for the hinges, N for the other
    losses, times log K for K grades. Hinge: a bundle method; all others: Newton's method.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = make_pipeline(StandardScaler(), PairwiseRanker()).fit(X, y)
    >>> round(float(roc_auc_score(y, ranker.decision_function(X))), 2)
    1.0
    """

    _fits_streams = True

    def __init__(
        self,
        loss: str = "squared_hinge",
        *,
        alpha: float = 1e-4,
        graph: str | Iterable[tuple] | None = None,
        tol: float = 1e-3,
        max_iter: int = 200,
        warm_start: bool = False,
        verbose: bool = False,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.graph = graph
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose
        self.checkpoint = checkpoint

    def _fit(
        self, X: ArrayLike, y: Any, sample_weight: ArrayLike | None, qid: ArrayLike | None
    ) -> Self:
        self._prepare(X, y, sample_weight=sample_weight, qid=qid)()
        return self

    def _prepare(self, X: Any, y: Any, sample_weight: Any = None, qid: Any = None) -> Solve:
        self._check_parameters()
        check_checkpoint(self, in_parts=is_dask(X) or is_stream(X))
        if is_tensor(X):
            return prepare_pairs(self, X, y, sample_weight, qid)
        if is_dask(X):
            return prepare_dask_pairs(self, X, y, sample_weight, qid)
        if is_stream(X):
            return prepare_stream_pairs(self, X, y, sample_weight, qid)
        X, codes = self._read(X, y)
        X, codes, objective, weight = self._merged_pairs(X, codes, self.loss, sample_weight, qid)
        design = make_design(X)

        def solve(previous: Sequence[Vector] = ()) -> SolverResult:
            result = self._solve(objective, design, previous)
            self._set_thresholds(result.scores, codes, weight)
            penalty = 0.5 * self.alpha * float(result.w @ result.w)
            self._set_wmw_bound(max(result.objective - penalty, 0.0), self.loss)
            return result

        return solve
