"""Newton's method with a working set against a generic solver, and its certificate."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.optimize import LinearConstraint, minimize

from forerank.design import make_design
from forerank.losses import get_loss
from forerank.objectives.top import Top
from forerank.solvers import Progress, bundle
from forerank.solvers.top_dual import accelerated_dual
from forerank.solvers.top_newton import working_set_newton
from oracles import top_objective

LOSSES = ("squared_hinge", "logistic", "exponential", "hinge")
THRESHOLDS = ("max", 3, 0.3)


def problem(n=60, d=4, seed=0, share=0.4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    positive = rng.random(n) < share
    X[positive] += 1.5 / np.sqrt(d) * 2.0
    return X, positive


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


class TestWorkingSetNewton:
    @pytest.mark.parametrize("alpha", [1.0, 1e-2])
    @pytest.mark.parametrize("at", THRESHOLDS)
    @pytest.mark.parametrize("loss", LOSSES)
    def test_newton_agrees_with_a_generic_solver(self, loss, at, alpha):
        X, positive = problem()
        expected = reference(X, positive, loss, at, alpha)
        result = working_set_newton(Top(positive, loss, at=at), make_design(X), alpha, tol=1e-7)
        assert result.converged
        assert result.objective < 0.99 * top_objective(
            np.zeros(60), positive, loss, at
        )  # there is something to learn
        assert_allclose(
            result.objective,
            top_objective(X @ result.w, positive, loss, at) + 0.5 * alpha * result.w @ result.w,
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


def one_hot(n=500, seed=0):
    """A one-hot table: equal rows, dependent columns, and scores that tie at every threshold."""
    rng = np.random.default_rng(seed)
    codes = [rng.choice(levels, n, p=np.ones(levels) / levels) for levels in (2, 3, 3, 5, 8)]
    X = np.hstack([np.eye(int(column.max()) + 1)[column] for column in codes])
    score = X @ rng.standard_normal(X.shape[1]) + rng.exponential(size=n)
    return X, score > np.quantile(score, 0.9)


class TestDegenerateRows:
    """One-hot and integer tables: many negatives tie at the threshold."""

    @pytest.mark.parametrize("alpha", [1e-1, 1e-3, 1e-5])
    @pytest.mark.parametrize("at", ["max", 3, 0.02, 0.3])
    @pytest.mark.parametrize("loss", LOSSES)
    def test_certificate(self, loss, at, alpha):
        for X, positive in (one_hot(), (one_hot()[0] @ np.arange(21.0)[:, None], one_hot()[1])):
            top, design = Top(positive, loss, at=at), make_design(X)
            result = working_set_newton(top, design, alpha, tol=1e-5)
            assert result.converged
            value = top_objective(X @ result.w, positive, loss, at)
            assert_allclose(result.objective, value + 0.5 * alpha * result.w @ result.w)
            # The bound is the dual at weights that are feasible.
            on_positives, on_negatives = -result.dual[positive], result.dual[~positive]
            assert_allclose(on_positives.sum(), on_negatives.sum(), rtol=1e-9)
            assert np.all(on_negatives <= top.caps * on_negatives.sum() * (1.0 + 1e-9))
            r = X.T @ result.dual
            bound = -top.conjugate(on_positives) - 0.5 * r @ r / alpha
            assert result.objective - max(bound, 0.0) <= 1.001e-5 * result.objective

    @pytest.mark.parametrize("at", ["max", 0.05])
    def test_few_weights(self, at):
        """The weights of the negatives between their bounds are at most as many as columns."""
        X, positive = one_hot(n=2000, seed=1)
        top = Top(positive, at=at)
        result = working_set_newton(top, make_design(X), 1e-3, tol=1e-6)
        beta = result.dual[~positive] / result.dual[~positive].sum()
        between = (beta > 1e-9) & (beta < (1.0 - 1e-6) * top.caps)
        assert np.count_nonzero(between) <= X.shape[1] + 1

    @pytest.mark.parametrize("at", ["max", 0.05])
    def test_a_start_from_another_penalty(self, at):
        X, positive = one_hot(seed=2)
        top, design = Top(positive, at=at), make_design(X)
        first = working_set_newton(top, design, 1e-1, tol=1e-6)
        fresh = working_set_newton(top, design, 1e-3, tol=1e-6)
        next_one = working_set_newton(
            top, design, 1e-3, tol=1e-6, start=first.w, start_dual=first.dual
        )
        assert next_one.converged
        assert_allclose(next_one.objective, fresh.objective, rtol=2e-6)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("n_positive", [1, 40])
@pytest.mark.parametrize("alpha", [1e-4, 1.0])
def test_columns_of_large_numbers_reach_the_tolerance(loss, n_positive, alpha):
    """Separable classes, whose best weights are small."""
    rng = np.random.default_rng(0)
    positive = np.arange(80) < n_positive
    X = (rng.standard_normal((80, 5)) + 3.0 * positive[:, None]) * [1e-2, 1e4, 1.0, 1e4, 1e-3]
    top, design = Top(positive, loss), make_design(X)
    found = working_set_newton(top, design, alpha)
    expected = bundle(top, design, alpha, tol=1e-6)
    assert found.optimality <= 1e-4
    assert_allclose(found.objective, expected.objective, rtol=2e-4)
