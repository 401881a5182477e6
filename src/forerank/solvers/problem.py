"""The problem that Newton's method solves, on all rows or a sample of them."""

from dataclasses import dataclass, replace

import numpy as np

from forerank._typing import Random, Vector
from forerank.design import Design
from forerank.objectives.base import Curved, SmoothObjective
from forerank.solvers.result import Progress
from forerank.solvers.units import Units

__all__ = ["SMALLEST_SAMPLE", "Point", "Problem"]

# Fewest rows of a sample.
SMALLEST_SAMPLE = 800


@dataclass(frozen=True)
class Point:
    """What is known at some weights: scores, objective there, and X^T times its gradient."""

    scores: Vector
    here: Curved | None = None
    adjoint: Vector | None = None


@dataclass(frozen=True)
class Problem:
    """Objective and penalty on all rows or a sample of them, with columns in their own units."""

    objective: SmoothObjective
    design: Design
    penalty: Vector
    max_iter: int
    progress: Progress
    units: Units

    @classmethod
    def of(cls, objective: SmoothObjective, units: Units, max_iter: int) -> "Problem":
        """The problem without a penalty."""
        design = units.design
        return cls(objective, design, np.zeros(design.n_columns), max_iter, Progress(), units)

    def penalised(self, alpha: float | Vector, progress: Progress) -> "Problem":
        """The problem with a penalty on the weights of the original columns."""
        penalty = np.broadcast_to(alpha, (self.design.n_columns,)).astype(float)
        if np.ndim(alpha) == 0 and self.design.has_intercept:
            penalty[-1] = 0.0
        return replace(self, penalty=self.units.penalty(penalty), progress=progress)

    def reference_norm(self) -> float:
        """The gradient norm at zero weights."""
        return self.units.reference_norm(self.objective, self.design)

    def record(self, w: Vector, value: float, optimality: float) -> None:
        """Record an iteration."""
        weights = self.units.weights_of_columns(w)
        self.progress.record(weights, self.design.n_rows, value, optimality)

    def zero_point(self, adjoint: Vector) -> Point:
        """Zero weights, with X^T times the gradient there."""
        scores = self.design.zero_scores()
        return Point(scores, self.objective.at(scores), adjoint)

    def sample(self, size: int, rng: Random) -> "Problem | None":
        """The problem on about `size` rows, or None where a sample would save little."""
        drawn = self.objective.sample(size, rng)
        if drawn is None:
            return None
        rows, objective = drawn
        return replace(self, objective=objective, design=self.design.rows(rows))

    def next_sample(self, rng: Random) -> "Problem | None":
        """The sample from which these rows start, or None where there are too few rows for it."""
        size = int(self.design.n_rows * self.design.sample_fraction)
        return self.sample(size, rng) if size >= SMALLEST_SAMPLE else None
