"""Fitting, measuring and explaining tables and matrices: what is found is what the parts give one
by one.
"""

import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import LogisticRegression

from forerank import PairwiseRanker, Ranker
from forerank.data.readers import Matrix
from forerank.data.transformers import NumberColumns
from forerank.exceptions import DataFileError
from forerank.metrics.estimates import estimate_measures
from forerank.models import Model, load_model, read_card, save_model
from forerank.models.explain import explain
from forerank.models.onnx import save_onnx, to_onnx
from forerank.models.ranked_list import rank_file, rank_frame
from forerank.models.sklearn_export import to_sklearn
from forerank.workflows.evaluate import evaluate
from forerank.workflows.fit import fit
from forerank.workflows.rankers import make_ranker, ranker_names
from tables import table


def typed(n=300, seed=0):
    return table(n, seed).assign(seen=lambda frame: pd.to_datetime(frame["seen"]))


def test_the_check_is_a_fit_on_the_other_rows():
    frame = typed(400)
    model = fit(frame, "y", ranker="PairwiseRanker", check=0.25, seed=3)
    assert model.summary["rows"] == 400
    assert model.summary["kept_aside"] == 100
    # The same split, by hand: steps and ranker see the training rows only.
    from sklearn.model_selection import StratifiedShuffleSplit

    y = (frame["y"] == "yes").to_numpy()
    train, test = next(StratifiedShuffleSplit(1, test_size=0.25, random_state=3).split(y, y))
    pipeline = clone(model.estimator).fit(frame.iloc[train], y[train])
    expected = estimate_measures(
        y[test], pipeline.decision_function(frame.iloc[test]), list_rows=400, random_state=3
    )
    for got, want in zip(model.summary["measures"], expected, strict=True):
        assert got["name"] == want.name
        assert_allclose([got["value"], got["low"], got["high"]], [want.value, want.low, want.high])
    # The model itself is fitted on all rows.
    whole = clone(model.estimator).fit(frame, y)
    assert_allclose(model.estimator.decision_function(frame), whole.decision_function(frame))
    assert (model.summary["positive"], model.summary["negative"]) == ("yes", "no")
    assert model.columns == {
        "age": "number",
        "seen": "date",
        "job": "category",
        "city": "category",
        "note": "text",
    }
    assert any(note.startswith("left out id") for note in model.notes)


def test_what_was_measured_is_what_is_fitted_on_all_rows():
    frame = typed(400)
    model = fit(frame, "y", metric="ap", check=0.25, seed=3)
    chosen = model.estimator[-1]
    choice = model.summary["choice"]
    assert (choice["metric"], choice["method"], choice["alpha"]) == (
        "ap",
        chosen.best_method_,
        chosen.best_alpha_,
    )
    alone = Ranker(
        "ap",
        methods=[chosen.best_method_],
        alphas=[chosen.best_alpha_],
        scale=False,
        random_state=3,
    )
    y = (frame["y"] == "yes").to_numpy()
    X = model.estimator[0].transform(frame)
    assert_allclose(chosen.coef_, alone.fit(X, y).coef_)


def test_of_many_rows_some_are_looked_at():
    frame = typed(1500)
    model = fit(frame, "y", params={"search_rows": 600, "alphas": 4}, check=0)
    chosen = model.estimator[-1]
    assert "the choice was made on 600 of 1,500 rows" in chosen.reason_
    alone = Ranker(
        methods=[chosen.best_method_], alphas=[chosen.best_alpha_], scale=False, random_state=0
    )
    y = (frame["y"] == "yes").to_numpy()
    assert_allclose(chosen.coef_, alone.fit(model.estimator[0].transform(frame), y).coef_)


def test_what_was_asked_for_is_measured():
    model = fit(typed(400), "y", metric="recall@30")
    found = {each["name"]: each for each in model.summary["measures"]}
    assert found["recall at 30"]["depth"] == "of 400 rows (first 7.5 %)"
    # The rows kept aside, the choice and the model speak of the same share of a list.
    assert "recall at 30 of 400 rows (first 7.5 %)" in model.summary["choice"]["reason"]
    assert model.estimator[-1].list_rows == 400


def test_the_choice_on_some_rows_looks_as_deep_as_that_on_all():
    model = fit(
        typed(1500), "y", metric="recall@150", params={"search_rows": 600, "alphas": 4}, check=0
    )
    assert "recall at 150 of 1,500 rows (first 10 %)" in model.summary["choice"]["reason"]
    assert "the choice was made on 600 of 1,500 rows" in model.summary["choice"]["reason"]


