"""Sources of streamed rows: types of columns, labels and weights; options that do not apply; disks
and files that change under a scan.
"""

import os
import resource
import tempfile
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import forerank
from forerank import PairwiseRanker, PointwiseRanker
from forerank.data import readers, row_blocks
from forerank.data.group_labels import group_hashes
from forerank.data.row_blocks import BlockMaker, Labels
from forerank.data.row_sources import Batch
from forerank.data.row_stream import parse_bytes
from forerank.data.spool import SpoolDirectory
from forerank.exceptions import DataFileError

N = 1_500


@pytest.fixture(scope="module")
def made():
    """Columns of float32, labels and weights that float32 does not have."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 3)).astype(np.float32)
    y = (X[:, 0] + rng.standard_normal(N) > 0.5).astype(int)
    return X, y, rng.uniform(0.1, 1.0, N)


def table(X, y, **columns):
    return pa.table({**{f"c{k}": X[:, k] for k in range(X.shape[1])}, "y": y, **columns})


# --- types ---


@pytest.mark.parametrize("cls", [PairwiseRanker, PointwiseRanker])
def test_weights_have_double_precision_whatever_the_columns(made, cls):
    X, y, w = made
    ranker = cls("logistic", alpha=1e-3, tol=1e-13)
    with forerank.open_rows(table(X, y, w=w), "y", weight="w") as rows:
        streamed = cls("logistic", alpha=1e-3, tol=1e-13).fit(rows)
    np.testing.assert_allclose(streamed.coef_, ranker.fit(X, y, w).coef_, rtol=0, atol=1e-11)


@pytest.mark.parametrize("group", [None, "q"])
@pytest.mark.parametrize("factor", [1e-309, 1e-200, 1e200, 2e307, 2.0])
def test_a_common_factor_of_the_weights_changes_nothing(made, factor, group):
    X, y, w = made
    ranker, found = PairwiseRanker("squared_hinge", alpha=1e-3, tol=1e-10), []
    for weight in (w, factor * w):
        rows = table(X, y, w=weight, q=np.arange(N) // 50)
        columns = ["c0", "c1", "c2"]
        with forerank.open_rows(rows, "y", weight="w", group=group, columns=columns) as opened:
            found.append(ranker.fit(opened).coef_)
    np.testing.assert_allclose(*found, rtol=0, atol=1e-8)


def test_files_of_different_types_keep_all_digits(made, tmp_path):
    X, y, _ = made
    exact = X + np.random.default_rng(1).uniform(0.0, 1e-8, X.shape)
    half = N // 2
    pq.write_table(table(X[:half], y[:half]), tmp_path / "0.parquet")
    pq.write_table(table(exact[half:], y[half:]), tmp_path / "1.parquet")
    with forerank.open_rows(str(tmp_path / "*.parquet"), "y") as rows:
        read = np.concatenate([block.X.copy() for block in rows.blocks()])
    np.testing.assert_array_equal(read, np.concatenate([X[:half], exact[half:]]))
    with forerank.open_rows(tmp_path / "0.parquet", "y") as rows:
        assert next(iter(rows.blocks())).X.dtype == np.float32


def test_labels_as_numbers_and_as_strings_are_an_error(made, tmp_path):
    X, y, _ = made
    pq.write_table(table(X, y), tmp_path / "0.parquet")
    pq.write_table(table(X, y.astype(str)), tmp_path / "1.parquet")
    with (
        pytest.raises(DataFileError, match=r"2 files\): labels are strings .* '[01]', and numbers"),
        forerank.open_rows(str(tmp_path / "*.parquet"), "y") as rows,
    ):
        PairwiseRanker().fit(rows)


def test_a_label_that_the_first_read_did_not_have_is_an_error():
    labels = Labels()
    labels.codes(np.array(["a", "b"]), "the stream")
    again = Labels(labels)
    assert again.codes(np.array(["b", "a"]), "the stream").tolist() == [1, 0]
    with pytest.raises(DataFileError, match=r"label 'c' was not there at the first read"):
        again.codes(np.array(["a", "c"]), "the stream")


@pytest.mark.parametrize("kind", ["float64", "float32", "Int64", "uint16"])
def test_groups_of_different_types_are_one_group(made, tmp_path, kind):
    """Whole numbers that a file has in another type: the group at its border goes on, and groups
    that are in two places are found.
    """
    X, y, _ = made
    half, q = N // 2, np.arange(N) // 40
    frame = pa.Table.to_pandas(table(X, y, q=q))
    rows = [frame[:half], frame[half:].astype({"q": kind})]
    for k, part in enumerate(rows):
        part.to_parquet(tmp_path / f"{k}.parquet")
    path = str(tmp_path / "*.parquet")
    ranker = PairwiseRanker(alpha=1e-3, tol=1e-10)
    with forerank.open_rows(path, "y", group="q") as opened:
        streamed = ranker.fit(opened).coef_.copy()
        assert opened.scan.n_groups == q.max() + 1
    np.testing.assert_allclose(streamed, ranker.fit(X, y, qid=q).coef_, rtol=0, atol=1e-9)
    rows[1].iloc[::-1].assign(q=(q[half:] - 10).astype(float)).to_parquet(tmp_path / "1.parquet")
    with (
        pytest.raises(DataFileError, match="rows of 11 groups are not next to each other"),
        forerank.open_rows(path, "y", group="q") as opened,
    ):
        ranker.fit(opened)


def test_groups_as_numbers_and_as_strings_are_an_error(made, tmp_path):
    X, y, _ = made
    q = np.arange(N) // 50
    pq.write_table(table(X, y, q=q), tmp_path / "0.parquet")
    pq.write_table(table(X, y, q=q.astype(str)), tmp_path / "1.parquet")
    with (
        pytest.raises(DataFileError, match=r"groups are strings .* such as '29' and then '0'"),
        forerank.open_rows(str(tmp_path / "*.parquet"), "y", group="q") as rows,
    ):
        PairwiseRanker().fit(rows)


def test_hashes_of_group_labels_do_not_depend_on_their_type():
    numbers = np.array([0, 1, 7, 2**52])
    expected = group_hashes(numbers)
    for kind in (float, np.uint64):
        np.testing.assert_array_equal(group_hashes(numbers.astype(kind)), expected)
    found = group_hashes(np.array([0.5, 1.0, -3.0, 1e300]))
    assert found[1] == expected[1]
    assert np.unique(found).size == 4
    assert found[2] == group_hashes(np.array([-3]))[0]
    signed = np.array([-128, -1, 0, 7])
    expected = group_hashes(signed)
    for kind in (np.int8, np.int16, np.int32, np.float32, float):
        np.testing.assert_array_equal(group_hashes(signed.astype(kind)), expected)
    assert group_hashes(np.array([1.5], np.float32)) == group_hashes(np.array([1.5]))


def test_negative_groups_of_files_with_other_integers(made, tmp_path):
    X, y, _ = made
    half = np.repeat([-1, 3], N // 2)

    def write(second):
        files = [(half, np.int8), (second, np.int64)]
        for k, (q, kind) in enumerate(files):
            pq.write_table(table(X, y, q=q.astype(kind)), tmp_path / f"{k}.parquet")
        return forerank.open_rows(str(tmp_path / "*.parquet"), "y", group="q")

    with write(np.repeat([255, 4], N // 2)) as rows:  # not the group whose bits are those of -1
        assert rows.n_rows == 2 * N
    with (
        write(np.repeat([4, -1], N // 2)) as rows,
        pytest.raises(DataFileError, match="rows of 1 group are not next to each other"),
    ):
        PairwiseRanker().fit(rows)


def test_words_after_the_first_rows_are_an_error_with_a_remedy(made, tmp_path):
    X, y, _ = made
    pq.write_table(table(X, y), tmp_path / "0.parquet")
    pq.write_table(table(np.full(X.shape, "word"), y), tmp_path / "1.parquet")
    with (
        pytest.raises(DataFileError, match=r"'c0' has values that are not numbers; .*prepare=True"),
        forerank.open_rows(str(tmp_path / "*.parquet"), "y") as rows,
    ):
        PairwiseRanker().fit(rows)


def test_the_row_and_column_of_a_value_that_is_not_finite():
    X = sp.csr_matrix(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, np.inf]]))
    for matrix in (X, X.toarray()):
        maker = BlockMaker(Labels(), 10**6, "rows.csv", ["a", "b", "c"], grouped=False)
        with pytest.raises(DataFileError, match=r"row 3 .* column 'c'; fill or remove it"):
            list(maker.add(Batch(matrix, np.array([0, 1, 0]))))
    large = np.full((4, 2), 3e38, dtype=np.float32)  # whose sum float32 does not have
    maker = BlockMaker(Labels(), 1, "rows.csv", ["a", "b"], grouped=False)
    assert sum(rows.n_rows for rows in maker.add(Batch(large, np.array([0, 1, 0, 1])))) == 4
    with pytest.raises(DataFileError, match=r"row 6 has the weight -1; weights must be finite"):
        list(maker.add(Batch(large[:2], np.array([0, 1]), np.array([1.0, -1.0]))))


def test_a_group_of_many_blocks_is_joined_once(monkeypatch):
    joined = []

    def counted(blocks, original=row_blocks._joined):
        joined.append(len(blocks))
        return original(blocks)

    monkeypatch.setattr(row_blocks, "_joined", counted)
    maker = BlockMaker(Labels(), 100, "rows.csv", ["a"], grouped=True)
    X, y = np.arange(200.0).reshape(-1, 1), np.arange(200) % 2
    group = np.repeat([1, 2, 3], [15, 170, 15])
    blocks = []
    for rows in (slice(k, k + 10) for k in range(0, 200, 10)):
        blocks += list(maker.add(Batch(X[rows], y[rows], None, group[rows])))
    blocks += list(maker.rest())
    assert [block.n_rows for block in blocks] == [15, 170, 15]
    np.testing.assert_array_equal(np.concatenate([block.X for block in blocks]), X)
    assert max(joined) >= 17
    assert len(joined) <= 4


@pytest.mark.parametrize("kind", ["parquet", "feather", "stream"])
def test_batches_of_wide_tables_have_fewer_rows(tmp_path, monkeypatch, kind):
    """Whatever rows a record batch has: here all of them."""
    monkeypatch.setattr(readers, "_BATCH_BYTES", 300 * 8 * 40)
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((2_000, 40)), rng.integers(0, 2, 2_000)
    data, path = table(X, y), tmp_path / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(data, path)
    elif kind == "feather":
        pa.feather.write_feather(data, path, chunksize=2_000)
    with forerank.open_rows(data if kind == "stream" else path, "y") as rows:
        sizes = [batch.labels.size for batch in rows._source.batches()]
        assert max(sizes) <= 300
        assert sum(sizes) == 2_000
        read = np.concatenate([block.X.copy() for block in rows.blocks()])
    np.testing.assert_array_equal(read, X)


def test_the_sample_of_many_columns_takes_more_of_the_memory():
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((4_000, 100)), rng.integers(0, 2, 4_000)
    for memory, size in (("8MB", 2_000), ("4MB", 1_250), ("64MB", 4_000)):
        with forerank.open_rows(table(X, y), "y", memory=memory) as rows:
            assert 0.3 * size < rows.sample()[0].shape[0] <= size


# --- arguments ---


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"delimiter": ";"}, "delimiter does not apply"),
        ({"encoding": "cp1252"}, "encoding does not apply"),
        ({"columns": "c0"}, r"columns='c0' is a string; give a list of names"),
        ({"drop": "c0"}, r"drop='c0' is a string; give a list of names"),
        ({"columns": []}, "no column is left for X"),
        ({"columns": ["c0", "y"]}, "'y' is in columns and the target"),
        ({"columns": ["c0", "c1"], "drop": ["c1"]}, "'c1' is in columns and in drop"),
        ({"target": 0}, "target is of type int; .* name of one of its columns"),
        ({"target": np.zeros(N)}, "target is of type ndarray"),
        ({"group": 1}, "group is of type int"),
        ({"memory": "inf"}, "is not a size in bytes"),
    ],
)
def test_arguments_that_do_not_fit_a_table(made, tmp_path, options, problem):
    X, y, _ = made
    pq.write_table(table(X, y), tmp_path / "rows.parquet")
    with pytest.raises((ValueError, TypeError), match=problem):
        forerank.open_rows(tmp_path / "rows.parquet", **{"target": "y", **options})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"drop": ["x0"]}, "drop does not apply"),
        ({"columns": ["x0"]}, "columns does not apply"),
        ({"format": "parquet"}, "format does not apply"),
        ({"target": 3}, "there is no column 3; a number from 0 to 2 is expected"),
        ({"target": "none.npy"}, "none.npy: there is no such file"),
        ({"target": np.where(np.arange(N) == 4, np.nan, 1.0)}, "the label of row 5 is missing"),
        ({"group": np.array([None] * N)}, "the group of row 1 is missing"),
        (
            {"target": np.array(["a", 1] * (N // 2), object)},
            "labels are strings in some .* 'a', an",
        ),
        ({"group": np.array([1, "a"] * (N // 2), object)}, "groups are strings in some .* and not"),
        ({"weight": np.full(N, "x")}, "weights are not numbers; give each row one"),
    ],
)
def test_arguments_that_do_not_fit_a_npy_file(made, tmp_path, options, problem):
    X, y, _ = made
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(DataFileError, match=problem):
        PairwiseRanker().fit(forerank.open_rows(tmp_path / "X.npy", **{"target": y, **options}))


def test_numbers_of_numpy_and_files_of_labels(made, tmp_path):
    X, y, _ = made
    np.save(tmp_path / "X.npy", np.column_stack([y, X]).astype(np.float32))
    rows = forerank.open_rows(tmp_path / "X.npy", np.int64(0))
    assert rows.columns == ["x1", "x2", "x3"]
    np.save(tmp_path / "y.npy", y)
    rows = forerank.open_rows(tmp_path / "X.npy", tmp_path / "y.npy")
    PairwiseRanker().fit(rows)
    np.save(tmp_path / "y.npy", np.append(y[:-1], 7))
    with pytest.raises(DataFileError, match=r"y.npy: changed between two reads"):
        PairwiseRanker().fit(rows)
    (tmp_path / "y.npy").write_bytes(b"1, 0, 1")
    with pytest.raises(DataFileError, match=r"y.npy: not a .npy file"):
        forerank.open_rows(tmp_path / "X.npy", tmp_path / "y.npy")


def test_paths_that_are_no_files_and_streams_that_end(made, tmp_path):
    X, y, _ = made
    pq.write_table(table(X, y), tmp_path / "rows.parquet")
    with pytest.raises(DataFileError, match=r"this is a directory; give a pattern such as '.*\*"):
        forerank.open_rows(tmp_path, "y")
    with pytest.raises(DataFileError, match="given twice"):
        forerank.open_rows([tmp_path / "rows.parquet", str(tmp_path / "*.parquet")], "y")
    with pytest.raises(ValueError, match="list of files is empty"):
        forerank.open_rows([], "y")
    with pytest.raises(DataFileError, match="can be read only once; give its table"):
        forerank.open_rows(table(X, y).to_reader(), "y")
    with pytest.raises(DataFileError, match="format does not apply"):
        forerank.open_rows(table(X, y), "y", format="csv")
    with pytest.raises(TypeError, match=r"given as ndarray; a path, a pattern"):
        forerank.open_rows(X, "y")
    with pytest.raises(TypeError, match=r"function returned NoneType"):
        forerank.open_rows(lambda: None, "y")
    same = pa.Table.from_arrays([pa.array(y)] * 3, names=["a", "a", "y"])
    with pytest.raises(DataFileError, match="more than one column is called 'a'"):
        forerank.open_rows(same, "y")
    words = table(X, y, w=np.full(N, "heavy"))
    with pytest.raises(DataFileError, match="'w' has values that are not numbers; give weights"):
        PairwiseRanker().fit(forerank.open_rows(words, "y", weight="w"))
    with pytest.raises(ValueError, match="is not a size in bytes"):
        parse_bytes("infGB")


@pytest.mark.parametrize("prepare", [False, True])
def test_a_stream_without_rows_at_the_second_read(made, prepare):
    X, y, _ = made
    parts = iter([table(X, y)])
    rows = forerank.open_rows(lambda: next(parts, table(X, y)[:0]), "y", prepare=prepare)
    with pytest.raises(DataFileError, match="rows at the first read and has none now; give a"):
        PairwiseRanker().fit(rows)
    with pytest.raises(DataFileError, match="there are no rows"):
        PairwiseRanker().fit(forerank.open_rows(table(X, y)[:0], "y"))


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_a_column_without_a_name(made, tmp_path, suffix):
    X, y, _ = made
    columns = pa.Table.from_arrays([*map(pa.array, X.T), pa.array(y)], names=["a", "b", "", "y"])
    path = tmp_path / f"rows.{suffix}"
    (pq.write_table if suffix == "parquet" else pa.feather.write_feather)(columns, path)
    with forerank.open_rows(path, "y", columns=["column 3 (no name)", "a"]) as rows:
        assert rows.columns == ["column 3 (no name)", "a"]
        read = np.concatenate([block.X for block in rows.blocks()])
    np.testing.assert_array_equal(read, X[:, [2, 0]])


# --- disks and changes ---


@pytest.fixture
def small_files(tmp_path, monkeypatch):
    """A function after which no file may have more than so many bytes, as on a full disk; and the
    directory of temporary files.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
