"""The ranked list: rows sorted by score, with any amount of memory, and otherwise unchanged."""

import csv
import gzip
import io
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata
from sklearn.datasets import dump_svmlight_file

from forerank.exceptions import DataFileError
from forerank.models.ranked_list import rank_file, rank_frame
from forerank.workflows.fit import fit
from tables import table, typed_table


@pytest.fixture(scope="module")
def model():
    return fit(typed_table(), "y", check=0)


def scores_of(model, frame):
    typed = frame.assign(seen=pd.to_datetime(frame["seen"]))
    return model.estimator.decision_function(typed)


@pytest.mark.parametrize("out", ["out.csv", "out.tsv", "out.csv.gz", "out.parquet", "out.feather"])
@pytest.mark.parametrize("kind", ["in.csv", "in.csv.gz", "in.tsv", "in.parquet"])
def test_every_row_comes_back_with_its_score_and_rank(tmp_path, model, kind, out):
    frame = table(200, seed=1)
    path, target = tmp_path / kind, tmp_path / out
    if kind.endswith("parquet"):
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if kind.endswith("tsv") else ",")
    found = rank_file(model, path, target)
    assert (found.rows, found.written) == (200, 200)
    assert (found.missing, found.unused) == ([], ["id", "y"])
    if out.endswith("parquet"):
        ranked = pd.read_parquet(target)
    elif out.endswith("feather"):
        ranked = pd.read_feather(target)
    else:
        ranked = pd.read_csv(target, sep="\t" if out.endswith("tsv") else ",", dtype={"id": str})
    assert_array_equal(np.sort(ranked["id"]), np.sort(frame["id"]))
    place = {name: k for k, name in enumerate(frame["id"])}
    original = frame.iloc[[place[name] for name in ranked["id"]]].reset_index(drop=True)
    assert_allclose(ranked["score"], scores_of(model, original), atol=1e-10)
    assert (np.diff(ranked["score"]) <= 0).all()
    assert_array_equal(ranked["rank"], rankdata(-ranked["score"], method="min"))
    for column in ("note", "city", "y"):
        assert ranked[column].tolist() == original[column].tolist()


def test_lines_are_written_as_they_came(tmp_path, model):
    text = '\ufeff"id";age; job;seen;note;city;job\r\n'.replace(" job;", "extra;")
    rows = [
        '"a;1";044.50;"x ""y""";2020-01-01;"two\nlines";rome;cook',
        "b;;;2020-01-05;;oslo;",
        'c;30;;2020-01-03;plain; it;"pilot, first"',
    ]
    path = tmp_path / "odd.csv"
    path.write_bytes((text + "\r\n".join(rows) + "\r\n\r\n").encode())
    out = io.BytesIO()
    rank_file(model, path, out)
    first, *rest = out.getvalue().decode().split("\r\n", 1)
    assert first == '\ufeff"id";age;extra;seen;note;city;job;score;rank'
    for row in rows:
        assert row + ";" in rest[0]


def test_little_memory_gives_the_same_file(tmp_path, model):
    path = tmp_path / "in.csv"
    pd.concat([table(4000, seed=k) for k in range(3)]).to_csv(path, index=False)
    rank_file(model, path, tmp_path / "a.csv")
    rank_file(model, path, tmp_path / "b.csv", memory=100_000)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    rank_file(model, path, tmp_path / "c.csv", top=100)
    rank_file(model, path, tmp_path / "d.csv", top=100, memory=100_000)
    lines = (tmp_path / "a.csv").read_text()
    for name in ("c.csv", "d.csv"):
        top = (tmp_path / name).read_text()
        assert lines.startswith(top)
        assert len(list(csv.reader(io.StringIO(top)))) == 101


def test_groups_are_ranked_each_on_its_own(tmp_path):
    frame = table(400)
    model = fit(frame, "y", group="city", check=0)
    path = tmp_path / "in.csv"
    frame.to_csv(path, index=False)
    rank_file(model, path, tmp_path / "out.csv", top=5)
    ranked = pd.read_csv(tmp_path / "out.csv")
    assert (
        ranked["city"].tolist()
        == [frame["city"][0]] * 5 + [{"rome": "oslo", "oslo": "rome"}[frame["city"][0]]] * 5
    )
    for _, part in ranked.groupby("city"):
        assert_array_equal(part["rank"], rankdata(-part["score"], method="min"))
    frame.drop(columns="city").to_csv(tmp_path / "without.csv", index=False)
    with pytest.raises(DataFileError, match="their column 'city' is missing"):
        rank_file(model, tmp_path / "without.csv", tmp_path / "none.csv")


