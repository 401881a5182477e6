"""Forms of the columns: additive (curves) and for trees (numbers as they are, codes)."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from forerank.data.column_plan import FORMS, plan_columns
from forerank.data.frames import as_frame
from forerank.data.tree_columns import CategoryCodes, TextComponents
from tables import dense, mixed_table


def wide_table(n=1500):
    """Rows with numbers, gaps, dates with hours, categories and a text."""
    rng = np.random.default_rng(1)
    hours = rng.integers(0, 24 * 400, n).astype("timedelta64[h]")
    words = ["late", "paid", "call", "again", "never", "often"]
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "amount": rng.lognormal(3, 2, n),
            "bad": np.where(rng.uniform(size=n) < 0.5, np.inf, rng.normal(size=n)),
            "seen": np.datetime64("2020-01-01T00", "us") + hours,
            "job": rng.choice(["clerk", "cook", "pilot"], n, p=[0.6, 0.3, 0.1]),
            "note": [" ".join(rng.choice(words, 6)) for _ in range(n)],
        }
    )
    frame.loc[::7, ["age", "seen", "job", "note"]] = None
    return as_frame(frame)


@pytest.mark.parametrize("form", FORMS)
def test_names_origins_and_values_of_every_form(form):
    frame = wide_table()
    plan = plan_columns(frame)
    steps = plan.transformer(form).fit(frame.iloc[:1400])
    out = dense(steps.transform(frame))
    names, origins = steps.get_feature_names_out().tolist(), steps.origins()
    assert out.shape == (len(frame), len(names)) == (len(frame), len(origins))
    assert set(origins) == set(plan.used)
    assert all(name.startswith(origin) for name, origin in zip(names, origins, strict=True))
    assert len(set(names)) == len(names)
    assert not np.isinf(out).any()
    assert np.isnan(out).any() == (form == "trees")
    rows = np.array([17, 3, 1499])
    assert_allclose(dense(steps.transform_rows(frame, rows)), out[rows])


def test_additive_columns():
    frame = wide_table()
    steps = plan_columns(frame).transformer("additive").fit(frame)
    names = steps.get_feature_names_out().tolist()
    assert {"age", "age spline 1", "age missing", "seen weekday=Mon", "seen month=Dec"} < {*names}
    out = dense(steps.transform(frame))
    flagged = out[:, names.index("bad missing")] == 1
    assert_allclose(flagged, frame["bad"].isna())
    monday = out[:, names.index("seen weekday=Mon")]
    assert_allclose(monday, frame["seen"].dt.day_of_week == 0)
    hours = [name for name in names if name.startswith("seen hour=")]
    assert out[:, [names.index(name) for name in hours]].sum() == frame["seen"].notna().sum()
    assert steps.categorical_ == []
    few = steps.fit(frame.iloc[:500]).get_feature_names_out()
    parts = {name.split("=")[0] for name in few if name.startswith("seen ") and "=" in name}
    assert parts == {"seen weekday"}  # months and hours have too few rows each


def test_rare_categories_are_pooled_by_their_rows():
    frame = pd.DataFrame({"c": ["a"] * 80 + ["b"] * 30 + ["x"] * 4 + ["y"], "n": range(115)})
    plan = plan_columns(frame, exclude=["n"])
    names = plan.transformer("additive").fit(frame).get_feature_names_out().tolist()
    assert names == ["c=a", "c=b", "c=(rare)"]
    many = pd.concat([frame] * 200)  # 200 rows of y are less than a thousandth of the rows
    many = pd.concat([many, pd.DataFrame({"c": ["z"] * 20})])
    assert "c=z" not in plan.transformer("additive").fit(many).get_feature_names_out()


def test_columns_for_trees():
    frame = wide_table()
    steps = plan_columns(frame).transformer("trees").fit(frame)
    names = steps.get_feature_names_out().tolist()
    out = steps.transform(frame)
    assert names[:7] == ["age", "amount", "bad", "seen", "seen hour", "seen weekday", "seen month"]
    assert_allclose(out[:, 0], frame["age"])
    assert_allclose(out[:, 2], frame["bad"])
    assert [names[k] for k in steps.categorical_] == ["job"]
    codes = frame["job"].map({"clerk": 0, "cook": 1, "pilot": 2})
    assert_allclose(out[:, steps.categorical_[0]], codes)
    other = frame.assign(job=["juggler"] * len(frame), note="words unheard of")
    new = steps.transform(other)
    assert np.isnan(new[:, steps.categorical_[0]]).all()
    assert_allclose(new[:, names.index("note component 1") :], 0.0, atol=1e-12)


def test_codes_of_ten_thousand_categories():
    values = [f"v{k:05d}" for k in range(10_000)]
    frame = pd.DataFrame({"c": [*values, *values[:300], *values[:200], None]})
    codes = CategoryCodes(max_codes=256).fit(frame)
    out = codes.transform(frame)[:, 0]
    assert out[:300].max() == 255
    assert out[:255].tolist() == [*range(255)]
    assert (out[300:10_000] == 255).all()
    assert np.isnan(out[-1])


def test_texts_of_one_word_and_of_none():
    frame = pd.DataFrame({"t": ["word word word", "word", ""] * 10})
    step = TextComponents().fit(frame)
    assert step.svd_ is None
    assert step.transform(frame)[:3, 0].tolist() == [1.0, 1.0, 0.0]
    with pytest.raises(ValueError, match="column 't' has no words"):
        TextComponents().fit(pd.DataFrame({"t": ["", None]}))


def test_components_are_found_on_some_rows_and_seeded():
    frame = wide_table()[["note"]]
    one, other = (TextComponents(3, max_rows=50).fit(frame) for _ in range(2))
    assert_allclose(one.transform(frame), other.transform(frame))
    assert one.transform(frame).shape == (len(frame), 3)


@pytest.mark.parametrize("form", ["additive", "trees"])
def test_rows_unlike_those_of_the_fit(form):
    frame = as_frame(mixed_table())
    steps = plan_columns(frame, exclude=["owner"]).transformer(form).fit(frame)
    other = frame.iloc[:3].copy()
    other["job"] = ["pilot", None, "cook"]
    other["note"] = [None, "unheard of words", ""]
    other["income"] = np.nan
    other["seen"] = pd.NaT
    expected = dense(steps.transform(other))
    assert_allclose(dense(steps.transform(other[other.columns[::-1]])), expected)
    constant = frame.assign(income=np.nan, age=3.0)
    assert dense(steps.transform(constant)).shape == (len(frame), expected.shape[1])


def test_columns_that_became_constant_or_empty():
    frame = pd.DataFrame({"a": [1.0, 1.0, 1.0], "b": [np.nan] * 3, "c": ["x", "x", "x"]})
    plan = plan_columns(frame, types={"a": "number", "b": "number", "c": "category"})
    for form, value in (("additive", 0.0), ("trees", np.nan)):
        out = dense(plan.transformer(form).fit(frame).transform(frame))
        assert_allclose(out[:, 1], value)


def test_lines_say_what_columns_become():
    plan = plan_columns(wide_table())
    lines = {form: "\n".join(plan.lines(form)) for form in FORMS}
    assert "3 numbers, missing ones filled with the median, scaled: age" in lines["plain"]
    assert "3 numbers, a curve for each, missing ones flagged: age" in lines["additive"]
    assert "1 category, as codes, rare values together: job" in lines["trees"]


def test_an_unknown_form_is_refused():
    with pytest.raises(ValueError, match="form must be one of 'additive', 'plain', 'trees'"):
        plan_columns(wide_table()).transformer("curved")
