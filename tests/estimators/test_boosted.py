"""BoostedRanker: scikit-learn's conventions, losses, rounds, missing values and categories."""

import re
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GroupKFold, PredefinedSplit, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from forerank import BoostedRanker, Ranker, metrics
from forerank.estimators.boosting_rounds import round_grid
from forerank.objectives.boosting import BOOSTING_LOSSES, PAIR_LOSSES
from tree_rows import mixed_rows, new_rows

pytest.importorskip("lightgbm")


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1, user_api="openmp"):
        yield


def ranker(loss="logistic", **params):
    return BoostedRanker(loss, **{"rounds": 10, "n_jobs": 1, "random_state": 0, **params})


REASON = "min_samples_leaf counts rows, gradients are single precision, and folds are of rows"
CHECKED = [
    ranker(),
    ranker(rounds="cv", cv=2, max_rounds=10),
    ranker("pairwise-squared-hinge"),
    ranker(backend="histogram"),
]


@parametrize_with_checks(
    CHECKED,
    expected_failed_checks=lambda _: {
        f"check_sample_weight_equivalence_on_{kind}_data": REASON for kind in ("dense", "sparse")
    },
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        # Some checks have fewer rows than two leaves.
        warnings.filterwarnings("ignore", message="BoostedRanker: the optimum gives all rows")
        check(estimator)


def test_models_of_earlier_versions_have_one_sum_of_trees():
    X, y = mixed_rows(200)
    fitted = ranker().fit(X, y)
    for name in ("n_models", "_n_models"):
        del fitted.__dict__[name]
    assert clone(fitted).n_models == 1
    assert_array_equal(list(fitted.staged_decision_function(X))[-1], fitted.decision_function(X))


class TestLosses:
    @pytest.mark.parametrize("loss", BOOSTING_LOSSES)
    def test_every_loss_ranks(self, loss):
        X, y = mixed_rows(600)
        fitted = ranker(loss, rounds=40).fit(X[:400], y[:400])
        assert metrics.roc_auc(y[400:], fitted.decision_function(X[400:])) > 0.72
        assert fitted.n_rounds_ == fitted.ensemble_.n_trees == 40
        # As many training rows are predicted positive as there are, about.
        assert abs(np.mean(fitted.predict(X[:400])) - np.mean(y[:400])) < 0.1

    def test_the_logistic_loss_is_that_of_lightgbm(self):
        lightgbm = pytest.importorskip("lightgbm")
        X, y = mixed_rows(500)
        fitted = ranker(rounds=15, max_features=1.0, min_samples_leaf=10).fit(X, y)
        peer = lightgbm.LGBMClassifier(
            n_estimators=15, learning_rate=0.05, num_leaves=15, min_child_samples=10,
            reg_lambda=1.0, min_child_weight=0.0, min_data_in_bin=1, max_bin=63, n_jobs=1,
            verbosity=-1,
        ).fit(X, y)  # fmt: skip
        assert_allclose(
            fitted.decision_function(X), peer.predict(X, raw_score=True), rtol=1e-4, atol=1e-5
        )

    @pytest.mark.parametrize("loss", PAIR_LOSSES)
    def test_boosting_lowers_the_loss_over_pairs(self, loss):
        from forerank.objectives import AllPairs

        X, y = mixed_rows(300)
        objective = AllPairs(y.astype(np.int8), PAIR_LOSSES[loss])
        fitted = ranker(loss, rounds=15).fit(X, y)
        values = [objective.at(s).value for s in fitted.staged_decision_function(X)]
        assert (np.diff(values) < 0.0).all()

    def test_grades(self):
        X, _ = mixed_rows(500)
        y = np.digitize(X[:, 1] + 0.3 * X[:, 2], [-0.7, 0.7])
        fitted = ranker("pairwise-logistic", graph="order", rounds="cv", max_rounds=30).fit(X, y)
        assert metrics.wmw(y, fitted.decision_function(X)) > 0.9
        assert set(fitted.predict(X)) == {0, 1, 2}

    def test_groups(self):
        X, y = mixed_rows(600)
        qid = np.arange(600) % 60
        X[:, 2] += 5.0 * qid  # only the order within groups counts
        for loss in ("pairwise-logistic", "top", "logistic"):
            fitted = ranker(loss, rounds="cv", max_rounds=20, cv=3).fit(X, y, qid=qid)
            assert metrics.roc_auc(y, fitted.decision_function(X), qid=qid) > 0.7
        assert not hasattr(fitted, "predict_proba")

    def test_probabilities(self):
        X, y = mixed_rows(400)
        fitted = ranker(rounds=20).fit(X, y)
        p = fitted.predict_proba(X)
        assert_allclose(p.sum(axis=1), 1.0)
        assert abs(p[:, 1].mean() - y.mean()) < 0.02
        assert_array_equal(fitted.predict(X), (p[:, 1] > 0.5).astype(int))
        assert not hasattr(ranker("top"), "predict_proba")
        with pytest.raises(AttributeError, match="CalibratedClassifierCV"):
            ranker("top").predict_proba(X)


class TestRounds:
    def test_cross_validation(self, capsys):
        X, y = mixed_rows(400)
        fitted = ranker(rounds="cv", max_rounds=300, cv=3, learning_rate=0.5, verbose=True)
        fitted.fit(X, y)
        curve = fitted.validation_curve_
        assert curve["values"].shape == (curve["rounds"].size, 3)
        assert_allclose(curve["values"].mean(axis=1), curve["mean"])
        chosen = int(np.flatnonzero(curve["rounds"] == fitted.n_rounds_)[0])
        lost = curve["values"][np.argmax(curve["mean"])] - curve["values"][chosen]
        assert lost.mean() <= 0.5 * lost.std(ddof=1) / np.sqrt(3)
        assert curve["rounds"][-1] < 300  # boosting ends early
        assert "rounds: auc 0." in capsys.readouterr().out
        again = ranker(rounds=fitted.n_rounds_, learning_rate=0.5).fit(X, y)
        assert_array_equal(again.decision_function(X), fitted.decision_function(X))
        assert again.validation_curve_ is None

    def test_early_stopping(self):
        X, y = mixed_rows(400)
        fitted = ranker(rounds="early_stopping", max_rounds=40, metric="ap").fit(X, y)
        curve = fitted.validation_curve_
        assert curve["values"].shape[1] == 1
        assert fitted.n_rounds_ == curve["rounds"][np.argmax(curve["mean"])]
        assert fitted.ensemble_.cover[0] == 400  # all rows are used

    def test_given_folds_and_weights_of_zero(self):
        X, y = mixed_rows(300)
        weight = (np.arange(300) % 3 > 0).astype(float)
        params = {"rounds": "cv", "max_rounds": 20}
        qid = np.arange(300) % 30
        rows = weight > 0
        test_fold = np.arange(300) % 4
        cases = [
            (GroupKFold(3), GroupKFold(3), {"qid": qid}),
            (3, 3, {"qid": qid}),
            (4, 4, {}),
            (PredefinedSplit(test_fold), PredefinedSplit(test_fold[rows]), {}),
            (list(PredefinedSplit(test_fold).split()), PredefinedSplit(test_fold[rows]), {}),
        ]
        for cv, cv_of_rows, groups in cases:
            a = ranker(cv=cv, **params).fit(X, y, sample_weight=weight, **groups)
            of_rows = {name: values[rows] for name, values in groups.items()}
            b = ranker(cv=cv_of_rows, **params).fit(X[rows], y[rows], **of_rows)
            assert_array_equal(a.validation_curve_["values"], b.validation_curve_["values"])
            assert_array_equal(a.decision_function(X), b.decision_function(X))

    @pytest.mark.parametrize("rounds", ["cv", "early_stopping"])
    def test_one_row_of_a_class_has_a_weight(self, rounds):
        X, y = mixed_rows(300)
        weight = np.where(y == 1, np.cumsum(y) == 1, 1.0)
        fitted = ranker(rounds=rounds, max_rounds=20).fit(X, y, sample_weight=weight)
        rows = weight > 0
        same = ranker(rounds=rounds, max_rounds=20).fit(X[rows], y[rows])
        assert fitted.validation_curve_ is None
        assert_array_equal(fitted.decision_function(X), same.decision_function(X))

    def test_too_few_rows(self):
        X, _ = mixed_rows(40)
        fitted = ranker(rounds="cv").fit(X, np.arange(40) == 7)
        assert fitted.validation_curve_ is None
        assert fitted.n_rounds_ <= 100

    def test_folds_without_both_classes_are_left_out(self):
        X, y = mixed_rows(200)
        qid = np.repeat(np.arange(4), 50)
        y[qid == 0] = 0
        fitted = ranker(rounds="cv", cv=4, max_rounds=10).fit(X, y, qid=qid)
        assert fitted.validation_curve_["values"].shape == (2, 3)

    @pytest.mark.parametrize("loss", BOOSTING_LOSSES)
    def test_all_positives_in_one_group(self, loss):
        X, y = mixed_rows(200)
        qid = np.repeat(np.arange(4), 50)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"3 of 4 qid groups have no pair")
            fitted = ranker(loss, rounds="cv", cv=4, max_rounds=10).fit(X, y * (qid == 0), qid=qid)
        assert fitted.validation_curve_ is None
        assert fitted.n_rounds_ == 10

    @pytest.mark.parametrize("rounds", ["cv", "early_stopping", 5])
    @pytest.mark.parametrize("metric", ["foo", "average_precision", "ndcg", "recall@0", None])
    def test_a_measure_that_there_is_not(self, rounds, metric):
        X, y = mixed_rows(100)
        with pytest.raises(ValueError, match="metric") as ours:
            ranker(rounds=rounds, metric=metric).fit(X, y)
        with pytest.raises(ValueError, match="metric") as peer:
            Ranker(metric).fit(X, y)
        assert str(ours.value) == str(peer.value)

    @pytest.mark.parametrize("rounds", ["cv", "early_stopping", 5])
    def test_a_measure_of_two_classes_for_grades(self, rounds):
        X, _ = mixed_rows(100)
        params = {"graph": "order", "rounds": rounds, "metric": "ap"}
        with pytest.raises(ValueError, match="metric='ap' is for two classes, and the labels are"):
            ranker("pairwise-logistic", **params).fit(X, np.arange(100) % 3)

    def test_grid(self):
        assert round_grid(12) == [5, 10, 12]
        grid = np.array(round_grid(1000))
        assert grid[-1] == 1000
        assert grid.size < 60

    def test_iter_scores(self):
        X, y = mixed_rows(400)
        given = ranker("pairwise-logistic", rounds="cv")
        scores = given.iter_scores(X[:300], y[:300], X[300:], [3, 7, 7, 12])
        found = [next(scores) for _ in range(4)]
        scores.close()
        assert not hasattr(given, "ensemble_")
        assert_array_equal(found[1], found[2])
        fitted = ranker("pairwise-logistic", rounds=12).fit(X[:300], y[:300])
        for rounds, ours in zip((3, 7, 12), (found[0], found[1], found[3]), strict=True):
            whole = fitted.ensemble_.trees(0, rounds).scores(X[300:])
            assert_allclose(ours, whole, atol=1e-12)
        with pytest.raises(ValueError, match="rounds must ascend"):
            list(given.iter_scores(X, y, X, [5, 3]))

    def test_iter_scores_by_scikit_learn(self):
        X, y = mixed_rows(300)
        given = ranker(backend="histogram", max_features=1.0)
        *_, last = given.iter_scores(X, y, X, [5, 60, 80])
        fitted = clone(given).set_params(rounds=80).fit(X, y)
        assert_allclose(last, fitted.decision_function(X), atol=1e-10)

    def test_rounds_beyond_the_last_split(self):
        X, y = mixed_rows(100)
        with pytest.warns(UserWarning, match="the same score"):
            fitted = ranker(min_samples_leaf=80).fit(X, y)
        assert fitted.n_rounds_ <= 1
        with pytest.warns(UserWarning, match=r"80 rows .* lower min_samples_leaf or l2\.$"):
            ranker(min_samples_leaf=80).fit(X, y)
        first, last = ranker(min_samples_leaf=80).iter_scores(X, y, X, [1, 50])
        assert_array_equal(first, last)

    @pytest.mark.parametrize("backend", ["lightgbm", "histogram"])
    def test_warm_start(self, backend):
        X, y = mixed_rows(400)
        params = {"backend": backend, "max_features": 1.0}
        warm = ranker(rounds=6, warm_start=True, **params).fit(X, y)
        first = warm.ensemble_
        warm.set_params(rounds=10).fit(X, y)
        assert warm.n_rounds_ == 10
        assert_array_equal(warm.ensemble_.trees(0, 6).value, first.value)
        cold = ranker(rounds=10, **params).fit(X, y)
        assert_allclose(warm.decision_function(X), cold.decision_function(X), atol=1e-6)
        with pytest.raises(ValueError, match="keeps the 10 rounds"):
            warm.set_params(rounds=5).fit(X, y)
        with pytest.raises(ValueError, match="warm_start=True adds trees up to a number"):
            warm.set_params(rounds="cv").fit(X, y)

    @pytest.mark.parametrize(("loss", "n_models"), [("logistic", 1), ("pairwise-logistic", 2)])
    def test_a_warm_start_draws_other_columns_for_every_call(self, loss, n_models):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 6))
        y = (X.sum(axis=1) > 0).astype(int)
        params = {"max_features": 0.4, "n_models": n_models, "max_leaf_nodes": 2}
        warm = ranker(loss, rounds=1, warm_start=True, **params)
        for rounds in range(1, 31):
            warm.set_params(rounds=rounds).fit(X, y)
        again = ranker(loss, rounds=1, warm_start=True, **params)
        for rounds in range(1, 31):
            again.set_params(rounds=rounds).fit(X, y)
        assert_array_equal(warm.decision_function(X), again.decision_function(X))
        roots = warm.ensemble_.first_node[:-1]
        columns = warm.ensemble_.feature[roots].reshape(30, n_models)
        for of_model in columns.T:
            assert set(of_model) == set(range(6))
        if n_models == 2:
            assert (columns[1:, 0] != columns[1:, 1]).any()