def test_missing_and_extra_columns(tmp_path, model):
    frame = table(50).drop(columns=["age", "job"]).assign(score=1, more="x")
    path = tmp_path / "in.csv"
    frame.to_csv(path, index=False)
    message = r"in.csv: columns of the model are missing: 'age', 'job' \(2 of 5\)"
    with pytest.raises(DataFileError, match=message):
        rank_file(model, path, tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()
    found = rank_file(model, path, tmp_path / "out.csv", allow_missing=True)
    assert found.missing == ["age", "job"]
    assert found.unused == ["id", "y", "score", "more"]
    assert found.names == ("forerank_score", "forerank_rank")
    ranked = pd.read_csv(tmp_path / "out.csv", dtype={"id": str}).set_index("id")
    empty = frame.assign(age=np.nan, job=None).set_index("id")
    assert_allclose(ranked["forerank_score"], scores_of(model, empty.loc[ranked.index]), atol=1e-10)


def test_a_value_of_another_kind_is_named_with_its_line(tmp_path, model):
    frame = table(50).astype(object)
    frame.loc[30, "age"] = "old"
    frame.to_csv(tmp_path / "in.csv", index=False)
    line = (tmp_path / "in.csv").read_text().split("old")[0].count("\n") + 1
    with pytest.raises(
        DataFileError, match=f"line {line}: the column 'age' has 'old', and a number is expected"
    ):
        rank_file(model, tmp_path / "in.csv", tmp_path / "out.csv")
    assert [entry.name for entry in tmp_path.iterdir()] == ["in.csv"]


def test_frames_are_ranked_like_files(tmp_path, model):
    frame = table(100, seed=2)
    frame.to_csv(tmp_path / "in.csv", index=False)
    rank_file(model, tmp_path / "in.csv", tmp_path / "out.csv", top=20)
    ranked = rank_frame(model, frame, top=20)
    again = pd.read_csv(tmp_path / "out.csv", dtype={"id": str})
    assert ranked["id"].tolist() == again["id"].tolist()
    assert_allclose(ranked["score"], again["score"], atol=1e-10)
    assert rank_frame(model, pl.from_pandas(frame), top=20)["id"].tolist() == again["id"].tolist()


def test_a_ranker_that_is_not_linear(tmp_path):
    frame = table(300)
    model = fit(frame, "y", ranker="RankBoost", params={"n_estimators": 5}, check=0)
    frame.to_csv(tmp_path / "in.csv", index=False)
    rank_file(model, tmp_path / "in.csv", tmp_path / "out.csv")
    ranked = pd.read_csv(tmp_path / "out.csv", dtype={"id": str}).set_index("id")
    scores = pd.Series(scores_of(model, frame), index=frame["id"])
    assert_allclose(ranked["score"], scores[ranked.index], atol=1e-10)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("first", [0, 1])
def test_matrices_are_ranked_by_row_number(tmp_path, first, grouped):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6)) * (rng.uniform(size=(90, 6)) < 0.7)
    X[0, 0] = 1.0
    y = (X[:, 0] + rng.normal(size=90) > 0).astype(int)
    qid = np.repeat(np.arange(9), 10) if grouped else None
    path = tmp_path / "in.svm"
    dump_svmlight_file(X, y, str(path), zero_based=first == 0, query_id=qid)
    model = fit(path, ranker="PairwiseRanker", check=0)
    assert model.summary["zero_based"] == (first == 0)
    rank_file(model, path, tmp_path / "out.csv")
    ranked = pd.read_csv(tmp_path / "out.csv")
    scores = model.estimator.decision_function(X)
    assert_allclose(ranked["score"], scores[ranked["row"] - 1], atol=1e-10)
    assert_array_equal(ranked["label"], y[ranked["row"] - 1])
    if grouped:
        assert_array_equal(ranked["qid"], qid)
        assert (ranked.groupby("qid")["rank"].min() == 1).all()
    # Rows of fewer and of more columns.
    group = "qid:1 " if grouped else ""
    path.write_text(f"1 {group}{first}:2 {40 + first}:3\n0 {group}\n")
    rank_file(model, path, tmp_path / "two.csv")
    two = np.zeros((2, 6))
    two[0, 0] = 2.0
    expected = model.estimator.decision_function(two)
    found = pd.read_csv(tmp_path / "two.csv").sort_values("row")
    assert_allclose(found["score"], expected, atol=1e-10)


