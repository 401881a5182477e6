"""Linear models, additive ones, trees and their average: which is selected, and what it is."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from forerank import BoostedRanker, Ranker
from forerank.selection import search
from forerank.selection.average import HeldOutRows, ScoreAverage, average_weights, loss_excess
from forerank.selection.candidates import corrected_error, select_family
from forerank.selection.methods import check_families
from forerank.selection.training_rows import TrainingRows

FAST = {"alphas": 3, "cv": 3, "random_state": 0}


def rows(kind, n=400, seed=0):
    """X and y that suit a family best: a line, a curve, a corner, or line and corner."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 10))
    line, curve = X[:, :8].sum(axis=1), 2.0 * np.abs(X[:, 8])
    corner = 6.0 * ((X[:, 8] > 0.0) == (X[:, 9] > 0.5))
    s = {"linear": line, "additive": curve, "trees": corner, "average": 2.0 * line + corner}[kind]
    return X, s + 0.5 * rng.standard_normal(n) > np.mean(s)


@pytest.fixture(scope="module")
def fitted():
    """A ranker for each family, on data that suit it."""
    tried = {"additive": ["linear", "additive"]}
    return {
        kind: Ranker(families=tried.get(kind, ["linear", "trees", "average"]), **FAST).fit(
            *rows(kind)
        )
        for kind in ("linear", "additive", "trees", "average")
    }


@parametrize_with_checks(
    [Ranker(families=["linear", "trees", "average"], alphas=2, cv=2, random_state=0)]
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)


@pytest.mark.parametrize("family", ["linear", "additive", "trees", "average"])
def test_the_family_that_suits_the_data_is_selected(fitted, family):
    ranker = fitted[family]
    assert ranker.best_family_ == family
    X, y = rows(family, 2000, seed=1)
    assert roc_auc_score(y, ranker.decision_function(X)) > 0.85
    assert hasattr(ranker, "coef_") == (family == "linear")
    assert (ranker.best_alpha_ is None) == (family == "trees")
    assert (ranker.best_rounds_ is None) == (family in ("linear", "additive"))
    results = ranker.cv_results_
    assert {len(column) for column in results.values()} == {len(results["family"])}
    of_best = [m for m, f in zip(results["method"], results["family"], strict=True) if f == family]
    assert ranker.best_method_ in of_best
    assert np.isfinite(results["mean_test_score"]).any()


def test_the_reason_states_what_is_gained_over_a_linear_method(fitted):
    assert "over the best linear method" not in fitted["linear"].reason_
    for family in ("trees", "average", "additive"):
        assert "It gains 0." in fitted[family].reason_
        assert "over the best linear method" in fitted[family].reason_
    assert f"{fitted['trees'].best_rounds_} rounds" in fitted["trees"].reason_


def test_a_linear_method_that_was_dropped_at_once_has_a_gain_without_spread(monkeypatch):
    X, y = rows("trees", 2000)
    options = {"families": "linear,trees", **FAST, "cv": 5}
    ranker = Ranker(**options).fit(X, y)
    found = re.search(
        r"It gains 0\.\d{4} over the best linear method \((.+)\), which was dropped after 1 fold\.",
        ranker.reason_,
    )
    results = ranker.cv_results_
    own = [name == found[1] for name in results["method"]]
    tried = [np.isfinite(results[f"split{k}_test_score"][own]).any() for k in range(5)]
    assert tried == [True, False, False, False, False]
    monkeypatch.setattr(search, "_MANY_ROWS", 1000)
    monkeypatch.setattr(search, "_TRIAL_ROWS", 800)
    reason = Ranker(**options).fit(X, y).reason_
    assert "Linear methods were dropped on a sample of the rows." in reason


def test_a_smaller_loss_is_that_of_the_method_it_is_compared_with():
    said = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((500, 6))
        y = X[:, 0] + np.abs(X[:, 1]) + rng.standard_normal(500) > 1.5
        ranker = Ranker("recall@25", families="linear,trees,average", **FAST).fit(X, y)
        if "has the smaller logistic loss" not in ranker.reason_:
            continue
        said += 1
        found, selected, _ = ranker._found
        best, place = found.best_of("linear")
        folds = np.flatnonzero(np.isfinite(selected.results[:, 0]))
        assert f"best linear method ({best.name}), but has" in ranker.reason_
        assert selected.results[folds].mean() < best.results[folds, place].mean()
        assert found._excess["linear"] > 0.5
    assert said


@pytest.mark.parametrize("family", ["additive", "trees", "average"])
def test_a_refit_of_the_same_rows_gives_the_same_scores(fitted, family):
    X, y = rows(family)
    ranker = fitted[family]
    before = ranker.decision_function(X)
    assert_allclose(ranker.refit(X, y).decision_function(X), before, rtol=1e-6)
    assert np.isfinite(ranker.refit(X[:200], y[:200]).decision_function(X)).all()
    ranker.refit(X, y)


