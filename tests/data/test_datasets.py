import os

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from forerank import PairwiseRanker, metrics
from forerank.data import datasets


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv("FORERANK_DATA", str(tmp_path))
    return tmp_path


def test_dense_and_grouped(directory):
    X, y, qid = np.eye(3, dtype=np.float32), np.array([1, -1, 1]), np.array([7, 7, 8])
    np.savez(directory / "small.npz", X=X, y=y, qid=qid)
    data = datasets.load("small")
    assert_array_equal(data.X, X)
    assert_array_equal(data.y, y)
    assert_array_equal(data.qid, qid)


def test_sparse_with_small_indices(directory):
    X = sp.random_array((20, 30), density=0.2, format="csr", rng=np.random.default_rng(0))
    parts = {
        "X_data": X.data,
        "X_indices": X.indices.astype(np.int64),
        "X_indptr": X.indptr.astype(np.int64),
    }
    np.savez(directory / "sparse.npz", y=np.ones(20), X_shape=X.shape, **parts)
    data = datasets.load("sparse")
    assert_array_equal(data.X.toarray(), X.toarray())
    assert data.X.indices.dtype == np.int32
    assert data.qid is None


def test_refusals_say_what_to_do(tmp_path, monkeypatch):
    monkeypatch.delenv("FORERANK_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"FORERANK_DATA is not set\. Set it to"):
        datasets.load("letter")
    monkeypatch.setenv("FORERANK_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="not a directory"):
        datasets.load("letter")
    monkeypatch.setenv("FORERANK_DATA", str(tmp_path))
    np.savez(tmp_path / "other.npz", X=np.eye(2), y=np.ones(2))
    with pytest.raises(
        FileNotFoundError, match="no data set 'letter' in FORERANK_DATA; found: other"
    ):
        datasets.load("letter")


@pytest.mark.skipif("FORERANK_DATA" not in os.environ, reason="FORERANK_DATA is not set")
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "hinge"])
def test_real_data_to_a_certificate(loss):
    data, test = datasets.load("a9a"), datasets.load("a9a_test")
    ranker = PairwiseRanker(loss, alpha=1e-3).fit(data.X, data.y)
    assert ranker.optimality_ <= 1e-3
    assert metrics.roc_auc(test.y, ranker.decision_function(test.X)) > 0.895