def test_grades_are_chosen_for_by_pairs():
    frame = typed(300).assign(y=np.arange(300) % 3)
    assert fit(frame, "y", check=0).summary["choice"]["metric"] == "wmw"
    assert fit(frame, "y", metric="ndcg@10", check=0).summary["choice"]["metric"] == "ndcg@10"


def test_what_is_odd_is_said():
    frame = typed(300).assign(told=lambda f: (f["y"] == "yes") * 1.0 + 0.01 * np.arange(300) / 300)
    found = fit(frame, "y", check=0).summary["warnings"]
    assert any("'told'" in sentence for sentence in found)


def test_files_and_frames_give_the_same_model(tmp_path):
    frame = table(300)
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.assign(seen=pd.to_datetime(frame["seen"])).to_parquet(tmp_path / "a.parquet")
    models = [
        fit(data, "y", check=0)
        for data in (typed(), pl.from_pandas(typed()), tmp_path / "a.csv", tmp_path / "a.parquet")
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
            "note": rng.choice(["the quick brown fox jumps", "lazy dogs sleep all day", ""], n),
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
    model = fit(tmp_path / "train.csv", "y", group="team", check=0)
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


def test_odd_frames():
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    frame = pd.DataFrame({0: x, 1: rng.uniform(size=60) < 0.5, 2: x > 0})
    model = fit(frame, 2, check=0)
    assert model.columns == {"0": "number", "1": "category"}
    assert evaluate(model, frame).measures[0].value == 1.0
    assert fit(frame, 2, positive=True, check=0).summary["positive"] == "True"
    with pytest.raises(ValueError, match="more than one column 'a'"):
        fit(pd.DataFrame(np.eye(3), columns=["a", "a", "y"]), "y")
    decimals = pa.table({"d": pa.array([Decimal(f"{v:.2f}") for v in x]), "z": x**2, "y": x > 0})
    assert set(fit(decimals, "y", check=0).columns) == {"d", "z"}
    assert set(fit(decimals.to_pandas(), "y", check=0).columns) == {"d", "z"}
    spans = pd.DataFrame({"s": pd.to_timedelta(x, unit="h"), "y": x > 0})
    assert fit(spans, "y", check=0).columns == {"s": "number"}
    leak = fit(
        pd.DataFrame({"x": x, "leak": x, "y": x > 0}),
        "y",
        drop=(name for name in ["leak"]),
        check=0,
    )
    assert set(leak.columns) == {"x"}
    empty = rank_frame(model, frame.iloc[:0])
    assert list(empty.columns) == [0, 1, 2, "score", "rank"]
    with sklearn.config_context(transform_output="pandas"):
        again = fit(frame, 2, check=0)
        assert_allclose(evaluate(again, frame).scores, evaluate(model, frame).scores)


def test_numbers_in_disguise_are_named(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60).round(3)
    frame = pd.DataFrame(
        {"z": x**2, "late": x.astype(str), "money": [f"${v:.2f}" for v in x * 100], "y": x > 0}
    )
    frame.loc[30, "late"] = "oops"
    notes = " ".join(fit(frame, "y", check=0).notes)
    assert "late: 1 of 60 values is no number ('oops' in row 31): taken as missing" in notes
    assert "left out money: not read as numbers, being written like '$" in notes
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


def test_labels_that_the_model_does_not_know():
    frame = pd.DataFrame({"x": np.arange(20.0), "y": np.where(np.arange(20) > 9, 1, -1)})
    model = fit(frame, "y", check=0)
    with pytest.raises(DataFileError, match="labels in 'y' that are neither '1' nor '-1': 0, 2"):
        evaluate(model, frame.assign(y=np.arange(20) % 3))
    grouped = fit(Matrix(np.eye(8), np.arange(8) % 2, np.arange(8) // 4), check=0)
    with pytest.raises(DataFileError, match="the model ranks within groups, and there is no qid"):
        evaluate(grouped, Matrix(np.eye(8), np.arange(8) % 2, None))
    by_alphabet = fit(frame.assign(y=np.where(frame["y"] > 0, "good", "poor")), "y", check=0)
    assert any("'poor' is taken for the positive label" in note for note in by_alphabet.notes)


def test_infinite_values_of_matrices():
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = X[:, 0] > 0
    X[0, 1], X[1, 1] = np.inf, np.nan
    assert np.isfinite(explain(fit(Matrix(X, y, None), check=0)).weights[0].weight)
    with pytest.raises(DataFileError, match="not finite"):
        fit(Matrix(sp.csr_matrix(X), y, None))


def test_numbers_given_as_strings_are_numbers():
    frame = pd.DataFrame({"x": np.linspace(0, 1, 30), "y": np.arange(30) > 14})
    model = fit(frame, "y", check=0)
    expected = model.estimator.decision_function(frame)
    for kind in (str, object):
        assert_allclose(
            model.estimator.decision_function(frame.assign(x=frame["x"].astype(kind))), expected
        )
    decimals = frame.assign(x=[Decimal(str(v)) for v in frame["x"]])
    assert_allclose(model.estimator.decision_function(decimals), expected)


def test_reordered_columns_are_found_by_name():
    frame = pd.DataFrame({"a": np.arange(5.0), "b": 1000 + np.arange(5.0) ** 2})
    steps = NumberColumns().fit(frame)
    assert_allclose(steps.transform(frame), steps.transform(frame[["b", "a"]]))


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


def test_a_grade_of_one_row_does_not_stop_the_measuring():
    rng = np.random.default_rng(0)
    y = np.zeros(300)
    y[:20], y[20] = 1, 2
    frame = pd.DataFrame({"x": y + rng.normal(size=300), "y": y})
    assert fit(frame, "y").summary["kept_aside"] == 60


def test_matrices(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    grade = np.clip(np.round(X[:, 0] + rng.normal(size=200)), 0, 2)
    qid = np.repeat(np.arange(20), 10)
    dump_svmlight_file(X, grade, str(tmp_path / "a.svm"), query_id=qid, zero_based=False)
    model = fit(tmp_path / "a.svm", ranker="RankNCG")
    assert model.summary["groups"] == 20
    assert model.summary["params"]["graph"] == "order"
    assert model.summary["measures"][0]["name"] == "pairs in order"
    assert model.summary["classes"] == {str(g): int((grade == g).sum()) for g in range(3)}
    assert explain(model).weights[0].name == "column 1"
    found = evaluate(model, tmp_path / "a.svm")
    assert_allclose(found.scores, model.estimator.decision_function(sp.csr_matrix(X)))
    dense = fit(Matrix(X, grade > 0, None), ranker="pointwise-ranker", params={"loss": "logistic"})
    assert dense.summary["ranker"] == "PointwiseRanker"
    np.savez(tmp_path / "a.npz", X=X, y=grade > 0)
    assert evaluate(dense, tmp_path / "a.npz").measures[0].value > 0.7


LABELS = [
    (["1", "0", "1", "yes"], None, "line 5: mixed labels in 'y': 'yes' among '0', '1', 'yes'"),
    (
        ["a", "b", "c", "a"],
        None,
        "'y' has 3 different labels ('a', 'b', 'c'); name the positive one",
    ),
    (["a", "a", "a", "a"], None, "all labels in 'y' are 'a'"),
    (["a", "", "b", "a"], None, "line 3: the label 'y' is missing here (1 of 4 rows has none)"),
    (["a", "b", "a", "  "], None, "line 5: the label 'y' is missing here (1 of 4 rows has none)"),
    (["a", "b", "b", "a"], "c", "no label in 'y' is 'c'; there are 'a', 'b'"),
    (["a", "a", "a", "a"], "a", "all labels in 'y' are 'a'"),
]


@pytest.mark.parametrize(("labels", "positive", "message"), LABELS)
def test_labels_that_cannot_be_used_are_named(tmp_path, labels, positive, message):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"{k},{label}\n" for k, label in enumerate(labels)))
    with pytest.raises(DataFileError) as caught:
        fit(path, "y", positive=positive)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "positive", "expected"),
    [
        ([0, 1, 1, 0], None, [False, True, True, False]),
        ([1.0, -1.0, -1.0, 1.0], None, [True, False, False, True]),
        ([1, 2, 3, 1], "1", [True, False, False, True]),
        (["no", "yes", "no", "yes"], "no", [True, False, True, False]),
        ([True, False, True, False], None, [True, False, True, False]),
        (
            pd.Categorical(["b", "a", "b", "a"], categories=["b", "a", "unused"]),
            None,
            [True, False, True, False],
        ),
    ],
)
def test_which_rows_belong_ahead(values, positive, expected):
    frame = pd.DataFrame({"x": [3.0, 1.0, 2.0, 5.0], "y": values})
    model = fit(frame, "y", positive=positive, check=0)
    assert evaluate(model, frame).y.tolist() == expected


