import numpy as np
import pytest

from forerank._validation import (
    check_number,
    check_weights,
    is_integer,
    is_number,
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