class TestRows:
    def test_rare_positives(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(5000, 4))
        score = X[:, 0] + np.abs(X[:, 1]) + 0.5 * rng.normal(size=5000)
        y = np.zeros(5000, dtype=int)
        y[np.argsort(-score)[:20]] = 1
        for loss in ("logistic", "pairwise-logistic", "exponential"):
            fitted = ranker(loss, rounds=40).fit(X, y)
            assert metrics.roc_auc(y, X[:, 0] + np.abs(X[:, 1])) > 0.99
            assert metrics.roc_auc(y, fitted.decision_function(X)) > 0.98

    def test_float32_and_sparse_rows(self):
        X, y = mixed_rows(300)
        X = np.where(np.abs(np.nan_to_num(X)) < 0.5, 0.0, np.nan_to_num(X))
        X = X.astype(np.float32)
        dense = ranker().fit(X, y)
        assert_array_equal(
            ranker().fit(sp.csr_matrix(X), y).decision_function(sp.csr_matrix(X)),
            dense.decision_function(X),
        )
        assert_array_equal(
            dense.decision_function(X), ranker().fit(X.astype(float), y).decision_function(X)
        )
        assert_allclose(
            dense.contributions(sp.csr_array(X)).sum(axis=1), dense.decision_function(X), atol=1e-12
        )

    def test_equal_weights_are_no_weights_and_repeated_rows(self):
        X, y = mixed_rows(200)
        plain = ranker().fit(X, y).decision_function(X)
        assert_array_equal(ranker().fit(X, y, np.full(200, 7.0)).decision_function(X), plain)
        X = X.copy()
        X[:, :3] = np.round(4.0 * X[:, :3])  # few values, so that each has a bin in either case
        weight = np.random.default_rng(0).integers(1, 4, 200)
        rows = np.repeat(np.arange(200), weight)
        params = {"l2": 0.0, "min_samples_leaf": 1, "max_leaf_nodes": 4, "max_features": 1.0}
        a = ranker(**params).fit(X, y, sample_weight=weight)
        b = ranker(**params).fit(X[rows], y[rows])
        assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-4)

    def test_a_seed_gives_the_same_trees(self):
        X, y = mixed_rows(300)
        params = {"max_features": 0.5, "rounds": "cv", "cv": 2, "max_rounds": 10}
        a, b = (ranker(**params).fit(X, y) for _ in range(2))
        assert_array_equal(a.ensemble_.value, b.ensemble_.value)
        other = ranker(random_state=1, max_features=0.5).fit(X, y)
        assert not np.array_equal(other.decision_function(X), a.decision_function(X))
        assert ranker(random_state=np.random.RandomState(0)).fit(X, y).n_rounds_ == 10

    def test_constant_and_missing_columns(self):
        X, y = mixed_rows(300)
        X[:, 0], X[:, 2] = np.nan, 3.0
        for backend in ("lightgbm", "histogram"):
            fitted = ranker(backend=backend).fit(X, y)
            assert_array_equal(fitted.feature_importances_[[0, 2]], 0.0)
            assert np.isfinite(fitted.decision_function(new_rows(50))).all()

    def test_refusals(self):
        X, y = mixed_rows(100)
        with pytest.raises(ValueError, match="Every column of X is constant"):
            ranker().fit(np.ones((100, 2)), y)
        with pytest.raises(ValueError, match="y has one class only"):
            ranker().fit(X, np.ones(100))
        with pytest.raises(ValueError, match="All rows of class 1 have sample_weight zero"):
            ranker().fit(X, y, sample_weight=1 - y)
        with pytest.raises(ValueError, match=r'For grades set loss="pairwise-logistic" and graph'):
            ranker().fit(X, np.arange(100) % 3)
        with pytest.raises(ValueError, match="has no pairs"):
            ranker(graph="order").fit(X, y)
        with pytest.raises(ValueError, match="contains infinity"):
            ranker().fit(np.where(X > 1, np.inf, X), y)
        with pytest.raises(ValueError, match="needs LightGBM; install it with pip"):
            ranker("top", backend="histogram").fit(X, y)
        for name, value in (
            ("learning_rate", 0.0), ("max_leaf_nodes", 1), ("l2", -1.0), ("max_features", 1.5),
            ("rounds", "all"), ("rounds", 0), ("loss", "hinge"), ("min_samples_leaf", 0),
        ):  # fmt: skip
            with pytest.raises(ValueError, match=name):
                ranker().set_params(**{name: value}).fit(X, y)
        for rounds in (10.0, True, "foo", None):
            expected = f'a whole number of at least 1, "cv" or "early_stopping"; got {rounds!r}'
            with pytest.raises(ValueError, match=re.escape(expected)):
                ranker(rounds=rounds).fit(X, y)

    def test_without_lightgbm(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "lightgbm", None)
        X, y = mixed_rows(300)
        fitted = ranker(rounds="cv", max_rounds=20, cv=2, categorical_features=[3]).fit(X, y)
        assert fitted.backend_ == "histogram"
        peer = HistGradientBoostingClassifier(
            learning_rate=0.05, max_iter=fitted.n_rounds_, max_leaf_nodes=15, min_samples_leaf=15,
            l2_regularization=1.0, max_features=0.8, early_stopping=False, random_state=0,
            categorical_features=[3],
        ).fit(X, y)  # fmt: skip
        new = new_rows(100)
        assert_allclose(fitted.decision_function(new), peer.decision_function(new), atol=1e-12)
        assert_allclose(
            fitted.contributions(new).sum(axis=1), fitted.decision_function(new), atol=1e-12
        )
        with pytest.raises(ValueError, match="loss='top' needs LightGBM"):
            ranker("top").fit(X, y)


