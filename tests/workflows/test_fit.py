"""Fitting, measuring and explaining tables and matrices: what is found is what the parts give one
by one.
"""

import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import LogisticRegression

from forerank import BoostedRanker, Ranker, compare
from forerank.data.readers import Matrix
from forerank.data.transformers import NumberColumns
from forerank.exceptions import DataFileError
from forerank.metrics.estimates import estimate_measures
from forerank.metrics.registry import measure_named, metric_function
from forerank.models.explain import explain
from forerank.models.ranked_list import rank_frame
from forerank.selection import final_fit
from forerank.workflows.evaluate import evaluate
from forerank.workflows.fit import fit
from forerank.workflows.rankers import make_ranker, ranker_names
from forerank.workflows.report import make_report
from tables import typed_table


def test_the_check_is_a_fit_on_the_other_rows():
    frame = typed_table(400)
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
    frame = typed_table(400)
    linear = {"families": "linear"}
    model = fit(frame, "y", metric="ap", check=0.25, seed=3, params=linear)
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
    frame = typed_table(1500)
    params = {"search_rows": 600, "alphas": 4, "families": "linear"}
    model = fit(frame, "y", params=params, check=0)
    chosen = model.estimator[-1]
    assert "the choice was made on 600 of 1,500 rows" in chosen.reason_
    alone = Ranker(
        methods=[chosen.best_method_], alphas=[chosen.best_alpha_], scale=False, random_state=0
    )
    y = (frame["y"] == "yes").to_numpy()
    assert_allclose(chosen.coef_, alone.fit(model.estimator[0].transform(frame), y).coef_)


def test_of_many_groups_some_are_looked_at_once():
    frame = typed_table(1500)
    rng = np.random.default_rng(0)
    frame["group"] = rng.integers(0, 150, 1500)
    # Few rows of a class, of which a sample of groups may have more than it needs.
    frame.loc[rng.random(1500) < 0.6, "y"] = "no"
    params = {"search_rows": 600, "alphas": 3, "families": "linear"}
    chosen = fit(frame, "y", group="group", params=params, check=0).estimator[-1]
    assert chosen.search_rows == 600
    assert chosen.reason_.count("Note that") == 1
    assert re.search(r"the choice was made on 1,\d+ of 1,500 rows", chosen.reason_)


@pytest.mark.parametrize("family", ["linear", "additive"])
def test_a_large_matrix_is_fitted_block_by_block(family, monkeypatch):
    frame = typed_table(1500)
    params = {"search_rows": 600, "alphas": 4, "families": family}
    in_memory = fit(frame, "y", params=params)
    monkeypatch.setattr(final_fit, "_LARGEST_MATRIX", 0)
    in_blocks = fit(frame, "y", params=params)
    first, second = (model.estimator[-1] for model in (in_memory, in_blocks))
    assert (first.best_method_, first.best_alpha_) == (second.best_method_, second.best_alpha_)
    # Both fits stop at gradients of a thousandth of that at zero weights.
    size = np.linalg.norm(first.coef_)
    assert np.linalg.norm(first.coef_ - second.coef_) < 0.01 * size
    assert_allclose(second.intercept_, first.intercept_, atol=0.02 * size)
    for one, other in zip(
        in_memory.summary["measures"], in_blocks.summary["measures"], strict=True
    ):
        assert one["name"] == other["name"]
        assert one["value"] == pytest.approx(other["value"], abs=5e-3)
    assert_allclose(
        in_memory.estimator.decision_function(frame),
        in_blocks.estimator.decision_function(frame),
        atol=0.02 * size,
    )


def test_what_was_asked_for_is_measured():
    model = fit(typed_table(400), "y", metric="recall@30")
    found = {each["name"]: each for each in model.summary["measures"]}
    assert found["recall at 30"]["depth"] == "of 400 rows (first 7.5 %)"
    # The rows kept aside, the choice and the model speak of the same share of a list.
    assert "recall at 30 of 400 rows (first 7.5 %)" in model.summary["choice"]["reason"]
    assert model.estimator[-1].list_rows == 400


@pytest.mark.parametrize(("metric", "group"), [("ndcg@5", "group"), ("pauc@0.05", None)])
def test_a_measure_that_is_not_a_usual_one_is_the_first(metric, group):
    frame = typed_table(600)
    frame["group"] = np.random.default_rng(0).integers(0, 40, 600)
    params = {"families": "linear", "alphas": 2}
    model = fit(frame, "y", metric=metric, group=group, params=params)
    title = measure_named(metric).title
    assert [each["name"] == title for each in model.summary["measures"]][:2] == [True, False]
    found = evaluate(model, frame).measures[0]
    assert found.name == title
    scores = model.estimator.decision_function(frame)
    qid = None if group is None else frame["group"].to_numpy()
    expected = metric_function(metric)(frame["y"] == "yes", scores, qid=qid)
    assert found.value == pytest.approx(expected)
    assert found.low <= found.value <= found.high
    assert evaluate(model, frame, k=[7]).measures[0].name == ("AUC" if group else title)
    usual = fit(frame, "y", group=group, params=params).summary["measures"]
    assert usual[0]["name"] == "AUC"


