"""Models of every family: files, lists, explanations, graphs, reports."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from commands import run
from forerank import BoostedRanker
from forerank.data.forms import ColumnForms, FormColumns
from forerank.data.problem import read_problem
from forerank.data.readers import Matrix
from forerank.models import load_model, save_model
from forerank.models.curves import column_curves
from forerank.models.explain import explain
from forerank.models.onnx import to_onnx
from forerank.models.ranked_list import rank_file, rank_frame
from forerank.models.scoring import score_parts, table_scores
from forerank.workflows.compare import compare
from forerank.workflows.fit import fit

FAMILIES = {
    "linear": "linear",
    "additive": "additive",
    "trees": "trees",
    "average": ["linear", "trees", "average"],
}


def table(n=400, seed=0):
    """Numbers, a category with a rare value, gaps, and a label that needs a line and a corner."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.standard_normal((n, 6)), columns=list("abcdef"))
    frame["job"] = rng.choice(["cook", "clerk", "smith"], n)
    corner = 3.0 * ((frame["e"] > 0) == (frame["f"] > 0.5))
    s = frame[["a", "b", "c", "d"]].sum(axis=1) + corner + (frame["job"] == "cook")
    frame["y"] = np.where(s + 0.3 * rng.standard_normal(n) > s.mean(), "yes", "no")
    frame.loc[::17, "a"] = np.nan
    return frame


@pytest.fixture(scope="module")
def models():
    params = {"cv": 3, "alphas": 3}
    return {
        name: fit(table(), "y", check=0, params={**params, "families": families})
        for name, families in FAMILIES.items()
    }


@pytest.mark.parametrize("family", FAMILIES)
class TestEachFamily:
    def test_it_was_selected(self, models, family):
        choice = models[family].summary["choice"]
        assert choice["family"] == family
        assert (choice["rounds"] is None) == (family in ("linear", "additive"))

    def test_a_file_gives_the_same_scores(self, models, family, tmp_path):
        model, new = models[family], table(50, seed=1).drop(columns="y")
        new.loc[3, "job"] = "no such job"
        save_model(model, tmp_path / "m.forerank")
        expected = model.estimator.decision_function(new)
        assert_allclose(
            load_model(tmp_path / "m.forerank").estimator.decision_function(new), expected
        )
        assert_allclose(table_scores(model)(new), expected, rtol=1e-9, atol=1e-9)
        assert_allclose(
            rank_frame(model, new).sort_index()["score"], expected, rtol=1e-9, atol=1e-9
        )

    def test_unknown_values_are_named(self, models, family, tmp_path):
        table(20, seed=2).assign(job="pilot").to_csv(tmp_path / "in.csv", index=False)
        listed = rank_file(models[family], tmp_path / "in.csv", tmp_path / "out.csv")
        assert listed.unknown_values == ["job"]

    def test_contributions_sum_to_the_score(self, models, family):
        new = table(30, seed=3).drop(columns="y")
        result = explain(models[family], new, rows=[1, 7])
        scores = models[family].estimator.decision_function(new)
        for each, row in zip(result.contributions, (0, 6), strict=True):
            total = each["constant"] + sum(part["adds"] for part in each["columns"].values())
            assert_allclose([total, each["score"]], scores[row], rtol=1e-9, atol=1e-9)
            assert set(each["columns"]) == set(new.columns)
        assert result.kind == ("weight" if family in ("linear", "additive") else "importance")

    def test_graphs_have_the_same_scores(self, models, family):
        runtime = pytest.importorskip("onnxruntime")
        new = table(60, seed=4).drop(columns="y")
        session = runtime.InferenceSession(to_onnx(models[family]).SerializeToString())
        inputs = {
            name: (new[[name]].fillna("") if name == "job" else new[[name]]).to_numpy()
            for name in [each.name for each in session.get_inputs()]
        }
        expected = models[family].estimator.decision_function(new)
        assert_allclose(session.run(None, inputs)[0][:, 0], expected, atol=2e-5)


def test_notes_say_how_the_columns_were_prepared(models):
    assert any("scaled" in note for note in models["linear"].notes)
    assert not any("scaled" in note for note in models["trees"].notes)
    assert any(note.startswith("for trees: ") for note in models["average"].notes)


def test_parts_of_an_average(models):
    parts, constant = score_parts(models["average"])
    assert [part.ensemble is None for part in parts] == [True, False]
    assert constant == 0.0
    assert isinstance(models["average"].estimator[0], FormColumns)
    with pytest.raises(ValueError, match="the model is an average of rankers"):
        column_curves(models["average"])
    with pytest.raises(ValueError, match="the model is boosted trees"):
        column_curves(models["trees"])
    assert len(column_curves(models["additive"])) == 7


def test_importances_of_an_average_are_said_to_be_those_of_its_trees(models, tmp_path):
    for name in ("trees", "average"):
        save_model(models[name], tmp_path / name)
        shown = run("explain", tmp_path / name).stdout
        assert ("importances in the trees of the average" in shown) == (name == "average")


def test_forms_of_the_same_rows():
    problem = read_problem(table(60), "y", positive="yes")
    order = np.arange(60)
    steps, X = problem.prepare(order, 40, ("plain", "trees", "tf-idf"))
    assert isinstance(X, ColumnForms)
    assert sorted(X.matrices) == ["plain", "trees"]
    assert X.shape[0] == len(X) == 60
    assert_allclose(X[40:].matrices["trees"], problem.prepare(order, 40, "trees")[1][40:])
    again = steps.transform(problem.rows)
    assert_allclose(again.matrices["plain"], X.matrices["plain"])
    assert steps.only(("plain",)) is steps.steps["plain"]
    assert not isinstance(problem.prepare(order, 40, ("plain",))[1], ColumnForms)


def test_word_counts_may_be_weighted():
    rng = np.random.default_rng(0)
    import scipy.sparse as sp

    rates = np.where(np.arange(300) < 20, 2.0, 0.05)
    counts = rng.poisson(rates, (300, 300))
    y = counts[:, 20:].sum(axis=1) > np.median(counts[:, 20:].sum(axis=1))
    model = fit(Matrix(sp.csr_matrix(counts), y, None), check=0, params={"cv": 3, "alphas": 4})
    tried = set(model.estimator[-1].cv_results_["method"])
    assert {"tf-idf: pointwise-logistic", "pointwise-logistic"} <= tried


def test_methods_are_compared_with_the_columns_in_their_forms():
    ranker = BoostedRanker(rounds=20, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        methods = {"trees": ranker, "lines": "pointwise-logistic"}
        result = compare(table(200), "y", methods, cv=3, positive="yes")
    rows = {row["method"]: row for row in result.table()}
    assert set(rows) == set(methods)
    assert not result.errors()
