import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import oracles
from forerank.losses import DirectLogistic, ErfcLogistic, SmoothedHinge, get_loss
from forerank.objectives import AllPairs
from forerank.pairsums import LogisticSources, margin_moments
from pair_problems import SETTINGS, problems

NAMED = [*map(get_loss, ("exponential", "hinge", "logistic", "squared", "squared_hinge"))]
LOSSES = [*NAMED, SmoothedHinge(0.3), DirectLogistic(), ErfcLogistic(1e-13)]
NO_CURVATURE = ("hinge", "erfc")


def check(loss, s, w, u, objective, expected):
    value, gradient, product = expected
    there = objective.at(s)
    assert_allclose(there.value, value, rtol=1e-10, atol=1e-25)
    # A row whose own sum cancels is judged on the scale of the largest.
    assert_allclose(
        there.gradient, gradient, rtol=1e-10, atol=1e-10 * np.abs(gradient).max() + 1e-25
    )
    if loss.name not in NO_CURVATURE:
        atol = 1e-10 * np.abs(product).max() + 1e-25
        for _ in range(5):  # the last ones may use curvatures that were kept
            assert_allclose(there.curvature_product(u), product, rtol=1e-10, atol=atol)


@pytest.mark.parametrize("loss", [get_loss("squared_hinge"), SmoothedHinge(0.3)], ids=repr)
@pytest.mark.parametrize("n_grades", [2, 4])
def test_rows_with_a_curvature(loss, n_grades):
    rng = np.random.default_rng(5)
    grade, group = rng.integers(0, n_grades, 60), rng.integers(0, 3, 60)
    weight = rng.random(60) * (rng.random(60) < 0.8)
    options = {"weight": weight, "group": group} if n_grades > 2 else {}
    there = AllPairs(grade, loss, **options).at(grade + 0.4 * rng.standard_normal(60))
    curved = there.curved_rows()
    assert 0 < curved.size < 60
    assert_array_equal(curved, np.flatnonzero(there.curvature_matrix(np.eye(60)).any(axis=0)))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
class TestAgainstTheDefinition:
    def compare(self, loss, problem, prefers, edges=None):
        s, w, grade, group, u = problem
        pairs = oracles.pairs_of(grade, group, prefers)
        pairs = [(i, j) for i, j in pairs if w[i] * w[j] > 0]
        objective = AllPairs(grade, loss, weight=w, group=group, edges=edges)
        if not pairs:
            assert objective.blocks.n_blocks == 0
            return
        check(loss, s, w, u, objective, oracles.all_pairs(loss, s, w, pairs, u))

    @SETTINGS
    @given(problem=problems())
    def test_two_classes(self, loss, problem):
        self.compare(loss, problem, lambda a, b: a > b)

    @SETTINGS
    @given(problem=problems(graded=True))
    def test_grades(self, loss, problem):
        self.compare(loss, problem, lambda a, b: a > b)

    @SETTINGS
    @given(
        problem=problems(graded=True),
        edges=st.sets(st.sampled_from([(9, 3), (9, 1), (5, 3), (5, 1), (3, 0)])),
    )
    def test_preference_graph(self, loss, problem, edges):
        self.compare(loss, problem, lambda a, b: (a, b) in edges, edges=sorted(edges))

    @pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1e3, 1e6])
    @pytest.mark.parametrize("offset", [0.0, -1e4])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_many_rows_at_every_scale(self, loss, scale, offset, weighted):
        if loss.name in ("exponential", "smoothed_hinge") and scale > 30.0:
            pytest.skip("exp overflows (see test_overflow_is_infinite); the smoothed hinge cancels")
        rng = np.random.default_rng(0)
        s = offset + scale * rng.standard_normal(2400)
        positive = rng.random(2400) < 0.2
        w = rng.random(2400) if weighted else np.ones(2400)
        u = rng.standard_normal(2400)
        objective = AllPairs(positive.astype(int), loss, weight=w if weighted else None)
        check(loss, s, w, u, objective, oracles.bipartite(loss, s, w, positive, u))

    @pytest.mark.parametrize(
        "kind", ["all equal", "two values", "one row far away", "two clusters", "float32"]
    )
    def test_peculiar_scores(self, loss, kind):
        rng = np.random.default_rng(1)
        noise = rng.standard_normal(1500)
        s = {
            "all equal": np.full(1500, 7.3),
            "two values": np.where(noise > 0, 2.0, 2.5),
            "one row far away": np.where(np.arange(1500) == 77, 300.0, noise),
            "two clusters": np.where(noise > 0, noise - 150.0, noise + 150.0),
            "float32": noise.astype(np.float32).astype(float),
        }[kind]
        positive = rng.random(1500) < 0.5
        u = rng.standard_normal(1500)
        objective = AllPairs(positive.astype(int), loss)
        check(
            loss,
            s,
            np.ones(1500),
            u,
            objective,
            oracles.bipartite(loss, s, np.ones(1500), positive, u),
        )

    @pytest.mark.parametrize("dtype", [np.int64, np.float32])
    def test_scores_of_other_types_are_those_numbers(self, loss, dtype):
        rng = np.random.default_rng(4)
        s = (3 * rng.standard_normal(1500)).astype(dtype)
        objective = AllPairs(rng.integers(0, 2, 1500), loss)
        here, expected = objective.at(s), objective.at(s.astype(float))
        assert_allclose(here.value, expected.value, rtol=1e-9)
        assert_allclose(here.gradient, expected.gradient, rtol=1e-8, atol=1e-12)

    def test_curvature_matrix_and_diagonal(self, loss):
        if loss.name in NO_CURVATURE:
            pytest.skip("this loss has no curvature here")
        rng = np.random.default_rng(2)
        grade, group = rng.integers(0, 4, 60), rng.integers(0, 3, 60)
        there = AllPairs(grade, loss, weight=rng.random(60), group=group).at(
            2 * rng.standard_normal(60)
        )
        full = np.column_stack([there.curvature_product(e) for e in np.eye(60)])
        matrix = there.curvature_matrix(np.eye(60))
        # The matrix form of the logistic loss serves preconditioners only, and rounds the scores.
        close = 0.05 if loss.name == "logistic" else 1e-12
        assert np.linalg.norm(matrix - full) <= close * np.linalg.norm(full)
        assert_allclose(there.curvature_diagonal(), np.diag(full), rtol=1e-10, atol=1e-18)
        if hasattr(there, "quadratic_form"):
            U = (
                rng.standard_normal((60, 4)) + 1e6 * group[:, None]
            )  # what a group has in common does not count
            expected = np.einsum(
                "ij,ij->j", U - 1e6 * group[:, None], full @ (U - 1e6 * group[:, None])
            )
            assert_allclose(there.quadratic_form(U), expected, rtol=1e-8)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
