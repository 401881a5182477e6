"""Strategies, posterior, stopping rules, the labelling loop and simulations."""

import json
import os
import signal
import subprocess
import sys
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import spearmanr, ttest_rel
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from forerank import PairwiseRanker, PointwiseRanker, RankBoost, TopPush, metrics
from forerank.active import (
    Budget,
    Diverse,
    Entropy,
    Greedy,
    IrrelevantInARow,
    LabellingLoop,
    LossMin,
    PoolRanker,
    Random,
    RankingStable,
    Reading,
    RecallBound,
    Simulation,
    StrategyComparison,
    Uncertain,
    compare_strategies,
    paired_t,
    rank_threshold,
    relevance_posterior,
    simulate,
)
from forerank.data import datasets

ALL = [LossMin(), LossMin(0.3), Entropy(), Uncertain(), Diverse(), Random(), Greedy()]
DETERMINISTIC = [s for s in ALL if not isinstance(s, Random)]


# --- Definitions, one row at a time ---


def slow_posterior(scores):
    """Threshold rank and P(+1) of one group, after donmez2009, Figure 2."""
    ascending = sorted(scores)
    i = 1
    for k in range(1, len(ascending)):
        if ascending[k] - ascending[k - 1] > ascending[i] - ascending[i - 1]:
            i = k
    f_theta = ascending[i - 1]
    scale = np.std(scores) * np.sqrt(3) / np.pi or 1.0
    return i, [1 / (1 + np.exp(-(f - f_theta) / scale)) for f in scores]


def slow_rank(scores, k):
    """Rank 1 is the lowest score; equal scores share the mean of their ranks."""
    return sum(s < scores[k] for s in scores) + (sum(s == scores[k] for s in scores) + 1) / 2


def slow_loss_min(scores, trade_off):
    """donmez2009, eq. 7."""
    i, p = slow_posterior(scores)
    theta, r_max = i + 0.5, len(scores)
    out = []
    for k in range(len(scores)):
        r = slow_rank(scores, k)
        below = max(0.5 - (r - theta), 0) / abs(1 - theta) * (1 - trade_off)
        above = max(0.5 + (r - theta), 0) / abs(r_max - theta) * trade_off
        out.append(p[k] * below + (1 - p[k]) * above)
    return out


def slow_entropy(scores):
    _, p = slow_posterior(scores)
    n = len(scores)
    out = []
    for k in range(n):
        wrong = 0.0
        for j in range(n):
            if j == k:
                continue
            if scores[j] > scores[k]:
                wrong += p[k] * (1 - p[j])
            elif scores[j] < scores[k]:
                wrong += (1 - p[k]) * p[j]
            else:
                wrong += 0.5 * (p[k] * (1 - p[j]) + (1 - p[k]) * p[j])
        out.append(wrong / max(n - 1, 1))
    return out


def slow_uncertain(scores):
    others = [[abs(s - t) for j, t in enumerate(scores) if j != k] for k, s in enumerate(scores)]
    return [-min(gaps) if gaps else -np.inf for gaps in others]


def slow_diverse(scores, others):
    n = len(scores)
    return [
        np.mean([abs(slow_rank(scores, k) - slow_rank(other, k)) for other in others]) / n
        for k in range(n)
    ]


@st.composite
def pools(draw):
    """Scores with ties, groups, and what is labelled."""
    n = draw(st.integers(1, 25))
    values = st.one_of(st.integers(-3, 3).map(float), st.floats(-5, 5).map(lambda s: round(s, 6)))
    scores = draw(st.lists(values, min_size=n, max_size=n))
    groups = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=n, max_size=n))
    labelled = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return np.array(scores), np.array(groups), np.array(labelled)


def chosen_by_group(strategy, scores, groups, labelled, n=1000, **options):
    rows, utility = strategy.choose(
        scores, labelled, groups=groups, n=n, return_utility=True, **options
    )
    return {g: (rows[groups[rows] == g], utility[groups[rows] == g]) for g in np.unique(groups)}


@settings(max_examples=150, deadline=None)
@given(pools())
def test_utilities_equal_their_definitions(pool):
    scores, groups, labelled = pool
    other = np.random.default_rng(0).permutation(scores)
    cases = [
        (LossMin(0.6), scores, lambda s, o: slow_loss_min(s, 0.6)),
        (LossMin(0.25), scores, lambda s, o: slow_loss_min(s, 0.25)),
        (Entropy(), scores, lambda s, o: slow_entropy(s)),
        (Uncertain(), scores, lambda s, o: slow_uncertain(s)),
        (Greedy(), scores, lambda s, o: list(s)),
        (Diverse(), np.array([scores, other]), lambda s, o: slow_diverse(s, [o])),
    ]
    for strategy, given_scores, definition in cases:
        found = chosen_by_group(strategy, given_scores, groups, labelled)
        for g, (rows, utility) in found.items():
            open_rows = np.flatnonzero((groups == g) & ~labelled)
            if not open_rows.size:
                assert not rows.size
                continue
            expected = definition(scores[open_rows].tolist(), other[open_rows].tolist())
            assert sorted(rows) == open_rows.tolist()
            assert_allclose(
                utility, np.array(expected)[np.searchsorted(open_rows, rows)], rtol=1e-9, atol=1e-12
            )
            assert np.all(np.diff(utility) <= 0.0)


def given_scores(strategy, scores, rng):
    """The scores as the strategy takes them."""
    return (
        np.array([scores, scores[::-1], rng.permutation(scores)])
        if isinstance(strategy, Diverse)
        else scores
    )


@pytest.mark.parametrize("strategy", ALL, ids=repr)
def test_strategies_leave_labelled_rows_alone_and_respect_groups(strategy):
    rng = np.random.default_rng(0)
    scores, groups = rng.normal(size=300), rng.integers(0, 7, 300)
    labelled = rng.uniform(size=300) < 0.9
    labelled[groups == 3] = True  # a group that is done
    taken = given_scores(strategy, scores, rng)
    rows = strategy.choose(taken, labelled, groups=groups, n=3, random_state=1)
    assert not labelled[rows].any()
    assert np.unique(rows).size == rows.size
    left = np.bincount(groups[~labelled], minlength=7)
    assert_array_equal(np.bincount(groups[rows], minlength=7), np.minimum(left, 3))
    assert_array_equal(
        rows, strategy.choose(taken, np.flatnonzero(labelled), groups=groups, n=3, random_state=1)
    )
    assert strategy.choose(taken, np.ones(300, dtype=bool)).size == 0


