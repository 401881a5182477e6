"""Ranker for the area under a part of the ROC curve: PartialAUCRanker."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Mask, Matrix, Vector
from forerank.design import make_design
from forerank.estimators.top_base import STRUCTURED_PARAMETERS, GroupedTopEstimator
from forerank.estimators.two_class import EXAMPLE_DATA
from forerank.objectives.groups import GroupedPartialAUC
from forerank.objectives.structured import RankWeightedHinge, partial_auc
from forerank.objectives.top import Top
from forerank.solvers import SolverResult, bundle, choose_solver, working_set_newton

__all__ = ["PartialAUCRanker"]


class PartialAUCRanker(GroupedTopEstimator):
    __doc__ = f"""Maximises the area under a part of the ROC curve (tight SVM-pAUC, Narasimhan and
    Agarwal 2013).

    Minimises, for false positive rates from 0 to b, the mean hinge 1 - (s_i - s_j) over positives i
    and the share b of highest negatives j, plus alpha/2 ||w||^2. With `fpr_range=(0, 1)` this is
    RankSVM, with (0, 1/n) over n negatives the hinge against the highest one. From a > 0, the
    negatives above the range are ranked above a positive at the cost of their score differences
    alone. With `qid` the rates are those within a group.

    Parameters
    ----------
    fpr_range : pair of floats, default=(0.0, 0.1)
        The false positive rates that count, 0 <= low < high <= 1. A range of a fraction of a row
        counts that fraction.
    {STRUCTURED_PARAMETERS}

    Examples
    --------
    {EXAMPLE_DATA}
    >>> PartialAUCRanker(fpr_range=(0, 0.05)).fit(X, y).optimality_ <= 1e-3
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
        super().__init__(alpha, tol, max_iter, warm_start, verbose)
        self.fpr_range = fpr_range

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _check_fpr_range(self.fpr_range)

    def _fit_rows(self, X: Matrix, positive: Mask, weight: Vector | None) -> SolverResult:
        low, high = _check_fpr_range(self.fpr_range)
        design, one_negative = make_design(X), _is_one_negative(high, positive, weight)
        hinge = RankWeightedHinge(positive, partial_auc(low, high), weight=weight)
        if low == 0.0 and one_negative:
            top = Top(positive, "hinge", weight=weight)
            if choose_solver(top, design) == "top_newton":  # faster
                return self._run_from_dual(working_set_newton, top, design, self.alpha)
        return self._run(bundle, hinge, design, self.alpha)

    def _fit_groups(
        self, X: Matrix, positive: Mask, weight: Vector | None, group: NDArray[np.integer]
    ) -> SolverResult:
        low, high = _check_fpr_range(self.fpr_range)
        objective = GroupedPartialAUC(positive, group, low, high, weight=weight)
        return self._run(bundle, objective, make_design(X), self.alpha)


def _is_one_negative(fpr: float, positive: Mask, weight: Vector | None) -> bool:
    """Whether a false positive rate is reached within the highest negative, whichever it is."""
    negatives = np.ones(np.count_nonzero(~positive)) if weight is None else weight[~positive]
    smallest = float(negatives[negatives > 0.0].min())
    return fpr * float(negatives.sum()) <= smallest * (1.0 + 1e-9)


def _check_fpr_range(fpr_range: Any) -> tuple[float, float]:
    try:
        low, high = (float(v) for v in fpr_range)
    except (TypeError, ValueError):
        raise ValueError(
            f"fpr_range must be a pair (low, high) of false positive rates; got {fpr_range!r}."
        ) from None
    if not 0.0 <= low < high <= 1.0:
        raise ValueError(f"fpr_range must have 0 <= low < high <= 1; got {fpr_range!r}.")
    return low, high
