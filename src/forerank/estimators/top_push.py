"""Rankers that push the positives above the highest negatives: TopPush and TopRanker."""

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Mask, Vector
from forerank._validation import check_choice, stacklevel_outside
from forerank.design import make_design
from forerank.estimators.top_base import (
    COMMON_PARAMETERS,
    GroupedTopEstimator,
    WeightedTopEstimator,
)
from forerank.estimators.two_class import EXAMPLE_DATA
from forerank.objectives.top import Top, TopWithinGroups
from forerank.solvers import SolverResult, choose_solver, minimise
from forerank.solvers.path import Solve

__all__ = ["TopObjectiveRanker", "TopPush", "TopRanker"]

# Default of max_iter by solver.
_MAX_ITER = {"top_newton": 200, "top_multipliers": 500, "accelerated_dual": 100_000}
_LOSSES = ("exponential", "hinge", "logistic", "squared_hinge")
_PARAMETERS = f"""alpha : float, default=1e-3
        Strength of the penalty alpha/2 ||w||^2.
    solver : {{"newton", "nesterov"}}, default="newton"
        "newton": quadratic models with a working set of negatives; a few expensive iterations. With
        `qid`, or with more than 6,000 columns and as many positives (3,000 beside few negatives),
        the method of multipliers: Newton's method by conjugate gradients on an augmented
        Lagrangian. "nesterov": the
        accelerated dual method of li2014 (Algorithm 1), for the squared hinge and the hinge,
        without `qid`; many cheap iterations.
    tol : float, default=1e-4
        The relative duality gap to reach.
    max_iter : int or "auto", default="auto"
        Most iterations; "auto" allows 200 of "newton", 500 of the method of multipliers, 100,000 of
        "nesterov", which ignores `warm_start`.
    {COMMON_PARAMETERS}
    threshold_ : float
        The threshold set by the negatives, on the scale of `decision_function`. Not set after a fit
        with `qid`, where every group has its own."""


class TopObjectiveRanker(WeightedTopEstimator):
    """Base of the rankers with the top objective."""

    def _check_parameters(self) -> None:
        check_choice("loss", self.loss, _LOSSES)
        super()._check_parameters()

    def _warn_equal_scores(self) -> None:
        """No warning here: `_warn_if_zero` gives one with more detail."""

    def _warn_if_zero(self, result: SolverResult, top: TopWithinGroups) -> None:
        at_zero = top.value_at(np.zeros(top.n_rows))
        if result.converged and result.objective >= (1.0 - self.tol) * at_zero:
            warnings.warn(
                f"{type(self).__name__} found no better weights than w = 0, with which all scores "
                "are equal: no direction lifts the positives above the highest negatives by more "
                "than the penalty costs. Lower alpha, let the threshold be a mean of more negatives"
                " (TopRanker(at=...)), or add columns (for instance with "
                "sklearn.kernel_approximation.Nystroem).",
                UserWarning,
                stacklevel=stacklevel_outside(),
            )


class _L2TopRanker(GroupedTopEstimator, TopObjectiveRanker):
    solver: str
    at: str | int | float = "max"

    _auto_max_iter = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("solver", self.solver, ("newton", "nesterov"))

    def _fit(self, X: Any, y: Any, sample_weight: Any = None, qid: Any = None) -> Self:
        self._prepare(X, y, sample_weight=sample_weight, qid=qid)()
        return self

    def _prepare(self, X: Any, y: Any, sample_weight: Any = None, qid: Any = None) -> Solve:
        self._check_parameters()
        X, codes, positive, weight, group = self._read_groups(
            X, y, sample_weight, qid, ranks=True, merge=True
        )
        design, top = make_design(X), self._objective(positive, weight, group)
        solver = "accelerated_dual"
        if self.solver == "newton":
            solver = choose_solver(top, design)
        most = _MAX_ITER[solver] if self.max_iter == "auto" else int(self.max_iter)
        dual: Vector | None = None  # of the last solution: a bound for the next one of a path

        def solve(previous: Sequence[Vector] = ()) -> SolverResult:
            nonlocal dual
            options: dict[str, Any] = {"start_dual": dual, "max_iter": most, "solver": solver}
            options["start"] = self._start(previous)
            result = self._run(minimise, top, design, self.alpha, **options)
            dual = result.dual
            self._set_intercept(result.scores, codes, weight)
            self.__dict__.pop("threshold_", None)
            if group is None:
                threshold = float(top.thresholds(result.scores[top.negatives])[0][0])
                self.threshold_ = threshold + float(self.intercept_[0])
            self._warn_if_zero(result, top)
            return result

        return solve

    def _objective(
        self, positive: Mask, weight: Vector | None, group: NDArray[np.integer] | None
    ) -> TopWithinGroups:
        if group is None:
            return Top(positive, self.loss, at=self.at, weight=weight)
        return TopWithinGroups(positive, self.loss, group=group, at=self.at, weight=weight)


class TopPush(_L2TopRanker):
    __doc__ = f"""Pushes the positives above the highest negative (li2014).

    Minimises  sum_i w_i l(x_i w - max_j x_j w) / sum_i w_i + alpha/2 ||w||^2  over positive rows i
    and negative rows j. With the squared hinge this is TopPush (eq. 5), with the hinge
    InfinitePush. With `qid` the maximum is over the negatives of the group of i.

    Parameters
    ----------
    loss : {{"squared_hinge", "logistic", "exponential", "hinge"}}, default="squared_hinge"
        The loss on the margin of a positive over the highest negative.
    {_PARAMETERS}

    Notes
    -----
    Cost: a few dozen products with X, and the curvature of the positives, m d^2 (or m^3, if
    smaller) for each of a few iterations. Memory: the square of d (or of m).

    Examples
    --------
    {EXAMPLE_DATA}
    >>> from forerank.metrics import pos_at_top
    >>> round(float(pos_at_top(y, TopPush().fit(X, y).decision_function(X))), 2)
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
        super().__init__(alpha, tol, max_iter, warm_start, verbose)
        self.loss = loss
        self.solver = solver


class TopRanker(_L2TopRanker):
    __doc__ = f"""Pushes the positives above the highest negatives: one, k, or a share of them.

    Minimises  sum_i w_i l(x_i w - T) / sum_i w_i + alpha/2 ||w||^2  over positive rows i, where T
    is the mean of the highest negative scores: of one (TopPush), of k, or of the upper share
    (tau-FPL: that share bounds the false positive rate at the threshold). With `qid` they are the
    highest negatives of the group of i; of all of them, where a group has fewer than k.

    Parameters
    ----------
    loss : {{"squared_hinge", "logistic", "exponential", "hinge"}}, default="squared_hinge"
        The loss on the margin of a positive over the threshold.
    at : "max", int or float, default="max"
        The threshold: the highest negative score, the mean of the `at` highest, or, for a number
        between 0 and 1, the mean of that share of them.
    {_PARAMETERS}

    Examples
    --------
    {EXAMPLE_DATA}
    >>> from forerank.metrics import tpr_at_fpr
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
        super().__init__(alpha, tol, max_iter, warm_start, verbose)
        self.loss = loss
        self.at = at
        self.solver = solver
