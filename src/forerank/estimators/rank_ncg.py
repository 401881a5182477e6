"""RankNCG: the all-pairs logistic objective by nonlinear conjugate gradients (raykar2007)."""

from collections.abc import Iterable
from dataclasses import astuple, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from forerank._typing import Matrix, Vector
from forerank._validation import check_choice, check_number
from forerank.design import make_design
from forerank.estimators.base import GraphRanker
from forerank.estimators.kernels import Kernel, NystroemFeatures, same_rows
from forerank.estimators.linear import LINEAR_ATTRIBUTES, LINEAR_PARAMETERS, LinearRanker
from forerank.losses import DirectLogistic, ErfcLogistic, Logistic, Loss
from forerank.pairsums.erfc import check_eps
from forerank.solvers import Progress, SolverResult, ncg
from forerank.solvers.kernel_ncg import kernel_ncg
from forerank.solvers.path import AlphaPath

__all__ = ["RankNCG"]

# Rows up to which a kernel matrix of all rows is made (200 MB), and the rows sampled beyond.
_EXACT_ROWS, _N_COMPONENTS = 5_000, 1_000


class RankNCG(GraphRanker, LinearRanker):
    __doc__ = f"""Ranks by a linear score, or one in the space of a kernel, fitted on all pairs by
    nonlinear conjugate gradients (raykar2007).

    Minimises  sum_{{(i, j)}} w_i w_j l(x_i w - x_j w) / sum_{{(i, j)}} w_i w_j + alpha/2 ||w||^2
    with the logistic loss, over every pair in which row i should be ranked above row j. It is the
    method of the paper, for comparison: `PairwiseRanker(loss="logistic")` minimises the same
    objective with exact sums, and is faster. With a kernel, scores are f(x) = sum_i b_i k(x, x_i)
    and the penalty is that of the function, alpha/2 b^T K b.

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
    kernel : {{"linear", "rbf", "laplacian", "poly", "cosine"}}, default="linear"
        As in `sklearn.metrics.pairwise`; "linear" has weights of columns, `coef_`.
    gamma : float, optional
        Of "rbf", "laplacian" and "poly"; 1 / n_features by default.
    degree : int, default=3
        Of "poly", (gamma <x, y> + coef0)^degree.
    coef0 : float, default=1
        Of "poly"; at least zero.
    n_components : int, optional
        Number of training rows x_i, drawn at random, whose kernel functions make up the scores (the
        Nystroem approximation). By default all rows, the exact problem, up to {_EXACT_ROWS:,} rows,
        and {_N_COMPONENTS:,} of more.
    eps : float, default=1e-6
        Precision of the sums of erfc, between 1e-13 and 1; see `forerank.pairsums.erfc_sum`.
    tol : float, default=1e-3
        The certificate to reach: the gradient norm relative to the gradient at zero, every column
        in its own unit.
    max_iter : int, default=1000
        Most iterations.
    random_state : int, RandomState or None, default=None
        Draws the rows of the Nystroem approximation.
    {LINEAR_PARAMETERS}

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
        Only with kernel="linear".
    dual_coef_ : array of shape (1, n_components)
        The coefficients b_i; only with another kernel.
    components_ : array or CSR matrix of shape (n_components, n_features)
        The rows x_i; only with another kernel.
    intercept_ : array of shape (1,)
    classes_ : array
    thresholds_ : array of shape (n_classes - 1,)
        As in `PairwiseRanker`.
    wmw_bound_ : float
        As in `PairwiseRanker`, from the logistic loss with each of the sums.
    {LINEAR_ATTRIBUTES}

    Notes
    -----
    With sums="erfc", `objective_` is that of the loss whose slope is the erfc
    (`forerank.losses.ErfcLogistic`). Cost of an iteration: two products with X, and two or three
    sums over the scores at p N (erfc, p = 10 terms at eps = 1e-6), N (exact) or all pairs (direct).
    There is no preconditioner: scale the columns of X. With a kernel, the exact problem takes the
    kernel matrix of all rows, and one product with it in an iteration; the approximation takes
    N n_components numbers, and two products with them.

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
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> y = X[:, 0] * X[:, 1] > 0  # not a linear function
    >>> bool(wmw(y, RankNCG(kernel="rbf").fit(X, y).decision_function(X)) > 0.99)
    True
    """

    # Models of version 0.1 do not have these parameters.
    kernel = "linear"
    gamma: float | None = None
    degree = 3
    coef0: float = 1
    n_components: int | None = None
    random_state: Any = None

    def __init__(
        self,
        sums: str = "erfc",
        *,
        alpha: float = 1e-4,
        graph: str | Iterable[tuple] | None = None,
        kernel: str = "linear",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1,
        n_components: int | None = None,
        eps: float = 1e-6,
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.sums = sums
        self.alpha = alpha
        self.graph = graph
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.eps = eps
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_choice("sums", self.sums, ("erfc", "exact", "direct"))
        check_number("alpha", self.alpha, low=0.0)
        self._kernel().check()
        if self.n_components is not None:
            check_number("n_components", self.n_components, low=1, integer=True)
        check_eps(self.eps)
        check_number("tol", self.tol, low=0.0, strict=True)
        check_number("max_iter", self.max_iter, low=1, integer=True)

    def _kernel(self) -> Kernel:
        return Kernel(self.kernel, self.gamma, self.degree, self.coef0)

    # Name and parameters of the kernel at the time of the fit.
    _fitted_kernel: tuple[Any, ...] = ()

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
        if self.kernel == "linear":
            X, codes, objective, weight = self._merged_pairs(X, codes, loss, sample_weight, qid)
            self.__dict__.pop("components_", None)
            self.__dict__.pop("dual_coef_", None)
            result = self._solve(objective, make_design(X), solver="ncg")
        else:
            objective, weight = self._pairs(codes, loss, sample_weight, qid)
            result = self._solve_in_kernel_space(objective, X)
        self._set_thresholds(result.scores, codes, weight)
        # The sums of erfc are those of another loss.
        self._set_wmw_bound(objective.with_loss(Logistic()).at(result.scores).value)
        return self

    def _solve_in_kernel_space(self, objective: Any, X: Matrix) -> SolverResult:
        """Fit the coefficients of the kernel functions of all rows, or of a sample."""
        kernel, rows = self._kernel(), self._component_rows(X)
        exact = rows.shape[0] == X.shape[0]
        start = None
        before = getattr(self, "components_", None)
        if self.warm_start and before is not None and same_rows(before, rows):
            start = self.dual_coef_[0]
        self.__dict__.pop("coef_", None)
        self.components_, self._fitted_kernel = rows, astuple(kernel)
        options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter}
        if exact:
            K = kernel.matrix(X, X)
            return self._run_solver(
                lambda progress: kernel_ncg(
                    objective, K, self.alpha, start=start, progress=progress, **options
                )
            )
        features = NystroemFeatures.of(kernel, X, rows)

        def run(progress: Progress) -> SolverResult:
            begin = None if start is None else features.weights_of(start)
            try:
                design = make_design(features.values)
                found = ncg(
                    objective, design, self.alpha, start=begin, progress=progress, **options
                )
            finally:  # also after an interruption, which leaves the latest weights
                if progress.w is not None:
                    progress.w = features.coefficients(progress.w)
            return replace(found, w=features.coefficients(found.w))

        return self._run_solver(run)

    def _component_rows(self, X: Matrix) -> Matrix:
        """A copy of all rows, or of a random sample of them."""
        n = X.shape[0]
        wanted = self.n_components
        if wanted is None:
            wanted = n if n <= _EXACT_ROWS else _N_COMPONENTS
        if wanted >= n:
            return X.copy()
        rng = check_random_state(self.random_state)
        return X[np.sort(rng.choice(n, wanted, replace=False))]

    def _set_weights(self, w: Vector, intercept: bool) -> None:
        if self.kernel == "linear":
            super()._set_weights(w, intercept)
        else:
            self.dual_coef_, self.intercept_ = w[None, :].copy(), np.zeros(1)

    def alpha_path(
        self, X: ArrayLike, y: ArrayLike, alphas: int | ArrayLike = 10, **rows: Any
    ) -> AlphaPath:
        if self.kernel != "linear":
            raise ValueError(
                f"alpha_path returns weights of columns, which kernel={self.kernel!r} does not "
                "have; fit the ranker for each alpha, or use kernel='linear'."
            )
        return super().alpha_path(X, y, alphas, **rows)

    def decision_function(self, X: ArrayLike) -> Vector:
        """Scores; rows with higher scores are ranked above others. Cost: one product with X, or
        with a kernel the values of all `components_`.
        """
        check_is_fitted(self)
        if not hasattr(self, "dual_coef_"):
            return super().decision_function(X)
        rows = self._validated(X)
        kernel = Kernel(*self._fitted_kernel)
        return kernel.scores(rows, self.components_, self.dual_coef_[0]) + self.intercept_[0]
