"""A rank threshold and a probability of relevance from scores, without labels (donmez2009, section
2.2, Figure 2).

Scores order the rows but do not say where the relevant ones end. The threshold is put at the
largest gap between neighbouring scores, and a logistic function centred there gives the posterior

    P(y = +1 | x) = 1 / (1 + exp(-(f(x) - f(x_theta)) / scale)),

which sums to one over y = +1, -1 (the printed form does not). The scale is sqrt(3) / pi times the
standard deviation of the scores in the group: the logistic distribution then has the standard
deviation of the scores, and the posterior does not change when scores are shifted or multiplied.
With a scale of one, as printed, the small scores of a ranker trained on few labels all have a
posterior of about one half. Without calibration (eq. 8) the function is centred at a score of zero.

Grades 0 .. K have K thresholds, at the K largest gaps: the k-th of them from below parts the rows
of grade k and above from the others, with the posterior P(y >= k | x).
"""

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forerank._sorting import argsort, sort_by_group
from forerank._typing import Index, Vector
from forerank._validation import is_number
from forerank.estimators.scores import check_scores
from forerank.metrics.validation import number_groups

__all__ = ["RankThreshold", "rank_agreement", "rank_threshold", "relevance_posterior"]

# Scale of the logistic distribution with standard deviation one.
_LOGISTIC_SCALE = np.sqrt(3.0) / np.pi
# Scores above _LARGE_SCORE are multiplied by _REDUCTION, so that sums and differences of the
# largest doubles stay finite; powers of two, hence exact.
_LARGE_SCORE, _REDUCTION = 2.0**900, 2.0**-64


@dataclass(frozen=True)
class SortedGroups:
    """Rows sorted by group and ascending score. Group q has positions starts[q]:starts[q + 1], at
    least one. Equal scores share their mean rank.
    """

    rows: Index  # row number at each position
    scores: Vector
    starts: Index

    @property
    def sizes(self) -> Index:
        return np.diff(self.starts)

    def per_row(self, per_group: NDArray) -> NDArray:
        """Values of groups, repeated for each of their rows."""
        return np.repeat(per_group, self.sizes)

    def ties(self) -> tuple[Index, Index]:
        """Position of the first row of each run of equal scores, and each row's run number."""
        first = np.ones(self.rows.size, dtype=bool)
        first[1:] = self.scores[1:] != self.scores[:-1]
        first[self.starts[:-1]] = True
        return np.flatnonzero(first), np.cumsum(first) - 1

    def ranks(self) -> Vector:
        """Ranks within the group, from 1 for the lowest score."""
        first, run = self.ties()
        last = np.append(first[1:], self.rows.size) - 1
        return (0.5 * (first + last))[run] - self.per_row(self.starts[:-1]) + 1.0


def sort_groups(scores: Vector, group: Index | None, rows: Index) -> SortedGroups:
    """The given rows sorted; of equal scores, later rows first. Cost: N log N."""
    order = rows[::-1]
    order = order[argsort(scores[order], stable=True)]
    starts = np.array([0, rows.size])
    if group is not None:
        sizes = np.bincount(group[rows])
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        order = sort_by_group(order, group, bounds[:-1])
        starts = np.append(bounds[:-1][sizes > 0], rows.size)
    return SortedGroups(order, scores[order], starts if rows.size else starts[:1])


@dataclass(frozen=True)
class RankThreshold:
    """Estimated rank at which each group's relevant rows begin: one entry per group.

    Attributes
    ----------
    rank : array
        The number i of rows below the largest gap, counted from the lowest score; the threshold of
        eq. 7 is i + 1/2.
    score : array
        f(x_theta): the score of the i-th row.
    scale : array
        sqrt(3) / pi times the standard deviation of the group's scores (1 where they are all
        equal), or a given number.
    """

    rank: Index
    score: Vector
    scale: Vector


def thresholds_of(
    groups: SortedGroups, count: int = 1, scale: float | None = None
) -> list[RankThreshold]:
    """The thresholds of each group at its largest gaps, the largest first; see `rank_threshold`.

    A group with fewer gaps repeats the smallest of them. The scale is that of the scores, or the
    given one. Cost: `count` passes over the rows.
    """
    first, sizes = groups.starts[:-1], groups.sizes
    scores = groups.scores * _safe_factor(groups)
    gap = np.empty(scores.size)
    gap[:-1] = np.diff(scores)
    gap[groups.starts[1:] - 1] = -1.0  # the last row of a group has none above it
    scales = _score_scale(groups) if scale is None else np.full(sizes.size, float(scale))
    found = []
    for k in range(count):
        widest = np.flatnonzero(gap == groups.per_row(np.maximum.reduceat(gap, first)))
        number = np.searchsorted(groups.starts, widest, side="right")
        position = widest[np.unique(number, return_index=True)[1]]
        found.append(RankThreshold(position - first + 1, groups.scores[position], scales))
        gap[position[sizes - 1 > k + 1]] = -1.0
    return found


