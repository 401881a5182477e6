import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils import check_array

from forerank._validation import (
    check_number,
    check_weights,
    is_integer,
    is_number,
    is_valid_array,
    is_valid_labels,
    refuse_invalid_weights,
)


@pytest.mark.parametrize("value", [3, np.int32(3)])
def test_integers(value):
    assert is_integer(value)
    assert is_number(value)


@pytest.mark.parametrize("value", [True, np.nan, "3", None, 2.5])
def test_values_that_are_not_integers(value):
    assert not is_integer(value)
    assert is_number(value) == isinstance(value, float)
    with pytest.raises(ValueError, match="n must be an integer >= 1; got"):
        check_number("n", value, low=1, integer=True)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -2.0], "not negative; row 1 has -2.0"),
        ([1.0, np.inf], "finite .*; row 1 has inf"),
        ([np.nan, 1.0], "finite .*; row 0 has nan"),
        ([0.0, 0.0], "zero for every row"),
    ],
)
def test_invalid_weights_are_refused_with_their_row(weight, message):
    with pytest.raises(ValueError, match=message):
        refuse_invalid_weights(np.array(weight))


def test_equal_weights_are_none_and_extreme_ones_are_rescaled():
    assert check_weights([2.0, 2.0], 2) is None
    assert check_weights(3.0, 2) is None
    np.testing.assert_allclose(check_weights([1e-300, 2e-300], 2), [0.5, 1.0])


class TestPlainArrays:
    """Arrays that need none of scikit-learn's checks, and those that do."""

    def test_valid(self):
        X = np.arange(6.0).reshape(3, 2)
        sparse = sp.csr_array(X), sp.csr_matrix(X)
        for valid in (X, X.astype(np.float32), np.asfortranarray(X), X[::2], X[:, ::-1], *sparse):
            assert is_valid_array(valid)
            checked = check_array(valid, accept_sparse="csr", dtype=[np.float64, np.float32])
            assert checked is valid

    @pytest.mark.parametrize(
        "X",
        [
            [[1.0, 2.0]],
            np.ones(3),
            np.ones((2, 2), dtype=int),
            np.ones((2, 2), dtype=">f8"),
            np.ones((0, 2)),
            np.ones((2, 0)),
            np.array([[1.0, np.nan]]),
            np.array([[1.0, np.inf]]),
            np.array([[np.inf, -np.inf]]),
            np.full((2, 2), 1e308),
            np.ma.ones((2, 2)),
            sp.csc_array(np.eye(2)),
            sp.csr_array(np.array([[1.0, np.nan]])),
        ],
        ids=repr,
    )
    def test_others(self, X):
        assert not is_valid_array(X)

    def test_labels(self):
        assert is_valid_labels(np.array([0, 1]), 2)
        assert is_valid_labels(np.array([0.5, 1.0]), 2)
        assert is_valid_labels(np.array([True, False]), 2)
        for y in ([0, 1], np.array(["a", "b"]), np.array([0.0, np.nan]), np.ones((2, 1))):
            assert not is_valid_labels(y, 2)
        assert not is_valid_labels(np.ones(3), 2)
