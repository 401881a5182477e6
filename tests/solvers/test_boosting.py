import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from forerank import RankBoost
from forerank.solvers import boosting


class TestBins:
    def test_a_bin_for_each_of_few_values(self):
        cuts = boosting._bin_edges(np.array([3.0, 1.0, 1.0, 2.0]), 256)
        assert_array_equal(cuts, [1.5, 2.5])

    def test_many_values_are_shared_out_evenly(self):
        values = np.random.default_rng(0).standard_normal(10_000) ** 3
        codes = np.searchsorted(boosting._bin_edges(values, 256), values)
        sizes = np.bincount(codes)
        assert sizes.size == 256
        assert sizes.min() >= 35
        assert sizes.max() <= 45

    def test_a_heavy_value_leaves_bins_for_the_others(self):
        values = np.concatenate([np.zeros(9000), np.arange(1.0, 1001.0)])
        cuts = boosting._bin_edges(values, 16)
        assert cuts[0] == 0.5
        assert np.all(np.diff(cuts) > 0)

    def test_neighbouring_floats(self):
        value = 1.0
        for _ in range(2):  # the middle is rounded down between the first two, up between the next
            value, below = np.nextafter(value, 2.0), value
            X = np.repeat([below, value], 10)[:, None]
            y = X[:, 0] > below
            assert RankBoost(1).fit(X, y).score(X, y) == 1.0

    def test_constant_columns_rank_nothing(self):
        with pytest.warns(UserWarning, match="RankBoost: the optimum gives all rows"):
            fitted = RankBoost().fit(np.ones((10, 2)), np.arange(10) % 2)
        assert fitted.stumps_ == []
        assert_allclose(fitted.feature_importances_, 0.0)
