"""Files of several formats: fit, evaluate, explain and rank read them alike."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import dump_svmlight_file

from forerank.data.readers import Matrix
from forerank.exceptions import DataFileError
from forerank.models import load_model, read_card, save_model
from forerank.models.explain import explain
from forerank.models.ranked_list import rank_file, rank_frame
from forerank.workflows.evaluate import evaluate
from forerank.workflows.fit import fit
from tables import table, typed_table


def test_files_and_frames_give_the_same_model(tmp_path):
    frame = table(300)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.assign(seen=pd.to_datetime(frame["seen"])).to_parquet(tmp_path / "a.parquet")
    models = [
        fit(data, "y", ranker="PairwiseRanker", check=0)
        for data in (
            typed_table(),
            pl.from_pandas(typed_table()),
            tmp_path / "a.csv",
            tmp_path / "a.parquet",
        )
    ]
    weights = [explain(model).weights for model in models]
    for other in weights[1:]:
        assert {w.name: round(w.weight, 8) for w in other} == {
            w.name: round(w.weight, 8) for w in weights[0]
        }


def test_a_file_is_read_alike_by_fit_evaluate_explain_and_rank(tmp_path):
    """Values whose kind a reader could guess in another way from other rows."""
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "code": rng.choice(["1", "2", "03", "B"], n),
            "time": rng.choice(["08:30", "17:45"], n),
            "flag": rng.choice(["true", "false"], n),
            "until": rng.choice(["2020-01-01", "9999-12-31"], n),
            "zone": rng.choice(["2020-01-01T10:00:00Z", "2021-01-01T10:00:00Z"], n),
            "small": rng.integers(0, 9, n),
            "huge": rng.normal(size=n) * 1e200,
            "note": [
                f"{text} {word}" if text else ""
                for text, word in zip(
                    rng.choice(["the quick brown fox jumps", "lazy dogs sleep all day", ""], n),
                    [f"word{k}" for k in rng.permutation(n)],
                    strict=True,
                )
            ],
            "team": rng.choice(["07", "7", "10000000000000000001", "10000000000000000002"], n),
        }
    )
    odds = (
        2.0 * (frame["code"] == "03")
        + (frame["time"] == "08:30")
        + frame["huge"] / 1e200
        + frame["small"] / 3
    )
    frame["y"] = np.where(odds + rng.logistic(size=n) > 2.5, "yes", "no")
    frame.to_csv(tmp_path / "train.csv", index=False)
    # A linear model, whose weights have the names of values.
    params = {"families": "linear"}
    model = fit(tmp_path / "train.csv", "y", group="team", check=0, params=params)
    assert model.summary["groups"] == 4
    assert model.columns == {
        "small": "number",
        "huge": "number",
        "until": "date",
        "zone": "date with zone",
        "code": "category",
        "time": "category",
        "flag": "category",
        "note": "text",
    }
    # Rows in which words look like numbers and numbers are missing.
    part = frame[frame["code"] != "B"].assign(
        small=lambda f: f["small"].where(f["small"] > 2), row=lambda f: f.index
    )
    part.loc[part.index[:5], ["code", "flag", "until"]] = None
    part.to_csv(tmp_path / "part.csv", index=False)
    found = evaluate(model, tmp_path / "part.csv", by="flag")
    assert set(found.parts) == {"true", "false", "(missing)"}
    rank_file(model, tmp_path / "part.csv", tmp_path / "out.csv")
    ranked = pd.read_csv(tmp_path / "out.csv").set_index("row")
    assert_allclose(ranked["score"].loc[part.index], found.scores, atol=1e-12)
    whole = evaluate(model, tmp_path / "train.csv")
    same = ~frame.index.isin(part.index[:5]) & (frame["small"] > 2) & (frame["code"] != "B")
    assert_allclose(ranked["score"].loc[frame.index[same]], whole.scores[same], atol=1e-12)
    reasons = explain(model, tmp_path / "part.csv", rows=[1, 2]).contributions
    assert_allclose([each["score"] for each in reasons], found.scores[:2])
    # The words matter to the model, so that a wrong reading would have shown.
    assert {"code=03", "time=08:30"} <= {weight.name for weight in explain(model).weights[:8]}


def test_numbers_in_disguise_are_named(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60).round(3)
    frame = pd.DataFrame(
        {"z": x**2, "late": x.astype(str), "money": [f"${v:.2f}" for v in x * 100], "y": x > 0}
    )
    frame.loc[30, "late"] = "oops"
    notes = " ".join(fit(frame, "y", check=0).notes)
    assert "late: 1 of 60 values is not a number ('oops' in row 31): taken as missing" in notes
    assert "money: read as numbers, being written like '$" in notes
    # A decimal comma, where the delimiter leaves no doubt.
    frame[["z", "y"]].to_csv(tmp_path / "eu.csv", index=False, sep=";", decimal=",")
    assert fit(tmp_path / "eu.csv", "y", check=0).columns == {"z": "number"}
    frame[["z", "y"]].to_csv(tmp_path / "us.csv", index=False, sep=";")
    assert fit(tmp_path / "us.csv", "y", check=0).columns == {"z": "number"}


@pytest.mark.parametrize("spelling", ["true", "True", "TRUE"])
def test_true_is_true_however_it_is_written(tmp_path, spelling):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"flag": rng.uniform(size=80) < 0.5, "x": rng.normal(size=80)})
    frame["y"] = frame["flag"] ^ (rng.uniform(size=80) < 0.2)
    model = fit(frame, "y", check=0)
    words = frame.replace(
        {True: spelling, False: {"true": "false", "True": "False", "TRUE": "FALSE"}[spelling]}
    )
    words.to_csv(tmp_path / "a.csv", index=False)
    found = evaluate(model, tmp_path / "a.csv")
    assert_allclose(found.scores, evaluate(model, frame).scores)
    assert found.y.tolist() == frame["y"].tolist()


def test_columns_counted_from_zero_stay_so(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = (X[:, 1] + 0.3 * rng.normal(size=200) > 0).astype(int)
    dump_svmlight_file(X, y, str(tmp_path / "t.svm"), zero_based=True)
    model = fit(tmp_path / "t.svm", check=0)
    X[:, 0] = 0.0
    dump_svmlight_file(X, y, str(tmp_path / "e.svm"), zero_based=True)
    assert_allclose(
        evaluate(model, tmp_path / "e.svm").scores, model.estimator.decision_function(X)
    )
    with pytest.raises(DataFileError, match="the model was fitted on a matrix"):
        evaluate(model, pd.DataFrame({"x": [1.0], "y": [1]}), "y")


def numbers_with_a_word(directory, n=2000):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(18, 80, n).round(1), "z": rng.normal(size=n)})
    frame["y"] = np.where(frame["age"] / 10 + rng.normal(size=n) > 5, "yes", "no")
    words = frame.assign(age=frame["age"].astype(str).mask(frame.index == 1201, "unknwon"))
    words.to_csv(directory / "a.csv", index=False)
    words.to_parquet(directory / "a.parquet")
    return frame.assign(age=frame["age"].mask(frame.index == 1201))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_one_bad_word_among_numbers_is_named(tmp_path, suffix):
    frame = numbers_with_a_word(tmp_path)
    path = tmp_path / f"a.{suffix}"
    model = fit(path, "y", ranker="PairwiseRanker", check=0)
    place = "line 1,203" if suffix == "csv" else "row 1,202"
    note = f"age: 1 of 2,000 values is not a number ('unknwon' in {place}): taken as missing"
    assert any(each.startswith(note) for each in model.notes)
    assert model.columns == {"age": "number", "z": "number"}
    plain = fit(frame, "y", ranker="PairwiseRanker", check=0)
    scores = evaluate(plain, frame).scores
    # The word that stood for a missing number does so in other files, too; another word does not.
    save_model(model, tmp_path / "m.forerank")
    kept = load_model(tmp_path / "m.forerank")
    for other in ("csv", "parquet"):
        assert_allclose(evaluate(kept, tmp_path / f"a.{other}").scores, scores, atol=1e-8)
        rank_file(kept, tmp_path / f"a.{other}", tmp_path / "out.csv", force=True)
        assert_allclose(
            pd.read_csv(tmp_path / "out.csv")["score"], np.sort(scores)[::-1], atol=1e-8
        )
    (tmp_path / "b.csv").write_text("age,z\nunknwon,1\n50,2\nold,3\n")
    with pytest.raises(
        DataFileError, match=r"b.csv, line 4: the column 'age' has 'old', and a number is expected"
    ):
        rank_file(kept, tmp_path / "b.csv", tmp_path / "out.csv", force=True)
    with pytest.raises(
        DataFileError, match=f"{place}.*'unknwon', and a number is expected".replace(",", ",?")
    ):
        fit(path, "y", types={"age": "number"})
    assert fit(path, "y", types={"age": "category"}, check=0).columns["age"] == "category"
    assert fit(path, "y", types={"age": "text"}, check=0).columns["age"] == "text"


def test_types_that_are_given_hold_for_new_files(tmp_path):
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame(
        {
            "zip": rng.choice([1010, 1020, 8010], n),
            "code": rng.choice(["7", "07"], n),
            "when": np.where(np.arange(n) % 3 == 0, "2021-03-04", "2022-01-01 10:00"),
            "zone": "2021-03-04T10:00:00Z",
            "row": np.arange(n),
            "z": rng.normal(size=n),
        }
    )
    odds = 2.0 * (frame["zip"] == 8010) + (frame["code"] == "07") + frame["z"]
    frame["y"] = np.where(odds + rng.logistic(size=n) > 1.5, 1, 0)
    frame.to_csv(tmp_path / "a.csv", index=False)
    types = {"zip": "category", "code": "category", "when": "date", "zone": "date", "row": "number"}
    model = fit(tmp_path / "a.csv", "y", types=types, check=0)
    assert model.columns == {
        "row": "number",
        "z": "number",
        "when": "date",
        "zone": "date with zone",
        "zip": "category",
        "code": "category",
    }
    assert {"zip=8010", "code=07"} <= {each.name for each in explain(model).weights}
    scores = evaluate(model, tmp_path / "a.csv").scores
    rank_file(model, tmp_path / "a.csv", tmp_path / "out.csv")
    assert_allclose(pd.read_csv(tmp_path / "out.csv")["score"], np.sort(scores)[::-1], atol=1e-10)
    # In memory, with a gap that makes doubles of the numbers.
    gaps = frame.assign(zip=frame["zip"].astype(float).where(frame.index > 0))
    assert_allclose(evaluate(model, gaps).scores[1:], scores[1:], atol=1e-10)
    assert_allclose(
        evaluate(fit(frame, "y", types=types, check=0), frame).scores, scores, atol=1e-6
    )
    with pytest.raises(
        DataFileError, match=r"line 2: the column 'zip' has '\d+', and a date such as 2021-03-04"
    ):
        fit(tmp_path / "a.csv", "y", types={"zip": "date"})
    for wrong, message in (
        ({"zop": "number"}, "no column 'zop'; did you mean 'zip'"),
        ({"zip": "numeric"}, "'numeric'; choose one of number, category, text, date"),
        ({"y": "number"}, "'y' is the target"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(tmp_path / "a.csv", "y", types=wrong)
    with pytest.raises(ValueError, match="'zip' is not used"):
        fit(frame, "y", types=types, drop=["zip"])
    with pytest.raises(DataFileError, match="columns of a matrix have no names"):
        fit(Matrix(np.eye(4), np.arange(4) % 2, None), types={"a": "number"})


def test_the_encoding_of_a_model_is_for_files_that_are_not_in_utf8(tmp_path):
    frame = table(200).assign(
        city=lambda f: f["city"].replace({"rome": "Zürich", "oslo": "Málaga"})
    )
    for encoding in ("cp1252", "utf-8", "utf-16"):
        frame.to_csv(tmp_path / f"{encoding}.csv", index=False, encoding=encoding)
    with pytest.raises(
        DataFileError, match=r"0xFC is 'ü' in cp1252.*pass the encoding|0xE1 is 'á'"
    ):
        fit(tmp_path / "cp1252.csv", "y")
    model = fit(tmp_path / "cp1252.csv", "y", encoding="cp1252", check=0)
    save_model(model, tmp_path / "m.forerank")
    model = load_model(tmp_path / "m.forerank")
    expected = fit(tmp_path / "utf-16.csv", "y", check=0).estimator
    scores = expected.decision_function(frame.assign(seen=pd.to_datetime(frame["seen"])))
    for encoding in ("cp1252", "utf-8", "utf-16"):
        path = tmp_path / f"{encoding}.csv"
        assert_allclose(evaluate(model, path).scores, scores, atol=1e-8)
        assert_allclose(
            explain(model, path, rows=[1]).contributions[0]["score"], scores[0], atol=1e-8
        )
        found = rank_file(model, path, tmp_path / "out.csv", force=True)
        assert found.unknown_values == []
        assert set(pd.read_csv(tmp_path / "out.csv")["city"]) == {"Zürich", "Málaga"}
    garbled = evaluate(model, tmp_path / "utf-8.csv", encoding="cp1252").scores
    assert not np.allclose(garbled, scores)  # what is said goes before what is seen
    with pytest.raises(DataFileError, match="encoding applies to text files only"):
        fit(frame, "y", encoding="cp1252")


def test_a_format_for_a_file_without_a_suffix(tmp_path):
    frame = table(100)
    frame.to_csv(tmp_path / "rows.dat", index=False)
    with pytest.raises(DataFileError, match="pass its format"):
        fit(tmp_path / "rows.dat", "y")
    model = fit(tmp_path / "rows.dat", "y", format="csv", check=0)
    found = evaluate(model, tmp_path / "rows.dat", format="csv")
    ranked = rank_file(model, tmp_path / "rows.dat", tmp_path / "out.csv", format="csv")
    assert found.rows == ranked.rows == 100
    assert (
        explain(model, tmp_path / "rows.dat", format="csv").contributions[0]["score"]
        == found.scores.max()
    )


def test_a_file_of_an_earlier_version_still_ranks():
    here = Path(__file__).parents[1] / "model_files"
    model = load_model(here / "format-1.forerank")
    expected = json.loads((here / "format-1.json").read_text())
    ranked = rank_frame(model, pd.DataFrame(expected["rows"]))
    assert_allclose(ranked["score"], sorted(expected["scores"], reverse=True))
    card = read_card(here / "format-1.forerank")
    assert card["format"] == 1
    assert card["foreign_types"] == []
