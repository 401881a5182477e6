"""Ranker finds what cross-validation by hand finds, and says what it did."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV, LeaveOneOut, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from forerank import PairwiseRanker, PointwiseRanker, Ranker, metrics
from forerank.metrics.top_k import Depth
from forerank.selection.ranker import method_names


@parametrize_with_checks(
    [
        Ranker(families="linear", alphas=3, cv=2, random_state=0),
        Ranker("pos_at_top", families="linear", alphas=2, cv=2, random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)


class TestChoice:
    @pytest.mark.parametrize(
        ("method", "ranker"),
        [
            ("pairwise-logistic", PairwiseRanker("logistic")),
            ("pointwise-logistic", PointwiseRanker()),
        ],
    )
    def test_one_method_is_a_grid_search(self, method, ranker, data):
        X, y = data()
        folds = StratifiedKFold(4, shuffle=True, random_state=3)
        alphas = [1.0, 0.1, 0.01]
        chosen = Ranker("auc", methods=[method], alphas=alphas, cv=folds).fit(X, y)
        pipeline = make_pipeline(StandardScaler(), ranker)
        parameters = {f"{type(ranker).__name__.lower()}__alpha": alphas}
        grid = GridSearchCV(pipeline, parameters, cv=folds, scoring="roc_auc").fit(X, y)
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
    def test_every_measure(self, metric, data):
        X, y = data()
        ranker = Ranker(metric, families="linear", alphas=4, random_state=0).fit(X, y)
        results = ranker.cv_results_
        assert ranker.best_method_ in method_names(metric)
        assert set(results["method"]) == set(method_names(metric))
        sizes = {len(column) for column in results.values()}
        assert len(sizes) == 1
        assert sizes.pop() >= 4 * len(method_names(metric))
        place = [
            k
            for k, each in enumerate(zip(results["method"], results["alpha"], strict=True))
            if each == (ranker.best_method_, ranker.best_alpha_)
        ]
        assert ranker.best_score_ == results["mean_test_score"][place[0]]
        splits = [column[place[0]] for name, column in results.items() if name.startswith("split")]
        # Five folds, repeated up to four times, since there are 400 rows, while fits are compared.
        assert len(splits) == 20
        measured = np.isfinite(splits)
        assert measured[:5].all()
        assert measured.sum() % 5 == 0
        assert_allclose(np.nanmean(splits), ranker.best_score_)
        assert ranker.best_method_ in ranker.reason_
        assert f"{ranker.best_score_:.4f}" in ranker.reason_

    def test_scores_within_the_folds_are_those_of_the_measure(self, data):
        X, y = data()
        folds = list(StratifiedKFold(3).split(X, y))
        ranker = Ranker("ap", methods=["pointwise-logistic"], alphas=[0.01], cv=folds).fit(X, y)
        for k, (train, test) in enumerate(folds):
            alone = make_pipeline(StandardScaler(), PointwiseRanker(alpha=0.01)).fit(
                X[train], y[train]
            )
            expected = metrics.average_precision(y[test], alone.decision_function(X[test]))
            assert_allclose(ranker.cv_results_[f"split{k}_test_score"], expected, atol=2e-3)

    def test_the_same_seed_gives_the_same_bytes(self, data):
        X, y = data()
        first, second = (
            Ranker("ap", families="linear", alphas=4, random_state=7, n_jobs=j).fit(X, y)
            for j in (None, 2)
        )
        assert_array_equal(first.coef_, second.coef_)
        assert first.reason_ == second.reason_
        assert first.learning_curve_ == second.learning_curve_
        assert_array_equal(
            first.cv_results_["mean_test_score"], second.cv_results_["mean_test_score"]
        )

    def test_many_rows_are_tried_on_few(self, data):
        X, y = data(2000)
        ranker = Ranker(families="linear", alphas=3, search_rows=600, random_state=0).fit(X, y)
        assert "the selection was made on 600 of 2,000 rows" in ranker.reason_
        alone = Ranker(
            alphas=[ranker.best_alpha_], methods=[ranker.best_method_], random_state=0
        ).fit(X, y)
        assert_allclose(ranker.coef_, alone.coef_)

    def test_folds_of_row_numbers_are_of_all_rows(self, data):
        X, y = data(60)
        folds = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
        few, all_rows = (
            Ranker(families="linear", alphas=2, cv=folds, search_rows=n).fit(X, y)
            for n in (20, None)
        )
        assert few.best_score_ == all_rows.best_score_

    def test_a_budget_ends_the_search(self, data):
        X, y = data()
        ranker = Ranker(families="linear", time_budget=1e-9, random_state=0).fit(X, y)
        assert ranker.best_method_ == "pointwise-logistic"
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
        ranker = Ranker(families="linear", random_state=0).fit(*draw(seed, 600))
        assert metrics.roc_auc(y, ranker.decision_function(X)) > 0.97

    def test_the_depth_of_a_list_is_that_of_its_parts(self, data):
        X, y = data(200)
        ranker = Ranker(
            "recall@50", methods=["pointwise-logistic"], alphas=[0.1], random_state=0
        ).fit(X, y)
        whole = metrics.recall_at_k(y, ranker.decision_function(X), k=50)
        assert abs(ranker.best_score_ - whole) < 0.1
        assert ranker.best_score_ < 1.0
        with pytest.raises(
            ValueError, match="the list has 200 rows, all of which are among the first 200"
        ):
            Ranker("recall@200", families="linear").fit(X, y)

    @pytest.mark.parametrize("metric", ["recall@50", "ndcg@13"])
    def test_the_score_is_the_mean_of_as_large_a_share_of_each_fold(self, metric, data):
        X, y = data(171)
        folds = list(StratifiedKFold(5, shuffle=True, random_state=1).split(X, y))
        ranker = Ranker(
            metric, methods=["pointwise-logistic"], alphas=[0.1], cv=folds, scale=False
        ).fit(X, y)
        k, found = int(metric.partition("@")[2]), []
        for train, test in folds:
            s = (
                PointwiseRanker("logistic", alpha=0.1, tol=3e-3)
                .fit(X[train], y[train])
                .decision_function(X[test])
            )
            function = metrics.recall_at_k if metric.startswith("recall") else metrics.ndcg
            found.append(function(y[test], s, k=Depth(k * test.size / 171)))
        assert_allclose(ranker.best_score_, np.mean(found))
        assert f"at {k} of 171 rows (first {100 * k / 171:.3g} %)" in ranker.reason_

    def test_the_rows_of_the_list_may_be_named(self, data):
        X, y = data(200)
        options = {"methods": ["pointwise-logistic"], "alphas": [0.1], "random_state": 0}
        named = Ranker("recall@10", list_rows=40, **options).fit(X, y)
        assert (
            named.best_score_ == Ranker("recall@50", **options).fit(X, y).best_score_
        )  # a quarter of a list
        assert named.score(X, y) == metrics.recall_at_k(y, named.decision_function(X), k=50)
        assert "recall at 10 of 40 rows (first 25 %)" in named.reason_
        with pytest.raises(
            ValueError, match="the list has 40 rows, all of which are among the first 40"
        ):
            Ranker("recall@40", families="linear", list_rows=40).fit(X, y)

    def test_score_is_the_measure(self, data):
        X, y = data(200)
        ranker = Ranker("ap", families="linear", alphas=2, random_state=0).fit(X, y)
        assert ranker.score(X, y) == metrics.average_precision(y, ranker.decision_function(X))


class TestLinear:
    @pytest.mark.parametrize("sparse", [False, True])
    def test_weights_are_those_of_the_columns_as_they_are(self, sparse, data):
        X, y = data()
        X = sp.csr_matrix(X) if sparse else X
        ranker = Ranker(families="linear", alphas=3, random_state=0).fit(X, y)
        assert isinstance(ranker.best_estimator_[0], MaxAbsScaler if sparse else StandardScaler)
        assert_allclose(
            ranker.decision_function(X),
            ranker.best_estimator_.decision_function(X),
            rtol=1e-9,
            atol=1e-9,
        )
        assert_allclose(ranker.predict(X), ranker.decision_function(X) > 0)

    def test_constant_columns(self, data):
        X, y = data()
        X[:, 2] = 7.0
        assert np.isfinite(
            Ranker(families="linear", alphas=2, random_state=0).fit(X, y).coef_
        ).all()

    def test_refit(self, data):
        X, y = data(600)
        ranker = Ranker(families="linear", alphas=3, random_state=0).fit(X[:300], y[:300])
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
        pipeline = make_pipeline(
            StandardScaler(), Ranker("ap", families="linear", alphas=3, random_state=0)
        )
        scores = cross_val_score(pipeline, X, y, scoring="average_precision", cv=3)
        assert scores.mean() > 0.97
        with sklearn.config_context(enable_metadata_routing=True):
            routed = make_pipeline(
                Ranker(families="linear", alphas=2, cv=2, random_state=0).set_fit_request(
                    sample_weight=True, qid=True
                )
            )
            routed.fit(X, y, sample_weight=np.ones(y.size), qid=np.arange(y.size) % 7)


class TestRows:
    def test_weights_count_as_repetitions(self, data):
        X, y = data(200)
        w = np.random.default_rng(0).integers(1, 3, y.size)
        rows = np.repeat(np.arange(y.size), w)
        folds = [(np.arange(100, 200), np.arange(100)), (np.arange(100), np.arange(100, 200))]
        repeated = [tuple(np.flatnonzero(np.isin(rows, part)) for part in fold) for fold in folds]
        options = {"methods": ["pairwise-logistic"], "alphas": [0.1, 0.01], "scale": False}
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
        grouped = Ranker("auc", families="linear", alphas=4, random_state=0).fit(X, y, qid=qid)
        assert grouped.best_method_.startswith("pairwise")
        assert set(grouped.cv_results_["method"]) == set(method_names("auc"))
        top = Ranker("pos_at_top", families="linear", alphas=2, random_state=0).fit(
            X, y, qid=[f"q{q}" for q in qid]
        )
        assert not any(name.startswith("top") for name in top.cv_results_["method"])

    @pytest.mark.parametrize("metric", ["wmw", "ndcg@5"])
    def test_grades(self, metric, data):
        X, _ = data(500)
        y = np.digitize(X[:, 0] + np.random.default_rng(0).standard_normal(500), [-1, 0, 1])
        ranker = Ranker(metric, families="linear", alphas=3, random_state=0).fit(X, y)
        assert all(name.startswith("pairwise") for name in ranker.cv_results_["method"])
        assert set(ranker.predict(X)) <= set(y)
        assert metrics.wmw(y, ranker.decision_function(X)) > 0.7
        words = np.array(["a", "b", "c", "d"])[y]
        assert set(
            Ranker("wmw", families="linear", alphas=2, random_state=0).fit(X, words).predict(X)
        ) <= set(words)

    @pytest.mark.parametrize(
        "maps",
        [["quadratic"], ["nystroem"], ["fourier"], [Nystroem(n_components=20, random_state=0)]],
    )
    def test_maps(self, maps):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((600, 2))
        y = (X**2).sum(axis=1) > 2
        ranker = Ranker("auc", families="linear", alphas=4, maps=maps, random_state=0).fit(X, y)
        assert ": " in ranker.best_method_
        assert ranker.best_score_ > 0.95
        assert not hasattr(ranker, "coef_")
        assert ranker.refit(X, y).decision_function(X).shape == y.shape

    def test_maps_of_one_class_are_two(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((300, 2))
        y = (X**2).sum(axis=1) > 2
        maps = [Nystroem(n_components=k, random_state=0) for k in (2, 60)]
        ranker = Ranker(
            "auc", methods=["pointwise-logistic"], alphas=3, maps=maps, random_state=0
        ).fit(X, y)
        assert ranker.best_method_ == "Nystroem 2: pointwise-logistic"
        assert ranker.best_estimator_["map"].n_components == 60

    def test_a_map_that_fails_is_left_out(self, data):
        X, y = data(100)
        ranker = Ranker(families="linear", alphas=2, maps="quadratic", random_state=0).fit(
            sp.csr_matrix(X), y
        )
        left_out = dict(
            zip(ranker.cv_results_["method"], ranker.cv_results_["left_out"], strict=True)
        )
        assert left_out["quadratic: pointwise-logistic"].startswith("the map fails")

    def test_rows_of_no_weight_have_no_say(self, data):
        X, y = data(200)
        options = {"methods": ["pointwise-logistic"], "alphas": [0.1, 0.01], "random_state": 0}
        alone = Ranker(**options).fit(X, y)
        for kind in (np.asarray, sp.csr_matrix):
            extended = kind(np.vstack([X, 1e6 * np.ones((1, 5))]))
            weight = np.append(np.ones(200), 0.0)
            more = Ranker(**options).fit(extended, np.append(y, True), sample_weight=weight)
            assert abs(more.best_score_ - alone.best_score_) < 0.05

    def test_groups_may_be_called_anything(self, data):
        X, y = data(300)
        q = np.random.default_rng(0).integers(0, 20, 300)
        names = [f"g{(7 * k) % 20}" for k in q]
        fits = [
            Ranker(families="linear", alphas=2, random_state=0).fit(X, y, qid=each)
            for each in (q, q.tolist(), names)
        ]
        assert len({ranker.best_score_ for ranker in fits}) == 1

    def test_a_rare_grade_does_not_stop_the_search(self, data):
        X, _ = data(300)
        y = np.append(np.digitize(X[:299, 0], [-1, 0, 1]), 9)
        assert np.isfinite(
            Ranker("ndcg@10", families="linear", alphas=2, random_state=0).fit(X, y).best_score_
        )

    def test_a_failed_refit_leaves_all_as_it_was(self, data):
        X, y = data()
        ranker = Ranker(families="linear", alphas=2, random_state=0).fit(X, y)
        before = ranker.decision_function(X)
        with pytest.raises(ValueError, match="one class"):
            ranker.refit(X[:5], np.ones(5))
        assert_array_equal(ranker.decision_function(X), before)
        assert_array_equal(ranker.classes_, [False, True])


class TestFewRows:
    def test_a_rare_class_is_kept_whole(self, data):
        X, y = data(4000)
        y = np.arange(4000) % 400 == 0
        X[y] += 1.0
        ranker = Ranker("ap", families="linear", alphas=2, search_rows=500, random_state=0).fit(
            X, y
        )
        assert "the choice was made" not in ranker.reason_

    def test_folds_as_lists(self, data):
        X, y = data(60)
        folds = [(list(range(30)), list(range(30, 60))), (list(range(30, 60)), list(range(30)))]
        assert np.isfinite(Ranker(families="linear", alphas=2, cv=folds).fit(X, y).best_score_)
        for cv in (LeaveOneOut(), []):
            assert (
                "no fold has both classes"
                in Ranker(families="linear", alphas=2, cv=cv).fit(X, y).reason_
            )

    def test_three_positives(self, data):
        X, y = data(1000)
        y = np.zeros(1000, dtype=int)
        y[[1, 500, 900]] = 1
        X[y == 1] += 2
        ranker = Ranker(families="linear", alphas=3, random_state=0).fit(X, y)
        assert "there are 3 folds instead of 5, for 3 rows of the smaller class" in ranker.reason_
        # Twice, since there are 1,000 rows, while fits are compared.
        assert sum(name.startswith("split") for name in ranker.cv_results_) == 6

    def test_one_positive(self, data):
        X, y = data(30)
        y = np.arange(30) == 4
        ranker = Ranker(families="linear", random_state=0).fit(X, y)
        assert "without a comparison" in ranker.reason_
        assert "Note that cross-validation needs at least 2 rows" in ranker.reason_
        assert np.isnan(ranker.best_score_)
        assert (
            ranker.learning_curve_["sentence"]
            == "There are too few rows to tell whether more data would help."
        )

    def test_a_fold_of_one_class(self, data):
        X, y = data(60)
        order = np.argsort(~y)
        folds = [(order[10:], order[:10]), (order[:-10], order[-10:]), (order[::2], order[1::2])]
        ranker = Ranker(families="linear", alphas=2, cv=folds).fit(X, y)
        assert np.isfinite(ranker.best_score_)
        assert np.isnan(ranker.cv_results_["split0_test_score"]).all()

    def test_a_constant_measure(self):
        rng = np.random.default_rng(0)
        X = np.zeros((50, 2))
        with pytest.warns(UserWarning, match="the same score|no better weights"):
            ranker = Ranker(families="linear", alphas=2, random_state=0).fit(
                X, rng.integers(0, 2, 50)
            )
        assert ranker.best_score_ == 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "accuracy"}, "metric must be one of"),
        ({"metric": "recall"}, "give recall@k"),
        ({"metric": "recall@0"}, "at least 1"),
        ({"metric": "pauc@2"}, "between 0 and 1"),
        ({"metric": "pauc@1"}, "up to 1 it is the AUC"),
        ({"methods": []}, "methods is empty"),
        ({"metric": "auc@3"}, "does not take a parameter"),
        ({"metric": None}, "metric must be one of"),
        ({"methods": ["magic"]}, "There is no method 'magic'"),
        ({"maps": ["magic"]}, "There is no feature map 'magic'"),
        ({"alphas": [-1.0]}, "alphas"),
        ({"cv": 1}, "cv"),
        ({"time_budget": 0}, "time_budget"),
        ({"search_rows": 3}, "search_rows"),
    ],
)
def test_what_cannot_be_is_said(options, message, data):
    X, y = data(40)
    with pytest.raises(ValueError, match=message):
        Ranker(**options).fit(X, y)


def test_methods_that_do_not_fit_the_rows(data):
    X, y = data(60)
    with pytest.raises(ValueError, match="takes groups"):
        Ranker(methods=["top-push"]).fit(X, y, qid=np.arange(60) % 5)
    with pytest.raises(ValueError, match="takes grades"):
        Ranker("wmw", methods=["pointwise-logistic"]).fit(X, np.arange(60) % 3)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        Ranker("ap", families="linear").fit(X, np.arange(60) % 3)
