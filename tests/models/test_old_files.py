"""Model files written by version 0.1 load and give the same scores, also if classes have moved."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from forerank.models import load_model, read_card
from forerank.models.explain import explain

FILES = Path(__file__).parents[1] / "model_files" / "0.1"
# Estimators that version 0.1 did not have.
NEWER = {"AdditiveFeatures", "BoostedRanker", "CombinedRanker", "PNormPush"}
KNOWN = json.loads((FILES / "scores.json").read_text())


@pytest.mark.parametrize("name", KNOWN["scores"])
def test_a_file_of_version_0_1(name):
    path = FILES / f"{name}.forerank"
    assert read_card(path)["problems"] == []
    rows = pd.DataFrame(KNOWN["table"]) if name == "table" else np.array(KNOWN["X"])
    assert_allclose(
        load_model(path).estimator.decision_function(rows), KNOWN["scores"][name], rtol=1e-12
    )


@pytest.mark.parametrize("name", KNOWN["scores"])
def test_parameters_that_are_newer_have_their_defaults(name):
    estimator = load_model(FILES / f"{name}.forerank").estimator
    assert repr(clone(estimator)) == repr(estimator)


def test_every_estimator_has_a_file():
    from forerank import estimators

    assert {*estimators.__all__, "Ranker", "table"} - NEWER <= {
        path.stem for path in FILES.glob("*.forerank")
    }


def test_a_sampled_ranker_of_version_0_1_has_no_constant():
    ranker = load_model(FILES / "ActiveSamplingRanker.forerank").estimator
    assert ranker.fit_intercept is False
    assert clone(ranker).fit_intercept is False


def test_a_model_of_the_first_format_is_not_explained():
    model = load_model(FILES.parent / "format-1.forerank")
    for data in (None, FILES.parent / "rows.csv"):
        with pytest.raises(ValueError, match=r"as in the first format of model files, .* fit the"):
            explain(model, data)