def test_kinds_that_do_not_go_together(tmp_path, model):
    (tmp_path / "in.svm").write_text("1 1:2\n")
    with pytest.raises(
        DataFileError,
        match="the model was fitted on a table with named columns, and this file is a matrix",
    ):
        rank_file(model, tmp_path / "in.svm", tmp_path / "out.csv")
    table(5).to_csv(tmp_path / "in.csv", index=False)
    with pytest.raises(
        DataFileError, match=r"unknown format of a ranked list; choose one of \.csv"
    ):
        rank_file(model, tmp_path / "in.csv", tmp_path / "out.npz")
    (tmp_path / "there.csv").write_text("precious")
    with pytest.raises(FileExistsError, match=r"there\.csv exists already"):
        rank_file(model, tmp_path / "in.csv", tmp_path / "there.csv")
    assert (tmp_path / "there.csv").read_text() == "precious"
    rank_file(model, tmp_path / "in.csv", tmp_path / "there.csv", force=True)
    assert "rank" in (tmp_path / "there.csv").read_text()
    with pytest.raises(ValueError, match="top=0"):
        rank_file(model, tmp_path / "in.csv", tmp_path / "x.csv", top=0)


def test_text_stays_text_in_other_formats(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"zip": rng.choice(["01234", "00501", "90210"], 40), "n": 9007199254740993 + np.arange(40)}
    )
    frame["x"] = rng.normal(size=40)
    frame.assign(y=frame["x"] > 0).to_csv(tmp_path / "in.csv", index=False)
    model = fit(tmp_path / "in.csv", "y", check=0)
    rank_file(model, tmp_path / "in.csv", tmp_path / "out.parquet")
    ranked = pd.read_parquet(tmp_path / "out.parquet")
    assert sorted(ranked["n"]) == [str(n) for n in frame["n"]]
    assert sorted(ranked["zip"]) == sorted(frame["zip"])


def test_line_ends_stay_as_they_are(tmp_path, model):
    table(5).drop(columns="note").to_csv(tmp_path / "in.csv", index=False, lineterminator="\r\n")
    out = io.BytesIO()
    rank_file(model, tmp_path / "in.csv", out, allow_missing=True)
    assert out.getvalue().count(b"\r\n") == out.getvalue().count(b"\n") == 6


def test_words_of_which_the_model_knows_none_are_named(tmp_path, model):
    table(5).assign(city="x", job=["cook", "y", "y", "y", "y"]).to_csv(
        tmp_path / "in.csv", index=False
    )
    assert rank_file(model, tmp_path / "in.csv", tmp_path / "out.csv").unknown_values == ["city"]


def test_lists_within_rows_do_not_go_to_csv(tmp_path, model):
    frame = table(5).assign(
        seen=lambda f: pd.to_datetime(f["seen"]), lists=[[1], [2], [3], [4], [5]]
    )
    frame.to_parquet(tmp_path / "in.parquet")
    with pytest.raises(DataFileError, match="try Parquet or Feather"):
        rank_file(model, tmp_path / "in.parquet", tmp_path / "out.csv")
    assert rank_file(model, tmp_path / "in.parquet", tmp_path / "out.parquet").written == 5


def test_packed_output_is_packed(tmp_path, model):
    table(5).to_csv(tmp_path / "in.csv", index=False)
    rank_file(model, tmp_path / "in.csv", tmp_path / "out.csv.gz")
    assert (
        gzip.decompress((tmp_path / "out.csv.gz").read_bytes())
        .decode()
        .splitlines()[0]
        .endswith(",score,rank")
    )


def test_numbers_are_no_dates_and_dates_no_numbers(tmp_path, model):
    frame = table(5).assign(seen=lambda f: pd.to_datetime(f["seen"]))
    for name, values, message in (
        (
            "age",
            frame["seen"],
            "row 1: the column 'age' has '2020-01-01 00:00:00', and a number is expected",
        ),
        (
            "age",
            ["1", "2", None, "old", "3"],
            "row 4: the column 'age' has 'old', and a number is expected",
        ),
        (
            "age",
            [True, False, True, True, True],
            "row 1: the column 'age' has 'true', and a number is expected",
        ),
        (
            "seen",
            [20200101.0] * 5,
            r"row 1: the column 'seen' has '20200101\.0', and a date such as",
        ),
    ):
        odd = frame.assign(**{name: values})
        odd.to_parquet(tmp_path / "in.parquet")
        with pytest.raises(DataFileError, match=message):
            rank_file(model, tmp_path / "in.parquet", tmp_path / "out.csv")
        with pytest.raises(DataFileError, match=message):
            rank_frame(model, odd)
    assert not (tmp_path / "out.csv").exists()
    assert len(rank_frame(model, frame.assign(age=["1", "2", None, "4", "5"]))) == 5


