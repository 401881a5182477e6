"""Data sets of OpenML become archives that `forerank.data.datasets` reads; without a network."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils import Bunch

from forerank.data import datasets

FILE = Path(__file__).parents[2] / "benchmarks" / "fetch_data.py"
pytestmark = pytest.mark.skipif(not FILE.is_file(), reason="benchmarks/ is not part of this copy")


@pytest.fixture
def fetch_data(monkeypatch):
    """The script, with a network of four rows."""
    spec = importlib.util.spec_from_file_location("fetch_data", FILE)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fetch_data", module)
    spec.loader.exec_module(module)

    def fetched(**where):
        if where.get("name") == "missing":
            raise OSError("no network")
        frame = pd.DataFrame(
            {
                "age": [1.0, np.nan, 3.0, 4.0],
                "answer": pd.Categorical(["no", "yes", None, "no"]),
                "colour": pd.Categorical(
                    ["red", "green", None, "blue"], categories=["blue", "green", "red", "never"]
                ),
                "code": pd.Categorical(["0", "1", "1", "0"]),
            }
        )
        target = ["3", "1", "2", "1"] if where.get("name") == "digits" else ["b", "g", "b", "b"]
        return Bunch(data=frame, target=pd.Series(pd.Categorical(target), name="class"))

    monkeypatch.setattr(module, "fetch_openml", fetched)
    return module


def test_nominal_columns_become_numbers(fetch_data):
    found = fetch_data.archive(fetch_data.Source({"name": "x"}, 4, 1, ("g",)))
    assert found["feature_names"].tolist() == [
        "age",
        "answer",
        "colour=blue",
        "colour=green",
        "colour=red",
        "code",
    ]
    assert found["X"].dtype == np.float32
    expected = [
        [1, 0, 0, 0, 1, 0],
        [np.nan, 1, 0, 1, 0, 1],
        [3, np.nan, 0, 0, 0, 1],
        [4, 0, 1, 0, 0, 0],
    ]
    assert_array_equal(found["X"], expected)
    assert_array_equal(found["y"], [-1, 1, -1, -1])
    both = fetch_data.archive(
        fetch_data.Source({"name": "x"}, 4, 3, both=True)
    )  # the class of three rows
    assert both["feature_names"].tolist()[1:3] == ["answer=no", "answer=yes"]
    assert_array_equal(both["y"], [1, -1, 1, 1])


def test_parts_of_a_data_set(fetch_data):
    options = {"span": (2, None), "columns": (0, 1), "scale": 2.0, "sparse": True, "classes": True}
    found = fetch_data.archive(fetch_data.Source({"name": "digits"}, 2, 1, ("2",), **options))
    assert_array_equal(found["X_data"], [1.5, 2.0])
    assert_array_equal(found["X_shape"], [2, 1])
    assert_array_equal(found["y_class"], [2, 1])
    target = fetch_data.archive(fetch_data.Source({"name": "digits"}, 4, codes=True))["y"]
    assert_array_equal(target, [3.0, 1.0, 2.0, 1.0])


def test_other_data_sets_than_those_of_the_papers_are_refused(fetch_data):
    with pytest.raises(ValueError, match="5 rows were expected, found 4"):
        fetch_data.archive(fetch_data.Source({"name": "x"}, 5, 1, ("g",)))
    with pytest.raises(ValueError, match=r"2 positive rows were expected, found b \(3\), g \(1\)"):
        fetch_data.archive(fetch_data.Source({"name": "x"}, 4, 2, ("g",)))


def test_archives_can_be_read_by_the_library(fetch_data, tmp_path, monkeypatch, capsys):
    sources = {
        "dense": fetch_data.Source({"name": "x"}, 4, 1, ("g",)),
        "sparse": fetch_data.Source({"name": "x"}, 4, 1, ("g",), columns=(3, 4), sparse=True),
        "gone": fetch_data.Source({"name": "missing"}, 4, 1, ("g",)),
    }
    monkeypatch.setattr(fetch_data, "SOURCES", sources)
    assert fetch_data.main([str(tmp_path)]) == 1
    assert "gone: not fetched: no network" in capsys.readouterr().err
    monkeypatch.setenv("FORERANK_DATA", str(tmp_path))
    assert datasets.load("dense").X.shape == (4, 6)
    assert datasets.load("sparse").X.sum() == 2.0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dense.npz", "sparse.npz"]
    assert fetch_data.main([str(tmp_path), "dense"]) == 0
    assert "exists already" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        fetch_data.main([str(tmp_path), "nothing"])


def test_the_sources_are_those_of_the_page(fetch_data):
    page = (FILE.parent.parent / "docs" / "data-sets.md").read_text()
    assert [name for name in fetch_data.SOURCES if f"`{name}`" not in page] == []
