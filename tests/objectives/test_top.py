"""The top objective against its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from forerank.losses import get_loss
from forerank.objectives.top import Top
from oracles import top_objective

LOSSES = ("squared_hinge", "logistic", "exponential", "hinge")
THRESHOLDS = ("max", 3, 0.3)


class TestObjective:
    @given(
        st.integers(0, 2**32 - 1),
        st.sampled_from(LOSSES),
        st.sampled_from(THRESHOLDS),
        st.booleans(),
    )
    def test_value_and_subgradient(self, seed, loss, at, weighted):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(8, 20))
        positive = rng.permutation(np.arange(n) < rng.integers(1, n - 4))
        s = rng.choice([rng.standard_normal(n), rng.integers(-2, 3, n).astype(float)])
        weight = rng.integers(1, 4, n).astype(float) if weighted else None
        top = Top(positive, loss, at=at, weight=weight)
        here = top.at(s)
        assert_allclose(here.value, top_objective(s, positive, loss, at, weight), rtol=1e-12)
        assert_allclose(top.value_at(s), here.value, rtol=1e-14)
        # A subgradient of a convex function: the plane is nowhere above it. Constants do not
        # matter.
        for other in s + rng.standard_normal((5, n)):
            assert top.value_at(other) >= here.value + here.gradient @ (other - s) - 1e-10
        assert abs(here.gradient.sum()) < 1e-12

    @pytest.mark.parametrize("at", THRESHOLDS)
    def test_a_weight_of_two_is_two_rows(self, at):
        rng = np.random.default_rng(0)
        positive, s = np.arange(12) < 5, rng.standard_normal(12)
        weight = rng.integers(0, 3, 12).astype(float)
        weight[[0, 11]] = 2.0
        rows = np.repeat(np.arange(12), weight.astype(int))
        a = Top(positive, at=at, weight=weight).value_at(s)
        assert a == pytest.approx(Top(positive[rows], at=at).value_at(s[rows]))

    def test_infinite_push_has_the_same_value(self):
        rng = np.random.default_rng(0)
        positive, s = np.arange(20) < 8, rng.standard_normal(20)
        for loss in LOSSES:
            per_negative = [
                np.mean(get_loss(loss).value(s[positive] - s_j)) for s_j in s[~positive]
            ]
            assert Top(positive, loss).value_at(s) == pytest.approx(max(per_negative))

    @pytest.mark.parametrize("at", [0, -1, 0.0, 1.0, 1.5, -0.1, True, "top", None, np.nan])
    def test_thresholds_that_make_no_sense(self, at):
        with pytest.raises(ValueError, match="at"):
            Top(np.arange(6) < 3, at=at)

    def test_more_negatives_than_there_are(self):
        with pytest.raises(
            ValueError,
            match="4 largest negative scores needs as many negatives, but their total weight is 3",
        ):
            Top(np.arange(6) < 3, at=4)
        Top(np.arange(6) < 3, at=3)

    @pytest.mark.parametrize("positive", [np.zeros(4, bool), np.ones(4, bool)])
    def test_one_class(self, positive):
        with pytest.raises(ValueError, match="at least one of each is needed"):
            Top(positive)
