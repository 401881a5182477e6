"""Ranking losses as functions of scores and labels.

Scores of single or half precision are summed in double precision, and the loss is returned in the
precision of the scores, at least single. Where a batch has no pair (one class only, or no two
classes within a group), the loss is zero with a zero gradient: a training loop goes on.
"""

from typing import Any

import torch
from torch import Tensor

from forerank._validation import is_integer, is_number
from forerank.torch.blocks import TensorPairs, check_rows, make_pairs
from forerank.torch.margins import MARGIN_LOSSES
from forerank.torch.pair_sums import LOSSES, kernel_sums, make_sums, total

__all__ = ["check_at", "check_gamma", "check_loss", "check_reduction", "combined_loss"]
__all__ += ["loss_of_pairs", "pairwise_loss", "top_loss"]

_REDUCTIONS = ("mean", "sum", "none")


def check_loss(loss: str) -> str:
    """The name of a loss; ValueError where it is not known."""
    if loss not in LOSSES:
        known = ", ".join(map(repr, LOSSES))
        raise ValueError(f"loss={loss!r} is not known; choose one of {known}.")
    return loss


def check_reduction(reduction: str) -> str:
    """The reduction; ValueError where it is not known."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"reduction={reduction!r}: choose one of 'mean', 'sum' and 'none'.")
    return reduction


def check_at(at: Any) -> Any:
    """The depth of the top; ValueError where it is not "max", a number or a share."""
    is_share = is_number(at) and not is_integer(at) and 0.0 < at < 1.0
    if at == "max" or is_share or (is_integer(at) and at >= 1):
        return at
    raise ValueError(
        "at must be 'max', a number of negatives (an integer from 1 on) or a share of them "
        f"strictly between 0 and 1; got {at!r}."
    )


def check_gamma(gamma: Any) -> float:
    """The share of pairs; ValueError where it is not a number from 0 to 1."""
    if not is_number(gamma) or not 0.0 <= gamma <= 1.0:
        raise ValueError(
            f"gamma must be a number from 0 (points only) to 1 (pairs only), not {gamma!r}."
        )
    return float(gamma)


def _in_precision_of(value: Tensor, scores: Tensor) -> Tensor:
    double = scores.dtype == torch.float64
    return value if double else value.to(torch.float32)


# What the host decides (sizes of grids and blocks) is not traced: a compiled model calls it.
@torch.compiler.disable
def pairwise_loss(
    scores: Tensor,
    y: Any,
    weight: Any = None,
    group: Any = None,
    *,
    loss: str = "logistic",
    reduction: str = "mean",
) -> Tensor:
    """The loss over all pairs of rows with different labels, the higher label ranked above.

    ``sum_ij w_i w_j l(s_i - s_j) / sum_ij w_i w_j`` over all pairs (i, j) with y_i > y_j, within
    groups. No pair is visited: cost N log N (hinges) or N (others), memory linear in N.

    Parameters
    ----------
    scores : floating point tensor of shape (n,) or (n, 1)
    y : tensor of shape (n,)
        Labels: two classes, or grades; higher is better.
    weight : tensor of shape (n,), optional
        Non-negative; a pair weighs the product of its two.
    group : integer tensor of shape (n,), optional
        Pairs are formed within a group only.
    loss : {"logistic", "squared_hinge", "hinge", "exponential", "squared"}
    reduction : {"mean", "sum", "none"}
        "mean" divides by the weight of all pairs. "none" gives each row half of the weighted losses
        of its pairs, so that the rows add up to "sum".

    Returns
    -------
    tensor
        Of the scores' precision, at least single. Zero, with a zero gradient, without pairs.

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([2.0, 0.5, 1.0, -1.0])
    >>> pairwise_loss(scores, torch.tensor([1, 1, 0, 0]), loss="squared_hinge")
    tensor(0.5625)
    """
    check_loss(loss)
    check_reduction(reduction)
    s, y, weight, group = check_rows(scores, y, weight, group)
    return _in_precision_of(loss_of_pairs(s, make_pairs(y, weight, group), loss, reduction), scores)


def loss_of_pairs(s: Tensor, pairs: TensorPairs, loss: str, reduction: str = "mean") -> Tensor:
    """The loss of given pairs at scores s in double precision."""
    t, w = pairs.entries(s), pairs.weight
    sums = make_sums(loss, pairs, t.detach())
    if reduction == "none":
        return pairs.add_to_rows(0.5 * w * kernel_sums(t, w, pairs, sums, 0))
    value = total(t, w, pairs, sums)
    return value if reduction == "sum" else _mean(value, pairs.total_weight())


def _mean(value: Tensor, weight: Tensor) -> Tensor:
    """Value / weight, and zero where there is no weight."""
    return value / torch.where(weight > 0.0, weight, 1.0)


@torch.compiler.disable
def top_loss(
    scores: Tensor,
    y: Any,
    weight: Any = None,
    group: Any = None,
    *,
    loss: str = "squared_hinge",
    at: str | int | float = "max",
    reduction: str = "mean",
) -> Tensor:
    """The loss of the positives against the highest negatives.

    ``sum_i w_i l(s_i - T) / sum_i w_i`` over positives i, where T is the largest score of a
    negative (at="max"; TopPush of li2014 with the squared hinge), the mean of the `at` largest, or
    of the upper share `at`; with groups, the negatives of the positive's own group. A negative of
    weight w counts as w of them; where there are fewer than `at`, T is the mean of all. Among equal
    scores the first rows carry the weight; any choice is a subgradient. Cost: one sort.

    Parameters
    ----------
    scores, weight, group
        As in `pairwise_loss`.
    y : tensor of shape (n,)
        Labels above zero are positive.
    loss : {"squared_hinge", "logistic", "hinge", "exponential", "squared"}
    at : "max", int or float
    reduction : {"mean", "sum", "none"}
        "none" gives each row its weighted loss, zero for negatives.

    Returns
    -------
    tensor
        Zero, with a zero gradient, where no positive has a negative to be compared with.

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([2.0, 0.5, 1.0, -1.0])
    >>> top_loss(scores, torch.tensor([1, 1, 0, 0]))
    tensor(1.1250)
    """
    check_loss(loss)
    check_reduction(reduction)
    check_at(at)
    s, y, weight, group = check_rows(scores, y, weight, group)
    positive = y > 0
    w = torch.ones_like(s) if weight is None else weight
    groups = _Groups(group)
    threshold, has_negative = _thresholds(s, w * ~positive, groups, at)
    # A margin of one for rows that do not count: no loss of theirs is infinite.
    counts = positive & groups.by_row(has_negative) & (w > 0.0)
    margin = torch.where(counts, s - groups.by_row(threshold), 1.0)
    losses = torch.where(counts, w * MARGIN_LOSSES[loss](margin), 0.0)
    if reduction == "mean":
        losses = _mean(losses.sum(), (w * counts).sum())
    elif reduction == "sum":
        losses = losses.sum()
    return _in_precision_of(losses, scores)


class _Groups:
    """Sums over groups and their numbers by row; one group, the usual case, has plain sums.

    On a GPU, additions of all rows to one place would wait for each other.
    """

    def __init__(self, group: Tensor | None) -> None:
        self.number: Tensor | None = None
        if group is not None:
            labels, self.number = torch.unique(group, return_inverse=True)
            self._n_groups = labels.numel()

    def sums(self, by_row: Tensor) -> Tensor:
        """The sum of each group."""
        if self.number is None:
            return by_row.sum().reshape(1)
        return by_row.new_zeros(self._n_groups).index_add(0, self.number, by_row)

    def by_row(self, by_group: Tensor) -> Tensor:
        """The number of each row's group."""
        return by_group if self.number is None else by_group[self.number]


