"""Structured objectives: the fast maximum over rankings against all rankings, and fits against a
generic solver.
"""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import LinearConstraint, minimize

from forerank.design import make_design
from forerank.losses import get_loss
from forerank.objectives import AllPairs
from forerank.objectives.structured import (
    AnchoredHinge,
    AveragePrecision,
    RankWeightedHinge,
    harmonic,
    partial_auc,
    uniform,
)
from forerank.solvers import bundle

EXAMPLES = settings(max_examples=40)
RANGES = [(0.0, 1.0), (0.0, 0.5), (0.0, 0.25), (0.25, 0.75), (0.5, 1.0)]


def rankings(positive):
    """Every ranking as rows from first to last, with its average precision and swapped pairs."""
    P, N = np.flatnonzero(positive), np.flatnonzero(~positive)
    for order in permutations(range(positive.size)):
        place = np.argsort(order)
        ranks = np.sort(place[P]) + 1
        precision = np.mean(np.arange(1, P.size + 1) / ranks)
        yield precision, [(i, j) for i, j in product(P, N) if place[j] < place[i]]


def map_planes(positive):
    """Of each ranking, the constant and the coefficients of the scores in its loss."""
    m, n = positive.sum(), (~positive).sum()
    for precision, swapped in rankings(positive):
        row = np.zeros(positive.size)
        for i, j in swapped:
            row[i] -= 1.0 / (m * n)
            row[j] += 1.0 / (m * n)
        yield 1.0 - precision, row


def range_planes(positive, low, high):
    """For each positive, the losses of every set of negatives that may be ranked ahead of it."""
    P, N = np.flatnonzero(positive), np.flatnonzero(~positive)
    first, last = round(low * N.size), round(high * N.size)
    for i in P:
        planes = []
        for size in range(last + 1):
            for ahead in combinations(N, size):
                row = np.zeros(positive.size)
                row[i] -= size
                row[list(ahead)] += 1.0
                planes.append((max(size - first, 0), row))
        yield [
            (c / (P.size * (last - first)), row / (P.size * (last - first))) for c, row in planes
        ]


def total_of(planes, s):
    return max(constant + row @ s for constant, row in planes)


def draw(seed, m=3, n=4):
    rng = np.random.default_rng(seed)
    positive = rng.permutation(np.arange(m + n) < m)
    s = rng.standard_normal(m + n) * rng.choice([0.1, 1.0, 5.0])
    return positive, np.round(s) if seed % 4 == 0 else s  # every fourth with ties


def check_subgradient(objective, s, seed):
    """The plane at s touches there and is nowhere above; a constant makes no difference."""
    here = objective.at(s)
    rng = np.random.default_rng(seed)
    for other in s + rng.standard_normal((10, s.size)) * rng.choice([0.1, 1.0, 10.0]):
        assert objective.at(other).value >= here.value + here.gradient @ (other - s) - 1e-9
    assert_allclose(here.gradient.sum(), 0.0, atol=1e-12)
    assert_allclose(objective.at(s + 3.0).value, here.value, atol=1e-12)


