"""Strategies against definitions that take one row at a time."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

from forerank.active import (
    Budget,
    Diverse,
    Entropy,
    Greedy,
    LabellingLoop,
    LossMin,
    PairLossMin,
    Random,
    RecallBound,
    Uncertain,
    paired_t,
    rank_threshold,
    relevance_posterior,
    simulate,
)
from forerank.data import datasets

ALL = [LossMin(), LossMin(0.3), Entropy(), Uncertain(), Diverse(), Random(), Greedy()]
ALL += [PairLossMin(), LossMin(thresholds=3), LossMin(scale=1.0, calibrated=False)]


DETERMINISTIC = [s for s in ALL if not isinstance(s, Random)]


def slow_posterior(scores, scale=None, calibrated=True, gap_number=0):
    """Threshold rank and P(+1) of one group, after donmez2009, Figure 2; or at a smaller gap."""
    ascending = sorted(scores)
    gaps = [ascending[k] - ascending[k - 1] for k in range(1, len(ascending))]
    largest_first = sorted(range(len(gaps)), key=lambda k: -gaps[k])
    i = largest_first[min(gap_number, len(gaps) - 1)] + 1 if gaps else 1
    centre = ascending[i - 1] if calibrated else 0.0
    scale = scale or np.std(scores) * np.sqrt(3) / np.pi or 1.0
    return i, [1 / (1 + np.exp(-(f - centre) / scale)) for f in scores]


def slow_rank(scores, k):
    """Rank 1 is the lowest score; equal scores share the mean of their ranks."""
    return sum(s < scores[k] for s in scores) + (sum(s == scores[k] for s in scores) + 1) / 2


def slow_losses(scores, trade_off, i, normalized=True):
    """Losses of each row in donmez2009, eq. 7, if it is relevant and if it is not."""
    theta, r_max = i + 0.5, len(scores)
    out = []
    for k in range(len(scores)):
        r = slow_rank(scores, k)
        below, above = max(0.5 - (r - theta), 0), max(0.5 + (r - theta), 0)
        if normalized:
            below, above = below / abs(1 - theta), above / abs(r_max - theta)
        out.append((below * (1 - trade_off), above * trade_off))
    return out


def slow_loss_min(scores, trade_off=0.6, normalized=True, thresholds=1, **posterior):
    """donmez2009, eq. 7, and the mean over several thresholds."""
    out = np.zeros(len(scores))
    for number in range(thresholds):
        i, p = slow_posterior(scores, gap_number=number, **posterior)
        losses = slow_losses(scores, trade_off, i, normalized)
        each = [p[k] * low + (1 - p[k]) * high for k, (low, high) in enumerate(losses)]
        out += np.array(each) / thresholds
    return out


def slow_pair_loss_min(scores, trade_off=0.6):
    """The largest expected loss over all pairs with a row: donmez2009, eq. 5, opposite labels."""
    i, p = slow_posterior(scores)
    losses = slow_losses(scores, trade_off, i)
    out = [0.0] * len(scores)
    for k, (k_low, k_high) in enumerate(losses):
        for m, (m_low, m_high) in enumerate(losses):
            if k != m:
                loss = p[k] * (1 - p[m]) * (k_low + m_high) + (1 - p[k]) * p[m] * (k_high + m_low)
                out[k] = max(out[k], loss)
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


@settings(max_examples=150)
@given(pools())
def test_utilities_equal_their_definitions(pool):
    scores, groups, labelled = pool
    other = np.random.default_rng(0).permutation(scores)
    cases = [
        (LossMin(0.6), scores, lambda s, o: slow_loss_min(s, 0.6)),
        (LossMin(0.25), scores, lambda s, o: slow_loss_min(s, 0.25)),
        (LossMin(scale=2.0), scores, lambda s, o: slow_loss_min(s, scale=2.0)),
        (LossMin(calibrated=False), scores, lambda s, o: slow_loss_min(s, calibrated=False)),
        (LossMin(0.5, normalized=False), scores, lambda s, o: slow_loss_min(s, 0.5, False)),
        (LossMin(thresholds=3), scores, lambda s, o: slow_loss_min(s, thresholds=3)),
        (PairLossMin(), scores, lambda s, o: slow_pair_loss_min(s)),
        (PairLossMin(0.2), scores, lambda s, o: slow_pair_loss_min(s, 0.2)),
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


def test_the_best_pair_by_losses_of_single_rows_is_that_of_the_two_best_rows():
    """Without the condition on the labels of a pair, donmez2009, eq. 5 is a sum over its rows."""
    scores = np.random.default_rng(0).normal(size=30)
    i, p = slow_posterior(scores)
    losses = slow_losses(scores.tolist(), 0.5, i, normalized=False)

    def expected(k, m):
        total = 0.0
        for k_chance, k_loss in zip((p[k], 1 - p[k]), losses[k], strict=True):
            for m_chance, m_loss in zip((p[m], 1 - p[m]), losses[m], strict=True):
                total += k_chance * m_chance * (k_loss + m_loss)
        return total

    pairs = [(k, m) for k in range(30) for m in range(k)]
    best = max(pairs, key=lambda pair: expected(*pair))
    assert set(LossMin(0.5, normalized=False).choose(scores, [], n=2)) == set(best)


def test_both_rows_of_the_best_pair_come_first():
    scores = np.random.default_rng(3).normal(size=40)
    rows, utility = PairLossMin().choose(scores, [], n=3, return_utility=True)
    assert utility[0] == utility[1] >= utility[2]
    assert slow_pair_loss_min(scores.tolist())[rows[0]] == pytest.approx(utility[0])


def test_text_of_a_strategy_in_records():
    assert repr(LossMin()) == "LossMin(trade_off=0.6)"
    assert repr(LossMin(0.5, scale=1.0)) == "LossMin(trade_off=0.5, scale=1.0)"
    assert repr(PairLossMin(thresholds=2)) == "PairLossMin(trade_off=0.6, thresholds=2)"


def test_tiny_scores_say_nothing_at_unit_scale():
    scores = 1e-6 * np.random.default_rng(4).normal(size=60)
    for calibrated in (True, False):
        printed = relevance_posterior(scores, scale=1.0, calibrated=calibrated)
        assert_allclose(printed, 0.5, atol=1e-5)
    assert np.ptp(relevance_posterior(scores)) > 0.5
    assert LossMin(scale=1.0).choose(scores, [])[0] == np.argmax(scores)


@pytest.mark.parametrize("strategy", [LossMin(), PairLossMin(), Entropy()], ids=repr)
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


class Scorer:
    """Only predict."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X[:, 0]


