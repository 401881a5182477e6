"""What a column is taken for, and what becomes of it."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from forerank import PairwiseRanker
from forerank.columns import DateNumbers, TextColumn, plan_columns

N = 60


def mixed():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, N).astype(float),
            "income": np.where(rng.uniform(size=N) < 0.2, np.nan, rng.normal(size=N)),
            "owner": rng.uniform(size=N) < 0.5,
            "job": rng.choice(["clerk", "cook", None], N),
            "note": [" ".join(rng.choice(["late", "paid", "call", "again", "never"], 6)) for _ in range(N)],
            "seen": pd.date_range("2020-01-01", periods=N, freq="D"),
            "row": np.arange(1000, 1000 + N),
            "key": [f"k{k:05d}" for k in rng.permutation(N)],
            "country": "fr",
            "nothing": [None] * N,
            "sometimes": np.where(rng.uniform(size=N) < 0.5, "yes", None),
        }
    )


def test_columns_are_told_apart():
    plan = plan_columns(mixed(), exclude=["age"])
    assert plan.numbers == ["income", "owner"]
    assert plan.categories == ["job", "sometimes"]
    assert plan.texts == ["note"]
    assert plan.dates == ["seen"]
    assert plan.left_out == {
        "row": "an id: whole numbers that count up",
        "key": "an id: a different string in every row",
        "country": "the same in every row",
        "nothing": "empty",
    }
    text = "\n".join(plan.lines())
    for part in ("2 numbers", "left out key: an id", "1 texts", "categories"):
        assert part in text


def test_every_kind_becomes_columns_with_names():
    frame = mixed()
    steps = plan_columns(frame).transformer().fit(frame)
    out = steps.transform(frame)
    dense = out.toarray() if sp.issparse(out) else out
    names = steps.get_feature_names_out().tolist()
    assert dense.shape == (N, len(names))
    assert np.isfinite(dense).all()
    assert_allclose(dense[:, names.index("age")].std(), 1.0)
    assert_allclose(np.diff(dense[:, names.index("seen")]), np.diff(dense[:, names.index("seen")])[0])
    assert set(dense[:, names.index("job_cook")]) == {0.0, 1.0}
    assert "note: never" in names
    assert not any(name.startswith(("key", "row", "country")) for name in names)


def test_rows_unlike_those_of_the_fit():
    frame = mixed()
    pipeline = make_pipeline(plan_columns(frame, exclude=["owner"]).transformer(), PairwiseRanker(alpha=1e-2))
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
    with pytest.raises(ValueError, match="income"):
        pipeline.decision_function(other.drop(columns="income"))


def test_rare_categories_go_together():
    frame = pd.DataFrame({"c": ["a"] * 5000 + ["b"] * 5000 + ["x", "y", "z"], "n": np.arange(10_003.0) % 7})
    names = plan_columns(frame).transformer().fit(frame).get_feature_names_out().tolist()
    assert names == ["n", "c_a", "c_b", "c_infrequent_sklearn"]


def test_dates_of_all_kinds_are_days():
    days = pd.DataFrame({"d": [pd.Timestamp("1970-01-02"), pd.NaT, pd.Timestamp("1970-01-11 12:00")]})
    assert_allclose(DateNumbers().fit(days).transform(days)[:, 0], [1.0, np.nan, 10.5])
    plain = pd.DataFrame({"d": [stamp.date() if stamp is not pd.NaT else None for stamp in days["d"]]}, dtype=object)
    assert plan_columns(plain).dates == ["d"]
    assert_allclose(DateNumbers().fit(plain).transform(plain)[:, 0], [1.0, np.nan, 10.0])
    assert clone(DateNumbers()).fit(days).get_feature_names_out().tolist() == ["d"]


def test_a_text_without_words_is_named():
    frame = pd.DataFrame({"note": [", . ; !", "; ; ; ;"]})
    with pytest.raises(ValueError, match="'note' has no words"):
        TextColumn().fit(frame)
