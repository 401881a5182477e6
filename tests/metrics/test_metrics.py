"""Metrics against their plain definitions, against scikit-learn, and under bad input."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import oracles
from forerank import metrics

examples = settings(max_examples=100, deadline=None, derandomize=True)
fewer_examples = settings(max_examples=50, deadline=None, derandomize=True)

FPR_RANGE = (0.2, 0.7)

# The metric, and its oracle on one query (positive, s, w), with the same parameters.
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
COUNTS_ROWS = {"precision_at_k", "recall_at_k"}  # a row of weight 2 takes one place, not two
ALL: dict[str, Callable] = {name: metric for name, (metric, _) in BINARY.items()} | {
    "ndcg": metrics.ndcg
}

weights = st.one_of(st.integers(0, 3).map(float), st.floats(0.125, 4.0))


@st.composite
def graded_rows(
    draw: Any, max_rows: int = 24, max_grade: int = 40, max_queries: int = 3
) -> dict[str, Any]:
    """Rows with many ties, some infinite scores, weights some of which are zero, and queries in any
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
    """The metric is the mean of the oracle over the queries where it is defined, and refuses if
    there is none.
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
        warnings.filterwarnings("ignore", message=".*left out of the mean")
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


def test_left_out_queries_give_one_warning_at_the_callers_line() -> None:
    y, s, qid = [0, 1, 1, 1, 0, 0], [1, 2, 1, 2, 1, 2], ["a", "a", "b", "b", "c", "c"]
    for name, metric in ALL.items():
        n_left_out = 1 if name == "ndcg" else 2
        with pytest.warns(UserWarning, match=f"{n_left_out} of 3 queries left out") as caught:
            metric(y, s, qid=qid)
        assert len(caught) == 1
        assert caught[0].filename == __file__


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


# --- Bad input ---

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
        ({"sample_weight": [1, -1, 1, 1]}, "ranges from -1.0 to 1.0"),
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
            "None of the 1 queries",
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
    with pytest.raises(ValueError, match="None of the 2 queries"):
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


# --- Scorers ---


@pytest.fixture(scope="module")
def classified() -> tuple[np.ndarray, np.ndarray]:
    return make_classification(n_samples=240, n_informative=3, flip_y=0.1, random_state=0)


@pytest.mark.parametrize("name", sorted(metrics.SCORERS))
@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB()])
def test_scorers_score_the_held_out_rows(name: str, estimator: Any, classified: tuple) -> None:
    X, y = classified
    folds = KFold(3)
    scores = cross_val_score(
        estimator, X, y, cv=folds, scoring=metrics.SCORERS[name], error_score="raise"
    )
    metric = getattr(metrics, name)
    params = {"standardize": "mcclish"} if name == "partial_auc" else {}
    sign = -1 if name == "rank_loss" else 1
    for score, (train, test) in zip(scores, folds.split(X), strict=True):
        fitted = estimator.fit(X[train], y[train])
        s = (
            fitted.decision_function(X[test])
            if hasattr(fitted, "decision_function")
            else fitted.predict_proba(X[test])[:, 1]
        )
        same(score, sign * metric(y[test], s, **params))


def test_scorers_select_a_model(classified: tuple) -> None:
    X, y = classified
    scoring = {"top": metrics.SCORERS["pos_at_top"], "loss": metrics.SCORERS["rank_loss"]}
    search = GridSearchCV(
        LogisticRegression(), {"C": [1e-3, 1.0]}, scoring=scoring, refit="loss", cv=3
    ).fit(X, y)
    assert (search.cv_results_["mean_test_loss"] <= 0).all()
    assert search.best_score_ == search.cv_results_["mean_test_loss"].max()


def test_graded_scorers_accept_a_regressor(classified: tuple) -> None:
    X, _ = classified
    y = np.digitize(X[:, 0] + X[:, 1], [-1, 0, 1])
    for name in ("wmw", "ndcg"):
        assert (
            cross_val_score(
                Ridge(), X, y, cv=3, scoring=metrics.SCORERS[name], error_score="raise"
            ).min()
            > 0.9
        )


def test_pos_label_reaches_metric_and_estimator(classified: tuple) -> None:
    X, y = classified
    fitted = LogisticRegression().fit(X, y)
    scorer = metrics.get_scorer("tpr_at_fpr", fpr=0.1, pos_label=0)
    same(scorer(fitted, X, y), metrics.tpr_at_fpr(1 - y, -fitted.decision_function(X), fpr=0.1))


def test_scorers_are_routed_weights_and_queries(classified: tuple) -> None:
    X, y = classified
    rng = np.random.default_rng(0)
    qid, weight = rng.integers(0, 4, y.size), rng.uniform(0.5, 2.0, y.size)
    folds = KFold(2)
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False),
            LogisticRegression().set_fit_request(sample_weight=True),
        )
        scorer = metrics.get_scorer("wmw").set_score_request(sample_weight=True, qid=True)
        params = {"sample_weight": weight, "qid": qid}
        scores = cross_val_score(
            model, X, y, cv=folds, scoring=scorer, params=params, error_score="raise"
        )
        search = GridSearchCV(model, {"logisticregression__C": [1.0]}, scoring=scorer, cv=folds)
        same(search.fit(X, y, **params).best_score_, scores.mean())
        for score, (train, test) in zip(scores, folds.split(X), strict=True):
            s = model.fit(X[train], y[train], sample_weight=weight[train]).decision_function(
                X[test]
            )
            same(score, metrics.roc_auc(y[test], s, sample_weight=weight[test], qid=qid[test]))
    assert not hasattr(metrics.SCORERS["wmw"], "_metadata_request"), (
        "a scorer of one's own leaves the shared one alone"
    )


def test_unknown_scorers_and_parameters_are_named() -> None:
    with pytest.raises(ValueError, match=r"'auc'; choose one of ndcg, .*wmw"):
        metrics.get_scorer("auc")
    with pytest.raises(ValueError, match="does not take depth; it takes k, pos_label"):
        metrics.get_scorer("recall_at_k", depth=3)


def test_public_names_exist() -> None:
    assert len(set(metrics.__all__)) == len(metrics.__all__)
    assert all(hasattr(metrics, name) for name in metrics.__all__)
