"""Query strategies: which rows to label next.

A strategy gives each unlabelled row a utility and selects the rows with the highest, in each group.
Input: scores (or an estimator that scores), labelled rows, groups, a count, a random generator.
Output: row numbers, the highest utility first; utilities on request. Rows of equal utility are
ordered by descending score, then by row number. Cost: at most two sorts of the unlabelled rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

from forerank._sorting import argsort, sort_by_group
from forerank._typing import Index, Mask, Vector
from forerank._validation import check_number
from forerank.active.fitting import fit_labelled
from forerank.active.pair_losses import largest_pair_losses
from forerank.active.posterior import (
    RankThreshold,
    SortedGroups,
    check_scale,
    group_numbers,
    posterior_of,
    sort_groups,
    thresholds_of,
)
from forerank.estimators.pool import UNLABELLED
from forerank.estimators.scores import SCORING_METHODS, check_scores, score_rows

__all__ = [
    "STRATEGIES",
    "Diverse",
    "Entropy",
    "Greedy",
    "LossMin",
    "PairLossMin",
    "Random",
    "Strategy",
    "Uncertain",
    "check_row_numbers",
    "make_strategy",
]

Rng = np.random.Generator


@dataclass(frozen=True)
class Strategy:
    """Base of the query strategies; a subclass defines `utilities`."""

    # Whether the utilities depend on scores; if not, no ranker is fitted.
    uses_scores: ClassVar[bool] = True
    # Whether a selected row is at least as likely to be relevant as one drawn at random, the
    # assumption of guarantees on recall.
    relevant_first: ClassVar[bool] = False

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
            The labelled rows: a boolean mask, or their row numbers.
        n : int, default=1
            Number of rows of each group; where fewer are unlabelled, all of these.
        groups : array-like of shape (n_rows,), optional
            The group (query) of each row. Without it all rows are one group.
        X : array-like or sparse matrix, optional
            Rows that a scorer is applied to.
        random_state : int, numpy.random.Generator or None
            Used by strategies that draw rows at random.
        return_utility : bool, default=False

        Returns
        -------
        rows : array of int
            Group by group in sorted order of the groups' labels (in order of appearance if these
            have several types), in each group the highest utility first.
        utility : array of float
            Only if `return_utility`.
        """
        check_number("n", n, low=1, integer=True)
        current, others = self._read_scores(scores, X)
        unlabelled = np.flatnonzero(~_mask(labelled, current.size))
        group = group_numbers(groups, current.size)
        rng = np.random.default_rng(random_state)
        rows, utility = self.select(current, others, unlabelled, group, int(n), rng)
        return (rows, utility) if return_utility else rows

    def select(
        self, scores: Vector, others: Vector, rows: Index, group: Index | None, n: int, rng: Rng
    ) -> tuple[Index, Vector]:
        """`choose` for checked input: n of the given rows per group number, and their utilities."""
        if not rows.size:
            return rows, np.zeros(0)
        pool = sort_groups(scores, group, rows)
        utility = self.utilities(pool, others, rng)
        # By descending score, and of equal scores the earlier row first.
        descending = np.arange(rows.size)[::-1]
        order = descending[argsort(-utility[descending], stable=True)]
        if group is not None:
            order = sort_by_group(order, pool.per_row(np.arange(pool.sizes.size)), pool.starts[:-1])
        selected = order[np.arange(order.size) - pool.per_row(pool.starts[:-1]) < n]
        return pool.rows[selected], utility[selected]

    def utilities(self, pool: SortedGroups, others: Vector, rng: Rng) -> Vector:
        """The utility of the row at each position of the pool; `others` has the scores of further
        rankers, of shape (n_rankers, n_rows).
        """
        raise NotImplementedError

    def committee(self, ranker: Any, X: Any, labels: NDArray, qid: Any, rng: Rng) -> list[Any]:
        """Further fitted rankers that the strategy compares with the current one; mostly none.

        X, labels and qid (group numbers) are those of all rows; unlabelled ones have the label -1.
        """
        return []

    def _read_scores(self, scores: Any, X: Any) -> tuple[Vector, Vector]:
        current = check_scores(_score(scores, X) if _is_scorer(scores) else scores)
        return current, np.empty((0, current.size))


