import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import erfc, expit

from forerank.design import make_design
from forerank.losses import ErfcLogistic
from forerank.objectives import AllPairs
from forerank.pairsums import erfc_series, erfc_series_bound, erfc_sum, erfc_sum_direct
from forerank.pairsums.erfc import ErfcSeries
from forerank.solvers import newton

EPSILONS = [1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-13]


def error(y, z, q, eps):
    """The largest error, relative to the sum of the absolute weights."""
    return np.abs(erfc_sum(y, z, q, eps) - erfc_sum_direct(y, z, q)).max() / np.abs(q).sum()


def points(kind, n, rng):
    return {
        "uniform": lambda: rng.uniform(-3, 3, n),
        "normal": lambda: rng.standard_normal(n),
        "clustered": lambda: rng.choice([-8.0, 0.0, 5.0], n) + 1e-3 * rng.standard_normal(n),
        "equal": lambda: np.full(n, 0.3),
        "far apart": lambda: 1e6 * rng.standard_normal(n),
        "far out": lambda: 1e9 + rng.standard_normal(n),
        "on cell bounds": lambda: rng.integers(-20, 20, n) * 0.34375,
        "heavy tailed": lambda: np.sinh(7 * rng.standard_normal(n)),
    }[kind]()


class TestSeries:
    @settings(max_examples=200, deadline=None)
    @given(st.floats(-6, 6), st.floats(0.02, 0.6), st.integers(1, 25))
    def test_the_truncated_series_is_within_its_bound(self, z, h, p):
        assert abs(erfc_series(z, h, p) - erfc(z)) <= erfc_series_bound(z, h, p) + 1e-14

    def test_the_printed_bound_is_for_small_h_only(self):
        z = np.linspace(-4.0, 4.0, 801)
        left_out = np.abs(erfc_series(z, 0.8, 2) - erfc_series(z, 0.8, 30)).max()
        assert left_out > erfc_series_bound(0.0, 0.8, 2) - erfc(np.pi / 1.6)

    def test_twelve_terms_between_minus_four_and_four(self):
        # raykar2007 has an error below 1e-6 there.
        z = np.linspace(-4.0, 4.0, 801)
        assert np.abs(erfc_series(z, 0.185, 12) - erfc(z)).max() < 1e-9

    def test_the_sums_of_one_source_are_the_series(self):
        series = ErfcSeries.for_precision(1e-6)
        p = series.coefficients.size
        z = np.linspace(-0.5, 0.5, 7) * series.width
        assert_allclose(erfc_sum(z, [0.0], eps=1e-6), erfc_series(z, series.h, p), atol=1e-12)


