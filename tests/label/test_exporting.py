"""Exports: no cell that a spreadsheet would run, and files that can be imported again."""

import csv
import io
import json

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forerank.label.cells import guarded, unguarded
from forerank.label.exporting import (
    STATUSES,
    ExportRow,
    prisma_counts,
    write_csv,
    write_events,
    write_prisma,
    write_ris,
    write_xlsx,
)
from forerank.label.importing import read_records

WRITERS = {".csv": write_csv, ".xlsx": write_xlsx, ".ris": write_ris}
FORMULAS = [
    *("=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1+1", "\u00a0=1", "\u200b=1"),
    *("＝1+1", "＋1", "－1+cmd|' /C calc'!A0", "＠x", '=HYPERLINK("http://x")', "'=1"),
    *("a;=1+1", "a\n=1+1", "a\t@x", "a\r\n  +1", 'a;"=1', "a|-1+1", "a; b;\n;=1"),
]


def exported(rows, suffix, path):
    with path.with_suffix(suffix).open("wb") as file:
        WRITERS[suffix](rows, file)
    return path.with_suffix(suffix)


def begins_formula(cell):
    visible = cell.lstrip(' \t\r\n\u00a0\u200b"')
    return visible[:1] in tuple("=+-@＝＋－＠") or cell[:1] in tuple("\t\r\n")


@pytest.mark.parametrize("text", FORMULAS)
def test_no_cell_is_a_formula(tmp_path, text):
    row = ExportRow({text: text, "b": "x"}, 1, "relevant", {text: 1}, note=text, tags=[text])
    data = exported([row], ".csv", tmp_path / "a").read_bytes().decode("utf-8-sig")
    for delimiter in ",;\t|":  # whichever one a spreadsheet expects
        for cells in csv.reader(io.StringIO(data, newline=""), delimiter=delimiter):
            assert not any(map(begins_formula, cells)), (delimiter, cells)
    book = openpyxl.load_workbook(exported([row], ".xlsx", tmp_path / "a"))
    for cells in book.active.iter_rows():
        for cell in cells:
            assert cell.data_type in ("s", "n")
            assert cell.hyperlink is None
            assert not isinstance(cell.value, str) or not begins_formula(cell.value)


@given(st.lists(st.sampled_from("=+-@＝'\";|\t\r\n 1a\u200b"), max_size=10).map("".join))
def test_guarded_texts_are_safe_and_reversible(text):
    assert unguarded(guarded(text)) == text
    try:
        float(text)
    except ValueError:
        assert not begins_formula(guarded(text)) or guarded(text)[:1] == '"'


def test_numbers_stay_numbers():
    assert [guarded(text) for text in ("-1.5", "+3", "1e-5", "-2E+3")] == [
        "-1.5",
        "+3",
        "1e-5",
        "-2E+3",
    ]


words = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=12)
rows = st.lists(
    st.builds(
        ExportRow,
        record=st.fixed_dictionaries({"title": words.map("T {}".format), "abstract": words}),
        label=st.sampled_from([0, 1]),
        note=words,
        tags=st.lists(st.sampled_from(["wrong population", "=review", "@x"]), unique=True),
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
@settings(max_examples=10)
@given(rows=rows)
def test_tables_come_back_with_labels_notes_and_tags(tmp_path_factory, suffix, rows):
    for row in rows:
        row.status = "relevant" if row.label else "irrelevant"
    path = exported(rows, suffix, tmp_path_factory.getbasetemp() / "export")
    records = read_records(path)
    assert records.labels == [row.label for row in rows]
    assert records.label_column == "forerank_label"
    for row, found in zip(rows, records.fields, strict=True):
        assert {name: found[name] for name in row.record} == row.record
        assert found.get("forerank_note", "") == row.note
        assert found.get("forerank_tags", "") == "; ".join(row.tags)
    # A second export and import adds nothing.
    again = [
        ExportRow(fields, label)
        for fields, label in zip(records.fields, records.labels, strict=True)
    ]
    path = exported(again, suffix, tmp_path_factory.getbasetemp() / "again")
    assert read_records(path).fields == records.fields


def test_ris_comes_back(tmp_path):
    roles = {"title": "title", "authors": "authors", "journal": "journal", "doi": "doi"}
    record = {
        "title": "A title",
        "authors": "A, B.; C, D.",
        "journal": "J",
        "doi": "10.1/x",
        "x": "y",
    }
    labels = [
        (1, "relevant"),
        (0, "irrelevant"),
        (3, "relevant"),
        (None, "unread"),
        (None, "skipped"),
    ]
    rows = [
        ExportRow(record, label, status, roles=roles, note="line\nTY  - BOOK")
        for label, status in labels
    ]
    rows[0].tags = ["a", "b"]
    path = exported(rows, ".ris", tmp_path / "a")
    text = path.read_text()
    assert text.count("TY  - JOUR") == 5
    assert text.count("AU  - C, D.") == 5
    found = read_records(path)
    assert found.labels == [1, 0, 3, -1, -1]
    assert found.roles == {"title": "TI", "authors": "AU", "doi": "DO", "journal": "T2"}
    assert found.fields[0]["N1"] == "x: y; forerank note: line TY - BOOK; forerank tags: a, b"
    changed = [ExportRow(fields, 0, "irrelevant", roles=found.roles) for fields in found.fields]
    assert read_records(exported(changed, ".ris", tmp_path / "b")).labels == [0] * 5


def test_labels_of_other_programs_are_replaced_by_ours(tmp_path):
    record = {"TY": "JOUR", "TI": "A title", "N1": "ASReview_relevant"}
    path = exported([ExportRow(record, 0, "irrelevant")], ".ris", tmp_path / "a")
    assert read_records(path).labels == [0]


def test_long_texts_are_cut_with_a_note(tmp_path):
    path = exported([ExportRow({"title": "x" * 40_000})], ".xlsx", tmp_path / "a")
    (cells,) = list(openpyxl.load_workbook(path).active.iter_rows(min_row=2, values_only=True))
    assert len(cells[0]) == 32_767
    assert cells[-1] == "title: cut from 40,000 characters"


@given(
    st.lists(st.tuples(st.sampled_from(STATUSES), st.lists(st.sampled_from("abc")))),
    st.integers(0, 9),
)
def test_prisma_counts_add_up(rows, n_duplicates):
    exports = [ExportRow({}, status=status, tags=tags) for status, tags in rows]
    counts = prisma_counts(exports, duplicates_removed=n_duplicates)
    assert counts.identified == len(rows) + n_duplicates
    assert counts.identified == counts.duplicates_removed + counts.screened + counts.not_screened
    assert counts.screened == counts.excluded + counts.included
    excluded = [set(tags) for status, tags in rows if status == "irrelevant"]
    for reason, n in counts.excluded_by_reason.items():
        assert n == sum(
            reason in tags or (reason == "no reason given" and not tags) for tags in excluded
        )
    file = io.BytesIO()
    write_prisma(counts, file, format="json")
    assert json.loads(file.getvalue())["identified"] == counts.identified


def test_prisma_as_csv():
    file = io.BytesIO()
    write_prisma(prisma_counts([ExportRow({}, 0, "irrelevant", tags=["=x"])]), file)
    lines = file.getvalue().decode("utf-8-sig").splitlines()
    assert lines[1] == "identified,1"
    assert lines[-1] == "excluded: =x,1"
    with pytest.raises(ValueError, match="choose 'csv' or 'json'"):
        write_prisma(prisma_counts([]), file, format="xml")


def test_events_are_json_lines():
    file = io.BytesIO()
    write_events([{"value": "a\nb\u2028é"}, {"value": 1}], file)
    assert [json.loads(line) for line in file.getvalue().splitlines()] == [
        {"value": "a\nb\u2028é"},
        {"value": 1},
    ]
