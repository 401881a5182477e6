"""From scores to a rank threshold and a probability of relevance, without labels (donmez2009,
section 2.2, Figure 2).

A ranker's scores say who comes first, not where the relevant end. The threshold is put at the
largest gap between neighbouring scores, and a logistic function centred there gives the posterior

    P(y = +1 | x) = 1 / (1 + exp(-(f(x) - f(x_theta)) / scale)),

which sums to one over y = +1, -1 (the printed form does not). The scale is sqrt(3) / pi times the
standard deviation of the scores in the group, which makes the logistic curve as wide as the scores
are spread. Scores of a ranker trained on few labels are tiny against a unit scale: every posterior
would be one half, and what is chosen by it would be an end of the list. With it the posterior does
not change when scores are shifted or multiplied.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forerank._sorting import argsort, sort_by_group
from forerank._typing import Index, Vector
from forerank.estimators.scores import check_scores
from forerank.metrics.ranking import query_numbers

__all__ = ["RankThreshold", "rank_threshold", "relevance_posterior"]

# The scale of the logistic distribution whose standard deviation is one.
_LOGISTIC_SCALE = np.sqrt(3.0) / np.pi


@dataclass(frozen=True)
class SortedGroups:
    """Rows by group and ascending score; a group is a contiguous run. Equal scores share their mean
    rank.
    """

    rows: Index  # where each place stands in the input
    scores: Vector
    starts: Index  # group q owns the places starts[q]:starts[q + 1], never none

    @property
    def sizes(self) -> Index:
        return np.diff(self.starts)

    def spread(self, per_group: NDArray) -> NDArray:
        """A value per group as a value per place."""
        return np.repeat(per_group, self.sizes)

    def blocks(self) -> tuple[Index, Index]:
        """The first place of every block of equal scores, and the number of the block of each
        place.
        """
        opens = np.ones(self.rows.size, dtype=bool)
        opens[1:] = self.scores[1:] != self.scores[:-1]
        opens[self.starts[:-1]] = True
        return np.flatnonzero(opens), np.cumsum(opens) - 1

    def ranks(self) -> Vector:
        """1 for the lowest score of a group, its size for the highest."""
        first, block = self.blocks()
        last = np.append(first[1:], self.rows.size) - 1
        return (0.5 * (first + last))[block] - self.spread(self.starts[:-1]) + 1.0


def sort_groups(scores: Vector, group: Index | None, rows: Index) -> SortedGroups:
    """Sort the given rows; from the end, the earlier of rows with equal scores comes first. Cost: N
    log N.
    """
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
    """Where each group's relevant rows are thought to begin: one entry per group.

    Attributes
    ----------
    rank : array
        The number i of rows below the largest gap, counted from the lowest score; the threshold of
        eq. 7 is i + 1/2.
    score : array
        f(x_theta): the score of the i-th row.
    scale : array
        sqrt(3) / pi times the standard deviation of the group's scores; 1 where they are all equal.
    """

    rank: Index
    score: Vector
    scale: Vector


def threshold_of(groups: SortedGroups) -> RankThreshold:
    starts, sizes = groups.starts, groups.sizes
    factor = _safe_factor(groups)
    scores = groups.scores * factor
    gap = np.empty(scores.size)
    gap[:-1] = np.diff(scores)
    gap[starts[1:] - 1] = -1.0  # the last row of a group has none above it
    widest = np.maximum.reduceat(gap, starts[:-1])
    place = np.flatnonzero(gap == groups.spread(widest))
    _, first = np.unique(np.searchsorted(starts, place, side="right"), return_index=True)
    at = place[first]
    mean = np.add.reduceat(scores, starts[:-1]) / sizes
    # Divided by the largest deviation before squaring: scores of 1e-200 or 1e200 are scores too.
    deviation = scores - groups.spread(mean)
    largest = np.maximum.reduceat(np.abs(deviation), starts[:-1])
    unit = np.where(largest > 0.0, largest, 1.0)
    scale = (
        _LOGISTIC_SCALE
        * unit
        * np.sqrt(np.add.reduceat((deviation / groups.spread(unit)) ** 2, starts[:-1]) / sizes)
    )
    return RankThreshold(
        at - starts[:-1] + 1, groups.scores[at], np.where(largest > 0.0, scale / factor, 1.0)
    )


def posterior_of(groups: SortedGroups, threshold: RankThreshold) -> Vector:
    """P(y = +1 | x) of each place."""
    factor = _safe_factor(groups)
    z = groups.scores * factor - groups.spread(threshold.score * factor)
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-z / groups.spread(threshold.scale * factor)))


def _safe_factor(groups: SortedGroups) -> float:
    """A power of two that keeps sums and differences of the largest doubles finite; mostly one."""
    return 2.0**-64 if np.abs(groups.scores).max() > 2.0**900 else 1.0


def rank_threshold(scores: ArrayLike, *, groups: Any = None) -> RankThreshold:
    """The largest gap between neighbouring scores, in each group (donmez2009, Figure 2). Cost: N
    log N.

    Of equal gaps the lowest counts. Groups come in sorted order of their labels.

    Examples
    --------
    >>> found = rank_threshold([0.1, 0.2, 0.9, 0.15])
    >>> int(found.rank[0]), float(found.score[0])
    (3, 0.2)
    """
    return threshold_of(_sorted(scores, groups))


def relevance_posterior(scores: ArrayLike, *, groups: Any = None) -> Vector:
    """P(relevant) of each row from the scores alone, calibrated at the rank threshold of its group.
    Cost: N log N.

    Examples
    --------
    >>> relevance_posterior([0.1, 0.2, 0.9, 0.15]).round(2)
    array([0.36, 0.5 , 0.98, 0.43])
    """
    sorted_groups = _sorted(scores, groups)
    out = np.empty(sorted_groups.rows.size)
    out[sorted_groups.rows] = posterior_of(sorted_groups, threshold_of(sorted_groups))
    return out


def _sorted(scores: ArrayLike, groups: Any) -> SortedGroups:
    values = check_scores(scores)
    if not values.size:
        raise ValueError("scores is empty; a threshold needs at least one row.")
    return sort_groups(values, group_numbers(groups, values.size), np.arange(values.size))


def group_numbers(groups: Any, n_rows: int) -> Index | None:
    """0, 1, ... in sorted order of the labels; labels of several types, which have no order, as
    they come.
    """
    if groups is None:
        return None
    labels = groups if isinstance(groups, list | tuple) else np.asarray(groups)
    if isinstance(labels, list | tuple) or labels.dtype == object:
        labels = list(labels)
        if len({type(label) for label in labels}) == 1 and isinstance(
            labels[0], str | int | float | np.generic
        ):
            labels = np.asarray(labels)
    return query_numbers(labels, n_rows)
