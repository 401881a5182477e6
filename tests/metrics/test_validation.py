"""Errors of the measures about rows and parameters."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from forerank import metrics
from metric_cases import ALL, BINARY

GOOD = {"y_true": [0, 1, 0, 1], "y_score": [0.1, 0.2, 0.3, 0.4]}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_score": [0.1, 0.2]}, "y_score has 2 values but y_true has 4"),
        ({"y_score": [[0.1, 0.9]] * 4}, r"predict_proba\(X\)\[:, 1\]"),
        ({"y_score": [0.1, np.nan, 0.3, np.nan]}, "y_score is NaN in 2 of 4 rows"),
        ({"y_score": [0.1, None, "a", 0.3]}, "real numbers are expected"),
        ({"y_score": ["a", "b", "c", "d"]}, "real numbers are expected"),
        ({"y_score": [1j, 2j, 3j, 4j]}, "real numbers are expected"),
        ({"y_true": [], "y_score": []}, "y_true is empty"),
        ({"y_true": [[0, 1], [0, 1]]}, r"y_true has shape \(2, 2\)"),
        ({"y_true": [0, 1, np.nan, 1]}, "nan|NaN"),
        ({"y_true": [0, 1, "a", None]}, "y_true"),
        ({"y_true": [0, 0, 0, 0]}, "one class only|undefined here"),
        ({"sample_weight": [1, 1]}, "sample_weight has 2 values"),
        ({"sample_weight": [1, -1, 1, 1]}, "row 1 has -1.0"),
        ({"sample_weight": [1, np.inf, 1, 1]}, "finite"),
        ({"sample_weight": [1, np.nan, 1, 1]}, "sample_weight is NaN"),
        ({"sample_weight": [0, 0, 0, 0]}, "zero for every row"),
        ({"sample_weight": [1, 0, 1, 0]}, "sample_weight"),
        ({"qid": [1, 2]}, "qid has 2 values"),
        ({"qid": np.array([1, 2])}, "qid has 2 values"),
        ({"qid": [1, None, 2, 2]}, "missing values"),
        ({"qid": [1, float("nan"), 2, 2]}, "missing values"),
        ({"qid": np.array([1, np.nan, 2, 2])}, "qid is NaN"),
        (
            {"y_true": [0, 0, 1, 1], "qid": [1, 1, 2, 2], "sample_weight": [1, 1, 0, 0]},
            "None of the 1 groups",
        ),
    ],
)
def test_bad_rows_are_refused_by_every_metric(
    name: str, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ALL[name](**GOOD | change)


@pytest.mark.parametrize("name", sorted(set(BINARY) - {"wmw"}))
def test_binary_metrics_refuse_other_labels(name: str) -> None:
    metric = BINARY[name][0]
    with pytest.raises(ValueError, match=r"holds 3 labels \(0, 1, 2\); .*wmw and ndcg take grades"):
        metric([0, 1, 2, 1], GOOD["y_score"])
    with pytest.raises(ValueError, match=r"holds 3 labels \('a', 'b', 'c'\)"):
        metric(["a", "b", "c", "a"], GOOD["y_score"])
    with pytest.raises(ValueError, match="pos_label=5 is not a label"):
        metric(**GOOD, pos_label=5)
    with pytest.raises(ValueError, match="None of the 2 groups"):
        metric(**GOOD, qid=["u", "v", "u", "v"])


@pytest.mark.parametrize(
    ("metric", "params", "message"),
    [
        (metrics.precision_at_k, {"k": 0}, "k=0"),
        (metrics.recall_at_k, {"k": -3}, "k=-3"),
        (metrics.recall_at_k, {"k": 2.0}, "k=2.0"),
        (metrics.ndcg, {"k": True}, "k=True"),
        (metrics.ndcg, {"gain": "cubic"}, "choose 'linear' or 'exponential'"),
        (metrics.ndcg, {"y_true": [0, -1, 2, 1]}, "holds -1.0 in row 1"),
        (metrics.ndcg, {"y_true": [0, 1, 2, 5000], "gain": "exponential"}, "holds 5000.0 in row 3"),
        (metrics.ndcg, {"y_true": ["a", "b", "a", "b"]}, "numeric grades"),
        (metrics.tpr_at_fpr, {"fpr": 1.5}, "fpr=1.5"),
        (metrics.tpr_at_fpr, {"fpr": np.nan}, "fpr=nan"),
        (metrics.work_saved, {"recall": 95}, "recall=95"),
        (metrics.partial_auc, {"standardize": True}, "standardize=True"),
        (metrics.partial_auc, {"standardize": False, "fpr_range": (0.5, 0.5)}, "low < high"),
        (metrics.partial_auc, {"standardize": False, "fpr_range": (0, 1.1)}, "low < high"),
        (metrics.wmw, {"ties": 2}, "ties=2"),
        (metrics.wmw, {"graph": "ladder"}, "got 'ladder'"),
        (metrics.wmw, {"graph": []}, "no edges"),
        (metrics.wmw, {"graph": [(1, 0), (7, 0)]}, r"\(7, 0\)"),
        (metrics.wmw, {"graph": [(1, 0), (1, 1)]}, r"\(1, 1\)"),
        (metrics.wmw, {"graph": [(1, 0), (0, 1)]}, r"\(1, 0\), \(0, 1\)"),
        (metrics.auc_interval, {"confidence": 1.0}, "confidence=1.0"),
        (metrics.auc_interval, {"method": "exact"}, "method='exact'"),
        (metrics.auc_interval, {"sample_weight": [1, 2, 1, 1]}, "use method='bootstrap'"),
        (metrics.auc_interval, {"method": "bootstrap", "n_resamples": 0}, "n_resamples=0"),
        (metrics.auc_interval, {"y_true": [0, 0, 1, 0]}, "1 positive and 3 negative"),
    ],
)
def test_bad_parameters_are_refused(metric: Callable, params: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        metric(**GOOD | params)


def test_partial_auc_wants_its_scale_named() -> None:
    with pytest.raises(TypeError, match="standardize"):
        metrics.partial_auc(**GOOD)
