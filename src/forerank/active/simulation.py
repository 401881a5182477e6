"""Simulation of labelling on labelled data: the labels that a strategy and a ranker would need."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forerank._typing import Index, Vector
from forerank._validation import check_number, encode_classes, is_integer
from forerank.active.loop import LabellingLoop
from forerank.active.stopping import ROUNDING, StoppingRule
from forerank.active.strategies import Strategy, check_row_numbers
from forerank.estimators.scores import score_rows
from forerank.metrics.registry import get_measure
from forerank.metrics.validation import check_column, number_groups

__all__ = ["Simulation", "simulate"]


@dataclass
class Simulation:
    """The course of one simulated labelling.

    Records are the rows without the seeds; recall is that of the relevant records.

    Attributes
    ----------
    order : list of int
        Rows in the order of labelling.
    relevant : list of int
        1 for each of these rows that is relevant, 0 for the others.
    n_records, n_relevant : int
        Numbers of records and of relevant records.
    seeds : list of int
        Rows labelled at the start.
    read : list of int
        Number of records labelled before each round, and at the end.
    curves : dict
        Values of each measure on the test rows, one for each entry of `read`; empty without test
        rows.
    seconds : dict
        "fit", "score" and "choose" of each round.
    stopped : str
        The reason why labelling stopped.
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
        """The recall after the first n records, or after all that were labelled."""
        if n < 0:
            raise ValueError(f"n is a number of records and must not be negative; got {n!r}.")
        return float(self.recall[min(int(n), len(self.order))])

    def records_to_recall(self, recall: float = 0.95) -> int:
        """Number of records labelled until this recall was reached."""
        if not 0.0 <= recall <= 1.0:
            raise ValueError(f"recall must lie between 0 and 1; got {recall!r}.")
        wanted = ceil(recall * self.n_relevant - ROUNDING)
        found = np.concatenate([[0], np.cumsum(self.relevant)])
        if found[-1] < wanted:
            raise ValueError(
                f"Labelling stopped at a recall of {self.recall[-1]:.3f} ({self.stopped}); a "
                f"recall of {recall:g} was not reached."
            )
        return int(np.searchsorted(found, wanted))

    def work_saved(self, recall: float = 0.95) -> float:
        """Work saved over sampling, WSS: share of records unlabelled when this recall is reached,
        minus that share in a random order.
        """
        if not self.n_records:
            raise ValueError("Every row is a seed, so there is no work to save; use fewer seeds.")
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
    grades: bool = False,
    random_state: Any = None,
    record: Any = None,
) -> Simulation:
    """Label rows in the order in which a strategy selects them, with the labels in y.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features)
    y : array-like of shape (n_rows,)
        Two classes, of which the last in sorted order is relevant; or grades.
    strategy, ranker, batch, qid, stopping, record
        See `LabellingLoop`.
    seeds : tuple (n_relevant, n_irrelevant), or an array or list of row numbers, default=(1, 1)
        Rows labelled at the start. Numbers are drawn by `random_state` alone, so that all
        strategies start with the same rows; in each group if there are groups (as many as it has).
    rounds : int, optional
        Largest number of batches; by default, until the stopping rule or the last row.
    until_recall : float, optional
        Stop when this recall is reached.
    test : (X_test, y_test) or (X_test, y_test, qid_test), optional
        Rows on which the ranker is measured before each round and at the end.
    measures : iterable of str
        Keys of measures, such as "auc", "map" (average precision, the mean over groups), "ndcg@10".
    grades : bool, default=False
        Whether y has grades, more relevant in sorted order; see `n_grades` of `LabellingLoop`. All
        grades above the lowest are relevant for seeds, recall, and measures of two classes such as
        "auc"; "wmw" and "ndcg" take the grades.
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
    classes, codes = encode_classes(check_column(y, "y"))
    _check_classes(classes, grades=grades)
    if rounds is not None:
        check_number("rounds", rounds, low=0, integer=True)
    if until_recall is not None and not 0.0 <= until_recall <= 1.0:
        raise ValueError(f"until_recall must lie between 0 and 1; got {until_recall!r}.")
    if test is not None and record is not None:
        raise ValueError("A record does not hold measures on test rows; omit test or record.")
    options: dict[str, Any] = {"strategy": strategy, "ranker": ranker, "batch": batch, "qid": qid}
    options |= {"stopping": stopping, "random_state": random_state, "record": record}
    options |= {"n_grades": max(classes.size, 2)}
    loop = LabellingLoop(X, **options)
    if loop.n_rows != codes.size:
        raise ValueError(
            f"X has {loop.n_rows} rows and y has {codes.size}; give one label per row."
        )
    relevant = (codes > 0).astype(int)
    seed_rows = _resumed_seeds(loop, codes, seeds, record)
    if seed_rows is None:
        rng = np.random.default_rng([loop.random_state, 2**31])
        seed_rows = _seed_rows(seeds, relevant, loop.group, rng)
        loop.tell(seed_rows, codes[seed_rows], seed=True)
    measure = None if test is None else _measure_on(test, measures, classes)
    n_relevant = int(relevant.sum() - relevant[seed_rows].sum())
    wanted = None if until_recall is None else ceil(until_recall * n_relevant - ROUNDING)
    curves: dict[str, list[float]] = {}
    n_rounds = sum(not step.seed for step in loop.steps)
    while (rounds is None or n_rounds < rounds) and not _has_found(loop, wanted):
        rows = loop.ask()
        if not rows.size:
            break
        if measure is not None:
            measure(loop.ranker_ if loop.strategy.uses_scores else loop.fit(), curves)
        loop.tell(rows, codes[rows])
        n_rounds += 1
    if measure is not None:
        measure(loop.fit(), curves)
    steps = [step for step in loop.steps if not step.seed]
    timed = [step.seconds for step in steps if step.seconds]
    over = rounds is not None and n_rounds >= rounds
    limit = "the number of rounds is reached" if over else "the target recall is reached"
    return Simulation(
        order=loop.order.tolist(),
        relevant=relevant[loop.order].tolist(),
        n_records=loop.n_rows - seed_rows.size,
        n_relevant=n_relevant,
        seeds=seed_rows.tolist(),
        read=[0, *np.cumsum([len(step.rows) for step in steps]).tolist()],
        curves=curves,
        seconds={name: [each[name] for each in timed] for name in ("fit", "score", "choose")},
        stopped=loop.stopped or limit,
    )


def _check_classes(classes: NDArray, *, grades: bool) -> None:
    if classes.size == 2 or (grades and classes.size > 2):
        return
    expected = "at least two grades" if grades else "two, relevant and irrelevant; or set grades"
    raise ValueError(f"y has {classes.size} classes; expected {expected}.")


def _has_found(loop: LabellingLoop, wanted: int | None) -> bool:
    return wanted is not None and int(np.count_nonzero(loop.reading.relevant)) >= wanted


def _resumed_seeds(loop: LabellingLoop, codes: NDArray, seeds: Any, record: Any) -> Index | None:
    """The seeds of a loop resumed from its record, checked against y and `seeds`; None for a new
    loop.
    """
    if not loop.steps:
        return None
    rows = [row for step in loop.steps if step.seed for row in step.rows]
    if not isinstance(seeds, tuple) and sorted(np.asarray(seeds).tolist()) != sorted(rows):
        raise ValueError(
            f"The seeds in the record {record} are {sorted(rows)}, not {seeds}; pass those seeds, "
            "or another record."
        )
    labelled = np.flatnonzero(loop.labels >= 0)
    wrong = labelled[loop.labels[labelled] != codes[labelled]]
    if wrong.size:
        raise ValueError(
            f"The record {record} has another label than y for row {wrong[0]}; pass the labels "
            "that it was made with, or another record."
        )
    return np.array(rows, dtype=np.intp)


def _seed_rows(seeds: Any, codes: NDArray, group: Index | None, rng: np.random.Generator) -> Index:
    if not isinstance(seeds, tuple):
        counts = "a tuple (n_relevant, n_irrelevant)"
        return check_row_numbers("seeds", np.asarray(seeds), codes.size, counts)
    if len(seeds) != 2 or any(not is_integer(n) or n < 0 for n in seeds):
        raise ValueError(
            f"seeds as a tuple are (n_relevant, n_irrelevant), two counts; got {seeds!r}."
        )
    number = np.zeros(codes.size, dtype=np.intp) if group is None else group
    shuffled = rng.permutation(codes.size)
    drawn = []
    for code, wanted in ((1, seeds[0]), (0, seeds[1])):
        rows = shuffled[codes[shuffled] == code]
        if group is None and rows.size < wanted:
            kind = "relevant" if code else "irrelevant"
            raise ValueError(f"seeds={seeds!r} has {wanted} {kind} rows, but y has {rows.size}.")
        by_group = rows[np.argsort(number[rows], kind="stable")]
        within = np.arange(rows.size) - np.searchsorted(number[by_group], number[by_group])
        drawn.append(by_group[within < wanted])
    return np.concatenate(drawn)


def _measure_on(
    test: Any, measures: Iterable[str], classes: NDArray
) -> Callable[[Any, dict[str, list[float]]], None]:
    """A function that appends a ranker's measures on the test rows to curves."""
    if not isinstance(test, tuple) or len(test) not in (2, 3):
        raise ValueError(
            "test must be a tuple (X_test, y_test) or (X_test, y_test, qid_test); got a "
            f"{type(test).__name__} of another form."
        )
    X, y, qid = test if len(test) == 3 else (*test, None)
    if not np.all(np.isin(y, classes)):
        raise ValueError(f"y_test has other labels than y, whose labels are {classes.tolist()}.")
    codes = np.searchsorted(classes, y)
    found = {name: get_measure(name) for name in measures}
    group = None if qid is None else number_groups(qid, codes.size)

    def measure(ranker: Any, curves: dict[str, list[float]]) -> None:
        scores = np.zeros(codes.size) if ranker is None else score_rows(ranker, X)
        with warnings.catch_warnings():
            excluded = ".*groups excluded from the mean.*"
            warnings.filterwarnings("ignore", message=excluded, category=UserWarning)
            for name, each in found.items():
                labels = codes if each.graded else codes > 0
                value = float(each.function(labels, scores, qid=group))
                curves.setdefault(name, []).append(value)

    return measure
