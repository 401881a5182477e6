"""Quadratic programmes with non-negative, possibly capped variables, by an active-set method.

    min  1/2 x^T Q x + <h, x>   over  0 <= x_j <= share_j tau,   tau = sum_k x_k

After Lawson and Hanson (1974): the variable at a bound with the steepest descent becomes free, the
free ones follow, and those that reach a bound are fixed there. With a set U of variables at their
caps and F of free ones, tau = rho sum(x_F) for rho = 1 / (1 - sum(share_U)), so that

    1/2 x_F^T (Q_FF + rho (q 1^T + 1 q^T) + rho^2 c 1 1^T) x_F + <h_F + rho eta 1, x_F>,
    q = Q_FU share_U,  c = share_U^T Q_UU share_U,  eta = <h_U, share_U>

is to be minimised: a Cholesky factor of Q_FF is updated, the rest has rank two.

Q may be singular, as for equal or linearly dependent constraints: about as many variables as its
rank are free at the end, where an interior-point method spreads the solution over all of them. A
good start saves most steps. Cost of a step: n k + k^2 for k free variables.
"""

import numpy as np
from numpy.typing import NDArray

from forerank._kernels import compiled
from forerank._typing import Mask, Vector

__all__ = ["active_set"]

# Least square of a pivot relative to the diagonal. A dependent constraint has none; with this one
# its step is long, and ends where another variable reaches a bound.
_LEAST_PIVOT = 1e-12
# Share of the sum that counts as zero.
_ROUNDING = 1e-11
# Relative distance from its cap below which a variable of the start is at its cap.
_CLOSE = 1e-9
# Most steps, per variable.
_MOST_STEPS = 10
# States of a variable.
_ZERO, _FREE, _CAPPED = 0, 1, 2


def active_set(
    Q: Vector,
    h: Vector,
    shares: Vector | None,
    start: Vector,
    *,
    total: float,
    constant: float,
    atol: float,
    rtol: float,
) -> tuple[Vector, Mask] | None:
    """The minimiser, and which variables are between their bounds; None where rounding errors
    prevent it.

    `start` has no negative entries. Stops at an error of `atol`, or of `rtol` times the minimum
    plus `constant`. `total` estimates the sum of x.
    """
    x, state = start.copy(), np.where(start > 0.0, _FREE, _ZERO).astype(np.int8)
    limits = np.full(h.size, np.inf) if shares is None else shares
    if shares is not None:
        _make_feasible(x, state, h, shares, total)
    # Upper triangle: the Cholesky factor of Q among the free variables.
    R, free = np.empty(Q.shape), np.empty(h.size, np.intp)
    k, dependent = _factor(R, Q, free, state, False)
    x[dependent], state[dependent] = 0.0, _ZERO
    if shares is not None and dependent.any():
        _make_feasible(x, state, h, shares, total)
        k, _ = _factor(R, Q, free, state, True)
    most = _MOST_STEPS * h.size + 100
    found = _descend(R, free, k, Q, h, limits, x, state, total, constant, atol, rtol, most)
    return (x, state == _FREE) if found and np.isfinite(x).all() else None


def _make_feasible(
    x: Vector, state: NDArray[np.int8], h: Vector, shares: Vector, total: float
) -> None:
    """Cut x to the caps; what is missing in its sum goes to the variables of lowest h."""
    tau = float(x.sum()) or total
    caps = shares * tau
    at_cap = x >= (1.0 - _CLOSE) * caps
    x[at_cap] = caps[at_cap]
    state[:] = np.where(at_cap, _CAPPED, np.where(x > 0.0, _FREE, _ZERO))
    missing = tau - float(x.sum())
    order = np.lexsort((h, x == 0.0))  # those that are positive first
    for j in order:
        if missing <= _ROUNDING * tau:
            break
        room = caps[j] - x[j]
        if room > 0.0:
            x[j] += min(room, missing)
            state[j] = _CAPPED if room <= missing else _FREE
            missing -= room
    if not (state == _FREE).any():
        state[np.argmax(np.where(state == _CAPPED, h, -np.inf))] = _FREE


@compiled
def _factor(R, Q, free, state, keep):  # type: ignore[no-untyped-def]
    """Fill the factor of the free variables; their number, and which have constraints that depend
    on those of free ones before them. These are left out of the factor, unless `keep`.
    """
    dependent, k = np.zeros(state.size, np.bool_), 0
    for j in range(state.size):
        if state[j] == _FREE:
            dependent[j] = not _append(R, Q, free, k, j)
            k += keep or not dependent[j]
    return k, dependent


