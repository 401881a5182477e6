"""Comparison of strategies and rankers by simulations from the same seeds."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import wraps
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from rich.progress import Progress
from scipy import stats

from forerank._typing import Vector
from forerank._validation import check_choice, check_number
from forerank.active.simulation import Simulation, simulate
from forerank.active.strategies import Strategy, make_strategy
from forerank.data.records import RecordFile, content_hash
from forerank.metrics.significance import PairedT, paired_t

__all__ = ["StrategyComparison", "compare", "compare_strategies"]


@dataclass
class StrategyComparison:
    """Simulations of several methods; the k-th run of every method starts from the same seeds.

    Attributes
    ----------
    runs : dict
        The simulations of each method.
    """

    runs: dict[str, list[Simulation]]

    def values(self, measure: str, name: str) -> Vector:
        """Values of a measure, one row per run: before each round and at the end or, for "recall",
        after each record.
        """
        runs = self.runs[name]
        if measure == "recall":
            length = min(run.n_records for run in runs) + 1
            return np.array([_extended(run.recall, length) for run in runs])
        if any(measure not in run.curves for run in runs):
            raise ValueError(
                f"{measure!r} was not measured; pass test rows, and include it in measures."
            )
        length = min(len(run.curves[measure]) for run in runs)
        return np.array([run.curves[measure][:length] for run in runs])

    def band(self, measure: str, name: str) -> tuple[Vector, Vector, Vector, Vector]:
        """Number of labelled records, mean of the measure over the runs, and its 95 % confidence
        limits, at most 1 and at least 0.
        """
        values = self.values(measure, name)
        n, length = values.shape
        mean = values.mean(axis=0)
        half = np.zeros_like(mean)
        if n > 1:
            half = stats.t.ppf(0.975, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)
        x = np.arange(length) if measure == "recall" else self._mean_read(name)[:length]
        low, high = np.maximum(mean - half, 0.0), np.minimum(mean + half, 1.0)
        return x.astype(np.float64), mean, low, high

    def test(self, measure: str, a: str, b: str, *, over: str = "curve") -> PairedT:
        """The paired t-test of method a against b.

        Parameters
        ----------
        measure : str
            "recall" or one of the measures on test rows.
        a, b : str
            Names of two methods.
        over : {"curve", "runs"}, default="curve"
            Pairs of the test. "curve": every round of every run, as in donmez2009; rounds of one
            run are correlated, so p-values are too small. "runs": the mean over the rounds of each
            run.
        """
        check_choice("over", over, ("curve", "runs"))
        first, second = self.values(measure, a), self.values(measure, b)
        length = min(first.shape[1], second.shape[1])
        if length < 2:
            raise ValueError(
                "The runs have no rounds, and all methods start from equal values; simulate at "
                "least one round."
            )
        first, second = first[:, 1:length], second[:, 1:length]
        if over == "runs":
            first, second = first.mean(axis=1), second.mean(axis=1)
        return paired_t(first.ravel(), second.ravel())

    def ordering(self, measure: str, *, over: str = "curve") -> str:
        """Methods from best to worst, as in Table 1 of donmez2009.

        Between neighbours, ">>" denotes p < 0.01, ">" p < 0.05, and "~" no significant difference.
        """
        mean = {name: float(self.values(measure, name)[:, 1:].mean()) for name in self.runs}
        names = sorted(mean, key=lambda name: -mean[name])
        text = names[0]
        for better, worse in pairwise(names):
            p = self.test(measure, better, worse, over=over).p
            text += f" {'>>' if p < 0.01 else '>' if p < 0.05 else '~'} {worse}"
        return text

    def records_to_recall(self, recall: float = 0.95) -> dict[str, Vector]:
        """Numbers of records labelled until this recall was reached, by method, one per run; NaN
        where it was not reached.
        """
        return {
            name: np.array([_or_nan(run.records_to_recall, recall) for run in runs])
            for name, runs in self.runs.items()
        }

    def table(self, recalls: Sequence[float] = (0.5, 0.8, 0.95, 1.0)) -> list[dict[str, Any]]:
        """One line per method: mean number of records to each recall, WSS@95, the final measures,
        and seconds per round; NaN where a run did not reach the recall.
        """
        lines = []
        for name, runs in self.runs.items():
            line: dict[str, Any] = {"method": name}
            for recall in recalls:
                reached = [_or_nan(run.records_to_recall, recall) for run in runs]
                line[f"records to {recall:.0%}"] = float(np.mean(reached))
            line["WSS@95"] = float(np.mean([_or_nan(run.work_saved, 0.95) for run in runs]))
            for measure in runs[0].curves:
                line[measure] = float(np.mean([run.curves[measure][-1] for run in runs]))
            times = [zip(*run.seconds.values(), strict=True) for run in runs]
            rounds = [sum(parts) for of_run in times for parts in of_run]
            line["seconds per round"] = float(np.mean(rounds)) if rounds else 0.0
            lines.append(line)
        return lines

    def plot(self, measure: str = "recall", ax: Any = None) -> Any:
        """Axes with the learning curves and their 95 % confidence bands."""
        if ax is None:
            try:
                from matplotlib.figure import Figure
            except ImportError as error:
                needs = "the plot needs matplotlib: pip install 'forerank[plots]'."
                raise ImportError(needs) from error

            ax = Figure(figsize=(6.4, 4.4), layout="constrained").subplots()
        for k, name in enumerate(self.runs):
            x, mean, low, high = self.band(measure, name)
            ax.plot(x, mean, label=name, color=f"C{k}")
            ax.fill_between(x, low, high, color=f"C{k}", alpha=0.15, linewidth=0)
        ax.set(xlabel="records read", ylabel=measure)
        ax.grid(alpha=0.3)
        ax.legend(fontsize=9)
        return ax

    def _mean_read(self, name: str) -> Vector:
        length = min(len(run.read) for run in self.runs[name])
        return np.mean([run.read[:length] for run in self.runs[name]], axis=0)


def _extended(values: Vector, length: int) -> Vector:
    """The first `length` values; a shorter array is continued with its last value."""
    missing = max(0, length - values.size)
    return np.concatenate([values[:length], np.full(missing, values[-1])])


def _or_nan(function: Any, recall: float) -> float:
    """`function(recall)`, or NaN where the recall was not reached."""
    try:
        return float(function(recall))
    except ValueError:
        return float("nan")


def compare_strategies(
    X: Any,
    y: ArrayLike,
    *,
    strategies: Iterable[str | Strategy] | Mapping[str, Any] = ("lossmin", "greedy", "random"),
    n_runs: int = 10,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: bool = True,
    results: Any = None,
    **options: Any,
) -> StrategyComparison:
    """Simulate several methods from the same seeds, in parallel.

    Parameters
    ----------
    X, y
        See `simulate`.
    strategies : iterable of strategies, or mapping from names
        The values of a mapping are strategies, or the options of `simulate` in which the methods
        differ, such as ``{"svm": {"strategy": "greedy", "ranker": LinearSVC()}}``.
    n_runs : int, default=10
        Number of runs of each method, from different seeds; the k-th run of every method has the
        random state `random_state` + k.
    random_state : int, default=0
    n_jobs : int, optional
        Number of processes, as in joblib.
    progress : bool, default=True
        Whether to show a progress bar.
    results : path, optional
        A file of JSON lines with the finished runs, which are not run again.
    **options
        The other parameters of `simulate`, equal for all methods.

    Returns
    -------
    StrategyComparison

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, digit = load_digits(return_X_y=True)
    >>> options = {"n_runs": 3, "batch": 20, "progress": False}
    >>> names = ["greedy", "random"]
    >>> found = compare_strategies(X[:400] / 16, digit[:400] == 8, strategies=names, **options)
    >>> records = found.records_to_recall(0.95)
    >>> bool(records["greedy"].mean() < records["random"].mean())
    True
    """
    methods = _methods(strategies)
    check_number("n_runs", n_runs, low=1, integer=True)
    check_number("random_state", random_state, low=0, integer=True)
    if "record" in options:
        raise ValueError("Runs cannot share a record; pass results=PATH to store finished runs.")
    settings = {"random_state": int(random_state), "data": [X, y], "options": options}
    finished = _FinishedRuns(results, methods, settings)
    tasks = [(name, k) for k in range(n_runs) for name in methods]
    todo = [task for task in tasks if task not in finished.runs]
    calls = (
        delayed(_one_run)((name, k), X, y, options | methods[name], int(random_state) + k)
        for name, k in todo
    )
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    with Progress(disable=not progress, transient=True) as bar:
        shown = bar.add_task("Simulating", total=len(tasks), completed=len(tasks) - len(todo))
        for task, simulation in parallel(calls):
            finished.add(task, simulation)
            bar.advance(shown)
    runs = {name: [finished.runs[name, k] for k in range(n_runs)] for name in methods}
    return StrategyComparison(runs)


def _one_run(
    task: tuple[str, int], X: Any, y: Any, options: dict[str, Any], seed: int
) -> tuple[tuple[str, int], Simulation]:
    return task, simulate(X, y, **{**options, "random_state": seed})


@wraps(compare_strategies)
def compare(*args: Any, **options: Any) -> StrategyComparison:
    message = "forerank.active.compare is now called compare_strategies; use that name."
    warnings.warn(message, FutureWarning, stacklevel=2)
    return compare_strategies(*args, **options)


def _methods(strategies: Any) -> dict[str, dict[str, Any]]:
    """Options of `simulate` by the name of the method."""
    if isinstance(strategies, str | Strategy):
        strategies = [strategies]
    if not isinstance(strategies, Mapping):
        strategies = {s if isinstance(s, str) else repr(s): s for s in strategies}
    if not strategies:
        raise ValueError("strategies is empty; give at least one.")
    return {
        str(name): dict(s) if isinstance(s, Mapping) else {"strategy": make_strategy(s)}
        for name, s in strategies.items()
    }


class _FinishedRuns:
    """Simulations by method and run, also in a record file if there is a path."""

    def __init__(self, path: Any, methods: dict[str, dict], settings: dict[str, Any]) -> None:
        self.runs: dict[tuple[str, int], Simulation] = {}
        self._options = {} if path is None else _hashes(methods)
        hashed = {} if path is None else _hashes(settings)
        differences = {name: f"other {name}" for name in settings}
        kind = "comparison of strategies"
        self._record = RecordFile(path, hashed, kind=kind, hashes=differences)
        self._record.parsed(self._restore)

    def add(self, task: tuple[str, int], simulation: Simulation) -> None:
        self.runs[task] = simulation
        line = {"method": task[0], "run": task[1], "options": self._options.get(task[0])}
        self._record.append({**line, "simulation": asdict(simulation)})

    def _restore(self, line: dict[str, Any]) -> None:
        name, options = line["method"], line["options"]
        if self._options.get(name, options) != options:
            raise ValueError(f"a run of {name!r} with other options; give the method another name")
        self.runs[name, line["run"]] = Simulation(**line["simulation"])


def _hashes(values: Mapping[str, Any]) -> dict[str, str]:
    hashes = {}
    for name, value in values.items():
        parts = value
        try:
            if isinstance(value, Mapping):
                parts = [[key, content_hash(value[key])] for key in sorted(value)]
            hashes[name] = content_hash(parts)
        except Exception as error:
            raise ValueError(
                f"{name!r} holds an object that cannot be hashed, such as a lambda ({error}), so "
                "runs cannot be stored. Use a named function, or omit results."
            ) from None
    return hashes
