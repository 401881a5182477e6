"""Recall bounds: exact probabilities of a broken promise, and the rule they replaced."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from forerank.active import Audit, Reading, RecallBound, audit_order, recall_by_confidence
from forerank.active.stakes import fewest_breaking, geometric_ratio, ratios

PROMISES = [(0.5, 0.6), (0.7, 0.9), (0.8, 0.5), (0.9, 0.8), (0.95, 0.95)]


def labels(n, found):
    """n labels of which `found` are relevant, the last one among them."""
    relevant = np.zeros(n, dtype=bool)
    relevant[n - found :] = True
    return relevant


def broken_probability(boundary, n, n_relevant, is_broken):
    """The exact probability that a rule stops while `is_broken(found)`, in a random order.

    `boundary(found, R)`: unread records at which it stops, R having been unread at the last find.
    """
    reached = {n: Fraction(1)}
    broken = Fraction(0)
    for found in range(n_relevant):
        missing = n_relevant - found
        following: dict[int, Fraction] = {}
        for at_last, probability in reached.items():
            stop, ways = boundary(found, at_last), comb(at_last, missing)
            broken += is_broken(found) * probability * Fraction(comb(stop, missing), ways)
            for unread in range(max(stop, missing - 1), at_last):
                share = Fraction(comb(unread, missing - 1), ways)
                following[unread] = following.get(unread, Fraction(0)) + probability * share
        reached = following
    return broken


@pytest.mark.parametrize(("target", "confidence"), PROMISES)
@pytest.mark.parametrize("known", [0, 7])
def test_promise_holds_exactly_in_random_order(target, confidence, known):
    n = 26
    rule = RecallBound(target, confidence)
    table = {
        (found, at_last): at_last
        - rule.records_to_go(Reading(n, labels(n - at_last, found), known_relevant=known))
        for found in range(n + 1)
        for at_last in range(n - found + 1)
    }
    for n_relevant in range(1, n + 1):
        total = n_relevant + known

        def is_broken(found, total=total):
            return found + known < target * total - 1e-9

        probability = broken_probability(
            lambda found, at_last: table[found, at_last], n, n_relevant, is_broken
        )
        assert probability <= 1 - confidence


@pytest.mark.parametrize(("target", "confidence"), PROMISES)
def test_audit_needs_no_assumption(target, confidence):
    """Whatever was found before, and whatever is left: the audit's promise holds."""
    rest = 16
    for start, before in [(3, 0), (12, 9), (60, 50)]:
        rule = Audit(target, confidence, start=start)
        first = np.arange(start) < before
        table = {
            (found, at_last): at_last
            - rule.records_to_go(
                Reading(start + rest, np.concatenate([first, labels(rest - at_last, found)]))
            )
            for found in range(rest + 1)
            for at_last in range(rest - found + 1)
        }
        for left in range(1, rest + 1):

            def is_broken(found, before=before, left=left):
                return before + found < target * (before + left) - 1e-9

            probability = broken_probability(
                lambda found, at_last, table=table: table[found, at_last], rest, left, is_broken
            )
            assert probability <= 1 - confidence


@pytest.mark.parametrize(("target", "confidence"), PROMISES)
def test_stakes_of_each_number_sum_to_less_than_delta(target, confidence):
    """The sum (3) of docs/maths/stopping.md, for each number of relevant records."""
    x = ratios(target, 1 - confidence, 900)
    for top in range(x.size):
        k = np.arange(top + 1)
        missing = fewest_breaking(top, target) + top - k
        assert np.sum(x[k] ** missing) <= 0.95 * (1 - confidence)
    assert np.array_equal(ratios(target, 1 - confidence, 70), x[:70])


def test_geometric_ratio_solves_its_equation():
    m = np.array([1, 2, 6, 100])
    x = geometric_ratio(m, 0.05)
    np.testing.assert_allclose(x**m / (1 - x), 0.05)


def old_boundary(found, at_last, target, confidence):
    """Unread records at which the rule with stakes delta / ((j+1)(j+2)) stopped."""
    for unread in range(at_last, -1, -1):
        d = np.arange(unread + 1)
        j = np.ceil(target * (found + d) - 1e-9) - 1 - found
        d, j = d[j >= 0], j[j >= 0]
        gain = gammaln(at_last + 1.0) - gammaln(at_last - d + 1.0)
        gain -= gammaln(unread + 1.0) - gammaln(unread - d + 1.0)
        if np.all(gain >= np.log((j + 1) * (j + 2) / (1 - confidence))):
            return unread
    return 0


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 200),
    st.integers(0, 300),
    st.floats(0.5, 0.99),
    st.floats(0.5, 0.99),
)
def test_reads_at_most_one_record_more_than_the_old_rule(found, at_last, target, confidence):
    rule = RecallBound(target, confidence)
    reading = Reading(found + at_last, labels(found, found))
    stop = at_last - rule.records_to_go(reading)
    assert stop >= old_boundary(found, at_last, target, confidence) - 1


