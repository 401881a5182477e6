"""The mean of several models as one ensemble of trees."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from forerank import BoostedRanker
from forerank.trees import TreeEnsemble, has_lightgbm, model_of_mean
from tree_rows import mixed_rows, new_rows

BACKENDS = ["histogram", *(["lightgbm"] if has_lightgbm() else [])]


def ranker(**params):
    given = {"rounds": 12, "n_jobs": 1, "random_state": 3, "categorical_features": [3]}
    return BoostedRanker(**{**given, "max_features": 0.5, **params})


@pytest.fixture(scope="module", params=BACKENDS)
def fitted(request):
    X, y = mixed_rows(400)
    return ranker(n_models=3, backend=request.param).fit(X, y)


def models_of(fitted):
    return [model_of_mean(fitted.ensemble_, k, 3) for k in range(3)]


def test_scores_are_the_mean_of_models_that_differ(fitted):
    X = new_rows(200)
    scores = [model.scores(X) for model in models_of(fitted)]
    assert_allclose(fitted.decision_function(X), np.mean(scores, axis=0), atol=1e-12)
    assert np.abs(scores[0] - scores[1]).max() > 1e-3
    assert fitted.n_rounds_ == 12
    assert fitted.ensemble_.n_trees == 36
    assert fitted.ensemble_.problem() is None


def test_the_first_model_is_the_one_without_a_mean(fitted):
    X = new_rows(200)
    data = mixed_rows(400)
    alone = ranker(backend=fitted.backend_).fit(*data)
    assert_allclose(models_of(fitted)[0].scores(X), alone.decision_function(X), atol=1e-12)


def test_stages_are_means_of_stages(fitted):
    X = new_rows(50)
    stages = np.array(list(fitted.staged_decision_function(X)))
    single = [np.array(list(model.staged_scores(X))) for model in models_of(fitted)]
    assert_allclose(stages, np.mean(single, axis=0), atol=1e-12)
    data = mixed_rows(400)
    later = ranker(n_models=3, backend=fitted.backend_).iter_scores(*data, X, [2, 5, 12])
    assert_allclose(list(later), stages[[1, 4, 11]], atol=1e-12)


def test_contributions_sum_to_the_scores(fitted):
    X = new_rows(30)
    total = fitted.contributions(X).sum(axis=1)
    assert_allclose(total, fitted.decision_function(X), atol=1e-10)


def test_a_model_without_splits_left_has_trees_of_one_leaf():
    """In two columns of twelve rows, models end after different numbers of rounds."""
    pytest.importorskip("lightgbm")
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 3, dtype=float)
    y = X[:, 0].astype(int)
    made = ranker(
        n_models=4, rounds=3000, min_samples_leaf=6, learning_rate=1.0, l2=0.0, max_leaf_nodes=2,
        categorical_features=None,
    ).fit(X, y)  # fmt: skip
    assert made.ensemble_.n_trees == 4 * made.n_rounds_
    scores = [model_of_mean(made.ensemble_, k, 4).scores(X) for k in range(4)]
    assert_allclose(made.decision_function(X), np.mean(scores, axis=0), rtol=1e-12)


def test_rounds_are_chosen_with_one_model():
    X, y = mixed_rows(300)
    one, three = (ranker(rounds="cv", cv=3, max_rounds=60, n_models=n).fit(X, y) for n in (1, 3))
    assert three.n_rounds_ == one.n_rounds_
    assert_array_equal(three.validation_curve_["values"], one.validation_curve_["values"])


@pytest.mark.parametrize("backend", BACKENDS)
def test_warm_start_continues_every_model(backend):
    X, y = mixed_rows(400)
    data = new_rows(100)
    warm = ranker(n_models=3, rounds=5, warm_start=True, backend=backend, max_features=1.0)
    warm.fit(X, y).set_params(rounds=12).fit(X, y)
    cold = ranker(n_models=3, backend=backend, max_features=1.0).fit(X, y)
    # LightGBM reads the scores of the first trees as float64, and grows trees in float32.
    assert_allclose(warm.decision_function(data), cold.decision_function(data), atol=1e-4)
    with pytest.raises(ValueError, match="keeps the trees of n_models=3; got n_models=2"):
        warm.set_params(n_models=2).fit(X, y)
    with pytest.raises(ValueError, match="keeps the 12 rounds of the last fit"):
        warm.set_params(n_models=3, rounds=11).fit(X, y)


def test_chosen_trees():
    made = TreeEnsemble.joined([TreeEnsemble.empty(4, 0.5), *[grown().ensemble_] * 2])
    X = new_rows(60)
    n = made.n_trees // 2
    order = np.random.default_rng(0).permutation(2 * n)
    picked = made.chosen(order, 0.25)
    assert picked.problem() is None
    expected = np.array([made.trees(k, k + 1).scores(X) for k in order]).sum(axis=0) / 4
    assert_allclose(picked.scores(X), expected, atol=1e-12)
    nothing = made.chosen(np.arange(0))
    assert nothing.n_trees == 0
    assert_array_equal(nothing.scores(X), np.zeros(60))


def grown():
    return ranker(rounds=7, backend=BACKENDS[-1]).fit(*mixed_rows(300))
