"""Ranking scores of fitted estimators."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier

from forerank.active import score_rows as public_score_rows
from forerank.estimators.scores import check_scores, score_rows


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, (X[:, 0] + rng.normal(size=60)).round().clip(-1, 1).astype(int)


def test_two_classes(rows):
    X, y = rows
    y = y > 0
    logistic = LogisticRegression().fit(X, y)
    assert_array_equal(score_rows(logistic, X), logistic.decision_function(X))
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    assert_array_equal(score_rows(forest, X), forest.predict_proba(X)[:, 1])
    assert_array_equal(score_rows(forest, X, pos_label=False), forest.predict_proba(X)[:, 0])
    assert_array_equal(
        score_rows(logistic, X, pos_label=False), -np.asarray(logistic.decision_function(X))
    )
    linear = LinearRegression().fit(X, y)
    assert_array_equal(score_rows(linear, X), linear.predict(X))
    assert public_score_rows is score_rows


def test_grades_are_scored_by_the_expected_grade(rows):
    X, y = rows
    for estimator in (LogisticRegression(), RandomForestClassifier(10, random_state=0)):
        p = estimator.fit(X, y).predict_proba(X)
        assert_allclose(score_rows(estimator, X), p[:, 2] - p[:, 0], atol=1e-15)
    # Without probabilities a decision value per class does not order rows; predictions do.
    ridge = RidgeClassifier().fit(X, y)
    assert_array_equal(score_rows(ridge, X), ridge.predict(X))
    words = LogisticRegression().fit(X, np.array(["a", "b", "c"])[y + 1])
    with pytest.raises(ValueError, match="more than two classes need grades"):
        score_rows(words, X)


def test_scores_that_are_refused(rows):
    X, y = rows
    with pytest.raises(TypeError, match="object cannot score rows: it has none of"):
        score_rows(object(), X)
    with pytest.raises(ValueError, match="pos_label=7 is not a valid label"):
        score_rows(LogisticRegression().fit(X, y > 0), X, pos_label=7)
    with pytest.raises(ValueError, match="The score of row 1 is nan"):
        check_scores([1.0, np.nan])
    with pytest.raises(ValueError, match=r"shape \(1, 2\); expected one score per row"):
        check_scores([[1.0, 2.0]])
