"""The hinge rank loss and the bounds on AUC and WMW against plain definitions."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forerank.metrics import roc_auc, wmw
from forerank.metrics.rank_bounds import hinge_rank_bound, hinge_rank_loss, log_sigmoid_bound


def slow_loss(y, scores, threshold):
    """donmez2009, eq. 1, one row at a time; equal scores share their mean rank."""
    total = 0.0
    theta = sum(s <= threshold for s in scores) + 0.5
    for label, s in zip(y, scores, strict=True):
        rank = sum(t < s for t in scores) + (sum(t == s for t in scores) + 1) / 2
        total += max(0.5 - (1 if label else -1) * (rank - theta), 0.0)
    return total


@st.composite
def labelled_scores(draw):
    n = draw(st.integers(2, 20))
    scores = draw(st.lists(st.integers(-4, 4).map(float), min_size=n, max_size=n))
    y = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    y[0], y[1] = True, False
    return np.array(y), np.array(scores), draw(st.integers(-5, 5).map(lambda t: t + 0.5))


@settings(max_examples=200)
@given(labelled_scores())
def test_hinge_rank_loss_and_its_bound_on_the_auc(case):
    y, scores, threshold = case
    loss = hinge_rank_loss(y, scores, threshold=threshold)
    assert loss == pytest.approx(slow_loss(y, scores, threshold))
    n_below = int(np.sum(scores <= threshold))
    n_pos, n_neg = int(y.sum()), int((~y).sum())
    bound = hinge_rank_bound(loss, n_pos, n_neg, n_below)
    auc = roc_auc(y, scores)
    assert bound <= auc + 1e-12
    # The pairs out of order are the loss less (k^2 + errors) / 2.
    errors = np.sum((scores > threshold) != y)
    wrong = loss - 0.5 * ((n_below - n_neg) ** 2 + errors)
    assert auc == pytest.approx(1.0 - wrong / (n_pos * n_neg))


@pytest.mark.parametrize("n_below", range(6))
def test_the_constant_of_the_bound_is_the_largest(n_below):
    y = np.array([0, 0, 0, 1, 1])
    slack = []
    for ranks in set(permutations(range(1, 6))):
        loss = hinge_rank_loss(y, ranks, threshold=n_below + 0.5)
        slack.append(roc_auc(y, ranks) - hinge_rank_bound(loss, 2, 3, n_below))
    assert min(slack) == pytest.approx(0.0, abs=1e-12)


def test_log_sigmoid_bound_is_below_the_share_of_pairs_in_order():
    rng = np.random.default_rng(0)
    for _ in range(50):
        y, scores = rng.integers(0, 4, 30), np.round(3 * rng.normal(size=30), 1)
        pairs = scores[:, None] - scores[None, :]
        pairs = pairs[y[:, None] > y[None, :]]
        bound = log_sigmoid_bound(float(-np.logaddexp(0.0, -pairs).sum()), pairs.size)
        assert bound <= wmw(y, scores, ties=0.0)
    assert log_sigmoid_bound(-10 * np.log(2.0), 10) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hinge_rank_loss([0, 1], [1.0, np.nan]), "y_score is NaN"),
        (lambda: hinge_rank_loss([0, 0], [1.0, 2.0]), "one class only"),
        (lambda: hinge_rank_loss([0, 1], [1.0, 2.0], threshold="a"), "threshold must be a number"),
        (lambda: hinge_rank_bound(-1.0, 1, 1, 1), "loss must be"),
        (lambda: hinge_rank_bound(1.0, 0, 1, 1), "n_positive must be"),
        (lambda: hinge_rank_bound(1.0, 1, 1, 3), "n_below=3 rows are more than the 2"),
        (lambda: log_sigmoid_bound(1.0, 5), "log_likelihood must be at most 0"),
        (lambda: log_sigmoid_bound(-1.0, 0), "n_pairs must be"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
