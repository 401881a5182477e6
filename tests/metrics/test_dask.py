"""Measures of Dask collections against the same measures in memory."""

import warnings
from functools import partial

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from forerank import metrics
from forerank.metrics import partitioned

N = 2_000
# Partitions: an empty one, of few rows, and of whole groups of twenty.
SIZES = (500, 0, 20, 480, 1_000)

MEASURES = {
    "roc_auc": metrics.roc_auc,
    "rank_loss": metrics.rank_loss,
    "average_precision": metrics.average_precision,
    "partial_auc": partial(metrics.partial_auc, standardize="mcclish"),
    "partial_auc from 0.2": partial(metrics.partial_auc, standardize=False, fpr_range=(0.2, 0.7)),
    "pos_at_top": metrics.pos_at_top,
    "tpr_at_fpr": partial(metrics.tpr_at_fpr, fpr=0.2),
    "precision_at_k": partial(metrics.precision_at_k, k=7),
    "precision_at_k beyond a range": partial(metrics.precision_at_k, k=777),
    "recall_at_k": partial(metrics.recall_at_k, k=100),
    "ndcg": partial(metrics.ndcg, k=5),
}


@pytest.fixture(autouse=True)
def serial():
    with dask.config.set(scheduler="synchronous"):
        yield


def make_rows(seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.uniform(size=N) < 0.2).astype(int)
    scores = np.round(rng.standard_normal(N) + y, 1)  # many ties
    scores[:2] = np.inf, -np.inf
    y[:500] = 0  # a partition of one class
    return y, scores, rng.integers(0, 3, N).astype(float), np.repeat(np.arange(N // 20), 20)


def divided(values):
    return da.from_array(values, chunks=(SIZES,))


def value_and_warnings(measure, *rows, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        value = measure(*rows, **options)
    return value, [(str(each.message), each.filename) for each in caught]


@pytest.mark.parametrize("rows_of_range", [10**6, 300])
@pytest.mark.parametrize(
    ("name", "grouped"),
    [
        (name, grouped)
        for name in MEASURES
        for grouped in (False, True)
        if grouped or name != "ndcg"
    ],
)
def test_equal_to_those_in_memory(name, grouped, rows_of_range, monkeypatch):
    monkeypatch.setattr(partitioned, "_ROWS_OF_RANGE", rows_of_range)
    y, scores, weight, qid = make_rows()
    for options in ({}, {"sample_weight": weight}):
        if grouped:
            options["qid"] = qid
        expected, told = value_and_warnings(MEASURES[name], y, scores, **options)
        given = {key: divided(values) for key, values in options.items()}
        found, told_here = value_and_warnings(MEASURES[name], divided(y), divided(scores), **given)
        assert found == pytest.approx(expected, abs=1e-14)
        assert told_here == told


def test_series_labels_in_memory_and_words():
    y, scores, *_ = make_rows(1)
    expected = metrics.average_precision(y, scores)
    assert metrics.average_precision(y, divided(scores)) == pytest.approx(expected, abs=1e-14)
    frame = pd.DataFrame({"y": np.where(y == 1, "b", "a"), "score": scores})
    parts = dd.from_pandas(frame, npartitions=3)
    found = metrics.average_precision(parts["y"], parts["score"])
    assert found == pytest.approx(expected, abs=1e-14)
    found = metrics.roc_auc(parts["y"], -parts["score"], pos_label="a")
    assert found == pytest.approx(metrics.roc_auc(y, scores), abs=1e-14)


def test_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(partitioned, "_ROWS_OF_RANGE", 300)
    y, scores, weight, _ = make_rows(2)
    found = set()
    for workers in (1, 2, 4):
        with dask.config.set(scheduler="threads", num_workers=workers):
            rows = divided(y), divided(scores)
            found.add(metrics.average_precision(*rows, sample_weight=divided(weight)))
    assert len(found) == 1


Y_, S_, W_, Q_ = make_rows(3)


@pytest.mark.parametrize(
    ("y", "scores", "options", "message"),
    [
        (Y_, np.where(S_ > 1, np.nan, S_), {}, "partition 0 of 5: y_score has missing values"),
        (Y_ + (S_ > 2), S_, {}, "y_true holds 3 labels"),
        (np.ones(N), S_, {}, "y_true holds one class only"),
        (Y_, S_, {"sample_weight": 0.0 * W_}, "zero for every row"),
        (Y_, S_, {"sample_weight": W_ * Y_}, "needs rows of both classes with positive weight"),
        (Y_, S_, {"sample_weight": W_ - 1.0}, "must be finite and not negative"),
        (Y_, S_, {"qid": Q_ // 2 * 0}, "groups of qid have rows in several partitions"),
        (Y_, S_, {"qid": np.arange(N)}, "None of the 2000 groups has rows of both classes"),
    ],
)
def test_rows_without_a_value(y, scores, options, message):
    given = {key: divided(values) for key, values in options.items()}
    with pytest.raises(ValueError, match=message):
        metrics.roc_auc(divided(y), divided(scores), **given)


def test_other_measures_say_what_to_do():
    rows = divided(Y_), divided(S_)
    for measure in (metrics.wmw, metrics.work_saved, metrics.auc_interval):
        with pytest.raises(TypeError, match=r"does not take Dask .*Call y_true.compute\(\) first"):
            measure(*rows)
    with pytest.raises(ValueError, match="ndcg of Dask collections needs groups: give qid"):
        metrics.ndcg(*rows)
    with pytest.raises(ValueError, match="y_true has 1,999 values for 2,000 rows"):
        metrics.roc_auc(Y_[1:], rows[1])
