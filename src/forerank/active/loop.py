"""The labelling loop, for simulations and for people: `ask` for rows, `tell` their labels, repeat.

Every batch and every answer is written to a record file before it takes effect, so an interrupted
loop can be resumed. Random draws of a step depend on the seed and the number of the step only.
"""

import os
import re
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from time import perf_counter
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from forerank._typing import Index, Vector
from forerank._validation import check_number, is_integer, is_number
from forerank.active.fitting import fit_labelled
from forerank.active.posterior import group_numbers, sort_groups
from forerank.active.stopping import Reading, StoppingRule
from forerank.active.strategies import Random, Strategy, make_strategy
from forerank.data.records import RecordFile, content_hash
from forerank.estimators.pairwise import PairwiseRanker
from forerank.estimators.pool import UNLABELLED, PoolRanker
from forerank.estimators.scores import score_rows

__all__ = ["LabellingLoop", "Step"]

_FORMAT = 1  # version of the format of the record file
_HASHES = {"content": "other values in X", "groups": "other groups"}
_NOTHING_STORED = "No label of this call was stored."


@dataclass
class Step:
    """Labels given in one call of `tell`, and how the batch was selected.

    Attributes
    ----------
    rows : list of int
    labels : list of int
        1 for relevant, 0 for irrelevant; or grades, of which those above 0 are relevant.
    seed : bool
        Whether the labels were known at the start.
    seconds : dict
        "fit", "score" and "choose": time to select these rows. Empty if they were not asked for.
    agreement : float or None
        Spearman's rank correlation of the ranking with the one before it, if a stopping rule needs
        it.
    """

    rows: list[int]
    labels: list[int]
    seed: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    agreement: float | None = None


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
        Number of grades: labels are 0 .. n_grades - 1, higher for more relevant rows. Rows of a
        grade above 0 are relevant for stopping rules. With more than two the default ranker is
        ``PairwiseRanker(graph="order")``; another one has to accept grades.
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
        random_state: Any = None,
        record: str | os.PathLike | None = None,
    ) -> None:
        self.X = _as_rows(X)
        if len(self.X.shape) not in (1, 2) or not self.X.shape[0]:
            raise ValueError(
                f"X has shape {self.X.shape}; expected a table or a list of texts, with at least "
                "one row."
            )
        self.n_rows = int(self.X.shape[0])
        self.strategy = make_strategy(strategy)
        self.batch = _check_batch(batch)
        self.group = group_numbers(qid, self.n_rows)
        self.stopping = stopping
        _check_stopping(stopping, self.strategy)
        check_number("n_grades", n_grades, low=2, integer=True)
        self.n_grades = int(n_grades)
        self._ranker = clone(self._default_ranker() if ranker is None else ranker)
        self.ranker_: Any = None
        self._labels = np.full(self.n_rows, UNLABELLED)
        self.steps: list[Step] = []
        self._order = np.empty(self.n_rows, dtype=np.intp)
        self._n_labelled = self._n_seeds = 0  # labelled without the seeds, and seeds
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
        return Reading(self.n_rows - self._n_seeds, self._labels[self.order] > 0, agreement)

    @property
    def labels(self) -> Index:
        """The label of each row, read-only."""
        view = self._labels.view()
        view.flags.writeable = False
        return view

    @property
    def order(self) -> Index:
        """Rows in the order of labelling, without the seeds."""
        return self._order[: self._n_labelled].copy()

    @property
    def stopped(self) -> str | None:
        """The reason why labelling has stopped, or None. To continue nevertheless, set `stopping`
        to another rule or None.
        """
        if self._n_labelled + self._n_seeds == self.n_rows:
            return "every record is labelled"
        return None if self.stopping is None else self.stopping.reason(self.reading)

    def ask(self) -> Index:
        """The next rows to label, the highest utility first; none when labelling has stopped.

        The same rows are returned until one of them is labelled.
        """
        nothing = np.zeros(0, dtype=np.intp)
        if self.stopped:
            return nothing
        pending = self._asked[self._labels[self._asked] == UNLABELLED]
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

    def tell(self, rows: int | Iterable[int], labels: Any, *, seed: bool = False) -> None:
        """Store labels of rows, whether asked for or not: all of them or, on an error, none.

        Parameters
        ----------
        rows : int or iterable of int
        labels : label or iterable of labels
            1 or True for relevant, 0 or False for irrelevant; or grades from 0 to n_grades - 1. A
            label that is stored already is ignored, a different one refused.
        seed : bool, default=False
            Whether the labels were known at the start: the ranker is trained on them, but they do
            not count as labelling work.
        """
        new = self._check_labels(rows, labels)
        if not new:
            return
        if seed and self._n_labelled:
            raise ValueError(
                f"Row {next(iter(new))} is given as a seed after labelling has begun; seeds are "
                "labels known at the start. Use seed=False."
            )
        step = Step(list(new), list(new.values()), bool(seed))
        answers_batch = not seed and bool(np.isin(step.rows, self._asked).any())
        if answers_batch:
            step.seconds, step.agreement = self.last_seconds, self._agreement
        self._record.append(asdict(step))
        if answers_batch:
            self.last_seconds, self._agreement = {}, None
        self._store(step)

    def scores(self) -> Vector | None:
        """Scores of all rows by the latest ranker; None before the first fit."""
        return None if self.ranker_ is None else score_rows(self.ranker_, self.X)

    def fit(self) -> Any:
        """The ranker fitted on all labels so far; None until both labels have been given."""
        fitted = fit_labelled(self._ranker, self.X, self._labels, self.group)
        if fitted is not None:
            self.ranker_ = fitted
            # A linear ranker starts from its last weights. Other estimators may mean something else
            # by warm_start, and the columns of a pipeline may change from fit to fit.
            if hasattr(fitted, "coef_") and "warm_start" in fitted.get_params(deep=False):
                fitted.set_params(warm_start=True)
        return self.ranker_

    # --- Selection ---

    @property
    def _needs_agreement(self) -> bool:
        return self.stopping is not None and self.stopping.needs_agreement

    def _choose(self) -> Index:
        """The next batch, by the strategy or, while there is no ranker, at random."""
        rng = np.random.default_rng([self.random_state, len(self.steps)])
        strategy, rankers = self.strategy, []
        needs_ranker = strategy.uses_scores or self._needs_agreement
        begin = perf_counter()
        if needs_ranker:
            self.fit()
        if self.ranker_ is None:
            strategy = Random()
        elif needs_ranker:
            others = strategy.committee(self._ranker, self.X, self._labels, self.group, rng)
            rankers = [self.ranker_, *others]
        fitted = perf_counter()
        table = np.array([score_rows(ranker, self.X) for ranker in rankers])
        if rankers:
            self._known_finite = True
            self._compare_with_last(table[0])
        if not rankers or not strategy.uses_scores:
            table = np.zeros((1, self.n_rows))
        scored = perf_counter()
        unlabelled = np.flatnonzero(self._labels == UNLABELLED)
        size = self._batch_size()
        rows, _ = strategy.select(table[0], table[1:], unlabelled, self.group, size, rng)
        times = {"fit": fitted - begin, "score": scored - fitted}
        self.last_seconds = {**times, "choose": perf_counter() - scored}
        return rows

    def _batch_size(self) -> int:
        if isinstance(self.batch, int):
            return self.batch
        n_groups = 1 if self.group is None else int(self.group.max()) + 1
        return max(1, int(self.batch * self._n_labelled / n_groups))

    def _compare_with_last(self, scores: Vector) -> None:
        """Set the rank correlation of the unlabelled rows, within groups, with the last ranking."""
        if not self._needs_agreement:
            return
        unlabelled = np.flatnonzero(self._labels == UNLABELLED)
        before, self._last_scores = self._last_scores, scores
        if before is None or unlabelled.size < 2:
            return
        ranks = []
        for values in (before, scores):
            groups = sort_groups(values, self.group, unlabelled)
            centred = np.empty(self.n_rows)
            centred[groups.rows] = groups.ranks() - groups.per_row(0.5 * (groups.sizes + 1))
            ranks.append(centred[unlabelled])
        norm = float(np.linalg.norm(ranks[0]) * np.linalg.norm(ranks[1]))
        # Constant scores have no correlation; they count as no agreement.
        self._agreement = float(ranks[0] @ ranks[1]) / norm if norm > 0.0 else 0.0

    # --- Labels and the record ---

    def _check_labels(self, rows: Any, labels: Any) -> dict[int, int]:
        """New labels by row number."""
        rows = _scalar(rows)
        if not isinstance(rows, Iterable) or isinstance(rows, str):
            rows, labels = [rows], [_scalar(labels)]
        elif not isinstance(labels, Iterable) or isinstance(labels, str):
            raise ValueError(f"Several rows have the one label {labels!r}; give one label per row.")
        rows, labels = list(rows), list(labels)
        if len(rows) != len(labels):
            raise ValueError(f"{len(rows)} rows have {len(labels)} labels; give one label per row.")
        new: dict[int, int] = {}
        for row, label in zip(rows, labels, strict=True):
            number = _row_number(row, self.n_rows)
            value = _label(label, number, self.n_grades)
            before = new.get(number, int(self._labels[number]))
            if before not in (UNLABELLED, value):
                raise ValueError(
                    f"Row {number} is labelled {value} but was labelled {before} before. "
                    f"{_NOTHING_STORED}"
                )
            if self._labels[number] == UNLABELLED:
                new[number] = value
        return new

    def _store(self, step: Step) -> None:
        self._labels[step.rows] = step.labels
        self.steps.append(step)
        if step.seed:
            self._n_seeds += len(step.rows)
        else:
            begin, self._n_labelled = self._n_labelled, self._n_labelled + len(step.rows)
            self._order[begin : self._n_labelled] = step.rows

    def _open_record(self, path: Any, random_state: Any) -> RecordFile:
        if path is None:
            return RecordFile(None, {}, kind="labelling loop")
        settings = {
            "format": _FORMAT,
            "rows": self.n_rows,
            "content": content_hash(self.X),
            "groups": None if self.group is None else joblib.hash(self.group),
            "strategy": repr(self.strategy),
            "ranker": _describe(self._ranker),
            "batch": self.batch,
            "random_state": self.random_state,
        }
        if self.n_grades > 2:
            settings["n_grades"] = self.n_grades
        noted = ("random_state",) if random_state is None else ()
        record = RecordFile(path, settings, kind="labelling loop", hashes=_HASHES, noted=noted)
        self.random_state = record.settings["random_state"]
        record.parsed(self._replay)
        return record

    def _replay(self, line: dict[str, Any]) -> None:
        if "asked" in line:
            rows = [_row_number(row, self.n_rows) for row in line["asked"]]
            self._asked = np.array(rows, dtype=np.intp)
            self.last_seconds, self._agreement = line["seconds"], line["agreement"]
            return
        step = Step(**line)
        new = self._check_labels(step.rows, step.labels)
        if step.seconds:
            self.last_seconds, self._agreement = {}, None
        self._store(replace(step, rows=list(new), labels=list(new.values())))


