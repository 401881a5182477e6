"""Rows that are read block by block: the fits of rows in memory, from every kind of file, and clear
errors that leave nothing behind.
"""

import errno
import gzip
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import forerank
from forerank import BoostedRanker, PairwiseRanker, PointwiseRanker, Ranker, TopPush
from forerank.data.row_blocks import BlockWriter
from forerank.data.row_stream import parse_bytes
from forerank.exceptions import DataFileError

N, D = 6_000, 5


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((N, D)) * [1.0, 20.0, 0.05, 1.0, 1.0] + 2.0).astype(np.float32)
    X[:, 3] = rng.uniform(size=N) < 0.01
    z = X @ np.array([0.5, 0.02, 3.0, 1.0, -0.4]) + rng.standard_normal(N)
    grade = np.digitize(z, np.quantile(z, [0.5, 0.8, 0.95]))
    weight = rng.uniform(0.0, 2.0, N) * (rng.uniform(size=N) > 0.1)
    group = np.sort(rng.integers(0, 60, N))
    return X, grade, weight, group


@pytest.fixture
def spools(tmp_path, monkeypatch):
    """A directory for temporary files, and the spools in it."""
    directory = tmp_path / "spools"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))
    return lambda: sorted(path.name for path in directory.iterdir())


def table(made, target):
    X, _, weight, group = made
    columns = {f"c{k}": X[:, k] for k in range(D)}
    return pa.table({**columns, "y": target, "w": weight, "q": group})


def write_parquet(path, rows, n_files=2):
    size = -(-rows.num_rows // n_files)
    for k in range(n_files):
        part = rows.slice(k * size, size)
        pq.write_table(part, path / f"part{k}.parquet", row_group_size=1_100)
    return str(path / "part*.parquet")


def assert_same(ranker, other, tol=1e-8):
    scale = np.abs(other.coef_).max()
    np.testing.assert_allclose(ranker.coef_, other.coef_, atol=tol * scale, rtol=0)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "exponential", "squared"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_pairs_have_the_weights_of_a_fit_in_memory(
    made, tmp_path, spools, loss, weighted, graded, grouped
):
    X, grade, weight, group = made
    y = grade if graded else np.where(grade > 1, "yes", "no")
    path = write_parquet(tmp_path, table(made, y))
    names = {"weight": "w" if weighted else None, "group": "q" if grouped else None}
    drop = [name for name, used in (("w", weighted), ("q", grouped)) if not used]
    ranker = PairwiseRanker(loss, alpha=1e-3, tol=1e-10, graph="order" if graded else None)
    with forerank.open_rows(path, "y", **names, drop=drop, memory="2MB") as rows:
        streamed = forerank.PairwiseRanker(**ranker.get_params()).fit(rows)
        assert rows.n_rows == N
        assert streamed.optimality_ <= 1e-10
    ranker.fit(X, y, weight if weighted else None, group if grouped else None)
    assert_same(streamed, ranker)
    np.testing.assert_allclose(streamed.intercept_, ranker.intercept_, atol=1e-7)
    np.testing.assert_allclose(streamed.thresholds_, ranker.thresholds_, atol=1e-7)
    assert streamed.wmw_bound_ == pytest.approx(ranker.wmw_bound_, rel=1e-8)
    frame = pd.DataFrame(X, columns=[f"c{k}" for k in range(D)])
    assert (streamed.predict(frame) == ranker.predict(X)).mean() > 0.999
    assert spools() == []


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "exponential", "squared"])
@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"fit_intercept": False}])
def test_points_have_the_weights_of_a_fit_in_memory(made, tmp_path, spools, loss, options):
    X, grade, weight, _ = made
    path = write_parquet(tmp_path, table(made, grade > 1))
    rows = forerank.open_rows(path, "y", weight="w", drop=["q"], memory="2MB")
    streamed = PointwiseRanker(loss, alpha=1e-3, tol=1e-10, **options).fit(rows)
    ranker = PointwiseRanker(loss, alpha=1e-3, tol=1e-10, **options).fit(X, grade > 1, weight)
    assert_same(streamed, ranker)
    np.testing.assert_allclose(streamed.intercept_, ranker.intercept_, atol=1e-8)
    rows.close()
    assert spools() == []


