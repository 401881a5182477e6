"""The arrays of an ensemble: scores, contributions, and checks of arrays from a file."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from forerank.trees import GrowthSettings, TrainingRows, TreeEnsemble, make_grower
from forerank.trees.ensemble import bit_set
from tree_rows import expected_value, mixed_rows, new_rows, shapley_values


def grown(backend="lightgbm", n_trees=12, n=400, categories=(3,), **settings):
    X, y = mixed_rows(n)
    rows = TrainingRows(X, y == 1, categories=categories)
    given = {"min_samples_leaf": 5, "max_features": 1.0, "learning_rate": 0.3, **settings}
    return make_grower(backend, rows, GrowthSettings(**given)).grow(n_trees)


@pytest.fixture(scope="module")
def ensemble():
    pytest.importorskip("lightgbm")
    made = grown()
    made.constant = 0.25
    assert made.has_categories
    assert made.problem() is None
    return made


class TestScores:
    # Four rows are scored together; the last ones alone.
    @pytest.mark.parametrize("n", [1, 4, 63])
    @pytest.mark.parametrize("categories", [True, False])
    def test_equal_the_rules_in_plain_python(self, ensemble, categories, n):
        ensemble = ensemble if categories else grown("histogram", categories=())
        assert ensemble.has_categories == categories
        X = new_rows(n)
        X[: n // 8, 3] = np.resize([-1.0, 31.0, 32.0, 1e300, np.inf, -np.inf], n // 8)
        expected = [
            ensemble.constant
            + sum(expected_value(ensemble, x, range(4), root) for root in ensemble.first_node[:-1])
            for x in X
        ]
        assert_allclose(ensemble.scores(X), expected, rtol=1e-13)

    def test_csr_float32_and_order(self, ensemble):
        X = new_rows(300)
        X[np.random.default_rng(0).random(X.shape) < 0.5] = 0.0
        scores = ensemble.scores(X)
        assert_array_equal(ensemble.scores(sp.csr_matrix(X)), scores)
        assert_array_equal(ensemble.scores(sp.csr_array(X)), scores)
        assert_array_equal(ensemble.scores(np.asfortranarray(X)), scores)
        assert_array_equal(ensemble.scores(np.repeat(X, 2, axis=0)[::2]), scores)
        single = X.astype(np.float32)
        assert_array_equal(ensemble.scores(single), ensemble.scores(single.astype(float)))

    def test_no_rows_have_no_scores(self, ensemble):
        for X in (np.empty((0, 4)), sp.csr_matrix((0, 4))):
            assert ensemble.scores(X).shape == (0,)

    def test_ranges_of_trees_add_up(self, ensemble):
        X = new_rows(50)
        scores = np.full(50, ensemble.constant)
        for begin, end in ((0, 5), (5, 6), (6, 12)):
            ensemble.add_scores(X, scores, begin, end)
        assert_array_equal(scores, ensemble.scores(X))
        staged = list(ensemble.staged_scores(X))
        assert len(staged) == 12
        assert_array_equal(staged[-1], scores)
        parts = [TreeEnsemble.empty(4, 0.25), ensemble.trees(0, 7), ensemble.trees(7, 12)]
        assert_array_equal(TreeEnsemble.joined(parts).scores(X), scores)

    def test_many_rows_on_several_threads(self, ensemble):
        X = new_rows(200_000)
        some = np.arange(0, 200_000, 997)
        assert_array_equal(ensemble.scores(X)[some], ensemble.scores(X[some]))

    def test_a_wrong_number_of_columns(self, ensemble):
        with pytest.raises(ValueError, match="rows of 4 columns; got 3"):
            ensemble.scores(np.zeros((2, 3)))

    def test_without_trees(self):
        empty = TreeEnsemble.empty(3, 1.5)
        assert empty.problem() is None
        assert_array_equal(empty.scores(np.zeros((2, 3))), [1.5, 1.5])
        assert_array_equal(empty.contributions(np.zeros((1, 3))), [[0, 0, 0, 1.5]])
        assert_array_equal(empty.importances(), np.zeros(3))


class TestContributions:
    @pytest.mark.parametrize("backend", ["lightgbm", "histogram"])
    def test_equal_the_definition(self, backend):
        pytest.importorskip("lightgbm")
        ensemble = grown(backend, n_trees=3)
        X = new_rows(25)
        expected = [shapley_values(ensemble, x) for x in X]
        assert_allclose(ensemble.contributions(X), expected, rtol=1e-9, atol=1e-12)

    def test_sum_to_the_scores(self, ensemble):
        X = new_rows(100)
        contributions = ensemble.contributions(X)
        assert_allclose(contributions.sum(axis=1), ensemble.scores(X), atol=1e-12)
        assert_array_equal(ensemble.contributions(sp.csr_matrix(X)), contributions)

    def test_importances_are_shares(self, ensemble):
        shares = ensemble.importances()
        assert shares.sum() == pytest.approx(1.0)
        assert (shares > 0.0).all()


class TestProblems:
    """Arrays of a file may point anywhere."""

    @pytest.mark.parametrize(
        ("name", "value", "problem"),
        [
            ("feature", 4, "columns which do not exist"),
            ("feature", -2, "columns which do not exist"),
            ("left", 0, "not in order"),
            ("right", 10_000, "not in order"),
            ("bits", 10_000, "categories which do not exist"),
        ],
    )
    def test_wrong_entries(self, name, value, problem):
        pytest.importorskip("lightgbm")
        ensemble = grown(n_trees=2)
        getattr(ensemble, name)[0] = value
        assert problem in ensemble.problem()

    @pytest.mark.parametrize(
        ("name", "array", "problem"),
        [
            ("feature", np.zeros(3), "not an array of int32"),
            ("threshold", [1.0], "not an array of float64"),
            ("value", np.zeros(2), "wrong number of nodes"),
            ("first_node", np.array([0, 10**9]), "wrong number of nodes"),
            ("first_node", np.array([], dtype=np.int64), "wrong number of nodes"),
            ("first_word", np.array([0, 10**9]), "wrong number of categories"),
            ("first_word", np.array([0, 0]), "wrong number of categories"),
        ],
    )
    def test_wrong_arrays(self, name, array, problem):
        pytest.importorskip("lightgbm")
        ensemble = grown(n_trees=2)
        setattr(ensemble, name, array)
        assert problem in ensemble.problem()


def test_bit_sets():
    assert_array_equal(bit_set([]), [0])
    assert_array_equal(bit_set([0, 5, 33]), [33, 2])
    assert_array_equal(bit_set([31, 63]), [1 << 31, 1 << 31])
