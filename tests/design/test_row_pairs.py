import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from forerank.design import row_pairs
from forerank.design.row_pairs import Differences


def data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 7)) * (rng.random((30, 7)) < 0.5)
    X = X.astype(np.float32).astype(float)
    plus, minus = rng.integers(-1, 30, 50), rng.integers(-1, 30, 50)
    plus[(plus < 0) & (minus < 0)] = 0
    plus[:3] = minus[:3] = 4, 5, 6  # no difference
    padded = np.vstack([X, np.zeros(7)])
    return X, plus, minus, padded[plus] - padded[minus]


FORMS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "float32": lambda X: X.astype(np.float32),
    "CSR": sp.csr_array,
    "CSR float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "CSR int64": lambda X: sp.csr_array(
        (
            sp.csr_array(X).data,
            sp.csr_array(X).indices.astype(np.int64),
            sp.csr_array(X).indptr.astype(np.int64),
        ),
        shape=X.shape,
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("stored", [True, False])
def test_the_definition(form, stored, monkeypatch):
    if not stored:
        monkeypatch.setattr(row_pairs, "_STORED_ROOM", 0)
    X, plus, minus, Z = data()
    pairs = Differences(FORMS[form](X), 50)
    pairs.extend(plus[:20], minus[:20])
    pairs.extend(plus[20:], minus[20:])
    assert (len(pairs.rows) == 1) == stored
    w, a = np.random.default_rng(1).standard_normal(7), np.random.default_rng(2).standard_normal(50)
    close = 1e-6 if stored and "float32" in form else 1e-12
    assert_allclose(pairs.margins(w), Z @ w, rtol=close, atol=close)
    assert_allclose(pairs.combination(a), Z.T @ a, rtol=close, atol=close)
    assert_allclose(pairs.squared_norms, np.sum(Z**2, axis=1), rtol=close, atol=close)


def test_wide_sparse_rows_are_not_made_dense():
    X = sp.random_array((100, 50_000), density=1e-3, random_state=0, format="csr")
    pairs = Differences(X, 1000)
    pairs.extend(np.arange(50), np.arange(50, 100))
    assert len(pairs.rows) == 5
    w = np.random.default_rng(0).standard_normal(50_000)
    assert_allclose(pairs.margins(w), X[:50] @ w - X[50:] @ w, atol=1e-12)
