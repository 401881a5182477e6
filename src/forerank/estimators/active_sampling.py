"""RankSVM on actively sampled pairs and points (shen2013): ActiveSamplingRanker."""

import warnings
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from forerank._kernels import serial_blas
from forerank._typing import Vector
from forerank._validation import check_choice, check_number, stacklevel_outside
from forerank.design import make_design
from forerank.design.row_pairs import Differences
from forerank.estimators.pointwise import class_weights
from forerank.estimators.sampled import EvalSet, Round, SampledRanker, check_gamma
from forerank.sampling import STRATEGIES, PairSampler
from forerank.solvers.active_sampling import RowWeights, active_sampling

__all__ = ["ActiveSamplingRanker"]

# Most candidates that budget="auto" draws: the budget of the paper.
_USUAL_BUDGET = 8000


class ActiveSamplingRanker(SampledRanker):
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
        check_gamma(self.gamma, or_uniform=True)
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
        matrix, codes, positive, weight = self._read_two_classes(X, y, sample_weight)
        design, holdout = make_design(matrix), self._read_eval_set(eval_set)
        sampler = PairSampler(
            design,
            positive,
            strategy=self.strategy,
            gamma=self.gamma,
            random_state=self._generator(),
            eligible=None if weight is None else weight > 0.0,
        )
        budget = self._budget(sampler)
        point_weight, row_weights = weight, None
        if self.class_weight is not None:
            of_class = class_weights(self.class_weight, self.classes_, codes, weight)[codes]
            point_weight = of_class if weight is None else weight * of_class
        if point_weight is not None:
            pair_weight = np.ones(codes.size) if weight is None else weight
            row_weights = RowWeights.of(positive, pair_weight, point_weight)

        def weigh(pairs: Differences) -> Vector:
            return self._pool_weights(sampler, pairs, row_weights)

        self._set_weights(np.zeros(design.n_columns), intercept=False)
        self.gamma_ = sampler.gamma
        self.objective_ = self.optimality_ = float("nan")
        self.pool_, self.pool_weight_ = np.empty((0, 2), dtype=np.intp), np.empty(0)
        problem = sampler, matrix, self.alpha, budget
        limits: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "step": self.step}
        try:
            with self._rounds(budget, holdout, begin) as record, serial_blas():
                for pool in active_sampling(*problem, weigh=weigh, **limits):
                    solution, drawn = pool.solution, pool.last_drawn
                    self._set_weights(solution.w, intercept=False)
                    self.pool_ = np.column_stack([pool.pairs.plus, pool.pairs.minus])
                    self.pool_weight_ = pool.weight
                    self.objective_, self.optimality_ = solution.objective, solution.optimality
                    state = pool.pairs.n_rows, solution.objective, solution.optimality
                    stopped = record(*state, drawn.acceptance, drawn.n_rejected)
                    if stopped:
                        break
        finally:
            # After an interruption too, the weights so far are ready for use.
            self._set_intercept(design.scores(self.coef_[0]), codes, point_weight)
        if not (stopped or solution.converged):
            self._warn_unconverged()
        return self

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

    def _warn_unconverged(self) -> None:
        warnings.warn(
            f"The last fit of {type(self).__name__} stopped after max_iter={self.max_iter} passes at a relative "
            f"duality gap of {self.optimality_:.2e}, above tol={self.tol:g}. Raise max_iter or alpha, scale the "
            "columns of X, or accept the accuracy by raising tol.",
            ConvergenceWarning,
            stacklevel=stacklevel_outside(),
        )

    def _pool_weights(
        self, sampler: PairSampler, pairs: Differences, row_weights: RowWeights | None
    ) -> Vector:
        """Weight of each drawn candidate in the objective over the pool."""
        weight = sampler.importance() if self.bias_correction else np.ones(pairs.n_rows)
        if row_weights is not None:
            weight = weight * row_weights.of_candidates(pairs.plus, pairs.minus)
        unbiased = self.bias_correction and self.bias_correction != "normalized"
        return weight / (weight.size if unbiased else weight.sum())
