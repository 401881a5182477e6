import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal

from forerank.design import make_design
from forerank.sampling import STRATEGIES, PairSampler, proposals, sampler

SOFT = [name for name in STRATEGIES if not name.startswith("hard")]
GAMMAS = [1.0, 0.0, 0.3, "uniform"]
W = np.ones(1)


def one_column(scores):
    """A design whose scores, with the weight 1, are the ones given."""
    return make_design(np.asarray(scores, dtype=float)[:, None])


def sampler_of(p, q, strategy, gamma=1.0, seed=0):
    design = one_column(np.concatenate([p, q]))
    positive = np.arange(len(p) + len(q)) < len(p)
    return PairSampler(
        design, positive, strategy=strategy, gamma=gamma, random_state=np.random.default_rng(seed)
    )


def small_scores(seed=3):
    rng = np.random.default_rng(seed)
    return np.round(2.0 * rng.standard_normal(5) + 1.0, 1), np.round(
        2.0 * rng.standard_normal(6), 1
    )


def candidates(p, q, gamma, constant=0.0):
    """Definition: (plus, minus) of all candidates, their score differences and their shares of the
    objective. The constant is that of the points.
    """
    rows, d, kind = [], [], []
    for i in range(len(p)):
        for j in range(len(q)):
            rows.append((i, len(p) + j))
            d.append(p[i] - q[j])
            kind.append("pair")
    for i in range(len(p)):
        rows.append((i, -1))
        d.append(p[i] + constant)
        kind.append("point")
    for j in range(len(q)):
        rows.append((-1, len(p) + j))
        d.append(-q[j] - constant)
        kind.append("point")
    n_pairs, n_points = len(p) * len(q), len(p) + len(q)
    g = n_pairs / (n_pairs + n_points) if gamma == "uniform" else gamma
    share = np.where(np.array(kind) == "pair", g / n_pairs, (1.0 - g) / n_points)
    possible = share > 0.0
    return (
        [r for r, ok in zip(rows, possible, strict=True) if ok],
        np.array(d)[possible],
        share[possible],
    )


def acceptance(strategy, d):
    return {
        "random": np.ones(d.size),
        "soft-close": 2.0 / (1.0 + np.exp(np.abs(d))),
        "soft-correct": 1.0 - 2.0 / (1.0 + np.exp(np.maximum(1.0 - d, 0.0))),
    }[strategy]


@pytest.fixture(params=["listed", "intervals", "anywhere"])
def route(request, monkeypatch):
    """Every way in which soft draws are made, on a population that is small enough to count."""
    if request.param != "listed":
        for module in (proposals, sampler):
            monkeypatch.setattr(module, "MOST_DRAWN", 0)
    prepared = {"listed": 1.0, "intervals": 0.0, "anywhere": 1e9}[request.param]

    def prepare(sampler):
        sampler._acceptance = prepared
        return sampler

    return prepare


def agree(counts, probabilities):
    """A chi-squared test that fails once in a million times; impossible outcomes must not occur."""
    counts, probabilities = np.asarray(counts), np.asarray(probabilities)
    assert counts[probabilities == 0.0].sum() == 0
    seen = probabilities > 0.0
    expected = counts.sum() * probabilities[seen] / probabilities[seen].sum()
    assert scipy.stats.chisquare(counts[seen], expected).pvalue > 1e-6


