"""XLSX files: the first sheet as a table; files made to exhaust the memory are refused."""

import datetime
import zipfile

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forerank.data.readers import NOTES, read_table
from forerank.data.spreadsheets import read_sheet
from forerank.exceptions import DataFileError


def saved(path, rows, **sheets):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for name, others in sheets.items():
        sheet = book.create_sheet(name)
        for row in others:
            sheet.append(row)
    book.save(path)
    return path


def patched(path, target, old, new):
    """A copy of a file with other XML in its first sheet."""
    with zipfile.ZipFile(path) as source:
        parts = {name: source.read(name) for name in source.namelist()}
    parts["xl/worksheets/sheet1.xml"] = parts["xl/worksheets/sheet1.xml"].replace(old, new)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return target


def test_cells_of_all_kinds(tmp_path):
    day = datetime.datetime(2020, 1, 2)
    rows = [
        ["n", "text", "day", "time", "formula", "error", None],
        [1, " a ", day, datetime.time(9, 30), "=1+1", "#N/A", None],
        [],
        [2.5, "_x0041_", None, None, None, None, None],
    ]
    found = read_sheet(saved(tmp_path / "a.xlsx", rows)).rows
    assert found == [
        {"n": 1, "text": " a ", "day": day, "time": "09:30:00", "formula": None, "error": None},
        {"n": 2.5, "text": "A", "day": None, "time": None, "formula": None, "error": None},
    ]
    frame = read_table(tmp_path / "a.xlsx")
    assert frame["n"].tolist() == [1.0, 2.5]
    assert frame["day"][0] == day


def test_other_sheets_are_named(tmp_path):
    frame = read_table(saved(tmp_path / "a.xlsx", [["a"], [1]], second=[["b"], [2]]))
    assert frame.to_dict("list") == {"a": [1]}
    assert "1 other sheet skipped: 'second'" in frame.attrs[NOTES][0]


def test_merged_header_cells(tmp_path):
    path = saved(tmp_path / "a.xlsx", [["title", "scores", None], ["t", 1, 2]])
    book = openpyxl.load_workbook(path)
    book.active.merge_cells("B1:C1")
    book.save(path)
    assert list(read_table(path).columns) == ["title", "scores", "column 3 (no name)"]


def test_a_single_cell_far_right_costs_nothing(tmp_path):
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1"] = "a", "last"
    for number in range(2, 2000):
        book.active.cell(number, 1, "x")
    book.save(tmp_path / "a.xlsx")
    assert read_table(tmp_path / "a.xlsx").shape == (1998, 2)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["a", "a"], [1, 2]], "a.xlsx, line 1: more than one column is called 'a'"),
        ([["a", "b"]], "there are column names but no rows"),
        ([], "the sheet 'Sheet' is empty"),
    ],
)
def test_bad_sheets(tmp_path, rows, message):
    with pytest.raises(DataFileError, match=message):
        read_table(saved(tmp_path / "a.xlsx", rows))


def test_files_that_are_no_sheets(tmp_path):
    path = tmp_path / "a.xlsx"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DataFileError, match="this is not an XLSX file; check its format"):
        read_table(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "x")
    with pytest.raises(DataFileError, match=r"cannot be read as XLSX .* save it again, or as CSV"):
        read_table(path)
    path.write_bytes(saved(tmp_path / "b.xlsx", [["a"], [1]]).read_bytes()[:-40])
    with pytest.raises(DataFileError, match="not an XLSX file"):
        read_table(path)


def test_files_made_to_exhaust_time_and_memory(tmp_path):
    path = saved(tmp_path / "a.xlsx", [["a"], [1]])
    far = patched(path, tmp_path / "far.xlsx", b'r="2"', b'r="90000000000"')
    with pytest.raises(DataFileError, match="more than 1,048,576 rows"):
        read_table(far)
    zeros = b"<!--" + b"a" * (1 << 27) + b"--></sheetData>"
    bomb = patched(path, tmp_path / "bomb.xlsx", b"</sheetData>", zeros)
    with pytest.raises(DataFileError, match="bytes after decompression are too many"):
        read_table(bomb)
    entities = b'<!DOCTYPE x [<!ENTITY a "' + b"a" * 100 + b'">'
    for name, before in zip(b"bcdefg", b"abcdef", strict=True):
        entities += b'<!ENTITY %c "%b">' % (name, b"&%c;" % before * 30)
    laughs = patched(path, tmp_path / "laughs.xlsx", b"<worksheet", entities + b"]><worksheet")
    laughs = patched(laughs, tmp_path / "more.xlsx", b"<v>1</v>", b"<v>&g;</v>")
    with pytest.raises(DataFileError, match="cannot be read as XLSX"):
        read_table(laughs)


@given(st.binary(max_size=40), st.integers(0, 4000))
def test_damaged_files_are_read_or_refused(tmp_path_factory, damage, position):
    folder = tmp_path_factory.getbasetemp()
    path = folder / "whole.xlsx"
    if not path.exists():
        saved(path, [["a", "b"], [1, "x"], [2, "y"]])
    data = bytearray(path.read_bytes())
    data[position : position + len(damage)] = damage
    broken = folder / "damaged.xlsx"
    broken.write_bytes(bytes(data))
    try:
        frame = read_table(broken)
    except DataFileError:
        return
    assert len(frame)
