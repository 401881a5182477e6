"""Nonlinear conjugate gradients for F(K b) + alpha/2 b^T K b, F smooth (raykar2007, section 8.1).

The ranking function is f(x) = sum_i b_i k(x, x_i), with scores s = K b and the penalty alpha/2
||f||^2 in the space of the kernel. The gradient of the objective in that space is the function with
the coefficients F'(s) + alpha b, and inner products of functions with coefficients a and b are
a^T K b. So the method is `ncg` in that space, without a factorisation of K: the scores of
directions follow from those of gradients, and an iteration takes one product with K. Stopping:
||gradient(f)|| <= tol ||gradient(0)||.
"""

from math import inf, sqrt

import numpy as np

from forerank._typing import Vector
from forerank.objectives.base import Differentiable
from forerank.solvers.ncg import RESTART, line_search
from forerank.solvers.result import GRADIENT_NORM, Progress, SolverResult

__all__ = ["kernel_ncg"]

# Ratio of the norm of a gradient to its largest possible one that counts as rounding error, the
# square root of the precision of doubles because the norm is that of a sum.
_ROUNDING = 1e-7


def kernel_ncg(
    objective: Differentiable,
    K: Vector,
    alpha: float,
    *,
    start: Vector | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    progress: Progress | None = None,
) -> SolverResult:
    """Minimise F(K b) + alpha/2 b^T K b for a smooth convex F and a positive semidefinite K; `w` of
    the result is b.

    Cost of an iteration: one product with K, two or three evaluations of F.
    """
    progress = progress or Progress()
    b = np.zeros(K.shape[0]) if start is None else start.copy()
    s = K @ b
    here = objective.at(s)
    gradient = here.gradient + alpha * b
    of_gradient = K @ gradient  # the scores of the gradient
    reference = _reference_norm(objective, K)
    p, q = -gradient, -of_gradient
    step, slope = 0.0, 0.0
    for iteration in range(max_iter + 1):
        norm = _norm(gradient, of_gradient)
        value = here.value + 0.5 * alpha * float(b @ s)
        optimality = norm / reference if reference > 0.0 else 0.0
        progress.record(b, b.size, value, optimality)
        if optimality <= tol or iteration == max_iter:
            break
        slope_before, slope = slope, float(gradient @ q)
        if slope >= 0.0:
            p, q, slope = -gradient, -of_gradient, -(norm**2)
        # The first trial step has the predicted decrease of the iteration before.
        trial = step * slope_before / slope if step > 0.0 else 1.0 / max(np.abs(q).max(), 1e-300)
        of_penalty = alpha * float(b @ q), alpha * float(p @ q)
        step, here = line_search(objective, s, q, *of_penalty, slope, trial)
        if step == 0.0:
            break
        b, s = b + step * p, s + step * q
        gradient, before = here.gradient + alpha * b, gradient
        of_gradient = K @ gradient
        beta = max(float(of_gradient @ (gradient - before)) / norm**2, 0.0)
        if abs(float(of_gradient @ before)) >= RESTART * float(gradient @ of_gradient):
            beta = 0.0
        p, q = beta * p - gradient, beta * q - of_gradient
    gap = min(0.5 * norm**2 / alpha, value) if alpha > 0.0 else inf
    converged = optimality <= tol
    certificate = optimality, iteration, converged, progress.history, None, gap, GRADIENT_NORM
    return SolverResult(b, s, value, *certificate)


def _reference_norm(objective: Differentiable, K: Vector) -> float:
    """The norm of the gradient at zero; zero if it is rounding error, as if all rows are equal."""
    gradient = objective.gradient_at_zero()
    norm = _norm(gradient, K @ gradient)
    largest = float(np.abs(gradient).sum()) * sqrt(max(float(K.diagonal().max()), 0.0))
    return 0.0 if norm <= _ROUNDING * largest else norm


def _norm(coefficients: Vector, scores: Vector) -> float:
    """Norm of a function; rounding errors of a singular K could make its square negative."""
    return sqrt(max(float(coefficients @ scores), 0.0))