@dataclass(frozen=True, repr=False)
class LossMin(Strategy):
    """Utility: the expected hinge rank loss (donmez2009, eq. 7).

    With ranks r from 1 (lowest score) to n (highest) among the unlabelled rows of a group,
    theta = i + 1/2 at the largest gap between neighbouring scores (`rank_threshold`) and the
    posterior P calibrated there (`relevance_posterior`), it is

        P(+1 | x) (1 - t) [1/2 - (r - theta)]_+ / |1 - theta|
        + P(-1 | x) t [1/2 + (r - theta)]_+ / |n - theta|.

    Parameters
    ----------
    trade_off : float, default=0.6
        t, the weight of irrelevant rows above the threshold against relevant rows below it.
    scale : float, optional
        Unit of the scores in the posterior: by default sqrt(3) / pi times their standard deviation
        in the group. The paper has 1, with which the small scores of a ranker trained on few labels
        all have a posterior of about one half.
    calibrated : bool, default=True
        Whether the posterior is one half at the threshold, or at a score of zero (eq. 8).
    normalized : bool, default=True
        Whether the losses are divided by the largest possible ones. Without it, and with
        trade_off=0.5, the utility is one half of eq. 6.
    thresholds : int, default=1
        Number of rank thresholds. For K + 1 grades take K, the extension that the paper names: they
        are put at the K largest gaps, and the utility is the mean over the thresholds.

    Examples
    --------
    >>> LossMin().choose([-1.0, -0.9, -0.8, -0.7, 0.9, 1.0, 1.1], labelled=[0], n=2)
    array([1, 2])
    """

    trade_off: float = 0.6
    scale: float | None = field(default=None, kw_only=True)
    calibrated: bool = field(default=True, kw_only=True)
    normalized: bool = field(default=True, kw_only=True)
    thresholds: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        if not 0.0 < self.trade_off < 1.0:
            raise ValueError(f"trade_off must lie between 0 and 1; got {self.trade_off!r}.")
        check_scale(self.scale)
        check_number("thresholds", self.thresholds, low=1, integer=True)

    def __repr__(self) -> str:
        # Records of labelling hold this text: parameters added later appear only if they are set.
        changed = [f"trade_off={self.trade_off!r}"]
        for each in fields(self)[1:]:
            if (value := getattr(self, each.name)) != each.default:
                changed.append(f"{each.name}={value!r}")
        return f"{type(self).__name__}({', '.join(changed)})"

    def utilities(self, pool: SortedGroups, others: Vector, rng: Rng) -> Vector:
        found = thresholds_of(pool, self.thresholds, self.scale)
        return np.mean([self._at_threshold(pool, threshold) for threshold in found], axis=0)

    def _at_threshold(self, pool: SortedGroups, threshold: RankThreshold) -> Vector:
        relevant = posterior_of(pool, threshold, calibrated=self.calibrated)
        too_low, too_high = self._losses(pool, threshold)
        t = self.trade_off
        return (1.0 - t) * relevant * too_low + t * (1.0 - relevant) * too_high

    def _losses(self, pool: SortedGroups, threshold: RankThreshold) -> tuple[Vector, Vector]:
        """Losses of each row if it is relevant, and if it is irrelevant, without their weights."""
        theta = threshold.rank + 0.5
        above = pool.ranks() - pool.per_row(theta)
        too_low, too_high = np.maximum(0.5 - above, 0.0), np.maximum(0.5 + above, 0.0)
        if self.normalized:
            too_low /= pool.per_row(np.abs(1.0 - theta))
            too_high /= pool.per_row(np.abs(pool.sizes - theta))
        return too_low, too_high


@dataclass(frozen=True, repr=False)
class PairLossMin(LossMin):
    """Utility: the largest expected hinge rank loss of a pair with this row (donmez2009, eq. 5).

    A pair has one relevant and one irrelevant row. With the posteriors P of its rows i and j, taken
    as independent, and their losses a if relevant and b if irrelevant (the two terms of eq. 7), it
    is expected to lose

        P_i (1 - P_j) (a_i + b_j) + (1 - P_i) P_j (b_i + a_j),

    a pair of equal labels nothing. Both rows of the pair with the largest loss come first. Without
    the condition on the labels the expected loss of a pair is the sum of those of its rows, and the
    best pair that of the two rows which `LossMin` selects.

    Parameters are those of `LossMin`.

    Notes
    -----
    donmez2009 does not select pairs for the cost of visiting them all. It need not: below and above
    the threshold one of a and b is zero, so that each of the three kinds of pairs (both below, both
    above, one on each side) is an inner product of two vectors in the plane, and the best partner
    of a row lies on a convex hull. Cost: N log N.

    Examples
    --------
    >>> PairLossMin().choose([-1.0, -0.9, -0.8, -0.7, 0.9, 1.0, 1.1], labelled=[0], n=2)
    array([2, 1])
    """

    def _at_threshold(self, pool: SortedGroups, threshold: RankThreshold) -> Vector:
        relevant = posterior_of(pool, threshold, calibrated=self.calibrated)
        too_low, too_high = self._losses(pool, threshold)
        weighted = (1.0 - self.trade_off) * too_low, self.trade_off * too_high
        return largest_pair_losses(relevant, *weighted, pool.starts)


