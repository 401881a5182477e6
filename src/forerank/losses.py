"""Scalar margin losses: value, slope, curvature and conjugate.

A margin loss l(t) is a convex function of a margin t: ``y * s`` for a single row with label y in
{-1, +1} and score s, ``s_i - s_j`` for a pair in which row i should be ranked above row j. Large
margins cost little.

The hinge is not differentiable at t = 1, and the squared hinge has a jump of its curvature there.
Both take the derivative from the right: slope and curvature are 0 exactly on the margin.

=================  ==================  ==================  =======================================
name               l(t)                l'(t)               l''(t)
=================  ==================  ==================  =======================================
``hinge``          max(0, 1 - t)       -[t < 1]            0
``squared_hinge``  max(0, 1 - t)^2     -2 max(0, 1 - t)    2 [t < 1]
``logistic``       log(1 + exp(-t))    -1 / (1 + exp(t))   p (1 - p), p = -l'(t)
``exponential``    exp(-t)             -exp(-t)            exp(-t)
``squared``        (1 - t)^2           -2 (1 - t)          2
``erfc``           ierfc(a t) / (2 a)  -erfc(a t) / 2      a exp(-(a t)^2) / sqrt(pi)
=================  ==================  ==================  =======================================

with a = sqrt(3/2) / pi. Conjugates l*(v) = sup_t (v t - l(t)), infinite outside the stated domain,
with b = -v:

=================  ===============================================
``hinge``          v on [-1, 0]
``squared_hinge``  v + v^2/4 on v <= 0
``logistic``       b log b + (1 - b) log(1 - b) on 0 <= b <= 1
``exponential``    b log b - b on b >= 0
``squared``        v + v^2/4
``erfc``           -exp(-x^2) / (2 a sqrt(pi)), erfc(x) = 2 b
=================  ===============================================
"""

from abc import ABC, abstractmethod
from math import factorial
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial import chebyshev, polynomial
from numpy.typing import ArrayLike
from scipy.special import erfc, erfcinv, xlogy

from forerank._kernels import compiled
from forerank._typing import Mask, Vector

__all__ = [
    "ERFC_SCALE",
    "DirectLogistic",
    "ErfcLogistic",
    "Exponential",
    "Hinge",
    "Logistic",
    "Loss",
    "SmoothedHinge",
    "Squared",
    "SquaredHinge",
    "get_loss",
    "logistic_kernel",
    "logistic_rows",
]


# The sigmoid 1 / (1 + exp(-t)) is about 1 - erfc(ERFC_SCALE t) / 2.
ERFC_SCALE = np.sqrt(1.5) / np.pi


class Loss(ABC):
    """A convex function of a margin; see the tables at the top of this module."""

    name: ClassVar[str]
    #: Whether the slope is continuous.
    smooth: ClassVar[bool] = True

    @abstractmethod
    def value(self, t: ArrayLike) -> Vector:
        """l(t)."""

    @abstractmethod
    def slope(self, t: ArrayLike) -> Vector:
        """l'(t), from the right where it jumps."""

    @abstractmethod
    def curvature(self, t: ArrayLike) -> Vector:
        """l''(t), from the right where it jumps."""

    @abstractmethod
    def conjugate(self, v: ArrayLike) -> Vector:
        """l*(v) = sup_t (v t - l(t)); infinite outside its domain."""

    def of_labels(self, s: Vector, positive: Mask) -> tuple[Vector, Vector]:
        """The loss of each row with score s and label y, l(y s), and its derivative by s."""
        margin = np.where(positive, s, -s)
        slope = self.slope(margin)
        return self.value(margin), np.where(positive, slope, -slope)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Hinge(Loss):
    """max(0, 1 - t)."""

    name = "hinge"
    smooth = False

    def value(self, t: ArrayLike) -> Vector:
        return np.maximum(0.0, 1.0 - np.asarray(t, dtype=float))

    def slope(self, t: ArrayLike) -> Vector:
        return np.where(np.asarray(t, dtype=float) < 1.0, -1.0, 0.0)

    def curvature(self, t: ArrayLike) -> Vector:
        return np.zeros_like(np.asarray(t, dtype=float))

    def conjugate(self, v: ArrayLike) -> Vector:
        v = np.asarray(v, dtype=float)
        return np.where((v >= -1.0) & (v <= 0.0), v, np.inf)


