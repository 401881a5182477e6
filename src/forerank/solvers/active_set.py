"""Quadratic programmes with non-negative variables, by an active-set method.

    min  1/2 x^T Q x + <h, x>   over  x >= 0

After Lawson and Hanson (1974): the variable with the steepest descent becomes positive, the others
that are positive follow, and those that reach zero leave. Q may be singular, as for equal or
linearly dependent constraints: at most as many variables as its rank are positive at the end, where
an interior-point method spreads the solution over all of them. A good start saves most steps. Cost
of a step: n k + k^2 for k positive variables.
"""

import numpy as np

from forerank._kernels import compiled
from forerank._typing import Vector

__all__ = ["non_negative_minimiser"]

# Least square of a pivot relative to the diagonal. A dependent constraint has none; with this one
# its step is long, and ends where another variable reaches zero.
_LEAST_PIVOT = 1e-12
# Most steps, per variable.
_MOST_STEPS = 10


def non_negative_minimiser(
    Q: Vector,
    h: Vector,
    start: Vector,
    *,
    total: float,
    constant: float,
    atol: float,
    rtol: float,
) -> Vector | None:
    """The minimiser, from a start without negative entries; None where rounding errors prevent it.

    Stops at an error of `atol`, or of `rtol` times the minimum plus `constant`. `total` estimates
    the sum of x.
    """
    x = start.copy()
    most = _MOST_STEPS * h.size + 100
    found = _descend(Q, h, x, total, constant, atol, rtol, most)
    return x if found and np.isfinite(x).all() else None


@compiled
def _descend(Q, h, x, total, constant, atol, rtol, most):  # type: ignore[no-untyped-def]
    """Change x into the minimiser; whether it is one."""
    n = h.size
    R = np.empty((n, n))  # upper triangle: the Cholesky factor of Q among the positive variables
    positive = np.empty(n, np.intp)
    refused = np.zeros(n, np.bool_)  # steepest variables that rounding errors keep at zero
    k = 0
    for j in range(n):
        if x[j] > 0.0:
            if _append(R, Q, positive, k, j):
                k += 1
            else:
                x[j] = 0.0
    k = _minimise_among(R, h, x, positive, k)
    for _ in range(most):
        slope = h.copy()
        size = 0.0
        for i in range(k):
            slope += x[positive[i]] * Q[positive[i]]
            size += x[positive[i]]
        value = 0.5 * (np.dot(slope, x) + np.dot(h, x))
        goal = max(atol, rtol * (constant + value))
        lowest = slope.min()
        if -max(total, size) * lowest <= goal and abs(np.dot(slope, x)) <= goal:
            return True
        for i in range(k):
            slope[positive[i]] = 0.0
        slope[refused] = 0.0
        j = int(np.argmin(slope))
        if not slope[j] < 0.0:
            return False
        _append(R, Q, positive, k, j)
        if _target(R, h, positive, k + 1)[k] <= 0.0:
            refused[j] = True
            continue
        refused[:] = False
        k = _minimise_among(R, h, x, positive, k + 1)
    return False


@compiled
def _minimise_among(R, h, x, positive, k):  # type: ignore[no-untyped-def]
    """Minimise over the positive variables; those that reach zero leave. The number that remain."""
    while k > 0:
        z = _target(R, h, positive, k)
        length = 1.0
        for i in range(k):
            if z[i] <= 0.0:
                length = min(length, x[positive[i]] / (x[positive[i]] - z[i]))
        for i in range(k - 1, -1, -1):
            j = positive[i]
            new = x[j] + length * (z[i] - x[j])
            if z[i] <= 0.0 and x[j] <= length * (x[j] - z[i]) * (1.0 + 1e-12):
                x[j] = 0.0
                _remove(R, positive, k, i)
                k -= 1
            else:
                x[j] = new
        if length == 1.0:
            break
    return k


@compiled(fastmath={"contract", "reassoc"})
def _target(R, h, positive, k):  # type: ignore[no-untyped-def]
    """The minimiser over the first k positive variables without bounds: -(R^T R)^-1 h."""
    z = np.empty(k)
    for i in range(k):
        z[i] = -h[positive[i]]
    for i in range(k):
        z[i] /= R[i, i]
        for j in range(i + 1, k):
            z[j] -= R[i, j] * z[i]
    for i in range(k - 1, -1, -1):
        total = 0.0
        for j in range(i + 1, k):
            total += R[i, j] * z[j]
        z[i] = (z[i] - total) / R[i, i]
    return z


@compiled(fastmath={"contract", "reassoc"})
def _append(R, Q, positive, k, j):  # type: ignore[no-untyped-def]
    """Extend the factor by variable j, at position k; whether it is independent of the others."""
    column = np.empty(k)
    for i in range(k):
        column[i] = Q[j, positive[i]]
    pivot = Q[j, j]
    for i in range(k):
        column[i] /= R[i, i]
        for m in range(i + 1, k):
            column[m] -= R[i, m] * column[i]
        pivot -= column[i] * column[i]
    for i in range(k):
        R[i, k] = column[i]
    least = max(_LEAST_PIVOT * Q[j, j], 1e-300)
    R[k, k] = np.sqrt(max(pivot, least))
    positive[k] = j
    return pivot > least


@compiled(fastmath={"contract", "reassoc"})
def _remove(R, positive, k, p):  # type: ignore[no-untyped-def]
    """Remove the variable at position p from the factor of k variables, by Givens rotations."""
    rest = R[p, p + 1 : k].copy()
    for i in range(p):
        for j in range(p, k - 1):
            R[i, j] = R[i, j + 1]
    for i in range(p, k - 1):
        for j in range(i, k - 1):
            R[i, j] = R[i + 1, j + 1]
        positive[i] = positive[i + 1]
    for i in range(p, k - 1):
        size = np.hypot(R[i, i], rest[i - p])
        c, s = R[i, i] / size, rest[i - p] / size
        R[i, i] = size
        for j in range(i + 1, k - 1):
            above, below = R[i, j], rest[j - p]
            R[i, j] = c * above + s * below
            rest[j - p] = c * below - s * above