@dataclass(frozen=True)
class Entropy(Strategy):
    """Utility: the expected share of wrongly ordered pairs, after the entropy-based baseline of
    donmez2009.

    The pairs are those of the row with the other unlabelled rows of its group. One is in the wrong
    order if the row is relevant and the higher one is not, or if it is irrelevant and the lower one
    is relevant, by the posteriors, taken as independent. A tied pair counts one half.
    """

    def utilities(self, pool: SortedGroups, others: Vector, rng: Rng) -> Vector:
        relevant = posterior_of(pool, thresholds_of(pool)[0])
        first, run = pool.ties()
        # Sums over rows of lower, equal and higher score in the group, for each run of ties.
        in_run = np.add.reduceat(relevant, first)
        size = np.diff(np.append(first, relevant.size)).astype(np.float64)
        starts = np.searchsorted(first, pool.starts)
        below = _sums_before(in_run, starts)
        count_below = _sums_before(size, starts)
        group = np.repeat(np.arange(pool.sizes.size), np.diff(starts))
        above = np.add.reduceat(relevant, pool.starts[:-1])[group] - below - in_run
        count_above = pool.sizes[group] - count_below - size
        tied, count_tied = in_run[run] - relevant, size[run] - 1.0
        as_relevant = (count_above - above)[run] + 0.5 * (count_tied - tied)
        as_irrelevant = below[run] + 0.5 * tied
        errors = relevant * as_relevant + (1.0 - relevant) * as_irrelevant
        return errors / np.maximum(pool.per_row(pool.sizes) - 1, 1)


def _sums_before(values: Vector, starts: Index) -> Vector:
    """Sums of the preceding values of the group."""
    running = np.concatenate([[0.0], np.cumsum(values)[:-1]])
    return running - np.repeat(running[starts[:-1]], np.diff(starts))


@dataclass(frozen=True)
class Uncertain(Strategy):
    """Utility: minus the distance to the nearest other score of the group.

    Both rows of the closest pair have the same utility and come together, the higher one first.
    """

    def utilities(self, pool: SortedGroups, others: Vector, rng: Rng) -> Vector:
        gap = np.full(pool.rows.size + 1, np.inf)
        gap[1:-1] = np.diff(pool.scores)
        gap[pool.starts] = np.inf
        return -np.minimum(gap[:-1], gap[1:])


@dataclass(frozen=True)
class Diverse(Strategy):
    """Query by committee: the disagreement with rankers trained on folds of the labelled rows.

    The utility is the mean over these rankers of |rank by the current ranker - rank by that one|,
    divided by the number of unlabelled rows in the group. With too few labels for two folds, rows
    are drawn at random.

    Parameters
    ----------
    folds : int, default=5
        Number of folds of the labelled rows; one ranker is trained on each.

    Examples
    --------
    >>> Diverse().choose([[1, 2, 3, 4], [4, 2, 3, 1]], labelled=[0])
    array([3])
    """

    folds: int = 5

    def __post_init__(self) -> None:
        check_number("folds", self.folds, low=2, integer=True)

    def utilities(self, pool: SortedGroups, others: Vector, rng: Rng) -> Vector:
        if not len(others):
            return rng.uniform(size=pool.rows.size)
        n_rows = others.shape[1]
        group = np.zeros(n_rows, dtype=np.intp)
        group[pool.rows] = pool.per_row(np.arange(pool.sizes.size))
        rank, moved = np.empty(n_rows), np.zeros(n_rows)
        rank[pool.rows] = pool.ranks()
        for scores in others:
            other = sort_groups(scores, group, np.sort(pool.rows))
            moved[other.rows] += np.abs(rank[other.rows] - other.ranks())
        return moved[pool.rows] / (len(others) * pool.per_row(pool.sizes))

    def committee(self, ranker: Any, X: Any, labels: NDArray, qid: Any, rng: Rng) -> list[Any]:
        """Clones of the ranker, each fitted on one fold of the labelled rows. Folds keep groups
        together.
        """
        known = np.flatnonzero(labels != UNLABELLED)
        known_qid = None if qid is None else qid[known]
        rankers = []
        for fold in self._folds(labels[known], known_qid, int(rng.integers(2**31))):
            in_fold = np.full(labels.size, UNLABELLED)
            in_fold[known[fold]] = labels[known[fold]]
            rankers.append(fit_labelled(clone(ranker), X, in_fold, qid))
        rankers = [fitted for fitted in rankers if fitted is not None]
        return rankers if len(rankers) > 1 else []

    def _folds(self, y: NDArray, qid: Any, seed: int) -> list[Index]:
        if qid is not None:
            labels = np.unique(qid)
            if labels.size < self.folds:
                return []
            split = KFold(self.folds, shuffle=True, random_state=seed).split(labels)
            return [np.flatnonzero(np.isin(qid, labels[fold])) for _, fold in split]
        relevant = (y > 0).astype(int)
        folds = min(self.folds, *np.bincount(relevant, minlength=2))
        if folds < 2:
            return []
        stratified = StratifiedKFold(folds, shuffle=True, random_state=seed)
        return [fold for _, fold in stratified.split(relevant, relevant)]

    def _read_scores(self, scores: Any, X: Any) -> tuple[Vector, Vector]:
        if not _is_scorer(scores) and isinstance(scores, Sequence) and len(scores):
            scores = [_score(given, X) if _is_scorer(given) else given for given in scores]
        table = np.asarray([] if _is_scorer(scores) else scores)
        if table.ndim != 2 or not len(table):
            given = type(scores).__name__ if _is_scorer(scores) else f"of shape {table.shape}"
            raise ValueError(
                f"Diverse compares several rankers, but scores is {given}; expected an array of "
                "shape (n_rankers, n_rows) or a list of rankers, the current one first."
            )
        checked = [check_scores(row) for row in table]
        return checked[0], np.array(checked[1:]).reshape(len(table) - 1, table.shape[1])


