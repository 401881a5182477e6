"""Results of solvers, their certificates, and the history of a run."""

from dataclasses import dataclass, field
from math import inf, isfinite
from time import perf_counter

import numpy as np

from forerank._typing import Vector

__all__ = [
    "DUALITY_GAP",
    "GRADIENT_NORM",
    "Iteration",
    "Progress",
    "SolverResult",
    "gap_bound",
    "reference_norm",
    "relative_gap",
]

# Certificates of a result.
DUALITY_GAP = "relative duality gap"
GRADIENT_NORM = "relative gradient norm"

# Largest ratio of a sum to the sum of its absolute terms that counts as rounding error.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Iteration:
    """Objective and optimality over `n_rows` rows before an iteration, and the seconds so far."""

    n_rows: int
    objective: float
    optimality: float
    seconds: float


@dataclass
class Progress:
    """History of a run and its latest weights, which remain after an interruption.

    With `verbose`, each iteration is printed.
    """

    verbose: bool = False
    history: list[Iteration] = field(default_factory=list)
    w: Vector | None = None
    _clock: float = field(default_factory=perf_counter)

    def record(self, w: Vector | None, n_rows: int, objective: float, optimality: float) -> None:
        """Append an iteration, with its weights and their certificate."""
        step = Iteration(n_rows, objective, optimality, perf_counter() - self._clock)
        self.history.append(step)
        self.w = w
        if self.verbose:
            print(
                f"[forerank] {step.seconds:8.2f} s  rows {n_rows:>10,}  objective {objective:.8g}  "
                f"optimality {optimality:.2e}",
                flush=True,
            )


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
        The value of the certificate.
    n_iter : int
        Iterations over all rows.
    converged : bool
        Whether `optimality` met the tolerance.
    history : list of Iteration
        One entry per iteration, those on samples of the rows first.
    dual : array, optional
        Dual variables, for a warm start of the same solver.
    gap : float
        Upper bound on the objective minus its minimum; infinity where none is known.
    certificate : str
        `GRADIENT_NORM` or `DUALITY_GAP`.
    """

    w: Vector
    scores: Vector
    objective: float
    optimality: float
    n_iter: int
    converged: bool
    history: list[Iteration]
    dual: Vector | None = None
    gap: float = inf
    certificate: str = DUALITY_GAP

    def __post_init__(self) -> None:
        if self.certificate == DUALITY_GAP:
            self.gap = self.optimality * self.objective


def reference_norm(gradient: Vector, absolute_sums: Vector) -> float:
    """Norm of the gradient X^T g; zero where every entry is rounding error.

    `absolute_sums` is X^T |g|: in a constant column the terms of X^T g cancel to rounding error.
    """
    if np.all(np.abs(gradient) <= _ROUNDING * np.abs(absolute_sums)):
        return 0.0
    return float(np.linalg.norm(gradient))


def gap_bound(gradient: Vector, penalty: Vector, value: float) -> float:
    """Upper bound on a value of F(X w) + 1/2 sum_k penalty_k w_k^2 minus its minimum.

    F is convex: it lies above its tangent plane, and minimising plane plus penalty gives
    1/2 sum_k gradient_k^2 / penalty_k. F is not negative: the gap is at most the value. Infinity
    where a weight has no penalty.
    """
    if not penalty.all():
        return inf
    with np.errstate(over="ignore"):
        return min(0.5 * float(np.sum(gradient**2 / penalty)), value)


def relative_gap(value: float, bound: float) -> float:
    """(value - bound) / value; infinity where either is not finite."""
    if value == 0.0:
        return 0.0
    gap = (value - bound) / value
    return max(gap, 0.0) if isfinite(gap) else inf
