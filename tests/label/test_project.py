"""The project file: what was committed is there after a crash, and wrong files are left alone."""

import os
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from forerank.exceptions import ProjectFileError
from forerank.label.project import FORMAT, Event, Model, Project, create_project
from forerank.label.writer import Refusal, Writer


@pytest.fixture
def project(tmp_path):
    project = create_project(tmp_path / "a.forerank-project", {"mode": "single", "seed": 1})
    with project.transaction():
        row = ("f.csv", "Title", "Abstract", "A", "2001", "10.1/x", "", "{}", "title abstract", -1)
        project.add_records([row, (*row[:-1], 1)])
        project.add_person("Ann", "owner")
    yield project
    project.close()


def label(uuid, record=1, value=1):
    return Event(uuid, 1, "label", record, value, 5.0)


def add(project, *uuids, error=None):
    for uuid in uuids:
        project.add_event(label(uuid))
    if error is not None:
        raise error


def reopened(project):
    project.close()
    return Project(project.path)


def test_everything_comes_back(project):
    model = Model(3, 2, np.array([0.5, -1.0]), np.array([1, 2]), [("word", 0.25)])
    with project.transaction():
        project.add_event(label("a", value={"é": [1, None]}))
        assert project.add_assignment(1, 1) == 1
        assert project.add_assignment(2, 1) == 2
        project.set_returned([1])
        project.begin_audit(7, np.array([2, 1]))
        project.store_model(model)
        project.take_over(1, 0)
        project.take_over(2, 0)  # has a label
        project.add_duplicates([(1, "g.csv", "{}")])
        project.set("seed", [1, "x"])
        project.set_shown(1, 2)
    project = reopened(project)
    assert list(project.events()) == [label("a", value={"é": [1, None]})]
    assert project.assignments() == [(1, 1, 1, True, None), (2, 2, 1, False, None)]
    assert_array_equal(project.audit(), [2, 1])
    assert project.known_labels().tolist() == [0, 1]
    assert (project.n_records, project.n_duplicates) == (2, 1)
    assert project.settings() == {"mode": "single", "seed": [1, "x"]}
    assert project.people()[0].shown == 2
    stored = project.model()
    assert (stored.version, stored.trained_on, stored.words) == (3, 2, [("word", 0.25)])
    assert_allclose(stored.scores, model.scores)
    with project.transaction():
        project.end_audit()
    assert project.audit() is None
    project.close()


def test_an_event_is_stored_once(project):
    with project.transaction():
        project.add_event(label("a"))
    assert project.has_event("a")
    with pytest.raises(sqlite3.IntegrityError), project.transaction():
        add(project, "b", "a")
    assert [event.uuid for event in project.events()] == ["a"]


def test_an_error_undoes_the_transaction_or_its_part(project):
    with pytest.raises(KeyError), project.transaction():
        add(project, "a", error=KeyError())
    with project.transaction():
        project.add_event(label("b"))
        with pytest.raises(KeyError), project.savepoint():
            add(project, "c", error=KeyError())
        project.add_event(label("d"))
    assert [event.uuid for event in project.events()] == ["b", "d"]


