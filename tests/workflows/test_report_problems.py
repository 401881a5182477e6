"""Reports on difficult data: warnings and absent figures instead of errors."""

import base64
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier

from forerank import PairwiseRanker, PointwiseRanker, metrics
from forerank.data.readers import Matrix
from forerank.metrics.top_k import Depth
from forerank.workflows.report import make_report
from reports import NASTY, Page, table


def test_an_interval_without_width_is_left_out():
    y = np.arange(200) % 4 == 0
    noise = np.random.default_rng(0).normal(size=200)
    data = pd.DataFrame({"a": 8.0 * y + noise, "y": y})
    found = make_report(data, "y", ranker="PairwiseRanker", folds=3)
    assert (
        "Of the first 10 rows all are positive; a random order would have about 2.5."
        in found.sentences
    )
    assert found.page["first_rows"][0]["interval"] == "–"
    assert "A dash: resampled rows do not vary" in found.page["measure_note"] or np.isnan(
        found.measures[0].low
    )


# --- What is odd is said ---


def test_a_leaky_column():
    data = table(200)[["age", "y"]]
    data["paid back"] = 1.0 * (data["y"] == "yes")
    found = make_report(data, "y", ranker="PairwiseRanker", folds=3)
    assert any("'paid back' alone" in line for line in found.warnings)
    assert any("nearly) perfect" in line and "paid back" in line for line in found.warnings)


def test_a_constant_score():
    found = make_report(
        table(100)[["age", "y"]], "y", ranker=DummyClassifier(strategy="prior"), folds=3
    )
    assert found.measures[0].value == 0.5
    assert "not significantly different from a random order" in found.sentences[1]
    assert any("they are not ranked" in line for line in found.warnings)
    assert "no weights by column" in Page(found.html()).text


def test_three_positives_in_ten_thousand_rows():
    rng = np.random.default_rng(0)
    y = np.zeros(10_000, dtype=int)
    y[[5, 500, 5000]] = 1
    found = make_report(
        pd.DataFrame({"a": rng.normal(size=y.size) + y, "y": y}), "y", ranker="PairwiseRanker"
    )
    assert found.held_out.n_folds == 3
    assert any(
        "here are 3 folds instead of 5, for 3 rows of the smaller class." in line
        for line in found.warnings
    )
    assert any("too few for intervals" in line for line in found.warnings)
    assert np.isnan(found.measures[0].low)
    assert "too few rows for a comparison with a random order" in found.sentences[1]
    assert "at least ten rows of each class" in Page(found.html()).text  # no calibration


def test_a_single_positive():
    data = pd.DataFrame({"a": np.arange(50) % 7 * 1.0, "y": np.arange(50) == 3})
    found = make_report(data, "y", ranker="PairwiseRanker")
    assert found.measures == []
    assert "could not be measured" in found.sentences[0]
    assert any("No row could be held out" in line for line in found.warnings)
    assert "no row could be held out" in Page(found.html()).text


def test_a_fold_of_one_class():
    data = table(120)[["age", "y"]].sort_values("y", ascending=False, ignore_index=True)
    fold = np.arange(120) // 20
    folds = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(6)]
    found = make_report(data, "y", ranker="PairwiseRanker", folds=folds)
    assert any("Rows of one class only in fold 1" in line for line in found.warnings)
    assert found.measures
    # Where nothing but one class is left to learn from, the fold goes without a model.
    positive = np.flatnonzero(data["y"] == "yes")
    two = [(np.setdiff1d(np.arange(120), positive), positive), *folds[:2]]
    found = make_report(data, "y", ranker="PairwiseRanker", folds=two)
    assert any("Fold 1 was excluded" in line for line in found.warnings)
    assert any("rows were in no fold that could be scored" in line for line in found.warnings)


def test_a_ranker_without_weights():
    forest = RandomForestClassifier(10, random_state=0)
    found = make_report(table(150)[["age", NASTY, "y"]], "y", ranker=forest, folds=3)
    assert "RandomForestClassifier is not linear" in Page(found.html()).text
    assert found.measures[0].value > 0.5


@pytest.mark.parametrize("grouped", [False, True])
def test_grades(grouped):
    rng = np.random.default_rng(0)
    grade = rng.integers(-1, 3, 240)
    data = pd.DataFrame(
        {"a": rng.normal(size=240) + grade, "grade": grade, "q": rng.integers(0, 12, 240)}
    )
    group = {"group": "q"} if grouped else {"drop": ["q"]}
    found = make_report(data, "grade", ranker="PairwiseRanker", metric="ndcg@10", folds=3, **group)
    assert found.measures[0].name == "NDCG at 10"
    qid = data["q"].to_numpy() if grouped else None
    values = []
    for k in range(3):
        rows = found.held_out.fold == k
        depth = 10 if grouped else Depth(10 * rows.sum() / 240)
        own = None if qid is None else qid[rows]
        values.append(
            metrics.ndcg(grade[rows] + 1, found.held_out.by_model[k][rows], k=depth, qid=own)
        )
    assert_allclose(found.measures[0].value, np.mean(values))
    text = Page(found.html()).text
    assert "the labels are grades" in text
    assert "4 grades" in found.sentences[0]
    with pytest.raises(ValueError, match="metric='ap' is for two classes"):
        make_report(data, "grade", ranker="PairwiseRanker", metric="ap", **group)


