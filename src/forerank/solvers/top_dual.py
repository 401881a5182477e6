"""TopPush as published: accelerated projected gradients on the dual (li2014, Algorithm 1), stopped
by the duality gap.

    min over (a, b) in the cone
        ||X_pos^T a - X_neg^T b||^2 / (2 alpha) + sum_i p_i l*(-a_i / p_i)    (li2014, eq. 6)

with one variable a_i per positive and b_j per negative, non-negative and of equal sums; b_j <=
cap_j sum(b) where the threshold is a mean of several negatives. w = (X_pos^T a - X_neg^T b) /
alpha. (The paper's variables are m times ours.)

The projection onto the cone is exact (Proposition 1) and takes linear time: the root of a piecewise
linear function is found by discarding breakpoints on the wrong side of a pivot, as in the selection
of a median.

Two errors of the printed algorithm are corrected: the weight of the momentum is (t_{k-2} - 1) /
t_{k-1}, and step 5 is the usual backtracking. The stopping rule is the gap: on spambase the change
of the dual falls below epsilon while w = 0 is still the better ranking.
"""

import numpy as np

from forerank._kernels import compiled
from forerank._typing import Vector
from forerank.design import Design
from forerank.objectives.top import Top
from forerank.solvers.base import BOUNDED_CONJUGATE_SLOPE, THRESHOLD, solver
from forerank.solvers.result import Progress, SolverResult, relative_gap

__all__ = ["accelerated_dual", "project_balanced", "project_capped"]

# Factor of the smoothness in backtracking, until the quadratic bound holds.
_BACKTRACK = 2.0


@compiled
def _breakpoints(a, b, upper, has_upper):  # type: ignore[no-untyped-def]
    """Breakpoints v of rho, and the kind of each term: 1 for [v - gamma]_+, 2 for -[v - gamma]_+,
    -1 for -[gamma - v]_+.
    """
    m, n = a.size, b.size
    size = m + n + (m if has_upper else 0)
    v = np.empty(size)
    kind = np.empty(size, np.int8)
    for i in range(m):
        v[i], kind[i] = a[i], 1
    for j in range(n):
        v[m + j], kind[m + j] = -b[j], -1
    if has_upper:
        for i in range(m):
            v[m + n + i], kind[m + n + i] = a[i] - upper[i], 2
    return v, kind


@compiled
def _add_terms(v, kind, size, gamma, total, steepness):  # type: ignore[no-untyped-def]
    """Add the terms of the first `size` breakpoints to a value of rho and to minus its slope."""
    for k in range(size):
        if kind[k] == -1:
            if gamma > v[k]:
                total -= gamma - v[k]
                steepness += 1.0
        elif v[k] > gamma:
            sign = 1.0 if kind[k] == 1 else -1.0
            total += sign * (v[k] - gamma)
            steepness += sign
    return total, steepness


@compiled
def _balanced_shift(a, b, upper, has_upper):  # type: ignore[no-untyped-def]
    """The root gamma of rho(gamma) = sum_i clip(a_i - gamma, 0, upper_i) - sum_j [b_j + gamma]_+.

    A pivot among the breakpoints tells on which side of it the root lies; the terms of breakpoints
    on the other side are linear at the root, and are merged into one line.
    """
    v, kind = _breakpoints(a, b, upper, has_upper)
    size = v.size
    # rho(gamma) = constant + lost - slope * gamma + the terms of the remaining breakpoints; `lost`
    # has the rounding errors of the constant.
    constant, lost, slope = 0.0, 0.0, 0.0
    seed = np.uint64(88172645463325252)
    low, high, guess = -np.inf, np.inf, np.nan
    while size > 0:
        if low < guess < high:
            # Zero of the line at the last pivot: close to the root, so that few breakpoints remain.
            pivot, guess = guess, np.nan
        else:
            seed ^= seed << np.uint64(13)
            seed ^= seed >> np.uint64(7)
            seed ^= seed << np.uint64(17)
            pivot = v[int(seed % np.uint64(size))]
            guess = np.inf  # computed below
        at_pivot = constant + lost - slope * pivot
        total, steepness = _add_terms(v, kind, size, pivot, at_pivot, slope)
        if guess == np.inf:
            guess = pivot + total / steepness if steepness > 0.0 else np.nan
        above = total > 0.0  # rho decreases: the root lies above the pivot
        low, high = (pivot, high) if above else (low, pivot)
        kept = 0
        for k in range(size):
            if (v[k] > pivot) if above else (v[k] < pivot):
                v[kept], kind[kept] = v[k], kind[k]
                kept += 1
            elif above == (kind[k] == -1):  # linear at the root; the other terms are zero there
                sign = -1.0 if kind[k] == 2 else 1.0
                term = sign * v[k]
                new = constant + term
                larger, smaller = (
                    (constant, term) if abs(constant) >= abs(term) else (term, constant)
                )
                lost += (larger - new) + smaller
                constant = new
                slope += sign
        size = kept
    return (constant + lost) / slope if slope > 0.0 else 0.0


