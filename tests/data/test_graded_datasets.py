from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from forerank import PairwiseRanker, QuadraticFeatures
from forerank.data.datasets import cut_into_grades, make_randnet, make_randpoly
from forerank.metrics import wmw
from tables import graded_rows

data = partial(graded_rows, classes=3, noise=4)


class TestGenerators:
    @pytest.mark.parametrize("make", [make_randnet, make_randpoly])
    def test_grades_are_even_and_seeds_repeat(self, make):
        X, y = make(600, 12, 4, random_state=5)
        assert X.shape == (600, 12)
        assert np.abs(X).max() <= 1.0
        assert_array_equal(np.bincount(y), [150, 150, 150, 150])
        again = make(600, 12, 4, random_state=5)
        assert_array_equal(again[0], X)
        assert_array_equal(again[1], y)
        assert np.any(make(600, 12, 4, random_state=6)[1] != y)

    @pytest.mark.parametrize(
        ("target", "n_grades", "message"),
        [
            ([1.0, np.nan], 2, "finite"),
            ([], 2, "non-empty"),
            ([1.0, 2.0], 1, "n_grades must be at least 2"),
        ],
    )
    def test_refusals(self, target, n_grades, message):
        with pytest.raises(ValueError, match=message):
            cut_into_grades(target, n_grades)

    def test_bins_of_equal_width(self):
        assert_array_equal(cut_into_grades([0, 1, 2, 9, 10], 5, bins="width"), [0, 0, 1, 4, 4])
        with pytest.raises(ValueError, match="bins must be one of 'size', 'width'"):
            cut_into_grades([1.0, 2.0], 2, bins="depth")
        _, y = make_randpoly(2000, 12, 4, form="quadratic", bins="width", random_state=0)
        sizes = np.bincount(y)
        assert min(sizes[1:3]) > max(sizes[0], sizes[3])

    def test_a_quadratic_polynomial_is_linear_in_the_products(self):
        X, y = make_randpoly(400, 6, 40, form="quadratic", random_state=0)
        products = QuadraticFeatures().fit_transform(X)
        ranker = PairwiseRanker("logistic", graph="order", alpha=1e-9, tol=1e-6)
        assert wmw(y, ranker.fit(products, y).decision_function(products)) > 0.999
        assert wmw(y, ranker.fit(X, y).decision_function(X)) < 0.9
        with pytest.raises(ValueError, match="form must be one of 'cubic', 'quadratic'"):
            make_randpoly(form="quartic")

    def test_equal_targets_share_a_grade(self):
        assert_array_equal(cut_into_grades([1, 1, 1, 1, 2, 3], 3), [0, 0, 0, 0, 2, 2])
