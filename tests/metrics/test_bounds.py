import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import binom
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from forerank import PairwiseRanker, PointwiseRanker
from forerank.data.datasets import BipartiteModel, make_bipartite
from forerank.losses import get_loss
from forerank.metrics import bounds, rank_loss

SETTINGS = settings(max_examples=150)


class Scores:
    """A "ranker" whose decision function is its first column."""

    def decision_function(self, X):
        return np.asarray(X)[:, 0]


def judged(scores, y, **given):
    return bounds.report(Scores(), np.asarray(scores, dtype=float)[:, None], y, **given)


@st.composite
def scored(draw):
    """Any scores, with ties and zeros, labels of both classes, weights."""
    n = draw(st.integers(2, 30))
    scores = draw(st.lists(st.integers(-6, 6).map(lambda k: k / 3), min_size=n, max_size=n))
    y = draw(
        st.lists(st.sampled_from([-1, 1]), min_size=n, max_size=n).filter(
            lambda y: len(set(y)) == 2
        )
    )
    weight = draw(st.lists(st.floats(0.1, 3.0), min_size=n, max_size=n))
    return np.array(scores), np.array(y), np.array(weight)


class TestFormulas:
    def test_error_rates(self):
        # 4 of 10 positives missed, 1 of 10 negatives alarmed: 0.4 + 0.1 - 0.04.
        assert_allclose(bounds.error_rates_bound(0.2, 0.05, 0.5), 0.46)
        assert_allclose(bounds.error_bound(0.25, 0.5), 0.5)
        assert_allclose(bounds.balanced_error_bound(0.25), 0.5)
        assert_allclose(bounds.margin_bound(0.3), 0.6)

    def test_regrets(self):
        assert_allclose(bounds.exponential_regret_bound(0.02), 1.5 * np.sqrt(2) * np.sqrt(0.02))
        assert_allclose(bounds.logistic_regret_bound(0.04), 0.4)

    @given(st.floats(0.01, 0.99), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
    @SETTINGS
    def test_the_first_bound_is_the_tightest(self, prior, missed, alarmed):
        first = bounds.error_rates_bound(missed * prior, alarmed * (1 - prior), prior)
        assert first <= bounds.balanced_error_bound(0.5 * (missed + alarmed)) + 1e-12
        assert bounds.balanced_error_bound(0.5 * (missed + alarmed)) <= (
            bounds.error_bound(missed * prior + alarmed * (1 - prior), prior) + 1e-12
        )

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: bounds.error_bound(0.1, 0.0), "prior=0.0"),
            (lambda: bounds.error_bound(1.5, 0.5), "risk=1.5"),
            (lambda: bounds.error_rates_bound(0.6, 0.1, 0.5), "false_negative=0.6"),
            (lambda: bounds.margin_bound(-1.0), "balanced_risk=-1.0"),
            (lambda: bounds.logistic_regret_bound(float("nan")), "regret=nan"),
            (lambda: bounds.weight_deviation_bound(0.5, 0, 0.1), "n_samples must be at least 1"),
            (lambda: bounds.expected_rank_loss([1.0], [2.0]), "between 0 and 1"),
            (lambda: bounds.expected_rank_loss([1.0, 2.0], [0.5]), "give one of each per row"),
            (lambda: judged([1.0, 2.0, 3.0], [0, 1, 2]), "y has 3 classes"),
            (lambda: judged([1.0, 2.0, 3.0], [0, 1]), r"y has shape \(2,\) for 3 rows"),
            (lambda: judged([1.0, np.nan], [0, 1]), "NaN in 1 of 2 rows"),
            (
                lambda: judged([1.0, 2.0], [0, 1], sample_weight=[1.0]),
                r"sample_weight has shape \(1,\) for 2 rows",
            ),
            (lambda: judged([1.0, 2.0], [0, 1], sample_weight=[1.0, -1.0]), "not negative"),
            (
                lambda: judged([1.0, 2.0], [0, 1], sample_weight=[1.0, 1e17]),
                "share 1 of the weight",
            ),
            (lambda: judged([1.0, 2.0], [0, 1], probability=[0.0, 0.0]), "share 0 of the weight"),
            (
                lambda: bounds.expected_rank_loss([1.0, 2.0], [0.5, 0.5], sample_weight=[1.0]),
                "give one weight per row",
            ),
        ],
    )
    def test_refusals(self, call, message):
        with pytest.raises(ValueError, match=message):
            call()


