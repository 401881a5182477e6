"""Augmented Lagrangian of the top objective: smooth functions of the scores below it.

The top objective is a maximum over dual variables a of the positives and b of the negatives
(maths/top.md, eq. 2), with equal sums in each group. With a quadratic term around the centre b0,

    F_sigma(s) = max over a, b of  <b, s_neg> - <a, s_pos> - sum_i p_i l*(-a_i / p_i)
                                   - ||b - b0||^2 / (2 sigma)
    0 <= b_j <= cap_j G_q,   G_q = sum of b = sum of a over the group q       (maths/top.md, eq. 10)

it has a continuous gradient, (-a, b), and a curvature. F_sigma is at most F, and equals it where
the maximiser of F is b0. Its maximisers are feasible in the dual at every s, so that each
evaluation gives a lower bound on the minimum.

Evaluation. For a threshold T of the group, a_i = -p_i l'(s_i - T), and G is their sum. Then b_j =
clip(b0_j + sigma (s_j - c), 0, cap_j G), with the level c at which their sum is G. The derivative
in G of the part of the negatives is T(b) = c + sum over the capped j of cap_j (s_j - c - (b_j -
b0_j) / sigma), and T = T(b) at the maximum; T - T(b) increases in T, and its root is found by
Newton's method with bisection, for all groups at once. Where every cap is one, T = c.
"""

import numpy as np

from forerank._kernels import compiled
from forerank._typing import Index, Mask, Vector
from forerank.losses import Loss
from forerank.objectives.top import TopWithinGroups
from forerank.solvers.top_dual import _level

__all__ = ["AugmentedTop", "AugmentedTopLinearization", "ProximalHinge"]

# Most steps in the search for the thresholds.
_MOST_STEPS = 200
# Difference of two equal sums relative to them that counts as rounding error.
_ROUNDING = 1e-13
# Least sum of the slopes of a group, relative to the sum of its shares, for which its level is
# computed: at zero every level is possible.
_LEAST_SUM = 1e-9


class ProximalHinge(Loss):
    """Lower bound of the hinge with a centre per row: max over 0 <= a <= 1 of a (1 - t) - width/2
    (a - centre)^2.
    """

    name = "proximal_hinge"

    def __init__(self, width: float, centre: Vector) -> None:
        self.width, self.centre = width, centre

    def _maximiser(self, t: Vector) -> Vector:
        return np.clip(self.centre + (1.0 - t) / self.width, 0.0, 1.0)

    def value(self, t: Vector) -> Vector:  # type: ignore[override]
        a = self._maximiser(t)
        return a * (1.0 - t) - 0.5 * self.width * (a - self.centre) ** 2

    def slope(self, t: Vector) -> Vector:  # type: ignore[override]
        return -self._maximiser(t)

    def curvature(self, t: Vector) -> Vector:  # type: ignore[override]
        a = self.centre + (1.0 - t) / self.width
        return np.where((a > 0.0) & (a < 1.0), 1.0 / self.width, 0.0)

    def conjugate(self, v: Vector) -> Vector:  # type: ignore[override]
        a = -v
        inside = (a >= 0.0) & (a <= 1.0)
        return np.where(inside, -a + 0.5 * self.width * (a - self.centre) ** 2, np.inf)


@compiled
def _levels(v, caps, starts, sums, out):  # type: ignore[no-untyped-def]
    """The theta of each group with sum_j clip(v_j - theta, 0, cap_j sum) = sum."""
    for q in range(starts.size):
        begin = starts[q]
        end = starts[q + 1] if q + 1 < starts.size else v.size
        out[q] = _level(v[begin:end], caps[begin:end], sums[q], sums[q], sums[q])


class AugmentedTop:
    """The function F_sigma for a centre b0 and, for the hinge, its proximal version."""

    smooth = True
    shift_invariant = True
    has_curvature = True

    def __init__(
        self,
        top: TopWithinGroups,
        loss: Loss,
        centre: Vector,
        sigma: float,
        thresholds: Vector | None = None,
    ) -> None:
        self.top, self.loss, self.centre, self.sigma = top, loss, centre, sigma
        self.n_rows = top.n_rows
        self.single = bool((top.caps >= 1.0).all())
        # The last thresholds, from which the next search starts.
        self.last = thresholds

    def at(self, s: Vector) -> "AugmentedTopLinearization":
        """Value, gradient and curvature at the scores s. Cost: a few passes over the scores."""
        with np.errstate(all="ignore"):
            return AugmentedTopLinearization(self, s)


