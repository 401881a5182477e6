"""Tests of differences against their definitions and published values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.datasets import make_moons
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from forerank import metrics
from forerank.metrics.significance import (
    corrected_margin,
    corrected_t_test,
    critical_difference,
    critical_difference_groups,
    holm,
    paired_t,
)


def test_the_corrected_t_test_by_hand():
    d = np.array([0.02, -0.01, 0.03, 0.02, 0.04])
    found = corrected_t_test(d, 0.25)
    error = np.sqrt((1 / 5 + 20 / 80) * np.sum((d - 0.02) ** 2) / 4)
    assert_allclose(found["t"], 0.02 / error)
    assert_allclose(found["p_single"], 2 * (1 - stats.t.cdf(0.02 / error, 4)))
    assert_allclose([found["low"], found["high"]], stats.t(4, 0.02, error).interval(0.95))
    assert_allclose(found["effect"], 0.02 / np.std(d, ddof=1))
    for end, tail in (("effect_low", 0.975), ("effect_high", 0.025)):
        assert_allclose(stats.nct.cdf(found["t"], 4, found[end] / np.sqrt(0.45)), tail, rtol=1e-5)


def test_the_t_test_gives_the_published_figures_of_scikit_learn():
    # "Statistical comparison of models using grid search": t = 2.611 uncorrected; 0.750 corrected,
    # one-sided p = 0.227.
    X, y = make_moons(noise=0.352, random_state=1, n_samples=100)
    cv = RepeatedStratifiedKFold(n_splits=10, n_repeats=10, random_state=0)
    rbf, linear = (
        cross_val_score(SVC(kernel=kernel, random_state=0), X, y, cv=cv, scoring="roc_auc")
        for kernel in ("rbf", "linear")
    )
    found = corrected_t_test(rbf - linear, 10 / 90)
    assert found["t"] == pytest.approx(0.750, abs=5e-4)
    assert found["p_single"] / 2 == pytest.approx(0.227, abs=5e-4)
    assert stats.ttest_1samp(rbf - linear, 0).statistic == pytest.approx(2.611, abs=5e-4)


def test_equal_values_and_single_folds():
    assert corrected_t_test([0.0, 0.0, 0.0], 0.5)["p_single"] == 1.0
    assert corrected_t_test([0.1, 0.1, 0.1], 0.5)["p_single"] == 0.0
    assert corrected_t_test([0.1], 0.5) | {"p_single": None, "n": 1} == corrected_t_test([0.1], 0.5)


def test_the_t_test_keeps_its_level_where_the_uncorrected_one_does_not():
    # Two equally good methods that rank by noise. Folds share rows, so the uncorrected test
    # finds differences.
    rng = np.random.default_rng(0)
    plain, corrected = [], []
    for _ in range(120):
        X, y = rng.standard_normal((60, 2)), rng.random(60) < 0.5
        d = []
        for seed in range(4):
            for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
                signs = [np.sign(np.corrcoef(X[train, k], y[train])[0, 1]) for k in (0, 1)]
                d.append(
                    np.subtract(*(metrics.roc_auc(y[test], signs[k] * X[test, k]) for k in (0, 1)))
                )
        plain.append(stats.ttest_1samp(d, 0).pvalue < 0.05)
        corrected.append(corrected_t_test(d, 0.25)["p_single"] < 0.05)
    assert np.mean(plain) > 0.2
    assert np.mean(corrected) < 0.1


def test_holm():
    # Holm's procedure by its steps: reject while p_(i) <= level / (m - i + 1).
    p = np.array([0.012, 0.2, 0.001, 0.02, 0.6])
    corrected = np.array(holm(p))
    for level in (0.004, 0.01, 0.05, 0.1, 0.3, 0.7):
        rejected = np.zeros(5, dtype=bool)
        for i, k in enumerate(np.argsort(p)):
            if p[k] > level / (5 - i):
                break
            rejected[k] = True
        assert (corrected <= level).tolist() == rejected.tolist()
    assert holm([]) == []


def test_the_margin_is_half_the_interval():
    d = np.array([0.02, -0.01, 0.03, 0.02, 0.04])
    test = corrected_t_test(d, 0.25, confidence=0.9)
    margin = corrected_margin(d, 0.25, confidence=0.9)
    assert_allclose(2 * margin, test["high"] - test["low"])


def test_the_paired_t_test_is_the_corrected_one_without_correction():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 9))
    test, corrected = paired_t(a, b), corrected_t_test(a - b, 0.0)
    for name in ("difference", "low", "high"):
        assert_allclose(getattr(test, name), corrected[name])
    assert_allclose(test.p, stats.ttest_rel(a, b).pvalue)
    with pytest.raises(ValueError, match="equal length"):
        paired_t([1.0], [1.0, 2.0])


def test_groups_differ_by_less_than_the_critical_difference():
    assert critical_difference_groups([1.0, 1.5, 2.0, 4.0], 1.0) == [(0, 1), (1, 2)]
    assert critical_difference_groups([1.0, 1.5, 2.0, 4.0], 5.0) == [(0, 3)]
    assert critical_difference_groups([1.0, 2.0], 0.0) == []
    assert critical_difference_groups([1.0, 2.0], float("nan")) == []
    assert np.isnan(critical_difference(1, 10))
