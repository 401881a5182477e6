"""Assignments: which record goes to whom, and in which order records were assigned.

In a team, records are leased: a person holds a few at a time, and one that is neither decided nor
renewed is returned after two minutes. A single reader needs no leases; a record counts as assigned
when it is decided or skipped.

The order of the assignments is the order in which a stopping rule counts the labels.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np

from forerank._typing import Index, Vector
from forerank.label.decisions import CONFLICT, DECIDED, HALF, SKIPPED, UNREAD, Decisions
from forerank.label.project import Project

__all__ = ["LEASE_SECONDS", "Assignments"]

# Time for which a record is kept for a person who does not answer, in seconds: longer than one
# takes to read an abstract, short enough that a closed browser does not hold up the others.
LEASE_SECONDS = 120.0
# Records of the ranking that are looked at in one step; mostly the first few suffice.
_CHUNK = 256


class Assignments:
    """Assignments of a project and, in a team, leases.

    Parameters
    ----------
    project : Project
    decisions : Decisions
    leased : bool
        Whether records are leased, as in a team.
    clock : callable
        Seconds, for the end of leases.
    """

    def __init__(
        self,
        project: Project,
        decisions: Decisions,
        *,
        leased: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._project, self._decisions, self.leased = project, decisions, leased
        self._clock = clock
        # Assignments by number: record and person. Those returned are kept apart, since a decision
        # that arrives late takes them up again.
        self._held: dict[int, tuple[int, int]] = {}
        self._number: dict[tuple[int, int], int] = {}
        self._returned: dict[tuple[int, int], int] = {}
        self._ends: dict[int, float] = {}  # end of each lease, by number
        self._people: dict[int, set[int]] = defaultdict(set)  # people assigned to a record
        self._last = 0  # the largest number of an assignment
        # Records in the order of their first assignments; None if that has to be made anew.
        self._sequence: dict[int, None] | None = {}
        # Scores by which records were selected, if there was a model, and those of the model now.
        self.selection_scores: dict[int, float] = {}
        self.scores: Vector | None = None
        for seq, record, person, returned, score in project.assignments():
            if score is not None:
                self.selection_scores.setdefault(record, score)
            if returned:
                self._returned[record, person] = seq
            else:
                self._hold(seq, record, person)
        self.ranking: Index = np.arange(1, decisions.n_records + 1)
        self._begin = 0

    def set_ranking(self, records: Index) -> None:
        """The order in which records are assigned from now on."""
        self.ranking, self._begin = records, 0

    # --- The queue of a person ---

    def queue(self, person: int, n: int, first: int | None = None) -> list[int]:
        """The records that a person reads next: at most n, those held already first.

        `first`, the record shown last, comes first as long as the person has not decided on it. In
        a team, new records are leased to the person and all leases of the person are renewed.
        """
        self.expire()
        self._return_decided(person)
        held = [record for _, record in self._open(person)] if self.leased else []
        if first is not None and (first in held or not self.leased) and self._is_free(first):
            held = [first, *(record for record in held if record != first)]
        taken = set(held)
        chosen = held[:n]
        for record in self._candidates(person):
            if len(chosen) >= n:
                break
            if record not in taken:
                taken.add(record)
                chosen.append(record)
                if self.leased:
                    self._lease(record, person)
        for seq, _ in self._open(person) if self.leased else ():
            self._ends[seq] = self._clock() + LEASE_SECONDS
        return chosen

    def _is_free(self, record: int) -> bool:
        return self._decisions.status[record - 1] in (UNREAD, HALF)

    def _candidates(self, person: int) -> Iterator[int]:
        """Records that may be assigned to a person, the next one first; skipped ones last."""
        status = self._decisions.status
        if self._decisions.double:  # records that wait for their second reader come first
            for record in (np.flatnonzero(status == HALF) + 1).tolist():
                if self._may_have(record, person):
                    yield record
        ranking = self.ranking
        while self._begin < ranking.size and status[ranking[self._begin] - 1] == DECIDED:
            self._begin += 1  # decided records at the head are passed over once and for all
        for begin in range(self._begin, ranking.size, _CHUNK):
            for record in ranking[begin : begin + _CHUNK].tolist():
                if status[record - 1] in (UNREAD, HALF) and self._may_have(record, person):
                    yield record
        for record in (np.flatnonzero(status == SKIPPED) + 1).tolist():
            if self._may_have(record, person):
                yield record

    def _may_have(self, record: int, person: int) -> bool:
        if not self.leased:
            return True
        people = self._people.get(record, set()) | set(self._decisions.readers(record))
        if self._decisions.status[record - 1] == SKIPPED:  # offered again if nobody reads it now
            return not self._is_leased(record)
        return person not in people and len(people) < (2 if self._decisions.double else 1)

    def _is_leased(self, record: int) -> bool:
        """Whether anyone holds a lease of a record."""
        return any(
            self._number.get((record, person)) in self._ends
            for person in self._people.get(record, ())
        )

    def _open(self, person: int) -> list[tuple[int, int]]:
        """Leases of a person without a decision: (number, record)."""
        return sorted(
            (seq, self._held[seq][0]) for seq in self._ends if self._held[seq][1] == person
        )

    # --- Changes ---

    def _hold(self, seq: int, record: int, person: int) -> None:
        self._held[seq] = (record, person)
        self._number[record, person] = seq
        self._people[record].add(person)
        if self._sequence is not None and seq > self._last:
            self._sequence.setdefault(record)
        else:
            self._sequence = None
        self._last = max(self._last, seq)
        if self.leased and self._decisions.decision(record, person) is None:
            self._ends[seq] = self._clock() + LEASE_SECONDS

    def _lease(self, record: int, person: int) -> None:
        if (seq := self._number.get((record, person))) is not None:  # a skipped one, once more
            self._ends[seq] = self._clock() + LEASE_SECONDS
            return
        self._add(record, person)

    def _add(self, record: int, person: int) -> int:
        """The number of a new assignment."""
        score = None
        if self.scores is not None and record <= self.scores.size:
            score = self.selection_scores.setdefault(record, float(self.scores[record - 1]))
        seq = self._project.add_assignment(record, person, score)
        self._hold(seq, record, person)
        return seq

    def decided(self, record: int, person: int, *, in_turn: bool) -> None:
        """Note the decision of a person. Records that were not assigned, since they were searched
        for, are not part of the order.
        """
        seq = self._number.get((record, person))
        if seq is None and (seq := self._returned.pop((record, person), None)) is not None:
            self._project.set_returned([seq], False)
            self._hold(seq, record, person)
        if seq is None and in_turn:
            seq = self._add(record, person)
        if seq is not None:
            self._ends.pop(seq, None)

    def undecided(self, record: int, person: int) -> None:
        """Note that a person has taken a decision back: the record is leased to the person again
        or, with one reader, no longer assigned.
        """
        rest = self.ranking[self._begin :]
        if not np.any(rest == record):  # labelled before the ranking was made, or passed over
            self.set_ranking(np.concatenate([[record], rest]))
        seq = self._number.get((record, person))
        if seq is None:
            return
        if self.leased:
            self._ends[seq] = self._clock() + LEASE_SECONDS
        else:
            self._return([seq])

    def release(self, person: int) -> None:
        """Return the leases of a person who leaves."""
        self._return([seq for seq, _ in self._open(person)])

    def expire(self) -> None:
        """Return the leases that have ended."""
        now = self._clock()
        self._return([seq for seq, end in self._ends.items() if end < now])

    def _return_decided(self, person: int) -> None:
        """Return the leases of records that others have decided in the meantime."""
        status = self._decisions.status
        done = [s for s, record in self._open(person) if status[record - 1] in (DECIDED, CONFLICT)]
        self._return(done)

    def _return(self, seqs: list[int]) -> None:
        if not seqs:
            return
        self._sequence = None
        returned = []
        for seq in seqs:
            self._ends.pop(seq, None)
            record, person = self._held[seq]
            if self._decisions.decision(record, person) is not None:
                continue  # a skipped record that was shown once more
            del self._held[seq], self._number[record, person]
            self._people[record].discard(person)
            self._returned[record, person] = seq
            returned.append(seq)
        self._project.set_returned(returned)

    # --- The order of the assignments ---

    @property
    def n_leased(self) -> int:
        """Number of leases."""
        return len(self._ends)

    def leased_records(self) -> list[int]:
        """Records of which anyone holds a lease."""
        return [self._held[seq][0] for seq in self._ends]

    @property
    def last_number(self) -> int:
        """The number of the last assignment."""
        return self._last

    def n_before(self, records: Index, number: int) -> int:
        """How many of the first of these records, which are in the order of their assignments,
        were assigned no later than the assignment of this number.
        """
        early = {record for seq, (record, _) in self._held.items() if seq <= number}
        late = (place for place, record in enumerate(records.tolist()) if record not in early)
        return next(late, records.size)

    def sequence(self) -> Index:
        """Records in the order in which they were assigned, each at its first place."""
        if self._sequence is None:
            records = (record for _, (record, _) in sorted(self._held.items()))
            self._sequence = dict.fromkeys(records)
        return np.fromiter(self._sequence, dtype=np.intp, count=len(self._sequence))

    def completed(self, records: Index) -> Index:
        """The first of these records up to the first that is neither decided nor skipped."""
        status = self._decisions.status[records - 1]
        open_ones = np.flatnonzero((status != DECIDED) & (status != SKIPPED))
        return records[: open_ones[0]] if open_ones.size else records
