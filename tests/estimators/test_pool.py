"""PoolRanker: the problem it solves, its classes, and its mean row."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.utils.estimator_checks import parametrize_with_checks

from forerank import PairwiseRanker
from forerank.active import PoolRanker
from labelling import small_pool


@parametrize_with_checks([PoolRanker()])
def test_pool_ranker_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "storage", [np.asarray, sp.csr_matrix, sp.csr_array], ids=["array", "csr_matrix", "csr_array"]
)
@pytest.mark.parametrize("warm", [False, True])
def test_pool_ranker_solves_the_problem_with_the_mean_row_spelled_out(storage, warm):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40)) * (rng.uniform(size=(60, 40)) < 0.1)
    y = np.full(60, -1)
    y[:9] = [1, 1, 1, 0, 0, 0, 0, 0, 0]
    labelled = np.flatnonzero(y != -1)
    spelled = np.vstack([X[labelled], X[9:].mean(axis=0)])
    weight = np.append(np.ones(9), 5.0 * 6 / 3)
    explicit = PairwiseRanker(alpha=1 / (0.5 * 9), tol=1e-10)
    explicit.fit(spelled, np.append(y[labelled], 0), sample_weight=weight)
    ranker = PoolRanker(0.5, unread_weight=5.0, tol=1e-10, warm_start=warm)
    if warm:
        ranker.fit(storage(X), np.where(np.arange(60) < 7, y, -1))
    ranker.fit(storage(X), y)
    assert ranker.optimality_ <= 1e-10
    assert ranker.objective_ == pytest.approx(explicit.objective_, rel=1e-9)
    assert_allclose(ranker.coef_, explicit.coef_, atol=1e-7)
    assert_allclose(
        ranker.decision_function(storage(X)), X @ ranker.coef_[0] + ranker.intercept_[0]
    )


def test_pool_ranker_without_unlabelled_rows_is_a_pairwise_ranker():
    X, y = small_pool()
    pairs = PairwiseRanker(alpha=1 / (0.1 * 120), tol=1e-9).fit(X, y)
    for labels, options in (
        (y, {}),
        (np.where(y == 1, 1, -1), {}),
        (np.append(y, [-1] * 0), {"unread_weight": 0.0}),
    ):
        assert_allclose(
            PoolRanker(tol=1e-9, **options).fit(X, labels).coef_, pairs.coef_, atol=1e-8
        )
    some = np.where(np.arange(120) < 100, y, -1)
    left_out = PairwiseRanker(alpha=1 / (0.1 * 100), tol=1e-9).fit(X[:100], y[:100])
    assert_allclose(
        PoolRanker(tol=1e-9, unread_weight=0.0).fit(X, some).coef_, left_out.coef_, atol=1e-8
    )
    with pytest.raises(ValueError, match="one class only, 1"):
        PoolRanker().fit(X, np.where(y == 1, 1, -1) * 0 + 1)
    with pytest.raises(ValueError, match="loss must be one of"):
        PoolRanker(loss="hinge").fit(X, y)


def test_pool_ranker_is_scored_on_the_rows_that_have_a_label():
    X, y = small_pool()
    labels = np.where(np.arange(120) < 60, y, -1)
    ranker = PoolRanker().fit(X, labels)
    assert ranker.score(X, labels) == ranker.score(X[:60], y[:60])


def test_labels_of_small_integer_types():
    y = np.full(300, -1, dtype=np.int8)
    y[::3], y[1] = 100, -100
    X = np.random.default_rng(0).normal(size=(300, 3))
    ranker = PoolRanker().fit(X, y)
    assert ranker.classes_.tolist() == [-100, 100]
    assert ranker.classes_.dtype == np.int8
    assert PoolRanker().fit(X, (X[:, 0] > 0).astype(np.uint64)).predict(X).dtype == np.uint64


def test_the_mean_of_the_unlabelled_rows_is_exact_beside_an_outlier():
    X = np.random.default_rng(0).uniform(size=(50, 2))
    X[0, 0] = 1e17
    for rows in (X, sp.csr_matrix(X)):
        assert_allclose(
            PoolRanker()._mean_of_unlabelled(rows, np.array([0, 1])), X[2:].mean(axis=0)
        )