def test_scorers_and_arrays_agree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    for scorer, scores in (
        (LogisticRegression(), lambda fitted: fitted.decision_function(X)),
        (RandomForestClassifier(10, random_state=0), lambda fitted: fitted.predict_proba(X)[:, 1]),
        (LinearRegression(), lambda fitted: fitted.predict(X)),
        (Scorer(), lambda fitted: X[:, 0]),
    ):
        expected = LossMin().choose(scores(scorer.fit(X, y)), [0], n=5)
        assert_array_equal(LossMin().choose(scorer, [0], X=X, n=5), expected)
    a, b = LogisticRegression().fit(X, y), LogisticRegression(C=1e-3).fit(X, y)
    both = np.array([a.decision_function(X), b.decision_function(X)])
    assert_array_equal(
        Diverse().choose([a, b], [0], X=sp.csr_array(X), n=5), Diverse().choose(both, [0], n=5)
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LossMin(1.0), "trade_off must lie between 0 and 1; got 1.0"),
        (lambda: LossMin(scale=0.0), "scale must be None or a finite number above 0; got 0.0"),
        (lambda: LossMin(thresholds=0), "thresholds must be an integer >= 1; got 0"),
        (lambda: Diverse(1), "folds must be an integer >= 2; got 1"),
        (lambda: Greedy().choose([1.0, np.nan], []), "The score of row 1 is nan"),
        (lambda: Greedy().choose([1.0, np.inf], []), "The score of row 1 is inf"),
        (lambda: Greedy().choose([[1.0, 2.0]], []), "one score per row"),
        (lambda: Greedy().choose(["a", "b"], []), "must be real numbers"),
        (lambda: Greedy().choose([1.0, 2.0], [], n=0), "n must be an integer >= 1; got 0"),
        (lambda: Greedy().choose([1.0, 2.0], [2]), "row number 2, but there are 2 rows"),
        (lambda: Greedy().choose([1.0, 2.0, 3.0], [0, 1, 1]), "holds a row number twice"),
        (lambda: Greedy().choose([1.0, 2.0], [True]), "mask of shape"),
        (lambda: Greedy().choose([1.0, 2.0], [0.5]), "or a mask with one boolean per row"),
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
        (lambda: simulate(np.eye(3), [0, 1, 0], seeds=(2, 1)), "has 2 relevant rows, but y has 1"),
        (lambda: simulate(np.eye(3), [0, 1, 0], seeds=(1,)), "two counts"),
        (lambda: rank_threshold([]), "empty"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


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


class OnlyProbabilities:
    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def test_scores_and_groups_at_their_limits():
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


def test_groups_come_in_the_same_order_from_any_container():
    groups = ["b", "a"] * 3
    chosen = [
        Greedy().choose(np.arange(6.0), [], groups=kind(groups))
        for kind in (list, np.array, pd.Series)
    ]
    assert_array_equal(chosen[0], chosen[1])
    assert_array_equal(chosen[0], chosen[2])
