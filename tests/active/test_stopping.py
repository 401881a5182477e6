"""Stopping rules: their guarantee over all orders of small pools, and combinations."""

from itertools import combinations

import numpy as np
import pytest

from forerank.active import Budget, IrrelevantInARow, RankingStable, Reading, RecallBound


def stops_at(rule, relevant):
    """Records read until the rule stops; all, if it never does."""
    relevant = np.asarray(relevant, dtype=bool)
    for read in range(relevant.size + 1):
        if rule.reason(Reading(relevant.size, relevant[:read])) is not None:
            return read
    return relevant.size


@pytest.mark.parametrize(("target", "confidence"), [(0.5, 0.5), (0.6, 0.7), (0.8, 0.6), (0.9, 0.8)])
def test_recall_bound_guarantee_holds_over_all_orders(target, confidence):
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


def test_recall_bound_saves_labels_where_the_relevant_come_first():
    relevant = np.arange(2000) < 100
    assert stops_at(RecallBound(0.95, 0.95), relevant) < 1400
    assert stops_at(RecallBound(0.8, 0.9), relevant) < stops_at(RecallBound(0.95, 0.95), relevant)
    reading = Reading(2000, relevant[:1400])
    assert RecallBound().lower_bound(reading) >= 0.95
    assert RecallBound().lower_bound(Reading(2000, relevant[:100])) < 0.1
    assert RecallBound().lower_bound(Reading(10, np.ones(10, dtype=bool))) == 1.0


def test_rules_combine():
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
