"""Fits on tensors: `PairwiseRanker` and `PointwiseRanker` on the device of X.

Objective, certificate and solver are those of arrays; products with X and sums over rows and pairs
are computed by `forerank.torch` on the device of X, and the solver sees numbers by column. Fitted
attributes are tensors on that device, following the array API convention of scikit-learn.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from forerank._typing import Vector
from forerank._validation import is_tensor, stacklevel_outside
from forerank.solvers import SolverResult
from forerank.solvers.path import Solve

__all__ = [
    "host_array",
    "on_device",
    "predicted_classes",
    "prepare_pairs",
    "prepare_points",
    "rows_on_host",
    "tensor_scores",
]


def rows_on_host(ranker: Any, X: Any) -> Any:
    """X, or its array where it is a tensor on the host; ValueError where it is on a device."""
    if not is_tensor(X):
        return X
    if str(X.device) != "cpu":
        raise ValueError(
            f"{type(ranker).__name__} needs rows on the host, but X is a tensor on {X.device}. Use "
            "X.cpu(), or PairwiseRanker or PointwiseRanker, which fit on the device of X."
        )
    return X.detach().numpy()


def host_array(values: Any) -> Vector:
    """An array of a fitted attribute, which may be a tensor."""
    return values if isinstance(values, np.ndarray) else values.cpu().numpy()


def _keep_on_device(ranker: Any, X: Any) -> None:
    """Turn the weights into tensors on the device of X."""
    for name in ("coef_", "intercept_"):
        setattr(ranker, name, on_device(getattr(ranker, name), X))


def on_device(values: Vector, X: Any) -> Any:
    """A float64 tensor of the numbers on the device of X."""
    import torch

    return torch.as_tensor(values, dtype=torch.float64, device=X.device)


def _read(ranker: Any, X: Any, y: Any, sample_weight: Any, qid: Any = None) -> Any:
    from forerank.torch.rows import read_rows

    if ranker.loss == "hinge":
        raise ValueError(
            "loss='hinge' cannot be fitted on tensors: its solver needs arrays. Use "
            "'squared_hinge' or 'logistic', or give X as an array."
        )
    n_before = vars(ranker).get("n_features_in_", X.shape[-1])
    if ranker.warm_start and hasattr(ranker, "coef_") and X.shape[-1] != n_before:
        raise ValueError(
            f"warm_start=True continues from {n_before} columns, but X has {X.shape[-1]}. Fit a "
            "new estimator, or set warm_start=False."
        )
    rows = read_rows(X, y, sample_weight, qid)
    ranker.n_features_in_ = X.shape[1]
    ranker.__dict__.pop("feature_names_in_", None)
    ranker.classes_ = rows.classes
    return rows


def _refuse_more_than_two(classes: Any, remedy: str) -> None:
    if classes.numel() > 2:
        raise ValueError(f"y has {classes.numel()} classes, but two were expected. {remedy}")


def prepare_pairs(ranker: Any, X: Any, y: Any, sample_weight: Any, qid: Any) -> Solve:
    """A function that fits a ranker on all pairs at its present alpha."""
    from forerank.torch.design import TensorDesign
    from forerank.torch.objectives import TensorAllPairs
    from forerank.torch.rows import prevalence_thresholds

    if ranker.graph not in (None, "order"):
        raise ValueError(
            f"graph={ranker.graph!r} cannot be fitted on tensors; use None (two classes) or "
            "'order' (grades), or give X as an array."
        )
    rows = _read(ranker, X, y, sample_weight, qid)
    if ranker.graph is None:
        _refuse_more_than_two(rows.classes, 'For grades, higher above lower, set graph="order".')
    objective = TensorAllPairs(rows.codes, ranker.loss, weight=rows.weight, group=rows.group)
    if not objective.total_weight > 0.0:
        raise ValueError(
            "There are no pairs: no two rows of different classes, of the same group and with a "
            "positive weight. Check y, qid and sample_weight."
        )
    _warn_unpaired(objective, rows.group)
    design, n_classes = TensorDesign(rows.X), rows.classes.numel()

    def solve(previous: Sequence[Vector] = ()) -> SolverResult:
        result = ranker._solve(objective, design, previous)
        _keep_on_device(ranker, rows.X)
        thresholds = prevalence_thresholds(result.scores, rows.codes, rows.weight, n_classes)
        ranker._ascending = np.arange(n_classes)
        ranker.intercept_ = -thresholds if n_classes == 2 else 0.0 * thresholds[:1]
        ranker.thresholds_ = 0.0 * thresholds if n_classes == 2 else thresholds
        penalty = 0.5 * ranker.alpha * float(result.w @ result.w)
        ranker._set_wmw_bound(max(result.objective - penalty, 0.0), ranker.loss)
        return result

    return solve


def _warn_unpaired(objective: Any, group: Any) -> None:
    """UserWarning with the number of groups without a pair."""
    if group is None:
        return
    n_groups = int(group.max()) + 1
    paired = int(group[objective.pairs.rows].unique().numel())
    if paired < n_groups:
        warnings.warn(
            f"{n_groups - paired:,} of {n_groups:,} qid groups have no pair of different classes; "
            "their rows are excluded from the fit.",
            UserWarning,
            stacklevel=stacklevel_outside(),
        )


def prepare_points(ranker: Any, X: Any, y: Any, sample_weight: Any) -> Solve:
    """A function that fits a ranker row by row at its present alpha."""
    from forerank.torch.design import TensorDesign
    from forerank.torch.objectives import TensorPointwise

    if ranker.loss == "exponential" and ranker.fit_intercept:
        raise ValueError(
            "loss='exponential' with an intercept cannot be fitted on tensors; set "
            "fit_intercept=False, use 'logistic', or give X as an array."
        )
    rows = _read(ranker, X, y, sample_weight)
    _refuse_more_than_two(rows.classes, "Merge classes into relevant and irrelevant.")
    weight = _class_weighted(ranker, rows)
    positive = rows.codes == 1
    if weight is not None and not (bool(weight[positive].any()) and bool(weight[~positive].any())):
        raise ValueError(
            "All rows of one class have sample_weight zero; ranking needs rows of two classes."
        )
    objective = TensorPointwise(positive, ranker.loss, weight=weight)
    design = TensorDesign(rows.X, intercept=bool(ranker.fit_intercept))

    def solve(previous: Sequence[Vector] = ()) -> SolverResult:
        result = ranker._solve(objective, design, previous)
        _keep_on_device(ranker, rows.X)
        return result

    return solve


def _class_weighted(ranker: Any, rows: Any) -> Any:
    """Sample weights times class weights, or None where there are neither."""
    from forerank.estimators.pointwise import class_weights

    if ranker.class_weight is None:
        return rows.weight
    total = rows.codes.bincount(weights=rows.weight, minlength=2).cpu().numpy().astype(float)
    # Two rows, one of each class, have the totals of all rows.
    per_class = class_weights(
        ranker.class_weight, rows.classes.cpu().numpy(), np.array([0, 1]), total
    )
    by_row = on_device(per_class, rows.X)[rows.codes]
    return by_row if rows.weight is None else rows.weight * by_row


def tensor_scores(ranker: Any, X: Any) -> Any:
    """Scores of the rows of a tensor, on its device."""
    from forerank.torch.design import TensorDesign
    from forerank.torch.rows import check_matrix

    name, device = type(ranker).__name__, ranker.coef_.device
    if not is_tensor(X):
        raise ValueError(
            f"{name} was fitted on tensors on {device}, but X is {type(X).__name__}. Give X as a "
            "tensor on that device, or use forerank.torch.to_arrays(ranker)."
        )
    if X.device != device:
        raise ValueError(
            f"{name} was fitted on tensors on {device}, but X is on {X.device}. Move X to that "
            "device."
        )
    X = check_matrix(X, ranker.n_features_in_)
    return TensorDesign(X).scores(host_array(ranker.coef_)[0]).add_(ranker.intercept_[0])


def predicted_classes(ranker: Any, scores: Any) -> Any:
    """The class of each score, by the thresholds of the ranker, or by its sign."""
    if not hasattr(ranker, "thresholds_"):
        return ranker.classes_[(scores > 0.0).long()]
    import torch

    return ranker.classes_[torch.searchsorted(ranker.thresholds_, scores)]
