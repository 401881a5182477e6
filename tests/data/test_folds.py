"""Folds: stratified, whole groups, fewer where rows do not suffice."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from forerank.data.folds import TooFewRowsError, make_folds, with_seed

Y = np.repeat([0, 1], [12, 4])


def test_folds_are_those_of_scikit_learn():
    expected = StratifiedKFold(4, shuffle=True, random_state=7).split(np.zeros((16, 1)), Y)
    folds = make_folds(4, Y, seed=7)
    for (train, test), (train_wanted, test_wanted) in zip(folds.splits, expected, strict=True):
        assert_array_equal(train, train_wanted)
        assert_array_equal(test, test_wanted)
    assert folds.notes == []
    assert len(folds) == 4


def test_fewer_folds_where_rows_or_groups_do_not_suffice():
    expected = "there are 4 folds instead of 5, for 4 rows of the smaller class"
    assert make_folds(5, Y).notes == [expected]
    groups = np.arange(16) % 3
    folds = make_folds(5, Y, groups)
    assert folds.notes == ["there are 3 folds instead of 5, for 3 groups"]
    for train, test in folds.splits:
        assert not set(groups[train]) & set(groups[test])
    with pytest.raises(TooFewRowsError, match="at least 2 groups; the data have 1"):
        make_folds(5, Y, np.zeros(16))
    with pytest.raises(TooFewRowsError, match="at least 2 rows of the smaller class"):
        make_folds(2, Y[:13])


def test_every_fold_has_rows_to_test_on():
    # Stratifying may leave a fold empty where one group holds most rows; then it is not done.
    y = np.tile([0, 1, 2], 10)
    groups = np.array([0] * 24 + [1, 1, 2, 2, 3, 3])
    for seed in range(10):
        assert all(test.size for _, test in make_folds(4, y, groups, seed).splits)


def test_splitters_and_lists_are_taken_as_they_are():
    groups = np.arange(16) % 4
    for cv in (KFold(3), GroupKFold(4), list(KFold(3).split(Y))):
        folds = make_folds(cv, Y, groups)
        assert_array_equal(np.sort(np.concatenate([test for _, test in folds.splits])), range(16))
    with pytest.raises(ValueError, match="same rows in train and test"):
        make_folds([(np.arange(4), np.arange(3, 6))], Y)
    for cv in (1, True, "five", None):
        with pytest.raises(ValueError, match="is not a number of folds"):
            make_folds(cv, Y)


def test_the_seed_of_a_splitter():
    splitter = KFold(3, shuffle=True, random_state=1)
    assert with_seed(splitter, 5).random_state == 5
    assert splitter.random_state == 1
