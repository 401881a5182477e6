"""Decisions: events folded into one label per record.

An event that is retracted counts as if it had never been sent. A retraction is an event too, so
that it can be retracted in turn.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Index, Mask
from forerank.label.project import Event

__all__ = ["CONFLICT", "DECIDED", "HALF", "SKIPPED", "STATUS_NAMES", "UNREAD", "Decisions"]

# Status of a record. HALF: one of the two readers of double reading has decided.
UNREAD, DECIDED, SKIPPED, CONFLICT, HALF = range(5)
STATUS_NAMES = ("unread", "decided", "skipped", "conflict", "unread")
# Kinds of events that decide about a record.
_DECIDING = ("label", "skip")
# Kinds of events with a text or a list, of which the last one counts.
_REMARKS = ("note", "tags")


class Decisions:
    """The labels that follow from all events so far.

    With single reading the latest label of anyone counts. With double reading two people have to
    give the same label; if they do not, the record is in conflict until it is resolved.

    Parameters
    ----------
    known : array of shape (n_records,)
        Labels that the files gave, -1 for none.
    double : bool
        Whether two people read each record.

    Attributes
    ----------
    status : array of shape (n_records,)
    label : array of shape (n_records,)
        The label of decided records, -1 for others.
    changes : int
        Number of changes of `label` so far.
    """

    def __init__(self, known: Index, *, double: bool = False) -> None:
        self.double = double
        self._known = known
        self.label: NDArray[np.int8] = known.astype(np.int8)
        self.status: NDArray[np.int8] = np.where(known >= 0, DECIDED, UNREAD).astype(np.int8)
        self.changes = 0
        self._events: dict[str, Event] = {}
        self._order: dict[str, int] = {}
        self._retractions: dict[str, set[str]] = defaultdict(set)
        # Events that are not retracted, by what they are about, in their order.
        self._deciding: dict[tuple[int, int], list[str]] = defaultdict(list)
        self._remarks: dict[tuple[str, int, int], list[str]] = defaultdict(list)
        self._resolving: dict[int, list[str]] = defaultdict(list)
        self._readers: dict[int, set[int]] = defaultdict(set)
        self._records: dict[int, set[int]] = defaultdict(set)
        self._n_labelled: dict[int, int] = defaultdict(int)

    @property
    def known(self) -> Mask:
        """Whether the file of each record had a label."""
        return self._known >= 0

    @property
    def n_records(self) -> int:
        """Number of records."""
        return self.label.size

    def apply(self, event: Event) -> int | None:
        """Take an event into account, once; returns the record that it is about, if any."""
        if event.uuid in self._events:
            return None
        self._events[event.uuid] = event
        self._order[event.uuid] = len(self._order)
        return self._switch(event.uuid, on=True)

    def apply_all(self, events: Iterable[Event]) -> None:
        """Take events into account in their order."""
        for event in events:
            self.apply(event)

    def problem(self, event: Event, n_labels: int) -> str | None:
        """The reason why an event cannot be accepted, or None."""
        if event.kind == "retract":
            target = self._events.get(event.value) if isinstance(event.value, str) else None
            if target is None or target.person != event.person:
                return "there is no such decision of yours to take back"
            if self._retractions[event.value]:
                return "this decision has been taken back already"
            return None
        if not isinstance(event.record, int) or not 1 <= event.record <= self.n_records:
            return f"there is no record {event.record!r}"
        if event.kind in ("label", "resolve"):
            known = isinstance(event.value, int) and not isinstance(event.value, bool)
            if not known or not 0 <= event.value < n_labels:
                return f"the label is {event.value!r}; expected an integer from 0 to {n_labels - 1}"
            if event.kind == "resolve" and not self.in_conflict(event.record):
                return "this record is not in conflict"
        elif event.kind == "note" and not isinstance(event.value, str):
            return "a note is a text"
        elif event.kind == "tags" and not _is_list_of_texts(event.value):
            return "tags are a list of texts"
        elif event.kind not in ("skip", "note", "tags"):
            return f"there is no event of the kind {event.kind!r}"
        return None

    # --- What was decided ---

    def decision(self, record: int, person: int) -> Event | None:
        """The decision of a person on a record: the last label or skip not retracted."""
        uuids = self._deciding.get((record, person))
        return self._events[uuids[-1]] if uuids else None

    def readers(self, record: int) -> dict[int, int]:
        """Labels of a record by person."""
        found = {person: self.decision(record, person) for person in self._readers[record]}
        return {
            person: event.value
            for person, event in sorted(found.items())
            if event is not None and event.kind == "label"
        }

    def decided_at(self, record: int) -> float | None:
        """Time of the latest decision on a record, or None."""
        events = [self.decision(record, person) for person in self._readers[record]]
        return max((event.at for event in events if event is not None), default=None)

    def remark(self, kind: str, record: int, person: int) -> Any:
        """The note (or tags) of a person on a record; an empty one if there is none."""
        uuids = self._remarks.get((kind, record, person))
        return self._events[uuids[-1]].value if uuids else ("" if kind == "note" else [])

    def labels_of(self, person: int) -> dict[int, int]:
        """Labels that a person has given, by record."""
        events = ((record, self.decision(record, person)) for record in self._records[person])
        return {
            record: event.value
            for record, event in events
            if event is not None and event.kind == "label"
        }

    def is_retracted(self, uuid: str) -> bool:
        """Whether an event is retracted now."""
        return bool(self._retractions[uuid])

    def is_current(self, uuid: str) -> bool:
        """Whether an event is the decision, remark or resolution that counts now."""
        event = self._events[uuid]
        if event.record is None or self.is_retracted(uuid):
            return False
        uuids = self._list_of(event) or []
        return uuids[-1:] == [uuid]

    def in_conflict(self, record: int) -> bool:
        """Whether a record is in conflict, or was before it was resolved."""
        return self.status[record - 1] == CONFLICT or bool(self._resolving.get(record))

    def is_hidden(self, record: int, author: int, viewer: int) -> bool:
        """Whether what one person did on a record is hidden from another: with double reading,
        until two people have labelled it.
        """
        if not self.double or author == viewer or self._resolving.get(record):
            return False
        return len(self.readers(record)) < 2

    def skipped_by(self, person: int) -> list[int]:
        """Records that a person has skipped."""
        events = ((record, self.decision(record, person)) for record in self._records[person])
        return [record for record, event in events if event is not None and event.kind == "skip"]

    @property
    def n_events(self) -> int:
        """Number of events."""
        return len(self._events)

    def events_backwards(self) -> Iterator[Event]:
        """All events, the last one first."""
        return reversed(self._events.values())

    def touched(self) -> set[int]:
        """Records about which there is an event."""
        remarked = (record for _, record, _ in self._remarks)
        return {*self._readers, *self._resolving, *remarked}

    def n_labelled_by(self, person: int) -> int:
        """Number of records that a person has labelled."""
        return self._n_labelled[person]

    def about(self, event: Event) -> int:
        """The record that an event is about; that of its target for a retraction."""
        while event.kind == "retract":
            event = self._events[event.value]
        return event.record or 0

    def kappa(self, threshold: int) -> tuple[float | None, int, int]:
        """Cohen's kappa of relevance, the mean over pairs of people weighted by the records that
        both read; the number of these, and of those on which they agree.

        None where no pair of people has read a record, or chance alone would agree always.
        """
        labels = {person: self.labels_of(person) for person in self._records}
        total = agreed = 0
        weighted = weights = 0.0
        for first, second in combinations(sorted(labels), 2):
            both = sorted(labels[first].keys() & labels[second].keys())
            a = np.array([labels[first][record] >= threshold for record in both], dtype=bool)
            b = np.array([labels[second][record] >= threshold for record in both], dtype=bool)
            if not both:
                continue
            total, agreed = total + a.size, agreed + int((a == b).sum())
            chance = a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean())
            if chance < 1.0:
                weighted += a.size * ((a == b).mean() - chance) / (1.0 - chance)
                weights += a.size
        return (weighted / weights if weights else None), total, agreed

    # --- Folding ---

    def _list_of(self, event: Event) -> list[str] | None:
        record = event.record or 0
        if event.kind in _DECIDING:
            return self._deciding[record, event.person]
        if event.kind in _REMARKS:
            return self._remarks[event.kind, record, event.person]
        return self._resolving[record] if event.kind == "resolve" else None

    def _switch(self, uuid: str, *, on: bool) -> int | None:
        """Count an event, or no longer; a retraction switches its target the other way."""
        event = self._events[uuid]
        if event.kind == "retract":
            retractions = self._retractions[event.value]
            before = bool(retractions)
            (retractions.add if on else retractions.discard)(uuid)
            changed = before != bool(retractions)
            return self._switch(event.value, on=not on) if changed else None
        uuids = self._list_of(event)
        if uuids is None or event.record is None:
            return event.record
        before = self._has_label(event)
        if on:
            uuids.append(uuid)
            uuids.sort(key=self._order.__getitem__)
        else:
            uuids.remove(uuid)
        if event.kind in _DECIDING:
            self._readers[event.record].add(event.person)
            self._records[event.person].add(event.record)
            self._n_labelled[event.person] += self._has_label(event) - before
        if event.kind not in _REMARKS:
            self._update(event.record)
        return event.record

    def _has_label(self, event: Event) -> bool:
        decision = self.decision(event.record or 0, event.person)
        return decision is not None and decision.kind == "label"

    def _update(self, record: int) -> None:
        status, label = self._outcome(record)
        if label != self.label[record - 1]:
            self.changes += 1
        self.status[record - 1], self.label[record - 1] = status, label

    def _outcome(self, record: int) -> tuple[int, int]:
        """Status and label of a record."""
        if resolving := self._resolving.get(record):
            return DECIDED, self._events[resolving[-1]].value
        found = [self.decision(record, person) for person in self._readers[record]]
        events = [event for event in found if event is not None]
        labels = [event for event in events if event.kind == "label"]
        known = int(self._known[record - 1])
        if self.double:
            values = {event.value for event in labels}
            if len(labels) >= 2:
                return (DECIDED, values.pop()) if len(values) == 1 else (CONFLICT, -1)
            if labels:
                return HALF, -1
        elif labels:
            return DECIDED, max(labels, key=lambda event: self._order[event.uuid]).value
        if known >= 0:
            return DECIDED, known
        return (SKIPPED, -1) if events else (UNREAD, -1)


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
