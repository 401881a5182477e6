"""The one labelling loop, for simulations and for people: ask for rows, be told labels, retrain,
stop.

Every answer is written to the record before it counts, one line of JSON per step, so a loop that is
killed goes on where it was. What a step draws at random depends on the seed and the number of the
step alone, not on what came before.
"""

import json
import os
import re
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from forerank._validation import is_integer
from forerank.active.posterior import group_numbers, sort_groups
from forerank.active.stopping import Reading, StoppingRule
from forerank.active.strategies import Strategy, fit_labelled, make_strategy, score_rows
from forerank.estimators.pool import UNLABELLED, PoolRanker

__all__ = ["LabellingLoop", "Step"]

_FORMAT = 1


@dataclass
class Step:
    """What was told at one time, and what it took to ask for it.

    Attributes
    ----------
    rows : list of int
    labels : list of int
        1 for relevant, 0 for irrelevant.
    seed : bool
        Known before reading began.
    seconds : dict
        "fit", "score" and "choose": the time it took to ask for these rows. Empty for rows that
        were not asked for.
    agreement : float or None
        Spearman's rank correlation of the ranking with the one before it, where a stopping rule
        wants it.
    """

    rows: list[int]
    labels: list[int]
    seed: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    agreement: float | None = None


class LabellingLoop:
    """Asks for labels, learns from them, and says when enough have been read.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features)
        All rows, as the ranker takes them.
    strategy : str or Strategy, default="greedy"
        Which rows to ask for; see `forerank.active.strategies`.
    ranker : estimator, optional
        Fitted on the labelled rows and scored on all; `PoolRanker` by default, or with `qid` a
        `PairwiseRanker`. It is cloned. Linear rankers with `warm_start` are warm-started. One with
        the attribute `learns_from_unlabelled` is fitted on all rows, with the label -1 where there
        is none.
    batch : int or float, default=1
        How many rows to ask for at a time, in each group. A share between 0 and 1 is of the rows
        read so far (per group, in the mean), rounded down, and at least one: fast at the end, where
        one label changes little.
    qid : array-like of shape (n_rows,), optional
        The group of each row: batches are per group. A ranker whose fit has the parameter `qid` is
        given it too.
    stopping : StoppingRule, optional
        Looked at before each batch. Without it, reading ends with the last row.
    random_state : int, numpy.random.Generator, RandomState or None
        Kept in the record.
    record : path, optional
        A file of JSON lines that holds every answer. Where it exists, the loop goes on from it; a
        record of other rows or settings is refused.

    Attributes
    ----------
    steps : list of Step
    labels : array of shape (n_rows,), read-only
        1, 0, or -1 for rows without a label.
    ranker_ : fitted estimator
        None until there are labels of both kinds.
    last_seconds : dict
        "fit", "score" and "choose": what the open batch took to ask for.

    Notes
    -----
    A resumed loop asks for the batch that was open. From then on a warm-started ranker may
    differ from that of a loop that was never interrupted by what its tolerance allows, and
    `RankingStable` does not see how the first ranking differs from the last one before the
    interruption.

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
        random_state: Any = None,
        record: str | os.PathLike | None = None,
    ) -> None:
        self.X = _table(X)
        if len(self.X.shape) not in (1, 2) or not self.X.shape[0]:
            raise ValueError(
                f"X has shape {self.X.shape}; a table is expected, one row per record."
            )
        self.n_rows = int(self.X.shape[0])
        self.strategy = make_strategy(strategy)
        self.batch = _check_batch(batch)
        self.group = group_numbers(qid, self.n_rows)
        if stopping is not None and not isinstance(stopping, StoppingRule):
            raise TypeError(
                f"stopping must be a stopping rule such as Budget(100); got {stopping!r}."
            )
        self.stopping = stopping
        if stopping is not None and stopping.promises_recall and not self.strategy.relevant_first:
            warnings.warn(
                f"RecallBound promises a recall for readings that put the relevant first. {self.strategy!r} looks for "
                "other records, so the promise does not hold. Use Greedy, or another stopping rule.",
                UserWarning,
                stacklevel=2,
            )
        if ranker is None:
            ranker = PoolRanker() if qid is None else _grouped_default()
        self._ranker = clone(ranker)
        self.ranker_: Any = None
        self._labels = np.full(self.n_rows, UNLABELLED)
        self.steps: list[Step] = []
        self._order = np.empty(self.n_rows, dtype=np.intp)
        self._n_read = self._n_seeds = 0
        self._asked: NDArray[np.intp] | None = None
        self.last_seconds: dict[str, float] = {}
        self._agreement: float | None = None
        self._ranks: NDArray[np.float64] | None = None
        self._known_finite = False
        # Drawn here where none is given, so that the record has it.
        self.random_state = seed_number(random_state)
        self._record = None if record is None else Path(record)
        self._record_size = 0
        if self._record is not None:
            settings = {
                "format": _FORMAT,
                "rows": self.n_rows,
                "content": content_hash(self.X),
                "groups": None if self.group is None else joblib.hash(self.group),
                "strategy": repr(self.strategy),
                "ranker": _described(self._ranker),
                "batch": self.batch,
                "random_state": self.random_state,
            }
            if self._record.exists():
                self._take_up(settings, any_seed=random_state is None)
            else:
                self._create(settings)

    # --- What has been read ---

    @property
    def reading(self) -> Reading:
        """Labels in the order of reading, without the seeds."""
        agreement = []
        if self._wants_agreement:
            agreement = [step.agreement for step in self.steps if step.agreement is not None]
            agreement += [] if self._agreement is None else [self._agreement]
        return Reading(self.n_rows - self._n_seeds, self._labels[self.order] == 1, agreement)

    @property
    def labels(self) -> NDArray[np.intp]:
        """The label of each row; change it by `tell`."""
        view = self._labels.view()
        view.flags.writeable = False
        return view

    @property
    def order(self) -> NDArray[np.intp]:
        """Rows in the order of reading, without the seeds."""
        return self._order[: self._n_read].copy()

    @property
    def stopped(self) -> str | None:
        """Why reading is over, or None. To read on all the same, set `stopping` to another rule or
        None.
        """
        if self._n_read + self._n_seeds == self.n_rows:
            return "every record is labelled"
        return None if self.stopping is None else self.stopping.reason(self.reading)

    # --- Asking and being told ---

    def ask(self) -> NDArray[np.intp]:
        """The next rows to label, best first; none where reading is over.

        Until some of them are told, the answer stays the same.
        """
        nothing = np.zeros(0, dtype=np.intp)
        if self.stopped:
            return nothing
        if self._asked is not None:
            still_open = self._asked[self._labels[self._asked] == UNLABELLED]
            if still_open.size:
                return still_open
        asked = self._choose()
        self._append(
            {"asked": asked.tolist(), "seconds": self.last_seconds, "agreement": self._agreement}
        )
        self._asked = asked
        return (
            nothing if self.stopped else self._asked.copy()
        )  # the new ranking may be what a rule waited for

    def tell(self, rows: int | Iterable[int], labels: Any, *, seed: bool = False) -> None:
        """Labels of some rows, asked for or not. Either all are taken or, where one is wrong, none.

        Parameters
        ----------
        rows : int or iterable of int
        labels : label or iterable of labels
            1 or True for relevant, 0 or False for irrelevant. Telling a row's label again does
            nothing; another label for it is refused.
        seed : bool, default=False
            Known before reading began: learnt from, but not counted as read.
        """
        new_rows, new_labels = self._check_told(rows, labels)
        if not new_rows:
            return
        if seed and self._n_read:
            raise ValueError(
                f"Row {new_rows[0]} is told as a seed, and reading has begun: seeds are what is known before. Leave "
                "out seed."
            )
        step = Step(new_rows, new_labels, bool(seed))
        answers = (
            self._asked is not None and not seed and bool(np.isin(new_rows, self._asked).any())
        )
        if answers:
            step.seconds, step.agreement = self.last_seconds, self._agreement
        self._append(asdict(step))
        if answers:
            self.last_seconds, self._agreement = {}, None
        self._take(step)

    def scores(self) -> NDArray[np.float64] | None:
        """Scores of all rows under the latest ranker; None while there is none."""
        return None if self.ranker_ is None else score_rows(self.ranker_, self.X)

    def fit(self) -> Any:
        """Fit the ranker on all labels so far; None while they are of one kind."""
        fitted = fit_labelled(self._ranker, self.X, self._labels, self.group)
        if fitted is not None:
            self.ranker_ = fitted
            _start_warm_from_now_on(fitted)
        return self.ranker_

    # --- Inside ---

    def _choose(self) -> NDArray[np.intp]:
        rng = np.random.default_rng([self.random_state, len(self.steps)])
        labelled = self._labels != UNLABELLED
        n_groups = 1 if self.group is None else int(self.group.max()) + 1
        n = (
            self.batch
            if isinstance(self.batch, int)
            else max(1, int(self.batch * self._n_read / n_groups))
        )
        # Once all rows have been scored, there is no need to look for NaN in them again and again.
        with config_context(assume_finite=self._known_finite or get_config()["assume_finite"]):
            return self._choose_rows(rng, labelled, n)

    def _choose_rows(
        self, rng: np.random.Generator, labelled: NDArray[np.bool_], n: int
    ) -> NDArray[np.intp]:
        clock = perf_counter()
        if self.strategy.uses_scores or self._wants_agreement:
            self.fit()
        fitted = scored = perf_counter()
        strategy: Strategy = self.strategy
        scores: Any = np.zeros(self.n_rows)
        if self.ranker_ is None:
            strategy = make_strategy("random")  # nothing to rank by yet
        elif strategy.uses_scores or self._wants_agreement:
            others = []
            if strategy.compares_rankers:
                others = strategy.committee(self._ranker, self.X, self._labels, self.group, rng)
            fitted = perf_counter()
            scores = score_rows(self.ranker_, self.X)
            self._known_finite = True
            self._compare_with_last(scores)
            if not strategy.uses_scores:
                scores = np.zeros(self.n_rows)
            elif strategy.compares_rankers:
                scores = np.array([scores, *(score_rows(other, self.X) for other in others)])
            scored = perf_counter()
        chosen = strategy.choose(scores, labelled, n=n, groups=self.group, random_state=rng)
        self.last_seconds = {
            "fit": fitted - clock,
            "score": scored - fitted,
            "choose": perf_counter() - scored,
        }
        return chosen

    @property
    def _wants_agreement(self) -> bool:
        return self.stopping is not None and self.stopping.needs_agreement

    def _compare_with_last(self, scores: NDArray[np.float64]) -> None:
        """Rank correlation over the rows that are still open, within groups."""
        if not self._wants_agreement:
            return
        still_open = np.flatnonzero(self._labels == UNLABELLED)
        before, self._ranks = self._ranks, scores
        if before is None or still_open.size < 2:
            return
        ranks = []
        for values in (before, scores):
            groups = sort_groups(values, self.group, still_open)
            centred = np.empty(self.n_rows)
            centred[groups.rows] = groups.ranks() - groups.spread(0.5 * (groups.sizes + 1))
            ranks.append(centred[still_open])
        norm = float(np.linalg.norm(ranks[0]) * np.linalg.norm(ranks[1]))
        self._agreement = (
            float(ranks[0] @ ranks[1]) / norm if norm > 0.0 else 0.0
        )  # a constant agrees with nothing

    def _check_told(self, rows: Any, labels: Any) -> tuple[list[int], list[int]]:
        if isinstance(rows, np.ndarray) and rows.ndim == 0:
            rows = rows.item()
        if not isinstance(rows, Iterable) or isinstance(rows, str):
            rows, labels = [rows], [labels]
            labels = [
                label.item() if isinstance(label, np.ndarray) and label.ndim == 0 else label
                for label in labels
            ]
        elif not isinstance(labels, Iterable) or isinstance(labels, str):
            raise ValueError(
                f"Several rows were told with the one label {labels!r}; give one label per row."
            )
        rows, labels = list(rows), list(labels)
        if len(rows) != len(labels):
            raise ValueError(
                f"{len(rows)} rows were told with {len(labels)} labels; give one label per row."
            )
        told: dict[int, int] = {}
        for row, label in zip(rows, labels, strict=True):
            number = _row_number(row, self.n_rows)
            value = _label(label, number)
            before = told.get(number, int(self._labels[number]))
            if before not in (UNLABELLED, value):
                raise ValueError(
                    f"Row {number} is told to be {_WORD[value]} but was told before to be {_WORD[before]}. Nothing of "
                    "this call was taken."
                )
            if self._labels[number] == UNLABELLED:
                told[number] = value
        return list(told), list(told.values())

    def _take(self, step: Step) -> None:
        self._labels[step.rows] = step.labels
        self.steps.append(step)
        if step.seed:
            self._n_seeds += len(step.rows)
        else:
            self._order[self._n_read : self._n_read + len(step.rows)] = step.rows
            self._n_read += len(step.rows)

    # --- The record ---

    def _create(self, head: dict[str, Any]) -> None:
        assert self._record is not None
        self._record.parent.mkdir(parents=True, exist_ok=True)
        part = self._record.with_name(self._record.name + ".part")
        with part.open("w") as file:
            file.write(json.dumps(head) + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._record)
        self._record_size = self._record.stat().st_size

    def _append(self, line: dict[str, Any]) -> None:
        """On disk before it counts; nothing is added to a file that is not as this loop left it."""
        if self._record is None:
            return
        size = self._record.stat().st_size if self._record.exists() else None
        if size != self._record_size:
            what = (
                "is gone"
                if size is None
                else "was changed by something else, such as a second loop on it"
            )
            raise RuntimeError(
                f"{self._record} {what}; nothing was written or taken. Open the record anew to go on."
            )
        with self._record.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
            self._record_size = file.tell()

    def _take_up(self, settings: dict[str, Any], *, any_seed: bool) -> None:
        """Read the record; the line that an interruption cut short is dropped, from the file too."""
        assert self._record is not None
        data = self._record.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        head, *lines = self._parsed(whole)
        if any_seed:
            settings["random_state"] = self.random_state = head["random_state"]
        for name, value in settings.items():
            if head.get(name) != value:
                raise ValueError(
                    f"{self._record} is the record of another loop: its {name} is {head.get(name)!r}, and here it is "
                    f"{value!r}. Give the same rows and settings, or another record."
                )
        for number, line in enumerate(lines, start=2):
            try:
                if "asked" in line:
                    self._asked = np.array(
                        [_row_number(row, self.n_rows) for row in line["asked"]], dtype=np.intp
                    )
                    self.last_seconds, self._agreement = line["seconds"], line["agreement"]
                    continue
                step = Step(**line)
                rows, labels = self._check_told(step.rows, step.labels)
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"{self._record}, line {number}: {error}") from None
            if step.seconds:
                self.last_seconds, self._agreement = {}, None
            self._take(Step(rows, labels, step.seed, step.seconds, step.agreement))
        if len(whole) < len(data):
            with self._record.open("r+b") as file:
                file.truncate(len(whole))
        self._record_size = len(whole)

    def _parsed(self, text: bytes) -> list[dict[str, Any]]:
        parsed = []
        for number, line in enumerate(text.splitlines(), start=1):
            try:
                value = json.loads(line)
            except (json.JSONDecodeError, UnicodeDecodeError):
                value = None
            if not isinstance(value, dict):
                raise ValueError(
                    f"{self._record}, line {number}: not a line of a record of labels. The file is damaged."
                )
            parsed.append(value)
        if not parsed or parsed[0].get("format") != _FORMAT or "random_state" not in parsed[0]:
            raise ValueError(
                f"{self._record} is not a record of a labelling loop. Remove it, or choose another path."
            )
        return parsed


_WORD = {0: "irrelevant (0)", 1: "relevant (1)"}


def _row_number(row: Any, n_rows: int) -> int:
    if isinstance(row, bool | np.bool_) or not isinstance(row, int | np.integer):
        raise ValueError(f"Rows are told by their number, from 0 to {n_rows - 1}; got {row!r}.")
    if not 0 <= row < n_rows:
        raise ValueError(f"There is no row {row}: rows are numbered from 0 to {n_rows - 1}.")
    return int(row)


def _label(label: Any, row: int) -> int:
    if isinstance(label, bool | np.bool_ | int | np.integer | float | np.floating) and label in (
        0,
        1,
    ):
        return int(label)
    raise ValueError(
        f"Row {row} is told the label {label!r}, which is unknown; 1 (relevant) or 0 (irrelevant) is expected. Nothing "
        "of this call was taken."
    )


def _check_batch(batch: Any) -> int | float:
    if is_integer(batch) and batch >= 1:
        return int(batch)
    if isinstance(batch, float | np.floating) and 0.0 < batch < 1.0:
        return float(batch)
    raise ValueError(
        f"batch must be a whole number of at least 1, or a share between 0 and 1; got {batch!r}."
    )


def _grouped_default() -> Any:
    from forerank.estimators import PairwiseRanker

    return PairwiseRanker(alpha=1e-2)


def _start_warm_from_now_on(ranker: Any) -> None:
    """Let a linear ranker begin at its weights; elsewhere warm_start may mean to grow on, or not to
    fit anew.

    Not in a pipeline, whose other steps are fitted anew: its columns may be others next time.
    """
    if hasattr(ranker, "coef_") and "warm_start" in ranker.get_params(deep=False):
        ranker.set_params(warm_start=True)


def _table(X: Any) -> Any:
    """Rows that can be taken by number: CSR, a frame as it is, or an array (of objects where X is a
    list of texts).
    """
    if sp.issparse(X):
        return X.tocsr()
    if hasattr(X, "columns") and hasattr(X, "shape"):
        return X
    array = np.asarray(X)
    return np.asarray(X, dtype=object) if array.dtype.kind in "US" else array


def _described(ranker: Any) -> str:
    """The ranker in words, the same in every process."""
    with config_context(print_changed_only=True):
        text = (
            ranker.__repr__(N_CHAR_MAX=100_000)
            if isinstance(ranker, BaseEstimator)
            else repr(ranker)
        )
    return re.sub(r" at 0x[0-9a-f]+", "", " ".join(text.split()))


def content_hash(value: Any) -> str:
    """A hash of values alone: a sparse matrix also carries notes about itself, which change as it
    is used.
    """
    if sp.issparse(value):
        csr = value.tocsr()
        return str(joblib.hash(("csr", tuple(csr.shape), csr.data, csr.indices, csr.indptr)))
    if isinstance(value, list | tuple):
        return str(joblib.hash([content_hash(part) for part in value]))
    return str(joblib.hash(value))


def seed_number(random_state: Any) -> int:
    """A number to seed generators with."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if not is_integer(random_state):
        return int(check_random_state(random_state).randint(2**31))
    if random_state < 0:
        raise ValueError(f"random_state must not be negative; got {random_state!r}.")
    return int(random_state)
