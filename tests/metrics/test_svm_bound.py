"""Theorem 1 of shen2013: the objective of RankSVM, and its bound by the weighted SVM."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forerank import PairwiseRanker, PointwiseRanker
from forerank.metrics.svm_bound import weighted_svm_bound
from tables import noisy_rows


def objectives(X, y, w, C):
    """Equations (1), over pairs in both orders, and (2), with the constants of the theorem."""
    p, q = X[y == 1], X[y == 0]
    squared_norm = w @ w

    def pairs(u):
        both = [1 - (a - b) @ u for a in p for b in q]
        both += [1 + (b - a) @ u for a in p for b in q]
        return 0.5 * u @ u + C / 2 * np.maximum(both, 0.0).sum()

    of_positive = 2 * len(q) * C * np.maximum(1 - p @ w, 0.0).sum()
    of_negative = 2 * len(p) * C * np.maximum(1 + q @ w, 0.0).sum()
    return pairs(w / 2), 0.5 * squared_norm + of_positive + of_negative


@given(seed=st.integers(0, 2**32 - 1), scale=st.floats(1e-2, 1e2), C=st.floats(1e-3, 1e3))
@settings(max_examples=60, deadline=None)
def test_definition_and_theorem(seed, scale, C):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 12)), int(rng.integers(1, 4))
    X, y = np.round(rng.standard_normal((n, d)), 1), rng.integers(2, size=n)
    y[:2] = 0, 1
    w = scale * rng.standard_normal(d)
    first, second = objectives(X, y, w, C)
    assert first <= 0.25 * second * (1 + 1e-12)
    total = C * np.sum(y == 1) * np.sum(y == 0)
    found = weighted_svm_bound(y, X @ w, alpha=1 / total, squared_norm=w @ w)
    assert found.rank_svm == pytest.approx(first / total)
    assert found.bound == pytest.approx(0.25 * second / total)


@given(seed=st.integers(0, 2**32 - 1), constant=st.floats(-5, 5))
@settings(max_examples=60, deadline=None)
def test_it_holds_with_weights_and_a_constant(seed, constant):
    rng = np.random.default_rng(seed)
    s, weight = 2 * rng.standard_normal(9), rng.random(9)
    y = np.arange(9) % 2
    found = weighted_svm_bound(y, s + constant, sample_weight=weight)
    assert found.rank_svm <= found.bound + 1e-12
    plain = weighted_svm_bound(y, s, sample_weight=weight)
    assert found.rank_svm == pytest.approx(plain.rank_svm, abs=1e-12)


def test_it_is_attained():
    found = weighted_svm_bound([0, 1], [-0.5, 0.5])
    assert found == (0.5, 0.5)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("alpha", [1e-3, 1e-1])
def test_minima(alpha, fit_intercept):
    X, y = noisy_rows()
    svm = PointwiseRanker(
        "hinge", alpha=alpha / 4, class_weight="balanced", fit_intercept=fit_intercept
    ).fit(X, y)
    rank = PairwiseRanker("hinge", alpha=alpha).fit(X, y)
    scores, squared_norm = svm.decision_function(X), float(np.sum(svm.coef_**2))
    found = weighted_svm_bound(y, scores, alpha=alpha, squared_norm=squared_norm)
    assert found.bound == pytest.approx(svm.objective_)
    assert rank.objective_ - rank.gap_ <= found.rank_svm <= found.bound


@pytest.mark.parametrize(
    ("given", "message"),
    [({"alpha": -1.0}, "alpha"), ({"sample_weight": [0, 1]}, "one class have weight zero")],
)
def test_refused(given, message):
    with pytest.raises(ValueError, match=message):
        weighted_svm_bound([0, 1], [0.0, 1.0], **given)
