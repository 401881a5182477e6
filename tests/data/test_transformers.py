"""Columns become the matrix that scikit-learn's own transformers make."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from forerank import PairwiseRanker
from forerank.data.column_plan import plan_columns
from forerank.data.frames import as_frame
from forerank.data.transformers import CategoryColumns, NumberColumns, TextColumn, column_floats
from tables import dense, mixed_table


def test_every_kind_becomes_columns_with_names():
    frame = as_frame(mixed_table())
    steps = plan_columns(frame).transformer().fit(frame)
    out = dense(steps.transform(frame))
    names = steps.get_feature_names_out().tolist()
    assert out.shape == (len(frame), len(names))
    assert np.isfinite(out).all()
    assert_allclose(out[:, names.index("age")].std(), 1.0)
    assert_allclose(np.diff(out[:, names.index("seen")]), np.diff(out[:, names.index("seen")])[0])
    assert set(out[:, names.index("job=cook")]) == {0.0, 1.0}
    assert "note: never" in names
    assert not any(name.startswith(("key", "row", "country")) for name in names)


def test_rows_unlike_those_of_the_fit():
    frame = as_frame(mixed_table())
    pipeline = make_pipeline(
        plan_columns(frame, exclude=["owner"]).transformer(), PairwiseRanker(alpha=1e-2)
    )
    pipeline.fit(frame, frame["owner"])
    other = frame.iloc[:3].copy()
    other["job"] = ["pilot", None, "cook"]
    other["note"] = [None, "unheard of words", ""]
    other["income"] = np.nan
    other["seen"] = pd.NaT
    other["extra"] = 1
    scores = pipeline.decision_function(other[other.columns[::-1]])  # any order, more columns
    assert np.isfinite(scores).all()
    assert_allclose(scores, pipeline.decision_function(other))
    with pytest.raises(ValueError, match=r"\['income'\] are missing"):
        pipeline.decision_function(other.drop(columns="income"))


def test_rare_categories_go_together():
    frame = pd.DataFrame(
        {"c": ["a"] * 5000 + ["b"] * 5000 + ["x", "y", "z"], "n": np.arange(10_003.0) % 7}
    )
    names = plan_columns(frame).transformer().fit(frame).get_feature_names_out().tolist()
    assert names == ["n", "c=a", "c=b", "c=(rare)"]


def test_dates_of_all_kinds_are_days():
    days = pd.DataFrame(
        {"d": [pd.Timestamp("1970-01-02"), pd.NaT, pd.Timestamp("1970-01-11 12:00")]}
    )
    assert_allclose(column_floats(days["d"], dates=True), [1.0, np.nan, 10.5])
    assert_allclose(
        column_floats(days["d"].dt.tz_localize("CET"), dates=True),
        [1.0 - 1 / 24, np.nan, 10.5 - 1 / 24],
    )
    plain = pd.DataFrame(
        {"d": [stamp.date() if stamp is not pd.NaT else None for stamp in days["d"]]}, dtype=object
    )
    assert plan_columns(plain).dates == ["d"]
    assert_allclose(column_floats(plain["d"], dates=True), [1.0, np.nan, 10.0])
    assert clone(NumberColumns()).fit(days).get_feature_names_out().tolist() == ["d"]


def test_numbers_are_filled_and_scaled_as_scikit_learn_does():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(3.0, 2.0, (200, 3)), columns=list("abc"))
    frame.loc[rng.uniform(size=200) < 0.3, "b"] = np.nan
    frame["n"] = rng.integers(0, 5, 200)
    frame["same"] = 0.1
    peer = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    assert_allclose(NumberColumns().fit_transform(frame), peer.fit_transform(frame), atol=1e-12)
    frame.loc[0, "b"] = np.inf
    assert np.isfinite(NumberColumns().fit_transform(frame)).all()


@pytest.mark.parametrize("kind", [object, "category", "str"])
def test_categories_are_encoded_as_scikit_learn_does(kind):
    rng = np.random.default_rng(0)
    values = np.array(["a", "b", "c", "rare1", "rare2", ""], dtype=object)
    frame = pd.DataFrame(
        {
            "x": rng.choice(values, 5000, p=[0.5, 0.3, 0.1996, 0.0002, 0.0001, 0.0001]),
            "y": rng.choice(values[:3], 5000),
            "z": np.repeat([f"v{k}" for k in range(100)], np.arange(1, 101))[:5000],
        }
    ).astype(kind)
    peer = OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=0.001, max_categories=30
    )
    ours = CategoryColumns(max_categories=30).fit(frame)
    peer.fit(frame.astype(object))
    assert (ours.transform(frame) != peer.transform(frame.astype(object))).nnz == 0
    other = pd.DataFrame({"x": ["new", "a"], "y": ["b", "new"], "z": ["v1", "new"]}, dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert (ours.transform(other) != peer.transform(other)).nnz == 0


def test_a_column_transformer_is_the_same_matrix():
    frame = as_frame(mixed_table())
    ours = plan_columns(frame).transformer().fit(frame)
    peer = ColumnTransformer(ours.transformers_).fit(frame)
    assert_allclose(dense(ours.transform(frame)), dense(peer.transform(frame)))
    rows = np.array([5, 2, 2, 40])
    assert_allclose(dense(ours.transform_rows(frame, rows)), dense(peer.transform(frame))[rows])


def test_a_text_without_words_is_named():
    frame = pd.DataFrame({"note": [", . ; !", "; ; ; ;"]})
    with pytest.raises(ValueError, match="'note' has no words"):
        TextColumn().fit(frame)
