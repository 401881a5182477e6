"""Streamed rows with words, categories, dates and missing values: the columns of `forerank fit`,
the fits of rows in memory.
"""

import gzip
import pickle
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import forerank
from forerank import PairwiseRanker, PointwiseRanker
from forerank.data.frames import as_frame
from forerank.data.planned_columns import PlannedColumns
from forerank.exceptions import DataFileError
from forerank.models.tables import model_frame
from forerank.workflows.fit import fit

N = 4_000


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    words = ["red", "blue", "green", "cat", "dog", "house", "tree"]
    out = pd.DataFrame(
        {
            "age": rng.normal(40, 10, N),
            "children": rng.integers(0, 4, N),
            "job": rng.choice(["clerk", "cook", "driver", None], N),
            "member": rng.uniform(size=N) < 0.3,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "D"),
            "text": [" ".join(rng.choice(words, 6)) for _ in range(N)],
            "country": "fr",
            "nothing": np.full(N, np.nan),
            "w": rng.uniform(0.5, 2.0, N),
            "q": np.sort(rng.integers(0, 50, N)),
        }
    )
    out.loc[::50, "age"] = np.nan
    z = out["age"].fillna(40) / 10 + (out["job"] == "cook") + out["member"]
    out["y"] = np.where(z + rng.logistic(size=N) > 5.0, "yes", "no")
    return out


def write(frame, folder, n_files=3):
    for k, part in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        frame.iloc[part].to_parquet(folder / f"part{k}.parquet", index=False, row_group_size=700)
    return str(folder / "part*.parquet")


def assert_same(ranker, other, tol=1e-6):
    scale = np.abs(other.coef_).max()
    np.testing.assert_allclose(ranker.coef_, other.coef_, atol=tol * scale, rtol=0)


SPECIAL = ["y", "w", "q"]


@pytest.mark.parametrize("cls", [PairwiseRanker, PointwiseRanker])
@pytest.mark.parametrize("memory", ["1MB", "1GB"])  # of a sample, and of all rows
def test_the_fit_is_that_of_the_prepared_columns_in_memory(frame, tmp_path, cls, memory):
    path, drop = write(frame, tmp_path), ["w", "q"]
    ranker = cls(alpha=1e-3, tol=1e-8)
    with forerank.open_rows(path, "y", drop=drop, memory=memory) as rows:
        streamed = clone(ranker).fit(rows)
    X = rows.transformer.transform(frame)
    assert_same(streamed, ranker.fit(X, frame["y"]))
    assert rows.columns == rows.transformer.get_feature_names_out().tolist()
    assert {"age", "since", "job=cook", "job=(missing)", "member=true"} < set(rows.columns)
    assert not {"country=fr", "nothing", *SPECIAL} & set(rows.columns)
    model = make_pipeline(rows.transformer, streamed)
    np.testing.assert_allclose(
        model.decision_function(frame), X @ streamed.coef_.ravel() + streamed.intercept_
    )
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(frame) == ranker.predict(X)).all()


def test_the_columns_are_those_of_forerank_fit(frame, tmp_path):
    path, drop = write(frame, tmp_path), ["w", "q"]
    # Rows that fit into memory are their own sample.
    model = fit(path, "y", drop=drop, ranker="PairwiseRanker", check=0.0)
    rows = forerank.open_rows(path, "y", drop=drop)
    expected = model.estimator[0].transform(model_frame(model, as_frame(frame), "the table"))
    np.testing.assert_allclose(dense(rows.transformer.transform(frame)), dense(expected))
    assert rows.columns == model.estimator[0].get_feature_names_out().tolist()
    assert "nothing" in rows.transformer.plan_.left_out


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def test_groups_weights_and_columns(frame, tmp_path):
    path = write(frame, tmp_path)
    names = ["age", "job"]
    rows = forerank.open_rows(path, "y", group="q", weight="w", columns=names, memory="1MB")
    ranker = PairwiseRanker(alpha=1e-3, tol=1e-8)
    streamed = clone(ranker).fit(rows)
    X = rows.transformer.transform(frame)
    assert_same(streamed, ranker.fit(X, frame["y"], frame["w"], frame["q"]))
    assert rows.transformer.feature_names_in_.tolist() == names
    first = dense(next(iter(rows.blocks())).X)
    np.testing.assert_allclose(first, dense(X)[: len(first)])  # in the order of the files
    rows.close()


