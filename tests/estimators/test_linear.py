"""Linear rankers: fits, memory, and the hinge loss on rows."""

import importlib
import sys
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from forerank import PairwiseRanker, PointwiseRanker
from linear_rankers import LOSSES, RANKERS
from tables import graded_rows


class TestFit:
    @pytest.mark.parametrize("ranker", RANKERS, ids=repr)
    def test_objective_and_certificate(self, ranker):
        X, y = graded_rows()
        fitted = clone(ranker).fit(X, y)
        assert fitted.optimality_ <= fitted.tol
        assert fitted.history_[-1].objective == fitted.objective_
        assert fitted.n_iter_ >= 1
        assert fitted.coef_.shape == (1, 5)
        assert fitted.intercept_.shape == (1,)

    @pytest.mark.parametrize("ranker", RANKERS, ids=repr)
    def test_storage_does_not_matter(self, ranker):
        X, y = graded_rows()
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
        X, y = graded_rows(n=120)
        times = np.random.default_rng(2).integers(0, 3, 120)
        rows = np.repeat(np.arange(120), times)
        ranker = clone(ranker).set_params(tol=1e-7, alpha=1e-2)
        weighted = clone(ranker).fit(X, y, sample_weight=times)
        repeated = clone(ranker).fit(X[rows], y[rows])
        assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-6)
        assert_allclose(weighted.coef_, repeated.coef_, rtol=2e-3, atol=2e-3)

    @pytest.mark.parametrize("ranker", RANKERS, ids=repr)
    def test_row_order_does_not_matter(self, ranker):
        X, y = graded_rows()
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
        X, y = graded_rows(classes=3)
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
        X, y = graded_rows()
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
        X, y = graded_rows(n=20_000)
        for loss in ("squared_hinge", "logistic"):
            first, second = (PairwiseRanker(loss).fit(X, y).coef_ for _ in range(2))
            assert first.tobytes() == second.tobytes()

    def test_verbose_shows_progress(self, capsys):
        PairwiseRanker(verbose=True).fit(*graded_rows())
        assert "optimality" in capsys.readouterr().out

    def test_an_interruption_keeps_the_weights(self, monkeypatch):
        X, y = graded_rows()
        ranker = PairwiseRanker("logistic", tol=1e-10)
        calls = []

        def interrupt(*args, **kwargs):
            calls.append(1)
            if len(calls) == 3:
                raise KeyboardInterrupt
            return original(*args, **kwargs)

        module = sys.modules["forerank.solvers.newton"]
        original = module._line_search
        monkeypatch.setattr(module, "_line_search", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ranker.fit(X, y)
        assert roc_auc_score(y, X @ ranker.coef_[0]) > 0.9


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
        X, y = graded_rows(n=2000)
        weight = (np.arange(2000) % 2).astype(float)
        ranker = PointwiseRanker("hinge", alpha=1e-2, fit_intercept=intercept)
        weighted = clone(ranker).fit(X, y, sample_weight=weight)
        alone = clone(ranker).fit(X[1::2], y[1::2])
        assert weighted.n_iter_ <= 2 * alone.n_iter_ + 2
        assert weighted.objective_ == pytest.approx(alone.objective_, rel=2e-3)

    def test_data_frames_take_the_same_way(self):
        X, y = graded_rows(n=2000)
        ranker = PointwiseRanker("hinge", alpha=1e-2)
        assert_array_equal(ranker.fit(pd.DataFrame(X), y).coef_, clone(ranker).fit(X, y).coef_)

    def test_an_interruption_leaves_weights_with_their_intercept(self, monkeypatch):
        X, y = graded_rows(n=400)
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
        X, y = graded_rows(n=300)
        ranker = PointwiseRanker("hinge", alpha=1e-6, tol=1e-4, max_iter=60)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = ranker.fit(X, y)
        assert fitted.n_iter_ <= 60
        assert 0.0 <= fitted.optimality_ < 1.0
