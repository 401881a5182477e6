"""Rankers for the top of the list: validate, solve, keep `coef_`."""

import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forerank._typing import Matrix, Vector
from forerank._validation import check_choice, check_number, check_weights, stacklevel_outside
from forerank.design import Design, make_design
from forerank.estimators.base import (
    prevalence_thresholds,
    refuse_more_than_two,
    refuse_weightless_class,
)
from forerank.estimators.linear import LinearRanker
from forerank.objectives.structured import (
    AnchoredHinge,
    AveragePrecision,
    RankWeightedHinge,
    RankWeights,
    harmonic,
    partial_auc,
    uniform,
)
from forerank.objectives.top import Top
from forerank.solvers import Progress, SolverResult, bundle
from forerank.solvers.path import Solve
from forerank.solvers.top_dual import DUAL_LOSSES, accelerated_dual, refuse_loss
from forerank.solvers.top_newton import working_set_newton

__all__ = [
    "AATPRanker",
    "MAPRanker",
    "OWPCRanker",
    "PartialAUCRanker",
    "SparseTopPush",
    "TopPush",
    "TopRanker",
]

_TOP_LOSSES = ("exponential", "hinge", "logistic", "squared_hinge")
# Steps that `max_iter="auto"` allows.
_STEPS = {"newton": 200, "nesterov": 100_000, "bundle": 1000}
_SOLVERS = ("newton", "nesterov")
# The most rows and columns of a matrix that Newton's method may build.
_LARGEST_MODEL = 6000
# Columns that join the working set of an L1 fit at a time, at least.
_COLUMNS_JOINING = 50
# A fixed point of AATP is looked for this many times.
_ANCHOR_STEPS = 20


