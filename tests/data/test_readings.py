"""Numbers and dates in other notations: every way of writing, ambiguous ones, and bad values."""

import datetime

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from forerank.data.notations import (
    COMMA,
    DATES,
    DAY_FIRST,
    MONTH_FIRST,
    NAMED,
    POINT,
    YEAR_FIRST,
    Reading,
    amount,
    date_in,
    read_texts,
)
from forerank.data.problem import ReadOptions, read_problem
from forerank.data.readings import written_columns
from forerank.exceptions import DataFileError

N = 400
rng = np.random.default_rng(0)
DAYS = pd.Timestamp("2016-01-01") + pd.to_timedelta(rng.integers(0, 700, N), "D")
TIMES = DAYS + pd.to_timedelta(rng.integers(0, 86400, N), "s")
AMOUNTS = np.round(rng.lognormal(7, 2, N), 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$1,850", 1850), ("62%", 62), ("62.5 %", 62.5), ("1.5k", 1500), ("3M", 3e6), ("2bn", 2e9),
        ("1,234.5", 1234.5), ("€ 12", 12), ("12 €", 12), ("-$5.25", -5.25), ("$-5", -5),
        ("(1,200)", -1200), ("USD 7", 7), ("1 234 567", 1234567), ("1'000", 1000), (".5", 0.5),
        ("5.", 5), ("\u22124", -4), ("1e3", 1000), ("1,234,567.89", 1234567.89), ("+3%", 3),
    ],
)  # fmt: skip
def test_amounts(text, expected):
    assert amount(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    "text", ["", "$", "1,23", "12,34,567", "1.2.3", "a1", "5 pcs", "(5", "10-20", "$5€", "1 2", "."]
)  # fmt: skip
def test_strings_that_are_no_amounts(text):
    assert amount(text) is None


def test_amounts_with_decimal_commas():
    texts = {"1.234,50 €": 1234.5, "0,5": 0.5, "62,5%": 62.5, "1.000.000": 1e6, "12": 12.0}
    assert {text: amount(text, COMMA) for text in texts} == texts
    assert amount("1,234.5", COMMA) is None


@pytest.mark.parametrize(
    ("text", "notation", "expected"),
    [
        ("2016/01/01 00:47:36", YEAR_FIRST, (2016, 1, 1, 0, 47, 36)),
        ("2016-01-31", YEAR_FIRST, (2016, 1, 31)),
        ("2016-01-31T10:20:30.5Z", YEAR_FIRST, (2016, 1, 31, 10, 20, 30, 500000)),
        ("2016-01-31 10:20+02:00", YEAR_FIRST, (2016, 1, 31, 8, 20)),
        ("02/04/2017", MONTH_FIRST, (2017, 2, 4)),
        ("02/04/2017", DAY_FIRST, (2017, 4, 2)),
        ("2/4/17", DAY_FIRST, (2017, 4, 2)),
        ("2/4/70", DAY_FIRST, (1970, 4, 2)),
        ("31.12.2017 23:59", DAY_FIRST, (2017, 12, 31, 23, 59)),
        ("12/31/2017 11:05 PM", MONTH_FIRST, (2017, 12, 31, 23, 5)),
        ("12/31/2017 12:05:01 am", MONTH_FIRST, (2017, 12, 31, 0, 5, 1)),
        ("4 Feb 2017", NAMED, (2017, 2, 4)),
        ("04-FEB-2017", NAMED, (2017, 2, 4)),
        ("February 4, 2017", NAMED, (2017, 2, 4)),
        ("17/Sep/2017:10:01:02", NAMED, (2017, 9, 17, 10, 1, 2)),
    ],
)
def test_dates(text, notation, expected):
    assert date_in(text, notation) == datetime.datetime(*expected)
    dates, unread = read_texts([text, "never", "x"], Reading(notation, ("never",)))
    assert dates[0] == np.datetime64(datetime.datetime(*expected), "us")
    assert unread.tolist() == [False, False, True]


@pytest.mark.parametrize(
    "text", ["", "2017", "31/02/2017", "13/13/2017", "1.2.10", "10-12-15", "2017-13-01",
             "4 Foo 2017", "12/31/2017 13:05 PM", "12/31/2017 25:05", "02/04-2017", "0000-00-00"]
)  # fmt: skip
def test_strings_that_are_no_dates(text):
    assert {date_in(text, notation) for notation in DATES} == {None}