class SmoothedHinge(Loss):
    """The hinge with its kink replaced by a parabola over `width`; higher by at most width/8.

    (1 + width/2 - t)^2 / (2 width) for |1 - t| < width/2, the hinge elsewhere. Its conjugate is
    that of the hinge plus width v (1 + v)/2.
    """

    name = "smoothed_hinge"

    def __init__(self, width: float = 1.0) -> None:
        if not width > 0.0:
            raise ValueError(f"width must be positive; got {width!r}.")
        self.width = width

    def value(self, t: ArrayLike) -> Vector:
        gap = np.maximum(0.0, 1.0 + 0.5 * self.width - np.asarray(t, dtype=float))
        return np.where(gap < self.width, gap**2 / (2.0 * self.width), gap - 0.5 * self.width)

    def slope(self, t: ArrayLike) -> Vector:
        return -np.clip((1.0 - np.asarray(t, dtype=float)) / self.width + 0.5, 0.0, 1.0)

    def curvature(self, t: ArrayLike) -> Vector:
        distance = np.asarray(t, dtype=float) - 1.0
        inside = (distance < 0.5 * self.width) & (distance >= -0.5 * self.width)
        return np.where(inside, 1.0 / self.width, 0.0)

    def conjugate(self, v: ArrayLike) -> Vector:
        v = np.asarray(v, dtype=float)
        return np.where((v >= -1.0) & (v <= 0.0), v + 0.5 * self.width * v * (1.0 + v), np.inf)

    def __repr__(self) -> str:
        return f"SmoothedHinge(width={self.width!r})"


@compiled
def _squared_hinge_of_labels(s, positive, value, slope):  # type: ignore[no-untyped-def]
    for i in range(s.size):
        gap = 1.0 - (s[i] if positive[i] else -s[i])
        gap = 0.0 if gap < 0.0 else gap
        value[i] = gap * gap
        slope[i] = (-2.0 if positive[i] else 2.0) * gap


class SquaredHinge(Loss):
    """max(0, 1 - t)^2."""

    name = "squared_hinge"

    def value(self, t: ArrayLike) -> Vector:
        return np.maximum(0.0, 1.0 - np.asarray(t, dtype=float)) ** 2

    def slope(self, t: ArrayLike) -> Vector:
        return -2.0 * np.maximum(0.0, 1.0 - np.asarray(t, dtype=float))

    def curvature(self, t: ArrayLike) -> Vector:
        return np.where(np.asarray(t, dtype=float) < 1.0, 2.0, 0.0)

    def conjugate(self, v: ArrayLike) -> Vector:
        v = np.asarray(v, dtype=float)
        return np.where(v <= 0.0, v + v * v / 4.0, np.inf)

    def of_labels(self, s: Vector, positive: Mask) -> tuple[Vector, Vector]:
        value, slope = np.empty(s.size), np.empty(s.size)
        _squared_hinge_of_labels(s, positive, value, slope)
        return value, slope


class Logistic(Loss):
    """log(1 + exp(-t))."""

    name = "logistic"

    def value(self, t: ArrayLike) -> Vector:
        return self._derivative(t, 0)

    def slope(self, t: ArrayLike) -> Vector:
        return self._derivative(t, 1)

    def curvature(self, t: ArrayLike) -> Vector:
        return self._derivative(t, 2)

    def of_labels(self, s: Vector, positive: Mask) -> tuple[Vector, Vector]:
        value, slope = np.empty(s.size), np.empty(s.size)
        _logistic_of_labels(s, positive, value, slope)
        return value, slope

    @staticmethod
    def _derivative(t: ArrayLike, order: int) -> Vector:
        """The loss, or its first or second derivative."""
        margin = np.asarray(t, dtype=float)
        out = np.empty(margin.size)
        logistic_rows(margin.ravel(), order, out)
        return out.reshape(margin.shape)[()]

    def conjugate(self, v: ArrayLike) -> Vector:
        b = -np.asarray(v, dtype=float)
        inside = (b >= 0.0) & (b <= 1.0)
        b = np.where(inside, b, 0.5)
        return np.where(inside, xlogy(b, b) + xlogy(1.0 - b, 1.0 - b), np.inf)


