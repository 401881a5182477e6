"""State of the search of `Ranker`: folds, candidate methods along paths of penalties, and which
candidates are still active.

Each method is fitted along a path of penalties, which costs little more than one fit. Methods that
are clearly worse after the first folds are dropped. Results depend on the clock only through a time
budget.
"""

import warnings
from dataclasses import dataclass, field, replace
from inspect import signature
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils import check_random_state

from forerank._typing import Index, Vector
from forerank.design import make_design
from forerank.estimators.average_precision import MAPRanker
from forerank.estimators.partial_auc import PartialAUCRanker
from forerank.estimators.top_push import TopPush, TopRanker
from forerank.metrics.registry import Measure
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
    assign_blocks,
    make_splits,
    stratified_order,
    stratified_sample,
)

__all__ = ["Candidate", "Search", "best_positions", "smoothed", "with_loose_tolerance"]

# Test rows are split into this many blocks; a method is dropped when it trails the best one by this
# many standard errors of their mean difference over the blocks.
_BLOCKS = 8
_STANDARD_ERRORS = 3.0
# Above this many training rows, methods are first tried on a sample of them of this size.
_MANY_ROWS = 20_000
_TRIAL_ROWS = 8_000
# Tolerances of fits within the folds, by stopping criterion: measures do not change below them.
_LOOSE_TOL = {"gradient": 3e-3, "gap": 1e-3}
# Penalty if there are no folds to compare penalties on.
_DEFAULT_ALPHA = 1e-3


