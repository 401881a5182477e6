"""The command explain."""

import json

import pytest
from numpy.testing import assert_allclose

from commands import run


def test_rows_and_weights(work):
    model, new = work / "m.forerank", work / "new.csv"
    assert "Row 2: score" in run("explain", model, new, "--row 2 --weights 3").stdout
    printed = json.loads(run("explain", model, new, "--json").stdout)
    assert len(printed["rows"]) == 5
    first = printed["rows"][0]
    total = sum(term["adds"] for term in first["columns"].values()) + printed["intercept"]
    assert_allclose(total, first["score"])


def table_cells(text):
    """Rows of the printed tables, as lists of cells."""
    lines = [line.strip("│").split("│") for line in text.splitlines() if line[:1] == "│"]
    return [[cell.strip() for cell in line] for line in lines]


@pytest.mark.parametrize("weights", [1, 3, 20, 0])
def test_contributions_add_up_to_the_score(work, weights):
    explain = ["explain", work / "m.forerank", work / "new.csv", f"--row 2 --weights {weights} -q"]
    *rows, total = [(row[0], float(row[2])) for row in table_cells(run(*explain).stdout)]
    assert total[0] == "score"
    assert_allclose(sum(adds for _, adds in rows), total[1], atol=1e-4 * len(rows))
    names = [name for name, _ in rows]
    assert names[-1] == "constant"
    assert (f"{5 - weights} other columns" in names) == (0 < weights < 5)
    assert any(name.startswith("note: ") for name in names) == (weights != 1)
    printed = json.loads(run(*explain, "--json").stdout)["rows"][0]
    total = printed["constant"] + sum(term["adds"] for term in printed["columns"].values())
    assert_allclose(total, printed["score"])
    note = printed["columns"]["note"]
    assert_allclose(sum(note["words"].values()) + note["other_words"]["adds"], note["adds"])