@pytest.mark.parametrize("family", ["linear", "additive", "trees", "average"])
def test_sparse_rows_are_scored_like_dense_ones(fitted, family):
    X, _ = rows(family, 50)
    ranker = fitted[family]
    scores = ranker.decision_function(X)
    assert_allclose(ranker.decision_function(sp.csr_matrix(X)), scores, atol=1e-9)


def test_scores_of_an_average_are_the_weighted_sum_of_its_parts(fitted):
    X, _ = rows("average")
    average = fitted["average"].best_estimator_
    assert isinstance(average, ScoreAverage)
    assert isinstance(average.estimators[1][-1], BoostedRanker)
    parts = [each.decision_function(X) for each in average.estimators]
    scores = fitted["average"].decision_function(X)
    assert_allclose(scores, average.weights @ np.array(parts))
    assert (average.weights > 0.0).all()


@pytest.mark.parametrize("family", ["trees", "average"])
def test_probabilities(family):
    X, y = rows(family, 800)
    options = {"families": "trees"} if family == "trees" else {}
    ranker = Ranker(calibrate=True, **options, **FAST).fit(X, y)
    X, y = rows(family, 4000, seed=2)
    p = ranker.predict_proba(X)[:, 1]
    order = np.argsort(ranker.decision_function(X))
    assert (np.diff(p[order]) >= 0.0).all()
    assert abs(p.mean() - y.mean()) < 0.03
    assert np.mean((p - y) ** 2) < 0.6 * np.mean((y.mean() - y) ** 2)
    assert_array_equal(ranker.predict(X), p > 0.5)


def test_groups_grades_and_weights():
    X, y = rows("trees")
    options = {"families": ["linear", "trees", "average"], **FAST}
    qid = np.arange(400) % 8
    grouped = Ranker(**options).fit(X, y, qid=qid, sample_weight=np.full(400, 2.0))
    assert grouped.best_family_ in ("trees", "average")
    grades = y.astype(int) + (X[:, 0] > 1.0)
    graded = Ranker("wmw", **options).fit(X, grades)
    assert graded.best_family_ in ("trees", "average")
    assert set(graded.predict(X)) <= set(grades)


@pytest.mark.parametrize("n_positive", [1, 5, 30])
def test_rows_without_weight_are_as_good_as_absent(n_positive):
    """Also where few rows of a class have a weight: folds and rules count those alone."""
    X, y = rows("trees")
    weight = np.where(y & (np.cumsum(y) > n_positive), 0.0, 1.0)
    left = weight > 0.0
    options = FAST | {"cv": 3, "alphas": 2}
    weighted = Ranker(**options).fit(X, y, sample_weight=weight)
    without = Ranker(**options).fit(X[left], y[left])
    assert weighted.reason_ == without.reason_
    assert_allclose(weighted.decision_function(X), without.decision_function(X), atol=1e-9)


def test_the_same_seed_gives_the_same_bytes():
    X, y = rows("average", 200)
    options = FAST | {"cv": 2, "alphas": 2}
    first, second = (Ranker(n_jobs=j, **options).fit(X, y) for j in (None, 2))
    assert first.reason_ == second.reason_
    assert_array_equal(first.decision_function(X), second.decision_function(X))


def test_each_family_that_was_not_tried_says_why():
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(ValueError, match="No model of the families") as refused:
        Ranker(families=["additive", "trees"], cv=2).fit(X, np.arange(60) == 0)
    for models, fewest in (("additive models", 50), ("trees", 10)):
        why = f"{models} were not tried with 1 row of the rarest class (at least {fewest})"
        assert why in str(refused.value)


class TestWithoutLightGBM:
    """A machine without LightGBM: trees of scikit-learn, and a sentence."""

    @pytest.fixture(autouse=True)
    def _without(self, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)

    def test_trees_of_scikit_learn_are_tried(self):
        X, y = rows("trees", 200)
        ranker = Ranker(families=["linear", "trees"], cv=2, alphas=2, random_state=0).fit(X, y)
        assert ranker.best_family_ == "trees"
        assert ranker.best_estimator_[-1].backend_ == "histogram"
        assert "LightGBM is not installed" in ranker.reason_
        assert "without trees-5-leaves" in ranker.reason_
        assert "pip install 'forerank[trees]'" in ranker.reason_

    def test_groups_have_no_trees(self):
        X, y = rows("trees", 200)
        ranker = Ranker(cv=2, alphas=2, families=["linear", "trees"], random_state=0)
        assert ranker.fit(X, y, qid=np.arange(200) % 4).best_family_ == "linear"
        assert "trees of scikit-learn take neither groups nor grades" in ranker.reason_
        with pytest.raises(ValueError, match="take neither groups nor grades"):
            Ranker(families="trees", cv=2).fit(X, y, qid=np.arange(200) % 4)


