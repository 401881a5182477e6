"""The column plan: which columns of a table are numbers, categories, texts or dates, and which are
not used.

`plan_columns` decides by the values; `ColumnPlan.transformer` makes the steps that turn the columns
into a matrix. Columns that cannot help (constants, ids, empty ones) are not used, each with a
reason.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forerank._text import counted, listed
from forerank._validation import check_choice
from forerank.data.additive_columns import AdditiveColumns
from forerank.data.column_kinds import COLUMN_TYPES
from forerank.data.frames import (
    LARGEST_EXACT,
    distinct,
    holds_containers,
    holds_dates,
    parses_as_number,
)
from forerank.data.readings import few_words, read_column
from forerank.data.transformers import CategoryColumns, NumberColumns, TableColumns, TextColumn
from forerank.data.tree_columns import CategoryCodes, RawColumns, TextComponents

__all__ = ["FORMS", "ColumnPlan", "MixedColumn", "mixed_columns", "plan_columns"]

# What columns become: see `ColumnPlan.transformer`.
FORMS = ("plain", "additive", "trees")
# Fewest rows of a category that has a column of its own in additive models.
_ADDITIVE_ROWS = 5

# Number of values whose words are counted to tell texts from categories.
_COUNTED_VALUES = 20_000
# Mean number of words from which strings are texts. Shorter strings are names of something.
_WORDS_OF_A_TEXT = 4.0
# Long strings are categories where at most this many are distinct, each in so many rows on average.
_MOST_SENTENCES = 100
_ROWS_OF_A_SENTENCE = 10
# An id has at least this many rows, and at least this share of its values are distinct.
_ID_ROWS = 20
_ID_SHARE = 0.95
_ID_NAME = re.compile(r"(?i)(^|[^a-z])id$|(?-i:[a-z]ID$|[a-z]Id$)")
# Names of those whom rows are about; integers in such a column are their numbers.
_OWNER_NAME = re.compile(
    r"(?i)(^|[^a-z])(subject|patient|account|acct|customer|client|user|member|participant|"
    r"respondent|household|student)([^a-z]?(no|nr|num|number|key))?$"
)
# Distinct integers up to which an id is a code of something, and so a category of this many rows.
_FEW_IDS = 50
_ROWS_OF_AN_ID = 5
# Smallest number of an account, and largest share of a last digit among equally frequent ones.
_SMALLEST_ACCOUNT = 10**6
_LAST_DIGIT_SHARE = 0.2
# Seconds and milliseconds since 1970, in September 2001; they are twice as many in 2033.
_EPOCHS = (1e9, 1e12)
# Names of the index of a frame that pandas wrote to a CSV file: none, or as it read that again.
_ROW_NUMBER_NAME = re.compile(r"Unnamed: 0(\.\d+)?|column 1 \(no name\)")
# Names that pandas gives to an index that became a column; ascending integers are row numbers then.
_INDEX_NAME = re.compile(r"Unnamed: \d+|column \d+ \(no name\)|index|level_\d+")
# Share of distinct values among row numbers; it is below 1 where tables were concatenated.
_ROW_NUMBER_SHARE = 0.5
# Values that are examined to see whether strings are numbers.
_EXAMINED_VALUES = 1000
# Share of numbers or dates from which the strings among them are noted.
_MIXED_SHARE = 0.5
_INTEGER = re.compile(r"[-+]?\d+")
_LEADING_ZERO = re.compile(r"[-+]?0\d")
# Numbers that the reader does not parse: amounts of money, percentages, digits grouped by commas.
_LIKE_A_NUMBER = re.compile(r"^[^\w\s]?\s?[-+]?\d[\d.,' ]*\s?[^\w\s]?$")


# The nouns of each kind of column, and its treatment in each form.
_NOUNS = {
    "numbers": ("number", "numbers"),
    "dates": ("date", "dates"),
    "categories": ("category", "categories"),
    "texts": ("text", "texts"),
}
_TREATMENTS = {
    "plain": {
        "numbers": "missing ones filled with the median, scaled",
        "dates": "as days, scaled",
        "categories": "one column per value, rare values together",
        "texts": "words by tf-idf",
    },
    "additive": {
        "numbers": "a curve for each, missing ones flagged",
        "dates": "a curve of days, with hour, weekday and month",
        "categories": "one column per value, rare values together",
        "texts": "words by tf-idf",
    },
    "trees": {
        "numbers": "unchanged",
        "dates": "as days, with hour, weekday and month",
        "categories": "as codes, rare values together",
        "texts": "as 20 components of tf-idf",
    },
}


@dataclass(frozen=True)
class ColumnPlan:
    """Kinds of the columns of a table, and the columns that are not used.

    Attributes
    ----------
    numbers, categories, texts, dates : list of str
    left_out : dict
        Column to reason.
    """

    numbers: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def used(self) -> list[str]:
        """Names of the columns that become features."""
        return [*self.numbers, *self.dates, *self.categories, *self.texts]

    def transformer(self, form: str = "plain") -> TableColumns:
        """The steps, not fitted. Columns of a frame are found by name, in any order; others are
        ignored.

        Parameters
        ----------
        form : {"plain", "additive", "trees"}, default="plain"
            What the columns become: scaled numbers and one-hot categories for linear models;
            curves for additive models, which are linear models on `AdditiveColumns`; or numbers as
            they are, with codes of categories, for trees.
        """
        check_choice("form", form, FORMS)
        numbers_and_dates = [*self.numbers, *self.dates]
        text: type = TextComponents if form == "trees" else TextColumn
        steps: list[tuple[str, Any, list[str]]] = {
            "plain": [
                ("numbers", NumberColumns(), self.numbers),
                ("dates", NumberColumns(), self.dates),
                ("categories", CategoryColumns(), self.categories),
            ],
            "additive": [
                ("numbers and dates", AdditiveColumns(), numbers_and_dates),
                ("categories", CategoryColumns(min_frequency=_ADDITIVE_ROWS), self.categories),
            ],
            "trees": [
                ("numbers and dates", RawColumns(), numbers_and_dates),
                ("categories", CategoryCodes(), self.categories),
            ],
        }[form]
        steps += [(f"text {name}", text(), [name]) for name in self.texts]
        return TableColumns([step for step in steps if step[2]])

    def kinds(self, frame: Any) -> dict[str, str]:
        """The kind of each column that is used, as in a model file."""
        dates = {
            name: "date" if getattr(frame[name].dtype, "tz", None) is None else "date with zone"
            for name in self.dates
        }
        categories, texts = (
            dict.fromkeys(self.categories, "category"),
            dict.fromkeys(self.texts, "text"),
        )
        return dict.fromkeys(self.numbers, "number") | dates | categories | texts

    def lines(self, form: str = "plain") -> list[str]:
        """Descriptions for the user, one line for each kind of column and each reason.

        The treatment of a kind depends on the form of the columns; see `transformer`.
        """
        check_choice("form", form, FORMS)
        shown = []
        for kind, (noun, plural) in _NOUNS.items():
            names, treatment = getattr(self, kind), _TREATMENTS[form][kind]
            if names:
                shown.append(f"{counted(len(names), noun, plural)}, {treatment}: {listed(names)}")
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.left_out.items():
            by_reason.setdefault(reason, []).append(name)
        return shown + [f"left out {listed(names)}: {why}" for why, names in by_reason.items()]


def plan_columns(
    frame: Any, *, exclude: Iterable[str | None] = (), types: Mapping[str, str] | None = None
) -> ColumnPlan:
    """The plan of the columns of a pandas frame.

    Parameters
    ----------
    frame : pandas.DataFrame
        As from `as_frame`.
    exclude : iterable of str
        Columns that are something else, such as the target and the groups.
    types : mapping, optional
        Columns that are "number", "category", "text" or "date" regardless of their values; see
        `forerank.data.frames.with_types`.

    Examples
    --------
    >>> import pandas as pd
    >>> job, country = ["clerk", "cook", "clerk"], ["fr", "fr", "fr"]
    >>> frame = pd.DataFrame({"age": [31, 45, 28], "job": job, "country": country})
    >>> plan = plan_columns(frame)
    >>> plan.numbers, plan.categories, plan.left_out
    (['age'], ['job'], {'country': 'the same in every row'})
    """
    plan, excluded = ColumnPlan(), set(exclude)
    for name in frame.columns:
        if name in excluded:
            continue
        if types and name in types:
            getattr(plan, COLUMN_TYPES[types[name]]).append(name)
            continue
        kind, reason = _kind(frame[name])
        if reason is not None:
            plan.left_out[name] = reason
        else:
            getattr(plan, kind).append(name)
    return plan


def _kind(column: Any) -> tuple[str, str | None]:
    """The field of the plan for a column, or the reason why it is not used."""
    from pandas.api import types

    if holds_containers(column):
        return "", "lists, bytes or other values that are neither text nor number"
    codes, values = distinct(column)
    n_missing = int(np.count_nonzero(codes < 0))
    if n_missing == len(column):
        return "", "empty"
    if len(values) == 1 and n_missing == 0:
        return "", "the same in every row"
    if holds_dates(column):
        return "dates", None
    if types.is_numeric_dtype(column.dtype):
        return _kind_of_numbers(column, values, n_missing)
    n_known = len(column) - n_missing
    is_repeated = len(values) <= min(_MOST_SENTENCES, n_known / _ROWS_OF_A_SENTENCE)
    is_text = not is_repeated and _mean_words(values) >= _WORDS_OF_A_TEXT
    if n_known >= _ID_ROWS and len(values) >= _ID_SHARE * n_known and not is_text:
        return "", _id_reason(values)
    return ("texts" if is_text else "categories"), None


def _kind_of_numbers(column: Any, values: Any, n_missing: int) -> tuple[str, str | None]:
    """Numbers, or integers that name something: left out, or categories where they are few."""
    from pandas.api import types

    name, n_known = str(column.name), len(column) - n_missing
    are_integers = types.is_integer_dtype(column.dtype)
    if are_integers and n_missing == 0:
        if _are_row_numbers(column, len(values)):
            return "", "row numbers, as pandas writes them"
        if len(values) == n_known >= _ID_ROWS:
            if np.ptp(values) == len(values) - 1:
                return "", "an id: every integer of a range once"
            if _ID_NAME.search(name):
                return "", "an id by its name: another integer in every row"
    if not are_integers and (np.mod(np.asarray(values, dtype=np.float64), 1) != 0).any():
        return "numbers", None
    is_named = bool(_ID_NAME.search(name))
    if len(values) <= _FEW_IDS or n_known < 2 * _FEW_IDS:
        is_code = is_named and 2 < len(values) <= n_known / _ROWS_OF_AN_ID
        return ("categories" if is_code else "numbers"), None
    if is_named or _OWNER_NAME.search(name) or _are_account_numbers(values, n_known):
        again = f"{len(values):,} different integers in {n_known:,} rows"
        return "", f"an id, {again}; if rows of one id belong together, make it the group"
    return "numbers", None


def _are_account_numbers(values: Any, n_known: int) -> bool:
    """Whether integers that repeat are neither amounts nor times but names: equally long, of seven
    digits or more, and with last digits that are equally frequent.
    """
    numbers = np.asarray(values, dtype=np.float64)
    low, high = numbers.min(), numbers.max()
    if low < _SMALLEST_ACCOUNT or len(str(int(low))) != len(str(int(high))):
        return False
    is_time = any(unit <= low and high <= 2.2 * unit for unit in _EPOCHS)
    last = np.bincount((numbers % 10).astype(np.intp), minlength=10) / numbers.size
    return not is_time and n_known >= 2 * numbers.size and bool(last.max() < _LAST_DIGIT_SHARE)


def _are_row_numbers(column: Any, n_distinct: int) -> bool:
    """Whether integers are the index of a frame that pandas wrote, perhaps of a shuffled part."""
    name = str(column.name)
    if _ROW_NUMBER_NAME.fullmatch(name):
        return n_distinct >= _ROW_NUMBER_SHARE * len(column)
    ascending = n_distinct == len(column) >= _ID_ROWS and column.is_monotonic_increasing
    return bool(ascending and _INDEX_NAME.fullmatch(name))


def _id_reason(values: Any) -> str:
    """The reason why a column of distinct strings is not used: an id, or numbers that the reader
    does not parse.
    """
    some = [str(value) for value in values[:: max(1, len(values) // _EXAMINED_VALUES)]]
    first = next((value for value in map(str, values) if not parses_as_number(value)), None)
    if first is not None and np.mean([parses_as_number(value) for value in some]) > 0.5:
        return f"strings among its numbers, such as {first!r}: correct them"
    if first is not None and np.mean([bool(_LIKE_A_NUMBER.match(value)) for value in some]) > 0.5:
        return f"not read as numbers, being written like {first!r}"
    integers = all(_INTEGER.fullmatch(value) for value in some)
    if integers and any(abs(int(value)) > LARGEST_EXACT for value in some):
        return "an id: another integer beyond 2^53 in nearly every row"
    return "an id: another string in nearly every row"


def _mean_words(values: Any) -> float:
    some = values[:: max(1, len(values) // _COUNTED_VALUES)]
    return float(np.mean([len(str(value).split()) for value in some]))


@dataclass(frozen=True)
class MixedColumn:
    """A column of numbers, or of dates, with strings among them."""

    name: str
    words: list[str]  # the distinct strings
    n_words: int  # number of values that are strings
    n_known: int  # number of values that are not missing
    row: int  # the first row with a string, counted from 0
    is_number: bool  # whether nearly all values are numbers; then the strings are missing ones
    what: str = "numbers"  # or dates, with an example where they are written in a notation


def mixed_columns(frame: Any, *, exclude: Iterable[str | None] = ()) -> list[MixedColumn]:
    """The columns of strings of which at least half are numbers or dates, in any notation."""
    excluded = set(exclude)
    found = (_mixed_column(frame[name]) for name in frame.columns if name not in excluded)
    return [column for column in found if column is not None]


def _mixed_column(column: Any) -> MixedColumn | None:
    plain = _mixed_numbers(column)
    if plain is not None and plain.is_number:
        return plain
    written = read_column(column, _MIXED_SHARE)
    if written is None or not written.n_words:
        return plain
    if plain is not None and plain.n_words <= written.n_words:
        return plain
    how = f", {written.reading.notation}" if written.reading.is_date else ""
    what = f"{'dates' if written.reading.is_date else 'numbers'} (like {written.example!r}{how})"
    words, n_words, n_known = list(written.reading.missing), written.n_words, written.n_known
    return MixedColumn(written.name, words, n_words, n_known, written.row, False, what)


def _mixed_numbers(column: Any) -> MixedColumn | None:
    import pandas as pd

    numeric = pd.api.types.is_numeric_dtype(column.dtype)
    if numeric or holds_dates(column) or holds_containers(column):
        return None
    codes, values = distinct(column)
    some = values[:: max(1, len(values) // _EXAMINED_VALUES)]
    if not any(parses_as_number(str(value)) for value in some):
        return None
    texts = pd.Series([str(value) for value in values], dtype=object)
    is_word = pd.to_numeric(texts, errors="coerce").isna().to_numpy()
    known = codes >= 0
    rows = known & is_word[codes]
    n_words, n_known = int(rows.sum()), int(known.sum())
    if not n_words or n_known - n_words < _MIXED_SHARE * n_known:
        return None
    words, numbers = texts[is_word].tolist(), texts[~is_word]
    few = few_words(n_words, n_known, len(words), len(numbers))
    is_code = any(_LEADING_ZERO.match(text) for text in numbers)  # such as 007
    is_quantity = few and not is_code
    first = int(np.argmax(rows))
    return MixedColumn(str(column.name), words, n_words, n_known, first, is_quantity)
