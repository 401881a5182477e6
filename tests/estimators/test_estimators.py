import importlib
import sys
import tracemalloc
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from forerank import PairwiseRanker, PointwiseRanker, metrics

LOSSES = ("exponential", "hinge", "logistic", "squared", "squared_hinge")
RANKERS = [cls(loss) for cls in (PairwiseRanker, PointwiseRanker) for loss in LOSSES]


def data(n=300, d=5, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    score = X @ np.arange(1, d + 1) + 2 * rng.standard_normal(n)
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))


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
        X, codes = data()
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
        X, codes = data()
        words = ["keep" if c else "drop" for c in codes]
        from_list = PairwiseRanker().fit(X.tolist(), words)
        from_objects = PairwiseRanker().fit(X, np.array(words, dtype=object))
        assert_array_equal(from_list.coef_, from_objects.coef_)

    @pytest.mark.parametrize("loss", LOSSES)
    def test_grades(self, loss):
        X, y = data(classes=4)
        fitted = PairwiseRanker(loss, graph="order").fit(X, y)
        assert metrics.wmw(y, fitted.decision_function(X)) > 0.85
        predicted = fitted.predict(X)
        assert_array_equal(np.bincount(predicted), np.bincount(y))  # grades of their true sizes
        assert_allclose(fitted.thresholds_, np.sort(fitted.thresholds_))

    def test_a_graph_with_all_edges_is_the_order(self):
        X, y = data(classes=3)
        names = np.array(["a bad", "b fair", "c good"])[y]
        edges = [("c good", "a bad"), ("c good", "b fair"), ("b fair", "a bad")]
        order = PairwiseRanker(graph="order", tol=1e-8).fit(X, y)
        graph = PairwiseRanker(graph=edges, tol=1e-8).fit(X, names)
        assert_allclose(graph.coef_, order.coef_, rtol=1e-6)

    def test_a_graph_may_turn_the_order_round(self):
        X, y = data()
        straight = PairwiseRanker(tol=1e-8).fit(X, y)
        turned = PairwiseRanker(graph=[(0, 1)], tol=1e-8).fit(X, y)
        assert_allclose(turned.coef_, -straight.coef_, rtol=1e-6)


