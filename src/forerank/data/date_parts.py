"""Hour, weekday and month of dates, which are days since 1970."""

from collections.abc import Iterator

import numpy as np

from forerank._typing import Vector

__all__ = ["DATE_PARTS", "HOUR_ROUNDING", "date_part", "part_name", "varying_parts"]

DATE_PARTS = ("hour", "weekday", "month")
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# Hours by which a time may be below a full hour through rounding of days.
HOUR_ROUNDING = 1e-6


def date_part(days: Vector, part: str) -> Vector:
    """The hour (0 to 23), the weekday (0 is Monday) or the month (0 is January); NaN for NaN.

    Examples
    --------
    >>> days = np.array([0.0, 364.5])  # Thursday, 1 January and Thursday, 31 December 1970
    >>> [date_part(days, part).tolist() for part in DATE_PARTS]
    [[0.0, 12.0], [3.0, 3.0], [0.0, 11.0]]
    """
    whole = np.floor(days)
    if part == "hour":
        return np.minimum(np.floor((days - whole) * 24 + HOUR_ROUNDING), 23.0)
    if part == "weekday":
        return (whole + 3) % 7
    known = np.isfinite(whole)
    dates = np.where(known, whole, 0.0).astype("datetime64[D]").astype("datetime64[M]")
    return np.where(known, dates.astype(np.int64) % 12, np.nan)


def varying_parts(days: Vector) -> Iterator[tuple[str, Vector]]:
    """The parts that differ between these dates, each with its values."""
    known = days[np.isfinite(days)]
    for part in DATE_PARTS:
        values = np.unique(date_part(known, part))
        if values.size > 1:
            yield part, values


def part_name(part: str, value: float) -> str:
    """The value of a part in words: "Mon", "Jan", or the hour as a number."""
    names = {"weekday": _WEEKDAYS, "month": _MONTHS}.get(part)
    return str(int(value)) if names is None else names[int(value)]