def project_balanced(a: Vector, b: Vector, upper: Vector | None = None) -> tuple[Vector, Vector]:
    """The nearest point to (a, b) with both parts non-negative and of equal sums, and a at most
    `upper`.

    li2014, eq. 9 and Proposition 1. Cost: linear in the number of variables, on average over the
    pivots.

    Examples
    --------
    >>> import numpy as np
    >>> project_balanced(np.array([3.0, 1.0]), np.array([0.0]))
    (array([1.5, 0. ]), array([1.5]))
    """
    gamma = _balanced_shift(a, b, a if upper is None else upper, upper is not None)
    a = np.maximum(a - gamma, 0.0)
    return a if upper is None else np.minimum(a, upper), np.maximum(b + gamma, 0.0)


@compiled
def _level(v, cap, factor, limit, total):  # type: ignore[no-untyped-def]
    """The theta with sum_j clip(v_j - theta, 0, min(factor cap_j, limit)) = total, if any."""
    low, high = np.inf, -np.inf
    for j in range(v.size):
        low = min(low, v[j] - min(factor * cap[j], limit))
        high = max(high, v[j])
    theta = 0.5 * (low + high)
    for _ in range(200):
        reached, free = 0.0, 0
        for j in range(v.size):
            above, most = v[j] - theta, min(factor * cap[j], limit)
            if above >= most:
                reached += most
            elif above > 0.0:
                reached += above
                free += 1
        rest = reached - total
        if rest > 0.0:
            low = theta
        else:
            high = theta
        new = theta + rest / free if free > 0 else 0.5 * (low + high)
        if not low < new < high:
            new = 0.5 * (low + high)
        if rest == 0.0 or new == theta or not low < new < high:
            break
        theta = new
    return theta


@compiled
def _capped_slope(a, b, caps, upper, G):  # type: ignore[no-untyped-def]
    """Derivative in G of half the squared distance to the points of sum G, and the levels of the
    two parts.
    """
    gamma = _level(a, upper, 1.0, 2.0 * G, G)  # the limit only bounds the search
    delta = -_level(b, caps, G, G, G)
    slope = delta - gamma
    for j in range(b.size):
        over = b[j] + delta - caps[j] * G
        if over > 0.0:
            slope -= caps[j] * over
    return slope, gamma, delta


@compiled
def _capped_sum(a, b, caps, upper, slope_low, most):  # type: ignore[no-untyped-def]
    """The sum G of the nearest point, by secants and bisection from the slope at G = 0, and the
    levels there.
    """
    low, high = 0.0, most
    slope_high, gamma, delta = _capped_slope(a, b, caps, upper, most)
    if slope_high <= 0.0:
        return most, gamma, delta
    G = most
    for step in range(200):
        secant = low - slope_low * (high - low) / (slope_high - slope_low)
        inside = low + 1e-3 * (high - low) < secant < high - 1e-3 * (high - low)
        middle = secant if step % 3 and inside else 0.5 * (low + high)
        if not low < middle < high or high - low <= 1e-16 * most:
            break
        G = middle
        slope, gamma, delta = _capped_slope(a, b, caps, upper, G)
        if slope == 0.0:
            break
        if slope < 0.0:
            low, slope_low = G, slope
        else:
            high, slope_high = G, slope
    return G, gamma, delta


def project_capped(
    a: Vector, b: Vector, caps: Vector, upper: Vector | None = None
) -> tuple[Vector, Vector]:
    """The nearest point with both parts non-negative and of the same sum G, a at most `upper`, and
    b_j at most caps_j G.

    The distance is convex in G, with the derivative delta - gamma - sum_j caps_j [b_j + delta -
    caps_j G]_+ from the levels gamma and delta at which the two parts have the sum G. Cost: a few
    hundred passes over the variables.
    """
    top = np.full(a.size, np.inf) if upper is None else upper
    most = float(np.minimum(np.maximum(a, 0.0), top).sum() + np.maximum(b, 0.0).sum())
    if most == 0.0:
        return np.zeros(a.size), np.zeros(b.size)
    if upper is not None:
        most = min(most, float(upper.sum()))
    order = np.argsort(-b)
    highest = float(np.diff(np.minimum(np.cumsum(caps[order]), 1.0), prepend=0.0) @ b[order])
    if float(a.max()) + highest <= 0.0:
        return np.zeros(a.size), np.zeros(b.size)
    G, gamma, delta = _capped_sum(a, b, caps, top, -float(a.max()) - highest, most)
    return np.clip(a - gamma, 0.0, top), np.clip(b + delta, 0.0, caps * G)