class TestCategories:
    def test_codes_names_and_masks(self):
        pd = pytest.importorskip("pandas")
        X, y = mixed_rows(400)
        frame = pd.DataFrame(X, columns=list("abcd"))
        expected = ranker(categorical_features=[3]).fit(X, y).decision_function(X)
        assert_array_equal(ranker(categorical_features=[-1]).fit(X, y).categorical_, [3])
        for given in (["d"], [False, False, False, True], np.array([3])):
            fitted = ranker(categorical_features=given).fit(frame, y)
            assert_array_equal(fitted.categorical_, [3])
            assert_array_equal(fitted.decision_function(frame), expected)

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_types_of_frames(self, library):
        lib = pytest.importorskip(library)
        X, y = mixed_rows(400)
        texts = [None if np.isnan(code) else f"v{int(code):02d}" for code in X[:, 3]]
        known = [f"v{code:02d}" for code in range(12)]
        if library == "pandas":
            column = lib.Categorical(texts, categories=known)
            frame = lib.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "d": column})
            new = frame.head(3).assign(d=lib.Categorical(["v05", "new", None]))
        else:
            column = lib.Series(texts, dtype=lib.Enum(known))
            frame = lib.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "d": column})
            new = frame.head(3).with_columns(lib.Series("d", ["v05", "new", None]))
        fitted = ranker(categorical_features="from_dtype").fit(frame, y)
        expected = ranker(categorical_features=[3]).fit(X, y)
        assert list(fitted.feature_names_in_) == list("abcd")
        assert_array_equal(fitted.decision_function(frame), expected.decision_function(X))
        rows = np.column_stack([X[:3, :3], [5.0, np.nan, np.nan]])
        assert_array_equal(fitted.decision_function(new), expected.decision_function(rows))

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_columns_that_are_named_may_hold_words(self, library):
        lib = pytest.importorskip(library)
        X, y = mixed_rows(400)
        # Words that sort as their codes do.
        words = [None if np.isnan(code) else f"v{int(code):02d}" for code in X[:, 3]]
        columns = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}
        expected = ranker(categorical_features=[3]).fit(X, y)
        rows = np.column_stack([X[:3, :3], [5.0, np.nan, np.nan]])
        kinds = ["object", "string"] if library == "pandas" else [lib.String, lib.Object]
        for kind in kinds:
            frame = lib.DataFrame({**columns, "d": lib.Series(words, dtype=kind)})
            new = frame.head(3).to_dict(as_series=False) if library == "polars" else frame.head(3)
            new = lib.DataFrame({**{k: list(new[k]) for k in "abc"}, "d": ["v05", "new", None]})
            for given in (["d"], [3]):
                fitted = ranker(categorical_features=given).fit(frame, y)
                assert_array_equal(fitted.decision_function(frame), expected.decision_function(X))
                assert_array_equal(fitted.decision_function(new), expected.decision_function(rows))

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_frames_with_other_columns(self, library):
        lib = pytest.importorskip(library)
        X, y = mixed_rows(200)
        frame = lib.DataFrame(
            {name: X[:, k] for k, name in enumerate("abc")} | {"d": list("vw") * 100}
        )
        fitted = ranker(categorical_features=["d"], warm_start=True).fit(frame, y)
        before = fitted.decision_function(frame)
        for names in (list("abc"), list("bcd"), list("dabc")):
            with pytest.raises(ValueError, match="feature names should match"):
                fitted.decision_function(frame[names])
            with pytest.raises(ValueError, match="feature names should match"):
                fitted.fit(frame[names], y)
        assert_array_equal(fitted.decision_function(frame), before)
        if library == "pandas":  # names that are no strings are not compared
            frame.columns = range(4)
            fitted = ranker(categorical_features=[3]).fit(frame, y)
            assert_array_equal(fitted.decision_function(frame), before)
            with pytest.raises(ValueError, match=r"X has 3 features, but .* expecting 4"):
                fitted.decision_function(frame[[0, 1, 2]])

    @pytest.mark.parametrize("backend", ["lightgbm", "histogram"])
    def test_unseen_codes_are_missing(self, backend):
        X, y = mixed_rows(400)
        fitted = ranker(categorical_features=[3], backend=backend).fit(X, y)
        assert fitted.ensemble_.has_categories
        unseen, missing = new_rows(50), new_rows(50)
        unseen[:, 3], missing[:, 3] = 10.0 ** (2 + np.arange(50) % 9), np.nan
        assert_array_equal(fitted.decision_function(unseen), fitted.decision_function(missing))

    def test_ten_thousand_categories(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(3000, 2))
        X[:, 1] = rng.integers(0, 10_000, 3000)
        y = (X[:, 0] + (X[:, 1] < 3000) + 0.5 * rng.normal(size=3000) > 0.5).astype(int)
        for backend in ("lightgbm", "histogram"):
            fitted = ranker(categorical_features=[1], backend=backend).fit(X, y)
            assert metrics.roc_auc(y, fitted.decision_function(X)) > 0.8

    def test_refusals(self):
        X, y = mixed_rows(100)
        for column, value in ((1, "-?[0-9.]+"), (0, "-?[0-9.]+")):
            with pytest.raises(ValueError, match=f"Column {column} is categorical.*found {value}"):
                ranker(categorical_features=[column]).fit(X, y)
        with pytest.raises(ValueError, match="X has no column 'd'; it has 4 columns"):
            ranker(categorical_features=["d"]).fit(X, y)
        with pytest.raises(ValueError, match="a mask of 2 columns; X has 4"):
            ranker(categorical_features=[True, False]).fit(X, y)
        with pytest.raises(ValueError, match='must be None, "from_dtype"'):
            ranker(categorical_features="all").fit(X, y)


class TestScikitLearn:
    def test_pipelines_and_routing(self):
        X, y = mixed_rows(300)
        pipeline = make_pipeline(StandardScaler(), ranker())
        assert cross_val_score(pipeline, X, y, scoring="roc_auc", cv=3).mean() > 0.7
        with config_context(enable_metadata_routing=True):
            routed = ranker("pairwise-logistic").set_fit_request(qid=True)
            params = {"qid": np.arange(300) % 5}
            found = cross_validate(routed, X, y, cv=3, scoring="roc_auc", params=params)
        assert found["test_score"].mean() > 0.6

    def test_rank(self):
        X, y = mixed_rows(100)
        fitted = ranker().fit(X, y)
        scores = fitted.decision_function(X)
        assert (np.diff(scores[fitted.rank(X)]) <= 0.0).all()
