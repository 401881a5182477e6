"""svmlight files come back, and bad lines are named."""

import bz2
import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.datasets import dump_svmlight_file

from forerank.data.readers import read_matrix
from forerank.exceptions import DataFileError


@pytest.mark.parametrize("packed", ["", ".gz", ".bz2"])
@pytest.mark.parametrize("grouped", [False, True])
def test_svmlight_comes_back(tmp_path, packed, grouped):
    rng = np.random.default_rng(0)
    X = sp.random(50, 20, 0.2, format="csr", random_state=0)
    y, qid = rng.integers(0, 2, 50), np.sort(rng.integers(0, 5, 50))
    plain = tmp_path / "a.svm"
    dump_svmlight_file(X, y, str(plain), zero_based=False, query_id=qid if grouped else None)
    path = tmp_path / f"a.svm{packed}"
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(packed, bytes)
    path.write_bytes(pack(plain.read_bytes()))
    found = read_matrix(path)
    assert abs(found.X - X[:, : found.X.shape[1]]).max() < 1e-12
    assert_array_equal(found.y, y)
    assert found.qid is None if not grouped else np.array_equal(found.qid, qid)


def test_comments_and_columns_from_zero(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:2 # qid:x\n0 1:3\n")
    assert read_matrix(path).qid is None
    assert read_matrix(path).X.shape == (2, 1)
    assert read_matrix(path, zero_based=True).X.shape == (2, 2)
    assert not read_matrix(path).zero_based
    path.write_text("1 0:2\n")
    with pytest.raises(DataFileError, match="line 1: not a line of svmlight"):
        read_matrix(path, zero_based=False)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.svm", b"\n", "the file is empty"),
        ("a.svm", b"# nothing\n", "comments but no rows"),
        ("a.svm", b"1 qid:1 1:2\n0 1:2\n", "qid is missing in some lines"),
        ("a.svm", b"1 1:2\n0 1:x\n", r"a.svm, line 2: not a line of svmlight .*: '0 1:x'"),
        ("a.svm", b"1 1:2\n" * 9000 + b"yes 1:2\n", "a.svm, line 9001: not a line of svmlight"),
        ("a.svm", b"1 3:1 2:1\n", "a.svm, line 1: not a line of svmlight"),
        ("a.svm", b"\x00\xff\x89PNG", "a.svm, line 1"),
        ("a.svm.gz", b"1 1:2\n", "a.svm.gz: cannot be read"),
        ("a.npz", b"PK\x03\x04junk", "cannot be read as a NumPy archive"),
        (
            "a.npz",
            b"x,y\n1,2\n",
            "cannot be read as a NumPy archive, as its suffix suggests",
        ),
        ("a.csv", b"a\n1\n", "this is a table, not a matrix"),
    ],
)
def test_bad_matrices_are_named_in_one_line(tmp_path, name, data, message):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(DataFileError, match=message) as caught:
        read_matrix(path)
    assert "\n" not in str(caught.value)
