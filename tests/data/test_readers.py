"""Readers: what is in a file comes back, and a bad file gives one clear line."""

import bz2
import csv
import gzip
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import dump_svmlight_file

from forerank.data.csv import CsvOptions
from forerank.data.encodings import usual_encoding
from forerank.data.formats import file_kind
from forerank.data.readers import iter_table, open_csv, pick_columns, read_matrix, read_table
from forerank.exceptions import DataFileError

FRAME = pd.DataFrame(
    {
        "age": [31, 45, 28],
        "job": ["clerk", "cook", None],
        "when": pd.to_datetime(["2020-01-03", "2021-05-06", None]),
    }
)


def written(directory, suffix, frame=FRAME):
    path = directory / f"table{suffix}"
    if suffix.startswith(".parquet"):
        pa.parquet.write_table(pa.Table.from_pandas(frame), path)
    elif suffix.startswith(".feather"):
        pa.feather.write_feather(pa.Table.from_pandas(frame), path, compression="zstd")
    else:
        text = frame.to_csv(index=False, sep="\t" if suffix.startswith(".tsv") else ",").encode()
        packed = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)
        path.write_bytes(packed(text))
    return path


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


@settings(max_examples=100, deadline=None)
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


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.csv", b"a,b\r1,2\r", "its lines end in carriage returns alone"),
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


def test_a_wrong_delimiter_is_suspected(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;b\n1;2\n")
    with pytest.raises(DataFileError, match="is the delimiter another one"):
        read_table(path, columns=["a"], delimiter=",")
    pick_columns(path, ["a", "b"], "a", None)


@pytest.mark.parametrize("packed", ["", ".gz", ".bz2"])
@pytest.mark.parametrize("grouped", [False, True])
def test_svmlight_comes_back(tmp_path, packed, grouped):
    rng = np.random.default_rng(0)
    X = sp.random(50, 20, 0.2, format="csr", random_state=0)
    y, qid = rng.integers(0, 2, 50), np.sort(rng.integers(0, 5, 50))
    plain = tmp_path / "a.svm"
    dump_svmlight_file(X, y, str(plain), zero_based=False, query_id=qid if grouped else None)
    path = tmp_path / f"a.svm{packed}"
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(packed, bytes)
    path.write_bytes(pack(plain.read_bytes()))
    found = read_matrix(path)
    assert abs(found.X - X[:, : found.X.shape[1]]).max() < 1e-12
    assert_array_equal(found.y, y)
    assert found.qid is None if not grouped else np.array_equal(found.qid, qid)


def test_comments_and_columns_from_zero(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:2 # qid:x\n0 1:3\n")
    assert read_matrix(path).qid is None
    assert read_matrix(path).X.shape == (2, 1)
    assert read_matrix(path, zero_based=True).X.shape == (2, 2)
    assert not read_matrix(path).zero_based
    path.write_text("1 0:2\n")
    with pytest.raises(DataFileError, match="line 1: not a line of svmlight"):
        read_matrix(path, zero_based=False)


@pytest.mark.parametrize("delimiter", ["", ",,", "\n", "é"])
def test_delimiters_that_are_none(tmp_path, delimiter):
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataFileError, match="the delimiter is one character"):
        read_table(tmp_path / "a.csv", delimiter=delimiter)


def test_archives_come_back(tmp_path):
    X, y = sp.random(6, 4, 0.5, format="csr", random_state=0), np.array([0, 1, 0, 1, 1, 0])
    np.savez(
        tmp_path / "s.npz",
        X_data=X.data,
        X_indices=X.indices,
        X_indptr=X.indptr,
        X_shape=X.shape,
        y=y,
    )
    np.savez(tmp_path / "d.npz", X=X.toarray(), y=y, qid=y)
    assert (read_matrix(tmp_path / "s.npz").X != X).nnz == 0
    dense = read_matrix(tmp_path / "d.npz")
    assert_array_equal(dense.X, X.toarray())
    assert_array_equal(dense.qid, y)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.svm", b"\n", "the file is empty"),
        ("a.svm", b"# nothing\n", "comments but no rows"),
        ("a.svm", b"1 qid:1 1:2\n0 1:2\n", "qid is missing in some lines"),
        ("a.svm", b"1 1:2\n0 1:x\n", r"a.svm, line 2: not a line of svmlight .*: '0 1:x'"),
        ("a.svm", b"1 1:2\n" * 9000 + b"yes 1:2\n", "a.svm, line 9001: not a line of svmlight"),
        ("a.svm", b"1 3:1 2:1\n", "a.svm, line 1: not a line of svmlight"),
        ("a.svm", b"\x00\xff\x89PNG", "a.svm, line 1"),
        ("a.svm.gz", b"1 1:2\n", "a.svm.gz: cannot be read"),
        ("a.npz", b"PK\x03\x04junk", "cannot be read as a NumPy archive"),
        (
            "a.npz",
            b"x,y\n1,2\n",
            "cannot be read as a NumPy archive, which its suffix says it is",
        ),
        ("a.csv", b"a\n1\n", "this is a table, not a matrix"),
    ],
)
def test_bad_matrices_are_named_in_one_line(tmp_path, name, data, message):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(DataFileError, match=message) as caught:
        read_matrix(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"y": np.zeros(2)}, "X and y are expected, and the archive has y"),
        ({"X": np.zeros((2, 2)), "y": np.zeros(3)}, "one label per row"),
        ({"X_data": np.zeros(1), "y": np.zeros(1)}, "do not make a CSR matrix"),
        (
            {"X": np.array([{}], dtype=object), "y": np.zeros(1)},
            "as a NumPy archive .it holds Python objects",
        ),
    ],
)
def test_bad_archives_are_named(tmp_path, parts, message):
    np.savez(tmp_path / "a.npz", **parts)
    with pytest.raises(DataFileError, match=message) as caught:
        read_matrix(tmp_path / "a.npz")
    assert "pickle" not in str(caught.value)