class TestWeightDeviation:
    @pytest.mark.parametrize("prior", [0.5, 0.1, 0.9])
    @pytest.mark.parametrize("n", [20, 100, 1000])
    @pytest.mark.parametrize("eps", [0.05, 0.1, 0.3, 0.8])
    def test_holds_against_the_exact_probability(self, prior, n, eps):
        counts = np.arange(1, n + 1)
        share = counts / n
        far = np.abs(share - prior) / share >= eps
        exact = binom.pmf(counts, n, prior)[far].sum() + binom.pmf(0, n, prior)
        assert exact <= bounds.weight_deviation_bound(prior, n, eps) + 1e-12

    def test_the_printed_formula_does_not(self):
        n, prior, eps = 100, 0.5, 0.1
        counts = np.arange(1, n + 1)
        exact = binom.pmf(counts, n, prior)[np.abs(counts / n - prior) / (counts / n) >= eps].sum()
        assert exact > 0.3
        assert exact > 1000 * 2 * np.exp(-2 * prior * n * eps / (1 - eps))

    def test_more_rows_help(self):
        found = [bounds.weight_deviation_bound(0.2, n, 0.1) for n in (10, 1000, 100_000)]
        assert found[0] == 1.0
        assert found[0] >= found[1] > found[2]


class TestReport:
    @given(scored())
    @SETTINGS
    def test_every_bound_holds_for_any_scores(self, problem):
        scores, y, weight = problem
        found = judged(scores, y, sample_weight=weight)
        assert all(bound.holds for bound in found.bounds), str(found)
        assert_allclose(found.rank_loss, rank_loss(y, scores, sample_weight=weight), atol=1e-12)
        wrong = (y * scores <= 0) @ weight / weight.sum()
        assert_allclose(found.error, wrong, atol=1e-12)

    @given(scored(), st.integers(0, 1000))
    @SETTINGS
    def test_regret_bounds_hold_for_any_scores_and_probabilities(self, problem, seed):
        scores, y, weight = problem
        probability = np.random.default_rng(seed).beta(0.5, 0.5, scores.size)
        found = judged(scores, y, sample_weight=weight, probability=probability)
        assert {bound.equation for bound in found.bounds} == {8, 9, 10, 11, 12, 13}
        assert all(bound.holds for bound in found.bounds), str(found)
        assert found.rank_regret >= 0.0

    @pytest.mark.parametrize("kind", ["linear", "rules"])
    @pytest.mark.parametrize("prior", [0.5, 0.9])
    def test_bounds_hold_for_fitted_rankers(self, kind, prior):
        model = BipartiteModel.draw(kind, prior=prior, n_features=10, random_state=0)
        X, y, _ = model.sample(400, 1)
        X_test, y_test, probability = model.sample(3000, 2)
        for ranker in (
            PointwiseRanker("exponential"),
            PointwiseRanker("logistic", class_weight="balanced"),
            PointwiseRanker("hinge", alpha=1e-2),
            PairwiseRanker("logistic"),
            PairwiseRanker("hinge", alpha=1e-2),
            PairwiseRanker(),
            LogisticRegression(),
        ):
            found = bounds.report(ranker.fit(X, y), X_test, y_test, probability=probability)
            assert all(bound.holds for bound in found.bounds), f"{ranker}\n{found}"

    @pytest.mark.parametrize("positives", [3, 10, 17])
    def test_the_majority_classifier(self, positives):
        y = np.repeat([1, -1], [positives, 20 - positives])
        constant = np.where(positives >= 10, 1.0, -1.0) * np.ones(20)
        found = judged(constant, y)
        assert_allclose(found.error, min(positives, 20 - positives) / 20)
        assert_allclose(found.rank_loss, 0.5)
        by_equation = {bound.equation: bound.bound for bound in found.bounds[:3]}
        assert_allclose([by_equation[8], by_equation[9], by_equation[10]], 1.0)

    def test_the_perfect_ranker(self):
        y = np.repeat([-1, 1], 10)
        found = judged(50.0 * y, y)
        assert found.rank_loss == 0.0
        assert found.error == 0.0
        assert max(bound.bound for bound in found.bounds) < 1e-6

    def test_a_perfect_ranking_with_a_poor_threshold(self):
        # All rows classified positive: the error says nothing, and a shift of the scores says
        # everything.
        y = np.repeat([-1, 1], 10)
        found = judged(100.0 + 5.0 * y, y)
        assert found.rank_loss == 0.0
        assert found.error == 0.5
        rescaled = [bound.bound for bound in found.bounds if "rescaled" in bound.name]
        assert max(rescaled) < 0.05

    def test_balanced_risks_are_their_definition(self):
        rng = np.random.default_rng(0)
        scores, y = rng.standard_normal(50), np.where(rng.random(50) < 0.3, 1, -1)
        found = judged(scores, y)
        share = np.where(y == 1, np.mean(y == 1), np.mean(y == -1))
        for loss, at_zero in (
            ("exponential", 1.0),
            ("logistic", np.log(2)),
            ("hinge", 1.0),
            ("squared_hinge", 1.0),
        ):
            risk = np.mean(get_loss(loss).value(y * scores) / (2 * share)) / at_zero
            assert_allclose(found.risks[loss], risk, rtol=1e-12)

    def test_bayes_risks_are_minima(self):
        rng = np.random.default_rng(0)
        chance = rng.uniform(0.05, 0.95, 40)
        judge = bounds._Judged(np.zeros(40), chance / 40, (1 - chance) / 40)
        odds = np.log(chance / (1 - chance)) - np.log(judge.prior / (1 - judge.prior))
        for loss, scores, scale in (
            ("exponential", 0.5 * odds, 1.0),
            ("logistic", odds, np.log(2)),
        ):
            reached = judge.balanced_risk(loss, scores) * scale
            assert_allclose(judge.bayes_risk(loss), reached, rtol=1e-12)
            assert (
                judge.balanced_risk(loss, scores + 0.1 * rng.standard_normal(40)) * scale > reached
            )

    def test_with_probabilities_the_labels_do_not_matter(self):
        probability = np.array([0.1, 0.4, 0.9])
        found = [
            judged([1.0, 2.0, 3.0], y, probability=probability).rank_loss
            for y in ([0, 0, 0], [0, 1, 1])
        ]
        assert found[0] == found[1]

    def test_a_reversed_ranking(self):
        y = np.repeat([1, -1], 10)
        found = judged(np.arange(20.0) - 9.5, y, probability=np.where(y == 1, 0.8, 0.1))
        assert found.rank_loss > 0.8
        assert all(bound.holds for bound in found.bounds)

    def test_it_prints(self):
        X, y, probability = make_bipartite(300, n_features=5, random_state=0)
        shown = str(bounds.report(PointwiseRanker().fit(X, y), X, y, probability=probability))
        for words in ("rank loss", "rank regret", "(8)", "(13)", "tight to"):
            assert words in shown
        assert len({len(line) for line in shown.splitlines()[3:]}) == 1

    def test_a_classifier_of_scikit_learn_serves_too(self):
        X, y, _ = make_bipartite(300, n_features=5, random_state=0)
        assert bounds.report(LogisticRegression().fit(X, y), X, y).rank_loss < 0.3
        with pytest.raises(TypeError, match="DummyClassifier has no decision_function"):
            bounds.report(DummyClassifier().fit(X, y), X, y)


