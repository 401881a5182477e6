"""Recall bounds: exact probabilities of a broken promise, and the rule they replaced."""

from functools import cache
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from forerank.active import Audit, Reading, RecallBound, audit_order, recall_by_confidence
from forerank.active.stakes import (
    SPREAD,
    SPREAD_CENTRE,
    fewest_breaking,
    geometric_ratio,
    most_missing,
)

PROMISES = [(0.5, 0.6), (0.7, 0.9), (0.8, 0.5), (0.9, 0.8), (0.95, 0.95)]


def worst_case(bound, n, n_relevant, known):
    """The largest probability that the bound ever exceeds the recall, over all strategies that
    select each record with at least the chance of a random one to be relevant.

    `bound(found, R, r)` with R records unread at the last find and r now. What the strategy may
    choose at each record is a probability of relevance between missing / r and 1; the worst is
    at an end, so that dynamic programming over (found, R, r) is exact.
    """

    @cache
    def broken(found, at_last, unread):
        if bound(found, at_last, unread) > (known + found) / (known + n_relevant) + 1e-12:
            return 1.0
        missing = n_relevant - found
        if not missing:
            return 0.0
        find = broken(found + 1, unread - 1, unread - 1)
        chance = missing / unread
        at_random = chance * find
        if chance < 1.0:
            at_random += (1.0 - chance) * broken(found, at_last, unread - 1)
        return max(find, at_random)

    return broken(0, n, n)


def bounds_by_state(rule, n, known=0, before=()):
    """`bound` of `worst_case`, by the public rule; `before` are labels that came first."""

    @cache
    def bound(found, at_last, unread):
        relevant = np.zeros(n - unread, dtype=bool)
        relevant[n - at_last - found : n - at_last] = True
        relevant = np.concatenate([np.asarray(before, dtype=bool), relevant])
        return rule.lower_bound(Reading(len(before) + n, relevant, known_relevant=known))

    return bound


@pytest.mark.parametrize(("target", "confidence"), PROMISES)
@pytest.mark.parametrize("known", [0, 7])
def test_bound_holds_at_all_times_for_every_strategy_that_is_covered(target, confidence, known):
    n = 22
    bound = bounds_by_state(RecallBound(target, confidence), n, known)
    worst = [worst_case(bound, n, n_relevant, known) for n_relevant in range(1, n + 1)]
    assert max(worst) <= 1 - confidence
    assert max(worst) > 0.2 * (1 - confidence)  # the rule does stop before the end


@pytest.mark.parametrize(("target", "confidence"), PROMISES)
def test_audit_needs_no_assumption_on_what_came_before(target, confidence):
    rest = 16
    for start, found in [(3, 0), (12, 9), (60, 50)]:
        before = np.arange(start) < found
        bound = bounds_by_state(Audit(target, confidence, start=start), rest, before=before)
        for left in range(1, rest + 1):
            assert worst_case(bound, rest, left, found) <= 1 - confidence
        # Without the start, what came before would count as part of the random order.
    run = Reading(80, np.arange(70) < 40)
    assert Audit(start=60).lower_bound(run) < RecallBound().lower_bound(run)


@pytest.mark.parametrize(("target", "confidence"), [(0.5, 0.6), (0.7, 0.9)])
def test_bound_holds_whichever_records_are_undecided(target, confidence):
    """In every order of a small pool, at every time, with any of the read records undecided: the
    recall is below some bound with at most the probability 1 - confidence.

    A bound depends on the numbers of finds and undecided records and on the last of either. The
    largest bound for these numbers has the earliest irrelevant records undecided.
    """
    n = 12
    rule = RecallBound(target, confidence)

    @cache
    def bound(found, n_undecided, last, read):
        relevant, undecided = np.zeros(read, dtype=bool), np.zeros(read, dtype=bool)
        relevant[last - found : last] = True
        undecided[last - found - n_undecided : last - found] = True
        return rule.lower_bound(Reading(n, relevant, undecided=undecided))

    @cache
    def is_broken_after(places, read, n_relevant):
        irrelevant = [k for k in range(read) if k not in places]
        last = places[-1] + 1 if places else 0
        for found, extra in product(range(len(places) + 1), range(len(irrelevant) + 1)):
            end = max(last, irrelevant[extra - 1] + 1 if extra else 0)
            n_undecided = len(places) - found + extra
            if bound(found, n_undecided, end, read) > found / n_relevant + 1e-12:
                return True
        return False

    def is_broken(places):
        prefixes = ((tuple(k for k in places if k < read), read) for read in range(1, n + 1))
        return any(is_broken_after(*prefix, len(places)) for prefix in prefixes)

    for n_relevant in range(1, n + 1):
        orders = list(combinations(range(n), n_relevant))
        assert sum(map(is_broken, orders)) <= (1 - confidence) * len(orders)