def sources(frame, folder):
    frame.to_csv(folder / "rows.csv", index=False)
    (folder / "rows.csv.gz").write_bytes(gzip.compress((folder / "rows.csv").read_bytes()))
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pyarrow.feather.write_feather(table, folder / "rows.feather", chunksize=600)
    found = {
        "parquet": write(frame, folder),
        "csv": folder / "rows.csv",
        "csv.gz": folder / "rows.csv.gz",
        "feather": folder / "rows.feather",
        "arrow": table,
        "reopened": lambda: table.to_reader(500),
    }
    try:
        import polars as pl
    except ImportError:
        return found
    return {**found, "polars": pl.from_arrow(table)}


def test_every_source_has_the_same_columns_and_fit(frame, tmp_path):
    expected = PlannedColumns().fit(frame.drop(columns=SPECIAL))
    ranker = PairwiseRanker(alpha=1e-3, tol=1e-8).fit(expected.transform(frame), frame["y"])
    for data in sources(frame, tmp_path).values():
        with forerank.open_rows(data, "y", drop=["w", "q"]) as rows:
            assert_same(clone(ranker).fit(rows), ranker)
        assert rows.columns == expected.get_feature_names_out().tolist()


def test_a_dictionary_column_and_numbers_as_strings():
    rng = np.random.default_rng(2)
    colour = rng.choice(["red", "green"], N)
    price = rng.uniform(1, 5_000, N).round(2)
    y = price / 2_000 + (colour == "red") + rng.logistic(size=N) > 2
    table = pa.table({
        "colour": pa.array(colour).dictionary_encode(),
        "price": [f"${value:,.2f}" for value in price],
        "y": y,
    })  # fmt: skip
    rows = forerank.open_rows(table, "y")
    ranker = PairwiseRanker(tol=1e-8).fit(rows)
    assert rows.columns == ["price", "colour=green", "colour=red"]
    scores = make_pipeline(rows.transformer, ranker).decision_function(table.to_pandas())
    X = rows.transformer.transform(pd.DataFrame({"colour": colour, "price": price}))
    np.testing.assert_allclose(scores, ranker.decision_function(X))
    rows.close()


class Reads:
    """A table that counts how often it is opened."""

    def __init__(self, table):
        self.table, self.n = table, 0

    def __call__(self):
        self.n += 1
        return self.table.to_reader(500)


def test_numbers_are_read_as_before(frame):
    table = pa.table({"a": np.arange(N) % 7 / 2, "b": frame["member"], "y": frame["y"]})
    reads = Reads(table)
    rows = forerank.open_rows(reads, "y")
    assert rows.transformer is None
    assert rows.columns == ["a", "b"]
    ranker = PairwiseRanker().fit(rows)
    assert ranker.feature_names_in_.tolist() == ["a", "b"]
    assert reads.n == 2  # the first rows, and the scan
    rows.close()
    reads = Reads(table.append_column("job", pa.array(frame["job"])))
    rows = forerank.open_rows(reads, "y")
    assert reads.n == 1
    assert "3 columns" in repr(rows)
    assert reads.n == 1
    PairwiseRanker().fit(rows)
    assert reads.n == 3  # the sample, too
    assert rows.has_names is False
    PairwiseRanker().fit(rows)
    assert reads.n == 3
    rows.close()


def test_a_value_that_only_later_rows_have():
    n = 150_000  # more than the sample of 1 MB, and than the first block
    rng = np.random.default_rng(3)
    a, y = rng.standard_normal(n), rng.integers(0, 2, n)
    job = rng.choice(["clerk", "cook"], n).astype(object)
    job[-1], late = "astronaut", a.copy()
    late[-1] = np.nan
    blocks = pa.table({"a": a, "job": job, "y": y}).to_batches(max_chunksize=10_000)
    rows = forerank.open_rows(lambda: pa.RecordBatchReader.from_batches(blocks[0].schema, blocks),
                              "y", memory="1MB")  # fmt: skip
    PairwiseRanker().fit(rows)
    assert rows.columns == ["a", "job=clerk", "job=cook"]
    new = rows.transformer.transform(pd.DataFrame({"a": [0.0], "job": ["astronaut"]}))
    assert dense(new)[0, 1:].tolist() == [0.0, 0.0]
    rows.close()
    gaps = pa.table({"a": late, "y": y}).to_batches(max_chunksize=10_000)

    def opened():
        return pa.RecordBatchReader.from_batches(gaps[0].schema, gaps)

    with pytest.raises(DataFileError, match=r"row 150,000 has a missing .*prepare=True"):
        PairwiseRanker().fit(forerank.open_rows(opened, "y"))
    rows = forerank.open_rows(opened, "y", prepare=True, memory="1MB")
    ranker = PairwiseRanker(alpha=1e-3, tol=1e-8).fit(rows)
    X = rows.transformer.transform(pd.DataFrame({"a": late}))
    assert_same(ranker, PairwiseRanker(alpha=1e-3, tol=1e-8).fit(X, y))
    rows.close()