@pytest.mark.parametrize("strategy", DETERMINISTIC, ids=repr)
def test_strategies_do_not_depend_on_the_order_of_rows(strategy):
    rng = np.random.default_rng(1)
    scores, groups, labelled = (
        rng.normal(size=200),
        rng.integers(0, 5, 200),
        rng.uniform(size=200) < 0.3,
    )
    taken = np.atleast_2d(given_scores(strategy, scores, rng))
    order = rng.permutation(200)
    first = strategy.choose(np.squeeze(taken), labelled, groups=groups, n=4)
    moved = strategy.choose(np.squeeze(taken[:, order]), labelled[order], groups=groups[order], n=4)
    assert_array_equal(first, order[moved])


def test_random_is_uniform_and_seeded():
    counts = np.zeros(6)
    for seed in range(3000):
        counts[Random().choose(np.arange(6.0), [2], random_state=seed)] += 1
    assert counts[2] == 0
    assert_allclose(counts[[0, 1, 3, 4, 5]] / 3000, 0.2, atol=0.03)
    assert_array_equal(
        Random().choose(np.arange(6.0), [], n=6, random_state=3),
        Random().choose(np.zeros(6), [], n=6, random_state=3),
    )


@pytest.mark.parametrize("strategy", [LossMin(), Entropy()], ids=repr)
@pytest.mark.parametrize(
    ("shift", "factor"), [(0.0, 1e-9), (1e3, 1.0), (0.0, 1e200), (0.0, 1e-200)]
)
def test_choices_do_not_depend_on_the_unit_of_the_scores(strategy, shift, factor):
    scores = np.random.default_rng(2).normal(size=100)
    assert_array_equal(
        strategy.choose(scores, [], n=10), strategy.choose(scores * factor + shift, [], n=10)
    )


def test_ties_go_by_score_and_then_by_row():
    assert_array_equal(Greedy().choose([1.0, 2.0, 2.0, 1.0, 2.0], [], n=4), [1, 2, 4, 0])
    assert_array_equal(Uncertain().choose([0.0, 5.0, 9.0, 5.5], [], n=2), [3, 1])


def test_threshold_and_posterior():
    found = rank_threshold([0.0, 5.0, 1.0, 3.0, 9.0, 9.5], groups=["a", "a", "a", "b", "b", "b"])
    assert_array_equal(found.rank, [2, 1])
    assert_array_equal(found.score, [1.0, 3.0])
    p = relevance_posterior([0.0, 5.0, 1.0])
    assert p[2] == 0.5
    assert p[0] < 0.5 < p[1]
    assert_array_equal(relevance_posterior([2.0, 2.0]), [0.5, 0.5])
    assert_array_equal(relevance_posterior([7.0]), [0.5])