ACCENTS = "città;größe;t\n" + 'Zürich;1,5;a\nParis;2;"é\nè"\n' * 30_000


@pytest.mark.parametrize(
    "encoding", ["cp1252", "latin-1", "utf-16", "utf-16-le", "utf-8-sig", "mac-roman"]
)
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_encodings(tmp_path, encoding, packed):
    path = tmp_path / f"a.csv{packed}"
    path.write_bytes((gzip.compress if packed else bytes)(ACCENTS.encode(encoding)))
    plain = tmp_path / "plain.csv"
    plain.write_text(ACCENTS, encoding="utf-8", newline="")
    expected = read_table(plain)
    assert expected.columns.tolist() == ["città", "größe", "t"]
    pd.testing.assert_frame_equal(read_table(path, encoding=encoding), expected)
    if encoding in ("utf-16", "utf-8-sig"):  # a byte order mark is enough
        pd.testing.assert_frame_equal(read_table(path), expected)
        assert usual_encoding(path, "cp1252") is None
    else:
        with pytest.raises(DataFileError) as caught:
            read_table(path)
        assert caught.value.arguments == {
            "encoding": "utf-16-le" if encoding == "utf-16-le" else "cp1252"
        }
        assert "pass the encoding" in str(caught.value)
        assert usual_encoding(path, encoding) == encoding
    assert usual_encoding(plain, encoding) is None


def test_encodings_that_are_none(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n1,\x81\n")
    for encoding in ("utf8000", "base64", "rot13"):
        with pytest.raises(DataFileError, match=f"there is no encoding '{encoding}'"):
            read_table(path, encoding=encoding)
    with pytest.raises(DataFileError, match="not text in the given encoding"):
        read_table(path, encoding="cp1252")
    with pytest.raises(DataFileError, match="encoding applies to CSV and TSV files only"):
        read_table(written(tmp_path, ".parquet"), encoding="cp1252")


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
    frame = read_table(path, missing={"a": ["oops"], "not there": ["x"]})
    assert_array_equal(frame["a"], [1.5, np.nan, np.nan, 4.0])
    assert frame["b"].tolist() == ["oops", "2", "3", "4"]
    with pytest.raises(
        DataFileError, match=r"a.csv, line 2: the column 'b' has 'oops', and a number is expected"
    ):
        read_table(path, missing={"b": ["other"]})


JUNK = st.one_of(
    st.binary(max_size=200),
    st.text(alphabet='ab,;"\n\t 01:.-é', max_size=200).map(lambda text: text.encode("utf-8")),
)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
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
