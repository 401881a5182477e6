"""Models that were fitted on columns in other notations read new files in the same way."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import Pipeline

from forerank import PointwiseRanker
from forerank.data.problem import read_problem
from forerank.exceptions import DataFileError, ModelFileError
from forerank.models import Model, load_model, save_model
from forerank.models.explain import explain
from forerank.models.ranked_list import rank_file, rank_frame


def written(n, seed, days=28):
    """Prices, dates with the day first, and a label that both matter for."""
    rng = np.random.default_rng(seed)
    price, month, day = rng.lognormal(7, 1, n), rng.integers(1, 13, n), rng.integers(1, days, n)
    frame = pd.DataFrame(
        {
            "price": [f"${x:,.2f}" for x in price],
            "when": [f"{d:02d}/{m:02d}/2017" for d, m in zip(day, month, strict=True)],
            "share": [f"{x:.0f}%" for x in 100 * rng.uniform(size=n)],
        }
    )
    frame.loc[3, "price"] = "on request"
    return frame.assign(y=np.log(price) / 2 + month / 6 + rng.normal(size=n) > 4.5)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notations")
    written(400, 0).to_csv(folder / "train.csv", index=False)
    problem = read_problem(folder / "train.csv", "y")
    assert problem.read_settings["notations"]["when"] == "day first"
    steps, X = problem.prepare(np.arange(400), 400, "additive")
    ranker = PointwiseRanker(alpha=1e-2).fit(X, problem.y)
    pipeline = Pipeline([("columns", steps), ("ranker", ranker)])
    fitted = Model(pipeline, problem.column_kinds, "y", None, problem.read_settings, problem.notes)
    save_model(fitted, folder / "m.forerank")
    return load_model(folder / "m.forerank")


def test_new_files_are_read_in_the_same_way(model, tmp_path):
    # No day is beyond 12 in the new rows: alone they would be read with the month first.
    new = written(50, 1, days=12)
    expected = rank_frame(model, new)["score"]
    parsed = new.assign(
        price=new["price"].str.replace("[$,]", "", regex=True).replace("on request", None),
        when=pd.to_datetime(new["when"], format="%d/%m/%Y"),
        share=new["share"].str.rstrip("%"),
    ).astype({"price": float, "share": float})
    assert_allclose(rank_frame(model, parsed)["score"], expected)
    new.to_csv(tmp_path / "new.csv", index=False)
    new.to_parquet(tmp_path / "new.parquet")
    parsed.to_csv(tmp_path / "parsed.csv", index=False)
    for name in ("new.csv", "new.parquet", "parsed.csv"):
        rank_file(model, tmp_path / name, tmp_path / f"{name}.ranked.csv")
        assert_allclose(pd.read_csv(tmp_path / f"{name}.ranked.csv")["score"], expected)
    row = explain(model, tmp_path / "new.csv", rows=[1]).contributions[0]
    assert_allclose(row["score"], expected[0])
    assert row["columns"]["when"]["value"] == str(parsed["when"][0])


def test_a_value_that_cannot_be_read_is_an_error_with_its_line(model, tmp_path):
    for column, value, kind in (("price", "free", "number"), ("when", "03/31/2017", "date")):
        new = written(50, 1)
        new.loc[20, column] = value
        new.to_csv(tmp_path / "new.csv", index=False)
        problem = f"the column '{column}' has '{value}', and a {kind} is expected"
        with pytest.raises(DataFileError, match=f"line 22: {problem}"):
            rank_file(model, tmp_path / "new.csv", tmp_path / "out.csv")
        with pytest.raises(DataFileError, match=f"row 21: {problem}"):
            rank_frame(model, new)


def test_an_unknown_notation_is_not_a_model_file(model, tmp_path):
    model.summary["notations"]["price"] = "roman"
    with pytest.raises(ModelFileError, match="field 'notations' should be a dictionary from names"):
        save_model(model, tmp_path / "bad.forerank")
    model.summary["notations"]["price"] = "amounts"
