"""Labels: two classes or grades, the positive one, and labels that cannot be used."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from commands import run
from forerank.cli.output import class_counts
from forerank.data.problem import read_problem
from forerank.data.readers import Matrix
from forerank.exceptions import DataFileError
from forerank.workflows.evaluate import evaluate
from forerank.workflows.fit import fit
from tables import typed_table


def test_a_grade_of_one_row_does_not_stop_the_measuring():
    rng = np.random.default_rng(0)
    y = np.zeros(300)
    y[:20], y[20] = 1, 2
    frame = pd.DataFrame({"x": y + rng.normal(size=300), "y": y})
    assert fit(frame, "y").summary["kept_aside"] == 60


LABELS = [
    (["1", "0", "1", "yes"], None, "line 5: mixed labels in 'y': 'yes' among '0', '1', 'yes'"),
    (
        ["a", "b", "c", "a"],
        None,
        "'y' has 3 different labels ('a', 'b', 'c'); set the parameter positive",
    ),
    (["a", "a", "a", "a"], None, "all labels in 'y' are 'a'"),
    (["a", "", "b", "a"], None, "line 3: the label 'y' is missing here (1 of 4 rows has none)"),
    (["a", "b", "a", "  "], None, "line 5: the label 'y' is missing here (1 of 4 rows has none)"),
    (["a", "b", "b", "a"], "c", "no label in 'y' is 'c'; choose one of 'a', 'b'"),
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


def test_the_only_other_label_is_named():
    frame = pd.DataFrame({"x": [3.0, 1.0, 2.0, 5.0], "y": ["good", "bad", "bad", "good"]})
    model = fit(frame, "y", positive="bad", check=0)
    assert model.summary["classes"] == {"bad": 2, "good": 2}
    assert model.summary["negative"] == "good"
    three = frame.assign(y=["good", "bad", "fair", "good"])
    classes = fit(three, "y", positive="bad", check=0).summary["classes"]
    assert list(classes.items()) == [("bad", 1), ("fair", 1), ("good", 2)]


MANY = [f"l{k % 13}" for k in range(260)]


@pytest.mark.parametrize(
    ("labels", "positive", "classes", "shown", "others"),
    [
        (
            ["bad", "good", "not bad", "bad"] * 20,
            "bad",
            {"bad": 40, "good": 20, "not bad": 20},
            "positive 'bad' (40), negative 'good' (20), 'not bad' (20)",
            "good or not bad",
        ),
        (
            [3, 1, 2, 1] * 20,
            "2",
            {"2": 20, "1": 40, "3": 20},
            "positive '2' (20), negative '1' (40), '3' (20)",
            "1 or 3",
        ),
        (["a", "b"] * 40, "a", {"a": 40, "b": 40}, "positive 'a' (40), negative 'b' (40)", "b"),
        (
            MANY,
            "l4",
            {"l4": 20, "all 12 others": 240},
            "positive 'l4' (20), negative all 12 others (240)",
            "any other",
        ),
    ],
)
def test_all_negative_labels_are_named(labels, positive, classes, shown, others, tmp_path):
    x = np.random.default_rng(0).normal(size=len(labels))
    frame = pd.DataFrame({"x": x, "z": x**2, "y": labels})
    problem = read_problem(frame, "y", positive=positive)
    assert list(problem.labels.classes.items()) == list(classes.items())
    assert problem.labels.names == {True: positive, False: others}
    frame.to_csv(tmp_path / "a.csv", index=False)
    model, options = tmp_path / "m.forerank", f"-t y --positive {positive} -r PairwiseRanker"
    printed = run("fit", tmp_path / "a.csv", options, "-o", model).stdout
    assert shown in printed.splitlines()[0]
    assert shown in " ".join(run("inspect", model).stdout.split())
    found = json.loads(run("evaluate", model, tmp_path / "a.csv", "--json").stdout)
    assert found["classes"] == classes


def test_negative_labels_in_models_of_earlier_versions():
    """They have no names, but one entry that may be that of a label."""
    summary = {"positive": "bad", "negative": None, "classes": {"bad": 3, "not bad": 5}}
    assert class_counts(summary) == "positive 'bad' (3), negative all others (5)"
    summary |= {"negative": "not bad"}
    assert class_counts(summary) == "positive 'bad' (3), negative 'not bad' (5)"


def test_too_many_numbers_are_no_grades():
    frame = pd.DataFrame({"x": np.arange(100.0) % 7, "y": np.arange(100.0)})
    with pytest.raises(DataFileError, match="has 100 different numbers"):
        fit(frame, "y")
    with pytest.raises(ValueError, match="TopPush ranks two classes, and the labels are grades"):
        fit(frame.assign(y=frame["y"] % 3), "y", ranker="TopPush")


@pytest.mark.parametrize(
    ("scale", "ranker"),
    [(0.5, "RankNCG"), (0.1, "RankNCG"), (1 / 3, "RankNCG"), (1 / 3, "Ranker")],
)
def test_fractions_are_grades(scale, ranker):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    grade = np.clip(np.round(X[:, 0] + 0.7 * rng.normal(size=150)), -1, 1) + 1
    whole, parts = (
        pd.DataFrame(X, columns=["a", "b"]).assign(y=grade * unit) for unit in (1.0, scale)
    )
    models = [fit(frame, "y", ranker=ranker, seed=1) for frame in (whole, parts)]
    summaries = [model.summary for model in models]
    assert list(summaries[1]["classes"].values()) == list(summaries[0]["classes"].values())
    for one, other in zip(summaries[0]["measures"], summaries[1]["measures"], strict=True):
        assert_allclose([one["value"], one["low"]], [other["value"], other["low"]])
    assert_allclose(evaluate(models[1], parts).y, parts["y"])
    if scale == 0.5:
        assert list(summaries[1]["classes"]) == ["0", "0.5", "1"]


def test_spaces_around_labels_are_no_label_of_their_own(tmp_path):
    frame = typed_table(200)
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


def test_rows_without_a_label_are_skipped_where_that_is_asked_for(tmp_path):
    frame = typed_table(200)
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
        assert model.notes[0] == "20 of 200 rows without a label are excluded"
        assert model.summary["rows"] == 180
        assert_allclose(
            model.estimator.decision_function(frame), expected.estimator.decision_function(frame)
        )
        found = evaluate(model, data)
        assert found.notes == ["20 of 200 rows without a label are excluded"]
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