def test_too_many_numbers_are_no_grades():
    frame = pd.DataFrame({"x": np.arange(100.0) % 7, "y": np.arange(100.0)})
    with pytest.raises(DataFileError, match="has 100 different numbers"):
        fit(frame, "y")
    with pytest.raises(ValueError, match="TopPush ranks two classes, and the labels are grades"):
        fit(frame.assign(y=frame["y"] % 3), "y", ranker="TopPush")


def test_what_is_wrong_is_said(tmp_path):
    frame = typed(60)
    with pytest.raises(DataFileError, match="no column 'Y'; did you mean 'y'"):
        fit(frame, "Y")
    with pytest.raises(DataFileError, match="name the target, one of the columns id, age"):
        fit(frame)
    with pytest.raises(ValueError, match=r"There is no ranker 'TopPish'\. Did you mean TopPush"):
        fit(frame, "y", ranker="TopPish")
    with pytest.raises(
        ValueError, match=r"PairwiseRanker has no parameter 'aplha'\. Did you mean 'alpha'"
    ):
        fit(frame, "y", ranker="PairwiseRanker", params={"aplha": 1})
    with pytest.raises(
        ValueError, match=r"Ranker has no parameter 'alpha'\. Single rankers have it"
    ):
        fit(frame, "y", params={"alpha": 1})
    with pytest.raises(ValueError, match="TopPush has no parameter 'metric'"):
        fit(frame, "y", ranker="TopPush", metric="ap")
    with pytest.raises(ValueError, match="metric must be one of"):
        fit(frame, "y", metric="accuracy")
    with pytest.raises(ValueError, match="TopPush does not rank within groups"):
        fit(frame, "y", ranker="TopPush", group="city")
    with pytest.raises(DataFileError, match="no column is left to learn from"):
        fit(frame[["id", "y"]], "y")
    with pytest.raises(ValueError, match="check=1"):
        fit(frame, "y", check=1.0)
    with pytest.raises(DataFileError, match="there is no qid in it"):
        fit(Matrix(np.eye(4), np.array([0, 1, 0, 1]), None), group="qid")
    with pytest.raises(DataFileError, match="a matrix with its own labels"):
        fit(Matrix(np.eye(4), np.array([0, 1, 0, 1]), None), "y")
    frame.assign(city=None).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(DataFileError, match="line 2: the group column 'city' is empty here"):
        fit(tmp_path / "a.csv", "y", group="city")


