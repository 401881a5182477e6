"""Linear rankers as scikit-learn classifiers: validate, solve, keep `coef_`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted, validate_data

from forerank._kernels import serial_blas
from forerank._typing import Matrix, Vector
from forerank._validation import check_choice, check_number, check_weights
from forerank.design import Design, make_design
from forerank.design.dense import FortranDesign
from forerank.design.row_pairs import Differences
from forerank.estimators.base import (
    BaseRanker,
    GraphRanker,
    refuse_more_than_two,
    refuse_weightless_class,
    warn_equal_scores,
    warn_unconverged,
)
from forerank.objectives import Pointwise, Profiled
from forerank.solvers import Progress, SolverResult, bundle, newton
from forerank.solvers.dual import dual_descent
from forerank.solvers.newton import NewtonPath, extrapolate
from forerank.solvers.path import AlphaPath, PathPoint, Solve, check_alphas

__all__ = ["PairwiseRanker", "PointwiseRanker"]

# Passes of descent that are allowed for one step of another solver.
_PASSES_PER_STEP = 5
# Arrays in Fortran order are copied for descent up to this size.
_COPIED_BYTES = 2**30

_PAIR_LOSSES = ("exponential", "hinge", "logistic", "squared", "squared_hinge")


class LinearRanker(BaseRanker):
    """What linear rankers share: the call to a solver, and scoring."""

    loss: str
    alpha: float
    tol: float
    max_iter: int
    warm_start: bool
    verbose: bool
    # Set on the copies that walk along a path.
    _on_a_path = False
    _path: NewtonPath | None = None

    def _check_parameters(self) -> None:
        check_choice("loss", self.loss, _PAIR_LOSSES)
        check_number("alpha", self.alpha, low=0.0, strict=self.loss == "hinge")
        check_number("tol", self.tol, low=0.0, strict=True)
        check_number("max_iter", self.max_iter, low=1, integer=True)

    def alpha_path(
        self, X: ArrayLike, y: ArrayLike, alphas: int | ArrayLike = 10, **rows: Any
    ) -> AlphaPath:
        """Fit for many penalties at little more than the cost of one: from the largest alpha down,
        each from the last.

        Parameters
        ----------
        X, y
            As in `fit`.
        alphas : int or array-like, default=10
            The penalties, or how many: so many from 10 to 1e-7 in equal ratios.
        **rows
            What else `fit` takes: sample_weight, qid.

        Returns
        -------
        AlphaPath
            The ranker itself stays as it was.
        """
        penalties = check_alphas(alphas)
        points = [PathPoint.of(ranker) for ranker in self.iter_path(X, y, penalties, **rows)]
        return AlphaPath.of(penalties, points)

    def iter_path(self, X: ArrayLike, y: ArrayLike, alphas: Vector, **rows: Any) -> Iterator[Self]:
        """A ranker fitted at each alpha in turn; the same object every time."""
        walker = clone(self).set_params(alpha=float(alphas[0]))
        walker.warm_start = True
        walker._on_a_path = True
        solve = walker._prepare(X, y, **rows)
        trail: list[Vector] = []
        for alpha in alphas:
            walker.alpha = float(alpha)
            result = solve(extrapolate(trail) if trail else None)
            trail = trail[-2:] if result is None else [*trail[-2:], result.w]
            yield walker

    def _prepare(self, *data: Any, **rows: Any) -> Solve:
        """Read the data, once; a function that fits at the present alpha, from some start on."""

        def solve(start: Vector | None = None) -> SolverResult | None:
            self.fit(*data, **rows)
            return None

        return solve

    def _solve(
        self,
        objective: Any,
        X: Matrix,
        design: Design,
        *,
        intercept: bool,
        start: Vector | None = None,
    ) -> SolverResult:
        """Run the solver that fits the objective."""
        start = self._warm_weights(intercept) if start is None else start

        def run(progress: Progress) -> SolverResult:
            limits: dict[str, Any] = {
                "tol": self.tol,
                "max_iter": self.max_iter,
                "progress": progress,
            }
            if objective.smooth:
                penalty = np.full(design.n_columns, float(self.alpha))
                penalty[design.n_columns - int(intercept) :] = 0.0
                if self._on_a_path:
                    if self._path is None:
                        self._path = NewtonPath(objective, design, self.max_iter)
                    return self._path.step(penalty, tol=self.tol, progress=progress)
                return newton(objective, design, penalty, start=start, **limits)
            by_points = isinstance(objective, Pointwise | Profiled)
            if by_points and not (isinstance(design, FortranDesign) and X.nbytes > _COPIED_BYTES):
                return self._by_points(objective, X, design, limits)
            return bundle(objective, design, self.alpha, start=start, **limits)

        return self._run_solver(run, intercept=intercept, smooth=objective.smooth)

    def _run_solver(
        self,
        run: Callable[[Progress], SolverResult],
        *,
        intercept: bool,
        smooth: bool,
        max_iter: int | None = None,
    ) -> SolverResult:
        """Run a solver and keep what it found; an interruption leaves the latest weights behind."""
        progress = Progress(verbose=bool(self.verbose))
        try:
            with serial_blas():
                result = run(progress)
        except KeyboardInterrupt:
            if progress.w is not None:
                self._set_weights(progress.w, intercept)
            raise
        self._set_weights(result.w, intercept)
        self.n_iter_ = result.n_iter
        self.objective_ = result.objective
        self.optimality_ = result.optimality
        self.gap_ = result.gap if smooth else result.optimality * result.objective
        self.history_ = result.history
        if not result.converged:
            warn_unconverged(
                self, "relative gradient norm" if smooth else "relative duality gap", max_iter
            )
        elif not self.coef_.any() and not self._on_a_path:
            self._warn_equal_scores()
        return result

    def _warn_equal_scores(self) -> None:
        warn_equal_scores(self)

    def _by_points(
        self, objective: Pointwise | Profiled, X: Matrix, design: Design, limits: dict[str, Any]
    ) -> SolverResult:
        """The hinge on single rows: dual coordinate descent, and cutting planes from there if it is
        slow to settle.

        Descent reads one row at a time, in random order: columns in Fortran order are too scattered
        for that and are copied. A warm start needs its own unknowns, one per row, which are kept
        where `warm_start` is set.
        """
        rows: Pointwise = objective.pointwise if isinstance(objective, Profiled) else objective
        number = np.arange(design.n_rows)
        if isinstance(design, FortranDesign):
            X = np.ascontiguousarray(X)
        points = Differences(X, design.n_rows, in_place=True)
        points.extend(np.where(rows.positive, number, -1), np.where(rows.positive, -1, number))
        best_shift = objective.best_shift if isinstance(objective, Profiled) else None
        descent = {**limits, "max_iter": _PASSES_PER_STEP * self.max_iter, "scale": self.alpha}
        before = getattr(self, "_dual", None)
        if self.warm_start and before is not None and before[0].size == design.n_rows:
            descent["start"], descent["start_intercept"] = before
        found = dual_descent(points, rows.share / self.alpha, intercept=best_shift, **descent)
        if self.warm_start:
            self._dual = found.dual, found.intercept
        if not found.converged:
            return bundle(objective, design, self.alpha, start=found.w, **limits)
        history, n_iter = limits["progress"].history, -(-found.n_iter // _PASSES_PER_STEP)
        return SolverResult(
            found.w, design.scores(found.w), found.objective, found.optimality, n_iter, True, history
        )  # fmt: skip

    def _set_weights(self, w: Vector, intercept: bool) -> None:
        self.coef_ = w[None, :-1].copy() if intercept else w[None, :].copy()
        self.intercept_ = w[-1:].copy() if intercept else np.zeros(1)

    def _warm_weights(self, intercept: bool) -> Vector | None:
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        return np.append(self.coef_[0], self.intercept_) if intercept else self.coef_[0].copy()

    def decision_function(self, X: ArrayLike) -> Vector:
        """Scores: the higher, the further ahead. Cost: one product with X.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        scores = make_design(X).scores(self.coef_[0])
        scores += self.intercept_[0]
        return scores


