"""From files to projects: bad files leave nothing behind, second files keep labels."""

import pytest

from forerank.exceptions import DataFileError, ProjectFileError
from forerank.label import downloads
from forerank.label.launch import add_file, make_page, open_project, project_path
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
