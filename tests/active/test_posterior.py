"""The rank threshold and the posterior against their definitions."""

from numpy.testing import assert_array_equal

from forerank.active import rank_threshold, relevance_posterior


def test_threshold_and_posterior():
    found = rank_threshold([0.0, 5.0, 1.0, 3.0, 9.0, 9.5], groups=["a", "a", "a", "b", "b", "b"])
    assert_array_equal(found.rank, [2, 1])
    assert_array_equal(found.score, [1.0, 3.0])
    p = relevance_posterior([0.0, 5.0, 1.0])
    assert p[2] == 0.5
    assert p[0] < 0.5 < p[1]
    assert_array_equal(relevance_posterior([2.0, 2.0]), [0.5, 0.5])
    assert_array_equal(relevance_posterior([7.0]), [0.5])