def test_missing_numbers_are_filled_with_the_median():
    a = [1.0, None, 2.0, 9.0, None, 3.0]
    table = pa.table({"a": a, "y": [0, 0, 0, 1, 1, 1]})
    with forerank.open_rows(table, "y") as rows:
        X = np.concatenate([block.X for block in rows.blocks()])[:, 0]
    filled = np.array([2.5 if value is None else value for value in a])
    np.testing.assert_allclose(X, (filled - filled.mean()) / filled.std())


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_an_empty_file_among_others(frame, tmp_path, kind):
    rows = frame.drop(columns=["w", "q"])
    for k, part in enumerate([rows.head(0), rows.head(1_500), rows.head(0), rows.tail(N - 1_500)]):
        if kind == "parquet":
            table = pa.Table.from_pandas(rows, preserve_index=False).schema.empty_table()
            table = pa.Table.from_pandas(part, preserve_index=False) if len(part) else table
            pq.write_table(table, tmp_path / f"{k}.parquet")
        else:
            part.to_csv(tmp_path / f"{k}.csv", index=False)
    with forerank.open_rows(tmp_path / f"*.{kind}", "y") as opened:
        ranker = PairwiseRanker(alpha=1e-3, tol=1e-8).fit(opened)
        assert opened.n_rows == N
    X = opened.transformer.transform(frame)
    assert_same(ranker, PairwiseRanker(alpha=1e-3, tol=1e-8).fit(X, frame["y"]))
    with forerank.open_rows(tmp_path / f"*.{kind}", "y", columns=["children"]) as opened:
        assert opened.transformer is None
        assert opened.n_rows == N


def test_lines_on_the_sample_and_the_columns(frame, tmp_path):
    lines = []
    with forerank.open_rows(write(frame, tmp_path), "y", drop=["q"], say=lines.append) as rows:
        assert lines == []
        assert rows.n_rows == N
    assert lines[0] == "reading a sample of the rows"
    assert any(line.startswith("left out nothing: empty") for line in lines)


def test_lines_on_a_scan_have_a_total_where_it_is_known(frame, tmp_path, monkeypatch):
    monkeypatch.setattr("forerank.data.row_stream._SECONDS_PER_LINE", 0.0)
    for data, pattern in (
        (write(frame, tmp_path), r"scan: (\S+) of \1 GB, about 0 s to go"),
        (pa.Table.from_pandas(frame), rf"scan: {N:,} rows, \S+ GB"),
    ):
        lines = []
        with forerank.open_rows(data, "y", memory="1MB", say=lines.append) as rows:
            assert rows.n_rows == N
        assert re.fullmatch(pattern, lines[-1])


def test_tables_that_cannot_be_prepared():
    empty = pa.table({"a": pa.array([], pa.string()), "y": pa.array([], pa.int64())})
    with pytest.raises(DataFileError, match="there are no rows"):
        PairwiseRanker().fit(forerank.open_rows(empty, "y"))
    constant = pa.table({"a": ["x", "x"], "y": [0, 1]})
    with pytest.raises(DataFileError, match=r"no column can be used \(left out a: the same"):
        PairwiseRanker().fit(forerank.open_rows(constant, "y"))
    with pytest.raises(DataFileError, match=r"label column 'y' is empty in row 2"):
        PairwiseRanker().fit(forerank.open_rows(pa.table({"a": ["x", "z"], "y": [0, None]}), "y"))


def test_the_transformer_alone(frame):
    X = frame.drop(columns=SPECIAL)
    columns = clone(PlannedColumns()).fit(X)
    shuffled = frame[frame.columns[::-1]]
    np.testing.assert_array_equal(
        dense(columns.transform(shuffled)), dense(columns.transform(frame))
    )
    with pytest.raises(ValueError, match=r"columns \['age'\] are missing"):
        columns.transform(X.drop(columns="age"))
    with pytest.raises(ValueError, match=r"Row 3: the column 'age' has 'old', and a number"):
        columns.transform(X.head(5).assign(age=["1", "2", "old", "3", "4"]))
    ranker = make_pipeline(PlannedColumns(), PairwiseRanker()).fit(X, frame["y"])
    assert ranker.score(X, frame["y"]) > 0.6