@dataclass(frozen=True)
class Random(Strategy):
    """Rows drawn at random; the utility is a uniform random number."""

    uses_scores: ClassVar[bool] = False
    relevant_first: ClassVar[bool] = True

    def utilities(self, pool: SortedGroups, others: Vector, rng: Rng) -> Vector:
        # Drawn by row number, so that the scores have no influence.
        return rng.uniform(size=int(pool.rows.max()) + 1)[pool.rows]


@dataclass(frozen=True)
class Greedy(Strategy):
    """Utility: the score, as in screening tools and relevance feedback."""

    relevant_first: ClassVar[bool] = True

    def utilities(self, pool: SortedGroups, others: Vector, rng: Rng) -> Vector:
        return pool.scores


STRATEGIES: dict[str, type[Strategy]] = {
    "diverse": Diverse,
    "entropy": Entropy,
    "greedy": Greedy,
    "lossmin": LossMin,
    "pairlossmin": PairLossMin,
    "random": Random,
    "uncertain": Uncertain,
}


def make_strategy(strategy: str | Strategy) -> Strategy:
    """The strategy with this name; a strategy is returned unchanged."""
    if isinstance(strategy, Strategy):
        return strategy
    if isinstance(strategy, str) and strategy.lower() in STRATEGIES:
        return STRATEGIES[strategy.lower()]()
    names = ", ".join(map(repr, STRATEGIES))
    raise ValueError(
        f"strategy must be one of {names} or a forerank.active.Strategy; got {strategy!r}."
    )


def _is_scorer(given: Any) -> bool:
    return any(hasattr(given, name) for name in SCORING_METHODS)


def _score(scorer: Any, X: Any) -> Vector:
    if X is None:
        raise ValueError(f"scores is a {type(scorer).__name__}; give X, the rows to be scored.")
    return score_rows(scorer, X)


def _mask(labelled: ArrayLike, n_rows: int) -> Mask:
    given = np.asarray(labelled)
    if given.dtype != bool:
        rows = check_row_numbers("labelled", given, n_rows, "a mask with one boolean per row")
        return np.isin(np.arange(n_rows), rows)
    if given.shape != (n_rows,):
        raise ValueError(
            f"labelled is a mask of shape {given.shape} for {n_rows} rows; give one entry per row."
        )
    return given


def check_row_numbers(name: str, rows: NDArray, n_rows: int, alternative: str) -> Index:
    """Distinct row numbers; errors name the argument and the alternative to row numbers."""
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise ValueError(
            f"{name} has shape {rows.shape} and type {rows.dtype}; expected a list of row numbers, "
            f"or {alternative}."
        )
    wrong = rows[(rows < 0) | (rows >= n_rows)]
    if wrong.size:
        raise ValueError(f"{name} holds the row number {wrong[0]}, but there are {n_rows} rows.")
    if np.unique(rows).size < rows.size:
        raise ValueError(f"{name} holds a row number twice; give distinct ones, or {alternative}.")
    return rows.astype(np.intp)
