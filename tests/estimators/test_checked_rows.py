"""What estimators say of words and missing values in X."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from forerank import BoostedRanker, PairwiseRanker, Ranker, TopPush

Y = np.arange(60) % 2
WORDS = ["low" if k % 3 else None for k in range(60)]


def numbers():
    return np.random.default_rng(0).normal(size=(60, 2))


def frames(values):
    """Frames with the values as a column of each type that may hold words."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X = numbers()
    for kind in ("object", "string", "category"):
        yield pd.DataFrame({"a": X[:, 0], "b c": pd.Series(values, dtype=kind), "d": X[:, 1]})
    for kind in (pl.String, pl.Categorical, pl.Object):
        yield pl.DataFrame({"a": X[:, 0], "b c": pl.Series(values, dtype=kind), "d": X[:, 1]})


@pytest.mark.parametrize("ranker", [Ranker(), PairwiseRanker(), TopPush()])
def test_words_in_a_frame(ranker):
    for frame in frames(WORDS):
        name = type(ranker).__name__
        text = f"Column 'b c' of X holds words, such as 'low'; {name} takes numbers. Encode it"
        with pytest.raises(ValueError, match=text) as found:
            ranker.fit(frame, Y)
        assert "OneHotEncoder" in str(found.value)
        assert "forerank.workflows.fit.fit" in str(found.value)


def test_words_in_a_frame_for_trees():
    pytest.importorskip("lightgbm")
    for frame in frames(WORDS):
        with pytest.raises(
            ValueError, match="Column 'b c' of X holds words, such as 'low'"
        ) as found:
            BoostedRanker(rounds=2).fit(frame, Y)
        for remedy in ("name 'b c' in the list", 'astype("category")', '"from_dtype"'):
            assert remedy in str(found.value)
        BoostedRanker(rounds=2, categorical_features=["b c"]).fit(frame, Y)


def test_words_of_new_rows():
    X = numbers()
    fitted = PairwiseRanker().fit(X, Y)
    with pytest.raises(ValueError, match=r"Column 1 of X holds words.*the columns of the fit"):
        fitted.decision_function(np.array([[1.0, "low"]], dtype=object))


def test_strings_of_numbers_are_numbers():
    X = numbers()
    texts = np.array([[repr(float(value)) for value in row] for row in X], dtype=object)
    texts[:, 0] = X[:, 0]
    expected = PairwiseRanker().fit(X, Y).decision_function(X)
    found = PairwiseRanker().fit(texts, Y)
    np.testing.assert_allclose(found.decision_function(texts), expected, rtol=1e-6)
    texts[5, 1] = "high"
    with pytest.raises(ValueError, match="Column 1 of X holds words, such as 'high'"):
        PairwiseRanker().fit(texts, Y)


def test_missing_values():
    X = numbers()
    X[3, 1] = np.nan
    remedies = "BoostedRanker", "make_pipeline(SimpleImputer(), Ranker())", "workflows.fit.fit"
    for rows in (X, sp.csr_matrix(X)):
        with pytest.raises(ValueError, match="Input X contains NaN") as found:
            Ranker().fit(rows, Y)
        for remedy in remedies:
            assert remedy in str(found.value)
        assert "sklearn" not in str(found.value)
    make_pipeline(SimpleImputer(), PairwiseRanker()).fit(X, Y)
    with pytest.raises(ValueError, match=re.escape("Input X contains infinity")):
        Ranker().fit(np.where(np.isnan(X), np.inf, X), Y)
