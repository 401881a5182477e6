"""Records from files: their roles, and labels that other programs have left in them."""

import re

import pandas as pd
import pytest

from forerank.exceptions import DataFileError
from forerank.label.importing import find_roles, read_records, records_of_frame


def read(tmp_path, name, data, **options):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_records(path, **options)


RIS = "TY  - JOUR\nTI  - First title\nN1  - {}\nER  - \n\nTY  - JOUR\nTI  - Second\nER  - \n"


@pytest.mark.parametrize(
    ("note", "label"),
    [
        ("ASReview_relevant", 1),
        ("Export Date: 1 May; ASReview_irrelevant; ASReview_prior", 0),
        ("ASReview_not_seen", -1),
        ("ASReview_validate_relevant", -1),
        ('RAYYAN-INCLUSION: {"Ann"=>"Included"} | RAYYAN-LABELS: x', 1),
        ('RAYYAN-INCLUSION: {"Ann"=>"Excluded", "Bob O."=>"Excluded"}', 0),
        ('RAYYAN-INCLUSION: {"Ann"=>"Excluded", "Bob"=>"Included"}', -1),
        ('RAYYAN-INCLUSION: {"Ann"=>"Maybe"}', -1),
        ("nothing of the kind", -1),
    ],
)
def test_labels_in_notes(tmp_path, note, label):
    assert read(tmp_path, "a.ris", RIS.format(note)).labels == [label, -1]
    quoted = note.replace('"', '""')
    table = f'title,notes\nFirst title,"{quoted}"\nSecond,\n'
    assert read(tmp_path, "a.csv", table).labels == [label, -1]
    assert read(tmp_path, "a.ris", RIS.format(note), label="").labels == [-1, -1]


@pytest.mark.parametrize(
    "name", ["included", "label", "Label_Included", "relevant", "asreview_label", "Decision"]
)
@pytest.mark.parametrize(
    ("words", "labels"),
    [
        ("1 0 - 1.0", [1, 0, -1, 1]),
        ("yes no maybe Y", [1, 0, -1, 1]),
        ("Include EXCLUDE ? included", [1, 0, -1, 1]),
        ("0 1 2 3", [0, 1, 2, 3]),
    ],
)
def test_columns_of_labels(tmp_path, name, words, labels):
    rows = "".join(f"Some title,{'' if word == '-' else word}\n" for word in words.split())
    records = read(tmp_path, "a.csv", f"title,{name}\n{rows}")
    assert records.labels == labels
    assert records.label_column == name


def test_a_column_of_other_words_is_a_field(tmp_path):
    records = read(
        tmp_path, "a.csv", "title,labels,included\nA title,biology,1\nAnother one,art,0\n"
    )
    assert (records.label_column, records.labels) == ("included", [1, 0])
    assert records.fields[0]["labels"] == "biology"


def test_roles_by_name(tmp_path):
    head = "Article Title,Abstract,Authors,Publication Year,DOI,x"
    records = read(tmp_path, "a.csv", f"{head}\nA t,An a,B,2001,10.1/x,5\n")
    roles = {"title": "Article Title", "abstract": "Abstract", "authors": "Authors"}
    assert records.roles == roles | {"year": "Publication Year", "doi": "DOI"}
    assert records.by_role()[0]["title"] == "A t"


def test_the_first_column_of_words_stands_for_a_title():
    columns = {"id": ["a", "b"], "text": ["two words", "three words here"], "n": ["1", "2"]}
    assert find_roles(columns) == {"title": "text"}
    assert find_roles({"id": ["a", "b"], "n": ["1 2", "2 3"]}) == {}


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.csv", "title,included\nA b,1\nC d,perhaps so\n", "the column of labels 'included' has"),
        ("a.csv", "title,abstract\n", "no rows"),
        ("a.ris", "no records", "a.ris, line 1: this is 'no records'"),
        ("a.csv", "title\né b\n".encode("latin-1"), "a.csv, line 2: not UTF-8 text"),
        ("a.csv", b"title\n\xc3\xa9 b\n\xe9 c\n", "a.csv, line 3: not UTF-8 text"),
        ("a.jsonl", '{"title": "A b"}\n{', "a.jsonl, line 2: not JSON"),
        ("a.txt", "title\n", "the suffix does not tell the format"),
    ],
)
def test_bad_files(tmp_path, name, data, message):
    with pytest.raises(DataFileError, match=re.escape(message)) as error:
        read(tmp_path, name, data)
    assert "\n" not in str(error.value)


def test_equal_ids_and_missing_titles_are_noted(tmp_path):
    records = read(tmp_path, "a.csv", "id,n\na,1\na,2\nb,3\n")
    assert len(records.fields) == 3
    assert "1 record has the same 'id' as an earlier one; all are kept" in records.notes
    assert "no column of titles or abstracts found; the columns are id, n" in records.notes


def test_frames():
    frame = pd.DataFrame({"title": ["A b", None], "n": [1.0, 2.5], "included": [1, 0]})
    records = records_of_frame(frame)
    assert records.labels == [1, 0]
    assert records.fields == [
        {"title": "A b", "n": "1", "included": "1"},
        {"title": "", "n": "2.5", "included": "0"},
    ]


def test_values_that_storage_does_not_take():
    records = records_of_frame(
        pd.DataFrame({"title": ["a\x00b \ud800", b"by\xfftes"]}, dtype=object)
    )
    assert [record["title"] for record in records.fields] == ["a\ufffdb \ufffd", "by\ufffdtes"]


def test_a_ris_file_that_is_cut_off_is_noted(tmp_path):
    whole = RIS.format("x")
    note = "the last record has no ER line; the file may be cut off"
    assert note not in read(tmp_path, "a.ris", whole).notes
    cut = read(tmp_path, "b.ris", whole[: whole.rindex("ER")])
    assert note in cut.notes
    assert len(cut.fields) == 2
