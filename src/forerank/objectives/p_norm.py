"""The p-norm push: between all pairs (p = 1) and the top of the list (p towards infinity).

    F(s) = ( sum_j q_j ( sum_i p_i exp(-(s_i - s_j)) )^p )^(1/p)
         = sum_i p_i exp(-s_i)  ( sum_j q_j exp(p s_j) )^(1/p)

over positives i with shares p_i and negatives j with shares q_j (Rudin, 2009, who has no root: a
sum of p-th powers). The inner sum is the loss of the negative j against all positives; its p-th
power lets the highest negatives count most. With p = 1 this is the mean exponential loss over all
pairs, and it rises with p to TopPush with the exponential loss. log F is a sum of two logarithms of
sums of exponentials, so that F is convex, smooth, and takes one pass over the scores.
"""

import numpy as np
from scipy.special import logsumexp

from forerank._typing import Index, Mask, Random, Vector
from forerank.design import Design
from forerank.objectives.allpairs import AllPairs

__all__ = ["PNorm", "PNormLinearization"]

# Fewest rows of a class in a sample.
_FEWEST = 20


class PNorm:
    """The p-norm push, as a function of the scores.

    Parameters
    ----------
    positive : boolean array
    p : float
        At least 1.
    weight : array, optional
        Per row, non-negative.
    """

    smooth = True
    shift_invariant = True
    has_curvature = True

    def __init__(self, positive: Mask, p: float, *, weight: Vector | None = None) -> None:
        self.positive, self.p, self.weight = positive, float(p), weight
        self.n_rows = positive.size
        weight = np.ones(positive.size) if weight is None else weight
        #: Logarithms of the shares of the rows in their class.
        with np.errstate(divide="ignore"):
            totals = np.where(positive, weight[positive].sum(), weight[~positive].sum())
            self.log_share = np.log(weight / totals)

    def __repr__(self) -> str:
        return f"PNorm(p={self.p:g})"

    def at(self, s: Vector) -> "PNormLinearization":
        """Value, gradient and curvature at the scores s. Cost: n."""
        return PNormLinearization(self, s)

    def hessian(self, s: Vector, design: Design) -> Vector:
        """X^T F''(s) X."""
        X = design.columns(0, design.n_columns)
        return X.T @ self.at(s).curvature_matrix(X)

    def gradient_at_zero(self) -> Vector:
        """The gradient at s = 0."""
        return self.at(np.zeros(self.n_rows)).gradient

    def squared(self) -> AllPairs:
        """All pairs under the squared loss."""
        return AllPairs(self.positive.astype(np.int8), "squared", weight=self.weight)

    def sample(self, size: int, rng: Random) -> "tuple[Index, PNorm] | None":
        """Rows drawn from each class, and the objective of these alone."""
        if 2 * size >= self.n_rows:
            return None
        rng, drawn = np.random.default_rng(rng), []
        for side in (np.flatnonzero(self.positive), np.flatnonzero(~self.positive)):
            count = min(max(side.size * size // self.n_rows, _FEWEST), side.size)
            drawn.append(rng.choice(side, count, replace=False))
        rows = np.sort(np.concatenate(drawn))
        weight = None if self.weight is None else self.weight[rows]
        positive = self.positive[rows]
        if weight is not None and not (weight[positive].any() and weight[~positive].any()):
            return None
        return rows, PNorm(positive, self.p, weight=weight)


class PNormLinearization:
    """The p-norm push at given scores.

    The gradient of log F is g = (-a, b), with the weights a of the positives and b of the
    negatives, each of sum one; F'' = F (g g^T + diag(a) - a a^T + p (diag(b) - b b^T)).
    """

    def __init__(self, objective: PNorm, s: Vector) -> None:
        self._positive, self._p = objective.positive, objective.p
        exponent = np.where(self._positive, -s, self._p * s) + objective.log_share
        of_positives = float(logsumexp(exponent[self._positive]))
        of_negatives = float(logsumexp(exponent[~self._positive]))
        self._share = np.exp(exponent - np.where(self._positive, of_positives, of_negatives))
        with np.errstate(over="ignore"):
            self.value = float(np.exp(of_positives + of_negatives / self._p))
        self._direction = np.where(self._positive, -self._share, self._share)
        self._bend = np.where(self._positive, 1.0, self._p) * self._share
        with np.errstate(invalid="ignore"):
            self.gradient = self.value * self._direction

    def curvature_product(self, u: Vector) -> Vector:
        """F''(s) u."""
        positive, weighted = self._positive, self._share * u
        on_positives, on_negatives = weighted[positive].sum(), weighted[~positive].sum()
        spread = self._bend * (u - np.where(positive, on_positives, on_negatives))
        return self.value * (self._direction * (on_negatives - on_positives) + spread)

    def curvature_matrix(self, U: Vector) -> Vector:
        """F''(s) U for the columns of U."""
        positive, share = self._positive, self._share
        means = [share[side] @ U[side] for side in (positive, ~positive)]
        spread = U - np.where(positive[:, None], means[0], means[1])
        spread *= self._bend[:, None]
        spread += np.outer(self._direction, means[1] - means[0])
        spread *= self.value
        return spread

    def curvature_diagonal(self) -> Vector:
        """The diagonal of F''(s)."""
        return self.value * (self._share**2 + self._bend * (1.0 - self._share))
