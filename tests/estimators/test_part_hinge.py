"""Fits of the plain hinge on rows in parts: the objective of fits in memory, within the certified
gaps; ties, groups, grades, weights; the same bits on Dask collections.
"""

import warnings

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import forerank
from forerank import PairwiseRanker, PointwiseRanker
from forerank.estimators import dask_fits
from forerank.solvers import partwise_hinge

N, D = 10_000, 6


def made(kind, n=N, seed=0):
    """Columns and grades 0, 1, 2."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) * [1.0, 20.0, 0.1, 3.0, 1.0, 1.0] + [0, 100, 2, 0, -5, 0]
    z = X / X.std(axis=0) @ np.linspace(1.0, -1.0, D)
    noise = rng.standard_normal(n)
    if kind == "lattice":
        X = np.round(2.0 * rng.standard_normal((n, D))) / 2.0
        z = X @ np.linspace(1.0, -1.0, D)
    if kind == "one-hot":
        X = np.hstack([np.eye(k)[rng.integers(0, k, n)] for k in (2, 3, 5)])
        z = X @ rng.standard_normal(X.shape[1])
    if kind == "separable":
        noise *= 0.0
    z = z + 2.0 * noise
    return X.astype(np.float32), np.digitize(z, np.quantile(z, [0.5, 0.8]))


def streamed(folder, ranker, X, y, **options):
    np.save(folder / "X.npy", X)
    with (
        forerank.open_rows(folder / "X.npy", y, memory="1MB", **options) as rows,
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message=".*qid groups have no pair|.*groups have no")
        assert rows.scan.sample.n_rows < rows.n_rows
        before = rows.n_passes
        fitted = clone(ranker).fit(rows)
        return fitted, rows.n_passes - before


def assert_same_minimum(parts, memory):
    """The intervals from objective less gap to objective overlap."""
    assert parts.optimality_ <= parts.tol
    assert parts.gap_ == pytest.approx(parts.optimality_ * parts.objective_)
    assert parts.objective_ - parts.gap_ <= memory.objective_ * (1.0 + 1e-9)
    assert memory.objective_ - memory.gap_ <= parts.objective_ * (1.0 + 1e-9)


CASES = {
    "pairs": (PairwiseRanker("hinge"), 2, {}),
    "grades": (PairwiseRanker("hinge", graph="order"), 3, {}),
    "graph": (PairwiseRanker("hinge", graph=[(2, 0), (0, 1)]), 3, {}),
    "weights": (PairwiseRanker("hinge"), 2, {"weight": True}),
    "groups": (PairwiseRanker("hinge", graph="order"), 3, {"group": True}),
    "points": (PointwiseRanker("hinge"), 2, {}),
    "balanced": (PointwiseRanker("hinge", class_weight="balanced"), 2, {"weight": True}),
    "no intercept": (PointwiseRanker("hinge", fit_intercept=False), 2, {}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", ["normal", "lattice", "one-hot", "separable"])
def test_streamed_rows_have_the_minimum_of_rows_in_memory(case, kind, tmp_path):
    ranker, n_classes, given = CASES[case]
    ranker = clone(ranker).set_params(alpha=1e-3)
    X, grade = made(kind)
    y = grade if n_classes == 3 else (grade > 1).astype(int)
    options, rows = {}, {}
    if "weight" in given:
        options["weight"] = rows["sample_weight"] = np.random.default_rng(1).integers(0, 4, N)
    if "group" in given:
        options["group"] = rows["qid"] = np.arange(N) // 30
    parts, n_passes = streamed(tmp_path, ranker, X, y, **options)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*qid groups have no pair")
        memory = clone(ranker).fit(X, y, **rows)
    assert_same_minimum(parts, memory)
    assert n_passes < 60
    if "pairs" in case:
        assert n_passes <= 12
        if kind == "normal":
            above = np.mean(parts.decision_function(X) > 0.0)
            assert above == pytest.approx(np.mean(y), abs=1e-3)


def test_a_small_tolerance_is_certified(tmp_path):
    X, grade = made("normal")
    parts, _ = streamed(tmp_path, PairwiseRanker("hinge", tol=1e-5), X, grade > 1)
    assert_same_minimum(parts, PairwiseRanker("hinge", tol=1e-5).fit(X, grade > 1))


def test_what_cannot_be_certified_is_a_warning(tmp_path):
    X, grade = made("normal")
    with pytest.warns(ConvergenceWarning, match="relative duality gap of"):
        ranker, _ = streamed(tmp_path, PairwiseRanker("hinge", tol=1e-9), X, grade > 1)
    assert 1e-9 < ranker.optimality_ < 1e-5
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        streamed(tmp_path, PointwiseRanker("hinge", max_iter=1, tol=1e-6), X, grade > 1)


def test_warm_starts_and_columns_that_say_nothing(tmp_path):
    X, grade = made("normal")
    np.save(tmp_path / "X.npy", X)
    with forerank.open_rows(tmp_path / "X.npy", grade > 1, memory="1MB") as rows:
        ranker = PairwiseRanker("hinge", alpha=1e-3, warm_start=True).fit(rows)
        before = rows.n_passes
        ranker.fit(rows)
        assert rows.n_passes - before <= 4
        assert ranker.optimality_ <= 1e-3
        path = PairwiseRanker("hinge").alpha_path(rows, None, alphas=[1e-1, 1e-2])
        assert (path.optimality <= 1e-3).all()
    np.save(tmp_path / "X.npy", np.ones((N, 6)))
    with forerank.open_rows(tmp_path / "X.npy", grade > 1, memory="1MB") as rows:
        with pytest.warns(UserWarning, match="the same score"):
            ranker = PairwiseRanker("hinge").fit(rows)
        assert not ranker.coef_.any()
        assert ranker.objective_ == pytest.approx(1.0)


@pytest.fixture
def small_sample(monkeypatch):
    monkeypatch.setattr(dask_fits, "_MOST_ROWS", 600)


def divided(X, chunk=1_100):
    return da.from_array(X, chunks=(chunk, X.shape[1]) if X.ndim == 2 else chunk)


def bits(ranker):
    return [*ranker.coef_[0].tolist(), *ranker.intercept_.tolist(), ranker.objective_, ranker.gap_]


@pytest.mark.parametrize(("case", "seed"), [("points", 10), ("points", 17), ("points", 29),
                                            ("groups", 3)])  # fmt: skip
def test_directions_that_are_far_too_long(case, seed, monkeypatch):
    """Columns of raw units, whose penalty is tiny, and a small sample: few rows are at the kink."""
    monkeypatch.setattr(dask_fits, "_MOST_ROWS", 200)
    rng, n = np.random.default_rng(seed), 1_400
    X = rng.standard_normal((n, 2)) * [1000.0, 100.0] + [2000.0, 0.0]
    y = rng.integers(0, 2, n)
    rows = {"sample_weight": rng.uniform(0, 2, n) * (rng.random(n) > 0.2)}
    if case == "groups":
        rows["qid"] = np.arange(n) // 20
    ranker = clone(CASES[case][0]).set_params(alpha=1e-2, tol=1e-4, max_iter=500)
    with dask.config.set(scheduler="synchronous"):
        divided_rows = {name: divided(values, 300) for name, values in rows.items()}
        parts = clone(ranker).fit(divided(X, 300), divided(y, 300), **divided_rows)
    assert_same_minimum(parts, ranker.fit(X, y, **rows))


def test_a_gap_that_a_line_search_without_a_step_has_closed(monkeypatch):
    def search(self, *_):
        self._best.bound = self._best.value
        return None

    monkeypatch.setattr(partwise_hinge._HingeIterations, "_line_search", search)
    X, grade = made("normal", 2_000)
    with dask.config.set(scheduler="synchronous"):
        ranker = PairwiseRanker("hinge", tol=1e-9).fit(divided(X), divided(grade > 1))
    assert ranker.optimality_ == 0.0


@pytest.mark.parametrize("case", ["pairs", "grades", "groups", "points", "balanced"])
def test_dask_collections_have_the_same_minimum_and_the_same_bits(case, small_sample):
    ranker, n_classes, given = CASES[case]
    X, grade = made("normal")
    y = grade if n_classes == 3 else (grade > 1).astype(int)
    rows = {}
    if "weight" in given:
        rows["sample_weight"] = np.random.default_rng(1).integers(0, 4, N)
    if "group" in given:
        rows["qid"] = np.arange(N) // 50
    ranker = clone(ranker).set_params(alpha=1e-3)
    found = []
    for options in ({"scheduler": "synchronous"}, {"scheduler": "threads", "num_workers": 4}):
        with dask.config.set(options):
            parts = {name: divided(values) for name, values in rows.items()}
            found.append(clone(ranker).fit(divided(X), divided(y), **parts))
    assert bits(found[0]) == bits(found[1])
    assert_same_minimum(found[0], clone(ranker).set_params(tol=1e-5).fit(X, y, **rows))


def test_sparse_blocks(small_sample):
    X, grade = made("one-hot")
    blocks = divided(X).map_blocks(sp.csr_matrix, dtype=float)
    for ranker in (PairwiseRanker("hinge", alpha=1e-3), PointwiseRanker("hinge", alpha=1e-3)):
        with dask.config.set(scheduler="synchronous"):
            parts = clone(ranker).fit(blocks, divided(grade > 1))
        assert_same_minimum(parts, clone(ranker).set_params(tol=1e-5).fit(X, grade > 1))