WRITTEN = {
    "slashes": (TIMES.strftime("%Y/%m/%d %H:%M:%S"), YEAR_FIRST, TIMES),
    "iso": (DAYS.strftime("%Y-%m-%d"), YEAR_FIRST, DAYS),
    "day first": (DAYS.strftime("%d/%m/%Y"), DAY_FIRST, DAYS),
    "month first": (DAYS.strftime("%m/%d/%Y"), MONTH_FIRST, DAYS),
    "points": (DAYS.strftime("%d.%m.%Y"), DAY_FIRST, DAYS),
    "halves": (TIMES.floor("min").strftime("%m/%d/%y %I:%M %p"), MONTH_FIRST, TIMES.floor("min")),
    "names": (DAYS.strftime("%d %b %Y"), NAMED, DAYS),
    "dollars": ([f"${x:,.2f}" for x in AMOUNTS], POINT, AMOUNTS),
    "percent": ([f"{x:.0f}%" for x in AMOUNTS % 100], POINT, np.round(AMOUNTS % 100)),
    "grouped": (
        [f"{x:,.1f}" for x in AMOUNTS],
        POINT,
        np.array([float(f"{x:.1f}") for x in AMOUNTS]),
    ),
    "thousands": ([f"{x / 1000:.5f}k" for x in AMOUNTS], POINT, AMOUNTS),
    "euros": (["€ " + f"{x:.2f}".replace(".", ",") for x in AMOUNTS], COMMA, AMOUNTS),
}


def written_frame(**changes):
    columns = {name: list(texts) for name, (texts, _, _) in WRITTEN.items()} | changes
    return pd.DataFrame(columns | {"y": np.arange(N) % 2})


@pytest.mark.parametrize("form", ["frame", "csv", "parquet"])
def test_every_notation_is_found_and_read(form, tmp_path):
    frame = data = written_frame()
    if form == "csv":
        data = tmp_path / "a.csv"
        frame.to_csv(data, index=False)
    elif form == "parquet":
        data = tmp_path / "a.parquet"
        frame.to_parquet(data)
    problem = read_problem(data, "y")
    plain = {"iso"} if form == "csv" else set()  # read as dates by the parser of the file
    expected = {name: notation for name, (_, notation, _) in WRITTEN.items()}
    found = problem.read_settings["notations"]
    assert found == {name: each for name, each in expected.items() if name not in plain}
    for name, (_, _, values) in WRITTEN.items():
        read = problem.rows[name].to_numpy()
        if isinstance(values, np.ndarray):
            assert_allclose(read, values)
        else:
            assert_array_equal(read.astype("datetime64[us]"), values.to_numpy("datetime64[us]"))
    assert sorted(problem.plan.dates) == sorted(n for n, e in expected.items() if e in DATES)
    notes = "\n".join(problem.notes)
    assert "read as numbers (decimal commas), being written like '€ " in notes
    first, last = WRITTEN["dollars"][0][0], WRITTEN["thousands"][0][0]
    assert f"read as numbers: dollars ({first!r}), percent (" in notes
    assert f"thousands ({last!r})" in notes


def notes_on(texts):
    k = np.arange(len(texts))
    problem = read_problem(pd.DataFrame({"d": texts, "n": k % 7.5}), k % 2)
    return problem, [note for note in problem.notes if note.startswith("d: ")]


def test_ambiguous_dates_are_month_first_and_noted():
    few = [f"{month:02d}/{day:02d}/2017" for month in range(1, 11) for day in range(1, 11)]
    problem, (note,) = notes_on(few)
    assert problem.rows["d"].iloc[1] == pd.Timestamp("2017-01-02")
    assert note == (
        "d: read as dates, month first, being written like '01/01/2017'; no value decides against "
        "day first: if that is wrong, write 2017-01-31"
    )
    problem, (note,) = notes_on([text.replace("/", ".") for text in few])
    assert problem.rows["d"].iloc[1] == pd.Timestamp("2017-02-01")
    assert "day first" in note
    _, (note,) = notes_on([*few, "1/25/2017"])
    assert note == "d: read as dates, month first, being written like '1/25/2017'"
    _, (note,) = notes_on([*few, "25/1/2017"])
    assert note == "d: read as dates, day first, being written like '25/1/2017'"


def test_one_bad_value_of_many_is_missing(tmp_path):
    texts = list(WRITTEN["day first"][0])
    texts[17] = "tbd"
    prices = list(WRITTEN["dollars"][0])
    prices[3] = prices[9] = "on request"
    frame = written_frame(d=texts, price=prices)
    frame.to_csv(tmp_path / "a.csv", index=False)
    problem = read_problem(tmp_path / "a.csv", "y")
    assert problem.rows["d"].isna().sum() == 1
    assert problem.rows["price"].isna().sum() == 2
    assert problem.read_settings["missing_words"] == {"d": ["tbd"], "price": ["on request"]}
    notes = "\n".join(problem.notes)
    assert "; 1 of 400 values is not a date ('tbd' in line 19): taken as missing" in notes
    assert "; 2 of 400 values are not numbers ('on request' in line 5): taken as missing" in notes


