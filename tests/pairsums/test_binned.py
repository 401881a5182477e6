"""Hessians from binned scores, against products with the exact curvature."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import eigh

from forerank.design import make_design
from forerank.losses import SmoothedHinge
from forerank.objectives import AllPairs, Pointwise
from forerank.pairsums.factored import EqualScorePairs


def rows(n=1500, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 0] = 5.0 * (rng.random(n) < 0.02)  # a rare column
    return X, 0.5 * X @ rng.standard_normal(d), rng


def exact(objective, s, X):
    there = objective.at(s)
    return X.T @ np.column_stack([there.curvature_product(x) for x in np.ascontiguousarray(X.T)])


def is_close(hessian, expected, ratio):
    """Whether the curvatures along all directions agree up to a factor."""
    ratios = eigh(hessian, expected, eigvals_only=True)
    return 1.0 / ratio < ratios[0] and ratios[-1] < ratio


@pytest.mark.parametrize(
    "loss", ["squared_hinge", "logistic", "squared", "exponential", SmoothedHinge(0.5)], ids=str
)
@pytest.mark.parametrize("kind", ["two classes", "grades", "groups", "many groups"])
def test_agrees_with_the_exact_curvature(loss, kind):
    X, s, rng = rows()
    grade = rng.integers(0, 4 if kind == "grades" else 2, s.size)
    group = rng.integers(0, 3 if kind == "groups" else 100, s.size) if "groups" in kind else None
    objective = AllPairs(grade, loss, weight=rng.random(s.size), group=group)
    hessian = objective.hessian(s, make_design(X))
    assert_allclose(hessian, hessian.T, rtol=1e-9, atol=1e-12)
    assert is_close(hessian, exact(objective, s, X), 1.2)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_a_few_extreme_scores_do_not_make_it_coarse(loss):
    X, s, rng = rows()
    s[:3] = [1e4, -1e4, 300.0]
    objective, X = AllPairs(rng.integers(0, 2, s.size), loss), X[:, 1:]
    assert is_close(objective.hessian(s, make_design(X)), exact(objective, s, X), 1.2)


@pytest.mark.parametrize("size", [1e-300, 1e-310, 5e-324])
def test_scores_closer_together_than_bins_can_be(size):
    """At the weights of a warm start from data of another scale."""
    X, s, rng = rows()
    objective = AllPairs(rng.integers(0, 2, s.size), "squared_hinge")
    at_zero = objective.hessian(np.zeros(s.size), make_design(X))
    hessian = objective.hessian(size * np.rint(s), make_design(X))
    assert_allclose(hessian, at_zero, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "squared", "exponential"])
@pytest.mark.parametrize("kind", ["two classes", "grades", "groups"])
def test_equal_scores(loss, kind):
    """Value, gradient and curvature at equal scores, where sums are closed, are those of scores
    that differ by rounding errors alone.
    """
    X, s, rng = rows()
    grade = rng.integers(0, 4 if kind == "grades" else 2, s.size)
    group = rng.integers(0, 3, s.size) if kind == "groups" else None
    objective = AllPairs(grade, loss, weight=rng.random(s.size), group=group)
    equal = np.full(s.size, 2.5)
    here, near = objective.at(equal), objective.at(equal + 1e-13 * s)
    assert isinstance(here, EqualScorePairs)
    assert not isinstance(near, EqualScorePairs)
    assert_allclose(here.value, near.value, rtol=1e-9)
    assert_allclose(here.gradient, near.gradient, rtol=1e-8, atol=1e-15)
    assert_allclose(here.curvature_product(s), near.curvature_product(s), rtol=1e-7, atol=1e-12)
    assert_allclose(here.curvature_diagonal(), near.curvature_diagonal(), rtol=1e-8, atol=1e-15)
    hessian = objective.hessian(equal, make_design(X))
    assert_allclose(hessian, exact(objective, equal, X), rtol=1e-9, atol=1e-12)
    assert_allclose(np.diag(hessian), here.quadratic_form(X), rtol=1e-9)


def test_rows_have_the_exact_one():
    X, s, rng = rows()
    objective = Pointwise(rng.random(s.size) < 0.5, "logistic")
    assert_allclose(objective.hessian(s, make_design(X)), exact(objective, s, X), rtol=1e-9)
    weight = rng.random(s.size)
    assert_allclose(make_design(X).weighted_gram(weight), X.T @ (weight[:, None] * X), rtol=1e-9)
