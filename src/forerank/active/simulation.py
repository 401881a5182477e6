"""Labelling simulated on labelled data: what a strategy and a ranker would have cost, before a cent
is spent.
"""

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from rich.progress import Progress
from scipy import stats

from forerank._typing import Vector
from forerank._validation import encode_classes, is_integer
from forerank.active.loop import LabellingLoop, content_hash
from forerank.active.stopping import StoppingRule
from forerank.active.strategies import Strategy, make_strategy, score_rows
from forerank.metrics.ranking import check_column, query_numbers
from forerank.metrics.registry import get_measure
from forerank.metrics.significance import PairedT, paired_t

__all__ = ["Simulation", "StrategyComparison", "compare", "paired_t", "simulate"]


_ROUNDING = 1e-9  # 0.95 * 20 is a whole number up to rounding


@dataclass
class Simulation:
    """The course of one simulated labelling.

    Recall is that of the relevant records that were not seeds; records are counted without the
    seeds.

    Attributes
    ----------
    order : list of int
        Rows in the order of reading.
    relevant : list of int
        1 where that row is relevant.
    n_records, n_relevant : int
        Records that were open at the start, and how many of these are relevant.
    seeds : list of int
        Rows known at the start.
    read : list of int
        Records read at the beginning of each round, and at the end.
    curves : dict
        For each measure, its value on the test rows at each entry of `read`; empty without test
        rows.
    seconds : dict
        "fit", "score" and "choose" of each round.
    stopped : str
        Why reading ended.
    """

    order: list[int]
    relevant: list[int]
    n_records: int
    n_relevant: int
    seeds: list[int]
    read: list[int]
    curves: dict[str, list[float]] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    stopped: str = ""

    @property
    def recall(self) -> Vector:
        """The recall after 0, 1, 2, ... records."""
        found = np.concatenate([[0.0], np.cumsum(self.relevant)])
        return found / self.n_relevant if self.n_relevant else np.ones(found.size)

    def recall_at(self, n: int) -> float:
        """The share of the relevant records among the first n; n beyond the end of reading counts
        as the end.
        """
        if n < 0:
            raise ValueError(f"n counts records and must not be negative; got {n!r}.")
        return float(self.recall[min(int(n), len(self.order))])

    def records_to_recall(self, recall: float = 0.95) -> int:
        """How many records were read until that share of the relevant ones was found."""
        if not 0.0 <= recall <= 1.0:
            raise ValueError(f"recall must lie between 0 and 1; got {recall!r}.")
        wanted = ceil(recall * self.n_relevant - _ROUNDING)
        found = np.concatenate([[0], np.cumsum(self.relevant)])
        if found[-1] < wanted:
            raise ValueError(
                f"Reading ended at a recall of {self.recall[-1]:.3f} ({self.stopped}); {recall:g} was never reached."
            )
        return int(np.searchsorted(found, wanted))

    def work_saved(self, recall: float = 0.95) -> float:
        """WSS: the share of the records left unread at that recall, beyond what reading in any
        order would leave.
        """
        if not self.n_records:
            raise ValueError("Every record was a seed: there was nothing to read.")
        return (self.n_records - self.records_to_recall(recall)) / self.n_records - (1.0 - recall)


