"""The search behind `Ranker`: folds, candidates along paths of penalties, and who is left out
early.

Each method is fitted along a path of penalties, which costs little more than one fit. Methods that
are clearly behind after the first folds are left out of the others. Nothing but a time budget looks
at the clock.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from inspect import signature
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import rankdata
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, check_cv
from sklearn.utils import check_random_state

from forerank._text import counted
from forerank._typing import Index, Matrix, Vector
from forerank._validation import check_number
from forerank.design import make_design
from forerank.estimators.average_precision import MAPRanker
from forerank.estimators.partial_auc import PartialAUCRanker
from forerank.estimators.top_push import TopPush, TopRanker
from forerank.metrics.registry import Measure
from forerank.selection.methods import METHODS, fitted_scaler, method_names, named_maps

__all__ = ["Candidate", "Data", "Search", "drawn", "quick"]


# Test rows are dealt into so many blocks; a method that is behind by so many standard errors of its
# mean difference over the blocks is left out.
_BLOCKS = 8
_STANDARD_ERRORS = 3.0
# Beyond so many training rows, methods are first tried on so many of them.
_MANY_ROWS = 20_000
_TRIAL_ROWS = 8_000
# Fits within the folds stop earlier than the last one: measures do not see the difference.
_TOL = {"gradient": 3e-3, "gap": 1e-3}
# A gain of the measure from twice the rows that is not worth having, as a share of it; and the rows
# of the smaller class below which folds have nothing to say about that.
_NO_GAIN = 0.01
_FEWEST_FOR_A_CURVE = 30
# With search_rows, so many rows of the rarest class are kept, or all.
_FEWEST_OF_A_CLASS = 200
# Where nothing can be tried.
_DEFAULT_ALPHA = 1e-3


@dataclass
class Candidate:
    """A method on the columns or on a map of them, and how it did: a row per fold, a column per
    alpha.
    """

    method: str
    map: str | None
    ranker: Any
    results: Vector
    seconds: float = 0.0
    fits: int = 0
    left_out: str | None = None
    # Of the penalty that did best, by fold.
    test_scores: dict[int, Vector] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.method if self.map is None else f"{self.map}: {self.method}"


@dataclass(frozen=True)
class Data:
    """The rows of a problem."""

    X: Matrix
    y: NDArray
    weight: Vector | None
    group: NDArray[np.integer] | None

    def take(self, rows: Index) -> "Data":
        return Data(
            self.X[rows],
            self.y[rows],
            None if self.weight is None else self.weight[rows],
            None if self.group is None else self.group[rows],
        )

    def with_columns(self, X: Matrix) -> "Data":
        return replace(self, X=X)

    def passed_to(self, ranker: Any) -> dict[str, Any]:
        """What the fit of a ranker takes beside X and y."""
        taken = signature(ranker.fit).parameters
        found = {"sample_weight": self.weight, "qid": self.group}
        return {name: value for name, value in found.items() if value is not None and name in taken}


@dataclass(frozen=True)
class Fold:
    """Training and test rows of a fold, scaled and mapped; `n_list` rows are a whole list."""

    number: int
    train: Data
    test: Data
    n_list: int

    def measured(self, measure: Measure, scores: Vector, rows: Index | None = None) -> float:
        """The measure on the test rows, or some of them; NaN where they are of one class."""
        data = self.test if rows is None else self.test.take(rows)
        scores = scores if rows is None else scores[rows]
        function = measure.for_rows(
            scores.size, self.n_list, grouped=data.group is not None
        ).function
        try:
            return float(function(data.y, scores, sample_weight=data.weight, qid=data.group))
        except ValueError:  # one class only
            return np.nan


class Search:
    """Folds, candidates, and who is still in it."""

    def __init__(
        self, ranker: Any, measure: Measure, alphas: Vector, data: Data, graded: bool
    ) -> None:
        self.ranker, self.alphas, self.data, self.graded = ranker, alphas, data, graded
        self.begin = perf_counter()
        self.remarks: list[str] = []
        self.random = check_random_state(ranker.random_state)
        self.n_list = ranker.list_rows or data.y.size
        self.measure = measure.for_rows(self.n_list, self.n_list, grouped=data.group is not None)
        self.maps = named_maps(ranker.maps, self._seed())
        self._sample()
        self.folds = self._split()
        n_folds = len(self.folds)
        self.candidates = [
            Candidate(method, name, made, np.full((n_folds, alphas.size), np.nan))
            for method, name, made in self._menu()
        ]

    def _sample(self) -> None:
        """Fewer rows, where there are many and folds are not given by their numbers."""
        data, most = self.data, self.ranker.search_rows
        by_numbers = not isinstance(self.ranker.cv, int | np.integer) and not hasattr(
            self.ranker.cv, "split"
        )
        if most is None or by_numbers or data.y.size <= most:
            return
        some = drawn(data.y, data.group, int(most), self._seed())
        if some.size < data.y.size:
            self.data = data.take(some)
            self.remarks.append(f"the choice was made on {some.size:,} of {data.y.size:,} rows")

    # -- what is tried --

    def _menu(self) -> Iterator[tuple[str, str | None, Any]]:
        given = self.ranker.methods
        if isinstance(given, str) and given != "auto":
            given = [given]
        names = method_names(self.ranker.metric) if isinstance(given, str) else list(given)
        if not names:
            raise ValueError('methods is empty; name some, or leave it at "auto".')
        fitting = []
        for name in names:
            if name not in METHODS:
                raise ValueError(
                    f"There is no method {name!r}; choose among {', '.join(map(repr, METHODS))}."
                )
            made = METHODS[name].make(self.measure.parameter)
            if self.graded:
                if not hasattr(made, "graph"):
                    continue
                made.set_params(graph="order")
            if self.data.group is not None and isinstance(
                made, TopRanker | TopPush | PartialAUCRanker | MAPRanker
            ):
                continue
            if (
                self.data.weight is not None
                and "sample_weight" not in signature(made.fit).parameters
            ):
                continue
            fitting.append((name, made))
        if not fitting:
            what = " and ".join(
                text
                for text, there in (
                    ("grades", self.graded),
                    ("groups", self.data.group is not None),
                    ("sample weights", self.data.weight is not None),
                )
                if there
            )
            raise ValueError(
                f"None of the methods {', '.join(map(repr, names))} takes {what}; methods over pairs do."
            )
        yield from ((name, None, made) for name, made in fitting)
        for map_name in self.maps:
            yield from ((name, map_name, clone(made)) for name, made in fitting[:2])

    def _split(self) -> list[tuple[Index, Index]]:
        """Training and test rows of the folds; none where there is too little to split."""
        data, cv = self.data, self.ranker.cv
        splitter: Any
        if isinstance(cv, int | np.integer):
            check_number("cv", int(cv), low=2, integer=True)
            if data.group is not None:
                n_splits = min(int(cv), np.unique(data.group).size)
                splitter = (
                    GroupKFold(n_splits, shuffle=True, random_state=self._seed())
                    if n_splits > 1
                    else None
                )
            elif self.graded:  # a grade of a single row is no reason not to try
                n_splits = min(int(cv), data.y.size // 2)
                splitter = (
                    KFold(n_splits, shuffle=True, random_state=self._seed())
                    if n_splits > 1
                    else None
                )
            else:
                smallest = int(np.unique(data.y, return_counts=True)[1].min())
                n_splits = min(int(cv), smallest)
                splitter = (
                    StratifiedKFold(n_splits, shuffle=True, random_state=self._seed())
                    if n_splits > 1
                    else None
                )
                if n_splits < cv:
                    self.remarks.append(f"the smaller class has {counted(smallest, 'row')} only")
            if splitter is None:
                return []
        else:
            splitter = check_cv(cv, data.y, classifier=True)
        folds = [
            (np.asarray(train), np.asarray(test))
            for train, test in splitter.split(data.X, data.y, data.group)
        ]
        return [(train, test) for train, test in folds if np.unique(data.y[train]).size > 1]

    def _seed(self) -> int:
        return int(self.random.randint(np.iinfo(np.int32).max))

    # -- trying --

    def run(self) -> None:
        folds = range(len(self.folds))
        several = len(self.candidates) > 1
        if several and folds and self.folds[0][0].size > _MANY_ROWS:
            self._trial()
        # The first two folds one by one, since some may be left out after each; then the others
        # together.
        rounds = [[k] for k in folds[:2]] + [list(folds[2:])] if several else [list(folds)]
        done: list[int] = []
        for numbers in filter(None, rounds):
            self._round(numbers)
            done += numbers
            if several and len(done) < len(folds):
                self._leave_out(done)

    def _trial(self) -> None:
        """All methods on some of the rows of a fold, to see which are hopeless."""
        train, test = self.folds[0]
        some = train[
            spread(self.data.take(train), np.random.default_rng(self._seed()))[:_TRIAL_ROWS]
        ]
        self.folds.append((some, test))
        number = len(self.folds) - 1
        for candidate in self.candidates:
            candidate.results = np.vstack([candidate.results, np.full(self.alphas.size, np.nan)])
        self._round([number])
        self._leave_out([number])
        self.folds.pop()
        for candidate in self.candidates:
            candidate.results = candidate.results[:-1]
            candidate.test_scores.pop(number, None)

    def _round(self, numbers: list[int]) -> None:
        """Every candidate that is still in, on these folds."""
        alive = [candidate for candidate in self.candidates if candidate.left_out is None]
        tasks = []
        for number in numbers:
            prepared: dict[str | None, Fold] = {}
            for candidate in alive:
                if candidate.left_out is None and candidate.map not in prepared:
                    try:
                        prepared[candidate.map] = self._prepared(number, candidate.map)
                    except (TypeError, ValueError) as error:
                        if candidate.map is None:
                            raise
                        candidate.left_out = f"the map fails: {error}"
                if candidate.left_out is None:
                    tasks.append((candidate, prepared[candidate.map]))
        Parallel(n_jobs=self.ranker.n_jobs, prefer="threads")(
            delayed(self._follow)(candidate, fold) for candidate, fold in tasks
        )

    def _prepared(self, number: int, map_name: str | None) -> Fold:
        train, test = (self.data.take(rows) for rows in self.folds[number])
        scaler = fitted_scaler(self.ranker.scale, train.X, train.weight)
        if scaler is not None:
            train, test = (
                train.with_columns(scaler.transform(train.X)),
                test.with_columns(scaler.transform(test.X)),
            )
        if map_name is not None:
            mapped = clone(self.maps[map_name]).fit(train.X)
            train, test = (
                train.with_columns(mapped.transform(train.X)),
                test.with_columns(mapped.transform(test.X)),
            )
        return Fold(number, train, test, self.n_list)

    def _follow(self, candidate: Candidate, fold: Fold) -> None:
        """Fit along the penalties of a fold, and measure."""
        if self._late() and (candidate is not self.candidates[0] or fold.number > 0):
            return
        begin = perf_counter()
        row = candidate.results[fold.number]
        design = make_design(fold.test.X)
        best = -np.inf
        walk = quick(candidate.ranker).iter_path(
            fold.train.X, fold.train.y, self.alphas, **fold.train.passed_to(candidate.ranker)
        )
        for place, fitted in enumerate(walk):
            candidate.fits += 1
            scores = design.scores(fitted.coef_[0])
            row[place] = fold.measured(self.measure, scores)
            if row[place] > best:
                best = row[place]
                candidate.test_scores[fold.number] = scores
        candidate.seconds += perf_counter() - begin
        self._say(
            f"fold {fold.number + 1}, {candidate.name}: {np.nanmax(row, initial=-np.inf):.4f}"
        )

    def _late(self) -> bool:
        budget = self.ranker.time_budget
        return budget is not None and perf_counter() - self.begin > budget

    def _say(self, line: str) -> None:
        if self.ranker.verbose:
            print(f"[forerank] {perf_counter() - self.begin:8.2f} s  {line}", flush=True)

    # -- leaving out --

    def _leave_out(self, numbers: list[int]) -> None:
        """Leave out who is clearly behind the leader on the same test rows."""
        numbers = [
            k for k in numbers if any(k in c.test_scores for c in self.candidates)
        ]  # not a fold of one class
        alive = [
            c
            for c in self.candidates
            if c.left_out is None and all(k in c.test_scores for k in numbers)
        ]
        for candidate in self.candidates:
            if alive and candidate.left_out is None and candidate not in alive and not self._late():
                candidate.left_out = "gives no scores"
        if not alive or not numbers:
            return
        measured = [k for k in numbers if all(np.isfinite(c.results[k]).any() for c in alive)]
        leader = max(
            alive, key=lambda c: float(np.mean([np.nanmax(c.results[k]) for k in measured]))
        )
        for candidate in alive:
            if candidate is leader:
                continue
            differences = np.concatenate([self._by_blocks(leader, candidate, k) for k in measured])
            differences = differences[np.isfinite(differences)]
            if differences.size < 4:
                continue
            error = float(differences.std(ddof=1)) / np.sqrt(differences.size)
            behind = float(differences.mean())
            if behind > _STANDARD_ERRORS * error and behind > 0.0:
                where = (
                    "a part of the rows"
                    if numbers[0] >= len(candidate.results)
                    else f"fold {numbers[0] + 1}"
                )
                candidate.left_out = f"behind {leader.name} by {behind:.2g} on {where}"

    def _by_blocks(self, leader: Candidate, other: Candidate, number: int) -> Vector:
        """By how much the leader is ahead on each of some blocks of the test rows."""
        test = self.data.take(self.folds[number][1])
        fold = Fold(number, test, test, self.n_list)
        block = _dealt(test, np.random.default_rng(0))
        ahead = np.full(_BLOCKS, np.nan)
        for k in range(_BLOCKS):
            rows = np.flatnonzero(block == k)
            if rows.size > 1:
                first, second = (
                    fold.measured(self.measure, c.test_scores[number], rows)
                    for c in (leader, other)
                )
                ahead[k] = first - second
        return ahead

    # -- choosing --

    def means(self, candidate: Candidate) -> Vector:
        """The mean over the folds, for penalties that were tried on all folds on which the
        candidate was.
        """
        tried = candidate.results[np.isfinite(candidate.results).any(axis=1)]
        return tried.mean(axis=0) if tried.size else np.full(self.alphas.size, np.nan)

    def best(self) -> tuple[Candidate, int]:
        """Candidate and penalty with the highest mean; a penalty's neighbours have a say, since
        means are noisy.

        Of penalties with the same mean, such as the highest that is possible, the middle one.
        """
        finished = [
            c for c in self.candidates if c.left_out is None and np.isfinite(self.means(c)).any()
        ]
        if not finished:
            place = int(np.argmin(np.abs(np.log(self.alphas / _DEFAULT_ALPHA))))
            return self.candidates[0], place
        most = max(map(self._n_measured, finished))
        finished = [c for c in finished if self._n_measured(c) == most]
        smooth = [smoothed(self.means(c)) for c in finished]
        winner = int(np.argmax([np.nanmax(values) for values in smooth]))
        return finished[winner], _middle(_highest(smooth[winner]))

    def table(self) -> dict[str, Any]:
        n_folds = len(self.folds)
        results = np.concatenate([c.results.T for c in self.candidates]) if n_folds else None
        n_rows = len(self.candidates) * self.alphas.size
        means = np.concatenate([self.means(c) for c in self.candidates])
        found: dict[str, Any] = {
            "method": np.repeat(
                np.array([c.name for c in self.candidates], dtype=object), self.alphas.size
            ).tolist(),
            "alpha": np.tile(self.alphas, len(self.candidates)),
        }
        for k in range(n_folds):
            found[f"split{k}_test_score"] = (
                np.full(n_rows, np.nan) if results is None else results[:, k]
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # nothing measured
            spread = np.full(n_rows, np.nan) if results is None else np.nanstd(results, axis=1)
        found["mean_test_score"], found["std_test_score"] = (
            means,
            np.where(np.isfinite(means), spread, np.nan),
        )
        # Those that were left out have means over fewer folds, and come after the others.
        behind = np.repeat([c.left_out is not None for c in self.candidates], self.alphas.size)
        key = np.where(np.isfinite(means), -means + 10.0 * behind, 100.0)
        found["rank_test_score"] = rankdata(key, method="min").astype(int)
        seconds = [c.seconds / max(c.fits, 1) for c in self.candidates]
        found["mean_fit_time"] = np.repeat(seconds, self.alphas.size)
        found["left_out"] = np.repeat(
            np.array([c.left_out or "" for c in self.candidates], dtype=object), self.alphas.size
        ).tolist()
        return found

    @staticmethod
    def _n_measured(candidate: Candidate) -> int:
        return int(np.isfinite(candidate.results).any(axis=1).sum())

    def _margin(self, differences: Vector) -> float:
        """How far a mean over folds may be from zero by chance: the corrected resampled t-test, at
        95 %.
        """
        n, (train, test) = differences.size, self.folds[0]
        error = float(differences.std(ddof=1)) * np.sqrt(1.0 / n + test.size / train.size)
        return float(student.ppf(0.975, n - 1)) * error

    def reason(self, chosen: Candidate, place: int) -> str:
        """Why the chosen one was chosen."""
        text = f"Chosen: {chosen.name} (alpha {self.alphas[place]:.3g})"
        remarks = f" Note that {'; '.join(self.remarks)}." if self.remarks else ""
        means = self.means(chosen)
        if not np.isfinite(means[place]):
            return f"{text}, untried: no fold has rows of both classes on both sides.{remarks}"
        n_folds = self._n_measured(chosen)
        text += f", mean {self.measure.phrase} {means[place]:.4f} in {counted(n_folds, 'fold')}"
        others = [c for c in self.candidates if c is not chosen]
        rivals = [c for c in others if c.left_out is None and self._n_measured(c) == n_folds]
        if rivals:
            text += "; " + self._runner_up(chosen, place, rivals)
        text += "."
        dropped = [c.name for c in others if c.left_out is not None]
        if dropped:
            text += f" Left out early: {'; '.join(dropped)}."
        if self._late():
            text += " The time budget ended the search."
        ties = _highest(smoothed(means))
        if ties.size > 1:
            text += f" {ties.size} penalties reach the same mean; the middle one of them was taken."
        elif self.alphas.size > 2 and place in (0, self.alphas.size - 1):
            end = "largest" if place == 0 else "smallest"
            text += f" The {end} alpha was chosen; one beyond it may be better."
        return text + remarks

    def _runner_up(self, chosen: Candidate, place: int, rivals: list[Candidate]) -> str:
        """The best of the others, and whether it differs by more than folds differ.

        Its single best mean may be higher: the choice goes by means over an alpha and its
        neighbours.
        """
        second = max(rivals, key=lambda c: float(np.nanmax(smoothed(self.means(c)))))
        own, means = float(self.means(chosen)[place]), self.means(second)
        k = int(np.nanargmax(smoothed(means)))
        higher = means[k] > own
        if higher:
            k = int(np.nanargmax(means))
        ahead = chosen.results[:, place] - second.results[:, k]
        ahead = ahead[np.isfinite(ahead)]
        text = f"{second.name} reached {means[k]:.4f}" + (
            " at its best single penalty" if higher else ""
        )
        if ahead.size < 2:
            return f"{text}, and one fold does not show which differences are noise"
        if not ahead.any():
            return f"{second.name} reached the same in every fold"
        if abs(float(ahead.mean())) <= self._margin(ahead):
            return f"{text}, a difference within noise"
        return f"{text}, but less at the penalties beside it" if higher else text

    def learning_curve(self, chosen: Candidate, alpha: float) -> dict[str, Any]:
        """Whether more rows would help: the measure with a quarter, a half and all of the rows of a
        fold.
        """
        none = {
            "rows": [],
            "scores": [],
            "std": [],
            "more_data_helps": False,
            "sentence": "There are too few rows to say whether more data would help.",
        }
        folds = [k for k in range(len(self.folds)) if np.isfinite(chosen.results[k]).any()]
        if self._late():
            return none | {"sentence": "There was no time to say whether more data would help."}
        if (
            len(folds) < 3
            or np.unique(self.data.y, return_counts=True)[1].min() < _FEWEST_FOR_A_CURVE
        ):
            return none
        shares = (0.25, 0.5, 1.0)
        place = int(np.argmin(np.abs(self.alphas - alpha)))
        results = np.full((len(folds), len(shares)), np.nan)
        each = np.zeros(results.shape)  # rows, which differ by one or two between folds

        def one(row: int, number: int) -> None:
            fold = self._prepared(number, chosen.map)
            results[row, -1] = chosen.results[number, place]
            each[row, -1] = fold.train.y.size
            order = spread(fold.train, np.random.default_rng(number))
            for column, share in enumerate(shares[:-1]):
                part = fold.train.take(order[: max(2, int(share * order.size))])
                each[row, column] = part.y.size
                if np.unique(part.y).size < 2:
                    continue
                fitted = quick(chosen.ranker).set_params(alpha=alpha)
                try:
                    fitted.fit(part.X, part.y, **part.passed_to(fitted))
                except ValueError:  # groups of one class
                    continue
                results[row, column] = fold.measured(
                    self.measure, make_design(fold.test.X).scores(fitted.coef_[0])
                )

        Parallel(n_jobs=self.ranker.n_jobs, prefer="threads")(
            delayed(one)(*place) for place in enumerate(folds)
        )
        results = results[np.isfinite(results).all(axis=1)]
        if len(results) < 3:
            return none
        sizes = each.mean(axis=0)
        means = results.mean(axis=0)
        gain = results[:, 2] - results[:, 1]
        mean, margin, little = (
            float(gain.mean()),
            self._margin(gain),
            _NO_GAIN * abs(float(means[2])),
        )
        helps = mean > margin and mean > little / 10
        verdict = "more data would help" if helps else "more data would hardly help"
        if not helps and mean + margin > little:
            verdict = "whether more data would help, these folds do not say"
        title = self.measure.phrase
        sentence = (
            f"From {int(sizes[1]):,} to {int(sizes[2]):,} rows, {title} goes from {means[1]:.4f} to {means[2]:.4f} "
            f"({mean:+.4f} ± {margin:.4f}): {verdict}."
        )
        return {
            "rows": [int(size) for size in sizes],
            "scores": [float(value) for value in means],
            "std": [float(value) for value in results.std(axis=0, ddof=1)],
            "more_data_helps": bool(helps),
            "sentence": sentence,
        }


def quick(ranker: Any) -> Any:
    """A copy that stops as soon as measures cannot tell the difference."""
    kind = (
        "gradient"
        if getattr(ranker, "loss", "hinge") != "hinge" and not hasattr(ranker, "solver")
        else "gap"
    )
    return clone(ranker).set_params(tol=_TOL[kind])


def _dealt(test: Data, rng: np.random.Generator) -> NDArray[np.intp]:
    """The block of each row: whole groups, or each class dealt out evenly."""
    if test.group is not None:
        _, group = np.unique(test.group, return_inverse=True)
        return rng.permutation(int(group.max()) + 1)[group] % _BLOCKS
    block = np.empty(test.y.size, dtype=np.intp)
    for label in np.unique(test.y):
        rows = rng.permutation(np.flatnonzero(test.y == label))
        block[rows] = np.arange(rows.size) % _BLOCKS
    return block


def spread(train: Data, rng: np.random.Generator) -> Index:
    """An order of the rows in which every beginning has the shares of the classes, or whole groups."""
    if train.group is not None:
        _, group = np.unique(train.group, return_inverse=True)
        return np.argsort(rng.permutation(int(group.max()) + 1)[group], kind="stable")
    place = np.empty(train.y.size)
    for label in np.unique(train.y):
        rows = np.flatnonzero(train.y == label)
        place[rows] = rng.permutation(rows.size) / rows.size
    return np.argsort(place, kind="stable")


def drawn(y: NDArray, group: NDArray | None, most: int, seed: int) -> Index:
    """So many rows, with the shares of the classes, in their order; more where a class is rare."""
    rarest = int(np.unique(y, return_counts=True)[1].min())
    size = max(most, int(np.ceil(y.size * min(1.0, _FEWEST_OF_A_CLASS / rarest))))
    if size >= y.size:
        return np.arange(y.size)
    return np.sort(spread(Data(None, y, None, group), np.random.default_rng(seed))[:size])


def _highest(values: Vector) -> Index:
    """The places of the highest value; differences by rounding do not count."""
    return np.flatnonzero(values >= np.nanmax(values) - 1e-12)


def _middle(places: Index) -> int:
    return int(places[(places.size - 1) // 2])


def smoothed(values: Vector) -> Vector:
    """Each value with half the weight, its neighbours that are known with a quarter each."""
    total, weight = np.zeros(values.size), np.zeros(values.size)
    for shift, share in ((-1, 1.0), (0, 2.0), (1, 1.0)):
        moved = np.full(values.size, np.nan)
        low, high = max(0, shift), min(values.size, values.size + shift)
        moved[low:high] = values[low - shift : high - shift]
        known = np.isfinite(moved)
        total[known] += share * moved[known]
        weight[known] += share
    return np.where(np.isfinite(values), total / np.maximum(weight, 1.0), np.nan)