@compiled
def _descend(R, free, k, Q, h, shares, x, state, total, constant, atol, rtol, most):  # type: ignore[no-untyped-def]
    """Change x into the minimiser; whether it is one."""
    n = h.size
    refused = np.zeros(n, np.bool_)  # variables that rounding errors keep at their bounds
    capped = np.zeros(n + 2)  # Q_U share_U, sum of share_U, <h_U, share_U>
    for j in range(n):
        if state[j] == _CAPPED:
            _cap(capped, Q, h, shares, j, 1.0)
    # Number of free variables after the factor was computed anew, with no step since.
    refreshed = -1
    k = _minimise_among(R, Q, h, shares, x, state, free, k, capped)
    for _ in range(most):
        if 1.0 - capped[n] <= _ROUNDING or (k == 0 and capped[n] > 0.0):
            return False
        descent, error, value, tau = _descents(Q, h, shares, x, state, free, k, capped)
        if max(total, tau) * error[0] + error[1] <= max(atol, rtol * (constant + value)):
            return True
        descent[refused] = 0.0
        j = int(np.argmax(descent))
        if not descent[j] > 0.0:
            if k == refreshed:
                return False
            # Only rounding errors of the factor are left: it is computed anew.
            for i in range(k):
                _append(R, Q, free, i, free[i])
            refused[:] = False
            k = refreshed = _minimise_among(R, Q, h, shares, x, state, free, k, capped)
            continue
        refreshed = -1
        before, state[j] = state[j], _FREE
        if before == _CAPPED:
            _cap(capped, Q, h, shares, j, -1.0)
        _append(R, Q, free, k, j)
        z = _target(R, Q, h, shares, state, free, k + 1, capped)
        new_tau = z.sum() / (1.0 - capped[n])
        if (z[k] <= 0.0) if before == _ZERO else (z[k] >= shares[j] * new_tau):
            refused[j], state[j] = True, before
            if before == _CAPPED:
                _cap(capped, Q, h, shares, j, 1.0)
            continue
        refused[:] = False
        k = _minimise_among(R, Q, h, shares, x, state, free, k + 1, capped)
    return False


@compiled
def _cap(capped, Q, h, shares, j, sign):  # type: ignore[no-untyped-def]
    """Add variable j to the sums over the capped variables, or subtract it."""
    n = h.size
    capped[:n] += sign * shares[j] * Q[j]
    capped[n] += sign * shares[j]
    capped[n + 1] += sign * shares[j] * h[j]


@compiled
def _descents(Q, h, shares, x, state, free, k, capped):  # type: ignore[no-untyped-def]
    """The descent along each variable at a bound if the capped ones follow, the error of x (per
    unit of the sum, and of the free variables), its value, and its sum.
    """
    n = h.size
    rho = 1.0 / (1.0 - capped[n])
    slope = h.copy()
    tau = 0.0
    for i in range(k):
        v, row = x[free[i]], Q[free[i]]
        for j in range(n):
            slope[j] += v * row[j]
        tau += rho * v
    slope += tau * capped[:n]
    value = 0.5 * (np.dot(slope, x) + np.dot(h, x))
    level = 0.0
    for j in range(n):
        if state[j] == _CAPPED:
            level += rho * shares[j] * slope[j]
    highest, sum_at_zero, sum_at_cap, of_free = 0.0, 0.0, 0.0, 0.0
    for j in range(n):
        descent = -(slope[j] + level)
        if state[j] == _FREE:
            of_free += abs(descent * x[j])
            slope[j] = 0.0
            continue
        slope[j] = descent if state[j] == _ZERO else -descent
        if slope[j] > 0.0:
            if state[j] == _ZERO:
                highest = max(highest, slope[j])
                sum_at_zero += slope[j] * shares[j]
            else:
                sum_at_cap += slope[j] * shares[j]
    return slope, (min(highest, sum_at_zero) + sum_at_cap, of_free), value, tau