def simulate(
    X: Any,
    y: ArrayLike,
    *,
    strategy: str | Strategy = "greedy",
    ranker: Any = None,
    seeds: tuple[int, int] | Sequence[int] | NDArray = (1, 1),
    batch: int | float = 1,
    qid: Any = None,
    stopping: StoppingRule | None = None,
    rounds: int | None = None,
    until_recall: float | None = None,
    test: tuple | None = None,
    measures: Iterable[str] = ("auc", "map", "ndcg@10"),
    random_state: Any = None,
    record: Any = None,
) -> Simulation:
    """Label rows in the order that a strategy asks for them, with the labels in y.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
        Two classes; the one that sorts last is relevant.
    strategy, ranker, batch, qid, stopping, record
        As in `LabellingLoop`.
    seeds : (n_relevant, n_irrelevant) as a tuple, or an array or list of row numbers, default=(1,
    1)
        What is known at the start. Numbers are drawn with `random_state` alone, in each group where
        there are groups (as many as it has), so that all strategies begin with the same rows.
    rounds : int, optional
        The most batches; by default, until the strategy, the stopping rule or the rows end it.
    until_recall : float, optional
        End when this recall is reached, which only a simulation can know.
    test : (X_test, y_test) or (X_test, y_test, qid_test), optional
        Rows on which the ranker is measured at every round.
    measures : iterable of str
        Keys of measures, such as "auc", "map" (average precision, the mean over groups), "ndcg@10".
    random_state : int, RandomState or None

    Returns
    -------
    Simulation

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, digit = load_digits(return_X_y=True)
    >>> found = simulate(X / 16, digit == 8, batch=20, random_state=0)
    >>> found.n_records, found.n_relevant
    (1795, 173)
    >>> found.records_to_recall(0.95) < 800
    True
    """
    labels = check_column(y, "y")
    classes, codes = encode_classes(labels)
    if classes.size != 2:
        raise ValueError(
            f"y holds {classes.size} classes; two are expected, relevant and irrelevant."
        )
    if rounds is not None and (not is_integer(rounds) or rounds < 0):
        raise ValueError(f"rounds must be a whole number, not negative; got {rounds!r}.")
    if until_recall is not None and not 0.0 <= until_recall <= 1.0:
        raise ValueError(f"until_recall must lie between 0 and 1; got {until_recall!r}.")
    if test is not None and record is not None:
        raise ValueError(
            "Measures on test rows are not kept in a record; leave out test or record."
        )
    loop = LabellingLoop(
        X,
        strategy=strategy,
        ranker=ranker,
        batch=batch,
        qid=qid,
        stopping=stopping,
        random_state=random_state,
        record=record,
    )
    if loop.n_rows != codes.size:
        raise ValueError(
            f"X has {loop.n_rows} rows and y has {codes.size}; both need one entry per row."
        )
    if loop.steps:
        seed_rows = np.array(
            [row for step in loop.steps if step.seed for row in step.rows], dtype=np.intp
        )
        if not isinstance(seeds, tuple) and sorted(np.asarray(seeds).tolist()) != sorted(
            seed_rows.tolist()
        ):
            raise ValueError(
                f"The record {record} began with the seeds {sorted(seed_rows.tolist())}, not with these."
            )
        told = np.flatnonzero(loop.labels >= 0)
        wrong = told[loop.labels[told] != codes[told]]
        if wrong.size:
            raise ValueError(
                f"The record {record} has another label than y for row {wrong[0]}. Is it that of other data?"
            )
    else:
        seed_rows = _seed_rows(
            seeds, codes, loop.group, np.random.default_rng([loop.random_state, 2**31])
        )
        loop.tell(seed_rows, codes[seed_rows], seed=True)
    open_relevant = int(codes.sum() - codes[seed_rows].sum())
    measure = _measure(test, measures, classes)
    result = Simulation([], [], loop.n_rows - seed_rows.size, open_relevant, seed_rows.tolist(), [])
    n_rounds = sum(not step.seed for step in loop.steps)
    while (rounds is None or n_rounds < rounds) and not _found_enough(
        loop, until_recall, open_relevant
    ):
        rows = loop.ask()
        if not rows.size:
            break
        if measure is not None:
            _evaluate(loop, measure, result, fitted=loop.strategy.uses_scores)
        loop.tell(rows, codes[rows])
        n_rounds += 1
    if measure is not None:
        _evaluate(loop, measure, result, fitted=False)
    result.order = loop.order.tolist()
    result.relevant = codes[loop.order].tolist()
    result.read = [0, *np.cumsum([len(step.rows) for step in loop.steps if not step.seed]).tolist()]
    timed = [step.seconds for step in loop.steps if step.seconds]
    result.seconds = {
        name: [seconds[name] for seconds in timed] for name in ("fit", "score", "choose")
    }
    over = rounds is not None and n_rounds >= rounds
    result.stopped = loop.stopped or (
        "the rounds are over" if over else "the recall asked for is reached"
    )
    return result


def _found_enough(loop: LabellingLoop, until_recall: float | None, n_relevant: int) -> bool:
    if until_recall is None:
        return False
    return int(np.count_nonzero(loop.reading.relevant)) >= ceil(
        until_recall * n_relevant - _ROUNDING
    )


