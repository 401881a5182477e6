"""The labelling loop, for simulations and for people: `ask` for rows, `tell` their labels, repeat.

Every batch and every answer is written to a record file before it takes effect, so an interrupted
loop can be resumed. Random draws of a step depend on the seed and the number of the step only.
"""

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from time import perf_counter
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn import config_context, get_config
from sklearn.base import clone

from forerank._typing import Index, Vector
from forerank._validation import check_number
from forerank.active.fitting import fit_labelled
from forerank.active.loop_inputs import (
    NOTHING_STORED,
    as_rows,
    check_batch,
    check_label,
    check_relevant_from,
    check_row,
    check_stopping,
    describe,
    rows_and_labels,
    seed_number,
)
from forerank.active.posterior import group_numbers, rank_agreement
from forerank.active.stopping import Reading, StoppingRule
from forerank.active.strategies import Random, Strategy, make_strategy
from forerank.data.records import RecordFile, content_hash
from forerank.estimators.pairwise import PairwiseRanker
from forerank.estimators.pool import UNLABELLED, PoolRanker
from forerank.estimators.scores import score_rows

__all__ = ["LabellingLoop", "Step"]

_FORMAT = 1  # version of the format of the record file
_HASHES = {"content": "other values in X", "groups": "other groups"}


@dataclass
class Step:
    """Rows labelled, skipped or retracted in one call, and how the batch was selected.

    Attributes
    ----------
    rows : list of int
    labels : list of int
        1 for relevant, 0 for irrelevant, or grades; empty for rows skipped or retracted.
    seed : bool
        Whether the labels were known at the start.
    seconds : dict
        "fit", "score" and "choose": time to select these rows. Empty if they were not asked for.
    agreement : float or None
        Spearman's rank correlation of the ranking with the one before it, if a stopping rule needs
        it.
    kind : {"label", "change", "skip", "retract"}
        What was done: labels given or changed, rows skipped, or labels and skips taken back.
    """

    rows: list[int]
    labels: list[int]
    seed: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    agreement: float | None = None
    kind: str = "label"


