"""RankSVM on actively sampled pairs and points (shen2013): ActiveSamplingRanker."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from forerank._kernels import serial_blas
from forerank._typing import Vector
from forerank._validation import check_choice, check_number, stacklevel_outside
from forerank.design import make_design
from forerank.design.row_pairs import Differences
from forerank.estimators.pointwise import class_weights
from forerank.estimators.sampled import (
    SAMPLED_ATTRIBUTES,
    Round,
    Rounds,
    SampledRanker,
    SampledRows,
)
from forerank.estimators.two_class import EXAMPLE_DATA, check_gamma
from forerank.sampling import STRATEGIES, PairSampler
from forerank.solvers.active_sampling import RowWeights, active_sampling

__all__ = ["ActiveSamplingRanker"]

# Most candidates that budget="auto" draws: the budget of the paper.
_USUAL_BUDGET = 8000


class ActiveSamplingRanker(SampledRanker):
    __doc__ = f"""RankSVM on an actively drawn sample of the pairs: ASRankSVM and ASCRC (shen2013,
    Algorithm 1).

    Starts from a few random pairs, then alternates between fitting the hinge on the pairs drawn so
    far and drawing pairs that the current weights rank wrong or by a small margin. With gamma < 1
    the rows themselves take part as pseudo-pairs with the origin, which combines ranking and
    classification (shen2013, eq. 5). The objective that the sample estimates is

        gamma mean over pairs [1 - (x_i - x_j) w]_+
            + (1 - gamma) mean over points [1 - y_i (x_i w + b)]_+ + alpha/2 ||w||^2

    and `CombinedRanker("hinge")` has its exact minimum.

    Parameters
    ----------
    strategy : str, default="soft-correct"
        How candidates are drawn, by their score difference d: "soft-correct" with probability
        proportional to tanh([1 - d]_+ / 2), "soft-close" to 2 / (1 + exp |d|), "random" to 1;
        "hard-correct" and "hard-close" take the lowest d or |d|. Hard-correct takes outliers first,
        and ranks badly where there is noise; it is meant for comparisons.
    gamma : float in [0, 1] or "uniform", default=1.0
        The share of pairs; the rest are points. "uniform" gives every pair and every point the same
        probability.
    alpha : float, default=1e-4
        Strength of the penalty for the complete pool. Each pair weighs 1 / (alpha budget) against
        ||w||^2 / 2 throughout, so that a smaller pool is penalised more; the paper's C is 1 /
        (alpha budget).
    step : int, default=100
        Candidates drawn between two fits.
    budget : int or "auto", default="auto"
        Candidates drawn in total. "auto" is 8000, or all where there are fewer.
    bias_correction : bool, "normalized" or "acceptance", default=True
        Whether to weigh candidates by the inverse of their probability, so that the objective over
        the sample is an unbiased estimate of that over all candidates (for soft-correct: over those
        with a loss when they were drawn). "normalized" divides these weights by their sum:
        soft-correct never draws a pair without loss, so that the mean is then over wrong pairs
        only, larger, and `alpha` weighs less against it. "acceptance" are the weights that the
        paper prints, 1 / p divided by their sum, with p the probability of accepting the candidate
        when it was drawn: the mean acceptance of its round does not count, so that rounds in which
        few candidates are acceptable weigh more than in "normalized". Hard strategies have no
        probabilities and stay biased.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes for the points and the intercept, times the sample weights; pairs
        have one row of each class and are not affected.
    fit_intercept : bool, default=True
        Whether points have a constant b, which is not penalised. Pairs do not depend on it, so with
        gamma = 1 it has no effect.
    tol : float, default=1e-3
        The relative duality gap of the fit on the complete pool; fits before it stop at 1e-2.
    max_iter : int, default=10_000
        Most passes over the pool in one fit.
    callback : callable, default=None
        Called as callback(ranker, round) after every fit, with the current `coef_` (an intercept
        that is no part of the objective is set at the end); returning True ends the fit early.
    {SAMPLED_ATTRIBUTES.format(start="the first candidates are drawn under them.")}
    intercept_ : array of shape (1,)
        The constant b of the points. With gamma = 1, or without `fit_intercept`, it is set for
        `predict`: as much weight of the training rows, class weights included, is scored above zero
        as the positive class has.
    gamma_ : float
        The share of pairs, also for gamma="uniform".
    pool_ : array of shape (n_drawn, 2)
        Row numbers of the drawn pairs, the preferred one first, in the order of drawing; -1 is the
        origin of a pseudo-pair.
    pool_weight_ : array of shape (n_drawn,)
        Their weights in the last objective.
    objective_ : float
        The objective over the pool; after an early end, with the penalty alpha budget / pool.
    optimality_ : float
        Its relative duality gap.

    Notes
    -----
    Cost per round: the scores of a few times `step` rows (soft strategies; of all rows where nearly
    every pair is ranked correctly, and for hard strategies), and some passes over the pool. The
    same seed gives the same weights; a difference in the last bit, as between dense and sparse
    arrays of the same numbers, may change a draw and all that follow.

    Examples
    --------
    {EXAMPLE_DATA}
    >>> from sklearn.metrics import roc_auc_score
    >>> ranker = ActiveSamplingRanker(budget=2000, random_state=0).fit(X, y)
    >>> round(float(roc_auc_score(y, ranker.decision_function(X))), 2)
    1.0
    """

    # Models of version 0.1 have no constant, and no parameter for it.
    fit_intercept = False

    def __init__(
        self,
        strategy: str = "soft-correct",
        *,
        gamma: float | Literal["uniform"] = 1.0,
        alpha: float = 1e-4,
        step: int = 100,
        budget: int | Literal["auto"] = "auto",
        bias_correction: bool | Literal["normalized", "acceptance"] = True,
        class_weight: Mapping | str | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        callback: Callable[["ActiveSamplingRanker", Round], object] | None = None,
        graph: str | Iterable[tuple] | None = None,
        warm_start: bool = False,
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
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.graph = graph
        self.warm_start = warm_start
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
                    f"step must not exceed budget; got step={self.step} and budget={self.budget}. "
                    "Lower step, or raise budget."
                )
        corrected = self.bias_correction
        named = corrected in ("normalized", "acceptance")
        if not isinstance(corrected, (bool, np.bool_)) and not named:
            raise ValueError(
                'bias_correction must be True, False, "normalized" or "acceptance"; got '
                f"{corrected!r}."
            )
        check_number("tol", self.tol, low=0.0, strict=True)
        check_number("max_iter", self.max_iter, low=1, integer=True)

    def _fit_rows(self, rows: SampledRows, rounds: Rounds) -> None:
        design, start = make_design(rows.X), self._start()
        start_intercept = 0.0 if start is None else float(self.intercept_[0])
        preferred, weight, group, rows_of_entries = rows.entries()
        sampler = PairSampler(
            design,
            preferred,
            strategy=self.strategy,
            gamma=self.gamma,
            random_state=self._generator(),
            eligible=None if weight is None else weight > 0.0,
            group=group,
            rows_of_entries=rows_of_entries,
        )
        budget = self._budget(sampler)
        point_weight, row_weights = self._row_weights(rows)

        def weigh(pairs: Differences) -> Vector:
            return self._pool_weights(sampler, pairs, row_weights)

        intercept = bool(self.fit_intercept) and sampler.gamma < 1.0
        self._set_weights(np.zeros(design.n_columns), intercept=False)
        self.gamma_ = sampler.gamma
        self.objective_ = self.optimality_ = float("nan")
        self.pool_, self.pool_weight_ = np.empty((0, 2), dtype=np.intp), np.empty(0)
        problem = sampler, rows.X, self.alpha, budget
        settings: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "step": self.step}
        if intercept:
            settings |= {"intercept": True, "start_intercept": start_intercept}
        try:
            with rounds(budget) as record, serial_blas():
                for pool in active_sampling(*problem, weigh=weigh, start=start, **settings):
                    solution, drawn = pool.solution, pool.last_drawn
                    self._set_weights(np.append(solution.w, solution.intercept), intercept=True)
                    self.pool_ = np.column_stack([pool.pairs.plus, pool.pairs.minus])
                    self.pool_weight_ = pool.weight
                    self.objective_, self.optimality_ = solution.objective, solution.optimality
                    state = pool.pairs.n_rows, solution.objective, solution.optimality
                    stopped = record(*state, drawn.acceptance, drawn.n_rejected)
                    if stopped:
                        break
        finally:
            # After an interruption too, the weights so far are ready for use.
            if not intercept:
                graded = rows.blocks is not None
                set_thresholds = self._set_thresholds if graded else self._set_intercept
                set_thresholds(design.scores(self.coef_[0]), rows.codes, point_weight)
        if not (stopped or solution.converged):
            self._warn_unconverged()

    def _row_weights(self, rows: SampledRows) -> tuple[Vector | None, RowWeights | None]:
        """Weights of the rows as points, class weights included, and in the objective; None where
        all are equal.
        """
        codes, weight = rows.codes, rows.weight
        point_weight = weight
        if self.class_weight is not None:
            of_class = class_weights(self.class_weight, self.classes_, codes, weight)[codes]
            point_weight = of_class if weight is None else weight * of_class
        if point_weight is None:
            return None, None
        if rows.blocks is not None:
            scaled = None if weight is None else RowWeights.of_grades(rows.blocks, weight)
            return point_weight, scaled
        pair_weight = np.ones(codes.size) if weight is None else weight
        return point_weight, RowWeights.of(codes == 1, pair_weight, point_weight, rows.group)

    def _budget(self, sampler: PairSampler) -> int:
        if self.budget == "auto":
            return min(_USUAL_BUDGET, sampler.n_candidates)
        if self.budget > sampler.n_candidates:
            kind = {1.0: "pairs", 0.0: "points"}.get(sampler.gamma, "pairs and points")
            raise ValueError(
                f"budget is {self.budget}, but the data have only {sampler.n_candidates} {kind} to "
                'choose from. Lower budget, set budget="auto", or use PairwiseRanker(loss="hinge"),'
                " which fits all pairs exactly."
            )
        return int(self.budget)

    def _warn_unconverged(self) -> None:
        warnings.warn(
            f"The last fit of {type(self).__name__} stopped after max_iter={self.max_iter} passes "
            f"at a relative duality gap of {self.optimality_:.2e}, above tol={self.tol:g}. Raise "
            "max_iter or alpha, scale the columns of X, or accept the accuracy by raising tol.",
            ConvergenceWarning,
            stacklevel=stacklevel_outside(),
        )

    def _pool_weights(
        self, sampler: PairSampler, pairs: Differences, row_weights: RowWeights | None
    ) -> Vector:
        """Weight of each drawn candidate in the objective over the pool."""
        if self.bias_correction == "acceptance":
            weight = sampler.inverse_acceptance()
        else:
            weight = sampler.importance() if self.bias_correction else np.ones(pairs.n_rows)
        if row_weights is not None:
            weight = weight * row_weights.of_candidates(pairs.plus, pairs.minus)
        unbiased = bool(self.bias_correction) and not isinstance(self.bias_correction, str)
        return weight / (weight.size if unbiased else weight.sum())
