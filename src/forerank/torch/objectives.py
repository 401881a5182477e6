"""Objectives on tensors: the mean loss over all pairs, and over single rows.

The interface is that of `forerank.objectives.AllPairs` and `Pointwise`: functions of the scores
with value, gradient and curvature. Scores and gradients are tensors on the device of the labels;
the solvers of `forerank.solvers` use them through `TensorDesign`, and see numbers by column only.
"""

import numpy as np
import torch
from torch import Tensor

from forerank._typing import Random, Vector
from forerank.losses import get_loss
from forerank.objectives import Pointwise, Profiled
from forerank.torch.binned import binned_hessian
from forerank.torch.blocks import TensorPairs, make_pairs
from forerank.torch.design import TensorDesign
from forerank.torch.margins import MARGIN_LOSSES, margin_curvature, margin_slope
from forerank.torch.pair_sums import make_sums

__all__ = ["TensorAllPairs", "TensorPointwise"]

# Span of scores, and rows above which such scores are not summed: a step of a line search that
# leads there is shortened instead.
_WIDEST, _MANY_ROWS = 4096.0, 20_000


def stratified(n: int, size: int, rng: np.random.Generator, device: torch.device) -> Tensor:
    """`size` different numbers from 0 .. n - 1 in ascending order: one of each of `size` equal
    ranges; all numbers where there are no more.
    """
    if n <= size:
        return torch.arange(n, device=device)
    generator = torch.Generator(device=device).manual_seed(int(rng.integers(2**31)))
    within = torch.rand(size, dtype=torch.float64, device=device, generator=generator)
    place = (torch.arange(size, device=device) + within) * (n / size)
    return place.to(torch.int64).clamp_(max=n - 1)


def _with_units(mean: Vector, square: Vector) -> Vector:
    """Rows: mean, unit, stored share, as `forerank.solvers.units` reads them."""
    return np.stack([mean, np.sqrt(np.maximum(square, 0.0)), np.ones(mean.size)])