def test_many_grades():
    rng = np.random.default_rng(0)
    score = rng.normal(size=320)
    data = pd.DataFrame(
        {"a": score + rng.normal(size=320), "grade": np.argsort(np.argsort(score)) // 10}
    )
    found = make_report(data, "grade", ranker="PairwiseRanker", folds=3)
    assert "32 grades" in found.sentences[0]
    picture = found.page["figures"]["distributions"]
    assert "grade = 31" in picture.caption
    assert "grade = 30" not in picture.caption  # the lowest and the highest stand for the others
    legend = base64.b64decode(picture.uri.partition(",")[2]).decode()
    assert ("grade = 31" in legend, "grade = 30" in legend) == (True, False)


@pytest.mark.parametrize("metric", ["auc", "pauc@0.3"])
def test_groups(metric):
    data = table(300)[["age", NASTY, "y"]]
    data["q"] = np.arange(300) % 15
    found = make_report(data, "y", group="q", ranker="PairwiseRanker", metric=metric, folds=3)
    y = (data["y"] == "yes").to_numpy()
    value = found.measures[0].value
    if metric == "auc":
        assert_allclose(value, metrics.roc_auc(y, found.held_out.scores, qid=data["q"].to_numpy()))
    assert found.measures[0].low < value < found.measures[0].high
    for number in range(3):  # a group is in one fold
        assert data["q"][found.held_out.fold == number].nunique() == 5
    assert "within 15 groups" in found.sentences[0]
    text = Page(found.html()).text
    assert "ranked within groups" in text
    assert "mean over groups" in text
    one = make_report(data.assign(q=1), "y", group="q", ranker="PairwiseRanker")
    assert any("needs at least 2 groups; the data have 1" in line for line in one.warnings)


@pytest.mark.parametrize("kind", ["svm", "dense", "sparse"])
def test_matrices(kind, tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3 == 0
    X = np.where(rng.uniform(size=(150, 5)) < 0.6, rng.normal(size=(150, 5)) + y[:, None], 0.0)
    data = Matrix(sp.csr_matrix(X) if kind == "sparse" else X, y.astype(float), None)
    if kind == "svm":
        from sklearn.datasets import dump_svmlight_file

        data = tmp_path / "rows.svm"
        dump_svmlight_file(X, y.astype(int), str(data), zero_based=False)
    found = make_report(data, ranker=PointwiseRanker(), folds=3)
    assert found.measures[0].value > 0.6
    assert found.page["weights"]["rows"][0]["name"].startswith("column ")


def test_warnings_of_the_fits_are_told():
    found = make_report(table(100)[["age", "y"]], "y", ranker=Worrying(), folds=2)
    assert "While fitting: this is not quite right." in found.warnings


class Worrying(PairwiseRanker):
    def fit(self, X, y):
        import warnings

        warnings.warn("this is not quite right", UserWarning, stacklevel=2)
        return super().fit(X, y)


def test_a_fold_that_cannot_be_fitted_is_told():
    found = make_report(table(100)[["age", "y"]], "y", ranker=Failing(), folds=2)
    assert found.measures == []
    assert any("Fold 2 was excluded: cannot learn from 50 rows" in line for line in found.warnings)
    assert "Not drawn" in Page(found.html()).text


class Failing(PairwiseRanker):
    def fit(self, X, y):
        if y.size < 100:
            raise ValueError(f"cannot learn from {y.size} rows")
        return super().fit(X, y)


# --- What is refused ---


def test_bad_arguments():
    data = table(60)[["age", "y"]]
    with pytest.raises(ValueError, match=r"metric must be one of .* got 'f1'"):
        make_report(data, "y", ranker="PairwiseRanker", metric="f1")
    with pytest.raises(ValueError, match="1 is not a number of folds"):
        make_report(data, "y", ranker="PairwiseRanker", folds=1)
    with pytest.raises(ValueError, match="same rows in train and test"):
        make_report(data, "y", ranker="PairwiseRanker", folds=[(np.arange(60), np.arange(5))])
    with pytest.raises(ValueError, match="There is no ranker 'PairRanker'"):
        make_report(data, "y", ranker="PairRanker")
    with pytest.raises(ValueError, match="row without a method"):
        make_report(data, "y", ranker="PairwiseRanker", folds=2, comparison=[{"mean": 0.5}])


def test_a_missing_extra_is_named_before_the_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        ImportError, match=r"A report needs jinja2: pip install 'forerank\[report\]'"
    ):
        make_report("no such file.csv", "y")


def test_importing_it_loads_no_optional_package():
    code = "import sys, forerank.workflows.report, forerank.plots; "
    code += "print(*{'matplotlib', 'jinja2'} & set(sys.modules))"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
        == []
    )