class TestPrecision:
    @pytest.mark.parametrize("eps", EPSILONS)
    @pytest.mark.parametrize(
        "kind",
        [
            "uniform",
            "normal",
            "clustered",
            "equal",
            "far apart",
            "far out",
            "on cell bounds",
            "heavy tailed",
        ],
    )
    def test_errors_stay_below_the_promise(self, kind, eps):
        rng = np.random.default_rng(0)
        z = points(kind, 1500, rng)
        y = rng.permutation(z)[:700] + rng.choice([-6.0, -1.0, 0.0, 0.5, 4.0], 700)
        for q in (np.ones(1500), rng.standard_normal(1500), rng.exponential(size=1500) ** 3):
            assert error(y, z, q, eps) < eps

    @pytest.mark.parametrize("eps", EPSILONS)
    def test_a_single_pair_at_every_distance(self, eps):
        # With one source nothing averages out: this is the error of the series itself, near and at
        # its cut-off.
        y = np.concatenate(
            [np.linspace(-9, 9, 4001), ErfcSeries.for_precision(eps).width * np.arange(-20, 21)]
        )
        for z in (0.0, 0.123, 17.9):
            assert np.abs(erfc_sum(y + z, [z], None, eps) - erfc(y + z - z)).max() < eps

    @settings(max_examples=80)
    @given(
        y=st.lists(st.floats(-40, 40), min_size=1, max_size=12),
        z=st.lists(st.floats(-40, 40), min_size=1, max_size=12),
        eps=st.sampled_from(EPSILONS),
    )
    def test_any_points(self, y, z, eps):
        q = np.cos(np.arange(len(z)))
        assert error(np.array(y), np.array(z), q, eps) < eps

    def test_many_points_do_not_add_up_rounding(self):
        rng = np.random.default_rng(1)
        y, z, q = rng.standard_normal(300), rng.standard_normal(300_000), rng.random(300_000)
        assert error(y, z, q, 1e-12) < 1e-12

    def test_the_direct_sum_is_its_definition(self):
        y, z, q = np.array([0.0, 1.0]), np.array([-1.0, 0.5, 3.0]), np.array([1.0, -2.0, 0.5])
        assert_allclose(erfc_sum_direct(y, z, q), erfc(y[:, None] - z) @ q, rtol=1e-14)

    def test_coarser_is_cheaper(self):
        lengths = [ErfcSeries.for_precision(eps).coefficients.size for eps in EPSILONS]
        assert lengths == sorted(lengths)
        assert lengths[-1] < 30

    def test_nothing_to_sum(self):
        assert erfc_sum([], [1.0]).shape == (0,)
        assert_allclose(erfc_sum([1.0, 2.0], []), 0.0)


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([[0.0]], [0.0]), r"targets has shape \(1, 1\)"),
            (([0.0], [np.nan]), "sources must be finite; entry 0"),
            (([0.0], [0.0], [1.0, 2.0]), "weights has 2 entries for 1 sources"),
            (([0.0], [0.0], [np.inf]), "weights must be finite"),
            (([1e16], [0.0]), r"targets must not exceed 2\^48"),
            (([0.0], [0.0], None, 1e-15), "eps must lie between 1e-13 and 1; got 1e-15"),
            (([0.0], [0.0], None, 1.0), "eps must lie between"),
            (([0.0], [0.0], None, float("nan")), "eps must lie between"),
        ],
    )
    def test_refusals_say_what_came(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            erfc_sum(*arguments)


class TestPairs:
    def test_the_sigmoid_is_met_roughly(self):
        t = np.linspace(-30, 30, 5001)
        assert np.abs(ErfcLogistic().slope(t) + expit(-t)).max() < 0.023

    @pytest.mark.parametrize("n", [40, 4000])
    @pytest.mark.parametrize("eps", [1e-3, 1e-6, 1e-10])
    def test_gradients_keep_the_precision(self, n, eps):
        rng = np.random.default_rng(2)
        s, y, w = 3 * rng.standard_normal(n), rng.integers(0, 3, n), rng.random(n)
        objective = AllPairs(y, ErfcLogistic(eps), weight=w)
        there = objective.at(s)
        upper = y[:, None] > y
        pull = ErfcLogistic().slope(s[:, None] - s) * upper * np.outer(w, w)
        exact = (pull.sum(axis=1) - pull.sum(axis=0)) / objective.blocks.total_weight
        partners = w * ((upper | upper.T) @ w) / objective.blocks.total_weight
        # Half of eps for the factor of one half, and a row is summed once for each bit of its
        # grade.
        assert np.all(np.abs(there.gradient - exact) <= 0.5 * eps * partners)
        loss = (
            ErfcLogistic().value(s[:, None] - s) * upper * np.outer(w, w)
        ).sum() / objective.blocks.total_weight
        assert abs(there.value - loss) < 20 * eps

    def test_newton_says_what_is_missing(self):
        y, X = np.arange(10) % 2, np.ones((10, 1))
        with pytest.raises(
            ValueError, match=r"newton cannot .*ErfcLogistic\(eps=1e-06\).* the curvature.*ncg"
        ):
            newton(AllPairs(y, ErfcLogistic()), make_design(X), np.ones(1))
