import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.svm import SVC, LinearSVC

from forerank.design import row_pairs
from forerank.design.row_pairs import Differences
from forerank.objectives import Pointwise, Profiled
from forerank.solvers.dual import dual_descent


def points(n=400, d=8, seed=0):
    """Rows with labels of -1 and 1 as pseudo-pairs."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(X @ np.arange(1, d + 1) + 4.0 * rng.standard_normal(n) > 0, 1, -1)
    row = np.arange(n)
    return X, y, np.where(y > 0, row, -1), np.where(y > 0, -1, row)


def primal(w, Z, box):
    return 0.5 * w @ w + box @ np.maximum(1.0 - Z @ w, 0.0)


class TestDualDescent:
    @pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
    @pytest.mark.parametrize(
        "form", [np.asarray, np.asfortranarray, sp.csr_array], ids=["C", "Fortran", "CSR"]
    )
    @pytest.mark.parametrize("stored", [True, False])
    def test_linear_svc(self, C, form, stored, monkeypatch):
        if not stored:
            monkeypatch.setattr(row_pairs, "_STORED_ROOM", 0)
        X, y, plus, minus = points()
        weight = np.random.default_rng(1).random(y.size) * 2.0
        weight[:20] = 0.0
        peer = LinearSVC(
            loss="hinge", C=C, fit_intercept=False, tol=1e-9, max_iter=1_000_000, random_state=0
        )
        peer.fit(X, y, sample_weight=weight)
        pairs = Differences(form(X), y.size)
        pairs.extend(plus, minus)
        solution = dual_descent(pairs, C * weight, tol=1e-6, max_iter=20_000)
        assert solution.converged
        reached = primal(solution.w, y[:, None] * X, C * weight)
        assert solution.objective == pytest.approx(reached, rel=1e-9)
        assert reached == pytest.approx(primal(peer.coef_[0], y[:, None] * X, C * weight), rel=1e-5)

    @pytest.mark.parametrize("C", [1e-3, 0.1, 10.0])
    @pytest.mark.parametrize("offset", [0.0, 5.0])
    def test_with_an_intercept_it_is_the_classical_support_vector_machine(self, C, offset):
        X, y, plus, minus = points()
        X = X + offset  # the intercept is far from zero, and no column can stand in for it
        weight = np.random.default_rng(1).random(y.size) * np.where(y > 0, 0.2, 1.0)
        peer = SVC(kernel="linear", C=C, tol=1e-8).fit(X, y, sample_weight=weight)
        pairs = Differences(X, y.size, in_place=True)
        pairs.extend(plus, minus)
        profiled = Profiled(Pointwise(y > 0, "hinge", weight=weight))
        solution = dual_descent(
            pairs, C * weight, intercept=profiled.best_shift, tol=1e-6, max_iter=50_000
        )
        assert solution.converged
        Z, box = y[:, None] * X, C * weight

        def objective(w, b):
            return 0.5 * w @ w + box @ np.maximum(1.0 - Z @ w - y * b, 0.0)

        reached = objective(solution.w, solution.intercept)
        assert solution.objective == pytest.approx(reached, rel=1e-9)
        theirs = objective(peer.coef_[0], peer.intercept_[0])
        assert theirs * (1 - 1e-4) < reached < theirs * (1 + 1e-5)
        # The gap is one: no weights do better than the bound it promises.
        rough = dual_descent(pairs, box, intercept=profiled.best_shift, tol=0.05, max_iter=50_000)
        assert (
            rough.objective * (1.0 - rough.optimality)
            <= solution.objective
            <= rough.objective * (1 + 1e-9)
        )

    def test_certificate(self):
        X, y, plus, minus = points()
        box = np.full(y.size, 0.5)
        pairs = Differences(X, y.size)
        pairs.extend(plus, minus)
        best = dual_descent(pairs, box, tol=1e-12, max_iter=100_000)
        assert best.optimality <= 1e-12
        for tol in (1e-1, 1e-2, 1e-4):
            rough = dual_descent(pairs, box, tol=tol, max_iter=100_000)
            assert 0.0 <= rough.objective - best.objective <= rough.optimality * rough.objective
            assert rough.optimality <= tol
            # The weights are those of the dual variables, which keep to their boxes.
            assert_allclose(rough.w, pairs.combination(rough.dual), atol=1e-9)
            assert np.all((rough.dual >= 0.0) & (rough.dual <= box))

    def test_out_of_steps(self):
        X, y, plus, minus = points()
        pairs = Differences(X, y.size)
        pairs.extend(plus, minus)
        solution = dual_descent(pairs, np.full(y.size, 100.0), tol=1e-10, max_iter=3)
        assert not solution.converged
        assert 3 <= solution.n_iter <= 4
        assert solution.objective == pytest.approx(
            primal(solution.w, y[:, None] * X, np.full(y.size, 100.0))
        )

    def test_warm_start_is_clipped_and_saves_steps(self):
        X, y, plus, minus = points(n=2000)
        pairs = Differences(X, y.size)
        pairs.extend(plus[:1900], minus[:1900])
        first = dual_descent(pairs, np.full(1900, 1.0), tol=1e-6, max_iter=100_000)
        again = dual_descent(
            pairs, np.full(1900, 1.0), start=first.dual, tol=1e-3, max_iter=100_000
        )
        cold = dual_descent(pairs, np.full(1900, 1.0), tol=1e-3, max_iter=100_000)
        assert again.n_iter == 1 < cold.n_iter
        pairs.extend(plus[1900:], minus[1900:])
        box = np.full(2000, 0.9)
        warm = dual_descent(pairs, box, start=first.dual, tol=1e-6, max_iter=100_000)
        cold = dual_descent(pairs, box, tol=1e-6, max_iter=100_000)
        assert warm.objective == pytest.approx(cold.objective, rel=2e-6)
        assert warm.dual.max() <= 0.9

    def test_equal_rows_and_empty_boxes(self):
        X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
        pairs = Differences(X, 3)
        pairs.extend(np.array([0, 0, 0]), np.array([1, 2, 2]))
        solution = dual_descent(pairs, np.array([2.0, 0.01, 0.0]), tol=1e-12)
        # The first pair has no difference and always costs 1; the third weighs nothing.
        assert_allclose(solution.w, 0.01 * (X[0] - X[2]))
        assert_allclose(solution.dual, [2.0, 0.01, 0.0])

    def test_unnoticed_work_sharpens_small_problems(self):
        X, y, plus, minus = points(n=40)
        pairs = Differences(X, y.size)
        pairs.extend(plus, minus)
        box = np.full(40, 0.1)
        assert dual_descent(pairs, box, tol=1e-1, at_least=1e7, max_iter=10_000).optimality < 1e-10
