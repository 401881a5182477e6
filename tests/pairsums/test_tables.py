"""Tables of scores: they add up, have the sums of the exact kernels, and bound their error."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forerank.losses import get_loss
from forerank.objectives.parts import PairParts, Point, Rows, part_tables, slope_functions
from forerank.pairsums.cell_tables import HingeTable
from forerank.pairsums.tables import sums_of, table_of

LOSSES = ["hinge", "squared_hinge", "logistic", "exponential", "squared"]


def direct(loss, t, lower, w_lower, upper, w_upper):
    """Loss over the lower sources and slope over all sources at targets t, pair by pair."""
    loss = get_loss(loss)
    below, above = t[:, None] - lower, upper - t[:, None]
    slope = loss.slope(below) @ w_lower - loss.slope(above) @ w_upper
    return loss.value(below) @ w_lower, slope


def scores(kind, rng, n):
    if kind == "lattice":
        return rng.integers(-12, 12, n) / 8
    if kind == "wide":
        return rng.standard_normal(n) * 300.0
    if kind == "tied":
        return rng.choice([0.1, 0.1 + 1e-5, 1.1, 1.1 + 2e-5, -0.9], n)
    return rng.standard_normal(n)


def exact_sums(loss, own, lower, w_lower, upper, w_upper):
    """The sums with the scores of all cells that are not exact."""
    tables = [table_of(loss, *each) for each in ((own, None), (lower, w_lower), (upper, w_upper))]
    found = sums_of(loss, *tables)
    if hasattr(found, "requests"):
        found.collect(found.requests(0.0), (lower, w_lower), (upper, w_upper))
    return found


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        (loss, kind)
        for loss in LOSSES
        for kind in ("normal", "lattice", "tied", "wide")
        if (loss, kind) != ("exponential", "wide")  # which overflows
    ],
)
def test_sums_equal_the_pairs_one_by_one(loss, kind):
    rng = np.random.default_rng(3)
    own, lower, upper = (scores(kind, rng, n) for n in (700, 400, 500))
    w_lower, w_upper = rng.uniform(0.1, 2.0, 400), rng.uniform(0.1, 2.0, 500)
    value, slope = exact_sums(loss, own, lower, w_lower, upper, w_upper).at(own)
    expected = direct(loss, own, lower, w_lower, upper, w_upper)
    scale = np.abs(expected[0]).max(), np.abs(expected[1]).max()
    np.testing.assert_allclose(value, expected[0], atol=1e-12 * scale[0], rtol=1e-11)
    if loss == "hinge":  # on the margin the slope jumps; rounding decides
        margin = np.abs(own[:, None] - np.concatenate([lower + 1.0, upper - 1.0])).min(axis=1)
        value, slope, expected = (
            value[margin > 1e-12],
            slope[margin > 1e-12],
            [each[margin > 1e-12] for each in expected],
        )
    np.testing.assert_allclose(slope, expected[1], atol=1e-12 * scale[1], rtol=1e-11)


@pytest.mark.parametrize("loss", LOSSES)
def test_tables_of_parts_add_up(loss):
    rng = np.random.default_rng(1)
    s, w = rng.standard_normal(500) * 3, rng.uniform(0.0, 2.0, 500)
    own = rng.standard_normal(200)
    whole = table_of(loss, s, w)
    cuts = [0, 0, 7, 300, 500]
    parts = [table_of(loss, s[a:b], w[a:b]) for a, b in itertools.pairwise(cuts)]
    united = sum(parts[1:], start=parts[0])
    united = pickle.loads(pickle.dumps(united))
    assert united.weight == pytest.approx(whole.weight, rel=1e-14)
    targets = table_of(loss, own, None)
    nothing = table_of(loss, np.empty(0), None)
    for lower, upper in ((0, 1), (1, 0)):
        sources = [(united, nothing)[lower], (united, nothing)[upper]]
        all_sources = [(whole, nothing)[lower], (whole, nothing)[upper]]
        got, expected = sums_of(loss, targets, *sources), sums_of(loss, targets, *all_sources)
        for a, b in zip(got.at(own), expected.at(own), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11 * max(np.abs(b).max(), 1e-9))


def test_cells_become_wider_where_the_scores_span_more():
    narrow = HingeTable.of(np.array([0.0, 1.0]), None)
    wide = HingeTable.of(np.array([-5e4, 7e4]), None)
    assert narrow.bits == 12
    both = narrow + wide
    assert both.bits == wide.bits < 12
    assert both.weight == 4.0
    lattice = HingeTable.of(np.array([0.25, 0.25, -3.0]), None).at_bits(0)
    assert lattice.cells[:, 0].sum() == 3.0
    # First moments about the centres -2.5 and 0.5.
    np.testing.assert_array_equal(lattice.cells[:, 1], [-0.5, 0.0, 0.0, -0.5])


def test_cells_may_be_finer():
    """Of as many units of score, and no request for the scores of a cell at a smaller error."""
    rng = np.random.default_rng(14)
    codes, s = rng.integers(2, size=20_000), rng.normal(size=20_000)
    rows = Rows(s[:, None], codes)
    point = Point(np.ones(1), np.zeros(1), np.ones(1))
    errors = {}
    for bits in (None, 12, 14, 16):
        parts = PairParts("squared_hinge", bits=bits)
        tables = part_tables(rows, point, parts)
        assert tables[0].bits == tables[1].bits == (bits or 12)
        whole = tables[0] + HingeTable.of(tables[0].cells[:0, 0], None, bits or 12)
        assert whole.bits == (bits or 12)
        functions = slope_functions(parts, tables)
        errors[bits] = functions.errors(1.0)[1]
        assert functions.requests(errors[bits], 1.0) is None
    assert errors[None] == errors[12]
    assert 8.0 * errors[14] < errors[12]
    assert 8.0 * errors[16] < errors[14]
    far = HingeTable.of(np.array([0.0, 15.0]), None, 15) + HingeTable.of(np.ones(1), None, 15)
    assert far.bits == 15
    assert (far + HingeTable.of(np.array([100.0]), None, 15)).bits < 15


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "squared", "exponential"])
def test_scores_too_far_apart_overflow(loss):
    table = table_of(loss, np.array([0.0, np.inf]), None)
    assert table.overflows
    assert (table + table_of(loss, np.zeros(1), None)).overflows
    assert (table_of(loss, np.zeros(1), None) + table).overflows


# Scores that are adversarial for cells: clusters around margins, ties, lattices.
clustered = st.lists(
    st.tuples(
        st.sampled_from([-1.0, 0.0, 0.5, 1.0, 1.5]),
        st.sampled_from([0.0, 1e-9, 1e-6, 3e-5, 1e-4, 1.1e-4, 2.3e-4, -1e-5, 2.0**-13]),
        st.sampled_from([1.0, 0.25, 7.0]),
    ),
    min_size=1,
    max_size=40,
)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@given(own=clustered, lower=clustered, upper=clustered)
@settings(max_examples=150, deadline=None)
def test_the_bound_is_never_below_the_error(loss, own, lower, upper):
    (t, w), (low, w_low), (up, w_up) = (
        (np.array([a + b for a, b, _ in each]), np.array([c for _, _, c in each]))
        for each in (own, lower, upper)
    )
    found = sums_of(loss, *(table_of(loss, *each) for each in ((t, w), (low, w_low), (up, w_up))))
    expected = direct(loss, t, low, w_low, up, w_up)[1]
    difference = np.abs(found.at(t)[1] - expected)
    if loss == "hinge":  # rounding of t - s decides where a pair is on its margin
        gap = np.abs(np.abs(t[:, None] - np.concatenate([low, up])) - 1.0).min(axis=1)
        difference[gap < 1e-14] = 0.0
    first, second = found.error()
    rounding = 1e-12 * (w_low.sum() + w_up.sum())
    assert w @ difference <= first + rounding * w.sum()
    assert np.sqrt(w.sum() * (w @ difference**2)) <= second + rounding * w.sum()


def test_the_bound_is_positive_where_there_is_an_error():
    t, low = np.array([1.00004]), np.array([1e-6, 3e-5, 4.5e-5, 1.2e-4])
    nothing = table_of("squared_hinge", np.empty(0), None)
    tables = table_of("squared_hinge", t, None), table_of("squared_hinge", low, None), nothing
    found = sums_of("squared_hinge", *tables)
    expected = direct("squared_hinge", t, low, np.ones(4), np.empty(0), np.empty(0))[1]
    error = abs(found.at(t)[1] - expected)[0]
    assert 1e-9 < error <= found.error()[0]
    requests = found.requests(0.0)
    assert requests[0].contains(low).all()
    found.collect(requests, (low, np.ones(4)), (np.empty(0), np.empty(0)))
    assert found.error() == (0.0, 0.0)
    np.testing.assert_allclose(found.at(t)[1], expected, rtol=1e-12)


def hinge_tables(kind, weighted, bits=12):
    """Tables of three parts, the second of few rows and the third of none."""
    rng = np.random.default_rng(11)
    tables = []
    for n in (4_000, 7, 0):
        s = scores(kind, rng, n)
        tables.append(HingeTable.of(s, rng.uniform(size=n) if weighted else None, bits))
    return tables


def same_table(a, b):
    assert (a.bits, a.first, a.overflows, a.finest) == (b.bits, b.first, b.overflows, b.finest)
    np.testing.assert_array_equal(a.cells.view(np.int64), b.cells.view(np.int64))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["plain", "tied", "lattice", "wide"])
@pytest.mark.parametrize("bits", [15, 12, 7])
def test_pickled_tables_and_their_sums_have_the_same_bits(kind, weighted, bits):
    tables = hinge_tables(kind, weighted, bits)
    copies = pickle.loads(pickle.dumps(tables))
    for table, copied in zip(tables, copies, strict=True):
        same_table(copied, table)
    whole = tables[0] + tables[1] + tables[2]
    same_table(copies[0] + copies[1] + copies[2], whole)
    same_table(pickle.loads(pickle.dumps(copies[0] + copies[1])) + copies[2], whole)
    same_table(pickle.loads(pickle.dumps(whole.at_bits(bits - 1))), whole.at_bits(bits - 1))
    lost = pickle.loads(pickle.dumps(HingeTable.of(np.array([0.0, np.inf]), None)))
    assert lost.overflows
    assert not len(lost.cells)


def test_ends_of_cells_contain_their_scores_and_single_scores_are_exact():
    rng = np.random.default_rng(12)
    s = np.append(rng.normal(size=3_000), np.repeat(7.1, 5))
    for bits in (14, 12, 9, 0):
        parts = [HingeTable.of(each, None, bits) for each in np.split(s, [1_000, 2_000])]
        table = parts[0] + parts[1] + parts[2]
        number = np.floor(s * 2.0**bits).astype(int) - table.first
        centre = (np.floor(s * 2.0**bits) + 0.5) * 2.0**-bits
        lowest, highest = table.cells[number, 3] + centre, table.cells[number, 4] + centre
        assert (lowest <= s).all()
        assert (s <= highest).all()
        for k in np.unique(number):
            of_cell, allowed = s[number == k], 2.0 ** -(bits + 15)
            assert of_cell.min() - lowest[number == k][0] <= allowed
            assert highest[number == k][0] - of_cell.max() <= allowed
        np.testing.assert_allclose((lowest[-1], highest[-1]), 7.1, rtol=0.0, atol=1e-15)


def test_a_pickled_table_takes_a_little_more_than_half_of_its_arrays():
    full = HingeTable.of(np.random.default_rng(13).uniform(size=200_000), None)
    assert len(pickle.dumps(full)) < 0.6 * full.cells.nbytes
    sparse = HingeTable.of(np.array([0.0, 10.0]), None)
    assert len(pickle.dumps(sparse)) < 0.01 * sparse.cells.nbytes


@pytest.mark.parametrize("kind", ["plain", "tied"])
@pytest.mark.parametrize("loss", LOSSES)
def test_pickled_sums_have_the_same_bits(loss, kind):
    rng = np.random.default_rng(7)
    own, lower, upper = (scores(kind, rng, n) for n in (200, 300, 100))
    found = exact_sums(loss, own, lower, rng.uniform(size=300), upper, rng.uniform(size=100))
    copied = pickle.loads(pickle.dumps(found))
    for expected, values in zip(found.at(own), copied.at(own), strict=True):
        np.testing.assert_array_equal(values, expected)


def test_functions_of_two_classes_share_their_tables():
    rng = np.random.default_rng(8)
    tables = [table_of("squared_hinge", rng.standard_normal(5_000), None) for _ in range(2)]
    none = table_of("squared_hinge", np.empty(0), None)
    both = sums_of("squared_hinge", tables[0], none, tables[1])
    both = (both, sums_of("squared_hinge", tables[1], tables[0], none))
    assert len(pickle.dumps(both)) < 1.1 * len(pickle.dumps(tables))
