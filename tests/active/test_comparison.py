"""Comparisons of strategies: tests, tables, and the file of finished runs."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from scipy.stats import ttest_rel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC

from forerank import PairwiseRanker
from forerank.active import (
    LabellingLoop,
    Random,
    Simulation,
    StrategyComparison,
    compare,
    compare_strategies,
    paired_t,
    simulate,
)
from labelling import small_pool


def test_paired_t_equals_scipys():
    a, b = np.random.default_rng(0).normal(size=(2, 30))
    found, peer = paired_t(a, b), ttest_rel(a, b)
    assert found.p == pytest.approx(peer.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(peer.confidence_interval(0.95)))
    assert paired_t([1.0, 1.0], [1.0, 1.0]).p == 1.0
    assert paired_t([2.0, 2.0], [1.0, 1.0]).p == 0.0


def test_compare(tmp_path):
    X, y = small_pool(200)
    options = {
        "n_runs": 3,
        "batch": 10,
        "test": (X[100:], y[100:]),
        "progress": False,
        "results": tmp_path / "runs.jsonl",
    }
    methods = {
        "first": "greedy",
        "by chance": Random(),
        "svm": {"strategy": "greedy", "ranker": LinearSVC()},
    }
    found = compare_strategies(X[:100], y[:100], strategies=methods, **options)
    assert list(found.runs) == list(methods)
    seeds = [[run.seeds for run in runs] for runs in found.runs.values()]
    assert seeds[0] == seeds[1] == seeds[2]
    lines = found.table()
    assert lines[0]["records to 95%"] == pytest.approx(
        found.records_to_recall(0.95)["first"].mean()
    )
    assert lines[0]["records to 95%"] < lines[1]["records to 95%"]
    text = found.ordering("recall")
    assert text.endswith(">> by chance")
    values = {name: found.values("auc", name) for name in methods}
    assert values["first"].shape == (3, 11)
    over_curve = found.test("auc", "first", "svm")
    assert over_curve.p == pytest.approx(
        ttest_rel(values["first"][:, 1:].ravel(), values["svm"][:, 1:].ravel()).pvalue
    )
    assert found.test("auc", "first", "svm", over="runs").n == 3
    x, mean, low, high = found.band("recall", "first")
    assert x.size == 99
    assert np.all(low <= mean)
    assert np.all(mean <= high)
    axes = found.plot("auc")
    assert len(axes.get_lines()) == 3
    # Taken up again, nothing is run twice: the file stays as it is.
    before = (tmp_path / "runs.jsonl").read_bytes()
    again = compare_strategies(X[:100], y[:100], strategies=methods, **options)
    assert again.runs == found.runs
    assert (tmp_path / "runs.jsonl").read_bytes() == before
    with pytest.raises(ValueError, match="other options"):
        compare_strategies(X[:100], y[:100], strategies=methods, **{**options, "batch": 5})


def test_comparison_of_runs_that_ended_early():
    runs = {"a": [Simulation([1, 2], [1, 0], 4, 2, [0], [0, 2])]}
    comparison = StrategyComparison(runs)
    assert np.isnan(comparison.table()[0]["records to 95%"])
    assert_array_equal(comparison.values("recall", "a"), [[0.0, 0.5, 0.5, 0.5, 0.5]])
    with pytest.raises(ValueError, match="was not measured"):
        comparison.values("auc", "a")


def test_results_of_other_data_or_methods_are_refused(tmp_path):
    X, y = small_pool(60)
    path = tmp_path / "runs.jsonl"
    options = {"n_runs": 1, "rounds": 2, "progress": False, "results": path}
    compare_strategies(X, y, strategies={"svm": {"ranker": LinearSVC(C=1e-3)}}, **options)
    with pytest.raises(ValueError, match="other data"):
        compare_strategies(X + 1, y, strategies={"svm": {"ranker": LinearSVC(C=1e-3)}}, **options)
    with pytest.raises(ValueError, match="'svm' with other options"):
        compare_strategies(X, y, strategies={"svm": {"ranker": LinearSVC()}}, **options)
    with pytest.raises(ValueError, match="cannot share a record"):
        compare_strategies(X, y, record=tmp_path / "labels.jsonl", **options)


def test_flags_of_a_sparse_matrix_do_not_make_other_data(tmp_path):
    X, y = small_pool(60)
    for path, use in ((tmp_path / "runs.jsonl", "compare"), (tmp_path / "labels.jsonl", "loop")):
        fresh = sp.csr_matrix(X)
        A = sp.csr_matrix((fresh.data, fresh.indices, fresh.indptr), shape=X.shape)
        found = []
        for _ in range(2):
            if use == "compare":
                options = {
                    "n_runs": 1,
                    "batch": 20,
                    "progress": False,
                    "results": path,
                    "test": (A, y),
                }
                found.append(compare_strategies(A, y, strategies=["greedy"], **options).runs)
            else:
                found.append(LabellingLoop(A, record=path).random_state)
            A.sum_duplicates()
        assert found[0] == found[1]


def test_an_incomplete_run_is_repeated_and_other_seeds_are_refused(tmp_path):
    X, y = small_pool(60)
    path = tmp_path / "runs.jsonl"
    options = {
        "strategies": ["greedy"],
        "n_runs": 2,
        "rounds": 2,
        "progress": False,
        "results": path,
    }
    whole = compare_strategies(X, y, **options)
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    again = compare_strategies(X, y, **options)
    assert [run.order for run in again.runs["greedy"]] == [
        run.order for run in whole.runs["greedy"]
    ]
    assert path.read_bytes().startswith(data[: data.rfind(b"\n", 0, -1) + 1])
    path.write_bytes(b"")
    assert (
        compare_strategies(X, y, **options).runs["greedy"][0].order == whole.runs["greedy"][0].order
    )
    simulate(X, y, seeds=[0, 1], rounds=1, random_state=0, record=tmp_path / "labels.jsonl")
    with pytest.raises(ValueError, match=r"seeds in the record .* are \[0, 1\], not \[2, 3\]"):
        simulate(X, y, seeds=[2, 3], rounds=1, random_state=0, record=tmp_path / "labels.jsonl")
    named = {"a": {"ranker": make_pipeline(FunctionTransformer(lambda X: X), PairwiseRanker())}}
    with pytest.raises(ValueError, match="'a' holds an object that cannot be hashed"):
        compare_strategies(X, y, strategies=named, results=tmp_path / "other.jsonl", progress=False)


def test_the_old_name_warns():
    X, y = small_pool(60)
    options = {"strategies": ["greedy"], "n_runs": 1, "rounds": 2, "progress": False}
    with pytest.warns(FutureWarning, match="now called compare_strategies"):
        found = compare(X, y, **options)
    assert (
        found.runs["greedy"][0].order == compare_strategies(X, y, **options).runs["greedy"][0].order
    )