class TensorAllPairs:
    """The mean of a loss over all pairs, as a function of the scores.

    Parameters
    ----------
    grade : integer tensor
        By row, higher is better.
    loss : str
    weight : float64 tensor, optional
    group : integer tensor, optional
    """

    shift_invariant = True
    has_curvature = True

    def __init__(
        self, grade: Tensor, loss: str, *, weight: Tensor | None = None, group: Tensor | None = None
    ) -> None:
        self._rows = grade, weight, group
        self.pairs: TensorPairs = make_pairs(grade, weight, group)
        self.loss, self.loss_name = get_loss(loss), loss
        self.smooth, self.n_rows = self.loss.smooth, grade.numel()
        self.total_weight = float(self.pairs.total_weight())

    def __repr__(self) -> str:
        return f"TensorAllPairs({self.loss!r})"

    def at(self, s: Tensor) -> "PairsLinearization":
        """Value, gradient and curvature at the scores s."""
        return PairsLinearization(self, s)

    def hessian(self, s: Tensor, design: TensorDesign) -> Vector:
        """X^T F''(s) X, approximately for a single block, where scores are rounded to bins."""
        if self.pairs.block is None:
            cross, curvature = binned_hessian(self.pairs, s, self.loss.slope, design)
            gram = design.weighted_gram(curvature)
            return (gram - cross - cross.T) / self.total_weight
        here, X = self.at(s), design.columns(0, design.n_columns)
        products = [here.curvature_product(x) for x in X.T]
        return (X.T @ torch.stack(products, dim=1)).cpu().numpy()

    def gradient_at_zero(self) -> Tensor:
        """The gradient at s = 0, where all pairs have the same slope."""
        pairs = self.pairs
        slope = float(self.loss.slope(0.0)) / self.total_weight
        other = pairs.other_half(*pairs.half_sums(pairs.weight))
        return pairs.add_to_rows(slope * pairs.sign * pairs.weight * other)

    def sample(self, size: int, rng: Random) -> "tuple[Tensor, TensorAllPairs] | None":
        """About `size` rows with the same objective on them; None if that saves little.

        Two classes have up to half of `size` each; of groups, complete ones are drawn.
        """
        if size > 0.5 * self.n_rows:
            return None
        rng = np.random.default_rng(rng)
        grade, weight, group = self._rows
        if group is not None:
            n_groups = int(group.max()) + 1
            drawn = torch.zeros(n_groups, dtype=torch.bool, device=grade.device)
            some = max(1, round(n_groups * size / self.n_rows))
            drawn[stratified(n_groups, some, rng, grade.device)] = True
            rows = torch.nonzero(drawn[group])[:, 0]
        elif self.pairs.block is None:
            sides = [torch.nonzero(side)[:, 0] for side in (~self.pairs.upper, self.pairs.upper)]
            parts = []
            for side, other in (sides, sides[::-1]):
                most = max(size // 2, size - other.numel())
                parts.append(side[stratified(side.numel(), most, rng, grade.device)])
            rows = torch.cat(parts)
        else:
            rows = stratified(self.n_rows, size, rng, grade.device)
        part = TensorAllPairs(
            grade[rows],
            self.loss_name,
            weight=None if weight is None else weight[rows],
            group=None if group is None else group[rows],
        )
        return (rows, part) if part.total_weight > 0.0 else None

    def column_moments(
        self, design: TensorDesign, centred: bool, size: int | None = None
    ) -> tuple[Vector, bool]:
        """Means, units and stored shares of the columns over about `size` rows, or all; and
        whether all were used. The unit is the root mean square of differences over pairs.
        """
        drawn = None if size is None else self.sample(size, 2)
        if drawn is not None:
            return drawn[1].column_moments(design.rows(drawn[0]), centred)[0], False
        pairs = self.pairs
        own = pairs.add_to_rows(
            pairs.weight * pairs.other_half(*pairs.half_sums(pairs.weight)) / self.total_weight
        )
        mean = design.adjoint(0.5 * own)
        second = design.moments(own, mean)[1]
        if pairs.block is not None:  # means of the halves of blocks are left out
            return _with_units(mean, 0.5 * second), True
        lower, upper = pairs.half_sums(pairs.weight)
        means = [
            design.moments(torch.where(side, pairs.weight, 0.0) / total, mean)[0]
            for side, total in ((~pairs.upper, lower), (pairs.upper, upper))
        ]
        return _with_units(mean, second - 2.0 * means[0] * means[1]), True


class PairsLinearization:
    """A mean over pairs at given scores."""

    def __init__(self, objective: TensorAllPairs, s: Tensor) -> None:
        self._pairs, self._scale = objective.pairs, 1.0 / objective.total_weight
        self._curvature: Tensor | None = None
        t = self._pairs.entries(s)
        if _is_too_wide(t):
            self.value, self.gradient = np.inf, torch.zeros_like(s)
            return
        self._sums = make_sums(objective.loss_name, self._pairs, t)
        value, slopes = self._sums.value_and_slopes(self._pairs.weight)
        self.value = self._scale * float(value)
        self.gradient = self._by_row(self._pairs.sign * slopes)

    def _by_row(self, sums: Tensor) -> Tensor:
        return self._pairs.add_to_rows(self._scale * self._pairs.weight * sums)

    def _entry_curvature(self) -> Tensor:
        if self._curvature is None:
            self._curvature = self._sums.kernel(2, self._pairs.weight)
        return self._curvature

    def curvature_product(self, u: Tensor) -> Tensor:
        """F''(s) u."""
        by_entry = self._pairs.entries(u)
        sums = self._sums.kernel(2, self._pairs.weight * by_entry)
        return self._by_row(by_entry * self._entry_curvature() - sums)

    def curvature_diagonal(self) -> Tensor:
        """The diagonal of F''(s)."""
        return self._by_row(self._entry_curvature())


def _is_too_wide(t: Tensor) -> bool:
    """Whether scores are not finite, or span more than the fast sums can do for many rows."""
    low, high = torch.stack(torch.aminmax(t)).tolist()
    return not high - low < (_WIDEST if t.numel() > _MANY_ROWS else np.inf)


class TensorPointwise:
    """The weighted mean of a loss over rows, as a function of the scores.

    Parameters
    ----------
    positive : boolean tensor
    loss : str
    weight : float64 tensor, optional
    """

    shift_invariant = False
    has_curvature = True

    def __init__(self, positive: Tensor, loss: str, *, weight: Tensor | None = None) -> None:
        self.positive, self.loss, self.loss_name = positive, get_loss(loss), loss
        self.smooth, self.n_rows = self.loss.smooth, positive.numel()
        if weight is None:
            weight = torch.ones(self.n_rows, dtype=torch.float64, device=positive.device)
        self._share = weight / weight.sum()

    def __repr__(self) -> str:
        return f"TensorPointwise({self.loss!r})"

    def at(self, s: Tensor) -> "PointsLinearization":
        """Value, gradient and curvature at the scores s."""
        return PointsLinearization(self.loss_name, s, self.positive, self._share)

    def hessian(self, s: Tensor, design: TensorDesign) -> Vector:
        """X^T F''(s) X."""
        return design.weighted_gram(self.at(s).curvature_diagonal())

    def profiled(self) -> "_AtBestConstant":
        """The same, minimised over a constant that is added to the scores."""
        return _AtBestConstant(self)

    def gradient_at(self, constant: float) -> Tensor:
        """The gradient where all scores are this constant."""
        return self.at(torch.full_like(self._share, constant)).gradient

    def gradient_at_zero(self) -> Tensor:
        """The gradient at s = 0."""
        return self.gradient_at(0.0)

    def best_constant(self) -> float:
        """The constant score with the least loss: a problem of one row of each class."""
        positive = float(self._share[self.positive].sum())
        rows = Pointwise(
            np.array([True, False]), self.loss, weight=np.array([positive, 1.0 - positive])
        )
        return Profiled(rows).best_shift(np.zeros(2))

    def sample(self, size: int, rng: Random) -> "tuple[Tensor, TensorPointwise] | None":
        """Rows, up to half of them from either class, weighted so that the mean is unbiased."""
        if size > 0.75 * self.n_rows:
            return None
        rng = np.random.default_rng(rng)
        rows, weights = [], []
        sides = [torch.nonzero(side)[:, 0] for side in (self.positive, ~self.positive)]
        for side, other in (sides, sides[::-1]):
            most = max(size // 2, size - other.numel())
            chosen = side[stratified(side.numel(), most, rng, side.device)]
            share = self._share[chosen]
            total = share.sum()
            rows.append(chosen)
            weights.append(share * self._share[side].sum() / torch.where(total > 0.0, total, 1.0))
        chosen = torch.cat(rows)
        part = TensorPointwise(self.positive[chosen], self.loss_name, weight=torch.cat(weights))
        return chosen, part

    def column_moments(
        self, design: TensorDesign, centred: bool, size: int | None = None
    ) -> tuple[Vector, bool]:
        """Means, units and stored shares of the columns over about `size` rows, or all; and
        whether all were used. The unit is the root mean square about the mean, or about zero.
        """
        drawn = None if size is None else self.sample(size, 2)
        if drawn is not None:
            return drawn[1].column_moments(design.rows(drawn[0]), centred)[0], False
        mean = design.adjoint(self._share)
        second = design.moments(self._share, mean if centred else None)[1]
        return _with_units(mean, second), True


class _AtBestConstant:
    """A mean over rows, minimised over a constant, at equal scores."""

    def __init__(self, points: TensorPointwise) -> None:
        self._points = points

    def gradient_at_zero(self) -> Tensor:
        """The gradient at equal scores."""
        return self._points.gradient_at(self._points.best_constant())


class PointsLinearization:
    """A mean over rows at given scores."""

    def __init__(self, loss: str, s: Tensor, positive: Tensor, share: Tensor) -> None:
        self._loss, self._share = loss, share
        self._margin = torch.where(positive, s, -s)
        self.value = float((share * MARGIN_LOSSES[loss](self._margin)).sum())
        slope = share * margin_slope(loss, self._margin)
        self.gradient = torch.where(positive, slope, -slope)

    def curvature_diagonal(self) -> Tensor:
        """The diagonal of F''(s), a diagonal matrix."""
        return self._share * margin_curvature(self._loss, self._margin)

    def curvature_product(self, u: Tensor) -> Tensor:
        """F''(s) u."""
        return self.curvature_diagonal() * u
