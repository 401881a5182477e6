import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.svm import LinearSVC

from forerank.design import make_design
from forerank.objectives import AllPairs, Pointwise, Profiled
from forerank.objectives.structured import RankWeightedHinge, partial_auc
from forerank.solvers import bundle
from solver_problems import problem, total


def hinge_objectives(y):
    return {
        "pairs": AllPairs(y, "hinge"),
        "rows": Pointwise(y, "hinge"),
        "profiled": Profiled(Pointwise(y, "hinge")),
    }


@pytest.mark.parametrize("kind", ["pairs", "rows", "profiled"])
@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-4])
class TestBundle:
    def test_gap_is_met_and_valid(self, kind, alpha):
        X, y = problem()
        F, design = hinge_objectives(y)[kind], make_design(X)
        result = bundle(F, design, alpha, tol=1e-4)
        assert result.converged
        assert result.optimality <= 1e-4
        assert_allclose(result.objective, total(F, design, alpha, result.w), rtol=1e-12)
        # The minimum of a much finer run is not below the lower bound.
        finer = bundle(F, design, alpha, tol=1e-7)
        assert finer.objective >= result.objective * (1 - result.optimality)
        assert finer.objective <= result.objective * (1 + 1e-12)

    def test_cutting_planes_alone_reach_the_same_minimum(self, kind, alpha):
        if alpha < 1e-3:
            pytest.skip("needs very many planes")
        X, y = problem()
        F, design = hinge_objectives(y)[kind], make_design(X)
        plain = bundle(WithoutSmoothing(F), design, alpha, tol=1e-5, max_iter=3000)
        assert plain.converged
        assert_allclose(plain.objective, bundle(F, design, alpha, tol=1e-6).objective, rtol=2e-5)


class WithoutSmoothing:
    """Hides `smoothed`, as objectives without a smooth version have none."""

    def __init__(self, objective):
        self.smooth, self.n_rows, self.at = objective.smooth, objective.n_rows, objective.at


def test_pairwise_hinge_is_an_svm_on_differences():
    X, y = problem(n=60)
    differences = (X[y][:, None] - X[~y]).reshape(-1, 6)
    signs = np.where(np.arange(len(differences)) % 2, 1, -1)  # LinearSVC wants two classes
    alpha = 1e-2
    peer = LinearSVC(
        C=1 / (alpha * len(differences)),
        loss="hinge",
        fit_intercept=False,
        tol=1e-8,
        max_iter=1_000_000,
    )
    peer.fit(signs[:, None] * differences, signs)
    F, design = AllPairs(y, "hinge"), make_design(X)
    result = bundle(F, design, alpha, tol=1e-7)
    assert_allclose(result.objective, total(F, design, alpha, peer.coef_[0]), rtol=1e-5)
    assert_allclose(result.w, peer.coef_[0], atol=2e-3 * np.abs(result.w).max())


def test_warm_start_of_the_bundle_keeps_the_solution():
    X, y = problem()
    F, design = AllPairs(y, "hinge"), make_design(X)
    first = bundle(F, design, 1e-2, tol=1e-6)
    again = bundle(F, design, 1e-2, start=first.w, tol=1e-4)
    assert again.n_iter < bundle(F, design, 1e-2, tol=1e-4).n_iter
    assert_allclose(again.objective, first.objective, rtol=1e-4)


def test_zero_is_recognised():
    X = np.zeros((10, 3))
    y = np.arange(10) % 2 == 0
    assert bundle(AllPairs(y, "hinge"), make_design(X), 0.1).converged


def test_max_iter_is_respected_and_reported():
    X, y = problem()
    rough = bundle(
        WithoutSmoothing(AllPairs(y, "hinge")), make_design(X), 1e-4, tol=1e-9, max_iter=3
    )
    assert rough.n_iter == 3
    assert not rough.converged


def test_a_penalty_is_needed():
    X, y = problem()
    with pytest.raises(ValueError, match="bundle needs alpha > 0"):
        bundle(AllPairs(y, "hinge"), make_design(X), 0.0)


@pytest.mark.parametrize("high", [1.0, 0.1])
@pytest.mark.parametrize("alpha", [1e-4, 1e-8])
def test_columns_of_any_size_reach_the_tolerance_by_cutting_planes(high, alpha):
    X, y = problem(spread=0.0)
    F = RankWeightedHinge(y, partial_auc(0.0, high))
    sizes = np.logspace(-6, 6, 6)
    result = bundle(F, make_design(X * sizes), alpha, tol=1e-3)
    assert result.converged
    # The same problem with weights in other units: the penalty is alpha / sizes^2 on each.
    lower = result.objective * (1 - result.optimality)
    for seed in range(3):
        other = result.w * (1 + 0.1 * np.random.default_rng(seed).standard_normal(6))
        assert total(F, make_design(X * sizes), alpha, other) >= lower


@pytest.mark.parametrize("shape", [(60, 150), (150, 125), (20, 1000)])
@pytest.mark.parametrize("alpha", [1.0, 1e-3, 1e-6])
def test_wide_and_separated_rows(shape, alpha):
    rng = np.random.default_rng(3)
    X = rng.standard_normal(shape)
    y = X[:, :5].sum(axis=1) + rng.standard_normal(shape[0]) > 0.0
    F, design = AllPairs(y, "hinge"), make_design(X)
    result = bundle(F, design, alpha, tol=1e-3, max_iter=200)
    assert result.converged
    assert_allclose(result.objective, total(F, design, alpha, result.w), rtol=1e-9)
    assert_allclose(result.scores, X @ result.w, atol=1e-9 * np.abs(result.scores).max())
    finer = bundle(F, design, alpha, tol=1e-4, max_iter=1000)
    assert finer.objective >= result.objective * (1 - result.optimality) * (1 - 1e-12)
