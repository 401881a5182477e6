"""The ONNX graph gives the scores and probabilities of the model."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from forerank.data.readers import Matrix
from forerank.models.onnx import save_onnx
from forerank.workflows.fit import fit
from tables import typed_table


@pytest.mark.parametrize("kind", ["table", "sparse", "dense"])
def test_onnx_gives_the_same_scores(tmp_path, kind):
    from onnxruntime import InferenceSession

    X = np.random.default_rng(0).normal(size=(100, 4))
    if kind == "table":
        frame = typed_table(300)
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
        save_onnx(fit(typed_table(), "y", check=0), tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())
