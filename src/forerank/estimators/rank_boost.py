"""RankBoost: a sum of thresholded columns, boosted on all pairs."""

from collections.abc import Iterable, Iterator
from typing import Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from forerank._typing import Matrix, Vector
from forerank._validation import check_number
from forerank.estimators.base import GraphRanker, warn_equal_scores
from forerank.solvers.boosting import Binned, Stump, boost
from forerank.solvers.result import Progress

__all__ = ["RankBoost"]


class RankBoost(GraphRanker):
    """Ranks by a sum of step functions of single columns, boosted on all pairs (Freund, Iyer,
    Schapire and Singer 2003).

    The score is sum_t step_t [x_{k_t} > threshold_t]. Each round adds the step function with the
    steepest descent of the all-pairs exponential loss  sum_{(i, j)} w_i w_j exp(s_j - s_i) /
    sum_{(i, j)} w_i w_j,  with the step that minimises it. For two classes this is RankBoost.B;
    with a `graph` or `qid` only their pairs count, at the same cost. There is no penalty: fewer
    rounds regularise more.

    Parameters
    ----------
    n_estimators : int, default=100
        Rounds of boosting; the paper uses 50 to 100.
    graph : None, str or iterable of (preferred, other) labels, default=None
        Which classes are ranked above which; as in `PairwiseRanker`.
    max_bins : int, default=256
        Most bins of a column, 2 to 256. Thresholds lie between bins: a column with at most this
        many different values keeps all of them.
    tol : float, default=0.0
        Boosting ends early where no step function lowers the logarithm of the loss at a rate above
        this.
    warm_start : bool, default=False
        Whether a second call of fit keeps the rounds of the first and adds rounds up to
        `n_estimators`.
    verbose : bool, default=False
        Whether to print each round.

    Attributes
    ----------
    stumps_ : list of forerank.solvers.boosting.Stump
        Column, threshold and step of every round.
    feature_importances_ : array of shape (n_features,)
        The absolute steps in each column, as shares of one.
    intercept_ : array of shape (1,)
    classes_ : array
    thresholds_ : array of shape (n_classes - 1,)
        As in `PairwiseRanker`.
    wmw_bound_ : float
        As in `PairwiseRanker`, from the exponential loss.
    n_iter_ : int
        Rounds taken, those of earlier calls included.
    objective_ : float
        The mean exponential loss reached.
    optimality_ : float
        The largest rate at which another step function lowers the logarithm of the loss; 0 at the
        minimum over all sums.
    history_ : list of forerank.solvers.Iteration
        Loss and optimality before every round.
    n_features_in_ : int
    feature_names_in_ : array
        Only where X has column names.

    Notes
    -----
    Cost: a sort of every column, then one pass over N x d bytes per round. Memory: N x d
    bytes; sparse data become dense in this form.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = RankBoost(n_estimators=50).fit(X[::2], y[::2])
    >>> bool(roc_auc_score(y[1::2], ranker.decision_function(X[1::2])) > 0.98)
    True
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        graph: str | Iterable[tuple] | None = None,
        max_bins: int = 256,
        tol: float = 0.0,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.n_estimators = n_estimators
        self.graph = graph
        self.max_bins = max_bins
        self.tol = tol
        self.warm_start = warm_start
        self.verbose = verbose

    def _fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, qid: ArrayLike | None
    ) -> Self:
        check_number("n_estimators", self.n_estimators, low=1, integer=True)
        check_number("max_bins", self.max_bins, low=2, integer=True)
        if self.max_bins > 256:
            raise ValueError(
                f"max_bins must be at most 256, as bins are single bytes; got {self.max_bins!r}."
            )
        check_number("tol", self.tol, low=0.0)
        kept = self.stumps_ if self.warm_start and hasattr(self, "stumps_") else []
        if len(kept) > self.n_estimators:
            raise ValueError(
                f"warm_start=True keeps the {len(kept)} rounds of the last fit, more than "
                f"n_estimators={self.n_estimators}. Raise it, or set warm_start=False."
            )
        rows, codes = self._read(X, y)
        objective, weight = self._pairs(codes, "exponential", sample_weight, qid)
        columns = rows.tocsc() if sp.issparse(rows) else rows
        weighted = np.ones(rows.shape[0], dtype=bool) if weight is None else weight > 0.0
        binned = Binned.of(lambda k: _column(columns, k), rows.shape[1], weighted, self.max_bins)
        self.stumps_: list[Stump] = list(kept)
        scores = self._sum_of_steps(columns)
        progress = Progress(verbose=bool(self.verbose))
        try:
            n_rounds = self.n_estimators - len(kept)
            boost(objective, binned, n_rounds, self.stumps_, scores, self.tol, progress)
        finally:  # also after an interruption, which leaves the rounds so far
            self.n_iter_ = len(self.stumps_)
            self.history_ = progress.history
            if progress.history:
                last = progress.history[-1]
                self.objective_, self.optimality_ = last.objective, last.optimality
            self._set_thresholds(scores, codes, weight)
            self._set_wmw_bound(objective.at(scores).value, "exponential")
        if not self.stumps_:
            cause = "no threshold on a column splits more pairs one way than the other"
            warn_equal_scores(self, cause, "Add columns, or lower tol.")
        return self

    @property
    def feature_importances_(self) -> Vector:
        """The absolute steps in each column, as shares of one; zeros without steps."""
        check_is_fitted(self)
        total = np.zeros(self.n_features_in_)
        for stump in self.stumps_:
            total[stump.column] += abs(stump.step)
        return total / total.sum() if total.any() else total

    def decision_function(self, X: ArrayLike) -> Vector:
        """Scores; higher is ranked above. Cost: a binary search per row and column used."""
        return self._sum_of_steps(self._columns_of(X)) + self.intercept_[0]

    def staged_decision_function(self, X: ArrayLike) -> Iterator[Vector]:
        """Scores after each round, with the last intercept; for the choice of `n_estimators`."""
        columns = self._columns_of(X)
        scores = np.full(columns.shape[0], self.intercept_[0])
        for stump in self.stumps_:
            scores = scores + stump.step * (_column(columns, stump.column) > stump.threshold)
            yield scores

    def _columns_of(self, X: ArrayLike) -> Matrix:
        check_is_fitted(self)
        return self._validated(X, sparse="csc")

    def _sum_of_steps(self, columns: Matrix) -> Vector:
        scores = np.zeros(columns.shape[0])
        for k in sorted({stump.column for stump in self.stumps_}):
            stumps = sorted((s.threshold, s.step) for s in self.stumps_ if s.column == k)
            thresholds, steps = np.array(stumps).T
            total = np.concatenate([[0.0], np.cumsum(steps)])
            scores += total[np.searchsorted(thresholds, _column(columns, k), side="left")]
        return scores


def _column(columns: Matrix, k: int) -> Vector:
    """One column as a dense array of doubles."""
    if not sp.issparse(columns):
        return columns[:, k].astype(float)
    out = np.zeros(columns.shape[0])
    part = slice(columns.indptr[k], columns.indptr[k + 1])
    np.add.at(out, columns.indices[part], columns.data[part])
    return out
