"""Trees of LightGBM and scikit-learn, read into arrays, against the scores of these libraries."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from forerank.trees import GrowthSettings, TrainingRows, TreeEnsemble, choose_backend, make_grower
from forerank.trees.histogram import HistogramGrower
from tree_rows import mixed_rows, new_rows

SETTINGS = GrowthSettings(min_samples_leaf=5, learning_rate=0.2, max_features=1.0)


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for each other take long where other tests use the cores."""
    with threadpool_limits(1, user_api="openmp"):
        yield


def raw_scores(booster, X):
    return booster.predict(X, raw_score=True, num_threads=1)


class TestLightGBM:
    lightgbm = pytest.importorskip("lightgbm")

    def booster(self, X, y, n_trees=20, categories=(3,), **params):
        given = {
            "num_threads": 1,
            "verbosity": -1,
            "min_data_in_leaf": 5,
            "min_data_per_group": 5,
            **params,
        }
        data = self.lightgbm.Dataset(X, y, categorical_feature=list(categories))
        return self.lightgbm.train({"objective": "binary", **given}, data, n_trees)

    @pytest.mark.parametrize("n_codes", [3, 40, 300])
    def test_raw_scores_and_contributions(self, n_codes):
        from forerank.trees.lightgbm import read_booster

        booster = self.booster(*mixed_rows(800, n_codes=n_codes))
        ensemble = read_booster(booster)
        assert ensemble.problem() is None
        assert ensemble.n_trees == 20
        X = new_rows(500, n_codes=2 * n_codes)
        assert_array_equal(ensemble.scores(X), raw_scores(booster, X))
        theirs = booster.predict(X, pred_contrib=True, num_threads=1)
        assert_allclose(ensemble.contributions(X), theirs, atol=1e-12)
        gains = booster.feature_importance("gain")
        assert_allclose(ensemble.importances(), gains / gains.sum(), rtol=1e-4)

    def test_columns_without_missing_values(self):
        from forerank.trees.lightgbm import read_booster

        X, y = mixed_rows(400, missing=0.0)
        booster = self.booster(X, y, n_trees=10)
        X = new_rows(300)
        assert np.isnan(X).any(axis=0).all()
        assert_array_equal(read_booster(booster).scores(X), raw_scores(booster, X))

    def test_sparse_rows(self):
        from forerank.trees.lightgbm import read_booster

        X = sp.random(300, 30, 0.1, format="csr", random_state=0)
        y = np.ravel((X[:, 0] + X[:, 1]).toarray() > 0).astype(int)
        booster = self.booster(X, y, n_trees=5, categories=())
        assert_array_equal(read_booster(booster).scores(X), raw_scores(booster, X))

    def test_trees_without_a_split_among_others(self):
        from forerank.trees.lightgbm import read_model

        def trees(booster):
            text = booster.model_to_string()
            return text[text.index("\nTree=0") : text.index("end of trees")]

        X, y = mixed_rows(200)
        flat = self.booster(X, y, 1, min_data_in_leaf=150, boost_from_average=False)
        grown = self.booster(X, y, 3)
        ensemble = read_model(trees(flat) + trees(grown) + trees(flat), 4)
        assert ensemble.n_trees == 5
        assert ensemble.problem() is None
        expected = raw_scores(grown, X) + 2.0 * raw_scores(flat, X)
        assert_allclose(ensemble.scores(X), expected, rtol=1e-12)
        assert read_model(trees(flat), 4).n_trees == 1
        assert read_model("", 4).n_trees == 0

    def test_boosters_that_have_no_arrays(self):
        from forerank.trees.lightgbm import read_booster

        X, y = mixed_rows(300)
        with pytest.raises(ValueError, match="several scores"):
            read_booster(self.booster(X, y, 2, objective="multiclass", num_class=2))
        with pytest.raises(ValueError, match="linear leaves"):
            read_booster(self.booster(X, y, 2, linear_tree=True))
        with pytest.raises(ValueError, match="zeros for missing"):
            read_booster(self.booster(X, y, 2, zero_as_missing=True))

    def test_a_gradient_equals_the_own_objective(self):
        X, y = mixed_rows(500)

        def gradient(s):
            p = 1.0 / (1.0 + np.exp(-s))
            return p - y, p * (1.0 - p)

        start = 0.3
        own = TrainingRows(X, y == 1, categories=(3,), start=start)
        given = TrainingRows(X, y == 1, categories=(3,), start=start, gradient=gradient)
        a, b = (make_grower("lightgbm", rows, SETTINGS).grow(10) for rows in (own, given))
        assert_array_equal(a.feature, b.feature)
        assert_allclose(a.value, b.value, rtol=1e-4, atol=1e-6)  # gradients are single precision

    def test_rounds_in_parts_are_the_same_trees(self):
        X, y = mixed_rows(400)
        rows, drawn = TrainingRows(X, y == 1), GrowthSettings(max_features=0.5, seed=3)
        whole = make_grower("lightgbm", rows, drawn).grow(9)
        grower = make_grower("lightgbm", rows, drawn)
        parts = TreeEnsemble.joined([grower.grow(4), grower.grow(0), grower.grow(5)])
        for name in ("feature", "threshold", "left", "value", "first_node"):
            assert_array_equal(getattr(parts, name), getattr(whole, name))

    def test_growth_ends_where_no_split_is_left(self):
        X, y = mixed_rows(60)
        grower = make_grower("lightgbm", TrainingRows(X, y == 1), GrowthSettings())
        flat = make_grower(
            "lightgbm", TrainingRows(X, y == 1), GrowthSettings(min_samples_leaf=40)
        ).grow(10)
        assert grower.grow(3).n_trees == 3
        assert flat.n_trees <= 1
        assert_array_equal(flat.scores(X), np.zeros(60))


