"""Stopping rules of the labelling loop. `a | b` stops where either does, `a & b` where both do.

`RecallBound` gives a guarantee. Let N records be unlabelled at the start, K of them relevant. The
assumption on the strategy: each record selected is at least as likely to be relevant, given all
earlier labels, as one drawn at random from the unlabelled records. Let f relevant records have been
found, the last when R records were unlabelled, and let r be unlabelled now. If K were right, a run
of R - r irrelevant records would have at most the probability

    C(r, K - f) / C(R, K - f).

A bet on such a run, and against K, multiplies its stake by the inverse of that probability until
the next relevant record, when the stake is lost. For each K with f < target * K, stakes are placed
at every number of relevant records k below target * K: 1 / ((j+1)(j+2)) of the capital for the j-th
of these, counted from the highest, which sums to less than one. The capital is a supermartingale
under the true K that starts at one, so with probability 1 - delta it never reaches 1 / delta
(Ville's inequality). The rule stops when the capital of every K under which the recall f / K is
below the target has reached 1 / delta. The recall is then below the target with probability at
most delta, no matter how often the rule is evaluated.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from forerank._typing import Mask, Vector
from forerank._validation import check_number

__all__ = [
    "All",
    "Any_",
    "Budget",
    "IrrelevantInARow",
    "RankingStable",
    "Reading",
    "RecallBound",
    "StoppingRule",
]

# Absolute tolerance for products such as 0.95 * 20, which are integers up to rounding error.
ROUNDING = 1e-9


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
    """

    n_records: int
    relevant: Mask
    agreement: list[float] = field(default_factory=list)


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
class RecallBound(StoppingRule):
    """Stops when the recall has reached a target, with a given confidence.

    The recall is that of the records unlabelled at the start: f found of K. The guarantee holds at
    all times together, so the rule may be evaluated at any time. It assumes that each record
    selected is at least as likely to be relevant, given all earlier labels, as one drawn at random
    from the unlabelled records: true of `Random`, and of `Greedy` with a useful ranker. Strategies
    that do not look for relevant records, such as `Uncertain`, violate it. The derivation is in the
    docstring of this module.

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

        Cost: linear in the number of unlabelled records.
        """
        relevant = reading.relevant
        found, unlabelled = int(np.count_nonzero(relevant)), reading.n_records - relevant.size
        at_last_find = unlabelled + _irrelevant_at_end(relevant)
        missing = np.arange(unlabelled + 1)
        stake = np.ceil(self.target * (found + missing) - ROUNDING) - 1 - found
        gain = _log_falling(at_last_find, missing) - _log_falling(unlabelled, missing)
        # Numbers of relevant records with which the target has been reached are always possible.
        stake = np.where(stake >= 0, stake, np.inf)
        possible = missing[gain < np.log((stake + 1) * (stake + 2) / (1.0 - self.confidence))]
        most = found + (int(possible[-1]) if possible.size else 0)
        return found / most if most else 1.0

    def reason(self, reading: Reading) -> str | None:
        bound = self.lower_bound(reading)
        if bound < self.target - ROUNDING:
            return None
        return f"the recall is at least {bound:.4g}, at {self.confidence:.0%} confidence"


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


def _log_falling(n: int, k: NDArray[np.integer]) -> Vector:
    """log(n (n-1) ... (n-k+1)) = log(k! C(n, k)); the k! cancels in a ratio for equal k."""
    return gammaln(n + 1.0) - gammaln(n - k + 1.0)


def _irrelevant_at_end(relevant: Mask) -> int:
    """Number of irrelevant records after the last relevant one."""
    found = np.flatnonzero(relevant)
    return int(relevant.size - (found[-1] + 1 if found.size else 0))
