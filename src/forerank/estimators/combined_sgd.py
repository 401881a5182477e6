"""Stochastic gradient descent on pairs and points: CombinedSGDRanker."""

from collections.abc import Callable, Iterable

import numpy as np

from forerank._typing import Vector
from forerank._validation import check_choice, check_number
from forerank.design import make_design
from forerank.estimators.sampled import (
    SAMPLED_ATTRIBUTES,
    Round,
    Rounds,
    SampledRanker,
    SampledRows,
)
from forerank.estimators.two_class import EXAMPLE_DATA, check_gamma
from forerank.objectives import AllPairs, Pointwise
from forerank.solvers.sgd import LOSSES, combined_descent

__all__ = ["CombinedSGDRanker"]

# Rounds of a fit, after each of which it reports and can be ended.
_N_ROUNDS = 20


class CombinedSGDRanker(SampledRanker):
    __doc__ = f"""Stochastic gradient descent on pairs and points at once: combined regression and
    ranking (CRR).

    With s = X w, minimises

        gamma mean over pairs l(s_i - s_j) + (1 - gamma) mean over rows l'(y_i (s_i + b))
            + alpha/2 (||w||^2 + b^2)

    by steps on one random pair (with probability gamma) or one random row. With the squared loss on
    points this is the method of Sculley (2010), with the hinge on both the one that shen2013
    compares with.

    Parameters
    ----------
    point_loss : {{"hinge", "logistic", "squared"}}, default="hinge"
        The loss on the margin of a row.
    pair_loss : {{"hinge", "logistic", "squared"}}, default="hinge"
        The loss on the score difference of a pair.
    gamma : float in [0, 1], default=0.5
        The probability that a step takes a pair.
    alpha : float, default=1e-4
        Strength of the penalty.
    n_steps : int, default=100_000
        Number of steps.
    average : bool, default=True
        Whether to return the average of the weights over the second half of the steps instead of
        the last weights; a fit that ends early has the last.
    fit_intercept : bool, default=True
        Whether points have a constant; it is penalised like the weights.
    callback : callable, default=None
        Called as callback(ranker, round) twenty times during the fit; returning True ends it early.
    {SAMPLED_ATTRIBUTES.format(start="the sizes of the steps begin anew.")}
    intercept_ : array of shape (1,)
        The constant of the points; with `graph`, set with `thresholds_`.
    objective_ : float
        The objective at the returned weights, over all pairs and all rows.

    Notes
    -----
    A round is a twentieth of the steps. Rows are drawn in proportion to their weights, in pairs and
    alone; with groups (`qid`), pairs within groups in proportion to the product of the two weights.
    Cost: the stored entries of two rows per step, for any number of rows; one pass over X for their
    norms, and one evaluation of the exact objective at the end. There is no certificate: for the
    minimum over all pairs use PairwiseRanker.

    Examples
    --------
    {EXAMPLE_DATA}
    >>> from sklearn.metrics import roc_auc_score
    >>> ranker = CombinedSGDRanker(random_state=0).fit(X, y)
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
        graph: str | Iterable[tuple] | None = None,
        warm_start: bool = False,
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
        self.graph = graph
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_choice("point_loss", self.point_loss, LOSSES)
        check_choice("pair_loss", self.pair_loss, LOSSES)
        check_gamma(self.gamma, or_uniform=False)
        check_number("alpha", self.alpha, low=0.0, strict=True)
        check_number("n_steps", self.n_steps, low=1, integer=True)

    def _fit_rows(self, rows: SampledRows, rounds: Rounds) -> None:
        design = make_design(rows.X)
        parts = combined_descent(
            rows.X,
            *rows.entries(),
            start=self._start(intercept=True),
            n_steps=self.n_steps,
            n_parts=_N_ROUNDS,
            gamma=float(self.gamma),
            random=self._generator(),
            pair_loss=self.pair_loss,
            point_loss=self.point_loss,
            alpha=self.alpha,
            intercept=bool(self.fit_intercept),
        )
        self._set_weights(np.zeros(design.n_columns + 1), intercept=True)
        try:
            with rounds(self.n_steps) as record:
                for descent, mean_loss in parts:
                    self._set_weights(descent.weights, intercept=True)
                    if record(descent.n_done, mean_loss):
                        break
                else:
                    if self.average:
                        self._set_weights(descent.average, intercept=True)
        finally:
            scores = design.scores(self.coef_[0])
            self.objective_ = self._exact_objective(scores, rows)
            if rows.blocks is not None:
                self._set_thresholds(scores, rows.codes, rows.weight)
        if not np.isfinite(self.objective_):
            raise ValueError(
                f"The objective is {self.objective_} after {descent.n_done} steps: the numbers in X"
                " are too large for stochastic descent. Scale its columns, for instance with "
                "MaxAbsScaler."
            )

    def _exact_objective(self, s: Vector, rows: SampledRows) -> float:
        codes, weight = rows.codes, rows.weight
        b = self.intercept_[0]
        total = 0.5 * self.alpha * (np.sum(self.coef_**2) + b * b)
        if self.gamma > 0.0:
            edges = None if self.graph is None else self._edges()
            pairs = AllPairs(codes, self.pair_loss, weight=weight, group=rows.group, edges=edges)
            total += self.gamma * pairs.at(s).value
        if self.gamma < 1.0:
            points = Pointwise(codes == 1, self.point_loss, weight=weight)
            total += (1.0 - self.gamma) * points.at(s + b).value
        return float(total)
