import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from forerank._kernels import compiled
from forerank.losses import ErfcLogistic, SmoothedHinge, get_loss, logistic_kernel, logistic_rows

LOSSES = [
    *map(get_loss, ("exponential", "hinge", "logistic", "squared", "squared_hinge")),
    SmoothedHinge(0.3),
    ErfcLogistic(),
]
# Margins away from the kinks at 1 and, for the smoothed hinge, at 0.85 and 1.15.
MARGINS = np.concatenate(
    [np.linspace(-4.0, 0.8, 30), np.linspace(0.9, 0.98, 5), np.linspace(1.05, 5.0, 20)]
)
SMALL = 1e-5


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
class TestDerivatives:
    def test_slope_is_the_derivative_of_the_value(self, loss):
        difference = (loss.value(MARGINS + SMALL) - loss.value(MARGINS - SMALL)) / (2 * SMALL)
        assert_allclose(loss.slope(MARGINS), difference, rtol=1e-8, atol=1e-9)

    def test_curvature_is_the_derivative_of_the_slope(self, loss):
        difference = (loss.slope(MARGINS + SMALL) - loss.slope(MARGINS - SMALL)) / (2 * SMALL)
        assert_allclose(loss.curvature(MARGINS), difference, rtol=1e-8, atol=1e-9)

    def test_conjugate_meets_the_loss_along_its_slopes(self, loss):
        # Fenchel: l(t) + l*(v) >= v t, with equality for v = l'(t).
        v = loss.slope(MARGINS)
        assert_allclose(loss.value(MARGINS) + loss.conjugate(v), v * MARGINS, atol=1e-10)

    def test_conjugate_bounds_everywhere(self, loss):
        v = np.linspace(-3.0, 1.0, 41)
        room = loss.value(MARGINS)[:, None] + loss.conjugate(v) - np.outer(MARGINS, v)
        assert room.min() >= -1e-12

    def test_a_margin_loss_never_rises(self, loss):
        if loss.name == "squared":
            pytest.skip("the squared loss turns at t = 1")
        assert np.all(np.diff(loss.value(np.linspace(-5, 5, 200))) <= 0.0)


@pytest.mark.parametrize("name", ["hinge", "squared_hinge"])
def test_a_margin_of_exactly_one_is_satisfied(name):
    loss = get_loss(name)
    assert loss.value(1.0) == loss.slope(1.0) == loss.curvature(1.0) == 0.0


def test_extreme_margins_do_not_overflow():
    loss = get_loss("logistic")
    assert_allclose(loss.value([-1e6, 1e6]), [1e6, 0.0])
    assert_allclose(loss.slope([-1e6, 1e6]), [-1.0, 0.0])
    assert get_loss("exponential").value(-1e4) == np.inf


@pytest.mark.parametrize("width", [1.0, 1e-2])
def test_smoothing_adds_at_most_an_eighth_of_its_width(width):
    margins = np.linspace(0.0, 2.0, 2001)
    added = SmoothedHinge(width).value(margins) - get_loss("hinge").value(margins)
    assert added.min() >= -1e-15
    assert added.max() <= width / 8 * (1 + 1e-12)
    assert np.all(np.abs(added[np.abs(margins - 1.0) > width / 2]) <= 1e-15)


def test_unknown_loss_names_the_choices():
    with pytest.raises(
        ValueError, match="'absolute' is not known; choose one of 'erfc', 'exponential', 'hinge'"
    ):
        get_loss("absolute")
    with pytest.raises(ValueError, match="width must be positive"):
        SmoothedHinge(0.0)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_rows_with_labels_are_margins_with_signs(loss):
    s = np.linspace(-3.0, 3.0, 50)
    positive = np.arange(50) % 3 == 0
    sign = np.where(positive, 1.0, -1.0)
    value, slope = loss.of_labels(s, positive)
    assert_allclose(value, loss.value(sign * s), rtol=1e-13, atol=1e-15)
    assert_allclose(slope, sign * loss.slope(sign * s), rtol=1e-13, atol=1e-15)


# From equal scores to where exp(-t) is the smallest normal number.
WIDE_MARGINS = np.concatenate(
    [[0.0, 1e-300, 1e-12], np.geomspace(1e-8, 1.0, 50), np.linspace(1.0, 708.0, 3001)]
)
WIDE_MARGINS = np.concatenate([-WIDE_MARGINS[::-1], WIDE_MARGINS])
PEERS = (
    lambda t: np.logaddexp(0.0, -t),
    lambda t: -expit(-t),
    lambda t: expit(t) * expit(-t),
)


def derivative(t, order):
    out = np.empty(t.size)
    logistic_rows(t, order, out)
    return out


@compiled
def single(t):
    return logistic_kernel(t)


@pytest.mark.parametrize("order", [0, 1, 2])
class TestLogisticKernel:
    def test_a_few_units_in_the_last_place_from_scipy(self, order):
        assert_allclose(
            derivative(WIDE_MARGINS, order), PEERS[order](WIDE_MARGINS), rtol=2e-15, atol=1e-307
        )

    def test_one_margin_at_a_time(self, order):
        rows = [single(t)[order] for t in WIDE_MARGINS[::50]]
        assert_allclose(derivative(WIDE_MARGINS[::50], order), rows, rtol=1e-15)

    def test_beyond_the_range_of_exp(self, order):
        t = np.array([-np.inf, -1e300, -709.0, 709.0, 1e300, np.inf])
        expected = ([np.inf, 1e300, 709.0, 0, 0, 0], [-1, -1, -1, 0, 0, 0], [0.0] * 6)[order]
        assert_allclose(derivative(t, order), expected, atol=1e-307)

    def test_nan_stays(self, order):
        assert np.isnan(derivative(np.array([np.nan]), order)).all()