class TestInvariances:
    def setup_method(self):
        rng = np.random.default_rng(3)
        self.s, self.grade = 3 * rng.standard_normal(700), rng.integers(0, 5, 700)
        self.w, self.group = rng.random(700), rng.integers(0, 4, 700)
        self.order = rng.permutation(700)

    def test_row_order(self, loss):
        straight = AllPairs(self.grade, loss, weight=self.w, group=self.group).at(self.s)
        o = self.order
        shuffled = AllPairs(self.grade[o], loss, weight=self.w[o], group=self.group[o]).at(
            self.s[o]
        )
        assert_allclose(shuffled.value, straight.value, rtol=1e-12)
        assert_allclose(shuffled.gradient, straight.gradient[o], rtol=1e-9, atol=1e-15)

    def test_a_constant_added_to_the_scores(self, loss):
        objective = AllPairs(self.grade, loss, weight=self.w)
        here, moved = objective.at(self.s), objective.at(self.s + 11.25)
        assert_allclose(moved.value, here.value, rtol=1e-11)
        assert_allclose(moved.gradient, here.gradient, rtol=1e-8, atol=1e-14)
        assert abs(here.gradient.sum()) <= 1e-13 * np.abs(here.gradient).sum()

    def test_weights_are_repetitions(self, loss):
        times = np.random.default_rng(4).integers(0, 4, 700)
        rows = np.repeat(np.arange(700), times)
        weighted = AllPairs(self.grade, loss, weight=times.astype(float)).at(self.s)
        repeated = AllPairs(self.grade[rows], loss).at(self.s[rows])
        assert_allclose(weighted.value, repeated.value, rtol=1e-12)
        assert_allclose(
            weighted.gradient, np.bincount(rows, repeated.gradient, 700), rtol=1e-9, atol=1e-15
        )

    def test_gradient_is_the_derivative_of_the_value(self, loss):
        objective = AllPairs(self.grade, loss, weight=self.w)
        direction = np.sin(np.arange(700.0))
        step = 1e-6
        rise = (
            objective.at(self.s + step * direction).value
            - objective.at(self.s - step * direction).value
        )
        assert_allclose(objective.at(self.s).gradient @ direction, rise / (2 * step), rtol=1e-5)

    def test_curvature_is_the_derivative_of_the_gradient(self, loss):
        if loss.name in NO_CURVATURE:
            pytest.skip("this loss has no curvature here")
        objective = AllPairs(self.grade, loss, weight=self.w)
        direction = np.sin(np.arange(700.0))
        step = 1e-7
        rise = (
            objective.at(self.s + step * direction).gradient
            - objective.at(self.s - step * direction).gradient
        )
        product = objective.at(self.s).curvature_product(direction)
        # Pairs at a jump of the curvature may fall on either side of it within the step.
        assert np.linalg.norm(product - rise / (2 * step)) <= 2e-4 * np.linalg.norm(product)


