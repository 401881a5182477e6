"""Ranker with ordered weights of the pairs: OWPCRanker."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forerank._typing import Mask, Matrix, Vector
from forerank._validation import check_choice
from forerank.design import make_design
from forerank.estimators.top_base import STRUCTURED_PARAMETERS, GroupedTopEstimator
from forerank.estimators.two_class import EXAMPLE_DATA
from forerank.objectives.groups import WithinGroups
from forerank.objectives.structured import RankWeightedHinge, RankWeights, harmonic, uniform
from forerank.solvers import SolverResult, bundle

__all__ = ["OWPCRanker"]


class OWPCRanker(GroupedTopEstimator):
    __doc__ = f"""Ranks with pair weights that fall with the rank of the negative (OWPC, Usunier et
    al. 2009).

    Minimises  sum_i p_i sum_r c_r max(0, 1 - (s_i - s_(r))) + alpha/2 ||w||^2, where s_(r) is the
    r-th highest negative score, and the c_r do not increase with r and sum to one. With `qid` the
    negatives are those of the group of i.

    Parameters
    ----------
    weights : {{"harmonic", "uniform"}} or array-like, default="harmonic"
        c_r: proportional to 1/r, all equal (RankSVM), or given from rank 1 on; zero for ranks
        beyond its end.
    {STRUCTURED_PARAMETERS}

    Examples
    --------
    {EXAMPLE_DATA}
    >>> OWPCRanker(weights=[3, 2, 1]).fit(X, y).optimality_ <= 1e-3
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
        super().__init__(alpha, tol, max_iter, warm_start, verbose)
        self.weights = weights

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _rank_weights(self.weights)

    def _fit_rows(self, X: Matrix, positive: Mask, weight: Vector | None) -> SolverResult:
        hinge = RankWeightedHinge(positive, _rank_weights(self.weights), weight=weight)
        return self._run(bundle, hinge, make_design(X), self.alpha)

    def _fit_groups(
        self, X: Matrix, positive: Mask, weight: Vector | None, group: NDArray[np.integer]
    ) -> SolverResult:
        ranks = _rank_weights(self.weights)

        def of_group(positive: Mask, weight: Vector | None) -> RankWeightedHinge:
            return RankWeightedHinge(positive, ranks, weight=weight)

        objective = WithinGroups(positive, group, of_group, weight=weight)
        return self._run(bundle, objective, make_design(X), self.alpha)


def _rank_weights(weights: Any) -> RankWeights:
    if isinstance(weights, str):
        check_choice("weights", weights, ("harmonic", "uniform"))
        return harmonic if weights == "harmonic" else uniform
    given = np.asarray(weights, dtype=float)
    valid = given.ndim == 1 and given.size > 0 and np.isfinite(given).all()
    if not valid or given.min() < 0.0 or given[0] == 0.0:
        raise ValueError(
            "weights must be 'harmonic', 'uniform' or a sequence of non-negative numbers whose "
            f"first is positive; got {weights!r}."
        )
    if (np.diff(given) > 0.0).any():
        raise ValueError(
            "weights must not increase from one rank to the next, or the loss would not be convex; "
            f"got {weights!r}."
        )

    def by_rank(above: Vector, total: float) -> tuple[Vector, Vector]:
        sums = np.concatenate([[0.0], np.cumsum(given)])
        share = np.interp(above, np.arange(sums.size), sums)
        share = share / share.max()
        return share, share

    return by_rank