class LabellingLoop:
    """Selects rows to label, trains a ranker on the labels, and stops by a rule.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features)
        All rows, as the ranker takes them.
    strategy : str or Strategy, default="greedy"
        Selects the rows to label; see `forerank.active.strategies`.
    ranker : estimator, optional
        Trained on the labelled rows and applied to all; `PoolRanker` by default, or with `qid` a
        `PairwiseRanker`. It is cloned. Linear rankers with the parameter `warm_start` are
        warm-started. A ranker with the attribute `learns_from_unlabelled` is trained on all rows,
        with the label -1 for unlabelled ones.
    batch : int or float, default=1
        Number of rows to ask for at a time, in each group. A number between 0 and 1 is a share of
        the rows labelled so far (the mean over groups), rounded down, and at least one row: batches
        grow as single labels change less.
    qid : array-like of shape (n_rows,), optional
        The group of each row: batches are per group. Passed to a ranker whose fit accepts `qid`.
    stopping : StoppingRule, optional
        Evaluated before each batch. By default, labelling stops with the last row.
    n_grades : int, default=2
        Number of grades: labels are 0 .. n_grades - 1, higher for more relevant rows. With more
        than two the default ranker is ``PairwiseRanker(graph="order")``; another one has to accept
        grades.
    relevant_from : int, default=1
        The smallest grade that is relevant for stopping rules.
    random_state : int, numpy.random.Generator, RandomState or None
        Stored in the record as a seed.
    record : path, optional
        A file of JSON lines with all labels. If it exists, the loop is resumed from it; a record of
        other rows or settings is refused.

    Attributes
    ----------
    steps : list of Step
    labels : array of shape (n_rows,), read-only
        1 and 0, or grades; -1 for unlabelled rows.
    ranker_ : fitted estimator
        None until both labels have been given.
    last_seconds : dict
        "fit", "score" and "choose": time to select the current batch.

    Notes
    -----
    A resumed loop asks for the rest of its current batch. A warm-started ranker may then differ
    within its tolerance from that of an uninterrupted loop, and `RankingStable` does not compare
    the first ranking with the last one before the interruption.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.9, 0.1], [0.1, 0.9], [0.2, 0.7]])
    >>> loop = LabellingLoop(X, random_state=0)
    >>> loop.tell([0, 1], [0, 1], seed=True)
    >>> loop.ask()
    array([2])
    >>> loop.tell(2, 1)
    >>> loop.ask()
    array([4])
    """

    def __init__(
        self,
        X: Any,
        *,
        strategy: str | Strategy = "greedy",
        ranker: Any = None,
        batch: int | float = 1,
        qid: Any = None,
        stopping: StoppingRule | None = None,
        n_grades: int = 2,
        relevant_from: int = 1,
        random_state: Any = None,
        record: str | os.PathLike | None = None,
    ) -> None:
        self.X = as_rows(X)
        if len(self.X.shape) not in (1, 2) or not self.X.shape[0]:
            raise ValueError(
                f"X has shape {self.X.shape}; expected a table or a list of texts, with at least "
                "one row."
            )
        self.n_rows = int(self.X.shape[0])
        self.strategy = make_strategy(strategy)
        self.batch = check_batch(batch)
        self.group = group_numbers(qid, self.n_rows)
        self.stopping = stopping
        check_stopping(stopping, self.strategy)
        check_number("n_grades", n_grades, low=2, integer=True)
        self.n_grades = int(n_grades)
        self.relevant_from = check_relevant_from(relevant_from, self.n_grades)
        self._ranker = clone(self._default_ranker() if ranker is None else ranker)
        self.ranker_: Any = None
        self._labels = np.full(self.n_rows, UNLABELLED)
        self.steps: list[Step] = []
        self._order = np.empty(self.n_rows, dtype=np.intp)
        self._n_ordered = self._n_seeds = 0  # labelled or skipped without the seeds, and seeds
        self._skipped = np.zeros(self.n_rows, dtype=bool)
        self._asked = np.empty(0, dtype=np.intp)
        self.last_seconds: dict[str, float] = {}
        self._agreement: float | None = None
        self._last_scores: Vector | None = None
        self._known_finite = False
        self.random_state = seed_number(random_state)
        self._record = self._open_record(record, random_state)

    def _default_ranker(self) -> Any:
        if self.group is None and self.n_grades == 2:
            return PoolRanker()
        return PairwiseRanker(alpha=1e-2, graph=None if self.n_grades == 2 else "order")

    @property
    def reading(self) -> Reading:
        """Labels in their order, without the seeds, as stopping rules see them."""
        agreement = []
        if self._needs_agreement:
            known = [*(step.agreement for step in self.steps), self._agreement]
            agreement = [value for value in known if value is not None]
        order = self._order[: self._n_ordered]
        relevant = self._labels[order] >= self.relevant_from
        n_records, undecided = self.n_rows - self._n_seeds, self._skipped[order]
        return Reading(n_records, relevant, agreement, undecided=undecided)

    @property
    def labels(self) -> Index:
        """The label of each row, read-only."""
        view = self._labels.view()
        view.flags.writeable = False
        return view

    @property
    def order(self) -> Index:
        """Rows in the order of labelling, without the seeds and the skipped rows."""
        order = self._order[: self._n_ordered]
        return order[~self._skipped[order]]

    @property
    def stopped(self) -> str | None:
        """The reason why labelling has stopped, or None. To continue nevertheless, set `stopping`
        to another rule or None.
        """
        if not (self._labels == UNLABELLED).any():
            return "every record is labelled"
        return None if self.stopping is None else self.stopping.reason(self.reading)

    def ask(self) -> Index:
        """The next rows to label, the highest utility first; none when labelling has stopped.

        The same rows are returned until one of them is labelled.
        """
        nothing = np.zeros(0, dtype=np.intp)
        if self.stopped:
            return nothing
        pending = self._asked[self._is_open(self._asked)]
        if pending.size:
            return pending
        # Once all rows have been scored, they need not be searched for NaN again.
        with config_context(assume_finite=self._known_finite or get_config()["assume_finite"]):
            asked = self._choose()
        line = {"seconds": self.last_seconds, "agreement": self._agreement}
        self._record.append({"asked": asked.tolist(), **line})
        self._asked = asked
        # The fit can change the answer of rules on the agreement of rankings only.
        return nothing if self._needs_agreement and self.stopped else asked.copy()

    def tell(
        self, rows: int | Iterable[int], labels: Any, *, seed: bool = False, change: bool = False
    ) -> None:
        """Store labels of rows, whether asked for or not: all of them or, on an error, none.

        Parameters
        ----------
        rows : int or iterable of int
        labels : label or iterable of labels
            1 or True for relevant, 0 or False for irrelevant; or grades from 0 to n_grades - 1. A
            label that is stored already is ignored, a different one refused, unless `change`.
        seed : bool, default=False
            Whether the labels were known at the start: the ranker is trained on them, but they do
            not count as labelling work.
        change : bool, default=False
            Whether the labels replace others. A row keeps its place in the order.
        """
        new = self._check_labels(rows, labels, change=change)
        if not new:
            return
        if seed and self._n_ordered:
            raise ValueError(
                f"Row {next(iter(new))} is given as a seed after labelling has begun; seeds are "
                "labels known at the start. Use seed=False."
            )
        kind = "change" if change else "label"
        step = Step(list(new), list(new.values()), bool(seed), kind=kind)
        answers_batch = not seed and bool(np.isin(step.rows, self._asked).any())
        if answers_batch:
            step.seconds, step.agreement = self.last_seconds, self._agreement
        self._write(step)
        if answers_batch:
            self.last_seconds, self._agreement = {}, None
        self._store(step)

    def skip(self, rows: int | Iterable[int]) -> None:
        """Put rows off: they are asked for again when no others are left, and count as unlabelled.

        A stopping rule takes them for relevant rows that are missing.
        """
        found, _ = rows_and_labels(rows, rows)
        numbers = [check_row(row, self.n_rows) for row in found]
        labelled = [row for row in numbers if self._labels[row] != UNLABELLED]
        if labelled:
            raise ValueError(f"Row {labelled[0]} is labelled already; retract its label first.")
        new = [row for row in dict.fromkeys(numbers) if not self._skipped[row]]
        self._do(Step(new, [], kind="skip"))

    def retract(self, rows: int | Iterable[int]) -> None:
        """Take labels and skips back, as if they had never been given. Rows without one are
        ignored.
        """
        found, _ = rows_and_labels(rows, rows)
        numbers = dict.fromkeys(check_row(row, self.n_rows) for row in found)
        given = (self._labels != UNLABELLED) | self._skipped
        self._do(Step([row for row in numbers if given[row]], [], kind="retract"))

    def set_labels(self, labels: NDArray) -> None:
        """Set the labels of all rows, -1 for unlabelled ones: labels that differ are changed or
        retracted, new ones are given.
        """
        labels = np.asarray(labels)
        if labels.shape != (self.n_rows,):
            raise ValueError(
                f"labels have shape {labels.shape}; expected one of each of {self.n_rows} rows."
            )
        differ, given = labels != self._labels, labels != UNLABELLED
        if (gone := np.flatnonzero(differ & ~given)).size:
            self.retract(gone.tolist())
        if (new := np.flatnonzero(differ & given)).size:
            self.tell(new.tolist(), labels[new].tolist(), change=True)

    def scores(self) -> Vector | None:
        """Scores of all rows by the latest ranker; None before the first fit."""
        return None if self.ranker_ is None else score_rows(self.ranker_, self.X)

    def fit(self) -> Any:
        """The ranker fitted on all labels so far; None until both labels have been given, and when
        those of one kind have been retracted.
        """
        self.ranker_ = fit_labelled(self._ranker, self.X, self._labels, self.group)
        # A linear ranker starts from its last weights. Other estimators may mean something else by
        # warm_start, and the columns of a pipeline may change from fit to fit.
        if hasattr(self.ranker_, "coef_") and "warm_start" in self.ranker_.get_params(deep=False):
            self.ranker_.set_params(warm_start=True)
        return self.ranker_

    def rank(self, n: int | None = None) -> Index:
        """Unlabelled rows in the order in which the strategy would ask for them, at most n per
        group, by the latest ranker; at random before the first fit. Skipped rows come last.

        Nothing is fitted and nothing written: choosing rows is independent of fitting a ranker.
        """
        rng = np.random.default_rng([self.random_state, len(self.steps)])
        return self._select([] if self.ranker_ is None else self._rankers(rng), rng, n)[0]

    # --- Selection ---

    def _is_open(self, rows: Index) -> Any:
        """Whether rows are neither labelled nor skipped."""
        return (self._labels[rows] == UNLABELLED) & ~self._skipped[rows]

    def _rankers(self, rng: np.random.Generator) -> list[Any]:
        others = self.strategy.committee(self._ranker, self.X, self._labels, self.group, rng)
        return [self.ranker_, *others]

    def _select(
        self, rankers: list[Any], rng: np.random.Generator, n: int | None
    ) -> tuple[Index, float]:
        """Rows to label next, and the time when all rows had been scored."""
        table = np.array([score_rows(ranker, self.X) for ranker in rankers])
        if rankers:
            self._known_finite = True
            self._compare_with_last(table[0])
        strategy = self.strategy if rankers or self.ranker_ is not None else Random()
        if not rankers or not strategy.uses_scores:
            table = np.zeros((1, self.n_rows))
        scored = perf_counter()
        every = np.arange(self.n_rows)
        pools = [np.flatnonzero(self._is_open(every)), np.flatnonzero(self._skipped)]
        if n is not None and pools[0].size:
            pools = pools[:1]
        size = self.n_rows if n is None else n
        chosen = [
            strategy.select(table[0], table[1:], pool, self.group, size, rng)[0] for pool in pools
        ]
        return np.concatenate(chosen), scored

    @property
    def _needs_agreement(self) -> bool:
        return self.stopping is not None and self.stopping.needs_agreement

    def _choose(self) -> Index:
        """The next batch, by the strategy or, while there is no ranker, at random."""
        rng = np.random.default_rng([self.random_state, len(self.steps)])
        rankers: list[Any] = []
        begin = perf_counter()
        if self.strategy.uses_scores or self._needs_agreement:
            self.fit()
            rankers = [] if self.ranker_ is None else self._rankers(rng)
        fitted = perf_counter()
        rows, scored = self._select(rankers, rng, self._batch_size())
        times = {"fit": fitted - begin, "score": scored - fitted}
        self.last_seconds = {**times, "choose": perf_counter() - scored}
        return rows

    def _batch_size(self) -> int:
        if isinstance(self.batch, int):
            return self.batch
        n_groups = 1 if self.group is None else int(self.group.max()) + 1
        return max(1, int(self.batch * self._n_ordered / n_groups))

    def _compare_with_last(self, scores: Vector) -> None:
        """Set the rank correlation of the unlabelled rows, within groups, with the last ranking."""
        if not self._needs_agreement:
            return
        unlabelled = np.flatnonzero(self._labels == UNLABELLED)
        before, self._last_scores = self._last_scores, scores
        if before is not None and unlabelled.size >= 2:
            self._agreement = rank_agreement(before, scores, self.group, unlabelled)

    # --- Labels and the record ---

    def _check_labels(self, rows: Any, labels: Any, *, change: bool = False) -> dict[int, int]:
        """New labels by row number."""
        new: dict[int, int] = {}
        for row, label in zip(*rows_and_labels(rows, labels), strict=True):
            number = check_row(row, self.n_rows)
            value = check_label(label, number, self.n_grades)
            before = new.get(number, int(self._labels[number]))
            if before not in (UNLABELLED, value) and not change:
                raise ValueError(
                    f"Row {number} is labelled {value} but was labelled {before} before; to "
                    f"replace a label, use change=True. {NOTHING_STORED}"
                )
            if self._labels[number] != value:
                new[number] = value
        return new

    def _do(self, step: Step) -> None:
        if step.rows:
            self._write(step)
            self._store(step)

    def _write(self, step: Step) -> None:
        line = asdict(step)
        if step.kind == "label":  # as in records of earlier versions
            del line["kind"]
        self._record.append(line)

    def _store(self, step: Step) -> None:
        self.steps.append(step)
        rows = np.array(step.rows, dtype=np.intp)
        if step.kind == "retract":
            return self._remove(rows)
        if step.kind == "skip":
            self._skipped[rows] = True
        else:
            first = (self._labels[rows] == UNLABELLED) & ~self._skipped[rows]
            self._labels[rows] = step.labels
            self._skipped[rows] = False
            rows = rows[first]  # the others have their place already
        if step.seed:
            self._n_seeds += rows.size
        else:
            begin, self._n_ordered = self._n_ordered, self._n_ordered + rows.size
            self._order[begin : self._n_ordered] = rows

    def _remove(self, rows: Index) -> None:
        order = self._order[: self._n_ordered]
        kept = order[~np.isin(order, rows)]
        self._n_seeds -= rows.size - (order.size - kept.size)
        self._order[: kept.size] = kept
        self._n_ordered = kept.size
        self._labels[rows] = UNLABELLED
        self._skipped[rows] = False

    def _open_record(self, path: Any, random_state: Any) -> RecordFile:
        if path is None:
            return RecordFile(None, {}, kind="labelling loop")
        settings = {
            "format": _FORMAT,
            "rows": self.n_rows,
            "content": content_hash(self.X),
            "groups": None if self.group is None else joblib.hash(self.group),
            "strategy": repr(self.strategy),
            "ranker": describe(self._ranker),
            "batch": self.batch,
            "random_state": self.random_state,
        }
        if self.n_grades > 2:
            settings["n_grades"] = self.n_grades
        if self.relevant_from > 1:
            settings["relevant_from"] = self.relevant_from
        noted = ("random_state",) if random_state is None else ()
        record = RecordFile(path, settings, kind="labelling loop", hashes=_HASHES, noted=noted)
        self.random_state = record.settings["random_state"]
        record.parsed(self._replay)
        return record

    def _replay(self, line: dict[str, Any]) -> None:
        if "asked" in line:
            rows = [check_row(row, self.n_rows) for row in line["asked"]]
            self._asked = np.array(rows, dtype=np.intp)
            self.last_seconds, self._agreement = line["seconds"], line["agreement"]
            return
        step = Step(**line)
        if step.kind in ("skip", "retract"):
            return self._store(
                replace(step, rows=[check_row(row, self.n_rows) for row in step.rows])
            )
        new = self._check_labels(step.rows, step.labels, change=step.kind == "change")
        if step.seconds:
            self.last_seconds, self._agreement = {}, None
        self._store(replace(step, rows=list(new), labels=list(new.values())))
