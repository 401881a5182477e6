"""Fits on merged equal rows against fits on all of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone

from forerank import (
    OWPCRanker,
    PairwiseRanker,
    PartialAUCRanker,
    PointwiseRanker,
    RankNCG,
    SparseTopPush,
    TopPush,
    TopRanker,
)
from forerank.estimators import base, combined, two_class
from linear_rankers import RANKERS

TOP_LOSSES = ("squared_hinge", "logistic", "exponential", "hinge")
TOP_RANKERS = [
    *(TopPush(loss, alpha=1e-2) for loss in TOP_LOSSES),
    *(TopRanker(loss, at=at, alpha=1e-2) for loss in TOP_LOSSES for at in (7, 0.1)),
    TopPush(solver="nesterov", alpha=1e-1),
    *(SparseTopPush(loss, alpha=1e-2) for loss in TOP_LOSSES),
    PartialAUCRanker(alpha=1e-2),
    OWPCRanker(alpha=1e-2),
]
OTHERS = [
    PointwiseRanker(class_weight="balanced"),
    PointwiseRanker(fit_intercept=False),
    RankNCG("exact"),
    RankNCG(alpha=1e-2),
]
WEIGHTED = [*RANKERS, *OTHERS, *TOP_RANKERS]
GRADED = [PairwiseRanker(loss, graph="order") for loss in ("squared_hinge", "logistic", "hinge")]


def table(n=700, seed=0, n_classes=2):
    """Integer columns with few different rows. The noise only raises rows: the highest rows without
    it are all of the highest class.
    """
    rng = np.random.default_rng(seed)
    X = rng.integers(0, [3, 4, 2, 3], (n, 4)).astype(float)
    score = X @ [1.0, -0.5, 0.7, 0.2] + 0.7 * rng.exponential(size=n)
    cuts = np.quantile(score, 1.0 - 0.4 ** np.arange(n_classes - 1, 0, -1))
    return X, np.searchsorted(cuts[::-1], score)


@pytest.fixture
def unmerged(monkeypatch):
    """A function that fits a copy of a ranker on all rows."""

    def fit(ranker, *data, **rows):
        with monkeypatch.context() as patch:
            for module in (base, two_class, combined):
                patch.setattr(module, "merge_equal_rows", lambda X, c, w, g=None: (X, c, w, g))
            return clone(ranker).fit(*data, **rows)

    return fit


def assert_same_fit(merged, expected):
    """The objectives agree to the tolerance. The objective is alpha-strongly convex: a gap g leaves
    the weights within sqrt(2 g / alpha) of the solution.
    """
    assert merged.history_[-1].n_rows < expected.history_[-1].n_rows
    assert_allclose(merged.objective_, expected.objective_, rtol=2.0 * expected.tol)
    if isinstance(expected, SparseTopPush):
        return
    if np.isfinite(expected.gap_):
        distance = np.linalg.norm(merged.coef_ - expected.coef_)
        radius = np.sqrt(2.0 / expected.alpha) * (merged.gap_**0.5 + expected.gap_**0.5)
        assert distance <= radius + 1e-9
    if expected.tol < 1e-6:
        assert_allclose(merged.coef_, expected.coef_, rtol=1e-3, atol=1e-4)
        assert_allclose(merged.intercept_, expected.intercept_, rtol=1e-3, atol=1e-3)


def exact(ranker):
    """The ranker with a small tolerance: smaller for gradients and Newton steps than for planes."""
    slow = getattr(ranker, "loss", "hinge") == "hinge" or hasattr(ranker, "solver")
    return clone(ranker).set_params(tol=1e-5 if slow else 1e-8, max_iter=20_000)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ranker", WEIGHTED, ids=repr)
def test_two_classes(ranker, weighted, unmerged):
    X, y = table()
    rows = {"sample_weight": np.random.default_rng(1).integers(0, 4, y.size)} if weighted else {}
    for data in ((X, y), (sp.csr_array(X), y)):
        assert_same_fit(exact(ranker).fit(*data, **rows), unmerged(exact(ranker), *data, **rows))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ranker", GRADED, ids=repr)
def test_grades_and_groups(ranker, seed, unmerged):
    X, y = table(n=900, seed=seed, n_classes=3)
    rng = np.random.default_rng(seed)
    rows = {"qid": rng.integers(0, 3, y.size), "sample_weight": rng.random(y.size)}
    merged, expected = exact(ranker).fit(X, y, **rows), unmerged(exact(ranker), X, y, **rows)
    assert_same_fit(merged, expected)
    if ranker.loss != "hinge":
        assert_allclose(merged.thresholds_, expected.thresholds_, atol=1e-3)


@pytest.mark.parametrize("ranker", [TopPush(), PairwiseRanker(), PointwiseRanker("hinge")])
def test_paths(ranker, unmerged):
    X, y = table()
    path = exact(ranker).alpha_path(X, y, [1.0, 1e-2])
    for alpha, coef in zip(path.alphas, path.coef, strict=True):
        expected = unmerged(exact(ranker).set_params(alpha=float(alpha)), X, y)
        size = np.linalg.norm(expected.coef_)
        assert_allclose(coef, expected.coef_[0], atol=2e-2 * size)


def test_the_warning_about_groups_counts_all_rows():
    X, y = table()
    group = np.where(y == 1, 0, np.arange(y.size) % 2)
    left_out = int(np.count_nonzero(group == 1))
    with pytest.warns(UserWarning, match=f"its {left_out} rows are excluded"):
        PairwiseRanker().fit(X, y, qid=group)


def test_a_warm_start_on_other_rows():
    X, y = table()
    ranker = PointwiseRanker("hinge", warm_start=True).fit(X, y)
    rng = np.random.default_rng(3)
    ranker.fit(rng.standard_normal(X.shape), y)
    assert ranker.optimality_ <= ranker.tol
