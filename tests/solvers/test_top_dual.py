"""Projections and the accelerated dual method for the top objective."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from forerank.design import make_design
from forerank.objectives.top import Top
from forerank.solvers.top_dual import accelerated_dual, project_balanced, project_capped
from forerank.solvers.top_newton import working_set_newton

LOSSES = ("squared_hinge", "logistic", "exponential", "hinge")
THRESHOLDS = ("max", 3, 0.3)


def problem(n=60, d=4, seed=0, share=0.4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    positive = rng.random(n) < share
    X[positive] += 1.5 / np.sqrt(d) * 2.0
    return X, positive


def kkt_balanced(a, b, x, y, upper=None):
    """How far (x, y) is from the nearest balanced point, relative to the size of the data."""
    size = max(np.abs(a).max(), np.abs(b).max(), x.sum(), 1e-300)
    inside = x > 0 if upper is None else (x > 0) & (x < upper)
    shifts = np.concatenate([(a - x)[inside], (y - b)[y > 0]])
    residual = abs(x.sum() - y.sum()) / size
    if shifts.size:
        gamma = np.median(shifts)
        residual = max(residual, np.abs(shifts - gamma).max() / size)
        residual = max(
            residual,
            (a - gamma)[x == 0].max(initial=0.0) / size,
            (b + gamma)[y == 0].max(initial=0.0) / size,
        )
        if upper is not None:
            residual = max(residual, -(a - gamma - upper)[x == upper].min(initial=0.0) / size)
    return max(residual, -x.min(), -y.min())


class TestProjection:
    @given(
        st.lists(st.floats(-100, 100), min_size=1, max_size=30),
        st.lists(st.floats(-100, 100), min_size=1, max_size=30),
        st.booleans(),
    )
    def test_kkt(self, a, b, bounded):
        a, b = np.array(a), np.array(b)
        upper = 0.1 + np.abs(np.sin(np.arange(a.size))) * 10 if bounded else None
        x, y = project_balanced(a, b, upper)
        assert kkt_balanced(a, b, x, y, upper) <= 1e-12

    @pytest.mark.parametrize("kind", ["normal", "ties", "heavy", "one side"])
    def test_large(self, kind):
        rng = np.random.default_rng(0)
        a, b = {
            "normal": lambda: (rng.standard_normal(300_000), rng.standard_normal(200_000)),
            "ties": lambda: (
                rng.integers(-3, 4, 300_000).astype(float),
                rng.integers(-3, 4, 200_000).astype(float),
            ),
            "heavy": lambda: (rng.standard_cauchy(300_000), rng.standard_cauchy(200_000)),
            "one side": lambda: (rng.random(300_000), -rng.random(10)),
        }[kind]()
        x, y = project_balanced(a, b)
        assert kkt_balanced(a, b, x, y) <= 1e-12

    @given(st.integers(0, 2**32 - 1), st.booleans())
    def test_capped_is_nearest(self, seed, bounded):
        rng = np.random.default_rng(seed)
        a, b = rng.standard_normal(rng.integers(1, 8)), rng.standard_normal(rng.integers(2, 8))
        caps = rng.uniform(0.2, 1.0, b.size)
        caps *= max(1.0, 1.2 / caps.sum())
        caps = np.minimum(caps, 1.0)
        if caps.sum() < 1.0:
            caps[:] = 1.0
        upper = rng.uniform(0.1, 1.0, a.size) if bounded else None
        x, y = project_capped(a, b, caps, upper)
        G = y.sum()
        assert abs(x.sum() - G) <= 1e-12 * max(1.0, G)
        assert (y <= caps * G + 1e-12).all()
        assert min(x.min(), y.min()) >= 0.0
        # The nearest point of a convex set: no other point of it lies on the far side.
        for _ in range(50):
            total = rng.exponential() * rng.choice([0.0, 0.1, 1.0, 5.0])
            if upper is not None:
                total = min(total, upper.sum())
            v, u = rng.dirichlet(np.ones(a.size)) * total, rng.dirichlet(np.ones(b.size))
            u = np.minimum(u, caps)
            u = u + (1.0 - u.sum()) * (caps - u) / max((caps - u).sum(), 1e-300)
            if upper is not None and (v > upper).any():
                v = upper * (total / upper.sum())
            far = (a - x) @ (v - x) + (b - y) @ (u * total - y)
            assert far <= 1e-9

    def test_capped_with_loose_caps_is_balanced(self):
        rng = np.random.default_rng(0)
        a, b = rng.standard_normal(50), rng.standard_normal(80)
        for ours, expected in zip(
            project_capped(a, b, np.ones(80)), project_balanced(a, b), strict=True
        ):
            assert_allclose(ours, expected, atol=1e-12)


class TestAcceleratedDual:
    @pytest.mark.parametrize("at", THRESHOLDS)
    @pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
    def test_nesterov_finds_the_same(self, loss, at):
        X, positive = problem()
        top, design = Top(positive, loss, at=at), make_design(X)
        result = accelerated_dual(top, design, 1.0, tol=1e-6, max_iter=20_000)
        assert result.converged
        assert_allclose(result.scores, X @ result.w, atol=1e-9)
        assert_allclose(
            result.objective, working_set_newton(top, design, 1.0, tol=1e-8).objective, rtol=2e-6
        )

    @pytest.mark.parametrize("loss", ["logistic", "exponential"])
    def test_nesterov_refuses_steep_conjugates(self, loss):
        X, positive = problem()
        with pytest.raises(ValueError, match=f"{loss.title()}.*squared_hinge"):
            accelerated_dual(Top(positive, loss), make_design(X), 1.0)