@pytest.mark.parametrize(("target", "confidence"), PROMISES)
def test_stakes_of_each_number_sum_to_at_most_delta(target, confidence):
    """The sum (6) of docs/maths/stopping.md, for each number of relevant records K."""
    delta = 1 - confidence
    for n_relevant in [*range(1, 60), 100, 333, 1000]:
        total = 0.0
        for k in range(n_relevant):
            d, m = n_relevant - k, fewest_breaking(k, target)
            geometric = geometric_ratio(m, (1 - SPREAD) * delta) ** d if d >= m else 0.0
            spread = (
                SPREAD * delta * SPREAD_CENTRE / ((d + SPREAD_CENTRE - 1) * (d + SPREAD_CENTRE))
            )
            total += max(geometric, spread)
        assert total <= delta


@pytest.mark.parametrize("target", [0.5, 0.7, 0.9, 0.95])
def test_most_missing_is_the_largest_number_that_no_stake_rejects(target):
    """Bisection against the definition, number by number, with exact binomial coefficients."""
    delta = 0.2
    for found, at_last in [(0, 30), (3, 25), (9, 40), (40, 30), (95, 60)]:
        m = fewest_breaking(found, target)
        rho = geometric_ratio(m, (1 - SPREAD) * delta)
        for unread in range(at_last + 1):
            possible = []
            for d in range(unread + 1):
                run = comb(unread, d) / comb(at_last, d)
                weight = SPREAD_CENTRE / ((d + SPREAD_CENTRE - 1) * (d + SPREAD_CENTRE))
                stake = max(SPREAD * delta * weight, rho**d if d >= m else 0.0)
                possible += [d] if d == 0 or run > stake * (1 + 1e-9) else []
            found_most = most_missing(found, at_last, unread, target=target, delta=delta)
            assert found_most == max(possible)


def test_geometric_ratio_solves_its_equation():
    for m in (1, 2, 6, 100, 10_000):
        rho = geometric_ratio(m, 0.05)
        assert rho**m / (1 - rho) == pytest.approx(0.05, rel=1e-6)
        assert rho < geometric_ratio(m + 1, 0.05)


def labels(n, found):
    """n labels of which `found` are relevant, the last one among them."""
    relevant = np.zeros(n, dtype=bool)
    relevant[n - found :] = True
    return relevant


def old_boundary(found, at_last, target, confidence):
    """Unread records at which the rule with stakes delta / ((j+1)(j+2)) stopped."""
    low, high = 0, at_last + 1  # stops at low, and not at high
    while high - low > 1:
        unread = (low + high) // 2
        d = np.arange(unread + 1)
        j = np.ceil(target * (found + d) - 1e-9) - 1 - found
        d, j = d[j >= 0], j[j >= 0]
        gain = gammaln(at_last + 1.0) - gammaln(at_last - d + 1.0)
        gain -= gammaln(unread + 1.0) - gammaln(unread - d + 1.0)
        stops = np.all(gain >= np.log((j + 1) * (j + 2) / (1 - confidence)))
        low, high = (unread, high) if stops else (low, unread)
    return low


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 200),
    st.integers(0, 300),
    st.floats(0.7, 0.99),
    st.floats(0.8, 0.99),
)
def test_reads_hardly_more_than_the_old_rule_in_any_state(found, at_last, target, confidence):
    """At most one record and 1.3 % of the tail more; docs/maths/stopping.md has the exceptions."""
    rule = RecallBound(target, confidence)
    reading = Reading(found + at_last, labels(found, found))
    stop = at_last - rule.records_to_go(reading)
    old = old_boundary(found, at_last, target, confidence)
    assert stop >= old - 1 - 0.013 * at_last


@pytest.mark.parametrize("found", [0, 5, 18, 19, 40, 94, 100, 150, 400])
def test_reads_less_than_the_old_rule_at_the_default_promise(found):
    rule = RecallBound()
    for at_last in (300, 1000, 3000):
        reading = Reading(found + at_last, labels(found, found))
        stop = at_last - rule.records_to_go(reading)
        assert stop > old_boundary(found, at_last, 0.95, 0.95)