def _seed_rows(
    seeds: Any, codes: NDArray, group: NDArray | None, rng: np.random.Generator
) -> NDArray[np.intp]:
    if not isinstance(seeds, tuple):
        rows = np.asarray(seeds)
        if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
            raise ValueError("seeds must be row numbers, or a tuple (n_relevant, n_irrelevant).")
        if np.unique(rows).size < rows.size:
            raise ValueError(
                "seeds names a row twice. For counts give a tuple: seeds=(n_relevant, n_irrelevant)."
            )
        if rows.size and not 0 <= rows.min() <= rows.max() < codes.size:
            raise ValueError(
                f"seeds names rows from {rows.min()} to {rows.max()}, and there are {codes.size} rows."
            )
        return rows.astype(np.intp)
    if len(seeds) != 2 or any(not is_integer(n) or n < 0 for n in seeds):
        raise ValueError(
            f"seeds as a tuple are (n_relevant, n_irrelevant), two counts; got {seeds!r}."
        )
    number = np.zeros(codes.size, dtype=np.intp) if group is None else group
    shuffled = rng.permutation(codes.size)
    chosen = []
    for code, wanted in ((1, seeds[0]), (0, seeds[1])):
        rows = shuffled[codes[shuffled] == code]
        if group is None and rows.size < wanted:
            raise ValueError(
                f"seeds asks for {wanted} {'' if code else 'ir'}relevant rows, and y has only {rows.size} of them."
            )
        by_group = rows[np.argsort(number[rows], kind="stable")]
        within = np.arange(rows.size) - np.searchsorted(number[by_group], number[by_group])
        chosen.append(by_group[within < wanted])
    return np.concatenate(chosen)


def _measure(
    test: tuple | None, measures: Iterable[str], classes: NDArray
) -> Callable[[Any], dict] | None:
    if test is None:
        return None
    if not isinstance(test, tuple) or len(test) not in (2, 3):
        raise ValueError("test must be (X_test, y_test) or (X_test, y_test, qid_test).")
    X, y, qid = test if len(test) == 3 else (*test, None)
    relevant = np.asarray(y) == classes[1]
    if not np.all(relevant | (np.asarray(y) == classes[0])):
        raise ValueError(f"y_test has other labels than y, which has {classes.tolist()}.")
    names = list(measures)
    functions = {name: get_measure(name).function for name in names}
    number = None if qid is None else query_numbers(qid, relevant.size)

    def measure(ranker: Any) -> dict[str, float]:
        scores = np.zeros(relevant.size) if ranker is None else score_rows(ranker, X)
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message=".*queries left out of the mean.*", category=UserWarning
            )
            return {name: f(relevant, scores, qid=number) for name, f in functions.items()}

    return measure


def _evaluate(
    loop: LabellingLoop, measure: Callable[[Any], dict], result: Simulation, *, fitted: bool
) -> None:
    for name, value in measure(loop.ranker_ if fitted else loop.fit()).items():
        result.curves.setdefault(name, []).append(float(value))


