"""The command inspect."""

import json

from commands import run


def test_description_of_a_model(work):
    printed = run("inspect", work / "m.forerank").stdout
    rows = "300 rows of train.csv"
    for part in ("PairwiseRanker(alpha=0.01", rows, "sha256", "none: it can be loaded"):
        assert part in printed
    assert json.loads(run("inspect", work / "m.forerank", "--json").stdout)["target"] == "y"
