from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from forerank.design import make_design
from forerank.losses import ErfcLogistic
from forerank.objectives import AllPairs
from forerank.solvers import Progress, ncg
from forerank.solvers.units import column_units
from tables import graded_rows

SUMS = ("erfc", "exact", "direct")

data = partial(graded_rows, classes=3, noise=4)


class TestSolver:
    @pytest.mark.parametrize(
        "loss", ["logistic", "squared_hinge", "exponential", ErfcLogistic(1e-12)], ids=repr
    )
    @pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0])
    def test_agrees_with_a_general_optimiser(self, loss, alpha):
        X, y = data()
        objective, design = AllPairs(y, loss), make_design(X)
        found = ncg(objective, design, alpha, tol=1e-8)
        assert found.converged

        def value_and_gradient(w):
            there = objective.at(design.scores(w))
            return there.value + 0.5 * alpha * w @ w, design.adjoint(there.gradient) + alpha * w

        peer = minimize(
            value_and_gradient, np.zeros(5), jac=True, method="BFGS", options={"gtol": 1e-9}
        )
        assert_allclose(found.w, peer.x, rtol=1e-4, atol=1e-6)
        assert found.objective <= peer.fun + 1e-10
        assert_allclose(found.scores, X @ found.w, atol=1e-8)

    def test_the_certificate_is_the_gradient(self):
        X, y = data()
        objective, design = AllPairs(y, "logistic"), make_design(X)
        found = ncg(objective, design, 1e-2, tol=1e-5)
        gradient = design.adjoint(objective.at(X @ found.w).gradient) + 1e-2 * found.w
        reference, unit = (
            design.adjoint(objective.gradient_at_zero()),
            column_units(objective, design).unit,
        )
        assert_allclose(
            found.optimality,
            np.linalg.norm(gradient / unit) / np.linalg.norm(reference / unit),
            rtol=1e-3,
        )  # fmt: skip

    def test_steps_go_down_and_are_recorded(self):
        X, y = data()
        progress = Progress()
        found = ncg(AllPairs(y, "logistic"), make_design(X), 1e-3, tol=1e-7, progress=progress)
        values = [step.objective for step in progress.history]
        assert len(values) == found.n_iter + 1
        assert np.all(np.diff(values) <= 1e-12)

    def test_conjugate_directions_finish_a_quadratic_in_as_many_steps_as_columns(self):
        X, y = data(d=8)
        found = ncg(AllPairs(y, "squared"), make_design(X * np.arange(1, 9)), 1e-3, tol=1e-5)
        # Line searches are not exact, so a few more than eight.
        assert found.n_iter <= 16

    def test_badly_scaled_columns_take_no_longer(self):
        X, y = data()
        size = 10.0 ** np.arange(-2, 3)
        plain = ncg(AllPairs(y, "logistic"), make_design(X), 0.0, tol=1e-4)
        found = ncg(AllPairs(y, "logistic"), make_design(X * size), 0.0, tol=1e-4)
        assert found.converged
        assert found.n_iter == plain.n_iter
        assert_allclose(found.w * size, plain.w, rtol=1e-6)

    def test_kinks_are_refused(self):
        X, y = data()
        with pytest.raises(
            ValueError, match=r"ncg cannot minimise AllPairs\(Hinge\(\)\): it needs a continuous"
        ):
            ncg(AllPairs(y, "hinge"), make_design(X), 1.0)
