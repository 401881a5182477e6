"""What a column is taken for, and what becomes of it."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from forerank import PairwiseRanker
from forerank.data.column_plan import mixed_columns, plan_columns
from forerank.data.frames import as_frame, with_types
from forerank.data.transformers import CategoryColumns, NumberColumns, TextColumn, column_floats

N = 60


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def mixed():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, N).astype(float),
            "income": np.where(rng.uniform(size=N) < 0.2, np.nan, rng.normal(size=N)),
            "owner": rng.uniform(size=N) < 0.5,
            "job": rng.choice(["clerk", "cook", None], N),
            "note": [
                " ".join(rng.choice(["late", "paid", "call", "again", "never"], 6))
                for _ in range(N)
            ],
            "seen": pd.date_range("2020-01-01", periods=N, freq="D"),
            "row": np.arange(1000, 1000 + N),
            "key": [f"k{k:05d}" for k in rng.permutation(N)],
            "country": "fr",
            "nothing": [None] * N,
            "sometimes": np.where(rng.uniform(size=N) < 0.5, "yes", None),
        }
    )


def test_columns_are_told_apart():
    plan = plan_columns(as_frame(mixed()), exclude=["age"])
    assert plan.numbers == ["income"]
    assert plan.categories == ["owner", "job", "sometimes"]
    assert plan.texts == ["note"]
    assert plan.dates == ["seen"]
    assert plan.left_out == {
        "row": "an id: every integer of a range once",
        "key": "an id: another string in nearly every row",
        "country": "the same in every row",
        "nothing": "empty",
    }
    text = "\n".join(plan.lines())
    for part in ("1 number,", "left out key: an id", "1 text,", "categories"):
        assert part in text


@pytest.mark.parametrize(
    ("name", "is_id"),
    [("id", True), ("customer_id", True), ("customerId", True), ("userID", True), ("paid", False)],
)
def test_numbers_may_be_ids_by_name(name, is_id):
    numbers = np.random.default_rng(0).permutation(100_000)[:50]
    assert (name in plan_columns(pd.DataFrame({name: numbers, "x": numbers % 7})).left_out) == is_id


@pytest.mark.parametrize("name", ["Unnamed: 0", "Unnamed: 0.1", ""])
@pytest.mark.parametrize("order", ["with gaps", "shuffled", "drawn again"])
def test_row_numbers_of_pandas_are_no_feature(name, order):
    rng = np.random.default_rng(0)
    rows = {"with gaps": np.arange(0, 3 * N, 3), "shuffled": rng.permutation(5 * N)[:N]}
    rows["drawn again"] = np.concatenate([np.arange(N - 20), np.arange(20)])
    x = rng.normal(size=N)
    plan = plan_columns(as_frame(pd.DataFrame({name: rows[order], "x": x, "age": rows[order]})))
    assert plan.left_out == {name or "column 1 (no name)": "row numbers, as pandas writes them"}
    # A column of that name that counts nothing is a column like others.
    assert name in plan_columns(pd.DataFrame({name: rows[order] % 7, "x": x})).numbers
    assert name in plan_columns(pd.DataFrame({name: x, "age": rows[order]})).numbers


def test_an_index_that_became_a_column_is_no_feature():
    rising, x = np.arange(N) ** 2, np.random.default_rng(0).normal(size=N)
    for name in ("index", "level_0", "Unnamed: 3", "column 4 (no name)"):
        assert name in plan_columns(pd.DataFrame({"x": x, name: rising})).left_out
        assert name in plan_columns(pd.DataFrame({"x": x, name: rising[::-1]})).numbers
    assert "year" in plan_columns(pd.DataFrame({"x": x, "year": rising})).numbers


@pytest.mark.parametrize("kind", [np.int64, np.uint64, "Int64", object])
def test_whole_numbers_beyond_doubles_are_names(kind):
    hashes = pd.Series([2**62 + k for k in range(N)]).astype(kind)
    assert np.unique(hashes.astype(np.float64)).size == 1  # what doubles make of them
    repeated = pd.Series([2**62 + k % 2 for k in range(N)]).astype(kind)
    frame = as_frame(pd.DataFrame({"h": hashes, "r": repeated, "x": np.arange(N) % 7}))
    plan = plan_columns(frame)
    assert plan.left_out == {"h": "an id: another integer beyond 2^53 in nearly every row"}
    assert (plan.numbers, plan.categories) == (["x"], ["r"])
    assert plan.transformer().fit(frame).get_feature_names_out().tolist() == [
        "x",
        f"r={2**62}",
        f"r={2**62 + 1}",
    ]
    gaps = as_frame(pd.DataFrame({"h": pd.array([None] * 3, dtype="Int64")}))
    assert plan_columns(gaps).left_out == {"h": "empty"}


def test_names_of_several_levels_are_joined():
    names = [("price", "mean"), ("price", "max"), ("label", ""), (2020, 1)]
    frame = pd.DataFrame(np.eye(4), columns=pd.MultiIndex.from_tuples(names))
    assert as_frame(frame).columns.tolist() == ["price.mean", "price.max", "label", "2020.1"]
    with pytest.raises(ValueError, match=r"more than one column 'a\.b'"):
        as_frame(
            pd.DataFrame(np.eye(2), columns=pd.MultiIndex.from_tuples([("a", "b"), ("a.b", "")]))
        )
    assert as_frame(pd.DataFrame(np.eye(2), columns=["a", " "])).columns.tolist() == [
        "a",
        "column 2 (no name)",
    ]


def test_words_among_numbers():
    rng = np.random.default_rng(0)
    n = 2000
    ages = pd.Series(rng.uniform(18, 80, n).round(1).astype(str), dtype=object)
    ages[1201] = "unknwon"
    codes = rng.choice(["1", "2", "B"], n, p=[0.5, 0.48, 0.02])
    padded = np.where(np.arange(n) == 3, "x", [f"{k % 50:03d}" for k in range(n)])
    jobs = rng.choice(["cook", "7"], n, p=[0.7, 0.3])
    frame = pd.DataFrame(
        {"age": ages, "code": codes, "padded": padded, "job": jobs, "n": rng.normal(size=n)}
    )
    for kind in (object, "category"):
        found = {
            each.name: each for each in mixed_columns(frame.astype({"age": kind, "code": kind}))
        }
        assert set(found) == {"age", "code", "padded"}
        assert (found["age"].words, found["age"].n_words, found["age"].row) == (
            ["unknwon"],
            1,
            1201,
        )
        assert [found[name].is_number for name in ("age", "code", "padded")] == [True, False, False]
    read = with_types(
        frame,
        {"age": "number"},
        lambda problem, row: ValueError(problem),
        missing={"age": ["unknwon"]},
    )
    expected = np.where(np.arange(n) == 1201, np.nan, pd.to_numeric(ages, errors="coerce"))
    assert_allclose(read["age"], expected)


def test_types_that_are_given():
    frame = as_frame(
        pd.DataFrame({"id": np.arange(30), "x": [1.0, None, 2.5] * 10, "d": ["2021-03-04"] * 30})
    )
    types = {"id": "number", "x": "category", "d": "date"}
    typed = with_types(frame, types, lambda problem, row: ValueError(f"{row}: {problem}"))
    plan = plan_columns(typed, types=types)
    assert (plan.numbers, plan.categories, plan.dates, plan.left_out) == (["id"], ["x"], ["d"], {})
    assert typed["x"].dropna().unique().tolist() == ["1", "2.5"]
    assert plan.kinds(typed)["d"] == "date"
    zoned = with_types(
        frame.assign(d="2021-03-04T10:00:00+01:00"),
        {"d": "date"},
        lambda problem, row: ValueError(),
    )
    assert plan.kinds(zoned)["d"] == "date with zone"
    for name, values, message in (
        ("x", ["1", "2", "old"] * 10, "2: the column 'x' has 'old', and a number is expected"),
        (
            "d",
            ["2021-03-04", "04.03.2021", None] * 10,
            "1: the column 'd' has '04.03.2021', and a date such as",
        ),
        ("d", 20210304, "0: the column 'd' has '20210304', and a date such as"),
    ):
        kind = {"x": "number", "d": "date"}[name]
        with pytest.raises(ValueError, match=message):
            with_types(
                frame.assign(**{name: values}),
                {name: kind},
                lambda p, row: ValueError(f"{row}: {p}"),
            )


def test_every_kind_becomes_columns_with_names():
    frame = as_frame(mixed())
    steps = plan_columns(frame).transformer().fit(frame)
    out = dense(steps.transform(frame))
    names = steps.get_feature_names_out().tolist()
    assert out.shape == (N, len(names))
    assert np.isfinite(out).all()
    assert_allclose(out[:, names.index("age")].std(), 1.0)
    assert_allclose(np.diff(out[:, names.index("seen")]), np.diff(out[:, names.index("seen")])[0])
    assert set(out[:, names.index("job=cook")]) == {0.0, 1.0}
    assert "note: never" in names
    assert not any(name.startswith(("key", "row", "country")) for name in names)


def test_rows_unlike_those_of_the_fit():
    frame = as_frame(mixed())
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
    frame = as_frame(mixed())
    ours = plan_columns(frame).transformer().fit(frame)
    peer = ColumnTransformer(ours.transformers_).fit(frame)
    assert_allclose(dense(ours.transform(frame)), dense(peer.transform(frame)))
    rows = np.array([5, 2, 2, 40])
    assert_allclose(dense(ours.transform_rows(frame, rows)), dense(peer.transform(frame))[rows])


def test_frames_of_other_libraries():
    frame = mixed().drop(columns=["nothing"])
    ours = plan_columns(as_frame(frame)).transformer().fit(as_frame(frame))
    assert_allclose(
        dense(ours.transform(as_frame(frame))),
        dense(ours.transform(as_frame(pl.from_pandas(frame)))),
    )
    with pytest.raises(TypeError, match="pandas or polars frame is expected, not list"):
        as_frame([1, 2])


def test_values_that_are_no_numbers_and_no_text_are_left_out():
    frame = pd.DataFrame({"lists": [[1], [2]], "bytes": [b"a", b"b"], "x": [1.5, 2.5]})
    plan = plan_columns(frame)
    assert plan.numbers == ["x"]
    assert set(plan.left_out) == {"lists", "bytes"}


def test_a_text_without_words_is_named():
    frame = pd.DataFrame({"note": [", . ; !", "; ; ; ;"]})
    with pytest.raises(ValueError, match="'note' has no words"):
        TextColumn().fit(frame)


def test_lists_of_names_end_after_eight():
    frame = pd.DataFrame({f"x{k}": np.random.default_rng(k).standard_normal(30) for k in range(12)})
    frame = frame.assign(**{f"c{k}": 1 for k in range(10)})
    numbers, constants = plan_columns(frame).lines()
    assert numbers.endswith(": x0, x1, x2, x3, x4, x5, x6, x7, and 4 more")
    assert constants == "left out c0, c1, c2, c3, c4, c5, c6, c7, and 2 more: the same in every row"
