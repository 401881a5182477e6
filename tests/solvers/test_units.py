"""Fits and their certificates do not depend on the units of the columns."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from forerank import PairwiseRanker, PointwiseRanker, RankNCG, RankNet, metrics
from forerank.design import make_design
from forerank.objectives import AllPairs, Pointwise
from forerank.solvers import bundle, newton
from forerank.solvers.units import column_units
from oracles import pair_units

SMOOTH = ("exponential", "logistic", "squared", "squared_hinge")
RANKERS = [
    *(PairwiseRanker(loss) for loss in SMOOTH),
    *(PointwiseRanker(loss) for loss in SMOOTH),
    RankNCG(),
    RankNet(hidden_units=0),
    RankNet(hidden_units=3, random_state=0),
]


def problem(n=600, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ [1.0, 0.5, 0.3, 0.0, 0.0] + 0.7 * rng.standard_normal(n) > 0.5


@pytest.mark.parametrize("ranker", RANKERS, ids=repr)
class TestTimestamp:
    """A column of seconds since 1970 beside columns of unit size."""

    def test_the_other_columns_are_learnt(self, ranker):
        X, y = problem()
        X[:, 4] = 1.7e9 + 1e7 * X[:, 4]
        fitted = clone(ranker).set_params(alpha=1e-4).fit(X, y)  # a fit that stops short would warn
        plain = clone(ranker).set_params(alpha=1e-4).fit(problem()[0], y)
        assert fitted.optimality_ <= ranker.tol
        assert_allclose(fitted.objective_, plain.objective_, rtol=1e-2)
        assert roc_auc_score(y, fitted.decision_function(X)) > 0.9

    @settings(max_examples=10)
    @given(
        size=st.lists(st.floats(-9, 9), min_size=5, max_size=5),
        shift=st.lists(st.floats(-1e5, 1e5), min_size=5, max_size=5),
    )
    def test_other_units_change_nothing(self, ranker, size, shift):
        if getattr(ranker, "hidden_units", 0):
            pytest.skip("a network has many minima, and rounding decides which is found")
        X, y = problem()
        scale = 10.0 ** np.array(size)
        free = clone(ranker).set_params(alpha=0.0)  # the penalty alone has a unit
        fitted, plain = clone(free).fit(scale * (X + shift), y), free.fit(X, y)
        assert fitted.optimality_ <= ranker.tol
        assert_allclose(fitted.objective_, plain.objective_, rtol=1e-3)
        scores, before = fitted.decision_function(scale * (X + shift)), plain.decision_function(X)
        assert abs(roc_auc_score(y, scores) - roc_auc_score(y, before)) < 1e-3


@pytest.mark.parametrize("storage", [np.ascontiguousarray, np.asfortranarray, sp.csr_matrix])
def test_steps_are_those_of_the_problem_in_other_units(storage):
    X, y = problem(n=20_000)
    scale = 10.0 ** np.array([-6.0, 3.0, 0.0, 7.0, -2.0])
    F, penalty = AllPairs(y, "squared_hinge"), np.array([1e-3, 1e-2, 1e-4, 1e-3, 1.0])
    plain = newton(F, make_design(storage(X)), penalty, tol=1e-5)
    other = newton(F, make_design(storage(X * scale)), penalty * scale**2, tol=1e-5)
    assert other.n_iter == plain.n_iter
    assert_allclose(other.w * scale, plain.w, rtol=1e-6, atol=1e-9)
    assert_allclose(other.optimality, plain.optimality, rtol=1e-4)
    assert_allclose(other.scores, X * scale @ other.w, rtol=1e-9, atol=1e-9)


def test_units_are_root_mean_squares_over_pairs_and_over_rows():
    X, y = problem(n=300)
    X = X * [1.0, 10.0, 0.1, 3.0, 1e6] + [0.0, 5.0, 100.0, -7.0, 1e9]
    assert_allclose(
        column_units(AllPairs(y, "hinge"), make_design(X)).unit, pair_units(X, y), rtol=1e-9
    )
    rows = Pointwise(y, "logistic")
    assert_allclose(
        column_units(rows, make_design(X)).unit, np.sqrt((X**2).mean(axis=0)), rtol=1e-9
    )
    with_intercept = column_units(rows, make_design(X, intercept=True))
    assert_allclose(with_intercept.unit, [*X.std(axis=0), 1.0], rtol=1e-7)
    assert_allclose(with_intercept.mean, [*X.mean(axis=0), 0.0], rtol=1e-9)


def test_weights_go_out_and_in_again():
    X, y = problem(n=300)
    for intercept in (False, True):
        design = make_design(X + 3.0, intercept=intercept)
        units = column_units(Pointwise(y, "logistic"), design)
        w = np.random.default_rng(1).standard_normal(5 + intercept)
        assert_allclose(units.weights_of_columns(units.to_standardised(w)), w, rtol=1e-12)
        assert_allclose(units.design.scores(units.to_standardised(w)), design.scores(w), rtol=1e-12)


def test_columns_of_few_rows_are_seen_beyond_the_sample():
    X, y = problem(n=100_000)
    rare = np.zeros(100_000)
    rare[:30] = 1e6
    X[:, 4] = rare
    for matrix in (X, sp.csr_matrix(X)):
        unit = column_units(AllPairs(y, "logistic"), make_design(matrix)).unit[4]
        assert rare.std() / 4.0 < unit < 4e6  # in a sparse matrix that of the stored entries


def test_a_column_far_from_zero_keeps_its_variation():
    X, y = problem(n=100_000)
    X[:, 4] = 1.7e9 + X[:, 4]
    for n in (300, 100_000):
        unit = column_units(AllPairs(y[:n], "logistic"), make_design(X[:n])).unit
        assert_allclose(unit[4] / unit[3], 1.0, rtol=0.1)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "exponential"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("storage", [np.ascontiguousarray, np.asfortranarray, sp.csr_matrix])
def test_what_the_units_know_at_zero_scores(loss, weighted, storage):
    """Gradient and products of differences over the pairs, also of columns far from zero."""
    X, y = problem(n=500)
    X[:, 3] = (X[:, 3] > 1.0) + 1e4
    weight = np.random.default_rng(1).integers(1, 4, 500).astype(float) if weighted else None
    objective = AllPairs(y, loss, weight=weight)
    units = column_units(objective, make_design(storage(X)))
    assert_allclose(
        units.reference_gradient(objective, units.design),
        units.design.adjoint(objective.gradient_at_zero()),
        rtol=1e-9,
        atol=1e-11,
    )
    repeated = np.repeat(np.arange(500), 1 if weight is None else weight.astype(int))
    upper, lower = ((X - units.mean)[repeated[y[repeated] == side]] for side in (True, False))
    differences = (upper[:, None] - lower).reshape(-1, 5) / units.unit
    expected = differences.T @ differences / len(differences)
    assert_allclose(units.curvature, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("mean", [0.0, 1e150, 1e160])
def test_a_column_whose_square_overflows_keeps_its_unit(mean):
    X, y = problem(n=500)
    Z = X.copy()
    Z[:, 1] = mean + 1e150 * X[:, 1]
    here, base = (column_units(AllPairs(y, "logistic"), make_design(M)) for M in (Z, X))
    assert_allclose(here.unit / base.unit, [1.0, 1e150, 1.0, 1.0, 1.0], rtol=1e-5)
    assert_allclose(here.curvature, base.curvature, rtol=1e-4, atol=1e-5)


def test_what_is_common_to_a_group_has_no_unit():
    """Between groups a column may vary by as much as it likes: only pairs inside a group are
    compared.
    """
    rng = np.random.default_rng(3)
    X, _ = problem(n=2000)
    group = np.arange(2000) // 20
    y = X @ [1.0, 0.5, 0.3, 0.0, 0.0] + 0.7 * rng.standard_normal(2000) > 0.5
    apart = X + [0.0, 0.0, 1.0, 0.0, 0.0] * (1e6 * rng.standard_normal(100))[group][:, None]
    for storage in (np.asarray, sp.csr_matrix):
        plain = PairwiseRanker(alpha=0.0).fit(storage(X), y, qid=group)
        fitted = PairwiseRanker(alpha=0.0).fit(storage(apart), y, qid=group)
        assert_allclose(fitted.coef_, plain.coef_, rtol=1e-2, atol=1e-2)
        assert fitted.optimality_ <= fitted.tol


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4])
def test_the_gap_holds_and_is_not_empty(loss, alpha):
    X, y = problem()
    rough = PairwiseRanker(loss, alpha=alpha, tol=0.05).fit(X, y)
    fine = PairwiseRanker(loss, alpha=alpha, tol=1e-9).fit(X, y)
    assert rough.objective_ - fine.objective_ <= rough.gap_ + 1e-12 * fine.objective_
    assert fine.gap_ <= 1e-6 * fine.objective_ < np.inf
    hinge = PairwiseRanker("hinge", alpha=alpha).fit(X, y)
    assert_allclose(hinge.gap_, hinge.optimality_ * hinge.objective_)
    assert PointwiseRanker(loss, alpha=alpha, fit_intercept=False).fit(X, y).gap_ < np.inf


def test_there_is_no_gap_without_a_penalty():
    X, y = problem()
    assert PairwiseRanker(alpha=0.0).fit(X, y).gap_ == np.inf
    assert PointwiseRanker(alpha=1.0).fit(X, y).gap_ == np.inf


def test_the_certificate_of_an_intercept_is_measured_by_the_best_constant():
    """With one positive row in a hundred the constant alone would make up most of the gradient at
    zero.
    """
    X, _ = problem(n=5000)
    y = X @ [1.0, 0.5, 0.3, 0.0, 0.0] + 0.7 * np.random.default_rng(5).standard_normal(5000) > 3.2
    fitted = PointwiseRanker(alpha=1e-4, tol=1e-2).fit(X, y)
    fine = PointwiseRanker(alpha=1e-4, tol=1e-8).fit(X, y)
    assert_allclose(fitted.objective_, fine.objective_, rtol=1e-3)


def test_hinge_planes_meet_their_gap_in_other_units():
    X, y = problem()
    for size in (1e-3, 1e3, 1e5):
        scaled = X * [1.0, 1.0, 1.0, 1.0, size]
        found = bundle(AllPairs(y, "hinge"), make_design(scaled), 1e-4, tol=1e-3)
        assert found.converged


def test_constant_columns_teach_nothing():
    X, y = np.full((60, 2), 1e12 / 3.0), np.arange(60) % 2
    for ranker in (PairwiseRanker(), PointwiseRanker(), RankNCG()):
        with pytest.warns(
            UserWarning, match=f"{type(ranker).__name__}: the optimum gives all rows the same score"
        ):
            ranker.fit(X, y)
        assert ranker.optimality_ == 0.0
        assert metrics.roc_auc(y, ranker.decision_function(X)) == 0.5


def test_single_precision():
    X, y = problem(n=3000)
    X = (X * [1.0, 1e4, 1e-4, 1.0, 1.0]).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = PairwiseRanker().fit(X, y)
    assert roc_auc_score(y, fitted.decision_function(X)) > 0.9
