"""What rankers share: reading the data, pairs from labels, thresholds, and the order of rows by
score.
"""

import warnings
from collections.abc import Callable, Iterable
from functools import update_wrapper
from types import MethodType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from forerank._text import counted
from forerank._typing import Matrix, Vector
from forerank._validation import check_weights, encode_classes, stacklevel_outside
from forerank.graphs import lowest_first, numbered_edges
from forerank.losses import Loss
from forerank.metrics.ranking import query_numbers
from forerank.objectives import AllPairs

__all__ = [
    "BaseRanker",
    "GraphRanker",
    "Matrix",
    "Vector",
    "available_or_remedy",
    "prevalence_thresholds",
    "refuse_more_than_two",
    "refuse_weightless_class",
    "warn_equal_scores",
    "warn_unconverged",
]


class available_or_remedy:
    """A method that is there where `remedy(self)` is None; else asking for it is an AttributeError
    with that text.

    As `sklearn.utils.metaestimators.available_if`, whose error has no room for a text of ours.
    """

    def __init__(self, remedy: Callable[[Any], str | None]) -> None:
        self._remedy = remedy

    def __call__(self, method: Callable[..., Any]) -> "available_or_remedy":
        self._method = method
        update_wrapper(self, method)  # type: ignore[arg-type]
        return self

    def __get__(self, ranker: Any, owner: Any = None) -> Any:
        if ranker is None:
            return self._method
        if (text := self._remedy(ranker)) is not None:
            raise AttributeError(text)
        return MethodType(self._method, ranker)


