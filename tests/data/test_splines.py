"""Splines of a column against scipy's B-splines, and their definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.interpolate import BSpline
from scipy.stats import lognorm

from forerank.data.date_parts import DATE_PARTS, date_part, part_name, varying_parts
from forerank.data.splines import ColumnSpline, curves_per_column

rng = np.random.default_rng(0)
NORMAL = rng.normal(size=1500)
SKEWED = lognorm(1.5).rvs(1500, random_state=0)
FEW = rng.integers(0, 6, 800).astype(float)
GAPS = np.where(rng.uniform(size=600) < 0.2, np.nan, rng.normal(size=600))
TIED = np.concatenate([np.zeros(980), np.arange(20.0)])
COLUMNS = {"normal": NORMAL, "skewed": SKEWED, "few": FEW, "gaps": GAPS, "tied": TIED}


def b_splines(spline, z):
    """The B-splines at z, each by scipy, continued as lines beyond the range."""
    low, high = spline.knots[0], spline.knots[-1]
    columns = []
    for unit in np.eye(spline.directions.shape[0]):
        curve = BSpline(spline.knots, unit, spline.degree)
        slope = curve.derivative()
        inside = np.clip(z, low, high)
        beyond = np.minimum(z - low, 0) * slope(low) + np.maximum(z - high, 0) * slope(high)
        columns.append(curve(inside) + beyond)
    return np.column_stack(columns)


@pytest.mark.parametrize("name", COLUMNS)
def test_curves_are_b_splines_without_their_line(name):
    x = COLUMNS[name]
    spline = ColumnSpline.fitted(x)
    out = spline.transform(x)
    z, curves = out[:, 0], out[:, 1 : 1 + spline.n_curves]
    assert_allclose(z.mean(), 0.0, atol=1e-12)
    assert_allclose(z.std(), 1.0)
    basis = b_splines(spline, z)
    known = np.isfinite(x)
    line = np.column_stack([np.ones(known.sum()), z[known]])
    if known.all():
        rest = basis - line @ np.linalg.lstsq(line, basis)[0]
        assert_allclose(curves, rest @ spline.directions, atol=1e-8)
        # Uncorrelated with each other, with a line and with a constant, and smaller when rougher.
        assert_allclose(line.T @ curves / x.size, 0.0, atol=1e-9)
        products = curves.T @ curves / x.size
        assert_allclose(products, np.diag(np.diag(products)), atol=1e-9)
    variances = curves.var(axis=0)
    assert (np.diff(variances) < 0).all()
    assert variances[0] <= 1.0


@pytest.mark.parametrize("name", COLUMNS)
def test_variance_of_a_curve_follows_from_its_roughness(name):
    spline = ColumnSpline.fitted(COLUMNS[name])
    points = np.linspace(spline.knots[0], spline.knots[-1], 20_001)
    second = BSpline(spline.knots, spline.directions, spline.degree).derivative(2)(points)
    rough = np.trapezoid(second**2, points, axis=0)
    variance = spline.transform(COLUMNS[name])[:, 1 : 1 + spline.n_curves].var(axis=0)
    assert_allclose(variance, 1 - 0.03 * rough, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", COLUMNS)
def test_terms_are_products_on_other_rows_too(name):
    spline = ColumnSpline.fitted(COLUMNS[name])
    new = np.concatenate([rng.normal(size=50) * 30, [np.nan, np.inf, -np.inf, 0.0, 1e300, -1e300]])
    weights = rng.normal(size=spline.width)
    assert_allclose(spline.term(new, weights), spline.transform(new) @ weights, rtol=1e-9)
    assert len(spline.names("x")) == spline.width
    assert np.isfinite(spline.transform(new)).all()


def test_few_values_take_any_values_and_two_a_line():
    spline = ColumnSpline.fitted(FEW)
    values = np.arange(6.0)
    assert np.linalg.matrix_rank(np.column_stack([np.ones(6), spline.transform(values)])) == 6
    assert ColumnSpline.fitted(np.arange(9.0) % 2).width == 1
    three = ColumnSpline.fitted(np.arange(30.0) % 3)
    assert (three.width, three.degree) == (2, 2)


def test_constant_and_empty_columns_are_zero():
    for column in (np.full(20, 3.0), np.full(20, np.nan), np.full(20, np.inf), np.empty(0)):
        spline = ColumnSpline.fitted(column)
        assert spline.width == 1
        assert_allclose(spline.transform(column), 0.0)


def test_missing_values_are_the_median_and_a_flag():
    spline = ColumnSpline.fitted(GAPS)
    assert spline.names("age")[-1] == "age missing"
    out = spline.transform(np.array([np.nan, np.nanmedian(GAPS)]))
    assert_allclose(out[0, :-1], out[1, :-1])
    assert out[:, -1].tolist() == [1.0, 0.0]
    assert not ColumnSpline.fitted(np.append(NORMAL, np.nan)).has_flag  # one row says nothing


def test_skewed_amounts_are_taken_on_a_logarithmic_scale():
    spline = ColumnSpline.fitted(SKEWED)
    assert spline.unit == np.median(SKEWED)
    signed = np.sign(SKEWED) * np.log1p(SKEWED / spline.unit)
    assert_allclose(spline.transform(SKEWED)[:, 0], (signed - signed.mean()) / signed.std())
    assert ColumnSpline.fitted(NORMAL).unit == 0.0
    assert ColumnSpline.fitted(FEW**8).unit == 0.0
    huge = ColumnSpline.fitted(np.array([*np.geomspace(1e-300, 1e300, 50)]))
    assert np.isfinite(huge.transform(np.array([0.0, 1e-300, 1e308]))).all()


def test_wide_tables_have_fewer_curves():
    assert curves_per_column(10**6, 10) == 6
    assert curves_per_column(333, 130) == 0
    assert ColumnSpline.fitted(NORMAL, 2).n_curves == 2
    assert ColumnSpline.fitted(NORMAL, 0).width == 1


def test_parts_of_dates_are_those_of_pandas():
    import pandas as pd

    start, step = pd.Timestamp("1931-12-30 23:00"), pd.Timedelta(hours=1009)
    times = pd.DatetimeIndex([start + k * step for k in range(3000)])
    days = times.to_numpy("datetime64[us]").astype(np.int64) / 86_400_000_000
    expected = {"hour": times.hour, "weekday": times.day_of_week, "month": times.month - 1}
    for part in DATE_PARTS:
        assert_allclose(date_part(days, part), expected[part])
        assert np.isnan(date_part(np.array([np.nan]), part)).all()
    assert [part for part, _ in varying_parts(days)] == ["hour", "weekday", "month"]
    assert [part for part, _ in varying_parts(np.array([0.0, 7.0, np.nan]))] == []
    assert [part_name("weekday", 0), part_name("month", 11), part_name("hour", 7)] == [
        "Mon",
        "Dec",
        "7",
    ]


@pytest.mark.parametrize("name", COLUMNS)
def test_spread_and_grid(name):
    x = COLUMNS[name]
    spline = ColumnSpline.fitted(x)
    weights = rng.normal(size=spline.width)
    weights[1 + spline.n_curves :] = 0.0
    rows = np.isfinite(x)
    if rows.all():
        assert_allclose(spline.spread(weights), spline.term(x, weights).std())
    grid = spline.grid(11)
    assert_allclose(grid[[0, -1]], [spline.low, spline.high])
    assert (np.diff(grid) > 0).all()
    assert spline.low >= np.nanmin(x) - 1e-9
    assert spline.high <= np.nanmax(x) + 1e-9
