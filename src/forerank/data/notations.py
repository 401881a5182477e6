"""Notations: ways of writing numbers and dates in which a column of strings is read.

A notation is a name that a model file holds, so that new files are read as the training file was:
amounts (`$1,850`, `62%`, `1.5k`, `1.234,50 €`) with a decimal point or a decimal comma, and dates
(`2016/01/31 00:47`, `31/01/2016`, `Jan 31, 2016`) by the order of day, month and year.
"""

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forerank._typing import Vector

__all__ = [
    "AMOUNTS",
    "DATES",
    "NOTATIONS",
    "PLAIN",
    "Reading",
    "amount",
    "currency",
    "date_in",
    "is_decimal_comma",
    "read_texts",
]

# Numbers as programs write them: 1850 or 1.85e3.
PLAIN = "numbers"
POINT, COMMA = "amounts", "amounts with decimal commas"
AMOUNTS = (POINT, COMMA)
YEAR_FIRST, DAY_FIRST, MONTH_FIRST = "year first", "day first", "month first"
NAMED = "months by name"
DATES = (YEAR_FIRST, DAY_FIRST, MONTH_FIRST, NAMED)
NOTATIONS = (PLAIN, *AMOUNTS, *DATES)


@dataclass(frozen=True)
class Reading:
    """How a column of strings is read: the notation, and the strings that mean a missing value."""

    notation: str = PLAIN
    missing: tuple[str, ...] = ()

    @property
    def is_date(self) -> bool:
        """Whether the column holds dates."""
        return self.notation in DATES

    @property
    def expected(self) -> str:
        """What a value should be, for messages."""
        return "a date" if self.is_date else "a number"


# --- Amounts ---

_CURRENCY = r"[$€£¥₹₽₩]|USD|EUR|GBP|CHF|JPY|CAD|AUD"
_GROUPS = {
    POINT: r"(?:\d{1,3}(?:[,'\u2019 \u00a0\u202f]\d{3})+|\d+)?(?:\.\d*)?",
    COMMA: r"(?:\d{1,3}(?:[.'\u2019 \u00a0\u202f]\d{3})+|\d+)?(?:,\d*)?",
}
_FACTORS = {"": 1.0, "%": 1.0, "k": 1e3, "m": 1e6, "mn": 1e6, "b": 1e9, "bn": 1e9}
_AMOUNT = {
    notation: re.compile(
        rf"(?P<open>\()?(?P<sign>[-+]?)\s?(?P<before>{_CURRENCY})?\s?(?P<sign2>[-+]?)"
        rf"(?P<digits>(?=[.,]?\d){groups})(?P<exponent>[eE][-+]?\d+)?"
        rf"\s?(?P<factor>%|[kK]|[mM][nN]?|[bB][nN]?)?\s?(?P<after>{_CURRENCY})?(?P<close>\))?"
    )
    for notation, groups in _GROUPS.items()
}
# A decimal comma: digits after it that are not one group of three, or a point before it.
_DECIMAL_COMMA = re.compile(r"\d,(?:\d{1,2}|\d{4,})(?!\d)|\d\.\d{3},\d|^\D*0,\d")
_DECIMAL_POINT = re.compile(r"\d\.(?:\d{1,2}|\d{4,})(?!\d)|\d,\d{3}\.\d|^\D*0?\.\d")


def _match(text: str, notation: str) -> re.Match[str] | None:
    found = _AMOUNT[notation].fullmatch(text.strip().replace("\u2212", "-"))
    if found is None or bool(found["open"]) != bool(found["close"]):
        return None
    return None if found["before"] and found["after"] else found


def amount(text: str, notation: str = POINT) -> float | None:
    """The number in a text such as $1,850 or (1.5k); None for any other text.

    A percentage is the number before the sign; parentheses mean a negative amount.

    Examples
    --------
    >>> [amount(text) for text in ("$1,850", "62%", "1.5k", "€ 12", "(300)", "12 apples")]
    [1850.0, 62.0, 1500.0, 12.0, -300.0, None]
    >>> amount("1.234,50 €", COMMA)
    1234.5
    """
    found = _match(text, notation)
    if found is None:
        return None
    mark = "," if notation == COMMA else "."
    whole, _, fraction = found["digits"].partition(mark)
    number = float(f"{re.sub('[^0-9]', '', whole) or 0}.{fraction or 0}{found['exponent'] or ''}")
    number *= _FACTORS[(found["factor"] or "").lower()]
    negative = found["sign"] == "-" or found["sign2"] == "-" or bool(found["open"])
    return -number if negative else number


def currency(text: str, notation: str) -> str:
    """The currency of an amount; the empty string where it has none."""
    found = _match(text, notation)
    return "" if found is None else found["before"] or found["after"] or ""


def is_decimal_comma(texts: Sequence[str]) -> bool:
    """Whether amounts have decimal commas, as some of them show and none contradicts."""
    commas = any(_DECIMAL_COMMA.search(text) for text in texts)
    return commas and not any(_DECIMAL_POINT.search(text) for text in texts)


# --- Dates ---

_TIME = (
    r"(?:(?:\s+|T|,\s*|:)(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<part>\d+))?)?"
    r"\s?(?P<half>[AaPp]\.?[Mm]\.?)?\s?(?P<zone>Z|UTC|GMT|[-+]\d\d:?\d\d)?)?"
)
_NUMBERS = r"(?P<first>\d{1,2})(?P<mark>[-/.])(?P<second_part>\d{1,2})(?P=mark)(?P<year>\d{4}|\d\d)"
_YEAR_FIRST = re.compile(
    r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})" + _TIME
)
_YEAR_LAST = re.compile(_NUMBERS + _TIME)
_MONTH = r"(?P<name>[A-Za-z]{3,9})\.?"
_NAMED = (
    re.compile(rf"(?P<day>\d{{1,2}})[-/\s]?\s*{_MONTH}[-/,\s]\s*(?P<year>\d{{4}})" + _TIME),
    re.compile(rf"{_MONTH}\s+(?P<day>\d{{1,2}}),?\s+(?P<year>\d{{4}})" + _TIME),
)
_MONTH_NAMES = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9}
# Years of two digits: 69 is 1969 and 68 is 2068, as POSIX has it.
_CENTURY_FROM = 69


