"""Undo of decisions to any depth equals never having decided."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forerank.label.decisions import DECIDED, UNREAD, Decisions
from forerank.label.project import Event

N = 4
_steps = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["label", "skip", "note", "tags"]),
            st.integers(1, N),
            st.integers(1, 3),
            st.integers(0, 1),
        ),
        st.tuples(st.just("retract"), st.integers(0, 30), st.just(0), st.just(0)),
    ),
    max_size=30,
)


def made_events(steps):
    """Events of the steps; a retraction takes back some earlier event, perhaps a retraction."""
    events = []
    for number, (kind, where, person, value) in enumerate(steps):
        uuid = f"event-{number:04d}"
        if kind == "retract":
            if events:
                target = events[where % len(events)]
                events.append(Event(uuid, target.person, kind, target.record, target.uuid))
            continue
        value = {"label": value, "skip": None, "note": f"n{value}", "tags": [f"t{value}"]}[kind]
        events.append(Event(uuid, person, kind, where, value))
    return events


def surviving(events):
    """Events that no standing retraction is about, without the retractions: from the last one on,
    a retraction that stands removes its target.
    """
    removed = set()
    for event in reversed(events):
        if event.kind == "retract" and event.uuid not in removed:
            removed.add(event.value)
    return [each for each in events if each.uuid not in removed and each.kind != "retract"]


def view(decisions):
    people = range(1, 4)
    records = range(1, N + 1)
    return (
        decisions.status.tolist(),
        decisions.label.tolist(),
        [decisions.readers(record) for record in records],
        [decisions.remark("note", r, p) for r in records for p in people],
        [decisions.remark("tags", r, p) for r in records for p in people],
        [decisions.n_labelled_by(person) for person in people],
        [sorted(decisions.skipped_by(person)) for person in people],
        decisions.kappa(1),
    )


def folded(events, *, double, known=None):
    known = np.full(N, -1) if known is None else known
    decisions = Decisions(known, double=double)
    for event in events:
        if decisions.problem(event, 2) is None:
            decisions.apply(event)
    return decisions


@pytest.mark.parametrize("double", [False, True])
@given(steps=_steps)
def test_what_was_taken_back_never_happened(double, steps):
    events = made_events(steps)
    known = np.array([-1, 1, -1, 0])
    decisions = Decisions(known, double=double)
    taken = [each for each in events if _applied(decisions, each)]
    assert view(decisions) == view(folded(surviving(taken), double=double, known=known))


def _applied(decisions, event):
    if decisions.problem(event, 2) is not None:
        return False
    decisions.apply(event)
    return True


@given(steps=_steps, more=_steps)
def test_undoing_all_of_the_later_events_gives_the_earlier_state(steps, more):
    first = [each for each in made_events(steps) if each.kind != "retract"]
    later = [
        Event(f"later-{k:04d}", each.person, each.kind, each.record, each.value)
        for k, each in enumerate(made_events(more))
        if each.kind != "retract"
    ]
    decisions = folded(first, double=False)
    before = view(decisions)
    for event in later:
        decisions.apply(event)
    for number, event in enumerate(reversed(later)):
        undo = Event(f"undo-{number:05d}", event.person, "retract", None, event.uuid)
        assert decisions.problem(undo, 2) is None
        decisions.apply(undo)
    assert view(decisions) == before


def test_a_retraction_can_be_retracted():
    events = [
        Event("label-000", 1, "label", 1, 1),
        Event("retract-0", 1, "retract", None, "label-000"),
        Event("retract-1", 1, "retract", None, "retract-0"),
    ]
    assert folded(events[:2], double=False).status[0] == UNREAD
    assert folded(events, double=False).status[0] == DECIDED
    other = Event("retract-2", 2, "retract", None, "label-000")
    assert folded(events[:1], double=False).problem(other, 2) is not None