class TestWhatIsTried:
    def test_trees_have_components_of_wide_sparse_data(self):
        X = sp.random(200, 2500, 0.02, format="csr", random_state=0)
        y = np.asarray(X[:, :1200].sum(axis=1) > X[:, 1200:].sum(axis=1)).ravel()
        options = {"cv": 2, "alphas": 2, "random_state": 0}
        ranker = Ranker(families="trees", **options).fit(X, y)
        assert ranker.best_method_.startswith("components: trees-")
        assert ranker.refit(X, y).decision_function(X).shape == (200,)
        few = Ranker(**options).fit(X[:60], y[:60])
        assert "trees" not in few.cv_results_["family"]

    def test_methods_by_name(self):
        X, y = rows("trees", 200)
        ranker = Ranker(methods=["trees-5-leaves"], cv=2, random_state=0).fit(X, y)
        assert (ranker.best_family_, ranker.best_method_) == ("trees", "trees-5-leaves")
        assert set(ranker.cv_results_["family"]) == {"trees"}
        assert np.isnan(ranker.cv_results_["alpha"]).all()

    def test_the_additive_map_by_name(self):
        X, y = rows("additive", 300)
        named = Ranker(families="linear", maps="additive", **FAST).fit(X, y)
        assert named.best_method_.startswith("additive: ")
        assert named.best_family_ == "additive"

    def test_columns_that_trees_cannot_use_are_no_error(self):
        X, y = np.zeros((60, 2)), np.arange(60) % 2 == 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            ranker = Ranker(**FAST).fit(X, y)
        left_out = set(ranker.cv_results_["left_out"])
        assert (
            "cannot be fitted: Every column of X is constant; trees need a column that varies"
            in (left_out)
        )

    def test_a_budget_ends_the_search(self):
        X, y = rows("trees")
        ranker = Ranker(time_budget=1e-9, random_state=0).fit(X, y)
        assert ranker.best_family_ == "linear"

    @pytest.mark.parametrize(
        ("families", "message"),
        [
            ("forest", "There is no family 'forest'; choose among linear, additive, trees"),
            ([], "families is empty"),
            ("average", 'The family "average" needs "trees"'),
            (["linear", "average"], 'The family "average" needs "trees"'),
            (None, "families=None: give"),
            (5, "families=5: give"),
        ],
    )
    def test_families_that_do_not_exist(self, families, message):
        with pytest.raises(ValueError, match=message):
            Ranker(families=families).fit(*rows("linear", 40))

    def test_what_cannot_be_fitted_alone_is_said(self):
        wide = sp.random(90, 2500, 0.02, format="csr", random_state=0)
        y = np.arange(90) % 2 == 0
        for family in ("additive", "trees"):
            with pytest.raises(ValueError, match=f"No model of the family {family} can be"):
                Ranker(families=family, cv=2).fit(wide, y)

    def test_few_positives_have_lines_and_what_was_asked_for(self):
        X, y = rows("linear", 200)
        y = np.arange(200) < 8
        X[y] += 1.0
        options = {"cv": 2, "alphas": 2, "random_state": 0}
        assert set(Ranker(**options).fit(X, y).cv_results_["family"]) == {"linear"}
        for family in ("additive", "trees"):
            assert Ranker(families=family, **options).fit(X, y).best_family_ == family
        both = Ranker(families=["linear", "additive"], **options).fit(X, y)
        assert "additive models were not tried with 8 rows of the rarest class" in both.reason_

    def test_some_positives_are_averaged(self):
        X, y = rows("average", 800)
        kept = np.flatnonzero(~y | (np.cumsum(y) <= 45))
        ranker = Ranker(families="linear,trees,average", **FAST).fit(X[kept], y[kept])
        assert ranker.best_family_ == "average"
        assert "With 45 rows of the rarest class, families are averaged" in ranker.reason_

    def test_order_of_families(self):
        assert check_families(["trees", "linear"]) == ("linear", "trees")
        assert check_families("trees, linear") == ("linear", "trees")
        assert clone(Ranker(families=["trees"])).families == ["trees"]


