"""RankNet: a network of one hidden layer, or none, fitted on all pairs by back-propagation."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import OptimizeResult, minimize
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from forerank._kernels import in_row_chunks, serial_blas
from forerank._typing import Matrix, Vector
from forerank._validation import check_number
from forerank.design import make_design, sum_over_chunks
from forerank.estimators.base import GraphRanker, warn_equal_scores, warn_unconverged
from forerank.objectives import AllPairs
from forerank.solvers.result import Progress, reference_norm
from forerank.solvers.units import Units, column_units

__all__ = ["RankNet"]


class RankNet(GraphRanker):
    """Ranks by the output of a small neural network fitted on all pairs (Burges et al. 2005).

    The score is v . tanh(W x + b), or w . x without hidden units. Minimises

        sum_{(i, j)} w_i w_j log(1 + exp(s_j - s_i)) / sum_{(i, j)} w_i w_j + alpha/2 (||W||^2 + ||v||^2)

    over every pair in which row i should stand ahead of row j. The gradient with respect to the
    scores is exact over all pairs and costs one pass over the rows; it is then propagated back
    through the network. An epoch therefore costs what it would cost for a pointwise loss, where the
    original trains on the pairs one by one.

    Parameters
    ----------
    hidden_units : int, default=10
        Size of the hidden layer; 0 for a linear score.
    alpha : float, default=1e-4
        Strength of the penalty on all weights but the biases b.
    graph : None, str or iterable of (preferred, other) labels, default=None
        Which classes are ranked ahead of which; as in `PairwiseRanker`.
    tol : float, default=1e-3
        Where to stop: the gradient norm relative to that of the loss at a cold start, columns in
        their own units. With hidden units that certifies a stationary point, not the minimum.
    max_iter : int, default=500
        The most steps of L-BFGS, each of which is an epoch or a little more.
    warm_start : bool, default=False
        Whether a second call of fit begins at the weights of the first.
    random_state : int, RandomState or None, default=None
        For the first weights of a hidden layer, drawn for columns in their own units; a linear
        score starts at zero.
    verbose : bool, default=False
        Whether to print each step.

    Attributes
    ----------
    coefs_ : list of arrays
        W as (n_features, hidden_units) and v as (hidden_units, 1); or w as (n_features, 1) alone.
    intercepts_ : list of arrays
        b as (hidden_units,), where there is a hidden layer.
    intercept_ : array of shape (1,)
    classes_ : array
    thresholds_ : array of shape (n_classes - 1,)
        Scores that cut the training rows into grades of their true sizes, as in `PairwiseRanker`.
    n_iter_ : int
        Steps taken.
    objective_ : float
        The value reached.
    optimality_ : float
        The gradient norm reached; see `tol`.
    history_ : list of forerank.solvers.Iteration
        Objective and gradient norm before every step.
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
    >>> y = X[:, 0] * X[:, 1] > 0  # no line tells these apart
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
            Two classes with any labels, or grades with `graph`; the label that sorts last is ranked
            ahead.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights of the rows; a pair weighs the product of its two.
        qid : array-like of shape (n_samples,), optional
            The group of each row, any labels in any order. Pairs are formed inside a group only.

        Returns
        -------
        self
        """
        check_number("hidden_units", self.hidden_units, low=0, integer=True)
        check_number("alpha", self.alpha, low=0.0)
        check_number("tol", self.tol, low=0.0, strict=True)
        check_number("max_iter", self.max_iter, low=1, integer=True)
        rows, codes = self._read(X, y)
        objective, weight = self._pairs(codes, "logistic", sample_weight, qid)
        network = _Network(rows.shape[1], self.hidden_units)
        units = column_units(objective, make_design(rows))
        cold = network.outwards(network.draw(check_random_state(self.random_state)), units)
        start = self._warm_parameters(network)
        progress = Progress(verbose=bool(self.verbose))
        try:
            with serial_blas():  # threads work on chunks of rows
                self._minimise(
                    objective,
                    network,
                    rows,
                    units,
                    cold,
                    cold if start is None else start,
                    progress,
                )
        finally:  # an interruption leaves the latest weights
            if progress.w is not None:
                self.coefs_, self.intercepts_ = network.parts(progress.w)
                self.history_ = progress.history
                self.n_iter_ = len(progress.history) - 1
                self.objective_, self.optimality_ = (
                    progress.history[-1].objective,
                    progress.history[-1].optimality,
                )
                self._set_thresholds(network.scores(rows, progress.w), codes, weight)
        if not self.optimality_ <= self.tol:
            warn_unconverged(self, "relative gradient norm")
        elif self.n_iter_ == 0 and start is None:
            warn_equal_scores(self)
        return self

    def _minimise(
        self,
        objective: AllPairs,
        network: "_Network",
        X: Matrix,
        units: Units,
        cold: Vector,
        start: Vector,
        progress: Progress,
    ) -> None:
        """L-BFGS over the parameters for columns in their own units; parameters for X as it is come
        in and go out.
        """
        decay = self.alpha * network.decayed()
        reference = 0.0
        latest: tuple[Vector, float, float] = (start, np.inf, np.inf)

        def value_and_gradient(inner: Vector) -> tuple[float, Vector]:
            nonlocal latest
            w = network.outwards(inner, units)
            hidden = network.hidden(X, w)
            there = objective.at(network.output(X, hidden, w))
            gradient = network.gradient_inwards(
                network.back(X, hidden, w, there.gradient) + decay * w, units
            )
            value = there.value + 0.5 * float(decay @ w**2)
            latest = w, value, float(np.linalg.norm(gradient))
            return value, gradient

        def note(intermediate_result: OptimizeResult) -> None:
            # L-BFGS evaluates the point it accepts last.
            w, value, norm = latest
            progress.record(w, X.shape[0], value, norm / reference if reference > 0.0 else 0.0)
            if progress.history[-1].optimality <= self.tol:
                raise StopIteration

        # A warm start too is measured by the gradient of a cold one on the same data.
        hidden = network.hidden(X, cold)
        pull = objective.at(network.output(X, hidden, cold)).gradient
        at_cold = (
            network.gradient_inwards(network.back(X, hidden, cold, g), units)
            for g in (pull, np.abs(pull))
        )
        reference = reference_norm(*at_cold)
        begin = network.inwards(start, units)
        value, gradient = value_and_gradient(begin)
        norm = float(np.linalg.norm(gradient))
        progress.record(start, X.shape[0], value, norm / reference if reference > 0.0 else 0.0)
        if progress.history[-1].optimality <= self.tol:
            return
        options = {
            "maxiter": self.max_iter,
            "maxfun": 2 * self.max_iter + 20,
            "ftol": 0.0,
            "gtol": 0.0,
            "maxcor": 20,
        }
        minimize(
            value_and_gradient, begin, jac=True, method="L-BFGS-B", callback=note, options=options
        )

    def _warm_parameters(self, network: "_Network") -> Vector | None:
        if not (self.warm_start and hasattr(self, "coefs_")):
            return None
        w = np.concatenate([part.ravel() for part in (*self.coefs_, *self.intercepts_)])
        if w.size != network.size:
            raise ValueError(
                f"warm_start=True continues from a network of shapes {[c.shape for c in self.coefs_]}, but "
                f"hidden_units is {network.n_hidden}. Fit a new estimator, or set warm_start=False."
            )
        return w

    def decision_function(self, X: ArrayLike) -> Vector:
        """Scores: the higher, the further ahead. Cost: a product of X with one vector per hidden
        unit.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        network = _Network(
            self.n_features_in_, self.coefs_[0].shape[1] if len(self.coefs_) > 1 else 0
        )
        w = np.concatenate([part.ravel() for part in (*self.coefs_, *self.intercepts_)])
        return network.scores(X, w) + self.intercept_[0]