def test_few_rows_are_not_measured():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [0, 0, 1]})
    model = fit(frame, "y")
    assert model.summary["measures"] == []
    assert any("too few rows" in note for note in model.notes)


def test_every_ranker_can_be_named():
    assert {"PairwiseRanker", "TopPush", "RankNet"} <= set(ranker_names())
    assert "QuadraticFeatures" not in ranker_names()
    for name in ranker_names():
        assert type(make_ranker(name.lower())).__name__ == name
    assert make_ranker("RankNet", seed=7).random_state == 7


def test_an_estimator_of_ones_own():
    frame = typed(200)
    model = fit(frame, "y", ranker=LogisticRegression(C=0.5))
    assert model.summary["measures"][0]["value"] > 0.6
    assert len(explain(model, frame).contributions) == 5


def test_measures_by_the_values_of_a_column():
    frame = typed(400)
    model = fit(frame, "y", check=0)
    found = evaluate(model, frame, by="city", k=[5], seed=1)
    for city, measures in found.parts.items():
        rows = (frame["city"] == city).to_numpy()
        assert measures == estimate_measures(
            found.y[rows], found.scores[rows], k=[5], random_state=1
        )
    assert found.classes == {
        "yes": int((frame["y"] == "yes").sum()),
        "no": int((frame["y"] == "no").sum()),
    }
    one = evaluate(model, frame.assign(city=frame["y"]), by="city")
    assert one.parts == {"no": [], "yes": []}


