"""Measures as evaluation functions of LightGBM and XGBoost."""

from collections.abc import Callable
from typing import Any

import numpy as np

from forerank._typing import Vector
from forerank.metrics.registry import get_measure

__all__ = ["for_lightgbm", "for_xgboost"]


def for_lightgbm(metric: str) -> Callable[[Vector, Any], tuple[str, float, bool]]:
    """A measure for LightGBM: ``lightgbm.train(params, data, feval=for_lightgbm("ap"), ...)``.

    Labels, weights and groups are those of the LightGBM data set. The result has the key of the
    measure, its value, and True, since higher is better.
    """
    function = get_measure(metric).function

    def evaluate(scores: Vector, data: Any) -> tuple[str, float, bool]:
        sizes = data.get_group()
        qid = None if sizes is None else np.repeat(np.arange(len(sizes)), sizes)
        weight = data.get_weight()
        value = function(data.get_label(), scores, sample_weight=weight, qid=qid)
        return metric, float(value), True

    return evaluate


def for_xgboost(metric: str) -> Callable[[Vector, Any], tuple[str, float]]:
    """A measure for XGBoost: ``xgboost.train(params, data, custom_metric=for_xgboost("ap"), ...)``.

    Labels, weights and groups are those of the DMatrix. Set ``maximize=True`` for early stopping.
    """
    function = get_measure(metric).function

    def evaluate(scores: Vector, data: Any) -> tuple[str, float]:
        bounds = np.asarray(data.get_uint_info("group_ptr"), dtype=np.int64)
        qid = np.repeat(np.arange(bounds.size - 1), np.diff(bounds)) if bounds.size > 2 else None
        weight = data.get_weight()
        weight = weight if weight.size else None
        if qid is not None and weight is not None:  # XGBoost has a weight for each group
            weight = weight[qid]
        return metric, float(function(data.get_label(), scores, sample_weight=weight, qid=qid))

    return evaluate
