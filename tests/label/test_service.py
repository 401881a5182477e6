"""The service: events once, order of reading, undo, leases, restarts, the model."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forerank.exceptions import ProjectFileError
from forerank.label import trainer, views
from forerank.label.assignments import LEASE_SECONDS, Assignments
from forerank.label.decisions import Decisions
from forerank.label.project import Event, Project
from forerank.label.service import Service
from forerank.label.trainer import PREPARING
from forerank.label.writer import Refusal
from label_service import ask, event, label, made_frame, made_project, send, service_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "made.forerank-project"


def state(service):
    decisions = service.decisions
    return decisions.status.tolist(), decisions.label.tolist(), service.counts(1)


def test_an_event_sent_twice_is_stored_once(path):
    with service_of(path) as service:
        made = event("label", 3, 1)
        first, second = send(service, 1, made), send(service, 1, made, made)
        assert first["accepted"] == [made["uuid"]]
        assert second["accepted"] == [made["uuid"]] * 2
        assert service.decisions.n_events == 1
        changed = send(service, 1, made | {"value": 0})  # the first one counts
        assert changed["counts"]["relevant"] == 1


def test_the_state_after_a_restart_is_the_same(path):
    with service_of(path) as service:
        uuids = [label(service, 1, record, record % 2) for record in (5, 2, 7)]
        send(service, 1, event("skip", 4), event("retract", None, uuids[0]), shown=9)
        before = state(service), service.assignments.sequence().tolist()
    service = Service(Project(path))
    assert (state(service), service.assignments.sequence().tolist()) == before
    assert ask(service, service.queue, 1, 5, [])["queue"][0] == 9  # the record shown last
    service.close()


def test_a_project_is_open_once(path):
    with service_of(path), pytest.raises(ProjectFileError, match="open in another program"):
        Project(path)
    Project(path).close()


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 2)), min_size=1, max_size=12))
@settings(max_examples=25, deadline=None)
def test_undo_to_any_depth_equals_never_having_labelled(tmp_path_factory, decided):
    path = tmp_path_factory.mktemp("undo") / "made.forerank-project"
    with service_of(path, 6) as service:
        states, uuids = [state(service)], []
        for record, value in decided:
            made = event("skip", record) if value == 2 else event("label", record, value)
            send(service, 1, made)
            uuids.append(made["uuid"])
            states.append(state(service))
        for uuid in reversed(uuids):
            assert state(service) == states.pop()
            assert send(service, 1, event("retract", None, uuid))["refused"] == []
        assert state(service) == states.pop()
        assert service.assignments.sequence().size == 0
        queue = ask(service, service.queue, 1, 10, [])["queue"]
        assert sorted(queue) == [1, 2, 3, 4, 5, 6]


def test_the_same_undo_after_each_restart(path):
    made_project(path, 6).close()
    uuids, states = [], []
    for record in (3, 1, 3):
        service = Service(Project(path))
        states.append(state(service))
        uuids.append(label(service, 1, record, 1))
        service.close()
    for uuid in reversed(uuids):
        service = Service(Project(path))
        send(service, 1, event("retract", None, uuid))
        assert state(service) == states.pop()
        service.close()


def test_a_changed_label_retrains_and_labels_that_are_gone_are_forgotten(path):
    frame = made_frame(40)
    frame["abstract"] = [f"asthma inhaler {k}" if k < 10 else f"wheat soil {k}" for k in range(40)]
    with service_of(path, frame=frame) as service:
        service.start_training()
        uuids = [label(service, 1, 1, 1), label(service, 1, 30, 0)]
        first = wait_for(service, bool)
        assert first.scores[1] > first.scores[31]
        uuids += [label(service, 1, 1, 0, "history"), label(service, 1, 30, 1, "history")]
        wait_for(service, lambda model: model and model.scores[1] < model.scores[31])
        for uuid in reversed(uuids):
            send(service, 1, event("retract", None, uuid))
        assert wait_for(service, lambda model: model is None) is None


def wait_for(service, condition):
    """The model, as soon as a condition holds."""
    for _ in range(3000):
        model = ask(service, lambda: service.model)
        if condition(model):
            return model
        time.sleep(0.02)
    raise AssertionError("the ranker has not been trained")


# --- Teams ---


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize("double", [False, True])
def test_no_record_goes_to_more_people_than_read_it(path, double):
    mode = "double" if double else "single"
    with service_of(path, 40, team=["Ada", "Ben", "Cy", "Di"], mode=mode) as service:
        rng = np.random.default_rng(0)
        readers = {}
        for _ in range(300):
            person = int(rng.integers(1, 5))
            queue = ask(service, service.queue, person, 3, [])["queue"]
            held = dict(service.assignments._held)
            for record in queue:
                people = {who for each, who in held.values() if each == record}
                assert len(people) <= 1 + double
            if queue and rng.random() < 0.7:
                readers.setdefault(queue[0], []).append(person)
                label(service, person, queue[0], int(rng.random() < 0.3))
            elif rng.random() < 0.2:
                ask(service, service.leave, person)
        assert all(len(set(each)) == len(each) <= 1 + double for each in readers.values())
        assert len(readers) == 40


def test_leases_end_and_are_returned(path):
    project = made_project(path, 6, team=["Ada", "Ben"])
    decisions, clock = Decisions(project.known_labels()), Clock()
    with project.transaction():
        leases = Assignments(project, decisions, leased=True, clock=clock)
        first = leases.queue(1, 3)
        assert not set(first) & set(leases.queue(2, 6))
        clock.now = LEASE_SECONDS - 1
        leases.queue(2, 1)  # renews those of the second person only
        clock.now = LEASE_SECONDS + 1
        assert set(leases.queue(2, 6)) == {1, 2, 3, 4, 5, 6}
        leases.release(2)
        assert leases.n_leased == 0
        assert sorted(leases.queue(1, 6)) == [1, 2, 3, 4, 5, 6]
    project.close()


def test_a_decision_on_a_lease_that_has_ended_counts(path):
    with service_of(path, 6, team=["Ada", "Ben"]) as service:
        record = ask(service, service.queue, 1, 1, [])["queue"][0]
        ask(service, service.leave, 1)
        assert send(service, 1, event("label", record, 1))["refused"] == []
        assert service.counts(1)["read"] == 1


def test_a_conflict_is_resolved_by_a_third_person(path):
    with service_of(path, 4, team=["Ada", "Ben", "Cy"], mode="double") as service:
        label(service, 2, 1, 1)
        label(service, 3, 1, 0)
        (conflict,) = ask(service, views.conflicts, service, 1)
        assert {each["person"]: each["label"] for each in conflict["decisions"]} == {
            "Ben": 1,
            "Cy": 0,
        }
        assert conflict["may_resolve"]
        assert service.counts(1)["conflicts"] == 1
        assert service.counts(1)["unread"] == 4
        assert send(service, 2, event("resolve", 1, 1))["refused"] != []
        assert send(service, 1, event("resolve", 1, 1))["refused"] == []
        assert service.counts(1) | {"leased": 0} == {
            "records": 4, "read": 1, "unread": 3, "relevant": 1, "irrelevant": 0, "skipped": 0,
            "conflicts": 0, "leased": 0, "mine": 0,
        }  # fmt: skip


# --- Failures ---


def test_an_error_in_a_job_leaves_memory_and_file_alike(path):
    with service_of(path) as service:

        def fail():
            service._take(Event("event-broken", 1, "label", 1, 1))
            raise RuntimeError("broken")

        with pytest.raises(RuntimeError, match="broken"):
            ask(service, fail)
        assert ask(service, service.counts, 1)["read"] == 0
        label(service, 1, 1, 1)
        assert ask(service, service.counts, 1)["read"] == 1


def test_a_commit_that_fails_is_not_acknowledged(path, monkeypatch):
    import sqlite3
    from contextlib import contextmanager

    with service_of(path) as service:
        original = service.project.transaction

        @contextmanager
        def failing():
            with original():
                yield
                raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(service.project, "transaction", failing)
        made = event("label", 1, 1)
        with pytest.raises(sqlite3.OperationalError):
            send(service, 1, made)
        monkeypatch.setattr(service.project, "transaction", original)
        assert ask(service, service.counts, 1)["read"] == 0
        assert send(service, 1, made)["counts"]["read"] == 1


def test_settings_that_are_none_change_nothing(path):
    good = {"theme": "dark", "size": "20", "preset": "rayyan", "keys": {"relevant": "x"}}
    with service_of(path) as service:
        ask(service, service.set_settings, 1, {"mine": good | {"shortcuts": False}})
        before = ask(service, service.state, 1)["mine"]
        for body in (
            {"mine": {"theme": "<b>"}}, {"mine": {"colour": "dark"}}, {"mine": []},
            {"mine": {"size": 20}}, {"mine": {"keys": {"relevant": 1}}}, {"yours": {}},
            {"mine": {"shortcuts": "no"}}, {"mine": {"theme": ["dark"]}},
            {"mine": {"theme": "light"}, "shared": {"criteria": 1}},
        ):  # fmt: skip
            with pytest.raises(Refusal):
                ask(service, service.set_settings, 1, body)
        assert ask(service, service.state, 1)["mine"] == before


def test_a_stored_ranking_is_in_use_while_the_ranker_is_prepared(path):
    class Preparing:
        message, is_training = PREPARING, True

        def close(self):
            pass

    with service_of(path, 3) as service:
        service.trainer = Preparing()
        assert service.model_state()["message"] == PREPARING
        arrays = np.array([0.3, 0.2, 0.1]), np.array([1, 2, 3])
        ask(service, service._install_model, 2, *arrays, [])
        assert service.model_state()["message"] == ""
        assert service.model_state()["state"] == "ready"


def test_a_worker_that_cannot_start_is_reported(path, monkeypatch):
    monkeypatch.setattr(trainer, "run", print)  # ends at once
    made = trainer.Trainer(path, {}, lambda *_: None)
    for _ in range(600):
        if made.message != PREPARING:
            break
        time.sleep(0.05)
    assert "could not be started" in made.message
    assert not made.is_training
    made.close()
