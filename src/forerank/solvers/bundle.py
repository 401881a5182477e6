"""A bundle (cutting-plane) method with line search, for objectives with kinks: F(X w) + alpha/2 ||w||^2.

F is convex, so its linearisation at any scores c, with gradient g, bounds it from below by a plane in w:

    F(X w) >= <a, w> + b,    a = X^T g,    b = F(c) - <g, c>                          (maths/solvers.md, eq. 5)

The maximum of the planes collected so far is a model of F. Its minimiser with the penalty is found from the dual, a
small quadratic programme over the weights of the planes, whose value is a lower bound on the minimum: the certificate
is the gap between the best objective seen and that bound, relative to the former. The best point moves by a line search
towards the model's minimiser (after Franc and Sonnenburg, 2008), which keeps the objective falling, and the next plane
is cut a little beyond it.

A cutting-plane method alone needs many planes when alpha is small. Where the objective has a smoothed version (the
hinge), Newton's method on that, with the smoothing taken back in a few strides, comes first. It ends close to the
solution, and the gradient of the smoothed objective there, a convex combination of subgradients over very many pairs,
is one plane that often closes the gap by itself (maths/solvers.md, eq. 7).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._compile import compiled
from forerank.design import Design
from forerank.objectives.base import Linearization, Objective, Smoothable
from forerank.solvers.newton import newton
from forerank.solvers.result import Progress, SolverResult, relative_gap
from forerank.solvers.units import column_units

__all__ = ["bundle"]

Vector = NDArray[np.float64]

# The smoothing begins at this width and is taken back by this factor at a time; each width is solved to this relative
# gradient norm, and none with more than this many steps: what is missing then is left to the cutting planes.
_FIRST_WIDTH = 0.1
_STRIDE = 0.1
_ROUGH = 1e-2
_SMOOTH_STEPS = 50
# The next plane is cut this far from the best point towards the model's minimiser.
_CUT_BEYOND = 0.1
# A plane that has had no weight for this many steps is dropped.
_IDLE_STEPS = 20


@compiled
def _simplex_program(gram, b, beta, tol, max_steps):  # type: ignore[no-untyped-def]
    """Maximise <b, beta> - 1/2 beta^T gram beta over the simplex, in place, by moving weight between two planes.

    Stops when no exchange can gain more than tol: the largest slope minus the mean slope bounds what is missing.
    """
    slope = b - gram @ beta
    for _ in range(max_steps):
        up = np.argmax(slope)
        if slope[up] - slope @ beta <= tol:
            break
        best_gain = 0.0
        down = -1
        for k in range(beta.size):
            if beta[k] > 0.0 and k != up:
                difference = slope[up] - slope[k]
                if difference > 0.0:
                    curvature = gram[up, up] + gram[k, k] - 2.0 * gram[up, k]
                    move = beta[k] if curvature <= 0.0 else min(beta[k], difference / curvature)
                    gain = move * (difference - 0.5 * move * curvature)
                    if gain > best_gain:
                        best_gain, down, best_move = gain, k, move
        if down < 0:
            break
        beta[up] += best_move
        beta[down] = 0.0 if best_move == beta[down] else beta[down] - best_move
        for k in range(beta.size):
            slope[k] -= best_move * (gram[k, up] - gram[k, down])


class _Model:
    """The planes collected so far, and the minimum of their maximum plus the penalty."""

    def __init__(self, alpha: float, n_columns: int) -> None:
        self._alpha = alpha
        # F is non-negative: the plane of zeros is valid from the beginning.
        self._planes = np.zeros((1, n_columns))
        self._offsets = np.zeros(1)
        self._gram = np.zeros((1, 1))
        self._beta = np.ones(1)
        self._idle = np.zeros(1, dtype=np.int64)

    def add(self, plane: Vector, offset: float) -> None:
        products = self._planes @ plane
        own = float(plane @ plane)
        self._planes = np.vstack([self._planes, plane])
        self._offsets = np.append(self._offsets, offset)
        self._gram = np.block([[self._gram, products[:, None]], [products[None, :], np.array([[own]])]])
        self._beta = np.append(self._beta, 0.0)
        self._idle = np.append(self._idle, 0)

    def minimum(self, tol: float) -> tuple[Vector, float]:
        """The minimiser w of the model, and a lower bound on the minimum of the objective."""
        gram = self._gram / self._alpha
        _simplex_program(gram, self._offsets, self._beta, tol, 100_000)
        bound = float(self._offsets @ self._beta - 0.5 * self._beta @ gram @ self._beta)
        w = -(self._beta @ self._planes) / self._alpha
        self._drop_idle()
        return w, bound

    def _drop_idle(self) -> None:
        self._idle = np.where(self._beta > 0.0, 0, self._idle + 1)
        keep = self._idle <= _IDLE_STEPS
        keep[0] = True
        if not keep.all():
            self._planes, self._offsets, self._beta = self._planes[keep], self._offsets[keep], self._beta[keep]
            self._gram, self._idle = self._gram[np.ix_(keep, keep)], self._idle[keep]


def bundle(
    objective: Objective,
    design: Design,
    alpha: float,
    *,
    start: Vector | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    progress: Progress | None = None,
) -> SolverResult:
    """Minimise F(X w) + alpha/2 ||w||^2 for a convex, non-negative F that may have kinks.

    `start` is a warm start. `tol` is the relative duality gap. Cost of a step: one product with X, one with X^T, a few
    evaluations of F, and a quadratic programme in the planes. Where the objective has a method `smoothed`, Newton's
    method on the smoothed objective provides the start and a first plane.
    """
    if not alpha > 0.0:
        raise ValueError(f"bundle needs alpha > 0 for its dual bound; got alpha={alpha!r}.")
    progress = progress or Progress()
    model = _Model(alpha, design.n_columns)
    if isinstance(objective, Smoothable):
        w, plane = _smoothed_start(objective, design, alpha, start, tol, max_iter, progress)
        model.add(*plane)
    else:
        w = np.zeros(design.n_columns) if start is None else start
    s = design.scores(w)
    here = objective.at(s)
    value = here.value + 0.5 * alpha * float(w @ w)
    model.add(*_plane(here, s, design))
    bound = 0.0
    n_iter = 0
    while True:
        n_iter += 1
        target, lower = model.minimum(0.1 * tol * value)
        bound = max(bound, lower)
        gap = relative_gap(value, bound)
        progress.record(w, design.n_rows, value, gap)
        if gap <= tol or n_iter == max_iter:
            break
        p, q = target - w, design.scores(target) - s
        step = _line_search(objective, s, q, w, p, alpha)
        w, s = w + step * p, s + step * q
        here = objective.at(s)
        value = here.value + 0.5 * alpha * float(w @ w)
        cut = s + _CUT_BEYOND * (1.0 - step) * q
        model.add(*_plane(objective.at(cut), cut, design))
    return SolverResult(w, s, value, gap, n_iter, gap <= tol, progress.history)


def _smoothed_start(
    objective: Smoothable,
    design: Design,
    alpha: float,
    w: Vector | None,
    tol: float,
    max_iter: int,
    progress: Progress,
) -> tuple[Vector, tuple[Vector, float]]:
    """Weights near the solution, and the plane that the smoothed objective has there."""
    penalty = np.full(design.n_columns, alpha)
    width, last_width = _FIRST_WIDTH, 0.5 * tol
    # Few pairs of a sample lie within a narrow width of the margin; a wide one shows the same curvature, less noisily.
    common: dict[str, Any] = {
        "max_iter": min(max_iter, _SMOOTH_STEPS),
        "progress": progress,
        "curvature_from": objective.smoothed(_FIRST_WIDTH),
        "units": column_units(objective, design),
    }
    while width > 2.0 * last_width:
        w = newton(objective.smoothed(width), design, penalty, start=w, tol=_ROUGH, **common).w
        width *= _STRIDE
    # The last width costs at most half of it in the gap, the last gradient its square over 2 alpha: a quarter of the
    # tolerance each, as far as the level of the objective can be told beforehand.
    narrow = objective.smoothed(last_width)
    w = np.zeros(design.n_columns) if w is None else w
    level = objective.at(design.scores(w)).value + 0.5 * alpha * float(w @ w)
    goal = float(np.sqrt(0.5 * alpha * tol * level))
    result = newton(narrow, design, penalty, start=w, tol=0.0, gradient_norm=goal, **common)
    s = design.scores(result.w)
    return result.w, _plane(narrow.at(s), s, design)


def _plane(there: Linearization, c: Vector, design: Design) -> tuple[Vector, float]:
    return design.adjoint(there.gradient), there.value - float(there.gradient @ c)


def _line_search(objective: Objective, s: Vector, q: Vector, w: Vector, p: Vector, alpha: float) -> float:
    """A minimiser over step >= 0 of the objective along the line, to a tenth of the way; on scores alone."""
    linear, quadratic = alpha * float(w @ p), alpha * float(p @ p)

    def slope(step: float) -> float:
        return float(objective.at(s + step * q).gradient @ q) + linear + step * quadratic

    low, high = 0.0, 1.0
    slope_low = slope(low)
    if slope_low >= 0.0:
        return 0.0
    slope_high = slope(high)
    while slope_high < 0.0 and high < 1e3:
        low, slope_low, high = high, slope_high, 2.0 * high
        slope_high = slope(high)
    for _ in range(20):
        if high - low <= 0.1 * high:
            break
        # Regula falsi, kept off the ends so that the bracket shrinks.
        guess = low - slope_low * (high - low) / (slope_high - slope_low)
        guess = min(max(guess, low + 0.1 * (high - low)), high - 0.1 * (high - low))
        slope_guess = slope(guess)
        if slope_guess < 0.0:
            low, slope_low = guess, slope_guess
        else:
            high, slope_high = guess, slope_guess
    return low if low > 0.0 else high
