"""Fits along a path of penalties, from the largest to the smallest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forerank._typing import Vector
from forerank._validation import is_integer, is_tensor
from forerank.design import Design
from forerank.objectives.base import SmoothObjective
from forerank.solvers.hessian import Preconditioner
from forerank.solvers.newton import newton_iterations
from forerank.solvers.problem import Problem
from forerank.solvers.result import Progress, SolverResult
from forerank.solvers.units import Units, column_units

__all__ = ["AlphaPath", "NewtonPath", "Solve", "check_alphas", "extrapolate"]

# Fits at a ranker's present alpha, given the weights of the fits before it on the path.
Solve = Callable[..., SolverResult | None]

# Largest and smallest penalty of a path that is given by a number of penalties.
_LARGEST, _SMALLEST = 10.0, 1e-7
# Relative gradient norm to which the path on a sample of the rows is solved.
_SAMPLE_TOL = 3e-3


@dataclass(frozen=True)
class AlphaPath:
    """Linear rankers along descending penalties.

    Attributes
    ----------
    alphas : array of shape (n_alphas,)
        From the largest to the smallest.
    coef : array of shape (n_alphas, n_features)
    intercept : array of shape (n_alphas,)
    objective, optimality : arrays of shape (n_alphas,)
        As `objective_` and `optimality_` of a fit; NaN for rankers that have none.
    n_iter : array of shape (n_alphas,)
        Iterations over all rows.
    """

    alphas: Vector
    coef: Vector
    intercept: Vector
    objective: Vector
    optimality: Vector
    n_iter: NDArray[np.intp]

    def decision_function(self, X: Any) -> Vector:
        """Scores of the rows, one column for each alpha."""
        if is_tensor(X):  # in the precision of X, which is not copied
            return X @ self.coef.T.to(X.dtype) + self.intercept.to(X.dtype)  # type: ignore[attr-defined]
        return X @ self.coef.T + self.intercept


def check_alphas(alphas: int | ArrayLike) -> Vector:
    """The penalties, from the largest to the smallest."""
    if is_integer(alphas):
        if alphas < 1:
            raise ValueError(f"alphas={alphas!r}: give a number of penalties >= 1, or a list.")
        return np.geomspace(_LARGEST, _SMALLEST, int(alphas))
    try:
        given = np.asarray(alphas, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.ndim != 1 or given.size == 0 or not np.isfinite(given).all() or given.min() <= 0.0:
        raise ValueError(
            f"alphas must be a number of penalties or a list of positive numbers; got {alphas!r}."
        )
    return np.unique(given)[::-1]


def extrapolate(solutions: Sequence[Vector], values: Sequence[Vector] | None = None) -> Vector:
    """Prediction of the next solution of a path, or of `values` such as the scores of each.

    For alphas in equal ratios, the steps between solutions first grow and later shrink. The next
    step is predicted as the last one, scaled by the ratio of the last two lengths, at most 1.
    """
    values = solutions if values is None else values
    if len(solutions) < 2:
        return 1.0 * values[-1]  # a copy, of an array or a tensor
    length = 1.0
    if len(solutions) > 2:
        before = float(np.linalg.norm(solutions[-2] - solutions[-3]))
        last = float(np.linalg.norm(solutions[-1] - solutions[-2]))
        length = min(1.0, last / before) if before > 0.0 else 0.0
    return values[-1] + length * (values[-1] - values[-2])


class NewtonPath:
    """Newton's method for one penalty after the other, each fit started near its solution.

    The next solution is predicted in two ways: by extrapolating the path, and by the same path on a
    sample of the rows, which is a good prediction while the penalty is large. The path on the
    sample is used until its prediction is worse than the extrapolation. `units` are given to the
    path on the sample alone.
    """

    def __init__(
        self,
        objective: SmoothObjective,
        design: Design,
        max_iter: int = 100,
        units: Units | None = None,
    ) -> None:
        is_sample = units is not None
        units = units or column_units(objective, design)
        self._problem = Problem.of(objective, units, max_iter)
        self._reference = self._problem.reference_norm()
        # The latest solutions and their scores, for columns in their own units.
        self._solutions: list[Vector] = []
        self._scores: list[Vector] = []
        self._precondition: Preconditioner | None = None
        self._on_sample: NewtonPath | None = None
        sample = None if is_sample else self._problem.next_sample(0)
        if sample is not None:
            units = replace(units, design=sample.design)
            self._on_sample = NewtonPath(sample.objective, design, max_iter, units)

    def step(self, alpha: float | Vector, *, tol: float, progress: Progress) -> SolverResult:
        """The minimum for the next penalty; parameters as in `newton`."""
        design = self._problem.design
        start, scores = np.zeros(design.n_columns), design.zero_scores()
        if self._solutions:
            start = extrapolate(self._solutions)
            scores = extrapolate(self._solutions, self._scores)
        extrapolated = start
        if self._on_sample is not None:
            start = self._prediction_on_sample(self._on_sample, alpha, tol, progress)
            scores = design.scores(start)
        problem = self._problem.penalised(alpha, progress)
        result, self._precondition = newton_iterations(
            problem,
            start,
            tol,
            self._precondition,
            scores=scores,
            reference=self._reference,
            on_path=True,
        )
        if self._on_sample is not None and len(self._solutions) > 1:
            errors = [np.linalg.norm(result.w - guess) for guess in (start, extrapolated)]
            if errors[0] > errors[1]:
                self._on_sample = None
        self._solutions = [*self._solutions[-2:], result.w]
        self._scores = [*self._scores[-2:], result.scores]
        return problem.units.to_columns(result)

    def _prediction_on_sample(
        self, path: "NewtonPath", alpha: float | Vector, tol: float, progress: Progress
    ) -> Vector:
        """The last solution plus the change of the solution on the sample."""
        before = path._solutions[-1:]
        path.step(alpha, tol=max(tol, _SAMPLE_TOL), progress=progress)
        after = path._solutions[-1]
        return self._solutions[-1] + (after - before[0]) if before else after