@dataclass(frozen=True)
class _Network:
    """Scores as a function of X and one vector of parameters: W, v and b, or w alone."""

    n_columns: int
    n_hidden: int

    @property
    def size(self) -> int:
        return self.n_columns if self.n_hidden == 0 else self.n_hidden * (self.n_columns + 2)

    def parts(self, w: Vector) -> tuple[list[Vector], list[Vector]]:
        """Weights and biases by layer; views of w."""
        if self.n_hidden == 0:
            return [w.reshape(-1, 1)], []
        end = self.n_columns * self.n_hidden
        first, second = (
            w[:end].reshape(self.n_columns, self.n_hidden),
            w[end : end + self.n_hidden].reshape(-1, 1),
        )
        return [first, second], [w[end + self.n_hidden :]]

    def inwards(self, w: Vector, units: Units) -> Vector:
        """The parameters that give the same scores for columns in their own units."""
        out = w.copy()
        weights, biases = self.parts(out)
        for bias in biases:
            bias += units.mean @ weights[0]
        weights[0] *= units.unit[:, None]
        return out

    def outwards(self, w: Vector, units: Units) -> Vector:
        """The parameters for the columns as they are."""
        out = w.copy()
        weights, biases = self.parts(out)
        weights[0] /= units.unit[:, None]
        for bias in biases:
            bias -= units.mean @ weights[0]
        return out

    def gradient_inwards(self, gradient: Vector, units: Units) -> Vector:
        """The gradient with respect to the parameters for columns in their own units."""
        out = gradient.copy()
        weights, biases = self.parts(out)
        for bias in biases:
            weights[0] -= np.outer(units.mean, bias)
        weights[0] /= units.unit[:, None]
        return out

    def decayed(self) -> Vector:
        """Ones where the penalty applies, zeros for the biases."""
        out = np.ones(self.size)
        if self.n_hidden:
            out[-self.n_hidden :] = 0.0
        return out

    def draw(self, rng: np.random.RandomState) -> Vector:
        """First weights: those of a layer have the variance of one over its inputs."""
        w = np.zeros(self.size)
        if self.n_hidden:
            (first, second), (bias,) = self.parts(w)
            first[:] = rng.standard_normal(first.shape) / np.sqrt(self.n_columns)
            second[:] = rng.standard_normal(second.shape) / np.sqrt(self.n_hidden)
            bias[:] = rng.uniform(-0.5, 0.5, bias.shape)
        return w

    def hidden(self, X: Matrix, w: Vector) -> NDArray | None:
        if self.n_hidden == 0:
            return None
        (first, _), (bias,) = self.parts(w)
        first, bias = first.astype(X.dtype), bias.astype(X.dtype)
        out = np.empty((X.shape[0], self.n_hidden), dtype=X.dtype)

        def some_rows(begin: int, end: int) -> None:
            out[begin:end] = X[begin:end] @ first
            out[begin:end] += bias
            np.tanh(out[begin:end], out=out[begin:end])

        in_row_chunks(some_rows, X.shape[0], self._work(X))
        return out

    def output(self, X: Matrix, hidden: NDArray | None, w: Vector) -> Vector:
        weights = self.parts(w)[0]
        last = weights[-1][:, 0].astype(X.dtype)
        return np.asarray((X if hidden is None else hidden) @ last, dtype=float)

    def scores(self, X: Matrix, w: Vector) -> Vector:
        return self.output(X, self.hidden(X, w), w)

    def back(self, X: Matrix, hidden: NDArray | None, w: Vector, g: Vector) -> Vector:
        """The gradient with respect to the parameters from that with respect to the scores."""
        g = g.astype(X.dtype)
        if hidden is None:
            return np.asarray(X.T @ g, dtype=float)
        (_, second), _ = self.parts(w)
        v = second[:, 0].astype(X.dtype)

        def some_rows(begin: int, end: int, out: Vector) -> None:
            (first_out, second_out), (bias_out,) = self.parts(out)
            h, own = hidden[begin:end], g[begin:end]
            pull = (1.0 - h * h) * np.outer(own, v)
            first_out += X[begin:end].T @ pull
            second_out[:, 0] += h.T @ own
            bias_out += pull.sum(axis=0)

        return sum_over_chunks(some_rows, X.shape[0], (self.size,), self._work(X))

    def _work(self, X: Matrix) -> int:
        """Multiplications of a pass, for the choice of threads; rows of a sparse matrix are not cut
        up.
        """
        return 0 if sp.issparse(X) else X.shape[0] * self.n_hidden * (self.n_columns + 50)
