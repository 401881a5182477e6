"""Merging of equal rows against a dictionary of rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from forerank.design import equal_rows, merge_equal_rows
from forerank.design.equal_rows import find_equal_rows


def sets_by_definition(X, key):
    """The set of each row, numbered in the order of the first rows."""
    seen = {}
    return [seen.setdefault((int(k), *row), len(seen)) for k, row in zip(key, X, strict=True)]


def storages(X):
    csr = sp.csr_array(X)
    wide = sp.csr_array(
        (csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64)), shape=csr.shape
    )
    return X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], csr, wide


def few_different_rows(n=900, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(-1, 2, (n, d)).astype(float), rng.integers(0, 2, n)


@settings(max_examples=60)
@given(
    n=st.integers(1, 400),
    d=st.integers(1, 4),
    levels=st.integers(1, 3),
    seed=st.integers(0, 10**6),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_sets_are_those_of_a_dictionary(n, d, levels, seed, dtype):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, (n, d)).astype(dtype) * dtype(0.3)
    key = rng.integers(0, 3, n)
    expected = sets_by_definition(X, key)
    for stored in storages(X):
        found = find_equal_rows(stored, key)
        if found is None:
            # Too few in all, or in the sample.
            assert len(set(expected)) > 0.8 * n or n > 64
        else:
            assert_array_equal(found.set_of, expected)
            assert_array_equal(found.set_of[found.first], np.arange(found.first.size))
            assert all(expected.index(k) == row for k, row in enumerate(found.first))


def test_weights_are_added():
    X, key = few_different_rows()
    weight = np.random.default_rng(1).random(key.size)
    for given_weight in (None, weight):
        rows, codes, total, _ = merge_equal_rows(X, key, given_weight)
        assert len(codes) == len(np.unique(np.column_stack([X, key]), axis=0))
        each = np.ones(key.size) if given_weight is None else weight
        for row, code, sum_of_weights in zip(rows, codes, total, strict=True):
            members = np.all(row == X, axis=1) & (key == code)
            assert_allclose(sum_of_weights, each[members].sum())


def test_groups_and_classes_are_kept_apart():
    X, key = few_different_rows()
    group = np.random.default_rng(2).integers(0, 4, key.size)
    rows, codes, _, groups = merge_equal_rows(X, key, None, group)
    merged = {(*row, k, g) for row, k, g in zip(rows.tolist(), codes, groups, strict=True)}
    assert merged == {(*row, k, g) for row, k, g in zip(X.tolist(), key, group, strict=True)}
    assert len(merged) == len(codes)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_minus_zero_is_zero(dtype):
    X = np.zeros((200, 2), dtype)
    X[::2] = -0.0
    X[:50, 1] = 1.0
    key = np.zeros(200, int)
    assert find_equal_rows(X, key).first.size == 2
    csr = sp.csr_array(X)
    stored = sp.csr_array(
        (X.ravel(), np.tile([0, 1], 200).astype(np.int32), np.arange(0, 401, 2)), shape=X.shape
    )
    assert find_equal_rows(csr, key).first.size == 2
    assert find_equal_rows(stored, key).first.size == 2


def test_different_rows_are_not_merged():
    X = np.random.default_rng(0).standard_normal((3000, 4))
    key = np.zeros(3000, int)
    for stored in storages(X):
        assert find_equal_rows(stored, key) is None
    merged = merge_equal_rows(X, key, None)
    assert merged[0] is X
    assert merged[1] is key


@pytest.mark.parametrize("n", [500, 5000, 50_000])
def test_rows_that_all_occur_twice_are_found(n):
    rng = np.random.default_rng(0)
    X = np.tile(rng.standard_normal((n // 2, 2)), (2, 1))
    key = np.zeros(n, int)
    assert find_equal_rows(X, key).first.size == n // 2
    assert find_equal_rows(X[np.argsort(X[:, 0])], key).first.size == n // 2  # side by side


def test_rows_with_the_same_hash_that_differ_are_not_merged(monkeypatch):
    X, key = few_different_rows()
    for stored in storages(X):
        monkeypatch.setattr(
            equal_rows, "_hashes", lambda X, key, rows: np.zeros(key.size, np.uint64)
        )
        assert find_equal_rows(stored, key) is None
        monkeypatch.undo()
        assert find_equal_rows(stored, key) is not None


def test_copies_are_bounded(monkeypatch):
    X, key = few_different_rows()
    monkeypatch.setattr(equal_rows, "_LARGEST_COPY", X.nbytes // 2)
    assert find_equal_rows(X, key) is None
