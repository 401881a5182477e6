"""Measures with their oracles, and random rows, for the tests of the measures."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

import oracles
from forerank import metrics

examples = settings(max_examples=100)
fewer_examples = settings(max_examples=50)

FPR_RANGE = (0.2, 0.7)

# The measure, and its oracle on one group (positive, s, w), with the same parameters.
BINARY: dict[str, tuple[Callable, Callable]] = {
    "roc_auc": (metrics.roc_auc, oracles.roc_auc),
    "rank_loss": (metrics.rank_loss, lambda *rows: 1 - oracles.roc_auc(*rows)),
    "wmw": (metrics.wmw, oracles.roc_auc),
    "partial_auc": (
        lambda *a, **k: metrics.partial_auc(*a, fpr_range=FPR_RANGE, standardize=False, **k),
        lambda *rows: oracles.partial_auc(*rows, *FPR_RANGE),
    ),
    "average_precision": (metrics.average_precision, oracles.average_precision),
    "pos_at_top": (metrics.pos_at_top, oracles.pos_at_top),
    "tpr_at_fpr": (
        lambda *a, **k: metrics.tpr_at_fpr(*a, fpr=0.34, **k),
        lambda *rows: oracles.tpr_at_fpr(*rows, 0.34),
    ),
    "work_saved": (
        lambda *a, **k: metrics.work_saved(*a, recall=0.6, **k),
        lambda *rows: oracles.work_saved(*rows, 0.6),
    ),
    "precision_at_k": (
        lambda *a, **k: metrics.precision_at_k(*a, k=2, **k),
        lambda *rows: oracles.precision_at_k(*rows, 2),
    ),
    "recall_at_k": (
        lambda *a, **k: metrics.recall_at_k(*a, k=2, **k),
        lambda *rows: oracles.recall_at_k(*rows, 2),
    ),
}
COUNTS_ROWS = {"precision_at_k", "recall_at_k"}  # a row of weight 2 counts as one row
ALL: dict[str, Callable] = {name: metric for name, (metric, _) in BINARY.items()} | {
    "ndcg": metrics.ndcg
}

weights = st.one_of(st.integers(0, 3).map(float), st.floats(0.125, 4.0))


@st.composite
def graded_rows(
    draw: Any, max_rows: int = 24, max_grade: int = 40, max_queries: int = 3
) -> dict[str, Any]:
    """Rows with many ties, some infinite scores, weights some of which are zero, and groups in any
    order.
    """
    n = draw(st.integers(1, max_rows))
    column = lambda values: draw(st.lists(values, min_size=n, max_size=n))  # noqa: E731
    scores = st.one_of(st.integers(-3, 3).map(float), st.sampled_from([-np.inf, np.inf]))
    return {
        "y": column(st.integers(0, draw(st.integers(1, max_grade)))),
        "s": column(scores),
        "w": column(weights) if draw(st.booleans()) else [1.0] * n,
        "q": column(st.integers(1, max_queries)) if draw(st.booleans()) else None,
    }


def check_against(
    oracle: Callable, metric: Callable, rows: dict[str, Any], defined: Callable
) -> None:
    """The measure is the mean of the oracle over the groups where it is defined; an error if there
    is none.
    """
    y, s, w, q = rows["y"], rows["s"], rows["w"], rows["q"]
    present = [i for i in range(len(y)) if w[i] > 0]
    values = []
    for query in {None if q is None else q[i] for i in present}:
        mine = [i for i in present if q is None or q[i] == query]
        group = [[column[i] for i in mine] for column in (y, s, w)]
        if defined(group[0]):
            values.append(oracle(*group))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*excluded from the mean")
        if values:
            assert metric(y, s, sample_weight=w, qid=q) == pytest.approx(
                np.mean(values), rel=1e-12, abs=1e-12
            )
        else:
            with pytest.raises(ValueError):
                metric(y, s, sample_weight=w, qid=q)


def same(first: float, second: float) -> None:
    assert first == pytest.approx(second, rel=1e-12, abs=1e-12)


def tied_data(
    seed: int, n: int = 300, classes: int = 2
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return y, np.round(rng.normal(size=n) + 0.5 * y, 1), rng.uniform(0.1, 3.0, n)
