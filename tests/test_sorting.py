import numpy as np
import pytest
from numpy.testing import assert_array_equal

from forerank._sorting import argsort, largest, sort_by_group


@pytest.mark.parametrize("n", [0, 1, 10, 600, 5000, 70_000])
@pytest.mark.parametrize(
    "kind", ["normal", "ties", "equal", "outlier", "tiny span", "infinite", "subnormal", "heavy"]
)
def test_argsort_sorts(n, kind):
    rng = np.random.default_rng(8)
    x = rng.standard_normal(n)
    s = {
        "normal": x,
        "ties": np.round(3 * x),
        "equal": np.zeros(n),
        "outlier": np.where(np.arange(n) == n // 2, 1e12, x),
        "tiny span": 1e6 + 1e-10 * x,
        "infinite": np.where(x > 1, np.inf, x),
        "subnormal": 5e-324 * np.round(x),
        "heavy": np.sinh(20 * x),
    }[kind]
    order = argsort(s)
    assert_array_equal(np.sort(order), np.arange(n))
    assert_array_equal(s[order], np.sort(s))
    assert_array_equal(argsort(s, stable=True), np.argsort(s, kind="stable"))


@pytest.mark.parametrize("count", [0, 1, 7, 40, 60])
def test_largest_are_those_of_a_full_sort(count):
    values = np.random.default_rng(count).permutation(40).astype(float)
    assert_array_equal(largest(values, count), np.argsort(-values)[:count])
    assert_array_equal(largest(values, count, stable=False), np.argsort(-values)[:count])


def test_largest_takes_ties_by_position():
    values = np.array([1.0, 3.0, 2.0, 3.0, 0.0, 3.0])
    assert_array_equal(largest(values, 4), [1, 3, 5, 2])
    assert_array_equal(largest(values, 6), [1, 3, 5, 2, 0, 4])


def test_sort_by_group_keeps_the_order_within_a_group():
    rng = np.random.default_rng(0)
    group, order = rng.integers(0, 5, 100), rng.permutation(100)
    first = np.concatenate([[0], np.cumsum(np.bincount(group))])[:-1]
    expected = order[np.argsort(group[order], kind="stable")]
    assert_array_equal(sort_by_group(order, group, first), expected)
    assert_array_equal(first, np.concatenate([[0], np.cumsum(np.bincount(group))])[:-1])