def test_the_choice_on_some_rows_looks_as_deep_as_that_on_all():
    model = fit(
        typed_table(1500),
        "y",
        metric="recall@150",
        params={"search_rows": 600, "alphas": 4},
        check=0,
    )
    assert "recall at 150 of 1,500 rows (first 10 %)" in model.summary["choice"]["reason"]
    assert "the choice was made on 600 of 1,500 rows" in model.summary["choice"]["reason"]


def test_grades_are_chosen_for_by_pairs():
    frame = typed_table(300).assign(y=np.arange(300) % 3)
    assert fit(frame, "y", check=0).summary["choice"]["metric"] == "wmw"
    assert fit(frame, "y", metric="ndcg@10", check=0).summary["choice"]["metric"] == "ndcg@10"


def test_what_is_odd_is_said():
    frame = typed_table(300).assign(
        told=lambda f: (f["y"] == "yes") * 1.0 + 0.01 * np.arange(300) / 300
    )
    found = fit(frame, "y", check=0).summary["warnings"]
    assert any("'told'" in sentence for sentence in found)


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


def test_infinite_values_of_matrices():
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = X[:, 0] > 0
    X[0, 1], X[1, 1] = np.inf, np.nan
    assert np.isfinite(
        explain(fit(Matrix(X, y, None), ranker="PairwiseRanker", check=0)).weights[0].weight
    )
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


def test_what_is_wrong_is_said(tmp_path):
    frame = typed_table(60)
    with pytest.raises(DataFileError, match="no column 'Y'; did you mean 'y'"):
        fit(frame, "Y")
    with pytest.raises(
        DataFileError, match="no target was given; choose one of the columns id, age"
    ):
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
    with pytest.raises(ValueError, match="AATPRanker does not rank within groups"):
        fit(frame, "y", ranker="AATPRanker", group="city")
    with pytest.raises(DataFileError, match="no column can be used"):
        fit(frame[["id", "y"]], "y")
    with pytest.raises(ValueError, match="check=1"):
        fit(frame, "y", check=1.0)
    with pytest.raises(DataFileError, match="it has no groups"):
        fit(Matrix(np.eye(4), np.array([0, 1, 0, 1]), None), group="qid")
    with pytest.raises(DataFileError, match="a matrix has its own labels"):
        fit(Matrix(np.eye(4), np.array([0, 1, 0, 1]), None), "y")
    frame.assign(city=None).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(DataFileError, match="line 2: the group column 'city' is empty here"):
        fit(tmp_path / "a.csv", "y", group="city")


def test_categories_of_tables_are_those_of_their_types():
    pytest.importorskip("lightgbm")
    frame = typed_table(120)
    for given in (["city"], [0], "from_dtype"):
        trees = BoostedRanker(rounds=2, categorical_features=given)
        for function, arguments in (
            (fit, {"ranker": trees}),
            (fit, {"ranker": "BoostedRanker", "params": {"categorical_features": given}}),
            (make_report, {"ranker": trees}),
            (compare, {"methods": [trees]}),
        ):
            with pytest.raises(DataFileError, match=r"categorical_features=.*types=") as found:
                function(frame, "y", **arguments)
            assert found.value.arguments == {"category": "COLUMN"}


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
    frame = typed_table(200)
    model = fit(frame, "y", ranker=LogisticRegression(C=0.5))
    assert model.summary["measures"][0]["value"] > 0.6
    assert len(explain(model, frame).contributions) == 5


def test_names_of_several_levels():
    frame = typed_table(120)
    levels = pd.MultiIndex.from_tuples(
        [("a", name) if name != "y" else ("y", "") for name in frame.columns]
    )
    options = {"ranker": "PairwiseRanker", "check": 0}
    model = fit(frame.set_axis(levels, axis=1), ("y", ""), drop=[("a", "seen")], **options)
    assert set(model.columns) == {"a.age", "a.job", "a.city", "a.note"}
    assert model.target == "y"
    plain = fit(frame, "y", drop=["seen"], **options)
    given = frame.set_axis(levels, axis=1).set_index([("a", "city"), ("a", "id")], drop=False)
    assert_allclose(evaluate(model, given).scores, evaluate(plain, frame).scores, atol=1e-8)
    ranked = rank_frame(model, given)
    assert ranked.columns[-2:].tolist() == [("score", ""), ("rank", "")]
    assert_allclose(ranked["score"], rank_frame(plain, frame)["score"], atol=1e-8)
