import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from forerank.design import make_design
from forerank.losses import get_loss
from forerank.objectives import AllPairs, Pointwise
from forerank.solvers import Progress, newton
from forerank.solvers.newton import newton_direction
from forerank.solvers.units import column_units
from oracles import pair_units
from solver_problems import problem

SMOOTH = ("exponential", "logistic", "squared", "squared_hinge")


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("alpha", [1.0, 1e-3])
class TestNewton:
    def test_agrees_with_a_generic_solver_on_the_definition(self, loss, alpha):
        X, y = problem(n=120)
        scalar = get_loss(loss)

        def definition(w):
            s = X @ w
            return np.mean(scalar.value(s[y][:, None] - s[~y])) + 0.5 * alpha * w @ w

        reference = minimize(definition, np.zeros(6), method="BFGS", options={"gtol": 1e-9})
        result = newton(AllPairs(y, loss), make_design(X), np.full(6, alpha), tol=1e-8)
        assert result.converged
        assert_allclose(result.objective, definition(result.w), rtol=1e-10)
        assert result.objective <= reference.fun + 1e-10
        assert_allclose(result.w, reference.x, atol=1e-4)

    @pytest.mark.parametrize("objective", [AllPairs, Pointwise])
    def test_certificate_is_the_gradient_over_all_rows(self, loss, alpha, objective):
        n, some = 40_000, slice(4_000)  # enough rows for a start on a sample of them
        X, y = problem(n=n)
        F, design = objective(y, loss), make_design(X)
        result = newton(F, design, np.full(6, alpha), tol=1e-6)
        # Every column in its own unit, as a sample shows it: its differences over pairs, or its
        # values.
        unit = column_units(F, design).unit
        assert_allclose(
            unit,
            pair_units(X[some], y[some]) if objective is AllPairs else np.sqrt((X**2).mean(axis=0)),
            rtol=0.2,
        )
        at_zero = np.linalg.norm(design.adjoint(F.at(np.zeros(n)).gradient) / unit)
        gradient = X.T @ F.at(X @ result.w).gradient + alpha * result.w
        assert result.converged
        assert_allclose(
            np.linalg.norm(gradient / unit) / at_zero, result.optimality, rtol=1e-3, atol=1e-12
        )
        assert result.optimality <= 1e-6
        assert result.history[0].n_rows < n == result.history[-1].n_rows
        assert_allclose(result.scores, X @ result.w, rtol=1e-9, atol=1e-9)

    def test_does_not_depend_on_samples_or_storage(self, loss, alpha):
        X, y = problem(n=20_000)
        F, penalty = AllPairs(y, loss), np.full(6, alpha)
        sampled = newton(F, make_design(X), penalty, tol=1e-8)
        from_zero = newton(
            F, make_design(np.asfortranarray(X)), penalty, start=np.zeros(6), tol=1e-8
        )
        assert_allclose(sampled.w, from_zero.w, rtol=1e-5, atol=1e-7)

    def test_warm_start_at_the_solution_takes_no_step(self, loss, alpha):
        X, y = problem()
        F, design, penalty = AllPairs(y, loss), make_design(X), np.full(6, alpha)
        first = newton(F, design, penalty, tol=1e-8)
        assert newton(F, design, penalty, start=first.w, tol=1e-6).n_iter == 0


@pytest.mark.parametrize("alpha", [1e-2, 1e-4])
@pytest.mark.parametrize("intercept", [False, True])
def test_pointwise_logistic_is_logistic_regression(alpha, intercept):
    X, y = problem(spread=0.5)
    peer = LogisticRegression(
        C=1 / (alpha * 400), tol=1e-10, max_iter=10_000, fit_intercept=intercept
    ).fit(X, y)
    penalty = np.full(6 + intercept, alpha)
    penalty[6:] = 0.0
    result = newton(
        Pointwise(y, "logistic"), make_design(X, intercept=intercept), penalty, tol=1e-9
    )
    assert_allclose(result.w[:6], peer.coef_[0], rtol=1e-5, atol=1e-6)
    if intercept:
        assert_allclose(result.w[6:], peer.intercept_, rtol=1e-5)


