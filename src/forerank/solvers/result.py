"""What solvers report while they run, and what they return."""

from dataclasses import dataclass, field
from math import isfinite
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

__all__ = ["Iteration", "Progress", "SolverResult", "gap_bound", "reference_norm", "relative_gap"]


# Relative to the sum of the sizes of its terms, a sum this small is rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Iteration:
    """The state of a solver before a step, for plots: objective and optimality are those over
    `n_rows` rows.
    """

    n_rows: int
    objective: float
    optimality: float
    seconds: float


@dataclass
class Progress:
    """Keeps the history of a run and its latest weights, so that an interrupted run loses nothing.

    With `verbose` each step is printed as it is taken.
    """

    verbose: bool = False
    history: list[Iteration] = field(default_factory=list)
    w: NDArray[np.float64] | None = None
    _clock: float = field(default_factory=perf_counter)

    def record(
        self, w: NDArray[np.float64] | None, n_rows: int, objective: float, optimality: float
    ) -> None:
        """Note weights that have been evaluated, with their certificate."""
        step = Iteration(n_rows, objective, optimality, perf_counter() - self._clock)
        self.history.append(step)
        self.w = w
        if self.verbose:
            print(
                f"[forerank] {step.seconds:8.2f} s  rows {n_rows:>10,}  objective {objective:.8g}  "
                f"optimality {optimality:.2e}",
                flush=True,
            )


def reference_norm(gradient: NDArray[np.float64], of_sizes: NDArray[np.float64]) -> float:
    """The norm of a gradient X^T g to measure others by; zero where every entry is rounding.

    `of_sizes` is X^T |g|: in a column that is the same for all rows, the terms of X^T g cancel down to their rounding.
    """
    if np.all(np.abs(gradient) <= _ROUNDING * np.abs(of_sizes)):
        return 0.0
    return float(np.linalg.norm(gradient))


def gap_bound(gradient: NDArray[np.float64], penalty: NDArray[np.float64], value: float) -> float:
    """How far a value can be above the minimum of F(X w) + 1/2 sum_k penalty_k w_k^2, from the
    gradient there.

    F is convex, so the minimum over w of the tangent plane plus the penalty bounds it from below:
    the gap is at most 1/2 sum_k gradient_k^2 / penalty_k. F is not negative, so it is at most the
    value. Infinity where some weight has no penalty, since the plane then has no minimum.
    """
    if not penalty.all():
        return float("inf")
    with np.errstate(over="ignore"):
        return min(0.5 * float(np.sum(gradient**2 / penalty)), value)


def relative_gap(value: float, bound: float) -> float:
    """How far a lower bound lies below the value, relative to the value; infinite where either is
    not a number.
    """
    if value == 0.0:
        return 0.0
    gap = (value - bound) / value
    return max(gap, 0.0) if isfinite(gap) else float("inf")


@dataclass
class SolverResult:
    """Weights with their certificate.

    Attributes
    ----------
    w : array
        The weights.
    scores : array
        X w.
    objective : float
        F(X w) + penalty at w.
    optimality : float
        The certificate: the relative gradient norm (newton) or the relative duality gap (bundle).
    n_iter : int
        Steps taken on all rows.
    converged : bool
        Whether `optimality` met the tolerance.
    history : list of Iteration
        One entry per step, those on samples of the rows first.
    dual : array, optional
        A gradient of F with respect to the scores that gives the lower bound, where the solver has
        one.
    gap : float
        The objective is no further than this above its minimum; infinity where nothing is known.
    """

    w: NDArray[np.float64]
    scores: NDArray[np.float64]
    objective: float
    optimality: float
    n_iter: int
    converged: bool
    history: list[Iteration]
    dual: NDArray[np.float64] | None = None
    gap: float = float("inf")