def files_of_every_kind(made, folder):
    X, grade, _, _ = made
    y = (grade > 1).astype(np.int8)
    rows = table(made, y)
    # 17 digits, so that CSV has the numbers of the others.
    exact = rows.cast(pa.schema([pa.field(f.name, pa.float64() if f.type == pa.float32()
                                          else f.type) for f in rows.schema]))  # fmt: skip
    pa.csv.write_csv(exact, folder / "rows.csv")
    (folder / "rows.csv.gz").write_bytes(gzip.compress((folder / "rows.csv").read_bytes()))
    pa.feather.write_feather(rows, folder / "rows.feather")
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    np.save(folder / "all.npy", np.column_stack([X[:, :2], y, X[:, 2:]]).astype(np.float32))
    drop = {"drop": ["w", "q"]}
    return {
        "parquet": (write_parquet(folder, rows), "y", drop),
        "csv": (folder / "rows.csv", "y", drop),
        "csv.gz": ([folder / "rows.csv.gz"], "y", drop),
        "feather": (str(folder / "rows.feather"), "y", drop),
        "npy": (folder / "X.npy", folder / "y.npy", {}),
        "npy and labels": (folder / "X.npy", y, {}),
        "column of npy": (folder / "all.npy", 2, {}),
        "arrow": (rows, "y", drop),
        "reopened": (lambda: rows.to_reader(500), "y", drop),
    }


def test_every_source_has_the_same_fit(made, tmp_path, spools):
    X, grade, _, _ = made
    expected = PairwiseRanker(tol=1e-9).fit(X, grade > 1)
    for data, target, options in files_of_every_kind(made, tmp_path).values():
        rows = forerank.open_rows(data, target, memory="2MB", **options)
        assert_same(PairwiseRanker(tol=1e-9).fit(rows), expected, tol=1e-7)
        assert rows.bytes_read > 0
        rows.close()
    assert spools() == []


def test_scores_far_apart_and_a_rare_class(tmp_path, spools):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((4_000, 3)) * 200.0
    y = np.zeros(4_000, dtype=int)
    y[rng.choice(np.flatnonzero(X[:, 0] > 0), 12, replace=False)] = 1
    np.save(tmp_path / "X.npy", X)
    rows = forerank.open_rows(tmp_path / "X.npy", y, memory="1MiB")
    for alpha in (1e-3, 1e-9):
        streamed = PairwiseRanker(alpha=alpha, tol=1e-9).fit(rows)
        assert_same(streamed, PairwiseRanker(alpha=alpha, tol=1e-9).fit(X, y), tol=1e-6)


def test_a_second_fit_reads_the_spool_and_a_warm_start_few_times(made, tmp_path, spools):
    path = write_parquet(tmp_path, table(made, made[1] > 1))
    rows = forerank.open_rows(path, "y", drop=["w", "q"])
    ranker = PairwiseRanker(alpha=1e-3, warm_start=True).fit(rows)
    assert len(spools()) == 1
    before = rows.n_passes
    ranker.fit(rows)
    assert ranker.n_iter_ == 0
    # Two passes for the gradient, two for the intercept.
    assert rows.n_passes - before <= 4
    rows.close()


def test_an_interrupt_leaves_the_latest_weights(made, tmp_path, spools):
    path = write_parquet(tmp_path, table(made, made[1] > 1))
    rows = forerank.open_rows(path, "y", drop=["w", "q"])
    passes = []

    def over_parts(function):
        passes.append(1)
        if len(passes) > 4:
            raise KeyboardInterrupt
        return type(rows).over_parts(rows, function)

    rows.over_parts = over_parts
    ranker = PairwiseRanker(alpha=1e-6, tol=1e-13)
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(rows)
    assert ranker.coef_.any()
    rows.close()
    assert spools() == []


# --- errors ---


def test_a_changed_file_is_an_error(made, tmp_path, spools):
    X, grade, _, _ = made
    np.save(tmp_path / "X.npy", X)
    rows = forerank.open_rows(tmp_path / "X.npy", grade > 1)
    assert rows.n_rows == N
    np.save(tmp_path / "X.npy", X + 1)
    with pytest.raises(DataFileError, match="changed between two reads"):
        PairwiseRanker().fit(rows)
    rows.close()
    (tmp_path / "X.npy").unlink()
    with pytest.raises(DataFileError, match="removed between two reads"):
        PairwiseRanker().fit(rows)
    assert spools() == []


def test_a_file_that_changed_after_a_fit_is_an_error_of_the_next(made, tmp_path, spools):
    path = write_parquet(tmp_path, table(made, made[1] > 1), n_files=2)
    with forerank.open_rows(path, "y", drop=["w", "q"]) as rows:
        ranker = PairwiseRanker().fit(rows)
        coef, part = ranker.coef_.copy(), tmp_path / "part0.parquet"
        pq.write_table(pq.read_table(part).slice(5), part)
        for _ in range(2):
            with pytest.raises(DataFileError, match=r"part0.parquet: changed .* a new open_rows"):
                ranker.fit(rows)
    np.testing.assert_array_equal(ranker.coef_, coef)
    assert spools() == []
    with forerank.open_rows(path, "y", drop=["w", "q"]) as rows:
        assert rows.n_rows == N - 5
        assert not np.array_equal(ranker.fit(rows).coef_, coef)


