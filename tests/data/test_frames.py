"""Frames of other libraries and declared types."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose

from forerank.data.column_plan import plan_columns
from forerank.data.frames import as_frame, with_types
from tables import dense, mixed_table


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


def test_frames_of_other_libraries():
    frame = mixed_table().drop(columns=["nothing"])
    ours = plan_columns(as_frame(frame)).transformer().fit(as_frame(frame))
    assert_allclose(
        dense(ours.transform(as_frame(frame))),
        dense(ours.transform(as_frame(pl.from_pandas(frame)))),
    )
    with pytest.raises(TypeError, match="pandas or polars frame is expected, not list"):
        as_frame([1, 2])