def test_reads_what_the_derivation_says_in_the_limit():
    """100 finds among the first 100 of many records: 1 - rho of the others, above the floor."""
    n = 200_000
    for target, confidence in ((0.95, 0.95), (0.9, 0.9)):
        m = fewest_breaking(100, target)
        to_go = RecallBound(target, confidence).records_to_go(Reading(n + 100, labels(100, 100)))
        rho = geometric_ratio(m, (1 - SPREAD) * (1 - confidence))
        assert to_go / n == pytest.approx(1 - rho, abs=1e-3)
        assert to_go / n > 1 - (1 - confidence) ** (1 / m)


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


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.booleans(), max_size=40),
    st.integers(0, 300),
    st.integers(0, 300),
    st.floats(0.5, 0.99),
)
def test_bounds_are_monotone(relevant, dry, unread, target):
    """They rise with irrelevant records read, fall with confidence, and are at most the share of
    the relevant ones that could be known.
    """
    relevant = np.array(relevant, dtype=bool)
    n = relevant.size + dry + unread

    def reading(n_dry):
        return Reading(n, np.concatenate([relevant, np.zeros(n_dry, dtype=bool)]))

    rule = RecallBound(target)
    bounds = [rule.lower_bound(reading(k)) for k in range(0, dry + 1, 1 + dry // 7)]
    assert np.all(np.diff(bounds) >= 0)
    by_confidence = recall_by_confidence(reading(dry), np.linspace(0.05, 0.99, 12), rule)
    assert np.all(np.diff(by_confidence) <= 0)
    assert np.all((by_confidence >= 0) & (by_confidence <= 1))


def test_recall_by_confidence_takes_the_rule():
    reading = Reading(1000, np.arange(700) < 80)
    assert recall_by_confidence(reading, [0.99])[0] == RecallBound(0.95, 0.99).lower_bound(reading)
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


def _worst_error(rule, n_relevant, n_irrelevant):
    """The largest probability of a wrong stop when records come in random order and somebody who
    knows all labels decides records out of order, at the worst times.
    """
    n = n_relevant + n_irrelevant

    @cache
    def value(before, finds, run, searched_finds, searched):
        # In the order: `before` irrelevant ones before the last find, `finds`, and `run` after it.
        left = n_relevant - finds - searched_finds, n_irrelevant - before - run - searched
        relevant = np.repeat([False, True, False], [before, finds, run])
        reading = Reading(
            n, relevant, known_relevant=searched_finds, out_of_order=searched_finds + searched
        )
        if rule.reason(reading) is not None:
            return float(finds + searched_finds < rule.target * n_relevant - 1e-9)
        if not any(left):
            return 0.0
        drawn = 0.0
        if left[0]:
            found = value(before + run, finds + 1, 0, searched_finds, searched)
            drawn += left[0] / sum(left) * found
        if left[1]:
            drawn += left[1] / sum(left) * value(before, finds, run + 1, searched_finds, searched)
        options = [drawn]
        if left[0]:
            options.append(value(before, finds, run, searched_finds + 1, searched))
        if left[1]:
            options.append(value(before, finds, run, searched_finds, searched + 1))
        return max(options)

    return value(0, 0, 0, 0, 0)


@pytest.mark.parametrize(("target", "confidence"), [(0.5, 0.5), (0.7, 0.6), (0.9, 0.8)])
@pytest.mark.parametrize("n_relevant", [1, 2, 3, 5])
def test_records_decided_out_of_order(target, confidence, n_relevant):
    rule = RecallBound(target, confidence)
    assert _worst_error(rule, n_relevant, 9) <= 1.0 - confidence + 1e-12


def test_records_decided_out_of_order_cannot_be_missing():
    reading = Reading(10, np.zeros(4, dtype=bool), known_relevant=2, out_of_order=6)
    assert RecallBound().lower_bound(reading) == 1.0
    assert RecallBound().records_to_go(reading) == 0
    some = Reading(10, np.zeros(4, dtype=bool), known_relevant=2, out_of_order=4)
    assert RecallBound().records_to_go(some) == 2


def test_more_records_read_than_there_are():
    with pytest.raises(ValueError, match="9 records were read of 5"):
        Reading(5, np.ones(9, dtype=bool))
