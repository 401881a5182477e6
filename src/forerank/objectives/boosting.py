"""Objectives for gradient boosting: the gradient and the diagonal of the curvature by row.

Boosted trees add -gradient / (curvature + penalty) to the scores of a leaf, so that the scale of
the objective matters, which a mean over rows or pairs does not have. The objectives are scaled to
that of a sum over rows. Over rows: the mean times the number (weight) of rows. Over pairs, and at
the top: the mean times the harmonic mean of the numbers of the two sides of each block of pairs,
summed over the blocks. A row of the rarer side then has a gradient between -2 and 2 under the
logistic loss, and a row of the other side one that is smaller by the ratio of the numbers: a leaf
of rows of the common side alone says as little as it does under the logistic loss on rows.

`for_lightgbm` and `for_xgboost` give the same to people who call these libraries themselves.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forerank._typing import Mask, Vector
from forerank._validation import check_choice, check_weights, encode_classes, refuse_one_class
from forerank.graphs import numbered_edges
from forerank.losses import get_loss
from forerank.objectives.allpairs import AllPairs
from forerank.objectives.smooth_top import SmoothTop

__all__ = [
    "BOOSTING_LOSSES",
    "PAIR_LOSSES",
    "ROW_LOSSES",
    "for_lightgbm",
    "for_xgboost",
    "gradient_of",
    "pair_gradient",
    "row_gradient",
    "top_gradient",
]

# Losses on single rows, and over pairs with the margin loss of each.
ROW_LOSSES = ("logistic", "exponential")
PAIR_LOSSES = {
    "pairwise-logistic": "logistic",
    "pairwise-squared-hinge": "squared_hinge",
    "pairwise-exponential": "exponential",
}
BOOSTING_LOSSES = (*ROW_LOSSES, *PAIR_LOSSES, "top")

# Gradient and diagonal of the curvature at given scores.
SecondOrder = Callable[[Vector], tuple[Vector, Vector]]


def row_gradient(positive: Mask, loss: str, weight: Vector | None = None) -> SecondOrder:
    """Gradient and curvature of a loss on single rows, a sum over rows."""
    own, margin_loss = 1.0 if weight is None else weight, get_loss(loss)

    def at(s: Vector) -> tuple[Vector, Vector]:
        margin = np.where(positive, s, -s)
        slope = own * margin_loss.slope(margin)
        return np.where(positive, slope, -slope), own * margin_loss.curvature(margin)

    return at


def pair_gradient(objective: AllPairs) -> SecondOrder:
    """Gradient and curvature of a loss over all pairs, scaled as this module says."""
    lower, upper = objective.blocks.half_weight.T
    return _scaled(objective, float((2.0 * lower * upper / (lower + upper)).sum()))


def top_gradient(objective: SmoothTop, weight: Vector | None = None) -> SecondOrder:
    """Gradient and curvature of the loss at the top, scaled as this module says."""
    own = np.ones(objective.n_rows) if weight is None else weight
    upper = np.add.reduceat(own[objective.positives], objective.positive_starts)
    lower = np.add.reduceat(own[objective.negatives], objective.negative_starts)
    return _scaled(objective, float((2.0 * lower * upper / (lower + upper)).sum()))


def _scaled(objective: Any, scale: float) -> SecondOrder:
    def at(s: Vector) -> tuple[Vector, Vector]:
        here = objective.at(s)
        return scale * here.gradient, scale * here.curvature_diagonal()

    return at


# --- For people who call the libraries themselves ---


def for_lightgbm(
    loss: str,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    graph: str | Iterable[tuple] | None = None,
) -> Callable[[Vector, Any], tuple[Vector, Vector]]:
    """An objective for LightGBM: ``lightgbm.train({"objective": for_lightgbm(loss, y)}, data)``.

    Weights and groups are those given here, not those of the LightGBM data set.

    Parameters
    ----------
    loss : str
        "logistic" or "exponential" on rows; "pairwise-logistic", "pairwise-squared-hinge" or
        "pairwise-exponential" over all pairs; "top".
    y : array-like of shape (n_samples,)
        Labels of the training rows, in their order: two classes, or grades with `graph`.
    sample_weight : array-like, optional
        Weights of the rows; only their ratios count.
    qid : array-like, optional
        The group of each row; pairs are formed within groups.
    graph : str or iterable of (preferred, other), optional
        As in `PairwiseRanker`, for the losses over pairs.

    Returns
    -------
    callable
        From scores, and the data set, which is not used, to gradient and diagonal of the curvature.

    Examples
    --------
    >>> import numpy as np
    >>> objective = for_lightgbm("pairwise-logistic", [1, 0, 0])
    >>> gradient, curvature = objective(np.zeros(3), None)
    >>> np.round(gradient, 2).tolist()
    [-0.67, 0.33, 0.33]
    """
    y = np.asarray(y)
    gradient = _gradient_for(loss, y, sample_weight, qid, graph)

    def at(scores: Vector, data: Any) -> tuple[Vector, Vector]:
        given = np.asarray(scores, dtype=np.float64)
        if given.size != y.size:
            raise ValueError(
                f"The objective has {y.size:,} labels, and the data set {given.size:,} rows. Give "
                "y of all training rows, in their order."
            )
        return gradient(given)

    return at


def for_xgboost(
    loss: str,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    graph: str | Iterable[tuple] | None = None,
) -> Callable[[Vector, Any], tuple[Vector, Vector]]:
    """An objective for XGBoost: ``xgboost.train(params, data, obj=for_xgboost(loss, y))``.

    Parameters as for `for_lightgbm`. Set "base_score" to 0 for the losses over pairs.
    """
    return for_lightgbm(loss, y, sample_weight=sample_weight, qid=qid, graph=graph)


def _gradient_for(loss: str, y: Any, sample_weight: Any, qid: Any, graph: Any) -> SecondOrder:
    check_choice("loss", loss, BOOSTING_LOSSES)
    classes, codes = encode_classes(y)
    refuse_one_class(classes)
    if classes.size > 2 and graph is None:
        raise ValueError(
            f"y has {classes.size} classes, and loss={loss!r} orders two; for grades choose a loss "
            'over pairs and graph="order".'
        )
    weight = check_weights(sample_weight, codes.size)
    group = None if qid is None else np.unique(np.asarray(qid), return_inverse=True)[1]
    if group is not None and group.shape != codes.shape:
        raise ValueError(
            f"qid has {group.size:,} entries for {codes.size:,} labels; give one for each row."
        )
    return gradient_of(loss, codes, weight, group, _edges(loss, graph, classes))


def _edges(loss: str, graph: Any, classes: NDArray) -> list[tuple[int, int]] | None:
    if graph is not None and loss not in PAIR_LOSSES:
        raise ValueError(f"graph is for losses over pairs; loss={loss!r} has no pairs.")
    return None if graph is None else numbered_edges(graph, classes)


def gradient_of(
    loss: str,
    codes: NDArray[np.integer],
    weight: Vector | None,
    group: NDArray[np.integer] | None,
    edges: list[tuple[int, int]] | None = None,
) -> SecondOrder:
    """Gradient and curvature of a loss, by its name, for class numbers, weights and groups."""
    if weight is not None:
        weight = weight / weight[weight > 0.0].mean()
    if loss in ROW_LOSSES:
        return row_gradient(codes == 1, loss, weight)
    if loss == "top":
        return top_gradient(SmoothTop(codes == 1, weight=weight, group=group), weight)
    pairs = AllPairs(codes, PAIR_LOSSES[loss], weight=weight, group=group, edges=edges)
    if pairs.blocks.n_blocks == 0:
        raise ValueError("There are no pairs: no two rows of a group are to be ordered.")
    return pair_gradient(pairs)
