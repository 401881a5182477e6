import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from forerank.design import ExtraRowDesign, make_design, standardise

N, D = 900, 37


def matrices():
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.4)
    dense = dense.astype(np.float32).astype(float)  # the same numbers in both precisions
    csr = sp.csr_array(dense)
    wide = sp.csr_array(
        (csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64)), shape=csr.shape
    )
    frozen = dense.copy()
    frozen.flags.writeable = False
    return {
        "C": dense,
        "Fortran": np.asfortranarray(dense),
        "strided": np.repeat(dense, 2, axis=0)[::2],
        "read-only": frozen,
        "C float32": dense.astype(np.float32),
        "Fortran float32": np.asfortranarray(dense.astype(np.float32)),
        "CSR": csr,
        "CSR float32": csr.astype(np.float32),
        "CSR int64": wide,
        "csr_matrix": sp.csr_matrix(dense),
    }


MATRICES = matrices()


@pytest.fixture(params=MATRICES)
def X(request):
    return MATRICES[request.param]


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("subset", [False, True])
@pytest.mark.parametrize("threads", [False, True])
def test_products(X, intercept, subset, threads, monkeypatch):
    if threads:
        monkeypatch.setattr("forerank._kernels._MULTIPLICATIONS_PER_THREAD", 1000)
        monkeypatch.setattr("forerank._kernels.n_threads", lambda: 3)
    rng = np.random.default_rng(1)
    exact = MATRICES["C"]
    design = make_design(X, intercept=intercept)
    if intercept:
        exact = np.column_stack([exact, np.ones(N)])
    if subset:
        rows = rng.permutation(N)[:250]
        exact, design = exact[rows], design.rows(rows)
        again = rng.permutation(250)[:100]
        exact, design = exact[again], design.rows(again)
    assert (design.n_rows, design.n_columns) == exact.shape
    w, G = rng.standard_normal(exact.shape[1]), rng.standard_normal((3, exact.shape[0]))
    G[:, ::5] = 0.0
    # Single-precision data are multiplied and added in double precision.
    assert_allclose(design.scores(w), exact @ w, rtol=1e-12, atol=1e-12)
    assert_allclose(design.adjoint(G[0]), exact.T @ G[0], rtol=1e-12, atol=1e-12)
    assert_allclose(design.adjoints(G), G @ exact, rtol=1e-12, atol=1e-12)
    first, second, presence = design.moments(G[1])
    assert_allclose(first, exact.T @ G[1], rtol=1e-12, atol=1e-12)
    assert_allclose(second, (exact**2).T @ G[1], rtol=1e-12, atol=1e-12)
    stored = exact != 0.0 if sp.issparse(X) else np.ones_like(exact)
    assert_allclose(presence, stored.T @ G[1], rtol=1e-12, atol=1e-12)
    assert_array_equal(design.columns(0, exact.shape[1]), exact)
    assert_array_equal(design.columns(5, 20), exact[:, 5:20])
    about = rng.standard_normal(exact.shape[1])
    first, second, _ = design.moments(G[1], about)
    assert_allclose(first, (exact - about).T @ G[1], rtol=1e-11, atol=1e-11)
    assert_allclose(second, ((exact - about) ** 2).T @ G[1], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("intercept", [False, True])
def test_columns_in_other_units(X, intercept):
    rng = np.random.default_rng(6)
    mean, unit = rng.standard_normal(D), 10.0 ** rng.uniform(-3, 3, D)
    exact = (MATRICES["C"] - mean) / unit
    if intercept:
        exact, mean, unit = (
            np.column_stack([exact, np.ones(N)]),
            np.append(mean, 0.0),
            np.append(unit, 1.0),
        )
    design = standardise(make_design(X, intercept=intercept), mean, unit)
    rows = rng.permutation(N)[:250]
    for part, here in ((exact, design), (exact[rows], design.rows(rows))):
        assert (here.n_rows, here.n_columns) == part.shape
        w, G = rng.standard_normal(part.shape[1]), rng.standard_normal((2, part.shape[0]))
        assert_allclose(here.scores(w), part @ w, rtol=1e-9, atol=1e-9)
        assert_allclose(here.adjoints(G), G @ part, rtol=1e-9, atol=1e-9)
        assert_allclose(here.columns(2, 9), part[:, 2:9], rtol=1e-12)
        first, second, _ = here.moments(G[0])
        assert_allclose(first, part.T @ G[0], rtol=1e-9, atol=1e-8)
        assert_allclose(second, (part**2).T @ G[0], rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("place", [None, 0, 450])
def test_an_extra_row(X, place):
    rng = np.random.default_rng(4)
    row = rng.standard_normal(D)
    at = N if place is None else place
    exact = np.insert(MATRICES["C"], at, row, axis=0)
    design = ExtraRowDesign(make_design(X), row, place)
    for rows in (
        np.arange(N + 1),
        rng.permutation(N + 1)[:300],
        np.array([at, 3, at, 7]),
        np.array([2, 5]),
        np.array([at]),
    ):
        part, here = exact[rows], design.rows(rows)
        assert (here.n_rows, here.n_columns) == part.shape
        w, G = rng.standard_normal(D), rng.standard_normal((2, rows.size))
        assert_allclose(here.scores(w), part @ w, rtol=1e-12, atol=1e-12)
        assert_allclose(here.adjoints(G), G @ part, rtol=1e-12, atol=1e-12)
        first, second, _ = here.moments(G[0])
        assert_allclose(first, part.T @ G[0], rtol=1e-12, atol=1e-12)
        assert_allclose(second, (part**2).T @ G[0], rtol=1e-12, atol=1e-12)
        assert_array_equal(here.columns(5, 20), part[:, 5:20])


def test_threads_do_not_change_a_bit(monkeypatch):
    monkeypatch.setattr("forerank._kernels._MULTIPLICATIONS_PER_THREAD", 1000)
    monkeypatch.setattr("forerank._kernels.n_threads", lambda: 3)
    design = make_design(MATRICES["CSR"])
    g = np.random.default_rng(2).standard_normal(N)
    first = design.adjoint(g)
    for _ in range(20):
        assert_array_equal(design.adjoint(g), first)


@pytest.mark.parametrize("kind", ["plain", "intercept", "standardised", "large means", "extra row"])
@pytest.mark.parametrize("subset", [False, True])
def test_gram_and_bin_sums(X, kind, subset):
    """X^T diag(weight) X and sums of rows by bin, against their definitions."""
    rng = np.random.default_rng(5)
    design = make_design(X, intercept=kind == "intercept")
    design = design.rows(rng.permutation(N)[:300]) if subset else design
    mean, unit = rng.standard_normal(D), rng.uniform(0.5, 2.0, D)
    if kind == "extra row":
        design = ExtraRowDesign(design, rng.standard_normal(D))
    elif kind in ("standardised", "large means"):
        design = standardise(design, 1e3 * mean if kind == "large means" else mean, unit)
    exact, n = design.columns(0, design.n_columns), design.n_rows
    weight, bins = rng.random(n), rng.integers(0, 7, n)
    gram = (exact.T * weight) @ exact
    assert_allclose(design.weighted_gram(weight), gram, rtol=1e-9, atol=1e-12 * np.abs(gram).max())
    sums = np.stack([weight[bins == b] @ exact[bins == b] for b in range(7)])
    assert_allclose(design.bin_sums(weight, bins, 7), sums, rtol=1e-9, atol=1e-9)
    assert_allclose(np.vstack([block for *_, block in design.row_blocks()]), exact, rtol=1e-12)


def test_gram_of_entries_in_the_same_place():
    """Entries of a CSR matrix that are stored twice are added."""
    twice = sp.csr_array((np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 3])))
    exact = twice.toarray()
    design = make_design(twice)
    assert_allclose(design.weighted_gram(np.array([3.0])), 3.0 * exact.T @ exact)
