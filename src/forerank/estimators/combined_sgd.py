"""Stochastic gradient descent on pairs and points: CombinedSGDRanker."""

from collections.abc import Callable
from time import perf_counter
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forerank._typing import Vector
from forerank._validation import check_choice, check_number
from forerank.design import make_design
from forerank.estimators.sampled import EvalSet, Round, SampledRanker, check_gamma
from forerank.objectives import AllPairs, Pointwise
from forerank.solvers.sgd import LOSSES, combined_descent

__all__ = ["CombinedSGDRanker"]

# Rounds of a fit, after each of which it reports and can be ended.
_N_ROUNDS = 20


class CombinedSGDRanker(SampledRanker):
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
        check_gamma(self.gamma, or_uniform=False)
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
        matrix, codes, positive, weight = self._read_two_classes(X, y, sample_weight)
        design, holdout = make_design(matrix), self._read_eval_set(eval_set)
        parts = combined_descent(
            matrix,
            positive,
            weight,
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
            with self._rounds(self.n_steps, holdout, begin) as record:
                for descent, mean_loss in parts:
                    self._set_weights(descent.weights, intercept=True)
                    if record(descent.n_done, mean_loss):
                        break
                else:
                    if self.average:
                        self._set_weights(descent.average, intercept=True)
        finally:
            self.objective_ = self._objective(design.scores(self.coef_[0]), codes, weight)
        if not np.isfinite(self.objective_):
            raise ValueError(
                f"The objective is {self.objective_} after {descent.n_done} steps: the numbers in X"
                " are too large for stochastic descent. Scale its columns, for instance with "
                "MaxAbsScaler."
            )
        return self

    def _objective(self, s: Vector, codes: NDArray[np.integer], weight: Vector | None) -> float:
        b = self.intercept_[0]
        total = 0.5 * self.alpha * (np.sum(self.coef_**2) + b * b)
        if self.gamma > 0.0:
            pairs = AllPairs(codes, self.pair_loss, weight=weight)
            total += self.gamma * pairs.at(s).value
        if self.gamma < 1.0:
            points = Pointwise(codes == 1, self.point_loss, weight=weight)
            total += (1.0 - self.gamma) * points.at(s + b).value
        return float(total)
