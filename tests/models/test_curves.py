"""Curves of the columns of a model, and their figure."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.pipeline import Pipeline

from commands import fails, run
from forerank import PointwiseRanker
from forerank.data.problem import read_problem
from forerank.models import Model, load_model, save_model
from forerank.models.curves import Curve, column_curves
from forerank.models.explain import explain
from forerank.plots import ColumnCurvesDisplay
from tables import noisy_rows


def rows(n=500):
    rng = np.random.default_rng(0)
    hours = rng.integers(0, 24 * 300, n).astype("timedelta64[h]")
    frame = pd.DataFrame(
        {
            "age": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.uniform(0, 6, n)),
            "amount": rng.lognormal(3, 2, n),
            "job": rng.choice(["clerk", "cook", "$pilot"], n),
            "seen": np.datetime64("2020-01-01T00", "us") + hours,
        }
    )
    score = np.sin(frame["age"].fillna(0)) + (frame["job"] == "cook") + rng.normal(0, 0.3, n)
    return frame.assign(y=score > 0.5)


def fitted(form):
    problem = read_problem(rows(), "y")
    steps, X = problem.prepare(np.arange(500), 500, form)
    ranker = PointwiseRanker(alpha=1e-2).fit(X, problem.y)
    pipeline = Pipeline([("columns", steps), ("ranker", ranker)])
    return Model(pipeline, problem.column_kinds, "y", None, problem.read_settings)


@pytest.fixture(scope="module")
def additive():
    return fitted("additive")


@pytest.mark.parametrize("form", ["plain", "additive"])
def test_curves_are_what_explanations_add(form):
    model = fitted(form)
    curves = {curve.name: curve for curve in column_curves(model)}
    frame = rows().iloc[[0] * 3].drop(columns="y").reset_index(drop=True)
    for name, kind in (("age", "number"), ("amount", "number"), ("job", "category")):
        curve = curves[name]
        assert curve.kind == kind
        picked = [0, len(curve.values) // 2, len(curve.values) - 1]
        some = frame.assign(**{name: [curve.values[k] for k in picked]})
        found = explain(model, some, rows=[1, 2, 3]).contributions
        adds = [row["columns"][name]["adds"] for row in found]
        assert_allclose(adds, [curve.adds[k] for k in picked], atol=1e-10)
    assert ("seen weekday" in curves) == (form == "additive")


def test_the_most_important_curve_comes_first_and_shows_the_shape(additive):
    curves = column_curves(additive)
    assert {curves[0].name, curves[1].name} == {"age", "job"}
    assert [each.importance for each in curves] == sorted(
        (each.importance for each in curves), reverse=True
    )
    age = next(each for each in curves if each.name == "age")
    assert np.corrcoef(age.adds, np.sin(age.values))[0, 1] > 0.97
    assert age.missing is not None
    assert next(each for each in curves if each.name == "amount").is_log
    weekday = next(each for each in curves if each.name == "seen weekday")
    assert (weekday.column, weekday.values[0]) == ("seen", "Mon")


def test_plain_lines_end_at_values_that_there_are(tmp_path):
    """Two standard deviations from the mean there may be none: such as amounts below zero."""
    rng, n = np.random.default_rng(0), 400
    frame = pd.DataFrame(
        {
            "amount": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.lognormal(3, 2, n)),
            "share": rng.beta(8, 1, n),
            "usual": rng.normal(5, 2, n),
            "seen": np.datetime64("2020-01-01", "us") + rng.integers(0, 99, n).astype("m8[D]"),
            "y": rng.integers(0, 2, n),
        }
    )
    problem = read_problem(frame, "y")
    steps, X = problem.prepare(np.arange(n), n)
    ranker = PointwiseRanker(alpha=1e-2).fit(X, problem.y)
    pipeline = Pipeline([("columns", steps), ("ranker", ranker)])
    save_model(Model(pipeline, problem.column_kinds, "y"), tmp_path / "m.forerank")
    model = load_model(tmp_path / "m.forerank")
    ends = {each.name: (each.values[0], each.values[-1]) for each in column_curves(model)}
    days = (frame["seen"] - pd.Timestamp(0)) / pd.Timedelta(days=1)
    usual = {}
    for name, values in {**frame.drop(columns=["y", "seen"]), "seen": days}.items():
        filled = values.fillna(values.median())
        usual[name] = filled.mean() + 2 * filled.std(ddof=0) * np.array([-1, 1])
        assert_allclose(ends[name], np.clip(usual[name], values.min(), values.max()))
    assert ends["amount"][0] > 0.0
    assert ends["share"][1] <= 1.0
    assert_allclose(ends["usual"], usual["usual"])
    # Files of early versions do not have the smallest and the largest value.
    for _, step, _ in model.estimator[0].transformers_:
        del step.low_, step.high_
    for each in column_curves(model):
        assert_allclose((each.values[0], each.values[-1]), usual[each.name])


def test_panels(additive):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    display = ColumnCurvesDisplay.from_model(additive, panels=5, figure=Figure())
    assert len(display.axes_) == 5
    titles = [ax.get_title() for ax in display.axes_]
    assert titles == [curve.name for curve in display.curves]


@pytest.mark.parametrize("days", [1, 3, 40, 400, 900, 1500, 9000])
def test_any_range_of_dates_has_ticks_without_a_warning(days):
    """A warning of matplotlib would be a note of the command that nobody can act on."""
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    values = [16_800.0 + days * part for part in (0.0, 0.5, 1.0)]
    curve = Curve("seen", "seen", "date", values, [0.0, 1.0, 0.5], None, False, 0.4)
    display = ColumnCurvesDisplay(curves=[curve]).plot(Figure(figsize=(4.4, 3.0)))
    display.figure_.canvas.draw()
    assert 2 <= len(display.axes_[0].get_xticks()) <= 9


def test_models_of_matrices_have_no_curves():
    X, y = noisy_rows()
    problem = read_problem(X, y)
    steps, X = problem.prepare(np.arange(300), 300)
    pipeline = Pipeline([("columns", steps), ("ranker", PointwiseRanker().fit(X, y))])
    with pytest.raises(ValueError, match="only models of tables have a curve for each column"):
        column_curves(Model(pipeline))


def test_the_command_draws(additive, tmp_path):
    pytest.importorskip("matplotlib")
    save_model(additive, tmp_path / "m.forerank")
    shown = run("explain", tmp_path / "m.forerank", "--curves", tmp_path / "c.png")
    assert "saved" in shown.stdout
    assert "The most important of 4 columns" in shown.stdout
    assert "standard deviation of what it adds" in shown.stdout
    assert (tmp_path / "c.png").read_bytes()[:4] == b"\x89PNG"
    again = ("explain", tmp_path / "m.forerank", "--curves", tmp_path / "c.png", "--json")
    assert "exists" in fails(*again)
    printed = json.loads(run(*again, "--force").stdout)
    assert {"age", "amount", "job"} < {curve["name"] for curve in printed["curves"]}
    assert set(printed["importance"]) == {"age", "amount", "job", "seen"}
    wrong = fails("explain", tmp_path / "m.forerank", "--curves", tmp_path / "c.pdf")
    assert "give a name that ends in .png" in wrong
