"""Fits of streamed rows of which few, or none, form pairs: the messages of fits in memory."""

import warnings
from contextlib import contextmanager

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest

import forerank
from forerank import PairwiseRanker, PointwiseRanker

N = 1_500


def columns():
    return np.random.default_rng(0).standard_normal((N, 3))


def frame_of(X, **others):
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(**others)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "hinge", "exponential", "squared"])
def test_columns_that_are_all_constant(loss):
    with (
        forerank.open_rows(frame_of(np.ones((N, 3)), y=np.arange(N) % 2), "y") as rows,
        pytest.warns(UserWarning, match="the same score"),
    ):
        assert not PairwiseRanker(loss).fit(rows).coef_.any()


@pytest.mark.parametrize("share", [0.1, 0.4, 0.8])
def test_the_hinge_on_rows_has_the_intercept_of_the_larger_class(share):
    """Columns that say nothing have no gradient, but the intercept has."""
    y = np.arange(N) < share * N
    with forerank.open_rows(frame_of(np.ones((N, 3)), y=y), "y") as rows, fitting_quietly():
        ranker = PointwiseRanker("hinge", alpha=0.1, tol=1e-4).fit(rows)
    assert ranker.optimality_ <= 1e-4
    assert ranker.objective_ == pytest.approx(2.0 * min(share, 1.0 - share), rel=2e-4)
    assert ranker.predict(frame_of(np.ones((1, 3)))).tolist() == [share > 0.5]


@contextmanager
def fitting_quietly():
    """Without the warning on equal scores."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*the same score")
        yield


def fitted(ranker, *rows, **options):
    """A fit, and the messages of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ranker.fit(*rows, **options)
    return ranker.coef_.copy(), [str(each.message) for each in caught]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("graph", ["order", [(2, 0)], [(2, 0), (0, 1)]])
def test_groups_without_a_pair_are_those_of_a_fit_in_memory(weighted, graph):
    rng, X = np.random.default_rng(3), columns()
    grade, group = rng.integers(0, 3, N), np.arange(N) // 5
    weight = rng.uniform(size=N) * (rng.uniform(size=N) < 0.4) if weighted else np.ones(N)
    frame = frame_of(X, y=grade, q=group, w=weight)
    ranker = PairwiseRanker("logistic", graph=graph, alpha=1e-2, tol=1e-10)
    with forerank.open_rows(frame, "y", group="q", weight="w", memory="1MB") as rows:
        streamed, messages = fitted(ranker, rows)
    coef, expected = fitted(ranker, X, grade, sample_weight=weight, qid=group)
    assert messages == expected
    assert "qid groups have no pair" in messages[0]
    np.testing.assert_allclose(streamed, coef, rtol=0, atol=1e-8)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_groups_of_which_none_has_a_pair_are_an_error(loss):
    X, number, group = columns(), np.arange(N), np.arange(N) // 10
    # Groups of grade 2 alone, and of grades 0 and 1, of which no edge knows.
    y = np.where(group % 2 == 0, 2, number % 2)
    rows = forerank.open_rows(frame_of(X, y=y, q=group), "y", group="q")
    with pytest.raises(ValueError, match="no two rows of the same group of qid"):
        PairwiseRanker(loss, graph=[(2, 0)]).fit(rows)
    # In each group only one class has a weight.
    y = number % 2
    frame = frame_of(X, y=y, q=group, w=np.where(y == group % 2, 1.0, 0.0))
    rows = forerank.open_rows(frame, "y", group="q", weight="w")
    with pytest.raises(ValueError, match="no two rows of the same group of qid"):
        PairwiseRanker(loss).fit(rows)


@pytest.mark.parametrize("ranker", [PairwiseRanker("logistic"), PointwiseRanker()])
def test_columns_whose_squares_are_not_doubles(ranker):
    X, y = columns(), np.arange(N) % 2
    X[:, 1] *= 1e160
    message = "Column 1 of X has values whose squares are larger than any double"
    with (
        forerank.open_rows(frame_of(X, y=y), "y") as rows,
        pytest.raises(ValueError, match=message),
    ):
        ranker.fit(rows)
    parts = da.from_array(X, chunks=(500, 3)), da.from_array(y, chunks=500)
    with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match=message):
        ranker.fit(*parts)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # fits in memory
def test_a_column_whose_squares_are_zero_has_no_weight(loss):
    X = columns()
    y = (X[:, 0] + np.random.default_rng(1).standard_normal(N) > 0.5).astype(int)
    X[:, 1] *= 1e-170
    ranker = PairwiseRanker(loss, alpha=1e-3, tol=1e-9)
    with forerank.open_rows(frame_of(X, y=y), "y") as rows:
        coef = ranker.fit(rows).coef_[0].copy()
    ranker.fit(X[:, ::2], y)
    np.testing.assert_allclose(coef[::2], ranker.coef_[0], rtol=0, atol=1e-7)
    assert abs(coef[1]) < 1e-100
