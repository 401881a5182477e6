"""From files to projects: bad files leave nothing behind, second files keep labels."""

import socket
from contextlib import closing

import numpy as np
import pytest

from forerank.exceptions import DataFileError, ProjectFileError
from forerank.label import downloads, network, views
from forerank.label.launch import STRATEGIES, add_file, open_project, project_path
from forerank.label.page import make_page
from forerank.label.project import Project, create_project
from forerank.label.service import Service
from label_service import ask, label, write_csv

RIS = "TY  - JOUR\nTI  - {title}\nAB  - text of {title}\nDO  - 10.1000/{doi}\nER  - \n\n"


def titles(n):
    return {"title": [f"Title number {k}" for k in range(n)], "abstract": ["some words"] * n}


def opened(path, **options):
    project, notes = open_project(path, **options)
    return Service(project), notes


BAD = {
    "empty.csv": b"",
    "header.csv": b"title,abstract\r\n",
    "broken.ris": b"this is no RIS at all\nTI no tag\n",
    "empty.ris": b"",
    "broken.bib": b"@article{a, title = {open",
    "broken.xlsx": b"PK\x03\x04 no workbook",
    "broken.jsonl": b'{"title": "a"}\n{"title": \n',
    "broken.parquet": b"PAR1",
    "mixed.csv": "title,abstract\nétude,caf\n".encode() + "é,ö\n".encode("cp1252"),
    "unknown.docx": b"x",
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_one_line_and_leaves_nothing(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(BAD[name])
    with pytest.raises((DataFileError, ValueError)) as error:
        open_project(path)
    assert "\n" not in str(error.value)
    assert name in str(error.value)
    assert [each.name for each in tmp_path.iterdir()] == [name]
    assert path.read_bytes() == BAD[name]


def test_no_title_column_and_equal_ids_are_notes(tmp_path):
    path = write_csv(tmp_path / "a.csv", {"id": ["1", "1", "2"], "amount": ["5", "6", "7"]})
    service, notes = opened(path)
    assert any("no column of titles" in note for note in notes)
    assert any("same 'id'" in note for note in notes)
    assert service.decisions.n_records == 3
    service.close()


def test_a_project_that_could_not_be_made_leaves_no_file(tmp_path):
    def rows():
        yield ("made.csv", *[""] * 6, "{}", "", -1)
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        create_project(tmp_path / "a.forerank-project", {}, records=rows())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("data", [b"", b"no database", b"SQLite format 3\x00" + b"x" * 4096])
def test_files_that_are_no_projects(tmp_path, data):
    path = tmp_path / "a.forerank-project"
    path.write_bytes(data)
    with pytest.raises(ProjectFileError, match="not a project"):
        open_project(path)
    assert path.read_bytes() == data


def test_labels_of_the_file_are_taken_over(tmp_path):
    columns = titles(4) | {"included": ["1", "0", "", "1"]}
    service, _ = opened(write_csv(tmp_path / "a.csv", columns))
    counts = service.counts(1)
    assert (counts["read"], counts["relevant"], counts["unread"]) == (3, 2, 1)
    service.close()


def test_a_second_file_keeps_labels_and_leaves_out_duplicates(tmp_path):
    first, second = tmp_path / "a.ris", tmp_path / "b.ris"
    first.write_text("".join(RIS.format(title=f"Paper {k}", doi=k) for k in range(3)))
    second.write_text("".join(RIS.format(title=f"Paper {k}", doi=k) for k in (2, 3, 3, 4)))
    service, _ = opened(first)
    label(service, 1, 2, 1)
    service.close()
    project, _ = open_project(first)
    notes = add_file(project, second)
    assert "2 were there already" in notes[-1]
    assert project.n_duplicates == 2
    service = Service(project)
    assert service.decisions.n_records == 5
    assert service.decisions.label.tolist() == [-1, 1, -1, -1, -1]
    assert sorted(ask(service, service.queue, 1, 9, [])["queue"]) == [1, 3, 4, 5]
    taken = ask(service, downloads.snapshot, service, 1, "prisma")
    assert taken.n_duplicates == 2
    service.close()


def test_a_bad_second_file_changes_nothing(tmp_path):
    project, _ = open_project(write_csv(tmp_path / "a.csv", titles(3)))
    (tmp_path / "b.csv").write_bytes(b"")
    before = project.n_records, project.settings()
    with pytest.raises(DataFileError):
        add_file(project, tmp_path / "b.csv")
    assert (project.n_records, project.settings()) == before
    project.close()


def test_opening_again(tmp_path):
    path, other = tmp_path / "a.csv", tmp_path / "a.tsv"
    write_csv(path, titles(3))
    service, _ = opened(path, target=0.9)
    label(service, 1, 1, 1)
    service.close()
    service, _ = opened(path)
    assert service.settings["target"] == 0.9
    assert service.counts(1)["read"] == 1
    service.close()
    with pytest.raises(ProjectFileError, match="reading has begun"):
        open_project(path, target=0.8)
    other.write_text("title\tabstract\nOne thing\tx\n")
    with pytest.raises(ProjectFileError, match=r"made from a\.csv"):
        open_project(other)
    service, _ = opened(path, team=["Ben"])
    assert service.settings["team"]
    assert len(service.people) == 2
    service.close()


def test_a_folder_or_a_project_that_cannot_be_written(tmp_path):
    path = write_csv(tmp_path / "a.csv", titles(3))
    with pytest.raises(ProjectFileError, match="no folder"):
        open_project(path, tmp_path / "none" / "a.forerank-project")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ProjectFileError):
        open_project(path, tmp_path / "folder")


def test_certificates_that_are_none(tmp_path):
    project, _ = open_project(write_csv(tmp_path / "a.csv", titles(3)))
    wrong = tmp_path / "cert.pem"
    wrong.write_text("no certificate")
    with pytest.raises(ValueError, match="not a certificate"):
        make_page(project, certfile=wrong, keyfile=wrong)
    with pytest.raises(FileNotFoundError):
        make_page(Project(project.path), certfile=tmp_path / "none", keyfile=wrong)


def test_double_reading_of_one_reader(tmp_path):
    path = write_csv(tmp_path / "a.csv", titles(3))
    open_project(path)[0].close()
    with pytest.raises(ProjectFileError, match="needs a team"):
        open_project(path, mode="double")


def test_names_of_projects(tmp_path):
    assert project_path("x/papers.ris").name == "papers.forerank-project"
    assert project_path("papers.csv.gz").name == "papers.forerank-project"
    assert project_path("a.forerank-project").name == "a.forerank-project"
    with pytest.raises(ProjectFileError, match="no such project"):
        open_project(tmp_path / "none.forerank-project")


@pytest.mark.parametrize(
    "options",
    [
        {"target": 1.0}, {"confidence": 0.0}, {"team": ["A", "A"]}, {"mode": "double"},
        {"mode": "double", "team": ["A"]}, {"labels": ["one"]}, {"threshold": 2},
    ],
)  # fmt: skip
def test_settings_that_cannot_be(tmp_path, options):
    path = write_csv(tmp_path / "a.csv", titles(3))
    with pytest.raises(ValueError):
        open_project(path, **options)
    assert [each.name for each in tmp_path.iterdir()] == ["a.csv"]


def test_grades_and_columns_of_a_table(tmp_path):
    columns = {"subject": ["one thing", "two things"], "relevance": ["3", "0"], "size": ["1", "2"]}
    service, _ = opened(write_csv(tmp_path / "a.csv", columns), threshold=2)
    state = ask(service, service.state, 1)
    assert [each["name"] for each in state["labels"]] == [f"Grade {k}" for k in range(4)]
    assert service.counts(1)["relevant"] == 1
    assert service.settings["columns"] == {"is_text": True, "others": ["size"]}
    service.close()


def test_a_port_that_is_taken(tmp_path):
    project, _ = open_project(write_csv(tmp_path / "a.csv", titles(3)))
    page = make_page(project)
    port = page._socket.getsockname()[1]
    other, _ = open_project(write_csv(tmp_path / "b.csv", titles(3)))
    with pytest.raises(ValueError, match="cannot listen"):
        make_page(other, port=port)
    page.stop()
    again = make_page(Project(project.path))  # the port of the last time
    assert again._socket.getsockname()[1] == port
    again.stop()


# --- Adding again, duplicates, columns ---


def test_a_file_is_added_once(tmp_path):
    first = write_csv(tmp_path / "a.csv", titles(3))
    more = {"title": ["Title number 2", "A new one"], "abstract": ["x", "y"]}
    second = write_csv(tmp_path / "b.csv", more)
    project, _ = open_project(first)
    with project.transaction():
        project.begin_audit(0, np.arange(1, 4))
    assert any("audit has ended" in note for note in add_file(project, second))
    assert project.audit() is None
    with project.transaction():
        project.begin_audit(0, np.arange(1, 5))
    before = project.n_records, project.n_duplicates, project.settings()
    for file in (second, first, write_csv(tmp_path / "c.csv", more)):
        assert add_file(project, file) == [
            f"{file} is in the project already and was not added again"
        ]
    assert (project.n_records, project.n_duplicates, project.settings()) == before
    assert before[:2] == (4, 1)
    # Another file without a new record or label leaves the audit as it is.
    add_file(project, write_csv(tmp_path / "d.csv", {"title": ["A new one"], "abstract": ["z"]}))
    assert project.n_duplicates == 2
    assert project.audit().tolist() == [1, 2, 3, 4]
    project.close()


def test_duplicates_within_the_first_file_are_set_aside(tmp_path):
    columns = {
        "title": ["One thing", "Another", "one THING.", "Third", "Another"],
        "abstract": list("abcde"),
        "included": ["", "0", "1", "", "1"],
    }
    project, notes = open_project(write_csv(tmp_path / "a.csv", columns))
    assert "2 duplicates (doi or title) set aside" in notes
    assert (project.n_records, project.n_duplicates) == (3, 2)
    assert project.known_labels().tolist() == [1, 0, -1]  # the first label that is given
    project.close()


def test_rows_of_a_table_with_an_equal_text_are_no_duplicates(tmp_path):
    columns = {"job": ["sales person", "sales person", "tax clerk"], "age": ["1", "2", "3"]}
    project, _ = open_project(write_csv(tmp_path / "a.csv", columns))
    assert (project.n_records, project.n_duplicates) == (3, 0)
    project.close()
    path = write_csv(tmp_path / "b.csv", columns)
    project, _ = open_project(path, roles={"title": "job"})
    assert (project.n_records, project.n_duplicates) == (2, 1)
    project.close()


def test_columns_of_an_added_file(tmp_path):
    project, _ = open_project(write_csv(tmp_path / "a.csv", titles(3)))
    columns = {"name": ["First words", "Second words"], "other": ["u v", "w x"], "kept": ["1", "0"]}
    path = write_csv(tmp_path / "b.csv", columns)
    add_file(project, path, {"label": "kept"}, {"title": "other"})
    assert [each["title"] for each in project.records_by_role()][3:] == ["u v", "w x"]
    assert project.known_labels().tolist() == [-1, -1, -1, 1, 0]
    project.close()


def test_a_column_of_labels_that_is_not_taken_is_neither_shown_nor_ranked_by(tmp_path):
    columns = {"size": ["1", "2"], "included": ["1", "0"]}
    path = write_csv(tmp_path / "a.csv", columns)
    service, notes = opened(path, read={"label": ""})
    assert any("'included' looks like a column of labels" in note for note in notes)
    assert service.settings["columns"]["others"] == ["size"]
    (record,) = ask(service, views.records, service, [1], 1)
    assert record["fields"] == [["size", "1"]]
    assert service.counts(1)["read"] == 0
    service.close()


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "ris"])
def test_the_smallest_relevant_grade_of_an_export_is_kept(tmp_path, suffix):
    path = write_csv(tmp_path / "a.csv", titles(4))
    service, notes = opened(path, labels=["No", "Maybe", "Yes"], threshold=2)
    assert not any("smallest relevant" in note for note in notes)
    for record, grade in ((1, 1), (2, 0), (3, 2)):
        label(service, 1, record, grade)
    taken = ask(service, downloads.snapshot, service, 1, suffix)
    with (tmp_path / f"b.{suffix}").open("wb") as file, closing(service.project.reader()) as db:
        downloads.write(taken, suffix, db, file)
    service.close()
    service, notes = opened(tmp_path / f"b.{suffix}")
    assert "grades from 2 on are relevant" in notes
    assert service.settings["threshold"] == 2
    assert service.counts(1)["relevant"] == 1
    assert service.decisions.label.tolist() == [1, 0, 2, -1]
    service.close()


