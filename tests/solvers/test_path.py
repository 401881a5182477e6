"""Paths of penalties: every point is what a fit of its own would give."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from forerank import (
    AATPRanker,
    CombinedSGDRanker,
    MAPRanker,
    OWPCRanker,
    PairwiseRanker,
    PartialAUCRanker,
    PointwiseRanker,
    RankNCG,
    SparseTopPush,
    TopPush,
    TopRanker,
)
from forerank.design import make_design
from forerank.metrics import roc_auc
from forerank.objectives import AllPairs
from forerank.solvers import Progress, newton
from forerank.solvers.path import NewtonPath, extrapolate

ALPHAS = np.geomspace(1.0, 1e-5, 6)


def data(n=600, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = X[:, 0] + 0.5 * X[:, 1] + rng.standard_normal(n) > 0.8
    return X, y


@pytest.mark.parametrize(
    "ranker",
    [
        PointwiseRanker("logistic", tol=1e-6),
        PointwiseRanker("logistic", fit_intercept=False, tol=1e-6),
        PointwiseRanker("exponential", tol=1e-6),
        PointwiseRanker("hinge", tol=1e-4),
        PointwiseRanker("squared_hinge", class_weight="balanced", tol=1e-6),
        PairwiseRanker("logistic", tol=1e-6),
        PairwiseRanker("squared_hinge", tol=1e-6),
        PairwiseRanker("exponential", tol=1e-6),
        PairwiseRanker("hinge", tol=1e-4),
        RankNCG(tol=1e-5),
        TopPush(tol=1e-6),
        TopPush("logistic", tol=1e-6),
        TopRanker(at=0.1, tol=1e-6),
        TopRanker(at=3, tol=1e-6),
        SparseTopPush(tol=1e-5),
        PartialAUCRanker(tol=1e-4),
        MAPRanker(tol=1e-3),
        OWPCRanker(tol=1e-3),
        AATPRanker(tol=1e-3),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:.*(same score|no better weights)")
def test_every_point_is_a_fit(ranker):
    X, y = data(200 if "MAP" in repr(ranker) or "AATP" in repr(ranker) else 600)
    X, alphas = (X, ALPHAS) if not isinstance(ranker, SparseTopPush) else (X, [0.1, 0.03])
    path = ranker.alpha_path(X, y, alphas)
    assert_allclose(path.alphas, np.sort(alphas)[::-1])
    assert path.coef.shape == (len(alphas), X.shape[1])
    assert (path.optimality <= ranker.tol).all()
    for alpha, coef, objective in zip(path.alphas, path.coef, path.objective, strict=True):
        alone = ranker.__class__(**{**ranker.get_params(), "alpha": alpha}).fit(X, y)
        if isinstance(
            ranker, AATPRanker
        ):  # the row of the threshold is found by a search that depends on its start
            continue
        assert_allclose(objective, alone.objective_, rtol=3 * ranker.tol)
        # A gap of eps leaves the weights within sqrt(eps) of each other.
        assert_allclose(
            coef,
            alone.coef_[0],
            atol=5 * np.sqrt(ranker.tol) * max(np.abs(alone.coef_).max(), 0.01),
        )
    with pytest.raises(NotFittedError):
        check_is_fitted(ranker)


def text(n=600, d=3000, seed=0):
    """Rows of rare words, few of them relevant: separable, with more columns than rows."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, d + 1)
    words = rng.choice(d, (n, 60), p=share / share.sum())
    y = np.zeros(n, dtype=bool)
    y[:: n // 30] = True
    words[y, :3] = 20 + rng.integers(0, 40, (y.sum(), 3))
    X = sp.csr_matrix((np.ones(n * 60), words.ravel(), np.arange(0, n * 60 + 1, 60)), (n, d))
    X.sum_duplicates()
    X.data = np.log1p(X.data)
    norm = np.sqrt(X.multiply(X).sum(axis=1)).A1
    return sp.csr_matrix(sp.diags(1 / norm) @ X), y


@pytest.mark.parametrize(
    "ranker",
    [PairwiseRanker("logistic"), PointwiseRanker("logistic"), PointwiseRanker("exponential")],
    ids=repr,
)
def test_text_has_the_same_model_along_a_path_and_from_zero(ranker):
    (X, y), (unseen, truth) = text(), text(seed=1)
    path = ranker.set_params(tol=3e-3).alpha_path(X, y)
    for tol in (3e-3, 1e-3, 1e-6):
        for alpha, coef in zip(path.alphas, path.coef, strict=True):
            alone = ranker.__class__(ranker.loss, alpha=alpha, tol=tol).fit(X, y).coef_[0]
            assert np.corrcoef(unseen @ coef, unseen @ alone)[0, 1] > 0.99
            assert abs(roc_auc(truth, unseen @ coef) - roc_auc(truth, unseen @ alone)) < 0.005


@pytest.mark.parametrize("n", [600, 20_000])
@pytest.mark.parametrize("sparse", [False, True])
def test_large_data_follow_a_sample_to_the_same_end(n, sparse):
    X, y = data(n)
    X = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0)) if sparse else X
    for ranker in (PairwiseRanker("logistic", tol=1e-5), PointwiseRanker(tol=1e-5)):
        path = ranker.alpha_path(X, y, ALPHAS)
        assert (path.optimality <= 1e-5).all()
        alone = ranker.set_params(alpha=ALPHAS[-1]).fit(X, y)
        assert_allclose(path.coef[-1], alone.coef_[0], atol=1e-3)