class TestBipartiteModels:
    @pytest.mark.parametrize("kind", ["linear", "rules"])
    @pytest.mark.parametrize(("prior", "risk"), [(0.5, 0.1), (0.9, 0.1), (0.2, 0.3), (0.5, 0.0)])
    def test_prior_and_bayes_risk_are_those_asked_for(self, kind, prior, risk):
        model = BipartiteModel.draw(
            kind, prior=prior, bayes_risk=risk, n_features=20, random_state=3
        )
        X, y, probability = model.sample(40_000, 4)
        assert X.min() >= 0.0
        assert X.max() <= 1.0
        assert abs(model.prior - prior) < (0.03 if kind == "rules" else 1e-4)
        assert abs(np.mean(y == 1) - model.prior) < 0.01
        assert abs(bounds.expected_rank_loss(probability, probability) - risk) < 0.005
        assert abs(rank_loss(y, probability) - risk) < 0.02
        assert set(np.round(probability, 12)) <= {
            round(model.noise, 12),
            round(1 - model.noise, 12),
        }

    def test_no_scores_do_better(self):
        X, y, probability = make_bipartite(2000, n_features=5, random_state=0)
        best = bounds.expected_rank_loss(probability, probability)
        for scores in (X[:, 0], PairwiseRanker().fit(X, y).decision_function(X), -probability):
            assert bounds.expected_rank_loss(scores, probability) >= best - 1e-12

    def test_expected_loss_is_the_mean_over_labels(self):
        rng = np.random.default_rng(0)
        scores, chance = rng.standard_normal(200), rng.uniform(size=200)
        drawn = [rank_loss(rng.random(200) < chance, scores) for _ in range(3000)]
        # A ratio of means, not a mean of ratios: equal up to terms of the order of one over the
        # rows.
        assert abs(np.mean(drawn) - bounds.expected_rank_loss(scores, chance)) < 0.003

    def test_rules_are_boxes(self):
        model = BipartiteModel.draw("rules", n_features=6, random_state=0)
        X = np.random.default_rng(0).uniform(size=(50, 6))
        expected = [
            sum(
                w * all((x[k] >= b) if up else (x[k] <= b) for k, b, up in zip(*rule, strict=True))
                for w, rule in zip(model.weights, model.rules, strict=True)
            )
            for x in X
        ]
        assert_allclose(model.target(X), expected, atol=1e-12)

    def test_few_rules_never_leave_all_rows_alike(self):
        for seed in range(12):
            model = BipartiteModel.draw("rules", n_features=1, random_state=seed)
            assert 0.0 < model.prior < 1.0
            assert np.unique(model.sample(2000, 0)[2]).size == 2

    def test_seeds_repeat_and_models_stay(self):
        first, second = (
            make_bipartite(100, "rules", n_features=5, random_state=7) for _ in range(2)
        )
        for a, b in zip(first, second, strict=True):
            np.testing.assert_array_equal(a, b)
        model = BipartiteModel.draw(n_features=5, random_state=0)
        assert np.any(model.sample(10, 1)[0] != model.sample(10, 2)[0])

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"kind": "cubic"}, "kind must be 'linear' or 'rules'"),
            ({"prior": 1.0}, "prior must lie between 0 and 1"),
            ({"bayes_risk": 0.5}, "bayes_risk must lie between 0 and 0.49"),
        ],
    )
    def test_refusals(self, given, message):
        with pytest.raises(ValueError, match=message):
            make_bipartite(10, **given)