@dataclass
class StrategyComparison:
    """Simulations of several methods, run by run from the same seeds.

    Attributes
    ----------
    runs : dict
        For each method its simulations; the k-th of every method began with the same seeds.
    """

    runs: dict[str, list[Simulation]]

    def values(self, measure: str, name: str) -> Vector:
        """One line per run: the measure at the end of each round or, for "recall", after each
        record.
        """
        runs = self.runs[name]
        if measure == "recall":
            length = min(run.n_records for run in runs) + 1
            return np.array([_prolonged(run.recall, length) for run in runs])
        if any(measure not in run.curves for run in runs):
            raise ValueError(
                f"{measure!r} was not measured; give test rows, and name it among the measures."
            )
        length = min(len(run.curves[measure]) for run in runs)
        return np.array([run.curves[measure][:length] for run in runs])

    def band(self, measure: str, name: str) -> tuple[Vector, Vector, Vector, Vector]:
        """Records read, the mean of the measure over the runs, and the bounds of its 95 %
        confidence interval.

        Bounds beyond 0 and 1, which no measure here can take, are cut off.
        """
        values = self.values(measure, name)
        x = (
            np.arange(values.shape[1])
            if measure == "recall"
            else self._mean_read(name)[: values.shape[1]]
        )
        mean = values.mean(axis=0)
        half = np.zeros_like(mean)
        if len(values) > 1:
            half = (
                stats.t.ppf(0.975, len(values) - 1)
                * values.std(axis=0, ddof=1)
                / np.sqrt(len(values))
            )
        return (
            x.astype(np.float64),
            mean,
            np.maximum(mean - half, 0.0),
            np.minimum(mean + half, 1.0),
        )

    def test(self, measure: str, a: str, b: str, *, over: str = "curve") -> PairedT:
        """The paired t-test of method a against b.

        Parameters
        ----------
        measure : str
            "recall" or one of the measures on test rows.
        a, b : str
            Names of two methods.
        over : {"curve", "runs"}, default="curve"
            "curve" pairs every round of every run, as donmez2009 does; rounds of one run are alike,
            which makes this test see differences too easily. "runs" pairs the mean of the curve of
            each run.
        """
        if over not in ("curve", "runs"):
            raise ValueError(f"over must be 'curve' or 'runs'; got {over!r}.")
        first, second = self.values(measure, a), self.values(measure, b)
        length = min(first.shape[1], second.shape[1])
        if length < 2:
            raise ValueError(
                "No round was run: there is nothing to compare but the start, which is the same for all."
            )
        first, second = first[:, 1:length], second[:, 1:length]  # the start is the same for all
        if over == "runs":
            first, second = first.mean(axis=1), second.mean(axis=1)
        return paired_t(first.ravel(), second.ravel())

    def ordering(self, measure: str, *, over: str = "curve") -> str:
        """Methods from the best to the worst, as in Table 1 of donmez2009.

        ">>" stands for p < 0.01, ">" for p < 0.05 and "~" for no difference between neighbours.
        """
        mean = {name: float(self.values(measure, name)[:, 1:].mean()) for name in self.runs}
        names = sorted(mean, key=lambda name: -mean[name])
        text = names[0]
        for better, worse in pairwise(names):
            p = self.test(measure, better, worse, over=over).p
            text += f" {'>>' if p < 0.01 else '>' if p < 0.05 else '~'} {worse}"
        return text

    def records_to_recall(self, recall: float = 0.95) -> dict[str, Vector]:
        """For each method, the records read in each run until that recall was reached; NaN where it
        never was.
        """
        return {
            name: np.array([_quietly(run.records_to_recall, recall) for run in runs])
            for name, runs in self.runs.items()
        }

    def table(self, recalls: Sequence[float] = (0.5, 0.8, 0.95, 1.0)) -> list[dict[str, Any]]:
        """One line per method: mean records to each recall, WSS@95, the final measures, and seconds
        per round.

        What a run never reached is NaN.
        """
        lines = []
        for name, runs in self.runs.items():
            line: dict[str, Any] = {"method": name}
            for recall in recalls:
                line[f"records to {recall:.0%}"] = float(
                    np.mean([_quietly(run.records_to_recall, recall) for run in runs])
                )
            line["WSS@95"] = float(np.mean([_quietly(run.work_saved, 0.95) for run in runs]))
            for measure in runs[0].curves:
                line[measure] = float(np.mean([run.curves[measure][-1] for run in runs]))
            rounds = [
                sum(times) for run in runs for times in zip(*run.seconds.values(), strict=True)
            ]
            line["seconds per round"] = float(np.mean(rounds)) if rounds else 0.0
            lines.append(line)
        return lines

    def plot(self, measure: str = "recall", ax: Any = None) -> Any:
        """Learning curves with 95 % confidence bands; returns the axes."""
        if ax is None:
            from matplotlib.figure import Figure

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


