import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

from forerank.losses import SmoothedHinge, get_loss
from forerank.objectives import AllPairs, Pointwise, Profiled
from forerank.objectives.structured import AnchoredHinge

LOSSES = [
    *map(get_loss, ("exponential", "hinge", "logistic", "squared", "squared_hinge")),
    SmoothedHinge(0.3),
]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return (
        rng.standard_normal(300),
        rng.random(300) < 0.3,
        rng.random(300),
        rng.standard_normal(300),
    )


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
class TestPointwise:
    def test_definition(self, loss, rows):
        s, positive, w, u = rows
        y = np.where(positive, 1, -1)
        there = Pointwise(positive, loss, weight=w).at(s)
        assert_allclose(there.value, sum(w * loss.value(y * s)) / sum(w))
        assert_allclose(there.gradient, w * y * loss.slope(y * s) / sum(w))
        assert_allclose(there.curvature_product(u), w * loss.curvature(y * s) * u / sum(w))
        assert_allclose(there.curvature_matrix(np.eye(300)), np.diag(there.curvature_diagonal()))

    def test_samples_are_unbiased(self, loss, rows):
        s, positive, w, _ = rows
        objective = Pointwise(positive, loss, weight=w)
        values = []
        for seed in range(300):
            drawn, sampled = objective.sample(100, np.random.default_rng(seed))
            values.append(sampled.at(s[drawn]).value)
        # The class totals are matched exactly, which leaves a ratio bias of order 1/size: far below
        # the noise here.
        assert abs(np.mean(values) - objective.at(s).value) < 5 * np.std(values) / np.sqrt(
            len(values)
        )

    def test_profiled_is_the_minimum_over_a_shift(self, loss, rows):
        s, positive, w, u = rows
        objective = Pointwise(positive, loss, weight=w)
        profiled = Profiled(objective)
        best = minimize_scalar(lambda b: objective.at(s + b).value, tol=1e-12)
        there = profiled.at(s)
        assert_allclose(there.value, best.fun, rtol=1e-9)
        assert there.value <= best.fun + 1e-14
        assert abs(there.gradient.sum()) <= 1e-13
        if loss.smooth:
            assert_allclose(profiled.best_shift(s), best.x, atol=1e-5)
            product = (
                profiled.at(s + 1e-6 * u).gradient - profiled.at(s - 1e-6 * u).gradient
            ) / 2e-6
            assert np.linalg.norm(there.curvature_product(u) - product) <= 1e-3 * np.linalg.norm(
                product
            )
            full = there.curvature_matrix(np.eye(300))
            assert_allclose(np.diag(full), there.curvature_diagonal(), rtol=1e-9)

    def test_profiled_at_equal_scores(self, loss, rows):
        _, positive, w, _ = rows
        for weight in (None, w):
            profiled = Profiled(Pointwise(positive, loss, weight=weight))
            for level in (0.0, -3.0):
                s = np.full(positive.size, level)
                gradient = profiled.at(s).gradient
                assert abs(gradient.sum()) <= 1e-12
                assert_allclose(
                    profiled.best_shift(s), profiled.best_shift(np.zeros(s.size)) - level, atol=1e-9
                )

    def test_profiled_gradient_is_a_subgradient(self, loss, rows):
        s, positive, w, u = rows
        profiled = Profiled(Pointwise(positive, loss, weight=w))
        here, there = profiled.at(s), profiled.at(s + u)
        assert there.value >= here.value + here.gradient @ u - 1e-12


@pytest.mark.parametrize(
    "objective", [AllPairs, Pointwise, lambda y, loss: Profiled(Pointwise(y, loss))]
)
def test_smoothed_objectives_lie_just_above(objective):
    rng = np.random.default_rng(1)
    s, positive = rng.standard_normal(200), rng.random(200) < 0.5
    kinked = objective(positive, "hinge")
    added = kinked.smoothed(0.1).at(s).value - kinked.at(s).value
    assert 0.0 <= added <= 0.1 / 8


@pytest.mark.parametrize(
    "objective",
    [
        lambda y: AllPairs(y, "hinge"),
        lambda y: AllPairs(y, "hinge", weight=np.linspace(0.0, 1.0, y.size)),
        lambda y: AllPairs(np.arange(y.size) % 4, "hinge", group=np.arange(y.size) % 3),
        lambda y: Pointwise(y, "hinge", weight=np.linspace(0.0, 1.0, y.size)),
        lambda y: Profiled(Pointwise(y, "hinge")),
        lambda y: AnchoredHinge(y, 3),
    ],
    ids=["pairs", "weighted pairs", "grades and groups", "rows", "profiled", "anchored"],
)
@pytest.mark.parametrize("width", [4.0, 0.5, 1e-3])
def test_slopes_of_the_smoothed_objective_give_a_plane_below_the_hinge(objective, width):
    rng = np.random.default_rng(2)
    positive = rng.random(120) < 0.4
    kinked, c = objective(positive), rng.standard_normal(120)
    there = kinked.smoothed(width).at(c)
    for size in (0.0, 1e-3, 0.1, 1.0, 10.0):
        s = c + size * rng.standard_normal(120)
        assert kinked.at(s).value >= there.total_slope() + there.gradient @ s - 1e-12
    # The plane is as high as the hinge at c, but for the pairs within the width of their margin.
    assert kinked.at(c).value <= there.total_slope() + there.gradient @ c + width / 16 + 1e-12


def test_objectives_say_what_they_are():
    assert repr(AllPairs(np.array([0, 1]), "hinge")) == "AllPairs(Hinge())"
    assert (
        repr(Profiled(Pointwise(np.array([False, True]), "hinge")))
        == "Profiled(Pointwise(Hinge()))"
    )