class TestSoftDraws:
    @pytest.mark.parametrize("strategy", SOFT)
    @pytest.mark.parametrize(("gamma", "constant"), [(1.0, 0.0), (0.3, 0.0), (0.3, -1.5)])
    def test_first_and_second_draw_follow_the_definition(self, strategy, gamma, constant, route):
        p, q = small_scores()
        rows, d, share = candidates(p, q, gamma, constant)
        place = {row: k for k, row in enumerate(rows)}
        rate = share * acceptance(strategy, d)
        first, second = np.zeros(len(rows)), np.zeros(len(rows))
        for seed in range(800):
            drawn = route(sampler_of(p, q, strategy, gamma, seed)).draw(2, W, constant)
            a, b = (
                place[row] for row in zip(drawn.plus.tolist(), drawn.minus.tolist(), strict=True)
            )
            first[a] += 1
            second[b] += 1
        agree(first, rate)
        # Without replacement: the second is drawn from what the first has left.
        total = rate.sum()
        left = [
            (rate / total * rate[k] / (total - rate))[np.arange(rate.size) != k].sum()
            for k in range(rate.size)
        ]
        agree(second, left)

    @pytest.mark.parametrize("strategy", SOFT)
    def test_later_rounds_leave_out_what_was_drawn(self, strategy, route):
        p, q = small_scores()
        rows, d, share = candidates(p, q, 1.0)
        place = {row: k for k, row in enumerate(rows)}
        rate = share * acceptance(strategy, d)
        counts = np.zeros(len(rows))
        expected = np.zeros(len(rows))
        for seed in range(800):
            sampler = route(sampler_of(p, q, strategy, 1.0, seed % 10))
            before = sampler.draw(5)
            route(sampler)._random = np.random.default_rng(seed)
            drawn = sampler.draw(1, W)
            counts[place[int(drawn.plus[0]), int(drawn.minus[0])]] += 1
            left = rate.copy()
            left[
                [
                    place[row]
                    for row in zip(before.plus.tolist(), before.minus.tolist(), strict=True)
                ]
            ] = 0.0
            expected += left / left.sum()
        agree(counts, expected)

    @pytest.mark.parametrize("strategy", SOFT)
    @pytest.mark.parametrize("n", [300, 4000])
    def test_many_at_once_from_a_large_population(self, strategy, n):
        # Quantiles of the score difference in the sample, against the weighted population.
        rng = np.random.default_rng(0)
        p, q = rng.standard_normal(400) + 2.0, rng.standard_normal(500)
        d = (p[:, None] - q).ravel()
        rate = acceptance(strategy, d)
        for acceptance_before in (1.0, 0.0):
            sampler = sampler_of(p, q, strategy)
            sampler._acceptance = acceptance_before
            drawn = sampler.draw(n, W)
            s = np.concatenate([p, q])
            sample = s[drawn.plus] - s[drawn.minus]
            edges = np.quantile(d, np.linspace(0, 1, 9))[1:-1]
            counts = np.bincount(np.digitize(sample, edges), minlength=8)
            shares = np.bincount(np.digitize(d, edges), weights=rate, minlength=8)
            if n == 300:  # few enough for the sample to be as good as independent
                agree(counts, shares / shares.sum())
            assert drawn.acceptance == pytest.approx(rate.mean(), rel=0.25)

    @pytest.mark.parametrize("strategy", STRATEGIES)
    @pytest.mark.parametrize("gamma", GAMMAS)
    def test_all_candidates_are_drawn_once(self, strategy, gamma):
        p, q = small_scores()
        rows, _, _ = candidates(p, q, gamma)
        sampler = sampler_of(p, q, strategy, gamma)
        assert sampler.n_candidates == len(rows)
        drawn = [sampler.draw(3)]
        while sampler.n_drawn < len(rows):
            drawn.append(sampler.draw(min(4, len(rows) - sampler.n_drawn), W))
        seen = [
            row
            for part in drawn
            for row in zip(part.plus.tolist(), part.minus.tolist(), strict=True)
        ]
        assert sorted(seen) == sorted(rows)
        with pytest.raises(ValueError, match="n=1 candidates were requested, but only 0 of"):
            sampler.draw(1, W)

    def test_few_wrong_pairs_among_very_many(self):
        # 30 of 4e8 pairs have a chance: plain rejection would not end.
        p, q = np.linspace(5.0, 6.0, 20_000), np.linspace(-1.0, 0.0, 20_000)
        p[:3] = -5.0
        q[:10] = -5.5
        q[10:] -= 20.0
        sampler = sampler_of(p, q, "soft-correct")
        s = np.concatenate([p, q])
        drawn = sampler.draw(100, W)
        d = s[drawn.plus] - s[drawn.minus]
        assert np.count_nonzero(d < 1.0) == 30
        assert drawn.n_rejected < 1000
        again = sampler.draw(100, W)
        assert np.all(s[again.plus] - s[again.minus] >= 1.0)

    @pytest.mark.parametrize("strategy", ["soft-close", "soft-correct"])
    @pytest.mark.parametrize("scale", [1e-6, 1.0, 30.0, 1e4])
    def test_little_is_rejected_once_all_rows_are_scored(self, strategy, scale):
        rng = np.random.default_rng(1)
        p, q = scale * (rng.standard_normal(3000) + 3.0), scale * rng.standard_normal(4000)
        sampler = sampler_of(p, q, strategy)
        sampler._acceptance = 0.0
        drawn = sampler.draw(200, W)
        assert drawn.n_rejected < 3 * 200 + 200

    def test_scores_of_few_rows_where_many_candidates_are_likely(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((100_000, 1))

        class Counted(type(make_design(X))):
            scored = 0

            def rows(self, index):
                Counted.scored += index.size
                return super().rows(index)

            def scores(self, w):
                raise AssertionError("all rows were scored")

        sampler = PairSampler(
            Counted(X),
            X[:, 0] > 0,
            strategy="soft-close",
            gamma=1.0,
            random_state=np.random.default_rng(0),
        )
        sampler.draw(100)
        sampler.draw(100, 0.1 * W)
        assert Counted.scored < 1000

    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_a_seed_gives_the_same_draws(self, strategy):
        p, q = small_scores()
        a, b = (sampler_of(p, q, strategy, 0.5, seed=7).draw(12, W) for _ in range(2))
        assert_array_equal(a.plus, b.plus)
        assert_array_equal(a.minus, b.minus)

    def test_rows_that_are_not_eligible(self):
        p, q = small_scores()
        eligible = np.ones(11, dtype=bool)
        eligible[[0, 7]] = False
        sampler = PairSampler(
            one_column(np.concatenate([p, q])),
            np.arange(11) < 5,
            strategy="random",
            gamma=0.5,
            random_state=np.random.default_rng(0),
            eligible=eligible,
        )
        assert sampler.n_candidates == 4 * 5 + 9
        drawn = sampler.draw(29)
        assert not {0, 7} & {*drawn.plus.tolist(), *drawn.minus.tolist()}


class TestHardDraws:
    @pytest.mark.parametrize("strategy", ["hard-close", "hard-correct"])
    @pytest.mark.parametrize("decimals", [0, 1, 12])
    @pytest.mark.parametrize("size", [(5, 6), (60, 40), (3000, 2000)])
    def test_the_lowest_of_what_is_left(self, strategy, decimals, size):
        rng = np.random.default_rng(decimals)
        p = np.round(rng.standard_normal(size[0]) + 0.5, decimals)
        q = np.round(rng.standard_normal(size[1]), decimals)
        sampler = sampler_of(p, q, strategy)
        s = np.concatenate([p, q])
        d = p[:, None] - q
        hardness = np.abs(d) if strategy == "hard-close" else d.copy()
        for n in (7, 3, 11):
            for w in (W, 0.5 * W):  # the scale does not matter
                if sampler.n_drawn + n > d.size:
                    return
                drawn = sampler.draw(n, w)
                found = s[drawn.plus] - s[drawn.minus]
                found = np.abs(found) if strategy == "hard-close" else found
                assert_allclose(np.sort(found), np.sort(hardness, axis=None)[:n], atol=1e-12)
                hardness[drawn.plus, drawn.minus - len(p)] = np.inf

    @pytest.mark.parametrize("constant", [0.0, 0.7])
    @pytest.mark.parametrize("strategy", ["hard-close", "hard-correct"])
    def test_points(self, strategy, constant):
        p, q = small_scores()
        sampler = sampler_of(p, q, strategy, gamma=0.0)
        d = np.concatenate([p + constant, -q - constant])
        hardness = np.abs(d) if strategy == "hard-close" else d
        drawn = [sampler.draw(3, W, constant) for _ in range(3)]
        rows = np.concatenate([np.maximum(part.plus, part.minus) for part in drawn])
        assert_allclose(hardness[rows], np.sort(hardness)[:9])

    def test_gamma_splits_the_batch(self):
        rng = np.random.default_rng(0)
        sampler = sampler_of(
            rng.standard_normal(2000), rng.standard_normal(2000), "hard-close", gamma=0.25
        )
        drawn = sampler.draw(2000, W)
        pairs = np.count_nonzero((drawn.plus >= 0) & (drawn.minus >= 0))
        assert abs(pairs - 500) < 100


class TestInverseAcceptance:
    @pytest.mark.parametrize("strategy", SOFT)
    @pytest.mark.parametrize("constant", [0.0, -0.7])
    def test_definition(self, strategy, constant, route):
        # Two rounds under different weights: each has the probabilities of its own.
        p, q = small_scores()
        sampler = route(sampler_of(p, q, strategy, 0.5))
        expected = []
        for scale in (1.0, 0.3):
            drawn = sampler.draw(8, scale * W, constant)
            with_origin = np.append(scale * np.concatenate([p, q]), -constant)
            d = with_origin[drawn.plus] - with_origin[drawn.minus]
            expected.append(1.0 / acceptance(strategy, d))
        assert_allclose(sampler.inverse_acceptance(), np.concatenate(expected), rtol=1e-9)

    def test_hard_strategies_have_none(self):
        sampler = sampler_of(*small_scores(), "hard-close", 0.5)
        sampler.draw(8, W)
        assert_allclose(sampler.inverse_acceptance(), sampler.importance())


class TestBiasCorrection:
    """The weighted mean over the sample, averaged over many samples, is the objective over all
    candidates.
    """

    @staticmethod
    def simulate(strategy, gamma, *, corrected=True, rounds=(4, 3, 3), repeats=600):
        p, q = small_scores()
        s = np.concatenate([p, q, [0.0]])
        means = []
        for seed in range(repeats):
            sampler = sampler_of(p, q, strategy, gamma, seed)
            losses = []
            for k, n in enumerate(rounds):
                # Weights that change from round to round, as in a fit; small ones, since rare
                # candidates with large importance would need far more repeats to be met at all.
                drawn = sampler.draw(
                    n, None if k == 0 else (0.4 if strategy == "soft-close" else 1.0) / k * W
                )
                losses.append(np.maximum(1.0 - (s[drawn.plus] - s[drawn.minus]), 0.0))
            weight = sampler.importance() if corrected else np.ones(sampler.n_drawn)
            means.append(np.mean(weight * np.concatenate(losses)))
        _, d, share = candidates(p, q, gamma)
        truth = np.sum(share * np.maximum(1.0 - d, 0.0))
        return (np.mean(means) - truth) / (np.std(means) / np.sqrt(repeats))

    @pytest.mark.parametrize("strategy", SOFT)
    @pytest.mark.parametrize("gamma", GAMMAS)
    def test_unbiased(self, strategy, gamma):
        assert abs(self.simulate(strategy, gamma)) < 4.5

    @pytest.mark.parametrize("strategy", ["soft-close", "soft-correct"])
    def test_biased_without(self, strategy):
        assert abs(self.simulate(strategy, 1.0, corrected=False)) > 5.0

    @pytest.mark.parametrize("strategy", ["soft-close", "soft-correct"])
    def test_nearly_unbiased_where_the_total_is_estimated(self, strategy):
        rng = np.random.default_rng(5)
        p, q = rng.standard_normal(40) + 1.0, rng.standard_normal(50)
        s = np.concatenate([p, q])
        truth = np.maximum(1.0 - (p[:, None] - q), 0.0).mean()
        for before in (0.0, 1.0):
            means = []
            for seed in range(200):
                sampler = sampler_of(p, q, strategy, seed=seed)
                sampler.draw(20)
                sampler._acceptance = before
                drawn = sampler.draw(60, W)
                loss = np.maximum(1.0 - (s[drawn.plus] - s[drawn.minus]), 0.0)
                means.append(np.mean(sampler.importance()[20:] * loss))
            # Within three standard errors, or the two per cent that the estimated total may cost.
            assert abs(np.mean(means) - truth) < 3.0 * np.std(means) / np.sqrt(200) + 0.02 * truth

    @pytest.mark.parametrize("strategy", SOFT)
    @pytest.mark.parametrize("gamma", GAMMAS)
    def test_all_drawn_is_the_objective_itself(self, strategy, gamma):
        p, q = small_scores()
        rows, _, share = candidates(p, q, gamma)
        sampler = sampler_of(p, q, strategy, gamma)
        parts = [sampler.draw(5), *(sampler.draw(2, W) for _ in range((len(rows) - 5) // 2))]
        if sampler.n_drawn < len(rows):
            parts.append(sampler.draw(1, W))
        place = {row: k for k, row in enumerate(rows)}
        order = [
            place[r]
            for part in parts
            for r in zip(part.plus.tolist(), part.minus.tolist(), strict=True)
        ]
        assert_allclose(sampler.importance() / len(rows), share[order])
