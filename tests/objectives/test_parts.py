"""Objectives over parts of the rows equal those over all rows in memory."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forerank.objectives import AllPairs, Pointwise
from forerank.objectives.part_hessians import evaluate_with_hessian
from forerank.objectives.parts import (
    PairParts,
    Point,
    PointParts,
    Rows,
    evaluate,
    part_sums,
    part_tables,
    slope_functions,
)
from forerank.pairsums.nodes import NodeSums
from part_rows import made_rows, over, raw_point

LOSSES = ["hinge", "squared_hinge", "logistic", "exponential", "squared"]


def assert_equal(found, here, X):
    gradient = X.T @ here.gradient
    assert found.value == pytest.approx(here.value, rel=1e-10)
    difference = np.linalg.norm(found.gradient - gradient)
    assert difference <= 1e-10 * np.linalg.norm(gradient) + 1e-14


KINDS = ["normal", "lattice", "tied", "wide", "rare"]


def cases_of(losses):
    """Losses and kinds of scores; the exponential of wide ones overflows."""
    every = itertools.product(losses, KINDS)
    return [(loss, kind) for loss, kind in every if (loss, kind) != ("exponential", "wide")]


@pytest.mark.parametrize(("loss", "kind"), cases_of(LOSSES))
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bits", [None, 8, 16])
def test_pairs_equal_those_in_memory(loss, weighted, kind, bits):
    rows, w = made_rows(kind, weighted=weighted)
    found = evaluate(PairParts(loss, bits=bits), raw_point(w), over(rows))
    assert found.error == 0.0
    assert_equal(found, AllPairs(rows.codes, loss, weight=rows.weight).at(rows.X @ w), rows.X)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("edges", [None, ((3, 0), (2, 0), (3, 1))])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_grades_graphs_and_groups_equal_those_in_memory(loss, edges, grouped, weighted):
    rows, w = made_rows(n_classes=4, grouped=grouped, weighted=weighted, seed=2)
    found = evaluate(PairParts(loss, 4, edges, grouped), raw_point(w), over(rows))
    objective = AllPairs(rows.codes, loss, weight=rows.weight, group=rows.group, edges=edges)
    assert_equal(found, objective.at(rows.X @ w), rows.X)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_weight", [None, (0.5, 3.0)])
def test_points_equal_those_in_memory(loss, weighted, class_weight):
    rows, w = made_rows(weighted=weighted, seed=4)
    mean, unit = np.array([0.5, -1.0, 2.0, 0.0, 0.0]), np.array([2.0, 1.0, 0.5, 3.0, 1.0])
    point = Point(np.append(w, 0.3), mean, unit, intercept=True)
    found = evaluate(PointParts(loss, class_weight), point, over(rows))
    X = np.column_stack([(rows.X - mean[:-1]) / unit[:-1], np.ones(rows.n_rows)])
    weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight
    weight = weight if class_weight is None else weight * np.asarray(class_weight)[rows.codes]
    assert_equal(found, Pointwise(rows.codes == 1, loss, weight=weight).at(X @ point.w), X)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_error_of_the_gradient_is_within_its_bound(loss):
    rows, w = made_rows("normal", n=20_000, weighted=True, seed=5)
    share = [np.average((rows.X**2).sum(axis=1)[rows.codes == k],
                        weights=rows.weight[rows.codes == k]) for k in (0, 1)]  # fmt: skip
    here = AllPairs(rows.codes, loss, weight=rows.weight).at(rows.X @ w)
    gradient = rows.X.T @ here.gradient
    limits = {}
    for accuracy in (1.0, 1e-7, 1e-9):
        found = evaluate(
            PairParts(loss), raw_point(w), over(rows), accuracy=accuracy, second_moment=max(share)
        )
        assert np.linalg.norm(found.gradient - gradient) <= found.error + 1e-13
        assert found.error <= accuracy
        limits[accuracy] = found.n_passes
    assert limits[1.0] == 2
    assert limits[1e-9] == 3


def test_too_large_scores_have_an_infinite_value():
    rows, w = made_rows(n=50)
    for loss in ("squared_hinge", "logistic", "exponential"):
        assert evaluate(PairParts(loss), raw_point(1e12 * w), over(rows)).value == np.inf


def test_parts_without_rows_or_with_one_class_count_for_nothing():
    rows, w = made_rows(n=60)
    empty = Rows(rows.X[:0], rows.codes[:0])
    parts = PairParts("squared_hinge")
    tables = part_tables(rows, raw_point(w), parts)
    functions = slope_functions(parts, tables + part_tables(empty, raw_point(w), parts))
    sums = part_sums(empty, raw_point(w), parts, functions.by_class)
    assert sums.value == 0.0
    assert not sums.gradient.any()
    group = np.zeros(0, int)
    grouped = part_sums(Rows(empty.X, empty.codes, None, group), raw_point(w),
                        PairParts("hinge", grouped=True))  # fmt: skip
    assert grouped.total == 0.0
    # A part whose weights have products that are zero, as those that decay with age.
    group, weight = np.zeros(rows.n_rows, int), np.full(rows.n_rows, 1e-170)
    light = part_sums(Rows(rows.X, rows.codes, weight, group), raw_point(w),
                      PairParts("logistic", grouped=True))  # fmt: skip
    assert light.total == 0.0
    assert not light.gradient.any()


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "exponential", "squared"])
@pytest.mark.parametrize("edges", [None, ((3, 0), (2, 0), (3, 1))])
def test_the_hessian_over_parts_is_close_to_that_of_all_pairs(loss, edges):
    rows, w = made_rows(n=3_000, n_classes=4, weighted=True, seed=6)
    parts, point = PairParts(loss, 4, edges), raw_point(0.5 * w)
    scores = rows.X @ point.w
    here, hessian = evaluate_with_hessian(
        parts, point, over(rows), Rows(rows.X[::3], rows.codes[::3])
    )
    plain = evaluate(parts, point, over(rows))
    assert here.value == plain.value
    np.testing.assert_array_equal(here.gradient, plain.gradient)
    at = AllPairs(rows.codes, loss, weight=rows.weight, edges=edges).at(scores)
    products = [rows.X.T @ at.curvature_product(x) for x in rows.X.T]
    assert np.linalg.norm(hessian - products) <= 0.03 * np.linalg.norm(products)


@pytest.mark.parametrize("parts", [PointParts("logistic"), PairParts("logistic", grouped=True)])
def test_hessians_of_rows_and_groups_are_those_in_memory(parts):
    rows, w = made_rows(n=3_000, weighted=True, grouped=True, seed=7)
    scores = rows.X @ w
    here, hessian = evaluate_with_hessian(
        parts, raw_point(w), over(rows), Rows(rows.X[:100], rows.codes[:100])
    )
    at = parts.objective(rows).at(scores)
    products = [rows.X.T @ at.curvature_product(x) for x in rows.X.T]
    np.testing.assert_allclose(hessian, products, rtol=0.05, atol=0.02 * np.abs(products).max())
    assert here.value == pytest.approx(at.value, rel=1e-10)


@pytest.mark.parametrize("passes", [1, 2])
def test_the_hessian_where_all_scores_of_the_sample_are_equal(passes):
    """Then there are two bins; that of the squared loss does not depend on them."""
    rows, w = made_rows(n=500, weighted=True, seed=8)
    sample = Rows(np.tile(rows.X[:1], (10, 1)), np.arange(10) % 2)
    weight = np.bincount(rows.codes, rows.weight, 2)
    options = {"weight": weight, "enough": lambda g: np.inf} if passes == 1 else {}
    here, hessian = evaluate_with_hessian(
        PairParts("squared"), raw_point(w), over(rows), sample, **options
    )
    assert here.n_passes == passes
    at = AllPairs(rows.codes, "squared", weight=rows.weight).at(rows.X @ w)
    products = [rows.X.T @ at.curvature_product(x) for x in rows.X.T]
    np.testing.assert_allclose(hessian, products, rtol=1e-6, atol=1e-9)


def test_too_large_scores_have_no_hessian():
    rows, w = made_rows(n=50)
    point = raw_point(1e12 * w)
    found = evaluate_with_hessian(PairParts("logistic"), point, over(rows), rows)
    assert found[0].value == np.inf
    assert found[1] is None


ONE_PASS = [loss for loss in LOSSES if loss != "hinge"]


def one_pass(parts, w, rows, accuracy=1e-4):
    """The evaluation in one pass, with the second moment of the class where it is largest."""
    weight = np.ones(rows.n_rows) if rows.weight is None else rows.weight
    squares = (rows.X**2).sum(axis=1)
    second = max(
        np.average(squares[rows.codes == k], weights=weight[rows.codes == k])
        for k in range(parts.n_classes)
    )
    return evaluate(
        parts,
        raw_point(w),
        over(rows),
        accuracy=accuracy,
        second_moment=float(second),
        enough=lambda gradient: np.inf,
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("loss", "kind", "n_classes", "edges"),
    [
        (loss, kind, n_classes, edges)
        for loss, kind in cases_of(ONE_PASS)
        for n_classes, edges in [(2, None), (4, None), (4, ((3, 0), (2, 0), (3, 1)))]
        if kind != "rare" or n_classes == 2  # the rare class is one of two
    ],
)
def test_one_pass_is_within_its_bound(loss, weighted, n_classes, edges, kind):
    rows, w = made_rows(kind, n_classes=n_classes, weighted=weighted, seed=8)
    found = one_pass(PairParts(loss, n_classes, edges), w, rows)
    here = AllPairs(rows.codes, loss, weight=rows.weight, edges=edges).at(rows.X @ w)
    gradient = rows.X.T @ here.gradient
    assert found.n_passes == 1
    assert found.value == pytest.approx(here.value, rel=1e-9)
    norm = np.linalg.norm(gradient)
    assert np.linalg.norm(found.gradient - gradient) <= found.error + 1e-11 * norm + 1e-14
    if loss == "squared":
        assert found.error == 0.0


@given(
    scores=st.lists(
        st.tuples(
            st.one_of(st.sampled_from([-1.0, 0.0, 1.0, 0.5, 1e-9, 1.0 - 1e-9]),
                      st.floats(-3.0, 3.0)),
            st.integers(0, 2),
            st.sampled_from([0.0, 1.0, 1e-3, 50.0]),
        ),
        min_size=8, max_size=40,
    ),
    bits=st.integers(4, 10),
    loss=st.sampled_from(ONE_PASS),
)  # fmt: skip
def test_the_bound_of_one_pass_holds_for_any_scores(scores, bits, loss):
    s, codes, weight = (np.array(each) for each in zip(*scores, strict=True))
    assume(np.bincount(codes, weight, 3)[[0, 1]].min() > 0.0)
    codes = np.minimum(codes, 1)
    rows = Rows(np.column_stack([s, np.cos(9.0 * s)]), codes, weight)
    w = np.array([1.0, 0.0])
    found = one_pass(PairParts(loss), w, rows, accuracy=2.0 * 4.0**-bits)
    here = AllPairs(codes, loss, weight=weight).at(s)
    gradient = rows.X.T @ here.gradient
    assert np.linalg.norm(found.gradient - gradient) <= found.error + 1e-11
    # Sums within a cell of width 2^-12 are those of two half masses.
    assert found.value == pytest.approx(here.value, rel=1e-10, abs=2.0**-24)


def test_nodes_add_up_and_coarser_ones_are_those_of_the_rows():
    rng = np.random.default_rng(9)
    X, s, codes = (
        rng.standard_normal((300, 3)),
        4.0 * rng.standard_normal(300),
        rng.integers(0, 2, 300),
    )
    whole = NodeSums.of(X, codes, None, s, 2, 5)
    parts = NodeSums.of(X[:90], codes[:90], None, s[:90], 2, 7) + NodeSums.of(
        X[90:], codes[90:], None, s[90:], 2, 5
    )
    assert parts.bits == whole.bits == 5
    inside = slice(whole.first - parts.first, whole.first - parts.first + whole.n_nodes)
    np.testing.assert_allclose(parts.sums[:, inside], whole.sums, atol=1e-12)
    assert np.abs(parts.sums).sum() == pytest.approx(np.abs(whole.sums).sum())
    np.testing.assert_allclose(whole.weight.sum(axis=1), np.bincount(codes))
    for coarse in (whole.at_bits(3), NodeSums.of(X, codes, None, s, 2, 3)):
        np.testing.assert_allclose(coarse.weight @ coarse.scores, np.bincount(codes, s), rtol=1e-10)
        np.testing.assert_allclose(coarse.sums.sum(axis=(0, 1)), X.sum(axis=0), rtol=1e-10)
    far = NodeSums.of(X, codes, None, 1e9 * s, 2, 5)
    assert far.overflows
    assert (far + whole).overflows