@compiled
def _minimise_among(R, Q, h, shares, x, state, free, k, capped):  # type: ignore[no-untyped-def]
    """Minimise over the free variables; those that reach a bound stay there. The number left."""
    n = h.size
    while k > 0:
        z = _target(R, Q, h, shares, state, free, k, capped)
        rho = 1.0 / (1.0 - capped[n])
        old_tau, new_tau = 0.0, rho * z.sum()
        for i in range(k):
            old_tau += rho * x[free[i]]
        length, first = 1.0, -1
        for i in range(k):
            j = free[i]
            if z[i] <= 0.0:
                reached = x[j] / (x[j] - z[i]) if z[i] < x[j] else 0.0
            elif k > 1 and shares[j] < np.inf and z[i] > shares[j] * new_tau:
                room = max(shares[j] * old_tau - x[j], 0.0)
                reached = room / (room + z[i] - shares[j] * new_tau)
            else:
                continue
            if reached < length or first < 0:
                length, first = min(reached, 1.0), i
        for i in range(k):
            x[free[i]] += length * (z[i] - x[free[i]])
        tau = old_tau + length * (new_tau - old_tau)
        if first >= 0:
            j = free[first]
            if z[first] > 0.0 and 1.0 - capped[n] - shares[j] <= _ROUNDING:
                # The others are zero: this one stays free, to carry the sum.
                free[0], R[0, 0] = j, np.sqrt(Q[j, j])
                for i in range(n):
                    if state[i] == _FREE and i != j:
                        x[i], state[i] = 0.0, _ZERO
                k = 1
            else:
                x[j] = 0.0
                state[j] = _ZERO if z[first] <= 0.0 else _CAPPED
                if state[j] == _CAPPED:
                    _cap(capped, Q, h, shares, j, 1.0)
                _remove(R, free, k, first)
                k -= 1
        if capped[n] > 0.0:
            for j in range(n):
                if state[j] == _CAPPED:
                    x[j] = shares[j] * tau
        if first < 0:
            break
    return k


@compiled
def _target(R, Q, h, shares, state, free, k, capped):  # type: ignore[no-untyped-def]
    """The minimiser over the first k free variables without bounds."""
    n = h.size
    z, ones, q = np.empty(k), np.ones(k), np.empty(k)
    for i in range(k):
        z[i], q[i] = -h[free[i]], capped[free[i]]
    _solve(R, k, z)
    if capped[n] <= 0.0:
        return z
    rest, eta = 1.0 - capped[n], capped[n + 1]  # rest is 1 / rho
    c = 0.0
    for j in range(n):
        if state[j] == _CAPPED:
            c += shares[j] * capped[j]
    p, o = q.copy(), ones.copy()
    _solve(R, k, p)
    _solve(R, k, o)
    z -= eta / rest * o
    # The Woodbury identity for the part of rank two.
    a, b, d = np.dot(q, p) - c, rest + np.dot(q, o), o.sum()
    determinant = a * d - b * b
    on_q, on_ones = np.dot(q, z), z.sum()
    z -= ((d * on_q - b * on_ones) * p + (a * on_ones - b * on_q) * o) / determinant
    return z


# The loops are over slices, which the compiler knows not to overlap with what they add.
@compiled(fastmath={"contract", "nsz", "reassoc"})
def _solve(R, k, z):  # type: ignore[no-untyped-def]
    """Replace z by (R^T R)^-1 z."""
    for i in range(k):
        z[i] /= R[i, i]
        row, after, v = R[i, i + 1 : k], z[i + 1 : k], z[i]
        for m in range(after.size):
            after[m] -= row[m] * v
    for i in range(k - 1, -1, -1):
        row, after, total = R[i, i + 1 : k], z[i + 1 : k], 0.0
        for m in range(after.size):
            total += row[m] * after[m]
        z[i] = (z[i] - total) / R[i, i]


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _append(R, Q, free, k, j):  # type: ignore[no-untyped-def]
    """Extend the factor by variable j, at position k; whether it is independent of the others."""
    column = np.empty(k)
    for i in range(k):
        column[i] = Q[j, free[i]]
    pivot = Q[j, j]
    for i in range(k):
        column[i] /= R[i, i]
        row, after, v = R[i, i + 1 : k], column[i + 1 : k], column[i]
        for m in range(after.size):
            after[m] -= row[m] * v
        pivot -= v * v
    for i in range(k):
        R[i, k] = column[i]
    least = max(_LEAST_PIVOT * Q[j, j], 1e-300)
    R[k, k] = np.sqrt(max(pivot, least))
    free[k] = j
    return pivot > least


@compiled(fastmath={"contract", "nsz", "reassoc"})
def _remove(R, free, k, p):  # type: ignore[no-untyped-def]
    """Remove the variable at position p from the factor of k variables, by Givens rotations."""
    rest = R[p, p + 1 : k].copy()
    for i in range(p):
        for j in range(p, k - 1):
            R[i, j] = R[i, j + 1]
    for i in range(p, k - 1):
        for j in range(i, k - 1):
            R[i, j] = R[i + 1, j + 1]
        free[i] = free[i + 1]
    for i in range(p, k - 1):
        size = np.hypot(R[i, i], rest[i - p])
        c, s = R[i, i] / size, rest[i - p] / size
        R[i, i] = size
        row, other = R[i, i + 1 : k - 1], rest[i + 1 - p : k - 1 - p]
        for m in range(row.size):
            above, below = row[m], other[m]
            row[m] = c * above + s * below
            other[m] = c * below - s * above
