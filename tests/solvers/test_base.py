"""Which solver is chosen, and the errors for combinations that cannot work."""

import numpy as np
import pytest

from forerank.design import make_design
from forerank.design.dense import FortranDesign
from forerank.losses import ErfcLogistic
from forerank.objectives import AllPairs, Pointwise, Profiled
from forerank.objectives.structured import (
    AnchoredHinge,
    AveragePrecision,
    RankWeightedHinge,
    harmonic,
)
from forerank.objectives.top import Top, TopWithinGroups
from forerank.solvers import (
    Progress,
    accelerated_dual,
    bundle,
    choose_solver,
    minimise,
    newton,
    pointwise_dual,
)

X = np.random.default_rng(0).standard_normal((40, 3))
POSITIVE = X[:, 0] + 0.5 * X[:, 1] > 0.3
GRADE = POSITIVE.astype(np.int8)
OBJECTIVES = {
    "newton": [AllPairs(GRADE, "logistic"), Pointwise(POSITIVE), Profiled(Pointwise(POSITIVE))],
    "ncg": [AllPairs(GRADE, ErfcLogistic())],
    "pointwise_dual": [Pointwise(POSITIVE, "hinge"), Profiled(Pointwise(POSITIVE, "hinge"))],
    "top_newton": [Top(POSITIVE), Top(POSITIVE, "logistic", at=0.2)],
    "top_multipliers": [TopWithinGroups(POSITIVE, "hinge", group=np.arange(40) % 3)],
    "bundle": [
        AllPairs(GRADE, "hinge"),
        AveragePrecision(POSITIVE),
        RankWeightedHinge(POSITIVE, harmonic),
        AnchoredHinge(POSITIVE, 3),
    ],
}
CASES = [(solver, objective) for solver, found in OBJECTIVES.items() for objective in found]


@pytest.mark.parametrize(("solver", "objective"), CASES)
def test_the_chosen_solver_meets_its_tolerance(solver, objective):
    design, progress = make_design(X), Progress()
    assert choose_solver(objective, design) == solver
    result = minimise(objective, design, 0.1, tol=1e-3, max_iter=500, progress=progress)
    assert result.converged
    assert result.optimality <= 1e-3
    assert result.history is progress.history


def test_an_intercept_column_excludes_solvers_with_a_dual_bound():
    hinge, design = Pointwise(POSITIVE, "hinge"), make_design(X, intercept=True)
    with pytest.raises(ValueError, match=r"No solver .*Pointwise\(Hinge\(\)\).*bundle.*penalty"):
        choose_solver(hinge, design)
    message = r"bundle cannot minimise Pointwise\(Hinge\(\)\).*every column.*without an intercept"
    with pytest.raises(ValueError, match=message):
        bundle(hinge, design, 0.1)


def test_rows_that_cannot_be_read_one_by_one_leave_the_hinge_to_the_bundle(monkeypatch):
    hinge, design = Pointwise(POSITIVE, "hinge"), make_design(np.asfortranarray(X))
    assert isinstance(design, FortranDesign)
    assert choose_solver(hinge, design) == "pointwise_dual"
    monkeypatch.setattr("forerank.design.dense._LARGEST_COPY", 0)
    large = make_design(np.asfortranarray(X))
    assert choose_solver(hinge, large) == "bundle"
    with pytest.raises(ValueError, match=r"rows that can be read one by one.*bundle.*C order"):
        pointwise_dual(hinge, large, 0.1)


def test_a_large_matrix_leaves_the_top_to_solvers_without_one(monkeypatch):
    monkeypatch.setattr("forerank.solvers.top_newton._LARGEST_MATRIX", 2)
    for loss in ("squared_hinge", "logistic", "hinge"):
        assert choose_solver(Top(POSITIVE, loss), make_design(X)) == "top_multipliers"


@pytest.mark.parametrize(
    ("solve", "objective", "parts"),
    [
        (newton, AllPairs(GRADE, "hinge"), ["newton", "AllPairs(Hinge())", "gradient", "bundle"]),
        (newton, AllPairs(GRADE, ErfcLogistic()), ["ErfcLogistic", "curvature", "ncg"]),
        (pointwise_dual, AllPairs(GRADE, "hinge"), ["single rows", "bundle", "Pointwise"]),
        (accelerated_dual, Top(POSITIVE, "logistic"), ["Logistic", "bounded", "top_newton"]),
        (
            accelerated_dual,
            TopWithinGroups(POSITIVE, group=np.arange(40) % 3),
            ["TopWithinGroups", "one threshold", "top_multipliers"],
        ),
    ],
)
def test_errors_name_solver_objective_need_and_alternatives(solve, objective, parts):
    with pytest.raises(ValueError) as error:
        solve(objective, make_design(X), 0.1)
    assert all(part in str(error.value) for part in parts)


def test_named_solvers_agree():
    objective, design = AllPairs(GRADE, "logistic"), make_design(X)
    by_newton = minimise(objective, design, 0.1, solver="newton", tol=1e-8)
    by_ncg = minimise(objective, design, 0.1, solver="ncg", tol=1e-8, start=np.ones(3))
    by_planes = minimise(objective, design, 0.1, solver="bundle", tol=1e-8)
    for result in (by_ncg, by_planes):
        assert result.objective == pytest.approx(by_newton.objective, rel=1e-6)