class Scorer:
    """Only predict."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X[:, 0]


def test_any_scorer_will_do():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    for scorer in (
        LogisticRegression(),
        RandomForestClassifier(10, random_state=0),
        LinearRegression(),
        Scorer(),
    ):
        scorer.fit(X, y)
        by_hand = (
            scorer.decision_function(X) if hasattr(scorer, "decision_function")
            else scorer.predict_proba(X)[:, 1] if hasattr(scorer, "predict_proba") else scorer.predict(X)
        )  # fmt: skip
        assert_array_equal(
            LossMin().choose(scorer, [0], X=X, n=5), LossMin().choose(by_hand, [0], n=5)
        )
    a, b = LogisticRegression().fit(X, y), LogisticRegression(C=1e-3).fit(X, y)
    both = np.array([a.decision_function(X), b.decision_function(X)])
    assert_array_equal(
        Diverse().choose([a, b], [0], X=sp.csr_array(X), n=5), Diverse().choose(both, [0], n=5)
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LossMin(1.0), "trade_off must lie between 0 and 1; got 1.0"),
        (lambda: Diverse(1), "folds must be an integer >= 2; got 1"),
        (lambda: Greedy().choose([1.0, np.nan], []), "The score of row 1 is nan"),
        (lambda: Greedy().choose([1.0, np.inf], []), "The score of row 1 is inf"),
        (lambda: Greedy().choose([[1.0, 2.0]], []), "one score per row"),
        (lambda: Greedy().choose(["a", "b"], []), "must be real numbers"),
        (
            lambda: Greedy().choose([1.0, 2.0], [], n=0),
            "n must be an integer >= 1; got 0",
        ),
        (lambda: Greedy().choose([1.0, 2.0], [2]), "row number 2, but there are 2 rows"),
        (lambda: Greedy().choose([1.0, 2.0, 3.0], [0, 1, 1]), "holds a row number twice"),
        (lambda: Greedy().choose([1.0, 2.0], [True]), "mask of shape"),
        (lambda: Greedy().choose([1.0, 2.0], [0.5]), "boolean mask"),
        (lambda: Greedy().choose([1.0, 2.0], [], groups=["a"]), "qid has 1 values"),
        (lambda: Greedy().choose(LogisticRegression(), []), "give X"),
        (
            lambda: Diverse().choose([1.0, 2.0], []),
            r"of shape \(2,\); expected an array of shape \(n_rankers",
        ),
        (
            lambda: Diverse().choose(LogisticRegression(), [], X=[[1.0]]),
            "scores is LogisticRegression; expected",
        ),
        (lambda: LabellingLoop(np.eye(3), strategy="clever"), "strategy must be one of"),
        (lambda: LabellingLoop(np.eye(3), batch=0), "batch must be"),
        (lambda: LabellingLoop(np.eye(3), batch=1.5), "batch must be"),
        (lambda: Budget(0), "n must be an integer >= 1; got 0"),
        (lambda: RecallBound(1.0), "target must lie between 0 and 1"),
        (lambda: simulate(np.eye(3), [0, 0, 0]), "y has 1 classes"),
        (lambda: simulate(np.eye(3), [0, 1]), "X has 3 rows and y has 2"),
        (
            lambda: simulate(np.eye(3), [0, 1, 0], seeds=(2, 1)),
            "has 2 relevant rows, but y has 1",
        ),
        (lambda: simulate(np.eye(3), [0, 1, 0], seeds=(1,)), "two counts"),
        (lambda: rank_threshold([]), "empty"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- Stopping ---


def stops_at(rule, relevant):
    """Records read until the rule stops; all, if it never does."""
    relevant = np.asarray(relevant, dtype=bool)
    for read in range(relevant.size + 1):
        if rule.reason(Reading(relevant.size, relevant[:read])) is not None:
            return read
    return relevant.size


@pytest.mark.parametrize(("target", "confidence"), [(0.5, 0.5), (0.6, 0.7), (0.8, 0.6), (0.9, 0.8)])
def test_recall_bound_keeps_its_promise_exactly(target, confidence):
    """Over all orders of a small pool, looked at after every record, broken promises are rarer than
    1 - confidence.
    """
    n = 12
    rule = RecallBound(target, confidence)
    saved = 0
    for n_relevant in range(1, n + 1):
        broken = total = 0
        for places in combinations(range(n), n_relevant):
            relevant = np.isin(np.arange(n), places)
            read = stops_at(rule, relevant)
            saved += n - read
            broken += relevant[:read].sum() < target * n_relevant - 1e-9
            total += 1
        assert broken <= (1 - confidence) * total
    assert saved > 0


def test_recall_bound_saves_reading_where_the_relevant_come_first():
    relevant = np.arange(2000) < 100
    assert stops_at(RecallBound(0.95, 0.95), relevant) < 1400
    assert stops_at(RecallBound(0.8, 0.9), relevant) < stops_at(RecallBound(0.95, 0.95), relevant)
    reading = Reading(2000, relevant[:1400])
    assert RecallBound().lower_bound(reading) >= 0.95
    assert RecallBound().lower_bound(Reading(2000, relevant[:100])) < 0.1
    assert RecallBound().lower_bound(Reading(10, np.ones(10, dtype=bool))) == 1.0


def test_rules_compose():
    relevant = np.array([1, 0, 0, 0, 1, 0, 0, 0, 0, 0], dtype=bool)
    assert stops_at(IrrelevantInARow(3), relevant) == 4
    assert stops_at(Budget(6), relevant) == 6
    assert stops_at(Budget(6) | IrrelevantInARow(3), relevant) == 4
    assert stops_at(Budget(6) & IrrelevantInARow(3), relevant) == 8
    assert stops_at(Budget(9) & IrrelevantInARow(3) | Budget(2), relevant) == 2
    assert (Budget(1) | Budget(2) | Budget(3)).rules == (Budget(1), Budget(2), Budget(3))
    why = (Budget(6) & IrrelevantInARow(3)).reason(Reading(10, relevant[:8]))
    assert "budget of 6" in why
    assert "last 3 records" in why
    with pytest.raises(TypeError, match="only with another stopping rule such as Budget"):
        Budget(1) | 3


def test_ranking_stable():
    rule = RankingStable(0.9, patience=2)
    assert rule.reason(Reading(9, np.zeros(3, dtype=bool), [0.95])) is None
    assert rule.reason(Reading(9, np.zeros(3, dtype=bool), [0.95, 0.8, 0.95])) is None
    assert "0.92" in rule.reason(Reading(9, np.zeros(3, dtype=bool), [0.8, 0.95, 0.92]))
    assert (rule | Budget(3)).needs_agreement
    assert not (Budget(2) | Budget(3)).needs_agreement


# --- The loop ---


def small_pool(n=120, n_columns=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns))
    y = (X @ rng.normal(size=n_columns) + rng.normal(size=n) > 2.0).astype(int)
    return X, y


def start(X, y, **options):
    loop = LabellingLoop(X, random_state=0, **options)
    seeds = [int(np.argmax(y == 1)), int(np.argmax(y == 0))]
    loop.tell(seeds, y[seeds], seed=True)
    return loop


def test_loop_asks_learns_and_ends():
    X, y = small_pool()
    loop = start(X, y, batch=7)
    while (rows := loop.ask()).size:
        assert (loop.labels[rows] == -1).all()
        assert_array_equal(rows, loop.ask())
        scores = loop.scores()
        assert_array_equal(rows, Greedy().choose(scores, loop.labels != -1, n=7))
        loop.tell(rows, y[rows])
    assert loop.stopped == "every record is labelled"
    assert_array_equal(loop.labels, y)
    assert sorted([*loop.order, *loop.steps[0].rows]) == list(range(120))
    assert loop.reading.n_records == 118
    assert set(loop.steps[1].seconds) == {"fit", "score", "choose"}


def test_loop_takes_answers_in_parts_and_rows_that_were_not_asked_for():
    X, y = small_pool()
    loop = start(X, y, batch=5)
    asked = loop.ask()
    loop.tell(int(asked[0]), y[asked[0]])
    assert_array_equal(loop.ask(), asked[1:])
    other = int(np.setdiff1d(np.flatnonzero(loop.labels == -1), asked)[0])
    loop.tell([other], [y[other]])
    assert_array_equal(loop.ask(), asked[1:])
    loop.tell(asked[1:], y[asked[1:]])
    loop.tell(asked, y[asked])  # once more does nothing
    assert len(loop.order) == 6
    assert np.intersect1d(loop.ask(), [*asked, other]).size == 0


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (
            [5, 0],
            [1, 0],
            "Row 0 is labelled 0 but was labelled 1 before",
        ),
        ([5, 5], [1, 0], "Row 5 is labelled 0 but was"),
        ([5, 6], [1, "maybe"], "The label of row 6 is 'maybe'; expected 1"),
        ([5, 6], [1, 2], "The label of row 6 is 2"),
        ([5, 6], [1, None], "The label of row 6 is None"),
        ([5, 6], [1, np.nan], "The label of row 6 is nan"),
        ([5, 40], [1, 0], "There is no row 40"),
        ([5, -1], [1, 0], "There is no row -1"),
        ([5, 1.5], [1, 0], "got 1.5"),
        ([5, 6], [1], "2 rows have 1 labels"),
    ],
)
def test_wrong_answers_are_refused_whole(tmp_path, rows, labels, message):
    record = tmp_path / "labels.jsonl"
    loop = LabellingLoop(
        np.random.default_rng(0).normal(size=(40, 3)), record=record, random_state=0
    )
    loop.tell([0, 1], [1, 0])
    before = record.read_bytes()
    with pytest.raises(ValueError, match=message):
        loop.tell(rows, labels)
    assert loop.labels[5] == -1
    assert record.read_bytes() == before
    loop.tell([5, 6], [True, np.int8(0)])
    assert loop.labels[5] == 1


def test_loop_draws_at_random_until_it_can_rank():
    X, _ = small_pool()
    loop = LabellingLoop(X, random_state=3)
    first = loop.ask()
    assert loop.ranker_ is None
    assert loop.scores() is None
    loop.tell(first, [0])
    loop.tell(loop.ask(), [0])
    assert loop.ranker_ is None
    loop.tell(loop.ask(), [1])
    loop.ask()
    assert loop.ranker_ is not None
    assert LabellingLoop(X, random_state=3).ask() == first


def test_a_share_of_what_was_read_makes_the_batches_grow():
    X, y = small_pool()
    loop = start(X, y, batch=0.2)
    sizes = []
    while (rows := loop.ask()).size:
        sizes.append(rows.size)
        loop.tell(rows, y[rows])
    assert sizes[:6] == [1, 1, 1, 1, 1, 1]
    assert max(sizes) > 10
    assert sum(sizes) == 118


def test_stopping_rules_end_the_loop_and_can_be_lifted():
    X, y = small_pool()
    loop = start(X, y, batch=4, stopping=Budget(10))
    while (rows := loop.ask()).size:
        loop.tell(rows, y[rows])
    assert len(loop.order) == 12
    assert "budget of 10" in loop.stopped
    loop.stopping = None
    assert loop.ask().size == 4


def test_agreement_is_the_rank_correlation_of_successive_rankings():
    X, y = small_pool()
    loop = start(X, y, batch=10, stopping=RankingStable(1.0, patience=100))
    loop.tell(loop.ask(), y[loop.ask()])
    before = loop.scores()
    rows = loop.ask()
    still_open = loop.labels == -1
    expected = spearmanr(before[still_open], loop.scores()[still_open]).statistic
    loop.tell(rows, y[rows])
    assert loop.reading.agreement[-1] == pytest.approx(expected)
    stable = start(X, y, batch=5, stopping=RankingStable(0.5, patience=2))
    while (rows := stable.ask()).size:
        stable.tell(rows, y[rows])
    assert "rank correlation" in stable.stopped
    assert len(stable.order) < 100


RANKERS = [
    PoolRanker(),
    PairwiseRanker(alpha=1e-2),
    PointwiseRanker("hinge", alpha=1e-2),
    TopPush(alpha=1e-2),
    RankBoost(5),
    LinearSVC(),
    LogisticRegression(),
    RandomForestClassifier(5, random_state=0),
    make_pipeline(StandardScaler(), PairwiseRanker(alpha=1e-2)),
]


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("storage", [np.asarray, pd.DataFrame], ids=["array", "frame"])
def test_loop_takes_any_ranker_and_fits_it_on_all_labels(ranker, storage):
    X, y = small_pool()
    X = storage(X)
    if isinstance(X, pd.DataFrame):
        X.columns = [f"c{k}" for k in range(X.shape[1])]
    result = simulate(X, y, ranker=ranker, batch=20, random_state=0)
    assert sorted(result.order + result.seeds) == list(range(120))
    assert result.records_to_recall(0.9) < 90


def test_warm_starts_do_not_change_what_is_learnt():
    X, y = small_pool()
    for ranker in (
        PairwiseRanker(alpha=1e-2, tol=1e-8),
        PoolRanker(tol=1e-8),
        LogisticRegression(tol=1e-8),
    ):
        loop = start(X, y, batch=10, ranker=ranker)
        for _ in range(4):
            rows = loop.ask()
            loop.tell(rows, y[rows])
        warm = loop.fit()
        labelled = loop.labels != -1
        cold = type(ranker)(**ranker.get_params())
        cold.fit(
            *((X, loop.labels) if isinstance(ranker, PoolRanker) else (X[labelled], y[labelled]))
        )
        assert_allclose(warm.coef_, cold.coef_, rtol=1e-4, atol=1e-5)


def test_texts_can_be_labelled_through_a_pipeline():
    texts = [
        "rank fraud cases",
        "cook a soup",
        "rank leads",
        "bake bread",
        "rank documents",
        "fry an egg",
    ]
    loop = LabellingLoop(
        texts, ranker=make_pipeline(TfidfVectorizer(), PairwiseRanker(alpha=1e-2)), random_state=0
    )
    loop.tell([0, 1], [1, 0], seed=True)
    assert loop.ask() in (2, 4)


def test_groups_are_asked_about_one_by_one():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(90, 4)), np.repeat(list("abc"), 30)
    y = (X[:, 0] > 0.5).astype(int)
    for ranker in (
        None,
        LogisticRegression(),
        make_pipeline(StandardScaler(), PairwiseRanker(alpha=1e-2)),
    ):
        for strategy in ("lossmin", "diverse"):
            result = simulate(
                X, y, qid=qid, seeds=(1, 2), batch=3, rounds=2, strategy=strategy, ranker=ranker
            )
            assert_array_equal(np.unique(qid[result.order], return_counts=True)[1], [6, 6, 6])
            assert_array_equal(np.unique(qid[result.seeds], return_counts=True)[1], [3, 3, 3])


# --- Records ---


def test_resumed_loop_has_every_label_and_asks_what_was_open(tmp_path):
    X, y = small_pool()
    record = tmp_path / "deep" / "labels.jsonl"
    loop = start(X, y, batch=3, record=record, stopping=RankingStable(1.0, 9))
    for _ in range(5):
        rows = loop.ask()
        loop.tell(rows, y[rows])
    asked = loop.ask()
    loop.tell(asked[:1], y[asked[:1]])
    again = LabellingLoop(X, batch=3, record=record, stopping=RankingStable(1.0, 9))
    assert_array_equal(again.labels, loop.labels)
    assert_array_equal(again.order, loop.order)
    assert again.steps == loop.steps
    assert again.random_state == loop.random_state == 0
    assert_array_equal(again.ask(), asked[1:])
    assert again.reading.agreement == loop.reading.agreement


def test_a_record_cut_anywhere_loses_at_most_the_line_that_was_being_written(tmp_path):
    X, y = small_pool(30)
    whole = tmp_path / "whole.jsonl"
    loop = start(X, y, batch=2, record=whole)
    for _ in range(3):
        rows = loop.ask()
        loop.tell(rows, y[rows])
    data = whole.read_bytes()
    ends = [k + 1 for k, byte in enumerate(data) if byte == ord("\n")]
    labels_after = []
    for end in ends:
        lines = [json.loads(line) for line in data[:end].splitlines()]
        labels_after.append(sum(len(line["rows"]) for line in lines[1:] if "labels" in line))
    for cut in range(ends[0], len(data), 3):
        path = tmp_path / "cut.jsonl"
        path.write_bytes(data[:cut])
        resumed = LabellingLoop(X, batch=2, record=path)
        assert (resumed.labels != -1).sum() == labels_after[sum(end <= cut for end in ends) - 1]
        rows = resumed.ask()
        resumed.tell(rows, y[rows])
        known = LabellingLoop(X, batch=2, record=path).labels
        assert_array_equal(known, resumed.labels)


def test_records_of_something_else_are_refused_and_kept(tmp_path):
    X, y = small_pool()
    record = tmp_path / "labels.jsonl"
    start(X, y, record=record)
    before = record.read_bytes()
    for other, options, what in (
        (X + 1, {}, "other values in X"),
        (X[:-1], {}, "rows = 40 in the file, 39 now"),
        (X, {"batch": 2}, "batch = 1 in the file, 2 now"),
        (X, {"strategy": "lossmin"}, "strategy = "),
        (X, {"ranker": PoolRanker(2.0)}, "ranker = "),
    ):
        with pytest.raises(ValueError, match=rf"record of another labelling loop \({what}"):
            LabellingLoop(other, record=record, **options)
    assert record.read_bytes() == before
    for text, message in (
        (b"title", "not the record of a labelling loop"),
        (b"title,abstract\n", "not the record of a labelling loop"),
        (b'{"a": 1}\n', "not the record of a labelling loop"),
        (before + b"\xff\xfe\n", "line 3: expected a JSON object"),
        (before + b'{"rows": [3], "labels": [7]}\n', "line 3: The label of row 3 is 7"),
        (before + b'{"what": 1}\n', "line 3: "),
    ):
        record.write_bytes(text)
        with pytest.raises(ValueError, match=message):
            LabellingLoop(X, record=record)
        assert record.read_bytes() == text


CHILD = """
import sys
import numpy as np
from forerank.active import LabellingLoop
X = np.random.default_rng(0).normal(size=(5000, 5))
loop = LabellingLoop(X, batch=2, record=sys.argv[1], random_state=0)
if not loop.steps:
    loop.tell([0, 1], [1, 0], seed=True)