class TestSelectFamily:
    """The simplest family that the average does not clearly surpass."""

    @staticmethod
    def folds(mean, seed, spread=0.01):
        noise = np.random.default_rng(seed).standard_normal(10)
        return mean + spread * (noise - noise.mean())

    def test_the_definition(self):
        lines, average = self.folds(0.80, 0), self.folds(0.803, 1)
        error = corrected_error(average - lines, 0.25)
        for gain, expected in ((0.19, "linear"), (0.21, "average")):
            shifted = lines + (average.mean() - lines.mean()) - gain * error
            results = {"linear": shifted, "average": average}
            assert select_family(results, {}, 0.25) == expected
            assert select_family(results, {"linear": 0.51}, 0.25) == "average"

    def test_a_family_above_the_average_by_chance_needs_a_loss_as_small(self):
        results = {"linear": self.folds(0.7, 0), "trees": self.folds(0.81, 1)}
        results["average"] = self.folds(0.80, 2)
        assert select_family(results, {"linear": 9.0, "trees": 0.4}, 0.25) == "trees"
        assert select_family(results, {"linear": 9.0, "trees": 1.5}, 0.25) == "average"

    def test_few_rows_of_a_class_are_averaged(self):
        lines = self.folds(0.8, 0)
        results = {"linear": lines, "average": lines - 0.01}
        assert select_family(results, {}, 0.25) == "linear"
        assert select_family(results, {}, 0.25, few=True) == "average"
        assert select_family({"linear": lines, "average": lines}, {}, 0.25, few=True) == "linear"
        assert select_family({"linear": lines, "trees": lines}, {}, 0.25, few=True) == "linear"

    def test_without_an_average_the_highest_mean_counts(self):
        results = {"linear": self.folds(0.7, 0), "trees": self.folds(0.81, 1)}
        assert select_family(results, {}, 0.25) == "trees"
        assert select_family({"linear": self.folds(0.8, 0)}, {}, 0.25) == "linear"

    def test_the_error_of_one_fold_is_zero(self):
        assert corrected_error(np.ones((1, 3)), 0.25).tolist() == [0.0, 0.0, 0.0]


class TestAverageWeights:
    """Weights that minimise the penalised loss of held-out scores."""

    @staticmethod
    def held(n=300, seed=0):
        rng = np.random.default_rng(seed)
        y = rng.random(n) < 0.4
        scores = np.column_stack(
            [y + rng.standard_normal(n), 20.0 * y + 30.0 * rng.standard_normal(n)]
        )
        return HeldOutRows(TrainingRows(None, y, None, None), np.arange(n) % 3, n), scores

    def test_they_minimise_the_objective(self):
        held, scores = self.held()
        spread = np.mean([scores[held.fold == k].std(axis=0) for k in range(3)], axis=0)
        sign = np.where(held.data.y, 1.0, -1.0)

        def objective(v):
            s = (scores / spread) @ v[:2] + v[2]
            return np.logaddexp(0.0, -sign * s).mean() + 5e-4 * (v[0] - v[1]) ** 2

        best = minimize(objective, [0.5, 0.5, 0.0], tol=1e-12).x[:2] / spread
        assert_allclose(average_weights(held, scores), best, rtol=2e-3)

    def test_a_ranker_of_the_wrong_order_has_no_weight(self):
        held, scores = self.held()
        scores[:, 1] *= -1.0
        weights = average_weights(held, scores)
        assert weights[1] == 0.0
        assert weights[0] > 0.0

    def test_constant_scores_and_groups(self):
        held, scores = self.held()
        scores[:, 0] = 1.0
        assert np.isfinite(average_weights(held, scores)).all()
        grouped = HeldOutRows(
            TrainingRows(None, held.data.y, None, np.arange(300) % 7), held.fold, 300
        )
        _, scores = self.held()
        weights = average_weights(grouped, scores)
        assert (weights > 0.0).all()
        assert loss_excess(grouped, scores[:, 0], scores @ weights) == 0.0

    def test_the_excess_is_that_of_the_fitted_losses(self):
        held, scores = self.held()
        average = scores @ average_weights(held, scores)
        sign = np.where(held.data.y, 1.0, -1.0)

        def losses(s):
            s = s / s.std()
            best = minimize(lambda v: np.logaddexp(0, -sign * (v[0] * s + v[1])).mean(), [1.0, 0.0])
            return np.logaddexp(0, -sign * (best.x[0] * s + best.x[1]))

        difference = losses(scores[:, 1]) - losses(average)
        expected = difference.mean() / (difference.std() / np.sqrt(300))
        assert_allclose(loss_excess(held, scores[:, 1], average), expected, rtol=1e-2)
        assert loss_excess(held, average, average) == 0.0

    @pytest.mark.parametrize("factor", [0.37, 1.0 / 3.0, 3.1, 1e5])
    def test_a_multiple_of_the_scores_has_no_excess(self, factor):
        """As where all of the weight is on one part: its losses differ by rounding errors alone,
        whose ratio to their own spread is any number.
        """
        held, scores = self.held()
        assert loss_excess(held, scores[:, 0], factor * scores[:, 0]) == 0.0
