"""Ranker finds what cross-validation by hand finds, and says what it did."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV, LeaveOneOut, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from forerank import PairwiseRanker, PointwiseRanker, Ranker, TopPush, metrics
from forerank.metrics.registry import measure_named, metric_function
from forerank.selection.ranker import method_names
from forerank.selection.search import Data, Search, smoothed, spread


def data(n=400, d=5, seed=0, noise=1.0, cut=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.array([1.0, 10.0, 0.1, 1.0, 3.0])[:d] + np.arange(d)
    y = X[:, 0] + (X[:, 1] - 1) / 10 + noise * rng.standard_normal(n) > cut
    return X, y


@parametrize_with_checks(
    [Ranker(alphas=3, cv=2, random_state=0), Ranker("pos_at_top", alphas=2, cv=2, random_state=0)]
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)


class TestChoice:
    @pytest.mark.parametrize(
        ("method", "ranker"),
        [("pairs, logistic", PairwiseRanker("logistic")), ("rows, logistic", PointwiseRanker())],
    )
    def test_one_method_is_a_grid_search(self, method, ranker):
        X, y = data()
        folds = StratifiedKFold(4, shuffle=True, random_state=3)
        alphas = [1.0, 0.1, 0.01]
        chosen = Ranker("auc", methods=[method], alphas=alphas, cv=folds).fit(X, y)
        grid = GridSearchCV(
            make_pipeline(StandardScaler(), ranker), {f"{type(ranker).__name__.lower()}__alpha": alphas}, cv=folds,
            scoring="roc_auc",
        ).fit(X, y)  # fmt: skip
        assert_allclose(
            chosen.cv_results_["mean_test_score"], grid.cv_results_["mean_test_score"], atol=2e-3
        )
        alone = make_pipeline(
            StandardScaler(), clone(ranker).set_params(alpha=chosen.best_alpha_)
        ).fit(X, y)
        assert_allclose(
            chosen.decision_function(X), alone.decision_function(X), rtol=1e-6, atol=1e-8
        )

    @pytest.mark.parametrize(
        "metric", ["auc", "ap", "pos_at_top", "wmw", "ndcg@10", "pauc@0.2", "recall@20"]
    )
    def test_every_measure(self, metric):
        X, y = data()
        ranker = Ranker(metric, alphas=4, random_state=0).fit(X, y)
        results = ranker.cv_results_
        assert ranker.best_method_ in method_names(metric)
        assert set(results["method"]) == set(method_names(metric))
        assert {len(column) for column in results.values()} == {4 * len(method_names(metric))}
        place = [
            k
            for k, each in enumerate(zip(results["method"], results["alpha"], strict=True))
            if each == (ranker.best_method_, ranker.best_alpha_)
        ]
        assert ranker.best_score_ == results["mean_test_score"][place[0]]
        splits = [results[f"split{k}_test_score"][place[0]] for k in range(5)]
        assert_allclose(np.mean(splits), ranker.best_score_)
        assert ranker.best_method_ in ranker.reason_
        assert f"{ranker.best_score_:.4f}" in ranker.reason_

    def test_scores_within_the_folds_are_those_of_the_measure(self):
        X, y = data()
        folds = list(StratifiedKFold(3).split(X, y))
        ranker = Ranker("ap", methods=["rows, logistic"], alphas=[0.01], cv=folds).fit(X, y)
        for k, (train, test) in enumerate(folds):
            alone = make_pipeline(StandardScaler(), PointwiseRanker(alpha=0.01)).fit(
                X[train], y[train]
            )
            expected = metrics.average_precision(y[test], alone.decision_function(X[test]))
            assert_allclose(ranker.cv_results_[f"split{k}_test_score"], expected, atol=2e-3)

    def test_who_is_hopeless_is_left_out_early(self):
        rng = np.random.default_rng(0)
        X, y = data(3000)
        X = np.hstack([X, rng.standard_normal((3000, 1))])
        ranker = Ranker(
            "auc", methods=["rows, logistic", "top, squared hinge"], alphas=[1e-1, 1e-2], random_state=0
        ).fit(X, y)  # fmt: skip
        left_out = dict(
            zip(ranker.cv_results_["method"], ranker.cv_results_["left_out"], strict=True)
        )
        assert left_out["rows, logistic"] == ""
        assert left_out["top, squared hinge"].startswith("behind rows, logistic")
        assert "Left out early: top, squared hinge" in ranker.reason_
        assert np.isnan(ranker.cv_results_["split4_test_score"][-1])

    def test_the_same_seed_gives_the_same_bytes(self):
        X, y = data()
        first, second = (
            Ranker("ap", alphas=4, random_state=7, n_jobs=j).fit(X, y) for j in (None, 2)
        )
        assert_array_equal(first.coef_, second.coef_)
        assert first.reason_ == second.reason_
        assert first.learning_curve_ == second.learning_curve_
        assert_array_equal(
            first.cv_results_["mean_test_score"], second.cv_results_["mean_test_score"]
        )

    def test_many_rows_are_tried_on_few(self):
        X, y = data(2000)
        ranker = Ranker(alphas=3, search_rows=600, random_state=0).fit(X, y)
        assert "the choice was made on 600 of 2,000 rows" in ranker.reason_
        alone = Ranker(
            alphas=[ranker.best_alpha_], methods=[ranker.best_method_], random_state=0
        ).fit(X, y)
        assert_allclose(ranker.coef_, alone.coef_)

    def test_folds_of_row_numbers_are_of_all_rows(self):
        X, y = data(60)
        folds = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
        few, all_rows = (Ranker(alphas=2, cv=folds, search_rows=n).fit(X, y) for n in (20, None))
        assert few.best_score_ == all_rows.best_score_

    def test_a_budget_ends_the_search(self):
        X, y = data()
        ranker = Ranker(time_budget=1e-9, random_state=0).fit(X, y)
        assert ranker.best_method_ == "rows, logistic"
        assert "The time budget ended the search" in ranker.reason_
        assert ranker.decision_function(X).shape == y.shape

    @pytest.mark.parametrize("seed", [0, 1])
    def test_a_dip_at_strong_penalties_ends_nothing(self, seed):
        # Correlated columns whose best direction is one of little variance: strong penalties rank
        # by the wrong ones.
        def draw(seed, n, p=40):
            rng = np.random.default_rng(seed)
            mix = np.random.default_rng(7).standard_normal((p, p)) * 0.6 + np.eye(p)
            Z = rng.standard_normal((n, p)) @ mix
            s = Z @ np.linalg.solve(mix.T @ mix, np.random.default_rng(8).standard_normal(p)) * 3
            return Z, (s + 1.5 * rng.standard_normal(n) > np.quantile(s, 0.9)).astype(int)

        X, y = draw(100 + seed, 5000)
        ranker = Ranker(random_state=0).fit(*draw(seed, 600))
        assert metrics.roc_auc(y, ranker.decision_function(X)) > 0.97
        assert np.isfinite(ranker.cv_results_["mean_test_score"]).all()

    def test_the_depth_of_a_list_is_that_of_its_parts(self):
        X, y = data(200)
        ranker = Ranker("recall@50", methods=["rows, logistic"], alphas=[0.1], random_state=0).fit(
            X, y
        )
        whole = metrics.recall_at_k(y, ranker.decision_function(X), k=50)
        assert abs(ranker.best_score_ - whole) < 0.1
        assert ranker.best_score_ < 1.0
        with pytest.raises(ValueError, match="the first 200 of 200 rows are all of them"):
            Ranker("recall@200").fit(X, y)

    @pytest.mark.parametrize("metric", ["recall@50", "ndcg@13"])
    def test_the_score_is_the_mean_of_as_large_a_share_of_each_fold(self, metric):
        X, y = data(171)
        folds = list(StratifiedKFold(5, shuffle=True, random_state=1).split(X, y))
        ranker = Ranker(
            metric, methods=["rows, logistic"], alphas=[0.1], cv=folds, scale=False
        ).fit(X, y)
        k, found = int(metric.partition("@")[2]), []
        for train, test in folds:
            s = (
                PointwiseRanker("logistic", alpha=0.1, tol=3e-3)
                .fit(X[train], y[train])
                .decision_function(X[test])
            )
            function = metrics.recall_at_k if metric.startswith("recall") else metrics.ndcg
            found.append(function(y[test], s, k=metrics.Depth(k * test.size / 171)))
        assert_allclose(ranker.best_score_, np.mean(found))
        assert f"at {k} of 171 rows (first {100 * k / 171:.3g} %)" in ranker.reason_

    def test_the_rows_of_the_list_may_be_named(self):
        X, y = data(200)
        options = {"methods": ["rows, logistic"], "alphas": [0.1], "random_state": 0}
        named = Ranker("recall@10", list_rows=40, **options).fit(X, y)
        assert (
            named.best_score_ == Ranker("recall@50", **options).fit(X, y).best_score_
        )  # a quarter of a list
        assert named.score(X, y) == metrics.recall_at_k(y, named.decision_function(X), k=50)
        assert "recall at 10 of 40 rows (first 25 %)" in named.reason_
        with pytest.raises(ValueError, match="the first 40 of 40 rows are all of them"):
            Ranker("recall@40", list_rows=40).fit(X, y)

    def test_score_is_the_measure(self):
        X, y = data(200)
        ranker = Ranker("ap", alphas=2, random_state=0).fit(X, y)
        assert ranker.score(X, y) == metrics.average_precision(y, ranker.decision_function(X))

    def test_neighbours_have_a_say(self):
        assert_allclose(smoothed(np.array([1.0, 0.0, 4.0])), [2 / 3, 1.25, 8 / 3])
        assert_allclose(smoothed(np.array([np.nan, 2.0, 4.0])), [np.nan, 8 / 3, 10 / 3])


class TestReason:
    """The sentence on the choice, from results made up for it."""

    @staticmethod
    def reason(chosen, other, *, folds=5):
        X, y = data(100)
        search = Search(
            Ranker(methods=["pairs, logistic", "rows, logistic"], cv=folds, random_state=0),
            measure_named("auc"), np.array([1.0, 0.1, 0.01]), Data(X, y, None, None), False,
        )  # fmt: skip
        noise = 0.01 * np.random.default_rng(0).standard_normal((folds, 1))
        for candidate, means in zip(search.candidates, (chosen, other), strict=True):
            wiggle = 0.0 if candidate is search.candidates[0] else 0.2 * np.roll(noise, 1)
            candidate.results = np.asarray(means) + noise - noise.mean() + wiggle - np.mean(wiggle)
        best, place = search.best()
        assert best is search.candidates[0]
        return search.reason(best, place)

    def test_a_runner_up_with_a_higher_single_mean_is_not_called_next(self):
        text = self.reason([0.98, 0.996, 0.98], [0.7, 0.997, 0.8])
        assert text == (
            "Chosen: pairs, logistic (alpha 0.1), mean AUC 0.9960 in 5 folds; "
            "rows, logistic reached 0.9970 at its best single penalty, a difference within noise."
        )
        text = self.reason([0.9, 0.9, 0.9], [0.5, 0.999, 0.5])
        assert (
            "rows, logistic reached 0.9990 at its best single penalty, but less at the penalties beside it."
            in text
        )

    def test_a_runner_up_behind(self):
        assert "; rows, logistic reached 0.9940, a difference within noise." in self.reason(
            [0.9, 0.995, 0.9], [0.9, 0.994, 0.9]
        )
        assert "; rows, logistic reached 0.8000." in self.reason([0.9, 0.995, 0.9], [0.7, 0.8, 0.7])

    def test_singular(self):
        X, y = data(100)
        folds = [(np.arange(50), np.arange(50, 100))]
        text = (
            Ranker(methods=["pairs, logistic", "rows, logistic"], alphas=2, cv=folds)
            .fit(X, y)
            .reason_
        )
        assert "in 1 fold;" in text
        assert "one fold does not show which differences are noise." in text


class TestLinear:
    @pytest.mark.parametrize("sparse", [False, True])
    def test_weights_are_those_of_the_columns_as_they_are(self, sparse):
        X, y = data()
        X = sp.csr_matrix(X) if sparse else X
        ranker = Ranker(alphas=3, random_state=0).fit(X, y)
        assert isinstance(ranker.best_estimator_[0], MaxAbsScaler if sparse else StandardScaler)
        assert_allclose(
            ranker.decision_function(X),
            ranker.best_estimator_.decision_function(X),
            rtol=1e-9,
            atol=1e-9,
        )
        assert_allclose(ranker.predict(X), ranker.decision_function(X) > 0)

    def test_constant_columns(self):
        X, y = data()
        X[:, 2] = 7.0
        assert np.isfinite(Ranker(alphas=2, random_state=0).fit(X, y).coef_).all()

    def test_refit(self):
        X, y = data(600)
        ranker = Ranker(alphas=3, random_state=0).fit(X[:300], y[:300])
        reason, before = ranker.reason_, ranker.coef_.copy()
        ranker.refit(X, y)
        assert ranker.reason_ == reason
        assert (ranker.coef_ != before).any()
        alone = Ranker(
            methods=[ranker.best_method_], alphas=[ranker.best_alpha_], random_state=0
        ).fit(X, y)
        assert_allclose(ranker.coef_, alone.coef_)

    def test_it_lives_with_scikit_learn(self):
        X, y = load_breast_cancer(return_X_y=True)
        pipeline = make_pipeline(StandardScaler(), Ranker("ap", alphas=3, random_state=0))
        scores = cross_val_score(pipeline, X, y, scoring="average_precision", cv=3)
        assert scores.mean() > 0.97
        with sklearn.config_context(enable_metadata_routing=True):
            routed = make_pipeline(
                Ranker(alphas=2, cv=2, random_state=0).set_fit_request(sample_weight=True, qid=True)
            )
            routed.fit(X, y, sample_weight=np.ones(y.size), qid=np.arange(y.size) % 7)


class TestRows:
    def test_weights_count_as_repetitions(self):
        X, y = data(200)
        w = np.random.default_rng(0).integers(1, 3, y.size)
        rows = np.repeat(np.arange(y.size), w)
        folds = [(np.arange(100, 200), np.arange(100)), (np.arange(100), np.arange(100, 200))]
        repeated = [tuple(np.flatnonzero(np.isin(rows, part)) for part in fold) for fold in folds]
        options = {"methods": ["pairs, logistic"], "alphas": [0.1, 0.01], "scale": False}
        weighted = Ranker(cv=folds, **options).fit(X, y, sample_weight=w)
        spelled_out = Ranker(cv=repeated, **options).fit(X[rows], y[rows])
        assert_allclose(
            weighted.cv_results_["mean_test_score"],
            spelled_out.cv_results_["mean_test_score"],
            atol=1e-3,
        )
        assert_allclose(weighted.coef_, spelled_out.coef_, rtol=1e-2)

    def test_groups_are_kept_whole_and_ranked_within(self):
        rng = np.random.default_rng(0)
        n = 600
        qid = rng.integers(0, 30, n)
        shift = rng.normal(size=30)[qid] * 5
        X = np.column_stack([rng.standard_normal(n) + shift, rng.standard_normal(n)])
        y = X[:, 0] - shift + 0.5 * rng.standard_normal(n) > 0.5
        grouped = Ranker("auc", alphas=4, random_state=0).fit(X, y, qid=qid)
        assert grouped.best_method_.startswith("pairs")
        assert set(grouped.cv_results_["method"]) == set(method_names("auc"))
        top = Ranker("pos_at_top", alphas=2, random_state=0).fit(X, y, qid=[f"q{q}" for q in qid])
        assert not any(name.startswith("top") for name in top.cv_results_["method"])

    @pytest.mark.parametrize("metric", ["wmw", "ndcg@5"])
    def test_grades(self, metric):
        X, _ = data(500)
        y = np.digitize(X[:, 0] + np.random.default_rng(0).standard_normal(500), [-1, 0, 1])
        ranker = Ranker(metric, alphas=3, random_state=0).fit(X, y)
        assert all(name.startswith("pairs") for name in ranker.cv_results_["method"])
        assert set(ranker.predict(X)) <= set(y)
        assert metrics.wmw(y, ranker.decision_function(X)) > 0.7
        words = np.array(["a", "b", "c", "d"])[y]
        assert set(Ranker("wmw", alphas=2, random_state=0).fit(X, words).predict(X)) <= set(words)

    @pytest.mark.parametrize(
        "maps",
        [["quadratic"], ["nystroem"], ["fourier"], [Nystroem(n_components=20, random_state=0)]],
    )
    def test_maps(self, maps):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((600, 2))
        y = (X**2).sum(axis=1) > 2
        ranker = Ranker("auc", alphas=4, maps=maps, random_state=0).fit(X, y)
        assert ": " in ranker.best_method_
        assert ranker.best_score_ > 0.95
        assert not hasattr(ranker, "coef_")
        assert ranker.refit(X, y).decision_function(X).shape == y.shape

    def test_maps_of_one_class_are_two(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((300, 2))
        y = (X**2).sum(axis=1) > 2
        maps = [Nystroem(n_components=k, random_state=0) for k in (2, 60)]
        ranker = Ranker("auc", methods=["rows, logistic"], alphas=3, maps=maps, random_state=0).fit(
            X, y
        )
        assert ranker.best_method_ == "Nystroem 2: rows, logistic"
        assert ranker.best_estimator_["map"].n_components == 60

    def test_a_map_that_fails_is_left_out(self):
        X, y = data(100)
        ranker = Ranker(alphas=2, maps="quadratic", random_state=0).fit(sp.csr_matrix(X), y)
        left_out = dict(
            zip(ranker.cv_results_["method"], ranker.cv_results_["left_out"], strict=True)
        )
        assert left_out["quadratic: rows, logistic"].startswith("the map fails")

    def test_rows_of_no_weight_have_no_say(self):
        X, y = data(200)
        options = {"methods": ["rows, logistic"], "alphas": [0.1, 0.01], "random_state": 0}
        alone = Ranker(**options).fit(X, y)
        for kind in (np.asarray, sp.csr_matrix):
            more = Ranker(**options).fit(kind(np.vstack([X, 1e6 * np.ones((1, 5))])), np.append(y, True),
                                         sample_weight=np.append(np.ones(200), 0.0))  # fmt: skip
            assert abs(more.best_score_ - alone.best_score_) < 0.05

    def test_groups_may_be_called_anything(self):
        X, y = data(300)
        q = np.random.default_rng(0).integers(0, 20, 300)
        names = [f"g{(7 * k) % 20}" for k in q]
        fits = [
            Ranker(alphas=2, random_state=0).fit(X, y, qid=each) for each in (q, q.tolist(), names)
        ]
        assert len({ranker.best_score_ for ranker in fits}) == 1

    def test_a_rare_grade_does_not_stop_the_search(self):
        X, _ = data(300)
        y = np.append(np.digitize(X[:299, 0], [-1, 0, 1]), 9)
        assert np.isfinite(Ranker("ndcg@10", alphas=2, random_state=0).fit(X, y).best_score_)

    def test_a_failed_refit_leaves_all_as_it_was(self):
        X, y = data()
        ranker = Ranker(alphas=2, random_state=0).fit(X, y)
        before = ranker.decision_function(X)
        with pytest.raises(ValueError, match="one class"):
            ranker.refit(X[:5], np.ones(5))
        assert_array_equal(ranker.decision_function(X), before)
        assert_array_equal(ranker.classes_, [False, True])


class TestFewRows:
    def test_a_rare_class_is_kept_whole(self):
        X, y = data(4000)
        y = np.arange(4000) % 400 == 0
        X[y] += 1.0
        ranker = Ranker("ap", alphas=2, search_rows=500, random_state=0).fit(X, y)
        assert "the choice was made" not in ranker.reason_

    def test_folds_as_lists(self):
        X, y = data(60)
        folds = [(list(range(30)), list(range(30, 60))), (list(range(30, 60)), list(range(30)))]
        assert np.isfinite(Ranker(alphas=2, cv=folds).fit(X, y).best_score_)
        for cv in (LeaveOneOut(), []):
            assert "no fold has rows of both classes" in Ranker(alphas=2, cv=cv).fit(X, y).reason_

    def test_three_positives(self):
        X, y = data(1000)
        y = np.zeros(1000, dtype=int)
        y[[1, 500, 900]] = 1
        X[y == 1] += 2
        ranker = Ranker(alphas=3, random_state=0).fit(X, y)
        assert "the smaller class has 3 rows only" in ranker.reason_
        assert "split2_test_score" in ranker.cv_results_
        assert "split3_test_score" not in ranker.cv_results_

    def test_one_positive(self):
        X, y = data(30)
        y = np.arange(30) == 4
        ranker = Ranker(random_state=0).fit(X, y)
        assert "untried" in ranker.reason_
        assert np.isnan(ranker.best_score_)
        assert (
            ranker.learning_curve_["sentence"]
            == "There are too few rows to say whether more data would help."
        )

    def test_a_fold_of_one_class(self):
        X, y = data(60)
        order = np.argsort(~y)
        folds = [(order[10:], order[:10]), (order[:-10], order[-10:]), (order[::2], order[1::2])]
        ranker = Ranker(alphas=2, cv=folds).fit(X, y)
        assert np.isfinite(ranker.best_score_)
        assert np.isnan(ranker.cv_results_["split0_test_score"]).all()

    def test_a_constant_measure(self):
        rng = np.random.default_rng(0)
        X = np.zeros((50, 2))
        with pytest.warns(UserWarning, match="found nothing to learn"):
            ranker = Ranker(alphas=2, random_state=0).fit(X, rng.integers(0, 2, 50))
        assert ranker.best_score_ == 0.5


class TestMoreRows:
    def test_more_rows_help_where_there_are_few(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((400, 60))
        y = X @ rng.standard_normal(60) + 0.5 * rng.standard_normal(400) > 0
        curve = Ranker(methods=["rows, logistic"], random_state=0).fit(X, y).learning_curve_
        assert curve["more_data_helps"]
        assert "more data would help" in curve["sentence"]
        assert curve["rows"] == [80, 160, 320]
        assert curve["scores"] == sorted(curve["scores"])
        assert len(curve["std"]) == 3
        assert min(curve["std"]) > 0.0

    def test_the_spread_is_that_of_the_folds(self):
        X, y = data(300)
        ranker = Ranker(methods=["rows, logistic"], alphas=[0.1], random_state=0).fit(X, y)
        folds = [ranker.cv_results_[f"split{k}_test_score"][0] for k in range(5)]
        assert_allclose(ranker.learning_curve_["std"][-1], np.std(folds, ddof=1))
        assert_allclose(ranker.learning_curve_["scores"][-1], np.mean(folds))

    def test_more_rows_do_not_help_where_there_are_enough(self):
        X, y = data(20_000, 2)
        curve = (
            Ranker(methods=["rows, logistic"], alphas=3, random_state=0).fit(X, y).learning_curve_
        )
        assert not curve["more_data_helps"]

    def test_every_beginning_has_the_shares_of_the_classes(self):
        y = np.arange(1000) < 100
        order = spread(Data(np.zeros((1000, 1)), y, None, None), np.random.default_rng(0))
        assert sorted(order) == list(range(1000))
        for n in (20, 100, 500):
            assert abs(y[order[:n]].sum() - n / 10) <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "accuracy"}, "metric must be one of"),
        ({"metric": "recall"}, "give recall@k"),
        ({"metric": "recall@0"}, "at least 1"),
        ({"metric": "pauc@2"}, "between 0 and 1"),
        ({"metric": "pauc@1"}, "up to 1 it is the AUC"),
        ({"methods": []}, "methods is empty"),
        ({"metric": "auc@3"}, "takes no parameter"),
        ({"metric": None}, "metric must be one of"),
        ({"methods": ["magic"]}, "There is no method 'magic'"),
        ({"maps": ["magic"]}, "There is no map 'magic'"),
        ({"alphas": [-1.0]}, "alphas"),
        ({"cv": 1}, "cv"),
        ({"time_budget": 0}, "time_budget"),
        ({"search_rows": 3}, "search_rows"),
    ],
)
def test_what_cannot_be_is_said(options, message):
    X, y = data(40)
    with pytest.raises(ValueError, match=message):
        Ranker(**options).fit(X, y)


def test_methods_that_do_not_fit_the_rows():
    X, y = data(60)
    with pytest.raises(ValueError, match="takes groups"):
        Ranker(methods=["top, squared hinge"]).fit(X, y, qid=np.arange(60) % 5)
    with pytest.raises(ValueError, match="takes grades"):
        Ranker("wmw", methods=["rows, logistic"]).fit(X, np.arange(60) % 3)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        Ranker("ap").fit(X, np.arange(60) % 3)


def test_measures_by_name():
    rng = np.random.default_rng(0)
    y, s = rng.integers(0, 2, 50), rng.standard_normal(50)
    assert metric_function("auc")(y, s) == metrics.roc_auc(y, s)
    assert metric_function("recall@5")(y, s) == metrics.recall_at_k(y, s, k=5)
    assert metric_function("recall@500")(y, s) == 1.0
    assert metric_function("pauc@0.1")(y, s) == metrics.partial_auc(
        y, s, standardize="range", fpr_range=(0, 0.1)
    )


@settings(deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    n_part=st.integers(2, 30),
    more=st.integers(0, 90),
    k=st.integers(1, 200),
)
def test_as_large_a_share_of_a_part(seed, n_part, more, k):
    """Hits down to a depth that need not be whole: between two rows the count is a straight line."""
    rng, n_all = np.random.default_rng(seed), n_part + more
    y, s = rng.integers(0, 2, n_part), rng.permutation(n_part).astype(float)
    y[:2] = 0, 1
    depth = min(n_part, k * n_part / n_all)
    down = np.append(0.0, np.cumsum(y[np.argsort(-s)]))
    recall = measure_named(f"recall@{k}").for_rows(n_part, n_all)
    assert_allclose(recall.function(y, s), np.interp(depth, np.arange(n_part + 1), down) / y.sum())
    counted = np.clip(depth - np.arange(n_part), 0.0, 1.0) / np.log2(np.arange(n_part) + 2.0)
    best = counted @ np.sort(y)[::-1]
    ndcg = measure_named(f"ndcg@{k}").for_rows(n_part, n_all)
    assert_allclose(ndcg.function(y, s), counted @ y[np.argsort(-s)] / best)


def test_the_depth_of_measures_that_count_rows():
    y, s = np.arange(50) % 3 == 0, np.cos(np.arange(50))
    whole = measure_named("recall@5").for_rows(50, 50)
    assert whole.title == "recall at 5 of 50 rows (first 10 %)"
    assert whole.function(y, s) == metrics.recall_at_k(y, s, k=5)
    assert (
        measure_named("recall@50").for_rows(10, 171).title
        == "recall at 50 of 171 rows (first 29.2 %)"
    )
    assert measure_named("recall@99").for_rows(50, 50).title == "recall at 99 of 50 rows (all)"
    grouped = measure_named("ndcg@2").for_rows(
        10, 50, grouped=True
    )  # each group is a list of its own
    assert grouped.title == "NDCG at 2 of a group"
    assert grouped.function(y, s, qid=np.arange(50) // 5) == metrics.ndcg(
        y, s, k=2, qid=np.arange(50) // 5
    )
    assert measure_named("ap").for_rows(10, 50) == measure_named("ap")


def test_top_methods_are_what_they_are_called():
    X, y = data(noise=0.1)
    ranker = Ranker(
        "pos_at_top", methods=["top, squared hinge"], alphas=[1e-3], scale=False, random_state=0
    ).fit(X, y)
    assert_allclose(ranker.coef_, TopPush(alpha=1e-3).fit(X, y).coef_)


def test_a_measure_at_its_highest_does_not_choose_the_end_of_the_path():
    """Where every penalty reaches the most that is possible, none beyond the largest can be better."""
    X = np.arange(100.0)[:, None]
    ranker = Ranker(methods=["rows, logistic", "pairs, logistic"], alphas=5, random_state=0).fit(
        X, X[:, 0] >= 60
    )
    assert ranker.best_score_ == 1.0
    assert ranker.best_alpha_ == np.sort(np.unique(ranker.cv_results_["alpha"]))[2]
    assert "pairs, logistic reached the same in every fold" in ranker.reason_
    assert "5 penalties reach the same mean; the middle one of them was taken" in ranker.reason_
    assert "beyond" not in ranker.reason_
