"""Rows of a fit as tensors: checks, class numbers, groups, thresholds."""

from copy import copy
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

__all__ = ["TensorRows", "check_matrix", "prevalence_thresholds", "read_rows", "to_arrays"]

Ranker = TypeVar("Ranker")

# Largest difference of equal scores, relative to the largest score, as on the host.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class TensorRows:
    """X, the labels in ascending order, each row's class number, its weight and its group."""

    X: Tensor
    classes: Tensor
    codes: Tensor
    weight: Tensor | None
    group: Tensor | None


def check_matrix(X: Tensor, n_columns: int | None = None) -> Tensor:
    """X in rows, in single or double precision; ValueError where it is no such matrix."""
    if X.layout != torch.strided:
        raise ValueError(
            f"X is a tensor with the layout {X.layout}; sparse rows are fitted as a SciPy CSR "
            "matrix."
        )
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must have rows and columns; got a tensor of shape {tuple(X.shape)}.")
    if n_columns is not None and X.shape[1] != n_columns:
        raise ValueError(
            f"X has {X.shape[1]} features, but the ranker was fitted with {n_columns}."
        )
    if X.dtype in (torch.float16, torch.bfloat16):
        X = X.to(torch.float32)
    elif X.dtype not in (torch.float32, torch.float64):
        X = X.to(torch.float64)
    if not bool(torch.isfinite(X.sum(dtype=torch.float64))):
        raise ValueError(
            "X contains NaN, infinity or numbers that overflow; replace or scale them."
        )
    return X.detach().contiguous()


def _column(values: Any, name: str, X: Tensor) -> Tensor:
    if isinstance(values, Tensor) and values.device != X.device:
        raise ValueError(
            f"{name} is a tensor on {values.device}, but X is on {X.device}; move both to one "
            "device."
        )
    try:
        column = torch.as_tensor(values, device=X.device).detach()
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers where X is a tensor: {error}") from error
    if column.shape != (X.shape[0],):
        raise ValueError(
            f"{name} must have one number for each of the {X.shape[0]} rows of X; got the shape "
            f"{tuple(column.shape)}."
        )
    return column


def _numbered(labels: Tensor) -> tuple[Tensor, Tensor]:
    """The labels in ascending order, and the number of each row's label.

    Two labels, the usual case, are found without a sort.
    """
    number = labels.to(torch.int8) if labels.dtype == torch.bool else labels
    low, high = torch.aminmax(number)
    is_high = number == high
    if bool(low < high) and bool((is_high | (number == low)).all()):
        return torch.stack([low, high]).to(labels.dtype), is_high.to(torch.int64)
    return torch.unique(labels, return_inverse=True)


def read_rows(X: Tensor, y: Any, sample_weight: Any = None, qid: Any = None) -> TensorRows:
    """The rows of a fit on the device of X."""
    X = check_matrix(X)
    labels = _column(y, "y", X)
    if labels.is_floating_point() and bool(torch.isnan(labels).any()):
        raise ValueError("y contains NaN; leave these rows out.")
    classes, codes = _numbered(labels)
    if classes.numel() < 2:
        raise ValueError(
            f"y has one class only, {classes.tolist()[0]!r}; ranking needs rows of at least two "
            "classes."
        )
    weight = None
    if sample_weight is not None:
        weight = _column(sample_weight, "sample_weight", X).to(torch.float64)
        low, total = torch.stack([weight.min(), weight.sum()]).tolist()
        if not (low >= 0.0 and 0.0 < total < torch.inf):
            raise ValueError(
                "sample_weight must be finite, not negative, and positive for some rows; the "
                f"smallest is {low:g} and the sum {total:g}."
            )
    group = None
    if qid is not None:
        group = torch.unique(_column(qid, "qid", X), return_inverse=True)[1]
    return TensorRows(X, classes, codes, weight, group)


def prevalence_thresholds(
    scores: Tensor, codes: Tensor, weight: Tensor | None, n_classes: int
) -> Tensor:
    """Thresholds that give each class as much weight as it has in y, midway between scores."""
    rounding = _ROUNDING * scores.abs().max()
    ascending, order = torch.sort(scores)
    if weight is None:
        # Few classes: additions of all rows to a few places would wait for each other on a GPU.
        counts = torch.stack([(codes == k).sum() for k in range(n_classes)])
        last = torch.cumsum(counts, 0)[:-1] - 1
    else:
        goals = torch.cumsum(torch.bincount(codes, weight, n_classes), 0)[:-1]
        kept = weight[order] > 0.0
        order, ascending = order[kept], ascending[kept]
        last = torch.searchsorted(torch.cumsum(weight[order], 0), goals - 1e-9 * goals[-1])
    below = ascending[last.clamp(0, ascending.numel() - 1)]
    next_ = torch.searchsorted(ascending, below + rounding, right=True)
    above = torch.cat([ascending, ascending.new_full((1,), torch.inf)])[next_]
    return torch.where(torch.isinf(above), below, 0.5 * (below + above))


def to_arrays(ranker: Ranker) -> Ranker:
    """A copy of a ranker that was fitted on tensors, with arrays on the host as attributes.

    It scores arrays, and can be written into a model file.

    Examples
    --------
    >>> import torch
    >>> from forerank import PairwiseRanker
    >>> X = torch.tensor([[1.0], [3.0], [2.0], [0.0]])
    >>> ranker = PairwiseRanker().fit(X, torch.tensor([0, 1, 1, 0]))
    >>> to_arrays(ranker).rank(X.numpy())
    array([1, 2, 0, 3])
    """
    out = copy(ranker)
    for name, value in vars(ranker).items():
        if isinstance(value, Tensor):
            setattr(out, name, value.cpu().numpy())
    return out