def _time_of_day(found: re.Match[str]) -> datetime.timedelta:
    """Hours to microseconds, less the offset of a zone."""
    if found["hour"] is None:
        return datetime.timedelta()
    hour, half = int(found["hour"]), (found["half"] or "")[:1].lower()
    if half:
        if not 1 <= hour <= 12:
            raise ValueError(hour)
        hour = hour % 12 + (12 if half == "p" else 0)
    part = float(f"0.{found['part']}") if found["part"] else 0.0
    minute, second = int(found["minute"]), int(found["second"] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(found[0])
    time = datetime.timedelta(hours=hour, minutes=minute, seconds=second + part)
    zone = re.fullmatch(r"([-+])(\d\d):?(\d\d)", found["zone"] or "")
    if zone:
        offset = datetime.timedelta(hours=int(zone[2]), minutes=int(zone[3]))
        time += offset if zone[1] == "-" else -offset
    return time


def _date_match(text: str, notation: str) -> re.Match[str] | None:
    if notation == NAMED:
        return _NAMED[0].fullmatch(text) or _NAMED[1].fullmatch(text)
    return (_YEAR_FIRST if notation == YEAR_FIRST else _YEAR_LAST).fullmatch(text)


def date_in(text: str, notation: str) -> datetime.datetime | None:
    """The date, and perhaps the time of day, in a text; None for any other text.

    A time with a zone is converted to UTC. A date with the year first is read in every notation.

    Examples
    --------
    >>> str(date_in("02/04/2017", DAY_FIRST)), str(date_in("02/04/2017", MONTH_FIRST))
    ('2017-04-02 00:00:00', '2017-02-04 00:00:00')
    >>> str(date_in("Feb 4, 2017 3:05 PM", NAMED)), date_in("31/02/2017", DAY_FIRST)
    ('2017-02-04 15:05:00', None)
    """
    found = _date_match(text.strip(), notation)
    if found is None and notation != YEAR_FIRST:
        notation = YEAR_FIRST  # in which nothing is ambiguous
        found = _date_match(text.strip(), notation)
    if found is None:
        return None
    try:
        if notation == NAMED:
            month, day = _MONTHS[found["name"].lower()], int(found["day"])
        elif notation == YEAR_FIRST:
            month, day = int(found["month"]), int(found["day"])
        else:
            day, month = int(found["first"]), int(found["second_part"])
            day, month = (day, month) if notation == DAY_FIRST else (month, day)
        year = int(found["year"])
        if len(found["year"]) == 2:
            if found["mark"] != "/":  # 1.2.10 is a version, 10-12-15 a score
                return None
            year += 1900 if year >= _CENTURY_FROM else 2000
        return datetime.datetime(year, month, day) + _time_of_day(found)
    except (ValueError, KeyError, OverflowError):
        return None


# --- Columns ---


def read_texts(texts: Sequence[Any], reading: Reading) -> tuple[NDArray, NDArray]:
    """Doubles or dates (datetime64[us]) in strings, and which strings could not be read.

    The strings that mean a missing value are NaN or NaT. Meant for the distinct values of a column.
    """
    missing = {word.strip() for word in reading.missing}
    if reading.is_date:
        return _read_dates(texts, reading.notation, missing)
    values: Vector = np.full(len(texts), np.nan)
    unread = np.zeros(len(texts), dtype=bool)
    for k, text in enumerate(texts):
        if str(text).strip() in missing:
            continue
        number = amount(str(text), reading.notation)
        unread[k] = number is None
        values[k] = np.nan if number is None else number
    return values, unread


def _read_dates(texts: Sequence[Any], notation: str, missing: set[str]) -> tuple[NDArray, NDArray]:
    """Dates in the format of the first text by pandas, which is fast; others one by one."""
    import pandas as pd

    series = pd.Series([str(text).strip() for text in texts], dtype=object)
    dates = np.full(len(texts), np.datetime64("NaT", "us"))
    form = next((_format(text, notation) for text in series if text not in missing), None)
    if form is not None:
        dates = (
            pd.to_datetime(series, format=form, errors="coerce").to_numpy("datetime64[us]").copy()
        )
    unread = np.isnat(dates)
    for k in np.flatnonzero(unread):
        if series[k] in missing:
            unread[k] = False
        elif (date := date_in(series[k], notation)) is not None:
            dates[k], unread[k] = np.datetime64(date, "us"), False
    return dates, unread


def _format(text: str, notation: str) -> str | None:
    """The format of strptime for a text of digits without zone and half of the day."""
    found = None if notation == NAMED else _date_match(text, notation)
    if found is None or found["half"] or found["zone"] or found["part"] or len(found["year"]) == 2:
        return None
    parts = {YEAR_FIRST: ("%Y", "%m", "%d"), DAY_FIRST: ("%d", "%m", "%Y")}
    form = found["mark"].join(parts.get(notation, ("%m", "%d", "%Y")))
    if found["hour"] is None:
        return form
    date_end = found.end("day" if notation == YEAR_FIRST else "year")
    joint = text[date_end : found.start("hour")]
    return form + joint + ("%H:%M:%S" if found["second"] else "%H:%M")
