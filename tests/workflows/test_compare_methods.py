"""Methods of a comparison by name, and arguments that are refused."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    StratifiedKFold,
)
from sklearn.preprocessing import StandardScaler

from comparisons import PAIRS, rows
from forerank import Ranker, compare, metrics
from forerank.selection.ranker import method_names


def test_names_of_methods():
    X, y = rows(100)
    found = compare(
        X,
        y,
        [
            "sklearn.linear_model.LogisticRegression(C=0.1, class_weight={0: 1.0, 1: 2.0})",
            "sklearn.linear_model.LogisticRegression",
            "pairwise_ranker(loss=logistic)",  # a shell removes quotation marks
            "logistic-regression-cv(Cs=3)",
            "sklearn.ensemble.HistGradientBoostingClassifier(max_iter=5)",
            Ridge(),
        ],
        cv=2,
    )
    assert found.errors() == []
    assert found.methods[:2] == [
        "LogisticRegression(C=0.1, class_weight={0: 1.0, 1: 2.0})",
        "LogisticRegression",
    ]
    assert found.methods[-1] == "Ridge"
    assert "warnings" not in found.records[3]


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (
            "PairwiseRankr",
            "no ranker 'PairwiseRankr'. Did you mean PairwiseRanker.* Other methods are logistic",
        ),
        ("PairwiseRanker(alfa=1)", "no parameter 'alfa'. Did you mean 'alpha'"),
        ("PairwiseRanker(1)", "parameters have names"),
        ("PairwiseRanker(alpha=__import__('os'))", "cannot be read"),
        ("PairwiseRanker(alpha=1", "cannot be read"),
        ("PairwiseRanker(alpha=1).fit(a=1)", "cannot be read"),
        ("PairwiseRanker(**{'alpha': 1})", "cannot be read"),
        ("nowhere.at.All", "nowhere.at.All cannot be imported"),
        ("sklearn.linear_model.NoRegression", "sklearn.linear_model has no NoRegression"),
        ("sklearn.metrics.roc_auc_score", "not an estimator of scikit-learn"),
        ("sklearn.linear_model.Ridge(beta=1)", "Ridge: .*beta"),
        (Ridge, "is not an estimator"),
    ],
)
def test_methods_that_cannot_be(method, words):
    with pytest.raises(ValueError, match=words):
        compare(*rows(50), [method])


def test_ranker_and_its_methods():
    X, y = rows()
    found = compare(
        X,
        y,
        {"ap": "Ranker(metric='ap', alphas=3)", "one": "pairwise-logistic"},
        cv=2,
    )
    assert found.errors() == []
    assert "ap chose " in str(found)
    by_method = {each["method"]: each for each in found.records}
    assert by_method["one"]["chosen"] == "pairwise-logistic"
    # As Ranker by itself on the scaled rows of the fold.
    train, test = list(StratifiedKFold(2, shuffle=True, random_state=0).split(X, y))[1]
    scaler = StandardScaler().fit(X[train])
    ranker = Ranker("auc", methods=["pairwise-logistic"], random_state=0, scale=False).fit(
        scaler.transform(X[train]), y[train]
    )
    expected = metrics.roc_auc(y[test], ranker.decision_function(scaler.transform(X[test])))
    assert by_method["one"]["value"] == pytest.approx(expected)
    assert by_method["one"]["alpha"] == ranker.best_alpha_
    assert compare(X, y, ["pointwise-logistic"], cv=2).choices() == []
    usual = compare(X, y, cv=2)
    assert usual.methods == ["Ranker", "logistic-regression-cv"]
    chosen = next(each for each in usual.records if each["method"] == "Ranker")
    assert chosen["alpha"] > 0
    assert chosen["chosen"] in method_names("auc")
    line = usual.choices()[0]
    assert line.startswith("Ranker chose ")
    assert line in str(usual)
    grades, fast = np.digitize(X[:, 0], [-1, 0, 1]), "Ranker(families='linear', alphas=3)"
    assert compare(X, grades, [fast], cv=2, metric="ndcg@10").errors() == []


def test_an_old_name_of_a_method_is_accepted_with_a_warning():
    X, y = rows()
    options = {"metric": "auc", "cv": 2}
    with pytest.warns(FutureWarning, match="'rows, logistic' is now 'pointwise-logistic'"):
        old = compare(X, y, ["rows, logistic"], **options)
    assert old.methods == ["pointwise-logistic"]
    assert old.values() == compare(X, y, ["pointwise-logistic"], **options).values()


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_a_rival_that_is_not_installed_is_named(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ValueError, match=f"{name} is not installed: pip install {name}"):
        compare(*rows(50), [name])


def test_bad_input():
    X, y = rows(50)
    for arguments, words in (
        ((X,), "pass its labels"),
        ((X, y[:9], [PAIRS]), "50 rows"),
        ((pd.DataFrame(X), y[:9], [PAIRS]), "50 rows"),
        ((X, y, "Ranker"), "give a list of names"),
        ((X, y, []), "methods is empty"),
        ((X, y, [Ridge(), Ridge()]), "two methods 'Ridge'"),
    ):
        with pytest.raises(ValueError, match=words):
            compare(*arguments)
    for options, words in (
        ({"cv": 1}, "1 is not a number of folds"),
        ({"seeds": 0}, "seeds must be an integer >= 1; got 0"),
        ({"metric": "f1"}, "f1"),
        ({"sample_weight": -np.ones(50)}, "sample_weight"),
        ({"drop": ["a"]}, "have no names"),
    ):
        with pytest.raises(ValueError, match=words):
            compare(X, y, [PAIRS], **options)
    with pytest.raises(ValueError, match="all labels"):
        compare(X, np.ones(50), [PAIRS])
