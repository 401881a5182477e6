"""Rankers that train on a sample of the pairs and points: active sampling (shen2013), combined
stochastic descent.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from forerank._kernels import serial_blas
from forerank._typing import Matrix, Vector
from forerank._validation import check_choice, check_number, check_weights, stacklevel_outside
from forerank.design import Design, make_design
from forerank.design.row_pairs import Differences
from forerank.estimators.base import (
    prevalence_thresholds,
    refuse_more_than_two,
    refuse_weightless_class,
)
from forerank.estimators.linear import LinearRanker, _class_weights
from forerank.objectives import AllPairs, Pointwise
from forerank.sampling import STRATEGIES, PairSampler
from forerank.solvers.dual import DualResult, dual_descent
from forerank.solvers.sgd import LOSSES, CombinedDescent

__all__ = ["ActiveSamplingRanker", "CombinedSGDRanker", "Round"]

EvalSet = tuple[Any, Any]

# What "auto" stands for where there are as many candidates: the budget of the paper.
_USUAL_BUDGET = 8000
# While the pool grows, its solution only guides the next draw: a gap of this size, or this many
# passes, are enough.
_ROUGH = 1e-2
_ROUGH_PASSES = 100
# Multiplications that the last fit may spend beyond its tolerance.
_UNNOTICED = 3e6
# Parts of a stochastic run, between which it reports and can be interrupted.
_REPORTS = 20


@dataclass(frozen=True)
class Round:
    """The state of a sampled fit after a round.

    Attributes
    ----------
    pool : int
        Pairs and points trained on so far.
    objective : float
        Active sampling: the objective over the pool, with the penalty of that pool, alpha budget /
        pool. Stochastic descent: the mean loss met in the round.
    optimality : float
        The relative duality gap over the pool; NaN where there is none.
    acceptance : float
        The mean probability of keeping a proposal; candidates drawn before are never kept. NaN
        where there is none.
    rejected : int
        Proposals made and not kept in this round.
    seconds : float
        Since the beginning of the fit.
    auc : float
        AUC on `eval_set`; NaN without one.
    """

    pool: int
    objective: float
    optimality: float
    acceptance: float
    rejected: int
    seconds: float
    auc: float


class _SampledRanker(LinearRanker):
    """What sampled rankers share: reading the data, rounds that are recorded and shown,
    interruption without loss.
    """

    callback: Callable[[Any, Round], object] | None
    history_: list[Any]
    random_state: int | np.random.RandomState | None

    def _read_binary(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Matrix, NDArray[np.integer], NDArray[np.bool_], Vector | None]:
        X, codes = self._read(X, y)
        refuse_more_than_two(self.classes_)
        weight = check_weights(sample_weight, codes.size)
        positive = codes == 1
        refuse_weightless_class(weight, positive, self.classes_)
        return X, codes, positive, weight

    def _read_eval_set(self, eval_set: EvalSet | None) -> tuple[Design, NDArray[np.bool_]] | None:
        if eval_set is None:
            return None
        try:
            X, y = eval_set
        except (TypeError, ValueError):
            raise ValueError(
                "eval_set must be a pair (X, y) of rows and labels to compute the AUC on."
            ) from None
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(
                f"eval_set has the label {unknown.tolist()[0]!r}; the labels of y are {self.classes_.tolist()}."
            )
        positive = y == self.classes_[1]
        if positive.all() or not positive.any():
            raise ValueError("eval_set has one class only; an AUC needs both.")
        return make_design(X), positive

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31, size=4))

    @contextmanager
    def _shown(self, n_pairs: int) -> Iterator[Callable[[Round], None]]:
        """A function to call after each round: a progress bar where `verbose` is set."""
        if not self.verbose:
            yield lambda round: None
            return
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns) as progress:
            task = progress.add_task(type(self).__name__, total=n_pairs, note="")

            def show(round: Round) -> None:
                note = f"{round.pool:,} of {n_pairs:,}, objective {round.objective:.4g}"
                note += "" if np.isnan(round.auc) else f", AUC {round.auc:.4f}"
                progress.update(task, completed=round.pool, note=note)

            yield show

    def _after(self, round: Round, show: Callable[[Round], None]) -> bool:
        """Record a round; whether the callback asks to stop."""
        self.history_.append(round)
        self.n_iter_ = len(self.history_)
        show(round)
        if self.callback is None:
            return False
        answer = self.callback(self, round)
        return isinstance(answer, (bool, np.bool_)) and bool(answer)

    def _auc(self, holdout: tuple[Design, NDArray[np.bool_]] | None, w: Vector) -> float:
        if holdout is None:
            return float("nan")
        from forerank.metrics import roc_auc  # loads much that a fit does not need

        return roc_auc(holdout[1], holdout[0].scores(w))


class ActiveSamplingRanker(_SampledRanker):
    """RankSVM on a small sample of the pairs, chosen while learning: ASRankSVM and ASCRC (shen2013,
    Algorithm 1).

    Starts from a few random pairs, then in turns fits the hinge on the pairs chosen so far and
    chooses the next, those on which the present ranking is wrong or unsure. With gamma < 1 the rows
    themselves take part as pseudo-pairs with the origin, which combines ranking and classification
    (shen2013, eq. 5). The objective that the sample stands for is

        gamma mean over pairs [1 - (x_i - x_j) w]_+ + (1 - gamma) mean over points [1 - y_i x_i w]_+ + alpha/2 ||w||^2

    Parameters
    ----------
    strategy : {"soft-correct", "soft-close", "random", "hard-close", "hard-correct"},
    default="soft-correct"
        What to choose next, by the score difference d of a candidate: soft-correct with probability
        proportional to tanh([1 - d]_+ / 2), soft-close to 2 / (1 + exp |d|), random to 1; the hard
        ones take the lowest d or |d|. Hard-correct picks outliers first, and ranks badly where
        there is noise; it is here for comparison.
    gamma : float in [0, 1] or "uniform", default=1.0
        The share of pairs; the rest are points. "uniform" gives every pair and every point the same
        chance.
    alpha : float, default=1e-4
        Strength of the penalty when the budget is spent. Each chosen pair weighs 1 / (alpha budget) against ||w||^2 / 2
        throughout, so that a smaller pool is penalised more; the paper's C is 1 / (alpha budget).
    step : int, default=100
        Candidates chosen between two fits.
    budget : int or "auto", default="auto"
        Candidates chosen in all. "auto" is 8000, or all where there are fewer; more than there are
        is refused.
    bias_correction : bool or "normalized", default=True
        Whether to weigh what was chosen by the inverse of its probability, so that the objective
        over the sample is an unbiased estimate of that over all candidates (for soft-correct: over
        those with a loss when they were drawn, which are the ones that matter). "normalized"
        divides these weights by their sum, as the paper does: soft-correct never draws a pair
        without loss, so that its mean is then one over wrong pairs only, larger, and `alpha` weighs
        less against it. Hard strategies have no probabilities and stay biased.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes among the points and for the intercept, times the sample weights.
        Pairs have one row of each class, and no use for them.
    tol : float, default=1e-3
        The relative duality gap of the fit on the complete pool; those before it, and so a fit that
        a callback ends, stop at 1e-2.
    max_iter : int, default=10_000
        The most passes over the chosen pairs in one fit.
    callback : callable, default=None
        Called as callback(ranker, round) after every fit, with `coef_` up to date (the intercept
        comes last); returning True ends the fit early.
    random_state : int, RandomState or None, default=None
    verbose : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
        Neither pairs nor pseudo-pairs see a constant. It is set so that, in the training rows, as
        much weight is scored above zero as the higher class has, class weights included.
    classes_ : array of shape (2,)
        The higher one is ranked ahead.
    gamma_ : float
        The share of pairs, also where it was given as "uniform".
    pool_ : array of shape (n_chosen, 2)
        Row numbers of the chosen pairs, the preferred one first, in the order in which they were
        chosen; -1 stands for the origin of a pseudo-pair.
    pool_weight_ : array of shape (n_chosen,)
        Their weights in the last objective.
    n_iter_ : int
        Rounds.
    objective_ : float
        The objective over the pool; after an early end, with the penalty alpha budget / pool.
    optimality_ : float
        Its relative duality gap.
    history_ : list of Round
        Pool size, objective, gap, acceptance, rejections, seconds and AUC after every round.
    n_features_in_ : int
    feature_names_in_ : array
        Only where X has column names.

    Notes
    -----
    Cost per round: the scores of a few times `step` rows (soft strategies; of all rows where
    nearly every pair is in order, and for hard strategies), and some passes over the pool. The same
    seed gives the same weights; a last bit that differs, as between dense and sparse arrays of the
    same numbers, may change a draw and what follows from it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = make_pipeline(StandardScaler(), ActiveSamplingRanker(budget=2000, random_state=0)).fit(X, y)
    >>> round(float(roc_auc_score(y, ranker.decision_function(X))), 2)
    1.0
    """

    def __init__(
        self,
        strategy: str = "soft-correct",
        *,
        gamma: float | Literal["uniform"] = 1.0,
        alpha: float = 1e-4,
        step: int = 100,
        budget: int | Literal["auto"] = "auto",
        bias_correction: bool | Literal["normalized"] = True,
        class_weight: Mapping | str | None = None,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        callback: Callable[["ActiveSamplingRanker", Round], object] | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.strategy = strategy
        self.gamma = gamma
        self.alpha = alpha
        self.step = step
        self.budget = budget
        self.bias_correction = bias_correction
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_choice("strategy", self.strategy, STRATEGIES)
        _check_gamma(self.gamma, or_uniform=True)
        check_number("alpha", self.alpha, low=0.0, strict=True)
        check_number("step", self.step, low=1, integer=True)
        if self.budget != "auto":
            if isinstance(self.budget, str):
                raise ValueError(f'budget must be an integer >= 1 or "auto"; got {self.budget!r}.')
            check_number("budget", self.budget, low=1, integer=True)
            if self.step > self.budget:
                raise ValueError(
                    f"step must not exceed budget: {self.step} candidates per round do not fit into a budget of "
                    f"{self.budget}. Lower step, or raise budget."
                )
        if (
            not isinstance(self.bias_correction, (bool, np.bool_))
            and self.bias_correction != "normalized"
        ):
            raise ValueError(
                f'bias_correction must be True, False or "normalized"; got {self.bias_correction!r}.'
            )
        check_number("tol", self.tol, low=0.0, strict=True)
        check_number("max_iter", self.max_iter, low=1, integer=True)

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        eval_set: EvalSet | None = None,
    ) -> Self:
        """Choose pairs and fit the weights, in turns.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes with any labels; the one that sorts last is ranked ahead.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights of the rows; a pair weighs the product of its two. Rows of weight
            zero are not chosen.
        eval_set : pair (X, y), optional
            Rows and labels on which the AUC is computed after every round, for `history_`.

        Returns
        -------
        self
        """
        self._check_parameters()
        begin = perf_counter()
        matrix, codes, positive, weight = self._read_binary(X, y, sample_weight)
        design = make_design(matrix)
        holdout = self._read_eval_set(eval_set)
        sampler = PairSampler(
            design,
            positive,
            strategy=self.strategy,
            gamma=self.gamma,
            random_state=self._generator(),
            eligible=None if weight is None else weight > 0.0,
        )
        budget = self._budget(sampler)
        class_weight = np.ones(2)
        if self.class_weight is not None:
            class_weight = _class_weights(self.class_weight, self.classes_, codes, weight)
        pair_weight, point_weight = self._row_weights(codes, positive, weight, class_weight)
        pairs = Differences(matrix, budget)
        self._set_weights(np.zeros(design.n_columns), intercept=False)
        self.gamma_, self.history_, self.n_iter_ = sampler.gamma, [], 0
        self.objective_ = self.optimality_ = float("nan")
        self.pool_, self.pool_weight_ = np.empty((0, 2), dtype=np.intp), np.empty(0)
        solution: DualResult | None = None
        stop = False
        try:
            with self._shown(budget) as show, serial_blas():
                while pairs.n_rows < budget and not stop:
                    n = min(self.step, budget - pairs.n_rows)
                    drawn = sampler.draw(n, None if solution is None else solution.w)
                    pairs.extend(drawn.plus, drawn.minus)
                    share = self._pool_weight(sampler, pairs, pair_weight, point_weight)
                    solution = self._fit_pool(pairs, share, budget, solution)
                    self._set_weights(solution.w, intercept=False)
                    self.pool_, self.pool_weight_ = (
                        np.column_stack([pairs.plus, pairs.minus]),
                        share,
                    )
                    self.objective_, self.optimality_ = solution.objective, solution.optimality
                    certificate = pairs.n_rows, solution.objective, solution.optimality
                    auc = self._auc(holdout, solution.w)
                    seconds = perf_counter() - begin
                    stop = self._after(
                        Round(*certificate, drawn.acceptance, drawn.n_rejected, seconds, auc), show
                    )
        finally:
            # Also after an interruption: what has been learnt so far should be ready for use.
            if self.class_weight is not None:
                weight = class_weight[codes] if weight is None else weight * class_weight[codes]
            self.intercept_ = -prevalence_thresholds(design.scores(self.coef_[0]), codes, weight, 2)
        if solution is not None and not solution.converged and not stop:
            self._warn_unconverged()
        return self

    def _fit_pool(
        self, pairs: Differences, share: Vector, budget: int, before: DualResult | None
    ) -> DualResult:
        """The weights for the pool so far; roughly, until it is complete."""
        strength = pairs.n_rows / (self.alpha * budget)
        complete = pairs.n_rows == budget
        return dual_descent(
            pairs,
            share * strength,
            start=None if before is None else before.dual,
            tol=self.tol if complete else max(self.tol, _ROUGH),
            max_iter=self.max_iter if complete else min(self.max_iter, _ROUGH_PASSES),
            at_least=_UNNOTICED if complete else 0.0,
            seed=pairs.n_rows,
            scale=1.0 / strength,
        )

    def _warn_unconverged(self) -> None:
        warnings.warn(
            f"The last fit of {type(self).__name__} stopped after max_iter={self.max_iter} passes at a relative "
            f"duality gap of {self.optimality_:.2e}, above tol={self.tol:g}. Raise max_iter or alpha, scale the "
            "columns of X, or accept the accuracy by raising tol.",
            ConvergenceWarning,
            stacklevel=stacklevel_outside(),
        )

    def _budget(self, sampler: PairSampler) -> int:
        if self.budget == "auto":
            return min(_USUAL_BUDGET, sampler.n_candidates)
        if self.budget > sampler.n_candidates:
            what = {1.0: "pairs", 0.0: "points"}.get(sampler.gamma, "pairs and points")
            raise ValueError(
                f"budget is {self.budget}, but the data have only {sampler.n_candidates} {what} to choose from. Lower "
                'budget, set budget="auto", or use PairwiseRanker(loss="hinge"), which fits all pairs exactly.'
            )
        return int(self.budget)

    def _row_weights(
        self,
        codes: NDArray[np.integer],
        positive: NDArray[np.bool_],
        weight: Vector | None,
        class_weight: Vector,
    ) -> tuple[Vector | None, Vector | None]:
        """Weights of rows in pairs and as points, each scaled to a mean of one over the rows that
        can be drawn.
        """
        if weight is None and self.class_weight is None:
            return None, None
        rows = np.ones(codes.size) if weight is None else weight
        eligible = rows > 0.0
        point = rows * class_weight[codes]
        pair = np.where(
            positive,
            rows / rows[positive & eligible].mean(),
            rows / rows[~positive & eligible].mean(),
        )
        return pair, point / point[eligible].mean()

    def _pool_weight(
        self,
        sampler: PairSampler,
        pairs: Differences,
        pair_weight: Vector | None,
        point_weight: Vector | None,
    ) -> Vector:
        """The weight of each chosen candidate in the objective over the pool."""
        share = sampler.importance() if self.bias_correction else np.ones(pairs.n_rows)
        if pair_weight is not None and point_weight is not None:
            plus, minus = pairs.plus, pairs.minus
            single = np.where(plus >= 0, plus, minus)
            share = share * np.where(
                (plus >= 0) & (minus >= 0),
                pair_weight[plus] * pair_weight[minus],
                point_weight[single],
            )
        unbiased = self.bias_correction and self.bias_correction != "normalized"
        return share / (share.size if unbiased else share.sum())


class CombinedSGDRanker(_SampledRanker):
    """Stochastic gradient descent on pairs and points at once: combined regression and ranking
    (CRR).

    With s = X w, minimises

        gamma mean over pairs l(s_i - s_j)  +  (1 - gamma) mean over rows l'(y_i (s_i + b))  +  alpha/2 (||w||^2 + b^2)

    by steps on one random pair (with probability gamma) or one random row. With the squared loss on
    points this is the method of Sculley (2010), with the hinge on both what shen2013 compares with.

    Parameters
    ----------
    point_loss : {"hinge", "logistic", "squared"}, default="hinge"
        The loss on the margin of a row.
    pair_loss : {"hinge", "logistic", "squared"}, default="hinge"
        The loss on the score difference of a pair.
    gamma : float in [0, 1], default=0.5
        The probability that a step takes a pair.
    alpha : float, default=1e-4
        Strength of the penalty.
    n_steps : int, default=100_000
        Steps in all.
    average : bool, default=True
        Whether to return the average of the weights over the second half of the steps, in place of
        the last. A fit that ends early has the last.
    fit_intercept : bool, default=True
        Whether points see a constant; it is penalised like the weights.
    callback : callable, default=None
        Called as callback(ranker, round) twenty times during the fit; returning True ends it early.
    random_state : int, RandomState or None, default=None
    verbose : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
    classes_ : array of shape (2,)
        The higher one is ranked ahead.
    n_iter_ : int
        Twentieths of the steps that were taken.
    objective_ : float
        The objective at the weights returned, over all pairs and all rows.
    history_ : list of Round
        Steps, mean loss met since the entry before, seconds and AUC of the latest weights, not of
        their average.
    n_features_in_ : int
    feature_names_in_ : array
        Only where X has column names.

    Notes
    -----
    Cost: the stored entries of two rows per step, whatever the number of rows; one pass over
    X for their norms, and one evaluation of the exact objective at the end. There is no
    certificate: for the minimum over all pairs use PairwiseRanker.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import roc_auc_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ranker = make_pipeline(StandardScaler(), CombinedSGDRanker(random_state=0)).fit(X, y)
    >>> round(float(roc_auc_score(y, ranker.decision_function(X))), 2)
    1.0
    """

    def __init__(
        self,
        point_loss: str = "hinge",
        *,
        pair_loss: str = "hinge",
        gamma: float = 0.5,
        alpha: float = 1e-4,
        n_steps: int = 100_000,
        average: bool = True,
        fit_intercept: bool = True,
        callback: Callable[["CombinedSGDRanker", Round], object] | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.point_loss = point_loss
        self.pair_loss = pair_loss
        self.gamma = gamma
        self.alpha = alpha
        self.n_steps = n_steps
        self.average = average
        self.fit_intercept = fit_intercept
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_choice("point_loss", self.point_loss, LOSSES)
        check_choice("pair_loss", self.pair_loss, LOSSES)
        _check_gamma(self.gamma, or_uniform=False)
        check_number("alpha", self.alpha, low=0.0, strict=True)
        check_number("n_steps", self.n_steps, low=1, integer=True)

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        eval_set: EvalSet | None = None,
    ) -> Self:
        """Fit the weights.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes with any labels; the one that sorts last is ranked ahead.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights of the rows: how often each is drawn, in pairs and alone.
        eval_set : pair (X, y), optional
            Rows and labels on which the AUC is computed twenty times, for `history_`.

        Returns
        -------
        self
        """
        self._check_parameters()
        begin = perf_counter()
        matrix, codes, positive, weight = self._read_binary(X, y, sample_weight)
        design = make_design(matrix)
        holdout = self._read_eval_set(eval_set)
        random = self._generator()
        draw = _RowDraws(positive, weight, random)
        size = _squared_row_norms(matrix)
        descent = CombinedDescent(
            design.n_columns,
            self.n_steps,
            pair_loss=self.pair_loss,
            point_loss=self.point_loss,
            alpha=self.alpha,
            typical_size=float(np.average(size, weights=weight)),
            intercept=bool(self.fit_intercept),
        )
        arrays = (matrix.data, matrix.indices, matrix.indptr) if sp.issparse(matrix) else (matrix,)
        self._set_weights(np.zeros(design.n_columns + 1), intercept=True)
        self.history_, self.n_iter_, nan = [], 0, float("nan")
        bounds = np.linspace(0, self.n_steps, min(_REPORTS, self.n_steps) + 1).astype(int)
        stop = False
        try:
            with self._shown(self.n_steps) as show:
                for n in np.diff(bounds):
                    plus, minus = draw.pairs_and_points(int(n), float(self.gamma))
                    loss = descent.run(arrays, plus, minus, _difference_bounds(size, plus, minus))
                    self._set_weights(descent.weights, intercept=True)
                    auc = self._auc(holdout, self.coef_[0])
                    stop = self._after(
                        Round(descent.n_done, loss, nan, nan, 0, perf_counter() - begin, auc), show
                    )
                    if stop:
                        break
            if self.average and not stop:
                self._set_weights(descent.average, intercept=True)
        finally:
            self.objective_ = self._objective(design.scores(self.coef_[0]), codes, positive, weight)
        if not np.isfinite(self.objective_):
            raise ValueError(
                f"The objective is {self.objective_} after {descent.n_done} steps: the numbers in X are too large for "
                "stochastic descent. Scale its columns, for instance with MaxAbsScaler."
            )
        return self

    def _objective(
        self,
        s: Vector,
        codes: NDArray[np.integer],
        positive: NDArray[np.bool_],
        weight: Vector | None,
    ) -> float:
        b = self.intercept_[0]
        total = 0.5 * self.alpha * (np.sum(self.coef_**2) + b * b)
        if self.gamma > 0.0:
            total += self.gamma * AllPairs(codes, self.pair_loss, weight=weight).at(s).value
        if self.gamma < 1.0:
            total += (1.0 - self.gamma) * Pointwise(positive, self.point_loss, weight=weight).at(
                s + b
            ).value
        return float(total)


class _RowDraws:
    """Random rows of either class and of both, as often as they weigh."""

    def __init__(
        self, positive: NDArray[np.bool_], weight: Vector | None, random: np.random.Generator
    ) -> None:
        self._positive, self._random = positive, random
        every = np.arange(positive.size)
        self._rows = {"ahead": every[positive], "behind": every[~positive], "any": every}
        self._cumulated = None
        if weight is not None:
            self._cumulated = {side: np.cumsum(weight[rows]) for side, rows in self._rows.items()}

    def _draw(self, side: str, n: int) -> NDArray[np.intp]:
        rows = self._rows[side]
        if self._cumulated is None:
            return rows[self._random.integers(rows.size, size=n)]
        steps = self._cumulated[side]
        return rows[np.searchsorted(steps, self._random.random(n) * steps[-1], side="right")]

    def pairs_and_points(self, n: int, gamma: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        pair = self._random.random(n) < gamma
        n_pairs = int(np.count_nonzero(pair))
        plus, minus = np.full(n, -1, dtype=np.intp), np.full(n, -1, dtype=np.intp)
        plus[pair], minus[pair] = self._draw("ahead", n_pairs), self._draw("behind", n_pairs)
        point = self._draw("any", n - n_pairs)
        ahead = self._positive[point]
        plus[~pair] = np.where(ahead, point, -1)
        minus[~pair] = np.where(ahead, -1, point)
        return plus, minus


def _squared_row_norms(X: Matrix) -> Vector:
    if sp.issparse(X):
        squares = sp.csr_array((np.square(X.data, dtype=float), X.indices, X.indptr), shape=X.shape)
        return np.asarray(squares.sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X, dtype=float)


def _difference_bounds(size: Vector, plus: NDArray[np.intp], minus: NDArray[np.intp]) -> Vector:
    """Upper bounds on ||x_i - x_j||^2, from the squared norms of the rows; a point sees the
    constant too.
    """
    size = np.append(size, 0.0)  # row -1 is the origin
    pair = (plus >= 0) & (minus >= 0)
    return np.where(pair, 2.0, 1.0) * (size[plus] + size[minus]) + ~pair


def _check_gamma(gamma: Any, *, or_uniform: bool) -> None:
    if or_uniform and isinstance(gamma, str) and gamma == "uniform":
        return
    if (
        not isinstance(gamma, (int, float, np.number))
        or isinstance(gamma, bool)
        or not 0.0 <= gamma <= 1.0
    ):
        allowed = (
            'a number from 0 (points only) to 1 (pairs only), or "uniform"'
            if or_uniform
            else "a number from 0 to 1"
        )
        raise ValueError(f"gamma must be {allowed}; got {gamma!r}.")
