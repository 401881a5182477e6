"""The solver over rows in parts: certificates, and the weights of solvers in memory."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from forerank import PairwiseRanker, PointwiseRanker
from forerank.data.row_sample import RowSample
from forerank.objectives.part_columns import part_moments
from forerank.objectives.parts import PairParts, PointParts, Rows
from forerank.solvers.partwise import PartwiseProblem, minimise_parts


def in_blocks(X, y, n_blocks=5):
    cuts = np.linspace(0, len(y), n_blocks + 1).astype(int)
    return [Rows(X[a:b], y[a:b]) for a, b in pairwise(cuts)]


def make_problem(X, y, parts, *, sample_size, intercept=False):
    blocks, passes = in_blocks(X, y), []

    def over_parts(function):
        passes.append(1)
        results = [function(block) for block in blocks]
        return sum(results[1:], start=results[0])

    moments = over_parts(partial(part_moments, about=np.zeros(X.shape[1]), n_classes=2))
    drawn = RowSample(sample_size, grouped=False)
    for block in blocks:
        drawn.add(block.X, block.codes, None, None)
    sample = drawn.rows(np.arange(2), moments.weight)
    del passes[:]
    return PartwiseProblem(parts, over_parts, moments, sample, intercept), passes


def rare_columns(n, d, seed=0, sparse=False):
    """Columns of zeros and ones, most of them rare, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    share = 0.5 * rng.uniform(size=d) ** 4 + 2.0 / n
    X = (rng.uniform(size=(n, d)) < share).astype(float)
    z = X @ rng.standard_normal(d) + rng.logistic(size=n)
    return (sp.csr_matrix(X) if sparse else X), (z > np.median(z) + 1.0).astype(int)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("alpha", [1e-2, 1e-5])
def test_rare_columns_that_the_sample_lacks(loss, alpha):
    X, y = rare_columns(4_000, 40)
    problem, _ = make_problem(X, y, PairParts(loss), sample_size=400)
    assert (problem.sample.X.sum(axis=0) == 0).any()
    found = minimise_parts(problem, alpha, tol=1e-8, max_iter=500)
    assert found.converged
    assert found.optimality <= 1e-8
    expected = PairwiseRanker(loss, alpha=alpha, tol=1e-10).fit(X, y).coef_[0]
    np.testing.assert_allclose(found.w, expected, atol=1e-4 * np.abs(expected).max())


def test_many_sparse_columns_take_conjugate_gradients_on_the_sample():
    X, y = rare_columns(3_000, 1_200, sparse=True)
    problem, passes = make_problem(X, y, PairParts("logistic"), sample_size=1_500)
    found = minimise_parts(problem, 1e-3, tol=1e-4)
    assert found.converged
    assert len(passes) < 100
    expected = PairwiseRanker("logistic", alpha=1e-3, tol=1e-9).fit(X, y).coef_[0]
    np.testing.assert_allclose(found.w, expected, atol=1e-2 * np.abs(expected).max())


def test_a_large_sample_needs_few_passes():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((20_000, 6)) * [1, 10, 100, 1, 1, 0.01] + 5.0
    y = (X[:, 0] + X[:, 2] / 100 + rng.logistic(size=len(X)) > 7.0).astype(int)
    problem, passes = make_problem(X, y, PairParts("squared_hinge"), sample_size=10_000)
    assert minimise_parts(problem, 1e-4, tol=1e-3).converged
    assert len(passes) <= 4  # two evaluations
    problem, passes = make_problem(X, y, PointParts("logistic"), sample_size=10_000, intercept=True)
    found = minimise_parts(problem, 1e-4, tol=1e-6)
    assert len(passes) <= 6
    expected = PointwiseRanker(alpha=1e-4, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(found.w[:-1], expected.coef_[0], rtol=1e-3)
    assert found.w[-1] == pytest.approx(expected.intercept_[0], rel=1e-3)


def test_too_few_iterations_are_reported():
    X, y = rare_columns(2_000, 30)
    problem, _ = make_problem(X, y, PairParts("logistic"), sample_size=200)
    found = minimise_parts(problem, 1e-6, tol=1e-12, max_iter=1)
    assert not found.converged
    assert found.n_iter == 1
    assert np.isfinite(found.objective)


def test_columns_that_say_nothing_have_no_weight():
    X, y = np.ones((50, 2)), np.arange(50) % 2
    problem, _ = make_problem(X, y, PairParts("logistic"), sample_size=50)
    found = minimise_parts(problem, 1e-3)
    assert found.converged
    assert not found.w.any()
