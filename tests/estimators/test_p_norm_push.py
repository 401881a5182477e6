"""PNormPush against its definition and its two ends."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.utils.estimator_checks import parametrize_with_checks

from forerank import PairwiseRanker, PNormPush, TopPush
from forerank.objectives import AllPairs
from forerank.objectives.p_norm import PNorm
from forerank.objectives.top import Top
from top_rows import data


@pytest.mark.filterwarnings("ignore:.*same score:UserWarning")
@parametrize_with_checks([PNormPush()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def definition(s, positive, p, w):
    """The double loop."""
    up, down = w[positive] / w[positive].sum(), w[~positive] / w[~positive].sum()
    loss = np.exp(-(s[positive][:, None] - s[~positive])) * up[:, None]
    return float(down @ loss.sum(axis=0) ** p) ** (1.0 / p)


@pytest.mark.parametrize("p", [1.0, 2.5, 8.0])
def test_objective_gradient_and_curvature(p):
    rng = np.random.default_rng(0)
    s, u, positive = rng.standard_normal(30), rng.standard_normal(30), np.arange(30) < 12
    for weight in (None, rng.integers(3, size=30).astype(float)):
        objective = PNorm(positive, p, weight=weight)
        w = np.ones(30) if weight is None else weight
        here, e = objective.at(s), 1e-6
        assert_allclose(here.value, definition(s, positive, p, w))
        slope = [definition(s + x * u, positive, p, w) for x in (-e, e)]
        assert_allclose(here.gradient @ u, (slope[1] - slope[0]) / (2.0 * e), rtol=1e-6)
        bend = (objective.at(s + e * u).gradient - objective.at(s - e * u).gradient) / (2.0 * e)
        assert_allclose(here.curvature_product(u), bend, rtol=1e-6, atol=1e-8)
        matrix = here.curvature_matrix(np.eye(30))
        assert_allclose(matrix @ u, here.curvature_product(u), atol=1e-12)
        assert_allclose(np.diag(matrix), here.curvature_diagonal(), atol=1e-12)


def test_it_rises_from_all_pairs_to_the_top():
    rng = np.random.default_rng(1)
    s, positive = rng.standard_normal(40), np.arange(40) < 15
    values = [PNorm(positive, p).at(s).value for p in (1.0, 2.0, 4.0, 16.0, 1e4)]
    assert values == sorted(values)
    assert_allclose(values[0], AllPairs(positive.astype(int), "exponential").at(s).value)
    assert_allclose(values[-1], Top(positive, "exponential").value_at(s), rtol=1e-3)
    far = 800.0 * s  # exponentials beyond double precision
    assert np.isinf(PNorm(positive, 2.0).at(far).value)


def test_fits_at_both_ends():
    X, y = data()
    first = PNormPush(1.0, alpha=1e-2, tol=1e-6).fit(X, y)
    pairs = PairwiseRanker("exponential", alpha=1e-2, tol=1e-6).fit(X, y)
    assert_allclose(first.coef_, pairs.coef_, rtol=1e-4, atol=1e-6)
    objectives = [
        PNormPush(p, alpha=1e-2, tol=1e-6).fit(X, y).objective_ for p in (1.0, 4.0, 32.0, 1000.0)
    ]
    assert objectives == sorted(objectives)
    top = TopPush("exponential", alpha=1e-2, tol=1e-6).fit(X, y)
    assert objectives[-1] == pytest.approx(top.objective_, rel=1e-2)
    assert objectives[-1] <= top.objective_


def test_weights_samples_and_errors():
    X, y = data(n=3000)
    weight = np.random.default_rng(0).integers(0, 3, y.size)
    rows = np.repeat(np.arange(y.size), weight)
    weighted = PNormPush(tol=1e-5).fit(X, y, sample_weight=weight)
    repeated = PNormPush(tol=1e-5).fit(X[rows], y[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-5)
    assert weighted.optimality_ <= 1e-5
    assert weighted.gap_ >= 0.0
    for p in (0.5, np.inf):
        with pytest.raises(ValueError, match="p must be a number >= 1"):
            PNormPush(p).fit(X, y)