def test_contributions_add_up_to_the_score():
    frame = typed(200)
    model = fit(frame, "y", check=0)
    found = explain(model, frame, rows=[1, 150])
    scores = model.estimator.decision_function(frame)
    for each, row in zip(found.contributions, (0, 149), strict=True):
        assert each["row"] == row + 1
        total = found.intercept + sum(term["adds"] for term in each["columns"].values())
        assert_allclose([total, each["score"]], scores[row])
        assert set(each["columns"]) == {"age", "job", "seen", "note", "city"}
    sizes = [abs(weight.weight) for weight in found.weights]
    assert sizes == sorted(sizes, reverse=True)
    origin = {weight.name: weight.column for weight in found.weights}
    assert origin["job=cook"] == "job"
    assert origin["note: late"] == "note"
    assert origin["age"] == "age"
    with pytest.raises(DataFileError, match="rows are counted from 1 to 200"):
        explain(model, frame, rows=[201])
    with pytest.raises(ValueError, match="RankBoost has no weights by column"):
        explain(fit(frame, "y", ranker="RankBoost", check=0))


def test_words_add_up_to_what_their_text_adds():
    frame = typed(200)
    frame.loc[frame.index[3], "note"] = None
    model = fit(frame, "y", ranker="PairwiseRanker", params={"alpha": 0.01}, check=0)
    weight = {each.name: each.weight for each in explain(model).weights}
    for n_named in (2, 50):
        found = explain(model, frame, rows=[1, 2, 4], words=n_named).contributions
        for each in found:
            total = each["constant"] + sum(term["adds"] for term in each["columns"].values())
            assert_allclose(total, each["score"])
            note = each["columns"]["note"]
            assert_allclose(
                sum(note["words"].values()) + note["other_words"]["adds"], note["adds"], atol=1e-12
            )
            said = set() if note["value"] is None else set(note["value"].replace('"', "").split())
            assert set(note["words"]) <= said
            assert len(note["words"]) == min(n_named, len(said))
            assert note["other_words"]["count"] == max(0, len(said) - n_named)
            assert all(
                np.sign(adds) == np.sign(weight[f"note: {word}"])
                for word, adds in note["words"].items()
            )
        assert found[2]["columns"]["note"]["adds"] == 0.0


@pytest.mark.parametrize("scale", [0.5, 0.1, 1 / 3])
def test_fractions_are_grades(scale):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    grade = np.clip(np.round(X[:, 0] + 0.7 * rng.normal(size=150)), -1, 1) + 1
    whole, parts = (
        pd.DataFrame(X, columns=["a", "b"]).assign(y=grade * unit) for unit in (1.0, scale)
    )
    for ranker in ("Ranker", "RankNCG"):
        models = [fit(frame, "y", ranker=ranker, seed=1) for frame in (whole, parts)]
        assert list(models[1].summary["classes"].values()) == list(
            models[0].summary["classes"].values()
        )
        for one, other in zip(
            models[0].summary["measures"], models[1].summary["measures"], strict=True
        ):
            assert_allclose([one["value"], one["low"]], [other["value"], other["low"]])
        assert_allclose(evaluate(models[1], parts).y, parts["y"])
    assert list(fit(whole.assign(y=grade / 2), "y", check=0).summary["classes"]) == [
        "0",
        "0.5",
        "1",
    ]


def test_names_of_several_levels():
    frame = typed(120)
    levels = pd.MultiIndex.from_tuples(
        [("a", name) if name != "y" else ("y", "") for name in frame.columns]
    )
    model = fit(frame.set_axis(levels, axis=1), ("y", ""), drop=[("a", "seen")], check=0)
    assert set(model.columns) == {"a.age", "a.job", "a.city", "a.note"}
    assert model.target == "y"
    plain = fit(frame, "y", drop=["seen"], check=0)
    given = frame.set_axis(levels, axis=1).set_index([("a", "city"), ("a", "id")], drop=False)
    assert_allclose(evaluate(model, given).scores, evaluate(plain, frame).scores, atol=1e-8)
    ranked = rank_frame(model, given)
    assert ranked.columns[-2:].tolist() == [("score", ""), ("rank", "")]
    assert_allclose(ranked["score"], rank_frame(plain, frame)["score"], atol=1e-8)


