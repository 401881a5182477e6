"""Linear rankers as scikit-learn estimators: its checks, labels, refused input, pipelines."""

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from forerank import PairwiseRanker, PointwiseRanker, metrics
from forerank.estimators.base import prevalence_thresholds
from linear_rankers import LOSSES, RANKERS
from tables import graded_rows


def checked() -> list:
    # scikit-learn compares fits with weights and with repeated rows to 1e-7, which a gap of 1e-3
    # does not promise: the hinge has its own test of that below.
    every_loss = [
        cls(loss) for cls in (PairwiseRanker, PointwiseRanker) for loss in LOSSES if loss != "hinge"
    ]
    return [
        PairwiseRanker(),
        PointwiseRanker(),
        PointwiseRanker(class_weight="balanced"),
        *every_loss,
    ]


@parametrize_with_checks(checked())
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class TestLabels:
    @pytest.mark.parametrize("ranker", RANKERS, ids=repr)
    @pytest.mark.parametrize(
        "labels",
        [("no", "yes"), (False, True), (-1, 1), (0, 1), (3, 7), (0.0, 1.0)],
        ids=lambda p: f"{p[0]}-{p[1]}",
    )
    def test_any_two_labels(self, ranker, labels):
        X, codes = graded_rows()
        y = np.array(labels)[codes]
        fitted = clone(ranker).fit(X, y)
        assert_array_equal(fitted.classes_, labels)
        assert roc_auc_score(codes, fitted.decision_function(X)) > 0.9
        predicted = fitted.predict(X)
        assert predicted.dtype == y.dtype
        assert np.mean(predicted == y) > 0.8
        reference = clone(ranker).fit(X, codes)
        assert_array_equal(fitted.coef_, reference.coef_)

    def test_lists_and_object_labels(self):
        X, codes = graded_rows()
        words = ["keep" if c else "drop" for c in codes]
        from_list = PairwiseRanker().fit(X.tolist(), words)
        from_objects = PairwiseRanker().fit(X, np.array(words, dtype=object))
        assert_array_equal(from_list.coef_, from_objects.coef_)

    @pytest.mark.parametrize("loss", LOSSES)
    def test_grades(self, loss):
        X, y = graded_rows(classes=4)
        fitted = PairwiseRanker(loss, graph="order").fit(X, y)
        assert metrics.wmw(y, fitted.decision_function(X)) > 0.85
        predicted = fitted.predict(X)
        assert_array_equal(np.bincount(predicted), np.bincount(y))  # grades of their true sizes
        assert_allclose(fitted.thresholds_, np.sort(fitted.thresholds_))

    def test_a_graph_with_all_edges_is_the_order(self):
        X, y = graded_rows(classes=3)
        names = np.array(["a bad", "b fair", "c good"])[y]
        edges = [("c good", "a bad"), ("c good", "b fair"), ("b fair", "a bad")]
        order = PairwiseRanker(graph="order", tol=1e-8).fit(X, y)
        graph = PairwiseRanker(graph=edges, tol=1e-8).fit(X, names)
        assert_allclose(graph.coef_, order.coef_, rtol=1e-6)

    def test_a_graph_may_turn_the_order_round(self):
        X, y = graded_rows()
        straight = PairwiseRanker(tol=1e-8).fit(X, y)
        turned = PairwiseRanker(graph=[(0, 1)], tol=1e-8).fit(X, y)
        assert_allclose(turned.coef_, -straight.coef_, rtol=1e-6)


