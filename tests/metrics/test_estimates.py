"""All measures at once are the measures one by one, and their intervals cover what they should."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from forerank import metrics
from forerank.metrics.estimates import estimate_measure, estimate_measures
from forerank.metrics.registry import measure_named
from forerank.metrics.top_k import Depth


def data(n=300, seed=0, levels=None):
    rng = np.random.default_rng(seed)
    y = rng.uniform(size=n) < 0.3
    scores = rng.normal(size=n) + y
    return y, np.round(scores, 1) if levels else scores, rng.integers(0, 12, n)


@pytest.mark.parametrize("levels", [None, 1])
@pytest.mark.parametrize("grouped", [False, True])
def test_values_are_those_of_the_metrics(levels, grouped):
    y, scores, group = data(levels=levels)
    qid = group if grouped else None
    found = {
        each.name: each for each in estimate_measures(y, scores, qid=qid, k=[5, 10], random_state=0)
    }
    expected = {
        "AUC": metrics.roc_auc(y, scores, qid=qid),
        "average precision": metrics.average_precision(y, scores, qid=qid),
        "positives at the top": metrics.pos_at_top(y, scores, qid=qid),
        "partial AUC (FPR to 0.1)": metrics.partial_auc(y, scores, qid=qid, standardize="range"),
        "TPR at FPR 0.01": metrics.tpr_at_fpr(y, scores, qid=qid),
        "precision at 5": metrics.precision_at_k(y, scores, k=5, qid=qid),
        "precision at 10": metrics.precision_at_k(y, scores, k=10, qid=qid),
        "recall at 5": metrics.recall_at_k(y, scores, k=5, qid=qid),
        "recall at 10": metrics.recall_at_k(y, scores, k=10, qid=qid),
    }
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert_allclose(found[name].value, value, rtol=1e-12)
        assert found[name].low <= found[name].high
    assert found["AUC"].low < expected["AUC"] < found["AUC"].high


@pytest.mark.parametrize("grouped", [False, True])
def test_grades(grouped):
    rng = np.random.default_rng(0)
    y = rng.integers(-1, 3, 200)
    scores, group = y + rng.normal(size=200), rng.integers(0, 10, 200)
    qid = group if grouped else None
    found = {
        each.name: each
        for each in estimate_measures(y, scores, qid=qid, k=[5], random_state=0, n_resamples=50)
    }
    assert_allclose(found["pairs in order"].value, metrics.wmw(y, scores, qid=qid))
    assert_allclose(found["NDCG"].value, metrics.ndcg(y + 1, scores, qid=qid))
    assert_allclose(found["NDCG at 5"].value, metrics.ndcg(y + 1, scores, k=5, qid=qid))
    assert all(each.low < each.value < each.high for each in found.values())


def test_intervals_cover_the_truth_as_often_as_they_say():
    # Two normal classes one apart: AUC Phi(1 / sqrt 2). Average precision has no formula: a large
    # sample stands for it.
    rng = np.random.default_rng(0)
    big_y = np.arange(400_000) % 4 == 0
    truth = metrics.average_precision(big_y, rng.normal(size=big_y.size) + big_y)
    y = np.arange(200) % 4 == 0
    hits = {"AUC": 0, "average precision": 0}
    for seed in range(200):
        scores = rng.normal(size=200) + y
        found = {
            m.name: m
            for m in estimate_measures(
                y, scores, k=[], confidence=0.9, n_resamples=100, random_state=seed
            )
        }
        hits["AUC"] += found["AUC"].low <= 0.7602499389 <= found["AUC"].high
        hits["average precision"] += (
            found["average precision"].low <= truth <= found["average precision"].high
        )
    # 90 % of 200 is 180, with a standard deviation of 4; percentiles of a skew measure cover a
    # little less.
    assert 168 <= hits["AUC"] <= 192
    assert 160 <= hits["average precision"] <= 195


def test_too_little_to_say():
    found = estimate_measures([0, 0, 1], [1.0, 2.0, 3.0], k=[1], random_state=0)
    assert found[0].value == 1.0
    assert all(np.isnan([each.low, each.high]).all() for each in found)
    perfect = estimate_measures([0, 0, 1, 1], [1.0, 2.0, 3.0, 4.0], k=[1, 50], random_state=0)
    assert (perfect[0].low, perfect[0].high) == (1.0, 1.0)
    assert "precision at 50" not in {each.name for each in perfect}
    assert (
        len(estimate_measures([0, 1, 0, 1], [1, 2, 3, 4], qid=[0, 0, 1, 1], k=[], random_state=0))
        == 5
    )
    one_group = estimate_measures(
        [0, 1, 0, 0], [1, 2, 3, 4], qid=[0, 0, 1, 1], k=[], random_state=0
    )
    assert np.isnan(one_group[0].low)
    with pytest.raises(ValueError, match="confidence=2"):
        estimate_measures([0, 1], [0, 1], confidence=2)
    with pytest.raises(ValueError, match="one class only"):
        estimate_measures([1, 1], [0, 1])
    with pytest.raises(ValueError, match="No group has rows of two grades"):
        estimate_measures([0, 1, 2], [0, 1, 2], qid=[0, 1, 2])


def test_the_same_seed_gives_the_same_intervals():
    y, scores, _ = data()
    assert estimate_measures(y, scores, random_state=3) == estimate_measures(
        y, scores, random_state=3
    )


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("graded", [False, True])
def test_with_folds_a_measure_is_the_mean_over_folds(graded, grouped):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 4 if graded else 2, 171)
    group, fold = rng.integers(0, 20, 171), rng.integers(0, 4, 171)
    fold = group % 4 if grouped else fold
    scores = (
        y + rng.normal(size=171) + 10.0 * fold
    )  # models whose scores are on scales of their own
    qid = group if grouped else None
    found = {
        each.name: each
        for each in estimate_measures(y, scores, qid=qid, fold=fold, k=[5, 50], n_resamples=50)
    }
    names = {"NDCG at 5": "ndcg@5", "pairs in order": "wmw"}
    if not graded:
        names = {"AUC": "auc", "average precision": "ap", "positives at the top": "pos_at_top"}
        names |= {"recall at 50": "recall@50"}
    for name, metric in names.items():
        values = []
        for each in range(4):
            rows = fold == each
            scaled = measure_named(metric).for_rows(int(rows.sum()), 171, grouped=grouped)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # groups of one class
                values.append(
                    scaled.function(y[rows], scores[rows], qid=None if qid is None else qid[rows])
                )
        assert_allclose(found[name].value, np.mean(values))
        assert found[name].low <= found[name].value <= found[name].high
        one = estimate_measure(measure_named(metric), y, scores, qid=qid, fold=fold, n_resamples=50)
        assert_allclose(one.value, found[name].value)
        assert one.depth == found[name].depth


def test_the_order_is_all_that_counts_within_a_fold():
    """Models of other penalties have scores of other sizes; intervals, too, are the same."""
    y, scores, group = data()
    plain = estimate_measures(y, scores, fold=group, random_state=0, n_resamples=20)
    other = estimate_measures(
        y, np.exp(scores) * (1 + group) + group, fold=group, random_state=0, n_resamples=20
    )
    assert plain == other


def test_a_part_of_a_list_is_looked_at_as_deep_as_the_list():
    y, scores, _ = data(60)
    found = {
        each.name: each
        for each in estimate_measures(y, scores, k=[10, 100], list_rows=240, n_resamples=5)
    }
    assert_allclose(found["recall at 100"].value, metrics.recall_at_k(y, scores, k=25))
    assert_allclose(found["precision at 10"].value, metrics.precision_at_k(y, scores, k=Depth(2.5)))
    assert found["recall at 100"].title == "recall at 100 of 240 rows (first 41.7 %)"
    assert found["AUC"].title == "AUC"
    own = {each.name: each for each in estimate_measures(y, scores, k=[10, 100], n_resamples=5)}
    assert own["recall at 10"].title == "recall at 10 of 60 rows (first 16.7 %)"
    assert "recall at 100" not in own