def test_grades_without_a_smallest_relevant_one_are_noted(tmp_path):
    path = write_csv(tmp_path / "a.csv", titles(3) | {"relevance": ["0", "1", "2"]})
    service, notes = opened(path)
    assert any("grades from 1 on are relevant; give" in note for note in notes)
    service.close()


def test_labels_without_names(tmp_path):
    path = write_csv(tmp_path / "a.csv", titles(3) | {"included": ["0", "31", ""]})
    with pytest.raises(DataFileError, match=r"a\.csv: .* column 'included' is 31, ") as error:
        open_project(path)
    assert "label" in error.value.arguments
    assert not project_path(path).exists()


def test_fixed_settings_of_a_project(tmp_path):
    path = write_csv(tmp_path / "a.csv", titles(3))
    open_project(path)[0].close()
    with pytest.raises(ProjectFileError, match="its labels cannot change"):
        open_project(path, labels=["No", "Maybe", "Yes"])
    with pytest.raises(ValueError, match="give 1 to 1"):
        open_project(path, threshold=2)


def test_the_names_of_strategies():
    from forerank.active.strategies import STRATEGIES as known

    assert set(STRATEGIES) == set(known)


# --- Hosts ---


def test_all_addresses_print_one_that_others_reach(monkeypatch):
    class Asking(socket.socket):
        def getsockname(self):
            return "198.51.100.7", 5

        def connect(self, address):
            assert address[0] == "192.0.2.1"

    with monkeypatch.context() as patch:
        patch.setattr(network.socket, "socket", Asking)
        assert network.names_of("0.0.0.0")[0] == "198.51.100.7"
    monkeypatch.setattr(Asking, "getsockname", lambda self: ("127.0.0.1", 5))
    with monkeypatch.context() as patch:
        patch.setattr(network.socket, "socket", Asking)
        assert network.address_for_others("0.0.0.0") is None
    assert network.address_for_others("lab.example.org") == "lab.example.org"
    assert network.names_of("127.0.0.1") == ["127.0.0.1", "localhost"]
