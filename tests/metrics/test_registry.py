"""The registry of measures: functions, depths, values of a random order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from forerank import metrics
from forerank.metrics.registry import (
    get_measure,
    measure_named,
    measure_phrase,
    metric_function,
    takes_grades,
)


def test_measures_by_name():
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 2, 50), rng.standard_normal(50)
    assert metric_function("auc")(y, s) == metrics.roc_auc(y, s)
    assert metric_function("recall@5")(y, s) == metrics.recall_at_k(y, s, k=5)
    assert metric_function("recall@500")(y, s) == 1.0
    assert metric_function("pauc@0.1")(y, s) == metrics.partial_auc(
        y, s, standardize="range", fpr_range=(0, 0.1)
    )


@given(
    seed=st.integers(0, 1000),
    n_part=st.integers(2, 30),
    more=st.integers(0, 90),
    k=st.integers(1, 200),
)
def test_as_large_a_share_of_a_part(seed, n_part, more, k):
    """Positives among the first rows, interpolated linearly between integer depths."""
    rng, n_all = np.random.default_rng(seed), n_part + more
    y, s = rng.integers(0, 2, n_part), rng.permutation(n_part).astype(float)
    y[:2] = 0, 1
    depth = min(n_part, k * n_part / n_all)
    down = np.append(0.0, np.cumsum(y[np.argsort(-s)]))
    recall = measure_named(f"recall@{k}").for_rows(n_part, n_all)
    assert_allclose(recall.function(y, s), np.interp(depth, np.arange(n_part + 1), down) / y.sum())
    counted = np.clip(depth - np.arange(n_part), 0.0, 1.0) / np.log2(np.arange(n_part) + 2.0)
    best = counted @ np.sort(y)[::-1]
    ndcg = measure_named(f"ndcg@{k}").for_rows(n_part, n_all)
    assert_allclose(ndcg.function(y, s), counted @ y[np.argsort(-s)] / best)


def test_the_depth_of_measures_that_count_rows():
    y, s = np.arange(50) % 3 == 0, np.cos(np.arange(50))
    whole = measure_named("recall@5").for_rows(50, 50)
    assert whole.title == "recall at 5 of 50 rows (first 10 %)"
    assert whole.function(y, s) == metrics.recall_at_k(y, s, k=5)
    assert (
        measure_named("recall@50").for_rows(10, 171).title
        == "recall at 50 of 171 rows (first 29.2 %)"
    )
    assert measure_named("recall@99").for_rows(50, 50).title == "recall at 99 of 50 rows (all)"
    grouped = measure_named("ndcg@2").for_rows(
        10, 50, grouped=True
    )  # each group is a list of its own
    assert grouped.title == "NDCG at 2 of a group"
    assert grouped.function(y, s, qid=np.arange(50) // 5) == metrics.ndcg(
        y, s, k=2, qid=np.arange(50) // 5
    )
    assert measure_named("ap").for_rows(10, 50) == measure_named("ap")


@pytest.mark.parametrize(
    "key", ["auc", "wmw", "ap", "pos_at_top", "tpr@0.3", "precision@4", "recall@4"]
)
def test_the_chance_level_is_the_mean_over_random_orders(key):
    rng = np.random.default_rng(0)
    y = np.arange(12) < 5
    measure = get_measure(key)
    values = [measure.function(y, rng.permutation(12)) for _ in range(4000)]
    error = np.std(values) / np.sqrt(4000)
    assert abs(np.mean(values) - measure.chance(12, 5)) < 4 * error


def test_titles_and_phrases():
    assert get_measure("pos_at_top").title == "positives at the top"
    assert measure_phrase("pos_at_top") == "share of positives at the top"
    assert get_measure("map") == get_measure("ap")
    assert get_measure("ndcg").k is None
    assert get_measure("precision@7").k == 7
    assert get_measure("pauc@0.1").k is None
    assert measure_phrase("anything else") == "anything else"
    assert [key for key in ("auc", "wmw", "ndcg@5", "x") if takes_grades(key)] == ["wmw", "ndcg@5"]
    with pytest.raises(ValueError, match="metric must be one of"):
        measure_named("precision@7")  # no ranker is selected by it