def test_a_full_disk_under_the_copy_of_the_rows(made, tmp_path, small_files, storage):
    X, y, _ = made
    rng = np.random.default_rng(5)
    words = np.array([f"w{k}" for k in range(200)])
    texts = [" ".join(rng.choice(words, 12)) for _ in range(N)]
    rows = table(X, y) if storage == "dense" else pa.table({"text": texts, "y": y})
    ranker, lines = PairwiseRanker("logistic", alpha=1e-2, tol=1e-8), []
    with forerank.open_rows(rows, "y", memory="1GB") as opened:
        expected = ranker.fit(opened).coef_.copy()
        assert sp.issparse(next(iter(opened.blocks())).X) == (storage == "sparse")
    small_files(10_000)
    with forerank.open_rows(rows, "y", memory="1GB", say=lines.append) as opened:
        with pytest.warns(UserWarning, match=r"no room for a copy .* set TMPDIR to a larger"):
            found = ranker.fit(opened).coef_
        assert any("no room for a copy of the rows" in line for line in lines)
        assert list(tmp_path.iterdir()) == []
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_a_copy_of_the_process_leaves_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    first, second = SpoolDirectory(), SpoolDirectory()
    first.close()
    with monkeypatch.context() as patch:
        patch.setattr("os.getpid", lambda: -1)
        second.close()
    assert list(tmp_path.iterdir()) == [second.path]


