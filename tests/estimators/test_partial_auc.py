"""PartialAUCRanker against the objectives it contains."""

import numpy as np
import pytest

from forerank import (
    PairwiseRanker,
    PartialAUCRanker,
    TopPush,
)
from solver_problems import problem
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


@pytest.mark.parametrize("high", [0.001, 0.1])
@pytest.mark.parametrize("spread", [0, 4, 6])
def test_a_tiny_penalty_and_columns_of_any_size_reach_the_tolerance(high, spread):
    X, y = problem(spread=spread)
    ranker = PartialAUCRanker((0.0, high), alpha=1e-8).fit(X, y)
    assert ranker.optimality_ <= 1e-3
    # With so small a penalty the minimum is nearly that without one, in any units.
    other = PartialAUCRanker((0.0, high), alpha=1e-8).fit(problem(spread=0)[0], y)
    assert ranker.objective_ == pytest.approx(other.objective_, rel=3e-3)