class PointwiseRanker(LinearRanker):
    """Ranks by a linear score fitted row by row.

    Minimises  sum_i w_i l(y_i (x_i w + b)) / sum_i w_i + alpha/2 ||w||^2  with y_i in {-1, +1}. With the logistic loss
    this is logistic regression (alpha = 1 / (n C)), with the hinges and class weights the WSVM and cs-SVM of shen2013
    and li2014, with the exponential loss the univariate ranker of kotlowski2011.

    Parameters
    ----------
    loss : {"logistic", "hinge", "squared_hinge", "exponential", "squared"}, default="logistic"
        The loss on the margin y_i s_i.
    alpha : float, default=1e-4
        Strength of the penalty; the intercept is not penalised.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, times the sample weights. "balanced" gives both classes the same
        total weight.
    fit_intercept : bool, default=True
        Whether to add a constant to the scores. It does not change the ranking of a fitted model,
        but does change what is fitted.
    tol : float, default=1e-3
        The certificate asked for: the gradient norm relative to that without columns, every column
        in its own unit; for the hinge, the relative duality gap.
    max_iter : int, default=200
        The most steps on all rows; five passes of the hinge's descent count as one.
    warm_start : bool, default=False
        Whether a second call of fit begins where the first ended. The hinge does so if there are as
        many rows.
    verbose : bool, default=False
        Whether to print each step.

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
    classes_ : array of shape (2,)
        The higher one is ranked ahead.
    n_iter_ : int
        Steps taken on all rows.
    objective_ : float
        The minimum reached.
    optimality_ : float
        The certificate reached; see `tol`. It does not depend on the units of the columns.
    gap_ : float
        `objective_` is no more than this above the minimum. Infinity where nothing is known: for
        alpha = 0, and for smooth losses with an intercept, which has no penalty.
    history_ : list of forerank.solvers.Iteration
        Objective and certificate before every step.
    n_features_in_ : int
    feature_names_in_ : array
        Only where X has column names.

    Notes
    -----
    Cost: a few dozen products with X. Hinge: dual coordinate descent, and a bundle method
    where that is slow; all other losses: truncated Newton.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = make_pipeline(StandardScaler(), PointwiseRanker(class_weight="balanced")).fit(X, y)
    >>> round(float(ranker.score(X, y)), 2)
    0.99
    """

    def __init__(
        self,
        loss: str = "logistic",
        *,
        alpha: float = 1e-4,
        class_weight: Mapping | str | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 200,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes with any labels; the one that sorts last is ranked ahead.
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
        X, codes = self._read(X, y)
        refuse_more_than_two(self.classes_)
        weight = check_weights(sample_weight, codes.size)
        positive = codes == 1
        refuse_weightless_class(weight, positive, self.classes_)
        if self.class_weight is not None:
            per_class = _class_weights(self.class_weight, self.classes_, codes, weight)
            weight = per_class[codes] if weight is None else weight * per_class[codes]
        objective = Pointwise(positive, self.loss, weight=weight)
        if not self.fit_intercept or (objective.smooth and self.loss != "exponential"):
            intercept = bool(self.fit_intercept)
            design = make_design(X, intercept=intercept)
            return lambda start=None: self._solve(
                objective, X, design, intercept=intercept, start=start
            )
        # The intercept is minimised out: the bundle method's dual bound needs every weight
        # penalised, and the exponential loss of a shift that is far off overflows.
        profiled, design = Profiled(objective), make_design(X)

        def solve(start: Vector | None = None) -> SolverResult:
            try:
                return self._solve(profiled, X, design, intercept=False, start=start)
            finally:  # an interruption leaves weights, which need their intercept
                if hasattr(self, "coef_"):
                    self.intercept_ = np.array([profiled.best_shift(design.scores(self.coef_[0]))])

        return solve


class PairwiseRanker(GraphRanker, LinearRanker):
    """Ranks by a linear score fitted on all pairs, at the cost of fitting single rows.

    Minimises  sum_{(i, j)} w_i w_j l(x_i w - x_j w) / sum_{(i, j)} w_i w_j + alpha/2 ||w||^2  over every pair in which
    row i should stand ahead of row j. With the hinge this is RankSVM, with the logistic loss the objective of RankNCG
    (raykar2007), with graded labels support vector ordinal regression over pairs; no pair is left out or sampled.

    Parameters
    ----------
    loss : {"squared_hinge", "logistic", "hinge", "exponential", "squared"}, default="squared_hinge"
        The loss on the score difference s_i - s_j.
    alpha : float, default=1e-4
        Strength of the penalty.
    graph : None, str or iterable of (preferred, other) labels, default=None
        Which classes are ranked ahead of which. None: two classes, the one that sorts last ahead.
        "order": any number of grades, higher ahead of lower. "chain", "bipartite",
        "one-against-rest": see `forerank.graphs`. Edges over the class labels: exactly those
        preferences; cycles are refused. A graph that puts the lower of two labels ahead turns the
        scores round, which scorers such as "roc_auc" do not know: score it by
        `forerank.metrics.wmw`.
    tol : float, default=1e-3
        The certificate asked for: the gradient norm relative to that without columns, every column
        in its own unit; for the hinge, the relative duality gap.
    max_iter : int, default=200
        The most steps on all rows.
    warm_start : bool, default=False
        Whether a second call of fit begins at the weights of the first.
    verbose : bool, default=False
        Whether to print each step.

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
        Pairs do not see a constant. It is set so that, in the training rows, as much weight is
        scored above zero as the higher class has; with more than two grades it is zero.
    classes_ : array
    thresholds_ : array of shape (n_classes - 1,)
        Scores that cut the training rows into classes of their true sizes, from the lowest place in
        the graph to the highest; classes that it does not order stand by their mean scores.
        `predict` uses them.
    n_iter_ : int
        Steps taken on all rows.
    objective_ : float
        The minimum reached.
    optimality_ : float
        The certificate reached; see `tol`. It does not depend on the units of the columns.
    gap_ : float
        `objective_` is no more than this above the minimum; infinity for alpha = 0.
    history_ : list of forerank.solvers.Iteration
        Objective and certificate before every step.
    n_features_in_ : int
    feature_names_in_ : array
        Only where X has column names.

    Notes
    -----
    Cost: a few dozen products with X; between them N log N for the hinges, N for the other
    losses, times log K for K grades. Hinge: a bundle method; all others: truncated Newton.

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
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.graph = graph
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
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
        self._prepare(X, y, sample_weight=sample_weight, qid=qid)()
        return self

    def _prepare(self, X: Any, y: Any, sample_weight: Any = None, qid: Any = None) -> Solve:
        self._check_parameters()
        X, codes = self._read(X, y)
        objective, weight = self._pairs(codes, self.loss, sample_weight, qid)
        design = make_design(X)

        def solve(start: Vector | None = None) -> SolverResult:
            result = self._solve(objective, X, design, intercept=False, start=start)
            self._set_thresholds(result.scores, codes, weight)
            return result

        return solve


def _class_weights(
    class_weight: Mapping | str, classes: NDArray, codes: NDArray[np.integer], weight: Vector | None
) -> Vector:
    """The weight of each class; "balanced" counts the sample weights."""
    if class_weight == "balanced":
        totals = np.bincount(codes, weights=weight, minlength=classes.size)
        return totals.sum() / (classes.size * totals)
    if not isinstance(class_weight, Mapping):
        raise ValueError(f'class_weight must be a dict, "balanced" or None; got {class_weight!r}.')
    weights = compute_class_weight(dict(class_weight), classes=classes, y=classes)
    for label, value in zip(classes.tolist(), weights.tolist(), strict=True):
        if not (0.0 < value < np.inf):
            raise ValueError(
                f"class_weight must be positive and finite; class {label!r} has {value!r}."
            )
    return weights
