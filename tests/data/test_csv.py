"""CSV files in blocks: the same rows as the csv module, types over blocks, missing values."""

import csv
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from forerank.data.csv import CsvOptions
from forerank.data.notations import Reading
from forerank.data.readers import check_columns, iter_table, open_csv, read_table
from forerank.exceptions import DataFileError


@pytest.mark.parametrize("mark", [";", "|", "\t"])
def test_delimiters_are_guessed(tmp_path, mark):
    path = tmp_path / "data.csv"
    path.write_text(f"a{mark}b\n1{mark}x,y\n")
    assert read_table(path).to_dict("list") == {"a": [1], "b": ["x,y"]}


def test_a_column_that_turns_out_to_be_text_is_text(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a\n" + "1000000000000000\n" * 1_000_000 + "one\n")
    assert read_table(path)["a"].tolist()[-1] == "one"
    with pytest.raises(DataFileError, match="one"):
        list(iter_table(path))
    assert sum(len(chunk) for chunk in iter_table(path, types={"a": pa.string()})) == 1_000_001


def test_types_that_change_from_block_to_block(tmp_path):
    # More than one block of 4 MB: integers, then fractions, words, nothing; and integers beyond
    # 2^53.
    rows = ["1,1,,9007199254740993,08:30"] * 200_000 + ["1.5,one,x,1.5,17:45"]
    path = tmp_path / "data.csv"
    path.write_text("a,b,c,d,t\n" + "\n".join(rows) + "\n")
    frame = read_table(path)
    assert frame["a"].tolist()[-2:] == [1.0, 1.5]
    assert frame["b"].tolist()[-2:] == ["1", "one"]
    assert frame["c"].isna().sum() == 200_000
    assert frame["d"].tolist()[-2:] == [9007199254740992.0, 1.5]
    assert frame["t"].tolist()[-2:] == ["08:30", "17:45"]
    assert sum(len(part) for part in iter_table(path, columns=["c"])) == 200_001
    parts = [part["a"].to_numpy() for part in iter_table(path, columns=["a"])]
    assert_array_equal(np.concatenate(parts), frame["a"])
    with pytest.raises(DataFileError, match=r"line 200002: .* has 'one', and a number is expected"):
        list(iter_table(path, columns=["b"]))


def test_many_columns_that_change_are_read_twice_only(tmp_path):
    path = tmp_path / "data.csv"
    numbers = ",".join(["1000000"] * 200) + "\n"
    names = ",".join(f"c{k}" for k in range(200)) + "\n"
    path.write_text(names + numbers * 3000 + ",".join(["word"] * 200) + "\n")
    assert (read_table(path).iloc[-1] == "word").all()


def test_long_rows_and_long_headers(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text('t,y\n"' + "word " * 500_000 + '",1\nb,0\n')
    assert read_table(path)["y"].tolist() == [1, 0]
    names = [f"a_column_with_a_long_name_{k}" for k in range(40_000)]
    path.write_text(",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n")
    assert open_csv(path).names == names


@settings(max_examples=100)
@given(
    rows=st.lists(
        st.lists(st.text("ab,;\"\n\r '1", max_size=6), min_size=2, max_size=2), max_size=12
    ),
    end=st.sampled_from(["\n", "\r\n"]),
    block=st.integers(1, 30),
)
def test_blocks_are_those_of_the_csv_module(tmp_path_factory, rows, end, block):
    text = io.StringIO()
    csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL).writerows([["x", "y"], *rows])
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_bytes(text.getvalue().encode())
    file = open_csv(path)
    values, lines = [], []
    for part in file.blocks(block_bytes=block):
        table = file.parse(part, CsvOptions(types={"x": pa.string(), "y": pa.string()}))
        values += [[row["x"] or "", row["y"] or ""] for row in table.to_pylist()]
        lines += file.lines(part, table.num_rows).to_pylist()
    assert values == rows
    assert [next(csv.reader(io.StringIO(line, newline=""))) for line in lines] == rows


def test_a_wrong_delimiter_is_suspected(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;b\n1;2\n")
    with pytest.raises(DataFileError, match="is the delimiter another one"):
        read_table(path, columns=["a"], delimiter=",")
    check_columns(path, ["a", "b"], "a", None)


@pytest.mark.parametrize("delimiter", ["", ",,", "\n", "é"])
def test_delimiters_that_are_none(tmp_path, delimiter):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataFileError, match="the delimiter is one character"):
        read_table(tmp_path / "a.csv", delimiter=delimiter)


def test_whole_numbers_that_doubles_do_not_hold_stay_apart(tmp_path):
    path = tmp_path / "a.csv"
    numbers = [10**19 + 10**18 + k for k in range(3)]
    path.write_text("h,q\n" + "\n".join(f"{k},1.5e300" for k in numbers) + f"\n,{10**300}\n")
    frame = read_table(path)
    assert frame["h"].tolist()[:3] == [str(k) for k in numbers]
    assert frame["q"].dtype == np.float64
    # With gaps, in integers of 64 bits.
    path.write_text("h,q\n" + "\n".join(f"{2**60 + k},1" for k in range(3)) + "\n,2\n")
    assert read_table(path)["h"].tolist()[:3] == [str(2**60 + k) for k in range(3)]


def test_columns_without_a_name_are_called_by_their_place(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(",a,\n1,2,3\n")
    assert read_table(path).to_dict("list") == {
        "column 1 (no name)": [1],
        "a": [2],
        "column 3 (no name)": [3],
    }
    pa.parquet.write_table(pa.table({"": [1], "a": [2]}), tmp_path / "a.parquet")
    assert list(read_table(tmp_path / "a.parquet").columns) == ["column 1 (no name)", "a"]


@pytest.mark.parametrize("mark", [",", ";"])
def test_words_that_stand_for_a_missing_number(tmp_path, mark):
    path = tmp_path / "a.csv"
    number = "1.5" if mark == "," else "1,5"
    path.write_text(f"a{mark}b\n{number}{mark}oops\noops {mark}2\n{mark}3\n 4{mark}4\n")
    frame = read_table(path, readings={"a": Reading(missing=("oops",)), "not there": Reading()})
    assert_array_equal(frame["a"], [1.5, np.nan, np.nan, 4.0])
    assert frame["b"].tolist() == ["oops", "2", "3", "4"]
    with pytest.raises(
        DataFileError, match=r"a.csv, line 2: the column 'b' has 'oops', and a number is expected"
    ):
        read_table(path, readings={"b": Reading(missing=("other",))})
