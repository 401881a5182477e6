"""Gradients and curvatures for boosting against the double loop over pairs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from forerank import objectives
from forerank.losses import get_loss
from forerank.objectives.boosting import BOOSTING_LOSSES, PAIR_LOSSES, ROW_LOSSES
from forerank.objectives.smooth_top import SmoothTop
from oracles import all_pairs, pairs_of


def rows(seed, n=24, n_grades=2):
    rng = np.random.default_rng(seed)
    grade = rng.permutation(np.arange(n) % n_grades)
    s, weight = rng.normal(size=n), rng.integers(1, 4, n).astype(float)
    return s, grade, weight, rng.integers(0, 3, n)


def scale_of(grade, weight, pairs):
    """The harmonic means of the weights of the two sides, for one block of pairs."""
    upper, lower = (weight[np.unique(side)].sum() for side in np.transpose(pairs))
    return 2.0 * upper * lower / (upper + lower)


class TestPairs:
    @pytest.mark.parametrize("loss", PAIR_LOSSES)
    @pytest.mark.parametrize("seed", range(3))
    def test_two_classes(self, loss, seed):
        s, y, weight, _ = rows(seed)
        pairs = pairs_of(y, None, lambda a, b: a > b)
        own = weight / weight.mean()
        margin = get_loss(PAIR_LOSSES[loss])
        gradient, curvature = objectives.for_lightgbm(loss, y, sample_weight=weight)(s, None)
        scale = scale_of(y, own, pairs)
        expected = all_pairs(margin, s, own, pairs, np.zeros(s.size))[1]
        assert_allclose(gradient, scale * expected, atol=1e-10)
        diagonal = [all_pairs(margin, s, own, pairs, e)[2][k] for k, e in enumerate(np.eye(s.size))]
        assert_allclose(curvature, scale * np.array(diagonal), atol=1e-9)

    @pytest.mark.parametrize("loss", PAIR_LOSSES)
    @pytest.mark.parametrize("grouped", [False, True])
    def test_grades_and_groups_up_to_the_scale(self, loss, grouped):
        s, y, weight, qid = rows(5, n_grades=4)
        pairs = pairs_of(y, qid if grouped else None, lambda a, b: a > b)
        made = objectives.for_lightgbm(
            loss, y, sample_weight=weight, qid=qid if grouped else None, graph="order"
        )
        gradient, curvature = made(s, None)
        margin = get_loss(PAIR_LOSSES[loss])
        expected = all_pairs(margin, s, weight, pairs, np.zeros(s.size))[1]
        scale = np.abs(gradient).sum() / np.abs(expected).sum()
        assert_allclose(gradient, scale * expected, atol=1e-9)
        diagonal = [
            all_pairs(margin, s, weight, pairs, e)[2][k] for k, e in enumerate(np.eye(s.size))
        ]
        assert_allclose(curvature, scale * np.array(diagonal), atol=1e-9)

    @pytest.mark.parametrize("loss", BOOSTING_LOSSES)
    def test_the_size_of_a_gradient_does_not_depend_on_the_number_of_rows(self, loss):
        for n_negative in (10, 1000):
            y = np.arange(10 + n_negative) < 10
            gradient, curvature = objectives.for_lightgbm(loss, y)(np.zeros(y.size), None)
            assert np.abs(gradient).max() <= 4.0
            if loss not in ROW_LOSSES:
                assert gradient[y].sum() == pytest.approx(-gradient[~y].sum())
            assert (curvature > 0.0).all()


class TestRows:
    @pytest.mark.parametrize("loss", ROW_LOSSES)
    def test_finite_differences(self, loss):
        s, y, weight, _ = rows(1)
        at = objectives.for_lightgbm(loss, y, sample_weight=weight)
        step, margin = 1e-5, get_loss(loss)
        own, sign = weight / weight.mean(), np.where(y == 1, 1.0, -1.0)
        up, down = (own * margin.value(sign * (s + d)) for d in (step, -step))
        gradient, curvature = at(s, None)
        assert_allclose(gradient, (up - down) / (2 * step), rtol=1e-6)
        slopes = (at(s + step, None)[0] - at(s - step, None)[0]) / (2 * step)
        assert_allclose(curvature, slopes, rtol=1e-6)


class TestSmoothTop:
    @pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "exponential"])
    @pytest.mark.parametrize("grouped", [False, True])
    def test_value_gradient_and_curvature(self, loss, grouped):
        s, y, weight, qid = rows(2)
        group = qid if grouped else np.zeros(s.size, dtype=int)
        top = SmoothTop(
            y == 1, loss, sharpness=3.0, weight=weight, group=group if grouped else None
        )
        value, positives = 0.0, weight[y == 1].sum()
        for i in np.flatnonzero(y):
            others = (y == 0) & (group == group[i])
            share = weight[others] / weight[others].sum()
            threshold = np.log(share @ np.exp(3.0 * s[others])) / 3.0
            value += weight[i] / positives * get_loss(loss).value(s[i] - threshold)
        here, step, unit = top.at(s), 1e-5, np.eye(s.size)
        assert here.value == pytest.approx(value)
        ends = [(top.at(s + step * e), top.at(s - step * e)) for e in unit]
        slopes = [(up.value - down.value) / (2 * step) for up, down in ends]
        assert_allclose(here.gradient, slopes, atol=1e-8)
        bends = [
            (up.gradient[k] - down.gradient[k]) / (2 * step) for k, (up, down) in enumerate(ends)
        ]
        assert_allclose(here.curvature_diagonal(), bends, atol=1e-6)

    def test_limits(self):
        s, y, _, _ = rows(3)
        mean = SmoothTop(y == 1, sharpness=1e-6).thresholds(s[y == 0])[0]
        assert mean[0] == pytest.approx(s[y == 0].mean(), abs=1e-5)
        largest = SmoothTop(y == 1, sharpness=1e4).thresholds(s[y == 0])[0]
        assert largest[0] == pytest.approx(s[y == 0].max(), abs=1e-3)


class TestLibraries:
    def test_lightgbm(self):
        lightgbm = pytest.importorskip("lightgbm")
        from forerank import metrics

        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
        X[:, 0] += y
        data = lightgbm.Dataset(X, y)
        params = {
            "objective": objectives.for_lightgbm("pairwise-logistic", y),
            "metric": "none", "verbosity": -1, "num_threads": 1,
        }  # fmt: skip
        seen: dict = {}
        booster = lightgbm.train(
            params, data, 10, valid_sets=[data], feval=metrics.for_lightgbm("auc"),
            callbacks=[lightgbm.record_evaluation(seen)],
        )  # fmt: skip
        curve = seen["training"]["auc"]
        assert curve[-1] > curve[0]
        scores = booster.predict(X, raw_score=True, num_threads=1)
        assert curve[-1] == pytest.approx(metrics.roc_auc(y, scores))

    def test_lightgbm_with_groups(self):
        lightgbm = pytest.importorskip("lightgbm")
        from forerank import metrics

        data = lightgbm.Dataset(np.zeros((4, 1)), [1, 0, 0, 1], group=[2, 2], weight=[1, 1, 2, 2])
        name, value, higher = metrics.for_lightgbm("auc")(np.array([2.0, 1.0, 4.0, 3.0]), data)
        assert (name, value, higher) == ("auc", 0.5, True)

    @pytest.mark.parametrize("loss", BOOSTING_LOSSES)
    def test_rows_of_another_number_than_the_labels(self, loss):
        y = np.arange(20) % 2
        for make in (objectives.for_lightgbm, objectives.for_xgboost):
            at = make(loss, y[:-5])
            with pytest.raises(ValueError, match="has 15 labels, and the data set 20 rows"):
                at(np.zeros(20), None)
            assert at(np.zeros(15), None)[0].shape == (15,)

    def test_lightgbm_with_labels_of_other_rows(self):
        lightgbm = pytest.importorskip("lightgbm")
        X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
        objective = objectives.for_lightgbm("logistic", y[:-5])
        params = {"objective": objective, "verbosity": -1, "num_threads": 1}
        with pytest.raises(ValueError, match="has 55 labels, and the data set 60 rows"):
            lightgbm.train(params, lightgbm.Dataset(X, y), 2)

    def test_xgboost(self):
        xgboost = pytest.importorskip("xgboost", reason="xgboost is not installed")
        from forerank import metrics

        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
        X[:, 0] += y
        data = xgboost.DMatrix(X, y)
        seen: dict = {}
        booster = xgboost.train(
            {"base_score": 0.0, "nthread": 1, "disable_default_eval_metric": True}, data, 10,
            obj=objectives.for_xgboost("pairwise-logistic", y),
            custom_metric=metrics.for_xgboost("auc"), evals=[(data, "training")],
            evals_result=seen, verbose_eval=False,
        )  # fmt: skip
        scores = booster.predict(data, output_margin=True)
        curve = seen["training"]["auc"]
        assert curve[-1] > curve[0]
        assert curve[-1] == pytest.approx(metrics.roc_auc(y, scores))

    def test_refusals(self):
        with pytest.raises(ValueError, match="loss must be one of"):
            objectives.for_lightgbm("lambdarank", [0, 1])
        with pytest.raises(ValueError, match='for grades choose a loss over pairs and graph="ord'):
            objectives.for_lightgbm("pairwise-logistic", [0, 1, 2])
        for make in (objectives.for_lightgbm, objectives.for_xgboost):
            for loss in BOOSTING_LOSSES:
                with pytest.raises(ValueError, match=r"y has one class only, 1\.0; ranking needs"):
                    make(loss, np.ones(5))
        with pytest.raises(ValueError, match="qid has 3 entries for 2 labels; give one for each"):
            objectives.for_lightgbm("pairwise-logistic", [0, 1], qid=[1, 1, 1])
        with pytest.raises(ValueError, match="graph is for losses over pairs"):
            objectives.for_xgboost("logistic", [0, 1], graph="order")
        with pytest.raises(ValueError, match="There are no pairs"):
            objectives.for_xgboost("pairwise-logistic", [0, 1], qid=[1, 2])
