"""RankNet: a network with one hidden layer, or none, fitted on all pairs."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from forerank._kernels import serial_blas
from forerank._typing import Vector
from forerank._validation import check_number
from forerank.estimators.base import GraphRanker, warn_equal_scores, warn_unconverged
from forerank.solvers.network import Network, fit_network
from forerank.solvers.result import GRADIENT_NORM, Progress

__all__ = ["RankNet"]


class RankNet(GraphRanker):
    """Ranks by the output of a small neural network fitted on all pairs (Burges et al. 2005).

    The score is v . tanh(W x + b), or w . x without hidden units. Minimises

        sum_{(i, j)} w_i w_j log(1 + exp(s_j - s_i)) / sum_{(i, j)} w_i w_j
            + alpha/2 (||W||^2 + ||v||^2)

    over every pair in which row i should be ranked above row j. The gradient with respect to the
    scores is exact over all pairs and costs one pass over the rows, so an epoch costs as much as
    for a pointwise loss; the original trains on the pairs one by one.

    Parameters
    ----------
    hidden_units : int, default=10
        Size of the hidden layer; 0 for a linear score.
    alpha : float, default=1e-4
        Strength of the penalty on all weights but the biases b.
    graph : None, str or iterable of (preferred, other) labels, default=None
        Which classes are ranked above which; as in `PairwiseRanker`.
    tol : float, default=1e-3
        The gradient norm to reach, relative to that of the loss at the initial weights, columns in
        their own units. With hidden units it certifies a stationary point, not the minimum.
    max_iter : int, default=500
        Most iterations of L-BFGS, each an epoch or a little more.
    warm_start : bool, default=False
        Whether a second call of fit starts from the weights of the first.
    random_state : int, RandomState or None, default=None
        For the initial weights of a hidden layer, drawn for columns in their own units; a linear
        score starts at zero.
    verbose : bool, default=False
        Whether to print each iteration.

    Attributes
    ----------
    coefs_ : list of arrays
        W as (n_features, hidden_units) and v as (hidden_units, 1); or w as (n_features, 1) alone.
    intercepts_ : list of arrays
        b as (hidden_units,); empty without a hidden layer.
    intercept_ : array of shape (1,)
    classes_ : array
    thresholds_ : array of shape (n_classes - 1,)
        As in `PairwiseRanker`.
    wmw_bound_ : float
        As in `PairwiseRanker`.
    n_iter_ : int
    objective_ : float
        The value reached.
    optimality_ : float
        The gradient norm reached; see `tol`.
    history_ : list of forerank.solvers.Iteration
        Objective and gradient norm before every iteration.
    n_features_in_ : int
    feature_names_in_ : array
        Only where X has column names.

    Notes
    -----
    Cost of an epoch: two products of X with `hidden_units` vectors, and N for the pairs.
    Scale the columns of X. A float32 X is multiplied in single precision.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (400, 2))
    >>> y = X[:, 0] * X[:, 1] > 0  # not linearly separable
    >>> from sklearn.metrics import roc_auc_score
    >>> ranker = RankNet(random_state=0).fit(X, y)
    >>> bool(roc_auc_score(y, ranker.decision_function(X)) > 0.98)
    True
    """

    def __init__(
        self,
        hidden_units: int = 10,
        *,
        alpha: float = 1e-4,
        graph: str | Iterable[tuple] | None = None,
        tol: float = 1e-3,
        max_iter: int = 500,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.hidden_units = hidden_units
        self.alpha = alpha
        self.graph = graph
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, qid: ArrayLike | None
    ) -> Self:
        check_number("hidden_units", self.hidden_units, low=0, integer=True)
        check_number("alpha", self.alpha, low=0.0)
        check_number("tol", self.tol, low=0.0, strict=True)
        check_number("max_iter", self.max_iter, low=1, integer=True)
        rows, codes = self._read(X, y)
        objective, weight = self._pairs(codes, "logistic", sample_weight, qid)
        network = Network(rows.shape[1], self.hidden_units)
        start = self._warm_parameters(network)
        rng = check_random_state(self.random_state)
        progress = Progress(verbose=bool(self.verbose))
        try:
            with serial_blas():  # threads work on chunks of rows
                fit_network(
                    objective,
                    network,
                    rows,
                    self.alpha,
                    rng=rng,
                    start=start,
                    tol=self.tol,
                    max_iter=self.max_iter,
                    progress=progress,
                )
        finally:  # also after an interruption, which leaves the latest weights
            if progress.w is not None:
                self.coefs_, self.intercepts_ = network.layers(progress.w)
                self.history_, last = progress.history, progress.history[-1]
                self.n_iter_ = len(progress.history) - 1
                self.objective_, self.optimality_ = last.objective, last.optimality
                scores = network.scores(rows, progress.w)
                self._set_thresholds(scores, codes, weight)
                self._set_wmw_bound(objective.at(scores).value)
        if not self.optimality_ <= self.tol:
            warn_unconverged(self, GRADIENT_NORM)
        elif self.n_iter_ == 0 and start is None:
            warn_equal_scores(self)
        return self

    def _parameters(self) -> Vector:
        return np.concatenate([part.ravel() for part in (*self.coefs_, *self.intercepts_)])

    def _warm_parameters(self, network: Network) -> Vector | None:
        if not (self.warm_start and hasattr(self, "coefs_")):
            return None
        w = self._parameters()
        if w.size != network.size:
            raise ValueError(
                "warm_start=True continues from a network of shapes "
                f"{[c.shape for c in self.coefs_]}, but hidden_units is {network.n_hidden}. Fit a "
                "new estimator, or set warm_start=False."
            )
        return w

    def decision_function(self, X: ArrayLike) -> Vector:
        """Scores; rows with higher scores are ranked above others.

        Cost: a product of X with one vector per hidden unit.
        """
        check_is_fitted(self)
        n_hidden = self.coefs_[0].shape[1] if len(self.coefs_) > 1 else 0
        network = Network(self.n_features_in_, n_hidden)
        return network.scores(self._validated(X), self._parameters()) + self.intercept_[0]