@pytest.mark.parametrize("out", ["out.csv", "out.tsv", "out.csv.gz", "out.parquet", "out.feather"])
@pytest.mark.parametrize("kind", ["in.csv", "in.tsv", "in.parquet", "in.feather"])
def test_no_rows_give_an_empty_list(tmp_path, model, kind, out):
    frame = table(5).iloc[:0]
    path, target = tmp_path / kind, tmp_path / out
    if kind.endswith("parquet"):
        frame.to_parquet(path)
    elif kind.endswith("feather"):
        frame.to_feather(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if kind.endswith("tsv") else ",")
    for top in (None, 3):
        found = rank_file(model, path, target, top=top, force=True)
        assert (found.rows, found.written) == (0, 0)
        readers = {"t": pd.read_parquet, "r": pd.read_feather}
        read = readers.get(
            out[-1], lambda p: pd.read_csv(p, sep="\t" if out.endswith("tsv") else ",")
        )
        assert list(read(target).columns) == [*frame.columns, "score", "rank"]
        assert len(read(target)) == 0
    (tmp_path / "other.csv").write_text("a,b\n")
    with pytest.raises(DataFileError, match="columns of the model are missing"):
        rank_file(model, tmp_path / "other.csv", target, force=True)


def test_no_rows_of_a_matrix(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    np.savez(tmp_path / "a.npz", X=X, y=X[:, 0] > 0)
    np.savez(tmp_path / "none.npz", X=X[:0], y=X[:0, 0] > 0)
    (tmp_path / "none.svm").write_text("# no rows\n")
    matrix = fit(tmp_path / "a.npz", ranker="PairwiseRanker", check=0)
    for name in ("none.npz", "none.svm"):
        assert rank_file(matrix, tmp_path / name, tmp_path / "out.csv", force=True).rows == 0
        assert (tmp_path / "out.csv").read_text() == "row,label,score,rank\n"


def test_any_names_may_be_sorted(tmp_path, model):
    table(50).assign(group=1.0, score=2.0, rank=3).to_parquet(tmp_path / "in.parquet")
    found = rank_file(model, tmp_path / "in.parquet", tmp_path / "out.parquet", memory=1000)
    ranked = pd.read_parquet(tmp_path / "out.parquet")
    assert list(ranked.columns[-5:]) == ["group", "score", "rank", *found.names]
    assert (ranked["score"] == 2.0).all()
    assert ranked[found.names[0]].is_monotonic_decreasing


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_needs_no_suffix(tmp_path, model):
    table(5).to_csv(tmp_path / "in.csv", index=False)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as readers:
        text = readers.submit(pipe.read_text)
        rank_file(model, tmp_path / "in.csv", pipe)
        assert text.result(timeout=60).splitlines()[0].endswith(",score,rank")


def test_probabilities_stand_beside_scores_whatever_the_memory(tmp_path):
    frame = table(300).drop(columns=["note", "seen"]).assign(score=1.0)
    model = fit(frame, "y", check=0, drop=["score"], params={"calibrate": True})
    frame.to_csv(tmp_path / "in.csv", index=False)
    for name, memory in (("all.csv", 1 << 30), ("little.csv", 1 << 10)):
        found = rank_file(
            model, tmp_path / "in.csv", tmp_path / name, probability=True, memory=memory
        )
        assert found.names == ("forerank_score", "forerank_probability", "forerank_rank")
    assert (tmp_path / "all.csv").read_bytes() == (tmp_path / "little.csv").read_bytes()
    ranked = pd.read_csv(tmp_path / "all.csv", dtype={"id": str})
    assert_allclose(
        ranked["forerank_probability"], model.estimator.predict_proba(ranked)[:, 1], rtol=1e-9
    )
    assert (np.diff(ranked["forerank_probability"]) <= 0).all()
    again = rank_frame(model, frame, probability=True)
    assert_allclose(again["forerank_probability"], ranked["forerank_probability"], rtol=1e-9)
    with pytest.raises(ValueError, match="predicts no probabilities"):
        rank_frame(fit(frame, "y", check=0), frame, probability=True)
