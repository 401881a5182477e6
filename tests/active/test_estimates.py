"""The estimate of what is left: exact where the model is, and its edges."""

import numpy as np
import pytest

from forerank.active import estimate_missing


def test_estimate_is_right_where_the_model_is():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=20_000)
    relevant = rng.random(scores.size) < 1 / (1 + np.exp(3 - 1.5 * scores))
    labels = np.where(rng.random(scores.size) < 0.3, relevant, -1)
    found = estimate_missing(scores, labels)
    missing = relevant[labels < 0].sum()
    assert abs(found.expected / missing - 1) < 0.1
    assert found.low <= missing <= found.high
    moved = estimate_missing(3 * scores + 7, labels)
    assert moved.expected == pytest.approx(found.expected, rel=1e-3)


def test_edges():
    assert estimate_missing([1.0, 2.0], [0, 1]).expected == 0
    one_class = estimate_missing(np.arange(6.0), [0, 0, -1, -1, -1, -1])
    assert one_class.expected == pytest.approx(4 * 1 / 4)
    assert 0 <= one_class.low <= one_class.high <= 4
    with pytest.raises(ValueError, match="one score and one label"):
        estimate_missing([1.0], [0, 1])
    with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
        estimate_missing([1.0], [0], confidence=1.0)
