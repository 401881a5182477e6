"""RIS files as databases and reference managers write them; whatever comes, no record is lost
without a note.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forerank.data.readers import NOTES, read_table
from forerank.data.ris import parse_ris, ris_lines
from forerank.exceptions import CsvProblem, DataFileError


def rows(text):
    return parse_ris(text).rows


def test_record_of_a_reference_manager():
    text = (
        "TY  - JOUR\nAU  - Smith, J.\nAU  - Doe, K.\nTI  - A title\n   on two lines\nPY  - 2005\n"
        "KW  - one\nKW  - two\nAB  - First line.\n\nSecond line - with a hyphen.\nER  - \n"
    )
    assert rows(text) == [
        {
            "TY": "JOUR",
            "AU": "Smith, J.; Doe, K.",
            "TI": "A title on two lines",
            "PY": "2005",
            "KW": "one; two",
            "AB": "First line. Second line - with a hyphen.",
        }
    ]


def test_older_tags_are_read_as_the_newer_ones_in_a_file_with_both():
    found = parse_ris("TY  - JOUR\nTI  - A\nER  - \nTY  - JOUR\nT1  - B\nN2  - Text\nER  - \n")
    assert [row["TI"] for row in found.rows] == ["A", "B"]
    assert found.rows[1]["N2"] == "Text"  # no record has AB
    assert found.notes == ["T1 of 1 record read as TI"]


@pytest.mark.parametrize(
    "text",
    [
        "TY  - JOUR\nTI  - A\n\nTY  - JOUR\nTI  - B\n",  # no ER
        "TY  - JOUR\nTI  - A\nER  - \n\ufeffTY  - JOUR\nTI  - B\nER  -",  # two files joined
        "TY - JOUR\nTI - A\nER - \nTY - JOUR\nTI - B\nER -\n",  # one space
        "TY  - JOUR\nTI  - A\n\nTY - JOUR\nTI - B\nER - \n",  # joined, spaced differently, no ER
        " TY  - JOUR\n TI  - A\n ER  - \nTY  - JOUR\nTI  - B\n",  # indented
    ],
)
def test_records_are_told_apart(text):
    assert [(row["TY"], row["TI"]) for row in rows(text)] == [("JOUR", "A"), ("JOUR", "B")]


def test_a_line_of_an_abstract_is_no_tag():
    text = "TY  - JOUR\nAB  - Groups:\nII - treated\nTY - is a word\nER  - \n"
    assert rows(text) == [{"TY": "JOUR", "AB": "Groups: II - treated TY - is a word"}]


def test_what_is_outside_of_records_is_noted():
    found = parse_ris("Exported by X\n\nTY  - JOUR\nTI  - A\nER  - \nTI  - B\nER  - \n")
    assert [row["TY"] for row in found.rows] == ["JOUR", "GEN"]
    assert found.notes == [
        "1 record has no TY line: line 6",
        "1 line outside of records skipped: line 1",
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a.ris: the file is empty"),
        (b"\n \n", "a.ris: the file is empty"),
        (b"title,abstract\na,b\n", "a.ris, line 1: this is 'title,abstract', and a RIS record"),
        (b"\nPMID- 123\nTI  - A\n", "a.ris, line 2: this is 'PMID- 123', the MEDLINE format"),
        ("TY  - JOUR\nTI  - é\n".encode("latin-1"), "a.ris, line 2: not UTF-8 text: the byte 0xE9"),
        (b"TY  - JOUR\x00\n", "not a text file"),
    ],
)
def test_bad_files(tmp_path, data, message):
    path = tmp_path / "a.ris"
    path.write_bytes(data)
    with pytest.raises(DataFileError, match=re.escape(message)) as error:
        read_table(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_line_ends_and_byte_order_marks(tmp_path, end, encoding):
    path = tmp_path / "a.ris"
    path.write_bytes(end.join(["TY  - JOUR", "TI  - Étude", "ER  - ", ""]).encode(encoding))
    frame = read_table(path)
    assert frame["TI"].tolist() == ["Étude"]
    assert frame.attrs[NOTES] == []


def test_other_encodings_are_named(tmp_path):
    path = tmp_path / "a.ris"
    path.write_bytes("TY  - JOUR\nTI  - Étude\nER  - \n".encode("cp1252"))
    assert read_table(path, encoding="cp1252")["TI"].tolist() == ["Étude"]


texts = st.text(max_size=12).map(lambda text: " ".join(text.replace(";", "").split()))
tags = st.from_regex(r"[A-Z][A-Z0-9]", fullmatch=True).filter(
    lambda tag: tag not in ("TY", "ER", "T1", "N2", "Y1")
)


@given(st.lists(st.dictionaries(tags, texts.filter(bool), max_size=4), min_size=1, max_size=4))
def test_written_records_are_read_as_they_were(records):
    text = "\n".join(line for record in records for line in [*ris_lines(record), ""])
    found = parse_ris(text)
    assert found.rows == [{"TY": "GEN"} | record for record in records]
    assert found.notes == []


pieces = st.sampled_from(
    [
        *("TY  - JOUR", "TY - JOUR", "TY", "ER  - ", "ER  - x", "ER", "TI  - a", "TI - b"),
        *("\ufeff", "\n", "\n", "KW  - k", "text", " ", "AB  -", "XX-", "\u2028", "\x0b"),
    ]
)


@given(st.lists(pieces, max_size=25).map("".join))
def test_any_text_is_read_or_refused(text):
    lines = [line.lstrip("\ufeff") for line in text.split("\n")]
    try:
        found = parse_ris(text)
    except CsvProblem:
        assert not any(line.startswith("TY  -") for line in lines)
        return
    assert len(found.rows) >= sum(line.startswith("TY  -") for line in lines)
