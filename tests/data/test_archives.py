"""NumPy archives come back, and bad ones are named."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from forerank.data.readers import read_matrix
from forerank.exceptions import DataFileError


def test_archives_come_back(tmp_path):
    X, y = sp.random(6, 4, 0.5, format="csr", random_state=0), np.array([0, 1, 0, 1, 1, 0])
    np.savez(
        tmp_path / "s.npz",
        X_data=X.data,
        X_indices=X.indices,
        X_indptr=X.indptr,
        X_shape=X.shape,
        y=y,
    )
    np.savez(tmp_path / "d.npz", X=X.toarray(), y=y, qid=y)
    assert (read_matrix(tmp_path / "s.npz").X != X).nnz == 0
    dense = read_matrix(tmp_path / "d.npz")
    assert_array_equal(dense.X, X.toarray())
    assert_array_equal(dense.qid, y)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"y": np.zeros(2)}, "the archive has y; expected the arrays X and y"),
        ({"X": np.zeros((2, 2)), "y": np.zeros(3)}, "one label per row"),
        ({"X_data": np.zeros(1), "y": np.zeros(1)}, "do not make a CSR matrix"),
        (
            {"X": np.array([{}], dtype=object), "y": np.zeros(1)},
            "as a NumPy archive .it holds Python objects",
        ),
    ],
)
def test_bad_archives_are_named(tmp_path, parts, message):
    np.savez(tmp_path / "a.npz", **parts)
    with pytest.raises(DataFileError, match=message) as caught:
        read_matrix(tmp_path / "a.npz")
    assert "pickle" not in str(caught.value)
