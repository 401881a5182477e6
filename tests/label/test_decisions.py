"""Decisions: a retracted event counts as if it had never been sent, to any depth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.metrics import cohen_kappa_score

from forerank.label.decisions import CONFLICT, DECIDED, HALF, SKIPPED, UNREAD, Decisions
from forerank.label.project import Event

N_RECORDS, PEOPLE = 3, (1, 2, 3)
KNOWN = np.array([-1, -1, 1])


def event(uuid, person, kind, record=None, value=None):
    return Event(str(uuid), person, kind, record, value, at=float(uuid))


@st.composite
def histories(draw):
    """Events that were accepted, in their order; retractions aim at any earlier event."""
    decisions, events = Decisions(KNOWN, double=draw(st.booleans())), []
    for number in range(draw(st.integers(0, 14))):
        kind = draw(
            st.sampled_from(
                ["label", "label", "skip", "retract", "retract", "note", "tags", "resolve"]
            )
        )
        person, record = draw(st.sampled_from(PEOPLE)), draw(st.integers(1, N_RECORDS))
        value = {"note": f"note {number}", "tags": [f"tag {number}"]}.get(
            kind, draw(st.integers(0, 2))
        )
        if kind == "retract":
            if not events:
                continue
            target = draw(st.sampled_from(events))
            person, record, value = target.person, None, target.uuid
        new = event(number, person, kind, record, value)
        if decisions.problem(new, 3) is None:
            decisions.apply(new)
            events.append(new)
    return decisions, events


def surviving(events):
    """Events that are not retracted, without retractions: the last event decides about itself, and
    so on backwards.
    """
    retracted, kept = set(), []
    for each in reversed(events):
        if each.uuid in retracted:
            continue
        if each.kind == "retract":
            retracted.add(each.value)
        else:
            kept.append(each)
    return kept[::-1]


def state(decisions):
    return {
        "status": decisions.status.tolist(),
        "label": decisions.label.tolist(),
        "readers": [decisions.readers(record) for record in range(1, N_RECORDS + 1)],
        "decided": [decisions.decided_at(record) for record in range(1, N_RECORDS + 1)],
        "conflicts": [decisions.in_conflict(record) for record in range(1, N_RECORDS + 1)],
        "remarks": [
            decisions.remark(kind, record, person)
            for kind in ("note", "tags")
            for record in range(1, N_RECORDS + 1)
            for person in PEOPLE
        ],
        "numbers": [decisions.n_labelled_by(person) for person in PEOPLE],
        "kappa": decisions.kappa(1),
    }


@given(histories())
def test_retracted_events_were_never_sent(history):
    decisions, events = history
    never = Decisions(KNOWN, double=decisions.double)
    never.apply_all(surviving(events))
    assert state(decisions) == state(never)
    for each in events:
        if each.kind != "retract":
            kept = each.uuid in {other.uuid for other in surviving(events)}
            assert decisions.is_retracted(each.uuid) != kept


@given(histories())
def test_events_sent_twice_count_once(history):
    decisions, events = history
    twice = Decisions(KNOWN, double=decisions.double)
    twice.apply_all([*events, *events])
    again = Decisions(KNOWN, double=decisions.double)
    again.apply_all(each for pair in zip(events, events, strict=True) for each in pair)
    assert state(twice) == state(again) == state(decisions)


@given(histories())
def test_counts_by_definition(history):
    decisions, events = history
    kept = surviving(events)
    for person in PEOPLE:
        last = {
            each.record: each
            for each in kept
            if each.person == person and each.kind in ("label", "skip")
        }
        labels = {record: each.value for record, each in last.items() if each.kind == "label"}
        assert decisions.labels_of(person) == labels
        assert decisions.n_labelled_by(person) == len(labels)


def test_single_reading():
    decisions = Decisions(KNOWN)
    assert decisions.status.tolist() == [UNREAD, UNREAD, DECIDED]
    decisions.apply_all(
        [event(1, 1, "label", 1, 0), event(2, 2, "label", 1, 1), event(3, 1, "skip", 2)]
    )
    assert decisions.status.tolist() == [DECIDED, SKIPPED, DECIDED]
    assert decisions.label.tolist() == [1, -1, 1]
    before = decisions.changes
    decisions.apply(event(4, 2, "retract", value="2"))
    assert decisions.label.tolist() == [0, -1, 1]
    assert decisions.changes == before + 1
    decisions.apply(event(5, 1, "label", 3, 0))
    decisions.apply(event(6, 1, "retract", value="5"))
    assert decisions.label[2] == 1  # the label of the file


def test_double_reading_and_conflicts():
    decisions = Decisions(np.full(2, -1), double=True)
    decisions.apply(event(1, 1, "label", 1, 1))
    assert (decisions.status[0], decisions.label[0]) == (HALF, -1)
    decisions.apply(event(2, 2, "label", 1, 0))
    assert (decisions.status[0], decisions.label[0]) == (CONFLICT, -1)
    assert decisions.problem(event(3, 3, "resolve", 2, 1), 2) == "this record is not in conflict"
    decisions.apply(event(3, 3, "resolve", 1, 1))
    assert (decisions.status[0], decisions.label[0]) == (DECIDED, 1)
    decisions.apply(event(4, 3, "retract", value="3"))
    assert decisions.status[0] == CONFLICT
    decisions.apply(event(5, 2, "label", 1, 1))
    assert (decisions.status[0], decisions.label[0]) == (DECIDED, 1)


@pytest.mark.parametrize(
    ("new", "problem"),
    [
        (event(9, 1, "label", 7, 1), "there is no record 7"),
        (event(9, 1, "label", 1, 5), "the label is 5; expected an integer from 0 to 1"),
        (event(9, 1, "label", 1, True), "the label is True"),
        (event(9, 1, "note", 1, 5), "a note is a text"),
        (event(9, 1, "tags", 1, "x"), "tags are a list of texts"),
        (event(9, 1, "delete", 1), "there is no event of the kind 'delete'"),
        (event(9, 2, "retract", value="1"), "no such decision of yours"),
        (event(9, 1, "retract", value=["1"]), "no such decision of yours"),
        (event(9, 1, "retract", value="2"), "taken back already"),
    ],
)
def test_refused_events(new, problem):
    decisions = Decisions(KNOWN)
    first = [event(1, 1, "label", 1, 1), event(2, 1, "label", 2, 1)]
    decisions.apply_all([*first, event(3, 1, "retract", value="2")])
    assert problem in decisions.problem(new, 2)


def test_kappa_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (2, 60))
    decisions = Decisions(np.full(60, -1), double=True)
    for person in (0, 1):
        for record in range(60):
            number = 60 * person + record
            decisions.apply(
                event(number, person + 1, "label", record + 1, int(labels[person, record]))
            )
    kappa, n_both, n_agreed = decisions.kappa(threshold=1)
    assert kappa == pytest.approx(cohen_kappa_score(*(labels >= 1)))
    assert (n_both, n_agreed) == (60, ((labels[0] >= 1) == (labels[1] >= 1)).sum())
    assert_array_equal(decisions.status == CONFLICT, labels[0] != labels[1])
    assert Decisions(KNOWN).kappa(1) == (None, 0, 0)