@pytest.mark.parametrize("spooled", [True, False])
def test_a_file_that_changes_under_the_last_pass_is_an_error(made, tmp_path, small_files, spooled):
    """Without a copy of the rows; with one the rows are those of the scan."""
    X, y, _ = made
    path = tmp_path / "rows.parquet"
    pq.write_table(table(X, y), path)
    if not spooled:
        small_files(10_000)
    with forerank.open_rows(path, "y") as opened, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        blocks = opened.blocks()
        assert next(blocks).n_rows
        os.utime(path, ns=(0, 0))
        if spooled:
            assert not list(blocks)
            return
        with pytest.raises(DataFileError, match="changed between two reads"):
            list(blocks)


def test_a_file_that_changes_under_the_scan_is_an_error(made, tmp_path):
    X, y, _ = made
    rows = table(X, y).append_column("job", pa.array(["cook", "clerk"] * (N // 2)))
    pq.write_table(rows, tmp_path / "rows.parquet")

    def change(line):
        if line == "reading a sample of the rows":
            pq.write_table(rows.slice(10), tmp_path / "rows.parquet")

    with (
        forerank.open_rows(tmp_path / "rows.parquet", "y", say=change) as opened,
        pytest.raises(DataFileError, match=r"rows.parquet: changed between two reads"),
    ):
        PairwiseRanker().fit(opened)
