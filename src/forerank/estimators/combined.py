"""Linear rankers fitted on all pairs and all single rows at once: CombinedRanker."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from forerank._typing import Mask, Vector
from forerank._validation import is_integer
from forerank.design import Design, make_design, merge_equal_rows
from forerank.estimators.linear import LINEAR_ATTRIBUTES, LINEAR_PARAMETERS
from forerank.estimators.pointwise import class_weights
from forerank.estimators.two_class import (
    EXAMPLE_DATA,
    TwoClassRanker,
    check_gamma,
    read_pair_groups,
)
from forerank.objectives import AllPairs, Combined, Pointwise, Profiled
from forerank.solvers import SolverResult
from forerank.solvers.path import Solve

__all__ = ["CombinedRanker", "GammaPath"]


class CombinedRanker(TwoClassRanker):
    __doc__ = f"""Ranks by a linear score fitted on all pairs and all rows at once: combined ranking
    and classification (CRC, shen2013, eq. 5).

    With s = X w, minimises

        gamma sum_{{(i, j)}} w_i w_j l(s_i - s_j) / sum_{{(i, j)}} w_i w_j
            + (1 - gamma) sum_i w_i c_i l(y_i (s_i + b)) / sum_i w_i c_i + alpha/2 ||w||^2

    over every pair of a positive row i and a negative row j, and over all rows with y_i in {{-1,
    +1}} and the weight c_i of their class. gamma = 1 is `PairwiseRanker`, gamma = 0 is
    `PointwiseRanker`. All pairs count; none are sampled. `ActiveSamplingRanker` and
    `CombinedSGDRanker` approach the same minimum from samples.

    Parameters
    ----------
    loss : str, default="squared_hinge"
        The loss on the score difference of a pair and on the margin of a row: "squared_hinge",
        "logistic", "hinge" (that of the paper), "exponential" or "squared".
    gamma : float in [0, 1] or "uniform", default=0.5
        The share of the pairs. "uniform" gives every pair and every row the same weight: the number
        of pairs divided by that of pairs and rows.
    alpha : float, default=1e-4
        Strength of the penalty; the intercept is not penalised.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes for single rows, times the sample weights; pairs have one row of each
        class and are not affected. "balanced" is the WSVM of the paper for gamma = 0.
    fit_intercept : bool, default=True
        Whether single rows have a constant b; pairs do not depend on it. Without it, a hyperplane
        through the origin has to separate the classes, which takes weights off the ranking.
    tol : float, default=1e-3
        The certificate to reach: the gradient norm relative to that without columns, every column
        in its own unit; for the hinge, the relative duality gap. Smooth losses also go on while the
        objective is expected to decrease by more than 3 tol of its value, so that a small alpha has
        the same weights from any start.
    max_iter : int, default=200
        Most iterations over all rows.
    {LINEAR_PARAMETERS}

    Attributes
    ----------
    coef_ : array of shape (1, n_features)
    intercept_ : array of shape (1,)
        The constant b of the rows, zero without `fit_intercept`. For gamma = 1, which does not
        depend on it, as much weight of the training rows is scored above zero as the positive class
        has.
    classes_ : array of shape (2,)
        The second is the positive class.
    gamma_ : float
        The share of the pairs, also for gamma="uniform".
    {LINEAR_ATTRIBUTES}

    Notes
    -----
    Cost: a few dozen products with X; between them N log N for the hinges, N for the other
    losses. Hinge: Newton's method on a smoothed hinge, then a bundle method; all others: Newton's
    method.

    Examples
    --------
    {EXAMPLE_DATA}
    >>> from sklearn.metrics import roc_auc_score
    >>> ranker = CombinedRanker(gamma=0.9).fit(X, y)
    >>> round(float(roc_auc_score(y, ranker.decision_function(X))), 2)
    1.0
    """

    def __init__(
        self,
        loss: str = "squared_hinge",
        *,
        gamma: float | Literal["uniform"] = 0.5,
        alpha: float = 1e-4,
        class_weight: Mapping | str | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 200,
        warm_start: bool = False,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.gamma = gamma
        self.alpha = alpha
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
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
            Two classes with any labels; the one that sorts last is the positive class.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights of the rows; a pair weighs the product of its two.
        qid : array-like of shape (n_samples,), optional
            The group of each row, any labels in any order. Pairs are formed within a group only;
            with gamma < 1 all rows are points, whatever their group. Refused with gamma = 0, which
            has no pairs.

        Returns
        -------
        self
        """
        self._prepare(X, y, sample_weight=sample_weight, qid=qid)()
        return self

    def gamma_path(
        self, X: ArrayLike, y: ArrayLike, gammas: int | Iterable[Any] = 11, **rows: Any
    ) -> "GammaPath":
        """Fits for many shares of the pairs, in ascending order, each started from the last.

        Parameters
        ----------
        X, y
            As in `fit`.
        gammas : int or iterable, default=11
            The shares, from 0 to 1, or their number: from 0 to 1 in equal steps.
        **rows
            Further arguments of `fit`: sample_weight, qid.

        Returns
        -------
        GammaPath
            The ranker itself is not changed.
        """
        shares = _check_gammas(gammas)
        ranker = clone(self).set_params(gamma=float(shares[-1]), warm_start=True)
        solve, points = ranker._prepare(X, y, **rows), []
        for gamma in shares:
            ranker.gamma = float(gamma)
            solve()
            certificate = ranker.objective_, ranker.optimality_, ranker.n_iter_
            points.append((ranker.coef_[0], ranker.intercept_[0], *certificate))
        return GammaPath(shares, *map(np.array, zip(*points, strict=True)))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_gamma(self.gamma, or_uniform=True)

    def _prepare(self, X: Any, y: Any, sample_weight: Any = None, qid: Any = None) -> Solve:
        self._check_parameters()
        X, codes, positive, weight = self._read_two_classes(X, y, sample_weight)
        group = read_pair_groups(qid, positive, weight, self.gamma)
        uniform = _uniform_gamma(positive, weight, group)
        X, codes, weight, pair_group = merge_equal_rows(X, codes, weight, group)
        point_weight = weight
        if self.class_weight is not None:
            of_class = class_weights(self.class_weight, self.classes_, codes, weight)[codes]
            point_weight = of_class if weight is None else weight * of_class
        points = Pointwise(codes == 1, self.loss, weight=point_weight)
        pairs = None
        if self.gamma != 0.0:
            pairs = AllPairs(codes, self.loss, weight=weight, group=pair_group)
        intercept = bool(self.fit_intercept)
        designs = {constant: make_design(X, intercept=constant) for constant in {False, intercept}}

        def solve(previous: Sequence[Vector] = ()) -> SolverResult:
            self.gamma_ = uniform if self.gamma == "uniform" else float(self.gamma)
            if self.gamma_ < 1.0:
                return self._solve_with_points(pairs, points, designs, previous)
            result = self._solve(pairs, designs[False], previous)
            self._set_intercept(result.scores, codes, point_weight)
            return result

        return solve

    def _solve_with_points(
        self,
        pairs: AllPairs | None,
        points: Pointwise,
        designs: Mapping[bool, Design],
        previous: Sequence[Vector],
    ) -> SolverResult:
        """The fit for gamma < 1, whose intercept is part of the objective."""

        def objective(of_points: Pointwise | Profiled) -> Any:
            if pairs is None or self.gamma_ == 0.0:
                return of_points
            return Combined(pairs, of_points, self.gamma_)

        # As in PointwiseRanker: the best intercept instead of a column of ones for losses that need
        # a penalty on every weight, or overflow far from the best intercept.
        if not (self.fit_intercept and self.loss in ("hinge", "exponential")):
            return self._solve(objective(points), designs[bool(self.fit_intercept)], previous)
        profiled, design = points.profiled(), designs[False]
        try:
            return self._solve(objective(profiled), design, previous)
        finally:  # also after an interruption, which leaves the latest weights
            if hasattr(self, "coef_"):
                self.intercept_ = np.array([profiled.best_shift(design.scores(self.coef_[0]))])


