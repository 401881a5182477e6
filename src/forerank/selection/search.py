"""State of the search of `Ranker`: folds, candidate methods along paths of penalties, and which
candidates are still active.

Each method is fitted along a path of penalties, which costs little more than one fit. After the
first folds, methods that are clearly worse are dropped, and so are the penalties at both ends of a
path. A path whose end is selected is extended beyond it. Results depend on the clock only through a
time budget.
"""

import warnings
from dataclasses import replace
from inspect import signature
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils import check_random_state

from forerank._kernels import serial_blas
from forerank._typing import Vector
from forerank._validation import is_integer
from forerank.design import make_design
from forerank.estimators.average_precision import MAPRanker
from forerank.estimators.partial_auc import PartialAUCRanker
from forerank.estimators.top_push import TopPush, TopRanker
from forerank.metrics.registry import Measure
from forerank.selection.candidates import (
    Candidate,
    drop_clearly_worse,
    penalty_curve,
    select,
    typical_penalty,
)
from forerank.selection.methods import (
    METHODS,
    fitted_scaler,
    method_names,
    named_feature_maps,
    resolve_method,
)
from forerank.selection.training_rows import (
    Split,
    TrainingRows,
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
# Penalties beyond an end of the path that are tried at most.
_MOST_EXTENSIONS = 3
# Penalty if there are no folds to compare penalties on.
_DEFAULT_ALPHA = 1e-3


class Search:
    """State of the search: folds, candidates, and the time used.

    Attributes
    ----------
    data : TrainingRows
        The rows to search on, a sample of those given if these are many.
    splits : list of Split
    candidates : list of Candidate
    maps : dict
        Feature maps by name.
    measure : Measure
        With the depth of the complete list in its title.
    list_rows : int
        Rows of the complete list, for measures of the first k.
    notes : list of str
        For the user.
    """

    def __init__(
        self, ranker: Any, measure: Measure, alphas: Vector, data: TrainingRows, graded: bool
    ) -> None:
        self.ranker, self.alphas, self.data, self.graded = ranker, alphas, data, graded
        self.begin = perf_counter()
        self.notes: list[str] = []
        self.random = check_random_state(ranker.random_state)
        n = self.list_rows = ranker.list_rows or data.y.size
        self.measure = measure.for_rows(n, n, grouped=data.group is not None)
        self.maps = named_feature_maps(ranker.maps, self._seed())
        self._sample()
        repeats = 1
        if is_integer(ranker.cv):
            repeats = min(_MOST_REPEATS, max(1, _ROWS_OF_REPEATS // self.data.y.size))
        self.splits, notes = make_splits(ranker.cv, self.data, self._seed, repeats=repeats)
        # Folds that are no repetition of others.
        self.n_folds = len(self.splits) // repeats
        self.notes += notes
        # Typical penalties by feature map.
        self._typical: dict[str | None, float] = {}
        self.candidates = self._make_candidates()

    def _seed(self) -> int:
        return int(self.random.randint(np.iinfo(np.int32).max))

    def _sample(self) -> None:
        """Restrict the search to a sample of many rows, unless `cv` lists row numbers."""
        data, most, cv = self.data, self.ranker.search_rows, self.ranker.cv
        by_numbers = not isinstance(cv, int | np.integer) and not hasattr(cv, "split")
        if most is None or by_numbers or data.y.size <= most:
            return
        rows = stratified_sample(data.y, data.group, int(most), self._seed())
        if rows.size < data.y.size:
            self.data = data.take(rows)
            self.notes.append(f"the selection was made on {rows.size:,} of {data.y.size:,} rows")

    # --- Candidates ---

    def _make_candidates(self) -> list[Candidate]:
        given = self.ranker.methods
        if isinstance(given, str) and given != "auto":
            given = [given]
        automatic = isinstance(given, str)
        names = method_names(self.ranker.metric) if automatic else [*map(resolve_method, given)]
        if not names:
            raise ValueError('methods is empty; give names of methods, or "auto".')
        made = {name: METHODS[name].make(self.measure.parameter) for name in names}
        rankers = {name: ranker for name, ranker in made.items() if self._supports(ranker)}
        if not rankers:
            given_beside = {"grades": self.graded, "groups": self.data.group is not None}
            given_beside["sample weights"] = self.data.weight is not None
            needed = " and ".join(what for what, present in given_beside.items() if present)
            raise ValueError(
                f"None of the methods {', '.join(map(repr, names))} takes {needed}; pairwise "
                "methods do."
            )
        pairs: list[tuple[str | None, str, Any]]
        pairs = [(None, name, ranker) for name, ranker in rankers.items()]
        for map_name in self.maps:
            pairs += [(map_name, name, clone(r)) for name, r in list(rankers.items())[:2]]
        shape = len(self.splits), self.alphas.size
        return [Candidate(name, map, ranker, np.full(shape, np.nan)) for map, name, ranker in pairs]

    def _supports(self, ranker: Any) -> bool:
        """Whether a ranker takes grades, groups and weights as far as there are any."""
        data = self.data
        if self.graded:
            if not hasattr(ranker, "graph"):
                return False
            ranker.set_params(graph="order")
        top = isinstance(ranker, TopRanker | TopPush | PartialAUCRanker | MAPRanker)
        if data.group is not None and top:
            return False
        return data.weight is None or "sample_weight" in signature(ranker.fit).parameters

    # --- Fits ---

    def run(self) -> None:
        """Fit all candidates on all folds, and drop those that are clearly worse on the way."""
        with serial_blas():
            self._run()

    def _run(self) -> None:
        folds = range(len(self.splits))
        several = len(self.candidates) > 1
        if several and folds and self.splits[0].train.size > _MANY_ROWS:
            self._trial()
        # The first two folds one by one, and repeated folds after all others, since candidates may
        # be dropped after each round.
        rounds = [list(folds)]
        if several:
            rounds = [[k] for k in folds[:2]] + [list(folds[2 : self.n_folds])]
            rounds += [list(folds[self.n_folds :])]
        done: list[int] = []
        for numbers in filter(None, rounds):
            some_follow = len(done) + len(numbers) < len(folds)
            splits = {k: self.splits[k] for k in numbers}
            self._fit_round(self.candidates, splits, keep_scores=some_follow)
            done += numbers
            if some_follow:
                self._drop(self.candidates, {k: self.splits[k] for k in done})
        for candidate in self.candidates:
            candidate.test_scores.clear()
        self._extend()

    def _trial(self) -> None:
        """Drop candidates that are clearly worse on a sample of the training rows of a fold."""
        train, test = self.splits[0].train, self.splits[0].test
        order = stratified_order(self.data.labels(train), np.random.default_rng(self._seed()))
        split = Split(train[order[:_TRIAL_ROWS]], test, "a sample of the rows")
        empty = np.full((1, self.alphas.size), np.nan)
        trial = [replace(c, results=empty.copy(), test_scores={}) for c in self.candidates]
        self._fit_round(trial, {0: split}, keep_scores=True)
        self._drop(trial, {0: split})
        for candidate, tried in zip(self.candidates, trial, strict=True):
            candidate.dropped = tried.dropped
            # More rows need a weaker penalty: only strong ones are dropped for all rows.
            candidate.tried = slice(tried.tried.start, None)
            candidate.seconds, candidate.fits = tried.seconds, tried.fits

    def _fit_round(
        self, candidates: list[Candidate], splits: dict[int, Split], *, keep_scores: bool = False
    ) -> None:
        """Fit each active candidate on these splits, and keep its results."""
        active = [candidate for candidate in candidates if candidate.dropped is None]
        tasks = []
        for number, split in splits.items():
            prepared: dict[str | None, tuple[TrainingRows, TrainingRows]] = {}
            for candidate in active:
                if candidate.dropped is None and candidate.map not in prepared:
                    try:
                        prepared[candidate.map] = self.prepare(split, candidate.map)
                    except (TypeError, ValueError) as error:
                        if candidate.map is None:
                            raise
                        candidate.dropped = f"the map fails: {error}"
                if candidate.dropped is None:
                    rows = prepared[candidate.map]
                    if candidate.map not in self._typical:
                        self._typical[candidate.map] = typical_penalty(rows[0].X, rows[0].y)
                    tasks.append((candidate, number, split.label, *rows, keep_scores))
        Parallel(n_jobs=self.ranker.n_jobs, prefer="threads")(
            delayed(self._fit_path)(*task) for task in tasks
        )

    def prepare(self, split: Split, map_name: str | None) -> tuple[TrainingRows, TrainingRows]:
        """Training and test rows, scaled and mapped by transformers fitted on the training rows."""
        train, test = self.data.take(split.train), self.data.take(split.test)
        scaler = fitted_scaler(self.ranker.scale, train.X, train.weight)
        if scaler is not None:
            train, test = (replace(part, X=scaler.transform(part.X)) for part in (train, test))
        if map_name is not None:
            mapped = clone(self.maps[map_name]).fit(train.X)
            train, test = (replace(part, X=mapped.transform(part.X)) for part in (train, test))
        return train, test

    def _fit_path(
        self,
        candidate: Candidate,
        number: int,
        label: str,
        train: TrainingRows,
        test: TrainingRows,
        keep_scores: bool,
    ) -> None:
        """Fit along the path of penalties, and evaluate each fit on the test rows."""
        if self.is_late() and (candidate is not self.candidates[0] or number > 0):
            return
        begin = perf_counter()
        values = candidate.results[number]
        design = make_design(test.X)
        alphas = self.alphas[candidate.tried]
        path = candidate.loose_ranker.iter_path(
            train.X, train.y, alphas, **train.fit_arguments(candidate.ranker)
        )
        kept = {}
        for position, fitted in zip(range(self.alphas.size)[candidate.tried], path, strict=True):
            candidate.fits += 1
            scores = design.scores(fitted.coef_[0])
            values[position] = test.evaluate(self.measure, scores, self.list_rows)
            kept[position] = scores
        if keep_scores:
            candidate.test_scores[number] = kept
        now = perf_counter()
        candidate.seconds += now - begin
        if self.ranker.verbose:
            highest = np.nanmax(values, initial=-np.inf)
            line = f"{now - self.begin:8.2f} s  {label}, {candidate.name}: {highest:.4f}"
            print(f"[forerank] {line}", flush=True)

    def is_late(self) -> bool:
        """Whether the time budget is used up."""
        budget = self.ranker.time_budget
        return budget is not None and perf_counter() - self.begin > budget

    def _drop(self, candidates: list[Candidate], splits: dict[int, Split]) -> None:
        """Drop what is clearly worse than the best fit, and candidates without scores."""
        numbers = [k for k in splits if any(k in c.test_scores for c in candidates)]
        tests = {k: self.data.labels(splits[k].test) for k in numbers}
        where = next(iter(splits.values())).label
        if not self.is_late() and numbers:
            for candidate in candidates:
                if candidate.dropped is None and not all(k in candidate.test_scores for k in tests):
                    candidate.dropped = "gives no scores"
        drop_clearly_worse(candidates, tests, self.measure, self.list_rows, where)

    # --- Beyond the ends ---

    def _extend(self) -> None:
        """Extend the path beyond an end that is selected, as long as the curve rises there.

        Penalties that the user listed are all there are.
        """
        for _ in range(_MOST_EXTENSIONS if is_integer(self.ranker.alphas) else 0):
            selected, position = self.best()
            if self.is_late() or not self.rises_beyond(selected, position):
                return
            inner, place = (1, 0) if position == 0 else (position - 1, position + 1)
            ratio = self.alphas[position] / self.alphas[inner]
            self._insert(place, self.alphas[position] * min(max(ratio, 0.1), 10.0))
            selected.tried = slice(place, place + 1)
            self._fit_round([selected], dict(enumerate(self.splits)))

    def rises_beyond(self, candidate: Candidate, position: int) -> bool:
        """Whether a position is an end of the path at which the curve still rises.

        Not where the penalty next to the end was dropped because it changes nothing.
        """
        last = self.alphas.size - 1
        if last < 2 or position not in (0, last):
            return False
        curve = self.curve(candidate)
        return bool(curve[position] > curve[1 if position == 0 else last - 1])

    def _insert(self, position: int, alpha: float) -> None:
        """Insert a penalty, without results so far."""
        self.alphas = np.insert(self.alphas, position, alpha)
        for candidate in self.candidates:
            candidate.results = np.insert(candidate.results, position, np.nan, axis=1)

    # --- Results ---

    def best(self) -> tuple[Candidate, int]:
        """The selected candidate and the position of its penalty; see `select`."""
        finished = [c for c in self.candidates if c.dropped is None and np.isfinite(c.means).any()]
        if not finished:
            nearest = np.argmin(np.abs(np.log(self.alphas / _DEFAULT_ALPHA)))
            return self.candidates[0], int(nearest)
        most = max(len(c.measured) for c in finished)
        finished = [c for c in finished if len(c.measured) == most]
        typical = [self._typical.get(c.map, _DEFAULT_ALPHA) for c in finished]
        results = [c.measured for c in finished]
        winner, position = select(results, self.alphas, typical, self._test_ratio)
        return finished[winner], position

    def curve(self, candidate: Candidate) -> Vector:
        """The values by which penalties and candidates are compared."""
        return penalty_curve(candidate.measured, self._test_ratio)

    @property
    def _test_ratio(self) -> float:
        return self.splits[0].test.size / self.splits[0].train.size

    def table(self) -> dict[str, Any]:
        """`cv_results_` of the ranker: an entry per candidate and penalty."""
        n_alphas, candidates = self.alphas.size, self.candidates
        results = np.concatenate([c.results.T for c in candidates])
        means = np.concatenate([c.means for c in candidates])
        table: dict[str, Any] = {
            "method": [c.name for c in candidates for _ in self.alphas],
            "alpha": np.tile(self.alphas, len(candidates)),
        }
        table |= {f"split{k}_test_score": results[:, k] for k in range(len(self.splits))}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # no value in any fold
            deviations = np.nanstd(results, axis=1)
        table["mean_test_score"] = means
        table["std_test_score"] = np.where(np.isfinite(means), deviations, np.nan)
        # Means of dropped candidates are over fewer folds: they rank after the others.
        dropped = np.repeat([c.dropped is not None for c in candidates], n_alphas)
        key = np.where(np.isfinite(means), -means + 10.0 * dropped, 100.0)
        table["rank_test_score"] = rankdata(key, method="min").astype(int)
        table["mean_fit_time"] = np.repeat(
            [c.seconds / max(c.fits, 1) for c in candidates], n_alphas
        )
        table["left_out"] = [c.dropped or "" for c in candidates for _ in self.alphas]
        return table
