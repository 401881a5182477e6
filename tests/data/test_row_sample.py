"""Samples of rows that are kept while rows are read once."""

import numpy as np
import pytest

from forerank.data.row_sample import RowSample


def drawn(size, codes, group=None, weight=None, n_blocks=7, seed=0):
    sample = RowSample(size, grouped=group is not None, seed=seed)
    X = np.arange(codes.size, dtype=float)[:, None]
    for rows in np.array_split(np.arange(codes.size), n_blocks):
        sample.add(
            X[rows],
            codes[rows],
            None if weight is None else weight[rows],
            None if group is None else group[rows],
        )
    totals = np.bincount(codes, weights=weight).astype(float)
    return sample.rows(np.arange(totals.size), totals)


def test_a_rare_class_is_kept_and_every_class_has_its_share():
    codes = (np.arange(20_000) % 500 == 3).astype(int)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, codes.size)
    sample = drawn(1_000, codes, weight=weight)
    assert sample.codes.sum() == codes.sum()
    assert 200 <= np.count_nonzero(sample.codes == 0) <= 500
    by_class = np.bincount(sample.codes, weights=sample.weight)
    expected = np.bincount(codes, weights=weight)
    np.testing.assert_allclose(by_class / by_class.sum(), expected / expected.sum())


def test_every_row_is_as_likely_to_be_drawn():
    codes = np.zeros(400, dtype=int)
    count = np.zeros(400)
    for seed in range(200):
        count[drawn(100, codes, seed=seed).X[:, 0].astype(int)] += 1
    share = count.mean() / 200
    deviation = np.sqrt(share * (1.0 - share) * 200)
    assert np.abs(count - count.mean()).max() < 5.0 * deviation


def test_groups_are_complete():
    codes, group = np.arange(3_000) % 2, np.repeat(np.arange(300), 10)
    sample = drawn(500, codes, group)
    rows = sample.X[:, 0].astype(int)
    assert 100 <= rows.size <= 500
    assert (np.bincount(group[rows], minlength=300)[np.unique(group[rows])] == 10).all()
    assert np.unique(sample.group).size == np.unique(group[rows]).size


@pytest.mark.parametrize("n_groups", [1, 2])
def test_groups_larger_than_the_sample_leave_one(n_groups):
    codes = np.arange(900) % 2
    group = np.repeat(np.arange(n_groups), 900 // n_groups)
    sample = drawn(100, codes, group)
    assert sample.n_rows in (900 // n_groups, 900)
