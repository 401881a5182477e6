"""Blinded double reading: what a person sees does not depend on what the other one decided."""

import io
import json
import zipfile

import pytest

from label_service import ask, event, made_frame, make_client, send, service_of

PATHS = [
    "/api/state", "/api/queue?n=6", "/api/history", "/api/history?status=relevant",
    "/api/history?status=irrelevant", "/api/history?status=skipped",
    "/api/history?status=retracted", "/api/search", "/api/conflicts", "/api/team", "/api/stop",
    "/api/export/csv", "/api/export/ris", "/api/export/rest", "/api/export/prisma",
    "/api/export/events", "/api/export/xlsx",
]  # fmt: skip
PATHS += [f"/api/search?status={name}" for name in ("unread", "relevant", "skipped", "leased")]
PATHS += [f"/api/records/{record}" for record in range(1, 7)]
PATHS += [f"/api/weights?record={record}" for record in range(1, 7)]


def seen_by_ben(path, decided, ben=()):
    """All that Ben can ask for after Ada has sent events about the record 1."""
    with service_of(path, frame=made_frame(6), team=["Ada", "Ben", "Cy"], mode="double") as service:
        service.settings.update(id="0", created=0)
        send(service, 1, *decided)
        send(service, 2, *ben)
        client = make_client(service, 2)
        replies = {each: client.get(each) for each in PATHS}
        assert {reply.status for reply in replies.values()} == {200}
        return {each: _plain(reply.body, each) for each, reply in replies.items()}


def _plain(body, path):
    if path.endswith("xlsx"):
        with zipfile.ZipFile(io.BytesIO(body)) as book:
            return {name: book.read(name) for name in book.namelist() if "docProps" not in name}
    if path.startswith("/api/export"):
        return body
    reply = json.loads(body)
    reply.pop("stop", None)  # made in a thread of its own, some time later
    return reply


def decisions_of_ada():
    uuid = event("label", 1, 1)
    return {
        "relevant": [event("label", 1, 1)],
        "irrelevant": [event("label", 1, 0)],
        "changed": [event("label", 1, 1), event("label", 1, 0)],
        "noted": [event("label", 1, 1), event("note", 1, "SECRET"), event("tags", 1, ["SECRET"])],
        "undone": [uuid, event("retract", None, uuid["uuid"]), event("label", 1, 0)],
    }


def test_nothing_that_ben_sees_depends_on_adas_decision(tmp_path):
    cases = decisions_of_ada()
    seen = {
        name: seen_by_ben(tmp_path / f"{name}.forerank-project", events)
        for name, events in cases.items()
    }
    for name in cases:
        for path in PATHS:
            assert seen[name][path] == seen["relevant"][path], (name, path)
            assert "SECRET" not in str(seen[name][path])


@pytest.mark.parametrize("value", [0, 1])
def test_after_both_decisions_both_are_seen(tmp_path, value):
    ada = [event("label", 1, 1), event("note", 1, "remark of Ada")]
    ben = [event("label", 1, value)]
    seen = seen_by_ben(tmp_path / "made.forerank-project", ada, ben)
    assert "remark of Ada" in str(seen["/api/history"])
    assert "remark of Ada" in str(seen["/api/export/csv"])
    assert len(seen["/api/conflicts"]["conflicts"]) == (value == 0)
    assert seen["/api/team"]["kappa"]["agreed"] == value


def test_a_skip_of_another_person_is_not_seen(tmp_path):
    seen = seen_by_ben(tmp_path / "made.forerank-project", [event("skip", 1)])
    assert seen["/api/history"]["total"] == 0
    assert seen["/api/search?status=skipped"]["total"] == 0
    assert seen["/api/state"]["counts"]["skipped"] == 0
    assert seen["/api/stop"]["skipped"] == 0
    assert b"skipped" not in seen["/api/export/csv"].lower()


def test_a_resolved_conflict_stays_visible(tmp_path):
    with service_of(
        tmp_path / "a.forerank-project", 3, team=["A", "B", "C"], mode="double"
    ) as service:
        send(service, 1, event("label", 1, 1))
        send(service, 2, event("label", 1, 0))
        send(service, 3, event("resolve", 1, 1))
        assert ask(service, lambda: service.decisions.is_hidden(1, 1, 3)) is False