class TestHistogram:
    @pytest.mark.parametrize("categories", [(), (3,)])
    def test_raw_scores(self, categories):
        X, y = mixed_rows(500)
        X[:, 3] *= 3.0  # codes with gaps
        weight = np.random.default_rng(0).integers(1, 4, 500).astype(float)
        grower = HistogramGrower(TrainingRows(X, y == 1, weight, categories), SETTINGS)
        ensemble = TreeEnsemble.joined([grower.grow(5), grower.grow(7)])
        assert ensemble.problem() is None
        peer = HistGradientBoostingClassifier(
            learning_rate=0.2, max_iter=12, max_leaf_nodes=15, min_samples_leaf=5,
            l2_regularization=1.0, early_stopping=False, random_state=0,
            categorical_features=list(categories) or None,
        ).fit(X, y, weight)  # fmt: skip
        X = new_rows(300, n_codes=50)
        expected = peer.decision_function(X)
        assert_allclose(ensemble.scores(X) + grower.start, expected, atol=1e-10)

    def test_more_categories_than_scikit_learn_has_bins(self):
        X, y = mixed_rows(2000, n_codes=1000)
        grower = HistogramGrower(TrainingRows(X, y == 1, categories=(3,)), SETTINGS)
        assert not grower.grow(3).has_categories

    def test_other_losses(self):
        X, y = mixed_rows(100)
        rows = TrainingRows(X, y == 1, gradient=lambda s: (s, s))
        with pytest.raises(ValueError, match="logistic loss on rows only"):
            HistogramGrower(rows, SETTINGS)


class TestChoice:
    def test_of_the_library(self, monkeypatch):
        assert choose_backend("histogram") == "histogram"
        with pytest.raises(ValueError, match="backend must be one of 'auto', 'lightgbm', 'hist"):
            choose_backend("xgboost")
        monkeypatch.setitem(sys.modules, "lightgbm", None)
        assert choose_backend() == "histogram"
        with pytest.raises(ImportError, match=r"LightGBM cannot be imported .*forerank\[trees\]"):
            choose_backend("lightgbm")
        with pytest.raises(ValueError, match="loss='top' needs LightGBM, which cannot be imported"):
            choose_backend(logistic=False, loss="top")

    def test_lightgbm_where_it_is_installed(self):
        pytest.importorskip("lightgbm")
        assert choose_backend() == choose_backend("lightgbm") == "lightgbm"
        with pytest.raises(ValueError, match="loss='top' needs LightGBM; install it"):
            choose_backend("histogram", logistic=False, loss="top")