class AugmentedTopLinearization:
    """F_sigma at given scores.

    Attributes
    ----------
    slope, curvature : arrays
        a_i and p_i l''(s_i - T) of each positive.
    b : array
        Dual variables of the negatives.
    free : boolean array
        Which b_j are between their bounds.
    capped : array
        The caps of the b_j at their caps, zero for the others.
    total_curvature, n_free, share_of_free : arrays
        Of each group, the sum of the curvatures, the number of free negatives, and one minus the
        sum of `capped`.
    """

    b: Vector
    free: Mask

    def __init__(self, augmented: AugmentedTop, s: Vector) -> None:
        self.top, self.sigma = augmented.top, augmented.sigma
        top = self.top
        self._find_thresholds(augmented, s[top.positives], s[top.negatives])
        centre, sums = augmented.centre, self._sum_positives(self.slope)
        totals = self._sum_negatives(self.b)
        # Exactly equal sums, for the dual.
        ratio = np.divide(sums, totals, out=np.ones(sums.size), where=totals > 0.0)
        self.b = self.b * ratio[top.group_of_negatives]
        change = self.b - centre
        # The value of the maximum is that of the losses at T, plus what is left of the negatives.
        left = s[top.negatives] - self.T[top.group_of_negatives]
        self.value = float(top.share @ augmented.loss.value(self.margin) + self.b @ left)
        self.value -= float(change @ change) / (2.0 * self.sigma)
        self.gradient = np.zeros(top.n_rows)
        self.gradient[top.positives] = -self.slope
        self.gradient[top.negatives] = self.b
        augmented.last = self.T

    def _sum_positives(self, v: Vector) -> Vector:
        return np.add.reduceat(v, self.top.positive_starts)

    def _sum_negatives(self, v: Vector) -> Vector:
        return np.add.reduceat(v, self.top.negative_starts)

    def _find_thresholds(self, augmented: AugmentedTop, positive: Vector, negative: Vector) -> None:
        """Set thresholds, dual variables and curvatures."""
        top = self.top
        T = np.maximum.reduceat(negative, top.negative_starts)
        if augmented.last is not None:
            T = np.where(np.isfinite(augmented.last), augmented.last, T)
        low, high, width = np.full(T.size, -np.inf), np.full(T.size, np.inf), np.ones(T.size)
        for _ in range(_MOST_STEPS):
            self.T, self.margin = T, positive - T[top.group_of_positives]
            self.slope = -top.share * augmented.loss.slope(self.margin)
            self.curvature = top.share * augmented.loss.curvature(self.margin)
            self.total_curvature = self._sum_positives(self.curvature)
            excess, steepness, is_root = self._excess(augmented, negative)
            high, low = np.where(excess > 0.0, T, high), np.where(excess > 0.0, low, T)
            new = T - excess / steepness
            # Beyond the bracket: its middle, or a step that is doubled until there is one.
            away = np.where(excess > 0.0, T - width, T + width)
            middle = np.where(np.isfinite(low) & np.isfinite(high), 0.5 * (low + high), away)
            inside = (new > low) & (new < high) & np.isfinite(new)
            width = np.where(inside, width, 2.0 * width)
            new = np.where(is_root, T, np.where(inside, new, middle))
            if np.array_equal(new, T):
                break
            T = new

    def _excess(self, augmented: AugmentedTop, negative: Vector) -> tuple[Vector, Vector, Mask]:
        """T - T(b), or an increasing function with the same root, its derivative in T, and where
        it is zero up to rounding errors.
        """
        top, sigma, of = self.top, self.sigma, self.top.group_of_negatives
        sums = self._sum_positives(self.slope)
        shifted = augmented.centre / sigma + negative
        if augmented.single:
            b = sigma * (shifted - self.T[of])
            self.free, self.b = b > 0.0, np.maximum(b, 0.0)
            self._set_shares(np.zeros(negative.size))
            totals = self._sum_negatives(self.b)
            excess, steepness = sums - totals, self.total_curvature + sigma * self.n_free
            return excess, steepness, np.abs(excess) <= _ROUNDING * (sums + totals)
        sums = np.maximum(sums, _LEAST_SUM * self._sum_positives(top.share))
        levels = np.empty(sums.size)
        _levels(sigma * shifted, top.caps, top.negative_starts, sums, levels)
        b, most = sigma * shifted - levels[of], top.caps * sums[of]
        capped = b >= most
        self.free, self.b = (b > 0.0) & ~capped, np.clip(b, 0.0, most)
        self._set_shares(np.where(capped, top.caps, 0.0))
        left = shifted - (levels[of] + self.b) / sigma
        at_b = levels / sigma + self._sum_negatives(self.capped * left)
        excess, steepness = self.T - at_b, 1.0 + self.total_curvature * self._softness
        size = np.abs(self.T) + np.abs(at_b) + np.abs(levels / sigma)
        return excess, steepness, np.abs(excess) <= _ROUNDING * size

    def _set_shares(self, capped: Vector) -> None:
        """Set what the curvature needs: sums over groups, and minus the derivative of T(b) in G."""
        self.capped = capped
        self.n_free = self._sum_negatives(self.free.astype(float))
        self.share_of_free = 1.0 - self._sum_negatives(capped)
        own = self.share_of_free**2 / np.maximum(self.n_free, 1.0)
        self._softness = (own + self._sum_negatives(capped**2)) / self.sigma

    def coupling(self) -> Vector:
        """Curvature of F_sigma in the mean of the negatives minus that of the positives, of each
        group.
        """
        return self.total_curvature / (1.0 + self._softness * self.total_curvature)

    def curved_rows(self) -> Index:
        """The rows with a curvature."""
        top = self.top
        negatives = top.negatives[self.free | (self.capped > 0.0)]
        return np.sort(np.concatenate([top.positives[self.curvature > 0.0], negatives]))

    def curvature_product(self, u: Vector) -> Vector:
        """F_sigma''(s) u (maths/top.md, eq. 11)."""
        top, of, sigma = self.top, self.top.group_of_negatives, self.sigma
        on_positives, on_negatives = u[top.positives], u[top.negatives]
        bent = self.curvature * on_positives
        of_free = np.where(self.free, on_negatives, 0.0)
        mean = self._sum_negatives(of_free) / np.maximum(self.n_free, 1.0)
        along = self.share_of_free * mean + self._sum_negatives(self.capped * on_negatives)
        total = self._sum_positives(bent)
        dT = (along + self._softness * total) / (1.0 + self._softness * self.total_curvature)
        dG = self.total_curvature * dT - total
        dc = mean - self.share_of_free * dG / (sigma * np.maximum(self.n_free, 1.0))
        out = np.zeros(u.size)
        out[top.positives] = bent - self.curvature * dT[top.group_of_positives]
        moved = np.where(self.free, sigma * (on_negatives - dc[of]), 0.0)
        out[top.negatives] = moved + self.capped * dG[of]
        return out
