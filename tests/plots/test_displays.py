"""The numbers behind the pictures are those of their definitions, and the classes behave as
scikit-learn's do.
"""

import sys
from io import BytesIO
from itertools import combinations, pairwise

import matplotlib
import matplotlib.pyplot
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from forerank import PairwiseRanker, metrics
from forerank.plots import (
    AlphaPathDisplay,
    CriticalDifferenceDisplay,
    HitsDisplay,
    RoundsDisplay,
    ScoreDistributionDisplay,
    TopStabilityDisplay,
)
from forerank.selection.methods import ROUNDS

matplotlib.use("agg")


@pytest.fixture
def ax():
    return matplotlib.figure.Figure().subplots()


@pytest.fixture(autouse=True)
def _closed():
    yield
    matplotlib.pyplot.close("all")


def data(n=200, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.uniform(size=n) < 0.3
    return y, np.round(rng.normal(size=n) + y, 1)


# --- Hits ---


def test_hits_are_what_the_precision_at_k_counts(ax):
    y, scores = data()  # with ties, which share their hits
    display = HitsDisplay.from_predictions(y, scores, ax=ax)
    for k in (1, 7, 50, 133, 200):
        assert_allclose(display.hits_at(k), k * metrics.precision_at_k(y, scores, k=k))
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert display.line_.get_xdata()[-1] == y.size
    assert_allclose(display.perfect_.get_ydata()[-1], y.sum())


def test_a_weight_is_a_number_of_rows(ax):
    y, scores = data(60)
    weight = np.random.default_rng(1).integers(0, 4, y.size)
    weighted = HitsDisplay.from_predictions(y, scores, sample_weight=weight, ax=ax)
    repeated = HitsDisplay.from_predictions(np.repeat(y, weight), np.repeat(scores, weight), ax=ax)
    k = np.arange(1, weight.sum())
    assert_allclose(weighted.hits_at(k), repeated.hits_at(k))


@pytest.mark.parametrize("log_x", [False, True])
def test_the_lines_are_true_between_their_points(ax, log_x):
    y, scores = data()
    display = HitsDisplay.from_predictions(y, scores, share=True, log_x=log_x, ax=ax)
    k = display.line_.get_xdata()
    assert_allclose(display.line_.get_ydata(), display.hits_at(k) / k)
    assert_allclose(display.perfect_.get_ydata(), np.minimum(k, y.sum()) / k)
    assert_allclose(display.chance_level_.get_ydata(), np.full(k.size, y.mean()))
    assert ax.get_xscale() == ("log" if log_x else "linear")
    display.plot(ax=ax, plot_chance_level=False, plot_perfect=False, name="again", color="red")
    assert display.chance_level_ is None
    assert display.perfect_ is None
    assert display.line_.get_label() == "again"
    assert display.line_.get_color() == "red"


def test_estimators_give_scores_by_either_method():
    X, y = make_classification(200, random_state=0)
    labels = np.array(["no", "yes"])[y]
    for estimator in (PairwiseRanker(), make_pipeline(StandardScaler(), LogisticRegression())):
        estimator.fit(X, labels)
        by_estimator = HitsDisplay.from_estimator(estimator, X, labels)
        by_scores = HitsDisplay.from_predictions(
            labels, estimator.decision_function(X), pos_label="yes"
        )
        assert_array_equal(by_estimator.hits, by_scores.hits)
        assert by_estimator.name == type(estimator).__name__
        assert by_estimator.pos_label == "yes"
    # By probabilities the order is the same; with the other label it is turned round.
    by_probability = HitsDisplay.from_estimator(
        estimator, X, labels, response_method="predict_proba"
    )
    assert_array_equal(by_probability.hits, by_scores.hits)
    turned = HitsDisplay.from_estimator(estimator, X, labels, pos_label="no")
    expected = HitsDisplay.from_predictions(labels, -estimator.decision_function(X), pos_label="no")
    assert_array_equal(turned.hits, expected.hits)


def test_what_cannot_be_drawn_is_said(ax):
    y, scores = data()
    X = scores[:, None]
    with pytest.raises(
        ValueError, match="LinearRegression has no decision_function or predict_proba"
    ):
        HitsDisplay.from_estimator(LinearRegression().fit(X, y), X, y)
    with pytest.raises(ValueError, match="response_method='score'"):
        HitsDisplay.from_estimator(LogisticRegression().fit(X, y), X, y, response_method="score")
    with pytest.raises(NotFittedError):
        HitsDisplay.from_estimator(LogisticRegression(), X, y)
    with pytest.raises(ValueError, match="pos_label='x' is not a valid label"):
        HitsDisplay.from_estimator(LogisticRegression().fit(X, y), X, y, pos_label="x")
    with pytest.raises(ValueError, match="not binary: it has 3 classes"):
        HitsDisplay.from_predictions([0, 1, 2], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="one class only"):
        HitsDisplay.from_predictions([1, 1], [1.0, 2.0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        HitsDisplay.from_predictions([0, 1], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="NaN"):
        HitsDisplay.from_predictions([0, 1], [1.0, np.nan])
    with pytest.raises(ValueError, match="finite and not negative"):
        HitsDisplay.from_predictions([0, 1], [1.0, 2.0], sample_weight=[1.0, -1.0])


# --- Distributions ---


@pytest.mark.parametrize("classes", [2, 4])
def test_each_class_has_area_one(ax, classes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, 500)
    display = ScoreDistributionDisplay.from_predictions(
        y, rng.normal(size=500) + y, labels={0: "$none$"}, ax=ax
    )
    assert list(display.densities) == ["$none$", *range(1, classes)]
    for heights in display.densities.values():
        assert_allclose(np.sum(heights * np.diff(display.edges)), 1.0)
    ax.figure.savefig(BytesIO(), format="svg")  # dollars are no formula


def test_a_constant_score_has_one_bin(ax):
    display = ScoreDistributionDisplay.from_predictions([0, 1, 1], [2.0, 2.0, 2.0], ax=ax)
    assert all(np.count_nonzero(heights) == 1 for heights in display.densities.values())


def test_distribution_of_an_estimator():
    X, y = make_classification(100, random_state=0)
    ranker = PairwiseRanker().fit(X, y)
    found = ScoreDistributionDisplay.from_estimator(ranker, X, y, bins=10)
    expected = ScoreDistributionDisplay.from_predictions(y, ranker.decision_function(X), bins=10)
    assert_allclose(found.densities[1], expected.densities[1])
    assert found.ax_.get_title() == "PairwiseRanker"


# --- Stability ---


def test_overlap_is_that_of_the_sets(ax):
    scores = np.random.default_rng(0).normal(size=(4, 90)) + np.linspace(0, 3, 90)
    display = TopStabilityDisplay.from_scores(scores, max_k=60, ax=ax)
    order = np.argsort(-scores, axis=1)
    for j, k in enumerate(display.k):
        shares = [
            len(set(order[a, :k]) & set(order[b, :k])) / k for a, b in combinations(range(4), 2)
        ]
        assert_allclose(
            [display.mean[j], display.low[j], display.high[j]],
            [np.mean(shares), min(shares), max(shares)],
        )
    assert display.k[0] == 1
    assert display.k[-1] == 60


def test_ties_are_no_agreement(ax):
    display = TopStabilityDisplay.from_scores(np.zeros((5, 2000)), ax=ax)
    at = np.searchsorted(display.k, 1000)
    assert abs(display.mean[at] - display.k[at] / 2000) < 0.03


def test_stability_of_estimators():
    X, y = make_classification(100, random_state=0)
    rankers = [PairwiseRanker(alpha=alpha).fit(X, y) for alpha in (1e-3, 10.0)]
    found = TopStabilityDisplay.from_estimators(rankers, X)
    expected = TopStabilityDisplay.from_scores([ranker.decision_function(X) for ranker in rankers])
    assert_allclose(found.mean, expected.mean)


def test_stability_needs_two_models():
    with pytest.raises(ValueError, match="at least two models"):
        TopStabilityDisplay.from_scores([[1.0, 2.0]])
    with pytest.raises(ValueError, match="max_k=3"):
        TopStabilityDisplay.from_scores(np.eye(2), max_k=3)


# --- Critical differences ---


def test_methods_within_the_critical_difference_are_joined(ax):
    ranks = {"d": 4.0, "a": 1.0, "b": 1.8, "c": 2.6}
    display = CriticalDifferenceDisplay.from_ranks(ranks, 1.0, ax=ax)
    assert display.groups_ == [["a", "b"], ["b", "c"]]
    assert CriticalDifferenceDisplay.from_ranks(ranks, 5.0, ax=ax).groups_ == [["a", "b", "c", "d"]]
    assert CriticalDifferenceDisplay.from_ranks(ranks, 0.1, ax=ax).groups_ == []
    assert CriticalDifferenceDisplay.from_ranks(ranks, ax=ax).groups_ == []
    # A difference of exactly the critical difference is significant (Demšar 2006).
    exact = {"a": 1.0, "b": 1.5, "c": 2.0}
    display = CriticalDifferenceDisplay.from_ranks(exact, 1.0, ax=ax)
    assert display.groups_ == [["a", "b"], ["b", "c"]]


def test_ranks_that_make_no_comparison():
    with pytest.raises(ValueError, match="at least two"):
        CriticalDifferenceDisplay.from_ranks({"a": 1.0}, 1.0)
    with pytest.raises(ValueError, match="not finite"):
        CriticalDifferenceDisplay.from_ranks({"a": 1.0, "b": np.nan}, 1.0)
    with pytest.raises(ValueError, match="cd=-1"):
        CriticalDifferenceDisplay.from_ranks({"a": 1.0, "b": 2.0}, -1)


# --- Paths of alpha ---

RESULTS = {
    "method": ["pairs", "pairs", "rows", "rows", "trees"],
    "alpha": [0.1, 0.01, 0.1, 0.01, None],
    "mean_test_score": [0.8, 0.9, 0.7, np.nan, 0.95],
    "std_test_score": [0.1, 0.2, 0.1, np.nan, 0.1],
}


def test_paths_are_sorted_and_the_choice_has_a_ring(ax):
    display = AlphaPathDisplay.from_cv_results(
        RESULTS, best=("pairs", 0.01), metric="auc", ax=ax, bands=True
    )
    assert set(display.paths) == {"pairs", "rows"}
    assert_array_equal(display.lines_["pairs"].get_xdata(), [0.01, 0.1])
    assert_array_equal(display.lines_["pairs"].get_ydata(), [0.9, 0.8])
    assert_array_equal(display.lines_["rows"].get_xdata(), [0.1])
    assert (display.best_.get_xdata()[0], display.best_.get_ydata()[0]) == (0.01, 0.9)
    assert "AUC" in ax.get_ylabel()


def test_paths_of_an_estimator(ax):
    ranker = PairwiseRanker().fit(*make_classification(50, random_state=0))
    with pytest.raises(ValueError, match="PairwiseRanker has no cv_results_"):
        AlphaPathDisplay.from_estimator(ranker, ax=ax)
    ranker.cv_results_, ranker.best_method_, ranker.best_alpha_, ranker.metric = (
        RESULTS,
        "pairs",
        0.1,
        "ap",
    )
    assert AlphaPathDisplay.from_estimator(ranker, ax=ax).best == ("pairs", 0.1)


def test_rounds_of_trees(ax):
    results = {
        "method": ["rows", "trees", "trees"],
        "alpha": [0.1, np.nan, np.nan],
        "rounds": [np.nan, 20, 10],
        "mean_test_score": [0.7, 0.8, 0.9],
    }
    display = RoundsDisplay.from_cv_results(results, best=("trees", 10), metric="ap", ax=ax)
    assert set(display.paths) == {"trees"}
    assert_array_equal(display.lines_["trees"].get_xdata(), [10, 20])
    assert_array_equal(display.lines_["trees"].get_ydata(), [0.9, 0.8])
    assert (display.best_.get_xdata()[0], display.best_.get_ydata()[0]) == (10, 0.9)
    assert "rounds" in ax.get_xlabel()
    with pytest.raises(ValueError, match="lacks rounds"):
        RoundsDisplay.from_cv_results({"method": [], "mean_test_score": []})


FOLDS = {
    "method": ["pairs", "pairs", "rows", "rows", "trees", "trees"],
    "alpha": [0.1, 0.01, 0.1, 0.01, np.nan, np.nan],
    "rounds": [np.nan, np.nan, np.nan, np.nan, 10, 20],
    "split0_test_score": [0.8, 0.9, 0.9, 0.7, 0.8, 0.9],
    "split1_test_score": [0.6, 0.9, np.nan, np.nan, 0.7, 0.8],
    "mean_test_score": [0.7, 0.9, 0.9, 0.7, 0.75, 0.85],
}


def test_methods_of_fewer_folds_are_dashed(ax):
    """Their means are not comparable, and the legend says so."""
    display = AlphaPathDisplay.from_cv_results(FOLDS, ax=ax)
    assert display.dropped == ("rows",)
    assert display.lines_["rows"].get_linestyle() == "--"
    assert display.lines_["pairs"].get_linestyle() == "-"
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["pairs", "rows", "dropped early: first folds only"]
    assert RoundsDisplay.from_cv_results(FOLDS).dropped == ()
    complete = {**FOLDS, "split1_test_score": FOLDS["split0_test_score"]}
    display = AlphaPathDisplay.from_cv_results(complete)
    assert (display.dropped, len(display.ax_.get_legend().get_texts())) == ((), 2)
    # A value that was dropped, of a method that was not, has no mean, and is no reason for a dash.
    some = {**FOLDS, "mean_test_score": [np.nan, 0.9, 0.9, 0.7, 0.75, 0.85]}
    some["split1_test_score"] = [np.nan, 0.9, np.nan, np.nan, 0.7, 0.8]
    assert AlphaPathDisplay.from_cv_results(some).dropped == ("rows",)


@pytest.mark.parametrize("first", range(0, 12, 3))
@pytest.mark.parametrize("number", [1, 2, 4, 8, 15])
def test_numbers_of_rounds_are_plain_and_do_not_overlap(first, number):
    rounds = ROUNDS[first : first + number]
    results = {"method": ["t"] * len(rounds), "rounds": rounds}
    results["mean_test_score"] = [0.8] * len(rounds)
    figure = matplotlib.figure.Figure(figsize=(4.9, 3.7))
    display = RoundsDisplay.from_cv_results(results, ax=figure.subplots())
    figure.canvas.draw()
    low, high = display.ax_.get_xlim()
    labels = display.ax_.get_xticklabels(which="both")
    shown = [each for each in labels if each.get_text() and low <= each.get_position()[0] <= high]
    assert 1 <= len(shown) <= 8
    assert {int(label.get_text().replace(",", "")) for label in shown} <= set(rounds)
    boxes = [label.get_window_extent() for label in shown]
    ends = sorted((box.x0, box.x1) for box in boxes)
    assert all(one[1] + 4 < other[0] for one, other in pairwise(ends))


def test_results_without_a_path():
    with pytest.raises(ValueError, match="lacks alpha"):
        AlphaPathDisplay.from_cv_results({"method": [], "mean_test_score": []})
    with pytest.raises(ValueError, match="nothing can be drawn"):
        AlphaPathDisplay.from_cv_results(
            {"method": ["t"], "alpha": [None], "mean_test_score": [0.5]}
        )


def test_missing_matplotlib_is_said_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        ImportError, match=r"HitsDisplay.from_predictions needs matplotlib: pip install"
    ):
        HitsDisplay.from_predictions([0, 1], [1.0, 2.0])