class _TwoClassRanker(LinearRanker):
    """What the rankers of this module share."""

    def _read_two(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> tuple[Matrix, NDArray[np.bool_], Vector | None]:
        X, codes = self._read(X, y)
        refuse_more_than_two(self.classes_)
        weight = check_weights(sample_weight, codes.size)
        if weight is None and sample_weight is not None:
            # All equal: of no account where only ratios matter, but a row of weight two takes up
            # two places here.
            weight = np.full(codes.size, float(np.ravel(np.asarray(sample_weight))[0]))
        positive = codes == 1
        refuse_weightless_class(weight, positive, self.classes_)
        return X, positive, weight

    def _set_thresholds(
        self, result: SolverResult, positive: NDArray[np.bool_], weight: Vector | None = None
    ) -> None:
        """Scores do not know a constant; `predict` cuts where the training rows have their true
        class sizes.
        """
        self.intercept_ = -prevalence_thresholds(result.scores, positive.astype(int), weight, 2)

    def _warn_equal_scores(self) -> None:
        """Rankers for the top say more about it themselves, once the value at zero is known."""

    def _warn_if_nothing_is_learnt(self, result: SolverResult, at_zero: float) -> None:
        if result.converged and result.objective >= (1.0 - self.tol) * at_zero:
            warnings.warn(
                f"{type(self).__name__} found nothing to learn: no direction is better than w = 0, which gives all "
                "rows the same score, because none lifts the positives above the top of the negatives by more than "
                "the penalty allows. Lower alpha, let the threshold be a mean of more negatives "
                "(TopRanker(at=...)), or add columns (for instance with sklearn.kernel_approximation.Nystroem).",
                UserWarning,
                stacklevel=stacklevel_outside(),
            )


class _TopRankerBase(_TwoClassRanker):
    solver: str
    max_iter: int | str  # type: ignore[assignment]

    def _threshold(self) -> str | int | float:
        return "max"

    def _check_parameters(self) -> None:
        check_choice("loss", self.loss, _TOP_LOSSES)
        check_choice("solver", self.solver, _SOLVERS)
        if self.solver == "nesterov" and self.loss not in DUAL_LOSSES:
            refuse_loss(self.loss)
        check_number("alpha", self.alpha, low=0.0, strict=True)
        check_number("tol", self.tol, low=0.0, strict=True)
        if self.max_iter != "auto":
            check_number("max_iter", self.max_iter, low=1, integer=True)

    def _solver_for(self, top: Top, n_columns: int) -> str:
        """Newton's model is a matrix over the columns or the positives; where both are many, a
        method without one.
        """
        if self.solver == "newton" and min(n_columns, top.positives.size) > _LARGEST_MODEL:
            return "nesterov" if self.loss in DUAL_LOSSES else "bundle"
        return self.solver

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes with any labels; the one that sorts last is ranked ahead.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights of the rows. A row of weight two counts like two rows.

        Returns
        -------
        self
        """
        self._prepare(X, y, sample_weight=sample_weight)()
        return self

    def _prepare(self, X: Any, y: Any, sample_weight: Any = None) -> Solve:
        self._check_parameters()
        X, positive, weight = self._read_two(X, y, sample_weight)
        top = Top(positive, self.loss, at=self._threshold(), weight=weight)
        design = make_design(X)
        dual: Vector | None = (
            None  # of the last solution, which certifies the next one where little changes
        )

        def solve(start: Vector | None = None) -> SolverResult:
            nonlocal dual
            result = self._fit_top(top, design, positive, weight, start, dual)
            dual = result.dual
            return result

        return solve

    def _fit_top(
        self,
        top: Top,
        design: Design,
        positive: NDArray[np.bool_],
        weight: Vector | None,
        start: Vector | None,
        dual: Vector | None,
    ) -> SolverResult:
        solver = self._solver_for(top, design.n_columns)
        max_iter = _STEPS[solver] if self.max_iter == "auto" else int(self.max_iter)
        limits: dict[str, Any] = {"tol": self.tol, "max_iter": max_iter}
        start = self._warm_weights(intercept=False) if start is None else start

        def run(progress: Progress) -> SolverResult:
            if solver == "nesterov":
                return accelerated_dual(top, design, self.alpha, progress=progress, **limits)
            if solver == "bundle":
                return bundle(top, design, self.alpha, start=start, progress=progress, **limits)
            return working_set_newton(
                top, design, self.alpha, start=start, start_dual=dual, progress=progress, **limits
            )

        result = self._run_solver(run, intercept=False, smooth=False, max_iter=max_iter)
        self._set_thresholds(result, positive, weight)
        self.threshold_ = top.threshold(result.scores[top.negatives])[0] + float(self.intercept_[0])
        self._warn_if_nothing_is_learnt(result, top.value_at(np.zeros(positive.size)))
        return result


_TOP_PARAMETERS = """alpha : float, default=1e-3
        Strength of the penalty alpha/2 ||w||^2.
    solver : {"newton", "nesterov"}, default="newton"
        "newton": quadratic models with a working set of the negatives that matter; a handful of steps. Where there are
        more than 6,000 columns and as many positives, "nesterov" is used (for smooth losses a bundle method).
        "nesterov": the accelerated dual method of li2014 (Algorithm 1), for the squared hinge and the hinge; many cheap
        steps.
    tol : float, default=1e-4
        The relative duality gap asked for.
    max_iter : int or "auto", default="auto"
        The most steps; "auto" allows 200 of "newton", 100,000 of "nesterov", 1,000 cutting planes.
    warm_start : bool, default=False
        Whether a second call of fit begins at the weights of the first ("newton" only).
    verbose : bool, default=False
        Whether to print each step.

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
        Cuts the training rows into their true class sizes, for `predict`.
    threshold_ : float
        The threshold that the negatives set, on the scale of `decision_function`.
    classes_ : array of shape (2,)
        The higher one is ranked ahead.
    n_iter_ : int
    objective_ : float
        The minimum reached.
    optimality_ : float
        The relative duality gap reached.
    history_ : list of forerank.solvers.Iteration
    n_features_in_ : int
    feature_names_in_ : array
        Only where X has column names."""


class TopPush(_TopRankerBase):
    __doc__ = f"""Pushes the positives above the first negative (li2014).

    Minimises  sum_i w_i l(x_i w - max_j x_j w) / sum_i w_i + alpha/2 ||w||^2  over positive rows i and negative rows j.
    With the squared hinge this is TopPush (eq. 5), with the hinge InfinitePush.

    Parameters
    ----------
    loss : {{"squared_hinge", "logistic", "exponential", "hinge"}}, default="squared_hinge"
        The loss on the margin of a positive over the highest negative.
    {_TOP_PARAMETERS}

    Notes
    -----
    Cost: a few dozen products with X, and the curvature of the positives, m d^2 (or m^3, if smaller) for each of a
    handful of steps. Memory: the square of d (or of m).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from forerank.metrics import pos_at_top
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = make_pipeline(StandardScaler(), TopPush()).fit(X, y)
    >>> round(float(pos_at_top(y, ranker.decision_function(X))), 2)
    0.98
    """

    def __init__(
        self,
        loss: str = "squared_hinge",
        *,
        alpha: float = 1e-3,
        solver: str = "newton",
        tol: float = 1e-4,
        max_iter: int | str = "auto",
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose


class TopRanker(_TopRankerBase):
    __doc__ = f"""Pushes the positives above the top of the negatives: the first, the first k, or a share of them.

    Minimises  sum_i w_i l(x_i w - T) / sum_i w_i + alpha/2 ||w||^2  over positive rows i, where T is the mean of the
    highest negative scores: of one (TopPush), of k, or of the upper share (tau-FPL: that share bounds the false
    positive rate at the threshold).

    Parameters
    ----------
    loss : {{"squared_hinge", "logistic", "exponential", "hinge"}}, default="squared_hinge"
        The loss on the margin of a positive over the threshold.
    at : "max", int or float, default="max"
        What sets the threshold: the highest negative, the mean of the `at` highest, or, for a number between 0 and 1,
        the mean of that share of them.
    {_TOP_PARAMETERS}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from forerank.metrics import tpr_at_fpr
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> ranker = TopRanker(at=0.05).fit(X, y)
    >>> bool(tpr_at_fpr(y, ranker.decision_function(X), fpr=0.05) > 0.99)
    True
    """

    def __init__(
        self,
        loss: str = "squared_hinge",
        *,
        at: str | int | float = "max",
        alpha: float = 1e-3,
        solver: str = "newton",
        tol: float = 1e-4,
        max_iter: int | str = "auto",
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.at = at
        self.alpha = alpha
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose

    def _threshold(self) -> str | int | float:
        return self.at


class SparseTopPush(_TwoClassRanker):
    """TopPush with few columns: an L1 penalty (L1SVIP, Rakotomamonjy 2012).

    Minimises  sum_i w_i l(x_i w - max_j x_j w) / sum_i w_i + alpha ||w||_1. Most weights are exactly zero.

    Parameters
    ----------
    loss : {"squared_hinge", "logistic", "exponential", "hinge"}, default="squared_hinge"
        The loss on the margin of a positive over the highest negative; L1SVIP has the hinge.
    alpha : float, default=1e-2
        Strength of the penalty. Beyond some value all weights are zero, which a warning says.
    tol : float, default=1e-4
        The relative duality gap asked for.
    max_iter : int, default=200
        The most steps.
    warm_start : bool, default=False
        Whether a second call of fit begins at the weights of the first.
    verbose : bool, default=False
        Whether to print each step.

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
        Cuts the training rows into their true class sizes, for `predict`.
    classes_, n_iter_, objective_, optimality_, history_, n_features_in_, feature_names_in_
        As in `TopPush`.

    Notes
    -----
    Columns are let in as their gradient exceeds alpha; cost per step as in `TopPush`, with
    the columns let in for d.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = SparseTopPush(alpha=0.1).fit(StandardScaler().fit_transform(X), y)
    >>> int((ranker.coef_ != 0).sum()) < 15
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
        self.loss = loss
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_choice("loss", self.loss, _TOP_LOSSES)
        check_number("alpha", self.alpha, low=0.0, strict=True)
        check_number("tol", self.tol, low=0.0, strict=True)
        check_number("max_iter", self.max_iter, low=1, integer=True)

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
        self._check_parameters()
        matrix, positive, weight = self._read_two(X, y, sample_weight)
        top = Top(positive, self.loss, weight=weight)
        start = self._warm_weights(intercept=False)
        result = self._run_solver(
            lambda progress: self._by_columns(top, matrix, start, progress),
            intercept=False,
            smooth=False,
        )
        self._set_thresholds(result, positive, weight)
        self._warn_if_nothing_is_learnt(result, top.value_at(np.zeros(positive.size)))
        return self

    def _by_columns(
        self, top: Top, X: Matrix, start: Vector | None, progress: Progress
    ) -> SolverResult:
        """Solve over the columns that matter; those whose gradient exceeds alpha join until there
        are none.
        """
        design = make_design(X)
        d = design.n_columns
        w = np.zeros(d) if start is None else start
        here = top.at(design.scores(w))
        slope = np.abs(design.adjoint(here.gradient))
        columns = np.flatnonzero(w)
        n_iter, history, gap = 0, progress.history, 1.0
        while True:
            outside = np.setdiff1d(np.flatnonzero(slope > self.alpha), columns)
            room = max(_COLUMNS_JOINING, columns.size)
            joining = outside[np.argsort(-slope[outside], kind="stable")[:room]]
            columns = np.sort(np.concatenate([columns, joining]))
            if columns.size == 0:
                columns = np.array([int(np.argmax(slope))])
            # While columns are still coming in, a rough solution will do.
            tol = (
                0.5 * self.tol
                if columns.size == d or not joining.size
                else max(0.5 * self.tol, 0.1 * gap)
            )
            inner = Progress(verbose=progress.verbose)
            part = (
                np.ascontiguousarray(X[:, columns]) if isinstance(X, np.ndarray) else X[:, columns]
            )
            try:
                result = working_set_newton(
                    top, make_design(part), 0.0, l1=self.alpha, start=w[columns], tol=tol,
                    max_iter=max(self.max_iter - n_iter, 1), progress=inner,
                )  # fmt: skip
            finally:
                if inner.w is not None:
                    w = np.zeros(d)
                    w[columns] = inner.w
                    progress.w = w  # what an interruption leaves
            n_iter += result.n_iter
            assert result.dual is not None
            slope = np.abs(design.adjoint(result.dual))
            gap = self._gap(top, result, float(slope.max()))
            history.extend(inner.history)
            finished = not result.converged or result.optimality <= 0.5 * self.tol
            grown = np.setdiff1d(np.flatnonzero(slope > self.alpha), columns).size
            if gap <= self.tol or n_iter >= self.max_iter or (finished and not grown):
                return self._pruned(top, design, w, result, gap, n_iter, history)

    def _pruned(
        self,
        top: Top,
        design: Any,
        w: Vector,
        result: SolverResult,
        gap: float,
        n_iter: int,
        history: list,
    ) -> SolverResult:
        """Set as many of the smallest weights to zero as the tolerance allows; an interior point
        leaves traces.
        """
        value, scores = result.objective, result.scores
        ceiling = value * (1.0 + 0.5 * max(self.tol - gap, 0.0))
        weight = np.zeros(design.n_rows)
        weight[top.positives] = top.share
        order = np.argsort(np.abs(w) * np.sqrt(design.moments(weight)[1]), kind="stable")
        order = order[w[order] != 0.0]
        low, high = 0, order.size
        while low < high:
            count = (low + high + 1) // 2
            trial = w.copy()
            trial[order[:count]] = 0.0
            trial_scores = design.scores(trial)
            trial_value = top.value_at(trial_scores) + self.alpha * float(np.abs(trial).sum())
            if trial_value <= ceiling:
                low, value, scores, kept = count, trial_value, trial_scores, trial
            else:
                high = count - 1
        w = kept if low else w
        gap = max(0.0, 1.0 - (1.0 - gap) * result.objective / value) if value > 0.0 else 0.0
        return SolverResult(w, scores, value, gap, n_iter, gap <= self.tol, history, result.dual)

    def _gap(self, top: Top, result: SolverResult, steepest: float) -> float:
        """The gap over all columns: the dual point is scaled down until no column exceeds alpha."""
        assert result.dual is not None
        shrink = min(1.0, self.alpha / steepest) if steepest > 0.0 else 1.0
        bound = max(0.0, -top.conjugate(-shrink * result.dual[top.positives]))
        return (
            max(0.0, (result.objective - bound) / result.objective)
            if result.objective > 0.0
            else 0.0
        )


class _StructuredRanker(_TwoClassRanker):
    """A ranker by the bundle method."""

    _warn_equal_scores = LinearRanker._warn_equal_scores

    def __init__(
        self,
        *,
        alpha: float = 1e-4,
        tol: float = 1e-3,
        max_iter: int = 1000,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_number("alpha", self.alpha, low=0.0, strict=True)
        check_number("tol", self.tol, low=0.0, strict=True)
        check_number("max_iter", self.max_iter, low=1, integer=True)

    def _fit_objective(
        self, objective: Any, X: Matrix, positive: NDArray, weight: Vector | None = None
    ) -> Self:
        result = self._solve(objective, X, make_design(X), intercept=False)
        self._set_thresholds(result, positive, weight)
        return self


_STRUCTURED_PARAMETERS = """alpha : float, default=1e-4
        Strength of the penalty alpha/2 ||w||^2.
    tol : float, default=1e-3
        The relative duality gap asked for.
    max_iter : int, default=1000
        The most cutting planes.
    warm_start : bool, default=False
        Whether a second call of fit begins at the weights of the first.
    verbose : bool, default=False
        Whether to print each step.

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
        Cuts the training rows into their true class sizes, for `predict`.
    classes_, n_iter_, objective_, optimality_, history_, n_features_in_, feature_names_in_
        As in `TopPush`."""


class PartialAUCRanker(_StructuredRanker):
    __doc__ = f"""Maximises the area under a part of the ROC curve (tight SVM-pAUC, Narasimhan and Agarwal 2013).

    Minimises, for false positive rates from 0 to b, the mean hinge 1 - (s_i - s_j) over positives i and the share b of
    highest negatives j, plus alpha/2 ||w||^2. With `fpr_range=(0, 1)` this is RankSVM, with (0, 1/n) over n negatives
    the hinge against the highest one. From a > 0, the negatives above the range are ranked ahead of a positive at the
    cost of their score differences alone.

    Parameters
    ----------
    fpr_range : pair of floats, default=(0.0, 0.1)
        The false positive rates that count, 0 <= low < high <= 1. A range of a fraction of a row counts that fraction.
    {_STRUCTURED_PARAMETERS}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = PartialAUCRanker(fpr_range=(0, 0.05)).fit(StandardScaler().fit_transform(X), y)
    >>> ranker.optimality_ <= 1e-3
    True
    """

    def __init__(
        self,
        fpr_range: tuple[float, float] = (0.0, 0.1),
        *,
        alpha: float = 1e-4,
        tol: float = 1e-3,
        max_iter: int = 1000,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            alpha=alpha, tol=tol, max_iter=max_iter, warm_start=warm_start, verbose=verbose
        )
        self.fpr_range = fpr_range

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the weights; parameters as in `TopPush.fit`."""
        self._check_parameters()
        low, high = _check_range(self.fpr_range)
        X, positive, weight = self._read_two(X, y, sample_weight)
        negatives = (
            weight[~positive] if weight is not None else np.ones(np.count_nonzero(~positive))
        )
        smallest = float(negatives[negatives > 0.0].min())
        one_place = low == 0.0 and high * float(negatives.sum()) <= smallest * (1.0 + 1e-9)
        if one_place and min(X.shape[1], int(positive.sum())) <= _LARGEST_MODEL:  # type: ignore[union-attr]
            # The hinge against the highest negative, which has a faster solver.
            top = Top(positive, "hinge", weight=weight)
            design = make_design(X)
            start = self._warm_weights(intercept=False)
            result = self._run_solver(
                lambda progress: working_set_newton(
                    top,
                    design,
                    self.alpha,
                    start=start,
                    tol=self.tol,
                    max_iter=self.max_iter,
                    progress=progress,
                ),
                intercept=False,
                smooth=False,
            )
            self._set_thresholds(result, positive, weight)
            return self
        return self._fit_objective(
            RankWeightedHinge(positive, partial_auc(low, high), weight=weight), X, positive, weight
        )  # fmt: skip


class OWPCRanker(_StructuredRanker):
    __doc__ = f"""Ranks with pairs that weigh the more, the higher their negative stands (OWPC, Usunier et al. 2009).

    Minimises  sum_i p_i sum_r c_r max(0, 1 - (s_i - s_(r))) + alpha/2 ||w||^2, where s_(r) is the r-th highest negative
    score and the c_r fall and sum to one.

    Parameters
    ----------
    weights : {{"harmonic", "uniform"}} or array-like, default="harmonic"
        c_r: proportional to 1/r, all alike (RankSVM), or given from the first place on; places beyond its end count
        nothing.
    {_STRUCTURED_PARAMETERS}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = OWPCRanker(weights=[3, 2, 1]).fit(StandardScaler().fit_transform(X), y)
    >>> ranker.optimality_ <= 1e-3
    True
    """

    def __init__(
        self,
        weights: str | ArrayLike = "harmonic",
        *,
        alpha: float = 1e-4,
        tol: float = 1e-3,
        max_iter: int = 1000,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            alpha=alpha, tol=tol, max_iter=max_iter, warm_start=warm_start, verbose=verbose
        )
        self.weights = weights

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the weights; parameters as in `TopPush.fit`."""
        self._check_parameters()
        weights = _rank_weights(self.weights)
        X, positive, weight = self._read_two(X, y, sample_weight)
        return self._fit_objective(
            RankWeightedHinge(positive, weights, weight=weight), X, positive, weight
        )


class MAPRanker(_StructuredRanker):
    __doc__ = f"""Maximises average precision (SVM-MAP, Yue et al. 2007).

    Minimises  max over rankings of (1 - AP) - (1 / (m n)) sum over swapped pairs of (s_i - s_j), plus alpha/2 ||w||^2.
    The worst ranking is found in (m + n) log n steps.

    Parameters
    ----------
    {_STRUCTURED_PARAMETERS}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = MAPRanker().fit(StandardScaler().fit_transform(X), y)
    >>> ranker.optimality_ <= 1e-3
    True
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the weights; parameters as in `TopPush.fit`. Average precision here knows no sample
        weights.
        """
        self._check_parameters()
        X, positive, _ = self._read_two(X, y)
        return self._fit_objective(AveragePrecision(positive), X, positive)


class AATPRanker(_StructuredRanker):
    __doc__ = f"""Accuracy at the top (AATP, Boyd et al. 2012): a threshold that leaves a fraction of all rows above it.

    For a threshold row a, minimises the mean hinge of the positives above s_a and of the negatives below it, plus
    alpha/2 ||w||^2, which is convex. The row should be the one that leaves the fraction tau of all rows above it; which
    one that is depends on w.

    Parameters
    ----------
    fraction : float, default=0.1
        tau, strictly between 0 and 1.
    anchors : {{"auto", "all"}}, default="auto"
        "all" solves the problem for every row, as published: N fits. "auto" takes the row at the fraction under the
        present weights, solves, and repeats until the row stays; a few fits.
    {_STRUCTURED_PARAMETERS}
    anchor_ : int
        The row that sets the threshold.

    Notes
    -----
    Of all fits, the one with the lowest hinge loss around its own quantile is kept; `objective_` and `optimality_` are
    those of the convex problem for its row. The choice of the row is not convex and has no certificate.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = AATPRanker(fraction=0.5, alpha=1e-2).fit(StandardScaler().fit_transform(X), y)
    >>> ranker.optimality_ <= 1e-3
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
        super().__init__(
            alpha=alpha, tol=tol, max_iter=max_iter, warm_start=warm_start, verbose=verbose
        )
        self.fraction = fraction
        self.anchors = anchors

    _scores: Vector

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the weights; parameters as in `TopPush.fit`, without sample weights."""
        self._check_parameters()
        check_choice("anchors", self.anchors, ("auto", "all"))
        if not (isinstance(self.fraction, Real) and 0.0 < self.fraction < 1.0):
            raise ValueError(
                f"fraction must be a number strictly between 0 and 1; got {self.fraction!r}."
            )
        X, positive, _ = self._read_two(X, y)
        design = make_design(X)
        start = self._warm_weights(intercept=False)
        chosen: list[int] = []

        def run(progress: Progress) -> SolverResult:
            best, best_loss = None, np.inf
            for anchor, w in self._candidates(design, positive, start):
                inner = Progress(verbose=progress.verbose)
                result = bundle(
                    AnchoredHinge(positive, anchor), design, self.alpha, start=w, tol=self.tol,
                    max_iter=self.max_iter, progress=inner,
                )  # fmt: skip
                self._scores = result.scores
                own = AnchoredHinge(positive, self._at_fraction(result.scores))
                loss = own.at(result.scores).value + 0.5 * self.alpha * float(result.w @ result.w)
                if loss < best_loss:
                    best, best_loss = result, loss
                    chosen[:] = [anchor]
                    progress.w, progress.history[:] = result.w, inner.history
            assert best is not None
            return best

        try:
            result = self._run_solver(run, intercept=False, smooth=False)
        finally:
            self.__dict__.pop("_scores", None)
        self.anchor_ = chosen[0]
        self._set_thresholds(result, positive)
        return self

    def _at_fraction(self, scores: Vector) -> int:
        place = min(max(int(np.ceil(self.fraction * scores.size)), 1), scores.size) - 1
        return int(np.argsort(-scores, kind="stable")[place])

    def _candidates(self, design: Any, positive: NDArray[np.bool_], start: Vector | None) -> Any:
        if self.anchors == "all":
            yield from ((anchor, start) for anchor in range(positive.size))
            return
        towards = np.where(positive, 1.0 / positive.sum(), -1.0 / (~positive).sum())
        w = design.adjoint(towards) if start is None else start
        scores, seen = design.scores(w), set()
        for _ in range(_ANCHOR_STEPS):
            anchor = self._at_fraction(scores)
            if anchor in seen:
                return
            seen.add(anchor)
            yield anchor, start
            scores = self._scores


def _check_range(fpr_range: Any) -> tuple[float, float]:
    try:
        low, high = (float(v) for v in fpr_range)
    except (TypeError, ValueError):
        raise ValueError(
            f"fpr_range must be a pair (low, high) of false positive rates; got {fpr_range!r}."
        ) from None
    if not 0.0 <= low < high <= 1.0:
        raise ValueError(f"fpr_range must have 0 <= low < high <= 1; got {fpr_range!r}.")
    return low, high


def _rank_weights(weights: Any) -> RankWeights:
    if isinstance(weights, str):
        check_choice("weights", weights, ("harmonic", "uniform"))
        return harmonic if weights == "harmonic" else uniform
    given = np.asarray(weights, dtype=float)
    if (
        given.ndim != 1
        or given.size == 0
        or not np.isfinite(given).all()
        or given.min() < 0.0
        or given[0] == 0.0
    ):
        raise ValueError(
            "weights must be 'harmonic', 'uniform' or a sequence of non-negative numbers that begins above zero; got "
            f"{weights!r}."
        )
    if (np.diff(given) > 0.0).any():
        raise ValueError(
            "weights must not rise from one place to the next: the loss would not be convex."
        )

    def by_place(above: Vector, total: float) -> tuple[Vector, Vector]:
        sums = np.concatenate([[0.0], np.cumsum(given)])
        share = np.interp(above, np.arange(sums.size), sums)
        share = share / share.max()
        return share, share

    return by_place
