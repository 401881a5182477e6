"""P_b of li2014 against its definition, and the bounds against known distributions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from forerank.losses import get_loss
from forerank.metrics import pos_at_top
from forerank.metrics.top_bounds import share_below, theorem_3_rates, top_bound

LOSSES = ("squared_hinge", "hinge", "logistic", "exponential")


def definition(y, s, delta, w):
    """The double loop."""
    total = 0.0
    for i in np.flatnonzero(y == 1):
        h = sum(w[j] for j in np.flatnonzero(y == 0) if s[i] <= s[j]) / w[y == 0].sum()
        total += w[i] * (h >= delta - 1e-12)
    return total / w[y == 1].sum()


rows = st.lists(
    st.tuples(st.booleans(), st.integers(0, 4), st.integers(1, 3)), min_size=2, max_size=20
).filter(lambda r: len({y for y, _, _ in r}) == 2)


@given(rows, st.sampled_from([1e-3, 0.1, 0.25, 1 / 3, 0.5, 1.0]))
def test_share_below_is_its_definition(sample, delta):
    y, s, w = (np.array(column, dtype=float) for column in zip(*sample, strict=True))
    assert share_below(y, s, delta) == pytest.approx(definition(y, s, delta, np.ones(y.size)))
    found = share_below(y, s, delta, sample_weight=w)
    assert found == pytest.approx(definition(y, s, delta, w))


@given(rows)
def test_share_below_falls_with_delta_from_one_minus_pos_at_top(sample):
    y, s, _ = (np.array(column, dtype=float) for column in zip(*sample, strict=True))
    shares = [share_below(y, s, delta) for delta in (1e-6, 0.2, 0.4, 0.6, 0.8, 1.0)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == pytest.approx(1.0 - pos_at_top(y, s))


@given(rows, st.sampled_from(LOSSES))
def test_the_loss_bounds_the_share_of_the_sample_with_certainty(sample, loss):
    y, s, _ = (np.array(column, dtype=float) for column in zip(*sample, strict=True))
    found = top_bound(y, s, loss=loss)
    assert found.share == pytest.approx(share_below(y, s, 1e-9))
    assert found.share <= found.loss * (1.0 + 1e-12)
    margin = s[y == 1] - s[y == 0].max()
    scale = np.log(2.0) if loss == "logistic" else 1.0
    assert found.loss == pytest.approx(np.mean(get_loss(loss).value(margin)) / scale)
    assert found.bound <= found.from_loss or found.bound == 1.0


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize(("m", "n"), [(30, 50), (200, 20)])
def test_it_holds_as_often_as_it_says(m, n, rounded):
    """Gaussian scores, also rounded to ties: P_b of the distribution is known."""
    rng, t, shift, n_draws = np.random.default_rng(0), 1.5, 2.0, 2000
    y, wrong = np.repeat([1, 0], [m, n]), 0
    for _ in range(n_draws):
        s = rng.standard_normal(m + n) + shift * y
        s = np.round(s) if rounded else s
        found = top_bound(y, s, t=t)
        if rounded:
            grid = np.arange(-10.0, 20.0)
            h = norm.sf(grid - 0.5)
            chance = norm.cdf(grid + 0.5 - shift) - norm.cdf(grid - 0.5 - shift)
            truth = chance[h >= found.delta].sum()
        else:
            truth = norm.cdf(norm.isf(found.delta) - shift)
        wrong += truth > found.bound
    assert wrong / n_draws <= 2.0 * np.exp(-t)


def test_fitted_weights_need_more_rows():
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [100_000, 100_000])
    s = rng.standard_normal(y.size) + 6.0 * y
    fixed, fitted = top_bound(y, s), top_bound(y, s, n_columns=5)
    assert fixed.delta < fitted.delta < 0.01
    assert fixed.bound < fitted.bound < 0.2
    few = top_bound(np.repeat([1, 0], 50), np.arange(100.0), n_columns=500)
    assert few.delta == few.bound == 1.0


def test_rates_fall_with_rows():
    assert theorem_3_rates(100, 100, 3.0) > theorem_3_rates(1000, 100, 3.0)
    first, second = theorem_3_rates(100, 100, 3.0), theorem_3_rates(100, 10_000, 3.0)
    assert first[0] == second[0]
    assert first[1] == pytest.approx(10.0 * second[1])


def test_bad_input():
    y, s = [0, 1], [0.0, 1.0]
    with pytest.raises(ValueError, match="delta"):
        share_below(y, s, 0.0)
    with pytest.raises(ValueError, match="one class"):
        share_below([1, 1], s, 0.1, pos_label=1)
    with pytest.raises(ValueError, match="sample_weight zero"):
        share_below(y, s, 0.1, sample_weight=[1.0, 0.0])
    with pytest.raises(ValueError, match="t must be"):
        top_bound(y, s, t=0.1)
    with pytest.raises(ValueError, match="loss"):
        top_bound(y, s, loss="squared")
    with pytest.raises(ValueError, match="n_positive"):
        theorem_3_rates(11, 100, 1.0)