class DirectLogistic(Logistic):
    """The logistic loss, summed pair by pair over all pairs: a reference for the fast sums."""


class Exponential(Loss):
    """exp(-t)."""

    name = "exponential"

    def value(self, t: ArrayLike) -> Vector:
        with np.errstate(over="ignore"):  # infinity makes a line search shorten its step
            return np.exp(-np.asarray(t, dtype=float))

    def slope(self, t: ArrayLike) -> Vector:
        return -self.value(t)

    def curvature(self, t: ArrayLike) -> Vector:
        return self.value(t)

    def conjugate(self, v: ArrayLike) -> Vector:
        b = -np.asarray(v, dtype=float)
        inside = b >= 0.0
        b = np.where(inside, b, 1.0)
        return np.where(inside, xlogy(b, b) - b, np.inf)


class Squared(Loss):
    """(1 - t)^2."""

    name = "squared"

    def value(self, t: ArrayLike) -> Vector:
        return (1.0 - np.asarray(t, dtype=float)) ** 2

    def slope(self, t: ArrayLike) -> Vector:
        return -2.0 * (1.0 - np.asarray(t, dtype=float))

    def curvature(self, t: ArrayLike) -> Vector:
        return np.full_like(np.asarray(t, dtype=float), 2.0)

    def conjugate(self, v: ArrayLike) -> Vector:
        v = np.asarray(v, dtype=float)
        return v + v * v / 4.0


class ErfcLogistic(Loss):
    """The logistic loss with its sigmoid replaced by an erfc (raykar2007, eq. 3).

    The slope is -erfc(a t) / 2; a gives both the same variance, and the slopes differ by at most
    0.023. The loss is its integral, ierfc(a t) / (2 a) with ierfc(x) = exp(-x^2) / sqrt(pi) - x
    erfc(x). `eps` is the precision of sums over pairs.
    """

    name = "erfc"

    def __init__(self, eps: float = 1e-6) -> None:
        self.eps = eps

    def value(self, t: ArrayLike) -> Vector:
        x = ERFC_SCALE * np.asarray(t, dtype=float)
        return (np.exp(-(x**2)) / np.sqrt(np.pi) - x * erfc(x)) / (2.0 * ERFC_SCALE)

    def slope(self, t: ArrayLike) -> Vector:
        return -0.5 * erfc(ERFC_SCALE * np.asarray(t, dtype=float))

    def curvature(self, t: ArrayLike) -> Vector:
        x = ERFC_SCALE * np.asarray(t, dtype=float)
        return ERFC_SCALE / np.sqrt(np.pi) * np.exp(-(x**2))

    def conjugate(self, v: ArrayLike) -> Vector:
        b = -np.asarray(v, dtype=float)
        inside = (b >= 0.0) & (b <= 1.0)
        x = erfcinv(2.0 * np.where(inside, b, 0.5))
        return np.where(inside, -np.exp(-(x**2)) / (2.0 * ERFC_SCALE * np.sqrt(np.pi)), np.inf)

    def __repr__(self) -> str:
        return f"ErfcLogistic(eps={self.eps!r})"


_KINDS = (ErfcLogistic, Exponential, Hinge, Logistic, SmoothedHinge, Squared, SquaredHinge)
_LOSSES: dict[str, Loss] = {kind.name: kind() for kind in _KINDS}


def get_loss(loss: str | Loss) -> Loss:
    """The loss of a name; a `Loss` is returned unchanged.

    Examples
    --------
    >>> get_loss("squared_hinge").slope([0.0, 1.0, 2.0])
    array([-2., -0., -0.])
    """
    if isinstance(loss, Loss):
        return loss
    if loss not in _LOSSES:
        known = ", ".join(map(repr, sorted(_LOSSES)))
        raise ValueError(f"loss={loss!r} is not known; choose one of {known}.")
    return _LOSSES[loss]


# --- The logistic loss in compiled code, several margins at a time where the processor can ---
# The compiler turns a loop into vector instructions only where it calls no function of a library
# and raises no error, so exp and log(1 + e) are polynomials here, and a division has no check for
# zero. Both are exact to a few units in the last place.

# Options of functions whose loops should become vector instructions.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}