class TestBadInput:
    X, y = graded_rows(n=40)

    def refuses(self, message, *args, ranker=None, **kwargs):
        with pytest.raises(ValueError, match=message):
            (ranker or PairwiseRanker()).fit(*args, **kwargs)

    @pytest.mark.parametrize("cls", [PairwiseRanker, PointwiseRanker])
    def test_rows(self, cls):
        self.refuses("y has one class only", self.X, np.ones(40), ranker=cls())
        self.refuses("contains NaN", np.where(self.X > 2, np.nan, self.X), self.y, ranker=cls())
        self.refuses(
            "contains infinity", np.where(self.X > 2, np.inf, self.X), self.y, ranker=cls()
        )
        self.refuses("inconsistent numbers of samples", self.X, self.y[:-1], ranker=cls())
        self.refuses("0 sample", np.empty((0, 5)), [], ranker=cls())
        self.refuses("0 feature", np.empty((40, 0)), self.y, ranker=cls())
        self.refuses("Input y contains NaN", self.X, np.where(self.y, np.nan, 0.0), ranker=cls())
        self.refuses(
            "Only binary classification is supported.*3 classes",
            self.X,
            np.arange(40) % 3,
            ranker=cls(),
        )

    @pytest.mark.parametrize("cls", [PairwiseRanker, PointwiseRanker])
    def test_weights(self, cls):
        negative = np.ones(40)
        negative[7] = -2.0
        self.refuses(
            "not negative; row 7 has -2",
            self.X,
            self.y,
            sample_weight=negative,
            ranker=cls(),
        )
        self.refuses(
            "39 entries for 40 rows", self.X, self.y, sample_weight=np.ones(39), ranker=cls()
        )
        self.refuses("zero for every row", self.X, self.y, sample_weight=np.zeros(40), ranker=cls())
        self.refuses(
            "contains NaN", self.X, self.y, sample_weight=np.full(40, np.nan), ranker=cls()
        )
        one_sided = np.where(self.y == 1, 0.0, 1.0)
        self.refuses(
            "class 1 have sample_weight zero", self.X, self.y, sample_weight=one_sided, ranker=cls()
        )

    @pytest.mark.parametrize("cls", [PairwiseRanker, PointwiseRanker])
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"alpha": -1.0}, "alpha must be a number >= 0; got -1.0"),
            ({"alpha": "big"}, "alpha must be a number >= 0; got 'big'"),
            ({"alpha": np.nan}, "alpha must be a number"),
            ({"alpha": 0.0, "loss": "hinge"}, "alpha must be a number > 0"),
            ({"tol": 0.0}, "tol must be a number > 0"),
            ({"max_iter": 0}, "max_iter must be an integer >= 1"),
            ({"max_iter": 2.5}, "max_iter must be an integer >= 1; got 2.5"),
            ({"loss": "absolute"}, "loss must be one of 'exponential', 'hinge'"),
        ],
    )
    def test_parameters(self, cls, parameters, message):
        self.refuses(message, self.X, self.y, ranker=cls(**parameters))

    def test_class_weight(self):
        for bad in ("heavy", 3.0):
            self.refuses(
                "class_weight must be a dict",
                self.X,
                self.y,
                ranker=PointwiseRanker(class_weight=bad),
            )

    def test_graph(self):
        self.refuses(
            "graph must be one of 'order', .* got 'ladder'",
            self.X,
            self.y,
            ranker=PairwiseRanker(graph="ladder"),
        )
        self.refuses(
            "which y does not contain", self.X, self.y, ranker=PairwiseRanker(graph=[(1, 5)])
        )
        self.refuses("cycle", self.X, self.y, ranker=PairwiseRanker(graph=[(1, 0), (0, 1)]))
        self.refuses('set graph="order"', self.X, np.arange(40) % 3)

    def test_qid(self):
        self.refuses(
            "qid has 2 values for 40 rows; give the group of each row",
            self.X,
            self.y,
            qid=[20, 20],
        )
        self.refuses("qid is NaN in 40 of 40 rows", self.X, self.y, qid=np.full(40, np.nan))
        self.refuses("There are no pairs", self.X, self.y, qid=np.arange(40))

    def test_groups_without_pairs_are_counted(self):
        y = self.y.copy()
        qid = np.arange(40) // 10
        y[:20] = 1
        y[20], y[21], y[30], y[31] = 0, 1, 0, 1
        with pytest.warns(
            UserWarning,
            match="2 of 4 qid groups have no pair of different classes; their 20 rows are",
        ):
            fitted = PairwiseRanker().fit(self.X, y, qid=qid)
        rest = PairwiseRanker().fit(self.X[20:], y[20:], qid=qid[20:])
        assert_allclose(fitted.coef_, rest.coef_, rtol=1e-6)
        one = np.append(np.zeros(39, dtype=int), 1)  # a group of one row
        with pytest.warns(
            UserWarning,
            match="1 of 2 qid groups has no pair of different classes; its 1 row is excluded",
        ):
            PairwiseRanker().fit(self.X, y, qid=one)

    def test_unfitted(self):
        for method in ("decision_function", "predict", "rank"):
            with pytest.raises(NotFittedError):
                getattr(PairwiseRanker(), method)(self.X)

    def test_unconverged_fits_warn_with_the_certificate(self):
        X, y = graded_rows()
        with pytest.warns(
            ConvergenceWarning,
            match="after 1 iteration .max_iter=1. at a relative gradient norm of",
        ):
            PairwiseRanker("logistic", tol=1e-9, max_iter=1).fit(X, y)

    def test_warm_start_with_other_columns(self):
        ranker = PairwiseRanker(warm_start=True).fit(self.X, self.y)
        with pytest.raises(ValueError, match="continues from 5 columns, but X has 3"):
            ranker.fit(self.X[:, :3], self.y)