class TestPieces:
    """Sums over chunks of sources add up."""

    @pytest.mark.parametrize("side", ["upper", "lower"])
    def test_margin_moments(self, side):
        rng = np.random.default_rng(5)
        t, s, w = rng.standard_normal(80), rng.standard_normal(500), rng.random(500)
        m = 1 - (t[:, None] - s) if side == "upper" else 1 - (s - t[:, None])
        m = np.maximum(m, 0)
        expected = (m > 0) @ w, m @ w, m**2 @ w
        whole = margin_moments(t, s, w, targets_are=side)
        parts = [margin_moments(t, s[k::3], w[k::3], targets_are=side) for k in range(3)]
        for order in range(3):
            assert_allclose(whole[order], expected[order], rtol=1e-12)
            assert_allclose(sum(p[order] for p in parts), expected[order], rtol=1e-12)

    @pytest.mark.parametrize("scale", [0.01, 3.0, 100.0, 1e4, 1e6])
    @pytest.mark.parametrize("side", ["upper", "lower"])
    def test_logistic_sources(self, scale, side):
        rng = np.random.default_rng(6)
        t, s, q = (
            scale * rng.standard_normal(900),
            scale * rng.standard_normal(4000),
            rng.standard_normal(4000),
        )
        merged = LogisticSources([], [])
        for k in range(7):
            merged = merged + LogisticSources(s[k::7], q[k::7])
        whole = LogisticSources(s, q)
        difference = t[:, None] - s if side == "upper" else s - t[:, None]
        loss = get_loss("logistic")
        for kernel, function in (
            ("loss", loss.value),
            ("slope", loss.slope),
            ("curvature", loss.curvature),
        ):
            expected = function(difference) @ q
            # Charges of either sign cancel: the scale is that of the sum of absolute values.
            atol = 1e-11 * (function(difference) @ np.abs(q)).__abs__().max() + 1e-25
            assert_allclose(
                whole.sums(t, kernel, targets_are=side), expected, rtol=1e-10, atol=atol
            )
            assert_allclose(
                merged.sums(t, kernel, targets_are=side), expected, rtol=1e-10, atol=atol
            )

    def test_nothing_sums_to_nothing(self):
        assert_array_equal(
            LogisticSources([], []).sums([1.0, 2.0], "loss", targets_are="upper"), [0.0, 0.0]
        )
        assert_array_equal(LogisticSources([1.0], [1.0]).sums([], "loss", targets_are="upper"), [])
        assert_array_equal(margin_moments([1.0], [], targets_are="upper")[0], [0.0])

    def test_bad_input(self):
        with pytest.raises(ValueError, match="vectors of one length; got"):
            LogisticSources([1.0, 2.0], [1.0])
        with pytest.raises(ValueError, match="scores must be finite"):
            LogisticSources([np.nan], [1.0])
        with pytest.raises(ValueError, match="targets must be finite"):
            LogisticSources([1.0], [1.0]).sums([np.inf], "loss", targets_are="upper")
        with pytest.raises(ValueError, match="'upper' or 'lower', got 'top'"):
            margin_moments([1.0], [1.0], targets_are="top")
        with pytest.raises(ValueError, match="got 2 and 1"):
            margin_moments([1.0], [1.0, 2.0], [1.0], targets_are="upper")


def test_overflow_is_infinite():
    assert AllPairs(np.array([0, 1]), "exponential").at(np.array([800.0, -800.0])).value == np.inf


@pytest.mark.parametrize("loss", [get_loss("logistic"), ErfcLogistic()], ids=repr)
@pytest.mark.parametrize("far", [1e17, 1e24, np.inf, np.nan])
def test_scores_out_of_reach_have_an_infinite_value(loss, far):
    s = np.linspace(-1.0, 1.0, 4000)
    s[7] = far
    there = AllPairs(np.arange(4000) % 2, loss).at(s)
    assert there.value == np.inf
    assert np.isfinite(there.gradient).all()


def test_wide_scores_of_few_rows_are_summed_pair_by_pair():
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 4, 150), 40.0 * rng.standard_normal(150)
    there, direct = (AllPairs(y, loss).at(s) for loss in (get_loss("logistic"), DirectLogistic()))
    assert_allclose(there.value, direct.value, rtol=1e-14)
    assert_array_equal(there._small, True)
