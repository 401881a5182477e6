"""TopPush and TopRanker: threshold, solvers, warm starts."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import StandardScaler

from forerank import (
    TopPush,
    TopRanker,
)
from forerank.data import datasets
from solver_problems import problem
from top_rows import data


def test_top_push_is_the_threshold_at_the_maximum():
    X, y = data()
    push = TopPush(tol=1e-8).fit(X, y)
    assert_array_equal(push.coef_, TopRanker(tol=1e-8).fit(X, y).coef_)
    assert_allclose(push.coef_, TopRanker(at=1, tol=1e-8).fit(X, y).coef_, atol=1e-3)
    scores = push.decision_function(X)
    assert push.threshold_ == pytest.approx(scores[y == 0].max())


def test_solvers_agree():
    X, y = data()
    newton, nesterov = (
        TopPush(alpha=0.3).fit(X, y),
        TopPush(alpha=0.3, solver="nesterov").fit(X, y),
    )
    assert newton.objective_ == pytest.approx(nesterov.objective_, rel=2e-4)


def test_many_columns_and_positives_take_another_way(monkeypatch):
    X, y = data()
    monkeypatch.setattr("forerank.solvers.top_newton._LARGEST_MATRIX", 3)
    for loss in ("squared_hinge", "logistic"):
        without = TopPush(loss, alpha=0.3).fit(X, y)
        monkeypatch.undo()
        expected = TopPush(loss, alpha=0.3).fit(X, y)
        monkeypatch.setattr("forerank.solvers.top_newton._LARGEST_MATRIX", 3)
        assert without.n_iter_ > expected.n_iter_
        assert without.objective_ == pytest.approx(expected.objective_, rel=3e-4)


@pytest.mark.parametrize("alpha", [1e-4, 1e-8])
@pytest.mark.parametrize("grouped", [False, True])
def test_columns_of_any_size_reach_the_tolerance(alpha, grouped):
    """Columns from 1 to 1e6, where the matrices of Newton's method are beyond double precision."""
    X, y = problem(spread=6)
    groups = {"qid": np.arange(y.size) % 3} if grouped else {}
    ranker = TopPush("hinge", alpha=alpha).fit(X, y, **groups)
    assert ranker.optimality_ <= 1e-4
    # With so small a penalty the minimum is nearly that without one, in any units.
    other = TopPush("hinge", alpha=alpha).fit(problem(spread=0)[0], y, **groups)
    assert ranker.objective_ == pytest.approx(other.objective_, rel=1e-3)


def test_warm_start():
    X, y = data()
    ranker = TopPush(warm_start=True, tol=1e-6).fit(X, y)
    steps = ranker.n_iter_
    assert ranker.fit(X, y).n_iter_ < steps


@pytest.mark.parametrize("name", ["diabetes", "spambase"])
def test_gap_on_real_data(name):
    try:
        found = datasets.load(name)
    except FileNotFoundError:
        pytest.skip("FORERANK_DATA is not set")
    X, y = StandardScaler().fit_transform(found.X), found.y > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for alpha in (1.0, 1e-2, 1e-4):
            assert TopPush(alpha=alpha, tol=1e-6).fit(X, y).optimality_ <= 1e-6