def test_reads_no_more_than_the_old_rule_with_few_finds():
    """At 95 % and 95 % no state with up to 145 finds and 60 unread records reads more."""
    rule = RecallBound()
    for found in range(0, 146, 5):
        for at_last in range(0, 61, 3):
            reading = Reading(found + at_last, labels(found, found))
            stop = at_last - rule.records_to_go(reading)
            assert stop >= old_boundary(found, at_last, 0.95, 0.95)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.booleans(), max_size=60), st.integers(0, 60), st.integers(0, 20), st.data())
def test_records_to_go_agrees_with_reason(relevant, unread, known, data):
    relevant = np.array(relevant, dtype=bool)
    undecided = np.array(data.draw(st.lists(st.booleans(), min_size=relevant.size,
                                            max_size=relevant.size)), dtype=bool)  # fmt: skip
    rule = RecallBound(0.8, 0.7)

    def after(n):
        more = np.zeros(n, dtype=bool)
        return Reading(
            relevant.size + unread,
            np.concatenate([relevant, more]),
            known_relevant=known,
            undecided=np.concatenate([undecided, more]),
        )

    to_go = rule.records_to_go(after(0))
    stops = [rule.reason(after(n)) is not None for n in range(unread + 1)]
    assert stops == [n >= to_go for n in range(unread)] + stops[-1:]
    assert stops[-1] or to_go == unread


def test_undecided_records_restart_the_run_and_count_as_missing():
    relevant = np.arange(300) < 60
    undecided = np.arange(300) == 200
    plain, rule = Reading(400, relevant), RecallBound(0.9, 0.9)
    held = Reading(400, relevant, undecided=undecided)
    as_find = Reading(400, relevant | undecided)
    assert rule.lower_bound(held) == pytest.approx(rule.lower_bound(as_find) * 60 / 61)
    assert rule.lower_bound(held) < rule.lower_bound(plain)
    complete = Reading(300, relevant, undecided=undecided)
    assert rule.lower_bound(complete) == 60 / 61
    decided = Reading(300, relevant, undecided=relevant)
    assert rule.lower_bound(decided) == 1.0
    with pytest.raises(ValueError, match=r"undecided has shape \(2,\)"):
        Reading(300, relevant, undecided=relevant[:2])


def test_known_relevant_records_count_in_the_recall():
    relevant = np.arange(200) < 20
    rule = RecallBound(0.9, 0.9)
    alone = rule.lower_bound(Reading(400, relevant))
    assert rule.lower_bound(Reading(400, relevant, known_relevant=30)) > alone
    assert rule.lower_bound(Reading(200, relevant, known_relevant=3)) == 1.0


def test_recall_by_confidence_falls_with_confidence():
    reading = Reading(1000, np.arange(700) < 80)
    confidences = np.array([0.99, 0.5, 0.8, 0.9, 0.95])
    bounds = recall_by_confidence(reading, confidences)
    assert np.all(np.diff(bounds[np.argsort(confidences)]) <= 0)
    assert np.all(bounds[:1] >= RecallBound(0.95, 0.99).lower_bound(reading))
    audit = Audit(0.9, 0.9, start=100)
    assert recall_by_confidence(reading, [0.9], audit)[0] == audit.lower_bound(reading)
    assert recall_by_confidence(reading, []).size == 0


def test_bound_rises_before_the_target_is_reached():
    bounds = [RecallBound().lower_bound(Reading(5000, np.arange(n) < 100))
              for n in range(100, 5001, 100)]  # fmt: skip
    assert np.all(np.diff(bounds) >= 0)
    assert len({round(bound, 3) for bound in bounds if 0.1 < bound < 0.95}) > 5
    assert bounds[-1] == 1.0


def test_audit_before_its_start_and_its_order():
    audit = Audit(start=5)
    assert audit.reason(Reading(9, np.ones(4, dtype=bool))) is None
    with pytest.raises(ValueError, match="starts after 5 records and 4 were read"):
        audit.lower_bound(Reading(9, np.ones(4, dtype=bool)))
    order = audit_order([7, 3, 5], seed=1)
    assert sorted(order) == [3, 5, 7]
    assert np.array_equal(order, audit_order([5, 7, 3], seed=1))