def _check_stopping(stopping: Any, strategy: Strategy) -> None:
    if stopping is None:
        return
    if not isinstance(stopping, StoppingRule):
        raise TypeError(f"stopping must be a stopping rule such as Budget(100); got {stopping!r}.")
    if stopping.guarantees_recall and not strategy.relevant_first:
        warnings.warn(
            f"RecallBound assumes a strategy that selects relevant rows first, and {strategy!r} "
            "does not, so its guarantee does not hold. Use Greedy, or another stopping rule.",
            UserWarning,
            stacklevel=3,
        )


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _row_number(row: Any, n_rows: int) -> int:
    if not is_integer(row):
        raise ValueError(f"Rows are integers from 0 to {n_rows - 1}; got {row!r}.")
    if not 0 <= row < n_rows:
        raise ValueError(f"There is no row {row}: rows are numbered from 0 to {n_rows - 1}.")
    return int(row)


def _label(label: Any, row: int, n_grades: int) -> int:
    known = is_number(label) or isinstance(label, bool | np.bool_)
    if known and 0 <= label < n_grades and int(label) == label:
        return int(label)
    expected = "1 (relevant) or 0 (irrelevant)"
    if n_grades > 2:
        expected = f"a grade from 0 to {n_grades - 1}"
    raise ValueError(f"The label of row {row} is {label!r}; expected {expected}. {_NOTHING_STORED}")


