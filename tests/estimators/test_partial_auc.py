"""PartialAUCRanker against the objectives it contains."""

import numpy as np
import pytest

from forerank import (
    PairwiseRanker,
    PartialAUCRanker,
    TopPush,
)
from top_rows import data


def test_partial_auc_over_one_negative_is_the_hinge_at_the_top():
    X, y = data()
    partial = PartialAUCRanker((0.0, 1.0 / np.sum(y == 0)), alpha=1e-2, tol=1e-5).fit(X, y)
    assert partial.objective_ == pytest.approx(
        TopPush("hinge", alpha=1e-2, tol=1e-5).fit(X, y).objective_, rel=2e-5
    )


def test_partial_auc_over_all_is_ranksvm():
    X, y = data()
    partial = PartialAUCRanker((0, 1), alpha=1e-2, tol=1e-5).fit(X, y)
    ranksvm = PairwiseRanker("hinge", alpha=1e-2, tol=1e-5).fit(X, y)
    assert partial.objective_ == pytest.approx(ranksvm.objective_, rel=2e-5)