@dataclass
class Candidate:
    """A method on the columns or on a feature map, and its results: a row per fold, a column per
    alpha.
    """

    method: str
    map: str | None
    ranker: Any
    results: Vector
    seconds: float = 0.0
    fits: int = 0
    dropped: str | None = None  # reason why it is no longer tried
    # Test scores of the penalty with the highest value, by number of the fold.
    test_scores: dict[int, Vector] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.method if self.map is None else f"{self.map}: {self.method}"

    @property
    def measured(self) -> Vector:
        """Results of the folds that have any."""
        return self.results[np.isfinite(self.results).any(axis=1)]

    @property
    def means(self) -> Vector:
        """Means over the folds, by alpha; NaN for penalties that lack a fold the candidate has."""
        values = self.measured
        return values.mean(axis=0) if values.size else np.full(self.results.shape[1], np.nan)


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
        self.splits, notes = make_splits(ranker.cv, self.data, graded, self._seed)
        self.notes += notes
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
        folds = range(len(self.splits))
        several = len(self.candidates) > 1
        if several and folds and self.splits[0].train.size > _MANY_ROWS:
            self._trial()
        # The first two folds one by one, since candidates may be dropped after each.
        rounds = [[k] for k in folds[:2]] + [list(folds[2:])] if several else [list(folds)]
        done: list[int] = []
        for numbers in filter(None, rounds):
            self._fit_round(self.candidates, {k: self.splits[k] for k in numbers})
            done += numbers
            if several and len(done) < len(folds):
                self._drop(self.candidates, {k: self.splits[k] for k in done})

    def _trial(self) -> None:
        """Drop candidates that are clearly worse on a sample of the training rows of a fold."""
        train, test = self.splits[0].train, self.splits[0].test
        order = stratified_order(self.data.labels(train), np.random.default_rng(self._seed()))
        split = Split(train[order[:_TRIAL_ROWS]], test, "a sample of the rows")
        empty = np.full((1, self.alphas.size), np.nan)
        trial = [replace(c, results=empty.copy(), test_scores={}) for c in self.candidates]
        self._fit_round(trial, {0: split})
        self._drop(trial, {0: split})
        for candidate, tried in zip(self.candidates, trial, strict=True):
            candidate.dropped = tried.dropped
            candidate.seconds, candidate.fits = tried.seconds, tried.fits

    def _fit_round(self, candidates: list[Candidate], splits: dict[int, Split]) -> None:
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
                    tasks.append((candidate, number, split.label, *prepared[candidate.map]))
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
        self, candidate: Candidate, number: int, label: str, train: TrainingRows, test: TrainingRows
    ) -> None:
        """Fit along the path of penalties, and evaluate each fit on the test rows."""
        if self.is_late() and (candidate is not self.candidates[0] or number > 0):
            return
        begin = perf_counter()
        values = candidate.results[number]
        design = make_design(test.X)
        path = with_loose_tolerance(candidate.ranker).iter_path(
            train.X, train.y, self.alphas, **train.fit_arguments(candidate.ranker)
        )
        best = -np.inf
        for position, fitted in enumerate(path):
            candidate.fits += 1
            scores = design.scores(fitted.coef_[0])
            values[position] = test.evaluate(self.measure, scores, self.list_rows)
            if values[position] > best:
                best = values[position]
                candidate.test_scores[number] = scores
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

    # --- Elimination ---

    def _drop(self, candidates: list[Candidate], splits: dict[int, Split]) -> None:
        """Drop the candidates that are clearly worse than the best one on the same test rows."""
        numbers = [k for k in splits if any(k in c.test_scores for c in candidates)]
        active = [
            c for c in candidates if c.dropped is None and all(k in c.test_scores for k in numbers)
        ]
        for candidate in candidates:
            without = candidate.dropped is None and candidate not in active
            if active and without and not self.is_late():
                candidate.dropped = "gives no scores"
        if not active or not numbers:
            return
        measured = [k for k in numbers if all(np.isfinite(c.results[k]).any() for c in active)]

        def highest(candidate: Candidate) -> float:
            return float(np.mean([np.nanmax(candidate.results[k]) for k in measured]))

        leader = max(active, key=highest)
        for candidate in active:
            if candidate is leader:
                continue
            parts = [self._block_differences(leader, candidate, k, splits[k]) for k in measured]
            differences = np.concatenate(parts)
            differences = differences[np.isfinite(differences)]
            if differences.size < 4:
                continue
            error = float(differences.std(ddof=1)) / np.sqrt(differences.size)
            behind = float(differences.mean())
            if behind > _STANDARD_ERRORS * error and behind > 0.0:
                where = splits[numbers[0]].label
                candidate.dropped = f"behind {leader.name} by {behind:.2g} on {where}"

    def _block_differences(
        self, leader: Candidate, other: Candidate, number: int, split: Split
    ) -> Vector:
        """The measure of the leader less that of the other, on each block of the test rows."""
        test = self.data.labels(split.test)
        block = assign_blocks(test, _BLOCKS, np.random.default_rng(0))
        differences = np.full(_BLOCKS, np.nan)
        for k in range(_BLOCKS):
            rows = np.flatnonzero(block == k)
            if rows.size > 1:
                first, second = (
                    test.labels(rows).evaluate(
                        self.measure, c.test_scores[number][rows], self.list_rows
                    )
                    for c in (leader, other)
                )
                differences[k] = first - second
        return differences

    # --- Results ---

    def best(self) -> tuple[Candidate, int]:
        """The candidate and the position of the penalty with the highest smoothed mean.

        Of penalties with the same mean, such as the highest possible one, the middle one.
        """
        finished = [c for c in self.candidates if c.dropped is None and np.isfinite(c.means).any()]
        if not finished:
            nearest = np.argmin(np.abs(np.log(self.alphas / _DEFAULT_ALPHA)))
            return self.candidates[0], int(nearest)
        most = max(len(c.measured) for c in finished)
        finished = [c for c in finished if len(c.measured) == most]
        smooth = [smoothed(c.means) for c in finished]
        winner = int(np.argmax([np.nanmax(values) for values in smooth]))
        ties = best_positions(smooth[winner])
        return finished[winner], int(ties[(ties.size - 1) // 2])

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


def with_loose_tolerance(ranker: Any) -> Any:
    """A copy of the ranker that stops as soon as measures would no longer change."""
    smooth = getattr(ranker, "loss", "hinge") != "hinge" and not hasattr(ranker, "solver")
    return clone(ranker).set_params(tol=_LOOSE_TOL["gradient" if smooth else "gap"])


def best_positions(values: Vector) -> Index:
    """Positions of the highest value, up to rounding errors."""
    return np.flatnonzero(values >= np.nanmax(values) - 1e-12)


def smoothed(values: Vector) -> Vector:
    """Each value with weight 2, averaged with its finite neighbours of weight 1."""
    total, weight = np.zeros(values.size), np.zeros(values.size)
    for shift, share in ((-1, 1.0), (0, 2.0), (1, 1.0)):
        moved = np.full(values.size, np.nan)
        low, high = max(0, shift), min(values.size, values.size + shift)
        moved[low:high] = values[low - shift : high - shift]
        known = np.isfinite(moved)
        total[known] += share * moved[known]
        weight[known] += share
    return np.where(np.isfinite(values), total / np.maximum(weight, 1.0), np.nan)
