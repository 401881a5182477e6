"""Evaluation of a model on labelled rows."""

import numpy as np
import pandas as pd
import pytest

from forerank.data.readers import Matrix
from forerank.exceptions import DataFileError
from forerank.metrics.estimates import estimate_measures
from forerank.metrics.probability_bounds import probability_bounds
from forerank.models.scoring import probability_function
from forerank.workflows.evaluate import evaluate
from forerank.workflows.fit import fit
from tables import typed_table


def test_labels_that_the_model_does_not_know():
    frame = pd.DataFrame({"x": np.arange(20.0), "y": np.where(np.arange(20) > 9, 1, -1)})
    model = fit(frame, "y", check=0)
    with pytest.raises(DataFileError, match="labels in 'y' that are neither '1' nor '-1': 0, 2"):
        evaluate(model, frame.assign(y=np.arange(20) % 3))
    grouped = fit(Matrix(np.eye(8), np.arange(8) % 2, np.arange(8) // 4), check=0)
    with pytest.raises(
        DataFileError, match="the model ranks within groups, and the file has no groups"
    ):
        evaluate(grouped, Matrix(np.eye(8), np.arange(8) % 2, None))
    by_alphabet = fit(frame.assign(y=np.where(frame["y"] > 0, "good", "poor")), "y", check=0)
    assert any("'poor' is taken for the positive label" in note for note in by_alphabet.notes)


def test_measures_by_the_values_of_a_column():
    frame = typed_table(400)
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


def test_a_model_is_measured_by_what_it_was_chosen_for():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.standard_normal(200), "y": rng.integers(0, 2, 200)})
    model = fit(frame, "y", metric="recall@30", params={"alphas": 2}, check=0.0)
    names = [each.name for each in evaluate(model, frame).measures]
    assert "recall at 30" in names
    assert "recall at 10" in names


def test_bounds_from_the_probabilities_of_a_calibrated_model():
    frame = typed_table(400)
    assert evaluate(fit(frame, "y", check=0), frame).bounds is None
    model = fit(frame, "y", params={"calibrate": True}, check=0)
    found = evaluate(model, frame)
    assert found.bounds is not None
    assert found.bounds.auc == pytest.approx(found.measures[0].value)
    p = probability_function(model)(found.scores)
    assert found.bounds == probability_bounds(found.y, p)