def _check_batch(batch: Any) -> int | float:
    if is_integer(batch) and batch >= 1:
        return int(batch)
    if isinstance(batch, float | np.floating) and 0.0 < batch < 1.0:
        return float(batch)
    raise ValueError(f"batch must be an integer >= 1, or a share between 0 and 1; got {batch!r}.")


def _as_rows(X: Any) -> Any:
    """X so that rows can be taken by number: CSR, a data frame, or an array (of objects where X is
    a list of texts).
    """
    if sp.issparse(X):
        return X.tocsr()
    if hasattr(X, "columns") and hasattr(X, "shape"):
        return X
    array = np.asarray(X)
    return np.asarray(X, dtype=object) if array.dtype.kind in "US" else array


def _describe(ranker: Any) -> str:
    """Class and parameters of the ranker, the same text in every process."""
    with config_context(print_changed_only=True):
        untruncated = {"N_CHAR_MAX": 100_000} if isinstance(ranker, BaseEstimator) else {}
        text = ranker.__repr__(**untruncated)
    return re.sub(r" at 0x[0-9a-f]+", "", " ".join(text.split()))


def seed_number(random_state: Any) -> int:
    """A seed for generators; drawn where `random_state` is not an integer."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if not is_integer(random_state):
        return int(check_random_state(random_state).randint(2**31))
    if random_state < 0:
        raise ValueError(f"random_state must not be negative; got {random_state!r}.")
    return int(random_state)
