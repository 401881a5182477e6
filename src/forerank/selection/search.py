"""State of the search of `Ranker`: folds, candidates of several families of models, and which of
them are still active.

Each linear method is fitted along a path of penalties, which costs little more than one fit, and
trees are scored as their number grows. After each round of folds, methods and values at both ends
of a path from which nothing is to be gained are dropped, unless the rows of a class are few; folds
of few rows are repeated as long as there is more than one fit left. A path of penalties whose end
is selected is extended beyond it. Results depend on the clock only through a time budget.
"""

from dataclasses import replace
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from forerank._kernels import serial_blas
from forerank._typing import Vector
from forerank._validation import is_integer
from forerank.metrics.registry import Measure
from forerank.selection.average import average_weights, held_out_rows, loss_excess
from forerank.selection.candidate_maker import FEW_CLASS_ROWS, CandidateMaker
from forerank.selection.candidates import (
    Candidate,
    Key,
    corrected_error,
    penalty_curve,
    select,
    select_family,
    typical_penalty,
)
from forerank.selection.elimination import (
    FoldValues,
    drop_behind,
    drop_without_gain,
    is_negligible,
)
from forerank.selection.fits import RowForms, parts_in_memory, path_scores, tree_quality
from forerank.selection.methods import FAMILIES, check_families, named_feature_maps
from forerank.selection.training_rows import (
    Split,
    TrainingRows,
    lists_rows,
    make_splits,
    stratified_order,
    stratified_sample,
)

__all__ = ["Search"]

# Folds of few rows are repeated, with other folds, up to this many rows in all.
_ROWS_OF_REPEATS = 2_000
_MOST_REPEATS = 4
# Above this many training rows, methods are first tried on a sample of them of this size.
_MANY_ROWS = 20_000
_TRIAL_ROWS = 8_000
# Penalties beyond the ends of the path that are tried at most, for each family.
_MOST_EXTENSIONS = 3
# Penalties in a row that are no better than a larger one, after which the first fold tries no more.
_DECLINING = 2
# Penalty, and number of rounds, if there are no folds to compare them on.
_DEFAULT_ALPHA = 1e-3
_DEFAULT_ROUNDS = 100
# Boosting ends in the first fold so many times beyond the best number of rounds, or when twice the
# rounds gain no more than this in the measure, and not before so many rounds.
_ROUNDS_BEYOND = 1.6
_NEGLIGIBLE_GAIN = 5e-4
_FEWEST_ROUNDS = 60
# Folds on which trees of all sizes are tried; those of the best size on the others.
_FOLDS_OF_ALL_TREES = 2