def compare(
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
        As in `simulate`.
    strategies : iterable of strategies, or mapping from names
        A mapping's values are strategies, or the options of `simulate` in which the methods differ,
        such as ``{"svm": {"strategy": "greedy", "ranker": LinearSVC()}}``.
    n_runs : int, default=10
        Runs of each method, from different seeds; the k-th run of every method has the random state
        `random_state` + k.
    random_state : int, default=0
    n_jobs : int, optional
        Processes, as in joblib.
    progress : bool, default=True
        Whether to show a progress bar.
    results : path, optional
        A file of JSON lines, one per finished run; runs that are in it are not run again.
    **options
        What all methods share: the other parameters of `simulate`.

    Returns
    -------
    StrategyComparison

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, digit = load_digits(return_X_y=True)
    >>> found = compare(X[:400] / 16, digit[:400] == 8, strategies=["greedy", "random"], n_runs=3, batch=20,
    ...                 progress=False)
    >>> records = found.records_to_recall(0.95)
    >>> bool(records["greedy"].mean() < records["random"].mean())
    True
    """
    methods = _methods(strategies)
    if not is_integer(n_runs) or n_runs < 1:
        raise ValueError(f"n_runs must be a whole number of at least 1; got {n_runs!r}.")
    if not is_integer(random_state) or random_state < 0:
        raise ValueError(
            f"random_state must be a whole number, the seed of the first run; got {random_state!r}."
        )
    if "record" in options:
        raise ValueError("Runs cannot share a record; results=PATH keeps those that are finished.")
    tasks = [(name, k) for k in range(n_runs) for name in methods]
    kept = _Kept(
        results, methods, {"random_state": int(random_state), "data": [X, y], "options": options}
    )
    todo = [task for task in tasks if task not in kept.done]
    run = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(_one)(
            task, X, y, {**options, **methods[task[0]], "random_state": int(random_state) + task[1]}
        )
        for task in todo
    )
    with Progress(disable=not progress, transient=True) as bar:
        shown = bar.add_task("Simulating", total=len(tasks), completed=len(tasks) - len(todo))
        for task, simulation in run:
            kept.add(task, simulation)
            bar.advance(shown)
    return StrategyComparison(
        {name: [kept.done[name, k] for k in range(n_runs)] for name in methods}
    )


def _one(
    task: tuple[str, int], X: Any, y: Any, options: dict[str, Any]
) -> tuple[tuple[str, int], Simulation]:
    return task, simulate(X, y, **options)


def _methods(strategies: Any) -> dict[str, dict[str, Any]]:
    if isinstance(strategies, Mapping):
        methods = {
            str(name): dict(value)
            if isinstance(value, Mapping)
            else {"strategy": make_strategy(value)}
            for name, value in strategies.items()
        }
    else:
        if isinstance(strategies, str | Strategy):
            strategies = [strategies]
        methods = {
            value if isinstance(value, str) else repr(value): {"strategy": make_strategy(value)}
            for value in strategies
        }
    if not methods:
        raise ValueError("strategies is empty; name at least one.")
    return methods


class _Kept:
    """Finished runs, in a file where one is given, with hashes that tell other data and other
    methods apart.
    """

    def __init__(self, path: Any, methods: dict[str, dict], settings: dict[str, Any]) -> None:
        self._path = None if path is None else Path(path)
        self.done: dict[tuple[str, int], Simulation] = {}
        if self._path is None:
            return
        self._methods = {name: _hashed(name, options) for name, options in methods.items()}
        head = json.dumps({name: _hashed(name, value) for name, value in settings.items()}) + "\n"
        if not self._path.exists() or not self._path.stat().st_size:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            part = self._path.with_name(self._path.name + ".part")
            part.write_text(head)
            part.replace(self._path)
            return
        text = self._path.read_text()
        whole = text[: text.rfind("\n") + 1]
        if not whole.startswith(head):
            raise ValueError(
                f"{self._path} has runs of other data or options. Remove it, or choose another path."
            )
        for line in whole[len(head) :].splitlines():
            entry = json.loads(line)
            if self._methods.get(entry["method"], entry["options"]) != entry["options"]:
                raise ValueError(
                    f"{self._path} has runs of {entry['method']!r} with other options. Give the method another name."
                )
            self.done[entry["method"], entry["run"]] = Simulation(**entry["simulation"])
        if len(whole) < len(text):  # an interruption cut the last line short
            with self._path.open("r+b") as file:
                file.truncate(len(whole.encode()))

    def add(self, task: tuple[str, int], simulation: Simulation) -> None:
        self.done[task] = simulation
        if self._path is not None:
            with self._path.open("a") as file:
                line = {"method": task[0], "run": task[1], "options": self._methods[task[0]]}
                file.write(json.dumps({**line, "simulation": asdict(simulation)}) + "\n")


def _hashed(name: str, value: Any) -> str:
    try:
        if isinstance(value, Mapping):
            return content_hash([[key, content_hash(value[key])] for key in sorted(value)])
        return content_hash(value)
    except Exception as error:
        raise ValueError(
            f"{name!r} holds something that cannot be told apart in a file of results, such as a lambda ({error}). Use "
            "a function with a name, or leave out results."
        ) from None


def _prolonged(values: Vector, length: int) -> Vector:
    """Cut or continued by the last value: once reading has ended, recall stays what it is."""
    if values.size >= length:
        return values[:length]
    return np.concatenate([values, np.full(length - values.size, values[-1])])


def _quietly(value: Callable[[float], float], recall: float) -> float:
    """NaN for a recall that was never reached."""
    try:
        return float(value(recall))
    except ValueError:
        return float("nan")
