"""Metrics against their plain definitions, against scikit-learn, and under bad input."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

import metric_cases
import oracles
from forerank import metrics
from metric_cases import (
    ALL,
    BINARY,
    COUNTS_ROWS,
    check_against,
    examples,
    fewer_examples,
    graded_rows,
    same,
    tied_data,
)

# --- Plain definitions ---


@pytest.mark.parametrize("name", BINARY)
@examples
@given(data=st.data())
def test_binary_metrics_equal_their_definitions(name: str, data: Any) -> None:
    # Definitions over all orders of the rows are factorial, hence the few rows there.
    rows = data.draw(graded_rows(max_grade=1, max_rows=6 if name in COUNTS_ROWS else 14))
    metric, oracle = BINARY[name]
    check_against(oracle, metric, rows, defined=lambda y: len(set(y)) == 2)


@examples
@given(rows=graded_rows(), ties=st.sampled_from([0.0, 0.5, 1.0, 0.25]))
def test_wmw_of_grades_equals_its_definition(rows: dict[str, Any], ties: float) -> None:
    check_against(
        lambda y, s, w: oracles.wmw(y, s, w, lambda a, b: a > b, ties),
        lambda *a, **k: metrics.wmw(*a, ties=ties, **k),
        rows,
        defined=lambda y: len(set(y)) > 1,
    )


@examples
@given(
    rows=graded_rows(max_grade=4),
    edges=st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1),
)
def test_wmw_of_a_graph_equals_its_definition(
    rows: dict[str, Any], edges: set[tuple[int, int]]
) -> None:
    # Edges that all fall along one fixed order of the classes (0, 2, 4, 1, 3) cannot close a cycle.
    edges = {
        (a, b) for a, b in edges if a != b and (a % 2, a) > (b % 2, b) and {a, b} <= set(rows["y"])
    }
    if not edges:
        return
    check_against(
        lambda y, s, w: oracles.wmw(y, s, w, lambda a, b: (a, b) in edges),
        lambda *a, **k: metrics.wmw(*a, graph=edges, **k),
        rows,
        defined=lambda y: any((a, b) in edges for a in y for b in y),
    )


@examples
@given(
    rows=graded_rows(max_grade=3, max_rows=6),
    k=st.sampled_from([None, 1, 3, 50]),
    gain=st.sampled_from(["linear", "exponential"]),
)
def test_ndcg_equals_its_definition(rows: dict[str, Any], k: int | None, gain: Any) -> None:
    def worth(y: list[int], w: list[float]) -> list[float]:
        return [wi * (yi if gain == "linear" else 2**yi - 1) for yi, wi in zip(y, w, strict=True)]

    check_against(
        lambda y, s, w: oracles.ndcg(worth(y, w), s, k),
        lambda *a, **kw: metrics.ndcg(*a, k=k, gain=gain, **kw),
        rows,
        defined=any,
    )


@examples
@given(rows=graded_rows(max_grade=1), bounds=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_partial_auc_on_any_range(rows: dict[str, Any], bounds: tuple[float, float]) -> None:
    low, high = sorted(bounds)
    if high - low < 1e-3:
        return
    check_against(
        lambda *r: oracles.partial_auc(*r, low, high),
        lambda *a, **k: metrics.partial_auc(*a, fpr_range=(low, high), standardize=False, **k),
        rows,
        defined=lambda y: len(set(y)) == 2,
    )


def test_partial_auc_scales() -> None:
    y, perfect, worst = [0, 0, 1, 1], [1, 2, 3, 4], [4, 3, 2, 1]
    low, high = 0.25, 0.75
    area = {
        name: metrics.partial_auc(y, perfect, fpr_range=(low, high), standardize=name)
        for name in ("mcclish", "range")
    }
    assert area == {"mcclish": 1.0, "range": 1.0}
    assert metrics.partial_auc(y, perfect, fpr_range=(low, high), standardize=False) == 0.5
    assert metrics.partial_auc(y, worst, fpr_range=(low, high), standardize="range") == 0.0
    same(metrics.partial_auc(y, [0, 0, 0, 0], fpr_range=(low, high), standardize="mcclish"), 0.5)
    y, s, w = tied_data(3)
    whole = metrics.partial_auc(y, s, fpr_range=(0, 1), standardize="mcclish", sample_weight=w)
    same(whole, metrics.roc_auc(y, s, sample_weight=w))


def test_wmw_with_thousands_of_grades() -> None:
    rng = np.random.default_rng(0)
    y, s = rng.permutation(3000), np.round(rng.normal(size=3000), 2)
    ahead = np.sign(s[:, None] - s[None, :])
    preferred = y[:, None] > y[None, :]
    same(metrics.wmw(y, s), ((ahead + 1) / 2)[preferred].mean())
    assert metrics.wmw(y, y) == 1.0
    assert metrics.wmw(y, -y) == 0.0
    assert metrics.wmw(y, np.zeros(3000), ties=1.0) == 1.0


def test_tpr_at_fpr_takes_a_rate_met_exactly() -> None:
    y = np.r_[np.zeros(100), np.ones(100)]
    s = np.r_[np.arange(100), np.arange(100) + 0.5]  # they alternate, a positive first
    for weight in (None, np.full(200, 0.1), np.full(200, 7.3)):
        assert metrics.tpr_at_fpr(y, s, fpr=0.29, sample_weight=weight) == pytest.approx(0.3)
    same(metrics.tpr_at_fpr(y, s, fpr=0.0), metrics.pos_at_top(y, s))
    assert metrics.tpr_at_fpr(y, s, fpr=1.0) == 1.0


# --- scikit-learn ---


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_sklearn(seed: int, weighted: bool) -> None:
    y, s, w = tied_data(seed)
    kw = {"sample_weight": w} if weighted else {}
    same(metrics.roc_auc(y, s, **kw), roc_auc_score(y, s, **kw))
    same(metrics.average_precision(y, s, **kw), average_precision_score(y, s, **kw))
    for max_fpr in (0.01, 0.1, 0.5, 1.0):
        ours = metrics.partial_auc(y, s, fpr_range=(0, max_fpr), standardize="mcclish", **kw)
        same(ours, roc_auc_score(y, s, max_fpr=max_fpr, **kw))


@pytest.mark.parametrize("k", [None, 1, 7, 1000])
def test_ndcg_agrees_with_sklearn_on_each_query(k: int | None) -> None:
    y, s, _ = tied_data(5, n=400, classes=4)
    same(metrics.ndcg(y, s, k=k), ndcg_score([y], [s], k=k))
    qid = np.arange(400) % 20
    by_query = ndcg_score(y.reshape(20, 20).T, s.reshape(20, 20).T, k=k)
    same(metrics.ndcg(y, s, k=k, qid=qid), by_query)
    exponential = ndcg_score([2.0**y - 1], [s], k=k)
    same(metrics.ndcg(y, s, k=k, gain="exponential"), exponential)


# --- Invariances ---


@pytest.mark.parametrize("name", ALL)
@fewer_examples
@given(rows=graded_rows(max_grade=1), seed=st.integers(0, 99))
def test_rows_may_come_in_any_order_and_scores_on_any_scale(
    name: str, rows: dict[str, Any], seed: int
) -> None:
    y, s, w = np.array(rows["y"]), np.array(rows["s"]), np.array(rows["w"])
    if len(set(y[w > 0])) < 2:
        return
    value = ALL[name](y, s, sample_weight=w)
    order = np.random.default_rng(seed).permutation(y.size)
    same(ALL[name](y[order], s[order], sample_weight=w[order]), value)
    for transformed in (
        s + 17.0,
        0.25 * s,
        np.tanh(s),
        s.astype(np.float32),
        np.clip(s, -4, 4).astype(np.int8),
    ):
        same(ALL[name](y, transformed, sample_weight=w), value)
    same(ALL[name](y, s, sample_weight=w * 1e200), value)
    same(ALL[name](y, s, sample_weight=w * 1e-200), value)


@pytest.mark.parametrize("name", ALL)
@fewer_examples
@given(rows=graded_rows(max_grade=1))
def test_weight_zero_is_absence_and_whole_weights_are_repetition(
    name: str, rows: dict[str, Any]
) -> None:
    y, s, w = np.array(rows["y"]), np.array(rows["s"]), np.ceil(rows["w"]).astype(int)
    if len(set(y[w > 0])) < 2:
        return
    value = ALL[name](y, s, sample_weight=w)
    kept = w > 0
    same(ALL[name](y[kept], s[kept], sample_weight=w[kept]), value)
    if name not in COUNTS_ROWS | {"ndcg"}:
        same(ALL[name](np.repeat(y, w), np.repeat(s, w)), value)


@pytest.mark.parametrize("name", ALL)
def test_queries_are_any_labels_in_any_order(name: str) -> None:
    y, s, w = tied_data(11)
    number = np.random.default_rng(0).integers(0, 9, y.size)
    same(ALL[name](y, s, sample_weight=w, qid=np.zeros(y.size)), ALL[name](y, s, sample_weight=w))
    expected = np.mean(
        [ALL[name](y[number == q], s[number == q], sample_weight=w[number == q]) for q in range(9)]
    )
    labels = ["a", "b", ("c", 1), 3, 4.5, frozenset("e"), 6, "7", b"8"]
    for qid in (
        number,
        number * 2**40,
        np.uint64(2**64 - 40) + number.astype(np.uint64),
        -number.astype(float),
        number.astype(str),
        [labels[q] for q in number],
        number.astype(object),
    ):
        same(ALL[name](y, s, sample_weight=w, qid=qid), expected)


def test_frames_and_series_are_accepted() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    y, s, w = tied_data(2)
    qid = np.arange(y.size) % 7
    expected = metrics.roc_auc(y, s, sample_weight=w, qid=qid)
    for series in (pd.Series, pl.Series):
        same(
            metrics.roc_auc(
                series(y), series(s), sample_weight=series(w), qid=series(qid.astype(str))
            ),
            expected,
        )


def test_rounding_of_one_query_does_not_reach_the_next() -> None:
    y = np.r_[np.zeros(50), np.ones(50), 1, 0]
    s = np.r_[np.arange(100), 2, 1]
    weight = np.r_[np.full(100, 1e12 / 3), 1e-6, 1e-6]
    assert metrics.pos_at_top(y, s, sample_weight=weight, qid=np.r_[np.zeros(100), 1, 1]) == 1.0


@pytest.mark.parametrize("name", ALL)
def test_each_query_may_have_weights_on_its_own_scale(name: str) -> None:
    y, s, w = tied_data(6)
    qid = np.arange(y.size) % 3
    value = ALL[name](y, s, sample_weight=w, qid=qid)
    same(ALL[name](y, s, sample_weight=w * np.array([1.0, 1e-250, 1e250])[qid], qid=qid), value)


def test_large_integer_scores_are_not_rounded() -> None:
    big = 2**60
    assert metrics.roc_auc([0, 1], np.array([big, big + 1])) == 1.0
    assert metrics.roc_auc([0, 1], np.array([big + 1, big], dtype=np.uint64)) == 0.0


def test_infinite_scores_order_the_rows() -> None:
    assert metrics.roc_auc([0, 0, 1, 1], [-np.inf, 0, np.inf, np.inf]) == 1.0
    assert metrics.roc_auc([0, 1], [np.inf, np.inf]) == 0.5


@pytest.mark.parametrize("spread", ["heavy", "tied", "huge", "tiny", "infinite", "float32"])
def test_many_rows_on_any_scale(spread: str) -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 6000)
    s = rng.normal(size=y.size) + y
    changed = {
        "heavy": np.sinh(9 * s),
        "tied": np.where(s > 1, np.round(s), 0.0),
        "huge": 1e308 * np.tanh(s),
        "tiny": 1e-308 * s,
        "infinite": np.where(np.abs(s) > 1, np.copysign(np.inf, s), s),
        "float32": s.astype(np.float32),
    }[spread]
    same(metrics.roc_auc(y, changed), roc_auc_score(y, np.unique(changed, return_inverse=True)[1]))
    assert metrics.roc_auc(y, np.full(y.size, np.inf)) == 0.5


@pytest.mark.parametrize("labels", [(0, 1), (-1, 1), (False, True), ("bad", "good"), (2.5, 7.0)])
def test_the_larger_label_is_positive_unless_told_otherwise(labels: tuple) -> None:
    y01, s, _ = tied_data(8)
    value = metrics.roc_auc(y01, s)
    y = np.array(labels)[y01]
    same(metrics.roc_auc(y, s), value)
    same(metrics.roc_auc(y.astype(object), s), value)
    same(metrics.roc_auc(y, s, pos_label=labels[1]), value)
    same(metrics.roc_auc(y, s, pos_label=labels[0]), 1 - value)


def test_excluded_groups_give_one_warning_at_the_callers_line() -> None:
    y, s, qid = [0, 1, 1, 1, 0, 0], [1, 2, 1, 2, 1, 2], ["a", "a", "b", "b", "c", "c"]
    for name, metric in ALL.items():
        n_excluded = 1 if name == "ndcg" else 2
        with pytest.warns(UserWarning, match=f"{n_excluded} of 3 groups excluded") as caught:
            metric(y, s, qid=qid)
        assert len(caught) == 1
        # Lambdas of measures with parameters are in metric_cases.
        assert caught[0].filename in (__file__, metric_cases.__file__)


# --- Intervals ---


@examples
@given(rows=graded_rows(max_grade=1))
def test_delong_equals_the_structural_components(rows: dict[str, Any]) -> None:
    y, s = rows["y"], rows["s"]
    if min(sum(y), len(y) - sum(y)) < 2 or metrics.roc_auc(y, s) in (0.0, 1.0):
        return
    interval = metrics.auc_interval(y, s, confidence=0.9)
    auc = oracles.roc_auc(y, s, [1.0] * len(y))
    se = np.sqrt(oracles.delong_variance(y, s)) / (auc * (1 - auc))
    bounds = np.log(auc / (1 - auc)) + norm.ppf([0.05, 0.95]) * se
    np.testing.assert_allclose(
        [interval.low, interval.high], 1 / (1 + np.exp(-bounds)), rtol=1e-9, atol=1e-12
    )
    same(interval.estimate, auc)


@pytest.mark.parametrize(
    ("method", "repeats", "least"), [("delong", 400, 0.92), ("bootstrap", 150, 0.89)]
)
def test_intervals_cover_the_true_auc(method: Any, repeats: int, least: float) -> None:
    rng = np.random.default_rng(0)
    shift, y = 1.0, np.repeat([0, 1], [60, 40])
    truth = norm.cdf(shift / np.sqrt(2))
    covered = 0
    for _ in range(repeats):
        interval = metrics.auc_interval(
            y, rng.normal(size=100) + shift * y, method=method, n_resamples=300, random_state=rng
        )
        covered += interval.low <= truth <= interval.high
    assert least <= covered / repeats <= 0.985


def test_bootstrap_agrees_with_delong_and_is_reproducible() -> None:
    y, s, w = tied_data(4, n=800)
    delong = metrics.auc_interval(y, s)
    first = metrics.auc_interval(y, s, method="bootstrap", random_state=7)
    assert first == metrics.auc_interval(y, s, method="bootstrap", random_state=7)
    assert first == metrics.auc_interval(
        y, s, method="bootstrap", random_state=np.random.RandomState(7)
    )
    assert first != metrics.auc_interval(y, s, method="bootstrap", random_state=8)
    np.testing.assert_allclose([first.low, first.high], [delong.low, delong.high], atol=0.006)
    weighted = metrics.auc_interval(
        y, s, method="bootstrap", sample_weight=w, random_state=np.random.default_rng(0)
    )
    same(weighted.estimate, metrics.roc_auc(y, s, sample_weight=w))
    assert weighted.low < weighted.estimate < weighted.high
    # Equal weights of any size change nothing but the scale.
    scaled = metrics.auc_interval(
        y, s, method="bootstrap", sample_weight=np.full(800, 4.0), random_state=7
    )
    same(scaled.low, first.low)


@pytest.mark.parametrize("method", ["delong", "bootstrap"])
def test_a_perfect_ranking_has_no_interval(method: Any) -> None:
    with pytest.warns(UserWarning, match="single point"):
        interval = metrics.auc_interval([0, 0, 1, 1], [1, 2, 3, 4], method=method)
    assert (interval.low, interval.high) == (1.0, 1.0)


def test_public_names_exist() -> None:
    assert len(set(metrics.__all__)) == len(metrics.__all__)
    assert all(hasattr(metrics, name) for name in metrics.__all__)
