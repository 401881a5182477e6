"""The search behind Ranker: candidates that are dropped, samples of rows, smoothing of means."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from numpy.testing import assert_allclose
from sklearn.model_selection import StratifiedKFold

from forerank import Ranker
from forerank.selection import search as module
from forerank.selection.candidates import penalty_curve, select, typical_penalty
from forerank.selection.elimination import expected_gain
from forerank.selection.training_rows import TrainingRows, stratified_order


def test_a_method_that_is_clearly_worse_is_dropped(data):
    rng = np.random.default_rng(0)
    X, y = data(3000)
    X = np.hstack([X, rng.standard_normal((3000, 1))])
    ranker = Ranker(
        "auc", methods=["pointwise-logistic", "top-push"], alphas=[1e-1, 1e-2], random_state=0
    ).fit(X, y)  # fmt: skip
    left_out = dict(zip(ranker.cv_results_["method"], ranker.cv_results_["left_out"], strict=True))
    assert left_out["pointwise-logistic"] == ""
    assert left_out["top-push"].startswith("behind pointwise-logistic")
    assert "Dropped early: top-push" in ranker.reason_
    assert np.isnan(ranker.cv_results_["split4_test_score"][-1])


def test_a_dropped_method_names_the_folds_that_it_was_tried_on():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 8))
    y = X[:, 0] + np.abs(X[:, 1]) + rng.standard_normal(300) > 1.0
    results = Ranker("auc", alphas=3, random_state=0).fit(X, y).cv_results_
    splits = np.array([column for key, column in results.items() if key.startswith("split")])
    counted = set()
    for name in {results["method"][k] for k, why in enumerate(results["left_out"]) if why}:
        rows = [k for k, each in enumerate(results["method"]) if each == name]
        n = int(np.isfinite(splits[:, rows]).any(axis=1).sum())
        where = "fold 1" if n == 1 else f"the first {n} folds"
        assert results["left_out"][rows[0]].endswith(f" on {where}")
        counted.add(n)
    assert max(counted) > 2


def test_nothing_is_dropped_after_the_last_fold(monkeypatch):
    compared, drop = [], module.drop_behind

    def drop_behind(candidates, values, where):
        compared.append(len(values.folds))
        drop(candidates, values, where)

    monkeypatch.setattr(module, "drop_behind", drop_behind)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 6))
    y = X[:, 0] + rng.standard_normal(300) > 1.5  # few, so that all folds are repeated
    ranker = Ranker(families="linear", alphas=3, random_state=0).fit(X, y)
    assert "in 20 folds" in ranker.reason_
    assert compared == [1, 2, 5, 10, 15]


def test_a_trial_on_a_sample_is_not_called_a_fold(data, monkeypatch, capsys):
    monkeypatch.setattr(module, "_MANY_ROWS", 1000)
    monkeypatch.setattr(module, "_TRIAL_ROWS", 900)
    X, y = data(3000)
    methods = ["pointwise-logistic", "top-push"]
    ranker = Ranker("auc", methods=methods, alphas=[1e-1, 1e-2], random_state=0, verbose=True)
    ranker.fit(X, y)
    results = ranker.cv_results_
    reason = dict(zip(results["method"], results["left_out"], strict=True))["top-push"]
    assert reason.startswith("behind pointwise-logistic by")
    assert reason.endswith("on a sample of the rows")
    printed = capsys.readouterr().out
    assert "a sample of the rows, pointwise-logistic" in printed
    assert "fold 5, pointwise-logistic" in printed
    assert "fold 6" not in printed


class TestPenaltyCurve:
    """What a selection compares."""

    @staticmethod
    def folds(means, spread=0.01, n=5):
        """Results over folds with these means and independent deviations."""
        noise = np.random.default_rng(0).standard_normal((n, len(means)))
        return np.array(means) + spread * (noise - noise.mean(axis=0))

    def test_the_definition(self):
        results, ratio = self.folds([0.80, 0.802, 0.805, 0.70]), 0.25
        means = results.mean(axis=0)
        expected = []
        for k in range(4):
            values, weights = [means[k]], [1.0]
            for j in (k - 1, k + 1):
                if 0 <= j < 4:
                    d = results[:, k] - results[:, j]
                    t = d.mean() / np.sqrt((1 / 5 + ratio) * d.var(ddof=1))
                    values.append(means[j])
                    weights.append(0.5 * max(0.0, 1.0 - t**2))
            expected.append(np.average(values, weights=weights))
        assert_allclose(penalty_curve(results, ratio), expected)

    def test_an_end_does_not_win_over_the_peak_beside_it(self):
        # The best penalty lies between an end that is nearly as good and a steep decline.
        curve = penalty_curve(self.folds([0.7291, 0.7372, 0.69, 0.6], spread=0.002), 0.25)
        assert np.argmax(curve) == 1

    def test_folds_of_unequal_difficulty_change_nothing(self):
        results = self.folds([0.80, 0.802, 0.805, 0.70])
        level = np.array([-0.2, 0.1, 0.05, 0.0, 0.05])[:, None]
        assert_allclose(penalty_curve(results + level, 0.25), penalty_curve(results, 0.25))

    def test_penalties_without_results_have_no_value_and_no_say(self):
        results = self.folds([0.8, 0.81, 0.8, 0.79])
        missing = results.copy()
        missing[3, 0] = np.nan
        curve = penalty_curve(missing, 0.25)
        assert np.isnan(curve[0])
        assert_allclose(curve[1:], penalty_curve(results[:, 1:], 0.25))

    def test_one_fold_has_no_errors(self):
        assert_allclose(penalty_curve(np.array([[0.7, 0.9, 0.8]]), 0.25), [0.7, 0.9, 0.8])


class TestSelect:
    """The preference for typical penalties counts where the folds do not decide, and only there."""

    @staticmethod
    def decades(typical):
        return np.abs(np.log10(np.array([10.0, 0.1, 1e-3, 1e-5]) / typical))

    @staticmethod
    def folds(means, spread):
        noise = np.random.default_rng(1).standard_normal((5, 4))
        return np.array(means) + spread * (noise - noise.mean(axis=0))

    def test_noise_decides_nothing(self):
        noisy = self.folds([0.70, 0.80, 0.80, 0.8005], spread=0.05)
        assert select([noisy], [self.decades(0.1)], 0.25) == (0, 1)
        assert select([noisy], [self.decades(1e-5)], 0.25) == (0, 3)

    def test_a_clear_difference_decides(self):
        clear = self.folds([0.70, 0.80, 0.80, 0.81], spread=1e-4)
        assert select([clear], [self.decades(0.1)], 0.25) == (0, 3)

    def test_of_equal_penalties_the_largest(self):
        same = np.repeat([[0.9], [0.8], [0.85]], 4, axis=1)
        assert select([same, same], [self.decades(1e-3)] * 2, 0.25) == (0, 0)

    def test_the_typical_penalty(self):
        X = np.random.default_rng(0).standard_normal((500, 7)) * [1, 2, 3, 1, 1, 1, 0]
        y = np.arange(500) < 50
        expected = X.var(axis=0).sum() / 50
        assert_allclose(typical_penalty(X, y), expected)
        assert_allclose(typical_penalty(sp.csr_matrix(X), ~y), expected)


class TestEnds:
    """The ends of a path are dropped where they cannot win, and extended where they do."""

    @pytest.mark.parametrize(("unit", "beyond"), [(30.0, "largest"), (1e-4, "smallest")])
    def test_a_path_is_extended_where_its_end_is_best(self, unit, beyond):
        X, y = self.rows(unit)
        options = {"methods": ["pointwise-logistic"], "scale": False, "random_state": 0}
        given = np.geomspace(10, 1e-7, 10)
        extended = Ranker(alphas=10, **options).fit(X, y)
        listed = Ranker(alphas=given, **options).fit(X, y)
        assert_allclose(np.unique(listed.cv_results_["alpha"]), given[::-1])
        assert f"The {beyond} alpha was selected; one beyond it may be better." in listed.reason_
        end = given.max() if beyond == "largest" else given.min()
        assert listed.best_alpha_ == pytest.approx(end)
        assert (extended.best_alpha_ > end) == (beyond == "largest")
        assert extended.best_alpha_ != pytest.approx(end)
        assert extended.best_score_ > listed.best_score_

    @staticmethod
    def rows(unit):
        """Columns in a unit, with whose square the best penalty grows, and labels."""
        rng = np.random.default_rng(0)
        X = rng.standard_normal((400, 200))
        return unit * X, X.sum(axis=1) + 10.0 * rng.standard_normal(400) > 0

    @pytest.mark.parametrize("most", [0, 1])
    def test_only_so_many_penalties_are_added(self, most, monkeypatch):
        monkeypatch.setattr(module, "_MOST_EXTENSIONS", most)
        options = {"methods": ["pointwise-logistic"], "scale": False, "random_state": 0}
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        results = Ranker(alphas=10, cv=folds, **options).fit(*self.rows(30.0)).cv_results_
        assert np.unique(results["alpha"]).size == 10 + most

    @pytest.mark.parametrize("alphas", [10, np.geomspace(10, 1e-7, 10)])
    def test_penalties_that_a_trial_left_out_are_tried_where_the_curve_rises(
        self, alphas, monkeypatch
    ):
        def trial(search):
            for candidate in search.candidates:
                candidate.tried = slice(2, None)

        monkeypatch.setattr(module, "_MANY_ROWS", 100)
        monkeypatch.setattr(module.Search, "_trial", trial)
        options = {"scale": False, "alphas": alphas, "random_state": 0}
        methods = ["pointwise-logistic", "pairwise-logistic"]
        ranker = Ranker(methods=methods, **options).fit(*self.rows(3.0))
        results = ranker.cv_results_
        selected = [name == ranker.best_method_ for name in results["method"]]
        tried = np.isfinite(results["split0_test_score"])[selected]
        assert np.all(np.diff(np.flatnonzero(tried)) == 1)  # no gap
        assert ranker.best_alpha_ > 1.0

    def test_penalties_that_are_clearly_worse_are_dropped_at_both_ends(self, data):
        X, y = data(3000)
        X = np.hstack([X, np.random.default_rng(0).standard_normal((3000, 400))])
        ranker = Ranker("auc", methods=["pointwise-logistic", "pairwise-logistic"], random_state=0)
        results = ranker.fit(X, y).cv_results_
        known = np.isfinite(results["mean_test_score"]).reshape(2, -1)
        assert not known.all()
        for candidate in known:
            tried = np.flatnonzero(candidate)
            assert_allclose(np.diff(tried), 1)
        first = results["split0_test_score"]
        best = first.reshape(2, -1)[known].max()
        assert np.nanmax(first) == best

    @pytest.mark.parametrize("n_rarest", [49, 60])
    def test_few_rows_of_a_class_drop_no_penalty(self, n_rarest):
        rng = np.random.default_rng(0)
        y = np.arange(600) < n_rarest
        X = rng.standard_normal((600, 40))
        X[y, 0] += 3.0
        results = Ranker(methods=["pointwise-logistic"], random_state=0).fit(X, y).cv_results_
        splits = np.array([column for key, column in results.items() if key.startswith("split")])
        assert splits.shape[0] == 15  # five folds, three times, since there are 600 rows
        assert np.isfinite(splits).all() == (n_rarest < 50)


@pytest.mark.parametrize("mean", [-0.01, 0.0, 0.002, 0.01])
def test_the_expected_gain_is_that_of_a_normal_difference(mean):
    ahead = mean + 0.02 * np.array([-1.0, 0.0, 1.0, np.nan, 0.5, -0.5])
    known = ahead[np.isfinite(ahead)]
    later = scipy.stats.norm(mean, known.std(ddof=1) * np.sqrt(0.4 / 5))
    expected = later.expect(lambda m: -m, lb=mean - 0.05, ub=0.0)
    assert_allclose(expected_gain(ahead, 0.4), expected, rtol=1e-6)
    assert expected_gain(ahead[:2], 0.4) == np.inf


def test_the_first_rows_of_an_order_have_the_shares_of_the_classes():
    y = np.arange(1000) < 100
    order = stratified_order(
        TrainingRows(np.zeros((1000, 1)), y, None, None), np.random.default_rng(0)
    )
    assert sorted(order) == list(range(1000))
    for n in (20, 100, 500):
        assert abs(y[order[:n]].sum() - n / 10) <= 1
