"""Boosted trees in model files, explanations and ONNX graphs."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import Pipeline

from forerank import BoostedRanker
from forerank.data.readers import Matrix
from forerank.exceptions import ModelFileError
from forerank.models import Model, load_model, read_card, save_model
from forerank.models.explain import explain
from forerank.models.onnx import save_onnx, to_onnx
from forerank.models.sklearn_export import to_sklearn
from forerank.workflows.evaluate import evaluate
from forerank.workflows.fit import fit
from tables import typed_table
from tree_rows import mixed_rows, new_rows

pytest.importorskip("lightgbm")
PARAMS = {"rounds": 15, "n_jobs": 1}


def fitted(frame, **params):
    return fit(frame, "y", ranker="BoostedRanker", params={**PARAMS, **params}, check=0)


class TestFiles:
    def test_a_file_needs_no_library_of_trees(self, tmp_path, monkeypatch):
        frame = typed_table(200)
        model = fitted(frame)
        save_model(model, tmp_path / "m.forerank")
        monkeypatch.setitem(sys.modules, "lightgbm", None)
        loaded = load_model(tmp_path / "m.forerank")
        assert_array_equal(
            loaded.estimator.decision_function(frame), model.estimator.decision_function(frame)
        )
        types = read_card(tmp_path / "m.forerank")["types"]
        assert "forerank.trees.ensemble.TreeEnsemble" in types
        assert not [name for name in types if "lightgbm" in name]
        assert evaluate(loaded, frame).measures[0].value > 0.7

    @pytest.mark.parametrize("categories", [None, [3]])
    def test_every_parameter_and_attribute(self, tmp_path, categories):
        X, y = mixed_rows(200)
        ranker = BoostedRanker(
            rounds="cv", max_rounds=10, n_jobs=1, random_state=0, categorical_features=categories
        ).fit(X, y)
        save_model(Model(ranker), tmp_path / "m.forerank")
        loaded = load_model(tmp_path / "m.forerank").estimator
        new = new_rows(100)
        assert_array_equal(loaded.decision_function(new), ranker.decision_function(new))
        assert_array_equal(loaded.predict_proba(new), ranker.predict_proba(new))
        assert_array_equal(loaded.contributions(new), ranker.contributions(new))
        assert_array_equal(loaded.validation_curve_["mean"], ranker.validation_curve_["mean"])

    @pytest.mark.parametrize(
        ("name", "entry", "reason"),
        [
            ("left", 10**6, "not in order"),
            ("right", -5, "not in order"),
            ("feature", 77, "columns which do not exist"),
            ("bits", 10**6, "categories which do not exist"),
        ],
    )
    def test_nodes_that_point_elsewhere_are_refused(self, tmp_path, name, entry, reason):
        model = fitted(typed_table(100))
        getattr(model.estimator[-1].ensemble_, name)[0] = entry
        save_model(model, tmp_path / "m.forerank")
        with pytest.raises(ModelFileError, match=f"{reason}; the file is damaged or malicious"):
            load_model(tmp_path / "m.forerank")


class TestExplanations:
    def test_contributions_add_up_to_the_score(self):
        frame = typed_table(200)
        model = fitted(frame)
        found = explain(model, frame, rows=[1, 150])
        scores = model.estimator.decision_function(frame)
        for each, row in zip(found.contributions, (0, 149), strict=True):
            total = found.intercept + sum(term["adds"] for term in each["columns"].values())
            assert_allclose([total, each["score"]], scores[row])
            assert set(each["columns"]) == {"age", "job", "seen", "note", "city"}
        assert found.kind == "importance"
        assert sum(each.weight for each in found.weights) == pytest.approx(1.0)
        assert {each.column for each in found.weights} == {"age", "job", "seen", "note", "city"}

    def test_importances_of_a_matrix(self):
        X, y = mixed_rows(200)
        X = np.nan_to_num(X)
        model = fit(Matrix(X, y, None), ranker="BoostedRanker", params=PARAMS, check=0)
        assert {each.name for each in explain(model).weights} == {f"column {k}" for k in range(4)}

    def test_other_exports_say_what_they_need(self):
        model = fitted(typed_table(100))
        with pytest.raises(ValueError, match="no class that holds given trees; export boosted"):
            to_sklearn(model)


class TestONNX:
    def run(self, path, given):
        from onnxruntime import InferenceSession

        return InferenceSession(path).run(["score"], given)[0][:, 0]

    @pytest.mark.parametrize("backend", ["lightgbm", "histogram"])
    def test_a_table(self, tmp_path, backend):
        frame = typed_table(300).drop(columns=["note", "seen"])
        model = fitted(frame, backend=backend)
        assert model.estimator[-1].ensemble_.has_categories
        save_onnx(model, tmp_path / "m.onnx")
        new = frame.head(50).copy()
        new.loc[new.index[:10], "age"] = np.nan
        new.loc[new.index[5:15], "city"] = "no such city"
        new.loc[new.index[12:20], "job"] = None
        given = {
            "age": new[["age"]].to_numpy(dtype=float),
            "job": new[["job"]].fillna("").to_numpy(dtype=object),
            "city": new[["city"]].fillna("").to_numpy(dtype=object),
        }
        found = self.run(tmp_path / "m.onnx", given)
        assert_allclose(found, model.estimator.decision_function(new), atol=1e-6)

    def test_dates_and_texts_are_refused(self, tmp_path):
        with pytest.raises(ValueError, match="The text column 'note' cannot be") as refused:
            to_onnx(fitted(typed_table(100).drop(columns="seen")))
        assert "families" not in str(refused.value)  # they cannot export texts either
        with pytest.raises(ValueError, match="choose the families linear or additive"):
            to_onnx(fitted(typed_table(100).drop(columns="note")))

    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    def test_a_matrix(self, tmp_path, kind):
        X, y = mixed_rows(300)
        X = np.nan_to_num(X)
        rows = sp.csr_matrix(X) if kind == "sparse" else X
        model = fit(Matrix(rows, y, None), ranker="BoostedRanker", params=PARAMS, check=0)
        save_onnx(model, tmp_path / "m.onnx")
        found = self.run(tmp_path / "m.onnx", {"X": X})
        assert_allclose(found, model.estimator.decision_function(rows), atol=1e-6)

    def test_missing_and_unknown_codes(self, tmp_path):
        X, y = mixed_rows(300)
        ranker = BoostedRanker(categorical_features=[3], random_state=0, **PARAMS).fit(X, y)
        model = Model(Pipeline([("columns", "passthrough"), ("ranker", ranker)]))
        graph = to_onnx(model)
        (tmp_path / "m.onnx").write_bytes(graph.SerializeToString())
        new = new_rows(400, n_codes=200)
        found = self.run(tmp_path / "m.onnx", {"X": new})
        assert_allclose(found, ranker.decision_function(new), atol=1e-6)

    def test_trees_without_a_split(self):
        X, y = mixed_rows(60)
        with pytest.warns(UserWarning, match="same score"):
            ranker = BoostedRanker(min_samples_leaf=50, **PARAMS).fit(X, y)
        model = Model(Pipeline([("columns", "passthrough"), ("ranker", ranker)]))
        with pytest.raises(ValueError, match="no split"):
            to_onnx(model)