@pytest.mark.parametrize("share", [0.1, 0.45])
@pytest.mark.parametrize("name", [each for each in WRITTEN if each != "iso"])
def test_many_words_among_amounts_or_dates_are_noted(name, share, tmp_path):
    """As among plain numbers: the column is a category or left out, and the note says why."""
    texts, notation, _ = WRITTEN[name]
    texts = list(texts)
    rows = np.flatnonzero(np.arange(N) % 20 < 20 * share)[1:]
    for row in rows:
        texts[row] = "unknown"
    pd.DataFrame({"d": texts, "n": np.arange(N) % 7.5, "y": np.arange(N) % 2}).to_csv(
        tmp_path / "a.csv", index=False
    )
    problem = read_problem(tmp_path / "a.csv", "y")
    (note,) = [note for note in problem.notes if note.startswith("d: ")]
    what = "dates" if notation in DATES else "numbers"
    assert note.startswith(f"d: {N - rows.size} of {N} values are {what} (like ")
    assert (notation in note) == (notation in DATES)
    taken = "left out" if "d" in problem.plan.left_out else "taken as a category"
    assert f"others strings ('unknown' in line {rows[0] + 2}): {taken}; if that is wrong" in note
    assert note.endswith("set the type of the column")
    assert "d" not in problem.read_settings.get("missing_words", {})


def test_the_notation_of_most_values_is_noted():
    plain = [str(k) for k in range(60)]
    _, (note,) = notes_on(plain + [f"${k}" for k in range(60)] + ["unknown"] * 30)
    assert "120 of 150 values are numbers (like '$0'), others strings ('unknown'" in note
    days = [f"{day}/02/2017" for day in range(1, 28)]
    _, (note,) = notes_on(["2017-01-31"] * 30 + days + ["never"] * 9)
    assert "57 of 66 values are dates (like '13/02/2017', day first)" in note
    _, notes = notes_on([f"${k}" for k in range(40)] + ["a", "b"] * 21)
    assert notes == []
    _, notes = notes_on([f"600 {k + 100} {999 - k}" for k in range(100)] + ["none"] * 20)
    assert notes == []  # phone numbers


def test_other_strings_stay_what_they_are():
    texts = {
        "codes": [f"{k:04d}" for k in range(N)],
        "versions": [f"1.{k % 12}.{k % 30}" for k in range(N)],
        "currencies": [f"{'$€'[k % 2]}{k}" for k in range(N)],
        "ranges": [f"{k}-{k + 10}" for k in range(N)],
        "words": [f"{k} apples" if k % 2 else f"${k}" for k in range(N)],
        "mixed dates": [("31/01/2017", "01/31/2017")[k % 2] for k in range(N)],
        "numbers": [str(k) for k in range(N)],
        "phones": [f"600 {k + 100} {999 - k}" for k in range(N)],
    }
    assert written_columns(pd.DataFrame(texts)) == []


def test_declared_types_are_read_in_their_notation(tmp_path):
    frame = written_frame()
    frame.to_csv(tmp_path / "a.csv", index=False)
    types = {"day first": "date", "dollars": "number", "iso": "date", "percent": "category"}
    for data in (frame, tmp_path / "a.csv"):
        problem = read_problem(data, "y", options=ReadOptions(types=types))
        assert (problem.rows["day first"].to_numpy() == DAYS.to_numpy()).all()
        assert_allclose(problem.rows["dollars"], AMOUNTS)
        assert "percent" in problem.plan.categories
        assert problem.read_settings["notations"]["dollars"] == POINT
    frame.loc[200, "dollars"] = "nothing"
    frame.to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(
        DataFileError, match=r"line 202: .* has 'nothing', and a number is expected"
    ):
        read_problem(tmp_path / "b.csv", "y", options=ReadOptions(types={"dollars": "number"}))


def test_ids_that_repeat_are_left_out_and_codes_are_categories():
    subject = rng.integers(1, 81, N)
    frame = pd.DataFrame(
        {
            "subject": subject,
            "PatientId": subject + 1000.0,
            "reference": 7_919_003 + 7919 * subject,
            "shop_id": rng.integers(1, 6, N),
            "visits": rng.poisson(60, N),
            "year": rng.integers(1950, 2020, N),
            "zip": rng.integers(10_000, 10_200, N),
            "income": 1000 * rng.integers(1000, 1200, N),
            "clicked_at": 1_500_000_000 + 86_400 * rng.integers(0, 100, N),
            "valid": rng.integers(0, 2, N),
        }
    )
    problem = read_problem(frame, np.arange(N) % 2)
    assert set(problem.plan.left_out) == {"subject", "PatientId", "reference"}
    assert problem.plan.categories == ["shop_id"]
    assert problem.plan.numbers == ["visits", "year", "zip", "income", "clicked_at", "valid"]
    n_ids = np.unique(subject).size
    note = f"an id, {n_ids} different integers in 400 rows; if rows of one id belong together"
    assert note in problem.plan.left_out["subject"]


def test_sentences_that_repeat_are_categories():
    answers = ["I agree with this very much", "I do not agree with this", "I do not know that yet"]
    frame = pd.DataFrame({"answer": [answers[k % 3] for k in range(N)]})
    assert read_problem(frame, np.arange(N) % 2).plan.categories == ["answer"]