def test_pointwise_squared_hinge_is_linear_svc():
    X, y = problem(spread=0.5)
    weight = np.random.default_rng(5).random(400) + 0.1
    alpha = 1e-3
    # LinearSVC: 1/2 |w|^2 + C sum w_i l_i, so alpha = 1 / (C sum w_i).
    peer = LinearSVC(
        C=1 / (alpha * weight.sum()), fit_intercept=False, tol=1e-10, dual=False, max_iter=100_000
    )
    peer.fit(X, y, sample_weight=weight)
    result = newton(
        Pointwise(y, "squared_hinge", weight=weight), make_design(X), np.full(6, alpha), tol=1e-9
    )
    assert_allclose(result.w, peer.coef_[0], rtol=1e-5, atol=1e-7)


def test_badly_scaled_columns_converge():
    X, y = problem(n=5000, d=8, spread=6.0)
    result = newton(
        AllPairs(y, "squared_hinge"), make_design(X), np.full(8, 1e-9), tol=1e-6, max_iter=30
    )
    assert result.converged


def test_columns_that_are_rare_or_constant_converge():
    rng = np.random.default_rng(6)
    X, y = problem(n=20_000, d=6)
    rare = np.zeros((20_000, 4))
    rare[rng.integers(0, 20_000, 12), rng.integers(0, 3, 12)] = 50.0
    rare[:, 3] = 7.0
    X = np.column_stack([X, rare])
    for loss in ("squared_hinge", "logistic"):
        result = newton(AllPairs(y, loss), make_design(X), np.full(10, 1e-6), tol=1e-6, max_iter=50)
        assert result.converged
        assert abs(result.w[9]) < 1e-8  # pairs do not see a constant column


def test_more_columns_than_rows():
    X, y = problem(n=40, d=300, spread=0.0)
    result = newton(AllPairs(y, "logistic"), make_design(X), np.full(300, 1e-3), tol=1e-7)
    assert result.converged


def test_no_penalty_is_allowed_where_curvature_suffices():
    X, y = problem()
    assert newton(AllPairs(y, "logistic"), make_design(X), np.zeros(6), tol=1e-7).converged


def test_zero_is_recognised():
    X = np.zeros((10, 3))
    y = np.arange(10) % 2 == 0
    assert newton(AllPairs(y, "logistic"), make_design(X), np.full(3, 0.1)).converged


def test_max_iter_is_respected_and_reported():
    X, y = problem()
    result = newton(
        AllPairs(y, "logistic"), make_design(X), np.full(6, 1e-6), tol=1e-12, max_iter=2
    )
    assert result.n_iter == 2
    assert not result.converged


def test_refusals_say_what_would_work():
    X, y = problem()
    with pytest.raises(
        ValueError, match=r"newton cannot minimise AllPairs\(Hinge\(\)\): it needs a continuous"
    ):
        newton(AllPairs(y, "hinge"), make_design(X), np.zeros(6))


def test_progress_prints_and_keeps_the_latest_weights(capsys):
    X, y = problem()
    progress = Progress(verbose=True)
    result = newton(AllPairs(y, "logistic"), make_design(X), np.full(6, 1e-3), progress=progress)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(progress.history) == result.n_iter + 1
    assert "optimality" in lines[-1]
    assert_allclose(progress.w, result.w)
    seconds = [step.seconds for step in progress.history]
    assert seconds == sorted(seconds)


class WithoutRows:
    """A linearisation that does not say which rows have a curvature."""

    def __init__(self, here):
        self.curvature_product = here.curvature_product


def test_direction_from_the_rows_with_a_curvature():
    X, y = problem()
    s = 30.0 * np.where(y, 1.0, -1.0) * np.random.default_rng(0).random(y.size)
    here = AllPairs(y.astype(int), "squared_hinge").at(s)
    assert 0 < here.curved_rows().size < 0.2 * y.size  # few enough for a copy of them
    design = make_design(X)
    gradient, penalty = design.adjoint(here.gradient), np.full(X.shape[1], 1e-3)
    options = design, penalty, gradient, lambda r: r, 1e-10
    p, scores = newton_direction(here, *options)
    expected = newton_direction(WithoutRows(here), *options)
    assert_allclose(p, expected[0], rtol=1e-6, atol=1e-9 * abs(p).max())
    assert_allclose(scores, X @ p, rtol=1e-9)