while True:
    rows = loop.ask()
    loop.tell(rows, X[rows, 0] > 1)
    print(*rows, flush=True)
"""


def test_a_killed_loop_loses_nothing(tmp_path):
    record = tmp_path / "labels.jsonl"
    X = np.random.default_rng(0).normal(size=(5000, 5))
    acknowledged = []
    for lines in (1, 17):
        with subprocess.Popen(
            [sys.executable, "-c", CHILD, record], stdout=subprocess.PIPE, text=True
        ) as child:
            for _ in range(lines):
                acknowledged += [int(row) for row in child.stdout.readline().split()]
            os.kill(child.pid, signal.SIGKILL)
            acknowledged += [
                int(row) for line in child.stdout if line.endswith("\n") for row in line.split()
            ]
        loop = LabellingLoop(X, batch=2, record=record)
        assert np.isin(acknowledged, loop.order).all()
        assert_array_equal(loop.labels[loop.order], X[loop.order, 0] > 1)
        assert np.unique(loop.order).size == loop.order.size


# --- Simulation ---


def test_simulation_figures_equal_their_definitions():
    run = Simulation(
        [5, 3, 8, 1, 9], [1, 0, 1, 0, 0], n_records=10, n_relevant=3, seeds=[0, 2], read=[0, 5]
    )
    assert run.recall_at(0) == 0.0
    assert run.recall_at(3) == pytest.approx(2 / 3)
    assert run.recall_at(100) == pytest.approx(2 / 3)
    assert run.records_to_recall(1 / 3) == 1
    assert run.records_to_recall(0.5) == 3
    assert run.records_to_recall(0.0) == 0
    with pytest.raises(ValueError, match="was not reached"):
        run.records_to_recall(0.95)
    assert run.work_saved(0.6) == pytest.approx(0.7 - 0.4)
    with pytest.raises(ValueError, match="recall must lie"):
        run.records_to_recall(95)


def test_work_saved_is_that_of_the_metric():
    X, y = small_pool()
    run = simulate(X, y, batch=10, random_state=0)
    position = -np.arange(len(run.order))
    for recall in (0.5, 0.95, 1.0):
        assert run.work_saved(recall) == pytest.approx(
            metrics.work_saved(run.relevant, position, recall=recall)
        )


def test_all_strategies_begin_with_the_same_seeds_and_the_same_seed_gives_the_same_order():
    X, y = small_pool()
    runs = [
        simulate(X, y, strategy=s, batch=10, rounds=3, random_state=7)
        for s in ("greedy", "lossmin", "random")
    ]
    assert len({tuple(run.seeds) for run in runs}) == 1
    assert sum(y[runs[0].seeds]) == 1
    for strategy in ("random", "diverse", "lossmin"):
        a, b = (
            simulate(X, y, strategy=strategy, batch=10, rounds=3, random_state=7) for _ in range(2)
        )
        assert a.order == b.order
    assert simulate(X, y, random_state=8, rounds=1).seeds != runs[0].seeds
    named = simulate(X, y, seeds=np.array([4, 5, int(np.argmax(y))]), rounds=1)
    assert named.seeds[:2] == [4, 5]


def test_labels_of_any_two_kinds():
    X, y = small_pool()
    plain = simulate(X, y, batch=10, random_state=0)
    words = simulate(X, np.where(y == 1, "yes", "no"), batch=10, random_state=0)
    signs = simulate(X, np.where(y == 1, 1, -1), batch=10, random_state=0)
    assert plain.order == words.order == signs.order


def test_curves_on_test_rows_are_the_metrics_of_the_ranker():
    X, y = small_pool(200)
    test = (X[100:], y[100:])
    for strategy in ("greedy", "random"):
        run = simulate(X[:100], y[:100], strategy=strategy, batch=98, rounds=1, test=test, random_state=0,
                       ranker=PairwiseRanker(alpha=1e-2))  # fmt: skip
        final = PairwiseRanker(alpha=1e-2).fit(X[:100], y[:100])
        assert run.read == [0, 98]
        assert run.curves["auc"][-1] == pytest.approx(
            metrics.roc_auc(y[100:], final.decision_function(X[100:]))
        )
        assert len(run.curves["map"]) == 2
    with pytest.raises(ValueError, match="metric must be one of"):
        simulate(X, y, test=test, measures=["f1"])


def test_until_recall_ends_a_simulation():
    X, y = small_pool()
    run = simulate(X, y, until_recall=0.8, random_state=0)
    assert run.records_to_recall(0.8) == len(run.order)
    assert run.stopped == "the recall until_recall is reached"


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
    with pytest.raises(ValueError, match="other data"):
        compare_strategies(X[:100], y[:100], strategies=methods, **{**options, "batch": 5})


def test_comparison_of_runs_that_ended_early():
    runs = {"a": [Simulation([1, 2], [1, 0], 4, 2, [0], [0, 2])]}
    comparison = StrategyComparison(runs)
    assert np.isnan(comparison.table()[0]["records to 95%"])
    assert_array_equal(comparison.values("recall", "a"), [[0.0, 0.5, 0.5, 0.5, 0.5]])
    with pytest.raises(ValueError, match="was not measured"):
        comparison.values("auc", "a")


# --- The ranker of a pool ---


@parametrize_with_checks([PoolRanker()])
def test_pool_ranker_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "storage", [np.asarray, sp.csr_matrix, sp.csr_array], ids=["array", "csr_matrix", "csr_array"]
)
@pytest.mark.parametrize("warm", [False, True])
def test_pool_ranker_solves_the_problem_with_the_mean_row_spelled_out(storage, warm):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40)) * (rng.uniform(size=(60, 40)) < 0.1)
    y = np.full(60, -1)
    y[:9] = [1, 1, 1, 0, 0, 0, 0, 0, 0]
    labelled = np.flatnonzero(y != -1)
    spelled = np.vstack([X[labelled], X[9:].mean(axis=0)])
    weight = np.append(np.ones(9), 5.0 * 6 / 3)
    explicit = PairwiseRanker(alpha=1 / (0.5 * 9), tol=1e-10)
    explicit.fit(spelled, np.append(y[labelled], 0), sample_weight=weight)
    ranker = PoolRanker(0.5, unread_weight=5.0, tol=1e-10, warm_start=warm)
    if warm:
        ranker.fit(storage(X), np.where(np.arange(60) < 7, y, -1))
    ranker.fit(storage(X), y)
    assert ranker.optimality_ <= 1e-10
    assert ranker.objective_ == pytest.approx(explicit.objective_, rel=1e-9)
    assert_allclose(ranker.coef_, explicit.coef_, atol=1e-7)
    assert_allclose(
        ranker.decision_function(storage(X)), X @ ranker.coef_[0] + ranker.intercept_[0]
    )


def test_pool_ranker_without_unread_rows_is_a_pairwise_ranker():
    X, y = small_pool()
    pairs = PairwiseRanker(alpha=1 / (0.1 * 120), tol=1e-9).fit(X, y)
    for labels, options in (
        (y, {}),
        (np.where(y == 1, 1, -1), {}),
        (np.append(y, [-1] * 0), {"unread_weight": 0.0}),
    ):
        assert_allclose(
            PoolRanker(tol=1e-9, **options).fit(X, labels).coef_, pairs.coef_, atol=1e-8
        )
    some = np.where(np.arange(120) < 100, y, -1)
    left_out = PairwiseRanker(alpha=1 / (0.1 * 100), tol=1e-9).fit(X[:100], y[:100])
    assert_allclose(
        PoolRanker(tol=1e-9, unread_weight=0.0).fit(X, some).coef_, left_out.coef_, atol=1e-8
    )
    with pytest.raises(ValueError, match="one class only, 1"):
        PoolRanker().fit(X, np.where(y == 1, 1, -1) * 0 + 1)
    with pytest.raises(ValueError, match="loss must be one of"):
        PoolRanker(loss="hinge").fit(X, y)


# --- On real data ---


def test_loss_min_and_greedy_choose_different_documents():
    try:
        data = datasets.load("letor_mq2008")
    except FileNotFoundError as error:
        pytest.skip(str(error))
    X, y, qid = data.X[:3000], (data.y[:3000] > 0).astype(int), data.qid[:3000]
    runs = [
        simulate(X, y, qid=qid, seeds=(1, 2), batch=2, rounds=1, strategy=s, random_state=0)
        for s in ("lossmin", "greedy")
    ]
    overlap = len(set(runs[0].order) & set(runs[1].order)) / len(runs[0].order)
    assert 0.05 < overlap < 0.8


# --- What a critical reader found ---


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


def test_random_states_of_all_kinds():
    X, y = small_pool(60)

    def seeds(random_state):
        return simulate(X, y, rounds=1, random_state=random_state).seeds

    assert seeds(np.int64(3)) == seeds(3)
    assert seeds(np.random.default_rng(3)) == seeds(np.random.default_rng(3))
    assert seeds(np.random.RandomState(3)) == seeds(np.random.RandomState(3))
    assert len({tuple(seeds(None)) for _ in range(8)}) > 1
    for wrong in (-1, "abc"):
        with pytest.raises(ValueError, match=r"negative|cannot be used to seed"):
            seeds(wrong)


def test_a_simulation_goes_on_from_its_record(tmp_path):
    X, y = small_pool(60)
    path = tmp_path / "labels.jsonl"
    simulate(X, y, rounds=3, random_state=0, record=path)
    both = simulate(X, y, rounds=6, random_state=0, record=path)
    assert len(both.order) == 6
    assert both.order[:3] == simulate(X, y, rounds=3, random_state=0).order
    assert both.stopped == "the number of rounds is reached"
    with pytest.raises(ValueError, match="random_state = 0 in the file, 1 now"):
        simulate(X, y, random_state=1, record=path)
    with pytest.raises(ValueError, match="another label than y for row"):
        simulate(X, 1 - y, random_state=0, record=path)
    with pytest.raises(ValueError, match="does not hold measures"):
        simulate(X, y, random_state=0, record=path, test=(X, y))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": [3, 3]}, "holds a row number twice"),
        ({"seeds": [60]}, "there are 60 rows"),
        ({"rounds": -1}, "rounds must be"),
        ({"rounds": 2.5}, "rounds must be"),
        ({"until_recall": 95}, "until_recall must lie"),
        ({"test": (1,)}, "test must be"),
        ({"test": (np.eye(2), ["a", "b"])}, "other labels than y"),
    ],
)
def test_bad_simulations_are_named(options, message):
    X, y = small_pool(60)
    with pytest.raises(ValueError, match=message):
        simulate(X, y, **options)


def test_a_loop_that_stopped_is_still_stopped_when_it_is_opened_again(tmp_path):
    X, y = small_pool()
    rule = RankingStable(0.5, patience=2)
    loop = start(X, y, batch=5, stopping=rule, record=tmp_path / "labels.jsonl")
    while (rows := loop.ask()).size:
        loop.tell(rows, y[rows])
    assert "rank correlation" in loop.stopped
    again = LabellingLoop(X, batch=5, stopping=rule, record=tmp_path / "labels.jsonl")
    assert again.stopped == loop.stopped
    assert again.ask().size == 0


def test_constant_scores_are_no_agreement():
    loop = LabellingLoop(np.ones((20, 2)), stopping=RankingStable(0.9, patience=1), random_state=0)
    loop.tell([0, 1], [0, 1], seed=True)
    for _ in range(3):
        loop.tell(loop.ask(), [0])
    assert loop.stopped is None


def test_a_promise_on_recall_is_not_given_for_strategies_that_look_for_something_else():
    X, y = small_pool()
    for strategy in ("uncertain", "entropy", "lossmin", "diverse"):
        with pytest.warns(UserWarning, match="guarantee does not hold"):
            LabellingLoop(X, strategy=strategy, stopping=Budget(50) | RecallBound())
    LabellingLoop(X, strategy="random", stopping=RecallBound())
    loop = start(X, y)
    loop.tell(loop.ask(), [0])
    with pytest.raises(ValueError, match="Row 99 comes as a seed after labelling has begun"):
        loop.tell([99], [0], seed=True)


def test_pool_ranker_sees_the_unread_rows_at_the_end_of_a_pipeline_and_in_a_committee():
    X, y = small_pool()
    labels = np.where(np.arange(120) < 60, y, -1)
    scaled = StandardScaler().fit_transform(X)
    loop = LabellingLoop(X, ranker=make_pipeline(StandardScaler(), PoolRanker()), random_state=0)
    loop.tell(range(60), y[:60], seed=True)
    loop.ask()
    assert_allclose(loop.ranker_[-1].coef_, PoolRanker().fit(scaled, labels).coef_, atol=1e-3)
    members = Diverse(2).committee(PoolRanker(tol=1e-9), X, labels, None, np.random.default_rng(0))
    assert len(members) == 2
    without = PoolRanker(tol=1e-9, unread_weight=0.0)
    others = Diverse(2).committee(without, X, labels, None, np.random.default_rng(0))
    assert not np.allclose(members[0].coef_, others[0].coef_, atol=1e-3)


def test_a_record_that_something_else_wrote_to_is_left_alone(tmp_path):
    X, _ = small_pool()
    path = tmp_path / "labels.jsonl"
    first = LabellingLoop(X, record=path, random_state=0)
    second = LabellingLoop(X, record=path)
    first.tell(0, 1)
    with pytest.raises(RuntimeError, match="was changed by another program or object"):
        second.tell(0, 0)
    assert second.labels[0] == -1
    assert LabellingLoop(X, record=path).labels[0] == 1
    path.unlink()
    with pytest.raises(RuntimeError, match="is gone"):
        first.tell(1, 1)
    assert not path.exists()


def test_the_record_knows_groups_and_every_row(tmp_path):
    X, _ = small_pool(1000)
    qid = np.arange(1000) % 3
    path = tmp_path / "labels.jsonl"
    LabellingLoop(X, qid=qid, record=path, random_state=0)
    swapped = X.copy()
    swapped[[1, 2]] = swapped[[2, 1]]
    for rows, groups, what in (
        (X, qid[::-1], "other groups"),
        (X, None, "other groups"),
        (swapped, qid, "other values in X"),
    ):
        with pytest.raises(ValueError, match=what):
            LabellingLoop(rows, qid=groups, record=path)
    lists = LabellingLoop(X, qid=qid.tolist(), record=path)
    assert lists.random_state == 0


@pytest.mark.parametrize("kind", [set, tuple, iter, np.array])
def test_rows_may_come_in_anything(kind):
    loop = LabellingLoop(np.eye(5), random_state=0)
    loop.tell(kind([2]), [1])
    loop.tell(np.array(3), 0)
    assert_array_equal(loop.labels, [-1, -1, 1, 0, -1])
    with pytest.raises(ValueError, match="one label per row"):
        loop.tell([0, 1], 0)
    with pytest.raises(ValueError, match="read-only"):
        loop.labels[0] = 1


class OnlyProbabilities:
    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def test_small_things_about_scores_and_groups():
    X = np.array([[0.1], [0.9], [0.5]])
    assert Greedy().choose(OnlyProbabilities(), [], X=X) == [1]
    in_order = Greedy().choose([1, 2, 3, 4], [], groups=["b", "b", "a", "a"])
    assert_array_equal(
        in_order, Greedy().choose([1, 2, 3, 4], [], groups=np.array(["b", "b", "a", "a"]))
    )
    huge = np.array([1e308, -1e308, 1.7e308, 0.0])
    assert_allclose(relevance_posterior(huge), relevance_posterior(huge * 1e-200))
    assert_array_equal(LossMin().choose(huge, [], n=4), LossMin().choose(huge * 1e-200, [], n=4))
    with pytest.raises(ValueError, match="give two arrays of one dimension and equal length"):
        paired_t([1.0, 2.0], [1.0])


def test_pool_ranker_is_scored_on_the_rows_that_have_a_label():
    X, y = small_pool()
    labels = np.where(np.arange(120) < 60, y, -1)
    ranker = PoolRanker().fit(X, labels)
    assert ranker.score(X, labels) == ranker.score(X[:60], y[:60])


def test_long_texts_do_not_make_wide_arrays():
    loop = LabellingLoop(["short"] * 50 + ["x" * 100_000])
    assert loop.X.dtype == object


def test_the_same_lines_may_be_run_again(tmp_path):
    X, y = small_pool()
    path = tmp_path / "labels.jsonl"
    for _ in range(2):
        loop = LabellingLoop(X, batch=3, record=path)
        loop.tell([0, 1], y[:2], seed=True)
        rows = loop.ask()
        loop.tell(rows, y[rows])
    assert len(loop.order) == 6
    with pytest.raises(ValueError, match="Row 119 comes as a seed"):
        loop.tell([0, 119], [y[0], 0], seed=True)


@pytest.mark.parametrize(
    "last", [LogisticRegression(), PairwiseRanker(alpha=1e-2), PoolRanker()], ids=repr
)
def test_pipelines_whose_columns_grow_with_the_labels(last):
    rng = np.random.default_rng(0)
    words = np.array([f"word{k}" for k in range(60)])
    y = np.arange(40) % 4 == 0
    texts = [
        " ".join([*rng.choice(words, 5), *(["ranking"] if relevant else [])]) for relevant in y
    ]
    run = simulate(texts, y, ranker=make_pipeline(TfidfVectorizer(), last), batch=5, random_state=0)
    assert run.records_to_recall(1.0) <= 38


def test_labels_of_small_integer_types():
    y = np.full(300, -1, dtype=np.int8)
    y[::3], y[1] = 100, -100
    X = np.random.default_rng(0).normal(size=(300, 3))
    ranker = PoolRanker().fit(X, y)
    assert ranker.classes_.tolist() == [-100, 100]
    assert ranker.classes_.dtype == np.int8
    assert PoolRanker().fit(X, (X[:, 0] > 0).astype(np.uint64)).predict(X).dtype == np.uint64


def test_a_matrix_that_knows_itself_better_is_still_the_same_data(tmp_path):
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


def test_a_share_is_per_group():
    X, y = small_pool(60)
    loop = LabellingLoop(X, qid=np.arange(60) // 6, batch=0.5, random_state=0)
    for expected in (10, 10, 10, 10):
        rows = loop.ask()
        assert rows.size == expected
        loop.tell(rows, y[rows])


def test_results_survive_a_cut_and_other_seeds_are_noticed(tmp_path):
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


class GroupedAndUnlabelled(PairwiseRanker):
    learns_from_unlabelled = True

    def fit(self, X, y, sample_weight=None, qid=None):
        assert len(qid) == len(y) == 60
        known = y >= 0
        return super().fit(X[known], y[known], qid=qid[known])


def test_rankers_that_take_groups_and_unlabelled_rows_get_both():
    X, y = small_pool(60)
    loop = LabellingLoop(
        X, ranker=GroupedAndUnlabelled(alpha=1e-2), qid=np.arange(60) % 2, random_state=0
    )
    loop.tell(range(30), y[:30], seed=True)
    assert loop.ask().size == 2
    assert loop.ranker_ is not None


def test_a_failed_write_changes_nothing(tmp_path):
    X, y = small_pool()
    path = tmp_path / "labels.jsonl"
    loop = start(X, y, record=path, stopping=RankingStable(1.0, 9))
    loop.tell(loop.ask(), [0])
    rows = loop.ask()
    before = (loop.reading.agreement, loop.last_seconds)
    path.rename(tmp_path / "gone")
    with pytest.raises(RuntimeError, match="is gone"):
        loop.tell(rows, [0])
    assert (loop.reading.agreement, loop.last_seconds) == before
    (tmp_path / "gone").rename(path)
    loop.tell(rows, [0])
    path.unlink()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="is gone"):
            loop.ask()


def test_an_open_batch_of_other_rows_is_refused(tmp_path):
    X, _ = small_pool()
    path = tmp_path / "labels.jsonl"
    LabellingLoop(X, record=path)
    with path.open("a") as file:
        file.write('{"asked": [9999], "seconds": {}, "agreement": null}\n')
    with pytest.raises(ValueError, match="line 2: There is no row 9999"):
        LabellingLoop(X, record=path)


def test_the_mean_of_the_unread_is_exact_beside_an_outlier():
    X = np.random.default_rng(0).uniform(size=(50, 2))
    X[0, 0] = 1e17
    for rows in (X, sp.csr_matrix(X)):
        assert_allclose(
            PoolRanker()._mean_of_the_others(rows, np.array([0, 1])), X[2:].mean(axis=0)
        )


def test_groups_come_in_the_same_order_from_any_container():
    groups = ["b", "a"] * 3
    chosen = [
        Greedy().choose(np.arange(6.0), [], groups=kind(groups))
        for kind in (list, np.array, pd.Series)
    ]
    assert_array_equal(chosen[0], chosen[1])
    assert_array_equal(chosen[0], chosen[2])
