"""The command evaluate."""

import json

import matplotlib.image

from commands import fails, run
from forerank.cli.output import value_and_interval


def test_measures_parts_and_curves(tmp_path, work):
    model, new, curves = work / "m.forerank", work / "new.csv", tmp_path / "curves.png"
    printed = run("evaluate", model, new, "--by city --k 7 --curves", curves).stdout
    for part in ("100 rows", "AUC", "precision at 7", "By city", "rome"):
        assert part in printed
    assert matplotlib.image.imread(curves).shape[1] > 1000
    printed = json.loads(run("evaluate", model, new, "--by city --json").stdout)
    assert set(printed["by"]) == {"oslo", "rome"}
    assert printed["measures"][0]["low"] < printed["measures"][0]["value"]
    one_class = run("evaluate", model, new, "--by y --k 1000")
    assert "one class only" in one_class.stdout
    assert "the file has fewer than 1,000 rows" in one_class.stderr
    assert "exists already" in fails("evaluate", model, new, "--curves", curves)
    assert "ends in .png" in fails("evaluate", model, new, "--curves", tmp_path / "c.txt")


def test_bounds_of_a_calibrated_model(tmp_path, work):
    model, new = tmp_path / "m.forerank", work / "new.csv"
    assert json.loads(run("evaluate", work / "m.forerank", new, "--json").stdout)["bounds"] is None
    run("fit", work / "train.csv", "-t y --calibrate -q -o", model)
    assert "of the best possible (kotlowski2011, eq. 13)" in " ".join(
        run("evaluate", model, new).stdout.split()
    )
    bounds = json.loads(run("evaluate", model, new, "--json").stdout)["bounds"]
    assert bounds["least_auc"] <= bounds["auc"]


def test_interval_without_width_is_not_shown():
    assert value_and_interval({"value": 1.0, "low": 1.0, "high": 1.0}) == ("1.0000", "")
    shown = value_and_interval({"value": 0.9, "low": 0.8, "high": 1.0})
    assert shown == ("0.9000", "[0.8000, 1.0000]")
