"""The labelling loop: asking, answers, rankers, batches and groups."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from forerank import PairwiseRanker, PointwiseRanker, RankBoost, TopPush
from forerank.active import (
    Budget,
    Diverse,
    Greedy,
    LabellingLoop,
    PoolRanker,
    RankingStable,
    RecallBound,
    simulate,
)
from labelling import small_pool, start


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


def test_loop_accepts_part_of_a_batch_and_other_rows():
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
        ([5, 0], [1, 0], "Row 0 is labelled 0 but was labelled 1 before"),
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
def test_wrong_labels_are_refused_and_none_is_stored(tmp_path, rows, labels, message):
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


def test_a_batch_as_a_share_of_the_labelled_rows_grows():
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


def test_warm_starts_do_not_change_the_solution():
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


def test_batches_are_per_group():
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


def test_constant_scores_are_no_agreement():
    loop = LabellingLoop(np.ones((20, 2)), stopping=RankingStable(0.9, patience=1), random_state=0)
    loop.tell([0, 1], [0, 1], seed=True)
    for _ in range(3):
        loop.tell(loop.ask(), [0])
    assert loop.stopped is None


def test_recall_bound_warns_of_strategies_that_do_not_select_relevant_rows_first():
    X, y = small_pool()
    for strategy in ("uncertain", "entropy", "lossmin", "diverse"):
        with pytest.warns(UserWarning, match="guarantee does not hold"):
            LabellingLoop(X, strategy=strategy, stopping=Budget(50) | RecallBound())
    LabellingLoop(X, strategy="random", stopping=RecallBound())
    loop = start(X, y)
    loop.tell(loop.ask(), [0])
    with pytest.raises(ValueError, match="Row 99 is given as a seed after labelling has begun"):
        loop.tell([99], [0], seed=True)


def test_pool_ranker_gets_the_unlabelled_rows_at_the_end_of_a_pipeline_and_in_a_committee():
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


@pytest.mark.parametrize("kind", [set, tuple, iter, np.array])
def test_rows_in_lists_frames_and_sparse_matrices(kind):
    loop = LabellingLoop(np.eye(5), random_state=0)
    loop.tell(kind([2]), [1])
    loop.tell(np.array(3), 0)
    assert_array_equal(loop.labels, [-1, -1, 1, 0, -1])
    with pytest.raises(ValueError, match="one label per row"):
        loop.tell([0, 1], 0)
    with pytest.raises(ValueError, match="read-only"):
        loop.labels[0] = 1


def test_long_texts_do_not_make_wide_arrays():
    loop = LabellingLoop(["short"] * 50 + ["x" * 100_000])
    assert loop.X.dtype == object


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


def test_a_share_is_per_group():
    X, y = small_pool(60)
    loop = LabellingLoop(X, qid=np.arange(60) // 6, batch=0.5, random_state=0)
    for expected in (10, 10, 10, 10):
        rows = loop.ask()
        assert rows.size == expected
        loop.tell(rows, y[rows])


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


def test_each_batch_evaluates_its_rule_once_and_numbers_no_groups(monkeypatch):
    X, y = small_pool()
    evaluated = []

    class Counted(Budget):
        def reason(self, reading):
            evaluated.append(reading.relevant.size)
            return super().reason(reading)

    loop = start(X, y, qid=np.arange(120) % 3, stopping=Counted(9))
    monkeypatch.setattr("forerank.active.strategies.group_numbers", None)
    for _ in range(3):
        rows = loop.ask()
        loop.tell(rows, y[rows])
    assert evaluated == [0, 3, 6]
