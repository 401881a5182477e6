"""The rankers for the top of the list as scikit-learn estimators."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits, make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from forerank import (
    AATPRanker,
    MAPRanker,
    OWPCRanker,
    PartialAUCRanker,
    SparseTopPush,
    TopPush,
    TopRanker,
    metrics,
)
from top_rows import data

LOSSES = ("exponential", "hinge", "logistic", "squared_hinge")
RANKERS = [
    TopPush(),
    TopPush("hinge"),
    TopPush(solver="nesterov", alpha=1.0),
    TopRanker(at=3),
    TopRanker(at=0.1),
    SparseTopPush(),
    PartialAUCRanker(),
    OWPCRanker(),
    MAPRanker(),
    AATPRanker(),
]


# Two fits to a certified gap agree in their objective; their weights may differ by more than
# scikit-learn's 1e-7. (Repeated rows are merged, so that most rankers fit the same rows twice.)
NOT_EXACT = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "weights of a fit to a certified gap agree to the gap's square root, not to 1e-7",
)


def not_exact(estimator):
    return NOT_EXACT if isinstance(estimator, SparseTopPush) else {}


@pytest.mark.filterwarnings("ignore:.*(found no|same score):UserWarning")
@parametrize_with_checks([clone(ranker) for ranker in RANKERS], expected_failed_checks=not_exact)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class TestFits:
    @pytest.mark.parametrize("ranker", RANKERS, ids=repr)
    def test_certificate_and_attributes(self, ranker):
        X, y = data()
        fitted = clone(ranker).fit(X, y)
        assert 0.0 <= fitted.optimality_ <= fitted.tol
        assert fitted.coef_.shape == (1, 5)
        assert fitted.history_[-1].optimality >= 0.0
        assert metrics.roc_auc(y, fitted.decision_function(X)) > 0.9
        assert_array_equal(fitted.predict(X).sum(), y.sum())
        assert_array_equal(
            fitted.rank(X)[:5], np.argsort(-fitted.decision_function(X), kind="stable")[:5]
        )

    # Not AATP: which row sets its threshold may hang on the last digit of a score.
    @pytest.mark.parametrize("ranker", RANKERS[:-1], ids=repr)
    def test_storage_does_not_matter(self, ranker):
        X, y = data()
        X = X.astype(np.float32).astype(float)
        expected = clone(ranker).fit(X, y)
        for other in (
            sp.csr_array(X),
            sp.csr_matrix(X),
            np.asfortranarray(X),
            X.astype(np.float32),
            pd.DataFrame(X),
        ):
            fitted = clone(ranker).fit(other, y)
            assert fitted.objective_ == pytest.approx(expected.objective_, rel=3 * ranker.tol)

    @pytest.mark.parametrize(
        "ranker", [r for r in RANKERS if not isinstance(r, MAPRanker | AATPRanker)], ids=repr
    )
    def test_a_weight_of_two_is_two_rows(self, ranker):
        X, y = data(n=150)
        weight = np.random.default_rng(0).integers(0, 3, 150)
        rows = np.repeat(np.arange(150), weight)
        weighted = clone(ranker).fit(X, y, sample_weight=weight)
        repeated = clone(ranker).fit(X[rows], y[rows])
        assert weighted.objective_ == pytest.approx(repeated.objective_, rel=3 * ranker.tol)

    def test_equal_weights_count_places(self):
        X, y = data(n=150)
        for ranker in (TopRanker(at=5), OWPCRanker([3, 2, 1])):
            thrice = clone(ranker).fit(X, y, sample_weight=np.full(150, 3.0))
            repeated = clone(ranker).fit(np.repeat(X, 3, axis=0), np.repeat(y, 3))
            assert thrice.objective_ == pytest.approx(repeated.objective_, rel=3 * ranker.tol)
            assert thrice.objective_ != pytest.approx(
                clone(ranker).fit(X, y).objective_, rel=10 * ranker.tol
            )

    def test_tiny_weights(self):
        X, y = data(n=150)
        weight = np.where(np.arange(150) == 0, 2e-20, 1e-20)
        ranker = OWPCRanker().fit(X, y, sample_weight=weight)
        assert ranker.objective_ > 0.0
        assert ranker.optimality_ <= 1e-3

    def test_the_cut_counts_weights_like_repetitions(self):
        X, y = data(n=150)
        weight = np.random.default_rng(1).integers(0, 4, 150)
        rows = np.repeat(np.arange(150), weight)
        weighted = TopPush("logistic", tol=1e-9).fit(X, y, sample_weight=weight)
        repeated = TopPush("logistic", tol=1e-9).fit(X[rows], y[rows])
        assert_allclose(weighted.intercept_, repeated.intercept_, atol=1e-3)

    @pytest.mark.parametrize("loss", LOSSES)
    def test_losses(self, loss):
        X, y = data()
        for ranker in (TopPush(loss), TopRanker(loss, at=2), SparseTopPush(loss)):
            assert ranker.fit(X, y).optimality_ <= 1e-4

    def test_interruption_leaves_a_usable_ranker(self, monkeypatch):
        X, y = data()

        def interrupted(self, start, start_dual, max_iter, progress):
            progress.record(np.ones(5), 300, 1.0, 0.5)
            raise KeyboardInterrupt

        monkeypatch.setattr("forerank.solvers.top_newton._WorkingSetNewton.run", interrupted)
        for ranker in (TopPush(), SparseTopPush()):
            with pytest.raises(KeyboardInterrupt):
                ranker.fit(X, y)
            assert metrics.roc_auc(y, ranker.decision_function(X)) > 0.8

    def test_verbose(self, capsys):
        X, y = data()
        TopPush(verbose=True).fit(X, y)
        assert "objective" in capsys.readouterr().out


class TestScikitLearn:
    def test_grid_search_for_positives_at_the_top(self):
        X, digit = load_digits(return_X_y=True)
        y = digit == 8
        top = make_scorer(metrics.pos_at_top, response_method="decision_function")
        pipeline = make_pipeline(StandardScaler(), TopPush())
        search = GridSearchCV(pipeline, {"toppush__alpha": [1e-1, 1e-2]}, scoring=top, cv=3).fit(
            X, y
        )
        assert search.best_score_ > 0.1

    @pytest.mark.parametrize(
        "features", [Nystroem(0.5, n_components=60), RBFSampler(gamma=0.5, n_components=200)]
    )
    def test_kernels(self, features):
        """A ring around the negatives, which no linear score ranks."""
        X, y = make_circles(400, noise=0.1, factor=0.4, random_state=0)
        features = clone(features).set_params(random_state=0)
        if isinstance(features, Nystroem):
            features.set_params(kernel="rbf", gamma=0.5)
        ranker = make_pipeline(features, TopPush(alpha=1e-3)).fit(X, y)
        assert metrics.pos_at_top(y, ranker.decision_function(X)) > 0.9

    def test_metadata_is_routed(self):
        X, y = data()
        weight = np.linspace(1, 2, 300)
        with sklearn.config_context(enable_metadata_routing=True):
            ranker = (
                TopPush().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
            )
            pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), ranker)
            found = cross_validate(pipeline, X, y, params={"sample_weight": weight}, cv=3)
        assert np.isfinite(found["test_score"]).all()


class TestBadInput:
    X, y = data()

    @pytest.mark.parametrize("ranker", RANKERS, ids=repr)
    def test_one_class(self, ranker):
        for label in (0, 1):
            with pytest.raises(ValueError, match="one class only"):
                clone(ranker).fit(self.X, np.full(300, label))

    @pytest.mark.parametrize("ranker", RANKERS, ids=repr)
    def test_three_classes(self, ranker):
        with pytest.raises(ValueError, match="Only binary"):
            clone(ranker).fit(self.X, np.arange(300) % 3)

    @pytest.mark.parametrize("at", [0, -1, 0.0, 1.0, 1.5, np.nan, "mean", None, True])
    def test_thresholds(self, at):
        with pytest.raises(ValueError, match="at"):
            TopRanker(at=at).fit(self.X, self.y)

    def test_more_than_there_are_negatives(self):
        n = int(np.sum(self.y == 0))
        with pytest.raises(ValueError, match=f"their total weight is {n}"):
            TopRanker(at=n + 1).fit(self.X, self.y)
        TopRanker(at=n).fit(self.X, self.y)

    @pytest.mark.parametrize(
        ("ranker", "message"),
        [
            (TopPush("squared"), "loss must be one of"),
            (TopPush(solver="lbfgs"), "solver must be one of"),
            (TopPush(solver="bundle"), "solver must be one of"),
            (TopPush(alpha=0.0), "alpha must be a number > 0"),
            (TopPush(tol=-1.0), "tol"),
            (TopPush(max_iter="many"), "max_iter"),
            (TopPush("logistic", solver="nesterov"), "conjugate"),
            (SparseTopPush(alpha=0.0), "alpha"),
            (PartialAUCRanker((0.5, 0.2)), "0 <= low < high <= 1"),
            (PartialAUCRanker((0.0, 1.2)), "0 <= low < high <= 1"),
            (PartialAUCRanker(0.1), "pair"),
            (OWPCRanker("linear"), "weights"),
            (OWPCRanker([1.0, 2.0]), "must not increase"),
            (OWPCRanker([]), "weights"),
            (OWPCRanker([-1.0]), "weights"),
            (AATPRanker(0.0), "fraction"),
            (AATPRanker(1.0), "fraction"),
            (AATPRanker(anchors="some"), "anchors"),
        ],
        ids=repr,
    )
    def test_parameters(self, ranker, message):
        with pytest.raises(ValueError, match=message):
            ranker.fit(self.X, self.y)

    def test_a_class_without_weight(self):
        with pytest.raises(ValueError, match="sample_weight zero"):
            TopPush().fit(self.X, self.y, sample_weight=self.y)

    def test_equal_rows_at_the_top(self):
        """The same rows in both classes: they cannot be told apart, and the fit says how far it
        got.
        """
        X = np.vstack([self.X, self.X[self.y == 1][:5]])
        y = np.concatenate([self.y, np.zeros(5, int)])
        with pytest.warns(UserWarning, match="found no better weights than w = 0"):
            assert TopPush(alpha=0.1).fit(X, y).optimality_ <= 1e-4
        copies = np.vstack([self.X] + [self.X[self.y == 0][:1]] * 50)
        labels = np.concatenate([self.y, np.zeros(50, int)])
        assert TopPush(alpha=0.1).fit(copies, labels).optimality_ <= 1e-4

    def test_nothing_to_learn_is_said(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((300, 3))
        X[:50] *= 0.1
        with pytest.warns(UserWarning, match="found no better weights than w = 0"):
            ranker = TopPush().fit(X, np.arange(300) < 50)
        assert ranker.optimality_ <= 1e-4

    def test_unconverged_fits_warn_with_the_gap(self):
        for ranker in (TopPush(max_iter=1, tol=1e-9), MAPRanker(max_iter=1, tol=1e-9)):
            with pytest.warns(ConvergenceWarning, match="relative duality gap") as caught:
                ranker.fit(self.X, self.y)
            assert [warning.filename for warning in caught] == [__file__]