def test_spaces_around_labels_are_no_label_of_their_own(tmp_path):
    frame = typed(200)
    expected = fit(frame, "y", check=0)
    rows = frame.index[frame["y"] == "yes"][:7]
    spaced = frame.assign(y=frame["y"].mask(frame.index.isin(rows), " yes"))
    for positive in (None, "yes", " yes"):
        model = fit(spaced, "y", positive=positive, check=0)
        assert model.summary["classes"]["yes"] == expected.summary["classes"]["yes"]
        assert (
            "labels in 'y' are read without the spaces around them: ' yes' (7) as 'yes'"
            in model.notes
        )
        assert_allclose(
            model.estimator.decision_function(frame), expected.estimator.decision_function(frame)
        )
    found = evaluate(expected, spaced)
    assert found.y.tolist() == (frame["y"] == "yes").tolist()
    assert any("' yes' (7) as 'yes'" in note for note in found.notes)


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
    note = f"age: 1 of 2,000 values is no number ('unknwon' in {place}): taken as missing"
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
        DataFileError, match=r"0xFC is 'ü' in cp1252.*name the encoding|0xE1 is 'á'"
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
    with pytest.raises(DataFileError, match="encoding applies to CSV and TSV files only"):
        fit(frame, "y", encoding="cp1252")


def test_rows_without_a_label_are_skipped_where_that_is_asked_for(tmp_path):
    frame = typed(200)
    unlabelled = frame.index % 10 == 3
    gaps = frame.assign(y=frame["y"].mask(unlabelled, np.where(frame.index % 20 == 3, " ", None)))
    gaps.assign(seen=gaps["seen"].astype(str)).to_csv(tmp_path / "a.csv", index=False)
    expected = fit(frame[~unlabelled], "y", check=0)
    with pytest.raises(
        DataFileError, match=r"20 of 200 rows have none\); give it, or skip"
    ) as caught:
        fit(gaps, "y")
    assert caught.value.arguments == {"skip_unlabelled": True}
    for data in (gaps, tmp_path / "a.csv"):
        model = fit(data, "y", skip_unlabelled=True, check=0)
        assert model.notes[0] == "20 of 200 rows without a label are left out"
        assert model.summary["rows"] == 180
        assert_allclose(
            model.estimator.decision_function(frame), expected.estimator.decision_function(frame)
        )
        found = evaluate(model, data)
        assert found.notes == ["20 of 200 rows without a label are left out"]
        assert found.measures == evaluate(expected, frame[~unlabelled]).measures
        with pytest.raises(DataFileError, match="is missing here"):
            evaluate(model, data, skip_unlabelled=False)
    # Lines are still those of the file.
    lines = (
        (tmp_path / "a.csv")
        .read_text()
        .replace(",yes\n", ",1\n")
        .replace(",no\n", ",0\n")
        .splitlines()
    )
    lines[-1] = lines[-1].rpartition(",")[0] + ",maybe"
    (tmp_path / "b.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataFileError, match=f"line {len(lines)}: mixed labels"):
        fit(tmp_path / "b.csv", "y", skip_unlabelled=True)
    with pytest.raises(DataFileError, match="no row has a label"):
        fit(frame.assign(y=None), "y", skip_unlabelled=True)
    X, y = np.eye(6), np.array([1.0, 0.0, np.nan, 1.0, 0.0, np.nan])
    assert fit(Matrix(X, y, None), skip_unlabelled=True, check=0).summary["rows"] == 4


def test_a_format_for_a_file_without_a_suffix(tmp_path):
    frame = table(100)
    frame.to_csv(tmp_path / "rows.dat", index=False)
    with pytest.raises(DataFileError, match="name its format"):
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


def test_plain_scikit_learn(tmp_path):
    frame = typed(300)
    with pytest.raises(ValueError, match="no transformer for dates"):
        to_sklearn(fit(frame, "y", check=0))
    model = fit(frame, "y", drop=["seen"], check=0)
    plain = to_sklearn(model)
    assert "forerank" not in set(_modules(plain))
    new = typed(100, seed=5).assign(
        job=lambda f: f["job"].where(f["job"] != "clerk", "no such job")
    )
    expected = model.estimator.decision_function(new)
    assert_allclose(plain.decision_function(new), expected, atol=1e-9)
    X = np.random.default_rng(0).normal(size=(60, 3))
    matrix = fit(Matrix(X, X[:, 0] > 0, None), check=0)
    assert_allclose(to_sklearn(matrix).decision_function(X), matrix.estimator.decision_function(X))
    with pytest.raises(ValueError, match="RankBoost is not linear"):
        to_sklearn(fit(frame, "y", ranker="RankBoost", check=0))


def _modules(value):
    """The top modules of an estimator and of all that it is made of."""
    yield type(value).__module__.split(".")[0]
    for part in getattr(value, "__dict__", {}).values():
        for each in part if isinstance(part, list | tuple) else [part]:
            for item in each if isinstance(each, tuple) else [each]:
                if hasattr(item, "get_params"):
                    yield from _modules(item)


@pytest.mark.parametrize("kind", ["table", "sparse", "dense"])
def test_onnx_gives_the_same_scores(tmp_path, kind):
    from onnxruntime import InferenceSession

    X = np.random.default_rng(0).normal(size=(100, 4))
    if kind == "table":
        frame = typed(300)
        model = fit(frame, "y", drop=["note"], check=0)
        days = (frame["seen"] - pd.Timestamp(0)) / pd.Timedelta(days=1)
        given = {
            "age": frame[["age"]].to_numpy(),
            "seen": days.to_numpy()[:, None],
            "job": frame[["job"]].fillna("").to_numpy(dtype=object),
            "city": frame[["city"]].to_numpy(dtype=object),
        }
        expected = model.estimator.decision_function(frame)
    else:
        rows = sp.csr_matrix(X) if kind == "sparse" else X
        model = fit(Matrix(rows, X[:, 0] > 0, None), check=0)
        given, expected = {"X": X}, model.estimator.decision_function(rows)
    assert save_onnx(model, tmp_path / "m.onnx") < 1e-6
    session = InferenceSession(tmp_path / "m.onnx")
    assert_allclose(session.run(["score"], given)[0][:, 0], expected, atol=1e-6)
    with pytest.raises(FileExistsError):
        save_onnx(model, tmp_path / "m.onnx")


def test_onnx_gives_the_probabilities_of_a_calibrated_model(tmp_path):
    from onnxruntime import InferenceSession

    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = X[:, 0] + rng.standard_normal(200) > 0.5
    model = fit(Matrix(X, y.astype(float), None), check=0, params={"calibrate": True})
    save_onnx(model, tmp_path / "m.onnx")
    session = InferenceSession(tmp_path / "m.onnx")
    score, probability = session.run(["score", "probability"], {"X": X})
    assert_allclose(score[:, 0], model.estimator.decision_function(X), atol=1e-9)
    assert_allclose(probability[:, 0], model.estimator.predict_proba(X)[:, 1], atol=1e-9)


def test_onnx_of_columns_with_the_names_of_results(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"score": rng.normal(size=50), "value_0": rng.normal(size=50)})
    model = fit(frame.assign(y=frame["score"] > 0), "y", check=0)
    save_onnx(model, tmp_path / "m.onnx")
    from onnxruntime import InferenceSession

    assert [out.name for out in InferenceSession(tmp_path / "m.onnx").get_outputs()] == [
        "forerank_score"
    ]


