"""Curves over folds: the area below a curve is the measure beside it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from forerank import metrics
from forerank.plots.curves import draw_curves, mean_precision_recall, mean_roc
from forerank.plots.style import STYLE
from forerank.workflows.report import figures


@given(seed=st.integers(0, 500), n_folds=st.integers(1, 5), levels=st.sampled_from([2, 5, 1000]))
def test_the_area_below_the_mean_curve_is_the_mean_of_the_areas(seed, n_folds, levels):
    rng = np.random.default_rng(seed)
    y, fold = rng.integers(0, 2, 60) == 1, np.arange(60) % n_folds
    y[:n_folds], y[n_folds : 2 * n_folds] = True, False  # both classes in each fold
    scores = rng.integers(0, levels, 60) + 1000.0 * fold  # on scales of their own
    parts = [(y[fold == k], scores[fold == k]) for k in range(n_folds)]
    fpr, tpr = mean_roc(y, scores, fold)
    assert_allclose(np.trapezoid(tpr, fpr), np.mean([metrics.roc_auc(*part) for part in parts]))
    recall, precision = mean_precision_recall(y, scores, fold)
    assert_allclose(
        np.trapezoid(precision, recall),
        np.mean([metrics.average_precision(*part) for part in parts]),
    )
    assert recall[-1] == 1.0


def test_a_fold_of_one_class_has_no_curve():
    y, scores = np.array([True, False, True, True]), np.arange(4.0)
    fpr, tpr = mean_roc(y, scores, np.array([0, 0, 1, 1]))
    assert np.trapezoid(tpr, fpr) == 0.0


def test_pictures_of_evaluate_and_of_reports_have_one_style(monkeypatch, tmp_path):
    """The same functions draw them, under the same settings."""
    import matplotlib

    seen = []
    original = matplotlib.rc_context

    def remembered(style):
        seen.append(style)
        return original(style)

    monkeypatch.setattr(matplotlib, "rc_context", remembered)
    y, scores = np.arange(40) % 3 == 0, np.cos(np.arange(40))
    draw_curves(y, scores, tmp_path / "curves.png")
    figures.roc(y, scores, np.arange(40) % 2, 0.5, 0.1)
    assert len(seen) == 2
    assert all(style is STYLE for style in seen)
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="curves are drawn for two"):
        draw_curves(np.arange(3), np.arange(3), tmp_path / "none.png")