class BaseRanker(ClassifierMixin, BaseEstimator):
    """A classifier whose scores order the rows."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags

    def _read(self, X: Any, y: Any) -> tuple[Matrix, NDArray[np.integer]]:
        """X without a copy, and each row's class number."""
        before = {
            name: value
            for name, value in vars(self).items()
            if name in ("n_features_in_", "feature_names_in_")
        }
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            accept_large_sparse=True,
        )
        if getattr(self, "warm_start", False) and X.shape[1] != before.get(
            "n_features_in_", X.shape[1]
        ):
            self.__dict__.update(before)  # the fitted ranker stays as it was
            raise ValueError(
                f"warm_start=True continues from {self.n_features_in_} columns, but X has {X.shape[1]}. Fit a new "
                "estimator, or set warm_start=False."
            )
        self.classes_, codes = encode_classes(y)
        if self.classes_.size < 2:
            raise ValueError(
                f"y has one class only, {self.classes_.tolist()[0]!r}; ranking needs rows of at least two classes."
            )
        return X, codes

    def decision_function(self, X: ArrayLike) -> Vector:
        """Scores: the higher, the further ahead."""
        raise NotImplementedError

    def predict(self, X: ArrayLike) -> NDArray:
        """The class of each row: the higher one where the score is positive."""
        check_is_fitted(self)
        return self.classes_[(self.decision_function(X) > 0.0).astype(int)]

    def _remedy(self) -> str | None:
        """How to have probabilities; None where they are there."""
        name = type(self).__name__
        return (
            f"{name} gives scores, not probabilities. Calibrate it with sklearn.calibration, "
            f"CalibratedClassifierCV({name}(...), ensemble=False), or use Ranker(calibrate=True)."
        )

    @available_or_remedy(lambda ranker: ranker._remedy())
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the classes, of rankers that give them."""
        raise NotImplementedError

    def rank(self, X: ArrayLike) -> NDArray[np.intp]:
        """Row numbers from the first to the last place; rows with equal scores keep their order.

        Examples
        --------
        >>> import numpy as np
        >>> from forerank import PairwiseRanker
        >>> X = np.array([[1.0], [3.0], [2.0], [0.0]])
        >>> PairwiseRanker().fit(X, [0, 1, 1, 0]).rank(X)
        array([1, 2, 0, 3])
        """
        return np.argsort(-self.decision_function(X), kind="stable")


class GraphRanker(BaseRanker):
    """A ranker fitted on all pairs of a preference graph over the classes, within groups where
    there are any.
    """

    graph: str | Iterable[tuple] | None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.graph is not None
        return tags

    def _pairs(
        self,
        codes: NDArray[np.integer],
        loss: str | Loss,
        sample_weight: ArrayLike | None,
        qid: ArrayLike | None,
    ) -> tuple[AllPairs, Vector | None]:
        """The objective over all pairs of the graph, and the weights as doubles."""
        weight = check_weights(sample_weight, codes.size)
        group = None if qid is None else query_numbers(qid, codes.size)
        objective = AllPairs(codes, loss, weight=weight, group=group, edges=self._edges())
        self._check_pairs(objective, codes, weight, group)
        return objective, weight

    def _edges(self) -> list[tuple[int, int]] | None:
        if self.graph is None:
            refuse_more_than_two(
                self.classes_,
                'For graded labels, higher ahead of lower, set graph="order"; or give edges.',
            )
            return None
        return numbered_edges(self.graph, self.classes_)

    def _check_pairs(
        self,
        objective: AllPairs,
        codes: NDArray[np.integer],
        weight: Vector | None,
        group: NDArray[np.integer] | None,
    ) -> None:
        """No pairs is an error; rows of groups without pairs are left out with a warning."""
        if objective.blocks.n_blocks == 0:
            if self.classes_.size == 2:
                refuse_weightless_class(weight, codes == 1, self.classes_)
            left = self.classes_[
                np.unique(codes if weight is None else codes[weight > 0.0])
            ].tolist()
            if len(left) == 1:
                raise ValueError(
                    f"Only rows of class {left[0]!r} have a positive sample_weight; ranking needs rows of at least two "
                    "classes."
                )
            remedy = (
                "Give rows of two classes that it joins a positive sample_weight, or add edges."
            )
            if group is not None:
                remedy = "Check qid, or leave it out to compare all rows."
            raise ValueError(
                "There is no pair to learn from: no two rows"
                + (" of the same group of qid" if group is not None else "")
                + f" belong to classes that should be ordered (classes with rows: {left}). {remedy}"
            )
        if group is not None:
            paired = np.zeros(int(group.max()) + 1, dtype=bool)
            paired[group[objective.blocks.rows]] = True
            left_out = ~paired[group]
            if left_out.any():
                idle, rows = int(np.count_nonzero(~paired)), int(np.count_nonzero(left_out))
                warnings.warn(
                    f"{idle:,} of {counted(paired.size, 'qid group')} {'has' if idle == 1 else 'have'} no pair of "
                    f"different classes; {'its' if idle == 1 else 'their'} {counted(rows, 'row')} "
                    f"{'is' if rows == 1 else 'are'} left out of the fit.",
                    UserWarning,
                    stacklevel=stacklevel_outside(),
                )

    def predict(self, X: ArrayLike) -> NDArray:
        """The class of each row, from the thresholds at which the training rows have their true
        class sizes.
        """
        check_is_fitted(self)
        # side="left": a score on a threshold falls to the lower class, as decision_function > 0 has
        # it.
        place = np.searchsorted(self.thresholds_, self.decision_function(X), side="left")
        return self.classes_[self._ascending[place]]

    def _set_thresholds(
        self, scores: Vector, codes: NDArray[np.integer], weight: Vector | None
    ) -> None:
        """Set intercept and thresholds from the scores without intercept: each class is left its
        weight in training.

        With two classes the threshold is zero. Classes are taken from the lowest to the highest
        place: by label, or by the edges of the graph, and where these leave it open by their mean
        scores.
        """
        n_classes = self.classes_.size
        self._ascending = np.arange(n_classes)
        if self.graph not in (None, "order", "chain", "bipartite"):
            totals = np.bincount(codes, weights=weight, minlength=n_classes)
            sums = np.bincount(
                codes, weights=scores if weight is None else weight * scores, minlength=n_classes
            )
            means = np.divide(sums, totals, out=np.zeros(n_classes), where=totals > 0.0)
            self._ascending = lowest_first(self._edges() or [], means)
        place = np.argsort(self._ascending)[codes]
        self.intercept_ = np.zeros(1)
        self.thresholds_ = prevalence_thresholds(scores, place, weight, n_classes)
        if n_classes == 2:
            self.intercept_ = -self.thresholds_
            self.thresholds_ = np.zeros(1)


def warn_unconverged(ranker: Any, certificate: str, max_iter: int | None = None) -> None:
    """Say how far a fit came that ran out of steps, or of digits. `max_iter` is for rankers that
    choose it.
    """
    allowed = ranker.max_iter if max_iter is None else max_iter
    if ranker.n_iter_ < allowed:
        why, remedy = (
            "no step improves on it in the precision of X",
            "Raise alpha, scale the columns of X",
        )
    else:
        why, remedy = f"max_iter={allowed}", "Raise max_iter or alpha, scale the columns of X"
    warnings.warn(
        f"{type(ranker).__name__} stopped after {counted(ranker.n_iter_, 'step')} ({why}) at a {certificate} of "
        f"{ranker.optimality_:.2e}, above tol={ranker.tol:g}. {remedy}, or accept the accuracy by raising tol.",
        ConvergenceWarning,
        stacklevel=stacklevel_outside(),
    )


def warn_equal_scores(ranker: Any) -> None:
    """Say that all rows have the same score."""
    warnings.warn(
        f"{type(ranker).__name__} found nothing to learn: the start, where all rows have the same score, is the "
        "optimum. No column differs between the rows that are compared, or the penalty is too strong for what differs. "
        "Add columns, or lower alpha.",
        UserWarning,
        stacklevel=stacklevel_outside(),
    )


def refuse_more_than_two(
    classes: NDArray, remedy: str = "Merge classes into relevant and irrelevant."
) -> None:
    if classes.size > 2:
        shown = ", ".join(repr(c) for c in classes[:5].tolist())
        raise ValueError(
            f"Only binary classification is supported. The type of the target is multiclass: y has {classes.size} "
            f"classes ({shown}{', ...' if classes.size > 5 else ''}). {remedy}"
        )


def refuse_weightless_class(
    weight: Vector | None, positive: NDArray[np.bool_], classes: NDArray
) -> None:
    if weight is None:
        return
    labels = classes.tolist()
    for side, label in ((positive, labels[-1]), (~positive, labels[0])):
        if not weight[side].any():
            raise ValueError(
                f"All rows of class {label!r} have sample_weight zero, which leaves one class only; ranking needs rows "
                "of at least two classes."
            )


def prevalence_thresholds(
    scores: Vector, codes: NDArray[np.integer], weight: Vector | None, n_classes: int
) -> Vector:
    """Midway between the neighbouring different scores that leave each class as much weight as it
    has in y.
    """
    goals = np.cumsum(np.bincount(codes, weights=weight, minlength=n_classes))[:-1]
    if weight is None and n_classes == 2:
        # The last score under the cut and the next above it, without a sort.
        below = np.partition(scores, goals - 1)[goals - 1]
        above = np.array([np.min(scores, where=scores > score, initial=np.inf) for score in below])
    else:
        order = np.argsort(scores)
        if weight is not None:
            order = order[weight[order] > 0.0]
        ascending = scores[order]
        cumulated = np.arange(1.0, order.size + 1.0) if weight is None else np.cumsum(weight[order])
        # The row that holds the last unit of weight under the cut, as if rows were repeated.
        last = np.searchsorted(cumulated, goals - 1e-9 * goals[-1], side="left")
        below = ascending[np.minimum(last, order.size - 1)]
        above = np.append(ascending, np.inf)[np.searchsorted(ascending, below, side="right")]
    return np.where(np.isinf(above), below, 0.5 * (below + np.where(np.isinf(above), 0.0, above)))
