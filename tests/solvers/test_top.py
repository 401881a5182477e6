"""Positives against the top of the negatives: objective, projections, both solvers, and their
certificates.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import LinearConstraint, minimize

from forerank.design import make_design
from forerank.losses import get_loss
from forerank.objectives.top import Top
from forerank.solvers import Progress, bundle
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


def threshold(scores, at, weight=None):
    """The mean of the highest negatives, one unit of weight after the other."""
    weight = np.ones(scores.size) if weight is None else weight
    room = {"max": 0.0}.get(
        at, at if isinstance(at, int) else at * weight.sum() if at != "max" else 0.0
    )
    if at == "max":
        return scores.max()
    left, total = room, 0.0
    for j in np.argsort(-scores):
        taken = min(weight[j], left)
        total, left = total + taken * scores[j], left - taken
    return total / room


def definition(s, positive, loss, at, weight=None):
    weight = np.ones(s.size) if weight is None else weight
    T = threshold(s[~positive], at, weight[~positive])
    return np.average(get_loss(loss).value(s[positive] - T), weights=weight[positive])


def reference(X, positive, loss, at, alpha, l1=0.0):
    """A generic solver on the problem with one variable for the threshold and one for each kink."""
    P, N = X[positive], X[~positive]
    (m, d), n = P.shape, len(N)
    k = 1.0 if at == "max" else float(at) if isinstance(at, int) else at * n
    hinge = loss == "hinge"
    # w+, w-, level, excess of each negative over the level, and for the hinge the loss of each
    # positive.
    size = 2 * d + 1 + n + (m if hinge else 0)
    scalar = get_loss(loss)

    def T(v):
        return v[2 * d] + v[2 * d + 1 : 2 * d + 1 + n].sum() / k

    def objective(v):
        w = v[:d] - v[d : 2 * d]
        value = v[-m:].mean() if hinge else scalar.value(P @ w - T(v)).mean()
        return value + 0.5 * alpha * w @ w + l1 * v[: 2 * d].sum()

    def gradient(v):
        w = v[:d] - v[d : 2 * d]
        slope = np.zeros(m) if hinge else scalar.slope(P @ w - T(v)) / m
        g = np.zeros(size)
        if hinge:
            g[-m:] = 1.0 / m
        on_w = P.T @ slope + alpha * w
        g[:d], g[d : 2 * d] = on_w + l1, -on_w + l1
        g[2 * d] = -slope.sum()
        g[2 * d + 1 : 2 * d + 1 + n] = -slope.sum() / k
        return g

    rows = np.hstack([N, -N, -np.ones((n, 1)), -np.eye(n), np.zeros((n, size - 2 * d - 1 - n))])
    constraints = [LinearConstraint(rows, -np.inf, 0.0)]
    if hinge:
        on_T = np.concatenate([[1.0], np.full(n, 1.0 / k)])
        constraints.append(
            LinearConstraint(np.hstack([P, -P, np.tile(-on_T, (m, 1)), np.eye(m)]), 1.0, np.inf)
        )  # fmt: skip
    bounds = [(0.0, None)] * (2 * d) + [(None, None)] + [(0.0, None)] * (size - 2 * d - 1)
    start = np.concatenate([np.zeros(2 * d + 1 + n), np.ones(m if hinge else 0)])
    found = minimize(
        objective, start, jac=gradient, method="SLSQP", bounds=bounds, constraints=constraints,
        options={"ftol": 1e-13, "maxiter": 1000},
    )  # fmt: skip
    return found.fun


class TestObjective:
    @settings(deadline=None)
    @given(
        st.integers(0, 2**32 - 1),
        st.sampled_from(LOSSES),
        st.sampled_from(THRESHOLDS),
        st.booleans(),
    )
    def test_value_and_subgradient(self, seed, loss, at, weighted):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(8, 20))
        positive = rng.permutation(np.arange(n) < rng.integers(1, n - 4))
        s = rng.choice([rng.standard_normal(n), rng.integers(-2, 3, n).astype(float)])
        weight = rng.integers(1, 4, n).astype(float) if weighted else None
        top = Top(positive, loss, at=at, weight=weight)
        here = top.at(s)
        assert_allclose(here.value, definition(s, positive, loss, at, weight), rtol=1e-12)
        assert_allclose(top.value_at(s), here.value, rtol=1e-14)
        # A subgradient of a convex function: the plane is nowhere above it. Constants do not
        # matter.
        for other in s + rng.standard_normal((5, n)):
            assert top.value_at(other) >= here.value + here.gradient @ (other - s) - 1e-10
        assert abs(here.gradient.sum()) < 1e-12

    @pytest.mark.parametrize("at", THRESHOLDS)
    def test_a_weight_of_two_is_two_rows(self, at):
        rng = np.random.default_rng(0)
        positive, s = np.arange(12) < 5, rng.standard_normal(12)
        weight = rng.integers(0, 3, 12).astype(float)
        weight[[0, 11]] = 2.0
        rows = np.repeat(np.arange(12), weight.astype(int))
        a = Top(positive, at=at, weight=weight).value_at(s)
        assert a == pytest.approx(Top(positive[rows], at=at).value_at(s[rows]))

    def test_infinite_push_has_the_same_value(self):
        rng = np.random.default_rng(0)
        positive, s = np.arange(20) < 8, rng.standard_normal(20)
        for loss in LOSSES:
            per_negative = [
                np.mean(get_loss(loss).value(s[positive] - s_j)) for s_j in s[~positive]
            ]
            assert Top(positive, loss).value_at(s) == pytest.approx(max(per_negative))

    @pytest.mark.parametrize("at", [0, -1, 0.0, 1.0, 1.5, -0.1, True, "top", None, np.nan])
    def test_thresholds_that_make_no_sense(self, at):
        with pytest.raises(ValueError, match="at"):
            Top(np.arange(6) < 3, at=at)

    def test_more_negatives_than_there_are(self):
        with pytest.raises(
            ValueError,
            match="4 largest negative scores, but there are negatives of a total weight of 3",
        ):
            Top(np.arange(6) < 3, at=4)
        Top(np.arange(6) < 3, at=3)

    @pytest.mark.parametrize("positive", [np.zeros(4, bool), np.ones(4, bool)])
    def test_one_class(self, positive):
        with pytest.raises(ValueError, match="rows on both sides"):
            Top(positive)


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
    @settings(deadline=None)
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

    @settings(deadline=None)
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


class TestSolvers:
    @pytest.mark.parametrize("alpha", [1.0, 1e-2])
    @pytest.mark.parametrize("at", THRESHOLDS)
    @pytest.mark.parametrize("loss", LOSSES)
    def test_newton_agrees_with_a_generic_solver(self, loss, at, alpha):
        X, positive = problem()
        expected = reference(X, positive, loss, at, alpha)
        result = working_set_newton(Top(positive, loss, at=at), make_design(X), alpha, tol=1e-7)
        assert result.converged
        assert result.objective < 0.99 * definition(
            np.zeros(60), positive, loss, at
        )  # there is something to learn
        assert_allclose(
            result.objective,
            definition(X @ result.w, positive, loss, at) + 0.5 * alpha * result.w @ result.w,
        )
        assert_allclose(result.objective, expected, rtol=1e-5)

    @pytest.mark.parametrize("loss", LOSSES)
    def test_more_columns_than_positives(self, loss):
        X, positive = problem(n=50, d=60, share=0.3)
        for at in THRESHOLDS:
            result = working_set_newton(Top(positive, loss, at=at), make_design(X), 0.1, tol=1e-7)
            assert result.converged
            if at == "max":
                assert_allclose(result.objective, reference(X, positive, loss, at, 0.1), rtol=1e-5)

    @pytest.mark.parametrize("at", ["max", 4])
    def test_both_spaces_find_the_same(self, at):
        X, positive = problem(n=80, d=20, seed=3)
        narrow = working_set_newton(Top(positive, at=at), make_design(X), 0.05, tol=1e-10)
        wide = np.hstack([X, np.zeros((80, 100))])
        found = working_set_newton(Top(positive, at=at), make_design(wide), 0.05, tol=1e-10)
        assert_allclose(found.w[:20], narrow.w, atol=1e-5)
        assert_allclose(found.w[20:], 0.0, atol=1e-12)

    @pytest.mark.parametrize("alpha", [0.3, 0.03])
    @pytest.mark.parametrize("loss", LOSSES)
    def test_sparse_weights_agree_with_a_generic_solver(self, loss, alpha):
        X, positive = problem(d=6)
        result = working_set_newton(Top(positive, loss), make_design(X), 0.0, l1=alpha, tol=1e-6)
        assert result.converged
        assert_allclose(
            result.objective, reference(X, positive, loss, "max", 0.0, l1=alpha), rtol=1e-5
        )

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
        with pytest.raises(ValueError, match=f"{loss}.*squared_hinge"):
            accelerated_dual(Top(positive, loss), make_design(X), 1.0)

    @pytest.mark.parametrize("loss", LOSSES)
    def test_bundle_finds_the_same(self, loss):
        X, positive = problem()
        top, design = Top(positive, loss, at=2), make_design(X)
        found = bundle(top, design, 0.1, tol=1e-5)
        assert_allclose(
            found.objective, working_set_newton(top, design, 0.1, tol=1e-8).objective, rtol=2e-5
        )

    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("seed", range(3))
    def test_the_gap_is_what_it_says(self, loss, seed):
        """The bound is the dual at a feasible point, so no weights at all can lie below it."""
        X, positive = problem(n=300, d=10, seed=seed)
        top, design = Top(positive, loss), make_design(X)
        exact = working_set_newton(top, design, 1e-2, tol=1e-9)
        rough = working_set_newton(top, design, 1e-2, tol=0.3)
        assert rough.objective * (1.0 - rough.optimality) <= exact.objective * (1.0 + 1e-9)
        assert rough.objective >= exact.objective * (1.0 - 1e-9)

    def test_storage_and_order_do_not_matter(self):
        X, positive = problem(n=400, d=8)
        X = X.astype(np.float32).astype(float)
        expected = working_set_newton(Top(positive), make_design(X), 1e-2, tol=1e-9).w
        for other in (
            np.asfortranarray(X),
            sp.csr_array(X),
            X.astype(np.float32),
            X + np.arange(8.0),
        ):
            w = working_set_newton(Top(positive), make_design(other), 1e-2, tol=1e-9).w
            assert_allclose(w, expected, atol=1e-4)
        order = np.random.default_rng(1).permutation(400)
        w = working_set_newton(Top(positive[order]), make_design(X[order]), 1e-2, tol=1e-9).w
        assert_allclose(w, expected, atol=1e-4)

    def test_many_equal_negatives_at_the_top(self):
        X, positive = problem(n=100)
        highest = X[~positive][np.argmax(X[~positive] @ np.ones(4))]
        doubled = np.vstack([X, np.tile(highest, (500, 1))])
        with_copies = np.concatenate([positive, np.zeros(500, bool)])
        a = working_set_newton(Top(positive), make_design(X), 1e-2, tol=1e-8)
        b = working_set_newton(Top(with_copies), make_design(doubled), 1e-2, tol=1e-8)
        assert b.converged
        assert_allclose(a.objective, b.objective, rtol=1e-7)

    def test_positives_that_cannot_be_lifted(self):
        """The mean of the positives lies among the negatives: w = 0 is the solution, and is proved
        to be.
        """
        rng = np.random.default_rng(0)
        X = rng.standard_normal((400, 3))
        positive = np.arange(400) < 100
        X[positive] *= 0.1
        for solve in (working_set_newton, accelerated_dual):
            result = solve(Top(positive), make_design(X), 1e-2, tol=1e-6)
            assert result.converged
            assert_allclose(result.objective, 1.0, rtol=1e-6)

    def test_progress_is_kept(self):
        X, positive = problem()
        for solve in (working_set_newton, accelerated_dual):
            progress = Progress()
            result = solve(Top(positive), make_design(X), 1.0, tol=1e-4, progress=progress)
            assert progress.history[-1].optimality == result.optimality
            assert np.array_equal(progress.w, result.w)
            values = [step.objective for step in progress.history]
            assert values == sorted(values, reverse=True)

    def test_columns_of_very_different_size(self):
        X, positive = problem(n=300, d=5)
        result = working_set_newton(
            Top(positive), make_design(X * np.logspace(-3, 5, 5)), 1e-3, tol=1e-6
        )
        assert result.converged
