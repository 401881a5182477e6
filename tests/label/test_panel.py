"""The screen "Stop": the bound equals that of the rules on the labels in their order."""

import numpy as np
import pytest

from forerank.active import Audit, Reading, RecallBound
from forerank.label import panel
from forerank.label.launch import add_file
from forerank.label.service import Service
from label_service import ask, event, label, made_frame, made_project, send, service_of, write_csv


@pytest.fixture
def path(tmp_path):
    return tmp_path / "made.forerank-project"


def report(service, person=1):
    return panel.report(ask(service, panel.snapshot, service, person))


def read_in_turn(service, values, person=1):
    """Give labels to the next records; the records."""
    done = []
    for value in values:
        record = ask(service, service.queue, person, 1, [])["queue"][0]
        made = event("skip", record) if value is None else event("label", record, value)
        send(service, person, made)
        done.append(record)
    return done


def test_the_bound_is_that_of_the_rule(path):
    values = [1, 0, 1, *[0] * 30]
    with service_of(path, 60) as service:
        read_in_turn(service, values)
        made = report(service)
        reading = Reading(60, np.array(values, dtype=bool))
        rule = RecallBound(0.95, 0.95)
        assert made["bound"]["recall"] == rule.lower_bound(reading)
        assert made["bound"]["records_to_go"] == rule.records_to_go(reading)
        assert (made["found"], made["read"], made["unread"]) == (2, 33, 27)
        assert made["progress"] == [[1, 1], [3, 2], [33, 2]]
        assert made["known"] == 0
        read_in_turn(service, [0] * 27)
        assert report(service)["bound"]["recall"] == 1.0
        assert report(service)["bound"]["reached"]


def test_skipped_records_keep_their_place_and_count_as_missing(path):
    with service_of(path, 40) as service:
        read_in_turn(service, [1, None, *[0] * 20])
        made = report(service)
        relevant = np.array([1, 0, *[0] * 20], dtype=bool)
        undecided = np.array([0, 1, *[0] * 20], dtype=bool)
        expected = RecallBound().lower_bound(Reading(40, relevant, undecided=undecided))
        assert made["bound"]["recall"] == expected < 1.0
        assert made["skipped"] == 1
        read_in_turn(service, [0] * 18)
        assert not report(service)["bound"]["reached"]


def test_records_out_of_turn_stay_among_the_unread(path):
    frame = made_frame(30, included=["1", "0", *[""] * 28])
    with service_of(path, frame=frame) as service:
        label(service, 1, 9, 1, screen="search")
        read_in_turn(service, [0] * 10)
        made = report(service)
        read = np.zeros(10, dtype=bool)
        reading = Reading(28, read, known_relevant=2, out_of_order=1)
        assert made["bound"]["recall"] == RecallBound().lower_bound(reading)
        assert made["known"] == 3


def test_the_order_is_counted_up_to_the_first_open_record(path):
    with service_of(path, 30, team=["Ada", "Ben"]) as service:
        ada = ask(service, service.queue, 1, 3, [])["queue"]
        ben = ask(service, service.queue, 2, 3, [])["queue"]
        for record in ben:
            send(service, 2, event("label", record, 0))
        send(service, 1, event("label", ada[0], 0))
        taken = ask(service, panel.snapshot, service, 1)
        assert taken.completed.tolist() == ada[:1]  # the second one is leased
        for record in ada[1:]:
            send(service, 1, event("label", record, 0))
        taken = ask(service, panel.snapshot, service, 1)
        assert set(ada) | set(ben) <= set(taken.completed.tolist())


def test_a_conflict_is_not_counted(path):
    with service_of(path, 20, team=["Ada", "Ben", "Cy"], mode="double") as service:
        first = read_in_turn(service, [1], person=1)[0]
        send(service, 2, event("label", first, 0))
        taken = ask(service, panel.snapshot, service, 1)
        assert taken.completed.size == 0
        send(service, 3, event("resolve", first, 1))
        assert ask(service, panel.snapshot, service, 1).completed.tolist()[:1] == [first]


def test_an_audit_needs_no_assumption(path):
    with service_of(path, 50) as service:
        before = read_in_turn(service, [1, 0, 0, 1])
        ask(service, service.set_audit, 1, True)
        assert not set(before) & set(service.audit.tolist())
        done = read_in_turn(service, [0] * 20)
        assert done == service.audit[:20].tolist()
        made = report(service)
        reading = Reading(50, np.array([1, 1, 0, 0, *[0] * 20], dtype=bool))
        assert made["bound"]["recall"] == Audit(start=4).lower_bound(reading)
        assert made["audit"] | {"sentence": ""} == {
            "on": True, "sentence": "", "read": 20, "found": 0, "left": 26,
        }  # fmt: skip
        assert "no assumption about the ranking" in made["bound"]["assumption"]
        ask(service, service.set_audit, 1, False)
        assert report(service)["audit"] is None


def test_a_run_before_records_were_added_does_not_count_for_them(tmp_path, path):
    project = made_project(path, 30)
    service = Service(project)
    read_in_turn(service, [1, *[0] * 29])
    assert report(service)["bound"]["recall"] == 1.0
    service.close()
    from forerank.label.project import Project

    project = Project(path)
    texts = [f"Another text {k}" for k in range(30)]
    add_file(project, write_csv(tmp_path / "b.csv", {"title": texts, "abstract": texts}))
    service = Service(project)
    assert report(service)["bound"]["recall"] < 0.1
    read_in_turn(service, [0] * 10)
    reading = Reading(60, np.array([1, *[0] * 39], dtype=bool))
    assert report(service)["bound"]["recall"] == Audit(start=30).lower_bound(reading)
    service.close()


def test_the_curve_falls_and_the_estimate_is_no_guarantee(path):
    with service_of(path, 60) as service:
        read_in_turn(service, [1, 0, 1, *[0] * 40])
        made = report(service)
        recalls = [recall for _, recall in made["curve"]]
        assert recalls == sorted(recalls, reverse=True)
        assert made["estimate"] is None  # there is no model
        assert len(made["certificate"]) >= 4


def test_sentences_of_the_certificate(path):
    with service_of(path, 4) as service:
        read_in_turn(service, [1, None])
        lines = report(service)["certificate"]
        assert lines[0] == "Of 4 records, 1 was read and 1 is relevant; 3 are unread."
        assert any("takes skipped ones for relevant and not found" in line for line in lines)
        read_in_turn(service, [1, 0])
        lines = report(service)["certificate"]
        assert lines[0] == "Of 4 records, 3 were read and 2 are relevant; 1 is unread."