def _score_scale(groups: SortedGroups) -> Vector:
    """The scale of the logistic distribution with the standard deviation of a group's scores."""
    first, sizes = groups.starts[:-1], groups.sizes
    factor = _safe_factor(groups)
    scores = groups.scores * factor
    mean = np.add.reduceat(scores, first) / sizes
    # Divided by the largest deviation before squaring, against underflow and overflow.
    deviation = scores - groups.per_row(mean)
    largest = np.maximum.reduceat(np.abs(deviation), first)
    unit = np.where(largest > 0.0, largest, 1.0)
    variance = np.add.reduceat((deviation / groups.per_row(unit)) ** 2, first) / sizes
    return np.where(largest > 0.0, _LOGISTIC_SCALE * unit * np.sqrt(variance) / factor, 1.0)


def posterior_of(
    groups: SortedGroups, threshold: RankThreshold, *, calibrated: bool = True
) -> Vector:
    """P(y = +1 | x) of the row at each position: one half at the threshold, or at a score of 0."""
    factor = _safe_factor(groups)
    z = groups.scores * factor
    if calibrated:
        z = z - groups.per_row(threshold.score * factor)
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-z / groups.per_row(threshold.scale * factor)))


def _safe_factor(groups: SortedGroups) -> float:
    return _REDUCTION if np.abs(groups.scores).max() > _LARGE_SCORE else 1.0


def rank_threshold(scores: ArrayLike, *, groups: Any = None) -> RankThreshold:
    """The largest gap between neighbouring scores, in each group (donmez2009, Figure 2).

    Of equal gaps the lowest counts. Groups come in sorted order of their labels. Cost: N log N.

    Examples
    --------
    >>> found = rank_threshold([0.1, 0.2, 0.9, 0.15])
    >>> int(found.rank[0]), float(found.score[0])
    (3, 0.2)
    """
    return thresholds_of(_sort_scores(scores, groups))[0]


def relevance_posterior(
    scores: ArrayLike, *, groups: Any = None, scale: float | None = None, calibrated: bool = True
) -> Vector:
    """P(relevant) of each row from the scores alone, by the rank threshold of its group.

    Parameters
    ----------
    scores : array-like of shape (n_rows,)
    groups : array-like of shape (n_rows,), optional
        The group (query) of each row.
    scale : float, optional
        Unit of the scores in the logistic function: by default sqrt(3) / pi times their standard
        deviation in the group. The paper has 1.
    calibrated : bool, default=True
        Whether the posterior is one half at the threshold (donmez2009, Figure 2), or at a score of
        zero (eq. 8).

    Notes
    -----
    Cost: N log N.

    Examples
    --------
    >>> relevance_posterior([0.1, 0.2, 0.9, 0.15]).round(2)
    array([0.36, 0.5 , 0.98, 0.43])
    >>> relevance_posterior([0.1, 0.2, 0.9, 0.15], scale=1.0, calibrated=False).round(2)
    array([0.52, 0.55, 0.71, 0.54])
    """
    check_scale(scale)
    by_group = _sort_scores(scores, groups)
    posterior = np.empty(by_group.rows.size)
    threshold = thresholds_of(by_group, scale=scale)[0]
    posterior[by_group.rows] = posterior_of(by_group, threshold, calibrated=calibrated)
    return posterior


def check_scale(scale: Any) -> None:
    """ValueError where the scale is neither None nor a finite number above zero."""
    if scale is not None and not (is_number(scale) and isfinite(scale) and scale > 0.0):
        raise ValueError(f"scale must be None or a finite number above 0; got {scale!r}.")


def _sort_scores(scores: ArrayLike, groups: Any) -> SortedGroups:
    values = check_scores(scores)
    if not values.size:
        raise ValueError("scores is empty; a threshold needs at least one row.")
    return sort_groups(values, group_numbers(groups, values.size), np.arange(values.size))


def group_numbers(groups: Any, n_rows: int) -> Index | None:
    """Group numbers 0, 1, ... of the rows, in sorted order of the groups' labels; labels of several
    types, which have no order, are numbered in order of appearance.
    """
    if groups is None:
        return None
    labels = groups if isinstance(groups, list | tuple) else np.asarray(groups)
    if isinstance(labels, list | tuple) or labels.dtype == object:
        labels = list(labels)
        one_type = len({type(label) for label in labels}) == 1
        if one_type and isinstance(labels[0], str | int | float | np.generic):
            labels = np.asarray(labels)
    return number_groups(labels, n_rows)


def rank_agreement(before: Vector, after: Vector, group: Index | None, rows: Index) -> float:
    """Spearman's rank correlation of two scores of these rows, within groups.

    Constant scores have no correlation; they count as no agreement, 0.
    """
    ranks = []
    for values in (before, after):
        groups = sort_groups(values, group, rows)
        centred = np.empty(values.size)
        centred[groups.rows] = groups.ranks() - groups.per_row(0.5 * (groups.sizes + 1))
        ranks.append(centred[rows])
    norm = float(np.linalg.norm(ranks[0]) * np.linalg.norm(ranks[1]))
    return float(ranks[0] @ ranks[1]) / norm if norm > 0.0 else 0.0
