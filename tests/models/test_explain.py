"""Explanations: the terms of columns and words sum to the score."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from commands import run
from forerank import PairwiseRanker, Ranker
from forerank.exceptions import DataFileError
from forerank.models import Model, load_model, save_model
from forerank.models.explain import explain
from forerank.models.onnx import to_onnx
from forerank.models.sklearn_export import to_sklearn
from forerank.workflows.evaluate import evaluate
from forerank.workflows.fit import fit
from forerank.workflows.report import make_report
from tables import typed_table


def test_contributions_add_up_to_the_score():
    frame = typed_table(200)
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
    frame = typed_table(200)
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


def test_saved_models_explain_and_evaluate_alike(tmp_path):
    frame = typed_table(200)
    model = fit(frame, "y")
    save_model(model, tmp_path / "m.forerank")
    again = load_model(tmp_path / "m.forerank")
    assert explain(again, frame) == explain(model, frame)
    assert evaluate(again, frame).measures == evaluate(model, frame).measures
    assert again.summary == json.loads(json.dumps(model.summary))
    assert isinstance(again.estimator[-1], Ranker)
    assert again.summary["choice"]["method"] == model.estimator[-1].best_method_


def texts_and_ages(n=200):
    """Rows of which a text tells as much about the label as a number."""
    frame, rng = typed_table(n), np.random.default_rng(3)
    frame = frame[["age", "note"]].assign(age=frame["age"].fillna(40.0))
    score = frame["note"].str.count("late") + frame["age"] / 20 + rng.normal(size=n)
    return frame.assign(y=np.where(score > score.median(), "yes", "no"))


ADDITIVE = {"families": "additive", "cv": 2, "alphas": 3}


def assert_spread_of_what_a_text_adds(model, frame):
    """The importance of a text is the standard deviation of its contributions."""
    found = explain(model, frame, rows=range(1, len(frame) + 1))
    adds = [row["columns"]["note"]["adds"] for row in found.contributions]
    assert_allclose(found.importance["note"], np.std(adds))
    assert (set(found.importance), found.without_importance) == ({"age", "note"}, [])
    assert list(found.importance.values()) == sorted(found.importance.values(), reverse=True)


@pytest.mark.parametrize("search_rows", [None, 100])
def test_importance_of_texts_in_additive_models(search_rows):
    frame = texts_and_ages()
    params = {**ADDITIVE, "search_rows": search_rows}
    model = fit(frame, "y", params=params, check=0, seed=1)
    assert model.summary["choice"]["family"] == "additive"
    assert_spread_of_what_a_text_adds(model, frame)


def test_importance_of_texts_in_the_model_of_a_report():
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    frame = texts_and_ages()
    model = make_report(frame, "y", params=ADDITIVE, folds=2).model
    assert_spread_of_what_a_text_adds(model, frame)


def test_models_without_the_spread_of_their_texts_show_the_words(tmp_path):
    """As in files of early versions."""
    model = fit(texts_and_ages(), "y", params=ADDITIVE, check=0)
    save_model(model, tmp_path / "new.forerank")
    assert "The most important of 2 columns\n" in run("explain", tmp_path / "new.forerank").stdout
    del model.summary["text_spread"]
    save_model(model, tmp_path / "old.forerank")
    shown = run("explain", tmp_path / "old.forerank", "--weights 3").stdout
    assert "The most important of 1 column, without the text note" in shown
    assert "weights of words in note" in shown
    largest = [each for each in explain(model).weights if each.column == "note"]
    assert [each.name in shown for each in largest] == [True] * 3 + [False] * (len(largest) - 3)
    printed = json.loads(run("explain", tmp_path / "old.forerank", "--json").stdout)
    assert (set(printed["importance"]), printed["without_importance"]) == ({"age"}, ["note"])


def test_a_model_of_another_make_is_not_explained():
    """A file may hold any estimator that gives scores."""
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    bare = Model(PairwiseRanker().fit(X, y))
    for ask in (explain, to_sklearn, to_onnx):
        with pytest.raises(
            ValueError, match="the model is a PairwiseRanker that forerank did not fit"
        ):
            ask(bare)