CRASH = """
import sys, os, signal
from forerank.label.project import Event, Project
project = Project(sys.argv[1])
for number in range(1000):
    with project.transaction():
        project.add_event(Event(str(number), 1, "label", 1, 1))
        project.add_event(Event(f"second {number}", 1, "label", 2, 1))
        if number == 20:
            print("begun", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
    print(number, flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_killed_program_loses_no_commit(project):
    project.close()
    command = [sys.executable, "-c", CRASH, str(project.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.split()[-2:] == ["19", "begun"]
    again = Project(project.path)  # the lock of the killed program is gone
    events = [event.uuid for event in again.events()]
    assert events == [name for k in range(20) for name in (str(k), f"second {k}")]
    again.close()


def test_a_full_disk(project):
    with project.transaction():
        project.add_event(label("a"))
    (pages,) = project._db.execute("PRAGMA page_count").fetchone()
    project._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(sqlite3.OperationalError, match="full"), project.transaction():
        project.add_event(label("b", value="x" * 1_000_000))
    assert [event.uuid for event in project.events()] == ["a"]
    reloads = []
    writer = Writer(project, lambda: reloads.append(1))
    futures = [
        writer.submit(lambda: project.add_event(label("c", value="x" * 1_000_000))),
        writer.submit(lambda: project.n_records),
    ]
    with pytest.raises(sqlite3.OperationalError):
        futures[0].result(timeout=10)
    project._db.execute("PRAGMA max_page_count = 1000000")
    writer.submit(lambda: project.add_event(label("d"))).result(timeout=10)
    assert reloads  # before the next job
    writer.close()
    assert [event.uuid for event in project.events()] == ["a", "d"]


def test_the_writer_answers_each_job(project):
    reloads = []
    writer = Writer(project, lambda: reloads.append(1))

    def refuse():
        project.add_event(label("refused"))
        raise Refusal("no")

    futures = [writer.submit(lambda k=k: project.add_event(label(str(k)))) for k in range(100)]
    refused = writer.submit(refuse)
    for future in futures:
        assert future.result(timeout=10) is None
    with pytest.raises(Refusal, match="no"):
        refused.result(timeout=10)
    writer.close()
    assert [event.uuid for event in project.events()] == [str(k) for k in range(100)]
    assert reloads == []


def test_a_failed_reload_is_tried_again(project):
    problems = [OSError("disk"), None]

    def reload():
        if problem := problems.pop(0):
            raise problem

    writer = Writer(project, reload)
    with pytest.raises(ZeroDivisionError):
        writer.submit(lambda: 1 // 0).result(timeout=10)
    with pytest.raises(OSError, match="disk"):
        writer.submit(lambda: 1).result(timeout=10)
    assert writer.submit(lambda: 2).result(timeout=10) == 2
    writer.close()


def test_a_project_is_open_once(project):
    with pytest.raises(ProjectFileError, match="open in another program; close that one first"):
        Project(project.path)
    reopened(project).close()


def other_database(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE setting (a)")
    db.close()


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: path.write_bytes(b""), "not a project file"),
        (lambda path: path.write_text("title,abstract\n" * 50), "not a project file"),
        (other_database, "not a project file, but another SQLite database"),
    ],
)
def test_wrong_files_are_refused_and_left_as_they_are(tmp_path, write, message):
    path = tmp_path / "other"
    write(path)
    before = path.read_bytes()
    with pytest.raises(ProjectFileError, match=message) as error:
        Project(path)
    assert "\n" not in str(error.value)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_missing_and_existing_files(tmp_path, project):
    with pytest.raises(ProjectFileError, match="there is no such project"):
        Project(tmp_path / "none")
    with pytest.raises(ProjectFileError, match="exists already; choose another name"):
        create_project(project.path, {})


def test_other_formats_and_damage(project):
    project._db.execute(f"PRAGMA user_version = {FORMAT + 1}")
    project.close()
    with pytest.raises(ProjectFileError, match=f"has format {FORMAT + 1}, and this version"):
        Project(project.path)
    data = project.path.read_bytes()
    project.path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    with pytest.raises(ProjectFileError, match="the project is damaged"):
        Project(project.path)
    project.path.write_bytes(data[:100] + b"\xff" * 3996)
    with pytest.raises(ProjectFileError, match=r"damaged|cannot be written"):
        Project(project.path)


def test_folders_that_cannot_be_written_to(tmp_path, project, monkeypatch):
    with pytest.raises(ProjectFileError, match="there is no folder"):
        create_project(tmp_path / "no folder" / "a", {})
    project.close()

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(ProjectFileError, match=r"cannot be read \(.*Permission denied"):
        Project(project.path)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere"
)
def test_read_only_folder(project):
    project.close()
    lock = project.path.with_name(project.path.name + "-lock")
    lock.unlink()
    project.path.parent.chmod(0o500)
    try:
        with pytest.raises(ProjectFileError, match="cannot be locked"):
            Project(project.path)
        with pytest.raises(ProjectFileError, match="cannot be made"):
            create_project(project.path.with_name("b"), {})
    finally:
        project.path.parent.chmod(0o700)


def test_readers_cannot_write(project):
    reader = project.reader()
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM event")
    reader.close()


def test_sessions(project):
    with project.transaction():
        project.add_session("x", 1, "link")
        project.add_session("y", 1, "cookie")
    assert project.session("x", "link") == 1
    assert project.session("x", "cookie") is None
    with project.transaction():
        project.remove_session("x")
    assert (project.session("x", "link"), project.session("y", "cookie")) == (None, 1)


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_project_that_is_cut_off_is_damaged(project, share):
    with project.transaction():
        project.add_records([("a.csv", "t" * 500, *[""] * 5, "{}", "", -1)] * 200)
    project.close()
    data = project.path.read_bytes()
    for size in (50, int(share * len(data)), len(data) - 1):
        project.path.write_bytes(data[:size])
        with pytest.raises(ProjectFileError, match="damaged"):
            Project(project.path)
    project.path.write_bytes(data)
    Project(project.path).close()


def test_a_folder_that_cannot_be_written_is_reported_by_the_name_of_the_project(
    tmp_path, monkeypatch
):
    def refuse(*_, **__):
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(sqlite3, "connect", refuse)
    with pytest.raises(ProjectFileError, match="cannot be made") as error:
        create_project(tmp_path / "a.forerank-project", {})
    assert str(error.value).startswith(f"{tmp_path / 'a.forerank-project'}:")
    assert ".part" not in str(error.value)
