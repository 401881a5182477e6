"""When to stop reading. Rules compose: `a | b` stops where either does, `a & b` where both do.

`RecallBound` keeps a promise. Let N records be open at the start, K of them relevant, and suppose
that each record read is at least as likely to be relevant, given all that came before, as one drawn
at random from the unread ones: all that is asked of the strategy. Say f records have been found,
the last of them when R records were left unread, and r are unread now. If K were right, a run of R
- r records without a find would have at most the probability

    C(r, K - f) / C(R, K - f).

Betting on such a run, and against K, multiplies a stake by the inverse of that probability until
the next find, when it is lost. For each K with f < target * K stakes are laid at every number of
finds k below target * K: 1 / ((j+1)(j+2)) of the capital for the j-th of these, counted from the
highest, which sums to less than one. The capital is a supermartingale under the true K that starts
at one, so with probability 1 - delta it never reaches 1 / delta (Ville). Reading stops when every K
under which the recall f / K would still be below the target has lost in this way, and then the
recall is below the target with probability at most delta, however often one looks.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from forerank._validation import is_integer

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

# Recalls such as 0.95 * 20 are whole numbers up to rounding.
_ROUNDING = 1e-9


@dataclass
class Reading:
    """What a rule looks at.

    Attributes
    ----------
    n_records : int
        Records that were open when reading began, read or not; seeds are not among them.
    relevant : array of bool
        Of the records read, in the order of reading.
    agreement : list of float
        Spearman's rank correlation of each ranking of the unread records with the one before it.
    """

    n_records: int
    relevant: NDArray[np.bool_]
    agreement: list[float] = field(default_factory=list)


class StoppingRule:
    """Says why to stop, or None."""

    # Must rankings be compared for this rule?
    needs_agreement = False
    # Does it rest on relevant records being read first?
    promises_recall = False

    def reason(self, reading: Reading) -> str | None:
        raise NotImplementedError

    def __or__(self, other: "StoppingRule") -> "StoppingRule":
        return Any_((*_parts(self, Any_), *_parts(_checked(other), Any_)))

    def __and__(self, other: "StoppingRule") -> "StoppingRule":
        return All((*_parts(self, All), *_parts(_checked(other), All)))


@dataclass(frozen=True)
class _Composed(StoppingRule):
    """Several rules as one: it needs and promises what any of them does."""

    rules: tuple[StoppingRule, ...]

    @property
    def needs_agreement(self) -> bool:  # type: ignore[override]
        return any(rule.needs_agreement for rule in self.rules)

    @property
    def promises_recall(self) -> bool:  # type: ignore[override]
        return any(rule.promises_recall for rule in self.rules)


@dataclass(frozen=True)
class Any_(_Composed):
    """Stops where one of the rules does; made by `a | b`."""

    def reason(self, reading: Reading) -> str | None:
        return next((why for rule in self.rules if (why := rule.reason(reading)) is not None), None)


@dataclass(frozen=True)
class All(_Composed):
    """Stops where all of the rules do; made by `a & b`."""

    def reason(self, reading: Reading) -> str | None:
        reasons = [rule.reason(reading) for rule in self.rules]
        return None if None in reasons else "; ".join(why for why in reasons if why)


@dataclass(frozen=True)
class Budget(StoppingRule):
    """Stops after n records, or at the end of the batch in which they are reached where a batch is
    told at once.
    """

    n: int

    def __post_init__(self) -> None:
        _check_count("n", self.n)

    def reason(self, reading: Reading) -> str | None:
        read = reading.relevant.size
        return f"the budget of {self.n} records is spent" if read >= self.n else None


@dataclass(frozen=True)
class IrrelevantInARow(StoppingRule):
    """Stops after n irrelevant records in a row. Common, and without any promise."""

    n: int

    def __post_init__(self) -> None:
        _check_count("n", self.n)

    def reason(self, reading: Reading) -> str | None:
        run = _dry_run(reading.relevant)
        return f"the last {run} records were irrelevant" if run >= self.n else None


@dataclass(frozen=True)
class RecallBound(StoppingRule):
    """Stops when the recall has reached a target, at a confidence that holds however often one
    looks.

    The recall is that of the records open at the start: f found of K. The promise holds for any
    reading in which the next record is at least as likely to be relevant, given all that came
    before, as one drawn at random from the unread ones: that of a sensible ranker with `Greedy`,
    and of `Random`. Strategies that look for something else than relevant records, such as
    `Uncertain`, break it. See the head of this module for why it holds.

    Parameters
    ----------
    target : float, default=0.95
        The recall promised.
    confidence : float, default=0.95
        The least probability that the promise is kept.
    """

    target: float = 0.95
    confidence: float = 0.95
    promises_recall = True

    def __post_init__(self) -> None:
        for name in ("target", "confidence"):
            value = getattr(self, name)
            if not 0.0 < value < 1.0:
                raise ValueError(f"{name} must lie between 0 and 1; got {value!r}.")

    def lower_bound(self, reading: Reading) -> float:
        """The recall that is certain by now, at the confidence; 0 while nothing is. Cost: one pass
        over the unread.

        It holds at all times at once, so it may be watched.
        """
        relevant = reading.relevant
        found, unread = int(np.count_nonzero(relevant)), reading.n_records - relevant.size
        left_at_last_find = unread + _dry_run(relevant)
        missing = np.arange(unread + 1)
        stake = np.ceil(self.target * (found + missing) - _ROUNDING) - 1 - found
        gain = _log_falling(left_at_last_find, missing) - _log_falling(unread, missing)
        # Where recall would have reached the target, no stake is laid.
        stake = np.where(stake >= 0, stake, np.inf)
        possible = missing[gain < np.log((stake + 1) * (stake + 2) / (1.0 - self.confidence))]
        most = found + (int(possible[-1]) if possible.size else 0)
        return found / most if most else 1.0

    def reason(self, reading: Reading) -> str | None:
        bound = self.lower_bound(reading)
        if bound < self.target - _ROUNDING:
            return None
        return f"the recall is at least {bound:.4g}, at {self.confidence:.0%} confidence"


@dataclass(frozen=True)
class RankingStable(StoppingRule):
    """Stops when new labels no longer change the ranking of the unread records.

    Parameters
    ----------
    agreement : float, default=0.99
        The rank correlation of a ranking with the one before it.
    patience : int, default=3
        How many rankings in a row must agree that well.
    """

    agreement: float = 0.99
    patience: int = 3
    needs_agreement = True

    def __post_init__(self) -> None:
        _check_count("patience", self.patience)
        if not -1.0 <= self.agreement <= 1.0:
            raise ValueError(
                f"agreement is a correlation, between -1 and 1; got {self.agreement!r}."
            )

    def reason(self, reading: Reading) -> str | None:
        last = reading.agreement[-self.patience :]
        if len(last) < self.patience or min(last) < self.agreement:
            return None
        return f"the last {self.patience} rankings agree to a rank correlation of {min(last):.4f}"


def _log_falling(n: int, k: NDArray[np.integer]) -> NDArray[np.float64]:
    """The logarithm of n (n-1) ... (n-k+1) = k! C(n, k); the k! cancels in a ratio for equal k."""
    return gammaln(n + 1.0) - gammaln(n - k + 1.0)


def _dry_run(relevant: NDArray[np.bool_]) -> int:
    """The number of irrelevant records at the end."""
    found = np.flatnonzero(relevant)
    return int(relevant.size - (found[-1] + 1 if found.size else 0))


def _parts(rule: StoppingRule, kind: type) -> tuple[StoppingRule, ...]:
    return rule.rules if isinstance(rule, kind) else (rule,)  # type: ignore[attr-defined]


def _checked(rule: Any) -> StoppingRule:
    if not isinstance(rule, StoppingRule):
        raise TypeError(f"Stopping rules compose with stopping rules; got {rule!r}.")
    return rule


def _check_count(name: str, value: Any) -> None:
    if not is_integer(value) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}.")
