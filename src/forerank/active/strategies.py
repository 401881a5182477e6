"""Which rows to ask about next.

Every strategy gives each row that is not labelled a utility, and chooses those of the highest, in
every group. One shape: scores (or something that scores), what is labelled, groups, how many, a
random generator in; row numbers out, the best first, with their utilities on request. Cost: at most
two sorts of the rows that are not labelled.

Ties: rows of equal utility are taken by falling score, then by row number.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from forerank._sorting import argsort, sort_by_group
from forerank._typing import Index, Vector
from forerank._validation import is_integer
from forerank.active.posterior import (
    SortedGroups,
    group_numbers,
    posterior_of,
    sort_groups,
    threshold_of,
)
from forerank.estimators.pool import UNLABELLED
from forerank.estimators.scores import check_scores, score_rows

__all__ = [
    "STRATEGIES",
    "Diverse",
    "Entropy",
    "Greedy",
    "LossMin",
    "Random",
    "Strategy",
    "Uncertain",
    "make_strategy",
    "score_rows",
]

Rng = np.random.Generator


@dataclass(frozen=True)
class Strategy:
    """What strategies share: reading the arguments, and the order of the chosen rows."""

    # Does the strategy look at the scores at all? Where it does not, no ranker need be fitted.
    uses_scores: ClassVar[bool] = True
    # Is what it chooses at least as likely to be relevant as a row drawn at random? A promise on
    # recall rests on that.
    relevant_first: ClassVar[bool] = False
    # Does it take the scores of several rankers, as `committee` makes them?
    compares_rankers: ClassVar[bool] = False

    def choose(
        self,
        scores: Any,
        labelled: ArrayLike,
        *,
        n: int = 1,
        groups: Any = None,
        X: Any = None,
        random_state: int | np.random.Generator | None = None,
        return_utility: bool = False,
    ) -> Any:
        """The next rows to label: at most n of every group.

        Parameters
        ----------
        scores : array-like of shape (n_rows,), or a fitted scorer
            The higher, the more relevant. A scorer is anything with `decision_function`,
            `predict_proba` or `predict`; it is applied to X. `Diverse` takes several: an array of
            shape (n_rankers, n_rows) or a list of scorers, the current one first.
        labelled : array-like
            Which rows are labelled: a boolean mask, or their row numbers.
        n : int, default=1
            How many rows to choose in each group; where fewer are left, all of these.
        groups : array-like of shape (n_rows,), optional
            The group (query) of each row. Without it all rows are one pool.
        X : array-like or sparse matrix, optional
            What a scorer is applied to.
        random_state : int, numpy.random.Generator or None
            Only strategies that draw use it.
        return_utility : bool, default=False

        Returns
        -------
        rows : array of int
            Group by group in sorted order of the groups' labels (labels of several types: as they
            come), in each the
        highest utility first.
        utility : array of float
            Only if `return_utility`.
        """
        if not is_integer(n) or n < 1:
            raise ValueError(f"n must be a whole number of at least 1; got {n!r}.")
        current, others = self._read_scores(scores, X)
        open_rows = np.flatnonzero(~_mask(labelled, current.size))
        group = group_numbers(groups, current.size)
        if not open_rows.size:
            rows, utility = open_rows, np.zeros(0)
        else:
            pool = sort_groups(current, group, open_rows)
            utility = self.utilities(pool, others, np.random.default_rng(random_state))
            rows, utility = _highest(pool, utility, group, int(n))
        return (rows, utility) if return_utility else rows

    def utilities(self, pool: SortedGroups, others: Vector, rng: Rng) -> Vector:
        """The utility of each place of the pool; `others` has the scores of further rankers, by
        row.
        """
        raise NotImplementedError

    def committee(self, ranker: Any, X: Any, labels: NDArray, qid: Any, rng: Rng) -> list[Any]:
        """Further rankers that the strategy wants beside the fitted one; none, for most.

        X, labels and qid are those of all rows, with the label -1 where there is none.
        """
        return []

    def _read_scores(self, scores: Any, X: Any) -> tuple[Vector, Vector]:
        if _is_scorer(scores):
            scores = _score_given(scores, X)
        current = check_scores(scores)
        return current, np.empty((0, current.size))


@dataclass(frozen=True)
class LossMin(Strategy):
    """The largest expected hinge rank loss (donmez2009, eq. 7).

    With ranks r from 1 (lowest score) to n (highest) among the rows of a group that are not
    labelled, theta = i + 1/2 at the largest gap between neighbouring scores (`rank_threshold`) and
    the posterior calibrated there (`relevance_posterior`),

        P(+1 | x) (1 - t) [1/2 - (r - theta)]_+ / |1 - theta|  +  P(-1 | x) t [1/2 + (r - theta)]_+ / |n - theta|.

    Parameters
    ----------
    trade_off : float, default=0.6
        t, the weight of irrelevant rows above the threshold against relevant rows below it.

    Examples
    --------
    >>> LossMin().choose([-1.0, -0.9, -0.8, -0.7, 0.9, 1.0, 1.1], labelled=[0], n=2)
    array([1, 2])
    """

    trade_off: float = 0.6

    def __post_init__(self) -> None:
        if not 0.0 < self.trade_off < 1.0:
            raise ValueError(f"trade_off must lie between 0 and 1; got {self.trade_off!r}.")

    def utilities(self, pool: SortedGroups, others: Vector, rng: Rng) -> Vector:
        threshold = threshold_of(pool)
        relevant = posterior_of(pool, threshold)
        theta = threshold.rank + 0.5
        above = pool.ranks() - pool.spread(theta)
        too_low = np.maximum(0.5 - above, 0.0) / pool.spread(np.abs(1.0 - theta))
        too_high = np.maximum(0.5 + above, 0.0) / pool.spread(np.abs(pool.sizes - theta))
        return (1.0 - self.trade_off) * relevant * too_low + self.trade_off * (
            1.0 - relevant
        ) * too_high


@dataclass(frozen=True)
class Entropy(Strategy):
    """The largest expected number of ranking errors, after the entropy-based baseline of
    donmez2009.

    A row's utility is the expected share of the other open rows of its group with which it is in
    the wrong order: it is relevant and the higher one is not, or it is irrelevant and the lower one
    is relevant, by the posterior of each, taken as independent. A tied pair counts one half.
    """

    def utilities(self, pool: SortedGroups, others: Vector, rng: Rng) -> Vector:
        relevant = posterior_of(pool, threshold_of(pool))
        first, block = pool.blocks()
        # Sums over the rows of lower, equal and higher score, group by group.
        in_block = np.add.reduceat(relevant, first)
        size = np.diff(np.append(first, relevant.size)).astype(np.float64)
        starts = np.searchsorted(first, pool.starts)
        below = _sums_before(in_block, starts)
        count_below = _sums_before(size, starts)
        spread = np.repeat(np.arange(pool.sizes.size), np.diff(starts))
        total = np.add.reduceat(relevant, pool.starts[:-1])[spread]
        above = total - below - in_block
        count_above = pool.sizes[spread] - count_below - size
        tied, count_tied = in_block[block] - relevant, size[block] - 1.0
        as_relevant = (count_above - above)[block] + 0.5 * (count_tied - tied)
        as_irrelevant = below[block] + 0.5 * tied
        errors = relevant * as_relevant + (1.0 - relevant) * as_irrelevant
        return errors / np.maximum(pool.spread(pool.sizes) - 1, 1)


@dataclass(frozen=True)
class Uncertain(Strategy):
    """The rows of the closest pairs of scores: minus the distance to the nearest other score of the
    group.

    Both rows of a pair have the same utility and come together, the higher one first.
    """

    def utilities(self, pool: SortedGroups, others: Vector, rng: Rng) -> Vector:
        gap = np.full(pool.rows.size + 1, np.inf)
        gap[1:-1] = np.diff(pool.scores)
        gap[pool.starts] = np.inf
        return -np.minimum(gap[:-1], gap[1:])


@dataclass(frozen=True)
class Diverse(Strategy):
    """The largest disagreement with rankers trained on folds of the labelled rows.

    A row's utility is the mean over these rankers of |rank under the current one - rank under it|, divided by the
    number of open rows in the group. Where there are too few labels for two folds, rows are drawn at random.

    Parameters
    ----------
    folds : int, default=5
        Into how many parts the labelled rows are cut; one ranker is trained on each.

    Examples
    --------
    >>> Diverse().choose([[1, 2, 3, 4], [4, 2, 3, 1]], labelled=[0])
    array([3])
    """

    folds: int = 5
    compares_rankers: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if (
            isinstance(self.folds, bool)
            or not isinstance(self.folds, int | np.integer)
            or self.folds < 2
        ):
            raise ValueError(f"folds must be a whole number of at least 2; got {self.folds!r}.")

    def utilities(self, pool: SortedGroups, others: Vector, rng: Rng) -> Vector:
        if not len(others):
            return rng.uniform(size=pool.rows.size)
        group = np.zeros(others.shape[1], dtype=np.intp)
        group[pool.rows] = pool.spread(np.arange(pool.sizes.size))
        mine = np.empty(others.shape[1])
        mine[pool.rows] = pool.ranks()
        moved = np.zeros(others.shape[1])
        for scores in others:
            theirs = sort_groups(scores, group, np.sort(pool.rows))
            moved[theirs.rows] += np.abs(mine[theirs.rows] - theirs.ranks())
        return moved[pool.rows] / (len(others) * pool.spread(pool.sizes))

    def committee(self, ranker: Any, X: Any, labels: NDArray, qid: Any, rng: Rng) -> list[Any]:
        """A clone of the ranker for every fold of the labelled rows; whole groups, where there are
        groups.
        """
        known = np.flatnonzero(labels != UNLABELLED)
        rankers = []
        for part in self._parts(
            labels[known], None if qid is None else qid[known], int(rng.integers(2**31))
        ):
            of_part = np.full(labels.size, UNLABELLED)
            of_part[known[part]] = labels[known[part]]
            fitted = fit_labelled(clone(ranker), X, of_part, qid)
            rankers += [] if fitted is None else [fitted]
        return rankers if len(rankers) > 1 else []

    def _parts(self, y: NDArray, qid: Any, seed: int) -> list[Index]:
        if qid is not None:
            labels = np.unique(qid)
            if labels.size < self.folds:
                return []
            split = KFold(self.folds, shuffle=True, random_state=seed).split(labels)
            return [np.flatnonzero(np.isin(qid, labels[part])) for _, part in split]
        folds = min(self.folds, *np.bincount(y, minlength=2))
        if folds < 2:
            return []
        return [
            part for _, part in StratifiedKFold(folds, shuffle=True, random_state=seed).split(y, y)
        ]

    def _read_scores(self, scores: Any, X: Any) -> tuple[Vector, Vector]:
        if _is_scorer(scores):
            raise ValueError(
                "Diverse compares several rankers; give a list of them, the current one first."
            )
        if isinstance(scores, Sequence) and len(scores) and _is_scorer(scores[0]):
            scores = [_score_given(scorer, X) for scorer in scores]
        table = np.asarray(scores)
        if table.ndim != 2 or not len(table):
            raise ValueError(
                f"Diverse compares several rankers; scores has shape {table.shape}, and (n_rankers, n_rows) is "
                "expected, the current ranker's scores first."
            )
        checked = [check_scores(row) for row in table]
        return checked[0], np.array(checked[1:]).reshape(len(table) - 1, table.shape[1])


@dataclass(frozen=True)
class Random(Strategy):
    """Rows drawn at random; the utility is the number drawn."""

    uses_scores: ClassVar[bool] = False
    relevant_first: ClassVar[bool] = True

    def utilities(self, pool: SortedGroups, others: Vector, rng: Rng) -> Vector:
        return rng.uniform(size=int(pool.rows.max()) + 1)[
            pool.rows
        ]  # by row number, whatever the scores are


@dataclass(frozen=True)
class Greedy(Strategy):
    """The largest score first: what screening tools and relevance feedback use."""

    relevant_first: ClassVar[bool] = True

    def utilities(self, pool: SortedGroups, others: Vector, rng: Rng) -> Vector:
        return pool.scores


STRATEGIES: dict[str, type[Strategy]] = {
    "diverse": Diverse,
    "entropy": Entropy,
    "greedy": Greedy,
    "lossmin": LossMin,
    "random": Random,
    "uncertain": Uncertain,
}


def make_strategy(strategy: str | Strategy) -> Strategy:
    """A strategy from its name; a strategy as it is."""
    if isinstance(strategy, Strategy):
        return strategy
    if isinstance(strategy, str) and strategy.lower() in STRATEGIES:
        return STRATEGIES[strategy.lower()]()
    raise ValueError(
        f"strategy must be one of {', '.join(map(repr, STRATEGIES))} or a forerank.active.Strategy; got {strategy!r}."
    )


def can_fit(y: NDArray, qid: Any) -> bool:
    """Whether there are two rows of different labels, in one group where there are groups."""
    if qid is None:
        return bool(y.size) and y.min() < y.max()
    number = np.unique(qid, return_inverse=True)[1]
    relevant = np.bincount(number, weights=y)
    return bool(((relevant > 0) & (relevant < np.bincount(number))).any())


def last_step(ranker: Any) -> Any:
    """The estimator at the end of a pipeline; any other estimator as it is."""
    return ranker.steps[-1][1] if hasattr(ranker, "steps") else ranker


def fit_labelled(ranker: Any, X: Any, labels: NDArray, qid: Any) -> Any:
    """Fit on the rows that are labelled, or on all where the ranker learns from these too; None
    where it cannot be.

    Groups are given to a ranker, or the last step of a pipeline, whose fit takes them as `qid`.
    """
    known = np.flatnonzero(labels != UNLABELLED)
    last = last_step(ranker)
    if not has_fit_parameter(last, "qid"):
        qid = None
    if not can_fit(labels[known], None if qid is None else qid[known]):
        return None
    y = labels
    if not getattr(last, "learns_from_unlabelled", False):
        X, y, qid = _safe_indexing(X, known), labels[known], None if qid is None else qid[known]
    prefix = f"{ranker.steps[-1][0]}__" if hasattr(ranker, "steps") else ""
    grouped = {} if qid is None else {f"{prefix}qid": qid}
    with warnings.catch_warnings():
        # Groups without a relevant row yet, and fits short of their tolerance, are the ordinary
        # course of labelling.
        warnings.filterwarnings(
            "ignore", message=".*qid groups? ha(s|ve) no pair.*", category=UserWarning
        )
        warnings.simplefilter("ignore", ConvergenceWarning)
        return ranker.fit(X, y, **grouped)


def _is_scorer(given: Any) -> bool:
    return any(hasattr(given, name) for name in ("decision_function", "predict_proba", "predict"))


def _score_given(scorer: Any, X: Any) -> Vector:
    if X is None:
        raise ValueError(
            f"scores is a {type(scorer).__name__}; give X, the rows that it should score."
        )
    return score_rows(scorer, X)


def _mask(labelled: ArrayLike, n_rows: int) -> NDArray[np.bool_]:
    given = np.asarray(labelled)
    if given.dtype == bool:
        if given.shape != (n_rows,):
            raise ValueError(
                f"labelled is a mask of shape {given.shape} for {n_rows} rows; give one entry per row."
            )
        return given
    mask = np.zeros(n_rows, dtype=bool)
    if given.size:
        if given.dtype.kind not in "iu" or given.ndim != 1:
            raise ValueError(
                "labelled must be a boolean mask with one entry per row, or a list of row numbers."
            )
        if given.min() < 0 or given.max() >= n_rows:
            raise ValueError(
                f"labelled names row {given.min() if given.min() < 0 else given.max()} of {n_rows} rows."
            )
        mask[given] = True
        if np.count_nonzero(mask) < given.size:
            raise ValueError(
                "labelled names a row twice. For a mask of zeros and ones, convert it: mask.astype(bool)."
            )
    return mask


def _highest(
    pool: SortedGroups, utility: Vector, group: Index | None, n: int
) -> tuple[Index, Vector]:
    """The n highest utilities of each group."""
    falling = np.arange(pool.rows.size)[
        ::-1
    ]  # by falling score, and of equal scores the earlier row first
    order = falling[argsort(-utility[falling], stable=True)]
    if group is not None:
        number = pool.spread(np.arange(pool.sizes.size))
        order = sort_by_group(order, number, pool.starts[:-1])
    within = np.arange(order.size) - pool.spread(pool.starts[:-1])
    chosen = order[within < n]
    return pool.rows[chosen], utility[chosen]


def _sums_before(values: Vector, starts: Index) -> Vector:
    """The sum of the values before each, within its group."""
    running = np.concatenate([[0.0], np.cumsum(values)[:-1]])
    return running - np.repeat(running[starts[:-1]], np.diff(starts))