class TestFit:
    @pytest.mark.parametrize("ranker", RANKERS, ids=repr)
    def test_objective_and_certificate(self, ranker):
        X, y = data()
        fitted = clone(ranker).fit(X, y)
        assert fitted.optimality_ <= fitted.tol
        assert fitted.history_[-1].objective == fitted.objective_
        assert fitted.n_iter_ >= 1
        assert fitted.coef_.shape == (1, 5)
        assert fitted.intercept_.shape == (1,)

    @pytest.mark.parametrize("ranker", RANKERS, ids=repr)
    def test_storage_does_not_matter(self, ranker):
        X, y = data()
        X[np.abs(X) < 0.5] = 0.0
        X = X.astype(np.float32).astype(float)
        # A gap of 1e-6 leaves weights free within about its square root; a gradient norm of 1e-9
        # does not.
        tol, close = (1e-6, 2e-3) if ranker.loss == "hinge" else (1e-9, 1e-6)
        ranker = clone(ranker).set_params(tol=tol)
        reference = clone(ranker).fit(X, y).coef_
        csr = sp.csr_array(X)
        wide = sp.csr_array(
            (csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64)), shape=csr.shape
        )
        for other in (
            np.asfortranarray(X),
            csr,
            wide,
            sp.csc_array(X),
            X.astype(np.float32),
            pd.DataFrame(X),
        ):
            assert_allclose(clone(ranker).fit(other, y).coef_, reference, rtol=close, atol=close)

    @pytest.mark.parametrize("ranker", RANKERS, ids=repr)
    def test_weights_are_repetitions(self, ranker):
        X, y = data(n=120)
        times = np.random.default_rng(2).integers(0, 3, 120)
        rows = np.repeat(np.arange(120), times)
        ranker = clone(ranker).set_params(tol=1e-7, alpha=1e-2)
        weighted = clone(ranker).fit(X, y, sample_weight=times)
        repeated = clone(ranker).fit(X[rows], y[rows])
        assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-6)
        assert_allclose(weighted.coef_, repeated.coef_, rtol=2e-3, atol=2e-3)

    @pytest.mark.parametrize("ranker", RANKERS, ids=repr)
    def test_row_order_does_not_matter(self, ranker):
        X, y = data()
        order = np.random.default_rng(1).permutation(len(y))
        ranker = clone(ranker).set_params(tol=1e-8)
        assert_allclose(
            clone(ranker).fit(X[order], y[order]).coef_,
            clone(ranker).fit(X, y).coef_,
            rtol=1e-4,
            atol=1e-6,
        )

    @pytest.mark.parametrize("intercept", [False, True])
    @pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 5.0}])
    def test_pointwise_logistic_is_logistic_regression(self, intercept, class_weight):
        X, y = data(classes=3)
        y = y == 2
        peer = LogisticRegression(
            C=1 / (1e-3 * 300),
            class_weight=class_weight,
            fit_intercept=intercept,
            tol=1e-9,
            max_iter=5000,
        )
        weight = np.ones(300) if class_weight != {0: 1.0, 1: 5.0} else np.where(y, 5.0, 1.0)
        # Ours is a mean over the weights, theirs a sum.
        ours = PointwiseRanker(
            alpha=1e-3 * 300 / weight.sum(),
            class_weight=class_weight,
            fit_intercept=intercept,
            tol=1e-9,
        )
        assert_allclose(ours.fit(X, y).coef_, peer.fit(X, y).coef_, rtol=1e-5)
        assert_allclose(ours.intercept_, peer.intercept_, rtol=1e-4, atol=1e-8)

    def test_groups_restrict_the_pairs(self):
        # Inside a group x ranks rightly; across groups it is the offset that speaks, the wrong way
        # round.
        X = np.array([[0.0], [1.0], [10.0], [11.0], [20.0], [21.0]])
        y = np.array([0, 1, 0, 1, 0, 1])
        qid = np.array(["b", "b", "a", "a", "c", "c"])
        X[[1, 3]] -= 0.5
        grouped = PairwiseRanker(alpha=1e-6).fit(X, y, qid=qid)
        assert grouped.coef_[0, 0] > 0.5
        shuffled = np.array([4, 1, 0, 3, 2, 5])
        again = PairwiseRanker(alpha=1e-6).fit(X[shuffled], y[shuffled], qid=qid[shuffled])
        assert_allclose(again.coef_, grouped.coef_, rtol=1e-8)

    @pytest.mark.parametrize(
        "qid",
        [[1, 1, 2, 2], ["x", "x", "y", "y"], [("a", 1), ("a", 1), "b", "b"], [1.5, 1.5, 2, 2]],
    )
    def test_any_hashable_qid(self, qid):
        labels = np.empty(4, dtype=object)
        labels[:] = qid
        X, y = np.array([[0.0], [1.0], [0.0], [2.0]]), [0, 1, 0, 1]
        expected = PairwiseRanker().fit(X, y, qid=[0, 0, 1, 1]).coef_
        assert_array_equal(PairwiseRanker().fit(X, y, qid=labels).coef_, expected)

    @pytest.mark.parametrize("ranker", RANKERS, ids=repr)
    def test_warm_start_continues(self, ranker):
        X, y = data()
        warm = clone(ranker).set_params(warm_start=True, tol=1e-5).fit(X, y)
        steps = warm.n_iter_
        coef = warm.coef_
        warm.fit(X, y)
        assert warm.n_iter_ <= max(1, steps - 1)
        assert_allclose(warm.coef_, coef, rtol=1e-2, atol=1e-3)

    def test_rank_puts_the_best_first_and_keeps_ties_in_order(self):
        X = np.array([[0.0], [2.0], [1.0], [2.0]])
        assert_array_equal(PairwiseRanker().fit(X, [0, 1, 0, 1]).rank(X), [1, 3, 2, 0])

    def test_the_same_data_give_the_same_bytes(self):
        X, y = data(n=20_000)
        for loss in ("squared_hinge", "logistic"):
            first, second = (PairwiseRanker(loss).fit(X, y).coef_ for _ in range(2))
            assert first.tobytes() == second.tobytes()

    def test_verbose_shows_progress(self, capsys):
        PairwiseRanker(verbose=True).fit(*data())
        assert "optimality" in capsys.readouterr().out

    def test_an_interruption_keeps_the_weights(self, monkeypatch):
        X, y = data()
        ranker = PairwiseRanker("logistic", tol=1e-10)
        calls = []

        def interrupt(*args, **kwargs):
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return original(*args, **kwargs)

        module = sys.modules["forerank.solvers.newton"]
        original = module._newton_direction
        monkeypatch.setattr(module, "_newton_direction", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ranker.fit(X, y)
        assert roc_auc_score(y, X @ ranker.coef_[0]) > 0.9


class TestBadInput:
    X, y = data(n=40)

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
            "qid has 2 values for 40 rows; it names the group of each row",
            self.X,
            self.y,
            qid=[20, 20],
        )
        self.refuses("qid is NaN in 40 of 40 rows", self.X, self.y, qid=np.full(40, np.nan))
        self.refuses("There is no pair to learn from", self.X, self.y, qid=np.arange(40))

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
            match="1 of 2 qid groups has no pair of different classes; its 1 row is left out",
        ):
            PairwiseRanker().fit(self.X, y, qid=one)

    def test_unfitted(self):
        for method in ("decision_function", "predict", "rank"):
            with pytest.raises(NotFittedError):
                getattr(PairwiseRanker(), method)(self.X)

    def test_unconverged_fits_warn_with_the_certificate(self):
        X, y = data()
        with pytest.warns(
            ConvergenceWarning,
            match="after 1 iteration .max_iter=1. at a relative gradient norm of",
        ):
            PairwiseRanker("logistic", tol=1e-9, max_iter=1).fit(X, y)

    def test_warm_start_with_other_columns(self):
        ranker = PairwiseRanker(warm_start=True).fit(self.X, self.y)
        with pytest.raises(ValueError, match="continues from 5 columns, but X has 3"):
            ranker.fit(self.X[:, :3], self.y)


