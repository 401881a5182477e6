"""Assignments: nobody is given what another person reads, under any order of requests."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from forerank.label.assignments import LEASE_SECONDS, Assignments
from forerank.label.decisions import Decisions
from forerank.label.project import Event

PEOPLE = (1, 2, 3)


class MemoryProject:
    """The part of a project that assignments write to."""

    def __init__(self):
        self.rows = []

    def assignments(self):
        return [(seq, *row) for seq, row in enumerate(self.rows, 1)]

    def add_assignment(self, record, person, score=None):
        self.rows.append([record, person, False, score])
        return len(self.rows)

    def set_returned(self, seqs, returned=True):
        for seq in seqs:
            self.rows[seq - 1][2] = returned


class Readers(RuleBasedStateMachine):
    """People who ask for records, decide, skip, take back, leave and fall asleep, in any order."""

    n_records, double = 6, False

    def __init__(self):
        super().__init__()
        self.now, self.number = 0.0, 0
        self.project = MemoryProject()
        self.decisions = Decisions(np.full(self.n_records, -1), double=self.double)
        self.assignments = self.opened()
        self.screens = {person: [] for person in PEOPLE}

    def opened(self):
        return Assignments(self.project, self.decisions, leased=True, clock=lambda: self.now)

    def send(self, person, kind, record=None, value=None):
        self.number += 1
        event = Event(str(self.number), person, kind, record, value)
        if self.decisions.problem(event, 2) is not None:
            return
        record = self.decisions.about(event)
        before = self.decisions.decision(record, person)
        self.decisions.apply(event)
        after = self.decisions.decision(record, person)
        if kind in ("label", "skip"):
            self.assignments.decided(record, person, in_turn=True)
        elif after is None and before is not None:
            self.assignments.undecided(record, person)

    @rule(person=st.sampled_from(PEOPLE), n=st.integers(1, 3))
    def ask(self, person, n):
        queue = self.assignments.queue(person, n)
        assert len(set(queue)) == len(queue) <= n
        status = self.decisions.status
        for record in queue:
            assert person not in self.decisions.readers(record)
            others = [p for p in PEOPLE if p != person and self.holds(p, record)]
            readers = set(self.decisions.readers(record)) | set(others)
            assert len(readers) < (2 if self.double else 1), (status[record - 1], readers)
        self.screens[person] = queue

    def holds(self, person, record):
        return any(each == record for _, each in self.assignments._open(person))

    @rule(
        person=st.sampled_from(PEOPLE),
        kind=st.sampled_from(["label", "label", "skip"]),
        value=st.integers(0, 1),
    )
    def decide(self, person, kind, value):
        """Also late, when the lease has ended."""
        if self.screens[person]:
            self.send(person, kind, self.screens[person].pop(0), value)

    @rule(person=st.sampled_from(PEOPLE), record=st.integers(1, n_records))
    def take_back(self, person, record):
        if (event := self.decisions.decision(record, person)) is not None:
            self.send(person, "retract", value=event.uuid)

    @rule(person=st.sampled_from(PEOPLE))
    def leave(self, person):
        self.assignments.release(person)
        assert self.assignments._open(person) == []

    @rule(seconds=st.sampled_from([1.0, LEASE_SECONDS / 2, LEASE_SECONDS + 1]))
    def wait(self, seconds):
        self.now += seconds

    @rule()
    def reopen(self):
        before = self.assignments.sequence().tolist()
        self.assignments = self.opened()
        assert self.assignments.sequence().tolist() == before

    @invariant()
    def sequence_is_that_of_the_file(self):
        held = [record for record, _, returned, _ in self.project.rows if not returned]
        assert self.assignments.sequence().tolist() == list(dict.fromkeys(held))


class DoubleReaders(Readers):
    double = True


quick = settings(max_examples=60, stateful_step_count=25, deadline=None, derandomize=True)
TestReaders = Readers.TestCase
TestReaders.settings = quick
TestDoubleReaders = DoubleReaders.TestCase
TestDoubleReaders.settings = quick


def team(n_records=4, double=False):
    now = [0.0]
    decisions = Decisions(np.full(n_records, -1), double=double)
    return (
        now,
        decisions,
        Assignments(MemoryProject(), decisions, leased=True, clock=lambda: now[0]),
    )


def test_leases_end_and_are_renewed():
    now, _, assignments = team()
    assert assignments.queue(1, 2) == [1, 2]
    now[0] = LEASE_SECONDS - 1
    assert assignments.queue(1, 2) == [1, 2]  # renewed
    now[0] += LEASE_SECONDS - 1
    assert assignments.queue(2, 4) == [3, 4]
    now[0] += 2
    assert assignments.queue(2, 4) == [3, 4, 1, 2]
    assert assignments.n_leased == 4
    assignments.release(2)
    assert assignments.n_leased == 0


def test_leases_of_records_decided_by_others_are_returned():
    _, decisions, assignments = team()
    assert assignments.queue(1, 2) == [1, 2]
    decisions.apply(Event("a", 2, "label", 1, 1))  # found by searching
    assignments.decided(1, 2, in_turn=False)
    assert assignments.queue(1, 2) == [2, 3]


def test_second_readers_come_first_in_double_reading():
    _, decisions, assignments = team(double=True)
    assert assignments.queue(1, 2) == [1, 2]
    decisions.apply(Event("a", 1, "label", 2, 1))
    assignments.decided(2, 1, in_turn=True)
    assert assignments.queue(2, 2) == [2, 1]
    assert assignments.queue(3, 2) == [3, 4]


def test_ranking_and_completed_prefix():
    _, decisions, assignments = team(5)
    assignments.set_ranking(np.array([5, 3, 1, 2, 4]))
    assert assignments.queue(1, 3) == [5, 3, 1]
    for number, (record, kind) in enumerate([(5, "label"), (1, "skip")]):
        decisions.apply(Event(str(number), 1, kind, record, 0))
        assignments.decided(record, 1, in_turn=True)
    sequence = assignments.sequence()
    assert sequence.tolist() == [5, 3, 1]
    assert assignments.completed(sequence).tolist() == [5]
    decisions.apply(Event("3", 1, "label", 3, 1))
    assert assignments.completed(sequence).tolist() == [5, 3, 1]


def test_one_reader_needs_no_leases():
    decisions, project = Decisions(np.full(3, -1)), MemoryProject()
    assignments = Assignments(project, decisions, leased=False)
    assert assignments.queue(1, 2, first=3) == [3, 1]
    assert project.rows == []
    decisions.apply(Event("a", 1, "label", 3, 1))
    assignments.decided(3, 1, in_turn=True)
    assert assignments.sequence().tolist() == [3]
    decisions.apply(Event("b", 1, "retract", None, "a"))
    assignments.undecided(3, 1)
    assert assignments.sequence().tolist() == []


@pytest.mark.parametrize("n_people", [2, 5])
@given(st.data())
def test_no_record_is_given_twice_while_all_read(n_people, data):
    _, decisions, assignments = team(12)
    given_to = {}
    for number in range(20):
        person = data.draw(st.integers(1, n_people))
        for record in assignments.queue(person, 2):
            assert given_to.setdefault(record, person) == person
        if (queue := assignments.queue(person, 1)) and data.draw(st.booleans()):
            decisions.apply(Event(str(number), person, "label", queue[0], 0))
            assignments.decided(queue[0], person, in_turn=True)
