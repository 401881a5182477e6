"""Files come back as they were written, and bad ones are named in one line."""

import gzip

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from forerank.data.formats import file_kind
from forerank.data.readers import iter_table, read_matrix, read_table
from forerank.exceptions import DataFileError
from tables import FRAME, written


@pytest.mark.parametrize(
    "suffix", [".csv", ".csv.gz", ".csv.bz2", ".tsv", ".tsv.gz", ".parquet", ".feather"]
)
def test_tables_come_back(tmp_path, suffix):
    path = written(tmp_path, suffix)
    for frame in (read_table(path), pd.concat(iter_table(path))):
        assert_array_equal(frame["age"], FRAME["age"])
        assert frame["job"].isna().tolist() == [False, False, True]
        assert frame["job"].tolist()[:2] == ["clerk", "cook"]
        assert_array_equal(pd.to_datetime(frame["when"])[:2], FRAME["when"][:2])
    assert list(read_table(path, columns=["job"]).columns) == ["job"]
    chunks = list(iter_table(path, rows=2, columns=["age"]))
    assert [len(chunk) for chunk in chunks] == [2, 1]
    with pytest.raises(DataFileError, match="no column 'jobs'; did you mean 'job'"):
        read_table(path, columns=["jobs"])


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.csv", b"a,b\r1,2\r", "the lines end in carriage returns only"),
        ("a.csv", b"", "a.csv: the file is empty"),
        ("a.csv", b"\n\n", "a.csv: the file is empty"),
        ("a.csv", b"a,b\n", "column names but no rows"),
        (
            "a.csv",
            b"a,b\n1,2\n3\n",
            r"a.csv, line 3: a row of 1 values, and the header has 2 names \(delimiter ','\)",
        ),
        (
            "a.csv",
            b"a,b\n" + b"1,2\n" * 300_000 + b"3,4,5\n",
            "a.csv, line 300002: a row of 3 values",
        ),
        ("a.csv", b"a,a\n1,2\n", "a.csv, line 1: the header names the column 'a' more than once"),
        ("a.csv", b"\x89PNG\r\n\x1a\n\x00\x00", "not a text file"),
        ("a.csv", b"\xff,b\n1,2\n", "line 1: not UTF-8 text: the byte 0xFF"),
        ("a.csv", "a,b\n1,é\n".encode("latin1"), "a.csv, line 2: not UTF-8 text"),
        ("a.csv.gz", b"a,b\n1,2\n", "a.csv.gz: cannot be read"),
        (
            "a.csv.gz",
            gzip.compress(b"a,b\n" + bytes(range(32, 127)) * 9, mtime=0)[:-30],
            "a.csv.gz: cannot be",
        ),
        ("a.parquet", b"PAR1 is not enough", "cannot be read as Parquet"),
        ("a.feather", b"ARROW1 is not enough", "cannot be read as Feather"),
        ("a.svm", b"1 1:2\n", "a matrix without column names"),
        ("a.xls", b"1", "the suffix does not tell the format"),
        ("a", b"1", "the suffix does not tell the format"),
    ],
)
def test_bad_tables_are_named_in_one_line(tmp_path, name, data, message):
    path = tmp_path / name
    path.write_bytes(data)
    for read in (read_table, lambda p: list(iter_table(p))):
        with pytest.raises(DataFileError, match=message) as caught:
            read(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_another_kind_of_file_is_recognised(tmp_path, kind):
    path = written(tmp_path, f".{kind}").rename(tmp_path / "table.csv")
    with pytest.raises(
        DataFileError, match=f"this is {kind.capitalize()}, not text; pass its format"
    ) as caught:
        read_table(path)
    assert caught.value.arguments == {"format": kind}
    assert len(read_table(path, **caught.value.arguments)) == 3


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(DataFileError, match="there is no such file"):
        read_table(tmp_path / "a.csv")
    (tmp_path / "b.csv").mkdir()
    with pytest.raises(DataFileError, match="this is a directory"):
        read_table(tmp_path / "b.csv")


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".parquet", ".feather"])
def test_a_format_goes_before_the_suffix(tmp_path, kind):
    path = written(tmp_path, kind).rename(tmp_path / "table.dat")
    with pytest.raises(DataFileError, match="pass its format") as caught:
        read_table(path)
    assert caught.value.arguments == {"format": "csv"}
    assert read_table(path, format=kind[1:])["age"].tolist() == [31, 45, 28]
    assert len(pd.concat(iter_table(path, format=kind[1:]))) == 3
    with pytest.raises(DataFileError, match="there is no format 'xls'; choose one of csv, tsv"):
        read_table(path, format="xls")
    (tmp_path / "rows.txt").write_text("1 1:2\n")
    assert read_matrix(tmp_path / "rows.txt", format="svm").y.tolist() == [1]
    assert file_kind("a.csv", "libsvm") == "svmlight"


JUNK = st.one_of(
    st.binary(max_size=200),
    st.text(alphabet='ab,;"\n\t 01:.-é', max_size=200).map(lambda text: text.encode("utf-8")),
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=JUNK,
    suffix=st.sampled_from(["csv", "tsv", "csv.gz", "parquet", "feather", "svm", "svm.bz2", "npz"]),
    encoding=st.sampled_from([None, "cp1252", "utf-16", "shift-jis", "utf-7"]),
)
def test_junk_gives_clear_errors_only(tmp_path, data, suffix, encoding):
    path = tmp_path / f"junk.{suffix}"
    path.write_bytes(data)
    is_matrix = file_kind(path) in ("svmlight", "npz")
    message = ""
    try:
        read_matrix(path) if is_matrix else read_table(path, encoding=encoding)
    except DataFileError as error:  # anything else fails
        message = str(error)
    assert "\n" not in message.removeprefix(str(path))