class TestScikitLearn:
    X, y = data(n=400)

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
                pipeline, self.X, self.y, cv=GroupKFold(4), params={**params, "groups": qid}, scoring=scorer,
                return_estimator=True,
            )  # fmt: skip
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


class TestMemory:
    """A fit copies neither X nor its labels more than a bounded number of times."""

    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("kind", ["C", "Fortran", "float32", "CSR"])
    def test_peak_beyond_X(self, loss, kind):
        n, d = 100_000, 40
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, d))
        y = (X[:, 0] + rng.standard_normal(n) > 0).astype(int)
        X = {
            "C": lambda: X,
            "Fortran": lambda: np.asfortranarray(X),
            "float32": lambda: X.astype(np.float32),
            "CSR": lambda: sp.csr_array(X),
        }[kind]()
        ranker = PairwiseRanker(loss)
        ranker.fit(X, y)  # compiled code is not counted
        tracemalloc.start()
        ranker.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= 16 * 8 * n


class TestHingeOnRows:
    """Dual coordinate descent behind PointwiseRanker("hinge")."""

    @pytest.mark.parametrize("intercept", [False, True])
    def test_rows_without_weight_do_not_keep_it_from_settling(self, intercept):
        X, y = data(n=2000)
        weight = (np.arange(2000) % 2).astype(float)
        ranker = PointwiseRanker("hinge", alpha=1e-2, fit_intercept=intercept)
        weighted = clone(ranker).fit(X, y, sample_weight=weight)
        alone = clone(ranker).fit(X[1::2], y[1::2])
        assert weighted.n_iter_ <= 2 * alone.n_iter_ + 2
        assert weighted.objective_ == pytest.approx(alone.objective_, rel=2e-3)

    def test_data_frames_take_the_same_way(self):
        X, y = data(n=2000)
        ranker = PointwiseRanker("hinge", alpha=1e-2)
        assert_array_equal(ranker.fit(pd.DataFrame(X), y).coef_, clone(ranker).fit(X, y).coef_)

    def test_an_interruption_leaves_weights_with_their_intercept(self, monkeypatch):
        X, y = data(n=400)
        X = X + 5.0

        def interrupted(pairs, box, **settings):
            settings["progress"].w = np.ones(5)
            raise KeyboardInterrupt

        module = importlib.import_module("forerank.solvers.pointwise_dual")
        monkeypatch.setattr(module, "dual_descent", interrupted)
        ranker = PointwiseRanker("hinge")
        with pytest.raises(KeyboardInterrupt):
            ranker.fit(X, y)
        assert_array_equal(ranker.coef_, np.ones((1, 5)))
        assert abs(ranker.intercept_[0]) > 5.0
        assert np.mean(ranker.predict(X) == y) > 0.7

    def test_where_descent_does_not_settle_cutting_planes_go_on(self):
        X, y = data(n=300)
        ranker = PointwiseRanker("hinge", alpha=1e-6, tol=1e-4, max_iter=60)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = ranker.fit(X, y)
        assert fitted.n_iter_ <= 60
        assert 0.0 <= fitted.optimality_ < 1.0