class TestThresholds:
    @pytest.mark.parametrize("decimals", [0, 1, 12])
    @pytest.mark.parametrize("share", [0.001, 0.3, 0.999])
    def test_midway_above_the_last_of_the_lower_class(self, decimals, share):
        rng = np.random.default_rng(0)
        scores = np.round(rng.standard_normal(200), decimals)
        codes = (np.arange(200) >= max(200 * share, 1)).astype(np.int8)
        n_lower = int(np.sum(codes == 0))
        ascending = np.sort(scores)
        below = ascending[n_lower - 1]
        higher = ascending[ascending > below]
        expected = (below + higher[0]) / 2 if higher.size else below
        assert_allclose(prevalence_thresholds(scores, codes, None, 2), [expected])
        # Weights of one take the way of unequal weights.
        assert_allclose(prevalence_thresholds(scores, codes, np.ones(200), 2), [expected])


class TestScikitLearn:
    X, y = graded_rows(n=400)

    @pytest.mark.parametrize("cls", [PairwiseRanker, PointwiseRanker])
    def test_cross_val_score(self, cls):
        assert cross_val_score(cls(), self.X, self.y, scoring="roc_auc").min() > 0.85
        assert cross_val_score(cls(), self.X, self.y, scoring="average_precision").min() > 0.8

    @pytest.mark.parametrize("cls", [PairwiseRanker, PointwiseRanker])
    def test_grid_search_in_a_pipeline_with_workers(self, cls):
        grid = {
            f"{cls.__name__.lower()}__alpha": [1e-1, 1e-3],
            f"{cls.__name__.lower()}__loss": ["logistic", "hinge"],
        }
        search = GridSearchCV(
            make_pipeline(StandardScaler(), cls()), grid, scoring="roc_auc", n_jobs=2
        )
        assert search.fit(self.X, self.y).best_score_ > 0.85

    @pytest.mark.parametrize("cls", [PairwiseRanker, PointwiseRanker])
    def test_calibration(self, cls):
        calibrated = CalibratedClassifierCV(cls(), cv=3).fit(self.X, self.y)
        probability = calibrated.predict_proba(self.X)[:, 1]
        assert roc_auc_score(self.y, probability) > 0.85
        assert abs(probability.mean() - self.y.mean()) < 0.05

    @pytest.mark.parametrize("ranker", RANKERS, ids=repr)
    def test_pickling(self, ranker, tmp_path):
        fitted = clone(ranker).fit(self.X, self.y)
        joblib.dump(fitted, tmp_path / "ranker")
        assert_array_equal(
            joblib.load(tmp_path / "ranker").decision_function(self.X),
            fitted.decision_function(self.X),
        )

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    def test_frames_keep_their_column_names(self, frame):
        names = [f"column {k}" for k in range(5)]
        table = frame(dict(zip(names, self.X.T, strict=True)))
        fitted = PairwiseRanker().fit(table, self.y)
        assert_array_equal(fitted.feature_names_in_, names)
        assert_allclose(
            fitted.decision_function(table),
            PairwiseRanker().fit(self.X, self.y).decision_function(self.X),
        )
        with pytest.raises(ValueError, match="feature names"):
            fitted.predict(frame(dict(zip(names[::-1], self.X.T, strict=True))))

    @pytest.mark.parametrize("series", [pd.Series, pl.Series])
    def test_series_for_labels_weights_and_groups(self, series):
        weight, qid = np.linspace(1, 2, 400), np.arange(400) // 20
        plain = PairwiseRanker().fit(self.X, self.y, sample_weight=weight, qid=qid)
        framed = PairwiseRanker().fit(
            self.X, series(self.y), sample_weight=series(weight), qid=series(qid)
        )
        assert_array_equal(framed.coef_, plain.coef_)

    def test_metadata_is_routed(self):
        weight, qid = np.linspace(1, 2, 400), np.arange(400) // 20
        with sklearn.config_context(enable_metadata_routing=True):
            ranker = PairwiseRanker().set_fit_request(sample_weight=True, qid=True)
            scorer = metrics.get_scorer("wmw").set_score_request(sample_weight=True, qid=True)
            pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), ranker)
            params = {"sample_weight": weight, "qid": qid}
            scores = cross_validate(
                pipeline,
                self.X,
                self.y,
                cv=GroupKFold(4),
                params={**params, "groups": qid},
                scoring=scorer,
                return_estimator=True,
            )
            fold = next(iter(GroupKFold(4).split(self.X, self.y, qid)))
        X = StandardScaler().fit(self.X[fold[0]])
        by_hand = PairwiseRanker().fit(
            X.transform(self.X[fold[0]]),
            self.y[fold[0]],
            sample_weight=weight[fold[0]],
            qid=qid[fold[0]],
        )
        assert_allclose(scores["estimator"][0][-1].coef_, by_hand.coef_, rtol=1e-10)
        expected = metrics.wmw(
            self.y[fold[1]], by_hand.decision_function(X.transform(self.X[fold[1]])),
            sample_weight=weight[fold[1]], qid=qid[fold[1]],
        )  # fmt: skip
        assert_allclose(scores["test_score"][0], expected)

    def test_metadata_without_routing(self):
        weight = np.linspace(1, 2, 400)
        pipeline = make_pipeline(StandardScaler(), PairwiseRanker())
        pipeline.fit(
            self.X,
            self.y,
            pairwiseranker__sample_weight=weight,
            pairwiseranker__qid=np.arange(400) // 20,
        )
        by_hand = PairwiseRanker().fit(
            StandardScaler().fit_transform(self.X),
            self.y,
            sample_weight=weight,
            qid=np.arange(400) // 20,
        )
        assert_array_equal(pipeline[-1].coef_, by_hand.coef_)

    def test_unrequested_metadata_is_refused(self):
        with (
            sklearn.config_context(enable_metadata_routing=True),
            pytest.raises(ValueError, match="qid"),
        ):
            cross_validate(
                PairwiseRanker(),
                self.X,
                self.y,
                params={"qid": np.arange(400)},
                error_score="raise",
            )

    def test_an_array_after_a_table_has_no_names(self):
        X, y = np.random.default_rng(0).standard_normal((50, 2)), np.arange(50) % 2
        ranker = PairwiseRanker().fit(pd.DataFrame(X, columns=["a", "b"]), y)
        assert ranker.feature_names_in_.tolist() == ["a", "b"]
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            ranker.decision_function(X)
        ranker.fit(X, y)
        assert not hasattr(ranker, "feature_names_in_")
        assert ranker.n_features_in_ == 2
        with pytest.raises(ValueError, match="X has 1 features"):
            ranker.decision_function(X[:, :1])
