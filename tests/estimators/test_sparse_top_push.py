"""SparseTopPush: weights that are zero."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from forerank import (
    SparseTopPush,
)
from top_rows import data


def test_sparse_weights_are_zero():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 40))
    y = X[:, 0] + X[:, 1] > 1.5
    few = SparseTopPush(alpha=0.1).fit(X, y)
    assert set(np.flatnonzero(few.coef_[0])) >= {0, 1}
    assert np.count_nonzero(few.coef_) < 30
    assert few.optimality_ <= 1e-4
    fine = SparseTopPush(alpha=0.1, tol=1e-7).fit(X, y)
    assert np.count_nonzero(fine.coef_) < 30
    # A weight that is zero at the solution may be left small by a fit that is content with a
    # gap of 1e-4.
    differs = (few.coef_ != 0.0) != (fine.coef_ != 0.0)
    assert (
        np.abs(few.coef_ - fine.coef_)[differs].max(initial=0.0) < 0.01 * np.abs(fine.coef_).max()
    )
    # More columns than join at once.
    wide = np.hstack([X, rng.standard_normal((400, 200))])
    assert SparseTopPush(alpha=0.05).fit(sp.csr_array(wide), y).optimality_ <= 1e-4


def test_a_penalty_beyond_which_nothing_is_left():
    X, y = data()
    with pytest.warns(UserWarning, match="found no better weights than w = 0"):
        ranker = SparseTopPush(alpha=100.0).fit(X, y)
    assert_array_equal(ranker.coef_, 0.0)
    assert ranker.optimality_ <= 1e-4