@pytest.mark.parametrize("n", [400, 9000])
def test_certificates_along_a_path_are_true(n):
    X, y = data(n)
    objective, design = AllPairs(y.astype(int), "logistic"), make_design(X)
    walker = NewtonPath(objective, design)
    for alpha in np.geomspace(10, 1e-6, 8):
        result = walker.step(np.full(6, alpha), tol=1e-8, progress=Progress())
        assert_allclose(result.scores, X @ result.w, atol=1e-9 * np.abs(result.scores).max())
        gradient = X.T @ objective.at(X @ result.w).gradient + alpha * result.w
        at_zero = X.T @ objective.gradient_at_zero()
        assert np.linalg.norm(gradient) <= 1.1e-8 * np.linalg.norm(at_zero)


def test_weights_and_groups():
    X, y = data()
    rng = np.random.default_rng(1)
    w, qid = rng.integers(1, 4, y.size), rng.integers(0, 20, y.size)
    path = PairwiseRanker(tol=1e-6).alpha_path(X, y, [1e-2, 1e-3], sample_weight=w, qid=qid)
    alone = PairwiseRanker(alpha=1e-3, tol=1e-6).fit(X, y, sample_weight=w, qid=qid)
    assert_allclose(path.coef[1], alone.coef_[0], atol=1e-4)
    scores = path.decision_function(X)
    assert scores.shape == (y.size, 2)
    assert_allclose(np.diff(scores[:, 1]), np.diff(alone.decision_function(X)), atol=1e-3)


def test_grades():
    X, _ = data()
    y = np.digitize(X[:, 0], [-1, 0, 1])
    path = PairwiseRanker(graph="order").alpha_path(X, y, 3)
    assert_allclose(path.alphas, [10.0, 1e-3, 1e-7])


def test_a_path_takes_fewer_steps_than_its_fits():
    X, y = data(20_000, 12)
    objective, design = AllPairs(y.astype(int), "logistic"), make_design(X)
    alphas = np.geomspace(1.0, 1e-7, 10)
    walker = NewtonPath(objective, design)
    steps = cold = 0
    for alpha in alphas:
        penalty = np.full(12, alpha)
        on_path = walker.step(penalty, tol=1e-3, progress=Progress())
        alone = newton(objective, design, penalty, start=np.zeros(12), tol=1e-3)
        assert on_path.converged
        steps, cold = steps + on_path.n_iter, cold + alone.n_iter
    assert steps <= cold / 2


def test_rankers_without_a_certificate_have_paths_too():
    X, y = data(200)
    path = CombinedSGDRanker(n_steps=2000, random_state=0).alpha_path(X, y, [0.1, 0.01])
    assert_allclose(
        path.coef[1], CombinedSGDRanker(n_steps=2000, random_state=0, alpha=0.01).fit(X, y).coef_[0]
    )
    assert np.isnan(path.optimality).all()


def test_where_a_path_leads():
    one = np.array([1.0, 2.0])
    assert_array_equal(extrapolate([one]), one)
    assert_array_equal(extrapolate([one, 2 * one]), 3 * one)
    assert_array_equal(
        extrapolate([0 * one, 2 * one, 3 * one]), 3.5 * one
    )  # half as long as the step before
    assert_array_equal(extrapolate([0 * one, 2 * one, 3 * one], [one, one, 5 * one]), 7 * one)


@pytest.mark.parametrize("alphas", [0, [], [[1.0]], [1.0, -1.0], [np.nan], "many"])
def test_bad_alphas(alphas):
    X, y = data(50)
    with pytest.raises(ValueError, match="alphas"):
        PairwiseRanker().alpha_path(X, y, alphas)
