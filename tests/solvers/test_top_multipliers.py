"""The method of multipliers against Newton's method with a working set, a bundle, and its dual."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import forerank.solvers.top_multipliers as module
from forerank.design import make_design
from forerank.losses import get_loss
from forerank.objectives.top import Top, TopWithinGroups
from forerank.solvers import Progress, bundle, method_of_multipliers, working_set_newton
from forerank.solvers.top_augmented import AugmentedTop, ProximalHinge
from oracles import top_objective

LOSSES = ("squared_hinge", "logistic", "exponential", "hinge")
THRESHOLDS = ("max", 3, 0.3)


def problem(n=60, d=4, seed=0, n_groups=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    positive = rng.random(n) < 0.4
    X[positive] += 3.0 / np.sqrt(d)
    return X, positive, rng.integers(n_groups, size=n)


def grouped_objective(s, positive, group, loss, at, weight=None):
    """The definition: a loop over groups, each with the share of its positives."""
    weight = np.ones(s.size) if weight is None else weight
    total, mass = 0.0, 0.0
    for q in np.unique(group):
        here = (group == q) & (weight > 0.0)
        up, down = here & positive, here & ~positive
        if up.any() and down.any():
            k = min(at, int(weight[down].sum())) if at == 3 else at
            part = top_objective(s[here], positive[here], loss, k, weight[here])
            total, mass = total + weight[up].sum() * part, mass + weight[up].sum()
    return total / mass


@pytest.mark.parametrize("at", THRESHOLDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_objective_within_groups_is_its_definition(loss, at):
    rng = np.random.default_rng(1)
    for _ in range(10):
        _, positive, group = problem(n=40, n_groups=5, seed=int(rng.integers(1000)))
        s = rng.integers(4, size=40) / 2.0  # ties
        weight = rng.integers(3, size=40).astype(float)
        for w in (None, weight):
            top = TopWithinGroups(positive, loss, group=group, at=at, weight=w)
            expected = grouped_objective(s, positive, group, loss, at, w)
            assert_allclose(top.value_at(s), expected, rtol=1e-10)
            here = top.at(s)
            assert_allclose(here.value, expected, rtol=1e-10)
            other = s + rng.standard_normal(40)
            plane = here.value + here.gradient @ (other - s)
            assert top.value_at(other) >= plane - 1e-12 * abs(plane)


@pytest.mark.parametrize("n_groups", [1, 4])
@pytest.mark.parametrize("at", THRESHOLDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_augmented_lagrangian_by_finite_differences(loss, at, n_groups):
    rng = np.random.default_rng(2)
    _, positive, group = problem(n=80, n_groups=n_groups)
    s, u = rng.standard_normal(80), rng.standard_normal(80)
    top = TopWithinGroups(positive, loss, group=group, at=at, weight=rng.random(80) + 0.5)
    smooth = get_loss(loss)
    if loss == "hinge":
        smooth = ProximalHinge(0.3, rng.random(top.positives.size))
    function = AugmentedTop(top, smooth, 0.02 * rng.random(top.negatives.size), 0.05)
    here, e = function.at(s), 1e-6
    slope = (function.at(s + e * u).value - function.at(s - e * u).value) / (2.0 * e)
    assert_allclose(here.gradient @ u, slope, atol=1e-8)
    bend = (function.at(s + e * u).gradient - function.at(s - e * u).gradient) / (2.0 * e)
    assert_allclose(here.curvature_product(u), bend, atol=1e-7)
    curved = np.isin(np.arange(80), here.curved_rows())
    product = here.curvature_product(np.where(curved, u, 0.0))
    assert_allclose(product, here.curvature_product(u), atol=1e-14)
    assert not product[~curved].any()
    assert here.value <= top.value_at(s) + 1e-12
    # Dual variables are feasible: equal sums in each group, and no more than the caps.
    sums = np.add.reduceat(here.slope, top.positive_starts)
    assert_allclose(np.add.reduceat(here.b, top.negative_starts), sums, rtol=1e-12)
    assert np.all(here.b <= top.caps * sums[top.group_of_negatives] * (1.0 + 1e-9))


@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("at", THRESHOLDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_newton_with_a_working_set_finds_the_same(loss, at, by_rows, monkeypatch):
    if by_rows:
        monkeypatch.setattr(module, "_MOST_COLUMNS", 1)
    X, positive, _ = problem(n=200, d=6)
    top, design = Top(positive, loss, at=at), make_design(X)
    for alpha in (1e-1, 1e-3):
        found = method_of_multipliers(top, design, alpha, tol=1e-6)
        assert found.converged
        expected = working_set_newton(top, design, alpha, tol=1e-7)
        assert_allclose(found.objective, expected.objective, rtol=2e-6)


@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("at", THRESHOLDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_certificate_within_groups(loss, at, by_rows, monkeypatch):
    if by_rows:
        monkeypatch.setattr(module, "_MOST_COLUMNS", 1)
    X, positive, group = problem(n=150, d=5, n_groups=12)
    top, design, alpha = TopWithinGroups(positive, loss, group=group, at=at), make_design(X), 1e-2
    result = method_of_multipliers(top, design, alpha, tol=1e-5)
    assert result.converged
    value = grouped_objective(X @ result.w, positive, group, loss, at)
    assert_allclose(result.objective, value + 0.5 * alpha * result.w @ result.w, rtol=1e-9)
    r = X.T @ result.dual
    bound = -top.conjugate(-result.dual[top.positives]) - 0.5 * r @ r / alpha
    assert result.objective - bound <= 1.001e-5 * result.objective
    planes = bundle(top, design, alpha, tol=1e-4)
    assert_allclose(planes.objective, result.objective, rtol=2e-4)


def test_few_rows_in_the_preconditioner(monkeypatch):
    """Fewer rows than negatives between their bounds: more iterations, the same minimum."""
    X, positive, _ = problem(n=300, d=30)
    top, design = Top(positive), make_design(sp.csr_array(X))
    expected = method_of_multipliers(top, design, 1e-2, tol=1e-6)
    monkeypatch.setattr(module, "_MOST_COLUMNS", 1)
    monkeypatch.setattr(module, "_MOST_ROWS", 5)
    found = method_of_multipliers(top, design, 1e-2, tol=1e-6)
    assert found.converged
    assert_allclose(found.objective, expected.objective, rtol=2e-6)


def test_start_and_progress():
    X, positive, group = problem(n=200, d=6, n_groups=5)
    top, design = TopWithinGroups(positive, "hinge", group=group), make_design(X)
    first = method_of_multipliers(top, design, 1e-1, tol=1e-5)
    progress = Progress()
    fresh = method_of_multipliers(top, design, 1e-2, tol=1e-5, progress=progress)
    starts = {"start": first.w, "start_dual": first.dual}
    warm = method_of_multipliers(top, design, 1e-2, tol=1e-5, **starts)
    assert_allclose(warm.objective, fresh.objective, rtol=2e-5)
    assert np.array_equal(progress.w, fresh.w)
    values = [step.objective for step in progress.history]
    assert values == sorted(values, reverse=True)
    again = method_of_multipliers(top, design, 1e-2, tol=1e-5, start=fresh.w, start_dual=fresh.dual)
    assert again.n_iter == 0


def test_positives_that_cannot_be_lifted():
    rng = np.random.default_rng(0)
    X, positive = rng.standard_normal((400, 3)), np.arange(400) < 100
    X[positive] *= 0.1
    result = method_of_multipliers(Top(positive), make_design(X), 1e-2, tol=1e-6)
    assert result.converged
    assert_allclose(result.objective, 1.0, rtol=1e-6)


def test_equal_negatives_and_columns_of_other_sizes():
    X, positive, _ = problem(n=300, d=5)
    X[~positive] = X[~positive][0]
    assert method_of_multipliers(Top(positive), make_design(X), 1e-2, tol=1e-5).converged
    X, positive, _ = problem(n=300, d=5)
    scaled = make_design(X * np.logspace(-3, 3, 5))
    found = method_of_multipliers(Top(positive), scaled, 1e-3, tol=1e-5)
    assert found.converged
    expected = working_set_newton(Top(positive), scaled, 1e-3, tol=1e-6)
    assert_allclose(found.objective, expected.objective, rtol=2e-5)


def test_alpha_must_be_positive():
    X, positive, _ = problem()
    with pytest.raises(ValueError, match="alpha > 0"):
        method_of_multipliers(Top(positive), make_design(X), 0.0)