class TestProfiledExponential:
    def data(self, n=500, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, 4))
        return X, X @ [1.0, -0.5, 0.3, 0.0] + 1.5 * rng.standard_normal(n) > 1.2

    def test_the_fit_minimises_the_profiled_loss(self):
        X, y = self.data()
        fitted = PointwiseRanker("exponential", alpha=0.0, tol=1e-9).fit(X, y)
        s = X @ fitted.coef_[0]
        up, down = np.exp(-s[y]).sum(), np.exp(s[~y]).sum()
        assert_allclose(fitted.objective_, 2 * np.sqrt(up * down) / y.size, rtol=1e-12)
        assert_allclose(fitted.intercept_, 0.5 * np.log(up / down), rtol=1e-9)
        direct = np.exp(-np.where(y, 1, -1) * fitted.decision_function(X)).mean()
        assert_allclose(fitted.objective_, direct, rtol=1e-12)

    def test_weights_do_not_change_the_ranking(self):
        # kotlowski2011, section 4.2: they multiply the profiled loss by a constant. With a penalty
        # that is the same as dividing alpha by it.
        X, y = self.data()
        n, m = y.size, y.sum()
        plain = PointwiseRanker("exponential", alpha=0.0, tol=1e-10).fit(X, y)
        balanced = PointwiseRanker(
            "exponential", alpha=0.0, tol=1e-10, class_weight="balanced"
        ).fit(X, y)
        odd = PointwiseRanker(
            "exponential", alpha=0.0, tol=1e-10, class_weight={False: 1.0, True: 37.0}
        ).fit(X, y)
        assert_allclose(balanced.coef_, plain.coef_, rtol=1e-7)
        assert_allclose(odd.coef_, plain.coef_, rtol=1e-7)
        factor = n / (2 * np.sqrt(m * (n - m)))
        penalised = PointwiseRanker(
            "exponential", alpha=0.3, tol=1e-10, class_weight="balanced"
        ).fit(X, y)
        same = PointwiseRanker("exponential", alpha=0.3 / factor, tol=1e-10).fit(X, y)
        assert_allclose(penalised.coef_, same.coef_, rtol=1e-6)

    def test_the_logistic_ranking_does_depend_on_them(self):
        X, y = self.data()
        plain = PointwiseRanker("logistic", alpha=0.0, tol=1e-10).fit(X, y)
        balanced = PointwiseRanker("logistic", alpha=0.0, tol=1e-10, class_weight="balanced").fit(
            X, y
        )
        assert np.abs(plain.coef_ - balanced.coef_).max() > 1e-3

    def test_balanced_weights_are_those_of_the_paper(self):
        X, y = self.data()
        weight = np.where(y, 1 / (2 * y.mean()), 1 / (2 * (~y).mean()))
        for loss in ("exponential", "logistic"):
            named = PointwiseRanker(loss, class_weight="balanced", tol=1e-9).fit(X, y)
            given = PointwiseRanker(loss, tol=1e-9).fit(X, y, sample_weight=weight)
            assert_allclose(named.coef_, given.coef_, rtol=1e-6)

    @pytest.mark.parametrize("scale", [1e-6, 1e3, 1e6])
    def test_no_overflow_at_any_scale(self, scale):
        X, y = self.data()
        reference = PointwiseRanker("exponential", alpha=0.0, tol=1e-8).fit(X, y)
        fitted = PointwiseRanker("exponential", alpha=0.0, tol=1e-8).fit(scale * X, y)
        assert_allclose(fitted.objective_, reference.objective_, rtol=1e-8)

    def test_one_positive_among_many(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((20_000, 5))
        y = np.zeros(20_000, dtype=bool)
        y[[5, 900]] = True
        fitted = PointwiseRanker("exponential", alpha=1e-3).fit(X, y)
        assert fitted.optimality_ <= 1e-3
        assert np.isfinite(fitted.coef_).all()
