"""Sampling of pairs within groups, against lists of all candidates."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

from forerank.design import make_design
from forerank.sampling import STRATEGIES, PairSampler, proposals, sampler

SOFT = [name for name in STRATEGIES if not name.startswith("hard")]
W = np.ones(1)


def rows(n, n_groups, seed=0, decimals=1):
    """Scores, classes and groups; the last group has one class only."""
    rng = np.random.default_rng(seed)
    s = np.round(1.5 * rng.standard_normal(n), decimals)
    positive = rng.random(n) < 0.4
    group = rng.integers(n_groups, size=n)
    positive[group == n_groups - 1] = True
    return s, positive, group


def sampler_of(s, positive, group, strategy, gamma=1.0, seed=0, eligible=None):
    return PairSampler(
        make_design(s[:, None]),
        positive,
        strategy=strategy,
        gamma=gamma,
        random_state=np.random.default_rng(seed),
        eligible=eligible,
        group=group,
    )


def candidates(s, positive, group, gamma):
    """Definition: (plus, minus) of all candidates, their score differences and shares."""
    pairs = [
        (i, j)
        for i in np.flatnonzero(positive)
        for j in np.flatnonzero(~positive)
        if group[i] == group[j]
    ]
    points = [(i, -1) if positive[i] else (-1, i) for i in range(s.size)]
    g = len(pairs) / (len(pairs) + len(points)) if gamma == "uniform" else gamma
    share = [g / len(pairs)] * len(pairs) + [(1.0 - g) / len(points)] * len(points)
    with_origin = np.append(s, 0.0)
    d = [with_origin[i] - with_origin[j] for i, j in pairs + points]
    kept = np.array(share) > 0.0
    keys = [row for row, ok in zip(pairs + points, kept, strict=True) if ok]
    return keys, np.array(d)[kept], np.array(share)[kept]


def drawn_rows(drawn):
    return list(zip(drawn.plus.tolist(), drawn.minus.tolist(), strict=True))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("gamma", [1.0, 0.3, "uniform"])
def test_all_candidates_are_drawn_once(strategy, gamma):
    problem = rows(25, 4)
    known, _, share = candidates(*problem, gamma)
    drawing = sampler_of(*problem, strategy, gamma)
    assert drawing.n_candidates == len(known)
    seen = drawn_rows(drawing.draw(3))
    while drawing.n_drawn < len(known):
        seen += drawn_rows(drawing.draw(min(4, len(known) - drawing.n_drawn), W))
    assert sorted(seen) == sorted(known)
    if strategy in SOFT:
        place = {row: k for k, row in enumerate(known)}
        order = [place[row] for row in seen]
        assert_allclose(drawing.importance() / len(known), share[order])


@pytest.mark.parametrize("route", ["listed", "intervals", "anywhere"])
@pytest.mark.parametrize("strategy", SOFT)
@pytest.mark.parametrize("gamma", [1.0, 0.3])
def test_soft_draws_follow_the_definition(strategy, gamma, route, monkeypatch):
    if route != "listed":
        for module in (proposals, sampler):
            monkeypatch.setattr(module, "MOST_DRAWN", 0)
    problem = rows(14, 3, seed=1)
    known, d, share = candidates(*problem, gamma)
    probability = {
        "random": np.ones(d.size),
        "soft-close": 2.0 / (1.0 + np.exp(np.abs(d))),
        "soft-correct": np.tanh(0.5 * np.maximum(1.0 - d, 0.0)),
    }[strategy]
    place = {row: k for k, row in enumerate(known)}
    counts = np.zeros(len(known))
    for seed in range(600):
        drawing = sampler_of(*problem, strategy, gamma, seed)
        drawing._acceptance = {"listed": 1.0, "intervals": 0.0, "anywhere": 1e9}[route]
        counts[place[drawn_rows(drawing.draw(1, W))[0]]] += 1
    rate = share * probability
    assert counts[rate == 0.0].sum() == 0
    expected = counts.sum() * rate[rate > 0.0] / rate.sum()
    assert scipy.stats.chisquare(counts[rate > 0.0], expected).pvalue > 1e-6


@pytest.mark.parametrize("strategy", ["hard-close", "hard-correct"])
@pytest.mark.parametrize("decimals", [0, 1, 12])
@pytest.mark.parametrize("size", [(12, 3), (150, 30), (3000, 7), (3000, 2)])
def test_hard_draws_take_the_lowest_of_what_is_left(strategy, decimals, size):
    s, positive, group = rows(*size, seed=2, decimals=decimals)
    drawing = sampler_of(s, positive, group, strategy)
    i, j = np.nonzero(positive[:, None] & ~positive & (group[:, None] == group))
    hardness = s[i] - s[j]
    hardness = np.abs(hardness) if strategy == "hard-close" else hardness
    left = {(a, b): h for a, b, h in zip(i.tolist(), j.tolist(), hardness.tolist(), strict=True)}
    for n in (4, 2, 5, 11):
        if drawing.n_drawn + n > len(left):
            return
        found = [left.pop(row) for row in drawn_rows(drawing.draw(n, W))]
        lowest = sorted([*found, *left.values()])[:n]
        assert_allclose(sorted(found), lowest, atol=1e-12)


def test_rows_that_are_not_eligible():
    s, positive, group = rows(40, 5)
    eligible = np.random.default_rng(0).random(40) < 0.7
    drawing = sampler_of(s, positive, group, "random", gamma=0.5, eligible=eligible)
    drawn = drawn_rows(drawing.draw(drawing.n_candidates))
    kept = np.flatnonzero(eligible)
    known, _, _ = candidates(s[kept], positive[kept], group[kept], 0.5)
    origin = np.append(kept, -1)
    assert sorted(drawn) == sorted((origin[a], origin[b]) for a, b in known)
