"""The plain hinge over parts: its bound, the smoothed hinge and the plane below the hinge, against
sums over all pairs in memory.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forerank.losses import Hinge, SmoothedHinge
from forerank.objectives import AllPairs, Pointwise
from forerank.objectives.part_planes import evaluate_hinge, part_line
from forerank.objectives.parts import PairParts, Point, PointParts, Rows
from part_rows import made_rows, over, raw_point


def pair_means(rows, edges, s, loss):
    """The mean loss and its gradient, pair by pair."""
    weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight
    allowed = np.zeros((rows.n_rows, rows.n_rows))
    for upper, lower in edges:
        allowed += np.outer(rows.codes == upper, rows.codes == lower)
    if rows.group is not None:
        allowed *= np.equal.outer(rows.group, rows.group)
    share = allowed * np.outer(weight, weight)
    share /= share.sum()
    t = np.subtract.outer(s, s)
    slope = share * loss.slope(t)
    return float((share * loss.value(t)).sum()), rows.X.T @ (slope.sum(axis=1) - slope.sum(axis=0))


def assert_below(here, hinge, w, rng):
    """The plane is below the hinge, near the point and far from it."""
    for size in (0.0, 0.01, 0.1, 1.0):
        for _ in range(10):
            v = rng.uniform(0.0, 2.0) * w + size * rng.standard_normal(w.size)
            value = hinge(v)
            assert here.plane @ v + here.offset <= value + 1e-11 * (1.0 + value)


@pytest.mark.parametrize("one_pass", [False, True])
@pytest.mark.parametrize("width", [0.5, 2.0**-5])
@pytest.mark.parametrize(
    ("n_classes", "edges"), [(2, None), (4, None), (4, ((3, 0), (2, 0), (3, 1)))]
)
@pytest.mark.parametrize("kind", ["normal", "lattice", "tied", "wide", "rare"])
def test_pairs_equal_the_double_loop(one_pass, width, n_classes, edges, kind):
    if kind == "rare" and n_classes != 2:
        pytest.skip("the rare class is one of two")
    rows, w = made_rows(kind, n=601, n_classes=n_classes, weighted=True, seed=3)
    parts = PairParts("hinge", n_classes, edges)
    here = evaluate_hinge(parts, raw_point(w), over(rows), width, one_pass=one_pass)
    s, graph = rows.X @ w, parts.all_edges()
    value, _ = pair_means(rows, graph, s, Hinge())
    assert value - 1e-11 * value <= here.hinge <= value + 1e-9 * value
    smooth, gradient = pair_means(rows, graph, s, SmoothedHinge(max(width, here.least_width)))
    assert here.value == pytest.approx(smooth, rel=1e-6)
    difference = np.linalg.norm(here.gradient - gradient)
    assert difference <= (1e-3 if one_pass else 1e-5) * np.linalg.norm(gradient)
    assert here.n_passes == 1 + (not one_pass) or kind == "wide"
    objective = AllPairs(rows.codes, "hinge", weight=rows.weight, edges=edges)
    rng = np.random.default_rng(4)
    assert_below(here, lambda v: objective.at(rows.X @ v).value, w, rng)
    if one_pass and here.narrower(0.5 * width) is not None:
        narrower = here.narrower(0.5 * width)
        assert_below(narrower, lambda v: objective.at(rows.X @ v).value, w, rng)


@pytest.mark.parametrize("width", [1.0, 2.0**-6])
@pytest.mark.parametrize("weighted", [False, True])
def test_groups_are_exact(width, weighted):
    rows, w = made_rows(n=300, n_classes=3, weighted=weighted, grouped=True, seed=5)
    parts = PairParts("hinge", 3, grouped=True)
    here = evaluate_hinge(parts, raw_point(w), over(rows), width)
    s, graph = rows.X @ w, parts.all_edges()
    smooth, gradient = pair_means(rows, graph, s, SmoothedHinge(width))
    assert here.hinge == pytest.approx(pair_means(rows, graph, s, Hinge())[0], rel=1e-12)
    assert here.value == pytest.approx(smooth, rel=1e-11)
    np.testing.assert_allclose(here.gradient, gradient, atol=1e-12)
    objective = AllPairs(rows.codes, "hinge", weight=rows.weight, group=rows.group)
    rng = np.random.default_rng(6)
    assert_below(here, lambda v: objective.at(rows.X @ v).value, w, rng)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("class_weight", [None, (0.5, 3.0)])
def test_points_are_exact_and_planes_do_not_depend_on_the_intercept(intercept, class_weight):
    rows, w = made_rows(n=400, weighted=True, seed=7)
    w = np.append(w, 0.4) if intercept else w
    mean = np.append([0.5, -1.0, 2.0, 0.0], [0.0] * intercept) * intercept
    unit = np.append([2.0, 1.0, 0.5, 3.0], [1.0] * intercept)
    point, parts = Point(w, mean, unit, intercept), PointParts("hinge", class_weight)
    here = evaluate_hinge(parts, point, over(rows), 0.25)
    X = (rows.X - mean[:4]) / unit[:4]
    X = np.column_stack([X, np.ones(len(X))]) if intercept else X
    weight = rows.weight * np.asarray(class_weight or (1.0, 1.0))[rows.codes]
    objective = Pointwise(rows.codes == 1, "hinge", weight=weight)
    smooth = objective.smoothed(0.25).at(X @ w)
    assert here.hinge == pytest.approx(objective.at(X @ w).value, rel=1e-12)
    assert here.value == pytest.approx(smooth.value, rel=1e-12)
    np.testing.assert_allclose(here.gradient, X.T @ smooth.gradient, atol=1e-12)
    expected = X.T @ (smooth.curvature_diagonal()[:, None] * X)
    np.testing.assert_allclose(here.hessian, expected, atol=1e-11)
    if intercept:
        assert abs(here.plane[-1]) <= 1e-14
    rng = np.random.default_rng(8)
    assert_below(here, lambda v: objective.at(X @ v).value, w, rng)
    p, steps = rng.standard_normal(w.size), np.array([1.0, 0.25])
    line = part_line(rows, point, parts, 0.25, p, steps) / here.total
    values = [objective.smoothed(0.25).at(X @ (w + step * p)).value for step in steps]
    np.testing.assert_allclose(line, values, rtol=1e-12)


@given(
    scores=st.lists(
        st.tuples(
            st.one_of(st.sampled_from([-1.0, 0.0, 1.0, 0.5, 1e-9, 1.0 - 1e-9, 1.0 + 2.0**-12]),
                      st.floats(-3.0, 3.0)),
            st.integers(0, 2),
            st.sampled_from([0.0, 1.0, 1e-3, 50.0]),
        ),
        min_size=8, max_size=40,
    ),
    exponent=st.integers(-10, 1),
    bits=st.sampled_from([None, 2, 6]),
    one_pass=st.booleans(),
    other=st.tuples(st.floats(-3.0, 3.0), st.floats(-2.0, 2.0)),
)  # fmt: skip
def test_planes_and_bounds_hold_for_any_scores(scores, exponent, bits, one_pass, other):
    """The plane is never above the hinge, and the value at the point never below it, for cells of
    any width.
    """
    s, codes, weight = (np.array(each) for each in zip(*scores, strict=True))
    codes = np.minimum(codes, 1)
    if np.bincount(codes, weight, 2).min() == 0.0:
        return
    rows = Rows(np.column_stack([s, np.cos(9.0 * s)]), codes, weight)
    w, v = np.array([1.0, 0.0]), np.array(other)
    parts = PairParts("hinge", bits=bits)
    here = evaluate_hinge(parts, raw_point(w), over(rows), 2.0**exponent, one_pass=one_pass)
    objective = AllPairs(codes, "hinge", weight=weight)
    assert here.hinge >= objective.at(s).value - 1e-12
    for u in (w, v, w + 0.01 * v, np.zeros(2)):
        assert here.plane @ u + here.offset <= objective.at(rows.X @ u).value + 1e-11


def test_too_large_scores_have_no_plane():
    rows, w = made_rows(n=50)
    for one_pass in (False, True):
        here = evaluate_hinge(
            PairParts("hinge"), raw_point(1e12 * w), over(rows), 1.0, one_pass=one_pass
        )
        assert here.value == here.hinge == np.inf
        assert here.plane is None