def _thresholds(
    s: Tensor, of_negatives: Tensor, groups: _Groups, at: str | int | float
) -> tuple[Tensor, Tensor]:
    """The threshold T of each group, and whether it has one; `of_negatives` has their weights."""
    weight = groups.sums(of_negatives)
    # The largest weight of each negative in the mean.
    if at == "max":
        caps = (of_negatives > 0.0).to(s.dtype)
    else:
        depth = weight.clamp(max=float(at)) if is_integer(at) else float(at) * weight
        caps = of_negatives / groups.by_row(torch.where(depth > 0.0, depth, 1.0))
    with torch.no_grad():
        order = torch.argsort(torch.where(of_negatives > 0.0, -s, torch.inf), stable=True)
        if groups.number is not None:
            order = order[torch.argsort(groups.number[order], stable=True)]
        own = caps.clamp(max=1.0)
        cumulated = torch.cumsum(own[order], 0)
        # What the groups before add up to.
        per_group = groups.sums(own)
        before = groups.by_row(torch.cumsum(per_group, 0) - per_group)
        before = before if groups.number is None else before[order]
        filled = (cumulated - before).clamp(max=1.0)
        previous = (cumulated - before - own[order]).clamp(0.0, 1.0)
        share = torch.empty_like(s)
        share[order] = (filled - previous).clamp(min=0.0)
    products = torch.where(of_negatives > 0.0, share * s, 0.0)
    return groups.sums(products), weight > 0.0


@torch.compiler.disable
def combined_loss(
    scores: Tensor,
    y: Any,
    weight: Any = None,
    group: Any = None,
    *,
    gamma: float = 0.5,
    loss: str = "logistic",
    reduction: str = "mean",
) -> Tensor:
    """Pairs and points together: gamma times the loss over pairs plus 1 - gamma times that of rows.

    The loss of a row is ``l(y_i s_i)`` with y_i in {-1, +1}: with the logistic loss, binary
    cross-entropy with logits. Pairs keep the order, points the level of the scores, so that they
    can be read as log-odds (shen2013, eq. 5).

    Parameters
    ----------
    scores, weight, group, loss
        As in `pairwise_loss`; groups restrict pairs alone.
    y : tensor of shape (n,)
        Labels above zero are positive.
    gamma : float from 0 to 1
        The share of the pairs.
    reduction : {"mean", "sum", "none"}
        Each of the two losses is reduced in this way.

    Examples
    --------
    >>> import torch
    >>> scores = torch.tensor([2.0, 0.5, 1.0, -1.0])
    >>> combined_loss(scores, torch.tensor([1, 1, 0, 0]), loss="squared_hinge")
    tensor(0.8125)
    """
    check_loss(loss)
    check_reduction(reduction)
    gamma = check_gamma(gamma)
    s, y, weight, group = check_rows(scores, y, weight, group)
    positive = y > 0
    pairs = make_pairs(positive, weight, group)
    w = torch.ones_like(s) if weight is None else weight
    points = w * MARGIN_LOSSES[loss](torch.where(positive, s, -s))
    if reduction == "mean":
        points = _mean(points.sum(), w.sum())
    elif reduction == "sum":
        points = points.sum()
    of_pairs = loss_of_pairs(s, pairs, loss, reduction)
    return _in_precision_of(gamma * of_pairs + (1.0 - gamma) * points, scores)