@dataclass(frozen=True)
class GammaPath:
    """Linear rankers along ascending shares of the pairs.

    Attributes
    ----------
    gammas : array of shape (n_gammas,)
    coef : array of shape (n_gammas, n_features)
    intercept : array of shape (n_gammas,)
    objective, optimality : arrays of shape (n_gammas,)
        As `objective_` and `optimality_` of a fit.
    n_iter : array of shape (n_gammas,)
        Iterations over all rows.
    """

    gammas: Vector
    coef: Vector
    intercept: Vector
    objective: Vector
    optimality: Vector
    n_iter: NDArray[np.intp]

    def decision_function(self, X: Any) -> Vector:
        """Scores of the rows, one column for each gamma."""
        return X @ self.coef.T + self.intercept


def _check_gammas(gammas: Any) -> Vector:
    """The shares in ascending order."""
    if is_integer(gammas):
        if gammas < 2:
            raise ValueError(f"gammas={gammas!r}: give a number of shares >= 2, or a list.")
        return np.linspace(0.0, 1.0, int(gammas))
    given = list(gammas)
    if not given:
        raise ValueError("gammas is empty: give shares from 0 to 1, or their number.")
    for gamma in given:
        check_gamma(gamma, or_uniform=False)
    return np.unique(np.array(given, dtype=float))


def _uniform_gamma(positive: Mask, weight: Vector | None, group: Any) -> float:
    """The number of pairs divided by that of pairs and points; rows of weight zero are neither."""
    eligible = np.ones(positive.size, dtype=bool) if weight is None else weight > 0.0
    group = np.zeros(positive.size, dtype=np.intp) if group is None else group
    counts = [np.bincount(group[eligible & side]) for side in (positive, ~positive)]
    common = min(count.size for count in counts)
    of_positive, of_negative = (count[:common].astype(float) for count in counts)
    n_pairs = float(of_positive @ of_negative)
    return n_pairs / (n_pairs + float(np.count_nonzero(eligible)))
