"""Elimination during a search: candidates, and values of their parameters, that are not worth
another fold.

A reference, the fit that would be selected now, is ahead of another one by m in the mean of the
measure, with standard error e, over the folds so far. The folds to come, a share q of all, change m
by a normal number of standard deviation s = e sqrt(q). The other one is selected in the end if m
falls below zero, so that the expected gain of the measure from going on with it is

    E max(-m', 0) = s phi(m / s) - m Phi(-m / s),    m' normal with mean m and deviation s.

While folds are few, they have no spread of their own, and m and e are those over blocks of the test
rows. Where these have too few rows of a class for that, nothing is dropped until there are enough
folds. Where the rows of the rarest class are few in all, `Search` drops nothing by expected gain,
only methods that are not better than the best one of all families, by three standard errors.
"""

import math

import numpy as np

from forerank._typing import Index, Vector
from forerank.metrics.registry import Measure
from forerank.selection.candidates import Candidate
from forerank.selection.training_rows import TrainingRows, assign_blocks

__all__ = ["FoldValues", "drop_behind", "drop_without_gain", "expected_gain", "is_negligible"]

# Until there are enough folds, the test rows of each are split into this many blocks.
_ENOUGH_FOLDS = 5
_BLOCKS = 8
# Variance of differences between folds, whose training rows differ too, over that between blocks.
_INFLATION = 4.0
# Fewest differences that have a standard error.
_FEWEST = 3
# Expected gain of the measure that is not worth another fold.
_NEGLIGIBLE = 2e-4
# Methods of any family are dropped when they are not better than the best one of all by this many
# standard errors: many, since the average may have a family that is worse by itself.
_ERRORS = 3.0


def expected_gain(ahead: Vector, share: float) -> float:
    """Expected gain of the measure from going on with something, given by how much the reference is
    ahead of it by folds or blocks, and the share of the folds to come; infinity where the
    differences are too few.

    Examples
    --------
    >>> ahead = np.array([0.02, -0.01, 0.03, 0.02])
    >>> f"{expected_gain(ahead, 0.5):.1e}", f"{expected_gain(ahead - 0.02, 0.5):.1e}"
    ('1.4e-05', '5.7e-03')
    """
    known = ahead[np.isfinite(ahead)]
    if known.size < _FEWEST:
        return np.inf
    mean = float(known.mean())
    deviation = float(known.std(ddof=1)) * math.sqrt(share / known.size)
    if deviation <= 0.0:
        return max(-mean, 0.0)
    z = mean / deviation
    density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return deviation * density - 0.5 * mean * math.erfc(z / math.sqrt(2.0))


def is_negligible(ahead: Vector, share: float) -> bool:
    """Whether the expected gain is not worth another fold."""
    return expected_gain(ahead, share) < _NEGLIGIBLE


class FoldValues:
    """The measure by fold, or while folds are few by block of their test rows.

    Parameters
    ----------
    tests : dict of TrainingRows
        Labels of the test rows by number of the fold.
    measure : Measure
    list_rows : int
    """

    def __init__(self, tests: dict[int, TrainingRows], measure: Measure, list_rows: int) -> None:
        self._tests, self._measure, self._list_rows = tests, measure, list_rows
        self.folds = list(tests)
        few = min((_n_exchangeable(test) for test in tests.values()), default=0) < _BLOCKS
        self._has_spread = len(tests) >= _ENOUGH_FOLDS or not few
        self._known: dict[tuple[int, int], Vector] = {}
        self._blocks: dict[int, list[tuple[Index, TrainingRows]]] = {}

    @property
    def inflation(self) -> float:
        """Ratio of the variance of a mean over folds to that of the same mean over blocks."""
        return 1.0 if len(self.folds) >= _ENOUGH_FOLDS else _INFLATION

    def of(self, candidate: Candidate, position: int) -> Vector:
        """Values of the fit at a position, none where folds and rows are too few; those of blocks
        are computed once.
        """
        if not self._has_spread:
            return np.empty(0)
        if len(self.folds) >= _ENOUGH_FOLDS:
            return candidate.results[self.folds, position]
        key = id(candidate), position
        if key not in self._known:
            scores = ((k, candidate.test_scores[k][position]) for k in self.folds)
            self._known[key] = np.concatenate([self._of_blocks(*each) for each in scores])
        return self._known[key]

    def _of_blocks(self, number: int, scores: Vector) -> Vector:
        """Values of scores of the test rows of a fold, by block."""
        if number not in self._blocks:
            test = self._tests[number]
            block = assign_blocks(test, _BLOCKS, np.random.default_rng(0))
            rows = [np.flatnonzero(block == k) for k in range(_BLOCKS)]
            self._blocks[number] = [(each, test.labels(each)) for each in rows]
        return np.array(
            [
                part.evaluate(self._measure, scores[rows], self._list_rows)
                if rows.size > 1
                else np.nan
                for rows, part in self._blocks[number]
            ]
        )


def _n_exchangeable(test: TrainingRows) -> int:
    """Number of groups, or of rows of the rarest class."""
    if test.group is not None:
        return int(np.unique(test.group).size)
    return int(np.unique(test.y, return_counts=True)[1].min())


def drop_without_gain(
    candidates: list[Candidate],
    leader: tuple[Candidate, int],
    decades: Vector,
    values: FoldValues,
    share: float,
    where: str,
) -> None:
    """Drop candidates of one family, and the values at both ends of their grids, from which nothing
    is to be gained over the `leader`; `where` names the rows in the reason.

    Of the values of the leader's grid that it gains nothing over, the one nearest to a typical one,
    by their distances in `decades`, takes its place.
    """
    share *= values.inflation
    best, place = leader
    reference = values.of(best, place)
    for k in sorted(_complete(best), key=lambda k: float(decades[k])):
        if k == place or is_negligible(values.of(best, k) - reference, share):
            place = k
            break
    reference = values.of(best, place)
    for candidate in candidates:
        left = _complete(candidate)
        for end in (0, -1):
            while (
                left
                and (candidate is not best or left[end] != place)
                and is_negligible(reference - values.of(candidate, left[end]), share)
            ):
                del left[end]
        if left:
            candidate.tried = slice(left[0], left[-1] + 1)
            continue
        behind = float(np.nanmean(reference - values.of(candidate, _best(candidate))))
        candidate.dropped = _behind(best, behind, where)


def drop_behind(candidates: list[Candidate], values: FoldValues, where: str) -> None:
    """Drop the candidates that are surely not better than the best one of all families, by more
    than a negligible difference.
    """
    leader = max(candidates, key=lambda c: float(np.nanmax(c.means)))
    reference = values.of(leader, _best(leader))
    for candidate in candidates:
        ahead = reference - values.of(candidate, _best(candidate))
        known = ahead[np.isfinite(ahead)]
        if candidate is leader or known.size < _FEWEST:
            continue
        error = float(known.std(ddof=1)) / math.sqrt(known.size)
        if float(known.mean()) + _NEGLIGIBLE > _ERRORS * error:
            candidate.dropped = _behind(leader, float(known.mean()), where)


def _complete(candidate: Candidate) -> list[int]:
    """Positions that are still tried and have a value in every fold so far."""
    return [k for k in candidate.positions if np.isfinite(candidate.means[k])]


def _best(candidate: Candidate) -> int:
    """The position of the highest mean."""
    return int(np.nanargmax(candidate.means))


def _behind(leader: Candidate, difference: float, where: str) -> str:
    """The reason why a candidate is dropped."""
    how = f"behind {leader.name} by {difference:.2g}"
    return f"{how if difference > _NEGLIGIBLE else f'not better than {leader.name}'} on {where}"
