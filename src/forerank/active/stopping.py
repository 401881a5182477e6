"""Stopping rules of the labelling loop. `a | b` stops where either does, `a & b` where both do.

`RecallBound` and `Audit` give a guarantee; the derivation is docs/maths/stopping.md. Let f relevant
records have been found, the last when R records were unread, and let r be unread now. If K records
were relevant, a run of R - r irrelevant ones would have at most the probability

    C(r, K - f) / C(R, K - f)

when each record is at least as likely to be relevant as one drawn at random from the unread ones.
K is rejected when that is at most its stake. The stakes of one K over all f sum to at most
1 - confidence, so that the true K is ever rejected with at most that probability, no matter how
often the rule is evaluated (`forerank.active.stakes`).
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from forerank._typing import Index, Mask, Vector
from forerank._validation import check_number
from forerank.active.stakes import ROUNDING, largest_unread, most_missing

__all__ = [
    "ROUNDING",
    "All",
    "Any_",
    "Audit",
    "Budget",
    "IrrelevantInARow",
    "RankingStable",
    "Reading",
    "RecallBound",
    "StoppingRule",
    "audit_order",
    "recall_by_confidence",
]


@dataclass
class Reading:
    """The labels so far, as stopping rules see them.

    Attributes
    ----------
    n_records : int
        Records that were unlabelled at the start, without the seeds.
    relevant : array of bool
        Labels of the records labelled since, in their order.
    agreement : list of float
        Spearman's rank correlation of each ranking of the unlabelled records with the one before.
    known_relevant : int, default=0
        Relevant records known besides the n_records, such as seeds. Recall then counts them: it is
        that of the n_records and these together.
    undecided : array of bool, optional
        Records of `relevant` that were read without a decision. They keep their place in the order,
        and recall bounds count them as relevant and not found.
    out_of_order : int, default=0
        Records of the n_records that were decided but not read in the order, such as those that
        somebody searched for. The relevant ones are counted in `known_relevant`.
    """

    n_records: int
    relevant: Mask
    agreement: list[float] = field(default_factory=list)
    known_relevant: int = 0
    undecided: Mask | None = None
    out_of_order: int = 0

    def __post_init__(self) -> None:
        check_number("known_relevant", self.known_relevant, low=0, integer=True)
        check_number("out_of_order", self.out_of_order, low=0, integer=True)
        if np.size(self.relevant) > self.n_records:
            raise ValueError(
                f"{np.size(self.relevant)} records were read of {self.n_records}; n_records is the "
                "number of all records that were unread at the start."
            )
        if self.undecided is not None and np.shape(self.undecided) != np.shape(self.relevant):
            raise ValueError(
                f"undecided has shape {np.shape(self.undecided)} and relevant has shape "
                f"{np.shape(self.relevant)}; give one entry for each record read."
            )


class StoppingRule:
    """Base of the stopping rules; a subclass defines `reason`."""

    # Whether the rule reads `Reading.agreement`.
    needs_agreement = False
    # Whether it guarantees a recall, which assumes that relevant records are selected first.
    guarantees_recall = False

    def reason(self, reading: Reading) -> str | None:
        """The reason to stop, or None."""
        raise NotImplementedError

    def __or__(self, other: "StoppingRule") -> "StoppingRule":
        return Any_((*_rules(self, Any_), *_rules(other, Any_)))

    def __and__(self, other: "StoppingRule") -> "StoppingRule":
        return All((*_rules(self, All), *_rules(other, All)))


def _rules(rule: Any, kind: type) -> tuple[StoppingRule, ...]:
    if not isinstance(rule, StoppingRule):
        raise TypeError(
            "A stopping rule can be combined (|, &) only with another stopping rule such as "
            f"Budget(100); got {rule!r}."
        )
    return rule.rules if isinstance(rule, kind) else (rule,)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class _Combined(StoppingRule):
    rules: tuple[StoppingRule, ...]

    @property
    def needs_agreement(self) -> bool:  # type: ignore[override]
        return any(rule.needs_agreement for rule in self.rules)

    @property
    def guarantees_recall(self) -> bool:  # type: ignore[override]
        return any(rule.guarantees_recall for rule in self.rules)


class Any_(_Combined):
    """Stops where one of the rules does; the result of `a | b`."""

    def reason(self, reading: Reading) -> str | None:
        reasons = (rule.reason(reading) for rule in self.rules)
        return next((reason for reason in reasons if reason is not None), None)


class All(_Combined):
    """Stops where all of the rules do; the result of `a & b`."""

    def reason(self, reading: Reading) -> str | None:
        reasons = [rule.reason(reading) for rule in self.rules]
        return None if None in reasons else "; ".join(reason for reason in reasons if reason)


@dataclass(frozen=True)
class _Counted(StoppingRule):
    n: int

    def __post_init__(self) -> None:
        check_number("n", self.n, low=1, integer=True)


class Budget(_Counted):
    """Stops after n records, or at the end of the batch in which n is reached."""

    def reason(self, reading: Reading) -> str | None:
        spent = reading.relevant.size >= self.n
        return f"the budget of {self.n} records is spent" if spent else None


class IrrelevantInARow(_Counted):
    """Stops after n irrelevant records in a row. A common rule, without any guarantee."""

    def reason(self, reading: Reading) -> str | None:
        run = _irrelevant_at_end(reading.relevant)
        return f"the last {run} records were irrelevant" if run >= self.n else None


@dataclass(frozen=True)
class _State:
    """What a recall bound takes from a reading: finds with those known, records that count as
    relevant and not found, and unread records right after the last of either, and now. Of the
    unread ones, those that were decided out of order cannot be missing.
    """

    found: int
    undecided: int
    at_last_find: int
    unread: int
    out_of_order: int

    @classmethod
    def of(cls, reading: Reading, start: int = 0) -> "_State":
        """The state of a bound whose runs begin at the record number `start`."""
        relevant, read = reading.relevant, reading.relevant.size
        undecided = np.zeros(read, dtype=bool) if reading.undecided is None else reading.undecided
        # A record that is marked as both has been decided.
        open_ = undecided & ~relevant
        unread = reading.n_records - read
        run = min(_irrelevant_at_end(relevant | open_), read - start)
        found = int(np.count_nonzero(relevant)) + reading.known_relevant
        n_open = int(np.count_nonzero(open_))
        return cls(found, n_open, unread + run, unread, reading.out_of_order)

    def lower_bound(self, unread: int, target: float, confidence: float) -> float:
        """The bound of the recall after irrelevant records until `unread` ones are left.

        Any number of the undecided records may turn out relevant. What is rejected with none and
        with all of them is rejected with every number between (docs/maths/stopping.md).
        """
        counted = self.found + self.undecided
        missing = max(
            most_missing(k, self.at_last_find, unread, target=target, delta=1.0 - confidence)
            for k in {self.found, counted}
        )
        most = counted + min(missing, max(unread - self.out_of_order, 0))
        return self.found / most if most else 1.0


@dataclass(frozen=True)
class RecallBound(StoppingRule):
    """Stops when the recall has reached a target, with a given confidence.

    The recall is that of the records unlabelled at the start: f found of K. The guarantee holds at
    all times together, so the rule may be evaluated at any time. It assumes that each record
    selected is at least as likely to be relevant, given all earlier labels, as one drawn at random
    from the unlabelled records: true of `Random`, and of `Greedy` with a useful ranker. Strategies
    that do not look for relevant records, such as `Uncertain`, violate it; `Audit` needs no such
    assumption. The derivation is docs/maths/stopping.md.

    Parameters
    ----------
    target : float, default=0.95
        The guaranteed recall.
    confidence : float, default=0.95
        The least probability that the guarantee holds.
    """

    target: float = 0.95
    confidence: float = 0.95
    guarantees_recall = True

    def __post_init__(self) -> None:
        for name in ("target", "confidence"):
            value = getattr(self, name)
            if not 0.0 < value < 1.0:
                raise ValueError(f"{name} must lie between 0 and 1; got {value!r}.")

    def lower_bound(self, reading: Reading) -> float:
        """A lower confidence bound of the recall so far, valid at all times together; 0 at first.

        Cost: one pass over the labels, then logarithmic in the number of unlabelled records.
        """
        state = self._state(reading)
        return state.lower_bound(state.unread, self.target, self.confidence)

    def records_to_go(self, reading: Reading) -> int:
        """Number of records until the rule stops if none of them is relevant; 0 where it stops."""
        state = self._state(reading)

        def stops(unread: int) -> bool:
            bound = state.lower_bound(unread, self.target, self.confidence)
            return bound >= self.target - ROUNDING

        left = max(largest_unread(stops, state.unread), state.out_of_order)
        return max(state.unread - left, 0)

    def reason(self, reading: Reading) -> str | None:
        bound = self.lower_bound(reading)
        if bound < self.target - ROUNDING:
            return None
        return f"the recall is at least {bound:.4g}, at {self.confidence:.0%} confidence"

    def _state(self, reading: Reading) -> _State:
        return _State.of(reading)


@dataclass(frozen=True)
class Audit(RecallBound):
    """Stops when the recall has reached a target, with no assumption on how records were selected.

    The first `start` records may have been selected in any way. All records unread then are read in
    a random order (`audit_order`); finds before count as certain, and the bound of what is missing
    comes from the random order alone. The recall is that of all records of the reading.

    Parameters
    ----------
    target, confidence : float, default=0.95
        See `RecallBound`.
    start : int, default=0
        Number of records read before the random order began. It has to be fixed before the first
        record of that order is read.
    """

    start: int = 0
    guarantees_recall = False  # no assumption on the strategy that could be violated

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("start", self.start, low=0, integer=True)

    def reason(self, reading: Reading) -> str | None:
        return None if reading.relevant.size < self.start else super().reason(reading)

    def _state(self, reading: Reading) -> _State:
        if reading.relevant.size < self.start:
            raise ValueError(
                f"The audit starts after {self.start} records and {reading.relevant.size} were "
                "read; ask for its bound from then on."
            )
        return _State.of(reading, self.start)


def audit_order(rows: Any, seed: int) -> Index:
    """The rows in a random order that depends on the set of rows and the seed only."""
    check_number("seed", seed, low=0, integer=True)
    return np.random.default_rng(seed).permutation(np.sort(np.asarray(rows, dtype=np.intp)))


def recall_by_confidence(
    reading: Reading, confidences: Any, rule: RecallBound | None = None
) -> Vector:
    """Lower bounds of the recall at several confidences, for a curve; they fall with confidence.

    Each bound is valid at all times at its own confidence; they are not valid together, so a
    confidence has to be fixed before reading begins.

    Parameters
    ----------
    reading : Reading
    confidences : array-like of float
    rule : RecallBound, optional
        Of which the target and, for an `Audit`, the start are taken.
    """
    rule = RecallBound() if rule is None else rule
    values = np.asarray(confidences, dtype=float)
    bounds = [replace(rule, confidence=float(value)).lower_bound(reading) for value in values]
    return np.array(bounds, dtype=float)


@dataclass(frozen=True)
class RankingStable(StoppingRule):
    """Stops when new labels no longer change the ranking of the unlabelled records.

    Parameters
    ----------
    agreement : float, default=0.99
        The least rank correlation of a ranking with the one before it.
    patience : int, default=3
        Number of successive rankings that must agree as well.
    """

    agreement: float = 0.99
    patience: int = 3
    needs_agreement = True

    def __post_init__(self) -> None:
        check_number("patience", self.patience, low=1, integer=True)
        if not -1.0 <= self.agreement <= 1.0:
            raise ValueError(
                f"agreement is a correlation, between -1 and 1; got {self.agreement!r}."
            )

    def reason(self, reading: Reading) -> str | None:
        last = reading.agreement[-self.patience :]
        if len(last) < self.patience or min(last) < self.agreement:
            return None
        return f"the last {self.patience} rankings agree to a rank correlation of {min(last):.4f}"


def _irrelevant_at_end(relevant: Mask) -> int:
    """Number of irrelevant records after the last relevant one."""
    found = np.flatnonzero(relevant)
    return int(relevant.size - (found[-1] + 1 if found.size else 0))