def test_texts_do_not_go_to_onnx(tmp_path):
    with pytest.raises(ValueError, match="text column 'note' cannot be exported"):
        save_onnx(fit(typed(), "y", check=0), tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_saved_models_explain_and_evaluate_alike(tmp_path):
    frame = typed(200)
    model = fit(frame, "y")
    save_model(model, tmp_path / "m.forerank")
    again = load_model(tmp_path / "m.forerank")
    assert explain(again, frame) == explain(model, frame)
    assert evaluate(again, frame).measures == evaluate(model, frame).measures
    assert again.summary == json.loads(json.dumps(model.summary))
    assert isinstance(again.estimator[-1], Ranker)
    assert again.summary["choice"]["method"] == model.estimator[-1].best_method_


def test_a_model_of_another_make_is_not_explained():
    """A file may hold any estimator that gives scores."""
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    bare = Model(PairwiseRanker().fit(X, y))
    for ask in (explain, to_sklearn, to_onnx):
        with pytest.raises(
            ValueError, match="the model is a PairwiseRanker that was not made by forerank fit"
        ):
            ask(bare)


def test_a_model_is_measured_by_what_it_was_chosen_for():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.standard_normal(200), "y": rng.integers(0, 2, 200)})
    model = fit(frame, "y", metric="recall@30", params={"alphas": 2}, check=0.0)
    names = [each.name for each in evaluate(model, frame).measures]
    assert "recall at 30" in names
    assert "recall at 10" in names