class Search:
    """State of the search: folds, candidates, and the time used.

    Attributes
    ----------
    data : TrainingRows
        The rows to search on, a sample of those given if these are many.
    splits : list of Split
    families : tuple of str
        Families of models to choose from, the simplest first.
    candidates : list of Candidate
    maps : dict
        Feature maps by name.
    measure : Measure
        With the depth of the complete list in its title.
    list_rows : int
        Rows of the complete list, for measures of the first k.
    parts : list of (Candidate, int)
        The candidates that the average has, each with the position of its value; none without an
        average.
    weights : array
        The weights of their scores.
    notes : list of str
        For the user.
    """

    def __init__(
        self, ranker: Any, measure: Measure, alphas: Vector, data: TrainingRows, graded: bool
    ) -> None:
        self.ranker, self.data = ranker, data
        self.begin = perf_counter()
        self.notes: list[str] = []
        self.random = check_random_state(ranker.random_state)
        n = self.list_rows = ranker.list_rows or data.y.size
        self.measure = measure.for_rows(n, n, grouped=data.group is not None)
        self.families = check_families(ranker.families)
        self.maps = named_feature_maps(ranker.maps, self._seed())
        self._sample()
        repeats = 1
        if is_integer(ranker.cv):
            repeats = min(_MOST_REPEATS, max(1, _ROWS_OF_REPEATS // self.data.y.size))
        self.splits, notes = make_splits(ranker.cv, self.data, self._seed, repeats=repeats)
        # Folds that are no repetition of others.
        self.n_folds = len(self.splits) // repeats
        self.notes += notes
        # Typical penalties by family, form and feature map.
        self._typical: dict[Key, float] = {}
        made = CandidateMaker(ranker, self.measure, self.data, graded, self.families, self._seed())
        self.candidates = made.candidates(alphas, len(self.splits), self.maps)
        self.notes += made.notes
        self.rows = RowForms(self.data, self.maps, ranker.scale)
        self.parts: list[tuple[Candidate, int]] = []
        self.weights = np.empty(0)
        most = _MOST_EXTENSIONS if is_integer(ranker.alphas) else 0
        self._extensions = dict.fromkeys(FAMILIES, most)  # that are left
        # By how many standard errors the loss of the best of each family exceeds the average's.
        self._excess: dict[str, float] = {}

    def _seed(self) -> int:
        return int(self.random.randint(np.iinfo(np.int32).max))

    def _sample(self) -> None:
        """Restrict the search to a sample of many rows, unless `cv` lists row numbers."""
        data, most = self.data, self.ranker.search_rows
        if most is None or lists_rows(self.ranker.cv) or data.y.size <= most:
            return
        rows = stratified_sample(data.y, data.group, int(most), self._seed())
        if rows.size < data.y.size:
            self.data = data.take(rows)
            self.notes.append(f"the selection was made on {rows.size:,} of {data.y.size:,} rows")

    # --- Fits ---

    def run(self) -> None:
        """Fit all candidates on the folds, and drop those without a prospect on the way."""
        with serial_blas():
            self._run()
            self._extend()
            if "average" in self.families:
                self._average()
        for candidate in self.candidates:
            candidate.test_scores.clear()

    def _run(self) -> None:
        folds = range(len(self.splits))
        several = len(self.candidates) > 1
        if several and folds and self.splits[0].train.size > _MANY_ROWS:
            self._trial()
        # The first two folds one by one, since candidates may be dropped after each round.
        rounds = [[k] for k in folds[:2]] + [list(folds[2 : self.n_folds])]
        done = 0
        for numbers in filter(None, rounds):
            self._fit_round(self.candidates, {k: self.splits[k] for k in numbers})
            done += len(numbers)
            if several and done < len(folds):
                self._drop(self.candidates, done)
            if done == _FOLDS_OF_ALL_TREES:
                self._keep_best_trees()
        self._extend()
        while done < len(folds) and (tried := self._undecided()):
            self._fit_round(tried, {k: self.splits[k] for k in folds[done:][: self.n_folds]})
            done += self.n_folds
            if done < len(folds):
                self._drop(tried, done)

    def _undecided(self) -> list[Candidate]:
        """Candidates, other than trees, of the families in which more than one fit is left."""
        tried = []
        for family in ("linear", "additive"):
            active = [c for c in self.candidates if c.family == family and c.dropped is None]
            tried += active if sum(len(c.positions) for c in active) > 1 else []
        return tried

    def _keep_best_trees(self) -> None:
        """Drop all trees but the best."""
        best = self.best_of("trees")
        if best is None:
            return
        where = f"the first {_FOLDS_OF_ALL_TREES} folds"
        for candidate in self.candidates:
            if candidate.family == "trees" and candidate is not best[0]:
                candidate.dropped = candidate.dropped or f"behind {best[0].name} on {where}"

    def _trial(self) -> None:
        """Drop candidates that are clearly worse on a sample of the training rows of a fold."""
        train, test = self.splits[0].train, self.splits[0].test
        order = stratified_order(self.data.labels(train), np.random.default_rng(self._seed()))
        split = Split(train[order[:_TRIAL_ROWS]], test, "a sample of the rows")
        trial = [
            replace(c, results=np.full((1, c.grid.size), np.nan), test_scores={})
            for c in self.candidates
        ]
        self._fit_round(trial, {0: split})
        self._drop(trial, 0, split)
        for candidate, tried in zip(self.candidates, trial, strict=True):
            candidate.dropped = tried.dropped
            # More rows need a weaker penalty, and more rounds: only strong ones and few rounds are
            # dropped for all rows.
            candidate.tried = slice(tried.tried.start, None)
            candidate.seconds, candidate.fits = tried.seconds, tried.fits

    def _fit_round(self, candidates: list[Candidate], splits: dict[int, Split]) -> None:
        """Fit each active candidate on these splits, and keep its results and test scores.

        Of many rows a part of the round is prepared at a time: see `parts_in_memory`.
        """
        active = [candidate for candidate in candidates if candidate.dropped is None]
        if self.data.y.size > _MANY_ROWS:
            parts = parts_in_memory(active, splits, self.ranker.n_jobs)
            if len(parts) > 1:
                for part in parts:
                    self._fit_round(*part)
                return
        tasks = []
        for number, split in splits.items():
            prepared: dict[Key, tuple[TrainingRows, TrainingRows]] = {}
            for candidate in active:
                key = candidate.key
                if candidate.dropped is None and key not in prepared:
                    try:
                        prepared[key] = self.rows.of(candidate, split)
                    except (TypeError, ValueError) as error:
                        if candidate.map is None:
                            raise
                        candidate.dropped = f"the map fails: {error}"
                if candidate.dropped is None:
                    rows = prepared[key]
                    if candidate.family != "trees" and key not in self._typical:
                        self._typical[key] = typical_penalty(rows[0].X, rows[0].y)
                    tasks.append((candidate, number, split.label, *rows))
        Parallel(n_jobs=self.ranker.n_jobs, prefer="threads")(
            delayed(self._fit_path)(*task) for task in tasks
        )

    def _fit_path(
        self,
        candidate: Candidate,
        number: int,
        label: str,
        train: TrainingRows,
        test: TrainingRows,
    ) -> None:
        """Fit along the values of the parameter, and evaluate each fit on the test rows."""
        if self.is_late() and (candidate is not self.candidates[0] or number > 0):
            return
        begin = perf_counter()
        values, kept = candidate.results[number], {}
        quality: dict[int, float] = {}
        try:
            for position, scores in path_scores(candidate, train, test):
                candidate.fits += 1
                values[position] = test.evaluate(self.measure, scores, self.list_rows)
                kept[position] = scores
                if candidate.family == "trees":
                    quality[position] = tree_quality(candidate, test, scores, values[position])
                    if self._ends_rounds(candidate, number, position, quality):
                        break
                elif number == 0 and self._declines(candidate, position):
                    candidate.tried = slice(candidate.tried.start, position + 1)
                    break
        except ValueError as error:  # trees on constant columns, say
            if candidate.family != "trees":
                raise
            candidate.dropped = f"cannot be fitted: {str(error).rstrip('.')}"
            return
        candidate.test_scores[number] = {**candidate.test_scores.get(number, {}), **kept}
        now = perf_counter()
        candidate.seconds += now - begin
        if self.ranker.verbose:
            highest = np.nanmax(values, initial=-np.inf)
            line = f"{now - self.begin:8.2f} s  {label}, {candidate.name}: {highest:.4f}"
            print(f"[forerank] {line}", flush=True)

    def _ends_rounds(
        self, candidate: Candidate, number: int, position: int, quality: dict[int, float]
    ) -> bool:
        """Whether boosting ends at this position, which other folds then keep to.

        In the first fold it ends once the best number of rounds, by the quality of the fits so far,
        is exceeded by far, or twice the rounds have gained nothing in the measure. A fold of one
        class has no values, and goes on.
        """
        values, rounds = candidate.results[number], candidate.grid
        if number > 0 or not np.isfinite(values).any():
            return self.is_late()
        best = rounds[max(quality, key=lambda k: quality[k])]
        earlier = values[rounds <= rounds[position] / 2]
        gain = np.nanmax(values) - np.nanmax(earlier, initial=-np.inf)
        past = rounds[position] >= _ROUNDS_BEYOND * best or gain <= _NEGLIGIBLE_GAIN
        ends = (past and rounds[position] >= _FEWEST_ROUNDS) or self.is_late()
        if ends:
            candidate.tried = slice(candidate.tried.start, position + 1)
        return bool(ends)

    def _declines(self, candidate: Candidate, position: int) -> bool:
        """Whether, in the first fold, the last penalties are no better than a larger one before
        them and all weaker than a typical one, so that weaker ones are not tried; see `_extend`.
        """
        values = candidate.results[0]
        if np.isnan(values[position]) or self.is_few():
            return False
        begin = position - _DECLINING + 1
        is_weak = candidate.grid[begin] <= self._typical[candidate.key]
        return bool(is_weak and np.nanargmax(values) < begin)

    def is_late(self) -> bool:
        """Whether the time budget is used up."""
        budget = self.ranker.time_budget
        return budget is not None and perf_counter() - self.begin > budget

    def _drop(self, candidates: list[Candidate], n_done: int, split: Split | None = None) -> None:
        """Drop candidates without scores, families that are behind, and, unless the rows of a class
        are few, what is not worth another fold, after `n_done` folds or a trial on a `split`.
        """
        splits = dict(enumerate(self.splits[:n_done])) if split is None else {0: split}
        numbers = [k for k in splits if any(k in c.test_scores for c in candidates)]
        if not self.is_late() and numbers:
            for candidate in candidates:
                known = all(k in candidate.test_scores for k in numbers)
                if candidate.dropped is None and not known:
                    candidate.dropped = "gives no scores"
        active = [c for c in candidates if c.dropped is None and c.test_scores.keys() >= {*numbers}]
        folds = [k for k in numbers if all(np.isfinite(c.results[k]).any() for c in active)]
        if not active or not folds:
            return
        tests = {k: self.data.labels(splits[k].test) for k in folds}
        values = FoldValues(tests, self.measure, self.list_rows)
        share = 1.0 - n_done / len(self.splits)
        where = f"the first {n_done} folds" if n_done > 1 else splits[0].label
        for family in () if self.is_few() else FAMILIES:
            group = [c for c in active if c.family == family]
            leader = self.best_of(family, group)
            if leader is not None:
                decades = self._decades(leader[0])
                drop_without_gain(group, leader, decades, values, share, where)
        drop_behind([c for c in active if c.dropped is None], values, where)

    # --- Beyond the ends ---

    def _extend(self) -> None:
        """Extend a path of penalties at whose best end the curve still rises: to those that the
        trial or the first fold left out, and beyond the grid, unless the user listed all penalties.
        """
        for family in ("linear", "additive"):
            while (found := self.best_of(family)) and not self.is_late():
                candidate, place = found[0], self.next_place(*found)
                if candidate.lacks(place) and self._extensions[family] > 0:
                    self._extensions[family] -= 1
                    place = candidate.extend(place == -1)
                if place is None or candidate.lacks(place):
                    break
                left, candidate.tried = candidate.positions, slice(place, place + 1)
                known = np.flatnonzero(np.isfinite(candidate.results).any(axis=1)).tolist()
                self._fit_round([candidate], {k: self.splits[k] for k in known})
                candidate.tried = slice(min(left[0], place), max(left[-1], place) + 1)

    def rises_beyond(self, candidate: Candidate, position: int) -> bool:
        """Whether a position is an end of the whole grid at which the curve still rises."""
        return candidate.lacks(self.next_place(candidate, position))

    def next_place(self, candidate: Candidate, position: int) -> int | None:
        """The position next to an end of the penalties tried where the curve still rises, if the
        last step was worth it; one beyond the grid, if it rose by more than its standard error.
        """
        if candidate.parameter != "alpha":
            return None
        tried = np.flatnonzero(np.isfinite(candidate.results).any(axis=0))
        curve = self.curve(candidate)
        for end, inner, step in ((tried[0], 1, -1), (tried[-1], -2, 1)):
            if position == end and tried.size > 2 and curve[end] > curve[tried[inner]]:
                behind = candidate.measured[:, tried[inner]] - candidate.measured[:, end]
                error, place = float(corrected_error(behind, self._test_ratio)), int(end) + step
                is_noise = candidate.lacks(place) and -behind.mean() <= error
                return None if is_noise or is_negligible(behind, 1.0) else place
        return None

    # --- Average ---

    def _average(self) -> None:
        """Add the average of the best linear candidate, on columns or on additive maps, and of the
        best trees.
        """
        best = {name: found for name in FAMILIES if (found := self.best_of(name))}
        linear = [best[name] for name in ("linear", "additive") if name in best]
        if not linear or "trees" not in best or self.is_late():
            return
        folds = self._common_folds(best)
        if len(best) < 2 or "trees" not in best:
            return
        part = max(linear, key=lambda found: float(found[0].results[folds, found[1]].mean()))
        self.parts = [part, best["trees"]]
        held = held_out_rows(self.data, {k: self.splits[k] for k in folds})
        scores = np.column_stack([_scores_of(*each, folds) for each in self.parts])
        self.weights = average_weights(held, scores)
        average = scores @ self.weights
        results = np.full((len(self.splits), 1), np.nan)
        for k in folds:
            test = self.data.labels(self.splits[k].test)
            results[k, 0] = test.evaluate(self.measure, average[held.fold == k], self.list_rows)
        name = f"average of {' and '.join(candidate.name for candidate, _ in self.parts)}"
        made = Candidate("average", name, "", None, None, np.array([np.nan]), results)
        self.candidates.append(made)
        self._excess = {
            name: loss_excess(held, _scores_of(*found, folds), average)
            for name, found in best.items()
        }

    # --- Results ---

    def best_of(
        self, family: str, candidates: list[Candidate] | None = None
    ) -> tuple[Candidate, int] | None:
        """The selected candidate of a family, among these or all, and the position of its value;
        see `select`.
        """
        finished = [
            c
            for c in (self.candidates if candidates is None else candidates)
            if c.family == family and c.dropped is None and np.isfinite(c.means).any()
        ]
        if not finished:
            return None
        most = max(len(c.measured) for c in finished)
        finished = [c for c in finished if len(c.measured) == most]
        decades = [self._decades(c) for c in finished]
        winner, position = select([c.measured for c in finished], decades, self._test_ratio)
        return finished[winner], position

    def _decades(self, candidate: Candidate) -> Vector:
        """Distances of the penalties from the typical one; zeros for other parameters."""
        if candidate.parameter != "alpha" or candidate.family == "average":
            return np.zeros(candidate.grid.size)
        typical = self._typical.get(candidate.key, _DEFAULT_ALPHA)
        return np.abs(np.log10(candidate.grid / typical))

    def best(self) -> tuple[Candidate, int]:
        """The selected candidate and the position of its value; see `select_family`."""
        found = {name: each for name in FAMILIES if (each := self.best_of(name))}
        if not found:
            first = self.candidates[0]
            wanted = _DEFAULT_ALPHA if first.parameter == "alpha" else _DEFAULT_ROUNDS
            return first, int(np.argmin(np.abs(np.log(first.grid / wanted))))
        folds = self._common_folds(found)
        results = {name: c.results[folds, position] for name, (c, position) in found.items()}
        return found[select_family(results, self._excess, self._test_ratio, few=self.is_few())]

    @cached_property
    def n_rarest(self) -> int:
        """Number of rows of the rarest class."""
        return int(np.unique(self.data.y, return_counts=True)[1].min())

    def is_few(self) -> bool:
        """Whether that is too few to compare families, or fits of a family on some of the folds."""
        return self.n_rarest < FEW_CLASS_ROWS

    def _common_folds(self, found: dict[str, tuple[Candidate, int]]) -> list[int]:
        """Numbers of the folds that all have results of; families that lack some of the folds that
        others have, because the time was up, are removed.
        """
        known = {
            name: set(np.flatnonzero(np.isfinite(c.results[:, position])).tolist())
            for name, (c, position) in found.items()
        }
        first = set(range(self.n_folds))
        most = max(len(folds & first) for folds in known.values())
        for name in [name for name, folds in known.items() if len(folds & first) < most]:
            del found[name], known[name]
        return sorted(set.intersection(*known.values()))

    def parts_of(self, selected: Candidate, position: int) -> list[tuple[Candidate, int]]:
        """The selected candidate with the position of its value, or the parts of the average."""
        return self.parts if selected.family == "average" else [(selected, position)]

    def curve(self, candidate: Candidate) -> Vector:
        """The values by which those of the parameter and candidates are compared."""
        return penalty_curve(candidate.measured, self._test_ratio)

    @property
    def _test_ratio(self) -> float:
        return self.splits[0].test.size / self.splits[0].train.size


def _scores_of(candidate: Candidate, position: int, folds: list[int]) -> Vector:
    """Test scores of some folds, one after another."""
    return np.concatenate([candidate.test_scores[k][position] for k in folds])