def test_a_truncated_file_is_an_error(made, tmp_path, spools):
    path = write_parquet(tmp_path, table(made, made[1] > 1), n_files=2)
    whole = (tmp_path / "part1.parquet").read_bytes()
    (tmp_path / "part1.parquet").write_bytes(whole[: len(whole) // 2])
    rows = forerank.open_rows(path, "y", drop=["w", "q"])
    with pytest.raises(DataFileError, match=r"part1.parquet: cannot be read as Parquet"):
        PairwiseRanker().fit(rows)
    np.save(tmp_path / "X.npy", made[0])
    whole = (tmp_path / "X.npy").read_bytes()
    (tmp_path / "X.npy").write_bytes(whole[:-100])
    with pytest.raises(DataFileError, match="truncated"):
        forerank.open_rows(tmp_path / "X.npy", made[1])
    assert spools() == []


def test_without_room_for_a_spool_the_files_are_read_again(made, tmp_path, spools, monkeypatch):
    X, grade, _, group = made
    path = write_parquet(tmp_path, table(made, grade > 1))
    written, lines = [], []
    original = BlockWriter.write

    def write(self, rows):
        written.append(rows)
        if len(written) > 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        original(self, rows)

    monkeypatch.setattr(BlockWriter, "write", write)
    rows = forerank.open_rows(path, "y", group="q", drop=["w"], memory="1MiB", say=lines.append)
    with pytest.warns(UserWarning, match="the files are read again at every pass"):
        streamed = PairwiseRanker(tol=1e-9, alpha=1e-3).fit(rows)
    assert any("no room" in line for line in lines)
    assert spools() == []
    expected = PairwiseRanker(tol=1e-9, alpha=1e-3).fit(X, grade > 1, qid=group)
    assert_same(streamed, expected, tol=1e-7)
    part = tmp_path / "part0.parquet"
    pq.write_table(pq.read_table(part).slice(5), part)
    with pytest.raises(DataFileError, match="changed between two reads"):
        PairwiseRanker().fit(rows)


def test_another_error_of_the_disk_is_raised(made, tmp_path, spools, monkeypatch):
    path = write_parquet(tmp_path, table(made, made[1] > 1))

    def write(self, rows):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(BlockWriter, "write", write)
    rows = forerank.open_rows(path, "y", drop=["w", "q"])
    with pytest.raises(OSError, match="Input/output"):
        PairwiseRanker().fit(rows)
    assert spools() == []


FIT_FOR_EVER = """
import sys, time
import forerank
rows = forerank.open_rows(sys.argv[1], "y", drop=["w", "q"])
print(rows.n_rows, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_ended_process_leaves_nothing_behind(made, tmp_path, spools, how):
    path = write_parquet(tmp_path, table(made, made[1] > 1))
    environment = os.environ | {"TMPDIR": tempfile.gettempdir()}
    process = subprocess.Popen(
        [sys.executable, "-c", FIT_FOR_EVER, path],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    assert process.stdout.readline().strip() == str(N).encode()
    assert len(spools()) == 1
    process.send_signal(how)
    process.wait(timeout=60)
    process.stdout.close()
    assert len(spools()) == (how == signal.SIGKILL)
    rows = forerank.open_rows(path, "y", drop=["w", "q"])
    assert rows.n_rows == N
    assert len(spools()) == 1
    assert f"-{os.getpid()}-" in spools()[0]
    rows.close()
    assert spools() == []


def write_small(folder, **columns):
    pq.write_table(pa.table(columns), folder / "small.parquet")
    return folder / "small.parquet"


@pytest.mark.parametrize(
    ("columns", "options", "problem"),
    [
        (
            {"a": [1.0, None, 2.0], "y": [0, 1, 0]},
            {"prepare": False},
            r"row 2 has a missing .* column 'a'; fill or remove it, or .*prepare=True",
        ),
        ({"a": [1.0, np.inf, 2.0], "y": [0, 1, 0]}, {}, r"row 2 has a .*infinite .* column 'a'"),
        ({"a": [1.0, 3.0, 2.0], "y": [0, None, 0]}, {}, r"label column 'y' is empty in row 2"),
        ({"a": [1.0, 3.0], "y": [0, 1], "w": [1.0, -1.0]}, {"weight": "w"}, "not negative"),
        (
            {"a": [1.0, 3.0, 4.0], "y": [0, 1, 1], "q": ["b", "a", "b"]},
            {"group": "q"},
            "sort the files by the group column",
        ),
        ({"a": [1.0, 3.0], "y": [1, 1]}, {}, "one class only"),
        ({"a": [1.0, 3.0], "y": [0, 1], "q": [0, 1]}, {"group": "q"}, "no pairs"),
        ({"a": [1.0, 3.0, 4.0], "y": [0, 1, 2]}, {}, 'graph="order"'),
        ({"a": [1.0] * 300, "y": list(range(300))}, {}, "more than 256 different values"),
    ],
)
def test_rows_that_cannot_be_fitted(tmp_path, spools, columns, options, problem):
    path = write_small(tmp_path, **columns)
    rows = forerank.open_rows(path, "y", **options)
    with pytest.raises(ValueError, match=problem):
        PairwiseRanker().fit(rows)
    rows.close()
    assert spools() == []


def test_sources_that_cannot_be_opened(tmp_path, made):
    with pytest.raises(DataFileError, match="no file matches"):
        forerank.open_rows(tmp_path / "none*.parquet", "y")
    path = write_small(tmp_path, a=[1.0, 2.0], b=["x", "z"], y=[0, 1])
    with pytest.raises(DataFileError, match=r"no column 'Y'; did you mean 'y'"):
        forerank.open_rows(path, "Y")
    with pytest.raises(DataFileError, match="'b' does not hold numbers"):
        forerank.open_rows(path, "y", prepare=False)
    with pytest.raises(DataFileError, match="no column is left"):
        forerank.open_rows(path, "y", drop=["a", "b"])
    np.save(tmp_path / "F.npy", np.asfortranarray(made[0]))
    with pytest.raises(DataFileError, match="C order"):
        forerank.open_rows(tmp_path / "F.npy", made[1])
    np.save(tmp_path / "X.npy", made[0])
    with pytest.raises(DataFileError, match="are not prepared; write it as Parquet"):
        forerank.open_rows(tmp_path / "X.npy", made[1], prepare=True)
    with pytest.raises(DataFileError, match="labels, groups or weights of shape"):
        forerank.open_rows(tmp_path / "X.npy", made[1][:5])
    (tmp_path / "rows.svm").write_text("1 1:2\n")
    with pytest.raises(DataFileError, match="cannot be read block by block"):
        forerank.open_rows(tmp_path / "rows.svm", "y")
    with pytest.raises(DataFileError, match=r"one .npy file is expected"):
        forerank.open_rows([tmp_path / "X.npy", path], "y")
    for size in ("4 GHz", "12", "many"):
        with pytest.raises(ValueError, match=r"memory|size in bytes"):
            forerank.open_rows(path, "y", drop=["b"], memory=size)
    assert parse_bytes(2**21) == 2**21


def test_rankers_that_need_rows_in_memory_say_what_to_do(made, tmp_path, spools):
    X, grade, _, _ = made
    np.save(tmp_path / "X.npy", X)
    rows = forerank.open_rows(tmp_path / "X.npy", grade > 1)
    for ranker in (TopPush(), BoostedRanker(), Ranker()):
        with pytest.raises(ValueError, match=r"needs its rows in memory; fit PairwiseRanker"):
            ranker.fit(rows)
    with pytest.raises(ValueError, match="pass the rows alone"):
        PairwiseRanker().fit(rows, grade > 1)
    sampled, y, weight, qid = rows.sample()
    assert sampled.shape == (N, D)
    assert (y.sum(), weight.size, qid) == ((grade > 1).sum(), N, None)
    rows.close()


def test_progress_names_bytes_and_the_time_to_go(made, tmp_path, spools, monkeypatch):
    from forerank.data import row_stream

    monkeypatch.setattr(row_stream, "_SECONDS_PER_LINE", 0.0)
    lines = []
    path = write_parquet(tmp_path, table(made, made[1] > 1))
    rows = forerank.open_rows(path, "y", drop=["w", "q"], say=lines.append)
    PointwiseRanker().fit(rows)
    rows.close()
    assert any(line.startswith("scan: ") for line in lines)
    assert any(line.startswith("pass 1: ") and "GB, about" in line for line in lines)


def test_the_spool_is_below_the_temporary_directory(made, tmp_path, spools):
    path = write_parquet(tmp_path, table(made, made[1] > 1))
    with forerank.open_rows(path, "y", drop=["w", "q"]) as rows:
        assert rows.classes.tolist() == [False, True]
        (name,) = spools()
        spool = Path(tempfile.gettempdir()) / name
        assert (spool / "rows").stat().st_size == N * D * 4  # float32, as in the files
        assert spool.stat().st_mode & 0o077 == 0  # no one else can read the rows