_LOG2_E = 1.0 / np.log(2.0)
# Adding it rounds to whole numbers, which are then in the last bits.
_ROUND = 1.5 * 2.0**52
# log 2 in two parts, the first with few bits, so that its multiples are exact.
_LOG_2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LOG_2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_BIAS = 1023
_BITS_OF_FRACTION = 52
# exp(-x) is set to zero beyond; the smallest normal number is exp(-708.4).
_LARGEST = 708.0
# exp(r) for |r| <= log(2)/2: its Taylor series.
_E = tuple(1.0 / factorial(k) for k in range(14))


def _atanh_coefficients() -> tuple[float, ...]:
    """Coefficients of atanh(z)/z in u = z^2, 0 <= u <= 1/9: 1 + u/3 + u^2 times a polynomial."""

    def remainder(u: Vector) -> Vector:
        series = [1.0 / (2 * k + 5) for k in range(40)]
        return np.asarray(polynomial.polyval(u, series), dtype=float)

    fitted = chebyshev.Chebyshev.interpolate(remainder, 8, domain=[0.0, 1.0 / 9.0])
    return 1.0, 1.0 / 3.0, *map(float, fitted.convert(kind=polynomial.Polynomial).coef)


_A = _atanh_coefficients()


@compiled(**_OPTIONS)
def _exp_of_minus(x):  # type: ignore[no-untyped-def]
    """exp(-x) for x >= 0: 2^n exp(r) with the whole number n next to -x / log 2."""
    shifted = _ROUND - x * _LOG2_E
    n = shifted - _ROUND
    r = (-x - n * _LOG_2_HIGH) - n * _LOG_2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + r2 * (_E[2] + _E[3] * r)
    middle = (_E[4] + _E[5] * r) + r2 * (_E[6] + _E[7] * r)
    high = ((_E[8] + _E[9] * r) + r2 * (_E[10] + _E[11] * r)) + r4 * (_E[12] + _E[13] * r)
    exponent = np.float64(shifted).view(np.int64) + _BIAS
    power = np.int64(exponent << _BITS_OF_FRACTION).view(np.float64)
    value = (low + r4 * (middle + r4 * high)) * power
    return 0.0 if x > _LARGEST else value


@compiled(**_OPTIONS)
def _log_of_one_plus(e):  # type: ignore[no-untyped-def]
    """log(1 + e) for 0 <= e <= 1: 2 atanh(z) with z = e / (2 + e)."""
    z = e / (2.0 + e)
    u = z * z
    u2 = u * u
    u4 = u2 * u2
    low = (_A[0] + _A[1] * u) + u2 * (_A[2] + _A[3] * u)
    middle = (_A[4] + _A[5] * u) + u2 * (_A[6] + _A[7] * u)
    high = (_A[8] + _A[9] * u) + u2 * _A[10]
    return 2.0 * z * (low + u4 * (middle + u4 * high))


@compiled(**_OPTIONS)
def logistic_kernel(t):  # type: ignore[no-untyped-def]
    """log(1 + exp(-t)), its slope and its curvature, without overflow."""
    e = _exp_of_minus(abs(t))
    p = 1.0 / (1.0 + e)
    q = e * p
    return (0.0 if t > 0.0 else -t) + _log_of_one_plus(e), -(q if t >= 0.0 else p), q * p


@compiled(**_OPTIONS)
def logistic_rows(t, order, out):  # type: ignore[no-untyped-def]
    """The loss (order 0), its slope (1) or its curvature (2) at the margins t."""
    if order == 0:
        for i in range(t.size):
            out[i] = logistic_kernel(t[i])[0]
    elif order == 1:
        for i in range(t.size):
            out[i] = logistic_kernel(t[i])[1]
    else:
        for i in range(t.size):
            out[i] = logistic_kernel(t[i])[2]


@compiled(**_OPTIONS)
def _logistic_of_labels(s, positive, value, slope):  # type: ignore[no-untyped-def]
    """The loss of each row, at the margin s where positive and -s elsewhere, and its slope in s."""
    for i in range(s.size):
        value[i], at_margin, _ = logistic_kernel(s[i] if positive[i] else -s[i])
        slope[i] = at_margin if positive[i] else -at_margin