class _Dual:
    """The dual problem: a function of (a, b) and nu = X_pos^T a - X_neg^T b."""

    def __init__(self, top: Top, design: Design, alpha: float) -> None:
        self.top, self.design, self.alpha = top, design, alpha
        self._quadratic = top.loss.name == "squared_hinge"
        self._upper = None if self._quadratic else top.share
        self._single = bool((top.caps >= 1.0).all())

    def project(self, a: Vector, b: Vector) -> tuple[Vector, Vector]:
        if self._single:
            return project_balanced(a, b, self._upper)
        return project_capped(a, b, self.top.caps, self._upper)

    def combination(self, a: Vector, b: Vector) -> Vector:
        """X_pos^T a - X_neg^T b."""
        g = np.zeros(self.top.n_rows)
        g[self.top.positives], g[self.top.negatives] = a, -b
        return self.design.adjoint(g)

    def value(self, a: Vector, nu: Vector) -> float:
        """The function minimised: minus a lower bound on the objective."""
        return float(nu @ nu) / (2.0 * self.alpha) + self.top.conjugate(a)

    def continued_value(self, a: Vector, nu: Vector) -> float:
        """The function continued beyond its domain, which momentum may leave."""
        curved = a**2 / (4.0 * self.top.share) if self._quadratic else 0.0
        return float(nu @ nu) / (2.0 * self.alpha) + float(np.sum(-a + curved))

    def slopes(self, a: Vector, scores: Vector) -> tuple[Vector, Vector]:
        """Gradient in a and b; `scores` are X nu."""
        conjugate_slope = -1.0 + (a / (2.0 * self.top.share) if self._quadratic else 0.0)
        on_positives, on_negatives = scores[self.top.positives], scores[self.top.negatives]
        return on_positives / self.alpha + conjugate_slope, -on_negatives / self.alpha


@solver("accelerated_dual", THRESHOLD, BOUNDED_CONJUGATE_SLOPE)
def accelerated_dual(
    top: Top,
    design: Design,
    alpha: float,
    *,
    tol: float = 1e-4,
    max_iter: int = 10_000,
    progress: Progress | None = None,
) -> SolverResult:
    """Minimise the top objective plus alpha/2 ||w||^2 by Algorithm 1 of li2014.

    Needs a loss whose conjugate has a Lipschitz slope: the squared hinge or the hinge. Cost of an
    iteration: one product with X and one with X^T, one more of the latter for each backtracking,
    and the projection.
    """
    progress = progress or Progress()
    dual = _Dual(top, design, alpha)
    m, n, d = top.positives.size, top.negatives.size, design.n_columns
    a, b, nu = np.zeros(m), np.zeros(n), np.zeros(d)
    a_before, b_before, nu_before = a, b, nu
    scores_before = np.zeros(top.n_rows)
    smoothness = 1.0 / (m + n)
    t_before, t = 0.0, 1.0
    best_w, best_value, best_scores, bound = nu, np.inf, scores_before, 0.0
    for iteration in range(max_iter + 1):
        momentum = (t_before - 1.0) / t
        a_mid, b_mid = a + momentum * (a - a_before), b + momentum * (b - b_before)
        nu_mid = nu + momentum * (nu - nu_before)
        scores_mid = design.scores(nu_mid)
        # Scores are linear: those of nu follow from those of the extrapolated point.
        scores = np.zeros(top.n_rows)
        if momentum > -1.0:
            scores = (scores_mid + momentum * scores_before) / (1.0 + momentum)
        w = nu / alpha
        value = top.value_at(scores / alpha) + 0.5 * alpha * float(w @ w)
        if value < best_value:
            best_w, best_value, best_scores = w, value, scores / alpha
        bound = max(bound, -dual.value(a, nu))
        gap = relative_gap(best_value, bound)
        progress.record(best_w, design.n_rows, best_value, gap)
        if gap <= tol or iteration == max_iter:
            break
        slope_a, slope_b = dual.slopes(a_mid, scores_mid)
        at_mid = dual.continued_value(a_mid, nu_mid)
        while True:
            a_new, b_new = dual.project(a_mid - slope_a / smoothness, b_mid - slope_b / smoothness)
            nu_new = dual.combination(a_new, b_new)
            move_a, move_b = a_new - a_mid, b_new - b_mid
            linear = float(slope_a @ move_a + slope_b @ move_b)
            squared = float(move_a @ move_a + move_b @ move_b)
            predicted = at_mid + linear + 0.5 * smoothness * squared
            if dual.value(a_new, nu_new) <= predicted + 1e-14 * abs(predicted):
                break
            smoothness *= _BACKTRACK
        a_before, b_before, nu_before, scores_before = a, b, nu, scores
        a, b, nu = a_new, b_new, nu_new
        t_before, t = t, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
    converged, history = gap <= tol, progress.history
    return SolverResult(best_w, best_scores, best_value, gap, iteration, converged, history)
