"""Columns of strings that hold numbers or dates: which they are, and in which notation.

A column is read where nearly all of its values can be; the few strings that cannot are missing
values. Whether day or month comes first is decided by all values together.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forerank._text import listed
from forerank._typing import Index, Mask
from forerank.data.frames import distinct, holds_containers, holds_dates, parses_as_number
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
    currency,
    date_in,
    is_decimal_comma,
    read_texts,
)

__all__ = [
    "WrittenColumn",
    "declared_reading",
    "few_words",
    "read_column",
    "reading_notes",
    "written_columns",
]

# Strings in a column are missing values where at least this share of the values can be read, of
# which more than _FEWEST_READ are distinct, and at most _MOST_WORDS other strings are distinct.
_READ_SHARE = 0.95
_FEWEST_READ = 20
_MOST_WORDS = 5
# Distinct values that are examined first, to see whether a column is worth reading, and those by
# which decimal mark and currency are decided.
_EXAMINED = 200
_CLASSIFIED = 10_000
# The first two numbers of a date.
_FIRST_NUMBERS = re.compile(r"(\d{1,2})[-/.](\d{1,2})[-/.]")
_MONTHS = 12


@dataclass(frozen=True)
class WrittenColumn:
    """A column of strings that is read as numbers or dates."""

    name: str
    reading: Reading
    example: str  # a value that is neither a plain number nor an ISO date, where there is one
    n_words: int  # number of values that cannot be read, and are missing
    n_known: int  # number of values that are not missing
    n_read: int  # number of distinct values that are read
    row: int  # the first row that cannot be read, counted from 0
    undecided: bool  # whether no date decides between day first and month first

    @property
    def has_few_words(self) -> bool:
        """Whether the strings that cannot be read are few enough to be missing values."""
        words = self.reading.missing
        return few_words(self.n_words, self.n_known, len(words), self.n_read)

    def note(self, position: str) -> str:
        """The note for the user; `position` is that of the first row that cannot be read."""
        return f"{self.name}: {self.sentence}{self._missing(position)}"

    @property
    def sentence(self) -> str:
        """How the column is read, without its name."""
        if not self.reading.is_date:
            mark = " (decimal commas)" if self.reading.notation == COMMA else ""
            return f"read as numbers{mark}, being written like {self.example!r}"
        how = f"read as dates, {self.reading.notation}, being written like {self.example!r}"
        if not self.undecided:
            return how
        other = MONTH_FIRST if self.reading.notation == DAY_FIRST else DAY_FIRST
        return f"{how}; no value decides against {other}: if that is wrong, write 2017-01-31"

    def _missing(self, position: str) -> str:
        if not self.n_words:
            return ""
        what = "date" if self.reading.is_date else "number"
        verb = f"is not a {what}" if self.n_words == 1 else f"are not {what}s"
        first = f"{self.reading.missing[0]!r} in {position}"
        return f"; {self.n_words:,} of {self.n_known:,} values {verb} ({first}): taken as missing"


def few_words(n_words: int, n_known: int, n_distinct: int, n_read: int) -> bool:
    """Whether the strings that cannot be read are few enough to be missing values.

    Of `n_known` values `n_words` cannot be read, `n_distinct` of them being distinct, and `n_read`
    distinct values can.
    """
    if not n_words:
        return n_read > 0
    is_small = n_words <= (1 - _READ_SHARE) * n_known and n_distinct <= _MOST_WORDS
    return is_small and n_read > _FEWEST_READ


def written_columns(frame: Any, *, exclude: Iterable[str | None] = ()) -> list[WrittenColumn]:
    """The columns of strings that are read in a notation."""
    excluded = set(exclude)
    found = (
        read_column(frame[name], _READ_SHARE) for name in frame.columns if name not in excluded
    )
    return [column for column in found if column is not None and column.has_few_words]


def declared_reading(column: Any, kind: str) -> Reading | None:
    """The reading of a column of strings that is declared to hold numbers or dates.

    None where it holds plain numbers or ISO dates, or nothing that can be read. There are no
    strings that mean a missing value: those that cannot be read are errors.
    """
    if not _holds_strings(column):
        return None
    codes, values = distinct(column)
    texts = [str(value).strip() for value in values]
    counts = np.bincount(codes[codes >= 0], minlength=len(texts))
    if kind == "date":
        notation = _date_notation(texts, counts, _READ_SHARE)[0]
        return None if notation in (None, YEAR_FIRST) else Reading(notation)
    if kind != "number" or all(map(parses_as_number, texts)):
        return None
    notation = _amount_notation(texts, counts, _READ_SHARE)
    return None if notation is None else Reading(notation)


def _holds_strings(column: Any) -> bool:
    from pandas.api import types

    is_number = types.is_numeric_dtype(column.dtype)
    return not (is_number or holds_dates(column) or holds_containers(column))


def read_column(column: Any, least: float) -> WrittenColumn | None:
    """A column of strings in the notation of most of its values, whatever the others are; None
    where that is the notation of less than a share of them, or they are plain numbers.
    """
    if not _holds_strings(column):
        return None
    codes, values = distinct(column)
    counts, step = np.bincount(codes[codes >= 0], minlength=len(values)), _step(values, _EXAMINED)
    some = [str(value).strip() for value in values[::step]]
    if _share((text if _has_digit(text) else None for text in some), counts[::step]) < least:
        return None
    texts = [str(value).strip() for value in values]
    notation, undecided = _date_notation(texts, counts, least)
    if notation is None and not all(map(parses_as_number, some)):
        notation = _amount_notation(texts, counts, least)
    if notation is None:
        return None
    unread = read_texts(texts, Reading(notation))[1]
    words = tuple(text for text, is_word in zip(texts, unread, strict=True) if is_word)
    n_words, n_known = int(counts[unread].sum()), int(counts.sum())
    if n_known - n_words < least * n_known:
        return None
    return WrittenColumn(
        str(column.name),
        Reading(notation, words),
        _example(texts, unread, notation),
        n_words,
        n_known,
        len(texts) - len(words),
        int(np.argmax(np.append(unread, False)[codes])),
        undecided,
    )


def _step(values: Sequence[Any], most: int) -> int:
    return max(1, len(values) // most)


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)


def _example(texts: Sequence[str], unread: Mask, notation: str) -> str:
    """A value that shows the notation: not a plain number, or with a day that is not a month."""
    read = [text for text, is_word in zip(texts, unread, strict=True) if not is_word]
    if notation not in (DAY_FIRST, MONTH_FIRST):
        telling = (text for text in read if not parses_as_number(text))
    else:
        found = ((text, _FIRST_NUMBERS.match(text)) for text in read)
        telling = (text for text, m in found if m and max(int(m[1]), int(m[2])) > _MONTHS)
    return next(telling, read[0])


def _share(read: Iterable[Any], counts: Index) -> float:
    """Share of rows whose value is not None."""
    is_read = np.array([value is not None for value in read], dtype=bool)
    return float(counts[is_read].sum() / max(counts.sum(), 1))


def _amount_notation(texts: Sequence[str], counts: Index, least: float) -> str | None:
    """The notation of amounts; None for codes, amounts in several currencies, and where less than a
    share of the values are amounts.
    """
    step, larger_step = (_step(texts, n) for n in (_EXAMINED, _CLASSIFIED))
    some = texts[::larger_step]
    notation = COMMA if is_decimal_comma(some) else POINT
    if _share((amount(text, notation) for text in texts[::step]), counts[::step]) < least:
        return None
    amounts = [text for text in some if amount(text, notation) is not None]
    is_code = any(text[:1] == "0" and text[1:2].isdigit() for text in texts) or _are_phones(amounts)
    currencies = {currency(text, notation) for text in some} - {""}
    is_plain = all(parses_as_number(text) or amount(text, notation) is None for text in texts)
    return None if is_code or is_plain or len(currencies) > 1 else notation


def _are_phones(texts: Sequence[str]) -> bool:
    """Whether texts are equally long groups of digits with spaces: phone numbers, not amounts."""
    return len({len(text) for text in texts}) == 1 and all(
        " " in text and text.replace(" ", "").isdigit() for text in texts
    )


def _date_notation(texts: Sequence[str], counts: Index, least: float) -> tuple[str | None, bool]:
    """The notation of dates, None where less than a share of the values are dates, and whether no
    value decides between day and month first.
    """
    step = _step(texts, _EXAMINED)
    some = texts[::step]
    shares = {
        notation: _share((date_in(text, notation) for text in some), counts[::step])
        for notation in DATES
    }
    most = max(shares.values())
    if most < least:
        return None, False
    for notation in (YEAR_FIRST, NAMED):  # the others read dates with the year first, too
        if shares[notation] >= min(most, _READ_SHARE):
            return notation, False
    found = map(_FIRST_NUMBERS.match, texts)
    numbers = np.array([(0, 0) if each is None else (int(each[1]), int(each[2])) for each in found])
    day_first, month_first = (int(counts[numbers[:, k] > _MONTHS].sum()) for k in (0, 1))
    if day_first != month_first:
        return (DAY_FIRST if day_first > month_first else MONTH_FIRST), False
    # Points are written where the day comes first; slashes and hyphens decide nothing.
    points = np.mean([text[1:3].count(".") > 0 for text in some]) > 0.5
    return (DAY_FIRST if points else MONTH_FIRST), True


def reading_notes(columns: Sequence[WrittenColumn], position: Any) -> list[str]:
    """Notes on columns, one for those that are read alike without missing values."""
    alike: dict[str, list[WrittenColumn]] = {}
    for column in columns:
        key = column.name if column.n_words else f"{column.reading.notation}/{column.undecided}"
        alike.setdefault(key, []).append(column)
    notes = []
    for first, *others in alike.values():
        if others:
            shown = listed(f"{each.name} ({each.example!r})" for each in (first, *others))
            how = first.sentence.replace(f", being written like {first.example!r}", "")
            notes.append(f"{how}: {shown}")
        else:
            notes.append(first.note(position(first.row) if first.n_words else ""))
    return notes