def minimum(planes_of, X, alpha):
    """A generic solver: one variable for each maximum, one constraint for each plane."""
    d, k = X.shape[1], len(planes_of)
    rows, bounds = [], []
    for number, planes in enumerate(planes_of):
        for constant, row in planes:
            rows.append(np.concatenate([row @ X, -np.eye(k)[number]]))
            bounds.append(-constant)
    found = minimize(
        lambda v: 0.5 * alpha * v[:d] @ v[:d] + v[d:].sum(),
        np.concatenate([np.zeros(d), np.full(k, 2.0)]),
        jac=lambda v: np.concatenate([alpha * v[:d], np.ones(k)]),
        method="SLSQP",
        constraints=LinearConstraint(np.array(rows), -np.inf, np.array(bounds)),
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return found.fun


class TestAveragePrecision:
    @EXAMPLES
    @given(st.integers(0, 2**32 - 1))
    def test_worst_ranking(self, seed):
        positive, s = draw(seed, m=1 + seed % 3, n=1 + seed // 3 % 3)
        objective = AveragePrecision(positive)
        assert_allclose(objective.at(s).value, total_of(map_planes(positive), s), atol=1e-12)
        check_subgradient(objective, s, seed)

    def test_large_against_the_plain_search(self):
        """The search place by place, for every negative on its own (Yue et al., 2007)."""
        rng = np.random.default_rng(0)
        positive, s = rng.random(400) < 0.3, rng.standard_normal(400)
        up, down = -np.sort(-s[positive]), -np.sort(-s[~positive])
        m, n = up.size, down.size
        i, total = np.arange(1, m + 1), 0.0
        for j, score in enumerate(down, start=1):
            gain = (j / (i + j) - (j - 1) / (i + j - 1)) / m - (up - score) / (m * n)
            total += max(0.0, np.cumsum(gain[::-1]).max())
        assert_allclose(AveragePrecision(positive).at(s).value, total, rtol=1e-10)

    def test_fit_agrees_with_a_generic_solver(self):
        positive, X = (
            np.array([1, 0, 1, 0, 1, 0], bool),
            np.random.default_rng(1).standard_normal((6, 3)),
        )
        expected = minimum([list(map_planes(positive))], X, 0.1)
        assert_allclose(
            bundle(AveragePrecision(positive), make_design(X), 0.1, tol=1e-7).objective,
            expected,
            rtol=1e-5,
        )


class TestRankWeightedHinge:
    @EXAMPLES
    @given(st.integers(0, 2**32 - 1), st.sampled_from(RANGES))
    def test_partial_auc(self, seed, fpr_range):
        positive, s = draw(seed)
        objective = RankWeightedHinge(positive, partial_auc(*fpr_range))
        expected = sum(total_of(planes, s) for planes in range_planes(positive, *fpr_range))
        assert_allclose(objective.at(s).value, expected, atol=1e-12)
        check_subgradient(objective, s, seed)

    @EXAMPLES
    @given(st.integers(0, 2**32 - 1))
    def test_ordered_weights(self, seed):
        positive, s = draw(seed)
        weights = 1.0 / np.arange(1, 5) / np.sum(1.0 / np.arange(1, 5))
        hinges = np.maximum(0.0, 1.0 - (s[positive][:, None] - s[~positive]))
        expected = np.mean(-np.sort(-hinges, axis=1) @ weights)
        objective = RankWeightedHinge(positive, harmonic)
        assert_allclose(objective.at(s).value, expected, atol=1e-12)
        check_subgradient(objective, s, seed)

    def test_even_weights_are_ranksvm(self):
        rng = np.random.default_rng(0)
        positive, s = rng.random(200) < 0.4, rng.standard_normal(200)
        a, b = (
            RankWeightedHinge(positive, uniform).at(s),
            AllPairs(positive.astype(int), "hinge").at(s),
        )
        assert_allclose(a.value, b.value)
        assert_allclose(a.gradient, b.gradient, atol=1e-12)

    @pytest.mark.parametrize(
        "weights", [uniform, harmonic, partial_auc(0.0, 0.3), partial_auc(0.2, 0.7)]
    )
    def test_a_weight_of_two_is_two_rows(self, weights):
        rng = np.random.default_rng(0)
        for _ in range(20):
            positive, s = rng.permutation(np.arange(15) < 6), rng.standard_normal(15)
            weight = rng.integers(1, 4, 15)
            rows = np.repeat(np.arange(15), weight)
            a = RankWeightedHinge(positive, weights, weight=weight.astype(float)).at(s)
            b = RankWeightedHinge(positive[rows], weights).at(s[rows])
            assert_allclose(a.value, b.value)
            assert_allclose(a.gradient, np.bincount(rows, b.gradient), atol=1e-12)

    @pytest.mark.parametrize("fpr_range", RANGES)
    def test_partial_fits_agree_with_a_generic_solver(self, fpr_range):
        positive, X = (
            np.array([1, 0, 1, 0, 0, 1, 0], bool),
            np.random.default_rng(1).standard_normal((7, 3)),
        )
        expected = minimum(list(range_planes(positive, *fpr_range)), X, 0.1)
        found = bundle(
            RankWeightedHinge(positive, partial_auc(*fpr_range)), make_design(X), 0.1, tol=1e-7
        )
        assert_allclose(found.objective, expected, rtol=1e-5)

    def test_ordered_fits_agree_with_a_generic_solver(self):
        positive, X = (
            np.array([1, 0, 1, 0, 0], bool),
            np.random.default_rng(1).standard_normal((5, 3)),
        )
        weights = 1.0 / np.arange(1, 4) / np.sum(1.0 / np.arange(1, 4))
        planes_of = []
        for i in np.flatnonzero(positive):
            planes = []
            for order in permutations(np.flatnonzero(~positive)):
                for taken in product([0.0, 1.0], repeat=3):
                    row = np.zeros(5)
                    np.add.at(row, list(order), weights * taken)
                    row[i] -= weights @ taken
                    planes.append((weights @ taken / 2, row / 2))
            planes_of.append(planes)
        found = bundle(RankWeightedHinge(positive, harmonic), make_design(X), 0.1, tol=1e-7)
        assert_allclose(found.objective, minimum(planes_of, X, 0.1), rtol=1e-5)


class TestAnchoredHinge:
    @EXAMPLES
    @given(st.integers(0, 2**32 - 1), st.integers(0, 6))
    def test_definition(self, seed, anchor):
        positive, s = draw(seed)
        objective = AnchoredHinge(positive, anchor)
        margin = np.where(positive, s - s[anchor], s[anchor] - s)
        assert_allclose(objective.at(s).value, np.mean(get_loss("hinge").value(margin)))
        check_subgradient(objective, s, seed)

    def test_curvature_of_the_smoothed_form(self):
        rng = np.random.default_rng(0)
        positive, s = rng.random(30) < 0.5, rng.standard_normal(30)
        smooth = AnchoredHinge(positive, 4).smoothed(0.7)
        here, u = smooth.at(s), rng.standard_normal(30)
        difference = (smooth.at(s + 1e-6 * u).gradient - smooth.at(s - 1e-6 * u).gradient) / 2e-6
        assert_allclose(here.curvature_product(u), difference, atol=1e-6)
        matrix = here.curvature_matrix(np.eye(30))
        assert_allclose(np.diag(matrix), here.curvature_diagonal(), atol=1e-12)
        assert_allclose(matrix, matrix.T, atol=1e-12)

    def test_fit_agrees_with_a_generic_solver(self):
        rng = np.random.default_rng(1)
        positive, X = np.arange(12) < 5, rng.standard_normal((12, 3))
        planes_of = []
        for r in range(12):
            row = np.zeros(12)
            sign = 1.0 if positive[r] else -1.0
            row[r] -= sign / 12
            row[3] += sign / 12
            planes_of.append([(0.0, np.zeros(12)), (1.0 / 12, row)])
        found = bundle(AnchoredHinge(positive, 3), make_design(X), 0.1, tol=1e-7)
        assert_allclose(found.objective, minimum(planes_of, X, 0.1), rtol=1e-5)


@pytest.mark.parametrize(
    "ranks",
    [harmonic, uniform, partial_auc(0.1, 0.4)],
    ids=["harmonic", "uniform", "partial_auc"],
)
def test_a_row_of_weight_k_is_k_rows(ranks):
    rng = np.random.default_rng(4)
    positive, s = rng.random(40) < 0.4, rng.standard_normal(40)
    weight = rng.integers(1, 4, 40)
    here = RankWeightedHinge(positive, ranks, weight=weight.astype(float)).at(s)
    rows = np.repeat(np.arange(40), weight)
    repeated = RankWeightedHinge(positive[rows], ranks).at(s[rows])
    assert_allclose(here.value, repeated.value, rtol=1e-12)
    assert_allclose(here.gradient, np.bincount(rows, repeated.gradient), rtol=1e-9, atol=1e-15)
