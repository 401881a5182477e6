"""The kind of a column follows from its values, and columns that cannot help are not used."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from forerank.data.column_plan import mixed_columns, plan_columns
from forerank.data.frames import as_frame, with_types
from forerank.data.notations import Reading
from tables import mixed_table

N = 60


def test_kind_of_each_column():
    plan = plan_columns(as_frame(mixed_table()), exclude=["age"])
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
        readings={"age": Reading(missing=("unknwon",))},
    )
    expected = np.where(np.arange(n) == 1201, np.nan, pd.to_numeric(ages, errors="coerce"))
    assert_allclose(read["age"], expected)


def test_values_that_are_no_numbers_and_no_text_are_left_out():
    frame = pd.DataFrame({"lists": [[1], [2]], "bytes": [b"a", b"b"], "x": [1.5, 2.5]})
    plan = plan_columns(frame)
    assert plan.numbers == ["x"]
    assert set(plan.left_out) == {"lists", "bytes"}


def test_lists_of_names_end_after_eight():
    frame = pd.DataFrame({f"x{k}": np.random.default_rng(k).standard_normal(30) for k in range(12)})
    frame = frame.assign(**{f"c{k}": 1 for k in range(10)})
    numbers, constants = plan_columns(frame).lines()
    assert numbers.endswith(": x0, x1, x2, x3, x4, x5, x6, x7, and 4 more")
    assert constants == "left out c0, c1, c2, c3, c4, c5, c6, c7, and 2 more: the same in every row"
