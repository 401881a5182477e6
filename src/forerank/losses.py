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
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfc, erfcinv, expit, xlogy

from forerank._typing import Vector

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


class Logistic(Loss):
    """log(1 + exp(-t))."""

    name = "logistic"

    def value(self, t: ArrayLike) -> Vector:
        return np.logaddexp(0.0, -np.asarray(t, dtype=float))

    def slope(self, t: ArrayLike) -> Vector:
        return -expit(-np.asarray(t, dtype=float))

    def curvature(self, t: ArrayLike) -> Vector:
        t = np.asarray(t, dtype=float)
        return expit(t) * expit(-t)

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
